/* The loss of one training on several instruction sets and numbers of threads, beside PyTorch's
 * trainings of the same network. */
#include "lab.h"

enum { STEPS, BATCH, THREADS };
enum { WIDTH = 64, HEADS = 4, LAYERS = 2, CONTEXT = 32 };
static option sizes[] = {
    [STEPS] = {"steps", "of Adam", .normal = 100, .quick = 5, .most = 100},
    [BATCH] = {"batch", "windows of 32 characters in a step", .normal = 8, .most = 1000},
    [THREADS] = {"threads", "of the kernels", .normal = 1, .most = NG_MOST_THREADS},
    {0}};

static const lab_experiment experiment = {
    .id = "reproducible",
    .source = "PyTorch 2.6, tests/golden/make_reproducible.py; PyTorch's issue 88718",
    .claim = "a training has the same loss, to the last bit, with AVX-512, AVX2 and NEON and with "
             "one thread and two; PyTorch's losses drift apart",
    .method =
        "A pre-norm transformer of 2 blocks and 64 features learns the characters of Newton's "
        "Opticks in 100 steps of Adam, in float32. The program runs itself with NORMGRAD_ISA and "
        "--threads set. If it was built for 64-bit ARM as well (make BUILD=build/aarch64 "
        "CC=aarch64-linux-gnu-gcc), it takes 4 steps with NEON under qemu. Two threads are used on "
        "batches of 32 and compared with one. Compared otherwise: the loss of each step with that "
        "of the first instruction set and one thread, as a share of it. PyTorch's network has the "
        "same layers, text and optimizer, but draws of its own. ATen, oneDNN and OpenBLAS were "
        "told which instruction set to use; two threads are ATen's.",
    .rule = "the largest difference of a loss is 0; PyTorch's is above 1e-6",
    .seeds = 8,
    .sizes = sizes};

/* ---- The training ---- */

/* PyTorch draws embeddings with a deviation of 1, 50 times that of this library's transformers. */
static void begin_like_pytorch(ng_module *net, uint64_t seed)
{
    ng_rng rng = ng_rng_seeded(seed);
    ng_named_tensor p;
    for (int i = 0; ng_module_parameter(net, i, &p); i++)
        if (strstr(p.name, "embedding.") || strstr(p.name, "positions."))
            ng_fill_normal(p.tensor, 0, 1, &rng);
}

static void train(uint64_t seed, double *losses)
{
    ng_dataset *text, *rest;
    ng_batch batch;
    const int vocabulary = lab_text(seed, CONTEXT, 0, &text, &rest);
    ng_module *net = ng_transformer_new(vocabulary, .dim = WIDTH, .heads = HEADS, .layers = LAYERS,
                                        .length = CONTEXT);
    ng_module_init(net, seed);
    begin_like_pytorch(net, seed);
    ng_optimizer *adam = ng_adam_new(net, .lr = 0.02);
    ng_tape *tape = ng_tape_new();
    const int64_t size = get_whole(BATCH), batches = ng_dataset_count(text) / size;
    for (int step = 0; step < get_whole(STEPS) && still_works(); step++) {
        ng_dataset_batch(text, tape, step % batches, size, &batch);
        ng_tensor *loss = ng_cross_entropy(tape, ng_forward(net, tape, batch.x), batch.y);
        if (ng_backward(tape, loss) || ng_optimizer_step(adam)) break;
        losses[step] = ng_item(loss);
        ng_tape_reset(tape);
    }
    still_works();
    ng_tape_free(tape), ng_optimizer_free(adam), ng_module_free(net);
    ng_dataset_free(text), ng_dataset_free(rest);
}

/* What a run of its own prints: a line for each loss. */
#define OF_ITS_OWN "NORMGRAD_REPRODUCIBLE"
static int print_losses(void)
{
    double *losses = lab_numbers(get_whole(STEPS));
    for (int seed = 0; seed < lab_seeds(); seed++) {
        train(lab_seed(seed), losses);
        for (int step = 0; step < get_whole(STEPS); step++) printf("loss %a\n", losses[step]);
    }
    return 0;
}

/* ---- Runs ---- */

/* Runs are compared with another one. Few steps show a difference, since losses that differ once go
 * on to differ. NEON is emulated, which is slow, and only large batches are shared among
 * threads. */
enum { AVX512, AVX2, NEON, ONE_THREAD, TWO_THREADS, RUNS };
static const struct {
    const char *name, *isa;
    int with, steps, batch, threads;
} runs[RUNS] = {[AVX512] = {"AVX-512", "avx512", AVX512, 100, 8, 1},
                [AVX2] = {"AVX2", "avx2", AVX512, 100, 8, 1},
                [NEON] = {"NEON", "neon", AVX512, 4, 8, 1},
                [ONE_THREAD] = {"one thread", "avx2", ONE_THREAD, 40, 32, 1},
                [TWO_THREADS] = {"two threads", "avx2", ONE_THREAD, 40, 32, 2}};
static int steps_of(int which)
{
    return runs[which].steps < get_whole(STEPS) ? runs[which].steps : get_whole(STEPS);
}

/* Starts a run. The runs share the machine's processors. */
static FILE *start(int which, const char *program)
{
    char command[4096];
    const char *slash = strrchr(program, '/'), *name = slash ? slash + 1 : program;
    const int folder = slash && slash - program < 1000 ? (int)(slash - program) : 0;
    snprintf(command, sizeof command,
             OF_ITS_OWN "=1 NORMGRAD_ISA=%s %s '%.*s%s%.999s' --seeds %d --seed %llu --steps %d "
                        "--batch %d --threads %d 2>/dev/null",
             runs[which].isa, which == NEON ? "qemu-aarch64 -L /usr/aarch64-linux-gnu" : "", folder,
             program, which == NEON ? "/../aarch64/examples/" : &"/"[!slash], name, lab_seeds(),
             (unsigned long long)lab_seed(0), steps_of(which), runs[which].batch,
             runs[which].threads);
    return popen(command, "r");
}

/* Returns the losses, one for each seed and step, or NULL if this machine cannot do the run. */
static double *losses_of(int which, FILE *pipe)
{
    char row[128];
    const int count = lab_seeds() * steps_of(which);
    double *losses = lab_numbers(count);
    int found = 0;
    while (pipe && fgets(row, sizeof row, pipe))
        if (strncmp(row, "loss ", 5) == 0 && found < count) losses[found++] = strtod(row + 5, NULL);
    const bool ended = pipe && pclose(pipe) == 0;
    return ended && found == count ? losses : NULL;
}

/* ---- Main ---- */

/* Losses of a run: those of a seed begin `each` after those of the seed before, `stride` apart. */
typedef struct {
    const double *losses;
    int each, stride;
} run;
static double loss_at(run r, int seed, int step)
{
    return r.losses[(int64_t)seed * r.each + (int64_t)step * r.stride];
}

/* Logs the losses and how far each is from those of `with`, as a share. Returns the largest by
 * seed. */
static double *compare(const char *name, run r, run with, int steps)
{
    curve_set *curves = new_curves("step", "%s", name);
    double *most = lab_numbers(lab_seeds());
    for (int seed = 0; seed < lab_seeds(); seed++)
        for (int step = 0; step < steps; step++) {
            const double loss = loss_at(r, seed, step), other = loss_at(with, seed, step);
            const double off = fabs(loss - other) / other;
            most[seed] = fmax(most[seed], off);
            log_curves(curves, seed, "loss off", step + 1, loss, off);
        }
    return most;
}

int main(int argc, char **argv)
{
    lab_begin(argc, argv, &experiment);
    ng_set_threads(get_whole(THREADS));
    if (getenv(OF_ITS_OWN)) return print_losses();
    lab_data("Newton's Opticks; %d blocks, width %d, context %d, batch %d, Adam at 0.02", LAYERS,
             WIDTH, CONTEXT, get_whole(BATCH));
    run own[RUNS];
    FILE *pipes[RUNS];
    for (int which = 0; which < RUNS; which++) pipes[which] = start(which, argv[0]);
    for (int which = 0; which < RUNS; which++) {
        own[which] = (run){losses_of(which, pipes[which]), steps_of(which), 1};
        const int with = own[runs[which].with].losses ? runs[which].with : which;
        if (!own[which].losses) {
            printf("%s: not run, this machine cannot\n", runs[which].name);
            continue;
        }
        const double *most = compare(runs[which].name, own[which], own[with], steps_of(which));
        if (which != with)
            lab_judge(NULL, most, lab_below(1e-30), "largest difference of a loss, %s, normgrad",
                      runs[which].name);
    }
    /* PyTorch's: seed, step, AVX-512, AVX2, two threads. */
    enum { COLUMNS = 5, AT = 2, OTHERS = 2, TABLE_STEPS = 100 };
    static const char *const theirs[OTHERS] = {"AVX2", "two threads"};
    ng_dataset *file =
        ng_dataset_read_csv(find_file("tests/golden", "reproducible.txt").text, .delimiter = ' ',
                            .header = true, .no_label = true, .dtype = NG_F64);
    still_works();
    const double *table = ng_data_f64(ng_dataset_x(file));
    const run base = {table + AT, TABLE_STEPS * COLUMNS, COLUMNS};
    for (int i = 0; i < OTHERS; i++) {
        char name[64];
        snprintf(name, sizeof name, "PyTorch, %s", theirs[i]);
        const run r = {table + AT + 1 + i, TABLE_STEPS * COLUMNS, COLUMNS};
        lab_judge(NULL, compare(name, r, base, get_whole(STEPS)), lab_above(1e-6),
                  "largest difference of a loss, %s, PyTorch 2.6", theirs[i]);
    }
    ng_dataset_free(file);
    return lab_end();
}
