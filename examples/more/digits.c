/* A comparison of five networks on handwritten digits: without a norm, and with each of four.
 *
 * For each norm it finds the learning rate that works best on examples/data/digits.csv, trains the
 * network at that rate from other seeds, prints a table, writes PREFIX.dat and draws it with
 * gnuplot: build/examples/digits --help */
#include "options.h"
#include "training.h"
#include <pthread.h>
#include <stdatomic.h>

/* ---- The norms ---- */

typedef struct {
    const char *key, *name;
    ng_module *(*make)(int64_t width); /* NULL: no layer */
} norm_choice;

static ng_module *make_batch(int64_t width) { return ng_batch_norm_new(width); }
static ng_module *make_layer(int64_t width) { return ng_layer_norm_new(width); }
static ng_module *make_rms(int64_t width) { return ng_rms_norm_new(width); }
static ng_module *make_adaptive(int64_t width) { return ng_adaptive_layer_norm_new(width); }

static const norm_choice norms[] = {{"none", "no norm", NULL},
                                    {"batch", "BatchNorm", make_batch},
                                    {"layer", "LayerNorm", make_layer},
                                    {"rms", "RMSNorm", make_rms},
                                    {"adaptive", "AdaptiveLayerNorm", make_adaptive}};
enum { NORMS = sizeof norms / sizeof norms[0] };

/* The candidate rates are lowest_rate, twice that... */
enum { RATES = 8, TRIALS = 3, MOST_AT_ONCE = 64 };

typedef struct {
    const char *key;
    double lowest_rate;
    ng_optimizer *(*make)(ng_module *net, double lr);
} optimizer_choice;

static ng_optimizer *make_sgd(ng_module *net, double lr) { return ng_sgd_new(net, .lr = lr); }
static ng_optimizer *make_momentum(ng_module *net, double lr)
{
    return ng_sgd_new(net, .lr = lr, .momentum = 0.9);
}
static ng_optimizer *make_adam(ng_module *net, double lr) { return ng_adam_new(net, .lr = lr); }
static ng_optimizer *make_adamw(ng_module *net, double lr) { return ng_adamw_new(net, .lr = lr); }
static ng_optimizer *make_rmsprop(ng_module *net, double lr)
{
    return ng_rmsprop_new(net, .lr = lr);
}

static const optimizer_choice optimizers[] = {{"adam", 5e-4, make_adam},
                                              {"adamw", 5e-4, make_adamw},
                                              {"sgd", 0.025, make_sgd},
                                              {"momentum", 0.005, make_momentum},
                                              {"rmsprop", 1.25e-4, make_rmsprop}};

/* ---- Options ---- */

typedef struct {
    bool norm[NORMS];
    int optimizer;
    double lr; /* of all norms; 0: the best one for each norm */
    int seeds, epochs, batch, depth, width, at_once, threads;
    const char *data;
    char out[1024];
    bool no_plot;
    look look;
    checkpoint saved;
} options;

static const char usage[] =
    "usage: digits [options]\n"
    "\n"
    "Trains one network on handwritten digits with each norm, from several seeds, prints a\n"
    "table, and draws training loss and validation accuracy by epoch. Each norm has its own\n"
    "learning rate: of eight candidates, the one with the lowest final training loss, taking\n"
    "the worst of three other seeds.\n";

static options parse_options(int argc, char **argv)
{
    options o = {.seeds = 9, .epochs = 30, .batch = 64, .depth = 2, .width = 128, .threads = 1};
    const char *out = NULL;
    bool some = false;
    const program_option known[] = {
        OPTION_LIST("norm", "LIST", "some of none,batch,layer,rms,adaptive (all)", o.norm, norms),
        OPTION_COUNT("seeds", "N", "runs of each norm (9)", &o.seeds, 1, MAX_SEEDS),
        OPTION_COUNT("epochs", "N", "passes over the training data (30)", &o.epochs, 1, 100000),
        OPTION_COUNT("batch", "N", "samples per step (64)", &o.batch, 1, 1000000),
        OPTION_CHOICE("optimizer", "NAME", "adam, adamw, sgd, momentum or rmsprop (adam)",
                      &o.optimizer, optimizers),
        OPTION_RATE("lr", "RATE", "one learning rate for all norms, without a search", &o.lr),
        OPTION_COUNT("depth", "N", "hidden layers (2)", &o.depth, 0, 1000),
        OPTION_COUNT("width", "N", "features of each layer (128)", &o.width, 1, 100000),
        OPTION_TEXT("data", "FILE", "a CSV file, label last (examples/data/digits.csv)", &o.data),
        OPTION_TEXT("out", "PREFIX", "prefix of the .dat, .svg and .png (build/convergence)", &out),
        CHECKPOINT_OPTIONS(o.saved),
        LOOK_OPTIONS(o.look),
        OPTION_SWITCH("no-plot", "draw no figure", &o.no_plot),
        OPTION_COUNT("at-once", "N", "concurrent trainings; 0: one per processor (0)", &o.at_once,
                     0, MOST_AT_ONCE),
        THREADS_OPTION(o.threads, "1")};
    refuse_more(argc, argv, read_options(argc, argv, usage, OPTIONS(known), CTRL_C_HELP));
    check_checkpoint(&o.saved);
    choose_prefix(o.out, sizeof o.out, out, "convergence");
    if (!o.data) o.data = find_data("digits.csv");
    for (int i = 0; i < NORMS; i++) some = some || o.norm[i];
    for (int i = 0; i < NORMS && !some; i++) o.norm[i] = true;
    return o;
}

/* ---- The curves ---- */

/* The result of a norm's search: the final loss by rate, and the index of the best rate, whose
 * worst seed has the lowest loss. */
typedef struct {
    number_spread loss[RATES];
    int tried, best;
} trials;

typedef struct {
    options options;
    ng_dataset *data;
    int64_t features, classes, train_count;
    curves curves[NORMS];
    trials trials[NORMS];
    curves trial[RATES]; /* of one norm at each candidate rate */
    bool terminal;
} job;

/* ---- Data ---- */

/* Reads the data and scales the features to at most 1; the digits' pixels are divided by 16. */
static bool read_data(job *j)
{
    ng_dataset *raw = ng_dataset_read_csv(j->options.data);
    const ng_tensor *x = ng_dataset_x(raw), *y = ng_dataset_y(raw);
    double largest = 0;
    for (int64_t i = 0; i < ng_size(x); i++) largest = fmax(largest, fabs(ng_get(x, i)));
    for (int64_t i = 0; i < ng_size(y) && !ng_failed(); i++) {
        const int64_t label = (int64_t)ng_get(y, i);
        if (label < 0)
            ng_fail(NG_EVALUE, "%s: label %lld, expected 0 or more", j->options.data,
                    (long long)label);
        if (label >= j->classes) j->classes = label + 1;
    }
    j->features = ng_dim(x, 1);
    j->train_count = ng_dataset_count(raw) * 4 / 5;
    ng_dataset_free(raw);
    if (ng_failed()) return false;
    j->data = ng_dataset_read_csv(j->options.data, .scale = largest > 0 ? 1 / largest : 1);
    return j->data != NULL;
}

/* ---- History ---- */

/* Writes "64-128-128-10", or with many layers "64-128 (x 12)-10". */
static void describe_network(const job *j, char *text, size_t bytes)
{
    const options *o = &j->options;
    int at = snprintf(text, bytes, "%lld", (long long)j->features);
    for (int i = 0; i < o->depth && o->depth <= 4; i++)
        at += snprintf(text + at, bytes - (size_t)at, "-%d", o->width);
    if (o->depth > 4)
        at += snprintf(text + at, bytes - (size_t)at, "-%d (x %d)", o->width, o->depth);
    snprintf(text + at, bytes - (size_t)at, "-%lld", (long long)j->classes);
}

static double rate_of(const job *j, int k)
{
    return ldexp(optimizers[j->options.optimizer].lowest_rate, k);
}

/* Returns the rate that a norm is trained at. */
static double own_rate(const job *j, int norm)
{
    return j->options.lr > 0 ? j->options.lr : rate_of(j, j->trials[norm].best);
}

/* Writes "lr 0.001", or how each norm's rate was chosen. */
static void describe_rates(const job *j, char *text, size_t bytes)
{
    if (j->options.lr > 0)
        snprintf(text, bytes, "lr %g", j->options.lr);
    else
        snprintf(text, bytes, "the best of %d rates from %g to %g on seeds %d to %d", RATES,
                 rate_of(j, 0), rate_of(j, RATES - 1), j->trial[0].first_seed,
                 j->trial[0].first_seed + TRIALS - 1);
}

/* Logs a norm's search as one block, one line per rate. */
static void log_trials(const job *j, ng_history *history, int norm)
{
    const trials *t = &j->trials[norm];
    char block[64];
    snprintf(block, sizeof block, "%s by rate", norms[norm].name);
    if (t->tried > 0) ng_history_block(history, block);
    for (int k = 0; k < t->tried; k++) {
        ng_history_log(history, "rate", k, rate_of(j, k));
        ng_history_log(history, "train_loss", k, t->loss[k].median);
        ng_history_log(history, "train_loss_low", k, t->loss[k].low);
        ng_history_log(history, "train_loss_high", k, t->loss[k].high);
        ng_history_log(history, "best", k, t->tried == RATES && k == t->best);
    }
}

static bool write_history(const job *j)
{
    const options *o = &j->options;
    char network[96], rates[128], what[512];
    describe_network(j, network, sizeof network);
    describe_rates(j, rates, sizeof rates);
    snprintf(what, sizeof what,
             "%lld samples to train, %lld to validate; network %s; %s, %s; batch %d; seeds 0 to "
             "%d; float32",
             (long long)j->train_count, (long long)(ng_dataset_count(j->data) - j->train_count),
             network, optimizers[o->optimizer].key, rates, o->batch, o->seeds - 1);

    ng_history *history = ng_history_new(what);
    for (int i = 0; i < NORMS; i++) log_curves(history, norms[i].name, &j->curves[i]);
    for (int i = 0; i < NORMS; i++) log_trials(j, history, i);
    const bool written = write_dat(history, o->out);
    ng_history_free(history);
    return written && !ng_failed();
}

/* ---- Training ---- */

static ng_module *make_network(const job *j, const norm_choice *norm, int seed)
{
    ng_module *net = ng_sequential_from(NULL, 0);
    int64_t from = j->features;
    for (int i = 0; i < j->options.depth; i++) {
        ng_sequential_add(net, ng_linear_new(from, j->options.width));
        if (norm->make) ng_sequential_add(net, norm->make(j->options.width));
        ng_sequential_add(net, ng_relu_new());
        from = j->options.width;
    }
    ng_sequential_add(net, ng_linear_new(from, j->classes));
    ng_module_init(net, (uint64_t)seed);
    return net;
}

/* The trainings of a norm: TRIALS at each candidate rate, or the scored seeds. Several run
 * concurrently, one per thread; a thread that is free takes the next. */
typedef struct {
    job *job;
    int norm, count;
    bool on_trial;
    progress *bar;
    atomic_int next;
    pthread_mutex_t lock; /* of printing and of: */
    double seconds[MAX_SEEDS];
    int printed;
} run_pool;

/* Trains from the seed at this index of the curves. The seed draws the split and the weights. */
static void run_seed(run_pool *w, curves *c, int place, double lr, int before, bool shows)
{
    job *j = w->job;
    const int seed = c->first_seed + place;
    progress silent = {.off = true};
    char key[64];
    snprintf(key, sizeof key, w->on_trial ? "%s-%g" : "%s", norms[w->norm].key, lr);
    training t = {.name = norms[w->norm].name, .seed = place, .batch = j->options.batch};
    ng_dataset_split(j->data, j->train_count, (uint64_t)seed, &t.train, &t.validate);
    /* BatchNorm cannot train on one sample. */
    t.drop_last = j->train_count > t.batch && j->train_count % t.batch == 1;
    t.on_trial = w->on_trial;
    t.net = make_network(j, &norms[w->norm], seed);
    t.optimizer = optimizers[j->options.optimizer].make(t.net, lr);
    t.tape = ng_tape_new();
    t.curves = c;
    t.bar = shows ? w->bar : &silent;
    t.before = (double)j->train_count * c->epochs * before;
    if (place == 0 && !w->on_trial) t.watched = look_watch(&j->options.look, t.net, t.name);
    if (place == 0) c->parameters = ng_parameter_count(t.net);
    const bool begun = training_begin(&t, &j->options.saved, key);
    while (begun && ng_training_epoch(t.run, c->epochs) && run_epoch(&t)) {
        const int epoch = c->done[place] - 1;
        char status[128];
        snprintf(status, sizeof status, "%s, lr %g, seed %d of %d, epoch %d of %d, loss %.4f",
                 t.name, lr, place + 1, c->seeds, epoch + 1, c->epochs,
                 ng_at(c->measured[place], LOSS, epoch));
        if (shows && !w->on_trial) draw_live(&j->options.look, c, place, status);
    }
    look_draw_layers(t.watched, j->options.out, key);
    training_free(&t);
}

static void print_run(const job *j, int norm, int seed, double seconds)
{
    const ng_tensor *measured = j->curves[norm].measured[seed];
    const int last = j->options.epochs - 1;
    printf("%-18s seed %d/%d  loss %.4f  validation accuracy %5.2f %%  %.1f s\n", norms[norm].name,
           seed + 1, j->options.seeds, ng_at(measured, LOSS, last),
           100 * ng_at(measured, ACCURACY, last), seconds);
    fflush(stdout);
}

/* Prints finished runs in the order of their seeds. */
static void note_run(run_pool *w, int place, double seconds)
{
    const job *j = w->job;
    curves *c = &w->job->curves[w->norm];
    pthread_mutex_lock(&w->lock);
    c->seconds += seconds;
    w->seconds[place] = c->done[place] == c->epochs ? seconds : 0;
    for (; w->printed < w->count && w->seconds[w->printed] > 0; w->printed++)
        if (!j->terminal) print_run(j, w->norm, w->printed, w->seconds[w->printed]);
    pthread_mutex_unlock(&w->lock);
}

static ng_status run_some(ng_group *group, void *with)
{
    run_pool *w = with;
    job *j = w->job;
    const bool shows = ng_group_rank(group) == 0;
    for (int i; !interrupted && !ng_failed() && (i = atomic_fetch_add(&w->next, 1)) < w->count;) {
        const double began = progress_clock();
        if (w->on_trial) {
            const int k = i / TRIALS;
            run_seed(w, &j->trial[k], i % TRIALS, rate_of(j, k), k * TRIALS, shows);
        } else {
            const int before = j->options.lr == 0 ? RATES * TRIALS : 0;
            run_seed(w, &j->curves[w->norm], i, own_rate(j, w->norm), before, shows);
            note_run(w, i, progress_clock() - began);
        }
    }
    return ng_failed() ? ng_error_status() : NG_OK;
}

/* Trains all runs. Returns whether all of them completed. */
static bool run_all(job *j, int norm, bool on_trial, int count, progress *bar)
{
    run_pool w = {.job = j,
                  .norm = norm,
                  .count = count,
                  .on_trial = on_trial,
                  .bar = bar,
                  .lock = PTHREAD_MUTEX_INITIALIZER};
    const int at_once = j->options.at_once < count ? j->options.at_once : count;
    return ng_group_run(run_some, &w, at_once) == NG_OK && !interrupted;
}

/* Returns the spread over the seeds of the mean loss of the last five epochs, which is less noisy
 * than the last one. */
static number_spread at_the_end(const curves *c)
{
    const int count = c->epochs < 5 ? c->epochs : 5;
    double loss[TRIALS] = {0};
    for (int seed = 0; seed < TRIALS; seed++)
        for (int i = 1; i <= count; i++)
            loss[seed] += ng_at(c->measured[seed], LOSS, c->epochs - i) / count;
    return number_spread_of(loss, TRIALS);
}

/* Trains at every candidate rate, from seeds that are not scored, and chooses the norm's rate. */
static void find_rate(job *j, int norm, progress *bar)
{
    trials *t = &j->trials[norm];
    clear_curves(j->trial, RATES);
    if (!run_all(j, norm, true, RATES * TRIALS, bar)) return;
    for (; t->tried < RATES; t->tried++) {
        t->loss[t->tried] = at_the_end(&j->trial[t->tried]);
        if (t->loss[t->tried].high < t->loss[t->best].high) t->best = t->tried;
    }
}

static void print_rate(const job *j, int norm)
{
    const int best = j->trials[norm].best;
    printf("%-18s best of %d learning rates: %g%s\n", norms[norm].name, RATES, rate_of(j, best),
           best == 0           ? ", the lowest; a lower rate may be better"
           : best == RATES - 1 ? ", the highest; a higher rate may be better"
                               : "");
    fflush(stdout);
}

static void run_norm(job *j, int norm)
{
    const bool sweep = j->options.lr == 0;
    look_block(&j->options.look, norms[norm].name);
    const double runs = j->options.seeds + (sweep ? RATES * TRIALS : 0);
    progress bar = progress_begin(norms[norm].name, "samples",
                                  (double)j->train_count * runs * j->options.epochs,
                                  !j->terminal || look_fills_terminal(&j->options.look));
    if (sweep) find_rate(j, norm, &bar);
    const bool going = !interrupted && !ng_failed();
    if (going && sweep && !j->terminal) print_rate(j, norm);
    const bool whole = going && run_all(j, norm, false, j->options.seeds, &bar);
    progress_end(&bar);
    if (j->terminal && !bar.off && whole) {
        const curves *c = &j->curves[norm];
        const number_spread accuracy = number_spread_at(c, ACCURACY, c->epochs - 1);
        printf("%-18s lr %-6g validation accuracy %.2f %%  %.1f s\n", norms[norm].name,
               own_rate(j, norm), 100 * accuracy.median, c->seconds);
    }
}

/* ---- Results ---- */

static void print_table(const job *j)
{
    printf("\n%-18s %10s %7s %14s   %s\n", "", "", "", "training loss", "validation accuracy (%)");
    printf("%-18s %10s %7s %14s   %-7s %-7s %-7s %7s\n", "norm", "parameters", "lr", "median",
           "median", "lowest", "highest", "time");
    for (int i = 0; i < NORMS; i++) {
        const curves *c = &j->curves[i];
        const int epochs = epochs_reached(c);
        if (epochs == 0) continue;
        const number_spread loss = number_spread_at(c, LOSS, epochs - 1);
        const number_spread accuracy = number_spread_at(c, ACCURACY, epochs - 1);
        printf("%-18s %10lld %7g %14.2e   %6.2f  %6.2f  %7.2f %5.1f s\n", norms[i].name,
               (long long)c->parameters, own_rate(j, i), loss.median, 100 * accuracy.median,
               100 * accuracy.low, 100 * accuracy.high, c->seconds);
    }
}

static int end_interrupted(const job *j)
{
    printf(has_results(j->curves, NORMS) ? "Interrupted. The results so far are in %s.dat.\n"
                                         : "Interrupted in the first epoch: no curves are saved.\n",
           j->options.out);
    return EXIT_INTERRUPTED;
}

/* ---- Main ---- */

static void print_opening(const job *j)
{
    char network[96], rates[128];
    describe_network(j, network, sizeof network);
    describe_rates(j, rates, sizeof rates);
    printf("%lld samples for training, %lld for validation, network %s, %d epoch%s, %d seed%s;\n"
           "%s, %s\n\n",
           (long long)j->train_count, (long long)(ng_dataset_count(j->data) - j->train_count),
           network, j->options.epochs, j->options.epochs == 1 ? "" : "s", j->options.seeds,
           j->options.seeds == 1 ? "" : "s", optimizers[j->options.optimizer].key, rates);
    fflush(stdout);
}

static int work(job *j)
{
    if (!can_write("out", j->options.out) || !read_data(j)) return EXIT_FAILED;
    print_opening(j);
    look_begin(&j->options.look);
    for (int i = 0; i < NORMS && !interrupted && !ng_failed(); i++)
        if (j->options.norm[i]) run_norm(j, i);
    look_end(&j->options.look);
    if (ng_failed()) return EXIT_FAILED;

    if (has_results(j->curves, NORMS)) {
        print_table(j);
        if (!write_history(j)) return EXIT_FAILED;
    }
    putchar('\n');
    const bool drawn = draw_figure("plots/convergence.gp", j->options.out, !j->options.no_plot);
    if (interrupted) return end_interrupted(j);
    return drawn ? EXIT_SUCCESS : EXIT_FAILED;
}

int main(int argc, char **argv)
{
    program_begin(argv);
    job j = {.options = parse_options(argc, argv), .terminal = progress_terminal()};
    ng_set_threads(0);
    if (j.options.at_once == 0) j.options.at_once = ng_threads();
    if (j.options.look.live) j.options.at_once = 1; /* the live figure shows one training */
    ng_set_threads(j.options.threads);
    catch_signals();
    make_curves(j.curves, NORMS, j.options.seeds, j.options.epochs);
    make_curves(j.trial, RATES, TRIALS, j.options.epochs);
    for (int k = 0; k < RATES; k++) j.trial[k].first_seed = MAX_SEEDS; /* above every scored seed */
    const int status = work(&j);
    clear_curves(j.curves, NORMS), clear_curves(j.trial, RATES);
    ng_dataset_free(j.data);
    return program_end(status);
}
