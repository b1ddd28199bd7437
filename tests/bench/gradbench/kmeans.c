/* kmeans: the cost sum_i min_j |p_i - c_j|^2 of centroids c, and Newton's direction J / H: the
 * gradient divided by the Hessian, which is diagonal. */
#include "gradbench.h"

enum { BLOCK = 1 << 17 };
static ng_tensor *points, *centroids, *nearest;
static ng_tape *scratch;

static void prepare(const char *input)
{
    points = input_tensor(input, "points");
    centroids = input_leaf(input, "centroids");
    nearest = held_zeros(NG_I64, NG_SHAPE(ng_dim(points, 0)));
    if (!scratch) scratch = ng_tape_new();
    ng_tape_set_recording(scratch, false);
}

/* Finds the centroid nearest to each point, the j with the largest 2 p . c_j - |c_j|^2. No gradient
 * flows through an index, so that a tape of its own forgets the distances of each block of points,
 * which stay in cache. */
static void find_nearest(void)
{
    const int64_t n = ng_dim(points, 0), rows = 1 + BLOCK / ng_dim(centroids, 0);
    for (int64_t from = 0; from < n; from += rows) {
        ng_tape_reset(scratch);
        ng_tensor *block = rows_of(scratch, points, from, from + rows < n ? from + rows : n);
        ng_tensor *square = ng_sum(scratch, ng_square(scratch, centroids), .axes = NG_AXES(1));
        ng_tensor *twice = ng_mul_scalar(scratch, centroids, 2);
        ng_tensor *score = ng_linear(scratch, block, twice, ng_neg(scratch, square));
        copy_elements(nearest, from, ng_argmax(scratch, score, .axes = NG_AXES(1)));
    }
}

static ng_tensor *cost(ng_tape *tape)
{
    find_nearest();
    ng_tensor *offset = ng_sub(tape, ng_gather_rows(tape, centroids, nearest), points);
    return ng_sum_squares(tape, offset);
}

/* As the Hessian is diagonal, its product with ones is its diagonal. */
static void direction(ng_tape *tape)
{
    ng_tensor *y = cost(tape), *gradient, *hessian;
    ng_gradients(tape, &y, 1, &centroids, 1, &gradient, .record = true);
    ng_gradients(tape, &gradient, 1, &centroids, 1, &hessian);
    answer(NULL, ng_div(tape, gradient, hessian));
}

const gradbench_eval eval_kmeans = {"cost", "dir", prepare, cost, direction};
