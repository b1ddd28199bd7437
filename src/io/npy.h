/* Arrays as NumPy's files have them. */
#ifndef NG_IO_NPY_H
#define NG_IO_NPY_H

#include "io/file.h"
#include "io/stored.h"
#include "io/unpack.h"

/* The dtype of the tensor: NG_NPY_OWN as ng_tensor_read_npy says; NG_NPY_FEATURES `dtype`;
 * NG_NPY_LABELS int64 for whole numbers and `dtype` for others. */
typedef enum { NG_NPY_OWN, NG_NPY_FEATURES, NG_NPY_LABELS } ng_npy_role;

/* Reads a .npy file of `size` bytes and returns a tensor of yours. There is no second copy of the
 * elements. NG_EPARSE, or NG_EVALUE if an element does not fit. `name` is for messages. */
ng_tensor *ng_npy_read(ng_source *source, int64_t size, const char *name, ng_npy_role role,
                       ng_dtype dtype);

#endif
