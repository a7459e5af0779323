/* XXH64, seed 0: xxHash's specification 0.1.1, "XXH64 Algorithm Description". The steps are numbered as there and in spec.py.
 *
 * A template, included once for each kind of value:
 *
 *   LANE                        uint64_t, or a vector of them, to hash as many values of one length at once
 *   SOURCE                      where a LANE's values start
 *   READ(load, source, at)      the result of `load` at byte `at` of each value
 *   NAME(function)              the functions' names for this LANE
 */
#ifndef P1
#define P1 UINT64_C(0x9E3779B185EBCA87)
#define P2 UINT64_C(0xC2B2AE3D27D4EB4F)
#define P3 UINT64_C(0x165667B19E3779F9)
#define P4 UINT64_C(0x85EBCA77C2B2AE63)
#define P5 UINT64_C(0x27D4EB2F165667C5)
#endif

INLINE LANE NAME(rotate_left)(LANE x, int bits)
{
    return x << bits | x >> (64 - bits);
}

INLINE LANE NAME(xxh_round)(LANE accumulator, LANE lane)
{
    return NAME(rotate_left)(accumulator + lane * P2, 31) * P1;
}

INLINE LANE NAME(xxh_merge)(LANE h, LANE accumulator)
{
    return (h ^ NAME(xxh_round)((LANE){0}, accumulator)) * P1 + P4;
}

INLINE LANE NAME(xxh_eight)(LANE h, LANE lane)
{
    return NAME(rotate_left)(h ^ NAME(xxh_round)((LANE){0}, lane), 27) * P1 + P4;
}

INLINE LANE NAME(xxh_byte)(LANE h, LANE lane)
{
    return NAME(rotate_left)(h ^ lane * P5, 11) * P1;
}

INLINE LANE NAME(xxh64)(SOURCE source, size_t length)
{
    const LANE zero = {0};
    LANE h = zero + P5;
    size_t at = 0;

    /* Steps 1 to 3: four accumulators over stripes of 32 bytes, then merged; a short value skips them. */
    if (length >= 32) {
        LANE a = zero + (P1 + P2), b = zero + P2, c = zero, d = zero - P1;
        for (size_t stripes = length / 32; stripes; stripes--, at += 32) {
            a = NAME(xxh_round)(a, READ(load_le64, source, at));
            b = NAME(xxh_round)(b, READ(load_le64, source, at + 8));
            c = NAME(xxh_round)(c, READ(load_le64, source, at + 16));
            d = NAME(xxh_round)(d, READ(load_le64, source, at + 24));
        }
        h = NAME(rotate_left)(a, 1) + NAME(rotate_left)(b, 7) + NAME(rotate_left)(c, 12) + NAME(rotate_left)(d, 18);
        h = NAME(xxh_merge)(h, a);
        h = NAME(xxh_merge)(h, b);
        h = NAME(xxh_merge)(h, c);
        h = NAME(xxh_merge)(h, d);
    }

    /* Step 4: the length. Step 5: the remainder, by eights, then one four, then bytes. The bits of the length replace a loop. */
    h += length;
    if (length & 16) {
        h = NAME(xxh_eight)(h, READ(load_le64, source, at));
        h = NAME(xxh_eight)(h, READ(load_le64, source, at + 8));
        at += 16;
    }
    if (length & 8) {
        h = NAME(xxh_eight)(h, READ(load_le64, source, at));
        at += 8;
    }
    if (length & 4) {
        h = NAME(rotate_left)(h ^ READ(load_le32, source, at) * P1, 23) * P2 + P3;
        at += 4;
    }
    if (length & 2) {
        h = NAME(xxh_byte)(h, READ(load_byte, source, at));
        h = NAME(xxh_byte)(h, READ(load_byte, source, at + 1));
        at += 2;
    }
    if (length & 1)
        h = NAME(xxh_byte)(h, READ(load_byte, source, at));

    /* Step 6: avalanche. */
    h = (h ^ h >> 33) * P2;
    h = (h ^ h >> 29) * P3;
    return h ^ h >> 32;
}

#undef LANE
#undef SOURCE
#undef READ
#undef NAME
