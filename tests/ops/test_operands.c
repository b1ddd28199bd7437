/* Unusual operands: empty along any axis, missing, of another tape, stale, of another dtype. Every
 * function either works or returns an error. */
#include "support/fixture.h"
#include "support/headers.h"
#include "support/support.h"

#include "core/arena.h"
#include "tape/tape.h"
#include <unistd.h>

/* ---- Cases, run on inputs of other shapes -------------------------------------------------- */

/* The ops, then the layers. */
static const gradient_case *case_at(int index)
{
    const int ops = case_count(op_case);
    return index < ops ? op_case(index) : layer_case(index - ops);
}

/* How a case is run. */
typedef struct {
    ng_dtype dtype;
    bool record;    /* the gradients */
    bool constants; /* the case's constants require gradients too */
} manner;

/* What a run gives, as copies: the result, and the gradient to each input; NULL where an error
 * says why not. */
typedef struct {
    ng_tensor *y, *gradients[CASE_INPUTS];
} outcome;

static void outcome_free(outcome *o)
{
    ng_tensor_free(o->y);
    for (int i = 0; i < CASE_INPUTS; i++) ng_tensor_free(o->gradients[i]);
}

/* A copy of a result; its absence and an error come together. */
static ng_tensor *told(const char *name, const ng_tensor *result)
{
    ck_assert_msg((result != NULL) != ng_failed(), "%s: %s", name,
                  result ? ng_error_text() : "NULL without an error");
    ng_clear_error();
    return result ? ng_copy_new(result, ng_dtype_of(result)) : NULL;
}

static ng_tensor *drawn(const case_input *input, ng_rng *rng, const manner *how)
{
    ng_tensor *x = case_input_new(input, rng);
    assert_ok(x);
    if (input->index) return x;
    ng_tensor *converted = ng_copy_new(x, how->dtype);
    ng_tensor_free(x);
    return input->constant && !how->constants ? converted : ng_require_grad(converted);
}

static ng_tensor *called(const gradient_case *spec, ng_module *module, ng_tensor **inputs)
{
    if (spec->call) return spec->call(tape, inputs, NULL);
    return ng_forward_with(module, tape, case_inputs(spec, inputs));
}

static outcome run(const gradient_case *spec, const manner *how)
{
    ng_tensor *inputs[CASE_INPUTS] = {NULL};
    ng_rng rng = ng_rng_seeded(7);
    for (int i = 0; i < CASE_INPUTS && spec->inputs[i].name; i++)
        inputs[i] = drawn(&spec->inputs[i], &rng, how);
    ng_module *module = spec->module ? spec->module() : NULL;
    if (module) assert_ok(ng_module_to(module, how->dtype));
    if (spec->eval) ng_eval(module);

    ng_tape_seed(tape, 3);
    ng_tensor *y = called(spec, module, inputs);
    outcome o = {.y = told(spec->name, y)};
    for (int i = 0; i < CASE_INPUTS; i++) {
        if (!y || !ng_requires_grad(y) || !inputs[i] || !ng_requires_grad(inputs[i])) continue;
        ng_tensor *dx =
            ng_gradient(tape, y, inputs[i], .record = how->record, .allow_unused = true);
        ck_assert(!dx || ng_shape_equal(ng_shape_of(dx), ng_shape_of(inputs[i])));
        o.gradients[i] = told(spec->name, dx);
    }
    ng_tape_reset(tape); /* until then its operands live */
    for (int i = 0; i < CASE_INPUTS; i++) ng_tensor_free(inputs[i]);
    ng_module_free(module);
    return o;
}

/* Fills the tape's memory with a byte: an element that is read before it was written has it. Where
 * a tape keeps no memory (core/arena.h) the sanitizer fills what is new. */
static void soil(int byte)
{
#ifdef NG_ARENA_FORGETS
    (void)byte;
#else
    const size_t bytes = 1 << 20;
    ng_tape_reset(tape);
    void *memory = ng_tape_memory(tape, bytes);
    assert_ok(memory);
    memset(memory, byte, bytes);
    ng_tape_reset(tape);
#endif
}

/* The same bits, whatever stood in the tape's memory before. */
static void assert_well_defined(const gradient_case *spec, const manner *how)
{
    soil(0xff);
    outcome one = run(spec, how);
    soil(0x11);
    outcome two = run(spec, how);
    if (one.y) assert_same_bits(one.y, two.y);
    for (int i = 0; i < CASE_INPUTS; i++)
        if (one.gradients[i]) assert_same_bits(one.gradients[i], two.gradients[i]);
    outcome_free(&one);
    outcome_free(&two);
}

static const manner manners[] = {
    {NG_F64, false, false}, {NG_F64, true, false}, {NG_F32, false, false},
    {NG_F32, true, false},  {NG_F64, false, true}, {NG_F64, true, true},
};
#define EACH_MANNER(how) for (const manner *how = manners; how < manners + 6; how++)

START_TEST(every_element_that_a_case_gives_was_written)
{
    EACH_MANNER(how) assert_well_defined(case_at(_i), how);
}

/* ---- On a tape that is full ---------------------------------------------------------------- */

/* A new tape with so many bytes left in its memory. */
static void leave_room(int64_t room)
{
    ng_tape_free(tape);
    tape = ng_tape_new();
    assert_ok(ng_tape_memory(tape, 1));
    const ng_tape_usage use = ng_tape_used(tape);
    assert_ok(ng_tape_memory(tape, (size_t)(use.bytes_kept - use.bytes_used - room)));
}

/* Runs the case and its recorded gradients; returns whether all were given. */
static bool is_given(const gradient_case *spec, ng_module *module, ng_tensor **inputs)
{
    ng_tensor *wanted[CASE_INPUTS], *gradients[CASE_INPUTS];
    int count = 0;
    for (int i = 0; i < CASE_INPUTS && inputs[i]; i++)
        if (ng_requires_grad(inputs[i])) wanted[count++] = inputs[i];
    ng_tape_seed(tape, 3);
    ng_tensor *y = called(spec, module, inputs);
    if (!y || !ng_requires_grad(y) || count == 0) return y != NULL;
    return ng_gradients(tape, &y, 1, wanted, count, gradients, .record = true,
                        .allow_unused = true) == NG_OK;
}

/* With less and less room left on the tape, the next allocation, or that and all later ones, is
 * refused. */
static void expect_refusals_reported(const gradient_case *spec, void (*refuse_after)(int64_t))
{
    enum { STEP = 128 }; /* bytes: no tensor takes less */
    ng_tensor *inputs[CASE_INPUTS] = {NULL};
    ng_rng rng = ng_rng_seeded(7);
    for (int i = 0; i < CASE_INPUTS && spec->inputs[i].name; i++)
        inputs[i] = drawn(&spec->inputs[i], &rng, &manners[0]);
    ng_module *module = spec->module ? spec->module() : NULL;
    if (module) assert_ok(ng_module_to(module, NG_F64));
    if (spec->eval) ng_eval(module);
    bool refused = true;
    for (int64_t room = 0; refused && room < 1 << 15; room += STEP) {
        leave_room(room);
        refuse_after(0);
        const bool given = is_given(spec, module, inputs);
        refused = allocations_refused();
        allocations_succeed();
        ck_assert_msg(given != ng_failed(), "%s with %lld bytes: %s", spec->name, (long long)room,
                      given ? ng_error_text() : "nothing without an error");
        ck_assert_msg(given || ng_error_status() == NG_ENOMEM, "%s: %s", spec->name,
                      ng_error_text());
        ng_clear_error();
    }
    leave_room(0); /* the results go before their operands */
    for (int i = 0; i < CASE_INPUTS; i++) ng_tensor_free(inputs[i]);
    ng_module_free(module);
}

START_TEST(every_case_reports_that_it_was_refused_memory)
{
    expect_refusals_reported(case_at(_i), allocations_fail_after);
    expect_refusals_reported(case_at(_i), allocations_fail_twice_after);
}

/* ---- Empty along an axis ------------------------------------------------------------------- */

/* The case with `from` replaced by `to` wherever it is the length of an axis; or along one axis
 * of one input. */
static gradient_case with_length(const gradient_case *spec, int64_t from, int64_t to)
{
    gradient_case other = *spec;
    for (int i = 0; i < CASE_INPUTS && spec->inputs[i].name; i++)
        for (int d = 0; d < spec->inputs[i].shape.rank; d++)
            if (spec->inputs[i].shape.dim[d] == from) other.inputs[i].shape.dim[d] = to;
    return other;
}

static gradient_case with_axis(const gradient_case *spec, int input, int axis, int64_t to)
{
    gradient_case other = *spec;
    other.inputs[input].shape.dim[axis] = to;
    return other;
}

/* Every axis of every input in turn, alone and with all axes of the same length. */
START_TEST(every_case_works_or_answers_where_an_axis_is_empty)
{
    const gradient_case *spec = case_at(_i);
    for (int i = 0; i < CASE_INPUTS && spec->inputs[i].name; i++)
        for (int d = 0; d < spec->inputs[i].shape.rank; d++) {
            const gradient_case alone = with_axis(spec, i, d, 0);
            const gradient_case joint = with_length(spec, spec->inputs[i].shape.dim[d], 0);
            EACH_MANNER(how)
            {
                assert_well_defined(&alone, how);
                assert_well_defined(&joint, how);
            }
        }
}

/* ---- Every public function that takes a tensor ---------------------------------------------
 *
 * With the operands of its row a call works. With NULL for its tape, and with any operand replaced
 * by NG_NONE, a tensor of another tape, one from before the reset, a stale view, one of another
 * dtype or NULL, it works or answers with an error that begins with the function's name. */

/* The kinds of operands: a letter's shape, in double unless said. */
static const ng_shape shape_of_kind[128] = {
    ['m'] = {2, {4, 4}},       /* a leaf */
    ['v'] = {1, {4}},          /* for each feature or channel */
    ['s'] = {1, {1}},          /* one number */
    ['o'] = {0, {0}},          /* without dimensions */
    ['i'] = {4, {2, 4, 4, 4}}, /* images */
    ['w'] = {4, {4, 4, 2, 2}}, /* weights of a convolution */
    ['u'] = {3, {2, 16, 9}},   /* unfolded images */
    ['h'] = {4, {1, 2, 4, 2}}, /* heads */
    ['q'] = {3, {1, 4, 12}},   /* queries, keys and values side by side */
    ['k'] = {2, {1, 4}},       /* a mask of keys */
    ['n'] = {2, {4, 4}},       /* no gradient wanted */
    ['p'] = {2, {4, 4}},       /* the same, probabilities */
    ['c'] = {1, {4}},          /* none either, for each channel: running statistics */
    ['e'] = {2, {4, 4}},       /* targets of 1 without a gradient, */
    ['E'] = {1, {4}},          /* one a row */
    ['f'] = {2, {4, 4}},       /* in float */
    ['l'] = {1, {4}},          /* int64 labels */
    ['g'] = {2, {4, 4}},       /* a leaf that has a gradient */
    ['r'] = {2, {4, 4}},       /* recorded on the tape */
    ['t'] = {3, {4, 3, 4}},    /* a batch of sequences */
    ['T'] = {3, {4, 4, 2}},    /* lines, and the weights of their convolution */
    ['L'] = {2, {16, 4}},      /* the weights of an LSTM, */
    ['B'] = {1, {16}},         /* its biases; */
    ['G'] = {2, {12, 4}},      /* those of a GRU */
    ['D'] = {1, {12}},         ['S'] = {3, {1, 4, 4}}, /* a state */
    ['y'] = {2, {4, 4}}, /* a result of the tape that is not yet recorded */
};

static ng_rng rng;
static ng_tape *other;
static ng_group *alone;
static ng_module *a_linear, *an_adaptive, *an_lstm, *an_attention;
static ng_tensor *product; /* of ng_hvp */
static FILE *sink;
static char scratch_path[64];

static ng_module *linear(void) { return a_linear; }
static ng_module *adaptive(void) { return an_adaptive; }
static ng_module *across(void) { return an_attention; }
static FILE *nowhere(void) { return sink; }

static ng_status made(ng_tensor *x)
{
    ng_tensor_free(x);
    return x ? NG_OK : ng_error_status();
}

static ng_status made_dataset(ng_dataset *data)
{
    ng_dataset_free(data);
    return data ? NG_OK : ng_error_status();
}

/* Keeps the tensor in a training that ends before the tensor does. */
static ng_status kept(ng_tensor *x)
{
    ng_optimizer *optimizer = ng_sgd_new(a_linear);
    ng_training *training = ng_training_new(optimizer);
    const ng_status status = ng_training_keep_tensor(training, "x", x);
    ng_training_free(training), ng_optimizer_free(optimizer);
    return status;
}

static ng_status gradients(ng_tensor **in)
{
    ng_tensor *found;
    return ng_gradients(tape, &in[0], 1, &in[1], 1, &found, .cotangents = &in[2],
                        .allow_unused = true);
}

static ng_status chunked(ng_tensor *x)
{
    ng_tensor *chunks[2];
    return ng_chunk(tape, x, 2, 0, chunks);
}

/* A tensor that has become a parameter is freed with its module. */
static ng_status given_back(ng_tensor **in)
{
    ng_module *module = ng_parameters_new(in, 1);
    if (!module) return ng_error_status();
    ng_module_free(module);
    in[0] = NULL;
    return NG_OK;
}

/* With a group of its own, because a failure ends the group. */
static ng_status parallel_backward(ng_tensor *loss)
{
    ng_group *group = ng_group_alone_new();
    ng_parallel *parallel = ng_parallel_new(a_linear, group);
    const ng_status status = ng_parallel_backward(parallel, tape, loss);
    ng_parallel_free(parallel), ng_group_free(group);
    return status;
}

/* A new file, which written() removes. */
static const char *scratch(void)
{
    strcpy(scratch_path, "/tmp/normgrad-operands-XXXXXX");
    close(mkstemp(scratch_path));
    return scratch_path;
}

static ng_status written(ng_status status)
{
    remove(scratch_path);
    return status;
}

static ng_tensor *passed_on(ng_tensor **in)
{
    const ng_inputs all = {in[1], NG_NONE, NG_NONE, NG_NONE, NG_NONE, NG_NONE, NG_NONE, .x = in[0]};
    return ng_forward_child(adaptive(), tape, in[0], &all);
}

static ng_tensor *recurred(ng_tensor **in)
{
    ng_recurrent_state state = {in[2], in[3]};
    return ng_forward_recurrent(an_lstm, tape, in[0], in[1], &state);
}

static ng_tensor *square(ng_tape *on, ng_tensor *const *in, void *context)
{
    (void)context;
    return ng_square(on, in[0]);
}

static void some_rule(ng_tape *on, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    (void)on, (void)node;
    dx[0] = dy;
}
static const ng_op some_op = {.name = "some", .gradient = some_rule};

/* Whether a call reports success: a pointer, NG_OK, a number. Other results always do. */
static bool by_pointer(const void *result) { return result != NULL; }
static bool by_status(ng_status status) { return status == NG_OK; }
static bool by_value(double value) { return !isnan(value); }
static bool always(int64_t result) { return (void)result, !ng_failed(); }
/* clang-format off */
#define WORKED(result)                                                                             \
    _Generic((result), ng_status: by_status, double: by_value, int: always, int64_t: always,       \
             bool: always, default: by_pointer)(result)
/* clang-format on */

/* Each row makes a function, and an entry of the list. */
#define LINED(name, line) LINED_AS(name, line)
#define LINED_AS(name, line) name##line
#define CALL(name, ...) ROW(LINED(call_, __LINE__), #name, __VA_ARGS__)
#define UNARY(name) ROW(call_##name, #name, "m", name(tape, in[0]))
#define UNARY_WITH(name) ROW(call_##name, #name "_with", "m", name(tape, in[0]))
#define ALONG(name) ROW(call_##name, #name "_with", "m", name(tape, in[0], .axes = NG_AXES(1)))
#define BINARY(name) ROW(call_##name, #name, "mm", name(tape, in[0], in[1]))

#define ROW(id, name, kinds, ...)                                                                  \
    static bool id(ng_tensor **in) { return WORKED((__VA_ARGS__)); }
#include "operands.def"
#undef ROW

typedef struct {
    const char *name, *kinds;
    bool (*call)(ng_tensor **in);
} caller;

static const caller callers[] = {
#define ROW(id, name, kinds, ...) {name, kinds, id},
#include "operands.def"
#undef ROW
};
enum { N_CALLERS = sizeof callers / sizeof callers[0] };

/* ---- Operands of each kind, and what stands in their place ---------------------------------- */

static ng_tensor *leaf_of(char kind)
{
    const ng_dtype dtype = kind == 'l' ? NG_I64 : kind == 'f' ? NG_F32 : NG_F64;
    const double most = kind == 'p' ? 1 : 3;
    if (kind == 'e' || kind == 'E') return ng_full_new(dtype, shape_of_kind[(int)kind], 1);
    ng_tensor *x = ng_uniform_new(dtype, shape_of_kind[(int)kind], 0.5, most, &rng);
    assert_ok(x);
    return strchr("lnpck", kind) ? x : ng_require_grad(x);
}

static ng_tensor *operand_of(char kind)
{
    ng_tensor *x = leaf_of(kind);
    if (kind == 'g') assert_ok(ng_backward(tape, ng_sum(tape, x)));
    if (kind == 'r') return ng_mul_scalar(tape, ng_tape_own(tape, x), 2);
    if (kind != 'y') return x;
    ng_tensor_free(x);
    return ng_result_full(tape, NG_F64, shape_of_kind['y'], 1);
}

static ng_tensor *foreign_of(char kind)
{
    ng_tensor *x = ng_tape_own(other, leaf_of(kind));
    return kind == 'r' ? ng_mul_scalar(other, x, 2) : x;
}

/* A view of a buffer of the module, from before it was converted. */
static ng_tensor *stale_of(char kind, ng_module **module)
{
    static const ng_module_class holder = {.name = "Holder", .size = sizeof(ng_module)};
    *module = ng_module_new(&holder);
    ng_tensor *held = ng_module_add_parameter(*module, "held", shape_of_kind[(int)kind]);
    if (kind != 'f') ng_module_to(*module, NG_F64);
    ng_tensor *view = kind == 'r' ? ng_reshape(tape, held, NG_SHAPE(2, 8)) : NULL;
    view = ng_detach(tape, view ? view : held);
    assert_ok(ng_module_to(*module, kind != 'f' ? NG_F32 : NG_F64));
    return view;
}

/* A result from before the reset, far enough behind the new ones. */
static ng_tensor *gone_of(char kind)
{
    const ng_dtype dtype = kind == 'l' ? NG_I64 : kind == 'f' ? NG_F32 : NG_F64;
    assert_ok(ng_tape_memory(tape, 1 << 15));
    ng_tensor *x = ng_result_full(tape, dtype, shape_of_kind[(int)kind], 1);
    ng_tape_reset(tape);
    return x;
}

static ng_tensor *misfit_of(char kind)
{
    return ng_full_new(kind == 'l' ? NG_F64 : NG_I64, shape_of_kind[(int)kind], 1);
}

typedef enum { AS_IT_IS, UNTAPED, NONE, FOREIGN, STALE, MISFIT, ABSENT, GONE } strange;
static const char *const strange_names[] = {
    "as it is",     "without a tape", "NG_NONE", "of another tape",
    "a stale view", "of other dtype", "NULL",    "from before the reset"};

static ng_tensor *in_place_of(char kind, strange what, ng_module **module)
{
    switch (what) {
    case NONE: return NG_NONE;
    case FOREIGN: return foreign_of(kind);
    case STALE: return stale_of(kind, module);
    case MISFIT: return misfit_of(kind);
    case ABSENT: return NULL;
    default: return operand_of(kind);
    }
}

/* Whether the call must fail with this in place of an operand with this mark. */
static bool must_fail(strange what, char mark)
{
    if (what == FOREIGN) return mark != '.' && mark != ':';
    return (what == STALE || what == GONE) && mark != ':';
}

/* Errors of modules begin with the op's name. */
static bool names_itself(const caller *c)
{
    if (strncmp(c->name, "ng_forward", strlen("ng_forward")) == 0) return true;
    if (strcmp(c->name, "ng_recompute_with") == 0) return true;
    const size_t length = strlen(c->name), with = strlen("_with"), index = strlen("_index");
    size_t stem = length;
    if (strcmp(c->name + length - with, "_with") == 0) stem -= with;
    if (strcmp(c->name + length - index, "_index") == 0) stem -= index;
    return strncmp(ng_error_text(), c->name, stem) == 0;
}

static int operands_of(const caller *c)
{
    int operands = 0;
    for (const char *kind = c->kinds; *kind; kind++) operands += *kind != '.' && *kind != ':';
    return operands;
}

static char kind_of(const caller *c, int which)
{
    const char *kind = c->kinds + strspn(c->kinds, ".:");
    while (which-- > 0) kind += 1 + strspn(kind + 1, ".:");
    return *kind;
}

/* Calls it with operand `which` replaced. */
static void call_with(const caller *c, int which, strange what)
{
    ng_tensor *in[8] = {NULL}, *gone = NULL;
    ng_module *module = NULL;
    if (what == GONE) gone = gone_of(kind_of(c, which)); /* the others are of the new round */
    int n = 0;
    char mark = 0, mark_of_which = 0;
    for (const char *kind = c->kinds; *kind; kind++) {
        if (*kind == '.' || *kind == ':') {
            mark = *kind;
            continue;
        }
        if (n == which) mark_of_which = mark;
        in[n] =
            n == which && gone ? gone : in_place_of(*kind, n == which ? what : AS_IT_IS, &module);
        n++, mark = 0;
    }
    ck_assert_msg(!ng_failed(), "%s: %s", c->name, ng_error_text());
    ng_tape *const given = tape;
    if (what == UNTAPED) tape = NULL;
    const bool worked = c->call(in);
    tape = given;
    const char *is = strange_names[what];
    if (what == AS_IT_IS) ck_assert_msg(worked, "%s: %s", c->name, ng_error_text());
    if (must_fail(what, mark_of_which))
        ck_assert_msg(!worked, "%s works with operand %d %s", c->name, which + 1, is);
    if (what != ABSENT) {
        ck_assert_msg(worked != ng_failed(), "%s, operand %d %s: %s", c->name, which + 1, is,
                      worked ? ng_error_text() : "no error is recorded");
        if (!worked)
            ck_assert_msg(names_itself(c), "%s, operand %d %s: \"%s\"", c->name, which + 1, is,
                          ng_error_text());
    }
    ng_clear_error();
    for (int i = 0; i < n; i++) ng_tensor_free(in[i]);
    ng_tape_reset(tape), ng_tape_reset(other);
    ng_module_free(module);
}

static void begin_calls(void)
{
    set_up();
    rng = ng_rng_seeded(1);
    other = ng_tape_new();
    alone = ng_group_alone_new();
    a_linear = ng_linear_new(4, 4, .no_bias = true);
    an_adaptive = ng_adaptive_layer_norm_new(4, .condition = 4);
    an_lstm = ng_lstm_new(4, 4);
    assert_ok(ng_module_to(an_lstm, NG_F64));
    an_attention = ng_multi_head_attention_new(12, 2, .context = 12);
    assert_ok(ng_module_to(an_attention, NG_F64));
    sink = fopen("/dev/null", "w");
}

static void end_calls(void)
{
    ng_group_free(alone), ng_tape_free(other);
    ng_module_free(a_linear), ng_module_free(an_adaptive), ng_module_free(an_lstm),
        ng_module_free(an_attention);
    fclose(sink);
    tear_down();
}

START_TEST(every_function_works_or_answers_with_strange_operands)
{
    const caller *c = &callers[_i];
    call_with(c, -1, AS_IT_IS);
    call_with(c, -1, UNTAPED);
    for (int which = 0; which < operands_of(c); which++)
        for (strange what = NONE; what <= ABSENT; what++)
            if (what != STALE || c->kinds[which] != 'l') call_with(c, which, what);
}

/* AddressSanitizer stops at the read itself: tests/scripts/lifetimes.sh. */
#ifndef NG_ARENA_FORGETS
START_TEST(every_function_refuses_what_is_from_before_the_reset)
{
    for (int which = 0; which < operands_of(&callers[_i]); which++)
        call_with(&callers[_i], which, GONE);
}
#endif

/* ---- The list is complete ------------------------------------------------------------------ */

/* This one only passes its tensors on. */
static const char *const without_row[] = {"ng_dataset_batch_with"};

static bool has_row(const char *name)
{
    if (is_among(name, without_row, sizeof without_row / sizeof *without_row)) return true;
    for (int i = 0; i < N_CALLERS; i++)
        if (strcmp(callers[i].name, name) == 0) return true;
    return false;
}

static bool contains(const char *from, const char *to, const char *part)
{
    const char *at = strstr(from, part);
    return at && at < to;
}

/* Whether a tensor is among the arguments of a declaration, itself or in options beside a tape. */
static bool takes_tensor(const char *arguments, const char *end)
{
    return contains(arguments, end, "ng_tensor *") ||
           contains(arguments, end, "ng_tensor *const") ||
           (contains(arguments, end, "ng_tape *") && contains(arguments, end, "_options"));
}

static bool takes_tensor_and_has_row(const declaration *d)
{
    if (!takes_tensor(d->open, d->end)) return false;
    ck_assert_msg(has_row(d->name), "%s takes a tensor and has no row in tests/ops/operands.def",
                  d->name);
    return true;
}

START_TEST(every_function_that_takes_a_tensor_has_a_row)
{
    ck_assert_int_gt(declarations_that(takes_tensor_and_has_row), 100);
}

Suite *operands_suite(void)
{
    Suite *suite = suite_create("operands");
    TCase *tests = add_case(suite, set_up, tear_down);
    add_loops(tests, case_count(op_case) + case_count(layer_case),
              every_element_that_a_case_gives_was_written,
              every_case_reports_that_it_was_refused_memory,
              every_case_works_or_answers_where_an_axis_is_empty);
    tests = add_case(suite, begin_calls, end_calls);
    add_tests(tests, every_function_that_takes_a_tensor_has_a_row);
    add_loops(tests, N_CALLERS, every_function_works_or_answers_with_strange_operands);
#ifndef NG_ARENA_FORGETS
    add_loops(tests, N_CALLERS, every_function_refuses_what_is_from_before_the_reset);
#endif
    return suite;
}
