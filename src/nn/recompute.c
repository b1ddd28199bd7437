/* ng_recompute: a pass that keeps x alone, and runs again when its gradient is taken. It is an op
 * whose definition is the pass: the sweep records it, goes back over it, and gives its memory
 * back. */
#include "core/error.h"
#include "nn/module.h"
#include <string.h>

/* The named inputs are copied as they stand in ng_inputs. */
enum { RECOMPUTE_INPUTS = 8 };

/* A buffer before the pass. */
typedef struct {
    ng_tensor *tensor;
    void *values;
    uint32_t version;
} kept_buffer;

/* What the second run needs to be as the first. */
typedef struct {
    ng_module *module;
    ng_tensor **parameters; /* whose values in the pass are inputs of the node, behind the others */
    kept_buffer *buffers;
    int n_parameters, n_buffers;
    ng_rng rng;
    ng_tape_mode mode; /* the detached values that the checker holds fixed, from this one on */
    int64_t detached;
} recompute_attributes;

static ng_tensor **input_of(ng_inputs *inputs, int i)
{
    ng_tensor **const all[RECOMPUTE_INPUTS] = {
        &inputs->x,      &inputs->condition,   &inputs->mask,  &inputs->lengths,
        &inputs->memory, &inputs->memory_mask, &inputs->style, &inputs->gate};
    return all[i];
}

static size_t buffer_bytes(const ng_tensor *x)
{
    return (size_t)x->size * ng_dtype_bytes(x->dtype);
}

static bool keep_buffer(ng_tape *tape, kept_buffer *kept, ng_tensor *x)
{
    *kept = (kept_buffer){x, ng_tape_memory(tape, buffer_bytes(x)), x->version};
    if (kept->values) memcpy(kept->values, x->data, buffer_bytes(x));
    return kept->values;
}

/* Lists the parameters that the module reads, and copies its buffers. */
static bool take_state(ng_tape *tape, recompute_attributes *a)
{
    int count = 0;
    for (ng_tree_walk w = ng_tree_begin(a->module); ng_tree_next(&w);) count++;
    a->parameters = ng_tape_memory(tape, ((size_t)count + 1) * sizeof *a->parameters);
    a->buffers = ng_tape_memory(tape, ((size_t)count + 1) * sizeof *a->buffers);
    if (!a->parameters || !a->buffers) return false;
    for (ng_tree_walk w = ng_tree_begin(a->module); ng_tree_next(&w);) {
        ng_tensor *x = w.entry->tensor;
        if (w.entry->kind == NG_ENTRY_PARAMETER || w.entry->kind == NG_ENTRY_TIED)
            a->parameters[a->n_parameters++] = ng_untied(x);
        else if (w.entry->kind == NG_ENTRY_BUFFER &&
                 !keep_buffer(tape, &a->buffers[a->n_buffers++], x))
            return false;
    }
    return true;
}

/* Gives the buffers the values that they had. Those of now are kept in *now. */
static bool rewind_buffers(ng_tape *tape, const recompute_attributes *a, kept_buffer **now)
{
    *now = ng_tape_memory(tape, ((size_t)a->n_buffers + 1) * sizeof **now);
    if (!*now) return false;
    for (int i = 0; i < a->n_buffers; i++)
        if (!keep_buffer(tape, &(*now)[i], a->buffers[i].tensor)) return false;
    for (int i = 0; i < a->n_buffers; i++)
        memcpy((*now)[i].tensor->data, a->buffers[i].values, buffer_bytes((*now)[i].tensor));
    return true;
}

/* The pass again. Random numbers, buffers and detached values are as they were at the first run,
 * and afterwards as they are now. */
static ng_tensor *recompute_definition(ng_tape *tape, const ng_node *node)
{
    const recompute_attributes *a = node->attributes;
    const ng_rng rng = tape->rng;
    const ng_replay replay = tape->replay;
    ng_replaced replaced = {a->parameters, node->inputs + RECOMPUTE_INPUTS, a->n_parameters,
                            tape->replaced};
    ng_inputs inputs = {.named = 0};
    kept_buffer *now;
    if (!rewind_buffers(tape, a, &now)) return NULL;
    for (int i = 0; i < RECOMPUTE_INPUTS; i++) *input_of(&inputs, i) = node->inputs[i];
    tape->replaced = &replaced;
    tape->rng = a->rng;
    tape->replay.mode = a->mode == NG_TAPE_LIVE ? NG_TAPE_LIVE : NG_TAPE_REPLAY;
    tape->replay.next = a->detached;
    ng_tensor *y = ng_forward_with(a->module, tape, inputs);
    tape->replay = replay;
    tape->rng = rng;
    tape->replaced = replaced.older;
    for (const kept_buffer *b = now; b < now + a->n_buffers; b++) {
        memcpy(b->tensor->data, b->values, buffer_bytes(b->tensor));
        b->tensor->version = b->version;
    }
    return y;
}

static const ng_op recompute_op = {
    .built_in = true, .name = "recompute", .definition = recompute_definition};

/* The output of the first run, whose memory is given back. */
static ng_tensor *first_run(ng_tape *tape, ng_module *module, const ng_inputs *inputs)
{
    ng_scope scope;
    if (!ng_tape_enter(tape, &scope)) return NULL;
    const ng_tensor *y = ng_forward_with(module, tape, *inputs);
    ng_arena results = tape->arena;
    tape->arena = scope.arena;
    ng_tensor *copy = y ? ng_result_like(tape, y) : NULL;
    if (copy) memcpy(copy->data, y->data, buffer_bytes(y));
    scope.arena = tape->arena;
    tape->arena = results;
    ng_tape_leave(tape, &scope);
    return copy;
}

ng_tensor *ng_recompute_with(ng_tape *tape, ng_module *module, ng_inputs inputs)
{
    static const char function[] = "ng_recompute";
    ng_tensor *x = inputs.x;
    if (!ng_given(function, "tape", tape) || !ng_given(function, "module", module) ||
        !ng_given(function, "x", x) || !ng_usable(function, "x", 0, tape, x) ||
        !ng_module_ready(module))
        return NULL;
    tape->function = function;
    recompute_attributes a = {.module = module,
                              .rng = tape->rng,
                              .mode = tape->replay.mode,
                              .detached = tape->replay.next};
    if (!take_state(tape, &a)) return NULL;
    const int n = RECOMPUTE_INPUTS + a.n_parameters;
    ng_tensor **all = ng_tape_memory(tape, (size_t)n * sizeof *all);
    if (!all) return NULL;
    for (int i = 0; i < RECOMPUTE_INPUTS; i++)
        all[i] = *input_of(&inputs, i) ? *input_of(&inputs, i) : NG_NONE;
    for (int i = 0; i < a.n_parameters; i++)
        all[RECOMPUTE_INPUTS + i] = ng_parameter_value(tape, a.parameters[i]);
    if (!ng_will_record(tape, n, all)) return ng_forward_with(module, tape, inputs);
    ng_tensor *y = first_run(tape, module, &inputs);
    return y ? ng_record(tape, &recompute_op, y, all, n, &a, sizeof a) : NULL;
}
