/* A conditional variational autoencoder (Kingma & Welling 2014, Sohn et al. 2015) on digits. The
 * encoder maps an image and its label to the mean and deviation of a code. The decoder maps a code
 * and a label to an image. After training, new images of each label are drawn. build/examples/vae
 * --help */
#include "harness.h"

enum { SIDE = 8, PIXELS = SIDE * SIDE, CLASSES = 10 };
enum { CODE = 8, WIDTH = 128, BATCH = 64, SHOWN = 12 };

enum { STEPS, SEED, OUT };
static option options[] = {
    [STEPS] = {"steps", "training steps", .normal = 4000},
    [SEED] = {"seed", "seed of all random numbers", .zero = true},
    [OUT] = {"out", "prefix of the .dat files and the .svg (build/vae)", .text = ""},
    {0}};

static ng_module *make_network(int64_t in, int64_t out)
{
    return ng_sequential_new(ng_linear_new(in + CLASSES, WIDTH), ng_layer_norm_new(WIDTH),
                             ng_silu_new(), ng_linear_new(WIDTH, out));
}

/* Returns the network's output for x concatenated with the label. */
static ng_tensor *given(ng_module *net, ng_tape *tape, ng_tensor *x, ng_tensor *labels)
{
    ng_tensor *label = ng_one_hot(tape, NG_F32, labels, CLASSES);
    return ng_forward(net, tape, ng_concat(tape, NG_TENSORS(x, label), 1));
}

/* The negative evidence lower bound per image: the cross-entropy of the pixels plus the divergence
 * of the code from a normal distribution, sum (mean^2 + variance - ln variance - 1) / 2. */
static ng_tensor *loss_of(ng_module *both, ng_tape *tape, const ng_batch *batch)
{
    ng_module *encoder = ng_module_child(both, 0), *decoder = ng_module_child(both, 1);
    ng_tensor *parts[2], *code = given(encoder, tape, batch->x, batch->y);
    if (ng_chunk(tape, code, 2, 1, parts) != NG_OK) return NULL;
    ng_tensor *mean = parts[0], *log_variance = parts[1];
    ng_tensor *deviation = ng_exp(tape, ng_mul_scalar(tape, log_variance, 0.5));
    ng_tensor *noise = ng_normal(tape, NG_F32, ng_shape_of(mean), 0, 1);
    ng_tensor *drawn = ng_add(tape, mean, ng_mul(tape, deviation, noise));
    ng_tensor *logits = given(decoder, tape, drawn, batch->y);
    ng_tensor *pixels = ng_binary_cross_entropy(tape, logits, batch->x, .reduction = NG_SUM);
    ng_tensor *squares = ng_add(tape, ng_square(tape, mean), ng_square(tape, deviation));
    ng_tensor *terms = ng_sub(tape, squares, ng_add_scalar(tape, log_variance, 1));
    ng_tensor *divergence = ng_mul_scalar(tape, ng_sum(tape, terms), 0.5);
    return ng_mul_scalar(tape, ng_add(tape, pixels, divergence), 1 / (double)batch->size);
}

/* Writes a sheet of images: one row per label, the same codes in each row. */
static void write_sheet(const char *out, ng_module *both, ng_tape *tape)
{
    const line path = line_of("%s_images.dat", out);
    ng_tensor *codes = ng_normal(tape, NG_F32, NG_SHAPE(1, SHOWN, CODE), 0, 1);
    codes = ng_reshape(tape, ng_broadcast_to(tape, codes, NG_SHAPE(CLASSES, SHOWN, CODE)),
                       NG_SHAPE(CLASSES * SHOWN, CODE));
    ng_tensor *labels = ng_reshape(tape, ng_arange(tape, NG_I64, 0, CLASSES, 1), NG_SHAPE(-1, 1));
    labels = ng_reshape(tape, ng_broadcast_to(tape, labels, NG_SHAPE(CLASSES, SHOWN)),
                        NG_SHAPE(CLASSES * SHOWN));
    ng_tensor *images = ng_sigmoid(tape, given(ng_module_child(both, 1), tape, codes, labels));
    images = ng_pad(tape, ng_reshape(tape, images, NG_SHAPE(CLASSES, SHOWN, SIDE, SIDE)), 2, 1, 1);
    ng_tensor *sheet = ng_reshape(tape, ng_permute(tape, images, NG_AXES(0, 2, 1, 3)),
                                  NG_SHAPE(CLASSES * (SIDE + 2), SHOWN * SIDE));
    if (sheet && ng_tensor_write_dat(sheet, path.text) == NG_OK)
        printf("Images: %s. To draw them: gnuplot -c plots/vae.gp %s\n", path.text, out);
}

int main(int argc, char **argv)
{
    static const char usage[] =
        "usage: vae [options]\n\nLearns to draw the handwritten digit of a given label.\n";
    begin_program(argc, argv, usage, options, NULL);
    const line prefix = choose_prefix(get_text(OUT), "vae");
    const uint64_t seed = (uint64_t)get_number(SEED);
    const int steps = get_whole(STEPS);
    ng_dataset *digits = read_digits();
    ng_module *both = ng_list_new(make_network(PIXELS, 2 * CODE), make_network(CODE, PIXELS));
    ng_module_init(both, seed);
    ng_optimizer *adam = ng_adam_new(
        both, .lr = 2e-3, .schedule = NG_SCHEDULE(.kind = NG_SCHEDULE_COSINE, .steps = steps));
    ng_history *history = ng_history_new("conditional variational autoencoder on digits");
    ng_tape *tape = ng_tape_new();
    ng_tape_seed(tape, seed);
    const int64_t samples = ng_dataset_count(digits);
    const int batches = samples < BATCH ? 1 : (int)(samples / BATCH);
    for (int step = 0; step < steps; step++) {
        ng_batch batch;
        if (step % batches == 0) ng_dataset_shuffle(digits, seed + (uint64_t)(step / batches));
        if (!ng_dataset_batch(digits, tape, step % batches, BATCH, &batch)) break;
        ng_tensor *of_batch = loss_of(both, tape, &batch);
        if (ng_backward(tape, of_batch) || ng_optimizer_step(adam)) break;
        const double loss = ng_item(of_batch);
        ng_tape_reset(tape);
        if (!is_finite(loss, "the loss", step + 1)) break;
        if (step % 5 == 4) ng_history_log(history, "loss", step + 1, loss);
        if (step % 500 == 499) printf("step %5d  loss %.4f\n", step + 1, loss), fflush(stdout);
    }
    save_history(history, prefix.text, (ng_plot_options){.y_label = "nats per image"});
    if (!ng_failed()) write_sheet(prefix.text, both, tape);
    ng_tape_free(tape), ng_optimizer_free(adam), ng_module_free(both), ng_dataset_free(digits);
    ng_history_free(history);
    return end_program(EXIT_SUCCESS);
}
