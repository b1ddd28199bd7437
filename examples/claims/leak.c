/* The dependence of a causal transformer block's output on later positions and on other sequences
 * of the batch, by its derivatives. */
#include "lab.h"

enum { LENGTH, WIDTH };
static option sizes[] = {[LENGTH] = {"length", "positions of a sequence", .normal = 16, .quick = 4},
                         [WIDTH] = {"width", "features", .normal = 32},
                         {0}};

static const lab_experiment experiment = {
    .id = "leak",
    .source = "documents 000 and 003; Ba, Kiros & Hinton 2016, section 3",
    .claim = "layer normalization suits autoregressive models and does not depend on the batch; "
             "batch normalization does not suit sequences",
    .method = "One causal transformer block, x (4, 16, 32) random, in train mode. For each "
              "position t of the first sequence the output is contracted with random numbers and "
              "differentiated with respect to x. Measured: the size of the gradient at the "
              "positions after t, and in the other sequences, relative to its largest size at any "
              "position. BatchNorm takes its statistics over all positions of all sequences; with "
              "its running statistics (eval mode) it is a control.",
    .rule = "both relative sizes are below 1e-12 with a norm of single positions and in eval mode, "
            "and above 1e-3 with BatchNorm in train mode",
    .dtype = "float64",
    .seeds = 20,
    .sizes = sizes};

enum { KINDS = 4, SEQUENCES = 4, HEADS = 4 };
static const struct {
    const char *name, *norm;
    ng_norm_maker *make;
    bool eval, leaks;
} kinds[KINDS] = {{"BatchNorm", "BatchNorm", ng_norm_batch, false, true},
                  {"BatchNorm in eval mode", "BatchNorm", ng_norm_batch, true, false},
                  {"LayerNorm", "LayerNorm", ng_norm_layer, false, false},
                  {"RMSNorm", "RMSNorm", ng_norm_rms, false, false}};

/* Sets sizes[t][s] to |d y_t . v / d x_s| in the first sequence, and others[t] to the largest in
 * another one. */
static void measure(int kind, uint64_t seed, double *size, double *others)
{
    const int64_t length = get_whole(LENGTH), width = get_whole(WIDTH);
    ng_rng rng = ng_rng_seeded(seed);
    ng_module *net =
        ng_transformer_block_new(width, HEADS, .norm = kinds[kind].make, .causal = true);
    ng_module_init(net, seed);
    ng_module_to(net, NG_F64);
    if (kinds[kind].eval) ng_eval(net);
    ng_tape *tape = ng_tape_new();
    for (int64_t t = 0; t < length; t++) {
        const ng_shape shape = NG_SHAPE(SEQUENCES, length, width);
        ng_rng same = ng_rng_seeded(seed + 1000);
        ng_tensor *drawn = ng_normal_new(NG_F64, shape, 0, 1, &same);
        ng_tensor *to = ng_normal_new(NG_F64, NG_SHAPE(1, 1, width), 0, 1, &rng);
        ng_tensor *x = ng_variable(tape, drawn);
        ng_tensor *y = ng_slice(tape, ng_forward(net, tape, x), 0, 0, 1);
        ng_tensor *at = ng_mul(tape, ng_slice(tape, y, 1, t, t + 1), to);
        ng_tensor *g = ng_gradient(tape, ng_sum(tape, at), x);
        ng_tensor *lengths = ng_norm(tape, g, .axes = NG_AXES(2)); /* (sequences, positions) */
        for (int64_t s = 0; s < length; s++) size[t * length + s] = ng_at(lengths, 0, s);
        others[t] = 0;
        for (int64_t i = 1; i < SEQUENCES; i++)
            for (int64_t s = 0; s < length; s++) others[t] = fmax(others[t], ng_at(lengths, i, s));
        ng_tensor_free(drawn), ng_tensor_free(to);
        ng_tape_reset(tape);
        still_works();
    }
    ng_tape_free(tape), ng_module_free(net);
}

/* Returns the largest gradient after t and in other sequences, where it should be 0, relative to
 * the largest at any position: the larger of the two, or the smaller if `least`. */
static double share_of(const double *size, const double *others, bool least)
{
    const int length = get_whole(LENGTH);
    double after = 0, elsewhere = 0;
    for (int t = 0; t < length; t++) {
        double largest = 0;
        for (int s = 0; s < length; s++) largest = fmax(largest, size[t * length + s]);
        for (int s = t + 1; s < length; s++) after = fmax(after, size[t * length + s] / largest);
        elsewhere = fmax(elsewhere, others[t] / largest);
    }
    return least ? fmin(after, elsewhere) : fmax(after, elsewhere);
}

static void measure_kind(int kind)
{
    const int length = get_whole(LENGTH);
    const bool leaks = kinds[kind].leaks;
    double *size = lab_numbers(length * length), *others = lab_numbers(length);
    double *first = lab_numbers(length * length), *shares = lab_numbers(lab_seeds());
    for (int seed = 0; seed < lab_seeds() && still_works(); seed++) {
        measure(kind, lab_seed(seed), size, others);
        shares[seed] = share_of(size, others, leaks);
        for (int i = 0; i < length * length && seed == 0; i++) first[i] = size[i];
    }
    FILE *rows = put_block(kinds[kind].name, "output         input          size\n");
    for (int t = 0; t < length; t++)
        for (int s = 0; s < length; s++)
            fprintf(rows, "%-14d %-14d %.8g\n", t, s, first[t * length + s]);
    lab_judge(kinds[kind].norm, shares, leaks ? lab_above(1e-3) : lab_below(1e-12),
              "gradient to later positions and other sequences, share of the largest%s",
              kinds[kind].eval ? ", eval mode" : "");
}

int main(int argc, char **argv)
{
    lab_begin(argc, argv, &experiment);
    lab_data("causal block, width %d, %d heads, %d positions", get_whole(WIDTH), HEADS,
             get_whole(LENGTH));
    for (int kind = 0; kind < KINDS; kind++) measure_kind(kind);
    return lab_end();
}
