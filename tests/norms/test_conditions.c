/* A condition c (N, k) belongs to samples, whatever the norm: sample i of x gets c[i] at all its
 * positions. One with x's rank is a condition of each position. */
#include "norms/norm.h"

enum { K = 3, CHANNELS = 4 };

/* A layer that takes a condition, and where its features are: last, or along axis 1. */
typedef struct {
    ng_module *layer;
    bool last;
} conditioned;

/* The first ROWS layers normalize rows; the last one needs more than one position. */
enum { ROWS = 5, INSTANCE = 8, KINDS };

static conditioned conditioned_layer(int kind)
{
    ng_module *const layers[KINDS] = {
        ng_adaptive_layer_norm_new(CHANNELS, .condition = K),
        ng_adaptive_layer_norm_new(CHANNELS, .condition = K, .gate = true),
        ng_rms_norm_new(CHANNELS, .condition = K),
        ng_adaptive_residual_new(ng_linear_new(CHANNELS, CHANNELS), .dim = CHANNELS,
                                 .condition = K),
        ng_film_new(CHANNELS, .condition = K, .features_last = true),
        ng_film_new(CHANNELS, .condition = K),
        evaluating(ng_batch_norm_new(CHANNELS, .condition = K)),
        ng_group_norm_new(2, CHANNELS, .condition = K),
        ng_instance_norm_new(CHANNELS, .condition = K)};
    for (int i = 0; i < KINDS; i++) drawn(layers[i]);
    return (conditioned){layers[kind], kind < ROWS};
}

/* x of n samples with t positions along each further axis. */
static ng_tensor *input_of_rank(int rank, bool last, int64_t n, int64_t t)
{
    ng_shape shape = {.rank = rank, .dim = {n}};
    for (int i = 1; i < rank; i++) shape.dim[i] = t;
    shape.dim[last ? rank - 1 : 1] = CHANNELS;
    return normal(NG_F64, shape, 1);
}

/* The shape of a condition of each position of x. */
static ng_shape shape_of_positions(const ng_tensor *x, bool last)
{
    ng_shape shape = ng_shape_of(x);
    shape.dim[last ? shape.rank - 1 : 1] = K;
    return shape;
}

/* The output, sample by sample: there is one sample, so only one meaning of the condition. */
static ng_tensor *one_by_one(ng_module *layer, ng_tensor *x, ng_tensor *c)
{
    ng_tensor *y[8];
    const int64_t n = ng_dim(x, 0);
    for (int64_t i = 0; i < n; i++)
        y[i] = ng_forward(layer, tape, ng_slice(tape, x, 0, i, i + 1),
                          .condition = ng_slice(tape, c, 0, i, i + 1));
    return ng_concat(tape, y, (int)n, 0);
}

/* N = T, where a condition of positions would have the same shape, and N != T. */
START_TEST(a_condition_belongs_to_samples)
{
    const conditioned it = conditioned_layer(_i);
    for (int rank = it.last || _i < INSTANCE ? 2 : 3; rank <= 4; rank++)
        for (int64_t n = 2; n <= 5; n++) {
            ng_tensor *x = input_of_rank(rank, it.last, n, CHANNELS);
            ng_tensor *c = normal(NG_F64, NG_SHAPE(n, K), 2);
            ng_tensor *y = ng_forward(it.layer, tape, x, .condition = c);
            assert_tensors_close(y, one_by_one(it.layer, x, c), 1e-14);
        }
}

/* The same condition at all positions is the condition of the sample. */
START_TEST(a_condition_of_positions_has_the_rank_of_x)
{
    const conditioned it = conditioned_layer(_i);
    for (int rank = 3; rank <= 4; rank++) {
        ng_tensor *x = input_of_rank(rank, it.last, 4, 4);
        ng_tensor *c = normal(NG_F64, NG_SHAPE(4, K), 2);
        ng_shape single = shape_of_positions(x, it.last);
        for (int i = 1; i < rank; i++)
            if (i != (it.last ? rank - 1 : 1)) single.dim[i] = 1;
        ng_tensor *narrow = ng_reshape(tape, c, single);
        ng_tensor *wide = ng_broadcast_to(tape, narrow, shape_of_positions(x, it.last));
        ng_tensor *y = ng_forward(it.layer, tape, x, .condition = c);
        assert_tensors_close(ng_forward(it.layer, tape, x, .condition = narrow), y, 1e-14);
        assert_tensors_close(ng_forward(it.layer, tape, x, .condition = wide), y, 1e-14);
    }
}

/* Where rows are normalized by themselves, positions are samples of another shape. */
START_TEST(each_position_gets_its_condition)
{
    const conditioned it = conditioned_layer(_i);
    ng_tensor *x = normal(NG_F64, NG_SHAPE(3, 5, CHANNELS), 1);
    ng_tensor *c = normal(NG_F64, NG_SHAPE(3, 5, K), 2);
    ng_tensor *rows = ng_forward(it.layer, tape, ng_reshape(tape, x, NG_SHAPE(15, CHANNELS)),
                                 .condition = ng_reshape(tape, c, NG_SHAPE(15, K)));
    assert_tensors_close(ng_forward(it.layer, tape, x, .condition = c),
                         ng_reshape(tape, rows, ng_shape_of(x)), 1e-14);
}

/* Conditions of other samples or positions, of another number of features, and labels. */
START_TEST(other_conditions_are_refused)
{
    const conditioned it = conditioned_layer(_i);
    ng_tensor *x = input_of_rank(3, it.last, 2, 5);
    const ng_shape shapes[] = {NG_SHAPE(5, K),    NG_SHAPE(3, K),       NG_SHAPE(2, K + 1),
                               NG_SHAPE(2, K, K), NG_SHAPE(2, 2, 2, K), NG_SCALAR};
    ng_module *maker = ng_module_child(it.layer, 0); /* the FiLM that makes scale and shift */
    const bool film = maker && strcmp(maker->type->name, "FiLM") == 0;
    const char *culprit = film ? maker->type->name : it.layer->type->name;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        assert_fails(ng_forward(it.layer, tape, x, .condition = normal(NG_F64, shapes[i], 2)),
                     NG_ESHAPE, culprit);
    ng_tensor *labels = own(ng_zeros_new(NG_I64, NG_SHAPE(2)));
    assert_fails(ng_forward(it.layer, tape, x, .condition = labels), NG_EDTYPE, culprit);
}

Suite *conditions_suite(void)
{
    Suite *suite = suite_create("conditions");
    TCase *tests = add_case(suite, set_up, tear_down);
    add_loops(tests, KINDS, a_condition_belongs_to_samples,
              a_condition_of_positions_has_the_rank_of_x, other_conditions_are_refused);
    add_loops(tests, ROWS, each_position_gets_its_condition);
    return suite;
}
