/* How every example begins and ends, and where it finds what it reads:
 *
 *     int main(int argc, char **argv)
 *     {
 *         program_without_options(argc, argv, "Learns exclusive or.");
 *         ng_dataset *digits = ng_dataset_read_csv(find_data("digits.csv"));
 *         ...
 *         return program_end(EXIT_SUCCESS);
 *     }
 *
 * Plain C99 and the library. */
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

/* As it was called, and whether a training has ended in no number. */
static const char *program_path = "example";
static volatile sig_atomic_t program_diverged; /* by whichever thread */

static inline const char *program_name(void)
{
    const char *slash = strrchr(program_path, '/');
    return slash ? slash + 1 : program_path;
}

/* "digits: ..." to stderr. */
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

/* The exit status of the program: `status`, but never success where the library has failed, a
 * training has diverged, or what was printed did not arrive. Says why. */
static inline int program_end(int status)
{
    bool failed = program_diverged;
    if (ng_failed()) complain("%s", ng_error_text()), failed = true;
    errno = 0;
    if (fflush(stdout) != 0 || ferror(stdout)) {
        complain("cannot write to standard output: %s",
                 errno ? strerror(errno) : "it failed on the way");
        failed = true;
    }
    return failed && status == EXIT_SUCCESS ? EXIT_FAILED : status;
}

static inline void program_begin(char **argv)
{
    if (argv[0] && *argv[0]) program_path = argv[0];
}

/* Begins a program that has no options but -h and --help, which shows what it does and ends it. */
static inline void program_without_options(int argc, char **argv, const char *what)
{
    program_begin(argv);
    if (argc < 2) return;
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        printf("usage: %s\n\n%s\n", program_name(), what);
        exit(program_end(EXIT_SUCCESS));
    }
    complain("%s: there are no options; --help says what it does", argv[1]);
    exit(EXIT_USAGE);
}

/* Whether a number that training goes by is finite. Where it is not, the training has diverged:
 * says what is no number, and the program will not end in success.
 *     if (!still_trains(loss, "seed %d, epoch %d: the loss", seed, epoch)) break; */
NG_PRINTF(2, 3)
static inline bool still_trains(double number, const char *format, ...)
{
    if (isfinite(number)) return true;
    if (ng_failed()) return false; /* which says more */
    char what[128];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    complain("%s is %g: the training has diverged; a lower rate may help", what,
             isnan(number) ? fabs(number) : number);
    program_diverged = true;
    return false;
}

/* ---- Where things are ---- */

/* Folders with their slashes, to be tried from the first on; "" is the current one. */
typedef struct {
    char folder[12][1024];
    int count;
} places;

static inline void add_place(places *all, const char *base, const char *below)
{
    char *folder = all->folder[all->count];
    const int length = snprintf(folder, sizeof all->folder[0], "%s%s", base, below);
    if (length < (int)sizeof all->folder[0]) all->count++; /* a longer one cannot be opened */
}

/* Where the project's tree, or a prefix of make install, may stand: here, or up to four folders
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

/* $NORMGRAD_DATA where it is set, and then no other; else the project's examples/data, or what make
 * install has put under a prefix. */
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

/* The first of the places that holds a file, and the file's path; NULL where none does. */
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

/* The path of a data file. Where there is none, says where it was looked for and ends the
 * program. */
static inline const char *find_data(const char *name)
{
    static char path[2048];
    const places all = places_of_data();
    if (place_with(&all, name, path, sizeof path)) return path;
    complain("%s is in none of these folders; NORMGRAD_DATA may name the right one:", name);
    for (int i = 0; i < all.count; i++) fprintf(stderr, "    %s\n", all.folder[i]);
    exit(EXIT_FAILED);
}

/* The path of a file or folder of the project's tree, wherever one is; NULL without a tree. */
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
