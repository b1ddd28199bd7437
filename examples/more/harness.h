/* What the programs share: options from a table, errors and the exit status, files, a line of
 * progress, trials of several kinds from several seeds and the file of their curves, text.
 *
 *     enum { STEPS };
 *     static option options[] = {[STEPS] = {"steps", "training steps", .normal = 1000}, {0}};
 *
 *     begin_program(argc, argv, "usage: learn [options]\n", options, NULL);
 *     for (int step = 0; step < get_whole(STEPS); step++) ng_history_log(...);
 *     save_history(history, "build/learn", (ng_plot_options){.log_y = true});
 *     return end_program(EXIT_SUCCESS); */
#ifndef EXAMPLES_HARNESS_H
#define EXAMPLES_HARNESS_H

#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <normgrad.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { EXIT_USAGE = 2, MOST_OPTIONS = 32, MOST_SEEDS = 1000 };

static const char *program_path = "example"; /* that the program was called by */

/* ---- Errors and the exit status ---- */

typedef struct {
    char text[4000];
} line;

/* Returns what printf would print: line_of("%s.dat", prefix).text */
NG_PRINTF(1, 2)
static inline line line_of(const char *format, ...)
{
    line made;
    va_list list;
    va_start(list, format);
    vsnprintf(made.text, sizeof made, format, list);
    va_end(list);
    return made;
}

/* Prints "PROGRAM: ..." to stderr. */
static inline void complain(line what)
{
    const char *slash = strrchr(program_path, '/');
    fflush(stdout);
    fprintf(stderr, "%s: %s\n", slash ? slash + 1 : program_path, what.text);
}

/* Complains and ends the program with this status. */
static inline void give_up(int status, line what)
{
    complain(what);
    exit(status);
}

/* Returns the exit status, a failure if the library has failed or standard output could not be
 * written. Prints the reason. */
static inline int end_program(int status)
{
    const bool written = fflush(stdout) == 0 && !ferror(stdout);
    if (ng_failed()) complain(line_of("%s", ng_error_text()));
    if (!written) complain(line_of("cannot write to standard output"));
    return status == EXIT_SUCCESS && (ng_failed() || !written) ? EXIT_FAILURE : status;
}

/* Ends the program if the library has failed. Returns true, for loops. */
static inline bool still_works(void)
{
    if (ng_failed()) exit(end_program(EXIT_FAILURE));
    return true;
}

/* Returns whether a loss is finite; else fails, unless the library already has. */
static inline bool is_finite(double loss, const char *where, int step)
{
    if (!isfinite(loss) && !ng_failed())
        ng_fail(NG_EVALUE, "%s, step %d: %g, the training has diverged; try a lower learning rate",
                where, step, loss);
    return !ng_failed();
}

/* ---- Options ---- */

/* A row of a table of options, --NAME, which also holds its value. The table ends with {0}. */
typedef struct {
    const char *name, *meaning;
    const char *text;     /* an option that is a text: its default, "" for none */
    const char *choices;  /* a text is one of these, "adam,sgd"; with .many some of them */
    bool many, is_switch; /* a switch is off by default */
    double normal, quick; /* a number: the default, and that with --quick (0: the same) */
    bool fraction, zero;  /* it need not be whole; it may be 0 */
    double least, most;   /* the range (0: 1, or above 0 for a fraction; 1e9, none for it) */
    double value;
} option;

static option *program_options;

static inline double get_number(int i) { return program_options[i].value; }
static inline int get_whole(int i) { return (int)get_number(i); }
static inline const char *get_text(int i) { return program_options[i].text; }

/* Sets `item` to the next one of a comma-separated list. Returns false at its end.
 *     for (const char *at = list; next_item(&at, item, sizeof item);) ... */
static inline bool next_item(const char **at, char *item, size_t bytes)
{
    const size_t length = strcspn(*at, ",");
    snprintf(item, bytes, "%.*s", (int)length, *at);
    *at += length + ((*at)[length] == ',');
    return length > 0;
}

/* Returns the index of an item in a comma-separated list, or -1. */
static inline int index_of(const char *list, const char *item)
{
    char name[64];
    for (int i = 0; next_item(&list, name, sizeof name); i++)
        if (strcmp(name, item) == 0) return i;
    return -1;
}

static inline void refuse(const option *o, const char *given, line expected)
{
    give_up(EXIT_USAGE, line_of("--%s %s: expected %s; --help shows all options", o->name,
                                *given ? given : "''", expected.text));
}

static inline void read_number(option *o, const char *given)
{
    char *end;
    const double least = o->least > 0 ? o->least : o->zero ? 0 : o->fraction ? 1e-300 : 1;
    const double most = o->most > 0 ? o->most : o->fraction ? 1e300 : 1e9;
    o->value = o->quick = strtod(given, &end);
    const bool whole = end != given && *end == '\0' && (o->fraction || fmod(o->value, 1) == 0);
    if (!whole || o->value < least || o->value > most)
        refuse(o, given,
               line_of("a %snumber from %g to %.10g", o->fraction ? "" : "whole ", least, most));
}

static inline void read_option(option *o, const char *given)
{
    char item[64];
    const line expected = o->choices ? line_of("%s of %s", o->many ? "some" : "one", o->choices)
                                     : line_of("something");
    if (o->is_switch) {
        o->value = 1;
    } else if (!o->text) {
        read_number(o, given);
    } else {
        if (!*given) refuse(o, given, expected);
        for (const char *at = given; o->choices && next_item(&at, item, sizeof item);)
            if (index_of(o->choices, item) < 0 || (*at && !o->many)) refuse(o, given, expected);
        o->text = given;
    }
}

/* Prints the row: its name, meaning, choices and default. */
static inline void show_option(const option *o)
{
    const line left = line_of("--%s %s", o->name, o->is_switch ? "" : o->text ? "X" : "N");
    printf("  %-20s %s%s%s", left.text, o->meaning, o->choices ? ": " : "",
           o->choices ? o->choices : "");
    printf(o->normal > 0 ? " (%g)\n" : "\n", o->normal);
}

/* Reads the options of one or two tables; the second may be NULL. get_number and its kind read the
 * first one. --help prints the usage and the tables. A wrong option ends the program. */
static inline void begin_program(int argc, char **argv, const char *usage, option *table,
                                 option *second)
{
    struct option known[MOST_OPTIONS + 1] = {{"help", no_argument, NULL, 'h'}};
    option *rows[MOST_OPTIONS], *const tables[] = {table, second};
    int count = 0;
    if (argv[0] && *argv[0]) program_path = argv[0];
    program_options = table;
    for (int k = 0; k < 2; k++)
        for (option *o = tables[k]; o && o->name && count < MOST_OPTIONS - 1; o++) {
            o->value = o->normal;
            rows[count++] = o;
            known[count] = (struct option){o->name, !o->is_switch, NULL, 255 + count};
        }
    for (int c; (c = getopt_long(argc, argv, "h", known, NULL)) != -1;) {
        if (c == '?') give_up(EXIT_USAGE, line_of("--help shows all options"));
        if (c >= 256) read_option(rows[c - 256], optarg);
        if (c >= 256) continue;
        printf("%s\n", usage);
        for (int i = 0; i < count; i++) show_option(rows[i]);
        printf("  %-20s show this help\n", "--help");
        exit(end_program(EXIT_SUCCESS));
    }
    if (optind < argc) give_up(EXIT_USAGE, line_of("%s: not an option", argv[optind]));
}

/* ---- Files ---- */

/* Returns the path of a file of the project: in the folder that NORMGRAD_DATA names, in `folder`
 * here, or up to four levels above the program. Ends the program if it is nowhere. */
static inline line find_file(const char *folder, const char *name)
{
    const char *given = getenv("NORMGRAD_DATA"), *slash = strrchr(program_path, '/');
    line path = line_of("%s/%s", given ? given : folder, name);
    for (int above = 0; access(path.text, R_OK) != 0 && above <= 4; above++)
        path = line_of("%.*s%.*s%s/%s", above && slash ? (int)(slash + 1 - program_path) : 0,
                       program_path, 3 * above, "../../../../", folder, name);
    if (access(path.text, R_OK) != 0)
        give_up(EXIT_FAILURE,
                line_of("there is no %s/%s; run the program in the project's folder, or "
                        "set NORMGRAD_DATA to the folder that has the file",
                        folder, name));
    return path;
}

/* Returns the prefix of a program's files: --out, and `name` if that ends in a slash; without --out
 * build/NAME, or NAME if there is no folder build/. Ends the program if it cannot write there. */
static inline line choose_prefix(const char *out, const char *name)
{
    if (!*out) out = access("build", W_OK) == 0 ? "build/" : "./";
    const char *slash = strrchr(out, '/');
    const line folder = line_of("%.*s", slash ? (int)(slash + 1 - out) : 1, slash ? out : ".");
    if (access(folder.text, W_OK) != 0)
        give_up(EXIT_FAILURE, line_of("--out %s: %s", out, strerror(errno)));
    return line_of("%s%s", out, slash && !slash[1] ? name : "");
}

/* Draws PREFIX.svg, and says where it and PREFIX.dat are. Without gnuplot there is no figure. */
static inline void draw_figure(ng_history *history, const char *prefix, ng_plot_options figure)
{
    const line path = line_of("%s.svg", prefix);
    if (ng_failed()) return;
    figure.path = path.text;
    const bool drawn = ng_plot_with(history, figure) == NG_OK;
    printf("Data: %s.dat%s%s\n", prefix, drawn ? ", drawn in " : ". ",
           drawn ? path.text : ng_error_text());
    ng_clear_error();
}

/* Writes PREFIX.dat and draws it. */
static inline void save_history(ng_history *history, const char *prefix, ng_plot_options figure)
{
    if (!ng_failed() && ng_history_write(history, line_of("%s.dat", prefix).text) == NG_OK)
        draw_figure(history, prefix, figure);
}

/* ---- Progress ---- */

/* Shows a line in the terminal, at most once a second, and clears it at the end.
 *     show_progress(seed, seeds, "%s, seed %d", name, seed); */
#define show_progress(done, total, ...) draw_progress(done, total, line_of(__VA_ARGS__))
static inline void draw_progress(double done, double total, line what)
{
    static time_t shown;
    if (!isatty(STDERR_FILENO) || (time(NULL) == shown && done < total)) return;
    shown = time(NULL);
    fprintf(stderr, done < total ? "\r%3.0f %%  %.70s\033[K" : "\r\033[K", 100 * done / total,
            what.text);
}

/* ---- Numbers ---- */

static inline int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorts the numbers, of which none may be NaN, and returns their median; NaN if there are none. */
static inline double median_of(double *numbers, int count)
{
    qsort(numbers, (size_t)count, sizeof *numbers, by_size);
    return count ? (numbers[(count - 1) / 2] + numbers[count / 2]) / 2 : (double)NAN;
}

/* ---- Trials: kinds of networks from several seeds, and the file of their curves ---- */

/* The curves of a kind, a history for each seed. In the file a series is the median over the seeds;
 * NAME_low and NAME_high are the quartiles, NAME_min and NAME_max the extremes. The last column,
 * seeds, is how many have logged there. */
typedef struct curve_set {
    line name;     /* of the block in the file */
    const char *x; /* name of the first column, such as "epoch" */
    int count;
    ng_history *runs[MOST_SEEDS];
    struct curve_set *next;
} curve_set;

/* PREFIX.dat has a first line with its content, then blocks, two blank lines apart. Each has a name
 * (for gnuplot's `index`) and a line of column names. It is in memory until it is complete. */
static struct {
    FILE *file;
    char *bytes;
    size_t size;
    int blocks, seeds;        /* seeds: of all curves; 0: logging shows no progress */
    curve_set *first, **last; /* curves come after the other blocks, in their order */
} data_file;

#define begin_data(...) begin_data_file(line_of(__VA_ARGS__))
static inline void begin_data_file(line what)
{
    data_file.file = open_memstream(&data_file.bytes, &data_file.size);
    data_file.last = &data_file.first;
    if (!data_file.file) give_up(EXIT_FAILURE, line_of("out of memory"));
    fprintf(data_file.file, "# what: %s; normgrad %s\n", what.text, ng_version());
}

/* Begins a block. The names of the columns are separated by spaces. */
static inline void put_block(const char *name, const char *columns)
{
    fprintf(data_file.file, "%s# %s\n", data_file.blocks++ ? "\n\n" : "\n", name);
    for (int length; *columns; columns += length + (columns[length] == ' ')) {
        length = (int)strcspn(columns, " ");
        fprintf(data_file.file, columns[length] ? "%-14.*s " : "%.*s\n", length, columns);
    }
}

/* Writes a row of the block: put_row(x, y). NaN is written "?" (missing). */
#define put_row(...)                                                                               \
    put_values((const double[]){__VA_ARGS__}, (int)(sizeof(double[]){__VA_ARGS__} / sizeof(double)))
static inline void put_values(const double *values, int count)
{
    for (int i = 0; i < count; i++)
        fprintf(data_file.file, i + 1 < count ? "%-14s " : "%s\n",
                isnan(values[i]) ? "?" : line_of("%.8g", values[i]).text);
}

#define new_curves(x, ...) add_curves(x, line_of(__VA_ARGS__))
static inline curve_set *add_curves(const char *x, line name)
{
    curve_set *c = calloc(1, sizeof *c);
    if (!c) give_up(EXIT_FAILURE, line_of("out of memory"));
    c->name = name;
    c->x = x;
    *data_file.last = c, data_file.last = &c->next;
    return c;
}

/* Logs values of a seed at x, one for each series:
 *     log_curves(c, seed, "loss rate", epoch, loss, rate); */
#define log_curves(c, seed, series, x, ...)                                                        \
    log_values(c, seed, series, x, (const double[]){__VA_ARGS__})
static inline void log_values(curve_set *c, int seed, const char *series, double x,
                              const double *values)
{
    char name[64];
    if (data_file.seeds)
        show_progress(seed, data_file.seeds, "%s, seed %d", c->name.text, seed + 1);
    for (; c->count <= seed; c->count++) c->runs[c->count] = ng_history_new("a run");
    for (int length; *series; series += length + (series[length] == ' ')) {
        length = (int)strcspn(series, " ");
        snprintf(name, sizeof name, "%.*s", length, series);
        ng_history_log_at(c->runs[seed], name, x, *values++);
    }
    still_works();
}

/* Appends the summary as the library writes it, but for the names of two columns. */
static inline void put_curves(const curve_set *c, const char *scratch)
{
    char row[4096];
    ng_history *summary = ng_history_summary_new(c->runs, c->count);
    ng_history_write(summary, scratch);
    ng_history_free(summary);
    FILE *file = still_works() ? fopen(scratch, "r") : NULL;
    fprintf(data_file.file, "%s# %s\n", data_file.blocks++ ? "\n\n" : "\n", c->name.text);
    while (file && fgets(row, sizeof row, file)) {
        const char *runs = strstr(row, "runs\n");
        if (runs)
            fprintf(data_file.file, "%-9s %.*sseeds\n", c->x, (int)(runs - row - 10), row + 10);
        if (!runs && row[0] != '#' && row[0] != '\n') fputs(row, data_file.file);
    }
    if (file) fclose(file);
}

/* Writes PREFIX.dat. */
static inline void end_data(const char *prefix)
{
    const line path = line_of("%s.dat", prefix);
    for (curve_set *c = data_file.first, *next; c; c = next) {
        put_curves(c, path.text);
        for (int i = 0; i < c->count; i++) ng_history_free(c->runs[i]);
        next = c->next;
        free(c);
    }
    if (fclose(data_file.file) != 0) give_up(EXIT_FAILURE, line_of("out of memory"));
    ng_file_write(path.text, data_file.bytes, (int64_t)data_file.size);
    free(data_file.bytes);
    still_works();
}

/* Draws all curves, a colour for each kind and a panel for each series. Call it before end_data. */
static inline void draw_curves(const char *prefix, ng_plot_options figure)
{
    enum { MOST_KINDS = 64 };
    ng_history *medians[MOST_KINDS + 1] = {NULL};
    const char *names[MOST_KINDS];
    int count = 0;
    for (curve_set *c = data_file.first; c && count < MOST_KINDS; c = c->next) {
        names[count] = c->name.text;
        medians[count++] = ng_history_summary_new(c->runs, c->count);
    }
    figure.histories = medians + 1, figure.names = names;
    figure.band = figure.panels = true;
    draw_figure(medians[0], prefix, figure);
    while (count > 0) ng_history_free(medians[--count]);
}

/* ---- Text ---- */

/* A text as the ids of its bytes, numbered in the order of their codes. */
typedef struct {
    unsigned char *bytes;
    int64_t count, train; /* `train` bytes are for training, the rest is for validation */
    int id[256];          /* of each byte; -1 if it does not occur */
    unsigned char byte[256];
    int vocabulary;
} letters;

static inline letters read_letters(const char *path)
{
    letters t = {0};
    FILE *file = fopen(path, "rb");
    if (file && fseek(file, 0, SEEK_END) == 0 && (t.count = ftell(file)) > 0)
        t.bytes = malloc((size_t)t.count);
    if (file) rewind(file);
    if (!t.bytes || fread(t.bytes, 1, (size_t)t.count, file) != (size_t)t.count)
        give_up(EXIT_FAILURE, line_of("%s: %s", path, strerror(errno)));
    fclose(file);
    t.train = t.count - t.count / 10;
    for (int b = 0; b < 256; b++) {
        const bool occurs = memchr(t.bytes, b, (size_t)t.count);
        t.id[b] = occurs ? t.vocabulary : -1;
        if (occurs) t.byte[t.vocabulary++] = (unsigned char)b;
    }
    return t;
}

/* Fills ids and labels (count, length) with sequences drawn from the bytes first to last - 1. Each
 * label is the byte after its id. */
static inline void draw_letters(const letters *t, ng_tensor *ids, ng_tensor *labels, ng_rng *rng,
                                int64_t first, int64_t last)
{
    int64_t *id = ng_data_i64(ids), *label = ng_data_i64(labels);
    const int64_t length = ng_dim(ids, 1);
    for (int64_t n = 0; id && label && n < ng_dim(ids, 0); n++) {
        const int64_t from = first + ng_rng_below(rng, last - first - length);
        for (int64_t i = from; i < from + length; i++)
            *id++ = t->id[t->bytes[i]], *label++ = t->id[t->bytes[i + 1]];
    }
    ng_touch(ids), ng_touch(labels);
}

/* ---- Data and losses of several programs ---- */

/* Fills x (count, length, 2) with numbers from [0, 1) and their marks, one mark in each half, and
 * sums (count, 1) with the sums of the marked two: the adding problem. Always answering 1 gives a
 * mean squared error of 1/6. */
static inline void draw_sums(ng_tensor *x, ng_tensor *sums, ng_rng *rng)
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

/* Returns points (count, 2) on the lines between those of a and of b, at random places. They are
 * leaves, so that gradients with respect to them exist. */
static inline ng_tensor *points_between(ng_tape *tape, ng_tensor *a, ng_tensor *b)
{
    ng_tensor *share = ng_uniform(tape, ng_dtype_of(a), NG_SHAPE(ng_dim(a, 0), 1), 0, 1);
    ng_tensor *way = ng_mul(tape, share, ng_sub(tape, b, a));
    return ng_variable(tape, ng_add(tape, a, way));
}

/* Records the mean of (|d critic(v) / d v| - 1)^2 over random points v between those of a and of
 * b. Gulrajani et al. 2017. */
static inline ng_tensor *gradient_penalty(ng_module *critic, ng_tape *tape, ng_tensor *a,
                                          ng_tensor *b)
{
    ng_tensor *v = points_between(tape, a, b);
    ng_tensor *slope = ng_gradient(tape, ng_forward(critic, tape, v), v, .record = true);
    ng_tensor *length = ng_norm(tape, slope, .axes = NG_AXES(1));
    return ng_mean(tape, ng_square(tape, ng_add_scalar(tape, length, -1)));
}

/* Returns a norm for images (count, channels, height, width). */
static inline ng_module *norm_of_images(const char *name, int64_t channels)
{
    if (strcmp(name, "batch_norm") == 0) return ng_batch_norm_new(channels);
    if (strcmp(name, "group_norm") == 0) return ng_group_norm_new(4, channels);
    if (strcmp(name, "layer_norm") == 0) /* over each pixel's channels */
        return ng_layer_norm_new(channels, .channels_first = true);
    return ng_norm_none(channels);
}

/* Trains a classifier on the whole batches of a data set and, unless `whole`, on what is left.
 * Returns the mean loss of its samples. */
static inline double run_epoch(ng_module *net, ng_optimizer *optimizer, ng_tape *tape,
                               ng_dataset *data, int64_t batch, bool whole)
{
    double sum = 0, seen = 0;
    ng_batch b;
    for (int i = 0; ng_dataset_batch(data, tape, i, batch, &b, .drop_last = whole); i++) {
        ng_tensor *loss = ng_cross_entropy(tape, ng_forward(net, tape, b.x), b.y);
        if (ng_backward(tape, loss) || ng_optimizer_step(optimizer)) break;
        sum += ng_item(loss) * (double)b.size, seen += (double)b.size;
        ng_tape_reset(tape);
    }
    return sum / seen;
}

#endif
