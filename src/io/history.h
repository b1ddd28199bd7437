/* A history as text, for the file of a training. */
#ifndef NG_IO_HISTORY_H
#define NG_IO_HISTORY_H

#include "io/file.h"
#include <normgrad/history.h>

/* Adds what ng_history_write writes; with `all`, also blocks in which nothing is logged yet. */
void ng_history_print(const ng_history *history, bool all, ng_text *text);

/* Parses such a text, which it changes. A zero byte must follow the text. NG_EPARSE names `path`
 * and the line. */
ng_history *ng_history_parse(const char *function, const char *path, bool all, char *text,
                             int64_t size);

/* Exchanges the blocks of two histories. */
void ng_history_swap_blocks(ng_history *a, ng_history *b);

#endif
