/* Gradient hooks: a call as soon as a leaf's gradient is complete, while the backward pass goes on.
 *
 * Parallel training adds gradients up over its ranks in this way. It sets `hook` of its leaves
 * (core/tensor.h) before the pass, and NULL after it. A leaf with a hook gets its gradient into
 * memory of the hook's, and neither its `grad` nor its state changes. */
#ifndef NG_TAPE_HOOK_H
#define NG_TAPE_HOOK_H

#include "core/tensor.h"

typedef struct ng_gradient_hook {
    ng_tensor *place; /* for the gradient: a tensor of the leaf's shape and dtype */
    void (*call)(struct ng_gradient_hook *hook);
    void *with; /* for `call` */

    bool reached;        /* the pass has written to `place` */
    bool complete;       /* called already */
    const ng_node *last; /* the op of the pass that is the last to add to it; NULL if none does */
} ng_gradient_hook;

/* ng_backward of factor * loss, in which hooks are called if it is `hooked`. A hook whose leaf the
 * loss does not depend on is not called. */
ng_status ng_backward_of(const char *function, ng_tape *tape, ng_tensor *loss, double factor,
                         bool hooked);

#endif
