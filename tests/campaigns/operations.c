/* What a process does with files below one folder: counted, made to fail, and a moment to be killed at.
 *
 * Loaded before libc (LD_PRELOAD) into every process of a campaign; all of them share the block of memory that
 * operations.py lays out, so that operations are numbered across processes. An operation's number depends on the program
 * alone, never on the speed of a machine. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>
#include <dirent.h>

enum { OPEN_TO_WRITE, WRITE, RENAME, SYNC, MAKE, REMOVE, LOCK, OPEN_TO_READ, READ, STAT, KINDS };
enum { OWN, PARENT, WORKER, ALL };
enum { BEFORE, HALFWAY, AFTER };
#define MOST 512
#define PLANS 16

struct plan { long at; int who, how, signal, lot; };
struct control {
    int armed;
    unsigned kinds;             /* a bit for each kind that is counted */
    char root[512];             /* only files below it are */
    long count;                 /* operations so far */
    long fail_from, fail_until; /* numbers from 1 that fail, the last one excluded */
    int error;                  /* as errno; 0: half of what is written is written, and said to be */
    int plans, next, struck;    /* kills that are planned, whose time has come, that hit somebody */
    struct plan plan[PLANS];
    int parent;                 /* the first that begins a session: what earlier commands left may still be there */
    int processes, hands;
    int process[MOST];          /* every process */
    int hand[MOST];             /* those that had to do with a file */
    long by_kind[KINDS];
    char failed[600];           /* what failed first */
};

static struct control *control;
static unsigned char ours[65536];
static const char *NAMES[] = {"open to write", "write", "rename", "sync", "make", "remove", "lock", "open to read",
                              "read", "stat"};

static void enrol(int *list, int *length) {
    int pid = getpid(), known = __atomic_load_n(length, __ATOMIC_SEQ_CST);
    for (int k = 0; k < known && k < MOST; k++)
        if (list[k] == pid) return;
    int place = __atomic_fetch_add(length, 1, __ATOMIC_SEQ_CST);
    if (place < MOST) list[place] = pid;
}

static void born(void) {
    if (control && control->armed) enrol(control->process, &control->processes);
}

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("CAMPAIGN_OPERATIONS");
    if (!path) return;
    int (*really)(const char *, int, ...) = dlsym(RTLD_NEXT, "open");
    int handle = really(path, O_RDWR | O_CLOEXEC);
    if (handle < 0) return;
    void *there = mmap(NULL, sizeof(struct control), PROT_READ | PROT_WRITE, MAP_SHARED, handle, 0);
    close(handle);
    if (there == MAP_FAILED) return;
    control = there;
    born();
    pthread_atfork(NULL, NULL, born);
}

static void strike(struct plan *plan) {
    __atomic_fetch_add(&control->struck, 1, __ATOMIC_SEQ_CST);
    int own = getpid(), parent = control->parent, hands = control->hands < MOST ? control->hands : MOST;
    if (plan->who == ALL) {
        for (int k = 0; k < control->processes && k < MOST; k++)
            if (control->process[k] && control->process[k] != own) kill(control->process[k], plan->signal);
        kill(own, plan->signal);
    } else if (plan->who == PARENT) {
        if (parent) kill(parent, plan->signal);
    } else if (plan->who == WORKER && own == parent) {
        for (int k = 0; k < hands; k++) {
            int chosen = control->hand[(k + plan->lot) % hands];
            if (chosen && chosen != parent && kill(chosen, plan->signal) == 0) return;
        }
        __atomic_fetch_sub(&control->struck, 1, __ATOMIC_SEQ_CST); /* there is none */
    } else {
        kill(own, plan->signal);
    }
}

/* The operation's number has come: who is killed now? */
static struct plan *due(long number) {
    for (;;) {
        int next = __atomic_load_n(&control->next, __ATOMIC_SEQ_CST);
        if (next >= control->plans || control->plan[next].at > number) return NULL;
        if (__atomic_compare_exchange_n(&control->next, &next, next + 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
            return &control->plan[next];
    }
}

struct step { int fails; struct plan *plan; };

static struct step enter(int kind, const char *what) {
    struct step step = {0, NULL};
    if (!control || !control->armed || !(control->kinds >> kind & 1)) return step;
    enrol(control->hand, &control->hands);
    long number = __atomic_add_fetch(&control->count, 1, __ATOMIC_SEQ_CST);
    __atomic_add_fetch(&control->by_kind[kind], 1, __ATOMIC_SEQ_CST);
    step.fails = number >= control->fail_from && number < control->fail_until;
    if (step.fails && number == control->fail_from) {
        strcpy(control->failed, NAMES[kind]);
        strcat(control->failed, " ");
        strncat(control->failed, what ? what : "", 500);
    }
    step.plan = due(number);
    if (step.plan && step.plan->how == BEFORE) strike(step.plan);
    return step;
}

static void leave(struct step step) {
    if (step.plan && step.plan->how != BEFORE) {
        int kept = errno;
        strike(step.plan);
        errno = kept;
    }
}

static int below(int folder, const char *path) {
    if (!control || !control->armed || !path) return 0;
    if (path[0] != '/') return folder >= 0 && folder < 65536 && ours[folder];
    size_t length = strlen(control->root);
    return length && !strncmp(path, control->root, length);
}

static int mine(int handle) { return control && control->armed && handle >= 0 && handle < 65536 && ours[handle]; }

#define REAL(name, type, ...) static type (*really)(__VA_ARGS__); if (!really) really = dlsym(RTLD_NEXT, name)
#define FAILING(step, value) if ((step).fails && control->error) { leave(step); errno = control->error; return value; }

static int opened(int handle, int yes) {
    if (handle >= 0 && handle < 65536) ours[handle] = yes;
    return handle;
}
static int kind_of(int flags) { return flags & (O_WRONLY | O_RDWR | O_CREAT) ? OPEN_TO_WRITE : OPEN_TO_READ; }

#define OPEN(name) \
int name(const char *path, int flags, ...) { \
    REAL(#name, int, const char *, int, ...); \
    va_list more; va_start(more, flags); mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, int) : 0; va_end(more); \
    if (!below(AT_FDCWD, path)) return opened(really(path, flags, mode), 0); \
    struct step step = enter(kind_of(flags), path); FAILING(step, -1) \
    int found = opened(really(path, flags, mode), 1); leave(step); return found; \
}
OPEN(open)
OPEN(open64)
#define OPENAT(name) \
int name(int folder, const char *path, int flags, ...) { \
    REAL(#name, int, int, const char *, int, ...); \
    va_list more; va_start(more, flags); mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, int) : 0; va_end(more); \
    if (!below(folder, path)) return opened(really(folder, path, flags, mode), 0); \
    struct step step = enter(kind_of(flags), path); FAILING(step, -1) \
    int found = opened(really(folder, path, flags, mode), 1); leave(step); return found; \
}
OPENAT(openat)
OPENAT(openat64)

int close(int handle) {
    REAL("close", int, int);
    if (handle >= 0 && handle < 65536) ours[handle] = 0;
    return really(handle);
}

#define WRITING(name, signature, arguments, size, short_arguments) \
ssize_t name signature { \
    REAL(#name, ssize_t, int, const void *, size_t, off_t); \
    if (!mine(handle)) return ((ssize_t (*) signature)really) arguments; \
    struct step step = enter(WRITE, NULL); FAILING(step, -1) \
    int half = size > 1 && (step.fails || (step.plan && step.plan->how == HALFWAY)); \
    ssize_t done = half ? ((ssize_t (*) signature)really) short_arguments : ((ssize_t (*) signature)really) arguments; \
    leave(step); return done; \
}
WRITING(write, (int handle, const void *from, size_t size), (handle, from, size), size, (handle, from, size / 2))
WRITING(pwrite, (int handle, const void *from, size_t size, off_t at), (handle, from, size, at), size, (handle, from, size / 2, at))
WRITING(pwrite64, (int handle, const void *from, size_t size, off_t at), (handle, from, size, at), size, (handle, from, size / 2, at))

#define READING(name, signature, arguments) \
ssize_t name signature { \
    REAL(#name, ssize_t, int, void *, size_t, off_t); \
    if (!mine(handle)) return ((ssize_t (*) signature)really) arguments; \
    struct step step = enter(READ, NULL); FAILING(step, -1) \
    ssize_t done = ((ssize_t (*) signature)really) arguments; leave(step); return done; \
}
READING(read, (int handle, void *to, size_t size), (handle, to, size))
READING(pread, (int handle, void *to, size_t size, off_t at), (handle, to, size, at))
READING(pread64, (int handle, void *to, size_t size, off_t at), (handle, to, size, at))

/* Everything else: an int comes back, -1 for an error. */
#define PLAIN(name, kind, signature, arguments, where, what) \
int name signature { \
    static int (*really) signature; if (!really) really = dlsym(RTLD_NEXT, #name); \
    if (!(where)) return really arguments; \
    struct step step = enter(kind, what); FAILING(step, -1) \
    int done = really arguments; leave(step); return done; \
}
PLAIN(fsync, SYNC, (int handle), (handle), mine(handle), NULL)
PLAIN(fdatasync, SYNC, (int handle), (handle), mine(handle), NULL)
PLAIN(rename, RENAME, (const char *from, const char *to), (from, to), below(AT_FDCWD, to), to)
PLAIN(renameat, RENAME, (int a, const char *from, int b, const char *to), (a, from, b, to), below(b, to), to)
PLAIN(link, MAKE, (const char *from, const char *to), (from, to), below(AT_FDCWD, to), to)
PLAIN(linkat, MAKE, (int a, const char *from, int b, const char *to, int flags), (a, from, b, to, flags), below(b, to), to)
PLAIN(mkdir, MAKE, (const char *path, mode_t mode), (path, mode), below(AT_FDCWD, path), path)
PLAIN(mkdirat, MAKE, (int folder, const char *path, mode_t mode), (folder, path, mode), below(folder, path), path)
PLAIN(unlink, REMOVE, (const char *path), (path), below(AT_FDCWD, path), path)
PLAIN(unlinkat, REMOVE, (int folder, const char *path, int flags), (folder, path, flags), below(folder, path), path)
PLAIN(rmdir, REMOVE, (const char *path), (path), below(AT_FDCWD, path), path)
PLAIN(ftruncate, WRITE, (int handle, off_t size), (handle, size), mine(handle), NULL)
PLAIN(ftruncate64, WRITE, (int handle, off_t size), (handle, size), mine(handle), NULL)
PLAIN(flock, LOCK, (int handle, int how), (handle, how), mine(handle), NULL)
PLAIN(stat, STAT, (const char *path, struct stat *to), (path, to), below(AT_FDCWD, path), path)
PLAIN(stat64, STAT, (const char *path, struct stat64 *to), (path, to), below(AT_FDCWD, path), path)
PLAIN(lstat, STAT, (const char *path, struct stat *to), (path, to), below(AT_FDCWD, path), path)
PLAIN(lstat64, STAT, (const char *path, struct stat64 *to), (path, to), below(AT_FDCWD, path), path)

pid_t setsid(void) {
    REAL("setsid", pid_t, void);
    int none = 0;
    if (control && control->armed)
        __atomic_compare_exchange_n(&control->parent, &none, getpid(), 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    return really();
}

DIR *opendir(const char *path) {
    REAL("opendir", DIR *, const char *);
    if (!below(AT_FDCWD, path)) return really(path);
    struct step step = enter(OPEN_TO_READ, path); FAILING(step, NULL)
    DIR *found = really(path); leave(step); return found;
}
