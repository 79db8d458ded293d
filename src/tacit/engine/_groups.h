/* The grouped pass, included by _loops.h once per instruction set and number type REAL, after _residuals.h; what was
   defined for that type ends here.

   Features come in groups of eight, and lanes of a register are features: a model of C = R K columns is C registers a
   group, and only the last group is padded. A group that a record leaves empty is not there; a bit says so. A block of
   records passes through scores, residuals and sums while it is in cache. */

typedef REAL OWN(eight_) __attribute__((vector_size(8 * sizeof(REAL)), aligned(sizeof(REAL)), may_alias));
typedef WHOLE OWN(mask_) __attribute__((vector_size(8 * sizeof(REAL))));
#define EIGHT OWN(eight_)
#define EIGHT_AT(p) (*(EIGHT *)(p))
#define EACH(c, n) UNROLL for (int c = 0; c < (n); c++)

/* Eight values of a record, of `size` bytes each, as REAL. */
TARGET INLINE EIGHT OWN(load_)(const int size, const char *at)
{
    typedef float floats __attribute__((vector_size(32), aligned(4), may_alias));
    EIGHT out;
#if LANES >= 8                      /* GCC makes eight loads of these where it is not told */
    typedef int32_t wholes __attribute__((vector_size(32)));
    if (size == 1)
        return __builtin_convertvector((wholes)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)at)), EIGHT);
#endif
    if (size == 4)
        return WIDEN(*(const floats *)at);
    for (int i = 0; i < 8; i++)
        out[i] = size == 1 ? (REAL)((const uint8_t *)at)[i] : (REAL)((const double *)at)[i];
    return out;
}

/* The sums of eight registers, one a lane. */
TARGET INLINE EIGHT OWN(sum_each_)(const EIGHT *a)
{
    EIGHT pair[4], four[2];
    EACH(i, 4)
        pair[i] = SHUFFLE(OWN(mask_), a[2 * i], a[2 * i + 1], 0, 8, 1, 9, 4, 12, 5, 13)
                + SHUFFLE(OWN(mask_), a[2 * i], a[2 * i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
    EACH(i, 2)
        four[i] = SHUFFLE(OWN(mask_), pair[2 * i], pair[2 * i + 1], 0, 1, 8, 9, 4, 5, 12, 13)
                + SHUFFLE(OWN(mask_), pair[2 * i], pair[2 * i + 1], 2, 3, 10, 11, 6, 7, 14, 15);
    return SHUFFLE(OWN(mask_), four[0], four[1], 0, 1, 2, 3, 8, 9, 10, 11)
         + SHUFFLE(OWN(mask_), four[0], four[1], 4, 5, 6, 7, 12, 13, 14, 15);
}

/* column[c][i] = sum_j x_ij z_jc for n columns of the model and `count` records from `first` on. */
TARGET INLINE void OWN(scores_)(const int n, const int size, const int whole, const Groups *x, int64_t first,
                                int64_t count, const REAL *z, REAL *column)
{
    const int64_t groups = x->groups, words = (groups + 63) / 64, last = (x->features - 8) * size;
    const int fetch = x->features * size >= 512;        /* short rows come by themselves */
    for (int64_t i = 0; i < count; i += 8) {
        EIGHT part[16][8];
        for (int64_t r = 0; r < 8; r++) {
            EIGHT sum[16];
            EACH(c, n)
                sum[c] = (EIGHT){0};
            if (i + r < count && whole) {
                const char *at = (const char *)x->value + (first + i + r) * x->features * size;
                for (int64_t g = 0; g < groups; g++) {
                    const EIGHT v = OWN(load_)(size, at + (g * 8 * size < last ? g * 8 * size : last));
                    if (fetch)
                        PREFETCH_READ(at + 8 * x->features * size + g * 8 * size);
                    EACH(c, n)
                        sum[c] += v * EIGHT_AT(z + (g * n + c) * 8);
                }
            } else if (i + r < count) {
                const char *at = (const char *)x->value + x->start[first + i + r] * 8 * size;
                const uint64_t *mask = x->rows + (first + i + r) * words;
                for (int64_t w = 0; w < words; w++)
                    for (uint64_t left = mask[w]; left; left &= left - 1, at += 8 * size) {
                        const int64_t g = 64 * w + __builtin_ctzll(left);
                        const EIGHT v = OWN(load_)(size, at);
                        EACH(c, n)
                            sum[c] += v * EIGHT_AT(z + (g * n + c) * 8);
                    }
            }
            EACH(c, n)
                part[c][r] = sum[c];
        }
        EACH(c, n)
            EIGHT_AT(column + c * BLOCK + i) = OWN(sum_each_)(part[c]);
    }
}

/* sum_jc += sum_i x_ij column[c][i] for n columns, over `count` records from `first` on, a whole block but at the end. */
TARGET INLINE void OWN(add_)(const int n, const int size, const int whole, const Groups *x, int64_t first,
                             int64_t count, const REAL *column, REAL *sum)
{
    const int64_t groups = x->groups, last = (x->features - 8) * size, row = x->features * size;
    const char *base = (const char *)x->value + first * row;
    const int more = whole && first + 2 * count <= x->n;
    uint32_t cursor[BLOCK];         /* the group of each record that comes next */
    for (int64_t i = 0; !whole && i < count; i++)
        cursor[i] = (uint32_t)(x->start[first + i] - x->start[first]);
    for (int64_t g = 0; g < groups; g++) {
        EIGHT part[16];
        EACH(c, n)
            part[c] = EIGHT_AT(sum + (g * n + c) * 8);
        if (whole) {
            const char *at = base + (g * 8 * size < last ? g * 8 * size : last);
            const int fetch = more && g * 8 * size % 64 < 8 * size;
            for (int64_t i = 0; i < count; i++, at += row) {
                const EIGHT v = OWN(load_)(size, at);
                if (fetch)
                    PREFETCH_READ(at + count * row);
                EACH(c, n)
                    part[c] += v * column[c * BLOCK + i];
            }
        } else {
            const char *values = (const char *)x->value + x->start[first] * 8 * size;
            const int64_t ahead = (x->start[first + count] - x->start[first]) * 8 * size;
            const uint64_t *mask = x->columns + (first / BLOCK * groups + g) * (BLOCK / 64);
            for (int64_t w = 0; w < BLOCK / 64; w++)
                for (uint64_t left = mask[w]; left; left &= left - 1) {
                    const int64_t i = 64 * w + __builtin_ctzll(left);
                    const char *at = values + (int64_t)cursor[i]++ * 8 * size;
                    const EIGHT v = OWN(load_)(size, at);
                    PREFETCH_READ(at + ahead);
                    EACH(c, n)
                        part[c] += v * column[c * BLOCK + i];
                }
        }
        EACH(c, n)
            EIGHT_AT(sum + (g * n + c) * 8) = part[c];
    }
}

/* The kinds of records there are: bytes come in groups, and are summed in float; float64 is summed in double. */
#define SIZES(f, n, ...)                                                                                       \
    if (x->size == 4) { if (x->start) f(n, 4, 0, __VA_ARGS__); else f(n, 4, 1, __VA_ARGS__); }                 \
    else if (sizeof(REAL) == 4) f(n, 1, 0, __VA_ARGS__);                                                       \
    else if (x->start) f(n, 8, 0, __VA_ARGS__);                                                                \
    else f(n, 8, 1, __VA_ARGS__);

#define CASE(n)                                                                                                \
    case n:                                                                                                    \
        if (n > MOST)                                                                                          \
            return;                                                                                            \
        if (back) { SIZES(OWN(add_), n, x, first, count, column, model) }                                      \
        else { SIZES(OWN(scores_), n, x, first, count, model, column) }                                        \
        return;

/* One chunk of columns: the scores of a block, or the way back. */
TARGET static void OWN(chunk_)(int n, int back, const Groups *x, int64_t first, int64_t count, REAL *model, REAL *column)
{
    switch (n) {
    CASE(2) CASE(4) CASE(6) CASE(8) CASE(10) CASE(12) CASE(16)
    }
}
#undef CASE
#undef SIZES

/* One chunk of the model, from rows of W columns into groups, `there` of its n columns; and the way back. */
TARGET static void OWN(spread_)(const Groups *x, int n, int64_t there, int64_t W, REAL scale, const REAL *z, REAL *model)
{
    for (int64_t q = 0; q < x->features; q++) {
        const REAL *row = z + (x->order ? x->order[q] : q) * W;
        REAL *to = model + q / 8 * n * 8 + q - group_start(x, q / 8);
        for (int64_t c = 0; c < there; c++)
            to[c * 8] = scale * row[c];
    }
}

TARGET static void OWN(collect_)(const Groups *x, int n, int64_t there, int64_t W, REAL scale, const REAL *sum, REAL *out)
{
    for (int64_t q = 0; q < x->features; q++) {
        REAL *row = out + (x->order ? x->order[q] : q) * W;
        const REAL *from = sum + q / 8 * n * 8 + q - group_start(x, q / 8);
        for (int64_t c = 0; c < there; c++)
            row[c] = scale * from[c * 8];
    }
}

/* out = sum_i x_i a_i^T over records first .. stop, and bound[r], raised to the largest |x_i| |a_i|. */
TARGET static void OWN(grouped_)(const Groups *x, const Aims *aims, const REAL *x_norm, const Shape *s,
                                 const REAL *z, int squared, int norm, const REAL *clip, int64_t first, int64_t stop,
                                 REAL *out, REAL *bound, char *memory)
{
    const int64_t J = x->features, W = s->width, C = s->runs * s->classes;
    const int n = chunk_of(C, MOST);
    const int64_t chunks = (C + n - 1) / n, panel = x->groups * n * 8;
    REAL *model = carve(&memory, sizeof(REAL) * chunks * panel), *sum = carve(&memory, sizeof(REAL) * chunks * panel);
    REAL *column = carve(&memory, sizeof(REAL) * chunks * n * BLOCK), scale = (REAL)x->scale;
    REAL *top = carve(&memory, sizeof(REAL) * BLOCK), *total = carve(&memory, sizeof(REAL) * BLOCK);
    memset(model, 0, sizeof(REAL) * chunks * panel);
    memset(sum, 0, sizeof(REAL) * chunks * panel);
    for (int64_t q = 0; q < chunks; q++)
        OWN(spread_)(x, n, C - q * n < n ? C - q * n : n, W, scale, z + q * n, model + q * panel);
    for (int64_t i = first; i < stop; i += x->block) {
        const int64_t count = stop - i < x->block ? stop - i : x->block;
        for (int64_t q = 0; q < chunks; q++)
            OWN(chunk_)(n, 0, x, i, count, model + q * panel, column + q * n * BLOCK);
        OWN(residuals_)(s, count, BLOCK, aims, i, x_norm + i, squared, norm, clip, column, top, total, bound);
        for (int64_t q = 0; q < chunks; q++)
            OWN(chunk_)(n, 1, x, i, count, sum + q * panel, column + q * n * BLOCK);
    }
    for (int64_t q = 0; q < chunks; q++)
        OWN(collect_)(x, n, C - q * n < n ? C - q * n : n, W, scale, sum + q * panel, out + q * n);
    for (int64_t j = 0; C < W && j < J; j++)
        memset(out + j * W + C, 0, sizeof(REAL) * (size_t)(W - C));
}

#undef EIGHT
#undef EIGHT_AT
#undef EACH
#undef REAL
#undef WHOLE
#undef EXP
#undef ROOT
#undef MOST
#undef WIDEN
