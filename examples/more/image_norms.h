/* The norms that the convolutional example programs compare. */
#ifndef EXAMPLES_IMAGE_NORMS_H
#define EXAMPLES_IMAGE_NORMS_H

#include <normgrad.h>

typedef struct {
    const char *key, *name;
    ng_module *(*make)(int64_t channels); /* NULL: no layer */
} norm_choice;

static inline ng_module *make_batch(int64_t channels) { return ng_batch_norm_new(channels); }
static inline ng_module *make_layer(int64_t channels)
{
    return ng_layer_norm_new(channels, .channels_first = true); /* over each pixel's channels */
}
static inline ng_module *make_group(int64_t channels)
{
    return ng_group_norm_new(channels % 4 == 0 ? 4 : 1, channels);
}

static const norm_choice norms[] = {{"none", "no norm", NULL},
                                    {"batch", "BatchNorm", make_batch},
                                    {"layer", "LayerNorm", make_layer},
                                    {"group", "GroupNorm", make_group}};
enum { NORMS = sizeof norms / sizeof norms[0] };

#endif
