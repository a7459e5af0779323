/* Codecs that only Python has: a tuple of functions by the numbers of `CompressionCodec`, each as in codecs.py, or None.
 *
 * A run of pages is read without the GIL, which is taken again for a call. The functions are those of an extension: they run no Python code, so
 * no signal handler can raise an exception in them that would be lost here. */
#ifndef CODECS_H
#define CODECS_H

#include "_page_run.h"

static PyObject *call_codec(PyObject *functions, int64_t codec, const uint8_t *stored, size_t stored_size, uint8_t *plain, size_t size)
{
    PyObject *function = PyTuple_GetItem(functions, (Py_ssize_t)codec), *result = NULL;
    if (!function || function == Py_None)
        return NULL;
    PyObject *from = PyMemoryView_FromMemory((char *)stored, (Py_ssize_t)stored_size, PyBUF_READ);
    PyObject *to = PyMemoryView_FromMemory((char *)plain, (Py_ssize_t)size, PyBUF_WRITE);
    if (from && to)
        result = PyObject_CallFunctionObjArgs(function, from, to, NULL);
    Py_XDECREF(from);
    Py_XDECREF(to);
    return result;
}

static int decompress_by_python(struct codecs *codecs, int64_t codec, const uint8_t *stored, size_t stored_size, uint8_t *plain, size_t size)
{
    PyEval_RestoreThread(codecs->thread);
    PyObject *written = call_codec(codecs->functions, codec, stored, stored_size, plain, size);
    int is_done = written && PyLong_AsSize_t(written) == size;
    Py_XDECREF(written);
    PyErr_Clear(); /* the page is declined */
    codecs->thread = PyEval_SaveThread();
    return is_done;
}

#endif
