/* How good a model is; included once per instruction set by _loops.h. */

/* The softmax losses of records first .. stop, added up, and how many have another class of the highest score than
   their label; of equal scores the first class counts. A loss that is not finite makes the sum so. */
TARGET static void NAME(evaluate)(const Groups *x, const int64_t *label, const Shape *s, const float *z, int64_t first,
                                  int64_t stop, double *loss, int64_t *errors, char *memory)
{
    const int64_t K = s->classes;
    const int n = chunk_of(K, MOST_FLOAT);
    const int64_t chunks = (K + n - 1) / n, panel = x->groups * n * 8;
    float *model = carve(&memory, sizeof(float) * chunks * panel);
    float *column = carve(&memory, sizeof(float) * chunks * n * BLOCK), top[BLOCK], sum[BLOCK], own[BLOCK];
    int32_t wrong[BLOCK];
    memset(model, 0, sizeof(float) * chunks * panel);
    for (int64_t q = 0; q < chunks; q++)
        NAME(spread_float)(x, n, K - q * n < n ? K - q * n : n, s->width, 1.0f, z + q * n, model + q * panel);
    for (int64_t i = first; i < stop; i += x->block, label += x->block) {
        const int64_t count = stop - i < x->block ? stop - i : x->block;
        for (int64_t q = 0; q < chunks; q++)
            NAME(chunk_float)(n, 0, x, i, count, model + q * panel, column + q * n * BLOCK);
        for (int64_t r = 0; r < count; r++)
            top[r] = column[r], sum[r] = 0, wrong[r] = 0, own[r] = column[label[r] * BLOCK + r];
        for (int64_t k = 1; k < K; k++)
            for (int64_t r = 0; r < count; r++)
                top[r] = column[k * BLOCK + r] > top[r] ? column[k * BLOCK + r] : top[r];
        for (int64_t k = 0; k < K; k++)
            for (int64_t r = 0; r < count; r++) {
                const float at = column[k * BLOCK + r];
                sum[r] += exp_negative(at - top[r]);
                wrong[r] |= (at > own[r]) | ((at == own[r]) & (k < label[r]));
            }
        for (int64_t r = 0; r < count; r++) {
            *loss += log((double)sum[r]) + ((double)top[r] - (double)own[r]);
            *errors += wrong[r];
        }
    }
}
