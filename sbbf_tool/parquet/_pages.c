/* The pages of a column chunk, many in one call; page_runs.py is the Python half. _page_run.h says what is read, and by which rules.
 *
 * A call answers for the pages before the first one that it does not expect, which may be none, and never reports an error of a file. The GIL
 * is released, so each buffer is immutable `bytes`. */
#include "_codecs.h"

#include <stdlib.h>

/* A run is a unit of work in memory; larger pages are read one by one. */
enum { MOST_SIZES = 1 << 24, MOST_LEVELS = 1 << 24 };

static PyObject *refuse(const char *message)
{
    PyErr_SetString(PyExc_ValueError, message);
    return NULL;
}

static int bytes_of(PyObject *object, struct footer *f)
{
    char *data;
    memset(f, 0, sizeof *f);
    f->max_depth = DEEPEST;
    if (PyBytes_AsStringAndSize(object, &data, &f->size) < 0)
        return 0;
    f->data = (const uint8_t *)data;
    return 1;
}

static PyObject *py_measure(UNUSED PyObject *self, PyObject *args)
{
    PyObject *data;
    struct footer f;
    int form;
    long long most_values, most_end;
    struct page_span span;
    if (!PyArg_ParseTuple(args, "SiLL:measure", &data, &form, &most_values, &most_end) || !bytes_of(data, &f))
        return NULL;
    if (form < ANY_PAGES || form > INDEX_PAGES)
        return refuse("not a form of pages");
    Py_BEGIN_ALLOW_THREADS
    span = measure_pages(&f, (enum form)form, most_values, most_end, INT64_MAX);
    Py_END_ALLOW_THREADS
    return Py_BuildValue("LLLL", (long long)span.pages, (long long)span.bytes, (long long)span.values, (long long)span.sizes);
}

/* Return whether there is a codec with this number. */
static int has_codec(PyObject *functions, int64_t codec)
{
    if (codec == CODEC_NONE || codec == CODEC_SNAPPY)
        return 1;
    return codec >= 0 && codec < PyTuple_Size(functions) && PyTuple_GetItem(functions, (Py_ssize_t)codec) != Py_None;
}

static int is_shape(const struct shape *shape, int form, long long width, long long num_entries)
{
    if (form != PLAIN_PAGES && form != INDEX_PAGES)
        return 0;
    if (width < 0 || width > INT32_MAX || num_entries < 0 || num_entries > UINT32_MAX)
        return 0;
    return has_codec(shape->codecs->functions, shape->codec);
}

/* Build the result: the span, the values, and the levels as flags, or None if each value is present. */
static PyObject *build_run(const struct page_span *done, PyObject *values, PyObject *present, const struct collected *c)
{
    if (PyByteArray_Resize(values, (Py_ssize_t)c->size) < 0 || PyByteArray_Resize(present, c->count == done->values ? 0 : (Py_ssize_t)done->values) < 0)
        return NULL;
    return Py_BuildValue("LLLLLOO", (long long)done->pages, (long long)done->bytes, (long long)done->values, (long long)done->sizes,
                         (long long)c->count, values, c->count == done->values ? Py_None : present);
}

static PyObject *collect(const struct footer *f, const struct shape *shape, const struct page_span *all)
{
    int64_t room = shape->form == PLAIN_PAGES ? all->sizes : all->values * (int64_t)sizeof(uint32_t);
    PyObject *values = PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)room), *result = NULL;
    PyObject *present = PyByteArray_FromStringAndSize(NULL, shape->definition ? (Py_ssize_t)all->values : 0);
    uint8_t *scratch = malloc((size_t)all->largest + 1);
    if (!scratch) {
        PyErr_NoMemory();
    } else if (values && present) {
        struct collected c = {(uint8_t *)PyByteArray_AsString(values), (uint8_t *)PyByteArray_AsString(present), scratch, 0, 0};
        struct page_span done;
        shape->codecs->thread = PyEval_SaveThread();
        done = collect_pages(f, shape, all, &c);
        PyEval_RestoreThread(shape->codecs->thread);
        result = build_run(&done, values, present, &c);
    }
    free(scratch);
    Py_XDECREF(values);
    Py_XDECREF(present);
    return result;
}

static PyObject *py_collect(UNUSED PyObject *self, PyObject *args)
{
    PyObject *data, *functions;
    struct footer f;
    struct codecs codecs = {decompress_by_python, NULL, NULL};
    struct shape shape = {.codecs = &codecs};
    int form;
    long long codec, width, num_entries, most_values;
    struct page_span all;
    if (!PyArg_ParseTuple(args, "SiLO!LIILL:collect", &data, &form, &codec, &PyTuple_Type, &functions, &width, &shape.definition, &shape.repetition,
                          &num_entries, &most_values) ||
        !bytes_of(data, &f))
        return NULL;
    codecs.functions = functions;
    shape.codec = codec;
    if (!is_shape(&shape, form, width, num_entries))
        return refuse("not a shape of pages");
    shape.form = (enum form)form;
    shape.width = (size_t)width;
    shape.num_entries = (uint32_t)num_entries;
    if (most_values > MOST_LEVELS)
        most_values = MOST_LEVELS;
    Py_BEGIN_ALLOW_THREADS
    all = measure_pages(&f, shape.form, most_values, f.size, MOST_SIZES);
    Py_END_ALLOW_THREADS
    return collect(&f, &shape, &all);
}

static PyMethodDef methods[] = {
    {"measure", py_measure, METH_VARARGS,
     "measure(data, form, most_values, most_end): the pages of a form from the first byte on, by their headers: number of pages, bytes, values with\n"
     "nulls, and the most bytes that a reader allocates for them."},
    {"collect", py_collect, METH_VARARGS,
     "collect(data, form, codec, codecs, width, definition, repetition, num_entries, most_values): the same of pages that are whole and as expected; the\n"
     "number of their values without nulls, the values, and a byte for each level that is 1 if the value is present, None if all are."},
    {NULL, NULL, 0, NULL},
};

static int begin(PyObject *module)
{
    fill_crc_tables();
    return PyModule_AddIntConstant(module, "ANY", ANY_PAGES) < 0 || PyModule_AddIntConstant(module, "PLAIN", PLAIN_PAGES) < 0 ||
                   PyModule_AddIntConstant(module, "INDICES", INDEX_PAGES) < 0
               ? -1
               : 0;
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, begin},
#ifdef Py_GIL_DISABLED
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_pages",
    .m_doc = "The pages of a column chunk, many in one call; page_runs.py is the Python half.",
    .m_methods = methods,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__pages(void)
{
    return PyModuleDef_Init(&definition);
}
