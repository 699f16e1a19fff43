/* A disk that fails, or lies: loaded before libc (LD_PRELOAD), it stands between a process and files.
 *
 * Files whose path begins with ODD_DISK are meant; what is done to them the file ODD_DISK_MODE says
 * by its first letter, which is read at each call:
 *
 *   s  fsync and fdatasync fail            w  writes of data fail (*.sst)
 *   r  reads of data fail                  m  writes of what lists the data fail (MANIFEST-*)
 *   f  reads give data with a bit changed
 *   h  of a write of data half is kept, and all of it is said to be
 *
 * RocksDB sleeps for a second after each file that it could not write, and closing waits for that.
 * Here it sleeps for a hundredth of that.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static ssize_t (*next_pread)(int, void *, size_t, off_t);
static ssize_t (*next_read)(int, void *, size_t);
static ssize_t (*next_write)(int, const void *, size_t);
static ssize_t (*next_pwrite)(int, const void *, size_t, off_t);
static int (*next_fsync)(int);
static int (*next_fdatasync)(int);
static int (*next_usleep)(useconds_t);

__attribute__((constructor)) static void begin(void)
{
    next_pread = dlsym(RTLD_NEXT, "pread");
    next_read = dlsym(RTLD_NEXT, "read");
    next_write = dlsym(RTLD_NEXT, "write");
    next_pwrite = dlsym(RTLD_NEXT, "pwrite");
    next_fsync = dlsym(RTLD_NEXT, "fsync");
    next_fdatasync = dlsym(RTLD_NEXT, "fdatasync");
    next_usleep = dlsym(RTLD_NEXT, "usleep");
}

/* What is to be done now. */
static char mode(void)
{
    const char *told = getenv("ODD_DISK_MODE");
    char letter = '-';
    int fd = told ? open(told, O_RDONLY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        if (next_read(fd, &letter, 1) != 1)
            letter = '-';
        close(fd);
    }
    return letter;
}

/* 'd' for a file of data, 'm' for one that lists them, 'o' for another one there, 0 for none of it. */
static char kind(int fd)
{
    char link[64], path[4096];
    const char *disk = getenv("ODD_DISK");
    int kept = errno;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, path, sizeof path - 1);
    errno = kept;
    if (!disk || size <= 0)
        return 0;
    path[size] = 0;
    if (strncmp(path, disk, strlen(disk)))
        return 0;
    if (size > 4 && !strcmp(path + size - 4, ".sst"))
        return 'd';
    return strstr(path, "/MANIFEST-") ? 'm' : 'o';
}

static int fails(void)
{
    errno = EIO;
    return -1;
}

int fsync(int fd)
{
    return kind(fd) && mode() == 's' ? fails() : next_fsync(fd);
}

int fdatasync(int fd)
{
    return kind(fd) && mode() == 's' ? fails() : next_fdatasync(fd);
}

ssize_t write(int fd, const void *data, size_t size)
{
    char which = kind(fd), now = which ? mode() : '-';
    if ((which == 'd' && now == 'w') || (which == 'm' && now == 'm'))
        return fails();
    if (which == 'd' && now == 'h' && size > 1) {
        ssize_t half = next_write(fd, data, size / 2);
        if (half < 0)
            return half;
        char *none = calloc(1, size - half);
        ssize_t rest = next_write(fd, none, size - half);
        free(none);
        return rest < 0 ? rest : half + rest;
    }
    return next_write(fd, data, size);
}

ssize_t pread(int fd, void *data, size_t size, off_t at)
{
    char which = kind(fd), now = which == 'd' ? mode() : '-';
    if (now == 'r')
        return fails();
    ssize_t got = next_pread(fd, data, size, at);
    if (now == 'f' && got > 0)
        ((char *)data)[got / 2] ^= 0x10;
    return got;
}

ssize_t pread64(int fd, void *data, size_t size, off_t at)
{
    return pread(fd, data, size, at);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at)
{
    return kind(fd) == 'd' && mode() == 'w' ? fails() : next_pwrite(fd, data, size, at);
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
    ssize_t all = 0;
    for (int each = 0; each < count; each++) {
        ssize_t done = write(fd, parts[each].iov_base, parts[each].iov_len);
        if (done < 0)
            return all ? all : done;
        all += done;
        if ((size_t)done < parts[each].iov_len)
            break;
    }
    return all;
}

int usleep(useconds_t pause)
{
    return next_usleep(pause / 100);
}
