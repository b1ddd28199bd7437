/* The window of a convolution or a pooling as text, for the table of settings. */
#ifndef NG_NN_WINDOW_H
#define NG_NN_WINDOW_H

#include <normgrad/ops.h>

/* "kernel=3, stride=2, padding=1 x 0": what was given of an ng_window_options. */
void ng_print_window(const void *window, char *text, size_t bytes);

#endif
