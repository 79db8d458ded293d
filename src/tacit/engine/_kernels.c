/* Loops of the fast engine: gradients, noise and updates of one agent, for many runs at once, in float32.

   Layout. J features, K classes, R runs. z, dual, w and grad are (J, width): entry [j, r*K + k] is class k
   of run r, and width is R*K rounded up to 16 floats, padded with zeros. One row is then a few whole vector
   registers, and one pass over the records serves every run. Arrays should begin on 64 bytes.

   Records come twice: by rows for the scores X z, and in blocks by features for the gradient X^T a. Each pass
   then sums rows in registers and stores once; adding into grad record by record waits for its own stores.

   Threads. Every function releases the GIL and touches one agent (or one range of entries) in a fixed
   order, so callers may spread agents over threads and the numbers never depend on how many there are.

   Instruction sets. The loops are in _loops.h, included once per instruction set with LANES floats a register;
   the best one the processor has is chosen at import. Without GNU vector extensions LANES is 1: plain C. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { STRIP = 2048 };      /* entries decoded at a time: 16 KB of scratch */
enum { CHUNK = 4096 };      /* noise held at a time in an update, of all runs: 16 KB, a third of L1 */
enum { LAPLACE, GAUSSIAN, INTEGERS };
enum { WEIGHT, REG_Z, REG_W, RHO, INV_ETA, RADIUS, LOW, HIGH, SLOPE_NOISE, STEP_NOISE, DUAL_BEFORE, DUAL_AFTER,
       N_PARAMS, INVERSE = N_PARAMS, N_COLUMNS };

typedef struct {            /* a sparse matrix by rows: row i holds entries start[i] .. start[i+1] */
    int64_t n, longest;     /* rows, and the most entries in one */
    const int64_t *start;
    const void *index, *value;
    int index_size, value_size;     /* uint16 or uint32; uint8 or float32 */
    float scale;            /* an entry is scale * value */
} Lists;

typedef struct { int64_t features, classes, runs, width; } Shape;
typedef struct { uint64_t key[2], round, step; int kind; } Stream;

typedef struct {            /* scratch for one block of records */
    int64_t size, n;                /* records it may hold, and does */
    float *score, *column;          /* score (n, width); column (R*K, size) is its transpose */
    float *top, *sum;               /* one number a record */
    uint32_t *offset;               /* a strip of entries, decoded */
    float *value;
    void *memory;
} Block;

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

#if defined(__GNUC__)
#define INLINE static inline __attribute__((always_inline))
#define PREFETCH(p) __builtin_prefetch(p, 1, 2)     /* to be written, into L2 */
#else
#define INLINE static inline
#define PREFETCH(p) ((void)0)
#endif

INLINE uint32_t bits_of(float x) { uint32_t b; memcpy(&b, &x, 4); return b; }
INLINE float float_of(uint32_t b) { float x; memcpy(&x, &b, 4); return x; }

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

#if defined(__GNUC__) && (defined(__x86_64__) || defined(__i386__))
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
#define TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi2")))
#include "_loops.h"
#define LANES 8
#define SUFFIX _avx2
#define TARGET __attribute__((target("avx2,fma,bmi2")))
#include "_loops.h"
#endif
#ifdef __GNUC__
#define LANES 4
#else
#define LANES 1
#endif
#define SUFFIX _plain
#define TARGET
#include "_loops.h"

typedef struct {
    const char *name;
    void (*gradient)(const Lists *, const Lists *, const int64_t *, const float *, const Shape *, const float *, int,
                     int, const float *, float *, float *, Block *);
    void (*noise)(const Stream *, int64_t, int64_t, void *);
    void (*update)(const Shape *, const float *, float *, float *, const float *, float *const *, const Stream *,
                   float *, float *, double *, double *);
    void (*reduce)(const float *, int64_t, int64_t, int64_t, int64_t, double *);
} Loops;
#define LIST(set) {#set, gradient_##set, noise_##set, update_##set, reduce_##set}
static const Loops all[] = {
#ifdef HAVE_X86
    LIST(avx512), LIST(avx2),
#endif
    LIST(plain)};
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
typedef struct { Py_buffer view[12]; int n, failed; } Buffers;

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
    const int64_t n = view->len / view->itemsize;
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
    refuse(list, size % width || size > UINT32_MAX, "z must be rows of n_runs * n_classes floats padded to 16");
    return (Shape){size / width, classes, runs, width};
}

/* A triple (start, index, value). Indices are trusted: they are checked once, when the records are packed. */
static Lists lists_of(Buffers *list, PyObject **o, double scale)
{
    int64_t n = -1, nnz = -1;
    Lists x = {.scale = (float)scale, .start = borrow(list, o[0], "start", "q", &n),
               .index = borrow(list, o[1], "index", "HI", &nnz), .value = borrow(list, o[2], "value", "Bf", &nnz)};
    x.n = n - 1;
    if (refuse(list, n < 1, "start is empty"))
        return x;
    x.index_size = (int)list->view[list->n - 2].itemsize;
    x.value_size = (int)list->view[list->n - 1].itemsize;
    int bad = x.start[0] < 0 || x.start[x.n] > nnz;
    for (int64_t i = 0; i < x.n; i++) {
        bad |= x.start[i] > x.start[i + 1];
        x.longest = MAX(x.longest, x.start[i + 1] - x.start[i]);
    }
    refuse(list, bad, "start must rise, within the number of entries");
    return x;
}

static int64_t *labels_of(Buffers *list, PyObject *o, int64_t n, int64_t classes)
{
    int64_t *label = borrow(list, o, "label", "q", &n), bad = 0;
    for (int64_t i = 0; !list->failed && i < n; i++)
        bad |= label[i] < 0 || label[i] >= classes;
    refuse(list, bad != 0, "labels must lie in 0..n_classes-1");
    return label;
}

static int block_alloc(Buffers *list, Block *b, int64_t size, int64_t width, int64_t longest)
{
    const size_t cells = sizeof(float) * size * width, lane = sizeof(float) * size;
    const size_t strip = sizeof(float) * (longest > STRIP ? longest : STRIP);
    char *p = b->memory = malloc(2 * cells + 2 * lane + 2 * strip + 8 * 64);
    if (!p) {
        PyErr_NoMemory();
        return !(list->failed = 1);
    }
    b->size = size;
    b->score = carve(&p, cells);
    b->column = carve(&p, cells);
    b->top = carve(&p, lane);
    b->sum = carve(&p, lane);
    b->offset = carve(&p, strip);
    b->value = carve(&p, strip);
    return 1;
}

static PyObject *py_gradient(PyObject *self, PyObject *args)
{
    PyObject *o[12];
    Buffers list = {.n = 0};
    Block b = {0};
    double scale;
    long long block, classes, runs;
    int squared, norm;
    int64_t size = -1;
    (void)self;
    if (!PyArg_ParseTuple(args, "(OOO)(OOO)dLOOOLLpiOOO", o, o + 1, o + 2, o + 3, o + 4, o + 5, &scale, &block, o + 6,
                          o + 7, o + 8, &classes, &runs, &squared, &norm, o + 9, o + 10, o + 11))
        return NULL;
    Lists rows = lists_of(&list, o, scale), columns = lists_of(&list, o + 3, scale);
    float *x_norm = borrow(&list, o[7], "x_norm", "f", &rows.n), *z = borrow(&list, o[8], "z", "f", &size);
    Shape s = shape_of(&list, size, classes, runs);
    int64_t *label = labels_of(&list, o[6], rows.n, classes);
    float *clip = borrow(&list, o[9], "clip", "f", &s.runs), *grad = borrow(&list, o[10], "grad", "!f", &size);
    float *bound = borrow(&list, o[11], "bound", "!f", &s.runs);
    refuse(&list, norm != 1 && norm != 2, "norm must be 1 or 2");
    refuse(&list, block < 1 || columns.n != (rows.n + block - 1) / block * s.features,
           "columns must hold one list a block and feature");
    if (!list.failed && block_alloc(&list, &b, block, s.width, MAX(rows.longest, columns.longest))) {
        Py_BEGIN_ALLOW_THREADS
        loops->gradient(&rows, &columns, label, x_norm, &s, z, squared, norm, clip, grad, bound, &b);
        Py_END_ALLOW_THREADS
    }
    free(b.memory);
    return give_back(&list);
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

static PyObject *py_update(PyObject *self, PyObject *args)
{
    PyObject *o[9];
    Buffers list = {.n = 0};
    long long classes;
    unsigned long long round, step;
    int64_t size = -1, n_params = -1;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOOOOOOKKLOO", o, o + 1, o + 2, o + 3, o + 4, o + 5, o + 7, &round, &step,
                          &classes, o + 6, o + 8))
        return NULL;
    float *grad = borrow(&list, o[0], "grad", "f", &size), *z = borrow(&list, o[1], "z", "!f", &size);
    float *dual = borrow(&list, o[2], "dual", "!f", &size), *w = borrow(&list, o[3], "w", "f", &size);
    const double *params = borrow(&list, o[4], "params", "d", &n_params);
    Shape s = shape_of(&list, size, classes, n_params / N_PARAMS);
    int64_t two = 2 * s.runs, W = s.width;
    const uint64_t *keys = borrow(&list, o[5], "keys", "Q", &two);
    const int32_t *kinds = borrow(&list, o[7], "kinds", "i", &s.runs);
    int64_t one = 1;
    double *sums = borrow(&list, o[6], "sums", "!d", &s.runs), *clock = borrow(&list, o[8], "clock", "!d", &one);
    for (int64_t r = 0; !list.failed && r < s.runs; r++)
        refuse(&list, kinds[r] != LAPLACE && kinds[r] != GAUSSIAN, "kinds must be LAPLACE or GAUSSIAN");
    if (list.failed)
        return give_back(&list);
    const int64_t rows = update_rows(W), noises = rows * W;
    char *memory = calloc(1, sizeof(float) * (N_COLUMNS * W + noises + rows * classes) + sizeof(double) * W
                             + sizeof(Stream) * s.runs + 5 * 64), *rest = memory;
    if (!memory)
        return PyErr_NoMemory(), list.failed = 1, give_back(&list);
    float *columns[N_COLUMNS], *noise, *buffer;
    double *total;
    Stream *streams;
    for (int i = 0; i < N_COLUMNS; i++)
        columns[i] = carve(&rest, sizeof(float) * W);
    noise = carve(&rest, sizeof(float) * noises);
    buffer = carve(&rest, sizeof(float) * rows * classes);
    total = carve(&rest, sizeof(double) * W);
    streams = carve(&rest, sizeof(Stream) * s.runs);
    for (int64_t r = 0; r < s.runs; r++) {
        streams[r] = (Stream){{keys[2 * r], keys[2 * r + 1]}, round, step, kinds[r]};
        for (int64_t k = 0; k < classes; k++) {
            const double *p = params + r * N_PARAMS;
            for (int i = 0; i < N_PARAMS; i++)
                columns[i][r * classes + k] = (float)p[i];
            columns[INVERSE][r * classes + k] = (float)(1.0 / (p[RHO] + p[INV_ETA]));
        }
    }
    Py_BEGIN_ALLOW_THREADS
    loops->update(&s, grad, z, dual, w, columns, streams, noise, buffer, total, clock);
    Py_END_ALLOW_THREADS
    for (int64_t r = 0; r < s.runs; r++) {
        sums[r] = 0;
        for (int64_t k = 0; k < classes; k++)
            sums[r] += total[r * classes + k];
    }
    free(memory);
    return give_back(&list);
}

static PyObject *py_reduce(PyObject *self, PyObject *args)
{
    PyObject *o[2];
    Buffers list = {.n = 0};
    long long start, stop;
    int64_t total = -1, size = -1;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOLL", o, o + 1, &start, &stop))
        return NULL;
    float *z = borrow(&list, o[0], "z", "f", &total);
    double *out = borrow(&list, o[1], "out", "!d", &size);
    if (!refuse(&list, size < 1 || total % size || start < 0 || start > stop || stop > size,
                "z must be agents x out, and start .. stop a range of out")) {
        Py_BEGIN_ALLOW_THREADS
        loops->reduce(z, total / size, size, start, stop, out);
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
    {"gradient", py_gradient, METH_VARARGS,
     "gradient((start, index, value), (start, index, value), scale, block, label, x_norm, z, n_classes, n_runs, squared, norm, clip, grad, bound)"},
    {"noise", py_noise, METH_VARARGS, "noise(kind, key0, key1, round, step, out)"},
    {"update", py_update, METH_VARARGS,
     "update(grad, z, dual, w, params, keys, kinds, round, step, n_classes, sums, clock)"},
    {"reduce", py_reduce, METH_VARARGS, "reduce(z, out, start, stop)"},
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
