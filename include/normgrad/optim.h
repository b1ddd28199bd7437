/* Optimizers: move a module's parameters along their gradients.
 *
 *     ng_schedule cosine = NG_SCHEDULE(.kind = NG_SCHEDULE_COSINE, .warmup = 100, .steps = 900);
 *     ng_optimizer *adamw = ng_adamw_new(net, 0.01, .lr = 3e-4, .schedule = cosine);
 *     ng_optimizer_set_decay(adamw, "*.bias", 0);
 *     for (int step = 0; step < 1000; step++, ng_tape_reset(tape)) {
 *         ng_tensor *loss = ng_cross_entropy(tape, ng_forward(net, tape, x), labels);
 *         if (ng_backward(tape, loss)) break;
 *         ng_clip_grad_norm(net, 1);
 *         if (ng_failed() || ng_optimizer_step(adamw)) break;
 *     }
 *     ng_optimizer_free(adamw);
 *
 *     ng_sgd_new(net)                          w -= lr g, with momentum
 *     ng_adam_new(net)                         w -= lr m / (sqrt(v) + eps)
 *     ng_adamw_new(net, decay)                 Adam with decoupled weight decay
 *     ng_rmsprop_new(net)                      w -= lr g / (sqrt(s) + eps)
 *     ng_lion_new(net)                         w -= lr sign(c)
 *     ng_lars_new(net)                         SGD with steps in proportion to |w|
 *     ng_lamb_new(net, decay)                  Adam with steps in proportion to |w|
 *     ng_muon_new(net)                         momentum made orthogonal, for matrices
 *     ng_optimizer_set_decay(optimizer, pattern, decay)   another decay for some parameters
 *     ng_optimizer_scale_lr(optimizer, pattern, factor)   another rate for some parameters
 *     ng_optimizer_step(optimizer)             moves the parameters
 *     ng_optimizer_set_lr(optimizer, lr)       another base rate
 *     ng_clip_grad_norm(net, max)              scales gradients down to a norm
 *     ng_grad_norm(net)                        their norm
 */
#ifndef NORMGRAD_OPTIM_H
#define NORMGRAD_OPTIM_H

#include <normgrad/nn.h>

NG_BEGIN_C

/* ---- Learning-rate schedules ---------------------------------------------------------------
 *
 * A schedule gives the factor of the base rate at each step (0, 1, 2...). During a warm-up of w
 * steps the factor rises linearly, (step + 1) / w; the schedule itself begins at step w. */

/* How the rate changes. */
typedef enum {
    NG_SCHEDULE_CONSTANT = 0, /* 1 */
    NG_SCHEDULE_STEP,         /* factor^floor(step / every) */
    NG_SCHEDULE_COSINE,       /* floor + (1 - floor) (1 + cos(pi step / steps)) / 2, then floor */
    NG_SCHEDULE_LINEAR        /* from 1 to floor over `steps`, then floor */
} ng_schedule_kind;

/* A schedule, for the setting .schedule of an optimizer:
 *     ng_adam_new(net, .schedule = NG_SCHEDULE(.kind = NG_SCHEDULE_COSINE, .steps = 900)) */
typedef struct {
    ng_schedule_kind kind; /* default NG_SCHEDULE_CONSTANT */
    int64_t warmup;        /* w, default 0 */
    int64_t steps;         /* NG_SCHEDULE_COSINE and _LINEAR: length without the warm-up */
    int64_t every;         /* NG_SCHEDULE_STEP: steps between two changes */
    double factor;         /* NG_SCHEDULE_STEP: default 0.1 */
    double floor;          /* NG_SCHEDULE_COSINE and _LINEAR: the last factor; default 0 */
} ng_schedule;
#define NG_SCHEDULE(...) NG_STRUCT(ng_schedule, __VA_ARGS__)

/* The factor at a step. */
NG_API double ng_schedule_factor(const ng_schedule *schedule, int64_t step);

/* ---- Optimizers ----------------------------------------------------------------------------
 *
 * An optimizer is made for one module, which must outlive it. In the formulas w is a parameter, g
 * its gradient, and |x| the Euclidean norm of the whole tensor. .lr is the base rate, which
 * .schedule changes by step. Settings without a comment have default 0 or false.
 *
 * Each step moves the parameters that the module has at that time. A parameter stays if it is
 * frozen, or if no gradient has arrived since this optimizer's last step. A parameter that was
 * added later starts with zero state. If two optimizers have the same parameter, both use its
 * gradient. The dtype of the module may change before the first step only.
 *
 * State (velocity, moments) and squared gradients below the smallest normal number become 0. Adam,
 * AdamW, LAMB and RMSProp clamp a finite gradient to -2^63 .. 2^63 in float (2^511 in double), so
 * that its square is finite; their next steps are then small until the squares have decayed. LARS,
 * LAMB and Muon sum squares: their norms in double are right from 1e-150 to 1e150, and count as 0
 * below 1e-162. */

/* Made by ng_sgd_new, ng_adam_new... */
typedef struct ng_optimizer ng_optimizer;

/* SGD:
 *     g += weight_decay w;  v = momentum v + (1 - dampening) g, at the first step v = g
 *     w -= lr (nesterov ? g + momentum v : v) */
typedef struct {
    double lr; /* default 0.01 */
    double momentum, dampening, weight_decay;
    bool nesterov;
    ng_schedule schedule; /* of lr */
    ng_module *module;
} ng_sgd_new_options;
#define ng_sgd_new(...) ng_sgd_new_with(NG_NAMED(ng_sgd_new_options, module, __VA_ARGS__))
NG_API ng_optimizer *ng_sgd_new_with(ng_sgd_new_options options);

/* Adam, in step t = 1, 2...; Kingma & Ba 2015:
 *     m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2
 *     w -= lr (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps)
 * Adam adds weight_decay w to g. AdamW leaves g alone and first does w -= lr weight_decay w
 * (Loshchilov & Hutter 2019): ng_adamw_new(net, 0.01, .lr = 3e-4) has PyTorch's decay. With
 * .amsgrad the largest v so far takes the place of v, so that the rate of a weight does not grow
 * (Reddi, Kale & Kumar 2018; with the bias correction, as in PyTorch). */
typedef struct {
    double lr;           /* default 1e-3 */
    double beta1, beta2; /* default 0.9, 0.999 */
    double eps;          /* default 1e-8 */
    double weight_decay;
    bool amsgrad;
    ng_schedule schedule; /* of lr */
    ng_module *module;
} ng_adam_new_options;
#define ng_adam_new(...) ng_adam_new_with(NG_NAMED(ng_adam_new_options, module, __VA_ARGS__))
NG_API ng_optimizer *ng_adam_new_with(ng_adam_new_options options);
typedef struct {
    double lr;           /* default 1e-3 */
    double beta1, beta2; /* default 0.9, 0.999 */
    double eps;          /* default 1e-8 */
    bool amsgrad;
    ng_schedule schedule; /* of lr */
    double weight_decay;
} ng_adamw_new_options;
#define ng_adamw_new(module, ...)                                                                  \
    ng_adamw_new_with(module, NG_NAMED(ng_adamw_new_options, weight_decay, __VA_ARGS__))
NG_API ng_optimizer *ng_adamw_new_with(ng_module *module, ng_adamw_new_options options);

/* RMSProp; Tieleman & Hinton 2012:
 *     s = alpha s + (1 - alpha) g^2
 *     v = momentum v + g / (sqrt(s) + eps);  w -= lr v
 * With .centered the square of the running mean of g is subtracted from s under the root. */
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

/* Lion: steps of one size by the sign of a moving average of gradients. Chen et al. 2023,
 * arXiv 2302.06675, algorithm 2:
 *
 *     c = b1 m + (1 - b1) g;  w -= lr (sign(c) + weight_decay w);  m = b2 m + (1 - b2) g
 *
 * The paper takes an lr 3 to 10 times smaller than AdamW's and a decay that much larger. */
typedef struct {
    double lr;           /* default 1e-4 */
    double beta1, beta2; /* default 0.9, 0.99 */
    double weight_decay;
    ng_schedule schedule; /* of lr */
    ng_module *module;
} ng_lion_new_options;
#define ng_lion_new(...) ng_lion_new_with(NG_NAMED(ng_lion_new_options, module, __VA_ARGS__))
NG_API ng_optimizer *ng_lion_new_with(ng_lion_new_options options);

/* LARS: SGD whose step on each parameter is in proportion to the parameter's norm, for large
 * batches. You, Gitman & Ginsburg 2017, arXiv 1708.03888, algorithm 1:
 *
 *     r = trust |w| / (|g| + weight_decay |w|)
 *     v = momentum v + lr r (g + weight_decay w);  w -= v
 *
 * r is 1 if |w| or the denominator is 0. With .matrices_only r is 1 also for parameters of fewer
 * than two dimensions (biases, gamma, beta), as is usual in large-batch training. */
typedef struct {
    double lr;       /* default 1 */
    double momentum; /* default 0.9 */
    double trust;    /* default 0.001 */
    double weight_decay;
    bool matrices_only;
    ng_schedule schedule; /* of lr */
    ng_module *module;
} ng_lars_new_options;
#define ng_lars_new(...) ng_lars_new_with(NG_NAMED(ng_lars_new_options, module, __VA_ARGS__))
NG_API ng_optimizer *ng_lars_new_with(ng_lars_new_options options);

/* LAMB: Adam whose step on each parameter has the parameter's norm times lr. You et al. 2020,
 * arXiv 1904.00962, algorithm 2, with phi(z) = z; m, v and t as in Adam:
 *
 *     u = (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps) + weight_decay w
 *     w -= lr (|w| / |u|) u
 *     ng_lamb_new(net, 0.01, .matrices_only = true)
 *
 * The ratio is 1 if one of the norms is 0; .matrices_only as in LARS. */
typedef struct {
    double lr;           /* default 1e-3 */
    double beta1, beta2; /* default 0.9, 0.999 */
    double eps;          /* default 1e-6 */
    bool matrices_only;
    ng_schedule schedule; /* of lr */
    double weight_decay;
} ng_lamb_new_options;
#define ng_lamb_new(module, ...)                                                                   \
    ng_lamb_new_with(module, NG_NAMED(ng_lamb_new_options, weight_decay, __VA_ARGS__))
NG_API ng_optimizer *ng_lamb_new_with(ng_module *module, ng_lamb_new_options options);

/* Muon: momentum whose singular values are brought near 1 by a Newton-Schulz iteration. Jordan et
 * al. 2024, https://kellerjordan.github.io/posts/muon. For weights (rows, columns):
 *
 *     v = momentum v + g;  U = g + momentum v, with .heavy_ball U = v
 *     X = U / (|U| + 1e-7);  `steps` times:  S = X X',  X = 3.4445 X + (-4.7750 S + 2.0315 S^2) X
 *     w -= lr (weight_decay w + sqrt(max(1, rows / columns)) X)
 *
 * AdamW moves all other parameters, with the rate adam_scale lr and with beta1, beta2 and eps. The
 * authors use AdamW also for the matrices of embeddings and of the last layer; here Muon moves
 * them. */
typedef struct {
    double lr;           /* default 0.02 */
    double momentum;     /* default 0.95 */
    double weight_decay; /* of all parameters */
    int steps;           /* default 5 */
    bool heavy_ball;
    double adam_scale;    /* default 0.015 */
    double beta1, beta2;  /* default 0.9, 0.95 */
    double eps;           /* default 1e-10 */
    ng_schedule schedule; /* of lr */
    ng_module *module;
} ng_muon_new_options;
#define ng_muon_new(...) ng_muon_new_with(NG_NAMED(ng_muon_new_options, module, __VA_ARGS__))
NG_API ng_optimizer *ng_muon_new_with(ng_muon_new_options options);

/* Another weight decay, or a factor of the scheduled rate, for the parameters whose whole name
 * matches a pattern, in which * stands for any characters:
 *
 *     ng_optimizer_set_decay(adamw, "*.bias", 0);
 *     ng_optimizer_scale_lr(adamw, "head.*", 10);
 *
 * If several patterns match, the last one given counts. A pattern holds for layers that are added
 * later too. NG_EVALUE if no parameter matches. */
NG_API ng_status ng_optimizer_set_decay(ng_optimizer *optimizer, const char *pattern, double decay);
NG_API ng_status ng_optimizer_scale_lr(ng_optimizer *optimizer, const char *pattern, double factor);

/* A projection keeps parameters in a set, such as that of weights with rows of length 1. A step
 * calls it for each parameter that it has moved, with the parameter's path and the `context` given
 * to ng_optimizer_set_projection. It may write the tensor's values in any way, also through
 * ng_data_f32 without ng_touch, and returns NG_OK or the status of an error. */
typedef ng_status ng_projection(void *context, const char *name, ng_tensor *weight);

/* Sets the projection, or none (NULL). It changes neither the optimizer's state nor the values that
 * the parameters have now. All ranks of a group must set the same function. ng_training_resume
 * compares whether there is one. */
NG_API ng_status ng_optimizer_set_projection(ng_optimizer *optimizer, ng_projection *projection,
                                             void *context);

/* Moves every parameter that has a new gradient. ng_grad still shows the gradients; the next
 * backward pass overwrites them, so they need not be set to zero. NG_ESTATE if no gradient has
 * arrived since the last step.
 *
 * A gradient of Inf or NaN makes its weight Inf or NaN for good (with Muon, the whole matrix);
 * ng_clip_grad_norm refuses it. If the projection fails, the step has been taken, and the parameter
 * that failed and those after it are not projected. */
NG_API NG_MUST_CHECK ng_status ng_optimizer_step(ng_optimizer *optimizer);

NG_API double ng_optimizer_lr(const ng_optimizer *optimizer); /* that of the next step */
NG_API ng_status ng_optimizer_set_lr(ng_optimizer *optimizer, double lr); /* the base rate */
NG_API int64_t ng_optimizer_steps(const ng_optimizer *optimizer);         /* taken so far */
NG_API void ng_optimizer_free(ng_optimizer *optimizer);                   /* takes NULL */

/* ---- Gradients of a whole module ----------------------------------------------------------- */

/* The Euclidean norm of all gradients that no step has used yet, computed without overflow. NaN on
 * error. */
NG_API double ng_grad_norm(ng_module *module);

/* The Euclidean norm of all parameters of the module, computed in the same way. */
NG_API double ng_parameter_norm(ng_module *module);

/* Scales these gradients by max_norm / (norm + 1e-6) if their norm is above max_norm, and returns
 * the norm before. If an element is Inf or NaN, it returns NaN and changes no gradient; NG_EVALUE
 * names the parameter. */
NG_API double ng_clip_grad_norm(ng_module *module, double max_norm);

/* Clamps each element of each gradient to [-limit, limit]. */
NG_API ng_status ng_clip_grad_value(ng_module *module, double limit);

/* Sets every gradient to zero: for a network that has got gradients and takes no step, such as the
 * critic after a step of the generator. */
NG_API void ng_zero_grads(ng_module *module);

NG_END_C

#endif
