/* Combines the values of two ranks, and what they have called. */
#include "group/process_group.h"
#include <stdio.h>
#include <string.h>

/* ---- Values --------------------------------------------------------------------------------- */

size_t ng_combined_bytes(int32_t how, int64_t count)
{
    static const size_t size[] = {[NG_COMBINE_F32] = sizeof(float),
                                  [NG_COMBINE_F64] = sizeof(double),
                                  [NG_COMBINE_BITS] = sizeof(uint64_t),
                                  [NG_COMBINE_MOMENTS] = sizeof(ng_moments),
                                  [NG_COMBINE_LEAVE] = 0};
    return size[how] * (size_t)count;
}

/* Chan, Golub & LeVeque 1979. delta = b's mean - a's; mean = a's + delta n_b / n;
 * squares = a's + b's + delta^2 n_a n_b / n. */
static ng_moments moments_of_both(const ng_moments *a, const ng_moments *b)
{
    if (a->n == 0) return *b;
    if (b->n == 0) return *a;
    const double n = a->n + b->n, delta = (b->mean - a->mean) + (b->low - a->low);
    const double shift = a->low + delta * (b->n / n), mean = a->mean + shift;
    const double part = mean - a->mean;
    return (ng_moments){.n = n,
                        .mean = mean,
                        .low = (a->mean - (mean - part)) + (shift - part),
                        .squares = a->squares + b->squares + delta * delta * (a->n * b->n / n)};
}

void ng_combine(int32_t how, int64_t count, const void *left, const void *right, void *to)
{
#define COMBINE_EACH(type, formula)                                                                \
    {                                                                                              \
        const type *a = left, *b = right;                                                          \
        type *sum = to;                                                                            \
        for (int64_t i = 0; i < count; i++) sum[i] = (formula);                                    \
        return;                                                                                    \
    }
    if (how == NG_COMBINE_F32) COMBINE_EACH(float, a[i] + b[i])
    if (how == NG_COMBINE_F64) COMBINE_EACH(double, a[i] + b[i])
    if (how == NG_COMBINE_BITS) COMBINE_EACH(uint64_t, a[i] | b[i])
    if (how == NG_COMBINE_MOMENTS) COMBINE_EACH(ng_moments, moments_of_both(&a[i], &b[i]))
#undef COMBINE_EACH
}

/* ---- Heads ---------------------------------------------------------------------------------- */

/* A text that names its call, or its data. */
static void head_describe(const ng_head *h, bool by_call, char *text, size_t bytes)
{
    static const char *const what[] = {[NG_COMBINE_F32] = "numbers (float32) to add up",
                                       [NG_COMBINE_F64] = "numbers (float64) to add up",
                                       [NG_COMBINE_BITS] = "words to pass on",
                                       [NG_COMBINE_MOMENTS] = "channels' statistics",
                                       [NG_COMBINE_LEAVE] = ""};
    if (by_call)
        snprintf(text, bytes, "calls %.90s", h->text);
    else if (h->how == NG_COMBINE_LEAVE)
        snprintf(text, bytes, "has ended");
    else
        snprintf(text, bytes, "has %lld %s%s", (long long)h->count, what[h->how],
                 h->fast ? " in any order" : "");
}

ng_head ng_head_failed(ng_status status, int rank, const char *text)
{
    ng_head h = {.how = NG_COMBINE_LEAVE, .status = (int32_t)status, .rank = rank};
    snprintf(h.text, sizeof h.text, "%s", text);
    return h;
}

/* Adds the head of the ranks on the right to that of the ranks on the left. */
static void head_join(ng_head *left, const ng_head *right)
{
    if (left->status != NG_OK && (right->status == NG_OK || left->rank <= right->rank)) return;
    if (left->status != NG_OK || right->status != NG_OK) {
        *left = *right;
        return;
    }
    const bool alike =
        left->how == right->how && left->count == right->count && left->fast == right->fast;
    if (alike && strcmp(left->text, right->text) == 0) return;
    char mine[100], theirs[100], text[NG_HEAD_TEXT];
    head_describe(left, alike, mine, sizeof mine),
        head_describe(right, alike, theirs, sizeof theirs);
    snprintf(text, sizeof text, "it %s, where rank %d %s", theirs, left->rank, mine);
    *left = *right;
    left->status = NG_ESTATE;
    memcpy(left->text, text, sizeof text);
}

void ng_head_add(ng_head *head, const ng_head *other)
{
    if (other->rank > head->rank) {
        head_join(head, other);
        return;
    }
    ng_head left = *other;
    head_join(&left, head);
    *head = left;
}
