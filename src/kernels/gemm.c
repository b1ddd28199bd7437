/* Which matrix product does the work. */
#include "kernels/gemm.h"

#ifdef NG_WITH_BLAS

#include "kernels/parallel.h"
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>

/* Large products are a BLAS's. Smaller ones gain less from its preparations than they cost, where
 * our own have wide registers to work with; with narrow ones they are as fast up to where threads
 * start anyhow, which are started with the library. In multiplications. */
#define BLAS_FROM 536870912.0 /* 1024 x 1024 x 512 */
#define BLAS_FROM_BASELINE ((double)NG_GEMM_SHARED)
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

static void multiply(ng_dtype dtype, const ng_product *p)
{
    const int ta = p->a.transposed ? TRANSPOSED : PLAIN, tb = p->b.transposed ? TRANSPOSED : PLAIN;
    const int m = (int)p->m, n = (int)p->n, k = (int)p->k;
    const int lda = (int)p->a.row, ldb = (int)p->b.row, ldc = (int)p->c_row;
    const void *const a = p->a.at, *const b = p->b.at;
    if (dtype == NG_F32)
        blas.sgemm(ROW_MAJOR, ta, tb, m, n, k, 1, a, lda, b, ldb, p->accumulate, p->c, ldc);
    else
        blas.dgemm(ROW_MAJOR, ta, tb, m, n, k, 1, a, lda, b, ldb, p->accumulate, p->c, ldc);
}

/* A product in pieces of so many rows, or columns, of C. */
typedef struct {
    ng_dtype dtype;
    ng_product whole;
    bool by_rows;
    int64_t piece;
} cut_product;

/* The piece that begins at row, or column, `first` of C. */
static ng_product piece_at(const cut_product *cut, int64_t first)
{
    const int64_t bytes = (int64_t)ng_dtype_bytes(cut->dtype);
    ng_product part = cut->whole;
    ng_factor *const factor = cut->by_rows ? &part.a : &part.b;
    int64_t *const side = cut->by_rows ? &part.m : &part.n;
    const int64_t left = *side - first;
    const bool along_rows = cut->by_rows != factor->transposed; /* of its memory */
    *side = left < cut->piece ? left : cut->piece;
    factor->at = (const char *)factor->at + first * (along_rows ? factor->row : 1) * bytes;
    part.c = (char *)part.c + first * (cut->by_rows ? part.c_row : 1) * bytes;
    return part;
}

static void multiply_pieces(const void *arguments, int64_t begin, int64_t end)
{
    const cut_product *cut = arguments;
    for (int64_t i = begin; i < end; i++) {
        const ng_product part = piece_at(cut, i * cut->piece);
        multiply(cut->dtype, &part);
    }
}

/* A BLAS adds to what stands in C, so that the bias is put there first. */
static void repeat_bias(ng_dtype dtype, const ng_product *p)
{
    const size_t bytes = ng_dtype_bytes(dtype);
    for (int64_t i = 0; i < p->m; i++)
        memcpy((char *)p->c + (size_t)(i * p->c_row) * bytes, p->bias, (size_t)p->n * bytes);
}

static bool fits_blas(const ng_product *p)
{
    return p->m <= INT_MAX && p->n <= INT_MAX && p->k <= INT_MAX && p->a.row <= INT_MAX &&
           p->b.row <= INT_MAX && p->c_row <= INT_MAX;
}

void ng_gemm(ng_dtype dtype, const ng_product *p)
{
    const ng_kernels *kernels = ng_kernels_for(dtype);
    const double work = (double)p->m * (double)p->n * (double)p->k;
    const bool thin = ng_gemm_has_few_rows(p) || ng_gemm_has_few_terms(p);
    if (thin || !fits_blas(p) || !wants_blas(kernels, work)) {
        kernels->gemm(p);
        return;
    }
    cut_product cut = {.dtype = dtype, .whole = *p, .by_rows = p->m >= p->n};
    if (p->bias) repeat_bias(dtype, p);
    cut.whole.accumulate |= p->bias != NULL;
    const int64_t side = cut.by_rows ? p->m : p->n;
    cut.piece = work < SHARED_FROM ? side : piece_of(side);
    ng_share_out(multiply_pieces, &cut, (side + cut.piece - 1) / cut.piece, 1);
}

const char *ng_gemm_name(void) { return has_blas() ? "OpenBLAS" : "built-in"; }

#else

void ng_gemm(ng_dtype dtype, const ng_product *product) { ng_kernels_for(dtype)->gemm(product); }

const char *ng_gemm_name(void) { return "built-in"; }

#endif
