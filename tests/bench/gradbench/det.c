/* det: a determinant by expansion by minors, none of which is shared: one product for each
 * arrangement of the columns. A choice of columns for the upper rows leaves a minor of the lower
 * rows. Blocks of minors are expanded together, row by row; the tape is reset after each block, and
 * the gradients of the blocks add up in the matrix. */
#include "gradbench.h"
#include <string.h>

enum { MOST = 12, LOWER = 6, BLOCK = 64 };
static ng_tensor *matrix, *cells_of, *index_of[LOWER];
static int64_t order, lower; /* rows of the matrix, and of its minors */

static int64_t arrangements(int64_t n, int64_t chosen)
{
    int64_t count = 1;
    for (int64_t i = 0; i < chosen; i++) count *= n - i;
    return count;
}

/* The i-th arrangement of n columns: those chosen, and then the others in ascending order. Returns
 * its sign. */
static int arrange(int64_t i, int64_t n, int64_t chosen, int64_t *columns)
{
    int sign = 1;
    for (int64_t at = 0; at < n; at++) columns[at] = at;
    for (int64_t at = 0, rest = arrangements(n, chosen); at < chosen; at++) {
        rest /= n - at;
        const int64_t j = at + i / rest % (n - at), column = columns[j];
        memmove(columns + at + 1, columns + at, (size_t)(j - at) * sizeof *columns);
        columns[at] = column;
        if ((j - at) % 2) sign = -sign;
    }
    return sign;
}

/* cells_of (upper + lower lower, choices): the upper cells of a choice and those of its minor.
 * index_of[row]: the cell of a minor in that row, for each arrangement up to there. An index above
 * n n is the cell of an n x n matrix with the other sign, which is that of the arrangement. */
static void prepare(const char *input)
{
    matrix = input_leaf(input, "A");
    order = input_count(input, "ell");
    lower = order > LOWER + 2 ? LOWER : order > 3 ? order - 2 : 1;
    if (order < 1 || order > MOST) ng_fail(NG_EVALUE, "ell: expected 1 to %d", (int)MOST);
    if (ng_failed()) return;
    const int64_t upper = order - lower, choices = arrangements(order, upper);
    int64_t columns[MOST];
    int64_t *cell = held_index(&cells_of, NG_SHAPE(upper + lower * lower, choices));
    for (int64_t i = 0; cell && i < choices; i++) {
        const int sign = arrange(i, order, upper, columns);
        for (int64_t at = 0; at < upper + lower * lower; at++) {
            const int64_t row = at < upper ? at : upper + (at - upper) / lower;
            const int64_t column = columns[at < upper ? at : upper + (at - upper) % lower];
            const int64_t other = at == 0 && sign < 0 ? order * order : 0;
            cell[at * choices + i] = row * order + column + other;
        }
    }
    for (int64_t row = 0; row < lower; row++) {
        const int64_t count = arrangements(lower, row + 1);
        int64_t *index = held_index(&index_of[row], NG_SHAPE(count));
        for (int64_t i = 0; index && i < count; i++) {
            const int sign = arrange(i, lower, row + 1, columns);
            const int64_t other = row == lower - 1 && sign < 0 ? lower * lower : 0;
            index[i] = row * lower + columns[row] + other;
        }
    }
}

static ng_tensor *with_negative(ng_tape *tape, ng_tensor *x)
{
    return ng_concat(tape, NG_TENSORS(x, ng_neg(tape, x)), 0);
}

/* The sum over a block of choices of the product of the upper cells and the minor. */
static ng_tensor *block_sum(ng_tape *tape, int64_t from, int64_t to)
{
    const int64_t upper = order - lower;
    ng_tensor *cells = with_negative(tape, ng_reshape(tape, matrix, NG_SHAPE(-1, 1)));
    cells = ng_gather_rows(tape, cells, ng_slice(tape, cells_of, 1, from, to));
    cells = ng_squeeze(tape, cells, 2);
    ng_tensor *factor = ng_prod(tape, ng_slice(tape, cells, 0, 0, upper), .axes = NG_AXES(0));
    ng_tensor *minor = with_negative(tape, ng_slice(tape, cells, 0, upper, NG_END));
    ng_tensor *sum = ng_gather_rows(tape, minor, index_of[lower - 1]);
    for (int64_t row = lower - 2; row >= 0; row--) {
        ng_tensor *product = ng_mul(tape, ng_gather_rows(tape, minor, index_of[row]), sum);
        product = ng_reshape(tape, product, NG_SHAPE(-1, lower - row, to - from));
        sum = ng_sum(tape, product, .axes = NG_AXES(1));
    }
    return ng_dot(tape, factor, ng_squeeze(tape, sum, 0));
}

static ng_tensor *primal(ng_tape *tape)
{
    double sum = 0;
    for (int64_t from = 0, end = ng_dim(cells_of, 1); from < end; from += BLOCK) {
        ng_tape_reset(tape);
        ng_tensor *part = block_sum(tape, from, from + BLOCK < end ? from + BLOCK : end);
        sum += ng_item(part);
        if (ng_tape_recording(tape) && ng_backward(tape, part)) return NULL;
    }
    return ng_full(tape, NG_F64, NG_SCALAR, sum);
}

static void gradient(ng_tape *tape)
{
    ng_zero_grad(matrix);
    primal(tape);
    answer(NULL, ng_grad(matrix));
}

const gradbench_eval eval_det = {"primal", "gradient", prepare, primal, gradient};
