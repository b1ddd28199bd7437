/* Do norms need gamma and beta? RMSNorm and LayerNorm with them and without, and two forms of
 * LayerNorm from the paper that asked: in a network of digits, and in a small transformer. */
#include "lab.h"
#include <math.h>

enum { WIDTH, EPOCHS, DIM, LAYERS, STEPS, TRANSFORMER_SEEDS };
static lab_size sizes[] = {
    [WIDTH] = {"width", "features of the network's two hidden layers", .normal = 64, .quick = 32},
    [EPOCHS] = {"epochs", "passes of the network over its data", .normal = 20, .quick = 2},
    [DIM] = {"dim", "features of the transformer", .normal = 32, .quick = 16},
    [LAYERS] = {"layers", "blocks of the transformer", .normal = 2, .quick = 1},
    [STEPS] = {"steps", "of the transformer, of 8 images each", .normal = 400, .quick = 10},
    [TRANSFORMER_SEEDS] = {"transformer-seeds", "of these", .normal = 5, .quick = 2},
    {0}};

static const lab_experiment parameter_free = {
    .id = "parameter_free",
    .source = "document 000; Xu et al. 2019",
    .claim = "removing the learnable parameters of RMSNorm and LayerNorm does no harm",
    .method =
        "Two tasks: 64-width-width-10 with a norm after each hidden layer says which digit an\n"
        "image shows, and a pre-norm transformer says each pixel of it from those before. For\n"
        "every norm that learning rate is taken whose median validation loss is lowest: of\n"
        "0.001 to 0.016 in doublings, and of 0.002 and 0.004 for the transformer. Losses are\n"
        "compared seed by seed (same data, same weights) with those of the norm that has its\n"
        "parameters: RMSNorm for RMSNorm, LayerNorm for all others. AdaNorm and DetachNorm\n"
        "are shown beside; the rule is on the first two alone.\n",
    .rule = "a norm is harmed in a task where the loss without parameters is more than 1 % higher "
            "at the median, and higher in three of four seeds or more; holds if in none of the "
            "four cases, fails if in all",
    .seeds = 15,
    .quick_seeds = 2,
    .sizes = sizes};

/* ---- Norms --------------------------------------------------------------------------------- */

static ng_module *make_plain_layer(int64_t n) { return ng_layer_norm_new(n, .no_affine = true); }
static ng_module *make_plain_rms(int64_t n) { return ng_rms_norm_new(n, .no_affine = true); }
static ng_module *make_ada(int64_t n)
{
    return ng_adaptive_layer_norm_new(n, .form = NG_ADAPTIVE_ADANORM);
}
static ng_module *make_detach(int64_t n) { return ng_detach_norm_new(n); }

enum { RMS, PLAIN_RMS, LAYER, PLAIN_LAYER, ADA, DETACH, NORMS };
static const struct {
    lab_norm norm;
    int against; /* what it is compared with */
} norms[NORMS] = {
    [RMS] = {{"rms", "RMSNorm", ng_norm_rms}, RMS},
    [PLAIN_RMS] = {{"rms_plain", "RMSNorm without gamma", make_plain_rms}, RMS},
    [LAYER] = {{"layer", "LayerNorm", ng_norm_layer}, LAYER},
    [PLAIN_LAYER] = {{"layer_plain", "LayerNorm without gamma and beta", make_plain_layer}, LAYER},
    [ADA] = {{"ada", "AdaNorm", make_ada}, LAYER},
    [DETACH] = {{"detach", "DetachNorm", make_detach}, LAYER}};

/* ---- Two tasks ----------------------------------------------------------------------------- */

/* Trains from a seed at a learning rate; gives the validation loss at the end. */
typedef double task_run(const lab_norm *norm, double lr, uint64_t seed);

static double learn_digits(const lab_norm *norm, double lr, uint64_t seed)
{
    ng_dataset *train, *validate;
    lab_digits(seed, 0, &train, &validate);
    ng_module *net = lab_network(norm, lab_whole(WIDTH), 2, seed);
    ng_optimizer *adam = ng_adam_new(net, .lr = lr);
    ng_tape *tape = ng_tape_new();
    for (int epoch = 0; epoch < lab_whole(EPOCHS) && lab_goes_on(); epoch++)
        lab_train_epoch(net, adam, tape, train, 64, (uint64_t)epoch);
    const double loss = lab_evaluate(net, tape, validate).loss;
    ng_tape_free(tape), ng_optimizer_free(adam), ng_module_free(net);
    ng_dataset_free(train), ng_dataset_free(validate);
    return loss;
}

/* Pixels are 0 to 16 of 16; the transformer reads the first 63 and says the last 63. */
enum { GREYS = 17, SEEN = 63, IMAGES = 8 };

static ng_tensor *pixel_loss(ng_module *net, ng_tape *tape, ng_tensor *x)
{
    ng_tensor *pixels = ng_cast(tape, ng_mul_scalar(tape, x, GREYS - 1), NG_I64);
    const int64_t *pixel = ng_data_i64(pixels), images = ng_dim(x, 0);
    ng_tensor *seen = ng_result(tape, NG_I64, NG_SHAPE(images, SEEN));
    ng_tensor *next = ng_result(tape, NG_I64, NG_SHAPE(images, SEEN));
    if (!lab_goes_on()) return NULL;
    for (int64_t i = 0; i < images * SEEN; i++) {
        ng_data_i64(seen)[i] = pixel[i + i / SEEN];
        ng_data_i64(next)[i] = pixel[i + i / SEEN + 1];
    }
    return ng_cross_entropy(tape, ng_forward(net, tape, seen), next);
}

static double learn_pixels(const lab_norm *norm, double lr, uint64_t seed)
{
    ng_dataset *train, *validate;
    ng_batch b;
    lab_digits(seed, 0, &train, &validate);
    ng_module *net = ng_transformer_new(GREYS, .dim = lab_whole(DIM), .heads = 4, .length = SEEN,
                                        .layers = lab_whole(LAYERS), .norm = norm->make);
    ng_module_init(net, seed);
    ng_optimizer *adam = ng_adam_new(net, .lr = lr);
    ng_tape *tape = ng_tape_new();
    for (int step = 0, epoch = 0, i = 0; step < lab_whole(STEPS) && lab_goes_on(); step++, i++) {
        if (!ng_dataset_batch(train, tape, i, IMAGES, &b, .drop_last = true)) {
            ng_dataset_shuffle(train, (uint64_t)++epoch);
            ng_dataset_batch(train, tape, i = 0, IMAGES, &b);
        }
        if (ng_backward(tape, pixel_loss(net, tape, b.x)) || ng_optimizer_step(adam)) break;
        ng_tape_reset(tape);
    }
    double sum = 0;
    ng_eval(net), ng_tape_set_recording(tape, false);
    for (int i = 0; ng_dataset_batch(validate, tape, i, 60, &b); i++) {
        sum += ng_item(pixel_loss(net, tape, b.x)) * (double)b.size;
        ng_tape_reset(tape);
    }
    const double loss = sum / (double)ng_dataset_count(validate);
    ng_tape_free(tape), ng_optimizer_free(adam), ng_module_free(net);
    ng_dataset_free(train), ng_dataset_free(validate);
    return loss;
}

enum { DIGITS, PIXELS, TASKS, MOST_RATES = 5 };
static const struct {
    const char *name;
    task_run *run;
    double rates[MOST_RATES]; /* up to the first 0 */
    double share;             /* of the program's time */
} tasks[TASKS] = {[DIGITS] = {"digits", learn_digits, {1e-3, 2e-3, 4e-3, 8e-3, 16e-3}, 0.2},
                  [PIXELS] = {"transformer", learn_pixels, {2e-3, 4e-3}, 0.8}};

static int seeds_of(int task)
{
    const bool fewer = task == PIXELS && lab_whole(TRANSFORMER_SEEDS) < lab_seeds();
    return fewer ? lab_whole(TRANSFORMER_SEEDS) : lab_seeds();
}

/* ---- The comparison ------------------------------------------------------------------------- */

/* What one norm reached in a task, at the learning rate whose median loss is lowest. */
typedef struct {
    double rate, median, *loss; /* by seed */
} reached;

static reached best_of_rates(int task, int n)
{
    const int seeds = seeds_of(task);
    reached best = {.median = HUGE_VAL, .loss = lab_numbers(seeds)};
    for (int r = 0; r < MOST_RATES && tasks[task].rates[r] > 0; r++) {
        double *loss = lab_numbers(seeds);
        for (int seed = 0; seed < seeds && lab_goes_on(); seed++) {
            lab_progress((task == PIXELS ? tasks[DIGITS].share : 0) + tasks[task].share * n / NORMS,
                         1, "%s, %s, lr %g", tasks[task].name, norms[n].norm.name,
                         tasks[task].rates[r]);
            loss[seed] = tasks[task].run(&norms[n].norm, tasks[task].rates[r], lab_seed(seed));
        }
        const lab_spread spread = lab_spread_of(loss, seeds);
        lab_row(n, tasks[task].rates[r], spread.median, spread.low, spread.high);
        if (spread.median < best.median)
            best = (reached){tasks[task].rates[r], spread.median, loss};
    }
    return best;
}

/* How much the loss without parameters is higher, in percent of that with, seed by seed. */
typedef struct {
    double median, worse; /* share of the seeds where it is higher at all */
    double *each;
} increase;

static void run_task(int task, increase found[NORMS])
{
    const int seeds = seeds_of(task);
    reached best[NORMS];
    char block[64];
    snprintf(block, sizeof block, "learning rates, %s", tasks[task].name);
    lab_block(block, "norm lr loss loss_low loss_high");
    for (int n = 0; n < NORMS; n++) best[n] = best_of_rates(task, n);

    lab_block(tasks[task].name, "norm lr loss increase increase_low increase_high");
    for (int n = 0; n < NORMS; n++) {
        double *each = found[n].each = lab_numbers(seeds);
        for (int seed = 0; seed < seeds; seed++) {
            each[seed] = 100 * (best[n].loss[seed] / best[norms[n].against].loss[seed] - 1);
            found[n].worse += each[seed] > 0 ? 1.0 / seeds : 0;
        }
        const lab_spread spread = lab_spread_of(each, seeds);
        found[n].median = spread.median;
        lab_row(n, best[n].rate, best[n].median, spread.median, spread.low, spread.high);
    }

    snprintf(block, sizeof block, "seeds, %s", tasks[task].name);
    lab_block(block, "norm increase");
    for (int n = 0; n < NORMS; n++)
        for (int seed = 0; seed < seeds; seed++) lab_row(n, found[n].each[seed]);
}

static bool harmless(increase i) { return !(i.median > 1 && i.worse >= 0.75); }

int main(int argc, char **argv)
{
    lab_begin(argc, argv, &parameter_free);
    lab_data("digits: 64-%d-%d-10, %d epochs; transformer: %d blocks of width %d, %d steps, %d "
             "seeds; adam",
             lab_whole(WIDTH), lab_whole(WIDTH), lab_whole(EPOCHS), lab_whole(LAYERS),
             lab_whole(DIM), lab_whole(STEPS), seeds_of(PIXELS));
    increase digits[NORMS] = {0}, pixels[NORMS] = {0};
    run_task(DIGITS, digits);
    run_task(PIXELS, pixels);
    const bool held[] = {harmless(digits[PLAIN_RMS]), harmless(digits[PLAIN_LAYER]),
                         harmless(pixels[PLAIN_RMS]), harmless(pixels[PLAIN_LAYER])};
    return lab_end(lab_verdict_of(held, 4),
                   "loss without parameters, digits and transformer: RMSNorm %+.1f %% and %+.2f "
                   "%%, LayerNorm %+.1f %% and %+.2f %%; AdaNorm %+.1f %% and %+.2f %%; DetachNorm "
                   "%+.0f %% and %+.0f %%; medians of %d and %d seeds",
                   digits[PLAIN_RMS].median, pixels[PLAIN_RMS].median, digits[PLAIN_LAYER].median,
                   pixels[PLAIN_LAYER].median, digits[ADA].median, pixels[ADA].median,
                   digits[DETACH].median, pixels[DETACH].median, seeds_of(DIGITS),
                   seeds_of(PIXELS));
}
