/* The tables of settings: what a description says of a layer, which values are refused, and that
 * the tables name settings that there are. */
#include "cases/cases.h"
#include "nn/module.h"
#include "support/fixture.h"
#include "support/support.h"
#include <string.h>

/* The description of a layer, which is freed after the test. */
static const char *settings_of(ng_module *layer)
{
    static char text[512];
    assert_ok(own(layer));
    ng_module_describe(layer, text, sizeof text);
    return text;
}

#define assert_described(layer, text) ck_assert_str_eq(settings_of(layer), text)

START_TEST(a_setting_without_effect_is_not_described)
{
    assert_described(ng_batch_norm_new(4), "4, eps=1e-05, momentum=0.1");
    assert_described(ng_batch_norm_new(4, .cumulative = true), "4, eps=1e-05, cumulative");
    assert_described(ng_batch_norm_new(4, .frozen = true), "4, eps=1e-05, frozen");
    assert_described(ng_evo_norm_new(4, .groups = 2), "4, groups=2, eps=1e-05");
    assert_described(ng_instance_norm_new(4), "4, eps=1e-05");
    assert_described(ng_instance_norm_new(4, .running_stats = true),
                     "4, eps=1e-05, running stats, momentum=0.1");
    assert_described(ng_adaptive_layer_norm_new(4), "4, eps=1e-05");
    assert_described(ng_adaptive_layer_norm_new(4, .condition = 3), "4, condition=3, eps=1e-06");
}

START_TEST(zero_is_described_where_it_is_meant)
{
    assert_described(ng_layer_norm_new(4, .eps = NG_ZERO), "4, eps=0");
    assert_described(ng_l2_norm_new(4, .scale = NG_ZERO), "4, eps=1e-10, scale=0");
    assert_described(ng_dropout_new(0), "0");
    assert_described(ng_feed_forward_new(4, .gain = NG_ZERO), "4, hidden=16, GELU, gain=0");
}

START_TEST(every_kind_of_value_is_described)
{
    assert_described(ng_layer_norm_over_new(NG_SHAPE(4, 8), .no_bias = true),
                     "(4, 8), eps=1e-05, no bias");
    assert_described(ng_linear_new(4, 2, .init = NG_INIT_NORMAL, .init_value = 0.02),
                     "4, 2, init=normal, init_value=0.02");
    assert_described(ng_conv_transpose2d_new(4, 6, 3, .stride = 2, .output_padding_w = 1),
                     "4, 6, kernel=3, stride=2, output_padding=0 x 1");
    assert_described(ng_conv1d_new(4, 6, 3, .groups = 2), "4, 6, kernel=3, groups=2");
    assert_described(ng_adaptive_avg_pool_new(NG_SHAPE(7, 5)), "(7, 5)");
    assert_described(ng_max_pool2d_new(2, .ceil = true), "kernel=2, ceil");
    assert_described(ng_upsample_new(2, .mode = NG_LINEAR, .align_corners = true),
                     "2, linear, align corners");
    assert_described(ng_multi_head_attention_new(8, 2, .kv_heads = 2), "8, heads=2");
    assert_described(ng_multi_head_attention_new(8, 4, .kv_heads = 2, .context = 6),
                     "8, heads=4, kv_heads=2, context=6");
    ng_group *alone = ng_group_alone_new();
    assert_described(ng_batch_renorm_new(4, .group = alone, .warmup = 3),
                     "4, eps=1e-05, momentum=0.1, r_max=3, d_max=5, warmup=3, synchronized");
    ng_group_free(alone);
}

/* Each end of each range, and what is no number. */
START_TEST(values_outside_their_range_are_refused)
{
    const double nothing = (double)NAN, endless = (double)INFINITY;
    assert_refused(ng_linear_new(0, 2));
    assert_refused(ng_linear_new(-1, 2));
    assert_refused(ng_linear_new(2, (int64_t)1 << 60));
    assert_refused(ng_linear_new(2, 2, .init = (ng_init_kind)7));
    assert_refused(ng_linear_new(2, 2, .init = (ng_init_kind)-1));
    assert_refused(ng_linear_new(2, 2, .init_value = 1));
    assert_refused(ng_dropout_new(1));
    assert_refused(ng_dropout_new(-0.1));
    assert_refused(ng_dropout_new(nothing));
    assert_ok(own(ng_dropout_new(1 - 0x1p-53)));
    assert_refused(ng_layer_norm_new(4, .eps = endless));
    assert_refused(ng_batch_norm_new(4, .momentum = 1 + 0x1p-52));
    assert_ok(own(ng_batch_norm_new(4, .momentum = 1)));
    assert_refused(ng_rms_norm_new(4, .partial = NG_ZERO));
    assert_refused(ng_rms_norm_new(4, .partial = 1.5));
    assert_ok(own(ng_rms_norm_new(4, .partial = 0x1p-1074)));
    assert_refused(ng_celu_new(0));
    assert_refused(ng_prelu_new(4, .slope = endless));
    assert_refused(ng_batch_renorm_new(4, .r_max = 0.5));
    assert_refused(ng_gated_rms_norm_new(6, .groups = 4));
    assert_refused(ng_conv2d_new(4, 6, 3, .groups = 4));
    assert_refused(ng_multi_head_attention_new(6, 4));
    assert_refused(ng_multi_head_attention_new(6, 2, .rotary = true));
    assert_refused(ng_transformer_new(5, .layers = NG_MAX_LAYERS + 1));
}

/* Whether each name of a list is that of a setting in the table. */
static void assert_names(const char *names, const ng_setting *table)
{
    while (names && *names) {
        const size_t length = strcspn(names, " ");
        bool found = false;
        for (const ng_setting *s = table; s->name; s++)
            found = found || (strlen(s->name) == length && strncmp(s->name, names, length) == 0);
        ck_assert_msg(found, "%s names no setting", names);
        names += length + strspn(names + length, " ");
    }
}

START_TEST(tables_name_settings_that_there_are)
{
    const gradient_case *spec;
    int tables = 0;
    for (int i = 0; (spec = layer_case(i)); i++) {
        ng_module *net = own(spec->module());
        const ng_module *layer;
        for (int k = 0; (layer = ng_module_layer(net, k)); k++) {
            const ng_setting *table = layer->registry->settings;
            for (const ng_setting *s = table; s && s->name; s++) {
                assert_names(s->excludes, table);
                assert_names(s->needs, table);
                assert_names(s->divides, table);
                ck_assert_int_eq(s->kind == NG_IS_CHOICE, s->choices != NULL);
            }
            tables += table != NULL;
        }
    }
    ck_assert_int_gt(tables, 40);
}

Suite *settings_suite(void)
{
    return suite_of("settings", set_up, tear_down, a_setting_without_effect_is_not_described,
                    zero_is_described_where_it_is_meant, every_kind_of_value_is_described,
                    values_outside_their_range_are_refused, tables_name_settings_that_there_are);
}
