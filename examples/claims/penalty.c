/* Critics with a gradient penalty by norm: the share of an output's gradient that belongs to other
 * points of the batch, and the accuracy of the Wasserstein distance. */
#include "lab.h"

enum { WIDTH, STEPS };
enum { KINDS = 5, POINTS = 16, BATCH = 64, MANY = 2048, LOOKS = 20 };
static option sizes[] = {[WIDTH] = {"width", "features of each hidden layer", .normal = 32},
                         [STEPS] = {"steps", "steps of Adam, a multiple of 20", .normal = 600,
                                    .quick = 40, .least = LOOKS},
                         {0}};

static const lab_experiment experiment = {
    .id = "penalty",
    .source = "Gulrajani et al. 2017, section 4",
    .claim = "a gradient penalty keeps the critic's slope at each point near 1; BatchNorm makes "
             "the critic a function of the whole batch, so that the penalty is no longer valid, "
             "while LayerNorm works",
    .method =
        "Critics 2 - (Linear, norm, SiLU) x 2 - 1. At the start, in double, in a batch of 16: the "
        "share of each output's gradient that belongs to other points. Then they learn to separate "
        "points of eight Gaussians on a circle from the same points twice as far out, with penalty "
        "10, in batches of 64. The best critic is |x|, and the Wasserstein distance is the "
        "circle's radius, 1.001. Measured on new points, BatchNorm with its running statistics: "
        "the mean critic of one kind of points less that of the other. BatchNorm sees both kinds "
        "in one batch, or each in a separate one; the points of the penalty are a batch of their "
        "own. Each kind of critic has its own best rate, which falls to 0 during training.",
    .rule = "the share of the gradient that belongs to other points is below 1e-12 with a norm of "
            "single samples, and above 0.1 with BatchNorm; the distance is off by less than 10 % "
            "with these norms, and by more than 10 % with BatchNorm",
    .seeds = 21,
    .sizes = sizes};

static const struct {
    const char *name;
    ng_norm_maker *make;
    bool mixes, apart; /* is BatchNorm; each kind of point is a separate batch */
} kinds[KINDS] = {{"no norm", ng_norm_none, false, false},
                  {"BatchNorm", ng_norm_batch, true, false},
                  {"LayerNorm", ng_norm_layer, false, false},
                  {"RMSNorm", ng_norm_rms, false, false},
                  {"BatchNorm, batches apart", ng_norm_batch, true, true}};
static const double weight = 10;

/* ---- Points and the penalty ---- */

static const double circle_deviation = 0.05;

/* Points (count, 2) of eight Gaussians on a circle of radius 1. */
static ng_tensor *draw_circle(ng_tape *tape, ng_dtype dtype, int64_t count)
{
    ng_tensor *eighth = ng_floor(tape, ng_uniform(tape, dtype, NG_SHAPE(count, 1), 0, 8));
    ng_tensor *angle = ng_mul_scalar(tape, eighth, acos(-1) / 4);
    ng_tensor *center = ng_concat(tape, NG_TENSORS(ng_cos(tape, angle), ng_sin(tape, angle)), 1);
    return ng_add(tape, center, ng_normal(tape, dtype, NG_SHAPE(count, 2), 0, circle_deviation));
}

static const char *norm_of(int kind)
{
    return kinds[kind].mixes ? "BatchNorm" : kind == 0 ? NULL : kinds[kind].name;
}

static ng_module *make_critic(int kind, uint64_t seed)
{
    const int64_t width = get_whole(WIDTH);
    ng_module *net =
        ng_sequential_new(ng_linear_new(2, width), kinds[kind].make(width), ng_silu_new(),
                          ng_linear_new(width, width), kinds[kind].make(width), ng_silu_new(),
                          ng_linear_new(width, 1));
    ng_module_init(net, seed);
    still_works();
    return net;
}

/* Returns points (count, 2) on the lines between those of a and of b, at random places. They are
 * leaves, so that gradients with respect to them exist. */
static ng_tensor *points_between(ng_tape *tape, ng_tensor *a, ng_tensor *b)
{
    ng_tensor *share = ng_uniform(tape, ng_dtype_of(a), NG_SHAPE(ng_dim(a, 0), 1), 0, 1);
    return ng_variable(tape, ng_add(tape, a, ng_mul(tape, share, ng_sub(tape, b, a))));
}

/* Returns the mean of (|d critic(v) / d v| - 1)^2 over random points v between those of a and b. */
static ng_tensor *gradient_penalty(ng_module *critic, ng_tape *tape, ng_tensor *a, ng_tensor *b)
{
    ng_tensor *v = points_between(tape, a, b);
    ng_tensor *slope = ng_gradient(tape, ng_forward(critic, tape, v), v, .record = true);
    ng_tensor *length = ng_norm(tape, slope, .axes = NG_AXES(1));
    return ng_mean(tape, ng_square(tape, ng_add_scalar(tape, length, -1)));
}

/* ---- Shares of the gradient ---- */

/* Sets size[i][j] to |d output i / d point j|. Returns the largest share of an output's gradient at
 * other points. */
static double measure_shares(int kind, uint64_t seed, double *size)
{
    ng_module *critic = make_critic(kind, seed);
    ng_tape *tape = ng_tape_new();
    ng_tape_seed(tape, seed);
    ng_module_to(critic, NG_F64);
    ng_tensor *near = draw_circle(tape, NG_F64, POINTS), *far = ng_mul_scalar(tape, near, 2);
    ng_tensor *v = points_between(tape, near, far);
    ng_tensor *slopes = ng_jacobian(tape, ng_forward(critic, tape, v), v); /* (16, 1, 16, 2) */
    ng_tensor *lengths = ng_norm(tape, slopes, .axes = NG_AXES(1, 3));
    double largest = 0;
    for (int i = 0; i < POINTS; i++) {
        double own = 0, all = 0;
        for (int j = 0; j < POINTS; j++) {
            size[i * POINTS + j] = ng_at(lengths, i, j);
            all += pow(ng_at(lengths, i, j), 2);
            if (i == j) own = pow(ng_at(lengths, i, j), 2);
        }
        largest = fmax(largest, sqrt((all - own) / all));
    }
    ng_tape_free(tape), ng_module_free(critic);
    still_works();
    return largest;
}

/* ---- Training ---- */

/* Returns the mean critic of the far points less that of the near ones. */
static ng_tensor *distance_of(ng_module *critic, ng_tape *tape, ng_tensor *near, ng_tensor *far,
                              bool apart)
{
    const int64_t count = ng_dim(near, 0);
    ng_tensor *both =
        apart ? NULL : ng_forward(critic, tape, ng_concat(tape, NG_TENSORS(far, near), 0));
    ng_tensor *of_far = apart ? ng_forward(critic, tape, far) : ng_slice(tape, both, 0, 0, count);
    ng_tensor *of_near =
        apart ? ng_forward(critic, tape, near) : ng_slice(tape, both, 0, count, 2 * count);
    return ng_sub(tape, ng_mean(tape, of_far), ng_mean(tape, of_near));
}

/* Returns the distance on new points, over the true one. */
static double measured_distance(ng_module *critic, ng_tape *tape)
{
    const bool was = ng_tape_set_recording(tape, false);
    ng_tensor *near = draw_circle(tape, NG_F32, MANY),
              *far = ng_mul_scalar(tape, draw_circle(tape, NG_F32, MANY), 2);
    ng_eval(critic);
    const double distance = ng_item(distance_of(critic, tape, near, far, false));
    ng_train(critic);
    ng_tape_set_recording(tape, was);
    ng_tape_reset(tape);
    return distance / (1 + circle_deviation * circle_deviation / 2);
}

typedef struct {
    int kind;
    double *looks; /* set to the distance at LOOKS times, unless NULL */
} training;

/* Trains. Returns the relative error of the final distance. */
static double train(void *context, double rate, uint64_t seed)
{
    const int kind = ((const training *)context)->kind;
    double *looks = ((const training *)context)->looks;
    ng_module *critic = make_critic(kind, seed);
    ng_optimizer *adam =
        ng_adam_new(critic, .lr = rate, .beta1 = 0.5, .beta2 = 0.9,
                    .schedule = NG_SCHEDULE(.kind = NG_SCHEDULE_LINEAR, .steps = get_whole(STEPS)));
    ng_tape *tape = ng_tape_new();
    ng_tape_seed(tape, seed);
    const int part = get_whole(STEPS) / LOOKS;
    for (int step = 0; step < part * LOOKS && still_works(); step++) {
        ng_tensor *near = draw_circle(tape, NG_F32, BATCH);
        ng_tensor *far = ng_mul_scalar(tape, draw_circle(tape, NG_F32, BATCH), 2);
        ng_tensor *gained = distance_of(critic, tape, near, far, kinds[kind].apart);
        ng_tensor *steep = ng_mul_scalar(tape, gradient_penalty(critic, tape, near, far), weight);
        if (ng_backward(tape, ng_sub(tape, steep, gained)) || ng_optimizer_step(adam)) break;
        ng_tape_reset(tape);
        if (looks && (step + 1) % part == 0) looks[step / part] = measured_distance(critic, tape);
    }
    const double distance = measured_distance(critic, tape);
    ng_tape_free(tape), ng_optimizer_free(adam), ng_module_free(critic);
    still_works();
    return fabs(distance - 1);
}

/* ---- Main ---- */

static void measure(int kind)
{
    double *size = lab_numbers(POINTS * POINTS), *first = lab_numbers(POINTS * POINTS);
    double *share = lab_numbers(lab_seeds()), *error = lab_numbers(lab_seeds());
    curve_set *curves = new_curves("step", "distance, %s", kinds[kind].name);
    const bool mixes = kinds[kind].mixes;
    const char *suffix = kind == 0 ? ", no norm" : kinds[kind].apart ? ", batches apart" : "";
    for (int seed = 0; seed < lab_seeds(); seed++)
        share[seed] = measure_shares(kind, lab_seed(seed), seed == 0 ? first : size);
    if (!kinds[kind].apart) {
        FILE *rows = put_block(kinds[kind].name, "output         point          size\n");
        for (int i = 0; i < POINTS * POINTS; i++)
            fprintf(rows, "%-14d %-14d %.8g\n", i / POINTS, i % POINTS, first[i]);
        lab_judge(norm_of(kind), share, mixes ? lab_above(0.1) : lab_below(1e-12),
                  "gradient to other points, share of an output's%s", suffix);
    }
    training t = {kind, NULL};
    const double rate = lab_best_rate(2e-3, train, &t);
    for (int seed = 0; seed < lab_seeds(); seed++) {
        double looks[LOOKS] = {0};
        t.looks = looks;
        error[seed] = train(&t, rate, lab_seed(seed));
        for (int i = 0; i < LOOKS; i++)
            log_curves(curves, seed, "distance rate", (i + 1) * (get_whole(STEPS) / LOOKS),
                       looks[i], rate);
    }
    lab_judge(norm_of(kind), error, mixes ? lab_above(0.1) : lab_below(0.1),
              "distance by the critic, off by a share of the true one%s", suffix);
}

int main(int argc, char **argv)
{
    lab_begin(argc, argv, &experiment);
    lab_data("critic 2-%d-%d-1, %d steps of Adam, penalty %g", get_whole(WIDTH), get_whole(WIDTH),
             get_whole(STEPS), weight);
    for (int kind = 0; kind < KINDS; kind++) measure(kind);
    return lab_end();
}
