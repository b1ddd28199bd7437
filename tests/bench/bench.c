/* Times of the norms, forward and backward, and of a training step: the median of many runs. */
#include <normgrad.h>
#include <stdlib.h>
#include <time.h>

#define RUNS 31

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static double median(double *times)
{
    qsort(times, RUNS, sizeof *times, ascending);
    return times[RUNS / 2];
}

/* Median seconds of a module's forward pass, and of its backward pass, on x (rows, width). */
static void time_module(const char *name, ng_module *module, int64_t rows, int64_t width)
{
    ng_rng rng = ng_rng_seeded(1);
    ng_tensor *x = ng_require_grad(ng_normal_new(NG_F32, NG_SHAPE(rows, width), 0, 1, &rng));
    ng_tensor *dy = ng_normal_new(NG_F32, NG_SHAPE(rows, width), 0, 1, &rng);
    ng_tape *tape = ng_tape_new();
    double forward[RUNS], backward[RUNS];
    for (int run = -3; run < RUNS; run++) { /* three to warm up */
        double begin = now();
        ng_tensor *y = ng_forward(module, tape, x);
        double middle = now();
        ng_backward_from(tape, y, dy);
        double end = now();
        ng_zero_grads(module);
        ng_zero_grad(x);
        ng_tape_reset(tape);
        if (run < 0) continue;
        forward[run] = middle - begin;
        backward[run] = end - middle;
    }
    double megabytes = 1e-6 * (double)(rows * width) * sizeof(float);
    double forward_time = median(forward), backward_time = median(backward);
    /* forward reads x and writes y; backward reads x and dy and writes dx */
    printf("%-20s %6lld x %-5lld %10.1f %10.1f %10.1f %10.1f\n", name, (long long)rows,
           (long long)width, 1e6 * forward_time, 2e-3 * megabytes / forward_time,
           1e6 * backward_time, 3e-3 * megabytes / backward_time);
    ng_tape_free(tape);
    ng_tensor_free(dy);
    ng_tensor_free(x);
    ng_module_free(module);
}

static double step_time(ng_module *net, int64_t batch)
{
    ng_rng rng = ng_rng_seeded(1);
    ng_tensor *x = ng_normal_new(NG_F32, NG_SHAPE(batch, 64), 0, 1, &rng);
    ng_tensor *labels = ng_zeros_new(NG_I64, NG_SHAPE(batch));
    ng_optimizer *adam = ng_adam_new(net);
    ng_tape *tape = ng_tape_new();
    double times[RUNS];
    for (int run = -3; run < RUNS; run++) {
        double begin = now();
        ng_backward(tape, ng_cross_entropy(tape, ng_forward(net, tape, x), labels));
        ng_optimizer_step(adam);
        ng_tape_reset(tape);
        if (run >= 0) times[run] = now() - begin;
    }
    ng_tape_free(tape);
    ng_optimizer_free(adam);
    ng_tensor_free(labels);
    ng_tensor_free(x);
    return median(times);
}

static void time_step(const char *name, ng_module *first, ng_module *second)
{
    ng_module *net =
        first ? ng_sequential_new(ng_linear_new(64, 128), first, ng_relu_new(),
                                  ng_linear_new(128, 128), second, ng_relu_new(),
                                  ng_linear_new(128, 10))
              : ng_sequential_new(ng_linear_new(64, 128), ng_relu_new(), ng_linear_new(128, 128),
                                  ng_relu_new(), ng_linear_new(128, 10));
    printf("%-20s %10.1f\n", name, 1e6 * step_time(net, 64));
    ng_module_free(net);
}

int main(void)
{
    printf("normgrad %s, float32, %d threads, medians of %d runs\n\n", ng_version(), ng_threads(),
           RUNS);
    printf("%-20s %14s %10s %10s %10s %10s\n", "layer", "rows x width", "forward us", "GB/s",
           "backward us", "GB/s");
    for (int64_t width = 64; width <= 4096; width *= 8) {
        int64_t rows = ((int64_t)1 << 20) / width;
        time_module("LayerNorm", ng_layer_norm_new(width), rows, width);
        time_module("RMSNorm", ng_rms_norm_new(width), rows, width);
        time_module("BatchNorm", ng_batch_norm_new(width), rows, width);
    }
    printf("\n%-20s %10s\n", "step of 64-128-128-10", "us");
    time_step("no norm", NULL, NULL);
    time_step("LayerNorm", ng_layer_norm_new(128), ng_layer_norm_new(128));
    time_step("RMSNorm", ng_rms_norm_new(128), ng_rms_norm_new(128));
    time_step("BatchNorm", ng_batch_norm_new(128), ng_batch_norm_new(128));
    time_step("AdaptiveLayerNorm", ng_adaptive_layer_norm_new(128),
              ng_adaptive_layer_norm_new(128));
    if (ng_failed()) fprintf(stderr, "%s\n", ng_last_error());
    return ng_failed() ? EXIT_FAILURE : EXIT_SUCCESS;
}
