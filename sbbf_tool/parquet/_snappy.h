/* Snappy's raw format (google/snappy, format_description.txt): the length of the plain bytes as a varint, then literals and copies. */
#ifndef SNAPPY_H
#define SNAPPY_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { SNAPPY_STEP = 16 }; /* Bytes that are copied at once where both sides have as many. */

/* Copy bytes that were written `offset` bytes ago; where that is less than their number, they repeat. */
static void copy_again(uint8_t *to, size_t offset, size_t length, size_t room)
{
    const uint8_t *from = to - offset;
    if (offset >= SNAPPY_STEP && length + SNAPPY_STEP <= room) {
        for (size_t at = 0; at < length; at += SNAPPY_STEP)
            memcpy(to + at, from + at, SNAPPY_STEP);
    } else if (offset >= length) {
        memcpy(to, from, length);
    } else {
        for (size_t at = 0; at < length; at++)
            to[at] = from[at];
    }
}

/* Return where the elements begin, if the stated length of the plain bytes is `size`; else 0. */
static size_t snappy_start(const uint8_t *stored, size_t stored_size, size_t size)
{
    uint64_t stated = 0;
    for (size_t at = 0; at < stored_size && at < 5; at++) {
        stated |= (uint64_t)(stored[at] & 0x7F) << (7 * at);
        if (stored[at] < 0x80)
            return stated == size ? at + 1 : 0;
    }
    return 0;
}

/* Decompress to exactly `size` bytes; return whether the bytes are valid and of this size. */
static int decompress_snappy(const uint8_t *stored, size_t stored_size, uint8_t *plain, size_t size)
{
    size_t done = 0, at = snappy_start(stored, stored_size, size);
    if (!at)
        return 0;
    while (at < stored_size) {
        unsigned tag = stored[at++];
        size_t length = (tag >> 2) + 1, offset = 0, extra;
        switch (tag & 3) {
        case 0: /* a literal; the length less one follows if it is 60 or more */
            if (length > 60) {
                extra = length - 60;
                if (extra > stored_size - at)
                    return 0;
                length = 1;
                for (size_t byte = 0; byte < extra; byte++)
                    length += (size_t)stored[at + byte] << (8 * byte);
                at += extra;
            }
            if (length > stored_size - at || length > size - done)
                return 0;
            if (length <= SNAPPY_STEP && stored_size - at >= SNAPPY_STEP && size - done >= SNAPPY_STEP)
                memcpy(plain + done, stored + at, SNAPPY_STEP);
            else
                memcpy(plain + done, stored + at, length);
            at += length;
            done += length;
            continue;
        case 1:
            if (stored_size == at)
                return 0;
            length = 4 + (tag >> 2 & 7);
            offset = (size_t)(tag >> 5) << 8 | stored[at];
            at += 1;
            break;
        default: /* two or four bytes of offset */
            extra = (tag & 3) == 2 ? 2 : 4;
            if (extra > stored_size - at)
                return 0;
            for (size_t byte = 0; byte < extra; byte++)
                offset |= (size_t)stored[at + byte] << (8 * byte);
            at += extra;
        }
        if (!offset || offset > done || length > size - done)
            return 0;
        copy_again(plain + done, offset, length, size - done);
        done += length;
    }
    return done == size;
}

#endif
