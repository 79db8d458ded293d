/* From scores to residuals, included by _loops.h once per instruction set and number type, with these defined:
   REAL   float or double      EXP   e^x for x <= 0      ROOT   the square root
   MOST   columns that the grouped pass can keep in registers */

#undef OWN
#define OWN(f) NAME(CAT(f, REAL))

/* a, the scores of n records from `first` on as columns, becomes their residuals, shrunk to the bound; class by class,
   all runs. */
TARGET static void OWN(residuals_)(const Shape *s, int64_t n, int64_t size, const Aims *aims, int64_t first,
                                   const REAL *x_norm, int squared, int norm, const REAL *clip, REAL *column,
                                   REAL *restrict top, REAL *restrict sum, REAL *bound)
{
    const int64_t K = s->classes;
    for (int64_t r = 0; r < s->runs; r++) {
        REAL *restrict a = column + r * K * size, most = bound[r];
        if (!squared) {
            for (int64_t i = 0; i < n; i++)
                top[i] = a[i], sum[i] = 0;
            for (int64_t k = 1; k < K; k++)
                for (int64_t i = 0; i < n; i++)
                    top[i] = a[k * size + i] > top[i] ? a[k * size + i] : top[i];
            for (int64_t k = 0; k < K; k++)
                for (int64_t i = 0; i < n; i++) {
                    REAL e = EXP(a[k * size + i] - top[i]);     /* shift-invariant: keeps exp finite */
                    a[k * size + i] = e;
                    sum[i] += e;
                }
            for (int64_t i = 0; i < n; i++)
                sum[i] = (REAL)1 / sum[i];
            for (int64_t k = 0; k < K; k++)
                for (int64_t i = 0; i < n; i++)
                    a[k * size + i] *= sum[i];
        }
        if (aims->number)
            for (int64_t i = 0; i < n; i++)
                a[i] -= (REAL)aims->number[first + i];
        else
            for (int64_t i = 0; i < n; i++)
                a[aims->label[first + i] * size + i] -= (REAL)1;
        for (int64_t i = 0; i < n; i++)
            sum[i] = 0;
        for (int64_t k = 0; k < K; k++)
            if (norm == 1)
                for (int64_t i = 0; i < n; i++)
                    sum[i] += a[k * size + i] < 0 ? -a[k * size + i] : a[k * size + i];
            else
                for (int64_t i = 0; i < n; i++)
                    sum[i] += a[k * size + i] * a[k * size + i];
        for (int64_t i = 0; i < n; i++) {
            sum[i] = x_norm[i] * (norm == 1 ? sum[i] : (REAL)ROOT(sum[i]));
            top[i] = sum[i] > clip[r] ? clip[r] / sum[i] : (REAL)1;
        }
        for (int64_t i = 0; i < n; i++)
            most = sum[i] > most ? sum[i] : most;
        bound[r] = most;
        if (clip[r] < INFINITY)
            for (int64_t k = 0; k < K; k++)
                for (int64_t i = 0; i < n; i++)
                    a[k * size + i] *= top[i];
    }
}
