/* Our own in place of zlib's, so that make and a C compiler remain enough to read what is given
 * away compressed, MNIST and NumPy's archives, on every machine alike: with a library that may be
 * there or not, programs read a file here and not there. The doubt that this deserves is in the
 * tests: tests/golden/deflate.txt has zlib's own verdict on streams of every kind, right and wrong,
 * each is cut after every byte, and the fuzzers of CSV, IDX and npz send made-up ones. */
#include "io/inflate.h"
#include "io/file.h"
#include <string.h>

/* ---- Bits ---------------------------------------------------------------------------------- */

/* Compressed bytes, whose bits come from the lowest up; and what they have become so far. */
typedef struct {
    const char *function, *path;
    const unsigned char *next, *end;
    uint64_t bits; /* the next ones; zero bits stand where the data have ended */
    int held;      /* how many of them are real; negative once more were used than there are */
    ng_text out;
    int64_t most;
} stream;

static bool damaged(const stream *in, const char *what)
{
    ng_fail(NG_EPARSE, "%s: %s: compressed data: %s", in->function, in->path, what);
    return false;
}

/* Holds 48 bits or more, or all that are left. */
static void refill(stream *in)
{
    while (in->held >= 0 && in->held <= 48 && in->next < in->end) {
        in->bits |= (uint64_t)*in->next++ << in->held;
        in->held += 8;
    }
}

/* The next `count` bits, at most 16. */
static unsigned take(stream *in, int count)
{
    refill(in);
    const unsigned value = (unsigned)(in->bits & ((UINT64_C(1) << count) - 1));
    in->bits >>= count;
    in->held -= count;
    return value;
}

static bool has_ended(const stream *in) { return in->held < 0; }

/* ---- Codes --------------------------------------------------------------------------------- */

enum { LONGEST = 15, SYMBOLS = 288 };

/* A prefix code as a table: the next `width` bits, as they come, give symbol << 4 | length; 0 is no
 * code. */
typedef struct {
    int width;
    uint16_t entry[1 << LONGEST];
} code;

static unsigned reversed(unsigned value, int bits)
{
    unsigned result = 0;
    for (int i = 0; i < bits; i++) result |= (value >> i & 1) << (bits - 1 - i);
    return result;
}

/* The canonical code of some lengths, 0 for a symbol that has none. It has to be complete, but that
 * one code alone may be of one bit. */
static bool make_code(code *made, const uint8_t *lengths, int symbols)
{
    int counts[LONGEST + 1] = {0}, used = 0, left = 1;
    unsigned first[LONGEST + 2] = {0};
    for (int i = 0; i < symbols; i++) counts[lengths[i]]++;
    used = symbols - counts[0];
    counts[0] = 0;
    made->width = 1;
    for (int length = 1; length <= LONGEST; length++) {
        left = 2 * left - counts[length];
        if (left < 0) return false;
        if (counts[length] > 0) made->width = length;
        first[length + 1] = (first[length] + (unsigned)counts[length]) << 1;
    }
    if (left > 0 && (used > 1 || (used == 1 && made->width > 1))) return false;

    const unsigned size = 1u << made->width;
    memset(made->entry, 0, size * sizeof made->entry[0]);
    for (int i = 0; i < symbols; i++) {
        const int length = lengths[i];
        if (length == 0) continue;
        const unsigned step = 1u << length;
        for (unsigned at = reversed(first[length]++, length); at < size; at += step)
            made->entry[at] = (uint16_t)(i << 4 | length);
    }
    return true;
}

/* The next symbol; -1 where the bits are none. */
static int take_symbol(stream *in, const code *of)
{
    refill(in);
    const unsigned entry = of->entry[in->bits & ((1u << of->width) - 1)];
    const int length = (int)(entry & 15);
    if (length == 0) return -1;
    in->bits >>= length;
    in->held -= length;
    return (int)(entry >> 4);
}

/* ---- Blocks -------------------------------------------------------------------------------- */

typedef struct {
    code literals, distances;
} codes;

static bool add(stream *in, const void *bytes, int64_t count)
{
    if (count > in->most - in->out.count) return damaged(in, "it is longer than it says");
    ng_text_add(&in->out, bytes, count);
    return !in->out.failed;
}

/* Copies `length` bytes from `distance` before the end, which may overlap what they make. */
static bool repeat(stream *in, int64_t distance, int64_t length)
{
    if (distance > in->out.count) return damaged(in, "a distance that goes before its begin");
    char piece[258];
    for (int64_t i = 0; i < length; i++)
        piece[i] = in->out.bytes[in->out.count - distance + i % distance];
    return add(in, piece, length);
}

static bool stored_block(stream *in)
{
    take(in, in->held & 7);
    const unsigned count = take(in, 16), inverse = take(in, 16);
    if (has_ended(in) || (count ^ inverse) != 0xffff)
        return damaged(in, "a length without its twin");
    in->next -= in->held / 8; /* whole bytes that were held */
    in->held = 0;
    in->bits = 0;
    if ((ptrdiff_t)count > in->end - in->next) return damaged(in, "cut short");
    in->next += count;
    return add(in, in->next - count, count);
}

/* Symbols 257 on mean lengths, and those of the other code distances: a base and extra bits, both
 * of which grow evenly. */
static bool copy_block(stream *in, int symbol, const code *distances)
{
    int length = symbol - 257 + 3, extra = 0;
    if (symbol == 285) {
        length = 258;
    } else if (symbol > 264) {
        extra = (symbol - 261) / 4;
        length = ((4 + (symbol - 265) % 4) << extra) + 3 + (int)take(in, extra);
    }
    const int far = take_symbol(in, distances);
    if (symbol > 285 || far < 0 || far > 29) return damaged(in, "a symbol without a meaning");
    int64_t distance = far + 1;
    if (far > 3) {
        extra = far / 2 - 1;
        distance = ((2 + far % 2) << extra) + 1 + (int)take(in, extra);
    }
    return repeat(in, distance, length);
}

static bool coded_block(stream *in, const codes *of)
{
    for (;;) {
        const int symbol = take_symbol(in, &of->literals);
        const char literal = (char)symbol;
        if (has_ended(in)) return damaged(in, "cut short");
        if (symbol < 0) return damaged(in, "bits without a meaning");
        if (symbol == 256) return true;
        if (symbol < 256 ? !add(in, &literal, 1) : !copy_block(in, symbol, &of->distances))
            return false;
    }
}

static void fixed_codes(codes *of)
{
    uint8_t lengths[SYMBOLS];
    for (int i = 0; i < SYMBOLS; i++) lengths[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
    make_code(&of->literals, lengths, SYMBOLS);
    memset(lengths, 5, 32);
    make_code(&of->distances, lengths, 32);
}

/* The lengths of both codes are themselves coded. */
static bool read_codes(stream *in, codes *of)
{
    static const uint8_t order[19] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                      11, 4,  12, 3, 13, 2, 14, 1, 15};
    const int literals = 257 + (int)take(in, 5), distances = 1 + (int)take(in, 5);
    const int given = 4 + (int)take(in, 4), all = literals + distances;
    uint8_t lengths[320] = {0};
    if (literals > 286 || distances > 30) return damaged(in, "too many symbols");
    for (int i = 0; i < given; i++) lengths[order[i]] = (uint8_t)take(in, 3);
    if (!make_code(&of->literals, lengths, 19)) return damaged(in, "a code that is none");

    memset(lengths, 0, sizeof lengths);
    for (int i = 0; i < all;) {
        const int symbol = take_symbol(in, &of->literals);
        if (symbol < 0 || has_ended(in)) return damaged(in, "a code that is cut short");
        if (symbol < 16) {
            lengths[i++] = (uint8_t)symbol;
            continue;
        }
        if (symbol == 16 && i == 0) return damaged(in, "a length to repeat before the first");
        const uint8_t length = symbol == 16 ? lengths[i - 1] : 0;
        int times = symbol == 16   ? 3 + (int)take(in, 2)
                    : symbol == 17 ? 3 + (int)take(in, 3)
                                   : 11 + (int)take(in, 7);
        if (times > all - i) return damaged(in, "more lengths than symbols");
        while (times-- > 0) lengths[i++] = length;
    }
    if (lengths[256] == 0) return damaged(in, "a code without an end");
    return (make_code(&of->literals, lengths, literals) &&
            make_code(&of->distances, lengths + literals, distances)) ||
           damaged(in, "a code that is none");
}

static bool inflate(stream *in, codes *of)
{
    for (bool last = false; !last;) {
        last = take(in, 1);
        const unsigned kind = take(in, 2);
        if (has_ended(in)) return damaged(in, "cut short");
        if (kind == 3) return damaged(in, "a block of no known kind");
        if (kind == 1) fixed_codes(of);
        if (kind == 2 && !read_codes(in, of)) return false;
        if (kind == 0 ? !stored_block(in) : !coded_block(in, of)) return false;
    }
    return true;
}

char *ng_inflate(const char *function, const char *path, const unsigned char *bytes, int64_t count,
                 int64_t most, int64_t *used, int64_t *size)
{
    stream in = {.function = function,
                 .path = path,
                 .next = bytes,
                 .end = bytes + count,
                 .out = {.function = function},
                 .most = most};
    codes *of = ng_calloc(function, 1, sizeof *of);
    ng_text_add(&in.out, "", 0);
    const bool whole = of && !in.out.failed && inflate(&in, of);
    ng_free(of);
    *used = in.next - bytes - in.held / 8;
    *size = in.out.count;
    if (whole) return in.out.bytes;
    ng_free(in.out.bytes);
    return NULL;
}

/* ---- gzip ---------------------------------------------------------------------------------- */

uint32_t ng_crc32(uint32_t crc, const void *bytes, int64_t count)
{
    uint32_t table[256];
    for (uint32_t i = 0; i < 256; i++) {
        table[i] = i;
        for (int bit = 0; bit < 8; bit++)
            table[i] = table[i] >> 1 ^ (table[i] & 1 ? UINT32_C(0xedb88320) : 0);
    }
    const unsigned char *at = bytes;
    crc = ~crc;
    for (int64_t i = 0; i < count; i++) crc = crc >> 8 ^ table[(crc ^ at[i]) & 0xff];
    return ~crc;
}

/* Whether they begin as gzip's do. */
static bool is_gzip(const char *bytes, int64_t count)
{
    return count >= 2 && (unsigned char)bytes[0] == 0x1f && (unsigned char)bytes[1] == 0x8b;
}

/* Bytes of a member's header; -1 where it is none. */
static int64_t header_length(const unsigned char *bytes, int64_t count)
{
    enum { CHECKSUM = 2, EXTRA = 4, NAME = 8, COMMENT = 16, KNOWN = 31 };
    if (count < 10 || !is_gzip((const char *)bytes, count) || bytes[2] != 8) return -1;
    const int flags = bytes[3];
    int64_t at = 10;
    if (flags & ~KNOWN) return -1;
    if (flags & EXTRA) {
        if (count - at < 2) return -1;
        at += 2 + (bytes[at] | bytes[at + 1] << 8);
    }
    for (int text = NAME; text <= COMMENT; text *= 2) {
        if (!(flags & text) || at >= count) continue;
        const unsigned char *end = memchr(bytes + at, 0, (size_t)(count - at));
        if (!end) return -1;
        at = end + 1 - bytes;
    }
    if (flags & CHECKSUM) at += 2;
    return at <= count ? at : -1;
}

static uint32_t word_at(const unsigned char *b)
{
    return b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

/* Adds one member's content; how many bytes it took, or -1. */
static int64_t gunzip_member(const char *function, const char *path, const unsigned char *bytes,
                             int64_t count, ng_text *out)
{
    int64_t used, size;
    const int64_t header = header_length(bytes, count);
    if (header < 0) {
        ng_fail(NG_EPARSE, "%s: %s: %s", function, path,
                out->count > 0 ? "bytes after its end that are not gzip's"
                               : "compressed, but not as gzip does it, or cut short");
        return -1;
    }
    char *content =
        ng_inflate(function, path, bytes + header, count - header, INT64_MAX, &used, &size);
    if (!content) return -1;
    const unsigned char *after = bytes + header + used;
    const bool whole = count - header - used >= 8 &&
                       NG_CHECKSUM_HOLDS(word_at(after) == ng_crc32(0, content, size)) &&
                       word_at(after + 4) == (uint32_t)size;
    if (whole)
        ng_text_add(out, content, size);
    else
        ng_fail(NG_EPARSE, "%s: %s: damaged: its checksum or its length is another one", function,
                path);
    ng_free(content);
    return whole && !out->failed ? header + used + 8 : -1;
}

char *ng_gunzip(const char *function, const char *path, const char *bytes, int64_t count,
                int64_t *size)
{
    ng_text out = {.function = function};
    ng_text_add(&out, "", 0);
    int64_t at = 0, took = out.failed ? -1 : 0;
    while (took >= 0 && at < count) {
        took = gunzip_member(function, path, (const unsigned char *)bytes + at, count - at, &out);
        at += took;
    }
    *size = out.count;
    if (took >= 0) return out.bytes;
    ng_free(out.bytes);
    return NULL;
}

char *ng_file_read_unpacked(const char *function, const char *path, int64_t *size)
{
    char *bytes = ng_file_read(function, path, size);
    if (!bytes || !is_gzip(bytes, *size)) return bytes;
    char *content = ng_gunzip(function, path, bytes, *size, size);
    ng_free(bytes);
    return content;
}
