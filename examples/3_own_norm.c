/* Step 3: a norm of your own, with a backward pass by hand, and the gradient checker. This is
 * LayerNorm without parameters. For each row of x, of n elements:
 *
 *     y  = (x - mean) r                          r = 1 / sqrt(variance + eps)
 *     dx = r (dy - mean(dy) - y mean(dy y))      dy, dx: the gradients at y and x
 *
 * The first mean comes from the row's mean, the second one from its variance. The program checks
 * this, then three mistakes that are easily made. */
#include <math.h>
#include <normgrad.h>
#include <stdio.h>

static const double eps = 1e-5;

typedef enum { RIGHT, NO_MEAN, NO_VARIANCE, FIXED_DEVIATION } mistake;

static ng_tensor *row_mean(ng_tape *tape, ng_tensor *x)
{
    return ng_mean(tape, x, .axes = NG_AXES(-1), .keepdim = true);
}

/* ---- Backward ---- */

/* r of each row, made of ops, so that it has a gradient itself. */
static ng_tensor *reciprocal_deviation(ng_tape *tape, ng_tensor *x)
{
    ng_tensor *variance = ng_variance(tape, x, .axes = NG_AXES(-1), .keepdim = true);
    return ng_rsqrt(tape, ng_add_scalar(tape, variance, eps));
}

/* Sets dx[0], given dy. The node has the op's inputs, its output and its attributes: a copy of what
 * ng_record below was given, here the mistake. */
static void own_norm_gradient(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    const mistake planted = *(const mistake *)node->attributes;
    ng_tensor *y = node->output, *sum = dy;
    ng_tensor *r = reciprocal_deviation(tape, node->inputs[0]);
    if (planted == FIXED_DEVIATION) r = ng_detach(tape, r);
    if (planted != NO_MEAN) sum = ng_sub(tape, sum, row_mean(tape, dy));
    if (planted != NO_VARIANCE)
        sum = ng_sub(tape, sum, ng_mul(tape, y, row_mean(tape, ng_mul(tape, dy, y))));
    dx[0] = ng_mul(tape, r, sum);
}

/* ---- Forward ---- */

static const ng_op own_norm_op = {.name = "own_norm", .gradient = own_norm_gradient};

/* It takes double only; more/custom_op.c takes float as well. */
static ng_tensor *own_norm(ng_tape *tape, ng_tensor *x, mistake made)
{
    if (!ng_accepts("own_norm", tape, 1, &x)) return NULL; /* x can be an operand */
    ng_tensor *result = ng_result(tape, NG_F64, ng_shape_of(x));
    const double *row = ng_data_f64(x);
    double *y = ng_data_f64(result);
    if (!row || !y) return NULL;
    const int64_t n = ng_dim(x, -1), rows = ng_size(x) / n;
    for (int64_t k = 0; k < rows; k++, row += n, y += n) {
        double mean = 0, variance = 0;
        for (int64_t i = 0; i < n; i++) mean += row[i] / (double)n;
        for (int64_t i = 0; i < n; i++) variance += (row[i] - mean) * (row[i] - mean) / (double)n;
        for (int64_t i = 0; i < n; i++) y[i] = (row[i] - mean) / sqrt(variance + eps);
    }
    return ng_record(tape, &own_norm_op, result, &x, 1, &made, sizeof made);
}

/* ---- Check ---- */

/* What the checker calls: it hands on the context, here the mistake. */
static ng_tensor *call_own_norm(ng_tape *tape, ng_tensor *const *inputs, void *context)
{
    return own_norm(tape, inputs[0], *(const mistake *)context);
}

static bool check(ng_tensor *x, mistake made, const char *what)
{
    static const char *const names[] = {"x"};
    ng_check_report report =
        ng_check_function(call_own_norm, &x, 1, .order = 2, .names = names, .context = &made);
    puts("");
    ng_check_print(stdout, what, &report);
    return report.passed;
}

/* The checker compares the gradient with the values. Only you can say what they should be. */
static double distance_from_layer_norm(ng_tensor *x)
{
    ng_tape *tape = ng_tape_new();
    ng_tensor *expected = ng_layer_norm(tape, x, NG_NONE, NG_NONE, .eps = eps);
    ng_tensor *off = ng_abs(tape, ng_sub(tape, own_norm(tape, x, RIGHT), expected));
    const double most = ng_item(ng_max(tape, off));
    ng_tape_free(tape);
    return most;
}

int main(void)
{
    ng_rng rng = ng_rng_seeded(1);
    ng_tensor *x = ng_normal_new(NG_F64, NG_SHAPE(3, 4), 0, 1, &rng);
    const double distance = distance_from_layer_norm(x);
    printf("values: the largest difference from ng_layer_norm is %.1e\n\n", distance);

    ng_check_print_head(stdout);
    const bool right = check(x, RIGHT, "the formula");
    int caught = 0;
    caught += !check(x, NO_MEAN, "mistake 1: without mean(dy)");
    caught += !check(x, NO_VARIANCE, "mistake 2: without y mean(dy y)");
    caught += !check(x, FIXED_DEVIATION, "mistake 3: r detached");
    printf("\nthe formula is %s, %d of 3 mistakes are caught\n", right ? "right" : "wrong", caught);

    if (ng_failed()) fprintf(stderr, "3_own_norm: %s\n", ng_error_text());
    ng_tensor_free(x);
    return ng_failed() || !right || caught < 3 || !(distance < 1e-12);
}
