/* llsq: y = 1/2 sum_i (s_i - sum_j x_j t_i^j)^2 for n points t_i from -1 to 1, s_i the sign of t_i.
 *
 * The polynomial is a product of two matrices: with j = 16 a + b,
 *     sum_j x_j t^j = sum_a t^(16 a) sum_b X[a, b] t^b, X (m / 16, 16)
 * so that 16 + m / 16 powers of t are computed, not m. */
#include "gradbench.h"

enum { LOW = 16 };
static ng_tensor *x;
static int64_t n;

static void prepare(const char *input)
{
    x = input_leaf(input, "x");
    n = input_count(input, "n");
}

/* t^0, t^1... t^(count - 1): (1, n) -> (count, n). */
static ng_tensor *powers(ng_tape *tape, ng_tensor *t, int64_t count)
{
    ng_tensor *power = ng_ones_like(tape, t);
    for (int64_t have = 1; have < count; have *= 2) {
        ng_tensor *last = ng_slice(tape, power, 0, have - 1, have);
        ng_tensor *more = ng_mul(tape, power, ng_mul(tape, last, t));
        power = ng_concat(tape, NG_TENSORS(power, more), 0);
    }
    return ng_slice(tape, power, 0, 0, count);
}

static ng_tensor *primal(ng_tape *tape)
{
    const int64_t high = (ng_size(x) + LOW - 1) / LOW;
    ng_tensor *i = ng_reshape(tape, ng_arange(tape, NG_F64, 0, (double)n, 1), NG_SHAPE(1, n));
    ng_tensor *t = ng_add_scalar(tape, ng_mul_scalar(tape, i, 2 / (double)(n - 1)), -1);
    ng_tensor *low = powers(tape, t, LOW + 1);
    ng_tensor *step = ng_slice(tape, low, 0, LOW, LOW + 1);
    ng_tensor *X =
        ng_reshape(tape, ng_pad(tape, x, 0, 0, high * LOW - ng_size(x)), NG_SHAPE(high, LOW));
    ng_tensor *inner = ng_matmul(tape, X, ng_slice(tape, low, 0, 0, LOW));
    ng_tensor *p = ng_sum(tape, ng_mul(tape, powers(tape, step, high), inner), .axes = NG_AXES(0));
    ng_tensor *error = ng_sub(tape, p, ng_sign(tape, t));
    return ng_mul_scalar(tape, ng_sum_squares(tape, error), 0.5);
}

const gradbench_eval eval_llsq = {"primal", "gradient", prepare, primal, NULL};
