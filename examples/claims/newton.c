/* BatchNorm as a preconditioner: the gradients that it saves with gradient descent, and with
 * truncated Newton steps (conjugate gradients on Hessian-vector products). */
#include "lab.h"

enum { WIDTH, IMAGES, MOST };
static lab_size sizes[] = {
    [WIDTH] = {"width", "features of each hidden layer", .normal = 16},
    [IMAGES] = {"images", "images, all of them in every step", .normal = 200, .quick = 50,
                .most = LAB_DIGITS},
    [MOST] = {"most", "largest number of gradients per training", .normal = 4000, .quick = 80},
    {0}};

static const lab_experiment experiment = {
    .id = "newton",
    .source = "Martens 2010; Desjardins et al. 2015; Lange, Helfrich & Ye 2022",
    .claim =
        "BatchNorm helps gradient descent as a preconditioner: steps that use the curvature need "
        "fewer gradients than gradient descent, and gain less from a norm",
    .method =
        "64 - (Linear, norm, tanh) x 3 - 10 learns 200 digits, all of them in each step.\n"
        "Gradient descent at its own best rate is compared with Newton steps (H + damping) p =\n"
        "-g, solved by up to 20 steps of conjugate gradients that end at negative curvature. The\n"
        "damping is adapted, and a step that raises the loss is rejected (Martens 2010).\n"
        "Measured: gradients until the loss is below 0.001; a Hessian-vector product counts as\n"
        "two gradients and a loss as one.\n",
    .rule =
        "relative to no norm, gradient descent needs fewer gradients with a norm: the quotient is "
        "below 1; with Newton steps the quotient is larger; without a norm Newton needs fewer "
        "gradients than descent",
    .seeds = 15,
    .quick_seeds = 1,
    .sizes = sizes};

enum { NORMS = 4, DEPTH = 3, ITERATIONS = 20, LOOKS = 80 };
static const double enough = 0.001, residual_share = 0.1;

/* ---- A network as a function of one long vector ---- */

typedef struct {
    ng_module *net;
    ng_tape *tape;
    ng_tensor *x, *y, *parameters[LAB_PARAMETERS], *direction[LAB_PARAMETERS];
    int parameter_count;
    int64_t count; /* number of elements */
} problem;

static problem begin(const lab_norm *norm, uint64_t seed)
{
    problem p = {.net = lab_network_of(norm, ng_tanh_new, lab_whole(WIDTH), DEPTH, seed),
                 .tape = ng_tape_new()};
    ng_dataset *train, *rest;
    ng_named_tensor named;
    lab_digits(seed, lab_whole(IMAGES), &train, &rest);
    p.x = ng_copy_new(ng_dataset_x(train), NG_F32), p.y = ng_copy_new(ng_dataset_y(train), NG_I64);
    while (ng_module_parameter(p.net, p.parameter_count, &named)) {
        p.parameters[p.parameter_count] = named.tensor;
        p.direction[p.parameter_count++] = ng_zeros_new(NG_F32, ng_shape_of(named.tensor));
        p.count += ng_size(named.tensor);
    }
    ng_dataset_free(train), ng_dataset_free(rest);
    lab_goes_on();
    return p;
}

static void end(problem *p)
{
    for (int i = 0; i < p->parameter_count; i++) ng_tensor_free(p->direction[i]);
    ng_tensor_free(p->x), ng_tensor_free(p->y), ng_tape_free(p->tape), ng_module_free(p->net);
}

static ng_tensor *loss_of(problem *p)
{
    return ng_cross_entropy(p->tape, ng_forward(p->net, p->tape, p->x), p->y);
}

static void gather(const problem *p, ng_tensor *const *from, double *values)
{
    for (int i = 0; i < p->parameter_count; i++)
        for (int64_t k = 0; k < ng_size(from[i]); k++) *values++ = (double)ng_data_f32(from[i])[k];
}

/* Sets to = values, or to += values if `add` is set. */
static void scatter(const problem *p, ng_tensor *const *to, const double *values, bool add)
{
    for (int i = 0; i < p->parameter_count; i++) {
        float *data = ng_data_f32(to[i]);
        for (int64_t k = 0; k < ng_size(to[i]); k++)
            data[k] = (float)((add ? (double)data[k] : 0) + *values++);
        ng_touch(to[i]);
    }
}

static double gradient(problem *p, double *g)
{
    ng_tensor *loss = loss_of(p), *gradients[LAB_PARAMETERS];
    ng_gradients(p->tape, &loss, 1, p->parameters, p->parameter_count, gradients);
    lab_goes_on();
    gather(p, gradients, g);
    const double value = ng_item(loss);
    ng_tape_reset(p->tape);
    return value;
}

static double loss_now(problem *p)
{
    const bool was = ng_tape_set_recording(p->tape, false);
    const double loss = ng_item(loss_of(p));
    ng_tape_set_recording(p->tape, was);
    ng_tape_reset(p->tape);
    return loss;
}

/* Sets hv = H v + damping v. */
static void multiply(problem *p, const double *v, double damping, double *hv)
{
    ng_tensor *products[LAB_PARAMETERS];
    scatter(p, p->direction, v, false);
    ng_hvp(p->tape, loss_of(p), p->parameters, p->parameter_count, p->direction, products);
    lab_goes_on();
    gather(p, products, hv);
    for (int64_t i = 0; i < p->count; i++) hv[i] += damping * v[i];
    ng_tape_reset(p->tape);
}

static double dot(const double *a, const double *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

/* ---- Newton ---- */

/* Vectors of the solver: the gradient, the step, and those of conjugate gradients. */
typedef struct {
    double *g, *step, *residual, *along, *product;
} vectors;

/* Solves (H + damping) step = -g approximately. Returns the number of products used. */
static int solve(problem *p, double damping, vectors *v)
{
    const int64_t n = p->count;
    for (int64_t i = 0; i < n; i++) v->step[i] = 0, v->residual[i] = v->along[i] = -v->g[i];
    double size = dot(v->residual, v->residual, n);
    const double small = residual_share * residual_share * size;
    for (int k = 0; k < ITERATIONS; k++) {
        multiply(p, v->along, damping, v->product);
        const double curvature = dot(v->along, v->product, n);
        if (curvature <= 0) {
            for (int64_t i = 0; i < n && k == 0; i++) v->step[i] = v->along[i];
            return k + 1;
        }
        const double share = size / curvature;
        for (int64_t i = 0; i < n; i++) {
            v->step[i] += share * v->along[i];
            v->residual[i] -= share * v->product[i];
        }
        const double now = dot(v->residual, v->residual, n);
        if (now < small) return k + 1;
        for (int64_t i = 0; i < n; i++) v->along[i] = v->residual[i] + now / size * v->along[i];
        size = now;
    }
    return ITERATIONS;
}

/* Returns the decrease of the loss in the quadratic model: -g p - p H p / 2, where H p + damping p
 * = -g - residual. */
static double promised(const problem *p, double damping, const vectors *v)
{
    const double gp = dot(v->g, v->step, p->count), rp = dot(v->residual, v->step, p->count);
    return -gp + 0.5 * (gp + rp + damping * dot(v->step, v->step, p->count));
}

/* Stores the loss by number of gradients used, in LOOKS equal parts. 0 means the training has
 * ended. */
static void note(double *looks, int used, double loss)
{
    const int look = (int)((int64_t)used * LOOKS / lab_whole(MOST));
    if (looks && look < LOOKS) looks[look] = loss;
}

static double newton(int norm, uint64_t seed, double *looks)
{
    problem p = begin(lab_norms[norm], seed);
    vectors v = {lab_numbers(p.count), lab_numbers(p.count), lab_numbers(p.count),
                 lab_numbers(p.count), lab_numbers(p.count)};
    double damping = 1, loss = loss_now(&p);
    int used = 1;
    while (loss > enough && used < lab_whole(MOST) && lab_goes_on()) {
        note(looks, used, loss);
        gradient(&p, v.g);
        used += 2 + 2 * solve(&p, damping, &v);
        scatter(&p, p.parameters, v.step, true);
        const double then = loss_now(&p), kept = (loss - then) / promised(&p, damping, &v);
        if (kept > 0.75) damping /= 1.5;
        if (!(kept > 0.25)) damping *= then < loss ? 1.5 : 4;
        if (then < loss) {
            loss = then;
        } else {
            for (int64_t i = 0; i < p.count; i++) v.step[i] = -v.step[i];
            scatter(&p, p.parameters, v.step, true);
        }
    }
    end(&p);
    return loss > enough ? HUGE_VAL : used;
}

/* ---- Gradient descent ---- */

static double descent(int norm, double rate, uint64_t seed, double *looks)
{
    problem p = begin(lab_norms[norm], seed);
    ng_optimizer *sgd = ng_sgd_new(p.net, .lr = rate);
    double loss = HUGE_VAL;
    int used = 0;
    for (; loss > enough && used < lab_whole(MOST) && lab_goes_on(); used++) {
        ng_tensor *l = loss_of(&p);
        loss = ng_item(l);
        note(looks, used, loss);
        if (!isfinite(loss) || ng_backward(p.tape, l) || ng_optimizer_step(sgd)) break;
        ng_tape_reset(p.tape);
    }
    ng_optimizer_free(sgd), end(&p);
    return loss <= enough ? used : HUGE_VAL;
}

static double tuning_steps(void *context, double rate, uint64_t seed)
{
    return descent(*(const int *)context, rate, seed, NULL);
}

/* ---- Main ---- */

static void log_looks(lab_curves *curves, int seed, const double *looks, double rate, double used)
{
    for (int i = 0; i < LOOKS; i++) {
        /* 0: no step ended in this part. */
        const double loss = looks[i] > 0 ? looks[i] : i == 0 ? 1 : enough;
        lab_log(curves, seed, "loss rate used", (i + 0.5) * lab_whole(MOST) / (double)LOOKS, loss,
                rate, used);
    }
}

static double *by_descent[NORMS], *by_newton[NORMS];

static void measure(int norm)
{
    lab_curves *down = lab_curves_new("gradients", "%s, descent", lab_norms[norm]->name);
    lab_curves *curved = lab_curves_new("gradients", "%s, newton", lab_norms[norm]->name);
    by_descent[norm] = lab_numbers(lab_seeds()), by_newton[norm] = lab_numbers(lab_seeds());
    lab_progress(norm, NORMS, "%s, rates", lab_norms[norm]->name);
    const double rate = lab_best_rate(0.4, tuning_steps, &norm);
    for (int seed = 0; seed < lab_seeds(); seed++) {
        lab_progress(norm + (double)seed / lab_seeds(), NORMS, "%s, rate %g, seed %d",
                     lab_norms[norm]->name, rate, seed + 1);
        double looks[LOOKS] = {0}, newton_looks[LOOKS] = {0};
        by_descent[norm][seed] = descent(norm, rate, lab_seed(seed), looks);
        by_newton[norm][seed] = newton(norm, lab_seed(seed), newton_looks);
        log_looks(down, seed, looks, rate, by_descent[norm][seed]);
        log_looks(curved, seed, newton_looks, 0, by_newton[norm][seed]);
    }
}

static void judge(int norm)
{
    const double *descends = lab_quotients(by_descent[norm], by_descent[0]);
    const double *curves = lab_quotients(by_newton[norm], by_newton[0]);
    lab_judge((lab_part){lab_norms[norm]->name, descends, .side = LAB_BELOW, .threshold = 1},
              "gradients to a loss of 0.001, descent at own rates, as a share of no norm's");
    lab_judge((lab_part){lab_norms[norm]->name, lab_quotients(curves, descends), .side = LAB_ABOVE,
                         .threshold = 1},
              "that share with Newton steps, over the same with descent");
}

int main(int argc, char **argv)
{
    lab_begin(argc, argv, &experiment);
    lab_data("64-(%d)x%d-10, tanh, %d images", lab_whole(WIDTH), DEPTH, lab_whole(IMAGES));
    for (int norm = 0; norm < NORMS; norm++) measure(norm);
    lab_judge((lab_part){NULL, lab_quotients(by_newton[0], by_descent[0]), .side = LAB_BELOW,
                         .threshold = 1},
              "gradients to a loss of 0.001, Newton steps, no norm, as a share of descent's");
    for (int norm = 1; norm < NORMS; norm++) judge(norm);
    return lab_end();
}
