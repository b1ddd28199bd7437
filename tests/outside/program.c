/* A program outside the tree: is the header that of the library, and does training work? */
#include <math.h>
#include <normgrad.h>
#include <string.h>

static ng_status note_size(ng_group *group, void *size)
{
    *(int *)size = ng_group_size(group);
    return NG_OK;
}

/* One rank runs in every library; two are refused by a library without threads. */
static bool groups_run(void)
{
    int size = 0;
    if (ng_group_run(note_size, &size, 1) || size != 1) return false;
#ifdef NG_NO_THREADS
    const ng_status two = ng_group_run(note_size, &size, 2);
    ng_clear_error();
    return two == NG_EVALUE;
#else
    return true;
#endif
}

int main(void)
{
    char compiled[32];
    snprintf(compiled, sizeof compiled, "%d.%d.%d", NG_VERSION_MAJOR, NG_VERSION_MINOR,
             NG_VERSION_PATCH);
    if (strcmp(compiled, ng_version()) != 0) {
        fprintf(stderr, "compiled for %s, linked with %s\n", compiled, ng_version());
        return 1;
    }

    ng_rng rng = ng_rng_seeded(1);
    ng_tensor *x = ng_normal_new(NG_F32, NG_SHAPE(32, 4), 0, 1, &rng);
    ng_tensor *target = ng_normal_new(NG_F32, NG_SHAPE(32, 1), 0, 1, &rng);
    ng_module *net = ng_sequential_new(ng_linear_new(4, 64), ng_layer_norm_new(64, .eps = 1e-6),
                                       ng_tanh_new(), ng_linear_new(64, 1));
    ng_optimizer *adam = ng_adam_new(net, .lr = 1e-2);
    ng_tape *tape = ng_tape_new();
    double first = 0, last = 0;
    for (int step = 0; step < 200; step++) {
        ng_tensor *loss = ng_mse(tape, ng_forward(net, tape, x), target);
        if (ng_backward(tape, loss) || ng_optimizer_step(adam)) break;
        last = ng_item(loss);
        if (step == 0) first = last;
        ng_tape_reset(tape);
    }
    bool learned =
        !ng_failed() && groups_run() && exp(last) < exp(0.1 * first); /* of libm, linked too */
    printf("loss %.3g, then %.3g\n", first, last);
    if (ng_failed()) fprintf(stderr, "%s\n", ng_error_text());
    ng_tape_free(tape), ng_optimizer_free(adam), ng_module_free(net);
    ng_tensor_free(x), ng_tensor_free(target);
    return !learned;
}
