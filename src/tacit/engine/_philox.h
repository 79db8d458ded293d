/* Philox for AVX-512: eight blocks in a register, as _kernels.c computes one. A product of 64 bits is made of four of
   32 bits; rounds of two registers are woven together, because one waits for its own products most of the time. */

#include <immintrin.h>

#define WIDE INLINE __attribute__((target("avx512f")))

/* The low halves of eight 128-bit products, and *high. */
WIDE __m512i products(__m512i a, uint64_t by, __m512i *high)
{
    const __m512i by_low = _mm512_set1_epi64((int64_t)(by & 0xffffffff));
    const __m512i by_high = _mm512_set1_epi64((int64_t)(by >> 32)), a_high = _mm512_srli_epi64(a, 32);
    const __m512i low = _mm512_mul_epu32(a, by_low);
    const __m512i mid = _mm512_add_epi64(_mm512_mul_epu32(a_high, by_low), _mm512_srli_epi64(low, 32));
    const __m512i top = _mm512_add_epi64(_mm512_mul_epu32(a, by_high),
                                         _mm512_and_epi64(mid, _mm512_set1_epi64(0xffffffff)));
    *high = _mm512_add_epi64(_mm512_add_epi64(_mm512_mul_epu32(a_high, by_high), _mm512_srli_epi64(mid, 32)),
                             _mm512_srli_epi64(top, 32));
    return _mm512_mask_mov_epi32(_mm512_slli_epi64(top, 32), 0x5555, low);
}

/* Words 0 .. 3 of eight blocks, block after block. */
WIDE void store_blocks(const __m512i c[4], uint32_t out[64])
{
    const __m512i first = _mm512_set_epi64(11, 10, 3, 2, 9, 8, 1, 0);
    const __m512i last = _mm512_set_epi64(15, 14, 7, 6, 13, 12, 5, 4);
    const __m512i even01 = _mm512_unpacklo_epi64(c[0], c[1]), even23 = _mm512_unpacklo_epi64(c[2], c[3]);
    const __m512i odd01 = _mm512_unpackhi_epi64(c[0], c[1]), odd23 = _mm512_unpackhi_epi64(c[2], c[3]);
    const __m512i block02 = _mm512_permutex2var_epi64(even01, first, even23);
    const __m512i block46 = _mm512_permutex2var_epi64(even01, last, even23);
    const __m512i block13 = _mm512_permutex2var_epi64(odd01, first, odd23);
    const __m512i block57 = _mm512_permutex2var_epi64(odd01, last, odd23);
    _mm512_storeu_si512(out, _mm512_shuffle_i64x2(block02, block13, 0x44));
    _mm512_storeu_si512(out + 16, _mm512_shuffle_i64x2(block02, block13, 0xee));
    _mm512_storeu_si512(out + 32, _mm512_shuffle_i64x2(block46, block57, 0x44));
    _mm512_storeu_si512(out + 48, _mm512_shuffle_i64x2(block46, block57, 0xee));
}

/* 64 integers a register, of at most two; and the next ten blocks, one a round, by the integer units, which are idle
   meanwhile, if `mixed`: 208 integers in all. */
WIDE void philox_wide(const int registers, const int mixed, const Stream *s, uint64_t block, uint32_t *out)
{
    const __m512i count = _mm512_set_epi64(8, 7, 6, 5, 4, 3, 2, 1);
    __m512i c[2][4], high0, high1;
    uint64_t key0 = s->key[0], key1 = s->key[1];
    for (int n = 0; n < registers; n++) {
        c[n][0] = _mm512_add_epi64(_mm512_set1_epi64((int64_t)(block + 8 * n)), count);
        c[n][1] = _mm512_setzero_si512();
        c[n][2] = _mm512_set1_epi64((int64_t)s->step);
        c[n][3] = _mm512_set1_epi64((int64_t)s->round);
    }
    for (int i = 0; i < 10; i++, key0 += PHILOX_KEY0, key1 += PHILOX_KEY1) {
        for (int n = 0; n < registers; n++) {           /* 0x96 is the exclusive or of three */
            const __m512i low0 = products(c[n][0], PHILOX_BY0, &high0), low1 = products(c[n][2], PHILOX_BY1, &high1);
            c[n][0] = _mm512_ternarylogic_epi64(high1, c[n][1], _mm512_set1_epi64((int64_t)key0), 0x96);
            c[n][1] = low1;
            c[n][2] = _mm512_ternarylogic_epi64(high0, c[n][3], _mm512_set1_epi64((int64_t)key1), 0x96);
            c[n][3] = low0;
        }
        if (mixed)
            philox(s, block + (uint64_t)(8 * registers + i), out + 64 * registers + 8 * i);
    }
    for (int n = 0; n < registers; n++)
        store_blocks(c[n], out + 64 * n);
}
