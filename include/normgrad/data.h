/* Data sets in memory: read, split, shuffle, standardise, and hand out in batches. */
#ifndef NORMGRAD_DATA_H
#define NORMGRAD_DATA_H

#include <normgrad/tape.h>

NG_BEGIN_C

/* `count` samples x (count, features...) with labels (int64) or targets y, or none. */
typedef struct ng_dataset ng_dataset;

/* Reads comma-separated numbers, one sample a line, from a file that may be compressed (.gz). The
 * last column is the label unless said. A bad cell, a line of another length or a label that is no
 * integer below 2^53 is NG_EPARSE and names file, line and column (both from 1); so is nan or inf.
 * Blank lines are skipped; a carriage return ends a line too. With .targets = k the last k columns
 * are to be predicted, numbers in place of a label: y (count, k), in the features' dtype, not
 * scaled. */
typedef struct {
    double scale;     /* multiplies every feature; default 1 */
    int label_column; /* from 1; default the last */
    int targets;      /* how many of the last columns; default 0: there is a label */
    bool no_label;    /* every column is a feature */
    bool header;      /* the first line holds names */
    char delimiter;   /* default ',' */
    ng_dtype dtype;   /* of the features; default float */
    const char *path; /* of the file */
} ng_dataset_read_csv_options;
#define ng_dataset_read_csv(...)                                                                   \
    ng_dataset_read_csv_with(NG_NAMED(ng_dataset_read_csv_options, path, __VA_ARGS__))
NG_API ng_dataset *ng_dataset_read_csv_with(ng_dataset_read_csv_options options);

/* Reads MNIST's IDX files, images and labels, as they are distributed (.gz) or unpacked:
 * x (count, rows, cols), each byte multiplied by `scale` (default 1/255). labels may be NULL. */
typedef struct {
    double scale;
    ng_dtype dtype;     /* of the features; default float */
    const char *labels; /* of the file of labels, or NULL */
} ng_dataset_read_idx_options;
#define ng_dataset_read_idx(images, ...)                                                           \
    ng_dataset_read_idx_with(images, NG_NAMED(ng_dataset_read_idx_options, labels, __VA_ARGS__))
NG_API ng_dataset *ng_dataset_read_idx_with(const char *images,
                                            ng_dataset_read_idx_options options);

/* Reads two arrays of a NumPy archive: x (count, features...) and y (count, ...); whole numbers in
 * y are labels (int64), other numbers targets in the features' dtype. A number that the dtype
 * cannot hold is NG_EVALUE.   ng_dataset_read_npz("mnist.npz", .x = "x_train", .y = "y_train") */
typedef struct {
    const char *x, *y; /* names of the arrays; default "x" and "y" */
    bool no_label;     /* there is no y */
    double scale;      /* multiplies every feature; default 1 */
    ng_dtype dtype;    /* of the features; default float */
    const char *path;  /* of the file */
} ng_dataset_read_npz_options;
#define ng_dataset_read_npz(...)                                                                   \
    ng_dataset_read_npz_with(NG_NAMED(ng_dataset_read_npz_options, path, __VA_ARGS__))
NG_API ng_dataset *ng_dataset_read_npz_with(ng_dataset_read_npz_options options);

/* From tensors, copied: x (count, ...), y (count) or (count, ...) of any dtype, or NG_NONE. */
NG_API ng_dataset *ng_dataset_from(const ng_tensor *x, const ng_tensor *y);

NG_API int64_t ng_dataset_count(const ng_dataset *dataset); /* -1 for NULL */

/* All samples in the order they came in, whatever a shuffle has done; the data set's own. */
NG_API const ng_tensor *ng_dataset_x(const ng_dataset *dataset);
NG_API const ng_tensor *ng_dataset_y(const ng_dataset *dataset); /* NG_NONE without labels */

/* Splits off the first `count` samples of a random order (by seed alone) into *first and the
 * others into *second, both yours and copies; the source stays as it is. Neither may be empty. */
NG_API ng_status ng_dataset_split(const ng_dataset *dataset, int64_t count, uint64_t seed,
                                  ng_dataset **first, ng_dataset **second);

/* The samples of these numbers, in their order, as a data set of yours: copies; one may come twice.
 * A number outside 0 .. count - 1 of the data set is NG_EVALUE. */
NG_API ng_dataset *ng_dataset_subset(const ng_dataset *dataset, const int64_t *numbers,
                                     int64_t count);

/* One of k parts for cross-validation: all but the fold-th part (0 .. k - 1) of a random order
 * (by seed alone) into *train, that one into *validate, both yours and copies. The parts together
 * are all samples, and differ by one in size at most. NG_EVALUE for a k outside 2 .. samples. */
NG_API ng_status ng_dataset_fold(const ng_dataset *dataset, int fold, int k, uint64_t seed,
                                 ng_dataset **train, ng_dataset **validate);

/* Of every `size` samples, as they came in, the one at `rank`: a copy, yours. All such shards have
 * the same number of samples, count / size; those that are left over are in none. */
NG_API ng_dataset *ng_dataset_shard(const ng_dataset *dataset, int rank, int size);

/* Batches come in the order given by the seed from here on: always the same one, whatever came
 * before. */
NG_API ng_status ng_dataset_shuffle(ng_dataset *dataset, uint64_t seed);

/* Shifts and scales each feature to mean 0 and deviation 1 by the statistics of `reference` (the
 * training set, possibly `dataset` itself); a feature that is constant there becomes 0. The
 * reference's own turn is the last, for its statistics change then: one that has been standardized,
 * or is part of one that has, is NG_ESTATE for a data set that has not.
 *     ng_dataset_standardize(validate, train), ng_dataset_standardize(train, train);
 * Values of `dataset` that are NaN or infinite stay so. Statistics or values that leave the range
 * of their dtype are NG_EVALUE, and nothing has changed. */
NG_API ng_status ng_dataset_standardize(ng_dataset *dataset, const ng_dataset *reference);

/* Copies the samples index * size onwards to the tape; false past the end and on error. The last
 * batch holds what is left, or is left out with .drop_last.
 *     for (int i = 0; ng_dataset_batch(digits, tape, i, 64, &batch); i++) ... */
typedef struct {
    ng_tensor *x, *y; /* the tape's; y is NG_NONE without labels */
    int64_t size;
} ng_batch;
typedef struct {
    bool drop_last;
    ng_batch *batch;
} ng_dataset_batch_options;
#define ng_dataset_batch(dataset, tape, index, count, ...)                                         \
    ng_dataset_batch_with(dataset, tape, index, count,                                             \
                          NG_NAMED(ng_dataset_batch_options, batch, __VA_ARGS__))
NG_API bool ng_dataset_batch_with(ng_dataset *dataset, ng_tape *tape, int64_t index, int64_t size,
                                  ng_dataset_batch_options options);

NG_API void ng_dataset_free(ng_dataset *dataset); /* takes NULL */

/* ---- NumPy's files -------------------------------------------------------------------------
 *
 * numpy.load reads what is saved here, and here is read what numpy.save, savez and savez_compressed
 * write: bool, integers, float16 to float64, either order of bytes and of dimensions. */

/* Saves any tensor's values; the file is replaced only when it is complete (history.h). */
NG_API NG_MUST_CHECK ng_status ng_tensor_save_npy(const ng_tensor *x, const char *path);

/* A tensor of yours: float64 of float64, float32 of float16 and float32, int64 of integers and
 * bool. A file of another form is NG_EPARSE, a number beyond int64 NG_EVALUE. */
NG_API ng_tensor *ng_tensor_load_npy(const char *path);

/* The same for an array of an archive (.npz), by its name; one that is not there is NG_EVALUE,
 * which tells those that are. Of several of one name, the last is read, as NumPy does. Archives
 * beyond 4 GB (zip64) are read, too. */
NG_API ng_tensor *ng_tensor_load_npz(const char *path, const char *name);

/* Saves tensors as an archive, uncompressed:
 *     ng_tensors_save_npz(path, (ng_npz_array[]){{"x", x}, {"y", y}}, 2) */
typedef struct {
    const char *name;        /* without ".npy"; UTF-8 */
    const ng_tensor *tensor; /* its values */
} ng_npz_array;
NG_API NG_MUST_CHECK ng_status ng_tensors_save_npz(const char *path, const ng_npz_array *arrays,
                                                   int count);

NG_END_C

#endif
