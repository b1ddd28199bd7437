/* Shared by the layers that replace the parameter "weight" of a module by a function of it. */
#include "norms/reparameterized.h"
#include <string.h>

/* The parameter "weight" of the module itself. */
static ng_tensor *weight_of(const ng_module *module)
{
    for (int i = 0; i < module->registry->count; i++) {
        const ng_entry *entry = &module->registry->entries[i];
        if (entry->kind == NG_ENTRY_PARAMETER &&
            strcmp(ng_entry_path(module, entry), "weight") == 0)
            return entry->tensor;
    }
    return NULL;
}

bool ng_reparameterize(const char *function, ng_module *inner, ng_reparameterized *r)
{
    if (!ng_given(function, "inner", inner)) return false;
    *r = (ng_reparameterized){inner, weight_of(inner)};
    if (!r->weight)
        ng_fail(NG_EVALUE, "%s: a %s has no parameter \"weight\" of its own", function,
                inner->type->name);
    else if (r->weight->shape.rank == 0 || r->weight->size == 0)
        ng_fail(NG_ESHAPE, "%s: the weight of a %s is %s, expected rows", function,
                inner->type->name, ng_shape_print(r->weight->shape).text);
    else
        return true;
    return false;
}

ng_tensor *ng_forward_reparameterized(const ng_reparameterized *r, ng_tensor *weight, ng_tape *tape,
                                      const ng_inputs *in)
{
    return weight ? ng_forward_replaced(r->inner, tape, in, r->weight, weight) : NULL;
}
