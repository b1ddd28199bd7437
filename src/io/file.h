/* Files read whole, and files replaced whole. */
#ifndef NG_IO_FILE_H
#define NG_IO_FILE_H

#include "core/alloc.h"
#include "core/number.h"
#include <limits.h>

/* All bytes of a file, with a zero byte after them that `size` does not count; ng_free them. NULL
 * with NG_EIO in the name of `function`. A pipe is read to its end; one that nobody has open for
 * writing is an error, so that no reader waits for ever. */
char *ng_file_read(const char *function, const char *path, int64_t *size);

/* As ng_file_read, unpacked if the file is compressed with gzip (unpack.c). */
char *ng_file_read_unpacked(const char *function, const char *path, int64_t *size);

/* Who reads which file, for messages. */
typedef struct {
    const char *function, *path;
} ng_origin;

/* Records "function: path: text" and returns false. */
bool ng_refuse(ng_origin origin, ng_status status, const char *format, ...) NG_PRINTF(3, 4);

/* Makes room for one more element in an array with `room` for `count`; false with NG_ENOMEM, and
 * nothing has changed. */
#define NG_RESERVE(function, array, count, room)                                                   \
    ((array) = ng_reserve(function, array, count, &(room), sizeof *(array)), (count) < (room))
void *ng_reserve(const char *function, void *array, int64_t count, int64_t *room, size_t size);

/* A walk over the lines of a text: begin with `next` and `end`. A line ends with a new line, a
 * carriage return or both. */
typedef struct {
    ng_origin origin;
    char *next, *end; /* what is not yet read */
    char *at, *stop;  /* the line without its end */
    int64_t line;     /* its number, from 1 */
} ng_lines;
bool ng_lines_next(ng_lines *lines);

/* Records "function: path:line: text" as NG_EPARSE and returns false. */
bool ng_lines_refuse(const ng_lines *lines, const char *format, ...) NG_PRINTF(2, 3);

/* The number from `at` to `stop` in decimal digits: no nan, inf, hexadecimal digits or blanks. What
 * follows it in memory must not continue a number. It may be infinite if it is beyond a double's
 * range. */
bool ng_parse_number(const char *at, const char *stop, double *value);

/* Whether a checksum is right. Fuzzers cannot guess checksums, so their build accepts any. */
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
#define NG_CHECKSUM_HOLDS(equal) ((void)(equal), true)
#else
#define NG_CHECKSUM_HOLDS(equal) (equal)
#endif

/* Text that grows in memory; ng_free its bytes. After a failure, which is recorded in the name of
 * `function`, nothing more is added. */
typedef struct {
    const char *function;
    char *bytes; /* with a zero byte after them; NULL if nothing was added */
    int64_t count, room;
    bool failed;
} ng_text;
void ng_text_add(ng_text *text, const void *bytes, int64_t count);
void ng_text_print(ng_text *text, const char *format, ...) NG_PRINTF(2, 3);

/* Adds the lowest `bytes` bytes of a number, little-endian. */
void ng_text_number(ng_text *text, uint64_t value, int bytes);

/* A file that is written beside the one it replaces and brought to the disk before it takes its
 * place: a reader finds the old one or the new one, never a piece, also after a crash.
 *
 *     ng_replacement file;
 *     ng_status status = ng_replacement_begin(&file, "ng_history_write", path);
 *     if (status != NG_OK) return status;
 *     ng_replacement_write(&file, bytes, size);
 *     return ng_replacement_end(&file, NG_OK);
 */
typedef struct {
    const char *function, *name; /* the public function, and the caller's path: for messages */
    char path[PATH_MAX];         /* what is replaced, links followed */
    char temporary[PATH_MAX];    /* NAME.<16 digits>.tmp beside it */
    int fd;
    ng_status status; /* of the first failure, NG_OK so far */
} ng_replacement;

/* Opens the temporary file; on failure NG_EIO, and nothing is left to clean up. What stands at
 * `path` must be a regular file that may be written, or nothing. ng_file_write in history.h states
 * what becomes of mode, owner and links. */
ng_status ng_replacement_begin(ng_replacement *file, const char *function, const char *path);

/* After a failure it does nothing; ng_replacement_end returns the failure. */
void ng_replacement_write(ng_replacement *file, const void *bytes, int64_t count);

/* Moves the file to its place, or removes it if anything has failed or `content` is not NG_OK,
 * which says why the content could not be made. Returns the failure's status. */
ng_status ng_replacement_end(ng_replacement *file, ng_status content);

/* Replaces a file by a text and frees the text's bytes. */
ng_status ng_text_save(ng_text *text, const char *path);

#endif
