// A Parquet file: its footer, which hyparquet parses, and the filters that the footer refers to. Only these are read.

import { parquetMetadata } from 'hyparquet'

import { leafColumns } from './columns.js'
import { HEADER_GUESS, parseHeader, UnreadableError } from './header.js'
import { ABSENT, CANNOT_SAY, MAYBE, parseValue } from './literals.js'
import { BLOCK_BYTES, blockIndex, checkBlock, Measurement } from './sbbf.js'
import { Windows } from './sources.js'
import { xxh64 } from './xxh64.js'

export const NO_FILTER = 'no filter'

const TAIL_BYTES = 8
const MAGIC_BYTES = 4
/** Bytes of a bitset that are read and measured at once. */
const PIECE_BYTES = 4 << 20
/** Of these reads, few wait at once. */
const CONCURRENT = 6
// Statistics are not shown, and decoding them can fail.
const nothing = () => undefined
const PARSERS = {
  timestampFromMilliseconds: nothing,
  timestampFromMicroseconds: nothing,
  timestampFromNanoseconds: nothing,
  dateFromDays: nothing,
  stringFromBytes: nothing,
  uuidFromBytes: nothing,
}

/**
 * One filter, or the reason why a chunk's filter cannot be used: `{rowGroup, column, offset, header, reason, fillRatio, estimatedFpp}`.
 * `header` is undefined for bytes that are no header. Its `numBytes` defines the length; that of the footer is optional, and not used.
 */
class StoredFilter {
  constructor(rowGroup, column, offset) {
    Object.assign(this, { rowGroup, column, offset })
  }

  get bitsetOffset() {
    return this.offset + this.header.length
  }

  get bytes() {
    return this.header && this.header.numBytes ? this.header.length + this.header.numBytes : undefined
  }

  get numBlocks() {
    return Math.floor(this.header.numBytes / BLOCK_BYTES)
  }
}

export class ParquetFile {
  /** Read the footer and the headers of all filters. Throws UnreadableError, and SourceError of the source. */
  static async open(source) {
    const file = new ParquetFile()
    file.source = source
    await file.#readFooter()
    await file.#readHeaders()
    return file
  }

  async #readFooter() {
    const { source } = this
    if (source.size < MAGIC_BYTES + TAIL_BYTES) throw new UnreadableError('not a Parquet file: it is too short')
    const tail = await source.read(source.size - TAIL_BYTES, TAIL_BYTES)
    const magic = String.fromCharCode(...tail.subarray(4))
    if (magic === 'PARE') throw new UnreadableError('its footer is encrypted, and this page takes no keys; use sbbf inspect with --keys')
    if (magic !== 'PAR1') throw new UnreadableError('not a Parquet file, or truncated: it does not end with PAR1')
    const length = new DataView(tail.buffer, tail.byteOffset).getUint32(0, true)
    this.footerStart = source.size - TAIL_BYTES - length
    this.footerBytes = length + TAIL_BYTES
    if (this.footerStart < MAGIC_BYTES) throw new UnreadableError(`it states a footer of ${length} bytes, which is longer than the file`)
    const footer = await source.read(this.footerStart, length)
    const whole = new Uint8Array(length + TAIL_BYTES)
    whole.set(footer)
    whole.set(tail, length)
    let metadata
    try {
      metadata = parquetMetadata(whole.buffer, { parsers: PARSERS, geoparquet: false })
    } catch (error) {
      throw new UnreadableError(`its footer cannot be parsed: ${error.message}`)
    }
    this.columns = leafColumns(metadata.schema)
    this.createdBy = metadata.created_by ?? ''
    this.rows = metadata.num_rows
    this.rowGroups = metadata.row_groups.length
    const rows = metadata.row_groups.reduce((sum, { num_rows: count }) => sum + (count ?? 0n), 0n)
    if (rows !== metadata.num_rows) throw new UnreadableError('its footer is damaged: the rows of its row groups are not those of the file')
    const keys = new Map()
    for (const { key, value } of metadata.key_value_metadata ?? []) if (!keys.has(key)) keys.set(key, value ?? '')
    this.writer = { createdBy: this.createdBy, keys }
    this.filters = this.#listFilters(metadata)
  }

  /** List the filters in the order of row groups and columns; chunks without a filter are not in the list. */
  #listFilters(metadata) {
    const filters = []
    metadata.row_groups.forEach(({ columns: chunks }, rowGroup) => {
      const [stated, expected] = [chunks.length, this.columns.length]
      if (stated !== expected) throw new UnreadableError(`row group ${rowGroup} has ${stated} column chunks, the schema has ${expected}`)
      chunks.forEach((chunk, index) => {
        const filter = this.#findFilter(rowGroup, this.columns[index], chunk)
        if (filter) filters.push(filter)
      })
    })
    return filters
  }

  #findFilter(rowGroup, column, { meta_data: meta, crypto_metadata: crypto, file_path: path }) {
    const offset = meta?.bloom_filter_offset
    const filter = new StoredFilter(rowGroup, column, Number(offset ?? 0))
    if (crypto || !meta) {
      filter.reason = 'its column is encrypted, and this page takes no keys'
      return filter
    }
    // Offsets of 0 or less, of builds before parquet-mr 1.12, mean that there is none.
    if (offset === undefined || offset <= 0) return undefined
    if (meta.type !== column.physical) {
      filter.reason = `the filter is unreadable: the chunk has type ${meta.type}, the column ${column.physical}`
    } else if (path) filter.reason = 'the chunk is in another file'
    else if (!Number.isSafeInteger(filter.offset) || filter.offset >= this.footerStart) filter.reason = 'the filter is unreadable: its offset is not before the footer'
    return filter
  }

  async #readHeaders() {
    const readable = this.filters.filter(filter => !filter.reason)
    const ranges = readable.map(({ offset }) => [offset, this.#headerBytes(offset)])
    const windows = new Windows(this.source, ranges)
    await inTurn(readable, async filter => {
      const data = await windows.read(filter.offset, this.#headerBytes(filter.offset))
      try {
        filter.header = parseHeader(data)
        filter.reason = filter.header.reason
        const end = filter.offset + filter.header.length + filter.header.numBytes
        if (!filter.reason && end > this.footerStart) {
          filter.reason = `the filter is unreadable: a bitset of ${filter.header.numBytes} bytes runs into the footer`
        }
      } catch (error) {
        if (!(error instanceof UnreadableError)) throw error
        filter.reason = `the filter is unreadable: ${error.message}`
      }
    })
  }

  #headerBytes(offset) {
    return Math.min(HEADER_GUESS, this.source.size - offset)
  }

  /** Bytes of all bitsets that can be measured. */
  get bitsetBytes() {
    return this.filters.reduce((sum, filter) => sum + (filter.reason ? 0 : filter.header.numBytes), 0)
  }

  /** Set fill ratio and estimated FPP of every usable filter; `report(filter)` is called after each. */
  async measure(report = nothing) {
    const usable = this.filters.filter(filter => !filter.reason).sort((a, b) => a.offset - b.offset)
    for (let at = 0; at < usable.length; ) {
      // Windows are dropped after use, so that memory stays small.
      const part = []
      for (let bytes = 0; at < usable.length && (!part.length || bytes + usable[at].bytes <= PIECE_BYTES); at++) {
        bytes += usable[at].bytes
        part.push(usable[at])
      }
      const ranges = part.map(filter => [filter.bitsetOffset, Math.min(filter.header.numBytes, PIECE_BYTES)])
      const windows = new Windows(this.source, ranges)
      for (const filter of part) {
        await measureFilter(filter, windows)
        report(filter)
      }
    }
  }

  /**
   * Query the filters of a column for a value as it is typed: `{answers, note, isAbsent}`, with `{rowGroup, answer, reason}` for each row
   * group. Only `absent` is certain. Throws ValueError if the text is not a value of the column.
   */
  async probe(column, text) {
    const value = parseValue(column, text, this.writer)
    const ofColumn = this.filters.filter(filter => filter.column === column)
    const byRowGroup = new Map(ofColumn.map(filter => [filter.rowGroup, filter]))
    const hashes = value.forms.map(xxh64)
    const usable = value.verdict ? [] : ofColumn.filter(filter => !filter.reason)
    const blocks = usable.flatMap(filter => hashes.map(hash => [blockOffset(filter, hash), BLOCK_BYTES]))
    const windows = new Windows(this.source, blocks)
    const holds = new Map()
    await inTurn(usable, async filter => holds.set(filter.rowGroup, await mayHold(filter, hashes, windows)))
    const answers = Array.from({ length: this.rowGroups }, (_, rowGroup) => {
      if (value.verdict) return { rowGroup, answer: value.verdict, reason: value.note }
      const filter = byRowGroup.get(rowGroup)
      if (!filter) return { rowGroup, answer: NO_FILTER }
      if (filter.reason) return { rowGroup, answer: CANNOT_SAY, reason: filter.reason }
      if (holds.get(rowGroup)) return { rowGroup, answer: MAYBE }
      return value.doubt ? { rowGroup, answer: CANNOT_SAY, reason: value.doubt } : { rowGroup, answer: ABSENT }
    })
    return { answers, note: value.note, isAbsent: answers.every(({ answer }) => answer === ABSENT) }
  }
}

function blockOffset(filter, hash) {
  return filter.bitsetOffset + blockIndex(hash, filter.numBlocks) * BLOCK_BYTES
}

async function mayHold(filter, hashes, windows) {
  for (const hash of hashes) {
    if (checkBlock(await windows.read(blockOffset(filter, hash), BLOCK_BYTES), hash)) return true
  }
  return false
}

async function measureFilter(filter, windows) {
  const measurement = new Measurement()
  const end = filter.bitsetOffset + filter.numBlocks * BLOCK_BYTES
  for (let at = filter.bitsetOffset; at < end; at += PIECE_BYTES) {
    measurement.add(await windows.read(at, Math.min(PIECE_BYTES, end - at)))
  }
  filter.fillRatio = measurement.fillRatio
  filter.estimatedFpp = measurement.estimatedFpp
}

/** Call an asynchronous function for each item, a few at once. */
async function inTurn(items, work) {
  const queue = items.values()
  await Promise.all(
    Array.from({ length: CONCURRENT }, async () => {
      for (const item of queue) await work(item)
    }),
  )
}
