/* The compiled kernel's Python side: check every argument, release the GIL, and call _sbbf.h.
 *
 * The interface is that of interface.py; compiled_kernel.py adds what is simpler in Python. No buffer is trusted: for any lengths, counts
 * and offsets, a call returns a result or raises ValueError (BufferError for a bitset that cannot be written).
 *
 * It uses CPython's limited API of 3.11, so that one binary serves every later version; free-threaded versions have none. No format has
 * a `#`: one that headers of 3.13 or newer have compiled fails in 3.11 and 3.12.
 */
#include <pyconfig.h>
#ifndef Py_GIL_DISABLED
#define Py_LIMITED_API 0x030b0000
#endif
#include <Python.h>

#include "_variants.h"

#define UNUSED __attribute__((unused))

static const struct variant *active = &plain;

/* --- Arguments and results --- */

/* "O&": an int as Py_ssize_t. One that is too large raises ValueError, as any other wrong number does. */
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
        refuse("a filter has 1 to 2^31 - 1 blocks");
    else if (num_blocks > bitset->len / BLOCK_BYTES)
        refuse("the bitset is shorter than its blocks");
    else
        return 1;
    return 0;
}

static int are_hashes(const Py_buffer *hashes)
{
    if (hashes->len % 8 == 0)
        return 1;
    refuse("not a whole number of 64-bit hashes");
    return 0;
}

/* Return the hashes when all values were hashed; else release them and raise ValueError with the number of the value that failed. */
static PyObject *finish(PyObject *hashes, size_t done, Py_ssize_t count, const char *complaint)
{
    if (done == (size_t)count)
        return hashes;
    Py_DECREF(hashes);
    return PyErr_Format(PyExc_ValueError, "value %zd of %zd %s", (Py_ssize_t)done, count, complaint);
}

/* --- The interface --- */

static PyObject *py_hash_fixed(UNUSED PyObject *self, PyObject *args)
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
        active->hash_fixed(values.buf, (size_t)width, (size_t)(values.len / width), out);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&values);
    return hashes;
}

static PyObject *py_hash_variable(UNUSED PyObject *self, PyObject *args)
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
        uint64_t first = load_offset(offsets.buf, 0, (int)width);
        uint8_t *out = bytes_of(hashes);
        size_t done;
        Py_BEGIN_ALLOW_THREADS
        done = active->hash_variable(data.buf, (uint64_t)data.len, offsets.buf, (int)width, (size_t)count, out);
        Py_END_ALLOW_THREADS
        if (first > (uint64_t)data.len) {
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

/* Return one number of 64 bits per value of a page, which `read` writes: see hash_length_prefixed in _sbbf.h for what it returns. */
typedef size_t (*read_page)(const uint8_t *page, size_t size, size_t count, uint8_t *numbers, size_t *left);

static PyObject *number_values(PyObject *args, const char *format, read_page read)
{
    Py_buffer page;
    Py_ssize_t count;
    PyObject *numbers = NULL;
    if (!PyArg_ParseTuple(args, format, &page, to_size, &count))
        return NULL;
    /* A length takes four bytes. A count that the page cannot hold must not determine how much memory is allocated. */
    if (count < 0 || count > page.len / 4)
        PyErr_Format(PyExc_ValueError, "%zd values in a page of %zd bytes", count, page.len);
    else if ((numbers = new_hashes(count))) {
        uint8_t *out = bytes_of(numbers);
        size_t done, left = 0;
        Py_BEGIN_ALLOW_THREADS
        done = read(page.buf, (size_t)page.len, (size_t)count, out, &left);
        Py_END_ALLOW_THREADS
        numbers = finish(numbers, done, count, "runs past the end of the page");
        if (numbers && left) {
            Py_DECREF(numbers);
            numbers = PyErr_Format(PyExc_ValueError, "the page has %zu bytes after its last value", left);
        }
    }
    PyBuffer_Release(&page);
    return numbers;
}

static PyObject *py_hash_length_prefixed(UNUSED PyObject *self, PyObject *args)
{
    return number_values(args, "y*O&:hash_length_prefixed", active->hash_length_prefixed);
}

static PyObject *py_ends_length_prefixed(UNUSED PyObject *self, PyObject *args)
{
    return number_values(args, "y*O&:ends_length_prefixed", length_prefixed_ends);
}

/* "O&": the name of an order. */
static int to_order(PyObject *object, void *order)
{
    static const char *const names[] = {"signed", "unsigned", "bytes", "decimal"};
    const char *name = PyUnicode_Check(object) ? PyUnicode_AsUTF8AndSize(object, NULL) : NULL;
    for (int i = 0; name && i < 4; i++) {
        if (!strcmp(name, names[i])) {
            *(enum order *)order = (enum order)i;
            return 1;
        }
    }
    if (!PyErr_Occurred())
        refuse("an order is signed, unsigned, bytes or decimal");
    return 0;
}

/* Build (smallest, largest) as bytes, or None if there are no values. */
static PyObject *pair_of(Py_ssize_t count, const struct value extremes[2])
{
    if (!count)
        return Py_NewRef(Py_None);
    return Py_BuildValue("NN", PyBytes_FromStringAndSize((const char *)extremes[0].bytes, (Py_ssize_t)extremes[0].length),
                         PyBytes_FromStringAndSize((const char *)extremes[1].bytes, (Py_ssize_t)extremes[1].length));
}

static PyObject *integer_pair(uint64_t extremes[2], size_t width)
{
    uint8_t smallest[8], largest[8];
    for (size_t i = 0; i < 8; i++)
        smallest[i] = (uint8_t)(extremes[0] >> 8 * i), largest[i] = (uint8_t)(extremes[1] >> 8 * i);
    return Py_BuildValue("NN", PyBytes_FromStringAndSize((const char *)smallest, (Py_ssize_t)width),
                         PyBytes_FromStringAndSize((const char *)largest, (Py_ssize_t)width));
}

static PyObject *py_extremes_fixed(UNUSED PyObject *self, PyObject *args)
{
    Py_buffer values;
    Py_ssize_t width;
    enum order order;
    PyObject *pair = NULL;
    if (!PyArg_ParseTuple(args, "y*O&O&:extremes_fixed", &values, to_size, &width, to_order, &order))
        return NULL;
    if (width < 1)
        refuse("a width is at least one byte");
    else if (values.len % width)
        refuse("not a whole number of values of this width");
    else if ((order == SIGNED || order == UNSIGNED) && width != 4 && width != 8)
        refuse("integers have 4 or 8 bytes");
    else if (order == SIGNED || order == UNSIGNED) {
        uint64_t extremes[2];
        Py_ssize_t count = values.len / width;
        if (count) {
            Py_BEGIN_ALLOW_THREADS
            integer_extremes(values.buf, (size_t)width, order, (size_t)count, extremes);
            Py_END_ALLOW_THREADS
        }
        pair = count ? integer_pair(extremes, (size_t)width) : Py_NewRef(Py_None);
    } else {
        struct value extremes[2] = {0};
        Py_BEGIN_ALLOW_THREADS
        fixed_extremes(values.buf, (size_t)width, order, (size_t)(values.len / width), extremes);
        Py_END_ALLOW_THREADS
        pair = pair_of(values.len / width, extremes);
    }
    PyBuffer_Release(&values);
    return pair;
}

static PyObject *py_extremes_variable(UNUSED PyObject *self, PyObject *args)
{
    Py_buffer data, offsets;
    Py_ssize_t width;
    PyObject *pair = NULL;
    if (!PyArg_ParseTuple(args, "y*y*O&:extremes_variable", &data, &offsets, to_size, &width))
        return NULL;
    if (width != 4 && width != 8)
        refuse("offsets have 4 or 8 bytes");
    else if (offsets.len % width)
        refuse("not a whole number of offsets of this width");
    else if (!offsets.len)
        refuse("no offsets; n values have n + 1");
    else {
        Py_ssize_t count = offsets.len / width - 1;
        uint64_t first = load_offset(offsets.buf, 0, (int)width);
        struct value extremes[2] = {0};
        size_t done;
        Py_BEGIN_ALLOW_THREADS
        done = variable_extremes(data.buf, (uint64_t)data.len, offsets.buf, (int)width, (size_t)count, extremes);
        Py_END_ALLOW_THREADS
        if (first > (uint64_t)data.len)
            refuse("the first offset is outside the data");
        else if (done != (size_t)count)
            PyErr_Format(PyExc_ValueError, "value %zd of %zd has offsets that decrease or leave the data", (Py_ssize_t)done, count);
        else
            pair = pair_of(count, extremes);
    }
    PyBuffer_Release(&data);
    PyBuffer_Release(&offsets);
    return pair;
}

static PyObject *py_extremes_length_prefixed(UNUSED PyObject *self, PyObject *args)
{
    Py_buffer page;
    Py_ssize_t count;
    PyObject *pair = NULL;
    if (!PyArg_ParseTuple(args, "y*O&:extremes_length_prefixed", &page, to_size, &count))
        return NULL;
    if (count < 0 || count > page.len / 4)
        PyErr_Format(PyExc_ValueError, "%zd values in a page of %zd bytes", count, page.len);
    else {
        struct value extremes[2] = {0};
        size_t done, left = 0;
        Py_BEGIN_ALLOW_THREADS
        done = length_prefixed_extremes(page.buf, (size_t)page.len, (size_t)count, extremes, &left);
        Py_END_ALLOW_THREADS
        if (done != (size_t)count)
            PyErr_Format(PyExc_ValueError, "value %zd of %zd runs past the end of the page", (Py_ssize_t)done, count);
        else if (left)
            PyErr_Format(PyExc_ValueError, "the page has %zu bytes after its last value", left);
        else
            pair = pair_of(count, extremes);
    }
    PyBuffer_Release(&page);
    return pair;
}

static PyObject *py_insert(UNUSED PyObject *self, PyObject *args)
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
        active->insert(bitset.buf, (uint64_t)num_blocks, hashes.buf, (size_t)hashes.len / 8);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&bitset);
    PyBuffer_Release(&hashes);
    return good ? Py_NewRef(Py_None) : NULL;
}

static PyObject *py_check(UNUSED PyObject *self, PyObject *args)
{
    Py_buffer bitset, hashes;
    Py_ssize_t num_blocks;
    PyObject *found = NULL;
    if (!PyArg_ParseTuple(args, "y*O&y*:check", &bitset, to_size, &num_blocks, &hashes))
        return NULL;
    if (are_blocks(&bitset, num_blocks) && are_hashes(&hashes) && (found = PyBytes_FromStringAndSize(NULL, hashes.len / 8))) {
        uint8_t *out = bytes_of(found);
        Py_BEGIN_ALLOW_THREADS
        active->check(bitset.buf, (uint64_t)num_blocks, hashes.buf, (size_t)hashes.len / 8, out);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&bitset);
    PyBuffer_Release(&hashes);
    return found;
}

static PyObject *py_count_missing(UNUSED PyObject *self, PyObject *args)
{
    Py_buffer bitset, hashes;
    Py_ssize_t num_blocks;
    size_t missing = 0;
    int good;
    if (!PyArg_ParseTuple(args, "y*O&y*:count_missing", &bitset, to_size, &num_blocks, &hashes))
        return NULL;
    if ((good = are_blocks(&bitset, num_blocks) && are_hashes(&hashes))) {
        Py_BEGIN_ALLOW_THREADS
        missing = active->check(bitset.buf, (uint64_t)num_blocks, hashes.buf, (size_t)hashes.len / 8, NULL);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&bitset);
    PyBuffer_Release(&hashes);
    return good ? PyLong_FromSize_t(missing) : NULL;
}

static PyObject *py_fold(UNUSED PyObject *self, PyObject *args)
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

static PyObject *py_measure(UNUSED PyObject *self, PyObject *args)
{
    Py_buffer bitset;
    Py_ssize_t num_blocks;
    struct measurement m = {0, 0, 0};
    int good;
    if (!PyArg_ParseTuple(args, "y*O&:measure", &bitset, to_size, &num_blocks))
        return NULL;
    if ((good = are_blocks(&bitset, num_blocks))) {
        Py_BEGIN_ALLOW_THREADS
        m = active->measure(bitset.buf, (size_t)num_blocks);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&bitset);
    return good ? Py_BuildValue("KKK", m.bits_set, m.products_high, m.products_low) : NULL;
}

static PyObject *py_instructions(UNUSED PyObject *self, UNUSED PyObject *ignored)
{
    return PyUnicode_FromString(active->name);
}

static PyObject *py_use(UNUSED PyObject *self, PyObject *object)
{
    const char *name = PyUnicode_AsUTF8AndSize(object, NULL);
    if (!name)
        return NULL;
    const struct variant *variant = find_variant(name);
    if (!variant)
        return refuse("this machine does not have these instructions");
    active = variant;
    return Py_NewRef(Py_None);
}

static PyMethodDef methods[] = {
    {"hash_fixed", py_hash_fixed, METH_VARARGS, NULL},
    {"hash_variable", py_hash_variable, METH_VARARGS, NULL},
    {"hash_length_prefixed", py_hash_length_prefixed, METH_VARARGS, NULL},
    {"ends_length_prefixed", py_ends_length_prefixed, METH_VARARGS, NULL},
    {"extremes_fixed", py_extremes_fixed, METH_VARARGS, NULL},
    {"extremes_variable", py_extremes_variable, METH_VARARGS, NULL},
    {"extremes_length_prefixed", py_extremes_length_prefixed, METH_VARARGS, NULL},
    {"insert", py_insert, METH_VARARGS, NULL},
    {"check", py_check, METH_VARARGS, NULL},
    {"count_missing", py_count_missing, METH_VARARGS, NULL},
    {"fold", py_fold, METH_VARARGS, NULL},
    {"measure", py_measure, METH_VARARGS, NULL},
    {"instructions", py_instructions, METH_NOARGS, "\"AVX-512\", \"AVX2\" or \"plain\"."},
    {"use", py_use, METH_O, "For tests: work with these instructions, process-wide. Raises ValueError if the machine does not have them."},
    {NULL, NULL, 0, NULL},
};

static int execute(UNUSED PyObject *module)
{
    active = best_variant();
    return 0;
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, execute},
#ifdef Py_GIL_DISABLED
    /* Every call works on buffers that it holds, and releases the GIL where there is one. */
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_kernel",
    .m_doc = "The C half of the compiled kernel; compiled_kernel.py is the Python half, interface.py the interface.",
    .m_methods = methods,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__kernel(void)
{
    return PyModuleDef_Init(&definition);
}
