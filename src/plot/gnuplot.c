/* Runs gnuplot: without a shell, without files of its own. The commands and the numbers go to its
 * standard input, the figure comes from its standard output. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memfd_create */
#endif
#include "plot/plot.h"
#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

/* ---- The style ------------------------------------------------------------------------------
 *
 * Colours of Okabe & Ito, safe for colour-blind readers, and marks for print without colour. */
static const char style[] = "set encoding utf8\n"
                            "set border 3 lw 1 lc rgb '#333333'\n"
                            "set tics nomirror out scale 0.6 tc rgb '#333333'\n"
                            "set grid back lc rgb '#e3e3e3' lw 1 lt 1\n"
                            "set key off\n"
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
    if (!label) return;
    ng_text_print(text, "set %s ", name);
    ng_text_quote(text, label);
    ng_text_print(text, " noenhanced\n");
}

/* ---- Kinds of figures ----------------------------------------------------------------------- */

typedef enum { SVG, PNG, PDF, TEXT, WINDOW, NO_KIND } figure_kind;

static figure_kind kind_of(const char *path)
{
    static const char *const endings[] = {".svg", ".png", ".pdf"};
    if (!path) return WINDOW;
    if (strcmp(path, "-") == 0) return TEXT;
    const size_t length = strlen(path);
    for (int i = 0; i < 3; i++)
        if (length > 4 && strcmp(path + length - 4, endings[i]) == 0) return (figure_kind)i;
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

static struct winsize screen_size(void)
{
    struct winsize size;
    const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20;
    return known ? size : (struct winsize){.ws_col = 80, .ws_row = 25};
}

int ng_figure_width(const ng_figure *f)
{
    const int each = f->columns == 1 ? 800 : f->columns == 2 ? 540 : 480;
    if (f->width > 0) return f->width;
    return kind_of(f->path) == TEXT ? screen_size().ws_col - 1 : each * f->columns;
}

int ng_figure_height(const ng_figure *f)
{
    const int rows = (f->panels + f->columns - 1) / f->columns;
    if (f->height > 0) return f->height;
    return kind_of(f->path) == TEXT ? screen_size().ws_row - 1
                                    : (rows == 1 ? 440 : 360) * rows + (f->title ? 40 : 0);
}

static void set_terminal(ng_text *text, const ng_figure *f)
{
    const int width = ng_figure_width(f), height = ng_figure_height(f);
    switch (kind_of(f->path)) {
    case SVG:
        ng_text_print(text, "set terminal svg size %d,%d font 'Verdana,14' background '#ffffff'\n",
                      width, height);
        break;
    case PNG:
        ng_text_print(text,
                      "set terminal pngcairo size %d,%d font 'DejaVu Sans,10.5' background "
                      "'#ffffff'\n",
                      width, height);
        break;
    case PDF:
        ng_text_print(text, "set terminal pdfcairo size %gin,%gin font 'DejaVu Sans,10'\n",
                      width / 100.0, height / 100.0);
        break;
    case TEXT:
        ng_text_print(text, "unset grid\nset terminal dumb %s nofeed size %d,%d\n",
                      isatty(STDOUT_FILENO) ? "ansi" : "mono", width, height);
        if (f->live) ng_text_print(text, "set print '-'\nprint \"\\033[H\"\n");
        break;
    default:
        ng_text_print(text,
                      "windowed = strstrt(GPVAL_TERMINALS, ' qt ') ? 'qt' : "
                      "strstrt(GPVAL_TERMINALS, ' wxt ') ? 'wxt' : 'x11'\n"
                      "set terminal @windowed size %d,%d noraise persist\n",
                      width, height);
    }
}

/* The commands that draw the figure. */
static void add_drawing(ng_text *text, const ng_figure *f)
{
    if (f->panels > 1 || f->title) {
        ng_text_print(text, "set multiplot layout %d,%d", (f->panels + f->columns - 1) / f->columns,
                      f->columns);
        if (f->title) ng_text_print(text, " title "), ng_text_quote(text, f->title);
        ng_text_print(text, "%s\n", f->title ? " noenhanced font ',17'" : "");
    }
    ng_text_add(text, f->script.bytes, f->script.count);
    if (f->panels > 1 || f->title) ng_text_print(text, "unset multiplot\n");
}

static void add_inline(ng_text *text, const ng_figure *f)
{
    ng_text_print(text, "reset\n$data << END_OF_DATA\n");
    ng_text_add(text, f->data.bytes, f->data.count);
    ng_text_print(text, "END_OF_DATA\ndata = '$data'\n");
    ng_text_print(text, "%s", style);
    set_terminal(text, f);
    add_drawing(text, f);
}

/* ---- One run -------------------------------------------------------------------------------- */

static ng_status system_refuses(const char *function, int error)
{
    if (error == ENOENT)
        return ng_fail(NG_EIO,
                       "%s: gnuplot is not installed: apt-get install gnuplot-nox (in normgrad's "
                       "project: make deps)",
                       function);
    return ng_fail(NG_EIO, "%s: cannot run gnuplot: %s", function, strerror(error));
}

/* Starts gnuplot on these descriptors, -1 for the program's own; in a process group of its own, so
 * that Ctrl-C does not end it. Returns 0 or the system's error. */
static int start_gnuplot(const int fd[3], bool persist, pid_t *process)
{
    char *arguments[] = {"gnuplot", "-d", persist ? "-persist" : NULL, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    for (int i = 0; i < 3; i++)
        if (fd[i] >= 0) posix_spawn_file_actions_adddup2(&actions, fd[i], i);
    const int error = posix_spawnp(process, "gnuplot", &actions, &attributes, arguments, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

/* Records the last line that gnuplot printed as the error. */
static ng_status gnuplot_failed(const char *function, const ng_text *said)
{
    const char *text = said->bytes ? said->bytes : "";
    size_t end = strlen(text);
    while (end > 0 && isspace((unsigned char)text[end - 1])) end--;
    size_t begin = end;
    while (begin > 0 && text[begin - 1] != '\n') begin--;
    while (begin < end && isspace((unsigned char)text[begin])) begin++;
    return ng_fail(NG_EIO, "%s: gnuplot: %.*s", function, end > begin ? (int)(end - begin) : 16,
                   end > begin ? text + begin : "it drew nothing");
}

/* Writes a text to a file in memory and goes back to its beginning; false if the system refuses. */
static bool fill_file(int fd, const ng_text *text)
{
    for (int64_t at = 0; at < text->count;) {
        const ssize_t written = write(fd, text->bytes + at, (size_t)(text->count - at));
        if (written < 0 && errno != EINTR) return false;
        if (written > 0) at += written;
    }
    return lseek(fd, 0, SEEK_SET) == 0;
}

/* Runs gnuplot with these commands and adds what it writes to `out`. */
static ng_status run_gnuplot(const char *function, const ng_text *commands, bool window,
                             ng_text *out)
{
    ng_text said = {.function = function};
    int fd[3], state = 0, error = 0;
    pid_t process;
    for (int i = 0; i < 3; i++)
        if ((fd[i] = memfd_create("gnuplot", MFD_CLOEXEC)) < 0) error = errno;
    if (!error && !fill_file(fd[0], commands)) error = errno;
    if (!error) error = start_gnuplot(fd, window, &process);
    ng_status status = error ? system_refuses(function, error) : NG_OK;
    while (!error && waitpid(process, &state, 0) < 0 && errno == EINTR) {
    }
    for (int i = 1; i < 3 && status == NG_OK; i++) {
        ng_text *text = i == 1 ? out : &said;
        const char *problem =
            lseek(fd[i], 0, SEEK_SET) == 0 ? ng_read_to_end(fd[i], text) : strerror(errno);
        if (problem)
            status = ng_fail(NG_EIO, "%s: cannot read from gnuplot: %s", function, problem);
        if (text->failed) status = NG_ENOMEM;
    }
    if (status == NG_OK && (state != 0 || (out->count == 0 && !window)))
        status = gnuplot_failed(function, &said);
    for (int i = 0; i < 3; i++)
        if (fd[i] >= 0) close(fd[i]);
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

/* A socket, because writing to a pipe without a reader would raise SIGPIPE. */
static ng_status begin_live(const ng_figure *f)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return system_refuses(f->function, errno);
    const int fd[3] = {ends[1], -1, -1};
    const int error = start_gnuplot(fd, false, &f->live->process);
    close(ends[1]);
    f->live->fd = ends[0];
    if (!error) return NG_OK;
    close(ends[0]);
    f->live->process = 0;
    return system_refuses(f->function, error);
}

/* Returns whether gnuplot has not read all of the last figure yet. */
static bool still_draws(int fd)
{
    int left = 0;
#ifdef TIOCOUTQ
    if (ioctl(fd, TIOCOUTQ, &left) != 0) left = 0;
#endif
    return left > 0;
}

static ng_status draw_live(const ng_figure *f, const ng_text *commands)
{
    if (f->live->process == 0 && begin_live(f) != NG_OK) return ng_newest_status();
    if (still_draws(f->live->fd)) return NG_OK;
    fflush(stdout);
    for (int64_t at = 0; at < commands->count;) {
        const ssize_t sent =
            send(f->live->fd, commands->bytes + at, (size_t)(commands->count - at), MSG_NOSIGNAL);
        if (sent < 0 && errno != EINTR)
            return ng_fail(NG_EIO, "%s: gnuplot has ended: %s", f->function, strerror(errno));
        if (sent > 0) at += sent;
    }
    return NG_OK;
}

bool ng_live_is_due(ng_live *live)
{
    const double now = live_clock();
    if (live->drawn > 0 && now - live->drawn < 0.5) return false;
    live->drawn = now;
    return true;
}

/* ---- Draw ----------------------------------------------------------------------------------- */

/* The path with another ending, "dat" or "gp". */
static char *beside(const ng_figure *f, const char *ending)
{
    char *path = ng_copy_text(f->function, f->path);
    if (path) strcpy(path + strlen(path) - 3, ending);
    return path;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Writes NAME.dat and NAME.gp. The script finds the data in its own directory. */
static ng_status keep_figure(ng_figure *f)
{
    char *data = beside(f, "dat"), *script = beside(f, "gp");
    ng_text text = {.function = f->function};
    ng_status status = data && script ? NG_OK : NG_ENOMEM;
    if (status == NG_OK) {
        ng_text_print(&text,
                      "# Draws the figure from the .dat file: gnuplot NAME.gp\n"
                      "folder = ARG0[1:strlen(ARG0) - %zu]\ndata = folder . ",
                      strlen(base_name(script)));
        ng_text_quote(&text, base_name(data));
        ng_text_print(&text, "\n%s", style);
        set_terminal(&text, f);
        ng_text_print(&text, "set output folder . ");
        ng_text_quote(&text, base_name(f->path));
        ng_text_print(&text, "\n");
        add_drawing(&text, f);
        ng_text_print(&text, "unset output\n");
        ng_replacement file;
        ng_replacement_begin(&file, f->function, data);
        ng_replacement_write(&file, f->data.bytes, f->data.count);
        status = ng_replacement_end(&file);
    }
    if (status == NG_OK)
        status = ng_text_save(&text, script);
    else
        ng_free(text.bytes);
    ng_free(data), ng_free(script);
    return status;
}

static ng_status deliver_figure(const ng_figure *f, const ng_text *drawn)
{
    if (!f->path) return NG_OK;
    if (kind_of(f->path) == TEXT) {
        const size_t size = (size_t)drawn->count;
        if (fwrite(drawn->bytes, 1, size, stdout) == size && fflush(stdout) == 0) return NG_OK;
        return ng_fail(NG_EIO, "%s: cannot write to standard output: %s", f->function,
                       strerror(errno));
    }
    ng_replacement file;
    ng_replacement_begin(&file, f->function, f->path);
    ng_replacement_write(&file, drawn->bytes, drawn->count);
    return ng_replacement_end(&file);
}

ng_status ng_figure_draw(ng_figure *f)
{
    ng_text commands = {.function = f->function}, drawn = {.function = f->function};
    ng_status status = f->data.failed || f->script.failed ? NG_ENOMEM : NG_OK;
    if (status == NG_OK) {
        add_inline(&commands, f);
        if (commands.failed) status = NG_ENOMEM;
    }
    if (status == NG_OK && f->live) {
        status = draw_live(f, &commands);
    } else if (status == NG_OK) {
        status = run_gnuplot(f->function, &commands, !f->path, &drawn);
        if (status == NG_OK) status = deliver_figure(f, &drawn);
        if (status == NG_OK && f->keep) status = keep_figure(f);
    }
    ng_free(commands.bytes), ng_free(drawn.bytes);
    ng_free(f->data.bytes), ng_free(f->script.bytes);
    return status;
}
