/* The error of BatchNorm, GroupNorm and LayerNorm on new images by batch size, from 2 to 32, for a
 * convolutional and a fully connected network. It is measured in train mode and in eval mode. */
#include "lab.h"

enum { TRAIN, STEPS, CONNECTED_STEPS };
static lab_size sizes[] = {
    [TRAIN] = {"train", "training images; the others are for testing", .normal = 1000, .quick = 256,
               .least = 32, .most = LAB_DIGITS - 1},
    [STEPS] = {"steps", "steps of the convolutional network", .normal = 1000, .quick = 20},
    [CONNECTED_STEPS] = {"connected-steps", "steps of the fully connected network", .normal = 3000,
                         .quick = 20},
    {0}};

static const lab_experiment experiment = {
    .id = "batch_size",
    .source = "Wu & He 2018, figure 1; documents 000, 003, 004",
    .claim = "BatchNorm's error grows as batches shrink to 2; GroupNorm's and LayerNorm's does not",
    .method =
        "Digits, 1000 for training and 797 for testing. Convolutional: 3 convolutions of 3 x 3\n"
        "with 4, 8 and 16 channels, global average pooling, Linear; fully connected:\n"
        "64-64-64-10; a norm and ReLU after each layer but the last. SGD with momentum 0.9 and a\n"
        "cosine schedule, for each batch size the same number of steps, 1000 and 3000 (so a\n"
        "batch of 32 sees each image 16 times as often as one of 2). Each norm has at each batch\n"
        "size its best learning rate, a power of 2 with worse neighbours on both sides, by the\n"
        "mean error over three seeds that are not scored. Groups of 4 channels or 16 features;\n"
        "LayerNorm is GroupNorm with one group, as in the paper.\n",
    .rule =
        "for each network, seed by seed, in percentage points: BatchNorm's error at batch 2 less "
        "that at 32 is above 1; GroupNorm's and LayerNorm's are within 1 of 0; at batch 2 "
        "BatchNorm's error less GroupNorm's is above 0, and so is the growth of BatchNorm's error "
        "less that of GroupNorm's",
    .seeds = 9,
    .quick_seeds = 1,
    .sizes = sizes};

enum { BATCH_NORM, GROUP_NORM, LAYER_NORM, NORMS };
enum { CONVOLUTIONAL, CONNECTED, NETWORKS };
enum { BATCHES = 4, RATES = 16, SIDE = 8 };
static const char *const norm_names[NORMS] = {"BatchNorm", "GroupNorm", "LayerNorm"};
static const char *const network_names[NETWORKS] = {"convolutional", "fully connected"};
static const int batches[BATCHES] = {2, 4, 8, 32};

static double rate_of(int i) { return ldexp(0.32 * 8, -i); } /* 2.56, 1.28 ... 0.00008 */

/* ---- Networks ---- */

static void add_norm(ng_module *net, int norm, int64_t channels, int64_t group)
{
    ng_sequential_add(net, norm == BATCH_NORM   ? ng_batch_norm_new(channels)
                           : norm == GROUP_NORM ? ng_group_norm_new(channels / group, channels)
                                                : ng_group_norm_new(1, channels));
    ng_sequential_add(net, ng_relu_new());
}

static ng_module *make_network(int network, int norm, uint64_t seed)
{
    static const int64_t channels[] = {1, 4, 8, 16}, strides[] = {1, 2, 1};
    ng_module *net = ng_sequential_from(NULL, 0);
    for (int i = 0; i < 3 && network == CONVOLUTIONAL; i++) {
        ng_sequential_add(net, ng_conv2d_new(channels[i], channels[i + 1], 3, .stride = strides[i],
                                             .padding = 1, .no_bias = true));
        add_norm(net, norm, channels[i + 1], 4);
    }
    for (int i = 0; i < 2 && network == CONNECTED; i++) {
        ng_sequential_add(net, ng_linear_new(64, 64, .no_bias = true));
        add_norm(net, norm, 64, 16);
    }
    if (network == CONVOLUTIONAL) ng_sequential_add(net, ng_global_avg_pool_new());
    ng_sequential_add(net, ng_linear_new(network == CONVOLUTIONAL ? 16 : 64, 10));
    ng_module_init(net, seed);
    return net;
}

static ng_tensor *logits_of(ng_module *net, int network, ng_tape *tape, ng_tensor *pixels)
{
    const ng_shape shape =
        network == CONVOLUTIONAL ? NG_SHAPE(-1, 1, SIDE, SIDE) : NG_SHAPE(-1, SIDE * SIDE);
    return ng_forward(net, tape, ng_reshape(tape, pixels, shape));
}

/* ---- One run ---- */

static void train(ng_module *net, int network, ng_tape *tape, ng_dataset *data, int batch,
                  double rate)
{
    const int steps = lab_whole(network == CONNECTED ? CONNECTED_STEPS : STEPS);
    const int epoch = (int)(ng_dataset_count(data) / batch);
    ng_optimizer *sgd = ng_sgd_new(net, .lr = rate, .momentum = 0.9,
                                   .schedule = {.kind = NG_SCHEDULE_COSINE, .steps = steps});
    ng_batch b;
    for (int step = 0; step < steps && lab_goes_on(); step++) {
        if (step % epoch == 0) ng_dataset_shuffle(data, (uint64_t)step);
        ng_dataset_batch(data, tape, step % epoch, batch, &b);
        ng_tensor *loss = ng_cross_entropy(tape, logits_of(net, network, tape, b.x), b.y);
        if (ng_backward(tape, loss) || ng_optimizer_step(sgd)) break;
        ng_tape_reset(tape);
    }
    ng_optimizer_free(sgd);
}

typedef struct {
    double wrong, seen;
} tally;

/* Counts wrong answers in the network's current mode. In train mode an incomplete batch is left
 * out, since BatchNorm needs more than one sample. */
static void count_wrong(ng_module *net, int network, ng_tape *tape, ng_dataset *data, int batch,
                        bool training, tally *t)
{
    ng_batch b;
    const bool was = ng_tape_set_recording(tape, false);
    for (int i = 0; ng_dataset_batch(data, tape, i, batch, &b, .drop_last = training); i++) {
        const ng_tensor *guess = ng_argmax(tape, logits_of(net, network, tape, b.x));
        for (int64_t k = 0; k < b.size; k++) t->wrong += ng_get(guess, k) != ng_get(b.y, k);
        t->seen += (double)b.size;
        ng_tape_reset(tape);
        lab_goes_on();
    }
    ng_tape_set_recording(tape, was);
}

typedef struct {
    double eval, train; /* errors in these modes, in per cent; train: only BatchNorm's */
} errors;

static errors run(int network, int norm, int batch, double rate, uint64_t seed)
{
    enum { WHOLE = 256 };
    ng_dataset *most, *data, *test[2];
    lab_digits(seed, 0, &most, &test[0]);
    ng_dataset_split(most, lab_whole(TRAIN), seed, &data, &test[1]);
    ng_module *net = make_network(network, norm, seed);
    ng_tape *tape = ng_tape_new();
    lab_goes_on();
    train(net, network, tape, data, batch, rate);
    tally in_use = {0, 0}, training = {0, 0};
    ng_eval(net);
    for (int i = 0; i < 2; i++) count_wrong(net, network, tape, test[i], WHOLE, false, &in_use);
    ng_train(net);
    for (int i = 0; i < 2 && norm == BATCH_NORM; i++)
        count_wrong(net, network, tape, test[i], batch, true, &training);
    ng_tape_free(tape), ng_module_free(net);
    ng_dataset_free(most), ng_dataset_free(data);
    ng_dataset_free(test[0]), ng_dataset_free(test[1]);
    return (errors){100 * in_use.wrong / in_use.seen, 100 * training.wrong / training.seen};
}

/* ---- A norm at a batch size ---- */

/* The index of the rate, and the error in eval mode by seed. */
typedef struct {
    int rate;
    double *eval;
} result;

/* Returns the mean error in eval mode over the tuning seeds, measured once for each rate and kept
 * in known[rate]. */
static double tuned_error(int network, int norm, int batch, int rate, double known[RATES])
{
    if (rate < 0 || rate >= RATES) return (double)INFINITY;
    if (!isnan(known[rate])) return known[rate];
    double sum = 0;
    for (int i = 0; i < lab_tuning_seeds(); i++)
        sum += run(network, norm, batch, rate_of(rate), lab_tuning_seed(i)).eval;
    return known[rate] = sum / lab_tuning_seeds();
}

/* Moves from `rate` to a rate that is better than both neighbours. */
static int best_rate(int network, int norm, int batch, int rate)
{
    double known[RATES];
    for (int i = 0; i < RATES; i++) known[i] = (double)NAN;
    for (;;) {
        const double here = tuned_error(network, norm, batch, rate, known);
        if (tuned_error(network, norm, batch, rate + 1, known) < here)
            rate++;
        else if (tuned_error(network, norm, batch, rate - 1, known) < here)
            rate--;
        else
            return rate;
    }
}

static result measure(int network, int norm, int batch, int first_rate, lab_curves *curves)
{
    result r = {best_rate(network, norm, batch, first_rate), lab_numbers(lab_seeds())};
    for (int seed = 0; seed < lab_seeds(); seed++) {
        const errors e = run(network, norm, batch, rate_of(r.rate), lab_seed(seed));
        r.eval[seed] = e.eval;
        lab_log(curves, seed, "eval train rate", batch, e.eval, e.train, rate_of(r.rate));
    }
    return r;
}

static result results[NETWORKS][NORMS][BATCHES];

/* Measures from the largest batch to the smallest; the best rates fall with the batch size. */
static void measure_all(int network, int norm)
{
    lab_curves *curves =
        lab_curves_new("batch", "%s, %s", network_names[network], norm_names[norm]);
    for (int i = BATCHES - 1; i >= 0 && lab_goes_on(); i--) {
        lab_progress((network * NORMS + norm) * BATCHES + BATCHES - 1 - i,
                     NETWORKS * NORMS * BATCHES, "%s, %s, batch %d", network_names[network],
                     norm_names[norm], batches[i]);
        const int first_rate = i + 1 < BATCHES ? results[network][norm][i + 1].rate + 1 : 3;
        results[network][norm][i] = measure(network, norm, batches[i], first_rate, curves);
    }
}

/* ---- The verdicts ---- */

enum { AT_2 = 0, AT_32 = BATCHES - 1 };

static void judge(int network)
{
    const char *name = network_names[network];
    const double *growth[NORMS];
    for (int norm = 0; norm < NORMS; norm++) {
        const result *r = results[network][norm];
        growth[norm] = lab_less(r[AT_2].eval, r[AT_32].eval);
        lab_judge((lab_part){norm_names[norm], growth[norm],
                             .side = norm == BATCH_NORM ? LAB_ABOVE : LAB_WITHIN, .threshold = 1},
                  "error at batch 2 less that at 32, %s, points", name);
    }
    result *batch = results[network][BATCH_NORM], *group = results[network][GROUP_NORM];
    lab_judge((lab_part){norm_names[BATCH_NORM], lab_less(batch[AT_2].eval, group[AT_2].eval),
                         .side = LAB_ABOVE, .threshold = 0},
              "error at batch 2 less GroupNorm's, %s, points", name);
    lab_judge((lab_part){norm_names[BATCH_NORM], lab_less(growth[BATCH_NORM], growth[GROUP_NORM]),
                         .side = LAB_ABOVE, .threshold = 0},
              "growth of the error from batch 32 to 2 less GroupNorm's, %s, points", name);
}

int main(int argc, char **argv)
{
    lab_begin(argc, argv, &experiment);
    for (int network = 0; network < NETWORKS; network++)
        for (int norm = 0; norm < NORMS; norm++) measure_all(network, norm);
    lab_data("SGD with momentum at its best rate, %d images, %d steps (convolutional), %d steps",
             lab_whole(TRAIN), lab_whole(STEPS), lab_whole(CONNECTED_STEPS));
    for (int network = 0; network < NETWORKS; network++) judge(network);
    return lab_end();
}
