/* A small transformer without a norm, and with DynamicTanh and Derf in place of LayerNorm, over the
 * amount of text that it learns. */
#include "lab.h"

enum { WIDTH, LAYERS, STEPS };
enum { CONTEXT = 16, BATCH = 8, HELD_OUT = 256, LOOKS = 8, SIZES = 4 };
static option sizes[] = {[WIDTH] = {"width", "features", .normal = 32, .quick = 16},
                         [LAYERS] = {"layers", "blocks", .normal = 2, .quick = 1},
                         [STEPS] = {"steps", "training steps, a multiple of 8", .normal = 400,
                                    .quick = 16, .least = LOOKS},
                         {0}};
static const int windows[SIZES] = {128, 256, 512, 5000};

static const lab_experiment experiment = {
    .id = "without_norm",
    .source = "Zhu et al. 2025; Chen et al. 2025; Verma 2026; document 001",
    .claim = "a small transformer learns without a norm, if gradients are clipped; DynamicTanh and "
             "Derf in place of LayerNorm learn less, and only overfit later where data are few",
    .method =
        "Pre-norm transformers of 2 blocks and 32 features learn Newton's Opticks, character by "
        "character, from 128 to 5000 windows of 16 characters, in 400 steps of Adam with batches "
        "of 8, warm-up and gradients clipped to norm 1. Embeddings are drawn from N(0, 1), and "
        "alpha starts at 1. Each kind has the best rate of the largest amount of text, over three "
        "seeds that are not scored. Compared with LayerNorm, from the same text and seed: the "
        "validation loss after the last step, and the lowest of 8 on the way.",
    .rule = "with the most text no norm's lowest loss is within 0.1 nats of LayerNorm's, and "
            "DynamicTanh's and Derf's are over 0.05 nats above it; with the least text their last "
            "loss is below LayerNorm's, but the lowest is not: it is above that less 0.05",
    .seeds = 11,
    .sizes = sizes};

static ng_module *tanh_of_one(int64_t dim) { return ng_dynamic_tanh_new(dim, .alpha = 1); }
static ng_module *derf_of_one(int64_t dim) { return ng_derf_new(dim, .alpha = 1); }

enum { LAYER, NONE, KINDS = 4 };
static const struct {
    const char *name;
    ng_norm_maker *make;
} kinds[KINDS] = {[LAYER] = {"LayerNorm", ng_norm_layer},
                  [NONE] = {"no norm", ng_norm_none},
                  {"DynamicTanh", tanh_of_one},
                  {"Derf", derf_of_one}};

/* One cell of the diagram. */
typedef struct {
    int kind, size;
} cell;

/* ---- Training ---- */

static ng_module *make_network(cell at, int vocabulary, uint64_t seed)
{
    ng_module *net = ng_transformer_new(vocabulary, .dim = get_whole(WIDTH), .heads = 2,
                                        .layers = get_whole(LAYERS), .length = CONTEXT,
                                        .norm = kinds[at.kind].make);
    ng_rng rng = ng_rng_seeded(seed);
    ng_module_init(net, seed);
    ng_fill_normal(ng_module_find(net, "embedding.weight"), 0, 1, &rng);
    ng_fill_normal(ng_module_find(net, "positions.weight"), 0, 1, &rng);
    still_works();
    return net;
}

typedef struct {
    double last, lowest;
} outcome;

/* Returns the validation losses, Inf after divergence. */
static outcome train(cell at, double rate, uint64_t seed)
{
    const int steps = get_whole(STEPS), warmup = steps / 5;
    ng_dataset *held_out, *unused;
    lab_run r = {.tape = ng_tape_new(), .clips = true};
    const int vocabulary = lab_text(seed, CONTEXT, windows[at.size], &r.data, &r.rest);
    ng_dataset_split_new(r.rest, HELD_OUT, seed, &held_out, &unused);
    r.net = make_network(at, vocabulary, seed);
    r.optimizer = ng_adam_new(r.net, .lr = rate, .beta2 = 0.98,
                              .schedule = NG_SCHEDULE(.kind = NG_SCHEDULE_LINEAR, .warmup = warmup,
                                                      .steps = steps - warmup, .floor = 0.1));
    outcome o = {HUGE_VAL, HUGE_VAL};
    for (int step = 0; step < steps; step++) {
        o.last = HUGE_VAL;
        if (isnan(lab_step(&r, BATCH, 0))) break;
        if ((step + 1) % (steps / LOOKS) != 0) continue;
        o.last = ng_evaluate(r.net, held_out).loss;
        o.lowest = fmin(o.lowest, o.last);
    }
    ng_dataset_free(held_out), ng_dataset_free(unused);
    lab_end_run(&r);
    return o;
}

static double tuning_loss(void *context, double rate, uint64_t seed)
{
    return train(*(const cell *)context, rate, seed).lowest;
}

/* ---- By amount of text ---- */

static double *last[KINDS][SIZES], *lowest[KINDS][SIZES]; /* by seed */

static void measure(int kind)
{
    cell at = {kind, SIZES - 1};
    const double rate = lab_best_rate(8e-3, tuning_loss, &at);
    curve_set *curves = new_curves("windows", "%s", kinds[kind].name);
    for (at.size = 0; at.size < SIZES; at.size++) {
        double *of_last = last[kind][at.size] = lab_numbers(lab_seeds());
        double *of_lowest = lowest[kind][at.size] = lab_numbers(lab_seeds());
        for (int seed = 0; seed < lab_seeds(); seed++) {
            const outcome o = train(at, rate, lab_seed(seed));
            of_last[seed] = o.last, of_lowest[seed] = o.lowest;
            log_curves(curves, seed, "rate last above lowest lowest_above", windows[at.size], rate,
                       o.last, o.last - last[LAYER][at.size][seed], o.lowest,
                       o.lowest - lowest[LAYER][at.size][seed]);
        }
    }
}

/* Judges how far a kind's loss is above LayerNorm's. */
static void judge(int kind, int size, bool at_its_lowest, lab_range claimed)
{
    lab_judge(kind == NONE ? NULL : kinds[kind].name,
              at_its_lowest ? lab_less(lowest[kind][size], lowest[LAYER][size])
                            : lab_less(last[kind][size], last[LAYER][size]),
              claimed, "%s validation loss less LayerNorm's, %d characters%s, nats",
              at_its_lowest ? "lowest" : "last", CONTEXT * windows[size],
              kind == NONE ? ", no norm" : "");
}

int main(int argc, char **argv)
{
    lab_begin(argc, argv, &experiment);
    lab_data("Newton's Opticks; %d blocks, width %d, context %d, batch %d, %d steps of Adam",
             get_whole(LAYERS), get_whole(WIDTH), CONTEXT, BATCH, get_whole(STEPS));
    for (int kind = 0; kind < KINDS; kind++) measure(kind);
    judge(NONE, SIZES - 1, true, lab_near(0, 0.1));
    for (int kind = NONE + 1; kind < KINDS; kind++) {
        judge(kind, SIZES - 1, true, lab_above(0.05));
        judge(kind, 0, false, lab_below(0));
        judge(kind, 0, true, lab_above(-0.05));
    }
    return lab_end();
}
