/* RNN, GRU and LSTM: PyTorch's values, lengths, directions, states, norms in the cell, threads,
 * errors. */
#include "support/fixture.h"
#include "support/golden.h"

/* ---- Against PyTorch in double --------------------------------------------------------------- */

/* Some hundred operations on values of order 1, rounded in another order. */
#define TOLERANCE 1e-11

typedef struct {
    const char *kind; /* how the name begins in recurrent.txt */
    ng_module *(*make)(int64_t features, ng_recurrent_new_options options);
} maker;
static const maker makers[] = {{"rnn", ng_rnn_new_with},
                               {"relu", ng_rnn_new_with},
                               {"gru", ng_gru_new_with},
                               {"lstm", ng_lstm_new_with}};
enum { MAKERS = sizeof makers / sizeof makers[0], FEATURES = 3, HIDDEN = 4 };

static const struct {
    const char *name;
    ng_recurrent_new_options options;
} variants[] = {{"", {.layers = 1}},
                {"_no_bias", {.no_bias = true}},
                {"_packed", {.layers = 3, .bidirectional = true}},
                {"_three", {.layers = 3}},
                {"_norm", {.norm = ng_norm_layer}}};
enum { VARIANTS = sizeof variants / sizeof variants[0] };

#define expect_golden(row, figure, x) assert_golden(x, TOLERANCE, "%s/%s", row, figure)

/* The figures of that name as a leaf, or NG_NONE where there are none. */
static ng_tensor *leaf_of(const char *row, const char *name)
{
    char path[96];
    snprintf(path, sizeof path, "%s/%s", row, name);
    ng_tensor *x = golden_find(path);
    return x ? own(ng_require_grad(ng_copy_new(x, NG_F64))) : NG_NONE;
}

static ng_module *filled(const char *row, const maker *m, ng_recurrent_new_options options)
{
    options.hidden = HIDDEN;
    options.relu = strcmp(m->kind, "relu") == 0;
    ng_module *net = own(m->make(FEATURES, options));
    assert_ok(ng_module_to(net, NG_F64));
    ng_named_tensor p;
    for (int i = 0; ng_module_parameter(net, i, &p); i++)
        assert_ok(ng_copy_values(p.tensor, golden("%s/p/%s", row, p.name)));
    return net;
}

/* The sum of x's elements times those of a figure. */
static ng_tensor *against(const char *row, const char *name, ng_tensor *x)
{
    return ng_sum(tape, ng_mul(tape, x, golden("%s/%s", row, name)));
}

static void expect_pytorchs(const char *row, ng_module *net, bool lstm)
{
    ng_tensor *x = leaf_of(row, "x"), *h = leaf_of(row, "h0"), *c = leaf_of(row, "c0");
    ng_tensor *lengths = leaf_of(row, "lengths");
    if (lengths != NG_NONE) lengths = own(ng_copy_new(lengths, NG_I64));
    ng_recurrent_state state = {h, c};
    ng_tensor *y = ng_forward_recurrent(net, tape, x, lengths, &state);
    expect_golden(row, "y", y);
    expect_golden(row, "h", state.h);
    if (lstm) expect_golden(row, "c", state.c);
    ck_assert(lstm || state.c == NG_NONE);

    ng_tensor *total = ng_add(tape, against(row, "dy", y), against(row, "dh", state.h));
    if (lstm) total = ng_add(tape, total, against(row, "dc", state.c));
    assert_ok(ng_backward(tape, total));
    expect_golden(row, "dx", ng_grad(x));
    if (h != NG_NONE) expect_golden(row, "dh0", ng_grad(h));
    if (c != NG_NONE) expect_golden(row, "dc0", ng_grad(c));
    ng_named_tensor p;
    for (int i = 0; ng_module_parameter(net, i, &p); i++) {
        char name[80];
        snprintf(name, sizeof name, "d/%s", p.name);
        expect_golden(row, name, ng_grad(p.tensor));
    }
}

static void load_recurrent(void) { set_up(), golden_load("tests/golden/recurrent.txt"); }

START_TEST(values_states_and_gradients_are_pytorchs)
{
    const maker *m = &makers[_i / VARIANTS];
    const ng_recurrent_new_options options = variants[_i % VARIANTS].options;
    char row[32];
    snprintf(row, sizeof row, "%s%s", m->kind, variants[_i % VARIANTS].name);
    if (options.norm && strcmp(m->kind, "relu") == 0) return; /* its norm is that of "rnn" */
    ng_module *net = filled(row, m, options);
    expect_pytorchs(row, net, m->make == ng_lstm_new_with);
}

START_TEST(parameters_have_pytorchs_names_and_order)
{
    static const char *const names[] = {
        "weight_ih_l0",         "weight_hh_l0",         "bias_ih_l0",         "bias_hh_l0",
        "weight_ih_l0_reverse", "weight_hh_l0_reverse", "bias_ih_l0_reverse", "bias_hh_l0_reverse",
        "weight_ih_l1",         "weight_hh_l1",         "bias_ih_l1",         "bias_hh_l1",
        "weight_ih_l1_reverse", "weight_hh_l1_reverse", "bias_ih_l1_reverse", "bias_hh_l1_reverse"};
    ng_module *net = own(ng_gru_new(3, 5, .layers = 2, .bidirectional = true));
    ng_named_tensor p;
    int i = 0;
    for (; ng_module_parameter(net, i, &p); i++) {
        ck_assert_str_eq(p.name, names[i]);
        for (int64_t k = 0; k < ng_size(p.tensor); k++)
            ck_assert(fabs(ng_get(p.tensor, k)) <= 1 / sqrt(5.0));
    }
    ck_assert_int_eq(i, 16);
    const ng_tensor *second = ng_module_find(net, "weight_ih_l1");
    ck_assert(ng_dim(second, 0) == 15 && ng_dim(second, 1) == 10);
}

/* ---- What lengths, directions and states mean ------------------------------------------------ */

static const ng_recurrent_new_options manners[] = {
    {.hidden = 5},
    {.hidden = 5, .layers = 2, .bidirectional = true},
    {.hidden = 5, .norm = ng_norm_layer},
    {.hidden = 5, .bidirectional = true, .norm = ng_norm_rms}};
enum { MANNERS = sizeof manners / sizeof manners[0], N = 3, T = 6, F = 2 };
static const int64_t row_lengths[N] = {4, 0, 6};

static ng_module *in_double(const maker *m, ng_recurrent_new_options options)
{
    ng_module *net = own(m->make(F, options));
    assert_ok(ng_module_to(net, NG_F64));
    return net;
}

static ng_tensor *sequences(int64_t rows, int64_t steps)
{
    ng_rng rng = ng_rng_seeded(11);
    return own(ng_normal_new(NG_F64, NG_SHAPE(rows, steps, F), 0, 1, &rng));
}

static ng_tensor *lengths_of_rows(void)
{
    const double values[] = {4, 0, 6};
    return own(ng_tensor_from(NG_I64, NG_SHAPE(N), values, N));
}

/* The results of a row with a length are those of its own steps alone. */
START_TEST(a_row_with_a_length_is_that_sequence_alone)
{
    ng_module *net = in_double(&makers[_i / MANNERS], manners[_i % MANNERS]);
    ng_tensor *x = sequences(N, T);
    ng_recurrent_state all = NG_NO_STATE;
    ng_tensor *y = ng_forward_recurrent(net, tape, x, lengths_of_rows(), &all);
    assert_ok(y);
    for (int64_t n = 0; n < N; n++) {
        const int64_t steps = row_lengths[n];
        ng_recurrent_state own_state = NG_NO_STATE;
        ng_tensor *alone = ng_slice(tape, ng_slice(tape, x, 0, n, n + 1), 1, 0, steps);
        ng_tensor *expected = ng_forward_recurrent(net, tape, alone, NG_NONE, &own_state);
        ng_tensor *row = ng_slice(tape, y, 0, n, n + 1);
        assert_tensors_close(ng_slice(tape, row, 1, 0, steps), expected, 1e-14);
        assert_tensors_close(ng_slice(tape, all.h, 1, n, n + 1), own_state.h, 1e-14);
        ng_tensor *rest = ng_slice(tape, row, 1, steps, T);
        for (int64_t i = 0; i < ng_size(rest); i++) ck_assert(ng_get(rest, i) == 0);
    }
}

/* Sets the elements of x behind the rows' lengths. */
static void fill_behind(ng_tensor *x, double value)
{
    for (int64_t n = 0; n < N; n++)
        for (int64_t i = row_lengths[n] * F; i < T * F; i++) ng_set(x, n * T * F + i, value);
}

enum { MOST_LEAVES = 64 };

/* x and the net's parameters; returns how many. */
static int leaves_of(ng_module *net, ng_tensor *x, ng_tensor *leaves[MOST_LEAVES])
{
    int count = 1;
    leaves[0] = x;
    for (ng_named_tensor p; ng_module_parameter(net, count - 1, &p); count++)
        leaves[count] = p.tensor;
    ck_assert_int_lt(count, MOST_LEAVES);
    return count;
}

/* The gradients of sum y^2, the sum of their squares, and its gradients. */
static int both_orders(ng_module *net, ng_tensor *x, ng_tensor *results[2 * MOST_LEAVES])
{
    ng_tensor *leaves[MOST_LEAVES], *total = ng_full(tape, NG_F64, NG_SCALAR, 0);
    const int count = leaves_of(net, x, leaves);
    ng_tensor *y = ng_forward(net, tape, x, .lengths = lengths_of_rows());
    ng_tensor *loss = ng_sum(tape, ng_square(tape, y));
    assert_ok(ng_gradients(tape, &loss, 1, leaves, count, results, .record = true));
    for (int i = 0; i < count; i++)
        total = ng_add(tape, total, ng_sum(tape, ng_square(tape, results[i])));
    assert_ok(ng_gradients(tape, &total, 1, leaves, count, results + count, .allow_unused = true));
    return 2 * count;
}

/* Whatever x holds behind the rows' lengths, y, its gradients and theirs are the same: there dx is
 * 0, and a NaN does not reach the weights' gradients. */
START_TEST(elements_behind_a_rows_length_are_not_read)
{
    static const double behind[] = {1e30, -1e308, (double)INFINITY, (double)NAN};
    ng_module *net = in_double(&makers[_i / MANNERS], manners[_i % MANNERS]);
    ng_tensor *clean = ng_require_grad(sequences(N, T)), *expected[2 * MOST_LEAVES];
    fill_behind(clean, 0);
    const int count = both_orders(net, clean, expected);
    ng_tensor *clean_y = ng_forward(net, tape, clean, .lengths = lengths_of_rows());
    for (size_t k = 0; k < sizeof behind / sizeof *behind; k++) {
        ng_tensor *x = ng_require_grad(sequences(N, T)), *results[2 * MOST_LEAVES];
        fill_behind(x, behind[k]);
        both_orders(net, x, results);
        for (int i = 0; i < count; i++) assert_tensors_close(results[i], expected[i], 1e-11);
        ng_tensor *y = ng_forward(net, tape, x, .lengths = lengths_of_rows());
        assert_same_bits(y, clean_y);
        assert_ok(ng_backward(tape, ng_sum(tape, ng_square(tape, y))));
        for (int64_t i = 0; i < N * T * F; i++)
            ck_assert((ng_get(ng_grad(x), i) == 0) ==
                      (i % (T * F) >= row_lengths[i / (T * F)] * F));
        ng_tensor *leaves[MOST_LEAVES];
        for (int i = leaves_of(net, x, leaves); i-- > 0;) {
            assert_tensors_close(ng_grad(leaves[i]), expected[i], 1e-12);
            ng_zero_grad(leaves[i]);
        }
    }
}

/* The buffers of two networks of one structure. */
static void expect_same_buffers(ng_module *a, ng_module *b)
{
    ng_named_tensor one, other;
    for (int i = 0; ng_module_buffer(a, i, &one); i++) {
        ck_assert(ng_module_buffer(b, i, &other));
        for (int64_t k = 0; k < ng_size(one.tensor); k++)
            assert_near(ng_get(one.tensor, k), ng_get(other.tensor, k), 1e-12);
    }
}

static const ng_recurrent_new_options batch_normed = {
    .hidden = 5, .bidirectional = true, .norm = ng_norm_batch};

/* BatchNorm in the cell: a batch whose rows all end early has the statistics of the shorter
 * batch. */
START_TEST(statistics_of_a_batch_are_of_the_steps_that_rows_take)
{
    const int64_t steps = 4;
    ng_module *net = in_double(&makers[_i], batch_normed);
    ng_module *other = in_double(&makers[_i], batch_normed);
    ng_tensor *x = sequences(N, T);
    ng_tensor *lengths = own(ng_tensor_from(NG_I64, NG_SHAPE(N), NG_VALUES(4, 4, 4)));
    ng_recurrent_state state = NG_NO_STATE, cut_state = NG_NO_STATE;
    ng_tensor *y = ng_forward_recurrent(net, tape, x, lengths, &state);
    ng_tensor *cut =
        ng_forward_recurrent(other, tape, ng_slice(tape, x, 1, 0, steps), NG_NONE, &cut_state);
    assert_tensors_close(ng_slice(tape, y, 1, 0, steps), cut, 1e-12);
    assert_tensors_close(state.h, cut_state.h, 1e-12);
    expect_same_buffers(net, other);
}

/* Elements behind the lengths change no statistics. */
START_TEST(statistics_of_a_batch_do_not_know_the_padding)
{
    ng_module *net = in_double(&makers[_i], batch_normed);
    ng_module *other = in_double(&makers[_i], batch_normed);
    ng_tensor *x = sequences(N, T), *moved = sequences(N, T);
    ng_tensor *lengths = own(ng_tensor_from(NG_I64, NG_SHAPE(N), NG_VALUES(4, 2, 4)));
    for (int64_t i = 2 * F; i < T * F; i++) ng_set(moved, T * F + i, 7.5 * (double)i);
    assert_tensors_close(ng_forward(net, tape, x, .lengths = lengths),
                         ng_forward(other, tape, moved, .lengths = lengths), 1e-12);
    expect_same_buffers(net, other);
}

START_TEST(a_state_that_is_handed_on_continues_the_sequence)
{
    ng_recurrent_new_options options = {.hidden = 5, .layers = 2};
    if (_i % 2) options.norm = ng_norm_layer;
    ng_module *net = in_double(&makers[_i / 2], options);
    ng_tensor *x = sequences(N, T);
    ng_recurrent_state whole = NG_NO_STATE, state = NG_NO_STATE;
    ng_tensor *y = ng_forward_recurrent(net, tape, x, NG_NONE, &whole);
    ng_tensor *parts[2];
    parts[0] = ng_forward_recurrent(net, tape, ng_slice(tape, x, 1, 0, 2), NG_NONE, &state);
    parts[1] = ng_forward_recurrent(net, tape, ng_slice(tape, x, 1, 2, T), NG_NONE, &state);
    assert_tensors_close(ng_concat(tape, parts, 2, 1), y, 1e-14);
    assert_tensors_close(state.h, whole.h, 1e-14);
    assert_same_bits(y, ng_forward(net, tape, x));
}

/* In training y = second(dropout(first(x))), each with the weights of its layer; in evaluation
 * nothing is dropped. */
START_TEST(dropout_stands_between_layers_in_training_only)
{
    const maker *m = &makers[_i];
    ng_module *net =
        in_double(m, (ng_recurrent_new_options){.hidden = F, .layers = 2, .dropout = 0.4});
    ng_module *layers[2];
    ng_named_tensor p, q;
    for (int l = 0; l < 2; l++) {
        layers[l] = in_double(m, (ng_recurrent_new_options){.hidden = F});
        for (int i = 0; ng_module_parameter(layers[l], i, &p); i++) {
            ck_assert(ng_module_parameter(net, 4 * l + i, &q));
            assert_ok(ng_copy_values(p.tensor, q.tensor));
        }
    }
    ng_tensor *x = sequences(N, T), *first = ng_forward(layers[0], tape, x);
    ng_tape_seed(tape, 5);
    ng_tensor *y = ng_forward(net, tape, x);
    ng_tape_seed(tape, 5);
    assert_same_bits(y, ng_forward(layers[1], tape, ng_dropout(tape, first, 0.4)));
    ng_eval(net);
    assert_same_bits(ng_forward(net, tape, x), ng_forward(layers[1], tape, first));
}

/* ---- The fused op --------------------------------------------------------------------------- */

/* Sizes of several blocks of rows, and vectors with a remainder. */
typedef struct {
    ng_tensor *y, *dx, *dw;
} outcome;

static outcome run(const maker *m, int threads)
{
    ng_set_threads(threads);
    const ng_recurrent_new_options options = {.hidden = 37, .bidirectional = true};
    ng_module *net = own(m->make(40, options));
    ng_rng rng = ng_rng_seeded(5);
    ng_tensor *x = ng_require_grad(own(ng_normal_new(NG_F32, NG_SHAPE(85, 7, 40), 0, 1, &rng)));
    ng_tensor *y = ng_forward(net, tape, x);
    assert_ok(ng_backward(tape, ng_sum(tape, ng_square(tape, y))));
    return (outcome){y, ng_grad(x), ng_grad(ng_module_find(net, "weight_hh_l0"))};
}

START_TEST(bits_do_not_depend_on_the_number_of_threads)
{
    const outcome one = run(&makers[_i], 1);
    for (int threads = 2; threads <= 5; threads++) {
        const outcome more = run(&makers[_i], threads);
        assert_same_bits(one.y, more.y);
        assert_same_bits(one.dx, more.dx);
        assert_same_bits(one.dw, more.dw);
    }
}

/* ---- Errors ---------------------------------------------------------------------------------- */

START_TEST(wrong_operands_are_named)
{
    ng_module *net = in_double(&makers[3], (ng_recurrent_new_options){.hidden = 5});
    ng_module *relu = own(ng_relu_new());
    ng_tensor *x = sequences(N, T), *flat = ng_reshape(tape, x, NG_SHAPE(N * T, F));
    ng_recurrent_state state = NG_NO_STATE;
    assert_fails(ng_forward(net, tape, flat), NG_ESHAPE, "LSTM");
    const double long_ones[] = {4, 7, 2};
    ng_tensor *lengths = own(ng_tensor_from(NG_I64, NG_SHAPE(N), long_ones, N));
    assert_refused(ng_forward(net, tape, x, .lengths = lengths), "LSTM");
    ng_tensor *two = own(ng_tensor_from(NG_I64, NG_SHAPE(2), long_ones, 2));
    assert_fails(ng_forward(net, tape, x, .lengths = two), NG_ESHAPE, "LSTM");
    assert_fails(ng_forward(net, tape, x, .lengths = flat), NG_EDTYPE, "LSTM");
    state.h = x;
    assert_fails(ng_forward_recurrent(net, tape, x, NG_NONE, &state), NG_ESHAPE, "LSTM");
    ck_assert(state.h == x); /* as it was */
    assert_refused(ng_forward_recurrent(relu, tape, x, NG_NONE, &state));
}

START_TEST(wrong_weights_are_named)
{
    ng_tensor *x = sequences(N, T), *w = sequences(8, 2), *m = ng_reshape(tape, w, NG_SHAPE(8, 4));
    ng_tensor *ih = ng_slice(tape, m, 1, 0, F), *hh = ng_slice(tape, m, 1, 0, 2);
    ng_tensor *three = ng_slice(tape, m, 1, 0, 3), *h = ng_slice(tape, ih, 0, 0, N);
    const ng_recurrent_weights good = {ih, hh, NG_NONE, NG_NONE};
    assert_ok(ng_lstm(tape, x, good, NG_NO_STATE, NG_NONE));
    assert_fails(ng_gru(tape, x, good, NG_NO_STATE, NG_NONE), NG_ESHAPE);
    assert_fails(ng_lstm(tape, x, ((ng_recurrent_weights){three, hh, NG_NONE, NG_NONE}),
                         NG_NO_STATE, NG_NONE),
                 NG_ESHAPE);
    assert_fails(
        ng_lstm(tape, x, ((ng_recurrent_weights){ih, hh, NG_NONE, hh}), NG_NO_STATE, NG_NONE),
        NG_ESHAPE);
    assert_fails(ng_lstm(tape, x, ((ng_recurrent_weights){ih, NULL, NG_NONE, NG_NONE}), NG_NO_STATE,
                         NG_NONE),
                 NG_ENULL);
    assert_refused(ng_lstm(tape, x, good, NG_NO_STATE, NG_NONE, .relu = true));
    const ng_recurrent_weights rnn = {hh, hh, NG_NONE, NG_NONE};
    assert_fails(ng_rnn(tape, x, rnn, NG_NO_STATE, NG_NONE), NG_ESHAPE);
    ng_tensor *square = ng_slice(tape, hh, 0, 0, 2);
    const ng_recurrent_weights small = {square, square, NG_NONE, NG_NONE};
    assert_refused(ng_rnn(tape, x, small, ((ng_recurrent_state){NG_NONE, h}), NG_NONE));
}

START_TEST(wrong_options_are_named)
{
    assert_refused(ng_lstm_new(0, 4));
    assert_refused(ng_gru_new(4, -1));
    assert_refused(ng_rnn_new(4, 4, .layers = -2));
    assert_refused(ng_rnn_new(4, 4, .layers = 10001));
    assert_refused(ng_lstm_new(4, 4, .dropout = 1));
    assert_refused(ng_gru_new(4, 4, .relu = true));
}

Suite *recurrent_suite(void)
{
    Suite *suite = suite_create("recurrent");
    TCase *tests = add_case(suite, load_recurrent, golden_tear_down);
    add_tests(tests, parameters_have_pytorchs_names_and_order);
    add_loops(tests, MAKERS * VARIANTS, values_states_and_gradients_are_pytorchs);
    tests = add_case(suite, set_up, tear_down);
    add_tests(tests, wrong_operands_are_named, wrong_weights_are_named, wrong_options_are_named);
    add_loops(tests, MAKERS * MANNERS, a_row_with_a_length_is_that_sequence_alone,
              elements_behind_a_rows_length_are_not_read);
    add_loops(tests, MAKERS, statistics_of_a_batch_are_of_the_steps_that_rows_take,
              statistics_of_a_batch_do_not_know_the_padding,
              dropout_stands_between_layers_in_training_only,
              bits_do_not_depend_on_the_number_of_threads);
    add_loops(tests, 2 * MAKERS, a_state_that_is_handed_on_continues_the_sequence);
    return suite;
}
