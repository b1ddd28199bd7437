/* How the files of ops and layers list their cases.
 *
 *     NG_CASE_CALL(case_exp, ng_exp(tape, in[0]))
 *     const ng_case ng_op_cases_file[] = {
 *         NG_CASE("exp", case_exp, NG_CASE_ANY("x", 3, 4)),
 *     };
 *     const int ng_op_cases_file_count = NG_CASE_COUNT(ng_op_cases_file);
 *
 * `file` is the name of the file. A layer's list is ng_layer_cases_file. The file's line in
 * ops/cases.def or norms/cases.def makes the tests run them.
 */
#ifndef NG_TAPE_CASE_H
#define NG_TAPE_CASE_H

#include <normgrad/cases.h>

#define NG_CASE_CALL(name, expression)                                                             \
    static ng_tensor *name(ng_tape *tape, ng_tensor *const *in, void *context)                     \
    {                                                                                              \
        (void)context;                                                                             \
        return expression;                                                                         \
    }
#define NG_CASE_MODULE(name, expression)                                                           \
    static ng_module *name(void) { return expression; }

/* Rows of the table: of an op, of a layer in training, of a layer in evaluation. */
#define NG_CASE(label, function, ...)                                                              \
    {                                                                                              \
        .name = label, .call = function, .inputs = { __VA_ARGS__ }                                 \
    }
#define NG_CASE_LAYER(label, constructor, ...)                                                     \
    {                                                                                              \
        .name = label, .module = constructor, .inputs = { __VA_ARGS__ }                            \
    }
#define NG_CASE_EVAL(label, constructor, ...)                                                      \
    {                                                                                              \
        .name = label, .module = constructor, .eval = true, .inputs = { __VA_ARGS__ }              \
    }

/* NG_SHAPE for static tables, where a compound literal is no constant. */
#define NG_CASE_SHAPE(...)                                                                         \
    {                                                                                              \
        .rank = (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), .dim = { __VA_ARGS__ }  \
    }

/* Inputs by name and shape: normal values, the same away from 0, values in [0.5, 2) or between two
 * numbers, indices from 0 to below a number; and constants, normal ones or in [0.5, 2). */
#define NG_CASE_ANY(label, ...)                                                                    \
    {                                                                                              \
        .name = label, .shape = NG_CASE_SHAPE(__VA_ARGS__)                                         \
    }
#define NG_CASE_NOT_ZERO(label, ...)                                                               \
    {                                                                                              \
        .name = label, .shape = NG_CASE_SHAPE(__VA_ARGS__), .avoid = 0.3                           \
    }
#define NG_CASE_POSITIVE(label, ...)                                                               \
    {                                                                                              \
        .name = label, .shape = NG_CASE_SHAPE(__VA_ARGS__), .low = 0.5, .high = 2                  \
    }
#define NG_CASE_BETWEEN(label, from, to, ...)                                                      \
    {                                                                                              \
        .name = label, .shape = NG_CASE_SHAPE(__VA_ARGS__), .low = from, .high = to                \
    }
#define NG_CASE_CONSTANT(label, ...)                                                               \
    {                                                                                              \
        .name = label, .shape = NG_CASE_SHAPE(__VA_ARGS__), .constant = true                       \
    }
#define NG_CASE_POSITIVE_CONSTANT(label, ...)                                                      \
    {                                                                                              \
        .name = label, .shape = NG_CASE_SHAPE(__VA_ARGS__), .low = 0.5, .high = 2,                 \
        .constant = true                                                                           \
    }
#define NG_CASE_INDEX(label, below, ...)                                                           \
    {                                                                                              \
        .name = label, .shape = NG_CASE_SHAPE(__VA_ARGS__), .index = true, .high = below           \
    }

#define NG_CASE_COUNT(cases) ((int)(sizeof(cases) / sizeof((cases)[0])))

/* The lists of several files, one after the other. */
typedef struct {
    const ng_case *cases;
    const int *count;
} ng_case_list;

static inline const ng_case *ng_case_at(const ng_case_list *lists, int n_lists, int index)
{
    if (index < 0) return NULL;
    for (int i = 0; i < n_lists; i++) {
        if (index < *lists[i].count) return &lists[i].cases[index];
        index -= *lists[i].count;
    }
    return NULL;
}

#endif
