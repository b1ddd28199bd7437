/* Recording: results, nodes, and the tensors that a tape owns. */
#include "tape/tape.h"
#include "core/error.h"
#include "kernels/kernels.h"
#include <stdalign.h>
#include <string.h>

/* The name for errors while no op runs. */
static const char between_ops[] = "ng_result";

ng_tape *ng_tape_new(void)
{
    ng_tape *tape = ng_calloc("ng_tape_new", 1, sizeof *tape);
    if (!tape) return NULL;
    tape->head.self = tape;
    tape->function = between_ops;
    tape->recording = true;
    ng_tape_seed(tape, 0);
    return tape;
}

static void tape_free_owned(ng_tape *tape)
{
    while (tape->owned) {
        ng_tensor *x = tape->owned;
        tape->owned = x->leaf->next_owned;
        ng_tensor_destroy(x);
    }
}

static void free_scratch(ng_tape *tape)
{
    while (tape->scratch) {
        ng_scratch *first = tape->scratch;
        tape->scratch = first->next;
        ng_arena_release(&first->arena);
        ng_free(first);
    }
}

void ng_tape_unlisten(ng_listener *listener)
{
    if (!listener->tape) return;
    ng_listener **link = &listener->tape->listeners;
    while (*link != listener) link = &(*link)->next;
    *link = listener->next;
    listener->tape = NULL;
}

void ng_tape_listen(ng_tape *tape, ng_listener *listener)
{
    ng_tape_unlisten(listener);
    listener->tape = tape;
    listener->next = tape->listeners;
    tape->listeners = listener;
}

static void tell_reset(const ng_tape *tape)
{
    for (ng_listener *l = tape->listeners, *next; l; l = next) {
        next = l->next;
        if (l->reset) l->reset(l);
    }
}

/* Whether nobody computes on the tape: no gradient rule, no definition, no recomputed pass. */
static bool is_idle(const char *function, const ng_tape *tape)
{
    if (!tape->sweep && tape->scopes == 0) return true;
    ng_fail(NG_ESTATE, "%s: called inside a gradient rule, a definition or a recomputed pass",
            function);
    return false;
}

void ng_tape_free(ng_tape *tape)
{
    if (!tape || !is_idle("ng_tape_free", tape)) return;
    tell_reset(tape);
    while (tape->listeners) ng_tape_unlisten(tape->listeners);
    ng_replay_free(&tape->replay);
    tape_free_owned(tape);
    ng_sweeps_free(tape->sweeps);
    free_scratch(tape);
    ng_arena_release(&tape->arena);
    ng_free(tape);
}

void ng_tape_reset(ng_tape *tape)
{
    if (!ng_given("ng_tape_reset", "tape", tape) || !is_idle("ng_tape_reset", tape)) return;
    tell_reset(tape);
    ng_arena_reset(&tape->arena);
    tape_free_owned(tape);
    tape->function = between_ops;
    tape->first = tape->last = NULL;
    tape->ops = 0;
    tape->unrecorded_gradients = 0;
    tape->head.epoch++;
    ng_replay_restart(tape);
}

void ng_tape_seed(ng_tape *tape, uint64_t seed)
{
    if (ng_given("ng_tape_seed", "tape", tape)) tape->rng = tape->seeded = ng_rng_seeded(seed);
}

bool ng_tape_set_recording(ng_tape *tape, bool on)
{
    if (!ng_given("ng_tape_set_recording", "tape", tape)) return false;
    const bool was = tape->recording;
    tape->recording = on;
    return was;
}

bool ng_tape_recording(const ng_tape *tape)
{
    return ng_given("ng_tape_recording", "tape", tape) && tape->recording;
}

ng_tape_usage ng_tape_used(const ng_tape *tape)
{
    if (!ng_given("ng_tape_used", "tape", tape)) return (ng_tape_usage){0};
    ng_tape_usage usage = {tape->ops, tape->arena.used, tape->arena.kept};
    for (const ng_scratch *s = tape->scratch; s; s = s->next) usage.bytes_kept += s->arena.kept;
    return usage;
}

/* ---- Work that is undone ------------------------------------------------------------------- */

bool ng_tape_enter(ng_tape *tape, ng_scope *scope)
{
    ng_scratch *scratch = tape->scratch;
    if (scratch)
        tape->scratch = scratch->next;
    else
        scratch = ng_calloc(tape->function, 1, sizeof *scratch);
    if (!scratch) return false;
    *scope = (ng_scope){scratch, tape->arena, tape->last, tape->ops};
    tape->arena = scratch->arena;
    tape->scopes++;
    return true;
}

void ng_tape_leave(ng_tape *tape, const ng_scope *scope)
{
    scope->scratch->arena = tape->arena;
    tape->arena = scope->arena;
    tape->last = scope->last;
    tape->ops = scope->ops;
    if (tape->last)
        tape->last->next = NULL;
    else
        tape->first = NULL;
    ng_arena_reset(&scope->scratch->arena);
    tape->scopes--;
    scope->scratch->next = tape->scratch;
    tape->scratch = scope->scratch;
}

void ng_tape_keep(ng_tape *tape, ng_scope *scope)
{
    const ng_arena inside = tape->arena;
    tape->arena = scope->arena;
    scope->arena = inside;
}

bool ng_is_older(const ng_tape *tape, const ng_scope *scope, const ng_tensor *x)
{
    return x->node ? x->node->index < scope->ops : !ng_arena_holds(&tape->arena, x);
}

/* ---- Results ------------------------------------------------------------------------------ */

/* A tensor of the tape, over `data` if that is not NULL, else over new memory: one piece with the
 * tensor, unless it is large. Members are set one by one: an assignment of the whole struct takes
 * longer than a small op. */
static ng_tensor *tape_result(ng_tape *tape, ng_dtype dtype, const ng_shape *shape, int64_t size,
                              void *data)
{
    enum { SMALL = 256 };
    const size_t head = (sizeof(ng_tensor) + 15) / 16 * 16;
    const size_t bytes = (size_t)size * ng_dtype_bytes(dtype);
    const bool is_joint = !data && bytes < SMALL;
    ng_tensor *x = ng_arena_alloc(tape->function, &tape->arena, head + (is_joint ? bytes : 0));
    if (x && !data)
        data = is_joint ? (char *)x + head : ng_arena_alloc(tape->function, &tape->arena, bytes);
    if (!x || !data) return NULL;
    x->dtype = dtype;
    x->requires_grad = x->module_owned = false;
    x->version = 0;
    x->epoch = tape->head.epoch;
    x->shape = *shape;
    x->size = size;
    x->data = data;
    x->base = NULL;
    x->tape = tape;
    x->maker = tape->function;
    x->node = NULL;
    x->leaf = NULL;
    return x;
}

ng_tensor *ng_result(ng_tape *tape, ng_dtype dtype, ng_shape shape)
{
    if (!ng_given("ng_result", "tape", tape)) return NULL;
    if (ng_dtype_bytes(dtype) == 0) {
        ng_fail(NG_EDTYPE, "ng_result: dtype %d, expected NG_F32, NG_F64 or NG_I64", (int)dtype);
        return NULL;
    }
    const int64_t size = ng_shape_size(tape->function, shape);
    return size < 0 ? NULL : tape_result(tape, dtype, &shape, size, NULL);
}

ng_tensor *ng_result_like(ng_tape *tape, const ng_tensor *x)
{
    return tape_result(tape, x->dtype, &x->shape, x->size, NULL);
}

ng_tensor *ng_result_view(ng_tape *tape, ng_tensor *x, ng_shape shape)
{
    ng_tensor *view = tape && x ? tape_result(tape, x->dtype, &shape, x->size, x->data) : NULL;
    if (view) view->base = x->base ? x->base : x;
    return view;
}

ng_tensor *ng_result_full(ng_tape *tape, ng_dtype dtype, ng_shape shape, double value)
{
    ng_tensor *x = ng_result(tape, dtype, shape);
    if (!x) return NULL;
    if (dtype == NG_I64)
        for (int64_t i = 0; i < x->size; i++) ng_tensor_store(x, i, value);
    else
        ng_kernels_for(dtype)->fill(x->data, x->size, value);
    return x;
}

void *ng_tape_memory(ng_tape *tape, size_t bytes)
{
    if (!ng_given("ng_tape_memory", "tape", tape)) return NULL;
    return ng_arena_alloc(tape->function, &tape->arena, bytes);
}

/* ---- Recording ---------------------------------------------------------------------------- */

/* Whether another tensor replaces the parameter x. */
static bool is_replaced(const ng_tape *tape, const ng_tensor *x)
{
    if (ng_tied_to(x)) return true;
    for (const ng_replaced *r = tape ? tape->replaced : NULL; r; r = r->older) {
        for (int i = 0; i < r->count; i++)
            if (r->pair[i].value == x) return false;
        for (int i = 0; i < r->count; i++)
            if (r->pair[i].parameter == x) return true;
    }
    return false;
}

static const char before_reset[] = "is from before ng_tape_reset";

const char *ng_why_unusable(const ng_tape *tape, const ng_tensor *x)
{
    if (ng_is_none(x)) return "is NG_NONE, expected a tensor";
    if (x->tape && x->tape != tape)
        return ng_arena_holds(&tape->arena, x) ? before_reset : "lives on another tape";
    if (x->tape && x->epoch != tape->head.epoch) return before_reset;
    if (ng_is_stale(x)) return "is a view of a tensor that was since converted to another dtype";
    if (is_replaced(tape, x))
        return "is a parameter that another tensor replaces: read it with ng_parameter_value";
    return NULL;
}

bool ng_usable(const char *function, const char *role, int number, const ng_tape *tape,
               const ng_tensor *x)
{
    const char *why = ng_why_unusable(tape, x);
    if (!why) return true;
    char place[16] = "";
    if (number > 0) snprintf(place, sizeof place, " %d", number);
    ng_fail(ng_is_none(x) ? NG_EVALUE : NG_ESTATE, "%s: %s%s %s", function, role, place,
            why == before_reset && x->tape == tape ? ng_expiry_print(x).text : why);
    return false;
}

bool ng_list_given(const char *function, const char *what, ng_tensor *const *list, int count)
{
    for (int i = 0; i < count; i++) {
        if (list && list[i]) continue;
        char operand[32];
        snprintf(operand, sizeof operand, "%s %d", what, i + 1);
        ng_note_null(function, operand);
        return false;
    }
    return true;
}

bool ng_all_given(const char *function, const ng_tape *tape, int count, ng_tensor *const *inputs)
{
    return ng_given(function, "tape", tape) && ng_given(function, "the list of operands", inputs) &&
           ng_list_given(function, "operand", inputs, count);
}

static const char *of_module(const ng_tensor *x) { return x->module_owned ? " (a module's)" : ""; }

/* "gamma", or "operand 2" where the operands have no names. */
typedef struct {
    char text[32];
} operand_label;

static operand_label label_of(const char *const *names, int i)
{
    operand_label label;
    if (names)
        snprintf(label.text, sizeof label.text, "%s", names[i]);
    else
        snprintf(label.text, sizeof label.text, "operand %d", i + 1);
    return label;
}

static bool refuse_null(const char *function, const char *const *names, int i, bool optional)
{
    const operand_label label = label_of(names, i);
    if (names && optional && !ng_failed())
        ng_fail(NG_ENULL, "%s: %s is NULL; NG_NONE leaves it out", function, label.text);
    else
        ng_note_null(function, label.text);
    return false;
}

bool ng_accepts_optional(const char *function, ng_tape *tape, int required, int count,
                         ng_tensor *const *inputs, const char *const *names)
{
    if (!ng_given(function, "tape", tape) || !ng_given(function, "the list of operands", inputs))
        return false;
    for (int i = 0; i < count; i++)
        if (!inputs[i]) return refuse_null(function, names, i, i >= required);
    tape->function = function;
    const ng_tensor *first = NULL;
    int n_first = 0;
    for (int i = 0; i < count; i++) {
        const ng_tensor *x = inputs[i];
        if (i >= required && ng_is_none(x)) continue;
        if (ng_why_unusable(tape, x))
            return ng_usable(function, label_of(names, i).text, 0, tape, x);
        if (!first && x->dtype != NG_I64) first = x, n_first = i;
        if (x->dtype == NG_I64)
            ng_fail(NG_EDTYPE,
                    "%s: %s is int64, expected float32 or float64; ng_cast converts a tensor",
                    function, label_of(names, i).text);
        else if (x->dtype != first->dtype)
            ng_fail(NG_EDTYPE,
                    "%s: dtypes differ: %s%s is %s, %s%s is %s; ng_module_to converts a module, "
                    "ng_cast a tensor",
                    function, label_of(names, n_first).text, of_module(first),
                    ng_dtype_name(first->dtype), label_of(names, i).text, of_module(x),
                    ng_dtype_name(x->dtype));
        else
            continue;
        return false;
    }
    return true;
}

bool ng_accepts(const char *function, ng_tape *tape, int count, ng_tensor *const *inputs)
{
    return ng_accepts_optional(function, tape, count, count, inputs, NULL);
}

bool ng_will_record(const ng_tape *tape, int n_inputs, ng_tensor *const *inputs)
{
    if (!ng_given("ng_will_record", "tape", tape) || !tape->recording) return false;
    for (int i = 0; i < n_inputs; i++)
        if (ng_given("ng_will_record", "an input", inputs[i]) && inputs[i]->requires_grad)
            return true;
    return false;
}

static uint32_t version_of(const ng_tensor *x) { return (x->base ? x->base : x)->version; }

bool ng_node_is_current(const ng_node *node)
{
    uint32_t sum = 0;
    for (int i = 0; i < node->n_inputs; i++) sum += version_of(node->inputs[i]);
    return sum == node->inputs_version;
}

/* Whether what an op of the user's own gives is there. */
static bool record_given(const ng_tape *tape, const ng_op *op, const ng_tensor *y,
                         ng_tensor *const *inputs, int n_inputs, const void *attributes,
                         size_t attributes_bytes)
{
    static const char function[] = "ng_record";
    if (!ng_given(function, "tape", tape) || !ng_given(function, "op", op) ||
        !ng_given(function, "the op's name", op->name) || !ng_given(function, "y", y) ||
        !ng_all_given(function, tape, n_inputs, inputs) ||
        (attributes_bytes > 0 && !ng_given(function, "attributes", attributes)))
        return false;
    if (n_inputs < 0)
        ng_fail(NG_EVALUE, "%s: %d inputs of %s, expected at least 0", function, n_inputs,
                op->name);
    return n_inputs >= 0;
}

/* Whether y is a fresh tape_result of this tape, and the inputs are tensors of this tape or of
 * none. */
static bool may_record(const ng_tape *tape, const ng_op *op, const ng_tensor *y,
                       ng_tensor *const *inputs, int n_inputs)
{
    if (!ng_usable("ng_record", "the output", 0, tape, y)) return false;
    if (!y->tape || y->node) {
        ng_fail(NG_ESTATE, "ng_record: the output of %s %s", op->name,
                y->node ? "was recorded before" : "is not from ng_result on this tape");
        return false;
    }
    if (y->dtype == NG_I64) {
        ng_fail(NG_EDTYPE, "ng_record: the output of %s is int64, expected float32 or float64",
                op->name);
        return false;
    }
    for (int i = 0; i < n_inputs; i++)
        if (!ng_is_none(inputs[i]) && !ng_usable("ng_record", "input", i + 1, tape, inputs[i]))
            return false;
    return true;
}

ng_tensor *ng_record(ng_tape *tape, const ng_op *op, ng_tensor *y, ng_tensor *const *inputs,
                     int n_inputs, const void *attributes, size_t attributes_bytes)
{
    if (!record_given(tape, op, y, inputs, n_inputs, attributes, attributes_bytes)) return NULL;
    if (ng_will_record(tape, n_inputs, inputs) && !may_record(tape, op, y, inputs, n_inputs))
        return NULL;
    return ng_record_as(NG_USERS_OP, tape, op, y, inputs, n_inputs, attributes, attributes_bytes);
}

ng_tensor *ng_record_as(ng_op_kind kind, ng_tape *tape, const ng_op *op, ng_tensor *y,
                        ng_tensor *const *inputs, int n_inputs, const void *attributes,
                        size_t attributes_bytes)
{
    if (!y || !ng_will_record(tape, n_inputs, inputs)) return y;

    /* One piece of memory: the node, its list of inputs, which of them required a gradient, the
     * kind of the op, its attributes. */
    const size_t align = alignof(max_align_t);
    const size_t flags = sizeof(ng_node) + (size_t)n_inputs * sizeof *inputs;
    const size_t list = (flags + (size_t)n_inputs * sizeof(bool) + 1 + align - 1) / align * align;
    char *memory = ng_arena_alloc(tape->function, &tape->arena, list + attributes_bytes);
    if (!memory) return NULL;
    ng_node *node = (ng_node *)memory;
    bool *required = (bool *)(memory + flags);
    memory[flags + (size_t)n_inputs * sizeof(bool)] = (char)kind;
    *node = (ng_node){.op = op,
                      .output = y,
                      .inputs = (ng_tensor **)(memory + sizeof *node),
                      .attributes = memory + list,
                      .n_inputs = n_inputs,
                      .index = tape->ops,
                      .previous = tape->last};
    for (int i = 0; i < n_inputs; i++) {
        node->inputs[i] = inputs[i];
        required[i] = inputs[i]->requires_grad;
        node->inputs_version += version_of(inputs[i]);
    }
    if (attributes_bytes > 0) memcpy(memory + list, attributes, attributes_bytes);

    if (tape->last)
        tape->last->next = node;
    else
        tape->first = node;
    tape->last = node;
    tape->ops++;
    y->node = node;
    y->requires_grad = true;
    for (ng_listener *l = tape->listeners; l; l = l->next)
        if (l->recorded) l->recorded(l, node);
    return y;
}

/* ---- Owned tensors ------------------------------------------------------------------------- */

ng_tensor *ng_tape_own(ng_tape *tape, ng_tensor *x)
{
    if (!ng_given("ng_tape_own", "tape", tape) || !ng_given("ng_tape_own", "x", x) ||
        !ng_usable("ng_tape_own", "the tensor", 0, tape, x))
        return NULL;
    if (x->module_owned) {
        ng_fail(NG_ESTATE, "ng_tape_own: the tensor belongs to a module or is a gradient, expected "
                           "one of yours");
        return NULL;
    }
    if (x->tape == tape) return x;
    x->tape = tape;
    x->epoch = tape->head.epoch;
    x->leaf->next_owned = tape->owned;
    tape->owned = x;
    return x;
}

const ng_node *ng_node_of(const ng_tensor *x)
{
    return ng_given("ng_node_of", "x", x) ? x->node : NULL;
}
