/* Replay: runs a function again and again with its detached values and random numbers held fixed.
 *
 * The gradient checker moves an input and runs the function anew. What is no function of the input
 * must not move with it. In NG_TAPE_REMEMBER the tape keeps the value of each ng_detach, in the
 * order of the calls; in NG_TAPE_REPLAY it hands these values out again. In both modes dropout's
 * stream restarts at every reset, and running statistics stay as they are. While a gradient is
 * taken the tape is live: values that a gradient rule detaches are not kept. If they were, a second
 * gradient that lacks a term would pass.
 */
#ifndef NG_TAPE_REPLAY_H
#define NG_TAPE_REPLAY_H

#include "core/tensor.h"
#include <normgrad/tape.h>

typedef enum { NG_TAPE_LIVE = 0, NG_TAPE_REMEMBER, NG_TAPE_REPLAY } ng_tape_mode;

/* One call of ng_detach. */
typedef struct {
    ng_tensor *value;  /* a copy, made in NG_TAPE_REMEMBER */
    const char *op;    /* that made it; NULL for a leaf and for an unrecorded result */
    const char *place; /* of the call, "my_norm.c:42" */
    bool by_definition;
    bool moves; /* NG_TAPE_REPLAY: hand out the value of this run, not the copy */
} ng_detached;

/* What a tape knows about replay. */
typedef struct {
    ng_tape_mode mode;
    ng_detached *detached; /* in the order of the calls */
    int64_t count;
    int64_t next; /* the next call of this run */
    bool again;   /* ng_recompute runs a pass a second time */
} ng_replay;

/* Switches the mode and restarts the run; NG_TAPE_REMEMBER forgets the detached values. */
void ng_tape_set_mode(ng_tape *tape, ng_tape_mode mode);

/* Whether modules may update running statistics now. */
bool ng_tape_is_live(const ng_tape *tape);

/* The detached value with the given number, from 0; NULL after the last. */
ng_detached *ng_tape_detached(const ng_tape *tape, int64_t number);

/* For ng_tape_free and ng_tape_reset. */
void ng_replay_free(ng_replay *replay);
void ng_replay_restart(ng_tape *tape);

#endif
