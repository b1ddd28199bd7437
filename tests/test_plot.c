/* Histories by x, summaries of runs, figures by gnuplot, and ng_watch. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memmem */
#endif
#include "fixture.h"
#include "folder.h"
#include "support.h"
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static ng_history *history;

static void begin(void)
{
    make_test_folder();
    set_up();
    history = ng_history_new("a test");
}

static void end(void)
{
    ng_history_free(history);
    tear_down();
    remove_test_folder();
}

FIXTURE(begin, end)

static bool has_gnuplot(void)
{
    static int known = -1;
    if (known < 0) known = system("gnuplot --version >/dev/null 2>&1") == 0;
    if (!known) puts("skipped: figures, for there is no gnuplot");
    return known;
}

static bool file_has(const char *path, const char *part)
{
    size_t size;
    char *text = get_file(path, &size);
    const bool has = text && memmem(text, size, part, strlen(part));
    free(text);
    return has;
}

static void log_loss(void)
{
    for (int step = 0; step < 20; step++) ng_history_log(history, "loss", step, exp(-step / 5.0));
}

/* ---- Histories ----------------------------------------------------------------------------- */

TEST(log_at_keeps_every_digit_of_x)
{
    const double x[] = {1e-300, 0.1, 1.0 / 3, 2, -5.5};
    for (int i = 0; i < 5; i++) assert_ok(ng_history_log_at(history, "error", x[i], i));
    assert_ok(ng_history_log_at(history, "x2", 0.1, 7));
    assert_ok(ng_history_write(history, in_folder("a.dat")));
    ck_assert(
        file_has(in_folder("a.dat"), "\nx         error         x2\n-5.5      4             ?\n"));
    ck_assert(file_has(in_folder("a.dat"), "\n0.3333333333333333  2             ?\n"));
    ng_history *again = ng_history_read(in_folder("a.dat"));
    assert_ok(ng_history_log_at(again, "error", 1.0 / 3, 2)); /* replaces */
    assert_ok(ng_history_write(again, in_folder("b.dat")));
    size_t size, other;
    char *a = get_file(in_folder("a.dat"), &size), *b = get_file(in_folder("b.dat"), &other);
    ck_assert(size == other && memcmp(a, b, size) == 0);
    free(a), free(b);
    ng_history_free(again);
}

TEST(log_at_refuses_what_is_no_place)
{
    assert_refused(ng_history_log_at(history, "a", (double)NAN, 1), "x is nan");
    assert_refused(ng_history_log_at(history, "a", HUGE_VAL, 1), "x is inf");
    assert_refused(ng_history_log_at(history, "x", 1, 1), "other than \"step\" and \"x\"");
    assert_ok(ng_history_log_at(history, "a", 1, 1));
    assert_refused(ng_history_log(history, "a", 1, 1), "are logged by x, and this one by step");
    assert_fails(ng_history_read(put_text("bad", "# what: a; normgrad 1\n\nx  a\n1 2\n1 3\n")),
                 NG_EPARSE, "an x beyond the one before");
    assert_fails(ng_history_read(put_text("bad", "# what: a; normgrad 1\n\nx  x\n1 2\n")),
                 NG_EPARSE, "names of series");
}

/* Four runs of 1, 2, 3, 10: the quartiles are 1.75 and 4.75. */
TEST(summary_has_median_quartiles_and_extremes)
{
    static const double values[] = {10, 1, 3, 2};
    ng_history *runs[5];
    for (int i = 0; i < 4; i++) {
        runs[i] = ng_history_new("run");
        ng_history_block(runs[i], "other"), ng_history_log(runs[i], "loss", 0, 99);
        ng_history_block(runs[i], "LayerNorm");
        ng_history_log(runs[i], "loss", 5, values[i]);
        ng_history_log(runs[i], "loss", 6, i < 2 ? (double)NAN : values[i]);
        ng_history_log(runs[i], "loss", 7, (double)NAN);
        if (i == 0) ng_history_log(runs[i], "loss", 8, HUGE_VAL);
    }
    ng_history *sum = ng_history_summary(runs, 4, .block = "LayerNorm");
    assert_ok(ng_history_write(sum, in_folder("s.dat")));
    ck_assert(file_has(
        in_folder("s.dat"),
        "# LayerNorm\n"
        "step      loss          loss_low      loss_high     loss_min      loss_max      runs\n"
        "5         2.5           1.75          4.75          1             10            4\n"
        "6         2.5           2.25          2.75          2             3             2\n"
        "7         NaN           NaN           NaN           NaN           NaN           0\n"
        "8         Inf           Inf           Inf           Inf           Inf           1\n"));
    ng_history_free(sum);
    sum = ng_history_summary(runs, 4); /* eight blocks */
    assert_ok(ng_history_write(sum, in_folder("s.dat")));
    ck_assert(file_has(in_folder("s.dat"), "0         99            99 "));
    ng_history_free(sum);
    assert_refused(ng_history_summary(runs, 4, .block = "none"),
                   "nothing is logged in a block none");
    assert_refused(ng_history_summary(runs, 0), "count is 0");
    ng_history_log_at(history, "loss", 0.5, 1);
    runs[4] = history;
    assert_refused(ng_history_summary(runs, 5), "some runs are logged by x");
    for (int i = 0; i < 4; i++) ng_history_free(runs[i]);
}

TEST(summary_without_memory_gives_all_back)
{
    for (int64_t i = 0;; i++) {
        log_loss();
        allocations_fail_after(i);
        ng_history *sum = ng_history_summary(&history, 1);
        allocations_succeed();
        if (!sum) assert_error(NG_ENOMEM, "ng_history");
        ng_history_free(sum);
        if (sum) break;
    }
}

/* ---- Figures ------------------------------------------------------------------------------- */

TEST(plot_draws_each_kind_of_file)
{
    static const char *const names[] = {"a.svg", "a.png", "a.pdf"}, *const heads[] = {
                                                                        "</svg>", "PNG", "%PDF"};
    if (!has_gnuplot()) return;
    log_loss();
    for (int i = 0; i < 3; i++) {
        assert_ok(ng_plot(history, in_folder(names[i]), .log_y = true, .title = "A title"));
        ck_assert(file_has(in_folder(names[i]), heads[i]));
    }
    ck_assert_int_eq(files_named("tmp"), 0);
}

/* No shell and no file of gnuplot's sees the name or the texts. */
TEST(plot_takes_any_character_in_names)
{
    static const char *const names[] = {"a 'b' \"c\" $(touch x) `touch x`.svg",
                                        "line\nbreak\t%d\\.svg"};
    if (!has_gnuplot()) return;
    ng_history_block(history, "a_b{c}^d`touch x` \"@e\" 'f'\\n");
    log_loss();
    ng_history_block(history, "100 %");
    log_loss();
    for (int i = 0; i < 2; i++) {
        assert_ok(ng_plot(history, in_folder(names[i]), .keep = true, .title = names[i]));
        ck_assert(file_has(in_folder(names[i]), "</svg>"));
        ck_assert(file_has(in_folder(names[i]), i == 0 ? "a_b{c}^d`touch x`" : "line"));
    }
    ck_assert_int_ne(access("x", F_OK), 0);
}

TEST(kept_script_draws_the_same_figure)
{
    if (!has_gnuplot()) return;
    log_loss();
    assert_ok(ng_plot(history, in_folder("a.svg"), .keep = true));
    size_t size, other;
    char *was = get_file(in_folder("a.svg"), &size), command[4200];
    unlink(in_folder("a.svg"));
    snprintf(command, sizeof command, "cd '%s' && gnuplot -d a.gp", in_folder(""));
    ck_assert_int_eq(system(command), 0);
    char *now = get_file(in_folder("a.svg"), &other);
    ck_assert(was && now && size == other && memcmp(was, now, size) == 0);
    free(was), free(now);
    ck_assert(file_has(in_folder("a.dat"), "# loss\n0 1\n"));
}

/* NaN in the numbers interrupts the curve and its band. */
TEST(nan_interrupts_line_and_band)
{
    if (!has_gnuplot()) return;
    for (int step = 0; step < 6; step++) {
        const bool gap = step == 2 || step == 3 || step == 5;
        ng_history_log(history, "a", step, gap ? (double)NAN : step);
        ng_history_log(history, "a_low", step, step - 1);
        ng_history_log(history, "a_high", step, step + 1);
    }
    assert_ok(ng_plot(history, in_folder("a.svg"), .band = true, .keep = true));
    ck_assert(file_has(in_folder("a.dat"),
                       "0 0 -1 1\n1 1 0 2\n2 NaN NaN NaN\n3 NaN NaN NaN\n4 4 3 5\n5 NaN"));
    assert_ok(ng_plot(history, in_folder("a.svg"), .log_y = true, .keep = true));
    ck_assert(file_has(in_folder("a.dat"),
                       "# a\n0 NaN NaN NaN\n1 1\n2 NaN NaN NaN\n3 NaN NaN NaN\n4 4\n"));
}

TEST(plot_as_text_goes_to_standard_output)
{
    if (!has_gnuplot()) return;
    log_loss();
    fflush(stdout);
    const int before = dup(STDOUT_FILENO);
    ck_assert(freopen(in_folder("out"), "w", stdout) != NULL);
    const ng_status status = ng_plot(history, "-", .width = 60, .height = 20);
    fflush(stdout);
    dup2(before, STDOUT_FILENO), close(before);
    ck_assert_int_eq(status, NG_OK);
    ck_assert(file_has(in_folder("out"), "loss"));
    ck_assert(file_has(in_folder("out"), "step"));
}

TEST(plot_says_what_is_wrong_with_the_data)
{
    static const char *const none[] = {"accuracy", NULL}, *const minus[] = {"minus", NULL};
    const char *path = put_text("a.svg", "the old one");
    assert_refused(ng_plot(history, path), "nothing is logged");
    ng_history_log(history, "loss", 1, (double)NAN);
    assert_refused(ng_plot(history, path), "\"loss\" has no finite value");
    log_loss();
    assert_refused(ng_plot(history, path, .series = none), "no series \"accuracy\"");
    for (int i = -3; i < 1; i++) ng_history_log(history, "minus", i, i);
    assert_refused(ng_plot(history, path, .series = minus, .log_y = true),
                   "\"minus\" has no positive value for the logarithmic axis");
    assert_refused(ng_plot(history, path, .series = minus, .log_x = true),
                   "\"minus\" has no positive");
    assert_refused(ng_plot(history, "a.gif"), "expected one that ends in .svg");
    assert_refused(ng_plot(history, path, .width = -1), "a size of -1");
    assert_refused(ng_plot(history, "-", .keep = true), ".keep is set");
    assert_refused(ng_plot(history, path, .live = true), ".live is set");
    assert_refused(ng_plot_watch(history, path), "ng_watch has logged nothing");
    ng_history_log(history, "0/gradient", 1, (double)NAN);
    assert_refused(ng_plot_watch(history, path), "no value that can be drawn");
    ck_assert(file_has(path, "the old one"));
}

TEST(plot_says_what_is_wrong_with_the_system)
{
    char *path = strdup(getenv("PATH"));
    log_loss();
    unsetenv("DISPLAY"), unsetenv("WAYLAND_DISPLAY");
    assert_fails(ng_plot(history, NULL), NG_EIO, "there is no display");
    setenv("PATH", in_folder(""), 1);
    assert_fails(ng_plot(history, in_folder("a.svg")), NG_EIO, "apt-get install gnuplot-nox");
    assert_fails(ng_plot(history, "-", .live = true), NG_EIO, "apt-get install gnuplot-nox");
    const char *fake = put_text("gnuplot", "#!/bin/sh\necho 'line 3: a reason' >&2\nexit 1\n");
    chmod(fake, 0700);
    assert_fails(ng_plot(history, in_folder("a.svg")), NG_EIO, "gnuplot: line 3: a reason");
    put_text("gnuplot", "#!/bin/sh\nread line\necho half\nkill -9 $$\n");
    assert_fails(ng_plot(history, in_folder("a.svg")), NG_EIO, "gnuplot: it was killed");
    ck_assert(access(in_folder("a.svg"), F_OK) != 0);
    setenv("PATH", path, 1);
    free(path);
    if (has_gnuplot())
        assert_fails(ng_plot(history, in_folder("none/a.svg")), NG_EIO, "No such file");
}

TEST(plot_without_memory_leaves_the_old_figure)
{
    if (!has_gnuplot()) return;
    log_loss();
    const char *path = put_text("a.svg", "the old one");
    for (int64_t i = 0;; i++) {
        allocations_fail_after(i);
        const ng_status status = ng_plot(history, path, .title = "T");
        allocations_succeed();
        if (status == NG_OK) break;
        assert_error(NG_ENOMEM, "ng_plot");
        ck_assert(file_has(path, "the old one"));
    }
    ck_assert(file_has(path, "</svg>"));
}

/* Each thing that is asked of the system for a figure fails in turn. */
TEST(plot_without_the_system_leaves_the_old_figure)
{
    if (!has_gnuplot()) return;
    log_loss();
    const char *path = put_text("a.svg", "the old one");
    for (int64_t i = 0;; i++) {
        file_calls_fail_once_after(i, ENOSPC);
        const ng_status status = ng_plot(history, path);
        const bool refused = file_call_refused();
        file_calls_succeed();
        if (!refused) break;
        if (status == NG_OK) continue; /* the close of a file of gnuplot's */
        assert_error(NG_EIO, "ng_plot");
        ck_assert(file_has(path, "the old one") || file_has(path, "</svg>"));
    }
    file_calls_come_in_pieces();
    assert_ok(ng_plot(history, path));
    file_calls_succeed();
}

/* At most two figures a second: the second call draws nothing. */
TEST(live_keeps_one_gnuplot)
{
    if (!has_gnuplot()) return;
    fflush(stdout);
    const int before = dup(STDOUT_FILENO);
    ck_assert(freopen(in_folder("out"), "w", stdout) != NULL);
    bool drawn = true;
    for (int step = 0; step < 100; step++) {
        ng_history_log(history, "loss", step, 1.0 / (step + 1));
        drawn = drawn && ng_plot(history, "-", .live = true, .width = 60, .height = 20) == NG_OK;
    }
    ng_history_free(history); /* waits for gnuplot */
    fflush(stdout);
    dup2(before, STDOUT_FILENO), close(before);
    history = ng_history_new("another");
    ck_assert(drawn);
    size_t size;
    char *text = get_file(in_folder("out"), &size);
    ck_assert(size > 1000 && size < 4000 && strstr(text, "loss"));
    free(text);
}

/* ---- ng_watch ------------------------------------------------------------------------------ */

static ng_module *mlp(void)
{
    return own(ng_sequential_new(ng_linear_new(6, 8), ng_layer_norm_new(8), ng_relu_new(),
                                 ng_linear_new(8, 4), ng_tanh_new()));
}

/* The value that the history has of a series at step 3. */
static double logged(const char *series)
{
    double value = (double)NAN;
    char *names, *row, *line, *at_names, *at_row;
    size_t size;
    assert_ok(ng_history_write(history, in_folder("w.dat")));
    char *text = get_file(in_folder("w.dat"), &size);
    names = strstr(text, "\nstep") + 1, row = strstr(names, "\n3 ") + 1;
    names[strcspn(names, "\n")] = row[strcspn(row, "\n")] = '\0';
    for (line = strtok_r(names, " ", &at_names), names = strtok_r(row, " ", &at_row); line && names;
         line = strtok_r(NULL, " ", &at_names), names = strtok_r(NULL, " ", &at_row))
        if (strcmp(line, series) == 0) value = atof(names);
    free(text);
    return value;
}

static double norm_of(const ng_tensor *x, const ng_tensor *y)
{
    double sum = 0;
    for (int64_t i = 0; i < ng_size(x); i++) sum += pow(ng_get(x, i) - (y ? ng_get(y, i) : 0), 2);
    return sum;
}

TEST(watch_logs_what_the_layers_compute)
{
    ng_rng rng = ng_rng_seeded(1);
    ng_tensor *x = own(ng_normal_new(NG_F32, NG_SHAPE(10, 6), 0, 3, &rng));
    ng_module *net = mlp();
    ng_optimizer *sgd = own(ng_sgd_new(net, .lr = 0.1));
    assert_ok(ng_watch(net, history, 2));
    ng_named_tensor w, b;
    ng_module_parameter(net, 0, &w), ng_module_parameter(net, 1, &b);
    ng_tensor *was = own(ng_copy_new(w.tensor, NG_F32)), *bias = own(ng_copy_new(b.tensor, NG_F32));
    ng_tensor *h = x, *each[5];
    for (int i = 0; i < 5; i++) each[i] = h = ng_forward(ng_module_child(net, i), tape, h);
    assert_ok(ng_backward(tape, ng_mean(tape, ng_square(tape, h))));
    assert_ok(ng_optimizer_step(sgd));
    assert_ok(ng_watch(net, history, 3));
    double sum = 0, squares = 0, zeros = 0, ends = 0;
    for (int64_t i = 0; i < 80; i++) {
        sum += ng_get(each[2], i), squares += pow(ng_get(each[2], i), 2);
        zeros += ng_get(each[2], i) == 0;
    }
    for (int64_t i = 0; i < 40; i++) ends += fabs(ng_get(each[4], i)) > 0.99;
    assert_close(logged("2/mean"), sum / 80, 1e-5);
    assert_close(logged("2/deviation"), sqrt(squares / 80 - pow(sum / 80, 2)), 1e-5);
    assert_close(logged("2/zeros"), zeros / 80, 1e-6);
    assert_near(logged("4/saturated"), ends / 40, 1e-6);
    double divisor = 0;
    for (int64_t row = 0; row < 10; row++) {
        double mean = 0, var = 0;
        for (int64_t k = 0; k < 8; k++) mean += ng_at(each[0], row, k) / 8;
        for (int64_t k = 0; k < 8; k++) var += pow(ng_at(each[0], row, k) - mean, 2) / 8;
        divisor += sqrt(var + 1e-5) / 10;
    }
    assert_close(logged("1/divisor"), divisor, 1e-5);
    ck_assert(isnan(logged("0/divisor")));
    const double weight = sqrt(norm_of(w.tensor, NULL) + norm_of(b.tensor, NULL));
    const double update = sqrt(norm_of(w.tensor, was) + norm_of(b.tensor, bias));
    assert_close(logged("0/weight"), weight, 1e-5);
    assert_close(logged("0/update"), update, 1e-4);
    assert_close(logged("0/ratio"), update / weight, 1e-4);
    assert_close(logged("0/gradient"), update / 0.1, 1e-4);
    if (has_gnuplot()) assert_ok(ng_plot_watch(history, in_folder("l.png")));
    if (has_gnuplot()) ck_assert(file_has(in_folder("l.png"), "PNG"));
}

/* Outputs whose tape was reset or freed are gone; a network of one layer has its type's name. */
TEST(watch_forgets_what_the_tape_forgets)
{
    ng_module *net = own(ng_linear_new(2, 2));
    ng_tensor *x = own(ng_zeros_new(NG_F32, NG_SHAPE(1, 2)));
    ng_tape *other = ng_tape_new();
    assert_ok(ng_watch(net, history, 0));
    ng_forward(net, tape, x);
    ng_tape_reset(tape);
    assert_ok(ng_watch(net, history, 1));
    ng_forward(net, tape, x), ng_forward(net, other, x);
    ng_tape_free(other);
    assert_ok(ng_watch(net, history, 3));
    ck_assert(isnan(logged("Linear/mean")));
    ck_assert(!isnan(logged("Linear/weight")));
    assert_ok(ng_module_to(net, NG_F64));
    assert_ok(ng_watch(net, history, 4));
    ng_forward(net, tape, x = own(ng_zeros_new(NG_F64, NG_SHAPE(1, 2))));
    assert_ok(ng_watch(net, history, 3));
    ck_assert(!isnan(logged("Linear/mean")));
}

TEST(watching_changes_no_bit)
{
    ng_tensor *last[2];
    for (int k = 0; k < 2; k++) {
        ng_rng rng = ng_rng_seeded(2);
        ng_tensor *x = own(ng_normal_new(NG_F32, NG_SHAPE(16, 6), 0, 1, &rng));
        ng_module *net = mlp();
        ng_optimizer *adam = own(ng_adam_new(net));
        for (int step = 0; step < 20; step++) {
            ng_tensor *y = ng_forward(net, tape, x);
            assert_ok(ng_backward(tape, ng_mean(tape, ng_square(tape, y))));
            assert_ok(ng_optimizer_step(adam));
            if (k == 1) assert_ok(ng_watch(net, history, step));
            ng_tape_reset(tape);
        }
        ng_named_tensor w;
        ng_module_parameter(net, 0, &w);
        last[k] = w.tensor;
    }
    assert_same_bits(last[0], last[1]);
}

TEST(watch_without_memory_gives_all_back)
{
    ng_module *net = mlp();
    for (int64_t i = 0;; i++) {
        allocations_fail_after(i);
        const ng_status status = ng_watch(net, history, 0);
        allocations_succeed();
        if (status == NG_OK) break;
        assert_error(NG_ENOMEM, "ng_");
    }
    assert_ok(ng_watch(net, history, 1));
}
