/* Sinkhorn: e^x with columns, then rows, divided by their sums, in steps. */
#include "norms/norm.h"

/* ---- Worked numbers -------------------------------------------------------------------------- */

/* Columns (1, 3) and (2, 2) become (1/4, 3/4) and (1/2, 1/2); then rows have sums 3/4 and 5/4. */
START_TEST(one_step_of_four_numbers)
{
    ng_tensor *x = ng_log(tape, DOUBLES(NG_SHAPE(2, 2), 1, 2, 3, 2));
    assert_values(ng_sinkhorn(tape, x, .steps = 1), 1e-14, 1 / 3.0, 2 / 3.0, 0.6, 0.4);
}

/* ---- PyTorch --------------------------------------------------------------------------------- */

START_TEST(value_and_gradient_are_pytorchs)
{
    ng_tensor *in[GOLDEN_INPUTS];
    const char *inputs[] = {"x", NULL};
    golden_load("tests/golden/catalogue.txt");
    golden_inputs("sinkhorn", inputs, in);
    assert_golden_gradients("sinkhorn", ng_sinkhorn(tape, in[0]), 1e-11, inputs, in);
    golden_unload();
}

/* ---- Invariances and relations --------------------------------------------------------------- */

START_TEST(rows_and_columns_sum_to_1)
{
    ng_tensor *y = ng_sinkhorn(tape, normal(NG_F64, NG_SHAPE(3, 4, 4), 1), .steps = 40);
    for (int axis = 1; axis < 3; axis++) {
        ng_tensor *sums = ng_sum(tape, y, .axes = NG_AXES(axis));
        for (int i = 0; i < 12; i++) assert_near(ng_get(sums, i), 1, 1e-12);
    }
}

/* A number added to a row or to a column is divided away. */
START_TEST(shifts_of_rows_and_columns_change_nothing)
{
    ng_tensor *x = normal(NG_F64, NG_SHAPE(3, 3), 1);
    ng_tensor *by = DOUBLES(NG_SHAPE(3), 2, -1, 0.5);
    ng_tensor *columns = ng_add(tape, x, by);
    assert_tensors_close(ng_sinkhorn(tape, columns), ng_sinkhorn(tape, x), 1e-12);
    ng_tensor *rows = ng_add(tape, x, ng_reshape(tape, by, NG_SHAPE(3, 1)));
    assert_tensors_close(ng_sinkhorn(tape, rows, .steps = 60), ng_sinkhorn(tape, x, .steps = 60),
                         1e-9);
}

/* No e^x is formed: e^1000 is beyond the range of doubles. */
START_TEST(large_differences_are_in_range)
{
    ng_tensor *x = DOUBLES(NG_SHAPE(2, 2), 1000, 0, 0, 1000);
    assert_values(ng_sinkhorn(tape, x), 1e-15, 1, 0, 0, 1);
}

/* ---- Bad settings ---------------------------------------------------------------------------- */

START_TEST(bad_calls_are_refused)
{
    ng_tensor *x = normal(NG_F64, NG_SHAPE(3, 3), 1);
    assert_fails(ng_sinkhorn(tape, x, .steps = -1), NG_EVALUE);
    assert_fails(ng_sinkhorn(tape, normal(NG_F64, NG_SHAPE(3, 4), 1)), NG_ESHAPE);
    assert_fails(ng_sinkhorn(tape, normal(NG_F64, NG_SHAPE(3), 1)), NG_ESHAPE);
}

Suite *sinkhorn_suite(void)
{
    return suite_of("sinkhorn", set_up, tear_down, one_step_of_four_numbers,
                    value_and_gradient_are_pytorchs, rows_and_columns_sum_to_1,
                    shifts_of_rows_and_columns_change_nothing, large_differences_are_in_range,
                    bad_calls_are_refused);
}
