/* Files read whole, files replaced whole, and numbers written with a point. */
#ifndef NG_IO_FILE_H
#define NG_IO_FILE_H

#include "core/alloc.h"
#include <locale.h>
#include <stdio.h>

/* All bytes of a file, with a zero byte after them that `size` does not count; ng_free them. NULL
 * with NG_EIO, in the name of `function`. */
char *ng_file_read(const char *function, const char *path, int64_t *size);

/* A file that is written beside the one it will replace, so that a reader finds the old one or
 * the new one, never a piece:
 *
 *     ng_replacement file;
 *     if (!ng_replacement_begin(&file, "ng_history_write", path)) return ng_last_status();
 *     fprintf(file.stream, ...);
 *     return ng_replacement_end(&file, true);
 */
typedef struct {
    const char *function;
    char *path, *temporary;
    FILE *stream;
} ng_replacement;

/* Opens the temporary file; false with an error and nothing left to clean up. What stands at
 * `path` must be a regular file or nothing; a symbolic link is followed. */
bool ng_replacement_begin(ng_replacement *file, const char *function, const char *path);

/* Closes it and moves it to its place if `complete` and every write succeeded, or removes it.
 * The status is NG_OK, that of the failure here, or (not complete) the last recorded one. */
ng_status ng_replacement_end(ng_replacement *file, bool complete);

/* Until the matching leave, this thread reads and writes numbers as the C locale does, whatever
 * the program has chosen. false with NG_ENOMEM. */
typedef struct {
    locale_t c, before;
} ng_c_locale;
bool ng_c_locale_enter(ng_c_locale *locale);
void ng_c_locale_leave(ng_c_locale *locale);

#endif
