#include "engines.h"
#include <math.h>
#include <normgrad.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

const char *const engine_names[ENGINES] = {"normgrad", "PyTorch", "oneDNN", "E[x²] - E[x]²",
                                           "double mean"};

/* ---- normgrad ------------------------------------------------------------------------------- */

static bool is(const request *r, const char *op) { return strcmp(r->op, op) == 0; }

static void read_out(const ng_tensor *x, double *to, bool *has)
{
    for (int64_t i = 0; i < ng_size(x); i++) to[i] = ng_get(x, i);
    *has = true;
}

static ng_tensor *tensor_of(ng_tape *tape, const request *r, ng_shape shape, const double *from)
{
    int64_t count = 1;
    for (int i = 0; i < shape.rank; i++) count *= shape.dim[i];
    ng_tensor *x = ng_from(tape, r->single ? NG_F32 : NG_F64, shape, from, count);
    return ng_variable(tape, x);
}

/* Channels stand in columns: the rows' transpose. */
static ng_tensor *batch_norm(ng_tape *tape, const request *r, ng_tensor *x, ng_tensor *gamma,
                             ng_tensor *beta)
{
    ng_tensor *y = ng_batch_norm(tape, ng_transpose(tape, x, 0, 1), gamma, beta, NG_NONE, NG_NONE,
                                 .eps = r->rows.eps, .training = true);
    return ng_transpose(tape, y, 0, 1);
}

static ng_tensor *y_of(ng_tape *tape, const request *r, ng_tensor *x, ng_tensor *gamma,
                       ng_tensor *beta)
{
    if (is(r, "layer_norm")) return ng_layer_norm(tape, x, gamma, beta, .eps = r->rows.eps);
    if (is(r, "rms_norm"))
        return ng_row_norm(tape, x, gamma, beta, .eps = r->rows.eps, .rms = true);
    if (is(r, "batch_norm")) return batch_norm(tape, r, x, gamma, beta);
    if (is(r, "softmax")) return ng_softmax(tape, x);
    if (is(r, "log_softmax")) return ng_log_softmax(tape, x);
    if (is(r, "variance")) return ng_variance(tape, x, .axes = NG_AXES(-1));
    if (is(r, "attention")) return ng_attention(tape, x, gamma, beta, NG_NONE, .heads = 1);
    ng_tensor *labels = ng_full(tape, NG_I64, NG_SHAPE(r->rows.rows), 0);
    return ng_cross_entropy(tape, x, labels, .reduction = NG_EACH);
}

static void compute_here(const request *r, double *results[EXACT_RESULTS], bool has[EXACT_RESULTS])
{
    const int64_t rows = r->rows.rows, n = r->rows.n;
    const bool attention = is(r, "attention"), norm = r->size[EXACT_DGAMMA] > 0;
    const ng_shape matrix = attention ? NG_SHAPE(1, rows, n) : NG_SHAPE(rows, n),
                   row = attention ? matrix : NG_SHAPE(r->rows.columns ? rows : n);
    ng_tape *tape = ng_tape_new();
    ng_tensor *x = tensor_of(tape, r, matrix, r->rows.x), *dx[3];
    ng_tensor *gamma = norm || attention ? tensor_of(tape, r, row, r->rows.gamma) : NG_NONE;
    ng_tensor *beta = norm || attention ? tensor_of(tape, r, row, r->rows.beta) : NG_NONE;
    ng_tensor *y = y_of(tape, r, x, gamma, beta);
    ng_tensor *dy = tensor_of(tape, r, matrix, r->rows.dy);
    if (ng_rank(y) < ng_rank(x)) { /* one number of each row */
        ng_tensor *column = ng_slice(tape, dy, 1, 0, 1);
        dy = ng_reshape(tape, column, NG_SHAPE(rows));
    }
    read_out(y, results[EXACT_Y], &has[EXACT_Y]);
    ng_tensor *const inputs[] = {x, gamma, beta};
    const int count = norm ? 2 : attention ? 3 : 1;
    if (ng_gradients(tape, &y, 1, inputs, count, dx, .cotangents = &dy, .record = norm)) return;
    read_out(dx[0], results[EXACT_DX], &has[EXACT_DX]);
    if (norm) read_out(dx[1], results[EXACT_DGAMMA], &has[EXACT_DGAMMA]);
    if (attention) {
        read_out(dx[1], results[EXACT_DDX], &has[EXACT_DDX]);
        read_out(dx[2], results[EXACT_DDY], &has[EXACT_DDY]);
    }
    if (norm) {
        ng_tensor *v = tensor_of(tape, r, matrix, r->rows.v), *second[2];
        ng_tensor *const both[] = {x, dy};
        if (ng_gradients(tape, dx, 1, both, 2, second, .cotangents = &v)) return;
        read_out(second[0], results[EXACT_DDX], &has[EXACT_DDX]);
        read_out(second[1], results[EXACT_DDY], &has[EXACT_DDY]);
    }
    ng_tape_free(tape);
}

/* ---- Formulas that are written out, in float ------------------------------------------------ */

/* The forward pass in float. The mean and the squares are summed up in eight floats, as vectors of
 * AVX2 do it. DIFFERENCE: the variance is mean(x^2) - mean(x)^2, as in burn and, for years, in
 * onnxruntime. DOUBLE_MEAN: the mean's sum is in double, and the variance is that of the
 * differences from the mean in float, as in onnxruntime since its pull request 31973. */
static void write_out(int engine, const request *r, double *y)
{
    const exact_rows *in = &r->rows;
    const float count = (float)in->n;
    for (int64_t k = 0; k < in->rows; k++) {
        const double *x = in->x + k * in->n;
        float sums[8] = {0}, squares[8] = {0}, mean = 0, square = 0;
        double sum = 0;
        for (int64_t i = 0; i < in->n; i++) sums[i % 8] += (float)x[i], sum += x[i];
        for (int i = 0; i < 8; i++) mean += sums[i];
        mean = engine == DOUBLE_MEAN ? (float)(sum / (double)in->n) : mean / count;
        if (in->rms) mean = 0;
        for (int64_t i = 0; i < in->n; i++) {
            const float off = (float)x[i] - (engine == DOUBLE_MEAN ? mean : 0);
            squares[i % 8] += off * off;
        }
        for (int i = 0; i < 8; i++) square += squares[i];
        square = square / count - (engine == DIFFERENCE ? mean * mean : 0);
        const float rstd = 1 / sqrtf(square + (float)in->eps);
        for (int64_t i = 0; i < in->n; i++)
            y[k * in->n + i] =
                (double)(((float)x[i] - mean) * rstd * (float)in->gamma[i] + (float)in->beta[i]);
    }
}

/* ---- Other libraries ------------------------------------------------------------------------ */

/* A program that reads requests and writes results, numbers as doubles:
 *
 *     OP SINGLE ROWS N EPS\n  x dy v gamma beta   ->   bits of the results\n  results */
static struct {
    FILE *to, *from;
    pid_t process;
} peers[ENGINES];

static void start(int engine, const char *program, const char *argument)
{
    int to[2], from[2];
    if (pipe(to) || pipe(from)) return;
    const pid_t process = fork();
    if (process == 0) {
        dup2(to[0], STDIN_FILENO), dup2(from[1], STDOUT_FILENO);
        close(to[0]), close(to[1]), close(from[0]), close(from[1]);
        execlp(program, program, argument, (char *)NULL);
        _exit(127);
    }
    close(to[0]), close(from[1]);
    peers[engine].to = fdopen(to[1], "w");
    peers[engine].from = fdopen(from[0], "r");
    peers[engine].process = process;
    char name[64];
    if (peers[engine].from && fgets(name, sizeof name, peers[engine].from)) {
        fprintf(stderr, "%s: %s", engine_names[engine], name);
        return;
    }
    fprintf(stderr, "%s: none here\n", engine_names[engine]);
    peers[engine].process = 0;
}

void start_engines(const char *folder)
{
    char onednn[4096];
    const char *python = getenv("PYTHON");
    snprintf(onednn, sizeof onednn, "%s/onednn", folder);
    start(PYTORCH, python ? python : "/usr/bin/python3", "tests/accuracy/pytorch.py");
    start(ONEDNN, onednn, NULL);
}

void stop_engines(void)
{
    for (int i = 0; i < ENGINES; i++)
        if (peers[i].to) fclose(peers[i].to), fclose(peers[i].from);
    while (wait(NULL) > 0) {
    }
}

static void ask(int engine, const request *r, double *results[EXACT_RESULTS],
                bool has[EXACT_RESULTS])
{
    FILE *to = peers[engine].to, *from = peers[engine].from;
    const exact_rows *in = &r->rows;
    const size_t all = (size_t)(in->rows * in->n),
                 row = (size_t)(is(r, "attention") ? in->rows * in->n
                                : in->columns      ? in->rows
                                                   : in->n);
    fprintf(to, "%s %d %lld %lld %.17g\n", r->op, r->single, (long long)in->rows, (long long)in->n,
            in->eps);
    fwrite(in->x, sizeof *in->x, all, to), fwrite(in->dy, sizeof *in->dy, all, to);
    fwrite(in->v, sizeof *in->v, all, to);
    fwrite(in->gamma, sizeof *in->gamma, row, to), fwrite(in->beta, sizeof *in->beta, row, to);
    fflush(to);
    char line[32];
    const unsigned long bits = fgets(line, sizeof line, from) ? strtoul(line, NULL, 10) : 0;
    for (int i = 0; i < EXACT_RESULTS; i++)
        if (bits >> i & 1)
            has[i] =
                fread(results[i], sizeof(double), (size_t)r->size[i], from) == (size_t)r->size[i];
}

void compute(int engine, const request *r, double *results[EXACT_RESULTS], bool has[EXACT_RESULTS])
{
    for (int i = 0; i < EXACT_RESULTS; i++) has[i] = false;
    if (engine == NORMGRAD) compute_here(r, results, has);
    if (peers[engine].process > 0) ask(engine, r, results, has);
    if (engine < DIFFERENCE || !r->single || r->rows.columns || !r->size[EXACT_DGAMMA]) return;
    if (engine == DOUBLE_MEAN && r->rows.rms) return; /* the same */
    write_out(engine, r, results[EXACT_Y]);
    has[EXACT_Y] = true;
}
