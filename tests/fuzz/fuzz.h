/* The input of a fuzzer as a file. */
#ifndef NG_TESTS_FUZZ_H
#define NG_TESTS_FUZZ_H

#define _GNU_SOURCE /* sys/mman.h: memfd_create */

#include <normgrad.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Returns the path of a file in memory with these bytes, valid until the next call. */
static inline const char *fuzz_file(const uint8_t *data, size_t size)
{
    static char path[64];
    static int fd = -1;
    if (fd >= 0) close(fd);
    fd = memfd_create("fuzz", 0);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size) abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return path;
}

/* A reader returns a result or records an error. */
static inline void fuzz_check(bool given)
{
    if (given == ng_failed()) abort();
    ng_clear_error();
}

#endif
