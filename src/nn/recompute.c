/* ng_recompute: a pass whose results are given back, and which runs again when its gradient is
 * taken. It is an op whose definition is the pass: the sweep records it, goes back over it, and
 * gives its memory back. */
#include "core/error.h"
#include "nn/module.h"
#include <string.h>

/* A module as it was when the pass called it; with a parameter or buffer of its own, or NULL. */
typedef struct module_note {
    struct module_note *older;
    ng_module *module, module_was;
    uint64_t structure;
    ng_tensor *tensor, tensor_was;
    size_t bytes;  /* of a buffer, else 0 */
    char values[]; /* of a buffer */
} module_note;

/* The first run of a pass. */
typedef struct ng_pass {
    struct ng_pass *outer;
    ng_scope scope;
    module_note *modules; /* the newest first */
} ng_pass;

/* What the second run needs to be as the first. */
typedef struct {
    ng_module *module;
    ng_inputs inputs;
    ng_replaced *replaced; /* by the calls around this one */
    const module_note *modules;
    ng_rng rng;
    ng_tape_mode mode; /* the detached values that the checker holds fixed, from this one on */
    int64_t detached;
} recompute_attributes;

static size_t bytes_of(const ng_tensor *x) { return (size_t)x->size * ng_dtype_bytes(x->dtype); }

static bool note(ng_tape *tape, ng_module *module, ng_tensor *x, bool is_buffer,
                 module_note **newest)
{
    const size_t bytes = is_buffer ? bytes_of(x) : 0;
    module_note *n = ng_tape_memory(tape, sizeof *n + bytes);
    if (!n) return false;
    *n = (module_note){*newest, module, *module, module->registry->structure, x, .bytes = bytes};
    if (x) n->tensor_was = *x;
    if (bytes > 0) memcpy(n->values, x->data, bytes);
    *newest = n;
    return true;
}

bool ng_pass_notes(ng_tape *tape, ng_module *module)
{
    const struct ng_registry *registry = module->registry;
    bool well = true;
    for (ng_pass *pass = tape->passes; pass && well; pass = pass->outer) {
        ng_tape_keep(tape, &pass->scope);
        well = note(tape, module, NULL, false, &pass->modules);
        for (const ng_entry *e = registry->entries; e < registry->entries + registry->count; e++)
            if (well && e->tensor)
                well = note(tape, module, e->tensor, e->kind == NG_ENTRY_BUFFER, &pass->modules);
        ng_tape_keep(tape, &pass->scope);
    }
    return well;
}

/* Makes the modules what they were. Of those with two notes, the older note holds. */
static void restore(const module_note *modules)
{
    for (const module_note *n = modules; n; n = n->older) {
        *n->module = n->module_was;
        if (!n->tensor) continue;
        n->tensor->requires_grad = n->tensor_was.requires_grad;
        n->tensor->version = n->tensor_was.version;
        if (n->bytes > 0) memcpy(n->tensor->data, n->values, n->bytes);
    }
}

/* Notes what the same modules are now; false without memory, or if they cannot be restored. */
static bool note_again(ng_tape *tape, const module_note *modules, module_note **now)
{
    for (const module_note *n = modules; n; n = n->older) {
        if (n->module->registry->structure != n->structure ||
            (n->tensor && n->tensor->dtype != n->tensor_was.dtype)) {
            ng_fail(NG_ESTATE, "ng_recompute: the %s was changed before its gradient was taken",
                    n->module->type->name);
            return false;
        }
        if (!note(tape, n->module, n->tensor, n->bytes > 0, now)) return false;
    }
    return true;
}

static ng_tensor *same_output(const ng_module *module, ng_tensor *y, const ng_tensor *first)
{
    if (!y || (y->dtype == first->dtype && ng_same_shape(y, first) &&
               memcmp(y->data, first->data, bytes_of(y)) == 0))
        return y;
    ng_fail(NG_ESTATE,
            "ng_recompute: the second run of the %s, for the gradient, gave another "
            "output than the first: something that it reads was changed",
            module->type->name);
    return NULL;
}

/* The pass again. All that it reads is as it was at the first run, and afterwards as it is now. */
static ng_tensor *recompute_definition(ng_tape *tape, const ng_node *node)
{
    const recompute_attributes *a = node->attributes;
    const ng_rng rng = tape->rng;
    const ng_replay replay = tape->replay;
    ng_replaced *const replaced = tape->replaced;
    ng_pass *const passes = tape->passes;
    module_note *now = NULL;
    if (!note_again(tape, a->modules, &now)) return NULL;
    restore(a->modules);
    tape->replaced = a->replaced;
    tape->passes = NULL;
    tape->rng = a->rng;
    tape->replay.mode = a->mode == NG_TAPE_LIVE ? NG_TAPE_LIVE : NG_TAPE_REPLAY;
    tape->replay.next = a->detached;
    tape->replay.again = true;
    ng_tensor *y = ng_forward_with(a->module, tape, a->inputs);
    tape->replay = replay;
    tape->rng = rng;
    tape->passes = passes;
    tape->replaced = replaced;
    restore(now);
    return same_output(a->module, y, node->output);
}

static const ng_op recompute_op = {.name = "recompute", .definition = recompute_definition};

/* What an op of the pass reads that is older than the pass: its operand, or the tensor of which
 * that is a view; or NULL. */
static ng_tensor *older_operand(const ng_tape *tape, const ng_scope *scope, ng_tensor *x)
{
    if (ng_is_none(x) || ng_is_older(tape, scope, x)) return ng_is_none(x) ? NULL : x;
    ng_tensor *base = x->node ? NULL : (ng_tensor *)x->base;
    return base && ng_is_older(tape, scope, base) ? base : NULL;
}

/* Counts what is older than the pass and its recorded ops read, and lists it unless `list` is NULL.
 * Ops that are not recorded read constants: of these it lists the inputs of the module. */
static int list_operands(const ng_tape *tape, const ng_scope *scope, const ng_inputs *inputs,
                         ng_tensor **list)
{
    int n = 0;
    for (int i = 0; i < NG_INPUTS_COUNT; i++) {
        ng_tensor *x = *ng_input_at(inputs, i);
        if (x && !x->requires_grad && !ng_is_none(x) && ++n && list) list[n - 1] = x;
    }
    for (const ng_node *node = scope->last ? scope->last->next : tape->first; node;
         node = node->next)
        for (int i = 0; i < node->n_inputs; i++) {
            ng_tensor *x = older_operand(tape, scope, node->inputs[i]);
            if (x && ++n && list) list[n - 1] = x;
        }
    return n;
}

/* The output of the first run, whose other results are given back, and the operands of the node. */
static ng_tensor *first_run(ng_tape *tape, recompute_attributes *a, ng_tensor ***operands, int *n)
{
    ng_pass pass = {.outer = tape->passes};
    if (!ng_tape_enter(tape, &pass.scope)) return NULL;
    tape->passes = &pass;
    ng_tensor *y = ng_forward_with(a->module, tape, a->inputs), *output = y;
    tape->passes = pass.outer;
    a->modules = pass.modules;
    if (y && !ng_is_older(tape, &pass.scope, y)) {
        const int count = y->requires_grad ? list_operands(tape, &pass.scope, &a->inputs, NULL) : 0;
        ng_tape_keep(tape, &pass.scope);
        output = ng_result_like(tape, y);
        *operands = ng_tape_memory(tape, (size_t)count * sizeof **operands);
        ng_tape_keep(tape, &pass.scope);
        if (!*operands) output = NULL;
        if (output) memcpy(output->data, y->data, bytes_of(y));
        if (output && count > 0) *n = list_operands(tape, &pass.scope, &a->inputs, *operands);
    }
    ng_tape_leave(tape, &pass.scope);
    return output;
}

ng_tensor *ng_recompute_with(ng_module *module, ng_tape *tape, ng_inputs inputs)
{
    static const char function[] = "ng_recompute";
    if (!ng_given(function, "tape", tape) || !ng_given(function, "module", module) ||
        !ng_given(function, "x", inputs.x))
        return NULL;
    if (!tape->recording) return ng_forward_with(module, tape, inputs);
    tape->function = function;
    recompute_attributes a = {.module = module,
                              .inputs = inputs,
                              .replaced = tape->replaced,
                              .rng = tape->rng,
                              .mode = tape->replay.mode,
                              .detached = tape->replay.next};
    ng_tensor **operands = NULL;
    int n = 0;
    ng_tensor *y = first_run(tape, &a, &operands, &n);
    return y ? ng_record_own(tape, &recompute_op, y, operands, n, &a, sizeof a) : NULL;
}
