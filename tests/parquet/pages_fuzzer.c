/* A target of libFuzzer for the pages of a column chunk: their bytes after PARAMETERS bytes that choose the shape of the column.
 *
 * The sanitizers see each access outside of the buffers; this program aborts if a run has more than its headers state. */
#include "_page_run.h"

#include <stdlib.h>

enum { PARAMETERS = 8, MOST_SIZES = 1 << 20, MOST_LEVELS = 1 << 20 };

static struct shape choose(const uint8_t *parameters)
{
    static const size_t widths[] = {0, 4, 8, 12, 1, 16};
    struct shape shape = {
        .codec = parameters[0] % 2,
        .width = widths[parameters[1] % 6],
        .definition = parameters[2] % 5,
        .repetition = parameters[3] % 3,
        .num_entries = (uint32_t)(parameters[4] | parameters[5] << 8),
        .form = parameters[6] % 2 ? PLAIN_PAGES : INDEX_PAGES,
    };
    return shape;
}

/* Copy to memory of exactly this size, so that no access behind it goes unnoticed. */
static uint8_t *copy_of(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);
    memcpy(copy, data, size);
    return copy;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int is_ready;
    if (!is_ready)
        fill_crc_tables();
    is_ready = 1;
    if (size < PARAMETERS)
        return 0;
    struct shape shape = choose(data);
    uint8_t *pages = copy_of(data + PARAMETERS, size - PARAMETERS);
    struct footer f = {pages, (Py_ssize_t)(size - PARAMETERS), NULL, 0, DEEPEST, NULL};
    struct page_span any = measure_pages(&f, ANY_PAGES, data[7] << 8, f.size + data[7], INT64_MAX);
    struct page_span all = measure_pages(&f, shape.form, MOST_LEVELS, f.size, MOST_SIZES);
    if (any.values > data[7] << 8 || any.bytes > f.size + data[7] || all.bytes > f.size || all.sizes > MOST_SIZES)
        abort();
    size_t room = shape.form == PLAIN_PAGES ? (size_t)all.sizes : (size_t)all.values * sizeof(uint32_t);
    struct collected c = {malloc(room + !room), malloc((size_t)all.values + 1), malloc((size_t)all.largest + 1), 0, 0};
    struct page_span done = collect_pages(&f, &shape, &all, &c);
    if (done.pages > all.pages || done.values > all.values || c.count > done.values || c.size > (int64_t)room)
        abort();
    if (shape.form == INDEX_PAGES)
        for (int64_t at = 0; at < c.count; at++)
            if (((uint32_t *)(void *)c.values)[at] >= shape.num_entries)
                abort();
    free(c.values);
    free(c.present);
    free(c.scratch);
    free(pages);
    return 0;
}
