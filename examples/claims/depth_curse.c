/* What each block of a transformer of 24 blocks contributes: the rise of the loss when it is left
 * out, for pre-norm, LayerNorm scaling, Peri-LN and Mix-LN. */
#include "lab.h"
#include <math.h>
#include <string.h>

enum { WIDTH, LAYERS, STEPS };
enum { CONTEXT = 16, BATCH = 8, HELD_OUT = 64 };
static lab_size sizes[] = {[WIDTH] = {"width", "features", .normal = 16},
                           [LAYERS] = {"layers", "blocks", .normal = 24, .quick = 6, .multiple = 3},
                           [STEPS] = {"steps", "of Adam", .normal = 600, .quick = 20},
                           {0}};

static const lab_experiment experiment = {
    .id = "depth_curse",
    .source = "Sun et al. 2025; Li et al. 2024; Kim et al. 2025",
    .claim = "in a deep pre-norm transformer the last blocks contribute little; LayerNorm scaling, "
             "Peri-LN and Mix-LN make them contribute more, and learn more",
    .method =
        "Transformers of 24 blocks, 16 features and 2 heads learn the characters of Newton's\n"
        "Opticks in 600 steps of Adam with 60 steps of warm-up, in batches of 8, all kinds at\n"
        "the rate 0.002. Then each block is left out in turn, so that its input is its output.\n"
        "Its contribution is the rise of the loss of text that was held out.\n",
    .rule = "the last third of pre-norm's blocks has less than a third of all contributions; the "
            "contribution of a block there is larger than pre-norm's with each of the others, and "
            "their loss is lower",
    .seeds = 9,
    .quick_seeds = 1,
    .sizes = sizes};

enum { PRE, KINDS = 4 };
static const struct {
    const char *name;
    ng_norm_placement placement;
    double post_share;
} kinds[KINDS] = {[PRE] = {"pre-norm", NG_NORM_PRE, 0},
                  {"LayerNorm scaling", NG_NORM_SCALED, 0},
                  {"Peri-LN", NG_NORM_PERI, 0},
                  {"Mix-LN", NG_NORM_MIX, 0.25}};

/* By seed: the loss, the mean contribution of a block of the last third, and its share. */
static double *losses[KINDS], *last[KINDS], *shares[KINDS];

static ng_module *child(const ng_module *net, const char *name)
{
    for (int i = 0; ng_module_child(net, i); i++)
        if (strcmp(ng_module_child_name(net, i), name) == 0) return ng_module_child(net, i);
    return NULL;
}

/* The loss with all blocks but one, or with all of them if `left_out` is -1. */
static double loss_without(const ng_module *net, ng_tape *tape, ng_dataset *text, int left_out)
{
    ng_batch batch;
    const bool was = ng_tape_set_recording(tape, false);
    ng_dataset_batch(text, tape, 0, HELD_OUT, &batch);
    ng_tensor *x = ng_forward(child(net, "embedding"), tape, batch.x);
    x = ng_forward(child(net, "positions"), tape, x);
    for (int i = 0; i < lab_whole(LAYERS); i++)
        if (i != left_out) x = ng_forward(ng_module_child(child(net, "blocks"), i), tape, x);
    x = ng_forward(child(net, "head"), tape, ng_forward(child(net, "norm"), tape, x));
    const double loss = ng_item(ng_cross_entropy(tape, x, batch.y));
    ng_tape_set_recording(tape, was);
    ng_tape_reset(tape);
    return loss;
}

/* ---- Training ---- */

static void learn(ng_module *net, ng_tape *tape, ng_dataset *text, uint64_t seed)
{
    const int steps = lab_whole(STEPS), batches = (int)(ng_dataset_count(text) / BATCH);
    ng_optimizer *adam = ng_adam_new(
        net, .lr = 2e-3, .beta2 = 0.98,
        .schedule = {NG_SCHEDULE_LINEAR, .warmup = steps / 10, .steps = steps, .floor = 0.1});
    for (int step = 0; step < steps && lab_goes_on(); step++) {
        ng_batch batch;
        if (step % batches == 0) ng_dataset_shuffle(text, seed + (uint64_t)step);
        ng_dataset_batch(text, tape, step % batches, BATCH, &batch);
        if (ng_backward(tape, ng_cross_entropy(tape, ng_forward(net, tape, batch.x), batch.y)))
            break;
        ng_clip_grad_norm(net, 1);
        if (ng_optimizer_step(adam)) break;
        ng_tape_reset(tape);
    }
    ng_optimizer_free(adam);
}

static void measure(int kind, int seed, lab_curves *curves)
{
    const int layers = lab_whole(LAYERS);
    ng_dataset *text, *rest;
    const int vocabulary = lab_text(lab_seed(seed), CONTEXT, 0, &text, &rest);
    ng_tape *tape = ng_tape_new();
    const ng_norm_placement placement = kinds[kind].placement;
    ng_module *net = ng_transformer_new(vocabulary, .dim = lab_whole(WIDTH), .heads = 2,
                                        .layers = layers, .length = CONTEXT, .placement = placement,
                                        .post_share = kinds[kind].post_share);
    ng_module_init(net, lab_seed(seed));
    learn(net, tape, text, lab_seed(seed));

    const double loss = loss_without(net, tape, rest, -1);
    double all = 0, here = 0;
    for (int i = 0; i < layers && lab_goes_on(); i++) {
        const double rise = loss_without(net, tape, rest, i) - loss;
        lab_log(curves, seed, "rise", i + 1, rise);
        all += rise;
        if (i >= layers - layers / 3) here += rise;
    }
    losses[kind][seed] = loss;
    last[kind][seed] = here / (layers / 3);
    shares[kind][seed] = here / all;
    ng_tape_free(tape), ng_module_free(net), ng_dataset_free(text), ng_dataset_free(rest);
    lab_goes_on();
}

int main(int argc, char **argv)
{
    lab_begin(argc, argv, &experiment);
    lab_data("Newton's Opticks; %d blocks of %d features, context %d, batches of %d, %d steps of "
             "Adam",
             lab_whole(LAYERS), lab_whole(WIDTH), CONTEXT, BATCH, lab_whole(STEPS));
    lab_block("kinds", "kind loss last share");
    for (int kind = 0; kind < KINDS; kind++) {
        lab_curves *curves = lab_curves_new("block", "%s", kinds[kind].name);
        losses[kind] = lab_numbers(lab_seeds());
        last[kind] = lab_numbers(lab_seeds());
        shares[kind] = lab_numbers(lab_seeds());
        for (int seed = 0; seed < lab_seeds(); seed++) {
            lab_progress(kind * lab_seeds() + seed, KINDS * lab_seeds(), "%s, seed %d",
                         kinds[kind].name, seed + 1);
            measure(kind, seed, curves);
        }
        lab_row(kind, lab_median(losses[kind]), lab_median(last[kind]), lab_median(shares[kind]));
    }
    lab_judge((lab_part){NULL, shares[PRE], .side = LAB_BELOW, .threshold = 1.0 / 3},
              "share of the last third of the blocks in all contributions, pre-norm");
    for (int kind = PRE + 1; kind < KINDS; kind++)
        lab_judge((lab_part){NULL, lab_less(last[kind], last[PRE]), .side = LAB_ABOVE},
                  "contribution of a block of the last third, %s less pre-norm, nats",
                  kinds[kind].name);
    for (int kind = PRE + 1; kind < KINDS; kind++)
        lab_judge((lab_part){NULL, lab_less(losses[kind], losses[PRE]), .side = LAB_BELOW},
                  "validation loss, %s less pre-norm, nats", kinds[kind].name);
    return lab_end();
}
