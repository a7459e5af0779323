// Queries of files through site/src/parquet-file.js: one JSON list on the standard input, one on the standard output.
//
//   in    [{"path": ..., "index": position of the column, "value": ...}]
//   out   [{"answers": [...]} or {"error": name of the error's class}]
import { readFileSync } from 'node:fs'

import { UnreadableError } from './src/header.js'
import { ValueError } from './src/literals.js'
import { ParquetFile } from './src/parquet-file.js'

function openBytes(bytes) {
  return {
    size: bytes.length,
    async read(offset, length) {
      if (!(offset >= 0 && offset + length <= bytes.length)) throw new RangeError(`${length} bytes at ${offset}`)
      return new Uint8Array(bytes.subarray(offset, offset + length))
    },
  }
}

const results = []
for (const { path, index, value } of JSON.parse(readFileSync(0, 'utf8'))) {
  try {
    const file = await ParquetFile.open(openBytes(readFileSync(path)))
    await file.measure()
    const column = file.columns[index]
    const { answers } = column ? await file.probe(column, value) : { answers: [] }
    results.push({ answers: answers.map(({ answer }) => answer) })
  } catch (error) {
    const kinds = { UnreadableError, ValueError }
    const kind = Object.keys(kinds).find(name => error instanceof kinds[name])
    results.push({ error: kind ?? String(error.stack) })
  }
}
process.stdout.write(JSON.stringify(results))
