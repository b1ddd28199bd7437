/* Data sets in memory. The samples never move: a shuffle is a permutation of their numbers. */
#include "io/dataset.h"
#include "tape/tape.h"
#include <math.h>
#include <string.h>

struct ng_dataset {
    ng_tensor *x, *y;  /* (count, ...) each; y may be NG_NONE */
    int64_t *order;    /* order[i] is the sample that is handed out as number i */
    bool standardized; /* its samples, or those that they were taken from */
};

/* ---- Make ---------------------------------------------------------------------------------- */

static void identity(int64_t *order, int64_t count)
{
    for (int64_t i = 0; i < count; i++) order[i] = i;
}

/* Fisher-Yates from the identity, so that the order depends on the seed alone. */
static void shuffle(int64_t *order, int64_t count, uint64_t seed)
{
    ng_rng rng = ng_rng_seeded(seed);
    identity(order, count);
    for (int64_t i = count - 1; i > 0; i--) {
        const int64_t j = ng_rng_below(&rng, i + 1);
        const int64_t swapped = order[i];
        order[i] = order[j];
        order[j] = swapped;
    }
}

ng_dataset *ng_dataset_adopt(const char *function, ng_tensor *x, ng_tensor *y)
{
    ng_dataset *self = NULL;
    if (!x || !y)
        ;
    else if (ng_is_none(x) || x->shape.rank < 1 || x->size == 0)
        ng_fail(NG_ESHAPE, "%s: x is %s, expected (count, ...) with a sample or more", function,
                ng_shape_print(x->shape).text);
    else if (!ng_is_none(y) && (y->shape.rank < 1 || y->shape.dim[0] != x->shape.dim[0]))
        ng_fail(NG_ESHAPE, "%s: x is %s and y %s, expected as many labels as samples", function,
                ng_shape_print(x->shape).text, ng_shape_print(y->shape).text);
    else
        self = ng_calloc(function, 1, sizeof *self);
    int64_t *order = self ? ng_calloc(function, x->shape.dim[0], sizeof *order) : NULL;
    if (!order) {
        ng_free(self);
        ng_tensor_free(x);
        ng_tensor_free(y);
        return NULL;
    }
    identity(order, x->shape.dim[0]);
    *self = (ng_dataset){.x = x, .y = y, .order = order};
    return self;
}

bool ng_dataset_features_accepted(const char *function, double scale, ng_dtype dtype)
{
    if (!ng_option_range(function, "scale", scale, -HUGE_VAL, HUGE_VAL)) return false;
    if (dtype == NG_F32 || dtype == NG_F64) return true;
    ng_fail(NG_EDTYPE, "%s: dtype is %s, expected float32 or float64", function,
            ng_dtype_name(dtype));
    return false;
}

bool ng_dataset_scale(ng_origin origin, ng_tensor *x, double scale)
{
    for (int64_t i = 0; scale != 1 && i < x->size; i++) {
        const double before = ng_tensor_load(x, i);
        ng_tensor_store(x, i, before * scale);
        if (isfinite(before) && !isfinite(ng_tensor_load(x, i)))
            return ng_refuse(origin, NG_EVALUE, "%g times the scale is no %s", before,
                             ng_dtype_name(x->dtype));
    }
    return true;
}

ng_dataset *ng_dataset_from(const ng_tensor *x, const ng_tensor *y)
{
    static const char function[] = "ng_dataset_from";
    if (!ng_given(function, "x", x) || !ng_given(function, "y", y)) return NULL;
    if ((!ng_is_none(x) && !ng_readable(function, x)) ||
        (!ng_is_none(y) && !ng_readable(function, y)))
        return NULL;
    ng_tensor *own_x = ng_is_none(x) ? NG_NONE : ng_copy_new(x, x->dtype);
    ng_tensor *own_y = ng_is_none(y) ? NG_NONE : own_x ? ng_copy_new(y, y->dtype) : NULL;
    return ng_dataset_adopt(function, own_x, own_y);
}

void ng_dataset_free(ng_dataset *dataset)
{
    if (!dataset) return;
    ng_tensor_free(dataset->x);
    ng_tensor_free(dataset->y);
    ng_free(dataset->order);
    ng_free(dataset);
}

/* ---- Inspect ------------------------------------------------------------------------------- */

int64_t ng_dataset_count(const ng_dataset *dataset)
{
    return ng_given("ng_dataset_count", "dataset", dataset) ? dataset->x->shape.dim[0] : -1;
}

ng_tensor *ng_dataset_x(const ng_dataset *dataset)
{
    return ng_given("ng_dataset_x", "dataset", dataset) ? dataset->x : NULL;
}

ng_tensor *ng_dataset_y(const ng_dataset *dataset)
{
    return ng_given("ng_dataset_y", "dataset", dataset) ? dataset->y : NULL;
}

/* ---- Rows ---------------------------------------------------------------------------------- */

/* x's shape with `count` samples. */
static ng_shape rows_shape(const ng_tensor *x, int64_t count)
{
    ng_shape shape = x->shape;
    shape.dim[0] = count;
    return shape;
}

/* Copies source[order[i]] for `count` samples to a tensor of the tape or, if that is NULL, of
 * yours. */
static ng_tensor *gathered(const char *function, ng_tape *tape, const ng_tensor *source,
                           const int64_t *order, int64_t count)
{
    if (ng_is_none(source)) return NG_NONE;
    const ng_shape shape = rows_shape(source, count);
    ng_tensor *result = tape ? ng_result(tape, source->dtype, shape)
                             : ng_tensor_make(function, source->dtype, shape);
    const size_t bytes =
        (size_t)ng_shape_span(shape, 1, shape.rank) * ng_dtype_bytes(source->dtype);
    for (int64_t i = 0; result && i < count; i++)
        memcpy((char *)result->data + (size_t)i * bytes,
               (char *)source->data + (size_t)order[i] * bytes, bytes);
    return result;
}

/* ---- Split and shuffle --------------------------------------------------------------------- */

/* Copies the samples of these numbers. */
static ng_dataset *samples_new(const char *function, const ng_dataset *dataset,
                               const int64_t *numbers, int64_t count)
{
    ng_tensor *x = gathered(function, NULL, dataset->x, numbers, count);
    ng_tensor *y = x ? gathered(function, NULL, dataset->y, numbers, count) : NULL;
    ng_dataset *subset = ng_dataset_adopt(function, x, y);
    if (subset) subset->standardized = dataset->standardized;
    return subset;
}

ng_dataset *ng_dataset_subset_new(const ng_dataset *dataset, const int64_t *numbers, int64_t count)
{
    static const char function[] = "ng_dataset_subset_new";
    if (!ng_given(function, "dataset", dataset) || !ng_given(function, "numbers", numbers))
        return NULL;
    const int64_t all = ng_dataset_count(dataset);
    if (count < 1)
        ng_fail(NG_EVALUE, "%s: %lld samples, expected at least one", function, (long long)count);
    for (int64_t i = 0; i < count; i++) {
        if (numbers[i] >= 0 && numbers[i] < all) continue;
        ng_fail(NG_EVALUE, "%s: numbers[%lld] is %lld, expected 0 .. %lld", function, (long long)i,
                (long long)numbers[i], (long long)all - 1);
        return NULL;
    }
    return count < 1 ? NULL : samples_new(function, dataset, numbers, count);
}

ng_dataset *ng_dataset_shard_new(const ng_dataset *dataset, int rank, int size)
{
    static const char function[] = "ng_dataset_shard_new";
    if (!ng_given(function, "dataset", dataset)) return NULL;
    const int64_t all = ng_dataset_count(dataset);
    if (size < 1 || size > all || rank < 0 || rank >= size) {
        ng_fail(NG_EVALUE, "%s: rank %d of %d for %lld samples, expected 0 <= rank < size <= %lld",
                function, rank, size, (long long)all, (long long)all);
        return NULL;
    }
    int64_t *numbers = ng_calloc(function, all / size, sizeof *numbers);
    for (int64_t i = 0; numbers && i < all / size; i++) numbers[i] = i * size + rank;
    ng_dataset *shard = numbers ? samples_new(function, dataset, numbers, all / size) : NULL;
    ng_free(numbers);
    return shard;
}

/* Copies the samples first..first + count - 1 of a random order to *part and the others to *rest.
 * After an error neither is set. */
static ng_status divide(const char *function, const ng_dataset *dataset, int64_t first,
                        int64_t count, uint64_t seed, ng_dataset **part, ng_dataset **rest)
{
    const int64_t all = ng_dataset_count(dataset);
    int64_t *order = ng_calloc(function, 2 * all, sizeof *order), *parts = order + all;
    if (!order) return NG_ENOMEM;
    shuffle(order, all, seed);
    for (int64_t i = 0, others = count; i < all; i++) {
        const bool inside = i >= first && i < first + count;
        parts[inside ? i - first : others++] = order[i];
    }
    ng_dataset *a = samples_new(function, dataset, parts, count);
    ng_dataset *b = a ? samples_new(function, dataset, parts + count, all - count) : NULL;
    ng_free(order);
    if (!b) {
        ng_dataset_free(a);
        return ng_newest_status();
    }
    *part = a, *rest = b;
    return NG_OK;
}

ng_status ng_dataset_split_new(const ng_dataset *dataset, int64_t count, uint64_t seed,
                               ng_dataset **first, ng_dataset **second)
{
    static const char function[] = "ng_dataset_split_new";
    if (!ng_given(function, "dataset", dataset) || !ng_given(function, "first", first) ||
        !ng_given(function, "second", second))
        return ng_newest_status();
    const int64_t all = ng_dataset_count(dataset);
    if (count < 1 || count >= all)
        return ng_fail(NG_EVALUE,
                       "%s: count is %lld, expected 1 or more, and fewer than the %lld samples",
                       function, (long long)count, (long long)all);
    return divide(function, dataset, 0, count, seed, first, second);
}

/* The first all % k parts have one sample more than the others. */
ng_status ng_dataset_fold_new(const ng_dataset *dataset, int fold, int k, uint64_t seed,
                              ng_dataset **train, ng_dataset **validate)
{
    static const char function[] = "ng_dataset_fold_new";
    if (!ng_given(function, "dataset", dataset) || !ng_given(function, "train", train) ||
        !ng_given(function, "validate", validate))
        return ng_newest_status();
    const int64_t all = ng_dataset_count(dataset);
    if (k < 2 || k > all || fold < 0 || fold >= k)
        return ng_fail(NG_EVALUE,
                       "%s: fold is %d and k %d, expected 0 <= fold < k, and 2 <= k <= %lld",
                       function, fold, k, (long long)all);
    const int64_t first = all / k * fold + (all % k < fold ? all % k : fold);
    return divide(function, dataset, first, all / k + (fold < all % k), seed, validate, train);
}

ng_status ng_dataset_shuffle(ng_dataset *dataset, uint64_t seed)
{
    if (!ng_given("ng_dataset_shuffle", "dataset", dataset)) return ng_newest_status();
    shuffle(dataset->order, ng_dataset_count(dataset), seed);
    return NG_OK;
}

/* ---- Standardize --------------------------------------------------------------------------- */

static bool is_floating(const ng_tensor *x) { return x->dtype == NG_F32 || x->dtype == NG_F64; }

/* The mean is summed as a distance from the first row, so that the deviation is exactly 0 if all
 * values are equal. */
bool ng_feature_statistics(const char *function, const ng_tensor *x, int64_t features, double *mean,
                           double *deviation)
{
    const double count = (double)(x->size / features);
    for (int64_t i = 0; i < x->size; i++)
        mean[i % features] += ng_tensor_load(x, i) - ng_tensor_load(x, i % features);
    for (int64_t j = 0; j < features; j++) mean[j] = ng_tensor_load(x, j) + mean[j] / count;
    for (int64_t i = 0; i < x->size; i++) {
        const double centered = ng_tensor_load(x, i) - mean[i % features];
        deviation[i % features] += centered * centered;
    }
    for (int64_t j = 0; j < features; j++) {
        deviation[j] = sqrt(deviation[j] / count);
        if (isfinite(mean[j]) && isfinite(deviation[j])) continue;
        ng_fail(NG_EVALUE, "%s: feature %lld has mean %g and deviation %g", function, (long long)j,
                mean[j], deviation[j]);
        return false;
    }
    return true;
}

/* Writes the standardized values of x to `made`, a tensor of its shape. */
static ng_status standardize(const ng_tensor *x, const double *mean, const double *deviation,
                             int64_t features, ng_tensor *made)
{
    for (int64_t i = 0; i < x->size; i++) {
        const int64_t j = i % features;
        const double before = ng_tensor_load(x, i), constant = isfinite(before) ? 0 : before;
        ng_tensor_store(made, i, deviation[j] > 0 ? (before - mean[j]) / deviation[j] : constant);
        if (isfinite(before) && !isfinite(ng_tensor_load(made, i)))
            return ng_fail(NG_EVALUE,
                           "ng_dataset_standardize: feature %lld of sample %lld is %g, and no %s "
                           "once standardized",
                           (long long)j, (long long)(i / features), before,
                           ng_dtype_name(x->dtype));
    }
    return NG_OK;
}

ng_status ng_dataset_standardize(ng_dataset *dataset, const ng_dataset *reference)
{
    static const char function[] = "ng_dataset_standardize";
    if (!ng_given(function, "dataset", dataset) || !ng_given(function, "reference", reference))
        return ng_newest_status();
    ng_tensor *x = dataset->x;
    const ng_tensor *known = reference->x;
    if (!is_floating(x) || !is_floating(known))
        return ng_fail(NG_EDTYPE,
                       "ng_dataset_standardize: features in %s and %s, expected floating",
                       ng_dtype_name(x->dtype), ng_dtype_name(known->dtype));
    if (!ng_shape_equal(rows_shape(x, 1), rows_shape(known, 1)))
        return ng_fail(NG_ESHAPE, "ng_dataset_standardize: samples %s and %s, expected one shape",
                       ng_shape_print(rows_shape(x, 1)).text,
                       ng_shape_print(rows_shape(known, 1)).text);
    if (reference->standardized && !dataset->standardized)
        return ng_fail(NG_ESTATE,
                       "ng_dataset_standardize: the reference has been standardized and the data "
                       "set has not, expected the reference's turn to be the last");

    const int64_t features = ng_shape_span(x->shape, 1, x->shape.rank);
    double *mean = ng_calloc(function, 2 * features, sizeof *mean), *deviation = mean + features;
    ng_tensor *made = mean ? ng_tensor_make(function, x->dtype, x->shape) : NULL;
    ng_status status = made ? NG_OK : ng_newest_status();
    if (made)
        status = ng_feature_statistics(function, known, features, mean, deviation)
                     ? standardize(x, mean, deviation, features, made)
                     : ng_newest_status();
    if (status == NG_OK) {
        memcpy(x->data, made->data, (size_t)x->size * ng_dtype_bytes(x->dtype));
        ng_touch(x);
        dataset->standardized = true;
    }
    ng_tensor_free(made);
    ng_free(mean);
    return status;
}

/* ---- Batches ------------------------------------------------------------------------------- */

bool ng_dataset_batch_with(ng_dataset *dataset, ng_tape *tape, int64_t index, int64_t size,
                           ng_dataset_batch_options options)
{
    static const char function[] = "ng_dataset_batch";
    if (!ng_given(function, "batch", options.batch)) return false;
    *options.batch = (ng_batch){0};
    if (!ng_given(function, "dataset", dataset) || !ng_given(function, "tape", tape)) return false;
    tape->function = function;
    if (size < 1 || index < 0)
        return ng_fail(NG_EVALUE,
                       "%s: size is %lld and index %lld, expected 1 or more, and 0 or more",
                       function, (long long)size, (long long)index),
               false;
    const int64_t count = ng_dataset_count(dataset);
    if (index > (count - 1) / size) return false;

    const int64_t first = index * size, left = count - first;
    if (left < size && options.drop_last) return false;
    const int64_t taken = left < size ? left : size, *order = dataset->order + first;
    ng_tensor *x = gathered(function, tape, dataset->x, order, taken);
    ng_tensor *y = x ? gathered(function, tape, dataset->y, order, taken) : NULL;
    if (y) *options.batch = (ng_batch){.x = x, .y = y, .size = taken};
    return y != NULL;
}
