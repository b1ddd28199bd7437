/* A custom norm layer: PowerNorm divides each row by its p-norm per feature,
 *
 *     y = x / (mean(|x|^p) + eps)^(1/p) * gamma          p = 2 is RMSNorm
 *
 * It is a module with a parameter, composed of ops, so that it needs no gradient code and no change
 * of the library. The program checks it against finite differences, then trains with it. */
#include "more/program.h"
#include <normgrad.h>
#include <stdio.h>

/* ---- The layer ---- */

typedef struct {
    ng_module base; /* first, so that a power_norm is an ng_module */
    ng_tensor *gamma;
    double p, eps;
} power_norm;

static ng_tensor *power_norm_forward(ng_module *module, ng_tape *tape, ng_tensor *x)
{
    const power_norm *self = (const power_norm *)module;
    ng_tensor *power = ng_pow_scalar(tape, ng_abs(tape, x), self->p);
    ng_tensor *mean = ng_mean(tape, power, .axes = NG_AXES(-1), .keepdim = true);
    ng_tensor *rnorm = ng_pow_scalar(tape, ng_add_scalar(tape, mean, self->eps), -1 / self->p);
    return ng_mul(tape, ng_mul(tape, x, rnorm), ng_parameter_value(tape, self->gamma));
}

static void power_norm_describe(const ng_module *module, char *text, size_t bytes)
{
    const power_norm *self = (const power_norm *)module;
    snprintf(text, bytes, "%lld, p=%g", (long long)ng_size(self->gamma), self->p);
}

static const ng_module_class power_norm_class = {
    .name = "PowerNorm",
    .size = sizeof(power_norm),
    .forward = power_norm_forward,
    .describe = power_norm_describe,
};

/* Options of power_norm_new(128, .p = 3). 0 selects the default, as everywhere in the library. */
typedef struct {
    double p;   /* default 2 */
    double eps; /* default 1e-6 */
    int64_t dim;
} power_norm_new_options;
#define power_norm_new(...) power_norm_new_with(NG_NAMED(power_norm_new_options, dim, __VA_ARGS__))

static ng_module *power_norm_new_with(power_norm_new_options options)
{
    power_norm *self = (power_norm *)ng_module_new(&power_norm_class);
    if (!self) return NULL;
    self->p = ng_option(options.p, 2);
    self->eps = ng_option(options.eps, 1e-6);
    self->gamma = ng_module_add_parameter(&self->base, "gamma", NG_SHAPE(options.dim), .value = 1);
    return ng_module_built(&self->base);
}

/* ---- Check ---- */

static bool check(double p)
{
    char name[64];
    ng_rng rng = ng_rng_seeded(1);
    ng_tensor *x = ng_normal_new(NG_F64, NG_SHAPE(4, 6), 0, 1, &rng);
    ng_module *norm = power_norm_new(6, .p = p);
    ng_check_report report = ng_check_module(norm, &x, 1, .order = 2, .detached_moves = true);
    snprintf(name, sizeof name, "PowerNorm(p=%g)", p);
    ng_check_print(stdout, name, &report);
    ng_module_free(norm), ng_tensor_free(x);
    return report.passed;
}

/* ---- Training ---- */

/* Trains a network to find the largest of eight numbers. Returns the last loss. */
static double train(ng_module *net, int steps)
{
    ng_rng rng = ng_rng_seeded(2);
    ng_optimizer *adam = ng_adam_new(net, .lr = 1e-2);
    ng_tape *tape = ng_tape_new();
    ng_tensor *x = ng_normal_new(NG_F32, NG_SHAPE(64, 8), 0, 1, &rng);
    double value = 0;
    for (int step = 0; step <= steps && !ng_failed(); step++) {
        ng_fill_normal(x, 0, 1, &rng);
        ng_tensor *largest = ng_argmax(tape, x);
        ng_tensor *loss = ng_cross_entropy(tape, ng_forward(net, tape, x), largest);
        if (ng_backward(tape, loss) || ng_optimizer_step(adam)) break;
        value = ng_item(loss);
        if (step % 100 == 0) printf("step %3d  loss %.4f\n", step, value);
        ng_tape_reset(tape);
    }
    ng_tensor_free(x), ng_tape_free(tape), ng_optimizer_free(adam);
    return value;
}

int main(int argc, char **argv)
{
    program_without_options(argc, argv, "Checks a custom norm, PowerNorm, and trains with it.");
    bool passed = check(2);
    passed = check(3) && passed;

    puts("");
    ng_module *net = ng_sequential_new(ng_linear_new(8, 32), power_norm_new(32, .p = 3),
                                       ng_relu_new(), ng_linear_new(32, 8));
    ng_summary(net);
    puts("");
    const bool learned = train(net, 300) < 0.5;
    if (!learned) complain("the network has not learned to find the largest number");
    ng_module_free(net);
    return program_end(passed && learned ? EXIT_SUCCESS : EXIT_FAILED);
}
