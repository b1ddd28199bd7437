/* Pre-norm and post-norm: the gradient of the last block at the start by depth, and training with
 * and without a warm-up of the learning rate. */
#include "lab.h"

enum { WIDTH, LAYERS, STEPS, DEEPEST, DRAWS };
enum { PRE, POST, PLACEMENTS, REPORTS = 24, CONTEXT = 32, BATCH = 8, MOST_DEPTHS = 16 };
static lab_size sizes[] = {
    [WIDTH] = {"width", "features, in heads of 16", .normal = 32, .quick = 16, .multiple = 16},
    [LAYERS] = {"layers", "blocks of the networks that are trained", .normal = 6, .quick = 3},
    [STEPS] = {"steps", "training steps, a multiple of 24", .normal = 480, .quick = 24,
               .multiple = REPORTS},
    [DEEPEST] = {"deepest", "blocks of the deepest network", .normal = 32, .quick = 8, .least = 4},
    [DRAWS] = {"draws", "untrained networks of each depth", .normal = 25, .quick = 2},
    {0}};

static const lab_experiment experiment = {
    .id = "placement",
    .source = "Xiong et al. 2020; document 003",
    .claim =
        "with post-norm the last layer's gradient at the start does not depend on depth, with "
        "pre-norm it falls as 1/sqrt(depth); so post-norm needs a warm-up, and pre-norm without "
        "one does as well as post-norm with it",
    .method =
        "Transformers of 2 to 32 blocks, one batch of text, untrained: the Frobenius norm of the\n"
        "gradient of the last feed-forward's second weight, and its fitted slope on logarithmic\n"
        "axes, for each draw of weights. Then networks of 6 blocks are trained by Adam, with a\n"
        "linear warm-up over the first third of the steps and without one. Each has its own\n"
        "learning rate, with a lower validation loss than half and twice the rate, in the median\n"
        "over three seeds that are not scored. The text: Newton's Opticks, character by\n"
        "character (examples/data/opticks.txt), one window of eight for validation.\n",
    .rule =
        "the slope of log gradient over log depth is 0 +- 1/4 with post-norm and -1/2 +- 1/4 with "
        "pre-norm; from the same seed (same weights, same text) post-norm's validation loss is "
        "over 0.1 nats higher without warm-up than with it, and pre-norm's without warm-up is "
        "less than 0.05 above post-norm's with it",
    .seeds = 11,
    .quick_seeds = 1,
    .sizes = sizes};

static const char *const names[] = {[PRE] = "pre-norm", [POST] = "post-norm"};

static ng_module *make_network(int vocabulary, int layers, int placement, uint64_t seed)
{
    ng_module *net = ng_transformer_new(
        vocabulary, .dim = lab_whole(WIDTH), .heads = lab_whole(WIDTH) / 16, .layers = layers,
        .length = CONTEXT, .placement = placement == PRE ? NG_NORM_PRE : NG_NORM_POST);
    ng_module_init(net, seed);
    lab_goes_on();
    return net;
}

/* ---- At the start ------------------------------------------------------------------------- */

static double norm_of(const ng_tensor *x)
{
    double sum = 0;
    for (int64_t i = 0; i < ng_size(x); i++) sum += ng_get(x, i) * ng_get(x, i);
    return sqrt(sum);
}

static double last_gradient(int depth, int placement, uint64_t seed)
{
    ng_dataset *text, *rest;
    ng_batch batch;
    char weight[64];
    const int vocabulary = lab_text(seed, CONTEXT, 0, &text, &rest);
    ng_module *net = make_network(vocabulary, depth, placement, seed);
    ng_tape *tape = ng_tape_new();
    ng_dataset_batch(text, tape, 0, BATCH, &batch);
    ng_tensor *loss = ng_cross_entropy(tape, ng_forward(net, tape, batch.x), batch.y);
    const bool done = ng_backward(tape, loss) == NG_OK;
    snprintf(weight, sizeof weight, "blocks.%d.feed_forward.out_weight", depth - 1);
    const double norm = done ? norm_of(ng_grad(ng_module_find(net, weight))) : (double)NAN;
    ng_tape_free(tape), ng_module_free(net);
    ng_dataset_free(text), ng_dataset_free(rest);
    lab_goes_on();
    return norm;
}

/* Returns the slopes of log gradient over log depth by draw, and writes the block of gradients. */
static const double *slopes_of_gradient(int placement)
{
    double log_depth[MOST_DEPTHS], *log_gradient[MOST_DEPTHS];
    int depths = 0;
    const int draws = lab_whole(DRAWS);
    double *slopes = lab_numbers(draws);
    lab_curves *curves = lab_curves_new("depth", "gradient %s", names[placement]);
    for (int depth = 2; depth <= lab_whole(DEEPEST) && depths < MOST_DEPTHS; depth *= 2) {
        log_depth[depths] = log(depth);
        log_gradient[depths] = lab_numbers(draws);
        for (int s = 0; s < draws; s++) {
            const double gradient = last_gradient(depth, placement, lab_seed(s));
            log_gradient[depths][s] = log(gradient);
            lab_log(curves, s, "gradient", depth, gradient);
        }
        depths++;
    }
    for (int s = 0; s < draws; s++) {
        double of_seed[MOST_DEPTHS];
        for (int i = 0; i < depths; i++) of_seed[i] = log_gradient[i][s];
        slopes[s] = lab_fit(log_depth, of_seed, depths).slope;
    }
    return slopes;
}

/* ---- Training ----------------------------------------------------------------------------- */

/* One kind of training at its own rate: the validation loss by seed. */
typedef struct {
    int placement;
    bool warm;
    double *validation;
} kind;
static kind kinds[PLACEMENTS][2]; /* [1]: with warm-up */

/* Trains. Returns the validation loss and sets the training loss of each part, unless NULL. */
static double train(const kind *k, double rate, uint64_t seed, double parts[REPORTS])
{
    const int steps = lab_whole(STEPS), part = steps / REPORTS;
    const int warmup = k->warm ? steps / 3 : 0;
    ng_dataset *text, *rest;
    ng_batch batch;
    const int vocabulary = lab_text(seed, CONTEXT, 0, &text, &rest);
    ng_module *net = make_network(vocabulary, lab_whole(LAYERS), k->placement, seed);
    ng_tape *tape = ng_tape_new();
    ng_optimizer *adam = ng_adam_new(
        net, .lr = rate, .beta2 = 0.98,
        .schedule = {NG_SCHEDULE_LINEAR, .warmup = warmup, .steps = steps - warmup, .floor = 0.1});
    const int batches = (int)(ng_dataset_count(text) / BATCH);
    for (int step = 0; step < part * REPORTS && lab_goes_on(); step++) {
        if (step % batches == 0) ng_dataset_shuffle(text, (uint64_t)step);
        ng_dataset_batch(text, tape, step % batches, BATCH, &batch);
        ng_tensor *loss = ng_cross_entropy(tape, ng_forward(net, tape, batch.x), batch.y);
        if (ng_backward(tape, loss) || ng_optimizer_step(adam)) break;
        if (parts) parts[step / part] += ng_item(loss) / part;
        ng_tape_reset(tape);
    }
    const double validation = lab_evaluate(net, tape, rest).loss;
    ng_tape_free(tape), ng_optimizer_free(adam), ng_module_free(net);
    ng_dataset_free(text), ng_dataset_free(rest);
    return validation;
}

static double tuning_loss(void *context, double rate, uint64_t seed)
{
    return train(context, rate, seed, NULL);
}

static void train_all(int placement, bool warm)
{
    kind *k = &kinds[placement][warm];
    k->placement = placement, k->warm = warm;
    lab_progress(placement * 2 + warm, 2 * PLACEMENTS, "%s, %s warm-up", names[placement],
                 warm ? "with" : "no");
    lab_curves *curves =
        lab_curves_new("step", "training %s %s", names[placement], warm ? "warm" : "cold");
    const double rate = lab_best_rate(2e-3, tuning_loss, k);
    k->validation = lab_numbers(lab_seeds());
    for (int s = 0; s < lab_seeds(); s++) {
        double parts[REPORTS] = {0};
        k->validation[s] = train(k, rate, lab_seed(s), parts);
        for (int part = 0; part < REPORTS; part++)
            lab_log(curves, s, "loss rate validation", (part + 1) * (lab_whole(STEPS) / REPORTS),
                    parts[part], rate, k->validation[s]);
    }
}

/* ---- Verdicts ----------------------------------------------------------------------------- */

static void judge_slope(int placement, const double *slopes)
{
    lab_judge((lab_part){NULL, slopes, .count = lab_whole(DRAWS), .side = LAB_WITHIN,
                         .threshold = 0.25, .around = placement == PRE ? -0.5 : 0},
              "slope of log gradient over log depth, %s", names[placement]);
}

static void judge_loss(const kind *here, const kind *there, lab_side side, double threshold)
{
    lab_judge((lab_part){NULL, lab_less(here->validation, there->validation), .side = side,
                         .threshold = threshold},
              "validation loss, %s without warm-up less %s with it, own rates, nats",
              names[here->placement], names[there->placement]);
}

int main(int argc, char **argv)
{
    lab_begin(argc, argv, &experiment);
    lab_data("Newton's Opticks; %d blocks trained, width %d, context %d, batch %d, %d steps of "
             "Adam",
             lab_whole(LAYERS), lab_whole(WIDTH), CONTEXT, BATCH, lab_whole(STEPS));
    const double *slopes[PLACEMENTS];
    for (int p = 0; p < PLACEMENTS; p++) {
        slopes[p] = slopes_of_gradient(p);
        judge_slope(p, slopes[p]);
        for (int warm = 0; warm < 2; warm++) train_all(p, warm);
    }
    lab_block("slopes", "pre_norm post_norm");
    lab_row(lab_percentile(slopes[PRE], lab_whole(DRAWS), 50),
            lab_percentile(slopes[POST], lab_whole(DRAWS), 50));
    judge_loss(&kinds[POST][false], &kinds[POST][true], LAB_ABOVE, 0.1);
    judge_loss(&kinds[PRE][false], &kinds[POST][true], LAB_BELOW, 0.05);
    return lab_end();
}
