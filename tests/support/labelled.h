/* The data set of the group trainings, in the suite and on MPI. */
#ifndef NG_TESTS_LABELLED_H
#define NG_TESTS_LABELLED_H

#include <normgrad.h>

/* Random x (samples, features): label 2 where the first feature is above the second, else 0 and 1
 * in turns. */
static inline ng_dataset *labelled_data(ng_dtype dtype, int samples, int features)
{
    ng_rng rng = ng_rng_seeded(5);
    ng_tensor *x = ng_normal_new(dtype, NG_SHAPE(samples, features), 0, 1, &rng);
    ng_tensor *y = ng_zeros_new(NG_I64, NG_SHAPE(samples));
    for (int i = 0; i < samples; i++) ng_set(y, i, ng_at(x, i, 0) > ng_at(x, i, 1) ? 2 : i % 2);
    ng_dataset *data = ng_dataset_from(x, y);
    ng_tensor_free(x), ng_tensor_free(y);
    return data;
}

#endif
