/* The tiled pass over non-zeros, for wide models; included once per instruction set by _loops.h.

   Lanes of a register are columns of the model. An entry multiplies one row of a panel, of z for the scores and of the
   residuals for the sums, so a panel must stay in the first level cache: scores take TILE features at a time, and sums
   one block of records. A list is of one record (its entries in a tile of features), or of one feature (its entries
   in a block of records); sums of a list stay in registers. */

/* sum = sum_p value[p] * row[index[p]], or is raised by it: n registers of a row, and half a one. Several sums run side
   by side when rows are narrow: one multiply-add waits four cycles for the one before it. Bytes are looked up. */
TARGET INLINE void NAME(gather)(const int n, const int half, const int bytes, int raise, const float *row, int64_t width,
                                const uint8_t *index, const void *values, const float *lookup, int64_t count, float *sum)
{
    const int ways = n <= 1 ? 4 : n <= 3 ? 2 : 1;
    VEC part[9];
    HALF rest = {0};
    int64_t p = 0;
    UNROLL for (int g = 0; g < n * ways; g++)
        part[g] = g < n && raise ? AT(sum + g * LANES) : (VEC){0};
    if (half && raise)
        rest = HALF_AT(sum + n * LANES);
#define VALUE(p) (bytes ? lookup[((const uint8_t *)values)[p]] : ((const float *)values)[p])
#define ROW(p) (row + index[p] * width)
    for (; p + ways <= count; p += ways) {
        UNROLL for (int g = 0; g < n * ways; g++)
            part[g] += VALUE(p + g / n) * AT(ROW(p + g / n) + g % n * LANES);
        if (half)
            UNROLL for (int g = 0; g < ways; g++)
                rest += VALUE(p + g) * HALF_AT(ROW(p + g) + n * LANES);
    }
    for (; p < count; p++) {
        UNROLL for (int g = 0; g < n; g++)
            part[g] += VALUE(p) * AT(ROW(p) + g * LANES);
        if (half)
            rest += VALUE(p) * HALF_AT(ROW(p) + n * LANES);
    }
#undef VALUE
#undef ROW
    UNROLL for (int g = n; g < n * ways; g++)
        part[g % n] += part[g];
    UNROLL for (int g = 0; g < n; g++)
        AT(sum + g * LANES) = part[g];
    if (half)
        HALF_AT(sum + n * LANES) = rest;
}

#define GATHER(n, half)                                                                                        \
    case 2 * n + half:                                                                                         \
        for (int64_t l = 0; l < lists; l++)                                                                    \
            if (start[l + 1] == start[l] && raise)                                                             \
                continue;                                                                                      \
            else if (x->value_size == 1)                                                                       \
                NAME(gather)(n, half, 1, raise, row, width, x->index + start[l],                               \
                             (const uint8_t *)x->value + start[l], lookup, start[l + 1] - start[l],            \
                             out + l * width);                                                                 \
            else                                                                                               \
                NAME(gather)(n, half, 0, raise, row, width, x->index + start[l],                               \
                             (const float *)x->value + start[l], lookup, start[l + 1] - start[l],              \
                             out + l * width);                                                                 \
        break;

/* out[l] = sum over the entries of list first + l of value * row[index], or is raised by it, for `lists` lists and
   `columns` columns. */
TARGET static void NAME(multiply)(const Lists *x, int64_t first, int64_t lists, int64_t columns, int64_t width,
                                  const float *row, int raise, float *out)
{
    const int64_t *start = x->start + first;
    float lookup[256];
    for (int v = 0; v < 256; v++)
        lookup[v] = x->scale * (float)v;
    for (int64_t left = (columns + LANES / 2 - 1) / (LANES / 2), n; left > 0; left -= n) {      /* half registers */
        const int64_t pieces = (left + 2 * REGISTERS - 1) / (2 * REGISTERS);
        n = left == 1 ? 1 : (left + pieces - 1) / pieces / 2 * 2 + (pieces == 1 ? left % 2 : 0);
        switch (n) {
        GATHER(0, 1) GATHER(1, 0) GATHER(1, 1) GATHER(2, 0) GATHER(2, 1) GATHER(3, 0) GATHER(3, 1) GATHER(4, 0)
        GATHER(4, 1) GATHER(5, 0) GATHER(5, 1) GATHER(6, 0) GATHER(6, 1) GATHER(7, 0) GATHER(7, 1) GATHER(8, 0)
        }
        row += n * (LANES / 2);
        out += n * (LANES / 2);
    }
}
#undef GATHER

/* out = sum_i x_i a_i^T over records first .. stop, and bound[r], raised to the largest |x_i| |a_i|. */
TARGET static void NAME(tiled)(const Tiles *x, const Aims *aims, const float *x_norm, const Shape *s, const float *z,
                               int squared, int norm, const float *clip, int64_t first, int64_t stop, float *out,
                               float *bound, char *memory)
{
    const int64_t W = s->width, C = s->runs * s->classes, size = x->block, tiles = (x->features + x->tile - 1) / x->tile;
    float *score = carve(&memory, sizeof(float) * size * W), *column = carve(&memory, sizeof(float) * size * C);
    float *top = carve(&memory, sizeof(float) * size), *sum = carve(&memory, sizeof(float) * size);
    if (stop == first)
        memset(out, 0, sizeof(float) * x->features * W);
    for (int64_t i = first; i < stop; i += size) {
        const int64_t n = stop - i < size ? stop - i : size;
        for (int64_t t = 0; t < tiles; t++)             /* lists by block, then by tile, then by record */
            NAME(multiply)(&x->rows, i * tiles + t * n, n, C, W, z + t * x->tile * W, t > 0, score);
        for (int64_t c = 0; c < C; c++)                 /* one record a lane for what follows */
            for (int64_t k = 0; k < n; k++)
                column[c * size + k] = score[k * W + c];
        NAME(residuals_float)(s, n, size, aims, i, x_norm + i, squared, norm, clip, column, top, sum, bound);
        for (int64_t k = 0; k < n; k++)                 /* the padding of score is still zero */
            for (int64_t c = 0; c < C; c++)
                score[k * W + c] = column[c * size + k];
        NAME(multiply)(&x->columns, i / size * x->features, x->features, C, W, score, i > first, out);
    }
    for (int64_t j = 0; C < W && j < x->features; j++)
        memset(out + j * W + C, 0, sizeof(float) * (size_t)(W - C));
}
