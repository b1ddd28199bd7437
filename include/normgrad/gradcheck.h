/* The gradient checker: compares every derivative with finite differences.
 *
 *     ng_tensor *input = ng_normal_new(NG_F64, NG_SHAPE(3, 4), 0, 1, &rng);
 *     ng_check_report report = ng_check_function(cube, &input, 1, .order = 2);
 *     if (!report.passed) ng_check_print(stderr, "cube", &report);
 *     report = ng_check_module(layer, &input, 1, .order = 3, .independent = 1, .shapes = true);
 *     printf("%s\n", report.passed ? "ok" : report.message);
 *
 *     ng_check_function(call, inputs, n)      checks a function with respect to its inputs
 *     ng_check_module(layer, inputs, n)       checks a layer with respect to inputs and parameters
 *     ng_check_print(stream, name, &report)   prints a report
 *
 * Order 1 checks the gradient. Order 2 checks the gradient and then the gradient of the gradient,
 * and so on up to order 4. Each order is compared with finite differences of the order below; the
 * report says which one is wrong. A fused norm may be right at orders 1 and 2 and wrong at order 3.
 * The function may take gradients itself (a gradient penalty, the residual of a differential
 * equation), recorded: .record = true.
 *
 * How it works. Everything runs in double. The checker multiplies the output by random numbers and
 * sums it up, because the plain sum of a normalized row is constant and would test nothing. Each
 * numeric derivative is a Richardson extrapolation of central differences (Ridders 1982), with
 * steps scaled to the element. It estimates its own error, from which the tolerance follows; where
 * the estimate is too large to tell right from wrong, the derivative counts as wrong.
 *
 * Random directions (NG_CHECK_FAST). A fault that changes the gradient g by e changes its product
 * with a direction by a normal number of deviation |e|. d directions miss it with a probability of
 * at most (2e-9 |g| / |e|)^d, at the default tolerance and for a result whose elements are less
 * than 10^3 |g| in sum. If a share p of the elements, of about one size, is off by a part r of
 * itself, |e| is r sqrt(p) |g|: one element in 10^6 that is 1 % too large is missed by three
 * directions with a probability of 8e-12. `make faults` measures it.
 *
 * Detached values. While an input moves, dropout masks, running statistics and the results of
 * ng_detach keep their values. So a value that was detached by mistake, such as the deviation in a
 * norm, is a term that the gradient lacks, and finite differences cannot see it. Therefore the
 * report counts the detached values that the result depends on, and says where the first one is.
 * With .detached_moves = true they move, and the gradient is found wrong. A value that is constant
 * by definition (ng_detach(tape, x, .by_definition = true)) never moves. A detached value that is
 * only compared with, or that cancels (the maximum in a softmax), does not count.
 *
 * Rows. A gradient can be right and the layer still wrong. With .independent = 1 the check computes
 * each sample alone: the result and the gradient must be, bit by bit, what they are among the other
 * samples. This finds a norm that takes its statistics over the batch, a mask that is aligned with
 * the wrong axis, a kernel that sums in another order for a larger batch. .independent = 2 is for
 * rows (N, T) of an x (N, T, d); with .causal = true the result at each position must not depend on
 * later ones. .shapes checks the layer on other shapes of x: ranks 2 to 5, one row, no row, lengths
 * that fill no vector.
 *
 * Limits. Finite differences cannot see structure that is narrower than their steps: about 1/16 of
 * the size of the input's elements, or less where that is too wide. They cannot see the derivative
 * to elements that are 10^7 times smaller than others of the same input, nor anything at inputs
 * below 1e-290. A function that computes in float inside is too coarse for double's steps: give it
 * a .tolerance such as 1e-3. The float kernels of an op of your own are not run: compare its values
 * and gradients in float with those in double (examples/more/custom_op.c).
 *
 * Inputs are counted from 1, as in error messages; elements are counted from 0, as in memory. A
 * failure inside the function is told in the report, and ng_failed() is afterwards what it was
 * before. Only a NULL argument and a lack of memory are recorded as failures.
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
    void *context;            /* passed to the function; not for modules */
    int order;                /* 1 to 4, default 1; 2: also the gradient of the gradient */
    ng_check_mode mode;       /* default NG_CHECK_ELEMENTS; orders 3 and 4 use directions */
    uint64_t seed;            /* of the random numbers, directions and dropout */
    int directions;           /* how many; default 3 */
    double tolerance;         /* relative, added to the estimated error; default 1e-9 */
    double step;              /* the largest step, relative to each element; default 1/16 */
    const char *const *names; /* of the inputs, for the report; default "input 1", "input 2"... */
    const bool *constant;     /* true for inputs that are not checked, NG_LIST(bool, false, true);
                                 default: all are */
    bool detached_moves;      /* detached values move, except those by definition */
    int independent;          /* the first so many dimensions of the first input and of the result
                                 number rows, each of which depends on itself alone */
    bool causal; /* along the last of these dimensions a row may depend on earlier ones */
    bool shapes; /* also other shapes of the first input, in random directions */
    ng_tensor *const *inputs; /* float64; int64 inputs are not checked */
    int n_inputs;             /* how many */
} ng_check_options;

/* The settings, with the inputs and their number: a list and its length, NG_TENSORS(a, b), or &x, 1
 * for a list of one. */
#define NG_CHECKED(list, ...)                                                                      \
    (NG_IS_LIST(list), NG_NAMED_TWO(ng_check_options, inputs, list, n_inputs, __VA_ARGS__))
#define NG_IS_LIST(list) (void)sizeof(*(list)) /* an error here: a tensor; a list of one is &x */

/* What was found. Strings are part of the report. */
typedef struct {
    bool passed;         /* nothing was wrong, and something was compared */
    int order;           /* how far it went: 1, not 2, if first derivatives were wrong */
    ng_check_mode mode;  /* of the worst derivative: whether worst_index is an element */
    int shapes;          /* .shapes: how many others were checked; those that the function refuses
                            (NG_ESHAPE, NG_EVALUE) are left out */
    int64_t compared;    /* how many derivatives, of all orders together */
    int64_t failed;      /* how many of them are wrong */
    int64_t kinks;       /* how many of them are at a kink: the slopes on both sides differ, and the
                            analytic one is between them. A kink is no failure, but an input that
                            has only kinks does not pass */
    char worst_name[64]; /* input or parameter of the worst derivative; "" if there is none */
    int64_t worst_index; /* its element, or its direction, from 0 */
    double analytic, numeric; /* its two values */
    double absolute_error;    /* |a - n| */
    double relative_error;    /* |a - n| / max(|a|, |n|, largest derivative of the tensor); 0 if
                                 both are 0 up to rounding */
    double error_estimate;    /* of the numeric derivative itself */
    int detached;             /* detached values that the result depends on */
    int constants;            /* how many more are constant by definition */
    char detached_value[112]; /* the first of `detached`: "rsqrt (4, 1) at my_norm.c:42" */
    char counts[160];         /* by input, of the last order: "x: 15 of 15 wrong; gamma: right" */
    char hint[128];           /* "the sign is flipped", "too large by a factor of 1.01"; or "" */
    char message[256];        /* what is wrong, in a sentence; "" if it passed */
} ng_check_report;

/* Checks the derivatives of a function with respect to n inputs. The inputs are float64 tensors of
 * yours, of any shapes; the checker copies them. The function computes a result of any shape with
 * ops on the tape that it is given:
 *
 *     static ng_tensor *cube(ng_tape *tape, ng_tensor *const *inputs, void *context);
 *     ng_check_report report = ng_check_function(cube, &x, 1, .order = 2);
 *
 * It is run several times for each element. The check does not pass
 *   - if a derivative is wrong, or an input has no gradient;
 *   - if the gradient of an input differs when it is taken alone, recorded, or added to an earlier
 *     one (ng_slot's `accumulate`);
 *   - if the gradient is not linear in the cotangent, as where it is clipped;
 *   - if the function fails, gives NaN, or gives other bits in a second run;
 *   - if there is nothing to compare, or a setting is out of range. */
#define ng_check_function(call, ...) ng_check_function_with(call, NG_CHECKED(__VA_ARGS__))
NG_API ng_check_report ng_check_function_with(ng_check_call *call, ng_check_options options);

/* Checks a module with respect to its float64 input x and to each of its parameters. .names adds
 * other inputs of ng_forward:
 *
 *     ng_check_report report = ng_check_module(layer, NG_TENSORS(x, condition),
 *                                              .names = NG_NAMES("x", "condition"));
 *
 * The module works in double during the check and is afterwards as it was. Parameters whose
 * elements are all 0 or all 1 get random values for the check, since a gamma of 1 hides that it was
 * forgotten; so do buffers of more than one element. */
#define ng_check_module(module, ...) ng_check_module_with(module, NG_CHECKED(__VA_ARGS__))
NG_API ng_check_report ng_check_module_with(ng_module *module, ng_check_options options);

/* Prints one line: name, order, derivatives compared, worst relative error (absolute where the
 * derivative is 0), its place, verdict; if the check failed, up to three more. `name` may be NULL.
 * ng_check_print_head prints the heading. */
NG_API void ng_check_print(FILE *stream, const char *name, const ng_check_report *report);
NG_API void ng_check_print_head(FILE *stream);

NG_END_C

#endif
