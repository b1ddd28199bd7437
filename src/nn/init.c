/* Initial values of weights. */
#include "nn/module.h"
#include <math.h>

/* The numbers of inputs and outputs of a weight: a matrix is (out, in), and further dimensions are
 * those of a kernel; a vector has its length for both. */
typedef struct {
    double in, out;
} fans;

static fans fans_of(ng_shape shape)
{
    if (shape.rank == 0) return (fans){1, 1};
    if (shape.rank == 1) return (fans){(double)shape.dim[0], (double)shape.dim[0]};
    const double reach = (double)ng_shape_span(shape, 2, shape.rank);
    return (fans){(double)shape.dim[1] * reach, (double)shape.dim[0] * reach};
}

static ng_status init_uniform(ng_tensor *x, double bound, ng_rng *rng)
{
    return ng_fill_uniform(x, -bound, bound, rng);
}

ng_status ng_init(ng_tensor *x, ng_init_kind kind, double value, ng_rng *rng)
{
    const ng_status status = ng_writable("ng_init", x);
    if (status != NG_OK) return status;
    if (!ng_given("ng_init", "rng", rng)) return ng_newest_status();
    if (x->size == 0) return NG_OK;
    const fans fan = fans_of(x->shape);
    switch (kind) {
    case NG_INIT_DEFAULT: return init_uniform(x, 1 / sqrt(fan.in), rng);
    case NG_INIT_KAIMING_UNIFORM: return init_uniform(x, sqrt(6 / fan.in), rng);
    case NG_INIT_KAIMING_NORMAL: return ng_fill_normal(x, 0, sqrt(2 / fan.in), rng);
    case NG_INIT_XAVIER_UNIFORM: return init_uniform(x, sqrt(6 / (fan.in + fan.out)), rng);
    case NG_INIT_XAVIER_NORMAL: return ng_fill_normal(x, 0, sqrt(2 / (fan.in + fan.out)), rng);
    case NG_INIT_NORMAL: return ng_fill_normal(x, 0, value, rng);
    case NG_INIT_CONSTANT: return ng_fill(x, value);
    }
    return ng_fail(NG_EVALUE, "ng_init: kind %d, expected an ng_init_kind", (int)kind);
}
