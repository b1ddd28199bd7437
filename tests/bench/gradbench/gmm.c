/* gmm: the logarithm of the posterior density of a mixture of k Gaussians in d dimensions with
 * weights softmax(alpha), means mu and precisions Q^T Q, and a Wishart prior. Q is lower triangular
 * with diagonal e^q and l below it, column by column. */
#include "gradbench.h"
#include <math.h>

enum { BLOCK = 1 << 16 }; /* of Q (x - mu), which so stays in cache */
static ng_tensor *x, *alpha, *mu, *q, *l, *cells;
static ng_tensor *block_map, *block_weight; /* map and weight of log_fit, as leaves */
static ng_tape *blocks;
static int64_t d, k, n;
static double m, gamma_;

static void prepare(const char *input)
{
    x = input_tensor(input, "x");
    d = input_count(input, "d");
    k = input_count(input, "k");
    n = input_count(input, "n");
    m = input_number(input, "m");
    gamma_ = input_number(input, "gamma");
    alpha = input_leaf(input, "alpha"), mu = input_leaf(input, "mu");
    q = input_leaf(input, "q"), l = input_leaf(input, "l");
    block_map = ng_require_grad(held_zeros(NG_F64, NG_SHAPE(d + 1, d * k)));
    block_weight = ng_require_grad(held_zeros(NG_F64, NG_SHAPE(k)));
    if (!blocks) blocks = ng_tape_new();
    int64_t *cell = held_index(&cells, NG_SHAPE(d, d)), next = d + 1;
    for (int64_t column = 0; cell && column < d; column++) {
        cell[column * d + column] = 1 + column;
        for (int64_t row = column + 1; row < d; row++) cell[column * d + row] = next++;
    }
}

/* The logarithm of the multivariate gamma function. */
static double log_gamma(double a)
{
    double sum = 0.25 * (double)(d * (d - 1)) * log(M_PI);
    for (int64_t i = 0; i < d; i++) sum += lgamma(a - 0.5 * (double)i);
    return sum;
}

/* The sum of ln sum_k e^(weight - |Q (x - mu)|^2 / 2) over rows of x; map (d + 1, d k): Q and
 * -Q mu, by which (x, 1) is multiplied. */
static ng_tensor *log_fit(ng_tape *tape, ng_tensor *rows, ng_tensor *map, ng_tensor *weight)
{
    ng_tensor *one = ng_full(tape, NG_F64, NG_SHAPE(ng_dim(rows, 0), 1), 1);
    ng_tensor *z = ng_matmul(tape, ng_concat(tape, NG_TENSORS(rows, one), 1), map);
    z = ng_reshape(tape, z, NG_SHAPE(-1, d, k));
    ng_tensor *distance = ng_sum_squares(tape, z, .axes = NG_AXES(1));
    ng_tensor *beta = ng_sub(tape, weight, ng_mul_scalar(tape, distance, 0.5));
    return ng_sum(tape, ng_logsumexp(tape, beta, .axes = NG_AXES(1)));
}

/* The sum of log_fit over blocks of rows, each of which leaves the tape before the next. If it is
 * to be differentiated, the blocks' gradients are added up, and the result is the linear function
 * of map and weight that has these gradients. */
static ng_tensor *fit_of_all(ng_tape *tape, ng_tensor *map, ng_tensor *weight)
{
    const int64_t rows = 64 + BLOCK / (d * k);
    double sum = 0;
    copy_elements(block_map, 0, map), copy_elements(block_weight, 0, weight);
    ng_zero_grad(block_map), ng_zero_grad(block_weight);
    for (int64_t from = 0; from < n; from += rows) {
        ng_tensor *block = rows_of(blocks, x, from, from + rows < n ? from + rows : n);
        ng_tensor *fit = log_fit(blocks, block, block_map, block_weight);
        sum += ng_item(fit);
        if (ng_tape_recording(tape) && ng_backward(blocks, fit)) return NULL;
        ng_tape_reset(blocks);
    }
    if (!ng_tape_recording(tape)) return ng_full(tape, NG_F64, NG_SCALAR, sum);
    return ng_add(tape, ng_sum(tape, ng_mul(tape, map, ng_grad(block_map))),
                  ng_sum(tape, ng_mul(tape, weight, ng_grad(block_weight))));
}

static ng_tensor *objective(ng_tape *tape)
{
    const double freedom = (double)d + m + 1;
    ng_tensor *log_diagonal = ng_transpose(tape, q, 0, 1); /* (d, k) */
    ng_tensor *mean = ng_reshape(tape, ng_transpose(tape, mu, 0, 1), NG_SHAPE(d, 1, k));
    ng_tensor *log_det = ng_sum(tape, log_diagonal, .axes = NG_AXES(0));

    /* (d, d, k): column, row, component of Q. */
    ng_tensor *zero = ng_full(tape, NG_F64, NG_SHAPE(1, k), 0);
    ng_tensor *parts = ng_concat(
        tape, NG_TENSORS(zero, ng_exp(tape, log_diagonal), ng_transpose(tape, l, 0, 1)), 0);
    ng_tensor *factor = ng_gather_rows(tape, parts, cells);

    ng_tensor *of_mu =
        ng_sum(tape, ng_mul(tape, factor, mean), .axes = NG_AXES(0), .keepdim = true);
    ng_tensor *map = ng_concat(tape, NG_TENSORS(factor, ng_neg(tape, of_mu)), 0);
    map = ng_reshape(tape, map, NG_SHAPE(d + 1, d * k));
    ng_tensor *fit = fit_of_all(tape, map, ng_add(tape, alpha, log_det));
    ng_tensor *weights = ng_mul_scalar(tape, ng_logsumexp(tape, alpha), -(double)n);
    ng_tensor *frobenius = ng_sum(tape, ng_square(tape, parts));
    ng_tensor *prior = ng_sub(tape, ng_mul_scalar(tape, ng_sum(tape, log_det), m),
                              ng_mul_scalar(tape, frobenius, 0.5 * gamma_ * gamma_));
    ng_tensor *sum = ng_add(tape, ng_add(tape, fit, weights), prior);
    const double constant =
        (double)k * (freedom * (double)d * log(gamma_ / M_SQRT2) - log_gamma(0.5 * freedom));
    return ng_add_scalar(tape, sum, constant - 0.5 * (double)(n * d) * log(2 * M_PI));
}

const gradbench_eval eval_gmm = {"objective", "jacobian", prepare, objective, NULL};
