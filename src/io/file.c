/* Files read whole, and files replaced whole. */
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

/* ---- Read ---------------------------------------------------------------------------------- */

static int open_file(const char *path, int flags, mode_t mode)
{
    int fd;
    do fd = open(path, flags | O_CLOEXEC, mode);
    while (fd < 0 && errno == EINTR);
    return fd;
}

/* Reads a descriptor to its end. The size that the system states is only a first guess: for pipes
 * and /proc it states 0. A pipe is opened without waiting for a writer: while it has one and is
 * empty the read says EAGAIN, and from then on it may wait. */
static char *read_to_end(const char *function, const char *path, int fd, int64_t *size)
{
    struct stat status = {0};
    const bool stated = fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0;
    int64_t capacity = stated ? (int64_t)status.st_size + 1 : 4096, used = 0;
    char *bytes = ng_calloc(function, capacity + 1, 1);

    while (bytes) {
        const ssize_t got = read(fd, bytes + used, (size_t)(capacity - used));
        if (got < 0 && errno == EAGAIN && fcntl(fd, F_SETFL, 0) == 0) continue;
        if (got < 0 && errno == EINTR) continue;
        const bool unwritten = got == 0 && used == 0 && S_ISFIFO(status.st_mode);
        if (got < 0 || unwritten) {
            ng_fail(NG_EIO, "%s: cannot read %s: %s", function, path,
                    unwritten ? "a pipe, and nobody writes to it" : strerror(errno));
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
    const int fd = open_file(path, O_RDONLY | O_NONBLOCK, 0);
    if (fd < 0) {
        ng_fail(NG_EIO, "%s: cannot open %s: %s", function, path, strerror(errno));
        return NULL;
    }
    char *bytes = read_to_end(function, path, fd, size);
    close(fd);
    return bytes;
}

/* ---- Text ---------------------------------------------------------------------------------- */

/* `line` is -1 for the whole file. */
static void refuse_line(ng_origin origin, int64_t line, ng_status status, const char *format,
                        va_list arguments)
{
    char text[NG_ERROR_BYTES], place[24] = "";
    const locale_t locale = ng_c_locale_begin();
    vsnprintf(text, sizeof text, format, arguments);
    ng_c_locale_end(locale);
    if (line >= 0) snprintf(place, sizeof place, ":%lld", (long long)line);
    ng_fail(status, "%s: %s%s: %s", origin.function, origin.path, place, text);
}

bool ng_refuse(ng_origin origin, ng_status status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    refuse_line(origin, -1, status, format, arguments);
    va_end(arguments);
    return false;
}

bool ng_lines_refuse(const ng_lines *lines, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    refuse_line(lines->origin, lines->line, NG_EPARSE, format, arguments);
    va_end(arguments);
    return false;
}

bool ng_lines_next(ng_lines *lines)
{
    if (lines->next == lines->end) return false;
    char *p = lines->at = lines->next;
    while (p < lines->end && *p != '\n' && *p != '\r') p++;
    lines->stop = p;
    if (p < lines->end) p += (*p == '\r' && p + 1 < lines->end && p[1] == '\n') ? 2 : 1;
    lines->next = p;
    lines->line++;
    return true;
}

bool ng_parse_number(const char *at, const char *stop, double *value)
{
    char *end = NULL;
    for (const char *c = at; c < stop; c++)
        if (!*c || !strchr("+-.0123456789eE", *c)) return false;
    if (at < stop) *value = strtod(at, &end);
    return at < stop && end == stop;
}

void *ng_reserve(const char *function, void *array, int64_t count, int64_t *room, size_t size)
{
    if (count < *room) return array;
    const int64_t more = *room ? 2 * *room : 8;
    void *grown =
        array ? ng_grow(function, array, count, more, size) : ng_calloc(function, more, size);
    if (grown) *room = more;
    return grown ? grown : array;
}

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
    if (count > 0) memcpy(text->bytes + text->count, bytes, (size_t)count);
    text->count += count;
    text->bytes[text->count] = '\0';
}

void ng_text_print(ng_text *text, const char *format, ...)
{
    char piece[1024], *whole = NULL;
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(piece, sizeof piece, format, arguments);
    va_end(arguments);
    if (length >= (int)sizeof piece && !text->failed) {
        whole = ng_calloc(text->function, (int64_t)length + 1, 1);
        text->failed = !whole;
        va_start(arguments, format);
        if (whole) vsnprintf(whole, (size_t)length + 1, format, arguments);
        va_end(arguments);
    }
    ng_text_add(text, whole ? whole : piece, length);
    ng_free(whole);
}

void ng_text_number(ng_text *text, uint64_t value, int bytes)
{
    unsigned char little[8];
    for (int i = 0; i < bytes; i++) little[i] = (unsigned char)(value >> 8 * i);
    ng_text_add(text, little, bytes);
}

/* ---- Replace ------------------------------------------------------------------------------- */

/* Records the first failure; `where` tells the step from the others. */
static ng_status replacement_fail(ng_replacement *file, const char *where, const char *why)
{
    if (file->status == NG_OK)
        file->status =
            ng_fail(NG_EIO, "%s: cannot write %s%s: %s", file->function, file->name, where, why);
    return file->status;
}

/* Follows the links of `name`; if nothing stands there yet, the path is the name itself. False with
 * errno, for a link that leads nowhere too. */
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

/* The length of a path's folder with its slash; 0 for a name alone. */
static int folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (int)(slash + 1 - path) : 0;
}

/* Opens a new file in the folder of the one to be replaced. O_EXCL makes sure that it is nobody
 * else's: another thread's, or one that a killed process left. Its digits are drawn from the time,
 * the process and the place in memory. */
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

/* Gives the new file the mode, owner and group of the old one. If the group cannot be kept, the new
 * group gets the rights that everyone has. */
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
    file->status = NG_OK;

    struct stat old;
    if (!resolve(path, file->path))
        return replacement_fail(file, is_link(path) ? ", a symbolic link" : "", strerror(errno));
    const bool exists = stat(file->path, &old) == 0;
    if (exists && S_ISDIR(old.st_mode)) return replacement_fail(file, "", strerror(EISDIR));
    if (exists && !S_ISREG(old.st_mode)) return replacement_fail(file, "", "not a regular file");
    if (exists && faccessat(AT_FDCWD, file->path, W_OK, AT_EACCESS) != 0)
        return replacement_fail(file, "", strerror(errno));

    /* Nobody else may read it before it has the old file's mode. */
    file->fd = open_beside(file, exists ? 0600 : 0666);
    if (file->fd < 0) return replacement_fail(file, " (a new file in its folder)", strerror(errno));
    if (!exists || take_over(file->fd, &old)) return NG_OK;
    replacement_fail(file, " (with the mode it has)", strerror(errno));
    close(file->fd);
    unlink(file->temporary);
    return file->status;
}

void ng_replacement_write(ng_replacement *file, const void *bytes, int64_t count)
{
    for (const char *at = bytes; count > 0 && file->status == NG_OK;) {
        const ssize_t written = write(file->fd, at, (size_t)count);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) {
            replacement_fail(file, "", strerror(written < 0 ? errno : EIO));
            return;
        }
        at += written;
        count -= written;
    }
}

static bool sync_descriptor(int fd)
{
    int result;
    do result = fsync(fd);
    while (result != 0 && errno == EINTR);
    return result == 0;
}

/* Brings the new name to the disk. If the folder may not be read, or the file system cannot sync
 * folders, the system decides when. */
static void sync_folder(ng_replacement *file)
{
    static const char where[] = " for good (syncing its folder)";
    snprintf(file->temporary, sizeof file->temporary, "%.*s.", folder_length(file->path),
             file->path);
    const int fd = open_file(file->temporary, O_RDONLY | O_DIRECTORY, 0);
    if (fd < 0) {
        if (errno != EACCES) replacement_fail(file, where, strerror(errno));
        return;
    }
    if (!sync_descriptor(fd) && errno != EINVAL) replacement_fail(file, where, strerror(errno));
    close(fd);
}

ng_status ng_replacement_end(ng_replacement *file, ng_status content)
{
    if (file->status == NG_OK) file->status = content;
    if (file->status == NG_OK && !sync_descriptor(file->fd))
        replacement_fail(file, " (to the disk)", strerror(errno));
    /* A close that was interrupted has closed the file. */
    if (close(file->fd) != 0 && errno != EINTR) replacement_fail(file, "", strerror(errno));
    if (file->status == NG_OK && rename(file->temporary, file->path) != 0)
        replacement_fail(file, " (putting the new file in its place)", strerror(errno));
    if (file->status == NG_OK)
        sync_folder(file);
    else
        unlink(file->temporary);
    return file->status;
}

ng_status ng_text_save(ng_text *text, const char *path)
{
    ng_replacement file;
    ng_status status = text->failed ? NG_ENOMEM : ng_replacement_begin(&file, text->function, path);
    if (status == NG_OK) {
        ng_replacement_write(&file, text->bytes, text->count);
        status = ng_replacement_end(&file, NG_OK);
    }
    ng_free(text->bytes);
    return status;
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
    ng_replacement_write(&file, bytes, size);
    return ng_replacement_end(&file, NG_OK);
}
