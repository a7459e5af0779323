/* Many plain files in one call: open, read the end, find the kind, answer, close. _scan.h decides; this is its Python side, and the only
 * module that opens files besides the room `storage`: for a small file, the steps through Python cost ten times as much as the answer.
 *
 * A call never reports an error of a file and never prints: a file that cannot be opened, is not a regular file, is shorter than expected or
 * changes while it is read is declined, and Python opens it as if there were no scan. The GIL is released, so threads scan concurrently. Every
 * argument is an immutable `bytes` or a tuple of them, so no other thread can change what is read meanwhile.
 */
#ifdef _WIN32
#error "The scan needs pread. Without it, files are opened one by one."
#endif

#include "_codecs.h"
#include "_scan.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef __linux__
#include <sys/syscall.h>
#endif

#ifdef __APPLE__
#define MODIFIED(status) (status).st_mtimespec
#define CHANGED(status) (status).st_ctimespec
#else
#define MODIFIED(status) (status).st_mtim
#define CHANGED(status) (status).st_ctim
#endif

static struct kernel kernel;

/* --- Files --- */

static int read_file(void *from, uint8_t *to, size_t length, uint64_t offset)
{
    int descriptor = *(const int *)from;
    while (length) {
        ssize_t done = pread(descriptor, to, length, (off_t)offset);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return 0;
        to += done;
        length -= (size_t)done;
        offset += (uint64_t)done;
    }
    return 1;
}

/* In glibc 2.33 and newer, `fstat` is a symbol of its own: an extension that calls it does not load where glibc is older. */
static int read_status(int descriptor, struct stat *status)
{
#if defined(__linux__) && defined(__x86_64__)
    return (int)syscall(SYS_fstat, descriptor, status);
#else
    return fstat(descriptor, status);
#endif
}

static int is_same_moment(struct timespec a, struct timespec b)
{
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

static int is_unchanged(const struct stat *before, const struct stat *after)
{
    return before->st_size == after->st_size && is_same_moment(MODIFIED(*before), MODIFIED(*after)) &&
           is_same_moment(CHANGED(*before), CHANGED(*after));
}

/* Answer for the file with this name; `input` gets its size and the bytes that were read. */
static struct answer scan_file(const char *name, struct input *input, struct walk *w, const struct kind *kinds, size_t num_kinds, int64_t path)
{
    struct answer answer = {DECLINED, 0};
    struct stat before, after;
    struct mark results = mark_results(w->s);
    /* Without O_NONBLOCK, opening a FIFO would wait for a writer that never comes. */
    int descriptor = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0)
        return answer;
    if (read_status(descriptor, &before) == 0 && S_ISREG(before.st_mode)) {
        input->read = read_file;
        input->from = &descriptor;
        input->size = before.st_size;
        answer = answer_file(input, w, kinds, num_kinds, path);
        if (answer.kind >= 0 && (read_status(descriptor, &after) != 0 || !is_unchanged(&before, &after))) {
            drop_results(w->s, results);
            answer.kind = DECLINED;
        }
    }
    close(descriptor);
    return answer;
}

/* --- Arguments --- */

static int bytes_at(PyObject *tuple, Py_ssize_t at, const uint8_t **data, size_t *size)
{
    char *start;
    Py_ssize_t length;
    PyObject *item = PyTuple_GetItem(tuple, at);
    if (!item || PyBytes_AsStringAndSize(item, &start, &length) < 0)
        return 0;
    *data = (const uint8_t *)start;
    *size = (size_t)length;
    return 1;
}

/* Return whether the numbers of a kind agree with its buffers: answer_file relies on it. */
static int is_kind(const struct kind *kind, size_t offsets_size)
{
    uint64_t before = 0, offset;
    size_t each = has_width(kind);
    if (!each || kind->num_keys > kind->num_hashes || (kind->flags & CONFIRMS && (kind->flags & WITH_FILTERS || !may_confirm(kind))))
        return 0;
    if (kind->order == NO_ORDER)
        return kind->num_keys == 0;
    if (kind->order != BYTES_ORDER)
        return kind->keys_size / each == kind->num_keys && kind->keys_size % each == 0;
    if (offsets_size / sizeof offset != kind->num_keys + 1)
        return 0;
    for (size_t at = 0; at <= kind->num_keys; at++, before = offset) {
        offset = load_hash(kind->offsets, at);
        if (offset < before || offset > kind->keys_size)
            return 0;
    }
    return 1;
}

/* Read a kind: its key, its numbers, the keys of the values, their offsets and their hashes. */
static int to_kind(PyObject *tuple, struct kind *kind)
{
    const uint8_t *numbers;
    size_t numbers_size, offsets_size, hashes_size;
    if (!PyTuple_Check(tuple) || PyTuple_Size(tuple) != 5 || !bytes_at(tuple, 0, &kind->key, &kind->key_size) ||
        !bytes_at(tuple, 1, &numbers, &numbers_size) || !bytes_at(tuple, 2, &kind->keys, &kind->keys_size) ||
        !bytes_at(tuple, 3, &kind->offsets, &offsets_size) || !bytes_at(tuple, 4, &kind->hashes, &hashes_size) ||
        numbers_size != NUMBERS_OF_KIND * sizeof(int64_t))
        return 0;
    int64_t num_keys = read_numbers(numbers, kind);
    kind->num_keys = (size_t)num_keys;
    kind->num_hashes = hashes_size / sizeof(uint64_t);
    if (kind->flags & OF_FILTERS)
        return is_fit_kind(kind, offsets_size);
    return kind->flags & ALWAYS_DECLINES || (num_keys >= 0 && is_kind(kind, offsets_size));
}

static PyObject *refuse(const char *message)
{
    if (!PyErr_Occurred())
        PyErr_SetString(PyExc_ValueError, message);
    return NULL;
}

static PyObject *as_bytes(const int64_t *items, size_t count)
{
    return PyBytes_FromStringAndSize((const char *)items, (Py_ssize_t)(count * sizeof *items));
}

enum { COLUMNS_OF_ANSWER = 4 };

/* Scan the names, each of which ends with NUL; `answers` has room for all. */
static void scan_all(const char *names, size_t num_names, const struct kind *kinds, size_t num_kinds, struct walk *w, int64_t *answers)
{
    for (size_t at = 0; at < num_names; at++, names += strlen(names) + 1) {
        struct input input = {NULL, NULL, 0, 0};
        struct answer answer = scan_file(names, &input, w, kinds, num_kinds, (int64_t)at);
        const int64_t columns[COLUMNS_OF_ANSWER] = {answer.kind, answer.num_row_groups, input.size, input.bytes_read};
        memcpy(answers + at * COLUMNS_OF_ANSWER, columns, sizeof columns);
    }
}

static PyObject *scan_names(const char *names, size_t num_names, const struct kind *kinds, size_t num_kinds, struct walk *w)
{
    PyObject *answers, *hits, *rows, *details;
    answers = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(num_names * COLUMNS_OF_ANSWER * sizeof(int64_t)));
    if (!answers)
        return NULL;
    int64_t *columns = (int64_t *)PyBytes_AsString(answers);
    w->codecs->thread = PyEval_SaveThread();
    scan_all(names, num_names, kinds, num_kinds, w, columns);
    PyEval_RestoreThread(w->codecs->thread);
    hits = as_bytes(w->s->hits.items, w->s->hits.count);
    rows = as_bytes(w->s->rows.items, w->s->rows.count);
    details = PyBytes_FromStringAndSize((const char *)w->s->details.data, (Py_ssize_t)w->s->details.size);
    PyObject *result = hits && rows && details ? PyTuple_Pack(4, answers, hits, rows, details) : NULL;
    Py_DECREF(answers);
    Py_XDECREF(hits);
    Py_XDECREF(rows);
    Py_XDECREF(details);
    return result;
}

static PyObject *py_scan(UNUSED PyObject *self, PyObject *args)
{
    PyObject *names, *kinds_tuple, *table, *left_out, *functions, *result = NULL;
    const uint8_t *text = NULL, *table_data = NULL, *left_out_data = NULL;
    size_t text_size = 0, table_size = 0, left_out_size = 0, num_names = 0;
    if (!PyArg_ParseTuple(args, "SO!SSO!:scan", &names, &PyTuple_Type, &kinds_tuple, &table, &left_out, &PyTuple_Type, &functions))
        return NULL;
    if (!bytes_at(args, 0, &text, &text_size) || !bytes_at(args, 2, &table_data, &table_size) || !bytes_at(args, 3, &left_out_data, &left_out_size))
        return NULL;
    if (text_size && text[text_size - 1])
        return refuse("each name ends with NUL");
    for (size_t at = 0; at < text_size; at++)
        num_names += !text[at];
    size_t num_kinds = (size_t)PyTuple_Size(kinds_tuple);
    struct kind *kinds = calloc(num_kinds + 1, sizeof *kinds);
    struct scratch *s = calloc(1, sizeof *s);
    if (kinds && s) {
        struct walk w = {.f = {NULL, 0, table_data, (Py_ssize_t)(table_size / (SLOTS * SLOT_BYTES)), MAX_DEPTH, NULL}, .s = s};
        struct codecs codecs = {decompress_by_python, functions, NULL};
        w.kernel = kernel;
        w.codecs = &codecs;
        w.names = left_out_data;
        w.names_size = left_out_size;
        int is_valid = is_table(&w.f, (Py_ssize_t)table_size);
        for (size_t at = 0; at < num_kinds && is_valid; at++)
            is_valid = to_kind(PyTuple_GetItem(kinds_tuple, (Py_ssize_t)at), &kinds[at]);
        result = is_valid ? scan_names((const char *)text, num_names, kinds, num_kinds, &w) : refuse("not a table of structs, or not a kind");
        free_scratch(s);
    } else {
        PyErr_NoMemory();
    }
    free(kinds);
    free(s);
    return result;
}

static PyObject *py_key(UNUSED PyObject *self, PyObject *args)
{
    PyObject *footer, *table, *left_out, *result = NULL;
    const uint8_t *data = NULL, *table_data = NULL, *left_out_data = NULL;
    size_t size = 0, table_size = 0, left_out_size = 0;
    if (!PyArg_ParseTuple(args, "SSS:key", &footer, &table, &left_out))
        return NULL;
    if (!bytes_at(args, 0, &data, &size) || !bytes_at(args, 1, &table_data, &table_size) || !bytes_at(args, 2, &left_out_data, &left_out_size))
        return NULL;
    struct scratch *s = calloc(1, sizeof *s);
    if (!s)
        return PyErr_NoMemory();
    struct walk w = {.f = {data, (Py_ssize_t)size, table_data, (Py_ssize_t)(table_size / (SLOTS * SLOT_BYTES)), MAX_DEPTH, NULL}, .s = s};
    w.names = left_out_data;
    w.names_size = left_out_size;
    if (!is_table(&w.f, (Py_ssize_t)table_size))
        refuse("not a table of structs");
    else if (walk_footer(&w))
        result = PyBytes_FromStringAndSize((const char *)s->key.data, (Py_ssize_t)s->key.size);
    else
        result = Py_NewRef(Py_None);
    free_scratch(s);
    free(s);
    return result;
}

static PyObject *py_places(UNUSED PyObject *self, PyObject *args)
{
    PyObject *footer, *table, *result = NULL;
    const uint8_t *data = NULL, *table_data = NULL;
    size_t size = 0, table_size = 0;
    long long start;
    if (!PyArg_ParseTuple(args, "SSL:places", &footer, &table, &start))
        return NULL;
    if (!bytes_at(args, 0, &data, &size) || !bytes_at(args, 1, &table_data, &table_size))
        return NULL;
    struct scratch *s = calloc(1, sizeof *s);
    if (!s)
        return PyErr_NoMemory();
    struct walk w = {.f = {data, (Py_ssize_t)size, table_data, (Py_ssize_t)(table_size / (SLOTS * SLOT_BYTES)), MAX_DEPTH, NULL}, .s = s};
    w.footer_start = start;
    if (!is_table(&w.f, (Py_ssize_t)table_size)) {
        refuse("not a table of structs");
    } else if (walk_footer(&w)) {
        PyObject *spans = as_bytes(s->spans.items, s->spans.count), *filters = as_bytes(s->filters.items, s->filters.count);
        if (spans && filters)
            result = PyTuple_Pack(2, spans, filters);
        Py_XDECREF(spans);
        Py_XDECREF(filters);
    } else {
        result = Py_NewRef(Py_None);
    }
    free_scratch(s);
    free(s);
    return result;
}

static PyMethodDef methods[] = {
    {"scan", py_scan, METH_VARARGS,
     "scan(names, kinds, table, left_out, codecs): four numbers per file, three per hit, and four per row. Of a file: the number of the kind by which\n"
     "it is answered, or DECLINED or UNKNOWN_KIND; its row groups; its bytes; the bytes that were read. Of a hit: the numbers of file, row group\n"
     "and hash. Of a row that has a value, if the kind confirms: those of file, row group, row in the file and hash. And, if a kind wants them,\n"
     "details of row groups: numbers of file and row group, rows, bytes of chunks, whether a filter was queried, the lengths of min, max and filter, and their\n"
     "bytes. Each name ends with NUL. `table` is that of footer_structs.py, `left_out` has the names of key-values that decide no kind, each\n"
     "after its length, `codecs` the functions that decompress pages, by the numbers of the codecs."},
    {"key", py_key, METH_VARARGS, "key(footer, table, left_out): the bytes that decide the kind of a file; None if a scan would decline it."},
    {"places", py_places, METH_VARARGS,
     "places(footer, table, start): what belongs to the chunks of a plain footer that begins at `start`: from and to of pages and page indexes,\n"
     "of which those that touch are one; and offset, stated length or -1, and the number of the chunk of each filter; None for other footers."},
    {NULL, NULL, 0, NULL},
};

static int begin(PyObject *module)
{
    kernel = best_kernel();
    fill_crc_tables();
    return PyModule_AddIntConstant(module, "DECLINED", DECLINED) < 0 || PyModule_AddIntConstant(module, "UNKNOWN_KIND", UNKNOWN_KIND) < 0 ? -1 : 0;
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
    .m_name = "_scan",
    .m_doc = "Answers of many plain files; file/scan.py is the Python half.",
    .m_methods = methods,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__scan(void)
{
    return PyModuleDef_Init(&definition);
}
