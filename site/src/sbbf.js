// The split-block Bloom filter (parquet-format, BloomFilter.md): blocks of eight 32-bit words, of which a value sets one bit each.

export const BLOCK_BYTES = 32
const BLOCK_BITS = 256
const SALT = [0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d, 0x705495c7, 0x2df1424b, 0x9efc4947, 0x5c6bfb31]
const ALL_BITS_PRODUCT = 32 ** 8
const MOST_EXACT = 2 ** 52

/** Return the block that a hash (BigInt) selects, of this many. */
export function blockIndex(hash, numBlocks) {
  return Number(((hash >> 32n) * BigInt(numBlocks)) >> 32n)
}

/** Return whether a block of 32 bytes may hold a hash: false is certain. */
export function checkBlock(block, hash) {
  if (block.byteLength !== BLOCK_BYTES) throw new Error(`a block has ${BLOCK_BYTES} bytes, not ${block.byteLength}`)
  const view = new DataView(block.buffer, block.byteOffset, BLOCK_BYTES)
  const low = Number(hash & 0xffffffffn)
  return SALT.every((salt, word) => view.getUint32(4 * word, true) & (1 << (Math.imul(low, salt) >>> 27)))
}

function countBits(word) {
  let bits = word - ((word >>> 1) & 0x55555555)
  bits = (bits & 0x33333333) + ((bits >>> 2) & 0x33333333)
  return Math.imul((bits + (bits >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24
}

/** The fill ratio and false-positive rate of a bitset that comes in pieces of whole blocks. */
export class Measurement {
  #blocks = 0
  #bits = 0
  #products = 0n

  /** Add a piece: whole blocks. */
  add(bytes) {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    let products = 0
    for (let block = 0; block + BLOCK_BYTES <= bytes.byteLength; block += BLOCK_BYTES) {
      let product = 1
      for (let at = block; at < block + BLOCK_BYTES; at += 4) {
        const bits = countBits(view.getUint32(at, true))
        this.#bits += bits
        product *= bits
      }
      products += product
      if (products > MOST_EXACT) {
        this.#products += BigInt(products)
        products = 0
      }
      this.#blocks++
    }
    this.#products += BigInt(products)
  }

  /** Share of bits set. */
  get fillRatio() {
    return this.#bits / (this.#blocks * BLOCK_BITS)
  }

  /** The probability that a hash which was never inserted is found: the mean over blocks of the product of its words' fill ratios. */
  get estimatedFpp() {
    return Number(this.#products) / (this.#blocks * ALL_BITS_PRODUCT)
  }
}
