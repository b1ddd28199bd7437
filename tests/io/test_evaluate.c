/* ng_evaluate: the mean loss and the accuracy over a data set. Standardize: statistics of samples
 * as a first layer. */
#include "norms/norm.h"
#include "support/folder.h"

/* A data set of copies, freed after the test. */
static ng_dataset *data_of(ng_tensor *x, ng_tensor *y) { return own(ng_dataset_from(x, y)); }

static ng_tensor *floats(ng_shape shape, const double *values, int64_t count)
{
    return own(ng_tensor_from(NG_F32, shape, values, count));
}

/* ---- ng_evaluate ----------------------------------------------------------------------------- */

/* For logits (a, 0) the loss of label 0 is ln(1 + e^-a), and class 0 wins if a > 0. */
static ng_dataset *four_logits(void)
{
    static const double logits[] = {2, 0, -1, 0, 3, 0, 1, 0}, labels[] = {0, 0, 1, 0};
    return data_of(floats(NG_SHAPE(4, 2), logits, 8),
                   own(ng_tensor_from(NG_I64, NG_SHAPE(4), labels, 4)));
}

START_TEST(loss_and_accuracy_are_means_over_samples)
{
    const double expected = (log1p(exp(-2)) + log1p(exp(1)) + log1p(exp(3)) + log1p(exp(-1))) / 4;
    ng_module *same = own(ng_norm_none(2));
    for (int64_t batch = 0; batch < 6; batch++) {
        const ng_evaluation found = ng_evaluate(same, four_logits(), .batch = batch);
        assert_close(found.loss, expected, 1e-6);
        ck_assert(found.accuracy == 0.5);
    }
}

START_TEST(targets_have_a_mean_squared_error_and_no_accuracy)
{
    ng_dataset *data = data_of(floats(NG_SHAPE(3, 1), NG_VALUES(1, 2, 3)),
                               floats(NG_SHAPE(3, 1), NG_VALUES(1, 0, 0)));
    const ng_evaluation found = ng_evaluate(own(ng_norm_none(1)), data, .batch = 2);
    assert_close(found.loss, 13. / 3, 1e-6);
    ck_assert(isnan(found.accuracy));
}

static ng_tensor *scaled_error(ng_module *net, ng_tape *on, const ng_batch *batch, void *context)
{
    ng_tensor *error = ng_l1(on, ng_forward(net, on, batch->x), batch->y);
    return ng_mul_scalar(on, error, *(double *)context);
}

START_TEST(a_loss_of_ones_own_is_averaged)
{
    double factor = 2;
    ng_dataset *data = data_of(floats(NG_SHAPE(3, 1), NG_VALUES(1, 2, 6)),
                               floats(NG_SHAPE(3, 1), NG_VALUES(0, 0, 0)));
    const ng_evaluation found = ng_evaluate(own(ng_norm_none(1)), data, .loss = scaled_error,
                                            .context = &factor, .batch = 2);
    assert_close(found.loss, 6, 1e-6);
}

/* In training a batch of one sample would be an error of BatchNorm, and dropout would change the
 * loss; both have modes of their own. */
static ng_module *with_modes(void)
{
    ng_module *net = own(ng_sequential_new(ng_batch_norm_new(2), ng_dropout_new(0.5)));
    ng_eval(ng_module_child(net, 1));
    return net;
}

START_TEST(the_modes_are_as_before)
{
    ng_module *net = with_modes();
    const ng_evaluation found = ng_evaluate(net, four_logits(), .batch = 1);
    ck_assert(isfinite(found.loss));
    ck_assert(net->training && ng_module_child(net, 0)->training);
    ck_assert(!ng_module_child(net, 1)->training);
    assert_values(ng_module_find(net, "0.running_mean"), 0, 0, 0);
}

static ng_tensor *silent(ng_module *net, ng_tape *on, const ng_batch *batch, void *context)
{
    (void)net, (void)on, (void)batch, (void)context;
    return NULL;
}

static ng_tensor *vector(ng_module *net, ng_tape *on, const ng_batch *batch, void *context)
{
    (void)context;
    return ng_forward(net, on, batch->x);
}

static ng_status evaluated(ng_evaluation found)
{
    ck_assert(isnan(found.loss) == ng_failed());
    return ng_failed() ? ng_error_status() : NG_OK;
}

START_TEST(what_cannot_be_evaluated_is_refused)
{
    ng_module *net = with_modes();
    ng_dataset *bare = data_of(floats(NG_SHAPE(2, 2), NG_VALUES(1, 2, 3, 4)), NG_NONE);
    ng_dataset *wide = data_of(floats(NG_SHAPE(1, 3), NG_VALUES(1, 2, 3)), NG_NONE);
    assert_refused(evaluated(ng_evaluate(net, bare)));
    ng_dataset *good = four_logits();
    assert_refused(evaluated(ng_evaluate(net, good, .batch = -1)));
    assert_refused(evaluated(ng_evaluate(net, bare, .loss = silent)), "ng_evaluate");
    assert_fails(evaluated(ng_evaluate(net, bare, .loss = vector)), NG_ESHAPE, "ng_evaluate");
    assert_fails(evaluated(ng_evaluate(net, wide, .loss = vector)), NG_ESHAPE, "BatchNorm");
    ck_assert(net->training && !ng_module_child(net, 1)->training);
    for (int64_t n = 0;; n++) {
        allocations_fail_after(n);
        if (!out_of_memory(evaluated(ng_evaluate(net, good, .batch = 2)) != NG_OK)) break;
        ck_assert(net->training && !ng_module_child(net, 1)->training);
    }
}

/* ---- Standardize ----------------------------------------------------------------------------- */

/* The features have mean 3 and deviation sqrt(8/3), a constant, and mean 0 and deviation 1e-30. */
static ng_tensor *samples(ng_dtype dtype)
{
    return own(
        ng_tensor_from(dtype, NG_SHAPE(3, 3), NG_VALUES(1, .1, -1e-30, 3, .1, 0, 5, .1, 1e-30)));
}

START_TEST(standardizes_as_the_data_set)
{
    ng_tensor *x = samples(NG_F64);
    ng_dataset *data = data_of(x, NG_NONE);
    ng_module *layer = in_double(ng_standardize_new(3, .samples = x));
    assert_ok(ng_module_init(layer, 0));
    assert_ok(ng_dataset_standardize(data, data));
    assert_tensors_close(ng_forward(layer, tape, x), ng_dataset_x(data), 1e-15);
    ng_tensor *y = ng_forward(layer, tape, DOUBLES(NG_SHAPE(1, 3), 7, 9, (double)NAN));
    assert_close(ng_get(y, 0), 4 / sqrt(8. / 3), 1e-15);
    ck_assert(ng_get(y, 1) == 0 && isnan(ng_get(y, 2)));
}

/* A model that takes samples as they come: saved after training, loaded where no data are. */
START_TEST(statistics_are_saved_with_the_network)
{
    ng_tensor *x = samples(NG_F32), *one = floats(NG_SHAPE(1, 3), NG_VALUES(7, 9, 2e-30));
    ng_module *net =
        own(ng_sequential_new(ng_standardize_new(3, .samples = x), ng_linear_new(3, 2)));
    ng_module *deployed = own(ng_sequential_new(ng_standardize_new(3), ng_linear_new(3, 2)));
    assert_ok(ng_module_init(net, 5));
    assert_fails(ng_forward(deployed, tape, one), NG_ESTATE, "Standardize");
    assert_ok(ng_module_save(net, in_folder("net")));
    assert_ok(ng_module_load(deployed, in_folder("net")));
    assert_same_bits(ng_forward(net, tape, one), ng_forward(deployed, tape, one));
}

START_TEST(bad_samples_are_refused)
{
    ng_tensor *endless = DOUBLES(NG_SHAPE(2, 1), 1, HUGE_VAL);
    ng_tensor *large = DOUBLES(NG_SHAPE(2, 1), 1e200, 1e200);
    assert_refused(ng_standardize_new(0));
    assert_refused(ng_standardize_new(1, .samples = endless));
    assert_refused(ng_standardize_new(1, .samples = large));
    assert_fails(ng_standardize_new(2, .samples = large), NG_ESHAPE);
    assert_fails(ng_standardize_new(2, .samples = own(ng_zeros_new(NG_F32, NG_SHAPE(0, 2)))),
                 NG_ESHAPE);
    assert_fails(ng_standardize_new(1, .samples = own(ng_zeros_new(NG_I64, NG_SHAPE(2, 1)))),
                 NG_EDTYPE);
    ng_module *layer = in_double(ng_standardize_new(1, .samples = DOUBLES(NG_SHAPE(2, 1), 1, 2)));
    assert_fails(ng_forward(layer, tape, DOUBLES(NG_SHAPE(1, 2), 1, 2)), NG_ESHAPE, "Standardize");
}

/* ---- Norms by name --------------------------------------------------------------------------- */

START_TEST(each_named_norm_takes_features)
{
    int count = 0;
    for (const char *const *name = ng_norm_names(); *name; name++, count++) {
        ng_module *norm = in_double(ng_norm_named(*name)(8));
        ng_tensor *y = ng_forward(norm, tape, normal(NG_F64, NG_SHAPE(2, 3, 8), 1));
        assert_ok(y);
        ck_assert_int_eq(ng_dim(y, 2), 8);
    }
    ck_assert_int_gt(count, 8);
    ck_assert(ng_norm_named("layer_norm") == ng_norm_layer);
    ck_assert(ng_norm_named("batch_norm") == ng_norm_batch);
    assert_refused(ng_norm_named("layernorm"));
}

/* Each position is normalized alone. */
START_TEST(group_norm_by_name_is_of_each_position)
{
    ng_module *norm = in_double(ng_norm_named("group_norm")(16));
    ng_tensor *x = normal(NG_F64, NG_SHAPE(2, 3, 16), 1);
    ng_tensor *rows = ng_reshape(tape, x, NG_SHAPE(6, 16));
    ng_tensor *expected = ng_forward(in_double(ng_group_norm_new(8, 16)), tape, rows);
    assert_same_bits(ng_forward(norm, tape, x), ng_reshape(tape, expected, NG_SHAPE(2, 3, 16)));
}

Suite *evaluate_suite(void)
{
    Suite *suite = suite_create("evaluate");
    TCase *tests = add_case(suite, set_up, tear_down);
    tcase_add_checked_fixture(tests, make_test_folder, remove_test_folder);
    add_tests(tests, loss_and_accuracy_are_means_over_samples,
              targets_have_a_mean_squared_error_and_no_accuracy, a_loss_of_ones_own_is_averaged,
              the_modes_are_as_before, what_cannot_be_evaluated_is_refused,
              standardizes_as_the_data_set, statistics_are_saved_with_the_network,
              bad_samples_are_refused, each_named_norm_takes_features,
              group_norm_by_name_is_of_each_position);
    return suite;
}
