/* The protocol of GradBench: messages are read, functions run and timed, answers written. */
#include "gradbench.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- Reading JSON ------------------------------------------------------------------------------
 *
 * A value is a pointer to its text in the message. */

static const char *after_blanks(const char *at) { return at + strspn(at, " \t\r\n"); }

static const char *after_string(const char *at)
{
    for (at++; *at && *at != '"'; at++)
        if (*at == '\\' && at[1]) at++;
    return *at ? at + 1 : at;
}

static const char *after_value(const char *at)
{
    int depth = 0;
    do {
        if (*at == '"') {
            at = after_string(at);
            continue;
        }
        if (*at == '[' || *at == '{') depth++;
        if (*at == ']' || *at == '}') depth--;
        at++;
    } while (*at && (depth > 0 || !strchr(",]}", *at)));
    return at;
}

const char *input_member(const char *object, const char *name)
{
    const size_t length = strlen(name);
    const char *at = after_blanks(object);
    if (*at != '{') return NULL;
    at = after_blanks(at + 1);
    while (*at == '"') {
        const bool found = !strncmp(at + 1, name, length) && at[length + 1] == '"';
        at = after_blanks(after_string(at));
        if (*at != ':') return NULL;
        at = after_blanks(at + 1);
        if (found) return at;
        at = after_blanks(after_value(at));
        if (*at == ',') at = after_blanks(at + 1);
    }
    return NULL;
}

static bool is_string(const char *value, const char *text)
{
    const size_t length = strlen(text);
    return value && *value == '"' && !strncmp(value + 1, text, length) && value[length + 1] == '"';
}

static double number_or(const char *object, const char *name, double standard)
{
    const char *value = input_member(object, name);
    return value ? strtod(value, NULL) : standard;
}

double input_number(const char *input, const char *name)
{
    const double value = number_or(input, name, NAN);
    if (isnan(value)) ng_fail(NG_EPARSE, "%s: expected a number in the input", name);
    return value;
}

int64_t input_count(const char *input, const char *name)
{
    const double value = input_number(input, name);
    return value >= 0 && value < 0x1p53 ? (int64_t)value : -1;
}

typedef struct {
    double *values;
    int64_t count, capacity;
    ng_shape shape;
} numbers;

static bool append(numbers *list, double value)
{
    if (list->count == list->capacity) {
        const int64_t capacity = list->capacity ? 2 * list->capacity : 1024;
        double *grown = realloc(list->values, (size_t)capacity * sizeof *grown);
        if (!grown) return false;
        list->values = grown;
        list->capacity = capacity;
    }
    list->values[list->count++] = value;
    return true;
}

/* Reads nested arrays, whose lengths give the shape. Returns what follows, NULL on error. */
static const char *read_numbers(const char *at, int depth, numbers *list)
{
    at = after_blanks(at);
    if (*at != '[') {
        char *end;
        const double value = strtod(at, &end);
        return end > at && depth == list->shape.rank && append(list, value) ? end : NULL;
    }
    const bool first = depth == list->shape.rank;
    if (depth == NG_MAX_RANK || (first && list->count)) return NULL;
    if (first) list->shape.rank++;
    int64_t length = 0;
    at = after_blanks(at + 1);
    while (at && *at && *at != ']') {
        at = read_numbers(at, depth + 1, list);
        if (at) at = after_blanks(at);
        if (at && *at == ',') at = after_blanks(at + 1);
        length++;
    }
    if (!at || !*at) return NULL;
    list->shape.dim[depth] = length;
    return at + 1;
}

/* ---- The tensors of a message ---------------------------------------------------------------- */

enum { MOST_TENSORS = 64 };
static ng_tensor *held[MOST_TENSORS];
static int n_held;

ng_tensor *held_tensor(ng_tensor *x)
{
    if (n_held < MOST_TENSORS)
        held[n_held++] = x;
    else
        ng_fail(NG_EVALUE, "a message holds more than %d tensors", (int)MOST_TENSORS);
    return x;
}

ng_tensor *held_zeros(ng_dtype dtype, ng_shape shape)
{
    return held_tensor(ng_zeros_new(dtype, shape));
}

static void free_held(void)
{
    while (n_held > 0) ng_tensor_free(held[--n_held]);
}

ng_tensor *input_tensor(const char *input, const char *name)
{
    const char *value = name ? input_member(input, name) : input;
    numbers list = {.shape = NG_SCALAR};
    ng_tensor *x = NULL;
    if (value && read_numbers(value, 0, &list))
        x = ng_tensor_from(NG_F64, list.shape, list.values, list.count);
    else
        ng_fail(NG_EPARSE, "%s: expected numbers or arrays of numbers", name ? name : "input");
    free(list.values);
    return held_tensor(x);
}

/* ---- Writing JSON ---------------------------------------------------------------------------- */

static void print_number(double value)
{
    if (isfinite(value))
        printf("%.17g", value);
    else
        fputs(isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity", stdout);
}

/* Nested arrays of x's elements from `at` on. Returns the index of the next element. */
static int64_t print_axis(const ng_tensor *x, int axis, int64_t at)
{
    if (axis == ng_rank(x)) {
        print_number(ng_get(x, at));
        return at + 1;
    }
    putchar('[');
    for (int64_t i = 0; i < ng_dim(x, axis); i++) {
        if (i) fputs(", ", stdout);
        at = print_axis(x, axis + 1, at);
    }
    putchar(']');
    return at;
}

static void print_output(const gradbench_function *function, ng_tensor *const *results)
{
    if (function->print) {
        function->print();
        return;
    }
    if (!function->members[0]) print_axis(results[0], 0, 0);
    for (int i = 0; i < MOST_RESULTS && function->members[i]; i++) {
        printf("%s\"%s\": ", i ? ", " : "{", function->members[i]);
        print_axis(results[i], 0, 0);
    }
    if (function->members[0]) putchar('}');
}

static void print_string(const char *text)
{
    putchar('"');
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') putchar('\\');
        putchar((unsigned char)*text < ' ' ? ' ' : *text);
    }
    putchar('"');
}

/* ---- Messages -------------------------------------------------------------------------------- */

static double nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
}

/* Runs the function as often and as long as the input asks; `times` gets the time of each run. */
static bool run(const gradbench_function *function, ng_tape *tape, const char *input,
                numbers *times, ng_tensor **results)
{
    const double runs = number_or(input, "min_runs", 1);
    const double least = 1e9 * number_or(input, "min_seconds", 0);
    for (double total = 0; !ng_failed() && ((double)times->count < runs || total < least);) {
        const double begin = nanoseconds();
        ng_tape_reset(tape);
        function->evaluate(tape, results);
        const double time = nanoseconds() - begin;
        if (!append(times, time)) return false;
        total += time;
    }
    return !ng_failed();
}

static void evaluate(const gradbench_module *module, ng_tape *tape, const char *message)
{
    const char *name = input_member(message, "function"), *input = input_member(message, "input");
    const bool is_primal = module->primal.name && is_string(name, module->primal.name);
    const gradbench_function *function = is_primal ? &module->primal : NULL;
    for (int i = 0; i < MOST_GRADIENTS && module->gradient[i].name; i++)
        if (is_string(name, module->gradient[i].name)) function = &module->gradient[i];
    ng_tensor *results[MOST_RESULTS] = {NULL};
    numbers times = {.values = NULL};
    ng_clear_error();
    ng_tape_set_recording(tape, !is_primal);
    if (!function)
        ng_fail(NG_EVALUE, "%s: no such function", module->module);
    else
        module->prepare(input ? input : "");
    if (!ng_failed() && run(function, tape, input, &times, results)) {
        fputs(", \"success\": true, \"output\": ", stdout);
        print_output(function, results);
        fputs(", \"timings\": [", stdout);
        for (int64_t i = 0; i < times.count; i++)
            printf("%s{\"name\": \"evaluate\", \"nanoseconds\": %.0f}", i ? ", " : "",
                   times.values[i]);
        putchar(']');
    } else {
        fputs(", \"success\": false, \"error\": ", stdout);
        print_string(ng_error_text());
    }
    free(times.values);
    ng_tape_reset(tape);
    free_held();
}

int gradbench(const gradbench_module *module)
{
    char *message = NULL;
    size_t capacity = 0;
    ng_tape *tape = ng_tape_new();
    while (tape && getline(&message, &capacity, stdin) > 0) {
        const char *kind = input_member(message, "kind");
        printf("{\"id\": %.0f", number_or(message, "id", 0));
        if (is_string(kind, "start")) fputs(", \"tool\": \"normgrad\"", stdout);
        if (is_string(kind, "define"))
            printf(", \"success\": %s",
                   is_string(input_member(message, "module"), module->module) ? "true" : "false");
        if (is_string(kind, "evaluate")) evaluate(module, tape, message);
        puts("}");
        fflush(stdout);
    }
    free(message);
    ng_tape_free(tape);
    return tape ? EXIT_SUCCESS : EXIT_FAILURE;
}
