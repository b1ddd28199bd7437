/* The window of a convolution or a pooling as text. */
#ifndef NG_NN_WINDOW_H
#define NG_NN_WINDOW_H

#include <normgrad/ops.h>

/* "kernel=3, stride=2, padding=1 x 0": what was given. */
typedef struct {
    char text[192];
} ng_window_print;
ng_window_print ng_window_text(const ng_window_options *window);

#endif
