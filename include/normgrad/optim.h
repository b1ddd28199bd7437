/* Optimizers: move a module's parameters along their gradients. */
#ifndef NORMGRAD_OPTIM_H
#define NORMGRAD_OPTIM_H

#include <normgrad/nn.h>

NG_BEGIN_C

/* ---- Learning-rate schedules ---------------------------------------------------------------
 *
 * A schedule gives the factor of the base rate at each step (0, 1, 2...). During a warm-up of w
 * steps the factor rises linearly, (step + 1) / w; the schedule itself begins at step w. */
typedef enum {
    NG_SCHEDULE_CONSTANT = 0, /* 1 */
    NG_SCHEDULE_STEP,         /* factor^floor(step / every) */
    NG_SCHEDULE_COSINE,       /* floor + (1 - floor) (1 + cos(pi step / steps)) / 2, then floor */
    NG_SCHEDULE_LINEAR        /* from 1 to floor over `steps`, then floor */
} ng_schedule_kind;
typedef struct {
    ng_schedule_kind kind; /* default NG_SCHEDULE_CONSTANT */
    int64_t warmup;        /* w, default 0 */
    int64_t steps;         /* cosine, linear: length without warm-up */
    int64_t every;         /* step: steps between two changes */
    double factor;         /* step: default 0.1 */
    double floor;          /* cosine, linear: the last factor */
} ng_schedule;
NG_API double ng_schedule_factor(const ng_schedule *schedule, int64_t step);

/* ---- Optimizers ----------------------------------------------------------------------------
 *
 * An optimizer is made for one module, which must outlive it. Each step moves the parameters that
 * the module has at that time: parameters of a layer that was added later start with zero state.
 * A parameter is not moved if it is frozen, or if no gradient has arrived since this optimizer's
 * last step. Two optimizers of one parameter both use the gradient of one backward pass. The dtype
 * of the module may change before the first step; later that is an error.
 *
 * State (velocity, moments) and squared gradients below the smallest normal number of their dtype
 * become 0: subnormal numbers would slow later steps down. Adam, AdamW and RMSProp clamp a finite
 * gradient to -2^63 .. 2^63 in float (2^511 in double), so that its square is finite. After one
 * that large their steps are small until the squares have decayed. */
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

/* Sets lr_scale and weight_decay for the parameters whose whole name matches a pattern, in which *
 * matches any characters. If several patterns match, the last one given counts. They hold for
 * layers that are added later too. NG_EVALUE if no parameter matches, or if nothing is set: a decay
 * of 0 is NG_ZERO.
 *
 *     ng_optimizer_group(adamw, "*.bias", .weight_decay = NG_ZERO);
 *     ng_optimizer_group(adamw, "head.*", .lr_scale = 10);
 *
 * lr_scale      factor of the optimizer's scheduled rate; default 1
 * weight_decay  default: that of the optimizer */
typedef struct {
    double lr_scale, weight_decay;
    const char *pattern;
} ng_optimizer_group_options;
#define ng_optimizer_group(optimizer, ...)                                                         \
    ng_optimizer_group_with(optimizer, NG_NAMED(ng_optimizer_group_options, pattern, __VA_ARGS__))
NG_API ng_status ng_optimizer_group_with(ng_optimizer *optimizer,
                                         ng_optimizer_group_options options);

/* Moves every parameter that has a new gradient. The gradients are then used: ng_grad still shows
 * them, and the next backward pass overwrites them, so they need not be set to zero. NG_ESTATE if
 * no gradient has arrived since the last step. A NaN in a gradient moves its weight to NaN
 * (ng_clip_grad_norm refuses it). */
NG_API NG_MUST_CHECK ng_status ng_optimizer_step(ng_optimizer *optimizer);

NG_API double ng_optimizer_lr(const ng_optimizer *optimizer); /* that of the next step */
NG_API ng_status ng_optimizer_set_lr(ng_optimizer *optimizer, double lr); /* the base rate */
NG_API int64_t ng_optimizer_steps(const ng_optimizer *optimizer);         /* taken so far */
NG_API void ng_optimizer_free(ng_optimizer *optimizer);                   /* takes NULL */

/* ---- Gradients of a whole module ----------------------------------------------------------- */

/* Euclidean norm of all gradients that no optimizer has used, computed without overflow; Inf or NaN
 * if an element is. NaN on error. */
NG_API double ng_grad_norm(ng_module *module);

/* Scales all these gradients by max_norm / (norm + 1e-6) if their norm exceeds max_norm, and
 * returns the norm before. If an element is Inf or NaN, that is NG_EVALUE, which names the
 * parameter; the result is NaN and no gradient has changed. */
NG_API double ng_clip_grad_norm(ng_module *module, double max_norm);

/* Clamps each element of each gradient to [-limit, limit]. */
NG_API ng_status ng_clip_grad_value(ng_module *module, double limit);

/* Sets every gradient to zero, for loops that do not step. */
NG_API void ng_zero_grads(ng_module *module);

NG_END_C

#endif
