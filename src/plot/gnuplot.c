/* Runs gnuplot. It loads the commands and the numbers from a file, of a live figure again and
 * again, and writes the figure to its standard output. */
#include "io/json.h"
#include "plot/plot.h"
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef _WIN32
#include "core/windows.h"
#else
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#define NG_GET_GNUPLOT "apt-get install gnuplot-nox"
#define NG_GNUPLOT_COMMANDS                                                                        \
    "last = 0; while (!last) { load '%s'; if (!last) { pause 0.5 }; "                              \
    "if (system('kill -0 %ld 2>&- && echo runs') eq '') { last = 1 } }; system('rm -f %s')"
#endif

extern char **environ;

static const char style[] = "set encoding utf8\n"
                            "set datafile missing '?'\n"
                            "set border 3 lw 1 lc rgb '#333333'\n"
                            "set tics nomirror out scale 0.6 tc rgb '#333333'\n"
                            "set grid back lc rgb '#e3e3e3' lw 1 lt 1\n"
                            "set key outside right top Left reverse noenhanced tc rgb '#333333'\n"
                            "set title tc rgb '#333333'\n"
                            "set xlabel tc rgb '#333333'\n"
                            "set ylabel tc rgb '#333333'\n";

/* ---- Kinds of figures ----------------------------------------------------------------------- */

typedef enum { SVG, PNG, PDF, TEXT, WINDOW, NO_KIND } figure_kind;

static const struct {
    const char *ending, *terminal;
    int title; /* the size of its letters */
} kinds[] = {[SVG] = {".svg", "svg font 'Verdana,14' background '#ffffff'", 17},
             [PNG] = {".png", "pngcairo font 'DejaVu Sans,10.5' background '#ffffff'", 13},
             [PDF] = {".pdf", "pdfcairo font 'DejaVu Sans,10'", 12},
             [TEXT] = {"-", "dumb nofeed", 1},
             [WINDOW] = {"", "@windowed noraise persist", 13}};

static figure_kind kind_of(const char *path)
{
    if (!path) return WINDOW;
    if (strcmp(path, "-") == 0) return TEXT;
    const size_t length = strlen(path);
    for (figure_kind kind = SVG; kind <= PDF; kind++)
        if (length > 4 && strcmp(path + length - 4, kinds[kind].ending) == 0) return kind;
    return NO_KIND;
}

bool ng_figure_begin(ng_figure *f)
{
    const figure_kind kind = kind_of(f->path);
    enum { MOST = 20000 };
    if (kind == NO_KIND)
        return ng_fail(NG_EVALUE,
                       "%s: the path is \"%s\", expected NAME.svg, .png, .pdf, \"-\" or NULL",
                       f->function, f->path),
               false;
    if (f->width < 0 || f->height < 0 || f->width > MOST || f->height > MOST)
        return ng_fail(NG_EVALUE, "%s: a size of %d x %d, expected at most %d", f->function,
                       f->width, f->height, MOST),
               false;
    if (kind == WINDOW && !getenv("DISPLAY") && !getenv("WAYLAND_DISPLAY"))
        return ng_fail(NG_EIO, "%s: no display for a window: give a file, or \"-\" for text",
                       f->function),
               false;
    f->data.function = f->script.function = f->function;
    f->as_text = kind == TEXT;
    f->letter = f->as_text ? 1 : 9, f->line = f->as_text ? 1 : 21;
    f->columns = f->panels == 4 ? 2 : f->panels > 6 ? 4 : f->panels > 3 ? 3 : f->panels;
    if (f->width == 0) f->width = f->as_text ? 79 : f->columns == 1 ? 800 : 500 * f->columns;
    if (f->height == 0 && f->as_text) f->height = 24;
    return ng_option_idle(f->function, "keep", f->keep && kind >= TEXT,
                          "with the name of a file") &&
           ng_option_idle(f->function, "live", f->live && kind < TEXT, "with \"-\" and NULL");
}

/* ---- Texts and axes ------------------------------------------------------------------------- */

/* Adds a text in quotes, as it is: gnuplot reads nothing in it. */
static void quote(ng_text *text, const char *letters)
{
    ng_text_add(text, "\"", 1);
    for (int length; letters && *letters; letters += length > 0 ? length : 1) {
        length = ng_utf8_bytes(letters);
        const bool control = (*letters > 0 && *letters < ' ') || *letters == 127;
        if (length == 0 || (control && *letters != '\n' && *letters != '\t'))
            ng_text_print(text, "\xef\xbf\xbd"); /* U+FFFD */
        else if (control)
            ng_text_print(text, *letters == '\n' ? "\\n" : " ");
        else if (strchr("\"\\`", *letters))
            ng_text_print(text, "\\%c", *letters);
        else
            ng_text_add(text, letters, length);
    }
    ng_text_add(text, "\"", 1);
}

void ng_text_label(ng_text *text, const char *command, const char *label)
{
    ng_text_print(text, "%s ", command);
    quote(text, label);
    ng_text_print(text, " noenhanced");
}

void ng_text_format(ng_text *text, const char *axis, bool log, bool as_text)
{
    const char *format = log ? (as_text ? "1e%T" : "10^{%T}") : (as_text ? "%.10g" : "%.11h");
    ng_text_print(text, "set format %s '%s'\n", axis, format);
}

void ng_text_x_tics(ng_figure *f, double low, double high, bool whole)
{
    const double most = fmax(2, fmin(8, f->width / f->columns / f->letter / 9 - 1));
    const double least = (high - low) / most, unit = pow(10, floor(log10(least)));
    const double multiple = least / unit * (1 - 1e-9);
    const double step = unit * (multiple > 5 ? 10 : multiple > 2 ? 5 : multiple > 1 ? 2 : 1);
    if (step > 1e-9 * fmax(fabs(low), fabs(high)) && step < 1e300)
        ng_text_print(&f->script, "set xtics %.17g\n", fmax(step, whole));
    else
        ng_text_print(&f->script, "set xtics auto\n");
}

/* ---- The commands --------------------------------------------------------------------------- */

void ng_figure_place(ng_figure *f, int panel)
{
    const int rows = (f->panels + f->columns - 1) / f->columns, row = panel / f->columns;
    const double room = f->as_text ? 0 : 12, line = f->as_text ? 1 : 27; /* of the title */
    int lines = f->title != NULL;
    for (const char *at = f->title; at && (at = strchr(at, '\n')); at++) lines++;
    const double title = lines > 0 ? lines * line + room : 0;
    const double key = f->key_rows > 0 ? f->key_rows * f->line + room : 0;
    if (f->height == 0) {
        const int each = f->panel_height > 0 ? f->panel_height : rows == 1 ? 440 : 360;
        f->height = rows * each + (int)(title + key);
    }
    if (panel == 0) ng_text_print(&f->script, "set multiplot");
    if (panel == 0 && f->title) {
        ng_text_label(&f->script, " title", f->title);
        ng_text_print(&f->script, " font ',%d'", kinds[kind_of(f->path)].title);
    }
    const double low = key / f->height, each = (1 - title / f->height - low) / rows;
    if (panel == f->panels)
        ng_text_print(&f->script, "\nset origin 0,0\nset size 1,%.4f\n", low);
    else
        ng_text_print(&f->script, "\nset origin %.4f,%.4f\nset size %.4f,%.4f\n",
                      panel % f->columns / (double)f->columns, low + (rows - 1 - row) * each,
                      1.0 / f->columns, each);
}

/* Adds all commands, and the name of the file that they write, if it is not the standard output:
 * "./" keeps gnuplot from reading a first '|'. */
static void add_commands(ng_text *text, const ng_figure *f, const char *output)
{
    const figure_kind kind = kind_of(f->path);
    const double unit = kind == PDF ? 0.01 : 1; /* inches */
    ng_text_print(text, "reset\n$data << END_OF_DATA\n");
    ng_text_add(text, f->data.bytes, f->data.count);
    ng_text_print(text, "END_OF_DATA\n%s", style);
    if (kind == TEXT)
        ng_text_print(text, "unset grid\nset print '-'\n%s", f->live ? "print \"\\033[H\"\n" : "");
    if (kind == WINDOW)
        ng_text_print(text, "windowed = strstrt(GPVAL_TERMINALS, ' qt ') ? 'qt' : "
                            "strstrt(GPVAL_TERMINALS, ' wxt ') ? 'wxt' : 'x11'\n");
    ng_text_print(text, "set terminal %s%s size %g,%g\n", kinds[kind].terminal,
                  kind == TEXT && isatty(STDOUT_FILENO) ? " ansi" : "", unit * f->width,
                  unit * f->height);
    if (output) {
        ng_text_print(text, "set output './'.");
        quote(text, output);
        ng_text_print(text, "\n");
    }
    ng_text_add(text, f->script.bytes, f->script.count);
    ng_text_print(text, "unset multiplot\n");
    text->failed = text->failed || f->data.failed || f->script.failed;
}

/* ---- A run ---------------------------------------------------------------------------------- */

static const char drawn_mark[] = "normgrad: drawn";

/* Writes the commands to the file that gnuplot reads. */
static ng_status put_figure(const ng_figure *f, ng_gnuplot *g, bool last)
{
    ng_text commands = {.function = f->function};
    if (!g->said) {
        strcpy(g->path, "/tmp/normgrad-XXXXXX");
        const int file = mkstemp(g->path);
        g->said = tmpfile();
        if (file < 0 || !g->said)
            ng_fail(NG_EIO, "%s: a temporary file: %s", f->function, strerror(errno));
        if (file >= 0) close(file);
        if (file < 0 || !g->said) return NG_EIO;
    }
    add_commands(&commands, f, NULL);
    ng_text_print(&commands,
                  "unset output\nlast = %d\nif (last) { print ''; set print; print '%s' }\n", last,
                  drawn_mark);
    return ng_text_save(&commands, g->path);
}

/* Starts a gnuplot that draws the file again and again, until it is the last figure or the program
 * has ended; in a process group, so that Ctrl-C does not end it. */
static ng_status start_gnuplot(const ng_figure *f, ng_gnuplot *g, int out)
{
    char commands[900];
    char *arguments[] = {"gnuplot", "-d", f->path ? "-d" : "-persist", "-e", commands, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    snprintf(commands, sizeof commands, NG_GNUPLOT_COMMANDS, g->path, (long)getpid(), g->path);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    if (out >= 0) posix_spawn_file_actions_adddup2(&actions, out, 1);
    posix_spawn_file_actions_adddup2(&actions, fileno(g->said), 2);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    const int error =
        posix_spawnp(&g->process, "gnuplot", &actions, &attributes, arguments, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    if (!error) return NG_OK;
    g->process = 0;
    return ng_fail(NG_EIO, "%s: %s: %s", f->function,
                   error == ENOENT ? "gnuplot is not installed (" NG_GET_GNUPLOT ")"
                                   : "cannot run gnuplot",
                   strerror(error));
}

/* Whether gnuplot has drawn all: by what it said, since the state of a process is not known where
 * SIGCHLD is ignored. The last line that it printed is the error. */
static ng_status check_drawn(const ng_figure *f, const ng_gnuplot *g)
{
    ng_text said = {.function = f->function};
    rewind(g->said);
    const char *problem = ng_read_to_end(fileno(g->said), &said);
    ng_status status = said.failed ? NG_ENOMEM : NG_OK;
    char *line = said.bytes ? said.bytes : "";
    if (problem) {
        status = ng_fail(NG_EIO, "%s: cannot read from gnuplot: %s", f->function, problem);
    } else if (status == NG_OK && !strstr(line, drawn_mark)) {
        for (char *next; (next = strchr(line, '\n')) && next[strspn(next, " \n")];
             line = next + 1) {
        }
        line += strspn(line, " \t");
        status = ng_fail(NG_EIO, "%s: gnuplot: %.*s", f->function, (int)strcspn(line, "\n"),
                         *line ? line : "it was killed, or drew nothing");
    }
    ng_free(said.bytes);
    return status;
}

ng_status ng_gnuplot_show(ng_gnuplot *g, const ng_figure *f, bool last, int out)
{
    ng_status status = NG_OK;
    fflush(stdout);
    const bool begins = g->process == 0;
    if (!begins && waitpid(g->process, NULL, WNOHANG) != 0)
        g->process = 0;
    else
        status = put_figure(f, g, last);
    if (status == NG_OK && begins) status = start_gnuplot(f, g, out);
    if (status == NG_OK && g->process > 0 && !last) return NG_OK;
    if (status != NG_OK && g->process > 0) kill(g->process, SIGTERM);
    while (g->process > 0 && waitpid(g->process, NULL, 0) < 0 && errno == EINTR) {
    }
    if (status == NG_OK) status = check_drawn(f, g);
    if (g->said) fclose(g->said);
    unlink(g->path);
    *g = (ng_gnuplot){0};
    return status;
}

/* ---- Draw ----------------------------------------------------------------------------------- */

/* Writes NAME.gp, which draws the same figure in its folder. */
static ng_status keep_figure(const ng_figure *f)
{
    const char *slash = strrchr(f->path, '/');
    ng_text script = {.function = f->function}, path = script;
    add_commands(&script, f, slash ? slash + 1 : f->path);
    ng_text_print(&path, "%.*s.gp", (int)strlen(f->path) - 4, f->path);
    script.failed = script.failed || path.failed;
    const ng_status status = ng_text_save(&script, path.failed ? f->path : path.bytes);
    ng_free(path.bytes);
    return status;
}

ng_status ng_figure_draw(const ng_figure *f)
{
    const bool in_file = f->path && !f->as_text;
    ng_gnuplot gnuplot = {0};
    ng_replacement file = {.fd = -1};
    if (in_file) ng_replacement_begin(&file, f->function, f->path);
    if (file.status == NG_OK) file.status = ng_gnuplot_show(&gnuplot, f, true, file.fd);
    if (in_file) ng_replacement_end(&file);
    return file.status == NG_OK && f->keep ? keep_figure(f) : file.status;
}

void ng_figure_free(ng_figure *f) { ng_free(f->data.bytes), ng_free(f->script.bytes); }
