/* Padding: norms over a batch pass over what a mask hides. */
#include "norms/norm.h"

typedef struct {
    ng_shape x, mask;
    bool eval;
} masked_case;

static const masked_case cases[] = {
    {{2, {9, 3}}, {1, {9}}, false},    {{3, {4, 3, 5}}, {2, {4, 5}}, false},
    {{3, {6, 3, 5}}, {1, {6}}, false}, {{4, {3, 3, 4, 2}}, {3, {3, 4, 2}}, false},
    {{2, {9, 3}}, {1, {9}}, true},     {{3, {4, 3, 5}}, {2, {4, 5}}, true},
};
#define N_CASES ((int)(sizeof cases / sizeof cases[0]))

/* y, dx, the gradient of squares of gradients, dgamma and dbeta, with mask or of gathered rows. */
static void run(bool renorm, ng_tensor *x, ng_tensor *const state[4], ng_tensor *dy,
                ng_tensor *mask, bool eval, ng_tensor *of[5])
{
    ng_tensor *to[] = {x, state[0], state[1]}, *g[3];
    ng_tensor *y = renorm ? ng_batch_renorm(tape, x, state[0], state[1], state[2], state[3],
                                            .mask = mask, .training = !eval)
                          : ng_batch_norm(tape, x, state[0], state[1], state[2], state[3],
                                          .mask = mask, .training = !eval);
    assert_ok(ng_gradients(tape, &y, 1, to, 3, g, .cotangents = &dy, .record = true));
    ng_tensor *all =
        ng_add(tape, ng_sum(tape, ng_square(tape, g[0])), ng_sum(tape, ng_square(tape, g[1])));
    of[0] = y, of[1] = g[0], of[2] = ng_gradient(tape, all, x), of[3] = g[1], of[4] = g[2];
}

/* x (N, C, ...) as rows (positions, C). */
static ng_tensor *rows_of(ng_tensor *x)
{
    ng_axes order = {.count = ng_rank(x)};
    for (int i = 1; i < ng_rank(x); i++) order.axis[i - 1] = i == 1 ? 0 : i;
    order.axis[ng_rank(x) - 1] = 1;
    return ng_reshape(tape, ng_permute(tape, x, order), NG_SHAPE(-1, 3));
}

/* The positions that the mask keeps, as indices, of a mask with one number for `each` of them. */
static ng_tensor *kept_by(const ng_tensor *mask, int64_t each)
{
    double kept[64];
    int64_t count = 0;
    for (int64_t i = 0; i < ng_size(mask) * each; i++)
        if (ng_get(mask, i / each) != 0) kept[count++] = (double)i;
    return ng_from(tape, NG_I64, NG_SHAPE(count), kept, count);
}

START_TEST(masked_batch_norm_is_that_of_the_gathered_positions)
{
    const masked_case *m = &cases[_i % N_CASES];
    const bool renorm = _i >= N_CASES;
    ng_tensor *mask = own(ng_ones_new(NG_I64, m->mask));
    for (int64_t i = 1; i < ng_size(mask); i += 3) ng_set(mask, i, 0);
    ng_tensor *x = normal_with(NG_F64, m->x, 1, 2, 1), *dy = normal(NG_F64, m->x, 2);
    ng_tensor *kept = kept_by(mask, ng_size(x) / 3 / ng_size(mask));
    ng_tensor *xg = ng_variable(tape, ng_gather_rows(tape, rows_of(x), kept));
    ng_tensor *dyg = ng_gather_rows(tape, rows_of(dy), kept), *state[2][4], *whole[5], *gathered[5];
    for (int i = 0; i < 2; i++) {
        state[i][0] = normal_with(NG_F64, NG_SHAPE(3), 1, 1, 5);
        state[i][1] = normal(NG_F64, NG_SHAPE(3), 6);
        state[i][2] = own(ng_ones_new(NG_F64, NG_SHAPE(3)));
        state[i][3] = DOUBLES(NG_SHAPE(3), 0.5, 2, 3);
    }
    run(renorm, x, state[0], dy, mask, m->eval, whole);
    run(renorm, xg, state[1], dyg, NG_NONE, m->eval, gathered);
    for (int i = 0; i < 5; i++) {
        if (i > 2)
            assert_tensors_close(whole[i], gathered[i], 1e-12);
        else
            assert_tensors_close(ng_gather_rows(tape, rows_of(whole[i]), kept), gathered[i], 1e-12);
    }
    for (int i = 0; i < 3; i++) /* what is hidden is exactly 0 */
        assert_close(ng_item(ng_sum_squares(tape, whole[i])),
                     ng_item(ng_sum_squares(tape, gathered[i])), 1e-12);
    assert_same_bits(state[0][2], state[1][2]);
    assert_same_bits(state[0][3], state[1][3]);
}

START_TEST(a_batch_renorm_layer_hands_its_mask_on)
{
    ng_tensor *x = normal_with(NG_F64, NG_SHAPE(6, 3), 1, 2, 3);
    ng_tensor *mask = DOUBLES(NG_SHAPE(6), 1, 0, 1, 1, 0, 1), *kept = kept_by(mask, 1);
    ng_tensor *y = ng_forward(in_double(ng_batch_renorm_new(3)), tape, x, .mask = mask);
    ng_tensor *gathered = ng_gather_rows(tape, x, kept);
    assert_tensors_close(ng_gather_rows(tape, y, kept),
                         ng_forward(in_double(ng_batch_renorm_new(3)), tape, gathered), 1e-14);
    for (int c = 0; c < 3; c++) ck_assert(ng_at(y, 1, c) == 0 && ng_at(y, 4, c) == 0);
}

/* The output of a sequence does not depend on the padding of others. */
START_TEST(norms_of_a_transformer_pass_over_what_its_mask_hides)
{
    ng_tensor *ids = own(ng_zeros_new(NG_I64, NG_SHAPE(3, 4)));
    ng_tensor *mask = own(ng_ones_new(NG_F32, NG_SHAPE(3, 4)));
    for (int i = 0; i < 12; i++) ng_set(ids, i, i % 5);
    ng_set(mask, 7, 0), ng_set(mask, 10, 0), ng_set(mask, 11, 0);
    ng_module *net = own(ng_transformer_new(7, .dim = 8, .heads = 2, .layers = 2,
                                            .norm = ng_norm_batch, .bidirectional = true));
    ng_tensor *y = ng_forward(net, tape, ids, .mask = mask);
    ng_set(ids, 7, 6), ng_set(ids, 10, 6), ng_set(ids, 11, 5);
    ng_tensor *other = ng_forward(net, tape, ids, .mask = mask);
    assert_ok(y && other);
    for (int i = 0; i < 12 * 7; i++)
        ck_assert(ng_get(mask, i / 7) == 0 || ng_get(y, i) == ng_get(other, i));
}

/* Each allocation on a new tape is refused in turn. */
START_TEST(without_memory_running_statistics_stay)
{
    ng_tensor *x = normal(NG_F64, NG_SHAPE(64, 512, 9), 1);
    ng_tensor *mask = own(ng_ones_new(NG_F64, NG_SHAPE(64)));
    ng_tensor *mean = own(ng_zeros_new(NG_F64, NG_SHAPE(512)));
    ng_tensor *var = own(ng_ones_new(NG_F64, NG_SHAPE(512)));
    ng_set(mask, 3, 0);
    if (_i == 2) mask = NG_NONE;
    int refused = 0;
    for (ng_tensor *y = NULL; !y; refused++) {
        ng_tape *on = ng_tape_new();
        allocations_fail_after(refused);
        y = _i == 1
                ? ng_batch_renorm(on, x, NG_NONE, NG_NONE, mean, var, .training = true,
                                  .mask = mask)
                : ng_batch_norm(on, x, NG_NONE, NG_NONE, mean, var, .training = true, .mask = mask);
        out_of_memory(!y);
        ck_assert_int_eq(ng_get(mean, 0) == 0 && ng_get(var, 0) == 1, !y);
        ng_tape_free(on);
    }
    ck_assert_int_gt(refused, _i == 2 ? 1 : 4);
}

START_TEST(masks_that_do_not_fit_are_refused)
{
    ng_tensor *x = own(ng_ones_new(NG_F32, NG_SHAPE(4, 3, 5)));
    ng_tensor *one = own(ng_zeros_new(NG_F32, NG_SHAPE(4, 5)));
    ng_tensor *wrong = own(ng_ones_new(NG_F32, NG_SHAPE(5)));
    ng_tensor *mean = own(ng_zeros_new(NG_F32, NG_SHAPE(3)));
    ng_tensor *deviation = own(ng_ones_new(NG_F32, NG_SHAPE(3)));
    ng_tensor *const none = NG_NONE;
    ng_set(one, 7, 1);
    assert_fails(ng_batch_norm(tape, x, none, none, none, none, .training = true, .mask = wrong),
                 NG_ESHAPE);
    assert_fails(ng_batch_norm(tape, x, none, none, none, none, .training = true, .mask = one),
                 NG_ESHAPE);
    assert_fails(ng_batch_renorm(tape, x, none, none, mean, deviation, .mask = wrong), NG_ESHAPE);
    assert_fails(
        ng_batch_renorm(tape, x, none, none, mean, deviation, .mask = one, .training = true),
        NG_ESHAPE);
    ng_set(one, 8, 1);
    assert_ok(ng_batch_norm(tape, x, none, none, none, none, .training = true, .mask = one));
    ng_module *ghost = own(ng_batch_norm_new(3, .ghost = 2));
    assert_refused(ng_forward(ghost, tape, x, .mask = one), "BatchNorm");
}

Suite *norm_masks_suite(void)
{
    Suite *suite = suite_create("norm_masks");
    TCase *tests = add_case(suite, set_up, tear_down);
    add_tests(tests, a_batch_renorm_layer_hands_its_mask_on,
              norms_of_a_transformer_pass_over_what_its_mask_hides,
              masks_that_do_not_fit_are_refused);
    add_loops(tests, 2 * N_CASES, masked_batch_norm_is_that_of_the_gathered_positions);
    add_loops(tests, 3, without_memory_running_statistics_stay);
    return suite;
}
