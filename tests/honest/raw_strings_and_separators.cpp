/* kernel: axpy
   outcome: solved

   Raw strings that hold what looks like code, numbers with separators, comments with apostrophes: 'Größe'. */
#include <cstdint>
#include <string_view>

static constexpr std::string_view told = R"text(
#include "/etc/passwd"
#pragma GCC optimize("Ofast")
)" still the same text ' " // no comment: Größe
__attribute__((constructor, optimize("O0"), target("avx512f"))) void early() { asm("syscall"); }
)text";
static constexpr std::string_view other = u8R"(é")"[0] ? LR"(")"[0] == L'"' ? R"('/*)" : "" : "\"é";

static constexpr int64_t block = 1'024, mask = 0x3'ff, bits = 0b11'1111'1111; // don't read as a literal: é
static constexpr double near_one = 1.000'000'0e+0'0;                        // it's one: é

extern "C" void axpy(const float *x, const float *y, float *out, int64_t n, float a) {
  static_assert(block - 1 == mask && mask == bits && near_one == 1);
  float nothing = told.size() > 100 && other.size() == 3 ? 0.f : 1.f; // '
  for (int64_t first = 0; first < n; first += block)
    for (int64_t i = first; i < n && i <= (first | mask); i++) out[i] = a * x[i] + (y[i] + nothing); // ' é
}
