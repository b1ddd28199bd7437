/* Constants on the tape, and operations on each element: arithmetic, functions, activations,
 * comparisons, dropout.
 *
 *     ng_tensor *noise = ng_normal(tape, NG_F32, ng_shape_of(x), 0, 0.1);
 *     ng_tensor *y = ng_gelu(tape, ng_add(tape, x, noise));
 *     y = ng_mul_scalar(tape, y, 2);
 *     y = ng_where(tape, ng_greater(tape, ng_detach(tape, x), y), x, y);
 *     y = ng_dropout(tape, y, 0.1);
 */
#ifndef NORMGRAD_ELEMENTWISE_H
#define NORMGRAD_ELEMENTWISE_H

#include <normgrad/tape.h>

NG_BEGIN_C

/* ---- Constants on the tape ---------------------------------------------------------------- */

/* Every element is `value`; 0 or 1, in the shape and dtype of x. */
NG_API ng_tensor *ng_full(ng_tape *tape, ng_dtype dtype, ng_shape shape, double value);
NG_API ng_tensor *ng_zeros_like(ng_tape *tape, const ng_tensor *x);
NG_API ng_tensor *ng_ones_like(ng_tape *tape, const ng_tensor *x);

/* A tensor of `count` numbers, row by row, converted as in ng_tensor_from:
 *     ng_from(tape, NG_F32, NG_SHAPE(2, 2), NG_VALUES(1, 2, 3, 4)) */
NG_API ng_tensor *ng_from(ng_tape *tape, ng_dtype dtype, ng_shape shape, const double *values,
                          int64_t count);

/* Random numbers from the tape's generator (ng_tape_seed), which dropout uses too: normal with the
 * given mean and deviation; uniform in [low, high). The gradient checker gets the same numbers in
 * each of its runs. */
NG_API ng_tensor *ng_normal(ng_tape *tape, ng_dtype dtype, ng_shape shape, double mean,
                            double deviation);
NG_API ng_tensor *ng_uniform(ng_tape *tape, ng_dtype dtype, ng_shape shape, double low,
                             double high);

/* Draws an int64 index for each row of probabilities: (..., classes) -> (...). The numbers of a row
 * need not sum to 1: an index has probability p / (sum of the row). The draws come from the tape's
 * generator and have no gradient. PyTorch's multinomial.
 *     ng_tensor *next = ng_sample(tape, ng_softmax(tape, logits));
 * To draw several times with replacement, repeat the rows (ng_repeat). A row of zeros is NG_EVALUE,
 * and so is a number that is negative, Inf or NaN. */
NG_API ng_tensor *ng_sample(ng_tape *tape, ng_tensor *probabilities);

/* The numbers first, first + step, first + 2 step... up to, but without, `end`. If `step` leads
 * away from `end` there is no element; a step of 0 is NG_EVALUE. */
NG_API ng_tensor *ng_arange(ng_tape *tape, ng_dtype dtype, double first, double end, double step);

/* The identity matrix (n, n). */
NG_API ng_tensor *ng_eye(ng_tape *tape, ng_dtype dtype, int64_t n);

/* int64 labels (...) -> (..., classes): 1 at the label, else 0. A label outside 0 .. classes - 1 is
 * NG_EVALUE. */
NG_API ng_tensor *ng_one_hot(ng_tape *tape, ng_dtype dtype, ng_tensor *labels, int64_t classes);

/* x in another dtype; its gradient has x's dtype. With NG_I64 the result is a constant, rounded as
 * in ng_tensor_from. */
NG_API ng_tensor *ng_cast(ng_tape *tape, ng_tensor *x, ng_dtype dtype);

/* ---- Arithmetic ---------------------------------------------------------------------------
 *
 * Operands broadcast as in NumPy: axes are aligned at the last one, and an axis of length 1 is
 * repeated. So (8, 1) - (8) is (8, 8), every element of one with every element of the other.
 *
 * Where the operands of ng_maximum or ng_minimum are equal, or one is NaN, each gets half of the
 * gradient. */

NG_API ng_tensor *ng_add(ng_tape *tape, ng_tensor *a, ng_tensor *b);     /* y = a + b */
NG_API ng_tensor *ng_sub(ng_tape *tape, ng_tensor *a, ng_tensor *b);     /* y = a - b */
NG_API ng_tensor *ng_mul(ng_tape *tape, ng_tensor *a, ng_tensor *b);     /* y = a * b */
NG_API ng_tensor *ng_div(ng_tape *tape, ng_tensor *a, ng_tensor *b);     /* y = a / b */
NG_API ng_tensor *ng_pow(ng_tape *tape, ng_tensor *a, ng_tensor *b);     /* y = a^b, a >= 0 */
NG_API ng_tensor *ng_maximum(ng_tape *tape, ng_tensor *a, ng_tensor *b); /* y = max(a, b) */
NG_API ng_tensor *ng_minimum(ng_tape *tape, ng_tensor *a, ng_tensor *b); /* y = min(a, b) */

NG_API ng_tensor *ng_add_scalar(ng_tape *tape, ng_tensor *x, double c); /* y = x + c */
NG_API ng_tensor *ng_mul_scalar(ng_tape *tape, ng_tensor *x, double c); /* y = c x */
NG_API ng_tensor *ng_pow_scalar(ng_tape *tape, ng_tensor *x, double p); /* y = x^p */
NG_API ng_tensor *ng_scalar_sub(ng_tape *tape, double c, ng_tensor *x); /* y = c - x */
NG_API ng_tensor *ng_scalar_div(ng_tape *tape, double c, ng_tensor *x); /* y = c / x */

/* y = sum_i weights[i] tensors[i] over `count` tensors of one shape, at least one:
 *     ng_combine(tape, (ng_tensor *[]){x, k1, k2}, (double[]){1, h / 2, h / 2}, 3) */
NG_API ng_tensor *ng_combine(ng_tape *tape, ng_tensor *const *tensors, const double *weights,
                             int count);

/* ---- Functions of each element ------------------------------------------------------------
 *
 * The library has its own elementary functions, so their bits are the same with every compiler and
 * C library, and on every processor with fused multiply-add (in double on every processor).
 * Largest errors in ulp, units in the last place, as `make accuracy` measures them:
 *
 *     float (all of them)     pow 0.7    exp, log 1.1    erf 1.2    expm1, tanh 1.5
 *                             log1p, sin, cos 1.6    atan, erfc 2
 *     double (10^8 at random) log, pow 1    exp 1.1    log1p 1.5    sin, cos 1.6
 *                             expm1, atan 2.4    tanh, erf 2.8    erfc 6.5
 *
 * Without fused multiply-add the errors in float are up to 3. */

NG_API ng_tensor *ng_neg(ng_tape *tape, ng_tensor *x);        /* y = -x */
NG_API ng_tensor *ng_abs(ng_tape *tape, ng_tensor *x);        /* y = |x|, slope 0 at 0 */
NG_API ng_tensor *ng_square(ng_tape *tape, ng_tensor *x);     /* y = x^2 */
NG_API ng_tensor *ng_reciprocal(ng_tape *tape, ng_tensor *x); /* y = 1 / x */
NG_API ng_tensor *ng_exp(ng_tape *tape, ng_tensor *x);        /* y = e^x */
NG_API ng_tensor *ng_log(ng_tape *tape, ng_tensor *x);        /* y = ln x */
NG_API ng_tensor *ng_sqrt(ng_tape *tape, ng_tensor *x);       /* y = x^(1/2) */
NG_API ng_tensor *ng_rsqrt(ng_tape *tape, ng_tensor *x);      /* y = x^(-1/2) */
NG_API ng_tensor *ng_sin(ng_tape *tape, ng_tensor *x);        /* y = sin x */
NG_API ng_tensor *ng_cos(ng_tape *tape, ng_tensor *x);        /* y = cos x */
NG_API ng_tensor *ng_erf(ng_tape *tape, ng_tensor *x);        /* y = 2/sqrt(pi) int_0^x e^-t^2 dt */
NG_API ng_tensor *ng_erfc(ng_tape *tape, ng_tensor *x);       /* y = 1 - erf x, exact at large x */
NG_API ng_tensor *ng_atan(ng_tape *tape, ng_tensor *x);       /* y = arctan x */
NG_API ng_tensor *ng_log1p(ng_tape *tape, ng_tensor *x);      /* y = ln(1 + x), exact at small x */
NG_API ng_tensor *ng_expm1(ng_tape *tape, ng_tensor *x);      /* y = e^x - 1, exact at small x */
NG_API ng_tensor *ng_sign(ng_tape *tape, ng_tensor *x);       /* y = -1, 0 or 1; slope 0 */
NG_API ng_tensor *ng_floor(ng_tape *tape, ng_tensor *x);      /* y = integer <= x; slope 0 */

/* y = min(max(x, low), high). The slope is 1 from low to high, with both ends, and at NaN. */
NG_API ng_tensor *ng_clamp(ng_tape *tape, ng_tensor *x, double low, double high);

/* ---- Activations --------------------------------------------------------------------------
 *
 * At a kink all derivatives are those from the left; at a corner of ng_hardtanh, ng_hardsigmoid and
 * ng_hardswish they are those inside. Largest errors in ulp, measured as above:
 *
 *     float     softsign, elu 1.5    softplus 2    sigmoid 2.6    selu 3    silu 4    mish 5
 *               gelu 6    gelu_tanh 8
 *     double    softsign 1.5    softplus 2    elu 2.4    sigmoid 2.6    selu, silu 4    mish 5
 *               gelu, gelu_tanh 8
 *
 * They hold for every x, but for gelu_tanh below -1.8, because the argument of its tanh is rounded:
 * there are 33 ulp at -4.5, and at most 250, in double 2,000, before it becomes 0. */

NG_API ng_tensor *ng_tanh(ng_tape *tape, ng_tensor *x);     /* y = (e^x - e^-x) / (e^x + e^-x) */
NG_API ng_tensor *ng_sigmoid(ng_tape *tape, ng_tensor *x);  /* y = 1 / (1 + e^-x) */
NG_API ng_tensor *ng_relu(ng_tape *tape, ng_tensor *x);     /* y = max(x, 0) */
NG_API ng_tensor *ng_gelu(ng_tape *tape, ng_tensor *x);     /* y = x/2 (1 + erf(x / sqrt 2)) */
NG_API ng_tensor *ng_silu(ng_tape *tape, ng_tensor *x);     /* y = x sigmoid(x) */
NG_API ng_tensor *ng_softplus(ng_tape *tape, ng_tensor *x); /* y = ln(1 + e^x) */
NG_API ng_tensor *ng_softsign(ng_tape *tape, ng_tensor *x); /* y = x / (1 + |x|) */
NG_API ng_tensor *ng_mish(ng_tape *tape, ng_tensor *x);     /* y = x tanh(softplus(x)) */

/* y = x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), an approximation of GELU. Hendrycks & Gimpel
 * 2016. */
NG_API ng_tensor *ng_gelu_tanh(ng_tape *tape, ng_tensor *x);

/* y = x > 0 ? x : slope x */
NG_API ng_tensor *ng_leaky_relu(ng_tape *tape, ng_tensor *x, double slope);

/* y = x > 0 ? x : slope x, with a tensor of slopes: (1), or (C) for the channels of x (N, C, ...).
 * He et al. 2015. */
NG_API ng_tensor *ng_prelu(ng_tape *tape, ng_tensor *x, ng_tensor *slope);

/* y = x > 0 ? x : alpha (e^x - 1) */
NG_API ng_tensor *ng_elu(ng_tape *tape, ng_tensor *x, double alpha);

/* y = x > 0 ? x : alpha (e^(x / alpha) - 1) */
NG_API ng_tensor *ng_celu(ng_tape *tape, ng_tensor *x, double alpha);

/* y = 1.0507 elu(x, 1.6733), which keeps mean 0 and variance 1. Klambauer et al. 2017. */
NG_API ng_tensor *ng_selu(ng_tape *tape, ng_tensor *x);

NG_API ng_tensor *ng_hardtanh(ng_tape *tape, ng_tensor *x);    /* y = min(max(x, -1), 1) */
NG_API ng_tensor *ng_hardsigmoid(ng_tape *tape, ng_tensor *x); /* y = min(max(x, -3), 3)/6 + 1/2 */
NG_API ng_tensor *ng_hardswish(ng_tape *tape, ng_tensor *x);   /* y = x hardsigmoid(x) */

/* Gated units: a and b are the halves of the last dimension, x (..., 2 n) -> (..., n).
 *     ng_glu      y = a sigmoid(b)    Dauphin et al. 2017
 *     ng_swiglu   y = silu(a) b       Shazeer 2020 */
NG_API ng_tensor *ng_glu(ng_tape *tape, ng_tensor *x);
NG_API ng_tensor *ng_swiglu(ng_tape *tape, ng_tensor *x);

/* ---- Comparisons, dropout ----------------------------------------------------------------- */

/* 1 where the relation holds, else 0, in the operands' dtype; operands broadcast. A comparison has
 * no gradient: if x requires one, compare ng_detach(tape, x). */
NG_API ng_tensor *ng_greater(ng_tape *tape, ng_tensor *a, ng_tensor *b);       /* a > b */
NG_API ng_tensor *ng_greater_equal(ng_tape *tape, ng_tensor *a, ng_tensor *b); /* a >= b */
NG_API ng_tensor *ng_less(ng_tape *tape, ng_tensor *a, ng_tensor *b);          /* a < b */
NG_API ng_tensor *ng_equal(ng_tape *tape, ng_tensor *a, ng_tensor *b);         /* a == b */

/* y = condition != 0 ? a : b; all three broadcast. No gradient flows to the condition. */
NG_API ng_tensor *ng_where(ng_tape *tape, ng_tensor *condition, ng_tensor *a, ng_tensor *b);

/* y = x mask / (1 - p). An element of mask is 0 with probability p, 0 <= p < 1, and else 1; it is
 * drawn from the tape's generator (ng_tape_seed). */
NG_API ng_tensor *ng_dropout(ng_tape *tape, ng_tensor *x, double p);

NG_END_C

#endif
