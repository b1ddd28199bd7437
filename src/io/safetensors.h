/* Files in the safetensors format: named arrays, and short texts about them.
 *
 *     header length (u64)
 *     {"__metadata__":{"key":"text",...},
 *      "0.weight":{"dtype":"F32","shape":[128,64],"data_offsets":[0,32768]},...}   and spaces
 *     the elements of all arrays, one after the other, without holes
 *
 * Everything is little-endian. As Python's package writes them, arrays stand in the order of their
 * dtypes, the last of ng_stored_kind first, and then by name, and the header is a multiple of 8
 * bytes long. Our files have a text "digest": an FNV-1a of names, shapes, elements and texts. */
#ifndef NG_IO_SAFETENSORS_H
#define NG_IO_SAFETENSORS_H

#include "io/stored.h"

typedef struct {
    const char *key, *text;
} ng_stored_text;

/* Replaces a file. The arrays are sorted; the texts are given by key, and the digest is added.
 * Two arrays of one name, and a name that is no UTF-8 or "__metadata__", are NG_EVALUE. */
ng_status ng_safetensors_write(const char *function, const char *path, ng_stored *arrays, int count,
                               const ng_stored_text *texts, int n_texts);

/* A file in memory. Its header has been checked: each array has the bytes that its shape promises,
 * and no name stands twice. */
typedef struct {
    ng_origin origin;
    char *content;         /* the whole file; names and texts end with a zero byte */
    ng_stored *arrays;     /* by name */
    ng_stored_text *texts; /* by key */
    int64_t count, room, n_texts, texts_room;
} ng_safetensors;

/* NG_EIO, or NG_EPARSE with the place. A digest in the file must be right; `verify` wants one.
 * ng_safetensors_close frees what it takes, after a failure too. */
bool ng_safetensors_open(ng_safetensors *file, const char *function, const char *path, bool verify);
void ng_safetensors_close(ng_safetensors *file);

/* Sorts the arrays again after their names were changed; NG_EVALUE if two have one name. */
bool ng_safetensors_sort(ng_safetensors *file);

/* NULL if there is none. */
const ng_stored *ng_safetensors_find(const ng_safetensors *file, const char *name);
const char *ng_safetensors_text(const ng_safetensors *file, const char *key);

#endif
