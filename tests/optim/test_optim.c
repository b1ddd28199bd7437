/* Optimizers: their formulas, which parameters they move, schedules, clipping, groups. */
#include "core/tensor.h"
#include "support/fixture.h"
#include "support/optimizers.h"
#include "support/support.h"

/* One parameter of three weights, whose gradient a test chooses: sum(w c) has the gradient c. */
enum { N = 3 };
static const double start[N] = {0.5, -1.25, 2};

/* Gradients of five steps, with changes of sign and size. */
enum { STEPS = 5 };
static const double gradients[STEPS][N] = {
    {0.3, -2, 1e-3}, {-0.7, -1, 4e-3}, {0.1, 3, -2e-3}, {0.9, 0.25, 0}, {-0.4, 0.5, 5e-3}};

/* Five steps are some fifty roundings of 1.1e-16 in sums that do not cancel. */
static const double tolerance = 1e-14;

typedef struct {
    ng_module *module;
    ng_tensor *weight;
} bench;

/* A bench whose module will belong to another module. */
static bench part_new(ng_dtype dtype)
{
    bench b = {.module = ng_linear_new(N, 1, .no_bias = true)};
    assert_ok(ng_module_to(b.module, dtype));
    b.weight = ng_module_find(b.module, "weight");
    for (int i = 0; i < N; i++) ng_set(b.weight, i, start[i]);
    return b;
}

static bench bench_new(ng_dtype dtype)
{
    bench b = part_new(dtype);
    own(b.module);
    return b;
}

/* A backward pass with these gradients. */
static void reach(bench *b, const double *g)
{
    ng_tensor *c = ng_tensor_from(ng_dtype_of(b->weight), NG_SHAPE(1, N), g, N);
    assert_ok(ng_backward(tape, ng_sum(tape, ng_mul(tape, b->weight, c))));
    ng_tape_reset(tape);
    ng_tensor_free(c);
}

/* A step along these gradients. */
static void move(bench *b, ng_optimizer *optimizer, const double *g)
{
    reach(b, g);
    assert_ok(ng_optimizer_step(optimizer));
}

static void assert_weights(const bench *b, const double *expected)
{
    for (int i = 0; i < N; i++) assert_close(ng_get(b->weight, i), expected[i], tolerance);
}

/* ---- Each optimizer against its formula ---------------------------------------------------- */

static void check_sgd(double momentum, double dampening, double decay, bool nesterov)
{
    const double lr = 0.1;
    bench b = bench_new(NG_F64);
    ng_optimizer *sgd =
        own(ng_sgd_new(b.module, .lr = lr, .momentum = momentum, .dampening = dampening,
                       .weight_decay = decay, .nesterov = nesterov));
    double w[N], v[N] = {0};
    memcpy(w, start, sizeof w);
    for (int t = 0; t < STEPS; t++) {
        for (int i = 0; i < N; i++) {
            const double g = gradients[t][i] + decay * w[i];
            v[i] = t == 0 ? g : momentum * v[i] + (1 - dampening) * g;
            w[i] -= lr * (momentum == 0 ? g : nesterov ? g + momentum * v[i] : v[i]);
        }
        move(&b, sgd, gradients[t]);
        assert_weights(&b, w);
    }
    ck_assert_int_eq(ng_optimizer_steps(sgd), STEPS);
}

START_TEST(sgd_is_its_formula)
{
    check_sgd(0, 0, 0, false);
    check_sgd(0, 0, 0.05, false);
    check_sgd(0.9, 0, 0, false);
    check_sgd(0.9, 0.3, 0.05, false);
    check_sgd(0.9, 0, 0.05, true);
}

static ng_optimizer *that_squares(int kind, ng_module *module)
{
    const double lr = 1e-2;
    if (kind == 0) return ng_adam_new(module, .lr = lr, .beta1 = 0.3, .beta2 = 0.5);
    if (kind == 1) return ng_adamw_new(module, 0.01, .lr = lr, .beta1 = 0.3, .beta2 = 0.5);
    return ng_rmsprop_new(module, .lr = lr, .alpha = 0.5, .centered = kind == 3);
}

/* After a finite gradient whose square overflows, training goes on with ordinary ones. */
START_TEST(a_huge_gradient_stops_nothing)
{
    for (int i = 0; i < 8; i++) {
        bench b = bench_new(i % 2 ? NG_F64 : NG_F32);
        const double huge = i % 2 ? 1e160 : 1e25;
        ng_optimizer *optimizer = own(that_squares(i / 2, b.module));
        move(&b, optimizer, (double[]){huge, -huge, 1});
        for (int j = 0; j < N; j++) ck_assert(fabs(ng_get(b.weight, j) - start[j]) < 0.1);
        for (int t = 0; t < 3000; t++) {
            move(&b, optimizer, (double[]){t % 2 ? 1 : 2, -2, 1});
        }
        ck_assert(ng_get(b.weight, 0) < start[0] - 1 && isfinite(ng_get(b.weight, 0)));
        ck_assert(ng_get(b.weight, 1) > start[1] + 1 && isfinite(ng_get(b.weight, 1)));
        move(&b, optimizer, (double[]){(double)INFINITY, 0, 0});
        ck_assert(!isfinite(ng_get(b.weight, 0)));
    }
}

START_TEST(defaults_written_out_change_no_bit)
{
    bench left = bench_new(NG_F64), said = bench_new(NG_F64);
    ng_optimizer *out = own(optimizers[_i].make_default(left.module));
    ng_optimizer *in = own(optimizers[_i].make_written_out(said.module));
    for (int t = 0; t < STEPS; t++) {
        move(&left, out, gradients[t]), reach(&said, gradients[t]);
        assert_ok(ng_optimizer_step(in));
    }
    assert_same_bits(left.weight, said.weight);
}

/* ---- Optimizers that normalize (test_golden.c has their formulas) --------------------------- */

/* LARS and LAMB move weights whose norm is 0 by the rate alone. */
START_TEST(weights_of_zero_are_moved_by_the_rate)
{
    for (int k = 0; k < 2; k++) {
        bench zero = bench_new(NG_F64);
        ng_fill(zero.weight, 0);
        ng_optimizer *optimizer =
            own(k ? ng_lars_new(zero.module, .lr = 0.5)
                  : ng_lamb_new(zero.module, 0.01, .lr = 0.5, .eps = NG_ZERO));
        move(&zero, optimizer, (double[]){2, -2, 2});
        assert_close(ng_get(zero.weight, 0), k ? -1 : -0.5, 1e-12);
    }
}

/* For good, and in its own weight alone; Muon's is a matrix. */
START_TEST(a_gradient_of_nan_or_inf_leaves_the_weight_not_finite)
{
    const double wrong[] = {(double)NAN, HUGE_VAL, -HUGE_VAL};
    bench b = bench_new(NG_F32);
    ng_optimizer *optimizer = own(optimizers[_i / 3].make(b.module));
    move(&b, optimizer, (double[]){1, wrong[_i % 3], 1});
    for (int step = 0; step < 3; step++) {
        ck_assert(!isfinite(ng_get(b.weight, 1)));
        for (int i = 0; i < 3 && _i / 3 != OF_muon; i += 2)
            ck_assert(isfinite(ng_get(b.weight, i)));
        move(&b, optimizer, (double[]){1, 1, 1});
    }
}

/* ---- Which parameters are moved ------------------------------------------------------------ */

START_TEST(two_backward_passes_add_and_a_step_spends)
{
    bench b = bench_new(NG_F64);
    ng_optimizer *sgd = own(ng_sgd_new(b.module, .lr = 1));
    reach(&b, gradients[0]);
    reach(&b, gradients[1]);
    double w[N];
    for (int i = 0; i < N; i++) {
        const double sum = gradients[0][i] + gradients[1][i];
        assert_close(ng_get(ng_grad(b.weight), i), sum, tolerance);
        w[i] = start[i] - sum;
    }
    assert_ok(ng_optimizer_step(sgd));
    assert_weights(&b, w);
    assert_ok(ng_grad(b.weight)); /* still to be seen */

    assert_fails(ng_optimizer_step(sgd), NG_ESTATE);
    ck_assert_int_eq(ng_optimizer_steps(sgd), 1);
    assert_weights(&b, w);

    reach(&b, gradients[2]); /* overwrites */
    for (int i = 0; i < N; i++) ck_assert(ng_get(ng_grad(b.weight), i) == gradients[2][i]);
}

/* y = sum of w times its own gradient, a constant: changing that gradient makes y stale. */
START_TEST(a_gradient_that_was_used_and_then_changed_is_noticed)
{
    bench b = bench_new(NG_F64);
    reach(&b, gradients[0]);
    for (int how = 0; how < 4; how++) {
        ng_tape_reset(tape);
        ng_tensor *y = ng_sum(tape, ng_mul(tape, b.weight, ng_grad(b.weight)));
        if (how == 0) ng_zero_grad(b.weight);
        if (how == 1) assert_ok(ng_set_grad(b.weight, b.weight));
        if (how == 2) ck_assert(ng_clip_grad_norm(b.module, 1e-3) > 0);
        if (how == 3) assert_ok(ng_clip_grad_value(b.module, 1e-6));
        assert_fails(ng_backward(tape, y), NG_ESTATE);
    }
}

START_TEST(what_no_backward_pass_has_reached_is_not_moved)
{
    ng_module *net = own(ng_sequential_new(ng_linear_new(N, 1), ng_linear_new(N, 1)));
    ng_tensor *x = own(ng_ones_new(NG_F32, NG_SHAPE(1, N)));
    /* With momentum and decay even a zero gradient would move a weight. */
    ng_optimizer *adam = own(ng_adamw_new(net, 0.5));
    ng_tensor *reached = ng_module_find(net, "0.weight"), *other = ng_module_find(net, "1.weight");
    ng_tensor *before = own(ng_copy_new(reached, NG_F32)), *kept = own(ng_copy_new(other, NG_F32));
    for (int t = 0; t < 3; t++) {
        assert_ok(ng_backward(tape, ng_sum(tape, ng_forward(ng_module_child(net, 0), tape, x))));
        assert_ok(ng_optimizer_step(adam));
        ng_tape_reset(tape);
    }
    assert_same_bits(other, kept);
    ck_assert(ng_get(reached, 0) != ng_get(before, 0));
}

/* Adam's bias correction counts the steps of each parameter: one that is reached late begins at t =
 * 1 and moves by lr. */
START_TEST(a_parameter_reached_late_takes_its_first_step_then)
{
    bench b = part_new(NG_F64), other = part_new(NG_F64);
    ng_module *both = own(ng_sequential_new(b.module, other.module));
    ng_optimizer *adam = own(ng_adam_new(both, .lr = 0.1));
    for (int t = 0; t < 4; t++) move(&other, adam, gradients[0]);
    move(&b, adam, gradients[1]);
    assert_close(ng_get(b.weight, 0), start[0] + 0.1, 1e-7); /* eps 1e-8 beside 0.7 */
    ck_assert_int_eq(ng_optimizer_steps(adam), 5);
}

START_TEST(two_optimizers_of_a_network_both_move_it)
{
    bench b = bench_new(NG_F64);
    ng_optimizer *one = own(ng_sgd_new(b.module, .lr = 1)),
                 *two = own(ng_sgd_new(b.module, .lr = 10));
    double w[N];
    for (int t = 0; t < STEPS; t++) {
        for (int i = 0; i < N; i++) w[i] = ng_get(b.weight, i) - 11 * gradients[t][i];
        move(&b, one, gradients[t]);
        assert_ok(ng_optimizer_step(two));
        for (int i = 0; i < N; i++) assert_close(ng_get(b.weight, i), w[i], 1e-13);
    }
    ck_assert_int_eq(ng_optimizer_step(two), NG_ESTATE);
    ng_optimizer *late = own(ng_sgd_new(b.module, .lr = 1));
    assert_fails(ng_optimizer_step(late), NG_ESTATE);
}

START_TEST(an_optimizer_moves_a_layer_that_is_added_later)
{
    bench grown = part_new(NG_F64), alone = bench_new(NG_F64), added = part_new(NG_F64);
    ng_module *net = own(ng_sequential_new(grown.module));
    ng_optimizer *adam = own(ng_adam_new(net, .lr = 0.1)),
                 *same = own(ng_adam_new(alone.module, .lr = 0.1));
    for (int t = 0; t < STEPS; t++) {
        if (t == 2) assert_ok(ng_sequential_add(net, added.module));
        reach(&grown, gradients[t]), reach(&alone, gradients[t]);
        if (t == 4) reach(&added, gradients[1]);
        if (t == 2) { /* where there is no memory for it, nothing has changed */
            allocations_fail_after(0);
            ck_assert_int_eq(ng_optimizer_step(adam), NG_ENOMEM);
            allocations_succeed();
            assert_error(NG_ENOMEM, "ng_optimizer_step");
        }
        assert_ok(ng_optimizer_step(adam));
        assert_ok(ng_optimizer_step(same));
        assert_same_bits(grown.weight, alone.weight);
    }
    assert_close(ng_get(added.weight, 0), start[0] + 0.1, 1e-7); /* its own first step */
}

START_TEST(gradients_of_any_size_are_clipped_and_such_that_are_none_refused)
{
    bench b = bench_new(NG_F64);
    const double huge[N] = {3e200, -4e200, 0}, tiny[N] = {3e-200, 4e-200, 0};
    reach(&b, huge);
    assert_close(ng_grad_norm(b.module), 5e200, 1e-14);
    assert_close(ng_clip_grad_norm(b.module, 10), 5e200, 1e-14);
    assert_close(ng_get(ng_grad(b.weight), 0), 6, 1e-14);
    assert_close(ng_get(ng_grad(b.weight), 1), -8, 1e-14);
    ng_zero_grads(b.module);
    reach(&b, tiny);
    assert_close(ng_grad_norm(b.module), 5e-200, 1e-14);
    ng_zero_grads(b.module);
    reach(&b, (double[]){3e-161, 4e-161, 0}); /* whose squares keep three digits */
    assert_close(ng_grad_norm(b.module), 5e-161, 1e-14);
    ng_zero_grads(b.module);
    const double most[N] = {1.5e308, 1.5e308, -1.5e308}; /* whose norm is beyond double */
    reach(&b, most);
    ck_assert(isinf(ng_clip_grad_norm(b.module, 3)));
    assert_close(ng_grad_norm(b.module), 3, 1e-14);
    ck_assert(!ng_failed());

    const double wrong[] = {(double)NAN, HUGE_VAL};
    for (int k = 0; k < 2; k++) {
        ng_zero_grads(b.module);
        reach(&b, (double[]){1, 2, wrong[k]});
        ck_assert(isnan(ng_clip_grad_norm(b.module, 1)));
        assert_error(NG_EVALUE, "ng_clip_grad_norm");
        ck_assert(ng_get(ng_grad(b.weight), 1) == 2); /* left alone */
    }
}

START_TEST(a_frozen_parameter_is_not_moved_nor_by_an_old_gradient_later)
{
    bench b = bench_new(NG_F64);
    ng_optimizer *sgd = own(ng_sgd_new(b.module, .lr = 1, .momentum = 0.9));
    reach(&b, gradients[0]);
    ng_freeze(b.module);
    assert_ok(ng_optimizer_step(sgd));
    assert_weights(&b, start);
    ng_unfreeze(b.module);
    assert_fails(ng_optimizer_step(sgd), NG_ESTATE);
    assert_weights(&b, start);
    move(&b, sgd, gradients[1]);
    double w[N];
    for (int i = 0; i < N; i++) w[i] = start[i] - gradients[1][i];
    assert_weights(&b, w);
}

/* Clamps to [-1, 1] and counts the calls; an error for negative counts. */
static ng_status clamp(void *context, const char *name, ng_tensor *weight)
{
    int *const calls = context;
    ck_assert_str_eq(name, "weight");
    if (++*calls <= 0) return NG_ESTATE;
    double *const w = ng_data_f64(weight);
    for (int i = 0; i < N; i++) w[i] = fmin(fmax(w[i], -1), 1);
    return NG_OK;
}

START_TEST(a_projection_follows_each_move)
{
    int calls = 0;
    bench b = bench_new(NG_F64);
    ng_optimizer *sgd = own(ng_sgd_new(b.module, .lr = 1));
    assert_ok(ng_optimizer_set_projection(sgd, clamp, &calls));
    move(&b, sgd, gradients[0]);
    assert_weights(&b, (double[]){0.2, 0.75, 1});
    ck_assert_int_eq(calls, 1);
    reach(&b, gradients[0]);
    ng_freeze(b.module); /* it is not moved, and not projected */
    assert_ok(ng_optimizer_step(sgd));
    ck_assert_int_eq(calls, 1);
    ng_unfreeze(b.module);
    assert_ok(ng_optimizer_set_projection(sgd, NULL, NULL));
    move(&b, sgd, gradients[2]);
    assert_weights(&b, (double[]){0.1, -2.25, 1.002});
    ck_assert_int_eq(calls, 1);
}

START_TEST(a_backward_pass_after_the_step_notices_the_moved_weights)
{
    bench b = bench_new(NG_F64);
    ng_optimizer *sgd = own(ng_sgd_new(b.module));
    ng_tensor *loss = ng_sum(tape, ng_square(tape, b.weight));
    assert_ok(ng_backward(tape, loss));
    assert_ok(ng_optimizer_step(sgd));
    assert_fails(ng_backward(tape, loss), NG_ESTATE);
}

START_TEST(state_follows_a_dtype_change_before_the_first_step_only)
{
    bench b = bench_new(NG_F32);
    ng_optimizer *adam = own(ng_adam_new(b.module, .lr = 0.1));
    assert_ok(ng_module_to(b.module, NG_F64));
    allocations_fail_after(0);
    ck_assert_int_eq(ng_optimizer_step(adam), NG_ENOMEM);
    allocations_succeed();
    ng_clear_error();
    ck_assert_int_eq(ng_optimizer_steps(adam), 0);
    move(&b, adam, gradients[0]);
    assert_close(ng_get(b.weight, 0), start[0] - 0.1, 1e-7);

    assert_ok(ng_module_to(b.module, NG_F32));
    reach(&b, gradients[0]);
    assert_fails(ng_optimizer_step(adam), NG_ESTATE);
    ck_assert_int_eq(ng_optimizer_steps(adam), 1);
}

/* ---- Schedules ----------------------------------------------------------------------------- */

START_TEST(schedules_have_their_closed_forms)
{
    const double pi = acos(-1);
    const ng_schedule constant = {0};
    const ng_schedule stairs = {.kind = NG_SCHEDULE_STEP, .every = 3, .factor = 0.5};
    const ng_schedule cosine = {.kind = NG_SCHEDULE_COSINE, .steps = 8, .floor = 0.1};
    const ng_schedule linear = {.kind = NG_SCHEDULE_LINEAR, .steps = 8, .floor = 0.2};
    for (int t = 0; t < 20; t++) {
        ck_assert(ng_schedule_factor(&constant, t) == 1);
        assert_close(ng_schedule_factor(&stairs, t), pow(0.5, floor(t / 3.0)), 1e-15);
        assert_close(ng_schedule_factor(&cosine, t),
                     t < 8 ? 0.1 + 0.9 * (1 + cos(pi * t / 8)) / 2 : 0.1, 1e-15);
        assert_close(ng_schedule_factor(&linear, t), t < 8 ? 1 - 0.8 * t / 8 : 0.2, 1e-15);
    }
    const ng_schedule tenth = {.kind = NG_SCHEDULE_STEP, .every = 1};
    assert_close(ng_schedule_factor(&tenth, 2), 0.01, 1e-15);
}

START_TEST(a_warm_up_goes_before_any_schedule)
{
    const double pi = acos(-1);
    bench b = bench_new(NG_F64);
    ng_optimizer *sgd =
        ng_sgd_new(b.module, .lr = 0.5,
                   .schedule = NG_SCHEDULE(.kind = NG_SCHEDULE_COSINE, .warmup = 4, .steps = 10));
    double w = start[1];
    for (int t = 0; t < 18; t++) {
        const double factor = t < 4 ? (t + 1) / 4.0 : t < 14 ? (1 + cos(pi * (t - 4) / 10)) / 2 : 0;
        assert_near(ng_optimizer_lr(sgd), 0.5 * factor, 1e-16);
        move(&b, sgd, gradients[0]);
        w -= 0.5 * factor * gradients[0][1];
        assert_near(ng_get(b.weight, 1), w, 1e-14); /* 18 roundings of weights below 8 */
    }
    ng_optimizer_free(sgd);

    const ng_schedule stairs = {.kind = NG_SCHEDULE_STEP, .warmup = 2, .every = 3};
    const double expected[] = {0.5, 1, 1, 1, 1, 0.1, 0.1, 0.1, 0.01};
    for (int t = 0; t < 9; t++) assert_close(ng_schedule_factor(&stairs, t), expected[t], 1e-15);
}

START_TEST(the_base_rate_can_be_set)
{
    bench b = bench_new(NG_F64);
    ng_optimizer *sgd = own(ng_sgd_new(
        b.module, .lr = 0.5, .schedule = NG_SCHEDULE(.kind = NG_SCHEDULE_LINEAR, .steps = 2)));
    assert_ok(ng_optimizer_set_lr(sgd, 4));
    move(&b, sgd, (double[N]){0});
    ck_assert(ng_optimizer_lr(sgd) == 2);
    assert_refused(ng_optimizer_set_lr(sgd, (double)NAN));
    ck_assert(ng_optimizer_lr(sgd) == 2);
    assert_ok(ng_optimizer_set_lr(sgd, 0));
    move(&b, sgd, gradients[0]);
    assert_weights(&b, start);
}

/* ---- Clipping ------------------------------------------------------------------------------ */

START_TEST(the_norm_is_that_of_all_unspent_gradients)
{
    ng_module *net = own(ng_sequential_new(ng_linear_new(N, 1), ng_linear_new(N, 1)));
    ck_assert(ng_grad_norm(net) == 0);
    ng_tensor *x = own(ng_tensor_from(NG_F32, NG_SHAPE(1, N), NG_VALUES(2, 3, 6))); /* norm 7 */
    ng_tensor *y = ng_forward(ng_module_child(net, 0), tape, x);
    ng_tensor *z = ng_forward(ng_module_child(net, 1), tape, x);
    assert_ok(ng_backward(tape, ng_sum(tape, ng_add(tape, y, z))));
    assert_close(ng_grad_norm(net), sqrt(2 * (49 + 1)), 1e-14); /* weights, biases 1 */

    ng_optimizer *first = own(ng_sgd_new(ng_module_child(net, 0)));
    assert_ok(ng_optimizer_step(first));
    assert_close(ng_grad_norm(net), sqrt(50), 1e-14);
    ng_zero_grads(net);
    ck_assert(ng_grad_norm(net) == 0);
    assert_values(ng_grad(ng_module_find(net, "0.weight")), 0, 0, 0, 0);
}

START_TEST(clipping_by_norm_shortens_what_is_too_long)
{
    const double g[N] = {2, 3, 6};
    const ng_dtype dtypes[] = {NG_F64, NG_F32};
    for (int k = 0; k < 2; k++) {
        const double rounding = k == 0 ? 1e-14 : 2e-7;
        bench b = bench_new(dtypes[k]);
        reach(&b, g);
        assert_close(ng_clip_grad_norm(b.module, 10), 7, 1e-14);
        assert_values(ng_grad(b.weight), 0, 2, 3, 6);
        assert_close(ng_clip_grad_norm(b.module, 1), 7, 1e-14);
        const double f = 1 / (7 + 1e-6);
        assert_values(ng_grad(b.weight), rounding, 2 * f, 3 * f, 6 * f);
    }
}

START_TEST(clipping_by_value_clamps_each_element)
{
    const double g[N] = {-3, 0.25, 2};
    bench b = bench_new(NG_F64);
    reach(&b, g);
    assert_ok(ng_clip_grad_value(b.module, 0.5));
    assert_values(ng_grad(b.weight), 0, -0.5, 0.25, 0.5);
}

/* ---- Wrong use ----------------------------------------------------------------------------- */

START_TEST(options_without_sense_are_refused)
{
    bench b = bench_new(NG_F64);
    const double nan = (double)NAN;
    assert_refused(ng_sgd_new(b.module, .lr = -1));
    assert_refused(ng_sgd_new(b.module, .lr = HUGE_VAL));
    assert_refused(ng_sgd_new(b.module, .momentum = -0.5));
    assert_refused(ng_sgd_new(b.module, .nesterov = true));
    assert_refused(ng_sgd_new(b.module, .dampening = 0.1));
    assert_refused(ng_adam_new(b.module, .schedule = NG_SCHEDULE(.steps = 10)));
    assert_refused(ng_adam_new(
        b.module, .schedule = NG_SCHEDULE(.kind = NG_SCHEDULE_STEP, .every = 2, .floor = 0.1)));
    assert_refused(ng_adam_new(
        b.module, .schedule = NG_SCHEDULE(.kind = NG_SCHEDULE_LINEAR, .steps = 2, .every = 1)));
    assert_refused(ng_adam_new(b.module, .schedule = NG_SCHEDULE(.kind = NG_SCHEDULE_LINEAR,
                                                                 .steps = 2, .factor = NG_ZERO)));
    assert_refused(ng_sgd_new(b.module, .momentum = 0.9, .dampening = 0.1, .nesterov = true));
    assert_refused(ng_adam_new(b.module, .lr = nan));
    assert_refused(ng_adam_new(b.module, .beta1 = 1));
    assert_refused(ng_muon_new(b.module, .steps = -1));
    assert_refused(ng_adamw_new(b.module, nan));
#define OPTIMIZER(...)
#define SETTING(name, setting, other, refused)                                                     \
    assert_refused(CALLED(ng_##name##_new, b.module REQUIRED_##name, .setting = refused),          \
                   "ng_" #name "_new: " #setting " is ");
#define FLAG(name, setting)
#include "support/optimizers.def"
    assert_refused(ng_sgd_new(b.module, .schedule = NG_SCHEDULE(.kind = NG_SCHEDULE_STEP)));
    assert_refused(ng_sgd_new(b.module, .schedule = NG_SCHEDULE(.kind = NG_SCHEDULE_COSINE)));
    assert_refused(ng_sgd_new(b.module, .schedule = NG_SCHEDULE(.warmup = -1)));
    assert_refused(ng_sgd_new(b.module, .schedule = NG_SCHEDULE(.kind = (ng_schedule_kind)9)));
    assert_refused(ng_sgd_new(
        b.module, .schedule = NG_SCHEDULE(.kind = (ng_schedule_kind)(NG_SCHEDULE_LINEAR + 1))));
    ck_assert(isnan(ng_clip_grad_norm(b.module, -1)));
    assert_error(NG_EVALUE, "ng_clip_grad_norm");
    assert_refused(ng_clip_grad_value(b.module, nan));
    ng_optimizer *sgd = own(ng_sgd_new(b.module));
    assert_refused(ng_optimizer_scale_lr(sgd, "*.norm", 2));
    assert_refused(ng_optimizer_set_decay(sgd, "*", -1));
    assert_refused(ng_optimizer_scale_lr(sgd, "*", -2));
    const ng_schedule constant = {0};
    ck_assert(isnan(ng_schedule_factor(&constant, -1)));
    assert_error(NG_EVALUE, "ng_schedule_factor");
}

/* ---- Groups, bare tensors -------------------------------------------------------------------- */

/* Each parameter moves as under an optimizer that was made with its settings. */
START_TEST(a_group_has_its_own_rate_and_decay)
{
    ng_module *net = own(ng_sequential_new(ng_linear_new(2, 2), ng_linear_new(2, 1)));
    ng_optimizer *adamw = own(ng_adamw_new(net, 0.5, .lr = 0.1));
    assert_ok(ng_optimizer_set_decay(adamw, "*.bias", 0));
    assert_ok(ng_optimizer_set_decay(adamw, "1.*", 0.25));
    assert_ok(ng_optimizer_scale_lr(adamw, "1.*", 0.1));
    ng_module *alike[3];
    const double lr[3] = {0.1, 0.1, 0.01}, decay[3] = {0.5, 0, 0.25};
    ng_optimizer *one[3];
    for (int i = 0; i < 3; i++) {
        alike[i] = own(ng_sequential_new(ng_linear_new(2, 2), ng_linear_new(2, 1)));
        one[i] = own(ng_adamw_new(alike[i], decay[i], .lr = lr[i]));
    }
    ng_named_tensor p, q;
    for (int step = 0; step < 3; step++) {
        for (int i = 0; ng_module_parameter(net, i, &p); i++) {
            ng_tensor *g = ng_full_new(NG_F32, ng_shape_of(p.tensor), 0.5 + step);
            assert_ok(ng_set_grad(p.tensor, g));
            for (int k = 0; k < 3; k++) {
                ng_module_parameter(alike[k], i, &q);
                assert_ok(ng_set_grad(q.tensor, g));
            }
            ng_tensor_free(g);
        }
        assert_ok(ng_optimizer_step(adamw));
        for (int k = 0; k < 3; k++) assert_ok(ng_optimizer_step(one[k]));
    }
    const struct {
        const char *name;
        int like;
    } expected[] = {{"0.weight", 0}, {"0.bias", 1}, {"1.weight", 2}, {"1.bias", 2}};
    for (int i = 0; i < 4; i++)
        assert_tensors_close(ng_module_find(net, expected[i].name),
                             ng_module_find(alike[expected[i].like], expected[i].name), 1e-6);
}

/* sum (w - 3)^2 + (b + 1)^2 */
START_TEST(bare_tensors_have_an_optimizer)
{
    ng_tensor *w = ng_zeros_new(NG_F64, NG_SHAPE(2)), *b = ng_zeros_new(NG_F64, NG_SCALAR);
    ng_module *both = own(ng_parameters_new(NG_TENSORS(w, b)));
    ck_assert_ptr_eq(ng_module_find(both, "1"), b);
    ng_optimizer *adam = own(ng_adam_new(both, .lr = 0.1));
    for (int step = 0; step < 400; step++) {
        ng_tensor *far = ng_sum(tape, ng_square(tape, ng_add_scalar(tape, w, -3)));
        assert_ok(ng_backward(tape, ng_add(tape, far, ng_square(tape, ng_add_scalar(tape, b, 1)))));
        assert_ok(ng_optimizer_step(adam));
        ng_tape_reset(tape);
    }
    assert_near(ng_get(w, 1), 3, 1e-3);
    assert_near(ng_item(b), -1, 1e-3);
    ng_tensor_free(w); /* it is the module's, which frees it */
    assert_fails(ng_forward(both, tape, b), NG_ESTATE);
}

START_TEST(tensors_that_cannot_be_parameters_stay_yours)
{
    ng_tensor *x = ng_zeros_new(NG_F64, NG_SHAPE(2)), *labels = ng_zeros_new(NG_I64, NG_SHAPE(2));
    assert_fails(ng_parameters_new(NG_TENSORS(x, x)), NG_ESTATE);
    assert_fails(ng_parameters_new(NG_TENSORS(x, labels)), NG_EDTYPE);
    assert_refused(ng_parameters_new(&x, -1));
    ng_tensor *list[6];
    for (int i = 0; i < 6; i++) list[i] = ng_zeros_new(NG_F64, NG_SHAPE(2));
    for (int64_t n = 0, refused = 1; refused; n++) {
        allocations_fail_after(n);
        ng_module *module = ng_parameters_new(list, 6);
        refused = out_of_memory(!module);
        for (int i = 0; refused && i < 6; i++) ck_assert(!ng_requires_grad(list[i]));
        ng_module_free(module);
    }
    ng_tensor_free(x), ng_tensor_free(labels);
}

Suite *optim_suite(void)
{
    Suite *suite = suite_create("optim");
    TCase *tests = add_case(suite, set_up, tear_down);
    add_tests(
        tests, sgd_is_its_formula, a_huge_gradient_stops_nothing,
        weights_of_zero_are_moved_by_the_rate, two_backward_passes_add_and_a_step_spends,
        a_gradient_that_was_used_and_then_changed_is_noticed,
        what_no_backward_pass_has_reached_is_not_moved,
        a_parameter_reached_late_takes_its_first_step_then,
        two_optimizers_of_a_network_both_move_it, an_optimizer_moves_a_layer_that_is_added_later,
        gradients_of_any_size_are_clipped_and_such_that_are_none_refused,
        a_frozen_parameter_is_not_moved_nor_by_an_old_gradient_later,
        a_projection_follows_each_move, a_backward_pass_after_the_step_notices_the_moved_weights,
        state_follows_a_dtype_change_before_the_first_step_only, schedules_have_their_closed_forms,
        a_warm_up_goes_before_any_schedule, the_base_rate_can_be_set,
        the_norm_is_that_of_all_unspent_gradients, clipping_by_norm_shortens_what_is_too_long,
        clipping_by_value_clamps_each_element, options_without_sense_are_refused,
        a_group_has_its_own_rate_and_decay, bare_tensors_have_an_optimizer,
        tensors_that_cannot_be_parameters_stay_yours);
    add_loops(tests, OPTIMIZERS, defaults_written_out_change_no_bit);
    add_loops(tests, 3 * OPTIMIZERS, a_gradient_of_nan_or_inf_leaves_the_weight_not_finite);
    return suite;
}
