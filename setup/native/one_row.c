/* Stands in front of OpenBLAS for the one product that it does slowly: a single row or column
 * against a matrix, which its sgemm packs as if it were many. sgemv reads the matrix once, on all
 * threads. Everything else goes on to OpenBLAS, and so does this where OPENBLAS_CORETYPE names the
 * kernels: whoever wants certain kernels wants their sums. */

#include <stdlib.h>

enum { ROW_MAJOR = 101, NO_TRANSPOSE = 111 };

void sgemm_(const char *, const char *, const int *, const int *, const int *, const float *,
            const float *, const int *, const float *, const int *, const float *, float *,
            const int *);
void sgemv_(const char *, const int *, const int *, const float *, const float *, const int *,
            const float *, const int *, const float *, float *, const int *);

static int kernels_are_named;

__attribute__((constructor)) static void look(void) {
    kernels_are_named = getenv("OPENBLAS_CORETYPE") != NULL;
}

/* y [length] = alpha op(a) x + beta y, for a [rows, columns]. */
static void row(char t, int rows, int columns, float alpha, const float *a, int lda, const float *x,
                int x_step, float beta, float *y, int y_step) {
    if (beta == 0) {
        /* Some versions multiply what lies there by zero, and NaN stays NaN. */
        const int length = t == 'N' ? rows : columns;
        for (int i = 0; i < length; i++) y[(long)i * y_step] = 0;
    }
    sgemv_(&t, &rows, &columns, &alpha, a, &lda, x, &x_step, &beta, y, &y_step);
}

/* In columns, as BLAS counts: c [m, n] = alpha op(a) [m, k] op(b) [k, n] + beta c. */
static void product(char ta, char tb, int m, int n, int k, float alpha, const float *a, int lda,
                    const float *b, int ldb, float beta, float *c, int ldc) {
    const int packed = kernels_are_named || k == 0;
    if (n == 1 && !packed) {
        /* op(a) times the one column of op(b). */
        row(ta, ta == 'N' ? m : k, ta == 'N' ? k : m, alpha, a, lda, b, tb == 'N' ? 1 : ldb, beta, c,
            1);
    } else if (m == 1 && !packed) {
        /* The one row of op(a) times op(b): op(b) transposed times a column. */
        row(tb == 'N' ? 'T' : 'N', tb == 'N' ? k : n, tb == 'N' ? n : k, alpha, b, ldb, a,
            ta == 'N' ? lda : 1, beta, c, ldc);
    } else {
        sgemm_(&ta, &tb, &m, &n, &k, &alpha, a, &lda, b, &ldb, &beta, c, &ldc);
    }
}

void cblas_sgemm(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha,
                 const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc) {
    const char ta = transpose_a == NO_TRANSPOSE ? 'N' : 'T';
    const char tb = transpose_b == NO_TRANSPOSE ? 'N' : 'T';
    if (order == ROW_MAJOR) {
        /* The same memory read in columns is the transpose. */
        product(tb, ta, n, m, k, alpha, b, ldb, a, lda, beta, c, ldc);
    } else {
        product(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
    }
}
