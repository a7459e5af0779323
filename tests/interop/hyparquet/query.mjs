// Questions to Parquet files through hyparquet: lines of JSON on the standard input, one line of JSON on the standard output for each.
//
//   in    {"path": ..., "bloom": true, "questions": [{"column": "c", "values": [...], "many": false}]}
//   out   [{"rows": [n, ...], "bytes": bytes of the file that were fetched for the answer}], or {"error": ...}
//
// JSON has neither 64-bit integers nor bytes: {"int": "12"} is a BigInt, {"hex": "00ff"} a Uint8Array, {"date": "2024-01-01"} a Date.
// The exit code is 1 if there was an error.
import { createInterface } from 'node:readline'
import { asyncBufferFromFile, parquetMetadataAsync, parquetReadObjects } from 'hyparquet'
import { compressors } from 'hyparquet-compressors'

process.on('unhandledRejection', (error) => {  // of a fetch that is not needed any more
  console.error(error)
  process.exitCode = 1
})

function revive(value) {
  if (typeof value?.int === 'string') return BigInt(value.int)
  if (typeof value?.hex === 'string') return new Uint8Array(Buffer.from(value.hex, 'hex'))
  if (typeof value?.date === 'string') return new Date(value.date)
  return value
}

async function answer(request) {
  const file = await asyncBufferFromFile(request.path)
  const metadata = await parquetMetadataAsync(file)
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
  return answers
}

for await (const line of createInterface({ input: process.stdin })) {
  try {
    console.log(JSON.stringify(await answer(JSON.parse(line))))
  } catch (error) {
    console.log(JSON.stringify({ error: String(error) }))
    console.error(error)
    process.exitCode = 1
  }
}
