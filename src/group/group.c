/* Groups: calls that all ranks make together, over a link of two functions.
 *
 * A call begins with a head from every rank: what it calls, or how it has failed. A failure, or a
 * head that differs, is an error on all ranks, and ends the group. If all is well, data follow, the
 * same number of bytes from each rank.
 *
 * A sum takes both functions. Each rank sends part r of its array to rank r. Rank r adds the parts
 * it has received, and the sums are gathered. Each rank sends less than twice the array. */
#include "core/alloc.h"
#include "core/digest.h"
#include "core/tensor.h"
#include "group/collective.h"
#include "kernels/kernels.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { ALL_PARTS = 1 << 20 }; /* bytes that are under way at once, about */

typedef struct {
    int64_t status;  /* other than NG_OK: the rank has failed */
    uint64_t digest; /* of the whole text */
    char text[240];  /* of the failure, or of the call; cut in the middle if it is long */
} group_head;

struct ng_group {
    ng_group_link link;
    ng_status ended;    /* other than NG_OK: every call fails, */
    char why[640];      /* for this reason */
    group_head *heads;  /* of all ranks */
    void *parts;        /* part_bytes for each rank, for data under way */
    int64_t part_bytes; /* a multiple of 64 */
};

/* ---- Make and free -------------------------------------------------------------------------- */

static void group_destroy(ng_group *group)
{
    ng_free(group->heads), ng_free(group->parts), ng_free(group);
}

ng_group *ng_group_over_new(const ng_group_link *link)
{
    static const char function[] = "ng_group_over_new";
    if (!ng_given(function, "link", link)) return NULL;
    if (link->rank < 0 || link->rank >= link->size || !link->all_to_all || !link->all_gather) {
        ng_fail(NG_EVALUE, "%s: rank %d of %d, expected 0 <= rank < size and both functions",
                function, link->rank, link->size);
        return NULL;
    }
    ng_group *group = ng_calloc(function, 1, sizeof *group);
    if (!group) return NULL;
    group->link = *link;
    group->part_bytes = (ALL_PARTS / link->size + 64) / 64 * 64;
    group->heads = ng_calloc(function, link->size, sizeof *group->heads);
    group->parts = ng_calloc(function, link->size, (size_t)group->part_bytes);
    if (group->heads && group->parts) return group;
    group_destroy(group);
    return NULL;
}

static ng_status copy_own(void *with, const void *mine, void *all, size_t bytes)
{
    (void)with;
    memcpy(all, mine, bytes);
    return NG_OK;
}

ng_group *ng_group_alone_new(void)
{
    return ng_group_over_new(
        &(ng_group_link){.size = 1, .all_to_all = copy_own, .all_gather = copy_own});
}

int ng_group_rank(const ng_group *group)
{
    return ng_given("ng_group_rank", "group", group) ? group->link.rank : -1;
}

int ng_group_size(const ng_group *group)
{
    return ng_given("ng_group_size", "group", group) ? group->link.size : -1;
}

/* The last call of a rank, unless the group has ended: then nobody waits for it. */
void ng_group_free(ng_group *group)
{
    if (!group) return;
    if (!group->ended) (void)ng_group_call(group, "ng_group_free", "as its last call");
    if (group->link.close) group->link.close(group->link.with);
    group_destroy(group);
}

/* ---- Calls ----------------------------------------------------------------------------------- */

/* Ends the group if a function of the link has failed; `before` is from before it was called. */
static ng_status end_if_failed(ng_group *group, int64_t before, ng_status status)
{
    if (!status) return NG_OK;
    ng_fail_unrecorded(before, status, "the group's link returned %s", ng_status_name(status));
    snprintf(group->why, sizeof group->why, "%s", ng_error_text());
    return group->ended = status;
}

static ng_status all_gather(ng_group *group, const void *mine, void *all, size_t bytes)
{
    const int64_t before = ng_failures_ever();
    return end_if_failed(group, before, group->link.all_gather(group->link.with, mine, all, bytes));
}

static ng_status all_to_all(ng_group *group, const void *mine, void *all, size_t bytes)
{
    const int64_t before = ng_failures_ever();
    return end_if_failed(group, before, group->link.all_to_all(group->link.with, mine, all, bytes));
}

/* Ends it with the first failure, or the first call that differs from rank 0's. */
static ng_status compare_heads(ng_group *group, const char *function)
{
    const group_head *heads = group->heads;
    const int size = group->link.size;
    int failed = 0, other = 1;
    while (failed < size && heads[failed].status == NG_OK) failed++;
    while (other < size && heads[other].digest == heads[0].digest) other++;
    if (failed < size) {
        group->ended = (ng_status)heads[failed].status;
        snprintf(group->why, sizeof group->why, "rank %d of %d: %s", failed, size,
                 heads[failed].text);
    } else if (other < size) {
        group->ended = NG_ESTATE;
        snprintf(group->why, sizeof group->why, "rank %d of %d calls %s, but rank 0 calls %s",
                 other, size, heads[other].text, heads[0].text);
    }
    return group->ended ? ng_fail(group->ended, "%s: %s", function, group->why) : NG_OK;
}

/* Writes a call and the digest of its whole text. */
static void write_call(group_head *head, const char *function, const char *text)
{
    const size_t half = sizeof head->text / 2 - 8, length = strlen(text);
    head->digest = ng_digest(NG_DIGEST_START, function, strlen(function));
    head->digest = ng_digest(head->digest, text, length);
    if (snprintf(head->text, sizeof head->text, "%s %s", function, text) < (int)sizeof head->text)
        return;
    snprintf(head->text + half, sizeof head->text - half, " ... %s", text + length - half);
}

/* The head of a call; of the failure on record, if there is one. */
static group_head head_of(const char *function, const char *format, va_list values)
{
    group_head head = {.status = NG_OK};
    char short_text[256], *text = short_text;
    va_list again;
    va_copy(again, values);
    const int length = vsnprintf(short_text, sizeof short_text, format, values);
    if (length >= (int)sizeof short_text) {
        text = ng_calloc(function, (int64_t)length + 1, 1);
        if (text) vsnprintf(text, (size_t)length + 1, format, again);
    }
    va_end(again);
    head.status = ng_error_status();
    if (head.status)
        snprintf(head.text, sizeof head.text, "%.*s", (int)sizeof head.text - 1, ng_error_text());
    else
        write_call(&head, function, text);
    if (text != short_text) ng_free(text);
    return head;
}

ng_status ng_group_call(ng_group *group, const char *function, const char *format, ...)
{
    if (group->ended) return ng_fail(group->ended, "%s: %s", function, group->why);
    va_list values;
    va_start(values, format);
    const group_head head = head_of(function, format, values);
    va_end(values);
    const ng_status status = all_gather(group, &head, group->heads, sizeof head);
    return status ? status : compare_heads(group, function);
}

ng_status ng_group_rows(ng_group *group, const void *mine, void *all, size_t bytes)
{
    return bytes ? all_gather(group, mine, all, bytes) : NG_OK;
}

/* ---- Sums ------------------------------------------------------------------------------------ */

int64_t ng_group_padded(const ng_group *group, int64_t count)
{
    return (count + group->link.size - 1) / group->link.size * group->link.size;
}

/* Adds the parts of all ranks up along the tree of group.h; the sum takes the place of part 0. */
static void add_parts(const ng_group *group, ng_dtype dtype, int64_t count)
{
    char *parts = group->parts;
    const size_t bytes = (size_t)count * ng_dtype_bytes(dtype);
    for (int half = 1; half < group->link.size; half *= 2)
        for (int r = 0; r + half < group->link.size; r += 2 * half)
            ng_kernels_for(dtype)->add_to(parts + (size_t)(r + half) * bytes,
                                          parts + (size_t)r * bytes, count);
}

ng_status ng_group_add(ng_group *group, ng_dtype dtype, void *data, int64_t count)
{
    const int64_t bytes = (int64_t)ng_dtype_bytes(dtype), size = group->link.size;
    const int64_t padded = ng_group_padded(group, count), most = group->part_bytes / bytes;
    memset((char *)data + count * bytes, 0, (size_t)((padded - count) * bytes));
    ng_status status = NG_OK;
    for (int64_t offset = 0, part; offset < padded && !status; offset += part * size) {
        char *piece = (char *)data + offset * bytes;
        part = (padded - offset) / size < most ? (padded - offset) / size : most;
        status = all_to_all(group, piece, group->parts, (size_t)(part * bytes));
        if (status) break;
        add_parts(group, dtype, part);
        status = all_gather(group, group->parts, piece, (size_t)(part * bytes));
    }
    return status;
}

/* ---- Agreement, broadcast, gathering --------------------------------------------------------- */

ng_status ng_group_agree(ng_group *group)
{
    static const char function[] = "ng_group_agree";
    return ng_given(function, "group", group) ? ng_group_call(group, function, "without data")
                                              : ng_newest_status();
}

/* In pieces: each rank sends a piece, of which all but that of `from` is passed over. */
ng_status ng_group_broadcast(ng_group *group, ng_tensor *x, int from)
{
    static const char function[] = "ng_group_broadcast";
    if (!ng_given(function, "group", group) || !ng_given(function, "x", x) ||
        ng_writable(function, x))
        return ng_newest_status();
    if (from < 0 || from >= group->link.size)
        return ng_fail(NG_EVALUE, "%s: from rank %d, expected 0 .. %d", function, from,
                       group->link.size - 1);
    ng_status status = ng_group_call(group, function, "of %s %s from rank %d",
                                     ng_dtype_name(x->dtype), ng_shape_print(x->shape).text, from);
    const int64_t bytes = x->size * (int64_t)ng_dtype_bytes(x->dtype);
    if (!status) ng_touch(x);
    for (int64_t offset = 0, n; offset < bytes && !status; offset += n) {
        n = bytes - offset < group->part_bytes ? bytes - offset : group->part_bytes;
        char *piece = (char *)x->data + offset;
        status = ng_group_rows(group, piece, group->parts, (size_t)n);
        if (!status) memcpy(piece, (char *)group->parts + from * n, (size_t)n);
    }
    return status;
}

ng_status ng_group_gather(ng_group *group, const double *mine, int count, double *all)
{
    static const char function[] = "ng_group_gather";
    if (!ng_given(function, "group", group) || !ng_given(function, "mine", mine) ||
        !ng_given(function, "all", all))
        return ng_newest_status();
    if (count < 1)
        return ng_fail(NG_EVALUE, "%s: count is %d, expected 1 or more", function, count);
    const ng_status status = ng_group_call(group, function, "of %d numbers", count);
    return status ? status : ng_group_rows(group, mine, all, (size_t)count * sizeof *mine);
}
