/* Pooling of lines and images to a given size. */
#include "ops/pool.h"

/* Splits an axis of length n into m parts, of which neighbours may overlap, and reduces each to one
 * element. If m divides n, the parts get an axis of their own. */
static ng_tensor *pooled_along(ng_tape *tape, ng_tensor *x, int axis, int64_t m, bool max)
{
    const int64_t n = x->shape.dim[axis], each = n / m, rest = n % m;
    const ng_axes along = {.count = 1, .axis = {axis}}, next = {.count = 1, .axis = {axis + 1}};
    if (n == m) return x;
    if (rest == 0) {
        ng_shape shape = {.rank = x->shape.rank + 1};
        for (int i = 0; i < shape.rank; i++)
            shape.dim[i] = i == axis ? m : i == axis + 1 ? each : x->shape.dim[i - (i > axis)];
        x = ng_reshape(tape, x, shape);
        return max ? ng_max(tape, x, .axes = next) : ng_mean(tape, x, .axes = next);
    }
    ng_tensor **parts = ng_tape_memory(tape, (size_t)m * sizeof(ng_tensor *));
    for (int64_t i = 0; parts && i < m; i++) {
        const int64_t begin = i * each + i * rest / m;
        const int64_t end = (i + 1) * each + ((i + 1) * rest + m - 1) / m;
        ng_tensor *part = ng_slice(tape, x, axis, begin, end);
        parts[i] = max ? ng_max(tape, part, .axes = along, .keepdim = true)
                       : ng_mean(tape, part, .axes = along, .keepdim = true);
    }
    return parts ? ng_concat(tape, parts, (int)m, axis) : NULL;
}

bool ng_adaptive_size_ok(const ng_pool_call *call)
{
    const ng_shape size = call->size;
    bool fits = size.rank == 1 || size.rank == 2;
    for (int i = 0; i < size.rank && fits; i++) fits = size.dim[i] > 0 && size.dim[i] <= INT32_MAX;
    if (fits) return true;
    ng_fail(NG_ESHAPE, "%s: size is %s, expected a positive length, or positive rows and columns",
            call->function, ng_shape_print(size).text);
    return false;
}

ng_tensor *ng_adaptive_pooled(ng_tape *tape, ng_tensor *x, const ng_pool_call *call)
{
    const ng_shape size = call->size;
    const bool fits =
        x->shape.rank == size.rank + 2 && ng_shape_span(x->shape, 2, x->shape.rank) > 0;
    if (!ng_expect_shape(fits, call->function, "x", x,
                         size.rank == 1 ? "lines (N, C, L) of at least one element"
                                        : "images (N, C, H, W) of at least one element"))
        return NULL;
    for (int i = size.rank - 1; x && i >= 0; i--)
        x = pooled_along(tape, x, 2 + i, size.dim[i], call->max);
    return x;
}

ng_tensor *ng_adaptive_avg_pool(ng_tape *tape, ng_tensor *x, ng_shape size)
{
    const ng_pool_call call = {.function = "ng_adaptive_avg_pool", .adaptive = true, .size = size};
    return ng_pooled(tape, x, &call);
}

ng_tensor *ng_adaptive_max_pool(ng_tape *tape, ng_tensor *x, ng_shape size)
{
    const ng_pool_call call = {
        .function = "ng_adaptive_max_pool", .adaptive = true, .size = size, .max = true};
    return ng_pooled(tape, x, &call);
}
