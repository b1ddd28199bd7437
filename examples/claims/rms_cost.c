/* The time that RMSNorm saves over LayerNorm by width: forward, backward and in a training step,
 * and the accuracy of both. It measures processor time: run it on an idle machine. */
#include "lab.h"
#include <time.h>

enum { ELEMENTS, TURNS, STEP_TURNS, WIDEST, WIDEST_NETWORK, EPOCHS };
enum { FORWARD, BACKWARD, STEP, KINDS, MOST_WIDTHS = 32, LEAST_WIDTH = 32 };
static lab_size sizes[] = {
    [ELEMENTS] = {"elements", "elements of the normalized tensor", .normal = 1 << 17},
    [TURNS] = {"turns", "turns of each norm at each width, in a round", .normal = 31, .quick = 15},
    [STEP_TURNS] = {"step-turns", "turns of each training step, in a round", .normal = 11,
                    .quick = 9},
    [WIDEST] = {"widest", "most features of a norm, at least 32", .normal = 8192, .quick = 512,
                .least = LEAST_WIDTH},
    [WIDEST_NETWORK] = {"widest-network", "most features of a network", .normal = 1024,
                        .quick = 128, .least = LEAST_WIDTH},
    [EPOCHS] = {"epochs", "passes over the data for the accuracy", .normal = 20, .quick = 1},
    {0}};

static const lab_experiment rms_cost = {
    .id = "rms_cost",
    .source = "documents 000, 001, 004; Zhang & Sennrich 2019",
    .claim = "RMSNorm needs fewer computations than LayerNorm and takes 7 to 64 % off the running "
             "time, at the same quality",
    .method =
        "The time of both norms on the same tensor, in rows of 32 to 8192 features, forward and\n"
        "backward, and of a training step of 64-width-width-10 with batches of 64 (forward,\n"
        "backward, Adam). The norms alternate, so that both run under the same conditions. Time\n"
        "is the program's processor time, not wall-clock time. There are as many rounds through\n"
        "all widths as seeds; each round has many turns, and the fastest counts. Then the\n"
        "accuracy of both after training on the digits at width 128, at one learning rate, from\n"
        "the same seeds.\n",
    .rule = "forward and backward: a round's saving is above 0; training step: it is above 7 %; "
            "quality: RMSNorm's accuracy less LayerNorm's is within a point of 0",
    .seeds = 13,
    .quick_seeds = 1,
    .sizes = sizes};

enum { LAYER, RMS, NORMS };
static const lab_norm *const norms[NORMS] = {&lab_layer_norm, &lab_rms_norm};

/* ---- Time ----------------------------------------------------------------------------------- */

static const char *const kind_names[KINDS] = {"forward", "backward", "step"};

/* Returns the program's processor time in seconds, which excludes other processes. */
static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* By round at a width: the fastest turn of each norm in microseconds, and the percentage of
 * LayerNorm's time that RMSNorm saves. */
typedef struct {
    double *of[NORMS], *saving;
} rounds;
static rounds measured[KINDS][MOST_WIDTHS];

static int64_t width_at(int i) { return (int64_t)LEAST_WIDTH << i; }
static int64_t widest(int kind) { return lab_whole(kind == STEP ? WIDEST_NETWORK : WIDEST); }

static void note(int kind, int width, int round, const double fastest[NORMS])
{
    rounds *r = &measured[kind][width];
    r->saving[round] = 100 * (1 - fastest[RMS] / fastest[LAYER]);
    for (int k = 0; k < NORMS; k++) r->of[k][round] = 1e6 * fastest[k];
}

/* Times one norm of x, forward and backward to x and the norm's parameters; keeps the lower
 * times. */
static void time_norm(ng_module *norm, ng_tape *tape, ng_tensor *x, ng_tensor *dy, double *forward,
                      double *backward)
{
    ng_tensor *inputs[3] = {x}, *gradients[3];
    ng_named_tensor parameter;
    int count = 1;
    while (ng_module_parameter(norm, count - 1, &parameter)) inputs[count++] = parameter.tensor;
    const double began = seconds();
    ng_tensor *y = ng_forward(norm, tape, x);
    const double middle = seconds();
    ng_gradients(tape, &y, 1, inputs, count, gradients, .cotangents = &dy);
    *backward = fmin(*backward, seconds() - middle);
    *forward = fmin(*forward, middle - began);
    ng_tape_reset(tape);
}

static void time_norms(int width, int round)
{
    const int count = lab_whole(TURNS);
    double forward[NORMS] = {HUGE_VAL, HUGE_VAL}, backward[NORMS] = {HUGE_VAL, HUGE_VAL};
    ng_rng rng = ng_rng_seeded(lab_seed(round));
    const int64_t features = width_at(width);
    const ng_shape shape = NG_SHAPE(lab_whole(ELEMENTS) / features, features);
    ng_tensor *x = ng_require_grad(ng_normal_new(NG_F32, shape, 0, 1, &rng));
    ng_tensor *dy = ng_normal_new(NG_F32, shape, 0, 1, &rng);
    ng_module *modules[NORMS];
    ng_tape *tape = ng_tape_new();
    for (int k = 0; k < NORMS; k++) modules[k] = norms[k]->make(features);
    for (int turn = 0; turn < count && lab_goes_on(); turn++) {
        for (int i = 0; i < NORMS; i++) {
            const int k = turn % 2 ? i : NORMS - 1 - i; /* each is first half of the time */
            time_norm(modules[k], tape, x, dy, &forward[k], &backward[k]);
        }
    }
    note(FORWARD, width, round, forward), note(BACKWARD, width, round, backward);
    for (int k = 0; k < NORMS; k++) ng_module_free(modules[k]);
    ng_tape_free(tape), ng_tensor_free(x), ng_tensor_free(dy);
}

static double time_step(ng_module *net, ng_optimizer *adam, ng_tape *tape, ng_dataset *data)
{
    ng_batch b;
    ng_dataset_batch(data, tape, 0, 64, &b);
    const double began = seconds();
    ng_tensor *loss = ng_cross_entropy(tape, ng_forward(net, tape, b.x), b.y);
    if (ng_backward(tape, loss) || ng_optimizer_step(adam)) return (double)NAN;
    const double taken = seconds() - began;
    ng_tape_reset(tape);
    return taken;
}

static void time_steps(int width, int round)
{
    const int count = lab_whole(STEP_TURNS);
    double step[NORMS] = {HUGE_VAL, HUGE_VAL};
    ng_dataset *train, *validate;
    lab_digits(lab_seed(round), 0, &train, &validate);
    ng_module *nets[NORMS];
    ng_optimizer *adams[NORMS];
    ng_tape *tapes[NORMS];
    for (int k = 0; k < NORMS; k++) {
        nets[k] = lab_network(norms[k], width_at(width), 2, lab_seed(round));
        adams[k] = ng_adam_new(nets[k]);
        tapes[k] = ng_tape_new();
    }
    for (int turn = 0; turn < count && lab_goes_on(); turn++) {
        for (int i = 0; i < NORMS; i++) {
            const int k = turn % 2 ? i : NORMS - 1 - i;
            step[k] = fmin(step[k], time_step(nets[k], adams[k], tapes[k], train));
        }
    }
    note(STEP, width, round, step);
    for (int k = 0; k < NORMS; k++)
        ng_tape_free(tapes[k]), ng_optimizer_free(adams[k]), ng_module_free(nets[k]);
    ng_dataset_free(train), ng_dataset_free(validate);
}

/* Times all widths once. */
static void time_round(int round)
{
    for (int width = 0; width_at(width) <= widest(FORWARD); width++) {
        lab_progress(round, lab_seeds() * 1.3, "round %d, width %d", round + 1,
                     (int)width_at(width));
        time_norms(width, round);
        if (width_at(width) <= widest(STEP)) time_steps(width, round);
    }
}

/* ---- Accuracy ------------------------------------------------------------------------------- */

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

/* Writes both accuracies. Returns RMSNorm's less LayerNorm's by seed. */
static const double *compare_accuracies(void)
{
    double *difference = lab_numbers(lab_seeds());
    lab_curves *curves = lab_curves_new("norm", "accuracy");
    for (int k = 0; k < NORMS; k++) {
        for (int seed = 0; seed < lab_seeds() && lab_goes_on(); seed++) {
            lab_progress(1.1 + 0.1 * k, 1.3, "accuracy, %s", norms[k]->name);
            const double accuracy = accuracy_of(norms[k], lab_seed(seed));
            difference[seed] += k == RMS ? accuracy : -accuracy;
            lab_log(curves, seed, "accuracy", k, accuracy);
        }
    }
    return difference;
}

/* ---- Rounds and results --------------------------------------------------------------------- */

static void allocate_times(int kind)
{
    for (int width = 0; width_at(width) <= widest(kind); width++) {
        rounds *r = &measured[kind][width];
        r->saving = lab_numbers(lab_seeds());
        for (int k = 0; k < NORMS; k++) r->of[k] = lab_numbers(lab_seeds());
    }
}

/* Logs both times, in microseconds, and the saving, by width. */
static void log_times(int kind)
{
    lab_curves *curves = lab_curves_new("width", "%s", kind_names[kind]);
    for (int width = 0; width_at(width) <= widest(kind); width++)
        for (int i = 0; i < lab_seeds(); i++) {
            const rounds *r = &measured[kind][width];
            lab_log(curves, i, "layer rms saving", (double)width_at(width), r->of[LAYER][i],
                    r->of[RMS][i], r->saving[i]);
        }
}

/* Judges the narrowest width, sixteen times that and the widest, if there are so many. */
static void judge_times(int kind)
{
    const double least = kind == STEP ? 7 : 0;
    for (int width = 0; width_at(width) <= widest(kind); width++) {
        const bool last = width_at(width + 1) > widest(kind);
        if (width != 0 && width != 4 && !last) continue;
        lab_judge((lab_part){lab_rms_norm.name, measured[kind][width].saving, .side = LAB_ABOVE,
                             .threshold = least},
                  "time saved, %s%s, width %d, %% of LayerNorm's", kind == STEP ? "training " : "",
                  kind_names[kind], (int)width_at(width));
    }
}

int main(int argc, char **argv)
{
    lab_begin(argc, argv, &rms_cost);
    if (lab_whole(ELEMENTS) < lab_whole(WIDEST))
        ng_fail(NG_EVALUE, "--elements %d: expected at least %d, the value of --widest",
                lab_whole(ELEMENTS), lab_whole(WIDEST));
    lab_goes_on();
    lab_data("tensors of %d numbers, %d turns a round; steps of 64-width-width-10, batch 64, %d "
             "turns; accuracy at width 128",
             lab_whole(ELEMENTS), lab_whole(TURNS), lab_whole(STEP_TURNS));
    for (int kind = 0; kind < KINDS; kind++) allocate_times(kind);
    for (int round = 0; round < lab_seeds() && lab_goes_on(); round++) time_round(round);
    for (int kind = 0; kind < KINDS; kind++) log_times(kind), judge_times(kind);
    lab_judge(
        (lab_part){lab_rms_norm.name, compare_accuracies(), .side = LAB_WITHIN, .threshold = 1},
        "accuracy less LayerNorm's, digits, points");
    return lab_end();
}
