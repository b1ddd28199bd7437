/* oneDNN 3, for tests/accuracy/norms: reads requests, writes results (engines.c has the form). It
 * has LayerNorm, BatchNorm, softmax and log-softmax in float, without the second order. Without
 * oneDNN there is no program. */
#if __has_include(<oneapi/dnnl/dnnl.h>)
#include <oneapi/dnnl/dnnl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static dnnl_engine_t engine;
static dnnl_stream_t stream;

enum { X, Y, MEAN, VARIANCE, GAMMA, BETA, DY, DX, DGAMMA, DBETA, BUFFERS };
static const int argument[BUFFERS] = {
    DNNL_ARG_SRC,   DNNL_ARG_DST,      DNNL_ARG_MEAN,     DNNL_ARG_VARIANCE,   DNNL_ARG_SCALE,
    DNNL_ARG_SHIFT, DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_SRC, DNNL_ARG_DIFF_SCALE, DNNL_ARG_DIFF_SHIFT};
static float *buffer[BUFFERS];
static size_t size[BUFFERS];

static void check(dnnl_status_t status)
{
    if (status != dnnl_success) exit(1);
}

static dnnl_memory_desc_t shape_of(int rank, const dnnl_dims_t dims, dnnl_format_tag_t tag)
{
    dnnl_memory_desc_t made;
    check(dnnl_memory_desc_create_with_tag(&made, rank, dims, dnnl_f32, tag));
    return made;
}

static void run(dnnl_primitive_desc_t description, const dnnl_memory_desc_t *shape)
{
    dnnl_exec_arg_t arguments[BUFFERS];
    int count = 0;
    for (int i = 0; i < BUFFERS; i++) {
        if (!shape[i]) continue;
        arguments[count].arg = argument[i];
        check(dnnl_memory_create(&arguments[count++].memory, shape[i], engine, buffer[i]));
    }
    dnnl_primitive_t primitive;
    check(dnnl_primitive_create(&primitive, description));
    check(dnnl_primitive_execute(primitive, stream, count, arguments));
    check(dnnl_stream_wait(stream));
    dnnl_primitive_destroy(primitive);
    while (count > 0) dnnl_memory_destroy(arguments[--count].memory);
}

static void norm(bool batch, int64_t rows, int64_t n, float eps)
{
    const dnnl_dims_t image = {1, rows, n, 1}, matrix = {rows, n};
    const dnnl_memory_desc_t x = batch ? shape_of(4, image, dnnl_nchw)
                                       : shape_of(2, matrix, dnnl_ab),
                             row = shape_of(1, (dnnl_dims_t){batch ? rows : n}, dnnl_a),
                             each = shape_of(1, (dnnl_dims_t){rows}, dnnl_a);
    const unsigned affine = dnnl_use_scale | dnnl_use_shift;
    dnnl_primitive_desc_t forward, backward;
    if (batch) {
        check(dnnl_batch_normalization_forward_primitive_desc_create(
            &forward, engine, dnnl_forward_training, x, x, eps, affine, NULL));
        check(dnnl_batch_normalization_backward_primitive_desc_create(
            &backward, engine, dnnl_backward, x, x, x, eps, affine, forward, NULL));
    } else {
        check(dnnl_layer_normalization_forward_primitive_desc_create(
            &forward, engine, dnnl_forward_training, x, x, each, eps, affine, NULL));
        check(dnnl_layer_normalization_backward_primitive_desc_create(
            &backward, engine, dnnl_backward, x, x, x, each, eps, affine, forward, NULL));
    }
    run(forward, (dnnl_memory_desc_t[BUFFERS]){x, x, each, each, row, row});
    run(backward, (dnnl_memory_desc_t[BUFFERS]){x, NULL, each, each, row, batch ? NULL : row, x, x,
                                                row, row});
    dnnl_primitive_desc_destroy(forward), dnnl_primitive_desc_destroy(backward);
    dnnl_memory_desc_destroy(x), dnnl_memory_desc_destroy(row), dnnl_memory_desc_destroy(each);
}

static void softmax(bool log, int64_t rows, int64_t n)
{
    const dnnl_memory_desc_t x = shape_of(2, (dnnl_dims_t){rows, n}, dnnl_ab);
    const dnnl_alg_kind_t kind = log ? dnnl_softmax_log : dnnl_softmax_accurate;
    dnnl_primitive_desc_t forward, backward;
    check(dnnl_softmax_forward_primitive_desc_create(&forward, engine, dnnl_forward_training, kind,
                                                     x, x, 1, NULL));
    check(dnnl_softmax_backward_primitive_desc_create(&backward, engine, kind, x, x, x, 1, forward,
                                                      NULL));
    run(forward, (dnnl_memory_desc_t[BUFFERS]){x, x});
    run(backward, (dnnl_memory_desc_t[BUFFERS]){[Y] = x, [DY] = x, [DX] = x});
    dnnl_primitive_desc_destroy(forward), dnnl_primitive_desc_destroy(backward);
    dnnl_memory_desc_destroy(x);
}

/* Reads numbers as doubles into a buffer; one that is not asked for gets none. */
static void take(int which, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        double x = 0;
        if (fread(&x, sizeof x, 1, stdin) != 1) exit(1);
        if (which < BUFFERS) buffer[which][i] = (float)x;
    }
}

static void give(int which, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const double x = (double)buffer[which][i];
        fwrite(&x, sizeof x, 1, stdout);
    }
}

static void answer(const char *op, bool single, int64_t rows, int64_t n, float eps)
{
    const bool batch = strcmp(op, "batch_norm") == 0;
    const size_t all = (size_t)(rows * n);
    const size_t row = strcmp(op, "attention") == 0 ? all : (size_t)(batch ? rows : n);
    for (int i = 0; i < BUFFERS; i++)
        if (size[i] < all + row + (size_t)rows) {
            size[i] = all + row + (size_t)rows;
            free(buffer[i]);
            buffer[i] = calloc(size[i], sizeof(float));
        }
    take(X, all), take(DY, all), take(BUFFERS, all), take(GAMMA, row), take(BETA, row);
    const bool is_norm = batch || strcmp(op, "layer_norm") == 0;
    const bool is_softmax = strcmp(op, "softmax") == 0 || strcmp(op, "log_softmax") == 0;
    if (single && is_norm) norm(batch, rows, n, eps);
    if (single && is_softmax) softmax(*op == 'l', rows, n);
    printf("%d\n", !single ? 0 : is_norm ? 7 : is_softmax ? 3 : 0);
    if (single && (is_norm || is_softmax)) give(Y, all), give(DX, all);
    if (single && is_norm) give(DGAMMA, row);
    fflush(stdout);
}

int main(void)
{
    check(dnnl_engine_create(&engine, dnnl_cpu, 0));
    check(dnnl_stream_create(&stream, engine, dnnl_stream_default_flags));
    const dnnl_version_t *version = dnnl_version();
    printf("oneDNN %d.%d.%d\n", version->major, version->minor, version->patch);
    fflush(stdout);
    char line[128], op[32];
    while (fgets(line, sizeof line, stdin)) {
        int single;
        long long rows, n;
        float eps;
        if (sscanf(line, "%31s %d %lld %lld %f", op, &single, &rows, &n, &eps) != 5) return 1;
        answer(op, single, rows, n, eps);
    }
    return 0;
}
#endif
