/* A Wasserstein GAN with gradient penalty (Gulrajani et al. 2017): a generator learns to draw
 * points of eight Gaussians on a circle. The penalty (|d critic(v) / d v| - 1)^2 at points v
 * between real and drawn ones is differentiated with respect to the critic's parameters. The critic
 * uses LayerNorm: with BatchNorm each output depends on all points of the batch.
 * build/examples/wgan_gp --help */
#include "harness.h"

enum { BATCH = 128, NOISE = 4, WIDTH = 64, CRITIC_STEPS = 5, SHOWN = 500 };
enum { STEPS, SEED, OUT };
static option options[] = {
    [STEPS] = {"steps", "training steps", .normal = 3000},
    [SEED] = {"seed", "seed of all random numbers", .zero = true},
    [OUT] = {"out", "prefix of the .dat and .svg (build/wgan_gp)", .text = ""},
    {0}};

/* Points (count, 2) of eight Gaussians on a circle of radius 1. */
static ng_tensor *draw_circle(ng_tape *tape, int64_t count)
{
    ng_tensor *eighth = ng_floor(tape, ng_uniform(tape, NG_F32, NG_SHAPE(count, 1), 0, 8));
    ng_tensor *angle = ng_mul_scalar(tape, eighth, acos(-1) / 4);
    ng_tensor *center = ng_concat(tape, NG_TENSORS(ng_cos(tape, angle), ng_sin(tape, angle)), 1);
    return ng_add(tape, center, ng_normal(tape, NG_F32, NG_SHAPE(count, 2), 0, 0.05));
}

static ng_module *make_network(int64_t in, int64_t out, ng_norm_maker *norm, uint64_t seed)
{
    ng_module *net = ng_sequential_new(ng_linear_new(in, WIDTH), norm(WIDTH), ng_silu_new(),
                                       ng_linear_new(WIDTH, WIDTH), norm(WIDTH), ng_silu_new(),
                                       ng_linear_new(WIDTH, out));
    ng_module_init(net, seed);
    return net;
}

static ng_tensor *draw_fake(ng_module *generator, ng_tape *tape, int64_t count)
{
    return ng_forward(generator, tape, ng_normal(tape, NG_F32, NG_SHAPE(count, NOISE), 0, 1));
}

/* The mean of (|d critic(v) / d v| - 1)^2 over points v at random places between those of a and b.
 * v is a leaf, so that a gradient with respect to it exists. */
static ng_tensor *gradient_penalty(ng_module *critic, ng_tape *tape, ng_tensor *a, ng_tensor *b)
{
    ng_tensor *share = ng_uniform(tape, NG_F32, NG_SHAPE(BATCH, 1), 0, 1);
    ng_tensor *v = ng_variable(tape, ng_add(tape, a, ng_mul(tape, share, ng_sub(tape, b, a))));
    ng_tensor *slope = ng_gradient(tape, ng_forward(critic, tape, v), v, .record = true);
    ng_tensor *length = ng_norm(tape, slope, .axes = NG_AXES(1));
    return ng_mean(tape, ng_square(tape, ng_add_scalar(tape, length, -1)));
}

/* Trains the critic for one step. Returns the estimate of the Wasserstein distance before it. */
static double step_critic(ng_module *critic, ng_module *generator, ng_optimizer *adam,
                          ng_tape *tape)
{
    ng_tensor *real = draw_circle(tape, BATCH);
    ng_tensor *fake = ng_detach(tape, draw_fake(generator, tape, BATCH));
    ng_tensor *distance = ng_sub(tape, ng_mean(tape, ng_forward(critic, tape, real)),
                                 ng_mean(tape, ng_forward(critic, tape, fake)));
    ng_tensor *steep = gradient_penalty(critic, tape, fake, real);
    ng_tensor *loss = ng_sub(tape, ng_mul_scalar(tape, steep, 0.3), distance);
    if (ng_backward(tape, loss) || ng_optimizer_step(adam)) return ng_item(NULL);
    const double value = ng_item(distance);
    ng_tape_reset(tape);
    return value;
}

static bool step_generator(ng_module *critic, ng_module *generator, ng_optimizer *adam,
                           ng_tape *tape)
{
    ng_freeze(critic);
    ng_tensor *score = ng_mean(tape, ng_forward(critic, tape, draw_fake(generator, tape, BATCH)));
    const bool done = !ng_backward(tape, ng_neg(tape, score)) && !ng_optimizer_step(adam);
    ng_unfreeze(critic);
    ng_tape_reset(tape);
    return done;
}

static void log_points(ng_history *history, const char *name, const ng_tensor *points)
{
    ng_history_block(history, name);
    for (int64_t i = 0; points && i < SHOWN; i++) {
        ng_history_log(history, "x", i, ng_at(points, i, 0));
        ng_history_log(history, "y", i, ng_at(points, i, 1));
    }
}

int main(int argc, char **argv)
{
    static const char usage[] = "usage: wgan_gp [options]\n\n"
                                "Learns to draw points of eight Gaussians on a circle.\n";
    begin_program(argc, argv, usage, options, NULL);
    const line prefix = choose_prefix(get_text(OUT), "wgan_gp");
    const uint64_t seed = (uint64_t)get_number(SEED);
    ng_module *critic = make_network(2, 1, ng_norm_layer, seed);
    ng_module *generator = make_network(NOISE, 2, ng_norm_none, seed + 1);
    ng_optimizer *scorer = ng_adam_new(critic, .lr = 2e-3, .beta1 = 0.5, .beta2 = 0.9);
    ng_optimizer *painter = ng_adam_new(generator, .lr = 1e-3, .beta1 = 0.5, .beta2 = 0.9);
    ng_history *history = ng_history_new("Wasserstein GAN with gradient penalty");
    ng_tape *tape = ng_tape_new();
    ng_tape_seed(tape, seed);
    for (int step = 1; step <= get_whole(STEPS); step++) {
        double distance = 0;
        for (int k = 0; k < CRITIC_STEPS; k++)
            distance = step_critic(critic, generator, scorer, tape);
        if (!step_generator(critic, generator, painter, tape)) break;
        if (!is_finite(distance, "the distance", step)) break;
        if (step % 4 == 0) ng_history_log(history, "distance", step, distance);
        if (step % 500 == 0) printf("step %5d  distance %.4f\n", step, distance), fflush(stdout);
    }
    log_points(history, "real", draw_circle(tape, SHOWN));
    log_points(history, "drawn", draw_fake(generator, tape, SHOWN));
    save_history(history, prefix.text, (ng_plot_options){.series = NG_NAMES("distance")});
    ng_tape_free(tape), ng_optimizer_free(scorer), ng_optimizer_free(painter);
    ng_module_free(critic), ng_module_free(generator), ng_history_free(history);
    return end_program(EXIT_SUCCESS);
}
