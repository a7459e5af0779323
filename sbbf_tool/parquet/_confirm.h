/* The rows of a row group that have the values which its filter may hold: the column is read. Part of _scan.h.
 *
 * The rules are those of confirm.py and plain_pages.py: dictionary and PLAIN pages of a column without lists. Each stored value is looked up by
 * its hash among all values of the question, also those that statistics or the filter exclude, and compared as bytes. A file with anything else
 * is declined. */
#ifndef CONFIRM_H
#define CONFIRM_H

enum {
    MOST_CHUNK_BYTES = 1 << 24, /* These limit the memory of a scan. A page of two MiB is below any limit: see page_limit.py. */
    MOST_PAGE_BYTES = 2 << 20,
    MOST_RUN_BYTES = 1 << 22,
    MOST_RUN_VALUES = 1 << 22,
    MOST_SCAN_BYTES = 1 << 28, /* Of all chunks of a scan: a call cannot be interrupted. */
    MOST_ROWS = MOST_HITS,
    HASH_BYTES = 8,
};

/* Return whether the keys of a kind show the bytes of each value. */
static int may_confirm(const struct kind *kind)
{
    int has_bytes = kind->order == SIGNED_ORDER || kind->order == UNSIGNED_ORDER || kind->order == BYTES_ORDER || kind->order == DECIMAL_ORDER;
    return has_bytes && kind->num_hashes == kind->num_keys && kind->definition >= 0 && kind->definition <= INT16_MAX && kind->width >= 0 &&
           kind->width <= INT32_MAX;
}

struct confirmation {
    struct query *q;
    size_t mask; /* of the table */
    struct shape shape;
    int64_t first_row; /* in the file */
    int has_dictionary;
};

/* --- The values that are looked for --- */

static int is_key(const struct kind *kind, size_t at, const uint8_t *value, size_t length)
{
    struct bound key = key_at(kind, at);
    uint8_t plain[HASH_BYTES];
    if (kind->order == SIGNED_ORDER || kind->order == UNSIGNED_ORDER) {
        for (int byte = 0; byte < HASH_BYTES; byte++)
            plain[byte] = (uint8_t)((uint64_t)key.number >> (8 * byte));
        key.bytes = (struct span){plain, (size_t)kind->width};
    }
    return key.bytes.length == length && (!length || !memcmp(key.bytes.data, value, length));
}

/* Find or build the open hash table of all hashes of the kind: a slot has 0, or one more than the number of a hash. */
static int find_table(struct confirmation *c)
{
    struct scratch *s = c->q->w->s;
    const struct kind *kind = c->q->kind;
    size_t slots = 64;
    while (slots < 4 * kind->num_hashes)
        slots *= 2;
    c->mask = slots - 1;
    if (s->table_kind == kind)
        return 1;
    if (kind->num_hashes >= UINT32_MAX || !make_room(&s->table, slots * sizeof(uint32_t)))
        return 0;
    memset(s->table.data, 0, slots * sizeof(uint32_t));
    uint32_t *slot = (uint32_t *)(void *)s->table.data;
    for (size_t hash = 0; hash < kind->num_hashes; hash++) {
        size_t at = load_hash(kind->hashes, hash) & c->mask;
        while (slot[at])
            at = (at + 1) & c->mask;
        slot[at] = (uint32_t)hash + 1;
    }
    s->table_kind = kind;
    return 1;
}

/* Note the hashes whose value this is, with its number; return 0 without memory. */
static int match_value(const struct confirmation *c, const uint8_t *value, size_t length, int64_t number, struct numbers *matches)
{
    const uint32_t *slot = (const uint32_t *)(const void *)c->q->w->s->table.data;
    uint64_t h = xxh64(value, length);
    for (size_t at = h & c->mask; slot[at]; at = (at + 1) & c->mask) {
        size_t hash = slot[at] - 1;
        if (load_hash(c->q->kind->hashes, hash) != h || !is_key(c->q->kind, hash, value, length))
            continue;
        if (matches->count >= 2 * (size_t)MOST_ROWS || !push(matches, number) || !push(matches, (int64_t)hash))
            return 0;
    }
    return 1;
}

/* Look up values in PLAIN form, which are whole: leave in `matches` the number and the hash of each that is found, by ascending number. */
static int match_values(const struct confirmation *c, const uint8_t *values, int64_t count, struct numbers *matches)
{
    const size_t width = c->shape.width;
    matches->count = 0;
    for (int64_t number = 0; number < count; number++) {
        size_t length = width ? width : load_le32(values);
        values += width ? 0 : LENGTH_BYTES;
        if (!match_value(c, values, length, number, matches))
            return 0;
        values += length;
    }
    return 1;
}

/* --- Pages --- */

static int note_row(const struct confirmation *c, int64_t row, int64_t hash)
{
    struct numbers *rows = &c->q->w->s->rows;
    return rows->count < 4 * (size_t)MOST_ROWS && push(rows, c->q->path) && push(rows, c->q->row_group) && push(rows, c->first_row + row) &&
           push(rows, hash);
}

/* The place of a value among those that are present, and the row that it has; values are looked for in ascending order. */
struct cursor {
    const uint8_t *present; /* NULL if all are */
    int64_t value, row;
};

static int64_t row_of(struct cursor *cursor, int64_t value)
{
    if (!cursor->present)
        return value;
    while (!cursor->present[cursor->row] || cursor->value < value)
        cursor->value += cursor->present[cursor->row++];
    return cursor->row;
}

static int read_dictionary(struct confirmation *c, const struct page *page, const uint8_t *body)
{
    struct scratch *s = c->q->w->s;
    struct parts parts = {NULL, NULL, 0, (size_t)page->size};
    const int is_plain = page->entry_encoding == PLAIN_ENCODING || page->entry_encoding == PLAIN_DICTIONARY;
    if (c->has_dictionary || !is_plain || page->entries < 0 || page->size > MOST_PAGE_BYTES || page->stored > MOST_PAGE_BYTES)
        return 0;
    if ((page->has_crc && crc32_of(body, (size_t)page->stored) != page->crc) || !make_room(&s->plain, (size_t)page->size))
        return 0;
    parts.values = decompress(&c->shape, body, (size_t)page->stored, parts.size, s->plain.data);
    if (!parts.values || !are_plain(&c->shape, &parts, page->entries) || !match_values(c, parts.values, page->entries, &s->entries))
        return 0;
    c->has_dictionary = 1;
    c->shape.num_entries = (uint32_t)page->entries;
    /* Of each entry one more than the place of its first match. */
    if (!make_room(&s->first, (size_t)page->entries * sizeof(uint32_t) + 1))
        return 0;
    memset(s->first.data, 0, (size_t)page->entries * sizeof(uint32_t));
    for (size_t at = s->entries.count; at; at -= 2)
        ((uint32_t *)(void *)s->first.data)[s->entries.items[at - 2]] = (uint32_t)at - 1;
    return 1;
}

static int note_plain_rows(const struct confirmation *c, const struct collected *found, struct cursor *cursor)
{
    struct numbers *matches = &c->q->w->s->matches;
    if (!match_values(c, found->values, found->count, matches))
        return 0;
    for (size_t at = 0; at < matches->count; at += 2)
        if (!note_row(c, row_of(cursor, matches->items[at]), matches->items[at + 1]))
            return 0;
    return 1;
}

static int note_indexed_rows(const struct confirmation *c, const struct collected *found, struct cursor *cursor)
{
    const struct scratch *s = c->q->w->s;
    const uint32_t *indices = (const uint32_t *)(const void *)found->values, *first = (const uint32_t *)(const void *)s->first.data;
    for (int64_t value = 0; value < found->count; value++) {
        if (!first[indices[value]])
            continue;
        for (size_t at = first[indices[value]] - 1; at < s->entries.count && s->entries.items[at] == indices[value]; at += 2)
            if (!note_row(c, row_of(cursor, value), s->entries.items[at + 1]))
                return 0;
    }
    return 1;
}

/* Read a run of data pages; return its bytes, or REFUSED. */
static int64_t read_run_of_pages(struct confirmation *c, const struct footer *rest, enum form form, int64_t most_values)
{
    struct scratch *s = c->q->w->s;
    struct page_span all = measure_pages(rest, form, most_values < MOST_RUN_VALUES ? most_values : MOST_RUN_VALUES, rest->size, MOST_RUN_BYTES);
    if (!all.pages || all.largest > MOST_PAGE_BYTES)
        return REFUSED;
    /* Where no entry of the dictionary is looked for, the pages that refer to it are passed over. */
    int is_sought = form == PLAIN_PAGES || s->entries.count;
    if (is_sought) {
        c->shape.form = form;
        size_t room = form == PLAIN_PAGES ? (size_t)all.sizes : (size_t)all.values * sizeof(uint32_t);
        if (!make_room(&s->content, room + 1) || !make_room(&s->present, (size_t)all.values + 1) || !make_room(&s->plain, (size_t)all.largest + 1))
            return REFUSED;
        struct collected found = {s->content.data, s->present.data, s->plain.data, 0, 0};
        if (collect_pages(rest, &c->shape, &all, &found).pages != all.pages)
            return REFUSED;
        struct cursor cursor = {found.count == all.values ? NULL : s->present.data, 0, 0};
        if (!(form == PLAIN_PAGES ? note_plain_rows : note_indexed_rows)(c, &found, &cursor))
            return REFUSED;
    }
    c->first_row += all.values;
    return all.bytes;
}

/* Read the pages of the chunk, whose bytes these are; return whether all are as expected. */
static int read_pages(struct confirmation *c, const uint8_t *data, int64_t size, int64_t num_values)
{
    struct page page;
    int64_t pos = 0, first_row = c->first_row;
    while (c->first_row - first_row < num_values) {
        struct footer rest = {data + pos, (Py_ssize_t)(size - pos), NULL, 0, DEEPEST, NULL};
        int64_t done = read_page_header(&rest, 0, &page);
        if (done == REFUSED)
            return 0;
        if (page.type == PAGE_OF_DICTIONARY) {
            if (page.stored > size - pos - done || !read_dictionary(c, &page, rest.data + done))
                return 0;
            done += page.stored;
        } else {
            enum form form = has_form(&page, PLAIN_PAGES) ? PLAIN_PAGES : INDEX_PAGES;
            if (form == INDEX_PAGES && !c->has_dictionary)
                return 0;
            done = read_run_of_pages(c, &rest, form, num_values - (c->first_row - first_row));
        }
        if (done == REFUSED)
            return 0;
        pos += done;
    }
    return 1;
}

/* Find the rows of a row group that have a value, and note them; return 0 if its pages are not as expected. See
 * `_search_pages` in confirm.py, `page_range` in pages.py and `ensure_own_pages` in footer.py. */
static int confirm_row_group(struct query *q, const struct chunk *chunk)
{
    struct scratch *s = q->w->s;
    const int64_t footer_start = q->w->footer_start;
    struct confirmation c = {q, 0, {0}, q->first_row, 0};
    int64_t start = 0 < chunk->dictionary && chunk->dictionary < chunk->data ? chunk->dictionary : chunk->data;
    c.shape = (struct shape){chunk->codec, q->w->codecs, (size_t)q->kind->width, (unsigned)q->kind->definition, 0, 0, PLAIN_PAGES};
    if (chunk->codec < 0 || chunk->has_other_encodings || q->first_row < 0 || chunk->num_values != s->row_counts.items[2 * q->row_group])
        return 0;
    if (start < 4 || chunk->size <= 0 || chunk->size > MOST_CHUNK_BYTES || chunk->size > footer_start - start || q->w->chunk_bytes > 4 * footer_start)
        return 0;
    s->bytes_of_chunks += chunk->size;
    if (s->bytes_of_chunks > MOST_SCAN_BYTES)
        return 0;
    if (!find_table(&c) || !make_room(&s->pages, (size_t)chunk->size) || !read_at(q->in, s->pages.data, (size_t)chunk->size, start))
        return 0;
    s->entries.count = 0;
    return read_pages(&c, s->pages.data, chunk->size, chunk->num_values);
}

#endif
