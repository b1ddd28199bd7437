/* Histories by x, summaries of runs, figures by gnuplot, and ng_watch. */
#include "support/fixture.h"
#include "support/folder.h"
#include "support/support.h"
#include <errno.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
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
    bool has = false;
    for (const char *at = text; !has && at < text + size; at += strlen(at) + 1)
        has = strstr(at, part) != NULL;
    free(text);
    return has;
}

/* Decodes the next character of XML's text to `to`, and returns what is after it; NULL for what is
 * no text. */
static const char *xml_character(const char *at, char **to)
{
    static const char *const entities[] = {"&lt;<", "&gt;>", "&amp;&", "&quot;\"", "&apos;'"};
    for (int i = 0; i < 5; i++) {
        const size_t length = strlen(entities[i]) - 1;
        if (strncmp(at, entities[i], length) != 0) continue;
        *(*to)++ = entities[i][length];
        return at + length;
    }
    if (*at == '&' || *at == '<' || (*at >= 0 && *at < ' ' && *at != '\n')) return NULL;
    *(*to)++ = *at;
    return at + 1;
}

/* Python parses the file where it is found. */
static void assert_is_xml(const char *path)
{
    char command[4400];
    snprintf(command, sizeof command,
             "! command -v python3 >/dev/null || "
             "python3 -c 'import sys, xml.etree.ElementTree as t; t.parse(sys.argv[1])' '%s'",
             path);
    ck_assert_int_eq(system(command), 0);
}

/* Returns the texts of an SVG, a line each; free them. */
static char *svg_texts(const char *path)
{
    size_t size;
    char *svg = get_file(path, &size), *texts = malloc(size + 1), *to = texts;
    ck_assert(svg && texts);
    for (const char *at = svg; (at = strstr(at, "<text")); *to++ = '\n')
        while (strncmp(at, "</text>", 7) != 0) {
            at = *at == '<' ? strchr(at, '>') + 1 : xml_character(at, &to);
            ck_assert_msg(at && *at, "%s is no XML", path);
        }
    *to = '\0';
    free(svg);
    return texts;
}

static bool svg_has(const char *path, const char *text)
{
    char *texts = svg_texts(path), line[1000];
    snprintf(line, sizeof line, "\n%s\n", text);
    const bool has = strstr(texts, line) != NULL || strncmp(texts, line + 1, strlen(line + 1)) == 0;
    if (!has) fprintf(stderr, "\"%s\" is not in:\n%s", text, texts);
    free(texts);
    return has;
}

/* Whether the figure a.svg, which was kept, has a curve of the series. */
static bool draws(const char *series)
{
    char part[100];
    snprintf(part, sizeof part, "(of(1, '%s')) with", series);
    return file_has(in_folder("a.gp"), part);
}

/* Writes the numbers that gnuplot draws in this figure to the file "table". */
static void tabulate(void)
{
    char command[4400];
    snprintf(command, sizeof command,
             "cd '%s' && sed 's/^set format.*/set format \"%%.6g\"/' a.gp >t.gp && "
             "gnuplot -d -e \"set table 'table'\" t.gp",
             in_folder(""));
    ck_assert_int_eq(system(command), 0);
}

/* How many files of live figures there are. */
static int count_figures(void)
{
    glob_t found;
    const int count = glob("/tmp/normgrad-*", 0, NULL, &found) == 0 ? (int)found.gl_pathc : 0;
    globfree(&found);
    return count;
}

static void log_loss(void)
{
    for (int step = 0; step < 20; step++) ng_history_log(history, "loss", step, exp(-step / 5.0));
}

/* ---- Histories ----------------------------------------------------------------------------- */

START_TEST(log_at_keeps_every_digit_of_x)
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
    assert_same_files(in_folder("a.dat"), in_folder("b.dat"));
    ng_history_free(again);
}

START_TEST(log_at_refuses_what_is_no_place)
{
    assert_refused(ng_history_log_at(history, "a", (double)NAN, 1));
    assert_refused(ng_history_log_at(history, "a", HUGE_VAL, 1));
    assert_refused(ng_history_log_at(history, "x", 1, 1));
    assert_ok(ng_history_log_at(history, "a", 1, 1));
    assert_refused(ng_history_log(history, "a", 1, 1));
    assert_fails(ng_history_read(put_text("bad", "# what: a; normgrad 1\n\nx  a\n1 2\n1 3\n")),
                 NG_EPARSE);
    assert_fails(ng_history_read(put_text("bad", "# what: a; normgrad 1\n\nx  x\n1 2\n")),
                 NG_EPARSE);
}

/* Four runs of 1, 2, 3, 10: the quartiles are 1.75 and 4.75. */
START_TEST(summary_has_median_quartiles_and_extremes)
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
    ng_history *sum = ng_history_summary_new(runs, 4, .block = "LayerNorm");
    assert_ok(ng_history_write(sum, in_folder("s.dat")));
    ck_assert(file_has(
        in_folder("s.dat"),
        "# LayerNorm\n"
        "#kinds:   curve         spread        spread        spread        spread        spread\n"
        "step      loss          loss_low      loss_high     loss_min      loss_max      runs\n"
        "5         2.5           1.75          4.75          1             10            4\n"
        "6         NaN           NaN           NaN           NaN           NaN           2\n"
        "7         NaN           NaN           NaN           NaN           NaN           0\n"
        "8         NaN           NaN           NaN           NaN           NaN           1\n"));
    ng_history_free(sum);
    sum = ng_history_summary_new(runs, 4); /* eight blocks */
    assert_ok(ng_history_write(sum, in_folder("s.dat")));
    ck_assert(file_has(in_folder("s.dat"), "0         99            99 "));
    ng_history_free(sum);
    assert_refused(ng_history_summary_new(runs, 4, .block = "none"));
    assert_refused(ng_history_summary_new(runs, 0));
    ng_history_log_at(history, "loss", 0.5, 1);
    runs[4] = history;
    assert_refused(ng_history_summary_new(runs, 5));
    for (int i = 0; i < 4; i++) ng_history_free(runs[i]);
}

/* Runs that diverge count as worse than the others, also after they have ended. */
START_TEST(summary_counts_nan_as_the_worst)
{
    ng_history *runs[5];
    for (int i = 0; i < 5; i++) {
        runs[i] = ng_history_new("run");
        for (int step = 0; step < 5; step++) {
            const bool diverges = step > 0 && i >= 5 - step;
            ng_history_log(runs[i], "loss", step, diverges ? (double)NAN : i);
            if (diverges) break;
        }
    }
    ng_history *sum = ng_history_summary_new(runs, 5);
    assert_ok(ng_history_write(sum, in_folder("s.dat")));
    ck_assert(file_has(
        in_folder("s.dat"),
        "step      loss          loss_low      loss_high     loss_min      loss_max      runs\n"
        "0         2             1             3             0             4             5\n"
        "1         2             0             3             NaN           NaN           4\n"
        "2         2             NaN           NaN           NaN           NaN           3\n"
        "3         NaN           NaN           NaN           NaN           NaN           2\n"
        "4         NaN           NaN           NaN           NaN           NaN           1\n"));
    ng_history_free(sum);
    for (int i = 0; i < 5; i++) ng_history_free(runs[i]);
}

/* A history that is logged in any order is that logged in order, and takes no longer. */
START_TEST(steps_in_any_order)
{
    enum { STEPS = 200000 };
    ng_history *rising = own(ng_history_new("a test"));
    for (int i = 0; i < STEPS; i++) {
        ng_history_log(history, "loss", STEPS - 1 - i, 1); /* is replaced */
        ng_history_log(rising, "loss", i, i);
        ng_history_log(rising, "other", i, -i);
    }
    for (int i = 0; i < STEPS; i++) ng_history_log(history, "other", i, -i);
    for (int i = STEPS - 1; i >= 0; i--) ng_history_log(history, "loss", i, i);
    assert_ok(ng_history_write(history, in_folder("a.dat")));
    assert_ok(ng_history_write(rising, in_folder("b.dat")));
    assert_same_files(in_folder("a.dat"), in_folder("b.dat"));
}

START_TEST(summary_without_memory_gives_all_back)
{
    for (int64_t i = 0;; i++) {
        log_loss();
        allocations_fail_after(i);
        ng_history *sum = ng_history_summary_new(&history, 1);
        allocations_succeed();
        if (!sum) assert_error(NG_ENOMEM, "ng_history");
        ng_history_free(sum);
        if (sum) break;
    }
}

/* ---- Figures ------------------------------------------------------------------------------- */

START_TEST(plot_draws_each_kind_of_file)
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

/* Each printable character before each digit, in names, and in titles with longer characters. */
START_TEST(texts_are_drawn_as_they_are)
{
    if (!has_gnuplot()) return;
    char names[95][24];
    for (int c = 0; c < 95; c++) {
        char *to = names[c];
        for (int digit = 0; digit < 10; digit++)
            *to++ = (char)(' ' + c), *to++ = (char)('0' + digit);
        *to = '\0';
        ng_history_block(history, names[c]);
        ng_history_log(history, "loss", 0, c), ng_history_log(history, "loss", 1, 0);
    }
    assert_ok(ng_plot(history, in_folder("a.svg"), .title = "p<0.05, 100% of $5", .keep = true));
    assert_is_xml(in_folder("a.svg"));
    for (int c = 0; c < 95; c++) ck_assert(svg_has(in_folder("a.svg"), names[c]));
    ck_assert(svg_has(in_folder("a.svg"), "p<0.05, 100% of $5"));
    assert_ok(ng_plot(history, in_folder("a.svg"), .title = "\u00e91 \u20ac2 \U0001f6003 \\",
                      .x_label = "\\e1 {a}_2", .y_label = "`date` $0 @x #"));
    ck_assert(svg_has(in_folder("a.svg"), "\u00e91 \u20ac2 \U0001f6003 \\"));
    ck_assert(svg_has(in_folder("a.svg"), "\\e1 {a}_2"));
    ck_assert(svg_has(in_folder("a.svg"), "`date` $0 @x #"));
    assert_ok(ng_plot(history, in_folder("a.svg"), .title = "one line\nand another"));
    ck_assert(svg_has(in_folder("a.svg"), "one line") &&
              svg_has(in_folder("a.svg"), "and another"));
}

/* Control characters and what is no UTF-8 are replaced. */
START_TEST(texts_that_are_no_text_are_replaced)
{
    static const char *const bad[][2] = {{"a\033[1m\a1\r", "a\ufffd[1m\ufffd1\ufffd"},
                                         {"\xff\xc3(\xe2\x82\xed\xa0\x80",
                                          "\ufffd\ufffd("
                                          "\ufffd\ufffd\ufffd\ufffd\ufffd"},
                                         {"7\x7f", "7\ufffd"},
                                         {"a\tb", "a b"}};
    if (!has_gnuplot()) return;
    log_loss();
    for (int i = 0; i < 4; i++) {
        assert_ok(ng_plot(history, in_folder("a.svg"), .title = bad[i][0], .y_label = bad[i][0]));
        assert_is_xml(in_folder("a.svg"));
        ck_assert(svg_has(in_folder("a.svg"), bad[i][1]));
    }
    assert_ok(ng_plot(history, in_folder("a.svg"), .title = "two\nlines"));
    ck_assert(svg_has(in_folder("a.svg"), "two"));
    ck_assert(svg_has(in_folder("a.svg"), "lines"));
}

/* A key has all names, for which the figure grows. */
START_TEST(no_name_vanishes_from_the_key)
{
    for (int i = 0; i < 60; i++) {
        char name[20];
        snprintf(name, sizeof name, "run %d", i);
        ng_history_block(history, name);
        log_loss();
    }
    if (!has_gnuplot()) return;
    assert_ok(ng_plot(history, in_folder("a.svg")));
    for (int i = 0; i < 60; i++) {
        char name[20];
        snprintf(name, sizeof name, "run %d", i);
        ck_assert(svg_has(in_folder("a.svg"), name));
    }
}

START_TEST(kept_script_draws_the_same_figure)
{
    static const char *const names[] = {"a",      "run#1", "|cat", "<x", "$data",
                                        "it's 7", "-",     "\\1",  "~x", "`x`"};
    if (!has_gnuplot()) return;
    for (int i = 0; i < 10; i++) {
        char path[4200], script[64], command[4300];
        log_loss();
        snprintf(path, sizeof path, "%s.svg", in_folder(names[i]));
        assert_ok(ng_plot(history, path, .keep = true));
        size_t size, other;
        char *was = get_file(path, &size);
        unlink(path);
        snprintf(script, sizeof script, "./%s.gp", names[i]);
        setenv("SCRIPT", script, 1);
        snprintf(command, sizeof command, "cd '%s' && gnuplot -d \"$SCRIPT\"", in_folder(""));
        ck_assert_int_eq(system(command), 0);
        char *now = get_file(path, &other);
        ck_assert_msg(was && now && size == other && memcmp(was, now, size) == 0, "%s", names[i]);
        free(was), free(now);
    }
}

/* Every series that the user has logged is a curve, whatever its name. */
START_TEST(every_series_is_drawn)
{
    static const char *const names[] = {
        "train/loss",   "grad/weight",     "runs",  "temperature_max", "temperature_high",
        "temperature",  "temperature_low", "a_low", "grad/zeros",      "grad/saturated",
        "grad/gradient"};
    if (!has_gnuplot()) return;
    for (int i = 0; i < 11; i++)
        for (int step = 0; step < 3; step++) ng_history_log(history, names[i], step, i + step);
    assert_ok(ng_plot(history, in_folder("a.svg"), .panels = true));
    for (int i = 0; i < 11; i++) ck_assert(svg_has(in_folder("a.svg"), names[i]));
    assert_ok(ng_plot(history, in_folder("a.svg"), .keep = true, .band = true));
    ck_assert(!draws("temperature_low") && draws("temperature") && draws("temperature_max"));
    tabulate();
    ck_assert(file_has(in_folder("table"), "\n0 6 4  i\n"));
}

/* Statistics of a summary are no curves, also after a file; the series that has the name of one is
 * refused. */
START_TEST(statistics_of_a_summary_are_no_curves)
{
    ng_history_log(history, "temperature_max", 0, 1), ng_history_log(history, "loss", 0, 2);
    ng_history *sum = own(ng_history_summary_new(&history, 1));
    assert_ok(ng_history_write(sum, in_folder("s.dat")));
    ng_history *again = own(ng_history_read(in_folder("s.dat")));
    assert_ok(ng_history_write(again, in_folder("t.dat")));
    assert_same_files(in_folder("s.dat"), in_folder("t.dat"));
    if (has_gnuplot())
        for (int i = 0; i < 2; i++) {
            assert_ok(ng_plot(i == 0 ? sum : again, in_folder("a.svg"), .keep = true));
            ck_assert(draws("temperature_max") && draws("loss"));
            ck_assert(!draws("loss_low") && !draws("runs"));
        }
    ng_history_log(history, "temperature", 0, 1);
    assert_refused(ng_history_summary_new(&history, 1));
    static const char *const bad[] = {"curve", "curve curve curve", "curve line", "curve spread x"};
    for (int i = 0; i < 4; i++) {
        char text[200];
        snprintf(text, sizeof text, "# what: a; normgrad 1\n\n#kinds: %s\nstep  a  b\n1 2 3\n",
                 bad[i]);
        assert_fails(ng_history_read(put_text("bad", text)), NG_EPARSE);
    }
}

/* Several histories have the names they were given, or their own. */
START_TEST(each_history_has_a_name)
{
    static const char *const few[] = {"first", NULL}, *const names[] = {"first", "second"};
    ng_history *other = own(ng_history_new("another test")), *others[] = {other, NULL};
    log_loss();
    ng_history_log(other, "loss", 1, 2), ng_history_log(other, "loss", 2, 1);
    ck_assert_int_eq(ng_plot(history, in_folder("a.svg"), .histories = others, .names = few),
                     NG_EVALUE);
    ng_clear_error();
    if (!has_gnuplot()) return;
    assert_ok(ng_plot(history, in_folder("a.svg"), .histories = others, .names = names));
    ck_assert(svg_has(in_folder("a.svg"), "second"));
    assert_ok(ng_plot(history, in_folder("a.svg"), .histories = others));
    ck_assert(svg_has(in_folder("a.svg"), "another test"));
}

/* Labels of tics differ, and there are at least two. */
START_TEST(tics_can_be_told_apart)
{
    static const double axes[][2] = {{1e-7, 1e-7}, {12345.001, 0.002}, {-3, 1.5},  {5, 0},
                                     {2, 0.03},    {1, 1e-9},          {1e9, 1e10}};
    if (!has_gnuplot()) return;
    for (int i = 0; i < 14; i++) {
        const double *axis = axes[i % 7];
        for (int k = 0; k < 5; k++)
            ng_history_log(history, "loss", 7 + 100 * k, axis[0] + k * axis[1]);
        if (i >= 7 && axis[0] < 0) continue;
        assert_ok(ng_plot(history, in_folder("a.svg"), .log_y = i >= 7));
        char *texts = svg_texts(in_folder("a.svg")), *before = NULL;
        int tics = 0;
        for (char *line = strtok(texts, "\n"); line; before = line, line = strtok(NULL, "\n")) {
            ck_assert_msg(!before || strcmp(before, line) != 0, "%g + %g k: \"%s\" twice", axis[0],
                          axis[1], line);
            tics++;
        }
        ck_assert_msg(tics >= 6, "%g + %g k: %d texts", axis[0], axis[1], tics);
        free(texts);
    }
}

/* A diverged run does not take the others' figure away; the key says what it lacks. */
START_TEST(diverged_runs_are_named)
{
    static const char *const names[] = {"no norm", "LayerNorm", "BatchNorm"};
    ng_history *sum[4] = {NULL};
    if (!has_gnuplot()) return;
    for (int k = 0; k < 3; k++) {
        ng_history_block(history, names[k]);
        for (int step = 0; step < 5; step++) {
            ng_history_log(history, "loss", step, k > 0 ? exp(-k * step) : (double)NAN);
            ng_history_log(history, "accuracy", step, k > 1 ? 0 : 0.5);
        }
        sum[k] = own(ng_history_summary_new(&history, 1, .block = names[k]));
    }
    static const char *const loss[] = {"loss", NULL};
    assert_ok(ng_plot(history, in_folder("a.svg"), .log_y = true, .series = loss));
    ck_assert(svg_has(in_folder("a.svg"), "no norm, no value of loss"));
    ck_assert(svg_has(in_folder("a.svg"), "LayerNorm") && svg_has(in_folder("a.svg"), "BatchNorm"));
    assert_ok(ng_plot(sum[0], in_folder("a.svg"), .histories = sum + 1, .series = loss));
    ck_assert(svg_has(in_folder("a.svg"), "no norm, no value of loss")); /* not "a test, no norm" */
    ck_assert(svg_has(in_folder("a.svg"), "LayerNorm") && svg_has(in_folder("a.svg"), "BatchNorm"));
    assert_ok(ng_plot(history, in_folder("a.svg"), .log_y = true, .panels = true));
    ck_assert(svg_has(in_folder("a.svg"), "no norm, no value of loss"));
    ck_assert(svg_has(in_folder("a.svg"), "BatchNorm, no value of accuracy"));
    assert_ok(ng_plot(sum[0], in_folder("a.svg"), .panels = true)); /* one panel is empty */
    ck_assert(svg_has(in_folder("a.svg"), "accuracy"));
    assert_refused(ng_plot(sum[0], in_folder("a.svg"), .series = loss));
}

/* Every pair of numbers has a panel. */
START_TEST(every_pair_of_numbers_is_drawn)
{
    static const double ends[] = {
        0,          1,       1e-160, 1e160,  1e300,  1e301,    1.7e308,
        1e-300,     -1e-160, -1,     -1e300, -1e301, -1.7e308, (double)INFINITY,
        (double)NAN};
    enum { ENDS = sizeof ends / sizeof *ends };
    if (!has_gnuplot()) return;
    for (int i = 0; i < ENDS * ENDS; i++) {
        char name[16];
        snprintf(name, sizeof name, "s%d", i);
        ng_history_log_at(history, name, ends[i / ENDS], ends[i % ENDS]);
        ng_history_log_at(history, name, ends[i % ENDS], ends[i / ENDS]);
    }
    for (int log = 0; log < 4; log++)
        assert_ok(ng_plot(history, in_folder("a.svg"), .panels = true, .log_y = log & 1,
                          .log_x = log & 2));
}

/* The mean of the last three values; an outlier leaves no trace, and NaN begins anew. */
START_TEST(smooth_is_a_running_mean)
{
    static const double values[] = {3, 5, 1e30, 1, 2, 6, (double)NAN, 8, 4};
    if (!has_gnuplot()) return;
    for (int i = 0; i < 9; i++) ng_history_log(history, "loss", 10 * i, values[i]);
    for (int i = 0; i < 90; i++) ng_history_log(history, "other", i, 1);
    assert_ok(ng_plot(history, in_folder("a.svg"), .smooth = 3, .keep = true));
    tabulate();
    ck_assert(file_has(in_folder("table"), "\n0 3  i\n10 4  i\n20 3.33333e+29  i\n"));
    ck_assert(file_has(in_folder("table"), "\n50 3  i\n60  NaN  u\n70 8  i\n80 6  i\n"));
    assert_refused(ng_plot(history, in_folder("a.svg"), .smooth = -1));
    static const double gaps[] = {1, 2, 0, 4, 8, -3, 16};
    for (int i = 0; i < 7; i++) ng_history_log(history, "gaps", i, gaps[i]);
    assert_ok(ng_plot(history, in_folder("a.svg"), .series = NG_NAMES("gaps"), .smooth = 2,
                      .log_y = true, .keep = true));
    tabulate();
    ck_assert(file_has(in_folder("table"), "\n0 1  i\n1 1.5  i\n2  NaN  u\n3 4  i\n4 6  i\n"
                                           "5  NaN  u\n6 16  i\n"));
}

/* NaN in the numbers interrupts the curve and its band. */
START_TEST(nan_interrupts_line_and_band)
{
    if (!has_gnuplot()) return;
    for (int step = 0; step < 6; step++) {
        const bool gap = step == 2 || step == 3 || step == 5;
        ng_history_log(history, "a", step, gap ? (double)NAN : step);
        ng_history_log(history, "a_low", step, gap ? (double)NAN : step - 1);
        ng_history_log(history, "a_high", step, step + 1);
    }
    assert_ok(ng_plot(history, in_folder("a.svg"), .band = true, .keep = true));
    tabulate();
    ck_assert(file_has(in_folder("table"), "\n1 0 2  i\n2  NaN"));
    ck_assert(file_has(in_folder("table"), "\n1 1  i\n2  NaN  u\n3  NaN  u\n4 4  i\n"));
    assert_ok(ng_plot(history, in_folder("a.svg"), .log_y = true, .keep = true));
    tabulate();
    ck_assert(file_has(in_folder("table"), "\n0  NaN  u\n1 1  i\n"));
    ng_history_log(history, "a_low", 1, (double)NAN); /* only the band */
    assert_ok(ng_plot(history, in_folder("a.svg"), .band = true, .keep = true));
    tabulate();
    ck_assert(file_has(in_folder("table"), "\n0 -1 1  i\n1  NaN"));
    ck_assert(file_has(in_folder("table"), "\n0 0  i\n1 1  i\n"));
}

START_TEST(plot_as_text_goes_to_standard_output)
{
    if (!has_gnuplot()) return;
    log_loss();
    ng_history_log(history, "loss", 20, 1e-9);
    fflush(stdout);
    const int before = dup(STDOUT_FILENO);
    ck_assert(freopen(in_folder("out"), "w", stdout) != NULL);
    const ng_status status = ng_plot(history, "-", .width = 60, .height = 20, .log_y = true);
    fflush(stdout);
    dup2(before, STDOUT_FILENO), close(before);
    ck_assert_int_eq(status, NG_OK);
    ck_assert(file_has(in_folder("out"), "loss"));
    ck_assert(file_has(in_folder("out"), "step"));
    ck_assert(file_has(in_folder("out"), "1e-4") && !file_has(in_folder("out"), "10^"));
    size_t size;
    char *text = get_file(in_folder("out"), &size);
    ck_assert(text[size - 1] == '\n');
    free(text);
}

START_TEST(plot_says_what_is_wrong_with_the_data)
{
    static const char *const none[] = {"accuracy", NULL}, *const minus[] = {"minus", NULL};
    const char *path = put_text("a.svg", "the old one");
    assert_refused(ng_plot(history, path));
    ng_history_log(history, "loss", 1, (double)NAN);
    assert_refused(ng_plot(history, path));
    log_loss();
    assert_refused(ng_plot(history, path, .series = none));
    for (int i = -3; i < 1; i++) ng_history_log(history, "minus", i, i);
    assert_refused(ng_plot(history, path, .series = minus, .log_y = true));
    assert_refused(ng_plot(history, path, .series = minus, .log_x = true));
    assert_refused(ng_plot(history, "a.gif"));
    assert_refused(ng_plot(history, path, .width = -1));
    assert_refused(ng_plot(history, "-", .keep = true));
    assert_refused(ng_plot(history, path, .live = true));
    assert_refused(ng_plot_watch(history, path));
    for (int i = 0; i < 2; i++)
        ng_history_log(history, i == 0 ? "0/gradient" : "0/weight", 1, (double)NAN);
    assert_refused(ng_plot_watch(history, path));
    ck_assert(file_has(path, "the old one"));
}

START_TEST(plot_says_what_is_wrong_with_the_system)
{
    char *path = strdup(getenv("PATH"));
    log_loss();
    unsetenv("DISPLAY"), unsetenv("WAYLAND_DISPLAY");
    assert_fails(ng_plot(history, NULL), NG_EIO);
    setenv("PATH", in_folder(""), 1);
    assert_fails(ng_plot(history, in_folder("a.svg")), NG_EIO);
    assert_fails(ng_plot(history, "-", .live = true), NG_EIO);
    const char *fake = put_text("gnuplot", "#!/bin/sh\necho 'line 3: a reason' >&2\nexit 1\n");
    chmod(fake, 0700);
    assert_fails(ng_plot(history, in_folder("a.svg")), NG_EIO);
    put_text("gnuplot", "#!/bin/sh\nread line\necho half\nkill -9 $$\n");
    assert_fails(ng_plot(history, in_folder("a.svg")), NG_EIO);
    ck_assert(access(in_folder("a.svg"), F_OK) != 0);
    setenv("PATH", path, 1);
    free(path);
    if (has_gnuplot()) assert_fails(ng_plot(history, in_folder("none/a.svg")), NG_EIO);
}

START_TEST(plot_without_memory_leaves_the_old_figure)
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
START_TEST(plot_without_the_system_leaves_the_old_figure)
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

static int standard_output;

static void catch_output(void)
{
    fflush(stdout);
    standard_output = dup(STDOUT_FILENO);
    ck_assert(freopen(in_folder("out"), "w", stdout) != NULL);
}

static void release_output(void)
{
    fflush(stdout);
    dup2(standard_output, STDOUT_FILENO), close(standard_output);
}

/* Draws a live figure after each step; the texts of a call are gone after it. */
static ng_status train_live(int steps)
{
    ng_status status = NG_OK;
    for (int step = 0; step < steps && status == NG_OK; step++) {
        char title[20];
        snprintf(title, sizeof title, "step %d", step);
        ng_history_log(history, "loss", step, 1.0 / (step + 1));
        status = ng_plot(history, "-", .live = true, .width = 60, .height = 20, .title = title,
                         .series = NG_NAMES("loss"));
    }
    return status;
}

/* Few figures of many steps; the last one shows what was logged last. */
START_TEST(live_shows_the_last_state)
{
    if (!has_gnuplot()) return;
    catch_output();
    const ng_status status = train_live(100);
    ng_history_free(history); /* waits for gnuplot */
    release_output();
    history = ng_history_new("another");
    assert_ok(status);
    size_t size;
    char *text = get_file(in_folder("out"), &size);
    ck_assert(size > 1000 && size < 10000 && strstr(text, "loss"));
    ck_assert(strstr(text, "80"));
    free(text);
}

/* A gnuplot that dies is an error that says why, once; then another one is started. */
START_TEST(live_notices_that_gnuplot_has_died)
{
    char *path = strdup(getenv("PATH"));
    const char *fake = put_text("gnuplot", "#!/bin/sh\necho 'no terminal' >&2\nexit 1\n");
    chmod(fake, 0700);
    setenv("PATH", in_folder(""), 1);
    catch_output();
    const ng_status begun = train_live(1);
    sleep_for(0.6);
    const ng_status status = train_live(1);
    const bool says_why = strstr(ng_error_text(), "no terminal") != NULL;
    ng_clear_error();
    setenv("PATH", path, 1);
    const ng_status after = has_gnuplot() ? train_live(1) : NG_OK;
    ng_history_free(history);
    release_output();
    history = ng_history_new("another");
    free(path);
    ck_assert(begun == NG_OK && status == NG_EIO && says_why && after == NG_OK);
}

/* gnuplot ends with a program that does not free the history, and takes the file along. */
START_TEST(live_ends_with_the_program)
{
    if (!has_gnuplot()) return;
    const int files = count_figures();
    const pid_t child = fork();
    if (child == 0) {
        catch_output();
        _exit(train_live(1) == NG_OK ? 0 : 1);
    }
    int state, left = 0;
    ck_assert(waitpid(child, &state, 0) == child && state == 0);
    for (int i = 0; i < 50 && (left = count_figures() - files) > 0; i++) sleep_for(0.1);
    ck_assert_int_eq(left, 0);
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

START_TEST(watch_logs_what_the_layers_compute)
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
    assert_close(logged("2.ReLU/mean"), sum / 80, 1e-5);
    assert_close(logged("2.ReLU/deviation"), sqrt(squares / 80 - pow(sum / 80, 2)), 1e-5);
    assert_close(logged("2.ReLU/zeros"), zeros / 80, 1e-6);
    assert_near(logged("4.Tanh/saturated"), ends / 40, 1e-6);
    const double weight = sqrt(norm_of(w.tensor, NULL) + norm_of(b.tensor, NULL));
    const double update = sqrt(norm_of(w.tensor, was) + norm_of(b.tensor, bias));
    assert_close(logged("0.Linear/weight"), weight, 1e-5);
    assert_close(logged("0.Linear/update"), update, 1e-4);
    assert_close(logged("0.Linear/ratio"), update / weight, 1e-4);
    assert_close(logged("0.Linear/gradient"), update / 0.1, 1e-4);
    if (!has_gnuplot()) return;
    assert_ok(ng_plot_watch(history, in_folder("l.png")));
    ck_assert(file_has(in_folder("l.png"), "PNG"));
    assert_ok(ng_plot_watch(history, in_folder("l.svg")));
    ck_assert(svg_has(in_folder("l.svg"), "1.LayerNorm"));
    ck_assert_int_eq(ng_plot_watch(history, "-"), NG_EVALUE);
    assert_refused(ng_plot(history, in_folder("a.svg")));
    log_loss();
    assert_ok(ng_plot(history, in_folder("a.svg"), .keep = true));
    ck_assert(draws("loss") && !file_has(in_folder("a.gp"), "(of(1, '1.LayerNorm"));
}

/* A series is known by its kind, not by its name: one call is enough, also after a file. */
START_TEST(watched_series_are_no_curves)
{
    ng_module *net = mlp();
    ng_tensor *x = own(ng_ones_new(NG_F32, NG_SHAPE(3, 6)));
    assert_ok(ng_watch(net, history, 0));
    assert_refused(ng_plot_watch(history, in_folder("l.svg"))); /* of weights alone */
    log_loss();
    assert_ok(ng_backward(tape, ng_mean(tape, ng_forward(net, tape, x))));
    assert_ok(ng_watch(net, history, 1));
    assert_ok(ng_history_write(history, in_folder("w.dat")));
    ng_history *again = own(ng_history_read(in_folder("w.dat")));
    if (!has_gnuplot()) return;
    for (int i = 0; i < 2; i++) {
        ng_history *h = i == 0 ? history : again;
        assert_ok(ng_plot(h, in_folder("a.svg"), .keep = true));
        ck_assert(draws("loss") && !file_has(in_folder("a.gp"), "(of(1, '0.Linear"));
        assert_ok(ng_plot_watch(h, in_folder("l.svg")));
    }
}

/* Weights and updates of any size that floats have. */
START_TEST(watched_norms_have_the_range_of_floats)
{
    static const double sizes[] = {1, 1e30, 1e-30};
    for (int i = 0; i < 3; i++) {
        ng_tensor *w = ng_full_new(NG_F32, NG_SHAPE(3), sizes[i]);
        ng_module *net = own(ng_parameters_new(NG_TENSORS(w)));
        assert_ok(ng_watch(net, history, 2));
        for (int k = 0; k < 3; k++) assert_ok(ng_set(w, k, 3 * sizes[i]));
        assert_ok(ng_watch(net, history, 3));
        assert_close(logged("Parameters/weight"), 3 * sizes[i] * sqrt(3), 1e-6);
        assert_close(logged("Parameters/update"), 2 * sizes[i] * sqrt(3), 1e-6);
        ng_history_free(history);
        history = ng_history_new("the next");
    }
}

START_TEST(two_networks_need_two_blocks)
{
    ng_module *net[] = {mlp(), mlp()};
    for (int i = 0; i < 2; i++) assert_ok(ng_watch(net[i], history, -1));
    assert_ok(ng_watch(net[0], history, 0));
    assert_refused(ng_watch(net[1], history, 0));
    assert_ok(ng_watch(net[0], history, 1));
    ng_history_block(history, "another");
    assert_ok(ng_watch(net[1], history, 0));
}

/* Outputs whose tape was reset or freed are gone; a network of one layer has its type's name. */
START_TEST(watch_forgets_what_the_tape_forgets)
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

START_TEST(watching_changes_no_bit)
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

START_TEST(watch_without_memory_gives_all_back)
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

Suite *plot_suite(void)
{
    return suite_of(
        "plot", begin, end, log_at_keeps_every_digit_of_x, log_at_refuses_what_is_no_place,
        summary_has_median_quartiles_and_extremes, summary_counts_nan_as_the_worst,
        steps_in_any_order, summary_without_memory_gives_all_back, plot_draws_each_kind_of_file,
        texts_are_drawn_as_they_are, texts_that_are_no_text_are_replaced,
        no_name_vanishes_from_the_key, kept_script_draws_the_same_figure, every_series_is_drawn,
        statistics_of_a_summary_are_no_curves, each_history_has_a_name, tics_can_be_told_apart,
        diverged_runs_are_named, every_pair_of_numbers_is_drawn, smooth_is_a_running_mean,
        nan_interrupts_line_and_band, plot_as_text_goes_to_standard_output,
        plot_says_what_is_wrong_with_the_data, plot_says_what_is_wrong_with_the_system,
        plot_without_memory_leaves_the_old_figure, plot_without_the_system_leaves_the_old_figure,
        live_shows_the_last_state, live_notices_that_gnuplot_has_died, live_ends_with_the_program,
        watch_logs_what_the_layers_compute, watched_series_are_no_curves,
        watched_norms_have_the_range_of_floats, two_networks_need_two_blocks,
        watch_forgets_what_the_tape_forgets, watching_changes_no_bit,
        watch_without_memory_gives_all_back);
}
