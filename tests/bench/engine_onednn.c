/* The engine oneDNN, through its C API (version 2): one primitive on buffers made once. */
#include "engine.h"
#include <oneapi/dnnl/dnnl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ARGUMENTS = 12 };

static dnnl_engine_t engine;
static dnnl_stream_t stream;

typedef struct {
    dnnl_primitive_desc_t forward_hint, description;
    dnnl_primitive_t primitive;
    dnnl_exec_arg_t arguments[MOST_ARGUMENTS];
    void *buffers[MOST_ARGUMENTS];
    int count;
    dnnl_memory_desc_t matrix, row, per_row; /* (rows, columns), (columns), (rows) */
} primitive_state;

static void run(void *state, int variant)
{
    const primitive_state *s = state;
    (void)variant;
    dnnl_primitive_execute(s->primitive, stream, s->count, s->arguments);
    dnnl_stream_wait(stream);
}

static void close_primitive(void *state)
{
    primitive_state *s = state;
    if (s->primitive) dnnl_primitive_destroy(s->primitive);
    if (s->description) dnnl_primitive_desc_destroy(s->description);
    if (s->forward_hint) dnnl_primitive_desc_destroy(s->forward_hint);
    for (int i = 0; i < s->count; i++) {
        dnnl_memory_destroy(s->arguments[i].memory);
        free(s->buffers[i]);
    }
    free(s);
}

/* One more argument, filled with values around `center`. */
static bool argument(primitive_state *s, int which, const dnnl_memory_desc_t *shape, float center)
{
    const size_t bytes = dnnl_memory_desc_get_size(shape);
    float *values = bench_buffer((int64_t)bytes);
    if (!values) return false;
    for (size_t i = 0; i < bytes / sizeof *values; i++)
        values[i] = center + (float)(i % 1009) / 1009 - 0.5f;
    dnnl_memory_t memory;
    if (dnnl_memory_create(&memory, shape, engine, values) != dnnl_success) {
        free(values);
        return false;
    }
    s->buffers[s->count] = values;
    s->arguments[s->count++] = (dnnl_exec_arg_t){which, memory};
    return true;
}

static bool describe(primitive_state *s, const_dnnl_op_desc_t op, bool hint)
{
    return dnnl_primitive_desc_create(hint ? &s->forward_hint : &s->description, op, NULL, engine,
                                      s->forward_hint) == dnnl_success;
}

/* ---- The operations ------------------------------------------------------------------------ */

static const unsigned affine = dnnl_use_scale | dnnl_use_shift;

static bool norm_arguments(primitive_state *s, bool back, const dnnl_memory_desc_t *statistics)
{
    bool had = argument(s, DNNL_ARG_SRC, &s->matrix, 0) &&
               argument(s, DNNL_ARG_MEAN, statistics, 0) &&
               argument(s, DNNL_ARG_VARIANCE, statistics, 1) &&
               argument(s, DNNL_ARG_SCALE, &s->row, 1) && argument(s, DNNL_ARG_SHIFT, &s->row, 0);
    if (!back) return had && argument(s, DNNL_ARG_DST, &s->matrix, 0);
    return had && argument(s, DNNL_ARG_DIFF_DST, &s->matrix, 0) &&
           argument(s, DNNL_ARG_DIFF_SRC, &s->matrix, 0) &&
           argument(s, DNNL_ARG_DIFF_SCALE, &s->row, 0) &&
           argument(s, DNNL_ARG_DIFF_SHIFT, &s->row, 0);
}

static bool layer_norm(primitive_state *s, bool back)
{
    dnnl_layer_normalization_desc_t op;
    dnnl_layer_normalization_forward_desc_init(&op, dnnl_forward_training, &s->matrix, &s->per_row,
                                               1e-5f, affine);
    if (!describe(s, &op, back)) return false;
    if (back) {
        dnnl_layer_normalization_backward_desc_init(&op, dnnl_backward, &s->matrix, &s->matrix,
                                                    &s->per_row, 1e-5f, affine);
        if (!describe(s, &op, false)) return false;
    }
    return norm_arguments(s, back, &s->per_row);
}

/* The rows as pixels of one image with its channels last: for these there is a fast kernel. */
static bool batch_norm(primitive_state *s, bool back)
{
    dnnl_batch_normalization_desc_t op;
    const dnnl_dims_t image = {1, s->matrix.dims[1], s->matrix.dims[0], 1};
    dnnl_memory_desc_init_by_tag(&s->matrix, 4, image, dnnl_f32, dnnl_nhwc);
    dnnl_batch_normalization_forward_desc_init(&op, dnnl_forward_training, &s->matrix, 1e-5f,
                                               affine);
    if (!describe(s, &op, back)) return false;
    if (back) {
        dnnl_batch_normalization_backward_desc_init(&op, dnnl_backward, &s->matrix, &s->matrix,
                                                    1e-5f, affine);
        if (!describe(s, &op, false)) return false;
    }
    return norm_arguments(s, back, &s->row);
}

static bool gelu(primitive_state *s, bool back)
{
    dnnl_eltwise_desc_t op;
    dnnl_eltwise_forward_desc_init(&op, dnnl_forward_training, dnnl_eltwise_gelu_erf, &s->matrix, 0,
                                   0);
    if (!describe(s, &op, back) || !argument(s, DNNL_ARG_SRC, &s->matrix, 0)) return false;
    if (!back) return argument(s, DNNL_ARG_DST, &s->matrix, 0);
    dnnl_eltwise_backward_desc_init(&op, dnnl_eltwise_gelu_erf, &s->matrix, &s->matrix, 0, 0);
    return describe(s, &op, false) && argument(s, DNNL_ARG_DIFF_DST, &s->matrix, 0) &&
           argument(s, DNNL_ARG_DIFF_SRC, &s->matrix, 0);
}

static bool softmax(primitive_state *s, bool back)
{
    dnnl_softmax_v2_desc_t op;
    dnnl_softmax_v2_forward_desc_init(&op, dnnl_forward_training, dnnl_softmax_accurate, &s->matrix,
                                      &s->matrix, 1);
    if (!describe(s, &op, back) || !argument(s, DNNL_ARG_DST, &s->matrix, 0)) return false;
    if (!back) return argument(s, DNNL_ARG_SRC, &s->matrix, 0);
    dnnl_softmax_v2_backward_desc_init(&op, dnnl_softmax_accurate, &s->matrix, &s->matrix,
                                       &s->matrix, 1);
    return describe(s, &op, false) && argument(s, DNNL_ARG_DIFF_DST, &s->matrix, 0) &&
           argument(s, DNNL_ARG_DIFF_SRC, &s->matrix, 0);
}

/* The row as a matrix of one row. */
static dnnl_memory_desc_t one_row(const primitive_state *s)
{
    dnnl_memory_desc_t row;
    const dnnl_dims_t dims = {1, s->matrix.dims[1]};
    dnnl_memory_desc_init_by_tag(&row, 2, dims, dnnl_f32, dnnl_ab);
    return row;
}

static bool sum(primitive_state *s, const dnnl_memory_desc_t *second)
{
    dnnl_binary_desc_t op;
    dnnl_binary_desc_init(&op, dnnl_binary_add, &s->matrix, second, &s->matrix);
    return describe(s, &op, false) && argument(s, DNNL_ARG_SRC_0, &s->matrix, 0) &&
           argument(s, DNNL_ARG_SRC_1, second, 0) && argument(s, DNNL_ARG_DST, &s->matrix, 0);
}

static bool bias_add(primitive_state *s, bool back)
{
    const dnnl_memory_desc_t row = one_row(s);
    return !back && sum(s, &row);
}

static bool residual_add(primitive_state *s, bool back) { return !back && sum(s, &s->matrix); }

/* ---- Opening a case ------------------------------------------------------------------------ */

static const struct {
    const char *name;
    bool (*make)(primitive_state *s, bool back);
} operations[] = {
    {"layer_norm", layer_norm}, {"batch_norm", batch_norm}, {"gelu", gelu},
    {"softmax", softmax},       {"bias_add", bias_add},     {"residual_add", residual_add},
};

static bool open_primitive(const bench_case *what, bench_job *job)
{
    const bool back = strstr(what->group, "backward") || strstr(what->name, "backward");
    if (what->widths || strcmp(what->dtype, "f32") || !strcmp(what->group, "second")) return false;
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        if (strncmp(what->name, operations[i].name, strlen(operations[i].name))) continue;
        primitive_state *s = calloc(1, sizeof *s);
        if (!s) return false;
        const dnnl_dims_t matrix = {what->rows, what->columns}, row = {what->columns},
                          per_row = {what->rows};
        dnnl_memory_desc_init_by_tag(&s->matrix, 2, matrix, dnnl_f32, dnnl_ab);
        dnnl_memory_desc_init_by_tag(&s->row, 1, row, dnnl_f32, dnnl_a);
        dnnl_memory_desc_init_by_tag(&s->per_row, 1, per_row, dnnl_f32, dnnl_a);
        *job =
            (bench_job){.state = s, .run = run, .close = close_primitive, .per = 1, .variants = 1};
        return operations[i].make(s, back) &&
               dnnl_primitive_create(&s->primitive, s->description) == dnnl_success;
    }
    return false;
}

int main(void)
{
    char name[64];
    const dnnl_version_t *version = dnnl_version();
    snprintf(name, sizeof name, "oneDNN %d.%d.%d", version->major, version->minor, version->patch);
    if (dnnl_engine_create(&engine, dnnl_cpu, 0) != dnnl_success ||
        dnnl_stream_create(&stream, engine, dnnl_stream_default_flags) != dnnl_success)
        return EXIT_FAILURE;
    const int status = bench_serve(name, open_primitive);
    dnnl_stream_destroy(stream);
    dnnl_engine_destroy(engine);
    return status;
}
