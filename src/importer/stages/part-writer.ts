// Writes sorted lines into parts of one event day. The bytes of a part depend only on its lines, because each part is
// compressed as a whole.

import { zstdCompressSync } from 'node:zlib'
import type { JobFolder } from '../job/job-folder.ts'
import { sha256Hex } from '../job/sha256.ts'
import type { StagedPart } from '../job/staged-part.ts'
import type { LineKey } from './staged-line.ts'

/** Before compression. A whole part is held in memory; a larger record gets a separate part. */
export const partBytesMax = 16 * 1024 * 1024

export class PartWriter {
  readonly parts: StagedPart[] = []
  readonly #folder: JobFolder
  readonly #day: string
  readonly #bytesMax: number
  #lines: Buffer[] = []
  #bytes = 0
  #firstUs: number | null = null
  #lastUs: number | null = null

  constructor(folder: JobFolder, day: string, bytesMax = partBytesMax) {
    this.#folder = folder
    this.#day = day
    this.#bytesMax = bytesMax
  }

  /** Whether the line fits into the current part; otherwise, adding it first writes that part. */
  holds(line: Buffer): boolean {
    return this.#bytes === 0 || this.#bytes + line.length <= this.#bytesMax
  }

  /** @param line with its line end. */
  add(line: Buffer, { timeUs }: LineKey): void {
    if (!this.holds(line)) this.end()
    this.#lines.push(line)
    this.#bytes += line.length
    this.#firstUs ??= timeUs
    this.#lastUs = timeUs
  }

  /** Writes the current part. Must also be called after the last line. */
  end(): void {
    if (this.#bytes === 0) return
    const id = `${this.#day}/${this.parts.length}`
    const object = `staged/${id}.jsonl.zst`
    const packed = zstdCompressSync(Buffer.concat(this.#lines, this.#bytes))
    this.#folder.write(object, packed)
    this.parts.push({
      id,
      object,
      sha256: sha256Hex(packed),
      bytes: packed.length,
      records: this.#lines.length,
      firstUs: this.#firstUs,
      lastUs: this.#lastUs,
    })
    this.#lines = []
    this.#bytes = 0
    this.#firstUs = this.#lastUs = null
  }
}
