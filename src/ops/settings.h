/* Checks of settings that an op shares with the layer that calls it: the layer refuses them when it
 * is made, the op when it is called. Each returns false with an error of `function`. */
#ifndef NG_OPS_SETTINGS_H
#define NG_OPS_SETTINGS_H

#include <normgrad/ops.h>

/* Whether eps is finite and at least 0. */
bool ng_norm_eps_ok(const char *function, double eps);

/* Whether eps is finite and at least 0, and 0 <= momentum <= 1. */
bool ng_batch_settings_ok(const char *function, double eps, double momentum);

/* Whether eps, .partial, .rms and .unbiased go together; eps and .partial have no default here. */
bool ng_row_norm_settings_ok(const char *function, const ng_row_norm_options *options);

/* Whether alpha, beta and k are at least 0 and size is positive; they have no default here. */
bool ng_local_response_settings_ok(const char *function,
                                   const ng_local_response_norm_options *options);

/* Whether `groups` divides the number of channels. */
bool ng_groups_divide(const char *function, int64_t groups, int64_t channels);

/* Whether `heads` divides the number of features, and kv_heads the number of heads. */
bool ng_heads_divide(const char *function, int64_t heads, int64_t features);
bool ng_kv_heads_divide(const char *function, int64_t kv_heads, int64_t heads);

/* Whether at most one of two settings is given. */
bool ng_option_apart(const char *function, const char *one, bool has_one, const char *other,
                     bool has_other);

/* Whether a setting of this name is finite and above 0. */
bool ng_above_zero(const char *function, const char *name, double value);

/* Whether the mode is known, and .align_corners is given only with NG_LINEAR. */
bool ng_resize_mode_ok(const char *function, ng_interpolation mode, bool align_corners);

/* Whether a transposed convolution's output_padding is from 0 to stride - 1. */
bool ng_output_padding_ok(const char *function, int64_t output_padding, int64_t stride);

#endif
