/* A Wasserstein GAN with gradient penalty (Gulrajani et al. 2017): a generator learns to draw
 * points of eight Gaussians on a circle. The penalty (|d critic(v) / d v| - 1)^2 at points v
 * between real and drawn ones is differentiated with respect to the critic's parameters. The critic
 * uses LayerNorm: with BatchNorm each output depends on all points of the batch.
 * build/examples/wgan_gp --help */
#include "experiment.h"
#include "penalty.h"

enum { BATCH = 128, NOISE = 4, WIDTH = 64, CRITIC_STEPS = 5, SHOWN = 500 };

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

/* Trains the critic for one step. Returns the estimate of the Wasserstein distance before it. */
static double step_critic(ng_module *critic, ng_module *generator, ng_optimizer *adam,
                          ng_tape *tape)
{
    ng_tensor *real = draw_circle(tape, NG_F32, BATCH);
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
    static const char what[] = "Learns to draw points of eight Gaussians on a circle.";
    experiment e = experiment_begin(argc, argv, "wgan_gp", what, 3000);
    ng_module *critic = make_network(2, 1, ng_norm_layer, e.seed);
    ng_module *generator = make_network(NOISE, 2, ng_norm_none, e.seed + 1);
    ng_optimizer *scorer = ng_adam_new(critic, .lr = 2e-3, .beta1 = 0.5, .beta2 = 0.9);
    ng_optimizer *painter = ng_adam_new(generator, .lr = 1e-3, .beta1 = 0.5, .beta2 = 0.9);
    ng_tape *tape = ng_tape_new();
    ng_tape_seed(tape, e.seed);
    double distance = 0;
    for (int step = 0; experiment_goes_on(&e, step, "distance", distance); step++) {
        for (int k = 0; k < CRITIC_STEPS; k++)
            distance = step_critic(critic, generator, scorer, tape);
        if (!step_generator(critic, generator, painter, tape)) break;
    }
    log_points(e.history, "real", draw_circle(tape, NG_F32, SHOWN));
    log_points(e.history, "drawn", draw_fake(generator, tape, SHOWN));
    ng_tape_free(tape), ng_optimizer_free(scorer), ng_optimizer_free(painter);
    ng_module_free(critic), ng_module_free(generator);
    return experiment_end(&e);
}
