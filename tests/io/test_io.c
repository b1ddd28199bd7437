/* Readers of data, data sets, histories, and the replacement of files. */
#include "io/file.h"
#include "support/folder.h"
#include "support/support.h"
#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- Files of a case ---- */

static const char *file_of(const char *text) { return put_text("it.csv", text); }

static const char *content_of(const char *path)
{
    static char text[4096];
    FILE *file = fopen(path, "rb");
    ck_assert_msg(file != NULL, "%s is not there", path);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

static int unfinished_files(void) { return files_named(".tmp"); }

static const char *content_of_old(const char *path)
{
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    fputs("old", file);
    ck_assert_int_eq(fclose(file), 0);
    return path;
}

/* ---- CSV ---- */

static void assert_reads(ng_dataset *dataset, const double *x, int64_t rows, int64_t columns,
                         const double *y)
{
    assert_ok(dataset);
    const ng_shape shape = ng_shape_of(ng_dataset_x(dataset));
    ck_assert_int_eq(shape.rank, 2);
    ck_assert_int_eq(shape.dim[0], rows);
    ck_assert_int_eq(shape.dim[1], columns);
    for (int64_t i = 0; i < rows * columns; i++)
        ck_assert_double_eq(ng_get(ng_dataset_x(dataset), i), x[i]);
    for (int64_t i = 0; i < rows; i++)
        ck_assert_int_eq(ng_data_i64(ng_dataset_y(dataset))[i], (int64_t)y[i]);
    ng_dataset_free(dataset);
    ck_assert(!ng_failed());
}

#define ROWS(...)                                                                                  \
    (const double[]) { __VA_ARGS__ }

START_TEST(csv_options_say_what_is_read)
{
    assert_reads(ng_dataset_read_csv(file_of("1,2.5,7\n-3,4e-1,0\n")),
                 ROWS(1, 2.5, -3, (double)0.4f), 2, 2, ROWS(7, 0));
    assert_reads(ng_dataset_read_csv(file_of("8,4\n"), .scale = 0.25), ROWS(2), 1, 1, ROWS(4));
    assert_reads(ng_dataset_read_csv(file_of("a;label\n1;2\n"), .header = true, .delimiter = ';'),
                 ROWS(1), 1, 1, ROWS(2));
    assert_reads(ng_dataset_read_csv(file_of("1\t2\n"), .delimiter = '\t'), ROWS(1), 1, 1, ROWS(2));
    /* Below 2^53 every whole number is a double, and no other becomes it. */
    assert_reads(ng_dataset_read_csv(file_of("1,9007199254740991\n2,-9007199254740991\n")),
                 ROWS(1, 2), 2, 1, ROWS(9007199254740991, -9007199254740991));
}

START_TEST(csv_label_may_be_any_column)
{
    const char *path = file_of("1,2,3\n4,5,6\n");
    assert_reads(ng_dataset_read_csv(path, .label_column = 1), ROWS(2, 3, 5, 6), 2, 2, ROWS(1, 4));
    assert_reads(ng_dataset_read_csv(path, .label_column = 2), ROWS(1, 3, 4, 6), 2, 2, ROWS(2, 5));
    assert_reads(ng_dataset_read_csv(path, .label_column = 3), ROWS(1, 2, 4, 5), 2, 2, ROWS(3, 6));
}

START_TEST(csv_without_label_is_all_features_in_every_spelling)
{
    ng_dataset *data =
        own(ng_dataset_read_csv(file_of("+1,.5,5.,-0,1E2,1e+2,1e-400,0.10000000000000001\n"),
                                .no_label = true, .dtype = NG_F64));
    assert_values(ng_dataset_x(data), 0, 1, 0.5, 5, 0, 100, 100, 0, 0.1);
    ck_assert_int_eq(ng_dtype_of(ng_dataset_x(data)), NG_F64);
    ck_assert_ptr_eq(ng_dataset_y(data), NG_NONE);
}

START_TEST(csv_last_columns_may_be_targets)
{
    const char *path = file_of("1,2.5,-7.25\n3,4,0.5\n");
    ng_dataset *data = ng_dataset_read_csv(path, .targets = 2, .scale = 2, .dtype = NG_F64);
    assert_ok(data);
    assert_values(ng_dataset_x(data), 0, 2, 6);
    assert_values(ng_dataset_y(data), 0, 2.5, -7.25, 4, 0.5);
    ck_assert_int_eq(ng_dim(ng_dataset_y(data), 1), 2);
    ng_dataset_free(data);
    assert_fails(ng_dataset_read_csv(path, .targets = 3), NG_EPARSE);
    assert_refused(ng_dataset_read_csv(path, .targets = 1, .no_label = true));
    assert_fails(ng_dataset_read_csv(file_of("1,1e300\n"), .targets = 1), NG_EPARSE);
}

START_TEST(folds_are_all_samples_once)
{
    ng_tensor *x = own(ng_zeros_new(NG_F64, NG_SHAPE(11, 1))),
              *y = own(ng_zeros_new(NG_I64, NG_SHAPE(11)));
    for (int i = 0; i < 11; i++) ng_set(x, i, i), ng_set(y, i, 2 * i);
    ng_dataset *data = own(ng_dataset_from(x, y)), *train, *validate;
    int seen[11] = {0};
    for (int fold = 0; fold < 4; fold++) {
        assert_ok(ng_dataset_fold_new(data, fold, 4, 7, &train, &validate));
        const int64_t count = ng_dataset_count(validate);
        ck_assert(count == 3 || count == 2);
        ck_assert_int_eq(count + ng_dataset_count(train), 11);
        double sum = 0;
        for (int64_t i = 0; i < count; i++) {
            const double value = ng_get(ng_dataset_x(validate), i);
            ck_assert_double_eq(ng_get(ng_dataset_y(validate), i), 2 * value);
            seen[(int)value]++, sum += value;
        }
        for (int64_t i = 0; i < 11 - count; i++) sum += ng_get(ng_dataset_x(train), i);
        ck_assert_double_eq(sum, 55);
        ng_dataset_free(train), ng_dataset_free(validate);
    }
    for (int i = 0; i < 11; i++) ck_assert_int_eq(seen[i], 1);
    assert_refused(ng_dataset_fold_new(data, 4, 4, 7, &train, &validate));
    assert_refused(ng_dataset_fold_new(data, 0, 12, 7, &train, &validate));

    const int64_t numbers[] = {10, 0, 10};
    ng_dataset *some = own(ng_dataset_subset_new(data, numbers, 3));
    assert_values(ng_dataset_x(some), 0, 10, 0, 10);
    assert_values(ng_dataset_y(some), 0, 20, 0, 20);
    assert_refused(ng_dataset_subset_new(data, (const int64_t[]){11}, 1));
}

static void assert_dat(const ng_tensor *x, const char *expected)
{
    assert_ok(ng_tensor_write_dat(x, in_folder("it.dat")));
    ck_assert_str_eq(content_of(in_folder("it.dat")), expected);
}

START_TEST(a_tensor_is_written_as_gnuplot_reads_it)
{
    ng_tensor *x = own(ng_tensor_from(NG_F64, NG_SHAPE(2, 2, 1, 2),
                                      NG_VALUES(1, 0.1, (double)NAN, 4, 5, 6, 7, -8e300)));
    ng_tape *tape = own(ng_tape_new());
    assert_dat(ng_reshape(tape, x, NG_SHAPE(4, 2)),
               "1 0.10000000000000001\nnan 4\n5 6\n7 -8.0000000000000004e+300\n");
    assert_dat(ng_reshape(tape, ng_slice(tape, x, 0, 0, 1), NG_SHAPE(2, 1, 2)),
               "1 0.10000000000000001\n\nnan 4\n");
    ng_tensor *three = ng_arange(tape, NG_F32, 1, 4, 1);
    assert_dat(three, "1\n2\n3\n");
    ng_tensor *whole = ng_full(tape, NG_I64, NG_SHAPE(2), 7);
    ng_data_i64(whole)[1] = INT64_MIN + 1;
    assert_dat(whole, "7\n-9223372036854775807\n");
    assert_fails(ng_tensor_write_dat(three, "/nowhere/at/all"), NG_EIO);
}

START_TEST(csv_any_line_end_and_blank_lines_are_read_alike)
{
    static const char *const texts[] = {"1,2\n3,4\n",
                                        "1,2\n3,4",
                                        "1,2\r\n3,4\r\n",
                                        "1,2\r3,4\r",
                                        "\n\n1,2\n \t \n\r\n3,4\n\n\n",
                                        "\xef\xbb\xbf\x31,2\n3,4\n",
                                        " 1 ,\t2\n3, 4 \n"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        assert_reads(ng_dataset_read_csv(file_of(texts[i])), ROWS(1, 3), 2, 1, ROWS(2, 4));
}

/* The program's locale has no effect on numbers in files and texts, and stays as it is. */
START_TEST(numbers_have_a_point_in_any_locale)
{
    const bool commas = write_commas();
    assert_reads(ng_dataset_read_csv(file_of("2.5,1\n")), ROWS(2.5), 1, 1, ROWS(1));
    ng_history *history = own(ng_history_new("locale"));
    ng_history_log(history, "x", 0, 0.5);
    assert_ok(ng_history_write(history, in_folder("it.dat")));
    ck_assert_ptr_nonnull(strstr(content_of(in_folder("it.dat")), "0.5"));
    FILE *file = fopen(in_folder("printed"), "w");
    ng_fprint(file, own(ng_tensor_from(NG_F64, NG_SHAPE(2), NG_VALUES(0.5, 2.25))));
    ng_fprint_summary(file, own(ng_sequential_new(ng_dropout_new(0.25), ng_elu_new(1.5))));
    ck_assert_int_eq(fclose(file), 0);
    const char *printed = content_of(in_folder("printed"));
    ck_assert(strstr(printed, "[ 0.5  2.25]") && strstr(printed, "1.5"));
    ng_fail(NG_EVALUE, "%g", 2.5);
    assert_error(NG_EVALUE, "2.5");
    char half[8];
    snprintf(half, sizeof half, "%.1f", 0.5);
    if (commas) ck_assert_str_eq(half, "0,5");
    setlocale(LC_NUMERIC, "C");
}

/* Texts and the place that their error names. Lines and columns are counted from 1. */
static const struct {
    const char *text, *place;
} bad_csv[] = {
    {"1,2\n3,x\n", "line 2: column 2"},
    {"1,2\r\n\r\n3,x\r\n", "line 3: column 2"},
    {"1,,2\n", "line 1: column 2"},
    {"1 2,3\n", "column 1"},
    {"nan,1\n", "it.csv"},
    {"1,2\n-Inf,1\n", "it.csv"},
    {"1;2;3\n", "it.csv"},
    {"1;2,3\n", "it.csv"},
    {"1\t2,3\n", "it.csv"},
    {"0x10,1\n", "it.csv"},
    {"1e,1\n", "it.csv"},
    {".,1\n", "it.csv"},
    {"1.2.3,1\n", "it.csv"},
    {"\"1\",2\n", "it.csv"},
    {"\x01\x80,2\n", "it.csv"},
    {"1e999,1\n", "column 1"},
    {"1e39,1\n", "column 1"},
    {"1,2.5\n", "column 2"},
    {"1,9007199254740993\n", "it.csv"},
    {"a;b,label\n1,2\n", "it.csv"},
    {"\n ,\n1,2\n", "line 2: column 1"},
    {"1,2\n1,2,3\n", "line 2"},
    {"1,2,3\n1,2\n", "line 2"},
    {"5\n", "it.csv"},
    {"", "it.csv"},
    {"\n \n", "it.csv"},
    {"wordswordswordswordswordswordswordswordswords,1\n", "it.csv"},
};

START_TEST(csv_bad_content_is_named_by_line_and_column)
{
    const char *path = file_of(bad_csv[_i].text);
    assert_fails(ng_dataset_read_csv(path), NG_EPARSE, bad_csv[_i].place);
    ck_assert_int_eq(allocations_live(), 0);
}

START_TEST(csv_settings_that_do_not_fit_are_refused)
{
    const char *path = file_of("a,b\nc,d\n");
    ck_assert_ptr_null(ng_dataset_read_csv(path, .header = true));
    ck_assert_ptr_null(strstr(ng_error_text(), ".header"));
    assert_error(NG_EPARSE, "it.csv: line 2: column 1");
    assert_fails(ng_dataset_read_csv(file_of("a,b\n"), .header = true), NG_EPARSE);
    file_of("1,2\n");
    assert_fails(ng_dataset_read_csv(path, .label_column = 3), NG_EPARSE);
    assert_refused(ng_dataset_read_csv(path, .label_column = -1));
    assert_refused(ng_dataset_read_csv(path, .label_column = 1, .no_label = true));
    assert_refused(ng_dataset_read_csv(path, .delimiter = 'e'));
    assert_refused(ng_dataset_read_csv(path, .scale = HUGE_VAL));
    assert_fails(ng_dataset_read_csv(path, .dtype = NG_I64), NG_EDTYPE);
}

START_TEST(csv_zero_byte_is_no_end_of_the_file)
{
    const char *path = put_file("it.csv", "1,2\n3\0,4\n", 9);
    assert_fails(ng_dataset_read_csv(path), NG_EPARSE);
}

/* As in `program <(command)`: the size of a pipe is not known. */
START_TEST(csv_is_read_from_a_pipe_to_its_end)
{
    enum { ROWS_OF_PIPE = 20000 };
    int ends[2];
    char path[32];
    ck_assert_int_eq(pipe(ends), 0);
    snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
    fflush(NULL);
    const pid_t writer = fork();
    ck_assert_int_ge(writer, 0);
    if (writer == 0) {
        sleep_for(0.02); /* the reader finds it empty first */
        FILE *file = fdopen(ends[1], "w");
        for (int i = 0; file && i < ROWS_OF_PIPE; i++) fprintf(file, "%d,1\n", i);
        _exit(file && fclose(file) == 0 ? 0 : 1);
    }
    close(ends[1]);
    ng_dataset *data = ng_dataset_read_csv(path);
    int status;
    ck_assert_int_eq(waitpid(writer, &status, 0), writer);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_ok(data);
    ck_assert_int_eq(ng_dataset_count(data), ROWS_OF_PIPE);
    ck_assert_double_eq(ng_get(ng_dataset_x(data), ROWS_OF_PIPE - 1), ROWS_OF_PIPE - 1);
    ng_dataset_free(data);
    close(ends[0]);
}

START_TEST(unreadable_files_are_named_with_the_systems_reason)
{
    assert_fails(ng_dataset_read_csv(in_folder("none.csv")), NG_EIO);
    assert_fails(ng_dataset_read_csv(in_folder(".")), NG_EIO);
    assert_fails(ng_dataset_read_idx(in_folder("none.idx"), NULL), NG_EIO);
}

/* 1797 lines of 64 pixels and a label; the first image is a 0. The sum was taken with awk. */
START_TEST(digits_are_what_their_readme_says)
{
    ng_dataset *digits = own(ng_dataset_read_csv("examples/data/digits.csv"));
    const ng_tensor *x = ng_dataset_x(digits), *y = ng_dataset_y(digits);
    ck_assert_int_eq(ng_dataset_count(digits), 1797);
    ck_assert_int_eq(ng_dim(x, 1), 64);
    double sum = 0;
    for (int64_t i = 0; i < ng_size(x); i++) sum += ng_get(x, i);
    ck_assert_double_eq(sum, 561718);
    ck_assert_int_eq(ng_data_i64(y)[0], 0);
}

/* ---- IDX ---- */

static const unsigned char images[] = {0, 0, 8, 3,  0,   0,   0,   2,   0, 0, 0, 2, 0, 0,
                                       0, 3, 0, 51, 102, 153, 204, 255, 1, 2, 3, 4, 5, 6};
static const unsigned char labels[] = {0, 0, 8, 1, 0, 0, 0, 2, 7, 9};

START_TEST(idx_images_and_labels_are_read)
{
    const char *x = put_file("images", images, sizeof images);
    const char *y = put_file("labels", labels, sizeof labels);
    ng_dataset *data = ng_dataset_read_idx(x, y, .dtype = NG_F64);
    assert_ok(data);
    const ng_shape shape = ng_shape_of(ng_dataset_x(data));
    ck_assert_int_eq(shape.rank, 3);
    ck_assert_int_eq(shape.dim[1], 2);
    ck_assert_int_eq(shape.dim[2], 3);
    /* a product with 1/255 in place of a quotient: two roundings */
    assert_values(ng_dataset_x(data), 5e-16, 0, 0.2, 0.4, 0.6, 0.8, 1, 1 / 255., 2 / 255., 3 / 255.,
                  4 / 255., 5 / 255., 6 / 255.);
    assert_values(ng_dataset_y(data), 0, 7, 9);
    ng_dataset_free(data);

    data = ng_dataset_read_idx(x, NULL, .scale = 1);
    assert_ok(data);
    ck_assert_ptr_eq(ng_dataset_y(data), NG_NONE);
    ck_assert_double_eq(ng_at(ng_dataset_x(data), 0, 1, 2), 255);
    ng_dataset_free(data);
}

static void assert_bad_images(const void *bytes, size_t size)
{
    assert_fails(ng_dataset_read_idx(put_file("images", bytes, size), NULL), NG_EPARSE);
    ck_assert_int_eq(allocations_live(), 0);
}

/* Any other length, what does not fit before memory is asked for, another type. */
START_TEST(idx_files_that_are_none_are_refused)
{
    unsigned char bytes[sizeof images + 1] = {0};
    memcpy(bytes, images, sizeof images);
    for (size_t size = 0; size < sizeof images; size++) assert_bad_images(images, size);
    assert_bad_images(bytes, sizeof bytes);
    memset(bytes + 4, 0xff, 12); /* 2^96 elements */
    assert_bad_images(bytes, sizeof images);
    memcpy(bytes, images, sizeof images);
    bytes[2] = 9; /* signed bytes */
    assert_bad_images(bytes, sizeof images);
    assert_bad_images("\x1f\x8b\x08\x00 gzip", 9);
    assert_bad_images(labels, sizeof labels);
    /* 2^64 elements: 0 to a product that overflows, and as many bytes follow */
    static const unsigned char round[] = {0, 0, 8, 3, 0x80, 0, 0, 0, 0x80, 0, 0, 0, 0, 0, 0, 4};
    assert_bad_images(round, sizeof round);
}

START_TEST(idx_images_and_labels_must_be_as_many)
{
    unsigned char three[] = {0, 0, 8, 1, 0, 0, 0, 3, 7, 9, 1};
    const char *x = put_file("images", images, sizeof images);
    assert_fails(ng_dataset_read_idx(x, put_file("labels", three, sizeof three)), NG_ESHAPE);
    assert_fails(ng_dataset_read_idx(x, x), NG_EPARSE);
    ng_dataset *bright = own(ng_dataset_read_idx(x, NULL, .scale = 1e30));
    assert_close(ng_get(ng_dataset_x(bright), 5), 255e30, 1e-6);
    assert_refused(ng_dataset_read_idx(x, NULL, .scale = -1e38));
    assert_refused(ng_dataset_read_idx(x, NULL, .scale = nan("")));
    assert_fails(ng_dataset_read_idx(x, NULL, .dtype = NG_I64), NG_EDTYPE);
}

/* ---- Data sets ---- */

/* `count` samples of two features: sample i is (i, -i), its label i. */
static ng_dataset *numbered(int64_t count)
{
    ng_tensor *x = ng_zeros_new(NG_F32, NG_SHAPE(count, 2)),
              *y = ng_zeros_new(NG_I64, NG_SHAPE(count));
    for (int64_t i = 0; i < count; i++) {
        ng_set(x, 2 * i, (double)i);
        ng_set(x, 2 * i + 1, (double)-i);
        ng_set(y, i, (double)i);
    }
    ng_dataset *data = ng_dataset_from(x, y);
    ng_tensor_free(x), ng_tensor_free(y);
    assert_ok(data);
    return data;
}

/* Writes the numbers of an epoch's samples to `order` and returns how many there are. */
static int64_t epoch_of(ng_dataset *data, int64_t size, bool drop_last, int64_t *order)
{
    ng_tape *tape = ng_tape_new();
    ng_batch batch;
    int64_t seen = 0;
    for (int64_t i = 0; ng_dataset_batch(data, tape, i, size, &batch, .drop_last = drop_last);
         i++) {
        ck_assert_int_eq(ng_dim(batch.x, 0), batch.size);
        ck_assert_int_eq(ng_size(batch.y), batch.size);
        for (int64_t k = 0; k < batch.size; k++) {
            order[seen++] = ng_data_i64(batch.y)[k];
            ck_assert_double_eq(ng_at(batch.x, k, 0), ng_get(batch.y, k));
            ck_assert_double_eq(ng_at(batch.x, k, 1), -ng_get(batch.y, k));
        }
        ng_tape_reset(tape);
    }
    ng_tape_free(tape);
    ck_assert(!ng_failed());
    return seen;
}

static void assert_each_once(const int64_t *order, int64_t count)
{
    bool seen[64] = {false};
    for (int64_t i = 0; i < count; i++) {
        ck_assert(order[i] >= 0 && order[i] < count && !seen[order[i]]);
        seen[order[i]] = true;
    }
}

START_TEST(batches_hand_out_each_sample_once)
{
    int64_t order[10];
    ng_dataset *data = own(numbered(10));
    epoch_of(data, 4, false, order);
    for (int64_t i = 0; i < 10; i++) ck_assert_int_eq(order[i], i);
    for (int64_t size = 1; size <= 12; size++) {
        ng_dataset_shuffle(data, (uint64_t)size);
        ck_assert_int_eq(epoch_of(data, size, false, order), 10);
        assert_each_once(order, 10);
        ck_assert_int_eq(epoch_of(data, size, true, order), 10 - 10 % size);
    }
}

/* A batch that is not there is zero. */
START_TEST(batch_past_the_end_is_no_error)
{
    ng_dataset *data = own(numbered(4));
    ng_tape *tape = own(ng_tape_new());
    ng_batch batch;
    ck_assert(ng_dataset_batch(data, tape, 1, 2, &batch));
    ck_assert(ng_dataset_batch(data, tape, 0, INT64_MAX, &batch));
    ck_assert_int_eq(batch.size, 4);
    const struct {
        ng_dataset *data;
        ng_tape *tape;
        int64_t index, size;
        bool drop_last;
        ng_status status;
    } none[] = {{data, tape, 2, 2, false, NG_OK},
                {data, tape, 1, 3, true, NG_OK},
                {data, tape, INT64_MAX, INT64_MAX, false, NG_OK},
                {data, tape, -1, 2, false, NG_EVALUE},
                {data, tape, 0, 0, false, NG_EVALUE},
                {NULL, tape, 0, 2, false, NG_ENULL},
                {data, NULL, 0, 2, false, NG_ENULL}};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        ck_assert(ng_dataset_batch(data, tape, 0, 2, &batch));
        ck_assert(!ng_dataset_batch(none[i].data, none[i].tape, none[i].index, none[i].size, &batch,
                                    .drop_last = none[i].drop_last));
        ck_assert(!batch.x && !batch.y && batch.size == 0);
        assert_error(none[i].status, none[i].status ? "ng_dataset_batch" : "");
    }
}

START_TEST(shuffle_depends_on_the_seed_alone)
{
    int64_t first[40], again[40], other[40];
    ng_dataset *data = own(numbered(40));
    ng_dataset_shuffle(data, 7);
    epoch_of(data, 9, false, first);
    ng_dataset_shuffle(data, 8);
    epoch_of(data, 9, false, other);
    ng_dataset_shuffle(data, 7);
    epoch_of(data, 4, false, again);
    ck_assert_mem_eq(first, again, sizeof first);
    ck_assert_mem_ne(first, other, sizeof first);
    for (int64_t i = 0; i < 40; i++) ck_assert_int_eq(ng_data_i64(ng_dataset_y(data))[i], i);
}

/* Each of the 6 orders of 3 samples is drawn 1000 times in 6000 on average, with a deviation of
 * sqrt(6000 * 1/6 * 5/6) = 29: six of those are 173. */
START_TEST(shuffle_draws_every_order_equally)
{
    int count[27] = {0};
    int64_t order[3];
    ng_dataset *data = own(numbered(3));
    for (uint64_t seed = 0; seed < 6000; seed++) {
        ng_dataset_shuffle(data, seed);
        epoch_of(data, 3, false, order);
        count[order[0] * 9 + order[1] * 3 + order[2]]++;
    }
    static const int orders[6] = {5, 7, 11, 15, 19, 21};
    for (int i = 0; i < 6; i++) ck_assert_int_le(abs(count[orders[i]] - 1000), 173);
}

START_TEST(split_is_disjoint_complete_and_of_the_seed)
{
    int64_t order[20], again[20], other[20];
    ng_dataset *data = own(numbered(20)), *a, *b;
    for (int time = 0; time < 2; time++) {
        assert_ok(ng_dataset_split_new(data, 13, 3, &a, &b));
        ck_assert_int_eq(ng_dataset_count(a), 13);
        ck_assert_int_eq(ng_dataset_count(b), 7);
        epoch_of(a, 5, false, time ? again : order);
        epoch_of(b, 5, false, (time ? again : order) + 13);
        ng_dataset_free(a), ng_dataset_free(b);
        ng_dataset_shuffle(data, 99); /* has no effect on a split */
    }
    assert_each_once(order, 20);
    ck_assert_mem_eq(order, again, sizeof order);

    assert_ok(ng_dataset_split_new(data, 13, 4, &a, &b));
    epoch_of(a, 5, false, other);
    ck_assert_mem_ne(order, other, 13 * sizeof order[0]);
    for (int i = 0; i < 4; i++) /* neither part is empty */
        assert_refused(ng_dataset_split_new(data, (const int64_t[]){-1, 0, 20, 21}[i], 0, &b, &b));
    ng_dataset_free(a), ng_dataset_free(b);
}

START_TEST(dataset_takes_any_dtype_and_targets)
{
    ng_tensor *x = ng_tensor_from(NG_I64, NG_SHAPE(2, 2), NG_VALUES(1, 2, 3, 4));
    ng_tensor *y = ng_tensor_from(NG_F64, NG_SHAPE(2, 1, 2), NG_VALUES(.1, .2, .3, .4));
    ng_dataset *data = ng_dataset_from(x, y);
    ng_tensor_free(x), ng_tensor_free(y);
    ng_tape *tape = own(ng_tape_new());
    ng_batch batch;
    assert_ok(ng_dataset_batch(data, tape, 1, 1, &batch));
    ck_assert_int_eq(ng_dtype_of(batch.x), NG_I64);
    assert_values(batch.x, 0, 3, 4);
    ck_assert_int_eq(ng_dim(batch.y, 2), 2);
    assert_values(batch.y, 0, .3, .4);
    assert_fails(ng_dataset_standardize(data, data), NG_EDTYPE);
    ng_dataset_free(data);

    data = ng_dataset_from(batch.x, NG_NONE); /* a tape's tensor is copied too */
    ng_tape_reset(tape);
    assert_ok(ng_dataset_batch(data, tape, 0, 5, &batch));
    ck_assert_ptr_eq(batch.y, NG_NONE);
    assert_values(batch.x, 0, 3, 4);
    ng_dataset_free(data);
}

START_TEST(dataset_wants_as_many_labels_as_samples)
{
    ng_tensor *x = own(ng_zeros_new(NG_F32, NG_SHAPE(3, 2))),
              *y = own(ng_zeros_new(NG_I64, NG_SHAPE(2)));
    ng_tensor *scalar = own(ng_zeros_new(NG_F32, NG_SCALAR)),
              *empty = own(ng_zeros_new(NG_F32, NG_SHAPE(0, 2)));
    assert_fails(ng_dataset_from(x, y), NG_ESHAPE);
    assert_fails(ng_dataset_from(x, scalar), NG_ESHAPE);
    assert_fails(ng_dataset_from(scalar, NG_NONE), NG_ESHAPE);
    assert_fails(ng_dataset_from(empty, NG_NONE), NG_ESHAPE);
    assert_fails(ng_dataset_from(NG_NONE, y), NG_ESHAPE);
}

static ng_dataset *of_values(ng_dtype dtype, ng_shape shape, const double *values, int64_t count)
{
    ng_tensor *x = ng_tensor_from(dtype, shape, values, count);
    ng_dataset *data = ng_dataset_from(x, NG_NONE);
    ng_tensor_free(x);
    assert_ok(data);
    return data;
}

/* [1, 3, 5] has mean 3 and deviation sqrt(8/3). 0.1 is no binary fraction: the plain sum of three
 * is rounded, and the feature must still be constant. */
START_TEST(standardized_features_have_mean_0_and_deviation_1)
{
    ng_dataset *data = of_values(NG_F64, NG_SHAPE(3, 2), NG_VALUES(1, .1, 3, .1, 5, .1));
    ng_dataset *test = of_values(NG_F64, NG_SHAPE(1, 2), NG_VALUES(7, 9));
    assert_ok(ng_dataset_standardize(test, data));
    assert_ok(ng_dataset_standardize(data, data));
    const double s = sqrt(8. / 3);
    assert_values(ng_dataset_x(data), 1e-15, -2 / s, 0, 0, 0, 2 / s, 0);
    assert_values(ng_dataset_x(test), 1e-15, 4 / s, 0);
    ng_dataset_free(data), ng_dataset_free(test);

    ng_dataset *three = own(of_values(NG_F64, NG_SHAPE(2, 3), NG_VALUES(7, 7, 7, 7, 7, 7)));
    ng_dataset *lost = own(of_values(NG_F64, NG_SHAPE(1, 3), NG_VALUES(nan(""), HUGE_VAL, 9)));
    assert_ok(ng_dataset_standardize(lost, three));
    ck_assert(isnan(ng_get(ng_dataset_x(lost), 0)));
    ck_assert_double_eq(ng_get(ng_dataset_x(lost), 1), HUGE_VAL);
    ck_assert_double_eq(ng_get(ng_dataset_x(lost), 2), 0);
}

/* A standardized reference has mean 0 and deviation 1, which would leave the test set as it is.
 * Parts of a standardized data set may be standardized again. */
START_TEST(standardize_wants_the_reference_to_be_the_last)
{
    ng_dataset *train = own(of_values(NG_F64, NG_SHAPE(3, 1), NG_VALUES(1, 3, 5))), *part, *rest;
    ng_dataset *test = own(of_values(NG_F64, NG_SHAPE(1, 1), NG_VALUES(7)));
    assert_ok(ng_dataset_standardize(train, train));
    assert_fails(ng_dataset_standardize(test, train), NG_ESTATE);
    assert_ok(ng_dataset_split_new(train, 2, 0, &part, &rest));
    assert_fails(ng_dataset_standardize(test, part), NG_ESTATE);
    assert_values(ng_dataset_x(test), 0, 7);
    assert_ok(ng_dataset_standardize(rest, part));
    assert_ok(ng_dataset_standardize(part, part));
    assert_ok(ng_dataset_standardize(train, train));
    ng_dataset_free(part), ng_dataset_free(rest);
}

/* Mean 1e6 and deviation 1 are exact, so the result is exact. */
START_TEST(standardize_keeps_the_digits_of_a_shifted_feature)
{
    ng_dataset *data =
        of_values(NG_F32, NG_SHAPE(4, 1), NG_VALUES(999999, 1000001, 1000001, 999999));
    assert_ok(ng_dataset_standardize(data, data));
    assert_values(ng_dataset_x(data), 0, -1, 1, 1, -1);
    ng_dataset_free(data);
}

START_TEST(standardize_refuses_what_has_no_statistics)
{
    ng_dataset *data = of_values(NG_F64, NG_SHAPE(2, 2), NG_VALUES(1, 2, 3, nan("")));
    ng_dataset *wide = of_values(NG_F64, NG_SHAPE(2, 3), NG_VALUES(1, 2, 3, 4, 5, 6));
    assert_refused(ng_dataset_standardize(data, data));
    ck_assert_double_eq(ng_get(ng_dataset_x(data), 0), 1);
    assert_fails(ng_dataset_standardize(data, wide), NG_ESHAPE);
    ng_dataset_free(data), ng_dataset_free(wide);

    ng_dataset *near = own(of_values(NG_F32, NG_SHAPE(2, 2), NG_VALUES(1, 1e-30, 2, 2e-30)));
    ng_dataset *far = own(of_values(NG_F32, NG_SHAPE(2, 2), NG_VALUES(3, 0, 4, -1e20)));
    assert_refused(ng_dataset_standardize(far, near));
    assert_values(ng_dataset_x(far), 0, 3, 0, 4, (double)-1e20F);
}

/* ---- History ---- */

START_TEST(history_file_is_aligned_columns)
{
    ng_history *history = ng_history_new("digits\nseed 0");
    ck_assert_int_eq(ng_history_block(history, "LayerNorm"), NG_OK);
    ng_history_log(history, "loss", 0, 2.31);
    ng_history_log(history, "loss", 10, 1.0 / 3);
    ng_history_log(history, "loss", 1, 1.02);
    ng_history_log(history, "accuracy", 1, 0.9);
    ng_history_log(history, "accuracy", 1, 0.91); /* replaces */
    ng_history_log(history, "accuracy", -5, 1e-30);
    ng_history_block(history, "nothing is logged here");
    ng_history_block(history, "RMSNorm");
    ng_history_log(history, "loss", 0, nan(""));
    ng_history_log(history, "loss", 1, HUGE_VAL);
    ng_history_log(history, "loss", INT64_MAX, -HUGE_VAL);
    assert_ok(ng_history_write(history, in_folder("it.dat")));
    ng_history_free(history);
    char expected[512];
    snprintf(expected, sizeof expected,
             "# what: digits seed 0; normgrad %s\n"
             "\n"
             "# LayerNorm\n"
             "step      loss          accuracy\n"
             "-5        ?             1e-30\n"
             "0         2.31          ?\n"
             "1         1.02          0.91\n"
             "10        0.333333333   ?\n"
             "\n\n"
             "# RMSNorm\n"
             "step      loss\n"
             "0         NaN\n"
             "1         Inf\n"
             "9223372036854775807  -Inf\n",
             ng_version());
    ck_assert_str_eq(content_of(in_folder("it.dat")), expected);
}

START_TEST(history_gives_floats_back_exactly)
{
    ng_rng rng = ng_rng_seeded(5);
    ng_history *history = ng_history_new("floats");
    float values[50];
    for (int i = 0; i < 50; i++) {
        values[i] = (float)(ng_rng_normal(&rng) * pow(10, (double)ng_rng_below(&rng, 60) - 30));
        ng_history_log(history, "x", i, (double)values[i]);
    }
    assert_ok(ng_history_write(history, in_folder("it.dat")));
    ng_history_free(history);
    const char *line = strstr(content_of(in_folder("it.dat")), "step");
    for (int i = 0; i < 50; i++) {
        line = strchr(line, '\n') + 1;
        double step, value;
        ck_assert_int_eq(sscanf(line, "%lf %lf", &step, &value), 2);
        ck_assert_double_eq(step, i);
        ck_assert((float)value == values[i]);
    }
}

START_TEST(history_refuses_names_that_break_the_file)
{
    static const char *const names[] = {"", "a b", "a\n", "a#", "\xc3\xa4", "step"};
    ng_history *history = own(ng_history_new("names"));
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        assert_refused(ng_history_log(history, names[i], 0, 1));
    ck_assert_int_eq(ng_history_log(history, "train_loss-2.x", 0, 1), NG_OK);
    ck_assert_int_eq(ng_history_block(history, "a"), NG_OK);
    assert_refused(ng_history_block(history, "a"));
}

/* ---- Replacing files ---- */

/* Each function that writes a file. */

static ng_status write_history(const char *path)
{
    ng_history *history = ng_history_new("short");
    for (int i = 0; i < 2000; i++) ng_history_log(history, "x", i, i);
    const ng_status status = ng_history_write(history, path);
    ng_history_free(history);
    return status;
}

static ng_status write_module(const char *path)
{
    ng_module *net = ng_sequential_new(ng_linear_new(20, 100), ng_linear_new(100, 2));
    const ng_status status = ng_module_save(net, path);
    ng_module_free(net);
    return status;
}

static ng_status write_graph(const char *path)
{
    ng_tape *tape = ng_tape_new();
    ng_tensor *x = ng_require_grad(ng_ones_new(NG_F32, NG_SHAPE(2))), *y = x;
    for (int i = 0; i < 100; i++) y = ng_exp(tape, y);
    const ng_status status = ng_tape_write_dot(tape, y, path);
    ng_tape_free(tape), ng_tensor_free(x);
    return status;
}

static ng_status write_bytes(const char *path)
{
    static char bytes[10000];
    memset(bytes, 'b', sizeof bytes);
    return ng_file_write(path, bytes, sizeof bytes);
}

static ng_status write_npy(const char *path)
{
    ng_tensor *x = ng_ones_new(NG_F32, NG_SHAPE(2000));
    const ng_status status = ng_tensor_save_npy(x, path);
    ng_tensor_free(x);
    return status;
}

static ng_status write_training(const char *path)
{
    ng_module *net = ng_linear_new(20, 100);
    ng_optimizer *adam = ng_adam_new(net);
    ng_training *training = ng_training_new(adam, .path = path);
    const ng_status status = ng_training_save(training);
    ng_training_free(training), ng_optimizer_free(adam), ng_module_free(net);
    return status;
}

static const struct {
    const char *name;
    ng_status (*write)(const char *path);
    const char *begins; /* what the file begins with */
} writers[] = {
    {"ng_history_write", write_history, "# what: short"}, {"ng_module_save", write_module, ""},
    {"ng_tape_write_dot", write_graph, "digraph"},        {"ng_file_write", write_bytes, "bbbb"},
    {"ng_tensor_save_npy", write_npy, "\x93NUMPY"},       {"ng_training", write_training, ""}};
enum { WRITERS = sizeof writers / sizeof writers[0] };

static bool is_new(int writer, const char *path)
{
    const char *begins = writers[writer].begins, *content = content_of(path);
    return strcmp(content, "old") != 0 && strncmp(content, begins, strlen(begins)) == 0;
}

/* The writer fails, names function, file and reason, and leaves no temporary file. */
static void assert_keeps_old(int writer, const char *path, const char *why)
{
    ck_assert_int_eq(writers[writer].write(path), NG_EIO);
    ck_assert_ptr_nonnull(strstr(ng_error_text(), writers[writer].name));
    ck_assert_ptr_nonnull(strstr(ng_error_text(), path));
    assert_error(NG_EIO, why);
    ck_assert_int_eq(unfinished_files(), 0);
}

static void assert_replaces(int writer, const char *path)
{
    assert_ok(writers[writer].write(path));
    ck_assert(is_new(writer, path));
    ck_assert_int_eq(unfinished_files(), 0);
}

/* Root may write everywhere, so tests of permissions run as nobody. */
static void become_nobody(void)
{
    if (geteuid() == 0) ck_assert(setegid(65534) == 0 && seteuid(65534) == 0);
}
static void become_oneself(void) { ck_assert(seteuid(getuid()) == 0 && setegid(getgid()) == 0); }

/* Each system call fails in turn. */
START_TEST(whatever_fails_leaves_the_old_file)
{
    const char *path = in_folder("failing.dat");
    int64_t calls = 0;
    for (bool refused = true; refused; calls++) {
        content_of_old(path);
        file_calls_fail_once_after(calls, ENOSPC);
        const ng_status status = writers[_i].write(path);
        refused = file_call_refused();
        file_calls_succeed();
        ck_assert_int_eq(status, refused ? NG_EIO : NG_OK);
        ck_assert_int_eq(unfinished_files(), 0);
        if (refused) assert_error(NG_EIO, "failing.dat");
        if (refused) ck_assert_str_eq(content_of(path), "old");
        if (!refused) ck_assert(is_new(_i, path));
        ck_assert_int_lt(calls, 1000);
    }
    /* open, writes, fsync, close, rename; then none fails */
    ck_assert_int_ge(calls, 6);
}

START_TEST(interrupted_and_short_calls_read_and_write_all)
{
    const char *path = in_folder("pieces.dat");
    char whole[4096];
    assert_replaces(_i, path);
    memcpy(whole, content_of(path), sizeof whole);
    struct stat before, after;
    ck_assert_int_eq(stat(path, &before), 0);
    file_calls_come_in_pieces();
    assert_replaces(_i, path);
    ck_assert_int_eq(stat(path, &after), 0);
    ck_assert_int_eq(before.st_size, after.st_size);
    if (_i != 2)
        ck_assert_mem_eq(content_of(path), whole, sizeof whole); /* a graph prints addresses */

    int64_t size = 0;
    char *bytes = ng_file_read("test", path, &size);
    assert_ok(bytes);
    ck_assert_int_eq(size, after.st_size);
    ck_assert_mem_eq(bytes, content_of(path), sizeof whole - 1);
    ng_free(bytes);
    file_calls_succeed();
}

/* Two processes write one file and are killed at any moment. The file is always whole. */
START_TEST(a_reader_never_finds_a_piece)
{
    static char bytes[2][40000];
    memset(bytes[0], 'a', sizeof bytes[0]), memset(bytes[1], 'b', sizeof bytes[1]);
    const char *path = in_folder("shared.dat");
    assert_ok(ng_file_write(path, bytes[0], sizeof bytes[0]));
    for (int round = 0; round < 20; round++) {
        pid_t writer[2];
        for (int i = 0; i < 2; i++) {
            if ((writer[i] = fork()) == 0)
                for (;;) ng_file_write(path, bytes[i], sizeof bytes[i]);
            ck_assert_int_gt(writer[i], 0); /* kill(-1) would end every process */
        }
        sleep_for(1e-3 + 777e-6 * round);
        for (int i = 0; i < 2; i++) kill(writer[i], SIGKILL);
        for (int i = 0; i < 2; i++) waitpid(writer[i], NULL, 0);
        int64_t size = 0;
        char *read = ng_file_read("test", path, &size);
        assert_ok(read);
        ck_assert_int_eq(size, sizeof bytes[0]);
        ck_assert_mem_eq(read, bytes[read[0] == 'b'], sizeof bytes[0]);
        ng_free(read);
    }
}

static struct stat status_of(const char *path)
{
    struct stat status;
    ck_assert_int_eq(lstat(path, &status), 0);
    return status;
}

START_TEST(a_replaced_file_keeps_its_mode_and_a_new_one_heeds_the_umask)
{
    static const mode_t modes[] = {0600, 0640, 0666, 0755, 0200};
    static const mode_t masks[] = {022, 027, 077, 0, 022};
    const char *path = in_folder("mode.dat");
    for (int i = 0; i < 5; i++) {
        const mode_t mask = umask(masks[i]);
        assert_ok(writers[_i].write(path));
        ck_assert_uint_eq(status_of(path).st_mode & 07777, 0666 & ~masks[i]);
        ck_assert_int_eq(chmod(path, modes[i]), 0);
        assert_ok(writers[_i].write(path));
        ck_assert_uint_eq(status_of(path).st_mode & 07777, modes[i]);
        umask(mask);
        unlink(path);
    }
}

START_TEST(only_regular_files_are_replaced)
{
    assert_keeps_old(_i, in_folder("."), "Is a directory");
    assert_keeps_old(_i, in_folder("no/such.dat"), "No such file or directory");
    assert_keeps_old(_i, "/dev/null/it.dat", "Not a directory");
    assert_keeps_old(_i, "", "cannot write ");
    char path[512];
    snprintf(path, sizeof path, "%s/%0255d", in_folder("."), 0);
    assert_keeps_old(_i, path, "File name too long");
    const char *pipe = in_folder("pipe");
    ck_assert_int_eq(mkfifo(pipe, 0600), 0);
    assert_keeps_old(_i, pipe, "not a regular file");
    ck_assert(S_ISFIFO(status_of(pipe).st_mode));
}

START_TEST(what_may_not_be_written_stays)
{
    const char *closed = in_folder("closed"), *inside = in_folder("closed/it.dat");
    const char *path = content_of_old(in_folder("protected.dat"));
    mkdir(closed, 0755);
    ck_assert(chmod(closed, 0755) == 0 && chmod(path, 0666) == 0);
    content_of_old(inside);
    ck_assert(chmod(in_folder("."), 0777) == 0 && chmod(path, 0444) == 0);
    ck_assert(chmod(inside, 0666) == 0 && chmod(closed, 0555) == 0);
    become_nobody();
    assert_keeps_old(_i, path, "Permission denied");
    assert_keeps_old(_i, inside, "closed/it.dat: Permission denied");
    become_oneself();
    ck_assert_str_eq(content_of(path), "old");
    ck_assert_str_eq(content_of(inside), "old");
    ck_assert_int_eq(files_in(closed, ""), 1);
    ck_assert_int_eq(chmod(closed, 0755), 0);
}

/* A file of the current folder. */
START_TEST(a_path_may_be_a_name_alone)
{
    char here[PATH_MAX];
    ck_assert_ptr_nonnull(getcwd(here, sizeof here));
    ck_assert_int_eq(chdir(in_folder(".")), 0);
    const ng_status status = writers[_i].write("alone.dat");
    ck_assert_int_eq(chdir(here), 0);
    assert_ok(status);
    ck_assert(is_new(_i, in_folder("alone.dat")));
}

START_TEST(a_read_that_fails_is_an_error_and_closes_the_file)
{
    const char *path = in_folder("unread.dat");
    assert_replaces(3, path);
    for (int64_t calls = 0;; calls++) {
        int64_t size = -1;
        file_calls_fail_once_after(calls, EIO);
        char *read = ng_file_read("test", path, &size);
        const bool refused = file_call_refused();
        file_calls_succeed();
        if (!read) assert_error(NG_EIO, "unread.dat");
        ng_free(read);
        if (!refused) break;
    }
}

/* ---- Out of memory ---- */

/* Runs work with each allocation failing in turn, until it succeeds. */
static void refuse_each_allocation(bool (*work)(void))
{
    const int64_t live = allocations_live();
    for (int64_t n = 0, refused = 1; refused; n++) {
        allocations_fail_after(n);
        refused = out_of_memory(!work());
        ck_assert_int_eq(allocations_live(), live);
    }
    ck_assert(!ng_failed());
}

static bool read_split_and_standardize(void)
{
    ng_dataset *a = NULL, *b = NULL, *data = ng_dataset_read_csv(in_folder("it.csv"));
    const bool worked =
        ng_dataset_split_new(data, 1, 0, &a, &b) == NG_OK && ng_dataset_standardize(a, b) == NG_OK;
    ng_dataset_free(a), ng_dataset_free(b), ng_dataset_free(data);
    return worked;
}

static bool read_idx(void)
{
    ng_dataset *data = ng_dataset_read_idx(in_folder("images"), in_folder("labels"));
    ng_dataset_free(data);
    return data != NULL;
}

static bool log_and_write(void)
{
    ng_history *history = ng_history_new("memory");
    bool worked = history && ng_history_block(history, "a") == NG_OK;
    for (int i = 0; worked && i < 20; i++) {
        char name[16];
        snprintf(name, sizeof name, "s%d", i);
        worked = ng_history_log(history, name, i, i) == NG_OK &&
                 ng_history_log(history, "all", i, i) == NG_OK;
    }
    worked = worked && ng_history_write(history, in_folder("it.dat")) == NG_OK;
    ng_history_free(history);
    return worked;
}

START_TEST(readers_and_history_survive_any_refused_allocation)
{
    file_of("1,2\n3,4\n5,6\n");
    put_file("images", images, sizeof images);
    put_file("labels", labels, sizeof labels);
    refuse_each_allocation(read_split_and_standardize);
    refuse_each_allocation(read_idx);
    refuse_each_allocation(log_and_write);
    ck_assert_int_eq(files_named(""), 4); /* no temporary file is left */
}

START_TEST(a_refused_log_leaves_the_history_as_it_was)
{
    ng_history *history = own(ng_history_new("memory"));
    for (int step = 0; step < 8; step++) ng_history_log(history, "x", step, 1);
    allocations_fail_after(1); /* the name is allocated, the points are not */
    ck_assert_int_eq(ng_history_log(history, "y", 0, 2), NG_ENOMEM);
    allocations_succeed();
    assert_error(NG_ENOMEM, "");
    assert_ok(ng_history_write(history, in_folder("it.dat")));
    ck_assert_ptr_nonnull(strstr(content_of(in_folder("it.dat")), "\nstep      x\n0         1\n"));
}

Suite *io_suite(void)
{
    Suite *suite = suite_create("io");
    TCase *tests = add_case(suite, make_test_folder, remove_test_folder);
    add_tests(tests, csv_options_say_what_is_read, csv_label_may_be_any_column,
              csv_without_label_is_all_features_in_every_spelling, csv_last_columns_may_be_targets,
              folds_are_all_samples_once, a_tensor_is_written_as_gnuplot_reads_it,
              csv_any_line_end_and_blank_lines_are_read_alike, numbers_have_a_point_in_any_locale,
              csv_settings_that_do_not_fit_are_refused, csv_zero_byte_is_no_end_of_the_file,
              csv_is_read_from_a_pipe_to_its_end,
              unreadable_files_are_named_with_the_systems_reason, digits_are_what_their_readme_says,
              idx_images_and_labels_are_read, idx_files_that_are_none_are_refused,
              idx_images_and_labels_must_be_as_many, batches_hand_out_each_sample_once,
              batch_past_the_end_is_no_error, shuffle_depends_on_the_seed_alone,
              shuffle_draws_every_order_equally, split_is_disjoint_complete_and_of_the_seed,
              dataset_takes_any_dtype_and_targets, dataset_wants_as_many_labels_as_samples,
              standardized_features_have_mean_0_and_deviation_1,
              standardize_wants_the_reference_to_be_the_last,
              standardize_keeps_the_digits_of_a_shifted_feature,
              standardize_refuses_what_has_no_statistics, history_file_is_aligned_columns,
              history_gives_floats_back_exactly, history_refuses_names_that_break_the_file,
              a_reader_never_finds_a_piece, a_read_that_fails_is_an_error_and_closes_the_file,

              readers_and_history_survive_any_refused_allocation,
              a_refused_log_leaves_the_history_as_it_was);
    add_loops(tests, (int)(sizeof bad_csv / sizeof bad_csv[0]),
              csv_bad_content_is_named_by_line_and_column);
    add_loops(tests, WRITERS, whatever_fails_leaves_the_old_file,
              interrupted_and_short_calls_read_and_write_all,
              a_replaced_file_keeps_its_mode_and_a_new_one_heeds_the_umask,
              only_regular_files_are_replaced, what_may_not_be_written_stays,
              a_path_may_be_a_name_alone);
    return suite;
}
