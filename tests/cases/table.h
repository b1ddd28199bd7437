/* How the files of this folder list their cases: a function for each call, and a table for each
 * file of the library, which the file's list names.
 *
 *     CALL(case_exp, ng_exp(tape, in[0]))
 *     static const gradient_case elementwise_cases[] = {
 *         OP("exp", case_exp, ANY("x", 3, 4)),
 *     };
 *     const case_list ops_lists[] = {
 *         LIST(elementwise_cases),
 *         {0},
 *     };
 */
#ifndef NG_TESTS_CASES_TABLE_H
#define NG_TESTS_CASES_TABLE_H

#include "cases.h"

typedef struct {
    const gradient_case *cases;
    int count;
} case_list;
extern const case_list ops_lists[], norm_ops_lists[], fused_lists[], nn_lists[], norms_lists[];
#define LIST(cases)                                                                                \
    {                                                                                              \
        cases, (int)(sizeof(cases) / sizeof((cases)[0]))                                           \
    }

#define CALL(name, expression)                                                                     \
    static ng_tensor *name(ng_tape *tape, ng_tensor *const *in, void *context)                     \
    {                                                                                              \
        (void)context;                                                                             \
        return expression;                                                                         \
    }
#define MODULE(name, expression)                                                                   \
    static ng_module *name(void) { return expression; }

/* Rows of the table: of an op, of a layer in training, of one with .batch, of a layer in
 * evaluation. */
#define OP(label, function, ...)                                                                   \
    {                                                                                              \
        .name = label, .call = function, .inputs = { __VA_ARGS__ }                                 \
    }
#define LAYER(label, constructor, ...)                                                             \
    {                                                                                              \
        .name = label, .module = constructor, .inputs = { __VA_ARGS__ }                            \
    }
#define BATCH_LAYER(label, constructor, ...)                                                       \
    {                                                                                              \
        .name = label, .module = constructor, .batch = true, .inputs = { __VA_ARGS__ }             \
    }
#define LAYER_EVAL(label, constructor, ...)                                                        \
    {                                                                                              \
        .name = label, .module = constructor, .eval = true, .inputs = { __VA_ARGS__ }              \
    }

/* NG_SHAPE for static tables, where a compound literal is no constant. */
#define SHAPE(...)                                                                                 \
    {                                                                                              \
        .rank = (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), .dim = { __VA_ARGS__ }  \
    }

/* Inputs by name and shape: normal values, the same away from 0, values in [0.5, 2) or between two
 * numbers, indices from 0 to below a number; and constants, normal ones or in [0.5, 2). */
#define ANY(label, ...)                                                                            \
    {                                                                                              \
        .name = label, .shape = SHAPE(__VA_ARGS__)                                                 \
    }
#define NOT_ZERO(label, ...)                                                                       \
    {                                                                                              \
        .name = label, .shape = SHAPE(__VA_ARGS__), .avoid = 0.3                                   \
    }
#define POSITIVE(label, ...)                                                                       \
    {                                                                                              \
        .name = label, .shape = SHAPE(__VA_ARGS__), .low = 0.5, .high = 2                          \
    }
#define BETWEEN(label, from, to, ...)                                                              \
    {                                                                                              \
        .name = label, .shape = SHAPE(__VA_ARGS__), .low = from, .high = to                        \
    }
#define CONSTANT(label, ...)                                                                       \
    {                                                                                              \
        .name = label, .shape = SHAPE(__VA_ARGS__), .constant = true                               \
    }
#define POSITIVE_CONSTANT(label, ...)                                                              \
    {                                                                                              \
        .name = label, .shape = SHAPE(__VA_ARGS__), .low = 0.5, .high = 2, .constant = true        \
    }
#define INDEX(label, below, ...)                                                                   \
    {                                                                                              \
        .name = label, .shape = SHAPE(__VA_ARGS__), .index = true, .high = below                   \
    }

#endif
