/* The growth of gradients per layer of BatchNorm, in wide deep networks at the start, compared with
 * theory. */
#include "lab.h"

enum { WIDTH, DEPTH, BATCH };
enum { MOST_DEPTH = 200, OUTERMOST = 8, CASES = 5, BATCHES = 6 };
static lab_size sizes[] = {
    [WIDTH] = {"width", "features of each layer", .normal = 512, .quick = 64},
    [DEPTH] = {"depth", "layers", .normal = 40, .quick = 20, .least = 2 * OUTERMOST + 2,
               .most = MOST_DEPTH},
    [BATCH] = {"batch", "samples", .normal = 128, .quick = 16},
    {0}};

static const lab_experiment experiment = {
    .id = "gradient_growth",
    .source = "Yang et al. 2019",
    .claim =
        "without shortcuts BatchNorm itself makes gradients explode: with ReLU their squares grow "
        "by a factor of pi / (pi - 1) = 1.467 per layer",
    .method =
        "Each of 40 layers is norm(x w^T) and an activation phi, with 512 features, a random\n"
        "first x, weights from N(0, 2 / width) and 128 samples. A random cotangent enters at the\n"
        "end. Fitted: the growth per layer of the mean square of the gradient with respect to x\n"
        "w^T, without the eight outermost layers at either end. In theory, for layers much wider\n"
        "than the batch and large batches, it is E[phi'(z)^2] over what the norm divides by, for\n"
        "z from N(0, 1): Var[phi(z)] for BatchNorm, E[phi(z)^2] for the others, which therefore\n"
        "keep gradients constant with ReLU. Nothing is trained, so there is no learning rate.\n",
    .rule = "the growth is within 0.02 of theory with BatchNorm and ReLU, leaky ReLU of slope 0.2, "
            "and no activation; and within 0.05 of 1 with LayerNorm and RMSNorm and ReLU",
    .seeds = 9,
    .quick_seeds = 1,
    .sizes = sizes};

#define LEAK 0.2

/* ---- The networks ---- */

static ng_tensor *batch_of(ng_tape *tape, ng_tensor *x)
{
    return ng_batch_norm(tape, x, NG_NONE, NG_NONE, NG_NONE, NG_NONE, .training = true);
}
static ng_tensor *layer_of(ng_tape *tape, ng_tensor *x)
{
    return ng_layer_norm(tape, x, NG_NONE, NG_NONE, 1e-5);
}
static ng_tensor *rms_of(ng_tape *tape, ng_tensor *x)
{
    return ng_rms_norm(tape, x, NG_NONE, 1e-6);
}

static ng_tensor *relu_of(ng_tape *tape, ng_tensor *x) { return ng_relu(tape, x); }
static ng_tensor *leaky_of(ng_tape *tape, ng_tensor *x) { return ng_leaky_relu(tape, x, LEAK); }
static ng_tensor *same_of(ng_tape *tape, ng_tensor *x) { return (void)tape, x; }

typedef ng_tensor *function(ng_tape *tape, ng_tensor *x);

/* Returns the growth with BatchNorm: E[phi'^2] / Var[phi], where phi(z) is z above 0 and `slope` z
 * below. */
static double exploding(double slope)
{
    const double square = (1 + slope * slope) / 2; /* E[phi'^2] and E[phi^2] */
    return square / (square - pow(1 - slope, 2) / (2 * acos(-1)));
}

static const struct {
    const char *block, *norm, *what;
    function *normalize, *activate;
    double slope; /* of the activation below 0 */
} cases[CASES] = {{"BatchNorm", "BatchNorm", "ReLU", batch_of, relu_of, 0},
                  {"leaky", "BatchNorm", "leaky ReLU", batch_of, leaky_of, LEAK},
                  {"linear", "BatchNorm", "no activation", batch_of, same_of, 1},
                  {"LayerNorm", "LayerNorm", "ReLU", layer_of, relu_of, 0},
                  {"RMSNorm", "RMSNorm", "ReLU", rms_of, relu_of, 0}};

static bool of_batches(int i) { return cases[i].normalize == batch_of; }
static double theory_of(int i) { return of_batches(i) ? exploding(cases[i].slope) : 1; }

/* Sets squares[l] to the mean square of the gradient of layer l's matrix product. */
static void measure(int i, int64_t width, int64_t batch, uint64_t seed, double *squares)
{
    const int64_t depth = lab_whole(DEPTH);
    ng_rng rng = ng_rng_seeded(seed);
    ng_tensor *weights[MOST_DEPTH], *products[MOST_DEPTH], *gradients[MOST_DEPTH];
    ng_tape *tape = ng_tape_new();
    ng_tensor *input = ng_normal_new(NG_F32, NG_SHAPE(batch, width), 0, 1, &rng), *x = input;
    ng_tensor *cotangent = ng_normal_new(NG_F32, NG_SHAPE(batch, width), 0, 1, &rng);
    ng_require_grad(input);
    for (int64_t l = 0; l < depth && lab_goes_on(); l++) {
        weights[l] =
            ng_normal_new(NG_F32, NG_SHAPE(width, width), 0, sqrt(2 / (double)width), &rng);
        products[l] = ng_matmul(tape, x, weights[l], .transpose_b = true);
        x = cases[i].activate(tape, cases[i].normalize(tape, products[l]));
    }
    ng_tensor *sum = ng_sum(tape, ng_mul(tape, x, cotangent));
    ng_gradients(tape, &sum, 1, products, (int)depth, gradients);
    for (int64_t l = 0; l < depth && lab_goes_on(); l++) {
        squares[l] = 0;
        for (int64_t k = 0; k < ng_size(gradients[l]); k++)
            squares[l] += pow(ng_get(gradients[l], k), 2) / (double)ng_size(gradients[l]);
        ng_tensor_free(weights[l]);
    }
    ng_tensor_free(input), ng_tensor_free(cotangent), ng_tape_free(tape);
}

static double growth_of(const double *squares)
{
    double layer[MOST_DEPTH], logarithm[MOST_DEPTH];
    int count = 0;
    for (int l = OUTERMOST; l < lab_whole(DEPTH) - OUTERMOST; l++)
        layer[count] = -l, logarithm[count++] = log(squares[l]);
    return exp(lab_fit(layer, logarithm, count).slope);
}

/* ---- Results ---- */

static int batch_at(int i) { return 8 << i; } /* 8, 16 ... 256 */

static void measure_case(int i)
{
    const int depth = lab_whole(DEPTH), seeds = lab_seeds();
    double *squares = lab_numbers(depth), *growth = lab_numbers(seeds);
    lab_curves *curves = lab_curves_new("layer", "%s", cases[i].block);
    for (int seed = 0; seed < seeds; seed++) {
        lab_progress(i + (double)seed / seeds, CASES + 2 * BATCHES, "%s, %s", cases[i].norm,
                     cases[i].what);
        measure(i, lab_whole(WIDTH), lab_whole(BATCH), lab_seed(seed), squares);
        growth[seed] = growth_of(squares);
        for (int l = 0; l < depth; l++)
            lab_log(curves, seed, "square growth theory", l + 1, squares[l] / squares[depth - 1],
                    growth[seed], theory_of(i));
    }
    lab_judge((lab_part){cases[i].norm, growth, .side = LAB_WITHIN,
                         .threshold = of_batches(i) ? 0.02 : 0.05, .around = theory_of(i)},
              "growth of the squared gradient a layer, %s", cases[i].what);
}

static void measure_batches(const char *block, int width, int done)
{
    double *squares = lab_numbers(lab_whole(DEPTH));
    lab_curves *curves = lab_curves_new("batch", "%s", block);
    for (int i = 0; i < BATCHES; i++) {
        lab_progress(done + i, CASES + 2 * BATCHES, "width %d, batch %d", width, batch_at(i));
        for (int seed = 0; seed < lab_seeds(); seed++) {
            measure(0, width, batch_at(i), lab_seed(seed), squares);
            lab_log(curves, seed, "growth theory width", batch_at(i), growth_of(squares),
                    theory_of(0), width);
        }
    }
}

int main(int argc, char **argv)
{
    lab_begin(argc, argv, &experiment);
    const int depth = lab_whole(DEPTH);
    lab_data("%d layers of %d features, %d samples", depth, lab_whole(WIDTH), lab_whole(BATCH));
    for (int i = 0; i < CASES; i++) measure_case(i);
    measure_batches("narrow", lab_whole(WIDTH) / 4, CASES);
    measure_batches("wide", lab_whole(WIDTH), CASES + BATCHES);
    return lab_end();
}
