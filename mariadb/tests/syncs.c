/* Counts a server's syncs, by file: preloaded by group_commit.py. One line per sync goes to the
   file that SYNCS_LOG names. Each sync takes SYNCS_MICROS longer, as on a disk that is slow: then
   which commits share one depends less on the machine. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int (*sync_call)(int);

/* Whether the sync is to fail. */
static int note(int file) {
  const char *log = getenv("SYNCS_LOG"), *micros = getenv("SYNCS_MICROS");
  const char *fail = getenv("SYNCS_FAIL");
  char place[64], line[1024];
  snprintf(place, sizeof place, "/proc/self/fd/%d", file);
  ssize_t length = readlink(place, line, sizeof line - 1);
  if (length < 0) return 0;
  line[length] = 0;
  if (fail != NULL && strstr(line, "#shale") != NULL && unlink(fail) == 0) return 1;
  if (log == NULL) return 0;
  line[length] = '\n';
  int out = open(log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  if (out >= 0) {
    if (write(out, line, (size_t)length + 1) < 0) abort();
    close(out);
  }
  if (micros != NULL) usleep((useconds_t)atoi(micros));
  return 0;
}

static int call(const char *name, int file) {
  sync_call next;
  *(void **)&next = dlsym(RTLD_NEXT, name);
  if (note(file)) {
    errno = EIO;
    return -1;
  }
  return next(file);
}

int fsync(int file) { return call("fsync", file); }
int fdatasync(int file) { return call("fdatasync", file); }
