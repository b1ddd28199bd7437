/* The reverse sweep: from the newest node to the oldest, each op turns the cotangent of its output
 * into gradients of its inputs (run_node, walk). The rest of this file decides where a gradient is
 * written. */
#include "core/error.h"
#include "kernels/kernels.h"
#include "tape/tape.h"
#include <normgrad/ops.h>
#include <string.h>

typedef struct {
    const char *function; /* the public name, for messages */
    ng_tape *tape;
    ng_tensor *spare; /* cotangents that are done with, linked by `cotangent` */
    void *room;       /* for the gradients of one node's inputs */
    int room_for;     /* so many inputs */
    bool record;      /* gradients are recorded ops themselves */

    /* ng_backward: gradients go into the leaves that require one. */
    bool to_leaves;
    ng_tensor *reached; /* the leaves so far, linked by next_reached */
    bool zero_gradient; /* a gradient of zero has ended a path */
} sweep;

static bool wants(const sweep *s, const ng_tensor *x)
{
    return s->to_leaves ? x->requires_grad : x->wanted != NG_UNWANTED;
}

/* Whether the gradient of the node's i-th input is wanted: not if it was frozen at recording, since
 * ops that used it then may not be on the tape. */
static bool leads_to(const sweep *s, const ng_node *node, int i)
{
    return wants(s, node->inputs[i]) && ng_node_required(node, i);
}

static size_t sweep_bytes(const ng_tensor *x) { return (size_t)x->size * ng_dtype_bytes(x->dtype); }

static void sweep_add(const ng_tensor *dx, void *sum)
{
    ng_kernels_for(dx->dtype)->add_to(dx->data, sum, dx->size);
}

static void clear_cotangent(ng_tensor *x)
{
    x->cotangent = NULL;
    x->cotangent_owned = false;
}

/* ---- Where gradients are put -------------------------------------------------------------- */

static bool goes_to_leaf(const sweep *s, const ng_tensor *x) { return s->to_leaves && !x->node; }

/* Memory for a gradient of x: that of an earlier node if a recent one has the size. */
static ng_tensor *new_cotangent(sweep *s, const ng_tensor *x)
{
    enum { RECENT = 8 };
    ng_tensor **at = &s->spare;
    for (int i = 0; *at && i < RECENT; i++, at = &(*at)->cotangent) {
        ng_tensor *found = *at;
        if (found->size != x->size || found->dtype != x->dtype) continue;
        *at = found->cotangent;
        found->cotangent = NULL;
        found->shape = x->shape;
        return found;
    }
    return ng_result_like(s->tape, x);
}

/* Memory for the first gradient that arrives at a tensor. For a leaf it is the leaf's own gradient,
 * unless that is NG_GRAD_NEW: then it is separate memory, which finish_leaves adds to it after a
 * success. */
static ng_tensor *first_cotangent(sweep *s, ng_tensor *x)
{
    if (!goes_to_leaf(s, x)) return new_cotangent(s, x);
    ng_leaf *leaf = x->leaf;
    leaf->next_reached = s->reached;
    s->reached = x;
    ng_tensor *grad = ng_tensor_grad_slot(x);
    return grad && leaf->grad_state == NG_GRAD_NEW ? new_cotangent(s, x) : grad;
}

/* Opens the gradient of x for a kernel, which writes it or adds to it. A gradient that belongs to
 * another tensor is copied. */
static bool open_slot(sweep *s, ng_tensor *x, ng_slot *slot)
{
    const ng_tensor *before = x->cotangent;
    *slot = (ng_slot){.accumulate = before != NULL};
    if (!x->cotangent_owned) {
        ng_tensor *own = before ? new_cotangent(s, x) : first_cotangent(s, x);
        if (!own) return false;
        if (before) memcpy(own->data, before->data, sweep_bytes(x));
        x->cotangent = own;
        x->cotangent_owned = true;
    }
    slot->data = x->cotangent->data;
    return true;
}

/* Adds the tensor dx to the gradient of x. The first one for an intermediate is used without a
 * copy. */
static bool deliver(sweep *s, ng_tensor *x, ng_tensor *dx)
{
    if (!x->cotangent && !goes_to_leaf(s, x)) {
        x->cotangent = dx;
        return true;
    }
    if (s->record) {
        x->cotangent = ng_add(s->tape, x->cotangent, dx);
        return x->cotangent != NULL;
    }
    ng_slot slot;
    if (!open_slot(s, x, &slot)) return false;
    if (slot.accumulate)
        sweep_add(dx, slot.data);
    else
        memcpy(slot.data, dx->data, sweep_bytes(x));
    return true;
}

/* ---- One node ------------------------------------------------------------------------------ */

/* Memory for the gradients of the node's inputs, until the next node. */
static void *room_for(sweep *s, const ng_node *node)
{
    if (node->n_inputs > s->room_for) {
        s->room = ng_tape_memory(s->tape, (size_t)node->n_inputs * sizeof(ng_slot));
        s->room_for = s->room ? node->n_inputs : 0;
    }
    return s->room;
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

/* Runs the op's backward kernel on the gradients of its inputs. If a tensor is an input twice, its
 * second gradient is computed in separate memory and added. */
static bool run_kernel(sweep *s, const ng_node *node, ng_tensor *dy)
{
    ng_slot *slots = room_for(s, node);
    if (!slots) return false;
    for (int i = 0; i < node->n_inputs; i++) {
        ng_tensor *x = node->inputs[i];
        slots[i] = (ng_slot){0};
        if (!leads_to(s, node, i)) continue;
        if (appears_before(node, i)) {
            slots[i].data = ng_tape_memory(s->tape, sweep_bytes(x));
            if (!slots[i].data) return false;
        } else if (!open_slot(s, x, &slots[i])) {
            return false;
        }
    }
    if (dy->size == 0 && !node->op->joint)
        clear_slots(node, slots);
    else if (node->op->backward(s->tape, node, dy, slots) != NG_OK)
        return false;
    for (int i = 0; i < node->n_inputs; i++) {
        ng_tensor *x = node->inputs[i];
        if (!slots[i].data || !appears_before(node, i)) continue;
        ng_kernels_for(x->dtype)->add_to(slots[i].data, x->cotangent->data, x->size);
    }
    const ng_tensor *y = node->output;
    if (y->cotangent_owned && y->wanted != NG_ASKED_FOR) {
        dy->cotangent = s->spare;
        s->spare = dy;
    }
    return true;
}

static bool gradient_fits(const sweep *s, const ng_op *op, const ng_tensor *dx, const ng_tensor *x)
{
    if (dx->dtype == x->dtype && ng_same_shape(dx, x)) return true;
    ng_fail(NG_EGRAD, "%s: the gradient rule of %s gave %s %s, expected %s %s", s->function,
            op->name, ng_dtype_name(dx->dtype), ng_shape_print(dx->shape).text,
            ng_dtype_name(x->dtype), ng_shape_print(x->shape).text);
    return false;
}

/* Runs the op's gradient rule and adds its results to the inputs' gradients. The rule's ops are
 * recorded if the sweep records. */
static bool run_rule(sweep *s, const ng_node *node, ng_tensor *dy)
{
    const int64_t failures = ng_failures();
    ng_tensor **dx = room_for(s, node);
    if (!dx) return false;
    for (int i = 0; i < node->n_inputs; i++) dx[i] = leads_to(s, node, i) ? NULL : NG_NONE;
    node->op->gradient(s->tape, node, dy, dx);
    s->tape->function = s->function;
    for (int i = 0; i < node->n_inputs; i++) {
        ng_tensor *x = node->inputs[i];
        if (!leads_to(s, node, i)) continue;
        if (!dx[i] && ng_failures() == failures)
            ng_fail(NG_EGRAD, "%s: the gradient rule of %s gave no gradient of operand %d",
                    s->function, node->op->name, i + 1);
        if (!dx[i]) return false;
        if (ng_is_none(dx[i]))
            s->zero_gradient = true;
        else if (!gradient_fits(s, node->op, dx[i], x) || !deliver(s, x, dx[i]))
            return false;
    }
    return true;
}

/* Marks the outputs of nodes that lead on to a marked input. The walk removes these marks. */
static void mark(const ng_node *oldest, const ng_node *newest)
{
    for (const ng_node *node = oldest; node && node->previous != newest; node = node->next)
        for (int i = 0; i < node->n_inputs && node->output->wanted == NG_UNWANTED; i++)
            if (node->inputs[i]->wanted != NG_UNWANTED && ng_node_required(node, i))
                node->output->wanted = NG_ON_THE_WAY;
}

static bool walk(sweep *s, const ng_node *newest, const ng_node *boundary);

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

/* Differentiates a fused op by its definition: records it at the end of the tape and sweeps back to
 * where it began. Its gradients arrive at the node's inputs. */
static bool differentiate_definition(sweep *s, const ng_node *node, ng_tensor *dy)
{
    ng_node copy;
    if (!copy_with_constants(s->tape, node, &copy)) return false;
    const ng_node *boundary = s->tape->last;
    const bool was = ng_tape_set_recording(s->tape, true);
    ng_tensor *y = node->op->definition(s->tape, &copy);
    ng_tape_set_recording(s->tape, was);
    if (!y || !gradient_fits(s, node->op, dy, y)) return false;
    const ng_node *newest = s->tape->last;
    if (!s->to_leaves) mark(boundary->next, newest);
    if (!wants(s, y)) s->zero_gradient = true;
    const bool well = !wants(s, y) || deliver(s, y, dy);
    return walk(s, newest, boundary) && well;
}

/* Whether the gradient of any input is wanted. */
static bool leads_on(const sweep *s, const ng_node *node)
{
    for (int i = 0; i < node->n_inputs; i++)
        if (leads_to(s, node, i)) return true;
    return false;
}

static bool run_node(sweep *s, const ng_node *node, ng_tensor *dy)
{
    const ng_op *op = node->op;
    s->tape->function = s->function;
    if (!ng_node_is_current(node))
        ng_fail(NG_ESTATE, "%s: an operand of %s was changed after the op was recorded",
                s->function, op->name);
    else if (op->backward && !s->record)
        return run_kernel(s, node, dy);
    else if (op->gradient)
        return run_rule(s, node, dy);
    else if (op->definition)
        return differentiate_definition(s, node, dy);
    else
        ng_fail(NG_EGRAD, "%s: %s has no gradient%s", s->function, op->name,
                op->backward ? " that can be recorded" : "");
    return false;
}

/* Walks from `newest` back to `boundary`, which is not included. Cotangents and marks of tensors
 * computed outside this range stay, and the cotangents that were asked for; the others are cleared,
 * also after a failure. */
static bool walk(sweep *s, const ng_node *newest, const ng_node *boundary)
{
    bool well = true;
    for (const ng_node *node = newest; node != boundary; node = node->previous) {
        ng_tensor *y = node->output;
        if (y->cotangent && well && leads_on(s, node)) well = run_node(s, node, y->cotangent);
        if (y->wanted != NG_ASKED_FOR) {
            y->wanted = NG_UNWANTED;
            clear_cotangent(y);
        }
    }
    return well;
}

/* The cotangent dy of an output. A gradient of ng_gradients may be dy itself. So there it is a copy
 * if its memory is not the tape's, but the caller's, who may change or free it. */
static ng_tensor *own_cotangent(const sweep *s, ng_tensor *dy)
{
    if (s->to_leaves || (dy->base ? dy->base : dy)->tape) return dy;
    if (s->record && dy->requires_grad) /* dy + -0 keeps all bits and has a gradient */
        return ng_add(s->tape, dy, ng_result_full(s->tape, dy->dtype, (ng_shape){0}, -0.0));
    ng_tensor *copy = ng_result_like(s->tape, dy);
    if (copy) memcpy(copy->data, dy->data, sweep_bytes(dy));
    return copy;
}

static const ng_node *newest_of(ng_tensor *const *outputs, int n_outputs)
{
    const ng_node *newest = NULL;
    for (int i = 0; i < n_outputs; i++) {
        const ng_node *node = outputs[i]->node;
        if (node && (!newest || node->index > newest->index)) newest = node;
    }
    return newest;
}

/* The whole sweep. The tape is live meanwhile. Without cotangents they are ones. */
static bool run_sweep(sweep *s, ng_tensor *const *outputs, int n_outputs,
                      ng_tensor *const *cotangents)
{
    ng_tape *tape = s->tape;
    const ng_node *newest = newest_of(outputs, n_outputs);
    const ng_tape_mode mode = tape->replay.mode;
    const bool was = ng_tape_set_recording(tape, s->record);
    tape->replay.mode = NG_TAPE_LIVE;
    tape->gradients++;
    if (!s->to_leaves) mark(tape->first, newest);
    bool well = true;
    for (int i = 0; i < n_outputs && well; i++) {
        ng_tensor *y = outputs[i];
        if (!wants(s, y)) continue;
        ng_tensor *dy = cotangents ? own_cotangent(s, cotangents[i])
                                   : ng_result_full(tape, y->dtype, y->shape, 1.0);
        well = dy && deliver(s, y, dy);
    }
    well = walk(s, newest, NULL) && well;
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

/* Ends a pass: adds gradients that were computed in separate memory. After a failure it drops them
 * all, and the used gradients that were overwritten. */
static void finish_leaves(sweep *s, bool well)
{
    for (ng_tensor *x = s->reached; x; x = x->leaf->next_reached) {
        const ng_tensor *dx = x->cotangent;
        clear_cotangent(x);
        if (well && dx != x->leaf->grad) sweep_add(dx, x->leaf->grad->data);
        if (well)
            ng_tensor_grad_arrived(x);
        else if (dx == x->leaf->grad)
            x->leaf->grad_state = NG_GRAD_NONE;
    }
}

const char *ng_why_no_gradient(const ng_tape *tape)
{
    if (!tape->recording) return "recording is off (ng_tape_set_recording)";
    if (tape->unrecorded_gradients > 0) return "a gradient on this tape was taken without .record";
    return "all that it depends on is frozen or constant (ng_unfreeze, ng_require_grad)";
}

static ng_status backward(const char *function, ng_tape *tape, ng_tensor *y, ng_tensor *dy)
{
    if (!y->requires_grad)
        return ng_fail(NG_EGRAD, "%s: the output depends on nothing that requires a gradient: %s",
                       function, ng_why_no_gradient(tape));
    sweep s = {.function = function, .tape = tape, .to_leaves = true};
    const bool well = run_sweep(&s, &y, 1, &dy);
    if (well && !s.reached && !s.zero_gradient)
        return ng_fail(NG_EGRAD,
                       "%s: every parameter that it depends on is frozen now (ng_unfreeze)",
                       function);
    finish_leaves(&s, well);
    return well ? NG_OK : ng_newest_status();
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
        if (cotangents && !cotangent_ok(function, tape, outputs[i], cotangents[i])) return false;
    }
    for (int i = 0; i < n_inputs; i++) {
        if (!ng_usable(function, "input", i + 1, tape, inputs[i])) return false;
        if (inputs[i]->requires_grad) continue;
        ng_fail(NG_EGRAD, "%s: input %d does not require a gradient", function, i + 1);
        return false;
    }
    return true;
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
    sweep s = {.function = function, .tape = tape, .record = options.record};
    const bool was_unrecorded = tape->unrecorded_gradients > 0;
    tape->unrecorded_gradients += !options.record;
    for (int i = 0; i < n_inputs; i++) inputs[i]->wanted = NG_ASKED_FOR;
    bool well = run_sweep(&s, outputs, n_outputs, options.cotangents);
    for (int i = 0; i < n_inputs; i++) found[i] = inputs[i]->cotangent;
    for (int i = 0; i < n_inputs; i++) {
        clear_cotangent(inputs[i]);
        inputs[i]->wanted = NG_UNWANTED;
    }
    for (int i = 0; i < n_inputs && well; i++) {
        if (!found[i] && !options.allow_unused)
            ng_fail(NG_EGRAD, "%s: no output depends on input %d%s", function, i + 1,
                    was_unrecorded ? ": a gradient on this tape was taken without .record" : "");
        else if (!found[i])
            found[i] = ng_result_full(tape, inputs[i]->dtype, inputs[i]->shape, 0.0);
        well = found[i];
    }
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
