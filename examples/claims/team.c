/* The football example of document 004: a network of three layers, defenders, midfielders and
 * striker, learns when to score. Measured: its oscillation between too late and too early, with and
 * without LayerNorm. */
#include "lab.h"

enum { PASSES, PLAYERS, SITUATIONS };
static lab_size sizes[] = {
    [PASSES] = {"passes", "steps of gradient descent", .normal = 60, .quick = 12},
    [PLAYERS] = {"players", "features of each hidden layer", .normal = 16, .quick = 8},
    [SITUATIONS] = {"situations", "samples", .normal = 64, .quick = 16},
    {0}};

static const lab_experiment experiment = {
    .id = "team",
    .source = "document 004",
    .claim = "without LayerNorm a team of three layers swings between too late and too early and "
             "learns slowly; with LayerNorm it learns smoothly and sooner",
    .method =
        "Four numbers that describe the situation (distance, speed of the ball, opponents,\n"
        "angle) -> defenders -> midfielders -> striker -> the second at which to score, which\n"
        "the first attempts miss by 2 on average. With LayerNorm a layer's output is normalized\n"
        "before the next layer. A pass is a step of gradient descent on the squared error of all\n"
        "situations. Inputs are in raw units (metres, metres per second, opponents, degrees), or\n"
        "standardized to mean 0 and deviation 1. For each, the learning rate is the power of two\n"
        "at which the team WITHOUT LayerNorm ends with the lowest median miss, over ten seeds\n"
        "that are not scored; the other team has the same rate, and is also compared at its own\n"
        "best. Swinging: the length of the mean error's path, in seconds, less the distance from\n"
        "its first to its last value; a team that diverges swings and misses infinitely.\n",
    .rule =
        "for raw and for standardized inputs, from the same seed (same situations): with "
        "LayerNorm the team swings less (the difference is below 0) and misses by less in the end "
        "(the quotient is below 1) at the best rate without; and with each team at its own best "
        "rate it misses by less",
    .seeds = 41,
    .quick_seeds = 3,
    .sizes = sizes};

enum { RAW, STANDARDIZED, INPUTS, PLAIN = 0, NORMED, TEAMS, FEATURES = 4, RATES = 15, TUNERS = 10 };
static const char *const input_names[] = {[RAW] = "raw", [STANDARDIZED] = "standardized"};
static const char *const team_names[] = {[PLAIN] = "no norm", [NORMED] = "LayerNorm"};
static double rate_of(int i) { return ldexp(1, i - 15); } /* up to 1/2 */

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

/* Returns situations (count, FEATURES), and how much later or earlier than usual each requires the
 * goal. */
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

/* Results by seed; TUNERS seeds that are not scored follow the scored ones. late: seconds too late
 * (+) or early (-) on average, by pass. miss: the root mean square of all situations' misses at the
 * last pass. Inf for a team that diverged. */
typedef struct {
    double *late, *miss, *swinging; /* [seed * passes + pass], [seed], [seed] */
} games;

static void play(games *g, int s, int inputs, int team, double rate)
{
    const int passes = lab_whole(PASSES);
    double *late = g->late + s * passes, shift = 0;
    const uint64_t seed = s < lab_seeds() ? lab_seed(s) : lab_tuning_seed(s - lab_seeds());
    ng_dataset *situations = make_situations(inputs, seed);
    ng_module *net = make_team(team == NORMED, seed);
    ng_optimizer *descent = ng_sgd_new(net, .lr = rate);
    ng_tape *tape = ng_tape_new();
    for (int pass = 0; pass < passes && lab_goes_on(); pass++) {
        ng_batch all;
        ng_dataset_batch(situations, tape, 0, lab_whole(SITUATIONS), &all);
        ng_tensor *error = ng_sub(tape, ng_forward(net, tape, all.x), all.y);
        if (pass == 0) shift = 2 - ng_item(ng_mean(tape, error)); /* the first mean miss is 2 s */
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

/* ---- Main --------------------------------------------------------------------------------- */

static games played[INPUTS][TEAMS][RATES];

static void play_all(int inputs, int team)
{
    const int seeds = lab_seeds() + TUNERS, kind = inputs * TEAMS + team;
    lab_curves *curves =
        lab_curves_new("rate", "rates %s %s", input_names[inputs], team_names[team]);
    for (int i = 0; i < RATES; i++) {
        games *g = &played[inputs][team][i];
        *g = (games){lab_numbers((int64_t)seeds * lab_whole(PASSES)), lab_numbers(seeds),
                     lab_numbers(seeds)};
        lab_progress(kind * RATES + i, INPUTS * TEAMS * RATES, "%s, %s, lr %.3g",
                     input_names[inputs], team_names[team], rate_of(i));
        for (int s = 0; s < seeds; s++) play(g, s, inputs, team, rate_of(i));
        for (int s = 0; s < lab_seeds(); s++)
            lab_log(curves, s, "miss swinging", rate_of(i), g->miss[s], g->swinging[s]);
    }
}

/* Returns the rate with the lowest median miss over the seeds that are not scored. */
static int best_rate(const games *of_rate)
{
    int best = 0;
    double lowest = HUGE_VAL;
    for (int i = 0; i < RATES; i++) {
        const double median = lab_percentile(of_rate[i].miss + lab_seeds(), TUNERS, 50);
        if (median < lowest) lowest = median, best = i;
    }
    return best;
}

/* Returns the seed with the median swinging. */
static int median_seed(const games *g)
{
    const double median = lab_median(g->swinging);
    int nearest = 0;
    for (int s = 1; s < lab_seeds(); s++)
        if (fabs(g->swinging[s] - median) < fabs(g->swinging[nearest] - median)) nearest = s;
    return nearest;
}

/* Logs the error by pass: of the median seed, and of all seeds. */
static void log_passes(int inputs, int team, int rate)
{
    const games *g = &played[inputs][team][rate];
    const int passes = lab_whole(PASSES), shown = median_seed(g);
    lab_curves *curves =
        lab_curves_new("pass", "passes %s %s", input_names[inputs], team_names[team]);
    for (int s = 0; s < lab_seeds(); s++)
        for (int pass = 0; pass < passes; pass++)
            lab_log(curves, s, "late shown rate", pass + 1, g->late[s * passes + pass],
                    g->late[shown * passes + pass], rate_of(rate));
}

static void judge_swinging(int inputs, int rate)
{
    double *less = lab_numbers(lab_seeds());
    const double *with = played[inputs][NORMED][rate].swinging;
    const double *without = played[inputs][PLAIN][rate].swinging;
    for (int s = 0; s < lab_seeds(); s++)
        less[s] = isinf(with[s]) && isinf(without[s]) ? 0 : with[s] - without[s];
    lab_judge((lab_part){team_names[NORMED], less, .side = LAB_BELOW, .threshold = 0},
              "swinging, %s inputs, the rate best without, less that of no norm, s",
              input_names[inputs]);
}

static void judge_miss(int inputs, int rate_with, int rate_without, const char *at)
{
    const double *with = played[inputs][NORMED][rate_with].miss;
    const double *without = played[inputs][PLAIN][rate_without].miss;
    lab_judge((lab_part){team_names[NORMED], lab_quotients(with, without), .side = LAB_BELOW,
                         .threshold = 1},
              "last miss, %s inputs, %s, as a share of no norm's", input_names[inputs], at);
}

int main(int argc, char **argv)
{
    lab_begin(argc, argv, &experiment);
    lab_data("%d-%d-%d-1 with ReLU, %d situations, %d passes of gradient descent", FEATURES,
             lab_whole(PLAYERS), lab_whole(PLAYERS), lab_whole(SITUATIONS), lab_whole(PASSES));
    for (int in = 0; in < INPUTS; in++) {
        for (int team = 0; team < TEAMS; team++) play_all(in, team);
        const int best = best_rate(played[in][PLAIN]), own = best_rate(played[in][NORMED]);
        for (int team = 0; team < TEAMS; team++) log_passes(in, team, best);
        judge_swinging(in, best);
        judge_miss(in, best, best, "the rate best without");
        judge_miss(in, own, best, "own rates");
    }
    return lab_end();
}
