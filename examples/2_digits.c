/* Step 2: handwritten digits. Trains a network, evaluates it on digits that it has not seen, saves
 * it, loads it into a new network, and shows which digits it takes for which. Run it in the
 * project's directory. */
#include <normgrad.h>
#include <stdio.h>

enum { CLASSES = 10, TRAIN = 1437, BATCH = 64, EPOCHS = 15 };
static const char saved[] = "build/2_digits.safetensors";

static ng_module *network(void)
{
    return ng_sequential_new(ng_linear_new(64, 32), ng_batch_norm_new(32), ng_relu_new(),
                             ng_linear_new(32, CLASSES));
}

/* Trains for one pass over the data, in an order of its own. Returns the mean loss of a batch. */
static double train_epoch(ng_module *net, ng_optimizer *adam, ng_tape *tape, ng_dataset *data,
                          int epoch)
{
    ng_batch batch;
    double sum = 0;
    int count = 0;
    ng_dataset_shuffle(data, (uint64_t)epoch);
    for (; ng_dataset_batch(data, tape, count, BATCH, &batch); count++) {
        ng_tensor *loss = ng_cross_entropy(tape, ng_forward(net, tape, batch.x), batch.y);
        if (ng_backward(tape, loss) || ng_optimizer_step(adam)) break;
        sum += ng_item(loss);
        ng_tape_reset(tape);
    }
    return sum / count;
}

/* Prints how many digits a the network takes for b. Layers that differ in training, such as
 * BatchNorm, need ng_eval before; without recording the tape keeps nothing for a backward pass.
 * ng_evaluate does both. */
static void print_confusion(ng_module *net, ng_tape *tape, ng_dataset *data)
{
    ng_batch batch;
    int confusion[CLASSES][CLASSES] = {{0}};
    ng_eval(net);
    ng_tape_set_recording(tape, false);
    for (int i = 0; ng_dataset_batch(data, tape, i, BATCH, &batch); i++) {
        ng_tensor *guess = ng_argmax(tape, ng_forward(net, tape, batch.x));
        for (int64_t k = 0; guess && k < batch.size; k++)
            confusion[(int)ng_get(batch.y, k)][(int)ng_get(guess, k)]++;
        ng_tape_reset(tape);
    }
    ng_tape_set_recording(tape, true);
    ng_train(net);
    printf("\na row for each digit, a column for what the network takes it for\n   ");
    for (int b = 0; b < CLASSES; b++) printf("%4d", b);
    for (int a = 0; a < CLASSES; a++) {
        printf("\n%3d", a);
        for (int b = 0; b < CLASSES; b++)
            confusion[a][b] ? printf("%4d", confusion[a][b]) : printf("   .");
    }
    puts("");
}

int main(void)
{
    /* A line of the file has 64 pixels from 0 to 16, and the digit. */
    ng_dataset *digits = ng_dataset_read_csv("examples/data/digits.csv", .scale = 1.0 / 16);
    if (!digits) return fprintf(stderr, "2_digits: %s\n", ng_error_text()), 1;
    ng_dataset *train = NULL, *test = NULL;
    ng_dataset_split_new(digits, TRAIN, 0, &train, &test);
    ng_module *net = network(), *loaded = network();
    ng_optimizer *adam = ng_adam_new(net, .lr = 3e-3);
    ng_tape *tape = ng_tape_new();
    ng_summary(net);

    puts("\nepoch    loss  test accuracy");
    for (int epoch = 1; epoch <= EPOCHS && !ng_failed(); epoch++) {
        const double loss = train_epoch(net, adam, tape, train, epoch);
        const double right = ng_evaluate(net, test).accuracy;
        if (epoch % 3 == 0) printf("%5d  %6.4f  %11.1f %%\n", epoch, loss, 100 * right);
    }

    /* Another program could begin here: it builds the same layers and loads their values. Layers of
     * the same shapes begin with the same weights, so ng_module_init draws others to show it. */
    ng_module_init(loaded, 1);
    printf("\nanother network, weights drawn: %5.1f %%\n",
           100 * ng_evaluate(loaded, test).accuracy);
    double right = 0;
    if (!ng_module_save(net, saved) && !ng_module_load(loaded, saved))
        right = ng_evaluate(loaded, test).accuracy;
    printf("the same, weights loaded:       %5.1f %%\n", 100 * right);
    print_confusion(loaded, tape, test);

    if (ng_failed()) fprintf(stderr, "2_digits: %s\n", ng_error_text());
    ng_tape_free(tape), ng_optimizer_free(adam), ng_module_free(net), ng_module_free(loaded);
    ng_dataset_free(digits), ng_dataset_free(train), ng_dataset_free(test);
    return ng_failed() || right < 0.9;
}
