/* Arrays as files have them: little-endian, and of more dtypes than tensors. */
#ifndef NG_IO_STORED_H
#define NG_IO_STORED_H

#include "core/tensor.h"
#include "io/file.h"

typedef enum {
    NG_STORED_OTHER = 0, /* a dtype that this library does not read */
    NG_STORED_BOOL,
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
    NG_STORED_U64,
    NG_STORED_KINDS
} ng_stored_kind;

/* An array in memory or in a file. */
typedef struct ng_stored {
    const char *name;
    ng_stored_kind kind;
    const char *dtype; /* as the file writes it */
    ng_shape shape;
    int64_t size;           /* elements */
    int64_t first;          /* of a piece: the index of its first element in the array */
    void *bytes;            /* in the machine's order of bytes */
    ng_tensor *tensor;      /* whose elements these are, or NULL */
    struct ng_stored *pair; /* the file's array for a program's one, and the other way round */
} ng_stored;

/* A list of arrays, which owns their names. */
typedef struct {
    ng_stored *arrays;
    int64_t count, room;
} ng_stored_list;

/* Adds an array with the name prefix + name; false with NG_ENOMEM. */
bool ng_stored_add(const char *function, ng_stored_list *list, const char *prefix, const char *name,
                   ng_stored array);
void ng_stored_free(ng_stored_list *list);

/* Returns the first array of this name, or NULL. */
ng_stored *ng_stored_find(const ng_stored_list *list, const char *name);

/* Returns a name that two arrays have, or NULL. */
const char *ng_stored_twice(const ng_stored_list *list);

int ng_stored_width(ng_stored_kind kind);         /* bytes of an element */
const char *ng_stored_name(ng_stored_kind kind);  /* "F32" */
const char *ng_stored_numpy(ng_stored_kind kind); /* "f4" */

/* The kind with one of these names. */
ng_stored_kind ng_stored_kind_named(const char *name);
ng_stored_kind ng_stored_kind_of(ng_dtype dtype);

/* Reverses the bytes of each element. */
void ng_swap_bytes(void *bytes, int64_t count, int width);

/* Brings elements from little-endian to the machine's order of bytes, or back. */
static inline void ng_little_endian(void *bytes, int64_t count, int width)
{
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    ng_swap_bytes(bytes, count, width);
#else
    (void)bytes, (void)count, (void)width;
#endif
}

/* A tensor as an array without a name. */
ng_stored ng_stored_of(const ng_tensor *x);

/* Calls `take` with pieces of an array's elements, little-endian. */
void ng_stored_pieces(const ng_stored *stored,
                      void (*take)(void *sink, const void *bytes, int64_t count), void *sink);

/* Writes the elements to a file. */
void ng_stored_write(const ng_stored *stored, ng_replacement *file);

/* Returns how many bytes an array of this shape has, or -1 if that is beyond int64. */
int64_t ng_stored_bytes(ng_stored_kind kind, ng_shape shape);

/* Whether x can hold each element: a float must be within its range, an integer must not be
 * rounded. The error names the array and the first element that does not fit. */
bool ng_stored_fits(ng_origin origin, const ng_stored *stored, const ng_tensor *x);

/* Writes element i to x[element]. Call ng_stored_fits first. */
void ng_stored_store(const ng_stored *stored, int64_t i, ng_tensor *x, int64_t element);

/* Fills x, which has the array's shape. Call ng_stored_fits first. */
void ng_stored_load(const ng_stored *stored, ng_tensor *x);

#endif
