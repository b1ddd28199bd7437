/* The window of a convolution or a pooling, as modules take and describe it. */
#ifndef NG_NN_WINDOW_H
#define NG_NN_WINDOW_H

#include <normgrad/ops.h>

/* Whether kernels are positive and no setting is negative; else an error naming the option. */
bool ng_window_accepted(const char *function, const ng_window_options *window);

/* "kernel=3, stride=2, padding=1 x 0": what was given. */
typedef struct {
    char text[192];
} ng_window_print;
ng_window_print ng_window_text(const ng_window_options *window);

#endif
