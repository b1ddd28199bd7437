/* LayerNorm in the cell of an LSTM: the number of steps until it learns, by the length of the
 * sequence. */
#include "lab.h"

enum { HIDDEN, STEPS, SHORTEST };
static option sizes[] = {
    [HIDDEN] = {"hidden", "features of the LSTM's state", .normal = 24, .quick = 8},
    [STEPS] = {"steps", "most steps of Adam", .normal = 1500, .quick = 50},
    [SHORTEST] = {"shortest", "shortest sequence; the longest is 4 times as long", .normal = 10,
                  .least = 2},
    {0}};

static const lab_experiment experiment = {
    .id = "recurrent",
    .source = "Ba, Kiros & Hinton 2016, section 6",
    .claim = "LayerNorm in the cell of a recurrent network makes it learn in fewer steps",
    .method = "The adding problem (Hochreiter & Schmidhuber 1997): an LSTM reads 10 or 40 numbers, "
              "of which two are marked, one in each half, and predicts the sum of the marked two. "
              "Batches of 32 are always new. Measured: the steps until the mean squared error of "
              "25 steps is below 0.01 (always answering 1 gives 1/6). Each kind has at each length "
              "the rate at which it learns first.",
    .rule = "the steps with a norm in the cell, as a share of those without from the same seed, "
            "are below 1 at each length",
    .seeds = 11,
    .sizes = sizes};

enum { KINDS = 3, LENGTHS = 2, BATCH = 32, LOOK = 25 };
static const struct {
    const char *name;
    ng_norm_maker *norm;
} kinds[KINDS] = {{"no norm", NULL}, {"LayerNorm", ng_norm_layer}, {"RMSNorm", ng_norm_rms}};
static const double enough = 0.01;

/* Fills x (count, length, 2) with numbers from [0, 1) and their marks, one mark in each half, and
 * sums (count, 1) with the sums of the marked two. */
static void draw_sums(ng_tensor *x, ng_tensor *sums, ng_rng *rng)
{
    const int64_t length = ng_dim(x, 1);
    float *pair = ng_data_f32(x), *sum = ng_data_f32(sums);
    for (int64_t n = 0; pair && sum && n < ng_dim(x, 0); n++, pair += 2 * length) {
        const int64_t first = ng_rng_below(rng, length / 2);
        const int64_t second = length / 2 + ng_rng_below(rng, length / 2);
        for (int64_t t = 0; t < length; t++) {
            pair[2 * t] = (float)ng_rng_uniform(rng);
            pair[2 * t + 1] = t == first || t == second;
        }
        sum[n] = pair[2 * first] + pair[2 * second];
    }
    ng_touch(x), ng_touch(sums);
}

/* A kind of network and the length of its sequences. */
typedef struct {
    int kind;
    int64_t length;
    double *errors; /* set to the error of every LOOK steps, unless NULL */
} task;

/* Trains. Returns the steps until the target, or all steps. */
static double train(void *context, double rate, uint64_t seed)
{
    const task *t = context;
    ng_module *net =
        ng_sequential_new(ng_lstm_new(2, get_whole(HIDDEN), .norm = kinds[t->kind].norm),
                          ng_linear_new(get_whole(HIDDEN), 1));
    ng_module_init(net, seed);
    ng_optimizer *adam = ng_adam_new(net, .lr = rate);
    ng_tape *tape = ng_tape_new();
    ng_tensor *x = ng_zeros_new(NG_F32, NG_SHAPE(BATCH, t->length, 2));
    ng_tensor *sums = ng_zeros_new(NG_F32, NG_SHAPE(BATCH, 1));
    ng_rng rng = ng_rng_seeded(seed);
    double error = 0;
    int step = 0;
    while (step < get_whole(STEPS) && still_works()) {
        draw_sums(x, sums, &rng);
        ng_tensor *last = ng_slice(tape, ng_forward(net, tape, x), 1, t->length - 1, t->length);
        ng_tensor *loss = ng_mse(tape, ng_reshape(tape, last, NG_SHAPE(BATCH, 1)), sums);
        if (ng_backward(tape, loss)) break;
        ng_clip_grad_norm(net, 1);
        if (ng_optimizer_step(adam)) break;
        error += ng_item(loss) / (double)LOOK;
        ng_tape_reset(tape);
        if (++step % LOOK > 0) continue;
        if (t->errors) t->errors[step / LOOK - 1] = error;
        if (error < enough) break;
        error = 0;
    }
    ng_tensor_free(x), ng_tensor_free(sums), ng_tape_free(tape);
    ng_optimizer_free(adam), ng_module_free(net);
    still_works();
    return step;
}

static double *steps[KINDS][LENGTHS];

static void measure(int kind, int index)
{
    const int looks = get_whole(STEPS) / LOOK;
    task t = {kind, (int64_t)get_whole(SHORTEST) << 2 * index, NULL};
    const double rate = lab_best_rate(8e-3, train, &t);
    double *errors = t.errors = lab_numbers(looks);
    const char *name = kinds[kind].name;
    curve_set *by_step = new_curves("step", "%s, %d", name, (int)t.length);
    curve_set *by_length = new_curves("length", "%s, %d, steps", name, (int)t.length);
    steps[kind][index] = lab_numbers(lab_seeds());
    for (int seed = 0; seed < lab_seeds(); seed++) {
        for (int look = 0; look < looks; look++) errors[look] = 0.5 * enough; /* after the end */
        steps[kind][index][seed] = train(&t, rate, lab_seed(seed));
        for (int look = 0; look < looks; look++)
            log_curves(by_step, seed, "error", (look + 1) * LOOK, errors[look]);
        log_curves(by_length, seed, "steps rate", (double)t.length, steps[kind][index][seed], rate);
    }
}

int main(int argc, char **argv)
{
    lab_begin(argc, argv, &experiment);
    lab_data("adding problem, LSTM with %d features, batches of %d", get_whole(HIDDEN), BATCH);
    for (int kind = 0; kind < KINDS; kind++) {
        for (int i = 0; i < LENGTHS; i++) measure(kind, i);
        for (int i = 0; i < LENGTHS && kind > 0; i++)
            lab_judge(kinds[kind].name, lab_quotients(steps[kind][i], steps[0][i]), lab_below(1),
                      "steps to learn sums in %d numbers, own rates, as a share of no norm's",
                      get_whole(SHORTEST) << 2 * i);
    }
    return lab_end();
}
