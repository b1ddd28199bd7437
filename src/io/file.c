/* Files read whole, and files replaced whole. */
#include "io/file.h"
#include "core/error.h"
#include <errno.h>
#include <normgrad/history.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef _WIN32
#include "core/windows.h"
#else
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

/* ---- Text ---------------------------------------------------------------------------------- */

bool ng_refuse(ng_origin origin, ng_status status, const char *format, ...)
{
    char text[NG_ERROR_BYTES];
    va_list arguments;
    va_start(arguments, format);
    ng_c_print(text, sizeof text, format, arguments);
    va_end(arguments);
    ng_fail(status, "%s: %s: %s", origin.function, origin.path, text);
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

bool ng_parse_number(const char *text, const char *stop, double *value)
{
    char *end = NULL;
    for (const char *c = text; c < stop; c++)
        if (!*c || !strchr("+-.0123456789eE", *c)) return false;
    if (text < stop) *value = strtod(text, &end);
    return text < stop && end == stop;
}

void *ng_reserve(const char *function, void *array, int64_t count, int64_t more, int64_t *room,
                 size_t size)
{
    if (more <= *room - count) return array;
    const int64_t doubled = *room ? 2 * *room : 8;
    const int64_t wanted = count + more > doubled ? count + more : doubled;
    void *grown = ng_grow(function, array, count, wanted, size);
    if (!grown) return array;
    *room = wanted;
    return grown;
}

/* Makes room for `more` bytes and the zero byte. */
static bool text_reserve(ng_text *text, int64_t more)
{
    if (text->failed) return false;
    text->bytes = ng_reserve(text->function, text->bytes, text->count, more + 1, &text->room, 1);
    text->failed = text->room - text->count <= more;
    return !text->failed;
}

void ng_text_add(ng_text *text, const void *bytes, int64_t count)
{
    if (!text_reserve(text, count)) return;
    if (count > 0) memcpy(text->bytes + text->count, bytes, (size_t)count);
    text->count += count;
    text->bytes[text->count] = '\0';
}

void ng_text_print(ng_text *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (!text_reserve(text, length)) return;
    va_start(arguments, format);
    vsnprintf(text->bytes + text->count, (size_t)length + 1, format, arguments);
    va_end(arguments);
    text->count += length;
}

/* ---- Read ---------------------------------------------------------------------------------- */

/* The size that the system states is a first guess: it is 0 for pipes and in /proc. */
const char *ng_read_to_end(int fd, ng_text *text)
{
    struct stat status;
    if (fd < 0 || fstat(fd, &status) != 0) return strerror(errno);
    text_reserve(text, status.st_size > 0 ? (int64_t)status.st_size + 1 : 4096);
    while (text_reserve(text, 1)) {
        const int64_t room = text->room - text->count - 1;
        const ssize_t got = read(fd, text->bytes + text->count, (size_t)room);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return strerror(errno);
        text->count += got;
        if (got == 0) break;
    }
    return NULL;
}

bool ng_file_missing(const char *path)
{
    struct stat status;
    return lstat(path, &status) != 0 && errno == ENOENT;
}

char *ng_file_read(const char *function, const char *path, int64_t *size)
{
    ng_text text = {.function = function};
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const char *problem = ng_read_to_end(fd, &text);
    if (fd >= 0) close(fd);
    if (problem)
        ng_fail(NG_EIO, "%s: cannot %s %s: %s", function, fd < 0 ? "open" : "read", path, problem);
    *size = text.count;
    if (!problem && !text.failed) return text.bytes;
    ng_free(text.bytes);
    return NULL;
}

/* ---- Replace ------------------------------------------------------------------------------- */

/* Records the first failure. */
static void replacement_fail(ng_replacement *file, const char *why)
{
    if (file->status == NG_OK)
        file->status = ng_fail(NG_EIO, "%s: cannot write %s: %s", file->function, file->path, why);
}

void ng_replacement_begin(ng_replacement *file, const char *function, const char *path)
{
    static atomic_int number;
    struct stat old;
    const bool exists = stat(path, &old) == 0;
    *file = (ng_replacement){.function = function, .path = path, .fd = -1};
    const int length = snprintf(file->temporary, sizeof file->temporary, "%s.%ld-%d.tmp", path,
                                (long)getpid(), atomic_fetch_add(&number, 1));
    if (!*path)
        replacement_fail(file, strerror(ENOENT));
    else if (exists && !S_ISREG(old.st_mode))
        replacement_fail(file, S_ISDIR(old.st_mode) ? strerror(EISDIR) : "not a regular file");
    else if ((size_t)length >= sizeof file->temporary)
        replacement_fail(file, strerror(ENAMETOOLONG));
    else if ((exists && faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) != 0) ||
             (file->fd = open(file->temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
                              exists ? 0600 : 0666)) < 0 ||
             (exists && fchmod(file->fd, old.st_mode & 0777) != 0))
        replacement_fail(file, strerror(errno));
}

void ng_replacement_write(ng_replacement *file, const void *bytes, int64_t count)
{
    for (const char *next = bytes; count > 0 && file->status == NG_OK;) {
        const ssize_t written = write(file->fd, next, (size_t)count);
        if (written < 0 && errno != EINTR) replacement_fail(file, strerror(errno));
        if (written < 0) continue;
        next += written;
        count -= written;
    }
}

void ng_replacement_text(ng_replacement *file, ng_text *text)
{
    if (text->failed && file->status == NG_OK) file->status = NG_ENOMEM;
    ng_replacement_write(file, text->bytes, text->count);
    ng_free(text->bytes);
}

ng_status ng_replacement_end(ng_replacement *file)
{
    if (file->status == NG_OK && fsync(file->fd) != 0) replacement_fail(file, strerror(errno));
    if (file->fd >= 0 && close(file->fd) != 0) replacement_fail(file, strerror(errno));
    if (file->status == NG_OK && rename(file->temporary, file->path) != 0)
        replacement_fail(file, strerror(errno));
    if (file->fd >= 0 && file->status != NG_OK) unlink(file->temporary);
    return file->status;
}

bool ng_file_writable(const char *function, const char *path)
{
    ng_replacement file;
    ng_replacement_begin(&file, function, path);
    if (file.fd >= 0 && close(file.fd) != 0) replacement_fail(&file, strerror(errno));
    if (file.fd >= 0) unlink(file.temporary);
    return file.status == NG_OK;
}

ng_status ng_text_save(ng_text *text, const char *path)
{
    ng_replacement file;
    ng_replacement_begin(&file, text->function, path);
    ng_replacement_text(&file, text);
    return ng_replacement_end(&file);
}

ng_status ng_file_write(const char *path, const void *bytes, int64_t size)
{
    static const char function[] = "ng_file_write";
    if (!ng_given(function, "path", path) || !ng_given(function, "bytes", bytes))
        return ng_newest_status();
    if (size < 0)
        return ng_fail(NG_EVALUE, "%s: %s: a size of %lld", function, path, (long long)size);
    ng_replacement file;
    ng_replacement_begin(&file, function, path);
    ng_replacement_write(&file, bytes, size);
    return ng_replacement_end(&file);
}
