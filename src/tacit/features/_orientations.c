/* Gradient orientations of images, pooled in cells, and their products with public axes: tacit/features/gradients.py
   says what is computed, and computes the same, bit for bit.

   Each function takes the records of a block one by one, so nothing of one record reaches another. They release the
   GIL and write to no argument but `out`, so callers may take several blocks at a time.

   Equal bits on every machine need two things. What is rounded is made of + - * / and sqrt alone, in one order, and
   this file is compiled without contraction of a * b + c. What is summed in an order that suits the processor (project)
   is whole numbers below 2^53, and no order rounds them. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { WIDE = 8 };      /* outputs that a product takes at a time: two registers of AVX2, one of AVX-512 */
enum { ROWS = 4 };      /* records that a product takes at a time */
enum { CHUNK = 32 };    /* records whose features stay in the second level cache */
enum { LARGEST = 1 << 14 };     /* pixels of a side, channels, orientations: sizes stay far below 2^63 */

typedef struct {
    Py_ssize_t height, width, channels, bins, down, across;     /* bins: with those of intensities; down x across cells */
    Py_ssize_t turns;           /* orientations of a full turn */
    float share, grid;          /* the weight of an intensity; steps of a feature */
    const float *rows, *columns;        /* (height, down), (width, across): the weight of a line in each cell */
    float angle[6];             /* atan(t) / (2 pi) = t (angle[0] + angle[1] t^2 + ...) for t in [0, 1] */
} Shape;

typedef struct { float *image, *strength, *turn, *line, *cells; int32_t *first, *last; } Work;

/* ---- one image to its features */

static void gradients(const Shape *s, const float *above, const float *here, const float *below, float *strength,
                      float *turn)
{
    const Py_ssize_t c = s->channels;
    const float *a = s->angle;
    for (Py_ssize_t x = 0; x < s->width; x++) {
        float gx = 0, gy = 0, square = -1;
        for (Py_ssize_t k = 0; k < c; k++) {
            const float right = 0.5f * (here[(x + 2) * c + k] - here[x * c + k]);
            const float down = 0.5f * (below[(x + 1) * c + k] - above[(x + 1) * c + k]), own = right * right + down * down;
            const int stronger = own > square;
            gx = stronger ? right : gx;
            gy = stronger ? down : gy;
            square = stronger ? own : square;
        }
        const float ax = fabsf(gx), ay = fabsf(gy), least = ay < ax ? ay : ax, most = ay < ax ? ax : ay;
        const float t = least / (most > 0 ? most : 1), q = t * t;
        float r = t * (a[0] + q * (a[1] + q * (a[2] + q * (a[3] + q * (a[4] + q * a[5])))));
        r = r > 0.125f ? 0.125f : r;
        r = ay > ax ? 0.25f - r : r;
        r = gx < 0 ? 0.5f - r : r;
        r = gy < 0 ? 1.0f - r : r;
        strength[x] = sqrtf(square);
        turn[x] = r * (float)s->turns;
    }
}

static void describe(const Shape *s, const float *x, float *out, const Work *w)
{
    const Py_ssize_t c = s->channels, line = (s->width + 2) * c, in_line = s->across * s->bins;
    for (Py_ssize_t i = 0; i < s->height; i++) {        /* the image with its border twice: no gradient leaves it */
        float *own = w->image + (i + 1) * line;
        for (Py_ssize_t j = 0; j < s->width * c; j++) {
            const float v = x[i * s->width * c + j];
            own[c + j] = v > 0 ? (v > 1 ? 1 : v) : 0;   /* NaN is 0 */
        }
        memcpy(own, own + c, sizeof(float) * (size_t)c);
        memcpy(own + line - c, own + line - 2 * c, sizeof(float) * (size_t)c);
    }
    memcpy(w->image, w->image + line, sizeof(float) * (size_t)line);
    memcpy(w->image + (s->height + 1) * line, w->image + s->height * line, sizeof(float) * (size_t)line);
    memset(w->cells, 0, sizeof(float) * (size_t)(s->down * in_line));
    for (Py_ssize_t i = 0; i < s->height; i++) {
        const float *above = w->image + i * line, *here = above + line;
        gradients(s, above, here, here + line, w->strength, w->turn);
        memset(w->line, 0, sizeof(float) * (size_t)in_line);
        for (Py_ssize_t x0 = 0; x0 < s->width; x0++) {
            const Py_ssize_t low = (Py_ssize_t)w->turn[x0];     /* a turn is in [0, turns] */
            const float more = w->turn[x0] - (float)low, v = w->strength[x0], a = v * (1 - more), b = v * more;
            const Py_ssize_t first = low < s->turns ? low : 0, second = low + 1 < s->turns ? low + 1 : low + 1 - s->turns;
            for (Py_ssize_t cell = w->first[x0]; cell < w->last[x0]; cell++) {
                const float weight = s->columns[x0 * s->across + cell];
                float *own = w->line + cell * s->bins;
                own[first] += weight * a;
                own[second] += weight * b;
                for (Py_ssize_t k = s->turns; k < s->bins; k++)
                    own[k] += weight * (s->share * here[(x0 + 1) * c + k - s->turns]);
            }
        }
        for (Py_ssize_t cell = 0; cell < s->down; cell++) {
            const float weight = s->rows[i * s->down + cell];
            float *own = w->cells + cell * in_line;
            if (weight > 0)
                for (Py_ssize_t k = 0; k < in_line; k++)
                    own[k] += weight * w->line[k];
        }
    }
    for (Py_ssize_t k = 0; k < s->down * in_line; k++)
        out[k] = rintf(sqrtf(w->cells[k]) * s->grid);
}

static int describe_all(const Shape *s, const float *x, float *out, Py_ssize_t n)
{
    const Py_ssize_t in_line = s->across * s->bins;
    Work w;
    float *room = malloc(sizeof(float) * (size_t)((s->height + 2) * (s->width + 2) * s->channels + 2 * s->width +
                                                  (1 + s->down) * in_line));
    int32_t *edges = malloc(sizeof(int32_t) * 2 * (size_t)s->width);
    const int there = room != NULL && edges != NULL;
    if (there) {
        w.image = room;
        w.strength = w.image + (s->height + 2) * (s->width + 2) * s->channels;
        w.turn = w.strength + s->width;
        w.line = w.turn + s->width;
        w.cells = w.line + in_line;
        w.first = edges;
        w.last = edges + s->width;
        for (Py_ssize_t j = 0; j < s->width; j++) {
            const float *weight = s->columns + j * s->across;
            int32_t first = 0, last = (int32_t)s->across;
            while (first < last && !(weight[first] > 0)) first++;
            while (last > first && !(weight[last - 1] > 0)) last--;
            w.first[j] = first;
            w.last[j] = last;
        }
        for (Py_ssize_t i = 0; i < n; i++)
            describe(s, x + i * s->height * s->width * s->channels, out + i * s->down * in_line, &w);
    }
    free(room);
    free(edges);
    return there;
}

/* ---- features to outputs: (q - mean) axes, whole numbers, then scales and norm one */

/* out (ROWS, WIDE) = sum_j c[j] (ROWS) axes[j] (WIDE). Whole numbers: no order and no fused step rounds differently. */
#if defined(__GNUC__)
typedef double Doubles __attribute__((vector_size(8 * WIDE), aligned(8)));
typedef float Floats __attribute__((vector_size(4 * WIDE), aligned(4)));
#define PRODUCTS(name, TARGET)                                                                                          \
    TARGET static void name(const double *restrict c, const float *restrict axes, Py_ssize_t n, double *restrict out)  \
    {                                                                                                                  \
        Doubles sum[ROWS] = {{0}};                                                                                     \
        for (Py_ssize_t j = 0; j < n; j++) {                                                                           \
            const Doubles own = __builtin_convertvector(*(const Floats *)(axes + j * WIDE), Doubles);                  \
            for (int r = 0; r < ROWS; r++)                                                                             \
                sum[r] += c[j * ROWS + r] * own;                                                                       \
        }                                                                                                              \
        memcpy(out, sum, sizeof sum);                                                                                  \
    }
#else
#define PRODUCTS(name, TARGET)                                                                                          \
    static void name(const double *c, const float *axes, Py_ssize_t n, double *out)                                    \
    {                                                                                                                  \
        memset(out, 0, sizeof(double) * ROWS * WIDE);                                                                  \
        for (Py_ssize_t j = 0; j < n; j++)                                                                             \
            for (int r = 0; r < ROWS; r++)                                                                             \
                for (int k = 0; k < WIDE; k++)                                                                         \
                    out[r * WIDE + k] += c[j * ROWS + r] * axes[j * WIDE + k];                                         \
    }
#endif

PRODUCTS(products_anywhere, )
#if defined(__GNUC__) && defined(__x86_64__)
PRODUCTS(products_avx2, __attribute__((target("avx2,fma"))))
PRODUCTS(products_avx512, __attribute__((target("avx512f,avx512dq,avx512vl,avx2,fma"))))
#endif

typedef void (*Products)(const double *, const float *, Py_ssize_t, double *);

static Products products(void)
{
#if defined(__GNUC__) && defined(__x86_64__)
    const int avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        return products_avx512;
    if (avx2) return products_avx2;
#endif
    return products_anywhere;
}

/* axes is (panels, features, WIDE): the panel of some outputs after that of others, the last filled with zeros */
static int project_all(const float *q, const float *mean, const float *axes, const double *scale, double length,
                       Py_ssize_t features, Py_ssize_t outputs, float *out, Py_ssize_t n)
{
    const Py_ssize_t panels = (outputs + WIDE - 1) / WIDE;
    const Products sums = products();
    double *centred = malloc(sizeof(double) * CHUNK * (size_t)features);
    double *made = malloc(sizeof(double) * CHUNK * WIDE * (size_t)panels);      /* (groups, panels, ROWS, WIDE) */
    const int there = centred != NULL && made != NULL;
    for (Py_ssize_t start = 0; there && start < n; start += CHUNK) {
        const Py_ssize_t rows = n - start < CHUNK ? n - start : CHUNK, groups = (rows + ROWS - 1) / ROWS;
        for (Py_ssize_t i = 0; i < groups * ROWS; i++)
            for (Py_ssize_t j = 0; j < features; j++)
                centred[(i / ROWS * features + j) * ROWS + i % ROWS] =
                    i < rows ? (double)q[(start + i) * features + j] - (double)mean[j] : 0.0;
        for (Py_ssize_t panel = 0; panel < panels; panel++)
            for (Py_ssize_t g = 0; g < groups; g++)
                sums(centred + g * features * ROWS, axes + panel * features * WIDE, features,
                     made + (g * panels + panel) * ROWS * WIDE);
        for (Py_ssize_t i = 0; i < rows; i++) {
            double square = 0;
            for (Py_ssize_t k = 0; k < outputs; k++) {
                double *own = made + ((i / ROWS * panels + k / WIDE) * ROWS + i % ROWS) * WIDE + k % WIDE;
                *own *= scale[k];
                square += *own * *own;
            }
            const double factor = square > 0 ? length / sqrt(square) : 0;
            for (Py_ssize_t k = 0; k < outputs; k++)
                out[(start + i) * outputs + k] =
                    (float)(made[((i / ROWS * panels + k / WIDE) * ROWS + i % ROWS) * WIDE + k % WIDE] * factor);
        }
    }
    free(centred);
    free(made);
    return there;
}

/* ---- Python: sizes are checked against the bytes of every array, so no caller makes a loop leave one */

static int fits(const Py_buffer *buffer, Py_ssize_t count, Py_ssize_t size)
{
    return buffer->len == count * size;
}

static PyObject *py_describe(PyObject *self, PyObject *args)
{
    Shape s;
    Py_buffer x, rows, columns, out;
    (void)self;
    if (!PyArg_ParseTuple(args, "y*(nnn)n(ff)(ffffff)y*y*w*", &x, &s.height, &s.width, &s.channels, &s.turns, &s.share,
                          &s.grid, &s.angle[0], &s.angle[1], &s.angle[2], &s.angle[3], &s.angle[4], &s.angle[5], &rows, &columns, &out))
        return NULL;
    const Py_ssize_t f = sizeof(float);
    int right = s.height >= 1 && s.width >= 1 && s.channels >= 1 && s.turns >= 2 && s.height <= LARGEST &&
                s.width <= LARGEST && s.channels <= LARGEST && s.turns <= LARGEST, there = 1;
    if (right) {
        s.bins = s.turns + (s.channels > 1 ? s.channels : 0);
        s.down = rows.len / f / s.height;
        s.across = columns.len / f / s.width;
        const Py_ssize_t n = x.len / f / (s.height * s.width * s.channels);
        right = s.down >= 1 && s.across >= 1 && s.down <= LARGEST && s.across <= LARGEST &&
                fits(&rows, s.height * s.down, f) && fits(&columns, s.width * s.across, f) &&
                fits(&x, n * s.height * s.width * s.channels, f) && fits(&out, n * s.down * s.across * s.bins, f);
        if (right) {
            s.rows = rows.buf;
            s.columns = columns.buf;
            Py_BEGIN_ALLOW_THREADS
            there = describe_all(&s, x.buf, out.buf, n);
            Py_END_ALLOW_THREADS
        }
    }
    PyBuffer_Release(&x);
    PyBuffer_Release(&rows);
    PyBuffer_Release(&columns);
    PyBuffer_Release(&out);
    if (!right) return PyErr_Format(PyExc_ValueError, "arrays of sizes that do not belong together");
    if (!there) return PyErr_NoMemory();
    Py_RETURN_NONE;
}

static PyObject *py_project(PyObject *self, PyObject *args)
{
    Py_buffer q, mean, axes, scale, out;
    double length;
    (void)self;
    if (!PyArg_ParseTuple(args, "y*y*y*y*dw*", &q, &mean, &axes, &scale, &length, &out)) return NULL;
    const Py_ssize_t f = sizeof(float), features = mean.len / f, outputs = scale.len / (Py_ssize_t)sizeof(double);
    int right = features >= 1 && outputs >= 1, there = 1;
    if (right) {
        const Py_ssize_t n = q.len / f / features, panels = (outputs + WIDE - 1) / WIDE;
        right = fits(&mean, features, f) && fits(&scale, outputs, sizeof(double)) && fits(&q, n * features, f) &&
                fits(&axes, panels * features * WIDE, f) && fits(&out, n * outputs, f);
        if (right) {
            Py_BEGIN_ALLOW_THREADS
            there = project_all(q.buf, mean.buf, axes.buf, scale.buf, length, features, outputs, out.buf, n);
            Py_END_ALLOW_THREADS
        }
    }
    PyBuffer_Release(&q);
    PyBuffer_Release(&mean);
    PyBuffer_Release(&axes);
    PyBuffer_Release(&scale);
    PyBuffer_Release(&out);
    if (!right) return PyErr_Format(PyExc_ValueError, "arrays of sizes that do not belong together");
    if (!there) return PyErr_NoMemory();
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"describe", py_describe, METH_VARARGS,
     "describe(x, (height, width, channels), turns, (share, grid), angle, rows, columns, out): pooled "
     "orientations of every image, whole numbers as float32."},
    {"project", py_project, METH_VARARGS,
     "project(q, mean, axes, scale, length, out): (q - mean) axes, scaled; then every record to one length."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_orientations", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__orientations(void)
{
    PyObject *made = PyModule_Create(&module);
    if (made != NULL && PyModule_AddIntConstant(made, "WIDE", WIDE) < 0) {
        Py_DECREF(made);
        return NULL;
    }
    return made;
}
