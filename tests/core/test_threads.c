/* Threads: their number, processes that fork, programs with threads of their own, and a system that
 * gives no threads. */
#include "core/pool.h"
#include "core/tensor.h"
#include "kernels/kernels.h"
#include "support/fixture.h"
#include "support/optimizers.h"
#include "support/support.h"

#include <dirent.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- Sharing out ---------------------------------------------------------------------------- */

enum { MOST_UNITS = 5000 };

static atomic_int times[MOST_UNITS]; /* how often each unit was done */
static atomic_int odd_spans;         /* spans that begin or end inside a grain */

typedef struct {
    int64_t units, grain;
} shared_loop;

static void count_units(const void *arguments, int64_t begin, int64_t end)
{
    const shared_loop *loop = arguments;
    if (begin % loop->grain || (end % loop->grain && end != loop->units) || begin > end)
        atomic_fetch_add(&odd_spans, 1);
    for (int64_t i = begin; i < end; i++) atomic_fetch_add(&times[i], 1);
}

static void expect_each_once(int64_t units, int64_t grain)
{
    memset((void *)times, 0, sizeof times);
    const shared_loop loop = {units, grain};
    ng_share(count_units, &loop, units, grain, INT64_MAX);
    int64_t i = 0;
    while (i < MOST_UNITS && times[i] == (i < units)) i++;
    ck_assert_msg(i == MOST_UNITS, "unit %lld of %lld in grains of %lld was not done once",
                  (long long)i, (long long)units, (long long)grain);
    ck_assert_int_eq(odd_spans, 0);
}

static const int counts[] = {1, 2, 3, 5, 16};
enum { COUNTS = sizeof counts / sizeof *counts };

START_TEST(every_unit_is_done_once_in_whole_grains)
{
    ng_set_threads(counts[_i]);
    for (int round = 0; round < 3; round++)
        for (int64_t units = 0; units <= MOST_UNITS; units += 1 + units * 2)
            for (int64_t grain = 1; grain <= units + 1; grain *= 3) expect_each_once(units, grain);
}

/* A loop of two parts. The caller waits in its part until a helper has come; a late helper makes
 * the caller wait. */
typedef struct {
    pthread_t caller;
    bool is_late;
    atomic_int helped; /* parts that helpers did */
} watched_loop;

static void watch_span(const void *arguments, int64_t begin, int64_t end)
{
    watched_loop *loop = (watched_loop *)arguments;
    if (!pthread_equal(pthread_self(), loop->caller)) {
        atomic_fetch_add(&loop->helped, 1);
        sleep_for(loop->is_late ? 0.02 : 0);
    } else
        for (int i = 0; i < 500 && end - begin == 1 && loop->helped == 0; i++) sleep_for(0.001);
}

/* How many parts of a loop of so much work helpers did. */
static int helped_parts(int64_t work, bool is_late)
{
    watched_loop loop = {.caller = pthread_self(), .is_late = is_late};
    ng_share(watch_span, &loop, 2, 1, work);
    return loop.helped;
}

START_TEST(a_late_helper_is_left_out_for_a_while)
{
    ng_set_threads(2);
    ck_assert_int_gt(helped_parts(INT64_MAX, true), 0);
    ng_always_share = false;
    for (int i = 0; i < 3; i++) ck_assert_int_eq(helped_parts(INT64_MAX, false), 0);
    ng_always_share = true;
    ck_assert_int_gt(helped_parts(INT64_MAX, false), 0);
}

/* One loop of 7 us does not pay for a thread, but many of them do. */
START_TEST(small_loops_are_shared_when_there_are_many)
{
    ng_set_threads(2);
    ng_always_share = false;
    int helped = helped_parts(NG_SHARE_FROM, false);
    ck_assert_int_eq(helped, 0);
    for (int i = 0; i < 1000 && helped == 0; i++) helped = helped_parts(NG_SHARE_FROM, false);
    ck_assert_int_gt(helped, 0);
}

/* ---- A network whose step has loops of every kind ------------------------------------------ */

enum { BATCH = 384, WIDTH = 192, STEPS = 2 };

typedef struct {
    ng_tape *tape;
    ng_module *net;
    ng_optimizer *optimizer;
    ng_tensor *x, *labels;
} training;

/* A training's optimizer and dtype. */
static int of_training = OF_adam;
static ng_dtype in_training = NG_F32;

static training start_training(uint64_t seed)
{
    ng_rng rng = ng_rng_seeded(seed);
    training t = {.tape = ng_tape_new()};
    t.net = ng_sequential_new(ng_linear_new(WIDTH, 2 * WIDTH), ng_layer_norm_new(2 * WIDTH),
                              ng_gelu_new(), ng_linear_new(2 * WIDTH, WIDTH),
                              ng_batch_norm_new(WIDTH), ng_relu_new(), ng_rms_norm_new(WIDTH),
                              ng_silu_new(), ng_residual_new(ng_dropout_new(0.2)), ng_tanh_new(),
                              ng_ada_norm_new(WIDTH), ng_softplus_new(), ng_linear_new(WIDTH, 10));
    ng_module_to(t.net, in_training);
    t.optimizer = optimizers[of_training].make(t.net);
    t.x = ng_normal_new(in_training, NG_SHAPE(BATCH, WIDTH), 0, 1, &rng);
    t.labels = ng_zeros_new(NG_I64, NG_SHAPE(BATCH));
    for (int64_t i = 0; i < BATCH; i++) ng_set(t.labels, i, (double)ng_rng_below(&rng, 10));
    return t;
}

static void train(training *t)
{
    ng_tensor *logits = ng_forward(t->net, t->tape, t->x);
    ng_tensor *column = ng_mean(t->tape, logits, .axes = NG_AXES(0), .keepdim = true);
    ng_tensor *shares = ng_softmax(t->tape, logits);
    logits = ng_add(t->tape, logits, ng_mul(t->tape, column, shares));
    ng_tensor *loss = ng_cross_entropy(t->tape, logits, t->labels);
    if (ng_backward(t->tape, loss)) return; /* ng_failed tells */
    ng_clip_grad_norm(t->net, 1e-3);
    if (ng_optimizer_step(t->optimizer)) return;
    ng_tape_reset(t->tape);
}

static void end_training(training *t)
{
    ng_optimizer_free(t->optimizer), ng_module_free(t->net), ng_tape_free(t->tape);
    ng_tensor_free(t->x), ng_tensor_free(t->labels);
}

/* A digest of all bits of the parameters. */
static uint64_t digest(const training *t)
{
    uint64_t sum = 1469598103934665603u; /* Fowler, Noll & Vo */
    ng_named_tensor p;
    for (int i = 0; ng_module_parameter(t->net, i, &p); i++) {
        const size_t count = (size_t)ng_size(p.tensor) * ng_dtype_bytes(p.tensor->dtype);
        const unsigned char *bytes = p.tensor->data;
        for (size_t j = 0; j < count; j++) sum = (sum ^ bytes[j]) * 1099511628211u;
    }
    return ng_failed() ? 0 : sum;
}

static uint64_t trained(uint64_t seed)
{
    training t = start_training(seed);
    for (int step = 0; step < STEPS; step++) train(&t);
    const uint64_t sum = digest(&t);
    end_training(&t);
    return sum;
}

static uint64_t trained_alone(uint64_t seed)
{
    ng_set_threads(1);
    const uint64_t sum = trained(seed);
    ck_assert_msg(sum != 0, "%s", ng_error_text());
    return sum;
}

/* With each optimizer in float, and in double. */
START_TEST(training_has_the_same_bits_for_any_number_of_threads)
{
    of_training = _i % OPTIMIZERS;
    in_training = _i < OPTIMIZERS ? NG_F32 : NG_F64;
    const uint64_t alone = trained_alone(1);
    for (int i = 0; i < COUNTS; i++) {
        ng_set_threads(counts[i]);
        ck_assert_uint_eq(trained(1), alone);
    }
    of_training = OF_adam, in_training = NG_F32;
}

/* ---- The number of threads ------------------------------------------------------------------ */

/* Threads of this process for which `is` is true. */
static int count_threads(bool (*is)(const char *thread, int value), int value)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/task");
    ck_assert_ptr_nonnull(folder);
    for (struct dirent *entry; (entry = readdir(folder));)
        count += entry->d_name[0] != '.' && is(entry->d_name, value);
    closedir(folder);
    return count;
}

/* The system counts a thread for some time after it has ended and was joined, and a new one has its
 * niceness only after it has begun. */
static void expect_threads(bool (*is)(const char *thread, int value), int value, int expected)
{
    for (int i = 0; i < 60000 && count_threads(is, value) != expected; i++) sleep_for(0.001);
    ck_assert_int_eq(count_threads(is, value), expected);
}

static bool is_any(const char *thread, int value)
{
    (void)thread, (void)value;
    return true;
}

static int running(void) { return count_threads(is_any, 0); }

static void expect_running(int expected) { expect_threads(is_any, 0, expected); }

START_TEST(the_number_of_threads_is_bounded)
{
    static const int accepted[] = {NG_MOST_THREADS, 1, 3},
                     refused[] = {NG_MOST_THREADS + 1, INT_MAX, -1, INT_MIN};
    for (int i = 0; i < 3; i++) {
        assert_ok(ng_set_threads(accepted[i]));
        ck_assert_int_eq(ng_threads(), accepted[i]);
        if (i == 0) expect_each_once(MOST_UNITS, 1);
    }
    for (int i = 0; i < 4; i++) {
        assert_fails(ng_set_threads(refused[i]), NG_EVALUE);
        ck_assert_int_eq(ng_threads(), 3);
    }
}

START_TEST(the_default_is_omp_num_threads_or_the_processors)
{
    static const struct {
        const char *text;
        int count; /* 0: as many as there are processors */
    } said[] = {{"3", 3},  {"5,2", 5}, {"100000", NG_MOST_THREADS},
                {"0", 0},  {"-4", 0},  {"many", 0},
                {"3x", 0}, {"", 0}};
    unsetenv("OMP_NUM_THREADS");
    ng_set_threads(0);
    const int processors = ng_threads();
    for (size_t i = 0; i < sizeof said / sizeof *said; i++) {
        setenv("OMP_NUM_THREADS", said[i].text, 1);
        ng_set_threads(0);
        ck_assert_int_eq(ng_threads(), said[i].count ? said[i].count : processors);
        ng_set_threads(2);
        ck_assert_int_eq(ng_threads(), 2);
    }
    unsetenv("OMP_NUM_THREADS");
}

#ifdef CPU_COUNT
START_TEST(one_usable_processor_is_one_thread)
{
    cpu_set_t before, one;
    ck_assert_int_eq(sched_getaffinity(0, sizeof before, &before), 0);
    size_t first = 0;
    while (!CPU_ISSET(first, &before)) first++;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    ck_assert_int_eq(sched_setaffinity(0, sizeof one, &one), 0);
    unsetenv("OMP_NUM_THREADS");
    ng_set_threads(0);
    const int count = ng_threads();
    sched_setaffinity(0, sizeof before, &before);
    ck_assert_int_eq(count, 1);
}
#endif

START_TEST(a_small_network_starts_no_thread)
{
    const int before = running();
    ng_set_threads(4);
    ng_tape *small = own(ng_tape_new());
    ng_module *net = own(ng_sequential_new(ng_linear_new(64, 32), ng_layer_norm_new(32),
                                           ng_relu_new(), ng_linear_new(32, 10)));
    ng_tensor *x = normal(NG_F32, NG_SHAPE(32, 64), 1);
    assert_ok(ng_backward(small, ng_sum(small, ng_forward(net, small, x))));
    expect_running(before);
}

START_TEST(threads_are_started_for_large_work_and_ended_with_their_number)
{
    const int before = running();
    for (int count = 4; count > 0; count /= 2) {
        ng_set_threads(count);
        expect_running(before);
        for (int i = 0; i < 2; i++) {
            expect_each_once(MOST_UNITS, 1);
            expect_running(before + count - 1);
        }
    }
}

static bool has_niceness(const char *thread, int niceness)
{
    return getpriority(PRIO_PROCESS, (id_t)atoi(thread)) == niceness;
}

/* Whether the thread blocks the signals that programs handle most. */
static bool blocks_signals(const char *thread, int value)
{
    (void)value;
    char path[512], line[256];
    unsigned long long mask = 0;
    snprintf(path, sizeof path, "/proc/self/task/%s/status", thread);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "SigBlk: %llx", &mask) == 1) break;
    if (file) fclose(file);
    return (mask >> (SIGINT - 1) & mask >> (SIGTERM - 1) & mask >> (SIGALRM - 1) & 1) == 1;
}

START_TEST(helpers_are_nicer_than_their_process_and_take_no_signals)
{
    enum { NICEST = 19 };
#ifdef CPU_COUNT
    const int added = 10;
#else
    const int added = 0;
#endif
    const int own = getpriority(PRIO_PROCESS, 0),
              theirs = own + added < NICEST ? own + added : NICEST;
    ng_set_threads(1);
    const int before = count_threads(has_niceness, own),
              nicer = count_threads(has_niceness, theirs);
    const int deaf = count_threads(blocks_signals, 0);
    ng_set_threads(3);
    expect_each_once(MOST_UNITS, 1);
    expect_threads(has_niceness, theirs, nicer + 2);
    expect_threads(has_niceness, own, own < theirs ? before : before + 2);
    expect_threads(blocks_signals, 0, deaf + 2);
}

/* ---- A system that gives no threads, or little memory ---------------------------------------- */

START_TEST(fewer_threads_than_wanted_are_no_error)
{
    const uint64_t alone = trained_alone(1);
    const int before = running();
    ng_set_threads(5);
    threads_fail_after(_i);
    expect_each_once(MOST_UNITS, 1);
    expect_running(before + _i);
    ck_assert_uint_eq(trained(1), alone);
    expect_running(before + _i);
    threads_fail_after(INT_MAX);
    ng_set_threads(5);
    expect_each_once(MOST_UNITS, 1);
    expect_running(before + 4);
}

/* The product (m, k) by (k, n) of matrices that are large enough for packing, in four layouts. */
static void multiply(int layout, ng_dtype dtype, ng_tensor *a, ng_tensor *b, ng_tensor *c)
{
    enum { M = 1000, N = 150, K = 300 };
    const bool ta = layout & 1, tb = layout & 2;
    const void *x = dtype == NG_F32 ? (void *)ng_data_f32(a) : (void *)ng_data_f64(a);
    const void *y = dtype == NG_F32 ? (void *)ng_data_f32(b) : (void *)ng_data_f64(b);
    void *z = dtype == NG_F32 ? (void *)ng_data_f32(c) : (void *)ng_data_f64(c);
    ng_kernels_for(dtype)->gemm(
        &(ng_product){M, N, K, {x, ta ? M : K, ta}, {y, tb ? K : N, tb}, .c = z, .c_row = N});
}

START_TEST(a_product_without_memory_for_packing_has_the_same_bits)
{
    const ng_dtype dtype = _i % 2 ? NG_F64 : NG_F32;
    ng_rng rng = ng_rng_seeded(3);
    ng_tensor *a = own(ng_normal_new(dtype, NG_SHAPE(300000), 0, 1, &rng));
    ng_tensor *b = own(ng_normal_new(dtype, NG_SHAPE(45000), 0, 1, &rng));
    ng_tensor *packed = own(ng_zeros_new(dtype, NG_SHAPE(150000)));
    ng_tensor *bare = own(ng_zeros_new(dtype, NG_SHAPE(150000)));
    multiply(_i / 2, dtype, a, b, packed);
    ck_assert_int_gt(allocations_made(), 0);
    ng_set_threads(2);
    allocations_fail_after(0);
    multiply(_i / 2, dtype, a, b, bare);
    ck_assert(allocations_refused());
    allocations_succeed();
    ck_assert(!ng_failed());
    assert_same_bits(packed, bare);
}

/* ---- Small stacks --------------------------------------------------------------------------- */

/* Runs on a stack of so many bytes, or on the smallest that the system gives. */
static void run_on_stack(size_t bytes, void *(*function)(void *), void *argument)
{
    const size_t least = (size_t)PTHREAD_STACK_MIN;
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    ck_assert_int_eq(pthread_attr_setstacksize(&attributes, bytes > least ? bytes : least), 0);
    ck_assert_int_eq(pthread_create(&thread, &attributes, function, argument), 0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attributes);
}

static void *multiply_once(void *operands)
{
    ng_tensor **x = operands;
    multiply(0, NG_F32, x[0], x[1], x[2]);
    return NULL;
}

/* The library's thread-local memory is part of a thread's stack. */
START_TEST(a_thread_with_a_small_stack_can_multiply)
{
    ng_tensor *x[] = {own(ng_ones_new(NG_F32, NG_SHAPE(300000))),
                      own(ng_ones_new(NG_F32, NG_SHAPE(45000))),
                      own(ng_zeros_new(NG_F32, NG_SHAPE(150000)))};
    ng_set_threads(2);
    run_on_stack(65536, multiply_once, x);
    assert_close(ng_get(x[2], 12345), 300, 1e-6);
}

/* ---- Programs with threads of their own ------------------------------------------------------ */

typedef struct {
    uint64_t seed, sum;
    bool failed;
} trainee;

static void *train_trainee(void *argument)
{
    trainee *self = argument;
    self->sum = trained(self->seed);
    self->failed = ng_failed();
    return NULL;
}

START_TEST(networks_trained_at_once_have_the_bits_of_one_trained_alone)
{
    enum { TRAINEES = 3 };
    trainee trainees[TRAINEES];
    pthread_t threads[TRAINEES];
    uint64_t alone[TRAINEES];
    for (uint64_t i = 0; i < TRAINEES; i++) alone[i] = trained_alone(i + 1);
    ng_set_threads(3);
    for (uint64_t i = 0; i < TRAINEES; i++) {
        trainees[i] = (trainee){.seed = i + 1};
        ck_assert_int_eq(pthread_create(&threads[i], NULL, train_trainee, &trainees[i]), 0);
    }
    for (int i = 0; i < TRAINEES; i++) {
        pthread_join(threads[i], NULL);
        ck_assert(!trainees[i].failed && trainees[i].sum == alone[i]);
    }
}

static void *change_threads(void *stop)
{
    for (int i = 0; !atomic_load((atomic_bool *)stop); i++) {
        ng_set_threads(counts[i % COUNTS]);
        sleep_for(0.001);
    }
    return NULL;
}

START_TEST(the_number_of_threads_may_change_while_others_train)
{
    const uint64_t alone = trained_alone(1);
    atomic_bool stop = false;
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, change_threads, &stop), 0);
    const uint64_t sum = trained(1);
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
    ck_assert_uint_eq(sum, alone);
}

/* ---- fork ------------------------------------------------------------------------------------ */

/* The child trains. Its exit status says whether the bits are right. An alarm ends a child that
 * hangs. */
static pid_t fork_training(uint64_t seed, uint64_t expected)
{
    const pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child > 0) return child;
    signal(SIGALRM, SIG_DFL); /* Check's handler would end the test too */
    alarm(240);
    _exit(trained(seed) == expected && running() > 1 ? EXIT_SUCCESS : EXIT_FAILURE);
}

static void expect_success(pid_t child)
{
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(!WIFSIGNALED(status), "the child was ended by signal %d", WTERMSIG(status));
    ck_assert_int_eq(WEXITSTATUS(status), EXIT_SUCCESS);
}

static void *train_until(void *stop)
{
    training t = start_training(2);
    while (!atomic_load((atomic_bool *)stop)) train(&t);
    end_training(&t);
    return NULL;
}

/* And so does the parent. */
START_TEST(a_child_of_a_busy_parent_trains)
{
    const uint64_t alone = trained_alone(1);
    atomic_bool stop = false;
    pthread_t thread;
    ng_set_threads(3);
    ck_assert_int_eq(pthread_create(&thread, NULL, train_until, &stop), 0);
    for (int i = 0; i < 4; i++) {
        sleep_for(0.002 * i);
        const pid_t child = fork_training(1, alone);
        if (i % 2) ck_assert_uint_eq(trained(1), alone);
        expect_success(child);
    }
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
}

Suite *threads_suite(void)
{
    Suite *suite = suite_create("threads");
    TCase *tests = add_case(suite, NULL, NULL);
    add_tests(tests, the_number_of_threads_is_bounded,
              the_default_is_omp_num_threads_or_the_processors, a_small_network_starts_no_thread,
              threads_are_started_for_large_work_and_ended_with_their_number,
              helpers_are_nicer_than_their_process_and_take_no_signals,
              networks_trained_at_once_have_the_bits_of_one_trained_alone,
              the_number_of_threads_may_change_while_others_train);
    add_loops(tests, COUNTS, every_unit_is_done_once_in_whole_grains);
    add_tests(tests, a_late_helper_is_left_out_for_a_while,
              small_loops_are_shared_when_there_are_many);
    add_loops(tests, OPTIMIZERS + 1, training_has_the_same_bits_for_any_number_of_threads);
#ifdef CPU_COUNT
    add_tests(tests, one_usable_processor_is_one_thread);
#endif
    tests = add_case(suite, set_up, tear_down);
    add_tests(tests, a_thread_with_a_small_stack_can_multiply);
    add_loops(tests, 4, fewer_threads_than_wanted_are_no_error);
    add_loops(tests, 8, a_product_without_memory_for_packing_has_the_same_bits);
    tests = add_case(suite, NULL, NULL);
    tcase_set_tags(tests, "fork");
    add_tests(tests, a_child_of_a_busy_parent_trains);
    return suite;
}
