/* Data-parallel training: the gradients that one process computes of the whole batch, the same on
 * all ranks. */
#include "group/ranks.h"
#include "support/folder.h"
#include "support/labelled.h"
#include "support/optimizers.h"
#include <locale.h>
#include <stdatomic.h>

/* ---- Training ------------------------------------------------------------------------------ */

enum { RANKS = 8, STEPS = 40, FEATURES = 6, CLASSES = 3, SAMPLES = 333, BATCH = 5 };

/* What rank 0 ends with. */
typedef struct {
    double losses[STEPS], weights[4096];
    int numbers;
} ending;

typedef struct {
    double clip;
    ng_optimizer *(*make)(ng_module *net); /* NULL: Adam */
    ending *end;
} training_plan;

static ng_module *make_network(ng_group *group)
{
    return ng_sequential_new(ng_linear_new(FEATURES, 24), ng_batch_norm_new(24, .group = group),
                             ng_relu_new(), ng_dropout_new(0.2), ng_linear_new(24, 24),
                             ng_layer_norm_new(24), ng_gelu_new(), ng_linear_new(24, CLASSES));
}

/* Whether the parameters of all ranks are the same to the bit. */
static bool same_on_all_ranks(ng_group *group, ng_module *net)
{
    bool same = true;
    ng_named_tensor named;
    for (int i = 0; ng_module_parameter(net, i, &named); i++) {
        ng_tensor *copy = ng_copy_new(named.tensor, NG_F32);
        same = ng_group_broadcast(group, copy, 0) == NG_OK && same &&
               !memcmp(ng_data_f32(copy), ng_data_f32(named.tensor),
                       (size_t)ng_size(copy) * sizeof(float));
        ng_tensor_free(copy);
    }
    return same;
}

static ng_status training_program(ng_group *group, void *with)
{
    const training_plan *plan = with;
    const int rank = ng_group_rank(group);
    ng_dataset *all = labelled_data(NG_F32, SAMPLES, FEATURES),
               *mine = ng_dataset_shard_new(all, rank, ng_group_size(group));
    ng_module *net = make_network(group);
    ng_module_init(net, (uint64_t)rank); /* ng_parallel_new copies rank 0's values */
    ng_parallel *parallel = ng_parallel_new(net, group);
    ng_optimizer *optimizer = plan->make ? plan->make(net) : ng_adam_new(net, .lr = 0.01);
    ng_tape *tape = ng_tape_new();
    ng_tape_seed(tape, ng_group_seed(group, 17));
    for (int step = 0; step < STEPS; step++) {
        if (step % 8 == 0) ng_dataset_shuffle(mine, (uint64_t)step);
        ng_batch batch = {0};
        ng_dataset_batch(mine, tape, step % 8, BATCH, &batch);
        ng_tensor *loss = ng_cross_entropy(tape, ng_forward(net, tape, batch.x), batch.y);
        if (ng_parallel_backward(parallel, tape, loss)) break;
        if (plan->clip > 0) ng_clip_grad_norm(net, plan->clip);
        if (ng_optimizer_step(optimizer)) break;
        double value = ng_item(loss), values[RANKS], sum = 0;
        if (ng_group_gather(group, &value, 1, values)) break;
        for (int r = 0; r < RANKS; r++) sum += values[r];
        if (rank == 0) plan->end->losses[step] = sum;
        ng_tape_reset(tape);
    }
    ng_named_tensor named;
    for (int i = 0; rank == 0 && ng_module_parameter(net, i, &named); i++)
        for (int64_t k = 0; k < ng_size(named.tensor); k++)
            plan->end->weights[plan->end->numbers++] = ng_get(named.tensor, k);
    for (int i = 0; rank == 0 && ng_module_buffer(net, i, &named); i++)
        for (int64_t k = 0; k < ng_size(named.tensor); k++)
            plan->end->weights[plan->end->numbers++] = ng_get(named.tensor, k);
    expect(same_on_all_ranks(group, net));
    ng_tape_free(tape), ng_optimizer_free(optimizer), ng_parallel_free(parallel);
    ng_module_free(net), ng_dataset_free(all), ng_dataset_free(mine);
    return NG_OK;
}

static ending train(training_plan plan)
{
    static ending end;
    end = (ending){.numbers = 0};
    plan.end = &end;
    assert_ranks_well(RANKS, training_program, &plan);
    return end;
}

static bool same_ending(const ending *a, const ending *b) { return !memcmp(a, b, sizeof *a); }

START_TEST(training_has_the_same_bits_on_any_number_of_threads)
{
    static ending one, other;
    one = train((training_plan){.clip = 0.5});
    ck_assert_int_gt(one.numbers, 800);
    ck_assert_double_lt(one.losses[STEPS - 1], 0.8 * one.losses[0]);
    ng_set_threads(2);
    other = train((training_plan){.clip = 0.5});
    ng_set_threads(0);
    ck_assert(same_ending(&one, &other));
}

/* Gives a matrix rows of length 1. */
static ng_status to_unit_rows(void *context, const char *name, ng_tensor *weight)
{
    (void)context, (void)name;
    if (ng_rank(weight) < 2) return NG_OK;
    float *const w = ng_data_f32(weight);
    const int64_t columns = ng_dim(weight, 1);
    for (int64_t row = 0; row < ng_dim(weight, 0); row++) {
        double square = 0;
        for (int64_t i = 0; i < columns; i++) square += pow((double)w[row * columns + i], 2);
        for (int64_t i = 0; i < columns; i++) w[row * columns + i] /= (float)sqrt(square);
    }
    return NG_OK;
}

static ng_optimizer *projected(ng_module *net)
{
    ng_optimizer *adam = ng_adam_new(net, .lr = 0.01);
    ng_optimizer_set_projection(adam, to_unit_rows, NULL);
    return adam;
}

START_TEST(networks_stay_equal_with_every_optimizer)
{
    for (int i = 0; i < OPTIMIZERS; i++) train((training_plan){.make = optimizers[i].make});
    train((training_plan){.make = projected});
}

/* ---- Gradients ------------------------------------------------------------------------------- */

enum { ROWS = 11 };
static const int shares[] = {4, 2, 5}; /* of the rows */

typedef struct {
    bool in_pieces;
    ng_tensor *x, *y;
    ng_module *whole; /* with the gradients of one process */
} gradient_plan;

static ng_module *small_network(void)
{
    ng_module *net = ng_sequential_new(ng_linear_new(4, 5), ng_layer_norm_new(5), ng_tanh_new(),
                                       ng_linear_new(5, 3));
    ng_module_to(net, NG_F64);
    return net;
}

static ng_tensor *loss_of(ng_tape *tape, ng_module *net, const gradient_plan *plan, int first,
                          int last)
{
    ng_tensor *x = ng_slice(tape, plan->x, 0, first, last);
    ng_tensor *y = ng_slice(tape, plan->y, 0, first, last);
    return ng_mse(tape, ng_forward(net, tape, x), y);
}

static bool same_gradients(ng_module *net, ng_module *whole, double factor)
{
    ng_named_tensor mine, other;
    for (int i = 0; ng_module_parameter(net, i, &mine); i++) {
        ng_module_parameter(whole, i, &other);
        for (int64_t k = 0; k < ng_size(mine.tensor); k++) {
            const double e = factor * ng_get(ng_grad(other.tensor), k);
            if (!(fabs(ng_get(ng_grad(mine.tensor), k) - e) <= 1e-13 * (1 + fabs(e)))) return false;
        }
    }
    return true;
}

static ng_status gradient_program(ng_group *group, void *with)
{
    const gradient_plan *plan = with;
    const int rank = ng_group_rank(group);
    int first = 0;
    for (int r = 0; r < rank; r++) first += shares[r];
    const int last = first + shares[rank], middle = first + shares[rank] / 2;
    ng_module *net = small_network();
    ng_parallel *parallel = ng_parallel_new(net, group);
    ng_tape *tape = ng_tape_new();
    for (int pass = 1; pass <= 2; pass++) {
        int from = first;
        if (plan->in_pieces) {
            ng_tensor *loss = loss_of(tape, net, plan, first, middle);
            expect(ng_parallel_backward(parallel, tape, loss,
                                        .share = (double)(middle - first) / (double)ROWS) == NG_OK);
            from = middle;
        }
        ng_tensor *loss = loss_of(tape, net, plan, from, last);
        expect(ng_parallel_backward(parallel, tape, loss,
                                    .share = (double)(last - from) / (double)ROWS) == NG_OK);
        expect(same_gradients(net, plan->whole, pass)); /* a second pass is added */
    }
    ng_tape_free(tape), ng_parallel_free(parallel), ng_module_free(net);
    return NG_OK;
}

START_TEST(gradients_are_those_of_the_whole_batch)
{
    ng_rng rng = ng_rng_seeded(2);
    gradient_plan plan = {.in_pieces = _i, .whole = small_network()};
    plan.x = ng_normal_new(NG_F64, NG_SHAPE(ROWS, 4), 0, 1, &rng);
    plan.y = ng_normal_new(NG_F64, NG_SHAPE(ROWS, 3), 0, 1, &rng);
    ng_tape *tape = ng_tape_new();
    assert_ok(ng_backward(tape, loss_of(tape, plan.whole, &plan, 0, ROWS)));
    assert_ranks_well(3, gradient_program, &plan);
    ng_tape_free(tape), ng_module_free(plan.whole);
    ng_tensor_free(plan.x), ng_tensor_free(plan.y);
}

/* ---- Recomputed statistics of BatchNorm ------------------------------------------------------ */

static ng_module *synchronized(ng_group *group)
{
    ng_module *net =
        ng_sequential_new(ng_linear_new(4, 5), ng_batch_norm_new(5, .group = group), ng_tanh_new(),
                          ng_linear_new(5, 3), ng_batch_norm_new(3, .group = group));
    ng_module_to(net, NG_F64);
    return net;
}

static ng_dataset *rows_of(const ng_tensor *x, int first, int last)
{
    int64_t numbers[ROWS];
    for (int i = first; i < last; i++) numbers[i - first] = i;
    ng_dataset *all = ng_dataset_from(x, NG_NONE);
    ng_dataset *part = ng_dataset_subset_new(all, numbers, last - first);
    ng_dataset_free(all);
    return part;
}

static ng_status recomputing_program(ng_group *group, void *with)
{
    const gradient_plan *plan = with;
    const int rank = ng_group_rank(group), first = rank == 0 ? 0 : rank == 1 ? 4 : 6;
    ng_module *net = synchronized(group);
    ng_dataset *mine = rows_of(plan->x, first, first + shares[rank]);
    expect(ng_batch_norm_recompute(net, mine, 2) == NG_OK);
    ng_named_tensor a, b;
    for (int i = 0; ng_module_buffer(net, i, &a); i++) {
        ng_module_buffer(plan->whole, i, &b);
        for (int64_t k = 0; k < ng_size(a.tensor) && ng_dtype_of(a.tensor) == NG_F64; k++) {
            const double e = ng_get(b.tensor, k);
            expect(fabs(ng_get(a.tensor, k) - e) <= 1e-12 * fabs(e));
        }
    }
    ng_dataset_free(mine), ng_module_free(net);
    return NG_OK;
}

START_TEST(recomputed_statistics_are_those_of_the_samples_of_all_ranks)
{
    ng_rng rng = ng_rng_seeded(3);
    gradient_plan plan = {.whole = synchronized(NULL)};
    plan.x = ng_normal_new(NG_F64, NG_SHAPE(ROWS, 4), 1, 2, &rng);
    ng_dataset *all = rows_of(plan.x, 0, ROWS);
    assert_ok(ng_batch_norm_recompute(plan.whole, all, ROWS));
    assert_ranks_well(3, recomputing_program, &plan);
    ng_dataset_free(all), ng_module_free(plan.whole), ng_tensor_free(plan.x);
}

/* Layer 0 is used by rank 1 alone, layer 1 by all, layer 2 by none. */
static ng_status unused_program(ng_group *group, void *with)
{
    (void)with;
    ng_module *layers[] = {ng_linear_new(2, 2), ng_linear_new(2, 2), ng_linear_new(2, 2)};
    ng_module *net = ng_sequential_from(layers, 3);
    ng_parallel *parallel = ng_parallel_new(net, group);
    ng_tape *tape = ng_tape_new();
    ng_tensor *x = ng_ones_new(NG_F32, NG_SHAPE(1, 2));
    ng_tensor *y = ng_forward(layers[1], tape, x);
    if (ng_group_rank(group) == 1) y = ng_add(tape, y, ng_forward(layers[0], tape, x));
    expect(ng_parallel_backward(parallel, tape, ng_sum(tape, y)) == NG_OK);
    const double third = 1 / 3.0;
    expect(fabs(ng_get(ng_grad(ng_module_find(net, "0.weight")), 3) - third) < 1e-6);
    expect(fabs(ng_get(ng_grad(ng_module_find(net, "1.weight")), 3) - 1) < 1e-6);
    expect(!ng_has_grad(ng_module_find(net, "2.weight")));
    ng_tape_free(tape), ng_tensor_free(x), ng_parallel_free(parallel), ng_module_free(net);
    return NG_OK;
}

START_TEST(only_parameters_that_some_rank_reached_have_gradients)
{
    assert_ranks_well(3, unused_program, NULL);
}

/* ---- Differences and failures ---------------------------------------------------------------- */

enum {
    OTHER_WIDTH,
    OTHER_EPS,
    OTHER_DIGIT, /* the last digit of eps */
    OTHER_LAYER,
    OTHER_RATE, /* in a layer without parameters */
    FROZEN,
    OTHER_DTYPE,
    DIFFERENCES
};

static ng_status different_program(ng_group *group, void *with)
{
    const int what = ng_group_rank(group) == 2 ? *(const int *)with : DIFFERENCES;
    const double eps = what == OTHER_EPS ? 1e-3 : what == OTHER_DIGIT ? nextafter(1e-5, 1) : 1e-5;
    ng_module *net = ng_sequential_new(ng_linear_new(3, what == OTHER_WIDTH ? 5 : 4),
                                       what == OTHER_LAYER ? ng_rms_norm_new(4)
                                                           : ng_layer_norm_new(4, .eps = eps),
                                       ng_dropout_new(what == OTHER_RATE ? 0.2 : 0.1));
    if (what == FROZEN) ng_freeze(net);
    if (what == OTHER_DTYPE) ng_module_to(net, NG_F64);
    ng_parallel *parallel = ng_parallel_new(net, group);
    expect(!parallel);
    ng_parallel_free(parallel), ng_module_free(net);
    return NG_OK;
}

START_TEST(a_rank_with_another_network_is_named_on_all)
{
    int what = _i;
    assert_ranks_fail(4, different_program, &what, NG_ESTATE, "ng_parallel_new: rank 2");
}

enum { PARAMETERS = 10 };  /* of make_network */
static atomic_int changed; /* gradients that are neither as they were nor gone */

static bool same_values(const ng_tensor *a, const ng_tensor *b)
{
    for (int64_t i = 0; i < ng_size(a); i++)
        if (ng_get(a, i) != ng_get(b, i)) return false;
    return true;
}

static ng_status bad_data_program(ng_group *group, void *with)
{
    const int where = *(const int *)with;
    ng_named_tensor p;
    ng_tensor *before[PARAMETERS] = {NULL};
    ng_module *net = make_network(group);
    ng_parallel *parallel = ng_parallel_new(net, group);
    ng_optimizer *adam = ng_adam_new(net);
    ng_tape *tape = ng_tape_new();
    ng_tensor *x = ng_ones_new(NG_F32, NG_SHAPE(4, FEATURES));
    ng_tensor *bad = ng_ones_new(NG_F32, NG_SHAPE(4, FEATURES + 1));
    ng_tensor *y = ng_zeros_new(NG_I64, NG_SHAPE(4));
    ng_rng rng = ng_rng_seeded(ng_group_seed(group, 1));
    ng_fill_normal(x, 0, 1, &rng);
    ng_status status = NG_OK;
    for (int step = 0; step < 3; step++) {
        const bool mine = ng_group_rank(group) == 1 && step == 1;
        if (mine && where == 1) ng_set(y, 2, 99);
        if (mine && where == 2) ng_touch(x);
        ng_tensor *logits = ng_forward(net, tape, mine && where == 0 ? bad : x);
        if (mine && where == 2) ng_fill(ng_module_find(net, "4.weight"), 1);
        ng_tensor *loss = ng_cross_entropy(tape, logits, y);
        status = ng_parallel_backward(parallel, tape, loss);
        if (status || ng_optimizer_step(adam)) break;
        ng_tape_reset(tape);
        for (int i = 0; i < PARAMETERS; i++) {
            ng_module_parameter(net, i, &p);
            ng_tensor_free(before[i]);
            before[i] = ng_copy_new(ng_grad(p.tensor), NG_F32);
        }
    }
    expect(status != NG_OK);
    for (int i = 0; i < PARAMETERS; i++) {
        ng_module_parameter(net, i, &p);
        if (ng_has_grad(p.tensor) && !same_values(ng_grad(p.tensor), before[i])) changed++;
        ng_tensor_free(before[i]);
    }
    ng_tape_free(tape), ng_optimizer_free(adam), ng_parallel_free(parallel), ng_module_free(net);
    ng_tensor_free(x), ng_tensor_free(bad), ng_tensor_free(y);
    return status;
}

/* In the first layer, in the loss, and in the middle of the sweep. */
START_TEST(bad_data_on_one_rank_is_an_error_on_all_within_the_step)
{
    static const char *const words[] = {"expected x (..., 6)", "99", "was changed after"};
    int where = _i;
    changed = 0;
    assert_ranks_fail(3, bad_data_program, &where, NG_OK, words[_i]);
    ck_assert_int_eq(changed, 0);
}

static ng_status hungry_program(ng_group *group, void *with)
{
    (void)with;
    ng_module *net = ng_sequential_new(ng_linear_new(40, 30), ng_batch_norm_new(30, .group = group),
                                       ng_linear_new(30, 40));
    ng_parallel *parallel = ng_parallel_new(net, group);
    ng_optimizer *sgd = ng_sgd_new(net);
    ng_tape *tape = ng_tape_new();
    ng_tensor *x = ng_ones_new(NG_F32, NG_SHAPE(2, 40));
    for (int step = 0; step < 2; step++) {
        ng_tensor *loss = ng_sum(tape, ng_square(tape, ng_forward(net, tape, x)));
        if (ng_parallel_backward(parallel, tape, loss) || ng_optimizer_step(sgd)) break;
        ng_tape_reset(tape);
    }
    ng_tape_free(tape), ng_optimizer_free(sgd), ng_parallel_free(parallel);
    ng_module_free(net), ng_tensor_free(x);
    return ng_group_agree(group);
}

START_TEST(out_of_memory_on_one_rank_is_an_error_on_all) { refuse_each(2, hungry_program); }

/* ---- Shards and seeds ------------------------------------------------------------------------ */

START_TEST(shards_are_equal_and_share_nothing)
{
    ng_dataset *all = own(labelled_data(NG_F32, SAMPLES, FEATURES));
    bool seen[SAMPLES] = {false};
    for (int r = 0; r < 8; r++) {
        ng_dataset *shard = ng_dataset_shard_new(all, r, 8);
        ck_assert_int_eq(ng_dataset_count(shard), SAMPLES / 8);
        for (int i = 0; i < SAMPLES / 8; i++) {
            const int sample = i * 8 + r;
            ck_assert(!seen[sample]);
            seen[sample] = true;
            ck_assert_double_eq(ng_at(ng_dataset_x(shard), i, 1),
                                ng_at(ng_dataset_x(all), sample, 1));
        }
        ng_dataset_free(shard);
    }
    assert_refused(ng_dataset_shard_new(all, 8, 8));
    assert_refused(ng_dataset_shard_new(all, 0, SAMPLES + 1));
}

static ng_status seed_program(ng_group *group, void *with)
{
    ((uint64_t *)with)[ng_group_rank(group)] = ng_group_seed(group, 4);
    return NG_OK;
}

START_TEST(each_rank_has_a_seed_of_its_own)
{
    uint64_t seeds[4];
    assert_ranks_well(4, seed_program, seeds);
    for (int a = 0; a < 4; a++)
        for (int b = 0; b < a; b++) ck_assert(seeds[a] != seeds[b]);
}

Suite *parallel_suite(void)
{
    Suite *suite = suite_create("parallel");
    TCase *tests = add_case(suite, NULL, NULL);
    add_tests(tests, training_has_the_same_bits_on_any_number_of_threads,
              networks_stay_equal_with_every_optimizer,
              recomputed_statistics_are_those_of_the_samples_of_all_ranks,
              only_parameters_that_some_rank_reached_have_gradients,
              shards_are_equal_and_share_nothing, each_rank_has_a_seed_of_its_own);
    add_loops(tests, 2, gradients_are_those_of_the_whole_batch);
    tests = add_case(suite, make_test_folder, remove_test_folder);
    add_tests(tests, out_of_memory_on_one_rank_is_an_error_on_all);
    add_loops(tests, DIFFERENCES, a_rank_with_another_network_is_named_on_all);
    add_loops(tests, 3, bad_data_on_one_rank_is_an_error_on_all_within_the_step);
    return suite;
}
