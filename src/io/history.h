/* A history as text, for those that keep it in files of their own. */
#ifndef NG_IO_HISTORY_H
#define NG_IO_HISTORY_H

#include "io/file.h"
#include <normgrad/history.h>

/* Adds what ng_history_write writes; with `all`, also blocks in which nothing is logged yet. */
void ng_history_print(const ng_history *history, bool all, ng_text *text);

/* From that text, which is changed on the way and has a zero byte after it; NG_EPARSE names `path`
 * and the line. */
ng_history *ng_history_parse(const char *function, const char *path, bool all, char *text,
                             int64_t size);

/* Each gets the other's content. */
void ng_history_swap(ng_history *a, ng_history *b);

#endif
