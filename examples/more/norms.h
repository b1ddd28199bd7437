/* The norms that programs compare, by name. */
#ifndef EXAMPLES_NORMS_H
#define EXAMPLES_NORMS_H

#include "options.h"

static inline ng_module *norm_adaptive(int64_t dim) { return ng_adaptive_layer_norm_new(dim); }
static inline ng_module *norm_image_batch(int64_t channels) { return ng_batch_norm_new(channels); }
static inline ng_module *norm_image_layer(int64_t channels)
{
    return ng_layer_norm_new(channels, .channels_first = true); /* over each pixel's channels */
}
static inline ng_module *norm_image_group(int64_t channels)
{
    return ng_group_norm_new(channels % 4 == 0 ? 4 : 1, channels);
}

typedef struct {
    const char *key, *name;
    ng_norm_maker *features, *image; /* for x (..., n), and for images (count, n, height, width) */
} norm_choice;

static const norm_choice norms[] = {{"none", "no norm", ng_norm_none, ng_norm_none},
                                    {"batch", "BatchNorm", ng_norm_batch, norm_image_batch},
                                    {"layer", "LayerNorm", ng_norm_layer, norm_image_layer},
                                    {"group", "GroupNorm", NULL, norm_image_group},
                                    {"rms", "RMSNorm", ng_norm_rms, NULL},
                                    {"adaptive", "AdaptiveLayerNorm", norm_adaptive, NULL},
                                    {"scale", "ScaleNorm", ng_norm_scale, NULL},
                                    {"tanh", "DynamicTanh", ng_norm_dynamic_tanh, NULL}};
enum { NORMS = sizeof norms / sizeof norms[0] };

/* Returns the norm at a place of a comma-separated list of keys, or NULL after its end. */
static inline const norm_choice *norm_in_list(const char *list, int place)
{
    for (int i = 0; i < NORMS; i++)
        if (place_in_list(list, norms[i].key, strlen(norms[i].key)) == place) return &norms[i];
    return NULL;
}

#endif
