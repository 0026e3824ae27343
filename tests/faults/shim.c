// Preloaded into fsbench: makes one call on a file below FAULT_FOLDER fail, and counts such calls.
//
// FAULT=KIND:N:ERRNO[:on]  the Nth call of the kind fails with this errno; 0 makes a write short; with `on`, all later
//                          calls of the kind fail, too, as on a full disk
// FAULT_DELAY=N            each write and sync takes N microseconds longer, as on a slow disk
// FAULT_COUNTS=FILE        a line "KIND COUNT" per kind is appended to this file when the process ends
//
// Creating a file without a name (O_TMPFILE) counts as "create", too.
//
// Renames do not go through libc everywhere (rustix makes the system call itself), so a seccomp filter traps them.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

enum kind { WRITE, SYNC, RENAME, TRUNCATE, CREATE, MKDIR, LINK, UNLINK, KINDS };
static const char *const names[KINDS] = {"write", "sync", "rename", "truncate", "create", "mkdir", "link", "unlink"};

static long counts[KINDS];
static int fault_kind = -1, fault_errno, fault_stays;
static long fault_number;
static useconds_t delay;
static char folder[4096];

static void trap_renames(void);

__attribute__((constructor)) static void start(void) {
    const char *below = getenv("FAULT_FOLDER"), *fault = getenv("FAULT");
    if (below) snprintf(folder, sizeof folder, "%s/", below);
    if (getenv("FAULT_DELAY")) delay = atoi(getenv("FAULT_DELAY"));
    char kind[16], stays[8] = "";
    if (fault && sscanf(fault, "%15[a-z]:%ld:%d:%7s", kind, &fault_number, &fault_errno, stays) >= 3) {
        for (int i = 0; i < KINDS; i++)
            if (!strcmp(kind, names[i])) fault_kind = i;
        fault_stays = !strcmp(stays, "on");
    }
    trap_renames();
}

__attribute__((destructor)) static void end(void) {
    const char *path = getenv("FAULT_COUNTS");
    if (!path) return;
    char text[512];
    int length = 0;
    for (int i = 0; i < KINDS; i++)
        length += snprintf(text + length, sizeof text - length, "%s %ld\n", names[i], counts[i]);
    FILE *file = fopen(path, "a");
    if (!file) return;
    fwrite(text, 1, length, file);
    fclose(file);
}

static int is_below(const char *path) {
    char full[4096];
    if (path[0] != '/') {
        if (!getcwd(full, sizeof full)) return 0;
        size_t length = strlen(full);
        snprintf(full + length, sizeof full - length, "/%s", path);
        path = full;
    }
    return folder[0] && !strncmp(path, folder, strlen(folder));
}

// The link of a file without a name reads "FOLDER/#NUMBER (deleted)".
static int is_file_below(int fd) {
    struct stat status;
    char link[64], path[4096];
    if (!folder[0] || fstat(fd, &status) || !S_ISREG(status.st_mode)) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return is_below(path);
}

// Counts a call; returns whether it is to fail.
static int fails(enum kind kind) {
    if (delay && (kind == WRITE || kind == SYNC)) usleep(delay);
    long number = __atomic_add_fetch(&counts[kind], 1, __ATOMIC_SEQ_CST);
    if ((int)kind != fault_kind || (fault_stays ? number < fault_number : number != fault_number)) return 0;
    errno = fault_errno;
    return 1;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t write(int fd, const void *bytes, size_t count) {
    if (is_file_below(fd) && fails(WRITE)) {
        if (fault_errno) return -1;
        count = count > 1 ? count / 2 : count;
    }
    return REAL(write)(fd, bytes, count);
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    if (is_file_below(fd) && fails(WRITE)) return fault_errno ? -1 : REAL(writev)(fd, parts, 1);
    return REAL(writev)(fd, parts, count);
}

ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t at) {
    if (is_file_below(fd) && fails(WRITE)) {
        if (fault_errno) return -1;
        count = count > 1 ? count / 2 : count;
    }
    return REAL(pwrite64)(fd, bytes, count, at);
}

int fsync(int fd) { return is_file_below(fd) && fails(SYNC) ? -1 : REAL(fsync)(fd); }
int fdatasync(int fd) { return is_file_below(fd) && fails(SYNC) ? -1 : REAL(fdatasync)(fd); }
int ftruncate64(int fd, off64_t to) { return is_file_below(fd) && fails(TRUNCATE) ? -1 : REAL(ftruncate64)(fd, to); }
int mkdir(const char *path, mode_t mode) { return is_below(path) && fails(MKDIR) ? -1 : REAL(mkdir)(path, mode); }
int link(const char *from, const char *to) { return is_below(to) && fails(LINK) ? -1 : REAL(link)(from, to); }
int linkat(int of, const char *from, int in, const char *to, int flags) {
    return is_below(to) && fails(LINK) ? -1 : REAL(linkat)(of, from, in, to, flags);
}
int symlink(const char *from, const char *to) { return is_below(to) && fails(LINK) ? -1 : REAL(symlink)(from, to); }
int unlink(const char *path) { return is_below(path) && fails(UNLINK) ? -1 : REAL(unlink)(path); }

// Whether this opening of a path may make a file; a file without a name is made in the folder `path`.
static int creates_below(const char *path, int flags) {
    char inside[4096];
    if ((flags & __O_TMPFILE) != __O_TMPFILE) return flags & O_CREAT && is_below(path);
    snprintf(inside, sizeof inside, "%s/", path);
    return is_below(inside);
}

int open64(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    if (creates_below(path, flags) && fails(CREATE)) return -1;
    return REAL(open64)(path, flags, mode);
}

// The filter lets a rename pass if its unused sixth argument is this.
#define PASS 0x5eed5eed

#ifdef __x86_64__
static void on_rename(int signal, siginfo_t *info, void *context) {
    (void)signal;
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    long arguments[] = {registers[REG_RDI], registers[REG_RSI], registers[REG_RDX], registers[REG_R10], registers[REG_R8]};
    const char *to = (const char *)arguments[info->si_syscall == SYS_rename ? 1 : 3];
    int saved = errno;
    long result = -1;
    if (is_below(to) && fails(RENAME))
        ;
    else
        result = syscall(info->si_syscall, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], PASS);
    registers[REG_RAX] = result < 0 ? -errno : result;
    errno = saved;
}

static void trap_renames(void) {
    struct sigaction action = {.sa_sigaction = on_rename, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigaction(SIGSYS, &action, 0);
    // A child has its parent's filter.
    if (getenv("FAULT_FILTER") || setenv("FAULT_FILTER", "1", 1)) return;
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rename, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_renameat, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_renameat2, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[5])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PASS, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) _exit(99);
}
#else
static void trap_renames(void) {}
#endif
