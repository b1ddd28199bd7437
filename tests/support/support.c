#include "support.h"
#include "core/alloc.h"
#include "core/arena.h"
#include "core/pool.h"
#include "folder.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <locale.h>
#include <malloc.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

/* ---- Processes ---------------------------------------------------------------------------- */

static pid_t of_test; /* 0 until it begins */

static bool is_child(void) { return of_test && getpid() != of_test; }

/* The places told last. In a loop they come again and again, and each telling is a write. */
static _Thread_local struct {
    const char *file;
    int line;
} marked[8];

void mark_asserted(const char *file, int line)
{
    static _Thread_local unsigned next;
    for (int i = 0; i < 8; i++)
        if (marked[i].line == line && marked[i].file == file) return;
    marked[next % 8].file = file;
    marked[next++ % 8].line = line;
    if (!is_child()) (_mark_point)(file, line);
}

void fail_asserted(const char *file, int line, const char *what, const char *format, ...)
{
    char text[4000]; /* Check ends the whole run where it is told more than 4096 bytes */
    va_list arguments;
    va_start(arguments, format);
    if (format) vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (!is_child() && !getenv("STOP_AT_FAILURE"))
        (_ck_assert_failed)(file, line, what, format ? "%s" : NULL, text);
    fprintf(stderr, "%s:%d: %s%s\n", file, line, is_child() ? "in a child: " : "",
            format ? text : what);
    fflush(stderr);
    _exit(EXIT_FAILURE);
}

NG_PRINTF(3, 4)
static void fail_at(const char *file, int line, const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    _ck_assert_failed(file, line, "assertion failed", "%s", text);
}

/* ---- Numbers ------------------------------------------------------------------------------ */

/* An infinity is within no bound but of itself; a bound that rests on one bounds nothing. */
static bool within(double actual, double expected, double bound)
{
    return actual == expected || (isfinite(bound) && fabs(actual - expected) <= bound);
}

void expect_close(const char *file, int line, const char *what, double actual, double expected,
                  double relative)
{
    _mark_point(file, line);
    if (within(actual, expected, relative * fmax(1e-300, fabs(expected)))) return;
    fail_at(file, line, "%s is %.17g, expected %.17g: relative error %.3g, allowed %.3g", what,
            actual, expected, fabs(actual - expected) / fabs(expected), relative);
}

void expect_near(const char *file, int line, const char *what, double actual, double expected,
                 double absolute)
{
    _mark_point(file, line);
    if (within(actual, expected, absolute)) return;
    fail_at(file, line, "%s is %.17g, expected %.17g: error %.3g, allowed %.3g", what, actual,
            expected, fabs(actual - expected), absolute);
}

void expect_values(const char *file, int line, const char *what, const ng_tensor *x,
                   double relative, const double *expected, int64_t count)
{
    _mark_point(file, line);
    if (!x) fail_at(file, line, "%s is NULL: %s", what, ng_error_text());
    if (ng_size(x) != count)
        fail_at(file, line, "%s has %lld elements, expected %lld", what, (long long)ng_size(x),
                (long long)count);
    for (int64_t i = 0; i < count; i++) {
        double actual = ng_get(x, i);
        if (within(actual, expected[i], relative * fmax(1e-300, fabs(expected[i])))) continue;
        fail_at(file, line, "%s[%lld] is %.17g, expected %.17g: relative error %.3g, allowed %.3g",
                what, (long long)i, actual, expected[i],
                fabs(actual - expected[i]) / fabs(expected[i]), relative);
    }
}

static void shape_text(const ng_tensor *x, char *text, size_t bytes)
{
    int length = snprintf(text, bytes, "%s (", ng_dtype_name(ng_dtype_of(x)));
    for (int axis = 0; axis < ng_rank(x); axis++)
        length += snprintf(text + length, bytes - (size_t)length, axis ? ", %lld" : "%lld",
                           (long long)ng_dim(x, axis));
    snprintf(text + length, bytes - (size_t)length, ")");
}

static void expect_same_shape(const char *file, int line, const char *what, const ng_tensor *a,
                              const ng_tensor *b)
{
    _mark_point(file, line);
    if (!a || !b)
        fail_at(file, line, "%s: the %s is NULL: %s", what, a ? "second" : "first",
                ng_error_text());
    bool same = ng_rank(a) == ng_rank(b);
    for (int axis = 0; same && axis < ng_rank(a); axis++) same = ng_dim(a, axis) == ng_dim(b, axis);
    if (same) return;
    char left[256], right[256];
    shape_text(a, left, sizeof left);
    shape_text(b, right, sizeof right);
    fail_at(file, line, "%s: %s is not %s", what, left, right);
}

/* Of those that are finite. */
static double largest(const ng_tensor *x)
{
    double result = 0;
    for (int64_t i = 0; i < ng_size(x); i++)
        if (isfinite(ng_get(x, i))) result = fmax(result, fabs(ng_get(x, i)));
    return result;
}

void expect_tensors_close(const char *file, int line, const char *what, const ng_tensor *a,
                          const ng_tensor *b, double relative)
{
    expect_same_shape(file, line, what, a, b);
    double floor = fmax(1e-300, 1e-3 * fmax(largest(a), largest(b)));
    for (int64_t i = 0; i < ng_size(a); i++) {
        double left = ng_get(a, i), right = ng_get(b, i);
        double scale = fmax(floor, fmax(fabs(left), fabs(right)));
        if (within(left, right, relative * scale)) continue;
        fail_at(file, line, "%s differ at %lld: %.17g and %.17g: relative error %.3g, allowed %.3g",
                what, (long long)i, left, right, fabs(left - right) / scale, relative);
    }
}

static const void *bytes_of(const ng_tensor *x)
{
    switch (ng_dtype_of(x)) {
    case NG_F32: return ng_data_f32(x);
    case NG_F64: return ng_data_f64(x);
    default: return ng_data_i64(x);
    }
}

void expect_same_bits(const char *file, int line, const char *what, const ng_tensor *a,
                      const ng_tensor *b)
{
    expect_same_shape(file, line, what, a, b);
    if (ng_dtype_of(a) != ng_dtype_of(b))
        fail_at(file, line, "%s: %s and %s", what, ng_dtype_name(ng_dtype_of(a)),
                ng_dtype_name(ng_dtype_of(b)));
    size_t size = ng_dtype_bytes(ng_dtype_of(a));
    const char *left = bytes_of(a), *right = bytes_of(b);
    for (int64_t i = 0; i < ng_size(a); i++) {
        if (memcmp(left + (size_t)i * size, right + (size_t)i * size, size) == 0) continue;
        fail_at(file, line, "%s have other bits at %lld: %.17g and %.17g", what, (long long)i,
                ng_get(a, i), ng_get(b, i));
    }
}

/* A locale of numbers alone in the test's folder, where there is a program that makes one. */
static bool make_commas(void)
{
    const char *source =
        put_text("commas.txt", "LC_NUMERIC\ndecimal_point \",\"\nthousands_sep \"\"\n"
                               "grouping -1\nEND LC_NUMERIC\n");
    char command[1024];
    snprintf(command, sizeof command, "localedef -c -i '%s' -f ANSI_X3.4-1968 '%s' >/dev/null 2>&1",
             source, in_folder("commas"));
    const int made = system(command); /* it warns of what is not there */
    setenv("LOCPATH", in_folder(""), 1);
    return made != -1 && setlocale(LC_NUMERIC, "commas");
}

bool write_commas(void)
{
    static const char *const commas[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE.utf8", "de_DE"};
    for (size_t i = 0; i < 4; i++)
        if (setlocale(LC_NUMERIC, commas[i])) return true;
    return make_commas();
}

/* ---- Errors ------------------------------------------------------------------------------- */

void expect_ok(const char *file, int line, const char *what, bool ok)
{
    _mark_point(file, line);
    if (ok) return;
    fail_at(file, line, "%s: %s", what, ng_failed() ? ng_error_text() : "no error is recorded");
}

void expect_error(const char *file, int line, ng_status status, const char *part)
{
    _mark_point(file, line);
    if (ng_error_status() != status)
        fail_at(file, line, "the last status is %s (\"%s\"), expected %s",
                ng_status_name(ng_error_status()), ng_error_text(), ng_status_name(status));
    if (!strstr(ng_error_text(), part))
        fail_at(file, line, "\"%s\" does not contain \"%s\"", ng_error_text(), part);
    ng_clear_error();
}

ng_status status_returned(ng_status status) { return status; }
ng_status status_of_null(const void *result) { return result ? NG_OK : ng_error_status(); }

/* The name of the first of the library's functions in the text of a call. */
static const char *name_called(const char *call, char name[64])
{
    const char *from = strstr(call, "ng_");
    const size_t length = from ? strspn(from, "abcdefghijklmnopqrstuvwxyz_0123456789") : 0;
    snprintf(name, 64, "%.*s", (int)length, from ? from : "");
    return name;
}

void expect_fails(const char *file, int line, const char *what, ng_status returned,
                  failure expected)
{
    char name[64];
    const char *part = expected.part ? expected.part : name_called(what, name);
    _mark_point(file, line);
    if (!*part) fail_at(file, line, "%s: the name that its error contains is not given", what);
    if (returned == NG_OK) fail_at(file, line, "%s does not fail", what);
    if (returned != expected.status)
        fail_at(file, line, "%s fails with %s, expected %s: %s", what, ng_status_name(returned),
                ng_status_name(expected.status), ng_error_text());
    expect_error(file, line, expected.status, part);
}

/* ---- Memory: in place of the library's functions (core/alloc.h) ---------------------------- */

static _Atomic int64_t made, live, live_bytes, peak_bytes, allowed = INT64_MAX, to_refuse;
static _Atomic bool refused;

int64_t allocations_made(void) { return made; }
int64_t allocations_live(void) { return live; }

int64_t allocations_peak(void)
{
    const int64_t peak = peak_bytes;
    peak_bytes = (int64_t)live_bytes;
    return peak;
}

static void count_bytes(int64_t bytes)
{
    const int64_t now = atomic_fetch_add(&live_bytes, bytes) + bytes;
    for (int64_t peak = peak_bytes; now > peak;)
        if (atomic_compare_exchange_weak(&peak_bytes, &peak, now)) break;
}

void expect_none_allocated(const char *file, int line, int64_t since)
{
#ifdef NG_ARENA_FORGETS
    (void)file, (void)line, (void)since;
#else
    _mark_point(file, line);
    if (made != since)
        fail_at(file, line, "%lld allocations, expected none", (long long)(made - since));
#endif
}

static void refuse_after(int64_t count, int64_t times)
{
    refused = false;
    to_refuse = times;
    allowed = count;
}

void allocations_fail_after(int64_t count) { refuse_after(count, INT64_MAX); }
void allocations_fail_once_after(int64_t count) { refuse_after(count, 1); }
void allocations_fail_twice_after(int64_t count) { refuse_after(count, 2); }
void allocations_succeed(void) { refuse_after(INT64_MAX, 0); }
bool allocations_refused(void) { return refused; }

int64_t next_to_refuse(int64_t n)
{
#ifdef NG_ARENA_FORGETS
    return n + 1 + n / 32;
#else
    return n + 1;
#endif
}

static bool granted(void)
{
    if (allowed == INT64_MAX) return true;
    if (allowed-- > 0) return true;
    allowed = --to_refuse > 0 ? 0 : INT64_MAX;
    refused = true;
    return false;
}

static void *counted_allocate(size_t alignment, size_t bytes)
{
    void *memory = granted() ? aligned_alloc(alignment, bytes) : NULL;
    if (!memory) return NULL;
    made++;
    live++;
    count_bytes((int64_t)malloc_usable_size(memory));
    return memory;
}

static void counted_free(void *memory)
{
    if (memory) live--;
    if (memory) count_bytes(-(int64_t)malloc_usable_size(memory));
    free(memory);
}

/* ---- Files and threads: the linker sends calls of NAME to __wrap_NAME (tests.mk) ------------- */

static int64_t file_calls_allowed = INT64_MAX;
static int file_call_error;
static bool in_pieces, interrupt_next, file_refused;

void file_calls_fail_once_after(int64_t count, int error)
{
    file_calls_allowed = count;
    file_call_error = error;
    file_refused = in_pieces = false;
}

void file_calls_succeed(void) { file_calls_fail_once_after(INT64_MAX, 0); }
bool file_call_refused(void) { return file_refused; }

void file_calls_come_in_pieces(void)
{
    file_calls_succeed();
    in_pieces = interrupt_next = true;
}

/* Whether this call is the one to fail. */
static bool refuse_file_call(void)
{
    if (file_calls_allowed == INT64_MAX || file_calls_allowed-- > 0) return false;
    file_calls_allowed = INT64_MAX;
    file_refused = true;
    errno = file_call_error;
    return true;
}

static bool interrupt(void)
{
    if (!in_pieces) return false;
    interrupt_next = !interrupt_next;
    if (!interrupt_next) errno = EINTR;
    return !interrupt_next;
}

static size_t piece_of(size_t bytes) { return in_pieces && bytes > 7 ? 7 : bytes; }

#define WRAPPED(result, name, ...)                                                                 \
    result __real_##name(__VA_ARGS__);                                                             \
    result __wrap_##name(__VA_ARGS__);                                                             \
    result __wrap_##name(__VA_ARGS__)

WRAPPED(int, open, const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    const mode_t mode = flags & O_CREAT ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    return refuse_file_call() ? -1 : __real_open(path, flags, mode);
}

/* A close that fails has closed; where nothing was written it has nothing to fail at. */
WRAPPED(int, close, int fd)
{
    const bool written = (fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDONLY;
    const bool refused_here = written && refuse_file_call();
    const int error = errno, result = __real_close(fd);
    if (refused_here) errno = error;
    return refused_here ? -1 : result;
}

WRAPPED(ssize_t, read, int fd, void *bytes, size_t count)
{
    return refuse_file_call() || interrupt() ? -1 : __real_read(fd, bytes, piece_of(count));
}

WRAPPED(ssize_t, write, int fd, const void *bytes, size_t count)
{
    return refuse_file_call() || interrupt() ? -1 : __real_write(fd, bytes, piece_of(count));
}

WRAPPED(int, fsync, int fd) { return refuse_file_call() ? -1 : __real_fsync(fd); }

WRAPPED(int, rename, const char *from, const char *to)
{
    return refuse_file_call() ? -1 : __real_rename(from, to);
}

void sleep_for(double seconds)
{
    const time_t whole = (time_t)seconds;
    nanosleep(&(struct timespec){whole, (long)(1e9 * (seconds - (double)whole))}, NULL);
}

static atomic_int threads_allowed = INT_MAX;

void threads_fail_after(int count) { threads_allowed = count; }

WRAPPED(int, pthread_create, pthread_t *thread, const pthread_attr_t *attributes,
        void *(*begin)(void *), void *argument)
{
    if (threads_allowed <= 0) return EAGAIN;
    if (threads_allowed < INT_MAX) threads_allowed--;
    return __real_pthread_create(thread, attributes, begin, argument);
}

static int open_files(void)
{
    int count = 0;
    for (int fd = 0; fd < 256; fd++) count += fcntl(fd, F_GETFD) != -1;
    return count;
}

/* ---- Every test ---- */

bool out_of_memory(bool failed)
{
    ck_assert_msg(failed == allocations_refused(), "%s",
                  failed ? ng_error_text() : "an allocation was refused, which is no error");
    allocations_succeed();
    if (failed) assert_error(NG_ENOMEM, "");
    return failed;
}

/* In the order in which they are freed. */
#define OWNED(X) X(training) X(tape) X(optimizer) X(module) X(dataset) X(history) X(tensor)
enum { MOST_OWNED = 1024 }; /* of each kind */

#define OWNED_LIST(kind)                                                                           \
    static ng_##kind *owned_##kind[MOST_OWNED];                                                    \
    static int count_of_##kind;                                                                    \
    ng_##kind *own_##kind(const char *file, int line, const char *what, ng_##kind *x)              \
    {                                                                                              \
        expect_ok(file, line, what, x != NULL);                                                    \
        ck_assert_int_lt(count_of_##kind, MOST_OWNED);                                             \
        return owned_##kind[count_of_##kind++] = x;                                                \
    }
OWNED(OWNED_LIST)

#define FREE_OWNED(kind)                                                                           \
    while (count_of_##kind > 0) ng_##kind##_free(owned_##kind[--count_of_##kind]);

static int files; /* open when the test began */

static void begin_afresh(void)
{
    ng_memory = (ng_memory_functions){counted_allocate, counted_free};
    of_test = getpid();
    ng_always_share = true; /* loops of the tests' sizes */
    ng_clear_error();
    memset(marked, 0, sizeof marked);
    allocations_succeed();
    threads_fail_after(INT_MAX);
    made = 0;
    live = 0;
    file_calls_succeed();
    files = open_files();
}

static void end_clean(void)
{
    OWNED(FREE_OWNED)
    ng_set_threads(0);
    ck_assert_msg(live == 0, "%lld of the library's allocations were not freed", (long long)live);
    ck_assert_int_eq(open_files(), files);
}

TCase *add_case(Suite *suite, void (*begin)(void), void (*end)(void))
{
    TCase *tests = tcase_create("tests");
    tcase_add_checked_fixture(tests, begin_afresh, end_clean);
    tcase_add_checked_fixture(tests, begin, end);
    suite_add_tcase(suite, tests);
    return tests;
}

void add_list(TCase *tests, int count, const TTest *const *list)
{
    for (; *list; list++) tcase_add_loop_test(tests, *list, 0, count);
}

Suite *suite_with(const char *name, void (*begin)(void), void (*end)(void),
                  const TTest *const *list)
{
    Suite *suite = suite_create(name);
    add_list(add_case(suite, begin, end), 1, list);
    return suite;
}
