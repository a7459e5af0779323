/* Numbers in the hybrid of run lengths and bit packing: what levels.py reads, with the same result, or refused. */
#ifndef LEVELS_H
#define LEVELS_H

#include "_protocol.h"

enum { MOST_BITS = 32, MOST_RUN_HEADER = 5, GROUP = 8 };

struct hybrid {
    struct footer bytes; /* what is read; `pos` is the next byte of it */
    Py_ssize_t pos;
    unsigned width;
    uint64_t remaining;
};

struct level_run {
    uint64_t length;
    const uint8_t *packed; /* NULL if one number repeats */
    size_t packed_size;
    uint32_t number;
};

static unsigned bits_of(unsigned highest)
{
    unsigned width = 0;
    for (; highest; highest >>= 1)
        width++;
    return width;
}

static struct hybrid begin_hybrid(const uint8_t *data, size_t size, unsigned width, uint64_t count)
{
    struct hybrid hybrid = {{data, (Py_ssize_t)size, NULL, 0, 0, NULL}, 0, width, count};
    return hybrid;
}

/* Read the next run, which has at least one of the remaining numbers; return whether the bytes have one. */
static int read_run(struct hybrid *h, struct level_run *run)
{
    uint64_t header = 0;
    Py_ssize_t pos = read_varint(&h->bytes, h->pos, MOST_RUN_HEADER, &header);
    if (pos == REFUSED)
        return 0;
    uint64_t left = (uint64_t)(h->bytes.size - pos), size;
    run->packed = NULL;
    if (header & 1) {
        /* The last group may be cut to the bytes that hold the remaining numbers. */
        size = (header >> 1) * h->width;
        run->packed = h->bytes.data + pos;
        run->packed_size = (size_t)(size < left ? size : left);
        run->length = (header >> 1) * GROUP;
        if (run->packed_size * 8 / h->width < run->length)
            run->length = run->packed_size * 8 / h->width;
        size = run->packed_size;
    } else {
        size = (h->width + 7) / 8;
        if (size > left)
            return 0;
        run->length = header >> 1;
        run->number = 0;
        for (unsigned byte = 0; byte < size; byte++)
            run->number |= (uint32_t)h->bytes.data[pos + (Py_ssize_t)byte] << (8 * byte);
    }
    if (!run->length)
        return 0;
    if (run->length > h->remaining)
        run->length = h->remaining;
    h->remaining -= run->length;
    h->pos = pos + (Py_ssize_t)size;
    return 1;
}

/* Return number `at` of those that are packed; each has all of its bits within them. */
static inline uint32_t unpack(const struct level_run *run, unsigned width, uint64_t at)
{
    uint64_t bits = 0, first = at * width / 8, mask = (UINT64_C(1) << width) - 1;
    size_t left = run->packed_size - (size_t)first;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    if (left >= sizeof bits) {
        memcpy(&bits, run->packed + first, sizeof bits);
        return (uint32_t)(bits >> at * width % 8 & mask);
    }
#endif
    for (size_t byte = 0; byte < left && byte < sizeof bits; byte++)
        bits |= (uint64_t)run->packed[first + byte] << (8 * byte);
    return (uint32_t)(bits >> at * width % 8 & mask);
}

/* Write `count` numbers of `width` bits, 0 to 32; return whether the bytes have as many, each below `limit`. */
static int decode_numbers(const uint8_t *data, size_t size, unsigned width, uint64_t count, uint32_t limit, uint32_t *numbers)
{
    if (!width) {
        memset(numbers, 0, (size_t)count * sizeof *numbers);
        return !count || limit;
    }
    struct hybrid h = begin_hybrid(data, size, width, count);
    struct level_run run;
    uint32_t largest = 0;
    while (h.remaining) {
        if (!read_run(&h, &run))
            return 0;
        for (uint64_t at = 0; at < run.length; at++) {
            uint32_t number = run.packed ? unpack(&run, width, at) : run.number;
            largest = number > largest ? number : largest;
            numbers[at] = number;
        }
        numbers += run.length;
    }
    return !count || largest < limit;
}

/* Write for each of `count` levels whether it is `highest`; return how many are, or REFUSED. */
static int64_t decode_presence(const uint8_t *data, size_t size, unsigned highest, uint64_t count, uint8_t *present)
{
    unsigned width = bits_of(highest);
    struct hybrid h = begin_hybrid(data, size, width, count);
    struct level_run run;
    int64_t num_present = 0;
    while (h.remaining) {
        if (!read_run(&h, &run))
            return REFUSED;
        if (!run.packed) {
            memset(present, run.number == highest, (size_t)run.length);
            num_present += run.number == highest ? (int64_t)run.length : 0;
        } else {
            for (uint64_t at = 0; at < run.length; at++) {
                present[at] = unpack(&run, width, at) == highest;
                num_present += present[at];
            }
        }
        present += run.length;
    }
    return num_present;
}

#endif
