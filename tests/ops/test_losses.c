/* Softmax, losses and dropout: closed forms, extreme values, options, errors. */
#include "support/fixture.h"
#include "support/support.h"

/* ---- What every test has ------------------------------------------------------------------ */

#define VALUES(dtype, shape, ...) own(ng_tensor_from(dtype, shape, NG_VALUES(__VA_ARGS__)))
#define LEAF(dtype, shape, ...) ng_require_grad(VALUES(dtype, shape, __VA_ARGS__))
#define LABELS(...)                                                                                \
    own(ng_tensor_from(NG_I64, labels_shape(NG_VALUES(__VA_ARGS__)), NG_VALUES(__VA_ARGS__)))

static ng_shape labels_shape(const double *values, int64_t count)
{
    (void)values;
    return NG_SHAPE(count);
}

/* ---- Softmax ------------------------------------------------------------------------------ */

START_TEST(a_setting_that_is_a_tensor_may_be_none)
{
    ng_tensor *x =
        own(ng_require_grad(ng_tensor_from(NG_F64, NG_SHAPE(2, 2), NG_VALUES(1, 2, 3, 5))));
    ng_tensor *t = ng_from(tape, NG_F64, NG_SHAPE(2, 2), NG_VALUES(0, 1, 1, 0));
    ng_tensor *labels = ng_from(tape, NG_I64, NG_SHAPE(2), NG_VALUES(0, 1));
    ng_tensor *with[] = {
        ng_cross_entropy(tape, x, labels, .weights = NG_NONE),
        ng_cross_entropy(tape, x, t, .weights = NG_NONE),
        ng_nll(tape, x, labels, .weights = NG_NONE),
        ng_binary_cross_entropy(tape, x, t, .weights = NG_NONE, .positive_weights = NG_NONE)};
    ng_tensor *without[] = {ng_cross_entropy(tape, x, labels), ng_cross_entropy(tape, x, t),
                            ng_nll(tape, x, labels), ng_binary_cross_entropy(tape, x, t)};
    for (int i = 0; i < 4; i++) assert_same_bits(with[i], without[i]);
    ng_tensor *y = ng_square(tape, x);
    assert_same_bits(ng_gradient(tape, y, x, .cotangent = NG_NONE), ng_gradient(tape, y, x));
}

START_TEST(softmax_is_finite_at_extremes)
{
    const ng_dtype dtype = _i == 0 ? NG_F32 : NG_F64;
    ng_tensor *x = VALUES(dtype, NG_SHAPE(2, 3), 1e4, 0, -1e4, -1e4, -1e4, -1e4);
    const double third = _i == 0 ? (double)(1.0f / 3) : 1.0 / 3;
    assert_values(ng_softmax(tape, x), 1e-15 + 1e-7 * (_i == 0), 1, 0, 0, third, third, third);
    ng_tensor *lost = ng_log_softmax(tape, VALUES(dtype, NG_SHAPE(2, 2), 0, (double)NAN, 1, 1));
    for (int64_t i = 0; i < 4; i++) ck_assert(isnan(ng_get(lost, i)) == (i < 2));
    assert_values(ng_log_softmax(tape, x), 1e-7, 0, -1e4, -2e4, -log(3), -log(3), -log(3));
}

/* ---- Losses against a target -------------------------------------------------------------- */

START_TEST(huber_by_hand)
{
    ng_tensor *x = LEAF(NG_F64, NG_SHAPE(4), 0.5, -3, 2, 0),
              *t = VALUES(NG_F64, NG_SHAPE(4), 0, 0, 0, 0);
    assert_values(ng_huber(tape, x, t, .reduction = NG_EACH), 0, 0.125, 2.5, 1.5, 0);
    assert_values(ng_huber(tape, x, t, .reduction = NG_EACH, .delta = 2), 0, 0.125, 4, 2, 0);
    assert_values(ng_huber(tape, x, t), 0, 4.125 / 4);
    ng_tensor *dx = ng_gradient(tape, ng_huber(tape, x, t, .reduction = NG_SUM), x, .record = true);
    assert_values(dx, 0, 0.5, -1, 1, 0);
    assert_values(ng_gradient(tape, dx, x), 0, 1, 0, 0, 1); /* of the parabola, also at 0 */
    assert_values(ng_gradient(tape, ng_mse(tape, x, x), x), 0, 0, 0, 0, 0);
}

START_TEST(losses_say_what_is_wrong)
{
    ng_tensor *x = normal(NG_F32, NG_SHAPE(2, 3), 1), *t = normal(NG_F32, NG_SHAPE(3), 2);
    ng_tensor *doubles = normal(NG_F64, NG_SHAPE(2, 3), 3), *none = VALUES(NG_F32, NG_SCALAR, 1);
    assert_fails(ng_mse(tape, x, t), NG_ESHAPE);
    assert_fails(ng_l1(tape, x, t), NG_ESHAPE);
    assert_fails(ng_huber(tape, x, t), NG_ESHAPE);
    assert_fails(ng_binary_cross_entropy(tape, x, t), NG_ESHAPE);
    assert_fails(ng_mse(tape, x, doubles), NG_EDTYPE);
    assert_fails(ng_mse(tape, x, own(ng_zeros_new(NG_I64, NG_SHAPE(2, 3)))), NG_EDTYPE, "target");
    assert_refused(ng_huber(tape, x, x, .delta = -1));
    assert_refused(ng_huber(tape, x, x, .delta = NG_ZERO));
    assert_refused(ng_mse(tape, x, x, .reduction = (ng_reduction)7));
    assert_refused(ng_mse(tape, x, x, .delta = 2));
    assert_refused(ng_kl_divergence(tape, x, x, .delta = NG_ZERO));
    assert_fails(ng_softmax(tape, x, .axes = NG_AXES(2)), NG_ESHAPE);
    assert_fails(ng_log_softmax(tape, none), NG_ESHAPE);
    assert_fails(ng_softmax(tape, LABELS(1, 2)), NG_EDTYPE);
    assert_refused(ng_cross_entropy(tape, x, LABELS(0, 1), .ignored = 1));
    assert_refused(ng_nll(tape, x, LABELS(0, 1), .ignored = -1));
    assert_refused(ng_cross_entropy(tape, x, LABELS(0, 3)));
    assert_refused(ng_cross_entropy(tape, x, LABELS(-1, 0)));
    assert_fails(ng_cross_entropy(tape, x, LABELS(0, 1, 2)), NG_ESHAPE);
    assert_fails(ng_cross_entropy(tape, x, VALUES(NG_F64, NG_SHAPE(2), 0, 1)), NG_EDTYPE);
    assert_fails(ng_nll(tape, x, VALUES(NG_F64, NG_SHAPE(2), 0, 1)), NG_EDTYPE);
    assert_fails(ng_hinge(tape, x, VALUES(NG_F64, NG_SHAPE(2), 0, 1)), NG_EDTYPE);
    assert_refused(ng_cross_entropy(tape, x, LABELS(0, 1), .smoothing = 1.5));
    assert_refused(ng_cross_entropy(tape, x, LABELS(0, 1), .smoothing = (double)NAN));
    assert_fails(ng_cross_entropy(tape, none, LABELS(0)), NG_ESHAPE);
    assert_fails(ng_cross_entropy(tape, LABELS(0, 1), LABELS(0, 1)), NG_EDTYPE);
    assert_refused(ng_cross_entropy(tape, x, LABELS(0, 1), .reduction = (ng_reduction)-1));
    const double wrong[] = {1, 1.5, -0.1, (double)NAN};
    for (int i = 0; i < 4; i++) assert_refused(ng_dropout(tape, x, wrong[i]));
}

/* Targets within rounding of 0 and 1 are accepted, and so is a NaN, which shows in the loss. */
START_TEST(targets_that_are_no_probabilities_are_errors)
{
    const ng_dtype dtype = _i ? NG_F64 : NG_F32;
    ng_tensor *x = normal(dtype, NG_SHAPE(4), 1);
    assert_refused(ng_binary_cross_entropy(tape, x, VALUES(dtype, NG_SHAPE(4), 0, 1, 2, -1)));
    assert_refused(ng_binary_cross_entropy(tape, x, VALUES(dtype, NG_SHAPE(4), 1, 1, 1, -1),
                                           .reduction = NG_EACH));
    assert_refused(ng_kl_divergence(tape, x, VALUES(dtype, NG_SHAPE(4), 0, 2, -0.5, 0)));
    ng_tensor *near = VALUES(dtype, NG_SHAPE(4), 1 + 1e-6, -1e-6, 1, 0);
    assert_ok(ng_binary_cross_entropy(tape, x, near));
    ng_tensor *unknown = VALUES(dtype, NG_SHAPE(4), 0, 1, (double)NAN, 1);
    ck_assert(isnan(ng_item(ng_binary_cross_entropy(tape, x, unknown))));
    ng_tensor *learned = LEAF(dtype, NG_SHAPE(4), 0, 1, 2, -1);
    assert_ok(ng_backward(tape, ng_binary_cross_entropy(tape, x, learned)));
    ck_assert(!ng_failed());
}

/* ---- Cross-entropy ------------------------------------------------------------------------ */

/* Logits ln 1, ln 2, ln 5 are the probabilities 1/8, 2/8, 5/8; equal ones are 1/3 each. */
static ng_tensor *known_logits(ng_dtype dtype)
{
    return LEAF(dtype, NG_SHAPE(2, 3), log(1), log(2), log(5), 4, 4, 4);
}

/* The loss of three rows of which the middle one is ignored, its gradient, and the gradient of that
 * gradient's squares: both 0 in the ignored row. */
static void ignore_the_middle(double held, ng_cross_entropy_options options, ng_tensor *results[3])
{
    ng_tensor *x = LEAF(NG_F64, NG_SHAPE(3, 2), 1, 2, held, -held, 4, 3), *dx;
    options.labels = LABELS(0, 7, 1);
    options.ignore = true, options.ignored = 7;
    results[0] = ng_sum(tape, ng_cross_entropy_with(tape, x, options));
    results[1] = dx = ng_gradient(tape, results[0], x, .record = true);
    results[2] = ng_gradient(tape, ng_sum(tape, ng_square(tape, dx)), x);
    assert_tensors_close(ng_gradient(tape, results[0], x), dx, 1e-14);
    for (int i = 1; i < 3; i++)
        for (int k = 2; k < 4; k++) ck_assert(ng_get(results[i], k) == 0);
}

START_TEST(an_ignored_row_may_hold_anything)
{
    static const double held[] = {(double)INFINITY, (double)NAN, 1e308};
    const ng_cross_entropy_options ways[] = {
        {.reduction = NG_MEAN},
        {.reduction = NG_SUM, .smoothing = 0.2},
        {.reduction = NG_EACH, .weights = VALUES(NG_F64, NG_SHAPE(2), 2, 0.5)},
        {.smoothing = 0.2, .weights = VALUES(NG_F64, NG_SHAPE(2), 2, 0.5)}};
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        ng_tensor *expected[3], *results[3];
        ignore_the_middle(0.5, ways[w], expected);
        for (size_t h = 0; h < sizeof held / sizeof *held; h++) {
            ignore_the_middle(held[h], ways[w], results);
            for (int i = 0; i < 3; i++) assert_tensors_close(results[i], expected[i], 1e-14);
        }
    }
}

START_TEST(a_mean_over_no_row_is_nan_and_has_the_gradient_0_recorded_or_not)
{
    ng_tensor *x = known_logits(NG_F64);
    for (int i = 0; i < 4; i++) {
        ng_cross_entropy_options options = {.ignore = true, .ignored = -1};
        options.labels = LABELS(-1, -1);
        if (i % 2) options.weights = VALUES(NG_F64, NG_SHAPE(3), 1, 2, 3);
        ng_tensor *loss = ng_cross_entropy_with(tape, x, options);
        ck_assert(isnan(ng_item(loss)));
        assert_values(ng_gradient(tape, loss, x, .record = i / 2), 0, 0, 0, 0, 0, 0, 0);
        options.reduction = NG_SUM;
        assert_values(ng_cross_entropy_with(tape, x, options), 0, 0);
    }
    ck_assert(!ng_failed());
}

START_TEST(ignored_label_may_be_a_class)
{
    ng_tensor *x = known_logits(NG_F64), *labels = LABELS(0, 2);
    assert_values(ng_cross_entropy(tape, x, labels, .ignore = true), 1e-14, log(3));
    assert_values(ng_cross_entropy(tape, x, labels), 1e-14, (log(8) + log(3)) / 2);
}

/* A mean over rows of weight 0 is a mean over no row; a class of weight 0 adds nothing. */
START_TEST(what_has_no_weight_counts_for_nothing)
{
    ng_tensor *x = known_logits(NG_F64), *labels = LABELS(0, 0);
    ng_tensor *weights = VALUES(NG_F64, NG_SHAPE(3), 0, 1, 2);
    ng_tensor *mean = ng_cross_entropy(tape, x, labels, .weights = weights);
    ck_assert(isnan(ng_item(mean)));
    for (int record = 0; record < 2; record++)
        assert_values(ng_gradient(tape, mean, x, .record = record), 0, 0, 0, 0, 0, 0, 0);
    const double inf = (double)INFINITY;
    ng_tensor *out = LEAF(NG_F64, NG_SHAPE(1, 3), -inf, 0, 0);
    ng_tensor *loss = ng_cross_entropy(tape, out, LABELS(1), .weights = weights, .smoothing = 0.3);
    assert_values(loss, 1e-15, (0.7 + 0.1 * 1 + 0.1 * 2) * log(2));
    assert_values(ng_gradient(tape, loss, out), 1e-15, 0, -0.3, 0.3);
    assert_values(ng_cross_entropy(tape, out, LABELS(0), .weights = weights, .reduction = NG_SUM),
                  0, 0);
}

START_TEST(labels_may_have_any_leading_shape)
{
    ng_tensor *x = normal(NG_F64, NG_SHAPE(2, 3, 4), 1);
    ng_tensor *labels = VALUES(NG_I64, NG_SHAPE(2, 3), 0, 1, 2, 3, 0, 1),
              *flat = LABELS(0, 1, 2, 3, 0, 1);
    ng_tensor *a = ng_cross_entropy(tape, x, labels);
    ng_tensor *b = ng_cross_entropy(tape, ng_reshape(tape, x, NG_SHAPE(6, 4)), flat);
    assert_same_bits(a, b);
    ng_tensor *single = VALUES(NG_F64, NG_SHAPE(3), log(1), log(2), log(5));
    assert_values(ng_cross_entropy(tape, single, VALUES(NG_I64, NG_SCALAR, 2)), 1e-14,
                  log(8.0 / 5));
}

START_TEST(changed_labels_are_noticed)
{
    ng_tensor *x = known_logits(NG_F32), *labels = LABELS(0, 1);
    ng_tensor *loss = ng_cross_entropy(tape, x, labels);
    ng_set(labels, 0, 2);
    assert_fails(ng_backward(tape, loss), NG_ESTATE);
}

/* ---- Dropout ------------------------------------------------------------------------------ */

/* The share of zeros of 40,000 draws has deviation sqrt(p (1 - p) / 40000) = 0.0023; five are
 * allowed. The others, and their gradient, are scaled by 1 / (1 - p). */
START_TEST(dropout_drops_its_share_and_scales_the_rest)
{
    ng_tensor *x = ng_require_grad(own(ng_ones_new(NG_F64, NG_SHAPE(200, 200))));
    ng_tensor *y = ng_dropout(tape, x, 0.3);
    assert_ok(ng_backward(tape, ng_sum(tape, y)));
    int64_t zeros = 0;
    for (int64_t i = 0; i < ng_size(y); i++) {
        const double value = ng_get(y, i);
        if (value == 0)
            zeros++;
        else
            assert_close(value, 1 / 0.7, 1e-15);
    }
    assert_near((double)zeros / 40000, 0.3, 5 * 0.0023);
    assert_same_bits(ng_grad(x), y);
}

START_TEST(dropout_draws_from_the_stream_of_the_tape)
{
    ng_tensor *x = own(ng_ones_new(NG_F32, NG_SHAPE(100)));
    ng_tape_seed(tape, 5);
    ng_tensor *a = ng_dropout(tape, x, 0.5), *b = ng_dropout(tape, x, 0.5);
    ng_tape_seed(tape, 5);
    assert_same_bits(ng_dropout(tape, x, 0.5), a);
    assert_same_bits(ng_dropout(tape, x, 0.5), b);
    int differences = 0;
    for (int64_t i = 0; i < 100; i++) differences += ng_get(a, i) < ng_get(b, i);
    ck_assert_int_gt(differences, 5);
}

START_TEST(dropout_of_nothing_changes_nothing_and_draws_nothing)
{
    ng_tensor *x = normal(NG_F32, NG_SHAPE(100), 1);
    ng_tape_seed(tape, 5);
    ng_tensor *first = ng_dropout(tape, x, 0.5);
    ng_tape_seed(tape, 5);
    assert_same_bits(ng_dropout(tape, x, 0), x);
    assert_same_bits(ng_dropout(tape, x, 0.5), first);
}

Suite *losses_suite(void)
{
    Suite *suite = suite_create("losses");
    TCase *tests = add_case(suite, set_up, tear_down);
    add_tests(tests, a_setting_that_is_a_tensor_may_be_none, huber_by_hand,
              losses_say_what_is_wrong, an_ignored_row_may_hold_anything,
              a_mean_over_no_row_is_nan_and_has_the_gradient_0_recorded_or_not,
              ignored_label_may_be_a_class, what_has_no_weight_counts_for_nothing,
              labels_may_have_any_leading_shape, changed_labels_are_noticed,
              dropout_drops_its_share_and_scales_the_rest,
              dropout_draws_from_the_stream_of_the_tape,
              dropout_of_nothing_changes_nothing_and_draws_nothing);
    add_loops(tests, 2, softmax_is_finite_at_extremes,
              targets_that_are_no_probabilities_are_errors);
    return suite;
}
