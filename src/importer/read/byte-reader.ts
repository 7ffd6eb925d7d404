// A byte stream with lookahead, reads of any size, and unread.

/** A compressed file is truncated or damaged. Source: docs/wire/import.md §2.6 (bytes). */
export class CompressionDamage extends Error {
  readonly reason: 'truncated_record' | 'compressed_input'

  constructor(message: string, reason: CompressionDamage['reason'] = 'compressed_input') {
    super(message)
    this.reason = reason
  }
}

/** @param what what ends too early, for the message. */
export function createTruncationError(what: string): CompressionDamage {
  return new CompressionDamage(`${what} is cut off`, 'truncated_record')
}

export class ByteReader {
  readonly #source: AsyncIterator<Uint8Array>
  #chunks: Buffer[] = []
  #bufferedBytes = 0
  #isEnded = false
  /** Bytes taken so far, without bytes that were put back by `unread`. */
  position = 0

  constructor(source: AsyncIterable<Uint8Array>) {
    this.#source = source[Symbol.asyncIterator]()
  }

  /** Returns the next bytes without taking them; fewer than `count` only at the end. */
  async peek(count: number): Promise<Buffer> {
    await this.#fill(count)
    return this.#joined().subarray(0, count)
  }

  /** Returns the next bytes up to and including a line feed, without taking them; at most `bytesMax`, or to the end. */
  async peekLine(bytesMax: number): Promise<Buffer> {
    for (let length = -1; length < this.#bufferedBytes && length < bytesMax; ) {
      length = this.#bufferedBytes
      const end = this.#joined().indexOf(0x0a)
      if (end >= 0) return this.#joined().subarray(0, Math.min(end + 1, bytesMax))
      await this.#fill(length + 1)
    }
    return this.#joined().subarray(0, bytesMax)
  }

  /** Takes `count` bytes; fewer only at the end. */
  async take(count: number): Promise<Buffer> {
    const bytes = await this.peek(count)
    this.#drop(bytes.length)
    return bytes
  }

  /** @param what what is read, for the message. @throws CompressionDamage when fewer bytes remain. */
  async takeExactly(count: number, what: string): Promise<Buffer> {
    const bytes = await this.take(count)
    if (bytes.length < count) throw createTruncationError(what)
    return bytes
  }

  /** Takes the next available bytes, at most `bytesMax`; null at the end. */
  async chunk(bytesMax: number): Promise<Buffer | null> {
    await this.#fill(1)
    const bytes = this.#chunks[0]?.subarray(0, bytesMax) ?? null
    if (bytes !== null) this.#drop(bytes.length)
    return bytes
  }

  /** Puts back the bytes that were taken last. */
  unread(bytes: Buffer): void {
    if (bytes.length === 0) return
    this.#chunks.unshift(bytes)
    this.#bufferedBytes += bytes.length
    this.position -= bytes.length
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Buffer> {
    for (let bytes = await this.chunk(Infinity); bytes !== null; bytes = await this.chunk(Infinity)) yield bytes
  }

  /** Closes the source before its end. */
  async close(): Promise<void> {
    await this.#source.return?.()
  }

  async #fill(count: number): Promise<void> {
    while (this.#bufferedBytes < count && !this.#isEnded) {
      const { value, done } = await this.#source.next()
      if (done) this.#isEnded = true
      else if (value.length > 0) {
        this.#chunks.push(Buffer.from(value.buffer, value.byteOffset, value.length))
        this.#bufferedBytes += value.length
      }
    }
  }

  #joined(): Buffer {
    if (this.#chunks.length > 1) this.#chunks = [Buffer.concat(this.#chunks)]
    return this.#chunks[0] ?? noBytes
  }

  /** Drops bytes of the first chunk. An empty chunk is dropped too, since `chunk` would return it for ever. */
  #drop(count: number): void {
    this.position += count
    this.#bufferedBytes -= count
    const left = this.#chunks.shift()?.subarray(count) ?? noBytes
    if (left.length > 0) this.#chunks.unshift(left)
  }
}

const noBytes = Buffer.alloc(0)
