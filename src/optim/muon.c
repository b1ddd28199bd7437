/* Muon, of weights (rows, columns): v = momentum v + g;  U = g + momentum v (Nesterov), or v;
 *      X = U / (|U| + 1e-7), and `steps` times X = a X + b (X X') X + c (X X')^2 X;
 *      w -= lr (weight_decay w + sqrt(max(1, rows / columns)) X)
 * The iteration takes the singular values of X near 1. Other parameters are moved by AdamW. */
#include "optim/optimizer.h"

typedef struct {
    ng_optimizer base;
    ng_muon_new_options own;
} muon;

static bool muon_is_matrix(const ng_tensor *weight)
{
    return weight->shape.rank == 2 && weight->size > 0;
}

/* X and its successor, X X' and the polynomial of it; X' X of a tall X. */
static int64_t muon_scratch(const ng_tensor *weight)
{
    if (!muon_is_matrix(weight)) return 0;
    const int64_t *dims = weight->shape.dim, side = dims[0] < dims[1] ? dims[0] : dims[1];
    return 2 * (weight->size + side * side);
}

/* c (m, n) = a (m, k) b (k, n), added to c if `accumulate`. */
static void muon_product(const ng_kernels *kernels, int64_t m, int64_t n, int64_t k, ng_factor a,
                         ng_factor b, void *c, bool accumulate)
{
    const ng_product p = ng_without_gaps(
        (ng_product){.m = m, .n = n, .k = k, .a = a, .b = b, .c = c, .accumulate = accumulate});
    kernels->gemm(&p);
}

/* x (rows, columns) becomes the factor of its polar decomposition, nearly; `next` is of its size,
 * gram and poly (side, side) with the smaller of rows and columns. */
static void newton_schulz(const ng_kernels *kernels, int64_t rows, int64_t columns, int steps,
                          void *x, void *next, void *gram, void *poly)
{
    const double a = 3.4445, b = -4.7750, c = 2.0315;
    const bool tall = rows > columns;
    const int64_t side = tall ? columns : rows, n = rows * columns;
    const ng_factor plain = {x, columns, false}, transposed = {x, columns, true};
    const ng_factor squares = {gram, side, false}, mixed = {poly, side, false};
    for (int i = 0; i < steps; i++) {
        muon_product(kernels, side, side, n / side, tall ? transposed : plain,
                     tall ? plain : transposed, gram, false);
        kernels->axpy(b / c, gram, poly, side * side, false);
        muon_product(kernels, side, side, side, squares, squares, poly, true);
        kernels->axpy(a / c, x, next, n, false);
        muon_product(kernels, rows, columns, side, tall ? plain : mixed, tall ? mixed : plain, next,
                     true);
        kernels->axpy(c, next, x, n, false);
    }
}

/* Updates v, and writes the direction of SGD with momentum: its step from 0 by the rate -1. */
static void momentum_direction(const ng_muon_new_options *own, const ng_kernels *kernels,
                               const ng_moved *moved, void *u)
{
    const ng_tensor *weight = moved->weight;
    const ng_sgd_step step = {.lr = -1,
                              .momentum = own->momentum,
                              .keep = own->momentum,
                              .fresh = 1,
                              .nesterov = !own->heavy_ball};
    kernels->fill(u, weight->size, 0);
    kernels->sgd(u, weight->leaf->grad->data, moved->state[0], weight->size, &step);
}

static void muon_move_matrix(const ng_muon_new_options *own, const ng_kernels *kernels,
                             const ng_moved *moved, double lr)
{
    const ng_tensor *weight = moved->weight;
    const int64_t n = weight->size, rows = weight->shape.dim[0], columns = weight->shape.dim[1];
    const size_t bytes = (size_t)n * ng_dtype_bytes(weight->dtype);
    const int64_t side = rows < columns ? rows : columns;
    char *x = moved->scratch, *next = x + bytes, *gram = next + bytes;
    char *poly = gram + (size_t)(side * side) * ng_dtype_bytes(weight->dtype);

    momentum_direction(own, kernels, moved, next);
    kernels->axpy(1 / (ng_norm_of(kernels, next, n) + 1e-7), next, x, n, false);
    newton_schulz(kernels, rows, columns, own->steps, x, next, gram, poly);

    const double scale = rows > columns ? sqrt((double)rows / (double)columns) : 1;
    const double decay = ng_decay_of(moved, own->weight_decay);
    const ng_sgd_step step = {.lr = lr * scale, .weight_decay = decay / scale};
    kernels->sgd(weight->data, x, NULL, n, &step);
}

static void muon_move(ng_optimizer *self, const ng_kernels *kernels, const ng_moved *moved,
                      double lr)
{
    const ng_muon_new_options *own = &((const muon *)self)->own;
    const ng_tensor *weight = moved->weight;
    if (muon_is_matrix(weight)) {
        muon_move_matrix(own, kernels, moved, lr);
        return;
    }
    ng_adam_step step =
        ng_adam_step_of(self, moved, own->adam_scale * lr, own->beta1, own->beta2, own->eps);
    step.weight_decay = ng_decay_of(moved, own->weight_decay);
    step.decoupled = true;
    kernels->adam(weight->data, weight->leaf->grad->data, moved->state[0], moved->state[1], NULL,
                  weight->size, &step);
}

static int muon_settings(const ng_optimizer *self, ng_optimizer_setting *settings)
{
    const ng_muon_new_options *own = &((const muon *)self)->own;
    settings[0] = (ng_optimizer_setting){.name = "momentum", .value = own->momentum, .below = 1};
    settings[1] = (ng_optimizer_setting){.name = "heavy_ball", .value = own->heavy_ball};
    settings[2] = (ng_optimizer_setting){.name = "steps", .value = own->steps};
    settings[3] = (ng_optimizer_setting){.name = "weight_decay", .value = own->weight_decay};
    settings[4] = (ng_optimizer_setting){.name = "adam_scale", .value = own->adam_scale};
    settings[5] = (ng_optimizer_setting){.name = "beta1", .value = own->beta1, .below = 1};
    settings[6] = (ng_optimizer_setting){.name = "beta2", .value = own->beta2, .below = 1};
    settings[7] = (ng_optimizer_setting){.name = "eps", .value = own->eps};
    return 8;
}

static const ng_optimizer_class muon_class = {.name = "Muon",
                                              .size = sizeof(muon),
                                              .move = muon_move,
                                              .settings = muon_settings,
                                              .scratch = muon_scratch};

ng_optimizer *ng_muon_new_with(ng_muon_new_options options)
{
    static const char name[] = "ng_muon_new";
    options.momentum = ng_option(options.momentum, 0.95);
    options.steps = options.steps ? options.steps : 5;
    options.adam_scale = ng_option(options.adam_scale, 0.015);
    options.beta1 = ng_option(options.beta1, 0.9);
    options.beta2 = ng_option(options.beta2, 0.95);
    options.eps = ng_option(options.eps, 1e-10);
    muon *self = (muon *)ng_optimizer_make(&muon_class, name, options.module,
                                           ng_option(options.lr, 0.02), options.schedule, 2);
    if (self) self->own = options;
    return ng_optimizer_checked(name, (ng_optimizer *)self);
}
