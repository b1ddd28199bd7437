/* Windows over images. */
#ifndef NG_OPS_WINDOW_H
#define NG_OPS_WINDOW_H

#include "ops/op.h"

/* Whether x is (N, C, H, W), or (N, C, L); else an error. */
bool ng_is_image(const char *function, const ng_tensor *x);
bool ng_is_line(const char *function, const ng_tensor *x);

/* The window with all defaults filled in, over images (N, C, H, W) or lines (N, C, L), images of
 * one row; windows->planes is the number of channels of all images. False with an error for a
 * window that does not fit. */
bool ng_windows_of(const char *function, ng_shape image, const ng_window_options *window,
                   ng_windows *windows);

/* The settings alone: kernel, stride, padding and dilation. */
bool ng_window_settings(const char *function, const ng_window_options *window, ng_windows *windows);

/* Windows as options, for the definitions. */
ng_window_options ng_window_of(const ng_windows *windows);

#endif
