/* Files read whole, and files replaced whole. */
#ifndef NG_IO_FILE_H
#define NG_IO_FILE_H

#include "core/alloc.h"
#include "core/number.h"
#include <limits.h>

/* All bytes of a file, with a zero byte after them that `size` does not count; ng_free them. NULL
 * with NG_EIO, in the name of `function`. */
char *ng_file_read(const char *function, const char *path, int64_t *size);

/* Whether a file's checksum is the right one. Fuzzers cannot guess it: in what is built for them it
 * always is. */
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
#define NG_CHECKSUM_HOLDS(equal) ((void)(equal), true)
#else
#define NG_CHECKSUM_HOLDS(equal) (equal)
#endif

/* Text that grows in memory; ng_free its bytes. After a failure, which is recorded in the name of
 * `function`, nothing more is added. */
typedef struct {
    const char *function;
    char *bytes; /* with a zero byte after them; NULL where nothing was added */
    int64_t count, room;
    bool failed;
} ng_text;
void ng_text_add(ng_text *text, const void *bytes, int64_t count);
void ng_text_print(ng_text *text, const char *format, ...) NG_PRINTF(2, 3);

/* A file that is written beside the one it will replace and brought to the disk before it takes
 * its place: a reader finds the old one or the new one, never a piece, after a crash as well.
 *
 *     ng_replacement file;
 *     ng_status status = ng_replacement_begin(&file, "ng_history_write", path);
 *     if (status != NG_OK) return status;
 *     ng_replacement_print(&file, "step %d\n", step);
 *     return ng_replacement_end(&file, NG_OK);
 *
 * It holds all that it needs, and may stand on the stack. */
typedef struct {
    const char *function, *name; /* who writes, and what the caller calls the file: for messages */
    char path[PATH_MAX];         /* what is replaced: no link */
    char temporary[PATH_MAX]; /* NAME.<16 digits>.tmp beside it, left behind where a process dies */
    char buffer[4096];
    size_t buffered;
    int fd;
    ng_status status; /* the first failure's, NG_OK so far */
} ng_replacement;

/* Opens the temporary file; NG_EIO with nothing left to clean up. What stands at `path` must be a
 * regular file that may be written, or nothing. The new file takes over its mode, and owner and
 * group where the system allows; where nothing stands, the umask decides. A symbolic link stays,
 * and what it leads to is replaced; one that leads nowhere is an error. */
ng_status ng_replacement_begin(ng_replacement *file, const char *function, const char *path);

/* After a failure these do nothing: the end tells. */
void ng_replacement_write(ng_replacement *file, const void *bytes, size_t count);
void ng_replacement_print(ng_replacement *file, const char *format, ...) NG_PRINTF(2, 3);

/* Moves the file to its place, or removes it where anything has failed or `content` is not NG_OK
 * but says why the content could not be made. The failure's status, which is recorded. */
ng_status ng_replacement_end(ng_replacement *file, ng_status content);

#endif
