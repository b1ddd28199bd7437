/* The gradient and the Hessian of a weight matrix before a norm, which makes the loss independent
 * of the matrix's scale. */
#include "lab.h"

enum { WIDTH, IMAGES };
static lab_size sizes[] = {
    [WIDTH] = {"width", "features of the hidden layer", .normal = 64},
    [IMAGES] = {"images", "images in the loss", .normal = 256, .quick = 32, .most = LAB_DIGITS},
    {0}};

static const lab_experiment experiment = {
    .id = "scale_invariance",
    .source = "van Laarhoven 2017; Arora, Li & Lyu 2018, section 2; document 000",
    .claim =
        "a norm makes the loss invariant to the scale of the weights before it, so the gradient "
        "is orthogonal to them, <g, w> = 0, and falls as 1 / scale, H w = -g",
    .method =
        "Digits, 64 - Linear without bias, norm, ReLU - Linear - 10, initial weights, mean\n"
        "cross-entropy of 256 images. w is the first matrix, g its gradient, H w the product of\n"
        "its Hessian with it, by two backward passes. With eps = 0; then, for the figure, with\n"
        "eps up to 1. For comparison: no norm, and DynamicTanh, which replaces a norm but is not\n"
        "one.\n",
    .rule =
        "with a norm |<g, w>| / (|g| |w|) and |H w + g| / |g| are below 1e-10; without one they "
        "are above 1e-3",
    .dtype = "float64",
    .seeds = 20,
    .quick_seeds = 1,
    .sizes = sizes};

/* ---- Networks ---- */

static ng_module *make_batch(int64_t dim, double eps) { return ng_batch_norm_new(dim, .eps = eps); }
static ng_module *make_layer(int64_t dim, double eps) { return ng_layer_norm_new(dim, .eps = eps); }
static ng_module *make_rms(int64_t dim, double eps) { return ng_rms_norm_new(dim, .eps = eps); }
static ng_module *make_tanh(int64_t dim, double eps)
{
    (void)eps;
    return ng_dynamic_tanh_new(dim);
}

enum { NORMS = 3, KINDS = 5 };
static const struct {
    const char *name;
    ng_module *(*make)(int64_t dim, double eps);
} kinds[KINDS] = {{"BatchNorm", make_batch},
                  {"LayerNorm", make_layer},
                  {"RMSNorm", make_rms},
                  {"DynamicTanh", make_tanh},
                  {"no norm", NULL}};

static ng_module *make_network(int kind, double eps, uint64_t seed)
{
    const int64_t width = lab_whole(WIDTH);
    ng_module *net = ng_sequential_new(ng_linear_new(64, width, .no_bias = true));
    if (kinds[kind].make) ng_sequential_add(net, kinds[kind].make(width, eps));
    ng_sequential_add(net, ng_relu_new());
    ng_sequential_add(net, ng_linear_new(width, 10));
    ng_module_init(net, seed);
    ng_module_to(net, NG_F64);
    lab_goes_on();
    return net;
}

/* ---- The measurement ---- */

typedef struct {
    double slope;   /* |<g, w>| / (|g| |w|) */
    double falling; /* |H w + g| / |g| */
} departure;

static departure measure(int kind, double eps, uint64_t seed)
{
    ng_dataset *data, *rest;
    ng_batch batch;
    ng_named_tensor w;
    lab_digits(seed, lab_whole(IMAGES), &data, &rest);
    ng_module *net = make_network(kind, eps, seed);
    ng_tape *tape = ng_tape_new();
    ng_dataset_batch(data, tape, 0, lab_whole(IMAGES), &batch);
    ng_module_parameter(net, 0, &w);

    ng_tensor *logits = ng_forward(net, tape, ng_cast(tape, batch.x, NG_F64));
    ng_tensor *loss = ng_cross_entropy(tape, logits, batch.y);
    ng_tensor *g = ng_gradient(tape, loss, w.tensor);
    ng_tensor *value = ng_detach(tape, w.tensor), *product;
    ng_hvp(tape, loss, &w.tensor, 1, &value, &product);
    const double size = ng_item(ng_norm(tape, g));
    const double across = ng_item(ng_norm(tape, ng_add(tape, product, g)));
    const departure d = {fabs(ng_item(ng_dot(tape, g, value))) / size /
                             ng_item(ng_norm(tape, value)),
                         across / size};
    lab_goes_on();
    ng_tape_free(tape), ng_module_free(net);
    ng_dataset_free(data), ng_dataset_free(rest);
    return d;
}

/* ---- Main ---- */

static void judge(int kind, const double *values, const char *what)
{
    const bool norm = kind < NORMS;
    lab_judge((lab_part){kinds[kind].name, values, .side = norm ? LAB_BELOW : LAB_ABOVE,
                         .threshold = norm ? 1e-10 : 1e-3},
              "%s%s", what, norm ? "" : " (the control)");
}

/* Measures and judges with eps = 0, by seed. */
static void measure_kind(int kind)
{
    double *slopes = lab_numbers(lab_seeds()), *fallings = lab_numbers(lab_seeds());
    lab_block(kinds[kind].name, "seed slope falling");
    for (int seed = 0; seed < lab_seeds(); seed++) {
        lab_progress(kind * lab_seeds() + seed, 2.0 * (double)KINDS * lab_seeds(), "%s, seed %d",
                     kinds[kind].name, seed + 1);
        const departure d = measure(kind, NG_ZERO, lab_seed(seed));
        slopes[seed] = d.slope, fallings[seed] = d.falling;
        lab_row(seed, d.slope, d.falling);
    }
    judge(kind, slopes, "|<g, w>| / (|g| |w|)");
    judge(kind, fallings, "|H w + g| / |g|");
}

/* Writes the medians over the seeds, by eps. */
static void measure_eps(int kind)
{
    enum { LOWEST = -16 };
    lab_curves *curves = lab_curves_new("eps", "%s by eps", kinds[kind].name);
    for (int power = LOWEST; power <= 0; power++) {
        lab_progress((double)KINDS + kind * (1.0 - (double)LOWEST) + power - (double)LOWEST,
                     (double)KINDS + (double)NORMS * (1.0 - (double)LOWEST), "%s, eps 1e%d",
                     kinds[kind].name, power);
        for (int seed = 0; seed < lab_seeds(); seed++)
            lab_log(curves, seed, "falling", pow(10, power),
                    measure(kind, pow(10, power), lab_seed(seed)).falling);
    }
}

int main(int argc, char **argv)
{
    lab_begin(argc, argv, &experiment);
    lab_data("64-%d-10, ReLU, %d images", lab_whole(WIDTH), lab_whole(IMAGES));
    for (int kind = 0; kind < KINDS && lab_goes_on(); kind++) measure_kind(kind);
    for (int kind = 0; kind < NORMS && lab_goes_on(); kind++) measure_eps(kind);
    return lab_end();
}
