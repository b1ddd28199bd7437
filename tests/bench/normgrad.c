/* The engine normgrad: the library through its public functions, tape and all, as a training loop
 * uses it; matrix products by their kernel. And the program of the roof. */
#include "engine.h"
#include "kernels/kernels.h"
#include <normgrad.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double eps = 1e-5;

static void stop_on_failure(void)
{
    if (!ng_failed()) return;
    fprintf(stderr, "normgrad: %s\n", ng_error_text());
    exit(EXIT_FAILURE);
}

/* ---- One op -------------------------------------------------------------------------------- */

enum { MOST_INPUTS = 3 };

typedef struct {
    bench_case what;
    int op;
    ng_tape *tape;
    ng_tensor *inputs[MOST_INPUTS]; /* they require gradients */
    ng_tensor *labels, *mean, *var; /* constants */
    ng_tensor *dy, *arrived, *y;    /* dy, and a copy on the tape */
} op_state;

/* The name, how many inputs, whether the second has one row only, and the op of inputs `in`. */
#define OPS(X)                                                                                     \
    X("layer_norm", 3, true, ng_layer_norm(t, in[0], in[1], in[2], .eps = eps))                    \
    X("rms_norm", 2, true, ng_rms_norm(t, in[0], in[1], .eps = eps))                               \
    X("batch_norm", 3, true,                                                                       \
      ng_batch_norm(t, in[0], in[1], in[2], s->mean, s->var, .eps = eps, .training = true))        \
    X("gelu", 1, false, ng_gelu(t, in[0]))                                                         \
    X("softmax", 1, false, ng_softmax(t, in[0]))                                                   \
    X("cross_entropy", 1, false, ng_cross_entropy(t, in[0], s->labels))                            \
    X("bias_add", 2, true, ng_add(t, in[0], in[1]))                                                \
    X("residual_add", 2, false, ng_add(t, in[0], in[1]))                                           \
    X("conv", 3, false,                                                                            \
      ng_conv2d(t, in[0], in[1], in[2], .stride = s->what.stride, .padding = s->what.padding,      \
                .groups = s->what.groups))

#define ENTRY(name, n_inputs, row, value) {name, n_inputs, row},
static const struct {
    const char *name;
    int n_inputs;
    bool row;
} ops[] = {OPS(ENTRY)};
enum { N_OPS = sizeof ops / sizeof *ops };

static void call(op_state *s)
{
    ng_tape *t = s->tape;
    ng_tensor *const *in = s->inputs;
    int i = 0;
#define VALUE(name, n_inputs, row, value)                                                          \
    if (s->op == i++) s->y = value;
    OPS(VALUE)
}

static void forward(void *state)
{
    op_state *s = state;
    ng_tape_reset(s->tape);
    call(s);
}

/* What arrives in the middle of a network is the tape's; here it is older than y. */
static void before_backward(void *state)
{
    op_state *s = state;
    ng_tape_reset(s->tape);
    s->arrived = ng_mul_scalar(s->tape, s->dy, 1);
    call(s);
}

/* ng_gradients writes gradients as a backward pass does there: it does not add to those of the run
 * before. */
static void backward(void *state)
{
    op_state *s = state;
    ng_tensor *gradients[MOST_INPUTS];
    ng_gradients(s->tape, &s->y, 1, s->inputs, ops[s->op].n_inputs, gradients,
                 .cotangents = &s->arrived);
}

/* d sum (dL/dx)^2 with respect to x and gamma, L = sum y dy. */
static void second(void *state)
{
    op_state *s = state;
    ng_tensor *first[1], *last[2];
    forward(state);
    ng_gradients(s->tape, &s->y, 1, s->inputs, 1, first, .cotangents = &s->dy, .record = true);
    ng_tensor *size = ng_sum(s->tape, ng_square(s->tape, first[0]));
    ng_gradients(s->tape, &size, 1, s->inputs, 2, last);
}

static void close_op(void *state)
{
    op_state *s = state;
    for (int i = 0; i < MOST_INPUTS; i++) ng_tensor_free(s->inputs[i]);
    ng_tensor_free(s->labels), ng_tensor_free(s->mean), ng_tensor_free(s->var);
    ng_tensor_free(s->dy), ng_tape_free(s->tape), free(s);
}

/* int64 below `count` */
static ng_tensor *ids(ng_shape shape, int64_t count, ng_rng *rng)
{
    ng_tensor *x = ng_zeros_new(NG_I64, shape);
    for (int64_t i = 0; i < ng_size(x); i++) ng_set(x, i, (double)ng_rng_below(rng, count));
    return x;
}

static void make_inputs(op_state *s, ng_rng *rng)
{
    const bench_case *w = &s->what;
    const ng_shape matrix = NG_SHAPE(w->rows, w->columns), vector = NG_SHAPE(w->columns);
    ng_shape shape[MOST_INPUTS] = {matrix, ops[s->op].row ? vector : matrix, vector};
    if (w->kernel) {
        shape[0] = NG_SHAPE(w->rows, w->columns, w->depth, w->depth);
        shape[1] = NG_SHAPE(w->out, w->columns / w->groups, w->kernel, w->kernel);
        shape[2] = NG_SHAPE(w->out);
    }
    for (int i = 0; i < ops[s->op].n_inputs; i++)
        s->inputs[i] =
            ng_require_grad(ng_uniform_new(NG_F32, shape[i], i ? 0.5 : -2, i ? 1.5 : 2, rng));
    s->mean = ng_zeros_new(NG_F32, vector);
    s->var = ng_ones_new(NG_F32, vector);
    s->labels = ids(NG_SHAPE(w->rows), w->columns, rng);
}

static bool open_op(const bench_case *what, bench_job *job)
{
    const char *name = what->kernel ? "conv" : what->name;
    ng_rng rng = ng_rng_seeded(1);
    int op = 0;
    while (op < N_OPS && strcmp(name, ops[op].name)) op++;
    op_state *s = op < N_OPS ? calloc(1, sizeof *s) : NULL;
    if (!s) return false;
    *s = (op_state){.what = *what, .op = op, .tape = ng_tape_new()};
    make_inputs(s, &rng);
    call(s);
    stop_on_failure();
    s->dy = ng_rank(s->y) == 0 ? ng_ones_new(NG_F32, NG_SCALAR)
                               : ng_uniform_new(NG_F32, ng_shape_of(s->y), -1, 1, &rng);
    *job = (bench_job){.state = s,
                       .before = what->back ? before_backward : NULL,
                       .run = !strcmp(what->group, "second") ? second
                              : what->back                   ? backward
                                                             : forward,
                       .close = close_op};
    return true;
}

/* ---- A training step ------------------------------------------------------------------------ */

enum { MOST_PARAMETERS = 16 };

typedef struct {
    ng_tape *tape;
    ng_module *net;
    ng_optimizer *adam;
    ng_tensor *x, *labels;
    ng_tensor *w[MOST_PARAMETERS], *v[MOST_PARAMETERS]; /* of maml, hvp: parameters, a direction */
    int n;
} step_state;

static void descend(const step_state *s, ng_tensor *loss)
{
    if (ng_backward(s->tape, loss) || ng_optimizer_step(s->adam)) stop_on_failure();
    ng_tape_reset(s->tape);
}

static void step(void *state)
{
    const step_state *s = state;
    descend(s, ng_cross_entropy(s->tape, ng_forward(s->net, s->tape, s->x), s->labels));
}

/* The penalty of WGAN-GP (Gulrajani et al. 2017): the mean of (|d sum net(x) / dx| - 1)^2. */
static void penalty(void *state)
{
    const step_state *s = state;
    ng_tape *tape = s->tape;
    ng_tensor *sum = ng_sum(tape, ng_forward(s->net, tape, s->x));
    ng_tensor *slope = ng_gradient(tape, sum, s->x, .record = true);
    ng_tensor *size = ng_sqrt(tape, ng_sum(tape, ng_square(tape, slope), .axes = NG_AXES(1)));
    descend(s, ng_mean(tape, ng_square(tape, ng_add_scalar(tape, size, -1))));
}

static ng_tensor *loss_with(const step_state *s, ng_tensor *const *w)
{
    return ng_cross_entropy(s->tape, ng_forward_using(s->net, s->tape, w, s->n, s->x), s->labels);
}

/* Through a step of gradient descent (MAML, Finn, Abbeel & Levine 2017). */
static void maml(void *state)
{
    const step_state *s = state;
    ng_tensor *g[MOST_PARAMETERS], *w[MOST_PARAMETERS], *loss = loss_with(s, s->w);
    if (ng_gradients(s->tape, &loss, 1, s->w, s->n, g, .record = true)) stop_on_failure();
    for (int i = 0; i < s->n; i++)
        w[i] = ng_sub(s->tape, s->w[i], ng_mul_scalar(s->tape, g[i], 0.01));
    descend(s, loss_with(s, w));
}

static void hvp(void *state)
{
    const step_state *s = state;
    ng_tensor *products[MOST_PARAMETERS], *loss = loss_with(s, s->w);
    if (ng_hvp(s->tape, loss, s->w, s->n, s->v, products)) stop_on_failure();
    ng_tape_reset(s->tape);
}

static void take_parameters(step_state *s, ng_rng *rng)
{
    ng_named_tensor p;
    for (; s->n < MOST_PARAMETERS && ng_module_parameter(s->net, s->n, &p); s->n++) {
        s->w[s->n] = p.tensor;
        s->v[s->n] = ng_normal_new(NG_F32, ng_shape_of(p.tensor), 0, 1, rng);
    }
}

/* Linear, LayerNorm and ReLU for each hidden width, and a last Linear. */
static ng_module *network(const bench_case *what)
{
    const int64_t *width = what->width;
    ng_module *net = ng_sequential_new(ng_linear_new(width[0], width[1]));
    for (int i = 1; i + 1 < what->widths; i++) {
        ng_sequential_add(net, ng_layer_norm_new(width[i]));
        ng_sequential_add(net, ng_relu_new());
        ng_sequential_add(net, ng_linear_new(width[i], width[i + 1]));
    }
    return net;
}

/* Two convolutions 5 x 5 with stride 2 and BatchNorm, for MNIST. */
static ng_module *images_network(int64_t side)
{
    ng_module *net = ng_sequential_from(NULL, 0);
    for (int64_t in = 1, out = 16; out <= 32; in = out, out *= 2, side = (side + 1) / 2) {
        ng_sequential_add(net,
                          ng_conv2d_new(in, out, 5, .stride = 2, .padding = 2, .no_bias = true));
        ng_sequential_add(net, ng_batch_norm_new(out));
        ng_sequential_add(net, ng_relu_new());
    }
    ng_sequential_add(net, ng_flatten_new());
    ng_sequential_add(net, ng_linear_new(32 * side * side, 10));
    return net;
}

static void close_step(void *state)
{
    step_state *s = state;
    for (int i = 0; i < s->n; i++) ng_tensor_free(s->v[i]);
    ng_tape_free(s->tape), ng_optimizer_free(s->adam), ng_module_free(s->net);
    ng_tensor_free(s->x), ng_tensor_free(s->labels);
    free(s);
}

/* Makes the network and its batch. */
static void make_step(step_state *s, const bench_case *what, ng_rng *rng)
{
    const ng_shape rows = NG_SHAPE(what->rows, what->columns);
    if (!strncmp(what->name, "transformer", 11)) {
        s->net = ng_transformer_new(BENCH_VOCABULARY, .dim = what->dim, .layers = what->layers,
                                    .length = what->columns);
        s->x = ids(rows, BENCH_VOCABULARY, rng);
        s->labels = ids(rows, BENCH_VOCABULARY, rng);
    } else if (!strncmp(what->name, "lstm", 4)) {
        s->net = ng_lstm_new(what->hidden, what->hidden);
        s->x = ng_normal_new(NG_F32, NG_SHAPE(what->rows, what->columns, what->hidden), 0, 1, rng);
        s->labels = ids(rows, what->hidden, rng);
    } else if (!strcmp(what->name, "cnn")) {
        s->net = images_network(what->columns);
        s->x =
            ng_normal_new(NG_F32, NG_SHAPE(what->rows, 1, what->columns, what->columns), 0, 1, rng);
        s->labels = ids(NG_SHAPE(what->rows), 10, rng);
    } else {
        s->net = network(what);
        s->x = ng_normal_new(NG_F32, NG_SHAPE(what->batch, what->width[0]), 0, 1, rng);
        s->labels = ids(NG_SHAPE(what->batch), what->width[what->widths - 1], rng);
    }
}

static bool open_step(const bench_case *what, bench_job *job)
{
    ng_rng rng = ng_rng_seeded(1);
    step_state *s = calloc(1, sizeof *s);
    if (!s) return false;
    s->tape = ng_tape_new();
    make_step(s, what, &rng);
    s->adam = ng_adam_new(s->net, .lr = 1e-5);
    *job = (bench_job){.state = s, .run = step, .close = close_step};
    if (!strcmp(what->name, "penalty")) job->run = penalty, ng_require_grad(s->x);
    if (!strcmp(what->name, "maml")) job->run = maml, take_parameters(s, &rng);
    if (!strcmp(what->name, "hvp")) job->run = hvp, take_parameters(s, &rng);
    stop_on_failure();
    return true;
}

/* ---- A matrix product ----------------------------------------------------------------------- */

typedef struct {
    float *a, *b, *c;
    ng_product product;
} product_state;

static void run_product(void *state)
{
    const product_state *s = state;
    ng_kernels_for(NG_F32)->gemm(&s->product);
}

static void close_product(void *state)
{
    product_state *s = state;
    free(s->a), free(s->b), free(s->c), free(s);
}

bool bench_open_product(const bench_case *what, bench_job *job)
{
    const int64_t m = what->rows, n = what->columns, k = what->depth;
    product_state *s = calloc(1, sizeof *s);
    if (!s) return false;
    s->a = bench_buffer(4 * m * k), s->b = bench_buffer(4 * k * n), s->c = bench_buffer(4 * m * n);
    *job = (bench_job){.state = s, .run = run_product, .close = close_product};
    if (!s->a || !s->b || !s->c) return false;
    for (int64_t i = 0; i < m * k; i++) s->a[i] = 1e-3f * (float)(i % 1000);
    for (int64_t i = 0; i < k * n; i++) s->b[i] = 1e-3f * (float)(i % 1000);
    s->product =
        ng_without_gaps((ng_product){.m = m,
                                     .n = n,
                                     .k = k,
                                     .a = {.at = s->a, .transposed = bench_turns(what, 'A')},
                                     .b = {.at = s->b, .transposed = bench_turns(what, 'B')},
                                     .c = s->c});
    return true;
}

static bool open_normgrad(const bench_case *what, bench_job *job)
{
    if (!strcmp(what->group, "product")) return bench_open_product(what, job);
    const bool is_step = what->widths || !strcmp(what->group, "step");
    return is_step ? open_step(what, job) : open_op(what, job);
}

int main(int argc, char **argv)
{
    char name[64];
    if (argc > 1 && !strcmp(argv[1], "roof")) return bench_serve("roof", bench_open_roof);
    snprintf(name, sizeof name, "normgrad %s, %s kernels", ng_version(),
             ng_kernels_for(NG_F32)->isa);
    return bench_serve(name, open_normgrad);
}
