#include "io/file.h"
#include "core/error.h"
#include <errno.h>
#include <fcntl.h>
#include <normgrad/history.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- Opening ---- */

/* A pipe waits until somebody writes to it, and may be interrupted as a read may. */
static int open_file(const char *path, int flags, mode_t mode)
{
    int fd;
    do fd = open(path, flags | O_CLOEXEC, mode);
    while (fd < 0 && errno == EINTR);
    return fd;
}

/* ---- Reading ---- */

/* Reads from a descriptor to its end into memory that goes on with a 0 behind it. The size that the
 * system states is only where to begin: pipes and /proc state 0. */
static char *read_to_end(const char *function, const char *path, int fd, int64_t *size)
{
    struct stat status;
    const bool stated = fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0;
    int64_t capacity = stated ? (int64_t)status.st_size + 1 : 4096;
    int64_t used = 0;
    char *bytes = ng_calloc(function, capacity + 1, 1);

    while (bytes) {
        const ssize_t got = read(fd, bytes + used, (size_t)(capacity - used));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) {
            ng_fail(NG_EIO, "%s: cannot read %s: %s", function, path, strerror(errno));
            break;
        }
        if (got == 0) {
            *size = used;
            return bytes;
        }
        used += got;
        if (used < capacity) continue;
        char *more = ng_grow(function, bytes, capacity + 1, 2 * capacity + 1, 1);
        if (!more) break;
        bytes = more;
        capacity *= 2;
    }
    ng_free(bytes);
    return NULL;
}

char *ng_file_read(const char *function, const char *path, int64_t *size)
{
    const int fd = open_file(path, O_RDONLY, 0);
    if (fd < 0) {
        ng_fail(NG_EIO, "%s: cannot open %s: %s", function, path, strerror(errno));
        return NULL;
    }
    char *bytes = read_to_end(function, path, fd, size);
    close(fd);
    return bytes;
}

/* ---- Text ---- */

void ng_text_add(ng_text *text, const void *bytes, int64_t count)
{
    if (text->failed) return;
    if (text->room - text->count <= count) {
        const int64_t room = 2 * (text->count + count) + 256;
        char *more = ng_grow(text->function, text->bytes, text->count, room, 1);
        if (!more) {
            text->failed = true;
            return;
        }
        text->bytes = more;
        text->room = room;
    }
    memcpy(text->bytes + text->count, bytes, (size_t)count);
    text->count += count;
    text->bytes[text->count] = '\0';
}

void ng_text_print(ng_text *text, const char *format, ...)
{
    char piece[1024];
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(piece, sizeof piece, format, arguments);
    va_end(arguments);
    if (length < (int)sizeof piece) {
        ng_text_add(text, piece, length);
        return;
    }
    char *whole = text->failed ? NULL : ng_calloc(text->function, (int64_t)length + 1, 1);
    if (!whole) {
        text->failed = true;
        return;
    }
    va_start(arguments, format);
    vsnprintf(whole, (size_t)length + 1, format, arguments);
    va_end(arguments);
    ng_text_add(text, whole, length);
    ng_free(whole);
}

/* ---- Replacing ---- */

/* Records the first failure; `where` tells the step from the others. */
static ng_status fail(ng_replacement *file, const char *where, const char *why)
{
    if (file->status == NG_OK)
        file->status =
            ng_fail(NG_EIO, "%s: cannot write %s%s: %s", file->function, file->name, where, why);
    return file->status;
}

/* The path that `name` leads to once its links are followed; where nothing stands there yet, that
 * is the name itself. False, with errno, for a link that leads nowhere and for any other reason. */
static bool resolve(const char *name, char *path)
{
    struct stat status;
    if (realpath(name, path)) return true;
    if (errno != ENOENT || lstat(name, &status) == 0) return false;
    errno = ENAMETOOLONG;
    return snprintf(path, PATH_MAX, "%s", name) < PATH_MAX;
}

static bool is_link(const char *name)
{
    struct stat status;
    return lstat(name, &status) == 0 && S_ISLNK(status.st_mode);
}

/* How many characters of a path name its folder, the slash included; 0 where that is the current
 * one. */
static int folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (int)(slash + 1 - path) : 0;
}

/* Opens a new file in the folder of the one to be replaced. With O_EXCL, so that nobody else's is
 * ever taken, be it another thread's or what a process left that was killed; the digits are drawn
 * from the time, the process and the place in memory. */
static int open_beside(ng_replacement *file, mode_t mode)
{
    enum { ATTEMPTS = 100, NAME_PART = 200 };
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    ng_rng rng = ng_rng_seeded((uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec);
    rng = ng_rng_seeded(ng_rng_next(&rng) ^ (uint64_t)getpid() ^ (uint64_t)(uintptr_t)file << 16);

    const int folder = folder_length(file->path);
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        const int length = snprintf(file->temporary, sizeof file->temporary, "%.*s%.*s.%016llx.tmp",
                                    folder, file->path, NAME_PART, file->path + folder,
                                    (unsigned long long)ng_rng_next(&rng));
        if (length >= (int)sizeof file->temporary) return errno = ENAMETOOLONG, -1;
        const int fd = open_file(file->temporary, O_WRONLY | O_CREAT | O_EXCL, mode);
        if (fd >= 0 || errno != EEXIST) return fd;
    }
    return -1;
}

/* Gives the new file what the old one had. A group that could not be kept is given no more than
 * everyone has. */
static bool take_over(int fd, const struct stat *old)
{
    struct stat own;
    if (fstat(fd, &own) != 0) return false;
    mode_t mode = old->st_mode & 0777;
    if ((own.st_uid != old->st_uid || own.st_gid != old->st_gid) &&
        fchown(fd, old->st_uid, old->st_gid) != 0 && fchown(fd, (uid_t)-1, old->st_gid) != 0)
        mode = (mode & 0707) | (mode & 0007) << 3;
    return (own.st_mode & 0777) == mode || fchmod(fd, mode) == 0;
}

ng_status ng_replacement_begin(ng_replacement *file, const char *function, const char *path)
{
    file->function = function;
    file->name = path;
    file->buffered = 0;
    file->status = NG_OK;

    struct stat old;
    if (!resolve(path, file->path))
        return fail(file, is_link(path) ? ", a symbolic link" : "", strerror(errno));
    const bool exists = stat(file->path, &old) == 0;
    if (exists && S_ISDIR(old.st_mode)) return fail(file, "", strerror(EISDIR));
    if (exists && !S_ISREG(old.st_mode)) return fail(file, "", "not a regular file");
    if (exists && faccessat(AT_FDCWD, file->path, W_OK, AT_EACCESS) != 0)
        return fail(file, "", strerror(errno));

    /* Until it has the old file's mode, it is for nobody's eyes. */
    file->fd = open_beside(file, exists ? 0600 : 0666);
    if (file->fd < 0) return fail(file, " (a new file in its folder)", strerror(errno));
    if (!exists || take_over(file->fd, &old)) return NG_OK;
    fail(file, " (with the mode it has)", strerror(errno));
    close(file->fd);
    unlink(file->temporary);
    return file->status;
}

static void write_out(ng_replacement *file, const char *bytes, size_t count)
{
    while (count > 0 && file->status == NG_OK) {
        const ssize_t written = write(file->fd, bytes, count);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) {
            fail(file, "", strerror(written < 0 ? errno : EIO));
            return;
        }
        bytes += written;
        count -= (size_t)written;
    }
}

static void flush(ng_replacement *file)
{
    write_out(file, file->buffer, file->buffered);
    file->buffered = 0;
}

void ng_replacement_write(ng_replacement *file, const void *bytes, size_t count)
{
    if (count > sizeof file->buffer - file->buffered) flush(file);
    if (count > sizeof file->buffer) {
        write_out(file, bytes, count);
        return;
    }
    memcpy(file->buffer + file->buffered, bytes, count);
    file->buffered += count;
}

void ng_replacement_print(ng_replacement *file, const char *format, ...)
{
    char text[256], *all = text;
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (length < 0) {
        fail(file, "", strerror(errno));
        return;
    }
    if (length >= (int)sizeof text) {
        all = ng_calloc(file->function, (int64_t)length + 1, 1);
        va_start(arguments, format);
        if (all) vsnprintf(all, (size_t)length + 1, format, arguments);
        va_end(arguments);
    }
    if (!all && file->status == NG_OK) file->status = NG_ENOMEM;
    if (all && length > 0) ng_replacement_write(file, all, (size_t)length);
    if (all != text) ng_free(all);
}

static bool sync_descriptor(int fd)
{
    int result;
    do result = fsync(fd);
    while (result != 0 && errno == EINTR);
    return result == 0;
}

/* Brings the new name to the disk. A folder may be one that can be written and not read, and some
 * file systems cannot do it: then the system decides when. */
static void sync_folder(ng_replacement *file)
{
    static const char where[] = " for good (syncing its folder)";
    snprintf(file->temporary, sizeof file->temporary, "%.*s.", folder_length(file->path),
             file->path);
    const int fd = open_file(file->temporary, O_RDONLY | O_DIRECTORY, 0);
    if (fd < 0) {
        if (errno != EACCES) fail(file, where, strerror(errno));
        return;
    }
    if (!sync_descriptor(fd) && errno != EINVAL) fail(file, where, strerror(errno));
    close(fd);
}

ng_status ng_replacement_end(ng_replacement *file, ng_status content)
{
    if (content != NG_OK) {
        file->status = content;
    } else {
        flush(file);
        if (file->status == NG_OK && !sync_descriptor(file->fd))
            fail(file, " (to the disk)", strerror(errno));
    }
    /* An interrupted close has closed. */
    if (close(file->fd) != 0 && errno != EINTR) fail(file, "", strerror(errno));
    if (file->status == NG_OK && rename(file->temporary, file->path) != 0)
        fail(file, " (putting the new file in its place)", strerror(errno));
    if (file->status == NG_OK)
        sync_folder(file);
    else
        unlink(file->temporary);
    return file->status;
}

ng_status ng_file_write(const char *path, const void *bytes, int64_t size)
{
    static const char function[] = "ng_file_write";
    if (!ng_given(function, "path", path) || !ng_given(function, "bytes", bytes))
        return ng_newest_status();
    if (size < 0)
        return ng_fail(NG_EVALUE, "%s: %s: a size of %lld", function, path, (long long)size);
    ng_replacement file;
    const ng_status status = ng_replacement_begin(&file, function, path);
    if (status != NG_OK) return status;
    ng_replacement_write(&file, bytes, (size_t)size);
    return ng_replacement_end(&file, NG_OK);
}
