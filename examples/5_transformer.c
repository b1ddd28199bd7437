/* Step 5: a transformer that learns to write like Newton, one character after the other. It reads
 * 64 characters and says for each position which one comes next; a pre-norm block has a LayerNorm
 * before its attention and before its feed-forward. Run it in the project's directory; a number
 * after its name is the number of steps. */
#include <math.h>
#include <normgrad.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CONTEXT = 64, BATCH = 16, WIDTH = 64, HEADS = 4, LAYERS = 2, STEPS = 1000, SAMPLE = 300 };

/* ---- The text: each distinct byte has a number, its token ---- */

typedef struct {
    int64_t *tokens;
    int64_t count, train; /* tokens; the first `train` of them are for training */
    int token_of[256], kinds;
    char byte_of[256];
} text;

static bool read_text(text *t, const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END)) return perror(path), false;
    t->tokens = malloc((size_t)ftell(file) * sizeof *t->tokens);
    memset(t->token_of, -1, sizeof t->token_of);
    rewind(file);
    for (int byte; t->tokens && (byte = getc(file)) != EOF;) {
        if (t->token_of[byte] < 0) {
            t->byte_of[t->kinds] = (char)byte;
            t->token_of[byte] = t->kinds++;
        }
        t->tokens[t->count++] = t->token_of[byte];
    }
    fclose(file);
    t->train = t->count * 9 / 10;
    return t->count > 20 * CONTEXT;
}

/* ---- Loss ---- */

/* The loss of a batch of sequences from tokens[first] to tokens[last - 1]. x and y are (BATCH,
 * CONTEXT); each label is the token after the one at its place in x. */
static ng_tensor *loss_of(const text *t, ng_module *net, ng_tape *tape, ng_rng *rng, int64_t first,
                          int64_t last)
{
    int64_t x[BATCH * CONTEXT], y[BATCH * CONTEXT];
    for (int n = 0; n < BATCH; n++) {
        const int64_t at = first + ng_rng_below(rng, last - first - CONTEXT);
        memcpy(x + n * CONTEXT, t->tokens + at, CONTEXT * sizeof *x);
        memcpy(y + n * CONTEXT, t->tokens + at + 1, CONTEXT * sizeof *y);
    }
    const ng_shape shape = NG_SHAPE(BATCH, CONTEXT);
    ng_tensor *ids = ng_tape_own(tape, ng_tensor_from_array(NG_I64, shape, x)); /* the tape frees */
    ng_tensor *labels = ng_tape_own(tape, ng_tensor_from_array(NG_I64, shape, y));
    return ng_cross_entropy(tape, ng_forward(net, tape, ids), labels);
}

/* The mean loss of ten batches of the last tenth of the text, always the same ones. */
static double validate(const text *t, ng_module *net, ng_tape *tape)
{
    ng_rng rng = ng_rng_seeded(7);
    double sum = 0;
    ng_eval(net);
    ng_tape_set_recording(tape, false);
    for (int i = 0; i < 10; i++, ng_tape_reset(tape))
        sum += ng_item(loss_of(t, net, tape, &rng, t->train, t->count));
    ng_tape_set_recording(tape, true);
    ng_train(net);
    return sum / 10;
}

/* ---- Training ---- */

static void train(const text *t, ng_module *net, ng_tape *tape, int steps)
{
    const ng_schedule schedule = {
        .kind = NG_SCHEDULE_COSINE, .warmup = steps / 10, .steps = steps - steps / 10};
    ng_optimizer *adam = ng_adamw_new(net, 0.1, .lr = 3e-3, .schedule = schedule);
    ng_rng rng = ng_rng_seeded(0);
    const int every = steps < 5 ? 1 : steps / 5;
    puts("  step  loss of the text  of its last tenth, unseen");
    for (int step = 1; step <= steps && !ng_failed(); step++) {
        ng_tensor *loss = loss_of(t, net, tape, &rng, 0, t->train);
        if (ng_backward(tape, loss)) break;
        ng_clip_grad_norm(net, 1);
        if (ng_optimizer_step(adam)) break;
        const double value = ng_item(loss);
        ng_tape_reset(tape);
        if (step % every == 0 || step == 1)
            printf("%6d  %16.2f  %24.2f\n", step, value, validate(t, net, tape)), fflush(stdout);
    }
    ng_optimizer_free(adam);
}

/* ---- Writing ---- */

/* Draws a token with the probabilities softmax(logits / temperature) of a row of logits. */
static int draw(const ng_tensor *logits, int64_t row, int kinds, ng_rng *rng)
{
    const double temperature = 0.7;
    double weight[256], sum = 0;
    for (int i = 0; i < kinds; i++)
        sum += weight[i] = exp(ng_get(logits, row * kinds + i) / temperature);
    double left = sum * ng_rng_uniform(rng);
    for (int i = 0; i < kinds; i++)
        if ((left -= weight[i]) < 0) return i;
    return kinds - 1;
}

/* Prints the first CONTEXT characters of the unseen tenth, and what the network writes on. Each
 * token is drawn given the last CONTEXT tokens. */
static void write_sample(const text *t, ng_module *net, ng_tape *tape)
{
    int64_t tokens[CONTEXT + SAMPLE];
    ng_rng rng = ng_rng_seeded(1);
    memcpy(tokens, t->tokens + t->train, CONTEXT * sizeof *tokens);
    ng_eval(net);
    ng_tape_set_recording(tape, false);
    for (int i = 0; i < CONTEXT; i++) putchar(t->byte_of[tokens[i]]);
    printf(" [...] ");
    for (int i = 0; i < SAMPLE && !ng_failed(); i++, ng_tape_reset(tape)) {
        ng_tensor *ids =
            ng_tape_own(tape, ng_tensor_from_array(NG_I64, NG_SHAPE(1, CONTEXT), tokens + i));
        const ng_tensor *logits = ng_forward(net, tape, ids); /* (1, CONTEXT, kinds) */
        tokens[CONTEXT + i] = logits ? draw(logits, CONTEXT - 1, t->kinds, &rng) : 0;
        putchar(t->byte_of[tokens[CONTEXT + i]]);
    }
    puts("");
}

int main(int argc, char **argv)
{
    text t = {0};
    const int steps = argc > 1 ? atoi(argv[1]) : STEPS;
    if (steps < 1) return fprintf(stderr, "usage: 5_transformer [STEPS]\n"), 2;
    if (!read_text(&t, "examples/data/opticks.txt")) return 1;
    ng_module *net =
        ng_transformer_new(t.kinds, .dim = WIDTH, .heads = HEADS, .layers = LAYERS,
                           .length = CONTEXT, .norm = ng_norm_layer, .placement = NG_NORM_PRE);
    ng_tape *tape = ng_tape_new();
    printf("%lld characters of %d kinds; %lld parameters; to know nothing is a loss of ln %d = "
           "%.2f\n\n",
           (long long)t.count, t.kinds, (long long)ng_parameter_count(net), t.kinds, log(t.kinds));
    train(&t, net, tape, steps);
    printf("\n%d unseen characters, [...], and what the network writes on:\n\n", CONTEXT);
    write_sample(&t, net, tape);
    if (ng_failed()) fprintf(stderr, "5_transformer: %s\n", ng_error_text());
    ng_tape_free(tape), ng_module_free(net), free(t.tokens);
    return ng_failed();
}
