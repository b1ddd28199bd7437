/* RMSNorm and LayerNorm with and without gamma and beta, AdaNorm and DetachNorm, in a network for
 * digits and in a small transformer. */
#include "lab.h"

enum { WIDTH, EPOCHS, DIM, LAYERS, STEPS, TRANSFORMER_SEEDS };
static lab_size sizes[] = {
    [WIDTH] = {"width", "features of the network's two hidden layers", .normal = 64, .quick = 32},
    [EPOCHS] = {"epochs", "passes of the network over its data", .normal = 20, .quick = 2},
    [DIM] = {"dim", "features of the transformer", .normal = 32, .quick = 16},
    [LAYERS] = {"layers", "blocks of the transformer", .normal = 2, .quick = 1},
    [STEPS] = {"steps", "steps of the transformer, of 4 images each", .normal = 240, .quick = 10},
    [TRANSFORMER_SEEDS] = {"transformer-seeds", "seeds of the transformer", .normal = 9,
                           .quick = 2},
    {0}};

static const lab_experiment parameter_free = {
    .id = "parameter_free",
    .source = "document 000; Xu et al. 2019",
    .claim = "removing the learnable parameters of RMSNorm and LayerNorm does no harm",
    .method =
        "Two tasks: 64-width-width-10 with a norm after each hidden layer classifies digits, and\n"
        "a pre-norm transformer predicts each pixel from those before it. Each norm has the\n"
        "learning rate that has a lower validation loss than half and twice the rate, in the\n"
        "median over three seeds that are not scored. Losses and accuracies are compared seed by\n"
        "seed (same data, same weights) with those of the norm with parameters: RMSNorm for\n"
        "RMSNorm, LayerNorm for all others. For comparison: AdaNorm, Xu et al.'s replacement of\n"
        "the parameters, and DetachNorm, which stops the gradients through mean and deviation.\n",
    .rule = "no harm: without parameters the validation loss is below 1.02 times that with them, "
            "and the accuracy within 2 points of it; the control harms: DetachNorm's loss is above "
            "1.02 times LayerNorm's",
    .seeds = 25,
    .quick_seeds = 2,
    .sizes = sizes};

/* ---- Norms --------------------------------------------------------------------------------- */

static ng_module *make_plain_layer(int64_t n) { return ng_layer_norm_new(n, .no_affine = true); }
static ng_module *make_plain_rms(int64_t n) { return ng_rms_norm_new(n, .no_affine = true); }
static ng_module *make_ada(int64_t n)
{
    return ng_adaptive_layer_norm_new(n, .form = NG_ADAPTIVE_ADANORM);
}
static ng_module *make_detach(int64_t n) { return ng_detach_norm_new(n); }

enum { RMS, PLAIN_RMS, LAYER, PLAIN_LAYER, ADA, DETACH, NORMS };
static const struct {
    lab_norm norm;
    int against; /* the norm that it is compared with */
} norms[NORMS] = {
    [RMS] = {{"rms", "RMSNorm", ng_norm_rms}, RMS},
    [PLAIN_RMS] = {{"rms_plain", "RMSNorm without gamma", make_plain_rms}, RMS},
    [LAYER] = {{"layer", "LayerNorm", ng_norm_layer}, LAYER},
    [PLAIN_LAYER] = {{"layer_plain", "LayerNorm without gamma and beta", make_plain_layer}, LAYER},
    [ADA] = {{"ada", "AdaNorm", make_ada}, LAYER},
    [DETACH] = {{"detach", "DetachNorm", make_detach}, LAYER}};

/* ---- Two tasks ----------------------------------------------------------------------------- */

/* Trains from a seed at a learning rate. Returns the validation score. */
typedef lab_score task_run(const lab_norm *norm, double lr, uint64_t seed);

static lab_score learn_digits(const lab_norm *norm, double lr, uint64_t seed)
{
    ng_dataset *train, *validate;
    lab_digits(seed, 0, &train, &validate);
    ng_module *net = lab_network(norm, lab_whole(WIDTH), 2, seed);
    ng_optimizer *adam = ng_adam_new(net, .lr = lr);
    ng_tape *tape = ng_tape_new();
    for (int epoch = 0; epoch < lab_whole(EPOCHS) && lab_goes_on(); epoch++)
        lab_train_epoch(net, adam, tape, train, 64, (uint64_t)epoch);
    const lab_score score = lab_evaluate(net, tape, validate);
    ng_tape_free(tape), ng_optimizer_free(adam), ng_module_free(net);
    ng_dataset_free(train), ng_dataset_free(validate);
    return score;
}

/* Pixels are 0 to 16 of 16. The transformer reads the first 63 and predicts the last 63. */
enum { GREYS = 17, SEEN = 63, IMAGES = 4 };

static ng_tensor *pixel_loss(ng_module *net, ng_tape *tape, ng_tensor *x)
{
    ng_tensor *pixels = ng_cast(tape, ng_mul_scalar(tape, x, GREYS - 1), NG_I64);
    const int64_t *pixel = ng_data_i64(pixels), images = ng_dim(x, 0);
    ng_tensor *seen = ng_result(tape, NG_I64, NG_SHAPE(images, SEEN));
    ng_tensor *next = ng_result(tape, NG_I64, NG_SHAPE(images, SEEN));
    if (!lab_goes_on()) return NULL;
    for (int64_t i = 0; i < images * SEEN; i++) {
        ng_data_i64(seen)[i] = pixel[i + i / SEEN];
        ng_data_i64(next)[i] = pixel[i + i / SEEN + 1];
    }
    return ng_cross_entropy(tape, ng_forward(net, tape, seen), next);
}

static lab_score learn_pixels(const lab_norm *norm, double lr, uint64_t seed)
{
    ng_dataset *train, *validate;
    ng_batch b;
    lab_digits(seed, 0, &train, &validate);
    ng_module *net = ng_transformer_new(GREYS, .dim = lab_whole(DIM), .heads = 4, .length = SEEN,
                                        .layers = lab_whole(LAYERS), .norm = norm->make);
    ng_module_init(net, seed);
    ng_optimizer *adam = ng_adam_new(net, .lr = lr);
    ng_tape *tape = ng_tape_new();
    for (int step = 0, epoch = 0, i = 0; step < lab_whole(STEPS) && lab_goes_on(); step++, i++) {
        if (!ng_dataset_batch(train, tape, i, IMAGES, &b, .drop_last = true)) {
            ng_dataset_shuffle(train, (uint64_t)++epoch);
            ng_dataset_batch(train, tape, i = 0, IMAGES, &b);
        }
        if (ng_backward(tape, pixel_loss(net, tape, b.x)) || ng_optimizer_step(adam)) break;
        ng_tape_reset(tape);
    }
    double sum = 0;
    ng_eval(net), ng_tape_set_recording(tape, false);
    for (int i = 0; ng_dataset_batch(validate, tape, i, 60, &b); i++) {
        sum += ng_item(pixel_loss(net, tape, b.x)) * (double)b.size;
        ng_tape_reset(tape);
    }
    const double loss = sum / (double)ng_dataset_count(validate);
    ng_tape_free(tape), ng_optimizer_free(adam), ng_module_free(net);
    ng_dataset_free(train), ng_dataset_free(validate);
    return (lab_score){.loss = loss};
}

enum { DIGITS, PIXELS, TASKS };
static const struct {
    const char *name;
    task_run *run;
    double first_rate; /* first candidate of the search */
} tasks[TASKS] = {
    [DIGITS] = {"digits", learn_digits, 4e-3}, [PIXELS] = {"transformer", learn_pixels, 4e-3}};

static int seeds_of(int task)
{
    const bool fewer = task == PIXELS && lab_whole(TRANSFORMER_SEEDS) < lab_seeds();
    return fewer ? lab_whole(TRANSFORMER_SEEDS) : lab_seeds();
}

/* ---- The comparison ------------------------------------------------------------------------- */

/* Results of one norm in a task, by seed, at its own learning rate. */
typedef struct {
    double rate, *loss, *accuracy;
} reached;
static reached results[TASKS][NORMS];

typedef struct {
    int task, norm;
} trial;

static double tuning_loss(void *context, double rate, uint64_t seed)
{
    const trial *t = context;
    return tasks[t->task].run(&norms[t->norm].norm, rate, seed).loss;
}

static void train_all(int task, int n)
{
    const int seeds = seeds_of(task);
    reached *r = &results[task][n];
    trial t = {task, n};
    lab_progress(task * NORMS + n, TASKS * NORMS, "%s, %s", tasks[task].name, norms[n].norm.name);
    *r = (reached){lab_best_rate(tasks[task].first_rate, tuning_loss, &t), lab_numbers(seeds),
                   lab_numbers(seeds)};
    for (int seed = 0; seed < seeds && lab_goes_on(); seed++) {
        const lab_score score = tasks[task].run(&norms[n].norm, r->rate, lab_seed(seed));
        r->loss[seed] = score.loss, r->accuracy[seed] = score.accuracy;
    }
}

/* Returns the loss over that of the norm with parameters, by seed. */
static const double *ratios(int task, int n)
{
    double *each = lab_numbers(seeds_of(task));
    for (int seed = 0; seed < seeds_of(task); seed++)
        each[seed] = results[task][n].loss[seed] / results[task][norms[n].against].loss[seed];
    return each;
}

static void write_task(int task)
{
    char block[64];
    snprintf(block, sizeof block, "seeds, %s", tasks[task].name);
    lab_block(block, "norm ratio");
    lab_curves *curves = lab_curves_new("norm", "%s", tasks[task].name);
    for (int n = 0; n < NORMS; n++) {
        const reached *r = &results[task][n];
        const double *each = ratios(task, n);
        for (int seed = 0; seed < seeds_of(task); seed++) {
            lab_row(n, each[seed]);
            lab_log(curves, seed, "lr loss ratio", n, r->rate, r->loss[seed], each[seed]);
        }
    }
}

static void judge_loss(int task, int n, lab_side side)
{
    const char *what = n == DETACH ? "without its gradients" : "without parameters";
    lab_judge((lab_part){norms[norms[n].against].norm.name, ratios(task, n), seeds_of(task), side,
                         .threshold = 1.02},
              "validation loss %s over that with them, %s", what, tasks[task].name);
}

static void judge_accuracy(int n)
{
    double *points = lab_numbers(lab_seeds());
    for (int seed = 0; seed < lab_seeds(); seed++)
        points[seed] = 100 * (results[DIGITS][n].accuracy[seed] -
                              results[DIGITS][norms[n].against].accuracy[seed]);
    lab_judge(
        (lab_part){norms[norms[n].against].norm.name, points, .side = LAB_WITHIN, .threshold = 2},
        "accuracy without parameters less that with them, digits, points");
}

int main(int argc, char **argv)
{
    lab_begin(argc, argv, &parameter_free);
    for (int task = 0; task < TASKS; task++)
        for (int n = 0; n < NORMS; n++) train_all(task, n);

    lab_data("digits: 64-%d-%d-10, %d epochs; transformer: %d blocks of width %d, %d steps, %d "
             "seeds; Adam",
             lab_whole(WIDTH), lab_whole(WIDTH), lab_whole(EPOCHS), lab_whole(LAYERS),
             lab_whole(DIM), lab_whole(STEPS), seeds_of(PIXELS));
    for (int task = 0; task < TASKS; task++) {
        write_task(task);
        judge_loss(task, PLAIN_RMS, LAB_BELOW), judge_loss(task, PLAIN_LAYER, LAB_BELOW);
        judge_loss(task, DETACH, LAB_ABOVE);
    }
    judge_accuracy(PLAIN_RMS), judge_accuracy(PLAIN_LAYER);
    return lab_end();
}
