/* A transformer that learns to write text, character by character.
 *
 * Trains one network for each requested norm and placement, prints the losses, writes them to a
 * .dat file and prints a sample of the last network's text.
 *
 *     build/examples/char_transformer --help */
#include "characters.h"
#include "options.h"
#include "training.h"

/* ---- Norms and placements ---- */

typedef struct {
    const char *key, *name;
    ng_norm_maker *make;
} norm_choice;

static const norm_choice norms[] = {
    {"layer", "LayerNorm", ng_norm_layer}, {"rms", "RMSNorm", ng_norm_rms},
    {"scale", "ScaleNorm", ng_norm_scale}, {"tanh", "DynamicTanh", ng_norm_dynamic_tanh},
    {"batch", "BatchNorm", ng_norm_batch}, {"none", "no norm", ng_norm_none}};
enum { NORMS = sizeof norms / sizeof norms[0] };

static const char *const placements[] = {
    [NG_NORM_PRE] = "pre",       [NG_NORM_POST] = "post",     [NG_NORM_PERI] = "peri",
    [NG_NORM_DEEP] = "deepnorm", [NG_NORM_HYBRID] = "hybrid", [NG_NORM_DUAL] = "residual",
    [NG_NORM_SCALED] = "scaled", [NG_NORM_MIX] = "mix"};
static const char *const positions[] = {[NG_POSITIONS_LEARNED] = "learned",
                                        [NG_POSITIONS_ROTARY] = "rotary",
                                        [NG_POSITIONS_NONE] = "none"};
static const char *const feed_forwards[] = {[NG_FEED_FORWARD_GELU] = "gelu",
                                            [NG_FEED_FORWARD_GELU_TANH] = "gelu_tanh",
                                            [NG_FEED_FORWARD_RELU] = "relu",
                                            [NG_FEED_FORWARD_SWIGLU] = "swiglu"};
enum { PLACEMENTS = sizeof placements / sizeof placements[0] };

/* ---- Options ---- */

typedef struct {
    bool norm[NORMS], placement[PLACEMENTS];
    int positions, feed_forward;
    int layers, width, heads, context, batch, steps, sample, seed, threads;
    double lr, dropout, temperature;
    bool qk_norm;
    char out[1024];
    const char *prompt;
    look look;
    checkpoint saved;
    char **files; /* arguments after the options */
    int n_files;
} options;

static const char usage[] =
    "usage: char_transformer [options] [FILE...]\n"
    "\n"
    "Trains a transformer on the characters of the files, or of Newton's Opticks, and prints\n"
    "a sample of its text. With several norms or placements it trains one network for each\n"
    "pair of them and compares their losses.\n";
static const char closing[] =
    "Ctrl-C or SIGTERM ends it after the current step and saves the results so far. A training\n"
    "whose loss or gradient is not finite ends, and the exit status is then 1.\n";

/* Reads the options. Returns the index of the first file. */
static int read_into(options *o, const char **out, int argc, char **argv)
{
    const program_option known[] = {
        OPTION_LIST("norm", "LIST", "some of layer,rms,scale,tanh,batch,none (layer)", o->norm,
                    norms),
        OPTION_LIST("placement", "LIST",
                    "some of pre,post,peri,deepnorm,hybrid,residual,scaled,mix (pre)", o->placement,
                    placements),
        OPTION_CHOICE("positions", "KIND", "learned, rotary or none (learned)", &o->positions,
                      positions),
        OPTION_CHOICE("feed-forward", "F", "gelu, gelu_tanh, relu or swiglu (gelu)",
                      &o->feed_forward, feed_forwards),
        OPTION_SWITCH("qk-norm", "apply RMSNorm to each head of q and k", &o->qk_norm),
        OPTION_COUNT("layers", "N", "blocks (4)", &o->layers, 1, 1000),
        OPTION_COUNT("width", "N", "features (128)", &o->width, 1, 100000),
        OPTION_COUNT("heads", "N", "attention heads, a divisor of width (4)", &o->heads, 1, 100000),
        OPTION_COUNT("context", "N", "characters of context (128)", &o->context, 1, 100000),
        OPTION_COUNT("batch", "N", "sequences per step (8)", &o->batch, 1, 100000),
        OPTION_COUNT("steps", "N", "training steps (2000)", &o->steps, 1, 100000000),
        OPTION_NUMBER("lr", "RATE", "highest learning rate (0.001)", &o->lr, 1e-12, 1e3),
        OPTION_NUMBER("dropout", "P", "dropout probability of each branch (0)", &o->dropout, 0, 1),
        OPTION_COUNT("seed", "N", "seed of weights and batches (0)", &o->seed, 0, 1000000000),
        OPTION_COUNT("sample", "N", "characters of sample text to print (500)", &o->sample, 0,
                     1000000),
        OPTION_NUMBER("temperature", "T", "sampling temperature (0.8)", &o->temperature, 1e-3, 1e3),
        OPTION_TEXT("prompt", "TEXT", "beginning of the sample (a newline)", &o->prompt),
        LOOK_OPTIONS(o->look),
        CHECKPOINT_OPTIONS(o->saved),
        OPTION_TEXT("out", "PREFIX", "prefix of the .dat (build/char_transformer)", out),
        THREADS_OPTION(o->threads, "0")};
    return read_options(argc, argv, usage, OPTIONS(known), closing);
}

static options parse_options(int argc, char **argv)
{
    options o = {.norm = {true},
                 .placement = {true},
                 .layers = 4,
                 .width = 128,
                 .heads = 4,
                 .context = 128,
                 .batch = 8,
                 .steps = 2000,
                 .sample = 500,
                 .lr = 1e-3,
                 .temperature = 0.8,
                 .prompt = "\n"};
    const char *out = NULL;
    const int files = read_into(&o, &out, argc, argv);
    choose_prefix(o.out, sizeof o.out, out, "char_transformer");
    check_checkpoint(&o.saved);
    o.files = argv + files;
    o.n_files = argc - files;
    return o;
}

/* ---- Text ---- */

/* Returns whether the text has all characters of the prompt. The default, a newline, is exempt: a
 * text without newlines is sampled from another character. */
static bool has_prompt(const characters *t, const char *prompt)
{
    for (const char *at = strcmp(prompt, "\n") ? prompt : ""; *at; at++) {
        if (t->id[(unsigned char)*at] >= 0) continue;
        complain("--prompt '%s' has a character that is not in the text: '%c'", prompt, *at);
        return false;
    }
    return true;
}

static bool read_text(characters *t, const options *o)
{
    bool read = o->n_files > 0 || read_file(t, find_data("opticks.txt"));
    for (int i = 0; i < o->n_files && read; i++) read = read_file(t, o->files[i]);
    if (!read) return false;
    const size_t least = 20 * ((size_t)o->context + 1); /* each part holds at least one sequence */
    if (t->count < least) {
        complain("%zu characters of text, expected at least %zu for a context of %d", t->count,
                 least, o->context);
        return false;
    }
    number_bytes(t);
    t->train = (int64_t)(t->count - t->count / 10);
    return has_prompt(t, o->prompt);
}

/* ---- The curves ---- */

/* The measurements of one network, every REPORT steps. */
enum { REPORT = 50, VALIDATION_BATCHES = 8 };
enum { TRAINING_LOSS, VALIDATION_LOSS, SECONDS, MEASURED };
typedef struct {
    char name[64];
    ng_tensor *measured; /* (MEASURED, reports) */
    int reports;
    int diverged; /* the step at which it diverged, or 0 */
} curve;

typedef struct {
    options options;
    characters text;
    curve curves[NORMS * PLACEMENTS];
    int n_curves;
    bool terminal;
} job;

static bool write_history(const job *j)
{
    const options *o = &j->options;
    char what[256];
    snprintf(what, sizeof what,
             "%zu characters, %d kinds; %d layers, width %d, %d heads, context %d, batch %d; "
             "adamw, lr %g; seed %d; float32",
             j->text.count, j->text.vocabulary, o->layers, o->width, o->heads, o->context, o->batch,
             o->lr, o->seed);
    ng_history *history = ng_history_new(what);
    for (int i = 0; i < j->n_curves; i++) {
        const curve *c = &j->curves[i];
        ng_history_block(history, c->name);
        for (int k = 0; k < c->reports; k++) {
            const int step = (k + 1) * REPORT < o->steps ? (k + 1) * REPORT : o->steps;
            ng_history_log(history, "loss", step, ng_at(c->measured, TRAINING_LOSS, k));
            ng_history_log(history, "val_loss", step, ng_at(c->measured, VALIDATION_LOSS, k));
            ng_history_log(history, "seconds", step, ng_at(c->measured, SECONDS, k));
        }
    }
    static const char *const drawn[] = {"loss", "val_loss", NULL};
    const bool written = write_dat(history, o->out);
    if (written) look_plot(history, o->out, drawn, "step");
    ng_history_free(history);
    return written;
}

static bool has_reports(const job *j)
{
    for (int i = 0; i < j->n_curves; i++)
        if (j->curves[i].reports > 0) return true;
    return false;
}

/* ---- Training ---- */

typedef struct {
    job *job;
    curve *curve;
    ng_module *net;
    ng_optimizer *optimizer;
    ng_tape *tape;
    ng_tensor *ids, *labels; /* (batch, context) */
    ng_rng rng;
    double began;
    ng_history *watched; /* or NULL */

    /* Saved with the training. */
    ng_training *training;
    double sum, seconds;
    int64_t counted, reports;
    setting settings[2];
} run;

/* Draws sequences from the bytes first to last - 1. Each label is the byte after its id. */
static void draw_batch(run *r, ng_rng *rng, int64_t first, int64_t last)
{
    const options *o = &r->job->options;
    const characters *t = &r->job->text;
    int64_t *ids = ng_data_i64(r->ids), *labels = ng_data_i64(r->labels);
    if (!ids || !labels) return;
    for (int n = 0; n < o->batch; n++) {
        const int64_t from = first + ng_rng_below(rng, last - first - o->context);
        for (int i = 0; i < o->context; i++) {
            *ids++ = t->id[t->bytes[from + i]];
            *labels++ = t->id[t->bytes[from + i + 1]];
        }
    }
    ng_touch(r->ids), ng_touch(r->labels);
}

/* Returns the validation loss in nats per character, always on the same batches. */
static double validate(run *r)
{
    const characters *t = &r->job->text;
    ng_rng rng = ng_rng_seeded(7);
    double sum = 0;
    const bool was = ng_tape_set_recording(r->tape, false);
    ng_eval(r->net);
    for (int i = 0; i < VALIDATION_BATCHES; i++) {
        draw_batch(r, &rng, t->train, (int64_t)t->count);
        sum += ng_item(ng_cross_entropy(r->tape, ng_forward(r->net, r->tape, r->ids), r->labels));
        ng_tape_reset(r->tape);
    }
    ng_train(r->net);
    ng_tape_set_recording(r->tape, was);
    return sum / (double)VALIDATION_BATCHES;
}

/* Takes a step. Returns the loss, or the norm of its gradient if that is not finite. */
static double train_step(run *r)
{
    draw_batch(r, &r->rng, 0, r->job->text.train);
    ng_tensor *logits = ng_forward(r->net, r->tape, r->ids);
    ng_tensor *loss = ng_cross_entropy(r->tape, logits, r->labels);
    if (ng_backward(r->tape, loss)) return (double)NAN;
    const double norm = ng_grad_norm(r->net);
    if (isfinite(norm)) {
        ng_clip_grad_norm(r->net, 1);
        if (ng_optimizer_step(r->optimizer)) return (double)NAN;
    }
    const double value = ng_item(loss);
    look_step(r->watched, r->net, ng_optimizer_steps(r->optimizer));
    ng_tape_reset(r->tape);
    return isfinite(norm) ? value : norm;
}

static void report(run *r, double loss, int step)
{
    curve *c = r->curve;
    const double validation = validate(r);
    if (ng_failed()) return;
    const double values[MEASURED] = {loss, validation, progress_clock() - r->began};
    for (int i = 0; i < MEASURED; i++)
        ng_set(c->measured, i * ng_dim(c->measured, 1) + c->reports, values[i]);
    r->reports = ++c->reports;
    look *l = &r->job->options.look;
    if (l->curves) ng_history_log(l->curves, "loss", step, loss);
    if (l->curves) ng_history_log(l->curves, "val_loss", step, validation);
    look_draw(l, c->name);
    if (!r->job->terminal && (step % (10 * REPORT) == 0 || step == r->job->options.steps)) {
        printf("%-20s step %d/%d  loss %.3f  validation %.3f  %.1f s\n", c->name, step,
               r->job->options.steps, loss, validation, values[SECONDS]);
        fflush(stdout);
    }
}

/* Sets up the training and, with --resume, restores it and the measurements made so far. */
static bool begin_training(run *r, const char *key, int number)
{
    const options *o = &r->job->options;
    const characters *t = &r->job->text;
    curve *c = r->curve;
    const char *path = checkpoint_path(&o->saved, key, number);
    uint64_t digest = DIGEST_START;
    for (size_t i = 0; i < t->count; i++) digest = digest_of(digest, t->bytes[i]);
    r->settings[0] = (setting){.name = "batch", .now = o->batch};
    r->settings[1] = (setting){.name = "digest of the text", .now = (int64_t)digest};
    c->measured = ng_zeros_new(NG_F64, NG_SHAPE(MEASURED, o->steps / REPORT + 1));
    r->training =
        ng_training_new(r->optimizer, .tape = r->tape, .path = path, .minutes = path ? 0.1 : 0);
    keep_settings(r->training, r->settings, 2);
    ng_training_keep_rng(r->training, "batches", &r->rng);
    ng_training_keep_number(r->training, "sum", &r->sum);
    ng_training_keep_number(r->training, "seconds", &r->seconds);
    ng_training_keep_count(r->training, "counted", &r->counted);
    ng_training_keep_count(r->training, "reports", &r->reports);
    ng_training_keep_tensor(r->training, "measured", c->measured);
    if (ng_failed()) return false;
    if (o->saved.resume && ng_training_resume(r->training, .or_begin = true)) return false;
    c->reports = (int)r->reports;
    return settings_stay(path, r->settings, 2);
}

static void train(run *r)
{
    const options *o = &r->job->options;
    progress bar =
        progress_begin(r->curve->name, "characters", (double)o->steps * o->batch * o->context,
                       !r->job->terminal || look_fills_terminal(&o->look));
    look_block(&r->job->options.look, r->curve->name);
    int step = 0;
    char detail[64];
    r->began = progress_clock() - r->seconds;
    while (ng_training_step(r->training, o->steps)) {
        step = (int)ng_training_at(r->training).step + 1;
        r->sum += train_step(r);
        r->counted++;
        r->seconds = progress_clock() - r->began;
        if (ng_failed() || !isfinite(r->sum)) break;
        snprintf(detail, sizeof detail, "step %d/%d  loss %.3f", step, o->steps,
                 r->sum / (double)r->counted);
        progress_show(&bar, (double)step * o->batch * o->context, detail);
        if (step % REPORT == 0 || step == o->steps) {
            report(r, r->sum / (double)r->counted, step);
            r->sum = 0;
            r->counted = 0;
        }
        if (interrupted) ng_training_stop(r->training);
    }
    progress_end(&bar);
    if (!still_trains(r->sum, "%s, step %d: the loss or its gradient", r->curve->name, step))
        r->curve->diverged = step;
}

/* ---- Sampling ---- */

/* Returns an id drawn with probabilities proportional to e^(logit / temperature). */
static int draw_id(const ng_tensor *logits, int64_t row, int vocabulary, double temperature,
                   ng_rng *rng)
{
    double weights[256], max = -HUGE_VAL, sum = 0;
    for (int i = 0; i < vocabulary; i++) max = fmax(max, ng_get(logits, row * vocabulary + i));
    for (int i = 0; i < vocabulary; i++)
        sum += weights[i] = exp((ng_get(logits, row * vocabulary + i) - max) / temperature);
    double left = sum * ng_rng_uniform(rng);
    for (int i = 0; i < vocabulary; i++)
        if ((left -= weights[i]) < 0) return i;
    return vocabulary - 1;
}

/* Prints a sample, each character drawn given the last `context` characters. */
static void write_sample(run *r)
{
    const options *o = &r->job->options;
    const characters *t = &r->job->text;
    ng_rng rng = ng_rng_seeded((uint64_t)o->seed);
    unsigned char *seen = calloc(strlen(o->prompt) + (size_t)o->sample + 1, 1);
    int count = 0;
    for (const char *at = o->prompt; seen && *at; at++)
        if (t->id[(unsigned char)*at] >= 0) seen[count++] = (unsigned char)*at;
    if (seen && count == 0) seen[count++] = t->byte[0];
    ng_tape_set_recording(r->tape, false);
    ng_eval(r->net);
    printf("\nSample from %s:\n\n%.*s", r->curve->name, count, seen ? (const char *)seen : "");
    for (int i = 0; seen && i < o->sample && !interrupted && !ng_failed(); i++) {
        const int length = count < o->context ? count : o->context;
        ng_tensor *ids = ng_zeros_new(NG_I64, NG_SHAPE(1, length));
        for (int k = 0; k < length; k++) ng_set(ids, k, t->id[seen[count - length + k]]);
        const ng_tensor *logits = ng_forward(r->net, r->tape, ids);
        if (logits)
            seen[count++] =
                t->byte[draw_id(logits, length - 1, t->vocabulary, o->temperature, &rng)];
        if (logits) putchar(seen[count - 1]), fflush(stdout);
        ng_tensor_free(ids);
        ng_tape_reset(r->tape);
    }
    putchar('\n');
    free(seen);
}

/* ---- One network after the other ---- */

static ng_module *make_network(const job *j, int norm, int placement)
{
    const options *o = &j->options;
    ng_module *net = ng_transformer_new(
        j->text.vocabulary, .dim = o->width, .heads = o->heads, .layers = o->layers,
        .length = o->context, .norm = norms[norm].make, .placement = (ng_norm_placement)placement,
        .positions = (ng_positions)o->positions,
        .activation = (ng_feed_forward_activation)o->feed_forward, .dropout = o->dropout,
        .qk_norm = o->qk_norm ? ng_norm_rms : NULL);
    ng_module_init(net, (uint64_t)o->seed);
    return net;
}

static void run_network(job *j, int norm, int placement, bool sample)
{
    const options *o = &j->options;
    curve *c = &j->curves[j->n_curves];
    snprintf(c->name, sizeof c->name, "%s, %s", placements[placement], norms[norm].name);
    j->n_curves++;
    const int warmup = o->steps < 1000 ? o->steps / 10 : 100;
    run r = {.job = j, .curve = c, .rng = ng_rng_seeded((uint64_t)o->seed)};
    r.net = make_network(j, norm, placement);
    r.optimizer = ng_adamw_new(r.net, .lr = o->lr, .beta2 = 0.99, .weight_decay = 0.1,
                               .schedule = {.kind = NG_SCHEDULE_COSINE,
                                            .warmup = warmup,
                                            .steps = o->steps - warmup,
                                            .floor = 0.1});
    r.tape = ng_tape_new();
    ng_tape_seed(r.tape, (uint64_t)o->seed);
    r.ids = ng_zeros_new(NG_I64, NG_SHAPE(o->batch, o->context));
    r.labels = ng_zeros_new(NG_I64, NG_SHAPE(o->batch, o->context));
    char key[64];
    snprintf(key, sizeof key, "%s-%s", placements[placement], norms[norm].key);
    r.watched = look_watch(&o->look, r.net, c->name);
    if (begin_training(&r, key, o->seed)) train(&r);
    look_draw_layers(r.watched, o->out, key);
    if (!ng_failed() && !interrupted && !c->diverged && sample && o->sample > 0) write_sample(&r);
    ng_tape_free(r.tape), ng_optimizer_free(r.optimizer), ng_module_free(r.net);
    ng_tensor_free(r.ids), ng_tensor_free(r.labels);
    ng_training_free(r.training), ng_history_free(r.watched);
}

static void print_table(const job *j)
{
    printf("\n%-22s %8s %12s %12s %9s %9s\n", "placement and norm", "steps", "loss", "validation",
           "time", "ms/step");
    for (int i = 0; i < j->n_curves; i++) {
        const curve *c = &j->curves[i];
        if (c->diverged) printf("%-22s %8d   diverged\n", c->name, c->diverged);
        if (c->diverged || c->reports == 0) continue;
        const int last = c->reports - 1, steps = j->options.steps;
        const int step = (last + 1) * REPORT < steps ? (last + 1) * REPORT : steps;
        const double seconds = ng_at(c->measured, SECONDS, last);
        printf("%-22s %8d %12.4f %12.4f %7.1f s %9.2f\n", c->name, step,
               ng_at(c->measured, TRAINING_LOSS, last), ng_at(c->measured, VALIDATION_LOSS, last),
               seconds, 1e3 * seconds / step);
    }
    printf("\nLosses in nats per character. Validation uses the last tenth of the text.\n");
}

static int work(job *j)
{
    const options *o = &j->options;
    if (!can_write("out", o->out) || !read_text(&j->text, o)) return EXIT_FAILED;
    printf("%zu characters, %d distinct; %d layers, width %d, %d heads, context %d, batch %d\n\n",
           j->text.count, j->text.vocabulary, o->layers, o->width, o->heads, o->context, o->batch);
    fflush(stdout);
    look_begin(&j->options.look);
    int left = 0;
    for (int i = 0; i < NORMS * PLACEMENTS; i++)
        left += o->norm[i % NORMS] && o->placement[i / NORMS];
    for (int i = 0; i < NORMS * PLACEMENTS && !interrupted && !ng_failed(); i++)
        if (o->norm[i % NORMS] && o->placement[i / NORMS])
            run_network(j, i % NORMS, i / NORMS, --left == 0);

    look_end(&j->options.look);
    if (!ng_failed() && has_reports(j)) {
        print_table(j);
        write_history(j);
    }
    if (ng_failed()) return EXIT_FAILED;
    if (interrupted) printf("Interrupted%s.\n", has_reports(j) ? "" : ": no curves are saved");
    return interrupted ? EXIT_INTERRUPTED : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    program_begin(argv);
    job j = {.options = parse_options(argc, argv), .terminal = progress_terminal()};
    ng_set_threads(j.options.threads);
    catch_signals();
    const int status = work(&j);
    for (int i = 0; i < j.n_curves; i++) ng_tensor_free(j.curves[i].measured);
    free(j.text.bytes);
    return program_end(status);
}
