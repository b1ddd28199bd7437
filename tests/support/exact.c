#include "support/exact.h"
#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>

/* ---- Arithmetic of sums of two doubles ------------------------------------------------------ */

typedef struct {
    double high, low;
} two;

/* a + b where |a| >= |b|. */
static two quick(double a, double b)
{
    const double sum = a + b;
    return (two){sum, b - (sum - a)};
}

static two sum_of(double a, double b)
{
    const double sum = a + b, shifted = sum - a;
    return (two){sum, (a - (sum - shifted)) + (b - shifted)};
}

static two add(two a, two b)
{
    two high = sum_of(a.high, b.high);
    const two low = sum_of(a.low, b.low);
    high = quick(high.high, high.low + low.high);
    return quick(high.high, high.low + low.low);
}

static two negated(two a) { return (two){-a.high, -a.low}; }
static two minus(two a, two b) { return add(a, negated(b)); }
static two number(double a) { return (two){a, 0}; }

static two times(two a, two b)
{
    const double product = a.high * b.high;
    return quick(product, fma(a.high, b.high, -product) + (a.high * b.low + a.low * b.high));
}

static two over(two a, two b)
{
    two quotient = number(a.high / b.high);
    for (int i = 0; i < 2; i++)
        quotient = add(quotient, number(minus(a, times(quotient, b)).high / b.high));
    return quotient;
}

static two root(two a)
{
    const double near = sqrt(a.high);
    if (near == 0) return number(0);
    const two first =
        add(number(near), number(minus(a, times(number(near), number(near))).high / (2 * near)));
    return add(first, number(minus(a, times(first, first)).high / (2 * near)));
}

static two power_of_two(two a, int by) { return (two){ldexp(a.high, by), ldexp(a.low, by)}; }

static void put(exact *to, two value, double terms)
{
    if (to) *to = (exact){value.high, value.low, terms};
}

/* ---- Norms ---------------------------------------------------------------------------------- */

/* A row x 2^scale, whose largest element is near 1, so that no square leaves the range. */
typedef struct {
    const exact_rows *in;
    const double *x, *dy, *v;
    double gamma; /* .columns: that of the row */
    int scale;
    double origin;         /* the first element, 0 of RMSNorm; this and the next two of x 2^scale */
    two mean, scaled_rstd; /* of the distances from the origin */
    two rstd;              /* of x */
    two *xhat;             /* of each element; to be freed */
    double spread;         /* mean |xhat|; 0 of RMSNorm */
} row;

static two gamma_of(const row *r, int64_t i)
{
    return number(r->in->columns ? r->gamma : r->in->gamma[i]);
}

/* x 2^scale - mean. Where x is far from 0, its distances from the first element are exact. */
static two off_mean(const row *r, int64_t i)
{
    return minus(sum_of(ldexp(r->x[i], r->scale), -r->origin), r->mean);
}

/* The size of the terms of xhat, which is the mean of rstd (x_i - x_j) over all j. */
static double xhat_terms(const row *r, int64_t i) { return fabs(r->xhat[i].high) + r->spread; }

static row row_of(const exact_rows *in, int64_t k)
{
    const int64_t n = in->n;
    row r = {in, in->x + k * n, in->dy + k * n, in->v + k * n,
             .gamma = in->gamma[in->columns ? k : 0]};
    double largest = 0;
    for (int64_t i = 0; i < n; i++) largest = fmax(largest, fabs(r.x[i]));
    if (largest > 0) r.scale = -ilogb(largest);
    const two count = number((double)n);
    if (!in->rms) r.origin = ldexp(r.x[0], r.scale);
    two sum = {0, 0};
    for (int64_t i = 0; i < n && !in->rms; i++) sum = add(sum, off_mean(&r, i));
    r.mean = over(sum, count);
    two squares = {0, 0};
    for (int64_t i = 0; i < n; i++) {
        const two off = off_mean(&r, i);
        squares = add(squares, times(off, off));
    }
    squares = add(over(squares, count), number(ldexp(in->eps, 2 * r.scale)));
    r.scaled_rstd = over(number(1), root(squares));
    r.rstd = power_of_two(r.scaled_rstd, r.scale);
    r.xhat = malloc((size_t)n * sizeof *r.xhat);
    if (!r.xhat) abort();
    for (int64_t i = 0; i < n; i++) {
        r.xhat[i] = times(off_mean(&r, i), r.scaled_rstd);
        if (!in->rms) r.spread += fabs(r.xhat[i].high) / (double)n;
    }
    return r;
}

/* The sums over a row of a, a xhat and a b, over n, and those of their sizes. */
typedef struct {
    two mean, along;
    double mean_terms, along_terms;
} projection;

/* a - mean(a) - xhat mean(a xhat): the part of a that a norm's gradient lets through. */
static two passed(const row *r, const projection *p, two a, int64_t i)
{
    return minus(minus(a, p->mean), times(r->xhat[i], p->along));
}

static double passed_terms(const row *r, const projection *p, double size, int64_t i)
{
    return size + p->mean_terms + xhat_terms(r, i) * p->along_terms;
}

static void count_in(const row *r, projection *p, two a, double size, int64_t i)
{
    const two h = r->xhat[i], product = times(a, h);
    p->along = add(p->along, product);
    p->along_terms += size * xhat_terms(r, i) / (double)r->in->n;
    if (r->in->rms) return;
    p->mean = add(p->mean, a);
    p->mean_terms += size / (double)r->in->n;
}

static void divide(const row *r, projection *p)
{
    p->mean = over(p->mean, number((double)r->in->n));
    p->along = over(p->along, number((double)r->in->n));
}

/* The gradients of L = sum(v dx), dx = rstd passed(g), g = gamma dy: with means over the row,
 *
 *     dL/dg = rstd passed(v)
 *     dL/dx = -rstd L xhat / n - rstd^2 passed(mean(g xhat) v + mean(v xhat) g)
 *     L / n = rstd (mean(v g) - mean(v) mean(g) - mean(v xhat) mean(g xhat)) */
static void second_order(const row *r, const projection *g, exact *ddx, exact *ddy)
{
    const int64_t n = r->in->n;
    projection v = {{0, 0}, {0, 0}, 0, 0}, w = v;
    two both = {0, 0};
    double both_terms = 0;
    for (int64_t i = 0; i < n; i++) {
        const two product = times(number(r->v[i]), times(gamma_of(r, i), number(r->dy[i])));
        count_in(r, &v, number(r->v[i]), fabs(r->v[i]), i);
        both = add(both, product);
        both_terms += fabs(product.high) / (double)n;
    }
    divide(r, &v);
    both = minus(minus(over(both, number((double)n)), times(v.mean, g->mean)),
                 times(v.along, g->along));
    both_terms += v.mean_terms * g->mean_terms + v.along_terms * g->along_terms;
    const two rstd2 = times(r->rstd, r->rstd);
    for (int pass = 0; pass < 2; pass++) {
        for (int64_t i = 0; i < n; i++) {
            const two gi = times(gamma_of(r, i), number(r->dy[i]));
            const two a = add(times(g->along, number(r->v[i])), times(v.along, gi));
            const double size = g->along_terms * fabs(r->v[i]) + v.along_terms * fabs(gi.high);
            if (pass == 0) {
                count_in(r, &w, a, size, i);
                continue;
            }
            const two h = r->xhat[i], gamma = gamma_of(r, i);
            const two x = add(times(h, both), passed(r, &w, a, i));
            put(ddx ? ddx + i : NULL, negated(times(rstd2, x)),
                rstd2.high * (xhat_terms(r, i) * both_terms + passed_terms(r, &w, size, i)));
            const two dy = times(gamma, times(r->rstd, passed(r, &v, number(r->v[i]), i)));
            put(ddy ? ddy + i : NULL, dy,
                fabs(gamma.high) * r->rstd.high * passed_terms(r, &v, fabs(r->v[i]), i));
        }
        divide(r, &w);
    }
}

static void add_to(exact *sum, two value, double terms)
{
    const two new = add((two){sum->high, sum->low}, value);
    *sum = (exact){new.high, new.low, sum->terms + terms};
}

static void norm_row(const exact_rows *in, int64_t k, exact *results[EXACT_RESULTS])
{
    const row r = row_of(in, k);
    projection g = {{0, 0}, {0, 0}, 0, 0};
    for (int64_t i = 0; i < in->n; i++) {
        const two gi = times(gamma_of(&r, i), number(r.dy[i]));
        count_in(&r, &g, gi, fabs(gi.high), i);
    }
    divide(&r, &g);
    exact *at[EXACT_RESULTS];
    for (int i = 0; i < EXACT_RESULTS; i++) at[i] = results[i] ? results[i] + k * in->n : NULL;
    for (int64_t i = 0; i < in->n; i++) {
        const two h = r.xhat[i], gamma = gamma_of(&r, i), scaled = times(h, gamma);
        const double beta = in->beta[in->columns ? k : i];
        if (at[EXACT_Y])
            put(at[EXACT_Y] + i, add(scaled, number(beta)),
                xhat_terms(&r, i) * fabs(gamma.high) + fabs(beta));
        const two gi = times(gamma, number(r.dy[i]));
        if (at[EXACT_DX])
            put(at[EXACT_DX] + i, times(r.rstd, passed(&r, &g, gi, i)),
                r.rstd.high * passed_terms(&r, &g, fabs(gi.high), i));
        if (results[EXACT_DGAMMA])
            add_to(&results[EXACT_DGAMMA][in->columns ? k : i], times(h, number(r.dy[i])),
                   xhat_terms(&r, i) * fabs(r.dy[i]));
    }
    if (at[EXACT_DDX] || at[EXACT_DDY]) second_order(&r, &g, at[EXACT_DDX], at[EXACT_DDY]);
    free(r.xhat);
}

void exact_norm(const exact_rows *in, exact *results[EXACT_RESULTS])
{
    const int64_t parameters = in->columns ? in->rows : in->n;
    for (int64_t i = 0; i < parameters && results[EXACT_DGAMMA]; i++)
        results[EXACT_DGAMMA][i] = (exact){0, 0, 0};
    for (int64_t k = 0; k < in->rows; k++) norm_row(in, k, results);
}

void exact_variance(const exact_rows *in, exact *results[EXACT_RESULTS])
{
    exact_rows plain = *in;
    plain.rms = false, plain.eps = 0;
    const int64_t n = in->n;
    for (int64_t k = 0; k < in->rows; k++) {
        const row r = row_of(&plain, k);
        two squares = {0, 0};
        double spread = 0;
        for (int64_t i = 0; i < n; i++) {
            const two off = off_mean(&r, i);
            squares = add(squares, times(off, off));
            spread += fabs(off.high) / (double)n;
        }
        for (int64_t i = 0; i < n; i++) {
            const two off = off_mean(&r, i);
            const two slope = over(times(number(2 * r.dy[0]), off), number((double)n));
            const double size = 2 * fabs(r.dy[0]) * (fabs(off.high) + spread) / (double)n;
            put(results[EXACT_DX] + k * n + i, power_of_two(slope, -r.scale),
                ldexp(size, -r.scale));
        }
        squares = power_of_two(over(squares, number((double)n)), -2 * r.scale);
        put(results[EXACT_Y] + k, squares, squares.high);
        free(r.xhat);
    }
}

/* ---- Softmax, from long double -------------------------------------------------------------- */

static void put_long(exact *to, long double value, long double terms)
{
    *to = (exact){(double)value, (double)(value - (long double)(double)value), (double)terms};
}

/* A row's exponentials e^(x - largest): their sum is 1 + rest, the largest element's being 1. */
typedef struct {
    const double *x;
    long double largest, rest;
} exponentials;

static exponentials exponentials_of(const double *x, int64_t n)
{
    exponentials e = {.x = x};
    int64_t at = 0;
    for (int64_t i = 1; i < n; i++)
        if (x[i] > x[at]) at = i;
    e.largest = (long double)x[at];
    for (int64_t i = 0; i < n; i++)
        if (i != at) e.rest += expl((long double)x[i] - e.largest);
    return e;
}

static long double probability(const exponentials *e, int64_t i)
{
    return expl((long double)e->x[i] - e->largest) / (1 + e->rest);
}

void exact_softmax(const exact_rows *in, exact *results[EXACT_RESULTS])
{
    for (int64_t k = 0; k < in->rows; k++) {
        const int64_t n = in->n, at = k * n;
        const double *dy = in->dy + at;
        const exponentials e = exponentials_of(in->x + at, n);
        long double along = 0, size = 0;
        for (int64_t i = 0; i < n; i++) {
            along += probability(&e, i) * (long double)dy[i];
            size += probability(&e, i) * fabsl((long double)dy[i]);
        }
        for (int64_t i = 0; i < n; i++) {
            const long double y = probability(&e, i), d = (long double)dy[i];
            put_long(results[EXACT_Y] + at + i, y, y);
            put_long(results[EXACT_DX] + at + i, y * (d - along), y * (fabsl(d) + size));
        }
    }
}

void exact_log_softmax(const exact_rows *in, exact *results[EXACT_RESULTS])
{
    for (int64_t k = 0; k < in->rows; k++) {
        const int64_t n = in->n, at = k * n;
        const double *x = in->x + at, *dy = in->dy + at;
        const exponentials e = exponentials_of(x, n);
        const long double log = log1pl(e.rest);
        long double sum = 0, size = 0;
        for (int64_t i = 0; i < n; i++)
            sum += (long double)dy[i], size += fabsl((long double)dy[i]);
        for (int64_t i = 0; i < n; i++) {
            const long double below = e.largest - (long double)x[i], d = (long double)dy[i];
            const long double y = probability(&e, i);
            put_long(results[EXACT_Y] + at + i, -below - log, below + log);
            put_long(results[EXACT_DX] + at + i, d - y * sum, fabsl(d) + y * size);
        }
    }
}

void exact_cross_entropy(const exact_rows *in, exact *results[EXACT_RESULTS])
{
    for (int64_t k = 0; k < in->rows; k++) {
        const int64_t n = in->n, at = k * n;
        const exponentials e = exponentials_of(in->x + at, n);
        const long double dy = (long double)in->dy[at];
        const long double loss = log1pl(e.rest) + (e.largest - (long double)in->x[at]);
        put_long(results[EXACT_Y] + k, loss, loss);
        long double others = 0;
        for (int64_t i = 1; i < n; i++) {
            const long double y = probability(&e, i);
            others += y;
            put_long(results[EXACT_DX] + at + i, dy * y, fabsl(dy) * y);
        }
        put_long(results[EXACT_DX] + at, -dy * others, fabsl(dy));
    }
}

/* The weights of one query over all keys. */
static void weigh(const exact_rows *in, int64_t query, long double *weights)
{
    const int64_t n = in->n;
    long double largest = -HUGE_VALL, sum = 0;
    for (int64_t k = 0; k < in->rows; k++) {
        long double score = 0;
        for (int64_t i = 0; i < n; i++)
            score += (long double)in->x[query * n + i] * (long double)in->gamma[k * n + i];
        weights[k] = score / sqrtl((long double)n);
        largest = fmaxl(largest, weights[k]);
    }
    for (int64_t k = 0; k < in->rows; k++) sum += weights[k] = expl(weights[k] - largest);
    for (int64_t k = 0; k < in->rows; k++) weights[k] /= sum;
}

typedef struct {
    long double value, terms;
} sum;

static void accumulate(sum *to, long double a, long double size)
{
    to->value += a, to->terms += size;
}

void exact_attention(const exact_rows *in, exact *results[EXACT_RESULTS])
{
    const int64_t n = in->n, rows = in->rows, all = rows * n;
    const long double scale = 1 / sqrtl((long double)n);
    long double *weights = calloc((size_t)rows, sizeof *weights);
    sum *y = calloc((size_t)all * 4, sizeof *y), *dq = y + all, *dk = dq + all, *dw = dk + all;
    if (!weights || !y) abort();
    for (int64_t q = 0; q < rows; q++) {
        weigh(in, q, weights);
        sum mean = {0, 0};
        for (int pass = 0; pass < 2; pass++)
            for (int64_t k = 0; k < rows; k++) {
                sum p = {0, 0}; /* the gradient of the weight */
                for (int64_t i = 0; i < n; i++) {
                    const long double value = (long double)in->beta[k * n + i];
                    const long double d = (long double)in->dy[q * n + i];
                    accumulate(&p, d * value, fabsl(d * value));
                    if (pass == 1) continue;
                    accumulate(&y[q * n + i], weights[k] * value, fabsl(weights[k] * value));
                    accumulate(&dw[k * n + i], weights[k] * d, fabsl(weights[k] * d));
                }
                if (pass == 0) {
                    accumulate(&mean, weights[k] * p.value, weights[k] * p.terms);
                    continue;
                }
                const long double slope = scale * weights[k] * (p.value - mean.value);
                const long double size = scale * weights[k] * (p.terms + mean.terms);
                for (int64_t i = 0; i < n; i++) {
                    const long double key = (long double)in->gamma[k * n + i];
                    const long double query = (long double)in->x[q * n + i];
                    accumulate(&dq[q * n + i], slope * key, size * fabsl(key));
                    accumulate(&dk[k * n + i], slope * query, size * fabsl(query));
                }
            }
    }
    for (int64_t i = 0; i < all; i++) {
        put_long(results[EXACT_Y] + i, y[i].value, y[i].terms);
        put_long(results[EXACT_DX] + i, dq[i].value, dq[i].terms);
        put_long(results[EXACT_DDX] + i, dk[i].value, dk[i].terms);
        put_long(results[EXACT_DDY] + i, dw[i].value, dw[i].terms);
    }
    free(weights), free(y);
}

/* ---- Errors --------------------------------------------------------------------------------- */

/* The unit in the last place of a number. */
static double unit_of(double x, bool single)
{
    const int digits = single ? FLT_MANT_DIG : DBL_MANT_DIG;
    const int least = single ? FLT_MIN_EXP : DBL_MIN_EXP;
    int exponent = least;
    if (x != 0) frexp(x, &exponent);
    return ldexp(1, (exponent < least ? least : exponent) - digits);
}

exact_error exact_worse(exact_error a, exact_error b)
{
    return (exact_error){fmax(a.last, b.last), fmax(a.largest, b.largest), fmax(a.terms, b.terms)};
}

bool exact_cancels(const exact *right, int64_t count)
{
    double largest = 0, terms = 0;
    for (int64_t i = 0; i < count; i++) {
        largest = fmax(largest, fabs(right[i].high));
        terms = fmax(terms, right[i].terms);
    }
    return terms > 4 * largest;
}

exact_error exact_compare(const double *y, const exact *right, int64_t count, bool single)
{
    exact_error worst = {0, 0, 0};
    double largest = 0;
    for (int64_t i = 0; i < count; i++) largest = fmax(largest, fabs(right[i].high));
    const double unit = unit_of(largest, single);
    for (int64_t i = 0; i < count; i++) {
        double off = fabs((y[i] - right[i].high) - right[i].low);
        const double most = single ? (double)FLT_MAX : DBL_MAX;
        if (!isfinite(y[i])) off = isinf(y[i]) && fabs(right[i].high) > most ? 0 : HUGE_VAL;
        if (off == 0) continue;
        const double beyond = fmax(0, off - 2 * unit_of(0, single));
        worst = exact_worse(worst, (exact_error){off / unit_of(right[i].high, single), off / unit,
                                                 beyond / right[i].terms});
    }
    return worst;
}
