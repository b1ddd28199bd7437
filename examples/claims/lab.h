/* What the experiments share: options, progress, networks for the digits, numbers over seeds, the
 * .dat file, the figure, and the verdict on each part of the claim.
 *
 *     enum { WIDTH, EPOCHS };
 *     static lab_size sizes[] = {
 *         [WIDTH] = {"width", "features of each hidden layer", .normal = 128, .quick = 32},
 *         [EPOCHS] = {"epochs", "passes over the data", .normal = 30, .quick = 3},
 *         {0}};
 *
 *     int main(int argc, char **argv)
 *     {
 *         lab_begin(argc, argv, &(lab_experiment){.id = "example", ..., .sizes = sizes});
 *         for (int seed = 0; seed < lab_seeds() && lab_goes_on(); seed++) {
 *             lab_progress(seed, lab_seeds(), "seed %d", seed);
 *             ...
 *         }
 *         lab_data("loss by epoch; network 64-%d-10", lab_whole(WIDTH));
 *         lab_block("LayerNorm", "epoch loss loss_low loss_high");
 *         lab_row(1, loss.median, loss.quarter, loss.three_quarters);
 *         lab_judge((lab_part){"LayerNorm", losses, .side = LAB_BELOW, .threshold = 1}, "loss");
 *         return lab_end();
 *     }
 *
 * The first failure ends the program: nothing of half an experiment is worth saving.
 */
#ifndef CLAIMS_LAB_H
#define CLAIMS_LAB_H

#include "../numbers.h"
#include <normgrad.h>

/* ---- The experiment ----------------------------------------------------------------------- */

/* A number that the experiment can be run with; also its option, --NAME. */
typedef struct {
    const char *name, *meaning;
    double normal, quick; /* the default, and that with --quick (0: the same) */
    bool fraction;        /* not a whole number */
    int least, most;      /* what may be given (0: 1, 1e9)... */
    int multiple;         /* ...and of what it is to be a multiple (0: of 1) */
    double value;         /* of this run; lab_begin sets it */
} lab_size;

typedef struct {
    const char *id;     /* of the claim */
    const char *source; /* who says so: "Zhang & Sennrich 2019, table 1; document 001" */
    const char *claim;  /* what they say, in a sentence */
    const char *method; /* what this program does: lines of at most 90 columns, each with its end */
    const char *rule;   /* when a part of the claim holds */
    const char *figure; /* drawn by plots/FIGURE.gp; default: id */
    const char *dtype;  /* that it computes in; default: float32 */
    int seeds, quick_seeds;
    lab_size *sizes; /* the last has no name; NULL: none */
} lab_experiment;

/* Reads the options and prints the opening. Exits on --help and on a bad option. */
void lab_begin(int argc, char **argv, const lab_experiment *experiment);

int lab_whole(int size);      /* the value of sizes[size] in this run */
double lab_number(int size);  /* the same of a fraction */
int lab_seeds(void);          /* runs of each kind: lab_seed(0) to lab_seed(lab_seeds() - 1) */
uint64_t lab_seed(int index); /* --seed + index */

/* Seeds that are not scored: what is chosen (a learning rate) is chosen by them. */
enum { LAB_TUNING_SEEDS = 3 };
int lab_tuning_seeds(void); /* that many; one with --quick */
uint64_t lab_tuning_seed(int index);

/* The rate, `start` times a power of 2, at which the median over the tuning seeds of score(context,
 * rate, seed), a loss, is lower than at half and at twice as much: doublings or halvings from
 * `start`, as long as they help, so that it is never the edge of a grid. NaN counts as Inf; with
 * --quick it is `start`. */
double lab_best_rate(double start, double score(void *context, double rate, uint64_t seed),
                     void *context);

bool lab_quick(void); /* a smoke run: figures and verdict mean nothing */

/* Says how far the whole is (`done` of `total`), and what is being done. */
void lab_progress(double done, double total, const char *format, ...) NG_PRINTF(3, 4);

/* Ends the program, with the library's last error, if there is one; else true. For loops. */
bool lab_goes_on(void);

/* Memory for `count` numbers, all 0; it lives to the end of the program. */
double *lab_numbers(int64_t count);

/* ---- The data file ------------------------------------------------------------------------
 *
 * PREFIX.dat: a first line with what it holds, the seeds, the dtype and the version; blocks, two
 * blank lines apart, each with a name (for gnuplot's `index`) and a line of column names. It is
 * complete or not there. */
void lab_data(const char *format, ...) NG_PRINTF(1, 2);
void lab_block(const char *name, const char *columns);
void lab_put(const double *values, int count); /* one row; NaN is written "?" (missing) */
#define lab_row(...)                                                                               \
    lab_put((const double[]){__VA_ARGS__}, (int)(sizeof(double[]){__VA_ARGS__} / sizeof(double)))

/* ---- The verdicts -------------------------------------------------------------------------
 *
 * A claim has parts, mostly one for each norm and setting. Of each part something is measured seed
 * by seed (a norm's accuracy less that of no norm from the same split and weights, say): the effect
 * is the median of these numbers, and its interval has two of them as ends, so that the true median
 * lies between them with 95 % for all parts of the experiment together, whatever the numbers'
 * distribution (the sign test's interval; each part of m gets 1 - 0.05 / m). The claim asks that
 * the effect be above a threshold, or below, or within so much of a value: a part holds if the
 * whole interval is there, fails if none of it is, and is inconclusive otherwise, as where there
 * are too few seeds for an interval: 6 for one part, 9 for 12. */
typedef enum { LAB_ABOVE, LAB_BELOW, LAB_WITHIN } lab_side;

typedef struct {
    const char *norm;     /* "BatchNorm"; NULL: the part is not of one norm */
    const double *values; /* one a seed, lab_seeds() of them unless .count says; NaN is left out */
    int count;
    lab_side side;
    double threshold;
    double around; /* LAB_WITHIN: what the effect is to be near */
} lab_part;

/* Adds a part. `format` gives its name: what is compared, where, and as what, in at most 100
 * characters ("steps to 95 %, Adam, own rates, as a share of no norm's"). */
void lab_judge(lab_part part, const char *format, ...) NG_PRINTF(2, 3);

/* Finishes the data, has gnuplot draw it, prints the rule and a table of the parts, and writes them
 * to --verdicts FILE: lines of id, part, norm, effect, low, high, n, threshold, verdict, with tabs
 * between. Returns the program's exit status: success whatever the verdicts. */
int lab_end(void);

/* ---- Numbers ------------------------------------------------------------------------------ */

/* Of the values that are not NaN; Inf counts as largest. Percentiles are interpolated. */
typedef number_spread lab_spread;
lab_spread lab_spread_of(const double *values, int count);
double lab_percentile(const double *values, int64_t count, double percent);

/* The least-squares line y = slope x + offset; points that are not finite are left out. */
typedef struct {
    double slope, offset;
} lab_line;
lab_line lab_fit(const double *x, const double *y, int count);

/* values[i] / base[i], seed by seed, what a part that compares two kinds judges; 1 where both are
 * infinite, having never arrived. */
const double *lab_quotients(const double *values, const double *base);

/* ---- Curvature ---------------------------------------------------------------------------- */

/* The Hessian of a loss by all parameters of a network, and what is known of its eigenvectors. */
enum { LAB_PARAMETERS = 32, LAB_EIGENVECTORS = 16 };
typedef struct {
    ng_tape *tape;
    ng_tensor *(*loss)(void *context); /* records the loss, on that tape */
    void *context;
    int parameter_count, vector_count;
    ng_tensor *parameters[LAB_PARAMETERS];
    ng_tensor *vectors[LAB_EIGENVECTORS][LAB_PARAMETERS]; /* each of length 1 over all parameters */
} lab_curvature;
lab_curvature lab_curvature_of(ng_module *net, ng_tape *tape, ng_tensor *loss(void *context),
                               void *context, int vectors, uint64_t seed);
void lab_curvature_free(lab_curvature *curvature);

/* The size of the eigenvalue that is largest among vectors orthogonal to the first `index`, by
 * power iteration, v <- H v / |H v|, from the vector found last; it resets the tape. */
double lab_eigenvalue(lab_curvature *curvature, int index, int iterations);

/* ---- Digits ------------------------------------------------------------------------------- */

/* A norm of features: its key for options, its name for figures. `make` is NULL for none. */
typedef struct {
    const char *key, *name;
    ng_module *(*make)(int64_t features);
} lab_norm;
extern const lab_norm lab_no_norm, lab_batch_norm, lab_layer_norm, lab_rms_norm;

/* All 1797 images, pixels in 0..1, x (count, 64), which are the caller's. (Only lab.c reads files:
 * the program's path, from which they are found, is known where the options are read.) */
ng_dataset *lab_all_digits(void);

/* LAB_DIGITS of them to train with and 360 to validate with: copies that are the caller's. With
 * `few` above 0 and below that, the training set is `few` of them. */
enum { LAB_DIGITS = 1437 };
void lab_digits(uint64_t seed, int64_t few, ng_dataset **train, ng_dataset **validate);

/* 64 - (Linear, norm, ReLU) x depth - 10, weights drawn from `seed`. */
ng_module *lab_network(const lab_norm *norm, int64_t width, int depth, uint64_t seed);

/* The same with any activation in ReLU's place, ng_tanh_new say. */
ng_module *lab_network_of(const lab_norm *norm, ng_module *activation(void), int64_t width,
                          int depth, uint64_t seed);

/* Draws every weight matrix anew, N(0, 2 / fan_in), and sets biases to 0: what suits ReLU best
 * without a norm. He et al. 2015. */
void lab_he_weights(ng_module *net, uint64_t seed);

/* What the children `from` to `to` - 1 of a network make of x: part of its forward pass. */
ng_tensor *lab_forward_part(ng_module *net, int from, int to, ng_tape *tape, ng_tensor *x);

/* One pass in batches, in an order given by `epoch`; a last batch of one sample is left out. The
 * mean loss as it went. */
double lab_train_epoch(ng_module *net, ng_optimizer *optimizer, ng_tape *tape, ng_dataset *train,
                       int64_t batch, uint64_t epoch);

/* The same; `after` is called after every step. */
double lab_watch_epoch(ng_module *net, ng_optimizer *optimizer, ng_tape *tape, ng_dataset *train,
                       int64_t batch, uint64_t epoch, void after(void *context), void *context);

/* Mean cross-entropy and share of right answers in eval mode, without recording; the network is
 * in train mode afterwards. */
typedef struct {
    double loss, accuracy;
} lab_score;
lab_score lab_evaluate(ng_module *net, ng_tape *tape, ng_dataset *data);

/* ---- Text --------------------------------------------------------------------------------- */

/* The characters of examples/data/opticks.txt in windows of `context` that do not overlap: int64
 * ids x and y (count, context), y being one character further. Seven windows of eight, or `few` of
 * them, to train with, the others to validate with; both are the caller's. Returns how many kinds
 * of character there are. */
int lab_text(uint64_t seed, int64_t context, int64_t few, ng_dataset **train,
             ng_dataset **validate);

#endif
