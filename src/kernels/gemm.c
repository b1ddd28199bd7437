/* Which matrix product does the work. */
#include "kernels/gemm.h"
#include "kernels/kernels.h"

#ifdef NG_WITH_BLAS

#include "kernels/parallel.h"
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>

/* Large products are a BLAS's. Smaller ones gain less from its preparations than they cost, where
 * our own have wide registers to work with. In multiplications. */
#define BLAS_FROM 536870912.0 /* 1024 x 1024 x 512 */
#define BLAS_FROM_BASELINE 32768.0
/* Those of fewer than this are not worth waking other threads for. */
#define SHARED_FROM 4194304.0

/* OpenBLAS is loaded when the first product wants it, and not with the program: it starts threads
 * of its own, and waits for ever where there is too little memory for them. */
enum { ROW_MAJOR = 101, PLAIN = 111, TRANSPOSED = 112 }; /* as in <cblas.h> */
#define BLAS_MEMORY ((size_t)1 << 30)                    /* addresses it may want */

typedef void sgemm_function(int order, int transpose_a, int transpose_b, int m, int n, int k,
                            float alpha, const float *a, int lda, const float *b, int ldb,
                            float beta, float *c, int ldc);
typedef void dgemm_function(int order, int transpose_a, int transpose_b, int m, int n, int k,
                            double alpha, const double *a, int lda, const double *b, int ldb,
                            double beta, double *c, int ldc);

static struct {
    void *library; /* NULL: there is none, or it is not used */
    sgemm_function *sgemm;
    dgemm_function *dgemm;
} blas;

/* An OpenBLAS older than the processor takes it for an older one: its kernels' registers are then
 * half as wide as ours. */
static bool is_narrow(const char *core)
{
    static const char *const wide[] = {"SkylakeX", "Cooperlake", "SapphireRapids"};
    if (strcmp(ng_kernels_for(NG_F32)->isa, "avx512")) return false;
    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++)
        if (!strcasecmp(core, wide[i])) return false;
    return true;
}

static bool has_room(void)
{
    void *const room = mmap(NULL, BLAS_MEMORY, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return room != MAP_FAILED && munmap(room, BLAS_MEMORY) == 0;
}

static void *open_library(void)
{
#ifdef __APPLE__
    static const char *const names[] = {"libopenblas.0.dylib", "libopenblas.dylib"};
#else
    static const char *const names[] = {"libopenblas.so.0", "libopenblas.so"};
#endif
    void *library = dlopen(names[0], RTLD_NOW | RTLD_LOCAL);
    return library ? library : dlopen(names[1], RTLD_NOW | RTLD_LOCAL);
}

/* A function of the library, as C converts it: through the bytes of the pointer. */
static void find(void *library, const char *name, void *function)
{
    void *const address = dlsym(library, name);
    memcpy(function, &address, sizeof address);
}

/* A BLAS's own threads wait by spinning, which costs a busy machine dearly, and divide the work
 * by their number, which changes bits. So it runs on one, and the product is cut here: along the
 * longer side of C, into pieces whose size depends on that side alone. */
static void load_blas(void)
{
    char *(*core_name)(void);
    void (*set_threads)(int);
    void *const library = has_room() ? open_library() : NULL;
    if (!library) return;
    find(library, "openblas_get_corename", &core_name);
    find(library, "openblas_set_num_threads", &set_threads);
    find(library, "cblas_sgemm", &blas.sgemm);
    find(library, "cblas_dgemm", &blas.dgemm);
    if (!core_name || !set_threads || !blas.sgemm || !blas.dgemm || is_narrow(core_name())) {
        dlclose(library);
        return;
    }
    set_threads(1);
    blas.library = library;
}

static bool has_blas(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load_blas);
    return blas.library;
}

__attribute__((destructor)) static void unload_blas(void)
{
    if (blas.library) dlclose(blas.library);
}

static bool wants_blas(const ng_kernels *kernels, double work)
{
    const bool baseline = !strcmp(kernels->isa, "baseline");
    return work >= (baseline ? BLAS_FROM_BASELINE : BLAS_FROM) && has_blas();
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
    const int ta = p->transpose_a ? TRANSPOSED : PLAIN, tb = p->transpose_b ? TRANSPOSED : PLAIN;
    const int m = (int)p->m, n = (int)p->n, k = (int)p->k;
    const int lda = (int)p->lda, ldb = (int)p->ldb, ldc = (int)p->ldc;
    const void *const a = p->a, *const b = p->b;
    void *const c = p->c;
    if (p->dtype == NG_F32)
        blas.sgemm(ROW_MAJOR, ta, tb, m, n, k, 1, a, lda, b, ldb, p->accumulate ? 1 : 0, c, ldc);
    else
        blas.dgemm(ROW_MAJOR, ta, tb, m, n, k, 1, a, lda, b, ldb, p->accumulate ? 1 : 0, c, ldc);
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
    const bool thin =
        ng_gemm_has_few_rows(transpose_a, transpose_b, m) || ng_gemm_has_few_terms(transpose_b, k);
    if (thin || !fits_blas(&whole) || !wants_blas(kernels, work)) {
        kernels->gemm(transpose_a, transpose_b, m, n, k, a, lda, b, ldb, bias, c, ldc, accumulate);
        return;
    }
    if (bias) repeat_bias(&whole, bias);
    if (work < SHARED_FROM) {
        multiply(&whole);
        return;
    }
    const int64_t side = whole.by_rows ? m : n;
    whole.piece = piece_of(side);
    ng_share_out(multiply_pieces, &whole, (side + whole.piece - 1) / whole.piece, 1);
}

const char *ng_gemm_name(void) { return has_blas() ? "OpenBLAS" : "built-in"; }

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
