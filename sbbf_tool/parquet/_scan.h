/* The answer of one plain file for the values of a column, from its bytes: what _scan.c does for each file, without Python and without calls
 * of the system, so that a harness can feed it bytes.
 *
 * It never decides what bytes mean. Python judges each kind of file once, by the functions that judge every file (file/scan_kinds.py), and the
 * judgment comes here as a `struct kind`. A kind is found by the bytes of the footer that decide it: all but row groups, the number of rows,
 * and key-values whose names no judgment reads. What differs between files of a kind is checked here, for each file and each chunk:
 *
 *   file    footer, number of row groups and of the chunks in each; a filter shares no byte with pages, page indexes or other filters
 *   chunk   type, counts of values and nulls, min and max, the filter's place, header and length; it is in this file, and not encrypted
 *
 * What is not as expected declines the file: then Python opens it, and judges and reports as if this module did not exist. Declining is always
 * allowed; a different answer never is. The rules are those of footer.py, pages.py, statistics.py, filters.py, layout.py, doubts.py, pruning.py
 * and filter_answers.py, in this order; a comment names the function that a rule follows.
 *
 * Bytes of a file are not trusted: each position is within what was read, and each offset within the file, before it is used.
 */
#ifndef SCAN_H
#define SCAN_H

#include <stdlib.h>

#include "../bloom/_sbbf.h"
#include "_definition.h"
#include "_page_run.h"

enum { DECLINED = -1, UNKNOWN_KIND = -2 }; /* In place of the number of the kind whose judgment answered. */

/* Field ids in parquet.thrift. */
enum { NUM_ROWS = 3, PAIR_KEY = 1 };
enum { FILE_PATH = 1, OFFSET_INDEX_OFFSET = 4, OFFSET_INDEX_LENGTH, COLUMN_INDEX_OFFSET, COLUMN_INDEX_LENGTH };
enum { TYPE = 1, ENCODINGS, CODEC = 4, NUM_VALUES, COMPRESSED_SIZE = 7, DATA_PAGE = 9, INDEX_PAGE, DICTIONARY_PAGE, STATISTICS, FILTER_OFFSET = 14, FILTER_LENGTH };
enum { OLD_MAX = 1, OLD_MIN, NULL_COUNT, MAX_VALUE = 5, MIN_VALUE };

enum {
    WINDOW = 4096,               /* Bytes at the end of a file that are read at once. */
    FILTER_WINDOW = 2048,        /* Bytes of a filter of known length that are read with its header. */
    HEADER_MOST = 19,            /* Bytes of a header in today's form. */
    TAIL_BYTES = 8,              /* The length of the footer, and the magic. */
    FEW_HASHES = 64,             /* Hashes up to which single blocks are read, not the whole bitset. */
    MOST_FOOTER_BYTES = 1 << 27, /* These limit the memory of a scan. */
    MOST_BITSET_BYTES = 1 << 25,
    MOST_KEPT_BYTES = 1 << 16,   /* Of a filter that is taken; 1,024 times as many of all details of a scan. */
    MOST_HITS = 1 << 18,
};

/* Limits of large_footers.py. */
enum { LARGE_FOOTER = 64 << 10, MANY_PAIRS = 10000, FREE_STRUCTS = 100000, BYTES_PER_STRUCT = 8, BYTES_PER_SCHEMA_ELEMENT = 16 };

/* --- Input --- */

struct input {
    int (*read)(void *from, uint8_t *to, size_t length, uint64_t offset); /* Return whether all bytes were read. */
    void *from;
    int64_t size, bytes_read;
};

struct bytes {
    uint8_t *data;
    size_t size, room;
};

struct numbers {
    int64_t *items;
    size_t count, room;
};

/* Memory that the files of a scan share. */
struct scratch {
    uint8_t window[WINDOW], filter_window[FILTER_WINDOW];
    int64_t filter_start, filter_end; /* What of the file is in `filter_window`. */
    struct bytes footer, key, bitset, found;
    struct numbers chunks;  /* The position of each ColumnChunk in the footer. */
    struct numbers spans;   /* From and to of pages and page indexes. */
    struct numbers filters; /* Of each filter its offset, its stated length or -1, and the number of its chunk. */
    struct numbers hits;    /* Path, row group and hash of each hash that a filter may hold. */
    struct numbers row_counts; /* Of each row group its rows, -1 if they are not stated, and the bytes of its chunks. */
    struct numbers rows;    /* Path, row group, row in the file and hash of each row that has a value. */
    struct numbers entries; /* Entry of a dictionary, and the hash that it equals. */
    struct numbers matches; /* The same of values of pages. */
    struct bytes details;   /* Of row groups: struct detail, min, max and filter. */
    struct bytes pages, content, present, plain, table, first;
    const struct kind *table_kind; /* whose hashes are in `table` */
    int64_t bytes_of_chunks;       /* that were read in this scan */
};

static void free_scratch(struct scratch *s)
{
    free(s->footer.data);
    free(s->key.data);
    free(s->bitset.data);
    free(s->found.data);
    free(s->chunks.items);
    free(s->spans.items);
    free(s->filters.items);
    free(s->hits.items);
    free(s->row_counts.items);
    free(s->rows.items);
    free(s->entries.items);
    free(s->matches.items);
    free(s->details.data);
    free(s->pages.data);
    free(s->content.data);
    free(s->present.data);
    free(s->plain.data);
    free(s->table.data);
    free(s->first.data);
}

/* Make room for this many bytes, and keep those that are there; return whether there was memory. */
static int make_room(struct bytes *bytes, size_t size)
{
    if (size <= bytes->room)
        return 1;
    size_t room = bytes->room ? bytes->room : 4096;
    while (room < size)
        room *= 2;
    uint8_t *data = realloc(bytes->data, room);
    if (!data)
        return 0;
    bytes->data = data;
    bytes->room = room;
    return 1;
}

static int push(struct numbers *numbers, int64_t item)
{
    if (numbers->count == numbers->room) {
        size_t room = numbers->room ? 2 * numbers->room : 256;
        int64_t *items = realloc(numbers->items, room * sizeof *items);
        if (!items)
            return 0;
        numbers->items = items;
        numbers->room = room;
    }
    numbers->items[numbers->count++] = item;
    return 1;
}

static int read_at(struct input *in, uint8_t *to, size_t length, int64_t offset)
{
    in->bytes_read += (int64_t)length;
    return in->read(in->from, to, length, (uint64_t)offset);
}

/* Return these bytes, which are within the file; NULL if they cannot be read. `room` has at least as many. */
static const uint8_t *view(struct input *in, const struct scratch *s, int64_t offset, size_t length, uint8_t *room)
{
    int64_t end = offset + (int64_t)length, window_start = in->size < WINDOW ? 0 : in->size - WINDOW;
    if (offset >= window_start)
        return s->window + (offset - window_start);
    if (s->filter_start <= offset && end <= s->filter_end)
        return s->filter_window + (offset - s->filter_start);
    return read_at(in, room, length, offset) ? room : NULL;
}

/* --- The kernel --- */

struct kernel {
    size_t (*check)(const uint8_t *bitset, uint64_t num_blocks, const uint8_t *hashes, size_t count, uint8_t *found);
    struct measurement (*measure)(const uint8_t *bitset, size_t num_blocks);
};

static struct measurement measure_plain(const uint8_t *bitset, size_t num_blocks)
{
    return measure_all(bitset, num_blocks);
}

static size_t check_plain(const uint8_t *bitset, uint64_t num_blocks, const uint8_t *hashes, size_t count, uint8_t *found)
{
    return check_all(bitset, num_blocks, hashes, count, found, 1);
}

#ifdef __x86_64__
#include "../bloom/_cpu.h"

__attribute__((target("avx2,popcnt"))) static size_t check_avx2(const uint8_t *bitset, uint64_t num_blocks, const uint8_t *hashes, size_t count,
                                                                uint8_t *found)
{
    return check_all(bitset, num_blocks, hashes, count, found, 4);
}

__attribute__((target("avx2,popcnt"))) static struct measurement measure_avx2(const uint8_t *bitset, size_t num_blocks)
{
    return measure_all(bitset, num_blocks);
}
#endif

/* Choose the fastest kernel that this machine supports. In a virtual machine, to ask takes as long as to scan a file. */
static struct kernel best_kernel(void)
{
#ifdef __x86_64__
    if (find_vectors().avx2)
        return (struct kernel){check_avx2, measure_avx2};
#endif
    return (struct kernel){check_plain, measure_plain};
}

/* --- The judgment of a kind --- */

enum key_order { NO_ORDER, SIGNED_ORDER, UNSIGNED_ORDER, FLOAT_ORDER, BYTES_ORDER, DECIMAL_ORDER };
enum {
    ALWAYS_DECLINES = 1,
    HAS_ORDER = 2,    /* The footer has the order of the column: min_value and max_value count. */
    EQUAL_ONLY = 4,   /* Of the older min and max, only equal ones count. */
    RELIABLE = 8,     /* The older min and max count at all. */
    FILTERS_ONLY = 16, /* Nothing but filters excludes a value. */
    HAS_USUAL = 32,   /* A chunk with a bound outside of the usual numbers declines. */
    WITH_BOUNDS = 128, /* Warnings depend on min and max of the first row group. */
    CONFIRMS = 64,    /* The column is read where the filter may hold a value: see _confirm.h. */
    OF_FILTERS = 256, /* The question is whether every filter of the file fits: see _fit.h, which says what keys and offsets are. */
    BITS_ALONE = 512, /* Then neither the order of row groups nor the cost of a filter counts. */
    WITH_DETAILS = 1024, /* Of every row group, its details are wanted. */
    WITH_FILTERS = 2048, /* And its filter. */
};
enum { NUMBERS_OF_KIND = 10 };

struct kind {
    const uint8_t *key;
    size_t key_size;
    int64_t flags, num_leaves, leaf, type, width, order, usual_low, usual_high;
    int64_t definition; /* The highest definition level of the column. */
    size_t num_keys; /* The first hashes have keys, ascending. */
    const uint8_t *keys;
    size_t keys_size;
    const uint8_t *offsets; /* Of keys in BYTES_ORDER: where each begins, and where the last one ends. */
    const uint8_t *hashes;
    size_t num_hashes;
};

/* Read the numbers of a kind; return that of its keys. */
static int64_t read_numbers(const uint8_t *numbers, struct kind *kind)
{
    int64_t each[NUMBERS_OF_KIND];
    memcpy(each, numbers, sizeof each);
    kind->flags = each[0];
    kind->num_leaves = each[1];
    kind->leaf = each[2];
    kind->type = each[3];
    kind->width = each[4];
    kind->order = each[5];
    kind->usual_low = each[6];
    kind->usual_high = each[7];
    kind->definition = each[9];
    return each[8];
}

/* Return the bytes of each key; 0 if its width is not one of the order. */
static size_t has_width(const struct kind *kind)
{
    if (kind->leaf < 0 || kind->leaf >= kind->num_leaves)
        return 0;
    if (kind->flags & HAS_USUAL && kind->order != SIGNED_ORDER && kind->order != UNSIGNED_ORDER)
        return 0;
    switch (kind->order) {
    case NO_ORDER:
    case BYTES_ORDER:
        return 1;
    case SIGNED_ORDER:
    case UNSIGNED_ORDER:
        return kind->width == 4 || kind->width == 8 ? sizeof(int64_t) : 0;
    case FLOAT_ORDER:
        return kind->width == 2 || kind->width == 4 || kind->width == 8 ? sizeof(double) : 0;
    case DECIMAL_ORDER:
        return kind->width >= 1 && kind->width <= INT32_MAX ? (size_t)kind->width : 0;
    default:
        return 0;
    }
}

/* --- The footer as a whole --- */

struct walk {
    struct kernel kernel;
    struct codecs *codecs; /* NULL if pages in other codecs than Snappy are not read */
    struct footer f;
    struct scratch *s;
    int64_t footer_start;
    const uint8_t *names; /* Of key-values that decide nothing; each follows its length in one byte. */
    size_t names_size;
    uint64_t elements, num_schema, num_pairs, num_orders, num_row_groups, num_chunks; /* Chunks in each row group. */
    int64_t num_rows, chunk_bytes; /* Bytes of all chunks together. */
    int has_large_chunk;           /* A chunk that states more bytes than are before the footer; these count. */
    unsigned chunk_struct;
    size_t last_span[3]; /* One more than the place of the last span of pages, and of each page index. */
};

static Py_ssize_t read_int(const struct footer *f, Py_ssize_t pos, int kind, int64_t *value)
{
    uint64_t folded = 0;
    pos = read_varint(f, pos, bytes_of_int(kind), &folded);
    *value = unfold(folded, kind);
    return pos;
}

/* Add a part of the footer to the bytes that decide its kind; its id, kind and length make their sequence unique. */
static int add_to_key(struct walk *w, const struct field *field, Py_ssize_t start, Py_ssize_t end)
{
    struct bytes *key = &w->s->key;
    size_t length = (size_t)(end - start);
    const int64_t head[] = {field->id, field->kind, (int64_t)length};
    if (!make_room(key, key->size + sizeof head + length))
        return 0;
    memcpy(key->data + key->size, head, sizeof head);
    memcpy(key->data + key->size + sizeof head, w->f.data + start, length);
    key->size += sizeof head + length;
    return 1;
}

static int is_named(const struct walk *w, const uint8_t *name, uint64_t length)
{
    const uint8_t *each = w->names, *end = each + w->names_size;
    for (; each < end && each[0] < end - each; each += 1 + each[0])
        if (length == each[0] && !memcmp(name, each + 1, length))
            return 1;
    return 0;
}

static Py_ssize_t walk_pairs(struct walk *w, Py_ssize_t pos, const struct field *list)
{
    uint64_t count, length;
    int element;
    pos = read_list(&w->f, pos, &element, &count);
    if (pos == REFUSED || (count && element != STRUCT))
        return REFUSED;
    w->num_pairs = count;
    for (; count; count--) {
        struct field field = {0, STOP};
        Py_ssize_t start = pos;
        int is_left_out = 0;
        for (;;) {
            pos = read_field(&w->f, pos, &field);
            if (pos == REFUSED)
                return REFUSED;
            if (field.kind == STOP)
                break;
            if (field.id == PAIR_KEY && field.kind == BINARY) {
                pos = read_length(&w->f, pos, 1, &length);
                if (pos == REFUSED)
                    return REFUSED;
                is_left_out = is_named(w, w->f.data + pos, length);
                pos += (Py_ssize_t)length;
            } else {
                pos = skip_value(&w->f, pos, field.kind, IN_ROW_GROUP);
            }
            if (pos == REFUSED)
                return REFUSED;
        }
        if (!is_left_out && !add_to_key(w, list, start, pos))
            return REFUSED;
    }
    return pos;
}

/* What is read of every chunk; 0 is what is not stated. */
struct place {
    int64_t offset_index, offset_index_length, column_index, column_index_length, size, data, index, dictionary, filter, filter_length;
    int has_filter_length;
};

/* Note bytes that belong to a chunk. Spans of one sort that touch become one: most chunks follow each other. */
static int note_span(struct walk *w, int sort, int64_t start, int64_t length)
{
    struct numbers *spans = &w->s->spans;
    size_t last = w->last_span[sort];
    if (start <= 0 || start >= w->footer_start || length <= 0)
        return 1;
    int64_t end = length < w->footer_start - start ? start + length : w->footer_start;
    if (last && spans->items[last] == start) {
        spans->items[last] = end;
        return 1;
    }
    if (!push(spans, start) || !push(spans, end))
        return 0;
    w->last_span[sort] = spans->count - 1;
    return 1;
}

/* See `_parts`, `_owned` and `_leading_bytes` in layout.py. */
static int note_place(struct walk *w, const struct place *p)
{
    int64_t first = p->data;
    if (p->dictionary > 0 && (p->dictionary < first || first <= 0))
        first = p->dictionary;
    if (p->index > 0 && (p->index < first || first <= 0))
        first = p->index;
    if (p->size > 0)
        w->chunk_bytes += p->size < w->footer_start ? p->size : w->footer_start;
    w->has_large_chunk |= p->size > w->footer_start;
    if (!note_span(w, 0, first, p->size) || !note_span(w, 1, p->column_index, p->column_index_length) ||
        !note_span(w, 2, p->offset_index, p->offset_index_length))
        return 0;
    if (p->filter <= 0)
        return 1;
    if (p->filter < first && first < w->footer_start && p->size > 0)
        return 0; /* a filter before its pages, as in the first draft */
    if (p->filter > INT64_MAX / 2 || p->filter_length < 0)
        return 0;
    return push(&w->s->filters, p->filter) && push(&w->s->filters, p->has_filter_length ? p->filter_length : -1) &&
           push(&w->s->filters, (int64_t)w->s->chunks.count - 1);
}

static Py_ssize_t walk_meta(struct walk *w, Py_ssize_t pos, unsigned number, struct place *p)
{
    struct field field = {0, STOP};
    int64_t *to;
    for (;;) {
        pos = read_field(&w->f, pos, &field);
        if (pos == REFUSED || field.kind == STOP)
            return pos;
        const uint8_t *slot = find_slot(&w->f, number, &field);
        switch (slot ? field.id : 0) {
        case COMPRESSED_SIZE:
            to = &p->size;
            break;
        case DATA_PAGE:
            to = &p->data;
            break;
        case INDEX_PAGE:
            to = &p->index;
            break;
        case DICTIONARY_PAGE:
            to = &p->dictionary;
            break;
        case FILTER_OFFSET:
            to = &p->filter;
            break;
        case FILTER_LENGTH:
            to = &p->filter_length;
            p->has_filter_length = 1;
            break;
        default:
            to = NULL;
        }
        pos = to ? read_int(&w->f, pos, field.kind, to) : read_known_or_skip(&w->f, pos, slot, &field, IN_META_DATA);
        if (pos == REFUSED)
            return REFUSED;
    }
}

static Py_ssize_t walk_chunk(struct walk *w, Py_ssize_t pos, unsigned number)
{
    struct field field = {0, STOP};
    struct place place = {0};
    uint64_t length = 0;
    int has_meta = 0;
    int64_t *to;
    for (;;) {
        pos = read_field(&w->f, pos, &field);
        if (pos == REFUSED)
            return REFUSED;
        if (field.kind == STOP)
            return has_meta && note_place(w, &place) ? pos : REFUSED;
        const uint8_t *slot = find_slot(&w->f, number, &field);
        to = NULL;
        switch (slot ? field.id : 0) {
        case FILE_PATH:
            /* Another file may have the chunk: see `elsewhere` in footer.py. */
            if (read_length(&w->f, pos, 1, &length) == REFUSED || length)
                return REFUSED;
            break;
        case META_DATA:
            if (has_meta)
                return REFUSED;
            has_meta = 1;
            pos = walk_meta(w, pos, nested_in(slot), &place);
            if (pos == REFUSED)
                return REFUSED;
            continue;
        case CRYPTO_METADATA:
        case ENCRYPTED_METADATA:
            return REFUSED;
        case OFFSET_INDEX_OFFSET:
            to = &place.offset_index;
            break;
        case OFFSET_INDEX_LENGTH:
            to = &place.offset_index_length;
            break;
        case COLUMN_INDEX_OFFSET:
            to = &place.column_index;
            break;
        case COLUMN_INDEX_LENGTH:
            to = &place.column_index_length;
            break;
        }
        pos = to ? read_int(&w->f, pos, field.kind, to) : read_known_or_skip(&w->f, pos, slot, &field, IN_CHUNK);
        if (pos == REFUSED)
            return REFUSED;
    }
}

static Py_ssize_t walk_row_group(struct walk *w, Py_ssize_t pos, unsigned number, int is_first)
{
    struct field field = {0, STOP};
    uint64_t count;
    int64_t num_rows = -1, bytes_before = w->chunk_bytes;
    int element, has_list = 0;
    for (;;) {
        pos = read_field(&w->f, pos, &field);
        if (pos == REFUSED)
            return REFUSED;
        if (field.kind == STOP)
            return has_list && push(&w->s->row_counts, num_rows) && push(&w->s->row_counts, w->chunk_bytes - bytes_before) ? pos : REFUSED;
        const uint8_t *slot = find_slot(&w->f, number, &field);
        if (!slot || field.id != COLUMNS) {
            if (slot && field.id == NUM_ROWS)
                pos = read_int(&w->f, pos, field.kind, &num_rows);
            else
                pos = read_known_or_skip(&w->f, pos, slot, &field, IN_ROW_GROUP);
            if (pos == REFUSED)
                return REFUSED;
            continue;
        }
        pos = has_list ? REFUSED : read_list(&w->f, pos, &element, &count);
        if (pos == REFUSED || (count && element != STRUCT) || (!is_first && count != w->num_chunks))
            return REFUSED;
        has_list = 1;
        w->num_chunks = count;
        w->elements += count;
        w->chunk_struct = nested_in(slot);
        for (; count; count--) {
            if (!push(&w->s->chunks, pos))
                return REFUSED;
            pos = walk_chunk(w, pos, w->chunk_struct);
            if (pos == REFUSED)
                return REFUSED;
        }
    }
}

static Py_ssize_t walk_row_groups(struct walk *w, Py_ssize_t pos, unsigned number)
{
    uint64_t count;
    int element;
    pos = read_list(&w->f, pos, &element, &count);
    if (pos == REFUSED || (count && element != STRUCT))
        return REFUSED;
    w->num_row_groups = count;
    w->elements += count;
    for (uint64_t at = 0; at < count; at++) {
        pos = walk_row_group(w, pos, number, at == 0);
        if (pos == REFUSED)
            return REFUSED;
    }
    return pos;
}

/* See large_footers.py: larger ones than these are refused, or cut. */
static int is_of_usual_size(const struct walk *w)
{
    uint64_t size = (uint64_t)w->f.size;
    if (size <= LARGE_FOOTER)
        return 1;
    return w->elements <= FREE_STRUCTS + size / BYTES_PER_STRUCT && w->num_schema <= FREE_STRUCTS + size / BYTES_PER_SCHEMA_ELEMENT &&
           w->num_pairs <= MANY_PAIRS && w->num_orders <= w->num_schema;
}

/* Read the header of a field of a struct, and find what the table has for it: NULL if nothing. A known field that occurs twice is refused. */
static Py_ssize_t read_field_once(const struct footer *f, Py_ssize_t pos, unsigned number, struct field *field, uint32_t *seen,
                                  const uint8_t **slot)
{
    pos = read_field(f, pos, field);
    if (pos == REFUSED || field->kind == STOP)
        return pos;
    *slot = find_slot(f, number, field);
    if (!*slot)
        return pos;
    if (*seen & UINT32_C(1) << field->id)
        return REFUSED;
    *seen |= UINT32_C(1) << field->id;
    return pos;
}

/* Walk over the footer, whose bytes and table `w` has; return whether it is plain, and leave its key and its spans in the scratch. */
static int walk_footer(struct walk *w)
{
    struct field field = {0, STOP};
    const uint8_t *slot = NULL;
    Py_ssize_t pos = 0, start;
    uint32_t seen = 0;
    uint64_t elements;
    w->s->key.size = w->s->chunks.count = w->s->spans.count = w->s->filters.count = w->s->row_counts.count = 0;
    w->elements = w->num_schema = w->num_pairs = w->num_orders = w->num_row_groups = w->num_chunks = 0;
    w->num_rows = w->chunk_bytes = w->has_large_chunk = 0;
    memset(w->last_span, 0, sizeof w->last_span);
    w->f.elements = &w->elements;
    for (;;) {
        pos = read_field_once(&w->f, pos, 0, &field, &seen, &slot);
        if (pos == REFUSED)
            return 0;
        if (field.kind == STOP)
            break;
        start = pos;
        elements = w->elements;
        switch (slot ? field.id : 0) {
        case ENCRYPTION_ALGORITHM:
            return 0;
        case NUM_ROWS:
            pos = read_int(&w->f, pos, field.kind, &w->num_rows);
            break;
        case ROW_GROUPS:
            pos = walk_row_groups(w, pos, nested_in(slot));
            break;
        case KEY_VALUES:
            pos = walk_pairs(w, pos, &field);
            break;
        default:
            pos = read_known_or_skip(&w->f, pos, slot, &field, IN_FILE);
            if (pos == REFUSED || !add_to_key(w, &field, start, pos))
                return 0;
            if (slot && field.id == SCHEMA)
                w->num_schema = count_structs(&w->f, start, &field);
            if (slot && field.id == COLUMN_ORDERS) {
                w->num_orders = count_structs(&w->f, start, &field);
                w->elements = elements;
            }
        }
        if (pos == REFUSED)
            return 0;
    }
    return seen & UINT32_C(1) << SCHEMA && seen & UINT32_C(1) << ROW_GROUPS && is_of_usual_size(w);
}

/* --- One chunk --- */

struct span {
    const uint8_t *data; /* NULL for none. */
    size_t length;
};

struct chunk {
    int64_t type, codec, num_values, nulls, size, data, dictionary, filter, filter_length;
    int has_type, has_values, has_statistics, has_nulls, has_filter, has_filter_length;
    int has_other_encodings; /* Than those of `may_be_plain` in plain_pages.py. */
    struct span bounds[MIN_VALUE + 1];
};

static Py_ssize_t read_statistics(const struct footer *f, Py_ssize_t pos, unsigned number, struct chunk *chunk)
{
    struct field field = {0, STOP};
    const uint8_t *slot = NULL;
    uint64_t length = 0;
    uint32_t seen = 0;
    for (;;) {
        pos = read_field_once(f, pos, number, &field, &seen, &slot);
        if (pos == REFUSED || field.kind == STOP)
            return pos;
        switch (slot ? field.id : 0) {
        case NULL_COUNT:
            pos = read_int(f, pos, field.kind, &chunk->nulls);
            chunk->has_nulls = 1;
            break;
        case OLD_MAX:
        case OLD_MIN:
        case MAX_VALUE:
        case MIN_VALUE:
            pos = read_length(f, pos, 1, &length);
            if (pos == REFUSED)
                return REFUSED;
            chunk->bounds[field.id] = (struct span){f->data + pos, (size_t)length};
            pos += (Py_ssize_t)length;
            break;
        default:
            pos = read_known_or_skip(f, pos, slot, &field, IN_META_DATA + 1);
        }
        if (pos == REFUSED)
            return REFUSED;
    }
}

static Py_ssize_t read_encodings(const struct footer *f, Py_ssize_t pos, struct chunk *chunk)
{
    static const uint8_t are_read[] = {[PLAIN_ENCODING] = 1, [PLAIN_DICTIONARY] = 1, [RLE_ENCODING] = 1, [BIT_PACKED] = 1, [RLE_DICTIONARY] = 1};
    uint64_t count;
    int64_t encoding;
    int element;
    pos = read_list(f, pos, &element, &count);
    if (pos == REFUSED || (count && element != I32))
        return REFUSED;
    for (; count && pos != REFUSED; count--) {
        pos = read_int(f, pos, I32, &encoding);
        chunk->has_other_encodings |= encoding < 0 || encoding >= (int64_t)sizeof are_read || !are_read[encoding];
    }
    return pos;
}

static Py_ssize_t read_meta(const struct footer *f, Py_ssize_t pos, unsigned number, struct chunk *chunk)
{
    struct field field = {0, STOP};
    const uint8_t *slot = NULL;
    uint32_t seen = 0;
    for (;;) {
        pos = read_field_once(f, pos, number, &field, &seen, &slot);
        if (pos == REFUSED || field.kind == STOP)
            return pos;
        switch (slot ? field.id : 0) {
        case TYPE:
            pos = read_int(f, pos, field.kind, &chunk->type);
            chunk->has_type = 1;
            break;
        case NUM_VALUES:
            pos = read_int(f, pos, field.kind, &chunk->num_values);
            chunk->has_values = 1;
            break;
        case ENCODINGS:
            pos = read_encodings(f, pos, chunk);
            break;
        case CODEC:
            pos = read_int(f, pos, field.kind, &chunk->codec);
            break;
        case COMPRESSED_SIZE:
            pos = read_int(f, pos, field.kind, &chunk->size);
            break;
        case DATA_PAGE:
            pos = read_int(f, pos, field.kind, &chunk->data);
            break;
        case DICTIONARY_PAGE:
            pos = read_int(f, pos, field.kind, &chunk->dictionary);
            break;
        case STATISTICS:
            pos = read_statistics(f, pos, nested_in(slot), chunk);
            chunk->has_statistics = 1;
            break;
        case FILTER_OFFSET:
            pos = read_int(f, pos, field.kind, &chunk->filter);
            chunk->has_filter = 1;
            break;
        case FILTER_LENGTH:
            pos = read_int(f, pos, field.kind, &chunk->filter_length);
            chunk->has_filter_length = 1;
            break;
        default:
            pos = read_known_or_skip(f, pos, slot, &field, IN_META_DATA);
        }
        if (pos == REFUSED)
            return REFUSED;
    }
}

static int read_chunk(const struct walk *w, Py_ssize_t pos, struct chunk *chunk)
{
    struct field field = {0, STOP};
    for (;;) {
        pos = read_field(&w->f, pos, &field);
        if (pos == REFUSED)
            return 0;
        if (field.kind == STOP)
            return 1;
        const uint8_t *slot = find_slot(&w->f, w->chunk_struct, &field);
        if (slot && field.id == META_DATA)
            pos = read_meta(&w->f, pos, nested_in(slot), chunk);
        else
            pos = read_known_or_skip(&w->f, pos, slot, &field, IN_CHUNK);
        if (pos == REFUSED)
            return 0;
    }
}

/* --- Statistics --- */

/* A bound as the column compares it: see `key_of` in statistics.py. */
struct bound {
    int is_valid;
    int64_t number; /* the bits of an unsigned one */
    double real;
    struct span bytes;
};

static double half_to_double(uint16_t half)
{
    int exponent = half >> 10 & 31;
    double fraction = (double)(half & 1023) / 1024, value;
    if (exponent == 31) {
        uint64_t bits = UINT64_C(0x7FF) << 52 | (uint64_t)(half & 1023) << 42;
        memcpy(&value, &bits, sizeof value);
    } else if (exponent) {
        value = 1 + fraction;
        for (; exponent > 15; exponent--)
            value *= 2;
        for (; exponent < 15; exponent++)
            value /= 2;
    } else {
        value = fraction / 16384;
    }
    return half >> 15 ? -value : value;
}

static int64_t load_signed(const uint8_t *data, int64_t width)
{
    return width == 4 ? (int64_t)(int32_t)load_le32(data) : (int64_t)load_le64(data);
}

static double load_float(const uint8_t *data, int64_t width)
{
    double real;
    if (width == 2)
        return half_to_double((uint16_t)(data[0] | data[1] << 8));
    if (width == 4) {
        uint32_t bits = load_le32(data);
        float single;
        memcpy(&single, &bits, sizeof single);
        return single;
    }
    uint64_t bits = load_le64(data);
    memcpy(&real, &bits, sizeof real);
    return real;
}

static struct bound bound_of(const struct kind *kind, struct span plain)
{
    struct bound bound = {0, 0, 0, plain};
    if (kind->order != BYTES_ORDER && plain.length != (size_t)kind->width)
        return bound;
    bound.is_valid = 1;
    if (kind->order == SIGNED_ORDER)
        bound.number = load_signed(plain.data, kind->width);
    else if (kind->order == UNSIGNED_ORDER)
        bound.number = kind->width == 4 ? (int64_t)load_le32(plain.data) : (int64_t)load_le64(plain.data);
    else if (kind->order == FLOAT_ORDER) {
        bound.real = load_float(plain.data, kind->width);
        bound.is_valid = bound.real == bound.real;
    }
    return bound;
}

static int compare_bytes(struct span a, struct span b)
{
    size_t shorter = a.length < b.length ? a.length : b.length;
    int order = shorter ? memcmp(a.data, b.data, shorter) : 0;
    return order ? order : (a.length > b.length) - (a.length < b.length);
}

/* Compare two bounds, or a key and a bound, in the order of the column. */
static int compare(const struct kind *kind, const struct bound *a, const struct bound *b)
{
    switch (kind->order) {
    case SIGNED_ORDER:
        return (a->number > b->number) - (a->number < b->number);
    case UNSIGNED_ORDER:
        return ((uint64_t)a->number > (uint64_t)b->number) - ((uint64_t)a->number < (uint64_t)b->number);
    case FLOAT_ORDER:
        return (a->real > b->real) - (a->real < b->real);
    case DECIMAL_ORDER: {
        /* Both have the width of the column; only the sign is not in the order of bytes. */
        int a_sign = a->bytes.data[0] >> 7, b_sign = b->bytes.data[0] >> 7;
        return a_sign != b_sign ? b_sign - a_sign : compare_bytes(a->bytes, b->bytes);
    }
    default:
        return compare_bytes(a->bytes, b->bytes);
    }
}

static struct bound key_at(const struct kind *kind, size_t at)
{
    struct bound key = {1, 0, 0, {NULL, 0}};
    if (kind->order == BYTES_ORDER) {
        uint64_t start = load_hash(kind->offsets, at);
        key.bytes = (struct span){kind->keys + start, (size_t)(load_hash(kind->offsets, at + 1) - start)};
    } else if (kind->order == DECIMAL_ORDER) {
        key.bytes = (struct span){kind->keys + at * (size_t)kind->width, (size_t)kind->width};
    } else if (kind->order == FLOAT_ORDER) {
        memcpy(&key.real, kind->keys + at * sizeof key.real, sizeof key.real);
    } else {
        memcpy(&key.number, kind->keys + at * sizeof key.number, sizeof key.number);
    }
    return key;
}

/* Return the first place of the keys that is not below `bound`, or, with `above`, that is above it. */
static size_t find_key(const struct kind *kind, const struct bound *bound, int above)
{
    size_t low = 0, high = kind->num_keys;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        struct bound key = key_at(kind, middle);
        if (compare(kind, &key, bound) < above)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct slice {
    size_t from, to; /* of the hashes that have keys */
};

static int are_equal(struct span a, struct span b)
{
    return a.length == b.length && !memcmp(a.data, b.data, a.length);
}

/* Return the number of values that are not null; -1 if it is unknown. See `non_null_values` in pages.py. */
static int64_t count_non_null(const struct chunk *chunk)
{
    const struct span *bounds = chunk->bounds;
    if (chunk->num_values == 0)
        return 0;
    if (!chunk->has_nulls)
        return -1;
    if (chunk->nulls == chunk->num_values && (bounds[OLD_MIN].data || bounds[OLD_MAX].data || bounds[MIN_VALUE].data || bounds[MAX_VALUE].data))
        return -1;
    return chunk->num_values - chunk->nulls;
}

/* Find min and max as `stated_bounds` in statistics.py does; return whether there are any. */
static int find_bounds(const struct kind *kind, const struct chunk *chunk, struct span pair[2])
{
    const struct span *bounds = chunk->bounds;
    if (bounds[MIN_VALUE].data && bounds[MAX_VALUE].data && kind->flags & HAS_ORDER) {
        pair[0] = bounds[MIN_VALUE];
        pair[1] = bounds[MAX_VALUE];
        return 1;
    }
    if (!bounds[OLD_MIN].data || !bounds[OLD_MAX].data || !(kind->flags & RELIABLE))
        return 0;
    if (kind->flags & EQUAL_ONLY && !are_equal(bounds[OLD_MIN], bounds[OLD_MAX]))
        return 0;
    pair[0] = bounds[OLD_MIN];
    pair[1] = bounds[OLD_MAX];
    return 1;
}

/* Narrow the keys to those between min and max: see `bounds` in statistics.py and `candidates` in question.py. Return whether the chunk is not in
 * doubt (`doubt_of_numbers`). */
static int narrow(const struct kind *kind, const struct chunk *chunk, int64_t non_null, struct slice *slice, int *is_empty)
{
    struct span pair[2];
    int has_bounds = find_bounds(kind, chunk, pair);
    slice->from = 0;
    slice->to = kind->num_keys;
    *is_empty = 0;
    if (has_bounds && kind->flags & HAS_USUAL)
        for (int at = 0; at < 2; at++) {
            if (pair[at].length != (size_t)kind->width)
                return 0;
            int64_t number = load_signed(pair[at].data, kind->width);
            if (number < kind->usual_low || number > kind->usual_high)
                return 0;
        }
    if (kind->flags & FILTERS_ONLY)
        return 1;
    *is_empty = non_null == 0;
    if (!has_bounds || kind->order == NO_ORDER)
        return 1;
    if (kind->order == DECIMAL_ORDER && (pair[0].length != (size_t)kind->width || pair[1].length != (size_t)kind->width))
        return 0; /* Python compares them as numbers. */
    struct bound low = bound_of(kind, pair[0]), high = bound_of(kind, pair[1]);
    if (!low.is_valid || !high.is_valid || compare(kind, &low, &high) > 0)
        return 1;
    slice->from = find_key(kind, &low, 0);
    slice->to = find_key(kind, &high, 1);
    return 1;
}

/* --- Filters --- */

struct header {
    int64_t length, num_bytes;
};

/* Read a header in exactly today's form: see `_USUAL_HEADER` in filters.py. */
static int read_header(const uint8_t *data, size_t size, struct header *header)
{
    static const uint8_t form[] = {0x1c, 0x1c, 0, 0, 0x1c, 0x1c, 0, 0, 0x1c, 0x1c, 0, 0, 0};
    uint64_t folded = 0;
    size_t at = 1;
    if (size < 2 || data[0] != 0x15)
        return 0;
    for (;; at++) {
        if (at >= size || at > 5 || (at == 5 && data[at] > 0x0F))
            return 0;
        folded |= (uint64_t)(data[at] & 0x7F) << (7 * (at - 1));
        if (data[at] < 0x80)
            break;
    }
    at++;
    if (size - at < sizeof form || memcmp(data + at, form, sizeof form) || folded & 1 || folded >> 1 < BLOCK_BYTES)
        return 0;
    header->length = (int64_t)(at + sizeof form);
    header->num_bytes = (int64_t)(folded >> 1);
    return 1;
}

/* Read the header of the filter at `offset`, and the bytes after it if the filter is known to be small; return whether the filter is before the
 * footer. */
static int find_filter(struct input *in, struct walk *w, int64_t offset, int64_t stated_length, struct header *header)
{
    struct scratch *s = w->s;
    uint8_t room[HEADER_MOST];
    if (offset >= w->footer_start)
        return 0;
    int64_t available = w->footer_start - offset, window_start = in->size < WINDOW ? 0 : in->size - WINDOW;
    size_t length = available < HEADER_MOST ? (size_t)available : HEADER_MOST;
    const int is_small = stated_length >= HEADER_MOST && stated_length <= FILTER_WINDOW && stated_length <= available;
    if (is_small && offset < window_start && !(s->filter_start <= offset && offset + stated_length <= s->filter_end)) {
        s->filter_start = s->filter_end = 0;
        if (!read_at(in, s->filter_window, (size_t)stated_length, offset))
            return 0;
        s->filter_start = offset;
        s->filter_end = offset + stated_length;
    }
    const uint8_t *data = view(in, s, offset, length, room);
    return data && read_header(data, length, header) && header->length + header->num_bytes <= available;
}

/* Return whether no other contents of the file, as the footer states them, share a byte with this filter: see `StatedRanges` in layout.py. */
static int is_alone(struct input *in, struct walk *w, int64_t start, int64_t end)
{
    const struct numbers *spans = &w->s->spans, *filters = &w->s->filters;
    int64_t before = 0;
    size_t inside = 0;
    int has_unknown_length = 0;
    for (size_t at = 0; at < spans->count; at += 2)
        if (spans->items[at] < end && spans->items[at + 1] > start)
            return 0;
    for (size_t at = 0; at < filters->count; at += 3) {
        int64_t offset = filters->items[at], length = filters->items[at + 1];
        inside += start <= offset && offset < end;
        if (offset >= start)
            continue;
        if (offset + (length > 0 ? length : 0) > start)
            return 0;
        if (offset >= before) {
            has_unknown_length = (offset == before && has_unknown_length) || length < 0;
            before = offset;
        }
    }
    if (inside != 1)
        return 0;
    struct header header;
    return !has_unknown_length || (find_filter(in, w, before, -1, &header) && before + header.length + header.num_bytes <= start);
}

static int has_bits(const uint8_t *data, size_t size)
{
    return size && (data[0] || memcmp(data, data + 1, size - 1));
}

struct query {
    struct input *in;
    struct walk *w;
    const struct kind *kind;
    const uint8_t *bitset; /* NULL if it is not in memory. */
    int64_t bitset_offset;
    uint64_t num_blocks;
    int64_t path, row_group;
    int is_asked; /* Whether a filter was queried, or taken. */
    int is_empty; /* Whether all blocks so far are zeros. */
    int64_t first_row; /* The number in the file of the first row of the row group; -1 if that is unknown. */
};

static int note_hit(struct query *q, size_t hash)
{
    struct numbers *hits = &q->w->s->hits;
    return hits->count < 3 * (size_t)MOST_HITS && push(hits, q->path) && push(hits, q->row_group) && push(hits, (int64_t)hash);
}

/* Query these hashes in the whole bitset; return 0 without memory, or if hits are too many. */
static int query_many(struct query *q, size_t from, size_t to)
{
    struct bytes *found = &q->w->s->found;
    size_t count = to - from;
    if (!count)
        return 1;
    if (!make_room(found, count))
        return 0;
    if (q->w->kernel.check(q->bitset, q->num_blocks, q->kind->hashes + from * sizeof(uint64_t), count, found->data) == count)
        return 1;
    q->is_empty = 0;
    const uint8_t *end = found->data + count, *hit = found->data;
    while (hit < end && (hit = memchr(hit, 1, (size_t)(end - hit)))) {
        if (!note_hit(q, from + (size_t)(hit - found->data)))
            return 0;
        hit++;
    }
    return 1;
}

/* Query these hashes, of which each reads its block; return 0 if it cannot be read, or if hits are too many. */
static int query_few(struct query *q, size_t from, size_t to)
{
    uint8_t room[BLOCK_BYTES];
    for (size_t at = from; at < to; at++) {
        uint64_t h = load_hash(q->kind->hashes, at);
        const uint8_t *block = view(q->in, q->w->s, q->bitset_offset + (int64_t)block_offset(h, q->num_blocks), BLOCK_BYTES, room);
        if (!block)
            return 0;
        if (q->is_empty)
            q->is_empty = !has_bits(block, BLOCK_BYTES);
        if (block_check(block, (uint32_t)h, 1) && !note_hit(q, at))
            return 0;
    }
    return 1;
}

static int query_hashes(struct query *q, size_t from, size_t to)
{
    return q->bitset ? query_many(q, from, to) : query_few(q, from, to);
}

/* Count the hashes of the values that statistics leave. */
static size_t count_hashes(const struct kind *kind, const struct slice *slice)
{
    return slice->to - slice->from + kind->num_hashes - kind->num_keys;
}

/* Return whether the column is read whatever the filter holds: of more hashes than the chunk has values, some pass by chance, and reading costs
 * less than asking. */
static int is_not_asked(const struct query *q, const struct chunk *chunk, const struct slice *slice)
{
    size_t count = count_hashes(q->kind, slice);
    return q->kind->flags & CONFIRMS && count > FEW_HASHES && count > (size_t)chunk->num_values;
}

/* Note the hashes that the filter may hold: see `by_filter` and `may_hold` in filter_answers.py. Return whether it can be relied on. */
static int query_filter(struct query *q, const struct chunk *chunk, const struct slice *slice, int64_t non_null)
{
    struct scratch *s = q->w->s;
    struct header header;
    if (chunk->filter <= 0 || !find_filter(q->in, q->w, chunk->filter, chunk->has_filter_length ? chunk->filter_length : -1, &header))
        return 0;
    int64_t length = header.length + header.num_bytes;
    int is_kept = (q->kind->flags & WITH_FILTERS) != 0;
    if (is_kept && (header.num_bytes > MOST_KEPT_BYTES || header.num_bytes % BLOCK_BYTES))
        return 0;
    if ((chunk->has_filter_length && chunk->filter_length != length) || !is_alone(q->in, q->w, chunk->filter, chunk->filter + length))
        return 0;
    if (is_not_asked(q, chunk, slice))
        return 1;
    size_t count = count_hashes(q->kind, slice);
    q->is_asked = 1;
    q->bitset_offset = chunk->filter + header.length;
    q->num_blocks = (uint64_t)header.num_bytes / BLOCK_BYTES;
    q->is_empty = 1;
    if (count > FEW_HASHES || is_kept) {
        if (header.num_bytes > MOST_BITSET_BYTES || !make_room(&s->bitset, (size_t)header.num_bytes))
            return 0;
        q->bitset = view(q->in, s, q->bitset_offset, (size_t)header.num_bytes, s->bitset.data);
        if (!q->bitset)
            return 0;
    }
    if (!query_hashes(q, slice->from, slice->to) || !query_hashes(q, q->kind->num_keys, q->kind->num_hashes))
        return 0;
    if (!q->is_empty || non_null == 0)
        return 1;
    /* An empty filter over values answers nothing. */
    if (!make_room(&s->bitset, WINDOW))
        return 0;
    for (int64_t at = 0; at < header.num_bytes; at += WINDOW) {
        size_t part = header.num_bytes - at < WINDOW ? (size_t)(header.num_bytes - at) : WINDOW;
        const uint8_t *data = q->bitset ? q->bitset + at : view(q->in, s, q->bitset_offset + at, part, s->bitset.data);
        if (!data)
            return 0;
        if (has_bits(data, part))
            return 1;
    }
    return 0;
}

/* What is noted of a row group; the bytes of min, max and filter follow. */
struct detail {
    int64_t path, row_group, num_rows, num_bytes, is_asked; /* Those of its chunks; -1 for rows that are not stated. */
    int64_t low_bytes, high_bytes, filter_bytes;            /* -1 without min and max: see `stated_bounds` in statistics.py. */
};

static int add_detail(struct bytes *details, const void *data, size_t size)
{
    if (!size)
        return 1;
    if (details->size + size > 1024 * (size_t)MOST_KEPT_BYTES || !make_room(details, details->size + size))
        return 0;
    memcpy(details->data + details->size, data, size);
    details->size += size;
    return 1;
}

/* Note the details of a row group, if they are wanted: of the first one for warnings, see `warnings_beside` in question.py. */
static int note_details(struct query *q, const struct chunk *chunk)
{
    struct bytes *details = &q->w->s->details;
    const int64_t *counts = q->w->s->row_counts.items + 2 * q->row_group;
    const int is_wanted = q->kind->flags & WITH_DETAILS || (q->kind->flags & WITH_BOUNDS && !q->row_group);
    struct detail detail = {q->path, q->row_group, counts[0], counts[1], q->is_asked, -1, -1, 0};
    struct span pair[2] = {{NULL, 0}, {NULL, 0}};
    if (!is_wanted)
        return 1;
    if (q->w->has_large_chunk && q->kind->flags & WITH_DETAILS)
        return 0;
    if (find_bounds(q->kind, chunk, pair)) {
        detail.low_bytes = (int64_t)pair[0].length;
        detail.high_bytes = (int64_t)pair[1].length;
    }
    if (q->is_asked && q->kind->flags & WITH_FILTERS)
        detail.filter_bytes = (int64_t)(q->num_blocks * BLOCK_BYTES);
    return add_detail(details, &detail, sizeof detail) && add_detail(details, pair[0].data, pair[0].length) &&
           add_detail(details, pair[1].data, pair[1].length) && add_detail(details, q->bitset, (size_t)detail.filter_bytes);
}

#include "_confirm.h"
#include "_fit.h"

/* --- The file --- */

/* Answer for a chunk that is as expected. See `narrow` in pruning.py. */
static int answer_chunk(struct query *q, const struct chunk *chunk)
{
    const struct kind *kind = q->kind;
    struct slice slice;
    size_t hits = q->w->s->hits.count;
    int is_empty;
    int64_t non_null = count_non_null(chunk);
    if (!narrow(kind, chunk, non_null, &slice, &is_empty))
        return 0;
    if (is_empty || (slice.from >= slice.to && kind->num_hashes == kind->num_keys && !(kind->flags & WITH_FILTERS)))
        return 1;
    if (slice.from > slice.to)
        return 0;
    if (!(kind->flags & CONFIRMS))
        return query_filter(q, chunk, &slice, non_null);
    if (chunk->filter > 0 && !query_filter(q, chunk, &slice, non_null))
        return 0;
    if (chunk->filter > 0 && q->w->s->hits.count == hits && !is_not_asked(q, chunk, &slice))
        return 1;
    int is_read = confirm_row_group(q, chunk);
    q->w->s->hits.count = hits;
    return is_read;
}

/* Return whether the row group answers; hits and details are in the scratch. */
static int answer_row_group(struct query *q, Py_ssize_t pos)
{
    struct chunk chunk = {.codec = -1};
    q->is_asked = 0;
    q->bitset = NULL;
    /* See `ensure_type` in footer.py; counts that contradict each other are for Python. */
    if (!read_chunk(q->w, pos, &chunk) || !chunk.has_type || chunk.type != q->kind->type || !chunk.has_values || chunk.num_values < 0)
        return 0;
    if (chunk.has_nulls && (chunk.nulls < 0 || chunk.nulls > chunk.num_values))
        return 0;
    return answer_chunk(q, &chunk) && note_details(q, &chunk);
}

struct answer {
    int64_t kind, num_row_groups;
};

/* Return the number of the first row after a row group; -1 if it is unknown. */
static int64_t row_after(int64_t first_row, int64_t num_rows)
{
    return first_row < 0 || num_rows < 0 || num_rows > INT64_MAX / 2 - first_row ? -1 : first_row + num_rows;
}

static int is_of_kind(const struct walk *w, const struct kind *kind)
{
    return kind->key_size == w->s->key.size && !memcmp(kind->key, w->s->key.data, kind->key_size);
}

/* Read the end of the file; return whether it ends with a plain footer, whose bytes `w` then has. See `parse_tail` in footer.py. */
static int read_footer(struct input *in, struct walk *w)
{
    struct scratch *s = w->s;
    size_t length = in->size < WINDOW ? (size_t)in->size : WINDOW;
    if (in->size < 4 + TAIL_BYTES || !read_at(in, s->window, length, in->size - (int64_t)length))
        return 0;
    const uint8_t *tail = s->window + length - TAIL_BYTES;
    int64_t footer_bytes = load_le32(tail);
    w->footer_start = in->size - TAIL_BYTES - footer_bytes;
    if (memcmp(tail + 4, "PAR1", 4) || w->footer_start < 4 || footer_bytes > MOST_FOOTER_BYTES)
        return 0;
    w->f.size = (Py_ssize_t)footer_bytes;
    if (footer_bytes <= (int64_t)length - TAIL_BYTES) {
        w->f.data = tail - footer_bytes;
        return 1;
    }
    if (!make_room(&s->footer, (size_t)footer_bytes) || !read_at(in, s->footer.data, (size_t)footer_bytes, w->footer_start))
        return 0;
    w->f.data = s->footer.data;
    return 1;
}

/* What of the results of a scan came before a file. */
struct mark {
    size_t hits, rows, details;
};

static struct mark mark_results(const struct scratch *s)
{
    return (struct mark){s->hits.count, s->rows.count, s->details.size};
}

static void drop_results(struct scratch *s, struct mark before)
{
    s->hits.count = before.hits;
    s->rows.count = before.rows;
    s->details.size = before.details;
}

/* Answer for a file; `w` has the table, the names and the scratch. Hits are appended to those in the scratch. */
static struct answer answer_file(struct input *in, struct walk *w, const struct kind *kinds, size_t num_kinds, int64_t path)
{
    struct scratch *s = w->s;
    struct answer answer = {DECLINED, 0};
    struct mark before = mark_results(s);
    size_t at = 0;
    s->filter_start = s->filter_end = 0;
    if (!read_footer(in, w) || !walk_footer(w))
        return answer;
    for (; at < num_kinds; at++) {
        if (!is_of_kind(w, &kinds[at]))
            continue;
        int is_same = !(kinds[at].flags & OF_FILTERS) ? 1 : has_filters_of(w, &kinds[at]);
        if (is_same < 0)
            return answer;
        if (is_same)
            break;
    }
    if (at == num_kinds) {
        answer.kind = UNKNOWN_KIND;
        return answer;
    }
    const struct kind *kind = &kinds[at];
    if (kind->flags & ALWAYS_DECLINES)
        return answer;
    /* See `Footer` in footer.py. */
    if (w->num_row_groups ? w->num_chunks != (uint64_t)kind->num_leaves : w->num_rows > 0)
        return answer;
    struct query query = {.in = in, .w = w, .kind = kind, .path = path};
    if (kind->flags & OF_FILTERS && !is_fit(&query))
        return answer;
    for (uint64_t number = 0; number < w->num_row_groups && !(kind->flags & OF_FILTERS); number++) {
        query.row_group = (int64_t)number;
        if (!answer_row_group(&query, (Py_ssize_t)s->chunks.items[number * w->num_chunks + (uint64_t)kind->leaf])) {
            drop_results(s, before);
            return answer;
        }
        query.first_row = row_after(query.first_row, s->row_counts.items[2 * number]);
    }
    answer.kind = (int64_t)at;
    answer.num_row_groups = (int64_t)w->num_row_groups;
    return answer;
}

#endif
