// Numbers as text: as the commands of sbbf print them.

const UNITS = ['B', 'kB', 'MB', 'GB', 'TB', 'PB', 'EB']
const PLACES = [
  [99.95, 0],
  [9.995, 1],
  [0.9995, 2],
  [0.09995, 3],
]

/** Format a ratio as a percentage with three significant digits, and at most four decimals. */
export function formatPercent(ratio) {
  const value = ratio * 100
  if (value === 0) return '0 %'
  if (value < 0.0001) return '<0.0001 %'
  const decimals = PLACES.find(([limit]) => value >= limit)?.[1] ?? 4
  return `${value.toFixed(decimals)} %`
}

/** Format a number of bytes with a decimal unit, such as 3.1 kB. */
export function formatSize(bytes) {
  let value = bytes
  let at = 0
  for (; value >= 999.95 && at < UNITS.length - 1; at++) value /= 1000
  return at ? `${value.toFixed(1)} ${UNITS[at]}` : `${bytes} B`
}

/** Format an integer (Number or BigInt) with commas. */
export function formatInteger(value) {
  return String(value).replace(/\B(?=(\d{3})+$)/g, ',')
}

/** Format a count, such as `1 filter` or `2 filters`. */
export function formatCount(count, noun) {
  return `${formatInteger(count)} ${noun}${Number(count) === 1 ? '' : 's'}`
}
