/* Optimizers: move a module's parameters along their gradients. */
#ifndef NORMGRAD_OPTIM_H
#define NORMGRAD_OPTIM_H

#include <normgrad/nn.h>

NG_BEGIN_C

/* ---- Learning-rate schedules ---------------------------------------------------------------
 *
 * A plain value that gives the factor of the base rate at each step (0, 1, 2...). A warm-up of w
 * steps goes before any of them: the factor rises linearly, (step + 1) / w, and the schedule
 * proper begins at step w. */
typedef enum {
    NG_SCHEDULE_CONSTANT = 0, /* 1 */
    NG_SCHEDULE_STEP,         /* factor^floor(step / every) */
    NG_SCHEDULE_COSINE,       /* floor + (1 - floor) (1 + cos(pi step / steps)) / 2, then floor */
    NG_SCHEDULE_LINEAR        /* from 1 to floor over `steps`, then floor */
} ng_schedule_kind;
typedef struct {
    ng_schedule_kind kind; /* default NG_SCHEDULE_CONSTANT */
    int64_t warmup;        /* w, default 0 */
    int64_t steps;         /* cosine, linear: length, without the warm-up */
    int64_t every;         /* step: length of a stair */
    double factor;         /* step: default 0.1 */
    double floor;          /* cosine, linear: the last factor */
} ng_schedule;
NG_API double ng_schedule_factor(const ng_schedule *schedule, int64_t step);

/* ---- Optimizers ----------------------------------------------------------------------------
 *
 * Made for one module, which must outlive it. It moves the parameters that the module has at each
 * step: a layer that was added since is taken up, with state that begins at zero, and what is
 * known of the others stays. A parameter that is frozen, or that no backward pass has reached
 * since this optimizer's last step, is not moved. Two optimizers of the same parameters both move
 * them along the gradients of one backward pass. State follows a dtype change of the module before
 * the first step; after it, that is an error.
 *
 * What of a state (velocity, moments) is below the smallest normal number of its dtype is taken as
 * 0, and so is a squared gradient: the state of a unit that gets no gradient any more ends at 0,
 * and a late step takes no longer than an early one. Adam, AdamW and RMSProp hold a finite gradient
 * between -2^63 and 2^63 in float (2^511 in double), so that its square is finite; after one that
 * large their steps are small until the squares have decayed. */
typedef struct ng_optimizer ng_optimizer;

/* g += weight_decay w;  v = momentum v + (1 - dampening) g, v = g at first;
 * w -= lr (nesterov ? g + momentum v : v) */
typedef struct {
    double lr; /* default 0.01 */
    double momentum, dampening, weight_decay;
    bool nesterov;
    ng_schedule schedule; /* of lr */
    ng_module *module;
} ng_sgd_new_options;
#define ng_sgd_new(...) ng_sgd_new_with(NG_NAMED(ng_sgd_new_options, module, __VA_ARGS__))
NG_API ng_optimizer *ng_sgd_new_with(ng_sgd_new_options options);

/* m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2;
 * w -= lr (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps)         Kingma & Ba 2015
 * Adam adds weight_decay w to g; AdamW first does w -= lr weight_decay w (Loshchilov & Hutter
 * 2019). */
typedef struct {
    double lr;            /* default 1e-3 */
    double beta1, beta2;  /* default 0.9, 0.999 */
    double eps;           /* default 1e-8 */
    double weight_decay;  /* default 0; AdamW 0.01 */
    ng_schedule schedule; /* of lr */
    ng_module *module;
} ng_adam_new_options;
#define ng_adam_new(...) ng_adam_new_with(NG_NAMED(ng_adam_new_options, module, __VA_ARGS__))
#define ng_adamw_new(...) ng_adamw_new_with(NG_NAMED(ng_adam_new_options, module, __VA_ARGS__))
NG_API ng_optimizer *ng_adam_new_with(ng_adam_new_options options);
NG_API ng_optimizer *ng_adamw_new_with(ng_adam_new_options options);

/* s = alpha s + (1 - alpha) g^2 (minus the square of the running mean of g if centered);
 * v = momentum v + g / (sqrt(s) + eps);  w -= lr v                     Tieleman & Hinton 2012 */
typedef struct {
    double lr;                     /* default 0.01 */
    double alpha;                  /* default 0.99 */
    double eps;                    /* default 1e-8 */
    double momentum, weight_decay; /* g += weight_decay w comes first */
    bool centered;
    ng_schedule schedule; /* of lr */
    ng_module *module;
} ng_rmsprop_new_options;
#define ng_rmsprop_new(...)                                                                        \
    ng_rmsprop_new_with(NG_NAMED(ng_rmsprop_new_options, module, __VA_ARGS__))
NG_API ng_optimizer *ng_rmsprop_new_with(ng_rmsprop_new_options options);

/* Settings of its own for each parameter whose whole name matches a pattern, where * stands for any
 * characters; of several that match, the last that was given counts. They hold for layers that are
 * added later too. A pattern that no parameter matches is NG_EVALUE, and so are no settings at all:
 * a decay of 0 is NG_ZERO.
 *
 *     ng_optimizer_group(adamw, "*.bias", .weight_decay = NG_ZERO);
 *     ng_optimizer_group(adamw, "head.*", .lr_scale = 10);
 *
 * lr_scale      the rate is that of the optimizer, schedule and all, times this; default 1
 * weight_decay  in place of the optimizer's; default: the optimizer's */
typedef struct {
    double lr_scale, weight_decay;
    const char *pattern;
} ng_optimizer_group_options;
#define ng_optimizer_group(optimizer, ...)                                                         \
    ng_optimizer_group_with(optimizer, NG_NAMED(ng_optimizer_group_options, pattern, __VA_ARGS__))
NG_API ng_status ng_optimizer_group_with(ng_optimizer *optimizer,
                                         ng_optimizer_group_options options);

/* Moves every parameter once. Gradients are spent by it: the next backward pass overwrites them,
 * so that zeroing costs nothing (until then ng_grad still shows them; a pass that fails may leave
 * none). Where no backward pass has reached any parameter since the last step, there is nothing to
 * do: NG_ESTATE. Gradients are taken as they are: NaN moves a weight to NaN (ng_clip_grad_norm
 * refuses it). */
NG_API NG_MUST_CHECK ng_status ng_optimizer_step(ng_optimizer *optimizer);

NG_API double ng_optimizer_lr(const ng_optimizer *optimizer); /* that of the next step */
NG_API ng_status ng_optimizer_set_lr(ng_optimizer *optimizer, double lr); /* the base rate */
NG_API int64_t ng_optimizer_steps(const ng_optimizer *optimizer);         /* taken so far */
NG_API void ng_optimizer_free(ng_optimizer *optimizer);                   /* takes NULL */

/* ---- Gradients of a whole module ----------------------------------------------------------- */

/* Euclidean norm of all unspent gradients together, whatever their size; Inf or NaN where one of
 * them is. NaN on error. */
NG_API double ng_grad_norm(ng_module *module);

/* Scales all gradients by max_norm / (norm + 1e-6) where their norm exceeds max_norm, and returns
 * the norm before. A gradient that is Inf or NaN is NG_EVALUE, which names it: the result is NaN,
 * and no gradient has changed. */
NG_API double ng_clip_grad_norm(ng_module *module, double max_norm);

/* Clamps each element of each gradient to [-limit, limit]. */
NG_API ng_status ng_clip_grad_value(ng_module *module, double limit);

/* Sets every gradient to zero, for loops that do not step. */
NG_API void ng_zero_grads(ng_module *module);

NG_END_C

#endif
