/* Comma-separated numbers. The file is read whole and parsed twice: first to count the samples,
 * then to store them in their tensors. */
#include "io/dataset.h"
#include "io/file.h"
#include <math.h>
#include <string.h>
#include <strings.h>

static const char read_csv[] = "ng_dataset_read_csv";

typedef struct {
    const ng_dataset_read_csv_options *options;
    ng_lines lines;
    int64_t rows, columns;
    int64_t label;        /* the label's column, from 1, or 0 for none */
    int64_t first_target; /* its column, from 1; columns + 1 without targets */
    ng_tensor *x, *y;
    int64_t x_stored, y_stored; /* elements so far */
} csv_reader;

static bool is_space(char c) { return c == ' ' || c == '\t'; }

/* Goes to the next line that is not blank. A delimiter is not a blank. */
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

/* Quotes at most 40 characters of a cell, with '?' for those that are not printable. */
static bool csv_fail_cell(const csv_reader *csv, int64_t column, const char *text, const char *stop,
                          const char *expected, const char *hint)
{
    char shown[44] = "";
    int n = 0;
    for (; text < stop && n < 40; text++) shown[n++] = (*text < ' ' || *text > '~') ? '?' : *text;
    return ng_refuse(csv->lines.origin, NG_EPARSE, "line %lld: column %lld: \"%s%s\" is not %s%s",
                     (long long)csv->lines.line, (long long)column, shown, text < stop ? "..." : "",
                     expected, hint);
}

/* A setting for a text that has a character which separates columns elsewhere, or "". */
static const char *csv_delimiter_hint(const csv_reader *csv, const char *text, const char *stop)
{
    static const char *const hints[] = {"; set .delimiter = ';' if that separates the columns",
                                        "; set .delimiter = '\\t' if tabs separate the columns",
                                        "; set .delimiter = '|' if that separates the columns",
                                        "; set .delimiter = ',' if that separates the columns",
                                        "; set .delimiter = ' ' if spaces separate the columns"};
    static const char separators[] = ";\t|, ";
    for (int i = 0; separators[i]; i++)
        if (separators[i] != csv->options->delimiter &&
            memchr(text, separators[i], (size_t)(stop - text)))
            return hints[i];
    return "";
}

static bool csv_is_missing(const char *text, const char *stop)
{
    static const char *const missing[] = {"", "?", "na", "nan", "inf", "-inf", "null"};
    const size_t length = (size_t)(stop - text);
    for (size_t i = 0; i < sizeof missing / sizeof *missing; i++)
        if (strlen(missing[i]) == length && strncasecmp(missing[i], text, length) == 0) return true;
    return false;
}

/* What mends a cell that holds no number, or "". */
static const char *csv_hint(const csv_reader *csv, const char *text, const char *stop)
{
    const char *delimiter = csv_delimiter_hint(csv, text, stop);
    if (*delimiter && strchr("+-.0123456789", *text)) return delimiter;
    if (csv_is_missing(text, stop)) return "; fill the value in, or leave the sample out";
    const bool first = csv->x_stored + csv->y_stored == 0 && !csv->options->header;
    return first ? "; .header = true skips a first line of names" : "";
}

/* Stores the number in the cell from `text` to `stop`. */
static bool csv_store_cell(csv_reader *csv, int64_t column, const char *text, const char *stop)
{
    double value = 0;
    while (text < stop && is_space(*text)) text++;
    while (text < stop && is_space(stop[-1])) stop--;
    if (!ng_parse_number(text, stop, &value))
        return csv_fail_cell(csv, column, text, stop, "a number", csv_hint(csv, text, stop));
    if (column == csv->label && (value != floor(value) || fabs(value) >= 0x1p53))
        return csv_fail_cell(csv, column, text, stop, "a label (a whole number below 2^53)",
                             "; .targets = 1 reads numbers");
    const bool feature = column != csv->label && column < csv->first_target;
    ng_tensor *tensor = feature ? csv->x : csv->y;
    const int64_t i = feature ? csv->x_stored++ : csv->y_stored++;
    ng_tensor_store(tensor, i, feature ? value * csv->options->scale : value);
    return isfinite(ng_tensor_load(tensor, i)) ||
           csv_fail_cell(csv, column, text, stop, "within the dtype's range",
                         feature ? ", once scaled" : "");
}

static bool csv_store_row(csv_reader *csv)
{
    const int64_t columns = csv_columns_of(csv);
    if (columns != csv->columns)
        return ng_refuse(csv->lines.origin, NG_EPARSE, "line %lld: %lld columns, expected %lld",
                         (long long)csv->lines.line, (long long)columns, (long long)csv->columns);
    const char *text = csv->lines.at;
    for (int64_t column = 1; column <= columns; column++) {
        const char *stop = text;
        while (stop < csv->lines.stop && *stop != csv->options->delimiter) stop++;
        if (!csv_store_cell(csv, column, text, stop)) return false;
        text = stop + 1;
    }
    return true;
}

/* Checks the options that need no file, and puts the defaults in. */
static bool csv_complete_options(ng_dataset_read_csv_options *o)
{
    if (!o->delimiter) o->delimiter = ',';
    o->scale = ng_option(o->scale, 1);
    if (strchr("0123456789+-.eE\r\n", o->delimiter))
        ng_fail(NG_EVALUE, "%s: delimiter 0x%02x can stand in a number or end a line", read_csv,
                (unsigned)(unsigned char)o->delimiter);
    else if (o->label_column < 0 || o->targets < 0)
        ng_fail(NG_EVALUE, "%s: label_column is %d and targets %d, expected both 0 or more",
                read_csv, o->label_column, o->targets);
    else
        return ng_option_idle(read_csv, "targets", o->targets && o->no_label,
                              "without .no_label") &&
               ng_option_idle(read_csv, "label_column",
                              o->label_column && (o->no_label || o->targets), "with a label") &&
               ng_dataset_features_accepted(read_csv, o->scale, o->dtype);
    return false;
}

/* Counts the samples, and the columns of the first. */
static bool csv_measure(csv_reader *csv)
{
    const ng_dataset_read_csv_options *options = csv->options;
    const ng_lines begin = csv->lines;
    ng_lines first = begin;
    while (csv_next_row(csv)) {
        if (csv->rows++ > 0) continue;
        csv->columns = csv_columns_of(csv);
        first = csv->lines;
    }
    csv->lines = begin;
    csv->first_target = csv->columns - options->targets + 1;
    if (!options->no_label && !options->targets)
        csv->label = options->label_column ? options->label_column : csv->columns;
    if (csv->rows == 0)
        return ng_refuse(begin.origin, NG_EPARSE, "no samples%s",
                         options->header ? " after the header" : "");
    if (csv->label > csv->columns)
        return ng_refuse(begin.origin, NG_EPARSE, "label column %lld, but there are %lld columns",
                         (long long)csv->label, (long long)csv->columns);
    return options->targets + (csv->label > 0) < csv->columns ||
           ng_refuse(
               begin.origin, NG_EPARSE,
               "a label or targets in all of %lld columns leave no feature (delimiter '%c')%s",
               (long long)csv->columns, options->delimiter,
               csv_delimiter_hint(csv, first.at, first.stop));
}

static ng_dataset *csv_parse(csv_reader *csv)
{
    const ng_dtype dtype = csv->options->dtype;
    if (csv->options->header) csv_next_row(csv);
    if (!csv_measure(csv)) return NULL;
    const int64_t rows = csv->rows, targets = csv->options->targets;
    const int64_t features = csv->columns - targets - (csv->label > 0);
    csv->x = ng_tensor_make(read_csv, dtype, NG_SHAPE(rows, features));
    csv->y = csv->label ? ng_tensor_make(read_csv, NG_I64, NG_SHAPE(rows))
             : targets  ? ng_tensor_make(read_csv, dtype, NG_SHAPE(rows, targets))
                        : NG_NONE;
    bool parsed = csv->x && csv->y;
    while (parsed && csv_next_row(csv)) parsed = csv_store_row(csv);
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
