/* Every kernel of kernels.def, in every table (instruction set and dtype), against plain
 * long-double loops. A kernel without a comparison does not compile. */
#include "kernels/dropout.h"
#include "table.h"
#include <setjmp.h>

/* ---- Kernels that are compared together (test_kernels.c) ---- */

#define compare_map compare_maps
#define compare_map_backward compare_maps
#define compare_where compare_small_pointwise
#define compare_fill compare_small_pointwise
#define compare_add_to compare_small_pointwise
#define compare_axpy compare_small_pointwise
#define compare_weighted_sum compare_small_pointwise
#define compare_dot compare_small_pointwise
#define compare_sum compare_reductions
#define compare_sum_to_f64 compare_reductions
#define compare_max compare_reductions
#define compare_cumsum compare_reductions
#define compare_argmax compare_reductions
#define compare_first_outside compare_reductions
#define compare_change compare_reductions
#define compare_moments compare_reductions
#define compare_count_outside compare_reductions
#define compare_gather_rows compare_gather_and_scatter
#define compare_scatter_add_rows compare_gather_and_scatter
#define compare_softmax compare_softmaxes
#define compare_softmax_backward compare_softmaxes
#define compare_cross_entropy compare_cross_entropies
#define compare_cross_entropy_backward compare_cross_entropies
#define compare_row_norm compare_row_norms
#define compare_row_norm_backward compare_row_norms
#define compare_column_statistics compare_column_norms
#define compare_column_norm compare_column_norms
#define compare_column_norm_backward compare_column_norms
#define compare_sgd compare_optimizers
#define compare_adam compare_optimizers
#define compare_rmsprop compare_optimizers
#define compare_lion compare_optimizers
#define compare_gemm compare_products

/* ---- The gradient of a norm's gradient -------------------------------------------------- */

/* Of n elements that are normalized together: v = dL/dg, and the gradient to x by the Jacobians of
 * xhat and rstd. */
typedef struct {
    int64_t n;
    bool center, unbiased;
    long double *x, *g, *u, *xhat, *v, *dx, rstd;
} second_reference;

static second_reference second_reference_of(int64_t n, bool center, bool unbiased)
{
    const size_t bytes = sizeof(long double);
    return (second_reference){.n = n,
                              .center = center,
                              .unbiased = unbiased,
                              .x = keep(n, bytes),
                              .g = keep(n, bytes),
                              .u = keep(n, bytes),
                              .xhat = keep(n, bytes),
                              .v = keep(n, bytes),
                              .dx = keep(n, bytes)};
}

static void refer_to_jacobians(second_reference *s)
{
    const int64_t n = s->n;
    const long double divisor = (long double)(s->unbiased ? n - 1 : n), m = (long double)n;
    long double mean = 0, squares = 0, mu = 0, mg = 0, a = 0, b = 0;
    long double *xhat = s->xhat;
    for (int64_t i = 0; i < n && s->center; i++) mean += s->x[i] / m;
    for (int64_t i = 0; i < n; i++) squares += (s->x[i] - mean) * (s->x[i] - mean);
    const long double r = s->rstd = 1 / sqrtl(squares / divisor + (long double)1e-5);
    for (int64_t i = 0; i < n; i++) {
        xhat[i] = (s->x[i] - mean) * r;
        mu += s->center ? s->u[i] / m : 0;
        mg += s->center ? s->g[i] / m : 0;
        a += s->g[i] * xhat[i] / divisor;
        b += s->u[i] * xhat[i] / divisor;
    }
    long double sum = 0, along = 0, by_rstd = 0; /* of what comes through xhat, and through rstd */
    for (int64_t i = 0; i < n; i++) {
        s->dx[i] = -r * (a * s->u[i] + b * s->g[i]);
        sum += s->center ? s->dx[i] / m : 0;
        along += s->dx[i] * xhat[i] / divisor;
        by_rstd += s->u[i] * (s->g[i] - mg - xhat[i] * a) / divisor;
    }
    for (int64_t i = 0; i < n; i++) {
        s->dx[i] = r * (s->dx[i] - sum - xhat[i] * along) - by_rstd * r * r * xhat[i];
        s->v[i] = r * (s->u[i] - mu - xhat[i] * b);
    }
}

/* The operands and gradients of one comparison. Gradients that are added to are 1 before. */
typedef struct {
    char *x, *gamma, *dy, *u, *dx, *ddy, *dgamma;
    bool add;
    long double *sum; /* dgamma */
} second_arrays;

static second_arrays second_arrays_of(int64_t size, int64_t weights, bool with_gamma, bool add)
{
    return (second_arrays){.x = uniform(size, -2, 3),
                           .gamma = or_null(uniform(weights, 0.5, 1.5), with_gamma),
                           .dy = uniform(size, -1, 1),
                           .u = uniform(size, -1, 1),
                           .dx = constant(size, 1),
                           .ddy = constant(size, 1),
                           .dgamma = constant(weights, 1),
                           .add = add,
                           .sum = keep(weights, sizeof(long double))};
}

static ng_second_gradients gradients_in(const second_arrays *a)
{
    return (ng_second_gradients){{a->dx, a->add}, {a->dgamma, a->add}, {a->ddy, a->add}};
}

/* Elements at[0 .. n - 1] are normalized together; weight[i] is the index of their gamma. */
static void expect_second(second_arrays *a, second_reference *s, const int64_t *at,
                          const int64_t *weight)
{
    for (int64_t i = 0; i < s->n; i++) {
        s->x[i] = get(a->x, at[i]);
        s->u[i] = get(a->u, at[i]);
        s->g[i] = get(a->dy, at[i]) * (a->gamma ? get(a->gamma, weight[i]) : 1);
    }
    refer_to_jacobians(s);
    const double size = fmax((double)s->rstd, a->add);
    for (int64_t i = 0; i < s->n; i++) {
        const long double gamma = a->gamma ? get(a->gamma, weight[i]) : 1;
        expect("dx", a->dx, at[i], s->dx[i] + a->add, 64, size * size);
        expect("ddy", a->ddy, at[i], s->v[i] * gamma + a->add, 16, size);
        a->sum[weight[i]] += s->v[i] * get(a->dy, at[i]);
    }
}

static void expect_dgamma(const second_arrays *a, int64_t weights, double terms, double rstd)
{
    for (int64_t j = 0; j < weights; j++)
        expect("dgamma", a->dgamma, j, a->sum[j] + a->add, 16, 1 + terms * rstd);
}

static void check_row_norm_second(ng_row_norm_shape s, bool with_gamma, bool add)
{
    const int64_t rows = s.rows, n = s.n, size = rows * n;
    second_arrays a = second_arrays_of(size, n, with_gamma, add);
    char *y = make(size);
    const ng_statistics statistics = {s.center ? doubles(rows) : NULL, doubles(rows),
                                      doubles(rows)};
    k->row_norm(&s, a.x, NULL, NULL, y, statistics);
    k->row_norm_second(&s, a.x, a.gamma, statistics, a.dy, a.u, gradients_in(&a),
                       doubles(ng_row_norm_scratch(&s)));
    second_reference reference = second_reference_of(n, s.center, s.unbiased);
    int64_t *at = keep(n, sizeof *at), *weight = keep(n, sizeof *weight);
    double largest = 0;
    for (int64_t row = 0; row < rows; row++) {
        for (int64_t i = 0; i < n; i++) at[i] = row * n + i, weight[i] = i;
        expect_second(&a, &reference, at, weight);
        largest = fmax(largest, statistics.rstd[row]);
    }
    expect_dgamma(&a, n, 1, largest);
    release();
}

static void compare_row_norm_second(void)
{
    for (int s = 0; s < SIZES - 2; s++)
        for (int mode = 0; mode < 8; mode++) {
            const int64_t n = sizes[s];
            const bool center = mode & 1;
            check_row_norm_second(
                (ng_row_norm_shape){3, n, n, 1e-5, center, center && (mode & 2) && n > 2}, mode & 4,
                mode % 3 == 0);
        }
}

static void check_column_norm_second(ng_column_norm_shape s, bool with_gamma, bool add)
{
    const int64_t channels = s.channels, n = s.outer * s.inner;
    second_arrays a = second_arrays_of(n * channels, channels, with_gamma, add);
    const ng_statistics statistics = {doubles(channels), doubles(channels), doubles(channels)};
    k->column_statistics(&s, a.x, statistics, doubles(channels));
    k->column_norm_second(&s, a.x, a.gamma, statistics, a.dy, a.u, gradients_in(&a));
    second_reference reference = second_reference_of(n, true, false);
    int64_t *at = keep(n, sizeof *at), *weight = keep(n, sizeof *weight);
    double largest = 0;
    for (int64_t c = 0; c < channels; c++) {
        for (int64_t i = 0; i < n; i++) {
            at[i] = (i / s.inner * channels + c) * s.inner + i % s.inner;
            weight[i] = c;
        }
        expect_second(&a, &reference, at, weight);
        largest = fmax(largest, statistics.rstd[c]);
    }
    expect_dgamma(&a, channels, (double)n, largest);
    release();
}

static void compare_column_norm_second(void)
{
    for (int s = 0; s < SIZES - 2; s++)
        for (int mode = 0; mode < 4; mode++) {
            const int64_t n = sizes[s];
            check_column_norm_second((ng_column_norm_shape){7, n, 1, 1e-5}, mode & 1, mode & 2);
            check_column_norm_second((ng_column_norm_shape){2, 3, n, 1e-5}, mode & 1, mode & 2);
        }
}

/* A column near the ends of the range makes all columns be computed alone, which changes the others
 * by rounding only. */
LOOP_TEST(columns_beside_one_out_of_range_keep_their_second_gradient, TABLES)
{
    if (!use_table(_i) || in_float) return;
    const ng_column_norm_shape s = {6, 11, 1, 0};
    const int64_t size = s.outer * s.channels;
    char *x = uniform(size, -2, 3), *dy = uniform(size, -1, 1), *u = uniform(size, -1, 1);
    char *far = copy(x, size), *dx = make(size), *far_dx = make(size);
    const ng_statistics statistics = {doubles(11), doubles(11), doubles(11)};
    for (int64_t row = 0; row < s.outer; row++)
        put(far, row * 11 + 4, (double)get(x, row * 11 + 4) * 0x1p-500);
    k->column_statistics(&s, x, statistics, doubles(11));
    k->column_norm_second(&s, x, NULL, statistics, dy, u, (ng_second_gradients){.dx.data = dx});
    k->column_statistics(&s, far, statistics, doubles(11));
    k->column_norm_second(&s, far, NULL, statistics, dy, u,
                          (ng_second_gradients){.dx.data = far_dx});
    for (int64_t i = 0; i < size; i++)
        if (i % 11 != 4) expect("dx", far_dx, i, get(dx, i), 64, 1);
    release();
}

/* ---- Batch statistics and groups ---------------------------------------------------------- */

static void compare_move_toward(void)
{
    for (int s = 0; s < SIZES; s++) {
        const int64_t n = sizes[s];
        const char *from = uniform(n, -1, 1);
        char *running = copy(from, n);
        double *batch = doubles(n);
        for (int64_t i = 0; i < n; i++) batch[i] = 3 * ng_rng_uniform(table_rng());
        k->move_toward(running, batch, 1.25, 0.1, n);
        for (int64_t i = 0; i < n; i++) {
            const long double old = get(from, i);
            expect("running", running, i, old + 0.1L * (1.25L * (long double)batch[i] - old), 2, 1);
        }
        release();
    }
}

/* Calls check with groups of channels of one element each, and of runs. */
static void for_each_group_shape(void (*check)(const ng_group_shape *shape))
{
    for (int s = 0; s < SIZES - 2; s++) {
        check(&(ng_group_shape){.outer = 3, .channels = 6, .groups = 2, .inner = sizes[s]});
        check(&(ng_group_shape){.outer = 5, .channels = sizes[s], .groups = 1, .inner = 1});
    }
}

/* A column norm without statistics scales and shifts, also in place. */
static void check_channel_affine(const ng_group_shape *s)
{
    const ng_column_norm_shape shape = {s->outer, s->channels, s->inner, 0};
    const ng_statistics none = {NULL, NULL, NULL};
    const int64_t size = s->outer * s->channels * s->inner;
    for (int mode = 0; mode < 4; mode++) {
        const char *x = uniform(size, -2, 2);
        char *gamma = or_null(uniform(s->channels, 0.5, 1.5), mode & 1);
        char *beta = or_null(uniform(s->channels, -1, 1), mode & 2);
        char *y = make(size), *in_place = copy(x, size);
        k->column_norm(&shape, x, none, gamma, beta, y);
        k->column_norm(&shape, in_place, none, gamma, beta, in_place);
        for (int64_t i = 0; i < size; i++) {
            const int64_t c = i / s->inner % s->channels;
            const long double g = gamma ? get(gamma, c) : 1, b = beta ? get(beta, c) : 0;
            expect("y", y, i, get(x, i) * g + b, 1, 3);
            expect("in place", in_place, i, get(x, i) * g + b, 1, 3);
        }
        release();
    }
}

/* Arguments and results of group_norm_backward. Gradients that are added to are 1 before. */
typedef struct {
    const ng_group_shape *shape;
    const char *x, *gamma, *dy;
    ng_statistics statistics;
    char *dx, *dgamma, *dbeta;
    bool add;
} group_arrays;

static group_arrays group_arrays_of(const ng_group_shape *s, bool with_gamma, bool add)
{
    const int64_t size = s->outer * s->channels * s->inner, rows = s->outer * s->groups;
    group_arrays a = {.shape = s,
                      .x = uniform(size, 9, 11),
                      .gamma = or_null(uniform(s->channels, 0.5, 1.5), with_gamma),
                      .dy = uniform(size, -1, 1),
                      .statistics = {doubles(rows), doubles(rows), doubles(rows)},
                      .dx = constant(size, 1),
                      .dgamma = constant(s->channels, 1),
                      .dbeta = constant(s->channels, 1),
                      .add = add};
    for (int64_t r = 0; r < rows; r++) {
        a.statistics.mean[r] = 10 + 0.01 * (double)r;
        a.statistics.low[r] = in_float ? 0 : 1e-9 * (double)(r + 1);
        a.statistics.rstd[r] = 1 + (double)r / (double)rows;
    }
    return a;
}

/* An element's row and channel, its g and xhat. */
typedef struct {
    int64_t row, channel;
    long double dy, g, xhat, rstd;
} group_element;

static group_element group_element_at(const group_arrays *a, int64_t i)
{
    const ng_group_shape *s = a->shape;
    const int64_t channel = i / s->inner % s->channels;
    const int64_t row = i / (s->channels / s->groups * s->inner);
    const long double dy = get(a->dy, i), rstd = (long double)a->statistics.rstd[row];
    const long double mean =
        (long double)a->statistics.mean[row] + (long double)a->statistics.low[row];
    return (group_element){row,
                           channel,
                           dy,
                           dy * (a->gamma ? get(a->gamma, channel) : 1),
                           (get(a->x, i) - mean) * rstd,
                           rstd};
}

static void expect_group_gradients(const group_arrays *a, bool dx, bool dgamma, bool dbeta)
{
    const ng_group_shape *s = a->shape;
    const int64_t size = s->outer * s->channels * s->inner, rows = s->outer * s->groups;
    const size_t bytes = sizeof(long double);
    const long double share = 1 / (long double)(s->channels / s->groups * s->inner);
    long double *g = keep(rows, bytes), *gx = keep(rows, bytes);
    double *sizes_gx = doubles(rows); /* of the terms of gx */
    long double *sum = keep(s->channels, bytes), *sum_x = keep(s->channels, bytes);
    /* A term of dgamma is rounded twice and added in float to at most 32 others (RUN in lanes.h):
     * at most 17 ulp of the sum of the terms' sizes. Roundings go both ways: 2 ulp suffice. */
    double *sizes_x = doubles(s->channels);
    for (int64_t i = 0; i < size; i++) {
        const group_element e = group_element_at(a, i);
        g[e.row] += e.g * share, gx[e.row] += e.g * e.xhat * share;
        sum[e.channel] += e.dy, sum_x[e.channel] += e.dy * e.xhat;
        sizes_gx[e.row] += (double)fabsl(e.g * e.xhat * share);
        sizes_x[e.channel] += (double)fabsl(e.dy * e.xhat);
    }
    for (int64_t i = 0; i < size; i++) {
        const group_element e = group_element_at(a, i);
        const long double value = e.rstd * (e.g - g[e.row] - e.xhat * gx[e.row]);
        const double terms = (double)e.rstd * (3 + fabs((double)e.xhat) * sizes_gx[e.row]);
        expect("dx", a->dx, i, dx ? value + a->add : 1, 4, terms);
    }
    const double terms = (double)(s->outer * s->inner);
    for (int64_t c = 0; c < s->channels; c++) {
        expect("dgamma", a->dgamma, c, dgamma ? sum_x[c] + a->add : 1, 2, sizes_x[c] + a->add);
        expect("dbeta", a->dbeta, c, dbeta ? sum[c] + a->add : 1, 2, terms);
    }
}

static void check_group_norm_backward(const ng_group_shape *s)
{
    for (int mode = 0; mode < 32; mode++) {
        const bool dx = mode & 1, dgamma = mode & 2, dbeta = mode & 4;
        const group_arrays a = group_arrays_of(s, mode & 8, mode & 16);
        k->group_norm_backward(s, a.x, a.gamma, a.statistics, a.dy,
                               (ng_norm_gradients){.dx = {or_null(a.dx, dx), a.add},
                                                   .dgamma = {or_null(a.dgamma, dgamma), a.add},
                                                   .dbeta = {or_null(a.dbeta, dbeta), a.add}},
                               doubles(dgamma || dbeta ? ng_group_norm_scratch(s) : 0));
        expect_group_gradients(&a, dx, dgamma, dbeta);
        release();
    }
}

static void compare_group_norm_backward(void)
{
    for_each_group_shape(check_channel_affine);
    for_each_group_shape(check_group_norm_backward);
    check_group_norm_backward(
        &(ng_group_shape){.outer = 40, .channels = 24, .groups = 3, .inner = 1});
    check_group_norm_backward(
        &(ng_group_shape){.outer = 20, .channels = 12, .groups = 3, .inner = 17});
}

/* ---- DynamicTanh and SwiGLU ---------------------------------------------------------------- */

static void check_dynamic_tanh(int64_t rows, int64_t n, bool affine, bool add)
{
    const ng_tanh_shape shape = {rows, n, 0.75};
    const char *x = uniform(rows * n, -4, 4), *dy = uniform(rows * n, -1, 1);
    char *gamma = or_null(uniform(n, 0.5, 1.5), affine), *beta = or_null(uniform(n, -1, 1), affine);
    char *y = make(rows * n), *dx = constant(rows * n, 1), *dgamma = constant(n, 1);
    char *dbeta = constant(n, 1), *dalpha = constant(1, 1);
    k->dynamic_tanh(&shape, x, gamma, beta, y);
    k->dynamic_tanh_backward(&shape, x, gamma, dy,
                             (ng_norm_gradients){{dx, add}, {dgamma, add}, {dbeta, add}},
                             (ng_slot){dalpha, add}, doubles(ng_dynamic_tanh_scratch(&shape)));
    long double sum_alpha = 0;
    for (int64_t j = 0; j < n; j++) {
        const long double g = gamma ? get(gamma, j) : 1;
        long double sum = 0, sum_t = 0;
        for (int64_t i = j; i < rows * n; i += n) {
            const long double t = tanhl(0.75L * get(x, i)), d = get(dy, i);
            expect("y", y, i, g * t + (beta ? get(beta, j) : 0), 8, 1);
            expect("dx", dx, i, d * g * 0.75L * (1 - t * t) + add, 16, 1);
            sum += d;
            sum_t += d * t;
            sum_alpha += d * g * get(x, i) * (1 - t * t);
        }
        expect("dgamma", dgamma, j, sum_t + add, 8, (double)rows);
        expect("dbeta", dbeta, j, sum + add, 2, (double)rows);
    }
    expect("dalpha", dalpha, 0, sum_alpha + add, 16, (double)(rows * n));
    release();
}

static void compare_dynamic_tanh(void)
{
    for (int s = 0; s < SIZES; s++)
        for (int mode = 0; mode < 4; mode++) check_dynamic_tanh(3, sizes[s], mode & 1, mode & 2);
    check_dynamic_tanh(301, 33, true, true);
}
#define compare_dynamic_tanh_backward compare_dynamic_tanh

static void compare_swiglu(void)
{
    for (int s = 0; s < SIZES; s++) {
        const int64_t n = sizes[s], rows = 3;
        char *x = uniform(2 * rows * n, -6, 6), *dy = uniform(rows * n, -1, 1);
        for (int64_t i = 0; i < n; i += 3) put(x, i, i % 2 ? 900 : -900); /* beyond e^-x */
        char *y = make(rows * n), *dx = make(2 * rows * n), *onto = constant(2 * rows * n, 1);
        k->swiglu(x, y, rows, n);
        k->swiglu_backward(x, dy, dx, rows, n, false);
        k->swiglu_backward(x, dy, onto, rows, n, true);
        for (int64_t i = 0; i < rows * n; i++) {
            const int64_t at = i / n * 2 * n + i % n;
            const long double a = get(x, at), b = get(x, at + n), d = get(dy, i);
            const long double half = 1 / (1 + expl(-a)), slope = half * (1 + a * (1 - half));
            expect("y", y, i, a * half * b, 16, 1);
            expect("da", dx, at, d * b * slope, 16, 6);
            expect("db", dx, at + n, d * a * half, 16, 1);
            expect("da onto", onto, at, 1 + d * b * slope, 16, 6);
            expect("db onto", onto, at + n, 1 + d * a * half, 16, 1);
        }
        release();
    }
}
#define compare_swiglu_backward compare_swiglu

/* Any bits are moved, also those of signalling NaNs, and nothing beside the matrix is written. */
static void compare_transpose(void)
{
    const int64_t bytes = (int64_t)ng_dtype_bytes(dtype);
    for (int64_t count = 0; count <= 9; count++)
        for (int64_t depth = 0; depth <= 9; depth++) {
            const int64_t row = depth + 2, to_row = count + 3;
            char *from = make(9 * row), *to = constant(9 * to_row, 7);
            for (int64_t i = 0; i < 9 * row * bytes; i++) from[i] = (char)(i * 37 + i / 251);
            for (int64_t i = 0; i < 9 * row; i += 5) /* of numbers, ones that may signal */
                memset(from + i * bytes, i % 2 ? 0x7f : -1, (size_t)bytes - 1);
            k->transpose(from, row, count, depth, to, to_row);
            for (int64_t j = 0; j < 9; j++)
                for (int64_t i = 0; i < to_row; i++)
                    if (j < depth && i < count)
                        expect_bits("transpose", to + (j * to_row + i) * bytes,
                                    from + (i * row + j) * bytes, 1);
                    else
                        expect("beside it", to, j * to_row + i, 7, 0, 0);
            release();
        }
}

/* ---- Cells of recurrent networks ----------------------------------------------------------- */

enum { CELL_ROWS = 3, CELL_GAP = 5 }; /* elements between one row and the next */
static const int64_t cell_lengths[CELL_ROWS] = {3, 1, 2};

/* Rows of `width` elements. */
static ng_rows cell_rows(int64_t width, double low, double high)
{
    const int64_t row = width + CELL_GAP;
    return (ng_rows){uniform(CELL_ROWS * row, low, high), row};
}

static long double at(ng_rows x, int64_t r, int64_t i) { return get(x.at, r * x.row + i); }
static ng_rows copy_of(ng_rows x) { return (ng_rows){copy(x.at, CELL_ROWS * x.row), x.row}; }

static void expect_at(const char *what, ng_rows x, int64_t r, int64_t i, long double expected)
{
    expect(what, x.at, r * x.row + i, expected, 32, 1);
}

/* Step 1 of a cell, of which row 1 has ended if there are lengths. */
static ng_cell_step cell_step(ng_cell cell, int64_t n, bool lengths)
{
    const int64_t gates = ng_cell_gates(cell);
    ng_cell_step s = {.cell = cell,
                      .rows = CELL_ROWS,
                      .hidden = n,
                      .step = 1,
                      .lengths = lengths ? cell_lengths : NULL,
                      .gates = cell_rows(gates * n, -4, 4),
                      .h = cell_rows(n, -1, 1),
                      .h_after = cell_rows(n, -1, 1),
                      .y = cell_rows(n, -1, 1),
                      .dgates = cell_rows(gates * n, -1, 1),
                      .dh = cell_rows(n, -1, 1)};
    if (cell == NG_CELL_GRU) s.product = cell_rows(3 * n, -2, 2);
    if (cell == NG_CELL_LSTM) s.c = cell_rows(n, -2, 2), s.c_after = cell_rows(n, -2, 2);
    return s;
}

static bool has_ended(const ng_cell_step *s, int64_t r)
{
    return s->lengths && s->step >= s->lengths[r];
}

/* State and results of an ended row after a step forward, and after a step back. */
static void expect_ended(const ng_cell_step *s, int64_t r, int64_t i)
{
    expect_at("h of an ended row", s->h_after, r, i, at(s->h, r, i));
    if (s->c.at) expect_at("c of an ended row", s->c_after, r, i, at(s->c, r, i));
    expect_at("y of an ended row", s->y, r, i, 0);
}

static void expect_ended_back(const ng_cell_step *s, const ng_cell_step *old, int64_t gates,
                              int64_t r, int64_t i)
{
    for (int64_t g = 0; g < gates; g++) {
        expect_at("dgates of an ended row", s->dgates, r, g * s->hidden + i, 0);
        if (s->dproduct.at)
            expect_at("dproduct of an ended row", s->dproduct, r, g * s->hidden + i, 0);
    }
    expect_at("dh of an ended row", s->dh, r, i, at(old->dh, r, i));
    if (s->dc.at) expect_at("dc of an ended row", s->dc, r, i, at(old->dc, r, i));
}

/* Checks element j of row r after a step, or a step back; `old` is the state before. */
typedef void expect_cell(const ng_cell_step *s, const ng_cell_step *old, int64_t r, int64_t j);

static void expect_rnn(const ng_cell_step *s, const ng_cell_step *old, int64_t r, int64_t j)
{
    const long double sum = at(old->gates, r, j);
    const long double h = s->cell == NG_CELL_RELU ? fmaxl(sum, 0) : tanhl(sum);
    expect_at("h", s->h_after, r, j, h);
    expect_at("y", s->y, r, j, h);
}

static void expect_rnn_back(const ng_cell_step *s, const ng_cell_step *old, int64_t r, int64_t j)
{
    const long double h = at(s->gates, r, j), slope = s->cell == NG_CELL_RELU ? h > 0 : 1 - h * h;
    expect_at("da", s->dgates, r, j, (at(old->dh, r, j) + at(s->y, r, j)) * slope);
    expect_at("dh", s->dh, r, j, 0);
}

static long double sigmoid(long double x) { return 1 / (1 + expl(-x)); }

static void expect_gru(const ng_cell_step *s, const ng_cell_step *old, int64_t row, int64_t j)
{
    const int64_t n = s->hidden;
    const ng_rows a = old->gates, p = s->product;
    const long double r = sigmoid(at(a, row, j) + at(p, row, j));
    const long double z = sigmoid(at(a, row, j + n) + at(p, row, j + n));
    const long double t = tanhl(at(a, row, j + 2 * n) + r * at(p, row, j + 2 * n));
    const long double h = (1 - z) * t + z * at(s->h, row, j);
    expect_at("r", s->gates, row, j, r);
    expect_at("z", s->gates, row, j + n, z);
    expect_at("n", s->gates, row, j + 2 * n, t);
    expect_at("h", s->h_after, row, j, h);
    expect_at("y", s->y, row, j, h);
}

static void expect_gru_back(const ng_cell_step *s, const ng_cell_step *old, int64_t row, int64_t j)
{
    const int64_t n = s->hidden;
    const long double d = at(old->dh, row, j) + at(s->y, row, j), r = at(s->gates, row, j);
    const long double z = at(s->gates, row, j + n), t = at(s->gates, row, j + 2 * n);
    const long double dn = d * (1 - z) * (1 - t * t);
    const long double dr = dn * at(s->product, row, j + 2 * n) * r * (1 - r);
    const long double dz = d * (at(s->h, row, j) - t) * z * (1 - z);
    expect_at("dr", s->dgates, row, j, dr);
    expect_at("dr of the product", s->dproduct, row, j, dr);
    expect_at("dz", s->dgates, row, j + n, dz);
    expect_at("dz of the product", s->dproduct, row, j + n, dz);
    expect_at("dn", s->dgates, row, j + 2 * n, dn);
    expect_at("dn of the product", s->dproduct, row, j + 2 * n, dn * r);
    expect_at("dh", s->dh, row, j, d * z);
}

static void expect_lstm(const ng_cell_step *s, const ng_cell_step *old, int64_t r, int64_t j)
{
    const int64_t n = s->hidden;
    const ng_rows a = old->gates;
    const long double i = sigmoid(at(a, r, j)), f = sigmoid(at(a, r, j + n));
    const long double g = tanhl(at(a, r, j + 2 * n)), o = sigmoid(at(a, r, j + 3 * n));
    const long double c = f * at(s->c, r, j) + i * g;
    expect_at("i", s->gates, r, j, i);
    expect_at("f", s->gates, r, j + n, f);
    expect_at("g", s->gates, r, j + 2 * n, g);
    expect_at("o", s->gates, r, j + 3 * n, o);
    expect_at("c", s->c_after, r, j, c);
    expect_at("h", s->h_after, r, j, o * tanhl(c));
    expect_at("y", s->y, r, j, o * tanhl(c));
}

static void expect_lstm_back(const ng_cell_step *s, const ng_cell_step *old, int64_t r, int64_t j)
{
    const int64_t n = s->hidden;
    const long double i = at(s->gates, r, j), f = at(s->gates, r, j + n);
    const long double g = at(s->gates, r, j + 2 * n), o = at(s->gates, r, j + 3 * n);
    const long double d = at(old->dh, r, j) + at(s->y, r, j), t = tanhl(at(s->c_after, r, j));
    const long double e = at(old->dc, r, j) + d * o * (1 - t * t);
    expect_at("di", s->dgates, r, j, e * g * i * (1 - i));
    expect_at("df", s->dgates, r, j + n, e * at(s->c, r, j) * f * (1 - f));
    expect_at("dg", s->dgates, r, j + 2 * n, e * i * (1 - g * g));
    expect_at("do", s->dgates, r, j + 3 * n, d * t * o * (1 - o));
    expect_at("dh", s->dh, r, j, 0);
    expect_at("dc", s->dc, r, j, e * f);
}

static void check_cell(ng_cell cell, int64_t n, bool lengths, expect_cell *forward,
                       expect_cell *back)
{
    const int64_t gates = ng_cell_gates(cell);
    ng_cell_step s = cell_step(cell, n, lengths), old = s;
    old.gates = copy_of(s.gates);
    k->step_cell(&s);
    for (int64_t i = 0; i < CELL_ROWS * n; i++)
        if (has_ended(&s, i / n))
            expect_ended(&s, i / n, i % n);
        else
            forward(&s, &old, i / n, i % n);

    s.y = cell_rows(n, -1, 1);
    if (gates > 1) s.gates = cell_rows(gates * n, 0.1, 0.9);
    if (cell == NG_CELL_GRU) s.dproduct = cell_rows(3 * n, -1, 1);
    if (cell == NG_CELL_LSTM) s.dc = cell_rows(n, -1, 1);
    old = s;
    old.dh = copy_of(s.dh);
    if (s.dc.at) old.dc = copy_of(s.dc);
    k->step_cell_backward(&s);
    for (int64_t i = 0; i < CELL_ROWS * n; i++)
        if (has_ended(&s, i / n))
            expect_ended_back(&s, &old, gates, i / n, i % n);
        else
            back(&s, &old, i / n, i % n);
    release();
}

static void compare_step_cell(void)
{
    for (int i = 0; i < 2 * (SIZES - 2); i++) {
        check_cell(NG_CELL_TANH, sizes[i / 2], i % 2, expect_rnn, expect_rnn_back);
        check_cell(NG_CELL_RELU, sizes[i / 2], i % 2, expect_rnn, expect_rnn_back);
        check_cell(NG_CELL_GRU, sizes[i / 2], i % 2, expect_gru, expect_gru_back);
        check_cell(NG_CELL_LSTM, sizes[i / 2], i % 2, expect_lstm, expect_lstm_back);
    }
}
#define compare_step_cell_backward compare_step_cell

/* ---- Windows ------------------------------------------------------------------------------ */

static const ng_windows windows[] = {
    {2, {7, 9}, {7, 9}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},     /* as large as the image */
    {3, {8, 35}, {4, 17}, {2, 3}, {2, 2}, {0, 0}, {1, 1}},   /* a stride */
    {1, {9, 11}, {5, 7}, {3, 2}, {1, 1}, {0, 0}, {2, 4}},    /* a dilation */
    {2, {5, 40}, {4, 21}, {4, 5}, {2, 2}, {2, 2}, {1, 1}},   /* a stride and edges */
    {1, {1, 67}, {1, 67}, {1, 1}, {1, 1}, {0, 0}, {1, 1}},   /* one element */
    {1, {3, 500}, {3, 500}, {2, 3}, {1, 1}, {1, 1}, {2, 1}}, /* low and wide */
    {3, {6, 5}, {2, 2}, {3, 3}, {3, 2}, {0, 0}, {1, 1}},     /* few outputs */
    {4, {5, 5}, {5, 5}, {5, 5}, {1, 1}, {4, 4}, {2, 2}},     /* wide edges */
    {2, {2, 2}, {1, 1}, {2, 2}, {1, 1}, {4, 4}, {9, 9}},     /* which see padding alone */
};
enum { WINDOWS = sizeof windows / sizeof windows[0] };

/* The place in its plane of element t of window (r, c); -1 outside the plane. */
static int64_t seen(const ng_windows *w, int64_t t, int64_t r, int64_t c)
{
    const int64_t i = t / w->kernel[1], j = t % w->kernel[1];
    const int64_t row = r * w->stride[0] - w->padding[0] + i * w->dilation[0];
    const int64_t column = c * w->stride[1] - w->padding[1] + j * w->dilation[1];
    const bool inside = row >= 0 && row < w->size[0] && column >= 0 && column < w->size[1];
    return inside ? row * w->size[1] + column : -1;
}

static void check_columns(const ng_windows *w)
{
    const int64_t taps = w->kernel[0] * w->kernel[1], out = w->out[0] * w->out[1], row = out + 3;
    const int64_t plane = w->size[0] * w->size[1], size = w->planes * plane;
    const char *x = uniform(size, -1, 1);
    char *columns = uniform(w->planes * taps * row, -1, 1), *folded = make(size);
    char *onto = constant(size, 1);
    long double *sum = keep(size, sizeof *sum);
    k->fold(w, columns, row, folded, false);
    k->fold(w, columns, row, onto, true);
    for (int64_t p = 0; p < w->planes; p++)
        for (int64_t t = 0; t < taps; t++)
            for (int64_t o = 0; o < out; o++) {
                const int64_t at = seen(w, t, o / w->out[1], o % w->out[1]);
                if (at >= 0) sum[p * plane + at] += get(columns, (p * taps + t) * row + o);
            }
    for (int64_t i = 0; i < size; i++) {
        expect("fold", folded, i, sum[i], 4, (double)taps);
        expect("fold onto", onto, i, sum[i] + 1, 4, (double)taps);
    }
    k->unfold(w, x, columns, row);
    for (int64_t p = 0; p < w->planes; p++)
        for (int64_t t = 0; t < taps; t++)
            for (int64_t o = 0; o < out; o++) {
                const int64_t at = seen(w, t, o / w->out[1], o % w->out[1]);
                expect("unfold", columns, (p * taps + t) * row + o,
                       at < 0 ? 0 : get(x, p * plane + at), 0, 0);
            }
    release();
}

static void compare_unfold(void)
{
    for (int i = 0; i < WINDOWS; i++) check_columns(windows + i);
}
#define compare_fold compare_unfold

/* As expect(), also of infinities. */
static void expect_sum(const char *what, const char *y, int64_t i, long double sum, double terms)
{
    if (isinf(sum))
        ck_assert_msg(get(y, i) == sum, "%s[%d] is %Lg, expected %Lg", what, (int)i, get(y, i),
                      sum);
    else
        expect(what, y, i, sum, 4, terms);
}

/* Elements have few different values, so that several of a window are its largest. */
static void check_pools(const ng_windows *w, bool add)
{
    const int64_t taps = w->kernel[0] * w->kernel[1], out = w->out[0] * w->out[1];
    const int64_t plane = w->size[0] * w->size[1], size = w->planes * plane;
    const int64_t count = w->planes * out;
    const char *dy = uniform(count, -1, 1);
    char *x = make(size), *most = make(count), *mean = make(count);
    char *dmost = constant(size, 1), *dmean = constant(size, 1);
    for (int64_t i = 0; i < size; i++) put(x, i, (double)ng_rng_below(table_rng(), 5) - 2);
    k->max_pool(w, x, most);
    k->mean_pool(w, x, mean);
    k->max_pool_backward(w, x, most, dy, dmost, add);
    k->mean_pool_backward(w, dy, dmean, add);
    long double *to_most = keep(size, sizeof *to_most), *to_mean = keep(size, sizeof *to_mean);
    for (int64_t o = 0; o < count; o++) {
        const int64_t p = o / out * plane, r = o % out / w->out[1], c = o % w->out[1];
        long double sum = 0, top = -(long double)INFINITY, ties = 0;
        for (int64_t t = 0; t < taps; t++) {
            const int64_t at = seen(w, t, r, c);
            if (at < 0) continue;
            const long double value = get(x, p + at);
            ties = value > top ? 1 : ties + (value == top);
            top = fmaxl(top, value);
            sum += value;
        }
        expect_sum("max_pool", most, o, top, 0);
        expect("mean_pool", mean, o, sum / (long double)taps, 1, 1);
        for (int64_t t = 0; t < taps; t++) {
            const int64_t at = seen(w, t, r, c);
            if (at < 0) continue;
            if (get(x, p + at) == top) to_most[p + at] += get(dy, o) / ties;
            to_mean[p + at] += get(dy, o) / (long double)taps;
        }
    }
    for (int64_t i = 0; i < size; i++) {
        expect("max_pool gradient", dmost, i, to_most[i] + add, 4, (double)taps);
        expect("mean_pool gradient", dmean, i, to_mean[i] + add, 4, 2);
    }
    release();
}

static void compare_max_pool(void)
{
    for (int i = 0; i < 2 * WINDOWS; i++) check_pools(windows + i / 2, i % 2);
}
#define compare_max_pool_backward compare_max_pool
#define compare_mean_pool compare_max_pool
#define compare_mean_pool_backward compare_max_pool

/* ---- Another size ------------------------------------------------------------------------- */

/* Places and shares along an axis `from` -> `to`. Some shares are 0, and that of the last element
 * is. */
static void spread_over(ng_resizing *s, int axis, bool shared)
{
    const int64_t from = s->size[axis], to = s->out[axis];
    int64_t *low = keep(to, sizeof *low);
    char *share = uniform(to, 0, 1);
    for (int64_t i = 0; i < to; i++) {
        low[i] = i * from / to;
        if (i % 3 == 1 || low[i] == from - 1) put(share, i, 0);
    }
    s->low[axis] = low;
    s->share[axis] = shared ? share : NULL;
}

/* The factor of x[i] in y[o] of a plane. */
static long double part_of(const ng_resizing *s, int64_t o, int64_t i)
{
    long double part = 1;
    for (int axis = 0; axis < 2; axis++) {
        const int64_t at = axis == 0 ? o / s->out[1] : o % s->out[1];
        const int64_t from = axis == 0 ? i / s->size[1] : i % s->size[1];
        const long double f = s->share[axis] ? get(s->share[axis], at) : 0;
        const int64_t low = s->low[axis][at];
        part *= from == low ? 1 - f : from == low + 1 ? f : 0;
    }
    return part;
}

static void check_resize(ng_resizing s, bool lines_shared, bool shared, bool add)
{
    const int64_t plane = s.size[0] * s.size[1], out = s.out[0] * s.out[1];
    spread_over(&s, 0, lines_shared);
    spread_over(&s, 1, shared);
    const char *x = uniform(s.planes * plane, -1, 1), *dy = uniform(s.planes * out, -1, 1);
    char *y = make(s.planes * out), *dx = constant(s.planes * plane, 1);
    k->resize(&s, x, y);
    k->resize_backward(&s, dy, dx, add);
    long double *back = keep(s.planes * plane, sizeof *back);
    for (int64_t p = 0; p < s.planes; p++)
        for (int64_t o = 0; o < out; o++) {
            long double value = 0;
            for (int64_t i = 0; i < plane; i++) {
                const long double part = part_of(&s, o, i);
                value += part * get(x, p * plane + i);
                back[p * plane + i] += part * get(dy, p * out + o);
            }
            expect("resize", y, p * out + o, value, 4, 1);
        }
    const double seen_by = 4 + (double)(out / plane);
    for (int64_t i = 0; i < s.planes * plane; i++)
        expect("resize gradient", dx, i, back[i] + add, 4, seen_by);
    release();
}

static void compare_resize(void)
{
    static const ng_resizing cases[] = {
        {.planes = 3, .size = {4, 5}, .out = {8, 10}},
        {.planes = 2, .size = {7, 11}, .out = {3, 4}},
        {.planes = 1, .size = {2, 3}, .out = {3, 2100}}, /* in pieces */
        {.planes = 2, .size = {1, 1300}, .out = {1, 40}},
        {.planes = 2, .size = {9, 1}, .out = {10, 1}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int mode = 0; mode < 8; mode++) check_resize(cases[i], mode & 1, mode & 2, mode & 4);
}
#define compare_resize_backward compare_resize

/* ---- Attention ---------------------------------------------------------------------------- */

/* One head of one batch, and its memory. */
typedef struct {
    const ng_attention_shape *shape;
    int64_t batch, head;
    const char *q, *k, *v, *mask, *dy;
    char *y, *dq, *dk, *dv;
    double *scores; /* what forward keeps for backward: (2, queries) per head */
    bool add;
} attention_case;

static int64_t place(const ng_head_strides *s, const attention_case *c, int64_t row, int64_t d)
{
    return c->batch * s->batch + c->head * s->head + row * s->row + d;
}

/* The factor of key j in dropout's result for query i: 0, or 1 / (1 - p). */
static long double kept(const attention_case *c, int64_t i, int64_t j)
{
    const ng_attention_shape *s = c->shape;
    if (s->dropout == 0) return 1;
    const ng_drop_key key = ng_drop_key_of(s, c->batch * s->heads + c->head, j);
    if (ng_drop_bits(key, (uint32_t)i) < ng_drop_limit(s)) return 0;
    return 1 / (1 - (long double)s->dropout);
}

static bool sees(const attention_case *c, int64_t i, int64_t j)
{
    const ng_attention_shape *s = c->shape;
    if (c->mask && get(c->mask, c->batch * s->keys + j) == 0) return false;
    return !s->causal || j <= i + s->keys - s->queries;
}

/* p (keys) = softmax of the scores of query i; gives their log-sum-exp, 0 where it sees none. */
static long double weights_of(const attention_case *c, int64_t i, long double *p)
{
    const ng_attention_shape *s = c->shape;
    long double most = -(long double)INFINITY, sum = 0;
    for (int64_t j = 0; j < s->keys; j++) {
        p[j] = 0;
        for (int64_t d = 0; d < s->dim; d++)
            p[j] += (long double)s->scale * get(c->q, place(&s->q, c, i, d)) *
                    get(c->k, place(&s->k, c, j, d));
        if (sees(c, i, j)) most = fmaxl(most, p[j]);
    }
    for (int64_t j = 0; j < s->keys; j++) sum += p[j] = sees(c, i, j) ? expl(p[j] - most) : 0;
    for (int64_t j = 0; j < s->keys; j++) p[j] = sum == 0 ? 0 : p[j] / sum;
    return sum == 0 ? 0 : most + logl(sum);
}

/* Compares y and dq of each query with their formulas (attention.inc); sums dk and dv. */
static void check_head(const attention_case *c, long double *dk, long double *dv)
{
    const ng_attention_shape *s = c->shape;
    long double *p = keep(s->keys, sizeof *p), *ds = keep(s->keys, sizeof *ds);
    for (int64_t i = 0; i < s->queries; i++) {
        long double delta = 0;
        const long double lse = weights_of(c, i, p);
        const double *most = c->scores + 2 * (c->batch * s->heads + c->head) * s->queries + i;
        const double share = most[s->queries];
        assert_near(share == 0 ? 0 : *most - log(share), (double)lse, 64 * ulp);
        for (int64_t j = 0; j < s->keys; j++) {
            ds[j] = 0;
            for (int64_t d = 0; d < s->dim; d++)
                ds[j] += get(c->dy, place(&s->y, c, i, d)) * get(c->v, place(&s->v, c, j, d));
            ds[j] *= kept(c, i, j);
            delta += p[j] * ds[j];
        }
        for (int64_t j = 0; j < s->keys; j++)
            ds[j] = p[j] * (ds[j] - delta) * (long double)s->scale;
        for (int64_t d = 0; d < s->dim; d++) {
            long double y = 0, dq = c->add;
            for (int64_t j = 0; j < s->keys; j++) {
                y += p[j] * kept(c, i, j) * get(c->v, place(&s->v, c, j, d));
                dq += ds[j] * get(c->k, place(&s->k, c, j, d));
                dk[j * s->dim + d] += ds[j] * get(c->q, place(&s->q, c, i, d));
                dv[j * s->dim + d] += p[j] * kept(c, i, j) * get(c->dy, place(&s->y, c, i, d));
            }
            expect("attention", c->y, place(&s->y, c, i, d), y, 64, 1);
            expect("dq", c->dq, place(&s->q, c, i, d), dq, 64, (double)s->dim);
        }
    }
}

static void check_attention(ng_attention_shape s, bool masked, bool add)
{
    const int64_t width = s.heads * s.dim; /* heads beside each other in a row */
    s.q = s.y = (ng_head_strides){s.queries * width, s.dim, width};
    s.k = s.v = add ? (ng_head_strides){s.keys * width, s.keys * s.dim, s.dim} /* apart */
                    : (ng_head_strides){s.keys * width, s.dim, width};
    const int64_t queries = s.batches * s.q.batch, keys = s.batches * s.k.batch;
    attention_case c = {.shape = &s,
                        .q = uniform(queries, -1, 1),
                        .k = uniform(keys, -1, 1),
                        .v = uniform(keys, -1, 1),
                        .dy = uniform(queries, -1, 1),
                        .y = make(queries),
                        .dq = constant(queries, 1),
                        .dk = constant(keys, 1),
                        .dv = constant(keys, 1),
                        .scores = doubles(2 * s.batches * s.heads * s.queries),
                        .add = add};
    char *mask = constant(s.batches * s.keys, 1);
    for (int64_t i = 0; i < s.batches * s.keys; i++)
        if (i / s.keys == 1 || i % 3 == 0) put(mask, i, 0); /* the second batch has no key at all */
    c.mask = or_null(mask, masked);
    const ng_attention_inputs in = {c.q, c.k, c.v, c.mask};
    k->attention(&s, in, c.y, c.scores);
    k->attention_backward(&s, in, c.y, c.scores, c.dy,
                          (ng_attention_gradients){{c.dq, add}, {c.dk, add}, {c.dv, add}});
    for (; c.batch < s.batches; c.batch++)
        for (c.head = 0; c.head < s.heads; c.head++) {
            long double *dk = keep(s.keys * s.dim, sizeof *dk);
            long double *dv = keep(s.keys * s.dim, sizeof *dv);
            check_head(&c, dk, dv);
            for (int64_t i = 0; i < s.keys * s.dim; i++) {
                const int64_t at = place(&s.k, &c, i / s.dim, i % s.dim);
                expect("dk", c.dk, at, dk[i] + add, 64, (double)s.queries);
                expect("dv", c.dv, at, dv[i] + add, 64, (double)s.queries);
            }
        }
    release();
}

static void compare_attention(void)
{
    /* Tails of every kind, several blocks of queries and keys, heads deeper than a block. */
    static const int64_t sizes_of[][3] = {{1, 1, 1},     {3, 5, 67},    {64, 64, 32},
                                          {70, 131, 13}, {130, 65, 16}, {67, 66, 131}};
    for (int mode = 0; mode < 6 * 4; mode++) {
        const int64_t *size = sizes_of[mode / 4];
        const ng_attention_shape shape = {.batches = 2,
                                          .heads = size[2] > 100 ? 1 : 2,
                                          .queries = size[0],
                                          .keys = size[1],
                                          .dim = size[2],
                                          .scale = 2 / sqrt((double)size[2]),
                                          .causal = mode & 1,
                                          .dropout = mode & 2 ? 0.25 : 0,
                                          .seed = mode & 4 ? UINT64_MAX : 7};
        check_attention(shape, mode % 3 != 1, mode % 3 == 0);
    }
}
#define compare_attention_backward compare_attention

static void compare_rotate(void)
{
    for (int64_t dim = 2; dim < 40; dim += 6) {
        const ng_rotation_shape s = {
            .rows = 6, .length = 3, .features = 2 * dim + 5, .rotated = 2 * dim, .dim = dim};
        const char *x = uniform(s.rows * s.features, -1, 1);
        const char *table = uniform(s.length * dim, -1, 1);
        char *y = make(s.rows * s.features);
        k->rotate(&s, x, table, y);
        for (int64_t i = 0; i < s.rows * s.features; i++) {
            const int64_t j = i % s.features, pair = j % dim / 2, a = i - j % 2;
            if (j >= s.rotated) {
                expect("rotate", y, i, get(x, i), 0, 0);
                continue;
            }
            const int64_t row = i / s.features % s.length * dim;
            const long double cosine = get(table, row + pair);
            const long double sine = get(table, row + dim / 2 + pair);
            expect("rotate", y, i,
                   j % 2 ? get(x, a) * sine + get(x, a + 1) * cosine
                         : get(x, a) * cosine - get(x, a + 1) * sine,
                   2, 1);
        }
        release();
    }
}

/* ---- The list ----------------------------------------------------------------------------- */

static ng_kernels planted;
static jmp_buf called;
static void leave(void) { longjmp(called, 1); }

#define X(returns, name, arguments)                                                                \
    static void plant_##name(void) { planted.name = (returns(*) arguments)leave; }
#include "kernels/kernels.def"
#undef X

static const struct {
    const char *name;
    void (*compare)(void), (*plant)(void);
} list[] = {
#define X(returns, name, arguments) {#name, compare_##name, plant_##name},
#include "kernels/kernels.def"
#undef X
};
enum { KERNELS = sizeof list / sizeof list[0] };

/* Processors with fused multiply-add give the same bits; the table "baseline" has bits of its own.
 */
LOOP_TEST(every_kernel_matches_long_double_with_the_same_bits_in_every_table, (2 * KERNELS))
{
    const int kernel = _i / 2;
    uint64_t bits = 0;
    const char *first = NULL;
    for (int i = 0; i < kernel; i++)
        if (list[i].compare == list[kernel].compare) return; /* together with that one */
    for (int isa = 0; isa < ISAS; isa++) {
        if (!use_table(2 * isa + _i % 2)) continue;
        begin_again();
        list[kernel].compare();
        if (!strcmp(k->isa, "baseline")) continue;
        if (first)
            ck_assert_msg(bits == bits_seen(), "%s of %s: the bits differ between %s and %s",
                          list[kernel].name, ng_dtype_name(dtype), first, k->isa);
        bits = bits_seen(), first = k->isa;
    }
}

/* A kernel cannot be on the list without being compared. */
LOOP_TEST(every_comparison_calls_its_kernel, KERNELS)
{
    ck_assert(use_table(2 * ISAS - 2) || use_table(0)); /* baseline, or what there is */
    planted = *k;
    k = &planted;
    list[_i].plant();
    if (!setjmp(called)) {
        list[_i].compare();
        ck_abort_msg("the comparison of %s does not call it", list[_i].name);
    }
    release();
}
