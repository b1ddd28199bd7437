/* The output files of a program: PREFIX.dat, and PREFIX.svg and PREFIX.png, drawn from it with
 * gnuplot. */
#ifndef EXAMPLES_FIGURE_H
#define EXAMPLES_FIGURE_H

#include "program.h"
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

/* Returns whether gnuplot is installed and the script exists. */
static inline bool can_draw(const char *script)
{
    const char *path = find_in_project(script);
    return path && access(path, R_OK) == 0 && system("command -v gnuplot >/dev/null 2>&1") == 0;
}

/* Writes a text in single quotes for gnuplot. */
static inline void print_quoted(FILE *stream, const char *text)
{
    fputs(" '", stream);
    for (; *text; text++) fputs(*text == '\'' ? "''" : (char[]){*text, '\0'}, stream);
    fputc('\'', stream);
}

/* Calls the script in a gnuplot that finds the project's plots/ from any folder. Returns whether it
 * has worked. */
static inline bool call_script(const char *script, const char *prefix)
{
    const char *project = find_in_project("");
    if (project) setenv("GNUPLOT_LIB", *project ? project : ".", 1);
    fflush(stdout);
    FILE *gnuplot = popen("gnuplot", "w");
    if (!gnuplot) return false;
    fputs("call", gnuplot);
    print_quoted(gnuplot, script);
    print_quoted(gnuplot, prefix);
    fputc('\n', gnuplot);
    return pclose(gnuplot) == 0;
}

/* Returns whether `text` occurs in the last `count` bytes of the file PREFIX + ending. */
static inline bool is_whole(const char *prefix, const char *ending, const char *text, int count)
{
    char path[LONGEST_PREFIX + 100], last[16] = "";
    snprintf(path, sizeof path, "%s%s", prefix, ending);
    FILE *file = fopen(path, "rb");
    if (!file) return false;
    const bool read =
        fseek(file, -count, SEEK_END) == 0 && fread(last, (size_t)count, 1, file) == 1;
    fclose(file);
    const size_t length = strlen(text);
    for (int i = 0; read && i + (int)length <= count; i++)
        if (memcmp(last + i, text, length) == 0) return true;
    return false;
}

/* Draws the figure if wanted and possible, and prints the names of the files. Returns false if
 * gnuplot failed. gnuplot does not report a full disk, so the ends of the files are checked. */
static inline bool draw_figure(const char *script, const char *prefix, bool wanted)
{
    if (!wanted || !can_draw(script)) {
        printf("Data: %s.dat. To draw it%s: gnuplot -c %s %s\n", prefix,
               wanted ? " (with gnuplot, which make deps installs, in the project's folder)" : "",
               script, prefix);
        return true;
    }
    if (call_script(script, prefix) && is_whole(prefix, ".svg", "</svg>", 8) &&
        is_whole(prefix, ".png", "IEND", 12)) {
        printf("Data: %s.dat, drawn in %s.svg and .png\n", prefix, prefix);
        return true;
    }
    complain("gnuplot could not draw %s.dat", prefix);
    return false;
}

#endif
