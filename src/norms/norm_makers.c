/* Constructors of norms, all ng_module *(int64_t dim), for modules that contain norms; by name. */
#include "nn/fold.h"
#include <string.h>

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

void ng_become_none(ng_module *module)
{
    module->type = &identity_class;
    module->registry->settings = NULL;
}

/* ---- A norm of channels over the features of each position: x (..., C) as (rows, C) ---- */

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

static ng_module *by_rows_new(ng_module *norm, unsigned takes)
{
    by_rows *self = (by_rows *)ng_module_new(&by_rows_class);
    if (!self) {
        ng_module_free(norm);
        return NULL;
    }
    self->base.takes = takes;
    self->norm = ng_module_add_child(&self->base, "norm", norm);
    return ng_module_built(&self->base);
}

ng_module *ng_norm_batch(int64_t dim) { return by_rows_new(ng_batch_norm_new(dim), NG_INPUT_MASK); }

/* ---- By name ---- */

static ng_module *norm_group(int64_t dim)
{
    const int64_t groups = dim % 8 == 0 ? 8 : dim % 4 == 0 ? 4 : dim % 2 == 0 ? 2 : 1;
    return by_rows_new(ng_group_norm_new(groups, dim), 0);
}

static ng_module *norm_adaptive(int64_t dim) { return ng_adaptive_layer_norm_new(dim); }

static ng_module *norm_ada(int64_t dim) { return ng_ada_norm_new(dim); }

static ng_module *norm_detach(int64_t dim) { return ng_detach_norm_new(dim); }

static ng_module *norm_l2(int64_t dim) { return ng_l2_norm_new(dim); }

static ng_module *norm_simple(int64_t dim) { return ng_rms_norm_new(dim, .by_deviation = true); }

static ng_module *norm_poly(int64_t dim) { return ng_poly_norm_new(dim); }

static ng_module *norm_bhyt(int64_t dim) { return ng_bhyt_new(dim); }

static ng_module *norm_seed(int64_t dim) { return ng_seed_norm_new(dim); }

#define NAMED_NORMS(X)                                                                             \
    X(none, ng_norm_none)                                                                          \
    X(layer_norm, ng_norm_layer)                                                                   \
    X(rms_norm, ng_norm_rms)                                                                       \
    X(batch_norm, ng_norm_batch)                                                                   \
    X(group_norm, norm_group)                                                                      \
    X(adaptive_layer_norm, norm_adaptive)                                                          \
    X(ada_norm, norm_ada)                                                                          \
    X(detach_norm, norm_detach)                                                                    \
    X(l2_norm, norm_l2)                                                                            \
    X(scale_norm, ng_norm_scale)                                                                   \
    X(dynamic_tanh, ng_norm_dynamic_tanh)                                                          \
    X(derf, ng_norm_derf)                                                                          \
    X(simple_norm, norm_simple)                                                                    \
    X(poly_norm, norm_poly)                                                                        \
    X(bhyt, norm_bhyt)                                                                             \
    X(seed_norm, norm_seed)
#define X(name, maker) #name,
static const char *const norm_names[] = {NAMED_NORMS(X) NULL};
#undef X
#define X(name, maker) maker,
static ng_norm_maker *const norm_makers[] = {NAMED_NORMS(X)};
#undef X
#undef NAMED_NORMS

const char *const *ng_norm_names(void) { return norm_names; }

ng_norm_maker *ng_norm_named(const char *name)
{
    if (!ng_given("ng_norm_named", "name", name)) return NULL;
    char known[256];
    int length = 0;
    for (int i = 0; norm_names[i]; i++) {
        if (strcmp(norm_names[i], name) == 0) return norm_makers[i];
        length += snprintf(known + length, sizeof known - (size_t)length, "%s%s", i ? ", " : "",
                           norm_names[i]);
    }
    ng_fail(NG_EVALUE, "ng_norm_named: \"%s\", expected one of %s", name, known);
    return NULL;
}
