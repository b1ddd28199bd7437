/* The frame of all experiments: options, networks for the digits, statistics over seeds, and a
 * verdict on each part of the claim. The first failure ends the program without saving anything.
 *
 *     lab_begin(argc, argv, &(lab_experiment){.id = "example", ..., .sizes = sizes});
 *     lab_data("loss by epoch; network 64-%d-10", get_whole(WIDTH));
 *     curve_set *c = new_curves("epoch", "%s", "LayerNorm");
 *     for (int seed = 0; seed < lab_seeds() && still_works(); seed++) {
 *         ...
 *         log_curves(c, seed, "loss", epoch, loss);
 *     }
 *     lab_judge("LayerNorm", losses, lab_below(1), "loss");
 *     return lab_end(); */
#ifndef CLAIMS_LAB_H
#define CLAIMS_LAB_H

#include "../more/harness.h"

/* ---- The experiment ---- */

typedef struct {
    const char *id;     /* name of the claim and of the files */
    const char *source; /* for example "Zhang & Sennrich 2019, table 1; document 001" */
    const char *claim;  /* the claim, in a sentence */
    const char *method; /* what this program measures, in sentences */
    const char *rule;   /* the condition under which a part of the claim holds */
    const char *figure; /* drawn by plots/FIGURE.gp; default: id */
    const char *dtype;  /* of the computation; default: float32 */
    int seeds;          /* 1 with --quick */
    option *sizes;      /* numbers, read by get_whole and get_number; NULL: none */
} lab_experiment;

enum { LAB_SEEDS, LAB_SEED, LAB_OUT, LAB_QUICK };
static option lab_options[] = {
    [LAB_SEEDS] = {"seeds", "runs of each kind", .most = MOST_SEEDS, .quick = 1},
    [LAB_SEED] = {"seed", "first seed", .zero = true},
    [LAB_OUT] = {"out", "prefix of the .dat and .tsv, in build/ without it", .text = ""},
    [LAB_QUICK] = {"quick", "smoke run: small, with meaningless results", .is_switch = true},
    {0}};

/* What a part claims of its effect. */
typedef struct {
    double least, most;
} lab_range;

static inline lab_range lab_above(double threshold) { return (lab_range){threshold, HUGE_VAL}; }
static inline lab_range lab_below(double threshold) { return (lab_range){-HUGE_VAL, threshold}; }
static inline lab_range lab_near(double around, double distance)
{
    return (lab_range){around - distance, around + distance};
}

/* A part of a claim measures one number for each seed, such as a norm's accuracy less that of no
 * norm from the same split and weights. The effect is the median of these numbers. Its interval,
 * from the sign test, assumes no distribution and contains the true median with probability
 * 1 - 0.05 / m for each of m parts, so with 95 % for all parts together. The part holds if the
 * interval lies in the range that it claims, fails if it lies beside the range, and is inconclusive
 * otherwise, also if there are too few seeds for an interval: it needs 6 for one part, 9 for 12. */
typedef struct {
    const char *norm;     /* "BatchNorm"; NULL: the part is not about one norm */
    const double *values; /* sorted */
    int count;
    lab_range claimed;
    line name;
} lab_part;

enum { MOST_PARTS = 64, LAB_TUNING_SEEDS = 3 };
static struct {
    const lab_experiment *experiment;
    line prefix;
    time_t began;
    ng_tape *numbers; /* memory of all that lab_numbers has returned */
    lab_part parts[MOST_PARTS];
    int part_count;
} lab;

static inline bool lab_quick(void) { return lab_options[LAB_QUICK].value > 0; }
static inline int lab_seeds(void) { return (int)lab_options[LAB_SEEDS].value; }
static inline uint64_t lab_seed(int i)
{
    return (uint64_t)lab_options[LAB_SEED].value + (uint64_t)i;
}

/* Returns the text with its lines broken between words at 90 columns. */
static inline line broken(line text)
{
    char *begin = text.text, *space = NULL;
    for (char *at = begin; *at; at++) {
        if (*at == ' ') space = at;
        if (at - begin >= 90 && space) *space = '\n', begin = space + 1, space = NULL;
        if (*at == '\n') begin = at + 1, space = NULL;
    }
    return text;
}

/* Reads the options and prints the opening. Exits on --help and on a wrong option. */
static inline void lab_begin(int argc, char **argv, const lab_experiment *e)
{
    static option none[] = {{0}};
    const line usage =
        broken(line_of("usage: %s [options]\n\nThe claim: %s\n(%s)\n\n%s\n\nThe rule: %s\n", e->id,
                       e->claim, e->source, e->method, e->rule));
    option *sizes = e->sizes ? e->sizes : none;
    lab.experiment = e;
    lab.began = time(NULL);
    lab_options[LAB_SEEDS].normal = e->seeds;
    begin_program(argc, argv, usage.text, sizes, lab_options);
    for (option *o = sizes; o->name && lab_quick(); o++)
        if (o->quick > 0) o->value = o->quick;
    if (lab_quick()) lab_options[LAB_SEEDS].value = lab_options[LAB_SEEDS].quick;
    lab.prefix = choose_prefix(lab_options[LAB_OUT].text, e->figure ? e->figure : e->id);
    ng_set_threads(1);
    puts(broken(line_of("%s\n(%s)\n\n%s\n", e->claim, e->source, e->method)).text);
    fflush(stdout);
}

/* Begins PREFIX.dat with its content, the seeds, the dtype and the version. */
#define lab_data(...) lab_begin_data(line_of(__VA_ARGS__))
static inline void lab_begin_data(line what)
{
    const unsigned long long first = lab_seed(0), last = lab_seed(lab_seeds() - 1);
    const line seeds =
        last > first ? line_of("seeds %llu to %llu", first, last) : line_of("seed %llu", first);
    begin_data("%s; %s; %s", what.text, seeds.text,
               lab.experiment->dtype ? lab.experiment->dtype : "float32");
}

/* ---- Numbers ---- */

/* Returns `count` zeros that live until the program ends. */
static inline double *lab_numbers(int64_t count)
{
    if (!lab.numbers) lab.numbers = ng_tape_new();
    double *zeros = ng_data_f64(ng_full(lab.numbers, NG_F64, NG_SHAPE(count), 0));
    still_works();
    return zeros;
}

/* Returns the values that are not NaN, in order, and sets how many there are. */
static inline double *lab_sorted(const double *values, int64_t count, int *kept)
{
    double *sorted = lab_numbers(count > 0 ? count : 1);
    *kept = 0;
    for (int64_t i = 0; i < count; i++)
        if (!isnan(values[i])) sorted[(*kept)++] = values[i];
    median_of(sorted, *kept);
    return sorted;
}

/* Returns the median of the values that are not NaN; Inf counts as largest. */
static inline double lab_median(const double *values, int64_t count)
{
    int kept;
    double *sorted = lab_sorted(values, count, &kept);
    return median_of(sorted, kept);
}

/* Returns the slope of the least-squares line. Points that are not finite are left out. */
static inline double lab_slope(const double *x, const double *y, int count)
{
    double n = 0, sx = 0, sy = 0, sxx = 0, sxy = 0;
    for (int i = 0; i < count; i++) {
        if (!isfinite(x[i]) || !isfinite(y[i])) continue;
        n++, sx += x[i], sy += y[i], sxx += x[i] * x[i], sxy += x[i] * y[i];
    }
    return (n * sxy - sx * sy) / (n * sxx - sx * sx);
}

/* Returns values[i] / base[i] for each seed, and 1 where both are infinite (neither reached the
 * target). For parts that compare two kinds. */
static inline const double *lab_quotients(const double *values, const double *base)
{
    double *quotients = lab_numbers(lab_seeds());
    for (int i = 0; i < lab_seeds(); i++)
        quotients[i] = isinf(values[i]) && isinf(base[i]) ? 1 : values[i] / base[i];
    return quotients;
}

/* Returns values[i] - base[i] for each seed. */
static inline const double *lab_less(const double *values, const double *base)
{
    double *less = lab_numbers(lab_seeds());
    for (int i = 0; i < lab_seeds(); i++) less[i] = values[i] - base[i];
    return less;
}

/* ---- The verdicts ---- */

/* Adds a part, of a value for each seed; NaN is left out. The name says: what is compared, where
 * and in which unit ("steps to 95 %, Adam, own rates, as a share of no norm's"). */
#define lab_judge(norm, values, claimed, ...)                                                      \
    lab_judge_all(lab_seeds(), norm, values, claimed, __VA_ARGS__)
#define lab_judge_all(count, norm, values, claimed, ...)                                           \
    lab_add_part((lab_part){norm, values, count, claimed, line_of(__VA_ARGS__)})
static inline void lab_add_part(lab_part part)
{
    if (lab.part_count == MOST_PARTS) give_up(EXIT_FAILURE, "more than 64 parts");
    part.values = lab_sorted(part.values, part.count, &part.count);
    lab.parts[lab.part_count++] = part;
}

/* Returns `below` such that the median of the distribution lies between sorted[below] and
 * sorted[count - 1 - below] of `count` sorted values, with an error probability of at most
 * `missed`: the narrowest interval of the sign test. The probability that the median is outside is
 * twice the chance of at most `below` heads in `count` tosses of a coin. -1 if there are too few
 * values. */
static inline int median_interval(int count, double missed)
{
    double exactly = ldexp(1, 1 - count), chance = 0; /* twice P(k heads), twice P(at most k) */
    int below = -1;
    for (int k = 0; 2 * k < count; k++) {
        chance += exactly;
        if (chance > missed) break;
        below = k;
        exactly *= (double)(count - k) / (k + 1);
    }
    return below;
}

/* Prints a part's row of the table, and to `file` its line. */
static inline void lab_print_verdict(const lab_part *part, FILE *file)
{
    const lab_range claimed = part->claimed;
    const int n = part->count, below = median_interval(n, 0.05 / lab.part_count);
    const int end = below < 0 ? 0 : below;
    const double *sorted = part->values, none = (double)NAN, effect = lab_median(sorted, n);
    const double low = n ? sorted[end] : none, high = n ? sorted[n - 1 - end] : none;
    const bool no_least = isinf(claimed.least), no_most = isinf(claimed.most);
    const bool inside = (no_least || low > claimed.least) && (no_most || high < claimed.most);
    const bool beside = (!no_least && high <= claimed.least) || (!no_most && low >= claimed.most);
    const char *verdict = below < 0 ? "inconclusive"
                          : inside  ? "holds"
                          : beside  ? "fails"
                                    : "inconclusive";
    const line threshold = no_least  ? line_of("< %.4g", claimed.most)
                           : no_most ? line_of("> %.4g", claimed.least)
                                     : line_of("%.4g +- %.2g", (claimed.least + claimed.most) / 2,
                                               (claimed.most - claimed.least) / 2);
    printf("%-12s  %10.4g  %-23s %3d  %-15s %s%s%s\n", verdict, effect,
           line_of("%.4g to %.4g", low, high).text, n, threshold.text, part->norm ? part->norm : "",
           part->norm ? ": " : "", part->name.text);
    fprintf(file, "%s\t%s\t%s\t%.6g\t%.6g\t%.6g\t%d\t%s\t%s\n", lab.experiment->id, part->name.text,
            part->norm ? part->norm : "-", effect, low, high, n, threshold.text, verdict);
}

/* Writes the data, and prints the rule and a table of the parts. Writes the parts to PREFIX.tsv, as
 * lines of id, part, norm, effect, low, high, n, threshold, verdict. Returns the exit status, which
 * does not depend on the verdicts. */
static inline int lab_end(void)
{
    const lab_experiment *e = lab.experiment;
    char *lines = NULL;
    size_t size = 0;
    end_data(lab.prefix.text);
    printf("Data: %s.dat. To draw it: gnuplot -c plots/%s.gp %s\n", lab.prefix.text,
           e->figure ? e->figure : e->id, lab.prefix.text);
    puts(broken(line_of("%.0f s. The rule: %s", difftime(time(NULL), lab.began), e->rule)).text);
    printf("\n%-12s  %10s  %-23s %3s  %-15s %s\n", "verdict", "effect", "95 % of all parts", "n",
           "claimed", "part");
    FILE *file = open_memstream(&lines, &size);
    if (!file) give_up(EXIT_FAILURE, "out of memory");
    for (int i = 0; i < lab.part_count; i++) lab_print_verdict(&lab.parts[i], file);
    fclose(file);
    ng_file_write(line_of("%s.tsv", lab.prefix.text).text, lines, (int64_t)size);
    free(lines);
    return end_program(EXIT_SUCCESS);
}

/* ---- Tuning ---- */

typedef double lab_score(void *context, double rate, uint64_t seed);

/* The median over seeds that are not scored otherwise. NaN counts as Inf. */
static inline double lab_median_score(double rate, lab_score *score, void *context)
{
    double scores[LAB_TUNING_SEEDS];
    for (int i = 0; i < LAB_TUNING_SEEDS && still_works(); i++) {
        scores[i] = score(context, rate, lab_seed(MOST_SEEDS + i));
        if (isnan(scores[i])) scores[i] = HUGE_VAL;
    }
    return median_of(scores, LAB_TUNING_SEEDS);
}

/* Returns a learning rate, `start` times a power of 2, at which the median over the tuning seeds of
 * score(context, rate, seed), a loss, is lower than at half and at twice the rate. It doubles or
 * halves the rate from `start` as long as the loss improves, so there is no edge of a grid. With
 * --quick it returns `start`. */
static inline double lab_best_rate(double start, lab_score *score, void *context)
{
    static const double ways[] = {2, 0.5};
    if (lab_quick()) return start;
    double best = start, lowest = lab_median_score(start, score, context);
    for (int i = 0; i < 2 && best == start; i++) {
        for (bool better = true; better;) {
            const double reached = lab_median_score(best * ways[i], score, context);
            better = reached < lowest;
            if (better) lowest = reached, best *= ways[i];
        }
    }
    return best;
}

/* ---- Networks and data ---- */

static inline ng_module *lab_batch_norm(int64_t n) { return ng_batch_norm_new(n); }

/* A norm over features; the maker of "no norm" is NULL. */
typedef struct {
    const char *name;
    ng_norm_maker *make;
} lab_norm;
enum { LAB_NONE, LAB_BATCH, LAB_LAYER, LAB_RMS, LAB_NORMS };
static const lab_norm lab_norms[LAB_NORMS] = {{"no norm", NULL},
                                              {"BatchNorm", lab_batch_norm},
                                              {"LayerNorm", ng_norm_layer},
                                              {"RMSNorm", ng_norm_rms}};

/* Splits `all` into `most` samples, of which `few` are kept if that is not 0, and the others. Frees
 * `all`; the caller frees both parts. */
static inline void lab_split(ng_dataset *all, int64_t most, uint64_t seed, int64_t few,
                             ng_dataset **train, ng_dataset **validate)
{
    ng_dataset_split_new(all, most, seed, train, validate);
    if (few > 0 && few < most) {
        ng_dataset *whole = *train, *rest = NULL;
        ng_dataset_split_new(whole, few, seed, train, &rest);
        ng_dataset_free(whole), ng_dataset_free(rest);
    }
    ng_dataset_free(all);
    still_works();
}

/* Splits the digits into LAB_DIGITS, or `few` of them, for training and 360 for validation. */
enum { LAB_DIGITS = 1437 };
static inline void lab_digits(uint64_t seed, int64_t few, ng_dataset **train, ng_dataset **validate)
{
    lab_split(read_digits(), LAB_DIGITS, seed, few, train, validate);
}

/* Splits the windows of examples/data/opticks.txt: seven of eight, or `few` of these, are for
 * training and the others for validation. Returns the number of distinct characters. */
static inline int lab_text(uint64_t seed, int64_t context, int64_t few, ng_dataset **train,
                           ng_dataset **validate)
{
    int vocabulary;
    ng_dataset *all =
        read_text(find_file("examples/data", "opticks.txt").text, context, &vocabulary);
    lab_split(all, ng_dataset_count(all) * 7 / 8, seed, few, train, validate);
    return vocabulary;
}

/* Returns 64 - (Linear, norm, activation) x depth - 10 with weights drawn from `seed`. */
static inline ng_module *lab_network(const lab_norm *norm, ng_module *activation(void),
                                     int64_t width, int depth, uint64_t seed)
{
    ng_module *net = ng_sequential_from(NULL, 0);
    for (int i = 0; i < depth; i++) {
        ng_sequential_add(net, ng_linear_new(i == 0 ? 64 : width, width));
        if (norm->make) ng_sequential_add(net, norm->make(width));
        ng_sequential_add(net, activation());
    }
    ng_sequential_add(net, ng_linear_new(depth == 0 ? 64 : width, 10));
    ng_module_init(net, seed);
    still_works();
    return net;
}

/* Draws every weight matrix from N(0, 2 / fan_in) and sets biases to 0, the usual choice for ReLU
 * without a norm. He et al. 2015. */
static inline void lab_he_weights(ng_module *net, uint64_t seed)
{
    ng_rng rng = ng_rng_seeded(seed);
    ng_named_tensor p;
    for (int i = 0; ng_module_parameter(net, i, &p); i++) {
        const char *last = strrchr(p.name, '.');
        if (ng_rank(p.tensor) == 2) ng_fill_init(p.tensor, NG_INIT_KAIMING_NORMAL, 0, &rng);
        if (last && strcmp(last, ".bias") == 0) ng_fill(p.tensor, 0);
    }
    still_works();
}

/* Returns the output of the children `from` to `to` - 1 for x, a part of the forward pass. */
static inline ng_tensor *lab_forward_part(ng_module *net, int from, int to, ng_tape *tape,
                                          ng_tensor *x)
{
    for (int i = from; i < to; i++) x = ng_forward(ng_module_child(net, i), tape, x);
    return x;
}

/* ---- Trainings ---- */

typedef struct {
    ng_module *net;
    ng_optimizer *optimizer;
    ng_tape *tape;
    ng_dataset *data, *rest;
    int step;
    bool clips; /* lab_step clips gradients to norm 1 */
} lab_run;

/* Begins to train a network on the digits, all but the optimizer. */
static inline lab_run lab_begin_run(ng_module *net, uint64_t seed)
{
    lab_run r = {.net = net, .tape = ng_tape_new()};
    lab_digits(seed, 0, &r.data, &r.rest);
    return r;
}

static inline void lab_end_run(lab_run *r)
{
    ng_optimizer_free(r->optimizer), ng_tape_free(r->tape), ng_module_free(r->net);
    ng_dataset_free(r->data), ng_dataset_free(r->rest);
    still_works();
}

/* Trains for one pass in batches, in an order given by `epoch`. Returns the mean loss. */
static inline double lab_epoch(lab_run *r, int64_t batch, uint64_t epoch)
{
    ng_dataset_shuffle(r->data, epoch);
    const double loss = run_epoch(r->net, r->optimizer, r->tape, r->data, batch);
    still_works();
    return loss;
}

/* Trains on the next whole batch; a pass begins with a shuffle by seed + step. Returns the loss
 * before it, NaN if gradients are to be clipped and not finite. */
static inline double lab_step(lab_run *r, int64_t batch, uint64_t seed)
{
    ng_batch b;
    const int64_t at = r->step % (ng_dataset_count(r->data) / batch);
    if (at == 0) ng_dataset_shuffle(r->data, seed + (uint64_t)r->step);
    ng_dataset_batch(r->data, r->tape, at, batch, &b);
    ng_tensor *loss = ng_cross_entropy(r->tape, ng_forward(r->net, r->tape, b.x), b.y);
    if (ng_backward(r->tape, loss)) still_works();
    const bool finite = !r->clips || isfinite(ng_grad_norm(r->net));
    if (finite && r->clips) ng_clip_grad_norm(r->net, 1);
    if (finite && ng_optimizer_step(r->optimizer)) still_works();
    const double value = finite ? ng_item(loss) : (double)NAN;
    ng_tape_reset(r->tape);
    r->step++;
    still_works();
    return value;
}

#endif
