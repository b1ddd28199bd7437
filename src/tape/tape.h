/* What a tape is, for the directories that record on it. */
#ifndef NG_TAPE_TAPE_H
#define NG_TAPE_TAPE_H

#include "core/arena.h"
#include "core/tensor.h"
#include "tape/replay.h"

/* Tensors that a forward pass uses instead of parameters; on the stack of the call. */
typedef struct ng_replaced {
    ng_tensor *const *parameters;
    ng_tensor *const *values;
    int count;
    struct ng_replaced *older;
} ng_replaced;

/* A network whose layers' outputs are on a tape, for ng_watch (plot/watch.c). They can be read
 * until the tape is reset. */
typedef struct ng_watcher {
    ng_tape *tape;           /* with outputs of the present pass; NULL: none */
    struct ng_watcher *next; /* of the same tape */
    uint64_t pass;           /* counts the passes: an output of an earlier one is gone */
    void (*destroy)(struct ng_watcher *watcher);
} ng_watcher;

/* The outputs are on this tape from now on; on none. Earlier ones are forgotten. */
void ng_tape_watch(ng_tape *tape, ng_watcher *watcher);
void ng_tape_unwatch(ng_watcher *watcher);

/* The arrays of a sweep and of those inside it (sweep.c). */
typedef struct ng_sweep ng_sweep;
void ng_sweeps_free(ng_sweep *sweep);

/* Memory for results that are given back before the tape is reset. */
typedef struct ng_scratch {
    ng_arena arena;
    struct ng_scratch *next; /* that nobody uses now */
} ng_scratch;

struct ng_tape {
    ng_arena arena;
    ng_scratch *scratch; /* that nobody uses now */
    int scopes;          /* between ng_tape_enter and ng_tape_leave */
    ng_sweep *sweeps; /* the first of those that were ever needed, each links to the one inside */
    ng_sweep *sweep;  /* the innermost that runs, or NULL */
    ng_replaced *replaced; /* the newest first */
    const char *function;  /* the running op, for messages */
    ng_node *first, *last;
    ng_tensor *owned; /* given by ng_tape_own, the newest first, linked by next_owned */
    int64_t ops;
    uint32_t epoch; /* counts resets, to notice a tensor from before the last one */
    bool recording;
    ng_rng seeded, rng; /* at ng_tape_seed; now */
    ng_replay replay;
    int64_t gradients;            /* taken since the last reset, by ng_backward and ng_gradients */
    int64_t unrecorded_gradients; /* of these by ng_gradients, and not recorded */
    ng_watcher *watchers;         /* of networks whose outputs are here */
    const double *rstd;           /* of the newest norm, until a watched layer has taken it */
    int64_t n_rstd;
    const ng_op *own_op; /* the first recorded op that is the user's, not the library's */
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

/* ng_record for the library's ops (ops/op.h). ng_record itself is for the user's, and sets
 * tape->own_op. */
ng_tensor *ng_record_library(ng_tape *tape, const ng_op *op, ng_tensor *y, ng_tensor *const *inputs,
                             int n_inputs, const void *attributes, size_t attributes_bytes);

/* Whether input i required a gradient when the op was recorded. The flags stand behind the list of
 * inputs. */
static inline bool ng_node_required(const ng_node *node, int i)
{
    return ((const bool *)(node->inputs + node->n_inputs))[i];
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

/* Whether x can be read on this tape: it is not NG_NONE, belongs to this tape or to none, and is no
 * stale view. The error names its role, and its number unless that is 0: "ng_add: operand 2 lives
 * on another tape". */
bool ng_usable(const char *function, const char *role, int number, const ng_tape *tape,
               const ng_tensor *x);

/* ng_accepts for operands that may be NG_NONE. */
bool ng_accepts_optional(const char *function, ng_tape *tape, int count, ng_tensor *const *inputs);

#endif
