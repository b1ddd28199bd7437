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

void ng_combine_blocks(int32_t how, int64_t count, const void *left, const void *right, void *to)
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

/* "calls ng_group_agree with 0 words". */
static void head_describe(const ng_head *h, char *text, size_t bytes)
{
    static const char *const unit[] = {[NG_COMBINE_F32] = "float32 numbers",
                                       [NG_COMBINE_F64] = "float64 numbers",
                                       [NG_COMBINE_BITS] = "words",
                                       [NG_COMBINE_MOMENTS] = "channels' statistics"};
    if (h->how == NG_COMBINE_LEAVE)
        snprintf(text, bytes, "has ended");
    else
        snprintf(text, bytes, "calls %.60s with %lld %s%s", h->text, (long long)h->count,
                 unit[h->how], h->fast ? " in any order" : "");
}

ng_head ng_head_failed(ng_status status, int rank, const char *text)
{
    ng_head h = {.how = NG_COMBINE_LEAVE, .status = (int32_t)status, .rank = rank};
    snprintf(h.text, sizeof h.text, "%.*s", (int)sizeof h.text - 1, text);
    return h;
}

void ng_head_add(ng_head *head, const ng_head *other)
{
    const ng_head first = head->rank <= other->rank ? *head : *other;
    const ng_head second = head->rank <= other->rank ? *other : *head;
    *head = first.status == NG_OK && second.status != NG_OK ? second : first;
    const bool same = first.how == second.how && first.count == second.count &&
                      first.fast == second.fast && strcmp(first.text, second.text) == 0;
    if (head->status != NG_OK || same) return;
    char calls[2][104];
    head_describe(&first, calls[0], sizeof calls[0]);
    head_describe(&second, calls[1], sizeof calls[1]);
    head->status = NG_ESTATE;
    head->rank = second.rank;
    snprintf(head->text, sizeof head->text, "it %s, where rank %d %s", calls[1], first.rank,
             calls[0]);
}
