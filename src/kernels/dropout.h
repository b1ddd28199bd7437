/* Which of the weights of attention dropout takes out. Each is decided by a seed and the weight's
 * place alone, so that no mask is kept: the backward pass finds the same again, in any order. */
#ifndef NG_KERNELS_DROPOUT_H
#define NG_KERNELS_DROPOUT_H

#include "kernels/kernels.h"

/* What all queries have in common that look at one key. */
typedef struct {
    uint32_t low, high;
} ng_drop_key;

/* The key's own number in SplitMix64's stream (Steele et al. 2014); unit: batch heads + head. */
static inline ng_drop_key ng_drop_key_of(const ng_attention_shape *shape, int64_t unit, int64_t key)
{
    uint64_t z = shape->seed + (uint64_t)(unit * shape->keys + key + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return (ng_drop_key){(uint32_t)z, (uint32_t)(z >> 32)};
}

/* The key's 32 random bits for one query: Wellons' lowbias32, the second half of the key between
 * its rounds. Integers of the lanes' width, which every instruction set multiplies alike. */
static inline uint32_t ng_drop_bits(ng_drop_key key, uint32_t query)
{
    uint32_t x = key.low + query;
    x = (x ^ x >> 16) * 0x7feb352du;
    x = ((x ^ x >> 15) + key.high) * 0x846ca68bu;
    return x ^ x >> 16;
}

/* A weight is dropped where its bits are below this. */
static inline uint32_t ng_drop_limit(const ng_attention_shape *shape)
{
    return (uint32_t)(shape->dropout * 0x1p32);
}

#endif
