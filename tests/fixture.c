#include "fixture.h"
#include "support.h"

ng_tape *tape;

enum { MOST = 256 };
static ng_tensor *tensors[MOST];
static ng_module *modules[MOST];
static ng_optimizer *optimizers[MOST];
static int n_tensors, n_modules, n_optimizers;

void set_up(void)
{
    tape = ng_tape_new();
    n_tensors = n_modules = n_optimizers = 0;
}

void tear_down(void)
{
    ng_tape_free(tape);
    while (n_optimizers > 0) ng_optimizer_free(optimizers[--n_optimizers]);
    while (n_modules > 0) ng_module_free(modules[--n_modules]);
    while (n_tensors > 0) ng_tensor_free(tensors[--n_tensors]);
}

ng_tensor *own_tensor(ng_tensor *x)
{
    assert_ok(x);
    ck_assert_int_lt(n_tensors, MOST);
    return tensors[n_tensors++] = x;
}

ng_module *own_module(ng_module *module)
{
    assert_ok(module);
    ck_assert_int_lt(n_modules, MOST);
    return modules[n_modules++] = module;
}

ng_optimizer *own_optimizer(ng_optimizer *optimizer)
{
    assert_ok(optimizer);
    ck_assert_int_lt(n_optimizers, MOST);
    return optimizers[n_optimizers++] = optimizer;
}

void assert_same_module(ng_module *a, ng_module *b)
{
    static bool (*const listers[])(ng_module *, int, ng_named_tensor *) = {ng_module_parameter,
                                                                           ng_module_buffer};
    ng_named_tensor x, y;
    for (int k = 0; k < 2; k++) {
        int i = 0;
        for (; listers[k](a, i, &x); i++) {
            ck_assert(listers[k](b, i, &y));
            ck_assert_str_eq(x.name, y.name);
            assert_same_bits(x.tensor, y.tensor);
        }
        ck_assert(!listers[k](b, i, &y));
    }
}

char *summary_of(const ng_module *module)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *stream = open_memstream(&text, &bytes);
    ng_fprint_summary(stream, module);
    fclose(stream);
    return text;
}
