/* normgrad against its peers and against the machine, in one interleaved run.
 *
 * For each case every engine (normgrad, the roof, the peers) at each number of threads makes its
 * buffers; then they take turns, a short burst of runs each, for several rounds. A burst gives
 * the median of its runs, the rounds the median of these: what else the machine does, or how fast
 * it happens to be, meets all alike. */
#include "bench.h"
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- The cases ------------------------------------------------------------------------------ */

static const char *const groups[] = {"norm_forward", "norm_backward", "second", "pointwise",
                                     "product",      "step",          "scale"};

static void add_case(bench_results *results, const char *group, const char *name, const char *shape)
{
    if (results->options.group && strcmp(results->options.group, group)) return;
    if (results->n_cases == MOST_CASES) return;
    bench_case *what = &results->cases[results->n_cases++];
    *what = (bench_case){0};
    snprintf(what->group, sizeof what->group, "%s", group);
    snprintf(what->name, sizeof what->name, "%s", name);
    snprintf(what->shape, sizeof what->shape, "%s", shape);
    bench_parse_shape(what);
}

static void add_norms(bench_results *results)
{
    static const char *const norms[] = {"layer_norm", "rms_norm", "batch_norm"};
    static const char *const shapes[] = {"32x64", "128x128", "1024x768", "4096x768", "8192x4096"};
    for (int direction = 0; direction < 2; direction++)
        for (int norm = 0; norm < 3; norm++)
            for (int shape = 0; shape < (results->options.quick ? 4 : 5); shape++)
                add_case(results, groups[direction], norms[norm], shapes[shape]);
}

/* Gradients of gradients. */
static void add_second(bench_results *results)
{
    static const char *const norms[] = {"layer_norm", "rms_norm", "batch_norm"};
    for (int norm = 0; norm < 3; norm++) add_case(results, "second", norms[norm], "1024x768");
    static const char *const steps[] = {"penalty", "maml", "hvp"};
    for (int i = 0; i < 3; i++) add_case(results, "second", steps[i], "64-128*2-10@64");
}

static void add_pointwise(bench_results *results)
{
    static const char *const ops[] = {"gelu", "softmax", "cross_entropy", "bias_add",
                                      "residual_add"};
    for (int op = 0; op < 5; op++)
        for (int back = 0; back < 2; back++) {
            char name[32];
            snprintf(name, sizeof name, "%s_%s", ops[op], back ? "backward" : "forward");
            add_case(results, "pointwise", name, "4096x768");
        }
}

/* A^T and B^T lie in memory the other way. A linear layer multiplies x W^T, its gradients dy W and
 * dy^T x. */
static void add_products(bench_results *results)
{
    static const char *const products[][2] = {
        {"AB", "16x16x16"},       {"AB", "32x128x64"},    {"AB", "1024x1024x1024"},
        {"AB^T", "32x128x64"},    {"AB^T", "32x128x128"}, {"AB^T", "64x128x128"},
        {"AB^T", "256x1024x784"}, {"A^TB", "128x128x32"}, {"A^TB", "1024x784x256"}};
    for (size_t i = 0; i < sizeof products / sizeof *products; i++)
        add_case(results, "product", products[i][0], products[i][1]);
}

static void add_steps(bench_results *results)
{
    add_case(results, "step", "mlp", "64-32-10@32");
    add_case(results, "step", "mlp", "64-128*2-10@32");
    add_case(results, "step", "mlp", "784-256*2-10@64");
    add_case(results, "step", "mlp", "784-1024*2-10@256");
    add_case(results, "step", "transformer-4x128", "8x128");
    add_case(results, "step", "lstm-64", "64x50");
}

static void add_scale(bench_results *results)
{
    const bool quick = results->options.quick;
    char shape[48];
    for (int layers = 2; layers <= 64; layers *= quick ? 8 : 2) {
        snprintf(shape, sizeof shape, "64-128*%d-10@64", layers);
        add_case(results, "scale", "depth", shape);
    }
    for (int batch = 1; batch <= 4096; batch *= quick ? 16 : 4) {
        snprintf(shape, sizeof shape, "64-128*2-10@%d", batch);
        add_case(results, "scale", "batch", shape);
    }
}

static void add_cases(bench_results *results)
{
    add_norms(results);
    add_second(results);
    add_pointwise(results);
    add_products(results);
    add_steps(results);
    add_scale(results);
}

/* ---- Measuring ------------------------------------------------------------------------------ */

typedef bench_child bench_children[ENGINES][MOST_THREADS];

double bench_best(const bench_results *results, int which, bench_engine engine)
{
    double best = 0;
    for (int t = 0; t < results->options.n_threads; t++) {
        const double time = results->median[which][engine][t];
        if (time > 0 && (best == 0 || time < best)) best = time;
    }
    return best;
}

/* Which cases an engine is asked for: few are compiled, for it takes half a minute. */
static bool takes_part(bench_engine engine, const bench_case *what, bool quick)
{
    const bool step = !strcmp(what->group, "step");
    if (engine == NORMGRAD || engine == ROOF) return true;
    if (engine == KANN) return step && what->widths;
    if (engine == COMPILED)
        return !quick && ((step && !what->hidden) ||
                          (!strncmp(what->group, "norm_", 5) && what->columns == 768));
    return true;
}

static void progress(const bench_results *results, int which, int round)
{
    if (!isatty(STDERR_FILENO)) return;
    if (which < 0) {
        fputs("\r\033[K", stderr);
        return;
    }
    const bench_case *what = &results->cases[which];
    fprintf(stderr, "\r\033[K%d/%d  %s %s %s  round %d of %d", which + 1, results->n_cases,
            what->group, what->name, what->shape, round + 1, results->options.rounds);
}

/* How long a case runs without a pause. A training goes on and on, so that its step is timed when
 * the clock, the caches and the threads' help are those of a run that is under way; so are large
 * arrays, of which a short burst has two or three runs, the first in caches full of another's. */
static double burst_of(const bench_options *options, const bench_case *what)
{
    const bool is_large = what->rows * what->columns >= 1 << 24;
    return options->milliseconds * (!strcmp(what->group, "step") || is_large ? 10 : 1);
}

static void measure(bench_results *results, bench_children children, int which)
{
    const bench_options *options = &results->options;
    const bench_case *what = &results->cases[which];
    static double times[ENGINES][MOST_THREADS][MOST_ROUNDS];
    bool has[ENGINES][MOST_THREADS] = {{false}};
    progress(results, which, 0);
    for (int e = 0; e < ENGINES; e++)
        for (int t = 0; t < options->n_threads; t++)
            has[e][t] = takes_part((bench_engine)e, what, options->quick) &&
                        !strcmp(child_ask(&children[e][t], "open %s %s %s", what->group, what->name,
                                          what->shape),
                                "ok");
    const double begin = bench_now();
    int rounds = 0;
    for (; rounds < options->rounds; rounds++) {
        if (rounds && bench_now() - begin > options->patience) break;
        progress(results, which, rounds);
        for (int t = 0; t < options->n_threads; t++)
            for (int e = 0; e < ENGINES; e++)
                if (has[e][t])
                    times[e][t][rounds] = atof(child_ask(&children[e][t], "time %g %d",
                                                         burst_of(options, what), options->least));
    }
    for (int e = 0; e < ENGINES; e++)
        for (int t = 0; t < options->n_threads; t++) {
            if (!has[e][t] || !children[e][t].pid) continue;
            child_ask(&children[e][t], "close");
            results->median[which][e][t] = bench_median(times[e][t], rounds);
        }
    progress(results, -1, 0);
}

static void measure_all(bench_results *results, bench_children children)
{
    for (int which = 0; which < results->n_cases; which++) {
        measure(results, children, which);
        report_case(results, which);
    }
}

/* ---- The engines ---------------------------------------------------------------------------- */

/* An engine that no case is for is not started. */
static bool needed(const bench_results *results, bench_engine engine)
{
    for (int which = 0; which < results->n_cases; which++)
        if (takes_part(engine, &results->cases[which], results->options.quick)) return true;
    return false;
}

static void start_all(bench_results *results, bench_children children)
{
    for (int e = 0; e < ENGINES; e++) {
        if (!needed(results, (bench_engine)e)) continue;
        if (isatty(STDERR_FILENO)) fprintf(stderr, "\r\033[Kstarting %s", bench_engine_title[e]);
        for (int t = 0; t < results->options.n_threads; t++) {
            if (child_start(&children[e][t], (bench_engine)e, results->options.threads[t])) {
                memcpy(results->engine[e], children[e][t].name, sizeof results->engine[e]);
                continue;
            }
            progress(results, -1, 0);
            if (e != KANN) printf("Without %s: %s\n", bench_engine_title[e], children[e][t].name);
            break;
        }
    }
    progress(results, -1, 0);
}

/* ---- The command ---------------------------------------------------------------------------- */

static const char usage[] =
    "Usage: bench [OPTION]...   (in the project's folder; make bench, make bench-quick)\n"
    "\n"
    "Times normgrad, PyTorch, torch.compile, oneDNN, kann and the machine's own limit, in turns,\n"
    "and prints tables. A peer that is missing is left out.\n"
    "\n"
    "  -g, --group=NAME     only one group: norm_forward, norm_backward, second, pointwise,\n"
    "                       product, step or scale\n"
    "  -q, --quick          fewer cases, shorter bursts, no torch.compile: under a minute\n"
    "  -t, --threads=LIST   numbers of threads, at most 4 of them (default 1,2)\n"
    "  -o, --output=FOLDER  where results.tsv is written (default build/bench)\n"
    "  -p, --plots=FOLDER   where the figures' numbers are written (default: --output's)\n"
    "  -h, --help           this text\n"
    "\n"
    "columns   us: microseconds of a run; share: the roof's part of normgrad's time, 100 % being\n"
    "          as fast as the machine can move the data (step: do the products); ratio: a peer's\n"
    "          time by normgrad's, above 1 where normgrad is faster; gain: by how much more\n"
    "          threads make normgrad faster\n"
    "roof      the fastest loop that has the same reads and writes, on buffers of the same size\n"
    "          (BatchNorm's reads all twice: a batch does not stay in cache as a row does);\n"
    "          for GELU and cross-entropy forward no less than their formulas take in cache;\n"
    "          for a step its matrix products at the rate of a large square one\n"
    "bursts    of 30 ms, as often as there are rounds; steps, which a training repeats, and\n"
    "          arrays of 64 MB and more 300 ms\n"
    "results   build/bench/results.tsv has microseconds\n";

static bool parse_threads(bench_options *options, const char *text)
{
    char *end;
    options->n_threads = 0;
    do {
        const long count = strtol(text, &end, 10);
        if (count < 1 || count > 1024 || options->n_threads == MOST_THREADS) return false;
        options->threads[options->n_threads++] = (int)count;
        text = end + 1;
    } while (*end == ',');
    return *end == '\0';
}

static bool is_group(const char *name)
{
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
        if (!strcmp(name, groups[i])) return true;
    return false;
}

static int complain(const char *what, const char *value)
{
    fprintf(stderr, "bench: %s%s%s; bench --help explains\n", what, value ? " " : "",
            value ? value : "");
    return 2;
}

static int serve(const char *engine)
{
    if (!strcmp(engine, "normgrad")) return bench_normgrad();
    if (!strcmp(engine, "roof")) return bench_roof();
    return complain("no such engine:", engine);
}

static bool make_folder(const char *path)
{
    char part[4096];
    for (size_t i = 1; i < sizeof part - 1 && path[i - 1]; i++) {
        if (path[i] && path[i] != '/') continue;
        snprintf(part, sizeof part, "%.*s", (int)i, path);
        if (mkdir(part, 0777) && errno != EEXIST) return false;
    }
    return true;
}

static int run(bench_results *results)
{
    static bench_children children;
    if (!make_folder(results->options.output))
        return complain("cannot make", results->options.output);
    if (results->options.plots && !make_folder(results->options.plots))
        return complain("cannot make", results->options.plots);
    signal(SIGPIPE, SIG_IGN);
    add_cases(results);
    start_all(results, children);
    report_head(results);
    measure_all(results, children);
    for (int e = 0; e < ENGINES; e++)
        for (int t = 0; t < MOST_THREADS; t++) child_stop(&children[e][t]);
    const bool well = report_write(results);
    report_standing(results);
    return well ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    static const struct option known[] = {
        {"group", required_argument, NULL, 'g'},   {"quick", no_argument, NULL, 'q'},
        {"threads", required_argument, NULL, 't'}, {"output", required_argument, NULL, 'o'},
        {"plots", required_argument, NULL, 'p'},   {"help", no_argument, NULL, 'h'},
        {"engine", required_argument, NULL, 'e'},  {NULL, 0, NULL, 0},
    };
    static bench_results results = {
        .options = {
            .rounds = 7, .least = 3, .milliseconds = 30, .patience = 30, .output = "build/bench"}};
    bench_options *options = &results.options;
    parse_threads(options, sysconf(_SC_NPROCESSORS_ONLN) > 1 ? "1,2" : "1");
    for (int c; (c = getopt_long(argc, argv, "g:qt:o:p:h", known, NULL)) != -1;) {
        if (c == 'e') return serve(optarg);
        if (c == 'h') return fputs(usage, stdout) < 0;
        if (c == 'g' && !is_group(optarg)) return complain("no such group:", optarg);
        if (c == 't' && !parse_threads(options, optarg)) return complain("--threads:", optarg);
        if (c == '?') return 2;
        if (c == 'g') options->group = optarg;
        if (c == 'q') options->quick = true;
        if (c == 'o') options->output = optarg;
        if (c == 'p') options->plots = optarg;
    }
    if (optind < argc) return complain("not an option:", argv[optind]);
    if (options->quick) {
        options->rounds = 3;
        options->least = 2;
        options->milliseconds = 5;
        options->patience = 0.4;
    }
    return run(&results);
}
