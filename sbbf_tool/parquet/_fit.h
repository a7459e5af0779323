/* Whether every filter of a file fits: its place, its header and its bits are as they must be, and nothing else about the file needs a word. Part
 * of _scan.h; `rules/fit.py` says what fits.
 *
 * A kind has one byte for each leaf, the physical type and whether every chunk has a filter, and for each of these leaves a `struct demand`.
 * What does not fit declines the file, so that the rules of Python find what is wrong. */
#ifndef FIT_H
#define FIT_H

enum {
    HAS_FILTER = 128, /* Beside the physical type of a leaf. */
    NUMBERS_OF_DEMAND = NUMBERS_OF_KIND + 7,
    MOST_FILTERS = 1 << 14,
    MOST_UNREFERENCED = 64 << 10, /* See `are_many` in file_facts.py. */
    LARGE_SHARE = 4,              /* A filter of more than a fourth of its data: see satisfaction.py. */
};

/* What the filters of one leaf must be. */
struct demand {
    struct kind leaf; /* How its bounds compare. */
    int64_t least_bytes, most_bytes; /* 0 at most: the filters of the leaf are not asked for. */
    int64_t most_product; /* The greatest mean of the products of the bits set in the words of a block. */
    /* The fewest bits set, of each 2^32, of a filter of that many bytes and more: of any, and of one that is large for its data. */
    int64_t least_fill[2], from_bytes[2];
};

static void read_demand(const struct kind *kind, size_t at, struct demand *demand)
{
    const uint8_t *numbers = kind->offsets + at * NUMBERS_OF_DEMAND * sizeof(int64_t);
    int64_t rest[NUMBERS_OF_DEMAND - NUMBERS_OF_KIND];
    read_numbers(numbers, &demand->leaf);
    memcpy(rest, numbers + NUMBERS_OF_KIND * sizeof(int64_t), sizeof rest);
    demand->least_bytes = rest[0];
    demand->most_bytes = rest[1];
    demand->most_product = rest[2];
    memcpy(demand->least_fill, rest + 3, sizeof demand->least_fill);
    memcpy(demand->from_bytes, rest + 5, sizeof demand->from_bytes);
}

/* Return whether the leaves and the demands of a kind agree. */
static int is_fit_kind(const struct kind *kind, size_t demands_size)
{
    size_t count = 0;
    struct demand demand;
    if (kind->num_leaves < 0 || kind->keys_size != (size_t)kind->num_leaves)
        return 0;
    if (kind->flags & ALWAYS_DECLINES)
        return 1;
    for (size_t at = 0; at < kind->keys_size; at++)
        count += kind->keys[at] >= HAS_FILTER;
    if (demands_size != count * NUMBERS_OF_DEMAND * sizeof(int64_t))
        return 0;
    for (size_t at = 0; at < count; at++) {
        read_demand(kind, at, &demand);
        if (!has_width(&demand.leaf))
            return 0;
    }
    return 1;
}

/* Return whether exactly the leaves have filters that the kind names; -1 if a leaf has filters in some row groups alone, or leaves are missing. */
static int has_filters_of(const struct walk *w, const struct kind *kind)
{
    struct bytes *counts = &w->s->found;
    const struct numbers *filters = &w->s->filters;
    size_t size = kind->keys_size * sizeof(uint32_t);
    int is_same = 1;
    if ((w->num_row_groups && w->num_chunks != (uint64_t)kind->num_leaves) || w->num_row_groups > UINT32_MAX || !make_room(counts, size))
        return -1;
    uint32_t *numbers = (uint32_t *)(void *)counts->data;
    if (size)
        memset(numbers, 0, size);
    for (size_t at = 2; at < filters->count; at += 3)
        numbers[(uint64_t)filters->items[at] % w->num_chunks]++;
    for (size_t leaf = 0; leaf < kind->keys_size; leaf++) {
        if (numbers[leaf] && numbers[leaf] != w->num_row_groups)
            return -1;
        if (is_same)
            is_same = (numbers[leaf] != 0) == (kind->keys[leaf] >= HAS_FILTER);
    }
    return is_same;
}

static int compare_spans(const void *a, const void *b)
{
    const int64_t *first = a, *second = b;
    if (first[0] != second[0])
        return first[0] < second[0] ? -1 : 1;
    return first[1] < second[1] ? -1 : first[1] > second[1];
}

/* Return whether pages, page indexes and filters share no byte, and leave few bytes of the file to nothing: see overlaps.py and file_facts.py. The
 * spans get the filters too. */
static int are_apart(const struct input *in, struct walk *w, int bits_alone)
{
    struct numbers *spans = &w->s->spans, *filters = &w->s->filters;
    int64_t position = 4, unreferenced = 0;
    for (size_t at = 0; at < filters->count; at += 3)
        if (filters->items[at + 1] <= 0 || filters->items[at + 1] > w->footer_start || !push(spans, filters->items[at]) ||
            !push(spans, filters->items[at] + filters->items[at + 1]))
            return 0;
    qsort(spans->items, spans->count / 2, 2 * sizeof(int64_t), compare_spans);
    for (size_t at = 0; at < spans->count; at += 2) {
        if (spans->items[at] < position)
            return 0;
        unreferenced += spans->items[at] - position;
        position = spans->items[at + 1];
    }
    unreferenced += w->footer_start - position;
    return position <= w->footer_start && (bits_alone || unreferenced < MOST_UNREFERENCED || unreferenced < in->size / 100 - 1);
}

static int fits(struct query *q, const struct chunk *chunk, const struct demand *demand)
{
    struct scratch *s = q->w->s;
    struct header header;
    int64_t length = chunk->filter_length;
    if (!chunk->has_filter_length || length > MOST_BITSET_BYTES || !make_room(&s->bitset, (size_t)length))
        return 0;
    if (length > chunk->size && !(q->kind->flags & BITS_ALONE))
        return 0;
    const uint8_t *data = view(q->in, s, chunk->filter, (size_t)length, s->bitset.data);
    if (!data || !read_header(data, (size_t)length, &header) || header.length + header.num_bytes != length)
        return 0;
    int64_t size = header.num_bytes, blocks = size / BLOCK_BYTES;
    if (size & (size - 1) || size < demand->least_bytes || size > demand->most_bytes || blocks < 2)
        return 0;
    data += header.length;
    struct measurement m = q->w->kernel.measure(data, (size_t)blocks);
    if (!m.bits_set || m.products_high || m.products_low > (uint64_t)demand->most_product * (uint64_t)blocks)
        return 0;
    for (int is_large = 0; is_large <= (length > chunk->size / LARGE_SHARE); is_large++)
        if (size >= demand->from_bytes[is_large] && m.bits_set <= (uint64_t)demand->least_fill[is_large] * (uint64_t)blocks >> 24)
            return 0;
    return memcmp(data, data + BLOCK_BYTES, (size_t)(size - BLOCK_BYTES)) != 0;
}

static Py_ssize_t chunk_at(const struct walk *w, uint64_t row_group, uint64_t leaf)
{
    return (Py_ssize_t)w->s->chunks.items[row_group * w->num_chunks + leaf];
}

/* Return whether the ranges of two row groups that follow each other overlap: then the column is not sorted. See `_sorted` in efficiency.py. */
static int is_unsorted(const struct walk *w, const struct demand *demand)
{
    const struct kind *leaf = &demand->leaf;
    struct span pair[2];
    struct bound low, high, low_before = {0}, high_before = {0};
    if (leaf->order == NO_ORDER)
        return 0;
    for (uint64_t number = 0; number < w->num_row_groups; number++) {
        struct chunk chunk = {.codec = -1};
        if (!read_chunk(w, chunk_at(w, number, (uint64_t)leaf->leaf), &chunk) || !chunk.num_values || !find_bounds(leaf, &chunk, pair))
            return 0;
        if (leaf->order == DECIMAL_ORDER && (pair[0].length != (size_t)leaf->width || pair[1].length != (size_t)leaf->width))
            return 0;
        low = bound_of(leaf, pair[0]);
        high = bound_of(leaf, pair[1]);
        if (!low.is_valid || !high.is_valid || compare(leaf, &low, &high) > 0 || count_non_null(&chunk) == 0)
            return 0;
        if (number && compare(leaf, &low, &high_before) <= 0 && compare(leaf, &low_before, &high) <= 0)
            return 1;
        low_before = low;
        high_before = high;
    }
    return 0;
}

/* Return whether nothing about the file needs a word. */
static int is_fit(struct query *q)
{
    struct walk *w = q->w;
    const struct kind *kind = q->kind;
    const int has_filters = w->s->filters.count > 0, bits_alone = (kind->flags & BITS_ALONE) != 0;
    const int may_be_sorted = bits_alone || w->num_row_groups == 1;
    struct demand demand;
    if (w->s->filters.count / 3 > MOST_FILTERS || (has_filters && !are_apart(q->in, w, bits_alone)))
        return 0;
    for (uint64_t number = 0; number < w->num_row_groups; number++) {
        size_t count = 0;
        for (uint64_t leaf = 0; leaf < w->num_chunks; leaf++) {
            struct chunk chunk = {.codec = -1};
            int has_filter = kind->keys[leaf] >= HAS_FILTER;
            if (!read_chunk(w, chunk_at(w, number, leaf), &chunk) || !chunk.has_type || chunk.type != (kind->keys[leaf] & (HAS_FILTER - 1)) ||
                !chunk.has_values || chunk.num_values < 0 || chunk.size <= 0 || chunk.has_filter != has_filter || (!has_filter && chunk.has_filter_length))
                return 0;
            if (!has_filter)
                continue;
            read_demand(kind, count++, &demand);
            if (!demand.most_bytes)
                continue;
            if (!fits(q, &chunk, &demand) || (number == 0 && !may_be_sorted && !is_unsorted(w, &demand)))
                return 0;
        }
    }
    return 1;
}

#endif
