// A C++ program outside the tree: options by name, zero that is meant, arrays, a gradient of a
// gradient, an error, and a training that learns.
#include <cstdio>
#include <normgrad.h>

static bool failed(const char *what)
{
    std::fprintf(stderr, "%s; last error: %s\n", what, ng_error_text());
    return false;
}

// d/dx and d2/dx2 of sum(x^3) are 3 x^2 and 6 x.
static bool differentiates(ng_tape *tape)
{
    ng_tensor *x = ng_require_grad(ng_tensor_from(NG_F64, NG_SHAPE(2), NG_VALUES(2, 3)));
    ng_tensor *y = ng_sum(tape, ng_pow_scalar(tape, x, 3), .axes = NG_AXES(0));
    ng_tensor *first = ng_gradient(tape, y, x, .record = true);
    ng_tensor *second = ng_gradient(tape, ng_sum(tape, first), x);
    bool right = ng_at(first, 1) == 27 && ng_at(second, 1) == 18;
    ng_tape_reset(tape);
    ng_tensor_free(x);
    return right || failed("the gradient of a gradient is wrong");
}

static bool reports_errors(ng_tape *tape)
{
    ng_tensor *a = ng_zeros_new(NG_F32, NG_SHAPE(2, 3));
    ng_tensor *b = ng_zeros_new(NG_F32, NG_SHAPE(4, 5));
    bool right = !ng_add(tape, a, b) && ng_error_status() == NG_ESHAPE;
    ng_clear_error();
    ng_tape_reset(tape);
    ng_tensor_free(a), ng_tensor_free(b);
    return right || failed("two shapes that do not broadcast were added");
}

static bool learns(ng_tape *tape)
{
    ng_rng rng = ng_rng_seeded(1);
    ng_tensor *x = ng_normal_new(NG_F32, NG_SHAPE(32, 4), 0, 1, &rng);
    ng_tensor *target = ng_normal_new(NG_F32, NG_SHAPE(32, 1), 0, 1, &rng);
    ng_module *net =
        ng_sequential_new(ng_linear_new(4, 64, .no_bias = true), ng_layer_norm_new(64, .eps = 1e-6),
                          ng_tanh_new(), ng_linear_new(64, 1));
    ng_optimizer *adam = ng_adam_new(net, .lr = 1e-2, .beta1 = NG_ZERO);
    double first = 0, last = 0;
    for (int step = 0; step < 300; step++) {
        ng_tensor *loss =
            ng_mse(tape, ng_forward(net, tape, x, .mask = NG_NONE), target, .reduction = NG_SUM);
        if (ng_backward(tape, loss) != NG_OK || ng_optimizer_step(adam) != NG_OK) break;
        last = ng_item(loss);
        if (step == 0) first = last;
        ng_tape_reset(tape);
    }
    ng_check_report report = {};
    ng_tensor *doubtful = ng_normal_new(NG_F64, NG_SHAPE(3, 4), 0, 1, &rng);
    report = ng_check_module(net, &doubtful, 1, .order = 2);
    std::printf("loss %.3g, then %.3g\n", first, last);
    bool right = !ng_failed() && last < 0.1 * first;
    ng_optimizer_free(adam), ng_module_free(net);
    ng_tensor_free(x), ng_tensor_free(target), ng_tensor_free(doubtful);
    if (!report.passed) return failed(report.message);
    return right || failed("training did not learn");
}

int main()
{
    ng_tape *tape = ng_tape_new();
    bool right = differentiates(tape) && reports_errors(tape) && learns(tape);
    ng_tape_free(tape);
    return !right;
}
