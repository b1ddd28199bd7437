/* Rows on which norms lose digits, far from zero, tiny, huge, with an outlier, nearly constant, and
 * their correctly rounded results: tests/golden/hard_norms.npz (tests/accuracy/README.md). */
#include "norm.h"
#include "support/exact.h"

enum { NORMS = 2, ARRAYS = 5 };
static const char *const inputs[ARRAYS] = {"x", "dy", "v", "gamma", "beta"};
static const char *const results[EXACT_RESULTS] = {"y", "dx", "dgamma", "d2x", "d2dy"};
static const char *const norms[NORMS] = {"layer", "rms"};

static ng_tensor *array(bool single, const char *kind, const char *name)
{
    char full[64];
    snprintf(full, sizeof full, "%s_%s%s%s", single ? "f32" : "f64", kind, *kind ? "_" : "", name);
    return own(ng_tensor_read_npz("tests/golden/hard_norms.npz", full));
}

/* The row of a matrix as doubles. */
static void copy_row(const ng_tensor *from, int64_t row, double *to)
{
    const int64_t n = ng_dim(from, 1);
    for (int64_t i = 0; i < n; i++) to[i] = ng_get(from, row * n + i);
}

enum { N = 37 };
typedef struct {
    bool single, rms;
    double numbers[ARRAYS][N];
} hard_row;

/* The library's results for a row, in float or double. */
static void compute(const hard_row *r, double y[EXACT_RESULTS][N])
{
    const ng_dtype dtype = r->single ? NG_F32 : NG_F64;
    ng_tensor *in[ARRAYS], *dx[2], *second[2];
    for (int i = 0; i < ARRAYS; i++) {
        const ng_shape shape = i < 3 ? NG_SHAPE(1, N) : NG_SHAPE(N);
        in[i] = ng_variable(tape, ng_from(tape, dtype, shape, r->numbers[i], N));
    }
    ng_tensor *out = ng_row_norm(tape, in[0], in[3], in[4], .rms = r->rms, .eps = 0x1p-17);
    ng_tensor *const parameters[] = {in[0], in[3]};
    assert_ok(ng_gradients(tape, &out, 1, parameters, 2, dx, .cotangents = &in[1], .record = true));
    assert_ok(ng_gradients(tape, dx, 1, in, 2, second, .cotangents = &in[2]));
    const ng_tensor *const all[] = {out, dx[0], dx[1], second[0], second[1]};
    for (int i = 0; i < EXACT_RESULTS; i++)
        for (int k = 0; k < N; k++) y[i][k] = ng_get(all[i], k);
    ng_tape_reset(tape);
}

static exact right[EXACT_RESULTS][N];

static void compute_exactly(const hard_row *r)
{
    exact *to[EXACT_RESULTS];
    for (int i = 0; i < EXACT_RESULTS; i++) to[i] = right[i];
    const double(*a)[N] = r->numbers;
    exact_norm(&(exact_rows){1, N, 0x1p-17, r->rms, false, a[0], a[1], a[2], a[3], a[4]}, to);
}

/* Calls `expect` with each result of each row and its correctly rounded numbers. */
static void each_row(bool single,
                     void (*expect)(const hard_row *r, int which, const double *correct))
{
    const ng_tensor *x = array(single, "", "x");
    ck_assert_int_eq(ng_dim(x, 1), N);
    for (int norm = 0; norm < NORMS; norm++)
        for (int64_t row = 0; row < ng_dim(x, 0); row++) {
            hard_row r = {.single = single, .rms = norm == 1};
            for (int i = 0; i < ARRAYS; i++)
                copy_row(array(single, "", inputs[i]), row, r.numbers[i]);
            compute_exactly(&r);
            for (int i = 0; i < EXACT_RESULTS; i++) {
                double correct[N];
                copy_row(array(single, norms[norm], results[i]), row, correct);
                expect(&r, i, correct);
            }
        }
}

/* The reference of `make accuracy` is within a unit in the last place of what fractions give, or,
 * where terms cancel, 1e-28 of them. */
static void expect_reference(const hard_row *r, int which, const double *correct)
{
    const double unit = r->single ? 0x1p-23 : 0x1p-52, least = r->single ? 0x1p-149 : 0x1p-1074;
    for (int k = 0; k < N; k++)
        assert_near(right[which][k].high, correct[k],
                    unit * fabs(correct[k]) + 1e-28 * right[which][k].terms + least);
}

START_TEST(reference_is_exact) { each_row(_i, expect_reference); }

/* The bounds of norm_ops.h. */
static void expect_bound(const hard_row *r, int which, const double *correct)
{
    double y[EXACT_RESULTS][N];
    compute(r, y);
    const double bound = r->single ? 1e-6 : 3e-15;
    const double least = r->single ? 0x1p-148 : 0x1p-1073;
    for (int k = 0; k < N; k++)
        assert_near(y[which][k], correct[k], bound * right[which][k].terms + least);
}

START_TEST(library_is_within_the_bounds) { each_row(_i, expect_bound); }

/* BatchNorm drops what is subnormal beside gamma. */
START_TEST(batch_norm_of_subnormal_floats_is_near)
{
    static const double values[] = {1e-40, 3e-40, -2.3e-40};
    ng_tensor *x = ng_from(tape, NG_F32, NG_SHAPE(3, 1), values, 3);
    const ng_tensor *y = ng_batch_norm(tape, x, NG_NONE, NG_NONE, NG_NONE, NG_NONE,
                                       .training = true, .eps = 0x1p-17);
    const double mean = (ng_get(x, 0) + ng_get(x, 1) + ng_get(x, 2)) / 3;
    for (int i = 0; i < 3; i++)
        assert_near(ng_get(y, i), (ng_get(x, i) - mean) / sqrt(0x1p-17), 1.2e-38);
}

Suite *hard_norms_suite(void)
{
    Suite *suite = suite_create("hard_norms");
    TCase *tests = add_case(suite, set_up, tear_down);
    add_tests(tests, batch_norm_of_subnormal_floats_is_near);
    add_loops(tests, 2, reference_is_exact, library_is_within_the_bounds);
    return suite;
}
