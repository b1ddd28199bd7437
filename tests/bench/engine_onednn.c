/* The engine oneDNN, through its C API: primitives on buffers made once, in the layouts that they
 * choose. */
#include "engine.h"
#include <oneapi/dnnl/dnnl.h>
#include <oneapi/dnnl/dnnl_version.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if DNNL_VERSION_MAJOR < 3
int main(void) { return puts("no it is version 2, version 3 or later is needed") < 0; }
#else

static dnnl_engine_t engine;
static dnnl_stream_t stream;

enum { MOST_ARGUMENTS = 12, MOST_SHAPES = 4, MOST_PASSES = 2 };
typedef dnnl_memory_desc_t shape;

typedef struct {
    dnnl_primitive_desc_t forward, description; /* forward: of a backward pass's other pass */
    dnnl_primitive_t primitive;
    dnnl_exec_arg_t arguments[MOST_ARGUMENTS];
    void *buffers[MOST_ARGUMENTS];
    int count;
} pass;

typedef struct {
    bench_case what;
    pass passes[MOST_PASSES]; /* a convolution's backward pass is two: of x, and of its weights */
    int n_passes, shapes;
    shape shape[MOST_SHAPES];
} work;

static bool execute(const work *w)
{
    bool well = true;
    for (int i = 0; i < w->n_passes; i++) {
        const pass *p = &w->passes[i];
        well &= !dnnl_primitive_execute(p->primitive, stream, p->count, p->arguments);
    }
    return !dnnl_stream_wait(stream) && well;
}

static void run(void *state) { execute(state); }

static void close_pass(pass *p)
{
    if (p->primitive) dnnl_primitive_destroy(p->primitive);
    if (p->description) dnnl_primitive_desc_destroy(p->description);
    if (p->forward) dnnl_primitive_desc_destroy(p->forward);
    for (int i = 0; i < p->count; i++) {
        dnnl_memory_destroy(p->arguments[i].memory);
        free(p->buffers[i]);
    }
}

static void close_work(void *state)
{
    work *w = state;
    for (int i = 0; i < w->n_passes; i++) close_pass(&w->passes[i]);
    for (int i = 0; i < w->shapes; i++) dnnl_memory_desc_destroy(w->shape[i]);
    free(w);
}

/* A shape that w owns. */
static shape shape_of(work *w, int rank, const int64_t *dims, dnnl_format_tag_t tag)
{
    shape *made = &w->shape[w->shapes++];
    dnnl_memory_desc_create_with_tag(made, rank, dims, dnnl_f32, tag);
    return *made;
}

static shape matrix(work *w, int64_t rows, int64_t columns)
{
    return shape_of(w, 2, (dnnl_dims_t){rows, columns}, dnnl_ab);
}

static shape vector(work *w, int64_t size) { return shape_of(w, 1, (dnnl_dims_t){size}, dnnl_a); }

static pass *new_pass(work *w) { return &w->passes[w->n_passes++]; }
#define FORWARD(to, name, ...) !dnnl_##name##_primitive_desc_create(to, engine, __VA_ARGS__, NULL)
#define BACKWARD(p, name, ...)                                                                     \
    !dnnl_##name##_primitive_desc_create(&(p)->description, engine, __VA_ARGS__, (p)->forward, NULL)
/* Describes the pass; if it is a backward one, first the forward pass that it belongs to. */
#define DESCRIBE(p, back, name, of_forward, of_backward)                                           \
    (FORWARD((back) ? &(p)->forward : &(p)->description, name##_forward, of_forward) &&            \
     (!(back) || BACKWARD(p, name##_backward, of_backward)))
#define WITH(...) __VA_ARGS__

/* One more argument of the pass, filled with values around `center`. */
static bool add_argument(pass *p, int which, float center)
{
    const const_dnnl_memory_desc_t x =
        dnnl_primitive_desc_query_md(p->description, dnnl_query_exec_arg_md, which);
    const size_t bytes = dnnl_memory_desc_get_size(x);
    float *values = bytes ? bench_buffer((int64_t)bytes) : NULL;
    if (!values) return false;
    for (size_t i = 0; i < bytes / sizeof *values; i++)
        values[i] = center + (float)(i % 1009) / 1009 - 0.5f;
    dnnl_memory_t memory;
    if (dnnl_memory_create(&memory, x, engine, values) != dnnl_success) {
        free(values);
        return false;
    }
    p->buffers[p->count] = values;
    p->arguments[p->count++] = (dnnl_exec_arg_t){which, memory};
    return true;
}

/* Makes the primitive with these arguments, up to a 0; variances and scales are around 1. */
static bool finish(pass *p, const int *which)
{
    for (; *which; which++)
        if (!add_argument(p, *which, *which == DNNL_ARG_VARIANCE || *which == DNNL_ARG_SCALE))
            return false;
    return dnnl_primitive_create(&p->primitive, p->description) == dnnl_success;
}
#define FINISH(p, ...) finish(p, (const int[]){__VA_ARGS__, 0})

/* ---- The operations ------------------------------------------------------------------------ */

static const unsigned affine = dnnl_use_scale | dnnl_use_shift;

/* LayerNorm of rows; BatchNorm of rows as pixels of one image with its channels last, for which
 * there is a fast kernel. */
static bool norm(work *w, bool back)
{
    const int64_t rows = w->what.rows, columns = w->what.columns;
    const bool layer = !strcmp(w->what.name, "layer_norm");
    const shape x = layer ? matrix(w, rows, columns)
                          : shape_of(w, 4, (dnnl_dims_t){1, columns, rows, 1}, dnnl_nhwc);
    const shape statistics = vector(w, rows);
    pass *p = new_pass(w);
    const bool well = layer ? DESCRIBE(p, back, layer_normalization,
                                       WITH(dnnl_forward_training, x, x, statistics, 1e-5f, affine),
                                       WITH(dnnl_backward, x, x, x, statistics, 1e-5f, affine))
                            : DESCRIBE(p, back, batch_normalization,
                                       WITH(dnnl_forward_training, x, x, 1e-5f, affine),
                                       WITH(dnnl_backward, x, x, x, 1e-5f, affine));
    if (!back)
        return well && FINISH(p, DNNL_ARG_SRC, DNNL_ARG_MEAN, DNNL_ARG_VARIANCE, DNNL_ARG_SCALE,
                              DNNL_ARG_SHIFT, DNNL_ARG_DST);
    return well && FINISH(p, DNNL_ARG_SRC, DNNL_ARG_MEAN, DNNL_ARG_VARIANCE, DNNL_ARG_SCALE,
                          DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_SRC, DNNL_ARG_DIFF_SCALE,
                          DNNL_ARG_DIFF_SHIFT, layer ? DNNL_ARG_SHIFT : 0);
}

/* A backward pass reads what went in, softmax's what came out. */
static bool map(work *w, bool back)
{
    const bool is_gelu = !strcmp(w->what.name, "gelu");
    const shape x = matrix(w, w->what.rows, w->what.columns);
    pass *p = new_pass(w);
    const bool well = is_gelu
                          ? DESCRIBE(p, back, eltwise,
                                     WITH(dnnl_forward_training, dnnl_eltwise_gelu_erf, x, x, 0, 0),
                                     WITH(dnnl_eltwise_gelu_erf, x, x, x, 0, 0))
                          : DESCRIBE(p, back, softmax,
                                     WITH(dnnl_forward_training, dnnl_softmax_accurate, x, x, 1),
                                     WITH(dnnl_softmax_accurate, x, x, x, 1));
    if (!back) return well && FINISH(p, DNNL_ARG_SRC, DNNL_ARG_DST);
    return well &&
           FINISH(p, is_gelu ? DNNL_ARG_SRC : DNNL_ARG_DST, DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_SRC);
}

static bool add(work *w)
{
    const shape x = matrix(w, w->what.rows, w->what.columns);
    const shape second = strcmp(w->what.name, "bias_add") ? x : matrix(w, 1, w->what.columns);
    pass *p = new_pass(w);
    return FORWARD(&p->description, binary, dnnl_binary_add, x, second, x) &&
           FINISH(p, DNNL_ARG_SRC_0, DNNL_ARG_SRC_1, DNNL_ARG_DST);
}

/* An operand that is turned lies in memory the other way. */
static bool product(work *w)
{
    const bench_case *c = &w->what;
    const dnnl_dims_t left = {c->rows, c->depth}, right = {c->depth, c->columns};
    const shape a = shape_of(w, 2, left, bench_turns(c, 'A') ? dnnl_ba : dnnl_ab),
                b = shape_of(w, 2, right, bench_turns(c, 'B') ? dnnl_ba : dnnl_ab);
    pass *p = new_pass(w);
    return FORWARD(&p->description, matmul, a, b, NULL, matrix(w, c->rows, c->columns)) &&
           FINISH(p, DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST);
}

static bool convolution(work *w, bool back)
{
    const bench_case *c = &w->what;
    const bool grouped = c->groups > 1;
    const dnnl_dims_t of_x = {c->rows, c->columns, c->depth, c->depth},
                      of_y = {c->rows, c->out, c->side, c->side},
                      of_w[2] = {{c->out, c->columns, c->kernel, c->kernel},
                                 {c->groups, c->out / c->groups, 1, c->kernel, c->kernel}},
                      strides = {c->stride, c->stride}, dilation = {0, 0},
                      padding = {c->padding, c->padding};
    const shape x = shape_of(w, 4, of_x, dnnl_format_tag_any),
                y = shape_of(w, 4, of_y, dnnl_format_tag_any),
                weights = shape_of(w, 4 + grouped, of_w[grouped], dnnl_format_tag_any),
                bias = vector(w, c->out);
    pass *p = new_pass(w);
    if (!FORWARD(back ? &p->forward : &p->description, convolution_forward, dnnl_forward_training,
                 dnnl_convolution_direct, x, weights, bias, y, strides, dilation, padding,
                 padding) ||
        (back && !BACKWARD(p, convolution_backward_data, dnnl_convolution_direct, x, weights, y,
                           strides, dilation, padding, padding)))
        return false;
    if (!back) return FINISH(p, DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS, DNNL_ARG_DST);
    pass *q = new_pass(w);
    return FINISH(p, DNNL_ARG_DIFF_DST, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_SRC) &&
           !dnnl_primitive_desc_clone(&q->forward, p->forward) &&
           BACKWARD(q, convolution_backward_weights, dnnl_convolution_direct, x, weights, bias, y,
                    strides, dilation, padding, padding) &&
           FINISH(q, DNNL_ARG_SRC, DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_BIAS);
}

/* ---- Opening a case ------------------------------------------------------------------------ */

static bool make(work *w)
{
    const char *name = w->what.name;
    const bool back = w->what.back;
    if (w->what.kernel) return convolution(w, back);
    if (!strcmp(w->what.group, "product")) return product(w);
    if (!strcmp(name, "layer_norm") || !strcmp(name, "batch_norm")) return norm(w, back);
    if (!strcmp(name, "gelu") || !strcmp(name, "softmax")) return map(w, back);
    return strstr(name, "_add") && !back && add(w);
}

static bool open_work(const bench_case *what, bench_job *job)
{
    if (!strcmp(what->group, "second") || what->widths) return false;
    work *w = calloc(1, sizeof *w);
    if (!w) return false;
    w->what = *what;
    *job = (bench_job){.state = w, .run = run, .close = close_work};
    return make(w) && execute(w);
}

static const char *isa(void)
{
    const int has = (int)dnnl_get_effective_cpu_isa(), avx2 = dnnl_cpu_isa_avx2,
              avx512 = dnnl_cpu_isa_avx512_core;
    return (has & avx512) == avx512 ? "avx512" : (has & avx2) == avx2 ? "avx2" : "sse4.1";
}

int main(void)
{
    char name[64];
    const dnnl_version_t *version = dnnl_version();
    snprintf(name, sizeof name, "oneDNN %d.%d.%d for %s", version->major, version->minor,
             version->patch, isa());
    if (dnnl_engine_create(&engine, dnnl_cpu, 0) != dnnl_success ||
        dnnl_stream_create(&stream, engine, dnnl_stream_default_flags) != dnnl_success)
        return EXIT_FAILURE;
    const int status = bench_serve(name, open_work);
    dnnl_stream_destroy(stream);
    dnnl_engine_destroy(engine);
    return status;
}
#endif
