/* Runs gnuplot. The commands and the numbers go to its standard input, the figure comes from its
 * standard output. A live figure is in a file, which gnuplot reads again and again. */
#ifndef _DEFAULT_SOURCE
#define _DEFAULT_SOURCE
#endif
#include "plot/plot.h"
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static const char style[] = "set encoding utf8\n"
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
    f->data.function = f->axes.function = f->script.function = f->function;
    if (kind == NO_KIND)
        return ng_fail(
                   NG_EVALUE,
                   "%s: the path is \"%s\", expected one that ends in .svg, .png or .pdf, \"-\" "
                   "for text, or NULL for a window",
                   f->function, f->path),
               false;
    if (f->width < 0 || f->height < 0 || f->width > MOST || f->height > MOST)
        return ng_fail(NG_EVALUE, "%s: a size of %d x %d, expected at most %d", f->function,
                       f->width, f->height, MOST),
               false;
    if (kind == WINDOW && !getenv("DISPLAY") && !getenv("WAYLAND_DISPLAY"))
        return ng_fail(NG_EIO,
                       "%s: there is no display for a window: give the name of a file, or \"-\" "
                       "for text",
                       f->function),
               false;
    return ng_option_idle(f->function, "keep", f->keep && kind >= TEXT,
                          "with the name of a file") &&
           ng_option_idle(f->function, "live", f->live && kind < TEXT, "with \"-\" and NULL");
}

/* ---- The commands --------------------------------------------------------------------------- */

/* A letter of the title is as much larger than others. */
static double title_scale(const ng_figure *f) { return f->as_text ? 1 : 1.3; }

static double title_letters(const ng_figure *f) { return f->width / f->letter / title_scale(f); }

void ng_figure_divide(ng_figure *f)
{
    struct winsize screen = {0};
    f->as_text = kind_of(f->path) == TEXT;
    f->letter = f->as_text ? 1 : 9, f->line = f->as_text ? 1 : 21;
    f->columns = f->panels == 4 ? 2 : f->panels > 6 ? 4 : f->panels > 3 ? 3 : f->panels;
    if (f->as_text &&
        (ioctl(STDOUT_FILENO, TIOCGWINSZ, &screen) != 0 || !screen.ws_col || !screen.ws_row))
        screen = (struct winsize){.ws_col = 80, .ws_row = 25};
    if (f->width == 0)
        f->width = f->as_text ? screen.ws_col - 1 : f->columns == 1 ? 800 : 500 * f->columns;
    if (f->height == 0 && f->as_text) f->height = screen.ws_row - 1;
    int letters;
    for (const char *line = f->title; line && *line; f->title_rows++)
        line += ng_line_bytes(line, title_letters(f), &letters);
}

/* Whether the figure is put together from parts; a window of one part can be zoomed. */
static bool has_parts(const ng_figure *f)
{
    return f->panels > 1 || f->title_rows > 0 || f->key_rows > 0;
}

void ng_figure_place(ng_figure *f, int panel)
{
    const int rows = (f->panels + f->columns - 1) / f->columns, row = panel / f->columns;
    const double room = f->as_text ? 0 : 12;
    const double title = f->title_rows > 0 ? f->title_rows * f->line * title_scale(f) + room : 0;
    const double key = f->key_rows > 0 ? f->key_rows * f->line + room : 0;
    if (f->height == 0) {
        const int each = f->panel_height > 0 ? f->panel_height : rows == 1 ? 440 : 360;
        f->height = rows * each + (int)(title + key);
    }
    if (!has_parts(f)) return;
    if (panel == 0) ng_text_print(&f->script, "set multiplot");
    if (panel == 0 && f->title_rows > 0) {
        ng_text_label(&f->script, " title", f->title, title_letters(f));
        ng_text_print(&f->script, " font ',%d'", kinds[kind_of(f->path)].title);
    }
    if (panel == 0) ng_text_print(&f->script, "\n");
    const double low = key / f->height, each = (1 - title / f->height - low) / rows;
    if (panel == f->panels)
        ng_text_print(&f->script, "set origin 0,0\nset size 1,%.4f\n", low);
    else
        ng_text_print(&f->script, "set origin %.4f,%.4f\nset size %.4f,%.4f\n",
                      panel % f->columns / (double)f->columns, low + (rows - 1 - row) * each,
                      1.0 / f->columns, each);
}

static void set_terminal(ng_text *text, const ng_figure *f)
{
    const figure_kind kind = kind_of(f->path);
    const double unit = kind == PDF ? 0.01 : 1; /* inches */
    if (f->as_text) ng_text_print(text, "unset grid\n");
    if (f->as_text) ng_text_print(text, "set print '-'\n%s", f->live ? "print \"\\033[H\"\n" : "");
    if (kind == WINDOW)
        ng_text_print(text, "windowed = strstrt(GPVAL_TERMINALS, ' qt ') ? 'qt' : "
                            "strstrt(GPVAL_TERMINALS, ' wxt ') ? 'wxt' : 'x11'\n");
    ng_text_print(text, "set terminal %s%s size %g,%g\n", kinds[kind].terminal,
                  f->as_text && isatty(STDOUT_FILENO) ? " ansi" : "", unit * f->width,
                  unit * f->height);
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Adds the numbers, each block for itself: in one for all, gnuplot would look for each from the
 * begin. */
static void add_data_blocks(ng_text *text, const ng_text *data)
{
    const char *block = data->bytes, *end;
    for (int i = 0; block && (end = strstr(block, "\n\n\n")); i++, block = end + 3) {
        ng_text_print(text, "$d%d << END_OF_DATA\n", i);
        ng_text_add(text, block, end + 1 - block);
        ng_text_print(text, "END_OF_DATA\n");
    }
    ng_text_print(text, "data(i) = sprintf('$d%%d', i)\nat(i) = 0\n");
}

/* Adds all commands: with the numbers among them, or in the file of this name. */
static void add_commands(ng_text *text, const ng_figure *f, const char *data)
{
    ng_text_print(text, "reset\n");
    if (data) {
        ng_text_print(text, "data(i) = ");
        ng_text_quote_file(text, base_name(data));
        ng_text_print(text, "\nat(i) = i\n");
    } else {
        add_data_blocks(text, &f->data);
    }
    ng_text_add(text, f->axes.bytes, f->axes.count);
    ng_text_print(text, "%s", style);
    set_terminal(text, f);
    if (data) {
        ng_text_print(text, "set output ");
        ng_text_quote_file(text, base_name(f->path));
        ng_text_print(text, "\n");
    }
    ng_text_add(text, f->script.bytes, f->script.count);
    if (has_parts(f)) ng_text_print(text, "unset multiplot\n");
    if (f->data.failed || f->axes.failed || f->script.failed) text->failed = true;
}

/* ---- A run ---------------------------------------------------------------------------------- */

static const char drawn_mark[] = "normgrad: drawn";

/* Records the last line that gnuplot printed as the error. */
static ng_status gnuplot_failed(const char *function, char *said)
{
    size_t length = said ? strlen(said) : 0;
    while (length > 0 && isspace((unsigned char)said[length - 1])) said[--length] = '\0';
    const char *line = length > 0 ? strrchr(said, '\n') : "\nit was killed, or drew nothing";
    line = line ? line + 1 : said;
    return ng_fail(NG_EIO, "%s: gnuplot: %s", function, line + strspn(line, " \t"));
}

/* Starts a gnuplot that draws the file again and again, until it is the last figure or the program
 * has ended; in a process group, so that Ctrl-C does not end it. */
static ng_status start_gnuplot(const ng_figure *f, ng_gnuplot *g)
{
    char commands[300];
    char *arguments[] = {"gnuplot", "-d", f->path ? "-d" : "-persist", "-e", commands, NULL};
    const int in = open("/dev/null", O_RDONLY | O_CLOEXEC);
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    snprintf(commands, sizeof commands,
             "last = 0; while (!last) { load '%s'; if (!last) { pause 0.5 }; "
             "if (system('kill -0 %ld 2>&- && echo runs') eq '') { last = 1 } }; "
             "system('rm -rf %s')",
             g->path, (long)getpid(), g->folder);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    if (in >= 0) posix_spawn_file_actions_adddup2(&actions, in, 0);
    if (!f->live) posix_spawn_file_actions_adddup2(&actions, fileno(g->out), 1);
    posix_spawn_file_actions_adddup2(&actions, fileno(g->said), 2);
    const int error =
        posix_spawnp(&g->process, "gnuplot", &actions, &attributes, arguments, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    if (in >= 0) close(in);
    if (!error) return NG_OK;
    g->process = 0;
    return ng_fail(NG_EIO, "%s: %s: %s", f->function,
                   error == ENOENT ? "gnuplot is not installed (apt-get install gnuplot-nox)"
                                   : "cannot run gnuplot",
                   strerror(error));
}

static ng_status replace_file(const ng_figure *f, const char *path, const ng_text *text,
                              bool passing)
{
    ng_replacement file;
    if (text->failed) return NG_ENOMEM;
    ng_replacement_begin(&file, f->function, path);
    file.passing = passing;
    ng_replacement_write(&file, text->bytes, text->count);
    return ng_replacement_end(&file);
}

/* Writes the commands to the file that gnuplot reads. */
static ng_status put_figure(const ng_figure *f, ng_gnuplot *g, bool last)
{
    ng_text commands = {.function = f->function};
    add_commands(&commands, f, NULL);
    ng_text_print(&commands,
                  "unset output\nlast = %d\nif (last) { print ''; set print; print '%s' }\n", last,
                  drawn_mark);
    ng_status status = NG_OK;
    if (!g->said) {
        strcpy(g->folder, "/tmp/normgrad-XXXXXX");
        g->said = tmpfile(), g->out = tmpfile();
        if (!mkdtemp(g->folder) || !g->said || !g->out)
            status = ng_fail(NG_EIO, "%s: a temporary file: %s", f->function, strerror(errno));
        snprintf(g->path, sizeof g->path, "%s/figure", g->folder);
    }
    if (status == NG_OK) status = replace_file(f, g->path, &commands, true);
    ng_free(commands.bytes);
    return status;
}

static ng_status read_file(const char *function, FILE *file, ng_text *text)
{
    rewind(file);
    const char *problem = ng_read_to_end(fileno(file), text);
    if (problem) return ng_fail(NG_EIO, "%s: cannot read from gnuplot: %s", function, problem);
    return text->failed ? NG_ENOMEM : NG_OK;
}

ng_status ng_gnuplot_show(ng_gnuplot *g, const ng_figure *f, bool last, ng_text *drawn)
{
    ng_text said = {.function = f->function};
    ng_status status = NG_OK;
    fflush(stdout);
    const bool begins = g->process == 0;
    if (!begins && waitpid(g->process, NULL, WNOHANG) != 0)
        g->process = 0;
    else
        status = put_figure(f, g, last);
    if (status == NG_OK && begins) status = start_gnuplot(f, g);
    if (status == NG_OK && g->process > 0 && !last) return NG_OK;
    if (status != NG_OK && g->process > 0) kill(g->process, SIGTERM);
    while (g->process > 0 && waitpid(g->process, NULL, 0) < 0 && errno == EINTR) {
    }
    /* Where SIGCHLD is ignored, the state of a process is not known. */
    if (status == NG_OK) status = read_file(f->function, g->said, &said);
    if (status == NG_OK && !(said.bytes && strstr(said.bytes, drawn_mark)))
        status = gnuplot_failed(f->function, said.bytes);
    if (status == NG_OK && drawn) status = read_file(f->function, g->out, drawn);
    ng_free(said.bytes);
    if (g->said) fclose(g->said);
    if (g->out) fclose(g->out);
    unlink(g->path), rmdir(g->folder);
    *g = (ng_gnuplot){0};
    return status;
}

/* ---- Draw ----------------------------------------------------------------------------------- */

/* Writes NAME.dat and NAME.gp, which draws the same figure in its folder. */
static ng_status keep_figure(const ng_figure *f)
{
    ng_text script = {.function = f->function};
    char *path = ng_copy_text(f->function, f->path);
    if (!path) return NG_ENOMEM;
    char *ending = path + strlen(path) - 3;
    strcpy(ending, "dat");
    add_commands(&script, f, path);
    ng_status status = replace_file(f, path, &f->data, false);
    strcpy(ending, "gp");
    if (status == NG_OK) status = replace_file(f, path, &script, false);
    ng_free(script.bytes), ng_free(path);
    return status;
}

ng_status ng_figure_draw(const ng_figure *f)
{
    ng_gnuplot gnuplot = {0};
    ng_text drawn = {.function = f->function};
    ng_status status = ng_gnuplot_show(&gnuplot, f, true, &drawn);
    if (status == NG_OK && f->as_text) {
        const size_t size = (size_t)drawn.count;
        if (fwrite(drawn.bytes, 1, size, stdout) != size || fflush(stdout) != 0)
            status = ng_fail(NG_EIO, "%s: cannot write to standard output: %s", f->function,
                             strerror(errno));
    } else if (status == NG_OK && f->path) {
        status = replace_file(f, f->path, &drawn, false);
    }
    if (status == NG_OK && f->keep) status = keep_figure(f);
    ng_free(drawn.bytes);
    return status;
}

void ng_figure_free(ng_figure *f)
{
    ng_free(f->data.bytes), ng_free(f->axes.bytes), ng_free(f->script.bytes);
}
