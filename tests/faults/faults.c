/* How often random directions miss a fault, and how often they call a right gradient wrong.
 *
 * Plants faults in gradients of 128 elements: some elements are off, by so much that the fault e
 * has the length that gives the bound of gradcheck.h, (2e-9 |gradient| / |e|)^d, a value that can
 * be measured. Prints the share of them that d directions miss, beside the bound. Then checks every
 * op and layer of tests/cases with many seeds.
 *
 *     faults [faults] [checks]     10000 and 100000
 *
 * Exit status: 0 if no share is above its bound and no right gradient was called wrong. */
#include "../cases/cases.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 8, COLUMNS = 16, SIZE = ROWS * COLUMNS, MOST_DIRECTIONS = 3, CALLS = 5 };

/* ---- Plant ----------------------------------------------------------------------------------- */

typedef struct {
    ng_check_call *call; /* of what is right */
    double share;        /* of the elements that are off, and one more */
    double bound;        /* 2e-9 |gradient| / |e| */
    bool alike;          /* off in the same direction, else in random ones */
    uint64_t seed;
} fault;

/* dx = dy and a fault. dy is the gradient of what follows, at x. */
static void spoil(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    const fault *planted = *(const fault *const *)node->attributes;
    ng_rng rng = ng_rng_seeded(planted->seed);
    double factors[SIZE] = {0}, all = 0, off = 0;
    const int64_t one = ng_rng_below(&rng, SIZE);
    for (int64_t i = 0; i < SIZE; i++) {
        const double g = ng_data_f64(dy)[i];
        const bool here = i == one || ng_rng_uniform(&rng) < planted->share;
        factors[i] = !here ? 0 : planted->alike || ng_rng_uniform(&rng) < 0.5 ? 1 : -1;
        all += g * g;
        off += here ? g * g : 0;
    }
    const double size = 2e-9 / planted->bound * sqrt(all / off);
    dx[0] = ng_result(tape, NG_F64, ng_shape_of(dy));
    for (int64_t i = 0; dx[0] && i < SIZE; i++)
        ng_data_f64(dx[0])[i] = ng_data_f64(dy)[i] * (1 + size * factors[i]);
}

static ng_tensor *spoiled_call(ng_tape *tape, ng_tensor *const *in, void *context)
{
    static const ng_op op = {.name = "spoiled", .gradient = spoil};
    const fault *planted = context;
    ng_tensor *y = ng_result(tape, NG_F64, ng_shape_of(in[0]));
    if (!y) return NULL;
    memcpy(ng_data_f64(y), ng_data_f64(in[0]), SIZE * sizeof(double));
    y = ng_record(tape, &op, y, in, 1, &planted, sizeof planted);
    return planted->call(tape, &y, NULL);
}

#define CALL(name, expression)                                                                     \
    static ng_tensor *name(ng_tape *tape, ng_tensor *const *in, void *context)                     \
    {                                                                                              \
        (void)context;                                                                             \
        return expression;                                                                         \
    }
CALL(gelu, ng_gelu(tape, in[0]))
CALL(exponential, ng_exp(tape, in[0]))
CALL(layer_norm, ng_layer_norm(tape, in[0], NG_NONE, NG_NONE, .eps = 1e-5))
CALL(batch_norm, ng_batch_norm(tape, in[0], NG_NONE, NG_NONE, NG_NONE, NG_NONE, .training = true))
CALL(softmax, ng_softmax(tape, in[0]))

static bool is_missed(fault planted, int directions)
{
    ng_rng rng = ng_rng_seeded(planted.seed + 1);
    ng_tensor *x = ng_normal_new(NG_F64, NG_SHAPE(ROWS, COLUMNS), 0, 1, &rng);
    const ng_check_report report =
        ng_check_function(spoiled_call, &x, 1, .context = &planted, .mode = NG_CHECK_FAST,
                          .directions = directions, .seed = planted.seed);
    ng_tensor_free(x);
    return report.passed;
}

/* Plants `count` faults of one kind. Returns whether no more than the bound's share was missed. */
static bool plant(double share, double bound, int directions, int count, uint64_t *seed)
{
    static ng_check_call *const calls[CALLS] = {gelu, exponential, layer_norm, batch_norm, softmax};
    int missed = 0;
    for (int i = 0; i < count; i++) {
        const fault planted = {calls[i % CALLS], share, bound, i / CALLS % 2, *seed += 2};
        missed += is_missed(planted, directions);
    }
    const double rate = missed / (double)count, stated = pow(bound, directions);
    printf("%9.1e %8.3g %10d %8d %10.4f %10.4f%s\n", 2e-9 / bound, fmax(share, 1.0 / SIZE),
           directions, count, rate, stated, rate <= stated ? "" : "  above the bound");
    return rate <= stated;
}

static bool plant_all(int count)
{
    static const double shares[] = {0, 0.03, 0.3, 1}, bounds[] = {0.8, 0.4, 0.2};
    uint64_t seed = 1;
    bool below = true;
    puts("  |e|/|g|    share directions   faults     missed     stated");
    for (int s = 0; s < 4; s++)
        for (int b = 0; b < 3; b++)
            for (int d = 1; d <= MOST_DIRECTIONS; d++)
                below = plant(shares[s], bounds[b], d, (count + 35) / 36, &seed) && below;
    return below;
}

/* ---- Right gradients ------------------------------------------------------------------------- */

static bool check_right(int count)
{
    const gradient_case *(*const lists[])(int) = {op_case, layer_case};
    const int cases[] = {case_count(op_case), case_count(layer_case)};
    int alarms = 0, unknown = 0;
    for (int i = 0; i < count; i++) {
        const int place = i % (cases[0] + cases[1]), list = place >= cases[0];
        const gradient_case *spec = lists[list](place - list * cases[0]);
        const ng_check_report report = check_case(
            spec, (ng_check_options){.mode = NG_CHECK_FAST, .seed = (uint64_t)(i - place)});
        /* Of a transformer's derivatives of 1e-8; of a hardtanh that is flat at all its inputs. */
        const bool is_unknown = strstr(report.message, "cannot be told from rounding") ||
                                strstr(report.message, "nothing was tested");
        unknown += is_unknown;
        alarms += !report.passed && !is_unknown;
        if (!report.passed && !is_unknown) ng_check_print(stdout, spec->name, &report);
    }
    printf("%d right checks: %d alarms, %d that say nothing is known\n", count, alarms, unknown);
    return alarms == 0;
}

int main(int argc, char **argv)
{
    const bool below = plant_all(argc > 1 ? atoi(argv[1]) : 10000);
    const bool silent = check_right(argc > 2 ? atoi(argv[2]) : 100000);
    return below && silent && fflush(stdout) == 0 ? 0 : 1;
}
