/* Bytes that are handed out in pieces, as they stand or unpacked by zlib. */
#ifndef NG_IO_UNPACK_H
#define NG_IO_UNPACK_H

#include "io/file.h"

typedef enum { NG_PACKED_NOT, NG_PACKED_DEFLATE, NG_PACKED_GZIP } ng_packing;

typedef struct {
    ng_origin origin;
    const unsigned char *next, *end; /* the packed bytes that are left; the caller's */
    uint32_t crc;                    /* checksum of what was handed out */
    void *zlib;                      /* its state, or NULL */
    bool ended;
} ng_source;

/* Begins to hand out `count` bytes. False with NG_ENOMEM, or with NG_EPARSE if they are packed and
 * the library was built without zlib. ng_source_end frees what this allocates, also after a
 * failure. */
bool ng_source_begin(ng_source *source, ng_origin origin, const void *bytes, int64_t count,
                     ng_packing packing);
void ng_source_end(ng_source *source);

/* Hands out at most `count` bytes and returns how many: 0 at the end, -1 with NG_EPARSE if they are
 * damaged. */
int64_t ng_source_some(ng_source *source, void *out, int64_t count);

/* Hands out `count` bytes. NG_EPARSE if there are fewer. */
bool ng_source_all(ng_source *source, void *out, int64_t count);

/* CRC-32 of gzip and zip, continued from an earlier one or from 0. */
uint32_t ng_crc32(uint32_t crc, const void *bytes, int64_t count);

#endif
