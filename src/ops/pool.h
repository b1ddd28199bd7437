/* Max and average pooling. */
#ifndef NG_OPS_POOL_H
#define NG_OPS_POOL_H

#include "ops/window.h"

/* A call of max or average pooling: by windows of images (N, C, H, W) or of lines (N, C, L), whose
 * window is one of both directions; or adaptive, to a size. */
typedef struct {
    const char *function;
    ng_window_options window;
    bool max, lines, adaptive;
    ng_shape size;
} ng_pool_call;
ng_tensor *ng_pooled(ng_tape *tape, ng_tensor *x, const ng_pool_call *call);
ng_tensor *ng_adaptive_pooled(ng_tape *tape, ng_tensor *x, const ng_pool_call *call);

/* Whether its settings are in order, and each window has an element that is no padding; whether the
 * size is a positive length, or positive rows and columns. */
bool ng_pool_settings_ok(const ng_pool_call *call);
bool ng_adaptive_size_ok(const ng_pool_call *call);

/* The call of ng_max_pool1d or ng_avg_pool1d with options of ng_pool1d_options. */
#define NG_LINE_POOL_CALL(label, o, is_max)                                                        \
    {                                                                                              \
        .function = label, .max = is_max, .lines = true, .window = {                               \
            .kernel = (o).kernel,                                                                  \
            .stride = (o).stride,                                                                  \
            .padding = (o).padding,                                                                \
            .dilation = (o).dilation,                                                              \
            .ceil = (o).ceil,                                                                      \
            .exclude_padding = (o).exclude_padding                                                 \
        }                                                                                          \
    }

#endif
