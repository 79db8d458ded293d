/* The loops of _kernels.c, included once per instruction set with these defined:
   LANES   floats in a vector register      TARGET   the function attribute that allows the instructions
   SUFFIX  ends the names made here, so that every instruction set has its own copy. */

#if LANES > 1
typedef float VEC __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
#else
typedef float VEC;
#endif
#define AT(p) (*(VEC *)(p))
#define UNROLL _Pragma("GCC unroll 8")

/* sum = sum_p value[p] * row[offset[p] ...], or is raised by it, n registers wide. Several sums run side by side when
   rows are narrow: one multiply-add waits four cycles for the one before it, and two can start each cycle. */
TARGET INLINE void NAME(gather)(const int n, int raise, const float *row, const uint32_t *offset, const float *value,
                                int64_t count, float *sum)
{
    const int ways = n <= 2 ? 4 : n <= 4 ? 2 : 1;
    VEC part[8];
    int64_t p = 0;
    UNROLL for (int g = 0; g < n * ways; g++)
        part[g] = g < n && raise ? AT(sum + g * LANES) : (VEC){0};
    for (; p + ways <= count; p += ways)
        UNROLL for (int g = 0; g < n * ways; g++)
            part[g] += value[p + g / n] * AT(row + offset[p + g / n] + g % n * LANES);
    for (; p < count; p++)
        UNROLL for (int g = 0; g < n; g++)
            part[g] += value[p] * AT(row + offset[p] + g * LANES);
    UNROLL for (int g = n; g < n * ways; g++)
        part[g % n] += part[g];
    UNROLL for (int g = 0; g < n; g++)
        AT(sum + g * LANES) = part[g];
}

/* The same for rows of any width, at most 8 registers at a time. */
TARGET INLINE void NAME(gather_any)(int64_t width, int raise, const float *row, const uint32_t *offset,
                                    const float *value, int64_t count, float *sum)
{
    for (int64_t left = width / LANES, n; left > 0; left -= n, row += n * LANES, sum += n * LANES) {
        const int64_t passes = (left + 7) / 8;
        n = (left + passes - 1) / passes;
        switch (n) {
        case 1: NAME(gather)(1, raise, row, offset, value, count, sum); break;
        case 2: NAME(gather)(2, raise, row, offset, value, count, sum); break;
        case 3: NAME(gather)(3, raise, row, offset, value, count, sum); break;
        case 4: NAME(gather)(4, raise, row, offset, value, count, sum); break;
        case 5: NAME(gather)(5, raise, row, offset, value, count, sum); break;
        case 6: NAME(gather)(6, raise, row, offset, value, count, sum); break;
        case 7: NAME(gather)(7, raise, row, offset, value, count, sum); break;
        default: NAME(gather)(8, raise, row, offset, value, count, sum);
        }
    }
}

#define DECODE(out, type, from, by)                                                                           \
    for (int64_t p = begin; p < end; p++)                                                                     \
        (out)[p - begin] = (by) * (type)((const type *)(from))[p];

/* out[i] = sum over the entries of list first + i of scale * value * row[index], or is raised by it, for n lists.
   Entries are decoded in strips of lists: long enough to fill registers, short enough for L1. */
TARGET static void NAME(multiply)(const Lists *x, int64_t first, int64_t n, int64_t width, const float *row,
                                  int raise, float *out, const Block *b)
{
    const int64_t *start = x->start + first;
    uint32_t *restrict offset = b->offset, by = (uint32_t)width;
    float *restrict value = b->value, scale = x->scale;
    for (int64_t i = 0, stop; i < n; i = stop) {
        for (stop = i + 1; stop < n && start[stop + 1] - start[i] <= STRIP;)
            stop++;
        const int64_t begin = start[i], end = start[stop];
        if (x->index_size == 2)
            DECODE(offset, uint16_t, x->index, by)
        else
            DECODE(offset, uint32_t, x->index, by)
        if (x->value_size == 1)
            DECODE(value, uint8_t, x->value, scale)
        else
            DECODE(value, float, x->value, scale)
        for (int64_t l = i; l < stop; l++)
            if (start[l + 1] > start[l] || !raise)
                NAME(gather_any)(width, raise, row, offset + (start[l] - begin), value + (start[l] - begin),
                                 start[l + 1] - start[l], out + l * width);
    }
}

/* Scores X z of one block, as columns: one record a lane, so that softmax, norms and clipping below are plain
   loops over i, without sums across a register. */
TARGET static void NAME(forward)(const Lists *rows, int64_t first, const Shape *s, const float *z, Block *b)
{
    b->n = rows->n - first < b->size ? rows->n - first : b->size;
    NAME(multiply)(rows, first, b->n, s->width, z, 0, b->score, b);
    for (int64_t c = 0; c < s->runs * s->classes; c++)
        for (int64_t i = 0; i < b->n; i++)
            b->column[c * b->size + i] = b->score[i * s->width + c];
}

/* a = exp(a - top) over the classes of one run, with top their maximum and sum their sum. */
TARGET INLINE void NAME(softmax)(const Block *b, int64_t classes, float *a, float *top, float *sum)
{
    const int64_t n = b->n, size = b->size;
    for (int64_t i = 0; i < n; i++)
        top[i] = a[i], sum[i] = 0;
    for (int64_t k = 1; k < classes; k++)
        for (int64_t i = 0; i < n; i++)
            top[i] = a[k * size + i] > top[i] ? a[k * size + i] : top[i];
    for (int64_t k = 0; k < classes; k++)
        for (int64_t i = 0; i < n; i++) {
            float e = exp_negative(a[k * size + i] - top[i]);  /* shift-invariant: keeps exp finite */
            a[k * size + i] = e;
            sum[i] += e;
        }
}

TARGET static void NAME(gradient)(const Lists *rows, const Lists *columns, const int64_t *label, const float *x_norm,
                                  const Shape *s, const float *z, int squared, int norm, const float *clip,
                                  float *grad, float *bound, Block *b)
{
    if (!rows->n)
        memset(grad, 0, sizeof(float) * s->features * s->width);
    memset(bound, 0, sizeof(float) * s->runs);
    const int64_t K = s->classes, size = b->size;
    float *restrict top = b->top, *restrict sum = b->sum;
    for (int64_t first = 0; first < rows->n; first += size, label += size, x_norm += size) {
        NAME(forward)(rows, first, s, z, b);
        const int64_t n = b->n;
        for (int64_t r = 0; r < s->runs; r++) {
            float *restrict a = b->column + r * K * size, most = bound[r];
            if (!squared) {
                NAME(softmax)(b, K, a, top, sum);
                for (int64_t i = 0; i < n; i++)
                    sum[i] = 1.0f / sum[i];
                for (int64_t k = 0; k < K; k++)
                    for (int64_t i = 0; i < n; i++)
                        a[k * size + i] *= sum[i];
            }
            for (int64_t i = 0; i < n; i++)
                a[label[i] * size + i] -= 1.0f;
            memset(sum, 0, sizeof(float) * n);
            for (int64_t k = 0; k < K; k++)
                if (norm == 1)
                    for (int64_t i = 0; i < n; i++)
                        sum[i] += fabsf(a[k * size + i]);
                else
                    for (int64_t i = 0; i < n; i++)
                        sum[i] += a[k * size + i] * a[k * size + i];
            for (int64_t i = 0; i < n; i++) {
                sum[i] = x_norm[i] * (norm == 1 ? sum[i] : sqrtf(sum[i]));
                top[i] = sum[i] > clip[r] ? clip[r] / sum[i] : 1.0f;
            }
            for (int64_t i = 0; i < n; i++)
                most = sum[i] > most ? sum[i] : most;
            bound[r] = most;
            if (clip[r] < INFINITY)
                for (int64_t k = 0; k < K; k++)
                    for (int64_t i = 0; i < n; i++)
                        a[k * size + i] *= top[i];
        }
        for (int64_t i = 0; i < n; i++)             /* the padding of score is still zero */
            for (int64_t c = 0; c < s->runs * K; c++)
                b->score[i * s->width + c] = b->column[c * size + i];
        NAME(multiply)(columns, first / size * s->features, s->features, s->width, b->score, first > 0, grad, b);
    }
}

/* n 32-bit integers from Philox block `block` on, low half of each word first. */
TARGET static void NAME(integers)(const Stream *s, uint64_t block, int64_t n, uint32_t *out)
{
#if LANES == 16
    uint32_t last[64];
    for (; n >= 128; n -= 128, out += 128, block += 16)
        philox_wide(2, s, block, out);
    for (; n >= 64; n -= 64, out += 64, block += 8)
        philox_wide(1, s, block, out);
    if (n)
        philox_wide(1, s, block, last);
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
    uint32_t word[1024];
    float *out = result;
    const int64_t step = s->kind == LAPLACE ? 1024 : 512;
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

#undef LANES
#undef SUFFIX
#undef TARGET
#undef AT
#undef DECODE
#undef UNROLL
