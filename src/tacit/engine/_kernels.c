/* Loops of the fast engine: gradients, noise and updates of an agent, for many runs at once.

   Layout. J features, K classes, R runs. z, dual, w and sums are (J, width): entry [j, r*K + k] is class k
   of run r, and width is R*K rounded up to 16 numbers, padded with zeros. One row is then a few whole vector
   registers, and one pass over the records serves every run. Arrays should begin on 64 bytes.

   Records. An agent's records are packed once, checked once, and kept in a capsule. They are in groups of features
   (_groups.h: dense records, and narrow models), or in tiles of non-zeros (_tiles.h: wide models over sparse records).
   They are summed in pieces of about PIECE records, piece after piece, so that threads may share out an agent.

   Threads. Every function releases the GIL and sums in a fixed order, so callers may spread agents, pieces or ranges
   of entries over threads, and the numbers never depend on how many there are.

   Instruction sets. The loops are in _loops.h, included once per instruction set with LANES floats a register;
   the best one the processor has is chosen at import. The loops need the vector extensions of GCC and clang; with
   another compiler the build stops here, and the engine runs on NumPy. */

#ifndef __GNUC__
#error "the loops need GCC or clang"
#endif

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BLOCK = 128 };        /* records that the grouped pass takes at a time, at most: two words of bits */
enum { NEAR = 192 << 10 };   /* bytes of dense records that stay in the second level cache from scores to sums */
enum { PIECE = 2048, PIECES = 64 };     /* the least records of a piece, about, and the most pieces of an agent */
enum { REGISTERS = 8 };      /* registers of a row that the tiled pass takes at a time */
enum { CHUNK = 4096 };       /* noise held at a time in an update, of all runs: 16 KB, a third of L1 */
enum { LAPLACE, GAUSSIAN, INTEGERS };
enum { WEIGHT, REG_Z, REG_W, RHO, INV_ETA, RADIUS, LOW, HIGH, SLOPE_NOISE, STEP_NOISE, DUAL_BEFORE, DUAL_AFTER,
       POWER, N_PARAMS, INVERSE = N_PARAMS, N_COLUMNS };

typedef struct { int64_t features, classes, runs, width; } Shape;
typedef struct { const int64_t *label; const double *number; } Aims;   /* what scores aim at: one of the two is there */
typedef struct { uint64_t key[2], round, step; int kind; } Stream;

typedef struct {            /* records in groups of eight features */
    int64_t n, features, groups, block;
    const void *value;              /* of `size` bytes: uint8, float32 or float64; an entry is scale * value */
    int size;
    double scale;
    const int64_t *start;           /* the first group of each record; NULL where values are rows of all features */
    const uint64_t *rows;           /* the groups that a record has, a bit each */
    const uint64_t *columns;        /* the records of a block that have a group, a bit each */
    const int64_t *order;           /* which feature stands where; NULL: as they are */
} Groups;

typedef struct {            /* list l holds entries start[l] .. start[l+1] */
    const int64_t *start;
    const uint8_t *index;           /* within the panel that the list belongs to */
    const void *value;              /* uint8 or float32; an entry is scale * value */
    int value_size;
    float scale;
} Lists;

typedef struct {            /* non-zeros, by record in tiles of features, and by feature in blocks of records */
    int64_t n, features, tile, block;
    Lists rows, columns;
} Tiles;

static double now(void)      /* seconds; 0 where the system has no such clock */
{
#ifdef CLOCK_MONOTONIC
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
#else
    return 0;
#endif
}

static void *carve(char **free, size_t bytes)   /* the next 64-byte aligned piece of one allocation */
{
    char *p = (char *)(((uintptr_t)*free + 63) & ~(uintptr_t)63);
    *free = p + bytes;
    return p;
}

static inline int64_t update_rows(int64_t width)       /* a multiple of 8, so that noise begins at a whole block */
{
    return 8 * width < CHUNK ? CHUNK / (8 * width) * 8 : 8;
}

#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)
#define NAME(f) CAT(f, SUFFIX)
#define VEC NAME(vec)
#define HALF NAME(half)

#define INLINE static inline __attribute__((always_inline))
#define PREFETCH(p) __builtin_prefetch(p, 1, 2)         /* to be written, into L2 */
#define PREFETCH_READ(p) __builtin_prefetch(p, 0, 2)
/* Two vectors of eight, permuted into one; GCC knows __builtin_shufflevector from 12 on. */
#ifdef __has_builtin
#if __has_builtin(__builtin_shufflevector)
#define SHUFFLE(mask, a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#endif
#endif
#ifndef SHUFFLE
#define SHUFFLE(mask, a, b, ...) __builtin_shuffle(a, b, (mask){__VA_ARGS__})
#endif

INLINE uint32_t bits_of(float x) { uint32_t b; memcpy(&b, &x, 4); return b; }
INLINE float float_of(uint32_t b) { float x; memcpy(&x, &b, 4); return x; }

INLINE uint64_t bits_of_double(double x) { uint64_t b; memcpy(&b, &x, 8); return b; }
INLINE double double_of(uint64_t b) { double x; memcpy(&x, &b, 8); return x; }

INLINE int64_t group_start(const Groups *x, int64_t g)  /* the last group of a whole row begins early, to be whole */
{
    return !x->start && g * 8 > x->features - 8 ? x->features - 8 : g * 8;
}

/* How many columns the grouped pass takes at a time: few padded ones, and few passes. */
static int chunk_of(int64_t columns, int most)
{
    static const int sizes[] = {16, 12, 10, 8, 6, 4};
    int best = 2;
    for (int i = 0; i < 6; i++) {
        const int64_t own = (columns + sizes[i] - 1) / sizes[i] * (sizes[i] + 1);       /* 1: loading the records */
        if (sizes[i] <= most && own < (columns + best - 1) / best * (best + 1))
            best = sizes[i];
    }
    return best;
}

INLINE uint64_t product(uint64_t a, uint64_t b, uint64_t *high)   /* the 128-bit product: low half, and *high */
{
#ifdef __SIZEOF_INT128__
    unsigned __int128 c = (unsigned __int128)a * b;
    *high = (uint64_t)(c >> 64);
    return (uint64_t)c;
#else
    uint64_t al = (uint32_t)a, ah = a >> 32, bl = (uint32_t)b, bh = b >> 32;
    uint64_t mid = ah * bl + (al * bl >> 32), low = al * bh + (uint32_t)mid;
    *high = ah * bh + (mid >> 32) + (low >> 32);
    return a * b;
#endif
}

#define PHILOX_BY0 0xD2E7470EE14C6C93
#define PHILOX_BY1 0xCA5A826395121157
#define PHILOX_KEY0 0x9E3779B97F4A7C15
#define PHILOX_KEY1 0xBB67AE8584CAA73B

INLINE void philox(const Stream *s, uint64_t block, uint32_t out[8])   /* Philox-4x64-10; NumPy counts from 1 */
{
    uint64_t c[4] = {block + 1, 0, s->step, s->round}, key0 = s->key[0], key1 = s->key[1], high0, high1;
    for (int i = 0; i < 10; i++, key0 += PHILOX_KEY0, key1 += PHILOX_KEY1) {
        uint64_t low0 = product(PHILOX_BY0, c[0], &high0), low1 = product(PHILOX_BY1, c[2], &high1);
        c[0] = high1 ^ c[1] ^ key0;
        c[1] = low1;
        c[2] = high0 ^ c[3] ^ key1;
        c[3] = low0;
    }
    for (int i = 0; i < 4; i++)
        out[2 * i] = (uint32_t)c[i], out[2 * i + 1] = (uint32_t)(c[i] >> 32);
}

#if defined(__x86_64__) || defined(__i386__)
#define HAVE_X86
#include "_philox.h"
#endif

/* The coefficients below are minimax fits (relative error under 1e-8, less than float32 rounding). */

/* e^x for x <= 0, and 0 below e^-40: such a class is lost in any float32 sum, and the denormal numbers that it
   would lead to (its square, say) stall the processor a hundred cycles each. */
INLINE float exp_negative(float x)
{
    float kept = x < -40.0f ? -40.0f : x;
    float shifted = kept * 1.44269504f + 12582912.0f;       /* 1.5 * 2^23: the low bits hold round(x / ln 2) */
    float n = shifted - 12582912.0f, r = kept - n * 0.693359375f + n * 2.12194440e-4f;
    float q = 0.499999934f + r * (0.1666652f + r * (0.0416683958f + r * (0.00836879668f + r * 0.00138144332f)));
    float e = (1.0f + (r + r * r * q)) * float_of((bits_of(shifted) + 127) << 23);
    return x < -40.0f ? 0.0f : e;
}

INLINE double exp_negative_double(double x)     /* the same in double: a Taylor sum, |r| <= ln(2) / 2 */
{
    double kept = x < -700.0 ? -700.0 : x;
    double shifted = kept * 1.4426950408889634 + 6755399441055744.0;    /* 1.5 * 2^52 */
    double n = shifted - 6755399441055744.0, r = kept - n * 0.6931471803691238 - n * 1.9082149292705877e-10;
    double q = 1.0 / 479001600 + r * (1.0 / 6227020800);
    q = 1.0 / 3628800 + r * (1.0 / 39916800 + r * q);
    q = 1.0 / 40320 + r * (1.0 / 362880 + r * q);
    q = 1.0 / 720 + r * (1.0 / 5040 + r * q);
    q = 1.0 / 24 + r * (1.0 / 120 + r * q);
    double e = 1.0 + (r + r * r * (0.5 + r * (1.0 / 6 + r * q)));
    return x < -700.0 ? 0.0 : e * double_of((bits_of_double(shifted) + 1023) << 52);
}

INLINE float log_positive(float x)              /* ln x for normal x > 0 */
{
    int32_t e = (int32_t)(bits_of(x) - 0x3f3504f3) >> 23;   /* x = m 2^e with m in [sqrt(1/2), sqrt(2)) */
    float f = float_of(bits_of(x) - ((uint32_t)e << 23)) - 1.0f, n = (float)e;
    float q = 0.333333317f + f * (-0.25000821f + f * (0.200012269f + f * (-0.166233574f
            + f * (0.142017579f + f * (-0.131601822f + f * (0.127615775f + f * -0.0763449776f))))));
    return n * 0.693359375f + (f + (f * f * (f * q - 0.5f) - n * 2.12194440e-4f));
}

INLINE float cos_turn(float x)                  /* cos x for 0 <= x <= 2 pi: a sine about the nearer zero */
{
    int late = x > 3.14159265f;
    float y = late ? (x - 4.71238899f) - -1.19248806e-8f : (x - 1.57079637f) - -4.37113883e-8f, s = y * y;
    float q = -0.166666595f + s * (0.00833306461f + s * (-0.000198094749f + s * 2.6054815e-06f));
    y += y * s * q;
    return late ? y : -y;
}

#ifdef HAVE_X86
#define LANES 16
#define SUFFIX _avx512
#define TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi,bmi2,popcnt")))
#define MOST_FLOAT 16
#define MOST_DOUBLE 16
#include "_loops.h"
#define LANES 8
#define SUFFIX _avx2
#define TARGET __attribute__((target("avx2,fma,bmi,bmi2,popcnt")))
#define MOST_FLOAT 12
#define MOST_DOUBLE 6
#include "_loops.h"
#endif
#define LANES 4
#define SUFFIX _plain
#define TARGET
#define MOST_FLOAT 6
#define MOST_DOUBLE 4
#include "_loops.h"

typedef struct {
    const char *name;
    int most_float, most_double;
    void (*tiled)(const Tiles *, const Aims *, const float *, const Shape *, const float *, int, int, const float *,
                  int64_t, int64_t, float *, float *, char *);
    void (*grouped)(const Groups *, const Aims *, const float *, const Shape *, const float *, int, int,
                    const float *, int64_t, int64_t, float *, float *, char *);
    void (*exact)(const Groups *, const Aims *, const double *, const Shape *, const double *, int, int,
                  const double *, int64_t, int64_t, double *, double *, char *);
    void (*evaluate)(const Groups *, const int64_t *, const Shape *, const float *, int64_t, int64_t, double *,
                     int64_t *, char *);
    void (*noise)(const Stream *, int64_t, int64_t, void *);
    void (*update)(const Shape *, const float *, float *, float *, const float *, float *const *, const Stream *,
                   float *, float *, double *, double *);
    void (*total)(const float *, int64_t, int64_t, int64_t, int64_t, int64_t, double *);
} Loops;
#define LIST(set, f, d) {#set, f, d, tiled_##set, grouped_float_##set, grouped_double_##set, evaluate_##set, \
                         noise_##set, update_##set, total_##set}
static const Loops all[] = {
#ifdef HAVE_X86
    LIST(avx512, 16, 16), LIST(avx2, 12, 6),
#endif
    LIST(plain, 6, 4)};
static const Loops *loops;      /* the one in use */

static int runs_here(const char *name)
{
#ifdef HAVE_X86
    __builtin_cpu_init();
    const int avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
    if (!strcmp(name, "avx512"))
        return avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw")
            && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    if (!strcmp(name, "avx2"))
        return avx2;
#endif
    return !strcmp(name, "plain");
}

/* The buffers of one call: borrowed one by one, given back together; after a first failure nothing is borrowed. */
typedef struct { Py_buffer view[16]; int n, failed; } Buffers;

/* A contiguous array of `length` numbers (-1: any, then set) whose struct letter is in `types`; '!' to write. */
static void *borrow(Buffers *list, PyObject *object, const char *name, const char *types, int64_t *length)
{
    Py_buffer *view = &list->view[list->n];
    const int writes = *types == '!';
    if (list->failed || (list->failed = PyObject_GetBuffer(object, view,
                         PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (writes ? PyBUF_WRITABLE : 0))))
        return NULL;
    list->n++;
    const char *type = view->format ? view->format : "B";
    char letter = *type;
    if (letter == 'l' || letter == 'L')     /* a C long: 4 bytes on some systems, 8 on others */
        letter = (view->itemsize == 8 ? 'q' : 'i') - (letter == 'L' ? 'q' - 'Q' : 0);
    const int64_t n = view->len / MAX(1, view->itemsize);
    if (!letter || !strchr(types, letter) || type[1])
        PyErr_Format(PyExc_ValueError, "%s has type '%s': expected one of '%s'", name, type, types + writes);
    else if (*length >= 0 && n != *length)
        PyErr_Format(PyExc_ValueError, "%s holds %lld numbers: expected %lld", name, (long long)n, (long long)*length);
    list->failed = PyErr_Occurred() != NULL;
    *length = n;
    return view->buf;
}

static PyObject *give_back(Buffers *list)
{
    while (list->n)
        PyBuffer_Release(&list->view[--list->n]);
    if (list->failed)
        return NULL;
    Py_RETURN_NONE;
}

static int64_t piece_of(int64_t n, int64_t block)      /* records summed together: whole blocks */
{
    const int64_t least = MAX(PIECE, (n + PIECES - 1) / PIECES);
    return block < 1 ? 1 : (least + block - 1) / block * block;
}

static int refuse(Buffers *list, int bad, const char *why)
{
    if (bad && !list->failed) {
        list->failed = 1;
        PyErr_SetString(PyExc_ValueError, why);
    }
    return list->failed;
}

static Shape shape_of(Buffers *list, int64_t size, long long classes, long long runs)
{
    if (refuse(list, classes < 1 || runs < 1 || classes > 65536 || runs > 65536, "n_classes or n_runs is out of range"))
        return (Shape){0};
    const int64_t width = (runs * classes + 15) / 16 * 16;
    refuse(list, size % width || size > UINT32_MAX, "z must be rows of n_runs * n_classes numbers padded to 16");
    return (Shape){size / width, classes, runs, width};
}

/* One agent's records, packed and checked; the norms |x_i| in l1 and in l2 are NULL where they were not given. */
typedef struct {
    Py_buffer *held;                /* the arrays that everything below points into */
    int n_held;
    int grouped, exact;             /* in groups or in tiles; summed in double or in float */
    int64_t n, features, classes, piece;
    Aims aims;
    const void *x_norm[2];
    Groups groups;
    Tiles tiles;
} Records;

static const char capsule_name[] = "tacit.records";

static void records_free(PyObject *capsule)
{
    Records *x = PyCapsule_GetPointer(capsule, capsule_name);
    while (x->n_held)
        PyBuffer_Release(&x->held[--x->n_held]);
    free(x->held);
    free(x);
}

/* The capsule of x, which keeps what was borrowed; or NULL with everything given back. */
static PyObject *records_done(Records *x, Buffers *list)
{
    if (!list->failed && (x->held = malloc(sizeof(Py_buffer) * (size_t)list->n))) {
        PyObject *capsule = PyCapsule_New(x, capsule_name, records_free);
        if (capsule) {
            memcpy(x->held, list->view, sizeof(Py_buffer) * (size_t)list->n);
            x->n_held = list->n;
            return capsule;
        }
    } else if (!list->failed)
        PyErr_NoMemory();
    free(x->held);
    free(x);
    list->failed = 1;
    return give_back(list);
}

/* What both forms have: labels within the classes, or numbers to predict where the model has one column; and norms, all
   float32 or all float64. */
static void labels_and_norms(Records *x, Buffers *list, PyObject *label, PyObject *norms[2])
{
    int64_t bad = 0;
    const void *given = borrow(list, label, "label", "qd", &x->n);
    const int number = !list->failed && list->view[list->n - 1].format[0] == 'd';
    x->aims = number ? (Aims){.number = given} : (Aims){.label = given};
    for (int64_t i = 0; !list->failed && i < x->n; i++)
        bad |= number ? !(x->aims.number[i] >= -1 && x->aims.number[i] <= 1)
                      : x->aims.label[i] < 0 || x->aims.label[i] >= x->classes;
    refuse(list, bad != 0 || x->classes < 1 || x->features < 1 || (number && x->classes != 1),
           "labels must lie in 0..n_classes-1; numbers to predict lie in [-1, 1], and n_classes is then 1");
    for (int i = 0; i < 2; i++)
        if (norms[i] != Py_None) {
            x->x_norm[i] = borrow(list, norms[i], "x_norm", "fd", &x->n);
            const int wide = !list->failed && list->view[list->n - 1].itemsize == 8;
            refuse(list, x->x_norm[!i] && i && wide != x->exact, "both norms must have one type");
            x->exact = wide;
        }
}

/* Whether the bits by record and by block say the same, and the starts count them; nothing is read out of bounds. */
static int bits_agree(const Groups *x, int64_t values)
{
    const int64_t words = (x->groups + 63) / 64;
    if (x->start[0] != 0 || x->start[x->n] * 8 != values)
        return 0;
    for (int64_t i = 0; i < x->n; i++) {
        int64_t there = 0;
        for (int64_t g = 0; g < 64 * words; g++) {
            const int own = x->rows[i * words + g / 64] >> g % 64 & 1;
            if (g >= x->groups ? own : own != (int)(x->columns[(i / BLOCK * x->groups + g) * (BLOCK / 64)
                                                               + i % BLOCK / 64] >> i % 64 & 1))
                return 0;
            there += own;
        }
        if (x->start[i + 1] - x->start[i] != there)
            return 0;
    }
    for (int64_t i = x->n; i < (x->n + BLOCK - 1) / BLOCK * BLOCK; i++)
        for (int64_t g = 0; g < x->groups; g++)
            if (x->columns[(i / BLOCK * x->groups + g) * (BLOCK / 64) + i % BLOCK / 64] >> i % 64 & 1)
                return 0;
    return 1;
}

static int is_permutation(const int64_t *order, int64_t n)
{
    char *seen = calloc((size_t)n, 1);
    int whole = seen != NULL;
    for (int64_t i = 0; whole && i < n; i++) {
        whole = order[i] >= 0 && order[i] < n && !seen[order[i]];
        if (whole)
            seen[order[i]] = 1;
    }
    free(seen);
    return whole;
}

static PyObject *py_groups(PyObject *self, PyObject *args)
{
    PyObject *value, *start, *rows, *columns, *order, *label, *norms[2];
    long long n, features, classes;
    double scale;
    (void)self;
    if (!PyArg_ParseTuple(args, "LLLdOOOOOO(OO)", &n, &features, &classes, &scale, &value, &start, &rows, &columns,
                          &order, &label, norms, norms + 1))
        return NULL;
    Records *x = calloc(1, sizeof *x);
    if (!x)
        return PyErr_NoMemory();
    Buffers borrowed = {.n = 0}, *list = &borrowed;
    refuse(list, n < 0 || features < 1 || features > INT32_MAX / BLOCK || n > INT32_MAX, "n or features is out of range");
    x->grouped = 1, x->n = n, x->features = features, x->classes = classes;
    labels_and_norms(x, list, label, norms);
    Groups *own = &x->groups;
    *own = (Groups){.n = n, .features = features, .groups = (features + 7) / 8, .scale = scale, .block = BLOCK};
    int64_t values = -1, n_starts = n + 1, n_rows = n * ((own->groups + 63) / 64);
    int64_t n_columns = (n + BLOCK - 1) / BLOCK * own->groups * (BLOCK / 64);
    own->value = borrow(list, value, "value", "Bfd", &values);
    own->size = list->failed ? 1 : (int)list->view[list->n - 1].itemsize;
    refuse(list, own->size == 8 && !x->exact, "values in float64 are summed in float64: give norms of that type");
    refuse(list, own->size == 1 && (x->exact || start == Py_None), "bytes come in groups, and are summed in float32");
    if (start == Py_None) {
        refuse(list, features < 8 || values != n * features, "whole rows have n * features values, eight or more a row");
        const int64_t fit = NEAR / (features * own->size) / 8 * 8;
        own->block = fit < 16 ? 16 : fit > BLOCK ? BLOCK : fit;
    } else {
        own->start = borrow(list, start, "start", "q", &n_starts);
        own->rows = borrow(list, rows, "rows", "Q", &n_rows);
        own->columns = borrow(list, columns, "columns", "Q", &n_columns);
        if (!list->failed)
            refuse(list, !bits_agree(own, values), "start, rows and columns do not describe the same groups");
    }
    if (order != Py_None) {
        own->order = borrow(list, order, "order", "q", &x->features);
        if (!list->failed)
            refuse(list, !is_permutation(own->order, features), "order must name every feature once");
    }
    x->piece = piece_of(n, own->block);
    return records_done(x, list);
}

/* A triple (start, index, value) of n lists; the caller checks the indices. */
static Lists lists_of(Buffers *list, PyObject **o, int64_t n, double scale)
{
    int64_t entries = -1, n_starts = n + 1;
    Lists x = {.scale = (float)scale, .start = borrow(list, o[0], "start", "q", &n_starts),
               .index = borrow(list, o[1], "index", "B", &entries), .value = borrow(list, o[2], "value", "Bf", &entries)};
    if (list->failed)
        return x;
    x.value_size = (int)list->view[list->n - 1].itemsize;
    refuse(list, x.value_size == 4 && scale != 1, "values in float32 have a scale of one");
    int bad = x.start[0] != 0 || x.start[n] != entries;
    for (int64_t i = 0; i < n; i++)
        bad |= x.start[i] > x.start[i + 1];
    refuse(list, bad, "start must rise from nought to the number of entries");
    return x;
}

static PyObject *py_tiles(PyObject *self, PyObject *args)
{
    PyObject *o[6], *label, *norms[2];
    long long n, features, classes, tile, block;
    double scale;
    (void)self;
    if (!PyArg_ParseTuple(args, "LLLLLd(OOO)(OOO)O(OO)", &n, &features, &classes, &tile, &block, &scale, o, o + 1, o + 2,
                          o + 3, o + 4, o + 5, &label, norms, norms + 1))
        return NULL;
    Records *x = calloc(1, sizeof *x);
    if (!x)
        return PyErr_NoMemory();
    Buffers borrowed = {.n = 0}, *list = &borrowed;
    refuse(list, n < 0 || features < 1 || n > INT32_MAX || features > INT32_MAX || tile < 1 || tile > 256 || block < 1
                     || block > 256, "n, features, tile or block is out of range");
    x->n = n, x->features = features, x->classes = classes;
    labels_and_norms(x, list, label, norms);
    refuse(list, x->exact, "tiles are summed in float32: give norms of that type");
    Tiles *own = &x->tiles;
    const int64_t tiles = tile < 1 ? 0 : (features + tile - 1) / tile, blocks = block < 1 ? 0 : (n + block - 1) / block;
    *own = (Tiles){.n = n, .features = features, .tile = tile, .block = block};
    own->rows = lists_of(list, o, n * tiles, scale);
    own->columns = lists_of(list, o + 3, blocks * features, scale);
    int bad = 0;
    for (int64_t b = 0; !list->failed && b < blocks; b++) {
        const int64_t first = b * block, here = n - first < block ? n - first : block;
        for (int64_t t = 0; t < tiles; t++) {
            const int64_t *start = own->rows.start + first * tiles + t * here;
            const int64_t most = features - t * tile < tile ? features - t * tile : tile;
            for (int64_t p = start[0]; p < start[here]; p++)
                bad |= own->rows.index[p] >= most;
        }
        const int64_t *start = own->columns.start + b * features;
        for (int64_t p = start[0]; p < start[features]; p++)
            bad |= own->columns.index[p] >= here;
    }
    refuse(list, bad, "an index lies beyond its panel");
    x->piece = piece_of(n, block);
    return records_done(x, list);
}

static Records *records_of(Buffers *list, PyObject *capsule)
{
    Records *x = list->failed ? NULL : PyCapsule_GetPointer(capsule, capsule_name);
    list->failed |= !x;
    return x;
}

/* Bytes of scratch that one sum needs. */
static size_t scratch_of(const Records *x, const Shape *s)
{
    const size_t C = (size_t)(s->runs * s->classes), W = (size_t)s->width, J = (size_t)x->features;
    if (!x->grouped)
        return 4 * (size_t)x->tiles.block * (W + C + 2) + 8 * 64;
    const size_t n = (size_t)chunk_of((int64_t)C, x->exact ? loops->most_double : loops->most_float);
    const size_t columns = (C + n - 1) / n * n, size = x->exact ? 8 : 4;
    return size * (2 * columns * (J + 7) / 8 * 8 + columns * BLOCK + 2 * BLOCK) + 8 * 64 + 2 * size * columns * 8;
}

static void sums_of(const Records *x, const Shape *s, const void *z, int squared, int norm, const void *clip,
                    int64_t first, int64_t stop, void *out, void *bound, char *scratch)
{
    const void *size = x->x_norm[norm - 1];
    if (!x->grouped)
        loops->tiled(&x->tiles, &x->aims, size, s, z, squared, norm, clip, first, stop, out, bound, scratch);
    else if (x->exact)
        loops->exact(&x->groups, &x->aims, size, s, z, squared, norm, clip, first, stop, out, bound, scratch);
    else
        loops->grouped(&x->groups, &x->aims, size, s, z, squared, norm, clip, first, stop, out, bound, scratch);
}

/* The sum over all records: that of the first piece, and of each other piece in turn. `part` has room for one sum. */
static void sum_all(const Records *x, const Shape *s, const void *z, int squared, int norm, const void *clip, void *out,
                    void *bound, void *part, char *scratch)
{
    const int64_t size = s->features * s->width;
    memset(bound, 0, (x->exact ? 8 : 4) * (size_t)s->runs);
    for (int64_t first = 0; first < x->n || !first; first += x->piece) {
        const int64_t stop = x->n - first < x->piece ? x->n : first + x->piece;
        sums_of(x, s, z, squared, norm, clip, first, stop, first ? part : out, bound, scratch);
        if (first && x->exact)
            for (int64_t i = 0; i < size; i++)
                ((double *)out)[i] += ((double *)part)[i];
        else if (first)
            for (int64_t i = 0; i < size; i++)
                ((float *)out)[i] += ((float *)part)[i];
    }
}

static int64_t pieces_of(const Records *x) { return MAX(1, (x->n + x->piece - 1) / x->piece); }

static PyObject *py_pieces(PyObject *self, PyObject *capsule)
{
    (void)self;
    Records *x = PyCapsule_GetPointer(capsule, capsule_name);
    return x ? PyLong_FromLongLong(pieces_of(x)) : NULL;
}

/* (numbers that a pass multiplies, bytes of records that it reads), the numbers both ways counted once. */
static PyObject *py_work(PyObject *self, PyObject *capsule)
{
    (void)self;
    Records *x = PyCapsule_GetPointer(capsule, capsule_name);
    if (!x)
        return NULL;
    long long numbers = 0, bytes = 0;
    if (x->grouped) {
        const Groups *own = &x->groups;
        numbers = own->start ? 8 * own->start[own->n] : own->n * own->features;
        bytes = numbers * own->size + (own->start ? own->n * (8 + 8 * ((own->groups + 63) / 64) + own->groups / 8) : 0);
    } else {
        const Tiles *own = &x->tiles;
        const int64_t tiles = (own->features + own->tile - 1) / own->tile, blocks = (own->n + own->block - 1) / own->block;
        numbers = own->rows.start[own->n * tiles];
        bytes = 2 * numbers * (1 + own->rows.value_size) + 8 * (own->n * tiles + blocks * own->features);
    }
    return Py_BuildValue("LL", numbers, bytes);
}

static PyObject *py_gradient(PyObject *self, PyObject *args)
{
    PyObject *capsule, *o[4];
    Buffers list = {.n = 0};
    long long piece, runs;
    int squared, norm;
    int64_t size = -1;
    (void)self;
    if (!PyArg_ParseTuple(args, "OLOLpiOOO", &capsule, &piece, o, &runs, &squared, &norm, o + 1, o + 2, o + 3))
        return NULL;
    Records *x = records_of(&list, capsule);
    if (!x)
        return NULL;
    const char *given = x->exact ? "d" : "f", *made = x->exact ? "!d" : "!f";
    void *z = borrow(&list, o[0], "z", given, &size);
    Shape s = shape_of(&list, size, x->classes, runs);
    void *clip = borrow(&list, o[1], "clip", given, &s.runs), *out = borrow(&list, o[2], "out", made, &size);
    void *bound = borrow(&list, o[3], "bound", made, &s.runs);
    refuse(&list, s.features != x->features, "z must have a row for each feature");
    refuse(&list, (norm != 1 && norm != 2) || !x->x_norm[norm - 1], "norm must be 1 or 2, and |x_i| given in that norm");
    refuse(&list, piece < -1 || piece >= pieces_of(x), "there is no such piece");
    const size_t bytes = list.failed ? 0 : scratch_of(x, &s);
    char *memory = list.failed ? NULL : malloc(bytes + 2 * 64 + (x->exact ? 8 : 4) * (size_t)size), *rest = memory;
    if (!memory && !list.failed)
        return PyErr_NoMemory(), list.failed = 1, give_back(&list);
    if (memory) {
        Py_BEGIN_ALLOW_THREADS
        char *scratch = carve(&rest, bytes);
        if (piece < 0)
            sum_all(x, &s, z, squared, norm, clip, out, bound, carve(&rest, 0), scratch);
        else {
            const int64_t first = piece * x->piece, stop = x->n - first < x->piece ? x->n : first + x->piece;
            memset(bound, 0, (x->exact ? 8 : 4) * (size_t)s.runs);
            sums_of(x, &s, z, squared, norm, clip, first, stop, out, bound, scratch);
        }
        Py_END_ALLOW_THREADS
    }
    free(memory);
    return give_back(&list);
}

static PyObject *py_evaluate(PyObject *self, PyObject *args)
{
    PyObject *o[3];
    Buffers list = {.n = 0};
    long long features, classes, first, stop;
    int64_t values = -1, n = -1, size = -1, errors = 0;
    double loss = 0;
    (void)self;
    if (!PyArg_ParseTuple(args, "OLOOLLL", o, &features, o + 1, o + 2, &classes, &first, &stop))
        return NULL;
    const float *x = borrow(&list, o[0], "x", "f", &values), *z = borrow(&list, o[2], "z", "f", &size);
    const int64_t *label = borrow(&list, o[1], "label", "q", &n);
    Shape s = shape_of(&list, size, classes, 1);
    refuse(&list, features < 8 || s.features != features || values != n * features,
           "x must have rows of `features` numbers, eight or more, and z a row for each");
    refuse(&list, first < 0 || first > stop || stop > n, "first .. stop must be a range of the records");
    int bad = 0;
    for (int64_t i = first; !list.failed && i < stop; i++)
        bad |= label[i] < 0 || label[i] >= classes;
    refuse(&list, bad, "labels must lie in 0..n_classes-1");
    const int64_t groups = (features + 7) / 8, fit = list.failed ? 0 : NEAR / (features * 4) / 8 * 8;
    const size_t columns = list.failed ? 0 : (size_t)(classes + 16);
    char *memory = list.failed ? NULL : malloc(4 * columns * (size_t)(groups * 8 + BLOCK) + 4 * 64);
    if (!memory && !list.failed)
        PyErr_NoMemory(), list.failed = 1;
    if (memory) {
        const Groups rows = {.n = n, .features = features, .groups = groups, .value = x, .size = 4, .scale = 1,
                             .block = fit < 16 ? 16 : fit > BLOCK ? BLOCK : fit};
        Py_BEGIN_ALLOW_THREADS
        loops->evaluate(&rows, label + first, &s, z, first, stop, &loss, &errors, memory);
        Py_END_ALLOW_THREADS
    }
    free(memory);
    PyObject *done = give_back(&list);
    Py_XDECREF(done);
    return done ? Py_BuildValue("dL", loss, (long long)errors) : NULL;
}

static PyObject *py_noise(PyObject *self, PyObject *args)
{
    PyObject *o;
    Buffers list = {.n = 0};
    Stream s;
    int kind;
    int64_t n = -1;
    unsigned long long key0, key1, round, step;
    (void)self;
    if (!PyArg_ParseTuple(args, "iKKKKO", &kind, &key0, &key1, &round, &step, &o))
        return NULL;
    s = (Stream){{key0, key1}, round, step, kind};
    void *out = borrow(&list, o, "out", kind == INTEGERS ? "!I" : "!f", &n);
    if (!refuse(&list, kind < LAPLACE || kind > INTEGERS, "kind must be LAPLACE, GAUSSIAN or INTEGERS")) {
        Py_BEGIN_ALLOW_THREADS
        loops->noise(&s, 0, n, out);
        Py_END_ALLOW_THREADS
    }
    return give_back(&list);
}

/* One round of agents first .. stop: what is the same for all of them. */
typedef struct {
    Shape shape;
    int squared, norm;
    uint64_t round;
    const int32_t *local, *kinds;           /* of each run: linearised at z_p or at w; which noise */
    const float *w;
} Round;

/* One agent's part: arrays of its own, and one number a run where nothing else is said. */
typedef struct {
    const Records *records;                 /* NULL: `given` is the sum, and `bound` what goes with it */
    const float *given, *clip;
    float *z, *dual, *bound;
    const double *params, *constant;        /* (runs, N_PARAMS); the bound where that is a constant, else 0 */
    const uint64_t *keys;                   /* (runs, 2) */
    double *noise, *binding, *clock;        /* sum |xi|; entries that a constraint stops; seconds of gradient, noise, update */
} Own;

static size_t move_scratch(const Shape *s)
{
    const size_t W = (size_t)s->width, rows = (size_t)update_rows(s->width), K = (size_t)s->classes;
    return sizeof(float) * (N_COLUMNS * W + rows * W + MAX(rows * K, 2 * W)) + sizeof(double) * 2 * W
         + sizeof(Stream) * (size_t)s->runs + (N_COLUMNS + 8) * 64;
}

/* The sum at each run's point, noise scaled to its bound, step, and dual. */
static void move_one(const Round *round, const Own *own, float *sum, float *part, float *point, char *pass, char *rest)
{
    const Shape *s = &round->shape;
    const int64_t R = s->runs, K = s->classes, W = s->width, size = s->features * W;
    const double begun = now();
    if (own->records) {
        int64_t local = 0;
        for (int64_t r = 0; r < R; r++)
            local += round->local[r] != 0;
        const float *at = local == R ? own->z : round->w;
        if (local && local < R) {
            memcpy(point, round->w, sizeof(float) * (size_t)size);
            for (int64_t r = 0; r < R; r++)
                for (int64_t j = 0; round->local[r] && j < s->features; j++)
                    memcpy(point + j * W + r * K, own->z + j * W + r * K, sizeof(float) * (size_t)K);
            at = point;
        }
        sum_all(own->records, s, at, round->squared, round->norm, own->clip, sum, own->bound, part, pass);
    }
    own->clock[0] += now() - begun;
    const double asked = now();
    double drawing = 0;
    float *columns[N_COLUMNS];
    for (int i = 0; i < N_COLUMNS; i++)
        memset(columns[i] = carve(&rest, sizeof(float) * (size_t)W), 0, sizeof(float) * (size_t)W);
    const int64_t rows = update_rows(W);
    float *noise = carve(&rest, sizeof(float) * (size_t)(rows * W));
    float *buffer = carve(&rest, sizeof(float) * (size_t)MAX(rows * K, 2 * W));
    double *total = carve(&rest, sizeof(double) * 2 * (size_t)W);
    Stream *streams = carve(&rest, sizeof(Stream) * (size_t)R);
    memset(noise, 0, sizeof(float) * (size_t)(rows * W));
    memset(total, 0, sizeof(double) * 2 * (size_t)W);
    for (int64_t r = 0; r < R; r++) {
        const double *p = own->params + r * N_PARAMS, bound = own->constant[r] ? own->constant[r] : own->bound[r];
        const double scale = p[POWER] == 2 ? bound * bound : bound;
        own->bound[r] = (float)bound;
        streams[r] = (Stream){{own->keys[2 * r], own->keys[2 * r + 1]}, round->round, 0, round->kinds[r]};
        for (int64_t c = r * K; c < r * K + K; c++) {
            for (int i = 0; i < N_PARAMS; i++)
                columns[i][c] = (float)(i == SLOPE_NOISE || i == STEP_NOISE ? p[i] * scale : p[i]);
            columns[INVERSE][c] = (float)(1.0 / (p[RHO] + p[INV_ETA]));
        }
    }
    loops->update(s, own->records ? sum : own->given, own->z, own->dual, round->w, columns, streams, noise, buffer, total,
                  &drawing);
    for (int64_t r = 0; r < R; r++) {
        own->noise[r] = own->binding[r] = 0;
        for (int64_t c = r * K; c < r * K + K; c++) {
            own->noise[r] += total[c];
            own->binding[r] += total[W + c];
        }
    }
    own->clock[1] += drawing;
    own->clock[2] += now() - asked - drawing;
}

static PyObject *py_move(PyObject *self, PyObject *args)
{
    PyObject *sequence, *o[14];
    Buffers list = {.n = 0};
    long long first, stop, agents, classes;
    unsigned long long t;
    int squared, norm;
    int64_t size = -1, runs = -1;
    (void)self;
    if (!PyArg_ParseTuple(args, "O!LLLKLpiOOOOOOOOOOOOOO", &PyTuple_Type, &sequence, &agents, &first, &stop, &t, &classes,
                          &squared, &norm, o, o + 1, o + 2, o + 3, o + 4, o + 5, o + 6, o + 7, o + 8, o + 9, o + 10,
                          o + 11, o + 12, o + 13))
        return NULL;
    Round round = {.squared = squared, .norm = norm, .round = t};
    round.local = borrow(&list, o[0], "local", "i", &runs);
    round.kinds = borrow(&list, o[1], "kinds", "i", &runs);
    round.w = borrow(&list, o[2], "w", "f", &size);
    Shape s = round.shape = shape_of(&list, size, classes, runs);
    refuse(&list, agents < 1 || first < 0 || first > stop || stop > agents, "first .. stop must be a range of the agents");
    int64_t all_z = list.failed ? 0 : agents * size, all_runs = list.failed ? 0 : agents * runs, all_clocks = 3 * agents;
    int64_t all_params = all_runs * N_PARAMS, all_keys = 2 * all_runs;
    float *z = borrow(&list, o[3], "z", "!f", &all_z), *dual = borrow(&list, o[4], "dual", "!f", &all_z);
    const double *params = borrow(&list, o[5], "params", "d", &all_params);
    const double *constant = borrow(&list, o[6], "constant", "d", &all_runs);
    const uint64_t *keys = borrow(&list, o[7], "keys", "Q", &all_keys);
    const float *clip = borrow(&list, o[8], "clip", "f", &all_runs);
    int64_t range_z = list.failed ? 0 : (stop - first) * size;
    const float *given = o[9] == Py_None ? NULL : borrow(&list, o[9], "sums", "f", &range_z);
    float *bound = borrow(&list, o[10], "bound", "!f", &all_runs);
    double *noise = borrow(&list, o[11], "noise", "!d", &all_runs), *binding = borrow(&list, o[12], "binding", "!d", &all_runs);
    double *clock = borrow(&list, o[13], "clock", "!d", &all_clocks);
    for (int64_t r = 0; !list.failed && r < runs; r++)
        refuse(&list, round.kinds[r] != LAPLACE && round.kinds[r] != GAUSSIAN, "kinds must be LAPLACE or GAUSSIAN");
    refuse(&list, !given && PyTuple_GET_SIZE(sequence) != agents, "there must be records for every agent, or sums");
    const int64_t count = list.failed ? 0 : stop - first;
    const Records **records = calloc((size_t)count + 1, sizeof *records);
    size_t pass = 0;
    for (int64_t i = 0; records && !given && !list.failed && i < count; i++) {
        const Records *x = records[i] = records_of(&list, PyTuple_GET_ITEM(sequence, first + i));
        if (refuse(&list, x && (x->exact || x->features != s.features || x->classes != classes
                                || (norm != 1 && norm != 2) || !x->x_norm[norm - 1]), "records of another kind"))
            break;
        pass = MAX(pass, scratch_of(x, &s));
    }
    const size_t sum = sizeof(float) * (size_t)(list.failed ? 0 : size), mine = list.failed ? 0 : move_scratch(&s);
    char *memory = list.failed || !records ? NULL : malloc(pass + mine + 3 * sum + 8 * 64), *rest = memory;
    if (!memory && !list.failed)
        PyErr_NoMemory(), list.failed = 1;
    if (memory) {
        Py_BEGIN_ALLOW_THREADS
        char *room = carve(&rest, mine), *scratch = carve(&rest, pass);
        float *total = carve(&rest, sum), *part = carve(&rest, sum), *point = carve(&rest, sum);
        for (int64_t i = 0; i < count; i++) {
            const int64_t p = first + i;
            const Own own = {records[i], given ? given + i * size : NULL, clip + p * runs, z + p * size, dual + p * size,
                             bound + p * runs, params + p * runs * N_PARAMS, constant + p * runs, keys + 2 * p * runs,
                             noise + p * runs, binding + p * runs, clock + 3 * p};
            move_one(&round, &own, total, part, point, scratch, room);
        }
        Py_END_ALLOW_THREADS
    }
    free(memory);
    free(records);
    return give_back(&list);
}

static PyObject *py_total(PyObject *self, PyObject *args)
{
    PyObject *o[2];
    Buffers list = {.n = 0};
    long long start, stop, block;
    int64_t total = -1, size = -1;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOLLL", o, o + 1, &start, &stop, &block))
        return NULL;
    float *z = borrow(&list, o[0], "z", "f", &total);
    double *out = borrow(&list, o[1], "out", "!d", &size);
    if (!refuse(&list, size < 1 || total % size || start < 0 || start > stop || stop > size || block < 1,
                "z must be agents x out, start .. stop a range of out, and a block of one agent at least")) {
        Py_BEGIN_ALLOW_THREADS
        loops->total(z, total / size, size, block, start, stop, out);
        Py_END_ALLOW_THREADS
    }
    return give_back(&list);
}

static PyObject *py_use(PyObject *self, PyObject *args)
{
    const char *name = NULL, *old = loops->name;
    (void)self;
    if (!PyArg_ParseTuple(args, "|z", &name))
        return NULL;
    for (size_t i = 0; name && i < sizeof all / sizeof *all; i++)
        if (!strcmp(all[i].name, name) && runs_here(name)) {
            loops = &all[i];
            name = NULL;
        }
    if (name)
        return PyErr_Format(PyExc_ValueError, "no instruction set '%s' on this processor", name);
    return PyUnicode_FromString(old);
}

static PyMethodDef methods[] = {
    {"groups", py_groups, METH_VARARGS,
     "groups(n, features, n_classes, scale, value, start, rows, columns, order, label, (l1, l2)) -> records"},
    {"tiles", py_tiles, METH_VARARGS,
     "tiles(n, features, n_classes, tile, block, scale, (start, index, value), (start, index, value), label, (l1, l2)) "
     "-> records"},
    {"pieces", py_pieces, METH_O, "pieces(records) -> in how many pieces they are summed"},
    {"work", py_work, METH_O, "work(records) -> (numbers that a pass multiplies, bytes of records that it reads)"},
    {"gradient", py_gradient, METH_VARARGS,
     "gradient(records, piece, z, n_runs, squared, norm, clip, out, bound); piece -1 is all of them"},
    {"evaluate", py_evaluate, METH_VARARGS,
     "evaluate(x, features, label, z, n_classes, first, stop) -> (sum of softmax losses, errors)"},
    {"noise", py_noise, METH_VARARGS, "noise(kind, key0, key1, round, step, out)"},
    {"move", py_move, METH_VARARGS,
     "move(records, n_agents, first, stop, round, n_classes, squared, norm, local, kinds, w, z, dual, params, constant, "
     "keys, clip, sums, bound, noise, binding, clock); sums of agents first .. stop, or None"},
    {"total", py_total, METH_VARARGS, "total(z, out, start, stop, block)"},
    {"use", py_use, METH_VARARGS, "use(name=None) -> the instruction set in use until now"},
    {NULL, NULL, 0, NULL}};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_kernels", "Loops of the fast engine.", -1, methods,
                                    NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__kernels(void)
{
    for (loops = all; !runs_here(loops->name); loops++)
        ;
    PyObject *m = PyModule_Create(&module);
    if (m && (PyModule_AddIntConstant(m, "LAPLACE", LAPLACE) || PyModule_AddIntConstant(m, "GAUSSIAN", GAUSSIAN)
              || PyModule_AddIntConstant(m, "INTEGERS", INTEGERS)))
        Py_CLEAR(m);
    return m;
}
