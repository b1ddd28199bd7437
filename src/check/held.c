/* Detached values: which of them the result would move with, were they not held fixed. */
#include "check/check.h"
#include "tape/tape.h"
#include <math.h>
#include <string.h>

/* Every leaf by +-2^-20 of its scale, in directions of the seed. */
static void displace(ng_subject *subject, ng_rng rng, double sign)
{
    for (int i = 0; i < subject->n_leaves; i++) {
        const ng_check_leaf *leaf = &subject->leaves[i];
        double *x = leaf->tensor->data, h = sign * ldexp(ng_line_length(leaf, NULL, -1), -20);
        ng_touch(leaf->tensor);
        for (int64_t e = 0; e < leaf->tensor->size; e++) {
            x[e] = leaf->origin[e] + h * ng_rng_normal(&rng);
        }
    }
}

static void move_back(ng_subject *subject)
{
    for (int i = 0; i < subject->n_leaves; i++) {
        const ng_check_leaf *leaf = &subject->leaves[i];
        ng_touch(leaf->tensor);
        memcpy(leaf->tensor->data, leaf->origin, (size_t)leaf->tensor->size * sizeof(double));
    }
}

/* By more than rounding makes of values that cancel, as those of a softmax's detached maximum. */
static bool differ(const double *a, const double *b, int64_t count)
{
    double size = 0, apart = 0;
    for (int64_t i = 0; i < count; i++) {
        size = fmax(size, fabs(a[i]));
        apart = fmax(apart, fabs(a[i] - b[i]));
    }
    return !(apart <= 0x1p-40 * size);
}

/* Lets one of the values of a kind move, or all of them (ALL), and no other. */
enum { ALL = -1, NONE = -2 };
static void let_move(ng_tape *tape, bool by_definition, int64_t which)
{
    for (int64_t i = 0; i < tape->replay.count; i++) {
        ng_detached *detached = &tape->replay.detached[i];
        detached->moves = detached->by_definition == by_definition && (which == ALL || which == i);
    }
}

/* Whether the result is another where these move, on both sides of the base point: a comparison of
 * a detached value changes on one of them, where it is about to flip. */
static bool matters(ng_subject *subject, bool by_definition, int64_t which, ng_rng rng,
                    bool *answer, ng_check_report *report)
{
    bool ok = true;
    *answer = true;
    for (int side = 0; side < 2 && ok && *answer; side++) {
        displace(subject, rng, side ? -1 : 1);
        let_move(subject->tape, by_definition, NONE);
        ok = ng_subject_values(subject, subject->plus, report);
        let_move(subject->tape, by_definition, which);
        ok = ok && ng_subject_values(subject, subject->minus, report);
        *answer = ok && differ(subject->plus, subject->minus, subject->n_values);
    }
    move_back(subject);
    return ok;
}

/* "rsqrt (4, 1) at my_norm.c:42" */
static void describe(const ng_detached *detached, char *text, size_t bytes)
{
    const char *place = detached->place ? detached->place : "an unknown place";
    const char *folder = strrchr(place, '/');
    snprintf(text, bytes, "%.24s %.32s at %.48s", detached->op ? detached->op : "a value",
             ng_shape_print(detached->value->shape).text, folder ? folder + 1 : place);
}

static int count(const ng_tape *tape, bool by_definition, int64_t which, ng_check_report *report)
{
    int found = 0;
    for (int64_t i = 0; i < tape->replay.count; i++) {
        const ng_detached *detached = &tape->replay.detached[i];
        if (detached->by_definition != by_definition || (which != ALL && which != i)) continue;
        if (!by_definition && !report->detached_value[0]) {
            describe(detached, report->detached_value, sizeof report->detached_value);
        }
        found++;
    }
    return found;
}

/* How many of a kind matter. None does where they cancel when all of them move; and where none
 * does alone but all together do, all are counted. */
static bool count_held(ng_subject *subject, bool by_definition, ng_rng rng, int *held,
                       ng_check_report *report)
{
    const ng_tape *tape = subject->tape;
    bool moves = false;
    *held = 0;
    if (!matters(subject, by_definition, ALL, rng, &moves, report)) return false;
    if (!moves) return true;
    for (int64_t i = 0; i < tape->replay.count; i++) {
        if (tape->replay.detached[i].by_definition != by_definition) continue;
        if (!matters(subject, by_definition, i, rng, &moves, report)) return false;
        if (moves) *held += count(tape, by_definition, i, report);
    }
    if (*held == 0) *held = count(tape, by_definition, ALL, report);
    return true;
}

bool ng_subject_find_held(ng_subject *subject, const ng_check_options *options,
                          ng_check_report *report)
{
    ng_tape *tape = subject->tape;
    ng_rng rng = ng_check_rng(options->seed, NG_CHECK_DISPLACEMENTS);
    bool ok =
        tape->replay.count == 0 || (count_held(subject, false, rng, &report->detached, report) &&
                                    count_held(subject, true, rng, &report->constants, report));
    let_move(tape, false, options->detached_moves ? ALL : NONE);
    return ok;
}
