/* Preloaded into a broker: while the file named by SLOW_DISK_WHEN exists, its disk is slow.
 * A write to a file takes 5 ms more, a sync 200 ms. Sockets and pipes are left alone. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { WRITE_US = 5000, SYNC_US = 200000 };

static void wait_for_disk(int fd, unsigned microseconds) {
    const char *flag = getenv("SLOW_DISK_WHEN");
    struct stat about;
    if (flag && access(flag, F_OK) == 0 && fstat(fd, &about) == 0 && S_ISREG(about.st_mode)) usleep(microseconds);
}

#define SLOWED(result, name, microseconds, parameters, arguments)              \
    result name parameters {                                                   \
        static result(*real) parameters;                                       \
        if (!real) real = (result(*) parameters)dlsym(RTLD_NEXT, #name);       \
        wait_for_disk(fd, microseconds);                                       \
        return real arguments;                                                 \
    }

SLOWED(ssize_t, write, WRITE_US, (int fd, const void *data, size_t size), (fd, data, size))
SLOWED(ssize_t, writev, WRITE_US, (int fd, const struct iovec *parts, int count), (fd, parts, count))
SLOWED(ssize_t, pwrite, WRITE_US, (int fd, const void *data, size_t size, off_t at), (fd, data, size, at))
SLOWED(ssize_t, pwrite64, WRITE_US, (int fd, const void *data, size_t size, off64_t at), (fd, data, size, at))
SLOWED(ssize_t, pwritev, WRITE_US, (int fd, const struct iovec *parts, int count, off_t at), (fd, parts, count, at))
SLOWED(ssize_t, pwritev64, WRITE_US, (int fd, const struct iovec *parts, int count, off64_t at), (fd, parts, count, at))
SLOWED(ssize_t, pwritev2, WRITE_US, (int fd, const struct iovec *parts, int count, off_t at, int flags),
       (fd, parts, count, at, flags))
SLOWED(ssize_t, pwritev64v2, WRITE_US, (int fd, const struct iovec *parts, int count, off64_t at, int flags),
       (fd, parts, count, at, flags))
SLOWED(int, fsync, SYNC_US, (int fd), (fd))
SLOWED(int, fdatasync, SYNC_US, (int fd), (fd))
