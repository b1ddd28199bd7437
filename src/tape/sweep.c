/* The reverse sweep: from the newest node to the oldest, each op turns the gradient of its output
 * into gradients of its inputs (run_node). A sweep has arrays of its own, and tensors carry nothing
 * of it: so a gradient rule may take a gradient, which is a sweep inside a sweep. */
#include "core/error.h"
#include "kernels/kernels.h"
#include "tape/tape.h"
#include <normgrad/ops.h>
#include <string.h>

/* Sweeps in sweeps: enough for any formula, and few enough for the stack. */
enum { DEEPEST = 64 };

/* What a sweep knows of a tensor. */
typedef struct entry {
    ng_tensor *x;
    ng_tensor *grad;    /* its gradient so far, or NULL */
    struct entry *next; /* of a list: of leaves; of entries whose memory is free; of a path */
    uint32_t sweep;     /* the number of the sweep that has entered it */
    int input;          /* mark: the next input to look at */
    bool visited;       /* by mark */
    bool asked, wanted; /* a result of ng_gradients; that, or leads to one */
    bool reached;       /* a gradient has arrived; of zero, if grad is NULL or empty */
    bool owned;         /* grad is the sweep's: it adds in place, and uses the memory again */
    bool empty;         /* grad is memory only */
} entry;

/* The arrays are kept for later sweeps. */
struct ng_sweep {
    ng_sweep *inner; /* for a sweep inside this one, or NULL */
    int depth;
    uint32_t number;   /* counts the sweeps that have used the arrays */
    entry *nodes;      /* of the nodes' outputs, by the node's number; valid with this number */
    uint64_t *waiting; /* a bit for each node that waits for its turn */
    int64_t room;      /* nodes */
    entry **leaves;    /* by address: a hash table of `slots`, a power of 2 */
    int slots, most_slots, n_leaves;

    const char *function; /* the public name, for messages */
    ng_tape *tape;
    int64_t oldest;    /* nodes before this one are not visited */
    int64_t n_waiting; /* nodes that wait; none is newer than those of this word */
    int64_t word;
    entry *only;   /* of the one that waits, which has no bit; or NULL */
    entry *leaf;   /* the newest of the leaves */
    entry *spare;  /* the newest whose memory is free */
    void *scratch; /* for the inputs of one node */
    int scratch_for;
    bool record;      /* gradients are recorded ops themselves */
    bool to_leaves;   /* ng_backward: into the leaves that require a gradient */
    ng_status status; /* of the first failure */
};

/* ---- The arrays ----------------------------------------------------------------------------- */

void ng_sweeps_free(ng_sweep *s)
{
    while (s) {
        ng_sweep *inner = s->inner;
        ng_free(s->nodes), ng_free(s->waiting), ng_free(s->leaves);
        ng_free(s);
        s = inner;
    }
}

/* Makes room for the nodes of the tape. */
static bool grow_nodes(ng_sweep *s, const char *function, int64_t count)
{
    if (count <= s->room) return true;
    const int64_t room = (count > 2 * s->room ? count : 2 * s->room) / 64 * 64 + 64;
    ng_free(s->nodes), ng_free(s->waiting);
    s->nodes = ng_calloc(function, room, sizeof *s->nodes);
    s->waiting = ng_calloc(function, room / 64, sizeof *s->waiting);
    s->room = s->nodes && s->waiting ? room : 0;
    return s->room > 0;
}

/* Where the leaf is in the table, or would be. */
static entry **place_of(const ng_sweep *s, const ng_tensor *leaf)
{
    const uint64_t spread = (uint64_t)(uintptr_t)leaf * UINT64_C(0x9e3779b97f4a7c15);
    int at = (int)(spread >> 40) & (s->slots - 1);
    while (s->leaves[at] && s->leaves[at]->x != leaf) at = (at + 1) & (s->slots - 1);
    return &s->leaves[at];
}

/* Gives the table so many slots. */
static bool set_table(ng_sweep *s, const char *function, int slots)
{
    if (slots > s->most_slots) {
        entry **leaves = ng_calloc(function, slots, sizeof *leaves);
        if (!leaves) return false;
        ng_free(s->leaves);
        s->leaves = leaves;
        s->most_slots = slots;
    }
    memset(s->leaves, 0, (size_t)slots * sizeof *s->leaves);
    s->slots = slots;
    for (entry *e = s->leaf; e; e = e->next) *place_of(s, e->x) = e;
    return true;
}

/* The entry of a tensor, or NULL. */
static inline entry *find(const ng_sweep *s, const ng_tensor *x)
{
    if (!x->node) return *place_of(s, x);
    entry *e = &s->nodes[x->node->index];
    return e->sweep == s->number ? e : NULL;
}

static entry *enter_leaf(ng_sweep *s, ng_tensor *x)
{
    if (2 * s->n_leaves >= s->slots && !set_table(s, s->function, 2 * s->slots)) return NULL;
    entry *e = ng_tape_memory(s->tape, sizeof *e);
    if (!e) return NULL;
    *e = (entry){.x = x, .next = s->leaf};
    s->leaf = *place_of(s, x) = e;
    s->n_leaves++;
    return e;
}

/* The same, made if there is none; NULL without memory. */
static inline entry *enter(ng_sweep *s, ng_tensor *x)
{
    entry *e = find(s, x);
    if (e) return e;
    if (!x->node) return enter_leaf(s, x);
    e = &s->nodes[x->node->index];
    e->x = x;
    e->grad = NULL;
    e->next = NULL;
    e->sweep = s->number;
    e->input = 0;
    e->visited = e->asked = e->wanted = e->reached = e->owned = e->empty = false;
    return e;
}

static void set_waiting(ng_sweep *s, int64_t index)
{
    const int64_t word = index / 64;
    s->waiting[word] |= UINT64_C(1) << index % 64;
    if (word > s->word) s->word = word;
}

/* A gradient arrives at an entry, whose node then waits for its turn. */
static void reach(ng_sweep *s, entry *e)
{
    if (e->reached) return;
    e->reached = true;
    const ng_node *node = e->x->node;
    if (!node || node->index < s->oldest) return;
    if (s->n_waiting++ == 0) {
        s->only = e;
        return;
    }
    if (s->only) set_waiting(s, s->only->x->node->index);
    s->only = NULL;
    set_waiting(s, node->index);
}

/* Takes the newest of those that wait; NULL when none does. */
static entry *take_turn(ng_sweep *s)
{
    if (s->n_waiting == 0) return NULL;
    s->n_waiting--;
    if (s->only) {
        entry *e = s->only;
        s->only = NULL;
        return e;
    }
    while (!s->waiting[s->word]) s->word--;
    const int bit = 63 - __builtin_clzll(s->waiting[s->word]);
    s->waiting[s->word] &= ~(UINT64_C(1) << bit);
    return &s->nodes[64 * s->word + bit];
}

/* A sweep inside those that run on the tape; NULL with an error. */
static ng_sweep *begin_sweep(const char *function, ng_tape *tape)
{
    ng_sweep *outer = tape->sweep, **at = outer ? &outer->inner : &tape->sweeps, *s = *at;
    if (outer && outer->depth == DEEPEST) {
        ng_fail(NG_EGRAD,
                "%s: gradients inside gradients, more than %d deep: ng_recompute is nested as "
                "deeply, or a gradient rule differentiates its own op",
                function, DEEPEST);
        return NULL;
    }
    if (!s) s = *at = ng_calloc(function, 1, sizeof *s);
    if (!s) return NULL;
    s->leaf = s->spare = s->only = NULL;
    if (!grow_nodes(s, function, tape->ops) || !set_table(s, function, 16)) return NULL;
    if (++s->number == 0) memset(s->nodes, 0, (size_t)s->room * sizeof *s->nodes), s->number = 1;
    s->function = function;
    s->tape = tape;
    s->depth = outer ? outer->depth + 1 : 1;
    s->n_leaves = s->scratch_for = 0;
    s->oldest = s->n_waiting = s->word = 0;
    s->record = s->to_leaves = false;
    s->status = NG_OK;
    tape->sweep = s;
    return s;
}

static void end_sweep(ng_sweep *s, ng_sweep *outer)
{
    while (take_turn(s)) continue; /* those that a failure has left */
    s->tape->sweep = outer;
}

/* ---- Where gradients are put -------------------------------------------------------------- */

static size_t sweep_bytes(const ng_tensor *x) { return (size_t)x->size * ng_dtype_bytes(x->dtype); }

static void sweep_add(const ng_tensor *dx, void *sum)
{
    ng_kernels_for(dx->dtype)->add_to(dx->data, sum, dx->size);
}

static bool goes_to_leaf(const ng_sweep *s, const ng_tensor *x) { return s->to_leaves && !x->node; }

/* Memory for a gradient of x: that of an earlier node if a recent one has the size. */
static ng_tensor *new_memory(ng_sweep *s, const ng_tensor *x)
{
    enum { RECENT = 8 };
    entry **at = &s->spare;
    for (int i = 0; *at && i < RECENT; i++, at = &(*at)->next) {
        ng_tensor *found = (*at)->grad;
        if (found->size != x->size || found->dtype != x->dtype) continue;
        *at = (*at)->next;
        found->shape = x->shape;
        return found;
    }
    return ng_result_like(s->tape, x);
}

/* Memory for the gradient of an entry. That of a leaf is the leaf's own gradient, unless it is
 * NG_GRAD_NEW, was shown, or an outer pass may write to it: then it is separate memory, which
 * finish_leaves adds to it after a success. */
static ng_tensor *first_memory(ng_sweep *s, const entry *e)
{
    ng_tensor *x = e->x;
    if (!goes_to_leaf(s, x)) return new_memory(s, x);
    if (!ng_tensor_grad_slot(x)) return NULL;
    const ng_leaf *leaf = x->leaf;
    const bool apart = leaf->grad_state == NG_GRAD_NEW || leaf->shown || s->depth > 1;
    return apart ? new_memory(s, x) : leaf->grad;
}

/* Gives an entry memory of its own. A gradient that belongs to another tensor is copied. */
static bool reserve(ng_sweep *s, entry *e)
{
    if (e->owned) return true;
    ng_tensor *memory = first_memory(s, e);
    if (!memory) return false;
    if (e->grad) memcpy(memory->data, e->grad->data, sweep_bytes(e->x));
    e->empty = !e->grad;
    e->grad = memory;
    e->owned = true;
    return true;
}

/* The gradient of an entry so far. NULL: none, or zero if it is reached. */
static ng_tensor *arrived(const entry *e) { return e->empty ? NULL : e->grad; }

/* Opens the gradient of an entry for a kernel, which writes it or adds to it. */
static bool open_slot(ng_sweep *s, entry *e, ng_slot *slot)
{
    if (!reserve(s, e)) return false;
    slot->data = e->grad->data;
    slot->accumulate = !e->empty;
    e->empty = false;
    reach(s, e);
    return true;
}

/* Adds the tensor dx to the gradient of an entry. The first one for an intermediate is used without
 * a copy. */
static bool deliver(ng_sweep *s, entry *e, ng_tensor *dx)
{
    if (!e->grad && !goes_to_leaf(s, e->x)) {
        e->grad = dx;
        reach(s, e);
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
        memcpy(slot.data, dx->data, sweep_bytes(dx));
    return true;
}

/* ---- One node ------------------------------------------------------------------------------ */

/* What a node needs of its inputs while it runs. */
typedef struct {
    entry **to; /* the entries of those whose gradient is wanted, or NULL */
    union {
        ng_slot *slots;
        ng_tensor **dx;
    };
} inputs_scratch;

/* Finds the entries; *any is whether a gradient is wanted. That of an input which was frozen at
 * recording is not, since ops that used it then may not be on the tape. */
static bool take_inputs(ng_sweep *s, const ng_node *node, inputs_scratch *in, bool *any)
{
    const int n = node->n_inputs;
    if (n > s->scratch_for) {
        s->scratch = ng_tape_memory(s->tape, (size_t)n * (sizeof *in->slots + sizeof *in->to));
        s->scratch_for = s->scratch ? n : 0;
        if (!s->scratch) return false;
    }
    *in = (inputs_scratch){.to = (entry **)((ng_slot *)s->scratch + n), .slots = s->scratch};
    *any = false;
    for (int i = 0; i < n; i++) {
        ng_tensor *x = node->inputs[i];
        in->to[i] = NULL;
        if (!ng_node_required(node, i) || (s->to_leaves && !x->requires_grad)) continue;
        entry *e = s->to_leaves ? enter(s, x) : find(s, x);
        if (!e && s->to_leaves) return false;
        if (!e || !(s->to_leaves || e->wanted)) continue;
        in->to[i] = e;
        *any = true;
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
            memset(slots[i].data, 0, sweep_bytes(node->inputs[i]));
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
        if (!in.to[i]) continue;
        if (appears_before(node, i)) {
            in.slots[i].data = ng_tape_memory(s->tape, sweep_bytes(node->inputs[i]));
            if (!in.slots[i].data) return false;
        } else if (!open_slot(s, in.to[i], &in.slots[i])) {
            return false;
        }
    }
    if (dy->size == 0 && !node->op->joint)
        clear_slots(node, in.slots);
    else if (!call_kernel(s, node, dy, in.slots))
        return false;
    for (int i = 0; i < node->n_inputs; i++) {
        const ng_tensor *x = node->inputs[i];
        if (!in.slots[i].data || !appears_before(node, i)) continue;
        ng_kernels_for(x->dtype)->add_to(in.slots[i].data, in.to[i]->grad->data, x->size);
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
    if (copy) memcpy(copy->data, dx->data, sweep_bytes(dx));
    return copy;
}

/* Adds what a rule gave for input i to its gradient. */
static bool deliver_ruled(ng_sweep *s, const ng_node *node, int i, entry *to, ng_tensor *dx)
{
    if (ng_is_none(dx)) {
        reach(s, to);
        return true;
    }
    const char *why = node->op->built_in ? NULL : ng_why_unusable(s->tape, dx);
    if (why)
        ng_fail(NG_ESTATE, "%s: what the gradient rule of %s gave for operand %d %s", s->function,
                node->op->name, i + 1, why);
    if (why || !fits(s, node->op, "gradient rule", dx, node->inputs[i])) return false;
    dx = on_tape(s, dx);
    return dx && deliver(s, to, dx);
}

/* Runs the op's gradient rule and adds its results to the inputs' gradients. The rule's ops are
 * recorded if the sweep records. A rule that leaves a failure on record has failed. */
static bool run_rule(ng_sweep *s, const ng_node *node, ng_tensor *dy, inputs_scratch in)
{
    const bool own = node->op->built_in;
    const int64_t before = own ? 0 : ng_failures_ever();
    for (int i = 0; i < node->n_inputs; i++) in.dx[i] = in.to[i] ? NULL : NG_NONE;
    node->op->gradient(s->tape, node, dy, in.dx);
    s->tape->function = s->function;
    s->tape->recording = s->record;
    if (!own && ng_failures_ever() > before && ng_failed()) return false;
    for (int i = 0; i < node->n_inputs; i++) {
        if (!in.to[i]) continue;
        if (!in.dx[i])
            ng_fail_unrecorded(before, NG_EGRAD,
                               "%s: the gradient rule of %s gave no gradient of operand %d",
                               s->function, node->op->name, i + 1);
        if (!in.dx[i] || !deliver_ruled(s, node, i, in.to[i], in.dx[i])) return false;
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

static bool walk(ng_sweep *s, ng_tensor *const *outputs, int n_outputs,
                 ng_tensor *const *cotangents);

/* Sweeps over a definition, from y with cotangent dy back to the node's inputs, and adds to their
 * gradients where these stand. */
static bool sweep_definition(ng_sweep *s, const ng_node *node, ng_tensor *y, ng_tensor *dy,
                             entry *const *to, int64_t oldest)
{
    ng_sweep *inner = begin_sweep(s->function, s->tape);
    if (!inner) return false;
    inner->record = s->record;
    inner->oldest = oldest;
    bool well = true;
    for (int i = 0; i < node->n_inputs && well; i++) {
        entry *e = to[i] ? enter(inner, to[i]->x) : NULL;
        well = e || !to[i];
        if (!e) continue;
        e->asked = e->wanted = true;
        e->grad = to[i]->grad;
        e->reached = to[i]->reached;
        e->owned = to[i]->owned;
        e->empty = to[i]->empty;
    }
    well = well && walk(inner, &y, 1, &dy);
    for (int i = 0; i < node->n_inputs; i++) {
        const entry *e = to[i] ? find(inner, to[i]->x) : NULL;
        if (!e) continue;
        if (e->reached) reach(s, to[i]);
        to[i]->grad = e->grad;
        to[i]->empty = e->empty;
    }
    end_sweep(inner, s);
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
    if (!copy_with_constants(tape, node, &copy)) return false;
    for (int i = 0; i < node->n_inputs && !s->record; i++)
        if (in.to[i] && !reserve(s, in.to[i])) return false;
    if (!s->record && !ng_tape_enter(tape, &scope)) return false;
    const bool was = ng_tape_set_recording(tape, true);
    const int64_t before = ng_failures_ever();
    ng_tensor *y = node->op->definition(tape, &copy);
    ng_tape_set_recording(tape, was);
    tape->function = s->function;
    if (!y)
        ng_fail_unrecorded(before, NG_EGRAD, "%s: the definition of %s returned NULL", s->function,
                           node->op->name);
    const bool well = y && fits(s, node->op, "definition", y, node->output) &&
                      sweep_definition(s, node, y, dy, in.to, oldest);
    if (!s->record) ng_tape_leave(tape, &scope);
    return well;
}

/* Visits the node of an entry, which is reached. A gradient of zero is handed on without running the
 * op. Once a kernel has used a gradient, its memory is free. */
static bool run_node(ng_sweep *s, entry *e)
{
    ng_tensor *dy = arrived(e);
    const ng_node *node = e->x->node;
    const ng_op *op = node->op;
    inputs_scratch in;
    bool any, well = false;
    if (!take_inputs(s, node, &in, &any)) return false;
    if (!any) return true;
    s->tape->function = s->function;
    if (!dy) {
        well = true;
        for (int i = 0; i < node->n_inputs; i++)
            if (in.to[i]) reach(s, in.to[i]);
    } else if (!ng_node_is_current(node)) {
        ng_fail(NG_ESTATE, "%s: an operand of %s was changed after the op was recorded",
                s->function, op->name);
    } else if (op->backward && !s->record) {
        well = run_kernel(s, node, dy, in);
        if (e->owned && !e->asked) e->next = s->spare, s->spare = e;
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

/* Marks what leads from an output to what was asked for. Goes on to an input that was not visited
 * yet, and returns to the node when it is done with that: the path is linked by `next`. */
static bool mark(ng_sweep *s, ng_tensor *output)
{
    entry *e = enter(s, output), *below;
    while (e && e->x->node) {
        const ng_node *node = e->x->node;
        e->visited = true;
        if (node->index < s->oldest || e->input == node->n_inputs) {
            below = e;
            e = e->next;
            below->next = NULL;
            if (!e) return true;
        } else {
            ng_tensor *x = node->inputs[e->input];
            const bool required = ng_node_required(node, e->input++);
            const bool is_inside = x->node && x->node->index >= s->oldest;
            below = !required ? NULL : is_inside ? enter(s, x) : find(s, x);
            if (below && is_inside && !below->visited) {
                below->next = e;
                e = below;
                continue;
            }
        }
        if (below && below->wanted) e->wanted = true;
    }
    return e;
}

/* From the outputs to what they depend on. Without cotangents these are ones. */
static bool walk(ng_sweep *s, ng_tensor *const *outputs, int n_outputs,
                 ng_tensor *const *cotangents)
{
    for (int i = 0; i < n_outputs && !s->to_leaves; i++)
        if (!mark(s, outputs[i])) return false;
    for (int i = 0; i < n_outputs; i++) {
        ng_tensor *y = outputs[i];
        entry *e = enter(s, y);
        if (!e) return false;
        if (!s->to_leaves && !e->wanted) continue;
        const bool given = cotangents && !ng_is_none(cotangents[i]);
        ng_tensor *dy =
            given ? on_tape(s, cotangents[i]) : ng_result_full(s->tape, y->dtype, y->shape, 1.0);
        if (!dy || !deliver(s, e, dy)) return false;
    }
    for (entry *e; (e = take_turn(s));)
        if (!run_node(s, e)) return false;
    return true;
}

/* Gives leaves that only a gradient of zero has reached a gradient. */
static bool fill_with_zeros(ng_sweep *s)
{
    for (entry *e = s->leaf; e; e = e->next) {
        ng_slot slot;
        if (!e->reached || arrived(e)) continue;
        if (!open_slot(s, e, &slot)) return false;
        memset(slot.data, 0, sweep_bytes(e->x));
    }
    return true;
}

/* The whole sweep. The tape is live meanwhile. */
static bool run_sweep(ng_sweep *s, ng_tensor *const *outputs, int n_outputs,
                      ng_tensor *const *cotangents)
{
    ng_tape *tape = s->tape;
    const ng_tape_mode mode = tape->replay.mode;
    const bool was = ng_tape_set_recording(tape, s->record);
    tape->replay.mode = NG_TAPE_LIVE;
    for (ng_listener *l = tape->listeners; l; l = l->next)
        if (l->swept) l->swept(l);
    const bool well =
        walk(s, outputs, n_outputs, cotangents) && (!s->to_leaves || fill_with_zeros(s));
    s->status = well ? NG_OK : ng_newest_status();
    tape->replay.mode = mode;
    tape->recording = was;
    return well;
}

/* ---- ng_backward ---------------------------------------------------------------------------- */

static bool cotangent_ok(const char *function, const ng_tape *tape, const ng_tensor *y,
                         const ng_tensor *dy)
{
    return ng_usable(function, "the cotangent", 0, tape, dy) &&
           ng_has_type(function, "the cotangent", dy, y->dtype, y->shape);
}

/* Whether an outer pass has written to the leaf's own gradient: it goes on, and this one adds. */
static bool is_begun(const ng_sweep *s, const ng_tensor *x)
{
    for (const ng_sweep *outer = s->tape->sweeps; outer != s; outer = outer->inner) {
        const entry *e = outer->to_leaves ? find(outer, x) : NULL;
        if (e && arrived(e) == x->leaf->grad) return true;
    }
    return false;
}

/* Ends a pass: adds gradients that were computed in separate memory. After a failure it drops them
 * all, and the used gradients that were overwritten. */
static void finish_leaves(ng_sweep *s, bool well)
{
    for (const entry *e = s->leaf; e; e = e->next) {
        ng_tensor *x = e->x;
        const ng_tensor *dx = arrived(e);
        ng_leaf *leaf = x->leaf;
        if (!dx) continue;
        if (well && dx != leaf->grad && (leaf->grad_state == NG_GRAD_NEW || is_begun(s, x)))
            sweep_add(dx, leaf->grad->data);
        else if (well && dx != leaf->grad)
            memcpy(leaf->grad->data, dx->data, sweep_bytes(dx));
        if (well)
            ng_tensor_grad_arrived(x);
        else if (dx == leaf->grad)
            leaf->grad_state = NG_GRAD_NONE;
    }
}

static bool has_reached_leaf(const ng_sweep *s)
{
    for (const entry *e = s->leaf; e; e = e->next)
        if (e->reached) return true;
    return false;
}

const char *ng_why_no_gradient(const ng_tape *tape)
{
    if (!tape->recording && tape->sweep)
        return "recording is off inside a gradient rule, unless the gradient is recorded "
               "(ng_tape_set_recording)";
    if (!tape->recording) return "recording is off (ng_tape_set_recording)";
    if (tape->unrecorded_gradients > 0) return "a gradient on this tape was taken without .record";
    return "all that it depends on is frozen or constant (ng_unfreeze, ng_require_grad)";
}

static ng_status backward(const char *function, ng_tape *tape, ng_tensor *y, ng_tensor *dy)
{
    if (tape->passes || tape->replay.again)
        return ng_fail(NG_ESTATE,
                       "%s: called inside ng_recompute, which would add the gradients twice: "
                       "ng_gradients adds none",
                       function);
    if (!y->requires_grad)
        return ng_fail(NG_EGRAD, "%s: the output depends on nothing that requires a gradient: %s",
                       function, ng_why_no_gradient(tape));
    ng_sweep *outer = tape->sweep, *s = begin_sweep(function, tape);
    if (!s) return ng_newest_status();
    s->to_leaves = true;
    const bool well = run_sweep(s, &y, 1, &dy), reached = has_reached_leaf(s);
    finish_leaves(s, well);
    end_sweep(s, outer);
    if (well && !reached)
        return ng_fail(NG_EGRAD,
                       "%s: every parameter that it depends on is frozen now (ng_unfreeze)",
                       function);
    return s->status;
}

ng_status ng_backward_from(ng_tape *tape, ng_tensor *y, ng_tensor *dy)
{
    const char *function = "ng_backward_from";
    if (!ng_given(function, "tape", tape) || !ng_given(function, "y", y) ||
        !ng_given(function, "dy", dy))
        return ng_newest_status();
    if (!ng_usable(function, "the output", 0, tape, y) || !cotangent_ok(function, tape, y, dy))
        return ng_newest_status();
    return backward(function, tape, y, dy);
}

ng_status ng_backward(ng_tape *tape, ng_tensor *loss)
{
    static const char function[] = "ng_backward";
    if (!ng_given(function, "tape", tape) || !ng_given(function, "loss", loss))
        return ng_newest_status();
    if (!ng_usable(function, "the output", 0, tape, loss)) return ng_newest_status();
    if (loss->size != 1)
        return ng_fail(NG_ESHAPE,
                       "%s: the loss has shape %s, expected one element "
                       "(ng_backward_from takes a cotangent)",
                       function, ng_shape_print(loss->shape).text);
    tape->function = function;
    ng_tensor *one = ng_result_full(tape, loss->dtype, loss->shape, 1);
    return one ? backward(function, tape, loss, one) : ng_newest_status();
}

/* ---- ng_gradients ---------------------------------------------------------------------------- */

static bool gradients_ok(const char *function, const ng_tape *tape, ng_tensor *const *outputs,
                         int n_outputs, ng_tensor *const *inputs, int n_inputs,
                         ng_tensor *const *cotangents)
{
    for (int i = 0; i < n_outputs; i++) {
        if (!ng_usable(function, "the output", 0, tape, outputs[i])) return false;
        if (cotangents && !ng_is_none(cotangents[i]) &&
            !cotangent_ok(function, tape, outputs[i], cotangents[i]))
            return false;
    }
    for (int i = 0; i < n_inputs; i++) {
        if (!ng_usable(function, "input", i + 1, tape, inputs[i])) return false;
        if (inputs[i]->requires_grad) continue;
        ng_fail(NG_EGRAD, "%s: input %d does not require a gradient", function, i + 1);
        return false;
    }
    return true;
}

/* Nothing older than all of the inputs is visited. */
static bool ask_for(ng_sweep *s, ng_tensor *const *inputs, int n_inputs)
{
    s->oldest = INT64_MAX;
    for (int i = 0; i < n_inputs; i++) {
        entry *e = enter(s, inputs[i]);
        if (!e) return false;
        e->asked = e->wanted = true;
        const int64_t index = inputs[i]->node ? inputs[i]->node->index : 0;
        if (index < s->oldest) s->oldest = index;
    }
    return true;
}

/* Why the outputs may not depend on an input, or NULL. */
static const char *why_no_path(const ng_tape *tape, ng_tensor *const *outputs, int n_outputs)
{
    bool any = false;
    for (int i = 0; i < n_outputs; i++) any = any || outputs[i]->requires_grad;
    return !any || tape->unrecorded_gradients > 0 ? ng_why_no_gradient(tape) : NULL;
}

ng_status ng_gradients_with(ng_tape *tape, ng_tensor *const *outputs, int n_outputs,
                            ng_tensor *const *inputs, int n_inputs, ng_gradients_options options)
{
    return ng_gradients_for("ng_gradients", tape, outputs, n_outputs, inputs, n_inputs, options);
}

ng_status ng_gradients_for(const char *function, ng_tape *tape, ng_tensor *const *outputs,
                           int n_outputs, ng_tensor *const *inputs, int n_inputs,
                           ng_gradients_options options)
{
    if (!ng_given(function, "tape", tape) || !ng_given(function, "gradients", options.gradients))
        return ng_newest_status();
    if (n_outputs < 1 || n_inputs < 1)
        return ng_fail(NG_EVALUE, "%s: %d outputs and %d inputs, expected at least one of each",
                       function, n_outputs, n_inputs);
    if (!ng_list_given(function, "output", outputs, n_outputs) ||
        !ng_list_given(function, "input", inputs, n_inputs) ||
        (options.cotangents &&
         !ng_list_given(function, "cotangent", options.cotangents, n_outputs)))
        return ng_newest_status();
    tape->function = function;
    if (!gradients_ok(function, tape, outputs, n_outputs, inputs, n_inputs, options.cotangents))
        return ng_newest_status();

    ng_tensor **found = ng_tape_memory(tape, (size_t)n_inputs * sizeof *found);
    if (!found) return NG_ENOMEM;
    ng_sweep *outer = tape->sweep, *s = begin_sweep(function, tape);
    if (!s) return ng_newest_status();
    s->record = options.record;
    const char *why = why_no_path(tape, outputs, n_outputs);
    tape->unrecorded_gradients += !options.record;
    bool well =
        ask_for(s, inputs, n_inputs) && run_sweep(s, outputs, n_outputs, options.cotangents);
    for (int i = 0; i < n_inputs && well; i++) {
        const entry *e = find(s, inputs[i]);
        found[i] = arrived(e);
        if (!e->reached && !options.allow_unused)
            ng_fail(NG_EGRAD, "%s: no output depends on input %d%s%s", function, i + 1,
                    why ? ": " : "", why ? why : "");
        else if (!found[i])
            found[i] = ng_result_full(tape, e->x->dtype, e->x->shape, 0.0);
        well = found[i];
    }
    end_sweep(s, outer);
    if (!well) return ng_newest_status();
    memcpy(options.gradients, found, (size_t)n_inputs * sizeof *found);
    return NG_OK;
}

ng_tensor *ng_gradient_with(ng_tape *tape, ng_tensor *y, ng_gradient_options options)
{
    ng_tensor *gradient = NULL;
    ng_gradients_with(
        tape, &y, 1, &options.x, 1,
        (ng_gradients_options){.gradients = &gradient,
                               .cotangents = options.cotangent ? &options.cotangent : NULL,
                               .record = options.record,
                               .allow_unused = options.allow_unused});
    return gradient;
}
