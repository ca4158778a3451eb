/* kernel: axpy
   outcome: solved

   A raw string with lines that would be directives anywhere else. */
#include <cstdint>
#include <cstring>

static const char lines[] = R"(
#pragma GCC optimize ("O0")
#pragma GCC target ("sse2")
# 1 "elsewhere.cpp"
#line 3 "nowhere.cpp"
)";

extern "C" void axpy(const float *x, const float *y, float *out, int64_t n, float a) {
  float nothing = std::strlen(lines) == 100 ? 1.f : 0.f;
  for (int64_t i = 0; i < n; i++) out[i] = a * x[i] + (y[i] + nothing);
}
