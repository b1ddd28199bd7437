/* How many threads share work: as many as the program says; else OMP_NUM_THREADS; else as many as
 * there are processors for this process. */
#define _GNU_SOURCE /* sched.h: the processors of a thread */
#include "core/threads.h"
#include "core/pool.h"
#include "core/workspace.h"
#include <normgrad/core.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static atomic_int threads; /* 0: not asked yet */

static int least(int a, int b) { return a < b ? a : b; }

/* Those that the process may run on. */
static int processors(void)
{
#ifdef __linux__
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
#endif
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online < 1 ? 1 : online > NG_MOST_THREADS ? NG_MOST_THREADS : (int)online;
}

/* ---- Quotas of control groups --------------------------------------------------------------- */

/* The first number in the file, and the second where `second` is given: how many there are. */
static int read_numbers(const char *folder, const char *name, double *first, double *second)
{
    char path[4096];
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path) return 0;
    FILE *file = fopen(path, "r");
    if (!file) return 0;
    const int count = second ? fscanf(file, "%lf %lf", first, second) : fscanf(file, "%lf", first);
    fclose(file);
    return count;
}

/* The processors' time that one group may use, as a number of processors; `none` where it has no
 * bound. Version 2 says "50000 100000" or "max 100000", version 1 has a file for each, and -1. */
static int quota_of(const char *folder, int none)
{
    double quota = 0, period = 0;
    if (read_numbers(folder, "cpu.max", &quota, &period) != 2 &&
        (read_numbers(folder, "cpu.cfs_quota_us", &quota, NULL) != 1 ||
         read_numbers(folder, "cpu.cfs_period_us", &period, NULL) != 1))
        return none;
    if (!(quota > 0 && period > 0) || quota / period >= none) return none;
    const int whole = (int)(quota / period);
    return whole < quota / period ? whole + 1 : whole;
}

/* The least of a group's quota and those it stands under. A container often sees only the last. */
static int quota_under(const char *root, const char *group, int none)
{
    char path[4096];
    if (snprintf(path, sizeof path, "%s%s", root, group) >= (int)sizeof path) return none;
    for (int quota = none;;) {
        quota = least(quota, quota_of(path, none));
        char *const last = strrchr(path, '/');
        if (!last || last < path + strlen(root)) return quota;
        *last = '\0';
    }
}

/* Whether a list like "cpu,cpuacct" has "cpu". */
static bool has_cpu(char *list)
{
    char *rest = NULL;
    for (char *word = strtok_r(list, ",", &rest); word; word = strtok_r(NULL, ",", &rest))
        if (!strcmp(word, "cpu")) return true;
    return false;
}

int ng_quota(const char *groups, const char *root, int none)
{
    char line[4096], version_1[4096];
    int quota = none;
    FILE *file = fopen(groups, "r");
    if (!file) return none;
    snprintf(version_1, sizeof version_1, "%s/cpu", root);
    while (fgets(line, sizeof line, file)) { /* "4:cpu,cpuacct:/group" or "0::/group" */
        line[strcspn(line, "\n")] = '\0';
        char *const list = strchr(line, ':'), *const group = list ? strchr(list + 1, ':') : NULL;
        if (!group) continue;
        *group = '\0';
        if (list[1] == '\0')
            quota = least(quota, quota_under(root, group + 1, none));
        else if (has_cpu(list + 1))
            quota = least(quota, quota_under(version_1, group + 1, none));
    }
    fclose(file);
    return quota;
}

/* ---- The count ------------------------------------------------------------------------------ */

/* "4", or "4,2" where loops are nested, which ours are not; 0 where it says nothing. */
static int said_by_environment(void)
{
    const char *text = getenv("OMP_NUM_THREADS");
    const long count = text ? strtol(text, NULL, 10) : 0;
    return count < 1 ? 0 : count > NG_MOST_THREADS ? NG_MOST_THREADS : (int)count;
}

static int usual_count(void)
{
    const int said = said_by_environment();
    if (said > 0) return said;
    return ng_quota("/proc/self/cgroup", "/sys/fs/cgroup", least(processors(), NG_MOST_THREADS));
}

int ng_threads(void)
{
    int count = atomic_load_explicit(&threads, memory_order_relaxed);
    if (count > 0) return count;
    count = usual_count();
    int unknown = 0; /* unless somebody has set it meanwhile */
    return atomic_compare_exchange_strong(&threads, &unknown, count) ? count : unknown;
}

void ng_set_threads(int count)
{
    atomic_store(&threads, count > 0 ? least(count, NG_MOST_THREADS) : usual_count());
    ng_pool_stop();
    ng_workspaces_free();
}
