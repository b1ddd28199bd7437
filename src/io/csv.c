/* Comma-separated numbers. The file is read whole and parsed twice: first to count the samples,
 * then to store them in their tensors. */
#include "io/dataset.h"
#include "io/file.h"
#include <math.h>
#include <string.h>

static const char read_csv[] = "ng_dataset_read_csv";

typedef struct {
    const ng_dataset_read_csv_options *options;
    ng_lines lines;
    int64_t rows, columns, label; /* the label's column, from 1, or 0 for none */
    int64_t targets;              /* how many of the last columns */
    ng_tensor *x, *y;
} csv_reader;

static bool is_space(char c) { return c == ' ' || c == '\t'; }

/* The next line that is not blank. A tab that separates cells is no blank. */
static bool csv_next_row(csv_reader *csv)
{
    while (ng_lines_next(&csv->lines))
        for (const char *p = csv->lines.at; p < csv->lines.stop; p++)
            if (!is_space(*p) || *p == csv->options->delimiter) return true;
    return false;
}

static int64_t csv_columns_of(const csv_reader *csv)
{
    int64_t columns = 1;
    for (const char *p = csv->lines.at; p < csv->lines.stop; p++)
        columns += *p == csv->options->delimiter;
    return columns;
}

/* Quotes a cell, printable, and cut if it is long. */
static bool csv_fail_cell(const csv_reader *csv, int64_t column, const char *at, const char *stop,
                          const char *expected)
{
    char text[44] = "";
    int n = 0;
    for (; at < stop && n < 40; at++) text[n++] = (*at < ' ' || *at > '~') ? '?' : *at;
    return ng_lines_refuse(&csv->lines, "column %lld: \"%s%s\" is not %s", (long long)column, text,
                           at < stop ? "..." : "", expected);
}

/* Stores the number in the cell from `at` to `stop`. */
static bool csv_store_cell(const csv_reader *csv, int64_t row, int64_t column, const char *at,
                           const char *stop)
{
    const int64_t features = csv->x->shape.dim[1], first_target = csv->columns - csv->targets + 1;
    double value = 0;
    while (at < stop && is_space(*at)) at++;
    while (at < stop && is_space(stop[-1])) stop--;
    if (!ng_parse_number(at, stop, &value)) {
        const bool hint = row == 0 && column == 1 && !csv->options->header;
        return csv_fail_cell(csv, column, at, stop,
                             hint ? "a number; .header = true skips a first line of names"
                                  : "a number");
    }
    if (!isfinite(value)) return csv_fail_cell(csv, column, at, stop, "within a double's range");
    if (column == csv->label) {
        if (value != floor(value) || fabs(value) >= 0x1p53)
            return csv_fail_cell(csv, column, at, stop, "a label (a whole number below 2^53)");
        ng_tensor_store(csv->y, row, value);
        return true;
    }
    const bool target = column >= first_target;
    ng_tensor *to = target ? csv->y : csv->x;
    const int64_t i = target ? row * csv->targets + column - first_target
                             : row * features + column - 1 - (csv->label && column > csv->label);
    ng_tensor_store(to, i, target ? value : value * csv->options->scale);
    return isfinite(ng_tensor_load(to, i)) ||
           csv_fail_cell(csv, column, at, stop,
                         target ? "within the dtype's range"
                                : "within the dtype's range, once scaled");
}

static bool csv_store_row(const csv_reader *csv, int64_t row)
{
    const int64_t columns = csv_columns_of(csv);
    if (columns != csv->columns)
        return ng_lines_refuse(&csv->lines, "the line ends at column %lld, expected %lld columns",
                               (long long)columns, (long long)csv->columns);
    const char *at = csv->lines.at;
    for (int64_t column = 1; column <= columns; column++) {
        const char *stop = at;
        while (stop < csv->lines.stop && *stop != csv->options->delimiter) stop++;
        if (!csv_store_cell(csv, row, column, at, stop)) return false;
        at = stop + 1;
    }
    return true;
}

/* Checks the options that need no file, and puts the defaults in. */
static bool csv_complete_options(ng_dataset_read_csv_options *options)
{
    if (!options->delimiter) options->delimiter = ',';
    options->scale = ng_option(options->scale, 1);

    const char d = options->delimiter;
    const bool letter = (d >= 'a' && d <= 'z') || (d >= 'A' && d <= 'Z');
    if (letter || strchr("0123456789+-.\r\n\"", d))
        ng_fail(NG_EVALUE, "%s: delimiter 0x%02x can stand in a number or end a line", read_csv,
                (unsigned)(unsigned char)d);
    else if (options->label_column < 0 || (options->no_label && options->label_column > 0))
        ng_fail(NG_EVALUE, "%s: label column %d%s, expected 1 or more, or 0 for the last", read_csv,
                options->label_column, options->no_label ? " and no label" : "");
    else if (options->targets < 0 ||
             (options->targets > 0 && (options->no_label || options->label_column > 0)))
        ng_fail(NG_EVALUE, "%s: %d targets%s, expected 0 or more, and then no label", read_csv,
                options->targets, options->targets > 0 ? " and a setting of the label" : "");
    else
        return ng_dataset_features_accepted(read_csv, options->scale, options->dtype);
    return false;
}

/* Counts the samples, and the columns of the first. */
static bool csv_measure(csv_reader *csv)
{
    const ng_dataset_read_csv_options *options = csv->options;
    const ng_lines begin = csv->lines;
    while (csv_next_row(csv))
        if (csv->rows++ == 0) csv->columns = csv_columns_of(csv);
    csv->lines = begin;
    csv->targets = options->targets;
    if (!options->no_label && !csv->targets)
        csv->label = options->label_column ? options->label_column : csv->columns;
    if (csv->rows == 0)
        return ng_refuse(begin.origin, NG_EPARSE, "no samples%s",
                         options->header ? " after the header" : "");
    if (csv->label > csv->columns)
        return ng_refuse(begin.origin, NG_EPARSE, "label column %lld, but there are %lld columns",
                         (long long)csv->label, (long long)csv->columns);
    if (csv->targets + (csv->label ? 1 : 0) >= csv->columns)
        return ng_refuse(
            begin.origin, NG_EPARSE,
            "a label or targets in all of %lld columns leave no feature (delimiter '%c')",
            (long long)csv->columns, options->delimiter);
    return true;
}

static ng_dataset *csv_parse(csv_reader *csv)
{
    const ng_dtype dtype = csv->options->dtype;
    if (csv->options->header) csv_next_row(csv);
    if (!csv_measure(csv)) return NULL;
    const int64_t rows = csv->rows, features = csv->columns - csv->targets - (csv->label ? 1 : 0);
    csv->x = ng_tensor_make(read_csv, dtype, NG_SHAPE(rows, features));
    csv->y = csv->label     ? ng_tensor_make(read_csv, NG_I64, NG_SHAPE(rows))
             : csv->targets ? ng_tensor_make(read_csv, dtype, NG_SHAPE(rows, csv->targets))
                            : NG_NONE;
    bool parsed = csv->x && csv->y;
    for (int64_t row = 0; parsed && row < rows; row++)
        parsed = csv_next_row(csv) && csv_store_row(csv, row);
    if (!parsed) ng_tensor_free(csv->y);
    return ng_dataset_adopt(read_csv, csv->x, parsed ? csv->y : NULL);
}

ng_dataset *ng_dataset_read_csv_with(ng_dataset_read_csv_options options)
{
    if (!ng_given(read_csv, "path", options.path) || !csv_complete_options(&options)) return NULL;
    int64_t size;
    char *text = ng_file_read_unpacked(read_csv, options.path, &size);
    if (!text) return NULL;
    const bool signature = size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0; /* UTF-8's */
    csv_reader csv = {.options = &options,
                      .lines = {.origin = {read_csv, options.path},
                                .next = text + (signature ? 3 : 0),
                                .end = text + size}};
    const locale_t locale = ng_c_locale_begin();
    ng_dataset *dataset = csv_parse(&csv);
    ng_c_locale_end(locale);
    ng_free(text);
    return dataset;
}
