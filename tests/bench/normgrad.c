/* The engine normgrad: the library through its public functions, tape and all, as a training loop
 * uses it; matrix products by their kernel. */
#include "engine.h"
#include "kernels/kernels.h"
#include <normgrad.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double eps = 1e-5;

/* ---- One op -------------------------------------------------------------------------------- */

enum { MOST_INPUTS = 3 };

typedef struct op_state op_state;
struct op_state {
    ng_tape *tape;
    ng_tensor *inputs[MOST_INPUTS]; /* they require gradients */
    int n_inputs;
    ng_tensor *labels, *mean, *var; /* constants, where the op has them */
    ng_tensor *dy, *arrived, *y;    /* dy, and a copy on the tape */
    ng_tensor *(*call)(op_state *s);
};

static ng_tensor *layer_norm(op_state *s)
{
    return ng_layer_norm(s->tape, s->inputs[0], s->inputs[1], s->inputs[2], .eps = eps);
}

static ng_tensor *rms_norm(op_state *s)
{
    return ng_rms_norm(s->tape, s->inputs[0], s->inputs[1], .eps = eps);
}

static ng_tensor *batch_norm(op_state *s)
{
    return ng_batch_norm(s->tape, s->inputs[0], s->inputs[1], s->inputs[2], s->mean, s->var,
                         .eps = eps, .momentum = 0.1, .training = true);
}

static ng_tensor *gelu(op_state *s) { return ng_gelu(s->tape, s->inputs[0]); }
static ng_tensor *softmax(op_state *s) { return ng_softmax(s->tape, s->inputs[0]); }
static ng_tensor *add(op_state *s) { return ng_add(s->tape, s->inputs[0], s->inputs[1]); }
static ng_tensor *cross_entropy(op_state *s)
{
    return ng_cross_entropy(s->tape, s->inputs[0], s->labels);
}

/* How many inputs, and whether the second has one row only. */
static const struct {
    const char *name;
    ng_tensor *(*call)(op_state *s);
    int n_inputs;
    bool row;
} ops[] = {
    {"layer_norm", layer_norm, 3, true}, {"rms_norm", rms_norm, 2, true},
    {"batch_norm", batch_norm, 3, true}, {"gelu", gelu, 1, false},
    {"softmax", softmax, 1, false},      {"cross_entropy", cross_entropy, 1, false},
    {"bias_add", add, 2, true},          {"residual_add", add, 2, false},
};

static void forward(void *state, int variant)
{
    op_state *s = state;
    (void)variant;
    ng_tape_reset(s->tape);
    s->y = s->call(s);
}

/* What arrives in the middle of a network is the tape's; here it is older than y. */
static void before_backward(void *state)
{
    op_state *s = state;
    ng_tape_reset(s->tape);
    s->arrived = ng_mul_scalar(s->tape, s->dy, 1);
    s->y = s->call(s);
}

/* ng_gradients writes gradients as a backward pass does there: it does not add to those of the run
 * before. */
static void backward(void *state, int variant)
{
    op_state *s = state;
    ng_tensor *gradients[MOST_INPUTS];
    (void)variant;
    ng_gradients(s->tape, &s->y, 1, s->inputs, s->n_inputs, gradients, .cotangents = &s->arrived);
}

/* d sum (dL/dx)^2 with respect to x and gamma, L = sum y dy. */
static void second(void *state, int variant)
{
    op_state *s = state;
    ng_tensor *first[1], *last[2];
    forward(state, variant);
    ng_gradients(s->tape, &s->y, 1, s->inputs, 1, first, .cotangents = &s->dy, .record = true);
    ng_tensor *size = ng_sum(s->tape, ng_square(s->tape, first[0]));
    ng_gradients(s->tape, &size, 1, s->inputs, 2, last);
}

static void close_op(void *state)
{
    op_state *s = state;
    for (int i = 0; i < s->n_inputs; i++) ng_tensor_free(s->inputs[i]);
    ng_tensor_free(s->labels), ng_tensor_free(s->mean), ng_tensor_free(s->var);
    ng_tensor_free(s->dy), ng_tape_free(s->tape), free(s);
}

static bool works(bench_job *job)
{
    if (job->before) job->before(job->state);
    job->run(job->state, 0);
    if (ng_failed()) fprintf(stderr, "normgrad: %s\n", ng_error_text());
    return !ng_failed();
}

/* "gelu_backward" begins with "gelu" and ends with or without a direction. */
static bool names_op(const char *name, const char *op)
{
    const size_t length = strlen(op);
    return !strncmp(name, op, length) && (!name[length] || !strcmp(name + length, "_forward") ||
                                          !strcmp(name + length, "_backward"));
}

static bool open_op(const bench_case *what, bench_job *job)
{
    const ng_shape matrix = NG_SHAPE(what->rows, what->columns), row = NG_SHAPE(what->columns);
    ng_rng rng = ng_rng_seeded(1);
    size_t op = 0;
    while (op < sizeof ops / sizeof *ops && !names_op(what->name, ops[op].name)) op++;
    if (op == sizeof ops / sizeof *ops) return false;

    op_state *s = calloc(1, sizeof *s);
    if (!s) return false;
    s->tape = ng_tape_new();
    s->call = ops[op].call;
    s->n_inputs = ops[op].n_inputs;
    const bool twice = !strcmp(what->group, "second");
    for (int i = 0; i < s->n_inputs; i++)
        s->inputs[i] = ng_require_grad(ng_uniform_new(NG_F32, i && ops[op].row ? row : matrix,
                                                      i ? 0.5 : -2, i ? 1.5 : 2, &rng));
    s->mean = ng_zeros_new(NG_F32, row);
    s->var = ng_ones_new(NG_F32, row);
    s->labels = ng_zeros_new(NG_I64, NG_SHAPE(what->rows));
    for (int64_t i = 0; i < what->rows; i++)
        ng_set(s->labels, i, (double)ng_rng_below(&rng, what->columns));
    const bool back = strstr(what->group, "backward") || strstr(what->name, "backward");
    if (back && s->call == cross_entropy) s->dy = ng_ones_new(NG_F32, NG_SCALAR);
    if (twice || (back && !s->dy)) s->dy = ng_uniform_new(NG_F32, matrix, -1, 1, &rng);
    *job = (bench_job){.state = s,
                       .before = back ? before_backward : NULL,
                       .run = twice  ? second
                              : back ? backward
                                     : forward,
                       .close = close_op,
                       .per = 1,
                       .variants = 1};
    return works(job);
}

enum { MOST_PARAMETERS = 16 };

/* ---- A training step ------------------------------------------------------------------------ */

typedef struct {
    bench_case what;
    ng_tape *tape;
    ng_module *net;
    ng_optimizer *adam;
    ng_tensor *x, *labels;
    ng_tensor *w[MOST_PARAMETERS],
        *v[MOST_PARAMETERS]; /* of maml and hvp: parameters, a direction */
    int n;
} step_state;

static void descend(const step_state *s, ng_tensor *loss)
{
    if (ng_backward(s->tape, loss) || ng_optimizer_step(s->adam)) {
        fprintf(stderr, "%s\n", ng_error_text());
        exit(1);
    }
    ng_tape_reset(s->tape);
}

static void step(void *state, int variant)
{
    const step_state *s = state;
    (void)variant;
    descend(s, ng_cross_entropy(s->tape, ng_forward(s->net, s->tape, s->x), s->labels));
}

/* The penalty of WGAN-GP (Gulrajani et al. 2017): the mean of (|d sum net(x) / dx| - 1)^2. */
static void penalty(void *state, int variant)
{
    const step_state *s = state;
    ng_tape *tape = s->tape;
    (void)variant;
    ng_tensor *sum = ng_sum(tape, ng_forward(s->net, tape, s->x));
    ng_tensor *slope = ng_gradient(tape, sum, s->x, .record = true);
    ng_tensor *size = ng_sqrt(tape, ng_sum(tape, ng_square(tape, slope), .axes = NG_AXES(1)));
    descend(s, ng_mean(tape, ng_square(tape, ng_add_scalar(tape, size, -1))));
}

static ng_tensor *loss_with(const step_state *s, ng_tensor *const *w)
{
    return ng_cross_entropy(s->tape, ng_forward_using(s->net, s->tape, w, s->n, s->x), s->labels);
}

static void fail_unless(bool well)
{
    if (well) return;
    fprintf(stderr, "%s\n", ng_error_text());
    exit(1);
}

/* Through a step of gradient descent (MAML, Finn, Abbeel & Levine 2017). */
static void maml(void *state, int variant)
{
    const step_state *s = state;
    ng_tensor *g[MOST_PARAMETERS], *w[MOST_PARAMETERS], *loss = loss_with(s, s->w);
    (void)variant;
    fail_unless(ng_gradients(s->tape, &loss, 1, s->w, s->n, g, .record = true) == NG_OK);
    for (int i = 0; i < s->n; i++)
        w[i] = ng_sub(s->tape, s->w[i], ng_mul_scalar(s->tape, g[i], 0.01));
    descend(s, loss_with(s, w));
}

static void hvp(void *state, int variant)
{
    const step_state *s = state;
    ng_tensor *products[MOST_PARAMETERS], *loss = loss_with(s, s->w);
    (void)variant;
    fail_unless(ng_hvp(s->tape, loss, s->w, s->n, s->v, products) == NG_OK);
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
    const int last = what->widths - 2;
    ng_module *net = ng_sequential_new(ng_linear_new(width[0], width[1]));
    for (int i = 0; i < last; i++) {
        ng_sequential_add(net, ng_layer_norm_new(width[i + 1]));
        ng_sequential_add(net, ng_relu_new());
        ng_sequential_add(net, ng_linear_new(width[i + 1], width[i + 2]));
    }
    return net;
}

/* int64 below `count` */
static ng_tensor *ids(ng_shape shape, int64_t count, ng_rng *rng)
{
    ng_tensor *x = ng_zeros_new(NG_I64, shape);
    for (int64_t i = 0; i < ng_size(x); i++) ng_set(x, i, (double)ng_rng_below(rng, count));
    return x;
}

static void (*step_called(const char *name))(void *state, int variant)
{
    return !strcmp(name, "penalty") ? penalty
           : !strcmp(name, "maml")  ? maml
           : !strcmp(name, "hvp")   ? hvp
                                    : step;
}

static void close_step(void *state)
{
    step_state *s = state;
    for (int i = 0; i < s->n; i++) ng_tensor_free(s->v[i]);
    ng_tape_free(s->tape), ng_optimizer_free(s->adam), ng_module_free(s->net);
    ng_tensor_free(s->x), ng_tensor_free(s->labels);
    free(s);
}

static step_state begin_step(const bench_case *what)
{
    ng_rng rng = ng_rng_seeded(1);
    step_state s = {.what = *what, .tape = ng_tape_new()};
    if (what->layers) {
        const ng_shape text = NG_SHAPE(what->rows, what->columns);
        s.net = ng_transformer_new(BENCH_VOCABULARY, .dim = what->dim, .layers = what->layers,
                                   .length = what->columns);
        s.x = ids(text, BENCH_VOCABULARY, &rng);
        s.labels = ids(text, BENCH_VOCABULARY, &rng);
    } else if (what->hidden) {
        s.net = ng_lstm_new(what->hidden, what->hidden);
        s.x = ng_normal_new(NG_F32, NG_SHAPE(what->rows, what->columns, what->hidden), 0, 1, &rng);
        s.labels = ids(NG_SHAPE(what->rows, what->columns), what->hidden, &rng);
    } else {
        s.net = network(what);
        s.x = ng_normal_new(NG_F32, NG_SHAPE(what->batch, what->width[0]), 0, 1, &rng);
        s.labels = ids(NG_SHAPE(what->batch), what->width[what->widths - 1], &rng);
    }
    s.adam = ng_adam_new(s.net, .lr = 1e-5);
    if (!strcmp(what->name, "penalty")) ng_require_grad(s.x);
    if (!strcmp(what->name, "maml") || !strcmp(what->name, "hvp")) take_parameters(&s, &rng);
    return s;
}

static bool open_step(const bench_case *what, bench_job *job)
{
    step_state *s = malloc(sizeof *s);
    if (!s) return false;
    *s = begin_step(what);
    *job = (bench_job){
        .state = s, .run = step_called(what->name), .close = close_step, .per = 1, .variants = 1};
    return works(job);
}

/* ---- A matrix product ----------------------------------------------------------------------- */

typedef struct {
    float *a, *b, *c;
    ng_product product;
} product_state;

static void run_product(void *state, int variant)
{
    const product_state *s = state;
    (void)variant;
    ng_kernels_for(NG_F32)->gemm(&s->product);
}

static void close_product(void *state)
{
    product_state *s = state;
    free(s->a), free(s->b), free(s->c), free(s);
}

bool bench_open_product(const bench_case *what, bool turns_a, bool turns_b, bench_job *job)
{
    const int64_t m = what->rows, n = what->columns, k = what->depth;
    product_state *s = calloc(1, sizeof *s);
    if (!s) return false;
    s->a = bench_buffer(4 * m * k), s->b = bench_buffer(4 * k * n), s->c = bench_buffer(4 * m * n);
    *job = (bench_job){
        .state = s, .run = run_product, .close = close_product, .per = 1, .variants = 1};
    if (!s->a || !s->b || !s->c) return false;
    for (int64_t i = 0; i < m * k; i++) s->a[i] = 1e-3f * (float)(i % 1000);
    for (int64_t i = 0; i < k * n; i++) s->b[i] = 1e-3f * (float)(i % 1000);
    s->product = ng_without_gaps((ng_product){.m = m,
                                              .n = n,
                                              .k = k,
                                              .a = {.at = s->a, .transposed = turns_a},
                                              .b = {.at = s->b, .transposed = turns_b},
                                              .c = s->c});
    return true;
}

static bool open_normgrad(const bench_case *what, bench_job *job)
{
    if (!strcmp(what->group, "product"))
        return bench_open_product(what, what->name[1] == '^', strchr(what->name, '\0')[-1] == 'T',
                                  job);
    return what->widths || what->layers || what->hidden ? open_step(what, job) : open_op(what, job);
}

int bench_normgrad(void)
{
    char name[64];
    snprintf(name, sizeof name, "normgrad %s, %s kernels", ng_version(),
             ng_kernels_for(NG_F32)->isa);
    return bench_serve(name, open_normgrad);
}
