/* Comma-separated numbers. The file is read whole and walked twice: to count the samples, and to
 * parse them into their tensors. */
#include "io/dataset.h"
#include "io/file.h"
#include "io/inflate.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char function[] = "ng_dataset_read_csv";

/* A walk over lines: at, stop is the line's text without its end. */
typedef struct {
    const ng_dataset_read_csv_options *options;
    const char *next, *end; /* what is not yet read */
    const char *at, *stop;  /* the line */
    int64_t line;           /* its number, from 1 */
} ng_lines;

static ng_lines begin_lines(const ng_dataset_read_csv_options *options, const char *text,
                            int64_t size)
{
    const bool marked = size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0; /* UTF-8's signature */
    return (ng_lines){.options = options, .next = text + (marked ? 3 : 0), .end = text + size};
}

static bool next_line(ng_lines *lines)
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
static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* The next line that holds something. A tab between cells is something. */
static bool next_row(ng_lines *lines)
{
    while (next_line(lines))
        for (const char *p = lines->at; p < lines->stop; p++)
            if (!is_space(*p) || *p == lines->options->delimiter) return true;
    return false;
}

static int64_t columns_of(const ng_lines *lines)
{
    int64_t columns = 1;
    for (const char *p = lines->at; p < lines->stop; p++)
        columns += *p == lines->options->delimiter;
    return columns;
}

/* Where the cell that begins at `at` ends. */
static const char *cell_end(const ng_lines *lines, const char *at)
{
    while (at < lines->stop && *at != lines->options->delimiter) at++;
    return at;
}

/* A cell's text for a message: printable, and cut where it is long. */
typedef struct {
    char text[44];
} ng_cell_text;
static ng_cell_text quote_cell(const char *at, const char *stop)
{
    ng_cell_text quoted = {{0}};
    int n = 0;
    for (; at < stop && n < 40; at++) quoted.text[n++] = (*at < ' ' || *at > '~') ? '?' : *at;
    if (at < stop) memcpy(quoted.text + n, "...", 3);
    return quoted;
}

/* Whether at .. stop is [+-] digits [. digits] [e [+-] digits], with a digit before or after the
 * point: no hexadecimal, no nan, no inf, nothing that strtod takes besides. */
static bool is_number(const char *at, const char *stop)
{
    if (at < stop && (*at == '+' || *at == '-')) at++;
    const char *digits = at;
    while (at < stop && is_digit(*at)) at++;
    int64_t count = at - digits;
    if (at < stop && *at == '.') {
        digits = ++at;
        while (at < stop && is_digit(*at)) at++;
        count += at - digits;
    }
    if (count == 0) return false;
    if (at < stop && (*at == 'e' || *at == 'E')) {
        at++;
        if (at < stop && (*at == '+' || *at == '-')) at++;
        digits = at;
        while (at < stop && is_digit(*at)) at++;
        if (at == digits) return false;
    }
    return at == stop;
}

/* A cell without the blanks around it. */
static void trim(const char **at, const char **stop)
{
    while (*at < *stop && is_space(**at)) (*at)++;
    while (*at < *stop && is_space((*stop)[-1])) (*stop)--;
}

/* Whether no cell of the line is a number: then it may be one of names. */
static bool has_no_number(const ng_lines *lines)
{
    for (const char *at = lines->at; at <= lines->stop; at = cell_end(lines, at) + 1) {
        const char *first = at, *stop = cell_end(lines, at);
        trim(&first, &stop);
        if (is_number(first, stop)) return false;
    }
    return true;
}

static bool fail_cell(const ng_lines *lines, int64_t column, const char *at, const char *stop,
                      const char *expected)
{
    ng_fail(NG_EPARSE, "%s: %s:%lld: column %lld: \"%s\" is not %s", function, lines->options->path,
            (long long)lines->line, (long long)column, quote_cell(at, stop).text, expected);
    return false;
}

/* The cell from `at` to `stop`, of sample `row`. What follows a number (delimiter, blank, line end,
 * the file's zero byte) cannot go on with it, so strtod stops where the cell does. */
static bool parse_cell(const ng_lines *lines, int64_t row, int64_t column, const char *at,
                       const char *stop, double *value)
{
    static const char names[] = "a number; .header = true skips a first line of names";
    trim(&at, &stop);
    if (!is_number(at, stop)) {
        const bool hint = row == 0 && !lines->options->header && has_no_number(lines);
        return fail_cell(lines, column, at, stop, hint ? names : "a number");
    }
    *value = strtod(at, NULL);
    if (!isfinite(*value)) return fail_cell(lines, column, at, stop, "within a double's range");
    return true;
}

/* Where the parsed numbers go. */
typedef struct {
    ng_tensor *x, *y;
    int64_t columns, label; /* of a line; the label's, from 1, or 0 for none */
    int64_t targets;        /* how many of the last columns */
    double scale;
} ng_target;

static bool parse_row(const ng_lines *lines, const ng_target *to, int64_t row)
{
    const int64_t columns = columns_of(lines);
    if (columns != to->columns) {
        ng_fail(NG_EPARSE, "%s: %s:%lld: the line ends at column %lld, expected %lld columns",
                function, lines->options->path, (long long)lines->line, (long long)columns,
                (long long)to->columns);
        return false;
    }

    const int64_t features = columns - to->targets - (to->label ? 1 : 0);
    int64_t feature = row * features, target = row * to->targets;
    const char *at = lines->at;
    for (int64_t column = 1; column <= columns; column++) {
        const char *stop = cell_end(lines, at);
        double value = 0;
        if (!parse_cell(lines, row, column, at, stop, &value)) return false;

        if (column > columns - to->targets) {
            ng_tensor_store(to->y, target, value);
            if (!isfinite(ng_tensor_load(to->y, target++)))
                return fail_cell(lines, column, at, stop, "within the dtype's range");
        } else if (column != to->label) {
            ng_tensor_store(to->x, feature, value * to->scale);
            if (!isfinite(ng_tensor_load(to->x, feature++)))
                return fail_cell(lines, column, at, stop, "within the dtype's range, once scaled");
        } else if (value != floor(value) || fabs(value) >= 0x1p53) {
            return fail_cell(lines, column, at, stop, "a label (a whole number below 2^53)");
        } else {
            ng_tensor_store(to->y, row, value);
        }
        at = stop + 1;
    }
    return true;
}

/* Checks the options that need no file, and puts the defaults in. */
static bool complete_options(ng_dataset_read_csv_options *options)
{
    if (!options->delimiter) options->delimiter = ',';
    options->scale = ng_option(options->scale, 1);

    const char d = options->delimiter;
    const bool letter = (d >= 'a' && d <= 'z') || (d >= 'A' && d <= 'Z');
    if (letter || is_digit(d) || strchr("+-.\r\n\"", d))
        ng_fail(NG_EVALUE, "%s: delimiter 0x%02x can stand in a number or end a line", function,
                (unsigned)(unsigned char)d);
    else if (!isfinite(options->scale))
        ng_fail(NG_EVALUE, "%s: scale %g, expected a finite number", function, options->scale);
    else if (options->dtype != NG_F32 && options->dtype != NG_F64)
        ng_fail(NG_EDTYPE, "%s: features as %s, expected float32 or float64", function,
                ng_dtype_name(options->dtype));
    else if (options->label_column < 0 || (options->no_label && options->label_column > 0))
        ng_fail(NG_EVALUE, "%s: label column %d%s, expected 1 or more, or 0 for the last", function,
                options->label_column, options->no_label ? " and no label" : "");
    else if (options->targets < 0 ||
             (options->targets > 0 && (options->no_label || options->label_column > 0)))
        ng_fail(NG_EVALUE, "%s: %d targets%s, expected 0 or more, and then no label", function,
                options->targets, options->targets > 0 ? " and a setting of the label" : "");
    else
        return true;
    return false;
}

/* Counts the samples that follow; the columns are those of the first. */
static bool measure(ng_lines lines, const ng_dataset_read_csv_options *options, int64_t *rows,
                    ng_target *to)
{
    *rows = 0;
    while (next_row(&lines))
        if ((*rows)++ == 0) to->columns = columns_of(&lines);

    to->targets = options->targets;
    if (!options->no_label && !to->targets)
        to->label = options->label_column ? options->label_column : to->columns;
    if (*rows == 0)
        ng_fail(NG_EPARSE, "%s: %s: no samples%s", function, options->path,
                options->header ? " after the header" : "");
    else if (to->label > to->columns)
        ng_fail(NG_EPARSE, "%s: %s: label column %lld, but there are %lld columns", function,
                options->path, (long long)to->label, (long long)to->columns);
    else if (to->targets >= to->columns)
        ng_fail(NG_EPARSE, "%s: %s: %lld targets of %lld columns leave no feature", function,
                options->path, (long long)to->targets, (long long)to->columns);
    else if (to->label && to->columns == 1)
        ng_fail(NG_EPARSE,
                "%s: %s: the one column is the label and leaves no feature (delimiter '%c')",
                function, options->path, options->delimiter);
    else
        return true;
    return false;
}

static ng_dataset *parse(const ng_dataset_read_csv_options *options, const char *text, int64_t size)
{
    ng_lines lines = begin_lines(options, text, size);
    ng_target to = {.scale = options->scale};
    int64_t rows;
    if (options->header) next_row(&lines);
    if (!measure(lines, options, &rows, &to)) return NULL;

    const int64_t features = to.columns - to.targets - (to.label ? 1 : 0);
    to.x = ng_tensor_make(function, options->dtype, NG_SHAPE(rows, features));
    to.y = to.label     ? ng_tensor_make(function, NG_I64, NG_SHAPE(rows))
           : to.targets ? ng_tensor_make(function, options->dtype, NG_SHAPE(rows, to.targets))
                        : NG_NONE;
    bool parsed = to.x && to.y;
    for (int64_t row = 0; parsed && row < rows; row++)
        parsed = next_row(&lines) && parse_row(&lines, &to, row);
    if (parsed) return ng_dataset_adopt(function, to.x, to.y);
    ng_tensor_free(to.x);
    ng_tensor_free(to.y);
    return NULL;
}

ng_dataset *ng_dataset_read_csv_with(ng_dataset_read_csv_options options)
{
    if (!ng_given(function, "path", options.path) || !complete_options(&options)) return NULL;
    int64_t size;
    char *text = ng_file_read_unpacked(function, options.path, &size);
    if (!text) return NULL;

    ng_c_locale locale;
    ng_dataset *dataset = NULL;
    if (ng_c_locale_enter(function, &locale)) {
        dataset = parse(&options, text, size);
        ng_c_locale_leave(&locale);
    }
    ng_free(text);
    return dataset;
}
