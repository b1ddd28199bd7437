/* A number that tells lists of numbers from others: FNV-1a, word by word, folded. */
#ifndef EXAMPLES_DIGEST_H
#define EXAMPLES_DIGEST_H

#include <normgrad.h>
#include <string.h>

#define DIGEST_START UINT64_C(0xcbf29ce484222325)

/* Goes on from a digest, or from DIGEST_START. A product carries upwards only: the high half goes
 * on top of the low one, where the signs of two numbers would else cancel each other. */
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
