/* What the example programs share in reading their options. */
#ifndef EXAMPLES_OPTIONS_H
#define EXAMPLES_OPTIONS_H

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { EXIT_USAGE = 2 };

/* Ends the program with what option `name` was given and what it expects. */
static inline void refuse(const char *name, const char *value, const char *expected)
{
    fprintf(stderr, "%s: --%s %s: expected %s; --help shows all options\n",
            program_invocation_short_name, name, value, expected);
    exit(EXIT_USAGE);
}

static inline int parse_count(const char *name, const char *text, int low, int high)
{
    char *end;
    errno = 0;
    const long value = strtol(text, &end, 10);
    if (errno == 0 && end != text && *end == '\0' && value >= low && value <= high)
        return (int)value;
    char expected[64];
    snprintf(expected, sizeof expected, "a whole number from %d to %d", low, high);
    refuse(name, text, expected);
    return 0;
}

static inline double parse_rate(const char *name, const char *text)
{
    char *end;
    const double value = strtod(text, &end);
    if (end == text || *end != '\0' || !(value > 0) || isinf(value))
        refuse(name, text, "a number above 0");
    return value;
}

#endif
