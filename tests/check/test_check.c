/* The gradient checker: right gradients pass, wrong ones do not, whatever is wrong with them. */
#include "support/folder.h"
#include "support/support.h"
#include <locale.h>
#include <stdio.h>

#define CALL(name, expression)                                                                     \
    static ng_tensor *name(ng_tape *tape, ng_tensor *const *in, void *context)                     \
    {                                                                                              \
        (void)context;                                                                             \
        return expression;                                                                         \
    }

static const ng_check_mode modes[] = {NG_CHECK_ELEMENTS, NG_CHECK_FAST};

static void expect_passed(ng_check_report report, const char *what)
{
    ck_assert_msg(report.passed, "%s, order %d, mode %d: %s; %s (%s[%lld]: %.15g, not %.15g)", what,
                  report.order, (int)report.mode, report.message, report.hint, report.worst_name,
                  (long long)report.worst_index, report.analytic, report.numeric);
    ck_assert_str_eq(report.message, "");
    ck_assert_int_gt(report.compared, 0);
    ck_assert_int_eq(report.failed, 0);
}

static void expect_says(ng_check_report report, const char *part)
{
    ck_assert_msg(!report.passed, "passed, but should say: %s", part);
    ck_assert_msg(strstr(report.message, part) || strstr(report.hint, part),
                  "\"%s\" is neither in \"%s\" nor in \"%s\"", part, report.message, report.hint);
}

static ng_tensor *normal(uint64_t seed, ng_shape shape, double scale)
{
    ng_rng rng = ng_rng_seeded(seed);
    return own(ng_normal_new(NG_F64, shape, 0, scale, &rng));
}

/* ---- The tables ---------------------------------------------------------------------------- */

static void expect_case(const gradient_case *spec, const char *side, ng_check_mode mode,
                        uint64_t seed)
{
    char what[128];
    snprintf(what, sizeof what, "%s %s, seed %d", spec->name, side, (int)seed);
    ng_check_report report = check_case(
        spec, (ng_check_options){.order = 2, .mode = mode, .seed = seed, .detached_moves = true});
    expect_passed(report, what);
    ck_assert_int_eq(report.order, 2);
    ck_assert_int_eq(report.detached, 0);
}

/* Both orders in every mode, with `all` seeds for every element and three for directions. Detached
 * values move: there is none by mistake. */
static void expect_in_every_mode(const gradient_case *spec, const char *side, uint64_t all)
{
    for (uint64_t seed = 0; seed < all; seed++) expect_case(spec, side, NG_CHECK_ELEMENTS, seed);
    for (uint64_t seed = 0; seed < 3; seed++) expect_case(spec, side, NG_CHECK_FAST, seed);
}

START_TEST(every_op_has_right_gradients)
{
    static const char *const sides[] = {"(left)", "(right)", "(both)"};
    const gradient_case *spec = op_case(_i);
    expect_in_every_mode(spec, "", 3);
    for (int side = 0; side < 3 && spec->broadcasts; side++) {
        gradient_case narrow = case_broadcast(spec, (broadcast_side)side);
        expect_in_every_mode(&narrow, sides[side], 3);
    }
}

START_TEST(every_layer_has_right_gradients) { expect_in_every_mode(layer_case(_i), "", 1); }

/* ---- No false alarm ------------------------------------------------------------------------ */

CALL(layer_norm, ng_layer_norm(tape, in[0], NG_NONE, NG_NONE, .eps = 1e-5))
CALL(gelu, ng_gelu(tape, in[0]))
CALL(square, ng_square(tape, in[0]))
CALL(relu, ng_relu(tape, in[0]))
CALL(absolute, ng_abs(tape, in[0]))
CALL(exponential, ng_exp(tape, in[0]))

CALL(steep_sine, ng_sin(tape, ng_mul_scalar(tape, in[0], 1e15)))
CALL(fast_sine, ng_sin(tape, ng_mul_scalar(tape, in[0], 1000)))
CALL(root, ng_sqrt(tape, in[0]))
CALL(cube, ng_pow_scalar(tape, in[0], 3))
CALL(one_and_itself, ng_add_scalar(tape, in[0], 1))
CALL(logarithm, ng_log(tape, in[0]))
CALL(saturated, ng_tanh(tape, ng_mul(tape, in[0], in[1])))
CALL(linear_then_norm,
     ng_layer_norm(tape, ng_add(tape, ng_reshape(tape, in[0], NG_SHAPE(3, 1)), in[1]), NG_NONE,
                   NG_NONE, .eps = 1e-5))
CALL(waves, ng_add(tape, ng_mul_scalar(tape, in[0], 3),
                   ng_sin(tape, ng_mul_scalar(tape, in[0], 128 * 3.14159265358979323846))))

/* Functions at three points each. Those of two inputs have a second one near 1. */
static const struct {
    const char *what;
    ng_check_call *call;
    double x[3], tolerance;
    bool two;
} sound[] = {
    {.what = "sin(1000 x)", fast_sine, {0.3, 1.2, -0.8}},
    {.what = "exp of what rounds to 1", exponential, {1e-17, -2e-17, 5e-18}},
    {.what = "x^3 of tiny", cube, {1e-15, -2e-15, 3e-15}},
    {.what = "sin of 1e15 x", steep_sine, {1e-15, -2e-15, 3e-15}},
    {.what = "1 + x of tiny", one_and_itself, {1e-15, -2e-15, 3e-15}},
    {.what = "sqrt of what has no square", root, {1e-200, 3e-200, 2e-200}},
    {.what = "sqrt of what has an infinite square", root, {1e200, 3e200, 2e200}},
    {.what = "log of small beside large", logarithm, {0.7, 1e-6, 0.3}},
    {.what = "sqrt of small beside large", root, {0.7, 1e-6, 0.3}},
    {.what = "sqrt of large", root, {1e100, 3e100, 2e100}},
    {.what = "tanh(25) beside tanh(0.5)", saturated, {0.5, 25, -18}, .two = true},
    {.what = "a shift of rows before their norm", linear_then_norm, {0.5, 2, -1}, .two = true},
    {.what = "rows with mean 1e5",
     layer_norm,
     {1e5 + 0.3, 1e5 - 1.1, 1e5 + 0.7},
     .tolerance = 1e-6},
    {.what = "3 x + sin(2 pi 64 x), whose period is 1/4 of the step", waves, {0.9, 0.3, 1.1}},
};

START_TEST(right_gradients_pass_for_difficult_functions)
{
    for (int mode = 0; mode < 2; mode++) {
        const bool in_elements = strstr(sound[_i].what, "beside large") != NULL;
        if (in_elements && mode > 0) continue; /* no step along a direction fits both */
        ng_rng rng = ng_rng_seeded(1);
        ng_tensor *in[] = {own(ng_tensor_from(NG_F64, NG_SHAPE(3), sound[_i].x, 3)),
                           own(ng_normal_new(NG_F64, NG_SHAPE(3), 1, 0.1, &rng))};
        ng_check_report report =
            ng_check_function(sound[_i].call, in, 1 + sound[_i].two, .mode = modes[mode],
                              .tolerance = sound[_i].tolerance);
        expect_passed(report, sound[_i].what);
        ck_assert_double_lt(report.relative_error, fmax(1e-8, sound[_i].tolerance));
    }
}

/* ---- Planted faults ------------------------------------------------------------------------
 *
 * An op whose value is x and whose gradient is wrong. A function of its result has a wrong gradient
 * too. */

typedef enum {
    FLIPPED,
    SCALED,
    HALVED,
    ZEROED,
    ONE_ELEMENT,
    ONE_NAN,
    ONE_INFINITE,
    ROW_CONSTANT,
    TRANSPOSED,
    WRONG_SHAPE,
    NONE_AT_ALL,
    NULL_ONLY,
    PER_ROW
} fault;

static ng_tensor *filled(ng_tape *tape, ng_tensor *like, double one, double rest)
{
    ng_tensor *mask = ng_result(tape, NG_F64, ng_shape_of(like));
    for (int64_t i = 0; i < ng_size(like); i++) ng_data_f64(mask)[i] = i == 2 ? one : rest;
    return mask;
}

static void spoil(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    switch (*(const fault *)node->attributes) {
    case FLIPPED: dx[0] = ng_neg(tape, dy); break;
    case SCALED: dx[0] = ng_mul_scalar(tape, dy, 1.01); break;
    case HALVED: dx[0] = ng_mul_scalar(tape, dy, 0.5); break;
    case ZEROED: dx[0] = ng_mul_scalar(tape, dy, 0); break;
    case ONE_ELEMENT: dx[0] = ng_mul(tape, dy, filled(tape, dy, 1.01, 1)); break;
    case ONE_NAN: dx[0] = ng_mul(tape, dy, filled(tape, dy, (double)NAN, 1)); break;
    case ONE_INFINITE: dx[0] = ng_mul(tape, dy, filled(tape, dy, (double)INFINITY, 1)); break;
    case ROW_CONSTANT:
        dx[0] = ng_add(tape, dy, ng_mean(tape, dy, .axes = NG_AXES(-1), .keepdim = true));
        break;
    case TRANSPOSED: dx[0] = ng_transpose(tape, dy, 0, 1); break;
    case WRONG_SHAPE: dx[0] = ng_slice(tape, dy, 0, 0, 1); break;
    case NULL_ONLY: dx[0] = NULL; break;
    case PER_ROW: {
        ng_tensor *size = ng_add_scalar(tape, ng_square(tape, node->inputs[0]), 1);
        ng_tensor *factor = ng_mean(tape, size, .axes = NG_AXES(-1), .keepdim = true);
        dx[0] = ng_mul(tape, dy, factor);
        break;
    }
    case NONE_AT_ALL: break;
    }
}

static const ng_op spoiled = {.name = "spoiled", .gradient = spoil};
static const ng_op without = {.name = "without"};

static ng_tensor *spoil_gradient(ng_tape *tape, ng_tensor *x, fault kind)
{
    ng_tensor *y = ng_result(tape, NG_F64, ng_shape_of(x));
    if (!y) return NULL;
    memcpy(ng_data_f64(y), ng_data_f64(x), (size_t)ng_size(x) * sizeof(double));
    return ng_record(tape, kind == NONE_AT_ALL ? &without : &spoiled, y, &x, 1, &kind, sizeof kind);
}

typedef struct {
    ng_check_call *call;
    fault kind;
} spoiled_call;

static ng_tensor *with_fault(ng_tape *tape, ng_tensor *const *in, void *context)
{
    const spoiled_call *what = context;
    ng_tensor *x = spoil_gradient(tape, in[0], what->kind);
    return x ? what->call(tape, &x, NULL) : NULL;
}

static ng_check_report check_spoiled(ng_check_call *call, fault kind, ng_check_options options)
{
    ng_tensor *x = normal(options.seed, NG_SHAPE(4, 4), 1);
    spoiled_call what = {call, kind};
    options.inputs = &x;
    options.n_inputs = 1;
    options.context = &what;
    ng_check_report report = ng_check_function_with(with_fault, options);
    return report;
}

static ng_tensor *flipped_square(ng_tape *tape, ng_tensor *const *in, void *context)
{
    (void)context;
    return ng_square(tape, spoil_gradient(tape, in[0], FLIPPED));
}

static const struct {
    fault kind;
    const char *says;
} planted[] = {{FLIPPED, "the sign is flipped"},
               {SCALED, "too large by a factor of 1.01"},
               {HALVED, "too small by a factor of 2"},
               {ZEROED, "0 where it should not be"},
               {ONE_ELEMENT, "only this element"},
               {ONE_NAN, "NaN"},
               {ONE_INFINITE, "wrong"},
               {ROW_CONSTANT, "a constant in each row"},
               {TRANSPOSED, "transposed"},
               {WRONG_SHAPE, "(1, 4)"},
               {NONE_AT_ALL, "no gradient"},
               {NULL_ONLY, "no gradient"},
               {PER_ROW, "a factor of its own in each row"}};

START_TEST(a_planted_fault_is_caught_and_named)
{
    static ng_check_call *const calls[] = {gelu, exponential, square};
    fault kind = planted[_i].kind;
    for (int c = 0; c < 3; c++) {
        for (uint64_t seed = 0; seed < 10; seed++) {
            ng_check_report report =
                check_spoiled(calls[c], kind, (ng_check_options){.seed = seed});
            expect_says(report, planted[_i].says);
            ck_assert_int_eq(report.kinks, 0);
        }
    }
}

START_TEST(a_planted_fault_is_caught_in_every_mode_and_order)
{
    for (int order = 1; order <= 2; order++) {
        for (uint64_t seed = 0; seed < 10; seed++) {
            ng_check_options options = {.mode = NG_CHECK_FAST, .order = order, .seed = seed};
            ng_check_report report = check_spoiled(gelu, planted[_i].kind, options);
            ck_assert_msg(!report.passed, "fault %d, mode %d, order %d, seed %d", _i,
                          (int)options.mode, options.order, (int)seed);
            ck_assert_str_ne(report.message, "");
        }
    }
}

START_TEST(one_percent_is_caught_at_any_seed_and_scale)
{
    static const double scales[] = {1e-3, 1, 1e3};
    static ng_check_call *const calls[] = {layer_norm, square, gelu};
    for (uint64_t seed = 0; seed < 30; seed++) {
        for (int mode = 0; mode < 2; mode++) {
            ng_tensor *x = normal(seed, NG_SHAPE(3, 4), scales[_i % 3]);
            spoiled_call wrong = {calls[_i / 3], SCALED};
            ng_check_report bad = ng_check_function(with_fault, &x, 1, .context = &wrong,
                                                    .mode = modes[mode], .seed = seed);
            ck_assert_msg(!bad.passed, "call %d, scale %g, mode %d, seed %d", _i / 3,
                          scales[_i % 3], mode, (int)seed);
            ck_assert_int_eq(bad.kinks, 0);
            ng_check_report good =
                ng_check_function(calls[_i / 3], &x, 1, .mode = modes[mode], .seed = seed);
            expect_passed(good, "the same function without a fault");
        }
    }
}

START_TEST(the_report_names_the_worst_element)
{
    ng_tensor *x = normal(0, NG_SHAPE(4, 4), 1);
    spoiled_call what = {square, ONE_ELEMENT};
    const char *name = "weight";
    ng_check_report report = ng_check_function(with_fault, &x, 1, .context = &what, .names = &name);
    ck_assert_str_eq(report.worst_name, "weight");
    ck_assert_int_eq(report.worst_index, 2);
    ck_assert_int_eq(report.compared, 16);
    ck_assert_int_eq(report.failed, 1);
    assert_close(report.analytic, 1.01 * report.numeric, 1e-9);
    assert_close(report.absolute_error, 0.01 * fabs(report.numeric), 1e-6);
    ck_assert_double_lt(report.error_estimate, 1e-9 * fabs(report.numeric));
}

/* y = 1e6 a + 1e-4 b. The gradient of b is too large by the factor 1 + *context. */
static void unequal_gradient(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    const double *off = node->attributes;
    dx[0] = ng_mul_scalar(tape, dy, 1e6);
    dx[1] = ng_mul_scalar(tape, dy, 1e-4 * (1 + *off));
}

static ng_tensor *unequal(ng_tape *tape, ng_tensor *const *in, void *context)
{
    static const ng_op op = {.name = "unequal", .gradient = unequal_gradient};
    ng_tensor *y = ng_result(tape, NG_F64, ng_shape_of(in[0]));
    for (int64_t i = 0; y && i < ng_size(y); i++)
        ng_data_f64(y)[i] = 1e6 * ng_get(in[0], i) + 1e-4 * ng_get(in[1], i);
    return y ? ng_record(tape, &op, y, in, 2, context, sizeof(double)) : NULL;
}

START_TEST(each_input_has_its_own_scale)
{
    ng_tensor *in[] = {own(ng_tensor_from(NG_F64, NG_SHAPE(2), NG_VALUES(0, 0))),
                       own(ng_tensor_from(NG_F64, NG_SHAPE(2), NG_VALUES(1, 2)))};
    double off = 0;
    ng_check_report report = ng_check_function(unequal, in, 2, .context = &off);
    expect_passed(report, "1e6 and 1e-4");
    ck_assert_str_eq(report.counts, "input 1, input 2: right");
    off = 1e-3; /* 1e-7: less than 1e-12 of 1e6 */
    report = ng_check_function(unequal, in, 2, .context = &off);
    expect_says(report, "the worst in input 2");
    ck_assert_str_eq(report.counts, "input 1: right; input 2: 2 of 2 wrong");
}

/* ---- Limits, from both sides -----------------------------------------------------------------
 *
 * y = value(x), element by element, with the gradient dy slope(x). */

typedef struct {
    double (*value)(double x);
    double (*slope)(double x);
} pointwise;

static void pointwise_gradient(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    const pointwise *f = node->attributes;
    ng_tensor *slope = ng_result(tape, NG_F64, ng_shape_of(dy));
    for (int64_t i = 0; slope && i < ng_size(dy); i++)
        ng_data_f64(slope)[i] = f->slope(ng_get(node->inputs[0], i));
    dx[0] = ng_mul(tape, dy, slope);
}

static ng_tensor *pointwise_call(ng_tape *tape, ng_tensor *const *in, void *context)
{
    static const ng_op op = {.name = "pointwise", .gradient = pointwise_gradient};
    const pointwise *f = context;
    ng_tensor *y = ng_result(tape, NG_F64, ng_shape_of(in[0]));
    for (int64_t i = 0; y && i < ng_size(y); i++) ng_data_f64(y)[i] = f->value(ng_get(in[0], i));
    return y ? ng_record(tape, &op, y, in, 1, f, sizeof *f) : NULL;
}

/* Checked at two points. */
static ng_check_report check_pointwise(pointwise f, double x0, double x1, ng_check_options options)
{
    ng_tensor *x = ng_tensor_from(NG_F64, NG_SHAPE(2), NG_VALUES(x0, x1));
    options.inputs = &x;
    options.n_inputs = 1;
    options.context = &f;
    ng_check_report report = ng_check_function_with(pointwise_call, options);
    ng_tensor_free(x);
    return report;
}

static double parameter; /* of the functions below */

static double squared(double x) { return x * x; }
static double nearly_twice(double x) { return 2 * x * (1 + parameter); }
static double far_away(double x) { return 1e6 + x; }
static double nearly_one(double x) { return (void)x, 1 + parameter; }
static double large_and_small(double x) { return x < 1.5 ? x : 1e-8 * x; }
static double small_one_off(double x) { return x < 1.5 ? 1 : 1e-8 + parameter; }
static double jump_and_square(double x) { return x < 0 ? x : x < 0.5 ? x + 1e6 : x * x; }
static double one_and_nearly_twice(double x) { return x < 0.5 ? 1 : nearly_twice(x); }
static double kink_slope(double x) { return x > 0 ? 1 : x < 0 ? -1 : parameter; }
static double slight_kink(double x) { return 1 + parameter * fabs(x); }
static double of_its_right_side(double x) { return x >= 0 ? parameter : -parameter; }
static double low_jump(double x) { return x < 0 ? 1 : x < 0.5 ? 1 + 5e-9 : x; }
static double jump(double x) { return x < 0 ? 1 : x < 0.5 ? 1 + 1e-7 : x; }
static double jump_slope(double x) { return x < 0.5 ? parameter : 1; }
static double power_of_half(double x) { return sqrt(fabs(x)); }
static double its_slope(double x) { return x == 0 ? parameter : copysign(0.5 / sqrt(fabs(x)), x); }
static double huge_or_itself(double x) { return x < 0.5 ? 1e12 : x; }
static double none_or_nearly_one(double x) { return x < 0.5 ? 0 : 1 + parameter; }
static double hyperbola(double x) { return sqrt(x * x + 1e-6); }
static double hyperbola_slope(double x) { return x / hyperbola(x) + parameter; }
static double nearly_largest(double x) { return 1.5e308 + 1e300 * x; }
static double the_parameter(double x) { return (void)x, parameter; }
static double line_in_waves(double x) { return 3 * x + sin(128 * 3.14159265358979323846 * x); }
static double dead_zone(double x) { return x < 0.5 ? fmax(x - parameter, 0) : x * x; }
static double square_slope_alone(double x) { return x < 0.5 ? 0 : 2 * x; }
static double power_1_5(double x) { return pow(fabs(x), 1.5); }
static double slope_1_5(double x) { return x == 0 ? parameter : copysign(1.5 * sqrt(fabs(x)), x); }
static double slow_or_itself(double x) { return x < 1.5 ? 1 + 1e-11 * x : x; }
static double slow_or_one(double x) { return x < 1.5 ? 1e-11 + parameter : 1; }
static double far_kink(double x) { return fmax(x, 0.9 + parameter); }
static double far_kink_slope(double x) { return x > 0.9 + parameter ? 1 : 0; }

static const struct {
    const char *what;
    pointwise f;
    double x[2], parameter;
    const char *says; /* NULL: passes */
    double tolerance;
    int kinks;
} figures[] = {
    {.what = "half the default tolerance", {squared, nearly_twice}, {1, -0.7}, 0.5e-9},
    {.what = "twice the default tolerance", {squared, nearly_twice}, {1, -0.7}, -2e-9, "are wrong"},
    {.what = "no tolerance, no error", {squared, nearly_twice}, {1, -0.7}, 0, .tolerance = NG_ZERO},
    {.what = "no tolerance, an error", {squared, nearly_twice}, {1, -0.7}, 5e-10, "wrong", NG_ZERO},
    {.what = "2^12 eps of 1e6 + x", {far_away, nearly_one}, {1, 1}, 5e-7},
    {.what = "more than 2^12 eps of 1e6 + x", {far_away, nearly_one}, {1, 1}, 2e-6, "2 of 2"},
    {.what = "1 beside 1e-8 off by 1e-14", {large_and_small, small_one_off}, {1, 2}, 1e-14},
    {.what = "1e-11 x, which soon stands still", {slow_or_itself, slow_or_one}, {1, 2}, 0},
    {.what = "1e-11 x off by 1e-9", {slow_or_itself, slow_or_one}, {1, 2}, 1e-9, "1 of 2"},
    {.what = "1 beside 1e-8 off by 1e-9", {large_and_small, small_one_off}, {1, 2}, 1e-9, "1 of 2"},
    {.what = "a jump beside x^2", {jump_and_square, one_and_nearly_twice}, {0, 1}, 0, .kinks = 1},
    {.what = "x^2 off beside a jump",
     {jump_and_square, one_and_nearly_twice},
     {0, 1},
     1e-7,
     "1 of 2",
     0,
     1},
    {.what = "|x| with slope -1", {fabs, kink_slope}, {0, 1}, -1, .kinks = 1},
    {.what = "|x| with slope 0.3", {fabs, kink_slope}, {0, 1}, 0.3, .kinks = 1},
    {.what = "|x| with slope 1.01", {fabs, kink_slope}, {0, 1}, 1.01, "1 of 2"},
    {.what = "a kink above rounding", {slight_kink, of_its_right_side}, {0, 1.2}, 3e-5, .kinks = 1},
    {.what = "a kink below rounding", {slight_kink, of_its_right_side}, {0, 1.2}, 3e-6, "1 of 2"},
    {.what = "a slope between those of a jump", {jump, jump_slope}, {0, 1.2}, 0.01, .kinks = 1},
    {.what = "a jump of 5e-9, which is noise", {low_jump, jump_slope}, {0, 1.2}, 0.01, "1 of 2"},
    {.what = "sqrt|x| at 0 is no kink", {power_of_half, its_slope}, {0, 1.2}, 1, "1 of 2"},
    {.what = "1e12, which does not move", {huge_or_itself, none_or_nearly_one}, {0, 1.2}, 0},
    {.what = "1e12 beside an error",
     {huge_or_itself, none_or_nearly_one},
     {0, 1.2},
     1e-8,
     "1 of 2"},
    {.what = "a tight bend is no kink", {hyperbola, hyperbola_slope}, {0, 1}, 0.5, "2 of 2"},
    {.what = "values near the largest", {nearly_largest, the_parameter}, {1, 1.2}, 2e300, "wrong"},
    {.what = "values near the largest, Inf",
     {nearly_largest, the_parameter},
     {1, 1.2},
     (double)INFINITY,
     "wrong"},
    {.what = "|x|^1.5 at 0 is no kink", {power_1_5, slope_1_5}, {0, 1.2}, 1e-4, "1 of 2"},
    {.what = "|x| with slope -1.001", {fabs, kink_slope}, {0, 1}, -1.001, .kinks = 1},
    {.what = "|x| with slope -1.01", {fabs, kink_slope}, {0, 1}, -1.01, "1 of 2"},
    {.what = "half of 1e-7", {squared, nearly_twice}, {1, -0.7}, 0.5e-7, .tolerance = 1e-7},
    {.what = "a kink at a fifth", {far_kink, far_kink_slope}, {1, 1.3}, 0.1 - 0.2 * 0x1p-6},
    {.what = "waves of period 1/64", {line_in_waves, the_parameter}, {0.3, 1.1}, 3, "are wrong"},
    {.what = "0 beside a kink at 1e-2", {dead_zone, square_slope_alone}, {0.3, 1.1}, 0.31},
    {.what = "0 beside a kink at 1e-8", {dead_zone, square_slope_alone}, {0.3, 1.1}, 0.30000001},
};

START_TEST(what_is_within_the_limits_passes_and_what_is_beyond_does_not)
{
    for (uint64_t seed = 0; seed < 5; seed++) {
        parameter = figures[_i].parameter;
        ng_check_report report =
            check_pointwise(figures[_i].f, figures[_i].x[0], figures[_i].x[1],
                            (ng_check_options){.tolerance = figures[_i].tolerance, .seed = seed});
        if (figures[_i].says)
            expect_says(report, figures[_i].says);
        else
            expect_passed(report, figures[_i].what);
        ck_assert_msg(report.kinks == figures[_i].kinks, "%s: %d kinks", figures[_i].what,
                      (int)report.kinks);
    }
}

/* ---- Noise ----------------------------------------------------------------------------------- */

static double slope_off; /* by which a slope is wrong, as a share of it */

/* Noise: a number of [-1, 1) for each x. */
static double drawn(double x)
{
    ng_rng rng = ng_rng_seeded((uint64_t)llround(ldexp(x, 60)));
    return 2 * ng_rng_uniform(&rng) - 1;
}
static double drawn_sine(double x) { return sin(x) + parameter * drawn(x); }
static double drawn_slope(double x) { return cos(x) * (1 + slope_off); }
static double float_sine(double x) { return (double)sinf((float)x); }

static bool is_sure(const ng_check_report *report)
{
    return strstr(report->message, "are wrong") &&
           !strstr(report->message, "cannot be told from rounding");
}

/* Of 200 points, `most` may be called wrong without doubt, and `least` must be. */
static const struct {
    const char *what;
    double (*value)(double x);
    double noise, slope_off;
    int most, least;
} noisy[] = {
    {"right, noise 1e-13", drawn_sine, 1e-13, 0, 0, 0},
    {"right, noise 1e-10", drawn_sine, 1e-10, 0, 0, 0},
    {"right, noise 1e-6", drawn_sine, 1e-6, 0, 0, 0},
    {"right, noise 1e-3", drawn_sine, 1e-3, 0, 0, 0},
    {"right, in float32", float_sine, 0, 0, 0, 0},
    {"off by 1e-6", drawn_sine, 0, 1e-6, 200, 200},
    {"off by 1e-6, noise 1e-13", drawn_sine, 1e-13, 1e-6, 200, 200},
    {"off by 1e-6, noise 1e-10", drawn_sine, 1e-10, 1e-6, 200, 200},
    {"off by 1e-2, noise 1e-6", drawn_sine, 1e-6, 1e-2, 200, 200},
    {"off by 1e-2, in float32", float_sine, 0, 1e-2, 200, 195},
    {"no gradient, in float32", float_sine, 0, -1, 200, 195},
};

START_TEST(noise_is_told_from_an_error)
{
    int sure = 0;
    for (int i = 0; i < 200; i++) {
        parameter = noisy[_i].noise, slope_off = noisy[_i].slope_off;
        ng_check_report report = check_pointwise(
            (pointwise){noisy[_i].value, drawn_slope}, 0.3 + 0.002 * i, 1.1 - 0.0023 * i,
            (ng_check_options){.mode = modes[i % 2], .seed = (uint64_t)i});
        if (slope_off != 0) ck_assert(!report.passed);
        if (slope_off == 0 && noisy[_i].noise > 0 && noisy[_i].noise < 1e-9)
            expect_passed(report, noisy[_i].what);
        sure += is_sure(&report);
    }
    ck_assert_msg(sure <= noisy[_i].most && sure >= noisy[_i].least, "%s: %d of 200",
                  noisy[_i].what, sure);
    slope_off = 0;
}

START_TEST(float32_inside_passes_with_a_tolerance)
{
    for (int i = 0; i < 200; i++) {
        ng_check_report report =
            check_pointwise((pointwise){float_sine, drawn_slope}, 0.3 + 0.001 * i, 1.1 - 0.0013 * i,
                            (ng_check_options){.tolerance = 2e-3});
        expect_passed(report, "sin x in float32");
    }
}

/* ---- Two orders, one report ----------------------------------------------------------------- */

START_TEST(order_2_sees_what_is_wrong_at_order_1)
{
    /* The second derivative is the right one of the wrong gradient. */
    for (int mode = 0; mode < 2; mode++) {
        ng_check_options options = {.order = 2, .mode = modes[mode]};
        ng_check_report report = check_spoiled(square, FLIPPED, options);
        expect_says(report, "the sign is flipped");
        ck_assert_int_eq(report.order, 1);
        ck_assert_int_eq(report.failed, report.compared);
        ck_assert_int_eq(report.compared, mode == 0 ? 16 : 3);
        ck_assert_ptr_null(strstr(report.message, "second"));
    }
    gradient_case spec = {.name = "spoiled square",
                          .inputs = {{.name = "x", .shape = NG_SHAPE(3)}}};
    spec.call = flipped_square;
    expect_says(check_case(&spec, (ng_check_options){.order = 2}), "the sign is flipped");
}

START_TEST(order_2_compares_the_derivatives_of_both_orders)
{
    ng_tensor *x = normal(1, NG_SHAPE(6), 1);
    for (int mode = 0; mode < 2; mode++) {
        ng_check_report first = ng_check_function(gelu, &x, 1, .mode = modes[mode]);
        ng_check_report both = ng_check_function(gelu, &x, 1, .mode = modes[mode], .order = 2);
        expect_passed(both, "gelu");
        ck_assert_int_eq(first.order, 1);
        ck_assert_int_eq(both.order, 2);
        ck_assert_int_eq(both.compared, 2 * first.compared);
        ck_assert_double_ge(both.relative_error, first.relative_error);
    }
}

/* ---- Faults of the second order ------------------------------------------------------------ */

/* y = x^2 with dx = 2 x dy, where x is detached: right at order 1, wrong at order 2. */
static void cut_off(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    dx[0] = ng_mul(tape, dy, ng_mul_scalar(tape, ng_detach(tape, node->inputs[0]), 2));
}

/* y = x^2 with a kernel that is wrong by the factor 1 + parameter. One op has the right definition,
 * one that of x^3. */
static ng_status square_backward(ng_tape *tape, const ng_node *node, const ng_tensor *dy,
                                 ng_slot *dx)
{
    (void)tape;
    double *to = dx[0].data;
    for (int64_t i = 0; i < ng_size(dy); i++)
        to[i] = (dx[0].accumulate ? to[i] : 0) +
                2 * ng_get(node->inputs[0], i) * (1 + parameter) * ng_get(dy, i);
    return NG_OK;
}
static ng_tensor *square_definition(ng_tape *tape, const ng_node *node)
{
    return ng_square(tape, node->inputs[0]);
}
static ng_tensor *cube_definition(ng_tape *tape, const ng_node *node)
{
    return ng_pow_scalar(tape, node->inputs[0], 3);
}

static const ng_op cut_off_op = {.name = "cut off", .gradient = cut_off};
static const ng_op misdefined_op = {
    .name = "misdefined", .backward = square_backward, .definition = cube_definition};
static const ng_op nearly_square_op = {
    .name = "nearly square", .backward = square_backward, .definition = square_definition};

static ng_tensor *square_of(ng_tape *tape, ng_tensor *const *in, void *context)
{
    const ng_op *op = context;
    ng_tensor *y = ng_result(tape, NG_F64, ng_shape_of(in[0]));
    for (int64_t i = 0; y && i < ng_size(y); i++)
        ng_data_f64(y)[i] = ng_get(in[0], i) * ng_get(in[0], i);
    return y ? ng_record(tape, op, y, in, 1, NULL, 0) : NULL;
}

START_TEST(a_fault_of_second_order_only_is_caught_there)
{
    static const ng_op *const ops[] = {&cut_off_op, &misdefined_op};
    static const char *const says[] = {"0 where it should not be",
                                       ".backward and .definition of misdefined"};
    ng_tensor *x = normal(1, NG_SHAPE(6), 1);
    void *op = (void *)(uintptr_t)ops[_i];
    parameter = 0;
    for (int mode = 0; mode < 2; mode++) {
        ng_check_report first =
            ng_check_function(square_of, &x, 1, .context = op, .mode = modes[mode]);
        expect_passed(first, "first order");
        ng_check_report second =
            ng_check_function(square_of, &x, 1, .context = op, .order = 2, .mode = modes[mode]);
        ck_assert(!second.passed);
        ck_assert_int_eq(second.order, 2);
        if (mode == 0) expect_says(second, says[_i]);
        if (mode == 0 && _i == 0) {
            expect_says(second, "6 of 6 second derivatives are wrong");
            ck_assert_int_eq(second.compared, 12);
            ck_assert_int_eq(second.failed, 6);
        }
    }
}

/* ---- Faults that show in some passes only -------------------------------------------------- */

typedef struct {
    enum { NEVER, OVERWRITES, OVERFLOWS, LEANS_ON_THE_OTHER, TIRES, MOODS } fault;
    int passes;
} moody;

/* y = a b with a kernel that overwrites instead of adding, adds infinity, needs both gradients to
 * be wanted, or changes its result after two passes. */
static ng_status moody_backward(ng_tape *tape, const ng_node *node, const ng_tensor *dy,
                                ng_slot *dx)
{
    (void)tape;
    moody *of = *(moody *const *)node->attributes;
    of->passes++;
    for (int k = 0; k < 2; k++) {
        const double *other = ng_data_f64(node->inputs[1 - k]), *from = ng_data_f64(dy);
        double *to = dx[k].data;
        for (int64_t i = 0; to && i < ng_size(dy); i++) {
            double value = other[i] * from[i];
            if (of->fault == LEANS_ON_THE_OTHER && !dx[1 - k].data) value = 0;
            if (of->fault == TIRES && of->passes > 2) value *= 1 + 1e-12;
            if (of->fault == OVERFLOWS && dx[k].accumulate && i == 3) value = HUGE_VAL;
            to[i] = dx[k].accumulate && of->fault != OVERWRITES ? to[i] + value : value;
        }
    }
    return NG_OK;
}
static const ng_op moody_op = {.name = "moody", .backward = moody_backward};

static ng_tensor *product_by(ng_tape *tape, const ng_op *op, ng_tensor *const *in, void *context)
{
    ng_tensor *y = ng_result(tape, NG_F64, ng_shape_of(in[0]));
    for (int64_t i = 0; y && i < ng_size(y); i++)
        ng_data_f64(y)[i] = ng_get(in[0], i) * ng_get(in[1], i);
    return y ? ng_record(tape, op, y, in, 2, &context, sizeof context) : NULL;
}

static ng_tensor *moody_product(ng_tape *tape, ng_tensor *const *in, void *context)
{
    return product_by(tape, &moody_op, in, context);
}

START_TEST(a_fault_that_shows_in_some_passes_only_is_caught)
{
    static const char *const says[] = {
        [OVERWRITES] = "where it is asked for alone and added to another",
        [OVERFLOWS] = "at [3]",
        [LEANS_ON_THE_OTHER] = "where it is asked for alone and added to another",
        [TIRES] = "run again at the same point, the gradient is"};
    ng_tensor *in[] = {normal(1, NG_SHAPE(6), 1), normal(2, NG_SHAPE(6), 1)};
    for (int mode = 0; mode < 2; mode++) {
        moody of = {.fault = (unsigned)_i};
        ng_check_report report =
            ng_check_function(moody_product, in, 2, .context = &of, .mode = modes[mode]);
        if (_i == NEVER)
            expect_passed(report, "a product");
        else
            expect_says(report, says[_i]);
    }
}

/* The same with a rule that needs both gradients to be wanted. */
static void leaning_rule(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    const bool alone = dx[0] == NG_NONE || dx[1] == NG_NONE;
    for (int k = 0; k < 2; k++)
        if (dx[k] != NG_NONE)
            dx[k] = ng_mul_scalar(tape, ng_mul(tape, dy, node->inputs[1 - k]), alone ? 2 : 1);
}
static ng_tensor *leaning_product(ng_tape *tape, ng_tensor *const *in, void *context)
{
    static const ng_op op = {
        .name = "leaning", .gradient = leaning_rule, .backward = moody_backward};
    return product_by(tape, &op, in, context);
}

/* As in a gradient penalty. */
START_TEST(a_fault_of_a_gradient_recorded_alone_is_caught)
{
    ng_tensor *in[] = {normal(1, NG_SHAPE(6), 1), normal(2, NG_SHAPE(6), 1)};
    moody of = {.fault = NEVER};
    for (int mode = 0; mode < 2; mode++) {
        expect_says(ng_check_function(leaning_product, in, 2, .context = &of, .order = 2,
                                      .mode = modes[mode]),
                    "where it is recorded and asked for alone");
    }
}

CALL(large_and_nearly_square,
     ng_add(tape, ng_square(tape, in[0]),
            ng_mul_scalar(tape, square_of(tape, &in[1], (void *)(uintptr_t)&nearly_square_op),
                          1e-4)))

START_TEST(backward_and_definition_agree_to_1e_9)
{
    ng_tensor *in[] = {normal(1, NG_SHAPE(3), 1), normal(2, NG_SHAPE(3), 1)};
    parameter = 5e-10;
    ng_check_report report =
        ng_check_function(large_and_nearly_square, in, 2, .order = 2, .tolerance = 1e-4);
    expect_passed(report, "half of 1e-9");
    parameter = 2e-9; /* also beside a gradient 10^4 times as large */
    report = ng_check_function(large_and_nearly_square, in, 2, .order = 2, .tolerance = 1e-4);
    expect_says(report, ".backward and .definition of nearly square");
    expect_says(report, "the gradient of input 2");
}

/* ---- What is no derivative ----------------------------------------------------------------- */

static ng_tensor *forgetful(ng_tape *tape, ng_tensor *const *in, void *context)
{
    int *calls = context;
    return ng_mul_scalar(tape, in[0], 1 + 1e-15 * (double)(++*calls % 8));
}

static ng_tensor *resized(ng_tape *tape, ng_tensor *const *in, void *context)
{
    int *calls = context;
    return ng_slice(tape, in[0], 0, 0, 1 + ++*calls % 2);
}

CALL(constant, ng_mul_scalar(tape, in[0], 0))
CALL(detached, ng_detach(tape, in[0]))
CALL(first_only, ng_square(tape, in[0]))
CALL(failing, ng_matmul(tape, in[0], in[0]))
CALL(quotient, ng_div(tape, in[0], in[0]))
CALL(silent, ((void)tape, (void)in, (ng_tensor *)NULL))
CALL(ignoring, (ng_matmul(tape, in[0], in[0]), ng_square(tape, in[0])))
CALL(nothing, ((void)tape, (void)in, NG_NONE))
CALL(indices, ng_argmax(tape, in[0], .axes = NG_AXES(0)))
CALL(rounded, ng_cast(tape, in[0], NG_F32))

START_TEST(what_gives_other_bits_fails)
{
    int calls = 0;
    ng_tensor *x = normal(1, NG_SHAPE(4), 1);
    expect_says(ng_check_function(forgetful, &x, 1, .context = &calls),
                "run again at the same point");
    ng_check_report report = ng_check_function(resized, &x, 1, .context = &calls);
    ck_assert(!report.passed);
}

START_TEST(what_cannot_be_checked_says_why)
{
    ng_tensor *x[] = {normal(1, NG_SHAPE(2, 3), 1), normal(2, NG_SHAPE(2, 3), 1)};
    ng_tensor *negative = own(ng_tensor_from(NG_F64, NG_SHAPE(3), NG_VALUES(1, -1, 2)));
    ng_tensor *infinite = own(ng_tensor_from(NG_F64, NG_SHAPE(2), NG_VALUES(1, (double)INFINITY)));
    ng_tensor *labels = own(ng_zeros_new(NG_I64, NG_SHAPE(2))),
              *single = own(ng_zeros_new(NG_F32, NG_SCALAR));
    ng_tensor *empty = own(ng_zeros_new(NG_F64, NG_SHAPE(0, 3))), *none = NULL, *left_out = NG_NONE;
    ng_tensor *mixed[] = {x[0], single};
    static const char *const names[] = {"weight", NULL};
    const struct {
        ng_check_call *call;
        ng_tensor *const *in;
        int n;
        const char *says;
    } rows[] = {{constant, x, 1, "every derivative is 0"},
                {detached, x, 1, "no gradient"},
                {first_only, x, 2, "no gradient of input 2"},
                {indices, x, 1, "int64"},
                {rounded, x, 1, "float32"},
                {failing, x, 1, "ng_matmul"},
                {silent, x, 1, "NULL"},
                {ignoring, x, 1, "ng_matmul"},
                {nothing, x, 1, "NG_NONE"},
                {logarithm, &negative, 1, "nan at [1]"},
                {square, &infinite, 1, "inf at [1]"},
                {square, &labels, 1, "nothing to differentiate"},
                {square, NULL, 0, "nothing to differentiate"},
                {square, &empty, 1, "nothing to compare"},
                {square, &single, 1, "weight is float32"},
                {first_only, mixed, 2, "input 2 is float32"},
                {square, &none, 1, "weight is NULL"},
                {square, &left_out, 1, "weight is NG_NONE"},
                {NULL, x, 1, "no function"},
                {square, NULL, 1, "inputs are missing: 1 were announced"},
                {square, x, -1, "inputs are missing: -1 were announced"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const ng_check_options options = {
            .inputs = rows[i].in, .n_inputs = rows[i].n, .names = names};
        expect_says(ng_check_function_with(rows[i].call, options), rows[i].says);
        ng_clear_error();
        ng_check_options second = options;
        second.order = 2;
        ck_assert_int_eq(ng_check_function_with(rows[i].call, second).order, 1);
        ng_clear_error();
    }
    /* A NaN has no sign, whichever the processor gave it. */
    ng_tensor *zero = own(ng_zeros_new(NG_F64, NG_SHAPE(1)));
    expect_says(ng_check_function(quotient, &zero, 1), "is nan at [0]");
    /* Steps below rounding: nothing is known about the derivative. */
    ng_check_report report = ng_check_function(square, x, 1, .step = 1e-300);
    expect_says(report, "are wrong or cannot be told from rounding");
    ck_assert_str_eq(report.hint, "");

    expect_says(ng_check_module(NULL, x, 1), "no module");
    ng_module *module = own(ng_relu_new());
    expect_says(ng_check_module(module, x, 1, .context = x), "there is a .context");
    expect_says(ng_check_module(module, x, 2), "2 inputs, but .names gives none");
}

START_TEST(options_without_meaning_are_refused)
{
    static const struct {
        ng_check_options options;
        const char *says;
    } wrong[] = {{{.order = 5}, "order 5"},
                 {{.order = -1}, "order -1"},
                 {{.mode = (ng_check_mode)2}, "mode 2"},
                 {{.mode = (ng_check_mode)-1}, "mode -1"},
                 {{.directions = -2, .mode = NG_CHECK_FAST}, "-2 directions"},
                 {{.directions = 2}, "2 directions were asked for: elements have none"},
                 {{.independent = -1}, "-1 dimensions of independent rows"},
                 {{.causal = true}, ".causal is set: it needs .independent"},
                 {{.tolerance = -1e-9}, "tolerance is -1e-09"},
                 {{.tolerance = 1}, "tolerance is 1"},
                 {{.tolerance = (double)NAN}, "tolerance is nan"},
                 {{.step = -1}, "step is -1"},
                 {{.step = NG_ZERO}, "the step is 0"},
                 {{.step = (double)NAN}, "step is nan"},
                 {{.step = (double)INFINITY}, "step is inf"}};
    ng_tensor *x = normal(1, NG_SHAPE(2), 1);
    ng_module *module = own(ng_linear_new(2, 2));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        ng_check_options options = wrong[i].options;
        options.inputs = &x;
        options.n_inputs = 1;
        ng_check_report report = ng_check_function_with(square, options);
        expect_says(report, wrong[i].says);
        ck_assert_int_eq(report.compared, 0);
        expect_says(ng_check_module_with(module, options), wrong[i].says);
        expect_says(check_case(op_case(0), options), wrong[i].says);
    }
}

/* ---- Nothing is left behind ------------------------------------------------------------------ */

START_TEST(a_failure_inside_a_check_is_not_left_on_record)
{
    ng_tensor *x = normal(1, NG_SHAPE(2, 3), 1);
    expect_says(ng_check_function(failing, &x, 1), "ng_matmul");
    ck_assert(!ng_failed());
    ng_module *module = own(ng_linear_new(4, 2));
    expect_says(ng_check_module(module, &x, 1), "ng_linear");
    ck_assert(!ng_failed());
    ng_fail(NG_EIO, "an earlier one");
    expect_passed(ng_check_function(square, &x, 1), "beside a failure of something else");
    expect_says(ng_check_function(failing, &x, 1), "ng_matmul");
    ck_assert_int_eq(ng_failures(), 1);
    assert_error(NG_EIO, "an earlier one");
}

/* ---- Kinks --------------------------------------------------------------------------------- */

START_TEST(a_kink_is_told_from_an_error)
{
    ng_tensor *x = own(ng_tensor_from(NG_F64, NG_SHAPE(4), NG_VALUES(0, 1, -2, 0)));
    ng_check_call *call = _i ? absolute : relu;
    ng_check_report report = ng_check_function(call, &x, 1);
    expect_passed(report, "a function at its kink");
    ck_assert_int_eq(report.kinks, 2);
    ck_assert_int_eq(report.compared, 4);
    report = ng_check_function(call, &x, 1, .mode = NG_CHECK_FAST); /* it moves the zeros too */
    expect_says(report, "at a kink");
    report = ng_check_function(relu, &x, 1, .order = 2);
    expect_passed(report, "a jump of the gradient, at order 2");
    ck_assert_int_eq(report.kinks, 4);
    ng_fill(x, 0);
    report = ng_check_function(call, &x, 1);
    expect_says(report, "at a kink");
    ck_assert_int_eq(report.kinks, 4);
}

START_TEST(a_kink_near_by_is_stepped_around)
{
    double distance = pow(10, -1 - _i); /* 0.1 to 1e-6 */
    ng_tensor *x = own(ng_tensor_from(NG_F64, NG_SHAPE(3), NG_VALUES(distance, -distance, 1)));
    for (int mode = 0; mode < 2; mode++) {
        ng_check_report report = ng_check_function(relu, &x, 1, .mode = modes[mode]);
        expect_passed(report, "relu near 0");
        ck_assert_int_eq(report.kinks, 0);
    }
}

CALL(rectified_product, ng_mul(tape, ng_relu(tape, spoil_gradient(tape, in[0], ZEROED)), in[1]))
CALL(right_rectified_product, ng_mul(tape, ng_relu(tape, in[0]), in[1]))

/* Every direction moves the first input off its kink. Its wrong gradient of 0 may lie between the
 * slopes of the two sides. The second input's right gradient must not hide that. */
START_TEST(an_input_that_is_at_kinks_alone_has_not_passed_whatever_the_others)
{
    ng_tensor *in[] = {own(ng_tensor_from(NG_F64, NG_SHAPE(4), NG_VALUES(0, 1, -2, 0.5))),
                       normal(1, NG_SHAPE(4), 1)};
    for (uint64_t seed = 0; seed < 40; seed++) {
        const ng_check_mode mode = modes[seed % 2];
        ng_check_report report =
            ng_check_function(rectified_product, in, 2, .mode = mode, .seed = seed);
        ck_assert_msg(!report.passed, "mode %d, seed %d", (int)mode, (int)seed);
        report = ng_check_function(right_rectified_product, in, 2, .mode = mode, .seed = seed);
        if (mode == NG_CHECK_ELEMENTS)
            expect_passed(report, "an input with a kink");
        else
            expect_says(report, "input 1 stands at a kink");
    }
    /* An element of 1e-9 beside them is tested by itself, but not along directions. */
    ng_set(in[0], 1, 1e-9);
    ng_check_report report =
        ng_check_function(right_rectified_product, in, 2, .mode = NG_CHECK_FAST);
    expect_says(report, "input 1 stands at a kink");
}

/* ---- What is held fixed -------------------------------------------------------------------- */

/* A norm of the user's own that updates its statistics in every run. */
typedef struct {
    ng_module base;
    ng_tensor *gain, *running;
} user_norm;

static double gain_seen;

static ng_tensor *user_norm_forward(ng_module *module, ng_tape *tape, ng_tensor *x)
{
    user_norm *self = (user_norm *)module;
    for (int64_t i = 0; i < ng_size(self->running); i++)
        ng_set(self->running, i, 0.9 * ng_get(self->running, i) + 0.1 * ng_get(x, i));
    gain_seen = ng_get(self->gain, 0);
    ng_tensor *shifted = ng_sub(tape, x, ng_detach(tape, self->running));
    return ng_mul(tape, shifted, self->gain);
}

static const ng_module_class user_norm_class = {
    .name = "UserNorm", .size = sizeof(user_norm), .forward = user_norm_forward};

/* A gain of 1 would hide that a gradient lacks it. */
START_TEST(buffers_are_put_back_before_each_run_and_parameters_of_1_are_drawn)
{
    user_norm *self = (user_norm *)ng_module_new(&user_norm_class);
    self->gain = ng_module_add_parameter(&self->base, "gain", NG_SHAPE(3));
    self->running = ng_module_add_buffer(&self->base, "running", NG_SHAPE(3), 0);
    ng_module *module = own(ng_module_built(&self->base));
    ng_fill(self->gain, 1);
    ng_tensor *x = normal(3, NG_SHAPE(4, 3), 1);
    expect_passed(ng_check_module(module, &x, 1), "a module with statistics");
    ck_assert_double_ne(gain_seen, 1);
    for (int i = 0; i < 3; i++) {
        ck_assert_double_eq(ng_get(self->running, i), 0);
        ck_assert_double_eq(ng_get(self->gain, i), 1);
    }
}

/* ---- What is detached ---------------------------------------------------------------------- */

/* LayerNorm made of primitives, with parts detached by mistake or by definition. */
typedef struct {
    bool deviation, mean, by_definition;
} detached_parts;

static ng_tensor *naive_norm(ng_tape *tape, ng_tensor *const *in, void *context)
{
    const detached_parts *parts = context;
    ng_tensor *mean = ng_mean(tape, in[0], .axes = NG_AXES(-1), .keepdim = true);
    ng_tensor *var = ng_variance(tape, in[0], .axes = NG_AXES(-1), .keepdim = true);
    ng_tensor *rstd = ng_rsqrt(tape, ng_add_scalar(tape, var, 1e-5));
    bool meant = parts->by_definition;
    if (parts->mean) mean = ng_detach(tape, mean, .by_definition = meant);
    if (parts->deviation) rstd = ng_detach(tape, rstd, .by_definition = meant);
    return ng_mul(tape, ng_sub(tape, in[0], mean), rstd);
}

static ng_check_report check_naive(detached_parts parts, ng_check_options options)
{
    ng_tensor *x = normal(1, NG_SHAPE(3, 4), 1);
    options.inputs = &x;
    options.n_inputs = 1;
    options.context = &parts;
    ng_check_report report = ng_check_function_with(naive_norm, options);
    return report;
}

START_TEST(a_value_detached_by_mistake_is_reported_and_wrong_if_it_moves)
{
    for (int i = 0; i < 4; i++) {
        ng_check_options options = {.mode = modes[i % 2], .order = 1 + i / 2};
        ng_check_report report = check_naive((detached_parts){.deviation = true}, options);
        expect_passed(report, "a norm with a detached deviation");
        ck_assert_int_eq(report.detached, 1);
        ck_assert_int_eq(report.constants, 0);
        ck_assert_msg(strstr(report.detached_value, "rsqrt (3, 1) at test_check.c:"), "%s",
                      report.detached_value);
        report = check_naive((detached_parts){.deviation = true, .mean = true}, options);
        ck_assert_int_eq(report.detached, 2);
        ck_assert_msg(strstr(report.detached_value, "mean (3, 1)"), "%s", report.detached_value);
        report = check_naive((detached_parts){0}, options);
        ck_assert_int_eq(report.detached, 0);
        ck_assert_str_eq(report.detached_value, "");
        options.detached_moves = true;
        report = check_naive((detached_parts){.deviation = true}, options);
        expect_says(report, "rsqrt (3, 1) at test_check.c:");
        ck_assert_int_gt(report.failed, 0);
        expect_passed(check_naive((detached_parts){0}, options), "a norm with nothing detached");
    }
}

START_TEST(a_constant_by_definition_is_held_fixed_either_way)
{
    for (int i = 0; i < 4; i++) {
        ng_check_options options = {.order = 1 + i / 2, .detached_moves = i % 2};
        detached_parts parts = {.deviation = true, .mean = true, .by_definition = true};
        ng_check_report report = check_naive(parts, options);
        expect_passed(report, "DetachNorm");
        ck_assert_int_eq(report.detached, 0);
        ck_assert_int_eq(report.constants, 2);
    }
}

CALL(stable_softmax, ng_exp(tape, ng_sub(tape, in[0],
                                         ng_max(tape, ng_detach(tape, in[0]), .axes = NG_AXES(-1),
                                                .keepdim = true))))
CALL(shifted_softmax,
     ng_div(tape, stable_softmax(tape, in, context),
            ng_sum(tape, stable_softmax(tape, in, context), .axes = NG_AXES(-1), .keepdim = true)))
CALL(masked, ng_mul(tape, in[0],
                    ng_greater(tape, ng_detach(tape, in[0]), ng_full(tape, NG_F64, NG_SCALAR, 0))))
CALL(chosen, ng_mul(tape,
                    ng_gather_rows(tape, in[0],
                                   ng_argmax(tape, ng_detach(tape, in[0]), .axes = NG_AXES(0))),
                    ng_add_scalar(tape, ng_sum(tape, in[0]), 1)))
CALL(scaled_by_constant, ng_mul(tape, in[0], ng_detach(tape, ng_full(tape, NG_F64, NG_SCALAR, 3))))

START_TEST(what_is_only_compared_or_cancels_does_not_count_as_held_fixed)
{
    static ng_check_call *const calls[] = {shifted_softmax, masked, chosen, scaled_by_constant};
    static const char *const names[] = {"softmax", "mask", "argmax", "constant"};
    for (int i = 0; i < 4; i++) {
        for (uint64_t seed = 0; seed < 10; seed++) {
            ng_tensor *x = normal(seed, NG_SHAPE(30, 40), 1);
            for (int moves = 0; moves < 2; moves++) {
                ng_check_report report =
                    ng_check_function(calls[i], &x, 1, .mode = NG_CHECK_FAST, .seed = seed,
                                      .directions = 1, .detached_moves = moves);
                expect_passed(report, names[i]);
                ck_assert_int_eq(report.detached, 0);
            }
        }
    }
    ng_tensor *x = normal(1, NG_SHAPE(3, 4), 1); /* it does not cancel without the division */
    ng_check_report report = ng_check_function(stable_softmax, &x, 1);
    expect_passed(report, "half a softmax");
    ck_assert_int_eq(report.detached, 1);
}

/* A value that was not recorded: detached, and not. */
static ng_tensor *square_in_the_dark(ng_tape *tape, ng_tensor *x)
{
    bool was = ng_tape_set_recording(tape, false);
    ng_tensor *y = ng_square(tape, x);
    ng_tape_set_recording(tape, was);
    return y;
}
CALL(detached_unrecorded, ng_mul(tape, in[0], ng_detach(tape, square_in_the_dark(tape, in[0]))))
CALL(only_unrecorded, ng_mul(tape, in[0], square_in_the_dark(tape, in[0])))

START_TEST(what_was_not_recorded_counts_where_it_is_detached_and_fails_where_not)
{
    ng_tensor *x = normal(1, NG_SHAPE(5), 1);
    ng_check_report report = ng_check_function(detached_unrecorded, &x, 1, .order = 2);
    expect_passed(report, "detached");
    ck_assert_int_eq(report.detached, 1);
    ck_assert_msg(strstr(report.detached_value, "a value (5,)"), "%s", report.detached_value);
    expect_says(ng_check_function(only_unrecorded, &x, 1), "wrong");
}

START_TEST(modules_that_detach_on_purpose_say_so)
{
    static const char *const names[] = {"AdaNorm", "AdaNorm_raw", "DetachNorm", "BatchRenorm",
                                        "SpectralNorm"};
    int found = 0;
    const gradient_case *spec;
    for (int i = 0; (spec = layer_case(i)); i++) {
        for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
            if (strcmp(spec->name, names[k]) != 0) continue;
            ng_check_report report = check_case(spec, (ng_check_options){.order = 2});
            expect_passed(report, names[k]);
            ck_assert_msg(report.constants > 0, "%s", names[k]);
            ck_assert_int_eq(report.detached, 0);
            found++;
        }
    }
    ck_assert_int_eq(found, 5);
}

/* ---- Functions that take gradients themselves ---------------------------------------------- */

/* mean (||dy / dx|| - 1)^2 of a network with a norm: WGAN-GP's penalty. */
typedef struct {
    bool batch, unrecorded, beside;
} penalty;

static ng_tensor *normed_network(ng_tape *tape, ng_tensor *const *in, bool batch)
{
    ng_tensor *h = ng_matmul(tape, in[0], in[1]);
    h = batch
            ? ng_batch_norm(tape, h, in[2], in[3], NG_NONE, NG_NONE, .eps = 1e-5, .training = true)
            : ng_layer_norm(tape, h, in[2], in[3], .eps = 1e-5);
    return ng_matmul(tape, ng_gelu(tape, h), in[4]);
}

static ng_tensor *gradient_penalty(ng_tape *tape, ng_tensor *const *in, void *context)
{
    const penalty *kind = context;
    ng_tensor *y = normed_network(tape, in, kind->batch);
    ng_tensor *weights = in[5]; /* of the outputs: a batch norm's plain sum is constant */
    ng_tensor *g = ng_gradient(tape, ng_sum(tape, ng_mul(tape, y, weights)), in[0],
                               .record = !kind->unrecorded);
    ng_tensor *squares = g ? ng_sum(tape, ng_square(tape, g), .axes = NG_AXES(-1)) : NULL;
    ng_tensor *off = ng_add_scalar(tape, ng_sqrt(tape, squares), -1);
    ng_tensor *mean = ng_mean(tape, ng_square(tape, off));
    return kind->beside ? ng_add(tape, mean, ng_mean(tape, y)) : mean;
}

enum { PENALTY_INPUTS = 6 };
static void penalty_inputs(ng_tensor **in)
{
    const ng_shape shapes[PENALTY_INPUTS] = {NG_SHAPE(4, 3), NG_SHAPE(3, 5), NG_SHAPE(5),
                                             NG_SHAPE(5),    NG_SHAPE(5, 1), NG_SHAPE(4, 1)};
    for (int i = 0; i < PENALTY_INPUTS; i++) in[i] = normal((uint64_t)i + 1, shapes[i], 1);
}

START_TEST(a_gradient_penalty_checks_at_both_orders)
{
    ng_tensor *in[PENALTY_INPUTS];
    penalty_inputs(in);
    for (int i = 0; i < 4; i++) {
        penalty kind = {.batch = i % 2};
        ng_check_report report =
            ng_check_function(gradient_penalty, in, PENALTY_INPUTS, .context = &kind,
                              .mode = modes[i / 2], .order = 2, .detached_moves = true);
        expect_passed(report, i % 2 ? "through BatchNorm" : "through LayerNorm");
        ck_assert_int_eq(report.order, 2);
        ck_assert_int_eq(report.detached, 0); /* what gradient rules detach does not count */
    }
}

START_TEST(a_gradient_that_is_not_recorded_is_named)
{
    ng_tensor *in[PENALTY_INPUTS];
    penalty_inputs(in);
    for (int i = 0; i < 8; i++) {
        penalty kind = {.batch = i % 2, .unrecorded = true, .beside = i / 2 % 2};
        ng_check_report report =
            ng_check_function(gradient_penalty, in, PENALTY_INPUTS, .context = &kind,
                              .mode = modes[i / 4], .order = 2);
        expect_says(report, "takes a gradient without .record = true");
        ng_clear_error();
    }
}

/* ---- Modules ------------------------------------------------------------------------------- */

static ng_module *small_network(void)
{
    return ng_sequential_new(ng_linear_new(3, 4), ng_batch_norm_new(4), ng_gelu_new(),
                             ng_dropout_new(0.2), ng_layer_norm_new(4), ng_linear_new(4, 2));
}

typedef struct {
    ng_tensor *values[16], *gradients[16];
    ng_tensor *tensors[16];
    bool wanted[16];
    int count;
} snapshot;

static snapshot take_snapshot(ng_module *module)
{
    snapshot s = {0};
    ng_named_tensor named;
    for (int i = 0; ng_module_parameter(module, i, &named); i++)
        s.tensors[s.count++] = named.tensor;
    for (int i = 0; ng_module_buffer(module, i, &named); i++) s.tensors[s.count++] = named.tensor;
    for (int i = 0; i < s.count; i++) {
        ng_tensor *x = s.tensors[i];
        s.wanted[i] = ng_requires_grad(x);
        s.values[i] = ng_copy_new(x, ng_dtype_of(x));
        if (ng_has_grad(x)) s.gradients[i] = ng_copy_new(ng_grad(x), ng_dtype_of(x));
    }
    return s;
}

static void expect_unchanged(snapshot *s)
{
    for (int i = 0; i < s->count; i++) {
        assert_same_bits(s->tensors[i], s->values[i]);
        ck_assert_int_eq(ng_requires_grad(s->tensors[i]), s->wanted[i]);
        ck_assert_int_eq(ng_has_grad(s->tensors[i]), s->gradients[i] != NULL);
        if (s->gradients[i]) assert_same_bits(ng_grad(s->tensors[i]), s->gradients[i]);
    }
}

static void free_snapshot(snapshot *s)
{
    for (int i = 0; i < s->count; i++) {
        ng_tensor_free(s->values[i]);
        ng_tensor_free(s->gradients[i]);
    }
}

/* Leaves gradients and running statistics in the module. */
static void run_backward(ng_module *module)
{
    ng_rng rng = ng_rng_seeded(8);
    ng_tensor *x = ng_normal_new(NG_F32, NG_SHAPE(5, 3), 0, 1, &rng);
    ng_tape *tape = ng_tape_new();
    ng_tensor *y = ng_forward(module, tape, x);
    ck_assert_int_eq(ng_backward(tape, ng_sum(tape, ng_square(tape, y))), NG_OK);
    ng_tape_free(tape);
    ng_tensor_free(x);
}

START_TEST(a_module_is_given_back_bit_for_bit)
{
    ng_module *module = own(small_network());
    ng_tensor *x = normal(1, NG_SHAPE(5, 3), 1), *narrow = normal(1, NG_SHAPE(5, 2), 1);
    run_backward(module);
    ng_freeze(ng_module_child(module, 4));
    ng_eval(ng_module_child(module, 3));
    snapshot before = take_snapshot(module);
    for (int mode = 0; mode < 2; mode++) {
        expect_passed(ng_check_module(module, &x, 1, .mode = modes[mode], .order = 2), "a network");
        expect_unchanged(&before);
    }
    expect_says(ng_check_module(module, &narrow, 1), "ng_linear");
    expect_unchanged(&before);
    ck_assert(module->training);
    ck_assert(!ng_module_child(module, 3)->training);
    ck_assert(ng_module_child(module, 4)->frozen);
    free_snapshot(&before);
}

static ng_tensor *layer_call(ng_tape *tape, ng_tensor *const *in, void *context)
{
    ng_module *const *layer = context;
    return ng_forward(*layer, tape, in[0]);
}

/* The layer is checked as a function: the checker does not know its buffers. */
START_TEST(no_check_of_a_function_moves_running_statistics)
{
    ng_module *layers[] = {own(ng_batch_norm_new(3)), own(ng_batch_renorm_new(3)),
                           own(ng_spectral_norm_new(ng_linear_new(3, 3)))};
    ng_tensor *x = normal(3, NG_SHAPE(6, 3), 1);
    for (int i = 0; i < 3; i++) {
        ng_module_to(layers[i], NG_F64);
        snapshot before = take_snapshot(layers[i]);
        for (int mode = 0; mode < 2; mode++) {
            expect_passed(ng_check_function(layer_call, &x, 1, .context = &layers[i], .order = 2,
                                            .mode = modes[mode]),
                          "a layer with statistics");
        }
        expect_unchanged(&before);
        free_snapshot(&before);
    }
}

CALL(weighted, ng_mul(tape, in[0], in[1]))

START_TEST(inputs_stay_as_they_are_and_constants_are_not_checked)
{
    ng_tensor *in[] = {normal(1, NG_SHAPE(5), 1), normal(2, NG_SHAPE(5), 1)};
    ng_tensor *before = own(ng_copy_new(in[0], NG_F64));
    const bool constants[] = {false, true};
    ng_check_report report = ng_check_function(weighted, in, 2, .constant = constants);
    expect_passed(report, "x times a constant");
    ck_assert_int_eq(report.compared, 5);
    assert_same_bits(in[0], before);
    ck_assert(!ng_requires_grad(in[0]));
}

/* ---- Print --------------------------------------------------------------------------------- */

static int lines_printed(const ng_check_report *report, char **text)
{
    size_t size;
    int lines = 0;
    FILE *stream = open_memstream(text, &size);
    ng_check_print(stream, "name", report);
    fclose(stream);
    for (const char *c = *text; *c; c++) lines += *c == '\n';
    return lines;
}

START_TEST(a_report_prints_one_line_and_two_more_where_it_failed)
{
    char *text;
    ng_tensor *x = normal(1, NG_SHAPE(4, 4), 1);
    ng_check_report report = ng_check_function(gelu, &x, 1);
    ck_assert_int_eq(lines_printed(&report, &text), 1);
    ck_assert_ptr_nonnull(strstr(text, " ok\n"));
    free(text);
    report = check_spoiled(gelu, FLIPPED, (ng_check_options){0});
    ck_assert_int_eq(lines_printed(&report, &text), 3);
    ck_assert_ptr_nonnull(strstr(text, "the sign is flipped"));
    ck_assert_ptr_nonnull(strstr(text, "FAILED"));
    free(text);
}

/* ---- Out of memory ------------------------------------------------------------------------- */

static bool check_short_of_memory(ng_module *module, ng_tensor *x, int64_t allowed, bool once)
{
    int64_t live = allocations_live();
    if (once)
        allocations_fail_once_after(allowed);
    else
        allocations_fail_after(allowed);
    ng_check_report report = ng_check_module(module, &x, 1, .order = 2);
    bool refused = allocations_refused();
    allocations_succeed();
    ck_assert_int_eq(allocations_live(), live);
    if (!refused || (once && report.passed)) { /* a tape that cannot join its blocks goes on */
        expect_passed(report, "with all the memory it wants");
    } else {
        ck_assert(!report.passed);
        ck_assert_str_ne(report.message, "");
    }
    return refused;
}

START_TEST(every_allocation_may_fail)
{
    ng_module *module =
        own(ng_sequential_new(ng_linear_new(3, 4), ng_layer_norm_new(4), ng_batch_norm_new(4)));
    ng_tensor *x = normal(1, NG_SHAPE(3, 3), 1);
    run_backward(module);
    snapshot before = take_snapshot(module);
    int64_t allowed = 0;
    while (check_short_of_memory(module, x, allowed, _i)) {
        expect_unchanged(&before);
        allowed = next_to_refuse(allowed);
    }
    ck_assert_int_gt(allowed, 20);
    free_snapshot(&before);
}

Suite *check_suite(void)
{
    Suite *suite = suite_create("check");
    TCase *tests = add_case(suite, NULL, NULL);
    tcase_set_tags(tests, "long");
    add_loops(tests, case_count(op_case), every_op_has_right_gradients);
    add_loops(tests, case_count(layer_case), every_layer_has_right_gradients);
    tests = add_case(suite, make_test_folder, remove_test_folder);
    add_tests(tests, the_report_names_the_worst_element, each_input_has_its_own_scale,
              float32_inside_passes_with_a_tolerance, order_2_sees_what_is_wrong_at_order_1,
              order_2_compares_the_derivatives_of_both_orders,
              a_fault_of_a_gradient_recorded_alone_is_caught, backward_and_definition_agree_to_1e_9,
              what_gives_other_bits_fails, what_cannot_be_checked_says_why,
              options_without_meaning_are_refused, a_failure_inside_a_check_is_not_left_on_record,
              an_input_that_is_at_kinks_alone_has_not_passed_whatever_the_others,
              buffers_are_put_back_before_each_run_and_parameters_of_1_are_drawn,
              a_value_detached_by_mistake_is_reported_and_wrong_if_it_moves,
              a_constant_by_definition_is_held_fixed_either_way,
              what_is_only_compared_or_cancels_does_not_count_as_held_fixed,
              what_was_not_recorded_counts_where_it_is_detached_and_fails_where_not,
              modules_that_detach_on_purpose_say_so, a_gradient_penalty_checks_at_both_orders,
              a_gradient_that_is_not_recorded_is_named, a_module_is_given_back_bit_for_bit,
              no_check_of_a_function_moves_running_statistics,
              inputs_stay_as_they_are_and_constants_are_not_checked,
              a_report_prints_one_line_and_two_more_where_it_failed);
    add_loops(tests, (int)(sizeof(sound) / sizeof *sound),
              right_gradients_pass_for_difficult_functions);
    add_loops(tests, sizeof planted / sizeof *planted, a_planted_fault_is_caught_and_named,
              a_planted_fault_is_caught_in_every_mode_and_order);
    add_loops(tests, 9, one_percent_is_caught_at_any_seed_and_scale);
    add_loops(tests, (int)(sizeof figures / sizeof *figures),
              what_is_within_the_limits_passes_and_what_is_beyond_does_not);
    add_loops(tests, (int)(sizeof noisy / sizeof *noisy), noise_is_told_from_an_error);
    add_loops(tests, 2, a_fault_of_second_order_only_is_caught_there, a_kink_is_told_from_an_error,
              every_allocation_may_fail);
    add_loops(tests, MOODS, a_fault_that_shows_in_some_passes_only_is_caught);
    add_loops(tests, 6, a_kink_near_by_is_stepped_around);
    return suite;
}
