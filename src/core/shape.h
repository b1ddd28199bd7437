/* Shapes: sizes, broadcasting, axes, and their texts for messages. */
#ifndef NG_CORE_SHAPE_H
#define NG_CORE_SHAPE_H

#include <normgrad/tensor.h>

/* "(32, 64)", "(10,)", "()", in a struct so that it can be written inline in a ng_fail call. */
typedef struct {
    char text[NG_MAX_RANK * 22 + 4];
} ng_shape_text;
ng_shape_text ng_shape_print(ng_shape shape);

/* Number of elements; -1 with an error naming `function` for a rank outside 0..8, a negative
 * dimension, or more elements than memory can hold. Dimensions of 0 do not excuse large ones: the
 * product of any dimensions of a tensor does not overflow. */
int64_t ng_shape_size(const char *function, ng_shape shape);

bool ng_shape_equal(ng_shape a, ng_shape b);

/* Whether there is a shape that a and b broadcast to. */
bool ng_shapes_broadcast(ng_shape a, ng_shape b);

/* That shape, not too large for memory; false with an error naming `function`. */
bool ng_shape_broadcast(const char *function, ng_shape a, ng_shape b, ng_shape *result);

/* Product of the dimensions first .. last - 1. */
int64_t ng_shape_span(ng_shape shape, int first, int last);

/* Turns a possibly negative axis into 0 .. rank - 1; -1 with an error naming `function`. */
int ng_axis_index(const char *function, int axis, int rank);

/* The same of a setting .axes that names one axis at most; the default is the last. */
int ng_axis_named(const char *function, ng_axes axes, int rank);

/* reduced[i] says whether axis i is among `axes` (all, if `axes` is empty). An axis out of range
 * or named twice, and a count outside 0..8, is an error naming `function`. */
bool ng_axes_mark(const char *function, ng_axes axes, int rank, bool reduced[NG_MAX_RANK]);

#endif
