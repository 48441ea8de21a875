/* Records what a process does to the files below POWER_ROOT, in order, into the file POWER_LOG:
   preloaded by tests/power/main.rs, which makes of it the disks that a power loss may leave.

   A record is a line of numbers and a path, and after W the bytes that were written:
     O fd dir existed truncated path     a file or directory was opened
     X fd                                it was closed
     W fd offset length                  bytes were written
     T fd length                         the file was cut, or made longer
     B fd | E fd                         a sync of it began, and ended well
     R from / L from / N to              a rename or a link of from, and in the next line to
     U path / D path / M path            a file was removed, a directory was, or was made
     A length                            bytes for POWER_ROOT/ACKS, which is no file: what the process says
     ! what                              something that is not recorded was done to these files
   What is written through a shared mapping is found by comparing, before each other record: it is there
   in time for what it precedes.
   With POWER_SKIP=word the syncs of files whose name has the word in it (of directories: `/`) are left
   out, and the process is told that all is well. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { FDS = 4096, UNKNOWN = 0, OURS = 1, ACKS = 2, OTHER = 3 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned char kinds[FDS], skipped[FDS];
static int out = -1;
static const char *root, *skip;
static size_t root_length;

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static void raw(const void *data, size_t length) {
  const char *at = data;
  while (length > 0) {
    ssize_t done = syscall(SYS_write, out, at, length);
    if (done <= 0) abort();
    at += done;
    length -= (size_t)done;
  }
}

static void line(const char *format, ...) {
  char text[5000];
  va_list rest;
  va_start(rest, format);
  int length = vsnprintf(text, sizeof text - 1, format, rest);
  va_end(rest);
  if (length < 0 || length >= (int)sizeof text - 1) abort();
  text[length] = '\n';
  raw(text, (size_t)length + 1);
}

/* Shared mappings for writing, and what was last recorded of them. */
enum { MAPPINGS = 64, SECTOR = 512 };
static struct mapping {
  char *at, *seen;
  size_t length;
  int fd;
  off64_t offset;
} mappings[MAPPINGS];

/* Records what has been written through one: of each sector from the first byte that differs to the
   last, since what was durable in it before stays so. Under the lock. */
static void look_at(struct mapping *one) {
  char now[SECTOR];
  for (size_t place = 0; place < one->length; place += SECTOR) {
    size_t end = one->length - place < SECTOR ? one->length - place : SECTOR, start = 0;
    char *seen = one->seen + place;
    if (memcmp(one->at + place, seen, end) == 0) continue;
    memcpy(now, one->at + place, end);
    while (start < end && now[start] == seen[start]) start++;
    while (end > start && now[end - 1] == seen[end - 1]) end--;
    memcpy(seen + start, now + start, end - start);
    line("W %d %lld %zu", one->fd, (long long)(one->offset + (off64_t)(place + start)), end - start);
    raw(now + start, end - start);
  }
}

static void look_at_mappings(void) {
  int error = errno;
  for (int index = 0; index < MAPPINGS; index++) {
    if (mappings[index].at != NULL) look_at(&mappings[index]);
  }
  errno = error;
}

/* Begins what will record something. */
static void enter(void) {
  pthread_mutex_lock(&lock);
  if (out >= 0) look_at_mappings();
}

__attribute__((constructor)) static void start(void) {
  const char *log = getenv("POWER_LOG");
  root = getenv("POWER_ROOT");
  skip = getenv("POWER_SKIP");
  if (log == NULL || root == NULL) return;
  root_length = strlen(root);
  out = (int)syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (out < 0) abort();
}

static int is_ours(const char *path) {
  return out >= 0 && strncmp(path, root, root_length) == 0 &&
         (path[root_length] == '/' || path[root_length] == 0);
}

/* What a descriptor is of; one that was not seen opened is looked up. Under the lock. */
static int kind(int fd) {
  if (out < 0 || fd < 0 || fd == out) return OTHER;
  if (fd >= FDS) abort();
  if (kinds[fd] == UNKNOWN) {
    char place[64], path[4200];
    snprintf(place, sizeof place, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(place, path, sizeof path - 1);
    path[length < 0 ? 0 : length] = 0;
    kinds[fd] = OTHER;
    if (is_ours(path)) line("! a descriptor of %s that was not seen opened", path);
  }
  return kinds[fd];
}

static int opened(int dir, const char *path, int flags, mode_t mode) {
  int relative = path[0] != '/';
  if (out < 0 || relative || !is_ours(path)) {
    int fd = (int)syscall(SYS_openat, dir, path, flags, mode);
    if (fd >= 0 && fd < FDS && out >= 0) {
      pthread_mutex_lock(&lock);
      kinds[fd] = relative ? UNKNOWN : OTHER;
      pthread_mutex_unlock(&lock);
    }
    return fd;
  }
  enter();
  struct stat before, after;
  int existed = stat(path, &before) == 0;
  int fd = (int)syscall(SYS_openat, dir, path, flags, mode);
  int error = errno;
  if (fd >= FDS) abort();
  if (fd >= 0) {
    const char *name = strrchr(path, '/') + 1;
    int is_dir = fstat(fd, &after) == 0 && S_ISDIR(after.st_mode);
    kinds[fd] = strcmp(name, "ACKS") == 0 ? ACKS : OURS;
    skipped[fd] = skip != NULL && (is_dir ? strcmp(skip, "/") == 0 : strstr(name, skip) != NULL);
    if (kinds[fd] == OURS) {
      int cut = (flags & O_TRUNC) != 0 && (flags & O_ACCMODE) != O_RDONLY;
      line("O %d %d %d %d %s", fd, is_dir, existed, cut, path);
    }
  }
  pthread_mutex_unlock(&lock);
  errno = error;
  return fd;
}

static mode_t mode_of(int flags, va_list rest) {
  return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0;
}

#define OPEN(name)                                       \
  int name(const char *path, int flags, ...) {           \
    va_list rest;                                        \
    va_start(rest, flags);                               \
    mode_t mode = mode_of(flags, rest);                  \
    va_end(rest);                                        \
    return opened(AT_FDCWD, path, flags, mode);          \
  }
#define OPEN_AT(name)                                    \
  int name(int dir, const char *path, int flags, ...) {  \
    va_list rest;                                        \
    va_start(rest, flags);                               \
    mode_t mode = mode_of(flags, rest);                  \
    va_end(rest);                                        \
    return opened(dir, path, flags, mode);               \
  }
OPEN(open)
OPEN(open64)
OPEN_AT(openat)
OPEN_AT(openat64)
int creat(const char *path, mode_t mode) {
  return opened(AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, mode);
}

int close(int fd) {
  enter();
  if (out >= 0 && fd >= 0 && fd < FDS) {
    if (kinds[fd] == OURS) line("X %d", fd);
    kinds[fd] = UNKNOWN;
  }
  int result = (int)syscall(SYS_close, fd);
  pthread_mutex_unlock(&lock);
  return result;
}

static ssize_t wrote(int fd, const void *data, size_t length, off64_t offset, int placed) {
  enter();
  int what = kind(fd);
  ssize_t done;
  if (what == ACKS) {
    line("A %zu", length);
    raw(data, length);
    done = (ssize_t)length;
  } else {
    if (what == OURS && !placed) {
      int flags = fcntl(fd, F_GETFL);
      offset = lseek(fd, 0, (flags & O_APPEND) != 0 ? SEEK_END : SEEK_CUR);
    }
    done = placed ? syscall(SYS_pwrite64, fd, data, length, offset)
                  : syscall(SYS_write, fd, data, length);
    if (what == OURS && done > 0) {
      int error = errno;
      line("W %d %lld %zd", fd, (long long)offset, done);
      raw(data, (size_t)done);
      errno = error;
    }
  }
  pthread_mutex_unlock(&lock);
  return done;
}

/* Pipes and terminals may block, and are none of ours. */
static int is_other(int fd) { return out < 0 || fd == out || (fd >= 0 && fd <= 2); }

ssize_t write(int fd, const void *data, size_t length) {
  return is_other(fd) ? syscall(SYS_write, fd, data, length) : wrote(fd, data, length, 0, 0);
}
ssize_t pwrite(int fd, const void *data, size_t length, off_t offset) {
  return wrote(fd, data, length, offset, 1);
}
ssize_t pwrite64(int fd, const void *data, size_t length, off64_t offset) {
  return wrote(fd, data, length, offset, 1);
}

static int cut(int fd, off64_t length) {
  enter();
  int result = (int)syscall(SYS_ftruncate, fd, length);
  if (result == 0 && kind(fd) == OURS) line("T %d %lld", fd, (long long)length);
  pthread_mutex_unlock(&lock);
  return result;
}
int ftruncate(int fd, off_t length) { return cut(fd, length); }
int ftruncate64(int fd, off64_t length) { return cut(fd, length); }

/* Others go on while a sync is under way: what they write then it need not cover. */
static int synced(int fd, long call) {
  enter();
  int ours = kind(fd) == OURS, left_out = ours && skipped[fd];
  if (ours && !left_out) line("B %d", fd);
  pthread_mutex_unlock(&lock);
  if (left_out) return 0;
  int result = (int)syscall(call, fd);
  enter();
  if (ours && result == 0) line("E %d", fd);
  pthread_mutex_unlock(&lock);
  return result;
}
int fsync(int fd) { return synced(fd, SYS_fsync); }
int fdatasync(int fd) { return synced(fd, SYS_fdatasync); }
/* Promises nothing, so it is nothing to record. */
int sync_file_range(int fd, off64_t offset, off64_t length, unsigned flags) {
  return (int)syscall(SYS_sync_file_range, fd, offset, length, flags);
}

static int moved(const char *what, long call, int from_dir, const char *from, int to_dir,
                 const char *to, int flags) {
  enter();
  int result = (int)syscall(call, from_dir, from, to_dir, to, flags);
  if (result == 0 && (is_ours(from) || is_ours(to))) {
    if (is_ours(from) && is_ours(to)) {
      line("%s %s", what, from);
      line("N %s", to);
    } else {
      line("! a rename or link over the border: %s", from);
    }
  }
  pthread_mutex_unlock(&lock);
  return result;
}
int rename(const char *from, const char *to) {
  return moved("R", SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}
int renameat(int from_dir, const char *from, int to_dir, const char *to) {
  return moved("R", SYS_renameat2, from_dir, from, to_dir, to, 0);
}
int link(const char *from, const char *to) {
  return moved("L", SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0);
}
int linkat(int from_dir, const char *from, int to_dir, const char *to, int flags) {
  return moved("L", SYS_linkat, from_dir, from, to_dir, to, flags);
}

static int unlinked(int dir, const char *path, int flags) {
  enter();
  int result = (int)syscall(SYS_unlinkat, dir, path, flags);
  if (result == 0 && is_ours(path)) line("%s %s", (flags & AT_REMOVEDIR) != 0 ? "D" : "U", path);
  pthread_mutex_unlock(&lock);
  return result;
}
int unlink(const char *path) { return unlinked(AT_FDCWD, path, 0); }
int unlinkat(int dir, const char *path, int flags) { return unlinked(dir, path, flags); }
int rmdir(const char *path) { return unlinked(AT_FDCWD, path, AT_REMOVEDIR); }

static int made(int dir, const char *path, mode_t mode) {
  enter();
  int result = (int)syscall(SYS_mkdirat, dir, path, mode);
  if (result == 0 && is_ours(path)) line("M %s", path);
  pthread_mutex_unlock(&lock);
  return result;
}
int mkdir(const char *path, mode_t mode) { return made(AT_FDCWD, path, mode); }
int mkdirat(int dir, const char *path, mode_t mode) { return made(dir, path, mode); }

/* What is not understood must not pass unseen: the test fails if one of these is met. */
static void refuse(int fd, const char *what) {
  enter();
  if (kind(fd) == OURS) line("! %s", what);
  pthread_mutex_unlock(&lock);
}
ssize_t writev(int fd, const struct iovec *parts, int count) {
  if (!is_other(fd)) refuse(fd, "writev");
  return syscall(SYS_writev, fd, parts, count);
}
ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t offset) {
  refuse(fd, "pwritev");
  return NEXT(pwritev)(fd, parts, count, offset);
}
ssize_t pwritev2(int fd, const struct iovec *parts, int count, off_t offset, int flags) {
  refuse(fd, "pwritev2");
  return NEXT(pwritev2)(fd, parts, count, offset, flags);
}
static int allocated(int fd, int mode, off64_t offset, off64_t length) {
  if (mode != 0) refuse(fd, "fallocate that does not only lengthen");
  enter();
  struct stat before;
  int ours = kind(fd) == OURS && fstat(fd, &before) == 0;
  int result = (int)syscall(SYS_fallocate, fd, mode, offset, length);
  if (ours && result == 0 && offset + length > before.st_size) {
    line("T %d %lld", fd, (long long)(offset + length));
  }
  pthread_mutex_unlock(&lock);
  return result;
}
int fallocate(int fd, int mode, off_t offset, off_t length) {
  return allocated(fd, mode, offset, length);
}
int fallocate64(int fd, int mode, off64_t offset, off64_t length) {
  return allocated(fd, mode, offset, length);
}
int posix_fallocate(int fd, off_t offset, off_t length) {
  refuse(fd, "posix_fallocate");
  return NEXT(posix_fallocate)(fd, offset, length);
}
int syncfs(int fd) {
  refuse(fd, "syncfs");
  return NEXT(syncfs)(fd);
}
ssize_t copy_file_range(int in, off64_t *from, int to, off64_t *at, size_t length, unsigned flags) {
  refuse(to, "copy_file_range");
  return NEXT(copy_file_range)(in, from, to, at, length, flags);
}
static void *mapped(void *at, size_t length, int protection, int flags, int fd, off64_t offset) {
  int shared = fd >= 0 && (flags & MAP_SHARED) != 0 && (protection & PROT_WRITE) != 0 && out >= 0;
  if (!shared) return (void *)syscall(SYS_mmap, at, length, protection, flags, fd, offset);
  enter();
  char *place = (char *)syscall(SYS_mmap, at, length, protection, flags, fd, offset);
  int error = errno;
  if (place != MAP_FAILED && kind(fd) == OURS) {
    int index = 0;
    while (index < MAPPINGS && mappings[index].at != NULL) index++;
    char *seen = malloc(length);
    if (index == MAPPINGS || seen == NULL) abort();
    memcpy(seen, place, length);
    mappings[index] = (struct mapping){place, seen, length, fd, offset};
  }
  pthread_mutex_unlock(&lock);
  errno = error;
  return place;
}
void *mmap(void *at, size_t length, int protection, int flags, int fd, off_t offset) {
  return mapped(at, length, protection, flags, fd, offset);
}
void *mmap64(void *at, size_t length, int protection, int flags, int fd, off64_t offset) {
  return mapped(at, length, protection, flags, fd, offset);
}
int munmap(void *at, size_t length) {
  int found = 0;
  if (out >= 0) {
    pthread_mutex_lock(&lock);
    for (int index = 0; index < MAPPINGS; index++) {
      struct mapping *one = &mappings[index];
      if (one->at == NULL || one->at != at) continue;
      look_at(one);
      found = 1;
      free(one->seen);
      one->at = NULL;
    }
    int result = found ? (int)syscall(SYS_munmap, at, length) : 0;
    pthread_mutex_unlock(&lock);
    if (found) return result;
  }
  return (int)syscall(SYS_munmap, at, length);
}
