// Where bytes come from: a file of this computer, or a URL that is read by ranges. Both count what they read.

const CORS =
  'The request failed: the server cannot be reached, or it does not allow this page to read the file (CORS: it must answer with the ' +
  'header Access-Control-Allow-Origin).'
const NO_RANGES = 'The server ignores range requests, so the page would have to download the whole file.'

/** A source that cannot be read; the message is a sentence. */
export class SourceError extends Error {}

/** A file that the user chose. Nothing of it leaves the browser. */
export class FileSource {
  constructor(file) {
    this.file = file
    this.name = file.name
    this.size = file.size
    this.bytesRead = 0
    this.reads = 0
  }

  /** Return `length` bytes from `offset` on. Throws SourceError if the file has fewer, or has changed. */
  async read(offset, length) {
    let bytes
    try {
      bytes = new Uint8Array(await this.file.slice(offset, offset + length).arrayBuffer())
    } catch {
      throw new SourceError('The file cannot be read: it was changed or removed after it was chosen.')
    }
    return count(this, bytes, length)
  }
}

/** A file at a URL, read by range requests without cookies. */
export class UrlSource {
  constructor(url, size, modified) {
    this.url = url
    this.name = url
    this.size = size
    this.modified = modified
    this.bytesRead = 0
    this.reads = 0
  }

  /** Find the size of the file. Throws SourceError. */
  static async open(url) {
    const head = await request(url, { method: 'HEAD' }).catch(() => undefined)
    const length = head?.ok ? head.headers.get('Content-Length') : null
    if (length !== null && /^\d+$/.test(length)) return new UrlSource(url, Number(length), head.headers.get('Last-Modified'))
    // Some servers sign one method only; then the size is in the answer to a range, if the server lets pages see that header.
    const first = await request(url, { headers: { Range: 'bytes=0-0' } })
    await ensureRange(first)
    const range = /^bytes 0-0\/(\d+)$/.exec(first.headers.get('Content-Range') ?? '')
    if (!range) throw new SourceError('The server does not state the size of the file (Content-Length, or an exposed Content-Range).')
    return new UrlSource(url, Number(range[1]), first.headers.get('Last-Modified'))
  }

  async read(offset, length) {
    const response = await request(this.url, { headers: { Range: `bytes=${offset}-${offset + length - 1}` } })
    await ensureRange(response)
    const modified = response.headers.get('Last-Modified')
    if (modified !== this.modified) throw new SourceError('The file at the URL changed while it was read.')
    return count(this, new Uint8Array(await response.arrayBuffer()), length)
  }
}

async function request(url, options) {
  try {
    return await fetch(url, { ...options, cache: 'no-store', credentials: 'omit', referrerPolicy: 'no-referrer' })
  } catch {
    throw new SourceError(CORS)
  }
}

async function ensureRange(response) {
  if (response.status === 206) return
  await response.body?.cancel()
  if (response.status === 200) throw new SourceError(NO_RANGES)
  throw new SourceError(`The server answered with status ${response.status}.`)
}

function count(source, bytes, length) {
  source.reads++
  source.bytesRead += bytes.length
  if (bytes.length !== length) throw new SourceError(`The source returned ${bytes.length} bytes instead of ${length}.`)
  return bytes
}

/** Reads of ranges that lie close together: one read of the source for all, when the first of them is needed. */
export class Windows {
  #source
  #windows = []

  /** Take `[offset, length]` of all ranges that will be read; ranges at most `gap` bytes apart are read together, up to `most` bytes. */
  constructor(source, ranges, gap = 4096, most = 4 << 20) {
    this.#source = source
    for (const [offset, length] of [...ranges].sort((a, b) => a[0] - b[0])) {
      const last = this.#windows.at(-1)
      const end = Math.min(offset + length, source.size)
      if (last && offset - last.end <= gap && end - last.start <= most) last.end = Math.max(last.end, end)
      else if (offset < end) this.#windows.push({ start: offset, end, bytes: undefined })
    }
  }

  /** Return these bytes, from a window if one has them. */
  async read(offset, length) {
    const window = this.#windows.find(({ start, end }) => start <= offset && offset + length <= end)
    if (!window) return this.#source.read(offset, length)
    window.bytes ??= this.#source.read(window.start, window.end - window.start)
    return (await window.bytes).subarray(offset - window.start, offset - window.start + length)
  }
}
