/* Agreement, broadcast and gathering, each one call of the group. */
#include "core/alloc.h"
#include "core/tensor.h"
#include "group/collective.h"
#include <string.h>

ng_status ng_group_agree(ng_group *group)
{
    static const char function[] = "ng_group_agree";
    if (!ng_given(function, "group", group)) return ng_newest_status();
    return ng_group_combine(group, function, (ng_collective){.how = NG_COMBINE_BITS});
}

/* Zeroed words of at least `bytes` bytes; ng_free them. */
static uint64_t *words_for(const char *function, size_t bytes, int64_t *count)
{
    *count = (int64_t)((bytes + 7) / 8);
    return ng_calloc(function, *count, sizeof(uint64_t));
}

/* Dtype and shape, sent before a tensor's elements. */
typedef struct {
    int64_t dtype, rank, dim[NG_MAX_RANK];
} form;

static form form_of(const ng_tensor *x)
{
    form f = {.dtype = x->dtype, .rank = x->shape.rank};
    for (int i = 0; i < x->shape.rank; i++) f.dim[i] = x->shape.dim[i];
    return f;
}

/* Copies the values into x if they have its dtype and shape. */
static ng_status take_values(const char *function, ng_tensor *x, int from, const void *words,
                             size_t bytes)
{
    const form own = form_of(x);
    form there;
    memcpy(&there, words, sizeof there);
    if (memcmp(&there, &own, sizeof own) != 0)
        return ng_fail(there.dtype != own.dtype ? NG_EDTYPE : NG_ESHAPE,
                       "%s: x is %s %s here, but has another dtype or shape on rank %d", function,
                       ng_dtype_name(x->dtype), ng_shape_print(x->shape).text, from);
    memcpy(x->data, (const char *)words + sizeof own, bytes);
    ng_touch(x);
    return NG_OK;
}

ng_status ng_group_broadcast(ng_group *group, ng_tensor *x, int from)
{
    static const char function[] = "ng_group_broadcast";
    if (!ng_given(function, "group", group) || !ng_given(function, "x", x))
        return ng_newest_status();
    if (ng_writable(function, x)) return ng_newest_status();
    if (from < 0 || from >= ng_group_size(group))
        return ng_fail(NG_EVALUE, "%s: from rank %d, expected 0 .. %d", function, from,
                       ng_group_size(group) - 1);
    int64_t count;
    const form own = form_of(x);
    const size_t bytes = (size_t)x->size * ng_dtype_bytes(x->dtype);
    uint64_t *words = words_for(function, sizeof own + bytes, &count);
    if (!words) return NG_ENOMEM;
    if (ng_group_rank(group) == from) {
        memcpy(words, &own, sizeof own);
        memcpy((char *)words + sizeof own, x->data, bytes);
    }
    char call[40];
    snprintf(call, sizeof call, "%s from %d", function, from);
    ng_status status = ng_group_combine(
        group, function,
        (ng_collective){.how = NG_COMBINE_BITS, .data = words, .count = count, .call = call});
    if (status == NG_OK) status = take_values(function, x, from, words, bytes);
    ng_free(words);
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
    int64_t words;
    const size_t bytes = (size_t)count * sizeof *mine;
    uint64_t *rows = words_for(function, bytes * (size_t)ng_group_size(group), &words);
    if (!rows) return NG_ENOMEM;
    memcpy(rows + (ptrdiff_t)ng_group_rank(group) * count, mine, bytes);
    const ng_status status = ng_group_combine(
        group, function, (ng_collective){.how = NG_COMBINE_BITS, .data = rows, .count = words});
    if (status == NG_OK) memcpy(all, rows, bytes * (size_t)ng_group_size(group));
    ng_free(rows);
    return status;
}
