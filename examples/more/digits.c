/* A comparison of five networks on handwritten digits: without a norm, and with each of four. For
 * each it finds the learning rate that works best, trains at that rate from other seeds, and prints
 * a table. plots/convergence.gp draws the first figure of README from its data:
 * build/examples/digits --help */
#include "harness.h"

enum { RATES = 8, NORMS = 5, TUNING_SEED = 100 }; /* tuning seeds are not scored */
static const char norm_list[] = "none,batch_norm,layer_norm,rms_norm,adaptive_layer_norm";
static const char *const norms[NORMS] = {"none", "batch_norm", "layer_norm", "rms_norm",
                                         "adaptive_layer_norm"};
static const char *const names[NORMS] = {"no norm", "BatchNorm", "LayerNorm", "RMSNorm",
                                         "AdaptiveLayerNorm"};
typedef enum { ADAM, ADAMW, SGD, MOMENTUM, RMSPROP } optimizer_kind;
static const char optimizer_list[] = "adam,adamw,sgd,momentum,rmsprop";
static const double lowest_rates[] = {5e-4, 5e-4, 0.025, 0.005, 1.25e-4};

enum { BATCH = 64, DEPTH = 2, WIDTH = 128 };
enum { NORM, OPTIMIZER, LR, SEEDS, EPOCHS, OUT };
static option options[] = {
    [NORM] = {"norm", "with a comma between them", .text = norm_list, .choices = norm_list,
              .many = true},
    [OPTIMIZER] = {"optimizer", "which", .text = "adam", .choices = optimizer_list},
    [LR] = {"lr", "one learning rate for all norms; 0: the best of eight for each",
            .fraction = true, .zero = true},
    [SEEDS] = {"seeds", "runs of each norm, and of each rate", .normal = 9, .most = 100},
    [EPOCHS] = {"epochs", "passes over the training data", .normal = 30, .most = 100000},
    [OUT] = {"out", "prefix of the .dat (build/convergence)", .text = ""},
    {0}};

/* ---- One training ---- */

static ng_dataset *data;

static ng_optimizer *make_optimizer(ng_module *net, double lr)
{
    switch ((optimizer_kind)index_of(optimizer_list, get_text(OPTIMIZER))) {
    case ADAM: return ng_adam_new(net, .lr = lr);
    case ADAMW: return ng_adamw_new(net, 0.01, .lr = lr);
    case SGD: return ng_sgd_new(net, .lr = lr);
    case MOMENTUM: return ng_sgd_new(net, .lr = lr, .momentum = 0.9);
    case RMSPROP: return ng_rmsprop_new(net, .lr = lr);
    }
    return NULL;
}

/* Returns (Linear, norm, ReLU) x depth, then a Linear to the ten digits. */
static ng_module *make_network(ng_norm_maker *norm, uint64_t seed)
{
    ng_module *net = ng_sequential_from(NULL, 0);
    int64_t features = 64;
    for (int i = 0; i < DEPTH; i++, features = WIDTH) {
        ng_sequential_add(net, ng_linear_new(features, WIDTH));
        if (norm != ng_norm_none) ng_sequential_add(net, norm(WIDTH));
        ng_sequential_add(net, ng_relu_new());
    }
    ng_sequential_add(net, ng_linear_new(features, 10));
    ng_module_init(net, seed);
    return net;
}

typedef struct {
    double loss, accuracy; /* the mean loss of the last five epochs, in per cent */
} outcome;

/* Trains from a seed, which draws the split and the weights. Logs each epoch unless `curves` is
 * NULL. A loss that is not finite ends it. */
static outcome train(int norm, double lr, uint64_t seed, int run, curve_set *curves)
{
    const int epochs = get_whole(EPOCHS), last = epochs < 5 ? epochs : 5;
    ng_dataset *train = NULL, *test = NULL;
    ng_dataset_split_new(data, ng_dataset_count(data) * 4 / 5, seed, &train, &test);
    ng_module *net = make_network(ng_norm_named(norms[norm]), seed);
    ng_optimizer *optimizer = make_optimizer(net, lr);
    ng_tape *tape = ng_tape_new();
    outcome o = {0, 0};
    for (int epoch = 1; epoch <= epochs && !ng_failed(); epoch++) {
        ng_dataset_shuffle(train, seed * 1000 + (uint64_t)epoch);
        const double loss = run_epoch(net, optimizer, tape, train, BATCH);
        if (!isfinite(loss)) o.loss = HUGE_VAL;
        if (!isfinite(loss)) break;
        if (epoch > epochs - last) o.loss += loss / last;
        if (!curves && epoch < epochs) continue;
        o.accuracy = 100 * ng_evaluate(net, test).accuracy;
        if (curves) log_curves(curves, run, "train_loss val_accuracy", epoch, loss, o.accuracy);
    }
    ng_tape_free(tape), ng_optimizer_free(optimizer), ng_module_free(net);
    ng_dataset_free(train), ng_dataset_free(test);
    return o;
}

/* ---- Many trainings, on threads ---- */

typedef struct {
    int norm, run;
    double lr;
    uint64_t seed;
    curve_set *curves;
    outcome result;
} job;

static job jobs[RATES * MOST_SEEDS];
static int job_count;

static ng_status run_some(ng_group *group, void *unused)
{
    (void)unused;
    for (int i = ng_group_rank(group); i < job_count && !ng_failed(); i += ng_group_size(group)) {
        job *j = &jobs[i];
        j->result = train(j->norm, j->lr, j->seed, j->run, j->curves);
    }
    return ng_failed() ? ng_error_status() : NG_OK;
}

static void run_jobs(int count)
{
    job_count = count;
    ng_set_threads(0);
    const int most = ng_threads(); /* as many as processors */
    ng_set_threads(1);
    if (ng_group_run(run_some, NULL, most < count ? most : count)) still_works();
}

/* Trains from all tuning seeds at all rates. Chooses the rate whose median loss is lowest, in the
 * geometric mean with those of the next lower and higher rate, so that one lucky rate is not
 * chosen. */
static double find_rate(int norm)
{
    const int seeds = get_whole(SEEDS);
    const double lowest = lowest_rates[index_of(optimizer_list, get_text(OPTIMIZER))];
    double medians[RATES], least = HUGE_VAL, best = lowest;
    curve_set *by_rate = new_curves("rate", "%s by rate", names[norm]);
    for (int i = 0; i < RATES * seeds; i++)
        jobs[i] = (job){.norm = norm,
                        .lr = ldexp(lowest, i / seeds),
                        .seed = (uint64_t)(TUNING_SEED + i % seeds)};
    run_jobs(RATES * seeds);
    for (int k = 0; k < RATES; k++) {
        double losses[MOST_SEEDS];
        for (int i = 0; i < seeds; i++) {
            const job *j = &jobs[k * seeds + i];
            losses[i] = j->result.loss;
            log_curves(by_rate, i, "train_loss", j->lr, isinf(losses[i]) ? (double)NAN : losses[i]);
        }
        medians[k] = median_of(losses, seeds);
    }
    for (int k = 0; k < RATES; k++) {
        const double below = medians[k > 0 ? k - 1 : k];
        const double around = cbrt(below * medians[k] * medians[k + 1 < RATES ? k + 1 : k]);
        if (around < least) least = around, best = ldexp(lowest, k);
    }
    return best;
}

/* Trains with a norm from all seeds and prints its row of the table. */
static void run_norm(int norm)
{
    const int seeds = get_whole(SEEDS);
    double losses[MOST_SEEDS], accuracies[MOST_SEEDS];
    const time_t began = time(NULL);
    curve_set *curves = new_curves("epoch", "%s", names[norm]);
    const double lr = get_number(LR) > 0 ? get_number(LR) : find_rate(norm);
    for (; curves->count < seeds; curves->count++) {
        curves->runs[curves->count] = ng_history_new("a run");
        jobs[curves->count] =
            (job){norm, curves->count, lr, (uint64_t)curves->count, curves, {0, 0}};
    }
    run_jobs(seeds);
    for (int i = 0; i < seeds; i++) {
        is_finite(jobs[i].result.loss, names[norm], i);
        losses[i] = jobs[i].result.loss, accuracies[i] = jobs[i].result.accuracy;
    }
    still_works();
    fprintf(data_file.file, "%-14d %.8g\n", norm, lr);
    const double loss = median_of(losses, seeds), accuracy = median_of(accuracies, seeds);
    printf("%-18s %7g %14.2e   %6.2f  %6.2f  %7.2f %5.0f s\n", names[norm], lr, loss, accuracy,
           accuracies[0], accuracies[seeds - 1], difftime(time(NULL), began));
    fflush(stdout);
}

int main(int argc, char **argv)
{
    static const char usage[] =
        "usage: digits [options]\n"
        "\n"
        "Trains one network on handwritten digits with each norm, from several seeds, and prints "
        "a\n"
        "table. Each norm has its own learning rate: of eight candidates, the one with the lowest\n"
        "median of the final training loss over other seeds, in the mean with its two "
        "neighbours.\n";
    begin_program(argc, argv, usage, options, NULL);
    const line prefix = choose_prefix(get_text(OUT), "convergence");
    data = read_digits();
    still_works();
    begin_data("%lld samples, four of five to train; network 64-(%d x %d)-10; %s; batch %d; "
               "seeds 0 to %d, rates on seeds %d to %d; float32",
               (long long)ng_dataset_count(data), WIDTH, DEPTH, get_text(OPTIMIZER), BATCH,
               get_whole(SEEDS) - 1, TUNING_SEED, TUNING_SEED + get_whole(SEEDS) - 1);
    printf("                           training loss   validation accuracy (%%)\n"
           "norm                    lr         median   median  lowest  highest    time\n");
    put_block("best rates", "norm           rate\n");
    char key[ITEM];
    for (const char *at = get_text(NORM); next_item(&at, ',', key);)
        run_norm(index_of(norm_list, key));
    end_data(prefix.text);
    printf("\nData: %s.dat. To draw it: gnuplot -c plots/convergence.gp %s\n", prefix.text,
           prefix.text);
    ng_dataset_free(data);
    return end_program(EXIT_SUCCESS);
}
