/* Ops: worked values, closed forms, edge cases and errors; and every case of the op table in double
 * and float, fused and composed, recorded or not. */
#include "ops/op.h"
#include "support/fixture.h"
#include "support/support.h"
#include <float.h>

/* ---- The tape and the operands of a test --------------------------------------------------- */

#define CONSTANT(shape, ...) own(ng_tensor_from(NG_F64, shape, NG_VALUES(__VA_ARGS__)))
#define INDEX(shape, ...) own(ng_tensor_from(NG_I64, shape, NG_VALUES(__VA_ARGS__)))
#define LEAF(shape, ...) ng_require_grad(CONSTANT(shape, __VA_ARGS__))

static ng_tensor *zeros(ng_shape shape)
{
    return ng_require_grad(own(ng_zeros_new(NG_F64, shape)));
}

/* The gradient of sum(y), computed by kernels and recorded. */
#define assert_gradient(y, x, relative, ...)                                                       \
    do {                                                                                           \
        assert_values(ng_gradient(tape, y, x), relative, __VA_ARGS__);                             \
        assert_values(ng_gradient(tape, y, x, .record = true), relative, __VA_ARGS__);             \
    } while (0)

#define assert_shape(x, ...) ck_assert(ng_shape_equal(ng_shape_of(x), NG_SHAPE(__VA_ARGS__)))

/* ---- Arithmetic ---------------------------------------------------------------------------- */

/* Slopes are compared with differences for every case (gradcheck). */
START_TEST(arithmetic_gives_worked_values)
{
    ng_tensor *a = LEAF(NG_SHAPE(3), 1, 2, 4), *b = LEAF(NG_SHAPE(3), 2, -4, 0.5);
    assert_values(ng_add(tape, a, b), 0, 3, -2, 4.5);
    assert_values(ng_sub(tape, a, b), 0, -1, 6, 3.5);
    assert_values(ng_mul(tape, a, b), 0, 2, -8, 2);
    assert_values(ng_div(tape, a, b), 0, 0.5, -0.5, 8);
    assert_values(ng_pow(tape, a, b), 1e-15, 1, 1.0 / 16, 2);
    assert_values(ng_maximum(tape, a, b), 0, 2, 2, 4);
    assert_values(ng_minimum(tape, a, b), 0, 1, -4, 0.5);
    assert_values(ng_add_scalar(tape, b, 1.5), 0, 3.5, -2.5, 2);
    assert_values(ng_mul_scalar(tape, b, -3), 0, -6, 12, -1.5);
    assert_values(ng_scalar_sub(tape, 1, b), 0, -1, 5, 0.5);
    assert_values(ng_scalar_div(tape, 3, b), 0, 1.5, -0.75, 6);
    assert_values(ng_pow_scalar(tape, b, 3), 0, 8, -64, 0.125);
}

/* An exponent that floats do not have, such as 1/3, is not rounded to one: the power is within 0.7
 * units of its last place. */
START_TEST(powers_of_floats_have_the_exponent_that_was_given)
{
    for (double exponent = -3; exponent < 3; exponent += 0.1)
        for (int e = -120; e < 120; e++) {
            const double base = (double)(float)ldexp(1.3, e);
            const double exact = (double)powl((long double)base, (long double)exponent);
            if (!(exact > 0x1p-126 && exact < 0x1p127)) continue;
            ng_tensor *x = ng_from(tape, NG_F32, NG_SHAPE(1), &base, 1);
            const double off = ng_item(ng_pow_scalar(tape, x, exponent)) - exact;
            const double unit = ldexp(1, ilogb(exact) - 23);
            ck_assert_msg(fabs(off) <= 0.7 * unit, "%g^%g is off by %g units", base, exponent,
                          off / unit);
            ng_tape_reset(tape);
        }
    ng_tensor *x = ng_from(tape, NG_F32, NG_SHAPE(1), (double[]){-1}, 1);
    ck_assert(ng_item(ng_pow_scalar(tape, x, 0x1p24 + 1)) == -1);
}

/* The limit of ln(a) a^b, and PyTorch's choice at (0, 0); 0^-1 is infinite. */
START_TEST(powers_of_zero_have_a_gradient_to_the_exponent)
{
    ng_tensor *a = LEAF(NG_SHAPE(4), 0, 0, 0, 2), *b = LEAF(NG_SHAPE(4), 2, 1, 0, 0);
    ng_tensor *y = ng_pow(tape, a, b);
    assert_values(y, 0, 0, 0, 1, 1);
    assert_gradient(y, a, 0, 0, 1, 0, 0);
    assert_gradient(y, b, 1e-15, 0, 0, 0, log(2));
    ng_tensor *negative = LEAF(NG_SHAPE(1), -1), *zero = LEAF(NG_SHAPE(1), 0);
    ck_assert(!isfinite(ng_get(ng_gradient(tape, ng_pow(tape, zero, negative), negative), 0)));
    ng_tensor *slope = ng_gradient(tape, y, a, .record = true); /* b a^(b-1) */
    assert_values(ng_gradient(tape, ng_slice(tape, slope, 0, 3, 4), b), 1e-15, 0, 0, 0, 0.5);
}

START_TEST(whole_powers_have_finite_gradients_of_every_order_at_zero)
{
    ng_tensor *x = LEAF(NG_SHAPE(2), 0, 3);
    assert_values(ng_pow_scalar(tape, x, 0), 0, 1, 1);
    assert_gradient(ng_pow_scalar(tape, x, 0), x, 0, 0, 0);
    assert_gradient(ng_pow_scalar(tape, x, 1), x, 0, 1, 1);
    ng_tensor *slope = ng_gradient(tape, ng_pow_scalar(tape, x, 2), x, .record = true);
    assert_values(slope, 0, 0, 6);
    ng_tensor *curvature = ng_gradient(tape, slope, x, .record = true);
    assert_values(curvature, 0, 2, 2);
    assert_values(ng_gradient(tape, curvature, x), 0, 0, 0);
}

START_TEST(ties_share_the_gradient_equally)
{
    ng_tensor *a = LEAF(NG_SHAPE(3), 1, 2, 3), *b = LEAF(NG_SHAPE(3), 1, 3, 3);
    assert_gradient(ng_maximum(tape, a, b), a, 0, 0.5, 0, 0.5);
    assert_gradient(ng_maximum(tape, a, b), b, 0, 0.5, 1, 0.5);
    assert_gradient(ng_minimum(tape, a, b), a, 0, 0.5, 1, 0.5);
    ng_tensor *x = LEAF(NG_SHAPE(2, 3), 5, 5, 1, 2, 7, 3);
    assert_gradient(ng_max(tape, x, .axes = NG_AXES(1)), x, 0, 0.5, 0.5, 0, 0, 1, 0);
}

/* ---- Broadcasting -------------------------------------------------------------------------- */

START_TEST(operands_broadcast_on_the_left_the_right_and_both)
{
    ng_tensor *matrix = LEAF(NG_SHAPE(2, 3), 1, 2, 3, 4, 5, 6), *scalar = LEAF(NG_SCALAR, 2);
    ng_tensor *row = LEAF(NG_SHAPE(3), 10, 20, 30), *column = LEAF(NG_SHAPE(2, 1), 100, 200);
    ng_tensor *deep = LEAF(NG_SHAPE(2, 1, 3), 1, 2, 3, 4, 5, 6);
    assert_values(ng_mul(tape, matrix, row), 0, 10, 40, 90, 40, 100, 180);
    ng_tensor *left = ng_sub(tape, column, matrix), *both = ng_div(tape, column, row);
    assert_values(left, 0, 99, 98, 97, 196, 195, 194);
    assert_shape(ng_gradient(tape, left, column), 2, 1);
    assert_shape(both, 2, 3);
    assert_values(both, 1e-15, 10, 5, 10.0 / 3, 20, 10, 20.0 / 3);
    assert_gradient(both, column, 1e-15, 11.0 / 60, 11.0 / 60);
    assert_gradient(both, row, 1e-15, -3, -0.75, -1.0 / 3);
    ng_tensor *y = ng_mul(tape, row, deep), *z = ng_mul(tape, scalar, deep);
    assert_shape(y, 2, 1, 3);
    assert_gradient(y, row, 0, 5, 7, 9);
    assert_gradient(z, scalar, 0, 21);
    ck_assert_int_eq(ng_rank(ng_gradient(tape, z, scalar)), 0);
}

/* ---- Wrong use ----------------------------------------------------------------------------- */

START_TEST(wrong_operands_are_errors_and_the_program_goes_on)
{
    ng_tensor *a = zeros(NG_SHAPE(3, 4)), *b = zeros(NG_SHAPE(5)), *labels = INDEX(NG_SHAPE(1), 1);
    ng_tensor *single = own(ng_zeros_new(NG_F32, NG_SHAPE(3, 4))), *empty = zeros(NG_SHAPE(3, 0));
    assert_fails(ng_add(tape, a, b), NG_ESHAPE);
    assert_fails(ng_greater(tape, a, b), NG_ESHAPE);
    assert_fails(ng_where(tape, b, a, a), NG_ESHAPE);
    assert_fails(ng_mul(tape, a, single), NG_EDTYPE);
    assert_fails(ng_exp(tape, labels), NG_EDTYPE);
    assert_fails(ng_mul_scalar(tape, labels, 2), NG_EDTYPE);
    assert_fails(ng_scalar_div(tape, 2, labels), NG_EDTYPE);
    assert_refused(ng_add(tape, a, NG_NONE));
    assert_refused(ng_clamp(tape, a, 2, 1));
    assert_refused(ng_clamp(tape, a, (double)NAN, 1));
    assert_fails(ng_sum_to(tape, a, NG_SHAPE(3)), NG_ESHAPE);
    assert_fails(ng_sum_to(tape, a, NG_SHAPE(1, 3, 4)), NG_ESHAPE);
    assert_fails(ng_broadcast_to(tape, a, NG_SHAPE(3, 3)), NG_ESHAPE);
    assert_fails(ng_broadcast_to(tape, a, NG_SHAPE(4)), NG_ESHAPE);
    assert_fails(ng_cast(tape, a, (ng_dtype)9), NG_EDTYPE);
    assert_fails(ng_full(tape, (ng_dtype)9, NG_SCALAR, 0), NG_EDTYPE);
    assert_fails(ng_full(tape, NG_F32, NG_SHAPE(2, -1), 1), NG_ESHAPE);
    const ng_axes nine = {.count = 9}, minus = {.count = -1};
    assert_fails(ng_sum(tape, a, .axes = NG_AXES(2)), NG_ESHAPE);
    assert_fails(ng_variance(tape, a, .axes = NG_AXES(-3)), NG_ESHAPE);
    assert_fails(ng_mean(tape, a, .axes = NG_AXES(1, -1)), NG_ESHAPE);
    assert_fails(ng_sum(tape, a, .axes = NG_AXES(0, 0)), NG_ESHAPE);
    assert_fails(ng_argmax(tape, a, .axes = NG_AXES(5)), NG_ESHAPE);
    assert_fails(ng_sum(tape, a, .axes = nine), NG_ESHAPE);
    assert_fails(ng_mean(tape, a, .axes = minus), NG_ESHAPE);
    assert_fails(ng_logsumexp(tape, a, .axes = nine), NG_ESHAPE);
    assert_fails(ng_permute(tape, a, nine), NG_ESHAPE);
    assert_refused(ng_mean(tape, a, .unbiased = true));
    assert_refused(ng_prod(tape, a, .unbiased = true));
    assert_refused(ng_norm(tape, a, .unbiased = true));
    assert_fails(ng_max(tape, empty), NG_ESHAPE);
    assert_fails(ng_argmax(tape, empty, .axes = NG_AXES(1)), NG_ESHAPE);
    ck_assert_int_eq(ng_tape_used(tape).ops, 0);
    assert_ok(ng_add(tape, a, a));
    ck_assert(!ng_failed());
}

START_TEST(shapes_that_do_not_fit_are_errors)
{
    ng_tensor *a = zeros(NG_SHAPE(3, 4)), *b = zeros(NG_SHAPE(5, 2)), *v = zeros(NG_SHAPE(5));
    ng_tensor *p = zeros(NG_SHAPE(3, 2, 2)), *q = zeros(NG_SHAPE(4, 2, 2));
    assert_fails(ng_matmul(tape, a, b), NG_ESHAPE);
    assert_fails(ng_matmul(tape, a, b, .transpose_a = true), NG_ESHAPE);
    assert_fails(ng_matmul(tape, v, a), NG_ESHAPE);
    assert_fails(ng_matmul(tape, p, q), NG_ESHAPE);
    assert_fails(ng_linear(tape, a, b, NG_NONE), NG_ESHAPE);
    assert_fails(ng_linear(tape, a, a, v), NG_ESHAPE);
    assert_fails(ng_linear(tape, a, v, NG_NONE), NG_ESHAPE);
    assert_refused(ng_linear(tape, a, NG_NONE, NG_NONE));
    assert_shape(ng_linear(tape, zeros(NG_SHAPE(4)), a, NG_NONE), 3);
    const ng_shape shapes[] = {NG_SHAPE(5, 2),   NG_SHAPE(5, 3),   NG_SHAPE(5, -1), NG_SHAPE(0, -1),
                               NG_SHAPE(-1, -1), NG_SHAPE(-2, -6), {.rank = 9}};
    for (int i = 0; i < 7; i++) assert_fails(ng_reshape(tape, a, shapes[i]), NG_ESHAPE);
    assert_fails(ng_permute(tape, p, NG_AXES(0, 1)), NG_ESHAPE);
    assert_fails(ng_permute(tape, p, NG_AXES(0, 1, 1)), NG_ESHAPE);
    assert_fails(ng_transpose(tape, p, 0, 3), NG_ESHAPE);
    const int64_t bounds[][2] = {{2, 9}, {-5, 2}, {5, NG_END}, {3, 1}};
    for (int i = 0; i < 4; i++)
        assert_fails(ng_slice(tape, a, 1, bounds[i][0], bounds[i][1]), NG_ESHAPE);
    assert_fails(ng_slice(tape, a, 2, 0, 1), NG_ESHAPE);
    assert_refused(ng_pad(tape, a, 1, -1, 2));
    assert_refused(ng_pad(tape, a, 1, 2, -1));
    assert_refused(ng_pad(tape, a, 1, INT64_MAX, 2));
    assert_fails(ng_pad(tape, a, 1, 0, INT64_MAX - 4), NG_ESHAPE);
    assert_fails(ng_concat(tape, (ng_tensor *[]){a, b}, 2, 0), NG_ESHAPE);
    assert_fails(ng_concat(tape, (ng_tensor *[]){a, v}, 2, 1), NG_ESHAPE);
    assert_refused(ng_concat(tape, &a, 0, 0));
    ng_tensor *whole = INDEX(NG_SHAPE(1, 2), 1, 2);
    assert_fails(ng_concat(tape, (ng_tensor *[]){whole, b}, 2, 0), NG_EDTYPE);
    assert_fails(ng_concat(tape, (ng_tensor *[]){b, whole}, 2, 0), NG_EDTYPE);
}

START_TEST(a_wrong_index_is_an_error)
{
    ng_tensor *table = zeros(NG_SHAPE(10, 2)), *none = zeros(NG_SHAPE(0, 2));
    ng_tensor *high = zeros(NG_SHAPE(1, 1, 1, 1, 1, 1, 1, 1)), *one = LEAF(NG_SHAPE(1), 1);
    assert_fails(ng_gather_rows(tape, table, INDEX(NG_SHAPE(4), 0, 1, 9, 12)), NG_ESHAPE);
    assert_fails(ng_gather_rows(tape, table, INDEX(NG_SHAPE(1), -1)), NG_ESHAPE);
    assert_fails(ng_gather_rows(tape, none, INDEX(NG_SHAPE(1), 0)), NG_ESHAPE);
    assert_fails(ng_gather_rows(tape, table, table), NG_EDTYPE);
    assert_refused(ng_gather_rows(tape, table, NG_NONE));
    assert_fails(ng_gather_rows(tape, LEAF(NG_SCALAR, 1), INDEX(NG_SCALAR, 0)), NG_ESHAPE);
    assert_fails(ng_scatter_add_rows(tape, table, INDEX(NG_SHAPE(3), 0, 1, 2), 4), NG_ESHAPE);
    assert_fails(ng_scatter_add_rows(tape, one, INDEX(NG_SHAPE(1), 4), 4), NG_ESHAPE);
    assert_fails(ng_scatter_add_rows(tape, one, INDEX(NG_SHAPE(1), 0), -1), NG_ESHAPE);
    assert_fails(ng_gather_rows(tape, high, INDEX(NG_SHAPE(1, 1), 0)), NG_ESHAPE);
    assert_fails(ng_scatter_add_rows(tape, high, INDEX(NG_SCALAR, 0), 1), NG_ESHAPE);
}

/* ---- Functions of each element ------------------------------------------------------------- */

START_TEST(nan_and_infinities_go_through)
{
    const double inf = (double)INFINITY;
    ng_tensor *x = LEAF(NG_SHAPE(2), (double)NAN, 1), *one = LEAF(NG_SCALAR, 1);
    ck_assert(isnan(ng_get(ng_maximum(tape, one, x), 0)));
    ck_assert(isnan(ng_get(ng_clamp(tape, x, 0, 2), 0)));
    ck_assert(isnan(ng_get(ng_leaky_relu(tape, x, 0.1), 0)));
    ck_assert(isnan(ng_item(ng_sum(tape, x))));
    ck_assert(isnan(ng_item(ng_max(tape, x))));
    ck_assert(isnan(ng_item(ng_logsumexp(tape, x))));
    ng_tensor *ends = LEAF(NG_SHAPE(3), -inf, 0, inf), *edge = LEAF(NG_SHAPE(2), 0, -1);
    assert_values(ng_exp(tape, ends), 0, 0, 1, inf);
    assert_values(ng_clamp(tape, ends, -1, inf), 0, -1, 0, inf);
    ck_assert(ng_get(ng_log(tape, edge), 0) == -inf);
    ck_assert(isnan(ng_get(ng_log(tape, edge), 1)));
    ck_assert(isnan(ng_get(ng_sqrt(tape, edge), 1)));
    ck_assert(ng_get(ng_reciprocal(tape, edge), 0) == inf);
    assert_gradient(ng_relu(tape, x), x, 0, 1, 1);
    assert_gradient(ng_leaky_relu(tape, x, 0.25), x, 0, 0.25, 1);
    assert_gradient(ng_clamp(tape, x, 0, 2), x, 0, 1, 1);
    for (int record = 0; record < 2; record++)
        ck_assert(isnan(ng_get(ng_gradient(tape, ng_abs(tape, x), x, .record = record), 0)));
}

START_TEST(slopes_at_kinks_are_the_documented_ones)
{
    ng_tensor *x = LEAF(NG_SHAPE(3), -1, 0, 1);
    assert_gradient(ng_abs(tape, x), x, 0, -1, 0, 1);
    assert_gradient(ng_relu(tape, x), x, 0, 0, 0, 1);
    assert_gradient(ng_leaky_relu(tape, x, 0.25), x, 0, 0.25, 0.25, 1);
    assert_values(ng_leaky_relu(tape, x, 0.25), 0, -0.25, 0, 1);
    assert_gradient(ng_clamp(tape, x, -1, 0.5), x, 0, 1, 1, 0);
    assert_gradient(ng_clamp(tape, x, -0.5, 0), x, 0, 0, 1, 0);
    ng_tensor *corner = LEAF(NG_SHAPE(2), -3, 3);
    assert_gradient(ng_hardswish(tape, corner), corner, 1e-15, -0.5, 1.5);
}

/* ---- Reductions ---------------------------------------------------------------------------- */

/* The result to which element `index` of x (2, 3, 4, 5) is reduced over the axes in `set`. */
static int64_t target_of(int64_t index, int set)
{
    static const int64_t dims[] = {2, 3, 4, 5};
    int64_t target = 0, stride = 1;
    for (int axis = 3; axis >= 0; axis--) {
        if (!(set >> axis & 1)) {
            target += index % dims[axis] * stride;
            stride *= dims[axis];
        }
        index /= dims[axis];
    }
    return target;
}

typedef struct {
    double sum[120], squares[120], max[120], exponentials[120];
    int64_t count, results;
} reduced;

static reduced reduce_plainly(const ng_tensor *x, int set)
{
    reduced r = {.count = 0};
    for (int64_t i = 0; i < 120; i++) r.max[i] = -DBL_MAX;
    for (int64_t i = 0; i < 120; i++) {
        const int64_t to = target_of(i, set);
        const double value = ng_get(x, i);
        r.sum[to] += value;
        r.exponentials[to] += exp(value);
        r.max[to] = fmax(r.max[to], value);
        r.count += to == 0;
    }
    r.results = 120 / r.count;
    for (int64_t i = 0; i < 120; i++) {
        const int64_t to = target_of(i, set);
        const double deviation = ng_get(x, i) - r.sum[to] / (double)r.count;
        r.squares[to] += deviation * deviation;
    }
    return r;
}

/* Sums of up to 120 values near 1 differ by their order in 120 roundings at most. */
START_TEST(reductions_over_any_axes_are_those_of_plain_loops)
{
    ng_tensor *x = normal(NG_F64, NG_SHAPE(2, 3, 4, 5), 1);
    for (int set = 1; set < 16; set++) {
        ng_axes axes = {.count = 0};
        for (int axis = 3; axis >= 0; axis--)
            if (set >> axis & 1) axes.axis[axes.count++] = axis % 2 ? axis - 4 : axis;
        const reduced r = reduce_plainly(x, set);
        ng_tensor *sum = ng_sum(tape, x, .axes = axes);
        ng_tensor *mean = ng_mean(tape, x, .axes = axes, .keepdim = true);
        ng_tensor *variance = ng_variance(tape, x, .axes = axes);
        ng_tensor *unbiased = ng_variance(tape, x, .axes = axes, .unbiased = true);
        ng_tensor *max = ng_max(tape, x, .axes = axes);
        ng_tensor *lse = ng_logsumexp(tape, x, .axes = axes);
        ck_assert_int_eq(ng_size(sum), r.results);
        ck_assert_int_eq(ng_rank(sum), 4 - axes.count);
        ck_assert_int_eq(ng_rank(mean), 4);
        const double n = (double)r.count, near = 120 * DBL_EPSILON * n;
        for (int64_t i = 0; i < r.results; i++) {
            assert_near(ng_get(sum, i), r.sum[i], near);
            assert_near(ng_get(mean, i), r.sum[i] / n, near);
            assert_near(ng_get(variance, i), r.squares[i] / n, near);
            assert_near(ng_get(unbiased, i), r.squares[i] / (n - 1), near);
            assert_near(ng_get(max, i), r.max[i], 0);
            assert_near(ng_get(lse, i), log(r.exponentials[i]), near);
        }
    }
}

/* Also where float cannot hold the mean: its numbers near 1e7 are whole. */
START_TEST(variance_keeps_its_digits_far_from_zero)
{
    const double means[] = {1e6, 1e7};
    for (int i = 0; i < 2; i++) {
        ng_tensor *x = own(ng_require_grad(ng_zeros_new(NG_F32, NG_SHAPE(7))));
        for (int j = 0; j < 7; j++) ng_set(x, j, means[i] + (j == 2 ? 2 : j % 2 ? -1 : 0));
        ng_tensor *wide = own(ng_require_grad(ng_copy_new(x, NG_F64)));
        ng_tensor *y = ng_variance(tape, x), *expected = ng_variance(tape, wide);
        assert_tensors_close(ng_cast(tape, y, NG_F64), expected, 1e-6);
        assert_tensors_close(ng_cast(tape, ng_gradient(tape, y, x), NG_F64),
                             ng_gradient(tape, expected, wide), 1e-6);
    }
    for (int i = 0; i < 2; i++) {
        ng_tensor *x = own(ng_tensor_from(i ? NG_F32 : NG_F64, NG_SHAPE(4),
                                          NG_VALUES(1e6 - 1, 1e6 + 1, 1e6 - 1, 1e6 + 1)));
        assert_values(ng_variance(tape, x), 1e-7, 1);
    }
    ck_assert(isnan(ng_item(ng_variance(tape, LEAF(NG_SHAPE(1), 5), .unbiased = true))));
    ck_assert(isnan(ng_item(ng_variance(tape, zeros(NG_SHAPE(0)), .unbiased = true))));
}

START_TEST(logsumexp_neither_overflows_nor_vanishes)
{
    const double inf = (double)INFINITY;
    ng_tensor *x = LEAF(NG_SHAPE(5, 2), 1000, 1000, -1000, -1000, -inf, 3, inf, 3, -inf, -inf);
    assert_values(ng_logsumexp(tape, x, .axes = NG_AXES(1)), 1e-15, 1000 + log(2.0),
                  -1000 + log(2.0), 3, inf, -inf);
    ng_tensor *single = own(ng_copy_new(x, NG_F32));
    assert_values(ng_logsumexp(tape, single, .axes = NG_AXES(1)), 1e-7, 1000 + log(2.0),
                  -1000 + log(2.0), 3, inf, -inf);
}

/* A row without elements has the value -Inf and no slope either. */
START_TEST(a_row_of_minus_infinity_has_a_logsumexp_without_slope)
{
    const double inf = (double)INFINITY;
    const int64_t rows[] = {1, 2, 40};
    for (int i = 0; i < 3; i++) {
        ng_tensor *x = own(ng_require_grad(ng_zeros_new(NG_F64, NG_SHAPE(rows[i], 2))));
        ng_set(x, 0, -inf), ng_set(x, 1, -inf);
        ng_tensor *y = ng_logsumexp(tape, x, .axes = NG_AXES(1));
        ng_tensor *dx = ng_gradient(tape, y, x, .record = true);
        assert_tensors_close(dx, ng_gradient(tape, y, x), 1e-15);
        ng_tensor *second = ng_gradient(tape, ng_square(tape, dx), x);
        ck_assert(ng_get(y, 0) == -inf);
        for (int64_t k = 0; k < 2 * rows[i]; k++) {
            assert_close(ng_get(dx, k), k < 2 ? 0 : 0.5, 1e-15);
            assert_close(ng_get(second, k), 0, 1e-15);
        }
    }
    ng_tensor *none = zeros(NG_SHAPE(2, 0)), *y = ng_logsumexp(tape, none, .axes = NG_AXES(1));
    assert_values(y, 0, -inf, -inf);
    ck_assert_int_eq(ng_size(ng_gradient(tape, y, none)), 0);
    assert_values(ng_logsumexp(tape, none), 0, -inf);
}

/* ---- Matrix products ----------------------------------------------------------------------- */

/* Sums of 5 products in another order differ in a few roundings of values below 30. */
static void multiply_plainly(bool ta, bool tb)
{
    ng_tensor *a = normal(NG_F64, ta ? NG_SHAPE(2, 1, 5, 3) : NG_SHAPE(2, 1, 3, 5), 1);
    ng_tensor *b = normal(NG_F64, tb ? NG_SHAPE(4, 2, 5) : NG_SHAPE(4, 5, 2), 2);
    ng_tensor *y = ng_matmul(tape, a, b, .transpose_a = ta, .transpose_b = tb);
    assert_shape(y, 2, 4, 3, 2);
    for (int p = 0; p < 2; p++)
        for (int q = 0; q < 4; q++)
            for (int i = 0; i < 3; i++)
                for (int j = 0; j < 2; j++) {
                    double sum = 0;
                    for (int k = 0; k < 5; k++)
                        sum += (ta ? ng_at(a, p, 0, k, i) : ng_at(a, p, 0, i, k)) *
                               (tb ? ng_at(b, q, j, k) : ng_at(b, q, k, j));
                    assert_near(ng_at(y, p, q, i, j), sum, 1e-14);
                }
}

START_TEST(matmul_multiplies_broadcast_batches_read_either_way)
{
    for (int flags = 0; flags < 4; flags++) multiply_plainly(flags & 1, flags & 2);
}

START_TEST(matmul_of_several_matrices_with_one_has_the_bits_of_each_alone)
{
    ng_tensor *a = normal(NG_F64, NG_SHAPE(2, 4, 3, 5), 1);
    ng_tensor *b = normal(NG_F64, NG_SHAPE(2, 1, 5, 2), 2);
    ng_tensor *copies = ng_broadcast_to(tape, b, NG_SHAPE(2, 4, 5, 2));
    assert_same_bits(ng_matmul(tape, a, b), ng_matmul(tape, a, copies));
}

/* ---- Shape --------------------------------------------------------------------------------- */

START_TEST(reshape_shares_memory_and_finds_an_open_dimension)
{
    ng_tensor *x = LEAF(NG_SHAPE(2, 3), 1, 2, 3, 4, 5, 6);
    ng_tensor *y = ng_reshape(tape, x, NG_SHAPE(3, -1));
    assert_shape(y, 3, 2);
    ck_assert_ptr_eq(ng_data_f64(y), ng_data_f64(x));
    ng_tensor *z = ng_mul(tape, y, CONSTANT(NG_SHAPE(3, 2), 1, 2, 3, 4, 5, 6));
    assert_gradient(z, x, 0, 1, 2, 3, 4, 5, 6);
    assert_shape(ng_gradient(tape, z, x), 2, 3);
    ck_assert_int_eq(ng_rank(ng_reshape(tape, LEAF(NG_SHAPE(1, 1), 7), NG_SCALAR)), 0);
    ck_assert_ptr_eq(ng_reshape(tape, x, x->shape), x);
    ck_assert_ptr_eq(ng_reshape(tape, y, NG_SHAPE(-1, y->shape.dim[1])), y);
}

START_TEST(permute_and_transpose_move_axes)
{
    ng_tensor *x = LEAF(NG_SHAPE(1, 2, 3), 1, 2, 3, 4, 5, 6);
    ng_tensor *y = ng_permute(tape, x, NG_AXES(2, 0, 1));
    assert_shape(y, 3, 1, 2);
    assert_values(y, 0, 1, 4, 2, 5, 3, 6);
    assert_values(ng_permute(tape, x, NG_AXES(-1, 0, -2)), 0, 1, 4, 2, 5, 3, 6);
    ng_tensor *z = ng_mul(tape, y, CONSTANT(NG_SHAPE(3, 1, 2), 1, 2, 3, 4, 5, 6));
    assert_gradient(z, x, 0, 1, 3, 5, 2, 4, 6);
    ng_tensor *t = ng_transpose(tape, x, 0, -1);
    assert_shape(t, 3, 2, 1);
    assert_values(t, 0, 1, 4, 2, 5, 3, 6);
}

START_TEST(broadcast_to_repeats)
{
    ng_tensor *x = LEAF(NG_SHAPE(2, 1), 1, 2);
    ng_tensor *y = ng_broadcast_to(tape, x, NG_SHAPE(2, 2, 3));
    assert_values(y, 0, 1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2);
    assert_gradient(y, x, 0, 6, 6);
    assert_fails(ng_broadcast_to(tape, LEAF(NG_SHAPE(1, 2), 1, 2), NG_SHAPE(2)), NG_ESHAPE);
}

START_TEST(slices_count_from_either_end)
{
    ng_tensor *x = LEAF(NG_SHAPE(2, 4), 1, 2, 3, 4, 5, 6, 7, 8);
    assert_values(ng_slice(tape, x, 1, 1, 3), 0, 2, 3, 6, 7);
    assert_values(ng_slice(tape, x, -1, -2, NG_END), 0, 3, 4, 7, 8);
    assert_values(ng_slice(tape, x, 0, 1, 2), 0, 5, 6, 7, 8);
    assert_gradient(ng_slice(tape, x, 1, -4, -2), x, 0, 1, 1, 0, 0, 1, 1, 0, 0);
    assert_shape(ng_slice(tape, x, 1, 2, 2), 2, 0);
}

START_TEST(pad_puts_zeros_around)
{
    ng_tensor *x = LEAF(NG_SHAPE(2, 1), 3, 4);
    ng_tensor *y = ng_pad(tape, x, 1, 1, 2);
    assert_values(y, 0, 0, 3, 0, 0, 0, 4, 0, 0);
    assert_gradient(ng_square(tape, y), x, 0, 6, 8);
}

START_TEST(concat_joins_and_its_gradient_parts)
{
    ng_tensor *a = LEAF(NG_SHAPE(2, 1), 1, 2), *b = LEAF(NG_SHAPE(2, 2), 3, 4, 5, 6);
    ng_tensor *y = ng_concat(tape, (ng_tensor *[]){a, b}, 2, -1);
    assert_values(y, 0, 1, 3, 4, 2, 5, 6);
    ng_tensor *z = ng_square(tape, y);
    assert_gradient(z, a, 0, 2, 4);
    assert_gradient(z, b, 0, 6, 8, 10, 12);
    assert_fails(ng_concat(tape, (ng_tensor *[]){a, b}, 2, 0), NG_ESHAPE);
    assert_fails(ng_concat(tape, (ng_tensor *[]){a, LEAF(NG_SHAPE(2), 1, 2)}, 2, 1), NG_ESHAPE);
    assert_refused(ng_concat(tape, &a, 0, 0));
}

START_TEST(int64_tensors_move_as_they_are)
{
    const double big = 9007199254740992.0; /* 2^53 */
    ng_tensor *x = INDEX(NG_SHAPE(2, 2), 1, -2, 3, big);
    assert_values(ng_reshape(tape, x, NG_SHAPE(4)), 0, 1, -2, 3, big);
    assert_values(ng_transpose(tape, x, 0, 1), 0, 1, 3, -2, big);
    assert_values(ng_slice(tape, x, 1, 1, 2), 0, -2, big);
    assert_values(ng_pad(tape, x, 0, 0, 1), 0, 1, -2, 3, big, 0, 0);
    assert_values(ng_concat(tape, (ng_tensor *[]){x, x}, 2, 0), 0, 1, -2, 3, big, 1, -2, 3, big);
    assert_values(ng_broadcast_to(tape, INDEX(NG_SHAPE(1), 7), NG_SHAPE(2)), 0, 7, 7);
    assert_values(ng_gather_rows(tape, x, INDEX(NG_SHAPE(1), 1)), 0, 3, big);
    ck_assert_int_eq(ng_dtype_of(ng_transpose(tape, x, 0, 1)), NG_I64);
    ng_tensor *y = zeros(NG_SHAPE(2, 2));
    assert_fails(ng_concat(tape, (ng_tensor *[]){x, y}, 2, 0), NG_EDTYPE);
    assert_fails(ng_concat(tape, (ng_tensor *[]){y, x}, 2, 0), NG_EDTYPE);
}

/* ---- Selection ----------------------------------------------------------------------------- */

START_TEST(gather_takes_rows_and_scatter_adds_them_back)
{
    ng_tensor *table = LEAF(NG_SHAPE(3, 2), 1, 2, 3, 4, 5, 6);
    ng_tensor *index = INDEX(NG_SHAPE(2, 2), 2, 0, 2, 2);
    ng_tensor *y = ng_gather_rows(tape, table, index);
    assert_shape(y, 2, 2, 2);
    assert_values(y, 0, 5, 6, 1, 2, 5, 6, 5, 6);
    assert_gradient(y, table, 0, 1, 1, 0, 0, 3, 3);
    ng_tensor *back = ng_scatter_add_rows(tape, y, index, 4);
    assert_values(back, 0, 1, 2, 0, 0, 15, 18, 0, 0);
    assert_gradient(ng_square(tape, back), table, 0, 2, 4, 0, 0, 90, 108);
    ng_tensor *one = ng_gather_rows(tape, table, INDEX(NG_SCALAR, 1));
    assert_shape(one, 2);
    assert_values(one, 0, 3, 4);
    ng_tensor *high = LEAF(NG_SHAPE(1, 1, 1, 1, 1, 1, 1, 2), 7, 8); /* the result has 8 as well */
    assert_values(ng_gather_rows(tape, high, INDEX(NG_SHAPE(1), 0)), 0, 7, 8);
}

/* 2^24 and 2,000 ones to one place: a sum in float stops at 2^24. */
START_TEST(scatter_counts_beyond_the_digits_of_float)
{
    enum { COUNT = 2003 };
    ng_tensor *x = own(ng_full_new(NG_F32, NG_SHAPE(COUNT), 1));
    ng_tensor *index = own(ng_zeros_new(NG_I64, NG_SHAPE(COUNT)));
    ng_tensor *table = own(ng_require_grad(ng_zeros_new(NG_F32, NG_SHAPE(2))));
    const double most = 0x1p24 + (double)COUNT - 3;
    ng_set(x, 0, 0x1p24);
    ng_set(index, COUNT - 2, 1), ng_set(index, COUNT - 1, 1);
    assert_values(ng_scatter_add_rows(tape, x, index, 3), 0, most, 2, 0);
    assert_values(ng_scatter_add_along_axis(tape, x, index, 3, .axes = NG_AXES(0)), 0, most, 2, 0);
    ng_tensor *rows = ng_mul(tape, x, ng_gather_rows(tape, table, index));
    ng_tensor *taken = ng_mul(tape, x, ng_take_along_axis(tape, table, index, .axes = NG_AXES(0)));
    assert_gradient(rows, table, 0, most, 2);
    assert_gradient(taken, table, 0, most, 2);
    for (int i = 0; i < 2; i++) assert_ok(ng_backward(tape, ng_sum(tape, rows)));
    assert_values(ng_grad(table), 0, 2 * most, 4);
}

START_TEST(where_chooses_with_all_three_broadcasting)
{
    ng_tensor *condition = CONSTANT(NG_SHAPE(2, 1), 1, 0);
    ng_tensor *a = LEAF(NG_SHAPE(3), 1, 2, 3), *b = LEAF(NG_SCALAR, 9);
    ng_tensor *y = ng_where(tape, condition, a, b);
    assert_values(y, 0, 1, 2, 3, 9, 9, 9);
    assert_gradient(y, a, 0, 1, 1, 1);
    assert_gradient(y, b, 0, 3);
    assert_fails(ng_where(tape, zeros(NG_SHAPE(4)), a, b), NG_ESHAPE);
}

/* ln x at x = 0 has an infinite slope, which must not turn into 0 x inf for what is not chosen. */
START_TEST(where_keeps_out_what_is_not_chosen)
{
    ng_tensor *x = LEAF(NG_SHAPE(2), 0, 2);
    ng_tensor *positive = ng_greater(tape, x, ng_zeros_like(tape, x));
    ng_tensor *safe = ng_where(tape, positive, x, ng_ones_like(tape, x));
    ng_tensor *y = ng_where(tape, positive, ng_log(tape, safe), ng_zeros_like(tape, x));
    assert_values(y, 1e-15, 0, log(2.0));
    assert_gradient(y, x, 0, 0, 0.5);
    ng_tensor *poisoned = LEAF(NG_SHAPE(2), (double)NAN, 1);
    assert_gradient(ng_where(tape, CONSTANT(NG_SHAPE(2), 0, 1), poisoned, x), x, 0, 1, 0);
}

START_TEST(comparisons_are_one_or_zero_and_false_for_nan)
{
    ng_tensor *a = CONSTANT(NG_SHAPE(4), 1, 2, 3, (double)NAN), *b = CONSTANT(NG_SCALAR, 2);
    assert_values(ng_greater(tape, a, b), 0, 0, 0, 1, 0);
    assert_values(ng_greater_equal(tape, a, b), 0, 0, 1, 1, 0);
    assert_values(ng_less(tape, a, b), 0, 1, 0, 0, 0);
    assert_values(ng_equal(tape, a, b), 0, 0, 1, 0, 0);
    ck_assert_int_eq(ng_dtype_of(ng_less(tape, a, b)), NG_F64);
}

START_TEST(the_gradient_of_a_comparison_fails_loudly)
{
    ng_tensor *x = LEAF(NG_SHAPE(2), 1, 2);
    ng_tensor *y = ng_mul(tape, x, ng_greater(tape, x, CONSTANT(NG_SCALAR, 1.5)));
    assert_fails(ng_gradient(tape, y, x), NG_EGRAD);
    assert_fails(ng_gradient(tape, y, x, .record = true), NG_EGRAD);
    assert_fails(ng_backward(tape, ng_sum(tape, y)), NG_EGRAD);
    ck_assert(!ng_has_grad(x));
    ng_tensor *z = ng_mul(tape, x, ng_greater(tape, ng_detach(tape, x), CONSTANT(NG_SCALAR, 1.5)));
    assert_gradient(z, x, 0, 0, 1);
}

/* ---- Constants ----------------------------------------------------------------------------- */

START_TEST(constants_have_the_asked_dtype_and_shape)
{
    ng_tensor *x = ng_full(tape, NG_F32, NG_SHAPE(2, 1), 2.5);
    assert_values(x, 0, 2.5, 2.5);
    assert_values(ng_zeros_like(tape, x), 0, 0, 0);
    assert_values(ng_ones_like(tape, x), 0, 1, 1);
    ck_assert_int_eq(ng_dtype_of(ng_ones_like(tape, x)), NG_F32);
    assert_values(ng_full(tape, NG_I64, NG_SHAPE(2), 7), 0, 7, 7);
}

START_TEST(cast_keeps_values_and_hands_its_gradient_back)
{
    ng_tensor *x = LEAF(NG_SHAPE(2), 1.5, -2);
    ng_tensor *y = ng_cast(tape, x, NG_F32);
    ck_assert_int_eq(ng_dtype_of(y), NG_F32);
    assert_values(y, 0, 1.5, -2);
    assert_values(ng_cast(tape, INDEX(NG_SHAPE(2), 3, 4), NG_F64), 0, 3, 4);
    assert_values(ng_cast(tape, CONSTANT(NG_SHAPE(2), 3, 4), NG_I64), 0, 3, 4);
    ck_assert(!ng_requires_grad(ng_cast(tape, x, NG_I64)));
    ng_tensor *dx = ng_gradient(tape, ng_sum(tape, ng_square(tape, y)), x, .record = true);
    ck_assert_int_eq(ng_dtype_of(dx), NG_F64);
    assert_values(dx, 0, 3, -4);
    assert_values(ng_gradient(tape, ng_sum(tape, ng_square(tape, dx)), x), 0, 12, -16);
}

/* The partial sums 1e8 + 1 and 6e38 cannot be held in float. */
START_TEST(sums_over_axes_apart_are_in_double_on_the_way)
{
    const double values[] = {1e8, 1, 3e38, 3e38, -1e8, 2, -3e38, -3e38};
    ng_tensor *x = own(ng_tensor_from(NG_F32, NG_SHAPE(2, 2, 2), values, 8));
    assert_values(ng_sum(tape, x, .axes = NG_AXES(0, 2)), 0, 3, 0);
    assert_values(ng_sum_to(tape, x, NG_SHAPE(2, 1)), 0, 3, 0);
    ng_tensor *y = ng_mean(tape, ng_require_grad(x), .axes = NG_AXES(0, 2), .keepdim = true);
    assert_values(y, 0, 0.75, 0);
    ng_tensor *dx = ng_gradient(tape, ng_sum(tape, y), x);
    for (int64_t i = 0; i < 8; i++) assert_close(ng_get(dx, i), 0.25, 0);

    /* Three passes, two of them over rows. */
    x = own(ng_ones_new(NG_F32, NG_SHAPE(3, 2, 3, 2, 3)));
    assert_values(ng_sum(tape, x, .axes = NG_AXES(0, 2, 4)), 0, 27, 27, 27, 27);
}

/* ---- Empty and one-element tensors --------------------------------------------------------- */

START_TEST(nothing_sums_to_zero)
{
    ng_tensor *x = zeros(NG_SHAPE(0, 3)), *z = zeros(NG_SHAPE(3, 0));
    assert_values(ng_sum(tape, x), 0, 0);
    assert_values(ng_sum(tape, x, .axes = NG_AXES(0)), 0, 0, 0, 0);
    assert_shape(ng_sum(tape, x, .axes = NG_AXES(1)), 0);
    assert_shape(ng_max(tape, x, .axes = NG_AXES(1)), 0);
    ck_assert(isnan(ng_item(ng_mean(tape, x))));
    assert_shape(ng_gradient(tape, ng_sum(tape, x), x), 0, 3);
    ng_tensor *const y[] = {ng_prod(tape, z),
                            ng_prod(tape, z, .axes = NG_AXES(1)),
                            ng_prod(tape, z, .axes = NG_AXES(0)),
                            ng_norm(tape, z),
                            ng_norm(tape, z, .axes = NG_AXES(1), .keepdim = true),
                            ng_norm(tape, z, .axes = NG_AXES(0))};
    assert_values(y[0], 0, 1);
    assert_values(y[1], 0, 1, 1, 1);
    assert_values(y[3], 0, 0);
    assert_shape(y[4], 3, 1);
    assert_values(y[4], 0, 0, 0, 0);
    for (int k = 2; k < 6; k += 3) assert_shape(y[k], 0);
    for (int k = 0; k < 6; k++) {
        ng_tensor *dx = ng_gradient(tape, y[k], z, .record = true);
        assert_shape(dx, 3, 0);
        assert_shape(ng_gradient(tape, dx, z, .allow_unused = true), 3, 0);
    }
}

START_TEST(empty_operands_give_empty_results)
{
    ng_tensor *x = zeros(NG_SHAPE(0, 3)), *row = LEAF(NG_SHAPE(3), 1, 2, 3);
    ng_tensor *y = ng_exp(tape, ng_add(tape, x, row));
    assert_shape(y, 0, 3);
    assert_gradient(y, row, 0, 0, 0, 0);
    assert_shape(ng_permute(tape, x, NG_AXES(1, 0)), 3, 0);
    assert_shape(ng_reshape(tape, x, NG_SHAPE(5, 0)), 5, 0);
    ng_tensor *rows = LEAF(NG_SHAPE(1, 3), 1, 2, 3);
    assert_values(ng_concat(tape, (ng_tensor *[]){x, rows}, 2, 0), 0, 1, 2, 3);
    ng_tensor *no_index = own(ng_zeros_new(NG_I64, NG_SHAPE(0)));
    ng_tensor *gathered = ng_gather_rows(tape, rows, no_index);
    assert_shape(gathered, 0, 3);
    assert_gradient(gathered, rows, 0, 0, 0, 0);
    assert_shape(ng_where(tape, x, x, row), 0, 3);
    assert_shape(ng_linear(tape, x, rows, NG_NONE), 0, 1);
    assert_gradient(ng_linear(tape, x, rows, NG_NONE), rows, 0, 0, 0, 0);
}

/* The mean of no element is NaN, but its gradient has no elements. */
START_TEST(a_mean_of_nothing_adds_no_nan_to_gradients_of_gradients)
{
    ng_tensor *x = ng_require_grad(zeros(NG_SHAPE(0, 3))), *dy = LEAF(NG_SCALAR, 2);
    ng_tensor *dx = ng_gradient(tape, ng_mean(tape, x), x, .cotangent = dy, .record = true);
    assert_shape(dx, 0, 3);
    ng_tensor *sum = ng_add(tape, ng_sum(tape, dx), ng_square(tape, dy));
    assert_gradient(sum, dy, 0, 4);
}

START_TEST(matmul_over_nothing_is_zero)
{
    ng_tensor *a = zeros(NG_SHAPE(2, 0)), *b = zeros(NG_SHAPE(0, 2));
    ng_tensor *y = ng_matmul(tape, a, b);
    assert_values(y, 0, 0, 0, 0, 0);
    assert_shape(ng_gradient(tape, y, a), 2, 0);
    ng_tensor *no_batch = zeros(NG_SHAPE(0, 2, 3)), *c = zeros(NG_SHAPE(3, 1));
    ng_tensor *z = ng_matmul(tape, no_batch, c);
    assert_shape(z, 0, 2, 1);
    assert_gradient(z, c, 0, 0, 0, 0);
    assert_values(ng_linear(tape, a, zeros(NG_SHAPE(1, 0)), LEAF(NG_SHAPE(1), 5)), 0, 5, 5);
}

/* ---- Every case of an op ------------------------------------------------------------------- */

/* One run of a case: its inputs, their gradients, and the op's result on the tape. */
typedef struct {
    int count, n_wanted;
    ng_tensor *inputs[CASE_INPUTS], *wanted[CASE_INPUTS], *gradients[CASE_INPUTS];
    ng_tensor *y, *dy;
} run;

/* Values that float holds exactly, so that both dtypes see the same numbers. */
static ng_tensor *drawn(const case_input *input, ng_rng *rng, ng_dtype dtype)
{
    ng_tensor *x = own(case_input_new(input, rng));
    if (input->index) return x;
    ng_tensor *rounded = own(ng_copy_new(x, NG_F32));
    return dtype == NG_F32 ? rounded : own(ng_copy_new(rounded, NG_F64));
}

static ng_tensor *cotangent_of(const ng_tensor *y)
{
    ng_tensor *dy = own(ng_zeros_new(ng_dtype_of(y), ng_shape_of(y)));
    for (int64_t i = 0; i < ng_size(y); i++)
        ng_set(dy, i, (double)(float)cos(1.0 + 2.0 * (double)i));
    return dy;
}

static void gradients_of(run *r, ng_tensor *y, bool record, ng_tensor **gradients)
{
    assert_ok(ng_gradients(tape, &y, 1, r->wanted, r->n_wanted, gradients, .cotangents = &r->dy,
                           .record = record, .allow_unused = true));
}

static run run_case(const gradient_case *spec, ng_dtype dtype)
{
    run r = {.count = 0};
    ng_rng rng = ng_rng_seeded(7);
    for (int i = 0; i < CASE_INPUTS && spec->inputs[i].name; i++) {
        ng_tensor *x = drawn(&spec->inputs[i], &rng, dtype);
        r.inputs[r.count++] = x;
        if (spec->inputs[i].index || spec->inputs[i].constant) continue;
        r.wanted[r.n_wanted++] = ng_require_grad(x);
    }
    ng_tape_seed(tape, 3);
    r.y = spec->call(tape, r.inputs, NULL);
    assert_ok(r.y);
    ck_assert_msg(ng_node_of(r.y) != NULL, "%s recorded nothing", spec->name);
    r.dy = cotangent_of(r.y);
    gradients_of(&r, r.y, false, r.gradients);
    return r;
}

/* The cases that the checker takes, then large ones. */
static const gradient_case *case_at(int index)
{
    const int count = case_count(op_case);
    return index < count ? op_case(index) : large_case(index - count);
}

/* Kernels and definition round some tens of times in double, at values up to a few tens. */
START_TEST(every_case_agrees_with_its_definition)
{
    const double near = 1e-11;
    const gradient_case *spec = case_at(_i);
    run r = run_case(spec, NG_F64);
    const ng_node *const last = tape->last;
    for (const ng_node *node = tape->first; node; node = node == last ? NULL : node->next) {
        if (!node->op->definition) continue;
        ng_tensor *composed = node->op->definition(tape, node);
        assert_tensors_close(node->output, composed, near);
        if (node->output != r.y) continue;
        ng_tensor *gradients[CASE_INPUTS];
        gradients_of(&r, composed, false, gradients);
        for (int i = 0; i < r.n_wanted; i++)
            assert_tensors_close(r.gradients[i], gradients[i], near);
    }
}

/* The op twice on the same inputs: the second backward kernel adds to the first one's gradients. */
START_TEST(every_case_adds_to_gradients_that_are_there)
{
    const gradient_case *spec = case_at(_i);
    run r = run_case(spec, NG_F64);
    ng_tensor *gradients[CASE_INPUTS];
    ng_tape_seed(tape, 3);
    gradients_of(&r, ng_add(tape, r.y, spec->call(tape, r.inputs, NULL)), false, gradients);
    for (int i = 0; i < r.n_wanted; i++)
        assert_tensors_close(gradients[i], ng_mul_scalar(tape, r.gradients[i], 2), 1e-11);
}

static double largest(const ng_tensor *x)
{
    double most = 1;
    for (int64_t i = 0; i < ng_size(x); i++) most = fmax(most, fabs(ng_get(x, i)));
    return most;
}

/* At most some 30 terms enter an element, none much above the largest element or 1, and each is
 * rounded a few times: 64 float roundings bound them. */
static void assert_float_near_double(const char *name, const ng_tensor *single,
                                     const ng_tensor *exact)
{
    const double bound = 64 * (double)FLT_EPSILON * largest(exact);
    ck_assert_int_eq(ng_size(single), ng_size(exact));
    for (int64_t i = 0; i < ng_size(exact); i++)
        ck_assert_msg(fabs(ng_get(single, i) - ng_get(exact, i)) <= bound,
                      "%s: element %lld is %.9g in float and %.9g in double", name, (long long)i,
                      ng_get(single, i), ng_get(exact, i));
}

START_TEST(every_case_in_float_is_near_double)
{
    const gradient_case *spec = case_at(_i);
    const run single = run_case(spec, NG_F32), exact = run_case(spec, NG_F64);
    ck_assert_int_eq(ng_dtype_of(single.y), NG_F32);
    assert_float_near_double(spec->name, single.y, exact.y);
    for (int i = 0; i < exact.n_wanted; i++)
        assert_float_near_double(spec->name, single.gradients[i], exact.gradients[i]);
}

/* The gradients computed by kernels are those recorded by rules and definitions, together and of
 * each input alone. */
START_TEST(every_case_has_the_same_gradients_recorded_and_alone)
{
    run r = run_case(case_at(_i), NG_F64);
    ng_tensor *recorded[CASE_INPUTS];
    gradients_of(&r, r.y, true, recorded);
    for (int i = 0; i < r.n_wanted; i++) assert_tensors_close(recorded[i], r.gradients[i], 1e-11);
    for (int i = 0; i < 2 * r.n_wanted; i++) {
        ng_tensor *alone = ng_gradient(tape, r.y, r.wanted[i / 2], .cotangent = r.dy,
                                       .record = i % 2, .allow_unused = true);
        assert_tensors_close(alone, r.gradients[i / 2], 1e-11);
    }
}

/* A leaf that was frozen after it was recorded gets no gradient; where all are frozen, the pass is
 * an error. */
START_TEST(every_case_passes_over_leaves_that_were_frozen_since)
{
    const run r = run_case(op_case(_i), NG_F64);
    for (int i = 0; i < r.n_wanted; i++) r.wanted[i]->requires_grad = false;
    assert_fails(ng_backward_from(tape, r.y, r.dy), NG_EGRAD);
    for (int i = 0; i < r.n_wanted; i++) ck_assert(!ng_has_grad(r.wanted[i]));
}

Suite *ops_suite(void)
{
    Suite *suite = suite_create("ops");
    TCase *tests = add_case(suite, set_up, tear_down);
    add_tests(
        tests, arithmetic_gives_worked_values, powers_of_floats_have_the_exponent_that_was_given,
        powers_of_zero_have_a_gradient_to_the_exponent,
        whole_powers_have_finite_gradients_of_every_order_at_zero, ties_share_the_gradient_equally,
        operands_broadcast_on_the_left_the_right_and_both,
        wrong_operands_are_errors_and_the_program_goes_on, shapes_that_do_not_fit_are_errors,
        a_wrong_index_is_an_error, nan_and_infinities_go_through,
        slopes_at_kinks_are_the_documented_ones, reductions_over_any_axes_are_those_of_plain_loops,
        variance_keeps_its_digits_far_from_zero, logsumexp_neither_overflows_nor_vanishes,
        a_row_of_minus_infinity_has_a_logsumexp_without_slope,
        matmul_multiplies_broadcast_batches_read_either_way,
        matmul_of_several_matrices_with_one_has_the_bits_of_each_alone,
        reshape_shares_memory_and_finds_an_open_dimension, permute_and_transpose_move_axes,
        broadcast_to_repeats, slices_count_from_either_end, pad_puts_zeros_around,
        concat_joins_and_its_gradient_parts, int64_tensors_move_as_they_are,
        gather_takes_rows_and_scatter_adds_them_back, scatter_counts_beyond_the_digits_of_float,
        where_chooses_with_all_three_broadcasting, where_keeps_out_what_is_not_chosen,
        comparisons_are_one_or_zero_and_false_for_nan, the_gradient_of_a_comparison_fails_loudly,
        constants_have_the_asked_dtype_and_shape, cast_keeps_values_and_hands_its_gradient_back,
        sums_over_axes_apart_are_in_double_on_the_way, nothing_sums_to_zero,
        empty_operands_give_empty_results, a_mean_of_nothing_adds_no_nan_to_gradients_of_gradients,
        matmul_over_nothing_is_zero);
    add_loops(tests, case_count(case_at), every_case_agrees_with_its_definition,
              every_case_adds_to_gradients_that_are_there, every_case_in_float_is_near_double,
              every_case_has_the_same_gradients_recorded_and_alone);
    add_loops(tests, case_count(op_case), every_case_passes_over_leaves_that_were_frozen_since);
    return suite;
}
