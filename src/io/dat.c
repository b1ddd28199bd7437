/* Tensors as text for gnuplot. */
#include "core/tensor.h"
#include "io/file.h"
#include <inttypes.h>
#include <math.h>
#include <normgrad/history.h>

static const char function[] = "ng_tensor_write_dat";

/* How many dimensions end with the element that comes before the i-th: a line's, a matrix's... */
static int ended_before(const ng_tensor *x, int64_t i)
{
    int ended = 0;
    for (int d = x->shape.rank - 1; d >= 0; d--) {
        if (i % ng_shape_span(x->shape, d, x->shape.rank) != 0) break;
        ended++;
    }
    return ended;
}

static void print_rows(ng_replacement *file, const ng_tensor *x)
{
    const bool column = x->shape.rank < 2;
    for (int64_t i = 0; i < x->size; i++) {
        const int ended = i > 0 ? ended_before(x, i) : 0;
        for (int k = 0; k < ended && k < 3; k++) ng_replacement_print(file, "\n");
        if (i > 0 && ended == 0) ng_replacement_print(file, column ? "\n" : " ");
        if (x->dtype == NG_I64) {
            ng_replacement_print(file, "%" PRId64, ((const int64_t *)x->data)[i]);
            continue;
        }
        const double value = ng_tensor_load(x, i);
        ng_replacement_print(file, isnan(value) ? "nan" : "%.17g", value);
    }
    if (x->size > 0) ng_replacement_print(file, "\n");
}

ng_status ng_tensor_write_dat(const ng_tensor *x, const char *path)
{
    if (!ng_given(function, "x", x) || !ng_given(function, "path", path) ||
        !ng_readable(function, x))
        return ng_newest_status();
    ng_c_locale locale;
    if (!ng_c_locale_enter(function, &locale)) return ng_newest_status();
    ng_replacement file;
    ng_status status = ng_replacement_begin(&file, function, path);
    if (status == NG_OK) {
        print_rows(&file, x);
        status = ng_replacement_end(&file, NG_OK);
    }
    ng_c_locale_leave(&locale);
    return status;
}
