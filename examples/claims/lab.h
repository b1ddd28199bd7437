/* The frame of all experiments: options, progress, networks for the digits, statistics over seeds,
 * the .dat file, the figure, and a verdict on each part of the claim.
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
 *         lab_data("loss by epoch; network 64-%d-10", lab_whole(WIDTH));
 *         lab_curves *curves = lab_curves_new("epoch", "%s", "LayerNorm");
 *         for (int seed = 0; seed < lab_seeds() && lab_goes_on(); seed++) {
 *             lab_progress(seed, lab_seeds(), "seed %d", seed);
 *             ...
 *             lab_log(curves, seed, "loss", epoch, loss);
 *         }
 *         lab_judge((lab_part){"LayerNorm", losses, .side = LAB_BELOW, .threshold = 1}, "loss");
 *         return lab_end();
 *     }
 *
 * The first failure ends the program without saving anything. */
#ifndef CLAIMS_LAB_H
#define CLAIMS_LAB_H

#include <math.h>
#include <normgrad.h>

/* ---- The experiment ----------------------------------------------------------------------- */

/* A numeric setting of the experiment, which is also its option --NAME. */
typedef struct {
    const char *name, *meaning;
    double normal, quick; /* the default, and the default with --quick (0: the same) */
    bool fraction;        /* need not be a whole number */
    int least, most;      /* the range (0: 1, 1e9) */
    int multiple;         /* the value must be a multiple of this (0: 1) */
    double value;         /* in this run; set by lab_begin */
} lab_size;

typedef struct {
    const char *id;     /* name of the claim and of the files */
    const char *source; /* for example "Zhang & Sennrich 2019, table 1; document 001" */
    const char *claim;  /* the claim, in a sentence */
    const char *method; /* what this program measures, in lines of at most 90 columns */
    const char *rule;   /* the condition under which a part of the claim holds */
    const char *figure; /* drawn by plots/FIGURE.gp; default: id */
    const char *dtype;  /* of the computation; default: float32 */
    int seeds, quick_seeds;
    lab_size *sizes; /* ends with a size without a name; NULL: none */
} lab_experiment;

/* Reads the options and prints the opening. Exits on --help and on a wrong option. */
void lab_begin(int argc, char **argv, const lab_experiment *experiment);

int lab_whole(int size);      /* returns the value of sizes[size] in this run */
double lab_number(int size);  /* the same for a fraction */
int lab_seeds(void);          /* returns the number of seeds, lab_seed(0), lab_seed(1)... */
uint64_t lab_seed(int index); /* returns --seed + index */

/* Tuning seeds, which are not scored: they choose hyperparameters such as the learning rate. */
enum { LAB_TUNING_SEEDS = 3 };
int lab_tuning_seeds(void); /* returns their number; 1 with --quick */
uint64_t lab_tuning_seed(int index);

/* Returns a learning rate, `start` times a power of 2, at which the median over the tuning seeds of
 * score(context, rate, seed), a loss, is lower than at half and at twice the rate. It doubles or
 * halves the rate from `start` as long as the loss improves, so there is no edge of a grid. NaN
 * counts as Inf. With --quick it returns `start`. */
double lab_best_rate(double start, double score(void *context, double rate, uint64_t seed),
                     void *context);

/* Shows the progress (`done` of `total`) and the current task. */
void lab_progress(double done, double total, const char *format, ...) NG_PRINTF(3, 4);

/* Returns true, or ends the program with the library's error if there is one. For loops. */
bool lab_goes_on(void);

/* Returns `count` zeros that live until the program ends. */
double *lab_numbers(int64_t count);

/* Returns the numbers of a text file of the project, `columns` in each line but those with #, and
 * sets how many lines there are. They live until the program ends. */
double *lab_table(const char *name, int columns, int *rows);

/* ---- The data file ------------------------------------------------------------------------
 *
 * PREFIX.dat has a first line with its content, the seeds, the dtype and the version, then blocks,
 * two blank lines apart. Each block has a name (for gnuplot's `index`) and a line of column names.
 * An incomplete file is never written. */
void lab_data(const char *format, ...) NG_PRINTF(1, 2);
void lab_block(const char *name, const char *columns);
void lab_put(const double *values, int count); /* one row; NaN is written "?" (missing) */
#define lab_row(...)                                                                               \
    lab_put((const double[]){__VA_ARGS__}, (int)(sizeof(double[]){__VA_ARGS__} / sizeof(double)))

/* A block of curves, which each seed logs. The first column has the name `x`; `format` gives the
 * block's name. A series has the columns of ng_history_summary_new: NAME is the median over the
 * seeds, NAME_low and NAME_high are the quartiles, NAME_min and NAME_max the extremes. The last
 * column, seeds, is how many have logged there. Blocks of curves follow the others in the file. */
typedef struct lab_curves lab_curves;
lab_curves *lab_curves_new(const char *x, const char *format, ...) NG_PRINTF(2, 3);

/* Logs values of the seed with this index at x, one for each series:
 *     lab_log(curves, seed, "loss rate", epoch, loss, rate); */
void lab_log_values(lab_curves *curves, int seed, const char *series, double x,
                    const double *values);
#define lab_log(curves, seed, series, x, ...)                                                      \
    lab_log_values(curves, seed, series, x, (const double[]){__VA_ARGS__})

/* ---- The verdicts -------------------------------------------------------------------------
 *
 * A claim has parts, usually one for each norm and setting. A part measures one number for each
 * seed, such as a norm's accuracy less that of no norm from the same split and weights. The effect
 * is the median of these numbers. Its interval, from the sign test, assumes no distribution and
 * contains the true median with probability 1 - 0.05 / m for each of m parts, so with 95 % for all
 * parts together. A part claims that the effect is above or below a threshold, or within a distance
 * of a value. The part holds if the whole interval satisfies this, fails if none of it does, and is
 * inconclusive otherwise, also if there are too few seeds for an interval: it needs 6 for one part,
 * 9 for 12. */
typedef enum { LAB_ABOVE, LAB_BELOW, LAB_WITHIN } lab_side;

typedef struct {
    const char *norm;     /* "BatchNorm"; NULL: the part is not about one norm */
    const double *values; /* one for each seed: lab_seeds(), or .count if set; NaN is left out */
    int count;
    lab_side side;
    double threshold;
    double around; /* LAB_WITHIN: the value that the effect should be near */
} lab_part;

/* Adds a part. `format` gives its name: what is compared, where and in which unit, in at most 100
 * characters ("steps to 95 %, Adam, own rates, as a share of no norm's"). */
void lab_judge(lab_part part, const char *format, ...) NG_PRINTF(2, 3);

/* Writes the data, draws the figure, and prints the rule and a table of the parts. Writes the parts
 * to --verdicts FILE, as tab-separated lines of id, part, norm, effect, low, high, n, threshold,
 * verdict. Returns the exit status, which does not depend on the verdicts. */
int lab_end(void);

/* ---- Numbers ------------------------------------------------------------------------------ */

/* Percentiles of the values that are not NaN, interpolated; Inf counts as largest. */
double lab_percentile(const double *values, int64_t count, double percent);
double lab_median(const double *values); /* over the seeds */

/* The least-squares line y = slope x + offset. Points that are not finite are left out. */
typedef struct {
    double slope, offset;
} lab_line;
lab_line lab_fit(const double *x, const double *y, int count);

/* Returns values[i] / base[i] for each seed, and 1 where both are infinite (neither reached the
 * target). For parts that compare two kinds. */
const double *lab_quotients(const double *values, const double *base);

/* Returns values[i] - base[i] for each seed. */
const double *lab_less(const double *values, const double *base);

/* ---- Digits ------------------------------------------------------------------------------- */

/* A norm over features. `make` is NULL for no norm. */
typedef struct {
    const char *name;
    ng_module *(*make)(int64_t features);
} lab_norm;
extern const lab_norm lab_no_norm, lab_batch_norm, lab_layer_norm, lab_rms_norm;
extern const lab_norm *const lab_norms[4]; /* these, in this order */

/* Returns all 1797 images, x (count, 64) with pixels in 0..1; the caller frees them. Only lab.c
 * reads files, since it knows the program's path, from which they are found. */
ng_dataset *lab_all_digits(void);

/* Splits the digits into LAB_DIGITS for training and 360 for validation; the caller frees both. If
 * 0 < few < LAB_DIGITS, only `few` of the training images are kept. */
enum { LAB_DIGITS = 1437 };
void lab_digits(uint64_t seed, int64_t few, ng_dataset **train, ng_dataset **validate);

/* Returns 64 - (Linear, norm, ReLU) x depth - 10 with weights drawn from `seed`. */
ng_module *lab_network(const lab_norm *norm, int64_t width, int depth, uint64_t seed);

/* The same with another activation instead of ReLU, ng_tanh_new for example. */
ng_module *lab_network_of(const lab_norm *norm, ng_module *activation(void), int64_t width,
                          int depth, uint64_t seed);

/* Draws every weight matrix from N(0, 2 / fan_in) and sets biases to 0, the usual choice for ReLU
 * without a norm. He et al. 2015. */
void lab_he_weights(ng_module *net, uint64_t seed);

/* Returns the output of the children `from` to `to` - 1 for x, a part of the forward pass. */
ng_tensor *lab_forward_part(ng_module *net, int from, int to, ng_tape *tape, ng_tensor *x);

/* Trains for one pass in batches, in an order given by `epoch`, without a last batch of one sample.
 * Returns the mean of the batches' losses. */
double lab_train_epoch(ng_module *net, ng_optimizer *optimizer, ng_tape *tape, ng_dataset *train,
                       int64_t batch, uint64_t epoch);

/* Mean cross-entropy and fraction of right answers in eval mode, without recording. The network is
 * in train mode afterwards. */
typedef struct {
    double loss, accuracy;
} lab_score;
lab_score lab_evaluate(ng_module *net, ng_tape *tape, ng_dataset *data);

/* ---- Text --------------------------------------------------------------------------------- */

/* Splits the characters of examples/data/opticks.txt into windows of `context` that do not overlap:
 * int64 ids x and y (count, context), where y is one character further. Seven of eight windows, or
 * `few` of these, are for training and the others for validation; the caller frees both. Returns
 * the number of distinct characters. */
int lab_text(uint64_t seed, int64_t context, int64_t few, ng_dataset **train,
             ng_dataset **validate);

#endif
