/* What the norms share: checks, statistics, and norms composed of ops. */
#ifndef NG_OPS_NORM_H
#define NG_OPS_NORM_H

#include "ops/op.h"

/* ng_accepts_optional for a norm's x, gamma and beta, of which the last two may be left out. */
bool ng_norm_accepts(const char *function, ng_tape *tape, ng_tensor *const inputs[3]);

/* Whether eps is finite and at least 0. */
bool ng_norm_eps_ok(const char *function, double eps);

/* Whether x is (N, C, ...) with at least 1 element a sample; N may be 0. */
bool ng_has_channels(const char *function, const ng_tensor *x);

/* Whether c is NG_NONE or has the shape that x requires; the same for gamma and beta. */
bool ng_operand_fits(const char *function, const char *name, const ng_tensor *c, ng_shape expected,
                     const ng_tensor *x);
bool ng_affine_fits(const char *function, const ng_tensor *gamma, const ng_tensor *beta,
                    ng_shape expected, const ng_tensor *x);

/* Memory of the tape for the statistics of `count` rows or columns of x; false if there is none. */
bool ng_statistics_new(ng_tape *tape, const ng_tensor *x, int64_t count, bool center,
                       ng_statistics *statistics);

/* rstd = 1 / sqrt(var + eps) */
void ng_inverse_deviation(double *rstd, const double *var, double eps, int64_t n);

/* y = x scaled and shifted per channel, x (N, C, ...); gamma and beta are (C) or NG_NONE. y may be
 * x's data. */
void ng_channel_affine(const ng_tensor *x, const ng_tensor *gamma, const ng_tensor *beta, void *y);

/* The shape in which numbers per channel broadcast against x (N, C, ...), (C, 1...); a tensor (C)
 * in it. */
ng_shape ng_shape_per_channel(const ng_tensor *x);
ng_tensor *ng_per_channel(ng_tape *tape, ng_tensor *c, const ng_tensor *x);

/* x (N, C, ...) as (N, C, positions). */
ng_tensor *ng_by_positions(ng_tape *tape, ng_tensor *x);

/* The axes of x (N, C, ...) but that of the channels. */
ng_axes ng_all_but_channel(const ng_tensor *x);

/* ---- Composed of ops ---------------------------------------------------------------------- */

/* The parts of a composed norm: x less its mean, and 1 / deviation. */
typedef struct {
    ng_tensor *centred, *rstd;
} ng_composed_norm;

/* The deviation is sqrt(sum of squares / divisor + eps), of x less its mean if `center`. */
typedef struct {
    bool center;
    double divisor, eps;
} ng_deviation;

/* Of x over some axes. */
ng_composed_norm ng_compose_norm(ng_tape *tape, ng_tensor *x, ng_axes axes, ng_deviation deviation);

/* y (N, C, ...) scaled and shifted per channel; gamma and beta may be NG_NONE. */
ng_tensor *ng_affine_composed(ng_tape *tape, ng_tensor *y, ng_tensor *gamma, ng_tensor *beta);

/* RMSNorm of each group of neighbouring features, times gamma (features) or NG_NONE. */
ng_tensor *ng_rms_norm_of_groups(ng_tape *tape, ng_tensor *x, ng_tensor *gamma, int64_t groups,
                                 double eps);

/* centred rstd, scaled and shifted per channel, in the shape of x (N, C, ...). */
ng_tensor *ng_composed_output(ng_tape *tape, ng_composed_norm norm, ng_tensor *gamma,
                              ng_tensor *beta, const ng_tensor *x);

#endif
