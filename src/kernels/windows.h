/* Which elements of a window fall inside the image. */
#ifndef NG_KERNELS_WINDOWS_H
#define NG_KERNELS_WINDOWS_H

#include "kernels/kernels.h"

/* begin .. end - 1 */
typedef struct {
    int64_t begin, end;
} ng_range;

/* The i of 0 .. count - 1 for which 0 <= offset + i step < size. */
static inline ng_range ng_range_inside(int64_t count, int64_t offset, int64_t step, int64_t size)
{
    int64_t begin = offset >= 0 ? 0 : (step - 1 - offset) / step;
    int64_t end = offset >= size ? 0 : (size - 1 - offset) / step + 1;
    if (end > count) end = count;
    if (begin > end) begin = end;
    return (ng_range){begin, end};
}

/* One element of the window: output (r, c) sees the image's element (r stride + row, c stride +
 * column), which is inside for r in `rows` and c in `columns`. */
typedef struct {
    int64_t row, column;
    ng_range rows, columns;
} ng_tap;

static inline ng_tap ng_window_tap(const ng_windows *w, int64_t index)
{
    const int64_t row = index / w->kernel[1] * w->dilation[0] - w->padding[0];
    const int64_t column = index % w->kernel[1] * w->dilation[1] - w->padding[1];
    return (ng_tap){row, column, ng_range_inside(w->out[0], row, w->stride[0], w->size[0]),
                    ng_range_inside(w->out[1], column, w->stride[1], w->size[1])};
}

/* How many elements all windows have. */
static inline int64_t ng_windows_work(const ng_windows *w)
{
    return w->planes * w->out[0] * w->out[1] * w->kernel[0] * w->kernel[1];
}

#endif
