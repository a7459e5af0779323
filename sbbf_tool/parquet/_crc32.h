/* The checksum of pages: CRC-32 as gzip defines it (RFC 1952), eight bytes at once. */
#ifndef CRC32_H
#define CRC32_H

#include <stddef.h>
#include <stdint.h>

enum { CRC_BYTES = 8 };

static uint32_t crc_tables[CRC_BYTES][256]; /* by `fill_crc_tables`; [k][b] is byte b followed by k zero bytes */

static void fill_crc_tables(void)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t sum = byte;
        for (int bit = 0; bit < 8; bit++)
            sum = sum >> 1 ^ (sum & 1 ? UINT32_C(0xEDB88320) : 0);
        crc_tables[0][byte] = sum;
    }
    for (int zeros = 1; zeros < CRC_BYTES; zeros++)
        for (int byte = 0; byte < 256; byte++) {
            uint32_t before = crc_tables[zeros - 1][byte];
            crc_tables[zeros][byte] = before >> 8 ^ crc_tables[0][before & 0xFF];
        }
}

static uint32_t crc32_of(const uint8_t *data, size_t size)
{
    uint32_t sum = UINT32_MAX;
    for (; size >= CRC_BYTES; size -= CRC_BYTES, data += CRC_BYTES) {
        uint32_t next = 0;
        for (int at = 0; at < CRC_BYTES; at++) {
            uint32_t byte = at < 4 ? (data[at] ^ sum >> (8 * at)) & 0xFF : data[at];
            next ^= crc_tables[CRC_BYTES - 1 - at][byte];
        }
        sum = next;
    }
    for (; size; size--)
        sum = sum >> 8 ^ crc_tables[0][(sum ^ *data++) & 0xFF];
    return ~sum;
}

#endif
