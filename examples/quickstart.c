/* Trains a network with BatchNorm on handwritten digits. Run it in the project's directory. */
#include <normgrad.h>
#include <stdio.h>

/* In per cent, in evaluation: BatchNorm uses its running statistics. */
static double accuracy(ng_module *net, ng_dataset *data)
{
    return 100 * ng_evaluate(net, data).accuracy;
}

int main(void)
{
    ng_dataset *digits = ng_dataset_read_csv("examples/data/digits.csv", .scale = 1.0 / 16);
    ng_dataset *train = NULL, *test = NULL;
    ng_dataset_split_new(digits, 1437, 0, &train, &test);
    ng_module *net = ng_sequential_new(ng_linear_new(64, 128), ng_batch_norm_new(128),
                                       ng_relu_new(), ng_linear_new(128, 10));
    ng_optimizer *adam = ng_adam_new(net, .lr = 1e-3);
    ng_history *history = ng_history_new("quickstart");
    ng_tape *tape = ng_tape_new(); /* records each op, so that ng_backward can go back */
    for (int epoch = 1; epoch <= 20 && !ng_failed(); epoch++) {
        ng_batch batch;
        ng_dataset_shuffle(train, (uint64_t)epoch);
        for (int i = 0; ng_dataset_batch(train, tape, i, 64, &batch); i++) {
            ng_tensor *loss = ng_cross_entropy(tape, ng_forward(net, tape, batch.x), batch.y);
            if (ng_backward(tape, loss) || ng_optimizer_step(adam)) break;
            ng_history_log(history, "loss", ng_optimizer_steps(adam), ng_item(loss));
            ng_tape_reset(tape); /* frees every intermediate */
        }
        if (epoch % 5 == 0) printf("epoch %2d: %.1f %%\n", epoch, accuracy(net, test));
    }
    if (ng_module_save(net, "build/net.safetensors") == NG_OK) ng_module_init(net, 2);
    printf("new weights: %.1f %%\n", accuracy(net, test));
    if (ng_module_load(net, "build/net.safetensors") == NG_OK)
        printf("loaded: %.1f %%\n", accuracy(net, test));
    ng_rng rng = ng_rng_seeded(1);
    ng_tensor *x = ng_normal_new(NG_F64, NG_SHAPE(4, 64), 0, 1, &rng); /* double: the check's */
    ng_check_report report = ng_check_module(net, &x, 1);
    ng_check_print(stdout, "gradient", &report);
    if (!ng_failed()) ng_plot(history, "build/loss.svg", .log_y = true); /* runs gnuplot */
    if (ng_failed()) fprintf(stderr, "quickstart: %s\n", ng_error_text());
    ng_tape_free(tape), ng_optimizer_free(adam), ng_module_free(net), ng_history_free(history);
    ng_dataset_free(digits), ng_dataset_free(train), ng_dataset_free(test), ng_tensor_free(x);
    return ng_failed() || !report.passed;
}
