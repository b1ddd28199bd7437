/* What the programs share: options from a table, errors and the exit status, files, curves of
 * several seeds, data.
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

/* Prints "PROGRAM: ..." to stderr. */
NG_PRINTF(1, 2)
static inline void complain(const char *format, ...)
{
    const char *slash = strrchr(program_path, '/');
    va_list list;
    fflush(stdout);
    fprintf(stderr, "%s: ", slash ? slash + 1 : program_path);
    va_start(list, format);
    vfprintf(stderr, format, list);
    va_end(list);
    fputc('\n', stderr);
}

/* Complains and ends the program with this status. */
#define give_up(status, ...) (complain(__VA_ARGS__), exit(status))

/* Returns the exit status, a failure if the library has failed or standard output could not be
 * written. Prints the reason. */
static inline int end_program(int status)
{
    const bool written = fflush(stdout) == 0 && !ferror(stdout);
    if (ng_failed()) complain("%s", ng_error_text());
    if (!written) complain("cannot write to standard output");
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

/* ---- Text ---- */

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

/* Sets `item` to the next one of a list with this character between its items; false at its end.
 *     for (const char *at = list; next_item(&at, ',', item);) ... */
enum { ITEM = 64 };
static inline bool next_item(const char **at, char between, char item[ITEM])
{
    const size_t length = strcspn(*at, (const char[]){between, '\0'});
    snprintf(item, ITEM, "%.*s", (int)length, *at);
    *at += length + ((*at)[length] == between);
    return length > 0;
}

/* Returns the index of an item in a comma-separated list, or -1. */
static inline int index_of(const char *list, const char *item)
{
    char name[ITEM];
    for (int i = 0; next_item(&list, ',', name); i++)
        if (strcmp(name, item) == 0) return i;
    return -1;
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

/* Sets an option to what was given, or ends the program. */
static inline void read_option(option *o, const char *given)
{
    const double least = o->least > 0 ? o->least : o->zero ? 0 : o->fraction ? 1e-300 : 1;
    const double most = o->most > 0 ? o->most : o->fraction ? 1e300 : 1e9;
    const line expected =
        !o->text ? line_of("a %snumber from %g to %.10g", o->fraction ? "" : "whole ", least, most)
        : !o->choices ? line_of("something")
                      : line_of("%s of %s", o->many ? "some" : "one", o->choices);
    bool right = true;
    if (o->is_switch) {
        o->value = 1;
    } else if (o->text) {
        char item[ITEM];
        for (const char *at = given; o->choices && next_item(&at, ',', item);)
            right = right && index_of(o->choices, item) >= 0 && (!*at || o->many);
        right = right && *given;
        o->text = given;
    } else {
        char *end;
        o->value = o->quick = strtod(given, &end);
        right = end != given && !*end && (o->fraction || fmod(o->value, 1) == 0) &&
                o->value >= least && o->value <= most;
    }
    if (!right)
        give_up(EXIT_USAGE, "--%s %s: expected %s; --help shows all options", o->name,
                *given ? given : "''", expected.text);
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
        if (c == '?') give_up(EXIT_USAGE, "--help shows all options");
        if (c >= 256) read_option(rows[c - 256], optarg);
        if (c >= 256) continue;
        printf("%s\n", usage);
        for (int i = 0; i < count; i++) show_option(rows[i]);
        printf("  %-20s show this help\n", "--help");
        exit(end_program(EXIT_SUCCESS));
    }
    if (optind < argc) give_up(EXIT_USAGE, "%s: not an option", argv[optind]);
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
                "there is no %s/%s; run the program in the project's folder, or set NORMGRAD_DATA "
                "to the folder that has the file",
                folder, name);
    return path;
}

/* Returns the prefix of a program's files: --out, and `name` if that ends in a slash; without --out
 * build/NAME, or NAME if there is no folder build/. Ends the program if it cannot write there. */
static inline line choose_prefix(const char *out, const char *name)
{
    if (!*out) out = access("build", W_OK) == 0 ? "build/" : "./";
    const char *slash = strrchr(out, '/');
    const line folder = line_of("%.*s", slash ? (int)(slash + 1 - out) : 1, slash ? out : ".");
    if (access(folder.text, W_OK) != 0) give_up(EXIT_FAILURE, "--out %s: %s", out, strerror(errno));
    return line_of("%s%s", out, slash && !slash[1] ? name : "");
}

/* Writes PREFIX.dat and draws PREFIX.svg; without gnuplot there is no figure. */
static inline void save_history(ng_history *history, const char *prefix, ng_plot_options figure)
{
    const line data = line_of("%s.dat", prefix), path = line_of("%s.svg", prefix);
    if (ng_failed() || ng_history_write(history, data.text)) return;
    figure.path = path.text;
    const bool drawn = ng_plot_with(history, figure) == NG_OK;
    printf("Data: %s%s%s\n", data.text, drawn ? ", drawn in " : ". ",
           drawn ? path.text : ng_error_text());
    ng_clear_error();
}

/* ---- Curves: kinds of networks, each from several seeds, and their file ---- */

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
    int blocks;
    curve_set *first, **last; /* curves come after the other blocks, in their order */
} data_file;

#define begin_data(...) begin_data_file(line_of(__VA_ARGS__))
static inline void begin_data_file(line what)
{
    data_file.file = open_memstream(&data_file.bytes, &data_file.size);
    data_file.last = &data_file.first;
    if (!data_file.file) give_up(EXIT_FAILURE, "out of memory");
    fprintf(data_file.file, "# what: %s; normgrad %s\n", what.text, ng_version());
}

/* Begins a block with these columns. Returns the file, for its rows. */
static inline FILE *put_block(const char *name, const char *columns)
{
    fprintf(data_file.file, "%s# %s\n%s", data_file.blocks++ ? "\n\n" : "\n", name, columns);
    return data_file.file;
}

/* Shows the name in the terminal too. */
#define new_curves(x, ...) add_curves(x, line_of(__VA_ARGS__))
static inline curve_set *add_curves(const char *x, line name)
{
    curve_set *c = calloc(1, sizeof *c);
    if (!c) give_up(EXIT_FAILURE, "out of memory");
    c->name = name, c->x = x;
    *data_file.last = c, data_file.last = &c->next;
    if (isatty(STDERR_FILENO)) fprintf(stderr, "... %s\n", name.text);
    return c;
}

/* Logs values of a seed at x, one for each series:
 *     log_curves(c, seed, "loss rate", epoch, loss, rate); */
#define log_curves(c, seed, series, x, ...)                                                        \
    log_values(c, seed, series, x, (const double[]){__VA_ARGS__})
static inline void log_values(curve_set *c, int seed, const char *series, double x,
                              const double *values)
{
    char name[ITEM];
    for (; c->count <= seed; c->count++) c->runs[c->count] = ng_history_new("a run");
    while (next_item(&series, ' ', name)) ng_history_log_at(c->runs[seed], name, x, *values++);
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
    put_block(c->name.text, "");
    while (file && fgets(row, sizeof row, file)) {
        const char *runs = strstr(row, "runs\n");
        if (runs)
            fprintf(data_file.file, "%-9s %.*sseeds\n", c->x, (int)(runs - row - 10), row + 10);
        if (!runs && row[0] != '#' && row[0] != '\n') fputs(row, data_file.file);
    }
    if (file) fclose(file);
}

/* Writes PREFIX.dat and frees the curves. */
static inline void end_data(const char *prefix)
{
    const line path = line_of("%s.dat", prefix);
    for (curve_set *c = data_file.first, *next; c; c = next) {
        put_curves(c, path.text);
        for (int i = 0; i < c->count; i++) ng_history_free(c->runs[i]);
        next = c->next;
        free(c);
    }
    if (fclose(data_file.file) != 0) give_up(EXIT_FAILURE, "out of memory");
    ng_file_write(path.text, data_file.bytes, (int64_t)data_file.size);
    free(data_file.bytes);
    still_works();
}

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

/* ---- Data ---- */

/* Returns 1797 handwritten digits of yours, x (count, 64) with pixels in 0..1. */
static inline ng_dataset *read_digits(void)
{
    return ng_dataset_read_csv(find_file("examples/data", "digits.csv").text, .scale = 1.0 / 16);
}

/* Returns a text as windows of `context` characters that do not overlap: int64 ids x and y (count,
 * context), where y is one character further. Sets the number of distinct characters; their ids are
 * in the order of their codes. */
static inline ng_dataset *read_text(const char *path, int64_t context, int *vocabulary)
{
    int64_t id[256] = {0}, count = 0;
    unsigned char *bytes = NULL;
    FILE *file = fopen(path, "rb");
    if (file && fseek(file, 0, SEEK_END) == 0 && (count = ftell(file)) > 0)
        bytes = malloc((size_t)count);
    if (file) rewind(file);
    if (!bytes || fread(bytes, 1, (size_t)count, file) != (size_t)count)
        give_up(EXIT_FAILURE, "%s: %s", path, strerror(errno));
    fclose(file);
    *vocabulary = 0;
    for (int b = 0; b < 256; b++)
        if (memchr(bytes, b, (size_t)count)) id[b] = (*vocabulary)++;
    const int64_t windows = (count - 1) / context;
    ng_tensor *x = ng_zeros_new(NG_I64, NG_SHAPE(windows, context));
    ng_tensor *y = ng_zeros_new(NG_I64, NG_SHAPE(windows, context));
    for (int64_t i = 0; still_works() && i < windows * context; i++)
        ng_data_i64(x)[i] = id[bytes[i]], ng_data_i64(y)[i] = id[bytes[i + 1]];
    ng_dataset *text = ng_dataset_from(x, y);
    ng_tensor_free(x), ng_tensor_free(y), free(bytes);
    return text;
}

/* Trains a classifier on the batches of a data set, but for a last one of a single sample, on which
 * BatchNorm cannot train. Returns the mean loss of the samples. */
static inline double run_epoch(ng_module *net, ng_optimizer *optimizer, ng_tape *tape,
                               ng_dataset *data, int64_t batch)
{
    const bool single = ng_dataset_count(data) % batch == 1;
    double sum = 0, seen = 0;
    ng_batch b;
    for (int i = 0; ng_dataset_batch(data, tape, i, batch, &b, .drop_last = single); i++) {
        ng_tensor *loss = ng_cross_entropy(tape, ng_forward(net, tape, b.x), b.y);
        if (ng_backward(tape, loss) || ng_optimizer_step(optimizer)) break;
        sum += ng_item(loss) * (double)b.size, seen += (double)b.size;
        ng_tape_reset(tape);
    }
    return sum / seen;
}

#endif
