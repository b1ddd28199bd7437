/* DynamicTanh and Derf in place of LayerNorm, over the width of a small transformer and the amount
 * of text that it learns: where do they help, and where do they cost? */
#include "lab.h"
#include <math.h>

enum { LAYERS, STEPS };
enum { CONTEXT = 16, BATCH = 8, HELD_OUT = 256, LOOKS = 8, WIDTHS = 2, SIZES = 4 };
static lab_size sizes[] = {[LAYERS] = {"layers", "blocks", .normal = 2, .quick = 1},
                           [STEPS] = {"steps", "training steps, a multiple of 8", .normal = 400,
                                      .quick = 16, .multiple = LOOKS},
                           {0}};
static const int widths[WIDTHS] = {16, 48}, windows[SIZES] = {128, 256, 512, 5000};

static const lab_experiment experiment = {
    .id = "phase_diagram",
    .source = "Zhu et al. 2025; Chen et al. 2025; Verma 2026",
    .claim = "DynamicTanh and Derf in place of LayerNorm lower the validation loss where data are "
             "few, and raise it where they are many",
    .method =
        "Pre-norm transformers of 2 blocks learn Newton's Opticks, character by character, from\n"
        "128 to 5000 windows of 16 characters, in 400 steps of Adam with batches of 8, warm-up\n"
        "and gradients clipped to norm 1. Embeddings are drawn from N(0, 1), and alpha starts at\n"
        "1. For each width and kind the rate is the best of the largest amount of text, over\n"
        "three seeds that are not scored. Compared: the validation loss after the last step, with\n"
        "the same text and seed. The data have the lowest of 8 validation losses as well.\n",
    .rule = "with the least text the loss is below LayerNorm's, and with the most text above it, "
            "for each width",
    .seeds = 9,
    .quick_seeds = 1,
    .sizes = sizes};

static ng_module *tanh_of_one(int64_t dim) { return ng_dynamic_tanh_new(dim, .alpha = 1); }
static ng_module *derf_of_one(int64_t dim) { return ng_derf_new(dim, .alpha = 1); }

enum { LAYER, KINDS = 3 };
static const struct {
    const char *name;
    ng_norm_maker *make;
} kinds[KINDS] = {
    [LAYER] = {"LayerNorm", ng_norm_layer}, {"DynamicTanh", tanh_of_one}, {"Derf", derf_of_one}};

/* One cell of the diagram. */
typedef struct {
    int kind, width, size;
} cell;

/* ---- Training ---- */

static ng_module *make_network(cell at, int vocabulary, uint64_t seed)
{
    ng_module *net = ng_transformer_new(vocabulary, .dim = widths[at.width], .heads = 2,
                                        .layers = lab_whole(LAYERS), .length = CONTEXT,
                                        .norm = kinds[at.kind].make);
    ng_rng rng = ng_rng_seeded(seed);
    ng_module_init(net, seed);
    ng_fill_normal(ng_module_find(net, "embedding.weight"), 0, 1, &rng);
    ng_fill_normal(ng_module_find(net, "positions.weight"), 0, 1, &rng);
    lab_goes_on();
    return net;
}

typedef struct {
    double last, lowest;
} outcome;

/* Returns the validation losses, Inf after divergence. */
static outcome train(cell at, double rate, uint64_t seed)
{
    const int steps = lab_whole(STEPS), warmup = steps / 5;
    ng_dataset *text, *rest, *held_out, *unused;
    const int vocabulary = lab_text(seed, CONTEXT, windows[at.size], &text, &rest);
    ng_dataset_split(rest, HELD_OUT, seed, &held_out, &unused);
    ng_module *net = make_network(at, vocabulary, seed);
    ng_tape *tape = ng_tape_new();
    ng_optimizer *adam = ng_adam_new(
        net, .lr = rate, .beta2 = 0.98,
        .schedule = {NG_SCHEDULE_LINEAR, .warmup = warmup, .steps = steps - warmup, .floor = 0.1});
    const int batches = (int)(ng_dataset_count(text) / BATCH);
    outcome o = {HUGE_VAL, HUGE_VAL};
    for (int step = 0; step < steps && lab_goes_on(); step++) {
        ng_batch batch;
        if (step % batches == 0) ng_dataset_shuffle(text, (uint64_t)step);
        ng_dataset_batch(text, tape, step % batches, BATCH, &batch);
        ng_tensor *loss = ng_cross_entropy(tape, ng_forward(net, tape, batch.x), batch.y);
        o.last = HUGE_VAL;
        if (ng_backward(tape, loss) || !isfinite(ng_grad_norm(net))) break;
        ng_clip_grad_norm(net, 1);
        if (ng_optimizer_step(adam)) break;
        ng_tape_reset(tape);
        if ((step + 1) % (steps / LOOKS) != 0) continue;
        o.last = lab_evaluate(net, tape, held_out).loss;
        o.lowest = fmin(o.lowest, o.last);
    }
    ng_tape_free(tape), ng_optimizer_free(adam), ng_module_free(net);
    ng_dataset_free(text), ng_dataset_free(rest);
    ng_dataset_free(held_out), ng_dataset_free(unused);
    lab_goes_on();
    return o;
}

static double tuning_loss(void *context, double rate, uint64_t seed)
{
    return train(*(const cell *)context, rate, seed).last;
}

/* ---- The diagram ---- */

static double *last[KINDS][WIDTHS][SIZES], *lowest[KINDS][WIDTHS][SIZES]; /* by seed */

static void measure(int kind, int width)
{
    cell at = {kind, width, SIZES - 1};
    const double total = KINDS * WIDTHS, before = kind * WIDTHS + width;
    lab_progress(before, total, "%s, width %d, rates", kinds[kind].name, widths[width]);
    const double rate = lab_best_rate(8e-3, tuning_loss, &at);
    for (at.size = 0; at.size < SIZES; at.size++) {
        double *of_last = last[kind][width][at.size] = lab_numbers(lab_seeds());
        double *of_lowest = lowest[kind][width][at.size] = lab_numbers(lab_seeds());
        lab_progress(before + (at.size + 1) / ((double)SIZES + 1), total,
                     "%s, width %d, %d windows", kinds[kind].name, widths[width], windows[at.size]);
        for (int seed = 0; seed < lab_seeds(); seed++) {
            const outcome o = train(at, rate, lab_seed(seed));
            of_last[seed] = o.last;
            of_lowest[seed] = o.lowest;
        }
    }
}

/* Logs by amount of text both losses, and how far they are above LayerNorm's. */
static void write(int kind, int width)
{
    lab_curves *curves = lab_curves_new("windows", "%s, width %d", kinds[kind].name, widths[width]);
    for (int size = 0; size < SIZES; size++)
        for (int seed = 0; seed < lab_seeds(); seed++) {
            const double loss = last[kind][width][size][seed];
            const double least = lowest[kind][width][size][seed];
            lab_log(curves, seed, "loss above lowest lowest_above", windows[size], loss,
                    loss - last[LAYER][width][size][seed], least,
                    least - lowest[LAYER][width][size][seed]);
        }
}

static void judge(int kind, int width, int size, lab_side side)
{
    lab_judge((lab_part){kinds[kind].name,
                         lab_less(last[kind][width][size], last[LAYER][width][size]), .side = side},
              "validation loss less LayerNorm's, width %d, %d windows, nats", widths[width],
              windows[size]);
}

int main(int argc, char **argv)
{
    lab_begin(argc, argv, &experiment);
    lab_data("Newton's Opticks; %d blocks, context %d, batch %d, %d steps of Adam",
             lab_whole(LAYERS), CONTEXT, BATCH, lab_whole(STEPS));
    for (int kind = 0; kind < KINDS; kind++)
        for (int width = 0; width < WIDTHS; width++) measure(kind, width), write(kind, width);
    for (int kind = LAYER + 1; kind < KINDS; kind++)
        for (int width = 0; width < WIDTHS; width++) {
            judge(kind, width, 0, LAB_BELOW);
            judge(kind, width, SIZES - 1, LAB_ABOVE);
        }
    return lab_end();
}
