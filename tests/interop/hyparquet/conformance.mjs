// A reader for `sbbf conformance run`: hyparquet, whose rows are the answer. Argument: the file of questions, a JSON object per line.
//
// It answers `cannot say` for what it asks no question about: bytes that are not text, times, decimals, nested columns.
import { readFileSync } from 'node:fs'
import { asyncBufferFromFile, parquetMetadataAsync, parquetReadObjects } from 'hyparquet'
import { compressors } from 'hyparquet-compressors'

const SPECIAL = { nan: NaN, inf: Infinity, '-inf': -Infinity }

function wanted({ type, value, path }) {
  // A filter names nested columns by dots.
  if (path.length > 1 || path[0].includes('.')) return undefined
  if (/^INT32( INT\(.*\))?$/.test(type)) return Number(value)
  if (/^INT64( INT\(.*\))?$/.test(type)) return BigInt(value)
  if (type === 'FLOAT') return SPECIAL[value] ?? Math.fround(Number(value))
  if (type === 'DOUBLE') return SPECIAL[value] ?? Number(value)
  if (/^BYTE_ARRAY (STRING|ENUM)$/.test(type)) return value
  return undefined
}

async function answer(question) {
  const value = wanted(question)
  if (value === undefined) return 'cannot say'
  const file = await asyncBufferFromFile(question.file)
  const metadata = await parquetMetadataAsync(file)
  const [column] = question.path
  const rows = await parquetReadObjects({
    file, metadata, columns: [column], filter: { [column]: { $eq: value } }, useBloomFilters: true, compressors,
  })
  return rows.length ? 'maybe' : 'absent'
}

for (const line of readFileSync(process.argv[2], 'utf8').trim().split('\n')) {
  let text
  try {
    text = await answer(JSON.parse(line))
  } catch (error) {
    console.error(`${JSON.parse(line).file}: ${error.message}`)
    text = 'cannot say'
  }
  console.log(text)
}
