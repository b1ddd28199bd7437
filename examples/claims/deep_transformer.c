/* The placement of norms in a transformer of 24 blocks: before the branch, after it, on both sides,
 * and after it with DeepNorm's scales. Gradients at the start, and losses after training. */
#include "lab.h"

enum { WIDTH, LAYERS, STEPS };
enum { CONTEXT = 16, BATCH = 8, MOST_LAYERS = 64, LOOKS = 15 };
static lab_size sizes[] = {
    [WIDTH] = {"width", "features", .normal = 16},
    [LAYERS] = {"layers", "blocks", .normal = 24, .quick = 6, .most = MOST_LAYERS},
    [STEPS] = {"steps", "of Adam", .normal = 250, .quick = 20},
    {0}};

static const lab_experiment experiment = {
    .id = "deep_transformer",
    .source = "Xiong et al. 2020; Ding et al. 2021; Wang et al. 2022; document 003",
    .claim =
        "in a transformer of many layers post-norm is unstable and pre-norm is easier to train; "
        "DeepNorm and sandwich norms also make deep transformers trainable",
    .method =
        "Transformers of 24 blocks, 16 features and 2 heads learn the characters of Newton's\n"
        "Opticks in 250 steps of Adam with 25 steps of warm-up, in batches of 8, each kind at\n"
        "its own best rate. Compared: the validation loss from the same seed. In addition, the\n"
        "size of the gradient of each block's second feed-forward weight at the start.\n",
    .rule = "post-norm's loss is over 0.1 nats above pre-norm's; DeepNorm's is below post-norm's; "
            "DeepNorm's and the sandwich's are less than 0.1 nats above pre-norm's",
    .seeds = 9,
    .quick_seeds = 1,
    .sizes = sizes};

enum { PRE, POST, SANDWICH, DEEP, KINDS };
static const struct {
    const char *name;
    ng_norm_placement placement;
} kinds[KINDS] = {[PRE] = {"pre-norm", NG_NORM_PRE},
                  [POST] = {"post-norm", NG_NORM_POST},
                  [SANDWICH] = {"sandwich", NG_NORM_PERI},
                  [DEEP] = {"DeepNorm", NG_NORM_DEEP}};

typedef struct {
    ng_module *net;
    ng_tape *tape;
    ng_dataset *text, *rest;
} run;

static run begin(int kind, uint64_t seed)
{
    run r = {.tape = ng_tape_new()};
    const int vocabulary = lab_text(seed, CONTEXT, 0, &r.text, &r.rest);
    r.net = ng_transformer_new(vocabulary, .dim = lab_whole(WIDTH), .heads = 2,
                               .layers = lab_whole(LAYERS), .length = CONTEXT,
                               .placement = kinds[kind].placement);
    ng_module_init(r.net, seed);
    lab_goes_on();
    return r;
}

static void end(run *r)
{
    ng_tape_free(r->tape), ng_module_free(r->net);
    ng_dataset_free(r->text), ng_dataset_free(r->rest);
    lab_goes_on();
}

static ng_tensor *loss_of(run *r, int batch_index)
{
    ng_batch batch;
    ng_dataset_batch(r->text, r->tape, batch_index, BATCH, &batch);
    return ng_cross_entropy(r->tape, ng_forward(r->net, r->tape, batch.x), batch.y);
}

/* ---- At the start ---- */

/* Sets lengths[l] to the length of the gradient of block l's second feed-forward weight. */
static void gradients_of(int kind, uint64_t seed, double *lengths)
{
    run r = begin(kind, seed);
    ng_tensor *weights[MOST_LAYERS], *gradients[MOST_LAYERS], *loss = loss_of(&r, 0);
    char name[64];
    for (int l = 0; l < lab_whole(LAYERS); l++) {
        snprintf(name, sizeof name, "blocks.%d.feed_forward.out_weight", l);
        weights[l] = ng_module_find(r.net, name);
    }
    ng_gradients(r.tape, &loss, 1, weights, lab_whole(LAYERS), gradients);
    for (int l = 0; l < lab_whole(LAYERS) && lab_goes_on(); l++)
        lengths[l] = ng_item(ng_norm(r.tape, gradients[l]));
    end(&r);
}

static void write_gradients(int kind)
{
    double *of_seed = lab_numbers(lab_whole(LAYERS));
    lab_curves *curves = lab_curves_new("block", "%s, gradients", kinds[kind].name);
    for (int seed = 0; seed < lab_seeds(); seed++) {
        gradients_of(kind, lab_seed(seed), of_seed);
        for (int l = 0; l < lab_whole(LAYERS); l++)
            lab_log(curves, seed, "gradient", l + 1, of_seed[l]);
    }
}

/* ---- Training ---- */

/* Trains and returns the validation loss. Sets the training loss of each of LOOKS parts, unless
 * NULL. */
static double train(int kind, double rate, uint64_t seed, double *looks)
{
    const int steps = lab_whole(STEPS), part = steps < LOOKS ? 1 : steps / LOOKS;
    run r = begin(kind, seed);
    ng_optimizer *adam = ng_adam_new(
        r.net, .lr = rate, .beta2 = 0.98,
        .schedule = {NG_SCHEDULE_LINEAR, .warmup = steps / 10, .steps = steps, .floor = 0.1});
    const int batches = (int)(ng_dataset_count(r.text) / BATCH);
    for (int step = 0; step < steps && lab_goes_on(); step++) {
        if (step % batches == 0) ng_dataset_shuffle(r.text, seed + (uint64_t)step);
        ng_tensor *loss = loss_of(&r, step % batches);
        if (ng_backward(r.tape, loss) || ng_optimizer_step(adam)) break;
        if (looks && step / part < LOOKS) looks[step / part] += ng_item(loss) / part;
        ng_tape_reset(r.tape);
    }
    ng_dataset *few, *others;
    ng_dataset_split(r.rest, 512, seed, &few, &others);
    const double loss = lab_evaluate(r.net, r.tape, few).loss;
    ng_dataset_free(few), ng_dataset_free(others), ng_optimizer_free(adam);
    end(&r);
    return loss;
}

static double tuning_loss(void *context, double rate, uint64_t seed)
{
    return train(*(const int *)context, rate, seed, NULL);
}

static double *losses[KINDS];

static void measure(int kind)
{
    lab_curves *curves = lab_curves_new("step", "%s, training", kinds[kind].name);
    lab_progress(kind, KINDS, "%s, rates", kinds[kind].name);
    const double rate = lab_best_rate(4e-3, tuning_loss, &kind);
    losses[kind] = lab_numbers(lab_seeds());
    for (int seed = 0; seed < lab_seeds(); seed++) {
        lab_progress(kind + (double)seed / lab_seeds(), KINDS, "%s, rate %g, seed %d",
                     kinds[kind].name, rate, seed + 1);
        double looks[LOOKS] = {0};
        losses[kind][seed] = train(kind, rate, lab_seed(seed), looks);
        for (int i = 0; i < LOOKS; i++) {
            const double step = (i + 0.5) * lab_whole(STEPS) / (double)LOOKS;
            lab_log(curves, seed, "loss rate validation", step, looks[i], rate, losses[kind][seed]);
        }
    }
}

static void judge(int here, int there, lab_side side, double threshold)
{
    lab_judge((lab_part){NULL, lab_less(losses[here], losses[there]), .side = side,
                         .threshold = threshold},
              "validation loss of %d blocks, %s less %s, own rates, nats", lab_whole(LAYERS),
              kinds[here].name, kinds[there].name);
}

int main(int argc, char **argv)
{
    lab_begin(argc, argv, &experiment);
    lab_data("Newton's Opticks; %d blocks of %d features, context %d, batches of %d, %d steps of "
             "Adam",
             lab_whole(LAYERS), lab_whole(WIDTH), CONTEXT, BATCH, lab_whole(STEPS));
    for (int kind = 0; kind < KINDS; kind++) write_gradients(kind), measure(kind);
    judge(POST, PRE, LAB_ABOVE, 0.1);
    judge(DEEP, POST, LAB_BELOW, 0);
    judge(DEEP, PRE, LAB_BELOW, 0.1);
    judge(SANDWICH, PRE, LAB_BELOW, 0.1);
    return lab_end();
}
