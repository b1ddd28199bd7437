/* The largest eigenvalues of the Hessian by norm: at equal loss, and during gradient descent. */
#include "lab.h"

enum { WIDTH, IMAGES, STEPS };
static option sizes[] = {
    [WIDTH] = {"width", "features of each hidden layer", .normal = 32, .quick = 16},
    [IMAGES] = {"images", "images, all of them in every step", .normal = 200, .quick = 50,
                .most = LAB_DIGITS},
    [STEPS] = {"steps", "steps of gradient descent", .normal = 2000, .quick = 60},
    {0}};

static const lab_experiment experiment = {
    .id = "sharpness",
    .source = "Ghorbani, Krishnan & Xiao 2019; Cohen et al. 2021; Lyu, Li & Arora 2022",
    .claim = "BatchNorm removes the large isolated eigenvalues of the Hessian, LayerNorm and "
             "RMSNorm do not; gradient descent ends at the edge of stability, where the largest is "
             "2 / rate, with each norm and without",
    .method = "64 - (Linear, norm, ReLU) x 3 - 10 learns 200 digits by gradient descent with all "
              "images in each step, cross-entropy, at the rate 0.1. Where the loss first is below "
              "0.1, the ten largest eigenvalues of its Hessian are found by power iteration on "
              "Hessian-vector products, each orthogonal to those before it. BatchNorm is in train "
              "mode. Then 64 - (Linear, norm, tanh) x 2 - 10 learns squared errors of one-hot "
              "labels at the rate 0.12; its largest eigenvalue is found every 25 steps.",
    .rule = "at a loss of 0.1 the largest eigenvalue is below half of that without a norm with "
            "BatchNorm and above half with the others; the largest is less than 4 times the tenth "
            "with BatchNorm; the mean of the last quarter of training is within 10 % of 2 / rate",
    .seeds = 13,
    .sizes = sizes};

enum { NORMS = 4, BATCH_NORM = 1, VALUES = 10, LOOK = 25 };
enum { PARAMETERS = 16, MOST_STEPS = 4000 };
enum { ITERATIONS = 20, NEXT_ITERATIONS = 10, FIRST_ITERATIONS = 60 };
static const double level = 0.1, level_rate = 0.1, edge_rate = 0.12;

/* ---- One training ---- */

typedef struct {
    lab_run of;
    bool squared; /* errors of one-hot labels, not cross-entropy */
    int parameter_count, vector_count;
    ng_tensor *parameters[PARAMETERS];
    ng_tensor *vectors[VALUES][PARAMETERS]; /* eigenvectors of length 1 over all parameters */
} descent;

static ng_tensor *loss_of(const descent *d)
{
    ng_batch batch;
    ng_dataset_batch(d->of.data, d->of.tape, 0, ng_dataset_count(d->of.data), &batch);
    ng_tensor *y = ng_forward(d->of.net, d->of.tape, batch.x);
    if (!d->squared) return ng_cross_entropy(d->of.tape, y, batch.y);
    ng_tensor *error = ng_sub(d->of.tape, y, ng_one_hot(d->of.tape, NG_F32, batch.y, 10));
    return ng_mul_scalar(d->of.tape, ng_sum(d->of.tape, ng_square(d->of.tape, error)),
                         0.5 / (double)batch.size);
}

static void begin(descent *d, const lab_norm *norm, uint64_t seed, bool squared)
{
    ng_rng rng = ng_rng_seeded(seed);
    ng_named_tensor p;
    *d = (descent){.squared = squared, .vector_count = squared ? 1 : VALUES};
    d->of.tape = ng_tape_new();
    d->of.net = lab_network(norm, squared ? ng_tanh_new : ng_relu_new, get_whole(WIDTH),
                            squared ? 2 : 3, seed);
    lab_digits(seed, get_whole(IMAGES), &d->of.data, &d->of.rest);
    d->of.optimizer = ng_sgd_new(d->of.net, .lr = squared ? edge_rate : level_rate);
    while (d->parameter_count < PARAMETERS &&
           ng_module_parameter(d->of.net, d->parameter_count, &p))
        d->parameters[d->parameter_count++] = p.tensor;
    for (int k = 0; k < d->vector_count; k++)
        for (int i = 0; i < d->parameter_count; i++)
            d->vectors[k][i] = ng_normal_new(NG_F32, ng_shape_of(d->parameters[i]), 0, 1, &rng);
    still_works();
}

/* Takes a step. Returns the loss before it. */
static double step_on(descent *d)
{
    ng_tensor *loss = loss_of(d);
    const double value = ng_item(loss);
    if (ng_backward(d->of.tape, loss) || ng_optimizer_step(d->of.optimizer)) still_works();
    ng_tape_reset(d->of.tape);
    return value;
}

static void end(descent *d)
{
    for (int k = 0; k < d->vector_count; k++)
        for (int i = 0; i < d->parameter_count; i++) ng_tensor_free(d->vectors[k][i]);
    lab_end_run(&d->of);
}

/* Returns <v, w> over all parameters. */
static double product_of(const descent *d, ng_tensor *const *v, ng_tensor *const *w)
{
    double sum = 0;
    for (int i = 0; i < d->parameter_count; i++)
        sum += ng_item(ng_sum(d->of.tape, ng_mul(d->of.tape, v[i], w[i])));
    return sum;
}

/* Returns the absolute value of the Hessian's largest eigenvalue among vectors orthogonal to the
 * first `index` eigenvectors. Power iteration, v <- H v / |H v|, starts from the last vector
 * found. */
static double eigenvalue_of(descent *d, int index, int iterations)
{
    double size = 1;
    for (int k = 0; k < iterations; k++) {
        ng_tensor *v[PARAMETERS];
        ng_hvp(d->of.tape, loss_of(d), d->parameters, d->parameter_count, d->vectors[index], v);
        still_works(); /* ends the program if H v failed, so v is new */
        for (int known = 0; known < index; known++) {
            const double along = product_of(d, v, d->vectors[known]);
            for (int i = 0; i < d->parameter_count; i++)
                v[i] = ng_sub(d->of.tape, v[i],
                              ng_mul_scalar(d->of.tape, d->vectors[known][i], along));
        }
        size = sqrt(product_of(d, v, v));
        for (int i = 0; i < d->parameter_count; i++)
            ng_copy_values(d->vectors[index][i], ng_mul_scalar(d->of.tape, v[i], 1 / size));
        ng_tape_reset(d->of.tape);
        still_works();
    }
    return size;
}

/* ---- At equal loss ---- */

static double *largest[NORMS];

static void measure_level(int norm)
{
    curve_set *curves = new_curves("index", "%s at %g", lab_norms[norm].name, level);
    double *over_tenth = lab_numbers(lab_seeds());
    largest[norm] = lab_numbers(lab_seeds());
    for (int seed = 0; seed < lab_seeds(); seed++) {
        descent d;
        begin(&d, &lab_norms[norm], lab_seed(seed), false);
        for (int step = 0; step < MOST_STEPS && step_on(&d) > level; step++) continue;
        double values[VALUES], least = HUGE_VAL;
        for (int k = 0; k < VALUES; k++) {
            values[k] = eigenvalue_of(&d, k, ITERATIONS);
            largest[norm][seed] = fmax(largest[norm][seed], values[k]);
            least = fmin(least, values[k]);
            log_curves(curves, seed, "value", k + 1, values[k]);
        }
        over_tenth[seed] = largest[norm][seed] / least;
        end(&d);
    }
    if (norm == BATCH_NORM)
        lab_judge(lab_norms[norm].name, over_tenth, lab_below(4),
                  "largest eigenvalue over the tenth, at a loss of %g", level);
    if (norm > 0)
        lab_judge(lab_norms[norm].name, lab_quotients(largest[norm], largest[0]),
                  norm == BATCH_NORM ? lab_below(0.5) : lab_above(0.5),
                  "largest eigenvalue at a loss of %g, as a share of no norm's", level);
}

/* ---- The edge of stability ---- */

static void measure_edge(int norm)
{
    const int looks = (get_whole(STEPS) + LOOK - 1) / LOOK, last = looks < 4 ? 1 : looks / 4;
    curve_set *curves = new_curves("step", "edge, %s", lab_norms[norm].name);
    double *edges = lab_numbers(lab_seeds());
    for (int seed = 0; seed < lab_seeds(); seed++) {
        descent d;
        begin(&d, &lab_norms[norm], lab_seed(seed), true);
        for (int step = 0; step < get_whole(STEPS); step++) {
            const int look = step / LOOK;
            if (step % LOOK == 0) {
                const double sharp =
                    eigenvalue_of(&d, 0, look ? NEXT_ITERATIONS : FIRST_ITERATIONS);
                log_curves(curves, seed, "sharpness edge", step, sharp, 2 / edge_rate);
                if (look >= looks - last) edges[seed] += sharp * edge_rate / 2 / last;
            }
            step_on(&d);
        }
        end(&d);
    }
    lab_judge(lab_norms[norm].name, edges, lab_near(1, 0.1),
              "largest eigenvalue in the last quarter of training over 2 / rate");
}

int main(int argc, char **argv)
{
    lab_begin(argc, argv, &experiment);
    lab_data("64-(%d)x3-10, ReLU, and 64-(%d)x2-10, tanh; %d images", get_whole(WIDTH),
             get_whole(WIDTH), get_whole(IMAGES));
    for (int norm = 0; norm < NORMS; norm++) measure_level(norm);
    for (int norm = 0; norm < NORMS; norm++) measure_edge(norm);
    return lab_end();
}
