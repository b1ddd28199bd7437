/* The gradient checker: compares every derivative with finite differences.
 *
 *     ng_check_report report = ng_check_function(cube, &x, 1, .order = 2);
 *     if (!report.passed) ng_check_print(stderr, "cube", &report);
 *
 * Order 1 checks the gradient. Order 2 checks it too, and then the gradient of the gradient. The
 * function may take gradients itself (a gradient penalty, the residual of a differential equation),
 * recorded: .record = true.
 *
 * Everything runs in double. The output is contracted with a random cotangent, because the plain
 * sum of a normalized row is constant and would test nothing. Each numeric derivative is a
 * Richardson extrapolation of central differences, with steps scaled to the element (Ridders 1982).
 * The extrapolation estimates its own error; the tolerance follows from it. Where that estimate is
 * too large to tell right from wrong, the derivative counts as wrong.
 *
 * Finite differences cannot see what is narrower than their steps (about 1/16 of the size of the
 * input's elements, and less where that is not enough), nor the derivative to elements that are
 * 10^7 times smaller than the others of their input, nor anything at inputs below 1e-290. A
 * function that computes in float32 inside is too coarse for double's steps; it needs a .tolerance
 * such as 1e-3.
 *
 * What is no function of the input is held fixed while the input moves: dropout masks, running
 * statistics, and what ng_detach returns. A value that was detached by mistake, such as the
 * deviation in a norm, is a term that the gradient lacks. So the report counts the detached values
 * that the result depends on and says where the first one is. With .detached_moves = true they
 * move, and the gradient is found wrong. A value that is constant by definition (ng_detach(tape, x,
 * .by_definition = true)) is held fixed either way. A detached value that is only compared with, or
 * that cancels (a softmax's detached maximum), does not count.
 *
 * Where the first op of your own in the function says .float32, the function is run in float32 as
 * well: values and gradients have to agree with double to 1e-3 of the largest. Where that cannot be
 * done, the report says why.
 *
 * Inputs are counted from 1, as operands are in error messages; elements are counted from 0, as in
 * memory. A failure inside the function is quoted in the report and is not left on record:
 * ng_failed() is afterwards what it was before. Only a NULL among the arguments and a lack of
 * memory are recorded.
 */
#ifndef NORMGRAD_GRADCHECK_H
#define NORMGRAD_GRADCHECK_H

#include <normgrad/nn.h>

NG_BEGIN_C

/* A function under test: computes its output on the tape from inputs and context. */
typedef ng_tensor *ng_check_call(ng_tape *tape, ng_tensor *const *inputs, void *context);

/* How much is compared. */
typedef enum {
    NG_CHECK_ELEMENTS = 0, /* every element of every input and parameter */
    NG_CHECK_FAST          /* `directions` random directions in each input and parameter */
} ng_check_mode;

/* The settings of every check. */
typedef struct {
    void *context;      /* handed to the function; not for modules */
    int order;          /* 1 (default), or 2: order 1, then the gradient of the gradient */
    ng_check_mode mode; /* default NG_CHECK_ELEMENTS */
    uint64_t seed;      /* of cotangents, directions and dropout */
    int directions;     /* NG_CHECK_FAST only: default 3 */
    double tolerance;   /* relative error beside the estimated one; default 1e-9, NG_ZERO: none */
    double step;        /* the largest step, relative to each element; default 1/16 */
    const char *const *names; /* of the inputs, for the report; default "input 1", "input 2"... */
    const bool *constant;     /* inputs that are handed on unchecked; default: none */
    bool detached_moves;      /* detached values move, except those by definition */
    ng_tensor *const *inputs; /* float64 ones, which are copied; int64 ones, handed on unchecked */
    int n_inputs;             /* how many */
} ng_check_options;

/* What was found. Strings are part of the report. */
typedef struct {
    bool passed;        /* nothing was wrong, and something was compared */
    int order;          /* how far it went: 1 of 2 where the first derivatives were wrong */
    ng_check_mode mode; /* as checked */
    int64_t compared;   /* derivatives, of both orders where it went to 2 */
    int64_t failed;     /* how many of them are wrong */
    int64_t kinks;      /* how many of them stand at a kink: the slopes of the two sides differ and
                            the analytic one is between them. A kink is no failure; but an input
                            of which all derivatives are kinks does not pass */
    char
        worst_name[64]; /* input or parameter of the worst derivative; "" where none was compared */
    int64_t worst_index;      /* its element, or its direction, from 0 */
    double analytic, numeric; /* its two values */
    double absolute_error;    /* |a - n| */
    double relative_error;    /* |a - n| / max(|a|, |n|, largest derivative of the tensor); 0 where
                                 both are 0 but for rounding */
    double error_estimate;    /* of the numeric derivative itself */
    int detached;             /* detached values that the result depends on */
    int constants;            /* the same that are constant by definition */
    char detached_value[112]; /* the first of `detached`: "rsqrt (4, 1) at my_norm.c:42" */
    char own_op[48];          /* the first op of your own in the function; "" where there is none */
    char not_in_float32[96];  /* why that op was not checked in float32; "" where it was */
    char counts[160];  /* by input: "x: 15 of 15 wrong; gamma, beta: right"; of the last order */
    char hint[128];    /* "the sign is flipped", "too large by a factor of 1.01"; "" where none */
    char message[256]; /* what is wrong, in a sentence; "" where passed */
} ng_check_report;

/* Checks the derivatives of a function with respect to n inputs. These are float64, of any shapes,
 * and yours (they are copied); settings come by name:
 *
 *     static ng_tensor *cube(ng_tape *tape, ng_tensor *const *inputs, void *context);
 *     ng_check_report report = ng_check_function(cube, &x, 1, .order = 2);
 *
 * The function computes its result, of any shape, with ops on the tape that it is given. It is run
 * several times for each element. The check does not pass
 *   - if a derivative is wrong, or an input has no gradient;
 *   - if the gradient of an input differs when it is taken alone, recorded, or added to an earlier
 *     one (ng_slot's `accumulate`);
 *   - if the function fails, gives NaN, or gives other bits when it is run again;
 *   - if there is nothing to compare, or a setting is out of range. */
#define ng_check_function(call, list, ...)                                                         \
    ng_check_function_with(call,                                                                   \
                           NG_LISTED_TWO(ng_check_options, inputs, list, n_inputs, __VA_ARGS__))
NG_API ng_check_report ng_check_function_with(ng_check_call *call, ng_check_options options);

/* Checks a module with respect to its input x (float64), to others of ng_forward's inputs, which
 * .names names, and to each of its parameters:
 *
 *     static const char *const names[] = {"x", "condition"};
 *     ng_check_report report = ng_check_module(layer, inputs, 2, .names = names);
 *
 * The module works in double during the check and is given back as it was: values, gradients,
 * dtype. Parameters, and buffers of more than one element, that are all 0 or all 1 are drawn at
 * random for the check: a gamma of 1 hides that it was forgotten. */
#define ng_check_module(module, list, ...)                                                         \
    ng_check_module_with(module,                                                                   \
                         NG_LISTED_TWO(ng_check_options, inputs, list, n_inputs, __VA_ARGS__))
NG_API ng_check_report ng_check_module_with(ng_module *module, ng_check_options options);

/* Prints one line: name, order, derivatives compared, worst relative error (absolute where the
 * derivative is 0), its place, verdict. Up to three more where it
 * failed. `name` may be NULL. ng_check_print_head prints the heading. */
NG_API void ng_check_print(FILE *stream, const char *name, const ng_check_report *report);
NG_API void ng_check_print_head(FILE *stream);

/* The error of plain central differences, for the plot that shows truncation (h^2) and rounding
 * (1/h). Fills errors[i] for the relative step steps[i] with the median of
 * |numeric - analytic| / |analytic| over all elements (without those of derivative 0):
 *
 *     ng_check_sweep(cube, steps, errors, n_steps, &x, 1, .seed = 3);
 *
 * Returns an error where the function could not be checked either, and for the settings that say
 * how to compare (mode, tolerance, step). */
#define ng_check_sweep(call, steps, errors, n_steps, list, ...)                                    \
    ng_check_sweep_with(call, steps, errors, n_steps,                                              \
                        NG_LISTED_TWO(ng_check_options, inputs, list, n_inputs, __VA_ARGS__))
NG_API ng_status ng_check_sweep_with(ng_check_call *call, const double *steps, double *errors,
                                     int n_steps, ng_check_options options);

NG_END_C

#endif
