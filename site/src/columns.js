// Leaf columns and their types (parquet.thrift SchemaElement, LogicalTypes.md), from the schema as hyparquet parses it.

import { UnreadableError } from './header.js'

const MAX_DEPTH = 100
const MAX_DIGITS = 1000
const FIXED_WIDTHS = { INT32: 4, INT64: 8, INT96: 12, FLOAT: 4, DOUBLE: 8 }
const UNITS = ['MILLIS', 'MICROS', 'NANOS']
const PLAIN_KINDS = { STRING: 1, ENUM: 1, DATE: 1, NULL: 'UNKNOWN', JSON: 1, BSON: 1, UUID: 1, FLOAT16: 1, GEOMETRY: 1, GEOGRAPHY: 1 }
const KNOWN_UNIONS = new Set([...Object.keys(PLAIN_KINDS), 'MAP', 'LIST', 'DECIMAL', 'TIME', 'TIMESTAMP', 'INTEGER', 'VARIANT'])

/**
 * List the leaf columns: `{index, name, physical, typeLength, width, logical, doubt, typeName}`. `doubt` says why the values of a column
 * cannot be interpreted. Throws UnreadableError if the elements do not form a tree.
 */
export function leafColumns(schema) {
  const columns = []
  let position = 1
  const walk = (path, children, depth) => {
    if (depth > MAX_DEPTH) throw new UnreadableError(`the schema is nested more than ${MAX_DEPTH} deep`)
    for (let child = 0; child < children; child++) {
      const element = schema[position++]
      if (element === undefined) throw new UnreadableError('the groups of the schema state more children than it has elements')
      if (element.name === undefined) throw new UnreadableError('a schema element has no name')
      const here = [...path, element.name]
      if (element.num_children) walk(here, element.num_children, depth + 1)
      else columns.push(leafColumn(columns.length, here, element))
    }
  }
  walk([], schema[0]?.num_children ?? 0, 0)
  if (position < schema.length) throw new UnreadableError('the schema has more elements than its groups state')
  return columns
}

function leafColumn(index, path, element) {
  const name = quote(path)
  if (!element.type) throw new UnreadableError(`column ${name} has no physical type of the format`)
  const typeLength = element.type === 'FIXED_LEN_BYTE_ARRAY' ? Math.max(element.type_length ?? 0, 0) : 0
  const logical = logicalType(element)
  const doubt = findDoubt(element, typeLength, logical) ?? findContradiction(element)
  return makeColumn({ index, name, physical: element.type, typeLength, logical: doubt ? null : logical, doubt: doubt ?? null })
}

/** Add to a column what follows from its type. */
export function makeColumn(column) {
  const physical = column.typeLength ? `${column.physical}(${column.typeLength})` : column.physical
  const typeName = column.logical ? `${physical} ${nameLogical(column.logical)}` : physical
  return { ...column, typeName, width: FIXED_WIDTHS[column.physical] ?? (column.typeLength || null) }
}

function nameLogical(logical) {
  if (logical.kind === 'INT') return `INT(${logical.bits},${logical.signed ? 'signed' : 'unsigned'})`
  if (logical.kind === 'DECIMAL') return `DECIMAL(${logical.precision},${logical.scale})`
  return logical.unit ? `${logical.kind}(${logical.unit},${logical.utc ? 'UTC' : 'local'})` : logical.kind
}

function quote(path) {
  return path.map(part => (/[.`]/.test(part) || !part ? `\`${part.replaceAll('`', '``')}\`` : part)).join('.')
}

function logicalType(element) {
  const union = element.logical_type
  if (union?.type === 'DECIMAL') return { kind: 'DECIMAL', precision: union.precision ?? 0, scale: union.scale ?? 0 }
  if (union?.type === 'INTEGER') return { kind: 'INT', bits: union.bitWidth ?? 0, signed: Boolean(union.isSigned) }
  if (union?.type === 'TIME' || union?.type === 'TIMESTAMP') {
    return { kind: union.type, unit: UNITS.includes(union.unit) ? union.unit : '', utc: Boolean(union.isAdjustedToUTC) }
  }
  const kind = PLAIN_KINDS[union?.type]
  if (kind) return { kind: kind === 1 ? union.type : kind }
  return convertedType(element)
}

function convertedType({ converted_type: converted, precision, scale }) {
  if (converted === undefined || ['MAP', 'MAP_KEY_VALUE', 'LIST'].includes(converted)) return null
  if (converted === 'DECIMAL') return { kind: 'DECIMAL', precision: precision ?? 0, scale: scale ?? 0 }
  if (converted === 'UTF8') return { kind: 'STRING' }
  const time = /^(TIME|TIMESTAMP)_(MILLIS|MICROS)$/.exec(converted)
  if (time) return { kind: time[1], unit: time[2], utc: true }
  const integer = /^(U?)INT_(\d+)$/.exec(converted)
  return integer ? { kind: 'INT', bits: Number(integer[2]), signed: !integer[1] } : { kind: converted }
}

function findDoubt(element, typeLength, logical) {
  if (element.type === 'FIXED_LEN_BYTE_ARRAY' && !typeLength) return 'the length of its values is not stated, or below 1'
  if (logical?.kind === 'DECIMAL') return findDecimalDoubt(FIXED_WIDTHS[element.type] ?? typeLength, logical)
  if (logical?.kind === 'INT' && ![8, 16, 32, 64].includes(logical.bits)) return 'the width of its integers must be 8, 16, 32 or 64 bits'
  if (['TIME', 'TIMESTAMP'].includes(logical?.kind) && !logical.unit) return 'it states no unit that is known here'
  return undefined
}

function findDecimalDoubt(numBytes, { precision, scale }) {
  if (precision < 1) return 'the precision of its decimals must be 1 or more'
  if (scale < 0 || scale > precision) return 'the scale of its decimals must be from 0 to the precision'
  if (numBytes && precision > Math.floor((8 * numBytes - 1) * Math.log10(2))) return `${numBytes} bytes do not hold ${precision} digits`
  return precision > MAX_DIGITS ? `at most ${MAX_DIGITS} digits are read` : undefined
}

/** Explain why readers differ on a DECIMAL whose logical type is of a later version of the format. */
function findContradiction(element) {
  const isUnknown = element.logical_type !== undefined && !KNOWN_UNIONS.has(element.logical_type.type)
  if (!isUnknown || element.converted_type !== 'DECIMAL') return undefined
  return 'its logical type is not known here, and its converted type is DECIMAL: readers differ on its values'
}
