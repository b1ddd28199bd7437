/* Uses memory after its life in the way that its argument names. With the debug library that ends
 * the program, and the report names the line. `right` ends well. */
#include <normgrad.h>
#include <stdio.h>
#include <string.h>

static ng_tape *tape;
static ng_rng rng;

static ng_tensor *input(void)
{
    return ng_require_grad(ng_normal_new(NG_F32, NG_SHAPE(4, 8), 0, 1, &rng));
}

static ng_tensor *loss_of(ng_tensor *x) { return ng_sum(tape, ng_tanh(tape, x)); }

static int after_reset(void)
{
    ng_tensor *loss = loss_of(ng_tape_own(tape, input()));
    ng_tape_reset(tape);
    return ng_item(loss) > 0; /* wrong: after_reset */
}

static int operand_after_reset(void)
{
    ng_tensor *h = ng_tanh(tape, ng_tape_own(tape, input()));
    ng_tape_reset(tape);
    return loss_of(ng_tape_own(tape, input())) && ng_exp(tape, h); /* wrong: operand_after_reset */
}

static int data_after_reset(void)
{
    const float *values = ng_data_f32(loss_of(ng_tape_own(tape, input())));
    ng_tape_reset(tape);
    return values[0] > 0; /* wrong: data_after_reset */
}

static int input_freed_before_backward(void)
{
    ng_tensor *x = input(), *loss = loss_of(x);
    ng_tensor_free(x);
    return ng_backward(tape, loss) != NG_OK; /* wrong: input_freed_before_backward */
}

static int parameter_after_its_module(void)
{
    ng_module *layer = ng_linear_new(8, 2);
    ng_tensor *loss = loss_of(ng_forward(layer, tape, ng_tape_own(tape, input())));
    ng_module_free(layer);
    return ng_backward(tape, loss) != NG_OK; /* wrong: parameter_after_its_module */
}

static int gradient_after_its_leaf(void)
{
    ng_tensor *x = input();
    if (ng_backward(tape, loss_of(x))) return 1;
    ng_tensor *gradient = ng_grad(x);
    ng_tape_reset(tape);
    ng_tensor_free(x);
    return ng_get(gradient, 0) > 0; /* wrong: gradient_after_its_leaf */
}

static int freed_twice(void)
{
    ng_tensor *x = input();
    ng_tensor_free(x);
    ng_tensor_free(x); /* wrong: freed_twice */
    return 0;
}

static int right(void)
{
    ng_tensor *x = input();
    ng_module *layer = ng_linear_new(8, 2);
    for (int step = 0; step < 3; step++) {
        ng_tensor *h = ng_forward(layer, tape, ng_add(tape, x, ng_tape_own(tape, input())));
        if (ng_backward(tape, loss_of(h)) != NG_OK) return 1;
        ng_tape_reset(tape);
    }
    ng_module_free(layer);
    ng_tensor_free(x);
    return ng_failed();
}

static const struct {
    const char *name;
    int (*run)(void);
} cases[] = {{"after_reset", after_reset},
             {"operand_after_reset", operand_after_reset},
             {"data_after_reset", data_after_reset},
             {"input_freed_before_backward", input_freed_before_backward},
             {"parameter_after_its_module", parameter_after_its_module},
             {"gradient_after_its_leaf", gradient_after_its_leaf},
             {"freed_twice", freed_twice},
             {"right", right}};

int main(int argc, char **argv)
{
    rng = ng_rng_seeded(1);
    tape = ng_tape_new();
    int status = 100; /* there is no such case */
    for (size_t i = 0; i < sizeof cases / sizeof *cases && argc > 1; i++)
        if (strcmp(argv[1], cases[i].name) == 0) status = cases[i].run();
    ng_tape_free(tape);
    return status;
}
