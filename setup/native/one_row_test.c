/* Holds cblas_sgemm against sums in double: every order, transposition and size around one row,
 * with rows that are longer than what they hold, and results that begin as NaN where beta is 0. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROW_MAJOR = 101, COLUMN_MAJOR, NO_TRANSPOSE = 111, TRANSPOSE, ROOM = 4000 };

void cblas_sgemm(int, int, int, int, int, int, float, const float *, int, const float *, int, float,
                 float *, int);

static float a[ROOM], b[ROOM], c[ROOM];
static double expected[ROOM];

static float any(void) { return rand() / (float)RAND_MAX - 0.5f; }

/* Where element [i, j] of op(matrix) lies. */
static int at(int order, int transpose, int stride, int i, int j) {
    const int row = transpose == NO_TRANSPOSE ? i : j, column = transpose == NO_TRANSPOSE ? j : i;
    return order == ROW_MAJOR ? row * stride + column : column * stride + row;
}

static int stride(int order, int transpose, int rows, int columns, int more) {
    return ((order == ROW_MAJOR) == (transpose == NO_TRANSPOSE) ? columns : rows) + more;
}

static int agrees(int order, int ta, int tb, int m, int n, int k, int more) {
    const float alpha = more == 1 ? 1 : 1.5f, beta = more == 0 ? 0 : more == 1 ? 1 : 0.5f;
    const int lda = stride(order, ta, m, k, more), ldb = stride(order, tb, k, n, more);
    const int ldc = stride(order, NO_TRANSPOSE, m, n, more);
    for (int i = 0; i < ROOM; i++) {
        a[i] = any();
        b[i] = any();
        c[i] = any();
        expected[i] = c[i];
    }
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            const int to = at(order, NO_TRANSPOSE, ldc, i, j);
            double sum = 0;
            for (int l = 0; l < k; l++)
                sum += (double)a[at(order, ta, lda, i, l)] * b[at(order, tb, ldb, l, j)];
            expected[to] = alpha * sum + (beta == 0 ? 0 : beta * c[to]);
            if (beta == 0) c[to] = NAN;
        }
    cblas_sgemm(order, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
    for (int i = 0; i < ROOM; i++)
        if (!(fabs(c[i] - expected[i]) < 1e-5)) return 0;
    return 1;
}

int main(void) {
    const int sizes[] = {1, 2, 3, 7, 33};
    int products = 0;
    for (int order = ROW_MAJOR; order <= COLUMN_MAJOR; order++)
        for (int ta = NO_TRANSPOSE; ta <= TRANSPOSE; ta++)
            for (int tb = NO_TRANSPOSE; tb <= TRANSPOSE; tb++)
                for (int sized = 0; sized < 125; sized++)
                    for (int more = 0; more < 3; more++, products++) {
                        const int m = sizes[sized % 5], n = sizes[sized / 5 % 5], k = sizes[sized / 25];
                        if (agrees(order, ta, tb, m, n, k, more)) continue;
                        printf("order %d, %d and %d: [%d, %d] by [%d, %d], %d more\n", order, ta, tb, m,
                               k, k, n, more);
                        return 1;
                    }
    printf("%d products agree\n", products);
    return 0;
}
