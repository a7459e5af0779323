/* A walker of Thrift's compact protocol over a whole footer: it notes where each row group and each ColumnChunk is, and makes no object.
 *
 * chunk_index.py is its Python half. The walker accepts less than Thrift's readers do: only bytes that each of them reads, with the same
 * result, whether it reads the whole footer or one of its structs alone. It returns None for other bytes, which the caller then parses as a
 * whole. So what a footer states, and whether and why it is refused, never depends on this module. In particular:
 *
 *   - a field of a known struct has the kind of the definition, or is skipped as Thrift skips it; a list has elements of the defined kind;
 *   - integers, lengths and field ids take no more bytes than their width needs, and lie within the buffer;
 *   - structs and containers are nested at most MAX_DEPTH deep; Thrift's readers stop at 64;
 *   - the list of row groups, each list of column chunks, and each ColumnMetaData are present once;
 *   - nothing is encrypted: such footers have other rules.
 *
 * Each byte is visited once, whatever lengths are stated: an element takes at least one byte, and a count above the bytes that remain is
 * refused. No buffer is trusted: `numbers` checks bytes that `walk` has seen before as if it had not.
 */
#include "_definition.h"

enum { PRESENCE = 0x80, OUTLINE_DEPTH = 72 };

/* --- Positions --- */

struct vector {
    int64_t *items;
    size_t count, room;
};

/* Append an item; return whether there was memory for it, else set MemoryError. */
static int append(struct vector *vector, int64_t item)
{
    if (vector->count == vector->room) {
        size_t room = vector->room ? 2 * vector->room : 256;
        int64_t *items = PyMem_Realloc(vector->items, room * sizeof(int64_t));
        if (!items) {
            PyErr_NoMemory();
            return 0;
        }
        vector->items = items;
        vector->room = room;
    }
    vector->items[vector->count++] = item;
    return 1;
}

static PyObject *as_bytes(const struct vector *vector)
{
    return PyBytes_FromStringAndSize((const char *)vector->items, (Py_ssize_t)(vector->count * sizeof(int64_t)));
}

struct positions {
    struct vector row_groups; /* of each: its start, its list of chunks from and to, its end, the number of its first chunk, its chunks */
    struct vector chunks;     /* the start of each chunk; a chunk ends where the next one of its row group begins, or where the list ends */
    Py_ssize_t list_start, list_end;
    uint64_t most_schema, most_pairs, most_orders; /* The elements of the longest list of each, should a footer have several. */
};

static Py_ssize_t walk_chunk(const struct footer *f, Py_ssize_t pos, unsigned number)
{
    struct field field = {0, STOP};
    int has_meta = 0;
    for (;;) {
        pos = read_field(f, pos, &field);
        if (pos == REFUSED || field.kind == STOP)
            return has_meta ? pos : REFUSED;
        const uint8_t *slot = find_slot(f, number, &field);
        if (slot && (field.id == CRYPTO_METADATA || field.id == ENCRYPTED_METADATA || (field.id == META_DATA && has_meta)))
            return REFUSED;
        has_meta |= slot && field.id == META_DATA;
        pos = read_known_or_skip(f, pos, slot, &field, IN_CHUNK);
        if (pos == REFUSED)
            return REFUSED;
    }
}

static Py_ssize_t walk_row_group(const struct footer *f, Py_ssize_t pos, unsigned number, struct positions *found)
{
    struct field field = {0, STOP};
    Py_ssize_t start = pos, list_start = REFUSED, list_end = REFUSED;
    size_t first = found->chunks.count;
    uint64_t count = 0;
    int element;
    for (;;) {
        pos = read_field(f, pos, &field);
        if (pos == REFUSED)
            return REFUSED;
        if (field.kind == STOP)
            break;
        const uint8_t *slot = find_slot(f, number, &field);
        if (!slot || field.id != COLUMNS) {
            pos = read_known_or_skip(f, pos, slot, &field, IN_ROW_GROUP);
            if (pos == REFUSED)
                return REFUSED;
            continue;
        }
        if (list_start != REFUSED)
            return REFUSED;
        list_start = pos;
        pos = read_list(f, pos, &element, &count);
        if (pos == REFUSED || (count && element != STRUCT))
            return REFUSED;
        *f->elements += count;
        for (uint64_t at = 0; at < count; at++) {
            if (!append(&found->chunks, pos))
                return REFUSED;
            pos = walk_chunk(f, pos, nested_in(slot));
            if (pos == REFUSED)
                return REFUSED;
        }
        list_end = pos;
    }
    if (list_start == REFUSED)
        return REFUSED;
    const int64_t items[] = {start, list_start, list_end, pos, (int64_t)first, (int64_t)count};
    for (size_t at = 0; at < sizeof items / sizeof items[0]; at++)
        if (!append(&found->row_groups, items[at]))
            return REFUSED;
    return pos;
}

/* Note how long the lists are by which a large footer is cut or refused. */
static void note_size(const struct footer *f, Py_ssize_t start, const struct field *field, uint64_t elements_before, struct positions *found)
{
    uint64_t count = count_structs(f, start, field), *most = NULL;
    if (field->id == SCHEMA)
        most = &found->most_schema;
    else if (field->id == KEY_VALUES)
        most = &found->most_pairs;
    else if (field->id == COLUMN_ORDERS)
        most = &found->most_orders;
    if (most && count > *most)
        *most = count;
    if (field->id == KEY_VALUES || field->id == COLUMN_ORDERS)
        *f->elements = elements_before;
}

static Py_ssize_t walk_file(const struct footer *f, struct positions *found)
{
    struct field field = {0, STOP};
    Py_ssize_t pos = 0;
    uint64_t count;
    int element;
    for (;;) {
        pos = read_field(f, pos, &field);
        if (pos == REFUSED || field.kind == STOP)
            return found->list_start == REFUSED ? REFUSED : pos;
        const uint8_t *slot = find_slot(f, 0, &field);
        if (!slot || field.id != ROW_GROUPS) {
            Py_ssize_t start = pos;
            uint64_t before = *f->elements;
            pos = slot && field.id == ENCRYPTION_ALGORITHM ? REFUSED : read_known_or_skip(f, pos, slot, &field, IN_FILE);
            if (pos == REFUSED)
                return REFUSED;
            note_size(f, start, &field, before, found);
            continue;
        }
        if (found->list_start != REFUSED)
            return REFUSED;
        found->list_start = pos;
        pos = read_list(f, pos, &element, &count);
        if (pos == REFUSED || (count && element != STRUCT))
            return REFUSED;
        *f->elements += count;
        for (; count; count--) {
            pos = walk_row_group(f, pos, nested_in(slot), found);
            if (pos == REFUSED)
                return REFUSED;
        }
        found->list_end = pos;
    }
}

static PyObject *py_walk(UNUSED PyObject *self, PyObject *args)
{
    Py_buffer data, table;
    PyObject *result = NULL;
    if (!PyArg_ParseTuple(args, "y*y*:walk", &data, &table))
        return NULL;
    uint64_t elements = 0;
    struct footer f = {data.buf, data.len, table.buf, table.len / (SLOTS * SLOT_BYTES), MAX_DEPTH, &elements};
    struct positions found = {{NULL, 0, 0}, {NULL, 0, 0}, REFUSED, REFUSED, 0, 0, 0};
    if (!is_table(&f, table.len)) {
        PyErr_SetString(PyExc_ValueError, "not a table of structs");
    } else if (walk_file(&f, &found) != REFUSED) {
        PyObject *row_groups = as_bytes(&found.row_groups), *chunks = as_bytes(&found.chunks);
        if (row_groups && chunks)
            result = Py_BuildValue("nnOO(KKKK)", found.list_start, found.list_end, row_groups, chunks, (unsigned long long)elements,
                                   (unsigned long long)found.most_schema, (unsigned long long)found.most_pairs,
                                   (unsigned long long)found.most_orders);
        Py_XDECREF(row_groups);
        Py_XDECREF(chunks);
    } else if (!PyErr_Occurred()) {
        result = Py_NewRef(Py_None);
    }
    PyMem_Free(found.row_groups.items);
    PyMem_Free(found.chunks.items);
    PyBuffer_Release(&data);
    PyBuffer_Release(&table);
    return result;
}

/* --- Numbers of every chunk, in the order of the chunks --- */

/* What to note of a field: `kind` is that of its values, with PRESENCE if 1 is noted for any value. */
struct number {
    int kind;
    int64_t *values; /* one per chunk; NULL if the field is not wanted */
};

/* Note the wanted fields of the struct at `pos`, which is chunk `at` or, if `is_meta`, its ColumnMetaData. */
static Py_ssize_t note_numbers(const struct footer *f, Py_ssize_t pos, size_t at, int is_meta, const struct number *wanted)
{
    struct field field = {0, STOP};
    for (;;) {
        pos = read_field(f, pos, &field);
        if (pos == REFUSED || field.kind == STOP)
            return pos;
        const struct number *number = 0 < field.id && field.id < SLOTS ? &wanted[is_meta * SLOTS + field.id] : &wanted[0];
        uint64_t folded = 0;
        if (number->values && number->kind == (field.kind | PRESENCE))
            number->values[at] = 1;
        if (I16 <= field.kind && field.kind <= I64) {
            pos = read_varint(f, pos, bytes_of_int(field.kind), &folded);
            if (number->values && number->kind == field.kind)
                number->values[at] = unfold(folded, field.kind);
        } else if (field.kind == BINARY) {
            pos = read_length(f, pos, 1, &folded);
            if (number->values && number->kind == field.kind)
                number->values[at] = (int64_t)folded;
            pos = pos == REFUSED ? REFUSED : pos + (Py_ssize_t)folded;
        } else if (field.kind == STRUCT && field.id == META_DATA && !is_meta) {
            pos = note_numbers(f, pos, at, 1, wanted);
        } else {
            pos = skip_value(f, pos, field.kind, is_meta ? IN_META_DATA : IN_CHUNK);
        }
        if (pos == REFUSED)
            return REFUSED;
    }
}

static PyObject *py_numbers(UNUSED PyObject *self, PyObject *args)
{
    Py_buffer data, starts, fields;
    PyObject *result = NULL;
    if (!PyArg_ParseTuple(args, "y*y*y*:numbers", &data, &starts, &fields))
        return NULL;
    struct footer f = {data.buf, data.len, NULL, 0, MAX_DEPTH, NULL};
    struct number wanted[2 * SLOTS] = {{0, NULL}};
    const uint8_t *pairs = fields.buf;
    size_t num_chunks = (size_t)starts.len / sizeof(int64_t);
    Py_ssize_t count = fields.len / 2;
    int is_valid = starts.len % (Py_ssize_t)sizeof(int64_t) == 0 && fields.len % 2 == 0;
    for (Py_ssize_t n = 0; n < count; n++)
        is_valid = is_valid && 0 < pairs[2 * n] && pairs[2 * n] < 2 * SLOTS;
    result = is_valid ? PyTuple_New(count) : NULL;
    for (Py_ssize_t n = 0; result && n < count; n++) {
        PyObject *values = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(num_chunks * sizeof(int64_t)));
        if (!values || PyTuple_SetItem(result, n, values) < 0) {
            Py_CLEAR(result);
            break;
        }
        wanted[pairs[2 * n]] = (struct number){pairs[2 * n + 1], (int64_t *)PyBytes_AsString(values)};
        memset(PyBytes_AsString(values), 0, num_chunks * sizeof(int64_t));
    }
    for (size_t at = 0; at < num_chunks && result && is_valid; at++) {
        int64_t start;
        memcpy(&start, (const uint8_t *)starts.buf + at * sizeof start, sizeof start);
        is_valid = 0 <= start && start <= f.size && note_numbers(&f, (Py_ssize_t)start, at, 0, wanted) != REFUSED;
    }
    if (!is_valid) {
        Py_CLEAR(result);
        PyErr_SetString(PyExc_ValueError, "these are not the chunks of a footer, or not fields");
    }
    PyBuffer_Release(&data);
    PyBuffer_Release(&starts);
    PyBuffer_Release(&fields);
    return result;
}

/* --- Footers of which not all becomes objects --- */

/* Note the fields of the whole footer, and count the structs in lists, but for the two that are bounded otherwise. */
static Py_ssize_t outline_file(const struct footer *f, struct vector *fields)
{
    struct field field = {0, STOP};
    Py_ssize_t pos = 0;
    for (;;) {
        pos = read_field(f, pos, &field);
        if (pos == REFUSED || field.kind == STOP)
            return pos;
        Py_ssize_t start = pos;
        uint64_t before = *f->elements;
        pos = read_known_or_skip(f, pos, find_slot(f, 0, &field), &field, IN_FILE);
        if (pos == REFUSED)
            return REFUSED;
        if (field.id == KEY_VALUES || field.id == COLUMN_ORDERS)
            *f->elements = before;
        const int64_t items[] = {field.id, field.kind, start, pos};
        for (size_t at = 0; at < sizeof items / sizeof items[0]; at++)
            if (!append(fields, items[at]))
                return REFUSED;
    }
}

static PyObject *py_outline(UNUSED PyObject *self, PyObject *args)
{
    Py_buffer data, table;
    PyObject *result = NULL;
    uint64_t elements = 0;
    if (!PyArg_ParseTuple(args, "y*y*:outline", &data, &table))
        return NULL;
    struct footer f = {data.buf, data.len, table.buf, table.len / (SLOTS * SLOT_BYTES), OUTLINE_DEPTH, &elements};
    struct vector fields = {NULL, 0, 0};
    if (!is_table(&f, table.len)) {
        PyErr_SetString(PyExc_ValueError, "not a table of structs");
    } else if (outline_file(&f, &fields) != REFUSED) {
        PyObject *bytes = as_bytes(&fields);
        if (bytes)
            result = Py_BuildValue("NK", bytes, (unsigned long long)elements);
    } else if (!PyErr_Occurred()) {
        result = Py_NewRef(Py_None);
    }
    PyMem_Free(fields.items);
    PyBuffer_Release(&data);
    PyBuffer_Release(&table);
    return result;
}

/* Return whether these bytes are one of the names, each of which follows its length in one byte. */
static int is_among(const uint8_t *name, uint64_t length, const Py_buffer *names)
{
    const uint8_t *each = names->buf, *end = each + names->len;
    for (; each < end && each[0] < end - each; each += 1 + each[0])
        if (length == each[0] && !memcmp(name, each + 1, length))
            return 1;
    return 0;
}

/* Find the end of the KeyValue at `pos`; set `wanted` if it has one of the names, or if there are no names. */
static Py_ssize_t read_pair(const struct footer *f, Py_ssize_t pos, const Py_buffer *names, int *wanted)
{
    struct field field = {0, STOP};
    uint64_t length;
    *wanted = !names->len;
    for (;;) {
        pos = read_field(f, pos, &field);
        if (pos == REFUSED || field.kind == STOP)
            return pos;
        if (field.id == 1 && field.kind == BINARY) {
            pos = read_length(f, pos, 1, &length);
            if (pos == REFUSED)
                return REFUSED;
            *wanted = !names->len || is_among(f->data + pos, length, names);
            pos += (Py_ssize_t)length;
        } else {
            pos = skip_value(f, pos, field.kind, IN_ROW_GROUP);
        }
        if (pos == REFUSED)
            return REFUSED;
    }
}

static PyObject *py_pairs(UNUSED PyObject *self, PyObject *args)
{
    Py_buffer data, names;
    Py_ssize_t pos, count;
    PyObject *result = NULL;
    if (!PyArg_ParseTuple(args, "y*nny*:pairs", &data, &pos, &count, &names))
        return NULL;
    struct footer f = {data.buf, data.len, NULL, 0, OUTLINE_DEPTH, NULL};
    struct vector spans = {NULL, 0, 0};
    int is_valid = pos >= 0, wanted;
    for (; is_valid && count > 0; count--) {
        Py_ssize_t start = pos;
        pos = read_pair(&f, pos, &names, &wanted);
        is_valid = pos != REFUSED && (!wanted || (append(&spans, start) && append(&spans, pos)));
    }
    if (is_valid) {
        PyObject *bytes = as_bytes(&spans);
        if (bytes)
            result = Py_BuildValue("nN", pos, bytes);
    } else if (!PyErr_Occurred()) {
        PyErr_SetString(PyExc_ValueError, "these are not pairs of a footer");
    }
    PyMem_Free(spans.items);
    PyBuffer_Release(&data);
    PyBuffer_Release(&names);
    return result;
}

static PyMethodDef methods[] = {
    {"walk", py_walk, METH_VARARGS,
     "walk(data, table): the value of the list of row groups from and to, six positions per row group, the starts of the chunks, and how\n"
     "many structs the lists have without key-values and column orders, elements the schema, key-values, and column orders; or None."},
    {"numbers", py_numbers, METH_VARARGS,
     "numbers(data, starts, fields): what each chunk states in each field: a number, or the length of text; 0 if nothing. A field has two\n"
     "bytes: its id in ColumnChunk, or SLOTS more than its id in ColumnMetaData; and its kind, with PRESENCE to get 1 if it is stated."},
    {"outline", py_outline, METH_VARARGS,
     "outline(data, table): id, kind, and value from and to of each field of the footer, and how many structs its lists have, without\n"
     "key-values and column orders; or None."},
    {"pairs", py_pairs, METH_VARARGS,
     "pairs(data, pos, count, names): the position after so many key-values, and from and to of each of them that has one of the names,\n"
     "of which each follows its length in one byte; of all without names."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {
#ifdef Py_GIL_DISABLED
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_compact",
    .m_doc = "Where the structs of a footer are; chunk_index.py is the Python half.",
    .m_methods = methods,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__compact(void)
{
    return PyModuleDef_Init(&definition);
}
