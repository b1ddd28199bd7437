/* Constructors of norms, all ng_module *(int64_t dim), for modules that contain norms. */
#include "nn/module.h"

ng_module *ng_norm_layer(int64_t dim) { return ng_layer_norm_new(dim); }

ng_module *ng_norm_rms(int64_t dim) { return ng_rms_norm_new(dim); }

ng_module *ng_norm_scale(int64_t dim) { return ng_scale_norm_new(dim); }

ng_module *ng_norm_dynamic_tanh(int64_t dim) { return ng_dynamic_tanh_new(dim); }

ng_module *ng_norm_derf(int64_t dim) { return ng_derf_new(dim); }

/* ---- None: y = x ---- */

static ng_tensor *identity_forward(ng_module *self, ng_tape *tape, ng_tensor *x)
{
    (void)self, (void)tape;
    return x;
}

static const ng_module_class identity_class = {
    .name = "Identity", .size = sizeof(ng_module), .forward = identity_forward};

ng_module *ng_norm_none(int64_t dim)
{
    return ng_option_positive("ng_norm_none", "dim", dim, "features")
               ? ng_module_built(ng_module_new(&identity_class))
               : NULL;
}

/* ---- BatchNorm over every position of every sample: x (..., C) as (rows, C) ---- */

typedef struct {
    ng_module base;
    ng_module *norm;
} by_rows;

static ng_tensor *by_rows_forward(ng_module *self, ng_tape *tape, const ng_inputs *in)
{
    ng_module *norm = ((by_rows *)self)->norm;
    ng_tensor *x = in->x, *mask = in->mask;
    const int last = x->shape.rank - 1;
    if (last < 1) return ng_forward(norm, tape, x);
    const int64_t rows = ng_shape_span(x->shape, 0, last);
    ng_shape expected = x->shape;
    expected.rank = last;
    if (!ng_has_shape("ByRows", "mask", mask, expected)) return NULL;
    if (!ng_is_none(mask)) mask = ng_reshape(tape, mask, NG_SHAPE(rows));
    ng_tensor *flat = ng_reshape(tape, x, NG_SHAPE(rows, x->shape.dim[last]));
    return ng_reshape(tape, ng_forward(norm, tape, flat, .mask = mask), x->shape);
}

static const ng_module_class by_rows_class = {.name = "ByRows",
                                              .size = sizeof(by_rows),
                                              .forward_with = by_rows_forward,
                                              .takes = NG_INPUT_MASK};

ng_module *ng_norm_batch(int64_t dim)
{
    by_rows *self = (by_rows *)ng_module_new(&by_rows_class);
    if (!self) return NULL;
    self->norm = ng_module_add_child(&self->base, "norm", ng_batch_norm_new(dim));
    return ng_module_built(&self->base);
}
