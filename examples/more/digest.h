/* A 64-bit hash of a list of numbers: FNV-1a over 8-byte words. */
#ifndef EXAMPLES_DIGEST_H
#define EXAMPLES_DIGEST_H

#include <normgrad.h>
#include <string.h>

#define DIGEST_START UINT64_C(0xcbf29ce484222325)

/* Returns the digest extended by one word; the first digest is DIGEST_START. The multiplication
 * carries only upwards, so the high half is folded into the low one: otherwise two sign bits would
 * cancel. */
static inline uint64_t digest_of(uint64_t digest, uint64_t word)
{
    digest = (digest ^ word) * UINT64_C(0x100000001b3);
    return digest ^ digest >> 32;
}

static inline uint64_t digest_of_number(uint64_t digest, double number)
{
    uint64_t word;
    memcpy(&word, &number, sizeof word);
    return digest_of(digest, word);
}

static inline uint64_t digest_of_values(uint64_t digest, const ng_tensor *x)
{
    for (int64_t i = 0; i < ng_size(x); i++) digest = digest_of_number(digest, ng_get(x, i));
    return digest;
}

#endif
