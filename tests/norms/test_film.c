/* FiLM: y = (1 + scale(c)) x + shift(c) for a condition c: what the conditional norms end in. */
#include "norms/norm.h"

/* ---- Worked numbers -------------------------------------------------------------------------- */

START_TEST(starts_as_the_identity)
{
    ng_module *film = own(ng_film_new(4, .condition = 2));
    assert_ok(ng_module_to(film, NG_F64));
    ng_tensor *x = normal(NG_F64, NG_SHAPE(2, 4, 3), 1);
    assert_tensors_close(ng_forward(film, tape, x, .condition = normal(NG_F64, NG_SHAPE(2, 2), 2)),
                         x, 0);
}
END_TEST

/* ---- The gradient against finite differences ------------------------------------------------- */

enum { MODES = 3 };

static norm_call make(int mode)
{
    switch (mode) {
    case 0:
        return *CALL(drawn(ng_film_new(4, .condition = 2)), normal(NG_F64, NG_SHAPE(2, 4, 3), 1),
                     .condition = normal(NG_F64, NG_SHAPE(2, 2), 2));
    case 1:
        return *CALL(drawn(ng_film_new(4, .condition = 2)), normal(NG_F64, NG_SHAPE(2, 4, 3), 1),
                     .condition = normal(NG_F64, NG_SHAPE(2, 2, 3), 2));
    default:
        return *CALL(drawn(ng_film_new(5, .condition = 2, .features_last = true, .no_shift = true)),
                     normal(NG_F64, NG_SHAPE(3, 5), 1),
                     .condition = normal(NG_F64, NG_SHAPE(3, 2), 2));
    }
}

/* dL/dx and dL/d(each parameter) for L = sum(c . y). */
START_TEST(gradient_is_that_of_finite_differences)
{
    const norm_call call = make(_i);
    expect_slopes(loss_of, &call);
}
END_TEST

/* The gradient of G = sum(u . dL/dx): the second order. */
START_TEST(gradient_of_the_gradient_is_that_of_finite_differences)
{
    const norm_call call = make(_i);
    expect_slopes(slope_of, &call);
}
END_TEST

START_TEST(the_checker_agrees)
{
    const norm_call call = make(_i);
    expect_checked(&call);
}
END_TEST

/* ---- PyTorch --------------------------------------------------------------------------------- */

/* To a relative error of 1e-11. */
START_TEST(value_and_gradients_are_pytorchs)
{
    expect_pytorch(ng_film_new(3, .condition = 2), "catalogue.txt", "film_features", "condition");
    expect_pytorch(ng_film_new(3, .condition = 2), "catalogue.txt", "film_2d", "condition");
    expect_pytorch(ng_film_new(3, .condition = 2), "catalogue.txt", "film_maps", "condition");
    expect_pytorch(ng_film_new(3, .condition = 2, .features_last = true, .no_shift = true),
                   "catalogue.txt", "film_last", "condition");
}
END_TEST

/* ---- Bad settings ---------------------------------------------------------------------------- */

START_TEST(bad_settings_are_refused)
{
    assert_fails(ng_film_new(4), NG_EVALUE, "ng_film_new");
    assert_fails(ng_forward(drawn(ng_film_new(4, .condition = 2)), tape,
                            normal(NG_F64, NG_SHAPE(2, 4, 3), 1)),
                 NG_EVALUE, "FiLM");
}
END_TEST

Suite *film_suite(void)
{
    TCase *tests;
    Suite *suite = norm_suite("film", &tests);
    tcase_add_test(tests, starts_as_the_identity);
    tcase_add_loop_test(tests, gradient_is_that_of_finite_differences, 0, MODES);
    tcase_add_loop_test(tests, gradient_of_the_gradient_is_that_of_finite_differences, 0, MODES);
    tcase_add_loop_test(tests, the_checker_agrees, 0, MODES);
    tcase_add_test(tests, value_and_gradients_are_pytorchs);
    tcase_add_test(tests, bad_settings_are_refused);
    return suite;
}
