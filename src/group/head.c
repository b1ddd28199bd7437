#include "group/head.h"
#include <stdio.h>
#include <string.h>

/* By its call, or by its data. */
static void describe(const ng_head *h, bool by_call, char *text, size_t bytes)
{
    static const char *const what[] = {[NG_COMBINE_F32] = "numbers (float32) to add up",
                                       [NG_COMBINE_F64] = "numbers (float64) to add up",
                                       [NG_COMBINE_BITS] = "words to hand round",
                                       [NG_COMBINE_MOMENTS] = "channels' statistics",
                                       [NG_COMBINE_LEAVE] = ""};
    if (by_call)
        snprintf(text, bytes, "calls %.90s", h->text);
    else if (h->how == NG_COMBINE_LEAVE)
        snprintf(text, bytes, "has no more to do");
    else
        snprintf(text, bytes, "has %lld %s%s", (long long)h->count, what[h->how],
                 h->fast ? " in any order" : "");
}

ng_head ng_head_failed(ng_status status, int member, const char *text)
{
    ng_head h = {.how = NG_COMBINE_LEAVE, .status = (int32_t)status, .member = member};
    snprintf(h.text, sizeof h.text, "%s", text);
    return h;
}

/* left = that of the members to its left, and right's. */
static void join(ng_head *left, const ng_head *right)
{
    if (left->status != NG_OK && (right->status == NG_OK || left->member <= right->member)) return;
    if (left->status != NG_OK || right->status != NG_OK) {
        *left = *right;
        return;
    }
    const bool alike =
        left->how == right->how && left->count == right->count && left->fast == right->fast;
    if (alike && strcmp(left->text, right->text) == 0) return;
    char mine[100], theirs[100], text[NG_HEAD_TEXT];
    describe(left, alike, mine, sizeof mine), describe(right, alike, theirs, sizeof theirs);
    snprintf(text, sizeof text, "it %s, where rank %d %s", theirs, left->member, mine);
    *left = *right;
    left->status = NG_ESTATE;
    memcpy(left->text, text, sizeof text);
}

void ng_head_add(ng_head *head, const ng_head *other)
{
    if (other->member > head->member) {
        join(head, other);
        return;
    }
    ng_head left = *other;
    join(&left, head);
    *head = left;
}
