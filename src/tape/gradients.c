/* ng_backward and ng_gradients: what they accept, and where the gradients of a sweep go. */
#include "core/error.h"
#include "kernels/kernels.h"
#include "tape/sweep.h"
#include <string.h>

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
        const ng_swept *e = outer->to_leaves ? ng_sweep_find(outer, x) : NULL;
        if (e && ng_swept_gradient(e) == x->leaf->grad) return true;
    }
    return false;
}

/* Ends a pass: adds gradients that were computed in separate memory. After a failure it drops them
 * all, and the used gradients that were overwritten. */
static void finish_leaves(ng_sweep *s, bool well)
{
    for (const ng_swept *e = s->leaf; e; e = e->next) {
        ng_tensor *x = e->x;
        const ng_tensor *dx = ng_swept_gradient(e);
        ng_leaf *leaf = x->leaf;
        if (!dx) continue;
        if (well && dx != leaf->grad && (ng_grad_is_new(leaf) || is_begun(s, x)))
            ng_kernels_for(dx->dtype)->add_to(dx->data, leaf->grad->data, dx->size);
        else if (well && dx != leaf->grad)
            memcpy(leaf->grad->data, dx->data, ng_bytes_of(dx));
        if (well)
            ng_tensor_grad_arrived(x);
        else if (dx == leaf->grad)
            leaf->has_grad = false;
    }
}

static bool has_reached_leaf(const ng_sweep *s)
{
    for (const ng_swept *e = s->leaf; e; e = e->next)
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
    ng_sweep *outer = tape->sweep, *s = ng_sweep_begin(function, tape);
    if (!s) return ng_newest_status();
    s->to_leaves = true;
    const bool well = ng_sweep_run(s, &y, 1, &dy), reached = has_reached_leaf(s);
    finish_leaves(s, well);
    tape->sweep = outer;
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
    s->search = s->searches = 1;
    for (int i = 0; i < n_inputs; i++) {
        ng_swept *e = ng_sweep_enter(s, inputs[i]);
        if (!e) return false;
        e->asked = true;
        e->wanted = s->search;
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
    ng_sweep *outer = tape->sweep, *s = ng_sweep_begin(function, tape);
    if (!s) return ng_newest_status();
    s->record = options.record;
    const char *why = why_no_path(tape, outputs, n_outputs);
    tape->unrecorded_gradients += !options.record;
    bool well =
        ask_for(s, inputs, n_inputs) && ng_sweep_run(s, outputs, n_outputs, options.cotangents);
    for (int i = 0; i < n_inputs && well; i++) {
        const ng_swept *e = ng_sweep_find(s, inputs[i]);
        found[i] = ng_swept_gradient(e);
        if (!e->reached && !options.allow_unused)
            ng_fail(NG_EGRAD, "%s: no output depends on input %d%s%s", function, i + 1,
                    why ? ": " : "", why ? why : "");
        else if (!found[i])
            found[i] = ng_result_full(tape, e->x->dtype, e->x->shape, 0.0);
        well = found[i];
    }
    tape->sweep = outer;
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
