/* Transformers on the characters of a text, one for each requested norm and placement. Prints and
 * draws their losses; a training can be stopped and resumed, watched while it runs, and looked into
 * layer by layer: build/examples/char_transformer --help. 5_transformer.c shows one that writes. */
#include "harness.h"
#include <signal.h>

static const char norms[] = "layer_norm,rms_norm,scale_norm,dynamic_tanh,derf,batch_norm,none";
/* In the order of ng_norm_placement. */
static const char placements[] = "pre,post,peri,deepnorm,hybrid,residual,scaled,mix";

enum { NORM, PLACEMENT, LAYERS, WIDTH, HEADS, CONTEXT, BATCH, EPOCHS, LR, DROPOUT, SEED, TEXT };
enum { OUT = TEXT + 1, CHECKPOINT, RESUME, LIVE, WATCH };
static option options[] = {
    [NORM] = {"norm", "some", .text = "layer_norm", .choices = norms, .many = true},
    [PLACEMENT] = {"placement", "some", .text = "pre", .choices = placements, .many = true},
    [LAYERS] = {"layers", "blocks", .normal = 4, .most = 1000},
    [WIDTH] = {"width", "features", .normal = 128, .most = 100000},
    [HEADS] = {"heads", "attention heads, a divisor of width", .normal = 4, .most = 100000},
    [CONTEXT] = {"context", "characters of context", .normal = 64, .most = 100000},
    [BATCH] = {"batch", "windows of text per step", .normal = 8, .most = 100000},
    [EPOCHS] = {"epochs", "passes over the text", .normal = 10, .most = 100000},
    [LR] = {"lr", "highest learning rate", .normal = 1e-3, .fraction = true},
    [DROPOUT] = {"dropout", "dropout probability of each branch", .fraction = true, .zero = true,
                 .most = 0.99},
    [SEED] = {"seed", "seed of weights and batches", .zero = true},
    [TEXT] = {"text", "file to learn (Newton's Opticks)", .text = ""},
    [OUT] = {"out", "prefix of the .dat and .svg (build/char_transformer)", .text = ""},
    [CHECKPOINT] = {"checkpoint", "save each training every few seconds and on Ctrl-C, in X.NAME",
                    .text = ""},
    [RESUME] = {"resume", "resume the trainings saved by --checkpoint", .is_switch = true},
    [LIVE] = {"live", "redraw the curves: in a window, or in the terminal", .is_switch = true},
    [WATCH] = {"watch", "draw the layers of each network in PREFIX-NAME-layers.svg",
               .is_switch = true},
    {0}};

static bool is_on(int row) { return get_number(row) > 0; }

/* ---- Training ---- */

enum { REPORT = 50 };

typedef struct {
    const char *name; /* "pre, layer_norm" */
    ng_dataset *text, *rest;
    int vocabulary, steps;
    ng_module *net;
    ng_optimizer *optimizer;
    ng_tape *tape;
    ng_history *history, *layers; /* layers: of --watch, or NULL */
    ng_training *training;

    /* Saved with the training. */
    double sum, loss, validation; /* sum: of the losses since the last report */
    int64_t counted;
} run;

static ng_training *volatile running; /* what Ctrl-C stops */

static void stop(int number)
{
    (void)number;
    if (running) ng_training_stop(running);
}

/* Takes a step. Returns the loss, or the norm of its gradient if that is not finite. */
static double train_step(run *r, const ng_batch *batch, int step)
{
    ng_tensor *loss = ng_cross_entropy(r->tape, ng_forward(r->net, r->tape, batch->x), batch->y);
    if (ng_backward(r->tape, loss)) return (double)NAN;
    const double norm = ng_grad_norm(r->net);
    if (!isfinite(norm)) return norm;
    ng_clip_grad_norm(r->net, 1);
    if (ng_optimizer_step(r->optimizer)) return (double)NAN;
    const double value = ng_item(loss);
    if (r->layers && step % 10 == 0) ng_watch(r->net, r->layers, step);
    ng_tape_reset(r->tape);
    return value;
}

static void report(run *r, int step)
{
    r->loss = r->sum / (double)r->counted, r->validation = ng_evaluate(r->net, r->rest).loss;
    r->sum = 0, r->counted = 0;
    ng_history_log(r->history, "loss", step, r->loss);
    ng_history_log(r->history, "val_loss", step, r->validation);
    const bool display = getenv("DISPLAY") || getenv("WAYLAND_DISPLAY");
    if (is_on(LIVE) && ng_plot(r->history, display ? NULL : "-", .panels = true, .live = true)) {
        complain("%s; continuing without --live", ng_error_text());
        ng_clear_error();
        options[LIVE].value = 0;
    } else if (!is_on(LIVE) && (step % (10 * REPORT) == 0 || step == r->steps)) {
        printf("%-20s step %d/%d  loss %.3f  validation %.3f\n", r->name, step, r->steps, r->loss,
               r->validation);
        fflush(stdout);
    }
}

static void train(run *r)
{
    ng_batch batch;
    if (is_on(RESUME) && ng_training_resume(r->training, .or_begin = true)) return;
    running = r->training;
    while (ng_training_epoch(r->training, get_whole(EPOCHS)))
        while (ng_training_batch(r->training, get_whole(BATCH), &batch, .drop_last = true)) {
            const int step = (int)ng_training_at(r->training).step + 1;
            const double loss = train_step(r, &batch, step);
            if (!is_finite(loss, r->name, step)) break;
            r->sum += loss, r->counted++;
            if (step % REPORT == 0 || step == r->steps) report(r, step);
        }
    running = NULL;
}

/* ---- One network after the other ---- */

static void make_training(run *r, const char *norm, const char *placement, const char *path)
{
    const uint64_t seed = (uint64_t)get_number(SEED);
    const int warmup = r->steps < 1000 ? r->steps / 10 : 100;
    r->net = ng_transformer_new(r->vocabulary, .dim = get_whole(WIDTH), .heads = get_whole(HEADS),
                                .layers = get_whole(LAYERS), .length = get_whole(CONTEXT),
                                .norm = ng_norm_named(norm), .dropout = get_number(DROPOUT),
                                .placement = (ng_norm_placement)index_of(placements, placement));
    ng_module_init(r->net, seed);
    r->optimizer =
        ng_adamw_new(r->net, 0.1, .lr = get_number(LR), .beta2 = 0.99,
                     .schedule = NG_SCHEDULE(.kind = NG_SCHEDULE_COSINE, .warmup = warmup,
                                             .steps = r->steps - warmup, .floor = 0.1));
    r->tape = ng_tape_new();
    ng_tape_seed(r->tape, seed);
    r->training = ng_training_new(r->optimizer, .tape = r->tape, .data = r->text, .seed = seed,
                                  .history = r->history, .path = path, .minutes = path ? 0.1 : 0);
    ng_training_keep_number(r->training, "sum", &r->sum);
    ng_training_keep_number(r->training, "loss", &r->loss);
    ng_training_keep_number(r->training, "validation", &r->validation);
    ng_training_keep_count(r->training, "counted", &r->counted);
}

/* Trains a network and logs its losses as a block. Returns whether it has come to the end. */
static bool run_network(run r, const char *norm, const char *placement, const char *prefix)
{
    const line name = line_of("%s, %s", placement, norm), key = line_of("%s-%s", placement, norm);
    const line file = line_of("%s.%s", get_text(CHECKPOINT), key.text);
    r.name = name.text;
    ng_history_block(r.history, name.text);
    make_training(&r, norm, placement, *get_text(CHECKPOINT) ? file.text : NULL);
    if (is_on(WATCH)) r.layers = ng_history_new(name.text);
    if (r.layers) ng_watch(r.net, r.layers, -1);
    if (!ng_failed()) train(&r);
    const bool ended = !ng_failed() && !ng_training_stopped(r.training);
    const line drawing = line_of("%s-%s-layers.svg", prefix, key.text);
    if (r.layers && !ng_failed() && ng_plot_watch(r.layers, drawing.text) == NG_OK)
        printf("Layers: %s\n", drawing.text);
    if (ended)
        printf("%-20s %d steps: loss %.4f, validation %.4f nats per character\n", r.name, r.steps,
               r.loss, r.validation);
    ng_training_free(r.training), ng_tape_free(r.tape), ng_optimizer_free(r.optimizer);
    ng_module_free(r.net), ng_history_free(r.layers);
    return ended;
}

int main(int argc, char **argv)
{
    static const char usage[] =
        "usage: char_transformer [options]\n"
        "\n"
        "Trains a transformer on the characters of a text. With several norms or placements, with\n"
        "commas between them, it trains one network for each pair of them and compares their\n"
        "losses. Ctrl-C ends it and saves the losses so far.\n";
    begin_program(argc, argv, usage, options, NULL);
    const line prefix = choose_prefix(get_text(OUT), "char_transformer");
    if (is_on(RESUME) && !*get_text(CHECKPOINT))
        give_up(EXIT_USAGE, "--resume: expected --checkpoint as well");
    signal(SIGINT, stop), signal(SIGTERM, stop);
    const line path =
        *get_text(TEXT) ? line_of("%s", get_text(TEXT)) : find_file("examples/data", "opticks.txt");
    run r = {0};
    ng_dataset *all = read_text(path.text, get_whole(CONTEXT), &r.vocabulary);
    ng_dataset_split_new(all, ng_dataset_count(all) * 9 / 10, 0, &r.text, &r.rest);
    still_works();
    r.steps = (int)(ng_dataset_count(r.text) / get_whole(BATCH)) * get_whole(EPOCHS);
    r.history = ng_history_new(
        line_of("%lld windows of %d characters; %d layers, width %d, %d heads, batch %d; adamw, lr "
                "%g; seed %d; float32",
                (long long)ng_dataset_count(all), get_whole(CONTEXT), get_whole(LAYERS),
                get_whole(WIDTH), get_whole(HEADS), get_whole(BATCH), get_number(LR),
                get_whole(SEED))
            .text);
    bool goes_on = true;
    char norm[ITEM], placement[ITEM];
    for (const char *at = get_text(PLACEMENT); next_item(&at, ',', placement);)
        for (const char *from = get_text(NORM); goes_on && next_item(&from, ',', norm);)
            goes_on = run_network(r, norm, placement, prefix.text);
    save_history(r.history, prefix.text, (ng_plot_options){.panels = true, .x_label = "step"});
    ng_history_free(r.history);
    ng_dataset_free(all), ng_dataset_free(r.text), ng_dataset_free(r.rest);
    return end_program(goes_on || ng_failed() ? EXIT_SUCCESS : 130);
}
