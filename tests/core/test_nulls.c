/* NULL in place of each pointer that a public function takes is an error that names the
 * function. */
#include "support/fixture.h"
#include "support/headers.h"
#include "support/support.h"

#include "tape/tape.h"

#include <ctype.h>

/* What the calls are made with. */
static ng_tensor *leaf, *result, *fresh, *found;
static ng_module *layer, *norm;
static ng_dataset *data, *some_data, *other_data;
static ng_history *history;
static ng_optimizer *adam;
static ng_training *training;
static ng_group *group;
static ng_parallel *parallel;
static ng_named_tensor named;
static ng_batch batch;
static ng_recurrent_state state;
static ng_check_report report;
static ng_rng rng;
static double numbers[1];
static int64_t count;

static ng_tensor *a_call(ng_tape *on, ng_tensor *const *in, void *context)
{
    (void)context;
    return ng_square(on, in[0]);
}

static ng_tensor *a_definition(ng_tape *on, const ng_node *node)
{
    return ng_square(on, node->inputs[0]);
}
static const ng_op an_op = {.name = "an op", .definition = a_definition};

/* A check tells what is wrong in its report, and records nothing. */
static ng_status failed(void) { return ng_failed() ? ng_error_status() : NG_ENULL; }

static void begin_calls(void)
{
    set_up();
    rng = ng_rng_seeded(1);
    leaf = own(ng_require_grad(ng_normal_new(NG_F64, NG_SHAPE(2, 2), 0, 1, &rng)));
    result = ng_square(tape, leaf);
    fresh = ng_result_full(tape, NG_F64, NG_SHAPE(2, 2), 1);
    numbers[0] = 1e-3;
    layer = ng_linear_new(2, 2), norm = ng_batch_norm_new(2);
    assert_ok(ng_module_to(layer, NG_F64));
    data = ng_dataset_from(leaf, NG_NONE);
    history = ng_history_new("nulls");
    adam = ng_adam_new(layer);
    training = ng_training_new(adam, .tape = tape, .data = data);
    some_data = other_data = NULL;
    group = ng_group_alone_new();
    parallel = ng_parallel_new(layer, group);
    assert_ok(training && parallel);
}

static void end_calls(void)
{
    ng_training_free(training), ng_optimizer_free(adam), ng_history_free(history);
    ng_parallel_free(parallel), ng_group_free(group);
    ng_dataset_free(data), ng_dataset_free(some_data), ng_dataset_free(other_data);
    ng_module_free(layer), ng_module_free(norm);
    tear_down();
}

/* Whether a call says that it has worked; void ones, counts and answers cannot. */
typedef enum { NO, YES, UNTOLD } answer;
static answer by_pointer(const void *pointer) { return pointer ? YES : NO; }
static answer by_status(ng_status status) { return status == NG_OK ? YES : NO; }
static answer by_value(double value) { return isnan(value) ? NO : YES; }
static answer by_number(int64_t number) { return (void)number, UNTOLD; }
/* clang-format off */
#define ANSWER(made)                                                                               \
    _Generic((made), ng_status: by_status, double: by_value, int: by_number, int64_t: by_number,   \
             bool: by_number, default: by_pointer)(made)
/* clang-format on */

static int pointers; /* of the last call */

#define LINED(name, line) LINED_AS(name, line)
#define LINED_AS(name, line) name##line
#define NULLED(name, ...)                                                                          \
    static answer LINED(call_, __LINE__)(int which) { return (void)which, ANSWER((__VA_ARGS__)); }
#define NULLS(name, made, ...)                                                                     \
    static answer LINED(call_, __LINE__)(int which)                                                \
    {                                                                                              \
        void *p[] = {__VA_ARGS__};                                                                 \
        p[which] = NULL, pointers = sizeof p / sizeof *p;                                          \
        return ANSWER((made));                                                                     \
    }
#define ALONE(name)                                                                                \
    static answer call_of_##name(int which) { return (void)which, ANSWER(name(NULL)); }
#define ALONE_WITH(name) ALONE(name)
#include "nulls.def"
#undef NULLED
#undef NULLS
#undef ALONE
#undef ALONE_WITH

static const struct {
    const char *name, *text;
    answer (*call)(int which);
} calls[] = {
#define NULLED(name, ...) {#name, #__VA_ARGS__, LINED(call_, __LINE__)},
#define NULLS(name, made, ...) {#name, #made, LINED(call_, __LINE__)},
#define ALONE(name) {#name, #name "(NULL)", call_of_##name},
#define ALONE_WITH(name) {#name "_with", #name "(NULL)", call_of_##name},
#include "nulls.def"
};
enum { N_CALLS = sizeof calls / sizeof calls[0] };

/* The function's name without _with, as errors have it. */
static bool names_itself(const char *name)
{
    const char *with = strstr(name, "_with");
    const size_t stem = with ? (size_t)(with - name) : strlen(name);
    return strncmp(ng_error_text(), name, stem) == 0;
}

START_TEST(null_is_an_error_that_names_the_function)
{
    const char *text = calls[_i].text;
    pointers = 1;
    for (int which = 0; which < pointers; which++) {
        const answer worked = calls[_i].call(which);
        ck_assert_msg(worked != YES, "%s works with NULL %d", text, which);
        if (strstr(text, "passed")) return;
        ck_assert_msg(ng_error_status() == NG_ENULL && names_itself(calls[_i].name),
                      "%s, NULL %d: \"%s\" is %s", text, which, ng_error_text(),
                      ng_status_name(ng_error_status()));
        ng_clear_error();
    }
}

/* ---- The list is complete ------------------------------------------------------------------ */

/* The one records failures itself; the other is called by a handler of signals. */
static const char *const without_row[] = {"ng_fail", "ng_training_stop"};

static bool has_row(const char *name)
{
    const size_t length = strlen(name);
    if (is_among(name, without_row, sizeof without_row / sizeof *without_row)) return true;
    for (int i = 0; i < N_CALLS; i++)
        if (strcmp(calls[i].name, name) == 0) return true;
    return length > 5 && strcmp(name + length - 5, "_free") == 0;
}

/* Whether a '*' stands between `from` and `to` that is not a tensor's, nor the tape's of an
 * operation, which tests/ops/operands.def has. */
static bool takes_pointer(const char *from, const char *to, bool operations)
{
    for (const char *at = from; at < to; at++) {
        if (*at != '*') continue;
        const char *type = at;
        while (type > from && (type[-1] == ' ' || type[-1] == '*')) type--;
        while (type > from && (isalnum((unsigned char)type[-1]) || type[-1] == '_')) type--;
        if (strncmp(type, "ng_tensor", 9) == 0 || strncmp(type, "const", 5) == 0) continue;
        if (!operations || strncmp(type, "ng_tape", 7) != 0) return true;
    }
    return false;
}

static bool takes_pointer_and_has_row(const declaration *d)
{
    static const char *const operations[] = {"elementwise.h", "images.h",     "losses.h",
                                             "norm_ops.h",    "reductions.h", "sequences.h",
                                             "shapes.h"};
    const size_t families = sizeof operations / sizeof *operations;
    if (!takes_pointer(d->open, d->end, is_among(d->header, operations, families))) return false;
    ck_assert_msg(has_row(d->name), "%s takes a pointer and has no row in tests/core/nulls.def",
                  d->name);
    return true;
}

START_TEST(every_function_that_takes_a_pointer_has_a_row)
{
    ck_assert_int_gt(declarations_that(takes_pointer_and_has_row), 80);
}

Suite *nulls_suite(void)
{
    Suite *suite = suite_create("nulls");
    TCase *tests = add_case(suite, begin_calls, end_calls);
    add_tests(tests, every_function_that_takes_a_pointer_has_a_row);
    add_loops(tests, N_CALLS, null_is_an_error_that_names_the_function);
    return suite;
}
