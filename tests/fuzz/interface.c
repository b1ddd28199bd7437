/* Public calls in any order with absurd shapes, axes, settings, NULLs, foreign tapes and aliases;
 * then gradients of both orders. Each byte of the input is a decision; at its end all are 0. */
#include "fuzz.h"

enum { TENSORS = 12, LARGEST = 1 << 12 };

typedef struct {
    const uint8_t *data, *end;
    ng_tape *tapes[2];
    ng_tensor *own[TENSORS];     /* ours */
    ng_tensor *made[2][TENSORS]; /* of a tape, since its last reset */
} player;

static int decide(player *p, int choices)
{
    const int value = p->data < p->end ? *p->data++ : 0;
    return value % choices;
}

static int64_t some_length(player *p)
{
    static const int64_t lengths[] = {0, 1, 2, 3, 4, 5, 7, 8, 16, 17, 33, -1, INT64_MAX, 1 << 30};
    return lengths[decide(p, decide(p, 4) ? 8 : 14)];
}

static ng_shape some_shape(player *p)
{
    ng_shape shape = {decide(p, decide(p, 8) ? 5 : 11), {0}};
    for (int i = 0; i < shape.rank && i < NG_MAX_RANK; i++) shape.dim[i] = some_length(p);
    return shape;
}

/* Whether a shape is one that this machine should not be asked to fill. */
static bool is_large(ng_shape shape)
{
    double size = 1;
    for (int i = 0; i < shape.rank && i < NG_MAX_RANK; i++) size *= (double)shape.dim[i];
    return size > LARGEST && size < 1e15;
}

/* Mostly one of the tape's or ours; now and then NULL, nothing, or of the other tape. */
static ng_tensor *some(player *p, int tape)
{
    const int where = decide(p, 32), which = decide(p, TENSORS);
    if (where == 0) return NULL;
    if (where == 1) return NG_NONE;
    if (where == 2) return p->made[!tape][which];
    return where < 12 && p->own[which] ? p->own[which] : p->made[tape][which];
}

static ng_axes some_axes(player *p)
{
    ng_axes axes = {decide(p, decide(p, 8) ? 3 : 10), {0}};
    for (int i = 0; i < axes.count && i < NG_MAX_RANK; i++) axes.axis[i] = decide(p, 12) - 6;
    return axes;
}

static double some_number(player *p)
{
    static const double numbers[] = {0, NG_ZERO, 1, -1, 0.5, 1e-5, 1e30, -1e300, 2, 1e-300};
    return numbers[decide(p, 10)];
}

static void make_own(player *p)
{
    const int which = decide(p, TENSORS), dtype = decide(p, 8);
    const ng_shape shape = some_shape(p);
    ng_rng rng = ng_rng_seeded((uint64_t)which);
    if (p->own[which] || is_large(shape)) return;
    const ng_dtype of = dtype < 4 ? NG_F64 : dtype < 6 ? NG_F32 : dtype < 7 ? NG_I64 : (ng_dtype)9;
    p->own[which] = ng_normal_new(of, shape, 0.5, 1, &rng);
    if (decide(p, 2) && p->own[which]) ng_require_grad(p->own[which]);
}

static ng_tensor *unary(player *p, ng_tape *tape, ng_tensor *x)
{
    switch (decide(p, 18)) {
    case 0: return ng_exp(tape, x);
    case 1: return ng_log(tape, x);
    case 2: return ng_sqrt(tape, x);
    case 3: return ng_tanh(tape, x);
    case 4: return ng_relu(tape, x);
    case 5: return ng_gelu(tape, x);
    case 6: return ng_sigmoid(tape, x);
    case 7: return ng_silu(tape, x);
    case 8: return ng_neg(tape, x);
    case 9: return ng_softmax(tape, x, .axes = NG_AXES(decide(p, 12) - 6));
    case 10: return ng_log_softmax(tape, x, .axes = NG_AXES(decide(p, 12) - 6));
    case 11: return ng_detach(tape, x);
    case 12: return ng_pow_scalar(tape, x, some_number(p));
    case 13: return ng_mul_scalar(tape, x, some_number(p));
    case 14: return ng_dropout(tape, x, some_number(p));
    case 15: return ng_swiglu(tape, x);
    case 16: return ng_square(tape, x);
    default: return ng_abs(tape, x);
    }
}

static ng_tensor *binary(player *p, ng_tape *tape, ng_tensor *a, ng_tensor *b)
{
    ng_tensor *both[] = {a, b};
    const int which = decide(p, 8);
    if (which == 5) return ng_concat(tape, both, decide(p, 3), decide(p, 12) - 6);
    switch (which) {
    case 0: return ng_add(tape, a, b);
    case 1: return ng_sub(tape, a, b);
    case 2: return ng_mul(tape, a, b);
    case 3: return ng_div(tape, a, b);
    case 4: return ng_matmul(tape, a, b);
    case 6: return ng_gather_rows(tape, a, b);
    default: return ng_cross_entropy(tape, a, b);
    }
}

static ng_tensor *shaped(player *p, ng_tape *tape, ng_tensor *x)
{
    const ng_shape shape = some_shape(p);
    const ng_axes axes = some_axes(p);
    const int axis = decide(p, 12) - 6, other = decide(p, 12) - 6;
    switch (decide(p, 7)) {
    case 0: return ng_reshape(tape, x, shape);
    case 1: return ng_transpose(tape, x, axis, other);
    case 2: return ng_slice(tape, x, axis, other, some_length(p));
    case 3: return ng_sum(tape, x, .axes = axes, .keepdim = decide(p, 2));
    case 4: return ng_mean(tape, x, .axes = axes, .keepdim = decide(p, 2));
    case 5: return ng_max(tape, x, .axes = axes, .keepdim = decide(p, 2));
    default: return is_large(shape) ? NULL : ng_broadcast_to(tape, x, shape);
    }
}

static ng_tensor *layer(player *p, ng_tape *tape, int t, ng_tensor *x)
{
    ng_tensor *const a = some(p, t), *const b = some(p, t);
    const double eps = some_number(p);
    const int64_t groups = some_length(p);
    switch (decide(p, 6)) {
    case 0: return ng_linear(tape, x, a, b);
    case 1: return ng_layer_norm(tape, x, a, b, eps);
    case 2: return ng_rms_norm(tape, x, a, eps);
    case 3:
        return ng_batch_norm(tape, x, a, b, some(p, t), some(p, t), .eps = eps,
                             .momentum = some_number(p), .training = decide(p, 2));
    case 4: return ng_group_norm(tape, x, a, b, .groups = groups, .eps = eps);
    default:
        return ng_conv2d(tape, x, a, b, .stride = decide(p, 4) - 1, .padding = decide(p, 4) - 1,
                         .groups = groups);
    }
}

static void forget(player *p, int t)
{
    ng_tape_reset(p->tapes[t]);
    memset(p->made[t], 0, sizeof p->made[t]);
}

static void gradients(player *p, int t)
{
    ng_tape *tape = p->tapes[t];
    ng_tensor *y = some(p, t), *x = some(p, t);
    if (decide(p, 2)) {
        if (ng_backward(tape, decide(p, 4) ? ng_sum(tape, y) : y) != NG_OK && !ng_failed()) abort();
        return;
    }
    ng_tensor *g = ng_gradient(tape, y, x, .record = true, .allow_unused = decide(p, 2));
    ng_tensor *again = g ? ng_gradient(tape, ng_sum(tape, ng_square(tape, g)), x) : NULL;
    p->made[t][decide(p, TENSORS)] = again ? again : g;
}

static void play(player *p)
{
    const int t = decide(p, 8) == 7;
    ng_tape *tape = p->tapes[t];
    const int what = decide(p, 12);
    if (what < 2) make_own(p);
    if (what == 2) gradients(p, t);
    if (what == 3 && decide(p, 8) == 0) forget(p, t);
    if (what < 4) return;
    ng_tensor *a = some(p, t);
    ng_tensor *made = what < 6    ? unary(p, tape, a)
                      : what < 8  ? binary(p, tape, a, some(p, t))
                      : what < 10 ? shaped(p, tape, a)
                                  : layer(p, tape, t, a);
    if (made && ng_size(made) > LARGEST) {
        forget(p, t);
        return;
    }
    p->made[t][decide(p, TENSORS)] = made;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    player p = {.data = data, .end = data + size, .tapes = {ng_tape_new(), ng_tape_new()}};
    ng_set_threads(1);
    for (int calls = 0; p.data < p.end && calls < 200; calls++) {
        play(&p);
        ng_clear_error();
    }
    ng_tape_free(p.tapes[0]), ng_tape_free(p.tapes[1]);
    for (int i = 0; i < TENSORS; i++) ng_tensor_free(p.own[i]);
    return 0;
}
