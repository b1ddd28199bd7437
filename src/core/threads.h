/* Behind ng_threads. */
#ifndef NG_CORE_THREADS_H
#define NG_CORE_THREADS_H

/* The processors that the quotas of this process's control groups amount to, rounded up, or `none`
 * where that is less. `groups` is a file like /proc/self/cgroup, `root` where the groups' folders
 * stand. */
int ng_quota(const char *groups, const char *root, int none);

#endif
