/* A transformer that learns to write text, character by character.
 *
 * Trains one network for each requested norm and placement, prints the losses, writes them to a
 * .dat file and prints a sample of the last network's text: build/examples/char_transformer
 * --help. 5_transformer.c is the same in 150 lines. */
#include "characters.h"
#include "norms.h"
#include "training.h"

/* ---- Options ---- */

/* The last three in the order of the library's enumerations. */
static const char norm_list[] = "layer,rms,scale,tanh,batch,none";
static const char placements[] = "pre,post,peri,deepnorm,hybrid,residual,scaled,mix";
static const char position_list[] = "learned,rotary,none";
static const char feed_forward_list[] = "gelu,gelu_tanh,relu,swiglu";
enum { PLACEMENTS = 8, MOST_CURVES = NORMS * PLACEMENTS };

typedef struct {
    bool norm[NORMS], placement[PLACEMENTS];
    int positions, feed_forward;
    int layers, width, heads, context, batch, steps, sample, seed;
    double lr, dropout, temperature;
    bool qk_norm;
    char out[LONGEST_TEXT + 100];
    const char *prompt;
    training_options with;
    char **files; /* arguments after the options */
    int n_files;
} options;

static const char usage[] =
    "usage: char_transformer [options] [FILE...]\n"
    "\n"
    "Trains a transformer on the characters of the files, or of Newton's Opticks, and prints\n"
    "a sample of its text. With several norms or placements it trains one network for each\n"
    "pair of them and compares their losses.\n";

static options parse_options(int argc, char **argv)
{
    options o = {.layers = 4,
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
    const program_option known[] = {
        OPTION_LIST("norm", "LIST", "some of layer,rms,scale,tanh,batch,none (layer)", o.norm,
                    norm_list),
        OPTION_LIST("placement", "LIST",
                    "some of pre,post,peri,deepnorm,hybrid,residual,scaled,mix (pre)", o.placement,
                    placements),
        OPTION_CHOICE("positions", "KIND", "learned, rotary or none (learned)", &o.positions,
                      position_list),
        OPTION_CHOICE("feed-forward", "F", "gelu, gelu_tanh, relu or swiglu (gelu)",
                      &o.feed_forward, feed_forward_list),
        OPTION_SWITCH("qk-norm", "apply RMSNorm to each head of q and k", &o.qk_norm),
        OPTION_COUNT("layers", "N", "blocks", &o.layers, 1, 1000),
        OPTION_COUNT("width", "N", "features", &o.width, 1, 100000),
        OPTION_COUNT("heads", "N", "attention heads, a divisor of width", &o.heads, 1, 100000),
        OPTION_COUNT("context", "N", "characters of context", &o.context, 1, 100000),
        OPTION_COUNT("batch", "N", "sequences per step", &o.batch, 1, 100000),
        OPTION_COUNT("steps", "N", "training steps", &o.steps, 1, 100000000),
        OPTION_RATE("lr", "RATE", "highest learning rate", &o.lr),
        OPTION_NUMBER("dropout", "P", "dropout probability of each branch (0)", &o.dropout, 0,
                      0.99),
        OPTION_COUNT("seed", "N", "seed of weights and batches", &o.seed, 0, 1000000000),
        OPTION_COUNT("sample", "N", "characters of sample text to print", &o.sample, 0, 1000000),
        OPTION_RATE("temperature", "T", "sampling temperature", &o.temperature),
        OPTION_TEXT("prompt", "TEXT", "beginning of the sample (a newline)", &o.prompt),
        OPTION_TEXT("out", "PREFIX", "prefix of the .dat (build/char_transformer)", &out),
        TRAINING_OPTIONS(o.with)};
    const int files = read_options(argc, argv, usage, OPTIONS(known), CTRL_C_HELP);
    bool norm = false, placement = false;
    for (int i = 0; i < NORMS; i++) norm = norm || o.norm[i];
    for (int i = 0; i < PLACEMENTS; i++) placement = placement || o.placement[i];
    if (!norm) o.norm[0] = true;
    if (!placement) o.placement[0] = true;
    choose_prefix(o.out, sizeof o.out, out, "char_transformer");
    o.files = argv + files;
    o.n_files = argc - files;
    return o;
}

/* ---- Text ---- */

static bool read_text(characters *t, const options *o)
{
    bool read = o->n_files > 0 || read_file(t, find_data("opticks.txt"));
    for (int i = 0; i < o->n_files && read; i++) read = read_file(t, o->files[i]);
    const size_t least = 20 * ((size_t)o->context + 1); /* each part holds at least one sequence */
    if (!read) return false;
    if (t->count < least) {
        complain("%zu characters of text, expected at least %zu for a context of %d", t->count,
                 least, o->context);
        return false;
    }
    number_bytes(t);
    t->train = (int64_t)(t->count - t->count / 10);
    if (t->id['\n'] < 0) t->id['\n'] = 0; /* the default prompt is always there */
    for (const char *at = o->prompt; *at; at++) {
        if (t->id[(unsigned char)*at] >= 0) continue;
        complain("--prompt '%s' has a character that is not in the text: '%c'", o->prompt, *at);
        return false;
    }
    return true;
}

/* ---- Training ---- */

/* The measurements of one network, every REPORT steps. */
enum { REPORT = 50, VALIDATION_BATCHES = 8 };
enum { TRAINING_LOSS, VALIDATION_LOSS, SECONDS, MEASURED };
typedef struct {
    char name[64];
    ng_tensor *measured; /* (MEASURED, reports) */
    int64_t reports;
    int diverged; /* the step at which it diverged, or 0 */
} curve;

typedef struct {
    options options;
    characters text;
    curve curves[MOST_CURVES];
    int n_curves;
} job;

/* The step after which a report was made. */
static int step_of(const job *j, int64_t report)
{
    const int64_t step = (report + 1) * REPORT;
    return step < j->options.steps ? (int)step : j->options.steps;
}

typedef struct {
    job *job;
    curve *curve;
    ng_module *net;
    ng_optimizer *optimizer;
    ng_tape *tape;
    ng_tensor *ids, *labels; /* (batch, context) */
    ng_history *watched;     /* or NULL */
    double began;

    /* Saved with the training. */
    ng_training *training;
    ng_rng rng;
    double sum, seconds;
    int64_t counted;
} run;

static ng_tensor *loss_of(run *r, ng_rng *rng, int64_t first, int64_t last)
{
    draw_text(&r->job->text, r->ids, r->labels, rng, first, last);
    return ng_cross_entropy(r->tape, ng_forward(r->net, r->tape, r->ids), r->labels);
}

/* Returns the validation loss in nats per character, always on the same batches. */
static double validate(run *r)
{
    const characters *t = &r->job->text;
    ng_rng rng = ng_rng_seeded(7);
    double sum = 0;
    ng_tape_set_recording(r->tape, false);
    ng_eval(r->net);
    for (int i = 0; i < VALIDATION_BATCHES; i++, ng_tape_reset(r->tape))
        sum += ng_item(loss_of(r, &rng, t->train, (int64_t)t->count));
    ng_train(r->net);
    ng_tape_set_recording(r->tape, true);
    return sum / (double)VALIDATION_BATCHES;
}

/* Takes a step. Returns the loss, or the norm of its gradient if that is not finite. */
static double train_step(run *r)
{
    ng_tensor *loss = loss_of(r, &r->rng, 0, r->job->text.train);
    if (ng_backward(r->tape, loss)) return (double)NAN;
    const double norm = ng_grad_norm(r->net);
    if (!isfinite(norm)) return norm;
    ng_clip_grad_norm(r->net, 1);
    if (ng_optimizer_step(r->optimizer)) return (double)NAN;
    const double value = ng_item(loss);
    watch_step(r->watched, r->net, ng_optimizer_steps(r->optimizer));
    ng_tape_reset(r->tape);
    return value;
}

static void report(run *r, double loss, int step)
{
    curve *c = r->curve;
    options *o = &r->job->options;
    const double values[MEASURED] = {loss, validate(r), progress_clock() - r->began};
    if (ng_failed()) return;
    for (int i = 0; i < MEASURED; i++)
        ng_set(c->measured, i * ng_dim(c->measured, 1) + c->reports, values[i]);
    c->reports++;
    if (o->with.curves) {
        ng_history_log(o->with.curves, "loss", step, loss);
        ng_history_log(o->with.curves, "val_loss", step, values[VALIDATION_LOSS]);
        draw_live(&o->with, c->name);
    }
    if (!progress_terminal() && (step % (10 * REPORT) == 0 || step == o->steps)) {
        printf("%-20s step %d/%d  loss %.3f  validation %.3f  %.1f s\n", c->name, step, o->steps,
               loss, values[VALIDATION_LOSS], values[SECONDS]);
        fflush(stdout);
    }
}

static void train(run *r)
{
    const options *o = &r->job->options;
    progress bar = progress_begin(r->curve->name, "steps", o->steps,
                                  !progress_terminal() || fills_terminal(&o->with));
    int step = 0;
    char detail[64];
    setting settings[] = {{.name = "batch", .now = o->batch},
                          {.name = "text's length", .now = (int64_t)r->job->text.count}};
    if (!training_begin(&o->with, r->training, settings, 2)) return;
    r->began = progress_clock() - r->seconds;
    while (ng_training_step(r->training, o->steps)) {
        step = (int)ng_training_at(r->training).step + 1;
        r->sum += train_step(r);
        r->counted++;
        r->seconds = progress_clock() - r->began;
        if (ng_failed() || !isfinite(r->sum)) break;
        snprintf(detail, sizeof detail, "step %d/%d  loss %.3f", step, o->steps,
                 r->sum / (double)r->counted);
        progress_show(&bar, step, detail);
        if (step % REPORT == 0 || step == o->steps) {
            report(r, r->sum / (double)r->counted, step);
            r->sum = 0, r->counted = 0;
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
    int count = (int)strlen(o->prompt);
    int64_t *seen = calloc((size_t)(count + o->sample), sizeof *seen);
    if (!seen) return;
    for (int i = 0; i < count; i++) seen[i] = t->id[(unsigned char)o->prompt[i]];
    ng_tape_set_recording(r->tape, false);
    ng_eval(r->net);
    printf("\nSample from %s:\n\n%s", r->curve->name, o->prompt);
    for (int i = 0; i < o->sample && !interrupted && !ng_failed(); i++, ng_tape_reset(r->tape)) {
        const int length = count < o->context ? count : o->context;
        ng_tensor *ids = ng_tape_own(
            r->tape, ng_tensor_from_array(NG_I64, NG_SHAPE(1, length), seen + count - length));
        const ng_tensor *logits = ng_forward(r->net, r->tape, ids);
        if (!logits) break;
        seen[count] = draw_id(logits, length - 1, t->vocabulary, o->temperature, &rng);
        putchar(t->byte[seen[count++]]), fflush(stdout);
    }
    putchar('\n');
    free(seen);
}

/* ---- One network after the other ---- */

static void run_network(job *j, int norm, int placement, bool sample)
{
    options *o = &j->options;
    curve *c = &j->curves[j->n_curves++];
    const norm_choice *choice = norm_in_list(norm_list, norm);
    const char *where = placements;
    for (int i = 0; i < placement; i++) where = strchr(where, ',') + 1;
    const int length = (int)strcspn(where, ","), warmup = o->steps < 1000 ? o->steps / 10 : 100;
    char key[64];
    snprintf(c->name, sizeof c->name, "%.*s, %s", length, where, choice->name);
    snprintf(key, sizeof key, "%.*s-%s", length, where, choice->key);
    if (o->with.curves) ng_history_block(o->with.curves, c->name);

    run r = {.job = j, .curve = c, .rng = ng_rng_seeded((uint64_t)o->seed)};
    r.net = ng_transformer_new(j->text.vocabulary, .dim = o->width, .heads = o->heads,
                               .layers = o->layers, .length = o->context, .norm = choice->features,
                               .placement = (ng_norm_placement)placement,
                               .positions = (ng_positions)o->positions,
                               .activation = (ng_feed_forward_activation)o->feed_forward,
                               .dropout = o->dropout, .qk_norm = o->qk_norm ? ng_norm_rms : NULL);
    ng_module_init(r.net, (uint64_t)o->seed);
    r.optimizer = ng_adamw_new(r.net, 0.1, .lr = o->lr, .beta2 = 0.99,
                               .schedule = NG_SCHEDULE(.kind = NG_SCHEDULE_COSINE, .warmup = warmup,
                                                       .steps = o->steps - warmup, .floor = 0.1));
    r.tape = ng_tape_new();
    ng_tape_seed(r.tape, (uint64_t)o->seed);
    r.ids = ng_zeros_new(NG_I64, NG_SHAPE(o->batch, o->context));
    r.labels = ng_zeros_new(NG_I64, NG_SHAPE(o->batch, o->context));
    if (o->with.watch) r.watched = ng_history_new(c->name);
    if (r.watched) ng_watch(r.net, r.watched, -1);

    c->measured = ng_zeros_new(NG_F64, NG_SHAPE(MEASURED, o->steps / REPORT + 1));
    r.training = training_new(&o->with, r.optimizer, r.tape, NULL, key, o->seed);
    ng_training_keep_rng(r.training, "batches", &r.rng);
    ng_training_keep_number(r.training, "sum", &r.sum);
    ng_training_keep_number(r.training, "seconds", &r.seconds);
    ng_training_keep_count(r.training, "counted", &r.counted);
    ng_training_keep_count(r.training, "reports", &c->reports);
    ng_training_keep_tensor(r.training, "measured", c->measured);
    train(&r);
    draw_layers(r.watched, o->out, key);
    if (!ng_failed() && !interrupted && !c->diverged && sample && o->sample > 0) write_sample(&r);
    ng_training_free(r.training), ng_tape_free(r.tape), ng_optimizer_free(r.optimizer);
    ng_module_free(r.net), ng_tensor_free(r.ids), ng_tensor_free(r.labels);
    ng_history_free(r.watched);
}

static void print_table(const job *j)
{
    printf("\n%-22s %8s %12s %12s %9s %9s\n", "placement and norm", "steps", "loss", "validation",
           "time", "ms/step");
    for (int i = 0; i < j->n_curves; i++) {
        const curve *c = &j->curves[i];
        if (c->diverged) printf("%-22s %8d   diverged\n", c->name, c->diverged);
        if (c->diverged || c->reports == 0) continue;
        const int step = step_of(j, c->reports - 1);
        const double seconds = ng_at(c->measured, SECONDS, c->reports - 1);
        printf("%-22s %8d %12.4f %12.4f %7.1f s %9.2f\n", c->name, step,
               ng_at(c->measured, TRAINING_LOSS, c->reports - 1),
               ng_at(c->measured, VALIDATION_LOSS, c->reports - 1), seconds, 1e3 * seconds / step);
    }
    printf("\nLosses in nats per character. Validation uses the last tenth of the text.\n");
}

static bool write_history(const job *j)
{
    const options *o = &j->options;
    static const char *const drawn[] = {"loss", "val_loss", NULL};
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
            ng_history_log(history, "loss", step_of(j, k), ng_at(c->measured, TRAINING_LOSS, k));
            ng_history_log(history, "val_loss", step_of(j, k),
                           ng_at(c->measured, VALIDATION_LOSS, k));
            ng_history_log(history, "seconds", step_of(j, k), ng_at(c->measured, SECONDS, k));
        }
    }
    const bool written = write_dat(history, o->out);
    if (written) draw_panels(history, o->out, drawn, "step");
    ng_history_free(history);
    return written;
}

static int work(job *j)
{
    const options *o = &j->options;
    if (!can_write("out", o->out) || !read_text(&j->text, o)) return EXIT_FAILED;
    printf("%zu characters, %d distinct; %d layers, width %d, %d heads, context %d, batch %d\n\n",
           j->text.count, j->text.vocabulary, o->layers, o->width, o->heads, o->context, o->batch);
    fflush(stdout);
    int left = 0;
    bool any = false;
    for (int i = 0; i < MOST_CURVES; i++) left += o->norm[i % NORMS] && o->placement[i / NORMS];
    for (int i = 0; i < MOST_CURVES && !interrupted && !ng_failed(); i++)
        if (o->norm[i % NORMS] && o->placement[i / NORMS])
            run_network(j, i % NORMS, i / NORMS, --left == 0);
    for (int i = 0; i < j->n_curves; i++) any = any || j->curves[i].reports > 0;
    if (ng_failed()) return EXIT_FAILED;
    if (any) print_table(j);
    if (any && !write_history(j)) return EXIT_FAILED;
    if (interrupted) printf("Interrupted%s.\n", any ? "" : ": no curves are saved");
    return interrupted ? EXIT_INTERRUPTED : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    static job j;
    program_begin(argv);
    j.options = parse_options(argc, argv);
    begin_trainings(&j.options.with);
    const int status = work(&j);
    for (int i = 0; i < j.n_curves; i++) ng_tensor_free(j.curves[i].measured);
    ng_history_free(j.options.with.curves);
    free(j.text.bytes);
    return program_end(status);
}
