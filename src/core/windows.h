/* What Windows has in place of POSIX, under the names of POSIX, for MinGW-w64. Paths are UTF-8. The
 * few functions of the system are declared here: its own header defines thousands of names. */
#ifndef NG_CORE_WINDOWS_H
#define NG_CORE_WINDOWS_H
#ifdef _WIN32

#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <locale.h>
#include <malloc.h>
#include <process.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <wchar.h>

__declspec(dllimport) int __stdcall MultiByteToWideChar(unsigned, unsigned long, const char *, int,
                                                        wchar_t *, int);
__declspec(dllimport) int __stdcall MoveFileExW(const wchar_t *, const wchar_t *, unsigned long);
__declspec(dllimport) unsigned long __stdcall GetActiveProcessorCount(unsigned short);
__declspec(dllimport) unsigned long __stdcall GetLastError(void);
__declspec(dllimport) unsigned long __stdcall WaitForSingleObject(void *, unsigned long);
__declspec(dllimport) int __stdcall TerminateProcess(void *, unsigned);

/* ---- Memory, processors, locale -------------------------------------------------------------- */

static inline void *ng_windows_allocate(size_t alignment, size_t bytes)
{
    return _aligned_malloc(bytes, alignment);
}
#define aligned_alloc ng_windows_allocate
#define NG_FREE_ALIGNED _aligned_free

#define _SC_NPROCESSORS_ONLN 0
static inline long sysconf(int unused)
{
    (void)unused;
    return (long)GetActiveProcessorCount(0xffff); /* of all groups */
}

/* The locale of this thread: the name of the one that it had. */
typedef char *locale_t;
static inline locale_t ng_windows_locale_begin(void)
{
    _configthreadlocale(_ENABLE_PER_THREAD_LOCALE);
    char *before = strdup(setlocale(LC_ALL, NULL));
    if (before) setlocale(LC_ALL, "C");
    return before;
}
static inline void ng_windows_locale_end(locale_t before)
{
    if (before) setlocale(LC_ALL, before);
    free(before);
}

/* ---- Files ----------------------------------------------------------------------------------- */

#define O_CLOEXEC _O_NOINHERIT
#define AT_FDCWD 0
#define AT_EACCESS 0
enum { NG_WINDOWS_PATH = 4096 };

/* The path in UTF-16; false with ENAMETOOLONG or EILSEQ. */
static inline _Bool ng_windows_path(const char *path, wchar_t wide[NG_WINDOWS_PATH])
{
    const unsigned utf8 = 65001, strictly = 8;
    if (MultiByteToWideChar(utf8, strictly, path, -1, wide, NG_WINDOWS_PATH) > 0) return 1;
    errno = strlen(path) >= NG_WINDOWS_PATH ? ENAMETOOLONG : EILSEQ;
    return 0;
}

static inline int ng_windows_open(const char *path, int flags, int mode)
{
    wchar_t wide[NG_WINDOWS_PATH];
    return ng_windows_path(path, wide)
               ? _wopen(wide, flags | _O_BINARY, mode & (_S_IREAD | _S_IWRITE))
               : -1;
}
#define NG_OPEN(path, flags, mode, ...) ng_windows_open(path, flags, mode)
#define open(...) NG_OPEN(__VA_ARGS__, 0, 0)

static inline int ng_windows_stat(const char *path, struct stat *status)
{
    wchar_t wide[NG_WINDOWS_PATH];
    struct _stat64 found;
    if (!ng_windows_path(path, wide) || _wstat64(wide, &found) != 0) return -1;
    *status = (struct stat){.st_mode = found.st_mode, .st_size = (_off_t)found.st_size};
    return 0;
}
#define stat(path, status) ng_windows_stat(path, status)
#define lstat(path, status) ng_windows_stat(path, status)

static inline int faccessat(int folder, const char *path, int mode, int flags)
{
    wchar_t wide[NG_WINDOWS_PATH];
    (void)folder, (void)flags;
    return ng_windows_path(path, wide) ? _waccess(wide, mode) : -1;
}

#define access(path, mode) faccessat(AT_FDCWD, path, mode, AT_EACCESS)

/* The one right that a file has, to be written, is that of the file which it replaces. */
static inline int fchmod(int fd, unsigned mode)
{
    (void)fd, (void)mode;
    return 0;
}

static inline int ng_windows_unlink(const char *path)
{
    wchar_t wide[NG_WINDOWS_PATH];
    return ng_windows_path(path, wide) ? _wunlink(wide) : -1;
}
#define unlink(path) ng_windows_unlink(path)

/* Takes the place of a file of that name, and is on the disk when it returns. */
static inline int ng_windows_rename(const char *from, const char *to)
{
    wchar_t old[NG_WINDOWS_PATH], new[NG_WINDOWS_PATH];
    const unsigned long replace = 1, write_through = 8;
    if (!ng_windows_path(from, old) || !ng_windows_path(to, new)) return -1;
    if (MoveFileExW(old, new, replace | write_through)) return 0;
    errno = GetLastError() <= 3 ? ENOENT : EACCES; /* no such file, no such folder */
    return -1;
}
#define rename(from, to) ng_windows_rename(from, to)
#define fsync _commit

/* ---- gnuplot --------------------------------------------------------------------------------- */

#define NG_GET_GNUPLOT "www.gnuplot.info; its folder belongs on the path"
#define NG_GNUPLOT_COMMANDS                                                                        \
    "\"last = 0; while (!last) { load '%s'; if (!last) { pause 0.5 }; if (system('tasklist /NH "   \
    "/FI "                                                                                         \
    "\\\"PID eq %ld\\\" | find \\\".exe\\\"') eq '') { last = 1 } }; system('del %s')\""

/* Makes an empty file in the user's folder for such files, and puts its name in `path`. */
static inline int ng_windows_temporary(char path[260])
{
    char *name = _tempnam(NULL, "ng");
    snprintf(path, 260, "%s", name ? name : "");
    free(name);
    return open(path, _O_CREAT | _O_EXCL | _O_RDWR, 0600);
}
#define mkstemp(path) ng_windows_temporary(path)

/* The first one is the file for what gnuplot says, which is deleted when it is closed. */
static inline FILE *ng_windows_file(void)
{
    char path[260];
    const int fd = ng_windows_temporary(path);
    if (fd >= 0) close(fd);
    return fd >= 0 ? fopen(path, "w+bTD") : NULL;
}
#define tmpfile() ng_windows_file()

/* A program with standard streams of its own: a list of three, -1 for this one's. */
typedef int posix_spawn_file_actions_t[3], posix_spawnattr_t;
#define POSIX_SPAWN_SETPGROUP 0
#define posix_spawnattr_init(attributes) (*(attributes) = 0)
#define posix_spawnattr_setflags(attributes, flags) (*(attributes) = (flags))
#define posix_spawnattr_destroy(attributes) (*(attributes) = 0)
#define posix_spawn_file_actions_init(fds) ((*(fds))[1] = (*(fds))[2] = -1)
#define posix_spawn_file_actions_addopen(fds, to, path, flags, mode)                               \
    ((*(fds))[to] = open("NUL", flags))
#define posix_spawn_file_actions_adddup2(fds, from, to) ((*(fds))[to] = (from))
#define posix_spawn_file_actions_destroy(fds) close((*(fds))[0])

static inline int ng_windows_spawn(pid_t *process, const posix_spawn_file_actions_t *fds,
                                   char *const *arguments)
{
    int own[3];
    for (int i = 0; i < 3; i++) own[i] = dup(i), (*fds)[i] < 0 ? 0 : dup2((*fds)[i], i);
    *process = _spawnvp(_P_NOWAIT, arguments[0], (const char *const *)arguments);
    const int error = *process == -1 ? errno : 0;
    for (int i = 0; i < 3; i++) dup2(own[i], i), close(own[i]);
    return error;
}
#define posix_spawnp(process, name, fds, attributes, arguments, environment)                       \
    ng_windows_spawn(process, fds, arguments)

#define WNOHANG 1
static inline pid_t ng_windows_wait(pid_t process, int flags)
{
    return WaitForSingleObject((void *)process, flags == WNOHANG ? 0 : 0xffffffff) ? 0 : process;
}
#define waitpid(process, status, flags) ng_windows_wait(process, flags)
#define kill(process, signal) TerminateProcess((void *)(process), 1)

#endif
#endif
