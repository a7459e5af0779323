/* A target of libFuzzer for the answers of a scan: the bytes of a file after PARAMETERS bytes that choose the judgment of its kind.
 *
 * The kind is that of the file itself, so every file whose footer is plain is answered. The sanitizers see each access outside of the buffers;
 * this program aborts if a file is read beyond its end, or if a hit is none of the file. `table.h` has the table of the structs.
 */
#include "_scan.h"
#include "table.h"

enum { PARAMETERS = 8 + 64, MOST_KEYS = 4, MOST_LEAVES = 64 };

struct memory {
    const uint8_t *data;
    size_t size;
};

static int read_memory(void *from, uint8_t *to, size_t length, uint64_t offset)
{
    const struct memory *memory = from;
    if (offset > memory->size || length > memory->size - offset)
        abort();
    memcpy(to, memory->data + offset, length);
    return 1;
}

/* Choose a judgment that `is_kind` in _scan.c accepts. */
static void choose(struct kind *kind, const uint8_t *parameters, uint64_t offsets[MOST_KEYS + 1])
{
    static const int64_t widths[] = {4, 8, 2, 16};
    kind->flags = parameters[0] & (HAS_ORDER | EQUAL_ONLY | RELIABLE | FILTERS_ONLY | HAS_USUAL | WITH_BOUNDS);
    kind->flags |= parameters[5] & 128 ? WITH_DETAILS : 0;
    kind->flags |= parameters[6] & 128 ? WITH_FILTERS : 0;
    kind->order = parameters[1] % (DECIMAL_ORDER + 1);
    kind->width = widths[parameters[2] % 4];
    if (kind->order == SIGNED_ORDER || kind->order == UNSIGNED_ORDER)
        kind->width = widths[parameters[2] % 2];
    else if (kind->order == FLOAT_ORDER)
        kind->width = widths[parameters[2] % 3];
    if (kind->order != SIGNED_ORDER && kind->order != UNSIGNED_ORDER)
        kind->flags &= ~HAS_USUAL;
    kind->usual_low = -(1 << parameters[3] % 31);
    kind->usual_high = 1 << parameters[3] % 31;
    kind->type = parameters[4] % 8;
    kind->num_keys = kind->order == NO_ORDER ? 0 : parameters[5] % (MOST_KEYS + 1);
    kind->keys = parameters + 8;
    kind->keys_size = 64;
    for (size_t at = 0; at <= kind->num_keys; at++)
        offsets[at] = at * (parameters[6] % 17);
    kind->offsets = (const uint8_t *)offsets;
    kind->hashes = parameters + 8;
    kind->num_hashes = kind->num_keys + (8 - kind->num_keys) * (parameters[7] % 2);
}

/* Return whether the details are those of the row groups of one file, one after the other. */
static int are_details(const struct bytes *details, int64_t num_row_groups)
{
    size_t at = 0;
    int64_t before = -1;
    while (at < details->size) {
        struct detail detail;
        if (details->size - at < sizeof detail)
            return 0;
        memcpy(&detail, details->data + at, sizeof detail);
        at += sizeof detail;
        if (detail.path || detail.row_group <= before || detail.row_group >= num_row_groups || detail.num_bytes < 0 || detail.low_bytes < -1 ||
            (detail.low_bytes < 0) != (detail.high_bytes < 0) || detail.filter_bytes % BLOCK_BYTES || (detail.filter_bytes && !detail.is_asked))
            return 0;
        before = detail.row_group;
        at += (size_t)detail.filter_bytes + (detail.low_bytes < 0 ? 0 : (size_t)(detail.low_bytes + detail.high_bytes));
    }
    return at == details->size;
}

/* Ask instead whether the filters fit, if the parameters want it: for half of the files by demands that any filter of a known form meets. */
static void ask_of_filters(struct kind *kind, const struct walk *w, const uint8_t *parameters, uint8_t *leaves, int64_t *demands)
{
    if (parameters[0] % 4 != 3 || kind->num_leaves > MOST_LEAVES || !w->num_row_groups || !w->num_chunks)
        return;
    int64_t *each = demands;
    for (int64_t leaf = 0; leaf < kind->num_leaves; leaf++) {
        struct chunk chunk = {.codec = -1};
        leaves[leaf] = read_chunk(w, chunk_at(w, 0, (uint64_t)leaf), &chunk) ? (uint8_t)chunk.type & (HAS_FILTER - 1) : 0;
        if (chunk.filter <= 0)
            continue;
        leaves[leaf] |= HAS_FILTER;
        const int64_t numbers[NUMBERS_OF_DEMAND] = {kind->flags & ~HAS_USUAL, kind->num_leaves, leaf, 0, kind->width, kind->order, 0, 0, 0, 0, 0, INT64_MAX,
                                                    INT64_C(1) << 40};
        memcpy(each, numbers, sizeof numbers);
        if (parameters[5] % 2)
            memcpy(each + NUMBERS_OF_KIND, parameters + 8, (NUMBERS_OF_DEMAND - NUMBERS_OF_KIND) * sizeof *each);
        each += NUMBERS_OF_DEMAND;
    }
    kind->flags = parameters[1] % 2 ? OF_FILTERS | BITS_ALONE : OF_FILTERS;
    kind->keys = leaves;
    kind->keys_size = (size_t)kind->num_leaves;
    kind->offsets = (const uint8_t *)demands;
    if (!is_fit_kind(kind, (size_t)(each - demands) * sizeof *each))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t offsets[MOST_KEYS + 1];
    int64_t demands[MOST_LEAVES * NUMBERS_OF_DEMAND];
    uint8_t leaves[MOST_LEAVES];
    struct scratch scratch = {0};
    struct kind kind = {0};
    if (size < PARAMETERS)
        return 0;
    struct memory memory = {data + PARAMETERS, size - PARAMETERS};
    struct walk w = {.f = {NULL, 0, table, sizeof table / (SLOTS * SLOT_BYTES), MAX_DEPTH, NULL}, .s = &scratch};
    w.kernel = best_kernel();
    w.names = (const uint8_t *)"\6pandas";
    w.names_size = 7;
    struct input in = {read_memory, &memory, (int64_t)memory.size, 0};
    choose(&kind, data, offsets);
    struct answer answer = answer_file(&in, &w, NULL, 0, 0);
    if (answer.kind == UNKNOWN_KIND) {
        uint8_t *key = malloc(scratch.key.size + 1);
        memcpy(key, scratch.key.data, scratch.key.size);
        kind.key = key;
        kind.key_size = scratch.key.size;
        kind.num_leaves = w.num_chunks ? (int64_t)w.num_chunks : 1;
        kind.leaf = (int64_t)(data[3] % (uint64_t)kind.num_leaves);
        ask_of_filters(&kind, &w, data, leaves, demands);
        answer = answer_file(&in, &w, &kind, 1, 0);
        if (kind.flags & OF_FILTERS && answer.kind == UNKNOWN_KIND)
            answer.kind = DECLINED;
        for (size_t at = 0; at < scratch.hits.count; at += 3)
            if (scratch.hits.items[at] || scratch.hits.items[at + 1] >= answer.num_row_groups || scratch.hits.items[at + 2] >= (int64_t)kind.num_hashes)
                abort();
        if (answer.kind != 0 && (answer.kind != DECLINED || scratch.hits.count || scratch.details.size))
            abort();
        if (!are_details(&scratch.details, answer.num_row_groups))
            abort();
        free(key);
    } else if (answer.kind != DECLINED) {
        abort();
    }
    free_scratch(&scratch);
    return 0;
}
