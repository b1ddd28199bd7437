/* Trains a network with LayerNorm on handwritten digits. Run it in the project's directory. */
#include <normgrad.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    if (argc > 1) return printf("usage: %s (in the project's directory)\n", argv[0]) < 0;
    ng_dataset *digits = ng_dataset_read_csv("examples/data/digits.csv", .scale = 1.0 / 16);
    ng_dataset *train = NULL, *test = NULL;
    ng_dataset_split(digits, 1437, 0, &train, &test);
    ng_module *net = ng_sequential_new(ng_linear_new(64, 128), ng_layer_norm_new(128),
                                       ng_relu_new(), ng_linear_new(128, 10));
    ng_optimizer *adam = ng_adam_new(net, .lr = 1e-3);
    ng_tape *tape = ng_tape_new();
    ng_history *history = ng_history_new("quickstart");
    for (int epoch = 1; epoch <= 20 && !ng_failed(); epoch++) {
        ng_batch batch;
        ng_dataset_shuffle(train, (uint64_t)epoch);
        for (int i = 0; ng_dataset_batch(train, tape, i, 64, &batch); i++) {
            ng_tensor *loss = ng_cross_entropy(tape, ng_forward(net, tape, batch.x), batch.y);
            if (ng_backward(tape, loss) || ng_optimizer_step(adam)) break;
            ng_history_log(history, "loss", ng_optimizer_steps(adam), ng_item(loss));
            ng_tape_reset(tape); /* frees every intermediate */
        }
        ng_dataset_batch(test, tape, 0, ng_dataset_count(test), &batch); /* one batch of all */
        printf("epoch %2d  test accuracy %.1f %%\n", epoch,
               100 * ng_accuracy(ng_forward(net, tape, batch.x), batch.y));
    }
    const bool trained = !ng_failed();
    if (trained) ng_plot(history, "build/quickstart.svg", .log_y = true); /* runs gnuplot */
    if (ng_failed()) fprintf(stderr, "quickstart: %s\n", ng_error_text());
    ng_tape_free(tape), ng_optimizer_free(adam), ng_module_free(net), ng_history_free(history);
    ng_dataset_free(test), ng_dataset_free(train), ng_dataset_free(digits);
    return trained ? 0 : 1;
}
