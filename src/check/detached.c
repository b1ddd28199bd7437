/* Detached values: finds those that the result would move with if they were not held fixed. */
#include "check/check.h"
#include "tape/tape.h"
#include <math.h>
#include <string.h>

/* Moves every leaf by a small part of its size, in directions of the seed times 1 or -1; by 0,
 * back. */
static void displace(const ng_subject *subject, double scale)
{
    ng_rng rng = ng_check_rng(subject->options->seed, NG_CHECK_DISPLACEMENTS);
    for (int i = 0; i < subject->n_leaves; i++) {
        const ng_check_leaf *leaf = &subject->leaves[i];
        double *x = leaf->tensor->data, h = scale * CHECK_DISPLACED * ng_line_length(leaf, -1);
        for (int64_t e = 0; e < leaf->tensor->size; e++)
            x[e] = scale == 0 ? leaf->origin[e] : leaf->origin[e] + h * ng_rng_normal(&rng);
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
    return !(apart <= CHECK_DIFFERS * size);
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

/* Whether the result differs if these move, on both sides of the base point: a comparison with a
 * detached value may flip on one of them. */
static bool depends_on(ng_subject *subject, bool by_definition, int64_t which, bool *answer)
{
    bool ok = true;
    *answer = true;
    for (int side = -1; side <= 1 && ok && *answer; side += 2) {
        displace(subject, side);
        let_move(subject->tape, by_definition, DETACHED_NONE);
        ok = ng_subject_evaluate(subject, subject->plus, NULL);
        let_move(subject->tape, by_definition, which);
        ok = ok && ng_subject_evaluate(subject, subject->minus, NULL);
        *answer = ok && values_differ(subject->plus, subject->minus, subject->n_values);
    }
    displace(subject, 0);
    return ok;
}

/* "rsqrt (4, 1) at my_norm.c:42", of the first that counts. */
static void describe_detached(const ng_detached *value, ng_check_report *report)
{
    const char *place = value->place ? value->place : "an unknown place";
    const char *folder = strrchr(place, '/');
    if (value->by_definition || report->detached_value[0]) return;
    snprintf(report->detached_value, sizeof report->detached_value, "%.24s %.32s at %.48s",
             value->op ? value->op : "a value", ng_shape_print(value->value->shape).text,
             folder ? folder + 1 : place);
}

/* How many of a kind the result depends on: none if they cancel when all of them move, and all if
 * none does alone but all together do. */
static bool count_detached(ng_subject *subject, bool by_definition, int *count)
{
    const ng_detached *value;
    bool together = false;
    *count = 0;
    if (!depends_on(subject, by_definition, DETACHED_ALL, &together)) return false;
    for (int all = 0; all < 2 && together && *count == 0; all++)
        for (int64_t i = 0; (value = ng_tape_detached(subject->tape, i)); i++) {
            bool counts = all;
            if (value->by_definition != by_definition) continue;
            if (!all && !depends_on(subject, by_definition, i, &counts)) return false;
            *count += counts;
            if (counts) describe_detached(value, subject->report);
        }
    return true;
}

bool ng_check_detached(ng_subject *subject)
{
    ng_check_report *report = subject->report;
    const bool ok =
        !ng_tape_detached(subject->tape, 0) || (count_detached(subject, false, &report->detached) &&
                                                count_detached(subject, true, &report->constants));
    let_move(subject->tape, false, subject->options->detached_moves ? DETACHED_ALL : DETACHED_NONE);
    return ok;
}
