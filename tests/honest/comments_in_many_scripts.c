/* kernel: axpy
   outcome: solved

   Größe × Länge, naïveté, Å — „so“ « oui » … ½ ∑ᵢ aᵢ·xᵢ ≤ ∞ 🙂 🧮 ⚠️
   Ελληνικά: το άθροισμα δύο διανυσμάτων.   Русский: сумма векторов.   中文：向量加法。   日本語：ベクトルの和（ＡＸＰＹ）
   עברית: סכום של וקטורים    العربية: مجموع المتجهات    हिन्दी: सदिश योग    한국어: 벡터의 합    ไทย: ผลรวม
   Letters made of two (o + ̈ = ö), a space that does not break ( ), one of Chinese width (　). */
#include <stdint.h>
#include <string.h>
#include <wchar.h>

static const char length[] = "Größe × Länge"; // übliche Namen: größe, länge
static const wchar_t wide[] = L"δοκιμή";
static const char utf8[] = u8"向量";
static const char escaped[] = "\u00e9\xc3\xa9";

void axpy(const float *x, const float *y, float *out, int64_t n, float a) {
  size_t letters = sizeof wide / sizeof *wide + strlen(length) + strlen(utf8) + strlen(escaped);
  for (int64_t i = 0; i < n; i++) out[i] = a * x[i] + y[i]; // Σ
  if (!letters) out[0] = L'é';                              // ∅
}
