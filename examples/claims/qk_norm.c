/* The size of attention's logits at high learning rates, with and without norms of queries and
 * keys. */
#include "lab.h"

enum { WIDTH, LAYERS, STEPS };
static option sizes[] = {[WIDTH] = {"width", "features", .normal = 32},
                         [LAYERS] = {"layers", "blocks", .normal = 2},
                         [STEPS] = {"steps", "of Adam", .normal = 300, .quick = 20},
                         {0}};

static const lab_experiment experiment = {
    .id = "qk_norm",
    .source = "Henry et al. 2020; Dehghani et al. 2023; Wortsman et al. 2024, figures 1 and 2",
    .claim = "at high learning rates the logits of attention grow until training fails; a norm of "
             "queries and keys limits them and allows higher rates",
    .method = "Pre-norm transformers of 2 blocks, 32 features and 2 heads learn the characters of "
              "Newton's Opticks in 300 steps of Adam with 30 steps of warm-up, at rates from 1e-3 "
              "to 0.128. Measured after training: the largest |q . k| / sqrt(d) of any head, query "
              "and key in a validation batch, and the validation loss. A rate trains if the loss "
              "is within 0.3 nats of the lowest that the seed reaches with any kind at any rate. "
              "The highest such rate is compared, seed by seed, with that without QK-norm.",
    .rule = "without a norm the largest logit at the rate 0.032 is over 4 times that at 0.001; "
            "with a norm it is at 0.032 below 1/4 of that without; and the highest rate that "
            "trains is above that without",
    .seeds = 9,
    .sizes = sizes};

enum { KINDS = 3, RATES = 8, LOW = 0, HIGH = 5, CONTEXT = 32, BATCH = 8, HEADS = 2 };
static const struct {
    const char *name;
    ng_norm_maker *norm;
} kinds[KINDS] = {{"no norm", NULL}, {"LayerNorm", ng_norm_layer}, {"RMSNorm", ng_norm_rms}};
static double rate_at(int i) { return 1e-3 * (1 << i); }

/* ---- The logits ---- */

static ng_module *child(ng_module *of, const char *name)
{
    for (int i = 0; of && ng_module_child(of, i); i++)
        if (strcmp(ng_module_child_name(of, i), name) == 0) return ng_module_child(of, i);
    return NULL;
}

/* Returns queries (part 0) or keys (1) of an attention of x, by heads: (N, heads, T, d). */
static ng_tensor *heads_of(ng_module *attention, ng_tape *tape, ng_tensor *x, int64_t part)
{
    const int64_t width = get_whole(WIDTH), n = ng_dim(x, 0);
    ng_tensor *qkv = ng_linear(tape, x, ng_module_find(attention, "in_weight"),
                               ng_module_find(attention, "in_bias"));
    ng_tensor *own = ng_slice(tape, qkv, -1, part * width, (part + 1) * width);
    own = ng_reshape(tape, own, NG_SHAPE(n, CONTEXT, HEADS, width / HEADS));
    ng_module *norm = child(attention, part == 0 ? "q_norm" : "k_norm");
    if (norm) own = ng_forward(norm, tape, own);
    return ng_permute(tape, own, NG_AXES(0, 2, 1, 3));
}

/* Returns the largest |logit| of all blocks for the ids of a batch. */
static double largest_logit(ng_module *net, ng_tape *tape, ng_tensor *ids)
{
    const bool was = ng_tape_set_recording(tape, false);
    const double scale = 1 / sqrt((double)get_whole(WIDTH) / (double)HEADS);
    ng_tensor *x =
        ng_forward(child(net, "positions"), tape, ng_forward(child(net, "embedding"), tape, ids));
    double largest = 0;
    for (int i = 0; i < get_whole(LAYERS); i++) {
        ng_module *block = ng_module_child(child(net, "blocks"), i);
        ng_module *attention = child(block, "attention");
        ng_tensor *h = ng_forward(child(block, "attention_norm"), tape, x);
        ng_tensor *q = heads_of(attention, tape, h, 0), *k = heads_of(attention, tape, h, 1);
        ng_tensor *logits = ng_tril(tape, ng_matmul(tape, q, k, .transpose_b = true), 0);
        largest = fmax(largest, scale * ng_item(ng_max(tape, ng_abs(tape, logits))));
        x = ng_forward(block, tape, x);
    }
    ng_tape_set_recording(tape, was);
    ng_tape_reset(tape);
    return largest;
}

/* ---- Training ---- */

typedef struct {
    double loss, logit;
} outcome;

static outcome train(int kind, double rate, uint64_t seed)
{
    lab_run r = {.tape = ng_tape_new()};
    ng_dataset *few, *others;
    ng_batch batch;
    const int vocabulary = lab_text(seed, CONTEXT, 0, &r.data, &r.rest), steps = get_whole(STEPS);
    r.net = ng_transformer_new(vocabulary, .dim = get_whole(WIDTH), .heads = HEADS,
                               .layers = get_whole(LAYERS), .length = CONTEXT,
                               .qk_norm = kinds[kind].norm);
    ng_module_init(r.net, seed);
    r.optimizer = ng_adam_new(r.net, .lr = rate, .beta2 = 0.98,
                              .schedule = NG_SCHEDULE(.warmup = steps / 10));
    for (int step = 0; step < steps; step++) lab_step(&r, BATCH, seed);
    ng_dataset_split_new(r.rest, 128, seed, &few, &others);
    outcome o = {ng_evaluate(r.net, few).loss, 0};
    ng_dataset_batch(few, r.tape, 0, 32, &batch);
    o.logit = largest_logit(r.net, r.tape, batch.x);
    ng_dataset_free(few), ng_dataset_free(others);
    lab_end_run(&r);
    return o;
}

/* ---- Main ---- */

static double *losses[KINDS][RATES], *logits[KINDS][RATES];

static void measure(int kind)
{
    curve_set *curves = new_curves("rate", "%s", kinds[kind].name);
    for (int i = 0; i < RATES; i++) {
        losses[kind][i] = lab_numbers(lab_seeds()), logits[kind][i] = lab_numbers(lab_seeds());
        for (int seed = 0; seed < lab_seeds(); seed++) {
            const outcome o = train(kind, rate_at(i), lab_seed(seed));
            losses[kind][i][seed] = isnan(o.loss) ? HUGE_VAL : o.loss;
            logits[kind][i][seed] = isnan(o.logit) ? HUGE_VAL : o.logit;
            log_curves(curves, seed, "logit loss", rate_at(i), logits[kind][i][seed],
                       losses[kind][i][seed]);
        }
    }
}

/* Returns the highest rate at which this seed's loss is near its lowest. */
static double highest_rate(int kind, int seed)
{
    double lowest = HUGE_VAL, highest = rate_at(0) / 2;
    for (int i = 0; i < KINDS * RATES; i++)
        lowest = fmin(lowest, losses[i / RATES][i % RATES][seed]);
    for (int i = 0; i < RATES; i++)
        if (losses[kind][i][seed] < lowest + 0.3) highest = rate_at(i);
    return highest;
}

static void judge(int kind)
{
    double *highest = lab_numbers(lab_seeds());
    if (kind == 0) {
        lab_judge(NULL, lab_quotients(logits[0][HIGH], logits[0][LOW]), lab_above(4),
                  "largest logit at rate %g over that at %g, no QK-norm", rate_at(HIGH),
                  rate_at(LOW));
        return;
    }
    lab_judge(kinds[kind].name, lab_quotients(logits[kind][HIGH], logits[0][HIGH]), lab_below(0.25),
              "largest logit at rate %g, as a share of that without QK-norm", rate_at(HIGH));
    for (int seed = 0; seed < lab_seeds(); seed++)
        highest[seed] = highest_rate(kind, seed) / highest_rate(0, seed);
    lab_judge(kinds[kind].name, highest, lab_above(1),
              "highest rate that trains, as a multiple of that without QK-norm");
}

int main(int argc, char **argv)
{
    lab_begin(argc, argv, &experiment);
    lab_data("Newton's Opticks; %d blocks of %d features, context %d, batches of %d, %d steps of "
             "Adam",
             get_whole(LAYERS), get_whole(WIDTH), CONTEXT, BATCH, get_whole(STEPS));
    for (int kind = 0; kind < KINDS; kind++) measure(kind);
    for (int kind = 0; kind < KINDS; kind++) judge(kind);
    return lab_end();
}
