/* Settings of norms that do not go together, and inputs that do not fit. */
#include "norms/norm.h"

START_TEST(settings_that_do_not_go_together_are_refused)
{
    const ng_status value = NG_EVALUE;
    assert_fails(ng_rms_norm_new(3, .no_affine = true, .unit_offset = true), value,
                 "ng_rms_norm_new");
    assert_fails(ng_layer_norm_new(3, .no_affine = true, .unit_offset = true), value,
                 "ng_layer_norm_new");
    assert_fails(ng_rms_norm_new(3, .condition = 2, .unit_offset = true), value, "ng_rms_norm_new");
    assert_fails(ng_rms_norm_new(3, .condition = 2, .no_affine = true), value, "ng_rms_norm_new");
    assert_fails(ng_rms_norm_new(3, .condition = -2), value, "ng_film_new");
    assert_fails(ng_gated_rms_norm_new(5, .groups = 2), value, "ng_gated_rms_norm_new");
    assert_fails(ng_gated_rms_norm_new(5, .eps = -1), value, "ng_gated_rms_norm_new");
    assert_fails(ng_derf_new(3, .alpha = HUGE_VAL), value, "ng_derf_new");
    assert_fails(ng_film_new(3), value, "ng_film_new");
    assert_fails(ng_batch_norm_new(3, .condition = 2, .no_affine = true), value,
                 "ng_batch_norm_new");
    assert_fails(ng_group_norm_new(3, 3, .condition = 2, .no_affine = true), value,
                 "ng_group_norm_new");
    assert_fails(ng_instance_norm_new(3, .condition = 2, .affine = true), value,
                 "ng_instance_norm_new");
    assert_fails(ng_instance_norm_new(3, .momentum = 0.2), value, "ng_instance_norm_new");
    assert_fails(ng_filter_response_norm_new(3, .eps = -1), value, "ng_filter_response_norm_new");
    assert_fails(ng_global_response_norm_new(3, .eps = -1), value, "ng_global_response_norm_new");
    assert_fails(ng_evo_norm_new(3, .momentum = 2), value, "ng_evo_norm_new");
    assert_fails(ng_evo_norm_new(3, .groups = 2), value, "ng_evo_norm_new");
    assert_fails(ng_evo_norm_new(4, .groups = 2, .momentum = 0.2), value, "ng_evo_norm_new");
    assert_fails(ng_l2_norm_new(3, .no_affine = true, .scale = 2), value, "ng_l2_norm_new");
    assert_fails(ng_scale_norm_new(3, .length = HUGE_VAL), value, "ng_scale_norm_new");
    assert_fails(ng_weight_standardization_new(ng_relu_new()), value,
                 "ng_weight_standardization_new");
    assert_fails(ng_multi_head_attention_new(4, 2, .qk_norm = ng_norm_rms, .qk_temperature = 2),
                 value, "ng_multi_head_attention_new");
    assert_fails(ng_instance_norm_new(3, .style = true, .affine = true), value,
                 "ng_instance_norm_new");
    assert_fails(ng_instance_norm_new(3, .style = true, .condition = 2), value,
                 "ng_instance_norm_new");
}
END_TEST

START_TEST(conditions_that_do_not_fit_are_refused)
{
    ng_tensor *image = own(ng_zeros_new(NG_F32, NG_SHAPE(2, 3, 4))),
              *two = own(ng_zeros_new(NG_F32, NG_SHAPE(2, 2))),
              *maps = own(ng_zeros_new(NG_F32, NG_SHAPE(2, 2, 5)));
    ng_module *film = own(ng_film_new(3, .condition = 2));
    assert_ok(ng_forward(film, tape, image, .condition = two));
    assert_fails(ng_forward(film, tape, image, .condition = maps), NG_ESHAPE, "FiLM");
    assert_fails(ng_forward(film, tape, two, .condition = two), NG_ESHAPE, "FiLM");
    assert_fails(ng_forward(film, tape, image), NG_EVALUE, "FiLM");
    ng_module *batch = own(ng_batch_norm_new(3, .condition = 2));
    assert_fails(ng_forward(batch, tape, image), NG_EVALUE, "BatchNorm");
    ng_module *gated = own(ng_gated_rms_norm_new(4));
    assert_fails(ng_forward(gated, tape, image, .gate = two), NG_ESHAPE, "GatedRMSNorm");
    ng_module *style = own(ng_instance_norm_new(3, .style = true));
    assert_fails(ng_forward(style, tape, image, .style = maps), NG_ESHAPE, "InstanceNorm");
    assert_fails(ng_forward(style, tape, image), NG_EVALUE, "InstanceNorm");
}
END_TEST

Suite *norm_settings_suite(void)
{
    TCase *tests;
    Suite *suite = norm_suite("norm_settings", &tests);
    tcase_add_test(tests, settings_that_do_not_go_together_are_refused);
    tcase_add_test(tests, conditions_that_do_not_fit_are_refused);
    return suite;
}
