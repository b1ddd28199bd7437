/* The frame of every example program: errors, exit status, and the search for data files.
 *
 *     int main(int argc, char **argv)
 *     {
 *         program_without_options(argc, argv, "Learns exclusive or.");
 *         ng_dataset *digits = ng_dataset_read_csv(find_data("digits.csv"));
 *         ...
 *         return program_end(EXIT_SUCCESS);
 *     }
 *
 * It needs only C99 and the library. */
#ifndef EXAMPLES_PROGRAM_H
#define EXAMPLES_PROGRAM_H

#include <errno.h>
#include <math.h>
#include <normgrad.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_FAILED = 1, EXIT_USAGE = 2 };

/* The path that the program was called by, and whether a training has diverged. */
static const char *program_path = "example";
static volatile sig_atomic_t program_diverged; /* set by any thread */

static inline const char *program_name(void)
{
    const char *slash = strrchr(program_path, '/');
    return slash ? slash + 1 : program_path;
}

/* Prints "PROGRAM: ..." to stderr. */
NG_PRINTF(1, 2)
static inline void complain(const char *format, ...)
{
    va_list arguments;
    fflush(stdout);
    fprintf(stderr, "%s: ", program_name());
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
}

/* ---- Begin and end ---- */

/* Returns the exit status: `status`, or failure if the library has failed, a training has diverged
 * or standard output could not be written. Prints the reason. */
static inline int program_end(int status)
{
    bool failed = program_diverged;
    if (ng_failed()) complain("%s", ng_error_text()), failed = true;
    errno = 0;
    if (fflush(stdout) != 0 || ferror(stdout)) {
        complain("cannot write to standard output: %s",
                 errno ? strerror(errno) : "an earlier write failed");
        failed = true;
    }
    return failed && status == EXIT_SUCCESS ? EXIT_FAILED : status;
}

static inline void program_begin(char **argv)
{
    if (argv[0] && *argv[0]) program_path = argv[0];
}

/* Begins a program whose only option is -h or --help. `what` says what it does. */
static inline void program_without_options(int argc, char **argv, const char *what)
{
    program_begin(argv);
    if (argc < 2) return;
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        printf("usage: %s\n\n%s\n", program_name(), what);
        exit(program_end(EXIT_SUCCESS));
    }
    complain("%s: this program takes no options; --help describes it", argv[1]);
    exit(EXIT_USAGE);
}

/* Returns whether a loss or gradient is finite. If not, the training has diverged: prints a
 * message, and the exit status will be a failure.
 *     if (!still_trains(loss, "seed %d, epoch %d: the loss", seed, epoch)) break; */
NG_PRINTF(2, 3)
static inline bool still_trains(double number, const char *format, ...)
{
    if (isfinite(number)) return true;
    if (ng_failed()) return false; /* the library's error says more */
    char what[128];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    complain("%s is %g: the training has diverged; try a lower learning rate", what,
             isnan(number) ? fabs(number) : number);
    program_diverged = true;
    return false;
}

/* ---- Paths ---- */

/* Folders, each with its slash, in the order in which they are searched; "" is the current one. */
typedef struct {
    char folder[12][1024];
    int count;
} places;

static inline void add_place(places *all, const char *base, const char *below)
{
    char *folder = all->folder[all->count];
    const int length = snprintf(folder, sizeof all->folder[0], "%s%s", base, below);
    if (length < (int)sizeof all->folder[0]) all->count++; /* a longer path cannot be opened */
}

/* Returns where the project or an installation may be: the current folder, and up to four folders
 * above the program. */
static inline places places_above(void)
{
    places all = {.count = 0};
    const char *slash = strrchr(program_path, '/'), *up = "../../../../";
    add_place(&all, "", "");
    for (int levels = 1; slash && levels <= 4; levels++) {
        char above[1024];
        const int length = snprintf(above, sizeof above, "%.*s%.*s",
                                    (int)(slash + 1 - program_path), program_path, 3 * levels, up);
        if (length < (int)sizeof above) add_place(&all, above, "");
    }
    return all;
}

/* Returns the folders that may contain data: only $NORMGRAD_DATA if it is set, otherwise
 * examples/data of the project and the data folders of installations. */
static inline places places_of_data(void)
{
    places all = {.count = 0};
    const places above = places_above();
    const char *given = getenv("NORMGRAD_DATA"), *home = getenv("HOME");
    if (given && *given) {
        add_place(&all, given, "/");
        return all;
    }
    for (int i = 0; i < above.count; i++) add_place(&all, above.folder[i], "examples/data/");
    if (above.count > 1) add_place(&all, above.folder[1], "share/normgrad/data/");
    if (home && *home) add_place(&all, home, "/.local/share/normgrad/data/");
    add_place(&all, "/usr/local/", "share/normgrad/data/");
    add_place(&all, "/usr/", "share/normgrad/data/");
    return all;
}

/* Returns the path of a file in the first of the folders that has it, or NULL. */
static inline const char *place_with(const places *all, const char *name, char *path, size_t bytes)
{
    for (int i = 0; i < all->count; i++) {
        snprintf(path, bytes, "%s%s", all->folder[i], name);
        FILE *file = fopen(path, "r");
        if (!file) continue;
        fclose(file);
        return all->folder[i];
    }
    return NULL;
}

/* Returns the path of a data file. If no folder has it, lists the folders and ends the program. */
static inline const char *find_data(const char *name)
{
    static char path[2048];
    const places all = places_of_data();
    if (place_with(&all, name, path, sizeof path)) return path;
    complain("%s is in none of these folders; set NORMGRAD_DATA to the one that has it:", name);
    for (int i = 0; i < all.count; i++) fprintf(stderr, "    %s\n", all.folder[i]);
    exit(EXIT_FAILED);
}

/* Returns the path of a file or folder of the project, or NULL outside of it. */
static inline const char *find_in_project(const char *name)
{
    static char path[2048];
    const places all = places_above();
    const char *project = place_with(&all, "examples/data/README.md", path, sizeof path);
    if (!project) return NULL;
    snprintf(path, sizeof path, "%s%s", project, name);
    return path;
}

#endif
