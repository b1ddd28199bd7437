/* The engine oneDNN, through its C API, version 2 or 3: one primitive on buffers made once. */
#include "engine.h"
#include <oneapi/dnnl/dnnl.h>
#include <oneapi/dnnl/dnnl_version.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static dnnl_engine_t engine;
static dnnl_stream_t stream;

/* FORWARD and BACKWARD make the description of a primitive, 0 on success. Version 2 describes the
 * operation first; version 3 is told the shape of each result too, V3(shape). */
#if DNNL_VERSION_MAJOR >= 3
typedef dnnl_memory_desc_t shape;
#define V3(x) x,
#define FORWARD(to, name, ...) dnnl_##name##_primitive_desc_create(to, engine, __VA_ARGS__, NULL)
#define BACKWARD(to, forward, name, ...)                                                           \
    dnnl_##name##_primitive_desc_create(to, engine, __VA_ARGS__, forward, NULL)

static shape new_shape(int rank, const int64_t *dims, dnnl_format_tag_t tag)
{
    shape made = NULL;
    dnnl_memory_desc_create_with_tag(&made, rank, dims, dnnl_f32, tag);
    return made;
}

static void free_shape(shape x) { dnnl_memory_desc_destroy(x); }
#else
typedef dnnl_memory_desc_t *shape;
static _Alignas(64) char operation[1 << 14]; /* a description of any */
#define V3(x)
#define BACKWARD(to, forward, name, ...)                                                           \
    (dnnl_##name##_desc_init((void *)operation, __VA_ARGS__) ||                                    \
     dnnl_primitive_desc_create(to, operation, NULL, engine, forward))
#define FORWARD(to, name, ...) BACKWARD(to, NULL, name, __VA_ARGS__)
#define dnnl_softmax_forward_desc_init dnnl_softmax_v2_forward_desc_init
#define dnnl_softmax_backward_desc_init dnnl_softmax_v2_backward_desc_init

static shape new_shape(int rank, const int64_t *dims, dnnl_format_tag_t tag)
{
    shape made = malloc(sizeof *made);
    if (made) dnnl_memory_desc_init_by_tag(made, rank, dims, dnnl_f32, tag);
    return made;
}

static void free_shape(shape x) { free(x); }
#endif

enum { MOST_ARGUMENTS = 12, MOST_SHAPES = 3 };

typedef struct {
    dnnl_primitive_desc_t forward, description; /* forward: of a backward pass's other pass */
    dnnl_primitive_t primitive;
    dnnl_exec_arg_t arguments[MOST_ARGUMENTS];
    void *buffers[MOST_ARGUMENTS];
    int count, shapes;
    shape shape[MOST_SHAPES];
    int64_t rows, columns, depth;
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
    if (s->forward) dnnl_primitive_desc_destroy(s->forward);
    for (int i = 0; i < s->count; i++) {
        dnnl_memory_destroy(s->arguments[i].memory);
        free(s->buffers[i]);
    }
    for (int i = 0; i < s->shapes; i++) free_shape(s->shape[i]);
    free(s);
}

/* A shape that the state owns. */
static shape keep(primitive_state *s, int rank, const int64_t *dims, dnnl_format_tag_t tag)
{
    return s->shape[s->shapes++] = new_shape(rank, dims, tag);
}

static shape matrix(primitive_state *s, int64_t rows, int64_t columns)
{
    return keep(s, 2, (dnnl_dims_t){rows, columns}, dnnl_ab);
}

static shape vector(primitive_state *s, int64_t size)
{
    return keep(s, 1, (dnnl_dims_t){size}, dnnl_a);
}

/* One more argument, filled with values around `center`. */
static bool argument(primitive_state *s, int which, shape x, float center)
{
    const size_t bytes = dnnl_memory_desc_get_size(x);
    float *values = bench_buffer((int64_t)bytes);
    if (!values) return false;
    for (size_t i = 0; i < bytes / sizeof *values; i++)
        values[i] = center + (float)(i % 1009) / 1009 - 0.5f;
    dnnl_memory_t memory;
    if (dnnl_memory_create(&memory, x, engine, values) != dnnl_success) {
        free(values);
        return false;
    }
    s->buffers[s->count] = values;
    s->arguments[s->count++] = (dnnl_exec_arg_t){which, memory};
    return true;
}

/* ---- The operations ------------------------------------------------------------------------ */

static const unsigned affine = dnnl_use_scale | dnnl_use_shift;

static bool norm_arguments(primitive_state *s, bool back, bool shift, shape x, shape row,
                           shape statistics)
{
    bool had = argument(s, DNNL_ARG_SRC, x, 0) && argument(s, DNNL_ARG_MEAN, statistics, 0) &&
               argument(s, DNNL_ARG_VARIANCE, statistics, 1) &&
               argument(s, DNNL_ARG_SCALE, row, 1) &&
               (!shift || argument(s, DNNL_ARG_SHIFT, row, 0));
    if (!back) return had && argument(s, DNNL_ARG_DST, x, 0);
    return had && argument(s, DNNL_ARG_DIFF_DST, x, 0) && argument(s, DNNL_ARG_DIFF_SRC, x, 0) &&
           argument(s, DNNL_ARG_DIFF_SCALE, row, 0) && argument(s, DNNL_ARG_DIFF_SHIFT, row, 0);
}

static bool layer_norm(primitive_state *s, bool back)
{
    const shape x = matrix(s, s->rows, s->columns), row = vector(s, s->columns),
                statistics = vector(s, s->rows);
    return !FORWARD(back ? &s->forward : &s->description, layer_normalization_forward,
                    dnnl_forward_training, V3(x) x, statistics, 1e-5f, affine) &&
           (!back || !BACKWARD(&s->description, s->forward, layer_normalization_backward,
                               dnnl_backward, V3(x) x, x, statistics, 1e-5f, affine)) &&
           norm_arguments(s, back, true, x, row, statistics);
}

/* The rows as pixels of one image with its channels last: for these there is a fast kernel. */
static bool batch_norm(primitive_state *s, bool back)
{
    const shape x = keep(s, 4, (dnnl_dims_t){1, s->columns, s->rows, 1}, dnnl_nhwc),
                row = vector(s, s->columns);
    return !FORWARD(back ? &s->forward : &s->description, batch_normalization_forward,
                    dnnl_forward_training, V3(x) x, 1e-5f, affine) &&
           (!back || !BACKWARD(&s->description, s->forward, batch_normalization_backward,
                               dnnl_backward, V3(x) x, x, 1e-5f, affine)) &&
           norm_arguments(s, back, !back || DNNL_VERSION_MAJOR < 3, x, row, row);
}

/* A backward pass reads `kept`, either what went in or what came out. */
static bool map_arguments(primitive_state *s, bool back, shape x, int kept)
{
    if (!back) return argument(s, DNNL_ARG_SRC, x, 0) && argument(s, DNNL_ARG_DST, x, 0);
    return argument(s, kept, x, 0) && argument(s, DNNL_ARG_DIFF_DST, x, 0) &&
           argument(s, DNNL_ARG_DIFF_SRC, x, 0);
}

static bool gelu(primitive_state *s, bool back)
{
    const shape x = matrix(s, s->rows, s->columns);
    return !FORWARD(back ? &s->forward : &s->description, eltwise_forward, dnnl_forward_training,
                    dnnl_eltwise_gelu_erf, V3(x) x, 0, 0) &&
           (!back || !BACKWARD(&s->description, s->forward, eltwise_backward, dnnl_eltwise_gelu_erf,
                               V3(x) x, x, 0, 0)) &&
           map_arguments(s, back, x, DNNL_ARG_SRC);
}

static bool softmax(primitive_state *s, bool back)
{
    const shape x = matrix(s, s->rows, s->columns);
    return !FORWARD(back ? &s->forward : &s->description, softmax_forward, dnnl_forward_training,
                    dnnl_softmax_accurate, x, x, 1) &&
           (!back || !BACKWARD(&s->description, s->forward, softmax_backward, dnnl_softmax_accurate,
                               x, x, x, 1)) &&
           map_arguments(s, back, x, DNNL_ARG_DST);
}

static bool sum(primitive_state *s, shape x, shape second)
{
    return !FORWARD(&s->description, binary, dnnl_binary_add, x, second, x) &&
           argument(s, DNNL_ARG_SRC_0, x, 0) && argument(s, DNNL_ARG_SRC_1, second, 0) &&
           argument(s, DNNL_ARG_DST, x, 0);
}

static bool bias_add(primitive_state *s, bool back)
{
    return !back && sum(s, matrix(s, s->rows, s->columns), matrix(s, 1, s->columns));
}

static bool residual_add(primitive_state *s, bool back)
{
    const shape x = matrix(s, s->rows, s->columns);
    return !back && sum(s, x, x);
}

/* Rows by columns, summed over depth; an operand that is turned lies in memory the other way. */
static bool product(primitive_state *s, bool turns_a, bool turns_b)
{
    const dnnl_dims_t left = {s->rows, s->depth}, right = {s->depth, s->columns};
    const shape a = keep(s, 2, left, turns_a ? dnnl_ba : dnnl_ab),
                b = keep(s, 2, right, turns_b ? dnnl_ba : dnnl_ab),
                c = matrix(s, s->rows, s->columns);
    return !FORWARD(&s->description, matmul, a, b, NULL, c) && argument(s, DNNL_ARG_SRC, a, 0) &&
           argument(s, DNNL_ARG_WEIGHTS, b, 0) && argument(s, DNNL_ARG_DST, c, 0);
}

static bool product_ab(primitive_state *s, bool back) { return !back && product(s, false, false); }
static bool product_abt(primitive_state *s, bool back) { return !back && product(s, false, true); }
static bool product_atb(primitive_state *s, bool back) { return !back && product(s, true, false); }

/* ---- Opening a case ------------------------------------------------------------------------ */

static const struct {
    const char *name;
    bool (*make)(primitive_state *s, bool back);
} operations[] = {
    {"layer_norm", layer_norm}, {"batch_norm", batch_norm}, {"gelu", gelu},
    {"softmax", softmax},       {"bias_add", bias_add},     {"residual_add", residual_add},
    {"AB^T", product_abt},      {"A^TB", product_atb},      {"AB", product_ab},
};

static bool open_primitive(const bench_case *what, bench_job *job)
{
    const bool back = strstr(what->group, "backward") || strstr(what->name, "backward");
    if (what->widths || !strcmp(what->group, "second")) return false;
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        if (strncmp(what->name, operations[i].name, strlen(operations[i].name))) continue;
        primitive_state *s = calloc(1, sizeof *s);
        if (!s) return false;
        s->rows = what->rows, s->columns = what->columns, s->depth = what->depth;
        *job =
            (bench_job){.state = s, .run = run, .close = close_primitive, .per = 1, .variants = 1};
        return operations[i].make(s, back) &&
               dnnl_primitive_create(&s->primitive, s->description) == dnnl_success &&
               dnnl_primitive_execute(s->primitive, stream, s->count, s->arguments) ==
                   dnnl_success &&
               dnnl_stream_wait(stream) == dnnl_success;
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
