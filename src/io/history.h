/* A history in memory, and as text for the file of a training. */
#ifndef NG_IO_HISTORY_H
#define NG_IO_HISTORY_H

#include "io/file.h"
#include <normgrad/history.h>

/* A value, and where it was logged: `x` in a block that is logged by x, `step` in others. */
typedef struct {
    union {
        int64_t step;
        double x;
    };
    double value;
    int64_t order; /* during ng_series_sort */
} ng_point;

/* What a series is for. ng_plot draws curves, and others only if they are named. */
typedef enum {
    NG_SERIES_CURVE,
    NG_SERIES_SPREAD, /* of a summary: its quartiles, its extremes, its number of runs */
    NG_SERIES_LAYER,  /* of ng_watch */
    NG_SERIES_KINDS
} ng_series_kind;

typedef struct {
    char *name;
    ng_series_kind kind;
    bool real; /* logged by x, as its block */
    ng_point *points;
    int64_t n_points, room;
    int64_t n_sorted; /* the first points are in order, the others as they were logged */
} ng_series;

typedef struct {
    char *name; /* NULL: the first block of a history that begins without one */
    bool real;  /* logged by x */
    ng_series *series;
    int64_t n_series, room;
    int64_t
        newest; /* the series of the newest point; the next one is often this or that after it */
    uint64_t watched; /* the number of the network that ng_watch logs here, or 0 */
} ng_block;

struct ng_history {
    char *what;
    ng_block *blocks; /* the last one is written to */
    int64_t count, room;
    struct ng_live *live; /* a figure that is redrawn (plot/plot.c), or NULL */
    void (*end_live)(ng_history *history);
};

/* The name of a block's first column. */
static inline const char *ng_axis_name(const ng_block *b) { return b->real ? "x" : "step"; }

/* Where a point was logged, as a number. */
static inline double ng_place(bool real, const ng_point *p)
{
    return real ? p->x : (double)p->step;
}

/* Less than 0, 0 or more: p was logged at a place before that of q, at the same, or behind it. */
static inline int ng_compare_places(bool real, const ng_point *p, const ng_point *q)
{
    return real ? (p->x > q->x) - (p->x < q->x) : (p->step > q->step) - (p->step < q->step);
}

/* Returns the index of a series, or n_series if there is none of the name. */
int64_t ng_find_series(const ng_block *b, const char *name);

/* Sets the kind of the series of the newest value. */
void ng_history_mark(ng_history *history, ng_series_kind kind);

/* Brings the points into the order of their places, and drops those that a later one replaces. Call
 * it before you read them. */
void ng_series_sort(ng_series *series);

/* Adds what ng_history_write writes; with `all`, also blocks in which nothing is logged yet. */
void ng_history_print(const ng_history *history, bool all, ng_text *text);

/* Parses such a text, which it changes. A zero byte must follow the text. NG_EPARSE names `path`
 * and the line. */
ng_history *ng_history_parse(const char *function, const char *path, bool all, char *text,
                             int64_t size);

/* Exchanges the blocks of two histories. */
void ng_history_swap_blocks(ng_history *a, ng_history *b);

#endif
