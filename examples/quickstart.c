/* The library in one program: read digits, train a network with LayerNorm, measure it. */
#include "program.h" /* --help, where the digits are, and how the program ends */
#include <normgrad.h>
#include <stdio.h>

static double accuracy(ng_module *net, ng_tape *tape, ng_dataset *data)
{
    ng_batch batch;
    int64_t right = 0;
    bool was = ng_tape_set_recording(tape, false); /* no gradients here */
    ng_eval(net);
    for (int i = 0; ng_dataset_batch(data, tape, i, 256, &batch); i++) {
        ng_tensor *guess = ng_argmax(tape, ng_forward(net, tape, batch.x), 1);
        for (int64_t k = 0; k < batch.size; k++) right += ng_get(guess, k) == ng_get(batch.y, k);
        ng_tape_reset(tape);
    }
    ng_train(net);
    ng_tape_set_recording(tape, was);
    return (double)right / (double)ng_dataset_count(data);
}

int main(int argc, char **argv)
{
    program_without_options(argc, argv, "Trains a small network on handwritten digits.");
    ng_dataset *digits = ng_dataset_read_csv(find_data("digits.csv"), .scale = 1.0 / 16);
    ng_dataset *train = NULL, *validate = NULL;
    ng_dataset_split(digits, 1437, 0, &train, &validate);

    ng_module *net = ng_sequential_new(ng_linear_new(64, 128), ng_layer_norm_new(128),
                                       ng_relu_new(), ng_linear_new(128, 10));
    ng_optimizer *adam = ng_adam_new(net, .lr = 1e-3);
    ng_tape *tape = ng_tape_new();

    for (unsigned epoch = 0; epoch < 30 && !ng_failed(); epoch++) {
        ng_batch batch;
        double loss_sum = 0;
        ng_dataset_shuffle(train, epoch);
        for (int i = 0; ng_dataset_batch(train, tape, i, 64, &batch); i++) {
            ng_tensor *logits = ng_forward(net, tape, batch.x);
            ng_tensor *loss = ng_cross_entropy(tape, logits, batch.y);
            if (ng_backward(tape, loss) || ng_optimizer_step(adam)) break;
            loss_sum += ng_item(loss) * (double)batch.size;
            ng_tape_reset(tape); /* every intermediate is gone */
        }
        if (!still_trains(loss_sum, "the loss of epoch %u", epoch + 1)) break;
        printf("epoch %2u  loss %.4f\n", epoch + 1, loss_sum / 1437);
    }
    if (!ng_failed()) printf("validation accuracy %.1f %%\n", 100 * accuracy(net, tape, validate));

    ng_tape_free(tape), ng_optimizer_free(adam), ng_module_free(net);
    ng_dataset_free(train), ng_dataset_free(validate), ng_dataset_free(digits);
    return program_end(EXIT_SUCCESS); /* one check of ng_failed() for all of the above */
}
