/* Data sets, for the readers that make them. */
#ifndef NG_IO_DATASET_H
#define NG_IO_DATASET_H

#include "core/tensor.h"
#include "io/file.h"
#include <normgrad/data.h>

/* Makes a data set that owns x (count, ...) and y, which is (count, ...) or NG_NONE. On failure,
 * and if one of them is NULL, it frees both and returns NULL. */
ng_dataset *ng_dataset_adopt(const char *function, ng_tensor *x, ng_tensor *y);

/* Whether a reader's scale is finite and its dtype float32 or float64. */
bool ng_dataset_features_accepted(const char *function, double scale, ng_dtype dtype);

/* Computes the mean and the deviation of each feature of x, rows of `features` elements; false with
 * an error if one is not finite. */
bool ng_feature_statistics(const char *function, const ng_tensor *x, int64_t features, double *mean,
                           double *deviation);

/* Multiplies x by `scale`. NG_EVALUE if a finite element does not stay finite. */
bool ng_dataset_scale(ng_origin origin, ng_tensor *x, double scale);

#endif
