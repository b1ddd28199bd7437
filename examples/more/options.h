/* Options of the example programs: each program has a table of options, which is also its --help.
 *
 *     int epochs = 10;
 *     double lr = 0.01;
 *     const program_option known[] = {
 *         OPTION_COUNT("epochs", "N", "passes over the data", &epochs, 1, 1000),
 *         OPTION_RATE("lr", "RATE", "learning rate", &lr)};
 *     read_options(argc, argv, "usage: learn [options]\n", OPTIONS(known), NULL); */
#ifndef EXAMPLES_OPTIONS_H
#define EXAMPLES_OPTIONS_H

#include "program.h"
#include <float.h>
#include <getopt.h>

typedef enum {
    READ_COUNT,
    READ_WHOLE,
    READ_NUMBER,
    READ_TEXT,
    READ_SWITCH,
    READ_CHOICE,
    READ_LIST
} option_kind;

typedef struct {
    const char *name;     /* "epochs" */
    const char *argument; /* "N", in --help; "" for a switch */
    const char *meaning;  /* --help adds the default; a newline continues it on the next line */
    option_kind kind;
    void *to;
    double low, high;    /* the range of a number, both included */
    const char *choices; /* "adam,sgd" */
} program_option;

/* Rows of a table of options, by the type of the value:
 *
 *     OPTION_COUNT   int *to, from low to high
 *     OPTION_WHOLE   double *to, a whole number from low to high
 *     OPTION_NUMBER  double *to, from low to high
 *     OPTION_RATE    double *to, above 0
 *     OPTION_TEXT    const char **to, not empty, shorter than LONGEST_TEXT
 *     OPTION_SWITCH  bool *to, which becomes true
 *     OPTION_CHOICE  int *to, the index in the list of choices
 *     OPTION_LIST    bool to[], one for each choice */
/* clang-format off */
#define OPTION_COUNT(name, arg, meaning, ...) {name, arg, meaning, READ_COUNT, __VA_ARGS__, NULL}
#define OPTION_WHOLE(name, arg, meaning, ...) {name, arg, meaning, READ_WHOLE, __VA_ARGS__, NULL}
#define OPTION_NUMBER(name, arg, meaning, ...) {name, arg, meaning, READ_NUMBER, __VA_ARGS__, NULL}
#define OPTION_RATE(name, arg, meaning, to) OPTION_NUMBER(name, arg, meaning, to, DBL_MIN, DBL_MAX)
#define OPTION_TEXT(name, arg, meaning, to) {name, arg, meaning, READ_TEXT, to, 0, 0, NULL}
#define OPTION_SWITCH(name, meaning, to) {name, "", meaning, READ_SWITCH, to, 0, 0, NULL}
#define OPTION_CHOICE(name, arg, meaning, to, all) {name, arg, meaning, READ_CHOICE, to, 0, 0, all}
#define OPTION_LIST(name, arg, meaning, to, all) {name, arg, meaning, READ_LIST, to, 0, 0, all}
/* clang-format on */

typedef struct {
    const program_option *rows;
    int count;
} option_table;
#define OPTIONS(array)                                                                             \
    (option_table) { array, (int)(sizeof(array) / sizeof(array)[0]) }

enum { MOST_OPTIONS = 32, LONGEST_TEXT = 1000 };

/* Reports the value of option `name` and what it expects, and ends the program. */
static inline void refuse(const char *name, const char *value, const char *expected)
{
    complain("--%s %.40s%s: expected %s; --help shows all options", name, *value ? value : "''",
             strlen(value) > 40 ? "..." : "", expected);
    exit(EXIT_USAGE);
}

/* Returns the number in the text, or ends the program. */
static inline double parse_number(const program_option *o, const char *text)
{
    char *end, expected[96];
    const bool whole = o->kind != READ_NUMBER;
    const double value = whole ? (double)strtol(text, &end, 10) : strtod(text, &end);
    if (end != text && *end == '\0' && value >= o->low && value <= o->high) return value;
    if (o->low > 0 && o->high == DBL_MAX) refuse(o->name, text, "a number above 0");
    snprintf(expected, sizeof expected, "a %snumber from %.10g to %.10g", whole ? "whole " : "",
             o->low, o->high);
    refuse(o->name, text, expected);
    return 0;
}

/* Returns the index in a comma-separated list of the item that the first `length` characters of
 * text name, or -1. */
static inline int place_in_list(const char *list, const char *text, size_t length)
{
    for (int i = 0;; i++) {
        const size_t item = strcspn(list, ",");
        if (item == length && strncmp(list, text, length) == 0) return i;
        if (list[item] == '\0') return -1;
        list += item + 1;
    }
}

/* Sets to[i] for each choice of a comma-separated list, or *to to the index of one choice. */
static inline void parse_choices(const program_option *o, const char *text)
{
    char expected[160];
    snprintf(expected, sizeof expected, "one of %s", o->choices);
    for (const char *at = text;; at++) {
        const size_t length = o->kind == READ_LIST ? strcspn(at, ",") : strlen(at);
        const int place = place_in_list(o->choices, at, length);
        if (place < 0) refuse(o->name, text, expected);
        if (o->kind == READ_LIST)
            ((bool *)o->to)[place] = true;
        else
            *(int *)o->to = place;
        at += length;
        if (*at == '\0') return;
    }
}

static inline void read_option(const program_option *o, const char *text)
{
    switch (o->kind) {
    case READ_COUNT: *(int *)o->to = (int)parse_number(o, text); break;
    case READ_WHOLE:
    case READ_NUMBER: *(double *)o->to = parse_number(o, text); break;
    case READ_TEXT:
        if (*text == '\0') refuse(o->name, text, "something");
        if (strlen(text) >= LONGEST_TEXT) refuse(o->name, text, "less than 1000 characters");
        *(const char **)o->to = text;
        break;
    case READ_SWITCH: *(bool *)o->to = true; break;
    case READ_CHOICE:
    case READ_LIST: parse_choices(o, text); break;
    }
}

/* Prints the row's meaning, with the default unless it says that itself. */
static inline void show_option(const program_option *o)
{
    char left[64], value[32] = "";
    snprintf(left, sizeof left, "--%s %s", o->name, o->argument);
    if (o->kind == READ_COUNT) snprintf(value, sizeof value, " (%d)", *(int *)o->to);
    if (o->kind == READ_NUMBER && *(double *)o->to > 0)
        snprintf(value, sizeof value, " (%g)", *(double *)o->to);
    if (o->meaning[strlen(o->meaning) - 1] == ')') value[0] = '\0';
    for (const char *text = o->meaning; text; text = strchr(text, '\n')) {
        text += *text == '\n';
        printf("  %-22s %.*s%s\n", text == o->meaning ? left : "", (int)strcspn(text, "\n"), text,
               strchr(text, '\n') ? "" : value);
    }
}

static inline void show_help(const char *before, option_table table, const char *after)
{
    printf("%s\n", before);
    for (int i = 0; i < table.count; i++) show_option(&table.rows[i]);
    printf("  %-22s show this help\n", "--help");
    if (after) printf("\n%s", after);
    exit(program_end(EXIT_SUCCESS));
}

/* Reads the options of the table. -h and --help print `before`, the table and `after`. An unknown
 * option ends the program. Returns the index of the first argument after the options. */
static inline int read_options(int argc, char **argv, const char *before, option_table table,
                               const char *after)
{
    struct option known[MOST_OPTIONS + 2] = {{"help", no_argument, NULL, 'h'}};
    program_begin(argv);
    for (int i = 0; i < table.count && i < MOST_OPTIONS; i++)
        known[i + 1] =
            (struct option){table.rows[i].name, table.rows[i].kind != READ_SWITCH, NULL, 256 + i};
    for (int c; (c = getopt_long(argc, argv, "h", known, NULL)) != -1;) {
        if (c == 'h') show_help(before, table, after);
        if (c == '?') {
            fputs("--help shows all options\n", stderr);
            exit(EXIT_USAGE);
        }
        read_option(&table.rows[c - 256], optarg);
    }
    return optind;
}

/* Ends the program if there are arguments after the options. */
static inline void refuse_more(int argc, char **argv, int after)
{
    if (after >= argc) return;
    complain("%s: not an option; --help shows all options", argv[after]);
    exit(EXIT_USAGE);
}

#endif
