/* Shared by the layers that replace the parameter "weight" of a module by a function of it. */
#ifndef NG_NORMS_REPARAMETERIZED_H
#define NG_NORMS_REPARAMETERIZED_H

#include "nn/module.h"

/* The wrapped module and its parameter. */
typedef struct {
    ng_module *inner;
    ng_tensor *weight;
} ng_reparameterized;

/* Finds inner's own parameter "weight"; an error if there is none, or if it has no rows. */
bool ng_reparameterize(const char *function, ng_module *inner, ng_reparameterized *r);

/* The output of the inner module with `weight` in the place of its own. */
ng_tensor *ng_forward_reparameterized(const ng_reparameterized *r, ng_tensor *weight, ng_tape *tape,
                                      const ng_inputs *in);

#endif
