/* Files read whole, and files replaced whole. */
#ifndef NG_IO_FILE_H
#define NG_IO_FILE_H

#include "core/alloc.h"
#include "core/number.h"
#include <limits.h>

/* Whether there is nothing of that name, not even a link. */
bool ng_file_missing(const char *path);

/* All bytes of a file, followed by a zero byte that `size` does not count; ng_free them. NULL with
 * NG_EIO. A pipe is read to its end. */
char *ng_file_read(const char *function, const char *path, int64_t *size);

/* The same, unpacked if the file is compressed with gzip (unpack.c). */
char *ng_file_read_unpacked(const char *function, const char *path, int64_t *size);

/* Who reads which file, for messages. */
typedef struct {
    const char *function, *path;
} ng_origin;

/* Records "function: path: text" and returns false. */
bool ng_refuse(ng_origin origin, ng_status status, const char *format, ...) NG_PRINTF(3, 4);

/* Makes room in an array, which has `room` elements of which `count` are used, for one more. False
 * with NG_ENOMEM; then nothing has changed. */
#define NG_RESERVE(function, array, count, room)                                                   \
    ((array) = ng_reserve(function, array, count, 1, &(room), sizeof *(array)), (count) < (room))
void *ng_reserve(const char *function, void *array, int64_t count, int64_t more, int64_t *room,
                 size_t size);

/* Walks over the lines of a text. Begin with `origin`, `next` and `end`. A line ends with a new
 * line, a carriage return or both. */
typedef struct {
    ng_origin origin;
    char *next, *end; /* what is not read yet */
    char *at, *stop;  /* the line without its end */
    int64_t line;     /* its number, from 1 */
} ng_lines;
bool ng_lines_next(ng_lines *lines);

/* Reads the decimal number from `text` to `stop`. False for nan, inf, hexadecimal digits, blanks.
 * The byte at `stop` must not continue a number. Infinite if it is beyond a double's range. */
bool ng_parse_number(const char *text, const char *stop, double *value);

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
    char *bytes; /* followed by a zero byte; NULL if nothing was added */
    int64_t count, room;
    bool failed;
} ng_text;
void ng_text_add(ng_text *text, const void *bytes, int64_t count);
void ng_text_print(ng_text *text, const char *format, ...) NG_PRINTF(2, 3);

/* Adds all bytes of a descriptor and returns NULL, or returns why it cannot. */
const char *ng_read_to_end(int fd, ng_text *text);

/* Replaces a file: the new one is written beside it, brought to the disk, and then takes its name.
 * A reader finds the old file or the new one, also after a crash. ng_file_write in history.h says
 * what may be replaced.
 *
 *     ng_replacement file;
 *     ng_replacement_begin(&file, "ng_history_write", path);
 *     ng_replacement_write(&file, bytes, size);
 *     return ng_replacement_end(&file);
 *
 * After a failure nothing is written; ng_replacement_end removes the new file and returns the
 * status. */
typedef struct {
    const char *function, *path; /* the public function and its path */
    char temporary[PATH_MAX];    /* the new file: PATH.<process>-<number>.tmp */
    int fd;                      /* of the new file, or -1 */
    ng_status status;            /* of the first failure */
} ng_replacement;
void ng_replacement_begin(ng_replacement *file, const char *function, const char *path);
void ng_replacement_write(ng_replacement *file, const void *bytes, int64_t count);
ng_status ng_replacement_end(ng_replacement *file);

/* Whether the file can be written later: makes the new file and removes it again. Else records
 * why not. */
bool ng_file_writable(const char *function, const char *path);

/* Writes a text, which may have failed, and frees its bytes. */
void ng_replacement_text(ng_replacement *file, ng_text *text);

/* Replaces a file by a text and frees the text's bytes. */
ng_status ng_text_save(ng_text *text, const char *path);

#endif
