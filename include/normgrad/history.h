/* History: named series of numbers by step, in a file that gnuplot reads. plot.h draws it.
 *
 *     ng_history *log = ng_history_new("digits, seed 0");
 *     ng_history_block(log, "LayerNorm");
 *     for (int step = 0; step < 100; step++) ng_history_log(log, "loss", step, 1.0 / (step + 1));
 *     if (ng_history_write(log, "loss.dat")) fprintf(stderr, "%s\n", ng_error_text());
 *     ng_history_free(log);
 *
 *     ng_history_new(what)                           a history of yours
 *     ng_history_block(history, name)                begins a block: one run, for example
 *     ng_history_log(history, series, step, value)   logs a value
 *     ng_history_log_at(history, series, x, value)   the same at a real x
 *     ng_history_summary_new(histories, n)           median and quartiles of several runs
 *     ng_history_write(history, path)                to a file
 *     ng_history_read(path)                          from a file
 *     ng_file_write(path, bytes, size)               replaces a file in one step
 *     ng_tensor_write_dat(x, path)                   a tensor as text for gnuplot
 */
#ifndef NORMGRAD_HISTORY_H
#define NORMGRAD_HISTORY_H

#include <normgrad/tensor.h>

NG_BEGIN_C

/* A history has blocks, each with its own series. In a file of histories, such as
 *
 *     # what: digits, 64-128-128-10; seed 0; float32; normgrad 0.4.0, avx2
 *
 *     # LayerNorm
 *     step      loss          accuracy
 *     0         2.31          ?
 *     1         1.02          0.91
 *
 * two blank lines separate blocks. In gnuplot `index "LayerNorm"` selects the first block whose
 * name begins with this, `columnheader` names the columns, and `set datafile missing "?"` skips
 * what was not logged at a step. NaN and Inf are written as such; gnuplot's line has a gap there.
 * */
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

/* The same at a real x, such as a step size, in place of a step. The first column of the block is
 * then "x", and no series may have this name. NG_EVALUE if x is not finite, and in a block that is
 * logged by step. */
NG_API ng_status ng_history_log_at(ng_history *history, const char *series, double x, double value);

/* Returns a history of yours with one block that summarizes several runs. A run is a block of one
 * of the `count` histories. For each series NAME and each step, the summary has
 *
 *     NAME                 the median of the runs that have logged it
 *     NAME_low, NAME_high  the quartiles, interpolated linearly; ng_plot draws them as a band
 *     NAME_min, NAME_max   the extremes
 *     runs                 how many runs have a number there (in the series that has most)
 *
 * A NaN is a run that has diverged. It counts as worse than every number: as the lowest value for
 * NAME_low and NAME_min, and as the highest for NAME_high, NAME_max and the median. A statistic
 * that falls on a NaN is NaN, and ng_plot leaves a gap there. So of five runs one NaN makes both
 * extremes NaN, two make the quartiles NaN, three the median. A run whose last value is NaN counts
 * as NaN at later steps too. A run that ends with a number does not count after its end.
 *
 * NG_EVALUE if no run has the block, if nothing is logged, if some runs are logged by x and others
 * by step, and if a series has the name of another one's statistic. */
typedef struct {
    const char *block; /* use the blocks of this name, and give it to the result; default: all */
    int count;
} ng_history_summary_new_options;
#define ng_history_summary_new(histories, ...)                                                     \
    ng_history_summary_new_with(histories,                                                         \
                                NG_NAMED(ng_history_summary_new_options, count, __VA_ARGS__))
NG_API ng_history *ng_history_summary_new_with(ng_history *const *histories,
                                               ng_history_summary_new_options options);

/* Writes the whole history to a file, which is replaced when the new one is complete. A line
 * "#kinds:" before the names of a block says which of its series are those of a summary ("spread")
 * or of ng_watch ("layer"). ng_plot draws the others ("curve"). */
NG_API ng_status ng_history_write(const ng_history *history, const char *path);

/* Reads a file of ng_history_write and returns a history of yours. Logging continues in its last
 * block. The file's values have nine digits. NG_EPARSE names file and line. */
NG_API ng_history *ng_history_read(const char *path);

/* Writes `size` bytes to a file. Every function of the library that writes a file works in this
 * way: it writes a new file beside the old one, brings it to the disk, and renames it. So a reader
 * finds the old file or the new one, each whole, even if the process is killed; after a power
 * failure it may still be the old one.
 *
 * On NG_EIO, with the system's reason, the old file is unchanged: the disk is full, the folder or
 * file cannot be written, or a folder, pipe or device has that name. The new file has the mode of
 * the old one but belongs to you; a symbolic link is replaced, not its target. A process that is
 * killed leaves NAME.*.tmp, which may be deleted. */
NG_API ng_status ng_file_write(const char *path, const void *bytes, int64_t size);

/* Writes a tensor as text for gnuplot: a line for each row of the last dimension, a blank line
 * after each matrix, two after each stack of matrices. A vector is a column. Numbers have 17
 * digits, which is exact.
 *     ng_tensor_write_dat(field, "field.dat");   gnuplot: plot "field.dat" matrix with image */
NG_API NG_MUST_CHECK ng_status ng_tensor_write_dat(const ng_tensor *x, const char *path);

NG_API void ng_history_free(ng_history *history); /* takes NULL */

NG_END_C

#endif
