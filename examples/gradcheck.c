/* Checks the gradients of every op and layer at first and second order, and tests the checker with
 * deliberately wrong gradients. */
#include "../tests/cases/cases.h"
#include "more/harness.h"
#include <ctype.h>
#include <limits.h>
#include <unistd.h>

static const char usage[] =
    "usage: gradcheck [options]\n"
    "\n"
    "Checks the gradients of every op and every layer against finite differences, in double:\n"
    "every element and random directions, at first and second order, with operands that broadcast\n"
    "on the left, on the right and on both sides. Detached values vary with the input, except "
    "those\n"
    "that are constant by definition. Then checks wrong gradients and reports whether each one "
    "was\n"
    "caught.\n";
enum { ONLY, ORDER, FAST, SEED };
static option rows[] = {
    [ONLY] = {"only", "check what has X in its name: layer_norm finds LayerNorm too", .text = ""},
    [ORDER] = {"order", "1: gradients; 2: also gradients of gradients", .normal = 2, .most = 2},
    [FAST] = {"fast", "check cases along random directions only", .is_switch = true},
    [SEED] = {"seed", "seed of inputs, cotangents and directions", .zero = true},
    {0}};

typedef struct {
    const char *only;
    int order;
    bool fast;
    uint64_t seed;
} options;

typedef struct {
    int64_t cases, compared, wrong_cases, faults, missed;
} totals;

/* ---- Print --------------------------------------------------------------------------------- */

static bool on_terminal;

static void colour(const char *code)
{
    if (on_terminal) printf("\033[%sm", code);
}

static void heading(const char *text)
{
    static bool begun;
    if (!begun) ng_check_print_head(stdout);
    begun = true;
    putchar('\n');
    colour("1");
    fputs(text, stdout);
    colour("0");
    putchar('\n');
}

static void print(const char *name, const ng_check_report *report)
{
    if (!report->passed) colour("31");
    ng_check_print(stdout, name, report);
    if (!report->passed) colour("0");
}

/* ---- Cases -------------------------------------------------------------------------------- */

/* Checks one case. Prints a line for the check by elements (by directions with --fast), and one for
 * each further mode that failed. */
static void check_one(const gradient_case *spec, const char *name, const options *chosen,
                      totals *sum)
{
    bool passed = true;
    ng_check_mode first = chosen->fast ? NG_CHECK_FAST : NG_CHECK_ELEMENTS;
    for (ng_check_mode mode = first; mode <= NG_CHECK_FAST; mode++) {
        ng_check_report report = check_case(spec, (ng_check_options){.order = chosen->order,
                                                                     .mode = mode,
                                                                     .seed = chosen->seed,
                                                                     .detached_moves = true});
        if (mode == first || !report.passed) print(name, &report);
        passed = passed && report.passed;
        sum->compared += report.compared;
    }
    sum->cases++;
    sum->wrong_cases += !passed;
}

static void check_broadcasting(const gradient_case *spec, const options *chosen, totals *sum)
{
    static const char *const sides[] = {"left", "right", "both sides"};
    for (int side = BROADCAST_LEFT; side <= BROADCAST_BOTH; side++) {
        char name[96];
        gradient_case narrow = case_broadcast(spec, (broadcast_side)side);
        snprintf(name, sizeof name, "%s, broadcast on %s%s", spec->name, side < 2 ? "the " : "",
                 sides[side]);
        check_one(&narrow, name, chosen, sum);
    }
}

/* Whether the name contains the part, whatever their case and without blanks and underscores:
 * "layer_norm" finds LayerNorm. */
static bool is_named(const char *name, const char *part)
{
    for (; *name; name++) {
        const char *at = name, *wanted = part;
        for (;; at++, wanted++) {
            at += strspn(at, " _"), wanted += strspn(wanted, " _");
            if (!*wanted) return true;
            if (tolower((unsigned char)*at) != tolower((unsigned char)*wanted)) break;
        }
    }
    return false;
}

static void check_table(const char *title, const gradient_case *case_at(int index),
                        const options *chosen, totals *sum)
{
    const gradient_case *spec;
    bool begun = false;
    for (int i = 0; (spec = case_at(i)); i++) {
        if (!is_named(spec->name, chosen->only)) continue;
        if (!begun) heading(title);
        begun = true;
        check_one(spec, spec->name, chosen, sum);
        if (spec->broadcasts) check_broadcasting(spec, chosen, sum);
    }
}

/* ---- Planted faults: ops whose values are right and whose gradients are not ------------------ */

/* y = tanh x as an op with the gradient of `op`. */
static ng_tensor *tanh_with(ng_tape *tape, const ng_op *op, ng_tensor *x)
{
    if (!ng_accepts(op->name, tape, 1, &x)) return NULL;
    ng_tensor *y = ng_result(tape, NG_F64, ng_shape_of(x));
    const double *from = ng_data_f64(x);
    double *to = ng_data_f64(y);
    if (!from || !to) return NULL;
    for (int64_t i = 0; i < ng_size(x); i++) to[i] = tanh(from[i]);
    return ng_record(tape, op, y, &x, 1, NULL, 0);
}

/* dy (1 - y^2) */
static ng_tensor *tanh_rule(ng_tape *tape, const ng_node *node, ng_tensor *dy)
{
    return ng_mul(tape, dy, ng_scalar_sub(tape, 1, ng_square(tape, node->output)));
}

/* A constant of x's shape with `value` at one element and `rest` elsewhere. */
static ng_tensor *one_element(ng_tape *tape, ng_tensor *x, int64_t index, double value, double rest)
{
    ng_tensor *mask = ng_result(tape, NG_F64, ng_shape_of(x));
    double *to = ng_data_f64(mask);
    for (int64_t i = 0; to && i < ng_size(x); i++) to[i] = i == index ? value : rest;
    return mask;
}

static void flipped(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    dx[0] = ng_neg(tape, tanh_rule(tape, node, dy));
}
static void scaled(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    dx[0] = ng_mul_scalar(tape, tanh_rule(tape, node, dy), 1.01);
}
static void one_wrong(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    dx[0] = ng_mul(tape, tanh_rule(tape, node, dy), one_element(tape, dy, 5, 1.001, 1));
}
static void not_a_number(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    dx[0] = ng_mul(tape, tanh_rule(tape, node, dy), one_element(tape, dy, 5, (double)NAN, 1));
}
static void in_float(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    dx[0] = ng_cast(tape, ng_cast(tape, tanh_rule(tape, node, dy), NG_F32), NG_F64);
}
static void zero(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    (void)node;
    dx[0] = ng_zeros_like(tape, dy);
}

/* The right first gradient, with the slope's dependence on x detached. */
static void cut_off(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    ng_tensor *slope = ng_scalar_sub(tape, 1, ng_square(tape, ng_detach(tape, node->output)));
    dx[0] = ng_mul(tape, dy, slope);
}

/* A fused op with a wrong definition, from which second gradients are made. */
static ng_status tanh_backward(ng_tape *tape, const ng_node *node, const ng_tensor *dy, ng_slot *dx)
{
    (void)tape;
    const double *from = ng_data_f64(dy), *y = ng_data_f64(node->output);
    double *to = dx[0].data;
    for (int64_t i = 0; i < ng_size(dy); i++) {
        to[i] = (dx[0].accumulate ? to[i] : 0) + from[i] * (1 - y[i] * y[i]);
    }
    return NG_OK;
}
static ng_tensor *sine_definition(ng_tape *tape, const ng_node *node)
{
    return ng_sin(tape, node->inputs[0]);
}

#define TANH(call, ...)                                                                            \
    static ng_tensor *call(ng_tape *tape, ng_tensor *const *in, void *context)                     \
    {                                                                                              \
        static const ng_op op = {.name = #call, __VA_ARGS__};                                      \
        (void)context;                                                                             \
        return tanh_with(tape, &op, in[0]);                                                        \
    }
TANH(tanh_flipped, .gradient = flipped)
TANH(tanh_scaled, .gradient = scaled)
TANH(tanh_one_wrong, .gradient = one_wrong)
TANH(tanh_nan, .gradient = not_a_number)
TANH(tanh_in_float, .gradient = in_float)
TANH(tanh_zero, .gradient = zero)
TANH(tanh_cut_off, .gradient = cut_off)
TANH(tanh_defined_otherwise, .backward = tanh_backward, .definition = sine_definition)
TANH(tanh_without_gradient, .gradient = NULL)

/* xhat = (x - mean) / sqrt(var + eps) along an axis. Its gradient is
 *
 *     dx = rstd (g - mean(g) - xhat mean(g xhat))
 *
 * The faults: either mean left out, the first mean along the other axis, the variance of another
 * batch. */
typedef struct {
    int axis;
    bool no_mean, no_variance, wrong_axis;
    double stale_variance;
} norm_fault;

static ng_tensor *mean_along(ng_tape *tape, ng_tensor *x, int axis)
{
    return ng_mean(tape, x, .axes = NG_AXES(axis), .keepdim = true);
}

static ng_tensor *rstd_along(ng_tape *tape, ng_tensor *x, int axis)
{
    ng_tensor *variance = ng_variance(tape, x, .axes = NG_AXES(axis), .keepdim = true);
    return ng_rsqrt(tape, ng_add_scalar(tape, variance, 1e-5));
}

static void norm_gradient(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    const norm_fault *fault = node->attributes;
    ng_tensor *x = node->inputs[0], *xhat = node->output, *sum = dy;
    ng_tensor *rstd = rstd_along(tape, x, fault->axis);
    if (fault->stale_variance > 0) {
        rstd = ng_full(tape, NG_F64, ng_shape_of(rstd), 1 / sqrt(fault->stale_variance + 1e-5));
    }
    const int mean_axis = fault->wrong_axis ? 1 - fault->axis : fault->axis;
    if (!fault->no_mean) sum = ng_sub(tape, sum, mean_along(tape, dy, mean_axis));
    if (!fault->no_variance) {
        ng_tensor *along = mean_along(tape, ng_mul(tape, dy, xhat), fault->axis);
        sum = ng_sub(tape, sum, ng_mul(tape, xhat, along));
    }
    dx[0] = ng_mul(tape, rstd, sum);
}

static ng_tensor *norm_with(ng_tape *tape, ng_tensor *x, norm_fault fault)
{
    static const ng_op op = {.name = "norm with a fault", .gradient = norm_gradient};
    bool was = ng_tape_set_recording(tape, false);
    ng_tensor *centred = ng_sub(tape, x, mean_along(tape, x, fault.axis));
    ng_tensor *xhat = ng_mul(tape, centred, rstd_along(tape, x, fault.axis));
    ng_tape_set_recording(tape, was);
    return ng_record(tape, &op, xhat, &x, 1, &fault, sizeof fault);
}

#define NORM(call, ...)                                                                            \
    static ng_tensor *call(ng_tape *tape, ng_tensor *const *in, void *context)                     \
    {                                                                                              \
        (void)context;                                                                             \
        return norm_with(tape, in[0], (norm_fault){__VA_ARGS__});                                  \
    }
NORM(layer_norm_right, .axis = 1)
NORM(layer_norm_no_mean, .axis = 1, .no_mean = true)
NORM(layer_norm_wrong_axis, .axis = 1, .wrong_axis = true)
NORM(layer_norm_stale_variance, .axis = 1, .no_variance = true)
NORM(batch_norm_stale_mean, .axis = 0, .no_mean = true)
NORM(batch_norm_stale_both, .axis = 0, .no_mean = true, .no_variance = true)
NORM(batch_norm_running, .axis = 0, .stale_variance = 2)

/* y = x + b, b (m) broadcast over the rows of x (n, m): db is the sum of dy over the rows. */
typedef enum { NO_SUM, FIRST_ROW, MEAN } bias_fault;

static void bias_gradient(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    const bias_fault *fault = node->attributes;
    ng_tensor *row = ng_slice(tape, dy, 0, 0, 1);
    dx[0] = dy;
    if (*fault == NO_SUM) dx[1] = dy;
    if (*fault == FIRST_ROW) dx[1] = ng_reshape(tape, row, ng_shape_of(node->inputs[1]));
    if (*fault == MEAN) dx[1] = ng_mean(tape, dy, .axes = NG_AXES(0));
}

static ng_tensor *bias_with(ng_tape *tape, ng_tensor *const *in, bias_fault fault)
{
    static const ng_op op = {.name = "bias with a fault", .gradient = bias_gradient};
    bool was = ng_tape_set_recording(tape, false);
    ng_tensor *y = ng_add(tape, in[0], in[1]);
    ng_tape_set_recording(tape, was);
    return ng_record(tape, &op, y, in, 2, &fault, sizeof fault);
}

#define BIAS(call, fault)                                                                          \
    static ng_tensor *call(ng_tape *tape, ng_tensor *const *in, void *context)                     \
    {                                                                                              \
        (void)context;                                                                             \
        return bias_with(tape, in, fault);                                                         \
    }
BIAS(bias_no_sum, NO_SUM)
BIAS(bias_first_row, FIRST_ROW)
BIAS(bias_mean, MEAN)

/* y = x W^T with dW transposed. W is square, so the shape is right. */
static void transposed_gradient(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    ng_tensor *x = node->inputs[0], *weight = node->inputs[1];
    dx[0] = ng_matmul(tape, dy, weight);
    dx[1] = ng_matmul(tape, x, dy, .transpose_a = true);
}
static ng_tensor *linear_transposed(ng_tape *tape, ng_tensor *const *in, void *context)
{
    static const ng_op op = {.name = "linear with a fault", .gradient = transposed_gradient};
    (void)context;
    bool was = ng_tape_set_recording(tape, false);
    ng_tensor *y = ng_matmul(tape, in[0], in[1], .transpose_b = true);
    ng_tape_set_recording(tape, was);
    return ng_record(tape, &op, y, in, 2, NULL, 0);
}

/* LayerNorm composed of ops, with its standard deviation detached. */
static ng_tensor *detached_deviation(ng_tape *tape, ng_tensor *const *in, void *context)
{
    (void)context;
    ng_tensor *centred = ng_sub(tape, in[0], mean_along(tape, in[0], 1));
    return ng_mul(tape, centred, ng_detach(tape, rstd_along(tape, in[0], 1)));
}

/* sum(tanh(x)^3) plus the penalty ||d sum(tanh(x)^3) / dx||^2, whose gradient is not recorded. */
static ng_tensor *unrecorded_penalty(ng_tape *tape, ng_tensor *const *in, void *context)
{
    (void)context;
    ng_tensor *y = ng_sum(tape, ng_pow_scalar(tape, ng_tanh(tape, in[0]), 3));
    ng_tensor *gradient = ng_gradient(tape, y, in[0]);
    return ng_add(tape, y, ng_sum(tape, ng_square(tape, gradient)));
}

/* Functions that are not repeatable, constant, or independent of an input. */
static ng_tensor *unrepeatable(ng_tape *tape, ng_tensor *const *in, void *context)
{
    static int calls;
    (void)context;
    return ng_mul_scalar(tape, in[0], 1 + 1e-15 * (double)(++calls % 8));
}
static ng_tensor *constant(ng_tape *tape, ng_tensor *const *in, void *context)
{
    (void)context;
    return ng_mul_scalar(tape, in[0], 0);
}
static ng_tensor *unused(ng_tape *tape, ng_tensor *const *in, void *context)
{
    (void)context;
    return ng_square(tape, in[0]);
}

/* A fault: its function, and a part of the message that the checker must give. */
typedef struct {
    const char *name;
    ng_check_call *call;
    int order; /* the lowest order at which it shows; 0 means 1 */
    const char *says;
    bool square; /* the second input is (4, 4); with .bias it is (4); otherwise there is none */
    bool bias;
    bool detached; /* caught only where detached values vary; held fixed, it passes with a note */
} planted;

static const planted faults[] = {
    {.name = "tanh: sign flipped", .call = tanh_flipped, .says = "sign is flipped"},
    {.name = "tanh: 1 % too large", .call = tanh_scaled, .says = "large by a factor of 1.01"},
    {.name = "tanh: 0.1 % off in one element", .call = tanh_one_wrong, .says = "only this element"},
    {.name = "tanh: NaN in one element", .call = tanh_nan, .says = "NaN"},
    {.name = "tanh: gradient rounded to float", .call = tanh_in_float, .says = "wrong"},
    {.name = "tanh: gradient 0", .call = tanh_zero, .says = "0 where it should not be"},
    {.name = "tanh: op without a gradient", .call = tanh_without_gradient, .says = "no gradient"},
    {.name = "tanh: slope detached", .call = tanh_cut_off, .order = 2, .says = "0 where it should"},
    {.name = "tanh: defined as sine",
     .call = tanh_defined_otherwise,
     .order = 2,
     .says = ".backward and .definition of tanh"},
    {.name = "layer norm: mean's term dropped",
     .call = layer_norm_no_mean,
     .says = "a constant in each row"},
    {.name = "layer norm: mean's term along axis 0",
     .call = layer_norm_wrong_axis,
     .says = "does not sum to 0 along axis 1"},
    {.name = "layer norm: variance held fixed",
     .call = layer_norm_stale_variance,
     .says = "a multiple of x - mean in each row"},
    {.name = "layer norm: deviation detached",
     .call = detached_deviation,
     .detached = true,
     .says = "rsqrt (3, 1) at gradcheck.c"},
    {.name = "batch norm: mean held fixed",
     .call = batch_norm_stale_mean,
     .says = "a constant in each channel"},
    {.name = "batch norm: both held fixed",
     .call = batch_norm_stale_both,
     .says = "a line in x in each channel"},
    {.name = "batch norm: running variance",
     .call = batch_norm_running,
     .says = "a factor of its own in each channel"},
    {.name = "bias: sum over rows missing", .call = bias_no_sum, .bias = true, .says = "(3, 4)"},
    {.name = "bias: only the first row", .call = bias_first_row, .bias = true, .says = "wrong"},
    {.name = "bias: mean for sum",
     .call = bias_mean,
     .bias = true,
     .says = "small by a factor of 3"},
    {.name = "linear: weight's gradient transposed",
     .call = linear_transposed,
     .square = true,
     .says = "transposed"},
    {.name = "gradient penalty: gradient not recorded",
     .call = unrecorded_penalty,
     .says = "without .record"},
    {.name = "input without influence", .call = unused, .bias = true, .says = "no gradient"},
    {.name = "constant function", .call = constant, .says = "every derivative is 0"},
    {.name = "function that is not repeatable", .call = unrepeatable, .says = "run again"},
};

static ng_check_report check_fault(const planted *fault, ng_check_mode mode, const options *chosen,
                                   bool detached_moves)
{
    uint64_t seed = chosen->seed;
    const char *const names[] = {"x", fault->bias ? "bias" : "weight"};
    ng_rng rng = ng_rng_seeded(seed);
    ng_tensor *inputs[] = {ng_normal_new(NG_F64, NG_SHAPE(3, 4), 0, 1, &rng), NULL};
    int count = 1 + (fault->square || fault->bias);
    if (fault->square) inputs[1] = ng_normal_new(NG_F64, NG_SHAPE(4, 4), 0, 1, &rng);
    if (fault->bias) inputs[1] = ng_normal_new(NG_F64, NG_SHAPE(4), 0, 1, &rng);
    ng_check_report report =
        ng_check_function(fault->call, inputs, count, .names = names, .order = chosen->order,
                          .mode = mode, .seed = seed, .detached_moves = detached_moves);
    ng_tensor_free(inputs[0]);
    ng_tensor_free(inputs[1]);
    ng_clear_error();
    return report;
}

static bool says(const ng_check_report *report, const char *part)
{
    return strstr(report->message, part) || strstr(report->hint, part);
}

/* Returns whether the check with detached values held fixed passes and reports them. */
static bool reported_when_held_fixed(const planted *fault, const options *chosen)
{
    ng_check_report held = check_fault(fault, NG_CHECK_ELEMENTS, chosen, false);
    return held.passed && held.detached == 1 && strstr(held.detached_value, fault->says);
}

/* Checks one fault. The check by elements must give the message; the check by directions must
 * fail. */
static void plant(const planted *fault, const options *chosen, totals *sum)
{
    ng_check_report report = check_fault(fault, NG_CHECK_ELEMENTS, chosen, true);
    bool fast = check_fault(fault, NG_CHECK_FAST, chosen, true).passed;
    bool caught = !report.passed && says(&report, fault->says) && !fast;
    if (fault->detached) caught = caught && reported_when_held_fixed(fault, chosen);
    if (!caught) colour("31");
    printf("%-46s %s: %s\n", fault->name, caught ? "caught" : "MISSED",
           report.hint[0] ? report.hint : report.message);
    if (!caught) {
        printf("    every element: %s %s; directions: %s\n", report.passed ? "ok" : "wrong",
               report.message, fast ? "ok" : "wrong");
        colour("0");
    }
    sum->faults++;
    sum->missed += !caught;
}

static void plant_faults(const options *chosen, totals *sum)
{
    bool begun = false;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        if (!is_named(faults[i].name, chosen->only) || faults[i].order > chosen->order) continue;
        if (!begun) heading("Planted faults");
        begun = true;
        plant(&faults[i], chosen, sum);
    }
    if (!begun) return;
    /* The function that carries the norms' faults must pass without one. */
    planted sound = {.call = layer_norm_right};
    if (!check_fault(&sound, NG_CHECK_ELEMENTS, chosen, true).passed) sum->missed++;
}

/* ---- Options ------------------------------------------------------------------------------- */

static int conclude(const options *chosen, const totals *sum)
{
    if (sum->cases + sum->faults == 0) {
        complain(line_of("no case or fault has \"%s\" in its name", chosen->only));
        return 2;
    }
    bool ok = sum->wrong_cases == 0 && sum->missed == 0;
    putchar('\n');
    colour(ok ? "32" : "31");
    printf("%lld of %lld cases passed, %lld derivatives compared",
           (long long)(sum->cases - sum->wrong_cases), (long long)sum->cases,
           (long long)sum->compared);
    if (sum->faults > 0) {
        printf("; %lld of %lld faults caught", (long long)(sum->faults - sum->missed),
               (long long)sum->faults);
    }
    colour("0");
    putchar('\n');
    return ok ? 0 : 1;
}

int main(int argc, char **argv)
{
    begin_program(argc, argv, usage, rows, NULL);
    const options chosen = {get_text(ONLY), get_whole(ORDER), get_number(FAST) > 0,
                            (uint64_t)get_number(SEED)};
    totals sum = {0};
    on_terminal = isatty(STDOUT_FILENO);
    check_table("Ops", op_case, &chosen, &sum);
    check_table("Layers", layer_case, &chosen, &sum);
    plant_faults(&chosen, &sum);
    return end_program(conclude(&chosen, &sum));
}
