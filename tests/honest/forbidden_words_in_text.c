/* kernel: axpy
   outcome: solved

   Speaks of what is forbidden, in comments and in strings, and does none of it:
   #include "/etc/passwd"
   #line 7 "elsewhere.c"
   #pragma GCC optimize("Ofast")
   __attribute__((constructor)) static void early(void);
   __attribute__((optimize("fast-math"), target("avx512f"), target_clones("default"), ifunc("choose")))
   asm volatile("syscall"); asm(".incbin \"/etc/shadow\""); dlopen("libm.so.6", 2); _Pragma("GCC target \"sse\"") */
#include <stdint.h>
#include <string.h>

// #include "/proc/self/maps"
// # 1 "/etc/passwd" 1
static const char *const sentences[] = {
    "syscall sysenter int $0x80",
    "#include \"/etc/passwd\"\n#line 1 \"x\"\n",
    ".incbin \"/etc/hostname\" .include \"a\"",
    "__attribute__((constructor)) __attribute__((optimize(\"O0\")))",
    "#pragma GCC push_options",
    "dlopen dlsym open fork execve ptrace mmap getenv LD_PRELOAD .init_array",
};

void axpy(const float *x, const float *y, float *out, int64_t n, float a) {
  size_t letters = 0;
  for (int i = 0; i < 6; i++) letters += strlen(sentences[(i + n) % 6]);
  float nothing = letters ? 0 : 1;
  for (int64_t i = 0; i < n; i++) out[i] = a * x[i] + (y[i] + nothing);
}
