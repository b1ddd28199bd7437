/* How the files of this folder list their cases: a row for each, in a list for each file of the
 * library; and from all lists a function for each row, and the table.
 *
 *     #define ELEMENTWISE(X)                                                       \
 *         X(exp, (ANY("x", 3, 4)), ng_exp(tape, in[0]))                            \
 *         X(log, (POSITIVE("x", 3, 4)), ng_log(tape, in[0]))
 *     ELEMENTWISE(OP_CALL)
 *     static const gradient_case cases[] = {ELEMENTWISE(OP_ROW)};
 *     const case_list op_cases = LIST(cases); */
#ifndef NG_TESTS_CASES_TABLE_H
#define NG_TESTS_CASES_TABLE_H

#include "cases.h"

typedef struct {
    const gradient_case *cases;
    int count;
} case_list;
extern const case_list op_cases, norm_op_cases, fused_cases, large_norm_cases, large_cases,
    nn_cases, norm_cases;
#define LIST(cases)                                                                                \
    {                                                                                              \
        cases, (int)(sizeof(cases) / sizeof((cases)[0]))                                           \
    }

/* What is made of a row: its name, its inputs in parentheses, and a call of an op, also one whose
 * first two operands broadcast, */
#define OP_CALL(label, operands, ...)                                                              \
    static ng_tensor *case_##label(ng_tape *tape, ng_tensor *const *in, void *context)             \
    {                                                                                              \
        (void)context;                                                                             \
        return __VA_ARGS__;                                                                        \
    }
#define OP_ROW(label, operands, ...)                                                               \
    {.name = #label, .call = case_##label, .inputs = LISTED operands},
#define BROADCAST_ROW(label, operands, ...)                                                        \
    {.name = #label, .call = case_##label, .broadcasts = true, .inputs = LISTED operands},
#define LISTED(...)                                                                                \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

/* or a layer, in training or in evaluation. */
#define LAYER_MAKER(label, operands, ...)                                                          \
    static ng_module *case_##label(void) { return __VA_ARGS__; }
#define LAYER_ROW(label, operands, ...)                                                            \
    {.name = #label, .module = case_##label, .inputs = LISTED operands},
#define EVALUATED_ROW(label, operands, ...)                                                        \
    {.name = #label, .module = case_##label, .eval = true, .inputs = LISTED operands},

/* NG_SHAPE for static tables, where a compound literal is no constant. */
#define SHAPE(...)                                                                                 \
    {                                                                                              \
        .rank = (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), .dim = { __VA_ARGS__ }  \
    }

/* Inputs by name and shape: normal values, the same for a case of a whole batch, or away from 0,
 * values in [0.5, 2) or between two numbers, indices from 0 to below a number; and constants,
 * normal ones or in [0.5, 2). */
#define ANY(label, ...)                                                                            \
    {                                                                                              \
        .name = label, .shape = SHAPE(__VA_ARGS__)                                                 \
    }
#define BATCH(label, ...)                                                                          \
    {                                                                                              \
        .name = label, .shape = SHAPE(__VA_ARGS__), .batch = true                                  \
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
