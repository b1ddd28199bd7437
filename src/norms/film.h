/* What the norms with .condition share: a FiLM as their child modulation. */
#ifndef NG_NORMS_FILM_H
#define NG_NORMS_FILM_H

#include "nn/module.h"

/* Registers it, so that self needs a condition; NULL, and nothing is registered, if
 * options.condition is 0. */
ng_module *ng_add_modulation(ng_module *self, ng_film_new_options options);

/* y scaled and shifted by it; y itself if it is NULL. */
ng_tensor *ng_modulate(ng_module *modulation, ng_tape *tape, ng_tensor *y, const ng_inputs *in);

#endif
