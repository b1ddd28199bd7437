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

#endif
