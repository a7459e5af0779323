// The header of a stored filter: a BloomFilterHeader in Thrift's compact protocol, without a PageHeader around it (BloomFilter.md).
//
// A filter answers only if its header states split blocks, XXH64 and no compression. Everything else is described by a sentence.

import { BLOCK_BYTES } from './sbbf.js'

/** Bytes to fetch to have a whole header: today's headers take 15 to 19. */
export const HEADER_GUESS = 64
const MOST_DRAFT_BYTES = 128 << 20
const MOST_DEPTH = 16

const TRUE = 1, FALSE = 2, I8 = 3, I16 = 4, I32 = 5, I64 = 6, DOUBLE = 7, BINARY = 8, LIST = 9, SET = 10, MAP = 11, STRUCT = 12

/** Bytes that contradict the format; the message is a sentence without its end. */
export class UnreadableError extends Error {}

class Reader {
  constructor(bytes) {
    this.bytes = bytes
    this.at = 0
  }

  byte() {
    if (this.at >= this.bytes.length) throw new UnreadableError('not a filter header: it does not end')
    return this.bytes[this.at++]
  }

  varint() {
    let value = 0n
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = this.byte()
      value |= BigInt(byte & 0x7f) << shift
      if (byte < 0x80) return value
    }
    throw new UnreadableError('not a filter header: a number is too long')
  }

  zigzag() {
    const value = this.varint()
    return (value >> 1n) ^ -(value & 1n)
  }

  /** Read a struct into a Map from field id to value: a Map for a struct, a BigInt for an integer, undefined for all else. */
  struct(depth = 0) {
    if (depth > MOST_DEPTH) throw new UnreadableError('not a filter header: it is nested too deep')
    const fields = new Map()
    let id = 0n
    for (;;) {
      const byte = this.byte()
      if (byte === 0) return fields
      id = byte >> 4 ? id + BigInt(byte >> 4) : this.zigzag()
      const type = byte & 15
      fields.set(Number(id), { type, value: type === TRUE || type === FALSE ? undefined : this.value(type, depth) })
    }
  }

  value(type, depth) {
    if (type === STRUCT) return this.struct(depth + 1)
    if (type === I16 || type === I32 || type === I64) return this.zigzag()
    if (type === TRUE || type === FALSE || type === I8) this.skip(1n)
    else if (type === DOUBLE) this.skip(8n)
    else if (type === BINARY) this.skip(this.varint())
    else if (type === LIST || type === SET) this.list(depth)
    else if (type === MAP) this.map(depth)
    else throw new UnreadableError('not a filter header: Thrift has no such type')
    return undefined
  }

  list(depth) {
    const byte = this.byte()
    const count = byte >> 4 === 15 ? this.varint() : BigInt(byte >> 4)
    for (let item = 0n; item < count; item++) this.value(byte & 15, depth + 1)
  }

  map(depth) {
    const count = this.varint()
    const types = count ? this.byte() : 0
    for (let item = 0n; item < count; item++) {
      this.value(types >> 4, depth + 1)
      this.value(types & 15, depth + 1)
    }
  }

  skip(count) {
    if (count > BigInt(this.bytes.length - this.at)) throw new UnreadableError('not a filter header: it does not end')
    this.at += Number(count)
  }
}

/**
 * Parse the header at the start of these bytes to `{length, numBytes, reason}`, in bytes. `reason` says why the bitset must not be
 * interpreted; it is undefined for a usable filter. Throws UnreadableError for bytes that are no header.
 */
export function parseHeader(bytes) {
  const draft = parseRawDraft(bytes)
  if (draft) return draft
  const reader = new Reader(bytes)
  const fields = reader.struct()
  if (fields.get(9)?.type === STRUCT && fields.get(1)?.value === 4n) return draftHeader(reader.at, 0, 'a filter inside a PageHeader')
  const size = fields.get(1)
  if (size?.type !== I32) throw new UnreadableError('not a filter header: numBytes is missing')
  if (size.value < BLOCK_BYTES || size.value >= 2n ** 31n) {
    throw new UnreadableError(`the header states a bitset of ${size.value} bytes, but one block has ${BLOCK_BYTES}`)
  }
  return { length: reader.at, numBytes: Number(size.value), reason: findUnsupported(fields, reader.at, Number(size.value)) }
}

function findUnsupported(fields, length, numBytes) {
  const [algorithm, hash, compression] = [2, 3, 4].map(id => fields.get(id))
  const isKnown = isFirstMember(algorithm) && isFirstMember(hash)
  if (isKnown && isFirstMember(compression)) return undefined
  if (isKnown && !compression) return draftHeader(length, numBytes, 'a header without compression').reason
  if (!algorithm && !hash) return 'its header states neither algorithm nor hash'
  if (!isFirstMember(algorithm)) return 'its header states an algorithm other than split blocks'
  if (!isFirstMember(hash)) return 'its header states a hash other than XXH64'
  return 'its bitset is compressed in a way the format does not have'
}

/** Return whether a union has its first member, and no other: BLOCK, XXHASH and UNCOMPRESSED. */
function isFirstMember(union) {
  return union?.type === STRUCT && union.value.size === 1 && union.value.get(1)?.type === STRUCT
}

/** Parse the headers of drafts without Thrift: the size, a power of two, and two or three zeros, as 32-bit integers. */
function parseRawDraft(bytes) {
  if (bytes.length < 12) return undefined
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const size = view.getUint32(0, true)
  const isSize = size >= BLOCK_BYTES && size <= MOST_DRAFT_BYTES && (size & (size - 1)) === 0
  return isSize && !view.getUint32(4, true) && !view.getUint32(8, true) ? draftHeader(12, size, 'a header without Thrift') : undefined
}

function draftHeader(length, numBytes, form) {
  const reason = `its header is that of a draft of the format (${form}), which no reader uses; sbbf inspect names the draft`
  return { length, numBytes, reason }
}
