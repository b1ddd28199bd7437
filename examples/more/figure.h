/* The output files of a program: PREFIX.dat, and PREFIX.svg and PREFIX.png, drawn from it with
 * gnuplot. */
#ifndef EXAMPLES_FIGURE_H
#define EXAMPLES_FIGURE_H

#include "program.h"
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

/* Ends the program if a prefix is so long that a path made from it would be truncated. */
enum { LONGEST_PREFIX = 1000 };
static inline void refuse_long(const char *option, const char *prefix)
{
    if (strlen(prefix) < LONGEST_PREFIX) return;
    complain("--%s %.40s...: expected less than %d characters", option, prefix, LONGEST_PREFIX);
    exit(EXIT_USAGE);
}

/* Sets the prefix: the value of --out, plus `name` if that value ends in a slash. The default is
 * build/NAME, or NAME if there is no folder build/. Only an explicit --out, as in make demo and
 * make plots, replaces the files in plots/. */
static inline void choose_prefix(char *prefix, size_t bytes, const char *out, const char *name)
{
    if (!out) out = access("build", W_OK) == 0 ? "build/" : "./";
    refuse_long("out", out);
    const size_t length = strlen(out);
    const bool folder = length > 0 && out[length - 1] == '/';
    snprintf(prefix, bytes, "%s%s", strcmp(out, "./") == 0 ? "" : out, folder ? name : "");
}

/* Returns whether the folder of a prefix is writable, and reports if not. Called before the
 * work. */
static inline bool can_write(const char *option, const char *prefix)
{
    const char *slash = strrchr(prefix, '/');
    char folder[4096];
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - prefix) + 1 : 1,
             slash ? prefix : ".");
    if (access(folder, W_OK) == 0) return true;
    complain("--%s %s: %s: %s", option, prefix, folder, strerror(errno));
    return false;
}

/* Runs a script of the project on PREFIX.dat; gnuplot finds plots/style.gp from any folder. Returns
 * 0, what gnuplot returned, or -1 if there is no gnuplot or no script. */
static inline int run_script(const char *script, const char *prefix)
{
    extern char **environ;
    char path[4096];
    const char *project = find_in_project("");
    if (!project) return -1;
    snprintf(path, sizeof path, "%s%s", project, script);
    char *const arguments[] = {"gnuplot", "-c", path, (char *)prefix, NULL};
    pid_t process;
    int state;
    setenv("GNUPLOT_LIB", *project ? project : ".", 1);
    setenv("LC_ALL", "C.UTF-8", 1); /* without it "set encoding utf8" gives a warning */
    fflush(stdout);
    if (access(path, R_OK) != 0) return -1;
    if (posix_spawnp(&process, "gnuplot", NULL, NULL, arguments, environ) != 0) return -1;
    return waitpid(process, &state, 0) == process ? state : 1;
}

/* Returns whether `mark` occurs in the last twelve bytes of the file PREFIX + ending. */
static inline bool is_whole(const char *prefix, const char *ending, const char *mark)
{
    enum { LAST = 12 };
    char path[LONGEST_PREFIX + 100], last[LAST];
    bool found = false;
    snprintf(path, sizeof path, "%s%s", prefix, ending);
    FILE *file = fopen(path, "rb");
    const bool read = file && fseek(file, -LAST, SEEK_END) == 0 && fread(last, LAST, 1, file) == 1;
    if (file) fclose(file);
    for (size_t i = 0; read && i + strlen(mark) <= LAST; i++)
        found = found || memcmp(last + i, mark, strlen(mark)) == 0;
    return found;
}

/* Draws the figure if wanted and possible, and prints the names of the files. Returns false if
 * gnuplot failed. It does not report a full disk, so the ends of the files are checked. */
static inline bool draw_figure(const char *script, const char *prefix, bool wanted)
{
    int status = wanted ? run_script(script, prefix) : -1;
    if (status == 0)
        status = !is_whole(prefix, ".svg", "</svg>") || !is_whole(prefix, ".png", "IEND");
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
