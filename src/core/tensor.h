/* What a tensor is. */
#ifndef NG_CORE_TENSOR_H
#define NG_CORE_TENSOR_H

#include "core/alloc.h"
#include "core/shape.h"
#include <normgrad/tape.h>

struct ng_tensor {
    ng_dtype dtype;
    bool requires_grad; /* a leaf that was asked to, or computed from one */
    bool grad_spent;    /* an optimizer has used the gradient: the next backward overwrites it */
    bool module_owned;  /* ng_tensor_free leaves it to its module */
    uint32_t version;   /* counts writes to a leaf */
    uint32_t epoch;     /* of a tape's: tape->epoch when it was made */
    ng_shape shape;
    int64_t size;
    void *data;
    const ng_tensor *base;   /* of a view: whose memory it shows; its writes count for the view */
    ng_tape *tape;           /* its owner; NULL for yours and a module's */
    ng_node *node;           /* the op that made it; NULL for leaves and constants */
    ng_tensor *grad;         /* of a leaf; its version counts the passes that have reached it, */
    uint32_t passes;         /* from here on: those that reached gradients which were dropped */
    ng_tensor *cotangent;    /* during a backward sweep, what has arrived so far */
    bool cotangent_owned;    /* and whether the sweep may add to it in place */
    bool wanted;             /* while paths are marked: whether it lies on one */
    ng_tensor *next_leaf;    /* during ng_backward: the leaf that was reached before this one */
    struct ng_leaf_use *use; /* during a watched sweep (tape.h) */
    ng_tensor *next_owned;   /* of a tensor that was handed to its tape: the one handed before it */
};

static inline bool ng_is_none(const ng_tensor *x) { return x == NG_NONE; }

/* Whether x is a view of memory that its base no longer has: ng_module_to gave it other memory. */
static inline bool ng_is_stale(const ng_tensor *x)
{
    return x->base && (x->data != x->base->data || x->dtype != x->base->dtype);
}

/* Whether x's elements can be read: it is not NG_NONE, and not stale. */
bool ng_readable(const char *function, const ng_tensor *x);

/* Whether x may be written: it is not NG_NONE, and belongs to no tape; NULL is passed on. */
ng_status ng_writable(const char *function, const ng_tensor *x);

/* A tensor of ng_calloc's memory, zeroed: ng_zeros_new, with the caller's name in errors. */
ng_tensor *ng_tensor_make(const char *function, ng_dtype dtype, ng_shape shape);

/* The leaf's gradient tensor, made (spent, uninitialised) if there is none yet. */
ng_tensor *ng_tensor_grad_slot(ng_tensor *leaf);

/* Takes back what backward passes have left in the leaf: none has reached it. The memory stays. */
void ng_tensor_drop_grad(ng_tensor *leaf);

/* Frees whoever owns it. */
void ng_tensor_destroy(ng_tensor *x);

/* Element i as a double, without checks. */
double ng_tensor_load(const ng_tensor *x, int64_t i);
void ng_tensor_store(ng_tensor *x, int64_t i, double value);

/* Draws every element from [low, high), and never `high`, which rounding to the dtype would give.
 * Of int64 these are the whole numbers there. */
void ng_tensor_draw_uniform(ng_tensor *x, double low, double high, ng_rng *rng);

/* Whether there is something to be drawn; else an error naming `function`. */
bool ng_range_accepted(const char *function, ng_dtype dtype, double low, double high);
bool ng_deviation_accepted(const char *function, double deviation);

/* How often this thread has called ng_dtype_of, which the library itself does not use: an op of the
 * user's own that handles both dtypes has to ask. */
int64_t ng_dtype_questions(void);

#endif
