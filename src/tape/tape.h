/* What a tape is, for the directories that record on it. */
#ifndef NG_TAPE_TAPE_H
#define NG_TAPE_TAPE_H

#include "core/arena.h"
#include "core/tensor.h"
#include "tape/replay.h"

/* Tensors that a forward pass uses instead of parameters. In the tape's memory, because
 * ng_recompute runs the pass again after the call that replaces them. */
typedef struct ng_replaced {
    struct ng_replaced *older;
    int count;
    struct {
        ng_tensor *parameter, *value;
    } pair[];
} ng_replaced;

/* Hears what happens on a tape, until the tape is freed. Functions may be NULL. */
typedef struct ng_listener {
    ng_tape *tape; /* NULL: none */
    struct ng_listener *next;
    void (*recorded)(struct ng_listener *self, const ng_node *node);
    void (*swept)(struct ng_listener *self); /* a gradient is taken */
    void (*reset)(struct ng_listener *self); /* the tape is reset or freed */
} ng_listener;
void ng_tape_listen(ng_tape *tape, ng_listener *listener);
void ng_tape_unlisten(ng_listener *listener);

/* The arrays of a sweep and of those inside it (sweep.c). */
typedef struct ng_sweep ng_sweep;
void ng_sweeps_free(ng_sweep *sweep);

/* Memory for results that are given back before the tape is reset. */
typedef struct ng_scratch {
    ng_arena arena;
    struct ng_scratch *next; /* that nobody uses now */
} ng_scratch;

struct ng_tape {
    ng_tape_head head;
    ng_arena arena;
    ng_scratch *scratch; /* that nobody uses now */
    int scopes;          /* between ng_tape_enter and ng_tape_leave */
    ng_sweep *sweeps; /* the first of those that were ever needed, each links to the one inside */
    ng_sweep *sweep;  /* the innermost that runs, or NULL */
    ng_replaced *replaced;  /* the newest first */
    struct ng_pass *passes; /* those that ng_recompute will run again, the innermost first */
    const char *function;   /* the running op, for messages */
    ng_node *first, *last;
    ng_tensor *owned; /* given by ng_tape_own, the newest first, linked by next_owned */
    int64_t ops;
    bool recording;
    ng_rng seeded, rng; /* at ng_tape_seed; now */
    ng_replay replay;
    int64_t unrecorded_gradients; /* taken by ng_gradients since the last reset */
    ng_listener *listeners;
};

/* Between the two calls results go to memory of their own. The second one gives it back, and takes
 * what was recorded off the tape. They nest. false without memory. */
typedef struct {
    ng_scratch *scratch;
    ng_arena arena;
    ng_node *last;
    int64_t ops;
} ng_scope;
bool ng_tape_enter(ng_tape *tape, ng_scope *scope);
void ng_tape_leave(ng_tape *tape, const ng_scope *scope);

/* Between two calls of this one results go to the memory from before ng_tape_enter: they are kept.
 */
void ng_tape_keep(ng_tape *tape, ng_scope *scope);

/* Whether x is older than the innermost scope, which this is. */
bool ng_is_older(const ng_tape *tape, const ng_scope *scope, const ng_tensor *x);

/* An op of the user's; one of the library's, whose operands were checked before; such a one that
 * other ranks of a group take part in: its kernel is called even for an output without elements. */
typedef enum { NG_USERS_OP, NG_OWN_OP, NG_JOINT_OP } ng_op_kind;
ng_tensor *ng_record_as(ng_op_kind kind, ng_tape *tape, const ng_op *op, ng_tensor *y,
                        ng_tensor *const *inputs, int n_inputs, const void *attributes,
                        size_t attributes_bytes);

/* ng_record for an op of the library's. */
static inline ng_tensor *ng_record_own(ng_tape *on, const ng_op *op, ng_tensor *y,
                                       ng_tensor *const *inputs, int n_inputs,
                                       const void *attributes, size_t attributes_bytes)
{
    return ng_record_as(NG_OWN_OP, on, op, y, inputs, n_inputs, attributes, attributes_bytes);
}

/* Whether input i required a gradient when the op was recorded. These flags stand behind the list
 * of inputs, and behind them the kind of the op. */
static inline bool ng_node_required(const ng_node *node, int i)
{
    return ((const bool *)(node->inputs + node->n_inputs))[i];
}

static inline ng_op_kind ng_node_kind(const ng_node *node)
{
    return ((const unsigned char *)(node->inputs + node->n_inputs))[node->n_inputs];
}

/* Whether the inputs are unchanged since the op was recorded. */
bool ng_node_is_current(const ng_node *node);

/* ng_gradients under the name of the public function that calls it. */
ng_status ng_gradients_for(const char *function, ng_tape *tape, ng_tensor *const *outputs,
                           int n_outputs, ng_tensor *const *inputs, int n_inputs,
                           ng_gradients_options options);

/* Why a result of the tape requires no gradient, for the end of an error. */
const char *ng_why_no_gradient(const ng_tape *tape);

/* ng_result of x's dtype and shape. */
ng_tensor *ng_result_like(ng_tape *tape, const ng_tensor *x);

/* ng_result, filled. */
ng_tensor *ng_result_full(ng_tape *tape, ng_dtype dtype, ng_shape shape, double value);

/* A new header over x's memory with another shape of the same size. */
ng_tensor *ng_result_view(ng_tape *tape, ng_tensor *x, ng_shape shape);

/* Whether no tensor of a list is NULL; else notes "ng_gradients: input 2 is NULL" (input 1 if the
 * list itself is NULL). */
bool ng_list_given(const char *function, const char *what, ng_tensor *const *list, int count);

/* Whether neither the tape nor an operand is NULL; else notes it. */
bool ng_all_given(const char *function, const ng_tape *tape, int count, ng_tensor *const *inputs);

/* Why x cannot be read on this tape; NULL: it can. */
const char *ng_why_unusable(const ng_tape *tape, const ng_tensor *x);

/* Whether x can be read on this tape: it is not NG_NONE, belongs to this tape or to none, and is no
 * stale view. The error names its role, and its number unless that is 0: "ng_add: operand 2 lives
 * on another tape". */
bool ng_usable(const char *function, const char *role, int number, const ng_tape *tape,
               const ng_tensor *x);

/* ng_accepts for operands of which those from number `required` on may be NG_NONE. Errors about
 * NULL give their names, or their numbers if `names` is NULL. */
bool ng_accepts_optional(const char *function, ng_tape *tape, int required, int count,
                         ng_tensor *const *inputs, const char *const *names);

#endif
