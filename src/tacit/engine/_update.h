/* Noise, one local step of an agent, and the mean over agents; included once per instruction set by _loops.h. */

/* n 32-bit integers from Philox block `block` on, low half of each word first. */
TARGET static void NAME(integers)(const Stream *s, uint64_t block, int64_t n, uint32_t *out)
{
#if LANES == 16
    uint32_t last[64];
    for (; n >= 208; n -= 208, out += 208, block += 26)
        philox_wide(2, 1, s, block, out);
    for (; n >= 64; n -= 64, out += 64, block += 8)
        philox_wide(1, 0, s, block, out);
    if (n)
        philox_wide(1, 0, s, block, last);
#else
    uint32_t last[8];
    for (; n >= 8; n -= 8, out += 8)
        philox(s, block++, out);
    if (n)
        philox(s, block, last);
#endif
    memcpy(out, last, sizeof(uint32_t) * n);
}

/* n standard Laplace or Gaussian numbers, beginning with entry `first`, a multiple of 8. */
TARGET static void NAME(noise)(const Stream *s, int64_t first, int64_t n, void *result)
{
    uint32_t word[1040];            /* five times 208 */
    float *out = result;
    const int64_t step = s->kind == LAPLACE ? 1040 : 520;
    if (s->kind == INTEGERS)
        NAME(integers)(s, 0, n, result);
    else for (int64_t m; n > 0; n -= m, out += m, first += m) {
        m = n < step ? n : step;
        if (s->kind == LAPLACE) {
            NAME(integers)(s, first / 8, m, word);
            for (int64_t i = 0; i < m; i++) {
                float u = (float)(word[i] << 1 | 1) * 0x1p-32f;
                out[i] = float_of((bits_of(log_positive(u)) & 0x7fffffff) | (word[i] & 0x80000000));
            }
        } else {
            NAME(integers)(s, first / 4, 2 * m, word);
            for (int64_t i = 0; i < m; i++) {
                float u = (float)((double)word[2 * i] + 0.5) * 0x1p-32f;
                float v = (float)((double)word[2 * i + 1] + 0.5) * 0x1p-32f;
                out[i] = sqrtf(-2.0f * log_positive(u)) * cos_turn(6.28318531f * v);
            }
        }
    }
}

/* One local step of one agent, all runs; p[parameter] holds `width` floats, one a column. */
TARGET static void NAME(update)(const Shape *s, const float *restrict grad, float *restrict z,
                                float *restrict dual, const float *restrict w, float *const *p, const Stream *streams,
                                float *restrict noise, float *restrict buffer, double *restrict sums,
                                double *clock)
{
    const int64_t K = s->classes, W = s->width & ~(int64_t)15, rows = update_rows(W);
    const float *restrict weight = p[WEIGHT], *restrict reg_z = p[REG_Z], *restrict reg_w = p[REG_W];
    const float *restrict rho = p[RHO], *restrict inv_eta = p[INV_ETA], *restrict radius = p[RADIUS];
    const float *restrict low = p[LOW], *restrict high = p[HIGH], *restrict inverse = p[INVERSE];
    const float *restrict slope_noise = p[SLOPE_NOISE], *restrict step_noise = p[STEP_NOISE];
    const float *restrict before = p[DUAL_BEFORE], *restrict after = p[DUAL_AFTER];
    for (int64_t begin = 0; begin < s->features; begin += rows) {
        const int64_t n = s->features - begin < rows ? s->features - begin : rows;
        *clock -= now();
        for (int64_t r = 0; r < s->runs; r++) {
            for (int64_t j = begin; j < begin + n; j++)
                for (int64_t c = r * K / 16 * 16; c < r * K + K; c += 16) {     /* on its way while noise is drawn */
                    PREFETCH(z + j * W + c);
                    PREFETCH(dual + j * W + c);
                }
            if (slope_noise[r * K] != 0 || step_noise[r * K] != 0) {
                NAME(noise)(streams + r, begin * K, n * K, buffer);
                for (int64_t j = 0; j < n; j++)
                    memcpy(noise + j * W + r * K, buffer + j * K, sizeof(float) * K);
            }
        }
        *clock += now();
        for (int64_t j = 0; j < n; j++) {
            const int64_t row = (begin + j) * W;
            for (int64_t c = 0; c < W; c++) {
                float old = z[row + c], at = w[row + c], xi = noise[j * W + c];
                float lambda = dual[row + c] + before[c] * (at - old);
                float slope = weight[c] * grad[row + c] + reg_z[c] * old + reg_w[c] * at + slope_noise[c] * xi;
                float new = (rho[c] * at + lambda - slope + inv_eta[c] * old) * inverse[c];
                float floor = old - radius[c] > low[c] ? old - radius[c] : low[c];
                float ceiling = old + radius[c] < high[c] ? old + radius[c] : high[c];
                new = new < floor ? floor : new;
                new = new > ceiling ? ceiling : new;
                new -= step_noise[c] * inverse[c] * xi;
                z[row + c] = new;
                dual[row + c] = lambda + after[c] * (at - new);
                sums[c] += fabsf((slope_noise[c] + step_noise[c]) * xi);
            }
        }
    }
}

/* out = mean over agents, in their order, of entries start .. stop of z (P, size). */
TARGET static void NAME(reduce)(const float *z, int64_t agents, int64_t size, int64_t start, int64_t stop,
                                double *out)
{
    double sum[512];
    for (int64_t n; start < stop; start += n) {
        n = stop - start < 512 ? stop - start : 512;
        memset(sum, 0, sizeof sum);
        for (int64_t p = 0; p < agents; p++)
            for (int64_t i = 0; i < n; i++)
                sum[i] += z[p * size + start + i];
        for (int64_t i = 0; i < n; i++)
            out[start + i] = sum[i] / (double)agents;
    }
}
