/* A transformer that learns to write text, character by character.
 *
 * Trains one network for each requested norm and placement, prints and draws the losses, and prints
 * a sample of the last network's text: build/examples/char_transformer --help. 5_transformer.c is
 * the same in 150 lines. */
#include "harness.h"
#include <signal.h>

/* In the order of the library's enumerations, but for the norms. */
static const char norms[] = "layer_norm,rms_norm,scale_norm,dynamic_tanh,derf,batch_norm,none";
static const char placements[] = "pre,post,peri,deepnorm,hybrid,residual,scaled,mix";
static const char positions[] = "learned,rotary,none";
static const char feed_forwards[] = "gelu,gelu_tanh,relu,swiglu";

enum { NORM, PLACEMENT, POSITIONS, FEED_FORWARD, QK_NORM, LAYERS, WIDTH, HEADS, CONTEXT, BATCH };
enum { STEPS = BATCH + 1, LR, DROPOUT, SEED, SAMPLE, TEMPERATURE, PROMPT, TEXT, OUT, CHECKPOINT };
enum { RESUME = CHECKPOINT + 1, LIVE, WATCH };
static option options[] = {
    [NORM] = {"norm", "some", .text = "layer_norm", .choices = norms, .many = true},
    [PLACEMENT] = {"placement", "some", .text = "pre", .choices = placements, .many = true},
    [POSITIONS] = {"positions", "one", .text = "learned", .choices = positions},
    [FEED_FORWARD] = {"feed-forward", "one", .text = "gelu", .choices = feed_forwards},
    [QK_NORM] = {"qk-norm", "apply RMSNorm to each head of q and k", .is_switch = true},
    [LAYERS] = {"layers", "blocks", .normal = 4, .most = 1000},
    [WIDTH] = {"width", "features", .normal = 128, .most = 100000},
    [HEADS] = {"heads", "attention heads, a divisor of width", .normal = 4, .most = 100000},
    [CONTEXT] = {"context", "characters of context", .normal = 128, .most = 100000},
    [BATCH] = {"batch", "sequences per step", .normal = 8, .most = 100000},
    [STEPS] = {"steps", "training steps", .normal = 2000},
    [LR] = {"lr", "highest learning rate", .normal = 1e-3, .fraction = true},
    [DROPOUT] = {"dropout", "dropout probability of each branch", .fraction = true, .zero = true,
                 .most = 0.99},
    [SEED] = {"seed", "seed of weights and batches", .zero = true},
    [SAMPLE] = {"sample", "characters of sample text to print", .normal = 500, .zero = true},
    [TEMPERATURE] = {"temperature", "sampling temperature", .normal = 0.8, .fraction = true},
    [PROMPT] = {"prompt", "beginning of the sample (a newline)", .text = "\n"},
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

enum { REPORT = 50, VALIDATION_BATCHES = 8 };

typedef struct {
    const char *name; /* "pre, layer_norm" */
    letters *text;
    ng_module *net;
    ng_optimizer *optimizer;
    ng_tape *tape;
    ng_tensor *ids, *labels;      /* (batch, context) */
    ng_history *history, *layers; /* layers: of --watch, or NULL */
    ng_training *training;

    /* Saved with the training. */
    ng_rng rng;
    double sum, loss, validation; /* sum: of the losses since the last report */
    int64_t counted;
} run;

static ng_training *volatile running; /* what Ctrl-C stops */

static void stop(int number)
{
    (void)number;
    if (running) ng_training_stop(running);
}

static ng_tensor *loss_of(run *r, ng_rng *rng, int64_t first, int64_t last)
{
    draw_letters(r->text, r->ids, r->labels, rng, first, last);
    return ng_cross_entropy(r->tape, ng_forward(r->net, r->tape, r->ids), r->labels);
}

/* Returns the validation loss in nats per character, always on the same batches. */
static double validate(run *r)
{
    ng_rng rng = ng_rng_seeded(7);
    double sum = 0;
    ng_tape_set_recording(r->tape, false);
    ng_eval(r->net);
    for (int i = 0; i < VALIDATION_BATCHES; i++, ng_tape_reset(r->tape))
        sum += ng_item(loss_of(r, &rng, r->text->train, r->text->count));
    ng_train(r->net);
    ng_tape_set_recording(r->tape, true);
    return sum / (double)VALIDATION_BATCHES;
}

/* Takes a step. Returns the loss, or the norm of its gradient if that is not finite. */
static double train_step(run *r, int step)
{
    ng_tensor *loss = loss_of(r, &r->rng, 0, r->text->train);
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
    r->loss = r->sum / (double)r->counted, r->validation = validate(r);
    r->sum = 0, r->counted = 0;
    ng_history_log(r->history, "loss", step, r->loss);
    ng_history_log(r->history, "val_loss", step, r->validation);
    const bool display = getenv("DISPLAY") || getenv("WAYLAND_DISPLAY");
    if (is_on(LIVE) && ng_plot(r->history, display ? NULL : "-", .panels = true, .live = true)) {
        complain(line_of("%s; continuing without --live", ng_error_text()));
        ng_clear_error();
        options[LIVE].value = 0;
    } else if (!is_on(LIVE) && (step % (10 * REPORT) == 0 || step == get_whole(STEPS))) {
        printf("%-20s step %d/%d  loss %.3f  validation %.3f\n", r->name, step, get_whole(STEPS),
               r->loss, r->validation);
        fflush(stdout);
    }
}

static void train(run *r)
{
    const int steps = get_whole(STEPS);
    const bool resumes = is_on(RESUME);
    if (resumes && ng_training_resume(r->training, .or_begin = true)) return;
    running = r->training;
    while (ng_training_step(r->training, steps)) {
        const int step = (int)ng_training_at(r->training).step + 1;
        const double loss = train_step(r, step);
        if (!is_finite(loss, r->name, step)) break;
        r->sum += loss, r->counted++;
        if (!is_on(LIVE)) show_progress(step, steps, "%s, loss %.3f", r->name, loss);
        if (step % REPORT == 0 || step == steps) report(r, step);
    }
    running = NULL;
}

/* ---- Sampling ---- */

/* Returns an id drawn with probabilities proportional to e^(logit / temperature). */
static int draw_id(const ng_tensor *logits, int64_t row, int vocabulary, ng_rng *rng)
{
    double weights[256], max = -HUGE_VAL, sum = 0;
    for (int i = 0; i < vocabulary; i++) max = fmax(max, ng_get(logits, row * vocabulary + i));
    for (int i = 0; i < vocabulary; i++)
        sum += weights[i] =
            exp((ng_get(logits, row * vocabulary + i) - max) / get_number(TEMPERATURE));
    double left = sum * ng_rng_uniform(rng);
    for (int i = 0; i < vocabulary; i++)
        if ((left -= weights[i]) < 0) return i;
    return vocabulary - 1;
}

/* Prints a sample, each character drawn given the last CONTEXT characters. */
static void write_sample(run *r)
{
    const letters *t = r->text;
    ng_rng rng = ng_rng_seeded((uint64_t)get_number(SEED));
    int count = (int)strlen(get_text(PROMPT));
    int64_t *seen = calloc((size_t)(count + get_whole(SAMPLE)), sizeof *seen);
    if (!seen) return;
    for (int i = 0; i < count; i++) seen[i] = t->id[(unsigned char)get_text(PROMPT)[i]];
    ng_tape_set_recording(r->tape, false);
    ng_eval(r->net);
    printf("\nSample from %s:\n\n%s", r->name, get_text(PROMPT));
    for (int i = 0; i < get_whole(SAMPLE); i++, ng_tape_reset(r->tape)) {
        const int length = count < get_whole(CONTEXT) ? count : get_whole(CONTEXT);
        ng_tensor *ids = ng_tape_own(
            r->tape, ng_tensor_from_array(NG_I64, NG_SHAPE(1, length), seen + count - length));
        const ng_tensor *logits = ng_forward(r->net, r->tape, ids);
        if (!logits) break;
        seen[count] = draw_id(logits, length - 1, t->vocabulary, &rng);
        putchar(t->byte[seen[count++]]), fflush(stdout);
    }
    puts("\n");
    free(seen);
}

/* ---- One network after the other ---- */

static ng_module *make_network(const letters *text, const char *norm, const char *placement)
{
    ng_module *net = ng_transformer_new(
        text->vocabulary, .dim = get_whole(WIDTH), .heads = get_whole(HEADS),
        .layers = get_whole(LAYERS), .length = get_whole(CONTEXT), .norm = ng_norm_named(norm),
        .placement = (ng_norm_placement)index_of(placements, placement),
        .positions = (ng_positions)index_of(positions, get_text(POSITIONS)),
        .activation = (ng_feed_forward_activation)index_of(feed_forwards, get_text(FEED_FORWARD)),
        .dropout = get_number(DROPOUT), .qk_norm = is_on(QK_NORM) ? ng_norm_rms : NULL);
    ng_module_init(net, (uint64_t)get_number(SEED));
    return net;
}

/* Trains a network and logs its losses as a block. Returns whether it has come to the end. */
static bool run_network(letters *text, const char *norm, const char *placement, const char *prefix,
                        ng_history *history, bool samples)
{
    const int steps = get_whole(STEPS), warmup = steps < 1000 ? steps / 10 : 100;
    const line name = line_of("%s, %s", placement, norm), key = line_of("%s-%s", placement, norm);
    const line file = line_of("%s.%s", get_text(CHECKPOINT), key.text);
    const bool saves = *get_text(CHECKPOINT);
    ng_history_block(history, name.text);
    run r = {.name = name.text, .text = text, .history = history};
    r.rng = ng_rng_seeded((uint64_t)get_number(SEED));
    r.net = make_network(text, norm, placement);
    r.optimizer = ng_adamw_new(r.net, 0.1, .lr = get_number(LR), .beta2 = 0.99,
                               .schedule = NG_SCHEDULE(.kind = NG_SCHEDULE_COSINE, .warmup = warmup,
                                                       .steps = steps - warmup, .floor = 0.1));
    r.tape = ng_tape_new();
    ng_tape_seed(r.tape, (uint64_t)get_number(SEED));
    r.ids = ng_zeros_new(NG_I64, NG_SHAPE(get_whole(BATCH), get_whole(CONTEXT)));
    r.labels = ng_zeros_new(NG_I64, NG_SHAPE(get_whole(BATCH), get_whole(CONTEXT)));
    r.training = ng_training_new(r.optimizer, .tape = r.tape, .history = history,
                                 .path = saves ? file.text : NULL, .minutes = saves ? 0.1 : 0);
    ng_training_keep_rng(r.training, "batches", &r.rng);
    ng_training_keep_number(r.training, "sum", &r.sum);
    ng_training_keep_number(r.training, "loss", &r.loss);
    ng_training_keep_number(r.training, "validation", &r.validation);
    ng_training_keep_count(r.training, "counted", &r.counted);
    if (is_on(WATCH)) r.layers = ng_history_new(name.text);
    if (r.layers) ng_watch(r.net, r.layers, -1);
    if (!ng_failed()) train(&r);
    show_progress(1, 1, "done");
    const bool ended = !ng_failed() && !ng_training_stopped(r.training);
    const line drawing = line_of("%s-%s-layers.svg", prefix, key.text);
    if (r.layers && !ng_failed() && ng_plot_watch(r.layers, drawing.text) == NG_OK)
        printf("Layers: %s\n", drawing.text);
    if (ended)
        printf("%-20s %d steps: loss %.4f, validation %.4f nats per character\n", r.name, steps,
               r.loss, r.validation);
    if (ended && samples && get_whole(SAMPLE) > 0) write_sample(&r);
    ng_training_free(r.training), ng_tape_free(r.tape), ng_optimizer_free(r.optimizer);
    ng_module_free(r.net), ng_tensor_free(r.ids), ng_tensor_free(r.labels);
    ng_history_free(r.layers);
    return ended;
}

static letters read_given_text(void)
{
    letters text = read_letters(*get_text(TEXT) ? get_text(TEXT)
                                                : find_file("examples/data", "opticks.txt").text);
    if (text.count < 20 * (get_whole(CONTEXT) + 1)) /* each part has at least one sequence */
        give_up(EXIT_FAILURE, line_of("%lld characters of text, expected 20 times the context",
                                      (long long)text.count));
    if (text.id['\n'] < 0) text.id['\n'] = 0; /* the default prompt is always there */
    for (const char *at = get_text(PROMPT); *at; at++)
        if (text.id[(unsigned char)*at] < 0)
            give_up(EXIT_FAILURE, line_of("--prompt: '%c' is not in the text", *at));
    return text;
}

int main(int argc, char **argv)
{
    static const char usage[] =
        "usage: char_transformer [options]\n"
        "\n"
        "Trains a transformer on the characters of a text and prints a sample of what it writes.\n"
        "With several norms or placements, with commas between them, it trains one network for\n"
        "each pair of them and compares their losses. Ctrl-C ends it and saves the losses so "
        "far.\n";
    begin_program(argc, argv, usage, options, NULL);
    const line prefix = choose_prefix(get_text(OUT), "char_transformer");
    if (is_on(RESUME) && !*get_text(CHECKPOINT))
        give_up(EXIT_USAGE, line_of("--resume: expected --checkpoint as well"));
    signal(SIGINT, stop), signal(SIGTERM, stop);
    letters text = read_given_text();
    ng_history *history = ng_history_new(
        line_of("%lld characters; %d layers, width %d, %d heads, context %d, batch %d; adamw, lr "
                "%g; seed %d; float32",
                (long long)text.count, get_whole(LAYERS), get_whole(WIDTH), get_whole(HEADS),
                get_whole(CONTEXT), get_whole(BATCH), get_number(LR), get_whole(SEED))
            .text);
    bool goes_on = true;
    char norm[32], placement[32];
    for (const char *at = get_text(PLACEMENT); next_item(&at, placement, sizeof placement);)
        for (const char *from = get_text(NORM); goes_on && next_item(&from, norm, sizeof norm);)
            goes_on = run_network(&text, norm, placement, prefix.text, history, !*at && !*from);
    save_history(history, prefix.text, (ng_plot_options){.panels = true, .x_label = "step"});
    ng_history_free(history), free(text.bytes);
    return end_program(goes_on || ng_failed() ? EXIT_SUCCESS : 130);
}
