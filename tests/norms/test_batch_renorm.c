/* BatchRenorm: y = gamma (xhat r + d) + beta; r and d correct the batch's statistics to the running
 * ones. */
#include "norms/norm.h"

/* ---- Worked numbers -------------------------------------------------------------------------- */

/* Then its limits open, and the output depends on the running statistics. */
START_TEST(warms_up_as_batch_norm)
{
    ng_module *renorm = in_double(ng_batch_renorm_new(4, .warmup = 2, .ramp = 2, .d_max = 1));
    ng_module *batch = in_double(ng_batch_norm_new(4));
    for (int step = 0; step < 4; step++) {
        ng_tensor *x = normal(NG_F64, NG_SHAPE(8, 4), (uint64_t)step);
        ng_tensor *off = ng_sub(tape, ng_forward(renorm, tape, x), ng_forward(batch, tape, x));
        const double most = ng_item(ng_max(tape, ng_abs(tape, off)));
        ck_assert(step <= 2 ? most == 0 : most > 1e-3);
        assert_tensors_close(ng_module_find(renorm, "running_mean"),
                             ng_module_find(batch, "running_mean"), 1e-14);
    }
    ck_assert(ng_item(ng_module_find(renorm, "num_batches_tracked")) == 4);
}

/* Within their limits r and d turn the batch's statistics into the running ones. */
START_TEST(trains_as_it_evaluates)
{
    ng_module *renorm = in_double(ng_batch_renorm_new(4, .r_max = 1e3, .d_max = 1e3));
    for (int step = 0; step < 3; step++) {
        ng_tensor *x = normal(NG_F64, NG_SHAPE(8, 4), (uint64_t)step);
        ng_eval(renorm);
        ng_tensor *evaluated = ng_forward(renorm, tape, x);
        ng_train(renorm);
        assert_tensors_close(ng_forward(renorm, tape, x), evaluated, 1e-12);
    }
    ng_freeze(renorm);
    ng_tensor *mean = own(ng_copy_new(ng_module_find(renorm, "running_mean"), NG_F64));
    assert_ok(ng_forward(renorm, tape, normal(NG_F64, NG_SHAPE(8, 4), 9)));
    assert_same_bits(ng_module_find(renorm, "running_mean"), mean);
}

/* ---- PyTorch --------------------------------------------------------------------------------- */

START_TEST(value_and_gradients_are_pytorchs)
{
    for (int i = 0; i < 3; i++) {
        static const char *const kinds[] = {"features", "1d", "2d"};
        char row[64];
        snprintf(row, sizeof row, "batch_renorm_tight_%s", kinds[i]);
        assert_pytorch(ng_batch_renorm_new(6, .r_max = 1.1, .d_max = 0.2), "norms", row);
        snprintf(row, sizeof row, "batch_renorm_wide_%s", kinds[i]);
        assert_pytorch(ng_batch_renorm_new(6), "norms", row);
        snprintf(row, sizeof row, "batch_renorm_none_%s", kinds[i]);
        assert_pytorch(ng_batch_renorm_new(6, .r_max = 1, .d_max = NG_ZERO), "norms", row);
        snprintf(row, sizeof row, "batch_renorm_eval_%s", kinds[i]);
        assert_pytorch(evaluating(ng_batch_renorm_new(6)), "norms", row);
    }
}

/* ---- Bad settings ---------------------------------------------------------------------------- */

START_TEST(bad_settings_are_refused)
{
    assert_refused(ng_batch_renorm_new(0));
    assert_refused(ng_batch_renorm_new(3, .r_max = 0.5));
    assert_refused(ng_batch_renorm_new(3, .eps = -1));
}

Suite *batch_renorm_suite(void)
{
    return suite_of("batch_renorm", set_up, tear_down, warms_up_as_batch_norm,
                    trains_as_it_evaluates, value_and_gradients_are_pytorchs,
                    bad_settings_are_refused);
}
