/* The tape's inside, for the rooms above it. */
#ifndef NG_TAPE_TAPE_H
#define NG_TAPE_TAPE_H

#include "core/arena.h"
#include "core/tensor.h"
#include "tape/replay.h"

/* Parameters in whose place a forward pass uses other tensors; lives on the stack of the call. */
typedef struct ng_replaced {
    ng_tensor *const *parameters;
    ng_tensor *const *values;
    int count;
    struct ng_replaced *older;
} ng_replaced;

struct ng_tape {
    ng_arena arena;
    ng_replaced *replaced; /* the newest first */
    const char *function;  /* the op at work, for messages */
    ng_node *first, *last;
    ng_tensor *owned; /* what was handed to it, the newest first, linked by next_owned */
    int64_t ops;
    uint32_t epoch; /* counts resets, to notice a tensor from before the last one */
    bool recording;
    ng_rng seeded, rng; /* as it was seeded; as it is now */
    ng_replay replay;
    int64_t gradients, unrecorded_gradients; /* taken since the last reset */
    int64_t backwards;                       /* how many of these were ng_backward's */
    const ng_op *own_op; /* the first op since then that is the user's, not the library's */
};

/* ng_record for the library's own ops (ops/op.h); ng_record itself is the user's and notes the op
 * in tape->own_op. */
ng_tensor *ng_record_library(ng_tape *tape, const ng_op *op, ng_tensor *y, ng_tensor *const *inputs,
                             int n_inputs, const void *attributes, size_t attributes_bytes);

/* Whether no input of the op was changed since it was recorded. */
bool ng_node_is_current(const ng_node *node);

/* ng_gradients under the name of the public function that calls it. */
ng_status ng_gradients_for(const char *function, ng_tape *tape, ng_tensor *const *outputs,
                           int n_outputs, ng_tensor *const *inputs, int n_inputs,
                           ng_gradients_options options);

/* Why a result of the tape requires no gradient, for the end of an error. */
const char *ng_why_no_gradient(const ng_tape *tape);

/* As ng_result, filled. */
ng_tensor *ng_result_full(ng_tape *tape, ng_dtype dtype, ng_shape shape, double value);

/* A new header over x's memory with another shape of the same size. */
ng_tensor *ng_result_view(ng_tape *tape, ng_tensor *x, ng_shape shape);

/* Whether each tensor of a list was given; a NULL is noted, "ng_gradients: input 2 is NULL", or
 * "input 1", where there is no list at all. */
bool ng_list_given(const char *function, const char *what, ng_tensor *const *list, int count);

/* Whether the tape and each of the operands was given; a NULL is noted. */
bool ng_all_given(const char *function, const ng_tape *tape, int count, ng_tensor *const *inputs);

/* Whether x can be read on this tape: it is not NG_NONE, lives here or on no tape, and is no stale
 * view. The error calls it by its role, and by its number where that is not 0: "ng_add: operand 2
 * lives on another tape". */
bool ng_usable(const char *function, const char *role, int number, const ng_tape *tape,
               const ng_tensor *x);

/* As ng_accepts, for operands that may be NG_NONE (which then counts as accepted). */
bool ng_accepts_optional(const char *function, ng_tape *tape, int count, ng_tensor *const *inputs);

#endif
