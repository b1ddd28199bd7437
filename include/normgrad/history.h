/* History: named series of numbers by step, written as a .dat file that gnuplot reads. */
#ifndef NORMGRAD_HISTORY_H
#define NORMGRAD_HISTORY_H

#include <normgrad/tensor.h>

NG_BEGIN_C

/* A history has blocks (say, one per run), each with its own series. In the file
 *
 *     # what: digits, 64-128-128-10; seed 0; float32; normgrad 0.2.0
 *
 *     # LayerNorm
 *     step  loss     accuracy
 *     0     2.31     ?
 *     1     1.02     0.91
 *
 * blocks stand two blank lines apart: gnuplot's `index "LayerNorm"` selects one (the first whose
 * name begins so: begin "LayerNorm" before "LayerNorm 2"), `columnheader` names its columns, and
 * `set datafile missing "?"` skips what was not logged at a step. NaN and Inf are written as such;
 * gnuplot interrupts its line there. */
typedef struct ng_history ng_history;

/* `what` goes into the first line of the file (new lines become spaces), before the version. */
NG_API ng_history *ng_history_new(const char *what);

/* Begins the next block, of a name that no other has; without a call there is one block without a
 * name. A block in which nothing is logged is not written. */
NG_API ng_status ng_history_block(ng_history *history, const char *name);

/* Logs a value of a series at a step; logging the same again replaces it. Names are made of
 * letters, digits, '_', '-' and '.'; "step" is the first column's. */
NG_API ng_status ng_history_log(ng_history *history, const char *series, int64_t step,
                                double value);

/* Writes the whole history to a file, which is replaced only when it is complete. */
NG_API ng_status ng_history_write(const ng_history *history, const char *path);

/* Reads back what ng_history_write has written, with the nine digits that stand there, to be gone
 * on with: the last block is the one that is written to. Yours. A file of another form is
 * NG_EPARSE, which names file and line. */
NG_API ng_history *ng_history_read(const char *path);

/* Writes `size` bytes to a file: what all functions of the library do that write one, for a .dat
 * that is no history.
 *
 * The new file is written beside the old one, brought to the disk, and takes its place in one step:
 * whoever reads finds the old one or the new one whole, whatever fails or is killed on the way. Its
 * mode is kept, and owner and group where the system allows; a new file has what the umask leaves.
 * What a symbolic link leads to is replaced, and the link stays. NG_EIO, with the system's reason,
 * leaves the old file as it is: where the disk is full, the folder or the file may not be written,
 * something else than a regular file stands there (a folder, a pipe, a device), or a link leads
 * nowhere. (Where only the folder cannot be brought to the disk, the new file stands in its place,
 * and may be lost if the machine stops.) A process that is killed meanwhile leaves NAME.*.tmp,
 * which may be deleted. */
NG_API ng_status ng_file_write(const char *path, const void *bytes, int64_t size);

NG_API void ng_history_free(ng_history *history); /* takes NULL */

/* Writes a tensor as gnuplot reads it, a line for each row of its last dimension, with a blank line
 * after each matrix and two after each stack of them; %.17g, so that nothing is lost. A vector is a
 * column. The file is replaced only when it is complete.
 *     ng_tensor_write_dat(field, "field.dat");   gnuplot: plot "field.dat" matrix with image */
NG_API NG_MUST_CHECK ng_status ng_tensor_write_dat(const ng_tensor *x, const char *path);

NG_END_C

#endif
