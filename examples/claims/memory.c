/* The memory that RMSNorm saves: the bytes that the tape keeps for the backward pass, of a fused
 * norm, of a norm composed of small ops, and of a training step. */
#include "lab.h"

enum { ROWS };
static lab_size sizes[] = {[ROWS] = {"rows", "rows of the tensor", .normal = 64, .quick = 4}, {0}};

static const lab_experiment experiment = {
    .id = "memory",
    .source = "document 001",
    .claim = "RMSNorm has a smaller memory footprint than LayerNorm",
    .method =
        "64 rows of 256 to 65536 features are normalized while the tape records. Measured: the\n"
        "bytes that the tape keeps in addition to the result, relative to the input's. Each norm\n"
        "is one fused op, or is composed of mean, product, root and so on, as in programs\n"
        "without fused norms. Then the tape at the end of the forward pass, its peak in a\n"
        "training step, for transformers of 4 blocks of 32 to 288 features. Nothing is random\n"
        "here: the verdicts are on nine widths.\n",
    .rule = "RMSNorm saves over 0.01 of the input's size, fused and composed, and over 0.01 of the "
            "transformer's tape with LayerNorm",
    .seeds = 1,
    .quick_seeds = 1,
    .sizes = sizes};

enum { NORMS = 2, WIDTHS = 9, FORMS = 3, FUSED = 0, STEP = 2, CONTEXT = 32, BATCH = 8 };
static const char *const norms[NORMS] = {"LayerNorm", "RMSNorm"};
static const char *const forms[FORMS] = {"fused", "composed", "transformer"};
static int64_t width_at(int form, int i)
{
    return form == STEP ? (lab_quick() ? 8 : 32) * (i + 1) : 256 << i;
}

/* ---- A norm ---- */

static ng_tensor *fused(ng_tape *tape, ng_tensor *x, ng_tensor *gamma, ng_tensor *beta, bool rms)
{
    return rms ? ng_rms_norm(tape, x, gamma, 1e-6) : ng_layer_norm(tape, x, gamma, beta, 1e-5);
}

static ng_tensor *composed(ng_tape *tape, ng_tensor *x, ng_tensor *gamma, ng_tensor *beta, bool rms)
{
    if (!rms) x = ng_sub(tape, x, ng_mean(tape, x, .axes = NG_AXES(-1), .keepdim = true));
    ng_tensor *square = ng_mean(tape, ng_square(tape, x), .axes = NG_AXES(-1), .keepdim = true);
    ng_tensor *xhat = ng_mul(tape, x, ng_rsqrt(tape, ng_add_scalar(tape, square, 1e-5)));
    ng_tensor *y = ng_mul(tape, xhat, gamma);
    return rms ? y : ng_add(tape, y, beta);
}

/* Returns the bytes kept in addition to the result, relative to the input's. */
static double kept_by_norm(int form, int64_t width, bool rms)
{
    const int64_t rows = lab_whole(ROWS);
    ng_tensor *x = ng_require_grad(ng_ones_new(NG_F32, NG_SHAPE(rows, width)));
    ng_tensor *gamma = ng_require_grad(ng_ones_new(NG_F32, NG_SHAPE(width)));
    ng_tensor *beta = ng_require_grad(ng_zeros_new(NG_F32, NG_SHAPE(width)));
    ng_tape *tape = ng_tape_new();
    const int64_t before = ng_tape_used(tape).bytes_used;
    (form == FUSED ? fused : composed)(tape, x, gamma, beta, rms);
    const double own = 4.0 * (double)(rows * width);
    const double kept = (double)(ng_tape_used(tape).bytes_used - before) - own;
    ng_tape_free(tape), ng_tensor_free(x), ng_tensor_free(gamma), ng_tensor_free(beta);
    lab_goes_on();
    return kept / own;
}

/* ---- A transformer ---- */

/* Returns the bytes of the tape at the end of the forward pass. */
static double kept_by_step(int64_t width, bool rms)
{
    ng_dataset *text, *rest;
    ng_batch batch;
    const int vocabulary = lab_text(lab_seed(0), CONTEXT, 0, &text, &rest);
    ng_module *net = ng_transformer_new(vocabulary, .dim = width, .length = CONTEXT,
                                        .norm = rms ? ng_norm_rms : ng_norm_layer);
    ng_tape *tape = ng_tape_new();
    ng_dataset_batch(text, tape, 0, BATCH, &batch);
    ng_cross_entropy(tape, ng_forward(net, tape, batch.x), batch.y);
    const double kept = (double)ng_tape_used(tape).bytes_used;
    ng_tape_free(tape), ng_module_free(net), ng_dataset_free(text), ng_dataset_free(rest);
    lab_goes_on();
    return kept;
}

/* ---- Main ---- */

static void measure(int form)
{
    double *kept[NORMS], *saved = lab_numbers(WIDTHS);
    char block[64];
    for (int norm = 0; norm < NORMS; norm++) {
        lab_progress(form * NORMS + norm, FORMS * NORMS, "%s, %s", norms[norm], forms[form]);
        kept[norm] = lab_numbers(WIDTHS);
        snprintf(block, sizeof block, "%s, %s", norms[norm], forms[form]);
        lab_block(block, "width kept");
        for (int i = 0; i < WIDTHS; i++) {
            const int64_t width = width_at(form, i);
            kept[norm][i] = form == STEP ? kept_by_step(width, norm == 1) / 1e6
                                         : kept_by_norm(form, width, norm == 1);
            lab_row((double)width, kept[norm][i]);
        }
    }
    for (int i = 0; i < WIDTHS; i++)
        saved[i] = (kept[0][i] - kept[1][i]) / (form == STEP ? kept[0][i] : 1);
    lab_judge((lab_part){"RMSNorm", saved, .count = WIDTHS, .side = LAB_ABOVE, .threshold = 0.01},
              "bytes kept for the backward pass that RMSNorm saves, %s, share of the %s",
              forms[form], form == STEP ? "tape" : "tensor");
}

int main(int argc, char **argv)
{
    lab_begin(argc, argv, &experiment);
    lab_data("%d rows; transformers of 4 blocks, context %d, batches of %d", lab_whole(ROWS),
             CONTEXT, BATCH);
    for (int form = 0; form < FORMS; form++) measure(form);
    return lab_end();
}
