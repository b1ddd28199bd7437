/* The normalized transformer (nGPT; Loshchilov et al. 2024, arXiv 2410.01131) and a transformer
 * with RMSNorm learn the same text. In nGPT every hidden state and every row of a weight, along the
 * features, has length 1; a block turns the state towards its output. build/examples/ngpt --help
 *
 *     h = unit(h + alpha (unit(attention(h)) - h)), then the same with the feed-forward
 *
 * With seed 0 the validation losses are 2.06 (nGPT) and 2.36 after 100 steps, and 1.20 and 1.25
 * after 1,000. The paper reports 4 to 20 times fewer steps for networks that are a thousand times
 * larger. */
#include "harness.h"

enum { DIM = 64, HEADS = 4, LAYERS = 4, HIDDEN = 170, CONTEXT = 64, BATCH = 16, REPORTS = 10 };

/* ---- The block: its norms have no parameters, its branches have weights of unit rows ---- */

typedef struct {
    ng_module base;
    ng_module *attention, *up, *down;
    ng_tensor *scale;                                /* of the hidden features, s_u and s_v */
    ng_tensor *attention_alpha, *feed_forward_alpha; /* of each feature */
} block;

static ng_tensor *unit(ng_tape *tape, ng_tensor *x)
{
    return ng_mul_scalar(tape, ng_rms_norm(tape, x, NG_NONE, .eps = 1e-8), 1 / sqrt(DIM));
}

static ng_tensor *turn(ng_tape *tape, ng_tensor *h, ng_tensor *alpha, ng_tensor *y)
{
    ng_tensor *step = ng_mul(tape, ng_sub(tape, unit(tape, y), h), ng_parameter_value(tape, alpha));
    return unit(tape, ng_add(tape, h, step));
}

static ng_tensor *feed_forward(const block *self, ng_tape *tape, ng_tensor *h)
{
    ng_tensor *inner = ng_forward(self->up, tape, ng_mul_scalar(tape, h, sqrt(DIM)));
    inner = ng_mul(tape, inner, ng_parameter_value(tape, self->scale));
    return ng_forward(self->down, tape, ng_swiglu(tape, inner));
}

static ng_tensor *block_forward(ng_module *module, ng_tape *tape, ng_tensor *h)
{
    const block *self = (const block *)module;
    h = turn(tape, h, self->attention_alpha, ng_forward(self->attention, tape, h));
    return turn(tape, h, self->feed_forward_alpha, feed_forward(self, tape, h));
}

static const ng_module_class block_class = {
    .name = "NormalizedBlock", .size = sizeof(block), .forward = block_forward};

/* q and k of each head have length 1, times a learned number for all, .qk_temperature. */
static ng_module *block_new(void)
{
    block *self = (block *)ng_module_new(&block_class);
    if (!self) return NULL;
    ng_module *base = &self->base;
    self->attention = ng_module_add_child(
        base, "attention",
        ng_multi_head_attention_new(DIM, HEADS, .causal = true, .rotary = true, .no_bias = true,
                                    .qk_temperature = sqrt(DIM / HEADS)));
    self->up = ng_module_add_child(base, "up", ng_linear_new(DIM, 2 * HIDDEN, .no_bias = true));
    self->down = ng_module_add_child(base, "down", ng_linear_new(HIDDEN, DIM, .no_bias = true));
    self->scale = ng_module_add_parameter(base, "scale", NG_SHAPE(2 * HIDDEN), .value = 1);
    self->attention_alpha =
        ng_module_add_parameter(base, "attention_alpha", NG_SHAPE(DIM), .value = 0.05);
    self->feed_forward_alpha =
        ng_module_add_parameter(base, "feed_forward_alpha", NG_SHAPE(DIM), .value = 0.05);
    return ng_module_built(base);
}

/* ---- The projection ---- */

/* Gives the vectors of a matrix along the features length 1: its rows, or its columns if it leads
 * back to the features. */
static ng_status to_unit_length(void *context, const char *name, ng_tensor *weight)
{
    (void)context;
    if (ng_rank(weight) < 2) return NG_OK;
    const bool columns = strstr(name, "out_weight") || strstr(name, "down.weight");
    const int64_t rows = ng_dim(weight, 0), width = ng_dim(weight, 1);
    const int64_t vectors = columns ? width : rows, step = columns ? width : 1;
    for (int64_t i = 0; i < vectors; i++) {
        float *vector = ng_data_f32(weight) + (columns ? i : i * width);
        double square = 0;
        for (int64_t k = 0; k < DIM; k++) square += pow((double)vector[k * step], 2);
        for (int64_t k = 0; k < DIM; k++) vector[k * step] /= (float)sqrt(square);
    }
    return NG_OK;
}

/* ---- The network: embedding, blocks, and a head whose rows have learned lengths, s_z ---- */

static ng_module *ngpt_new(int vocabulary, uint64_t seed)
{
    ng_module *net = ng_sequential_new(ng_embedding_new(vocabulary, DIM));
    for (int i = 0; i < LAYERS; i++) ng_sequential_add(net, block_new());
    ng_module *head = ng_weight_norm_new(ng_linear_new(DIM, vocabulary, .no_bias = true));
    ng_sequential_add(net, head);
    ng_module_init(net, seed);
    ng_fill(ng_module_find(head, "g"), 1);
    ng_named_tensor p;
    for (int i = 0; ng_module_parameter(net, i, &p); i++) {
        to_unit_length(NULL, p.name, p.tensor);
        ng_touch(p.tensor);
    }
    return net;
}

/* Adam without decay. The learned scales have the rates that the paper gives them. */
static ng_optimizer *ngpt_optimizer(ng_module *net, double lr, int steps)
{
    ng_optimizer *adam = ng_adam_new(
        net, .lr = lr, .beta2 = 0.99,
        .schedule = NG_SCHEDULE(.kind = NG_SCHEDULE_COSINE, .steps = steps, .floor = 0.1));
    ng_optimizer_scale_lr(adam, "*_alpha", 0.05 * sqrt(DIM));
    ng_optimizer_scale_lr(adam, "*.g", sqrt(DIM));
    ng_optimizer_scale_lr(adam, "*.q_norm.g", 2 * sqrt(DIM / HEADS) * sqrt(DIM));
    ng_optimizer_set_projection(adam, to_unit_length, NULL);
    return adam;
}

/* ---- Training and comparison ---- */

/* Trains, prints the validation losses and logs them as a block of the history. */
static void train(ng_dataset *text, ng_dataset *rest, const char *name, ng_module *net,
                  ng_optimizer *optimizer, int steps, ng_history *history)
{
    ng_tape *tape = ng_tape_new();
    const int batches = (int)(ng_dataset_count(text) / BATCH);
    const int every = steps < REPORTS ? 1 : steps / REPORTS;
    printf("%s, %lld parameters\n", name, (long long)ng_parameter_count(net));
    ng_history_block(history, name);
    for (int step = 1; step <= steps && !ng_failed(); step++) {
        ng_batch batch;
        if ((step - 1) % batches == 0) ng_dataset_shuffle(text, (uint64_t)step);
        ng_dataset_batch(text, tape, (step - 1) % batches, BATCH, &batch);
        if (ng_backward(tape, ng_cross_entropy(tape, ng_forward(net, tape, batch.x), batch.y)))
            break;
        ng_clip_grad_norm(net, 1);
        if (ng_optimizer_step(optimizer)) break;
        ng_tape_reset(tape);
        if (step % every != 0) continue;
        const double loss = ng_evaluate(net, rest).loss;
        ng_history_log(history, "val_loss", step, loss);
        printf("    step %5d  validation loss %.4f\n", step, loss);
        fflush(stdout);
    }
    ng_tape_free(tape), ng_optimizer_free(optimizer), ng_module_free(net);
}

static const char usage[] =
    "usage: ngpt [options]\n"
    "\n"
    "Trains a transformer with RMSNorm and the normalized transformer (nGPT) on the\n"
    "characters of Newton's Opticks, and prints their losses in nats per character.\n";

enum { STEPS, SEED, LR, NORMALIZED_LR, OUT };
static option options[] = {
    [STEPS] = {"steps", "training steps", .normal = 1000},
    [SEED] = {"seed", "seed of weights and batches", .zero = true},
    [LR] = {"lr", "rate of the transformer", .normal = 0.004, .fraction = true},
    [NORMALIZED_LR] = {"normalized-lr", "rate of nGPT", .normal = 0.02, .fraction = true},
    [OUT] = {"out", "prefix of the .dat and .svg (build/ngpt)", .text = ""},
    {0}};

int main(int argc, char **argv)
{
    begin_program(argc, argv, usage, options, NULL);
    const line prefix = choose_prefix(get_text(OUT), "ngpt");
    const int steps = get_whole(STEPS);
    const uint64_t seed = (uint64_t)get_number(SEED);
    int vocabulary;
    ng_dataset *all =
        read_text(find_file("examples/data", "opticks.txt").text, CONTEXT, &vocabulary);
    ng_dataset *text = NULL, *rest = NULL;
    ng_dataset_split_new(all, ng_dataset_count(all) * 9 / 10, seed, &text, &rest);
    still_works();
    ng_history *history = ng_history_new("ngpt");
    ng_module *net = ng_transformer_new(vocabulary, .dim = DIM, .heads = HEADS, .layers = LAYERS,
                                        .length = CONTEXT, .hidden = HIDDEN, .norm = ng_norm_rms,
                                        .positions = NG_POSITIONS_ROTARY,
                                        .activation = NG_FEED_FORWARD_SWIGLU, .no_bias = true);
    ng_module_init(net, seed);
    const ng_schedule decay = {.kind = NG_SCHEDULE_COSINE,
                               .warmup = steps / 10,
                               .steps = steps - steps / 10,
                               .floor = 0.1};
    train(text, rest, "transformer", net,
          ng_adamw_new(net, 0.1, .lr = get_number(LR), .beta2 = 0.99, .schedule = decay), steps,
          history);
    net = ngpt_new(vocabulary, seed);
    train(text, rest, "nGPT", net, ngpt_optimizer(net, get_number(NORMALIZED_LR), steps), steps,
          history);
    save_history(history, prefix.text, (ng_plot_options){.y_label = "validation loss (nats)"});
    ng_history_free(history);
    ng_dataset_free(all), ng_dataset_free(text), ng_dataset_free(rest);
    return end_program(EXIT_SUCCESS);
}
