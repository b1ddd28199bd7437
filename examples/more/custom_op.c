/* A custom op with its gradient, checked against finite differences. The library is not changed.
 *
 *     y = x / (1 + |x|)          softsign, a tanh with heavier tails
 *     dy/dx = 1 / (1 + |x|)^2 */
#include "harness.h"

/* The gradient as a rule composed of ops. When it is recorded it has a gradient itself, which the
 * second-order check below uses. */
static void softsign_gradient(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    ng_tensor *size = ng_add_scalar(tape, ng_abs(tape, node->inputs[0]), 1.0);
    dx[0] = ng_div(tape, dy, ng_square(tape, size));
}

static const ng_op softsign_op = {.name = "softsign", .gradient = softsign_gradient};

static ng_tensor *softsign(ng_tape *tape, ng_tensor *x)
{
    if (!ng_accepts("softsign", tape, 1, &x)) return NULL;
    ng_tensor *y = ng_result(tape, ng_dtype_of(x), ng_shape_of(x));
    if (!y) return NULL;
    if (ng_dtype_of(x) == NG_F32) {
        const float *from = ng_data_f32(x);
        float *to = ng_data_f32(y);
        for (int64_t i = 0; i < ng_size(x); i++) to[i] = from[i] / (1 + fabsf(from[i]));
    } else {
        const double *from = ng_data_f64(x);
        double *to = ng_data_f64(y);
        for (int64_t i = 0; i < ng_size(x); i++) to[i] = from[i] / (1 + fabs(from[i]));
    }
    return ng_record(tape, &softsign_op, y, &x, 1, NULL, 0);
}

static ng_tensor *call_softsign(ng_tape *tape, ng_tensor *const *inputs, void *context)
{
    (void)context;
    return softsign(tape, inputs[0]);
}

/* The largest difference between a tensor in float and one in double. */
static double apart(ng_tape *tape, ng_tensor *in_float, ng_tensor *in_double)
{
    ng_tensor *off = ng_sub(tape, ng_cast(tape, in_float, NG_F64), in_double);
    return ng_item(ng_max(tape, ng_abs(tape, off)));
}

/* Compares values and gradients in both dtypes: the checker runs in double alone. */
static bool agrees_in_float(ng_tape *tape, ng_tensor *x)
{
    ng_tensor *in_float = ng_variable(tape, ng_cast(tape, x, NG_F32));
    ng_tensor *in_double = ng_variable(tape, ng_cast(tape, in_float, NG_F64));
    ng_tensor *y[] = {softsign(tape, in_float), softsign(tape, in_double)};
    const double values = apart(tape, y[0], y[1]);
    const double slopes = apart(tape, ng_gradient(tape, ng_sum(tape, y[0]), in_float),
                                ng_gradient(tape, ng_sum(tape, y[1]), in_double));
    printf("float differs from double by %.1e, its gradient by %.1e\n", values, slopes);
    return values < 1e-6 && slopes < 1e-6;
}

int main(int argc, char **argv)
{
    static const char usage[] =
        "usage: custom_op\n\nChecks a custom op, softsign, against finite differences.\n";
    begin_program(argc, argv, usage, NULL, NULL);
    ng_rng rng = ng_rng_seeded(1);
    ng_tensor *x = ng_require_grad(ng_normal_new(NG_F64, NG_SHAPE(3, 4), 0, 2, &rng));

    ng_tape *tape = ng_tape_new();
    ng_tensor *y = softsign(tape, x);
    if (ng_backward(tape, ng_sum(tape, y)) == NG_OK) puts("     x   softsign(x)     slope");
    for (int i = 0; i < 4 && !ng_failed(); i++)
        printf("%6.3f  %12.3f  %8.3f\n", ng_get(x, i), ng_get(y, i), ng_get(ng_grad(x), i));
    puts("");

    ng_check_report report = ng_check_function(call_softsign, &x, 1, .order = 2);
    ng_check_print_head(stdout);
    ng_check_print(stdout, "softsign", &report);
    const bool right = agrees_in_float(tape, x) && report.passed;

    ng_tape_free(tape), ng_tensor_free(x);
    return end_program(right ? EXIT_SUCCESS : EXIT_FAILURE);
}
