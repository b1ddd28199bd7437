/* The football story of document 004: three layers, defenders, midfielders and a striker, learn to
 * score at the right moment. Do they swing between too late and too early, and does LayerNorm stop
 * them? */
#include "lab.h"
#include <math.h>

enum { PASSES, PLAYERS, SITUATIONS };
static lab_size sizes[] = {
    [PASSES] = {"passes", "steps of gradient descent", .normal = 60, .quick = 12},
    [PLAYERS] = {"players", "features of each hidden layer", .normal = 16, .quick = 8},
    [SITUATIONS] = {"situations", "samples", .normal = 64, .quick = 16},
    {0}};

static const lab_experiment experiment = {
    .id = "team",
    .source = "document 004",
    .claim = "Without LayerNorm a team of three layers swings between too late and too early and "
             "learns slowly; with LayerNorm it learns smoothly and sooner",
    .method =
        "Four numbers on the situation (distance, speed of the ball, opponents, angle) ->\n"
        "defenders -> midfielders -> striker -> the second of the goal, which the first attempts\n"
        "miss by 2 on average. With LayerNorm a layer's output is normalized before it is passed\n"
        "on. A pass is a step of gradient descent on the squared error of all situations. They\n"
        "are told in raw units (metres, metres a second, opponents, degrees), or standardized to\n"
        "mean 0 and deviation 1. For each, the learning rate is the power of two at which the\n"
        "team WITHOUT LayerNorm ends with the lowest median miss; the other team gets the same.\n"
        "Swinging: the seconds that the mean error travels beyond its way from first to last.\n",
    .rule = "for raw and for standardized inputs: with LayerNorm the median swinging is below half "
            "of that without, and the last error is lower; holds if all four do, mixed if some",
    .seeds = 15,
    .quick_seeds = 3,
    .sizes = sizes};

enum { RAW, STANDARDIZED, INPUTS, PLAIN = 0, NORMED, TEAMS, FEATURES = 4, RATES = 13 };
static const char *const input_names[] = {[RAW] = "raw", [STANDARDIZED] = "standardized"};
static const char *const team_names[] = {[PLAIN] = "no norm", [NORMED] = "LayerNorm"};
static double rate_of(int i) { return ldexp(1, i - 14); } /* up to 1/4 */

/* ---- One team ----------------------------------------------------------------------------- */

static ng_module *make_team(bool norm, uint64_t seed)
{
    const int players = lab_whole(PLAYERS);
    ng_module *team = ng_sequential_from(NULL, 0);
    for (int layer = 0; layer < 2; layer++) {
        ng_sequential_add(team, ng_linear_new(layer == 0 ? FEATURES : players, players));
        if (norm) ng_sequential_add(team, ng_layer_norm_new(players));
        ng_sequential_add(team, ng_relu_new());
    }
    ng_sequential_add(team, ng_linear_new(players, 1)); /* the striker */
    ng_module_init(team, seed);
    return team;
}

/* Situations (count, FEATURES), and how much later or earlier than usual each wants the goal. */
static ng_dataset *make_situations(int inputs, uint64_t seed)
{
    static const double low[] = {5, 5, 0, -60}, high[] = {45, 25, 8, 60};
    const int count = lab_whole(SITUATIONS);
    ng_rng rng = ng_rng_seeded(seed);
    ng_tensor *x = ng_zeros_new(NG_F32, NG_SHAPE(count, FEATURES));
    ng_tensor *y = ng_zeros_new(NG_F32, NG_SHAPE(count, 1));
    for (int i = 0; i < count; i++) {
        double u[FEATURES]; /* -1 .. 1 */
        for (int k = 0; k < FEATURES; k++) {
            u[k] = 2 * ng_rng_uniform(&rng) - 1;
            ng_set(x, i * FEATURES + k, low[k] + (high[k] - low[k]) * (u[k] + 1) / 2);
        }
        ng_set(y, i, u[0] - u[1] * u[2] + sin(3 * u[3]) / 2);
    }
    ng_dataset *situations = ng_dataset_from(x, y);
    if (inputs == STANDARDIZED) ng_dataset_standardize(situations, situations);
    ng_tensor_free(x), ng_tensor_free(y);
    return situations;
}

/* Of each seed: seconds too late (+) or early (-) on average, by pass; the root mean square of all
 * situations' misses at the last pass; and the swinging. Inf where a team flew away. */
typedef struct {
    double *late, *miss, *swinging; /* [seed * passes + pass], [seed], [seed] */
} games;

static void play(games *g, int s, int inputs, int team, double rate)
{
    const int passes = lab_whole(PASSES);
    double *late = g->late + s * passes, shift = 0;
    ng_dataset *situations = make_situations(inputs, lab_seed(s));
    ng_module *net = make_team(team == NORMED, lab_seed(s));
    ng_optimizer *descent = ng_sgd_new(net, .lr = rate);
    ng_tape *tape = ng_tape_new();
    for (int pass = 0; pass < passes && lab_goes_on(); pass++) {
        ng_batch all;
        ng_dataset_batch(situations, tape, 0, lab_whole(SITUATIONS), &all);
        ng_tensor *error = ng_sub(tape, ng_forward(net, tape, all.x), all.y);
        if (pass == 0) shift = 2 - ng_item(ng_mean(tape, error)); /* the first miss is 2 s */
        error = ng_add_scalar(tape, error, shift);
        ng_tensor *loss = ng_mean(tape, ng_square(tape, error));
        late[pass] = ng_item(ng_mean(tape, error));
        if (pass > 0) g->swinging[s] += fabs(late[pass] - late[pass - 1]);
        g->miss[s] = sqrt(ng_item(loss));
        if (ng_backward(tape, loss) || ng_optimizer_step(descent)) break;
        ng_tape_reset(tape);
    }
    g->swinging[s] -= fabs(late[passes - 1] - late[0]);
    if (!isfinite(g->miss[s])) g->miss[s] = g->swinging[s] = (double)INFINITY;
    ng_tape_free(tape), ng_optimizer_free(descent), ng_module_free(net);
    ng_dataset_free(situations);
}

/* ---- All ---------------------------------------------------------------------------------- */

static games played[INPUTS][TEAMS][RATES];

static lab_spread miss(const games *g) { return lab_spread_of(g->miss, lab_seeds()); }
static lab_spread swinging(const games *g) { return lab_spread_of(g->swinging, lab_seeds()); }

static void play_all(int inputs, int team)
{
    const int seeds = lab_seeds(), kind = inputs * TEAMS + team;
    for (int i = 0; i < RATES; i++) {
        games *g = &played[inputs][team][i];
        *g = (games){lab_numbers((int64_t)seeds * lab_whole(PASSES)), lab_numbers(seeds),
                     lab_numbers(seeds)};
        lab_progress(kind * RATES + i, INPUTS * TEAMS * RATES, "%s, %s, lr %.3g",
                     input_names[inputs], team_names[team], rate_of(i));
        for (int s = 0; s < seeds; s++) play(g, s, inputs, team, rate_of(i));
    }
    char block[64];
    snprintf(block, sizeof block, "rates %s %s", input_names[inputs], team_names[team]);
    lab_block(block, "rate miss miss_low miss_high swinging swinging_low swinging_high seeds");
    for (int i = 0; i < RATES; i++) {
        const lab_spread m = miss(&played[inputs][team][i]);
        const lab_spread w = swinging(&played[inputs][team][i]);
        lab_row(rate_of(i), m.median, m.low, m.high, w.median, w.low, w.high, m.count);
    }
}

/* The rate with the lowest median miss. */
static int best_rate(const games *of_rate)
{
    int best = 0;
    for (int i = 1; i < RATES; i++)
        if (miss(&of_rate[i]).median < miss(&of_rate[best]).median) best = i;
    return best;
}

/* The highest rate up to which the median team swings by less than half a second. */
static double calm_rate(const games *of_rate)
{
    int i = 0;
    while (i < RATES && swinging(&of_rate[i]).median < 0.5) i++;
    return i > 0 ? rate_of(i - 1) : (double)NAN;
}

/* The seed whose swinging is the median. */
static int median_seed(const games *g)
{
    const double median = swinging(g).median;
    int nearest = 0;
    for (int s = 1; s < lab_seeds(); s++)
        if (fabs(g->swinging[s] - median) < fabs(g->swinging[nearest] - median)) nearest = s;
    return nearest;
}

/* The error by pass: of the median seed, lowest and highest of all. */
static void write_passes(int inputs, int team, int rate)
{
    const games *g = &played[inputs][team][rate];
    const int seeds = lab_seeds(), passes = lab_whole(PASSES), shown = median_seed(g);
    double *late = lab_numbers(seeds);
    char block[64];
    snprintf(block, sizeof block, "passes %s %s", input_names[inputs], team_names[team]);
    lab_block(block, "pass late late_low late_high rate seeds");
    for (int pass = 0; pass < passes; pass++) {
        for (int s = 0; s < seeds; s++) late[s] = g->late[s * passes + pass];
        const lab_spread spread = lab_spread_of(late, seeds);
        lab_row(pass + 1, late[shown], spread.low, spread.high, rate_of(rate), spread.count);
    }
}

int main(int argc, char **argv)
{
    lab_begin(argc, argv, &experiment);
    lab_data("%d-%d-%d-1 with ReLU, %d situations, %d passes of gradient descent", FEATURES,
             lab_whole(PLAYERS), lab_whole(PLAYERS), lab_whole(SITUATIONS), lab_whole(PASSES));
    bool held[2 * INPUTS];
    lab_spread missed[INPUTS][TEAMS], swung[INPUTS][TEAMS];
    double rate[INPUTS];
    for (int in = 0; in < INPUTS; in++) {
        for (int team = 0; team < TEAMS; team++) play_all(in, team);
        const int common = best_rate(played[in][PLAIN]);
        rate[in] = rate_of(common);
        for (int team = 0; team < TEAMS; team++) {
            write_passes(in, team, common);
            missed[in][team] = miss(&played[in][team][common]);
            swung[in][team] = swinging(&played[in][team][common]);
        }
        held[2 * in] = swung[in][NORMED].median < swung[in][PLAIN].median / 2;
        held[2 * in + 1] = missed[in][NORMED].median < missed[in][PLAIN].median;
    }
    return lab_end(
        lab_verdict_of(held, 2 * INPUTS),
        "without and with LayerNorm: raw inputs (lr %.3g) swinging %.2f and %.2f s, last miss %.2f "
        "and %.2f s; standardized (lr %.3g) swinging %.2f and %.2f s, last miss %.2f and %.2f s; "
        "calm up to lr %.3g and %.3g raw, %.3g and %.3g standardized; medians of %d seeds",
        rate[RAW], swung[RAW][PLAIN].median, swung[RAW][NORMED].median, missed[RAW][PLAIN].median,
        missed[RAW][NORMED].median, rate[STANDARDIZED], swung[STANDARDIZED][PLAIN].median,
        swung[STANDARDIZED][NORMED].median, missed[STANDARDIZED][PLAIN].median,
        missed[STANDARDIZED][NORMED].median, calm_rate(played[RAW][PLAIN]),
        calm_rate(played[RAW][NORMED]), calm_rate(played[STANDARDIZED][PLAIN]),
        calm_rate(played[STANDARDIZED][NORMED]), lab_seeds());
}
