/* Derivatives of orders 1 to 4: of every op and layer, faults that show at one order only, values
 * that another library gets wrong. */
#include "support/support.h"
#include <stdio.h>

enum { MOST = 4 };

static void expect_passed(ng_check_report report, const char *what)
{
    ck_assert_msg(report.passed, "%s, order %d: %s; %s (%s, direction %lld: %.15g, not %.15g)",
                  what, report.order, report.message, report.hint, report.worst_name,
                  (long long)report.worst_index, report.analytic, report.numeric);
}

/* ---- Every op and layer: norms at order 4, others at order 3 --------------------------------- */

static void expect_orders(const gradient_case *spec)
{
    const int order = case_is_norm(spec) ? 4 : 3;
    const ng_check_report report = check_case(
        spec, (ng_check_options){
                  .order = order, .mode = NG_CHECK_FAST, .directions = 1, .detached_moves = true});
    expect_passed(report, spec->name);
    ck_assert_int_eq(report.order, order);
}
START_TEST(every_op_has_derivatives_of_higher_order) { expect_orders(op_case(_i)); }
START_TEST(every_layer_has_derivatives_of_higher_order) { expect_orders(layer_case(_i)); }

/* ---- A fault of one order ---------------------------------------------------------------------
 *
 * y = x^p, whose gradient is p dy times the same op of power p - 1, down to the one that is wrong:
 * its gradient is made of a detached x. */

typedef struct {
    int power, wrong;
} power;

static ng_tensor *power_of(ng_tape *tape, ng_tensor *x, power of);

static void power_gradient(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    power of = *(const power *)node->attributes;
    ng_tensor *x = of.power == of.wrong ? ng_detach(tape, node->inputs[0]) : node->inputs[0];
    of.power--;
    dx[0] = ng_mul(tape, ng_mul_scalar(tape, dy, of.power + 1), power_of(tape, x, of));
}

static ng_tensor *power_of(ng_tape *tape, ng_tensor *x, power of)
{
    static const ng_op op = {.name = "power", .gradient = power_gradient};
    ng_tensor *y = ng_result(tape, NG_F64, ng_shape_of(x));
    for (int64_t i = 0; y && i < ng_size(y); i++) ng_data_f64(y)[i] = pow(ng_get(x, i), of.power);
    return y ? ng_record(tape, &op, y, &x, 1, &of, sizeof of) : NULL;
}

static ng_tensor *power_call(ng_tape *tape, ng_tensor *const *in, void *context)
{
    return power_of(tape, in[0], *(const power *)context);
}

/* x^6 with a fault in the gradient of x^p is wrong from order 8 - p on. */
START_TEST(the_report_names_the_first_order_that_is_wrong)
{
    static const char *const says[] = {"", "", "second derivatives are wrong",
                                       "third derivatives are wrong",
                                       "fourth derivatives are wrong"};
    ng_rng rng = ng_rng_seeded(1);
    ng_tensor *x = own(ng_uniform_new(NG_F64, NG_SHAPE(3), 0.5, 2, &rng));
    for (int first = 2; first <= MOST; first++) {
        power of = {.power = 6, .wrong = 8 - first};
        for (int order = 1; order <= MOST; order++) {
            const ng_check_report report =
                ng_check_function(power_call, &x, 1, .context = &of, .order = order);
            ck_assert_int_eq(report.passed, order < first);
            ck_assert_int_eq(report.order, order < first ? order : first);
            if (order >= first) ck_assert_ptr_nonnull(strstr(report.message, says[first]));
            ck_assert_int_eq(report.mode, order < first || first > 2 ? report.mode : 0);
        }
    }
    power right = {.power = 6, .wrong = 0};
    const ng_check_report report =
        ng_check_function(power_call, &x, 1, .context = &right, .order = 4, .directions = 2);
    expect_passed(report, "x^6");
    ck_assert_int_eq(report.compared, 3 + 3 + 2 + 2);
}

START_TEST(derivatives_that_are_zero_above_an_order_are_right)
{
    ng_rng rng = ng_rng_seeded(1);
    ng_tensor *x = own(ng_normal_new(NG_F64, NG_SHAPE(3), 0, 1, &rng));
    for (int p = 1; p < MOST; p++) {
        power of = {.power = p, .wrong = 0};
        expect_passed(ng_check_function(power_call, &x, 1, .context = &of, .order = 4), "x^p");
    }
}

/* ---- Values that another library gets wrong ----------------------------------------------------
 *
 * Of PyTorch's issues 196700 (LayerNorm) and 196699 (BatchNorm): its nested forward mode gives
 * -0.38 for 0.77 and -2.13 for -0.21 at order 2. Here with the exact values of orders 1 to 4, from
 * power series in t. */

/* The coefficients of s^0 to s^4. */
typedef struct {
    long double c[MOST + 1];
} series;

static series series_of(long double a, long double b, long double c) { return (series){{a, b, c}}; }

static series sum_of(series a, series b, long double factor)
{
    for (int k = 0; k <= MOST; k++) a.c[k] += factor * b.c[k];
    return a;
}

static series product_of(series a, series b)
{
    series p = {{0}};
    for (int i = 0; i <= MOST; i++)
        for (int k = 0; i + k <= MOST; k++) p.c[i + k] += a.c[i] * b.c[k];
    return p;
}

/* r = 1 / sqrt(a): from 2 a r' = -a' r. */
static series rsqrt_of(series a)
{
    series r = {{1 / sqrtl(a.c[0])}};
    for (int k = 1; k <= MOST; k++) {
        long double sum = 0;
        for (int i = 1; i <= k; i++) sum += (i / 2.0L + k - i) * a.c[i] * r.c[k - i];
        r.c[k] = -sum / (k * a.c[0]);
    }
    return r;
}

/* One group of a norm: sum w_i (gamma_i xhat_i). */
static series norm_of(const series *x, const long double *weights, int n, long double eps)
{
    series mean = {{0}}, variance = {{eps}}, sum = {{0}};
    for (int i = 0; i < n; i++) mean = sum_of(mean, x[i], 1.0L / n);
    for (int i = 0; i < n; i++) {
        const series off = sum_of(x[i], mean, -1);
        variance = sum_of(variance, product_of(off, off), 1.0L / n);
        sum = sum_of(sum, off, weights[i]);
    }
    return product_of(sum, rsqrt_of(variance));
}

/* Order k + 1 from order k, by ng_jvp for odd `how` and by ng_gradient else. */
static void expect_series(ng_tape *tape, ng_tensor *y, ng_tensor *t, series exact, int how)
{
    ng_tensor *one = ng_full(tape, NG_F64, NG_SCALAR, 1);
    double factorial = 1;
    assert_close(ng_item(y), (double)exact.c[0], 1e-13);
    for (int order = 1; order <= MOST; order++) {
        factorial *= order;
        y = how ? ng_jvp(tape, y, &t, 1, &one, .record = true)
                : ng_gradient(tape, y, t, .record = true);
        assert_close(ng_item(y), factorial * (double)exact.c[order], 1e-11);
    }
}

START_TEST(layer_norm_has_the_derivatives_of_its_power_series)
{
    ng_tape *tape = own(ng_tape_new());
    ng_tensor *t = own(ng_tensor_from(NG_F64, NG_SCALAR, NG_VALUES(0.7)));
    ng_require_grad(t);
    const series x[] = {series_of(0.7L, 1, 0), series_of(0, 0, 0)};
    const series exact = norm_of(x, (const long double[]){1, 2}, 2, 0.25L);
    assert_close((double)exact.c[2] * 2, 0.7749142079590942, 1e-14);
    ng_tensor *along = own(ng_tensor_from(NG_F64, NG_SHAPE(1, 2), NG_VALUES(1, 0)));
    ng_tensor *gamma = own(ng_tensor_from(NG_F64, NG_SHAPE(2), NG_VALUES(1, 2)));
    ng_tensor *y = ng_layer_norm(tape, ng_mul(tape, t, along), gamma, NG_NONE, .eps = 0.25);
    expect_series(tape, ng_sum(tape, y), t, exact, _i);
}

/* x (2, 2, 2): element i is (i + 1) t + (i % 3 - 1) t^2 + i. Channel c has elements 2 c, 2 c + 1,
 * 2 c + 4 and 2 c + 5. */
START_TEST(batch_norm_has_the_derivatives_of_its_power_series)
{
    static const long double gamma[] = {1.5L, -0.5L};
    ng_tape *tape = own(ng_tape_new());
    ng_tensor *t = own(ng_tensor_from(NG_F64, NG_SCALAR, NG_VALUES(-6)));
    ng_require_grad(t);
    ng_tensor *parts[4];
    for (int p = 0; p < 4; p++) parts[p] = own(ng_zeros_new(NG_F64, NG_SHAPE(2, 2, 2)));
    series x[2][4], exact = {{0}};
    long double weights[2][4];
    for (int i = 0; i < 8; i++) {
        const int channel = i / 2 % 2, place = i % 2 + i / 4 * 2, square = i % 3 - 1;
        ng_set(parts[0], i, i), ng_set(parts[1], i, i + 1), ng_set(parts[2], i, square);
        ng_set(parts[3], i, i + 1);
        x[channel][place] = series_of((i + 1) * -6 + square * 36 + i, i + 1 - 12 * square, square);
        weights[channel][place] = (i + 1) * gamma[channel];
    }
    for (int c = 0; c < 2; c++) exact = sum_of(exact, norm_of(x[c], weights[c], 4, 0.25L), 1);
    for (int i = 0; i < 8; i++) exact.c[0] += (i + 1) * (i / 2 % 2 ? 1 : 0.25L); /* beta */
    assert_close((double)exact.c[2] * 2, -0.20703015646993195, 1e-14);
    ng_tensor *value = ng_add(tape, parts[0], ng_mul(tape, t, parts[1]));
    value = ng_add(tape, value, ng_mul(tape, ng_square(tape, t), parts[2]));
    ng_tensor *weight = own(ng_tensor_from(NG_F64, NG_SHAPE(2), NG_VALUES(1.5, -0.5)));
    ng_tensor *bias = own(ng_tensor_from(NG_F64, NG_SHAPE(2), NG_VALUES(0.25, 1)));
    ng_tensor *y =
        ng_batch_norm(tape, value, weight, bias, NG_NONE, NG_NONE, .eps = 0.25, .training = true);
    expect_series(tape, ng_sum(tape, ng_mul(tape, y, parts[3])), t, exact, _i);
}

Suite *orders_suite(void)
{
    Suite *suite = suite_create("orders");
    TCase *tests = add_case(suite, NULL, NULL);
    tcase_set_tags(tests, "long");
    add_loops(tests, case_count(op_case), every_op_has_derivatives_of_higher_order);
    add_loops(tests, case_count(layer_case), every_layer_has_derivatives_of_higher_order);
    tests = add_case(suite, NULL, NULL);
    add_tests(tests, the_report_names_the_first_order_that_is_wrong,
              derivatives_that_are_zero_above_an_order_are_right);
    add_loops(tests, 2, layer_norm_has_the_derivatives_of_its_power_series,
              batch_norm_has_the_derivatives_of_its_power_series);
    return suite;
}
