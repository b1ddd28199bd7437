/* Which matrix product does the work. */
#include "kernels/gemm.h"
#include "kernels/kernels.h"

_Alignas(64) _Thread_local char ng_gemm_rows[NG_GEMM_ROWS * NG_GEMM_DEPTH * sizeof(double)];
_Alignas(64) _Thread_local char ng_gemm_columns[NG_GEMM_COLUMN_BYTES * NG_GEMM_DEPTH];

#ifdef NG_HAVE_CBLAS

#include "kernels/parallel.h"
#include <cblas.h>
#include <limits.h>
#include <stdatomic.h>
#include <string.h>
#include <strings.h>

/* Large products are a BLAS's. Smaller ones gain less from its preparations than they cost, where
 * our own have wide registers to work with. In multiplications. */
#define BLAS_FROM 536870912.0 /* 1024 x 1024 x 512 */
#define BLAS_FROM_BASELINE 32768.0
/* Those of fewer than this are not worth waking other threads for. */
#define SHARED_FROM 4194304.0

#ifdef OPENBLAS_VERSION
/* An OpenBLAS older than the processor takes it for an older one: its kernels' registers are then
 * half as wide as ours. */
static bool blas_is_narrow(const ng_kernels *kernels)
{
    static const char *const wide[] = {"SkylakeX", "Cooperlake", "SapphireRapids"};
    if (strcmp(kernels->isa, "avx512")) return false;
    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++)
        if (!strcasecmp(openblas_get_corename(), wide[i])) return false;
    return true;
}
#else
static bool blas_is_narrow(const ng_kernels *kernels)
{
    (void)kernels;
    return false;
}
#endif

static bool wants_blas(const ng_kernels *kernels, double work)
{
    const bool baseline = !strcmp(kernels->isa, "baseline");
    return work >= (baseline ? BLAS_FROM_BASELINE : BLAS_FROM) && !blas_is_narrow(kernels);
}

/* A BLAS's own threads wait by spinning, which costs a busy machine dearly, and divide the work
 * by their number, which changes bits. So it runs on one, and the product is cut here: along the
 * longer side of C, into pieces whose size depends on that side alone. */
static void use_one_blas_thread(void)
{
#ifdef OPENBLAS_VERSION
    static atomic_bool done;
    if (!atomic_exchange_explicit(&done, true, memory_order_relaxed)) openblas_set_num_threads(1);
#endif
}

/* At most 8 pieces, of whole register tiles. */
static int64_t piece_of(int64_t side)
{
    const int64_t piece = (side + 7) / 8;
    return piece < 128 ? 128 : (piece + 63) / 64 * 64;
}

typedef struct {
    ng_dtype dtype;
    bool transpose_a, transpose_b, accumulate, by_rows;
    int64_t m, n, k, lda, ldb, ldc, piece;
    const char *a, *b;
    char *c;
} product;

static void multiply(const product *p)
{
    const CBLAS_TRANSPOSE ta = p->transpose_a ? CblasTrans : CblasNoTrans;
    const CBLAS_TRANSPOSE tb = p->transpose_b ? CblasTrans : CblasNoTrans;
    const int m = (int)p->m, n = (int)p->n, k = (int)p->k;
    const int lda = (int)p->lda, ldb = (int)p->ldb, ldc = (int)p->ldc;
    if (p->dtype == NG_F32)
        cblas_sgemm(CblasRowMajor, ta, tb, m, n, k, 1, (const float *)(const void *)p->a, lda,
                    (const float *)(const void *)p->b, ldb, p->accumulate ? 1 : 0,
                    (float *)(void *)p->c, ldc);
    else
        cblas_dgemm(CblasRowMajor, ta, tb, m, n, k, 1, (const double *)(const void *)p->a, lda,
                    (const double *)(const void *)p->b, ldb, p->accumulate ? 1 : 0,
                    (double *)(void *)p->c, ldc);
}

/* The piece of the product that begins at row, or column, `first` of C. */
static product cut(const product *whole, int64_t first)
{
    const int64_t bytes = (int64_t)ng_dtype_bytes(whole->dtype);
    const int64_t left = (whole->by_rows ? whole->m : whole->n) - first;
    const int64_t length = left < whole->piece ? left : whole->piece;
    product part = *whole;
    if (whole->by_rows) {
        part.m = length;
        part.a += first * (whole->transpose_a ? 1 : whole->lda) * bytes;
        part.c += first * whole->ldc * bytes;
    } else {
        part.n = length;
        part.b += first * (whole->transpose_b ? whole->ldb : 1) * bytes;
        part.c += first * bytes;
    }
    return part;
}

static void multiply_pieces(const void *arguments, int64_t begin, int64_t end)
{
    const product *whole = arguments;
    for (int64_t i = begin; i < end; i++) {
        const product part = cut(whole, i * whole->piece);
        multiply(&part);
    }
}

/* A BLAS adds to what stands in C, so that the bias is put there first. */
static void repeat_bias(const product *p, const void *bias)
{
    const size_t bytes = ng_dtype_bytes(p->dtype);
    for (int64_t i = 0; i < p->m; i++)
        memcpy(p->c + (size_t)(i * p->ldc) * bytes, bias, (size_t)p->n * bytes);
}

static bool fits_blas(const product *p)
{
    return p->m <= INT_MAX && p->n <= INT_MAX && p->k <= INT_MAX && p->lda <= INT_MAX &&
           p->ldb <= INT_MAX && p->ldc <= INT_MAX;
}

void ng_gemm(ng_dtype dtype, bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k,
             const void *a, int64_t lda, const void *b, int64_t ldb, const void *bias, void *c,
             int64_t ldc, bool accumulate)
{
    product whole = {.dtype = dtype,
                     .transpose_a = transpose_a,
                     .transpose_b = transpose_b,
                     .accumulate = accumulate || bias,
                     .by_rows = m >= n,
                     .m = m,
                     .n = n,
                     .k = k,
                     .lda = lda,
                     .ldb = ldb,
                     .ldc = ldc,
                     .a = a,
                     .b = b,
                     .c = c};
    const ng_kernels *kernels = ng_kernels_for(dtype);
    const double work = (double)m * (double)n * (double)k;
    if (!wants_blas(kernels, work) || !fits_blas(&whole)) {
        kernels->gemm(transpose_a, transpose_b, m, n, k, a, lda, b, ldb, bias, c, ldc, accumulate);
        return;
    }
    if (bias) repeat_bias(&whole, bias);
    use_one_blas_thread();
    if (work < SHARED_FROM) {
        multiply(&whole);
        return;
    }
    const int64_t side = whole.by_rows ? m : n;
    whole.piece = piece_of(side);
    ng_share_out(multiply_pieces, &whole, (side + whole.piece - 1) / whole.piece, 1);
}

const char *ng_gemm_name(void)
{
    return blas_is_narrow(ng_kernels_for(NG_F32)) ? "built-in" : "OpenBLAS";
}

#else

void ng_gemm(ng_dtype dtype, bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k,
             const void *a, int64_t lda, const void *b, int64_t ldb, const void *bias, void *c,
             int64_t ldc, bool accumulate)
{
    ng_kernels_for(dtype)->gemm(transpose_a, transpose_b, m, n, k, a, lda, b, ldb, bias, c, ldc,
                                accumulate);
}

const char *ng_gemm_name(void) { return "built-in"; }

#endif
