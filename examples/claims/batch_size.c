/* How BatchNorm depends on the batch: the error on new images by batch size, the noise and bias of
 * a small batch's gradient, and workers with statistics of their own. */
#include "lab.h"

enum { STEPS, DRAWS, EPOCHS };
static option sizes[] = {
    [STEPS] = {"steps", "steps by batch size; five times as many if fully connected", .normal = 600,
               .quick = 20},
    [DRAWS] = {"draws", "batches of each size whose gradients are compared", .normal = 150,
               .quick = 20, .least = 2},
    [EPOCHS] = {"epochs", "passes of the workers over the data", .normal = 15, .quick = 2},
    {0}};

static const lab_experiment experiment = {
    .id = "batch_size",
    .source =
        "Wu & He 2018; Hoffer, Hubara & Soudry 2017; Luo et al. 2019; documents 000, 003, 004",
    .claim = "in small batches BatchNorm's gradients are noisy and biased and its error grows, and "
             "workers with statistics of their own fail if they see different data",
    .method =
        "Error: a fully connected network, 64-64-64-10, and three convolutions (4, 8, 16 channels) "
        "learn 1000 digits by 3000 and 600 steps of SGD with momentum, in batches of 2, 8, and 32, "
        "at the best rate of three seeds that are not scored; 797 digits test them in eval mode. "
        "Gradients: 64-48-48-10 after an epoch, 150 batches of 4 to 128 images drawn with "
        "replacement; of both hidden matrices the variance times the batch size, level if only "
        "sampling counts, and the distance of the mean from the gradient of all images, as a share "
        "of its length. Ghosts: batches of 32 to 128 normalized in parts of 8. Workers: 1, 4 or 16 "
        "share batches of 128 and average gradients (64-64-64-10, Adam at 0.003); their shards are "
        "random or sorted by class; each normalizes its part of the batch and keeps its own "
        "running statistics, or all use those of the whole batch.",
    .rule = "error at batch 2 less that at 32: above 1 point with BatchNorm, within 2 of 0 with "
            "LayerNorm (fully connected); BatchNorm's less GroupNorm's below 0 (convolutional). "
            "Variance times size at 4 over that at 128: above 1.25 with BatchNorm, within 0.25 of "
            "1 with LayerNorm; the mean at 4 is off by over 0.25, and by less; ghosts of 8 are as "
            "noisy as batches of 8, within 0.25. Own statistics less combined ones: below -1 point "
            "with sorted shards, within 2 with random ones; combined ones of 16 workers are within "
            "2 of those of one",
    .seeds = 11,
    .sizes = sizes};

/* ---- Error by batch size ---- */

enum { BATCHES = 3, LEARNED = 1000, SIDE = 8 };
static const int batches[BATCHES] = {32, 8, 2}; /* the best rates fall with the size */

typedef struct {
    const char *name;
    bool convolutional, batch_norm;
    int batch;
} setting;
static const setting settings[] = {{"fully connected, BatchNorm", false, true, 0},
                                   {"fully connected, LayerNorm", false, false, 0},
                                   {"convolutional, BatchNorm", true, true, 0},
                                   {"convolutional, GroupNorm", true, false, 0}};
enum { SETTINGS = sizeof settings / sizeof *settings };

static ng_tensor *as_images(ng_tape *tape, ng_tensor *pixels)
{
    return ng_reshape(tape, pixels, NG_SHAPE(-1, 1, SIDE, SIDE));
}

static ng_module *network_of(const setting *s, uint64_t seed)
{
    static const int64_t channels[] = {1, 4, 8, 16}, strides[] = {1, 2, 1};
    ng_module *net = ng_sequential_from(NULL, 0);
    for (int i = 0; i < (s->convolutional ? 3 : 2); i++) {
        const int64_t out = s->convolutional ? channels[i + 1] : 64;
        ng_sequential_add(net, s->convolutional
                                   ? ng_conv2d_new(channels[i], out, 3, .stride = strides[i],
                                                   .padding = 1, .no_bias = true)
                                   : ng_linear_new(64, out, .no_bias = true));
        ng_sequential_add(net, s->batch_norm      ? ng_batch_norm_new(out)
                               : s->convolutional ? ng_group_norm_new(out / 4, out)
                                                  : ng_layer_norm_new(out));
        ng_sequential_add(net, ng_relu_new());
    }
    if (s->convolutional) ng_sequential_add(net, ng_global_avg_pool_new());
    ng_sequential_add(net, ng_linear_new(s->convolutional ? 16 : 64, 10));
    ng_module_init(net, seed);
    if (!s->convolutional) return net;
    return ng_sequential_new(ng_function_new("as images", as_images), net);
}

/* Returns the share of wrong answers on new images, in per cent. */
static double error_of(void *context, double rate, uint64_t seed)
{
    const setting *s = context;
    const int steps = get_whole(STEPS) * (s->convolutional ? 1 : 5);
    ng_dataset *all = read_digits();
    lab_run r = {.net = network_of(s, seed), .tape = ng_tape_new()};
    ng_dataset_split_new(all, LEARNED, seed, &r.data, &r.rest);
    r.optimizer = ng_sgd_new(r.net, .lr = rate, .momentum = 0.9,
                             .schedule = NG_SCHEDULE(.kind = NG_SCHEDULE_COSINE, .steps = steps));
    for (int step = 0; step < steps; step++) lab_step(&r, s->batch, 0);
    const double right = 100 * ng_evaluate(r.net, r.rest).accuracy;
    ng_dataset_free(all), lab_end_run(&r);
    return 100 - right;
}

/* Returns by how much the error at batch 2 exceeds that at 32, by seed. */
static const double *growth_of(int which)
{
    setting s = settings[which];
    curve_set *curves = new_curves("batch", "%s", s.name);
    double rate = 0.1, *errors[BATCHES];
    for (int i = 0; i < BATCHES; i++) {
        s.batch = batches[i], errors[i] = lab_numbers(lab_seeds());
        rate = lab_best_rate(rate, error_of, &s);
        for (int seed = 0; seed < lab_seeds(); seed++) {
            errors[i][seed] = error_of(&s, rate, lab_seed(seed));
            log_curves(curves, seed, "error rate", s.batch, errors[i][seed], rate);
        }
    }
    return lab_less(errors[BATCHES - 1], errors[0]);
}

static void judge_errors(void)
{
    const double *growth[SETTINGS];
    for (int which = 0; which < SETTINGS; which++) growth[which] = growth_of(which);
    const char *what = "error at batch 2 less that at 32, fully connected, points";
    lab_judge("BatchNorm", growth[0], lab_above(1), "%s", what);
    lab_judge("LayerNorm", growth[1], lab_near(0, 2), "%s", what);
    lab_judge("BatchNorm", lab_less(growth[2], growth[3]), lab_below(0),
              "error at batch 2 less that at 32, less GroupNorm's, convolutional, points");
}

/* ---- Noise and bias of the gradient ---- */

enum { BATCH_KIND, LAYER_KIND, GHOST_KIND, KINDS };
enum { POWERS = 6, GHOST = 8, MATRICES = 2, HIDDEN = 48 };
static ng_module *make_ghosts(int64_t n) { return ng_batch_norm_new(n, .ghost = GHOST); }
static const lab_norm ghosts = {"BatchNorm, ghosts of 8", make_ghosts};
static const lab_norm *const kinds[KINDS] = {&lab_norms[LAB_BATCH], &lab_norms[LAB_LAYER], &ghosts};

enum { COUNT = 64 * HIDDEN + HIDDEN * HIDDEN }; /* elements of both hidden matrices */

static void gradient_of(lab_run *r, const ng_dataset *of, double *g)
{
    ng_tensor *y = ng_forward(r->net, r->tape, ng_dataset_x(of));
    ng_tensor *loss = ng_cross_entropy(r->tape, y, ng_dataset_y(of));
    ng_tensor *weights[MATRICES] = {ng_module_find(r->net, "0.weight"),
                                    ng_module_find(r->net, "3.weight")};
    ng_tensor *gradients[MATRICES];
    ng_gradients(r->tape, &loss, 1, weights, MATRICES, gradients);
    still_works();
    for (int m = 0; m < MATRICES; m++)
        for (int64_t i = 0; i < ng_size(gradients[m]); i++) *g++ = ng_get(gradients[m], i);
    ng_tape_reset(r->tape);
}

typedef struct {
    double variance, off; /* times the size, over |G|^2; distance of the mean over |G| */
} noise;

static noise noise_of(lab_run *r, int size, ng_rng *rng, const double *whole)
{
    const int draws = get_whole(DRAWS);
    double *sum = lab_numbers(COUNT), *g = lab_numbers(COUNT);
    double squares = 0, of_mean = 0, of_whole = 0, off = 0;
    for (int d = 0; d < draws && still_works(); d++) {
        int64_t numbers[4 << POWERS];
        for (int i = 0; i < size; i++) numbers[i] = ng_rng_below(rng, ng_dataset_count(r->data));
        ng_dataset *drawn = ng_dataset_subset_new(r->data, numbers, size);
        gradient_of(r, drawn, g);
        ng_dataset_free(drawn);
        for (int64_t i = 0; i < COUNT; i++) sum[i] += g[i], squares += g[i] * g[i] / draws;
    }
    for (int64_t i = 0; i < COUNT; i++) {
        const double mean = sum[i] / draws;
        of_mean += mean * mean, of_whole += whole[i] * whole[i];
        off += (mean - whole[i]) * (mean - whole[i]);
    }
    const double variance = (squares - of_mean) * draws / (draws - 1);
    return (noise){size * variance / of_whole, sqrt(fmax(off - variance / draws, 0) / of_whole)};
}

/* Measures one network. Ghost batches have BatchNorm's network and its gradient of all images. */
static void measure_noise(int kind, uint64_t seed, noise at[POWERS])
{
    const lab_norm *trained = kind == GHOST_KIND ? &lab_norms[LAB_BATCH] : kinds[kind];
    lab_run r = lab_begin_run(lab_network(trained, ng_relu_new, HIDDEN, 2, seed), seed);
    r.optimizer = ng_sgd_new(r.net, .lr = 0.1);
    lab_epoch(&r, 64, 0);
    double *whole = lab_numbers(COUNT);
    gradient_of(&r, r.data, whole);
    if (kind == GHOST_KIND) {
        ng_module *net = lab_network(&ghosts, ng_relu_new, HIDDEN, 2, 0);
        if (ng_module_copy(net, r.net)) still_works();
        ng_optimizer_free(r.optimizer), ng_module_free(r.net);
        r.net = net, r.optimizer = NULL;
    }
    ng_rng rng = ng_rng_seeded(seed);
    for (int i = kind == GHOST_KIND ? 3 : 0; i < POWERS; i++)
        at[i] = noise_of(&r, 4 << i, &rng, whole);
    lab_end_run(&r);
}

static void judge_noise(void)
{
    double *variance[KINDS][POWERS], *off[KINDS];
    for (int kind = 0; kind < KINDS; kind++) {
        curve_set *curves = new_curves("size", "noise, %s", kinds[kind]->name);
        off[kind] = lab_numbers(lab_seeds());
        for (int i = 0; i < POWERS; i++) variance[kind][i] = lab_numbers(lab_seeds());
        for (int seed = 0; seed < lab_seeds(); seed++) {
            noise at[POWERS] = {{0, 0}};
            measure_noise(kind, lab_seed(seed), at);
            off[kind][seed] = at[0].off;
            for (int i = kind == GHOST_KIND ? 3 : 0; i < POWERS; i++) {
                variance[kind][i][seed] = at[i].variance;
                log_curves(curves, seed, "variance off", 4 << i, at[i].variance, at[i].off);
            }
        }
    }
    for (int kind = 0; kind < GHOST_KIND; kind++) {
        const bool noisy = kind == BATCH_KIND;
        const double *growth = lab_quotients(variance[kind][0], variance[kind][POWERS - 1]);
        const char *name = kinds[kind]->name;
        lab_judge(name, growth, noisy ? lab_above(1.25) : lab_near(1, 0.25),
                  "variance of the gradient times batch size, at 4 over that at 128");
        lab_judge(name, off[kind], noisy ? lab_above(0.25) : lab_below(0.25),
                  "distance of the mean gradient at batch 4 from that of all images, as a share");
    }
    lab_judge("BatchNorm", lab_quotients(variance[GHOST_KIND][POWERS - 1], variance[BATCH_KIND][1]),
              lab_near(1, 0.25),
              "variance times size, ghosts of 8 in batches of 128 over batches of 8");
}

/* ---- Workers ---- */

enum { MOST_WORKERS = 16, COUNTS = 3, BUFFERS = 8, SHARED = 128, UNITS = 64 };
static int workers_of(int i) { return 1 << 2 * i; } /* 1, 4, 16 */

/* Splits the data into equal parts, in their own (random) order or sorted by class. */
static void make_shards(const ng_dataset *data, bool sorted, ng_dataset **shards, int workers)
{
    const int64_t count = ng_dataset_count(data), part = count / workers;
    int64_t numbers[LAB_DIGITS], placed = 0;
    for (int digit = 0; digit < (sorted ? 10 : 1); digit++)
        for (int64_t i = 0; i < count; i++)
            if (!sorted || ng_get(ng_dataset_y(data), i) == digit) numbers[placed++] = i;
    for (int k = 0; k < workers; k++)
        shards[k] = ng_dataset_subset_new(data, numbers + k * part, part);
    still_works();
}

/* A worker's running statistics, kept here while another worker's are in the network. */
typedef struct {
    ng_tensor *buffers[BUFFERS];
} statistics;

static void swap_statistics(ng_module *net, statistics *s)
{
    ng_named_tensor b;
    for (int i = 0; i < BUFFERS && ng_module_buffer(net, i, &b); i++) {
        ng_tensor *now = ng_copy_new(b.tensor, ng_dtype_of(b.tensor));
        if (s->buffers[i]) ng_copy_values(b.tensor, s->buffers[i]), ng_tensor_free(s->buffers[i]);
        s->buffers[i] = now;
    }
}

/* Takes the gradients of a step in which each worker runs the network by itself. */
static void step_apart(ng_module *net, ng_tape *tape, const ng_batch *parts, statistics *own,
                       int workers)
{
    for (int k = 0; k < workers && still_works(); k++) {
        swap_statistics(net, &own[k]);
        ng_tensor *loss = ng_cross_entropy(tape, ng_forward(net, tape, parts[k].x), parts[k].y);
        if (ng_backward(tape, ng_mul_scalar(tape, loss, 1.0 / workers))) return;
        swap_statistics(net, &own[k]);
    }
}

/* The same with the statistics of the whole batch. */
static void step_together(ng_module *net, ng_tape *tape, const ng_batch *parts, int workers)
{
    ng_tensor *x[MOST_WORKERS], *y[MOST_WORKERS];
    for (int k = 0; k < workers; k++) x[k] = parts[k].x, y[k] = parts[k].y;
    ng_tensor *logits = ng_forward(net, tape, ng_concat(tape, x, workers, 0));
    ng_tensor *labels = ng_concat(tape, y, workers, 0);
    if (ng_backward(tape, ng_cross_entropy(tape, logits, labels))) still_works();
}

/* Returns the accuracy on the validation images, the mean over the workers' statistics. */
static double accuracy_of(bool own_statistics, int workers, ng_dataset **shards,
                          ng_dataset *validate, uint64_t seed)
{
    const int64_t part = SHARED / workers;
    ng_module *net = lab_network(&lab_norms[LAB_BATCH], ng_relu_new, UNITS, 2, seed);
    ng_optimizer *adam = ng_adam_new(net, .lr = 3e-3);
    ng_tape *tape = ng_tape_new();
    statistics own[MOST_WORKERS] = {{{NULL}}};
    for (int k = 0; k < workers; k++) swap_statistics(net, &own[k]);
    for (int epoch = 0; epoch < get_whole(EPOCHS); epoch++) {
        for (int k = 0; k < workers; k++)
            ng_dataset_shuffle(shards[k], (uint64_t)(epoch * workers + k));
        for (int i = 0; i < ng_dataset_count(shards[0]) / part && still_works(); i++) {
            ng_batch parts[MOST_WORKERS];
            for (int k = 0; k < workers; k++) ng_dataset_batch(shards[k], tape, i, part, &parts[k]);
            if (own_statistics)
                step_apart(net, tape, parts, own, workers);
            else
                step_together(net, tape, parts, workers);
            if (ng_optimizer_step(adam)) break;
            ng_tape_reset(tape);
        }
    }
    double accuracy = 0;
    const int views = own_statistics ? workers : 1;
    for (int k = 0; k < views; k++) {
        if (own_statistics) swap_statistics(net, &own[k]);
        accuracy += 100 * ng_evaluate(net, validate).accuracy / views;
        if (own_statistics) swap_statistics(net, &own[k]);
    }
    for (int i = 0; i < MOST_WORKERS * BUFFERS; i++)
        ng_tensor_free(own[i / BUFFERS].buffers[i % BUFFERS]);
    ng_tape_free(tape), ng_optimizer_free(adam), ng_module_free(net);
    return accuracy;
}

static void judge_workers(void)
{
    static const char *const names[2] = {"random shards", "sorted shards"};
    double *accuracy[2][2][COUNTS]; /* random or sorted; combined or own; number of workers */
    for (int i = 0; i < 4 * COUNTS; i++)
        accuracy[i / 2 / COUNTS][i / COUNTS % 2][i % COUNTS] = lab_numbers(lab_seeds());
    for (int sorted = 0; sorted < 2; sorted++) {
        curve_set *curves = new_curves("workers", "%s", names[sorted]);
        for (int seed = 0; seed < lab_seeds(); seed++) {
            ng_dataset *train, *validate, *shards[MOST_WORKERS];
            lab_digits(lab_seed(seed), 0, &train, &validate);
            for (int i = 0; i < COUNTS; i++) {
                double now[2];
                for (int own = 0; own < 2; own++) {
                    make_shards(train, sorted, shards, workers_of(i));
                    now[own] = accuracy[sorted][own][i][seed] =
                        accuracy_of(own, workers_of(i), shards, validate, lab_seed(seed));
                    for (int k = 0; k < workers_of(i); k++) ng_dataset_free(shards[k]);
                }
                log_curves(curves, seed, "combined own", workers_of(i), now[0], now[1]);
            }
            ng_dataset_free(train), ng_dataset_free(validate);
        }
    }
    for (int i = 1; i < COUNTS; i++)
        lab_judge("BatchNorm", lab_less(accuracy[1][1][i], accuracy[1][0][i]), lab_below(-1),
                  "%d workers, sorted shards: accuracy with own statistics less that with "
                  "combined, points",
                  workers_of(i));
    lab_judge("BatchNorm", lab_less(accuracy[0][1][2], accuracy[0][0][2]), lab_near(0, 2),
              "16 workers, random shards: accuracy with own statistics less that with combined, "
              "points");
    lab_judge("BatchNorm", lab_less(accuracy[1][0][2], accuracy[1][0][0]), lab_near(0, 2),
              "sorted shards, combined statistics: accuracy with 16 workers less that with one, "
              "points");
}

int main(int argc, char **argv)
{
    lab_begin(argc, argv, &experiment);
    lab_data("digits; %d steps by batch size; %d draws; workers: %d epochs", get_whole(STEPS),
             get_whole(DRAWS), get_whole(EPOCHS));
    judge_errors();
    judge_noise();
    judge_workers();
    return lab_end();
}
