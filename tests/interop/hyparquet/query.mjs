// Questions to Parquet files through hyparquet: one JSON object on the standard input, one on the standard output.
//
//   in    {"path": ..., "bloom": true, "questions": [{"column": "c", "values": [...], "many": false}]}
//   out   [{"rows": [n, ...], "bytes": bytes of the file that were fetched for the answer}]
//
// JSON has neither 64-bit integers nor bytes: {"int": "12"} is a BigInt, {"hex": "00ff"} a Uint8Array.
import { readFileSync } from 'node:fs'
import { asyncBufferFromFile, parquetMetadataAsync, parquetReadObjects } from 'hyparquet'
import { compressors } from 'hyparquet-compressors'

const request = JSON.parse(readFileSync(0, 'utf8'))
const file = await asyncBufferFromFile(request.path)
const metadata = await parquetMetadataAsync(file)

function revive(value) {
  if (typeof value?.int === 'string') return BigInt(value.int)
  if (typeof value?.hex === 'string') return new Uint8Array(Buffer.from(value.hex, 'hex'))
  return value
}

const answers = []
for (const { column, values, many } of request.questions) {
  let bytes = 0
  const counted = {
    byteLength: file.byteLength,
    slice(start, end = file.byteLength) {
      bytes += end - start
      return file.slice(start, end)
    },
  }
  const wanted = values.map(revive)
  const rows = await parquetReadObjects({
    file: counted,
    metadata,
    columns: ['n'],
    filter: { [column]: many ? { $in: wanted } : { $eq: wanted[0] } },
    useBloomFilters: request.bloom,
    utf8: request.utf8 ?? false,
    compressors,
  })
  answers.push({ rows: rows.map(({ n }) => Number(n)).sort((a, b) => a - b), bytes })
}
process.stdout.write(JSON.stringify(answers))
