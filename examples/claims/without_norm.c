/* DynamicTanh, which uses no statistics, instead of LayerNorm and RMSNorm in a small
 * character-level transformer, at three scales of its embedding. */
#include "lab.h"

enum { WIDTH, LAYERS, STEPS };
enum { CONTEXT = 32, BATCH = 8, HELD_OUT = 128, LOOKS = 10 };
static lab_size sizes[] = {
    [WIDTH] = {"width", "features, in heads of 16", .normal = 32, .quick = 16, .multiple = 16},
    [LAYERS] = {"layers", "blocks", .normal = 2, .quick = 1},
    [STEPS] = {"steps", "training steps, a multiple of 10", .normal = 800, .quick = 10,
               .multiple = LOOKS},
    {0}};

static const lab_experiment experiment = {
    .id = "without_norm",
    .source = "Zhu et al. 2025",
    .claim = "a small transformer with DynamicTanh instead of its norms matches one with norms",
    .method =
        "A pre-norm transformer of 2 blocks learns Newton's Opticks, character by character\n"
        "(examples/data/opticks.txt), in windows of 32, in 800 steps of Adam, with warm-up and\n"
        "with gradients clipped to norm 1. It is validated on other text after every tenth of\n"
        "the steps. Embeddings of ids and positions are drawn from N(0, 1), where LayerNorm,\n"
        "RMSNorm and no norm do well; DynamicTanh is tried with deviations 1 and 4 and alpha 1,\n"
        "and as a drop-in, with 0.02 and alpha 1/2. Each has its own learning rate, which has a\n"
        "lower validation loss than half and twice the rate, in the median over three seeds that\n"
        "are not scored. A seed leaves the plateau when its loss falls below 0.9 times the\n"
        "entropy of single characters. The paper's claim is about large networks after long\n"
        "training.\n",
    .rule = "DynamicTanh's lowest validation loss is less than 0.05 nats above the norm's from the "
            "same seed (same text), for each norm and each scale",
    .seeds = 9,
    .quick_seeds = 1,
    .sizes = sizes};

static ng_module *tanh_of_one(int64_t dim) { return ng_dynamic_tanh_new(dim, .alpha = 1); }

enum { LAYER, RMS, NONE, TANH, KINDS = TANH + 3 };
static const struct {
    const char *name;
    ng_norm_maker *make;
    double deviation; /* of the embeddings of ids and positions */
} kinds[KINDS] = {{"LayerNorm", ng_norm_layer, 1},
                  {"RMSNorm", ng_norm_rms, 1},
                  {"no norm", ng_norm_none, 1},
                  {"DynamicTanh, deviation 1", tanh_of_one, 1},
                  {"DynamicTanh, deviation 4", tanh_of_one, 4},
                  {"DynamicTanh as a drop-in", ng_norm_dynamic_tanh, 0.02}};

/* ---- The text ----------------------------------------------------------------------------- */

typedef struct {
    ng_dataset *train, *held_out;
    int vocabulary;
} text;

static text text_new(uint64_t seed)
{
    text t;
    ng_dataset *rest, *unused;
    t.vocabulary = lab_text(seed, CONTEXT, 0, &t.train, &rest);
    ng_dataset_split(rest, HELD_OUT, seed, &t.held_out, &unused);
    ng_dataset_free(rest), ng_dataset_free(unused);
    lab_goes_on();
    return t;
}

static void text_free(text t) { ng_dataset_free(t.train), ng_dataset_free(t.held_out); }

/* Returns the entropy of single characters in nats: the loss of a model that knows only their
 * frequencies. */
static double entropy_of(const text *t)
{
    const ng_tensor *y = ng_dataset_y(t->train);
    double *count = lab_numbers(t->vocabulary), entropy = 0;
    const double all = (double)ng_size(y);
    for (int64_t i = 0; i < ng_size(y); i++) count[(int64_t)ng_get(y, i)]++;
    for (int i = 0; i < t->vocabulary; i++)
        if (count[i] > 0) entropy -= count[i] / all * log(count[i] / all);
    return entropy;
}

/* ---- Training ----------------------------------------------------------------------------- */

static ng_module *make_network(int kind, int vocabulary, uint64_t seed)
{
    ng_module *net = ng_transformer_new(vocabulary, .dim = lab_whole(WIDTH),
                                        .heads = lab_whole(WIDTH) / 16, .layers = lab_whole(LAYERS),
                                        .length = CONTEXT, .norm = kinds[kind].make);
    ng_module_init(net, seed);
    ng_rng rng = ng_rng_seeded(seed);
    ng_fill_normal(ng_module_find(net, "embedding.weight"), 0, kinds[kind].deviation, &rng);
    ng_fill_normal(ng_module_find(net, "positions.weight"), 0, kinds[kind].deviation, &rng);
    lab_goes_on();
    return net;
}

/* Takes a step. Returns false if the network diverged. */
static bool step_on(ng_module *net, ng_optimizer *adam, ng_tape *tape, const ng_batch *batch)
{
    ng_tensor *loss = ng_cross_entropy(tape, ng_forward(net, tape, batch->x), batch->y);
    if (ng_backward(tape, loss) || !isfinite(ng_grad_norm(net))) return false;
    ng_clip_grad_norm(net, 1);
    const bool done = ng_optimizer_step(adam) == NG_OK;
    ng_tape_reset(tape);
    return done;
}

/* Trains. Returns the lowest validation loss and sets that of each measurement, Inf after
 * divergence. */
static double train(int kind, double rate, uint64_t seed, double looks[LOOKS])
{
    const int steps = lab_whole(STEPS), warmup = steps / 5;
    const text t = text_new(seed);
    ng_module *net = make_network(kind, t.vocabulary, seed);
    ng_tape *tape = ng_tape_new();
    ng_optimizer *adam = ng_adam_new(
        net, .lr = rate, .beta2 = 0.98,
        .schedule = {NG_SCHEDULE_LINEAR, .warmup = warmup, .steps = steps - warmup, .floor = 0.1});
    const int batches = (int)(ng_dataset_count(t.train) / BATCH);
    double lowest = HUGE_VAL;
    for (int i = 0; i < LOOKS; i++) looks[i] = HUGE_VAL;
    for (int step = 0; step < steps && lab_goes_on(); step++) {
        ng_batch batch;
        if (step % batches == 0) ng_dataset_shuffle(t.train, (uint64_t)step);
        ng_dataset_batch(t.train, tape, step % batches, BATCH, &batch);
        if (!step_on(net, adam, tape, &batch)) break;
        if ((step + 1) % (steps / LOOKS) != 0) continue;
        const double loss = lab_evaluate(net, tape, t.held_out).loss;
        if (!isfinite(loss)) break;
        lowest = fmin(lowest, looks[step / (steps / LOOKS)] = loss);
    }
    ng_tape_free(tape), ng_optimizer_free(adam), ng_module_free(net), text_free(t);
    return lowest;
}

/* The results of each kind at its own rate, by seed. */
static struct {
    double rate, *lowest;
} reached[KINDS];

static double tuning_loss(void *context, double rate, uint64_t seed)
{
    double looks[LOOKS];
    return train(*(const int *)context, rate, seed, looks);
}

static void train_all(int kind)
{
    lab_progress(kind, KINDS, "%s", kinds[kind].name);
    reached[kind].rate = lab_best_rate(8e-3, tuning_loss, &kind);
    reached[kind].lowest = lab_numbers(lab_seeds());
    lab_curves *curves = lab_curves_new("step", "%s", kinds[kind].name);
    for (int s = 0; s < lab_seeds() && lab_goes_on(); s++) {
        double looks[LOOKS];
        reached[kind].lowest[s] = train(kind, reached[kind].rate, lab_seed(s), looks);
        for (int i = 0; i < LOOKS; i++)
            lab_log(curves, s, "loss", (i + 1) * (lab_whole(STEPS) / LOOKS), looks[i]);
    }
}

/* ---- Results ------------------------------------------------------------------------------ */

/* Writes the share of seeds that leave the plateau, and a row for each seed. */
static void write_lowest(void)
{
    const text t = text_new(lab_seed(0));
    const double entropy = entropy_of(&t);
    text_free(t);
    lab_block("kinds", "kind rate lowest left plateau seeds");
    for (int kind = 0; kind < KINDS; kind++) {
        double left = 0;
        for (int s = 0; s < lab_seeds(); s++)
            left += reached[kind].lowest[s] < 0.9 * entropy ? 1.0 / lab_seeds() : 0;
        lab_row(kind, reached[kind].rate, lab_median(reached[kind].lowest), left, entropy,
                lab_seeds());
    }
    lab_block("seeds", "kind lowest");
    for (int kind = 0; kind < KINDS; kind++)
        for (int s = 0; s < lab_seeds(); s++) lab_row(kind, reached[kind].lowest[s]);
}

static void judge(int kind, int norm)
{
    lab_judge((lab_part){kinds[norm].name, lab_less(reached[kind].lowest, reached[norm].lowest),
                         .side = LAB_BELOW, .threshold = 0.05},
              "lowest validation loss of %s less the norm's, own rates, nats", kinds[kind].name);
}

int main(int argc, char **argv)
{
    lab_begin(argc, argv, &experiment);
    for (int kind = 0; kind < KINDS; kind++) train_all(kind);
    lab_data("Newton's Opticks; %d blocks, width %d, context %d, batch %d, %d steps of Adam",
             lab_whole(LAYERS), lab_whole(WIDTH), CONTEXT, BATCH, lab_whole(STEPS));
    write_lowest();
    for (int kind = TANH; kind < KINDS; kind++) judge(kind, LAYER), judge(kind, RMS);
    return lab_end();
}
