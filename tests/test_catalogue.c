/* Norms that are composed of ops: PyTorch's values of the papers' formulas, settings, errors. */
#include "fixture.h"
#include "golden.h"
#include "support.h"

/* ---- Against PyTorch ------------------------------------------------------------------------ */

#define TOLERANCE 1e-11

/* The layer whose parameters and buffers a row of figures has by name; a row whose name ends in
 * "_eval" is for evaluation. */
typedef struct {
    const char *name;
    ng_module *(*make)(void);
} golden_row;

#define ROWS(X)                                                                                    \
    X(rms_norm_offset, ng_rms_norm_new(6, .unit_offset = true))                                    \
    X(layer_norm_offset, ng_layer_norm_new(6, .unit_offset = true))                                \
    X(channel_norm_offset, ng_layer_norm_new(6, .unit_offset = true, .channels_first = true))      \
    X(gated, ng_gated_rms_norm_new(6))                                                             \
    X(gated_groups, ng_gated_rms_norm_new(6, .groups = 3))                                         \
    X(gated_first, ng_gated_rms_norm_new(6, .norm_first = true))                                   \
    X(gated_first_groups, ng_gated_rms_norm_new(6, .norm_first = true, .groups = 2))               \
    X(derf, ng_derf_new(5))                                                                        \
    X(film_features, ng_film_new(3, .condition = 2))                                               \
    X(film_2d, ng_film_new(3, .condition = 2))                                                     \
    X(film_maps, ng_film_new(3, .condition = 2))                                                   \
    X(film_last, ng_film_new(3, .condition = 2, .features_last = true, .no_shift = true))          \
    X(rms_norm_conditional, ng_rms_norm_new(6, .condition = 3))                                    \
    X(conditional_batch_features, ng_batch_norm_new(3, .condition = 2))                            \
    X(conditional_batch_2d, ng_batch_norm_new(3, .condition = 2))                                  \
    X(conditional_batch_maps, ng_batch_norm_new(3, .condition = 2))                                \
    X(conditional_batch_2d_eval, ng_batch_norm_new(3, .condition = 2))                             \
    X(conditional_group, ng_group_norm_new(2, 4, .condition = 3))                                  \
    X(conditional_group_maps, ng_group_norm_new(2, 4, .condition = 3))                             \
    X(conditional_instance, ng_instance_norm_new(4, .condition = 3))                               \
    X(conditional_instance_maps, ng_instance_norm_new(4, .condition = 3))                          \
    X(adain, ng_instance_norm_new(3, .style = true))                                               \
    X(running_instance_train, ng_instance_norm_new(4, .affine = true, .running_stats = true))      \
    X(running_instance_eval, ng_instance_norm_new(4, .affine = true, .running_stats = true))       \
    X(running_batch_train, ng_batch_norm_new(4))                                                   \
    X(running_batch_eval, ng_batch_norm_new(4))                                                    \
    X(frn, ng_filter_response_norm_new(4))                                                         \
    X(frn_learned, ng_filter_response_norm_new(4, .learned_eps = true))                            \
    X(frn_plain, ng_filter_response_norm_new(4, .no_threshold = true))                             \
    X(grn, ng_global_response_norm_new(4))                                                         \
    X(evo_b0_train, ng_evo_norm_new(4))                                                            \
    X(evo_b0_eval, ng_evo_norm_new(4))                                                             \
    X(evo_s0_1, ng_evo_norm_new(4, .groups = 1))                                                   \
    X(evo_s0_2, ng_evo_norm_new(4, .groups = 2))                                                   \
    X(weight_standardization, ng_weight_standardization_new(ng_linear_new(3, 4)))                  \
    X(weight_standardization_conv, ng_weight_standardization_new(ng_conv2d_new(3, 4, 2)))          \
    X(weight_centred, ng_weight_norm_new(ng_linear_new(3, 4), .centred = true))                    \
    X(weight_centred_whole,                                                                        \
      ng_weight_norm_new(ng_linear_new(3, 4), .centred = true, .whole = true))                     \
    X(l2, ng_l2_norm_new(5, .eps = NG_ZERO))                                                       \
    X(l2_channels, ng_l2_norm_new(5, .eps = NG_ZERO, .channels_first = true))                      \
    X(l2_plain, ng_l2_norm_new(5, .eps = NG_ZERO, .no_affine = true))                              \
    X(qk_temperature, ng_multi_head_attention_new(6, 2, .qk_temperature = 4))

#define MAKER(name, layer)                                                                         \
    static ng_module *make_##name(void) { return layer; }
ROWS(MAKER)
#define ROW(name, layer) {#name, make_##name},
static const golden_row rows[] = {ROWS(ROW)};
#define N_ROWS ((int)(sizeof rows / sizeof rows[0]))

static bool ends_with(const char *text, const char *end)
{
    const size_t length = strlen(text), tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}

static ng_tensor *figure(const char *row, const char *prefix, const char *name)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s%s", row, prefix, name);
    return golden_find(path);
}

GOLDEN_FIXTURE("tests/golden/catalogue.txt")

LOOP_TEST(value_gradients_and_buffers_are_those_of_the_formula, N_ROWS)
{
    const char *row = rows[_i].name;
    const bool conditioned = figure(row, "", "condition") != NULL;
    const char *inputs[] = {"x", conditioned ? "condition" : NULL, NULL};
    ng_tensor *in[GOLDEN_INPUTS];
    ng_module *layer = own(rows[_i].make());
    assert_ok(ng_module_to(layer, NG_F64));
    if (ends_with(row, "_eval")) ng_eval(layer);
    golden_inputs(row, inputs, in);
    ng_named_tensor tensor;
    for (int i = 0; ng_module_parameter(layer, i, &tensor); i++)
        assert_ok(ng_copy_values(tensor.tensor, golden("%s/%s", row, tensor.name)));
    for (int i = 0; ng_module_buffer(layer, i, &tensor); i++)
        if (figure(row, "", tensor.name))
            assert_ok(ng_copy_values(tensor.tensor, figure(row, "", tensor.name)));
    ng_inputs of = {.x = in[0]};
    if (conditioned)
        *(strncmp(row, "gated", 5) == 0   ? &of.gate
          : strncmp(row, "adain", 5) == 0 ? &of.style
                                          : &of.condition) = in[1];
    ng_tensor *y = ng_forward_with(layer, tape, of);
    assert_golden_gradients(row, y, TOLERANCE, inputs, in);
    for (int i = 0; ng_module_parameter(layer, i, &tensor); i++)
        assert_golden(ng_grad(tensor.tensor), TOLERANCE, "%s/d%s", row, tensor.name);
    for (int i = 0; ng_module_buffer(layer, i, &tensor); i++)
        if (figure(row, "after.", tensor.name))
            assert_golden(tensor.tensor, TOLERANCE, "%s/after.%s", row, tensor.name);
}

TEST(every_figure_has_a_row) { golden_expect_rows(rows, N_ROWS, sizeof *rows, NULL); }

/* ---- Settings and errors -------------------------------------------------------------------- */

TEST(settings_that_do_not_go_together_are_refused)
{
    const ng_status value = NG_EVALUE;
    assert_fails(ng_rms_norm_new(3, .no_affine = true, .unit_offset = true), value,
                 "ng_rms_norm_new: both .no_affine and .unit_offset");
    assert_fails(ng_layer_norm_new(3, .no_affine = true, .unit_offset = true), value,
                 "ng_layer_norm_new: both .no_affine and .unit_offset");
    assert_fails(ng_rms_norm_new(3, .condition = 2, .unit_offset = true), value,
                 "both .condition and .unit_offset");
    assert_fails(ng_rms_norm_new(3, .condition = 2, .no_affine = true), value,
                 "both .condition and .no_affine");
    assert_fails(ng_rms_norm_new(3, .condition = -2), value, "ng_film_new: condition is -2");
    assert_fails(ng_gated_rms_norm_new(5, .groups = 2), value, "groups is 2");
    assert_fails(ng_gated_rms_norm_new(5, .eps = -1), value, "ng_gated_rms_norm_new: eps is -1");
    assert_fails(ng_derf_new(3, .alpha = HUGE_VAL), value, "ng_derf_new: alpha is inf");
    assert_fails(ng_film_new(3), value, "ng_film_new: condition is 0");
    assert_fails(ng_batch_norm_new(3, .condition = 2, .no_affine = true), value,
                 "both .condition and .no_affine");
    assert_fails(ng_group_norm_new(3, 3, .condition = 2, .no_affine = true), value,
                 "both .condition and .no_affine");
    assert_fails(ng_instance_norm_new(3, .condition = 2, .affine = true), value,
                 "both .condition and .affine");
    assert_fails(ng_instance_norm_new(3, .momentum = 0.2), value, "only with .running_stats");
    assert_fails(ng_filter_response_norm_new(3, .eps = -1), value, "eps is -1");
    assert_fails(ng_global_response_norm_new(3, .eps = -1), value, "eps is -1");
    assert_fails(ng_evo_norm_new(3, .momentum = 2), value, "ng_evo_norm_new: momentum is 2");
    assert_fails(ng_evo_norm_new(3, .groups = 2), value, "ng_evo_norm_new: groups is 2");
    assert_fails(ng_evo_norm_new(4, .groups = 2, .momentum = 0.2), value,
                 "both .groups and .momentum");
    assert_fails(ng_l2_norm_new(3, .no_affine = true, .scale = 2), value,
                 "both .no_affine and .scale");
    assert_fails(ng_scale_norm_new(3, .length = HUGE_VAL), value, "length is inf");
    assert_fails(ng_weight_standardization_new(ng_relu_new()), value,
                 "a ReLU has no parameter \"weight\" of its own");
    assert_fails(ng_multi_head_attention_new(4, 2, .qk_norm = ng_norm_rms, .qk_temperature = 2),
                 value, "both .qk_norm and .qk_temperature");
    assert_fails(ng_instance_norm_new(3, .style = true, .affine = true), value,
                 "both .style and .affine");
    assert_fails(ng_instance_norm_new(3, .style = true, .condition = 2), value,
                 "both .style and .condition");
}

TEST(conditions_that_do_not_fit_are_refused)
{
    ng_tensor *image = own(ng_zeros_new(NG_F32, NG_SHAPE(2, 3, 4))),
              *two = own(ng_zeros_new(NG_F32, NG_SHAPE(2, 2))),
              *maps = own(ng_zeros_new(NG_F32, NG_SHAPE(2, 2, 5)));
    ng_module *film = own(ng_film_new(3, .condition = 2));
    assert_ok(ng_forward(film, tape, image, .condition = two));
    assert_fails(ng_forward(film, tape, image, .condition = maps), NG_ESHAPE,
                 "FiLM: condition is (2, 2, 5), expected (2, 2, 4)");
    assert_fails(ng_forward(film, tape, two, .condition = two), NG_ESHAPE,
                 "FiLM: x is (2, 2), expected (N, 3, ...)");
    assert_fails(ng_forward(film, tape, image), NG_EVALUE,
                 "FiLM: ng_forward: .condition is missing");
    ng_module *batch = own(ng_batch_norm_new(3, .condition = 2));
    assert_fails(ng_forward(batch, tape, image), NG_EVALUE,
                 "BatchNorm: ng_forward: .condition is missing");
    ng_module *gated = own(ng_gated_rms_norm_new(4));
    assert_fails(ng_forward(gated, tape, image, .gate = two), NG_ESHAPE,
                 "GatedRMSNorm: gate is (2, 2), expected (2, 3, 4)");
    ng_module *style = own(ng_instance_norm_new(3, .style = true));
    assert_fails(ng_forward(style, tape, image, .style = maps), NG_ESHAPE,
                 "InstanceNorm: style is (2, 2, 5), expected (2, 3, 5)");
    assert_fails(ng_forward(style, tape, image), NG_EVALUE,
                 "InstanceNorm: ng_forward: .style is missing");
}
