/* Runs gnuplot: without a shell, without files that have names. The commands and the numbers go to
 * its standard input, the figure comes from its standard output. */
#ifndef _DEFAULT_SOURCE
#define _DEFAULT_SOURCE
#endif
#include "plot/plot.h"
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
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

/* ---- Text ----------------------------------------------------------------------------------- */

void ng_text_quote(ng_text *text, const char *quoted)
{
    ng_text_add(text, "\"", 1);
    for (const char *at = quoted; *at; at++) {
        const unsigned char byte = (unsigned char)*at;
        if (isalnum(byte) || byte > 127 || strchr(" .,:;/_-+=()", byte))
            ng_text_add(text, at, 1);
        else
            ng_text_print(text, "\\%03o", byte);
    }
    ng_text_add(text, "\"", 1);
}

void ng_text_label(ng_text *text, const char *name, const char *label)
{
    ng_text_print(text, "set %s ", name);
    ng_text_quote(text, label);
    ng_text_print(text, " noenhanced\n");
}

void ng_text_tics(ng_text *text, double low, double high, int most)
{
    const double each = high > low ? (high - low) / most : 1, unit = pow(10, floor(log10(each)));
    ng_text_print(text, "set xtics %g\n",
                  unit * (each > 5 * unit   ? 10
                          : each > 2 * unit ? 5
                          : each > unit     ? 2
                                            : 1));
}

/* ---- Kinds of figures ----------------------------------------------------------------------- */

typedef enum { SVG, PNG, PDF, TEXT, WINDOW, NO_KIND } figure_kind;

static const struct {
    const char *ending, *terminal;
} kinds[] = {[SVG] = {".svg", "svg font 'Verdana,14' background '#ffffff'"},
             [PNG] = {".png", "pngcairo font 'DejaVu Sans,10.5' background '#ffffff'"},
             [PDF] = {".pdf", "pdfcairo font 'DejaVu Sans,10'"},
             [TEXT] = {"-", "dumb nofeed"},
             [WINDOW] = {"", "@windowed noraise persist"}};

static figure_kind kind_of(const char *path)
{
    if (!path) return WINDOW;
    if (strcmp(path, "-") == 0) return TEXT;
    const size_t length = strlen(path);
    for (figure_kind kind = SVG; kind <= PDF; kind++)
        if (length > 4 && strcmp(path + length - 4, kinds[kind].ending) == 0) return kind;
    return NO_KIND;
}

bool ng_figure_accepted(const ng_figure *f)
{
    const figure_kind kind = kind_of(f->path);
    enum { MOST = 20000 };
    if (kind == NO_KIND) {
        ng_fail(NG_EVALUE,
                "%s: the path is \"%s\", expected one that ends in .svg, .png or .pdf, \"-\" for "
                "text, or NULL for a window",
                f->function, f->path);
        return false;
    }
    if (f->width < 0 || f->height < 0 || f->width > MOST || f->height > MOST) {
        ng_fail(NG_EVALUE, "%s: a size of %d x %d, expected at most %d", f->function, f->width,
                f->height, MOST);
        return false;
    }
    if (kind == WINDOW && !getenv("DISPLAY") && !getenv("WAYLAND_DISPLAY")) {
        ng_fail(NG_EIO,
                "%s: there is no display for a window: give the name of a file, or \"-\" for text",
                f->function);
        return false;
    }
    return ng_option_idle(f->function, "keep", f->keep && kind >= TEXT,
                          "with the name of a file") &&
           ng_option_idle(f->function, "live", f->live && kind < TEXT, "with \"-\" and NULL");
}

/* ---- The commands --------------------------------------------------------------------------- */

static void set_terminal(ng_text *text, const ng_figure *f)
{
    const int rows = (f->panels + f->columns - 1) / f->columns;
    const figure_kind kind = kind_of(f->path);
    const double unit = kind == PDF ? 0.01 : 1; /* inches */
    int width = f->columns == 1 ? 800 : 500 * f->columns;
    int height = (rows == 1 ? 440 : 360 * rows) + (f->title ? 40 : 0);
    struct winsize screen = {.ws_col = 80, .ws_row = 25};
    if (kind == TEXT) {
        ioctl(STDOUT_FILENO, TIOCGWINSZ, &screen);
        width = screen.ws_col - 1, height = screen.ws_row - 1;
        ng_text_print(text, "unset grid\n");
        if (f->live) ng_text_print(text, "set print '-'\nprint \"\\033[H\"\n");
    } else if (kind == WINDOW) {
        ng_text_print(text, "windowed = strstrt(GPVAL_TERMINALS, ' qt ') ? 'qt' : "
                            "strstrt(GPVAL_TERMINALS, ' wxt ') ? 'wxt' : 'x11'\n");
    }
    if (f->width > 0) width = f->width;
    if (f->height > 0) height = f->height;
    ng_text_print(text, "set terminal %s%s size %g,%g\n", kinds[kind].terminal,
                  kind == TEXT && isatty(STDOUT_FILENO) ? " ansi" : "", unit * width,
                  unit * height);
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Adds all commands: with the numbers among them, or in the file of this name. */
static void add_commands(ng_text *text, const ng_figure *f, const char *data)
{
    ng_text_print(text, "reset\n");
    if (data) {
        ng_text_print(text, "data = ");
        ng_text_quote(text, base_name(data));
    } else {
        ng_text_print(text, "$data << END_OF_DATA\n");
        ng_text_add(text, f->data.bytes, f->data.count);
        ng_text_print(text, "END_OF_DATA\ndata = '$data'");
    }
    ng_text_print(text, "\n%s", style);
    set_terminal(text, f);
    if (data) {
        ng_text_print(text, "set output ");
        ng_text_quote(text, base_name(f->path));
    }
    const bool several = f->panels > 1 || f->title; /* else a window can be zoomed */
    ng_text_print(text, "\n");
    if (several)
        ng_text_print(text, "set multiplot layout %d,%d", (f->panels + f->columns - 1) / f->columns,
                      f->columns);
    if (f->title) {
        ng_text_print(text, " title ");
        ng_text_quote(text, f->title);
        ng_text_print(text, " noenhanced font ',17'");
    }
    ng_text_print(text, "\n");
    ng_text_add(text, f->script.bytes, f->script.count);
    if (several) ng_text_print(text, "unset multiplot\n");
}

/* ---- A run ---------------------------------------------------------------------------------- */

static ng_status system_refuses(const char *function, int error)
{
    if (error == ENOENT)
        return ng_fail(NG_EIO,
                       "%s: gnuplot is not installed: apt-get install gnuplot-nox (in normgrad's "
                       "project: make deps)",
                       function);
    return ng_fail(NG_EIO, "%s: cannot run gnuplot: %s", function, strerror(error));
}

/* Records the last line that gnuplot printed as the error. */
static ng_status gnuplot_failed(const char *function, char *said)
{
    size_t length = said ? strlen(said) : 0;
    while (length > 0 && isspace((unsigned char)said[length - 1])) said[--length] = '\0';
    const char *line = length > 0 ? strrchr(said, '\n') : "\nit was killed, or drew nothing";
    line = line ? line + 1 : said;
    return ng_fail(NG_EIO, "%s: gnuplot: %s", function, line + strspn(line, " \t"));
}

/* Starts gnuplot with a socket as its input, since a pipe without a reader would raise SIGPIPE, and
 * these outputs, -1 for the program's own; in a process group, so that Ctrl-C does not end it. */
static ng_status begin_gnuplot(const ng_figure *f, ng_live *run, int out, int err)
{
    char *arguments[] = {"gnuplot", "-d", f->path ? NULL : "-persist", NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return system_refuses(f->function, errno);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 0);
    if (out >= 0) posix_spawn_file_actions_adddup2(&actions, out, 1);
    if (err >= 0) posix_spawn_file_actions_adddup2(&actions, err, 2);
    const int error =
        posix_spawnp(&run->process, "gnuplot", &actions, &attributes, arguments, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    run->fd = ends[0];
    if (!error) return NG_OK;
    close(ends[0]);
    run->process = 0;
    return system_refuses(f->function, error);
}

/* Returns whether gnuplot has taken all commands. */
static bool send_commands(int fd, const ng_text *commands)
{
    for (int64_t at = 0; at < commands->count;) {
        const ssize_t sent =
            send(fd, commands->bytes + at, (size_t)(commands->count - at), MSG_NOSIGNAL);
        if (sent < 0 && errno != EINTR) return false;
        if (sent > 0) at += sent;
    }
    return true;
}

static ng_status read_file(const char *function, FILE *file, ng_text *text)
{
    rewind(file);
    const char *problem = ng_read_to_end(fileno(file), text);
    if (problem) return ng_fail(NG_EIO, "%s: cannot read from gnuplot: %s", function, problem);
    return text->failed ? NG_ENOMEM : NG_OK;
}

/* Runs gnuplot with these commands and adds what it writes to `drawn`. */
static ng_status run_gnuplot(const ng_figure *f, const ng_text *commands, ng_text *drawn)
{
    ng_text said = {.function = f->function};
    FILE *out = tmpfile(), *err = tmpfile();
    ng_live run;
    int state;
    ng_status status = out && err ? begin_gnuplot(f, &run, fileno(out), fileno(err))
                                  : system_refuses(f->function, errno);
    if (status == NG_OK) {
        send_commands(run.fd, commands); /* if it fails, gnuplot has said why */
        close(run.fd);
        while (waitpid(run.process, &state, 0) < 0 && errno == EINTR) {
        }
        status = read_file(f->function, err, &said);
        if (status == NG_OK) status = read_file(f->function, out, drawn);
        if (status == NG_OK && (state != 0 || (drawn->count == 0 && f->path)))
            status = gnuplot_failed(f->function, said.bytes);
    }
    if (out) fclose(out);
    if (err) fclose(err);
    ng_free(said.bytes);
    return status;
}

/* ---- Live ----------------------------------------------------------------------------------- */

static double live_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

bool ng_live_is_due(const ng_live *live)
{
    return live->process == 0 || live_clock() - live->drawn >= 0.5;
}

static ng_status draw_live(const ng_figure *f, const ng_text *commands)
{
    if (f->live->process == 0) {
        const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC); /* for warnings */
        const ng_status status = begin_gnuplot(f, f->live, -1, nowhere);
        if (nowhere >= 0) close(nowhere);
        if (status != NG_OK) return status;
    }
    fflush(stdout);
    const bool sent = send_commands(f->live->fd, commands);
    f->live->drawn = live_clock();
    if (sent) return NG_OK;
    return ng_fail(NG_EIO, "%s: gnuplot has ended: %s", f->function, strerror(errno));
}

/* ---- Draw ----------------------------------------------------------------------------------- */

static ng_status replace_file(const ng_figure *f, const char *path, const ng_text *text)
{
    ng_replacement file;
    ng_replacement_begin(&file, f->function, path);
    ng_replacement_write(&file, text->bytes, text->count);
    return ng_replacement_end(&file);
}

/* Writes NAME.dat and NAME.gp, which draws the same figure in its folder. */
static ng_status keep_figure(const ng_figure *f)
{
    ng_text script = {.function = f->function};
    char *path = ng_copy_text(f->function, f->path);
    if (!path) return NG_ENOMEM;
    char *ending = path + strlen(path) - 3;
    strcpy(ending, "dat");
    add_commands(&script, f, path);
    ng_status status = script.failed ? NG_ENOMEM : replace_file(f, path, &f->data);
    strcpy(ending, "gp");
    if (status == NG_OK) status = replace_file(f, path, &script);
    ng_free(script.bytes), ng_free(path);
    return status;
}

static ng_status deliver_figure(const ng_figure *f, const ng_text *drawn)
{
    if (!f->path) return NG_OK;
    if (kind_of(f->path) != TEXT) return replace_file(f, f->path, drawn);
    const size_t size = (size_t)drawn->count;
    if (fwrite(drawn->bytes, 1, size, stdout) == size && fflush(stdout) == 0) return NG_OK;
    return ng_fail(NG_EIO, "%s: cannot write to standard output: %s", f->function, strerror(errno));
}

ng_status ng_figure_draw(const ng_figure *f)
{
    ng_text commands = {.function = f->function}, drawn = {.function = f->function};
    add_commands(&commands, f, NULL);
    ng_status status = f->data.failed || f->script.failed || commands.failed ? NG_ENOMEM : NG_OK;
    if (status == NG_OK && f->live) {
        status = draw_live(f, &commands);
    } else if (status == NG_OK) {
        status = run_gnuplot(f, &commands, &drawn);
        if (status == NG_OK) status = deliver_figure(f, &drawn);
        if (status == NG_OK && f->keep) status = keep_figure(f);
    }
    ng_free(commands.bytes), ng_free(drawn.bytes);
    return status;
}
