/* What a data set is, for the readers that make one. */
#ifndef NG_IO_DATASET_H
#define NG_IO_DATASET_H

#include "core/tensor.h"
#include <normgrad/data.h>

/* A data set that takes over x (count, ...) and y (count, ...) or NG_NONE, also where it fails;
 * NULL x or y is passed on. */
ng_dataset *ng_dataset_adopt(const char *function, ng_tensor *x, ng_tensor *y);

/* order[i] is the sample that is handed out as number i: a permutation of 0 .. count - 1. */
int64_t *ng_dataset_order(ng_dataset *dataset);

#endif
