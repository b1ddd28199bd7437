/* Operands out of the ordinary: empty along any axis, left out, of another tape, gone stale. What
 * takes a tensor either works or answers with an error. */
#include "fixture.h"
#include "support.h"
#include "tape/tape.h"

/* ---- Rows of the tables, run on inputs of other shapes -------------------------------------- */

static int op_count(void)
{
    int count = 0;
    while (ng_op_row(count)) count++;
    return count;
}

static int layer_count(void)
{
    int count = 0;
    while (ng_layer_row(count)) count++;
    return count;
}

/* The ops, then the layers. */
static const ng_check_row_spec *row_at(int index)
{
    return index < op_count() ? ng_op_row(index) : ng_layer_row(index - op_count());
}

/* How a row is run. */
typedef struct {
    ng_dtype dtype;
    bool record;    /* the gradients */
    bool constants; /* the row's constants require gradients too */
} manner;

/* What a run gives, as copies: the result, and the gradient to each input; NULL where an error
 * says why not. */
typedef struct {
    ng_tensor *y, *gradients[NG_ROW_INPUTS];
} outcome;

static void outcome_free(outcome *o)
{
    ng_tensor_free(o->y);
    for (int i = 0; i < NG_ROW_INPUTS; i++) ng_tensor_free(o->gradients[i]);
}

/* A copy of a result; its absence and an error come together. */
static ng_tensor *told(const char *name, const ng_tensor *result)
{
    ck_assert_msg((result != NULL) != ng_failed(), "%s: %s", name,
                  result ? ng_last_error() : "NULL without an error");
    ng_clear_error();
    return result ? ng_copy_new(result, ng_dtype_of(result)) : NULL;
}

static ng_tensor *drawn(const ng_row_input *input, ng_rng *rng, const manner *how)
{
    ng_tensor *x = ng_row_input_new(input, rng);
    assert_ok(x);
    if (input->index) return x;
    ng_tensor *converted = ng_copy_new(x, how->dtype);
    ng_tensor_free(x);
    return input->constant && !how->constants ? converted : ng_require_grad(converted);
}

static ng_tensor *called(const ng_check_row_spec *row, ng_module *module, ng_tensor **inputs)
{
    if (row->call) return row->call(tape, inputs, NULL);
    if (row->inputs[1].name) return ng_forward_with(module, tape, inputs[0], inputs[1]);
    return ng_forward(module, tape, inputs[0]);
}

static outcome run(const ng_check_row_spec *row, const manner *how)
{
    ng_tensor *inputs[NG_ROW_INPUTS] = {NULL};
    ng_rng rng = ng_rng_seeded(7);
    for (int i = 0; i < NG_ROW_INPUTS && row->inputs[i].name; i++)
        inputs[i] = drawn(&row->inputs[i], &rng, how);
    ng_module *module = row->module ? row->module() : NULL;
    if (module) assert_ok(ng_module_to(module, how->dtype));
    if (row->eval) ng_eval(module);

    ng_tape_seed(tape, 3);
    ng_tensor *y = called(row, module, inputs);
    outcome o = {.y = told(row->name, y)};
    for (int i = 0; i < NG_ROW_INPUTS; i++) {
        if (!ng_requires_grad(y) || !ng_requires_grad(inputs[i])) continue;
        ng_tensor *dx =
            ng_gradient(tape, y, inputs[i], .record = how->record, .allow_unused = true);
        ck_assert(!dx || ng_shape_equal(ng_shape_of(dx), ng_shape_of(inputs[i])));
        o.gradients[i] = told(row->name, dx);
    }
    for (int i = 0; i < NG_ROW_INPUTS; i++) ng_tensor_free(inputs[i]);
    ng_module_free(module);
    return o;
}

/* Fills the tape's memory with a byte: an element that is read before it was written has it. */
static void soil(int byte)
{
    const size_t bytes = 1 << 20;
    ng_tape_reset(tape);
    void *memory = ng_tape_memory(tape, bytes);
    assert_ok(memory);
    memset(memory, byte, bytes);
    ng_tape_reset(tape);
}

/* The same bits, whatever stood in the tape's memory before. */
static void assert_well_defined(const ng_check_row_spec *row, const manner *how)
{
    soil(0xff);
    outcome one = run(row, how);
    soil(0x11);
    outcome two = run(row, how);
    if (one.y) assert_same_bits(one.y, two.y);
    for (int i = 0; i < NG_ROW_INPUTS; i++)
        if (one.gradients[i]) assert_same_bits(one.gradients[i], two.gradients[i]);
    outcome_free(&one);
    outcome_free(&two);
}

static const manner manners[] = {
    {NG_F64, false, false}, {NG_F64, true, false}, {NG_F32, false, false},
    {NG_F32, true, false},  {NG_F64, false, true}, {NG_F64, true, true},
};
#define EACH_MANNER(how) for (const manner *how = manners; how < manners + 6; how++)

START_TEST(every_element_that_a_row_gives_was_written)
{
    EACH_MANNER(how) assert_well_defined(row_at(_i), how);
}
END_TEST

/* ---- Empty along an axis ------------------------------------------------------------------- */

/* The row with `from` replaced by `to` wherever it is the length of an axis; or along one axis of
 * one input. */
static ng_check_row_spec with_length(const ng_check_row_spec *row, int64_t from, int64_t to)
{
    ng_check_row_spec other = *row;
    for (int i = 0; i < NG_ROW_INPUTS && row->inputs[i].name; i++)
        for (int d = 0; d < row->inputs[i].shape.rank; d++)
            if (row->inputs[i].shape.dim[d] == from) other.inputs[i].shape.dim[d] = to;
    return other;
}

static ng_check_row_spec with_axis(const ng_check_row_spec *row, int input, int axis, int64_t to)
{
    ng_check_row_spec other = *row;
    other.inputs[input].shape.dim[axis] = to;
    return other;
}

/* In turn every axis of every input, alone and with all that are as long. */
START_TEST(every_row_works_or_answers_where_an_axis_is_empty)
{
    const ng_check_row_spec *row = row_at(_i);
    for (int i = 0; i < NG_ROW_INPUTS && row->inputs[i].name; i++)
        for (int d = 0; d < row->inputs[i].shape.rank; d++) {
            const ng_check_row_spec alone = with_axis(row, i, d, 0);
            const ng_check_row_spec joint = with_length(row, row->inputs[i].shape.dim[d], 0);
            EACH_MANNER(how)
            {
                assert_well_defined(&alone, how);
                assert_well_defined(&joint, how);
            }
        }
}
END_TEST

/* Whether there can be inputs of these shapes: they are empty, or no larger than in the table. */
static bool can_be_made(const ng_check_row_spec *row)
{
    for (int i = 0; i < NG_ROW_INPUTS && row->inputs[i].name; i++) {
        const ng_shape shape = row->inputs[i].shape;
        double size = 1, without_zeros = 1;
        for (int d = 0; d < shape.rank; d++) {
            size *= (double)shape.dim[d];
            without_zeros *= shape.dim[d] ? (double)shape.dim[d] : 1;
        }
        if (size > 1e6 || without_zeros > 0x1p60) return false;
    }
    return true;
}

static void run_if_it_can_be_made(const ng_check_row_spec *row, const manner *how)
{
    if (!can_be_made(row)) return;
    outcome o = run(row, how);
    outcome_free(&o);
}

/* The same with 2^40 in place of another length: work that is done for each of so many nothings
 * would not end. */
START_TEST(every_row_is_done_at_once_with_what_is_empty_and_huge)
{
    const int64_t huge = INT64_C(1) << 40;
    const ng_check_row_spec *row = row_at(_i);
    for (int i = 0; i < NG_ROW_INPUTS && row->inputs[i].name; i++)
        for (int d = 0; d < row->inputs[i].shape.rank; d++)
            for (int e = 0; e < row->inputs[i].shape.rank; e++) {
                const ng_shape shape = row->inputs[i].shape;
                if (shape.dim[d] == shape.dim[e] || shape.dim[e] == 1) continue;
                const ng_check_row_spec empty = with_length(row, shape.dim[d], 0);
                const ng_check_row_spec joint = with_length(&empty, shape.dim[e], huge);
                const ng_check_row_spec alone = with_axis(&empty, i, e, huge);
                for (int k = 0; k < 2; k++) {
                    run_if_it_can_be_made(&joint, &manners[k]);
                    run_if_it_can_be_made(&alone, &manners[k]);
                }
            }
}
END_TEST

/* ---- Suite --------------------------------------------------------------------------------- */

Suite *operands_suite(void);

static TCase *add_case(Suite *suite, const char *name)
{
    TCase *group = tcase_create(name);
    tcase_add_checked_fixture(group, set_up, tear_down);
    suite_add_tcase(suite, group);
    return group;
}

Suite *operands_suite(void)
{
    Suite *suite = suite_create("operands");
    const int rows = op_count() + layer_count();

    TCase *empty = add_case(suite, "empty");
    tcase_add_loop_test(empty, every_element_that_a_row_gives_was_written, 0, rows);
    tcase_add_loop_test(empty, every_row_works_or_answers_where_an_axis_is_empty, 0, rows);
    tcase_add_loop_test(empty, every_row_is_done_at_once_with_what_is_empty_and_huge, 0, rows);
    return suite;
}
