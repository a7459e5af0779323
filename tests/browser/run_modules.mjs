// Calls to the modules of site/src: one JSON object on the standard input, one on the standard output.
//
//   in    {"site": URL of site/src, "hashes": [hex], "headers": [hex], "filters": [{"bitset": hex, "hashes": [hex]}],
//          "values": [{"column": {...}, "text": ..., "writer": {"createdBy": ..., "keys": {...}}}]}
import { readFileSync } from 'node:fs'

const request = JSON.parse(readFileSync(0, 'utf8'))
const load = name => import(`${request.site}/${name}.js`)
const names = ['xxh64', 'sbbf', 'header', 'literals', 'columns', 'bytes']
const modules = Object.assign({}, ...(await Promise.all(names.map(load))))
const { xxh64, blockIndex, checkBlock, Measurement, parseHeader, UnreadableError } = modules
const { parseValue, ValueError, makeColumn, parseHex, toHex } = modules

function parseHeaderOf(hex) {
  try {
    return parseHeader(parseHex(hex))
  } catch (error) {
    if (!(error instanceof UnreadableError)) throw error
    return { unreadable: error.message }
  }
}

function queryFilter({ bitset, hashes }) {
  const bytes = parseHex(bitset)
  const measurement = new Measurement()
  const middle = 32 * Math.floor(bytes.length / 64)
  for (const piece of [bytes.subarray(0, middle), bytes.subarray(middle)]) measurement.add(piece)
  const numBlocks = Math.floor(bytes.length / 32)
  const holds = hashes.map(hex => {
    const hash = BigInt(`0x${hex}`)
    const block = 32 * blockIndex(hash, numBlocks)
    return checkBlock(bytes.subarray(block, block + 32), hash)
  })
  return { holds, fillRatio: measurement.fillRatio, estimatedFpp: measurement.estimatedFpp }
}

function parse({ column, text, writer: { createdBy, keys } }) {
  try {
    const { forms, verdict, doubt } = parseValue(makeColumn(column), text, { createdBy, keys: new Map(Object.entries(keys)) })
    return { forms: forms.map(toHex).sort(), verdict: verdict ?? null, doubt: doubt ?? null, type: makeColumn(column).typeName }
  } catch (error) {
    if (!(error instanceof ValueError)) throw error
    return { error: error.message }
  }
}

process.stdout.write(
  JSON.stringify({
    hashes: (request.hashes ?? []).map(hex => xxh64(parseHex(hex)).toString(16).padStart(16, '0')),
    headers: (request.headers ?? []).map(parseHeaderOf),
    filters: (request.filters ?? []).map(queryFilter),
    values: (request.values ?? []).map(parse),
  }),
)
