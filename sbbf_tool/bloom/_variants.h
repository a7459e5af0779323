/* The bodies of _sbbf.h, compiled for every machine, for AVX2 and for AVX-512; and the choice among them. */
#ifndef VARIANTS_H
#define VARIANTS_H

#include "_sbbf.h"

struct variant {
    const char *name;
    void (*hash_fixed)(const uint8_t *values, size_t width, size_t count, uint8_t *hashes);
    size_t (*hash_variable)(const uint8_t *data, uint64_t size, const uint8_t *offsets, int width, size_t count, uint8_t *hashes);
    size_t (*hash_length_prefixed)(const uint8_t *page, size_t size, size_t count, uint8_t *hashes, size_t *left);
    void (*insert)(uint8_t *bitset, uint64_t num_blocks, const uint8_t *hashes, size_t count);
    size_t (*check)(const uint8_t *bitset, uint64_t num_blocks, const uint8_t *hashes, size_t count, uint8_t *found);
    struct measurement (*measure)(const uint8_t *bitset, size_t num_blocks);
};

#define VARIANT(name, label, target, lanes)                                                                                                \
    target __attribute__((noinline)) static void name##_hash_uuid_texts(const uint8_t *values, size_t stride, size_t count, uint8_t *hashes)\
    {                                                                                                                                      \
        hash_alike(values, UUID_TEXT_LENGTH, stride, count, hashes, lanes);                                                                \
    }                                                                                                                                      \
    target static void name##_hash_fixed(const uint8_t *values, size_t width, size_t count, uint8_t *hashes)                               \
    {                                                                                                                                      \
        hash_fixed(values, width, count, hashes, name##_hash_uuid_texts, lanes);                                                           \
    }                                                                                                                                      \
    target static size_t name##_hash_variable(const uint8_t *data, uint64_t size, const uint8_t *offsets, int width, size_t count,         \
                                              uint8_t *hashes)                                                                             \
    {                                                                                                                                      \
        return hash_variable(data, size, offsets, width, count, hashes, name##_hash_uuid_texts, lanes);                                    \
    }                                                                                                                                      \
    target static size_t name##_hash_length_prefixed(const uint8_t *page, size_t size, size_t count, uint8_t *hashes, size_t *left)        \
    {                                                                                                                                      \
        return hash_length_prefixed(page, size, count, hashes, left, name##_hash_uuid_texts, lanes);                                       \
    }                                                                                                                                      \
    target static void name##_insert(uint8_t *bitset, uint64_t num_blocks, const uint8_t *hashes, size_t count)                            \
    {                                                                                                                                      \
        insert_all(bitset, num_blocks, hashes, count, lanes);                                                                              \
    }                                                                                                                                      \
    target static size_t name##_check(const uint8_t *bitset, uint64_t num_blocks, const uint8_t *hashes, size_t count, uint8_t *found)     \
    {                                                                                                                                      \
        return check_all(bitset, num_blocks, hashes, count, found, lanes);                                                                 \
    }                                                                                                                                      \
    target static struct measurement name##_measure(const uint8_t *bitset, size_t num_blocks)                                              \
    {                                                                                                                                      \
        return measure_all(bitset, num_blocks);                                                                                            \
    }                                                                                                                                      \
    static const struct variant name = {                                                                                                   \
        label, name##_hash_fixed, name##_hash_variable, name##_hash_length_prefixed, name##_insert, name##_check, name##_measure,          \
    };

VARIANT(plain, "plain", , 1)

#ifdef __x86_64__
#include "_cpu.h"

VARIANT(avx2, "AVX2", __attribute__((target("avx2,popcnt"))), 4)
VARIANT(avx512, "AVX-512", __attribute__((target("avx512f,avx512dq,avx512vl,avx2,popcnt"))), 8)

/* The fastest first. */
static const struct variant *const variants[] = {&avx512, &avx2, &plain};

static int is_supported(const struct variant *variant)
{
    struct vectors vectors = find_vectors();
    return variant == &plain || (variant == &avx2 && vectors.avx2) || (variant == &avx512 && vectors.avx512);
}
#else
static const struct variant *const variants[] = {&plain};

static int is_supported(const struct variant *variant)
{
    return variant == &plain;
}
#endif

/* Choose the fastest variant that this machine supports. */
static const struct variant *best_variant(void)
{
    size_t i = 0;
    while (!is_supported(variants[i]))
        i++;
    return variants[i];
}

/* Find a variant by its name; NULL if there is none, or the machine does not support it. */
static const struct variant *find_variant(const char *name)
{
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++)
        if (!strcmp(name, variants[i]->name) && is_supported(variants[i]))
            return variants[i];
    return NULL;
}

#endif
