/* Readable tensors:
 *
 *     float32 (2, 3)
 *     [[ 1        -2.5       0.001  ]
 *      [ ...                        ]]
 */
#include "core/error.h"
#include "core/number.h"
#include "core/tensor.h"
#include <math.h>
#include <string.h>

enum { EDGE = 3, LONG_AXIS = 8, PRINT_CELL = 32 };

/* Whether only EDGE entries at each end of an axis are shown. */
static bool is_cut(int64_t length) { return length > LONG_AXIS; }

static int64_t after(int64_t i, int64_t length)
{
    return is_cut(length) && i == EDGE - 1 ? length - EDGE : i + 1;
}

static int print_cell(char *text, const ng_tensor *x, int64_t index, int digits)
{
    if (x->dtype == NG_I64)
        return snprintf(text, PRINT_CELL, "%lld", (long long)((const int64_t *)x->data)[index]);
    const double value = ng_tensor_load(x, index);
    return isnan(value) ? snprintf(text, PRINT_CELL, "nan")
                        : snprintf(text, PRINT_CELL, "%.*g", digits, value);
}

/* The width of the widest cell that is shown from `offset` on, along the axes from `axis` on. */
static int widest(const ng_tensor *x, int axis, int64_t offset, int digits)
{
    char text[PRINT_CELL];
    if (axis == x->shape.rank) return print_cell(text, x, offset, digits);
    const int64_t length = x->shape.dim[axis];
    const int64_t stride = ng_shape_span(x->shape, axis + 1, x->shape.rank);
    int width = 0;
    for (int64_t i = 0; i < length; i = after(i, length)) {
        const int inner = widest(x, axis + 1, offset + i * stride, digits);
        if (inner > width) width = inner;
    }
    return width;
}

static void print_axis(FILE *stream, const ng_tensor *x, int axis, int64_t offset, int width,
                       int digits)
{
    char text[PRINT_CELL];
    if (axis == x->shape.rank) {
        print_cell(text, x, offset, digits);
        fprintf(stream, "%*s", width, text);
        return;
    }
    const int64_t length = x->shape.dim[axis];
    const int64_t stride = ng_shape_span(x->shape, axis + 1, x->shape.rank);
    const bool innermost = axis == x->shape.rank - 1;
    fputc('[', stream);
    for (int64_t i = 0; i < length; i = after(i, length)) {
        if (i > 0 && innermost) fputs("  ", stream);
        if (i > 0 && !innermost) fprintf(stream, "\n%*s", axis + 1, "");
        if (is_cut(length) && i == length - EDGE)
            innermost ? fputs("...  ", stream) : fprintf(stream, "...\n%*s", axis + 1, "");
        print_axis(stream, x, axis + 1, offset + i * stride, width, digits);
    }
    fputc(']', stream);
}

void ng_fprint_with(FILE *stream, ng_print_options options)
{
    const ng_tensor *x = options.x;
    if (!ng_given("ng_fprint", "stream", stream)) return;
    const char *instead = NULL;
    if (!ng_given("ng_fprint", "x", x))
        instead = "NULL";
    else if (ng_is_none(x))
        instead = "NG_NONE";
    else if (ng_is_expired(x)) {
        ng_readable("ng_fprint", x); /* records the failure */
        instead = "a tensor from before ng_tape_reset";
    } else if (ng_is_stale(x))
        instead = "a view of a tensor that was since converted to another dtype";
    if (instead) {
        fprintf(stream, "%s\n", instead);
        return;
    }
    if (options.digits < 0 || options.digits > 17) {
        ng_fail(NG_EVALUE, "ng_fprint: digits is %d, expected 1 to 17", options.digits);
        return;
    }
    const int digits = options.digits ? options.digits : 5;
    const locale_t locale = ng_c_locale_begin();
    fprintf(stream, "%s %s\n", ng_dtype_name(x->dtype), ng_shape_print(x->shape).text);
    print_axis(stream, x, 0, 0, widest(x, 0, 0, digits), digits);
    fputc('\n', stream);
    ng_c_locale_end(locale);
}
