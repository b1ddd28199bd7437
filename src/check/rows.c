/* Rows that are independent of each other: each one is computed alone, and must keep its bits. */
#include "check/check.h"
#include <string.h>

/* `length` rows along the last of the first `dims` dimensions. */
typedef struct {
    int dims;
    int64_t begin, length;
} row_range;

static int shared_dims(ng_shape a, ng_shape b, int most)
{
    int count = 0;
    while (count < most && count < a.rank && count < b.rank && a.dim[count] == b.dim[count])
        count++;
    return count;
}

/* These rows of a tensor, `x` being the shape of the first input. A tensor that shares fewer
 * dimensions with it, such as a condition of samples, gives what belongs to the rows. */
static ng_tensor *take_rows(const ng_tensor *from, ng_shape x, row_range range)
{
    const int shared = shared_dims(from->shape, x, range.dims);
    ng_shape shape = from->shape;
    int64_t begin = range.begin;
    for (int d = range.dims - 1; d >= shared; d--) begin /= x.dim[d];
    for (int d = 0; d < shared; d++) shape.dim[d] = d == range.dims - 1 ? range.length : 1;
    ng_tensor *rows = ng_zeros_new(from->dtype, shape);
    const size_t row =
        (size_t)ng_shape_span(shape, shared, shape.rank) * ng_dtype_bytes(from->dtype);
    if (rows && rows->size > 0)
        memcpy(rows->data, (const char *)from->data + (size_t)begin * row,
               (size_t)rows->size * ng_dtype_bytes(from->dtype));
    return rows;
}

/* Whether `alone` has the bits that those rows have in `all`. */
static bool same_rows(const ng_subject *subject, const double *all, const ng_tensor *alone,
                      row_range range, const char *what)
{
    const int64_t row = ng_shape_span(alone->shape, range.dims, alone->shape.rank);
    const double *expected = all + range.begin * row, *found = alone->data;
    for (int64_t i = 0; i < alone->size; i++)
        if (memcmp(&expected[i], &found[i], sizeof *found) != 0)
            return ng_check_say(
                subject->report, "row %lld of %s is %.17g at [%lld], and %.17g without %s rows",
                (long long)(range.begin + i / row), what, ng_check_printable(expected[i]),
                (long long)(i % row), ng_check_printable(found[i]),
                subject->options->causal ? "later" : "the other");
    return true;
}

static const ng_check_leaf *leaf_of(const ng_subject *subject, const ng_tensor *x)
{
    for (int i = 0; i < subject->n_leaves; i++)
        if (subject->leaves[i].tensor == x) return &subject->leaves[i];
    return NULL;
}

/* The gradients of those inputs that consist of rows. */
static bool same_gradients(ng_subject *subject, ng_tensor *y, ng_tensor *const *whole,
                           row_range range)
{
    for (int i = 0; i < subject->n_arguments; i++) {
        const ng_check_leaf *leaf = leaf_of(subject, whole[i]);
        ng_tensor *gradient;
        char what[96];
        if (!leaf || shared_dims(whole[i]->shape, whole[0]->shape, range.dims) < range.dims)
            continue;
        if (ng_gradients(subject->tape, &y, 1, &subject->arguments[i], 1, &gradient,
                         .cotangents = &subject->like, .allow_unused = true) != NG_OK)
            return ng_check_stop(subject->report);
        snprintf(what, sizeof what, "the gradient of %s", leaf->name);
        if (!same_rows(subject, subject->analytic + leaf->offset, gradient, range, what))
            return false;
    }
    return true;
}

/* With those rows of the arguments in their place. */
static bool run_alone(ng_subject *subject, ng_tensor *const *whole, row_range range)
{
    ng_tape_set_mode(subject->tape, NG_TAPE_REMEMBER);
    ng_tensor *y = ng_subject_run(subject);
    char place[64];
    snprintf(place, sizeof place, "row %lld without %s", (long long)range.begin,
             subject->options->causal ? "later ones" : "the others");
    if (!y) ng_check_place(subject->report, place);
    const bool ok = y && same_rows(subject, subject->base, y, range, "the result") &&
                    (subject->options->causal || same_gradients(subject, y, whole, range));
    ng_tape_reset(subject->tape);
    return ok;
}

static bool check_rows(ng_subject *subject, row_range range)
{
    ng_tensor **whole = subject->arguments, *like = subject->like;
    const ng_shape x = whole[0]->shape;
    const int n = subject->n_arguments;
    ng_tensor **rows = ng_calloc("ng_check_function", n + 1, sizeof *rows);
    ng_tensor *cotangent = rows ? take_rows(like, x, range) : NULL;
    bool ok = cotangent;
    for (int i = 0; i < n && ok; i++) {
        rows[i] = take_rows(whole[i], x, range);
        ok = rows[i] && (!leaf_of(subject, whole[i]) || ng_require_grad(rows[i]));
    }
    if (ok) {
        subject->arguments = rows, subject->like = cotangent;
        ok = run_alone(subject, whole, range);
        subject->arguments = whole, subject->like = like;
    } else {
        ng_check_stop(subject->report);
    }
    for (int i = 0; i < n && rows; i++) ng_tensor_free(rows[i]);
    ng_tensor_free(cotangent), ng_free(rows);
    return ok;
}

bool ng_check_independent(ng_subject *subject)
{
    const int dims = subject->options->independent;
    if (dims == 0) return true;
    const ng_shape x = subject->arguments[0]->shape, y = subject->like->shape;
    if (shared_dims(x, y, dims) < dims)
        return ng_check_say(subject->report,
                            "an input %s and a result %s do not share %d dimensions of rows",
                            ng_shape_print(x).text, ng_shape_print(y).text, dims);
    const int64_t rows = ng_shape_span(x, 0, dims);
    const int64_t step = subject->options->causal ? x.dim[dims - 1] : 1;
    for (int64_t begin = 0; begin < rows; begin += step)
        for (int64_t length = 1; length <= step; length++)
            if (!check_rows(subject, (row_range){dims, begin, length})) return false;
    return true;
}
