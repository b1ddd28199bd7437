/* Compressed data: deflate (RFC 1951), alone and in gzip's frame (RFC 1952). */
#ifndef NG_IO_INFLATE_H
#define NG_IO_INFLATE_H

#include <stdbool.h>
#include <stdint.h>

/* What deflate has packed into `count` bytes, with a zero byte after it; ng_free it. `used` is told
 * how many of them it took; more than `most` bytes are an error. NULL with NG_EPARSE, or NG_ENOMEM,
 * in the name of `function`. Memory grows with what is there, to 1032 times the file's at most. */
char *ng_inflate(const char *function, const char *path, const unsigned char *bytes, int64_t count,
                 int64_t most, int64_t *used, int64_t *size);

/* The content of a gzip file, all members one after the other, each checked against its length and
 * checksum. */
char *ng_gunzip(const char *function, const char *path, const char *bytes, int64_t count,
                int64_t *size);

/* CRC-32 of gzip and zip, continued from an earlier one or from 0. */
uint32_t ng_crc32(uint32_t crc, const void *bytes, int64_t count);

/* As ng_file_read, unpacked where the file is compressed with gzip. */
char *ng_file_read_unpacked(const char *function, const char *path, int64_t *size);

#endif
