/* What the public headers declare. */
#ifndef NG_TESTS_HEADERS_H
#define NG_TESTS_HEADERS_H

#include <stdbool.h>
#include <stddef.h>

/* A function of a header ("tape.h"); its arguments stand from `open`, their '(', to `end`. */
typedef struct {
    const char *header;
    char name[64];
    const char *open, *end;
} declaration;

/* Calls are() with every declaration; returns how often it was true. */
int declarations_that(bool (*are)(const declaration *d));

/* Whether name is among these. */
bool is_among(const char *name, const char *const *names, size_t count);

#endif
