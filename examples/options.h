/* What the example programs share in reading their options. */
#ifndef EXAMPLES_OPTIONS_H
#define EXAMPLES_OPTIONS_H

#include "program.h"

/* --help, and an option that getopt does not know. */
static inline void show_help(const char *help)
{
    fputs(help, stdout);
    exit(program_end(EXIT_SUCCESS));
}
static inline void refuse_unknown(void)
{
    fputs("--help shows all options\n", stderr);
    exit(EXIT_USAGE);
}

/* Ends the program with what option `name` was given and what it expects. */
static inline void refuse(const char *name, const char *value, const char *expected)
{
    complain("--%s %s: expected %s; --help shows all options", name, value, expected);
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

/* An array of `count` elements of `size` bytes, each of which begins with its name. */
typedef struct {
    const void *first;
    size_t size;
    int count;
} choices;
#define CHOICES(array)                                                                             \
    (choices) { array, sizeof(array)[0], (int)(sizeof(array) / sizeof(array)[0]) }

static inline const char *choice_name(choices all, int i)
{
    return *(const char *const *)((const char *)all.first + (size_t)i * all.size);
}

/* The one of the choices that the first `length` characters of text name. */
static inline int parse_choice(const char *name, const char *text, size_t length, choices all)
{
    char expected[160] = "";
    for (int i = 0; i < all.count; i++) {
        const char *choice = choice_name(all, i);
        if (strlen(choice) == length && strncmp(text, choice, length) == 0) return i;
        const size_t used = strlen(expected);
        snprintf(expected + used, sizeof expected - used, "%s%s", i ? ", " : "one of ", choice);
    }
    refuse(name, text, expected);
    return 0;
}

/* chosen[i]: whether the list, between commas, names choice i. */
static inline void parse_list(const char *name, const char *list, choices all, bool *chosen)
{
    memset(chosen, 0, (size_t)all.count * sizeof *chosen);
    for (const char *at = list;; at++) {
        const size_t length = strcspn(at, ",");
        chosen[parse_choice(name, at, length, all)] = true;
        at += length;
        if (*at == '\0') return;
    }
}

/* Ends the program where something stands behind the options. */
static inline void refuse_more(int argc, char **argv, int after)
{
    if (after >= argc) return;
    complain("%s: not an option; --help shows them all", argv[after]);
    exit(EXIT_USAGE);
}

#endif
