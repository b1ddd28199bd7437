/* Files in the safetensors format: named arrays, and short texts about them.
 *
 *     header length (u64)
 *     {"__metadata__":{"key":"text",...},
 *      "0.weight":{"dtype":"F32","shape":[128,64],"data_offsets":[0,32768]},...}   and spaces
 *     the elements of all arrays, one after the other, without holes
 *
 * Everything is little-endian. As in the files of Python's package, arrays are sorted by dtype, the
 * last of ng_stored_kind first, and then by name; and the header's length is a multiple of 8. Our
 * files have a text "digest": an FNV-1a of names, shapes, elements and the other texts. */
#ifndef NG_IO_SAFETENSORS_H
#define NG_IO_SAFETENSORS_H

#include "io/stored.h"
#include "nn/module.h"

typedef struct {
    const char *key, *text;
} ng_stored_text;

/* Replaces a file. The arrays, whose names differ, are sorted; the digest is added to the texts. A
 * name that is not UTF-8 or is "__metadata__" is NG_EVALUE. */
ng_status ng_safetensors_write(const char *function, const char *path, ng_stored_list *list,
                               const ng_stored_text *texts, int n_texts);

/* A file in memory. Each array has the bytes that its shape needs. */
typedef struct {
    ng_origin origin;
    char *content; /* the whole file */
    ng_stored_list list;
    ng_stored_text *texts;
    int64_t n_texts, texts_room;
} ng_safetensors;

/* NG_EIO or NG_EPARSE. A digest in the file must be right; with `verify` there must be one.
 * ng_safetensors_close frees what this allocates, also after a failure. */
bool ng_safetensors_open(ng_safetensors *file, const char *function, const char *path, bool verify);
void ng_safetensors_close(ng_safetensors *file);

/* NULL if there is none. */
const char *ng_safetensors_text(const ng_safetensors *file, const char *key);

/* Adds a module's parameters and buffers to a list; false with NG_ENOMEM. */
bool ng_stored_add_module(const char *function, ng_stored_list *list, const char *prefix,
                          const ng_module *module);

/* Pairs a program's arrays with the file's by name. An array with another shape is NG_ESHAPE; with
 * `partial` arrays may be left without a pair, else that is NG_EVALUE. */
bool ng_safetensors_match(ng_safetensors *file, ng_stored_list *list, bool partial);

#endif
