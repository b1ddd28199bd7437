/* What is printed and written: tables, results.tsv, and the numbers of the figures. */
#include "bench.h"
#include <stdlib.h>
#include <string.h>

/* ---- The machine --------------------------------------------------------------------------- */

static void print_processor(FILE *stream)
{
    char line[256];
    FILE *info = fopen("/proc/cpuinfo", "r");
    while (info && fgets(line, sizeof line, info)) {
        char *name = strstr(line, ": ");
        if (strncmp(line, "model name", 10) || !name) continue;
        name[strcspn(name, "\n")] = '\0';
        fprintf(stream, "%s, ", name + 2);
        break;
    }
    if (info) fclose(info);
}

static void print_what(FILE *stream, const bench_results *results)
{
    print_processor(stream);
    const bench_engine named[] = {NORMGRAD, PYTORCH, ONEDNN};
    for (int i = 0; i < 3; i++)
        if (results->engine[named[i]][0])
            fprintf(stream, "%s%s", i ? "; " : "", results->engine[named[i]]);
    fputc('\n', stream);
}

void report_head(const bench_results *results)
{
    print_what(stdout, results);
    printf("Medians of up to %d rounds, in which the engines take turns.\n",
           results->options.rounds);
}

/* ---- Tables --------------------------------------------------------------------------------- */

/* One row's times; 0 where there is none. */
typedef struct {
    double ours, roof, torch, onednn, single; /* single: ours with the first number of threads */
} row_times;

typedef struct {
    int name, shape;                /* widths */
    double factor;                  /* from microseconds to the table's unit */
    bool roof, torch, onednn, gain; /* which columns there are */
} table;

static bool is_double(const bench_case *what) { return !strcmp(what->dtype, "f64"); }

static bool is_norm(const char *group) { return !strncmp(group, "norm_", 5); }

/* What stands in a row: PyTorch 1.13 has no RMSNorm of its own. */
static void name_case(const bench_case *what, char name[64])
{
    const bool composed = !strcmp(what->name, "rms_norm");
    snprintf(name, 64, "%s%s%s", what->name, is_double(what) ? ", double" : "",
             composed && !is_double(what) ? " (PyTorch: ops)" : "");
}

static int larger(int a, size_t b) { return a > (int)b ? a : (int)b; }

/* The table of the group that a case belongs to. */
static table table_of(const bench_results *results, const char *group)
{
    const bool norm = is_norm(group), pointwise = !strcmp(group, "pointwise");
    const bool memory = !strcmp(group, "memory");
    table t = {.name = norm ? (int)strlen("  PyTorch as installed") : 0,
               .roof = norm || pointwise || !strcmp(group, "step"),
               .torch = results->engine[PYTORCH][0],
               .factor = !strcmp(group, "overhead") ? 1000 : 1,
               .onednn = (norm || pointwise) && results->engine[ONEDNN][0],
               .gain = !memory && results->options.n_threads > 1};
    for (int i = 0; i < results->n_cases; i++) {
        const bench_case *what = &results->cases[i];
        if (strcmp(what->group, group)) continue;
        char name[64];
        name_case(what, name);
        t.name = larger(t.name, strlen(name));
        t.shape = larger(t.shape, strlen(what->shape));
    }
    return t;
}

static void print_time(double time)
{
    if (time <= 0)
        printf("  %9s", "-");
    else
        printf("  %9.*f", time < 1 ? 3 : time < 10 ? 2 : time < 100 ? 1 : 0, time);
}

static void print_ratio(double over, double under, const char *unit)
{
    const double ratio = over / under;
    if (over <= 0 || under <= 0)
        printf(" %5s%s", "", unit[1] ? "  " : " ");
    else
        printf(" %5.*f%s", ratio < 10 ? 2 : ratio < 100 ? 1 : 0, ratio, unit);
}

static row_times scaled(row_times times, double factor)
{
    times.ours *= factor;
    times.roof *= factor;
    times.torch *= factor;
    times.onednn *= factor;
    times.single *= factor;
    return times;
}

static void print_row(const table *t, const char *name, const char *shape, const char *threads,
                      row_times times)
{
    times = scaled(times, t->factor);
    printf("%-*s  %-*s  %7s", t->name, name, t->shape, shape, threads);
    print_time(times.ours);
    if (t->roof) {
        print_time(times.roof);
        if (times.roof > 0 && times.ours > 0)
            printf(" %4.0f %%", 100 * times.roof / times.ours);
        else
            printf(" %6s", "");
    }
    if (t->torch) print_time(times.torch), print_ratio(times.torch, times.ours, "x");
    if (t->onednn) print_time(times.onednn), print_ratio(times.onednn, times.ours, "x");
    if (t->gain && times.single > 0) printf("  %5.2fx", times.single / times.ours);
    putchar('\n');
}

static void print_table_head(const table *t, const char *group)
{
    const bool memory = !strcmp(group, "memory"), overhead = !strcmp(group, "overhead");
    const char *unit = memory ? "KiB" : overhead ? "ns/op" : "us";
    const int left = t->name + 2 + t->shape + 2 + 7;
    printf("\n%-*s  %9s", left, group, "normgrad");
    if (t->roof) printf("  %9s %6s", "roof", "");
    if (t->torch) printf("  %9s %6s", "PyTorch", "");
    if (t->onednn) printf("  %9s %6s", "oneDNN", "");
    if (t->gain) printf("  %6s", "gain");
    printf("\n%*s  %9s", left, "threads", unit);
    if (t->roof) printf("  %9s %6s", unit, "share");
    if (t->torch) printf("  %9s %6s", unit, "ratio");
    if (t->onednn) printf("  %9s %6s", unit, "ratio");
    putchar('\n');
}

static void print_case(const bench_results *results, const table *t, int which)
{
    const bench_case *what = &results->cases[which];
    const int n = results->options.n_threads;
    char name[64], threads[16];
    name_case(what, name);
    for (int i = 0; i < n; i++) {
        const double(*median)[MOST_THREADS] = results->median[which];
        row_times times = {median[NORMGRAD][i], median[ROOF][i], median[PYTORCH][i],
                           median[ONEDNN][i], i ? median[NORMGRAD][0] : 0};
        const bool first = i == 0 || median[NORMGRAD][0] == 0;
        snprintf(threads, sizeof threads, "%d", results->options.threads[i]);
        if (times.ours > 0)
            print_row(t, first ? name : "", first ? what->shape : "", threads, times);
        if (median[KERNEL][i] > 0) {
            times.ours = median[KERNEL][i];
            times.single = i ? median[KERNEL][0] : 0;
            print_row(t, "  kernel alone", "", threads, times);
        }
        if (median[PYTORCH_PLAIN][i] > 0)
            print_row(t, "  PyTorch as installed", "", threads,
                      (row_times){.ours = median[NORMGRAD][i], .torch = median[PYTORCH_PLAIN][i]});
    }
    if (n > 1 && (!strcmp(what->group, "step")))
        print_row(t, "", "", "best",
                  (row_times){bench_best(results, which, NORMGRAD),
                              bench_best(results, which, ROOF), bench_best(results, which, PYTORCH),
                              0, 0});
}

void report_case(const bench_results *results, int which)
{
    const bench_case *what = &results->cases[which], *before = which ? what - 1 : NULL;
    const table t = table_of(results, what->group);
    if (!before || strcmp(what->group, before->group))
        print_table_head(&t, what->group);
    else if (strcmp(what->name, before->name) && strcmp(what->group, "pointwise") &&
             strcmp(what->group, "overhead") && strcmp(what->group, "memory"))
        putchar('\n');
    print_case(results, &t, which);
    fflush(stdout);
}

/* ---- The line at the end -------------------------------------------------------------------- */

/* The fastest peer of a row; ENGINES if it has none. */
static bench_engine fastest_peer(const double median[ENGINES][MOST_THREADS], int t)
{
    const double torch = median[PYTORCH][t], onednn = median[ONEDNN][t];
    if (torch <= 0 && onednn <= 0) return ENGINES;
    return torch > 0 && (onednn <= 0 || torch < onednn) ? PYTORCH : ONEDNN;
}

static void print_behind(const bench_results *results, int which, int t)
{
    const bench_case *what = &results->cases[which];
    const double(*median)[MOST_THREADS] = results->median[which];
    const bench_engine peer = fastest_peer(median, t);
    printf("%s %s %s on %d (%s %.2f)", what->group, what->name, what->shape,
           results->options.threads[t], peer == PYTORCH ? "PyTorch" : "oneDNN",
           median[peer][t] / median[NORMGRAD][t]);
}

/* How many rows have a peer beside them, on how many no peer is faster, and the others: "pointwise
 * bias_add_forward 4096x768 on 2 (PyTorch 0.84)", the threads and the peer's time by ours. */
void report_standing(const bench_results *results)
{
    int rows = 0, n_behind = 0, behind[MOST_CASES * MOST_THREADS][2];
    for (int i = 0; i < results->n_cases; i++)
        for (int t = 0; t < results->options.n_threads; t++) {
            const double(*median)[MOST_THREADS] = results->median[i];
            const bench_engine peer = fastest_peer(median, t);
            if (median[NORMGRAD][t] <= 0 || peer == ENGINES) continue;
            rows++;
            if (median[peer][t] >= median[NORMGRAD][t]) continue;
            behind[n_behind][0] = i;
            behind[n_behind++][1] = t;
        }
    printf("\n%d rows beside a peer: first on %d, behind on %d", rows, rows - n_behind, n_behind);
    for (int i = 0; i < n_behind; i++) {
        fputs(i ? "; " : ": ", stdout);
        print_behind(results, behind[i][0], behind[i][1]);
    }
    putchar('\n');
}

/* ---- Files ---------------------------------------------------------------------------------- */

static FILE *open_file(const char *folder, const char *name)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    if (!file) perror(path);
    return file;
}

static bool close_file(FILE *file)
{
    const bool well = !ferror(file);
    return fclose(file) == 0 && well;
}

static bool write_tsv(const bench_results *results)
{
    FILE *file = open_file(results->options.output, "results.tsv");
    if (!file) return false;
    fputs("group\tcase\tshape\tdtype\tthreads\tengine\tmedian_us\n", file);
    for (int i = 0; i < results->n_cases; i++)
        for (int t = 0; t < results->options.n_threads; t++)
            for (int e = 0; e < ENGINES; e++) {
                const bench_case *what = &results->cases[i];
                const double median = results->median[i][e][t];
                if (median > 0)
                    fprintf(file, "%s\t%s\t%s\t%s\t%d\t%s\t%.6g\n", what->group, what->name,
                            what->shape, is_double(what) ? "float64" : "float32",
                            results->options.threads[t], bench_engine_name[e], median);
            }
    return close_file(file);
}

static void write_number(FILE *file, double value)
{
    if (value > 0)
        fprintf(file, " %.4g", value);
    else
        fputs(" ?", file);
}

/* The most threads, or 0 where each engine has as many as suit it best. */
static void write_what(FILE *file, const bench_results *results, int threads)
{
    fputs("# what: float, ", file);
    if (threads)
        fprintf(file, "%d thread%s, ", threads, threads > 1 ? "s" : "");
    else if (results->options.n_threads > 1)
        fputs("each at its best number of threads, ", file);
    print_what(file, results);
}

/* Bytes moved a second by LayerNorm against the bytes it moves, for the most threads: forward x and
 * y; backward x, dy and dx. */
static bool write_roofline(const bench_results *results, const char *folder)
{
    FILE *file = open_file(folder, "bench_roofline.dat");
    if (!file) return false;
    const int last = results->options.n_threads - 1;
    write_what(file, results, results->options.threads[last]);
    for (int back = 0; back < 2; back++) {
        fprintf(file, "%s# %s\n\"shape\" \"bytes\" \"roof\" \"normgrad\" \"PyTorch\" \"oneDNN\"\n",
                back ? "\n\n" : "", back ? "backward" : "forward");
        for (int i = 0; i < results->n_cases; i++) {
            const bench_case *what = &results->cases[i];
            if (strcmp(what->group, back ? "norm_backward" : "norm_forward") ||
                strcmp(what->name, "layer_norm") || is_double(what))
                continue;
            const double bytes = (back ? 12.0 : 8.0) * (double)what->rows * (double)what->columns;
            const bench_engine shown[] = {ROOF, NORMGRAD, PYTORCH, ONEDNN};
            fprintf(file, "%s %.0f", what->shape, bytes);
            for (int e = 0; e < 4; e++) {
                const double us = results->median[i][shown[e]][last];
                write_number(file, us > 0 ? 1e-3 * bytes / us : 0);
            }
            fputc('\n', file);
        }
    }
    return close_file(file);
}

/* "64-128*2-10@32" becomes "step 64-128-128-10, batch 32". */
static void write_label(FILE *file, const bench_case *what)
{
    static const char *const plain[][2] = {{"layer_norm", "LayerNorm"},
                                           {"rms_norm", "RMSNorm (PyTorch: composed)"},
                                           {"batch_norm", "BatchNorm"}};
    fputs(what->widths ? "\"step " : "\"", file);
    if (what->layers)
        fprintf(file, "step transformer, %lld layers, batch %lld", (long long)what->layers,
                (long long)what->rows);
    if (what->hidden)
        fprintf(file, "step LSTM of %lld, %lld steps, batch %lld", (long long)what->hidden,
                (long long)what->columns, (long long)what->rows);
    for (int i = 0; i < what->widths; i++)
        fprintf(file, "%s%lld", i ? "-" : "", (long long)what->width[i]);
    if (what->widths) fprintf(file, ", batch %lld", (long long)what->batch);
    for (int i = 0; i < 3; i++)
        if (!strcmp(what->name, plain[i][0]))
            fprintf(file, "%s %s, %s", plain[i][1],
                    strcmp(what->group, "norm_forward") ? "backward" : "forward", what->shape);
    fputc('"', file);
}

/* How many times as fast as its peers, each with the number of threads that suits it best. */
static bool write_ratios(const bench_results *results, const char *folder)
{
    FILE *file = open_file(folder, "bench_ratio.dat");
    if (!file) return false;
    write_what(file, results, 0);
    fputs("\"case\" \"PyTorch\" \"oneDNN\"\n", file);
    for (int i = 0; i < results->n_cases; i++) {
        const bench_case *what = &results->cases[i];
        const bool norm = !strncmp(what->group, "norm_", 5) && !is_double(what) &&
                          (!strcmp(what->shape, "128x128") || !strcmp(what->shape, "4096x768"));
        const double ours = bench_best(results, i, NORMGRAD);
        if ((!norm && strcmp(what->group, "step")) || ours <= 0) continue;
        write_label(file, what);
        write_number(file, bench_best(results, i, PYTORCH) / ours);
        write_number(file, bench_best(results, i, ONEDNN) / ours);
        fputc('\n', file);
    }
    return close_file(file);
}

bool report_write(const bench_results *results)
{
    const bench_options *options = &results->options;
    const char *plots = options->plots ? options->plots : options->output;
    bool well = write_tsv(results);
    if (!options->group)
        well = write_roofline(results, plots) && write_ratios(results, plots) && well;
    if (well) printf("\nAll times are in %s/results.tsv\n", options->output);
    return well;
}
