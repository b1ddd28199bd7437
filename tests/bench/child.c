/* Engines as child processes.
 *
 * Two settings keep an engine that is not asked off the processors that another one is timed on,
 * without taking from any the fast start of a parallel loop that threads give which spin for a
 * while: its threads do spin, but for a millisecond or two (GOMP_SPINCOUNT, KMP_BLOCKTIME,
 * OPENBLAS_THREAD_TIMEOUT), and the driver pauses for longer than that after each answer.
 *
 * PyTorch takes a tensor's memory from malloc each time. So that it gets the same again, as in the
 * loop of any other engine, glibc is told to keep freed memory, which it gives back to the system
 * otherwise. */
#include "bench.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PATIENCE = 600000, PAUSE = 3000000 }; /* milliseconds, nanoseconds */

const char *const bench_engine_name[ENGINES] = {"normgrad", "roof",   "pytorch",
                                                "compiled", "onednn", "kann"};
const char *const bench_engine_title[ENGINES] = {"normgrad", "roof",   "PyTorch",
                                                 "compiled", "oneDNN", "kann"};

static void set_environment(bench_engine engine, int threads)
{
    char count[16];
    snprintf(count, sizeof count, "%d", threads);
    setenv("OMP_NUM_THREADS", count, 1);
    setenv("OPENBLAS_NUM_THREADS", count, 1);
    unsetenv("OMP_WAIT_POLICY");
    setenv("GOMP_SPINCOUNT", "30000", 1);
    setenv("KMP_BLOCKTIME", "1", 1);
    setenv("OPENBLAS_THREAD_TIMEOUT", "20", 1);
    unsetenv("OPENBLAS_CORETYPE"), unsetenv("OPENBLAS_L2_SIZE");
    if (engine != PYTORCH && engine != COMPILED) return;
    setenv("MALLOC_MMAP_MAX_", "0", 1);
    setenv("MALLOC_TRIM_THRESHOLD_", "1000000000000", 1);
    setenv("MALLOC_TOP_PAD_", "67108864", 1);
#ifdef __x86_64__
    /* an OpenBLAS older than the processor does not find its wide registers by itself */
    if (__builtin_cpu_supports("avx512f")) setenv("OPENBLAS_CORETYPE", "SkylakeX", 1);
#endif
}

/* Becomes the engine. */
static void become(bench_engine engine)
{
    char self[4096], neighbour[4200];
    const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length < 0) return;
    self[length] = '\0';
    const char *python = getenv("PYTHON");
    if (!python) python = "/usr/bin/python3";
    switch (engine) {
    case PYTORCH:
    case COMPILED:
        execl(python, python, "tests/bench/engine_torch.py", bench_engine_name[engine],
              (char *)NULL);
        return;
    case ONEDNN:
    case KANN:
        *strrchr(self, '/') = '\0';
        snprintf(neighbour, sizeof neighbour, "%s/engine_%s", self, bench_engine_name[engine]);
        execl(neighbour, neighbour, (char *)NULL);
        return;
    default: execl(self, self, "--engine", bench_engine_name[engine], (char *)NULL);
    }
}

/* Ends with a line, or with nothing from an engine that has died or has been silent too long. */
static const char *answer(bench_child *child)
{
    static char line[256];
    struct pollfd from = {.fd = fileno(child->from), .events = POLLIN};
    int ready;
    do ready = poll(&from, 1, PATIENCE);
    while (ready < 0 && errno == EINTR);
    if (ready < 1 || !fgets(line, sizeof line, child->from)) {
        if (child->name[0])
            fprintf(stderr, "\n%s %s, and is left out from here on\n", child->name,
                    ready == 0 ? "does not answer" : "has ended");
        kill(child->pid, SIGKILL);
        child_stop(child);
        return "";
    }
    line[strcspn(line, "\n")] = '\0';
    return line;
}

bool child_start(bench_child *child, bench_engine engine, int threads)
{
    int to[2], from[2];
    *child = (bench_child){0};
    if (pipe(to) || pipe(from)) return false;
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) {
        dup2(to[0], STDIN_FILENO);
        dup2(from[1], STDOUT_FILENO);
        for (int fd = STDERR_FILENO + 1; fd < 1024; fd++) close(fd);
        set_environment(engine, threads);
        become(engine);
        _exit(EXIT_FAILURE);
    }
    close(to[0]), close(from[1]);
    if (pid < 0) {
        close(to[1]), close(from[0]);
        return false;
    }
    *child = (bench_child){pid, fdopen(to[1], "w"), fdopen(from[0], "r"), ""};
    const char *greeting = answer(child);
    if (strncmp(greeting, "ready ", 6)) {
        char reason[sizeof child->name] = "it is missing";
        if (!strncmp(greeting, "no ", 3)) snprintf(reason, sizeof reason, "%s", greeting + 3);
        child_stop(child);
        memcpy(child->name, reason, sizeof reason);
        return false;
    }
    snprintf(child->name, sizeof child->name, "%s", greeting + 6);
    return true;
}

static void let_threads_sleep(void) { nanosleep(&(struct timespec){.tv_nsec = PAUSE}, NULL); }

const char *child_ask(bench_child *child, const char *format, ...)
{
    if (!child->pid) return "";
    va_list arguments;
    va_start(arguments, format);
    vfprintf(child->to, format, arguments);
    va_end(arguments);
    fputc('\n', child->to);
    fflush(child->to);
    const char *line = answer(child);
    let_threads_sleep();
    return line;
}

void child_stop(bench_child *child)
{
    if (!child->pid) return;
    fclose(child->to);
    fclose(child->from);
    waitpid(child->pid, NULL, 0);
    *child = (bench_child){0};
}
