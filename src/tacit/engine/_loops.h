/* The loops of _kernels.c, included once per instruction set with these defined:
   LANES   floats in a vector register      TARGET   the function attribute that allows the instructions
   SUFFIX  ends the names made here, so that every instruction set has its own copy
   MOST_FLOAT, MOST_DOUBLE   columns that the grouped pass can keep in registers. */

typedef float VEC __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef float HALF __attribute__((vector_size(2 * LANES), aligned(4), may_alias));
#define AT(p) (*(VEC *)(p))
#define HALF_AT(p) (*(HALF *)(p))
#define UNROLL _Pragma("GCC unroll 16")

#define REAL float
#define WHOLE int32_t              /* an integer of that size */
#define EXP exp_negative
#define ROOT sqrtf
#define MOST MOST_FLOAT
#define WIDEN(v) (v)                /* eight floats as REAL */
#include "_residuals.h"
#include "_groups.h"
#define REAL double
#define WHOLE int64_t
#define EXP exp_negative_double
#define ROOT sqrt
#define MOST MOST_DOUBLE
#if LANES == 16                     /* GCC 12 would convert two halves */
#define WIDEN(v) (EIGHT)_mm512_cvtps_pd((__m256)(v))
#else
#define WIDEN(v) __builtin_convertvector(v, EIGHT)
#endif
#include "_residuals.h"
#include "_groups.h"
#include "_evaluate.h"
#include "_tiles.h"
#include "_update.h"

#undef LANES
#undef SUFFIX
#undef TARGET
#undef MOST_FLOAT
#undef MOST_DOUBLE
#undef AT
#undef HALF_AT
#undef UNROLL
