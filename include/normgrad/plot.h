/* Plot: figures of histories, drawn by gnuplot; a look inside a network that trains.
 *
 *     for (int step = 0; step < 100; step++, ng_tape_reset(tape)) {
 *         ng_tensor *loss = ng_cross_entropy(tape, ng_forward(net, tape, x), labels);
 *         if (ng_backward(tape, loss) || ng_optimizer_step(adam)) break;
 *         ng_history_log(history, "loss", step, ng_item(loss));
 *         if (step % 10 == 0) ng_watch(net, history, step);
 *     }
 *     ng_plot(history, "loss.svg", .log_y = true);
 *     ng_plot_watch(history, "layers.svg");
 *
 *     ng_plot(history, path)         draws the series of a history
 *     ng_watch(net, history, step)   logs statistics of each layer
 *     ng_plot_watch(history, path)   draws them
 */
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
 * Draws the series of a history, one curve for each block. The path ends in .svg, .png or .pdf, and
 * its folder exists. NULL opens a window, which stays when the program ends.
 *
 * If .series is not given, all series are drawn, except the quartiles, the extremes and the number
 * of runs of an ng_history_summary_new, and what ng_watch has logged. With .band, NAME_low and
 * NAME_high are the band of the series NAME.
 *
 * A curve, or a band, has a gap at a NaN, at a value beyond 1e300, and on a logarithmic axis at one
 * below 1e-300. It has none at a step at which the series was not logged. The key says which curves
 * have no value that can be drawn. 30 curves look different. A curve of 100,000 values makes an SVG
 * of 2 MB; a PNG stays small.
 *
 * The key of several curves stands below the panels, and the figure becomes higher. With a .height
 * the panels become lower. Texts are UTF-8 and are drawn as they are. A new line begins a line of a
 * title or label; what is longer than the figure is cut. A byte that is not UTF-8 is drawn as
 * U+FFFD.
 *
 * NG_EVALUE if there is nothing to draw: no series, a series that is not there, or no value that
 * can be drawn; also if there are fewer names than histories. NG_EIO if the file cannot be written,
 * there is no display, or gnuplot fails or is not installed (apt-get install gnuplot-nox); the text
 * has the reason. gnuplot runs without its settings in files. */
typedef struct {
    const char *title;             /* default: none */
    const char *x_label, *y_label; /* default: "step" or "x"; the series, if there is one */
    const char *const *series;     /* names of the series to draw, ended by NULL */
    ng_history *const *histories;  /* more histories for the same axes, ended by NULL */
    const char *const *names;      /* of all histories, for the key; default: ng_history_new's */
    bool log_x, log_y;             /* logarithmic axes */
    bool band;                     /* draw the band; default: the curve only */
    bool panels;                   /* a panel for each series; default: one for all */
    int smooth; /* draw the mean of the last `smooth` values, and the values in a pale colour;
                   a gap begins the mean anew */
    int width, height; /* in pixels, of text in characters; default: by the panels, 79 and 24 */
    bool keep;         /* also write NAME.gp, with the numbers, with which gnuplot draws it again */
    bool live; /* for "-" and NULL, in a call at each step: redraws the same terminal or window
                  twice a second. ng_history_free shows the last values and ends gnuplot. Not with
                  .histories */
    const char *path;
} ng_plot_options;
#define ng_plot(history, ...) ng_plot_with(history, NG_NAMED(ng_plot_options, path, __VA_ARGS__))
NG_API ng_status ng_plot_with(ng_history *history, ng_plot_options options);

/* ---- Inside a network --------------------------------------------------------------------- */

/* Logs statistics of each layer: of each module below the net that is no container, or of the net
 * itself if it has none. Call it after ng_optimizer_step and before ng_tape_reset. The series are
 * named PATH/STATISTIC, such as "0.Linear/weight": a path that ends in a number has the layer's
 * type after it, and characters that a series may not have become '_'.
 *
 *     mean, deviation  of the layer's output
 *     zeros            share of the output's elements that are 0
 *     saturated        share of the output's elements within 0.01 of an end of its range: tanh
 *                      beyond -0.99 and 0.99, sigmoid beyond 0.01 and 0.99; else 0
 *     gradient         norm of the gradient of the layer's own parameters
 *     weight           norm of these parameters
 *     update           norm of their change since the last call, divided by the number of steps
 *     ratio            update / weight
 *
 * The first call logs no update and no output. To begin before the first step, call it with a
 * negative step, which logs nothing: ng_watch(net, history, -1). The net keeps a copy of its
 * parameters from then on. Results are the same to the bit with and without ng_watch.
 *
 * It is not for a network that several threads use at once. Two networks need two histories, or two
 * blocks; else NG_EVALUE. A layer that is called several times in a pass shows its last output. A
 * layer whose parent uses its parameters without calling it has no output. */
NG_API ng_status ng_watch(ng_module *net, ng_history *history, int64_t step);

/* Draws what ng_watch has logged in the last block that has any: layers from top to bottom, steps
 * from left to right. There is a panel for the outputs' deviation, the share of zeros, the norm of
 * the gradient, and the ratio of update to weight. The path is .svg, .png or .pdf; settings are as
 * in ng_plot.
 *
 * A cell reaches to the next step that was logged; of more than 120 steps some are left out. What
 * is not finite, or is 0 on a logarithmic scale, is white; a panel may be empty. NG_EVALUE if
 * nothing was watched, if no value can be drawn, and for the path "-". */
typedef struct {
    const char *title; /* as in ng_plot, like the next two */
    int width, height;
    bool keep;
    const char *path;
} ng_plot_watch_options;
#define ng_plot_watch(history, ...)                                                                \
    ng_plot_watch_with(history, NG_NAMED(ng_plot_watch_options, path, __VA_ARGS__))
NG_API ng_status ng_plot_watch_with(ng_history *history, ng_plot_watch_options options);

NG_END_C

#endif
