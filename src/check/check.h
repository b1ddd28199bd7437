/* The gradient checker from inside: its method, and what its files share.
 *
 * Method
 *
 *   What is differentiated is one number, s = sum_j w_j F_j(leaves). At order 1 F is the function's
 *   output and w a random cotangent u. At each further order, up to the fourth, F is the list of
 *   gradients of the s below it, and w another random cotangent. Random weights matter: the plain
 *   sum of a normalized row is constant and would test nothing. From the third order on directions
 *   move, not elements.
 *
 *   The numeric derivative (richardson.c) comes from central differences in double,
 *
 *       D(h) = (s(x + h) - s(x - h)) / 2h = s' + c1 h^2 + c2 h^4 + ...
 *
 *   with steps h = L/16, L/32, ... L/2^29 until the extrapolated value is good enough. L is the
 *   scale of the element: the larger of |x| and the root mean square of its tensor, as a power of
 *   two. If L is tiny and the values do not move with it, as those of exp(1e-17), L is 2^-20.
 *   Richardson's extrapolation removes h^2, h^4, ...; how far an extrapolated value is from
 *   what it was made of estimates its error (Ridders 1982). Rounding and noise are part of it.
 *
 *   An analytic derivative a and a numeric one n agree (derivatives.c) where
 *
 *       |a - n| <= tolerance max(|a|, |n|) + slack,    slack = 4 error + rounding
 *
 *   and slack is below 10^-5 S, S being the largest derivative of the tensor. An estimate with a
 *   larger error cannot tell right from wrong, and such a derivative counts as wrong.
 *
 *   Where the slopes of the two sides stay apart as the step shrinks, the point is a kink (kink.c):
 *   no derivative exists, and any value between the two slopes is right.
 *
 *   What is no function of the inputs is held fixed: random numbers, running statistics, detached
 *   values (tape/replay.h). detached.c finds those detached values that the result depends on.
 *
 *   Besides (repeat.c): the same bits when run again and when nothing is recorded; each gradient
 *   the same when it is asked for alone and added to another one, and when it is recorded; and
 *   linear in the cotangent. rows.c computes rows alone, shapes.c checks other shapes. check.c has
 *   all passes as a table.
 *
 * What it guarantees
 *
 *   A derivative that is off by more than the tolerance, and by more than four times the estimated
 *   error of the numeric one, is reported, whatever its cause: a sign, a factor, a missing term,
 *   one element, a definition that differs from its kernel.
 *
 * What finite differences cannot see (the rest is in gradcheck.h)
 *
 *   - A derivative that is less than 10^-12 of the largest in its tensor, or that cancels from
 *     terms 10^12 times as large.
 *   - A jump that is symmetric about the point, as the gradient of |x| has at 0. Both sides have
 *     the same slope, so it is no kink, and order 2 calls the derivative wrong.
 */
#ifndef NG_CHECK_CHECK_H
#define NG_CHECK_CHECK_H

#include "tape/tape.h"
#include <math.h>
#include <normgrad/gradcheck.h>
#include <string.h>

/* ---- Thresholds ------------------------------------------------------------------------------ */

/* From this order on directions move, not single elements. */
#define CHECK_IN_DIRECTIONS 3

/* Steps: the first, relative to L; how many; powers of h^2 that are extrapolated. More steps reach
 * below rounding, more powers amplify it. Finite differences of less than TINY are lost beside
 * values near 1. */
#define CHECK_FIRST_STEP 0x1p-4
#define CHECK_STEPS 26
#define CHECK_POWERS 6
#define CHECK_TINY 0x1p-20
/* Factors of the first step, of few bits so that x + h is exact, and no fractions with a small
 * denominator: a whole period of sin(2 pi 16 x) would show no slope. The others measure again. */
#define CHECK_FACTOR (3709 / 4096.0)
#define CHECK_OTHER_FACTORS                                                                        \
    {                                                                                              \
        2557 / 4096.0, 3331 / 4096.0                                                               \
    }

/* The tolerance if the options have none. Right derivatives of the library are within 1e-10. */
#define CHECK_TOLERANCE 1e-9
/* The part of the tolerance at which the numeric derivative is refined no further. */
#define CHECK_ENOUGH 1e-2
/* Errors of the estimate that are allowed: it is the difference of two values, and may be small by
 * chance. */
#define CHECK_ERRORS 4
/* The error that the reverse pass may make: CANCELLED roundings of the outputs' size, where terms
 * cancel; and LOST of the tensor's largest derivative, in a sum. */
#define CHECK_CANCELLED 0x1p12
#define CHECK_LOST 1e-12
/* A derivative must be known to this part of the tensor's largest one, or to 10 tolerances if these
 * are more. A mistake of 1 % of a term that is 1000 times smaller than others shows. */
#define CHECK_KNOWN 1e-5

/* The same gradient, computed in another way, or recorded by the definition of a fused op: of its
 * own largest element, and of all gradients, beside which the sums of a small one are rounded. */
#define CHECK_SAME 1e-9
#define CHECK_SAME_OF_ALL 1e-13

/* Numbers that the cotangent is multiplied by: a gradient that is clipped, or 0 where it is small,
 * does not follow. */
#define CHECK_MULTIPLES                                                                            \
    {                                                                                              \
        -0x1p10, 0x1p-40                                                                           \
    }

/* A kink: the gap between the slopes of the two sides is above rounding by KINK, at a jump, where
 * it grows as rounding does, by JUMP. The gap falls by half as the step does where there is none;
 * the value may be outside it by OUTSIDE of the gap. */
#define CHECK_KINK 1e3
#define CHECK_JUMP 1e8
#define CHECK_OUTSIDE 1e-3

/* What detached values are found by: how far the input moves, relative to its size, and how much
 * more than rounding of values that cancel the result has to differ. */
#define CHECK_DISPLACED 0x1p-20
#define CHECK_DIFFERS 0x1p-40

/* Hints: how well the differences follow a pattern; what counts as a sum of 0 along an axis, and
 * as no sum of 0. */
#define CHECK_PATTERN 1e-6
#define CHECK_NO_PATTERN 1e-3

/* ---- The subject: the function that is checked ---------------------------------------------- */

/* A tensor before its dtype was changed. Putting the struct back cannot fail, and no bit of value,
 * gradient or version is lost. */
typedef struct {
    ng_tensor *tensor; /* NULL: nothing to put back */
    ng_tensor was;
    ng_tensor *copy; /* whose elements and gradient it has for the while */
} ng_swapped;

/* Gives a tensor another dtype for a while. */
bool ng_swap_dtype(ng_swapped *swapped, ng_tensor *x, ng_dtype dtype);
void ng_swap_back(ng_swapped *swapped);

/* A tensor that the function reads: a leaf, whose values move, or a buffer of a module, which is
 * restored before each run. */
typedef struct {
    char name[64];
    ng_tensor *tensor;
    double *origin;     /* its values at the base point (a buffer's may be int64) */
    double size;        /* the root mean square of these */
    int64_t offset;     /* of its gradient in ng_subject.analytic */
    ng_swapped swapped; /* a module's, in its own dtype */
} ng_check_leaf;

typedef struct {
    ng_listener listener; /* first */
    ng_check_call *call;
    void *context;
    ng_module *module; /* NULL: a function is checked */
    const ng_check_options *options;
    ng_check_report *report; /* gets the reason if a function below returns false */
    int orders, order;       /* how many are checked; the present one, from 1 */
    double worst;            /* the rank of the worst derivative so far; -1 before the first */
    ng_tensor **arguments;   /* what the call is given: copies of float64 inputs, and others */
    int n_arguments;
    ng_check_leaf *leaves; /* and then the buffers */
    int n_leaves, n_tensors;

    ng_tape *tape;
    ng_tensor *like;                       /* has the shape that f's result must have; or NULL */
    bool refused;                          /* the first run failed with NG_ESHAPE or NG_EVALUE */
    bool swept;                            /* a gradient was taken since f began */
    bool nested;                           /* f takes a gradient itself */
    bool lost;                             /* f takes a gradient that is not recorded */
    const ng_op *own_op;                   /* the first op of the user's own in f, or NULL */
    ng_tensor **targets, **gradients;      /* per leaf: itself, its gradient */
    ng_tensor **cotangents;                /* of the result; then for each order one per leaf */
    int64_t n_gradient, n_values;          /* numbers in all leaves; in F */
    double *weights, *base, *plus, *minus; /* w, and F at three points */
    double *analytic;                      /* d (sum w F) / d leaves */
    double *first, *other;                 /* the order below's, and one to compare */
} ng_subject;

/* Copies the inputs and makes leaves of those that are differentiated. There is space for more
 * tensors. */
bool ng_subject_open(ng_subject *subject, ng_check_call *call, void *context,
                     const ng_check_options *options, int more, ng_check_report *report);
void ng_subject_close(ng_subject *subject);

/* The same for a module, whose parameters and buffers become tensors that it reads. */
bool ng_module_open(ng_subject *subject, ng_module *module, const ng_check_options *options,
                    ng_check_report *report);

/* Adds a tensor that the call reads besides its arguments; its owner keeps it. Buffers are last. */
bool ng_subject_add(ng_subject *subject, const char *name, ng_tensor *tensor, bool buffer);

/* Begins an order, from 1 on: fills weights, base and analytic. */
bool ng_subject_begin(ng_subject *subject, int order);

/* f on the tape, with every buffer as it was. */
ng_tensor *ng_subject_run(ng_subject *subject);

/* F, and the gradient unless that is NULL, at the point where the leaves are now. */
bool ng_subject_evaluate(ng_subject *subject, double *values, double *gradient);

/* The cotangents that F is weighted with, and how many tensors F consists of. */
ng_tensor **ng_subject_cotangents(const ng_subject *subject, int *count);

static inline void ng_check_load(const ng_tensor *x, double *values)
{
    if (x->size > 0) memcpy(values, x->data, (size_t)x->size * sizeof *values);
}

/* "second". What the gradient of an order is called: "the second gradient"; F is that of the order
 * below. */
const char *ng_check_ordinal(int order);
const char *ng_check_what(int order);

/* ---- The passes ------------------------------------------------------------------------------
 *
 * check.c has them as a table. Each returns false if it has failed, and has then said why. */

bool ng_check_repeats(ng_subject *subject);
bool ng_check_unrecorded(ng_subject *subject);
bool ng_check_gradient_repeats(ng_subject *subject);
bool ng_check_recorded(ng_subject *subject);
bool ng_check_linear(ng_subject *subject);
bool ng_check_independent(ng_subject *subject);
bool ng_check_derivatives(ng_subject *subject);

/* At order 1 each leaf's gradient is asked for alone and added to another, at order 2 alone and
 * recorded. A backward kernel may compute these in another way. */
bool ng_check_alone(ng_subject *subject);

/* Counts the detached values that the result depends on in the report. From here on those move that
 * the options say. */
bool ng_check_detached(ng_subject *subject);

/* ---- A line through the base point, and derivatives along it --------------------------------- */

typedef struct {
    ng_subject *subject;
    const ng_check_leaf *leaf;
    int64_t index;           /* the element that moves, or */
    const double *direction; /* how far each one does; NULL for one element */
    double length;           /* L */
} ng_line;

/* The scale of element `index` of a leaf; of all of them for -1. */
double ng_line_length(const ng_check_leaf *leaf, int64_t index);

/* What F does from x - h to x + h. */
typedef struct {
    double slope;          /* the central difference */
    double magnitude;      /* sum |w F| over those F that moved */
    double gap, low, high; /* how far the slopes of the two sides are apart, output by output;
                                the bounds of what a choice between the sides can give */
    double rounding;       /* of `gap` */
    bool moved, both;      /* F differs at the two ends; it moves on both sides */
} ng_sides;
bool ng_line_sides(const ng_line *line, double h, ng_sides *sides);

/* A numeric derivative. */
typedef struct {
    double value;
    double error;     /* estimated: truncation, rounding and noise */
    double magnitude; /* sum |w F| over those F that moved (all, if none did) */
    double length;    /* L of its line */
    double step;      /* the smallest that it was made of; 0 if nothing moved */
    bool bent;        /* the slopes of the two sides do not approach each other */
} ng_estimate;

/* The derivative, refined until its error is below `enough` times the larger of its own size and
 * `scale`, from the largest step times `factor` on. */
bool ng_line_estimate(const ng_line *line, double factor, double scale, double enough,
                      ng_estimate *estimate);

/* Whether the line has a kink or a jump at the base point, and `analytic` lies between the slopes
 * of the two sides. */
bool ng_line_kink(const ng_line *line, double analytic, const ng_estimate *estimate, bool *kink);

/* ---- The check and its report ---------------------------------------------------------------- */

/* A stream of random numbers for each purpose. A caller may draw inputs from the same seed, and a
 * normalization's gradient does not see a cotangent equal to x. */
typedef enum {
    NG_CHECK_COTANGENTS = 1,
    NG_CHECK_DIRECTIONS,
    NG_CHECK_PARAMETERS,
    NG_CHECK_DISPLACEMENTS = 6, /* 4: inputs that tests/cases/ draws */
    NG_CHECK_SHAPES
} ng_check_stream;
#define NG_CHECK_COTANGENTS_OF(order) ((ng_check_stream)(NG_CHECK_COTANGENTS + 4 * ((order)-1)))
static inline ng_rng ng_check_rng(uint64_t seed, ng_check_stream stream)
{
    return ng_rng_seeded((seed + 1) * 0x9e3779b97f4a7c15 + (uint64_t)stream * 0xd1b54a32d192ed03);
}

/* One derivative, compared. */
typedef struct {
    ng_estimate numeric;
    double analytic;
    bool wrong, kink;
} ng_comparison;

/* A report that says what is wrong with the options, or nothing yet. */
ng_check_report ng_check_report_new(const ng_check_options *options);

/* What is checked: a function or a module. */
typedef struct {
    ng_check_call *call;
    ng_module *module;
} ng_checked;

/* The check, with accepted options: of the given inputs, and then of other shapes. */
ng_check_report ng_check(const ng_checked *what, const ng_check_options *options);

/* Of these inputs alone. `refused`: the first run failed with NG_ESHAPE or NG_EVALUE. */
ng_check_report ng_check_once(const ng_checked *what, const ng_check_options *options,
                              bool *refused);

/* Of other shapes of the first input, after the given one has passed. */
void ng_check_shapes(const ng_checked *what, ng_check_options options, ng_check_report *report);

/* Says in the report why the check has not passed, unless that was said already; false. */
bool ng_check_say(ng_check_report *report, const char *format, ...) NG_PRINTF(2, 3);

/* Puts "row 3 alone: " before the message. */
void ng_check_place(ng_check_report *report, const char *place);

/* The number for a message: a NaN without a sign, which the C library would print. */
static inline double ng_check_printable(double x) { return isnan(x) ? (double)NAN : x; }

/* The text of the recorded error, for a call that returned NULL. */
const char *ng_check_reason(void);

/* Says that the check could not go on, and the reason; false. */
bool ng_check_stop(ng_check_report *report);

/* Adds "x: 15 of 15 wrong" to the report's counts. */
void ng_check_count(ng_check_report *report, const char *name, int64_t wrong, int64_t compared);

/* Looks for a pattern in the `count` derivatives of a leaf and sets the hint; `each` if there is
 * one derivative for every element. The patterns are those of mistakes that were made. */
void ng_check_find_hint(const ng_line *worst, const ng_comparison *found, int64_t count, bool each);

/* Sets a hint if the likely cause of a failure is no wrong derivative. */
void ng_check_explain(const ng_subject *subject);

#endif
