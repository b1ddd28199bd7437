/* Results to about 100 bits, in double-double arithmetic, and the errors of others beside them. */
#ifndef NG_TESTS_EXACT_H
#define NG_TESTS_EXACT_H

#include <stdbool.h>
#include <stdint.h>

/* The number high + low. `terms` is the sum of the sizes of the terms that it is a sum of: where it
 * is much larger than the number, they cancel. */
typedef struct {
    double high, low, terms;
} exact;

/* Rows of n numbers, one after the other. dy is the gradient with respect to a result, v that with
 * respect to its gradient dx. */
typedef struct {
    int64_t rows, n;
    double eps;
    bool rms;     /* RMSNorm: the mean is not subtracted */
    bool columns; /* gamma and beta are one number for each row, as in BatchNorm's channels */
    const double *x, *dy, *v, *gamma, *beta;
} exact_rows;

/* The results of an op. Those of a norm are y, the gradients dx and dgamma, and the gradients of
 * sum(v dx) with respect to x and dy. NULL: not computed. */
enum { EXACT_Y, EXACT_DX, EXACT_DGAMMA, EXACT_DDX, EXACT_DDY, EXACT_RESULTS };

/* LayerNorm, RMSNorm or, with .columns, BatchNorm. x is 0 or between 1e-150 and 1e150. */
void exact_norm(const exact_rows *in, exact *results[EXACT_RESULTS]);

/* y and dx, from long double: softmax(x), log_softmax(x), the loss -log_softmax(x)[0] of a row. dy
 * of the loss is the first of the row's. */
void exact_softmax(const exact_rows *in, exact *results[EXACT_RESULTS]);
void exact_log_softmax(const exact_rows *in, exact *results[EXACT_RESULTS]);
void exact_cross_entropy(const exact_rows *in, exact *results[EXACT_RESULTS]);

/* y, the variance of each row, and dx. dy is the first of the row's. */
void exact_variance(const exact_rows *in, exact *results[EXACT_RESULTS]);

/* y = softmax(q k^T / sqrt(n)) w and the gradients to q, k and w (EXACT_DX, DDX and DDY): x is q,
 * gamma the keys k (rows, n), beta the values w. From long double. */
void exact_attention(const exact_rows *in, exact *results[EXACT_RESULTS]);

/* The largest error of `count` numbers: in units in the last place of each, in units of the largest
 * of them, and, beyond two of the smallest numbers of the dtype, as a share of each one's terms.
 * Inf where a number is not finite and should be. */
typedef struct {
    double last, largest, terms;
} exact_error;
exact_error exact_compare(const double *y, const exact *right, int64_t count, bool single);

/* The terms are more than 4 times as large as the largest of the numbers. */
bool exact_cancels(const exact *right, int64_t count);

/* The larger error of two, of each kind. */
exact_error exact_worse(exact_error a, exact_error b);

#endif
