// Decompresses a stream in pieces, so that the data before damage is not lost: Node's own pipelines drop it when an engine
// fails. Decompresses only as much as is taken.

import type { Duplex } from 'node:stream'
import { createInflateRaw, createZstdDecompress, type Zlib } from 'node:zlib'
import type { ByteReader } from './byte-reader.ts'

/** A compressed file is truncated or damaged. Source: docs/wire/import.md §2.6 (bytes). */
export class PackingDamage extends Error {
  readonly reason: 'truncated_record' | 'compressed_input'

  constructor(reason: PackingDamage['reason'], message: string) {
    super(message)
    this.reason = reason
  }
}

type Engine = Duplex & Zlib

/** An engine loses at most this much decompressed data before damage. */
const outputBytes = 16 * 1024
const inputBytes = 64 * 1024

const engines = {
  /** Including several frames. */
  zstd: () => createZstdDecompress({ chunkSize: outputBytes }),
  /** Without a header, as within gzip and zip. */
  deflate: () => createInflateRaw({ chunkSize: outputBytes }),
}

export type Packing = keyof typeof engines

/**
 * Leaves the bytes after the compressed data in the reader.
 * @throws PackingDamage after yielding all data before the damage.
 */
export async function* decompress(packed: ByteReader, packing: Packing): AsyncGenerator<Buffer> {
  const engine = engines[packing]() as Engine
  const progress = new Progress(engine)
  let last: Buffer = Buffer.alloc(0)
  try {
    for (;;) {
      const unpacked = engine.read() as Buffer | null
      if (unpacked !== null) yield unpacked
      else if (progress.failure !== null) throw toPackingDamage(progress.failure, packing)
      else if (progress.isEnded) break
      else if (!progress.takesInput) await progress.next()
      else {
        const next = await packed.chunk(inputBytes)
        last = next ?? last
        progress.feed(next)
      }
    }
    packed.unread(last.subarray(last.length - progress.leftBytes))
  } finally {
    engine.destroy()
  }
}

/** The state of an engine, and a way to wait for its next change. */
class Progress {
  readonly #engine: Engine
  #wake = () => {}
  #fedBytes = 0
  failure: Error | null = null
  isEnded = false
  takesInput = true

  constructor(engine: Engine) {
    this.#engine = engine
    engine.on('readable', () => this.#wake())
    engine.on('end', () => {
      this.isEnded = true
      this.#wake()
    })
    engine.on('error', error => {
      this.failure = error
      this.#wake()
    })
  }

  /** @param bytes null for the end. */
  feed(bytes: Buffer | null): void {
    this.takesInput = false
    if (bytes === null) {
      this.#engine.end()
      return
    }
    this.#fedBytes += bytes.length
    this.#engine.write(bytes, () => {
      // An engine that leaves bytes has reached its end and is about to emit `end`.
      this.takesInput = this.leftBytes === 0
      this.#wake()
    })
  }

  /** How many of the last fed bytes the engine did not use. */
  get leftBytes(): number {
    return this.#fedBytes - this.#engine.bytesWritten
  }

  next(): Promise<void> {
    return new Promise(resolve => {
      this.#wake = resolve
    })
  }
}

function toPackingDamage(error: Error & { code?: string }, packing: Packing): PackingDamage {
  return error.code === 'Z_BUF_ERROR' || error.message === 'unexpected end of file'
    ? new PackingDamage('truncated_record', `the ${packing} data is cut off`)
    : new PackingDamage('compressed_input', `the ${packing} data is damaged: ${error.message}`)
}
