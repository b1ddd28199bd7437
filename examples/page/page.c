/* What the page computes (page.html): two trainings on the digits. Compiled to WebAssembly with the
 * two files of `make dist`; page.js names what it exports. */
#include "digits.h" /* digits[1797][65]: 64 pixels from 0 to 16, and the label */
#include "normgrad.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { RUNS = 2, ALL = 1797, TEST = 360, TRAIN = ALL - TEST, PIXELS = 64, CLASSES = 10 };
enum { HIDDEN = 6, WIDTH = 32 };
#define EXPORT(name) __attribute__((export_name(#name))) name

static struct {
    ng_module *net;
    ng_optimizer *adam;
    ng_module *hidden[HIDDEN]; /* its Linear layers */
    ng_tensor *rows;           /* of a step's digits */
    int at;                    /* how many of this pass are taken */
    double gradients[HIDDEN];  /* the norms of their gradients in the last step */
    ng_rng rng;
    int64_t order[TRAIN];
} runs[RUNS];

static ng_tape *tape;
static ng_tensor *pixels, *labels; /* of all digits, shuffled; the last ones are for the test */
static ng_tensor *test_rows;
static char text[512]; /* what a call has to say */

/* ---- Data ---------------------------------------------------------------------------------- */

static void shuffle(int64_t *rows, int count, ng_rng *rng)
{
    for (int i = count - 1; i > 0; i--) {
        const int64_t j = ng_rng_below(rng, i + 1), row = rows[j];
        rows[j] = rows[i], rows[i] = row;
    }
}

static bool load_digits(void)
{
    if (tape) return true;
    pixels = ng_zeros_new(NG_F32, NG_SHAPE(ALL, PIXELS));
    labels = ng_zeros_new(NG_I64, NG_SHAPE(ALL));
    test_rows = ng_zeros_new(NG_I64, NG_SHAPE(TEST));
    tape = ng_tape_new();
    if (ng_failed()) return false;
    int64_t rows[ALL];
    ng_rng rng = ng_rng_seeded(0);
    for (int i = 0; i < ALL; i++) rows[i] = i;
    shuffle(rows, ALL, &rng);
    for (int i = 0; i < ALL; i++) {
        const unsigned char *digit = digits[rows[i]];
        for (int j = 0; j < PIXELS; j++) ng_data_f32(pixels)[PIXELS * i + j] = (float)digit[j] / 16;
        ng_data_i64(labels)[i] = digit[PIXELS];
    }
    for (int i = 0; i < TEST; i++) ng_data_i64(test_rows)[i] = TRAIN + i;
    return true;
}

/* The next rows of the run's order, which is shuffled for each pass. A rest is left out. */
static ng_tensor *next_rows(int run)
{
    const int batch = (int)ng_size(runs[run].rows);
    int64_t *order = runs[run].order;
    if (runs[run].at + batch > TRAIN) runs[run].at = 0;
    if (runs[run].at == 0) shuffle(order, TRAIN, &runs[run].rng);
    memcpy(ng_data_i64(runs[run].rows), order + runs[run].at, (size_t)batch * sizeof *order);
    runs[run].at += batch;
    return runs[run].rows;
}

/* ---- A run --------------------------------------------------------------------------------- */

/* (Linear, norm, ReLU) x HIDDEN, then a Linear to the classes. */
static ng_module *make_network(int run, const char *norm)
{
    ng_norm_maker *make_norm = ng_norm_named(norm);
    ng_module *net = ng_sequential_from(NULL, 0);
    for (int i = 0; i < HIDDEN && make_norm; i++) {
        runs[run].hidden[i] = ng_linear_new(i == 0 ? PIXELS : WIDTH, WIDTH);
        ng_sequential_add(net, runs[run].hidden[i]);
        if (make_norm != ng_norm_none) ng_sequential_add(net, make_norm(WIDTH));
        ng_sequential_add(net, ng_relu_new());
    }
    ng_sequential_add(net, ng_linear_new(WIDTH, CLASSES));
    return net;
}

static ng_tensor *loss_of(int run, ng_tensor *rows)
{
    ng_tensor *y = ng_gather_rows(tape, labels, rows);
    return ng_cross_entropy(tape,
                            ng_forward(runs[run].net, tape, ng_gather_rows(tape, pixels, rows)), y);
}

/* Begins a run anew; false if a setting is refused. */
bool EXPORT(page_begin)(int run, const char *norm, double lr, int batch, int seed)
{
    ng_clear_error();
    ng_optimizer_free(runs[run].adam), ng_module_free(runs[run].net);
    ng_tensor_free(runs[run].rows);
    memset(&runs[run], 0, sizeof runs[run]);
    if (!load_digits()) return false;
    runs[run].rows = ng_zeros_new(NG_I64, NG_SHAPE(batch));
    runs[run].rng = ng_rng_seeded((uint64_t)seed);
    for (int i = 0; i < TRAIN; i++) runs[run].order[i] = i;
    runs[run].net = make_network(run, norm);
    ng_module_init(runs[run].net, (uint64_t)seed);
    runs[run].adam = ng_adam_new(runs[run].net, .lr = lr);
    return !ng_failed();
}

/* Takes so many steps; the mean loss, NaN after a failure. */
double EXPORT(page_train)(int run, int steps)
{
    double sum = 0;
    for (int i = 0; i < steps; i++) {
        ng_tensor *loss = loss_of(run, next_rows(run));
        if (ng_backward(tape, loss)) return NAN;
        for (int k = 0; k < HIDDEN && i == steps - 1; k++)
            runs[run].gradients[k] = ng_grad_norm(runs[run].hidden[k]);
        if (ng_optimizer_step(runs[run].adam)) return NAN;
        sum += ng_item(loss) / steps;
        ng_tape_reset(tape);
    }
    return sum;
}

/* ---- What is seen of it ------------------------------------------------------------------- */

/* The share of the test's digits that the network takes for what they are. */
double EXPORT(page_accuracy)(int run)
{
    ng_tape_set_recording(tape, false), ng_eval(runs[run].net);
    ng_tensor *x = ng_gather_rows(tape, pixels, test_rows);
    ng_tensor *guess = ng_argmax(tape, ng_forward(runs[run].net, tape, x));
    double right = 0;
    for (int i = 0; guess && i < TEST; i++) right += ng_get(guess, i) == ng_get(labels, TRAIN + i);
    ng_tape_set_recording(tape, true), ng_train(runs[run].net);
    ng_tape_reset(tape);
    return right / TEST;
}

/* The standard deviation of what each hidden layer hands on for the test's digits. */
void EXPORT(page_spreads)(int run, double *spreads)
{
    ng_tape_set_recording(tape, false), ng_eval(runs[run].net);
    ng_tensor *x = ng_gather_rows(tape, pixels, test_rows);
    const int layers = ng_module_child(runs[run].net, 2 * HIDDEN + 1) ? 3 : 2;
    for (int i = 0; i < HIDDEN; i++) {
        for (int k = 0; k < layers; k++)
            x = ng_forward(ng_module_child(runs[run].net, layers * i + k), tape, x);
        spreads[i] = x ? sqrt(ng_item(ng_variance(tape, x))) : NAN;
    }
    ng_tape_set_recording(tape, true), ng_train(runs[run].net);
    ng_tape_reset(tape);
}

/* The norm of each hidden layer's gradient in the last step. */
void EXPORT(page_gradients)(int run, double *norms)
{
    memcpy(norms, runs[run].gradients, sizeof runs[run].gradients);
}

/* Checks the network, as it is now, on four random samples: true if every derivative is right. */
bool EXPORT(page_check)(int run)
{
    ng_rng rng = ng_rng_seeded(1);
    ng_tensor *x = ng_normal_new(NG_F64, NG_SHAPE(4, PIXELS), 0, 1, &rng);
    ng_check_report report =
        ng_check_module(runs[run].net, &x, 1, .mode = NG_CHECK_FAST, .directions = 1, .order = 2);
    if (report.passed)
        snprintf(text, sizeof text,
                 "ok: %lld derivatives of first and second order, the largest relative error %.1e",
                 (long long)report.compared, report.relative_error);
    else
        snprintf(text, sizeof text, "wrong: %s", report.message);
    ng_tensor_free(x);
    return report.passed;
}

/* What page_check found, or the failure on record. */
const char *EXPORT(page_text)(void) { return ng_failed() ? ng_error_text() : text; }
int EXPORT(page_layers)(void) { return HIDDEN; }

/* Memory for what goes in and out: a name, or a number for each layer. */
void *EXPORT(page_memory)(void)
{
    static double memory[HIDDEN < 8 ? 8 : HIDDEN];
    return memory;
}
