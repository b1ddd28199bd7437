/* The checker's inside: the function under doubt, its numeric derivatives, and what is told. */
#ifndef NG_CHECK_CHECK_H
#define NG_CHECK_CHECK_H

#include "core/tensor.h"
#include <normgrad/gradcheck.h>

/* ---- The subject: F(leaves), a list of numbers, and weights w ------------------------------
 *
 * Whatever the order, what is differentiated is the number sum_j w_j F_j(leaves).
 *
 *     order 1: F = f, the function's output;                   w = u, its random cotangent
 *     order 2: F = the gradients of sum u f, one after another; w = v, random again
 */
typedef struct {
    const char *name;
    ng_tensor *tensor; /* its values move */
    double *origin;    /* and come back to these */
    int64_t offset;    /* where its gradient begins in ng_subject.analytic */
} ng_check_leaf;

/* What must stand as it was before each evaluation: a module's buffers. */
typedef struct {
    ng_tensor *tensor;
    void *origin;
} ng_check_state;

/* How one output has moved along a line, as the steps shrank. */
typedef struct {
    double slope;  /* at the newest step */
    double steady; /* the largest that three steps agreed upon; 0 before */
    int agreed;    /* how many have in a row, the first not counted */
} ng_check_trail;

typedef struct {
    ng_check_call *call;
    void *context;
    int order;
    ng_tensor **arguments; /* what the call is given; */
    ng_tensor **owned;     /* those that are copies */
    int n_arguments;
    ng_check_leaf *leaves;
    int n_leaves;
    ng_check_state *states;
    int n_states;

    ng_tape *tape;
    bool nested;                                    /* f takes a gradient itself, */
    bool lost;                                      /* and one that is not recorded */
    ng_tensor *cotangent;                           /* u */
    ng_tensor **targets, **gradients, **cotangents; /* per leaf: itself, its gradient, v */
    ng_tensor **curved, **curved_cotangents;        /* of gradients and v: where g is no constant */
    int64_t n_gradient, n_values;                   /* numbers in all leaves; in F */
    double *weights, *base, *plus, *minus;          /* w, and F at three points */
    ng_check_trail *trails;                         /* one for each number of F */
    double *analytic;                               /* d (sum w F) / d leaves */
} ng_subject;

/* Copies the options' inputs and makes leaves of those that are to be differentiated; leaves room
 * for more leaves and states. */
bool ng_subject_open(ng_subject *subject, ng_check_call *call, void *context,
                     const ng_check_options *options, int more_leaves, int states,
                     ng_check_report *report);

/* Adds a tensor that the call reads behind the arguments' back; it stays its owner's. */
bool ng_subject_add_leaf(ng_subject *subject, const char *name, ng_tensor *tensor);
bool ng_subject_add_state(ng_subject *subject, ng_tensor *tensor);

/* Begins with order 1: evaluates at the base point until everything is known to be repeatable,
 * fills weights, base and analytic, and freezes what is no function of the leaves. */
bool ng_subject_begin(ng_subject *subject, const ng_check_options *options,
                      ng_check_report *report);

/* Goes on from order 1 to order 2. */
bool ng_subject_raise(ng_subject *subject, const ng_check_options *options,
                      ng_check_report *report);

/* After all was measured: whether the gradient still has the bits that were compared. */
bool ng_subject_repeats(ng_subject *subject, ng_check_report *report);

/* At order 1: whether each leaf's gradient is the same where no other is asked for and there is
 * one already to which it is added, which a backward kernel may do in another way. */
bool ng_subject_adds_up(ng_subject *subject, ng_check_report *report);

/* F where the leaves stand now. */
bool ng_subject_values(ng_subject *subject, double *values, ng_check_report *report);

/* After the beginning: finds the detached values that the result would move with, counts them in
 * the report, and from here on lets those move that the options say. */
bool ng_subject_find_held(ng_subject *subject, const ng_check_options *options,
                          ng_check_report *report);

void ng_subject_close(ng_subject *subject);

/* ---- A line through the base point, and derivatives along it ------------------------------- */
typedef struct {
    ng_subject *subject;
    const ng_check_leaf *leaf;
    int64_t index;           /* the one element that moves, or */
    const double *direction; /* how far each does; NULL for one element */
    double length;           /* the scale on which the values live: a power of two */
} ng_line;

/* How many times its estimated error a numeric derivative may be off. */
#define NG_CHECK_CERTAINTY 4

typedef struct {
    double value;
    double error;     /* estimated: truncation, rounding, and what noise there is beyond that */
    double magnitude; /* sum |w_j F_j| over those F_j that moved (all, if none did) */
    double length;    /* what the steps were taken relative to */
    double step;      /* the smallest of those it is extrapolated from; 0 where nothing moved */
    int order;        /* how many larger ones there are, each twice the one before */
    bool repeated;    /* by ng_line_repeat */
    bool moved;
    bool coarse; /* an output is on a stair, of which the smallest steps show nothing */
    bool bent;   /* the slopes of the two sides do not come together as the step shrinks */
} ng_numeric;

/* The scale of element `index` of a leaf; or, where that is -1, of those elements that a direction
 * moves (NULL: all). */
double ng_line_length(const ng_check_leaf *leaf, const double *direction, int64_t index);

/* The derivative by Richardson extrapolation; refined until its error is below `enough` of the
 * larger of its own size and `scale`. `step` as in the options; that the expected value is not 0
 * is reason to look further where nothing moved. False where an evaluation fails. */
bool ng_line_derivative(const ng_line *line, double step, double expected, double scale,
                        double enough, ng_numeric *numeric, ng_check_report *report);

/* Extrapolates anew, once, from a few other steps as small: the error is at least how far those
 * values are away. A table has many entries, of which the one that seems best may be so by luck,
 * where the function is noisy beyond its rounding. */
bool ng_line_repeat(const ng_line *line, ng_numeric *numeric, ng_check_report *report);

/* One central difference of step h. */
bool ng_line_difference(const ng_line *line, double h, double *slope, ng_check_report *report);

/* Whether the line has a kink (or a jump) at the base point, and `analytic` lies between what the
 * two sides say: slopes that stay apart while the step shrinks. At a smooth point they come
 * together, so that no wrong derivative is excused; nor is one at a jump that larger steps do not
 * see, where the numeric derivative is known to a tenth. */
bool ng_line_kink(const ng_line *line, double analytic, const ng_numeric *numeric, bool *kink,
                  ng_check_report *report);

/* The exponent p of the remainder F(h) - F(0) - h analytic ~ h^p: 2 where `analytic` is right (3
 * and more where the curvature is 0), 1 where it is wrong; 0 where the remainder is rounding, and
 * NaN where it is. */
bool ng_line_exponent(const ng_line *line, double analytic, double *exponent,
                      ng_check_report *report);

/* ---- What is told --------------------------------------------------------------------------- */

/* A stream of random numbers for one purpose. A caller is likely to draw inputs from the same seed,
 * and a cotangent equal to x would be what a normalization's gradient is blind to. */
typedef enum {
    NG_CHECK_COTANGENTS = 1,
    NG_CHECK_DIRECTIONS,
    NG_CHECK_PARAMETERS,
    NG_CHECK_INPUT_VALUES,
    NG_CHECK_SECOND_COTANGENTS,
    NG_CHECK_DISPLACEMENTS
} ng_check_stream;
static inline ng_rng ng_check_rng(uint64_t seed, ng_check_stream stream)
{
    return ng_rng_seeded((seed + 1) * 0x9e3779b97f4a7c15 + (uint64_t)stream * 0xd1b54a32d192ed03);
}

/* One derivative, compared. */
typedef struct {
    ng_numeric numeric;
    double analytic;
    double slope;
    bool wrong, kink;
} ng_comparison;

/* Says in the report why the check has not passed, unless that was said already; false. */
bool ng_check_say(ng_check_report *report, const char *format, ...) NG_PRINTF(2, 3);

/* The text of the newest error, for a call that returned nothing. */
const char *ng_check_reason(void);

/* Looks for a pattern in a leaf's wrong derivatives; `each` where there is one comparison for
 * every element of the leaf. */
void ng_check_find_hint(const ng_check_leaf *leaf, const ng_comparison *found, int64_t count,
                        bool each, ng_check_report *report);

/* A likely cause of a failure that lies outside the derivatives themselves, as a hint. */
void ng_check_explain(const ng_subject *subject, const ng_check_options *options,
                      ng_check_report *report);

/* Begins, doubts and reports; `subject` is open and stays so. */
void ng_check_subject(ng_subject *subject, const ng_check_options *options,
                      ng_check_report *report);

/* A report that says what is wrong with the options, or nothing yet. */
ng_check_report ng_check_report_new(const ng_check_options *options);

#endif
