// Numbers as bytes, and bytes as numbers, as PLAIN encoding stores them (Encodings.md).

/** Encode an integer (BigInt) in two's complement, or without a sign. Returns undefined if it does not fit in `width` bytes. */
export function encodeInteger(value, width, { bigEndian = false, signed = true } = {}) {
  const bits = BigInt(8 * width)
  const [low, high] = signed ? [-(1n << (bits - 1n)), (1n << (bits - 1n)) - 1n] : [0n, (1n << bits) - 1n]
  if (value < low || value > high) return undefined
  const bytes = new Uint8Array(width)
  let rest = BigInt.asUintN(8 * width, value)
  for (let at = 0; at < width; at++, rest >>= 8n) bytes[bigEndian ? width - 1 - at : at] = Number(rest & 0xffn)
  return bytes
}

/** Decode an integer in two's complement, or without a sign, as a BigInt. */
export function decodeInteger(bytes, { bigEndian = false, signed = true } = {}) {
  const ordered = bigEndian ? bytes : [...bytes].reverse()
  let value = 0n
  for (const byte of ordered) value = (value << 8n) | BigInt(byte)
  return signed ? BigInt.asIntN(8 * bytes.length, value) : value
}

/** Parse hexadecimal digits; undefined if they are no whole bytes. */
export function parseHex(digits) {
  if (!/^(?:[0-9a-f]{2})*$/i.test(digits)) return undefined
  return Uint8Array.from(digits.match(/../g) ?? [], pair => parseInt(pair, 16))
}

export function toHex(bytes) {
  return Array.from(bytes, byte => byte.toString(16).padStart(2, '0')).join('')
}

/** Join pieces of bytes. */
export function join(...pieces) {
  return Uint8Array.from(pieces.flatMap(piece => [...piece]))
}

/** Return the quotient, rounded down, and the rest of two BigInts; the divisor is positive. */
export function divideDown(value, divisor) {
  const rest = ((value % divisor) + divisor) % divisor
  return [(value - rest) / divisor, rest]
}

/** Encode a double as a float of 2, 4 or 8 bytes, rounded to the nearest; undefined if it is too large. */
export function encodeFloat(value, width) {
  const narrow = roundFloat(value, width)
  if (narrow === undefined) return undefined
  const bytes = new Uint8Array(width)
  const view = new DataView(bytes.buffer)
  if (width === 8) view.setFloat64(0, narrow, true)
  else if (width === 4) view.setFloat32(0, narrow, true)
  else view.setUint16(0, halfBits(narrow), true)
  return bytes
}

/** Decode a float of 2, 4 or 8 bytes. */
export function decodeFloat(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  if (bytes.length === 8) return view.getFloat64(0, true)
  if (bytes.length === 4) return view.getFloat32(0, true)
  const bits = view.getUint16(0, true)
  const exponent = (bits >> 10) & 31
  const fraction = bits & 1023
  let size = exponent ? (1 + fraction / 1024) * 2 ** (exponent - 15) : fraction * 2 ** -24
  if (exponent === 31) size = fraction ? NaN : Infinity
  return bits & 0x8000 ? -size : size
}

/** Round a double to the nearest float of this width, ties to even; undefined if a finite number becomes infinite. */
export function roundFloat(value, width) {
  const narrow = width === 8 ? value : width === 4 ? Math.fround(value) : roundHalf(value)
  return Number.isFinite(value) && !Number.isFinite(narrow) ? undefined : narrow
}

function roundHalf(value) {
  const size = Math.abs(value)
  if (!Number.isFinite(size) || size >= 65520) return Math.sign(value) * Infinity
  const step = halfStep(size)
  const steps = size / step // exact: the step is a power of two
  const below = Math.floor(steps)
  const rest = steps - below
  const rounded = (rest > 0.5 || (rest === 0.5 && below % 2 === 1) ? below + 1 : below) * step
  return value < 0 || Object.is(value, -0) ? -rounded : rounded
}

/** Return the distance between half floats of this size. */
function halfStep(size) {
  let step = 2 ** -24
  while (size >= step * 2048) step *= 2
  return step
}

function halfBits(value) {
  const sign = value < 0 || Object.is(value, -0) ? 0x8000 : 0
  const size = Math.abs(value)
  if (!Number.isFinite(size)) return sign | 0x7c00
  const step = halfStep(size)
  const exponent = Math.log2(step) + 24 // 0 for numbers below 2^-13, whose bits count steps
  return sign | (exponent * 1024 + size / step)
}
