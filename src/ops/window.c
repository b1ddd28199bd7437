/* Windows over images x (N, C, H, W), and over lines x (N, C, L), which are images of one row:
 * their settings with defaults, and whether they fit. */
#include "ops/window.h"

bool ng_is_image(const char *function, const ng_tensor *x)
{
    return ng_expect_shape(x->shape.rank == 4, function, "x", x, "(N, C, H, W)");
}

bool ng_is_line(const char *function, const ng_tensor *x)
{
    return ng_expect_shape(x->shape.rank == 3, function, "x", x, "(N, C, L)");
}

/* The setting of one direction if it is given, else that of both, else the default. */
static bool window_with_defaults(const char *function, const char *name, int64_t own, int64_t both,
                                 int64_t standard, int64_t least, int64_t *value)
{
    *value = own != 0 ? own : both != 0 ? both : standard;
    if (*value >= least && *value <= INT32_MAX) return true;
    if (*value == 0 && standard == 0)
        ng_fail(NG_EVALUE, "%s: %s is 0, expected at least 1: it has no default", function, name);
    else
        ng_fail(NG_EVALUE, "%s: %s is %lld, expected %lld to %lld", function, name,
                (long long)*value, (long long)least, (long long)INT32_MAX);
    return false;
}

bool ng_window_settings(const char *function, const ng_window_options *o, ng_windows *w)
{
    const int64_t kernel[] = {o->kernel_h, o->kernel_w}, stride[] = {o->stride_h, o->stride_w};
    const int64_t padding[] = {o->padding_h, o->padding_w};
    const int64_t dilation[] = {o->dilation_h, o->dilation_w};
    for (int i = 0; i < 2; i++)
        if (!window_with_defaults(function, "kernel", kernel[i], o->kernel, 0, 1, &w->kernel[i]) ||
            !window_with_defaults(function, "stride", stride[i], o->stride, 1, 1, &w->stride[i]) ||
            !window_with_defaults(function, "padding", padding[i], o->padding, 0, 0,
                                  &w->padding[i]) ||
            !window_with_defaults(function, "dilation", dilation[i], o->dilation, 1, 1,
                                  &w->dilation[i]))
            return false;
    return true;
}

bool ng_windows_of(const char *function, ng_shape image, const ng_window_options *window,
                   ng_windows *windows)
{
    ng_windows *w = windows;
    const bool line = image.rank == 3;
    *w = (ng_windows){.planes = image.dim[0] * image.dim[1]};
    if (!ng_window_settings(function, window, w)) return false;
    for (int i = 0; i < 2; i++) {
        w->size[i] = !line ? image.dim[2 + i] : i == 0 ? 1 : image.dim[2];
        const int64_t reach = w->dilation[i] * (w->kernel[i] - 1) + 1;
        const int64_t padded = w->size[i] + 2 * w->padding[i];
        const int64_t beyond = window->ceil && w->size[i] > 0 ? w->stride[i] - 1 : 0;
        if (reach > padded + beyond) {
            ng_fail(NG_ESHAPE,
                    "%s: a window of %lld %s on %lld (x is %s), expected one that fits into the "
                    "padded %s",
                    function, (long long)reach,
                    line     ? "places"
                    : i == 0 ? "rows"
                             : "columns",
                    (long long)padded, ng_shape_print(image).text, line ? "line" : "image");
            return false;
        }
        w->out[i] = (padded - reach + beyond) / w->stride[i] + 1;
        const int64_t last = (w->out[i] - 1) * w->stride[i];
        if (window->ceil && last >= w->size[i] + w->padding[i])
            w->out[i]--; /* it begins in padding */
    }
    /* The columns of one image must be addressable. */
    return ng_shape_size(function, NG_SHAPE(w->kernel[0], w->kernel[1], w->out[0], w->out[1],
                                            image.dim[1])) >= 0;
}

/* Whether the last window along axis i reaches beyond the padding, as one of .ceil may. */
static bool reaches_beyond(const ng_windows *w, int i)
{
    const int64_t end = (w->out[i] - 1) * w->stride[i] + w->dilation[i] * (w->kernel[i] - 1) + 1;
    return end > w->size[i] + 2 * w->padding[i];
}

ng_window_options ng_window_of(const ng_windows *w)
{
    return (ng_window_options){.kernel_h = w->kernel[0],
                               .kernel_w = w->kernel[1],
                               .stride_h = w->stride[0],
                               .stride_w = w->stride[1],
                               .padding_h = w->padding[0],
                               .padding_w = w->padding[1],
                               .dilation_h = w->dilation[0],
                               .dilation_w = w->dilation[1],
                               .ceil = reaches_beyond(w, 0) || reaches_beyond(w, 1)};
}
