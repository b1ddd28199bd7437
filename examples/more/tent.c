/* Test-time adaptation by entropy minimization (TENT, Wang et al. 2021): a network trained on clean
 * digits adapts to corrupted ones without their labels. Only BatchNorm's scales and shifts learn;
 * its statistics are those of the corrupted digits. build/examples/tent --help */
#include "harness.h"

enum { SIDE = 8, BATCH = 128 };

/* Returns the same digits, blurred (each pixel is the mean of four) and lit from the right. */
static ng_dataset *corrupt(const ng_dataset *clean, ng_tape *tape)
{
    ng_tensor *x = ng_reshape(tape, ng_dataset_x(clean), NG_SHAPE(-1, 1, SIDE, SIDE));
    x = ng_avg_pool2d(tape, ng_pad(tape, ng_pad(tape, x, 2, 0, 1), 3, 0, 1), 2, .stride = 1);
    x = ng_add(tape, x, ng_mul_scalar(tape, ng_arange(tape, NG_F32, 0, SIDE, 1), 0.1));
    ng_dataset *corrupted = ng_dataset_from(ng_flatten(tape, x), ng_dataset_y(clean));
    ng_tape_reset(tape);
    return corrupted;
}

/* The mean entropy of the predicted distributions, -sum p log p. */
static ng_tensor *entropy(ng_tape *tape, ng_tensor *logits)
{
    ng_tensor *log_p = ng_log_softmax(tape, logits);
    ng_tensor *sums = ng_sum(tape, ng_mul(tape, ng_exp(tape, log_p), log_p), .axes = NG_AXES(-1));
    return ng_neg(tape, ng_mean(tape, sums));
}

/* Trains with the labels, or by the entropy alone. */
static void train(ng_module *net, ng_tape *tape, ng_dataset *data, int epochs, bool labelled)
{
    ng_optimizer *adam = ng_adam_new(net, .lr = 0.01);
    ng_train(net);
    for (int epoch = 0; epoch < epochs && !ng_failed(); epoch++) {
        ng_batch batch;
        ng_dataset_shuffle(data, (uint64_t)epoch);
        for (int i = 0; ng_dataset_batch(data, tape, i, BATCH, &batch, .drop_last = true); i++) {
            ng_tensor *y = ng_forward(net, tape, batch.x);
            ng_tensor *loss = labelled ? ng_cross_entropy(tape, y, batch.y) : entropy(tape, y);
            if (ng_backward(tape, loss) || ng_optimizer_step(adam)) break;
            ng_tape_reset(tape);
        }
    }
    ng_optimizer_free(adam);
}

static void report(const char *what, ng_module *net, ng_dataset *data)
{
    printf("%-22s %5.1f %%\n", what, 100 * ng_evaluate(net, data).accuracy);
}

int main(int argc, char **argv)
{
    static const char usage[] =
        "usage: tent\n\nAdapts a network to corrupted digits without labels.\n";
    begin_program(argc, argv, usage, NULL, NULL);
    ng_tape *tape = ng_tape_new();
    ng_dataset *digits = read_digits();
    ng_dataset *clean = NULL, *test = NULL;
    ng_dataset_split_new(digits, 1000, 0, &clean, &test);
    ng_dataset *corrupted = corrupt(test, tape);
    ng_module *net = ng_sequential_new(ng_linear_new(64, 128), ng_batch_norm_new(128),
                                       ng_relu_new(), ng_linear_new(128, 64), ng_batch_norm_new(64),
                                       ng_relu_new(), ng_linear_new(64, 10));
    train(net, tape, clean, 20, true);
    report("clean", net, test);
    report("corrupted", net, corrupted);

    if (!ng_batch_norm_recompute(net, corrupted, BATCH)) /* AdaBN */
        report("corrupted, with AdaBN", net, corrupted);

    ng_freeze(net);
    ng_unfreeze(ng_module_child(net, 1)), ng_unfreeze(ng_module_child(net, 4));
    train(net, tape, corrupted, 30, false);
    if (!ng_batch_norm_recompute(net, corrupted, BATCH))
        report("corrupted, with TENT", net, corrupted);

    ng_tape_free(tape), ng_module_free(net), ng_dataset_free(corrupted);
    ng_dataset_free(test), ng_dataset_free(clean), ng_dataset_free(digits);
    return end_program(EXIT_SUCCESS);
}
