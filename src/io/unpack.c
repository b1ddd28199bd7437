/* Bytes as they stand or unpacked by zlib, and gzip files. */
#include "io/unpack.h"
#include <string.h>
#ifdef NG_WITH_ZLIB
#include <zlib.h>
#endif

/* ---- zlib ---------------------------------------------------------------------------------- */

#ifdef NG_WITH_ZLIB

static bool unpack_begin(ng_source *source, ng_packing packing)
{
    z_stream *z = source->zlib = ng_calloc(source->origin.function, 1, sizeof *z);
    if (z && inflateInit2(z, packing == NG_PACKED_GZIP ? 15 + 16 : -15) == Z_OK) return true;
    if (z) ng_refuse(source->origin, NG_ENOMEM, "out of memory");
    ng_free(z);
    source->zlib = NULL;
    return false;
}

static void unpack_end(ng_source *source)
{
    if (source->zlib) inflateEnd(source->zlib);
}

/* zlib counts bytes in 32 bits, so each call gets at most a megabyte. */
static int64_t unpack_some(ng_source *source, void *out, int64_t count)
{
    const int64_t most = 1 << 20, left = source->end - source->next;
    z_stream *z = source->zlib;
    const uInt room = (uInt)(count < most ? count : most);
    z->next_in = (unsigned char *)(uintptr_t)source->next;
    z->avail_in = (uInt)(left < most ? left : most);
    z->next_out = out;
    z->avail_out = room;
    const int result = inflate(z, Z_NO_FLUSH);
    source->next = z->next_in;
    source->ended = result == Z_STREAM_END;
    if (source->ended || result == Z_OK) return room - z->avail_out;
    if (result == Z_BUF_ERROR)
        return ng_refuse(source->origin, NG_EPARSE, "compressed data are cut short"), -1;
    if (result == Z_MEM_ERROR) return ng_refuse(source->origin, NG_ENOMEM, "out of memory"), -1;
    return ng_refuse(source->origin, NG_EPARSE, "compressed data are damaged (%s)",
                     z->msg ? z->msg : "zlib gives no reason"),
           -1;
}

uint32_t ng_crc32(uint32_t crc, const void *bytes, int64_t count)
{
    return (uint32_t)crc32_z(crc, bytes, (size_t)count);
}

#else

static bool unpack_begin(ng_source *source, ng_packing packing)
{
    (void)packing;
    return ng_refuse(source->origin, NG_EPARSE,
                     "compressed, and normgrad was built without zlib. Unpack the file first, or "
                     "install zlib (make deps) and build normgrad again");
}

static void unpack_end(ng_source *source) { (void)source; }

static int64_t unpack_some(ng_source *source, void *out, int64_t count)
{
    (void)source, (void)out, (void)count;
    return -1;
}

uint32_t ng_crc32(uint32_t crc, const void *bytes, int64_t count)
{
    const unsigned char *byte = bytes;
    crc = ~crc;
    for (int64_t i = 0; i < count; i++) {
        crc ^= byte[i];
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
    }
    return ~crc;
}

#endif

/* ---- Sources ------------------------------------------------------------------------------- */

bool ng_source_begin(ng_source *source, ng_origin origin, const void *bytes, int64_t count,
                     ng_packing packing)
{
    const unsigned char *first = bytes;
    *source = (ng_source){.origin = origin, .next = first, .end = first + count};
    return packing == NG_PACKED_NOT || unpack_begin(source, packing);
}

void ng_source_end(ng_source *source)
{
    unpack_end(source);
    ng_free(source->zlib);
}

int64_t ng_source_some(ng_source *source, void *out, int64_t count)
{
    const int64_t left = source->end - source->next;
    int64_t made = 0;
    if (source->zlib) {
        while (made == 0 && count > 0 && !source->ended) made = unpack_some(source, out, count);
    } else {
        made = count < left ? count : left;
        if (made > 0) memcpy(out, source->next, (size_t)made);
        source->next += made;
    }
    if (made > 0) source->crc = ng_crc32(source->crc, out, made);
    return made;
}

bool ng_source_all(ng_source *source, void *out, int64_t count)
{
    unsigned char *next = out;
    while (count > 0) {
        const int64_t made = ng_source_some(source, next, count);
        if (made < 0) return false;
        if (made == 0) return ng_refuse(source->origin, NG_EPARSE, "cut short");
        next += made;
        count -= made;
    }
    return true;
}

/* ---- gzip ---------------------------------------------------------------------------------- */

static bool is_gzip(const char *packed, const char *end)
{
    return end - packed >= 2 && (unsigned char)packed[0] == 0x1f &&
           (unsigned char)packed[1] == 0x8b;
}

/* Adds the content of one member and returns where the member ends, or NULL. zlib compares the
 * checksum. */
static const char *gunzip_member(ng_origin origin, const char *packed, const char *end,
                                 ng_text *out)
{
    unsigned char piece[1 << 14];
    ng_source source;
    int64_t made = -1;
    if (ng_source_begin(&source, origin, packed, end - packed, NG_PACKED_GZIP))
        while ((made = ng_source_some(&source, piece, sizeof piece)) > 0 && !out->failed)
            ng_text_add(out, piece, made);
    ng_source_end(&source);
    return made == 0 && !out->failed ? (const char *)source.next : NULL;
}

/* Returns the content of a gzip file: of all its members, one after the other. Zero bytes at the
 * end are padding. */
static char *gunzip(ng_origin origin, const char *packed, int64_t count, int64_t *size)
{
    ng_text out = {.function = origin.function};
    ng_text_add(&out, "", 0);
    const char *const end = packed + count;
    do {
        packed = gunzip_member(origin, packed, end, &out);
        while (packed && packed < end && *packed == '\0') packed++;
    } while (packed && is_gzip(packed, end));
    if (packed && packed < end)
        ng_refuse(origin, NG_EPARSE, "bytes after its end that are not gzip's");
    *size = out.count;
    if (packed == end) return out.bytes;
    ng_free(out.bytes);
    return NULL;
}

char *ng_file_read_unpacked(const char *function, const char *path, int64_t *size)
{
    char *bytes = ng_file_read(function, path, size);
    if (!bytes || !is_gzip(bytes, bytes + *size)) return bytes;
    char *content = gunzip((ng_origin){function, path}, bytes, *size, size);
    ng_free(bytes);
    return content;
}
