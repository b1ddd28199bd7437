/* The output files of a program: PREFIX.dat, and PREFIX.svg and PREFIX.png, drawn from it with
 * gnuplot. */
#ifndef EXAMPLES_FIGURE_H
#define EXAMPLES_FIGURE_H

#include "program.h"
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

/* Sets the prefix: the value of --out, plus `name` if that value ends in a slash. The default is
 * build/NAME, or NAME if there is no folder build/. */
static inline void choose_prefix(char *prefix, size_t bytes, const char *out, const char *name)
{
    if (!out) out = access("build", W_OK) == 0 ? "build/" : "./";
    const size_t length = strlen(out);
    const bool folder = length > 0 && out[length - 1] == '/';
    snprintf(prefix, bytes, "%s%s", strcmp(out, "./") == 0 ? "" : out, folder ? name : "");
}

/* Returns whether the folder of a prefix is writable, and reports if not. Called before the
 * work. */
static inline bool can_write(const char *option, const char *prefix)
{
    const char *slash = strrchr(prefix, '/');
    char folder[2048];
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - prefix) + 1 : 1,
             slash ? prefix : ".");
    if (access(folder, W_OK) == 0) return true;
    complain("--%s %s: %s: %s", option, prefix, folder, strerror(errno));
    return false;
}

/* Writes PREFIX.dat and removes figures of older data. */
static inline bool write_dat(const ng_history *history, const char *prefix)
{
    char path[2048];
    snprintf(path, sizeof path, "%s.svg", prefix), remove(path);
    snprintf(path, sizeof path, "%s.png", prefix), remove(path);
    snprintf(path, sizeof path, "%s.dat", prefix);
    return ng_history_write(history, path) == NG_OK;
}

/* Runs a script of the project on PREFIX.dat; gnuplot finds plots/style.gp from any folder. Returns
 * 0, what gnuplot returned, or -1 if there is no gnuplot or no script. */
static inline int run_script(const char *script, const char *prefix)
{
    extern char **environ;
    char project[2048];
    const char *path = find_in_project(script);
    if (!path) return -1;
    char *const arguments[] = {"gnuplot", "-c", (char *)path, (char *)prefix, NULL};
    pid_t process;
    int state;
    snprintf(project, sizeof project, "./%.*s", (int)(strlen(path) - strlen(script)), path);
    setenv("GNUPLOT_LIB", *path == '/' ? project + 2 : project, 1);
    setenv("LC_ALL", "C.UTF-8", 1); /* without it "set encoding utf8" gives a warning */
    fflush(stdout);
    if (posix_spawnp(&process, "gnuplot", NULL, NULL, arguments, environ) != 0) return -1;
    return waitpid(process, &state, 0) == process ? state : 1;
}

/* Returns whether PREFIX.svg is whole: gnuplot does not report a full disk. */
static inline bool is_whole(const char *prefix)
{
    char path[2048], last[13] = "";
    snprintf(path, sizeof path, "%s.svg", prefix);
    FILE *file = fopen(path, "rb");
    const bool read = file && !fseek(file, -12, SEEK_END) && fread(last, 12, 1, file) == 1;
    if (file) fclose(file);
    return read && strstr(last, "</svg>");
}

/* Draws the figure if wanted and possible, and prints the names of the files. Returns false if
 * gnuplot failed. */
static inline bool draw_figure(const char *script, const char *prefix, bool wanted)
{
    int status = wanted ? run_script(script, prefix) : -1;
    if (status == 0) status = !is_whole(prefix);
    if (status < 0)
        printf("Data: %s.dat. To draw it%s: gnuplot -c %s %s\n", prefix,
               wanted ? " (with gnuplot, which make deps installs, in the project's folder)" : "",
               script, prefix);
    else if (status == 0)
        printf("Data: %s.dat, drawn in %s.svg and .png\n", prefix, prefix);
    else
        complain("gnuplot could not draw %s.dat", prefix);
    return status <= 0;
}

#endif
