/* Walks over strided and broadcast operands, and copies along them. */
#include "kernels/walk.h"
#include "kernels/parallel.h"
#include <string.h>

void ng_strides(ng_shape shape, int64_t strides[NG_MAX_RANK])
{
    int64_t stride = 1;
    for (int d = shape.rank - 1; d >= 0; d--) {
        strides[d] = stride;
        stride *= shape.dim[d];
    }
}

/* Removes dimensions of length 1, and merges neighbouring dimensions that are contiguous in both
 * operands. At least one dimension is left. */
ng_walk ng_walk_strided(ng_shape shape, const int64_t *a, const int64_t *b)
{
    ng_walk walk = {.size = 1};
    for (int d = 0; d < shape.rank; d++) {
        const int64_t dim = shape.dim[d];
        const int last = walk.rank - 1;
        walk.size *= dim;
        if (dim == 1) continue;
        if (walk.rank > 0 && walk.a[last] == a[d] * dim && walk.b[last] == b[d] * dim) {
            walk.dim[last] *= dim;
            walk.a[last] = a[d];
            walk.b[last] = b[d];
        } else {
            walk.dim[walk.rank] = dim;
            walk.a[walk.rank] = a[d];
            walk.b[walk.rank] = b[d];
            walk.rank++;
        }
    }
    if (walk.rank == 0) {
        walk.rank = 1;
        walk.dim[0] = walk.a[0] = walk.b[0] = 1;
    }
    return walk;
}

/* Strides of a dense operand seen as `result`: 0 where it is broadcast. */
static void broadcast_strides(ng_shape result, ng_shape operand, int64_t strides[NG_MAX_RANK])
{
    const int missing = result.rank - operand.rank;
    int64_t dense[NG_MAX_RANK];
    ng_strides(operand, dense);
    for (int d = 0; d < result.rank; d++) {
        const bool repeated = d < missing || operand.dim[d - missing] == 1;
        strides[d] = repeated ? 0 : dense[d - missing];
    }
}

ng_walk ng_walk_broadcast(ng_shape result, ng_shape a, ng_shape b)
{
    int64_t strides_a[NG_MAX_RANK], strides_b[NG_MAX_RANK];
    broadcast_strides(result, a, strides_a);
    broadcast_strides(result, b, strides_b);
    return ng_walk_strided(result, strides_a, strides_b);
}

/* ---- Copies ------------------------------------------------------------------------------- */

/* Elements of a row that are copied at once; bytes in a line of a tile, which is transposed. */
enum { COPY_RUN = 4096, COPY_TILE = 256 };

typedef struct {
    ng_walk walk;
    const char *from;
    char *to;
    int64_t bytes, tile; /* of an element; elements in a line of a tile */
    int64_t pieces;      /* of each row (runs) or pair of dimensions (tiles) */
} copy_work;

/* Repeats one element `count` times, by copying the filled part behind itself. */
static void repeat_element(const char *source, char *result, int64_t count, int64_t bytes)
{
    memcpy(result, source, (size_t)bytes);
    for (int64_t done = 1; done < count; done *= 2)
        memcpy(result + done * bytes, result, (size_t)(ng_least(done, count - done) * bytes));
}

/* Each unit is a run of the last dimension. */
static void copy_runs(const void *arguments, int64_t begin, int64_t end)
{
    const copy_work *w = arguments;
    const int last = w->walk.rank - 1;
    const int64_t dim = w->walk.dim[last];
    const int64_t step_a = w->walk.a[last] * w->bytes, step_b = w->walk.b[last] * w->bytes;
    ng_cursor cursor;
    ng_cursor_set(&cursor, &w->walk, last, w->pieces, begin);

    for (int64_t unit = begin; unit < end; unit++, ng_cursor_next(&w->walk, &cursor)) {
        const int64_t first = cursor.piece * COPY_RUN, count = ng_least(COPY_RUN, dim - first);
        const char *source = w->from + cursor.a * w->bytes + first * step_a;
        char *result = w->to + cursor.b * w->bytes + first * step_b;
        if (step_a == w->bytes && step_b == w->bytes)
            memcpy(result, source, (size_t)(count * w->bytes));
        else if (step_a == 0 && step_b == w->bytes)
            repeat_element(source, result, count, w->bytes);
        else if (w->bytes == 4)
            for (int64_t i = 0; i < count; i++) memcpy(result + i * step_b, source + i * step_a, 4);
        else
            for (int64_t i = 0; i < count; i++) memcpy(result + i * step_b, source + i * step_a, 8);
    }
}

/* The last dimension has unit stride in `to`, the last but one in `from`. A tile goes through a
 * buffer, so that it is read and written in runs and each cache line is used once. */
static void copy_tile(const copy_work *w, const char *source, char *result, int64_t rows,
                      int64_t columns)
{
    const int row = w->walk.rank - 2, column = w->walk.rank - 1;
    const int64_t line = w->tile * w->bytes, step = w->walk.b[row] * w->bytes;
    _Alignas(16) char buffer[COPY_TILE / 4 * COPY_TILE];
    ng_kernels_for(w->bytes == 4 ? NG_F32 : NG_F64)
        ->transpose(source, w->walk.a[column], columns, rows, buffer, w->tile);
    for (int64_t i = 0; i < rows; i++)
        memcpy(result + i * step, buffer + i * line, (size_t)(columns * w->bytes));
}

/* Each unit is a row of tiles. */
static void copy_tiles(const void *arguments, int64_t begin, int64_t end)
{
    const copy_work *w = arguments;
    const int row = w->walk.rank - 2, column = w->walk.rank - 1;
    ng_cursor cursor;
    ng_cursor_set(&cursor, &w->walk, row, w->pieces, begin);

    for (int64_t unit = begin; unit < end; unit++, ng_cursor_next(&w->walk, &cursor)) {
        const int64_t i = cursor.piece * w->tile, rows = ng_least(w->tile, w->walk.dim[row] - i);
        for (int64_t j = 0; j < w->walk.dim[column]; j += w->tile) {
            const int64_t columns = ng_least(w->tile, w->walk.dim[column] - j);
            const char *source = w->from + (cursor.a + i + j * w->walk.a[column]) * w->bytes;
            char *result = w->to + (cursor.b + i * w->walk.b[row] + j) * w->bytes;
            copy_tile(w, source, result, rows, columns);
        }
    }
}

static void swap_dimensions(ng_walk *walk, int d, int e)
{
    const int64_t dim = walk->dim[d], a = walk->a[d], b = walk->b[d];
    walk->dim[d] = walk->dim[e], walk->a[d] = walk->a[e], walk->b[d] = walk->b[e];
    walk->dim[e] = dim, walk->a[e] = a, walk->b[e] = b;
}

/* Reorders the walk as copy_tiles wants it; false if the same dimension is contiguous in both
 * operands, or none is in one of them. */
static bool order_for_tiles(ng_walk *walk)
{
    int of_a = -1, of_b = -1; /* the contiguous dimension of each operand */
    for (int d = 0; d < walk->rank; d++) {
        if (walk->a[d] == 1) of_a = d;
        if (walk->b[d] == 1) of_b = d;
    }
    if (of_a < 0 || of_b < 0 || of_a == of_b || walk->a[of_b] == 0) return false;
    const int last = walk->rank - 1;
    swap_dimensions(walk, of_b, last);
    swap_dimensions(walk, of_a == last ? of_b : of_a, last - 1);
    return true;
}

void ng_copy_walk(const ng_walk *walk, const void *source, void *result, size_t bytes)
{
    if (walk->size == 0) return;
    copy_work w = {.walk = *walk,
                   .from = source,
                   .to = result,
                   .bytes = (int64_t)bytes,
                   .tile = COPY_TILE / (int64_t)bytes};
    const bool tiles = order_for_tiles(&w.walk);
    const int unit = w.walk.rank - (tiles ? 2 : 1); /* the dimension cut into pieces */
    int64_t rows = 1;
    for (int d = 0; d < unit; d++) rows *= w.walk.dim[d];
    const int64_t piece = tiles ? w.tile : COPY_RUN;
    w.pieces = (w.walk.dim[unit] + piece - 1) / piece;
    ng_share(tiles ? copy_tiles : copy_runs, &w, rows * w.pieces, 1, walk->size);
}
