/* What a tensor is, and when its gradient counts. */
#ifndef NG_CORE_TENSOR_H
#define NG_CORE_TENSOR_H

#include "core/alloc.h"
#include "core/shape.h"
#include <normgrad/tape.h>

/* What a leaf has beside its values. Its gradient is new while `arrived` and `used` differ: a
 * backward pass adds to it, and an optimizer moves the leaf by it. Once it is used the next pass
 * overwrites it. Each optimizer notes `arrived` at its step: so several may use one gradient, each
 * once. */
typedef struct {
    ng_tensor *grad; /* the memory, made once and kept */
    bool has_grad;   /* it holds a gradient */
    bool shown;      /* ng_grad has handed it out: a pass changes it only when it ends */
    uint32_t
        arrived;     /* counts gradients: one for each pass that reached the leaf, or ng_set_grad */
    uint32_t used;   /* what `arrived` was at the newest step of an optimizer */
    ng_tensor *tied; /* or NULL: the parameter that is read in place of this one */
    ng_tensor *next_owned; /* after ng_tape_own: the tensor that the tape got before this one */
} ng_leaf;

/* What a tape begins with. Its tensors read it. */
typedef struct {
    const ng_tape *self; /* tells a tape from other memory */
    uint32_t epoch;      /* counts resets, to notice a tensor from before the last one */
} ng_tape_head;

struct ng_tensor {
    ng_dtype dtype;
    bool requires_grad; /* a leaf that was asked to, or computed from one */
    bool module_owned;  /* ng_tensor_free leaves it to its module */
    uint32_t version;   /* counts writes to a leaf */
    uint32_t epoch;     /* of a tape's: that of the tape when it was made */
    ng_shape shape;
    int64_t size;
    void *data;
    ng_tensor *base;   /* of a view: the tensor whose memory and version it shares */
    ng_tape *tape;     /* its owner; NULL for yours and a module's */
    const char *maker; /* of a tape's: the function that made it, "ng_add" */
    ng_node *node;     /* the op that made it; NULL for leaves and constants */
    ng_leaf *leaf;     /* NULL for what an op made */
};

static inline bool ng_is_none(const ng_tensor *x) { return x == NG_NONE; }

/* The parameter that x is tied to, or NULL. */
static inline ng_tensor *ng_tied_to(const ng_tensor *x) { return x->leaf ? x->leaf->tied : NULL; }

static inline bool ng_grad_is_new(const ng_leaf *leaf)
{
    return leaf->has_grad && leaf->arrived != leaf->used;
}

/* Whether x is a view of memory that its base no longer has since ng_module_to. */
static inline bool ng_is_stale(const ng_tensor *x)
{
    return x->base && (x->data != x->base->data || x->dtype != x->base->dtype);
}

/* Whether x was computed on a tape that was reset since. This is known until its memory is given to
 * another tensor. */
static inline bool ng_is_expired(const ng_tensor *x)
{
    const ng_tape_head *owner = (const ng_tape_head *)x->tape;
    return owner && (owner->self != x->tape || owner->epoch != x->epoch);
}

/* The end of an error about an expired x: "is from before ng_tape_reset (made by ng_exp)". */
typedef struct {
    char text[96];
} ng_expiry_text;
ng_expiry_text ng_expiry_print(const ng_tensor *x);

static inline size_t ng_bytes_of(const ng_tensor *x)
{
    return (size_t)x->size * ng_dtype_bytes(x->dtype);
}

/* Whether two tensors have one shape. Looks at both in place: copies of their shapes, which
 * ng_shape_equal takes, take longer. */
static inline bool ng_same_shape(const ng_tensor *a, const ng_tensor *b)
{
    bool same = a->shape.rank == b->shape.rank;
    for (int i = 0; i < a->shape.rank && same; i++) same = a->shape.dim[i] == b->shape.dim[i];
    return same;
}

/* Whether x's elements can be read: it is not NG_NONE, not expired and not stale. */
bool ng_readable(const char *function, const ng_tensor *x);

/* Whether x has this shape or is NG_NONE; else "ng_linear: bias is (3,), expected (4,)". */
bool ng_has_shape(const char *function, const char *name, const ng_tensor *x, ng_shape shape);

/* Whether x has this dtype and shape; else "ng_jvp: v is float32 (3,), expected float64 (3,)". */
bool ng_has_type(const char *function, const char *name, const ng_tensor *x, ng_dtype dtype,
                 ng_shape shape);

/* NG_OK if x may be written: it is not NULL or NG_NONE, and belongs to no tape. */
ng_status ng_writable(const char *function, const ng_tensor *x);

/* A tensor of ng_calloc's memory, zeroed: ng_zeros_new, with the caller's name in errors. */
ng_tensor *ng_tensor_make(const char *function, ng_dtype dtype, ng_shape shape);

/* The memory of the leaf's gradient, made if there is none yet. */
ng_tensor *ng_tensor_grad_slot(ng_tensor *x);

/* A gradient has arrived in that memory. */
void ng_tensor_grad_arrived(ng_tensor *x);

/* Frees whoever owns it. */
void ng_tensor_destroy(ng_tensor *x);

/* Element i as a double, without checks. */
double ng_tensor_load(const ng_tensor *x, int64_t i);
void ng_tensor_store(ng_tensor *x, int64_t i, double value);

/* A number of 0 .. last, all equally likely. */
uint64_t ng_rng_upto(ng_rng *rng, uint64_t last);

/* Draws every element from [low, high), and never `high`, which rounding to the dtype would give.
 * Of int64 these are the whole numbers there. */
void ng_tensor_draw_uniform(ng_tensor *x, double low, double high, ng_rng *rng);

/* Sets each float or double to 0 with probability p < 1, else to 1 / (1 - p). */
void ng_tensor_draw_mask(ng_tensor *x, double p, ng_rng *rng);

/* Whether numbers can be drawn from this range, or with this deviation; else an error naming
 * `function`. */
bool ng_range_accepted(const char *function, ng_dtype dtype, double low, double high);
bool ng_deviation_accepted(const char *function, double deviation);

#endif
