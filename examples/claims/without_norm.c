/* Can a transformer do without norms? DynamicTanh, which takes no statistics, in place of LayerNorm
 * and RMSNorm in a small transformer that learns characters, at four sizes of its text. */
#include "lab.h"
#include <math.h>

enum { WIDTH, LAYERS, STEPS };
static lab_size sizes[] = {
    [WIDTH] = {"width", "features, in heads of 16", .normal = 32, .quick = 16},
    [LAYERS] = {"layers", "blocks", .normal = 3, .quick = 1},
    [STEPS] = {"steps", "of training, a multiple of 10", .normal = 400, .quick = 10},
    {0}};

static const lab_experiment experiment = {
    .id = "without_norm",
    .source = "Zhu et al. 2025",
    .claim = "Transformers with DynamicTanh in place of norms match or exceed those with norms",
    .method =
        "A pre-norm transformer of 3 blocks learns from 2,000 characters of a text to all of it,\n"
        "in windows of 32, by the same number of steps of Adam, with warm-up and with gradients\n"
        "clipped to norm 1, at three learning rates. Every tenth of the steps it is validated on\n"
        "text held out. Of each kind and size that rate counts which reaches the lowest\n"
        "validation loss. Ids and positions are drawn from N(0, 1) and DynamicTanh's alpha is 1;\n"
        "as a drop-in, with alpha 1/2 and ids from N(0, 0.02^2), it is tried on the whole text\n"
        "only. The text: the characters of include/normgrad/*.h.\n",
    .rule = "at each size: DynamicTanh's lowest validation loss is at most 0.05 nats above the "
            "lower of LayerNorm's and RMSNorm's (medians); holds if at all, fails if at none",
    .seeds = 5,
    .quick_seeds = 1,
    .sizes = sizes};

static ng_module *tanh_of_one(int64_t dim) { return ng_dynamic_tanh_new(dim, .alpha = 1); }

enum { LAYER, RMS, TANH, NONE, DROP_IN, KINDS };
static const struct {
    const char *name;
    ng_norm_maker *make;
    double deviation; /* of ids and positions */
} kinds[] = {[LAYER] = {"LayerNorm", ng_norm_layer, 1},
             [RMS] = {"RMSNorm", ng_norm_rms, 1},
             [TANH] = {"DynamicTanh", tanh_of_one, 1},
             [NONE] = {"no norm", ng_norm_none, 1},
             [DROP_IN] = {"DynamicTanh as a drop-in", ng_norm_dynamic_tanh, 0.02}};

enum { CONTEXT = 32, BATCH = 8, HELD_OUT = 128, LOOKS = 10, RATES = 3, TEXTS = 4 };
static const double rates[RATES] = {4e-3, 8e-3, 16e-3};
static const int64_t texts[TEXTS] = {64, 256, 1024, 0}; /* windows to train with; 0: all */

static ng_module *make_network(int kind, int vocabulary, uint64_t seed)
{
    ng_module *net = ng_transformer_new(vocabulary, .dim = lab_whole(WIDTH),
                                        .heads = lab_whole(WIDTH) / 16, .layers = lab_whole(LAYERS),
                                        .length = CONTEXT, .norm = kinds[kind].make);
    ng_module_init(net, seed);
    ng_rng rng = ng_rng_seeded(seed);
    ng_fill_normal(ng_module_find(net, "embedding.weight"), 0, kinds[kind].deviation, &rng);
    ng_fill_normal(ng_module_find(net, "positions.weight"), 0, kinds[kind].deviation, &rng);
    lab_goes_on();
    return net;
}

/* ---- Training ----------------------------------------------------------------------------- */

typedef struct {
    double lowest, last; /* validation loss; Inf where the network flew away */
    int64_t characters;  /* trained on */
} result;

static result train(int kind, int64_t windows, double rate, uint64_t seed)
{
    const int steps = lab_whole(STEPS), warmup = steps / 5;
    ng_dataset *text, *rest, *held_out, *unused;
    ng_batch batch;
    const int vocabulary = lab_text(seed, CONTEXT, windows, &text, &rest);
    ng_dataset_split(rest, HELD_OUT, seed, &held_out, &unused);
    ng_module *net = make_network(kind, vocabulary, seed);
    ng_tape *tape = ng_tape_new();
    ng_optimizer *adam = ng_adam_new(
        net, .lr = rate, .beta2 = 0.98,
        .schedule = {NG_SCHEDULE_LINEAR, .warmup = warmup, .steps = steps - warmup, .floor = 0.1});
    result r = {(double)INFINITY, (double)INFINITY, ng_dataset_count(text) * CONTEXT};
    const int batches = (int)(ng_dataset_count(text) / BATCH);
    for (int step = 0; step < steps && lab_goes_on(); step++) {
        if (step % batches == 0) ng_dataset_shuffle(text, (uint64_t)step);
        ng_dataset_batch(text, tape, step % batches, BATCH, &batch);
        ng_tensor *loss = ng_cross_entropy(tape, ng_forward(net, tape, batch.x), batch.y);
        if (ng_backward(tape, loss)) break;
        if (!isfinite(ng_grad_norm(net))) {
            r.last = (double)INFINITY;
            break;
        }
        ng_clip_grad_norm(net, 1);
        if (ng_optimizer_step(adam)) break;
        ng_tape_reset(tape);
        if ((step + 1) % (steps / LOOKS) != 0) continue;
        r.last = lab_evaluate(net, tape, held_out).loss;
        if (isnan(r.last)) r.last = (double)INFINITY;
        r.lowest = fmin(r.lowest, r.last);
        if (isinf(r.last)) break;
    }
    ng_tape_free(tape), ng_optimizer_free(adam), ng_module_free(net);
    ng_dataset_free(text), ng_dataset_free(rest);
    ng_dataset_free(held_out), ng_dataset_free(unused);
    return r;
}

/* One kind and size over the seeds, at the rate whose median lowest loss is the lowest. */
typedef struct {
    lab_spread lowest, last;
    double rate;
    int64_t characters;
} outcome;

static outcome best_outcome(int kind, int text)
{
    outcome best = {.lowest = {.median = (double)INFINITY}, .last = {.median = (double)INFINITY}};
    double *lowest = lab_numbers(lab_seeds()), *last = lab_numbers(lab_seeds());
    for (int i = 0; i < RATES; i++) {
        int64_t characters = 0;
        for (int s = 0; s < lab_seeds(); s++) {
            lab_progress(((kind * TEXTS + text) * RATES + i) * lab_seeds() + s,
                         KINDS * TEXTS * RATES * lab_seeds(), "%s, %lld windows, lr %g",
                         kinds[kind].name, (long long)texts[text], rates[i]);
            const result r = train(kind, texts[text], rates[i], lab_seed(s));
            lowest[s] = r.lowest, last[s] = r.last, characters = r.characters;
        }
        const lab_spread l = lab_spread_of(lowest, lab_seeds());
        if (i == 0 || l.median < best.lowest.median)
            best = (outcome){l, lab_spread_of(last, lab_seeds()), rates[i], characters};
    }
    return best;
}

static void write_outcome(const outcome *o)
{
    lab_row((double)o->characters, o->lowest.median, o->lowest.low, o->lowest.high, o->last.median,
            o->last.low, o->last.high, o->rate, o->lowest.count);
}

int main(int argc, char **argv)
{
    static const char columns[] =
        "characters lowest lowest_low lowest_high last last_low last_high "
        "rate seeds";
    lab_begin(argc, argv, &experiment);
    lab_data("%d blocks, width %d, context %d, batch %d, %d steps of Adam", lab_whole(LAYERS),
             lab_whole(WIDTH), CONTEXT, BATCH, lab_whole(STEPS));
    outcome o[DROP_IN][TEXTS];
    for (int kind = 0; kind < DROP_IN; kind++) {
        lab_block(kinds[kind].name, columns);
        for (int text = 0; text < TEXTS; text++) {
            o[kind][text] = best_outcome(kind, text);
            write_outcome(&o[kind][text]);
        }
    }
    const outcome drop_in = best_outcome(DROP_IN, TEXTS - 1);
    lab_block(kinds[DROP_IN].name, columns);
    write_outcome(&drop_in);

    bool held[TEXTS];
    double above[TEXTS]; /* how far DynamicTanh is above the better norm */
    for (int text = 0; text < TEXTS; text++) {
        above[text] = o[TANH][text].lowest.median -
                      fmin(o[LAYER][text].lowest.median, o[RMS][text].lowest.median);
        held[text] = above[text] <= 0.05;
    }
    const int all = TEXTS - 1;
    return lab_end(
        lab_verdict_of(held, TEXTS),
        "DynamicTanh's lowest validation loss is above the better norm's by %.3f, %.3f, %.3f and "
        "%.3f nats for %lld, %lld, %lld and %lld characters; on all: LayerNorm %.2f, RMSNorm %.2f, "
        "DynamicTanh %.2f, as a drop-in %.2f, no norm %.2f; at the end on %lld: LayerNorm %.2f, "
        "DynamicTanh %.2f; medians of %d seeds",
        above[0], above[1], above[2], above[3], (long long)o[TANH][0].characters,
        (long long)o[TANH][1].characters, (long long)o[TANH][2].characters,
        (long long)o[TANH][3].characters, o[LAYER][all].lowest.median, o[RMS][all].lowest.median,
        o[TANH][all].lowest.median, drop_in.lowest.median, o[NONE][all].lowest.median,
        (long long)o[TANH][0].characters, o[LAYER][0].last.median, o[TANH][0].last.median,
        lab_seeds());
}
