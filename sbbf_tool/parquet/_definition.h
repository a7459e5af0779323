/* Values of the structs that parquet.thrift defines, by the table of them that footer_structs.py builds: a field of a known struct has the kind
 * of the definition, or is skipped as Thrift skips it, and a list has elements of the defined kind. Functions are those of _protocol.h. */
#ifndef DEFINITION_H
#define DEFINITION_H

#include "_protocol.h"

enum { SLOTS = 32, SLOT_BYTES = 4 };

/* Beyond the second depth every reader refuses a footer. */
enum { MAX_DEPTH = 32 };

/* Field ids in parquet.thrift, of FileMetaData, RowGroup and ColumnChunk. */
enum { SCHEMA = 2, ROW_GROUPS = 4, KEY_VALUES = 5, COLUMN_ORDERS = 7, ENCRYPTION_ALGORITHM = 8, COLUMNS = 1, META_DATA = 3, CRYPTO_METADATA = 8, ENCRYPTED_METADATA = 9 };

/* How deep the fields of these structs are. Lists count as well as structs, whether a field is known or skipped: so all ways through the
 * same bytes come to the same depth, and what `walk` takes, `numbers` takes. */
enum { IN_FILE = 1, IN_ROW_GROUP = 3, IN_CHUNK = 5, IN_META_DATA = 6 };

/* Return the slot of the field if the struct has such a field of this kind; else NULL: then Thrift skips the field. */
static const uint8_t *find_slot(const struct footer *f, unsigned number, const struct field *field)
{
    if (field->id <= 0 || field->id >= SLOTS)
        return NULL;
    const uint8_t *slot = f->table + ((Py_ssize_t)number * SLOTS + field->id) * SLOT_BYTES;
    return slot[0] != STOP && slot[0] == (field->kind == FALSE_ ? TRUE_ : field->kind) ? slot : NULL;
}

static unsigned nested_in(const uint8_t *slot)
{
    return (unsigned)slot[2] | (unsigned)slot[3] << 8;
}

static Py_ssize_t read_struct(const struct footer *f, Py_ssize_t pos, unsigned number, int depth);

/* Return the position after the value of a field that `slot` defines. */
static Py_ssize_t read_value(const struct footer *f, Py_ssize_t pos, const uint8_t *slot, int depth)
{
    uint64_t count;
    int element;
    if (slot[0] == STRUCT)
        return depth >= f->max_depth ? REFUSED : read_struct(f, pos, nested_in(slot), depth + 1);
    if (slot[0] != LIST)
        return skip_value(f, pos, slot[0], depth);
    pos = read_list(f, pos, &element, &count);
    if (pos == REFUSED || depth >= f->max_depth || (count && element != slot[1]))
        return REFUSED;
    depth++;
    if (f->elements && element == STRUCT)
        *f->elements += count;
    for (; count; count--) {
        if (element != STRUCT)
            pos = skip_element(f, pos, element, depth);
        else
            pos = depth >= f->max_depth ? REFUSED : read_struct(f, pos, nested_in(slot), depth + 1);
        if (pos == REFUSED)
            return REFUSED;
    }
    return pos;
}

static Py_ssize_t read_known_or_skip(const struct footer *f, Py_ssize_t pos, const uint8_t *slot, const struct field *field, int depth)
{
    return slot ? read_value(f, pos, slot, depth) : skip_value(f, pos, field->kind, depth);
}

static Py_ssize_t read_struct(const struct footer *f, Py_ssize_t pos, unsigned number, int depth)
{
    struct field field = {0, STOP};
    for (;;) {
        pos = read_field(f, pos, &field);
        if (pos == REFUSED || field.kind == STOP)
            return pos;
        pos = read_known_or_skip(f, pos, find_slot(f, number, &field), &field, depth);
        if (pos == REFUSED)
            return REFUSED;
    }
}

/* Count the elements of a list of structs at `pos`, which has been read; 0 for any other value. */
static uint64_t count_structs(const struct footer *f, Py_ssize_t pos, const struct field *field)
{
    uint64_t count = 0;
    int element;
    if (field->kind != LIST || read_list(f, pos, &element, &count) == REFUSED || element != STRUCT)
        return 0;
    return count;
}

/* Return whether the table is one: the walker relies on these bounds, and on struct 0, the lists and the elements being structs. */
static int is_table(const struct footer *f, Py_ssize_t table_bytes)
{
    if (f->num_structs < 1 || f->num_structs * SLOTS * SLOT_BYTES != table_bytes)
        return 0;
    for (Py_ssize_t at = 0; at < f->num_structs * SLOTS; at++) {
        const uint8_t *slot = f->table + at * SLOT_BYTES;
        if (slot[0] >= NUM_KINDS || slot[1] >= NUM_KINDS || nested_in(slot) >= f->num_structs)
            return 0;
    }
    return 1;
}

#endif
