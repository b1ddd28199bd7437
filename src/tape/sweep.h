/* A sweep, for those who begin one: gradients.c. */
#ifndef NG_TAPE_SWEEP_H
#define NG_TAPE_SWEEP_H

#include "tape/tape.h"

/* What a sweep knows of a tensor. */
typedef struct ng_swept {
    ng_tensor *x;
    ng_tensor *grad;       /* its gradient so far, or NULL */
    struct ng_swept *next; /* of a leaf: the leaf that was entered before it */
    uint32_t sweep;        /* the number of the sweep that has entered it */
    uint32_t wanted;       /* the newest search that wants its gradient, or one that leads to it */
    bool leads;            /* an output depends on it */
    bool asked;            /* a result of ng_gradients */
    bool reached;          /* a gradient has arrived; of zero, if grad is NULL or empty */
    bool owned;            /* grad is the sweep's: it adds in place, and uses the memory again */
    bool empty;            /* grad is memory only */
} ng_swept;

/* The last gradients that are no longer needed, whose memory serves others. */
typedef struct {
    ng_tensor *last[8];
    int count;
} ng_spare_memory;

/* The arrays are kept for later sweeps. */
struct ng_sweep {
    ng_sweep *inner;   /* for a sweep inside this one, or NULL */
    int depth;         /* of sweeps and of definitions */
    uint32_t number;   /* counts the sweeps that have used the arrays */
    ng_swept *nodes;   /* of the nodes' outputs, by the node's number; valid with this number */
    int64_t capacity;  /* of nodes */
    ng_swept **leaves; /* by address: a hash table of `slots`, a power of 2 */
    int slots, most_slots, n_leaves;
    void *scratch; /* for the inputs of one node */
    int scratch_for;

    const char *function; /* the public name, for messages */
    ng_tape *tape;
    int64_t oldest;    /* nodes before this one are not visited */
    int64_t waiting;   /* nodes that are reached and were not visited */
    uint32_t search;   /* only what this search wants is visited; 0: all */
    uint32_t searches; /* so far */
    ng_swept *leaf;    /* the newest of the leaves */
    ng_spare_memory spare;
    bool record;      /* gradients are recorded ops themselves */
    bool to_leaves;   /* ng_backward: into the leaves that require a gradient */
    ng_status status; /* of the first failure */
};

/* A sweep inside those that run on the tape, which it becomes the innermost of; NULL with an error.
 * To end it, make the outer one, or NULL, the tape's sweep again. */
ng_sweep *ng_sweep_begin(const char *function, ng_tape *tape);

/* The entry of a tensor, or NULL; the same, made if there is none: NULL without memory. */
ng_swept *ng_sweep_find(const ng_sweep *s, const ng_tensor *x);
ng_swept *ng_sweep_enter(ng_sweep *s, ng_tensor *x);

/* From the outputs back to what is wanted. Without cotangents these are ones. The tape is live
 * meanwhile. A failure leaves its status. */
bool ng_sweep_run(ng_sweep *s, ng_tensor *const *outputs, int n_outputs,
                  ng_tensor *const *cotangents);

/* The gradient of an entry so far. NULL: none, or zero if it is reached. */
static inline ng_tensor *ng_swept_gradient(const ng_swept *e) { return e->empty ? NULL : e->grad; }

#endif
