/* The effective rank of a batch's activations by layer of a deep network, at the start, by norm. */
#include "lab.h"

enum { WIDTH, DEPTH };
static lab_size sizes[] = {
    [WIDTH] = {"width", "features of each layer, and samples", .normal = 32, .quick = 16},
    [DEPTH] = {"depth", "layers", .normal = 100, .quick = 10},
    {0}};

static const lab_experiment experiment = {
    .id = "rank",
    .source = "Daneshmand et al. 2020, theorem 2 and figure 1; Daneshmand, Joudaki & Bach 2021",
    .claim =
        "in a deep network with random weights the samples of a batch become alike: without "
        "BatchNorm the rank of a layer's values falls to 1 with depth, with it it stays above the "
        "square root of the width",
    .method =
        "Each of 100 layers is norm(x w^T), of 32 features, and then ReLU or nothing; the first\n"
        "x is random, with 32 samples, and weights are drawn from N(0, 2 / width), or N(0, 1 /\n"
        "width) without ReLU. Measured: the effective rank of h = norm(x w^T) at each layer, (tr\n"
        "M)^2 / tr M^2 with M = h h^T, which is k for k directions of equal size. Nothing is\n"
        "trained, so there is no learning rate. The rank at the last layer is also measured for\n"
        "widths of 8 to 128.\n",
    .rule = "the effective rank at the last layer is above half the square root of the width with "
            "BatchNorm, and below 2 with LayerNorm, RMSNorm and none",
    .dtype = "float64",
    .seeds = 15,
    .quick_seeds = 1,
    .sizes = sizes};

enum { NORMS = 4 };
static const char *const kinds[2] = {"linear", "ReLU"};

static double effective_rank(ng_tape *tape, ng_tensor *h)
{
    ng_tensor *gram = ng_matmul(tape, h, h, .transpose_b = true);
    const double trace = ng_item(ng_sum(tape, ng_square(tape, h)));
    return trace * trace / ng_item(ng_sum(tape, ng_square(tape, gram)));
}

/* Sets at[l] to the effective rank at layer l, of `width` samples. */
static void measure(const lab_norm *norm, bool relu, int64_t width, uint64_t seed, double *at)
{
    const double deviation = sqrt((relu ? 2 : 1) / (double)width);
    ng_rng rng = ng_rng_seeded(seed);
    ng_tape *tape = ng_tape_new();
    ng_module *layer = norm->make ? norm->make(width) : ng_norm_none(width);
    ng_module_to(layer, NG_F64);
    ng_tensor *x = ng_normal_new(NG_F64, NG_SHAPE(width, width), 0, 1, &rng);
    ng_tape_set_recording(tape, false);
    for (int l = 0; l < lab_whole(DEPTH) && lab_goes_on(); l++) {
        ng_tensor *w = ng_normal_new(NG_F64, NG_SHAPE(width, width), 0, deviation, &rng);
        ng_tensor *h = ng_forward(layer, tape, ng_matmul(tape, x, w, .transpose_b = true));
        at[l] = effective_rank(tape, h);
        ng_copy_values(x, relu ? ng_relu(tape, h) : h);
        ng_tensor_free(w);
        ng_tape_reset(tape);
    }
    ng_tensor_free(x), ng_module_free(layer), ng_tape_free(tape);
}

static void measure_kind(int norm, bool relu)
{
    const int depth = lab_whole(DEPTH), seeds = lab_seeds();
    double *last = lab_numbers(seeds), *at = lab_numbers(depth);
    lab_curves *curves = lab_curves_new("layer", "%s, %s", lab_norms[norm]->name, kinds[relu]);
    for (int seed = 0; seed < seeds; seed++) {
        lab_progress((relu * NORMS + norm) * seeds + seed, 4 * NORMS * seeds, "%s, %s",
                     lab_norms[norm]->name, kinds[relu]);
        measure(lab_norms[norm], relu, lab_whole(WIDTH), lab_seed(seed), at);
        for (int l = 0; l < depth; l++)
            lab_log(curves, seed, "rank width", l + 1, at[l], lab_whole(WIDTH));
        last[seed] = at[depth - 1];
    }
    const bool stays = lab_norms[norm] == &lab_batch_norm;
    lab_judge((lab_part){lab_norms[norm]->make ? lab_norms[norm]->name : NULL, last,
                         .side = stays ? LAB_ABOVE : LAB_BELOW,
                         .threshold = stays ? sqrt(lab_whole(WIDTH)) / 2 : 2},
              "effective rank at layer %d, %s%s", depth, kinds[relu],
              lab_norms[norm]->make ? "" : ", no norm");
}

static void measure_widths(int norm, bool relu)
{
    double *at = lab_numbers(lab_whole(DEPTH));
    lab_curves *curves =
        lab_curves_new("width", "%s, %s, widths", lab_norms[norm]->name, kinds[relu]);
    for (int width = 8; width <= 4 * lab_whole(WIDTH); width *= 2) {
        lab_progress(2 * NORMS + relu * NORMS + norm, 4 * NORMS, "%s, %s, width %d",
                     lab_norms[norm]->name, kinds[relu], width);
        for (int seed = 0; seed < lab_seeds(); seed++) {
            measure(lab_norms[norm], relu, width, lab_seed(seed), at);
            lab_log(curves, seed, "rank", width, at[lab_whole(DEPTH) - 1]);
        }
    }
}

int main(int argc, char **argv)
{
    lab_begin(argc, argv, &experiment);
    lab_data("%d layers of %d features, %d samples", lab_whole(DEPTH), lab_whole(WIDTH),
             lab_whole(WIDTH));
    for (int relu = 0; relu < 2; relu++)
        for (int norm = 0; norm < NORMS; norm++) measure_kind(norm, relu);
    for (int relu = 0; relu < 2; relu++)
        for (int norm = 0; norm < NORMS; norm++) measure_widths(norm, relu);
    return lab_end();
}
