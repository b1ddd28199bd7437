/* Data-parallel training. During a backward pass each parameter has another gradient, of this rank
 * alone, in memory of the tape; the sum over the ranks is added to the parameter's. So a pass that
 * fails, here or elsewhere, changes no parameter's gradient. */
#include "group/collective.h"
#include "nn/module.h"
#include "optim/optimizer.h"
#include <normgrad/parallel.h>
#include <string.h>

struct ng_parallel {
    ng_module *module;
    ng_group *group;
};

/* A parameter that requires a gradient, and its own gradient. */
typedef struct {
    ng_tensor *weight;
    ng_tensor own;
    ng_leaf leaf; /* of `own`; during the pass the parameter's */
} slot;

/* The own gradients of a pass lie one after the other in `all`, which is added up. Behind them is a
 * number for each slot: 1 if this rank has reached it, then on how many ranks it was reached. */
typedef struct {
    slot *slots;
    int count;
    int64_t numbers; /* of the gradients */
    ng_tensor *all;
} own_pass;

static const char function[] = "ng_parallel_backward", maker[] = "ng_parallel_new";

/* ---- The same network everywhere ------------------------------------------------------------- */

/* The calls say what the network is, and differ where it does. */
static bool same_layer(const ng_parallel *p, const char *path, const ng_module *layer)
{
    char *settings = ng_module_settings(maker, layer);
    const bool same = ng_group_call(p->group, maker, "with \"%s\" %s(%s)", path, layer->type->name,
                                    settings ? settings : "") == NG_OK;
    ng_free(settings);
    return same;
}

static bool same_tensor(const ng_parallel *p, const char *path, const ng_tensor *x)
{
    return ng_group_call(p->group, maker, "with \"%s\" of %s %s%s", path, ng_dtype_name(x->dtype),
                         ng_shape_print(x->shape).text,
                         x->requires_grad ? "" : ", frozen") == NG_OK;
}

static bool same_network(const ng_parallel *p)
{
    if (!same_layer(p, "", p->module)) return false;
    for (ng_tree_walk w = ng_tree_begin(p->module); ng_tree_next(&w);) {
        const char *path = ng_entry_path(p->module, w.entry);
        if (w.entry->kind == NG_ENTRY_CHILD ? !same_layer(p, path, w.entry->child)
                                            : !same_tensor(p, path, w.entry->tensor))
            return false;
    }
    return ng_group_call(p->group, maker, "with no more layers") == NG_OK;
}

static bool send_values(const ng_parallel *p)
{
    for (ng_tree_walk w = ng_tree_begin(p->module); ng_tree_next(&w);) {
        const ng_entry_kind kind = w.entry->kind;
        if ((kind == NG_ENTRY_PARAMETER || kind == NG_ENTRY_BUFFER) &&
            ng_group_broadcast(p->group, w.entry->tensor, 0))
            return false;
    }
    return true;
}

/* ---- Make and free --------------------------------------------------------------------------- */

ng_parallel *ng_parallel_new(ng_module *module, ng_group *group)
{
    if (!ng_given(maker, "group", group)) return NULL;
    ng_parallel *p = ng_given(maker, "module", module) ? ng_calloc(maker, 1, sizeof *p) : NULL;
    if (p) *p = (ng_parallel){module, group};
    if (ng_group_agree(group) == NG_OK && same_network(p) && send_values(p)) return p;
    ng_free(p);
    return NULL;
}

void ng_parallel_free(ng_parallel *p) { ng_free(p); }

uint64_t ng_group_seed(const ng_group *group, uint64_t seed)
{
    if (!ng_given("ng_group_seed", "group", group)) return 0;
    ng_rng rng =
        ng_rng_seeded(seed ^ (UINT64_C(0x9e3779b97f4a7c15) * (uint64_t)(ng_group_rank(group) + 1)));
    return ng_rng_next(&rng);
}

/* ---- Own gradients --------------------------------------------------------------------------- */

static bool has_gradient(const ng_entry *entry)
{
    return entry->kind == NG_ENTRY_PARAMETER && entry->tensor->requires_grad;
}

/* Makes the memory of the parameters' gradients too, so that nothing fails after the sums. */
static bool make_slots(const ng_parallel *p, ng_tape *tape, own_pass *pass)
{
    ng_dtype dtype = NG_F32;
    for (ng_tree_walk w = ng_tree_begin(p->module); ng_tree_next(&w);) {
        if (!has_gradient(w.entry)) continue;
        const ng_tensor *weight = w.entry->tensor;
        if (pass->count++ == 0) dtype = weight->dtype;
        if (weight->dtype != dtype)
            return !ng_fail(NG_EDTYPE, "%s: %s is %s, other parameters are %s", function,
                            ng_entry_path(p->module, w.entry), ng_dtype_name(weight->dtype),
                            ng_dtype_name(dtype));
        if (!ng_tensor_grad_slot(w.entry->tensor)) return false;
        pass->numbers += weight->size;
    }
    const int64_t padded = ng_group_padded(p->group, pass->numbers + pass->count);
    slot *s = pass->slots = ng_tape_memory(tape, (size_t)pass->count * sizeof *s);
    pass->all = ng_result(tape, dtype, NG_SHAPE(padded));
    if (!pass->slots || !pass->all) return false;
    char *next = pass->all->data;
    for (ng_tree_walk w = ng_tree_begin(p->module); ng_tree_next(&w);) {
        const ng_tensor *weight = w.entry->tensor;
        if (!has_gradient(w.entry)) continue;
        *s = (slot){.weight = w.entry->tensor, .leaf = {.grad = &s->own}};
        s->own = (ng_tensor){dtype, .shape = weight->shape, .size = weight->size, .data = next};
        next += (size_t)weight->size * ng_dtype_bytes(dtype);
        s++;
    }
    return true;
}

/* Exchanges the gradients of all parameters with their own ones. */
static void exchange_gradients(const own_pass *pass)
{
    for (slot *s = pass->slots; s < pass->slots + pass->count; s++) {
        const ng_leaf before = *s->weight->leaf;
        *s->weight->leaf = s->leaf;
        s->leaf = before;
    }
}

static bool own_backward(const own_pass *pass, ng_tape *tape, ng_tensor *loss, double weight)
{
    exchange_gradients(pass);
    const bool well = ng_backward(tape, ng_mul_scalar(tape, loss, weight)) == NG_OK;
    exchange_gradients(pass);
    return well;
}

/* ---- Sums ------------------------------------------------------------------------------------ */

/* The gradients of parameters that this rank has not reached are 0. */
static void mark_reached(const own_pass *pass)
{
    for (int i = 0; i < pass->count; i++) {
        const ng_tensor *own = &pass->slots[i].own;
        const bool reached = pass->slots[i].leaf.has_grad;
        if (!reached) memset(own->data, 0, (size_t)own->size * ng_dtype_bytes(own->dtype));
        ng_tensor_store(pass->all, pass->numbers + i, reached);
    }
}

static void add_to_gradients(const own_pass *pass)
{
    for (int i = 0; i < pass->count; i++) {
        const ng_tensor *sum = &pass->slots[i].own;
        const ng_leaf *leaf = pass->slots[i].weight->leaf;
        if (ng_tensor_load(pass->all, pass->numbers + i) == 0) continue;
        if (ng_grad_is_new(leaf))
            ng_kernels_for(sum->dtype)->add_to(sum->data, leaf->grad->data, sum->size);
        else
            memcpy(leaf->grad->data, sum->data, (size_t)sum->size * ng_dtype_bytes(sum->dtype));
        ng_tensor_grad_arrived(pass->slots[i].weight);
    }
}

/* A rank that has failed takes part in the call, so that the others fail too. */
ng_status ng_parallel_backward_with(ng_parallel *p, ng_tape *tape,
                                    ng_parallel_backward_options options)
{
    if (!ng_given(function, "parallel", p)) return ng_newest_status();
    const double weight = ng_option(options.share, 1.0 / ng_group_size(p->group));
    own_pass pass = {0};
    if (ng_accepts(function, tape, 1, &options.loss) && !ng_failed() &&
        make_slots(p, tape, &pass) && own_backward(&pass, tape, options.loss, weight))
        mark_reached(&pass);
    ng_status status = ng_group_call(p->group, function, "of %d parameters, %lld numbers",
                                     pass.count, (long long)pass.numbers);
    if (!status)
        status = ng_group_add(p->group, pass.all->dtype, pass.all->data, pass.numbers + pass.count);
    if (!status) add_to_gradients(&pass);
    return status;
}
