/* Pre-norm against post-norm: how large the last block's gradient is at the start, by depth, and
 * whether training needs a warm-up of the learning rate. */
#include "lab.h"
#include <math.h>

enum { WIDTH, LAYERS, STEPS, DEEPEST, DRAWS };
static lab_size sizes[] = {
    [WIDTH] = {"width", "features, in heads of 16", .normal = 32, .quick = 16},
    [LAYERS] = {"layers", "blocks of the networks that are trained", .normal = 6, .quick = 3},
    [STEPS] = {"steps", "of training, a multiple of 24", .normal = 480, .quick = 24},
    [DEEPEST] = {"deepest", "blocks of the deepest network", .normal = 32, .quick = 8},
    [DRAWS] = {"draws", "networks of each depth", .normal = 10, .quick = 2},
    {0}};

static const lab_experiment experiment = {
    .id = "placement",
    .source = "Xiong et al. 2020; document 003",
    .claim = "With post-norm the last layer's gradient at the start is as large at any depth, with "
             "pre-norm it falls as 1/sqrt(depth); so post-norm needs a warm-up, and pre-norm "
             "without one does as well as post-norm with it",
    .method =
        "Transformers of 2 to 32 blocks, one batch of text, no training: the Frobenius norm of\n"
        "the loss's gradient to the last feed-forward's second weight, and the line through it\n"
        "on log axes. Then networks of 6 blocks are trained by Adam at four learning rates, with\n"
        "a linear warm-up over the first third of the steps and without one. Each is judged at\n"
        "the rate where it validates best; the curves drawn are at the rate best with warm-up.\n"
        "The text: the characters of include/normgrad/*.h, one window of eight to validate.\n",
    .rule =
        "holds if the slope of log gradient over log depth is 0 +- 1/4 with post-norm and -1/2 +- "
        "1/4 with pre-norm, post-norm's validation loss is worse without warm-up than with it by "
        "over 0.1 nats, and pre-norm's without is at most 0.05 above post-norm's with it (medians, "
        "each at its best rate); mixed if some of these four hold",
    .seeds = 5,
    .quick_seeds = 1,
    .sizes = sizes};

static const double rates[] = {1e-3, 2e-3, 4e-3, 8e-3};
enum { PRE, POST, PLACEMENTS, RATES = 4, REPORTS = 24, CONTEXT = 32, BATCH = 8, MOST_DEPTHS = 16 };
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

/* The slope of log gradient over log depth; a block of the data. */
static double slope_of_gradient(int placement)
{
    double log_depth[MOST_DEPTHS], log_gradient[MOST_DEPTHS];
    int depths = 0;
    double *gradients = lab_numbers(lab_whole(DRAWS));
    char block[64];
    snprintf(block, sizeof block, "gradient %s", names[placement]);
    lab_block(block, "depth gradient gradient_low gradient_high draws");
    for (int depth = 2; depth <= lab_whole(DEEPEST) && depths < MOST_DEPTHS; depth *= 2) {
        for (int i = 0; i < lab_whole(DRAWS); i++)
            gradients[i] = last_gradient(depth, placement, lab_seed(i));
        const lab_spread g = lab_spread_of(gradients, lab_whole(DRAWS));
        lab_row(depth, g.median, g.low, g.high, g.count);
        log_depth[depths] = log(depth);
        log_gradient[depths++] = log(g.median);
    }
    return lab_fit(log_depth, log_gradient, depths).slope;
}

/* ---- Training ----------------------------------------------------------------------------- */

/* Over the seeds: the training loss in each of REPORTS equal parts, and the validation loss. */
typedef struct {
    double *loss[REPORTS], *validation;
} run;
static run runs[PLACEMENTS][2][RATES]; /* [1]: with warm-up */

static void train(run *r, int s, int placement, double rate, bool warm)
{
    const int steps = lab_whole(STEPS), part = steps / REPORTS;
    const int warmup = warm ? steps / 3 : 0;
    ng_dataset *text, *rest;
    ng_batch batch;
    const int vocabulary = lab_text(lab_seed(s), CONTEXT, 0, &text, &rest);
    ng_module *net = make_network(vocabulary, lab_whole(LAYERS), placement, lab_seed(s));
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
        r->loss[step / part][s] += ng_item(loss) / part;
        ng_tape_reset(tape);
    }
    r->validation[s] = lab_evaluate(net, tape, rest).loss;
    ng_tape_free(tape), ng_optimizer_free(adam), ng_module_free(net);
    ng_dataset_free(text), ng_dataset_free(rest);
}

static void train_all(int placement)
{
    const int total = PLACEMENTS * 2 * RATES * lab_seeds();
    for (int warm = 0; warm < 2; warm++)
        for (int i = 0; i < RATES; i++) {
            run *r = &runs[placement][warm][i];
            r->validation = lab_numbers(lab_seeds());
            for (int k = 0; k < REPORTS; k++) r->loss[k] = lab_numbers(lab_seeds());
            for (int s = 0; s < lab_seeds(); s++) {
                lab_progress(((placement * 2 + warm) * RATES + i) * lab_seeds() + s, total,
                             "%s, %s warm-up, lr %g, seed %d", names[placement],
                             warm ? "with" : "no", rates[i], s);
                train(r, s, placement, rates[i], warm);
            }
        }
}

static lab_spread validation(const run *r) { return lab_spread_of(r->validation, lab_seeds()); }

/* The rate at which the median validation loss is lowest. */
static int best_rate(int placement, bool warm)
{
    int best = 0;
    for (int i = 1; i < RATES; i++)
        if (validation(&runs[placement][warm][i]).median <
            validation(&runs[placement][warm][best]).median)
            best = i;
    return best;
}

static void write_training(int placement, int rate)
{
    for (int warm = 0; warm < 2; warm++) {
        char block[64];
        snprintf(block, sizeof block, "training %s %s", names[placement], warm ? "warm" : "cold");
        lab_block(block, "step loss loss_low loss_high rate seeds");
        for (int k = 0; k < REPORTS; k++) {
            const lab_spread l = lab_spread_of(runs[placement][warm][rate].loss[k], lab_seeds());
            lab_row((k + 1) * (lab_whole(STEPS) / REPORTS), l.median, l.low, l.high, rates[rate],
                    l.count);
        }
        snprintf(block, sizeof block, "rates %s %s", names[placement], warm ? "warm" : "cold");
        lab_block(block, "rate validation validation_low validation_high seeds");
        for (int i = 0; i < RATES; i++) {
            const lab_spread v = validation(&runs[placement][warm][i]);
            lab_row(rates[i], v.median, v.low, v.high, v.count);
        }
    }
}

int main(int argc, char **argv)
{
    lab_begin(argc, argv, &experiment);
    lab_data("%d blocks trained, width %d, context %d, batch %d, %d steps of Adam",
             lab_whole(LAYERS), lab_whole(WIDTH), CONTEXT, BATCH, lab_whole(STEPS));
    double slope[PLACEMENTS], best[PLACEMENTS][2]; /* validation loss; [1]: with warm-up */
    int rate[PLACEMENTS][2];
    for (int p = 0; p < PLACEMENTS; p++) {
        slope[p] = slope_of_gradient(p);
        train_all(p);
        for (int warm = 0; warm < 2; warm++) {
            rate[p][warm] = best_rate(p, warm);
            best[p][warm] = validation(&runs[p][warm][rate[p][warm]]).median;
        }
        write_training(p, rate[p][true]);
    }
    lab_block("slopes", "pre_norm post_norm");
    lab_row(slope[PRE], slope[POST]);
    const bool held[] = {fabs(slope[POST]) < 0.25, fabs(slope[PRE] + 0.5) < 0.25,
                         best[POST][false] > best[POST][true] + 0.1,
                         best[PRE][false] < best[POST][true] + 0.05};
    return lab_end(
        lab_verdict_of(held, 4),
        "slope %.2f post-norm, %.2f pre-norm; validation loss with and without warm-up, each at "
        "its best rate: %.2f (lr %g) and %.2f (%g) post-norm, %.2f (%g) and %.2f (%g) pre-norm; "
        "with the rate kept: %.2f and %.2f post-norm, %.2f and %.2f pre-norm; medians of %d seeds",
        slope[POST], slope[PRE], best[POST][true], rates[rate[POST][true]], best[POST][false],
        rates[rate[POST][false]], best[PRE][true], rates[rate[PRE][true]], best[PRE][false],
        rates[rate[PRE][false]], best[POST][true],
        validation(&runs[POST][false][rate[POST][true]]).median, best[PRE][true],
        validation(&runs[PRE][false][rate[PRE][true]]).median, lab_seeds());
}
