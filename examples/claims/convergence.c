/* How fast networks train with and without a norm: steps to a loss, the highest learning rate, and
 * the football team of document 004, which swings between too late and too early. */
#include "lab.h"

enum { WIDTH, BATCH, STEPS, EPOCHS, PASSES, PLAYERS, MOST_PASSES = 1000 };
static option sizes[] = {
    [WIDTH] = {"width", "features of each hidden layer", .normal = 64, .quick = 32},
    [BATCH] = {"batch", "samples per step", .normal = 64, .quick = 16},
    [STEPS] = {"steps", "most steps to the loss", .normal = 800, .quick = 40},
    [EPOCHS] = {"epochs", "passes over the data with which a rate must train", .normal = 8,
                .quick = 1},
    [PASSES] = {"passes", "steps of the team", .normal = 60, .quick = 12, .most = MOST_PASSES},
    [PLAYERS] = {"players", "features of the team's hidden layers", .normal = 16, .quick = 8},
    {0}};

static const lab_experiment experiment = {
    .id = "convergence",
    .figure = "convergence_rates", /* plots/convergence.* belongs to digits */
    .source = "documents 001, 003 (benefit 3) and 004; Ioffe & Szegedy 2015, section 3.3",
    .claim = "with a norm training converges in fewer steps, allows higher learning rates, and "
             "swings less",
    .method =
        "Digits, 64 - (Linear, norm, ReLU) x 4 - 10, weights as He et al. 2015, gradient descent "
        "and Adam, each kind at its own best rate: the steps until the mean loss of the last 22 "
        "batches, a pass over the data, is below 0.1. With 2 and 8 hidden layers and gradient "
        "descent: the highest of the rates 16, 16 / 2^(1/2), 8... 0.004 at which the last of 8 "
        "epochs has a mean loss below ln(10) / 2, half that of a random guess. The team of "
        "document 004: defenders, midfielders and a striker, 4-16-16-1, get four numbers (metres, "
        "metres per second, opponents, degrees), raw or standardized, and learn by gradient "
        "descent when to score; their first attempts miss by 2 seconds on average. Swinging: the "
        "length of the mean error's path less the distance from its first to its last value.",
    .rule = "from the same seed the steps with a norm, over those without, are below 0.9 (with "
            "Adam only BatchNorm is judged), and the highest rate, over that without, is above 1; "
            "at the rate best without, the team with LayerNorm swings less and its last miss, over "
            "that without, is below 1, raw and standardized",
    .seeds = 51,
    .sizes = sizes};

enum { NORMS = 4, OPTIMIZERS = 2 };

/* ---- Steps to a loss ---- */

enum { DEPTH = 4, WINDOW = 22 };
static const char *const optimizers[OPTIMIZERS] = {"gradient descent", "Adam"};

typedef struct {
    int optimizer, norm;
} kind;

/* Returns the steps until the mean loss of a window is below 0.1; Inf if it is not reached. */
static double steps_to_loss(void *context, double rate, uint64_t seed)
{
    const kind *k = context;
    double losses[WINDOW] = {0}, sum = 0, found = HUGE_VAL;
    ng_module *net = lab_network(&lab_norms[k->norm], ng_relu_new, get_whole(WIDTH), DEPTH, seed);
    lab_run r = lab_begin_run(net, seed);
    lab_he_weights(r.net, seed);
    r.optimizer = k->optimizer ? ng_adam_new(r.net, .lr = rate) : ng_sgd_new(r.net, .lr = rate);
    for (int step = 0; step < get_whole(STEPS) && isinf(found) && isfinite(sum); step++) {
        const double loss = lab_step(&r, get_whole(BATCH), 0);
        sum += (loss - losses[step % WINDOW]) / WINDOW;
        losses[step % WINDOW] = loss;
        if (step >= WINDOW - 1 && sum < 0.1) found = step + 1;
    }
    lab_end_run(&r);
    return found;
}

static void measure_steps(int optimizer)
{
    const int seeds = lab_seeds();
    double *steps[NORMS];
    curve_set *curves = new_curves("norm", "steps, %s", optimizers[optimizer]);
    for (int norm = 0; norm < NORMS; norm++) {
        kind k = {optimizer, norm};
        const double rate = lab_best_rate(optimizer ? 0.004 : 0.25, steps_to_loss, &k);
        steps[norm] = lab_numbers(seeds);
        for (int seed = 0; seed < seeds; seed++) {
            steps[norm][seed] = steps_to_loss(&k, rate, lab_seed(seed));
            log_curves(curves, seed, "steps rate", norm, steps[norm][seed], rate);
        }
        if (norm > 0 && (optimizer == 0 || norm == LAB_BATCH))
            lab_judge(lab_norms[norm].name, lab_quotients(steps[norm], steps[0]), lab_below(0.9),
                      "steps to a loss of 0.1, %s, own rates, as a share of no norm's",
                      optimizers[optimizer]);
    }
}

/* ---- The highest rate ---- */

enum { RATES = 25, DEPTHS = 2 };
static const int depths[DEPTHS] = {2, 8};
static double rate_of(int i) { return 0.004 * pow(2, 0.5 * i); }

static bool trains(const lab_norm *norm, int depth, double rate, uint64_t seed)
{
    lab_run r = lab_begin_run(lab_network(norm, ng_relu_new, get_whole(WIDTH), depth, seed), seed);
    lab_he_weights(r.net, seed);
    r.optimizer = ng_sgd_new(r.net, .lr = rate);
    double loss = 0;
    for (int epoch = 0; epoch < get_whole(EPOCHS) && isfinite(loss); epoch++)
        loss = lab_epoch(&r, get_whole(BATCH), (uint64_t)epoch);
    lab_end_run(&r);
    return loss < log(10) / 2;
}

static void measure_rates(int depth)
{
    double *highest[NORMS];
    curve_set *curves = new_curves("norm", "highest rate, %d layers", depths[depth]);
    for (int norm = 0; norm < NORMS; norm++) {
        highest[norm] = lab_numbers(lab_seeds());
        for (int seed = 0; seed < lab_seeds(); seed++) {
            int i = RATES - 1;
            while (i > 0 && !trains(&lab_norms[norm], depths[depth], rate_of(i), lab_seed(seed)))
                i--;
            highest[norm][seed] = rate_of(i);
            log_curves(curves, seed, "rate", norm, rate_of(i));
        }
        if (norm > 0)
            lab_judge(lab_norms[norm].name, lab_quotients(highest[norm], highest[0]), lab_above(1),
                      "highest rate that trains, %d layers, as a multiple of no norm's",
                      depths[depth]);
    }
}

/* ---- The team ---- */

enum { RAW, STANDARDIZED, INPUTS, FEATURES = 4, SITUATIONS = 64 };
static const char *const input_names[] = {[RAW] = "raw", [STANDARDIZED] = "standardized"};

typedef struct {
    bool norm;
    int inputs;
} team;

static ng_module *make_team(bool norm, uint64_t seed)
{
    const int players = get_whole(PLAYERS);
    ng_module *net = ng_sequential_from(NULL, 0);
    for (int layer = 0; layer < 2; layer++) {
        ng_sequential_add(net, ng_linear_new(layer == 0 ? FEATURES : players, players));
        if (norm) ng_sequential_add(net, ng_layer_norm_new(players));
        ng_sequential_add(net, ng_relu_new());
    }
    ng_sequential_add(net, ng_linear_new(players, 1)); /* the striker */
    ng_module_init(net, seed);
    return net;
}

/* Returns situations, and how much later or earlier than usual each requires the goal. */
static ng_dataset *make_situations(int inputs, uint64_t seed)
{
    static const double low[] = {5, 5, 0, -60}, high[] = {45, 25, 8, 60};
    ng_rng rng = ng_rng_seeded(seed);
    ng_tensor *x = ng_zeros_new(NG_F32, NG_SHAPE(SITUATIONS, FEATURES));
    ng_tensor *y = ng_zeros_new(NG_F32, NG_SHAPE(SITUATIONS, 1));
    for (int i = 0; i < SITUATIONS; i++) {
        double u[FEATURES]; /* -1 .. 1 */
        for (int k = 0; k < FEATURES; k++) {
            u[k] = 2 * ng_rng_uniform(&rng) - 1;
            ng_set(x, i * FEATURES + k, low[k] + (high[k] - low[k]) * (u[k] + 1) / 2);
        }
        ng_set(y, i, u[0] - u[1] * u[2] + sin(3 * u[3]) / 2);
    }
    ng_dataset *situations = ng_dataset_from(x, y);
    if (inputs == STANDARDIZED) ng_dataset_standardize(situations, situations);
    ng_tensor_free(x), ng_tensor_free(y);
    return situations;
}

/* Returns the root mean square miss after the last pass. Sets the mean error by pass (seconds too
 * late), and the swinging. Inf for a team that diverges. */
static double play(const team *t, double rate, uint64_t seed, double *late, double *swinging)
{
    const int passes = get_whole(PASSES);
    double shift = 0, miss = 0;
    ng_dataset *situations = make_situations(t->inputs, seed);
    ng_module *net = make_team(t->norm, seed);
    ng_optimizer *descent = ng_sgd_new(net, .lr = rate);
    ng_tape *tape = ng_tape_new();
    *swinging = 0;
    for (int pass = 0; pass < passes && still_works(); pass++) {
        ng_batch all;
        ng_dataset_batch(situations, tape, 0, SITUATIONS, &all);
        ng_tensor *error = ng_sub(tape, ng_forward(net, tape, all.x), all.y);
        if (pass == 0) shift = 2 - ng_item(ng_mean(tape, error)); /* the first mean miss is 2 s */
        error = ng_add_scalar(tape, error, shift);
        ng_tensor *loss = ng_mean(tape, ng_square(tape, error));
        late[pass] = ng_item(ng_mean(tape, error));
        if (pass > 0) *swinging += fabs(late[pass] - late[pass - 1]);
        miss = sqrt(ng_item(loss));
        if (ng_backward(tape, loss) || ng_optimizer_step(descent)) break;
        ng_tape_reset(tape);
    }
    *swinging -= fabs(late[passes - 1] - late[0]);
    if (!isfinite(miss)) miss = *swinging = HUGE_VAL;
    ng_tape_free(tape), ng_optimizer_free(descent), ng_module_free(net);
    ng_dataset_free(situations);
    return miss;
}

static double tuning_miss(void *context, double rate, uint64_t seed)
{
    double late[MOST_PASSES], swinging;
    return play(context, rate, seed, late, &swinging);
}

static void measure_team(int inputs)
{
    const int seeds = lab_seeds(), passes = get_whole(PASSES);
    double *swinging[2], *miss[2], *late = lab_numbers((int64_t)seeds * passes), rate = 0;
    for (int norm = 0; norm < 2; norm++) {
        team t = {norm, inputs};
        if (!norm) rate = lab_best_rate(ldexp(1, -9), tuning_miss, &t);
        swinging[norm] = lab_numbers(seeds), miss[norm] = lab_numbers(seeds);
        curve_set *curves =
            new_curves("pass", "team, %s, %s", input_names[inputs], norm ? "LayerNorm" : "no norm");
        int shown = 0; /* the seed with the median swinging */
        for (int seed = 0; seed < seeds; seed++)
            miss[norm][seed] =
                play(&t, rate, lab_seed(seed), late + seed * passes, &swinging[norm][seed]);
        const double median = lab_median(swinging[norm], lab_seeds());
        for (int seed = 1; seed < seeds; seed++)
            if (fabs(swinging[norm][seed] - median) < fabs(swinging[norm][shown] - median))
                shown = seed;
        for (int i = 0; i < seeds * passes; i++)
            log_curves(curves, i / passes, "late shown rate", i % passes + 1, late[i],
                       late[shown * passes + i % passes], rate);
    }
    for (int seed = 0; seed < seeds; seed++)
        if (isinf(swinging[0][seed]) && isinf(swinging[1][seed]))
            swinging[0][seed] = swinging[1][seed] = 0;
    lab_judge("LayerNorm", lab_less(swinging[1], swinging[0]), lab_below(0),
              "the team's swinging, %s inputs, less no norm's, s", input_names[inputs]);
    lab_judge("LayerNorm", lab_quotients(miss[1], miss[0]), lab_below(1),
              "the team's last miss, %s inputs, as a share of no norm's", input_names[inputs]);
}

int main(int argc, char **argv)
{
    lab_begin(argc, argv, &experiment);
    lab_data("64-%d x layers-10, ReLU, batch %d; team %d-%d-%d-1", get_whole(WIDTH),
             get_whole(BATCH), FEATURES, get_whole(PLAYERS), get_whole(PLAYERS));
    for (int optimizer = 0; optimizer < OPTIMIZERS; optimizer++) measure_steps(optimizer);
    for (int depth = 0; depth < DEPTHS; depth++) measure_rates(depth);
    for (int inputs = 0; inputs < INPUTS; inputs++) measure_team(inputs);
    return lab_end();
}
