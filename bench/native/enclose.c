/* Shuts a command in where bubblewrap is missing: namespaces, a root of its own that is read-only, no capabilities.

   enclose (-u UID | -n UID) -b BYTES -C FOLDER [-l PATH=TARGET]... [-r PATH]... [-w PATH]... [-d PATH]... -- COMMAND...

   -u  the command runs as this user (needs root)
   -n  a user namespace in which the caller is this user (needs no rights)
   -b  size of /tmp and of /dev/shm
   -C  the command's working folder
   -l  a symbolic link in the new root
   -r  a file or folder of the host that is there read-only, with everything mounted below it; skipped when missing
   -w  the same, writable; must exist
   -d  the same of a node of /dev, which can be used as a device

   Descriptors that the caller passes on reach the command. Three processes: this one stays outside and dies with its
   parent; its child is the namespaces' init and dies with it; the init's first child is the command. When the command
   ends, everything inside ends. Exit status: the command's own, 128 + its signal, 125 when it could not be shut in,
   127 when it could not be started; standard error says why. */
#define _GNU_SOURCE
#include "seal.h"
#include <linux/capability.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <grp.h>

/* The C libraries of clusters are older than their kernels: what they do not name is the same on every processor. */
enum { PIDFD_OPEN = 434, CLOSE_RANGE = 436, TREE_OPEN = 428, TREE_MOVE = 429, MOUNT_SETATTR = 442 };
enum { TREE_CLONE = 1, RECURSIVE = 0x8000, FROM_DESCRIPTOR = 4, BY_DESCRIPTOR = 0x1000 };
enum { READ_ONLY = 1, NO_SUID = 2, NO_DEVICES = 4, NO_EXEC = 8 };
struct attributes { uint64_t set, clear, propagation, user_namespace; };

enum { NOT_SHUT_IN = 125, NOT_STARTED = 127, MOST = 256 };
struct shared { const char *path; int writable, device, tree; };
static struct {
  uid_t user;
  int own_namespace; /* of users */
  const char *bytes, *folder, *links[MOST];
  struct shared shared[MOST];
  int n_links, n_shared;
} asked;

static _Noreturn void fail(const char *what) {
  fprintf(stderr, "enclose: %s: %s\n", what, errno == ENOSYS ? "it takes Linux 5.12" : strerror(errno));
  _exit(NOT_SHUT_IN);
}

static void set_attributes(int at, const char *path, unsigned flags, uint64_t set) {
  struct attributes wanted = {.set = set, .propagation = MS_PRIVATE};
  if (syscall(MOUNT_SETATTR, at, path, flags, &wanted, sizeof wanted)) fail(*path ? path : "mount_setattr");
}

/* A detached copy of what is mounted at a path and below it; -1 when nothing is there. */
static int copy_of(const char *path, uint64_t attributes) {
  int tree = (int)syscall(TREE_OPEN, AT_FDCWD, path, TREE_CLONE | O_CLOEXEC | RECURSIVE);
  if (tree < 0 && errno == ENOENT) return -1;
  if (tree < 0) fail(path);
  set_attributes(tree, "", BY_DESCRIPTOR | RECURSIVE, attributes);
  return tree;
}

static void copy_shared(void) {
  for (struct shared *one = asked.shared; one < asked.shared + asked.n_shared; one++) {
    uint64_t kept_from = NO_SUID | (one->device ? NO_EXEC : NO_DEVICES) | (one->writable ? 0 : READ_ONLY);
    one->tree = copy_of(one->path, kept_from);
    if (one->tree < 0 && one->writable) fail(one->path);
  }
}

/* Make an empty folder or file and the folders above it; what is there already stays. */
static void make_place(const char *path, int folder) {
  char above[4096];
  snprintf(above, sizeof above, "%s", path);
  for (char *at = above + 1; (at = strchr(at, '/')); *at++ = '/') {
    *at = 0;
    mkdir(above, 0755);
  }
  if (folder) mkdir(path, 0755);
  else close(open(path, O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_RDONLY, 0444));
}

static void put(int tree, const char *path) {
  struct stat found;
  if (tree < 0) return;
  if (fstat(tree, &found)) fail(path);
  make_place(path, S_ISDIR(found.st_mode));
  if (syscall(TREE_MOVE, tree, "", AT_FDCWD, path, FROM_DESCRIPTOR)) fail(path);
  close(tree);
}

static void mount_new(const char *type, const char *path, unsigned long flags, const char *options) {
  make_place(path, 1);
  if (mount(type, path, type, flags | MS_NOSUID, options)) fail(path);
}

static void mount_space(const char *path) {
  char options[64];
  snprintf(options, sizeof options, "mode=1777,size=%s", asked.bytes);
  mount_new("tmpfs", path, MS_NODEV, options);
}

static void write_line(const char *path, const char *line) {
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0 || write(fd, line, strlen(line)) < 0) fail(path);
  close(fd);
}

static void map_caller(uid_t user, gid_t group) {
  char line[64];
  write_line("/proc/self/setgroups", "deny");
  snprintf(line, sizeof line, "%u %u 1", asked.user, user);
  write_line("/proc/self/uid_map", line);
  snprintf(line, sizeof line, "%u %u 1", asked.user, group);
  write_line("/proc/self/gid_map", line);
}

/* An empty root in place of the host's, with nothing in it but this namespace's /proc. */
static void change_root(void) {
  if (mount("tmpfs", "/usr", "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755") || chdir("/usr")) fail("a new root");
  mount_new("proc", "proc", MS_NODEV | MS_NOEXEC, 0); /* the kernel asks for the host's as long as users are mapped */
  if (syscall(SYS_pivot_root, ".", ".") || umount2(".", MNT_DETACH) || chdir("/")) fail("changing the root");
}

static void fill_root(void) {
  static const char *const devices[] = {"/dev/null",   "/dev/zero",    "/dev/full",
                                        "/dev/random", "/dev/urandom", "/dev/tty"};
  enum { DEVICES = sizeof devices / sizeof *devices };
  int device[DEVICES];
  for (int i = 0; i < DEVICES; i++) device[i] = copy_of(devices[i], NO_SUID | NO_EXEC);
  change_root();
  for (int i = 0; i < DEVICES; i++) put(device[i], devices[i]);
  mount_new("devpts", "/dev/pts", MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620");
  if (symlink("pts/ptmx", "/dev/ptmx") || symlink("/proc/self/fd", "/dev/fd") || symlink("fd/0", "/dev/stdin") ||
      symlink("fd/1", "/dev/stdout") || symlink("fd/2", "/dev/stderr")) fail("/dev");
  mount_space("/tmp");
  mount_space("/dev/shm");
  for (int i = 0; i < asked.n_links; i++) {
    char *path = strdupa(asked.links[i]), *target = strchr(path, '=');
    *target++ = 0;
    if (symlink(target, path)) fail(path);
  }
  for (int i = 0; i < asked.n_shared; i++) put(asked.shared[i].tree, asked.shared[i].path);
  set_attributes(AT_FDCWD, "/", 0, READ_ONLY | NO_SUID | NO_DEVICES);
}

static void start_loopback(void) {
  struct ifreq loopback = {.ifr_name = "lo", .ifr_flags = IFF_UP};
  int any = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (any < 0 || ioctl(any, SIOCSIFFLAGS, &loopback)) fail("the loopback interface");
  close(any);
}

static void drop_capabilities(void) {
  struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
  struct __user_cap_data_struct none[2] = {{0}};
  if (syscall(SYS_capset, &header, none)) fail("dropping capabilities");
}

/* The command may be this user's too and could then write to our memory: nothing but waiting is left to us. Before we
   drop our capabilities it cannot, having none. */
static void only_wait(void) {
  struct sock_filter filter[] = {KC_HEAD, ALLOW(wait4), ALLOW(exit_group), ALLOW(capset), RETURN(KILL)};
  syscall(CLOSE_RANGE, 0, ~0U, 0);
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &(struct sock_fprog){sizeof filter / sizeof *filter, filter}))
    _exit(NOT_SHUT_IN);
  drop_capabilities();
}

static int exit_code(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

/* Wait for a child's end, and reap whatever else ends meanwhile. */
static _Noreturn void end_with(pid_t child) {
  int status;
  pid_t ended;
  while ((ended = wait4(-1, &status, 0, 0)) != child)
    if (ended < 0 && errno != EINTR) _exit(NOT_SHUT_IN);
  syscall(SYS_exit_group, exit_code(status));
  __builtin_unreachable();
}

static void start(char **command) {
  uid_t user = asked.user;
  if (!asked.own_namespace && (setgroups(0, 0) || setresgid(user, user, user) || setresuid(user, user, user)))
    fail("changing the user");
  drop_capabilities();
  execvp(*command, command);
  fprintf(stderr, "enclose: %s: %s\n", *command, strerror(errno));
  _exit(NOT_STARTED);
}

static void be_init(int outside, uid_t user, gid_t group, char **command) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (poll(&(struct pollfd){outside, POLLIN, 0}, 1, 0)) _exit(NOT_SHUT_IN); /* it ended before we asked for that */
  if (asked.own_namespace) map_caller(user, group);
  if (mount(0, "/", 0, MS_REC | MS_PRIVATE, 0)) fail("making mounts private");
  mode_t mask = umask(0);
  copy_shared();
  fill_root();
  start_loopback();
  if (sethostname("sandbox", 7)) fail("the host's name");
  if (chdir(asked.folder)) fail(asked.folder);
  umask(mask);
  for (int capability = 0; prctl(PR_CAPBSET_READ, capability) >= 0; capability++)
    if (prctl(PR_CAPBSET_DROP, capability)) fail("dropping capabilities");
  pid_t child = fork();
  if (child < 0) fail("a process");
  if (!child) start(command);
  only_wait();
  end_with(child);
}

static void read_options(int argc, char **argv) {
  for (int option; (option = getopt(argc, argv, "+u:n:b:C:l:r:w:d:")) != -1;) {
    if (asked.n_links == MOST || asked.n_shared == MOST) errno = E2BIG, fail(argv[0]);
    if (option == 'u' || option == 'n') asked.user = (uid_t)atoi(optarg), asked.own_namespace = option == 'n';
    else if (option == 'b') asked.bytes = optarg;
    else if (option == 'C') asked.folder = optarg;
    else if (option == 'l' && strchr(optarg, '=')) asked.links[asked.n_links++] = optarg;
    else if (option == 'r') asked.shared[asked.n_shared++] = (struct shared){optarg, 0, 0, -1};
    else if (option == 'w') asked.shared[asked.n_shared++] = (struct shared){optarg, 1, 0, -1};
    else if (option == 'd') asked.shared[asked.n_shared++] = (struct shared){optarg, 1, 1, -1};
    else errno = EINVAL, fail(optarg ? optarg : "an option");
  }
  if (asked.user && asked.bytes && asked.folder && argv[optind]) return;
  errno = EINVAL;
  fail("-u or -n, -b, -C and a command are needed");
}

int main(int argc, char **argv) {
  read_options(argc, argv);
  signal(SIGCHLD, SIG_DFL); /* ignored, it would take our children's status away */
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) fail("no_new_privs");
  uid_t user = geteuid();
  gid_t group = getegid();
  int outside = (int)syscall(PIDFD_OPEN, getpid(), 0);
  if (outside < 0) fail("pidfd_open");
  unsigned long namespaces = CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP | CLONE_NEWNS;
  pid_t init = (pid_t)syscall(SYS_clone, namespaces | (asked.own_namespace ? CLONE_NEWUSER : 0) | SIGCHLD, 0, 0, 0, 0);
  if (init < 0) fail("new namespaces");
  if (!init) be_init(outside, user, group, argv + optind);
  syscall(CLOSE_RANGE, 0, ~0U, 0);
  end_with(init);
}
