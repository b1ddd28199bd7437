/* Where the norms of a transformer stand: the last block's gradient by depth, the loss of 24
 * trained blocks, what each of these blocks contributes, and newer placements at equal compute. */
#include "lab.h"

enum { WIDTH, LAYERS, STEPS, DEEPEST, DRAWS, COMPARED, STREAMS };
enum { CONTEXT = 16, BATCH = 8, HELD_OUT = 64, LOOKS = 20, MOST_DEPTHS = 8 };
static option sizes[] = {
    [WIDTH] = {"width", "features, in two heads", .normal = 16},
    [LAYERS] = {"layers", "blocks that are trained", .normal = 24, .quick = 6},
    [STEPS] = {"steps", "of Adam", .normal = 300, .quick = 20},
    [DEEPEST] = {"deepest", "blocks of the deepest network", .normal = 32, .quick = 8, .least = 4,
                 .most = 256},
    [DRAWS] = {"draws", "untrained networks of each depth", .normal = 41, .quick = 2},
    [COMPARED] = {"compared", "blocks in which newer placements are compared", .normal = 12,
                  .quick = 2},
    [STREAMS] = {"streams", "of hyper-connections", .normal = 2, .least = 2},
    {0}};

static const lab_experiment experiment = {
    .id = "placement",
    .source = "document 003; Xiong et al. 2020; Wang et al. 2022; Sun et al. 2025; Kim et al. "
              "2025; Walsh et al. 2025; Xie et al. 2025",
    .claim = "post-norm is unstable in transformers of many layers, and pre-norm is easier to "
             "train, but its last blocks contribute little; Peri-LN, OLMo 2's placement and "
             "hyper-connections end at a lower loss",
    .method =
        "Transformers learn the characters of Newton's Opticks (examples/data/opticks.txt), in "
        "batches of 8 windows of 16. Untrained, 2 to 32 blocks of 32 features: the length of the "
        "gradient of the last feed-forward's second weight, and its fitted slope on logarithmic "
        "axes. Trained, 24 blocks of 16 features, 300 steps of Adam with 30 steps of warm-up, each "
        "kind at its own best rate: the validation loss, and how much it rises when a block is "
        "left out, so that its input is its output: its contribution. DeepNorm is post-norm with a "
        "stronger shortcut; LayerNorm scaling divides the norms of block l by sqrt(l). Newer "
        "placements are compared in 12 blocks, all with LayerNorm, at equal compute: "
        "hyper-connections take fewer steps, by the multiply-adds of their matrix products.",
    .rule =
        "the slope is 0 +- 1/4 with post-norm and -1/2 +- 1/4 with pre-norm; post-norm's loss is "
        "over 0.1 nats above pre-norm's, DeepNorm's below it; the last third of pre-norm's blocks "
        "has less than a third of all contributions, and with LayerNorm scaling more than so; "
        "in 12 blocks the loss is above pre-norm's with post-norm and below it with Peri-LN, "
        "OLMo 2 and hyper-connections",
    .seeds = 11,
    .sizes = sizes};

enum { PRE, POST, DEEP, SCALED, DEPTH_KINDS, PERI = DEPTH_KINDS, OLMO2, HYPER, KINDS };
static const struct {
    const char *name;
    ng_norm_placement placement;
} kinds[KINDS] = {[PRE] = {"pre-norm", NG_NORM_PRE},
                  [POST] = {"post-norm", NG_NORM_POST},
                  [DEEP] = {"DeepNorm", NG_NORM_DEEP},
                  [SCALED] = {"LayerNorm scaling", NG_NORM_SCALED},
                  [PERI] = {"Peri-LN", NG_NORM_PERI},
                  [OLMO2] = {"OLMo 2", NG_NORM_OLMO2},
                  [HYPER] = {"hyper-connections", NG_NORM_HYPER}};

static lab_run begin(int kind, int width, int layers, uint64_t seed)
{
    lab_run r = {.tape = ng_tape_new(), .clips = true};
    const int vocabulary = lab_text(seed, CONTEXT, 0, &r.data, &r.rest);
    r.net = ng_transformer_new(vocabulary, .dim = width, .heads = 2, .layers = layers,
                               .length = CONTEXT, .placement = kinds[kind].placement,
                               .streams = kind == HYPER ? get_whole(STREAMS) : 0);
    ng_module_init(r.net, seed);
    still_works();
    return r;
}

/* ---- At the start ---- */

static double last_gradient(int kind, int depth, uint64_t seed)
{
    char name[64];
    lab_run r = begin(kind, 2 * get_whole(WIDTH), depth, seed);
    snprintf(name, sizeof name, "blocks.%d.feed_forward.out_weight", depth - 1);
    ng_batch batch;
    ng_dataset_batch(r.data, r.tape, 0, BATCH, &batch);
    ng_tensor *loss = ng_cross_entropy(r.tape, ng_forward(r.net, r.tape, batch.x), batch.y);
    const double length =
        ng_item(ng_norm(r.tape, ng_gradient(r.tape, loss, ng_module_find(r.net, name))));
    lab_end_run(&r);
    return length;
}

static void measure_slopes(int kind)
{
    const int draws = get_whole(DRAWS);
    double *slopes = lab_numbers(draws);
    curve_set *curves = new_curves("depth", "%s, gradient", kinds[kind].name);
    for (int seed = 0; seed < draws; seed++) {
        double x[MOST_DEPTHS], y[MOST_DEPTHS];
        int count = 0;
        for (int depth = 2; depth <= get_whole(DEEPEST); depth *= 2) {
            const double gradient = last_gradient(kind, depth, lab_seed(seed));
            x[count] = log(depth), y[count++] = log(gradient);
            log_curves(curves, seed, "gradient", depth, gradient);
        }
        slopes[seed] = lab_slope(x, y, count);
    }
    lab_judge_all(draws, NULL, slopes, lab_near(kind == PRE ? -0.5 : 0, 0.25),
                  "slope of log gradient over log depth, %s", kinds[kind].name);
}

/* ---- Training ---- */

/* The loss of held-out text with all blocks but one, or with all of them if `left_out` is -1. */
static double loss_without(lab_run *r, int left_out)
{
    ng_batch batch;
    const bool was = ng_tape_set_recording(r->tape, false);
    ng_dataset_batch(r->rest, r->tape, 0, HELD_OUT, &batch);
    ng_tensor *x = batch.x;
    for (int i = 0; ng_module_child(r->net, i); i++) {
        ng_module *part = ng_module_child(r->net, i);
        const bool blocks = strcmp(ng_module_child_name(r->net, i), "blocks") == 0;
        for (int k = 0; blocks && k < get_whole(LAYERS); k++)
            if (k != left_out) x = ng_forward(ng_module_child(part, k), r->tape, x);
        if (!blocks) x = ng_forward(part, r->tape, x);
    }
    const double loss = ng_item(ng_cross_entropy(r->tape, x, batch.y));
    ng_tape_set_recording(r->tape, was);
    ng_tape_reset(r->tape);
    return loss;
}

typedef struct {
    int kind, layers, steps;
    double *looks, *rises; /* set to the training loss of each of LOOKS parts, and to each block's
                              contribution, unless NULL */
} training;

/* Trains and returns the validation loss. */
static double train(void *context, double rate, uint64_t seed)
{
    const training *t = context;
    const int steps = t->steps;
    lab_run r = begin(t->kind, get_whole(WIDTH), t->layers, seed);
    r.optimizer =
        ng_adam_new(r.net, .lr = rate, .beta2 = 0.98,
                    .schedule = NG_SCHEDULE(.kind = NG_SCHEDULE_LINEAR, .warmup = steps / 10,
                                            .steps = steps, .floor = 0.1));
    for (int step = 0; step < steps; step++) {
        const double loss = lab_step(&r, BATCH, seed);
        if (t->looks) t->looks[step * LOOKS / steps] += loss * LOOKS / steps;
    }
    ng_dataset *few, *others;
    ng_dataset_split_new(r.rest, 512, seed, &few, &others);
    const double loss = ng_evaluate(r.net, few).loss;
    const double whole = t->rises ? loss_without(&r, -1) : 0;
    for (int i = 0; t->rises && i < t->layers; i++) t->rises[i] = loss_without(&r, i) - whole;
    ng_dataset_free(few), ng_dataset_free(others);
    lab_end_run(&r);
    return loss;
}

/* By seed: the loss, and the last third's share of all contributions. */
static double *losses[KINDS], *shares[KINDS];

static void measure(int kind)
{
    const int layers = get_whole(LAYERS);
    double *rises = lab_numbers(layers);
    curve_set *by_step = new_curves("step", "%s, training", kinds[kind].name);
    curve_set *by_block = new_curves("block", "%s, contributions", kinds[kind].name);
    training t = {kind, layers, get_whole(STEPS), NULL, NULL};
    const double rate = lab_best_rate(4e-3, train, &t);
    losses[kind] = lab_numbers(lab_seeds()), shares[kind] = lab_numbers(lab_seeds());
    for (int seed = 0; seed < lab_seeds(); seed++) {
        double looks[LOOKS] = {0}, all = 0, last = 0;
        t.looks = looks, t.rises = rises;
        losses[kind][seed] = train(&t, rate, lab_seed(seed));
        for (int i = 0; i < LOOKS; i++)
            log_curves(by_step, seed, "loss rate validation",
                       (i + 0.5) * get_whole(STEPS) / (double)LOOKS, looks[i], rate,
                       losses[kind][seed]);
        for (int i = 0; i < layers; i++) {
            log_curves(by_block, seed, "rise", i + 1, rises[i]);
            all += rises[i];
            if (i >= layers - layers / 3) last += rises[i];
        }
        shares[kind][seed] = last / all;
    }
}

/* ---- Newer placements, at equal compute ---- */

/* Multiply-adds of the matrix products of a block, for a position. */
static double cost_of(int kind)
{
    const double width = get_whole(WIDTH), n = get_whole(STREAMS);
    const double branches = 12 * width * width + 2 * CONTEXT * width;
    const double mixing = n * width * (2 * n + n * n) + (2 * n + n * n) * width;
    return kind == HYPER ? branches + 2 * mixing : branches;
}

/* Returns the validation losses by seed. */
static double *compare(int kind)
{
    const double share = cost_of(PRE) / cost_of(kind);
    const int parts = (int)fmax(1, get_whole(STEPS) * share / LOOKS); /* steps of a look */
    training t = {kind, get_whole(COMPARED), LOOKS * parts, NULL, NULL};
    double *scores = lab_numbers(lab_seeds());
    curve_set *by_compute = new_curves("compute", "%s, compared", kinds[kind].name);
    const double rate = lab_best_rate(8e-3, train, &t);
    for (int seed = 0; seed < lab_seeds(); seed++) {
        double looks[LOOKS] = {0};
        t.looks = looks;
        scores[seed] = train(&t, rate, lab_seed(seed));
        for (int i = 0; i < LOOKS; i++)
            log_curves(by_compute, seed, "loss rate steps", 100 * (i + 0.5) / LOOKS, looks[i], rate,
                       t.steps);
    }
    return scores;
}

static void compare_newer(void)
{
    static const int others[] = {POST, PERI, OLMO2, HYPER};
    const double *pre = compare(PRE);
    curve_set *differences = new_curves("place", "less pre-norm");
    for (int i = 0; i < 4; i++) {
        const double *less = lab_less(compare(others[i]), pre);
        for (int seed = 0; seed < lab_seeds(); seed++)
            log_curves(differences, seed, "less pre", i + 1, less[seed], pre[seed]);
        lab_judge(NULL, less, others[i] == POST ? lab_above(0) : lab_below(0),
                  "validation loss of %d blocks at equal compute, %s less pre-norm, nats",
                  get_whole(COMPARED), kinds[others[i]].name);
    }
}

static void judge_loss(int here, int there, lab_range claimed)
{
    lab_judge(NULL, lab_less(losses[here], losses[there]), claimed,
              "validation loss of %d blocks, %s less %s, own rates, nats", get_whole(LAYERS),
              kinds[here].name, kinds[there].name);
}

static void judge_share(int kind, lab_range claimed)
{
    lab_judge(NULL, shares[kind], claimed,
              "share of the last third of the blocks in all contributions, %s", kinds[kind].name);
}

int main(int argc, char **argv)
{
    lab_begin(argc, argv, &experiment);
    lab_data("Newton's Opticks; %d blocks of %d features, context %d, batches of %d, %d steps of "
             "Adam",
             get_whole(LAYERS), get_whole(WIDTH), CONTEXT, BATCH, get_whole(STEPS));
    measure_slopes(PRE), measure_slopes(POST);
    for (int kind = 0; kind < DEPTH_KINDS; kind++) measure(kind);
    judge_loss(POST, PRE, lab_above(0.1));
    judge_loss(DEEP, PRE, lab_below(0));
    judge_share(PRE, lab_below(1.0 / 3));
    judge_share(SCALED, lab_above(1.0 / 3));
    compare_newer();
    return lab_end();
}
