/* Numbers near the ends of the range and far from zero: norms against long double, attention,
 * softmax, losses and activations. */
#include "core/shape.h"
#include "fixture.h"
#include "support.h"
#include "tape/tape.h"
#include <float.h>

/* ---- The norms ------------------------------------------------------------------------------
 *
 * x is (N, C, L). A norm takes elements together, those of one group, and scales and shifts each
 * by the gamma and beta of one index. */

typedef struct {
    int64_t n, c, l;
} place;

typedef ng_tensor *norm_call(ng_tensor *x, ng_tensor *gamma, ng_tensor *beta, double eps);

typedef struct {
    const char *name;
    norm_call *call;
    int64_t (*group)(place at, place size), (*affine)(place at, place size);
    bool centred, plain;                    /* plain: without gamma and beta */
    bool constant_mean, constant_deviation; /* in the gradient */
} norm_case;

static int64_t by_row(place at, place size) { return at.n * size.c + at.c; }
static int64_t by_sample(place at, place size) { return (void)size, at.n; }
static int64_t by_channel(place at, place size) { return (void)size, at.c; }
static int64_t by_position(place at, place size) { return at.n * size.l + at.l; }
static int64_t by_half(place at, place size) { return at.n * 2 + at.c / (size.c / 2); }
static int64_t by_last(place at, place size) { return (void)size, at.l; }
static int64_t by_matrix(place at, place size) { return at.c * size.l + at.l; }
static int64_t by_all(place at, place size) { return (void)at, (void)size, 0; }

#define CALL(name, expression)                                                                     \
    static ng_tensor *name(ng_tensor *x, ng_tensor *gamma, ng_tensor *beta, double eps)            \
    {                                                                                              \
        (void)gamma, (void)beta, (void)eps;                                                        \
        return expression;                                                                         \
    }
#define BATCH(x) ng_batch_norm(tape, x, gamma, beta, NG_NONE, NG_NONE, .eps = eps, .training = true)

static ng_tensor *as_rows(ng_tensor *x) { return ng_reshape(tape, x, NG_SHAPE(-1, ng_dim(x, 2))); }

CALL(layer, ng_layer_norm(tape, x, gamma, beta, eps))
CALL(layer_of_matrices,
     ng_layer_norm(tape, x, ng_reshape(tape, gamma, NG_SHAPE(ng_dim(x, 1), ng_dim(x, 2))),
                   ng_reshape(tape, beta, NG_SHAPE(ng_dim(x, 1), ng_dim(x, 2))), eps))
CALL(rms, ng_row_norm(tape, x, gamma, beta, .eps = eps, .rms = true))
CALL(batch, BATCH(x))
CALL(batch_of_rows, ng_reshape(tape, BATCH(as_rows(x)), ng_shape_of(x)))
CALL(group, ng_group_norm(tape, x, gamma, beta, .groups = 2, .eps = eps))
CALL(instance, ng_instance_norm(tape, x, gamma, beta, eps))
CALL(channel, ng_channel_norm(tape, x, gamma, beta, eps))
CALL(detach_none, ng_detach_norm(tape, x, .eps = eps))
CALL(detach_mean, ng_detach_norm(tape, x, .eps = eps, .detach_mean = true))
CALL(detach_deviation, ng_detach_norm(tape, x, .eps = eps, .detach_deviation = true))
CALL(detach_both,
     ng_detach_norm(tape, x, .eps = eps, .detach_mean = true, .detach_deviation = true))
CALL(weight, ng_reshape(tape,
                        ng_weight_norm(tape, as_rows(x),
                                       own(ng_full_new(ng_dtype_of(x),
                                                       NG_SHAPE(ng_dim(x, 0) * ng_dim(x, 1)),
                                                       sqrt((double)ng_dim(x, 2))))),
                        ng_shape_of(x)))
CALL(scale, ng_scale_norm(tape, x,
                          own(ng_full_new(ng_dtype_of(x), NG_SHAPE(1), sqrt((double)ng_dim(x, 2)))),
                          eps *(double)ng_dim(x, 2)))

enum { ROWS, RMS, COLUMNS };
static const norm_case norms[] = {
    [ROWS] = {"layer_norm", layer, by_row, by_last, true, false, false, false},
    [RMS] = {"rms_norm", rms, by_row, by_last, false, false, false, false},
    [COLUMNS] = {"batch_norm of rows", batch_of_rows, by_last, by_last, true, false, false, false},
    {"layer_norm of matrices", layer_of_matrices, by_sample, by_matrix, true, false, false, false},
    {"batch_norm", batch, by_channel, by_channel, true, false, false, false},
    {"group_norm", group, by_half, by_channel, true, false, false, false},
    {"instance_norm", instance, by_row, by_channel, true, false, false, false},
    {"channel_norm", channel, by_position, by_channel, true, false, false, false},
    {"detach_norm", detach_none, by_row, by_all, true, true, false, false},
    {"weight_norm", weight, by_row, by_all, false, true, false, false},
    {"scale_norm", scale, by_row, by_all, false, true, false, false},
    {"detach_norm (mean)", detach_mean, by_row, by_all, true, true, true, false},
    {"detach_norm (deviation)", detach_deviation, by_row, by_all, true, true, false, true},
    {"detach_norm (both)", detach_both, by_row, by_all, true, true, true, true},
};
enum { NORMS = sizeof norms / sizeof *norms, NOT_DETACHED = NORMS - 3 };

static const place sizes[] = {{4, 6, 5}, {2, 4, 300}, {300, 20, 2}, {3, 300, 2}, {1, 6, 768}};
enum { SIZES = sizeof sizes / sizeof *sizes };

/* ---- The reference: sums in long double, relative to the group's first element ---- */

/* A number, and the size of the terms it is made of: where these cancel, an error is relative to
 * them and not to what is left. */
typedef struct {
    long double value, terms;
} figure;

typedef struct {
    int64_t count;
    long double first, sum, squares, off; /* of x - first; off: sum |x - mean| */
    long double g, gx, g_terms, gx_terms; /* of dy gamma */
} totals;

typedef struct {
    ng_tensor *x, *gamma, *beta, *dy;
    figure *y, *dx, *dgamma, *dbeta;
    double eps;
} problem;

static int64_t affine_size(const norm_case *norm, place size)
{
    const place last = {size.n - 1, size.c - 1, size.l - 1};
    return norm->affine(last, size) + 1;
}

static place place_of(int64_t i, place size)
{
    return (place){i / size.l / size.c, i / size.l % size.c, i % size.l};
}

static long double at(const ng_tensor *x, int64_t i) { return (long double)ng_get(x, i); }

static void *room(int64_t count, size_t bytes)
{
    void *memory = calloc((size_t)count, bytes);
    ck_assert_ptr_nonnull(memory);
    return memory;
}

static long double mean_of(const norm_case *norm, const totals *t)
{
    return norm->centred ? t->sum / (long double)t->count : 0;
}

static long double rstd_of(const totals *t, double eps)
{
    return 1 / sqrtl(t->squares / (long double)t->count + (long double)eps);
}

/* Unless the mean is exact, the sum that makes it has terms of the size of a deviation. */
static void solve(const norm_case *norm, place size, bool exact_mean, problem *p)
{
    const int64_t count = size.n * size.c * size.l, affine = affine_size(norm, size);
    p->y = room(count, sizeof *p->y), p->dx = room(count, sizeof *p->dx);
    p->dgamma = room(affine, sizeof *p->dgamma), p->dbeta = room(affine, sizeof *p->dbeta);
    totals *all = room(count, sizeof *all);
    for (int64_t i = 0; i < count; i++) {
        const place here = place_of(i, size);
        totals *t = &all[norm->group(here, size)];
        if (t->count++ == 0) t->first = norm->centred ? at(p->x, i) : 0;
        t->sum += at(p->x, i) - t->first;
    }
    for (int64_t i = 0; i < count; i++) {
        const place here = place_of(i, size);
        totals *t = &all[norm->group(here, size)];
        const long double d = (at(p->x, i) - t->first) - mean_of(norm, t);
        t->squares += d * d, t->off += norm->centred ? fabsl(d) : 0;
    }
    for (int64_t i = 0; i < count; i++) {
        const place here = place_of(i, size);
        totals *t = &all[norm->group(here, size)];
        const int64_t a = norm->affine(here, size);
        const long double gamma = norm->plain ? 1 : at(p->gamma, a);
        const long double beta = norm->plain ? 0 : at(p->beta, a), dy = at(p->dy, i);
        const long double xhat = ((at(p->x, i) - t->first) - mean_of(norm, t)) * rstd_of(t, p->eps);
        const long double off =
            exact_mean ? 0 : t->off / (long double)t->count * rstd_of(t, p->eps);
        const long double terms = fabsl(xhat) + off;
        p->y[i] = (figure){xhat * gamma + beta, terms * fabsl(gamma) + fabsl(beta)};
        t->g += dy * gamma, t->g_terms += fabsl(dy * gamma);
        t->gx += dy * gamma * xhat, t->gx_terms += fabsl(dy * gamma * xhat);
        p->dgamma[a].value += dy * xhat, p->dgamma[a].terms += fabsl(dy) * terms;
        p->dbeta[a].value += dy, p->dbeta[a].terms += fabsl(dy);
    }
    for (int64_t i = 0; i < count; i++) {
        const place here = place_of(i, size);
        const totals *t = &all[norm->group(here, size)];
        const long double rstd = rstd_of(t, p->eps), n = (long double)t->count;
        const long double xhat = ((at(p->x, i) - t->first) - mean_of(norm, t)) * rstd;
        const long double gamma = norm->plain ? 1 : at(p->gamma, norm->affine(here, size));
        const long double g = at(p->dy, i) * gamma;
        const long double by_mean = norm->centred && !norm->constant_mean ? 1 / n : 0;
        const long double by_deviation = norm->constant_deviation ? 0 : xhat / n;
        p->dx[i] =
            (figure){rstd * (g - by_mean * t->g - by_deviation * t->gx),
                     rstd * (fabsl(g) + by_mean * t->g_terms + fabsl(by_deviation) * t->gx_terms)};
    }
    free(all);
}

static void release(problem *p) { free(p->y), free(p->dx), free(p->dgamma), free(p->dbeta); }

/* The error of element i; `least`, the smallest number of the dtype, is no error. */
static double error_of(const ng_tensor *actual, const figure *expected, int64_t i)
{
    const double least = ng_dtype_of(actual) == NG_F32 ? 0x1p-149 : 0x1p-1074;
    if (isnan(ng_get(actual, i))) return (double)NAN;
    if (isinf(ng_get(actual, i)) && fabsl(expected[i].value) > (long double)FLT_MAX) return 0;
    return (double)fmaxl(fabsl(at(actual, i) - expected[i].value) - 4 * (long double)least, 0);
}

static double largest_of(const figure *x, int64_t count)
{
    double largest = 0;
    for (int64_t i = 0; i < count; i++) largest = fmax(largest, fabs((double)x[i].value));
    return largest;
}

/* Each element within the tolerance of its terms. Where `strict`, gradients are also within it of
 * the largest of all; and elements of dx, whose terms cancel most, within 30 times of their own
 * size or a thousandth of the largest. */
static void assert_figures(const norm_case *norm, const char *what, const ng_tensor *actual,
                           const figure *expected, double tolerance, bool strict)
{
    assert_ok(actual);
    const bool gradient = strict && what[0] != 'y';
    const double largest = largest_of(expected, ng_size(actual));
    for (int64_t i = 0; i < ng_size(actual); i++) {
        const double error = error_of(actual, expected, i);
        const double size = fmax(fabs((double)expected[i].value), largest / 1000);
        double bound = tolerance * (double)expected[i].terms;
        if (gradient) bound = fmin(bound, tolerance * largest);
        if (gradient && strstr(what, "dx")) bound = fmin(bound, 30 * tolerance * size);
        if (!(error <= bound))
            ck_abort_msg("%s of %s %s %s: element %lld is %.9Lg, expected %.9Lg: error %.2g, "
                         "allowed %.2g",
                         what, ng_dtype_name(ng_dtype_of(actual)), norm->name,
                         ng_shape_print(ng_shape_of(actual)).text, (long long)i, at(actual, i),
                         expected[i].value, error, bound);
    }
}

typedef struct {
    ng_dtype dtype;
    double mean, deviation, eps;
    double dy; /* its deviation */
} range;

static const range ranges[] = {
    {NG_F32, 0.5, 2, 1e-5, 0.1},           {NG_F32, 1e6, 1, 1e-5, 0.1},
    {NG_F32, 1e30, 1e30, 1e-5, 0.1},       {NG_F32, 3e37, 5e37, 1e-5, 0.1},
    {NG_F32, 1e-30, 1e-30, 1e-5, 0.1},     {NG_F32, 1e-30, 1e-30, NG_ZERO, 0.1},
    {NG_F32, 2e-38, 1e-37, NG_ZERO, 0.1},  {NG_F32, 100, 1e-4, 1e-12, 0.1},
    {NG_F64, 0.5, 2, 1e-5, 0.1},           {NG_F64, 1e6, 1, 1e-5, 0.1},
    {NG_F64, 1e9, 1, 1e-5, 0.1},           {NG_F64, 1e12, 1, 1e-5, 0.1},
    {NG_F64, 1e30, 1e30, 1e-5, 0.1},       {NG_F64, 1e149, 1e149, 1e-5, 0.1},
    {NG_F64, 1e-30, 1e-30, NG_ZERO, 0.1},  {NG_F64, 1e-148, 1e-149, NG_ZERO, 0.1},
    {NG_F64, 1e-149, 2e-149, 4e-298, 0.1}, {NG_F64, 1e149, 1e149, 1e-5, 1e100},
};
enum { RANGES = sizeof ranges / sizeof *ranges };

static problem pose(const norm_case *norm, place size, const range *of)
{
    const ng_shape shape = NG_SHAPE(size.n, size.c, size.l);
    const ng_shape affine = NG_SHAPE(affine_size(norm, size));
    return (problem){.x = normal_with(of->dtype, shape, of->mean, of->deviation, 7),
                     .gamma = normal_with(of->dtype, affine, 1, 0.3, 11),
                     .beta = normal_with(of->dtype, affine, 0, 0.3, 12),
                     .dy = normal_with(of->dtype, shape, 0, of->dy, 13),
                     .eps = norm->call == weight ? NG_ZERO : of->eps};
}

/* Compositions of ops square x and cube 1 / deviation: they are for numbers that are not so far
 * from 1 as those that the kernels take. */
static bool suits_compositions(const range *of)
{
    const double most = of->dtype == NG_F32 ? 1e12 : 1e100;
    return of->deviation < most && of->deviation > 1 / most;
}

/* A few roundings, of double a dozen: sums here are of up to 12,000 terms. */
static double tolerance_of(ng_dtype dtype) { return dtype == NG_F32 ? 1e-6 : 3e-15; }

/* Result and gradients, computed by kernels and recorded, of a random x that `change` may change.
 * Where `strict`, the mean of up to 2048 floats counts as exact. */
static void check_norm(const norm_case *norm, place size, const range *of,
                       void (*change)(ng_tensor *x), bool strict)
{
    static const char *const names[2][3] = {{"dx", "dgamma", "dbeta"},
                                            {"recorded dx", "recorded dgamma", "recorded dbeta"}};
    problem p = pose(norm, size, of);
    if (change) change(p.x);
    const double tolerance = tolerance_of(of->dtype);
    solve(norm, size, strict && size.c < 2049 && size.l < 2049, &p);
    ng_tensor *y = norm->call(p.x, p.gamma, p.beta, p.eps);
    ng_tensor *inputs[] = {p.x, p.gamma, p.beta}, *gradients[3];
    const figure *const expected[] = {p.dx, p.dgamma, p.dbeta};
    const int count = norm->plain ? 1 : 3;
    assert_figures(norm, "y", y, p.y, tolerance, strict);
    for (int record = 0; record < 1 + suits_compositions(of); record++) {
        assert_ok(ng_gradients(tape, &y, 1, inputs, count, gradients, .cotangents = &p.dy,
                               .record = record));
        for (int i = 0; i < count; i++)
            assert_figures(norm, names[record][i], gradients[i], expected[i], tolerance, strict);
    }
    release(&p);
    tear_down();
    set_up();
}

FIXTURE(set_up, tear_down)

LOOP_TEST(norms_and_their_gradients_keep_their_digits_at_any_size, RANGES)
{
    if (!long_double_is_long()) return;
    const int count = suits_compositions(&ranges[_i]) ? NORMS : NOT_DETACHED;
    for (int i = 0; i < count; i++)
        for (int j = 0; j < SIZES; j++) check_norm(&norms[i], sizes[j], &ranges[_i], NULL, false);
}

/* Lengths around the widths of vector registers, around the runs that are summed in float, and of
 * several runs; of rows, and of columns, of which there may be few. */
LOOP_TEST(rows_and_columns_of_any_length_keep_their_digits, COLUMNS + 1)
{
    static const int64_t lengths[] = {63,   64,   65,   79,   127,  128,  129,  131,  200,  255,
                                      2049, 2100, 2560, 3072, 3585, 3840, 4095, 4096, 6000, 8191};
    if (!long_double_is_long()) return;
    const norm_case *norm = &norms[_i];
    for (int64_t n = 1; n <= 20; n++) {
        check_norm(norm, (place){1, _i == COLUMNS ? 16 : 3, n}, &(range){NG_F32, 1, 2, 1e-5, 1},
                   NULL, false);
        if (n > 1) check_norm(norm, (place){1, n, 3}, &(range){NG_F32, 5, 1, 1e-5, 1}, NULL, false);
    }
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (int mean = 0; mean < 20; mean += 9) {
            const int64_t n = lengths[i], others = n < 256 ? 21 : 3;
            check_norm(norm, _i == COLUMNS ? (place){1, n, others} : (place){1, others, n},
                       &(range){NG_F32, mean, 2, 1e-5, 1}, NULL, n > 255);
        }
}

/* ---- Unusual elements ---- */

static void set_all(ng_tensor *x) { ng_fill(x, 0.1); }

static void set_the_first_far_off(ng_tensor *x) { ng_set(x, 0, 1e5); }

static void move_some_far_off(ng_tensor *x)
{
    for (int64_t i = 0; i < ng_size(x); i += 256) ng_set(x, i, 1e4 + ng_get(x, i));
}

/* A column of outliers, one near the end of float's range, one far from zero, one of zeros. */
static void scale_some_columns(ng_tensor *x)
{
    for (int64_t i = 0; i < ng_size(x); i++) {
        const int64_t row = i / ng_dim(x, 2), column = i % ng_dim(x, 2);
        const double value = ng_get(x, i);
        if (column == 3 && row % 48 == 0) ng_set(x, i, 1000);
        if (column == 20) ng_set(x, i, 1e30 * value);
        if (column == 21) ng_set(x, i, 1e6 + value);
        if (column == 30) ng_set(x, i, 0);
    }
}

/* Squares of these are 0 in float, and so is the sum of those of the first column. */
static void set_column_of_tiny_numbers(ng_tensor *x)
{
    for (int64_t i = 0; i < ng_size(x); i += ng_dim(x, 2))
        ng_set(x, i, i / ng_dim(x, 2) % 2 ? 1e-30 : -1e-30);
}

static const struct {
    int norm;
    place size;
    double mean, deviation, eps;
    void (*change)(ng_tensor *x);
} unusual[] = {
    {ROWS, {1, 4, 1024}, 0.5, 1, 1e-5, move_some_far_off},
    {ROWS, {1, 1, 5000}, 0.5, 1.5, 1e-5, set_the_first_far_off},
    {ROWS, {1, 16, 64}, 0, 1, 1e-5, set_all},
    {RMS, {1, 16, 64}, 0, 1, 1e-5, set_all},
    {COLUMNS, {1, 16, 64}, 0, 1, 1e-5, set_all},
    {ROWS, {1, 5, 1024}, 0, 1, 1e-5, set_all},
    {RMS, {1, 5, 1024}, 0, 1, 1e-5, set_all},
    {COLUMNS, {1, 1024, 37}, 0, 1, 1e-5, set_all},
    {COLUMNS, {1, 773, 37}, 0.5, 2, 1e-5, NULL},
    {COLUMNS, {1, 773, 37}, 1e6, 1, 1e-5, NULL},
    {COLUMNS, {1, 773, 37}, 1e30, 1e30, 1e-5, NULL},
    {COLUMNS, {1, 773, 37}, 1e-30, 1e-30, 1e-5, NULL},
    {COLUMNS, {1, 773, 37}, 0, 1, 1e-5, scale_some_columns},
    {COLUMNS, {1, 300, 37}, 0, 1e-30, NG_ZERO, set_column_of_tiny_numbers},
};

LOOP_TEST(unusual_elements_cost_the_others_no_digits, (sizeof unusual / sizeof *unusual))
{
    if (!long_double_is_long()) return;
    const range of = {NG_F32, unusual[_i].mean, unusual[_i].deviation, unusual[_i].eps, 1};
    check_norm(&norms[unusual[_i].norm], unusual[_i].size, &of, unusual[_i].change, true);
}

/* For rows of mean 1e6. */
LOOP_TEST(second_order_of_norms_in_float_agrees_with_double, NOT_DETACHED)
{
    const norm_case *norm = &norms[_i];
    const place size = {4, 6, 8};
    const ng_shape shape = NG_SHAPE(size.n, size.c, size.l);
    ng_tensor *x = normal_with(NG_F32, shape, 1e6, 1, 7),
              *dy = normal_with(NG_F32, shape, 0, 1, 13);
    ng_tensor *second[2];
    for (int k = 0; k < 2; k++) {
        const ng_dtype dtype = k ? NG_F64 : NG_F32;
        const ng_shape affine = NG_SHAPE(affine_size(norm, size));
        ng_tensor *at_x = ng_require_grad(own(ng_copy_new(x, dtype)));
        ng_tensor *y = norm->call(at_x, own(ng_ones_new(dtype, affine)),
                                  own(ng_zeros_new(dtype, affine)), 1e-5);
        ng_tensor *weighed = ng_mul(tape, y, own(ng_copy_new(dy, dtype)));
        ng_tensor *dx = ng_gradient(tape, ng_sum(tape, weighed), at_x, .record = true);
        second[k] = ng_gradient(tape, ng_sum(tape, ng_square(tape, dx)), at_x);
        assert_ok(second[k]);
    }
    double error = 0, largest = 0;
    for (int64_t i = 0; i < ng_size(x); i++) {
        error = fmax(error, fabs(ng_get(second[0], i) - ng_get(second[1], i)));
        largest = fmax(largest, fabs(ng_get(second[1], i)));
    }
    assert_near(error, 0, 2e-6 * largest);
}

/* Float would lose five digits of a sum of a million products. */
TEST(spectral_norm_takes_sigma_in_double)
{
    const int64_t n = 1000;
    ng_tensor *w = normal_with(NG_F32, NG_SHAPE(n, n), 1, 1, 7);
    ng_tensor *u = own(ng_full_new(NG_F32, NG_SHAPE(n), 1)), *v = u;
    double sigma = 0;
    for (int64_t i = 0; i < n * n; i++) sigma += ng_get(w, i);
    ng_tensor *y = ng_spectral_norm(tape, w, u, v);
    for (int64_t i = 0; i < n * n; i += 997)
        assert_near(ng_get(y, i), ng_get(w, i) / sigma, 7e-8 * fabs(ng_get(w, i)) / sigma);
    ng_tensor *dw =
        ng_gradient(tape, ng_sum(tape, y), w); /* n^2 entries: 1/sigma - sum w/sigma^2 */
    assert_near(ng_get(dw, 5), 0, 1e-12 / sigma * (double)n);
    ng_tensor *large = own(ng_full_new(NG_F32, NG_SHAPE(4, 4), 1e38)); /* sigma is 1.6e39 */
    ng_tensor *one = own(ng_full_new(NG_F32, NG_SHAPE(4), 1));
    assert_close(ng_get(ng_spectral_norm(tape, large, one, one), 3), 1.0 / 16, 1e-7);
}

/* ---- Softmax, losses, activations ------------------------------------------------------------ */

/* The gradient is the softmax, however much the value was rounded. */
LOOP_TEST(logsumexp_of_large_numbers_has_the_gradient_of_small_ones, 8)
{
    const ng_dtype dtype = _i % 2 ? NG_F64 : NG_F32;
    const double shift[] = {0, -1e4, 1e5, -1e6}; /* by which x moves without rounding */
    ng_tensor *x = own(ng_tensor_from(dtype, NG_SHAPE(3), NG_VALUES(0, 1, 0.5)));
    x = ng_require_grad(own(ng_copy_new(ng_add_scalar(tape, x, shift[_i / 2]), dtype)));
    ng_tensor *y = ng_logsumexp(tape, x);
    ng_tensor *dx = ng_gradient(tape, y, x, .record = true);
    const double sum = 1 + exp(1) + exp(0.5), tolerance = _i % 2 ? 1e-15 : 3e-7;
    assert_values(dx, tolerance, 1 / sum, exp(1) / sum, exp(0.5) / sum);
    ng_tensor *first = ng_slice(tape, dx, 0, 0, 1); /* p0 (1 - p0), -p0 p1, -p0 p2 */
    assert_values(ng_gradient(tape, first, x), 2 * tolerance, (1 - 1 / sum) / sum,
                  -exp(1) / sum / sum, -exp(0.5) / sum / sum);
}

/* For x from -10 to 10. */
LOOP_TEST(second_order_of_activations_in_float_agrees_with_double, 5)
{
    static ng_tensor *(*const calls[])(ng_tape *, ng_tensor *) = {ng_gelu_tanh, ng_silu, ng_sigmoid,
                                                                  ng_softplus, ng_gelu};
    ng_tensor *x = own(ng_zeros_new(NG_F32, NG_SHAPE(2001))), *second[2];
    for (int64_t i = 0; i < 2001; i++) ng_set(x, i, (double)(i - 1000) / 100 + 1e-3);
    for (int k = 0; k < 2; k++) {
        ng_tensor *at_x = ng_require_grad(own(ng_copy_new(x, k ? NG_F64 : NG_F32)));
        ng_tensor *y = ng_sum(tape, calls[_i](tape, at_x));
        ng_tensor *dx = ng_gradient(tape, y, at_x, .record = true);
        second[k] = ng_gradient(tape, ng_sum(tape, dx), at_x);
    }
    for (int64_t i = 0; i < 2001; i++)
        assert_near(ng_get(second[0], i), ng_get(second[1], i), 5 * (double)FLT_EPSILON);
}

/* The gradient is softmax - onehot, however much the value was rounded. */
LOOP_TEST(cross_entropy_of_large_logits_has_the_gradient_of_small_ones, 8)
{
    const ng_dtype dtype = _i % 2 ? NG_F64 : NG_F32;
    const double shifts[] = {0, -1e5, 1e6, 1e9},
                 shift = dtype == NG_F32 && _i / 2 == 3 ? 1e7 : shifts[_i / 2];
    ng_tensor *x =
        ng_require_grad(own(ng_tensor_from(dtype, NG_SHAPE(1, 2), NG_VALUES(shift, shift + 1))));
    ng_tensor *label = own(ng_tensor_from(NG_I64, NG_SHAPE(1), NG_VALUES(0)));
    const double p = 1 / (1 + exp(-1)), tolerance = _i % 2 ? 4e-16 : 3e-7;
    ng_tensor *loss = ng_cross_entropy(tape, x, label);
    assert_values(ng_gradient(tape, loss, x), tolerance, -p, p);
    assert_values(ng_gradient(tape, loss, x, .record = true), tolerance, -p, p);
}

static ng_tensor *swiglu_of(ng_tape *t, ng_tensor *a)
{
    return ng_swiglu(t, ng_stack(t, NG_TENSORS(a, ng_ones_like(t, a)), -1));
}

static ng_tensor *huber_of(ng_tape *t, ng_tensor *x)
{
    return ng_huber(t, x, ng_zeros_like(t, x), .reduction = NG_EACH);
}

/* Functions whose ends are a line through 0 or a constant. */
static const struct {
    const char *name;
    ng_tensor *(*call)(ng_tape *, ng_tensor *);
    double left_slope, left, right_slope, right; /* y = slope x, or the constant */
} ends[] = {
    {"silu", ng_silu, 0, 0, 1, 0},
    {"swiglu", swiglu_of, 0, 0, 1, 0},
    {"gelu", ng_gelu, 0, 0, 1, 0},
    {"gelu_tanh", ng_gelu_tanh, 0, 0, 1, 0},
    {"softplus", ng_softplus, 0, 0, 1, 0},
    {"relu", ng_relu, 0, 0, 1, 0},
    {"hardswish", ng_hardswish, 0, 0, 1, 0},
    {"huber", huber_of, -1, 0, 1, 0},
    {"sigmoid", ng_sigmoid, 0, 0, 0, 1},
    {"tanh", ng_tanh, 0, -1, 0, 1},
    {"erf", ng_erf, 0, -1, 0, 1},
    {"erfc", ng_erfc, 0, 2, 0, 0},
    {"atan", ng_atan, 0, -1.5707963267948966, 0, 1.5707963267948966},
};
enum { ENDS = sizeof ends / sizeof *ends };

/* At a large x, with a dy; the gradient of the gradient is 0. */
static void check_end(int i, ng_dtype dtype, double at, double dy)
{
    const double slope = at < 0 ? ends[i].left_slope : ends[i].right_slope;
    const double y = at < 0 ? ends[i].left : ends[i].right;
    const double tolerance = dtype == NG_F32 ? 1e-7 : 1e-15;
    ng_tensor *x = ng_require_grad(own(ng_full_new(dtype, NG_SHAPE(1), at)));
    ng_tensor *value = ends[i].call(tape, x), *dx;
    ng_tensor *cotangent = own(ng_full_new(dtype, ng_shape_of(value), dy));
    assert_close(ng_item(value), slope != 0 ? slope * ng_item(x) : y, tolerance);
    for (int record = 0; record < 2; record++) {
        assert_ok(
            ng_gradients(tape, &value, 1, &x, 1, &dx, .cotangents = &cotangent, .record = record));
        ck_assert_msg(fabs(ng_item(dx) - slope * dy) <= tolerance,
                      "%s slope of %s %s at %g times %g is %g, expected %g",
                      record ? "recorded" : "fused", ng_dtype_name(dtype), ends[i].name, at, dy,
                      ng_item(dx), slope * dy);
    }
    if (!ng_requires_grad(dx)) return; /* straight lines */
    ck_assert_msg(fabs(ng_item(ng_gradient(tape, dx, x))) <= tolerance,
                  "second slope of %s %s at %g", ng_dtype_name(dtype), ends[i].name, at);
}

LOOP_TEST(functions_keep_their_limits_in_gradients_of_any_kind, ENDS)
{
    static const double far[] = {1e17, 1e20, 1e38, 3.4e38, 1e160, 1e308, 1.7e308, (double)INFINITY};
    for (int i = 0; i < 8; i++)
        for (int k = 0; k < 8; k++) {
            const ng_dtype dtype = k & 1 ? NG_F64 : NG_F32;
            check_end(_i, dtype, k & 2 ? far[i] : -far[i], k & 4 ? -10 : 1);
        }
}

/* Positive elements have no part in the gradient to the slope. */
TEST(prelu_of_infinity_has_no_gradient_to_the_slope)
{
    ng_tensor *slope = ng_require_grad(own(ng_full_new(NG_F32, NG_SHAPE(1), 0.25)));
    ng_tensor *x = own(ng_tensor_from(NG_F32, NG_SHAPE(3), NG_VALUES((double)INFINITY, -2, 0)));
    for (int record = 0; record < 2; record++)
        assert_values(
            ng_gradient(tape, ng_sum(tape, ng_prelu(tape, x, slope)), slope, .record = record), 0,
            -2);
}

TEST(prelu_of_a_scalar_is_a_scalar)
{
    ng_tensor *x = own(ng_require_grad(ng_full_new(NG_F64, NG_SCALAR, -3)));
    ng_tensor *slope = own(ng_require_grad(ng_full_new(NG_F64, NG_SHAPE(1), 0.5)));
    ng_tensor *y = ng_prelu(tape, x, slope);
    ck_assert(ng_shape_equal(ng_shape_of(y), NG_SCALAR));
    assert_values(y, 0, -1.5);
    assert_values(ng_gradient(tape, y, slope), 0, -3);
    assert_values(ng_gradient(tape, y, x), 0, 0.5);
}

/* The second derivative of the left branch: alpha e^0, and of celu 1 / alpha. */
TEST(second_slope_of_elu_at_zero_is_that_of_the_left)
{
    ng_tensor *x = ng_require_grad(own(ng_zeros_new(NG_F64, NG_SHAPE(1))));
    ng_tensor *elu = ng_gradient(tape, ng_elu(tape, x, 0.7), x, .record = true);
    ng_tensor *celu = ng_gradient(tape, ng_celu(tape, x, 0.5), x, .record = true);
    assert_close(ng_item(ng_gradient(tape, elu, x)), 0.7, 1e-15);
    assert_close(ng_item(ng_gradient(tape, celu, x)), 2, 1e-15);
}

static const struct {
    double x, t, loss, slope;
} logistic[] = {
    {(double)INFINITY, 0, (double)INFINITY, 1},
    {(double)INFINITY, 1, 0, 0},
    {-(double)INFINITY, 0, 0, 0},
    {-(double)INFINITY, 1, (double)INFINITY, -1},
    {(double)INFINITY, 0.25, (double)INFINITY, .75},
    {-(double)INFINITY, 0.25, (double)INFINITY, -.25},
    {1e30, 0, 1e30, 1},
    {1e30, 1, 0, 0},
    {-1e30, 1, 1e30, -1},
    {30, 1, 9.3576229688397e-14, -9.3576229688393e-14},
    {-30, 0, 9.3576229688397e-14, 9.3576229688393e-14},
    {0, 0.5, 0.69314718055994531, 0},
    {1e-9, 0, 0.69314718105994531, 0.50000000025},
    {-1e-30, 1, 0.69314718055994531, -0.5},
    {2, 0, 2.1269280110429727, 0.88079707797788243},
    {2, 1, 0.12692801104297250, -0.11920292202211756},
};
enum { LOGISTIC = sizeof logistic / sizeof *logistic };

LOOP_TEST(binary_cross_entropy_of_any_logit, 2 * LOGISTIC)
{
    const ng_dtype dtype = _i % 2 ? NG_F64 : NG_F32;
    const double tolerance = _i % 2 ? 1e-13 : 1e-6, x = logistic[_i / 2].x;
    ng_tensor *logit = ng_require_grad(own(ng_full_new(dtype, NG_SHAPE(1), x)));
    ng_tensor *target = ng_require_grad(own(ng_full_new(dtype, NG_SHAPE(1), logistic[_i / 2].t)));
    ng_tensor *loss = ng_binary_cross_entropy(tape, logit, target);
    if (isinf(logistic[_i / 2].loss))
        ck_assert(isinf(ng_item(loss)) && ng_item(loss) > 0);
    else
        assert_close(ng_item(loss), logistic[_i / 2].loss, tolerance);
    for (int record = 0; record < 2; record++) {
        ng_tensor *dx = ng_gradient(tape, loss, logit, .record = record);
        assert_close(ng_item(dx), logistic[_i / 2].slope, tolerance);
        ng_tensor *dt = ng_gradient(tape, loss, target, .record = record);
        ck_assert(ng_item(dt) == -(dtype == NG_F32 ? (double)(float)x : x) ||
                  fabs(ng_item(dt) + x) <= tolerance * fabs(x));
    }
}

/* ---- Attention ---------------------------------------------------------------------------- */

/* Around the smallest x whose e^x is normal, its multiples, and up to the ends of the range. */
static const double scores[] = {
    0,    1,    -1,    88.5,    -88.375,  -88.5, -89,     -90,   -265.875, -266, -443.25,
    300,  -300, -708,  -709.75, -709.875, -710,  -745.25, -1490, 1e4,      -1e4, 1e8,
    -1e8, 1e10, -1e10, -1e11,   1e20,     -1e20, 1e30,    -1e30, 3e38,     -3e38};
enum { SCORES = sizeof scores / sizeof *scores };

/* With equal scores all keys have the same share. */
LOOP_TEST(equal_scores_share_alike, 2 * SCORES)
{
    enum { KEYS = 130, QUERIES = 35 };
    const ng_dtype dtype = _i % 2 ? NG_F64 : NG_F32;
    const double score = scores[_i / 2], tolerance = _i % 2 ? 1e-13 : 2e-6;
    ng_tensor *q = ng_require_grad(own(ng_ones_new(dtype, NG_SHAPE(1, 1, QUERIES, 1))));
    ng_tensor *k = ng_require_grad(own(ng_full_new(dtype, NG_SHAPE(1, 1, KEYS, 1), score)));
    ng_tensor *v = ng_require_grad(own(ng_ones_new(dtype, NG_SHAPE(1, 1, KEYS, 1))));
    for (int64_t i = 0; i < KEYS; i += 2) ng_set(v, i, 3);
    ng_tensor *y = ng_attention(tape, q, k, v, NG_NONE, .scale = 1);
    ng_tensor *inputs[] = {q, k, v}, *dy = own(ng_ones_new(dtype, ng_shape_of(y)));
    for (int64_t i = 0; i < QUERIES; i++) assert_close(ng_get(y, i), 2, tolerance);
    for (int record = 0; record < 2; record++) {
        ng_tensor *gradients[3];
        assert_ok(
            ng_gradients(tape, &y, 1, inputs, 3, gradients, .cotangents = &dy, .record = record));
        for (int64_t i = 0; i < QUERIES; i++)
            assert_near(ng_get(gradients[0], i), 0, tolerance * fabs(score));
        for (int64_t i = 0; i < KEYS; i++) {
            const double of_key = (double)QUERIES / (double)KEYS;
            assert_close(ng_get(gradients[1], i), i % 2 ? -of_key : of_key, tolerance);
            assert_close(ng_get(gradients[2], i), of_key, tolerance);
        }
    }
}

typedef struct {
    ng_tensor *y, *dq, *dk, *dv;
} attended;

/* Scores are shift + a b, with a and b multiples of 1/4, and exact. */
static attended attend(ng_dtype dtype, double shift, int variant, bool define)
{
    enum { QUERIES = 40, KEYS = 70 };
    ng_rng rng = ng_rng_seeded(5);
    ng_tensor *q = ng_require_grad(own(ng_ones_new(dtype, NG_SHAPE(1, 1, QUERIES, 2))));
    ng_tensor *k = ng_require_grad(own(ng_full_new(dtype, NG_SHAPE(1, 1, KEYS, 2), shift)));
    ng_tensor *v = ng_require_grad(own(ng_normal_new(dtype, NG_SHAPE(1, 1, KEYS, 2), 0, 1, &rng)));
    ng_tensor *dy = own(ng_normal_new(dtype, NG_SHAPE(1, 1, QUERIES, 2), 0, 1, &rng));
    ng_tensor *mask = own(ng_ones_new(dtype, NG_SHAPE(1, KEYS)));
    for (int64_t i = 0; i < QUERIES; i++) ng_set(q, 2 * i + 1, (double)(i * 7 % 13 - 6) / 4);
    for (int64_t i = 0; i < KEYS; i++) ng_set(k, 2 * i + 1, (double)(i * 5 % 17 - 8) / 4);
    for (int64_t i = 0; i < KEYS; i += 3) ng_set(mask, i, 0);
    ng_tensor *inputs[] = {q, k, v}, *gradients[3] = {NULL};
    ng_tensor *y = ng_attention(tape, q, k, v, variant & 2 ? mask : NG_NONE, .scale = 1,
                                .causal = variant & 1, .dropout = variant & 4 ? 0.4 : 0);
    assert_ok(ng_gradients(tape, &y, 1, inputs, 3, gradients, .cotangents = &dy, .record = define));
    const ng_node *node = ng_node_of(y);
    if (define) y = node->op->definition(tape, node);
    assert_ok(y);
    return (attended){y, gradients[0], gradients[1], gradients[2]};
}

static void assert_within(const ng_tensor *actual, const ng_tensor *expected, double tolerance)
{
    for (int64_t i = 0; i < ng_size(expected); i++)
        assert_near(ng_get(actual, i), ng_get(expected, i), tolerance);
}

LOOP_TEST(scores_far_from_zero_keep_their_digits, 80)
{
    static const double shifts[] = {0, -88.5, -89, -265.875, 300, -300, -709.875, 1e4, -1e4, 1e5};
    const double shift = shifts[_i / 8];
    for (int k = 0; k < 2; k++) {
        const double tolerance = k ? 2e-14 : 4e-6;
        const attended expected = attend(NG_F64, shift, _i % 8, true);
        ng_tape *rest = tape;
        tape = ng_tape_new(); /* the same masks of dropout */
        const attended actual = attend(k ? NG_F64 : NG_F32, shift, _i % 8, false);
        assert_within(actual.y, expected.y, tolerance);
        assert_within(actual.dq, expected.dq, tolerance * (2 + fabs(shift)));
        assert_within(actual.dk, expected.dk, tolerance * 5);
        assert_within(actual.dv, expected.dv, tolerance * 5);
        ng_tape_free(tape);
        tape = rest;
        tear_down();
        set_up();
    }
}
