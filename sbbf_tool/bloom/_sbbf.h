/* The split-block Bloom filter in C: hash, insert, check, fold and measure. No Python here; _kernel.c is the Python side.
 *
 * Results and names are those of spec.py, which transcribes parquet-format BloomFilter.md, "Technical Approach". This file is faster:
 *
 *   - a block is processed as one vector of eight words if the machine has AVX2, otherwise word by word;
 *   - blocks are far apart, so their cache lines are requested LOOKAHEAD hashes before they are needed;
 *   - hashing is compiled separately for each width of integers, without loops or branches;
 *   - adjacent values of one length, such as UUIDs, are hashed in groups, since XXH64's multiplications take most of the time. AVX-512
 *     multiplies eight 64-bit integers at once, so a group has eight values. AVX2 composes such a product of three of 32 bits, so a group
 *     has five: four as one vector, one alone, with which the vector multipliers and the integer multiplier work concurrently.
 *
 * Functions that take `lanes` are compiled three times, with 8 for AVX-512, 4 for AVX2, and 1 for every machine: see _variants.h.
 *
 * Each offset and each length prefix is checked before it is used, and the checked value itself is used, so that even a thread that
 * changes a buffer concurrently causes no access outside it. The caller checks what is known before the first byte is read: that buffers
 * have the right lengths. Loads and stores of integers use memcpy, since buffers need not be aligned.
 */
#ifndef SBBF_H
#define SBBF_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifndef __GNUC__
#error "The compiled kernel needs GCC or Clang. Without it the numpy kernel is used."
#endif

/* Always inlined, so that a body is compiled with its caller's properties: AVX2, a constant width, a constant `lanes`. */
#define INLINE static inline __attribute__((always_inline))

/* --- Integers in memory --- */

INLINE uint32_t load_le32(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, 4);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    v = __builtin_bswap32(v);
#endif
    return v;
}

INLINE void store_le32(uint8_t *p, uint32_t v)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    v = __builtin_bswap32(v);
#endif
    memcpy(p, &v, 4);
}

INLINE uint64_t load_le64(const uint8_t *p)
{
    uint64_t v;
    memcpy(&v, p, 8);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    v = __builtin_bswap64(v);
#endif
    return v;
}

INLINE uint64_t load_byte(const uint8_t *p)
{
    return *p;
}

/* Hashes are native integers: they never leave the machine. */
INLINE uint64_t load_hash(const uint8_t *hashes, size_t i)
{
    uint64_t v;
    memcpy(&v, hashes + 8 * i, 8);
    return v;
}

INLINE void store_hash(uint8_t *hashes, size_t i, uint64_t h)
{
    memcpy(hashes + 8 * i, &h, 8);
}

/* --- Hashing: _xxh64.h three times, for one value, for four and for eight --- */

#define NAME(function) function
#define LANE uint64_t
#define SOURCE const uint8_t *
#define READ(load, source, at) load(source + (at))
#include "_xxh64.h"

/* Values of one length, each `stride` bytes after the one before. */
struct values {
    const uint8_t *first;
    size_t stride;
};

typedef uint64_t four __attribute__((vector_size(32)));
typedef uint64_t eight __attribute__((vector_size(64)));

#define READ_ONE(load, source, at, i) load(source.first + (i) * source.stride + (at))
#define READ_FOUR(load, source, at, i)                                                                                                \
    READ_ONE(load, source, at, i), READ_ONE(load, source, at, i + 1), READ_ONE(load, source, at, i + 2), READ_ONE(load, source, at, i + 3)

#define NAME(function) function##_four
#define LANE four
#define SOURCE struct values
#define READ(load, source, at) ((four){READ_FOUR(load, source, at, 0)})
#include "_xxh64.h"

#define NAME(function) function##_eight
#define LANE eight
#define SOURCE struct values
#define READ(load, source, at) ((eight){READ_FOUR(load, source, at, 0), READ_FOUR(load, source, at, 4)})
#include "_xxh64.h"

/* Hash values of one length that start every `stride` bytes. */
INLINE void hash_alike(const uint8_t *values, size_t length, size_t stride, size_t count, uint8_t *hashes, int lanes)
{
    size_t i = 0;
    if (lanes == 8)
        for (; count - i >= 8; i += 8, values += 8 * stride) {
            eight h = xxh64_eight((struct values){values, stride}, length);
            memcpy(hashes + 8 * i, &h, sizeof h);
        }
    /* The machine overlaps the vector and the single values after it, which are independent: AVX2 has no multiplication of 64 bits. */
    size_t group = length < 32 ? 8 : 6;
    if (lanes >= 4)
        for (; count - i >= group; i += group, values += group * stride) {
            four h = xxh64_four((struct values){values, stride}, length);
            memcpy(hashes + 8 * i, &h, sizeof h);
            for (size_t k = 4; k < group; k++)
                store_hash(hashes, i + k, xxh64(values + k * stride, length));
        }
    for (; i < count; i++, values += stride)
        store_hash(hashes, i, xxh64(values, length));
}

#define UUID_TEXT_LENGTH 36

/* The longest run of alike values that is looked for: while they are hashed, the nearest cache still has them or their offsets. A multiple
 * of all sizes of groups. */
#define LONGEST_RUN 648

INLINE size_t run_of(size_t count)
{
    return count < LONGEST_RUN ? count : LONGEST_RUN;
}

/* Hash values of UUID_TEXT_LENGTH: `hash_alike` of that length in a function of its own, in which the compiler keeps the constants
 * in registers. Inlined into other code, hashing is slower by a quarter. */
typedef void hash_texts(const uint8_t *values, size_t stride, size_t count, uint8_t *hashes);

INLINE void hash_fixed(const uint8_t *values, size_t width, size_t count, uint8_t *hashes, hash_texts hash_uuid_texts, int lanes)
{
    /* Constant widths compile to code without branches. */
    switch (width) {
    case 4: hash_alike(values, 4, 4, count, hashes, lanes); break;
    case 8: hash_alike(values, 8, 8, count, hashes, lanes); break;
    case 12: hash_alike(values, 12, 12, count, hashes, lanes); break;
    case 16: hash_alike(values, 16, 16, count, hashes, lanes); break;
    case UUID_TEXT_LENGTH: hash_uuid_texts(values, UUID_TEXT_LENGTH, count, hashes); break;
    default: hash_alike(values, width, width, count, hashes, lanes);
    }
}

/* Offsets are signed in Arrow. Read as unsigned integers, negative ones are past the end of any data, so one check rejects both. */
INLINE uint64_t load_offset(const uint8_t *offsets, size_t i, int width)
{
    if (width == 4) {
        int32_t v;
        memcpy(&v, offsets + 4 * i, 4);
        return (uint64_t)(int64_t)v;
    }
    uint64_t v;
    memcpy(&v, offsets + 8 * i, 8);
    return v;
}

/* Count how many consecutive values, from the one at `start` on and at most `most`, have this length and end within `size`. */
INLINE size_t count_alike(uint64_t start, uint64_t length, uint64_t size, const uint8_t *offsets, int width, size_t i, size_t most)
{
    size_t alike = 0;
    while (alike < most && length <= size - start && load_offset(offsets, i + alike + 1, width) == start + length)
        start += length, alike++;
    return alike;
}

/* Hash `count` values between `count` + 1 offsets. Returns how many were hashed: less than `count` when the next offset is invalid. */
INLINE size_t hash_spans(const uint8_t *data, uint64_t size, const uint8_t *offsets, int width, size_t count, uint8_t *hashes,
                         hash_texts hash_uuid_texts, int lanes)
{
    uint64_t start = load_offset(offsets, 0, width);
    if (start > size)
        return 0;
    for (size_t i = 0; i < count;) {
        uint64_t end = load_offset(offsets, i + 1, width);
        if (end < start || end > size)
            return i;
        uint64_t length = end - start;
        size_t alike = lanes > 1 ? count_alike(start, length, size, offsets, width, i, run_of(count - i)) : 0;
        if (alike >= 5) {
            hash_fixed(data + start, length, alike, hashes + 8 * i, hash_uuid_texts, lanes);
            start += alike * length, i += alike;
        } else {
            store_hash(hashes, i, xxh64(data + start, length));
            start = end, i++;
        }
    }
    return count;
}

INLINE size_t hash_variable(const uint8_t *data, uint64_t size, const uint8_t *offsets, int width, size_t count, uint8_t *hashes,
                            hash_texts hash_uuid_texts, int lanes)
{
    if (width == 4)
        return hash_spans(data, size, offsets, 4, count, hashes, hash_uuid_texts, lanes);
    return hash_spans(data, size, offsets, 8, count, hashes, hash_uuid_texts, lanes);
}

/* Count how many consecutive values of a page, at most `most`, follow this length and end within `size`. */
INLINE size_t count_alike_prefixed(const uint8_t *page, size_t size, size_t length, size_t most)
{
    size_t alike = 0;
    for (; alike < most && size >= 4 && load_le32(page) == length && length <= size - 4; alike++)
        page += 4 + length, size -= 4 + length;
    return alike;
}

/* Hash `count` values that each follow their length. Returns the number of values hashed: less than `count` if the page ends early. Sets
 * `left` to the number of bytes after the last value. */
INLINE size_t hash_length_prefixed(const uint8_t *page, size_t size, size_t count, uint8_t *hashes, size_t *left,
                                   hash_texts hash_uuid_texts, int lanes)
{
    for (size_t i = 0; i < count;) {
        if (size < 4)
            return i;
        size_t length = load_le32(page);
        if (length > size - 4)
            return i;
        size_t alike = lanes > 1 ? count_alike_prefixed(page, size, length, run_of(count - i)) : 1;
        if (alike < 5)
            store_hash(hashes, i, xxh64(page + 4, length)), alike = 1;
        else if (length == UUID_TEXT_LENGTH)
            hash_uuid_texts(page + 4, 4 + length, alike, hashes + 8 * i);
        else
            hash_alike(page + 4, length, 4 + length, alike, hashes + 8 * i, lanes);
        i += alike, page += alike * (4 + length), size -= alike * (4 + length);
    }
    *left = size;
    return count;
}

/* Note the byte after each of `count` values that each follow their length, as 64-bit integers; the rest as hash_length_prefixed. */
static inline size_t length_prefixed_ends(const uint8_t *page, size_t size, size_t count, uint8_t *ends, size_t *left)
{
    size_t end = 0;
    for (size_t i = 0; i < count; i++) {
        if (size - end < 4)
            return i;
        size_t length = load_le32(page + end);
        if (length > size - end - 4)
            return i;
        end += 4 + length;
        uint64_t stored = end;
        memcpy(ends + 8 * i, &stored, 8);
    }
    *left = size - end;
    return count;
}

/* --- Order --- */

enum order { SIGNED, UNSIGNED, BYTES, DECIMAL };

INLINE uint64_t load_integer(const uint8_t *p, size_t width, enum order order)
{
    if (width == 8)
        return load_le64(p);
    return order == SIGNED ? (uint64_t)(int64_t)(int32_t)load_le32(p) : load_le32(p);
}

/* Find the smallest and the largest of `count` > 0 integers. With their sign bit inverted, signed ones compare as unsigned ones. */
INLINE void find_integers(const uint8_t *values, size_t width, enum order order, size_t count, uint64_t extremes[2])
{
    uint64_t turn = order == SIGNED ? (uint64_t)1 << 63 : 0;
    uint64_t low = load_integer(values, width, order) ^ turn, high = low;
    for (size_t i = 1; i < count; i++) {
        uint64_t value = load_integer(values + i * width, width, order) ^ turn;
        low = value < low ? value : low;
        high = value > high ? value : high;
    }
    extremes[0] = low ^ turn, extremes[1] = high ^ turn;
}

/* Find the smallest and the largest of integers of 4 or 8 bytes, widened to 64 bits. */
static inline void integer_extremes(const uint8_t *values, size_t width, enum order order, size_t count, uint64_t extremes[2])
{
    if (width == 8 && order == SIGNED)
        find_integers(values, 8, SIGNED, count, extremes);
    else if (width == 8)
        find_integers(values, 8, UNSIGNED, count, extremes);
    else if (order == SIGNED)
        find_integers(values, 4, SIGNED, count, extremes);
    else
        find_integers(values, 4, UNSIGNED, count, extremes);
}

/* A value, and its first eight bytes, padded with zeros, as a big-endian number that decides most comparisons. */
struct value {
    const uint8_t *bytes;
    size_t length;
    uint64_t prefix;
};

INLINE struct value value_at(const uint8_t *bytes, size_t length, uint64_t turn)
{
    uint64_t prefix = 0;
    if (length >= 8) {
        prefix = __builtin_bswap64(load_le64(bytes));
    } else if (length) {
        for (size_t i = 0; i < length; i++)
            prefix = prefix << 8 | bytes[i];
        prefix <<= 8 * (8 - length);
    }
    return (struct value){bytes, length, prefix ^ turn};
}

INLINE int is_less(const struct value *a, const struct value *b)
{
    if (a->prefix != b->prefix)
        return a->prefix < b->prefix;
    size_t shared = a->length < b->length ? a->length : b->length;
    int order = shared ? memcmp(a->bytes, b->bytes, shared) : 0;
    return order ? order < 0 : a->length < b->length;
}

/* Update the smallest value so far, extremes[0], and the largest, extremes[1]; `first` if there are none yet. */
INLINE void widen(struct value extremes[2], struct value value, int first)
{
    if (first || is_less(&value, &extremes[0]))
        extremes[0] = value;
    if (first || is_less(&extremes[1], &value))
        extremes[1] = value;
}

/* Find the extremes of values of `width` bytes: in the order of their bytes, or as signed big-endian numbers. */
static inline void fixed_extremes(const uint8_t *values, size_t width, enum order order, size_t count, struct value extremes[2])
{
    uint64_t turn = order == DECIMAL ? (uint64_t)1 << 63 : 0;
    for (size_t i = 0; i < count; i++)
        widen(extremes, value_at(values + i * width, width, turn), i == 0);
}

/* Find the extremes; return how many values were read, as hash_variable does. */
static inline size_t variable_extremes(const uint8_t *data, uint64_t size, const uint8_t *offsets, int width, size_t count, struct value extremes[2])
{
    uint64_t start = load_offset(offsets, 0, width);
    if (start > size)
        return 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t end = load_offset(offsets, i + 1, width);
        if (end < start || end > size)
            return i;
        widen(extremes, value_at(data + start, (size_t)(end - start), 0), i == 0);
        start = end;
    }
    return count;
}

/* Find the extremes; return how many values were read and set `left` to the number of bytes after them, as hash_length_prefixed does. */
static inline size_t length_prefixed_extremes(const uint8_t *page, size_t size, size_t count, struct value extremes[2], size_t *left)
{
    for (size_t i = 0; i < count; i++) {
        if (size < 4)
            return i;
        size_t length = load_le32(page);
        page += 4, size -= 4;
        if (length > size)
            return i;
        widen(extremes, value_at(page, length, 0), i == 0);
        page += length, size -= length;
    }
    *left = size;
    return count;
}

/* --- Blocks --- */

#define BLOCK_BYTES 32
#define LOOKAHEAD 32

/* The eight words of a block as one vector; the machine must be little-endian, as all with AVX2 are. */
typedef uint32_t words __attribute__((vector_size(BLOCK_BYTES)));
typedef uint64_t two __attribute__((vector_size(BLOCK_BYTES / 2)));

static const words SALT = {0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d, 0x705495c7, 0x2df1424b, 0x9efc4947, 0x5c6bfb31};
static const words ONE = {1, 1, 1, 1, 1, 1, 1, 1};

INLINE size_t block_offset(uint64_t h, uint64_t num_blocks)
{
    return (size_t)(((h >> 32) * num_blocks) >> 32) * BLOCK_BYTES;
}

INLINE void look_ahead(const uint8_t *bitset, uint64_t num_blocks, const uint8_t *hashes, size_t i, size_t count)
{
    if (i + LOOKAHEAD < count)
        __builtin_prefetch(bitset + block_offset(load_hash(hashes, i + LOOKAHEAD), num_blocks));
}

INLINE void block_insert(uint8_t *block, uint32_t x, int lanes)
{
    if (lanes > 1) {
        words w;
        memcpy(&w, block, BLOCK_BYTES);
        w |= ONE << (x * SALT >> 27);
        memcpy(block, &w, BLOCK_BYTES);
    } else {
        for (int i = 0; i < 8; i++)
            store_le32(block + 4 * i, load_le32(block + 4 * i) | UINT32_C(1) << (x * SALT[i] >> 27));
    }
}

INLINE int block_check(const uint8_t *block, uint32_t x, int lanes)
{
    if (lanes > 1) {
        words w;
        two low, high;
        memcpy(&w, block, BLOCK_BYTES);
        w = ~w & ONE << (x * SALT >> 27);
        memcpy(&low, &w, sizeof low);
        memcpy(&high, (const char *)&w + sizeof low, sizeof high);
        low |= high;
        return !(low[0] | low[1]);
    }
    uint32_t missing = 0;
    for (int i = 0; i < 8; i++)
        missing |= ~load_le32(block + 4 * i) & UINT32_C(1) << (x * SALT[i] >> 27);
    return !missing;
}

INLINE void insert_all(uint8_t *bitset, uint64_t num_blocks, const uint8_t *hashes, size_t count, int lanes)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t h = load_hash(hashes, i);
        look_ahead(bitset, num_blocks, hashes, i, count);
        block_insert(bitset + block_offset(h, num_blocks), (uint32_t)h, lanes);
    }
}

/* Return how many hashes are missing; write one byte per hash to `found` unless that is NULL. */
INLINE size_t check_all(const uint8_t *bitset, uint64_t num_blocks, const uint8_t *hashes, size_t count, uint8_t *found, int lanes)
{
    size_t missing = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t h = load_hash(hashes, i);
        look_ahead(bitset, num_blocks, hashes, i, count);
        int there = block_check(bitset + block_offset(h, num_blocks), (uint32_t)h, lanes);
        missing += !there;
        if (found)
            found[i] = (uint8_t)there;
    }
    return missing;
}

static inline void fold_pairs(const uint8_t *bitset, size_t num_blocks, uint8_t *folded)
{
    for (size_t i = 0; i < num_blocks / 2; i++, bitset += 2 * BLOCK_BYTES, folded += BLOCK_BYTES)
        for (int at = 0; at < BLOCK_BYTES; at++)
            folded[at] = bitset[at] | bitset[BLOCK_BYTES + at];
}

/* A product is at most 32^8 = 2^40 and there may be 2^31 blocks, so their sum takes two words. */
struct measurement {
    uint64_t bits_set, products_high, products_low;
};

INLINE struct measurement measure_all(const uint8_t *bitset, size_t num_blocks)
{
    struct measurement m = {0, 0, 0};
    for (size_t i = 0; i < num_blocks; i++) {
        uint64_t product = 1;
        for (int at = 0; at < BLOCK_BYTES; at += 4) {
            uint64_t bits = (uint64_t)__builtin_popcount(load_le32(bitset + i * BLOCK_BYTES + at));
            m.bits_set += bits;
            product *= bits;
        }
        m.products_low += product;
        m.products_high += m.products_low < product;
    }
    return m;
}

#endif
