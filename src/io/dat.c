/* Tensors as text for gnuplot. */
#include "core/tensor.h"
#include "io/file.h"
#include <inttypes.h>
#include <math.h>
#include <normgrad/history.h>

static const char write_dat[] = "ng_tensor_write_dat";

/* Returns how many dimensions end before element i: 1 at a new row, 2 at a new matrix... */
static int ended_before(const ng_tensor *x, int64_t i)
{
    int ended = 0;
    for (int d = x->shape.rank - 1; d >= 0; d--) {
        if (i % ng_shape_span(x->shape, d, x->shape.rank) != 0) break;
        ended++;
    }
    return ended;
}

static void print_dat_rows(ng_text *text, const ng_tensor *x)
{
    const bool column = x->shape.rank < 2;
    for (int64_t i = 0; i < x->size; i++) {
        const int ended = i > 0 ? ended_before(x, i) : 0;
        for (int k = 0; k < ended && k < 3; k++) ng_text_print(text, "\n");
        if (i > 0 && ended == 0) ng_text_print(text, column ? "\n" : " ");
        if (x->dtype == NG_I64) {
            ng_text_print(text, "%" PRId64, ((const int64_t *)x->data)[i]);
            continue;
        }
        const double value = ng_tensor_load(x, i);
        ng_text_print(text, isnan(value) ? "nan" : "%.17g", value);
    }
    if (x->size > 0) ng_text_print(text, "\n");
}

ng_status ng_tensor_write_dat(const ng_tensor *x, const char *path)
{
    if (!ng_given(write_dat, "x", x) || !ng_given(write_dat, "path", path) ||
        !ng_readable(write_dat, x))
        return ng_newest_status();
    ng_text text = {.function = write_dat};
    const locale_t locale = ng_c_locale_begin();
    ng_text_add(&text, "", 0);
    print_dat_rows(&text, x);
    ng_c_locale_end(locale);
    return ng_text_save(&text, path);
}
