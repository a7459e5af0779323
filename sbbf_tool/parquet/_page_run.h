/* A run of pages of one column chunk: data pages that follow each other and have one form, either PLAIN or references to a dictionary. Their
 * values are collected as if they were those of one page, so that a chunk of pages of few rows costs as little as one of large pages.
 *
 * The rules are those of plain_pages.py. A page that is not as they expect ends the run before it: then Python reads it, and judges what is
 * wrong with it. So what a chunk holds, and whether and why it is refused, never depends on this code. */
#ifndef PAGE_RUN_H
#define PAGE_RUN_H

#include "_crc32.h"
#include "_levels.h"
#include "_page_header.h"
#include "_snappy.h"

enum { CODEC_NONE = 0, CODEC_SNAPPY = 1, NUM_CODECS = 8 };
enum { LENGTH_BYTES = 4 };

enum form { ANY_PAGES, PLAIN_PAGES, INDEX_PAGES };

struct page_span {
    int64_t pages, bytes, values; /* bytes with headers, as stored; values with nulls */
    int64_t sizes, largest;       /* the most bytes that a reader allocates, of all pages and of the largest one */
};

/* Codecs besides Snappy: return whether the bytes decompress to exactly `size` bytes. */
struct codecs {
    int (*decompress)(struct codecs *codecs, int64_t codec, const uint8_t *stored, size_t stored_size, uint8_t *plain, size_t size);
    void *functions, *thread; /* of _codecs.h */
};

struct shape {
    int64_t codec;
    struct codecs *codecs;        /* NULL if there are no others */
    size_t width;                 /* bytes of a value; 0 for BYTE_ARRAY */
    unsigned definition, repetition; /* the highest levels */
    uint32_t num_entries;         /* of the dictionary */
    enum form form;
};

/* Where the parts of a page go. */
struct collected {
    uint8_t *values;     /* in PLAIN form, or an index of 32 bits for each */
    uint8_t *present;    /* one byte for each level */
    uint8_t *scratch;    /* room for one page without compression */
    int64_t size, count; /* bytes of `values`, and their number */
};

static int has_form(const struct page *page, enum form form)
{
    if (form == PLAIN_PAGES)
        return page->encoding == PLAIN_ENCODING;
    if (form == INDEX_PAGES)
        return page->encoding == PLAIN_DICTIONARY || page->encoding == RLE_DICTIONARY;
    return 1;
}

/* Add a page that ends by `most_end` to an span, unless there are too many values or bytes. */
static int add_page(struct page_span *span, const struct page *page, int64_t most_values, int64_t most_end, int64_t most_sizes)
{
    int64_t end = page->body + page->stored, largest = largest_size(page);
    if (end > most_end || page->values > most_values - span->values || largest > most_sizes - span->sizes)
        return 0;
    span->pages++;
    span->bytes = end;
    span->values += page->values;
    span->sizes += largest;
    span->largest = largest > span->largest ? largest : span->largest;
    return 1;
}

/* Measure the pages of a form from the first byte on, up to `most_values`. A page may end behind the bytes, but by `most_end`. */
static struct page_span measure_pages(const struct footer *f, enum form form, int64_t most_values, int64_t most_end, int64_t most_sizes)
{
    struct page_span span = {0, 0, 0, 0, 0};
    struct page page;
    while (span.bytes < f->size && span.values < most_values)
        if (read_page_header(f, (Py_ssize_t)span.bytes, &page) == REFUSED || !has_form(&page, form) ||
            !add_page(&span, &page, most_values, most_end, most_sizes))
            break;
    return span;
}

/* The parts of a page: definition levels and values. */
struct parts {
    const uint8_t *levels, *values;
    size_t level_bytes, size;
};

/* Return `size` bytes of a page without compression; NULL if they cannot be had. */
static const uint8_t *decompress(const struct shape *shape, const uint8_t *stored, size_t stored_size, size_t size, uint8_t *scratch)
{
    if (shape->codec == CODEC_NONE)
        return stored_size == size ? stored : NULL;
    int is_done = 0;
    if (shape->codec == CODEC_SNAPPY)
        is_done = decompress_snappy(stored, stored_size, scratch, size);
    else if (shape->codecs)
        is_done = shape->codecs->decompress(shape->codecs, shape->codec, stored, stored_size, scratch, size);
    return is_done ? scratch : NULL;
}

/* Split a page of version 1: each kind of levels, unless they are always 0, follows its length. */
static int split(const struct shape *shape, const struct page *page, const uint8_t *body, uint8_t *scratch, struct parts *parts)
{
    const unsigned highest[] = {shape->repetition, shape->definition};
    const int64_t encodings[] = {page->repetition_encoding, page->definition_encoding};
    size_t size = (size_t)page->size, at = 0;
    const uint8_t *plain = decompress(shape, body, (size_t)page->stored, size, scratch);
    if (!plain)
        return 0;
    for (int kind = 0; kind < 2; kind++) {
        if (!highest[kind])
            continue;
        if (encodings[kind] != RLE_ENCODING || size - at < LENGTH_BYTES)
            return 0;
        const uint8_t *length = plain + at;
        at += LENGTH_BYTES;
        parts->levels = plain + at;
        parts->level_bytes = (size_t)length[0] | (size_t)length[1] << 8 | (size_t)length[2] << 16 | (size_t)length[3] << 24;
        if (parts->level_bytes > size - at)
            return 0;
        at += parts->level_bytes;
    }
    parts->values = plain + at;
    parts->size = size - at;
    return 1;
}

/* Split a page of version 2: the levels are not compressed, and the header states their lengths. */
static int split_v2(const struct shape *shape, const struct page *page, const uint8_t *body, uint8_t *scratch, struct parts *parts)
{
    int64_t before = page->repetition_bytes + page->definition_bytes, size = page->size - before;
    if (size < 0 || before > page->stored)
        return 0;
    size_t stored = size ? (size_t)(page->stored - before) : 0;
    parts->levels = body + page->repetition_bytes;
    parts->level_bytes = (size_t)page->definition_bytes;
    parts->values = body + before;
    parts->size = (size_t)size;
    if (size && page->is_compressed)
        parts->values = decompress(shape, parts->values, stored, parts->size, scratch);
    else if (stored != parts->size)
        return 0;
    return parts->values != NULL;
}

/* Return whether these are exactly `count` values, each after its length. */
static int are_byte_arrays(const uint8_t *values, size_t size, int64_t count)
{
    size_t at = 0;
    for (; count; count--) {
        if (size - at < LENGTH_BYTES)
            return 0;
        size_t length = (size_t)values[at] | (size_t)values[at + 1] << 8 | (size_t)values[at + 2] << 16 | (size_t)values[at + 3] << 24;
        at += LENGTH_BYTES;
        if (length > size - at)
            return 0;
        at += length;
    }
    return at == size;
}

static int are_plain(const struct shape *shape, const struct parts *parts, int64_t count)
{
    if (!shape->width)
        return are_byte_arrays(parts->values, parts->size, count);
    return parts->size / shape->width == (size_t)count && parts->size % shape->width == 0;
}

static int collect_plain(const struct shape *shape, const struct parts *parts, int64_t count, struct collected *c)
{
    if (!are_plain(shape, parts, count))
        return 0;
    memcpy(c->values + c->size, parts->values, parts->size);
    c->size += (int64_t)parts->size;
    return 1;
}

/* The first byte is the width of an index; a page of nulls may have none. */
static int collect_indices(const struct shape *shape, const struct parts *parts, int64_t count, struct collected *c)
{
    unsigned width = parts->size ? parts->values[0] : 0;
    size_t first = parts->size ? 1 : 0;
    uint32_t *numbers = (uint32_t *)(void *)(c->values + c->size);
    if (width > MOST_BITS || !decode_numbers(parts->values + first, parts->size - first, width, (uint64_t)count, shape->num_entries, numbers))
        return 0;
    c->size += count * (int64_t)sizeof *numbers;
    return 1;
}

/* Collect the values of a page, whose levels are written to `present`; return whether it is as expected. */
static int collect_page(const struct shape *shape, const struct page *page, const uint8_t *body, uint8_t *present, struct collected *c)
{
    struct parts parts = {NULL, NULL, 0, 0};
    int64_t count = page->values;
    if (page->has_crc && crc32_of(body, (size_t)page->stored) != page->crc)
        return 0;
    if (!(page->type == PAGE_OF_DATA_V2 ? split_v2 : split)(shape, page, body, c->scratch, &parts))
        return 0;
    if (shape->definition)
        count = decode_presence(parts.levels, parts.level_bytes, shape->definition, (uint64_t)page->values, present);
    if (count == REFUSED || !(shape->form == PLAIN_PAGES ? collect_plain : collect_indices)(shape, &parts, count, c))
        return 0;
    c->count += count;
    return 1;
}

/* Collect the pages of an span that `measure_pages` has found in the bytes; return that of the pages before the first unexpected one. */
static struct page_span collect_pages(const struct footer *f, const struct shape *shape, const struct page_span *all, struct collected *c)
{
    struct page_span done = {0, 0, 0, 0, 0};
    struct page page;
    while (done.pages < all->pages) {
        if (read_page_header(f, (Py_ssize_t)done.bytes, &page) == REFUSED)
            break;
        uint8_t *present = shape->definition ? c->present + done.values : NULL;
        struct page_span next = done;
        if (!add_page(&next, &page, all->values, f->size, all->sizes) || !collect_page(shape, &page, f->data + page.body, present, c))
            break;
        done = next;
    }
    return done;
}

#endif
