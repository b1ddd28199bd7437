/* The sharpness of the loss during gradient descent, the largest eigenvalue of the Hessian, by norm
 * and learning rate. */
#include "lab.h"

enum { WIDTH, IMAGES, STEPS };
static lab_size sizes[] = {
    [WIDTH] = {"width", "features of each hidden layer", .normal = 32},
    [IMAGES] = {"images", "images, all of them in every step", .normal = 200, .quick = 50,
                .most = LAB_DIGITS},
    [STEPS] = {"steps", "steps of gradient descent", .normal = 2000, .quick = 60},
    {0}};

static const lab_experiment experiment = {
    .id = "edge_of_stability",
    .source = "Cohen et al. 2021, figures 1 and 5; Lyu, Li & Arora 2022",
    .claim =
        "the sharpness of the loss rises during training until gradient descent is at the edge of "
        "stability, 2 / rate, and stays there, with and without norms",
    .method = "200 digits, 64 - (Linear, norm, tanh) x 2 - 10, squared error of one-hot labels;\n"
              "gradient descent with all images in each step, at two rates. The sharpness is the\n"
              "largest eigenvalue of the Hessian of all parameters, found every 25 steps by power\n"
              "iteration on Hessian-vector products, starting from the last vector found.\n",
    .rule =
        "the mean sharpness of the last quarter of training is within 15 % of 2 / rate, for each "
        "norm and rate",
    .seeds = 10,
    .quick_seeds = 1,
    .sizes = sizes};

enum { NORMS = 4, RATES = 2, LOOK = 25, ITERATIONS = 10, FIRST_ITERATIONS = 60 };
static const double rates[RATES] = {0.08, 0.12};

/* ---- One training ---- */

typedef struct {
    ng_module *net;
    ng_tape *tape;
    ng_dataset *data;
} descent;

static ng_tensor *loss_of(void *context)
{
    const descent *d = context;
    ng_batch batch;
    ng_dataset_batch(d->data, d->tape, 0, ng_dataset_count(d->data), &batch);
    ng_tensor *error = ng_sub(d->tape, ng_forward(d->net, d->tape, batch.x),
                              ng_one_hot(d->tape, NG_F32, batch.y, 10));
    return ng_mul_scalar(d->tape, ng_sum(d->tape, ng_square(d->tape, error)),
                         0.5 / (double)batch.size);
}

/* Trains, and sets the sharpness and the loss at every measurement. */
static void descend(const lab_norm *norm, double rate, uint64_t seed, double *sharp, double *loss)
{
    descent d = {lab_network_of(norm, ng_tanh_new, lab_whole(WIDTH), 2, seed), ng_tape_new(), NULL};
    ng_dataset *rest;
    lab_digits(seed, lab_whole(IMAGES), &d.data, &rest);
    lab_curvature curvature = lab_curvature_of(d.net, d.tape, loss_of, &d, 1, seed);
    ng_optimizer *sgd = ng_sgd_new(d.net, .lr = rate);
    for (int step = 0; step < lab_whole(STEPS); step++) {
        const int look = step / LOOK;
        if (step % LOOK == 0)
            sharp[look] = lab_eigenvalue(&curvature, 0, look == 0 ? FIRST_ITERATIONS : ITERATIONS);
        ng_tensor *l = loss_of(&d);
        if (step % LOOK == 0) loss[look] = ng_item(l);
        if (ng_backward(d.tape, l) || ng_optimizer_step(sgd)) break;
        ng_tape_reset(d.tape);
    }
    lab_goes_on();
    lab_curvature_free(&curvature), ng_optimizer_free(sgd), ng_tape_free(d.tape);
    ng_module_free(d.net), ng_dataset_free(d.data), ng_dataset_free(rest);
}

/* ---- Main ---- */

static int looks(void) { return (lab_whole(STEPS) + LOOK - 1) / LOOK; }

/* Returns the mean of the last quarter of the measurements. */
static double at_the_end(const double *values)
{
    const int count = looks() < 4 ? 1 : looks() / 4;
    double sum = 0;
    for (int i = looks() - count; i < looks(); i++) sum += values[i];
    return sum / count;
}

static void measure(int norm, int rate)
{
    lab_curves *curves = lab_curves_new("step", "%s, rate %g", lab_norms[norm]->name, rates[rate]);
    double *sharp = lab_numbers(looks()), *loss = lab_numbers(looks());
    double *first = lab_numbers(lab_seeds()), *edges = lab_numbers(lab_seeds());
    for (int seed = 0; seed < lab_seeds() && lab_goes_on(); seed++) {
        lab_progress((rate * NORMS + norm) * lab_seeds() + seed, RATES * NORMS * lab_seeds(),
                     "%s, rate %g, seed %d", lab_norms[norm]->name, rates[rate], seed + 1);
        descend(lab_norms[norm], rates[rate], lab_seed(seed), sharp, loss);
        first[seed] = sharp[0] * rates[rate] / 2;
        edges[seed] = at_the_end(sharp) * rates[rate] / 2;
        for (int look = 0; look < looks(); look++)
            lab_log(curves, seed, "sharpness loss rate", look * LOOK, sharp[look], loss[look],
                    rates[rate]);
    }
    const char *name = lab_norms[norm]->name;
    lab_judge((lab_part){name, first, .side = LAB_BELOW, .threshold = 1},
              "sharpness at the start over 2 / rate, at rate %g", rates[rate]);
    lab_judge((lab_part){name, edges, .side = LAB_WITHIN, .around = 1, .threshold = 0.15},
              "sharpness in the last quarter over 2 / rate, at rate %g", rates[rate]);
}

int main(int argc, char **argv)
{
    lab_begin(argc, argv, &experiment);
    lab_data("64-%d-%d-10, tanh, %d images, squared error", lab_whole(WIDTH), lab_whole(WIDTH),
             lab_whole(IMAGES));
    for (int rate = 0; rate < RATES; rate++)
        for (int norm = 0; norm < NORMS; norm++) measure(norm, rate);
    return lab_end();
}
