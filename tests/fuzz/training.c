/* ng_training_resume, and one step after it. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ng_module *net = ng_sequential_new(ng_linear_new(2, 2), ng_batch_norm_new(2));
    ng_optimizer *adam = ng_adam_new(net);
    ng_tape *tape = ng_tape_new();
    const double numbers[] = {1, 2, 3, 4, 5, 6, 7, 8}, labels[] = {0, 1, 0, 1};
    ng_tensor *x = ng_tensor_from(NG_F32, NG_SHAPE(4, 2), numbers, 8);
    ng_tensor *y = ng_tensor_from(NG_I64, NG_SHAPE(4), labels, 4);
    ng_dataset *train = ng_dataset_from(x, y);
    ng_history *history = ng_history_new("fuzz");
    ng_training *run = ng_training_new(adam, .tape = tape, .data = train, .history = history,
                                       .path = fuzz_file(data, size), .minutes = 1e6);
    double number = 0;
    ng_training_keep_number(run, "number", &number);
    fuzz_check(ng_training_resume(run, .changed = true) == NG_OK);
    ng_batch batch;
    if (ng_training_epoch(run, INT64_MAX) && ng_training_batch(run, 2, &batch)) {
        ng_tensor *loss = ng_cross_entropy(tape, ng_forward(net, tape, batch.x), batch.y);
        if (ng_backward(tape, loss) == NG_OK && ng_optimizer_step(adam) != NG_OK) abort();
        ng_history_log(history, "a", 5, 1);
    }
    ng_clear_error();
    ng_training_free(run), ng_history_free(history), ng_dataset_free(train), ng_tensor_free(x);
    ng_tensor_free(y), ng_tape_free(tape), ng_optimizer_free(adam), ng_module_free(net);
    return 0;
}
