/* Pooling, upsampling and flattening as modules; formulas are in images.h. */
#include "nn/module.h"
#include "nn/window.h"
#include "ops/pool.h"

/* ---- Windows ------------------------------------------------------------------------------- */

void ng_print_window(const void *window, char *text, size_t bytes)
{
    const ng_window_options *w = window;
    const struct {
        const char *name;
        int64_t both, rows, columns;
    } settings[] = {{"kernel", w->kernel, w->kernel_h, w->kernel_w},
                    {"stride", w->stride, w->stride_h, w->stride_w},
                    {"padding", w->padding, w->padding_h, w->padding_w},
                    {"dilation", w->dilation, w->dilation_h, w->dilation_w}};
    size_t length = 0;
    for (int i = 0; i < 4; i++) {
        const long long rows = settings[i].rows != 0 ? settings[i].rows : settings[i].both;
        const long long columns = settings[i].columns != 0 ? settings[i].columns : settings[i].both;
        if (rows == 0 && columns == 0) continue;
        char *end = text + length;
        const size_t left = bytes - length;
        const char *comma = length > 0 ? ", " : "", *name = settings[i].name;
        length += (size_t)(rows == columns ? snprintf(end, left, "%s%s=%lld", comma, name, rows)
                                           : snprintf(end, left, "%s%s=%lld x %lld", comma, name,
                                                      rows, columns));
    }
}

/* ---- Pooling ------------------------------------------------------------------------------- */

typedef struct {
    ng_module base;
    ng_pool_call call;
} pool_layer;

static ng_tensor *pool_forward(ng_module *self, ng_tape *tape, ng_tensor *x)
{
    return ng_pooled(tape, x, &((const pool_layer *)self)->call);
}

static const ng_setting pool_settings[] = {
    {NG_PLACE("window", pool_layer, call.window), NG_IS_OTHER, .print = ng_print_window,
     .bare = true},
    {NG_PLACE("ceil", pool_layer, call.window.ceil), NG_IS_FLAG},
    {NG_PLACE("exclude_padding", pool_layer, call.window.exclude_padding), NG_IS_FLAG},
    {NG_PLACE("size", pool_layer, call.size), NG_IS_SHAPE, .unit = "elements", .bare = true},
    {0}};

#define POOL_CLASS(label)                                                                          \
    {                                                                                              \
        .name = label, .size = sizeof(pool_layer), .forward = pool_forward                         \
    }
static const ng_module_class max_pool_class = POOL_CLASS("MaxPool2d");
static const ng_module_class avg_pool_class = POOL_CLASS("AvgPool2d");
static const ng_module_class max_pool1d_class = POOL_CLASS("MaxPool1d");
static const ng_module_class avg_pool1d_class = POOL_CLASS("AvgPool1d");
static const ng_module_class adaptive_avg_class = POOL_CLASS("AdaptiveAvgPool");
static const ng_module_class adaptive_max_class = POOL_CLASS("AdaptiveMaxPool");

static ng_module *make_pool(const char *function, const ng_module_class *type, ng_pool_call call)
{
    ng_pool_call made = call;
    made.function = function;
    if (!ng_pool_settings_ok(&made)) return NULL;
    return ng_module_built(
        ng_layer_new(function, type, pool_settings, &(pool_layer){.call = call}));
}

ng_module *ng_max_pool2d_new_with(ng_window_options window)
{
    const ng_pool_call call = {.function = "ng_max_pool2d", .window = window, .max = true};
    return make_pool("ng_max_pool2d_new", &max_pool_class, call);
}

ng_module *ng_avg_pool2d_new_with(ng_window_options window)
{
    const ng_pool_call call = {.function = "ng_avg_pool2d", .window = window};
    return make_pool("ng_avg_pool2d_new", &avg_pool_class, call);
}

ng_module *ng_max_pool1d_new_with(ng_pool1d_options options)
{
    const ng_pool_call call = NG_LINE_POOL_CALL("ng_max_pool1d", options, true);
    return make_pool("ng_max_pool1d_new", &max_pool1d_class, call);
}

ng_module *ng_avg_pool1d_new_with(ng_pool1d_options options)
{
    const ng_pool_call call = NG_LINE_POOL_CALL("ng_avg_pool1d", options, false);
    return make_pool("ng_avg_pool1d_new", &avg_pool1d_class, call);
}

ng_module *ng_adaptive_avg_pool_new(ng_shape size)
{
    const ng_pool_call call = {.function = "ng_adaptive_avg_pool", .adaptive = true, .size = size};
    return make_pool("ng_adaptive_avg_pool_new", &adaptive_avg_class, call);
}

ng_module *ng_adaptive_max_pool_new(ng_shape size)
{
    const ng_pool_call call = {
        .function = "ng_adaptive_max_pool", .adaptive = true, .size = size, .max = true};
    return make_pool("ng_adaptive_max_pool_new", &adaptive_max_class, call);
}

/* ---- Upsampling ----------------------------------------------------------------------------- */

typedef struct {
    ng_module base;
    ng_upsample_options options;
} upsample;

static ng_tensor *upsample_forward(ng_module *self, ng_tape *tape, ng_tensor *x)
{
    return ng_upsample_with(tape, x, ((const upsample *)self)->options);
}

static const ng_module_class upsample_class = {
    .name = "Upsample", .size = sizeof(upsample), .forward = upsample_forward};

static const char *const mode_names[] = {"nearest", "linear", NULL};
static const ng_setting upsample_settings[] = {
    {NG_OPTION(upsample, scale), NG_IS_COUNT, .unit = "elements for each", .bare = true},
    {NG_OPTION(upsample, mode), NG_IS_CHOICE, .unit = "ng_interpolation", .choices = mode_names,
     .bare = true},
    {NG_OPTION(upsample, align_corners), NG_IS_FLAG, .needs = "mode", .when = 1 << NG_LINEAR},
    {0}};

ng_module *ng_upsample_new_with(ng_upsample_options options)
{
    return ng_module_built(ng_layer_new("ng_upsample_new", &upsample_class, upsample_settings,
                                        &(upsample){.options = options}));
}

/* ---- Global average, flatten --------------------------------------------------------------- */

static ng_tensor *global_forward(ng_module *self, ng_tape *tape, ng_tensor *x)
{
    (void)self;
    return ng_global_avg_pool(tape, x);
}

static const ng_module_class global_class = {
    .name = "GlobalAvgPool", .size = sizeof(ng_module), .forward = global_forward};

ng_module *ng_global_avg_pool_new(void) { return ng_module_built(ng_module_new(&global_class)); }

static ng_tensor *flatten_forward(ng_module *self, ng_tape *tape, ng_tensor *x)
{
    (void)self;
    return ng_flatten(tape, x);
}

static const ng_module_class flatten_class = {
    .name = "Flatten", .size = sizeof(ng_module), .forward = flatten_forward};

ng_module *ng_flatten_new(void) { return ng_module_built(ng_module_new(&flatten_class)); }
