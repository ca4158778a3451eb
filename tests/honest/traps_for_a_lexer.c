/* kernel: histogram
   outcome: solved

   Text in which it is easy to lose track of what is a comment and what is a string. // Größe * / /* */
#include <stdint.h>
#include <string.h>

#if 0
It's not C in here, so an apostrophe that's left open isn't an error; "nor is a quotation mark.
#endif
// a comment that goes on \
   in the next line: Länge, it's 'é', /* not opened
#define TEXT_OF(line) \
  #line
#define LINE_OF(line, number) TEXT_OF(line) \
  "# 1"
#define EMPTY /* a comment in a macro: " ' Ω */
#define QUOTE '"' // "
#define STARS "/* no comment */ // none here either"
#define APOSTROPHE '\'' /* ' */
#define BACKSLASH '\\' /* \ */
#define TWO_LINES(b)   \
  do {                 \
    counts[b]++; /* é */ \
  } while (0)

static const char mixed[] = "\"/*\\\"" /* "é" */ "*/'" // '"
    "??/ is no trigraph here: ??= ??( ??'"
    TEXT_OF(include "größe") LINE_OF(pragma GCC optimize, 3)
    "goes on \
in the next line, é";

void histogram(const int32_t *x, int32_t *counts, int64_t n, int64_t bins) EMPTY {
  const char all[] = {QUOTE, APOSTROPHE, BACKSLASH, STARS[0], mixed[0], '/', '*', 0};
  memset(counts, 0, (size_t)bins/* divided */* sizeof *counts);
  int64_t one = 4 //* 2 */ 2
      - 3;
  for (int64_t i = 0; i < n; i+=one) TWO_LINES(x[i]);
  if (strlen(all) == 0) counts[0] = 'ab' /* two letters in one: é */;
}
/* the last comment: ** é **/
