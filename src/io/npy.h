/* Arrays as NumPy's files have them. */
#ifndef NG_IO_NPY_H
#define NG_IO_NPY_H

#include "io/file.h"
#include "io/stored.h"
#include "io/unpack.h"

/* What stands before a tensor's elements in a .npy file. */
void ng_npy_print_header(ng_text *text, const ng_tensor *x);

/* What becomes of an array's dtype: as ng_tensor_load_npy says; the one that is asked for; or int64
 * for whole numbers and for others the one that is asked for. */
typedef enum { NG_NPY_OWN, NG_NPY_FEATURES, NG_NPY_LABELS } ng_npy_role;

/* The tensor of a .npy file of `size` bytes, yours. Elements go into it as they come, so that there
 * is no second copy. NG_EPARSE, or NG_EVALUE if an element does not fit; `name` is for messages. */
ng_tensor *ng_npy_read(ng_source *source, int64_t size, const char *name, ng_npy_role role,
                       ng_dtype dtype);

#endif
