/* History: named series of numbers by step, written as a .dat file that gnuplot reads. plot.h draws
 * it. */
#ifndef NORMGRAD_HISTORY_H
#define NORMGRAD_HISTORY_H

#include <normgrad/tensor.h>

NG_BEGIN_C

/* A history has blocks (one per run, say), each with its own series. In the file
 *
 *     # what: digits, 64-128-128-10; seed 0; float32; normgrad 0.4.0, avx2
 *
 *     # LayerNorm
 *     step      loss          accuracy
 *     0         2.31          ?
 *     1         1.02          0.91
 *
 * two blank lines separate blocks. For gnuplot, `index "LayerNorm"` selects the first block whose
 * name begins so, `columnheader` names the columns, and `set datafile missing "?"` skips what was
 * not logged at a step. NaN and Inf are written as such, and interrupt gnuplot's line. */
typedef struct ng_history ng_history;

/* Returns a history of yours. `what` goes into the first line of the file, before the version; new
 * lines in it become spaces. */
NG_API ng_history *ng_history_new(const char *what);

/* Begins the next block. NG_EVALUE if another block has the name. Without a call there is one block
 * without a name. A block in which nothing is logged is not written. */
NG_API ng_status ng_history_block(ng_history *history, const char *name);

/* Logs a value of a series at a step, in place of an earlier one at that step. The name is made of
 * letters, digits, '_', '-', '.' and '/', and is not "step"; else NG_EVALUE. */
NG_API ng_status ng_history_log(ng_history *history, const char *series, int64_t step,
                                double value);

/* The same at a real x, for what is not measured by step: an error by step size. The first column
 * of the block is then "x", which no series may have as its name. NG_EVALUE if x is not finite, and
 * in a block that is logged by step. */
NG_API ng_status ng_history_log_at(ng_history *history, const char *series, double x, double value);

/* Returns a history of yours with one block that summarizes several runs. A run is a block of one
 * of the `count` histories. For each series NAME, and each step at which a run has logged it, the
 * summary has of those runs
 *
 *     NAME                 the median
 *     NAME_low, NAME_high  the quartiles, interpolated linearly
 *     NAME_min, NAME_max   the extremes
 *     runs                 how many values are no NaN (of the series that has most of them there)
 *
 * A NaN is a run that has diverged, and counts as worse than every number. Since the library does
 * not know whether low or high values are better, it counts as lower than all numbers for NAME_low
 * and NAME_min, and as higher than all for NAME_high, NAME_max and the median, which is what
 * becomes of a loss. A value that falls on a NaN is NaN: then ng_plot interrupts the line or the
 * band. So of five runs one NaN makes both extremes NaN, two the quartiles, three the median. A run
 * whose last value is NaN counts as NaN at later steps as well. A run that ends with a number is
 * not counted from there on; `runs` tells.
 *
 * ng_plot draws the quartiles as a band. NG_EVALUE if no run has the block, if nothing is logged,
 * and if some runs are logged by x and others by step.
 *
 * block  the runs are the blocks of this name, and the result's has it too; default: all blocks */
typedef struct {
    const char *block;
    int count;
} ng_history_summary_options;
#define ng_history_summary(histories, ...)                                                         \
    ng_history_summary_with(histories, NG_NAMED(ng_history_summary_options, count, __VA_ARGS__))
NG_API ng_history *ng_history_summary_with(ng_history *const *histories,
                                           ng_history_summary_options options);

/* Writes the whole history to a file, which is replaced when the new one is complete. */
NG_API ng_status ng_history_write(const ng_history *history, const char *path);

/* Reads what ng_history_write has written, with its nine digits, and returns a history of yours
 * that can be continued: the last block is the present one. NG_EPARSE names file and line. */
NG_API ng_history *ng_history_read(const char *path);

/* Replaces a file by `size` bytes, as every function of the library that writes a file does: the
 * new file is written beside the old one, brought to the disk, and takes its name in one step. A
 * reader finds the old file or the new one whole, whatever fails or is killed meanwhile; after a
 * power failure it may still be the old one. The new file has the mode of the old one, but belongs
 * to you; if there was none, the umask decides. A symbolic link is replaced, not what it leads to.
 *
 * NG_EIO with the system's reason leaves the old file as it is: if the disk is full, folder or file
 * may not be written, or a folder, pipe or device stands there. A process that is killed leaves
 * NAME.*.tmp, which may be deleted. */
NG_API ng_status ng_file_write(const char *path, const void *bytes, int64_t size);

NG_API void ng_history_free(ng_history *history); /* takes NULL */

/* Writes a tensor as text for gnuplot: a line for each row of the last dimension, a blank line
 * after each matrix, two after each stack of matrices. A vector is a column. Numbers have 17
 * digits, so that nothing is lost. The file is replaced when the new one is complete.
 *     ng_tensor_write_dat(field, "field.dat");   gnuplot: plot "field.dat" matrix with image */
NG_API NG_MUST_CHECK ng_status ng_tensor_write_dat(const ng_tensor *x, const char *path);

NG_END_C

#endif
