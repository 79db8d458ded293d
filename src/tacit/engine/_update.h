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

/* A step of n rows: p[parameter] holds one number a column, or one for all columns where there is one run. `total` is
   raised by |xi|, and `bound` by one for each entry that the box or the trust region stops: sums in float over a few
   rows at a time. */
TARGET INLINE void NAME(step)(const int one, int64_t n, int64_t W, const float *restrict grad, float *restrict z,
                              float *restrict dual, const float *restrict w, float *const *p,
                              const float *restrict noise, float *restrict total, float *restrict bound)
{
    const float *restrict weight = p[WEIGHT], *restrict reg_z = p[REG_Z], *restrict reg_w = p[REG_W];
    const float *restrict rho = p[RHO], *restrict inv_eta = p[INV_ETA], *restrict radius = p[RADIUS];
    const float *restrict low = p[LOW], *restrict high = p[HIGH], *restrict inverse = p[INVERSE];
    const float *restrict slope_noise = p[SLOPE_NOISE], *restrict step_noise = p[STEP_NOISE];
    const float *restrict before = p[DUAL_BEFORE], *restrict after = p[DUAL_AFTER];
#define OF(parameter) parameter[one ? 0 : c]
    for (int64_t row = 0; row < n * W; row += W)
        for (int64_t c = 0; c < W; c++) {
            float old = z[row + c], at = w[row + c], xi = noise[row + c];
            float lambda = dual[row + c] + OF(before) * (at - old);
            float slope = OF(weight) * grad[row + c] + OF(reg_z) * old + OF(reg_w) * at + OF(slope_noise) * xi;
            float center = (OF(rho) * at + lambda - slope + OF(inv_eta) * old) * OF(inverse), new = center;
            float floor = old - OF(radius) > OF(low) ? old - OF(radius) : OF(low);
            float ceiling = old + OF(radius) < OF(high) ? old + OF(radius) : OF(high);
            new = new < floor ? floor : new;
            new = new > ceiling ? ceiling : new;
            bound[c] += new != center ? 1.0f : 0.0f;
            new -= OF(step_noise) * OF(inverse) * xi;
            z[row + c] = new;
            dual[row + c] = lambda + OF(after) * (at - new);
            total[c] += fabsf(xi);
        }
#undef OF
}

/* One local step of one agent, all runs; sums[c] becomes the sum of |xi| in column c, and sums[W + c] the number of its
   entries that a constraint stops. */
TARGET static void NAME(update)(const Shape *s, const float *restrict grad, float *restrict z,
                                float *restrict dual, const float *restrict w, float *const *p, const Stream *streams,
                                float *restrict noise, float *restrict buffer, double *restrict sums,
                                double *clock)
{
    const int64_t K = s->classes, W = s->width & ~(int64_t)15, rows = update_rows(W);
    float *total = buffer, *bound = buffer + W;     /* at least 2 W floats */
    for (int64_t begin = 0; begin < s->features; begin += rows) {
        const int64_t n = s->features - begin < rows ? s->features - begin : rows, at = begin * W;
        *clock -= now();
        for (int64_t r = 0; r < s->runs; r++) {
            for (int64_t j = begin; j < begin + n; j++)
                for (int64_t c = r * K / 16 * 16; c < r * K + K; c += 16) {     /* on its way while noise is drawn */
                    PREFETCH(z + j * W + c);
                    PREFETCH(dual + j * W + c);
                }
            if (p[SLOPE_NOISE][r * K] != 0 || p[STEP_NOISE][r * K] != 0) {
                NAME(noise)(streams + r, begin * K, n * K, buffer);
                for (int64_t j = 0; j < n; j++)
                    memcpy(noise + j * W + r * K, buffer + j * K, sizeof(float) * K);
            }
        }
        *clock += now();
        memset(buffer, 0, sizeof(float) * 2 * W);
        if (s->runs == 1)
            NAME(step)(1, n, W, grad + at, z + at, dual + at, w + at, p, noise, total, bound);
        else
            NAME(step)(0, n, W, grad + at, z + at, dual + at, w + at, p, noise, total, bound);
        for (int64_t c = 0; c < 2 * W; c++)
            sums[c] += buffer[c];
    }
    for (int64_t c = 0; c < W; c++)
        sums[c] *= fabs((double)p[SLOPE_NOISE][c] + (double)p[STEP_NOISE][c]);
}

/* out = sum over agents of entries start .. stop of z (P, size): over `block` agents at a time in their order, and then
   over the blocks in theirs. Processes that hold some of the blocks can so form the same sum. */
TARGET static void NAME(total)(const float *z, int64_t agents, int64_t size, int64_t block, int64_t start, int64_t stop,
                               double *out)
{
    double sum[512];
    for (int64_t n; start < stop; start += n) {
        n = stop - start < 512 ? stop - start : 512;
        memset(out + start, 0, sizeof(double) * n);
        for (int64_t first = 0; first < agents; first += block) {
            const int64_t end = agents - first < block ? agents : first + block;
            memset(sum, 0, sizeof sum);
            for (int64_t p = first; p < end; p++)
                for (int64_t i = 0; i < n; i++)
                    sum[i] += z[p * size + start + i];
            for (int64_t i = 0; i < n; i++)
                out[start + i] += sum[i];
        }
    }
}
