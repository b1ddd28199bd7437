/* Step 1: the smallest network worth training. It learns exclusive or, which no single linear
 * layer can compute. */
#include <normgrad.h>
#include <stdio.h>

int main(void)
{
    ng_tensor *x = ng_tensor_from(NG_F32, NG_SHAPE(4, 2), NG_VALUES(0, 0, 0, 1, 1, 0, 1, 1));
    ng_tensor *y = ng_tensor_from(NG_F32, NG_SHAPE(4, 1), NG_VALUES(0, 1, 1, 0));
    ng_module *net = ng_sequential_new(ng_linear_new(2, 8), ng_tanh_new(), ng_linear_new(8, 1));
    ng_optimizer *adam = ng_adam_new(net, .lr = 0.05);
    ng_tape *tape = ng_tape_new(); /* records every operation, so that it can go backward */

    for (int step = 0; step <= 300 && !ng_failed(); step++) {
        ng_tensor *loss = ng_binary_cross_entropy(tape, ng_forward(net, tape, x), y);
        if (ng_backward(tape, loss) || ng_optimizer_step(adam)) break;
        if (step % 100 == 0) printf("step %3d  loss %.4f\n", step, ng_item(loss));
        ng_tape_reset(tape); /* frees the loss and all else on the tape, not the weights */
    }

    int right = 0;
    ng_tensor *p = ng_sigmoid(tape, ng_forward(net, tape, x)); /* the probability of a 1 */
    puts("\n a  b  a xor b  network");
    for (int i = 0; i < 4; i++) {
        printf(" %g  %g  %7g  %7.3f\n", ng_at(x, i, 0), ng_at(x, i, 1), ng_at(y, i, 0),
               ng_at(p, i, 0));
        right += (ng_at(p, i, 0) > 0.5) == (ng_at(y, i, 0) > 0.5);
    }
    printf("%d of 4 answers are right\n", right);

    if (ng_failed()) fprintf(stderr, "1_xor: %s\n", ng_error_text());
    ng_tape_free(tape), ng_optimizer_free(adam), ng_module_free(net);
    ng_tensor_free(x), ng_tensor_free(y);
    return ng_failed() || right < 4;
}
