/* A text as the ids of its bytes, which are numbered in the order of their codes. */
#ifndef EXAMPLES_CHARACTERS_H
#define EXAMPLES_CHARACTERS_H

#include "program.h"

typedef struct {
    unsigned char *bytes;
    size_t count, capacity;
    int id[256];             /* id of each byte; -1 if it does not occur */
    unsigned char byte[256]; /* byte of each id */
    int vocabulary;
    int64_t train; /* number of bytes for training; the rest is for validation */
} characters;

/* Appends a file. Returns whether it could be read, and reports if not. */
static inline bool read_file(characters *t, const char *path)
{
    FILE *file = fopen(path, "rb");
    size_t got = 1;
    while (file && got > 0) {
        if (t->count == t->capacity) {
            const size_t capacity = t->capacity ? 2 * t->capacity : 1 << 16;
            unsigned char *grown = realloc(t->bytes, capacity);
            if (!grown) break;
            t->bytes = grown;
            t->capacity = capacity;
        }
        got = fread(t->bytes + t->count, 1, t->capacity - t->count, file);
        t->count += got;
    }
    const bool read = file && got == 0 && !ferror(file);
    if (!read) complain("%s: %s", path, strerror(errno));
    if (file) fclose(file);
    return read;
}

static inline void number_bytes(characters *t)
{
    bool occurs[256] = {false};
    for (size_t i = 0; i < t->count; i++) occurs[t->bytes[i]] = true;
    for (int b = 0; b < 256; b++) {
        t->id[b] = occurs[b] ? t->vocabulary : -1;
        if (occurs[b]) t->byte[t->vocabulary++] = (unsigned char)b;
    }
}

/* Fills ids and labels (count, length) with sequences drawn from the bytes first to last - 1. Each
 * label is the byte after its id. */
static inline void draw_text(const characters *t, ng_tensor *ids, ng_tensor *labels, ng_rng *rng,
                             int64_t first, int64_t last)
{
    int64_t *id = ng_data_i64(ids), *label = ng_data_i64(labels);
    if (!id || !label) return;
    const int64_t length = ng_dim(ids, 1);
    for (int64_t n = 0; n < ng_dim(ids, 0); n++) {
        const int64_t from = first + ng_rng_below(rng, last - first - length);
        for (int64_t i = from; i < from + length; i++)
            *id++ = t->id[t->bytes[i]], *label++ = t->id[t->bytes[i + 1]];
    }
    ng_touch(ids), ng_touch(labels);
}

#endif
