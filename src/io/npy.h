/* Arrays as NumPy has them in files. */
#ifndef NG_IO_NPY_H
#define NG_IO_NPY_H

#include "io/file.h"
#include "io/safetensors.h"

/* What stands before a tensor's elements in a .npy file. */
void ng_npy_print_header(ng_text *text, const ng_tensor *x);

/* The elements of a tensor as they stand there, little-endian, in pieces: the next bytes after
 * `*next` elements; 0 at the end. */
size_t ng_npy_piece(const ng_tensor *x, int64_t *next, unsigned char piece[4096]);

/* The array of a .npy file's bytes, which are put in order where they are not; `moved` is memory
 * that this has taken, or NULL: ng_free it once the array is not needed. NG_EPARSE in the name of
 * `function`. */
bool ng_npy_parse(const char *function, const char *path, char *bytes, int64_t size,
                  ng_stored *array, void **moved);

/* A tensor of `dtype` with an array's values; NG_EVALUE where one does not fit. */
ng_tensor *ng_npy_tensor(const char *function, const char *path, const ng_stored *array,
                         ng_dtype dtype);

/* The dtype that an array is read as where no other is asked for. */
ng_dtype ng_npy_dtype(const ng_stored *array);

#endif
