/* Plot: figures of histories, drawn by gnuplot; a look inside a network that trains. */
#ifndef NORMGRAD_PLOT_H
#define NORMGRAD_PLOT_H

#include <normgrad/history.h>
#include <normgrad/nn.h>

NG_BEGIN_C

/* ---- A figure -----------------------------------------------------------------------------
 *
 *     ng_plot(history, "loss.svg");
 *     ng_plot(history, "loss.png", .title = "Training", .log_y = true, .panels = true);
 *     ng_plot(history, "-");       as text, to standard output
 *     ng_plot(history, NULL);      in a window
 *
 * Draws the series of a history, one curve for each block. The path ends in .svg, .png or .pdf; its
 * folder exists, and the file is replaced when the new one is complete (ng_file_write). NULL opens
 * a window, which stays when the program ends.
 *
 * A value that is NaN or infinite interrupts its curve and its band, and on a logarithmic axis so
 * does one that is not positive. A step at which a series was not logged does not. The series NAME
 * has a band from NAME_low to NAME_high, as ng_history_summary makes them; where one of these is
 * not finite, only the band is interrupted. If no series are named, all are drawn but those that
 * belong to others: NAME_low and NAME_high beside NAME, NAME_min and NAME_max beside NAME, with
 * them "runs", and those that ng_watch logs for a layer.
 *
 * Of more than four values for each column of pixels, a curve is drawn by the first, the last, the
 * lowest and the highest of each column, which looks the same. The looks of 25 curves differ; the
 * 26th has that of the first. A key that takes more than a third of the width stands below the
 * panels, which share it; the figure becomes higher for it if no height is given, and else the key
 * takes half of it and says how many names are left out. Long texts are broken into lines.
 *
 * Texts are UTF-8 and are drawn as they are; nothing in them is a command. A control character and
 * a byte that is not UTF-8 is drawn as U+FFFD, a tab as a blank; a new line begins a line.
 *
 * title      default none
 * x_label    default "step" or "x"
 * y_label    default the series, if there is one; a panel has its series
 * series     the names of those to draw, ended by NULL; default as said above
 * histories  more histories, ended by NULL, drawn in the same axes
 * names      of the history and of each of these, for the key; default what ng_history_new was
 *            given, if there are several
 * log_x      logarithmic axes
 * log_y
 * band       draw the band; default only the curve
 * panels     a panel for each series; default one panel for all
 * smooth     draw the mean of the last `smooth` values, back to one that is not finite, and pale
 *            behind it the values; the band likewise. Default: the values
 * width      in pixels (of text, in characters); default by the number of panels
 * height
 * keep       also write NAME.dat, what is drawn, and NAME.gp: in their folder, gnuplot NAME.gp
 *            draws it again
 * live       for "-" and NULL: called at each step, redraws the same terminal or window, at most
 *            twice a second, with some hundred points of a curve. What a call asked for that came
 *            too early is drawn by a later one, by the next figure of this history, or by
 *            ng_history_free, which ends gnuplot. Not with `histories` and `names`
 *
 * NG_EVALUE if there is nothing to draw: no series, one that is not there, or one that has no
 * finite value, or on a logarithmic axis no positive one; and for fewer names than histories.
 * NG_EIO if the file cannot be written, there is no display, gnuplot is not installed (apt-get
 * install gnuplot-nox) or fails; the text has its reason. gnuplot is run without a shell, and reads
 * none of its settings in files. */
typedef struct {
    const char *title, *x_label, *y_label;
    const char *const *series;
    ng_history *const *histories;
    const char *const *names;
    bool log_x, log_y, band, panels;
    int smooth;
    int width, height;
    bool keep, live;
    const char *path;
} ng_plot_options;
#define ng_plot(history, ...) ng_plot_with(history, NG_LISTED(ng_plot_options, path, __VA_ARGS__))
NG_API ng_status ng_plot_with(ng_history *history, ng_plot_options options);

/* ---- Inside a network ---------------------------------------------------------------------
 *
 *     ng_watch(net, history, -1);                              before the first step: begins
 *     for (int step = 0; ...; step++) {
 *         ng_tensor *loss = ng_cross_entropy(tape, ng_forward(net, tape, x), labels);
 *         if (ng_backward(tape, loss) || ng_optimizer_step(adam)) break;
 *         if (step % 10 == 0) ng_watch(net, history, step);
 *         ng_tape_reset(tape);
 *     }
 *     ng_plot_watch(history, "layers.svg");
 *
 * Logs for each layer (each module below the net, and the net itself if it has none) the series
 * PATH/STATISTIC. A path that ends in a number has the layer's type after it, "0.Linear/weight";
 * what a series' name may not have becomes '_'.
 *
 *     mean, deviation  of the layer's output in the last pass that is still on its tape
 *     zeros            share of the output's elements that are 0
 *     saturated        share within 0.01 of an end of its range: tanh beyond -0.99 and 0.99,
 *                      sigmoid beyond 0.01 and 0.99; 0 of layers without such a range
 *     divisor          of norms: the mean of sqrt(var + eps) over the rows, or channels
 *     gradient         norm of the gradient of the layer's own parameters
 *     weight           norm of these parameters
 *     update           norm of their change since the call before, by step
 *     ratio            update / weight
 *
 * Norms are computed from sums of squares, in double for elements up to 1e150.
 *
 * Call it after ng_optimizer_step and before ng_tape_reset. The first call begins to watch: it logs
 * no output of passes before it and no update, and at a negative step nothing. The net keeps a copy
 * of its parameters from then on. Results are the same to the bit with and without it. Not for a
 * network that several threads use at once. Two networks need two histories, or blocks: NG_EVALUE
 * if the block has the series of another one. A layer that is called several times in a pass shows
 * its last output; one whose parent uses its parameters without calling it has no output. */
NG_API ng_status ng_watch(ng_module *net, ng_history *history, int64_t step);

/* Draws what ng_watch has logged in the last block that has it: layers from top to bottom, steps
 * from left to right, a panel each for the outputs' deviation, the share of zeros, the norm of the
 * gradient and the ratio of update to weight. A panel has only the layers with values. A cell
 * reaches from its step to the next one that was logged; of more than 120 it shows the first of
 * several. What is not finite, and on a logarithmic scale what is 0, stays white. Path, .title,
 * .width, .height and .keep are those of ng_plot; "-" is NG_EVALUE, for text has no colours.
 * NG_EVALUE if nothing was watched, or no value can be drawn. */
typedef struct {
    const char *title;
    int width, height;
    bool keep;
    const char *path;
} ng_plot_watch_options;
#define ng_plot_watch(history, ...)                                                                \
    ng_plot_watch_with(history, NG_NAMED(ng_plot_watch_options, path, __VA_ARGS__))
NG_API ng_status ng_plot_watch_with(ng_history *history, ng_plot_watch_options options);

NG_END_C

#endif
