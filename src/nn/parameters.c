/* Parameters: a module of the user's tensors. */
#include "nn/module.h"

static const char parameters_function[] = "ng_parameters_new";

static const ng_module_class parameters_class = {.name = "Parameters", .size = sizeof(ng_module)};

static bool is_leaf_of_yours(ng_tensor *const *tensors, int i)
{
    const ng_tensor *x = tensors[i];
    char which[32];
    snprintf(which, sizeof which, "tensor %d", i + 1);
    if (!ng_given(parameters_function, which, x) || !ng_readable(parameters_function, x))
        return false;
    bool again = false;
    for (int k = 0; k < i; k++) again = again || tensors[k] == x;
    if (x->tape || x->module_owned || again)
        ng_fail(NG_ESTATE, "%s: %s belongs to a tape or a module, expected one of yours",
                parameters_function, which);
    else if (x->dtype == NG_I64)
        ng_fail(NG_EDTYPE, "%s: %s is int64, expected float32 or float64", parameters_function,
                which);
    else
        return true;
    return false;
}

/* Returns the first `count` tensors to the user, as they were. */
static void parameters_give_back(ng_module *self, const bool *required, int count)
{
    for (int i = 0; i < count; i++) {
        ng_entry *entry = &self->registry->entries[i];
        entry->tensor->module_owned = false;
        entry->tensor->requires_grad = required[i];
        entry->tensor = NULL;
    }
}

ng_module *ng_parameters_new(ng_tensor *const *tensors, int count)
{
    if (!ng_given(parameters_function, "tensors", tensors)) return NULL;
    if (count < 0) {
        ng_fail(NG_EVALUE, "%s: %d tensors, expected 0 or more", parameters_function, count);
        return NULL;
    }
    for (int i = 0; i < count; i++)
        if (!is_leaf_of_yours(tensors, i)) return NULL;
    ng_module *self = ng_module_new(&parameters_class);
    bool *required = ng_calloc(parameters_function, count + 1, sizeof *required);
    int taken = 0;
    while (self && required && taken < count) {
        char name[16];
        snprintf(name, sizeof name, "%d", taken);
        required[taken] = tensors[taken]->requires_grad;
        if (!ng_module_take_parameter(parameters_function, self, name, tensors[taken])) break;
        taken++;
    }
    const bool done = self && required && taken == count;
    if (self && !done) parameters_give_back(self, required, taken);
    if (!done) ng_module_free(self);
    ng_free(required);
    return done ? ng_module_built(self) : NULL;
}
