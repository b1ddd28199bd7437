/* The frame of the example programs: errors, exit status, Ctrl-C, and the search for data files.
 *
 *     int main(int argc, char **argv)
 *     {
 *         program_begin(argv);
 *         ng_dataset *digits = ng_dataset_read_csv(find_data("digits.csv"));
 *         ...
 *         return program_end(EXIT_SUCCESS);
 *     } */
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

enum { EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_INTERRUPTED = 130 };

static const char *program_path = "example";   /* that the program was called by */
static volatile sig_atomic_t program_diverged; /* a training has; set by any thread */
static volatile sig_atomic_t interrupted;      /* by Ctrl-C or SIGTERM */

static inline void program_begin(char **argv)
{
    if (argv[0] && *argv[0]) program_path = argv[0];
}

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

/* Returns the exit status: `status`, or failure if the library has failed, a training has diverged
 * or standard output could not be written. Prints the reason. */
static inline int program_end(int status)
{
    bool failed = program_diverged || ng_failed();
    if (ng_failed()) complain("%s", ng_error_text());
    if (fflush(stdout) != 0 || ferror(stdout)) {
        complain("cannot write to standard output");
        failed = true;
    }
    return failed && status == EXIT_SUCCESS ? EXIT_FAILED : status;
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
    complain("%s is %g: the training has diverged; try a lower learning rate", what, number);
    program_diverged = true;
    return false;
}

static inline void on_signal(int signal_number)
{
    (void)signal_number;
    interrupted = 1;
}

/* The first Ctrl-C sets `interrupted`. The second one ends the program at once. */
static inline void catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

/* Returns the path of a file or folder of the project, "examples/data/..." or "plots/...": from the
 * current folder, or from one of the four above the program. NULL if there is none. Valid until the
 * next call. */
static inline const char *find_in_project(const char *name)
{
    static char path[4096];
    const char *slash = strrchr(program_path, '/');
    const int length = slash ? (int)(slash + 1 - program_path) : 0;
    for (int above = 0; above <= 4; above++) {
        snprintf(path, sizeof path, "%.*s%.*s%s", above ? length : 0, program_path,
                 above ? 3 * above : 0, "../../../../", name);
        FILE *file = fopen(path, "r");
        if (file) fclose(file);
        if (file) return path;
    }
    return NULL;
}

/* Returns the path of a data file: in the folder that NORMGRAD_DATA names, or in examples/data of
 * the project. Ends the program if it is not there. */
static inline const char *find_data(const char *name)
{
    static char path[2048];
    const char *folder = getenv("NORMGRAD_DATA");
    const bool given = folder && *folder;
    snprintf(path, sizeof path, "%s/%s", given ? folder : "examples/data", name);
    FILE *file = given ? fopen(path, "r") : NULL;
    if (file) fclose(file);
    const char *found = given ? (file ? path : NULL) : find_in_project(path);
    if (found) return found;
    complain("there is no %s; run the program in the project's folder, or set NORMGRAD_DATA to the "
             "folder that has the file",
             path);
    exit(EXIT_FAILED);
}

#endif
