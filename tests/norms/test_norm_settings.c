/* Settings of norms that do not go together, operands that do not fit, and the default of eps. */
#include "norms/norm.h"

START_TEST(settings_that_do_not_go_together_are_refused)
{
    assert_refused(ng_layer_norm_new(3, .no_affine = true, .unit_offset = true));
    assert_refused(ng_layer_norm_new(3, .channels_first = true, .unbiased = true));
    assert_refused(ng_layer_norm_new(3, .shape = NG_SHAPE(3)));
    assert_refused(ng_layer_norm_over_new(NG_SCALAR), "ng_layer_norm_new");
    assert_refused(ng_layer_norm_over_new(NG_SHAPE(3, 0)), "ng_layer_norm_new");
    assert_refused(ng_rms_norm_new(3, .no_affine = true, .unit_offset = true));
    assert_refused(ng_rms_norm_new(3, .condition = 2, .unit_offset = true));
    assert_refused(ng_rms_norm_new(3, .condition = 2, .no_affine = true));
    assert_refused(ng_rms_norm_new(3, .condition = -2));
    assert_refused(ng_ada_norm_new(4, .k = -HUGE_VAL));
    assert_refused(ng_adaptive_residual_new(ng_relu_new(), .dim = 3));
    assert_refused(ng_batch_norm_new(3, .condition = 2, .no_affine = true));
    assert_refused(ng_batch_norm_new(3, .ghost = -1));
    assert_refused(ng_batch_norm_new(3, .ghost = 2, .cumulative = true));
    assert_refused(ng_batch_norm_new(2, .momentum = 0.5, .cumulative = true));
    assert_refused(ng_batch_norm_new(2, .momentum = NG_ZERO, .cumulative = true));
    assert_refused(ng_batch_norm_new(2, .frozen = true, .no_running_stats = true));
    assert_refused(ng_batch_norm_new(3, .no_running_stats = true, .momentum = 0.2));
    assert_refused(ng_batch_norm_new(3, .no_running_stats = true, .cumulative = true));
    assert_refused(ng_batch_norm_new(3, .frozen = true, .momentum = NG_ZERO));
    assert_refused(ng_batch_norm_new(3, .frozen = true, .cumulative = true));
    assert_refused(ng_batch_norm_new(3, .frozen = true, .ghost = 2));
    ng_group *alone = ng_group_alone_new();
    assert_refused(ng_batch_norm_new(3, .frozen = true, .group = alone));
    ng_group_free(alone);
    assert_refused(ng_batch_renorm_new(3, .warmup = -1));
    assert_refused(ng_group_norm_new(3, 3, .condition = 2, .no_affine = true));
    assert_refused(ng_instance_norm_new(3, .condition = 2, .no_affine = true));
    assert_refused(ng_instance_norm_new(3, .no_affine = true, .momentum = 0.2));
    assert_refused(ng_instance_norm_new(3, .style = true, .condition = 2));
    assert_refused(ng_local_response_norm_new(3, .alpha = -0.5));
    assert_refused(ng_local_response_norm_new((int64_t)1 << 62));
    assert_refused(ng_local_response_norm_new(3, .beta = -0.5));
    assert_refused(ng_l2_norm_new(3, .no_affine = true, .scale = 2));
    assert_refused(ng_scale_norm_new(3, .length = HUGE_VAL));
    assert_refused(ng_weight_norm_new(ng_lstm_new(2, 2)));
    assert_fails(ng_weight_norm_new(NULL), NG_ENULL);
    assert_refused(ng_multi_head_attention_new(4, 2, .qk_norm = ng_norm_rms, .qk_temperature = 2));
}

START_TEST(inputs_that_do_not_fit_are_refused)
{
    ng_tensor *image = own(ng_zeros_new(NG_F32, NG_SHAPE(2, 3, 4))),
              *two = own(ng_zeros_new(NG_F32, NG_SHAPE(2, 2))),
              *maps = own(ng_zeros_new(NG_F32, NG_SHAPE(2, 2, 5)));
    ng_module *film = own(ng_film_new(3, .condition = 2));
    assert_ok(ng_forward(film, tape, image, .condition = two));
    assert_fails(ng_forward(film, tape, image, .condition = maps), NG_ESHAPE, "FiLM");
    assert_fails(ng_forward(film, tape, two, .condition = two), NG_ESHAPE, "FiLM");
    ng_module *batch = own(ng_batch_norm_new(3, .condition = 2));
    assert_refused(ng_forward(batch, tape, image), "BatchNorm");
    assert_refused(ng_forward(batch, tape, image, .condition = NG_NONE), "BatchNorm");
    ng_module *gated = own(ng_gated_rms_norm_new(4));
    assert_fails(ng_forward(gated, tape, image, .gate = two), NG_ESHAPE, "GatedRMSNorm");
    ng_module *style = own(ng_instance_norm_new(3, .style = true));
    assert_fails(ng_forward(style, tape, image, .style = maps), NG_ESHAPE, "InstanceNorm");
    assert_refused(ng_forward(style, tape, image), "InstanceNorm");
    ng_module *block = own(ng_adaptive_residual_new(ng_linear_new(4, 2), .dim = 4, .condition = 2));
    assert_fails(ng_forward(block, tape, image, .condition = two), NG_ESHAPE, "AdaptiveResidual");
    const struct {
        ng_module *layer;
        const char *name;
    } layers[] = {{ng_layer_norm_new(3, .no_affine = true), "LayerNorm"},
                  {ng_layer_norm_over_new(NG_SHAPE(2, 3)), "LayerNorm"},
                  {ng_layer_norm_new(3, .channels_first = true), "LayerNorm"},
                  {ng_rms_norm_new(3, .no_affine = true), "RMSNorm"},
                  {ng_adaptive_layer_norm_new(3), "AdaptiveLayerNorm"},
                  {ng_detach_norm_new(3), "DetachNorm"},
                  {ng_batch_renorm_new(3), "BatchRenorm"},
                  {ng_weight_norm_new(ng_linear_new(3, 2)), "ng_linear"}};
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++)
        assert_fails(ng_forward(own(layers[i].layer), tape, two), NG_ESHAPE, layers[i].name);
    assert_fails(ng_local_response_norm(tape, own(ng_zeros_new(NG_F32, NG_SHAPE(3))), 3),
                 NG_ESHAPE);
}

START_TEST(operands_that_do_not_fit_are_refused)
{
    ng_tensor *const none = NG_NONE, *x = own(ng_ones_new(NG_F32, NG_SHAPE(2, 6, 3)));
    ng_tensor *one = own(ng_ones_new(NG_F32, NG_SHAPE(1))),
              *two = own(ng_ones_new(NG_F32, NG_SHAPE(2)));
    ng_tensor *six = own(ng_ones_new(NG_F32, NG_SHAPE(6))),
              *other = own(ng_ones_new(NG_F32, NG_SHAPE(6))), *f64 = DOUBLES(NG_SHAPE(3), 1, 2, 3);
    assert_fails(ng_layer_norm(tape, x, two, none, .eps = 1e-5), NG_ESHAPE);
    assert_fails(ng_layer_norm(tape, x, none, two, .eps = 1e-5), NG_ESHAPE);
    assert_fails(ng_layer_norm(tape, x, f64, none, .eps = 1e-5), NG_EDTYPE);
    assert_fails(ng_layer_norm(tape, own(ng_ones_new(NG_F32, NG_SCALAR)), none, none, .eps = 1e-5),
                 NG_ESHAPE);
    assert_refused(ng_layer_norm(tape, none, none, none, .eps = 1e-5));
    assert_refused(ng_layer_norm(tape, x, none, none, .eps = -1));
    assert_fails(ng_rms_norm(tape, x, two, .eps = 1e-5), NG_ESHAPE);
    assert_refused(ng_rms_norm(tape, x, none, .eps = (double)NAN));
    assert_fails(ng_row_norm(tape, x, none, none, .dims = 4), NG_ESHAPE);
    assert_fails(ng_row_norm(tape, x, none, none, .dims = -1), NG_ESHAPE);
    assert_refused(ng_row_norm(tape, x, none, none, .rms = true, .partial = 1.5));
    assert_refused(ng_row_norm(tape, x, none, none, .rms = true, .partial = -0.5));
    assert_refused(ng_row_norm(tape, x, none, none, .rms = true, .partial = NG_ZERO));
    assert_refused(ng_row_norm(tape, x, none, none, .partial = 0.5));
    assert_refused(ng_row_norm(tape, x, none, none, .rms = true, .unbiased = true));
    assert_fails(ng_row_norm(tape, one, none, none, .unbiased = true), NG_ESHAPE);
    assert_fails(
        ng_row_norm(tape, own(ng_zeros_new(NG_F32, NG_SHAPE(3, 0))), none, none, .rms = true),
        NG_ESHAPE);
    assert_fails(ng_row_norm(tape, x, NULL, none), NG_ENULL);
    assert_refused(ng_group_norm(tape, x, none, none, .groups = 4));
    assert_refused(ng_group_norm(tape, x, none, none));
    assert_fails(ng_group_norm(tape, x, two, none, .groups = 2), NG_ESHAPE);
    assert_fails(ng_group_norm(tape, x, none, NULL, .groups = 2), NG_ENULL);
    assert_fails(ng_instance_norm(tape, six, none, none, .eps = 1e-5), NG_ESHAPE);
    assert_fails(ng_channel_norm(tape, x, none, two, .eps = 1e-5), NG_ESHAPE);
    assert_fails(ng_scale_norm(tape, x, two, .eps = NG_ZERO), NG_ESHAPE);
    assert_fails(ng_dynamic_tanh(tape, x, one, two, none), NG_ESHAPE);
    assert_refused(ng_detach_norm(tape, x, .eps = (double)NAN));
    assert_fails(ng_weight_norm(tape, x, six), NG_ESHAPE);
    assert_fails(ng_spectral_norm(tape, x, six, two), NG_ESHAPE);

    ng_tensor *single = own(ng_ones_new(NG_F32, NG_SHAPE(1, 64)));
    ng_tensor *moving = ng_require_grad(own(ng_ones_new(NG_F32, NG_SHAPE(6)))),
              *on_tape = ng_full(tape, NG_F32, NG_SHAPE(6), 1);
#define TRAINED(x, ...) ng_batch_norm(tape, x, __VA_ARGS__, .training = true)
    assert_fails(TRAINED(single, none, none, none, none), NG_ESHAPE, "ng_batch_norm");
    assert_fails(TRAINED(six, none, none, none, none), NG_ESHAPE, "ng_batch_norm");
    assert_fails(TRAINED(x, two, none, none, none), NG_ESHAPE, "ng_batch_norm");
    assert_fails(TRAINED(x, none, none, none, two), NG_ESHAPE, "ng_batch_norm");
    assert_fails(TRAINED(x, none, none, f64, none), NG_EDTYPE, "ng_batch_norm");
    assert_fails(TRAINED(x, none, none, six, six), NG_EVALUE, "ng_batch_norm");
    assert_fails(TRAINED(x, none, none, on_tape, none), NG_ESTATE, "ng_batch_norm");
    assert_fails(TRAINED(x, none, NULL, none, none), NG_ENULL, "ng_batch_norm");
    assert_refused(TRAINED(x, none, none, none, none, .eps = -1), "ng_batch_norm");
    assert_refused(TRAINED(x, none, none, none, none, .momentum = 2), "ng_batch_norm");
#undef TRAINED
    assert_refused(ng_batch_norm(tape, x, none, none, six, none));
    assert_fails(ng_batch_norm(tape, x, none, none, moving, six), NG_EGRAD);
    assert_refused(ng_ghost_batch_norm(tape, x, none, none, none, none, .training = true));
    assert_refused(ng_batch_renorm(tape, x, none, none, none, none));
    assert_refused(ng_batch_renorm(tape, x, none, none, six, six, .training = true));
    assert_refused(
        ng_batch_renorm(tape, x, none, none, six, other, .r_max = 0.5, .training = true));
    assert_fails(ng_batch_renorm(tape, x, none, none, six, NULL), NG_ENULL);
    assert_fails(ng_batch_renorm(tape, x, none, none, moving, six), NG_EGRAD);
    assert_fails(ng_batch_renorm(tape, six, none, none, six, other), NG_ESHAPE);
}

/* One rule for all norms: 0 is the default, NG_ZERO is zero. */
START_TEST(an_eps_of_zero_is_the_default)
{
    ng_tensor *x = normal_with(NG_F64, NG_SHAPE(2, 3, 4), 0, 1e-3, 1), *g = DOUBLES(NG_SHAPE(1), 1);
#define STARTS_AT(standard, op, ...)                                                               \
    assert_same_bits(op(tape, x, __VA_ARGS__), op(tape, x, __VA_ARGS__, .eps = standard));         \
    ck_assert(ng_get(op(tape, x, __VA_ARGS__, .eps = NG_ZERO), 1) !=                               \
              ng_get(op(tape, x, __VA_ARGS__), 1))
    STARTS_AT(1e-5, ng_layer_norm, NG_NONE, NG_NONE);
    STARTS_AT(1e-5, ng_channel_norm, NG_NONE, NG_NONE);
    STARTS_AT(1e-5, ng_instance_norm, NG_NONE, NG_NONE);
    STARTS_AT(1e-6, ng_rms_norm, NG_NONE);
    STARTS_AT(1e-10, ng_scale_norm, g);
#undef STARTS_AT
}

Suite *norm_settings_suite(void)
{
    return suite_of("norm_settings", set_up, tear_down,
                    settings_that_do_not_go_together_are_refused,
                    inputs_that_do_not_fit_are_refused, operands_that_do_not_fit_are_refused,
                    an_eps_of_zero_is_the_default);
}
