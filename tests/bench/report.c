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
    for (int e = 0; e < ENGINES; e++)
        if (results->engine[e][0] && e != ROOF)
            fprintf(stream, "%s%s", e ? "; " : "", results->engine[e]);
    fputc('\n', stream);
}

void report_head(const bench_results *results)
{
    print_what(stdout, results);
    printf("Medians of up to %d rounds, in which the engines take turns.\n",
           results->options.rounds);
}

/* ---- Tables --------------------------------------------------------------------------------- */

typedef struct {
    int name, shape;   /* widths */
    bool has[ENGINES]; /* which columns there are */
    bool gain;
} table;

/* The table of the group that a case belongs to. */
static table table_of(const bench_results *results, const char *group)
{
    table t = {.gain = results->options.n_threads > 1};
    const bool norm = !strncmp(group, "norm_", 5), pointwise = !strcmp(group, "pointwise"),
               product = !strcmp(group, "product"), step = !strcmp(group, "step");
    const bool has[ENGINES] = {
        [NORMGRAD] = true,         [ROOF] = norm || pointwise || step,      [PYTORCH] = true,
        [COMPILED] = norm || step, [ONEDNN] = norm || pointwise || product, [KANN] = step};
    for (int e = 0; e < ENGINES; e++) t.has[e] = has[e] && results->engine[e][0];
    for (int i = 0; i < results->n_cases; i++) {
        const bench_case *what = &results->cases[i];
        if (strcmp(what->group, group)) continue;
        const int name = (int)strlen(what->name), shape = (int)strlen(what->shape);
        t.name = t.name > name ? t.name : name;
        t.shape = t.shape > shape ? t.shape : shape;
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

static void print_ratio(double over, double under)
{
    const double ratio = over / under;
    if (over <= 0 || under <= 0)
        printf(" %5s ", "");
    else
        printf(" %5.*fx", ratio < 10 ? 2 : ratio < 100 ? 1 : 0, ratio);
}

/* Times of each engine, 0 where there is none; `single`: ours with the first number of threads. */
static void print_row(const table *t, const char *name, const char *shape, const char *threads,
                      const double times[ENGINES], double single)
{
    const double ours = times[NORMGRAD];
    printf("%-*s  %-*s  %7s", t->name, name, t->shape, shape, threads);
    for (int e = 0; e < ENGINES; e++) {
        if (!t->has[e]) continue;
        print_time(times[e]);
        if (e == ROOF && times[e] > 0)
            printf(" %4.0f %%", 100 * times[e] / ours);
        else if (e == ROOF)
            printf(" %6s", "");
        else if (e != NORMGRAD)
            print_ratio(times[e], ours);
    }
    if (t->gain && single > 0) printf("  %5.2fx", single / ours);
    putchar('\n');
}

static void print_table_head(const table *t, const char *group)
{
    const int left = t->name + 2 + t->shape + 2 + 7;
    printf("\n%-*s", left, group);
    for (int e = 0; e < ENGINES; e++)
        if (t->has[e]) printf(e ? "  %9s %6s" : "  %9s", bench_engine_title[e], "");
    if (t->gain) printf("  %6s", "gain");
    printf("\n%*s", left, "threads");
    for (int e = 0; e < ENGINES; e++)
        if (t->has[e]) printf(e ? "  %9s %6s" : "  %9s", "us", e == ROOF ? "share" : "ratio");
    putchar('\n');
}

static void print_case(const bench_results *results, const table *t, int which)
{
    const bench_case *what = &results->cases[which];
    double best[ENGINES], first = 0;
    for (int i = 0; i < results->options.n_threads; i++) {
        double times[ENGINES];
        char threads[16];
        for (int e = 0; e < ENGINES; e++) times[e] = results->median[which][e][i];
        snprintf(threads, sizeof threads, "%d", results->options.threads[i]);
        if (times[NORMGRAD] > 0)
            print_row(t, i ? "" : what->name, i ? "" : what->shape, threads, times, first);
        first = first > 0 ? first : times[NORMGRAD];
    }
    if (strcmp(what->group, "step")) return;
    for (int e = 0; e < ENGINES; e++) best[e] = bench_best(results, which, (bench_engine)e);
    if (results->options.n_threads > 1 && best[NORMGRAD] > 0) print_row(t, "", "", "best", best, 0);
}

void report_case(const bench_results *results, int which)
{
    const bench_case *what = &results->cases[which], *before = which ? what - 1 : NULL;
    const table t = table_of(results, what->group);
    if (!before || strcmp(what->group, before->group))
        print_table_head(&t, what->group);
    else if (strcmp(what->name, before->name) && strcmp(what->group, "pointwise"))
        putchar('\n');
    print_case(results, &t, which);
    fflush(stdout);
}

/* ---- The line at the end -------------------------------------------------------------------- */

/* The fastest peer of a row; NORMGRAD if it has none. */
static int fastest_peer(const double median[ENGINES][MOST_THREADS], int t)
{
    int fastest = NORMGRAD;
    for (int e = 0; e < ENGINES; e++)
        if (bench_is_peer(e) && median[e][t] > 0 &&
            (fastest == NORMGRAD || median[e][t] < median[fastest][t]))
            fastest = e;
    return fastest;
}

static void print_behind(const bench_results *results, int which, int t)
{
    const bench_case *what = &results->cases[which];
    const double(*median)[MOST_THREADS] = results->median[which];
    const int peer = fastest_peer(median, t);
    printf("%s %s %s on %d (%s %.2f)", what->group, what->name, what->shape,
           results->options.threads[t], bench_engine_title[peer],
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
            const int peer = fastest_peer(median, t);
            if (median[NORMGRAD][t] <= 0 || peer == NORMGRAD) continue;
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
    fputs("group\tcase\tshape\tthreads\tengine\tmedian_us\n", file);
    for (int i = 0; i < results->n_cases; i++)
        for (int t = 0; t < results->options.n_threads; t++)
            for (int e = 0; e < ENGINES; e++) {
                const bench_case *what = &results->cases[i];
                const double median = results->median[i][e][t];
                if (median > 0)
                    fprintf(file, "%s\t%s\t%s\t%d\t%s\t%.6g\n", what->group, what->name,
                            what->shape, results->options.threads[t], bench_engine_name[e], median);
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

/* "64-128*2-10@32" becomes "step 64-128-128-10, batch 32". */
static void write_label(FILE *file, const bench_case *what)
{
    static const char *const plain[][2] = {
        {"layer_norm", "LayerNorm"}, {"rms_norm", "RMSNorm"}, {"batch_norm", "BatchNorm"}};
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
    fprintf(file, "# what: float, %s",
            results->options.n_threads > 1 ? "each at its best number of threads, " : "");
    print_what(file, results);
    fputs("\"case\" \"PyTorch\" \"torch.compile\" \"oneDNN\"\n", file);
    for (int i = 0; i < results->n_cases; i++) {
        const bench_case *what = &results->cases[i];
        const bool norm = !strncmp(what->group, "norm_", 5) &&
                          (!strcmp(what->shape, "128x128") || !strcmp(what->shape, "4096x768"));
        const double ours = bench_best(results, i, NORMGRAD);
        if ((!norm && strcmp(what->group, "step")) || ours <= 0) continue;
        write_label(file, what);
        write_number(file, bench_best(results, i, PYTORCH) / ours);
        write_number(file, bench_best(results, i, COMPILED) / ours);
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
    if (!options->group) well = write_ratios(results, plots) && well;
    if (well) printf("\nAll times are in %s/results.tsv\n", options->output);
    return well;
}
