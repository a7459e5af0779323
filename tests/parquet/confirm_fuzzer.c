/* A target of libFuzzer for the rows that a scan reads: a column chunk after PARAMETERS bytes that choose its column and the values to look for.
 *
 * The sanitizers see each access outside of the buffers; this program aborts for a row that is not in the row group, or a hash of no key. */
#include "_scan.h"

enum { PARAMETERS = 8, NUM_KEYS = 12, START = 4 };

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

/* The values that are looked for are small numbers, or short texts of digits, as the files of the corpus have them. */
struct keys {
    uint8_t packed[NUM_KEYS * 8];
    uint64_t offsets[NUM_KEYS + 1], hashes[NUM_KEYS];
};

static void make_keys(struct keys *keys, struct kind *kind)
{
    size_t size = 0;
    for (int64_t at = 0; at < NUM_KEYS; at++) {
        uint8_t plain[8] = {(uint8_t)at};
        size_t length = (size_t)kind->width;
        keys->offsets[at] = size;
        if (kind->order == BYTES_ORDER) {
            length = kind->width ? (size_t)kind->width : 1 + (size_t)at / 10;
            memset(plain, '0', sizeof plain);
            plain[length - 1] = (uint8_t)('0' + at % 10);
            memcpy(keys->packed + size, plain, length);
            size += length;
        } else {
            memcpy(keys->packed + size, &at, sizeof at);
            size += sizeof at;
        }
        keys->hashes[at] = xxh64(plain, length);
    }
    keys->offsets[NUM_KEYS] = size;
    kind->keys = keys->packed;
    kind->keys_size = size;
    kind->offsets = (const uint8_t *)keys->offsets;
    kind->hashes = (const uint8_t *)keys->hashes;
    kind->num_keys = kind->num_hashes = NUM_KEYS;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int64_t widths[] = {0, 4, 8, 5};
    static struct keys keys;
    if (size < PARAMETERS)
        return 0;
    if (!crc_tables[0][1])
        fill_crc_tables();
    struct kind kind = {.flags = CONFIRMS, .width = widths[data[0] % 4], .definition = data[1] % 3};
    kind.order = kind.width == 4 || kind.width == 8 ? SIGNED_ORDER : BYTES_ORDER;
    make_keys(&keys, &kind);
    if (!may_confirm(&kind))
        abort();
    size_t num_bytes = size - PARAMETERS;
    uint8_t *bytes = malloc(START + num_bytes);
    memset(bytes, 0, START);
    memcpy(bytes + START, data + PARAMETERS, num_bytes);
    struct memory memory = {bytes, START + num_bytes};
    struct scratch scratch = {0};
    struct walk w = {.s = &scratch, .footer_start = (int64_t)memory.size, .chunk_bytes = (int64_t)num_bytes};
    struct input in = {read_memory, &memory, (int64_t)memory.size, 0};
    int64_t num_rows = data[2] | data[3] << 8;
    struct chunk chunk = {.codec = data[4] % 2, .num_values = num_rows, .size = (int64_t)num_bytes, .data = START + data[5], .dictionary = data[6] % 2 ? START : 0};
    push(&scratch.row_counts, 7);
    push(&scratch.row_counts, 0);
    push(&scratch.row_counts, num_rows);
    push(&scratch.row_counts, 0);
    struct query query = {.in = &in, .w = &w, .kind = &kind, .row_group = 1, .first_row = 7};
    confirm_row_group(&query, &chunk);
    for (size_t at = 0; at < scratch.rows.count; at += 4) {
        const int64_t *row = scratch.rows.items + at;
        if (row[0] || row[1] != 1 || row[2] < 7 || row[2] >= 7 + num_rows || row[3] < 0 || row[3] >= NUM_KEYS)
            abort();
    }
    free_scratch(&scratch);
    free(bytes);
    return 0;
}
