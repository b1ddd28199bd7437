/* Stepping through a walk. */
#ifndef NG_KERNELS_WALK_H
#define NG_KERNELS_WALK_H

#include "kernels/kernels.h"

/* A place in the walk over the first `rank` dimensions. */
typedef struct {
    int rank;
    int64_t at[NG_MAX_RANK], a, b; /* coordinates; offsets of the operands */
} ng_cursor;

static inline ng_cursor ng_cursor_at(const ng_walk *walk, int rank, int64_t index)
{
    ng_cursor cursor; /* not cleared, which takes longer than a small op */
    cursor.rank = rank;
    cursor.a = cursor.b = 0;
    for (int d = rank - 1; d >= 0; d--) {
        cursor.at[d] = index % walk->dim[d];
        cursor.a += cursor.at[d] * walk->a[d];
        cursor.b += cursor.at[d] * walk->b[d];
        index /= walk->dim[d];
    }
    return cursor;
}

static inline void ng_cursor_next(const ng_walk *walk, ng_cursor *cursor)
{
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
