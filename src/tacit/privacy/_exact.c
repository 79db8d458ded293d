/* Exact discrete Laplace and Gaussian integers: the compiled twin of exact.py, which says what is drawn and why.

   A draw is |n| = u + s k with t = m s, u uniform on 0 .. s-1, and k from a table; x = u / s. What is left are coins:

       Laplace    exp(-|n| / t)         = exp(-k / m)            exp(-x / m)
       Gaussian   exp(-n^2 / (2 t^2))   = exp(-k^2 / (2 m^2))    exp(-x (x + 2k) / (2 m^2))

   With m = 64 nearly every coin is decided by the first digit, so that one word of 64 bits makes nearly every draw.
   All comparisons are of integers, whole * 256 stays below 2^64, and a tie draws further digits. Bytes come from the
   caller, as many as he is asked for; none is kept when the call ends. No lock of the interpreter is held meanwhile. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>

enum { LAPLACE, GAUSSIAN };

#define TIED 0xffff           /* in `direct`: 16 bits do not tell the level */
#define MOST (1 << 20)        /* bytes asked for at once */
#define LARGEST_LEVEL (1 << 27)

typedef struct {
    const unsigned char *next, *end;
    PyObject *bits, *resolve, *held;
    PyThreadState *thread; /* of the caller, while the interpreter is free for others */
    jmp_buf failed;
    const uint16_t *direct; /* the level of every word of 16 bits, or TIED */
    const uint64_t *tail;   /* floor(2^64 P(k >= i)) for i = 1, 2, ..., down to 0 */
    Py_ssize_t levels, missing;
    uint64_t s, last; /* last: the largest word that gives no value of u more often than another */
    int64_t m;
    int law, wide;
} Draw;

/* More bytes; what the last call left over was not looked at. */
static void refill(Draw *d, Py_ssize_t least)
{
    Py_ssize_t n = d->missing < MOST / 8 - 16 ? 8 * (d->missing + d->missing / 64 + 16) : MOST;
    PyEval_RestoreThread(d->thread);
    Py_CLEAR(d->held);
    d->held = PyObject_CallFunction(d->bits, "n", n);
    int usable = d->held != NULL && PyBytes_Check(d->held) && PyBytes_GET_SIZE(d->held) >= least;
    if (d->held != NULL && !usable) PyErr_SetString(PyExc_ValueError, "the source of random bytes gave too few");
    d->thread = PyEval_SaveThread();
    if (!usable) longjmp(d->failed, 1);
    d->next = (const unsigned char *)PyBytes_AS_STRING(d->held);
    d->end = d->next + PyBytes_GET_SIZE(d->held);
}

static inline uint64_t take(Draw *d, int bytes)
{
    uint64_t word = 0;
    if (d->end - d->next < bytes) refill(d, bytes);
    if (bytes == 8) { /* one load where the machine is little-endian */
        const unsigned char *p = d->next;
        word = (uint64_t)p[0] | (uint64_t)p[1] << 8 | (uint64_t)p[2] << 16 | (uint64_t)p[3] << 24 |
               (uint64_t)p[4] << 32 | (uint64_t)p[5] << 40 | (uint64_t)p[6] << 48 | (uint64_t)p[7] << 56;
    } else {
        for (int i = 0; i < bytes; i++) word |= (uint64_t)d->next[i] << 8 * i;
    }
    d->next += bytes;
    return word;
}

/* A coin of probability part/whole, part <= whole < 2^56, from its first random digit on. */
static int coin_after(Draw *d, uint64_t part, uint64_t whole, uint64_t digit)
{
    for (;;) {
        uint64_t shifted = part << 8, own = shifted / whole;
        if (digit != own) return digit < own;
        part = shifted - own * whole;
        if (part == 0) return 0;
        digit = take(d, 1);
    }
}

static int coin(Draw *d, uint64_t part, uint64_t whole)
{
    return coin_after(d, part, whole, take(d, 1));
}

/* A coin of probability exp(-g), where the first coin of probability g has the first digit `digit`:

       g = p/q x           (k < 0)          g = p/q x (x + 2k)/(2k + 1)           x = u / s

   Coins of probability g/1, g/2, ... are tossed until one fails: an even number is won with probability exp(-g). */
static int exp_minus(Draw *d, uint64_t p, uint64_t q, uint64_t u, int64_t k, uint64_t digit)
{
    for (uint64_t j = 1;; j++) {
        if (!coin_after(d, p, q * j, digit) || !coin(d, u, d->s) ||
            (k >= 0 && !coin(d, u + 2 * (uint64_t)k * d->s, (2 * (uint64_t)k + 1) * d->s)))
            return j & 1;
        digit = take(d, 1);
    }
}

/* The level of a word of 16 bits that lies on an edge of the table: 48 more bits, and then as many as it takes. */
static int64_t level_after(Draw *d, uint64_t word)
{
    uint64_t whole = word << 48 | take(d, 6);
    Py_ssize_t low = 0, high = d->levels; /* tail falls: the first entry that is not above */
    while (low < high) {
        Py_ssize_t middle = (low + high) / 2;
        if (d->tail[middle] > whole) low = middle + 1; else high = middle;
    }
    if (low == d->levels || d->tail[low] != whole) return low;
    PyEval_RestoreThread(d->thread);
    PyObject *found = PyObject_CallFunction(d->resolve, "K", (unsigned long long)whole);
    int64_t level = found == NULL ? -1 : PyLong_AsLongLong(found);
    Py_XDECREF(found);
    if (!PyErr_Occurred() && (level < 0 || level >= LARGEST_LEVEL))
        PyErr_SetString(PyExc_OverflowError, "a level beyond all that can be drawn");
    int wrong = PyErr_Occurred() != NULL;
    d->thread = PyEval_SaveThread();
    if (wrong) longjmp(d->failed, 1);
    return level;
}

/* One candidate: 1 and n, or 0 where it is rejected. */
static inline int candidate(Draw *d, int law, int64_t *n)
{
    uint64_t word = take(d, 8), digit = word >> 17 & 0xff, u = d->wide ? take(d, 8) : word >> 25;
    int64_t k = d->direct[word & 0xffff];
    if (u > d->last) return 0;
    u %= d->s;
    if (k == TIED) k = level_after(d, word & 0xffff);
    uint64_t m = (uint64_t)d->m, p = law == GAUSSIAN ? 2 * (uint64_t)k + 1 : 1, q = law == GAUSSIAN ? 2 * m * m : m;
    if (p <= q) {
        if (digit * q <= p << 8 && !exp_minus(d, p, q, u, law == GAUSSIAN ? k : -1, digit)) return 0;
    } else { /* g may exceed one: exp(-x^2 / (2 m^2)), and k times exp(-x / m^2) */
        if (!exp_minus(d, 1, q, u, 0, digit)) return 0;
        for (int64_t i = 0; i < k; i++)
            if (!exp_minus(d, 1, m * m, u, -1, take(d, 1))) return 0;
    }
    int64_t size = (int64_t)(u + d->s * (uint64_t)k);
    if (word >> 16 & 1) {
        if (size == 0) return 0; /* or zero would count twice */
        size = -size;
    }
    *n = size;
    return 1;
}

static inline void draw_all(Draw *d, int law, int64_t *out, Py_ssize_t n)
{
    for (Py_ssize_t i = 0; i < n;) {
        d->missing = n - i;
        i += candidate(d, law, out + i);
    }
}

/* Whether all were drawn; else an error is set. */
static int run(Draw *d, int64_t *out, Py_ssize_t n)
{
    if (setjmp(d->failed)) return 0;
    if (d->law == GAUSSIAN) draw_all(d, GAUSSIAN, out, n); /* two copies of the loop, each for its law */
    else draw_all(d, LAPLACE, out, n);
    return 1;
}

static PyObject *fill(PyObject *self, PyObject *args)
{
    Draw d = {0};
    Py_buffer out, direct, tail;
    unsigned long long scale;
    long long m;
    (void)self;
    if (!PyArg_ParseTuple(args, "iKLy*y*w*OO", &d.law, &scale, &m, &direct, &tail, &out, &d.bits, &d.resolve))
        return NULL;
    int fits = (d.law == LAPLACE || d.law == GAUSSIAN) && (m == 1 || m == 64) && scale >= 1 && scale <= 1ull << 41 &&
               scale % (unsigned long long)m == 0 && direct.len == 2 << 16 && tail.len >= 8 && tail.len % 8 == 0 &&
               out.len % 8 == 0;
    int done = 0;
    if (!fits) {
        PyErr_SetString(PyExc_ValueError, "no law, or a scale or table that does not fit");
    } else {
        d.m = m;
        d.s = scale / (unsigned long long)m;
        d.wide = d.s > 1ull << 35; /* 39 bits of the word are for u: one in 16 is rejected at most */
        d.last = d.wide ? UINT64_MAX - (UINT64_MAX % d.s + 1) % d.s : (1ull << 39) / d.s * d.s - 1;
        d.direct = direct.buf;
        d.tail = tail.buf;
        d.levels = tail.len / 8;
        d.thread = PyEval_SaveThread();
        done = run(&d, out.buf, out.len / 8);
        PyEval_RestoreThread(d.thread);
    }
    Py_CLEAR(d.held);
    PyBuffer_Release(&out);
    PyBuffer_Release(&tail);
    PyBuffer_Release(&direct);
    if (!done) return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"fill", fill, METH_VARARGS,
     "fill(law, t, m, direct, tail, out, bits, resolve): fill out with noise from the bytes that bits(n) gives."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_exact", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__exact(void)
{
    PyObject *made = PyModule_Create(&module);
    if (made == NULL) return NULL;
    if (PyModule_AddIntConstant(made, "TIED", TIED) < 0 || PyModule_AddIntConstant(made, "LAPLACE", LAPLACE) < 0 ||
        PyModule_AddIntConstant(made, "GAUSSIAN", GAUSSIAN) < 0) {
        Py_DECREF(made);
        return NULL;
    }
    return made;
}
