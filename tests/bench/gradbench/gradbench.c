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

/* What follows a value and the comma after it. */
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
    return after_blanks(*at == ',' ? at + 1 : at);
}

static bool is_string(const char *value, const char *text)
{
    const size_t length = strlen(text);
    return value && *value == '"' && !strncmp(value + 1, text, length) && value[length + 1] == '"';
}

const char *input_member(const char *object, const char *name)
{
    const char *at = after_blanks(object);
    if (*at != '{') return NULL;
    for (at = after_blanks(at + 1); *at == '"'; at = after_value(at)) {
        const bool found = is_string(at, name);
        at = after_blanks(after_string(at));
        if (*at != ':') return NULL;
        at = after_blanks(at + 1);
        if (found) return at;
    }
    return NULL;
}

static double number_or(const char *object, const char *name, double standard)
{
    const char *value = input_member(object, name);
    return value ? strtod(value, NULL) : standard;
}

double input_number(const char *input, const char *name)
{
    const double value = number_or(input, name, (double)NAN);
    if (isnan(value)) ng_fail(NG_EPARSE, "%s: expected a number in the input", name);
    return value;
}

int64_t input_count(const char *input, const char *name)
{
    const double value = input_number(input, name);
    return value >= 0 && value < 0x1p53 ? (int64_t)value : -1;
}

/* Of nested arrays, from the first element of each. */
static ng_shape shape_of(const char *at)
{
    ng_shape shape = NG_SCALAR;
    for (; *at == '[' && shape.rank < NG_MAX_RANK; at = after_blanks(at + 1)) {
        int64_t count = 0;
        for (const char *x = after_blanks(at + 1); *x && *x != ']'; x = after_value(x)) count++;
        shape.dim[shape.rank++] = count;
    }
    return shape;
}

/* ---- The tensors of a message ---------------------------------------------------------------- */

enum { MOST_TENSORS = 64, MOST_LEAVES = 4, MOST_ANSWERS = 8, MOST_RUNS = 1 << 20 };
static ng_tensor *held[MOST_TENSORS], *leaf[MOST_LEAVES];
static const char *leaf_name[MOST_LEAVES];
static int n_held, n_leaves;
char asked[16];

static ng_tensor *hold(ng_tensor *x)
{
    if (n_held < MOST_TENSORS)
        held[n_held++] = x;
    else
        ng_fail(NG_EVALUE, "a message holds more than %d tensors", (int)MOST_TENSORS);
    return x;
}

ng_tensor *held_zeros(ng_dtype dtype, ng_shape shape) { return hold(ng_zeros_new(dtype, shape)); }

int64_t *held_index(ng_tensor **to, ng_shape shape)
{
    *to = held_zeros(NG_I64, shape);
    return *to ? ng_data_i64(*to) : NULL;
}

ng_tensor *input_tensor(const char *input, const char *name)
{
    const char *at = name ? input_member(input, name) : after_blanks(input);
    ng_tensor *x = at ? held_zeros(NG_F64, shape_of(at)) : NULL;
    for (int64_t i = 0; x && i < ng_size(x); i++) {
        char *end;
        at += strspn(at, "[], \t\r\n");
        ng_data_f64(x)[i] = strtod(at, &end);
        if (end == at) x = NULL;
        at = end;
    }
    if (!x) ng_fail(NG_EPARSE, "%s: expected numbers or arrays of numbers", name ? name : "input");
    return x;
}

ng_tensor *input_leaf(const char *input, const char *name)
{
    leaf_name[n_leaves] = name;
    return leaf[n_leaves++] = ng_require_grad(input_tensor(input, name));
}

static void free_held(void)
{
    while (n_held > 0) ng_tensor_free(held[--n_held]);
    n_leaves = 0;
}

void copy_elements(ng_tensor *to, int64_t at, const ng_tensor *x)
{
    if (!x || !to) return;
    if (ng_dtype_of(x) == NG_I64)
        memcpy(ng_data_i64(to) + at, ng_data_i64(x), (size_t)ng_size(x) * sizeof(int64_t));
    else
        memcpy(ng_data_f64(to) + at, ng_data_f64(x), (size_t)ng_size(x) * sizeof(double));
}

ng_tensor *rows_of(ng_tape *tape, ng_tensor *x, int64_t from, int64_t to)
{
    return ng_slice(tape, x, 0, from, to);
}

/* ---- Writing JSON ---------------------------------------------------------------------------- */

static struct {
    char text[48];
    ng_tensor *x;
} answers[MOST_ANSWERS];
static int n_answers;

void answer(const char *text, ng_tensor *x)
{
    snprintf(answers[n_answers].text, sizeof answers->text, "%s", text ? text : "");
    answers[n_answers++].x = x;
}

/* Nested arrays of x's elements from `at` on. Returns the index of the next element. */
static int64_t print_axis(const ng_tensor *x, int axis, int64_t at)
{
    if (axis == ng_rank(x)) {
        const double value = ng_get(x, at);
        if (isfinite(value))
            printf("%.17g", value);
        else
            fputs(isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity", stdout);
        return at + 1;
    }
    for (int64_t i = 0; i < ng_dim(x, axis); i++) {
        fputs(i ? ", " : "[", stdout);
        at = print_axis(x, axis + 1, at);
    }
    putchar(']');
    return at;
}

/* ---- Messages -------------------------------------------------------------------------------- */

static void answer_gradient(const gradbench_eval *eval, ng_tape *tape)
{
    ng_tensor *y = ng_reshape(tape, eval->value(tape), NG_SHAPE(-1)), *gradients[MOST_LEAVES];
    y = ng_slice(tape, y, 0, -1, NG_END);
    n_answers = 0;
    if (ng_gradients(tape, &y, 1, leaf, n_leaves, gradients)) return;
    for (int i = 0; i < n_leaves; i++) {
        char text[32];
        snprintf(text, sizeof text, "%s\"%s\": ", i ? ", " : "{", leaf_name[i]);
        answer(n_leaves > 1 ? text : NULL, gradients[i]);
    }
    if (n_leaves > 1) answer("}", NULL);
}

static void run_once(const gradbench_eval *eval, bool is_primal, ng_tape *tape)
{
    n_answers = 0;
    ng_tape_reset(tape);
    if (is_primal) {
        ng_tensor *y = eval->value(tape);
        if (!n_answers) answer(NULL, y);
    } else if (eval->derive) {
        eval->derive(tape);
    } else {
        answer_gradient(eval, tape);
    }
}

static double nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
}

static void print_result(const double *times, int count)
{
    fputs(", \"success\": true, \"output\": ", stdout);
    for (int i = 0; i < n_answers; i++) {
        fputs(answers[i].text, stdout);
        if (answers[i].x) print_axis(answers[i].x, 0, 0);
    }
    for (int i = 0; i < count; i++)
        printf("%s{\"name\": \"evaluate\", \"nanoseconds\": %.0f}", i ? ", " : ", \"timings\": [",
               times[i]);
    putchar(']');
}

static void print_error(const char *text)
{
    fputs(", \"success\": false, \"error\": \"", stdout);
    for (; *text; text++) putchar(strchr("\"\\\n", *text) ? '\'' : *text);
    putchar('"');
}

/* Runs the function as often and as long as the input asks. */
static void evaluate(const gradbench_eval *eval, ng_tape *tape, const char *message)
{
    static double times[MOST_RUNS];
    const char *name = input_member(message, "function"), *input = input_member(message, "input");
    int count = 0;
    ng_clear_error();
    if (!input) input = "";
    if (!name || sscanf(name, "\"%15[a-z]\"", asked) != 1) strcpy(asked, "?");
    const bool is_primal = eval->primal && is_string(name, eval->primal);
    if (is_primal || strstr(eval->gradient, asked))
        eval->prepare(input);
    else
        ng_fail(NG_EVALUE, "%s: no such function", asked);
    ng_tape_set_recording(tape, !is_primal);
    const double runs = number_or(input, "min_runs", 1);
    const double least = 1e9 * number_or(input, "min_seconds", 0);
    for (double total = 0; !ng_failed() && count < MOST_RUNS && (count < runs || total < least);) {
        const double begin = nanoseconds();
        run_once(eval, is_primal, tape);
        times[count] = nanoseconds() - begin;
        total += times[count++];
    }
    if (ng_failed())
        print_error(ng_error_text());
    else
        print_result(times, count);
    ng_tape_reset(tape);
    free_held();
}

static const struct {
    const char *name;
    const gradbench_eval *eval;
} evals[] = {
#define X(name) {#name, &eval_##name},
    GRADBENCH_EVALS(X)
#undef X
};

/* Answers messages until the input ends. */
int main(int argc, char **argv)
{
    const int n = sizeof evals / sizeof *evals;
    int which = 0;
    while (which < n && argc == 2 && strcmp(argv[1], evals[which].name)) which++;
    if (argc != 2 || which == n) return fputs("usage: gradbench MODULE\n", stderr), 2;
    char *message = NULL;
    size_t capacity = 0;
    ng_tape *tape = ng_tape_new();
    while (tape && getline(&message, &capacity, stdin) > 0) {
        const char *kind = input_member(message, "kind"), *module = input_member(message, "module");
        printf("{\"id\": %.0f", number_or(message, "id", 0));
        if (is_string(kind, "start")) fputs(", \"tool\": \"normgrad\"", stdout);
        if (is_string(kind, "define"))
            printf(", \"success\": %s", is_string(module, argv[1]) ? "true" : "false");
        if (is_string(kind, "evaluate")) evaluate(evals[which].eval, tape, message);
        puts("}");
        fflush(stdout);
    }
    free(message);
    ng_tape_free(tape);
    return tape ? EXIT_SUCCESS : EXIT_FAILURE;
}
