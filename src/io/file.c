#include "io/file.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Reading ---- */

/* Reads from a descriptor to its end into memory of at least capacity + 1 bytes. The size that
 * the system states is only where to begin: pipes and /proc state 0. */
static char *read_to_end(const char *function, const char *path, int fd, int64_t *size)
{
    struct stat status;
    const bool stated = fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0;
    int64_t capacity = stated ? (int64_t)status.st_size + 1 : 4096;
    int64_t used = 0;
    char *bytes = ng_calloc(capacity + 1, 1);

    while (bytes) {
        const ssize_t got = read(fd, bytes + used, (size_t)(capacity - used));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) {
            ng_fail(NG_EIO, "%s: cannot read %s: %s", function, path, strerror(errno));
            break;
        }
        if (got == 0) {
            bytes[used] = '\0';
            *size = used;
            return bytes;
        }
        used += got;
        if (used < capacity) continue;
        char *more = ng_grow(bytes, capacity + 1, 2 * capacity + 1, 1);
        if (!more) break;
        bytes = more;
        capacity *= 2;
    }
    ng_free(bytes);
    return NULL;
}

char *ng_file_read(const char *function, const char *path, int64_t *size)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        ng_fail(NG_EIO, "%s: cannot open %s: %s", function, path, strerror(errno));
        return NULL;
    }
    char *bytes = read_to_end(function, path, fd, size);
    close(fd);
    return bytes;
}

/* ---- Replacing ---- */

static bool refuse(ng_replacement *file, const char *path, int error)
{
    ng_fail(NG_EIO, "%s: cannot write %s: %s", file->function, path, strerror(error));
    ng_free(file->path);
    ng_free(file->temporary);
    return false;
}

bool ng_replacement_begin(ng_replacement *file, const char *function, const char *path)
{
    *file = (ng_replacement){.function = function};

    char resolved[PATH_MAX];
    const char *target = realpath(path, resolved) ? resolved : path;
    struct stat status;
    if (stat(target, &status) == 0 && !S_ISREG(status.st_mode))
        return refuse(file, path, S_ISDIR(status.st_mode) ? EISDIR : EINVAL);

    /* room for the path, a process id, a digit, and ".-.tmp" */
    const size_t bytes = strlen(target) + 32;
    file->path = ng_copy_text(target);
    file->temporary = file->path ? ng_calloc((int64_t)bytes, 1) : NULL;
    if (!file->temporary) {
        ng_free(file->path);
        return false;
    }

    /* O_EXCL, so that two threads never share one; 0666, so that umask decides as for any file. */
    int fd = -1;
    for (int attempt = 0; fd < 0 && attempt < 10; attempt++) {
        snprintf(file->temporary, bytes, "%s.%ld-%d.tmp", target, (long)getpid(), attempt);
        fd = open(file->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno != EEXIST) break;
    }
    if (fd < 0) return refuse(file, path, errno);

    file->stream = fdopen(fd, "wb");
    if (!file->stream) {
        const int error = errno;
        close(fd);
        unlink(file->temporary);
        return refuse(file, path, error);
    }
    return true;
}

ng_status ng_replacement_end(ng_replacement *file, bool complete)
{
    const bool written = !ferror(file->stream);
    int error = 0;
    if (fclose(file->stream) != 0) error = errno;
    if (!written && !error) error = EIO;

    ng_status status = NG_OK;
    if (!complete) {
        status = ng_failed() ? ng_last_status() : NG_EIO;
    } else if (error || rename(file->temporary, file->path) != 0) {
        if (!error) error = errno;
        status =
            ng_fail(NG_EIO, "%s: cannot write %s: %s", file->function, file->path, strerror(error));
    }
    if (status != NG_OK) unlink(file->temporary);
    ng_free(file->path);
    ng_free(file->temporary);
    return status;
}

/* ---- Numbers ---- */

bool ng_c_locale_enter(ng_c_locale *locale)
{
    locale->c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!locale->c) return ng_fail(NG_ENOMEM, "out of memory for a locale"), false;
    locale->before = uselocale(locale->c);
    return true;
}

void ng_c_locale_leave(ng_c_locale *locale)
{
    uselocale(locale->before);
    freelocale(locale->c);
}
