/* Which vector instructions an x86-64 machine has: the processor, and the system, which must save their registers.
 *
 * Source: Intel's manual, volume 1, "Detection of Intel AVX2" (14.7.1) and "Detection of AVX-512 Foundation Instructions" (15.2). The
 * compiler's __builtin_cpu_supports is not used: it needs a function of the compiler's library, which returns 0 in zig's.
 */
#ifndef CPU_H
#define CPU_H

#include <cpuid.h>
#include <stdint.h>

struct vectors {
    int avx2;   /* AVX2 and POPCNT */
    int avx512; /* those, and AVX-512 F, DQ and VL */
};

/* Return the register XCR0: which registers the system saves. Bit 1: XMM; 2: YMM; 5 to 7: masks and ZMM. */
static inline uint32_t saved_registers(void)
{
    uint32_t low, high;
    /* The instruction xgetbv, which an assembler for old machines does not know by its name. */
    __asm__ volatile(".byte 0x0f, 0x01, 0xd0" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

static inline int all_of(uint32_t bits, uint32_t mask)
{
    return (bits & mask) == mask;
}

static inline struct vectors find_vectors(void)
{
    const uint32_t popcnt_osxsave_avx = 1u << 23 | 1u << 27 | 1u << 28, avx2 = 1u << 5, f_dq_vl = 1u << 16 | 1u << 17 | 1u << 31;
    struct vectors vectors = {0, 0};
    uint32_t eax, ebx, ecx, edx;
    if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || !all_of(ecx, popcnt_osxsave_avx))
        return vectors;
    uint32_t saved = saved_registers();
    if (!__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx))
        return vectors;
    vectors.avx2 = all_of(saved, 0x06) && all_of(ebx, avx2);
    vectors.avx512 = vectors.avx2 && all_of(saved, 0xe6) && all_of(ebx, f_dq_vl);
    return vectors;
}

#endif
