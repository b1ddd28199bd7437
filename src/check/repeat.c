/* Passes that compute the same again: with the same bits in another run, and up to rounding in
 * another way. */
#include "check/check.h"
#include "tape/tape.h"
#include <math.h>
#include <string.h>

/* ---- The same bits --------------------------------------------------------------------------- */

/* Bitwise; any NaN equals any other. */
static bool same_bits(const ng_subject *subject, const double *first, const double *again,
                      int64_t count, const char *what)
{
    for (int64_t i = 0; i < count; i++) {
        if (memcmp(&first[i], &again[i], sizeof *first) == 0) continue;
        if (isnan(first[i]) && isnan(again[i])) continue;
        return ng_check_say(
            subject->report, "run again at the same point, %s is %.17g at [%lld], not %.17g", what,
            ng_check_printable(again[i]), (long long)i, ng_check_printable(first[i]));
    }
    return true;
}

static bool values_repeat(ng_subject *subject, const char *what)
{
    return ng_subject_evaluate(subject, subject->plus, NULL) &&
           same_bits(subject, subject->base, subject->plus, subject->n_values, what);
}

bool ng_check_gradient_repeats(ng_subject *subject)
{
    return ng_subject_evaluate(subject, subject->plus, subject->other) &&
           same_bits(subject, subject->analytic, subject->other, subject->n_gradient,
                     ng_check_what(subject->order));
}

/* At order 1 the second run detaches its own values; from then on those are held fixed. */
bool ng_check_repeats(ng_subject *subject)
{
    const char *what = ng_check_what(subject->order - 1);
    if (subject->order == 1) ng_tape_set_mode(subject->tape, NG_TAPE_REMEMBER);
    const bool ok = ng_check_gradient_repeats(subject);
    ng_tape_set_mode(subject->tape, NG_TAPE_REPLAY);
    return ok && same_bits(subject, subject->base, subject->plus, subject->n_values, what) &&
           values_repeat(subject, what);
}

/* A function that takes a gradient has none without recording. */
bool ng_check_unrecorded(ng_subject *subject)
{
    if (subject->nested) return true;
    const bool was = ng_tape_set_recording(subject->tape, false);
    const bool ok = values_repeat(subject, "the result, not recorded,");
    ng_tape_set_recording(subject->tape, was);
    return ok;
}

/* ---- Other ways to the same gradient ------------------------------------------------------- */

static double largest_finite(const double *values, int64_t count)
{
    double most = 0;
    for (int64_t i = 0; i < count; i++)
        if (isfinite(values[i])) most = fmax(most, fabs(values[i]));
    return most;
}

/* Whether a leaf's gradient is the one that was compared, up to rounding. */
static bool same_gradient(const ng_subject *subject, int i, const double *compared,
                          const double *other, const char *how)
{
    const ng_check_leaf *leaf = &subject->leaves[i];
    const int64_t begin = leaf->offset, size = leaf->tensor->size;
    const double allowed = CHECK_SAME * largest_finite(other + begin, size) +
                           CHECK_SAME_OF_ALL * largest_finite(compared, subject->n_gradient);
    for (int64_t e = begin; e < begin + size; e++)
        if (!(fabs(other[e] - compared[e]) <= allowed))
            return ng_check_say(subject->report,
                                "the gradient of %s at [%lld] is %.9g, but %.9g %s", leaf->name,
                                (long long)(e - begin), ng_check_printable(compared[e]),
                                ng_check_printable(other[e]), how);
    return true;
}

/* The gradient of one leaf. If it is added, the leaf has another use with the gradient `before`,
 * and half of the sum is kept. */
static bool gradient_alone(ng_subject *subject, int i, const double *before, bool added,
                           double *values)
{
    const ng_check_leaf *leaf = &subject->leaves[i];
    ng_tensor *use = added ? ng_result(subject->tape, NG_F64, leaf->tensor->shape) : NULL;
    ng_tensor *y = added && !use ? NULL : ng_subject_run(subject);
    if (!y) return ng_check_stop(subject->report);
    for (int64_t e = 0; use && e < use->size; e++)
        ng_tensor_store(use, e, before[leaf->offset + e]);
    ng_tensor *const outputs[] = {y, leaf->tensor}, *const cotangents[] = {subject->cotangents[0],
                                                                           use};
    if (ng_gradients(subject->tape, outputs, added ? 2 : 1, &subject->targets[i], 1,
                     &subject->gradients[i], .cotangents = cotangents, .record = !added) != NG_OK)
        return ng_check_say(subject->report, "no gradient of %s alone: %s", leaf->name,
                            ng_check_reason());
    ng_check_load(subject->gradients[i], values + leaf->offset);
    for (int64_t e = 0; use && e < use->size; e++) values[leaf->offset + e] /= 2;
    return true;
}

bool ng_check_alone(ng_subject *subject)
{
    const bool added = subject->order == 1;
    const double *compared = added ? subject->analytic : subject->first;
    bool ok = true;
    for (int i = 0; i < subject->n_leaves && ok; i++) {
        ok = gradient_alone(subject, i, compared, added, subject->other);
        ng_tape_reset(subject->tape);
        ok = ok && same_gradient(subject, i, compared, subject->other,
                                 added ? "where it is asked for alone and added to another"
                                       : "where it is recorded and asked for alone");
    }
    return ok;
}

/* Of a fused op: whether what is differentiated again agrees with the kernel. */
bool ng_check_recorded(ng_subject *subject)
{
    const ng_op *op = subject->own_op;
    const char *rule = op && op->gradient ? ".gradient" : ".definition";
    char how[128] = "when it is recorded: backward and definition differ";
    if (op)
        snprintf(how, sizeof how, "when it is recorded: %s%s of %.40s %s",
                 op->backward ? ".backward and " : "", rule, op->name,
                 op->backward ? "differ" : "depends on that");
    for (int i = 0; i < subject->n_leaves; i++)
        if (!same_gradient(subject, i, subject->first, subject->base, how)) return false;
    return true;
}

/* ---- Linear in the cotangent ----------------------------------------------------------------- */

static void scale_cotangents(const ng_subject *subject, double factor)
{
    int count;
    ng_tensor **cotangents = ng_subject_cotangents(subject, &count);
    for (int i = 0; i < count; i++)
        for (int64_t e = 0; e < cotangents[i]->size; e++)
            ng_tensor_store(cotangents[i], e, factor * ng_tensor_load(cotangents[i], e));
}

/* Products with a power of two are exact, so that the gradients have the same bits. */
bool ng_check_linear(ng_subject *subject)
{
    static const double multiples[] = CHECK_MULTIPLES;
    bool ok = true;
    for (size_t k = 0; k < sizeof multiples / sizeof *multiples && ok; k++) {
        char how[96];
        scale_cotangents(subject, multiples[k]);
        ok = ng_subject_evaluate(subject, subject->plus, subject->other);
        scale_cotangents(subject, 1 / multiples[k]);
        for (int64_t e = 0; e < subject->n_gradient; e++) subject->other[e] /= multiples[k];
        snprintf(how, sizeof how, "where the cotangent is %.3g times as large: it is not linear",
                 multiples[k]);
        for (int i = 0; i < subject->n_leaves && ok; i++)
            ok = same_gradient(subject, i, subject->analytic, subject->other, how);
    }
    return ok;
}
