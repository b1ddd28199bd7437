/* The gradient checker: doubts every derivative until finite differences agree.
 *
 *     ng_check_report report = ng_check_function(cube, &x, 1, .order = 2);
 *     if (!report.passed) ng_check_print(stderr, "cube", &report);
 *
 * Order 1 checks the gradient; order 2 checks it too, and then the gradient of the gradient: one
 * call says all. The function may itself take gradients (a gradient penalty, the residual of a
 * differential equation, a step of learning to learn), recorded: .record = true.
 *
 * The output is contracted with a random cotangent (the plain sum of a normalized row is constant
 * and would test nothing), everything runs in double, and each derivative is a Richardson
 * extrapolation of central differences with a step scaled to the element (Ridders 1982). The
 * extrapolation also estimates its own error, and from that the tolerance follows; where that
 * estimate is too large to tell right from wrong, the derivative counts as wrong. What seems wrong
 * is measured again from other steps, so that noise (float arithmetic inside the function) is told
 * from an error.
 *
 * What is no function of the input is held fixed while the input moves: dropout masks, running
 * statistics, and what ng_detach returns. A value that was detached by mistake, as the deviation in
 * a norm, is a term that the gradient lacks and that this hides; so the report counts the detached
 * values that the result would move with and says where the first one is, and with
 * .detached_moves = true they move and the gradient is found wrong. A detached value that is meant
 * (ng_detach(tape, x, .by_definition = true)) is held fixed either way. What is only compared with
 * (ng_greater of a detached x) or cancels (a softmax's detached maximum) moves nothing and does not
 * count.
 */
#ifndef NORMGRAD_GRADCHECK_H
#define NORMGRAD_GRADCHECK_H

#include <normgrad/cases.h>
#include <normgrad/nn.h>

NG_BEGIN_C

/* How much is compared. */
typedef enum {
    NG_CHECK_ELEMENTS = 0, /* every element of every input and parameter */
    NG_CHECK_FAST,         /* along `directions` random Gaussian directions per tensor */
    NG_CHECK_TAYLOR        /* f(x + h d) - f(x) - h f'(x) d must fall as h^2, besides */
} ng_check_mode;

/* The settings of every check. */
typedef struct {
    void *context;      /* handed to the function as it is; of a module there is none */
    int order;          /* 1 (default), or 2: order 1, then the gradient of the gradient */
    ng_check_mode mode; /* default NG_CHECK_ELEMENTS */
    uint64_t seed;      /* of cotangents, directions and dropout */
    int directions;     /* NG_CHECK_FAST, NG_CHECK_TAYLOR only: default 3; elements of less than
                           2^-16 of most are moved along them, and compared, apart */
    double tolerance;   /* relative error beside the estimated one; default 1e-9, NG_ZERO: none */
    double step;        /* the largest step, relative to each element; default: several are tried */
    const char *const *names; /* of the inputs, for the report; default input 0, 1... */
    const bool *constant;     /* inputs that are handed on unchecked; default: none */
    bool detached_moves;      /* detached values are not held fixed, but for those by definition */
    ng_tensor *const *inputs; /* double, yours, copied; int64 ones are handed on unchecked */
    int n_inputs;             /* how many */
} ng_check_options;

/* What was found. Strings live in the report. */
typedef struct {
    bool passed;         /* nothing was wrong, and something was compared */
    int order;           /* how far it went: 1 of 2 where the first derivatives were wrong */
    ng_check_mode mode;  /* as checked */
    int64_t compared;    /* derivatives, of both orders where it went to 2 */
    int64_t failed;      /* of these, how many are wrong */
    int64_t kinks;       /* of these, how many stand at a kink (one-sided slopes differ, and the
                          analytic one is between them), where no derivative exists; they are
                          not counted as failed, but an input all of whose derivatives do has
                          not passed (a direction does where one of its elements does) */
    char worst_name[64]; /* the worst derivative: of which input or parameter, at which flat */
    int64_t worst_index; /* index (or along which direction); "" where nothing was compared */
    double analytic, numeric; /* its two values */
    double absolute_error;    /* |a - n| */
    double relative_error;    /* |a - n| / max(|a|, |n|, largest derivative of the tensor); 0 where
                                 both are 0 but for rounding */
    double error_estimate;    /* of the numeric derivative itself */
    double slope;             /* NG_CHECK_TAYLOR: the lowest exponent of the remainder that was
                              measured; 0 where all remainders are rounding, as of a line */
    int detached;  /* detached values that the result would move with: held fixed, or moved */
    int constants; /* the same that are constant by definition */
    char detached_value[112]; /* the first of `detached`: "rsqrt (4, 1) at my_norm.c:42" */
    char hint[128];    /* "the sign is flipped", "too large by a factor of 1.01"; "" where none */
    char message[256]; /* what is wrong, in a sentence; "" where passed */
} ng_check_report;

/* Checks the derivatives of a function with respect to n inputs. These are double, of any shapes,
 * and yours (they are copied); settings come by name:
 *
 *     static ng_tensor *cube(ng_tape *tape, ng_tensor *const *inputs, void *context);
 *     ng_check_report report = ng_check_function(cube, &x, 1, .order = 2);
 *
 * The function composes its result, of any shape, of ops on the tape that it is given; it is run
 * several times for each element. The report says whether all derivatives agreed (.passed) and, if
 * not, where and how far they did not. A function that fails, gives NaN, gives other bits when it
 * is run again, has no gradient to an input, or leaves nothing to compare, has not passed; nor has
 * one whose gradient to an input is another where it is asked for alone and added to what is there
 * (ng_slot's `accumulate`) or, at order 2, recorded; and inputs that are missing or NG_NONE, and
 * options without meaning (a tolerance below 0, order 3).
 */
#define ng_check_function(call, list, ...)                                                         \
    ng_check_function_with(call,                                                                   \
                           NG_NAMED_TWO(ng_check_options, inputs, list, n_inputs, __VA_ARGS__))
NG_API ng_check_report ng_check_function_with(ng_check_call *call, ng_check_options options);

/* Checks a module, with respect to its input x (double), its condition where a second input is
 * given, and each of its parameters. The module works in double during the check and is given back
 * as it was, values, gradients and all. Parameters, and buffers of more than one element, that
 * stand at their initial 0 or 1 are randomised for the check: a gamma of 1 hides its absence. */
#define ng_check_module(module, list, ...)                                                         \
    ng_check_module_with(module,                                                                   \
                         NG_NAMED_TWO(ng_check_options, inputs, list, n_inputs, __VA_ARGS__))
NG_API ng_check_report ng_check_module_with(ng_module *module, ng_check_options options);

/* One line: name, order, derivatives compared, worst relative error (absolute where the derivative
 * is 0; NG_CHECK_TAYLOR: slope), its place, verdict; two more where it failed. A name of NULL is
 * left out. ng_check_print_head prints what stands above. */
NG_API void ng_check_print(FILE *stream, const char *name, const ng_check_report *report);
NG_API void ng_check_print_head(FILE *stream);

/* The error of a central difference against its relative step h, without extrapolation: for the
 * plot that shows truncation (h^2) and rounding (1/h). Fills errors[i] for steps[i] with the
 * median over all elements of |numeric - analytic| / |analytic| (elements of derivative 0 are left
 * out). What is wrong with the function is wrong here too: NG_EVALUE, and so is an option that says
 * how to compare (mode, tolerance, step). */
NG_API ng_status ng_check_sweep(ng_check_call *call, ng_check_options options, const double *steps,
                                double *errors, int count);

/* ---- Cases, of cases.h --------------------------------------------------------------------- */

/* Draws one input of a case, in double (int64 for indices); yours. */
NG_API ng_tensor *ng_case_input_new(const ng_case_input *input, ng_rng *rng);

/* Checks one case, as the options say (their inputs are not used). */
NG_API ng_check_report ng_check_case(const ng_case *spec, ng_check_options options);

/* A case's operands inputs[0] and inputs[1] in shapes that broadcast. */
typedef enum {
    NG_BROADCAST_LEFT = 0, /* inputs[0] loses its first dimension */
    NG_BROADCAST_RIGHT,    /* inputs[1] has 1 for its last */
    NG_BROADCAST_BOTH      /* inputs[0] has 1 for its last, inputs[1] loses its first */
} ng_broadcast_side;
NG_API ng_case ng_case_broadcast(const ng_case *spec, ng_broadcast_side side);

NG_END_C

#endif
