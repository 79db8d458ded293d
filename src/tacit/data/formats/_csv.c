/* Cells of CSV files: where each one lies in a run of bytes, the numbers they hold, and which texts are the same.

   These loops read what is plain and leave everything else to Python. split stops in front of a record that is not
   plain, and csv.reader goes on from there; numbers gives NaN for a cell that is not plainly a number, and float()
   looks at it. So Python alone decides what is refused, how it is worded, and what a number in doubt is.
   split_lines reads by a declared layout (formats/csv.py): it refuses nothing, and no line changes another.

   A span is two uint32, where a cell begins and ends; DOUBLED is set in the end of a quoted cell that holds quotes,
   each written twice. Spans are (records, columns, 2). Every function releases the GIL and writes to no argument but
   those that are for its results, so callers may spread runs of bytes over threads. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define DOUBLED 0x80000000u

#define GOLDEN 0x9e3779b97f4a7c15ull   /* 2^64 over the golden ratio: the upper bits of a product depend on all bits */

enum { MORE, ODD };         /* why split stopped: the bytes or the room are used up; a record is not plain */
enum { MOST = 64 };         /* powers of ten are given from 10^-MOST to 10^MOST */
enum { EXACT = 22 };        /* 10^22 is the largest power of ten that a double holds exactly */
enum { DIGITS = 19 };       /* 10^19 < 2^64 */
enum { PROBES = 8 };        /* slots looked at for a record, on average; texts of any file but a malicious one need 2 */

typedef struct { uint64_t mantissa; int64_t exponent; } Power;     /* 10^q is in mantissa + [0, 1), times 2^exponent */

static const double exact[EXACT + 1] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                        1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

static unsigned char is_space[256];     /* blanks as in float() */

/* ---- eight bytes at a time, the first in the lowest bits; elsewhere than on little-endian machines one by one */

#if PY_LITTLE_ENDIAN && defined(__GNUC__)
enum { WORDS = 1 };
#else
enum { WORDS = 0 };
#define __builtin_ctzll(v) 0
#endif

#define EACH(byte) (0x0101010101010101ull * (byte))

static uint64_t eight(const unsigned char *p)
{
    uint64_t v;
    memcpy(&v, p, 8);
    return v;
}

static inline int ends_cell(unsigned char byte, unsigned char separator)
{
    return byte == separator || byte == '\n' || byte == '\r' || !byte;
}

/* The first byte from p on that may end a cell, or `stop`. All that may are below '-', and little in a number is. */
static inline const unsigned char *cell_end(const unsigned char *p, const unsigned char *stop, unsigned char separator)
{
    for (;; p++) {
        while (WORDS && stop - p >= 8) {
            uint64_t v = eight(p), low = (v - EACH('-')) & ~v & EACH(0x80);      /* a borrow reaches later bytes only */
            if (low) {
                p += __builtin_ctzll(low) / 8;
                break;
            }
            p += 8;
        }
        if (p >= stop || ends_cell(*p, separator))
            return p;
    }
}

/* The first such byte from p on, or `stop`. */
static inline const unsigned char *find(const unsigned char *p, const unsigned char *stop, unsigned char byte)
{
    for (; WORDS && stop - p >= 8; p += 8) {
        uint64_t v = eight(p) ^ EACH(byte), zero = (v - EACH(1)) & ~v & EACH(0x80);      /* the lowest is exact */
        if (zero)
            return p + __builtin_ctzll(zero) / 8;
    }
    while (p < stop && *p != byte)
        p++;
    return p;
}

/* Append the digits from p on to w, and return where they end. `stop` is the end of the text: beyond `end` of the cell
   is looked at, and not used. */
static inline const unsigned char *read_digits(const unsigned char *p, const unsigned char *end,
                                               const unsigned char *stop, uint64_t *w)
{
    static const uint32_t tens[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};
    while (WORDS && stop - p >= 8) {
        uint64_t v = eight(p) ^ EACH('0'), other = ((v + EACH(0x76)) | v) & EACH(0x80);      /* what is not 0 .. 9 */
        int64_t n = other ? __builtin_ctzll(other) / 8 : 8;
        n = n < end - p ? n : end - p;
        if (!n)
            return p;
        v <<= 64 - 8 * n;                   /* zeros come in front: the first byte is the highest digit */
        v = (v & EACH(0x0f)) * (1 + (10 << 8)) >> 8;
        v = (v & 0x00ff00ff00ff00ffull) * (1 + (100 << 16)) >> 16;
        v = (v & 0x0000ffff0000ffffull) * (1 + (10000ull << 32)) >> 32;
        *w = *w * tens[n] + v;
        p += n;
        if (n < 8)
            return p;
    }
    while (p < end && (unsigned)(*p - '0') < 10)
        *w = *w * 10 + (*p++ - '0');
    return p;
}

/* ---- cells: what csv.reader(strict=True) reads, of records that have one cell a column */

typedef struct { int64_t rows, used, lines; int why; } Split;

static Split split(const unsigned char *text, int64_t size, int final, int64_t columns, int64_t limit,
                   unsigned char separator, uint32_t *span, int64_t room, int32_t *line)
{
    Split s = {0, 0, 0, MORE};
    int64_t at = 0, lines = 0;
    while (s.rows < room) {
        while (at < size && (text[at] == '\n' || text[at] == '\r')) {      /* blank lines */
            if (text[at] == '\r') {
                if (at + 1 == size && !final)
                    return s;               /* a \n may follow, and would be of the same line */
                at += at + 1 < size && text[at + 1] == '\n';
            }
            at++;
            lines++;
            s.used = at;
            s.lines = lines;
        }
        if (at == size)
            return s;
        uint32_t *own = span + 2 * columns * s.rows;
        for (int64_t c = 0;; c++) {
            int64_t begin = at, end;
            uint32_t mark = 0;
            if (c == columns) {
                s.why = ODD;                /* one cell more than the header has */
                return s;
            }
            if (at < size && text[at] == '"') {
                for (begin = ++at;; at++) {
                    const unsigned char *quote = memchr(text + at, '"', (size_t)(size - at));
                    const unsigned char *stop = quote ? quote : text + size;
                    if (stop - text - begin > limit)
                        s.why = ODD;        /* too long, or never closed */
                    for (; at < stop - text; at++) {
                        if (text[at] == '\n' || (text[at] == '\r' && at + 1 < size && text[at + 1] != '\n'))
                            lines++;
                        if (!text[at])
                            s.why = ODD;
                    }
                    if (s.why == ODD || !quote) {
                        if (final)
                            s.why = ODD;
                        return s;
                    }
                    if (at + 1 < size && text[at + 1] == '"') {
                        mark = DOUBLED;
                        at++;
                        continue;
                    }
                    break;
                }
                end = at++;
                if (at < size && !ends_cell(text[at], separator)) {
                    s.why = ODD;            /* text behind a quoted cell */
                    return s;
                }
            } else {
                end = at = cell_end(text + at, text + size, separator) - text;
            }
            if (end - begin > limit || (at < size && !text[at])) {
                s.why = ODD;
                return s;
            }
            own[2 * c] = (uint32_t)begin;
            own[2 * c + 1] = (uint32_t)end | mark;
            if (at < size && text[at] == separator) {
                at++;
                continue;
            }
            if (at == size ? !final : text[at] == '\r' && at + 1 == size && !final)
                return s;                   /* the record may go on in the next bytes */
            if (c + 1 < columns) {
                s.why = ODD;                /* too few cells */
                return s;
            }
            if (at < size)
                at += 1 + (text[at] == '\r' && at + 1 < size && text[at + 1] == '\n');
            break;
        }
        line[s.rows++] = (int32_t)++lines;
        s.used = at;
        s.lines = lines;
    }
    return s;
}

/* ---- cells by a declared layout: a line is a record, and one that is not well-formed is a record of empty cells */

typedef struct { unsigned char end, separator, quote; int quotes, newlines; int64_t limit, most; } Layout;

enum { BAD = -1, PENDING = -2 };

typedef struct { int64_t stop, next; } Line;        /* where its text stops, and where the next one begins */

/* The line that begins at `at`; next is PENDING where its end is not among the bytes. */
static inline Line line_at(const Layout *l, const unsigned char *text, int64_t at, int64_t size, int final)
{
    const unsigned char *end = memchr(text + at, l->end, (size_t)(size - at));
    Line found = {end ? end - text : size, end ? end - text + 1 : final ? size : PENDING};
    found.stop -= l->end == '\n' && found.next != PENDING && found.stop > at && text[found.stop - 1] == '\r';
    return found;
}

/* Write the cells of the record that begins at `start`, on `line`; return where the next record begins, BAD or PENDING.
   With `newlines`, a cell whose quote is open at the end of a line goes on behind it. */
static int64_t record_at(const Layout *l, const unsigned char *text, int64_t start, Line line, int64_t size, int final,
                         int64_t columns, uint32_t *own, int64_t *lines)
{
    int64_t at = start;
    *lines = 1;
    for (int64_t c = 0; c < columns; c++) {
        int64_t begin = at, end;
        uint32_t mark = 0;
        if (l->quotes && at < line.stop && text[at] == l->quote) {
            for (begin = ++at;;) {
                const unsigned char *quote = memchr(text + at, l->quote, (size_t)(line.stop - at));
                if (quote) {
                    at = quote - text + 1;
                    if (at == line.stop || text[at] != l->quote)
                        break;
                    mark = DOUBLED;
                    at++;
                    continue;
                }
                if (!l->newlines || (line.next == size && final) || line.stop - begin > l->limit)
                    return BAD;             /* never closed, or too long */
                at = line.stop;
                line = line.next < size ? line_at(l, text, line.next, size, final) : (Line){size, PENDING};
                ++*lines;
                if (line.stop - start > l->most + (line.next == PENDING))
                    return BAD;
                if (line.next == PENDING)
                    return PENDING;
            }
            end = at - 1;
            if (at < line.stop && text[at] != l->separator)
                return BAD;                 /* text behind a quoted cell */
        } else {
            end = at = find(text + at, text + line.stop, l->separator) - text;
        }
        if (end - begin > l->limit)
            return BAD;
        own[2 * c] = (uint32_t)begin;
        own[2 * c + 1] = (uint32_t)end | mark;
        if (at == line.stop)
            return c + 1 < columns ? BAD : line.next;
        at++;
    }
    return BAD;                             /* one cell more than the header has */
}

/* Find the records; begin[i] is where record i begins, bad[i] whether it is not well-formed. */
static Split split_lines(const Layout *l, const unsigned char *text, int64_t size, int final, int64_t columns,
                         uint32_t *span, int64_t room, int32_t *number, uint32_t *begin, unsigned char *bad)
{
    Split s = {0, 0, 0, MORE};
    while (s.rows < room && s.used < size) {
        Line line = line_at(l, text, s.used, size, final);
        if (line.next == PENDING) {
            s.why = size - s.used > l->most + 1 ? ODD : MORE;       /* longer than any record, wherever it ends */
            return s;
        }
        int64_t next = line.next, lines = 1;
        if (line.stop > s.used) {           /* not blank */
            uint32_t *own = span + 2 * columns * s.rows;
            int fits = line.stop - s.used <= l->most;
            next = fits ? record_at(l, text, s.used, line, size, final, columns, own, &lines) : BAD;
            if (next == PENDING)
                return s;
            bad[s.rows] = next == BAD;
            if (next == BAD) {
                memset(own, 0, 2 * (size_t)columns * sizeof *own);
                next = line.next;
                lines = 1;
            }
            begin[s.rows] = (uint32_t)s.used;
            number[s.rows++] = (int32_t)(s.lines + lines);
        }
        s.lines += lines;
        s.used = next;
    }
    return s;
}

/* ---- numbers */

/* w * 10^q to the nearest double; 0 where 64 bits of 10^q do not tell which that is.
   With m = mantissa, the true product w 10^q lies in w m + [0, w), so its upper half lies in high + [0, 2). */
static int scaled(uint64_t w, int64_t q, const Power *powers, double *out)
{
#ifdef __SIZEOF_INT128__
    if (q < -MOST || q > MOST)
        return 0;
    int shift = __builtin_clzll(w);
    const Power *power = powers + q + MOST;
    uint64_t high = (uint64_t)(((unsigned __int128)(w << shift) * power->mantissa) >> 64);
    int dropped = 10 + (int)(high >> 63);           /* bits of high below the 53 of a double */
    uint64_t rest = high & ((1ull << dropped) - 1), half = 1ull << (dropped - 1), kept = high >> dropped;
    if (rest == half || rest == half - 1)
        return 0;
    kept += rest > half;
    /* kept is 2^52 .. 2^53: added below the exponent, its first bit raises the exponent by one */
    uint64_t bits = ((uint64_t)(power->exponent + 64 - shift + dropped + 1074) << 52) + kept;
    memcpy(out, &bits, sizeof bits);
    return 1;
#else
    (void)w, (void)q, (void)powers, (void)out;
    return 0;
#endif
}

/* The number in a cell that is written in digits with perhaps a sign, a decimal point or comma and an exponent; else
   NaN. */
static inline double number(const unsigned char *p, const unsigned char *end, const unsigned char *stop,
                            unsigned char decimal, const Power *powers)
{
    while (p < end && is_space[*p])
        p++;
    while (p < end && is_space[end[-1]])
        end--;
    if (p == end)
        return NAN;
    int negative = *p == '-';
    p += negative | (*p == '+');            /* no branch: half of all signs would be guessed wrong */
    const unsigned char *first = p, *point = NULL;
    uint64_t w = 0;
    while (p < end && (unsigned)(*p - '0') < 10)      /* few, most often: eight at a time would take longer */
        w = w * 10 + (*p++ - '0');
    if (p < end && *p == decimal) {
        point = p;
        p = read_digits(p + 1, end, stop, &w);
    }
    int64_t digits = p - first - (point != NULL), q = point ? -(p - point - 1) : 0;
    if (digits > DIGITS)                    /* zeros in front count for nothing */
        for (const unsigned char *zero = first; zero < p && (*zero == '0' || *zero == decimal); zero++)
            digits -= *zero == '0';
    if (p == first + (point != NULL) || digits > DIGITS)
        return NAN;
    if (p < end && (*p | 0x20) == 'e') {
        int64_t e = 0;
        int down = ++p < end && *p == '-';
        p += down || (p < end && *p == '+');
        const unsigned char *begin = p;
        while (p < end && p - begin < 5 && (unsigned)(*p - '0') < 10)
            e = e * 10 + (*p++ - '0');
        if (p == begin)
            return NAN;
        q += down ? -e : e;
    }
    if (p != end)
        return NAN;
    double found;
    if (!w)
        found = 0;
    else if (FLT_EVAL_METHOD == 0 && w <= 1ull << 53 && q >= -EXACT && q <= EXACT)
        /* both are exact as doubles, so one operation rounds once */
        found = q < 0 ? (double)(int64_t)w / exact[-q] : (double)(int64_t)w * exact[q];
    else if (!scaled(w, q, powers, &found))
        return NAN;
    return copysign(found, 0.5 - negative);
}

/* Whether a cell lies in the text: C must not read beyond it, whatever the caller gives. */
static int fits(const uint32_t *own, int64_t size)
{
    uint32_t end = own[1] & ~DOUBLED;
    return own[0] <= end && end <= size;
}

/* ---- the same texts */

static uint64_t mixed(uint64_t h, uint64_t v)
{
    h = (h ^ v) * GOLDEN;
    return h ^ h >> 32;
}

static uint64_t hashed(const unsigned char *p, int64_t size)
{
    uint64_t h = (uint64_t)size, last = 0;
    for (; size >= 8; p += 8, size -= 8)
        h = mixed(h, eight(p));
    if (size)
        memcpy(&last, p, (size_t)size);
    return mixed(h, last);
}

/* Number the distinct cells of a column by their first record; `slot` is 2^bits zeros, at least 2 n. Where the texts
   were made to fall into one slot, every cell has its own number, and Python, whose hash has a secret, looks at all. */
static int64_t intern(const unsigned char *text, int64_t length, const uint32_t *span, int64_t n, int64_t columns,
                      int64_t column, uint32_t *slot, int bits, int32_t *code, int32_t *first)
{
    int64_t found = 0, probes = PROBES * (n + 8);
    uint64_t mask = (1ull << bits) - 1;
    for (int64_t i = 0; i < n; i++) {
        const uint32_t *own = span + 2 * (columns * i + column);
        if (!fits(own, length))
            return -1;
        int64_t size = (own[1] & ~DOUBLED) - own[0];
        uint64_t at = hashed(text + own[0], size) >> (64 - bits);
        for (;; at = (at + 1) & mask) {
            if (!probes--) {
                for (i = 0; i < n; i++)
                    code[i] = first[i] = (int32_t)i;
                return n;
            }
            if (!slot[at]) {
                first[found] = (int32_t)i;
                slot[at] = (uint32_t)++found;
                break;
            }
            const uint32_t *other = span + 2 * (columns * first[slot[at] - 1] + column);
            if (other[1] - other[0] == own[1] - own[0] && !memcmp(text + other[0], text + own[0], (size_t)size))
                break;
        }
        code[i] = (int32_t)slot[at] - 1;
    }
    return found;
}

/* ---- Python */

typedef struct { Py_buffer view[6]; int n; } Buffers;

/* Take the contiguous bytes of an argument that holds whole items of `item` bytes; NULL with an error set. */
static void *borrow(Buffers *list, PyObject *o, int writable, int64_t item, int64_t *count)
{
    Py_buffer *view = &list->view[list->n];
    if (PyErr_Occurred() || PyObject_GetBuffer(o, view, writable ? PyBUF_WRITABLE : PyBUF_SIMPLE))
        return NULL;
    list->n++;
    if (view->len % item) {
        PyErr_Format(PyExc_ValueError, "a buffer of %zd bytes holds no whole items of %d", view->len, (int)item);
        return NULL;
    }
    *count = view->len / item;
    return view->buf;
}

static PyObject *give_back(Buffers *list, PyObject *result)
{
    while (list->n)
        PyBuffer_Release(&list->view[--list->n]);
    if (!PyErr_Occurred())
        return result;
    Py_XDECREF(result);
    return NULL;
}

static int refuse(int wrong, const char *why)
{
    if (wrong && !PyErr_Occurred())
        PyErr_SetString(PyExc_ValueError, why);
    return PyErr_Occurred() != NULL;
}

static PyObject *py_split(PyObject *self, PyObject *args)
{
    PyObject *o[3];
    Buffers list = {.n = 0};
    int final;
    char separator;
    long long columns, limit;
    int64_t size = 0, cells = 0, rows = 0;
    Split s = {0, 0, 0, MORE};
    (void)self;
    if (!PyArg_ParseTuple(args, "OpLLcOO", o, &final, &columns, &limit, &separator, o + 1, o + 2))
        return NULL;
    const unsigned char *text = borrow(&list, o[0], 0, 1, &size);
    uint32_t *span = borrow(&list, o[1], 1, 2 * sizeof *span, &cells);
    int32_t *line = borrow(&list, o[2], 1, sizeof *line, &rows);
    if (!refuse(size >= DOUBLED || columns < 1 || limit < 0 || separator >= '-' || rows < 1 || cells / columns < rows,
                "the text must be below 2^31 bytes, the separator below '-', and the spans have room for the records")) {
        Py_BEGIN_ALLOW_THREADS
        s = split(text, size, final, columns, limit, (unsigned char)separator, span, rows, line);
        Py_END_ALLOW_THREADS
    }
    return give_back(&list, Py_BuildValue("LLLi", (long long)s.rows, (long long)s.used, (long long)s.lines, s.why));
}

static PyObject *py_split_lines(PyObject *self, PyObject *args)
{
    PyObject *o[5];
    Buffers list = {.n = 0};
    int final, newlines;
    char end, separator;
    const char *quote;
    Py_ssize_t quotes;
    long long columns, limit, most;
    int64_t size = 0, cells = 0, rows = 0, n_begins = 0, n_bad = 0;
    Split s = {0, 0, 0, MORE};
    (void)self;
    if (!PyArg_ParseTuple(args, "Opccy#pLLLOOOO", o, &final, &end, &separator, &quote, &quotes, &newlines, &columns,
                          &limit, &most, o + 1, o + 2, o + 3, o + 4))
        return NULL;
    const unsigned char *text = borrow(&list, o[0], 0, 1, &size);
    uint32_t *span = borrow(&list, o[1], 1, 2 * sizeof *span, &cells);
    int32_t *line = borrow(&list, o[2], 1, sizeof *line, &rows);
    uint32_t *begin = borrow(&list, o[3], 1, sizeof *begin, &n_begins);
    unsigned char *bad = borrow(&list, o[4], 1, 1, &n_bad);
    if (!refuse(size >= DOUBLED || columns < 1 || limit < 0 || most < 0 || quotes > 1 || rows < 1
                || cells / columns < rows || n_begins < rows || n_bad < rows,
                "the text must be below 2^31 bytes, and the results have room for the records")) {
        Layout layout = {(unsigned char)end, (unsigned char)separator, quotes ? (unsigned char)*quote : 0, (int)quotes,
                         newlines, limit, most};
        Py_BEGIN_ALLOW_THREADS
        s = split_lines(&layout, text, size, final, columns, span, rows, line, begin, bad);
        Py_END_ALLOW_THREADS
    }
    return give_back(&list, Py_BuildValue("LLLi", (long long)s.rows, (long long)s.used, (long long)s.lines, s.why));
}

static PyObject *py_numbers(PyObject *self, PyObject *args)
{
    PyObject *o[5];
    Buffers list = {.n = 0};
    char decimal;
    long long columns;
    int64_t size = 0, cells = 0, width = 0, n_powers = 0, room = 0, odd = 0;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOLOcOO", o, o + 1, &columns, o + 2, &decimal, o + 3, o + 4))
        return NULL;
    const unsigned char *text = borrow(&list, o[0], 0, 1, &size);
    const uint32_t *span = borrow(&list, o[1], 0, 2 * sizeof *span, &cells);
    const int32_t *wanted = borrow(&list, o[2], 0, sizeof *wanted, &width);
    const Power *powers = borrow(&list, o[3], 0, sizeof *powers, &n_powers);
    double *out = borrow(&list, o[4], 1, 1, &room);
    int64_t n = columns > 0 ? cells / columns : 0;
    int single = n * width * (int64_t)sizeof(float) == room;
    int wrong = columns < 1 || n_powers != 2 * MOST + 1 || !(single || n * width * (int64_t)sizeof(double) == room);
    for (int64_t j = 0; !wrong && wanted && j < width; j++)
        wrong = wanted[j] < 0 || wanted[j] >= columns;
    if (!refuse(wrong, "out must hold records x wanted columns, as float or double")) {
        Py_BEGIN_ALLOW_THREADS
        for (int64_t i = 0; i < n && odd >= 0; i++)
            for (int64_t j = 0; j < width; j++) {
                const uint32_t *own = span + 2 * (columns * i + wanted[j]);
                if (!fits(own, size)) {
                    odd = -1;
                    break;
                }
                double v = own[1] & DOUBLED ? NAN : number(text + own[0], text + own[1], text + size,
                                                           (unsigned char)decimal, powers);
                odd += v != v;
                if (single)
                    ((float *)out)[i * width + j] = (float)v;
                else
                    out[i * width + j] = v;
            }
        Py_END_ALLOW_THREADS
        refuse(odd < 0, "a cell lies outside the text");
    }
    return give_back(&list, PyLong_FromLongLong(odd));
}

static PyObject *py_intern(PyObject *self, PyObject *args)
{
    PyObject *o[4];
    Buffers list = {.n = 0};
    long long columns, column;
    int64_t size = 0, cells = 0, n_codes = 0, n_first = 0, found = 0;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOLLOO", o, o + 1, &columns, &column, o + 2, o + 3))
        return NULL;
    const unsigned char *text = borrow(&list, o[0], 0, 1, &size);
    const uint32_t *span = borrow(&list, o[1], 0, 2 * sizeof *span, &cells);
    int32_t *code = borrow(&list, o[2], 1, sizeof *code, &n_codes);
    int32_t *first = borrow(&list, o[3], 1, sizeof *first, &n_first);
    int64_t n = columns > 0 ? cells / columns : 0;
    if (!refuse(columns < 1 || column < 0 || column >= columns || n_codes != n || n_first != n || n > INT32_MAX,
                "codes and firsts must have room for one of each record")) {
        int bits = 2;
        while (1ll << bits < 2 * n)
            bits++;
        uint32_t *slot = calloc((size_t)1 << bits, sizeof *slot);
        if (!slot) {
            PyErr_NoMemory();
        } else {
            Py_BEGIN_ALLOW_THREADS
            found = intern(text, size, span, n, columns, column, slot, bits, code, first);
            Py_END_ALLOW_THREADS
            free(slot);
            refuse(found < 0, "a cell lies outside the text");
        }
    }
    return give_back(&list, PyLong_FromLongLong(found));
}

static PyMethodDef methods[] = {
    {"split", py_split, METH_VARARGS,
     "split(text, final, columns, limit, separator, spans, lines) -> (records, bytes, lines, why)"},
    {"split_lines", py_split_lines, METH_VARARGS,
     "split_lines(text, final, line end, separator, quote, newlines, columns, limit, most, spans, lines, begins, bad) -> "
     "(records, bytes, lines, why)"},
    {"numbers", py_numbers, METH_VARARGS,
     "numbers(text, spans, columns, wanted, decimal, powers, out) -> how many cells are not plainly numbers, NaN in out"},
    {"intern", py_intern, METH_VARARGS, "intern(text, spans, columns, column, codes, firsts) -> how many are distinct"},
    {NULL, NULL, 0, NULL}};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_csv", "Cells of CSV files.", -1, methods,
                                    NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__csv(void)
{
    for (const char *space = "\t\n\v\f\r\x1c\x1d\x1e\x1f "; *space; space++)
        is_space[(unsigned char)*space] = 1;
    PyObject *m = PyModule_Create(&module);
    if (m && (PyModule_AddIntConstant(m, "ODD", ODD) || PyModule_AddIntConstant(m, "MOST", MOST)
              || PyModule_AddIntMacro(m, DOUBLED)))
        Py_CLEAR(m);
    return m;
}
