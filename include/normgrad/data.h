/* Data sets in memory: read, split, shuffle, standardize, and hand out in batches.
 *
 *     ng_dataset *digits = ng_dataset_read_csv("examples/data/digits.csv", .scale = 1.0 / 16);
 *     ng_dataset *most = NULL, *rest = NULL;
 *     ng_dataset_split_new(digits, 1437, 0, &most, &rest);
 *     ng_dataset_standardize(rest, most), ng_dataset_standardize(most, most);
 *     ng_dataset_shuffle(most, 1);
 *     for (int i = 0; ng_dataset_batch(most, tape, i, 64, &batch); i++, ng_tape_reset(tape))
 *         ng_print(batch.x);
 *     ng_dataset_free(digits), ng_dataset_free(most), ng_dataset_free(rest);
 *
 *     ng_dataset_read_csv(path)                    reads comma-separated numbers
 *     ng_dataset_read_idx(images, labels)          reads MNIST's files
 *     ng_dataset_read_npz(path)                    reads a NumPy archive
 *     ng_dataset_from(x, y)                        copies two tensors
 *     ng_dataset_split_new(data, n, seed, &a, &b)   n samples at random, and the others
 *     ng_dataset_subset_new(data, numbers, n)      samples by number
 *     ng_dataset_fold_new(data, i, k, seed, &train, &validate)   the i-th fold of k
 *     ng_dataset_shard_new(data, rank, size)       the part of a rank
 *     ng_dataset_shuffle(data, seed)               draws the order of batches
 *     ng_dataset_standardize(data, reference)      mean 0 and deviation 1
 *     ng_dataset_batch(data, tape, i, n, &batch)   the i-th batch of n
 *     ng_tensor_save_npy(x, path)                  for NumPy; ng_tensor_read_npy reads
 */
#ifndef NORMGRAD_DATA_H
#define NORMGRAD_DATA_H

#include <normgrad/tape.h>

NG_BEGIN_C

/* A number of samples: x (count, features...), and y (count, ...), which holds labels (int64) or
 * targets (numbers). y may be missing. A condition of each sample can be columns of x or
 * of y, which ng_slice takes out.
 *
 * All readers take the path of a file or a pipe. A file that cannot be read is NG_EIO, one with
 * other content NG_EPARSE. Compressed files (.gz, .npz) need a library built with zlib; without it
 * they are NG_EPARSE, and the text says so. */
typedef struct ng_dataset ng_dataset;

/* Reads comma-separated numbers, one sample a line; the file may be compressed (.gz). Returns a
 * data set of yours, x (count, features). The last column is the label, a whole number below 2^53.
 * With .targets = k the last k columns are y (count, k), in the dtype of the features and not
 * scaled.
 *
 * A line ends with a new line, a carriage return or both; blank lines are skipped. A cell that is
 * no number (nan and inf are not accepted), and a line of another length, are NG_EPARSE with file,
 * line and column, counted from 1. */
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

/* Reads MNIST's IDX files of images and labels, compressed (.gz) or not. Returns a data set of
 * yours, x (count, rows, cols), each byte multiplied by `scale`, and y (count), or no y if labels
 * is NULL. */
typedef struct {
    double scale;       /* default 1/255 */
    ng_dtype dtype;     /* of the features; default float */
    const char *labels; /* path of the labels, or NULL */
} ng_dataset_read_idx_options;
#define ng_dataset_read_idx(images, ...)                                                           \
    ng_dataset_read_idx_with(images, NG_NAMED(ng_dataset_read_idx_options, labels, __VA_ARGS__))
NG_API ng_dataset *ng_dataset_read_idx_with(const char *images,
                                            ng_dataset_read_idx_options options);

/* Reads two arrays of a NumPy archive (.npz): x (count, features...) and y (count, ...). Returns a
 * data set of yours. Whole numbers in y are labels (int64), other numbers are targets in the dtype
 * of the features. NG_EVALUE if a number does not fit its dtype.
 *     ng_dataset_read_npz("mnist.npz", .x = "x_train", .y = "y_train") */
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

/* A data set of yours with copies of x (count, ...) and y (count, ...), of any dtypes; y may be
 * NG_NONE. */
NG_API ng_dataset *ng_dataset_from(const ng_tensor *x, const ng_tensor *y);

/* How many samples there are; -1 for NULL. */
NG_API int64_t ng_dataset_count(const ng_dataset *dataset);

/* All samples in their first order, also after a shuffle. The tensor belongs to the data set: it
 * may be an op's operand, is not to be freed, and is gone with the data set. */
NG_API ng_tensor *ng_dataset_x(const ng_dataset *dataset);
NG_API ng_tensor *ng_dataset_y(const ng_dataset *dataset); /* NG_NONE without labels */

/* Draws a random order from the seed alone, copies its first `count` samples to *first and the
 * others to *second. Both are yours; the source does not change. NG_EVALUE if a part is empty. */
NG_API ng_status ng_dataset_split_new(const ng_dataset *dataset, int64_t count, uint64_t seed,
                                      ng_dataset **first, ng_dataset **second);

/* A data set of yours with copies of samples, in the order of their numbers in the list. A number
 * may occur twice. NG_EVALUE for a number outside 0 .. ng_dataset_count(dataset) - 1. */
NG_API ng_dataset *ng_dataset_subset_new(const ng_dataset *dataset, const int64_t *numbers,
                                         int64_t count);

/* One of k folds for cross-validation. Draws a random order from the seed alone, copies its fold-th
 * part (0 .. k - 1) to *validate and the others to *train; both are yours. The sizes of the parts
 * differ by at most one. NG_EVALUE for a k outside 2 .. number of samples. */
NG_API ng_status ng_dataset_fold_new(const ng_dataset *dataset, int fold, int k, uint64_t seed,
                                     ng_dataset **train, ng_dataset **validate);

/* A data set of yours with copies of the samples rank, rank + size, rank + 2 size... The shards of
 * all ranks have the same number of samples, count / size; samples left over are in none. */
NG_API ng_dataset *ng_dataset_shard_new(const ng_dataset *dataset, int rank, int size);

/* Draws the order of later batches. It depends on the seed alone, not on earlier shuffles. */
NG_API ng_status ng_dataset_shuffle(ng_dataset *dataset, uint64_t seed);

/* Subtracts from each feature the mean that it has in `reference`, and divides by its deviation
 * there. The reference is usually the training set. Standardize it last, because that changes its
 * statistics:
 *     ng_dataset_standardize(validate, train), ng_dataset_standardize(train, train);
 * A feature that is constant in the reference, or has a deviation below 1e-160, becomes 0. NaN and
 * infinite values stay. NG_ESTATE if the reference, or the data set it was taken from, was
 * standardized and `dataset` was not. NG_EVALUE if a statistic or value leaves the range of its
 * dtype. After an error nothing has changed. */
NG_API ng_status ng_dataset_standardize(ng_dataset *dataset, const ng_dataset *reference);

/* Copies the samples index * size .. index * size + size - 1, in the order of the last shuffle, to
 * the tape. Returns false past the end and on error; *batch is then zero. The last batch may be
 * smaller.
 *     for (int i = 0; ng_dataset_batch(digits, tape, i, 64, &batch); i++) ... */
typedef struct {
    ng_tensor *x, *y; /* the tape's; y is NG_NONE without labels */
    int64_t size;
} ng_batch;
typedef struct {
    bool drop_last; /* leave out a last batch that is smaller */
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
 * numpy.load reads the files that are saved here. The functions here read the files of numpy.save,
 * savez and savez_compressed: bool, integers and float16 to float64, in any order of bytes and
 * dimensions. */

/* Saves a tensor's values. The file is replaced when the new one is complete (history.h). */
NG_API NG_MUST_CHECK ng_status ng_tensor_save_npy(const ng_tensor *x, const char *path);

/* Returns a tensor of yours: float64 for float64, float32 for float16 and float32, int64 for
 * integers and bool. NG_EPARSE for a file of another form, NG_EVALUE for a number beyond int64. */
NG_API ng_tensor *ng_tensor_read_npy(const char *path);

/* The same for an array of an archive (.npz), by its name, with or without ".npy". If there is
 * none, NG_EVALUE names those that are there. Archives are of less than 4 GB and without a comment,
 * as NumPy writes them. Of several arrays of one name the first is read. */
NG_API ng_tensor *ng_tensor_read_npz(const char *path, const char *name);

NG_END_C

#endif
