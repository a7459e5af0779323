/* Values of Thrift's compact protocol, whatever they mean: each function returns the position after what it reads, or REFUSED. */
#ifndef PROTOCOL_H
#define PROTOCOL_H

#include <pyconfig.h>
#ifndef Py_GIL_DISABLED
#define Py_LIMITED_API 0x030b0000 /* free-threaded versions of Python have none */
#endif
#include <Python.h>

#include <stdint.h>
#include <string.h>

#define UNUSED __attribute__((unused))

enum { STOP, TRUE_, FALSE_, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT, UUID, NUM_KINDS };

#define REFUSED (-1) /* In place of a position. */

struct footer {
    const uint8_t *data;
    Py_ssize_t size;
    const uint8_t *table; /* SLOTS slots per struct, one per field id: kind, kind of elements, number of the nested struct (16 bits, LE) */
    Py_ssize_t num_structs;
    int max_depth;       /* of structs and containers */
    uint64_t *elements;  /* where structs in known lists are counted; NULL if they are not */
};

struct field {
    int id, kind;
};

/* Return the position after the varint at `pos`. Most have one byte. */
static inline Py_ssize_t read_varint(const struct footer *f, Py_ssize_t pos, int most_bytes, uint64_t *value)
{
    uint64_t read = 0;
    if (pos < f->size && f->data[pos] < 0x80) {
        *value = f->data[pos];
        return pos + 1;
    }
    for (int at = 0; at < most_bytes; at++) {
        if (pos >= f->size)
            return REFUSED;
        uint8_t byte = f->data[pos++];
        read |= (uint64_t)(byte & 0x7F) << (7 * at);
        if (byte < 0x80) {
            *value = read;
            return pos;
        }
    }
    return REFUSED;
}

static int bytes_of_int(int kind)
{
    return kind == I16 ? 3 : kind == I32 ? 5 : 10;
}

/* Return the value of a varint as Thrift does: folded bits above the width of the kind are dropped. */
static int64_t unfold(uint64_t folded, int kind)
{
    if (kind == I16)
        folded &= UINT16_MAX;
    else if (kind == I32)
        folded &= UINT32_MAX;
    return (int64_t)(folded >> 1 ^ (0 - (folded & 1)));
}

/* Read the header of the next field of a struct, whose last id is in `field`; its kind is STOP at the end of the struct. */
static inline Py_ssize_t read_field(const struct footer *f, Py_ssize_t pos, struct field *field)
{
    if (pos >= f->size)
        return REFUSED;
    uint8_t head = f->data[pos++];
    field->kind = head & 0x0F;
    if (field->kind >= NUM_KINDS)
        return REFUSED;
    if (field->kind == STOP)
        return pos;
    if (head >> 4) {
        field->id += head >> 4;
        return field->id > INT16_MAX ? REFUSED : pos;
    }
    uint64_t folded = 0;
    pos = read_varint(f, pos, bytes_of_int(I16), &folded);
    if (pos == REFUSED || folded > UINT16_MAX)
        return REFUSED;
    field->id = (int)unfold(folded, I16);
    return pos;
}

/* Return the position after the length at `pos`; at least `unit` bytes follow for each of the things that it counts. */
static Py_ssize_t read_length(const struct footer *f, Py_ssize_t pos, int unit, uint64_t *length)
{
    pos = read_varint(f, pos, bytes_of_int(I32), length);
    return pos == REFUSED || *length > INT32_MAX || *length > (uint64_t)(f->size - pos) / (uint64_t)unit ? REFUSED : pos;
}

static Py_ssize_t read_list(const struct footer *f, Py_ssize_t pos, int *element, uint64_t *count)
{
    if (pos >= f->size)
        return REFUSED;
    uint8_t head = f->data[pos++];
    *element = head & 0x0F;
    *count = head >> 4;
    if (*element >= NUM_KINDS)
        return REFUSED;
    if (*count == 15)
        return read_length(f, pos, 1, count);
    return *count > (uint64_t)(f->size - pos) ? REFUSED : pos;
}

static Py_ssize_t skip_bytes(const struct footer *f, Py_ssize_t pos, Py_ssize_t count)
{
    return count > f->size - pos ? REFUSED : pos + count;
}

static Py_ssize_t skip_element(const struct footer *f, Py_ssize_t pos, int kind, int depth);

/* Return the position after a value of any kind that begins at `pos`: the value of a field, which for booleans has no bytes. */
static Py_ssize_t skip_value(const struct footer *f, Py_ssize_t pos, int kind, int depth)
{
    return kind == TRUE_ || kind == FALSE_ ? pos : skip_element(f, pos, kind, depth);
}

static Py_ssize_t skip_struct(const struct footer *f, Py_ssize_t pos, int depth)
{
    struct field field = {0, STOP};
    for (;;) {
        pos = read_field(f, pos, &field);
        if (pos == REFUSED || field.kind == STOP)
            return pos;
        pos = skip_value(f, pos, field.kind, depth);
        if (pos == REFUSED)
            return REFUSED;
    }
}

static Py_ssize_t skip_element(const struct footer *f, Py_ssize_t pos, int kind, int depth)
{
    uint64_t count = 0;
    int key = BYTE, value = STOP;
    switch (kind) {
    case TRUE_:
    case FALSE_:
    case BYTE:
        return skip_bytes(f, pos, 1);
    case DOUBLE:
        return skip_bytes(f, pos, 8);
    case UUID:
        return skip_bytes(f, pos, 16);
    case I16:
    case I32:
    case I64:
        return read_varint(f, pos, bytes_of_int(kind), &count);
    case BINARY:
        pos = read_length(f, pos, 1, &count);
        return pos == REFUSED ? REFUSED : pos + (Py_ssize_t)count;
    case STRUCT:
        return depth >= f->max_depth ? REFUSED : skip_struct(f, pos, depth + 1);
    case LIST:
    case SET:
        pos = read_list(f, pos, &value, &count);
        break;
    case MAP:
        pos = read_length(f, pos, 1, &count);
        if (pos == REFUSED || count == 0)
            return pos;
        if (pos >= f->size)
            return REFUSED;
        key = f->data[pos] >> 4;
        value = f->data[pos++] & 0x0F;
        break;
    default:
        return REFUSED;
    }
    if (pos == REFUSED || depth >= f->max_depth)
        return REFUSED;
    for (; count; count--) {
        if (kind == MAP)
            pos = skip_element(f, pos, key, depth + 1);
        if (pos != REFUSED)
            pos = skip_element(f, pos, value, depth + 1);
        if (pos == REFUSED)
            return REFUSED;
    }
    return pos;
}

#endif
