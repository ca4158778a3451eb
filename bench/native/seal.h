/* The system calls that a loaded submission may still make; everything else ends the process with SIGSYS. */
#ifndef KC_SEAL_H
#define KC_SEAL_H
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define KC_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define KC_ARCH AUDIT_ARCH_AARCH64
#else
#error "the seal knows x86-64 and aarch64"
#endif

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define RETURN(what) BPF_STMT(BPF_RET | BPF_K, what)
/* For one call: what follows runs when it is that call, else it is skipped (`length` instructions). */
#define ON(name, length) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_##name, 0, length)
#define ALLOW(name) ON(name, 1), RETURN(SECCOMP_RET_ALLOW)
#define REFUSE(name, error) ON(name, 1), RETURN(SECCOMP_RET_ERRNO | (error))
/* Allowed when the low half of an argument has none of these bits. */
#define MASK_CLEAR(name, argument, mask, otherwise) \
  ON(name, 4), LOAD(args[argument]), BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, mask, 1, 0), RETURN(SECCOMP_RET_ALLOW), RETURN(otherwise)
/* What an allocator says of its own memory; other advice takes pages from whoever else has them mapped. */
#define ADVICE(name, argument)                                                                                       \
  ON(name, 7), LOAD(args[argument]), BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, MADV_DONTNEED, 0, 3),                       \
  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MADV_FREE, 2, 0), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MADV_HUGEPAGE, 1, 0),    \
  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MADV_NOHUGEPAGE, 0, 1), RETURN(SECCOMP_RET_ALLOW), RETURN(REFUSED(EPERM))
/* A thread, for which its maker does not wait: where it waited, no signal would stop it. */
#define ONLY_THREADS(name, argument)                                                                                 \
  ON(name, 5), LOAD(args[argument]), BPF_STMT(BPF_ALU | BPF_AND | BPF_K, CLONE_THREAD | CLONE_VFORK),                \
  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, CLONE_THREAD, 0, 1), RETURN(SECCOMP_RET_ALLOW), RETURN(KILL)
/* Allowed but for the two that nothing can catch: who sees them must know that they came from outside. For the same
   reason no exit code may look like that of a signal (128 + its number). */
#define SIGNAL_BUT_KILL_AND_STOP(name, argument)                                                                     \
  ON(name, 5), LOAD(args[argument]), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SIGKILL, 2, 0),                             \
  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SIGSTOP, 1, 0), RETURN(SECCOMP_RET_ALLOW), RETURN(KILL)
#define KILL SECCOMP_RET_KILL_PROCESS
#define REFUSED(error) (SECCOMP_RET_ERRNO | (error))

/* Honest code works: memory, threads of this process, clocks, writing to what is open. No new program, no code that was
   not loaded with the library, no process, no socket, no other process's memory. */
#define KC_COMMON                                                                                                    \
  ALLOW(read), ALLOW(write), ALLOW(writev), ALLOW(lseek), ALLOW(close), ALLOW(fstat), ALLOW(newfstatat),             \
  MASK_CLEAR(mmap, 2, PROT_EXEC, KILL), MASK_CLEAR(mprotect, 2, PROT_EXEC, KILL),                                    \
  ALLOW(munmap), MASK_CLEAR(mremap, 3, MREMAP_FIXED, KILL), ADVICE(madvise, 2), ALLOW(brk), ALLOW(membarrier),        \
  ONLY_THREADS(clone, 0), REFUSE(clone3, ENOSYS), ALLOW(set_robust_list), ALLOW(rseq),               \
  ALLOW(futex), ALLOW(sched_yield), ALLOW(sched_getaffinity), REFUSE(sched_setaffinity, EPERM), ALLOW(getcpu),       \
  REFUSE(mbind, EPERM), REFUSE(get_mempolicy, EPERM), REFUSE(set_mempolicy, EPERM),                                  \
  ALLOW(nanosleep), ALLOW(clock_nanosleep), ALLOW(clock_gettime), ALLOW(clock_getres), ALLOW(gettimeofday),          \
  ALLOW(getpid), ALLOW(gettid), ALLOW(getuid), ALLOW(geteuid), ALLOW(getgid), ALLOW(getegid), ALLOW(uname),          \
  ALLOW(sysinfo), ALLOW(getrusage), ALLOW(getrandom), MASK_CLEAR(prlimit64, 2, 0xffffffff, REFUSED(EPERM)),          \
  ALLOW(rt_sigaction), ALLOW(rt_sigprocmask), ALLOW(rt_sigreturn), ALLOW(sigaltstack), ALLOW(restart_syscall),       \
  SIGNAL_BUT_KILL_AND_STOP(tgkill, 2), MASK_CLEAR(exit, 0, 0x80, KILL), MASK_CLEAR(exit_group, 0, 0x80, KILL),       \
  REFUSE(ioctl, ENOTTY), REFUSE(prctl, EPERM)

/* Files: a native kernel opens none (libraries that try go on without); Python reads its own modules. */
#define KC_NO_FILES REFUSE(openat, EACCES), REFUSE(readlinkat, EACCES), REFUSE(faccessat, EACCES)
#define KC_READ_FILES                                                                                                \
  MASK_CLEAR(openat, 2, O_WRONLY | O_RDWR | O_CREAT | O_TRUNC, REFUSED(EACCES)), ALLOW(getdents64), ALLOW(pread64),  \
  ALLOW(readlinkat), ALLOW(faccessat), ALLOW(getcwd), ALLOW(fcntl), ALLOW(dup)
#if defined(__x86_64__)
#define KC_OLD_COMMON ALLOW(time), ALLOW(getrlimit), REFUSE(arch_prctl, EPERM)
#define KC_OLD_NO_FILES REFUSE(open, EACCES), REFUSE(access, EACCES), REFUSE(readlink, EACCES), REFUSE(stat, EACCES)
#define KC_OLD_READ_FILES                                                                                            \
  MASK_CLEAR(open, 1, O_WRONLY | O_RDWR | O_CREAT | O_TRUNC, REFUSED(EACCES)), ALLOW(stat), ALLOW(lstat),            \
  ALLOW(access), ALLOW(readlink)
#else
#define KC_OLD_COMMON REFUSE(getrlimit, EPERM)
#define KC_OLD_NO_FILES REFUSE(statfs, EACCES)
#define KC_OLD_READ_FILES REFUSE(statfs, EACCES)
#endif
/* A GPU: its library asks the driver by ioctl, maps what it is given, and opens files of the driver when it first needs
   them. No program can be started, no process, no socket; code can be mapped, which the driver does. No thread: one
   could launch work on a call's values while the device changes hands, before the clock starts. */
#define KC_DEVICE                                                                                                    \
  ON(clone, 1), RETURN(KILL),                                                                                        \
  ALLOW(ioctl), ALLOW(mmap), ALLOW(mprotect), ALLOW(mremap), ALLOW(madvise), ALLOW(openat), ALLOW(readlinkat),       \
  ALLOW(faccessat), ALLOW(fcntl), ALLOW(dup), ALLOW(pread64), ALLOW(getdents64), ALLOW(ppoll), ALLOW(eventfd2),      \
  ALLOW(sched_setaffinity), ALLOW(mbind), ALLOW(get_mempolicy), ALLOW(set_mempolicy), ALLOW(memfd_create),           \
  ALLOW(ftruncate), ALLOW(getcwd), ALLOW(mlock), ALLOW(munlock)
#if defined(__x86_64__)
#define KC_OLD_DEVICE ALLOW(poll), ALLOW(stat), ALLOW(lstat), ALLOW(open), ALLOW(access), ALLOW(readlink)
#else
#define KC_OLD_DEVICE ALLOW(statfs)
#endif
#define KC_HEAD \
  LOAD(arch), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, KC_ARCH, 1, 0), RETURN(KILL), LOAD(nr)

enum kc_sealed { KC_SEALED = 0, KC_SEALED_READER = 1, KC_SEALED_DEVICE = 2 };

/* Seal this process and the threads that it starts from now on; -1 when the kernel refuses. */
static int kc_seal(enum kc_sealed how) {
  struct sock_filter native[] = {KC_HEAD, KC_COMMON, KC_OLD_COMMON, KC_NO_FILES, KC_OLD_NO_FILES, RETURN(KILL)};
  struct sock_filter python[] = {KC_HEAD, KC_COMMON, KC_OLD_COMMON, KC_READ_FILES, KC_OLD_READ_FILES, RETURN(KILL)};
  /* The first rule for a call holds. */
  struct sock_filter device[] = {KC_HEAD, KC_DEVICE, KC_OLD_DEVICE, KC_COMMON, KC_OLD_COMMON, RETURN(KILL)};
  struct sock_fprog program = {sizeof native / sizeof *native, native};
  if (how == KC_SEALED_READER) program = (struct sock_fprog){sizeof python / sizeof *python, python};
  if (how == KC_SEALED_DEVICE) program = (struct sock_fprog){sizeof device / sizeof *device, device};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) return -1;
  /* Every thread: one that a constructor started must not stay outside. */
  return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
}
#endif
