/* Groups: sums along one tree, failures that reach all ranks, BatchNorm over the batches of all
 * ranks. Ranks are threads; tests/mpi has processes. */
#include "ranks.h"
#include "support/fixture.h"

/* ---- Sums --------------------------------------------------------------------------------- */

enum { FEW = 37, MANY = 300001, MOST = 17 }; /* the last ones take several steps */

static double drawn(int rank, int64_t i)
{
    static const double scales[] = {1e-4, 1e-2, 1, 3, 1e4};
    return sin((double)(rank * 37 + i)) * scales[(i + rank) % 5];
}

/* The tree of group.h. */
static double tree_f64(int begin, int span, int ranks, int64_t i)
{
    if (span == 1) return drawn(begin, i);
    const double left = tree_f64(begin, span / 2, ranks, i);
    return begin + span / 2 < ranks ? left + tree_f64(begin + span / 2, span / 2, ranks, i) : left;
}
static float tree_f32(int begin, int span, int ranks, int64_t i)
{
    if (span == 1) return (float)drawn(begin, i);
    const float left = tree_f32(begin, span / 2, ranks, i);
    return begin + span / 2 < ranks ? left + tree_f32(begin + span / 2, span / 2, ranks, i) : left;
}

typedef struct {
    ng_dtype dtype;
    int64_t count;
} sum_plan;

static ng_status sum_program(ng_group *group, void *with)
{
    const sum_plan *plan = with;
    const int ranks = ng_group_size(group);
    int span = 1;
    while (span < ranks) span *= 2;
    ng_tensor *x = ng_zeros_new(plan->dtype, NG_SHAPE(plan->count));
    for (int64_t i = 0; i < plan->count; i++) ng_set(x, i, drawn(ng_group_rank(group), i));
    ng_tape *on = ng_tape_new();
    for (int again = 0; again < 2; again++) {
        ng_tensor *y = ng_group_sum(on, x, group);
        for (int64_t i = 0; i < plan->count && y; i += plan->count > FEW ? 997 : 1)
            expect(ng_get(y, i) == (plan->dtype == NG_F64 ? tree_f64(0, span, ranks, i)
                                                          : (double)tree_f32(0, span, ranks, i)));
    }
    ng_tape_free(on), ng_tensor_free(x);
    return ng_failed() ? ng_error_status() : NG_OK;
}

START_TEST(sums_have_the_bits_of_one_tree)
{
    sum_plan plans[] = {{NG_F64, FEW}, {NG_F32, FEW}, {NG_F64, MANY}, {NG_F32, MANY}, {NG_F32, 0}};
    for (int i = 0; i < 5; i++) assert_ranks_well(_i + 1, sum_program, &plans[i]);
}

/* y = S(x^2), z = y x, L = the sum of z over the ranks; dL/dx_r = y + 2 x_r S(x), and so on. */
static ng_status derivative_program(ng_group *group, void *with)
{
    (void)with;
    const int rank = ng_group_rank(group), size = ng_group_size(group);
    double total = 0, squares = 0;
    for (int r = 0; r < size; r++) total += r + 1, squares += (r + 1.0) * (r + 1);
    ng_tensor *x = ng_require_grad(ng_full_new(NG_F64, NG_SCALAR, rank + 1));
    ng_tape *on = ng_tape_new();
    ng_tensor *y = ng_group_sum(on, ng_square(on, x), group);
    ng_tensor *z = ng_mul(on, y, x);
    ng_tensor *first = ng_gradient(on, z, x, .record = true);
    expect(fabs(ng_item(first) - (squares + 2 * (rank + 1) * total)) < 1e-12);
    /* d/dx_r of the sum over s of (S(x^2) + 2 x_s S(x)): 2 n x_r + 2 S(x) + 2 S(x) */
    ng_tensor *second = ng_gradient(on, first, x, .record = true);
    expect(fabs(ng_item(second) - (2 * size * (rank + 1) + 4 * total)) < 1e-12);
    /* d/dx_r of the sum over s of that: 2 n + 4 n */
    ng_tensor *third = ng_gradient(on, second, x);
    expect(fabs(ng_item(third) - 6 * size) < 1e-12);
    ng_tape_free(on), ng_tensor_free(x);
    return NG_OK;
}

START_TEST(a_sum_has_gradients_of_any_order) { assert_ranks_well(3, derivative_program, NULL); }

/* ---- Broadcast and gather -------------------------------------------------------------------- */

/* More than is sent at once. */
static ng_status handing_program(ng_group *group, void *with)
{
    (void)with;
    enum { LARGE = 700001 };
    const int rank = ng_group_rank(group), size = ng_group_size(group), from = size - 1;
    ng_tensor *x = ng_full_new(NG_F32, NG_SHAPE(LARGE), rank == from ? -0.0 : 7);
    ng_tensor *n = ng_zeros_new(NG_I64, NG_SHAPE(3));
    ng_set(x, 5, rank == from ? (double)NAN : 1);
    ng_set(x, LARGE - 1, rank + 0.5);
    ng_set(n, 2, rank == from ? -3 : 5);
    expect(ng_group_broadcast(group, x, from) == NG_OK);
    expect(ng_group_broadcast(group, n, from) == NG_OK);
    for (int i = 0; i < LARGE - 1; i++)
        expect(i == 5 ? isnan(ng_get(x, i)) : signbit(ng_get(x, i)));
    expect(ng_get(x, LARGE - 1) == from + 0.5);
    expect(ng_get(n, 2) == -3 && ng_get(n, 0) == 0);
    double mine[2] = {rank, -1.5 * rank}, all[2 * 8] = {0};
    expect(ng_group_gather(group, mine, 2, all) == NG_OK);
    for (int r = 0; r < size; r++) expect(all[2 * r] == r && all[2 * r + 1] == -1.5 * r);
    expect(ng_group_agree(group) == NG_OK);
    ng_tensor_free(x), ng_tensor_free(n);
    return NG_OK;
}

START_TEST(broadcast_and_gather_keep_all_bits) { assert_ranks_well(5, handing_program, NULL); }

/* ---- Failures ------------------------------------------------------------------------------ */

typedef struct {
    int who, what;
} fault;
enum { FAILS_A_CALL, OTHER_SIZE, OTHER_SHAPE, OTHER_CALL, FAULTS };

static ng_status faulty_program(ng_group *group, void *with)
{
    const fault *f = with;
    const bool mine = f->who == ng_group_rank(group);
    ng_status status = NG_OK;
    ng_shape shape = NG_SHAPE(3, 2);
    if (mine && f->what == OTHER_SIZE) shape = NG_SHAPE(600);
    if (mine && f->what == OTHER_SHAPE) shape = NG_SHAPE(2, 3);
    ng_tensor *x = ng_ones_new(NG_F64, shape);
    ng_tape *on = ng_tape_new();
    for (int i = 0; i < 5 && status == NG_OK; i++) {
        if (mine && i == 2 && f->what == FAILS_A_CALL) ng_fail(NG_EPARSE, "spoilt data");
        if (mine && i == 2 && f->what == OTHER_CALL) status = ng_group_agree(group);
        if (status == NG_OK && ng_failed()) status = ng_group_agree(group);
        if (status == NG_OK) status = ng_group_sum(on, x, group) ? NG_OK : ng_error_status();
    }
    ng_tape_free(on), ng_tensor_free(x);
    return status;
}

START_TEST(a_failure_of_one_rank_is_an_error_on_all)
{
    fault f = {.who = 4, .what = _i};
    assert_ranks_fail(6, faulty_program, &f, _i == FAILS_A_CALL ? NG_EPARSE : NG_ESTATE,
                      _i == FAILS_A_CALL ? "spoilt data" : "rank 4");
    ng_clear_error();
}

static ng_status leaving_program(ng_group *group, void *with)
{
    const ng_status status = *(const ng_status *)with;
    if (ng_group_rank(group) == 1) return status;
    expect(ng_group_agree(group) == (status ? status : NG_ESTATE));
    expect(strstr(ng_error_text(), "rank 1 of 3"));
    return ng_failed() ? ng_error_status() : NG_OK;
}

START_TEST(a_rank_that_leaves_early_is_an_error_on_the_others)
{
    ng_status status = _i ? NG_EIO : NG_OK;
    ck_assert_int_eq(ng_group_run(leaving_program, &status, 3), _i ? NG_EIO : NG_ESTATE);
    ng_clear_error();
}

/* Calls that send the same number of bytes: another function, rank, dtype or shape. */
static ng_status crossing_program(ng_group *group, void *with)
{
    const int which = ng_group_rank(group) == 1 ? *(const int *)with : -1;
    const double mine[6] = {0};
    double all[12];
    ng_tensor *x = ng_full_new(which == 2 ? NG_I64 : NG_F64,
                               which == 3 ? NG_SHAPE(2, 3) : NG_SHAPE(3, 2), which == -1);
    ng_tape *on = ng_tape_new();
    ng_status status = NG_OK;
    if (which == 0)
        status = ng_group_gather(group, mine, 6, all);
    else
        status = ng_group_broadcast(group, x, which == 1);
    if (ng_get(x, 0) != (which == -1)) status = NG_OK;
    ng_tape_free(on), ng_tensor_free(x);
    return status;
}

START_TEST(different_calls_of_the_same_size_are_an_error)
{
    int which = _i;
    assert_ranks_fail(2, crossing_program, &which, NG_ESTATE, "rank 1 of 2");
}

START_TEST(wrong_settings_are_errors)
{
    assert_fails(ng_group_run(faulty_program, NULL, 0), NG_EVALUE);
    const ng_group_link bad = {.rank = 2, .size = 2};
    assert_fails(ng_group_over_new(&bad), NG_EVALUE);
    ng_group *group = ng_group_alone_new();
    ng_tensor *x = ng_ones_new(NG_F32, NG_SHAPE(2));
    assert_fails(ng_group_broadcast(group, x, 1), NG_EVALUE);
    ck_assert_int_eq(ng_group_rank(group), 0);
    ck_assert_int_eq(ng_group_size(group), 1);
    ng_tensor_free(x), ng_group_free(group), ng_group_free(NULL);
}

/* A link that breaks after some calls. */
static ng_status breaking(void *with, const void *mine, void *all, size_t bytes)
{
    int *left = with;
    if ((*left)-- == 0) return ng_fail(NG_EIO, "the cable is out");
    memcpy(all, mine, bytes);
    return NG_OK;
}

START_TEST(a_link_that_fails_is_an_error_and_ends_the_group)
{
    int left = _i; /* the head, the parts, or the sums */
    ng_group *group = ng_group_over_new(
        &(ng_group_link){.size = 1, .with = &left, .all_to_all = breaking, .all_gather = breaking});
    ng_tape *on = ng_tape_new();
    ng_tensor *x = ng_ones_new(NG_F32, NG_SHAPE(2));
    assert_fails(ng_group_sum(on, x, group), NG_EIO, "the cable is out");
    assert_fails(ng_group_agree(group), NG_EIO, "the cable is out");
    ck_assert_int_eq(left, -1);
    ng_tensor_free(x), ng_tape_free(on), ng_group_free(group);
}

START_TEST(too_few_threads_are_an_error)
{
    static const int give[] = {0, 2};
    sum_plan plan = {NG_F64, FEW};
    threads_fail_after(give[_i]);
    ck_assert_int_eq(ng_group_run(sum_program, &plan, 6), NG_ENOMEM);
    ng_clear_error();
}

/* ---- Memory --------------------------------------------------------------------------------- */

static ng_status hungry_program(ng_group *group, void *with)
{
    (void)with;
    ng_tape *on = ng_tape_new();
    ng_module *norm = ng_batch_norm_new(600, .group = group);
    ng_tensor *x = ng_ones_new(NG_F32, NG_SHAPE(2, 600));
    ng_require_grad(x);
    for (int i = 0; i < 2 && !ng_failed(); i++) {
        ng_tensor *y = ng_sum(on, ng_square(on, ng_forward(norm, on, x)));
        if (!ng_group_sum(on, x, group) || ng_backward(on, y) || ng_group_agree(group)) break;
        ng_tape_reset(on);
    }
    ng_tape_free(on), ng_tensor_free(x), ng_module_free(norm);
    return ng_group_agree(group);
}

START_TEST(out_of_memory_on_one_rank_is_an_error_on_all) { refuse_each(2, hungry_program); }

/* ---- BatchNorm ------------------------------------------------------------------------------- */

enum { CHANNELS = 3, SAMPLES = 12, LENGTH = 2, RENORM = 4 };

/* How many samples each rank has. */
static const int shares[][4] = {
    {3, 3, 3, 3}, {1, 2, 4, 5}, {0, 12, 0, 0}, {1, 0, 11, 0}, {0, 0, 0, 12}};

typedef struct {
    ng_dtype dtype;
    int share; /* of `shares` */
    bool renorm, masked;
    double tolerance;
    ng_tensor *x, *cotangent, *u;             /* (SAMPLES, CHANNELS, LENGTH) */
    ng_tensor *y, *dx, *dgamma, *dbeta, *ddx; /* of the whole batch, on one rank */
    ng_tensor *mean, *spread;
} batch_plan;

static ng_module *norm_new(const batch_plan *plan, ng_group *group)
{
    ng_module *norm =
        plan->renorm ? ng_batch_renorm_new(CHANNELS, .group = group, .r_max = 1.2, .d_max = 0.3)
                     : ng_batch_norm_new(CHANNELS, .group = group, .momentum = 0.3);
    ng_module_to(norm, plan->dtype);
    for (int c = 0; c < CHANNELS && norm; c++) {
        ng_set(ng_module_find(norm, "weight"), c, 0.5 + c);
        ng_set(ng_module_find(norm, "bias"), c, 1 - c);
        ng_set(ng_module_find(norm, "running_mean"), c, 0.1 * c);
    }
    return norm;
}

/* y, the gradients of sum(cotangent y), and the gradient of sum(u dx^2) to x. */
typedef struct {
    ng_tensor *y, *dx, *dgamma, *dbeta, *ddx;
} passes;

static passes pass(ng_tape *on, ng_module *norm, ng_tensor *x, ng_tensor *cotangent, ng_tensor *u,
                   ng_tensor *mask)
{
    passes p = {.y = ng_forward(norm, on, x, .mask = mask)};
    ng_tensor *inputs[] = {x, ng_module_find(norm, "weight"), ng_module_find(norm, "bias")};
    ng_tensor *fused[3] = {NULL}, *recorded[3] = {NULL};
    ng_gradients(on, &p.y, 1, inputs, 3, fused, .cotangents = &cotangent);
    ng_gradients(on, &p.y, 1, inputs, 3, recorded, .cotangents = &cotangent, .record = true);
    p.dx = fused[0], p.dgamma = fused[1], p.dbeta = fused[2];
    ng_tensor *penalty = ng_sum(on, ng_mul(on, u, ng_square(on, recorded[0])));
    p.ddx = ng_gradient(on, penalty, x);
    return p;
}

/* Of samples from `first` on, 0 at padding: all of the last ones are. */
static ng_tensor *mask_of(const batch_plan *plan, int64_t first, int64_t count)
{
    ng_tensor *mask = plan->masked ? ng_ones_new(NG_I64, NG_SHAPE(count, LENGTH)) : NULL;
    for (int64_t i = 0; i < count * LENGTH && mask; i++) {
        const int64_t at = first * LENGTH + i;
        ng_set(mask, i, at < 9 * LENGTH && at % 3 != 1);
    }
    return mask;
}

static bool near(const ng_tensor *a, const ng_tensor *all, int64_t first, double tolerance)
{
    if (!a) return false;
    for (int64_t i = 0; i < ng_size(a); i++) {
        const double e = ng_get(all, first + i), error = fabs(ng_get(a, i) - e);
        if (!(error <= tolerance * (1 + fabs(e)))) return false;
    }
    return true;
}

static ng_status norm_program(ng_group *group, void *with)
{
    const batch_plan *plan = with;
    const double t = plan->tolerance;
    const int rank = ng_group_rank(group), count = shares[plan->share][rank];
    int first = 0;
    for (int r = 0; r < rank; r++) first += shares[plan->share][r];
    ng_tape *on = ng_tape_new();
    ng_tensor *mine[3];
    ng_tensor *const all[3] = {plan->x, plan->cotangent, plan->u};
    const int64_t row = CHANNELS * LENGTH;
    for (int k = 0; k < 3; k++) {
        mine[k] = ng_zeros_new(plan->dtype, NG_SHAPE(count, CHANNELS, LENGTH));
        for (int64_t i = 0; i < count * row; i++)
            ng_set(mine[k], i, ng_get(all[k], first * row + i));
    }
    ng_require_grad(mine[0]);
    ng_module *norm = norm_new(plan, group);
    ng_tensor *mask = mask_of(plan, first, count);
    const passes p = pass(on, norm, mine[0], mine[1], mine[2], mask ? mask : NG_NONE);
    expect(near(p.y, plan->y, first * row, t));
    expect(near(p.dx, plan->dx, first * row, t));
    expect(near(p.ddx, plan->ddx, first * row, 10 * t));
    expect(near(ng_group_sum(on, p.dgamma, group), plan->dgamma, 0, t));
    expect(near(ng_group_sum(on, p.dbeta, group), plan->dbeta, 0, t));
    const char *spread = plan->renorm ? "running_deviation" : "running_var";
    ng_tensor *mean = ng_module_find(norm, "running_mean"), *moved = ng_module_find(norm, spread);
    expect(near(mean, plan->mean, 0, t) && near(moved, plan->spread, 0, t));
    /* The same bits on all ranks. */
    double numbers[2 * CHANNELS], others[4 * 2 * CHANNELS];
    for (int c = 0; c < CHANNELS; c++)
        numbers[c] = ng_get(mean, c), numbers[CHANNELS + c] = ng_get(moved, c);
    expect(ng_group_gather(group, numbers, 2 * CHANNELS, others) == NG_OK);
    for (int r = 0; r < 4; r++) expect(!memcmp(numbers, others + r * 2 * CHANNELS, sizeof numbers));
    ng_tape_free(on), ng_module_free(norm), ng_tensor_free(mask);
    for (int k = 0; k < 3; k++) ng_tensor_free(mine[k]);
    return NG_OK;
}

static void check_norm(batch_plan plan, double offset)
{
    const ng_shape shape = NG_SHAPE(SAMPLES, CHANNELS, LENGTH);
    plan.x = normal_with(plan.dtype, shape, offset, 1, 8);
    plan.cotangent = normal(plan.dtype, shape, 9), plan.u = normal(plan.dtype, shape, 10);
    ng_tape *on = own(ng_tape_new());
    ng_module *norm = own(norm_new(&plan, NULL));
    ng_tensor *mask = mask_of(&plan, 0, SAMPLES);
    const passes whole = pass(on, norm, plan.x, plan.cotangent, plan.u, mask ? own(mask) : NG_NONE);
    plan.y = whole.y, plan.dx = whole.dx, plan.ddx = whole.ddx;
    plan.dgamma = whole.dgamma, plan.dbeta = whole.dbeta;
    plan.mean = ng_module_find(norm, "running_mean");
    plan.spread = ng_module_find(norm, plan.renorm ? "running_deviation" : "running_var");
    assert_ok(!ng_failed());
    assert_ranks_well(4, norm_program, &plan);
}

START_TEST(batch_norm_of_a_group_is_that_of_the_whole_batch)
{
    check_norm((batch_plan){.dtype = NG_F64, .tolerance = 1e-12, .share = _i}, 0.5);
    check_norm((batch_plan){.dtype = NG_F32, .tolerance = 2e-5, .share = _i}, 0.5);
    check_norm((batch_plan){.dtype = NG_F64, .tolerance = 1e-12, .share = _i, .masked = true}, 0.5);
    if (_i < 2)
        check_norm((batch_plan){.dtype = NG_F64, .tolerance = 1e-12, .share = _i, .renorm = true},
                   0.5);
    if (_i == 1) check_norm((batch_plan){.dtype = NG_F64, .tolerance = 1e-9, .share = 1}, 1e6);
}

static ng_status lonely_program(ng_group *group, void *with)
{
    (void)with;
    ng_tape *on = ng_tape_new();
    const int64_t count = ng_group_rank(group) == 1;
    ng_tensor *x = ng_ones_new(NG_F64, NG_SHAPE(count, 2));
    ng_tensor *y =
        ng_batch_norm(on, x, NG_NONE, NG_NONE, NG_NONE, NG_NONE, .training = true, .group = group);
    const bool refused = !y && ng_error_status() == NG_ESHAPE;
    ng_clear_error();
    expect(refused);
    ng_tape_free(on), ng_tensor_free(x);
    return NG_OK;
}

START_TEST(one_value_per_channel_of_all_ranks_is_an_error)
{
    assert_ranks_well(3, lonely_program, NULL);
}

/* ---- The checker ---------------------------------------------------------------------------- */

/* The same function on all ranks: the mean of their inputs, which are equal, then BatchNorm of a
 * part on each rank, then a sum that puts the parts together. */
static ng_tensor *whole_function(ng_tape *on, ng_tensor *const *in, void *context)
{
    ng_group *group = context;
    const int rank = ng_group_rank(group), size = ng_group_size(group);
    ng_tensor *own[3];
    for (int k = 0; k < 3; k++)
        own[k] = ng_group_sum(on, ng_mul_scalar(on, in[k], 1.0 / size), group);
    const int64_t count = ng_dim(in[0], 0), first = rank * 2,
                  last = rank + 1 < size ? first + 2 : count;
    ng_tensor *part = ng_slice(on, own[0], 0, first, last);
    ng_tensor *y =
        ng_batch_norm(on, part, own[1], own[2], NG_NONE, NG_NONE, .training = true, .group = group);
    ng_tensor *parts[3];
    int n = 0;
    if (first > 0) parts[n++] = ng_full(on, NG_F64, NG_SHAPE(first, 3), 0);
    parts[n++] = y;
    if (last < count) parts[n++] = ng_full(on, NG_F64, NG_SHAPE(count - last, 3), 0);
    return ng_group_sum(on, ng_concat(on, parts, n, 0), group);
}

static ng_status checking_program(ng_group *group, void *with)
{
    (void)with;
    ng_rng rng = ng_rng_seeded(3);
    ng_tensor *in[] = {ng_normal_new(NG_F64, NG_SHAPE(7, 3), 0, 1, &rng),
                       ng_normal_new(NG_F64, NG_SHAPE(3), 1, 0.3, &rng),
                       ng_normal_new(NG_F64, NG_SHAPE(3), 0, 1, &rng)};
    const ng_check_report report =
        ng_check_function(whole_function, in, 3, .order = 2, .context = group);
    if (!report.passed) ng_fail(NG_EGRAD, "%s: %s", report.worst_name, report.message);
    for (int k = 0; k < 3; k++) ng_tensor_free(in[k]);
    return NG_OK;
}

START_TEST(the_checker_passes_on_two_ranks) { assert_ranks_well(2, checking_program, NULL); }

/* ---- Gradients that only some ranks want ----------------------------------------------------- */

/* Of rank r the first x (2, 1) is wanted if bit r of *with is set; gamma always is. */
static ng_status some_program(ng_group *group, void *with)
{
    const int rank = ng_group_rank(group);
    ng_tape *on = ng_tape_new();
    ng_module *norm = ng_batch_norm_new(1, .group = group);
    ng_tensor *x = ng_tensor_from(NG_F32, NG_SHAPE(2, 1), NG_VALUES(rank, 3 * rank + 1));
    if (*(const int *)with >> rank & 1) ng_require_grad(x);
    for (int layer = 0; layer < 2; layer++) {
        ng_tensor *y = ng_forward(norm, on, x);
        expect(ng_backward(on, ng_sum(on, ng_square(on, y))) == NG_OK);
    }
    expect(!ng_requires_grad(x) || ng_has_grad(x));
    expect(ng_has_grad(ng_module_find(norm, "weight")));
    expect(ng_group_agree(group) == NG_OK);
    ng_module_free(norm), ng_tensor_free(x), ng_tape_free(on);
    return NG_OK;
}

START_TEST(ranks_need_not_want_the_same_gradients)
{
    int wanted = _i;
    assert_ranks_well(2, some_program, &wanted);
}

Suite *group_suite(void)
{
    Suite *suite = suite_create("group");
    TCase *tests = add_case(suite, NULL, NULL);
    add_tests(tests, a_sum_has_gradients_of_any_order, broadcast_and_gather_keep_all_bits,
              wrong_settings_are_errors, out_of_memory_on_one_rank_is_an_error_on_all,
              one_value_per_channel_of_all_ranks_is_an_error, the_checker_passes_on_two_ranks);
    add_loops(tests, MOST, sums_have_the_bits_of_one_tree);
    add_loops(tests, FAULTS, a_failure_of_one_rank_is_an_error_on_all);
    add_loops(tests, 2, a_rank_that_leaves_early_is_an_error_on_the_others,
              too_few_threads_are_an_error);
    add_loops(tests, 4, different_calls_of_the_same_size_are_an_error,
              ranks_need_not_want_the_same_gradients);
    add_loops(tests, 3, a_link_that_fails_is_an_error_and_ends_the_group);
    add_loops(tests, 5, batch_norm_of_a_group_is_that_of_the_whole_batch);
    return suite;
}
