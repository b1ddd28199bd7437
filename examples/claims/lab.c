#include "lab.h"
#include "../more/characters.h"
#include "../more/figure.h"
#include "../more/numbers.h"
#include "../more/options.h"
#include "../more/progress.h"

enum { MOST_SIZES = 12, MOST_SEEDS = 1000, OWN_OPTIONS = 7, MOST_PARTS = 64, COLUMNS = 90 };

/* A part of the claim with a sorted copy of its numbers, without NaN. */
typedef struct {
    lab_part part;
    char name[104];
    double *sorted;
    int count;
} judged;

/* A block of curves: a history for each seed. */
struct lab_curves {
    char name[104];
    const char *x;
    ng_history **runs;
    int count;
    lab_curves *next;
};

static struct {
    const lab_experiment *experiment;
    int seeds, threads;
    uint64_t first_seed;
    bool quick, no_plot;
    char out[1024];
    FILE *data; /* in memory, at `text`, until the experiment ends */
    char *text;
    size_t size;
    int blocks;
    lab_curves *curves, **last; /* in their order */
    progress bar;
    double began;
    double **numbers; /* everything that lab_numbers returned */
    int number_blocks;
    judged parts[MOST_PARTS];
    int part_count;
    const char *verdicts; /* --verdicts, or NULL */
} lab;

/* Prints `what` and ends the program. */
static void give_up(const char *what)
{
    progress_end(&lab.bar);
    complain("%s", what);
    exit(EXIT_FAILED);
}

/* Prints into text and breaks its lines between words at COLUMNS. */
NG_PRINTF(3, 4)
static void write_lines(char *text, size_t bytes, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(text, bytes, format, list);
    va_end(list);
    char *line = text, *space = NULL;
    for (char *at = text; *at; at++) {
        if (*at == ' ') space = at;
        if (at - line >= COLUMNS && space) *space = '\n', line = space + 1, space = NULL;
        if (*at == '\n') line = at + 1, space = NULL;
    }
}

/* ---- Options ------------------------------------------------------------------------------ */

static int size_count(const lab_experiment *e)
{
    int count = 0;
    while (e->sizes && e->sizes[count].name) count++;
    return count;
}

static const char *figure(void)
{
    return lab.experiment->figure ? lab.experiment->figure : lab.experiment->id;
}

/* Makes options of the experiment's sizes. A value that is not given stays NAN. */
static int size_rows(program_option *rows, char (*meanings)[160])
{
    const lab_experiment *e = lab.experiment;
    const int count = size_count(e);
    for (int i = 0; i < count; i++) {
        lab_size *s = &e->sizes[i];
        snprintf(meanings[i], sizeof meanings[i], "%s (%g)", s->meaning, s->normal);
        if (s->fraction)
            rows[i] = (program_option)OPTION_RATE(s->name, "X", meanings[i], &s->value);
        else
            rows[i] = (program_option)OPTION_WHOLE(s->name, "N", meanings[i], &s->value,
                                                   s->least ? s->least : 1,
                                                   s->most ? s->most : 1000000000);
        s->value = (double)NAN;
    }
    return count;
}

/* Sets the size's value in this run: the option, or the default. */
static void set_size(lab_size *s)
{
    char given[32], expected[64];
    if (isnan(s->value)) {
        s->value = lab.quick && s->quick > 0 ? s->quick : s->normal;
    } else if (s->multiple && (int)s->value % s->multiple != 0) {
        snprintf(given, sizeof given, "%.0f", s->value);
        snprintf(expected, sizeof expected, "a multiple of %d", s->multiple);
        refuse(s->name, given, expected);
    }
}

static void parse_options(int argc, char **argv)
{
    const lab_experiment *e = lab.experiment;
    char usage[8192], seeds_help[64], out_help[160], meanings[MOST_SIZES][160];
    const char *out = NULL;
    int first_seed = 0;
    write_lines(usage, sizeof usage,
                "usage: %s [options]\n\nThe claim: %s\n(%s)\n\n%s\nThe rule: %s\n", program_name(),
                e->claim, e->source, e->method, e->rule);
    snprintf(seeds_help, sizeof seeds_help, "runs of each kind (%d)", e->seeds);
    snprintf(out_help, sizeof out_help, "prefix of the .dat, .svg and .png (build/%s)", figure());
    program_option known[MOST_SIZES + OWN_OPTIONS] = {
        OPTION_COUNT("seeds", "N", seeds_help, &lab.seeds, 1, MOST_SEEDS),
        OPTION_COUNT("seed", "N", "first seed (0)", &first_seed, 0, 1000000000)};
    const program_option last[] = {
        OPTION_TEXT("out", "PREFIX", out_help, &out),
        OPTION_COUNT("threads", "N", "threads of the kernels; 0: one per processor (1)",
                     &lab.threads, 0, NG_MOST_THREADS),
        OPTION_SWITCH("quick", "smoke run: small, with meaningless results", &lab.quick),
        OPTION_SWITCH("no-plot", "draw no figure", &lab.no_plot),
        OPTION_TEXT("verdicts", "FILE", "write the verdicts to FILE, one tab-separated line each",
                    &lab.verdicts)};
    const int sizes = size_rows(known + 2, meanings);
    memcpy(known + 2 + sizes, last, sizeof last);
    const option_table table = {known, sizes + OWN_OPTIONS};
    refuse_more(argc, argv, read_options(argc, argv, usage, table, NULL));

    lab.first_seed = (uint64_t)first_seed;
    if (out) choose_prefix(lab.out, sizeof lab.out, out, figure());
    for (int i = 0; i < sizes; i++) set_size(&e->sizes[i]);
    if (!lab.seeds) lab.seeds = lab.quick ? e->quick_seeds : e->seeds;
}

void lab_begin(int argc, char **argv, const lab_experiment *experiment)
{
    lab.experiment = experiment;
    lab.threads = 1;
    lab.last = &lab.curves;
    lab.began = progress_clock();
    program_begin(argv);
    choose_prefix(lab.out, sizeof lab.out, NULL, figure());
    parse_options(argc, argv);
    if (!can_write("out", lab.out)) exit(EXIT_FAILED);
    if (lab.verdicts && !can_write("verdicts", lab.verdicts)) exit(EXIT_FAILED);
    ng_set_threads(lab.threads);
    char opening[4096];
    write_lines(opening, sizeof opening, "%s\n(%s)\n\n%s\n", experiment->claim, experiment->source,
                experiment->method);
    fputs(opening, stdout);
    fflush(stdout);
    lab.bar = progress_begin(experiment->id, "%", 100, !progress_terminal());
    lab.data = open_memstream(&lab.text, &lab.size);
    if (!lab.data) give_up("out of memory");
}

int lab_seeds(void) { return lab.seeds; }
double lab_number(int size) { return lab.experiment->sizes[size].value; }
int lab_whole(int size) { return (int)lab_number(size); }
uint64_t lab_seed(int index) { return lab.first_seed + (uint64_t)index; }
int lab_tuning_seeds(void) { return lab.quick ? 1 : LAB_TUNING_SEEDS; }
uint64_t lab_tuning_seed(int index) { return lab_seed(MOST_SEEDS + index); }

void lab_progress(double done, double total, const char *format, ...)
{
    char detail[96];
    va_list list;
    va_start(list, format);
    vsnprintf(detail, sizeof detail, format, list);
    va_end(list);
    progress_show(&lab.bar, 100 * done / total, detail);
}

bool lab_goes_on(void)
{
    if (ng_failed()) give_up(ng_error_text());
    return true;
}

double *lab_numbers(int64_t count)
{
    double **grown = realloc(lab.numbers, (size_t)(lab.number_blocks + 1) * sizeof *grown);
    if (grown) lab.numbers = grown;
    double *numbers = grown ? calloc((size_t)count, sizeof *numbers) : NULL;
    if (!numbers) give_up("out of memory");
    return lab.numbers[lab.number_blocks++] = numbers;
}

double *lab_table(const char *name, int columns, int *rows)
{
    enum { MOST_ROWS = 10000 };
    const char *path = find_in_project(name);
    FILE *file = path ? fopen(path, "r") : NULL;
    double *numbers = lab_numbers((int64_t)MOST_ROWS * columns);
    char line[1024];
    if (!file) give_up("a file of the project is missing");
    for (*rows = 0; *rows < MOST_ROWS && fgets(line, sizeof line, file);) {
        char *at = line;
        if (*at == '#') continue;
        for (int i = 0; i < columns; i++) numbers[*rows * columns + i] = strtod(at, &at);
        ++*rows;
    }
    fclose(file);
    return numbers;
}

/* ---- The data file ------------------------------------------------------------------------ */

void lab_data(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    fputs("# what: ", lab.data);
    vfprintf(lab.data, format, list);
    va_end(list);
    const unsigned long long first = lab_seed(0), last = lab_seed(lab.seeds - 1);
    if (last > first)
        fprintf(lab.data, "; seeds %llu to %llu", first, last);
    else
        fprintf(lab.data, "; seed %llu", first);
    fprintf(lab.data, "; %s; normgrad %s\n",
            lab.experiment->dtype ? lab.experiment->dtype : "float32", ng_version());
}

void lab_block(const char *name, const char *columns)
{
    fprintf(lab.data, "%s# %s\n", lab.blocks++ ? "\n\n" : "\n", name);
    for (const char *next; *columns; columns = next) {
        const int length = (int)strcspn(columns, " ");
        next = columns + length + strspn(columns + length, " ");
        fprintf(lab.data, *next ? "%-14.*s " : "%.*s\n", length, columns);
    }
}

void lab_put(const double *values, int count)
{
    for (int i = 0; i < count; i++) {
        char text[32] = "?";
        if (!isnan(values[i])) snprintf(text, sizeof text, "%.8g", values[i]);
        fprintf(lab.data, i + 1 < count ? "%-14s " : "%s\n", text);
    }
}

lab_curves *lab_curves_new(const char *x, const char *format, ...)
{
    lab_curves *c = calloc(1, sizeof *c);
    if (!c) give_up("out of memory");
    va_list list;
    va_start(list, format);
    vsnprintf(c->name, sizeof c->name, format, list);
    va_end(list);
    c->x = x;
    *lab.last = c, lab.last = &c->next;
    return c;
}

void lab_log_values(lab_curves *c, int seed, const char *series, double x, const double *values)
{
    char name[64];
    if (seed >= c->count) {
        ng_history **grown = realloc(c->runs, (size_t)(seed + 1) * sizeof *grown);
        if (!grown) give_up("out of memory");
        c->runs = grown;
        while (c->count <= seed) c->runs[c->count++] = ng_history_new("a run");
    }
    for (; *series; series += strspn(series, " ")) {
        const int length = (int)strcspn(series, " ");
        snprintf(name, sizeof name, "%.*s", length, series);
        ng_history_log_at(c->runs[seed], name, x, *values++);
        series += length;
    }
    lab_goes_on();
}

/* Appends the curves' summary, as the library writes it but for the names of two columns. */
static void put_curves(const lab_curves *c, const char *scratch)
{
    char line[4096];
    ng_history *summary = ng_history_summary_new(c->runs, c->count);
    ng_history_write(summary, scratch);
    lab_goes_on();
    fprintf(lab.data, "%s# %s\n", lab.blocks++ ? "\n\n" : "\n", c->name);
    FILE *file = fopen(scratch, "r");
    while (file && fgets(line, sizeof line, file)) {
        char *runs = strstr(line, "runs\n");
        if (line[0] == '#' || line[0] == '\n') continue;
        if (runs)
            fprintf(lab.data, "%-9s %.*sseeds\n", c->x, (int)(runs - line - 10), line + 10);
        else
            fputs(line, lab.data);
    }
    if (file) fclose(file);
    ng_history_free(summary);
}

/* ---- The verdicts ------------------------------------------------------------------------- */

/* Returns the values that are not NaN, sorted; the caller frees them. */
static double *sorted_of(const double *values, int64_t count, int *kept)
{
    double *sorted = malloc((size_t)(count > 0 ? count : 1) * sizeof *sorted);
    if (!sorted) give_up("out of memory");
    *kept = 0;
    for (int64_t i = 0; i < count; i++)
        if (!isnan(values[i])) sorted[(*kept)++] = values[i];
    qsort(sorted, (size_t)*kept, sizeof *sorted, ascending);
    return sorted;
}

void lab_judge(lab_part part, const char *format, ...)
{
    if (lab.part_count == MOST_PARTS) give_up("an experiment has at most 64 parts");
    judged *j = &lab.parts[lab.part_count++];
    va_list list;
    va_start(list, format);
    vsnprintf(j->name, sizeof j->name, format, list);
    va_end(list);
    j->part = part;
    j->sorted = sorted_of(part.values, part.count ? part.count : lab_seeds(), &j->count);
}

/* The median of n numbers, and its confidence interval. */
typedef struct {
    double median, low, high;
    bool sure; /* there are enough numbers for an interval */
} effect;

/* Returns the effect of a part. All parts share the error probability of 0.05. */
static effect effect_of(const judged *j)
{
    const int n = j->count, below = number_median_interval(n, 0.05 / lab.part_count);
    const int end = below < 0 ? 0 : below;
    const double none = (double)NAN;
    if (n == 0) return (effect){none, none, none, false};
    return (effect){(j->sorted[(n - 1) / 2] + j->sorted[n / 2]) / 2, j->sorted[end],
                    j->sorted[n - 1 - end], below >= 0};
}

/* Returns whether the claim is true for this value. */
static bool claimed(const lab_part *part, double value)
{
    return part->side == LAB_ABOVE   ? value > part->threshold
           : part->side == LAB_BELOW ? value < part->threshold
                                     : fabs(value - part->around) <= part->threshold;
}

static const char *verdict_of(const lab_part *part, effect e)
{
    const bool low = claimed(part, e.low), high = claimed(part, e.high);
    const bool around =
        part->side == LAB_WITHIN && (e.low < part->around) != (e.high < part->around);
    if (!e.sure || low != high) return "inconclusive";
    return low ? "holds" : around ? "inconclusive" : "fails";
}

/* Writes "> 1.5", "< 0.8" or "1 +- 0.02". */
static void describe_threshold(const lab_part *part, char *text, size_t bytes)
{
    if (part->side == LAB_WITHIN)
        snprintf(text, bytes, "%.4g +- %.2g", part->around, part->threshold);
    else
        snprintf(text, bytes, "%c %.4g", part->side == LAB_ABOVE ? '>' : '<', part->threshold);
}

/* Prints the table. Returns the lines of the verdicts file, which the caller frees. */
static char *report_verdicts(size_t *size)
{
    char *lines = NULL;
    FILE *file = open_memstream(&lines, size);
    if (!file) give_up("out of memory");
    printf("\n%-12s  %10s  %-23s %3s  %-15s %s\n", "verdict", "effect", "95 % of all parts", "n",
           "claimed", "part");
    for (int i = 0; i < lab.part_count; i++) {
        const judged *j = &lab.parts[i];
        const effect e = effect_of(j);
        const char *verdict = verdict_of(&j->part, e), *norm = j->part.norm ? j->part.norm : "-";
        char threshold[40], interval[40];
        describe_threshold(&j->part, threshold, sizeof threshold);
        snprintf(interval, sizeof interval, "%.4g to %.4g", e.low, e.high);
        printf("%-12s  %10.4g  %-23s %3d  %-15s %s%s%s\n", verdict, e.median, interval, j->count,
               threshold, j->part.norm ? norm : "", j->part.norm ? ": " : "", j->name);
        fprintf(file, "%s\t%s\t%s\t%.6g\t%.6g\t%.6g\t%d\t%s\t%s\n", lab.experiment->id, j->name,
                norm, e.median, e.low, e.high, j->count, threshold, verdict);
    }
    if (fclose(file) != 0) give_up("out of memory");
    return lines;
}

static void finish_data(void)
{
    char path[1100];
    snprintf(path, sizeof path, "%s.dat", lab.out);
    for (lab_curves *c = lab.curves, *next; c; c = next) {
        put_curves(c, path);
        for (int i = 0; i < c->count; i++) ng_history_free(c->runs[i]);
        next = c->next;
        free(c->runs), free(c);
    }
    const bool whole = fclose(lab.data) == 0;
    lab.data = NULL;
    if (!whole) give_up("out of memory");
    if (ng_file_write(path, lab.text, (int64_t)lab.size) != NG_OK) give_up(ng_error_text());
    free(lab.text);
}

int lab_end(void)
{
    lab_goes_on();
    finish_data();
    progress_end(&lab.bar);
    char script[1024];
    snprintf(script, sizeof script, "plots/%s.gp", figure());
    const bool drawn = draw_figure(script, lab.out, !lab.no_plot);
    char closing[2048];
    write_lines(closing, sizeof closing, "%.0f s. The rule: %s\n", progress_clock() - lab.began,
                lab.experiment->rule);
    fputs(closing, stdout);
    size_t size;
    char *lines = report_verdicts(&size);
    const bool written =
        !lab.verdicts || ng_file_write(lab.verdicts, lines, (int64_t)size) == NG_OK;
    free(lines);
    for (int i = 0; i < lab.part_count; i++) free(lab.parts[i].sorted);
    for (int i = 0; i < lab.number_blocks; i++) free(lab.numbers[i]);
    free(lab.numbers);
    return program_end(drawn && written ? EXIT_SUCCESS : EXIT_FAILED);
}

/* ---- Numbers ------------------------------------------------------------------------------ */

double lab_percentile(const double *values, int64_t count, double percent)
{
    int kept;
    double *sorted = sorted_of(values, count, &kept);
    const double value = kept > 0 ? number_quantile(sorted, kept, percent / 100) : (double)NAN;
    free(sorted);
    return value;
}

double lab_median(const double *values) { return lab_percentile(values, lab_seeds(), 50); }

lab_line lab_fit(const double *x, const double *y, int count)
{
    double n = 0, sx = 0, sy = 0, sxx = 0, sxy = 0;
    for (int i = 0; i < count; i++) {
        if (!isfinite(x[i]) || !isfinite(y[i])) continue;
        n++, sx += x[i], sy += y[i], sxx += x[i] * x[i], sxy += x[i] * y[i];
    }
    const double slope = (n * sxy - sx * sy) / (n * sxx - sx * sx);
    return (lab_line){slope, (sy - slope * sx) / n};
}

const double *lab_quotients(const double *values, const double *base)
{
    double *quotients = lab_numbers(lab_seeds());
    for (int seed = 0; seed < lab_seeds(); seed++) {
        const bool never = isinf(values[seed]) && isinf(base[seed]);
        quotients[seed] = never ? 1 : values[seed] / base[seed];
    }
    return quotients;
}

const double *lab_less(const double *values, const double *base)
{
    double *less = lab_numbers(lab_seeds());
    for (int seed = 0; seed < lab_seeds(); seed++) less[seed] = values[seed] - base[seed];
    return less;
}

/* ---- Tuning ------------------------------------------------------------------------------- */

typedef double score_of(void *context, double rate, uint64_t seed);

static double median_score(double rate, score_of *score, void *context)
{
    double scores[LAB_TUNING_SEEDS];
    for (int i = 0; i < lab_tuning_seeds() && lab_goes_on(); i++) {
        scores[i] = score(context, rate, lab_tuning_seed(i));
        if (isnan(scores[i])) scores[i] = HUGE_VAL;
    }
    return lab_percentile(scores, lab_tuning_seeds(), 50);
}

double lab_best_rate(double start, score_of *score, void *context)
{
    static const double ways[] = {2, 0.5};
    if (lab.quick) return start;
    double best = start, lowest = median_score(start, score, context);
    for (int i = 0; i < 2 && best == start; i++) {
        for (bool better = true; better;) {
            const double reached = median_score(best * ways[i], score, context);
            better = reached < lowest;
            if (better) lowest = reached, best *= ways[i];
        }
    }
    return best;
}

/* ---- Digits ------------------------------------------------------------------------------- */

static ng_module *make_batch(int64_t features) { return ng_batch_norm_new(features); }
static ng_module *make_layer(int64_t features) { return ng_layer_norm_new(features); }
static ng_module *make_rms(int64_t features) { return ng_rms_norm_new(features); }

const lab_norm lab_no_norm = {"no norm", NULL};
const lab_norm lab_batch_norm = {"BatchNorm", make_batch};
const lab_norm lab_layer_norm = {"LayerNorm", make_layer};
const lab_norm lab_rms_norm = {"RMSNorm", make_rms};
const lab_norm *const lab_norms[4] = {&lab_no_norm, &lab_batch_norm, &lab_layer_norm,
                                      &lab_rms_norm};

/* Splits `all` into `most` samples, of which `few` are kept, and the others. Frees `all`. */
static void split(ng_dataset *all, int64_t most, uint64_t seed, int64_t few, ng_dataset **train,
                  ng_dataset **validate)
{
    ng_dataset_split_new(all, most, seed, train, validate);
    if (few > 0 && few < most) {
        ng_dataset *whole = *train, *rest = NULL;
        ng_dataset_split_new(whole, few, seed, train, &rest);
        ng_dataset_free(whole), ng_dataset_free(rest);
    }
    ng_dataset_free(all);
    lab_goes_on();
}

ng_dataset *lab_all_digits(void)
{
    return ng_dataset_read_csv(find_data("digits.csv"), .scale = 1.0 / 16);
}

void lab_digits(uint64_t seed, int64_t few, ng_dataset **train, ng_dataset **validate)
{
    split(lab_all_digits(), LAB_DIGITS, seed, few, train, validate);
}

ng_module *lab_network_of(const lab_norm *norm, ng_module *activation(void), int64_t width,
                          int depth, uint64_t seed)
{
    ng_module *net = ng_sequential_from(NULL, 0);
    for (int i = 0; i < depth; i++) {
        ng_sequential_add(net, ng_linear_new(i == 0 ? 64 : width, width));
        if (norm->make) ng_sequential_add(net, norm->make(width));
        ng_sequential_add(net, activation());
    }
    ng_sequential_add(net, ng_linear_new(depth == 0 ? 64 : width, 10));
    ng_module_init(net, seed);
    lab_goes_on();
    return net;
}

ng_module *lab_network(const lab_norm *norm, int64_t width, int depth, uint64_t seed)
{
    return lab_network_of(norm, ng_relu_new, width, depth, seed);
}

void lab_he_weights(ng_module *net, uint64_t seed)
{
    ng_rng rng = ng_rng_seeded(seed);
    ng_named_tensor p;
    for (int i = 0; ng_module_parameter(net, i, &p); i++) {
        const size_t length = strlen(p.name);
        if (ng_rank(p.tensor) == 2) ng_fill_init(p.tensor, NG_INIT_KAIMING_NORMAL, 0, &rng);
        if (length >= 4 && strcmp(p.name + length - 4, "bias") == 0) ng_fill(p.tensor, 0);
    }
    lab_goes_on();
}

ng_tensor *lab_forward_part(ng_module *net, int from, int to, ng_tape *tape, ng_tensor *x)
{
    for (int i = from; i < to; i++) x = ng_forward(ng_module_child(net, i), tape, x);
    return x;
}

double lab_train_epoch(ng_module *net, ng_optimizer *optimizer, ng_tape *tape, ng_dataset *train,
                       int64_t batch, uint64_t epoch)
{
    const bool single = ng_dataset_count(train) % batch == 1; /* BatchNorm cannot train on one */
    double sum = 0, seen = 0;
    ng_batch b;
    ng_dataset_shuffle(train, epoch);
    for (int i = 0; ng_dataset_batch(train, tape, i, batch, &b, .drop_last = single); i++) {
        ng_tensor *loss = ng_cross_entropy(tape, ng_forward(net, tape, b.x), b.y);
        if (ng_backward(tape, loss) || ng_optimizer_step(optimizer)) break;
        sum += ng_item(loss) * (double)b.size;
        seen += (double)b.size;
        ng_tape_reset(tape);
    }
    lab_goes_on();
    return sum / seen;
}

lab_score lab_evaluate(ng_module *net, ng_tape *tape, ng_dataset *data)
{
    const double count = (double)ng_dataset_count(data);
    const double each = (double)ng_size(ng_dataset_y(data)) / count; /* answers per sample */
    lab_score score = {0, 0};
    ng_batch b;
    const bool was = ng_tape_set_recording(tape, false);
    ng_eval(net);
    for (int i = 0; ng_dataset_batch(data, tape, i, 256, &b); i++) {
        ng_tensor *logits = ng_forward(net, tape, b.x);
        const ng_tensor *guess = ng_argmax(tape, logits);
        score.loss += ng_item(ng_cross_entropy(tape, logits, b.y)) * (double)b.size / count;
        for (int64_t k = 0; k < ng_size(guess); k++)
            score.accuracy += (ng_get(guess, k) == ng_get(b.y, k)) / (count * each);
        ng_tape_reset(tape);
        lab_goes_on();
    }
    ng_train(net);
    ng_tape_set_recording(tape, was);
    return score;
}

/* ---- Text --------------------------------------------------------------------------------- */

int lab_text(uint64_t seed, int64_t context, int64_t few, ng_dataset **train, ng_dataset **validate)
{
    characters t = {0};
    if (!read_file(&t, find_data("opticks.txt"))) exit(EXIT_FAILED);
    number_bytes(&t);
    const int64_t windows = ((int64_t)t.count - 1) / context;
    if (windows < 8) give_up("the text has fewer than eight windows");
    ng_tensor *x = ng_zeros_new(NG_I64, NG_SHAPE(windows, context));
    ng_tensor *y = ng_zeros_new(NG_I64, NG_SHAPE(windows, context));
    lab_goes_on();
    for (int64_t i = 0; i < windows * context; i++) {
        ng_data_i64(x)[i] = t.id[t.bytes[i]];
        ng_data_i64(y)[i] = t.id[t.bytes[i + 1]];
    }
    split(ng_dataset_from(x, y), windows * 7 / 8, seed, few, train, validate);
    ng_tensor_free(x), ng_tensor_free(y);
    free(t.bytes);
    return t.vocabulary;
}
