/* kernel: gelu
   outcome: solved

   Coefficients kept as text, taken apart by the string functions and checked through errno. */
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const char text[] = "root_half=0.70710678118654752440; half = 5e-1 ;one=1";

static double named(const char *name) {
  char copy[sizeof text], *rest = 0;
  strcpy(copy, text);
  for (char *part = strtok_r(copy, ";", &rest); part; part = strtok_r(0, ";", &rest)) {
    part += strspn(part, " ");
    char *equals = strchr(part, '=');
    if (!equals || strncmp(part, name, strlen(name))) continue;
    errno = 0;
    double value = strtod(equals + 1, 0);
    if (!errno) return value;
  }
  abort();
}

void gelu(const float *x, float *out, int64_t n) {
  double root_half = named("root_half"), half = named("half"), one = named("one");
  for (int64_t i = 0; i < n; i++) out[i] = (float)(half * x[i] * (one + erf(x[i] * root_half)));
}
