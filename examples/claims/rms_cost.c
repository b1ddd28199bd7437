/* What does RMSNorm save, which leaves the mean alone? Its time against LayerNorm's by width,
 * forward, backward and in a whole training step, beside the accuracy that both reach. The only
 * experiment that measures time: run it on a machine that does nothing else. */
#include "../progress.h"
#include "lab.h"
#include <math.h>

enum { ELEMENTS, REPEATS, STEP_REPEATS, WIDEST, WIDEST_NETWORK, EPOCHS };
static lab_size sizes[] = {
    [ELEMENTS] = {"elements", "of the tensor that is normalized", .normal = 1 << 17},
    [REPEATS] = {"repeats", "of each norm at each width", .normal = 301, .quick = 15},
    [STEP_REPEATS] = {"step-repeats", "of each training step", .normal = 101, .quick = 9},
    [WIDEST] = {"widest", "features of a norm, from 32", .normal = 8192, .quick = 512},
    [WIDEST_NETWORK] = {"widest-network", "features of a network", .normal = 1024, .quick = 128},
    [EPOCHS] = {"epochs", "passes over the data for the accuracy", .normal = 20, .quick = 1},
    {0}};

static const lab_experiment rms_cost = {
    .id = "rms_cost",
    .source = "documents 000, 001, 004; Zhang & Sennrich 2019",
    .claim = "RMSNorm needs fewer computations than LayerNorm and takes 7 to 64 % off the running "
             "time, at the same quality",
    .method =
        "The time of both norms on the same tensor, in rows of 32 to 8192 features, forward\n"
        "and backward, and of a training step of 64-width-width-10 with batches of 64\n"
        "(forward, backward, Adam); one after the other in turns, so that both meet the same\n"
        "machine. What RMSNorm saves is the median over the turns. Then the accuracy of both\n"
        "after training on the digits at width 128.\n",
    .rule = "forward and backward: the saving is above 2 % at three of four widths or more; step: "
            "its median over the widths is 7 % or more; quality: the median accuracy is at most a "
            "point lower. Holds if all four do, fails if none of the three on time does",
    .seeds = 5,
    .quick_seeds = 1,
    .sizes = sizes};

enum { LAYER, RMS, NORMS };
static const lab_norm *const norms[NORMS] = {&lab_layer_norm, &lab_rms_norm};

/* ---- Time ----------------------------------------------------------------------------------- */

/* Seconds of each turn. */
typedef struct {
    double *of[NORMS];
    int turns;
} timing;

static timing timing_new(int turns)
{
    return (timing){{lab_numbers(turns), lab_numbers(turns)}, turns};
}

static double microseconds(const timing *t, int norm, double percent)
{
    return 1e6 * lab_percentile(t->of[norm], t->turns, percent);
}

/* The part of LayerNorm's time that RMSNorm saves, in percent; quartiles show how sure that is. */
static lab_spread saving_of(const timing *t)
{
    double *saving = lab_numbers(t->turns);
    for (int i = 0; i < t->turns; i++) saving[i] = 100 * (1 - t->of[RMS][i] / t->of[LAYER][i]);
    return (lab_spread){t->turns, lab_percentile(saving, t->turns, 50),
                        lab_percentile(saving, t->turns, 25), lab_percentile(saving, t->turns, 75)};
}

/* One norm of x, forward and backward to x and the norm's own parameters. */
static void time_norm(ng_module *norm, ng_tape *tape, ng_tensor *x, ng_tensor *dy, double *forward,
                      double *backward)
{
    ng_tensor *inputs[3] = {x}, *gradients[3];
    ng_named_tensor parameter;
    int count = 1;
    while (ng_module_parameter(norm, count - 1, &parameter)) inputs[count++] = parameter.tensor;
    const double began = progress_clock();
    ng_tensor *y = ng_forward(norm, tape, x);
    const double middle = progress_clock();
    ng_gradients(tape, &y, 1, inputs, count, gradients, .cotangents = &dy);
    *backward = progress_clock() - middle;
    *forward = middle - began;
    ng_tape_reset(tape);
}

static void time_norms(int64_t width, timing *forward, timing *backward)
{
    enum { WARM_UP = 5 };
    ng_rng rng = ng_rng_seeded(lab_seed(0));
    const ng_shape shape = NG_SHAPE(lab_whole(ELEMENTS) / width, width);
    ng_tensor *x = ng_require_grad(ng_normal_new(NG_F32, shape, 0, 1, &rng));
    ng_tensor *dy = ng_normal_new(NG_F32, shape, 0, 1, &rng);
    ng_module *modules[NORMS];
    ng_tape *tape = ng_tape_new();
    for (int k = 0; k < NORMS; k++) modules[k] = norms[k]->make(width);
    for (int turn = -WARM_UP; turn < forward->turns && lab_goes_on(); turn++) {
        for (int i = 0; i < NORMS; i++) {
            const int k = turn % 2 ? i : NORMS - 1 - i; /* each is first half of the time */
            const int at = turn < 0 ? 0 : turn;
            time_norm(modules[k], tape, x, dy, &forward->of[k][at], &backward->of[k][at]);
        }
    }
    for (int k = 0; k < NORMS; k++) ng_module_free(modules[k]);
    ng_tape_free(tape), ng_tensor_free(x), ng_tensor_free(dy);
}

static double time_step(ng_module *net, ng_optimizer *adam, ng_tape *tape, ng_dataset *data)
{
    ng_batch b;
    ng_dataset_batch(data, tape, 0, 64, &b);
    const double began = progress_clock();
    ng_tensor *loss = ng_cross_entropy(tape, ng_forward(net, tape, b.x), b.y);
    if (ng_backward(tape, loss) || ng_optimizer_step(adam)) return (double)NAN;
    const double seconds = progress_clock() - began;
    ng_tape_reset(tape);
    return seconds;
}

static void time_steps(int64_t width, timing *step)
{
    enum { WARM_UP = 3 };
    ng_dataset *train, *validate;
    lab_digits(lab_seed(0), 0, &train, &validate);
    ng_module *nets[NORMS];
    ng_optimizer *adams[NORMS];
    ng_tape *tapes[NORMS];
    for (int k = 0; k < NORMS; k++) {
        nets[k] = lab_network(norms[k], width, 2, lab_seed(0));
        adams[k] = ng_adam_new(nets[k]);
        tapes[k] = ng_tape_new();
    }
    for (int turn = -WARM_UP; turn < step->turns && lab_goes_on(); turn++) {
        for (int i = 0; i < NORMS; i++) {
            const int k = turn % 2 ? i : NORMS - 1 - i;
            step->of[k][turn < 0 ? 0 : turn] = time_step(nets[k], adams[k], tapes[k], train);
        }
    }
    for (int k = 0; k < NORMS; k++)
        ng_tape_free(tapes[k]), ng_optimizer_free(adams[k]), ng_module_free(nets[k]);
    ng_dataset_free(train), ng_dataset_free(validate);
}

/* ---- Quality -------------------------------------------------------------------------------- */

static double accuracy_of(const lab_norm *norm, uint64_t seed)
{
    ng_dataset *train, *validate;
    lab_digits(seed, 0, &train, &validate);
    ng_module *net = lab_network(norm, 128, 2, seed);
    ng_optimizer *adam = ng_adam_new(net);
    ng_tape *tape = ng_tape_new();
    for (int epoch = 0; epoch < lab_whole(EPOCHS) && lab_goes_on(); epoch++)
        lab_train_epoch(net, adam, tape, train, 64, (uint64_t)epoch);
    const double accuracy = 100 * lab_evaluate(net, tape, validate).accuracy;
    ng_tape_free(tape), ng_optimizer_free(adam), ng_module_free(net);
    ng_dataset_free(train), ng_dataset_free(validate);
    return accuracy;
}

/* ---- All of it ------------------------------------------------------------------------------ */

enum { MOST_WIDTHS = 32 };

/* Savings by width: how many are above 2 %, and their median. */
typedef struct {
    double each[MOST_WIDTHS];
    int count, above;
} savings;

static void note(savings *s, lab_spread saving)
{
    s->each[s->count++] = saving.median;
    s->above += saving.median > 2;
}

static double median_of(const savings *s) { return lab_percentile(s->each, s->count, 50); }

/* A row: width, then both times with their quartiles, then the saving with its own. */
static void put(int64_t width, const timing *t, savings *s)
{
    const lab_spread saving = saving_of(t);
    lab_row((double)width, microseconds(t, LAYER, 50), microseconds(t, LAYER, 25),
            microseconds(t, LAYER, 75), microseconds(t, RMS, 50), microseconds(t, RMS, 25),
            microseconds(t, RMS, 75), saving.median, saving.low, saving.high);
    note(s, saving);
}

int main(int argc, char **argv)
{
    static const char columns[] = "width layer_us layer_low layer_high rms_us rms_low rms_high "
                                  "saving saving_low saving_high";
    lab_begin(argc, argv, &rms_cost);
    lab_data("tensors of %d numbers, %d turns; steps of 64-width-width-10, batch 64, %d turns; "
             "accuracy at width 128",
             lab_whole(ELEMENTS), lab_whole(REPEATS), lab_whole(STEP_REPEATS));

    savings forward = {0}, backward = {0}, step = {0};
    timing ahead[MOST_WIDTHS], back[MOST_WIDTHS];
    int widths = 0;
    for (int64_t width = 32; width <= lab_whole(WIDEST); width *= 2, widths++) {
        lab_progress(0.02 * widths, 1, "norms of width %d", (int)width);
        ahead[widths] = timing_new(lab_whole(REPEATS)),
        back[widths] = timing_new(lab_whole(REPEATS));
        time_norms(width, &ahead[widths], &back[widths]);
    }
    lab_block("forward", columns);
    for (int i = 0; i < widths; i++) put(32 << i, &ahead[i], &forward);
    lab_block("backward", columns);
    for (int i = 0; i < widths; i++) put(32 << i, &back[i], &backward);
    lab_block("step", columns);
    for (int64_t width = 32; width <= lab_whole(WIDEST_NETWORK); width *= 2) {
        lab_progress(0.3 + 0.05 * step.count, 1, "steps of width %d", (int)width);
        timing t = timing_new(lab_whole(STEP_REPEATS));
        time_steps(width, &t);
        put(width, &t, &step);
    }

    double *accuracy[NORMS] = {lab_numbers(lab_seeds()), lab_numbers(lab_seeds())};
    lab_block("accuracy", "norm accuracy accuracy_low accuracy_high");
    for (int k = 0; k < NORMS; k++) {
        for (int seed = 0; seed < lab_seeds() && lab_goes_on(); seed++) {
            lab_progress(0.6 + 0.2 * k, 1, "accuracy, %s", norms[k]->name);
            accuracy[k][seed] = accuracy_of(norms[k], lab_seed(seed));
        }
        const lab_spread spread = lab_spread_of(accuracy[k], lab_seeds());
        lab_row(k, spread.median, spread.low, spread.high);
    }
    const double layer = lab_spread_of(accuracy[LAYER], lab_seeds()).median;
    const double rms = lab_spread_of(accuracy[RMS], lab_seeds()).median;

    const bool faster[] = {4 * forward.above >= 3 * forward.count,
                           4 * backward.above >= 3 * backward.count, median_of(&step) >= 7};
    lab_verdict verdict = lab_verdict_of(faster, 3);
    if (verdict == LAB_HOLDS && rms < layer - 1) verdict = LAB_MIXED;
    return lab_end(verdict,
                   "RMSNorm saves %.0f %% forward (%.0f to %.0f by width), %.0f %% backward (%.0f "
                   "to %.0f), %.1f %% of a training step (%.1f to %.1f); accuracy %.1f %% against "
                   "LayerNorm's %.1f %%; medians of %d turns and %d seeds",
                   median_of(&forward), lab_percentile(forward.each, forward.count, 0),
                   lab_percentile(forward.each, forward.count, 100), median_of(&backward),
                   lab_percentile(backward.each, backward.count, 0),
                   lab_percentile(backward.each, backward.count, 100), median_of(&step),
                   lab_percentile(step.each, step.count, 0),
                   lab_percentile(step.each, step.count, 100), rms, layer, lab_whole(REPEATS),
                   lab_seeds());
}
