/* The compiled kernel: hash, insert, check, fold and measure, in C, without the GIL.
 *
 * Same interface and same bits as spec.py, which transcribes parquet-format BloomFilter.md, "Technical Approach", and the XXH64
 * part of xxHash's specification 0.1.1; the names here are the names there. This file says how to be quick about it:
 *
 *   - a block is worked on as one vector of eight words, where the machine has AVX2 (asked at import), else word by word;
 *   - blocks lie far apart, so their cache lines are requested LOOKAHEAD hashes before they are needed;
 *   - hashing the widths that integers have is compiled separately for each width, without loops or branches.
 *
 * No buffer is believed. Lengths are checked before the first byte is touched, and each offset and length prefix is read once and
 * checked before it is used, so that not even a thread that changes a buffer in the meantime leads the kernel outside it. Loads
 * and stores of integers go through memcpy: buffers need not be aligned.
 *
 * CPython's limited API of 3.11: one binary serves every later version.
 */
#define Py_LIMITED_API 0x030b0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdint.h>
#include <string.h>

#ifndef __GNUC__
#error "The compiled kernel needs GCC or Clang. Without it the numpy kernel is used."
#endif

#if defined(__x86_64__)
#define HAVE_AVX2 1
#define AVX2 __attribute__((target("avx2,popcnt")))
#else
#define HAVE_AVX2 0
#endif

/* For bodies that are compiled twice, once for every x86-64 and once for AVX2; see "Variants". */
#define INLINE static inline __attribute__((always_inline))

/* --- Integers in memory --- */

INLINE uint32_t load_le32(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, 4);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    v = __builtin_bswap32(v);
#endif
    return v;
}

INLINE void store_le32(uint8_t *p, uint32_t v)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    v = __builtin_bswap32(v);
#endif
    memcpy(p, &v, 4);
}

INLINE uint64_t load_le64(const uint8_t *p)
{
    uint64_t v;
    memcpy(&v, p, 8);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    v = __builtin_bswap64(v);
#endif
    return v;
}

/* Hashes are native integers: they never leave the machine. */
INLINE uint64_t load_hash(const uint8_t *hashes, size_t i)
{
    uint64_t v;
    memcpy(&v, hashes + 8 * i, 8);
    return v;
}

INLINE void store_hash(uint8_t *hashes, size_t i, uint64_t h)
{
    memcpy(hashes + 8 * i, &h, 8);
}

/* --- XXH64, seed 0 --- */

#define P1 UINT64_C(0x9E3779B185EBCA87)
#define P2 UINT64_C(0xC2B2AE3D27D4EB4F)
#define P3 UINT64_C(0x165667B19E3779F9)
#define P4 UINT64_C(0x85EBCA77C2B2AE63)
#define P5 UINT64_C(0x27D4EB2F165667C5)

INLINE uint64_t rotate_left(uint64_t x, int bits)
{
    return x << bits | x >> (64 - bits);
}

INLINE uint64_t xxh_round(uint64_t accumulator, uint64_t lane)
{
    return rotate_left(accumulator + lane * P2, 31) * P1;
}

INLINE uint64_t xxh_merge(uint64_t h, uint64_t accumulator)
{
    return (h ^ xxh_round(0, accumulator)) * P1 + P4;
}

INLINE uint64_t xxh64(const uint8_t *p, size_t length)
{
    uint64_t h;
    size_t left = length;

    if (left >= 32) {
        uint64_t a = P1 + P2, b = P2, c = 0, d = 0 - P1;
        for (; left >= 32; p += 32, left -= 32) {
            a = xxh_round(a, load_le64(p));
            b = xxh_round(b, load_le64(p + 8));
            c = xxh_round(c, load_le64(p + 16));
            d = xxh_round(d, load_le64(p + 24));
        }
        h = rotate_left(a, 1) + rotate_left(b, 7) + rotate_left(c, 12) + rotate_left(d, 18);
        h = xxh_merge(xxh_merge(xxh_merge(xxh_merge(h, a), b), c), d);
    } else {
        h = P5;
    }
    h += length;
    for (; left >= 8; p += 8, left -= 8)
        h = rotate_left(h ^ xxh_round(0, load_le64(p)), 27) * P1 + P4;
    if (left >= 4) {
        h = rotate_left(h ^ load_le32(p) * P1, 23) * P2 + P3;
        p += 4, left -= 4;
    }
    for (; left; p++, left--)
        h = rotate_left(h ^ *p * P5, 11) * P1;
    h = (h ^ h >> 33) * P2;
    h = (h ^ h >> 29) * P3;
    return h ^ h >> 32;
}

INLINE void hash_rows(const uint8_t *values, size_t width, size_t count, uint8_t *hashes)
{
    for (size_t i = 0; i < count; i++)
        store_hash(hashes, i, xxh64(values + i * width, width));
}

static void hash_fixed(const uint8_t *values, size_t width, size_t count, uint8_t *hashes)
{
    /* A width known to the compiler leaves straight-line code. */
    switch (width) {
    case 4: hash_rows(values, 4, count, hashes); break;
    case 8: hash_rows(values, 8, count, hashes); break;
    case 12: hash_rows(values, 12, count, hashes); break;
    case 16: hash_rows(values, 16, count, hashes); break;
    default: hash_rows(values, width, count, hashes);
    }
}

INLINE int64_t load_offset(const uint8_t *offsets, size_t i, int width)
{
    if (width == 4) {
        int32_t v;
        memcpy(&v, offsets + 4 * i, 4);
        return v;
    }
    int64_t v;
    memcpy(&v, offsets + 8 * i, 8);
    return v;
}

/* Hash `count` values between `count` + 1 offsets. Returns how many came out right: less than `count` when the next offset is bad. */
INLINE size_t hash_spans(const uint8_t *data, int64_t size, const uint8_t *offsets, int offset_width, size_t count, uint8_t *hashes)
{
    int64_t start = load_offset(offsets, 0, offset_width);
    if (start < 0 || start > size)
        return 0;
    for (size_t i = 0; i < count; i++) {
        int64_t end = load_offset(offsets, i + 1, offset_width);
        if (end < start || end > size)
            return i;
        store_hash(hashes, i, xxh64(data + start, (size_t)(end - start)));
        start = end;
    }
    return count;
}

static size_t hash_variable(const uint8_t *data, int64_t size, const uint8_t *offsets, int offset_width, size_t count, uint8_t *hashes)
{
    return offset_width == 4 ? hash_spans(data, size, offsets, 4, count, hashes) : hash_spans(data, size, offsets, 8, count, hashes);
}

/* Hash `count` values that each stand behind their length. Returns how many came out right: less than `count` at the page's end. */
static size_t hash_length_prefixed(const uint8_t *page, size_t size, size_t count, uint8_t *hashes)
{
    for (size_t i = 0; i < count; i++) {
        if (size < 4)
            return i;
        size_t length = load_le32(page);
        page += 4, size -= 4;
        if (length > size)
            return i;
        store_hash(hashes, i, xxh64(page, length));
        page += length, size -= length;
    }
    return count;
}

/* --- Blocks --- */

#define BLOCK_BYTES 32
#define LOOKAHEAD 32

/* Eight words of a block as one vector; GCC and Clang compile its operators to whatever the enclosing function may use. */
typedef uint32_t words __attribute__((vector_size(BLOCK_BYTES)));

static const words SALT = {0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d, 0x705495c7, 0x2df1424b, 0x9efc4947, 0x5c6bfb31};
static const words ONE = {1, 1, 1, 1, 1, 1, 1, 1};

INLINE size_t block_offset(uint64_t h, uint64_t num_blocks)
{
    return (size_t)(((h >> 32) * num_blocks) >> 32) * BLOCK_BYTES;
}

INLINE void look_ahead(const uint8_t *bitset, uint64_t num_blocks, const uint8_t *hashes, size_t i, size_t count)
{
    if (i + LOOKAHEAD < count)
        __builtin_prefetch(bitset + block_offset(load_hash(hashes, i + LOOKAHEAD), num_blocks), 1);
}

/* `vector` is a constant wherever these are called: vectors are little-endian here, and quick only with AVX2. */
INLINE void block_insert(uint8_t *block, uint32_t x, int vector)
{
    if (vector) {
        words w;
        memcpy(&w, block, BLOCK_BYTES);
        w |= ONE << (x * SALT >> 27);
        memcpy(block, &w, BLOCK_BYTES);
    } else {
        for (int i = 0; i < 8; i++)
            store_le32(block + 4 * i, load_le32(block + 4 * i) | UINT32_C(1) << (x * SALT[i] >> 27));
    }
}

INLINE int block_check(const uint8_t *block, uint32_t x, int vector)
{
    if (vector) {
        words w;
        uint64_t missing[4];
        memcpy(&w, block, BLOCK_BYTES);
        w = ~w & ONE << (x * SALT >> 27);
        memcpy(missing, &w, BLOCK_BYTES);
        return !(missing[0] | missing[1] | missing[2] | missing[3]);
    }
    uint32_t missing = 0;
    for (int i = 0; i < 8; i++)
        missing |= ~load_le32(block + 4 * i) & UINT32_C(1) << (x * SALT[i] >> 27);
    return !missing;
}

INLINE void insert_all(uint8_t *bitset, uint64_t num_blocks, const uint8_t *hashes, size_t count, int vector)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t h = load_hash(hashes, i);
        look_ahead(bitset, num_blocks, hashes, i, count);
        block_insert(bitset + block_offset(h, num_blocks), (uint32_t)h, vector);
    }
}

/* Returns how many hashes are missing; writes one byte for each to `found` unless that is NULL. */
INLINE size_t check_all(const uint8_t *bitset, uint64_t num_blocks, const uint8_t *hashes, size_t count, uint8_t *found, int vector)
{
    size_t missing = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t h = load_hash(hashes, i);
        look_ahead(bitset, num_blocks, hashes, i, count);
        int there = block_check(bitset + block_offset(h, num_blocks), (uint32_t)h, vector);
        missing += !there;
        if (found)
            found[i] = (uint8_t)there;
    }
    return missing;
}

static void fold_pairs(const uint8_t *bitset, size_t num_blocks, uint8_t *folded)
{
    for (size_t i = 0; i < num_blocks / 2; i++, bitset += 2 * BLOCK_BYTES, folded += BLOCK_BYTES)
        for (int at = 0; at < BLOCK_BYTES; at++)
            folded[at] = bitset[at] | bitset[BLOCK_BYTES + at];
}

/* A product is at most 32^8 = 2^40 and there may be 2^31 blocks, so their sum takes two words. */
struct measurement {
    uint64_t bits_set, products_high, products_low;
};

INLINE struct measurement measure_all(const uint8_t *bitset, size_t num_blocks)
{
    struct measurement m = {0, 0, 0};
    for (size_t i = 0; i < num_blocks; i++) {
        uint64_t product = 1;
        for (int at = 0; at < BLOCK_BYTES; at += 4) {
            uint64_t bits = (uint64_t)__builtin_popcount(load_le32(bitset + i * BLOCK_BYTES + at));
            m.bits_set += bits;
            product *= bits;
        }
        m.products_low += product;
        m.products_high += m.products_low < product;
    }
    return m;
}

/* --- Variants: the bodies above, for every machine and for AVX2 --- */

static int use_avx2 = 0;

#if HAVE_AVX2
AVX2 static void insert_avx2(uint8_t *bitset, uint64_t num_blocks, const uint8_t *hashes, size_t count)
{
    insert_all(bitset, num_blocks, hashes, count, 1);
}

AVX2 static size_t check_avx2(const uint8_t *bitset, uint64_t num_blocks, const uint8_t *hashes, size_t count, uint8_t *found)
{
    return check_all(bitset, num_blocks, hashes, count, found, 1);
}

AVX2 static struct measurement measure_avx2(const uint8_t *bitset, size_t num_blocks)
{
    return measure_all(bitset, num_blocks);
}

static int machine_has_avx2(void)
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("popcnt");
}
#else
#define insert_avx2 insert_plain
#define check_avx2 check_plain
#define measure_avx2 measure_plain
#define machine_has_avx2() 0
#endif

static void insert_plain(uint8_t *bitset, uint64_t num_blocks, const uint8_t *hashes, size_t count)
{
    insert_all(bitset, num_blocks, hashes, count, 0);
}

static size_t check_plain(const uint8_t *bitset, uint64_t num_blocks, const uint8_t *hashes, size_t count, uint8_t *found)
{
    return check_all(bitset, num_blocks, hashes, count, found, 0);
}

static struct measurement measure_plain(const uint8_t *bitset, size_t num_blocks)
{
    return measure_all(bitset, num_blocks);
}

/* --- Python's side: check every argument, drop the GIL, work --- */

/* "O&": an int as Py_ssize_t. One too large for that is as wrong as any other wrong number, hence ValueError. */
static int to_size(PyObject *object, void *size)
{
    Py_ssize_t value = PyNumber_AsSsize_t(object, PyExc_ValueError);
    if (value == -1 && PyErr_Occurred())
        return 0;
    *(Py_ssize_t *)size = value;
    return 1;
}

static PyObject *refuse(const char *message)
{
    PyErr_SetString(PyExc_ValueError, message);
    return NULL;
}

static PyObject *new_hashes(Py_ssize_t count)
{
    if (count > PY_SSIZE_T_MAX / 8)
        return PyErr_NoMemory();
    return PyBytes_FromStringAndSize(NULL, count * 8);
}

static uint8_t *bytes_of(PyObject *bytes)
{
    return (uint8_t *)PyBytes_AsString(bytes);
}

static int are_blocks(const Py_buffer *bitset, Py_ssize_t num_blocks)
{
    if (num_blocks < 1 || num_blocks > INT32_MAX)
        return refuse("a filter has 1 to 2^31 - 1 blocks"), 0;
    if (num_blocks > bitset->len / BLOCK_BYTES)
        return refuse("the bitset is shorter than its blocks"), 0;
    return 1;
}

static int are_hashes(const Py_buffer *hashes)
{
    if (hashes->len % 8)
        return refuse("not a whole number of 64-bit hashes"), 0;
    return 1;
}

/* The hashes when all came out right; else forget them and say which value did not. */
static PyObject *finish(PyObject *hashes, size_t done, Py_ssize_t count, const char *complaint)
{
    if (done == (size_t)count)
        return hashes;
    Py_DECREF(hashes);
    return PyErr_Format(PyExc_ValueError, "value %zd of %zd %s", (Py_ssize_t)done, count, complaint);
}

static PyObject *py_hash_fixed(PyObject *self, PyObject *args)
{
    Py_buffer values;
    Py_ssize_t width;
    PyObject *hashes = NULL;
    if (!PyArg_ParseTuple(args, "y*O&:hash_fixed", &values, to_size, &width))
        return NULL;
    if (width < 1)
        refuse("a width is at least one byte");
    else if (values.len % width)
        refuse("not a whole number of values of this width");
    else if ((hashes = new_hashes(values.len / width))) {
        uint8_t *out = bytes_of(hashes);
        Py_BEGIN_ALLOW_THREADS
        hash_fixed(values.buf, (size_t)width, (size_t)(values.len / width), out);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&values);
    return hashes;
}

static PyObject *py_hash_variable(PyObject *self, PyObject *args)
{
    Py_buffer data, offsets;
    Py_ssize_t width;
    PyObject *hashes = NULL;
    if (!PyArg_ParseTuple(args, "y*y*O&:hash_variable", &data, &offsets, to_size, &width))
        return NULL;
    if (width != 4 && width != 8)
        refuse("offsets have 4 or 8 bytes");
    else if (offsets.len % width)
        refuse("not a whole number of offsets of this width");
    else if (!offsets.len)
        refuse("no offsets; n values have n + 1");
    else if ((hashes = new_hashes(offsets.len / width - 1))) {
        Py_ssize_t count = offsets.len / width - 1;
        int64_t first = load_offset(offsets.buf, 0, (int)width);
        uint8_t *out = bytes_of(hashes);
        size_t done;
        Py_BEGIN_ALLOW_THREADS
        done = hash_variable(data.buf, data.len, offsets.buf, (int)width, (size_t)count, out);
        Py_END_ALLOW_THREADS
        if (first < 0 || first > data.len) {
            Py_DECREF(hashes);
            hashes = refuse("the first offset is outside the data");
        } else {
            hashes = finish(hashes, done, count, "has offsets that decrease or leave the data");
        }
    }
    PyBuffer_Release(&data);
    PyBuffer_Release(&offsets);
    return hashes;
}

static PyObject *py_hash_length_prefixed(PyObject *self, PyObject *args)
{
    Py_buffer page;
    Py_ssize_t count;
    PyObject *hashes = NULL;
    if (!PyArg_ParseTuple(args, "y*O&:hash_length_prefixed", &page, to_size, &count))
        return NULL;
    /* A length takes four bytes: a count that the page cannot hold must not decide how much memory is asked for. */
    if (count < 0 || count > page.len / 4)
        PyErr_Format(PyExc_ValueError, "%zd values in a page of %zd bytes", count, page.len);
    else if ((hashes = new_hashes(count))) {
        uint8_t *out = bytes_of(hashes);
        size_t done;
        Py_BEGIN_ALLOW_THREADS
        done = hash_length_prefixed(page.buf, (size_t)page.len, (size_t)count, out);
        Py_END_ALLOW_THREADS
        hashes = finish(hashes, done, count, "runs past the end of the page");
    }
    PyBuffer_Release(&page);
    return hashes;
}

static PyObject *py_insert(PyObject *self, PyObject *args)
{
    PyObject *target;
    Py_buffer bitset, hashes;
    Py_ssize_t num_blocks;
    int good;
    if (!PyArg_ParseTuple(args, "OO&y*:insert", &target, to_size, &num_blocks, &hashes))
        return NULL;
    if (PyObject_GetBuffer(target, &bitset, PyBUF_WRITABLE) < 0) {
        PyBuffer_Release(&hashes);
        return NULL;
    }
    if ((good = are_blocks(&bitset, num_blocks) && are_hashes(&hashes))) {
        Py_BEGIN_ALLOW_THREADS
        (use_avx2 ? insert_avx2 : insert_plain)(bitset.buf, (uint64_t)num_blocks, hashes.buf, (size_t)hashes.len / 8);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&bitset);
    PyBuffer_Release(&hashes);
    return good ? Py_NewRef(Py_None) : NULL;
}

static PyObject *py_check(PyObject *self, PyObject *args)
{
    Py_buffer bitset, hashes;
    Py_ssize_t num_blocks;
    PyObject *found = NULL;
    if (!PyArg_ParseTuple(args, "y*O&y*:check", &bitset, to_size, &num_blocks, &hashes))
        return NULL;
    if (are_blocks(&bitset, num_blocks) && are_hashes(&hashes) && (found = PyBytes_FromStringAndSize(NULL, hashes.len / 8))) {
        uint8_t *out = bytes_of(found);
        Py_BEGIN_ALLOW_THREADS
        (use_avx2 ? check_avx2 : check_plain)(bitset.buf, (uint64_t)num_blocks, hashes.buf, (size_t)hashes.len / 8, out);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&bitset);
    PyBuffer_Release(&hashes);
    return found;
}

static PyObject *py_count_missing(PyObject *self, PyObject *args)
{
    Py_buffer bitset, hashes;
    Py_ssize_t num_blocks;
    size_t missing = 0;
    int good;
    if (!PyArg_ParseTuple(args, "y*O&y*:count_missing", &bitset, to_size, &num_blocks, &hashes))
        return NULL;
    if ((good = are_blocks(&bitset, num_blocks) && are_hashes(&hashes))) {
        Py_BEGIN_ALLOW_THREADS
        missing = (use_avx2 ? check_avx2 : check_plain)(bitset.buf, (uint64_t)num_blocks, hashes.buf, (size_t)hashes.len / 8, NULL);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&bitset);
    PyBuffer_Release(&hashes);
    return good ? PyLong_FromSize_t(missing) : NULL;
}

static PyObject *py_fold(PyObject *self, PyObject *args)
{
    Py_buffer bitset;
    Py_ssize_t num_blocks;
    PyObject *folded = NULL;
    if (!PyArg_ParseTuple(args, "y*O&:fold", &bitset, to_size, &num_blocks))
        return NULL;
    if (num_blocks % 2)
        refuse("an odd number of blocks cannot be folded");
    else if (are_blocks(&bitset, num_blocks) && (folded = PyByteArray_FromStringAndSize(NULL, num_blocks / 2 * BLOCK_BYTES))) {
        uint8_t *out = (uint8_t *)PyByteArray_AsString(folded);
        Py_BEGIN_ALLOW_THREADS
        fold_pairs(bitset.buf, (size_t)num_blocks, out);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&bitset);
    return folded;
}

static PyObject *py_measure(PyObject *self, PyObject *args)
{
    Py_buffer bitset;
    Py_ssize_t num_blocks;
    struct measurement m = {0, 0, 0};
    int good;
    if (!PyArg_ParseTuple(args, "y*O&:measure", &bitset, to_size, &num_blocks))
        return NULL;
    if ((good = are_blocks(&bitset, num_blocks))) {
        Py_BEGIN_ALLOW_THREADS
        m = (use_avx2 ? measure_avx2 : measure_plain)(bitset.buf, (size_t)num_blocks);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&bitset);
    return good ? Py_BuildValue("KKK", m.bits_set, m.products_high, m.products_low) : NULL;
}

static PyObject *py_instructions(PyObject *self, PyObject *ignored)
{
    return PyUnicode_FromString(use_avx2 ? "AVX2" : "plain");
}

static PyObject *py_use_plain(PyObject *self, PyObject *plain)
{
    int truth = PyObject_IsTrue(plain);
    if (truth < 0)
        return NULL;
    use_avx2 = !truth && machine_has_avx2();
    return Py_NewRef(Py_None);
}

static PyMethodDef methods[] = {
    {"hash_fixed", py_hash_fixed, METH_VARARGS, NULL},
    {"hash_variable", py_hash_variable, METH_VARARGS, NULL},
    {"hash_length_prefixed", py_hash_length_prefixed, METH_VARARGS, NULL},
    {"insert", py_insert, METH_VARARGS, NULL},
    {"check", py_check, METH_VARARGS, NULL},
    {"count_missing", py_count_missing, METH_VARARGS, NULL},
    {"fold", py_fold, METH_VARARGS, NULL},
    {"measure", py_measure, METH_VARARGS, NULL},
    {"instructions", py_instructions, METH_NOARGS, "\"AVX2\" or \"plain\"."},
    {"use_plain", py_use_plain, METH_O, "For tests: do without AVX2, process-wide; False goes back to what the machine has."},
    {NULL, NULL, 0, NULL},
};

static int execute(PyObject *module)
{
    use_avx2 = machine_has_avx2();
    return 0;
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, execute}, {0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_kernel",
    .m_doc = "The C half of the compiled kernel; compiled_kernel.py is the Python half, kernels.py the interface.",
    .m_methods = methods,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__kernel(void)
{
    return PyModuleDef_Init(&definition);
}
