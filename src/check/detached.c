/* Detached values: finds those that the result would move with if they were not held fixed. */
#include "check/check.h"
#include "tape/tape.h"
#include <math.h>
#include <string.h>

/* Moves every leaf by 2^-20 of its scale, in directions of the seed. */
static void displace(ng_subject *subject, ng_rng rng, double sign)
{
    for (int i = 0; i < subject->n_leaves; i++) {
        const ng_check_leaf *leaf = &subject->leaves[i];
        double *x = leaf->tensor->data, h = sign * ldexp(ng_line_length(leaf, -1), -20);
        ng_touch(leaf->tensor);
        for (int64_t e = 0; e < leaf->tensor->size; e++)
            x[e] = leaf->origin[e] + h * ng_rng_normal(&rng);
    }
}

static void displace_back(ng_subject *subject)
{
    for (int i = 0; i < subject->n_leaves; i++) {
        const ng_check_leaf *leaf = &subject->leaves[i];
        ng_touch(leaf->tensor);
        memcpy(leaf->tensor->data, leaf->origin, (size_t)leaf->tensor->size * sizeof(double));
    }
}

/* By more than rounding makes of values that cancel, as a softmax's detached maximum does. */
static bool values_differ(const double *a, const double *b, int64_t count)
{
    double size = 0, apart = 0;
    for (int64_t i = 0; i < count; i++) {
        size = fmax(size, fabs(a[i]));
        apart = fmax(apart, fabs(a[i] - b[i]));
    }
    return !(apart <= 0x1p-40 * size);
}

/* Lets one of the values of a kind move, or all of them, and no other. */
enum { DETACHED_ALL = -1, DETACHED_NONE = -2 };
static void let_move(ng_tape *tape, bool by_definition, int64_t which)
{
    ng_detached *value;
    for (int64_t i = 0; (value = ng_tape_detached(tape, i)); i++)
        value->moves =
            value->by_definition == by_definition && (which == DETACHED_ALL || which == i);
}

/* Whether the result is another where these move, on both sides of the base point: a comparison
 * with a detached value may flip on one of them. */
static bool depends_on(ng_subject *subject, bool by_definition, int64_t which, bool *answer,
                       ng_check_report *report)
{
    const ng_rng rng = ng_check_rng(subject->options->seed, NG_CHECK_DISPLACEMENTS);
    bool ok = true;
    *answer = true;
    for (int side = 0; side < 2 && ok && *answer; side++) {
        displace(subject, rng, side ? -1 : 1);
        let_move(subject->tape, by_definition, DETACHED_NONE);
        ok = ng_subject_values(subject, subject->plus, report);
        let_move(subject->tape, by_definition, which);
        ok = ok && ng_subject_values(subject, subject->minus, report);
        *answer = ok && values_differ(subject->plus, subject->minus, subject->n_values);
    }
    displace_back(subject);
    return ok;
}

/* "rsqrt (4, 1) at my_norm.c:42" */
static void describe_detached(const ng_detached *value, char *text, size_t bytes)
{
    const char *place = value->place ? value->place : "an unknown place";
    const char *folder = strrchr(place, '/');
    snprintf(text, bytes, "%.24s %.32s at %.48s", value->op ? value->op : "a value",
             ng_shape_print(value->value->shape).text, folder ? folder + 1 : place);
}

/* Counts value `which`, or all of a kind; the report describes the first that is not by definition.
 */
static int add_detached(const ng_tape *tape, bool by_definition, int64_t which,
                        ng_check_report *report)
{
    const ng_detached *value;
    int found = 0;
    for (int64_t i = 0; (value = ng_tape_detached(tape, i)); i++) {
        if (value->by_definition != by_definition || (which != DETACHED_ALL && which != i))
            continue;
        if (!by_definition && !report->detached_value[0])
            describe_detached(value, report->detached_value, sizeof report->detached_value);
        found++;
    }
    return found;
}

/* How many of a kind the result depends on: none where they cancel when all of them move, and all
 * where none does alone but all together do. */
static bool count_detached(ng_subject *subject, bool by_definition, int *count,
                           ng_check_report *report)
{
    const ng_detached *value;
    bool depends = false;
    *count = 0;
    if (!depends_on(subject, by_definition, DETACHED_ALL, &depends, report)) return false;
    for (int64_t i = 0; depends && (value = ng_tape_detached(subject->tape, i)); i++) {
        bool alone = false;
        if (value->by_definition != by_definition) continue;
        if (!depends_on(subject, by_definition, i, &alone, report)) return false;
        if (alone) *count += add_detached(subject->tape, by_definition, i, report);
    }
    if (depends && *count == 0)
        *count = add_detached(subject->tape, by_definition, DETACHED_ALL, report);
    return true;
}

bool ng_subject_find_detached(ng_subject *subject, ng_check_report *report)
{
    ng_tape *tape = subject->tape;
    const bool ok =
        !ng_tape_detached(tape, 0) || (count_detached(subject, false, &report->detached, report) &&
                                       count_detached(subject, true, &report->constants, report));
    let_move(tape, false, subject->options->detached_moves ? DETACHED_ALL : DETACHED_NONE);
    return ok;
}
