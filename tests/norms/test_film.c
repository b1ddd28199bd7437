/* FiLM: y = (1 + scale(c)) x + shift(c) for a condition c: what the conditional norms end in. */
#include "norms/norm.h"

/* ---- Worked numbers -------------------------------------------------------------------------- */

START_TEST(starts_as_the_identity)
{
    ng_module *film = in_double(ng_film_new(4, .condition = 2));
    ng_tensor *x = normal(NG_F64, NG_SHAPE(2, 4, 3), 1);
    assert_tensors_close(ng_forward(film, tape, x, .condition = normal(NG_F64, NG_SHAPE(2, 2), 2)),
                         x, 0);
}

/* ---- PyTorch --------------------------------------------------------------------------------- */

START_TEST(value_and_gradients_are_pytorchs)
{
    assert_pytorch(ng_film_new(3, .condition = 2), "catalogue", "film_features", "condition");
    assert_pytorch(ng_film_new(3, .condition = 2), "catalogue", "film_2d", "condition");
    assert_pytorch(ng_film_new(3, .condition = 2), "catalogue", "film_maps", "condition");
    assert_pytorch(ng_film_new(3, .condition = 2, .features_last = true, .no_shift = true),
                   "catalogue", "film_last", "condition");
}

/* ---- Bad settings ---------------------------------------------------------------------------- */

START_TEST(bad_settings_are_refused)
{
    assert_refused(ng_film_new(4));
    assert_fails(ng_forward(drawn(ng_film_new(4, .condition = 2)), tape,
                            normal(NG_F64, NG_SHAPE(2, 4, 3), 1)),
                 NG_EVALUE, "FiLM");
    ng_tensor *labels = own(ng_zeros_new(NG_I64, NG_SHAPE(2)));
    assert_fails(ng_forward(drawn(ng_film_new(4, .condition = 2)), tape,
                            normal(NG_F64, NG_SHAPE(2, 4, 3), 1), .condition = labels),
                 NG_EDTYPE, "FiLM");
}

Suite *film_suite(void)
{
    return suite_of("film", set_up, tear_down, starts_as_the_identity,
                    value_and_gradients_are_pytorchs, bad_settings_are_refused);
}
