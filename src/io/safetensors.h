/* Files in the safetensors format: named arrays, and short texts about them.
 *
 *     header length (u64)
 *     {"__metadata__":{"key":"text",...},
 *      "0.weight":{"dtype":"F32","shape":[128,64],"data_offsets":[0,32768]},...}   and spaces
 *     the elements of all arrays, one after the other, without holes
 *
 * Everything is little-endian. As Python's package writes them, arrays stand in the order of their
 * dtypes, the last of the list below first, and then by name, and the header is a multiple of 8
 * bytes long. */
#ifndef NG_IO_SAFETENSORS_H
#define NG_IO_SAFETENSORS_H

#include "core/tensor.h"

typedef enum {
    NG_STORED_BOOL = 0,
    NG_STORED_U8,
    NG_STORED_I8,
    NG_STORED_I16,
    NG_STORED_U16,
    NG_STORED_F16,
    NG_STORED_BF16,
    NG_STORED_I32,
    NG_STORED_U32,
    NG_STORED_F32,
    NG_STORED_F64,
    NG_STORED_I64,
    NG_STORED_U64
} ng_stored_kind;

typedef struct {
    const char *name;
    ng_stored_kind kind;
    ng_shape shape;
    int64_t size;      /* elements */
    const void *bytes; /* of a file that was read: little-endian; to be written: the machine's */
} ng_stored;

typedef struct {
    const char *key, *text;
} ng_stored_text;

/* ---- Write ---- */

const char *ng_stored_kind_name(ng_stored_kind kind); /* "F32" */

bool ng_is_utf8(const char *text);

/* What is to be written of a tensor. */
ng_stored ng_stored_of(const char *name, const ng_tensor *x);

/* Replaces a file. `arrays` are put into the order of the file; the texts are given in the order of
 * their keys, and a digest of all is added to them under the key "digest". Two arrays of one name,
 * and a name that is no UTF-8 or "__metadata__", are NG_EVALUE. */
ng_status ng_safetensors_write(const char *function, const char *path, ng_stored *arrays, int count,
                               const ng_stored_text *texts, int n_texts);

/* ---- Read ---- */

/* A file in memory, whose header has been checked: sizes are those of the bytes that stand there,
 * no name stands twice. */
typedef struct {
    const char *function, *path; /* for messages */
    char *content;               /* the whole file, with names and texts ended in place */
    ng_stored *arrays;           /* by name */
    ng_stored_text *texts;       /* by key */
    int64_t count, room, n_texts, texts_room;
} ng_safetensors;

/* NG_EIO, or NG_EPARSE with the place; ng_safetensors_close in any case. `verify` wants a digest;
 * one that is there must be right. */
bool ng_safetensors_open(ng_safetensors *file, const char *function, const char *path, bool verify);
void ng_safetensors_close(ng_safetensors *file);

/* Puts the arrays into the order of their names again, once those were changed; NG_EVALUE where two
 * have one. */
bool ng_safetensors_sort(ng_safetensors *file);

/* NULL where there is none. */
const ng_stored *ng_safetensors_find(const ng_safetensors *file, const char *name);
const char *ng_safetensors_text(const ng_safetensors *file, const char *key);

/* Whether every element of a file's array can be one of x, which has its size: no float beyond x's
 * range, no integer that x cannot hold. An error names the array. */
bool ng_stored_fits(const ng_safetensors *file, const ng_stored *stored, const ng_tensor *x);

/* Fills x with a file's array that fits. */
void ng_stored_load(const ng_stored *stored, ng_tensor *x);

/* Copies a file's elements as they are, in the machine's order of bytes. */
void ng_stored_copy(const ng_stored *stored, void *to);

#endif
