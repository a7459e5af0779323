/* The header of a page (`PageHeader` of parquet.thrift), read as strictly as pages.py allows: what it does not expect, Python reads and judges.
 * A field of a known struct occurs once and has the kind of the definition; sizes and counts are stated and not negative. Fields that the
 * definition does not know are skipped, and so are statistics, which take most of the bytes of a header. */
#ifndef PAGE_HEADER_H
#define PAGE_HEADER_H

#include "_protocol.h"

enum { PAGE_OF_DATA = 0, PAGE_OF_DICTIONARY = 2, PAGE_OF_DATA_V2 = 3 };
enum { PLAIN_ENCODING = 0, PLAIN_DICTIONARY = 2, RLE_ENCODING = 3, BIT_PACKED = 4, DELTA_LENGTH_BYTE_ARRAY = 6, DELTA_BYTE_ARRAY = 7, RLE_DICTIONARY = 8 };

/* Field ids in parquet.thrift. */
enum { PAGE_TYPE = 1, PAGE_SIZE, PAGE_STORED, PAGE_CRC, DATA_HEADER, DICTIONARY_HEADER = 7, DATA_HEADER_V2 };
enum { DATA_VALUES = 1, DATA_ENCODING, DATA_DEFINITION, DATA_REPETITION };
enum { DICTIONARY_VALUES = 1, DICTIONARY_ENCODING };
enum { V2_VALUES = 1, V2_NULLS, V2_ROWS, V2_ENCODING, V2_DEFINITION_BYTES, V2_REPETITION_BYTES, V2_IS_COMPRESSED };

enum { NUM_IDS = 9, DEEPEST = 32 };

struct page {
    Py_ssize_t body;         /* The first byte after the header. */
    int64_t type, size, stored;
    int64_t values;          /* Of a data page, nulls included; else 0. */
    int64_t encoding;        /* Of a data page; else -1. */
    int64_t entries, entry_encoding; /* Of a dictionary page that states both; else -1. */
    int has_crc, is_compressed;
    uint32_t crc;
    int64_t definition_encoding, repetition_encoding; /* of levels */
    int64_t definition_bytes, repetition_bytes; /* Of version 2. */
};

/* The fields of a struct by their ids: a number, or where a struct begins. */
struct fields {
    int64_t values[NUM_IDS];
    unsigned present; /* a bit for each id */
};

static const uint8_t KINDS_OF_HEADER[NUM_IDS] = {0, I32, I32, I32, I32, STRUCT, STRUCT, STRUCT, STRUCT};
static const uint8_t KINDS_OF_DATA[NUM_IDS] = {0, I32, I32, I32, I32, STRUCT};
static const uint8_t KINDS_OF_DICTIONARY[NUM_IDS] = {0, I32, I32, TRUE_};
static const uint8_t KINDS_OF_DATA_V2[NUM_IDS] = {0, I32, I32, I32, I32, I32, I32, TRUE_, STRUCT};

static int has_all(const struct fields *fields, unsigned ids)
{
    return (fields->present & ids) == ids;
}

/* Read a struct whose fields have these kinds, by their ids; 0 is an id that the definition does not have. */
static Py_ssize_t read_fields(const struct footer *f, Py_ssize_t pos, const uint8_t *kinds, struct fields *fields, int depth)
{
    struct field field = {0, STOP};
    uint64_t folded = 0;
    memset(fields, 0, sizeof *fields);
    for (;;) {
        pos = read_field(f, pos, &field);
        if (pos == REFUSED || field.kind == STOP)
            return pos;
        int kind = field.kind == FALSE_ ? TRUE_ : field.kind;
        if (field.id < 0 || field.id >= NUM_IDS || !kinds[field.id]) {
            pos = skip_value(f, pos, field.kind, depth);
        } else if (kind != kinds[field.id] || fields->present & 1u << field.id) {
            return REFUSED;
        } else {
            fields->present |= 1u << field.id;
            if (kind == I32) {
                pos = read_varint(f, pos, bytes_of_int(I32), &folded);
                fields->values[field.id] = (int32_t)unfold(folded, I32);
            } else {
                fields->values[field.id] = kind == TRUE_ ? field.kind == TRUE_ : pos;
                pos = skip_value(f, pos, field.kind, depth);
            }
        }
        if (pos == REFUSED)
            return REFUSED;
    }
}

static int read_data_header(const struct footer *f, Py_ssize_t pos, struct page *page)
{
    struct fields data;
    if (read_fields(f, pos, KINDS_OF_DATA, &data, 2) == REFUSED ||
        !has_all(&data, 1u << DATA_VALUES | 1u << DATA_ENCODING | 1u << DATA_DEFINITION | 1u << DATA_REPETITION))
        return 0;
    page->values = data.values[DATA_VALUES];
    page->encoding = data.values[DATA_ENCODING];
    page->definition_encoding = data.values[DATA_DEFINITION];
    page->repetition_encoding = data.values[DATA_REPETITION];
    page->is_compressed = 1;
    return 1;
}

static int read_data_header_v2(const struct footer *f, Py_ssize_t pos, struct page *page)
{
    struct fields data;
    if (read_fields(f, pos, KINDS_OF_DATA_V2, &data, 2) == REFUSED ||
        !has_all(&data, 1u << V2_VALUES | 1u << V2_ENCODING | 1u << V2_DEFINITION_BYTES | 1u << V2_REPETITION_BYTES))
        return 0;
    page->values = data.values[V2_VALUES];
    page->encoding = data.values[V2_ENCODING];
    page->definition_bytes = data.values[V2_DEFINITION_BYTES];
    page->repetition_bytes = data.values[V2_REPETITION_BYTES];
    page->definition_encoding = page->repetition_encoding = RLE_ENCODING;
    page->is_compressed = !has_all(&data, 1u << V2_IS_COMPRESSED) || data.values[V2_IS_COMPRESSED];
    return page->definition_bytes >= 0 && page->repetition_bytes >= 0;
}

static int read_dictionary_header(const struct footer *f, Py_ssize_t pos, struct page *page)
{
    struct fields dictionary;
    if (read_fields(f, pos, KINDS_OF_DICTIONARY, &dictionary, 2) == REFUSED || !has_all(&dictionary, 1u << DICTIONARY_VALUES | 1u << DICTIONARY_ENCODING))
        return 0;
    page->entries = dictionary.values[DICTIONARY_VALUES];
    page->entry_encoding = dictionary.values[DICTIONARY_ENCODING];
    return 1;
}

/* Read the header at `pos`; return the position after it. */
static Py_ssize_t read_page_header(const struct footer *f, Py_ssize_t pos, struct page *page)
{
    struct fields header;
    Py_ssize_t end = read_fields(f, pos, KINDS_OF_HEADER, &header, 1);
    if (end == REFUSED || !has_all(&header, 1u << PAGE_TYPE | 1u << PAGE_SIZE | 1u << PAGE_STORED))
        return REFUSED;
    memset(page, 0, sizeof *page);
    page->body = end;
    page->type = header.values[PAGE_TYPE];
    page->size = header.values[PAGE_SIZE];
    page->stored = header.values[PAGE_STORED];
    page->has_crc = has_all(&header, 1u << PAGE_CRC);
    page->crc = (uint32_t)header.values[PAGE_CRC];
    page->encoding = page->entries = page->entry_encoding = -1;
    int is_known = 1;
    if (page->type == PAGE_OF_DATA)
        is_known = has_all(&header, 1u << DATA_HEADER) && read_data_header(f, (Py_ssize_t)header.values[DATA_HEADER], page);
    else if (page->type == PAGE_OF_DATA_V2)
        is_known = has_all(&header, 1u << DATA_HEADER_V2) && read_data_header_v2(f, (Py_ssize_t)header.values[DATA_HEADER_V2], page);
    else if (page->type == PAGE_OF_DICTIONARY)
        is_known = has_all(&header, 1u << DICTIONARY_HEADER) && read_dictionary_header(f, (Py_ssize_t)header.values[DICTIONARY_HEADER], page);
    return is_known && page->size >= 0 && page->stored >= 0 && page->values >= 0 ? end : REFUSED;
}

/* Return the most bytes that a reader allocates for a page: see `StoredPage.ensure_size` in pages.py. */
static int64_t largest_size(const struct page *page)
{
    int64_t most = page->size > page->stored ? page->size : page->stored, bytes_of_length = 0;
    if (page->encoding == DELTA_LENGTH_BYTE_ARRAY)
        bytes_of_length = 4;
    else if (page->encoding == DELTA_BYTE_ARRAY)
        bytes_of_length = 8;
    return bytes_of_length * page->values > most ? bytes_of_length * page->values : most;
}

#endif
