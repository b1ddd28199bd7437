/* --live and --watch: a figure that is redrawn while a network trains, and one of its layers. */
#ifndef EXAMPLES_LOOK_H
#define EXAMPLES_LOOK_H

#include "figure.h"

#define LOOK_OPTIONS(look)                                                                         \
    OPTION_SWITCH("live",                                                                          \
                  "redraw the curves during training: in a window, or in the terminal if there\n"  \
                  "is no display",                                                                 \
                  &(look).live),                                                                   \
        OPTION_SWITCH("watch",                                                                     \
                      "watch the layers of the first seed's networks, and draw them in\n"          \
                      "PREFIX-NAME-layers.svg",                                                    \
                      &(look).watch)

typedef struct {
    bool live, watch;
    ng_history *curves; /* those of --live; NULL: none are drawn */
} look;

static inline bool look_has_window(void) { return getenv("DISPLAY") || getenv("WAYLAND_DISPLAY"); }

static inline void look_begin(look *l)
{
    if (l->live && !look_has_window() && !isatty(STDOUT_FILENO)) {
        complain("--live needs a display or a terminal; continuing without it");
        l->live = false;
    }
    if (l->live) l->curves = ng_history_new("live");
}

/* Whether the terminal shows the curves, so that nothing else may be written to it. */
static inline bool look_fills_terminal(const look *l) { return l->live && !look_has_window(); }

/* Begins the curves of the next network. */
static inline void look_block(look *l, const char *name)
{
    if (l->curves) ng_history_block(l->curves, name);
}

/* Redraws the curves. A figure that cannot be drawn does not end the training. */
static inline void look_draw(look *l, const char *status)
{
    if (!l->curves || ng_failed() ||
        ng_plot(l->curves, look_has_window() ? NULL : "-", .panels = true, .live = true,
                .title = status) == NG_OK)
        return;
    complain("%s; continuing without --live", ng_error_text());
    ng_clear_error();
    ng_history_free(l->curves);
    l->curves = NULL;
}

static inline void look_end(look *l) { ng_history_free(l->curves), l->curves = NULL; }

/* Draws PREFIX.svg, a panel for each series, and prints where it is. */
static inline void look_plot(ng_history *history, const char *prefix, const char *const *series,
                             const char *x_label)
{
    char path[LONGEST_PREFIX + 100];
    snprintf(path, sizeof path, "%s.svg", prefix);
    if (ng_failed()) return;
    const bool drawn = ng_plot(history, path, .x_label = x_label, .series = series, .band = true,
                               .panels = true) == NG_OK;
    printf("Curves: %s.dat%s%s\n", prefix, drawn ? ", drawn in " : "; ",
           drawn ? path : ng_error_text());
    ng_clear_error();
}

/* Begins to watch a network. Returns its history, or NULL. */
static inline ng_history *look_watch(const look *l, ng_module *net, const char *name)
{
    ng_history *watched = l->watch ? ng_history_new(name) : NULL;
    if (watched) ng_watch(net, watched, -1);
    return watched;
}

/* Logs what a step has done to the network, every tenth time. */
static inline void look_step(ng_history *watched, ng_module *net, int64_t step)
{
    if (watched && step % 10 == 0) ng_watch(net, watched, step);
}

/* Draws PREFIX-NAME-layers.svg. */
static inline void look_draw_layers(ng_history *watched, const char *prefix, const char *name)
{
    char path[LONGEST_PREFIX + 200];
    snprintf(path, sizeof path, "%s-%s-layers.svg", prefix, name);
    if (!watched || ng_failed()) return;
    if (ng_plot_watch(watched, path, .title = name) == NG_OK)
        printf("Layers: %s\n", path);
    else
        complain("%s", ng_error_text()), ng_clear_error();
}

#endif
