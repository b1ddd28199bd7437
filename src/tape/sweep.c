/* The reverse sweep: from the newest node to the oldest, each op turns the gradient of its output
 * into gradients of its inputs (run_node). A sweep has arrays of its own, and tensors carry nothing
 * of it: so a gradient rule may take a gradient, which is a sweep inside a sweep. */
#include "tape/sweep.h"
#include "core/error.h"
#include "kernels/kernels.h"
#include <normgrad/ops.h>
#include <string.h>

/* Sweeps in sweeps and definitions in definitions: enough for any formula, and few enough for the
 * stack. */
enum { DEEPEST = 64 };

/* ---- The arrays ----------------------------------------------------------------------------- */

void ng_sweeps_free(ng_sweep *s)
{
    while (s) {
        ng_sweep *inner = s->inner;
        ng_free(s->nodes), ng_free(s->leaves), ng_free(s->scratch);
        ng_free(s);
        s = inner;
    }
}

/* Makes the array as long as `count`. */
static bool grow_nodes(ng_sweep *s, const char *function, int64_t count)
{
    if (count <= s->capacity) return true;
    const int64_t capacity = count > 2 * s->capacity ? count : 2 * s->capacity;
    ng_swept *nodes = ng_grow(function, s->nodes, s->capacity, capacity, sizeof *nodes);
    if (!nodes) return false;
    s->nodes = nodes;
    s->capacity = capacity;
    return true;
}

/* Where the leaf is in the table, or would be. */
static ng_swept **slot_of_leaf(const ng_sweep *s, const ng_tensor *leaf)
{
    const uint64_t hash = (uint64_t)(uintptr_t)leaf * UINT64_C(0x9e3779b97f4a7c15);
    int i = (int)(hash >> 40) & (s->slots - 1);
    while (s->leaves[i] && s->leaves[i]->x != leaf) i = (i + 1) & (s->slots - 1);
    return &s->leaves[i];
}

/* Gives the table so many slots. */
static bool set_table(ng_sweep *s, const char *function, int slots)
{
    if (slots > s->most_slots) {
        ng_swept **leaves = ng_calloc(function, slots, sizeof *leaves);
        if (!leaves) return false;
        ng_free(s->leaves);
        s->leaves = leaves;
        s->most_slots = slots;
    }
    memset(s->leaves, 0, (size_t)slots * sizeof *s->leaves);
    s->slots = slots;
    for (ng_swept *e = s->leaf; e; e = e->next) *slot_of_leaf(s, e->x) = e;
    return true;
}

/* The entry of a tensor, or NULL. */
ng_swept *ng_sweep_find(const ng_sweep *s, const ng_tensor *x)
{
    if (!x->node) return *slot_of_leaf(s, x);
    ng_swept *e = &s->nodes[x->node->index];
    return e->sweep == s->number ? e : NULL;
}

static ng_swept *enter_leaf(ng_sweep *s, ng_tensor *x)
{
    if (2 * s->n_leaves >= s->slots && !set_table(s, s->function, 2 * s->slots)) return NULL;
    ng_swept *e = ng_tape_memory(s->tape, sizeof *e);
    if (!e) return NULL;
    *e = (ng_swept){.x = x, .next = s->leaf};
    s->leaf = *slot_of_leaf(s, x) = e;
    s->n_leaves++;
    return e;
}

/* The entry of a node's output, made if there is none. */
static inline ng_swept *enter_result(ng_sweep *s, ng_tensor *x)
{
    ng_swept *e = &s->nodes[x->node->index];
    if (e->sweep == s->number) return e;
    e->x = x;
    e->grad = NULL;
    e->sweep = s->number;
    e->wanted = 0;
    e->leads = e->asked = e->reached = e->owned = e->empty = false;
    return e;
}

/* The entry of a tensor, made if there is none; NULL without memory. */
ng_swept *ng_sweep_enter(ng_sweep *s, ng_tensor *x)
{
    if (x->node) return enter_result(s, x);
    ng_swept *e = ng_sweep_find(s, x);
    return e ? e : enter_leaf(s, x);
}

/* A gradient arrives at an entry, whose node then waits for its turn. */
static void mark_entry_reached(ng_sweep *s, ng_swept *e)
{
    if (e->reached) return;
    e->reached = true;
    s->waiting += e->x->node != NULL;
}

/* One sweep or definition more inside the others. */
static bool may_go_deeper(const char *function, int depth)
{
    if (depth < DEEPEST) return true;
    ng_fail(NG_EGRAD,
            "%s: gradients inside gradients, more than %d deep: ng_recompute is nested as "
            "deeply, or a gradient rule differentiates its own op",
            function, DEEPEST);
    return false;
}

/* A sweep inside those that run on the tape; NULL with an error. */
ng_sweep *ng_sweep_begin(const char *function, ng_tape *tape)
{
    ng_sweep *outer = tape->sweep, **place = outer ? &outer->inner : &tape->sweeps, *s = *place;
    if (outer && !may_go_deeper(function, outer->depth)) return NULL;
    if (!s) s = *place = ng_calloc(function, 1, sizeof *s);
    if (!s) return NULL;
    s->leaf = NULL;
    if (!grow_nodes(s, function, tape->ops) || !set_table(s, function, 16)) return NULL;
    if (++s->number == 0)
        memset(s->nodes, 0, (size_t)s->capacity * sizeof *s->nodes), s->number = 1;
    s->function = function;
    s->tape = tape;
    s->depth = outer ? outer->depth + 1 : 1;
    s->n_leaves = 0;
    s->oldest = s->waiting = 0;
    s->search = s->searches = 0;
    s->spare.count = 0;
    s->record = s->to_leaves = false;
    s->status = NG_OK;
    tape->sweep = s;
    return s;
}

/* ---- Where gradients are put -------------------------------------------------------------- */

static void sweep_add(const ng_tensor *dx, void *sum)
{
    ng_kernels_for(dx->dtype)->add_to(dx->data, sum, dx->size);
}

static bool goes_to_leaf(const ng_sweep *s, const ng_tensor *x) { return s->to_leaves && !x->node; }

/* Memory for a gradient of x: spare memory, or new one. */
static ng_tensor *new_memory(ng_sweep *s, const ng_tensor *x)
{
    ng_tensor **const last = s->spare.last;
    for (int i = s->spare.count - 1; i >= 0; i--) {
        ng_tensor *found = last[i];
        if (found->size != x->size || found->dtype != x->dtype) continue;
        last[i] = last[--s->spare.count];
        found->shape = x->shape;
        return found;
    }
    return ng_result_like(s->tape, x);
}

/* Makes the memory of a gradient spare; of more than a few, the oldest is forgotten. */
static void keep_as_spare(ng_sweep *s, ng_tensor *gradient)
{
    ng_tensor **const last = s->spare.last;
    const int most = sizeof s->spare.last / sizeof *last;
    if (s->spare.count == most) memmove(last, last + 1, (size_t)--s->spare.count * sizeof *last);
    last[s->spare.count++] = gradient;
}

/* Memory for the gradient of an entry. That of a leaf is the leaf's own gradient, unless it is
 * new, was shown, or an outer pass may write to it: then it is separate memory, which
 * finish_leaves adds to it after a success. */
static ng_tensor *first_memory(ng_sweep *s, const ng_swept *e)
{
    ng_tensor *x = e->x;
    if (!goes_to_leaf(s, x)) return new_memory(s, x);
    if (!ng_tensor_grad_slot(x)) return NULL;
    const ng_leaf *leaf = x->leaf;
    const bool apart = ng_grad_is_new(leaf) || leaf->shown || s->depth > 1;
    return apart ? new_memory(s, x) : leaf->grad;
}

/* Gives an entry memory of its own. A gradient that belongs to another tensor is copied. */
static bool give_own_memory(ng_sweep *s, ng_swept *e)
{
    if (e->owned) return true;
    ng_tensor *memory = first_memory(s, e);
    if (!memory) return false;
    if (e->grad) memcpy(memory->data, e->grad->data, ng_bytes_of(e->x));
    e->empty = !e->grad;
    e->grad = memory;
    e->owned = true;
    return true;
}

/* Opens the gradient of an entry for a kernel, which writes it or adds to it. */
static bool open_slot(ng_sweep *s, ng_swept *e, ng_slot *slot)
{
    if (!give_own_memory(s, e)) return false;
    slot->data = e->grad->data;
    slot->accumulate = !e->empty;
    e->empty = false;
    mark_entry_reached(s, e);
    return true;
}

/* Adds the tensor dx to the gradient of an entry. The first one for an intermediate is used without
 * a copy. */
static bool add_to_entry(ng_sweep *s, ng_swept *e, ng_tensor *dx)
{
    if (!e->grad && !goes_to_leaf(s, e->x)) {
        e->grad = dx;
        mark_entry_reached(s, e);
        return true;
    }
    if (s->record) {
        e->grad = ng_add(s->tape, e->grad, dx);
        return e->grad;
    }
    ng_slot slot;
    if (!open_slot(s, e, &slot)) return false;
    if (slot.accumulate)
        sweep_add(dx, slot.data);
    else
        memcpy(slot.data, dx->data, ng_bytes_of(dx));
    return true;
}

/* ---- One node ------------------------------------------------------------------------------ */

/* What a node needs of its inputs while it runs; valid until the next node runs. */
typedef struct {
    ng_swept **entries; /* of those whose gradient is wanted, or NULL */
    bool any;           /* is wanted */
    union {
        ng_slot *slots;
        ng_tensor **dx;
    };
} inputs_scratch;

/* Finds the entries. A gradient is not wanted of an input that was frozen at recording, since ops
 * that used it then may not be on the tape, nor in ng_backward of one that is frozen now. */
static bool find_inputs(ng_sweep *s, const ng_node *node, inputs_scratch *in)
{
    const int n = node->n_inputs;
    if (n > s->scratch_for) {
        ng_free(s->scratch);
        s->scratch = ng_calloc(s->function, n, sizeof *in->slots + sizeof *in->entries);
        s->scratch_for = s->scratch ? n : 0;
        if (!s->scratch) return false;
    }
    *in =
        (inputs_scratch){.entries = (ng_swept **)((ng_slot *)s->scratch + n), .slots = s->scratch};
    for (int i = 0; i < n; i++) {
        ng_tensor *x = node->inputs[i];
        const bool all = s->search == 0;
        in->entries[i] = NULL;
        if (!ng_node_required(node, i) || (all && !x->requires_grad)) continue;
        ng_swept *e = x->node ? enter_result(s, x)
                      : all   ? ng_sweep_enter(s, x)
                              : ng_sweep_find(s, x);
        if (!e && all) return false;
        if (!e || e->wanted != s->search) continue;
        in->entries[i] = e;
        in->any = true;
    }
    return true;
}

static bool appears_before(const ng_node *node, int i)
{
    for (int j = 0; j < i; j++)
        if (node->inputs[j] == node->inputs[i]) return true;
    return false;
}

/* The gradients of an empty output are 0. */
static void clear_slots(const ng_node *node, const ng_slot *slots)
{
    for (int i = 0; i < node->n_inputs; i++)
        if (slots[i].data && !slots[i].accumulate)
            memset(slots[i].data, 0, ng_bytes_of(node->inputs[i]));
}

static bool call_kernel(const ng_sweep *s, const ng_node *node, const ng_tensor *dy, ng_slot *slots)
{
    const int64_t before = ng_failures_ever();
    const ng_status status = node->op->backward(s->tape, node, dy, slots);
    if (status)
        ng_fail_unrecorded(before, status, "%s: the backward kernel of %s returned %s", s->function,
                           node->op->name, ng_status_name(status));
    return status == NG_OK;
}

/* Runs the op's backward kernel on the gradients of its inputs. If a tensor is an input twice, its
 * second gradient is computed in separate memory and added. */
static bool run_kernel(ng_sweep *s, const ng_node *node, ng_tensor *dy, inputs_scratch in)
{
    for (int i = 0; i < node->n_inputs; i++) {
        in.slots[i].data = NULL;
        in.slots[i].accumulate = false;
        if (!in.entries[i]) continue;
        if (appears_before(node, i)) {
            in.slots[i].data = ng_tape_memory(s->tape, ng_bytes_of(node->inputs[i]));
            if (!in.slots[i].data) return false;
        } else if (!open_slot(s, in.entries[i], &in.slots[i])) {
            return false;
        }
    }
    if (dy->size == 0 && ng_node_kind(node) != NG_JOINT_OP)
        clear_slots(node, in.slots);
    else if (!call_kernel(s, node, dy, in.slots))
        return false;
    for (int i = 0; i < node->n_inputs; i++) {
        const ng_tensor *x = node->inputs[i];
        if (!in.slots[i].data || !appears_before(node, i)) continue;
        ng_kernels_for(x->dtype)->add_to(in.slots[i].data, in.entries[i]->grad->data, x->size);
    }
    return true;
}

/* Whether what a rule or a definition gave has the dtype and shape that it must have. */
static bool fits(const ng_sweep *s, const ng_op *op, const char *what, const ng_tensor *given,
                 const ng_tensor *expected)
{
    if (given->dtype == expected->dtype && ng_same_shape(given, expected)) return true;
    ng_fail(NG_EGRAD, "%s: the %s of %s gave %s %s, expected %s %s", s->function, what, op->name,
            ng_dtype_name(given->dtype), ng_shape_print(given->shape).text,
            ng_dtype_name(expected->dtype), ng_shape_print(expected->shape).text);
    return false;
}

/* A gradient that somebody else gives. What is not the tape's is copied: its owner may change or
 * free it. */
static ng_tensor *on_tape(const ng_sweep *s, ng_tensor *dx)
{
    if ((dx->base ? dx->base : dx)->tape) return dx;
    if (s->record && dx->requires_grad) /* dx + -0 keeps all bits and has a gradient */
        return ng_add(s->tape, dx, ng_result_full(s->tape, dx->dtype, (ng_shape){0}, -0.0));
    ng_tensor *copy = ng_result_like(s->tape, dx);
    if (copy) memcpy(copy->data, dx->data, ng_bytes_of(dx));
    return copy;
}

/* Whether what a rule of the user's gave for input i can be read and has its dtype and shape. */
static bool accepts_ruled(const ng_sweep *s, const ng_node *node, int i, const ng_tensor *dx)
{
    const char *why = ng_why_unusable(s->tape, dx);
    if (why)
        ng_fail(NG_ESTATE, "%s: what the gradient rule of %s gave for operand %d %s", s->function,
                node->op->name, i + 1, why);
    return !why && fits(s, node->op, "gradient rule", dx, node->inputs[i]);
}

/* Runs the op's gradient rule and adds its results to the inputs' gradients. The rule's ops are
 * recorded if the sweep records. A rule that leaves a failure on record has failed. */
static bool run_rule(ng_sweep *s, const ng_node *node, ng_tensor *dy, inputs_scratch in)
{
    const bool own = ng_node_kind(node) != NG_USERS_OP;
    const int64_t before = own ? 0 : ng_failures_ever();
    for (int i = 0; i < node->n_inputs; i++) in.dx[i] = in.entries[i] ? NULL : NG_NONE;
    node->op->gradient(s->tape, node, dy, in.dx);
    s->tape->function = s->function;
    s->tape->recording = s->record;
    if (!own && ng_failures_ever() > before && ng_failed()) return false;
    for (int i = 0; i < node->n_inputs; i++) {
        ng_tensor *dx = in.dx[i];
        if (!in.entries[i]) continue;
        if (!dx)
            ng_fail_unrecorded(before, NG_EGRAD,
                               "%s: the gradient rule of %s gave no gradient of operand %d",
                               s->function, node->op->name, i + 1);
        if (!dx) return false;
        if (ng_is_none(dx)) {
            mark_entry_reached(s, in.entries[i]);
            continue;
        }
        if (!own && !accepts_ruled(s, node, i, dx)) return false;
        dx = on_tape(s, dx);
        if (!dx || !add_to_entry(s, in.entries[i], dx)) return false;
    }
    return true;
}

/* The node for its definition: an input that was frozen when the op was recorded is a constant,
 * even if it was unfrozen since. */
static bool copy_with_constants(ng_tape *tape, const ng_node *node, ng_node *copy)
{
    *copy = *node;
    copy->inputs = ng_tape_memory(tape, (size_t)node->n_inputs * sizeof *copy->inputs);
    for (int i = 0; i < node->n_inputs && copy->inputs; i++) {
        ng_tensor *x = node->inputs[i];
        const bool unfrozen = x->requires_grad && !ng_node_required(node, i);
        copy->inputs[i] = unfrozen ? ng_result_view(tape, x, x->shape) : x;
        if (!copy->inputs[i]) return false;
    }
    return copy->inputs;
}

static bool walk(ng_sweep *s, int64_t oldest, ng_tensor *const *outputs, int n_outputs,
                 ng_tensor *const *cotangents);

/* Goes over a definition, which is recorded from the node `oldest` on, from y with cotangent dy
 * back to those inputs of the node whose gradient is wanted. */
static bool walk_definition(ng_sweep *s, const ng_node *node, ng_tensor *y, ng_tensor *dy,
                            ng_swept *const *entries, int64_t oldest)
{
    const uint32_t search = s->search;
    if (!grow_nodes(s, s->function, s->tape->ops)) return false;
    s->search = ++s->searches;
    for (int i = 0; i < node->n_inputs; i++) {
        ng_swept *e =
            entries[i] ? ng_sweep_find(s, node->inputs[i]) : NULL; /* the array may have grown */
        if (e) e->wanted = s->search;
    }
    s->depth++;
    const bool well = walk(s, oldest, &y, 1, &dy);
    s->depth--;
    for (int i = 0; i < node->n_inputs; i++) {
        ng_swept *e = ng_sweep_find(s, node->inputs[i]);
        if (e && e->wanted == s->search) e->wanted = search;
    }
    s->search = search;
    return well;
}

/* Differentiates a fused op by its definition, which is recorded at the end of the tape. Unless
 * gradients are recorded, it is taken off again, and its memory is given back. */
static bool run_definition(ng_sweep *s, const ng_node *node, ng_tensor *dy, inputs_scratch in)
{
    ng_tape *tape = s->tape;
    ng_scope scope;
    ng_node copy;
    const int64_t oldest = tape->ops;
    if (!may_go_deeper(s->function, s->depth) || !copy_with_constants(tape, node, &copy))
        return false;
    for (int i = 0; i < node->n_inputs && !s->record; i++)
        if (in.entries[i] && !give_own_memory(s, in.entries[i])) return false;
    const ng_spare_memory before = s->spare;
    if (!s->record && !ng_tape_enter(tape, &scope)) return false;
    const bool was = ng_tape_set_recording(tape, true);
    const int64_t failures = ng_failures_ever();
    ng_tensor *y = node->op->definition(tape, &copy);
    ng_tape_set_recording(tape, was);
    tape->function = s->function;
    if (!y)
        ng_fail_unrecorded(failures, NG_EGRAD, "%s: the definition of %s returned NULL",
                           s->function, node->op->name);
    const bool well = y && fits(s, node->op, "definition", y, node->output) &&
                      walk_definition(s, node, y, dy, in.entries, oldest);
    if (s->record) return well;
    for (int64_t i = oldest; i < tape->ops && i < s->capacity; i++) s->nodes[i].sweep = 0;
    s->spare = before;
    ng_tape_leave(tape, &scope);
    return well;
}

/* Visits the node of an entry, which is reached. A gradient of zero is handed on without running
 * the op. Once a kernel has used a gradient, its memory is free. */
static bool run_node(ng_sweep *s, ng_swept *e)
{
    ng_tensor *dy = ng_swept_gradient(e);
    const ng_node *node = e->x->node;
    const ng_op *op = node->op;
    inputs_scratch in;
    bool well = false;
    if (!find_inputs(s, node, &in)) return false;
    if (!in.any) return true;
    s->tape->function = s->function;
    if (!dy) {
        well = true;
        for (int i = 0; i < node->n_inputs; i++)
            if (in.entries[i]) mark_entry_reached(s, in.entries[i]);
    } else if (!ng_node_is_current(node)) {
        ng_fail(NG_ESTATE, "%s: an operand of %s was changed after the op was recorded",
                s->function, op->name);
    } else if (op->backward && !s->record) {
        well = run_kernel(s, node, dy, in);
        if (e->owned && !e->asked) keep_as_spare(s, e->grad);
    } else if (op->gradient) {
        well = run_rule(s, node, dy, in);
    } else if (op->definition) {
        well = run_definition(s, node, dy, in);
    } else {
        ng_fail(NG_EGRAD, "%s: %s has no gradient%s", s->function, op->name,
                op->backward ? " that can be recorded" : "");
    }
    return well;
}

/* ---- All nodes ------------------------------------------------------------------------------ */

/* An output depends on x; *left counts such nodes whose inputs were not looked at. */
static void mark_leading(ng_sweep *s, int64_t oldest, ng_tensor *x, int64_t *left)
{
    if (!x->node || x->node->index < oldest) return;
    ng_swept *e = enter_result(s, x);
    *left += !e->leads;
    e->leads = true;
}

/* Finds what the outputs depend on, from the newest node to the oldest of these, and then, back to
 * the newest, what of it leads to what is wanted. */
static void search_path(ng_sweep *s, int64_t oldest, int64_t newest, ng_tensor *const *outputs,
                        int n_outputs)
{
    int64_t left = 0, i = newest;
    for (int k = 0; k < n_outputs; k++) mark_leading(s, oldest, outputs[k], &left);
    for (; left > 0; i--) {
        const ng_swept *e = &s->nodes[i];
        if (e->sweep != s->number || !e->leads) continue;
        const ng_node *node = e->x->node;
        left--;
        for (int k = 0; k < node->n_inputs; k++)
            if (ng_node_required(node, k)) mark_leading(s, oldest, node->inputs[k], &left);
    }
    while (++i <= newest) {
        ng_swept *e = &s->nodes[i];
        if (e->sweep != s->number || !e->leads) continue;
        const ng_node *node = e->x->node;
        for (int k = 0; k < node->n_inputs && e->wanted != s->search; k++) {
            const ng_swept *below =
                ng_node_required(node, k) ? ng_sweep_find(s, node->inputs[k]) : NULL;
            if (below && below->wanted == s->search) e->wanted = s->search;
        }
    }
}

/* From the outputs to what they depend on, at the node `oldest` at the most. Without cotangents
 * these are ones. */
static bool walk(ng_sweep *s, int64_t oldest, ng_tensor *const *outputs, int n_outputs,
                 ng_tensor *const *cotangents)
{
    int64_t newest = -1;
    for (int i = 0; i < n_outputs; i++)
        if (outputs[i]->node && outputs[i]->node->index > newest) newest = outputs[i]->node->index;
    if (s->search > 0) search_path(s, oldest, newest, outputs, n_outputs);
    for (int i = 0; i < n_outputs; i++) {
        ng_tensor *y = outputs[i];
        ng_swept *e = ng_sweep_enter(s, y);
        if (!e) return false;
        if (s->search > 0 && e->wanted != s->search) continue;
        const bool given = cotangents && !ng_is_none(cotangents[i]);
        ng_tensor *dy = given ? cotangents[i] : ng_result_full(s->tape, y->dtype, y->shape, 1.0);
        if (given && !s->to_leaves) dy = on_tape(s, dy); /* a gradient may be dy itself */
        if (!dy || !add_to_entry(s, e, dy)) return false;
    }
    for (int64_t i = newest; i >= oldest && s->waiting > 0; i--) {
        ng_swept *e = &s->nodes[i];
        if (e->sweep != s->number || !e->reached) continue;
        s->waiting--;
        if (!run_node(s, e)) return false;
    }
    return true;
}

/* Gives leaves that only a gradient of zero has reached a gradient. */
static bool fill_with_zeros(ng_sweep *s)
{
    for (ng_swept *e = s->leaf; e; e = e->next) {
        ng_slot slot;
        if (!e->reached || ng_swept_gradient(e)) continue;
        if (!open_slot(s, e, &slot)) return false;
        memset(slot.data, 0, ng_bytes_of(e->x));
    }
    return true;
}

/* The whole sweep. The tape is live meanwhile. */
bool ng_sweep_run(ng_sweep *s, ng_tensor *const *outputs, int n_outputs,
                  ng_tensor *const *cotangents)
{
    ng_tape *tape = s->tape;
    const ng_tape_mode mode = tape->replay.mode;
    const bool was = ng_tape_set_recording(tape, s->record);
    tape->replay.mode = NG_TAPE_LIVE;
    for (ng_listener *l = tape->listeners; l; l = l->next)
        if (l->swept) l->swept(l);
    const bool well =
        walk(s, s->oldest, outputs, n_outputs, cotangents) && (!s->to_leaves || fill_with_zeros(s));
    s->status = well ? NG_OK : ng_newest_status();
    tape->replay.mode = mode;
    tape->recording = was;
    return well;
}
