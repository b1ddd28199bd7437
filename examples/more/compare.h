/* A comparison of norms on labelled samples: options, training from several seeds at once, the best
 * learning rate of each norm, checkpoints, a table, and the figure. The program has the data and
 * the network:
 *
 *     static comparison digits = {.norms = "none,layer", ..., .read = read_data,
 *                                 .network = make_network, .optimizer = make_optimizer};
 *     int main(int argc, char **argv) { return compare_norms(&digits, argc, argv); } */
#ifndef EXAMPLES_COMPARE_H
#define EXAMPLES_COMPARE_H

#include "norms.h"
#include "numbers.h"
#include "training.h"
#include <stdatomic.h>

/* The candidate rates are the lowest one, twice that... */
enum { RATES = 8, TRIALS = 3, MOST_SEEDS = 100, MOST_AT_ONCE = 64 };
enum { LOSS, ACCURACY, MEASURED };

/* The trainings of one network from the seeds first_seed, first_seed + 1... */
typedef struct {
    ng_tensor *measured[MOST_SEEDS]; /* (MEASURED, epochs), or NULL */
    int64_t done[MOST_SEEDS];        /* epochs completed */
    int first_seed;
    int64_t parameters;
    double seconds[MOST_SEEDS];
} runs;

typedef struct {
    double rate; /* at which the norm is trained; if it was searched, also: */
    number_spread loss[RATES];
    int tried, best;
} search;

typedef struct comparison comparison;
struct comparison {
    const char *usage, *prefix; /* --help; the names of the program's files */
    const char *norms;          /* the keys that --norm may name */
    const char *script;         /* draws the figure; NULL: ng_plot does */
    option_table own;           /* options of this program */
    int seeds, epochs, batch;   /* defaults of options */
    double lr;                  /* the same; 0: the best of eight rates for each norm */
    training_options with;

    /* Sets the members below, the classes with count_classes. */
    bool (*read)(comparison *c);
    ng_dataset *data, *test; /* test: NULL if it is the rest of the data, split by the seed */
    int64_t train;           /* samples to train on */
    char network_text[96];
    const char *optimizer_name;
    double lowest_rate; /* of a search */
    int64_t classes;

    /* Without a norm, `norm` is ng_norm_none. */
    ng_module *(*network)(const comparison *c, ng_norm_maker *norm);
    ng_optimizer *(*optimizer)(const comparison *c, ng_module *net, double lr, int64_t steps);

    /* The harness's own. */
    bool chosen[NORMS], no_plot;
    int at_once;
    char out[LONGEST_TEXT + 100];
    runs results[NORMS], trials[RATES]; /* trials: of one norm at each rate */
    search searched[NORMS];
    progress bar;
    atomic_llong seen; /* samples, for the progress */
    int norm, count;   /* what runs now: so many trainings of this norm */
    bool on_trial;     /* at the candidate rates, TRIALS each; otherwise from the seeds */
    atomic_int next;   /* that no thread has taken */
};

static const norm_choice *norm_of(const comparison *c, int i) { return norm_in_list(c->norms, i); }

/* ---- Options and data ---- */

static void read_comparison_options(comparison *c, int argc, char **argv)
{
    const char *out = NULL;
    char norms_help[96], out_help[96];
    program_option known[MOST_OPTIONS] = {{0}};
    snprintf(norms_help, sizeof norms_help, "some of %s (all)", c->norms);
    snprintf(out_help, sizeof out_help, "prefix of the .dat and the figure (build/%s)", c->prefix);
    const program_option common[] = {
        OPTION_LIST("norm", "LIST", norms_help, c->chosen, c->norms),
        OPTION_COUNT("seeds", "N", "runs of each norm", &c->seeds, 1, MOST_SEEDS),
        OPTION_COUNT("epochs", "N", "passes over the training data", &c->epochs, 1, 100000),
        OPTION_COUNT("batch", "N", "samples per step", &c->batch, 1, 1000000),
        OPTION_RATE("lr", "RATE",
                    c->lr > 0 ? "learning rate" : "one learning rate for all norms: no search",
                    &c->lr),
        OPTION_TEXT("out", "PREFIX", out_help, &out),
        OPTION_SWITCH("no-plot", "draw no figure", &c->no_plot),
        OPTION_COUNT("at-once", "N", "concurrent trainings; 0: one per processor", &c->at_once, 0,
                     MOST_AT_ONCE),
        TRAINING_OPTIONS(c->with)};
    const int count = sizeof common / sizeof *common;
    memcpy(known, common, sizeof common);
    memcpy(known + count, c->own.rows, (size_t)c->own.count * sizeof *known);
    refuse_more(argc, argv,
                read_options(argc, argv, c->usage, (option_table){known, count + c->own.count},
                             CTRL_C_HELP));
    choose_prefix(c->out, sizeof c->out, out, c->prefix);
    bool some = false;
    for (int i = 0; i < NORMS; i++) some = some || c->chosen[i];
    for (int i = 0; norm_of(c, i) && !some; i++) c->chosen[i] = true;
    ng_set_threads(0);
    if (c->with.live) c->at_once = 1; /* the live figure shows one training */
    if (c->at_once == 0) c->at_once = ng_threads();
}

/* Returns the samples with x in another shape, or NULL. */
static inline ng_dataset *as_images(const ng_dataset *samples, ng_shape shape)
{
    ng_tape *tape = ng_tape_new();
    ng_tensor *x = ng_reshape(tape, samples ? ng_dataset_x(samples) : NULL, shape);
    ng_dataset *images = x ? ng_dataset_from(x, ng_dataset_y(samples)) : NULL;
    ng_tape_free(tape);
    return images;
}

/* Sets the number of classes, one more than the largest label. */
static bool count_classes(comparison *c)
{
    const ng_tensor *y = c->data ? ng_dataset_y(c->data) : NULL;
    for (int64_t i = 0; y && i < ng_size(y) && !ng_failed(); i++) {
        const int64_t label = (int64_t)ng_get(y, i);
        if (label < 0) ng_fail(NG_EVALUE, "label %lld, expected 0 or more", (long long)label);
        if (label >= c->classes) c->classes = label + 1;
    }
    return !ng_failed();
}

/* A last batch of one sample is left out: BatchNorm cannot train on it. */
static bool drops_last(const comparison *c)
{
    return c->train > c->batch && c->train % c->batch == 1;
}

/* ---- One training ---- */

typedef struct {
    comparison *c;
    const char *name; /* of the norm */
    int place, seed;  /* index in the runs */
    bool shows;       /* draws the progress */
    ng_module *net;
    ng_optimizer *optimizer;
    ng_tape *tape;
    ng_dataset *train, *test;
    ng_training *run;
    ng_history *watched; /* or NULL */
    double sum, seen;    /* of losses, of samples in this epoch */
} one_training;

/* Returns the fraction of samples whose largest logit is that of the label. */
static double accuracy_of(ng_module *net, ng_tape *tape, ng_dataset *data)
{
    ng_batch batch;
    double right = 0;
    ng_eval(net);
    ng_tape_set_recording(tape, false);
    for (int i = 0; ng_dataset_batch(data, tape, i, 256, &batch); i++) {
        right += ng_accuracy(ng_forward(net, tape, batch.x), batch.y) * (double)batch.size;
        ng_tape_reset(tape);
    }
    ng_tape_set_recording(tape, true);
    ng_train(net);
    return right / (double)ng_dataset_count(data);
}

/* Trains on the rest of the epoch. Returns the mean loss. It is not finite after divergence. */
static double run_epoch(one_training *t)
{
    comparison *c = t->c;
    ng_batch batch;
    char detail[64];
    if (ng_training_at(t->run).batch == 0) t->sum = t->seen = 0;
    while (ng_training_batch(t->run, c->batch, &batch, .drop_last = drops_last(c))) {
        ng_tensor *loss = ng_cross_entropy(t->tape, ng_forward(t->net, t->tape, batch.x), batch.y);
        if (ng_backward(t->tape, loss) || ng_optimizer_step(t->optimizer)) break;
        t->sum += ng_item(loss) * (double)batch.size;
        t->seen += (double)batch.size;
        watch_step(t->watched, t->net, ng_optimizer_steps(t->optimizer));
        ng_tape_reset(t->tape);
        const long long seen = atomic_fetch_add(&c->seen, batch.size) + batch.size;
        snprintf(detail, sizeof detail, "epoch %d/%d  loss %.4f",
                 (int)ng_training_at(t->run).epoch + 1, c->epochs, t->sum / t->seen);
        if (t->shows) progress_show(&c->bar, (double)seen, detail);
        if (!isfinite(t->sum)) break;
        if (interrupted) ng_training_stop(t->run);
    }
    return t->sum / t->seen;
}

/* Runs an epoch and measures the accuracy. Returns whether the training goes on. One that diverges
 * ends: the remaining epochs get an infinite loss and the present accuracy. Where a rate is tried,
 * that is a result, not a failure. */
static bool measure_epoch(one_training *t, runs *r)
{
    comparison *c = t->c;
    const int epoch = (int)ng_training_at(t->run).epoch;
    const double loss = run_epoch(t);
    if (interrupted || ng_failed()) return false;
    const double accuracy = accuracy_of(t->net, t->tape, t->test);
    const bool goes_on =
        isfinite(loss) || (!c->on_trial && still_trains(loss, "%s, seed %d, epoch %d: the loss",
                                                        t->name, t->seed, epoch + 1));
    const int last = goes_on ? epoch + 1 : c->epochs;
    for (int k = epoch; k < last && !ng_failed(); k++) {
        ng_set(r->measured[t->place], k, goes_on ? loss : HUGE_VAL);
        ng_set(r->measured[t->place], c->epochs + k, accuracy);
    }
    r->done[t->place] = last;
    if (t->shows && !c->on_trial && c->with.curves) {
        char title[96];
        snprintf(title, sizeof title, "%s, seed %d of %d", t->name, t->place + 1, c->seeds);
        ng_history_log(c->with.curves, "train_loss", last, loss);
        ng_history_log(c->with.curves, "val_accuracy", last, accuracy);
        draw_live(&c->with, title);
    }
    return goes_on;
}

/* Trains from the seed at a place of the runs. The seed draws the split and the weights. */
static void train_one(comparison *c, runs *r, int place, double lr, bool shows)
{
    const norm_choice *choice = norm_of(c, c->norm);
    one_training t = {.c = c, .name = choice->name, .place = place};
    setting batch = {.name = "batch", .now = c->batch};
    char key[64];
    t.seed = r->first_seed + place, t.shows = shows;
    snprintf(key, sizeof key, c->on_trial ? "%s-%g" : "%s", choice->key, lr);
    ng_dataset *rest = NULL;
    if (c->train < ng_dataset_count(c->data))
        ng_dataset_split_new(c->data, c->train, (uint64_t)t.seed, &t.train, &rest);
    else
        t.train = ng_dataset_from(ng_dataset_x(c->data), ng_dataset_y(c->data));
    t.test = c->test ? c->test : rest;
    t.net = c->network(c, choice->image && ng_rank(ng_dataset_x(c->data)) == 4 ? choice->image
                                                                               : choice->features);
    ng_module_init(t.net, (uint64_t)t.seed);
    const int64_t steps = (c->train + c->batch - 1) / c->batch - drops_last(c);
    t.optimizer = c->optimizer(c, t.net, lr, steps * c->epochs);
    t.tape = ng_tape_new();
    r->measured[place] = ng_zeros_new(NG_F64, NG_SHAPE(MEASURED, c->epochs));
    r->parameters = t.net ? ng_parameter_count(t.net) : 0;
    if (place == 0 && !c->on_trial && c->with.watch) t.watched = ng_history_new(t.name);
    if (t.watched) ng_watch(t.net, t.watched, -1);
    t.run = training_new(&c->with, t.optimizer, t.tape, t.train, key, t.seed);
    ng_training_keep_number(t.run, "sum", &t.sum);
    ng_training_keep_number(t.run, "seen", &t.seen);
    ng_training_keep_count(t.run, "done", &r->done[place]);
    ng_training_keep_tensor(t.run, "loss and accuracy by epoch", r->measured[place]);
    const bool begun = training_begin(&c->with, t.run, &batch, 1);
    while (begun && ng_training_epoch(t.run, c->epochs) && measure_epoch(&t, r)) continue;
    draw_layers(t.watched, c->out, key);
    ng_training_free(t.run), ng_tape_free(t.tape), ng_optimizer_free(t.optimizer);
    ng_module_free(t.net), ng_dataset_free(t.train), ng_dataset_free(rest);
    ng_history_free(t.watched);
}

/* ---- Many trainings ---- */

static double rate_of(const comparison *c, int k) { return ldexp(c->lowest_rate, k); }

static void print_run(comparison *c, int place)
{
    const runs *r = &c->results[c->norm];
    if (r->done[place] < c->epochs || fills_terminal(&c->with)) return;
    progress_end(&c->bar);
    printf("%-18s seed %d/%d  loss %.4f  validation accuracy %6.2f %%  %.1f s\n",
           norm_of(c, c->norm)->name, place + 1, c->seeds,
           ng_at(r->measured[place], LOSS, c->epochs - 1),
           100 * ng_at(r->measured[place], ACCURACY, c->epochs - 1), r->seconds[place]);
    fflush(stdout);
}

/* One of several threads: takes the next training until there is none. */
static ng_status run_some(ng_group *group, void *with)
{
    comparison *c = with;
    runs *results = &c->results[c->norm];
    const bool shows = ng_group_rank(group) == 0;
    for (int i; !interrupted && !ng_failed() && (i = atomic_fetch_add(&c->next, 1)) < c->count;) {
        const double began = progress_clock();
        const int k = i / TRIALS;
        if (c->on_trial) {
            train_one(c, &c->trials[k], i % TRIALS, rate_of(c, k), shows);
        } else {
            train_one(c, results, i, c->searched[c->norm].rate, shows);
            results->seconds[i] = progress_clock() - began;
            print_run(c, i);
        }
    }
    return ng_failed() ? ng_error_status() : NG_OK;
}

/* Returns whether all of them completed. */
static bool run_all(comparison *c, bool on_trial, int count)
{
    c->on_trial = on_trial, c->count = count;
    c->next = 0;
    return ng_group_run(run_some, c, c->at_once < count ? c->at_once : count) == NG_OK &&
           !interrupted;
}

static void free_runs(runs *r)
{
    for (int i = 0; i < MOST_SEEDS; i++) ng_tensor_free(r->measured[i]);
    *r = (runs){.first_seed = r->first_seed};
}

/* Trains at every candidate rate, from seeds that are not scored, and chooses the norm's rate: that
 * whose worst seed has the lowest loss, the mean of its last five epochs. */
static void find_rate(comparison *c)
{
    search *s = &c->searched[c->norm];
    const int last = c->epochs < 5 ? c->epochs : 5;
    for (int k = 0; k < RATES; k++) free_runs(&c->trials[k]);
    if (!run_all(c, true, RATES * TRIALS)) return;
    for (; s->tried < RATES; s->tried++) {
        double loss[TRIALS] = {0};
        for (int i = 0; i < TRIALS * last; i++)
            loss[i / last] +=
                ng_at(c->trials[s->tried].measured[i / last], LOSS, c->epochs - 1 - i % last) /
                last;
        s->loss[s->tried] = number_spread_of(loss, TRIALS);
        if (s->loss[s->tried].high < s->loss[s->best].high) s->best = s->tried;
    }
    s->rate = rate_of(c, s->best);
    if (fills_terminal(&c->with)) return;
    progress_end(&c->bar);
    printf("%-18s best of %d learning rates: %g%s\n", norm_of(c, c->norm)->name, RATES, s->rate,
           s->best == 0           ? ", the lowest; a lower rate may be better"
           : s->best == RATES - 1 ? ", the highest; a higher rate may be better"
                                  : "");
    fflush(stdout);
}

static void run_norm(comparison *c, int norm)
{
    const char *name = norm_of(c, norm)->name;
    const bool search_rates = c->lr == 0;
    const double count = c->seeds + (search_rates ? RATES * TRIALS : 0);
    if (c->with.curves) ng_history_block(c->with.curves, name);
    c->bar = progress_begin(name, "samples", (double)c->train * count * c->epochs,
                            !progress_terminal() || fills_terminal(&c->with));
    c->searched[norm].rate = c->lr;
    c->norm = norm;
    c->seen = 0;
    if (search_rates) find_rate(c);
    if (!interrupted && !ng_failed()) run_all(c, false, c->seeds);
    progress_end(&c->bar);
}

/* ---- Results ---- */

/* Returns the spread over the runs that have completed the epoch. */
static number_spread spread_at(const comparison *c, const runs *r, int which, int epoch)
{
    double reached[MOST_SEEDS];
    int count = 0;
    for (int i = 0; i < c->seeds; i++)
        if (r->done[i] > epoch) reached[count++] = ng_at(r->measured[i], which, epoch);
    return number_spread_of(reached, count);
}

/* Returns the most epochs that any run of a norm has completed. */
static int epochs_reached(const runs *r)
{
    int64_t most = 0;
    for (int i = 0; i < MOST_SEEDS; i++)
        if (r->done[i] > most) most = r->done[i];
    return (int)most;
}

/* Returns whether there is a result. */
static bool print_table(const comparison *c)
{
    static const char table_head[] =
        "\n                                       training loss   validation accuracy (%)\n"
        "norm               parameters      lr         median   median  lowest  highest     time";
    bool any = false;
    for (int i = 0; norm_of(c, i); i++) {
        const runs *r = &c->results[i];
        const int epochs = epochs_reached(r);
        if (epochs == 0) continue;
        if (!any) puts(table_head);
        any = true;
        const number_spread loss = spread_at(c, r, LOSS, epochs - 1);
        const number_spread accuracy = spread_at(c, r, ACCURACY, epochs - 1);
        double seconds = 0;
        for (int k = 0; k < c->seeds; k++) seconds += r->seconds[k];
        printf("%-18s %10lld %7g %14.2e   %6.2f  %6.2f  %7.2f %5.1f s\n", norm_of(c, i)->name,
               (long long)r->parameters, c->searched[i].rate, loss.median, 100 * accuracy.median,
               100 * accuracy.low, 100 * accuracy.high, seconds);
    }
    if (any) putchar('\n');
    return any;
}

static void log_spread(ng_history *history, const char *series, int step, number_spread s)
{
    char name[32];
    ng_history_log(history, series, step, s.median);
    snprintf(name, sizeof name, "%s_low", series);
    ng_history_log(history, name, step, s.quarter);
    snprintf(name, sizeof name, "%s_high", series);
    ng_history_log(history, name, step, s.three_quarters);
}

/* Logs the columns that plots/convergence.gp draws: a block for each norm, and one for its
 * search. */
static void log_results(const comparison *c, ng_history *history)
{
    for (int i = 0; norm_of(c, i); i++) {
        const runs *r = &c->results[i];
        const int epochs = epochs_reached(r);
        if (epochs > 0) ng_history_block(history, norm_of(c, i)->name);
        for (int epoch = 0; epoch < epochs; epoch++) {
            const number_spread loss = spread_at(c, r, LOSS, epoch);
            ng_history_log(history, "seeds", epoch + 1, loss.count);
            log_spread(history, "train_loss", epoch + 1, loss);
            log_spread(history, "val_accuracy", epoch + 1, spread_at(c, r, ACCURACY, epoch));
        }
    }
    for (int i = 0; norm_of(c, i); i++) {
        const search *s = &c->searched[i];
        char block[64];
        snprintf(block, sizeof block, "%s by rate", norm_of(c, i)->name);
        if (s->tried > 0) ng_history_block(history, block);
        for (int k = 0; k < s->tried; k++) {
            ng_history_log(history, "rate", k, rate_of(c, k));
            ng_history_log(history, "train_loss", k, s->loss[k].median);
            ng_history_log(history, "train_loss_low", k, s->loss[k].low);
            ng_history_log(history, "train_loss_high", k, s->loss[k].high);
            ng_history_log(history, "best", k, k == s->best);
        }
    }
}

/* Writes what was done: "1437 samples to train, 360 to validate; network 64-128-10; ..." */
static void describe(const comparison *c, char *text, size_t bytes)
{
    char rates[96];
    const int64_t rest = ng_dataset_count(c->test ? c->test : c->data) - (c->test ? 0 : c->train);
    snprintf(rates, sizeof rates, "lr %g", c->lr);
    if (c->lr == 0)
        snprintf(rates, sizeof rates, "the best of %d rates from %g to %g on seeds %d to %d", RATES,
                 rate_of(c, 0), rate_of(c, RATES - 1), MOST_SEEDS, MOST_SEEDS + TRIALS - 1);
    snprintf(text, bytes,
             "%lld samples to train, %lld to validate; network %s; %s, %s; batch %d; seeds 0 to "
             "%d; float32",
             (long long)c->train, (long long)rest, c->network_text, c->optimizer_name, rates,
             c->batch, c->seeds - 1);
}

/* Writes PREFIX.dat and draws it. Returns whether that has worked. */
static bool write_results(const comparison *c, const char *what)
{
    static const char *const series[] = {"train_loss", "val_accuracy", NULL};
    ng_history *history = ng_history_new(what);
    log_results(c, history);
    bool done = !ng_failed() && write_dat(history, c->out);
    if (done && c->script)
        done = draw_figure(c->script, c->out, !c->no_plot);
    else if (done && !c->no_plot)
        draw_panels(history, c->out, series, "epoch");
    ng_history_free(history);
    return done;
}

/* ---- Main ---- */

static int compare(comparison *c)
{
    char what[512];
    if (!can_write("out", c->out) || !c->read(c)) return EXIT_FAILED;
    describe(c, what, sizeof what);
    printf("%s; %d epoch%s\n\n", what, c->epochs, c->epochs == 1 ? "" : "s");
    fflush(stdout);
    for (int i = 0; norm_of(c, i) && !interrupted && !ng_failed(); i++)
        if (c->chosen[i]) run_norm(c, i);
    if (ng_failed()) return EXIT_FAILED;
    const bool any = print_table(c), written = any && write_results(c, what);
    if (interrupted)
        printf(any ? "Interrupted. The results so far are in %s.dat.\n"
                   : "Interrupted in the first epoch: no curves are saved.\n",
               c->out);
    return interrupted ? EXIT_INTERRUPTED : written ? EXIT_SUCCESS : EXIT_FAILED;
}

static int compare_norms(comparison *c, int argc, char **argv)
{
    program_begin(argv);
    read_comparison_options(c, argc, argv);
    begin_trainings(&c->with);
    for (int k = 0; k < RATES; k++) c->trials[k].first_seed = MOST_SEEDS; /* not scored */
    const int status = compare(c);
    for (int i = 0; i < NORMS; i++) free_runs(&c->results[i]);
    for (int k = 0; k < RATES; k++) free_runs(&c->trials[k]);
    ng_history_free(c->with.curves);
    ng_dataset_free(c->data), ng_dataset_free(c->test);
    return program_end(status);
}

#endif
