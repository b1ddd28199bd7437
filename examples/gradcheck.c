/* Checks the gradients of layers against finite differences, up to the third order. Then checks
 * an op with three planted faults, which must be found.
 *
 *     gradcheck                all layers
 *     gradcheck LayerNorm      those with this in their name
 *
 * Exit status: 0 if all gradients are right and all faults were found, else 1. */
#include <normgrad.h>
#include <stdio.h>
#include <string.h>

/* ---- Layers: with an input x and, where it has a shape, a condition -------------------------- */

typedef struct {
    const char *name;
    ng_module *layer;
    ng_shape x, condition;
} layer_row;

static bool check_layer(const layer_row *row)
{
    ng_rng rng = ng_rng_seeded(1);
    ng_tensor *inputs[] = {ng_normal_new(NG_F64, row->x, 0, 1, &rng),
                           ng_normal_new(NG_F64, row->condition, 0, 1, &rng)};
    const int count = row->condition.rank > 0 ? 2 : 1;
    const ng_check_report report =
        ng_check_module(row->layer, inputs, count, .order = 3, .names = NG_NAMES("x", "condition"));
    ng_check_print(stdout, row->name, &report);
    ng_tensor_free(inputs[0]), ng_tensor_free(inputs[1]);
    return report.passed;
}

/* Whether those with this part in their name are right, and there is one. */
static bool check_layers(const char *part)
{
    const layer_row rows[] = {
        {"Linear", ng_linear_new(4, 3), NG_SHAPE(3, 4), {0}},
        {"Conv2d", ng_conv2d_new(2, 3, 3), NG_SHAPE(2, 2, 5, 5), {0}},
        {"GELU", ng_gelu_new(), NG_SHAPE(3, 4), {0}},
        {"Attention", ng_multi_head_attention_new(4, 2), NG_SHAPE(2, 3, 4), {0}},
        {"LSTM", ng_lstm_new(3, 4), NG_SHAPE(3, 2, 3), {0}},
        {"LayerNorm", ng_layer_norm_new(5), NG_SHAPE(3, 5), {0}},
        {"AdaptiveLayerNorm", ng_adaptive_layer_norm_new(4, .condition = 3), NG_SHAPE(3, 4),
         NG_SHAPE(3, 3)},
        {"RMSNorm", ng_rms_norm_new(5), NG_SHAPE(3, 5), {0}},
        {"ScaleNorm", ng_scale_norm_new(5), NG_SHAPE(3, 5), {0}},
        {"DynamicTanh", ng_dynamic_tanh_new(5), NG_SHAPE(3, 5), {0}},
        {"BatchNorm", ng_batch_norm_new(3), NG_SHAPE(5, 3), {0}},
        {"BatchRenorm", ng_batch_renorm_new(3), NG_SHAPE(5, 3), {0}},
        {"GroupNorm", ng_group_norm_new(2, 4), NG_SHAPE(2, 4, 3), {0}},
        {"InstanceNorm", ng_instance_norm_new(3), NG_SHAPE(2, 3, 4), {0}},
        {"FilterResponseNorm", ng_filter_response_norm_new(3), NG_SHAPE(2, 3, 4), {0}},
        {"GlobalResponseNorm", ng_global_response_norm_new(3), NG_SHAPE(2, 3, 4), {0}},
        {"EvoNorm", ng_evo_norm_new(4, .groups = 2), NG_SHAPE(2, 4, 3), {0}},
        {"LocalResponseNorm", ng_local_response_norm_new(3), NG_SHAPE(2, 5, 3), {0}},
        {"WeightNorm", ng_weight_norm_new(ng_linear_new(4, 3)), NG_SHAPE(3, 4), {0}},
        {"SpectralNorm", ng_spectral_norm_new(ng_linear_new(4, 3)), NG_SHAPE(3, 4), {0}},
    };
    int chosen = 0, right = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strstr(rows[i].name, part)) chosen++, right += check_layer(&rows[i]);
        ng_module_free(rows[i].layer);
    }
    printf("%d of %d layers have right gradients\n", right, chosen);
    return chosen > 0 && right == chosen;
}

/* ---- Planted faults: y = tanh x with a dx that is not dy (1 - y^2) --------------------------- */

typedef enum { FLIPPED, TOO_LARGE, DETACHED, FAULTS } fault;

static void wrong_gradient(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    const fault planted = *(const fault *)node->attributes;
    ng_tensor *y = planted == DETACHED ? ng_detach(tape, node->output) : node->output;
    ng_tensor *right = ng_mul(tape, dy, ng_scalar_sub(tape, 1, ng_square(tape, y)));
    dx[0] = right;
    if (planted == FLIPPED) dx[0] = ng_neg(tape, right);
    if (planted == TOO_LARGE) dx[0] = ng_mul_scalar(tape, right, 1.01);
}

static ng_tensor *wrong_tanh(ng_tape *tape, ng_tensor *const *inputs, void *planted)
{
    static const ng_op op = {.name = "wrong_tanh", .gradient = wrong_gradient};
    const bool recording = ng_tape_set_recording(tape, false);
    ng_tensor *y = ng_tanh(tape, inputs[0]);
    ng_tape_set_recording(tape, recording);
    return ng_record(tape, &op, y, inputs, 1, planted, sizeof(fault));
}

/* Whether all were found. */
static bool check_faults(void)
{
    static const char *const names[] = {"tanh, the sign flipped", "tanh, 1 % too large",
                                        "tanh, wrong at order 2 only"};
    ng_rng rng = ng_rng_seeded(2);
    ng_tensor *x = ng_normal_new(NG_F64, NG_SHAPE(3, 4), 0, 1, &rng);
    int found = 0;
    for (fault planted = 0; planted < FAULTS; planted++) {
        const ng_check_report report = ng_check_function(
            wrong_tanh, &x, 1, .order = 2, .context = &planted, .names = NG_NAMES("x"));
        ng_check_print(stdout, names[planted], &report);
        found += !report.passed;
    }
    ng_tensor_free(x);
    printf("%d of %d planted faults were found\n", found, FAULTS);
    return found == FAULTS;
}

int main(int argc, char **argv)
{
    ng_check_print_head(stdout);
    const bool right = check_layers(argc > 1 ? argv[1] : "");
    puts("");
    const bool found = check_faults();
    if (ng_failed()) fprintf(stderr, "gradcheck: %s\n", ng_error_text());
    return right && found && !ng_failed() && fflush(stdout) == 0 ? 0 : 1;
}
