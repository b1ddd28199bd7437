/* Weight normalization, a weight of given direction and length; spectral normalization, a weight
 * divided by its largest singular value. */
#include "ops/norm.h"
#include <math.h>

static bool weight_has_rows(const char *function, const char *name, const ng_tensor *w)
{
    return ng_expect_shape(w->shape.rank >= 1 && w->size > 0, function, name, w,
                           "(out, ...) with at least 1 element");
}

/* ---- w = g v / ||v||. Salimans & Kingma 2016 ------------------------------------------------ */

/* Whether a row (n) of v is all 0. */
static bool is_zero_row(const ng_tensor *v, int64_t row, int64_t n)
{
    for (int64_t i = row * n; i < (row + 1) * n; i++)
        if (ng_tensor_load(v, i) != 0) return false;
    return true;
}

/* Gives rows of zeros a direction, and the length 0 in place of g's: they stay 0, with gradients
 * of 0. Others are left as they are. */
static bool replace_zero_rows(ng_tape *tape, ng_tensor **v, ng_tensor **g)
{
    const int64_t rows = (*g)->size, n = (*v)->size / rows;
    ng_tensor *shift = NULL, *factor = NULL;
    for (int64_t row = 0; row < rows; row++) {
        if (!is_zero_row(*v, row, n)) continue;
        if (!shift) {
            shift = ng_result_full(tape, (*v)->dtype, (*v)->shape, 0);
            factor = ng_result_full(tape, (*g)->dtype, (*g)->shape, 1);
            if (!shift || !factor) return false;
        }
        for (int64_t i = row * n; i < (row + 1) * n; i++) ng_tensor_store(shift, i, 1);
        ng_tensor_store(factor, row, 0);
    }
    if (!shift) return true;
    *v = ng_add(tape, *v, shift);
    *g = ng_mul(tape, *g, factor);
    return *v && *g;
}

/* ||v||^2 = n mean(v^2): RMSNorm of each row, times g / sqrt(n). */
ng_tensor *ng_weight_norm(ng_tape *tape, ng_tensor *v, ng_tensor *g)
{
    static const char name[] = "ng_weight_norm";
    if (!ng_accepts(name, tape, 2, (ng_tensor *[]){v, g}) || !weight_has_rows(name, "v", v))
        return NULL;
    const int64_t rows = g->size == 1 ? 1 : v->shape.dim[0], n = v->size / rows;
    if (!ng_operand_fits(name, "g", g, NG_SHAPE(rows), v) || !replace_zero_rows(tape, &v, &g))
        return NULL;
    ng_tensor *direction =
        ng_rms_norm(tape, ng_reshape(tape, v, NG_SHAPE(rows, n)), NG_NONE, .eps = NG_ZERO);
    ng_tensor *length =
        ng_mul_scalar(tape, ng_reshape(tape, g, NG_SHAPE(rows, 1)), 1 / sqrt((double)n));
    return ng_reshape(tape, ng_mul(tape, direction, length), v->shape);
}

/* ---- y = w / (u^T W v). Miyato et al. 2018 -------------------------------------------------- */

/* sigma, a sum over all of w, is taken in double. */
static ng_tensor *in_double(ng_tape *tape, ng_tensor *x)
{
    return x->dtype == NG_F64 ? x : ng_cast(tape, x, NG_F64);
}

ng_tensor *ng_spectral_norm(ng_tape *tape, ng_tensor *w, ng_tensor *u, ng_tensor *v)
{
    static const char name[] = "ng_spectral_norm";
    if (!ng_accepts(name, tape, 3, (ng_tensor *[]){w, u, v}) || !weight_has_rows(name, "w", w))
        return NULL;
    const int64_t out = w->shape.dim[0], n = w->size / out;
    if (!ng_operand_fits(name, "u", u, NG_SHAPE(out), w) ||
        !ng_operand_fits(name, "v", v, NG_SHAPE(n), w))
        return NULL;
    if (u->requires_grad || v->requires_grad) {
        ng_fail(NG_EGRAD, "%s: u and v have no gradient, but one of them requires it", name);
        return NULL;
    }
    ng_tensor *left = ng_reshape(tape, in_double(tape, u), NG_SHAPE(1, out));
    ng_tensor *right = ng_reshape(tape, in_double(tape, v), NG_SHAPE(n, 1));
    ng_tensor *matrix = ng_reshape(tape, in_double(tape, w), NG_SHAPE(out, n));
    ng_tensor *sigma = ng_matmul(tape, left, ng_matmul(tape, matrix, right));
    if (sigma && ng_item(sigma) == 0) sigma = ng_add_scalar(tape, sigma, 1);
    ng_tensor *y = ng_reshape(tape, ng_div(tape, matrix, sigma), w->shape);
    return y && y->dtype != w->dtype ? ng_cast(tape, y, w->dtype) : y;
}
