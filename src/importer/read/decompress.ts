// Unpacks a stream in pieces, so that what comes before a damage is not lost with it: Node's own pipelines drop what an
// engine had unpacked when it fails. Never more is unpacked than is taken.

import type { Duplex } from 'node:stream'
import { createInflateRaw, createZstdDecompress, type Zlib } from 'node:zlib'
import type { ByteReader } from './byte-reader.ts'

/** A packed file that ends too early, or whose bytes are not what was packed. Source: docs/wire/import.md §2.6 (bytes). */
export class PackingDamage extends Error {
  readonly reason: 'truncated_record' | 'compressed_input'

  constructor(reason: PackingDamage['reason'], message: string) {
    super(message)
    this.reason = reason
  }
}

type Engine = Duplex & Zlib

/** An engine loses at most this much of what it unpacked before a damage. */
const outputBytes = 16 * 1024
const inputBytes = 64 * 1024

const engines = {
  /** Also of several frames. */
  zstd: () => createZstdDecompress({ chunkSize: outputBytes }),
  /** Without a header, as inside of gzip and zip. */
  deflate: () => createInflateRaw({ chunkSize: outputBytes }),
}

export type Packing = keyof typeof engines

/**
 * Leaves the bytes behind the packed ones in the reader.
 * @throws PackingDamage after all that comes before it.
 */
export async function* decompress(packed: ByteReader, packing: Packing): AsyncGenerator<Buffer> {
  const engine = engines[packing]() as Engine
  const progress = new Progress(engine)
  let last: Buffer = Buffer.alloc(0)
  try {
    for (;;) {
      const unpacked = engine.read() as Buffer | null
      if (unpacked !== null) yield unpacked
      else if (progress.failure !== null) throw damageOf(progress.failure, packing)
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

/** What an engine has done since it was asked last. */
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
      // An engine that leaves some is at its end, and is about to say so.
      this.takesInput = this.leftBytes === 0
      this.#wake()
    })
  }

  /** How many of the bytes that were fed last the engine has left. */
  get leftBytes(): number {
    return this.#fedBytes - this.#engine.bytesWritten
  }

  next(): Promise<void> {
    return new Promise(resolve => {
      this.#wake = resolve
    })
  }
}

function damageOf(error: Error & { code?: string }, packing: Packing): PackingDamage {
  return error.code === 'Z_BUF_ERROR' || error.message === 'unexpected end of file'
    ? new PackingDamage('truncated_record', `the ${packing} data ends before its end`)
    : new PackingDamage('compressed_input', `the ${packing} data is damaged: ${error.message}`)
}
