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
