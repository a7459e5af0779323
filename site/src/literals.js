// A value as it is typed, and the plain bytes that a column would store for it: as `sbbf probe` takes values (docs/reference/values.md).
//
// `parseValue` returns `{forms, verdict, note, doubt}`. The value is stored only if one of its `forms` is; `verdict` is the answer if no
// filter is needed, and `doubt` says why a filter that holds none of the forms excludes nothing.

import { decodeFloat, decodeInteger, encodeFloat, encodeInteger, join, parseHex, roundFloat, toHex } from './bytes.js'
import { inUnit, int96Forms, int96Instant, normalizedInterval, parseDate, parseDuration, parseTime, parseTimestamp } from './times.js'

export const ABSENT = 'absent', MAYBE = 'maybe', CANNOT_SAY = 'cannot say'

const BOOLEANS = 'filters of BOOLEAN columns are empty (parquet-java) or are not written'
const MAX_DIGITS = 1000
const WORD_BYTES = 32
const FLOAT_NAMES = { 2: 'half', 4: 'single', 8: 'double' }
const DUCKDB_KEY = 'duckdb.interval_bloom_filter', DUCKDB_FORM = 'normalized-v1'
// Writers that store INT96 in one of the two forms of `int96Forms`, by `created_by`; and keys of programs that call parquet-java with one.
const INT96_WRITERS = [
  'parquet-cpp-arrow version',
  'parquet-cpp version',
  'fastparquet-python version',
  'impala version',
  'parquet-mr-trino version',
]
const INT96_KEYS = [
  'org.apache.spark.sql.parquet.row.metadata',
  'org.apache.spark.version',
  'writer.date.proleptic',
  'writer.zone.conversion.legacy',
]

/** A text that is not a value of the column; the message says what the column takes. */
export class ValueError extends Error {}

/** Physical types on which each logical type has a meaning; on any other, the values are those of the physical type. */
const DEFINED_ON = {
  INT: ['INT32', 'INT64'],
  DECIMAL: ['INT32', 'INT64', 'FIXED_LEN_BYTE_ARRAY', 'BYTE_ARRAY'],
  FLOAT16: ['FIXED_LEN_BYTE_ARRAY(2)'],
  DATE: ['INT32'],
  TIME: ['INT32 MILLIS', 'INT64 MICROS', 'INT64 NANOS'],
  TIMESTAMP: ['INT64 MILLIS', 'INT64 MICROS', 'INT64 NANOS'],
  INTERVAL: ['FIXED_LEN_BYTE_ARRAY(12)'],
  STRING: ['BYTE_ARRAY'],
  ENUM: ['BYTE_ARRAY'],
  JSON: ['BYTE_ARRAY'],
  BSON: ['BYTE_ARRAY'],
  GEOMETRY: ['BYTE_ARRAY'],
  GEOGRAPHY: ['BYTE_ARRAY'],
  UUID: ['FIXED_LEN_BYTE_ARRAY(16)'],
}

const bytesNotation = {
  parse: parseText,
  expects: ({ width }) => (width ? `${width} bytes in hexadecimal, as 0x.., or as text` : 'bytes in hexadecimal, as 0x.., or text'),
}
const integerNotation = { parse: parseInteger, expects: column => `an integer from ${integerRange(column).join(' to ')}` }
const floatNotation = {
  parse: parseFloatValue,
  plainForms: floatForms,
  expects: column => `a number of ${FLOAT_NAMES[column.width]} precision`,
}
const textNotation = { parse: parseText, isText: true, expects: () => 'text' }
const hexNotation = { parse: () => undefined, expects: column => `${column.logical.kind} bytes in hexadecimal, as 0x..` }

const BY_PHYSICAL = {
  INT32: integerNotation,
  INT64: integerNotation,
  INT96: {
    parse: parseInt96,
    plainForms: plain => [plain, ...int96Forms(int96Instant(plain))],
    doubt: findInt96Doubt,
    expects: () => 'YYYY-MM-DDTHH:MM:SS with fractions to nanos, or 12 bytes as 0x..',
  },
  FLOAT: floatNotation,
  DOUBLE: floatNotation,
  BYTE_ARRAY: bytesNotation,
  FIXED_LEN_BYTE_ARRAY: bytesNotation,
}

const BY_LOGICAL = {
  INT: integerNotation,
  DECIMAL: {
    parse: parseDecimal,
    plainForms: decimalForms,
    doubt: ({ physical }) => (physical === 'BYTE_ARRAY' ? 'a BYTE_ARRAY decimal may have more sign bytes than those queried' : undefined),
    expects: ({ logical }) => `a decimal number of ${logical.precision} digits, ${logical.scale} of them behind the point`,
  },
  FLOAT16: floatNotation,
  DATE: { parse: (column, text) => single(encodeCount(parseDate(text), 4)), expects: () => 'a date as YYYY-MM-DD' },
  TIME: { parse: (column, text) => countUnits(column, parseTime(text)), expects: expectTime },
  TIMESTAMP: { parse: (column, text) => countUnits(column, parseTimestamp(text)), expects: expectTime },
  INTERVAL: {
    parse: parseInterval,
    plainForms: plain => [plain, normalizedInterval(plain)],
    doubt: findIntervalDoubt,
    expects: () => 'an ISO 8601 duration to milliseconds, such as P1M2DT3.004S',
  },
  STRING: textNotation,
  ENUM: textNotation,
  JSON: textNotation,
  BSON: hexNotation,
  GEOMETRY: hexNotation,
  GEOGRAPHY: hexNotation,
  UUID: { parse: parseUuid, expects: () => 'a UUID, such as 123e4567-e89b-12d3-a456-426614174000' },
}

/** Return what a column takes, for a hint; undefined if its filters never answer. */
export function expects(column) {
  return column.physical === 'BOOLEAN' || column.doubt ? undefined : notationOf(column).expects(column)
}

/**
 * Parse `text` as a value of `column`. `writer` is `{createdBy, keys}`: the writer of the file, and its key-value metadata as a Map.
 * Throws ValueError, with the notation of the column's values, if it is none.
 */
export function parseValue(column, text, writer) {
  const notation = column.physical === 'BOOLEAN' || column.doubt ? undefined : notationOf(column)
  const mayBeText = notation && (notation.isText || (notation === bytesNotation && !column.width))
  if (text.toLowerCase() === 'null' && !mayBeText) return withVerdict(CANNOT_SAY, 'nulls are never in a Bloom filter')
  if (column.physical === 'BOOLEAN') return withVerdict(CANNOT_SAY, BOOLEANS)
  if (!notation) return withVerdict(CANNOT_SAY, column.doubt)
  const isHex = /^0x/i.test(text) && !notation.isText
  const value = isHex ? parsePlain(column, notation, text) : notation.parse(column, text)
  if (value === undefined) throw new ValueError(`This is not a value of ${column.typeName}: it takes ${notation.expects(column)}.`)
  return { ...value, doubt: notation.doubt?.(column, writer) }
}

function notationOf(column) {
  const { physical, typeLength, logical } = column
  const names = [physical, `${physical}(${typeLength})`, `${physical} ${logical?.unit}`]
  const isDefined = DEFINED_ON[logical?.kind]?.some(name => names.includes(name))
  return isDefined ? BY_LOGICAL[logical.kind] : BY_PHYSICAL[physical]
}

function single(plain, note) {
  return plain && { forms: [plain], note }
}

function several(forms, note) {
  return { forms: [...new Map(forms.map(form => [toHex(form), form])).values()], note }
}

function withVerdict(verdict, note) {
  return { forms: [], verdict, note }
}

/** Parse plain bytes in hexadecimal: these, and all others in which their value may be stored. */
function parsePlain(column, notation, text) {
  const plain = parseHex(text.slice(2))
  if (!plain || (column.width && plain.length !== column.width)) return undefined
  if (notation === floatNotation && Number.isNaN(decodeFloat(plain))) return notANumber()
  return several(notation.plainForms?.(plain, column) ?? [plain])
}

// --- Text, and bytes ---

function parseText(column, text) {
  // Half a surrogate pair stands for no byte.
  if (/[\ud800-\udfff]/u.test(text)) return undefined
  // A form sends every line break as one character, whatever was pasted.
  if (text.includes('\n')) return withVerdict(CANNOT_SAY, 'a browser does not keep the bytes of line breaks; use sbbf probe')
  const plain = new TextEncoder().encode(text)
  return column.width && plain.length !== column.width ? undefined : single(plain)
}

function parseUuid(column, text) {
  const digits = text.replace('urn:', '').replace('uuid:', '').replace(/^[{}]+|[{}]+$/g, '').replaceAll('-', '')
  return digits.length === 32 ? single(parseHex(digits)) : undefined
}

// --- Numbers ---

function integerRange(column) {
  const { logical } = column
  const isUnsigned = logical?.kind === 'INT' && !logical.signed
  const bits = BigInt(Math.min(logical?.kind === 'INT' ? logical.bits : 64, column.width * 8))
  return isUnsigned ? [0n, (1n << bits) - 1n] : [-(1n << (bits - 1n)), (1n << (bits - 1n)) - 1n]
}

function parseInteger(column, text) {
  if (!/^[+-]?\d+$/.test(text) || text.length > MAX_DIGITS) return undefined
  const value = BigInt(text.replace(/^\+/, ''))
  const [low, high] = integerRange(column)
  if (value < low || value > high) return undefined
  return single(encodeInteger(BigInt.asIntN(8 * column.width, value), column.width))
}

function notANumber() {
  return withVerdict(MAYBE, 'NaN has many stored forms, and a filter may hold only some')
}

function parseFloatValue(column, text) {
  const number = text.trim()
  if (/^[+-]?nan$/i.test(number)) return notANumber()
  const isInfinite = /^[+-]?inf(inity)?$/i.test(number)
  if (!isInfinite && !/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(number)) return undefined
  const value = isInfinite ? (number.startsWith('-') ? -Infinity : Infinity) : Number(number)
  const narrow = roundFloat(value, column.width)
  if (narrow === undefined || (!isInfinite && !Number.isFinite(value))) return undefined
  const mirror = value + (value - narrow)
  // Half way between two narrow numbers, at the precision of a double, the text may mean either.
  if (narrow !== 0 && narrow !== value && roundFloat(mirror, column.width) === mirror) {
    return several([narrow, mirror].map(number => encodeFloat(number, column.width)))
  }
  return several(floatForms(encodeFloat(narrow, column.width)))
}

/** Return the stored forms of a float: both zeros are equal in SQL, but their bytes differ. */
function floatForms(plain) {
  return decodeFloat(plain) === 0 ? [0, -0].map(zero => encodeFloat(zero, plain.length)) : [plain]
}

function parseDecimal(column, text) {
  const { precision, scale } = column.logical
  const match = /^([+-]?)(\d*)(?:\.(\d*))?(?:e([+-]?\d+))?$/i.exec(text.trim())
  if (!match || text.length > MAX_DIGITS || !(match[2] || match[3])) return undefined
  const [, sign, whole, fraction = '', exponent = '0'] = match
  const digits = BigInt(whole + fraction)
  const power = Number(exponent) - fraction.length
  if (digits && Math.abs(String(digits).length - 1 + power) > 2 * MAX_DIGITS) return undefined
  const shift = digits ? power + scale : 0
  const divisor = shift < 0 ? 10n ** BigInt(-shift) : 1n
  const scaled = shift > 0 ? digits * 10n ** BigInt(shift) : digits
  const size = scaled / divisor
  if (size >= 10n ** BigInt(precision)) return undefined
  if (scaled % divisor) return withVerdict(ABSENT, `more digits than the column's scale of ${scale}`)
  const unscaled = sign === '-' ? -size : size
  if (column.physical === 'BYTE_ARRAY') return several(decimalWidths(unscaled, precision))
  return single(encodeInteger(unscaled, column.width, { bigEndian: !column.physical.startsWith('INT') }))
}

function decimalForms(plain, column) {
  if (column.physical !== 'BYTE_ARRAY' || !plain.length) return [plain]
  const unscaled = decodeInteger(plain, { bigEndian: true })
  const most = 10n ** BigInt(column.logical.precision)
  return unscaled > -most && unscaled < most ? [plain, ...decimalWidths(unscaled, column.logical.precision)] : [plain]
}

/** Build a BYTE_ARRAY decimal in all widths from the least to a machine word, or more if the precision needs it. */
function decimalWidths(unscaled, precision) {
  const least = leastBytes(unscaled)
  const most = Math.max(least, WORD_BYTES, leastBytes(10n ** BigInt(precision)))
  return Array.from({ length: most - least + 1 }, (_, more) => encodeInteger(unscaled, least + more, { bigEndian: true }))
}

function leastBytes(value) {
  const size = value < 0n ? ~value : value
  return Math.floor(((size ? size.toString(2).length : 0) + 8) / 8)
}

// --- Times ---

function encodeCount(count, width) {
  return count === undefined ? undefined : encodeInteger(count, width)
}

function countUnits(column, time) {
  const { kind, unit, utc } = column.logical
  if (!time || (time.isZoned && !utc)) return undefined
  const count = inUnit(time, unit)
  if (count === undefined) return finer(unit)
  return single(encodeCount(count, column.width), kind === 'TIMESTAMP' && utc && !time.isZoned ? 'read as UTC' : undefined)
}

function finer(unit) {
  return withVerdict(ABSENT, `more precise than the column's unit, ${unit.toLowerCase()}`)
}

function expectTime({ logical }) {
  const form = logical.kind === 'TIME' ? 'HH:MM:SS' : 'YYYY-MM-DDTHH:MM:SS'
  return `${form} with fractions to ${logical.unit.toLowerCase()}${logical.utc ? '' : ', without a zone'}`
}

function parseInt96(column, text) {
  const time = parseTimestamp(text)
  if (!time) return undefined
  if (time.isFiner) return finer('NANOS')
  const forms = int96Forms(time.nanos)
  return forms.length ? several(forms, time.isZoned ? undefined : 'read as UTC') : undefined
}

function findInt96Doubt(column, { createdBy, keys }) {
  const isKnown = INT96_WRITERS.some(name => createdBy.startsWith(name))
  if (isKnown || (createdBy.startsWith('parquet-mr ') && INT96_KEYS.some(key => keys.has(key)))) return undefined
  return 'the writer of the file may store INT96 instants in other forms than those that were queried'
}

function parseInterval(column, text) {
  const parts = parseDuration(text)
  if (!parts) return parts === null ? finer('MILLIS') : undefined
  const encoded = parts.map(part => encodeInteger(part, 4, { signed: false }))
  if (!encoded.every(part => part)) return undefined
  const plain = join(...encoded)
  return several([plain, normalizedInterval(plain)])
}

function findIntervalDoubt(column, { createdBy, keys }) {
  const isDuckdb = createdBy.startsWith('DuckDB') || keys.has(DUCKDB_KEY)
  if (!isDuckdb || keys.get(DUCKDB_KEY) === DUCKDB_FORM) return undefined
  return "DuckDB compares intervals as months, days and hours carried over, and the file's filters are not known to hold that form"
}
