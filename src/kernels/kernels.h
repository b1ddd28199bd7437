/* Kernels: loops over numbers, without tensors, tape or allocation.
 *
 * A table holds the kernels of one dtype compiled for one instruction set. Arrays are contiguous
 * and of the table's dtype unless said otherwise; statistics are double. Outputs do not overlap
 * inputs unless said; with `accumulate` the result is added to the output. Large work is shared
 * among threads in pieces that do not depend on their number: the bits are the same for any. */
#ifndef NG_KERNELS_KERNELS_H
#define NG_KERNELS_KERNELS_H

#include "kernels/parallel.h"
#include <normgrad/tape.h>

/* y[i] = f(x[i]; a, b), and its derivative where a fast one pays. */
typedef enum {
    NG_MAP_NEG,
    NG_MAP_ABS,
    NG_MAP_SIGN,
    NG_MAP_SQUARE,
    NG_MAP_RECIPROCAL,
    NG_MAP_EXP,
    NG_MAP_LOG,
    NG_MAP_SQRT,
    NG_MAP_RSQRT,
    NG_MAP_SIN,
    NG_MAP_COS,
    NG_MAP_ERF,
    NG_MAP_ERFC,
    NG_MAP_AFFINE, /* a x + b */
    NG_MAP_POW,    /* x^a */
    NG_MAP_CLAMP,  /* min(max(x, a), b) */
    NG_MAP_TANH,
    NG_MAP_SIGMOID,
    NG_MAP_RELU,
    NG_MAP_LEAKY_RELU, /* x > 0 ? x : a x */
    NG_MAP_GELU,
    NG_MAP_GELU_TANH,
    NG_MAP_SILU,
    NG_MAP_SOFTPLUS,
    NG_MAP_FLOOR,
    NG_MAP_LOG1P,
    NG_MAP_EXPM1,
    NG_MAP_ATAN,
    NG_MAP_ELU, /* x > 0 ? x : a (e^(b x) - 1) */
    NG_MAP_MISH,
    NG_MAP_HARDSWISH,
    NG_MAP_COUNT
} ng_map;

typedef struct {
    ng_map kind;
    double a, b;
} ng_mapping;

/* y[i] = f(a[i], b[i]) */
typedef enum {
    NG_BINARY_ADD,
    NG_BINARY_SUB,
    NG_BINARY_MUL,
    NG_BINARY_DIV,
    NG_BINARY_POW,
    NG_BINARY_MAXIMUM,
    NG_BINARY_MINIMUM, /* a NaN on either side gives NaN */
    NG_BINARY_GREATER,
    NG_BINARY_GREATER_EQUAL,
    NG_BINARY_LESS,
    NG_BINARY_EQUAL,          /* 1 or 0 */
    NG_BINARY_LOGISTIC,       /* softplus(a) - b a, b in [0, 1] */
    NG_BINARY_LOGISTIC_SLOPE, /* sigmoid(a) - b */
    NG_BINARY_COUNT
} ng_binary;

/* A walk over `rank` dimensions in row-major order, with each operand's stride (in elements) per
 * dimension; a broadcast operand has stride 0. */
typedef struct {
    int rank;
    int64_t size;
    int64_t dim[NG_MAX_RANK], a[NG_MAX_RANK], b[NG_MAX_RANK];
} ng_walk;

/* The walk that broadcasts a and b to `result`, with dimensions joined where memory allows. */
ng_walk ng_walk_broadcast(ng_shape result, ng_shape a, ng_shape b);

/* The walk with the given strides per dimension, joined likewise. */
ng_walk ng_walk_strided(ng_shape shape, const int64_t *a, const int64_t *b);

/* Strides of a dense tensor. */
void ng_strides(ng_shape shape, int64_t strides[NG_MAX_RANK]);

/* Copies elements of `bytes` (4 or 8) from from[walk.a] to to[walk.b], whose strides are not 0. */
void ng_copy_walk(const ng_walk *walk, const void *from, void *to, size_t bytes);

/* A scatter of x (count, width) to the rows of y (rows, width). */
typedef struct {
    int64_t count, rows, width;
} ng_scatter_shape;

/* Numbers of scratch that scatter_add_rows needs. */
static inline int64_t ng_scatter_scratch(const ng_scatter_shape *shape)
{
    return shape->rows + 2 + shape->count;
}

/* Row-wise normalization of x (rows, n). */
typedef struct {
    int64_t rows, n;
    double eps;
    bool center;   /* LayerNorm; else RMSNorm */
    bool unbiased; /* divide the variance by n - 1 (of centred rows) */
} ng_row_norm_shape;

/* Doubles of scratch that row_norm_backward and row_norm_second need. */
static inline int64_t ng_row_norm_scratch(const ng_row_norm_shape *s)
{
    return 4 * s->n * ng_block_count(s->rows, ng_norm_block_rows(s->rows, s->n));
}

/* Column-wise normalization of x (outer, channels, inner) for each channel; inner is at least 1. */
typedef struct {
    int64_t outer, channels, inner;
    double eps;
} ng_column_norm_shape;

/* x (outer, channels, inner), its channels in groups that have one mean and rstd each per outer
 * slice: statistics (outer, groups). */
typedef struct {
    int64_t outer, channels, groups, inner;
} ng_group_shape;

/* Doubles of scratch that group_norm_backward needs. */
static inline int64_t ng_group_norm_scratch(const ng_group_shape *s)
{
    const int64_t length = ng_group_block_slices(s->outer, s->channels, s->inner);
    return 4 * s->channels * ng_block_count(s->outer, length);
}

/* Of each row, or column, that is normalized: rstd, and the mean as the sum of two numbers, the
 * second what the first has lost to rounding, without which x - mean would lose digits of double
 * rows far from zero. mean is NULL where nothing is centred, low where it is 0: in float, whose
 * means, double, need none, and of statistics that are given. */
typedef struct {
    double *mean, *low, *rstd;
} ng_statistics;

/* Cross-entropy of rows of n logits; the row of a label `ignored` counts as 0 where `ignore`. */
typedef struct {
    int64_t rows, n;
    double smoothing;
    bool ignore;
    int64_t ignored;
} ng_cross_entropy_shape;

static inline bool ng_is_ignored(const ng_cross_entropy_shape *shape, int64_t label)
{
    return shape->ignore && label == shape->ignored;
}

/* The gradients of the losses of rows: scale at[row], or scale at[0] of all rows. */
typedef struct {
    const void *at;
    bool each;
    double scale;
} ng_loss_slopes;

/* Where a norm's backward kernel leaves what it is asked for. */
typedef struct {
    ng_slot dx, dgamma, dbeta;
} ng_norm_gradients;

/* Likewise the gradient of a norm's gradient dx, which is a function of x, gamma and dy. */
typedef struct {
    ng_slot dx, dgamma, ddy;
} ng_second_gradients;

/* velocity = keep velocity + fresh (g + weight_decay w) */
typedef struct {
    double lr, weight_decay, momentum, keep, fresh;
    bool nesterov;
} ng_sgd_step;
typedef struct {
    double lr, beta1, beta2, eps, weight_decay;
    double correction1, correction2; /* 1 - beta^t */
    bool decoupled;                  /* AdamW */
} ng_adam_step;
typedef struct {
    double lr, alpha, eps, weight_decay, momentum;
    bool centered;
} ng_rmsprop_step;

/* A factor of a product, in memory the transpose of what is multiplied if `transposed`. Rows in
 * memory are `row` elements apart. */
typedef struct {
    const void *at;
    int64_t row;
    bool transposed;
} ng_factor;

/* C (m, n) = A (m, k) B (k, n), plus C (accumulate) or plus bias (n) in each row unless that is
 * NULL; row-major, c_row elements from a row of C to the next. */
typedef struct {
    int64_t m, n, k;
    ng_factor a, b;
    const void *bias;
    void *c;
    int64_t c_row;
    bool accumulate;
} ng_product;

/* The product p of matrices without gaps. */
static inline ng_product ng_without_gaps(ng_product p)
{
    p.a.row = p.a.transposed ? p.m : p.k;
    p.b.row = p.b.transposed ? p.k : p.n;
    p.c_row = p.n;
    return p;
}

/* A window that moves over planes (height, width); each pair is (rows, columns). Output (r, c) sees
 * the elements (r stride - padding + i dilation, ...) for i < kernel; outside the plane is 0. */
typedef struct {
    int64_t planes;
    int64_t size[2], out[2], kernel[2], stride[2], padding[2], dilation[2];
} ng_windows;

/* The same windows, inside framed planes: these have their padding around them, and behind them at
 * least 16 elements that may be read and added to. */
static inline ng_windows ng_frame_of(const ng_windows *windows)
{
    ng_windows w = *windows;
    for (int k = 0; k < 2; k++) {
        const int64_t seen = (w.out[k] - 1) * w.stride[k] + (w.kernel[k] - 1) * w.dilation[k] + 1;
        w.size[k] += 2 * w.padding[k];
        if (w.size[k] < seen) w.size[k] = seen;
        w.padding[k] = 0;
    }
    w.size[0] += 1 + 16 / w.size[1];
    return w;
}
static inline int64_t ng_frame_size(const ng_windows *windows)
{
    const ng_windows w = ng_frame_of(windows);
    return w.planes * w.size[0] * w.size[1];
}

/* Planes (height, width) at another size; each pair is (rows, columns). Along an axis
 * y[i] = (1 - share[i]) x[low[i]] + share[i] x[low[i] + 1]; low does not decrease, share has the
 * planes' dtype and is NULL where it is 0 everywhere. */
typedef struct {
    int64_t planes;
    int64_t size[2], out[2];
    const int64_t *low[2];
    const void *share[2];
} ng_resizing;

/* Convolution of x (images, channels, height, width); windows.planes is `channels`. */
typedef struct {
    ng_windows windows;
    int64_t images, channels, outputs, groups;
} ng_conv_shape;

typedef struct {
    ng_slot dx, dweight, dbias;
} ng_conv_gradients;

/* Depthwise convolution: channels are shared out in so many blocks, whose rows are framed by zeros
 * in lines of so many elements. */
#define NG_DEPTHWISE_BLOCKS 16
static inline int64_t ng_depthwise_line(const ng_windows *v)
{
    const int64_t seen = v->size[1] + v->out[1] * v->stride[1] + 2 * v->padding[1];
    return seen + 2 * v->kernel[1] * v->dilation[1] + 2 * 64;
}
static inline int64_t ng_depthwise_bytes(const ng_windows *v)
{
    const int64_t rows = v->stride[1] * v->size[0] + v->out[0];
    return 8 * (v->kernel[0] * v->kernel[1] + 2 * v->kernel[1] + rows * ng_depthwise_line(v));
}
static inline int64_t ng_depthwise_scratch(const ng_windows *v)
{
    return NG_DEPTHWISE_BLOCKS * ng_depthwise_bytes(v);
}

/* Elements from one batch, head and row (position) of a tensor to the next. */
typedef struct {
    int64_t batch, head, row;
} ng_head_strides;

/* Attention of each head of each batch: q and y (queries, dim), k and v (keys, dim). */
typedef struct {
    int64_t batches, heads, queries, keys, dim;
    double scale;
    bool causal;    /* query t sees the keys 0 .. t + keys - queries */
    double dropout; /* with this probability a weight is 0, else 1 / (1 - dropout) as large */
    uint64_t seed;  /* which ones: dropout.h */
    ng_head_strides q, k, v, y;
} ng_attention_shape;

/* Its operands; mask (batches, keys) is 0 where no query sees the key, or NULL. */
typedef struct {
    const void *q, *k, *v, *mask;
} ng_attention_inputs;

typedef struct {
    ng_slot dq, dk, dv;
} ng_attention_gradients;

/* Rows of x (rows, features), row r at position r % length: the first `rotated` features of each
 * are heads of dim features. */
typedef struct {
    int64_t rows, length, features, rotated, dim;
} ng_rotation_shape;

/* The cells of recurrent networks: tanh or relu of one sum, GRU, LSTM. */
typedef enum { NG_CELL_TANH, NG_CELL_RELU, NG_CELL_GRU, NG_CELL_LSTM } ng_cell;

/* How many sums, gates, a cell has: the weights' rows for each feature of its state. */
static inline int64_t ng_cell_gates(ng_cell cell)
{
    return cell == NG_CELL_LSTM ? 4 : cell == NG_CELL_GRU ? 3 : 1;
}

/* One step of a GRU or an LSTM for some rows. What is computed backward is added. */
typedef struct {
    ng_cell cell;
    int64_t rows, hidden;
    const void *input, *product; /* W_ih x and W_hh h with their biases, (rows, G hidden) */
    const void *state;           /* GRU: h (rows, hidden); LSTM: h and c (2, rows, hidden) */
    void *after;                 /* the next state */
    void *gates;                 /* (rows, G hidden), for the backward pass */
    const void *dafter;
    void *dinput, *dproduct, *dstate; /* of the LSTM's h, which no gate reads, nothing */
} ng_cell_step;

/* A table: one pointer for each line of kernels.def. */
typedef struct {
    const char *isa; /* "baseline", "avx2", "avx512", "neon" */
#define X(returns, name, arguments) returns(*name) arguments;
#include "kernels/kernels.def"
#undef X
} ng_kernels;

/* The table for NG_F32 or NG_F64, for the best instruction set that this processor has, or the
 * one named by the environment variable NORMGRAD_ISA; if that cannot be had, an error is recorded
 * and the best is used. */
const ng_kernels *ng_kernels_for(ng_dtype dtype);

/* The instruction sets of this build, the best first: NULL after the last. */
const char *ng_isa_name(int i);

/* The table of one instruction set; NULL where the build or the processor lacks it. For tests. */
const ng_kernels *ng_kernels_of(const char *isa, ng_dtype dtype);

/* Convolution: y (images, outputs, out_h, out_w) = weight (outputs, channels / groups, kernel_h,
 * kernel_w) * x + bias (outputs), which may be NULL. scratch: ng_conv_scratch bytes. */
void ng_conv(ng_dtype dtype, const ng_conv_shape *shape, const void *x, const void *weight,
             const void *bias, void *y, void *scratch);
void ng_conv_backward(ng_dtype dtype, const ng_conv_shape *shape, const void *x, const void *weight,
                      const void *dy, ng_conv_gradients gradients, void *scratch);
int64_t ng_conv_scratch(ng_dtype dtype, const ng_conv_shape *shape, bool backward);

#endif
