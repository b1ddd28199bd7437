/* Convolutions and transposed convolutions. */
#ifndef NG_OPS_CONV_H
#define NG_OPS_CONV_H

#include "ops/window.h"

/* The window of a convolution, whose kernel its weight has, from options of these names. */
#define NG_CONV_WINDOW(o)                                                                          \
    {                                                                                              \
        .stride = (o).stride, .stride_h = (o).stride_h, .stride_w = (o).stride_w,                  \
        .padding = (o).padding, .padding_h = (o).padding_h, .padding_w = (o).padding_w,            \
        .dilation = (o).dilation, .dilation_h = (o).dilation_h, .dilation_w = (o).dilation_w       \
    }
#define NG_CONV_LINE(o)                                                                            \
    {                                                                                              \
        .stride_w = (o).stride, .padding_w = (o).padding, .dilation_w = (o).dilation               \
    }

/* Whether a transposed convolution's output_padding is from 0 to stride - 1. */
bool ng_output_padding_ok(const char *function, int64_t output_padding, int64_t stride);

/* A call of a convolution, or of a transposed one, over images or lines. */
typedef struct {
    const char *function;
    ng_tensor *x, *weight, *bias; /* bias may be NG_NONE */
    int axes;                     /* 2 of images, 1 of lines */
    int64_t groups;
    ng_window_options window;  /* without the kernel; for lines the settings that end in _w */
    int64_t output_padding[2]; /* transposed: of rows and columns */
} ng_conv_call;

/* The result of the call. */
ng_tensor *ng_convolution(ng_tape *tape, ng_conv_call call);
ng_tensor *ng_transposed_convolution(ng_tape *tape, ng_conv_call call);

/* Whether operands and groups are in order; then fills in the window's kernel and the default of
 * groups. The result has as many channels as weight's dimension `outputs`: 0, or of a transposed
 * convolution 1, times the groups. */
bool ng_conv_accepts(ng_tape *tape, ng_conv_call *call, int outputs);

/* Lines (N, C, L) as images (N, C, 1, L) and back; images as they are. */
ng_tensor *ng_conv_as_images(ng_tape *tape, ng_tensor *x, const ng_conv_call *call);
ng_tensor *ng_conv_as_given(ng_tape *tape, ng_tensor *y, const ng_conv_call *call);

/* The gradient to the weight of a convolution of x (N, C, H, W), from dy (N, O, OH, OW). */
ng_tensor *ng_conv2d_dweight(ng_tape *tape, ng_tensor *x, ng_tensor *dy,
                             const ng_conv_shape *shape);

/* A call of a convolution of that shape, or of its transposed one, for rules. */
ng_conv_call ng_conv_call_of(ng_tensor *x, ng_tensor *weight, const ng_conv_shape *shape);

#endif
