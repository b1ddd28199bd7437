/* What ng_module_fold changes in a layer: its own fields and settings. */
#ifndef NG_NN_FOLD_H
#define NG_NN_FOLD_H

#include "nn/module.h"

typedef struct {
    ng_tensor **weight, **bias; /* what they point to may be NG_NONE */
    bool *left_out;             /* of a layer with weights no_bias, of a norm no_affine */
    int64_t features;           /* of a layer with weights what it gives, of a norm what it takes */
    ng_tensor *mean, *var;      /* running statistics; NULL: not of a norm over the batch */
    double eps;                 /* with these */
    const char *never;          /* why the norm cannot be folded, or NULL */
} ng_fold_part;

/* Whether the module is such a layer, and its part. */
bool ng_linear_part(ng_module *module, ng_fold_part *part);
bool ng_conv_part(ng_module *module, ng_fold_part *part); /* not a transposed one */
bool ng_batch_norm_part(ng_module *module, ng_fold_part *part);
bool ng_layer_norm_part(ng_module *module, ng_fold_part *part);
bool ng_rms_norm_part(ng_module *module, ng_fold_part *part);

/* Makes the module what ng_norm_none gives. It has no entries any more. */
void ng_become_none(ng_module *module);

#endif
