/* Stepping through a walk. */
#ifndef NG_KERNELS_WALK_H
#define NG_KERNELS_WALK_H

#include "kernels/kernels.h"

/* A place in the walk over the first `rank` dimensions, a row, and one of the pieces that each row
 * is cut into. */
typedef struct {
    int rank;
    int64_t at[NG_MAX_RANK], a, b; /* coordinates; offsets of the operands */
    int64_t row, piece, pieces;    /* rows before this one; pieces in a row */
} ng_cursor;

/* Sets the cursor to piece `unit`, counted over all rows. It is filled in place, because clearing
 * or copying it takes longer than a small op. */
static inline void ng_cursor_set(ng_cursor *cursor, const ng_walk *walk, int rank, int64_t pieces,
                                 int64_t unit)
{
    int64_t index = unit == 0 ? 0 : unit / pieces; /* saves a division */
    cursor->rank = rank;
    cursor->row = index;
    cursor->piece = unit - index * pieces;
    cursor->pieces = pieces;
    cursor->a = cursor->b = 0;
    for (int d = rank - 1; d >= 0; d--) {
        cursor->at[d] = index % walk->dim[d];
        cursor->a += cursor->at[d] * walk->a[d];
        cursor->b += cursor->at[d] * walk->b[d];
        index /= walk->dim[d];
    }
}

static inline void ng_cursor_next(const ng_walk *walk, ng_cursor *cursor)
{
    if (++cursor->piece < cursor->pieces) return;
    cursor->piece = 0;
    cursor->row++;
    for (int d = cursor->rank - 1; d >= 0; d--) {
        cursor->a += walk->a[d];
        cursor->b += walk->b[d];
        if (++cursor->at[d] < walk->dim[d]) return;
        cursor->at[d] = 0;
        cursor->a -= walk->a[d] * walk->dim[d];
        cursor->b -= walk->b[d] * walk->dim[d];
    }
}

#endif
