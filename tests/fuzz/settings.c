/* One op or layer after the other on tensors that mostly fit, with settings that mostly do not:
 * each gives a result that has gradients, or an error that says where. Each byte of the input is a
 * decision; at its end all are 0. */
#include "fuzz.h"
#include <math.h>

enum { TENSORS = 32, LARGEST = 1 << 14 };

typedef struct {
    const uint8_t *data, *end;
    ng_tape *tape;
    ng_dtype dtype;
    ng_tensor *own[TENSORS];
    int owned;
} player;

static int decide(player *p, int choices)
{
    const int value = p->data < p->end ? *p->data++ : 0;
    return value % choices;
}

/* ---- Settings ------------------------------------------------------------------------------- */

static int64_t length(player *p) { return (int64_t[]){2, 1, 3, 4, 5, 6, 8, 0}[decide(p, 8)]; }

/* Mostly left out. */
static int64_t setting(player *p)
{
    static const int64_t settings[] = {
        1,         2,           3,       4,         5,         -1,        -2,        17,
        100,       4096,        1 << 30, 1LL << 31, 1LL << 32, 1LL << 62, INT64_MAX, INT64_MAX - 1,
        INT64_MIN, -(1LL << 31)};
    return decide(p, 3) ? 0 : settings[decide(p, sizeof settings / sizeof *settings)];
}

/* One that has no default. */
static int64_t needed(player *p) { return decide(p, 3) ? length(p) : setting(p); }

static double number(player *p)
{
    static const double numbers[] = {
        NG_ZERO,           1,          -1, 0.5, 0.1, 1e-5, 1e30, 1e300, 1e-300, (double)INFINITY,
        (double)-INFINITY, (double)NAN};
    return decide(p, 3) ? 0 : numbers[decide(p, sizeof numbers / sizeof *numbers)];
}

static bool flag(player *p) { return decide(p, 4) == 1; }
static int axis(player *p) { return decide(p, 3) ? decide(p, 3) - 1 : decide(p, 14) - 7; }

/* An enumeration of so many, and two that it has not. */
static int one_of(player *p, int kinds) { return decide(p, kinds + 2) - 1; }

/* ---- Tensors -------------------------------------------------------------------------------- */

static ng_tensor *keep(player *p, ng_tensor *x)
{
    if (!x || p->owned == TENSORS) {
        ng_tensor_free(x);
        return NULL;
    }
    return p->own[p->owned++] = x;
}

/* Now and then of one dimension too many, frozen, or nothing. */
static ng_tensor *leaf(player *p, ng_shape shape)
{
    const int odd = decide(p, 40);
    if (odd == 1) return NG_NONE;
    if (odd == 2 && shape.rank < NG_MAX_RANK) shape.dim[shape.rank++] = length(p);
    ng_rng rng = ng_rng_seeded((uint64_t)p->owned);
    ng_tensor *x = keep(p, ng_normal_new(p->dtype, shape, 0.3, 1, &rng));
    if (x && odd != 3) ng_require_grad(x);
    return x;
}

static ng_tensor *leaf_or_none(player *p, ng_shape shape)
{
    return decide(p, 2) ? leaf(p, shape) : NG_NONE;
}

/* Numbers 0 .. bound - 1, now and then one beyond. */
static ng_tensor *labels(player *p, ng_shape shape, int64_t bound)
{
    ng_tensor *x = keep(p, ng_zeros_new(decide(p, 40) == 1 ? p->dtype : NG_I64, shape));
    for (int64_t i = 0; x && i < ng_size(x); i++)
        ng_set(x, i,
               decide(p, 40) == 1 ? (double)setting(p) : (double)(decide(p, 8) % (bound + 1)));
    return x;
}

static ng_tensor *images(player *p, int64_t channels)
{
    return leaf(p, NG_SHAPE(length(p), channels, length(p), length(p)));
}

static ng_tensor *lines(player *p, int64_t channels)
{
    return leaf(p, NG_SHAPE(length(p), channels, length(p)));
}

/* Of any rank, the last dimension `features`. */
static ng_tensor *rows(player *p, int64_t features)
{
    switch (decide(p, 4)) {
    case 0: return leaf(p, NG_SHAPE(features));
    case 1: return leaf(p, NG_SHAPE(length(p), length(p), features));
    case 2: return leaf(p, NG_SHAPE(length(p), length(p), length(p), features));
    default: return leaf(p, NG_SHAPE(length(p), features));
    }
}

/* ---- Ops ------------------------------------------------------------------------------------ */

#define WINDOW                                                                                     \
    .stride = setting(p), .padding = setting(p), .dilation = setting(p), .stride_h = setting(p),   \
    .stride_w = setting(p), .padding_h = setting(p), .padding_w = setting(p),                      \
    .dilation_h = setting(p), .dilation_w = setting(p)
#define POOL .ceil = flag(p), .exclude_padding = flag(p)
#define LINE .stride = setting(p), .padding = setting(p), .dilation = setting(p)

static ng_tensor *constants(player *p)
{
    ng_tape *t = p->tape;
    const ng_shape shape = NG_SHAPE(needed(p), length(p));
    switch (decide(p, 6)) {
    case 0: return ng_full(t, p->dtype, shape, number(p));
    case 1: return ng_normal(t, p->dtype, shape, number(p), number(p));
    case 2: return ng_uniform(t, p->dtype, shape, number(p), number(p));
    case 3: return ng_arange(t, p->dtype, number(p), number(p), number(p));
    case 4: return ng_eye(t, p->dtype, needed(p));
    default: return ng_one_hot(t, p->dtype, labels(p, NG_SHAPE(length(p), 2), 3), needed(p));
    }
}

static ng_tensor *pieces(player *p)
{
    ng_tape *t = p->tape;
    ng_tensor *x = rows(p, length(p)), *chunks[8] = {NULL};
    const ng_shape counts = {.rank = decide(p, 5), .dim = {needed(p), needed(p), length(p), 2}};
    switch (decide(p, 11)) {
    case 0: return ng_slice(t, x, axis(p), setting(p), setting(p));
    case 1: return ng_pad(t, x, axis(p), setting(p), setting(p));
    case 2: return ng_tril(t, x, setting(p));
    case 3: return ng_triu(t, x, setting(p));
    case 4: return ng_unsqueeze(t, x, axis(p));
    case 5: return ng_squeeze(t, x, axis(p));
    case 6: return ng_stack(t, NG_TENSORS(x, x), axis(p));
    case 7: return ng_roll(t, x, setting(p), .axes = NG_AXES(axis(p)));
    case 8: return ng_flip(t, x, .axes = NG_AXES(axis(p)));
    case 9: return ng_repeat(t, x, counts);
    default: return ng_chunk(t, x, decide(p, 10) - 1, axis(p), chunks) ? NULL : chunks[0];
    }
}

static ng_tensor *selections(player *p)
{
    ng_tape *t = p->tape;
    const int64_t n = length(p), m = length(p);
    ng_tensor *x = leaf(p, NG_SHAPE(n, m)), *index = NULL;
    switch (decide(p, 10)) {
    case 0: return ng_gather_rows(t, x, labels(p, NG_SHAPE(length(p), 2), n));
    case 1: return ng_scatter_add_rows(t, x, labels(p, NG_SHAPE(n), m), needed(p));
    case 2:
        return ng_take_along_axis(t, x, labels(p, NG_SHAPE(n, length(p)), m),
                                  .axes = NG_AXES(axis(p)));
    case 3:
        return ng_scatter_add_along_axis(t, x, labels(p, NG_SHAPE(n, m), m), needed(p),
                                         .axes = NG_AXES(axis(p)));
    case 4:
        return ng_sort(t, x, .axes = NG_AXES(axis(p)), .descending = flag(p),
                       .index = flag(p) ? &index : NULL);
    case 5:
        return ng_top_k(t, x, needed(p), .axes = NG_AXES(axis(p)), .smallest = flag(p),
                        .index = flag(p) ? &index : NULL);
    case 6: return ng_cumprod(t, x, .axes = NG_AXES(axis(p)));
    case 7: return ng_norm(t, x, .axes = NG_AXES(axis(p)), .order = number(p));
    case 8: return ng_variance(t, x, .axes = NG_AXES(axis(p)), .correction = number(p));
    default: return ng_cumsum(t, x, .axes = NG_AXES(axis(p)));
    }
}

static ng_tensor *losses(player *p)
{
    ng_tape *t = p->tape;
    const int64_t n = length(p), m = length(p);
    ng_tensor *x = leaf(p, NG_SHAPE(n, m)), *target = leaf(p, NG_SHAPE(n, m));
    ng_tensor *classes = labels(p, NG_SHAPE(n), m), *weights = leaf_or_none(p, NG_SHAPE(m));
    const ng_reduction as = (ng_reduction)one_of(p, 3);
    switch (decide(p, 14)) {
    case 0: return ng_mse(t, x, target, .reduction = as);
    case 1: return ng_l1(t, x, target, .reduction = as);
    case 2: return ng_huber(t, x, target, .reduction = as, .delta = number(p));
    case 3:
        return ng_binary_cross_entropy(t, x, target, .reduction = as,
                                       .weights = flag(p) ? weights : NULL,
                                       .positive_weights = flag(p) ? weights : NULL);
    case 4: return ng_kl_divergence(t, x, target, .reduction = as);
    case 5:
        return ng_nll(t, x, classes, .reduction = as, .ignore = flag(p), .ignored = setting(p),
                      .weights = weights);
    case 6: return ng_cosine_similarity(t, x, target, .axes = NG_AXES(axis(p)), .eps = number(p));
    case 7: return ng_cross_entropy(t, x, ng_softmax(t, target), .channels_first = flag(p));
    case 8: return ng_hinge(t, x, flag(p) ? classes : target, .margin = number(p));
    case 9: return ng_hinge_embedding(t, x, ng_sign(t, target), .margin = number(p));
    case 10: return ng_cosine_embedding(t, x, target, classes, .margin = number(p));
    case 11:
        return ng_triplet(t, x, target, leaf(p, NG_SHAPE(n, m)), .order = number(p),
                          .margin = number(p), .swap = flag(p));
    case 12:
        return ng_gaussian_nll(t, x, target, ng_abs(t, weights), .eps = number(p), .full = flag(p));
    default:
        return ng_cross_entropy(t, x, classes, .reduction = as, .smoothing = number(p),
                                .ignore = flag(p), .ignored = setting(p), .weights = weights);
    }
}

static ng_tensor *norms(player *p)
{
    ng_tape *t = p->tape;
    const int64_t n = length(p);
    ng_tensor *x = rows(p, n), *gamma = leaf_or_none(p, NG_SHAPE(n));
    ng_tensor *beta = leaf_or_none(p, NG_SHAPE(n));
    switch (decide(p, 8)) {
    case 0:
        return ng_row_norm(t, x, gamma, beta, .eps = number(p), .dims = axis(p), .rms = flag(p),
                           .unbiased = flag(p), .partial = number(p));
    case 1: return ng_scale_norm(t, x, leaf(p, NG_SHAPE(1)), .eps = number(p));
    case 2:
        return ng_detach_norm(t, x, .eps = number(p), .mean_flows = flag(p),
                              .deviation_flows = flag(p));
    case 3: return ng_dynamic_tanh(t, x, leaf(p, NG_SHAPE(1)), gamma, beta);
    case 4: return ng_weight_norm(t, x, leaf(p, NG_SHAPE(length(p))));
    case 5: return ng_spectral_norm(t, leaf(p, NG_SHAPE(3, n)), leaf(p, NG_SHAPE(3)), gamma);
    case 6: return ng_prelu(t, x, gamma);
    default:
        return ng_rotary(t, x, .dim = setting(p), .over = setting(p), .start = setting(p),
                         .base = number(p));
    }
}

static ng_tensor *norms_of_channels(player *p)
{
    ng_tape *t = p->tape;
    const int64_t n = length(p);
    ng_tensor *x = decide(p, 2) ? images(p, n) : leaf(p, NG_SHAPE(length(p), n));
    ng_tensor *gamma = leaf_or_none(p, NG_SHAPE(n)), *beta = leaf_or_none(p, NG_SHAPE(n));
    ng_tensor *mean = keep(p, ng_zeros_new(p->dtype, NG_SHAPE(n)));
    ng_tensor *var = keep(p, ng_ones_new(p->dtype, NG_SHAPE(n)));
    ng_tensor *mask = flag(p) ? labels(p, NG_SHAPE(length(p)), 1) : NULL;
    switch (decide(p, 7)) {
    case 0:
        return ng_batch_norm(t, x, gamma, beta, mean, var, .eps = number(p), .momentum = number(p),
                             .training = flag(p), .mask = mask);
    case 1:
        return ng_batch_renorm(t, x, gamma, beta, mean, var, .eps = number(p),
                               .momentum = number(p), .r_max = number(p), .d_max = number(p),
                               .training = flag(p), .mask = mask);
    case 2:
        return ng_ghost_batch_norm(t, x, gamma, beta, mean, var, .size = needed(p),
                                   .eps = number(p), .momentum = number(p), .training = flag(p));
    case 3: return ng_group_norm(t, x, gamma, beta, .groups = needed(p), .eps = number(p));
    case 4: return ng_instance_norm(t, x, gamma, beta, .eps = number(p));
    case 5: return ng_channel_norm(t, x, gamma, beta, .eps = number(p));
    default:
        return ng_local_response_norm(t, x, needed(p), .alpha = number(p), .beta = number(p),
                                      .k = number(p));
    }
}

static ng_tensor *convolutions(player *p)
{
    ng_tape *t = p->tape;
    const int64_t groups = decide(p, 4) ? 1 : 2, in = groups * length(p), out = groups * length(p);
    const int64_t said = decide(p, 8) ? groups : setting(p), k = length(p);
    ng_tensor *bias = leaf_or_none(p, NG_SHAPE(out));
    switch (decide(p, 4)) {
    case 0:
        return ng_conv2d(t, images(p, in), leaf(p, NG_SHAPE(out, in / groups, k, length(p))), bias,
                         WINDOW, .groups = said);
    case 1:
        return ng_conv1d(t, lines(p, in), leaf(p, NG_SHAPE(out, in / groups, k)), bias, LINE,
                         .groups = said);
    case 2:
        return ng_conv_transpose2d(t, images(p, in),
                                   leaf(p, NG_SHAPE(in, out / groups, k, length(p))), bias, WINDOW,
                                   .groups = said, .output_padding = setting(p),
                                   .output_padding_h = setting(p), .output_padding_w = setting(p));
    default:
        return ng_conv_transpose1d(t, lines(p, in), leaf(p, NG_SHAPE(in, out / groups, k)), bias,
                                   LINE, .groups = said, .output_padding = setting(p));
    }
}

static ng_tensor *windows(player *p)
{
    ng_tape *t = p->tape;
    const int64_t k = needed(p), c = length(p);
    ng_tensor *x = images(p, c);
    const ng_interpolation mode = (ng_interpolation)one_of(p, 2);
    const ng_shape size = {.rank = decide(p, 4), .dim = {needed(p), needed(p), needed(p)}};
    switch (decide(p, 10)) {
    case 0: return ng_max_pool2d(t, x, k, WINDOW, .kernel_h = setting(p), .kernel_w = setting(p));
    case 1:
        return ng_avg_pool2d(t, x, k, WINDOW, POOL, .kernel_h = setting(p), .kernel_w = setting(p));
    case 2: return ng_unfold(t, x, k, WINDOW, .kernel_h = setting(p), .kernel_w = setting(p));
    case 3:
        return ng_fold(t, leaf(p, NG_SHAPE(length(p), c * 4, length(p))), needed(p), needed(p),
                       decide(p, 3) ? 2 : k, WINDOW, .kernel_h = setting(p),
                       .kernel_w = setting(p));
    case 5: return ng_max_pool1d(t, lines(p, c), k, LINE, .ceil = flag(p));
    case 6: return ng_avg_pool1d(t, lines(p, c), k, LINE, POOL);
    case 7: return ng_adaptive_avg_pool(t, x, NG_SHAPE(length(p), length(p)));
    case 8: return ng_adaptive_max_pool(t, lines(p, c), NG_SHAPE(length(p)));
    case 4: return ng_upsample(t, x, k, .mode = mode, .align_corners = flag(p));
    default: return ng_interpolate(t, x, size, .mode = mode, .align_corners = flag(p));
    }
}

static ng_tensor *attentions(player *p)
{
    ng_tape *t = p->tape;
    const int64_t n = length(p), heads = length(p), queries = length(p), keys = length(p);
    const int64_t shared = decide(p, 2) ? heads : 1, d = length(p);
    ng_tensor *mask = leaf_or_none(p, NG_SHAPE(n, keys)), *weights = NULL;
    if (flag(p)) mask = leaf(p, NG_SHAPE(1, flag(p) ? keys : queries, keys));
    if (decide(p, 3) == 0)
        return ng_self_attention(t, leaf(p, NG_SHAPE(n, keys, (heads + 2 * shared) * d)), mask,
                                 .heads = decide(p, 8) ? heads : setting(p),
                                 .kv_heads = decide(p, 8) ? shared : setting(p), .scale = number(p),
                                 .causal = flag(p), .dropout = number(p),
                                 .weights = flag(p) ? &weights : NULL);
    if (decide(p, 2))
        return ng_attention(t, leaf(p, NG_SHAPE(n, heads, queries, d)),
                            leaf(p, NG_SHAPE(n, shared, keys, d)),
                            leaf(p, NG_SHAPE(n, shared, keys, d)), mask,
                            .kv_heads = decide(p, 8) ? shared : setting(p), .scale = number(p),
                            .causal = flag(p), .dropout = number(p), .heads = setting(p));
    return ng_attention(
        t, leaf(p, NG_SHAPE(n, queries, heads * d)), leaf(p, NG_SHAPE(n, keys, shared * d)),
        leaf(p, NG_SHAPE(n, keys, shared * d)), mask, .heads = decide(p, 8) ? heads : setting(p),
        .kv_heads = decide(p, 8) ? shared : setting(p), .scale = number(p), .causal = flag(p),
        .dropout = number(p));
}

static ng_tensor *recurrences(player *p)
{
    ng_tape *t = p->tape;
    const int64_t n = length(p), steps = length(p), features = length(p), hidden = length(p);
    const int kind = decide(p, 3);
    const int64_t gates = (int64_t[]){1, 3, 4}[kind] * hidden;
    const ng_recurrent_weights weights = {
        leaf(p, NG_SHAPE(gates, features)), leaf(p, NG_SHAPE(gates, hidden)),
        leaf_or_none(p, NG_SHAPE(gates)), leaf_or_none(p, NG_SHAPE(gates))};
    ng_recurrent_state state = {leaf_or_none(p, NG_SHAPE(n, hidden)),
                                leaf_or_none(p, NG_SHAPE(n, hidden))};
    ng_tensor *x = leaf(p, NG_SHAPE(n, steps, features));
    ng_tensor *lengths = flag(p) ? labels(p, NG_SHAPE(n), steps) : NG_NONE;
    ng_recurrent_options options = {
        .reverse = flag(p), .relu = flag(p), .lengths = lengths, .last = flag(p) ? &state : NULL};
    return kind == 0   ? ng_rnn_with(t, x, weights, state, options)
           : kind == 1 ? ng_gru_with(t, x, weights, state, options)
                       : ng_lstm_with(t, x, weights, state, options);
}

/* ---- Layers --------------------------------------------------------------------------------- */

static ng_norm_maker *norm_maker(player *p)
{
    static ng_norm_maker *const makers[] = {NULL,          ng_norm_layer, ng_norm_rms,
                                            ng_norm_batch, ng_norm_scale, ng_norm_none};
    return makers[decide(p, sizeof makers / sizeof *makers)];
}

static ng_module *plain_layer(player *p, int64_t n)
{
    switch (decide(p, 18)) {
    case 0:
        return ng_linear_new(n, needed(p), .no_bias = flag(p), .init = (ng_init_kind)one_of(p, 6),
                             .init_value = number(p));
    case 1:
        return ng_layer_norm_new(n, .eps = number(p), .no_affine = flag(p), .unbiased = flag(p),
                                 .unit_offset = flag(p));
    case 2: return ng_rms_norm_new(n, .eps = number(p), .partial = number(p));
    case 3:
        if (flag(p))
            return ng_ada_norm_new(n, .scale = number(p), .k = number(p), .raw = flag(p),
                                   .differentiate = flag(p), .eps = number(p));
        return ng_adaptive_layer_norm_new(n, .condition = setting(p), .gate = flag(p),
                                          .eps = number(p));
    case 4:
        return ng_batch_norm_new(n, .eps = number(p), .momentum = number(p), .cumulative = flag(p),
                                 .ghost = setting(p), .no_running_stats = flag(p),
                                 .frozen = flag(p));
    case 5: return ng_prelu_new(decide(p, 2) ? n : setting(p), .slope = number(p));
    case 6: return ng_dropout_new(number(p));
    case 7: return ng_scale_norm_new(n, .eps = number(p));
    case 8: return ng_dynamic_tanh_new(n, .alpha = number(p));
    case 9:
        return ng_batch_renorm_new(n, .eps = number(p), .momentum = number(p), .r_max = number(p),
                                   .d_max = number(p), .warmup = setting(p), .ramp = setting(p));
    case 10:
        return ng_weight_norm_new(ng_linear_new(n, needed(p)), .whole = flag(p),
                                  .centered = flag(p));
    case 11:
        return ng_spectral_norm_new(ng_linear_new(n, needed(p)), .iterations = decide(p, 5) - 1,
                                    .eps = number(p));
    case 12:
        return ng_feed_forward_new(n, .hidden = setting(p), .gain = number(p),
                                   .activation = (ng_feed_forward_activation)one_of(p, 4));
    case 13: return ng_derf_new(n, .alpha = number(p), .no_affine = flag(p));
    case 14: return ng_l2_norm_new(n, .eps = number(p), .scale = number(p), .no_affine = flag(p));
    case 15: return ng_weight_standardization_new(ng_linear_new(n, needed(p)), .eps = number(p));
    case 16:
        return ng_evo_norm_new(n, .eps = number(p), .groups = setting(p), .momentum = number(p));
    default: return ng_residual_new(ng_linear_new(n, n));
    }
}

static ng_module *image_layer(player *p, int64_t n)
{
    switch (decide(p, 8)) {
    case 0:
        return ng_conv2d_new(n, needed(p), needed(p), WINDOW, .groups = setting(p),
                             .kernel_h = setting(p), .kernel_w = setting(p), .no_bias = flag(p));
    case 1:
        return ng_conv_transpose2d_new(n, needed(p), needed(p), WINDOW, .groups = setting(p),
                                       .output_padding = setting(p));
    case 2: return ng_max_pool2d_new(needed(p), WINDOW);
    case 3: return ng_upsample_new(needed(p), .mode = (ng_interpolation)one_of(p, 2));
    case 4: return ng_group_norm_new(needed(p), n, .eps = number(p));
    case 5:
        return ng_instance_norm_new(n, .eps = number(p), .no_affine = flag(p),
                                    .running_stats = flag(p), .momentum = number(p));
    case 6:
        return ng_filter_response_norm_new(n, .eps = number(p), .learned_eps = flag(p),
                                           .no_threshold = flag(p));
    default: return ng_local_response_norm_new(needed(p), .k = number(p));
    }
}

static ng_module *sequence_layer(player *p, int64_t n)
{
    switch (decide(p, 5)) {
    case 0:
        return ng_multi_head_attention_new(n, needed(p), .causal = flag(p), .rotary = flag(p),
                                           .rotary_base = number(p), .qk_norm = norm_maker(p),
                                           .dropout = number(p), .gain = number(p),
                                           .kv_heads = setting(p), .context = setting(p));
    case 1:
        return ng_transformer_block_new(n, needed(p), .norm = norm_maker(p),
                                        .placement = (ng_norm_placement)one_of(p, 4),
                                        .layers = setting(p), .dropout = number(p),
                                        .hidden = setting(p), .kv_heads = setting(p));
    case 2: return ng_learned_positions_new(needed(p), n, .deviation = number(p));
    case 3:
        return ng_lstm_new(n, needed(p), .layers = decide(p, 4), .bidirectional = flag(p),
                           .dropout = number(p), .norm = norm_maker(p), .no_bias = flag(p));
    default:
        return ng_gru_new(n, needed(p), .layers = decide(p, 4), .bidirectional = flag(p),
                          .dropout = number(p), .norm = norm_maker(p), .relu = flag(p));
    }
}

static ng_optimizer *optimizer_of(player *p, ng_module *net)
{
    const ng_schedule schedule = {
        (ng_schedule_kind)one_of(p, 4), setting(p), setting(p), setting(p), number(p), number(p)};
    switch (decide(p, 7)) {
    case 0:
        return ng_sgd_new(net, .lr = number(p), .momentum = number(p), .dampening = number(p),
                          .nesterov = flag(p), .schedule = schedule);
    case 1:
        return ng_adamw_new(net, number(p), .lr = number(p), .beta1 = number(p), .beta2 = number(p),
                            .eps = number(p), .amsgrad = flag(p), .schedule = schedule);
    case 2:
        return ng_lion_new(net, .lr = number(p), .beta1 = number(p), .beta2 = number(p),
                           .weight_decay = number(p), .schedule = schedule);
    case 3:
        return ng_lars_new(net, .lr = number(p), .momentum = number(p), .trust = number(p),
                           .weight_decay = number(p), .matrices_only = flag(p),
                           .schedule = schedule);
    case 4:
        return ng_lamb_new(net, number(p), .lr = number(p), .beta1 = number(p), .beta2 = number(p),
                           .eps = number(p), .matrices_only = flag(p), .schedule = schedule);
    case 5:
        return ng_muon_new(net, .lr = number(p), .momentum = number(p), .steps = decide(p, 9),
                           .heavy_ball = flag(p), .adam_scale = number(p), .schedule = schedule);
    default:
        return ng_rmsprop_new(net, .lr = number(p), .alpha = number(p), .momentum = number(p),
                              .centered = flag(p), .schedule = schedule);
    }
}

/* A few steps; what they give does not matter. */
static void train(player *p, ng_module *net, ng_tensor *x)
{
    ng_optimizer *optimizer = optimizer_of(p, net);
    fuzz_check(optimizer);
    for (int i = 0; optimizer && i < 3; i++) {
        ng_tensor *y = ng_forward(net, p->tape, x);
        if (!ng_backward(p->tape, ng_sum(p->tape, y)) && ng_optimizer_step(optimizer) &&
            !ng_failed())
            abort();
        ng_clear_error();
    }
    ng_optimizer_free(optimizer);
}

static ng_tensor *layers(player *p)
{
    const int64_t n = length(p), kind = decide(p, 3);
    ng_module *layer = kind == 0   ? plain_layer(p, n)
                       : kind == 1 ? image_layer(p, n)
                                   : sequence_layer(p, n);
    fuzz_check(layer);
    if (!layer) return NULL;
    if (ng_parameter_count(layer) > LARGEST) {
        ng_module_free(layer);
        return NULL;
    }
    if (p->dtype == NG_F64 && ng_module_to(layer, NG_F64)) abort();
    if (flag(p)) ng_eval(layer);
    ng_tensor *x = kind == 0   ? rows(p, n)
                   : kind == 1 ? images(p, n)
                               : leaf(p, NG_SHAPE(length(p), length(p), n));
    ng_clear_error();
    ng_tensor *y = ng_forward(layer, p->tape, x);
    fuzz_check(y);
    if (y && ng_size(y) <= LARGEST) train(p, layer, x);
    ng_tape_reset(p->tape);
    ng_module_free(layer);
    return NULL;
}

/* ---- Play ----------------------------------------------------------------------------------- */

static void differentiate(player *p, ng_tensor *y)
{
    ng_tape *t = p->tape;
    ng_tensor *loss = ng_sum(t, ng_square(t, y)), *x = NULL;
    for (int i = 0; i < p->owned && !x; i++)
        if (ng_requires_grad(p->own[i])) x = p->own[i];
    if (!loss || !x) return;
    if (ng_backward(t, loss) && !ng_failed()) abort();
    ng_clear_error();
    ng_tensor *g = ng_gradient(t, loss, x, .record = true, .allow_unused = true);
    fuzz_check(g);
    if (g) ng_gradient(t, ng_sum(t, ng_square(t, g)), x, .allow_unused = true);
}

static void play(player *p)
{
    static ng_tensor *(*const kinds[])(player *) = {
        constants,    pieces,  selections, losses,      norms, norms_of_channels,
        convolutions, windows, attentions, recurrences, layers};
    p->dtype = decide(p, 2) ? NG_F32 : NG_F64;
    const int kind = decide(p, sizeof kinds / sizeof *kinds);
    ng_tensor *y = kinds[kind](p);
    if (!y && kinds[kind] != layers && !ng_failed()) abort();
    if (ng_failed() && !strstr(ng_error_text(), "ng_")) abort();
    ng_clear_error();
    if (y && ng_size(y) <= LARGEST) differentiate(p, y);
    ng_clear_error();
    ng_tape_reset(p->tape);
    while (p->owned > 0) ng_tensor_free(p->own[--p->owned]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    player p = {.data = data, .end = data + size, .tape = ng_tape_new()};
    ng_set_threads(1);
    for (int calls = 0; p.data < p.end && calls < 50; calls++) play(&p);
    ng_tape_free(p.tape);
    return 0;
}
