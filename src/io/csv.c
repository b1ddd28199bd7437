/* Comma-separated numbers. The file is read whole and parsed twice: first to count the samples,
 * then to store them in their tensors. */
#include "io/dataset.h"
#include "io/file.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char read_csv[] = "ng_dataset_read_csv";

/* A walk over lines: at, stop is the line's text without its end. */
typedef struct {
    const ng_dataset_read_csv_options *options;
    const char *next, *end; /* what is not yet read */
    const char *at, *stop;  /* the line */
    int64_t line;           /* its number, from 1 */
} csv_lines;

static csv_lines csv_begin_lines(const ng_dataset_read_csv_options *options, const char *text,
                                 int64_t size)
{
    const bool marked = size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0; /* UTF-8's signature */
    return (csv_lines){.options = options, .next = text + (marked ? 3 : 0), .end = text + size};
}

static bool csv_next_line(csv_lines *lines)
{
    if (lines->next == lines->end) return false;
    const char *p = lines->at = lines->next;
    while (p < lines->end && *p != '\n' && *p != '\r') p++;
    lines->stop = p;
    if (p < lines->end) p += (*p == '\r' && p + 1 < lines->end && p[1] == '\n') ? 2 : 1;
    lines->next = p;
    lines->line++;
    return true;
}

static bool is_space(char c) { return c == ' ' || c == '\t'; }

/* The next line that is not blank. A tab that separates cells is no blank. */
static bool csv_next_row(csv_lines *lines)
{
    while (csv_next_line(lines))
        for (const char *p = lines->at; p < lines->stop; p++)
            if (!is_space(*p) || *p == lines->options->delimiter) return true;
    return false;
}

static int64_t csv_columns_of(const csv_lines *lines)
{
    int64_t columns = 1;
    for (const char *p = lines->at; p < lines->stop; p++)
        columns += *p == lines->options->delimiter;
    return columns;
}

/* The end of the cell that begins at `at`. */
static const char *csv_cell_end(const csv_lines *lines, const char *at)
{
    while (at < lines->stop && *at != lines->options->delimiter) at++;
    return at;
}

/* A cell's text for a message: printable, and cut where it is long. */
typedef struct {
    char text[44];
} csv_cell;
static csv_cell csv_quote_cell(const char *at, const char *stop)
{
    csv_cell quoted = {{0}};
    int n = 0;
    for (; at < stop && n < 40; at++) quoted.text[n++] = (*at < ' ' || *at > '~') ? '?' : *at;
    if (at < stop) memcpy(quoted.text + n, "...", 3);
    return quoted;
}

/* A cell without the blanks around it. */
static void csv_trim(const char **at, const char **stop)
{
    while (*at < *stop && is_space(**at)) (*at)++;
    while (*at < *stop && is_space((*stop)[-1])) (*stop)--;
}

/* The number from at to stop, in decimal digits: strtod would also take nan, inf, hexadecimal ones
 * and blanks, new lines included, before it. After a cell stands what no number goes on with, so
 * strtod stops there. */
static bool read_number(const char *at, const char *stop, double *value)
{
    char *end = NULL;
    for (const char *c = at; c < stop; c++)
        if (!*c || !strchr("+-.0123456789eE", *c)) return false;
    if (at < stop) *value = strtod(at, &end);
    return at < stop && end == stop;
}

static bool csv_fail_cell(const csv_lines *lines, int64_t column, const char *at, const char *stop,
                          const char *expected)
{
    ng_fail(NG_EPARSE, "%s: %s:%lld: column %lld: \"%s\" is not %s", read_csv, lines->options->path,
            (long long)lines->line, (long long)column, csv_quote_cell(at, stop).text, expected);
    return false;
}

/* The number in the cell from `at` to `stop`, of sample `row`. */
static bool parse_cell(const csv_lines *lines, int64_t row, int64_t column, const char *at,
                       const char *stop, double *value)
{
    csv_trim(&at, &stop);
    if (!read_number(at, stop, value)) {
        const bool hint = row == 0 && column == 1 && !lines->options->header;
        return csv_fail_cell(lines, column, at, stop,
                             hint ? "a number; .header = true skips a first line of names"
                                  : "a number");
    }
    return isfinite(*value) || csv_fail_cell(lines, column, at, stop, "within a double's range");
}

/* Where the parsed numbers go. */
typedef struct {
    ng_tensor *x, *y;
    int64_t columns, label; /* of a line; the label's, from 1, or 0 for none */
    int64_t targets;        /* how many of the last columns */
    double scale;
} csv_target;

static bool csv_parse_row(const csv_lines *lines, const csv_target *to, int64_t row)
{
    const int64_t columns = csv_columns_of(lines);
    if (columns != to->columns) {
        ng_fail(NG_EPARSE, "%s: %s:%lld: the line ends at column %lld, expected %lld columns",
                read_csv, lines->options->path, (long long)lines->line, (long long)columns,
                (long long)to->columns);
        return false;
    }

    const int64_t features = columns - to->targets - (to->label ? 1 : 0);
    int64_t feature = row * features, target = row * to->targets;
    const char *at = lines->at;
    for (int64_t column = 1; column <= columns; column++) {
        const char *stop = csv_cell_end(lines, at);
        double value = 0;
        if (!parse_cell(lines, row, column, at, stop, &value)) return false;

        if (column > columns - to->targets) {
            ng_tensor_store(to->y, target, value);
            if (!isfinite(ng_tensor_load(to->y, target++)))
                return csv_fail_cell(lines, column, at, stop, "within the dtype's range");
        } else if (column != to->label) {
            ng_tensor_store(to->x, feature, value * to->scale);
            if (!isfinite(ng_tensor_load(to->x, feature++)))
                return csv_fail_cell(lines, column, at, stop,
                                     "within the dtype's range, once scaled");
        } else if (value != floor(value) || fabs(value) >= 0x1p53) {
            return csv_fail_cell(lines, column, at, stop, "a label (a whole number below 2^53)");
        } else {
            ng_tensor_store(to->y, row, value);
        }
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

/* Counts the samples that follow, and the columns of the first. */
static bool csv_measure(csv_lines lines, const ng_dataset_read_csv_options *options, int64_t *rows,
                        csv_target *to)
{
    *rows = 0;
    while (csv_next_row(&lines))
        if ((*rows)++ == 0) to->columns = csv_columns_of(&lines);

    to->targets = options->targets;
    if (!options->no_label && !to->targets)
        to->label = options->label_column ? options->label_column : to->columns;
    const ng_origin origin = {read_csv, options->path};
    if (*rows == 0)
        return ng_refuse(origin, NG_EPARSE, "no samples%s",
                         options->header ? " after the header" : "");
    if (to->label > to->columns)
        return ng_refuse(origin, NG_EPARSE, "label column %lld, but there are %lld columns",
                         (long long)to->label, (long long)to->columns);
    if (to->targets + (to->label ? 1 : 0) >= to->columns)
        return ng_refuse(
            origin, NG_EPARSE,
            "a label or targets in all of %lld columns leave no feature (delimiter '%c')",
            (long long)to->columns, options->delimiter);
    return true;
}

static ng_dataset *parse_csv(const ng_dataset_read_csv_options *options, const char *text,
                             int64_t size)
{
    csv_lines lines = csv_begin_lines(options, text, size);
    csv_target to = {.scale = options->scale};
    int64_t rows;
    if (options->header) csv_next_row(&lines);
    if (!csv_measure(lines, options, &rows, &to)) return NULL;

    const int64_t features = to.columns - to.targets - (to.label ? 1 : 0);
    to.x = ng_tensor_make(read_csv, options->dtype, NG_SHAPE(rows, features));
    to.y = to.label     ? ng_tensor_make(read_csv, NG_I64, NG_SHAPE(rows))
           : to.targets ? ng_tensor_make(read_csv, options->dtype, NG_SHAPE(rows, to.targets))
                        : NG_NONE;
    bool parsed = to.x && to.y;
    for (int64_t row = 0; parsed && row < rows; row++)
        parsed = csv_next_row(&lines) && csv_parse_row(&lines, &to, row);
    if (!parsed) {
        ng_tensor_free(to.y);
        to.y = NULL;
    }
    return ng_dataset_adopt(read_csv, to.x, to.y);
}

ng_dataset *ng_dataset_read_csv_with(ng_dataset_read_csv_options options)
{
    if (!ng_given(read_csv, "path", options.path) || !csv_complete_options(&options)) return NULL;
    int64_t size;
    char *text = ng_file_read_unpacked(read_csv, options.path, &size);
    if (!text) return NULL;

    const locale_t locale = ng_c_locale_begin();
    ng_dataset *dataset = parse_csv(&options, text, size);
    ng_c_locale_end(locale);
    ng_free(text);
    return dataset;
}
