/* Which matrix product does the work. */
#include "kernels/gemm.h"
#include "kernels/kernels.h"

_Alignas(64) _Thread_local char ng_gemm_rows[NG_GEMM_ROWS * NG_GEMM_DEPTH * sizeof(double)];
_Alignas(64) _Thread_local char ng_gemm_columns[NG_GEMM_COLUMN_BYTES * NG_GEMM_DEPTH];

#ifdef NG_HAVE_CBLAS

#include <cblas.h>
#include <limits.h>

/* Products of fewer multiplications than this are faster without a BLAS's preparations. */
#define BLAS_FROM 32768

static bool blas_pays(int64_t m, int64_t n, int64_t k, int64_t lda, int64_t ldb, int64_t ldc)
{
    if (m > INT_MAX || n > INT_MAX || k > INT_MAX) return false;
    if (lda > INT_MAX || ldb > INT_MAX || ldc > INT_MAX) return false;
    return (double)m * (double)n * (double)k >= BLAS_FROM;
}

void ng_gemm(ng_dtype dtype, bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k,
             const void *a, int64_t lda, const void *b, int64_t ldb, void *c, int64_t ldc,
             bool accumulate)
{
    if (!blas_pays(m, n, k, lda, ldb, ldc)) {
        ng_kernels_for(dtype)->gemm(transpose_a, transpose_b, m, n, k, a, lda, b, ldb, c, ldc,
                                    accumulate);
        return;
    }
    const CBLAS_TRANSPOSE ta = transpose_a ? CblasTrans : CblasNoTrans;
    const CBLAS_TRANSPOSE tb = transpose_b ? CblasTrans : CblasNoTrans;
    if (dtype == NG_F32)
        cblas_sgemm(CblasRowMajor, ta, tb, (int)m, (int)n, (int)k, 1, a, (int)lda, b, (int)ldb,
                    accumulate ? 1 : 0, c, (int)ldc);
    else
        cblas_dgemm(CblasRowMajor, ta, tb, (int)m, (int)n, (int)k, 1, a, (int)lda, b, (int)ldb,
                    accumulate ? 1 : 0, c, (int)ldc);
}

const char *ng_gemm_name(void) { return "OpenBLAS"; }

#else

void ng_gemm(ng_dtype dtype, bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k,
             const void *a, int64_t lda, const void *b, int64_t ldb, void *c, int64_t ldc,
             bool accumulate)
{
    ng_kernels_for(dtype)->gemm(transpose_a, transpose_b, m, n, k, a, lda, b, ldb, c, ldc,
                                accumulate);
}

const char *ng_gemm_name(void) { return "built-in"; }

#endif
