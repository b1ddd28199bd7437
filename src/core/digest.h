/* Digests of bytes. */
#ifndef NG_CORE_DIGEST_H
#define NG_CORE_DIGEST_H

#include <stddef.h>
#include <stdint.h>

/* FNV-1a of some bytes, continued from an earlier digest or from NG_DIGEST_START. */
#define NG_DIGEST_START UINT64_C(0xcbf29ce484222325)
static inline uint64_t ng_digest(uint64_t digest, const void *bytes, size_t count)
{
    const unsigned char *byte = bytes;
    for (size_t i = 0; i < count; i++) digest = (digest ^ byte[i]) * UINT64_C(0x100000001b3);
    return digest;
}

#endif
