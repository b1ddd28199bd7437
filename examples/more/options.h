/* Options of the example programs: each program has a table of options, which is also its --help.
 *
 *     int epochs = 10;
 *     double lr = 0.01;
 *     const program_option known[] = {
 *         OPTION_COUNT("epochs", "N", "passes over the data (10)", &epochs, 1, 1000),
 *         OPTION_RATE("lr", "RATE", "learning rate (0.01)", &lr)};
 *     read_options(argc, argv, "usage: learn [options]\n", OPTIONS(known), NULL); */
#ifndef EXAMPLES_OPTIONS_H
#define EXAMPLES_OPTIONS_H

#include "program.h"
#include <getopt.h>

/* Reports the value of option `name` and what it expects, and ends the program. */
static inline void refuse(const char *name, const char *value, const char *expected)
{
    complain("--%s %s: expected %s; --help shows all options", name, *value ? value : "''",
             expected);
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

static inline const char *parse_text(const char *name, const char *text)
{
    if (*text == '\0') refuse(name, text, "something");
    return text;
}

static inline double parse_rate(const char *name, const char *text)
{
    char *end;
    const double value = strtod(text, &end);
    if (end == text || *end != '\0' || !(value > 0) || isinf(value))
        refuse(name, text, "a number above 0");
    return value;
}

static inline double parse_number(const char *name, const char *text, double low, double below)
{
    char *end;
    const double value = strtod(text, &end);
    if (end != text && *end == '\0' && value >= low && value < below) return value;
    char expected[64];
    snprintf(expected, sizeof expected, "a number from %g to below %g", low, below);
    refuse(name, text, expected);
    return 0;
}

/* An array of `count` elements of `size` bytes. The first member of each is its name. */
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

/* Returns the index of the choice that the first `length` characters of text name. */
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

/* Sets chosen[i] if the comma-separated list names choice i. */
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

/* ---- The table ---- */

typedef enum {
    READ_COUNT,
    READ_WHOLE,
    READ_RATE,
    READ_NUMBER,
    READ_TEXT,
    READ_SWITCH,
    READ_CHOICE,
    READ_LIST
} option_kind;

typedef struct {
    const char *name;     /* "epochs" */
    const char *argument; /* "N", in --help; "" for a switch */
    const char *meaning;  /* with the default; a newline continues it on the next line */
    option_kind kind;
    void *to;
    double low, high;
    choices all;
} program_option;

/* Rows of a table of options, by the type of the value:
 *
 *     OPTION_COUNT   int *to, from low to high
 *     OPTION_WHOLE   double *to, a whole number from low to high
 *     OPTION_RATE    double *to, above 0
 *     OPTION_NUMBER  double *to, from low to below high
 *     OPTION_TEXT    const char **to, not empty
 *     OPTION_SWITCH  bool *to, which becomes true
 *     OPTION_CHOICE  int *to, the index in an array of choices
 *     OPTION_LIST    bool to[], one for each choice */
#define OPTION_ROW(name_, argument_, meaning_, kind_, ...)                                         \
    {                                                                                              \
        .name = name_, .argument = argument_, .meaning = meaning_, .kind = kind_, __VA_ARGS__      \
    }
#define OPTION_COUNT(name, argument, meaning, to_, low_, high_)                                    \
    OPTION_ROW(name, argument, meaning, READ_COUNT, .to = to_, .low = low_, .high = high_)
#define OPTION_WHOLE(name, argument, meaning, to_, low_, high_)                                    \
    OPTION_ROW(name, argument, meaning, READ_WHOLE, .to = to_, .low = low_, .high = high_)
#define OPTION_RATE(name, argument, meaning, to_)                                                  \
    OPTION_ROW(name, argument, meaning, READ_RATE, .to = to_)
#define OPTION_NUMBER(name, argument, meaning, to_, low_, high_)                                   \
    OPTION_ROW(name, argument, meaning, READ_NUMBER, .to = to_, .low = low_, .high = high_)
#define OPTION_TEXT(name, argument, meaning, to_)                                                  \
    OPTION_ROW(name, argument, meaning, READ_TEXT, .to = to_)
#define OPTION_SWITCH(name, meaning, to_) OPTION_ROW(name, "", meaning, READ_SWITCH, .to = to_)
#define OPTION_CHOICE(name, argument, meaning, to_, array)                                         \
    OPTION_ROW(name, argument, meaning, READ_CHOICE, .to = to_, .all = CHOICES(array))
#define OPTION_LIST(name, argument, meaning, to_, array)                                           \
    OPTION_ROW(name, argument, meaning, READ_LIST, .to = to_, .all = CHOICES(array))

typedef struct {
    const program_option *rows;
    int count;
} option_table;
#define OPTIONS(array)                                                                             \
    (option_table) { array, (int)(sizeof(array) / sizeof(array)[0]) }

enum { MOST_OPTIONS = 32 };

static inline int option_width(const program_option *o)
{
    return (int)(strlen(o->name) + (*o->argument ? 1 + strlen(o->argument) : 0));
}

static inline void show_help(const char *before, option_table table, const char *after)
{
    const program_option help = {.name = "help", .argument = "", .meaning = "show this help"};
    int width = 14;
    for (int i = 0; i < table.count; i++)
        if (option_width(&table.rows[i]) > width) width = option_width(&table.rows[i]);
    printf("%s\n", before);
    for (int i = 0; i <= table.count; i++) {
        const program_option *o = i < table.count ? &table.rows[i] : &help;
        const char *text = o->meaning;
        int length = (int)strcspn(text, "\n");
        printf("  --%s%s%s%*s  %.*s\n", o->name, *o->argument ? " " : "", o->argument,
               width - option_width(o), "", length, text);
        for (text += length; *text; text += length) {
            length = (int)strcspn(++text, "\n");
            printf("%*s%.*s\n", width + 6, "", length, text);
        }
    }
    if (after) printf("\n%s", after);
    exit(program_end(EXIT_SUCCESS));
}

static inline void read_option(const program_option *o, const char *text)
{
    const int low = (int)o->low, high = (int)o->high;
    switch (o->kind) {
    case READ_COUNT: *(int *)o->to = parse_count(o->name, text, low, high); break;
    case READ_WHOLE: *(double *)o->to = parse_count(o->name, text, low, high); break;
    case READ_RATE: *(double *)o->to = parse_rate(o->name, text); break;
    case READ_NUMBER: *(double *)o->to = parse_number(o->name, text, o->low, o->high); break;
    case READ_TEXT: *(const char **)o->to = parse_text(o->name, text); break;
    case READ_SWITCH: *(bool *)o->to = true; break;
    case READ_CHOICE: *(int *)o->to = parse_choice(o->name, text, strlen(text), o->all); break;
    case READ_LIST: parse_list(o->name, text, o->all, o->to); break;
    }
}

/* Ends the program if two options have the same name, or if the table is too long. */
static inline void refuse_clashes(option_table table)
{
    for (int i = 0; i < table.count; i++) {
        bool known = i >= MOST_OPTIONS || strcmp(table.rows[i].name, "help") == 0;
        for (int k = 0; k < i; k++)
            known = known || strcmp(table.rows[i].name, table.rows[k].name) == 0;
        if (!known) continue;
        complain("--%s: duplicate option, or more than %d options", table.rows[i].name,
                 MOST_OPTIONS);
        exit(EXIT_FAILED);
    }
}

/* Reads the options of the table. -h and --help print `before`, the table and `after`. An unknown
 * option ends the program. Returns the index of the first argument after the options. */
static inline int read_options(int argc, char **argv, const char *before, option_table table,
                               const char *after)
{
    struct option known[MOST_OPTIONS + 2] = {{"help", no_argument, NULL, MOST_OPTIONS}};
    refuse_clashes(table);
    for (int i = 0; i < table.count; i++)
        known[i + 1] =
            (struct option){table.rows[i].name, table.rows[i].kind != READ_SWITCH, NULL, i};
    for (int c; (c = getopt_long(argc, argv, "h", known, NULL)) != -1;) {
        if (c == MOST_OPTIONS || c == 'h') show_help(before, table, after);
        if (c == '?') {
            fputs("--help shows all options\n", stderr);
            exit(EXIT_USAGE);
        }
        read_option(&table.rows[c], optarg);
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
