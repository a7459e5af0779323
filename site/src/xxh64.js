// XXH64 with seed 0 (https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md), the hash of the values in a Bloom filter.

const MASK = 0xffffffffffffffffn
const PRIME_1 = 0x9e3779b185ebca87n
const PRIME_2 = 0xc2b2ae3d27d4eb4fn
const PRIME_3 = 0x165667b19e3779f9n
const PRIME_4 = 0x85ebca77c2b2ae63n
const PRIME_5 = 0x27d4eb2f165667c5n

function rotateLeft(x, bits) {
  return ((x << bits) | (x >> (64n - bits))) & MASK
}

function round(accumulator, lane) {
  return (rotateLeft((accumulator + lane * PRIME_2) & MASK, 31n) * PRIME_1) & MASK
}

function merge(accumulator, lane) {
  return ((accumulator ^ round(0n, lane)) * PRIME_1 + PRIME_4) & MASK
}

/** Return the hash of these bytes (Uint8Array) as an unsigned BigInt. */
export function xxh64(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const end = bytes.byteLength
  let at = 0
  let hash
  if (end >= 32) {
    const lanes = [(PRIME_1 + PRIME_2) & MASK, PRIME_2, 0n, (0n - PRIME_1) & MASK]
    for (; at + 32 <= end; at += 32) {
      for (let lane = 0; lane < 4; lane++) lanes[lane] = round(lanes[lane], view.getBigUint64(at + 8 * lane, true))
    }
    hash = rotateLeft(lanes[0], 1n) + rotateLeft(lanes[1], 7n) + rotateLeft(lanes[2], 12n) + rotateLeft(lanes[3], 18n)
    hash &= MASK
    for (const lane of lanes) hash = merge(hash, lane)
  } else {
    hash = PRIME_5
  }
  hash = (hash + BigInt(end)) & MASK
  for (; at + 8 <= end; at += 8) {
    hash ^= round(0n, view.getBigUint64(at, true))
    hash = (rotateLeft(hash, 27n) * PRIME_1 + PRIME_4) & MASK
  }
  if (at + 4 <= end) {
    hash ^= (BigInt(view.getUint32(at, true)) * PRIME_1) & MASK
    hash = (rotateLeft(hash, 23n) * PRIME_2 + PRIME_3) & MASK
    at += 4
  }
  for (; at < end; at++) {
    hash ^= (BigInt(view.getUint8(at)) * PRIME_5) & MASK
    hash = (rotateLeft(hash, 11n) * PRIME_1) & MASK
  }
  hash = ((hash ^ (hash >> 33n)) * PRIME_2) & MASK
  hash = ((hash ^ (hash >> 29n)) * PRIME_3) & MASK
  return hash ^ (hash >> 32n)
}
