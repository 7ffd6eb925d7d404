// Counts the texts in a long stream in bounded memory: distinct texts, frequent texts, and ids that occur twice.

import { hash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import type { JobFolder } from '#importer/job/job-folder.ts'
import { throwIfPaused } from '#importer/job/job-paused.ts'
import { isYieldDue, yieldToEventLoop } from '#importer/read/event-loop.ts'
import { appendToFile } from '#importer/read/link-safe-files.ts'
import type { Rehearsal } from './import-report.ts'

const registerBits = 14
const registerCount = 2 ** registerBits
const errorOfEstimate = 1.04 / Math.sqrt(registerCount)
/** The correction factor for 2^14 registers. Source: Flajolet et al., HyperLogLog, 2007, figure 3. */
const alpha = 0.7213 / (1 + 1.079 / registerCount)

/** Counts exactly up to a bound, and beyond it with HyperLogLog, whose standard error is returned with the count. */
export class DistinctCount {
  readonly #exactMax: number
  #exact: Set<string> | null = new Set()
  readonly #registers = new Uint8Array(registerCount)

  constructor(exactMax: number) {
    this.#exactMax = exactMax
  }

  add(text: string): void {
    if (this.#exact !== null) {
      this.#exact.add(text)
      if (this.#exact.size <= this.#exactMax) return
      const all = this.#exact
      this.#exact = null
      for (const each of all) this.#register(each)
    } else this.#register(text)
  }

  estimate(): Rehearsal['distinctIds'] {
    if (this.#exact !== null) return { count: this.#exact.size, error: 0 }
    let sum = 0
    let zeros = 0
    for (const rank of this.#registers) {
      sum += 2 ** -rank
      if (rank === 0) zeros++
    }
    const raw = (alpha * registerCount ** 2) / sum
    const isSmall = raw <= 2.5 * registerCount && zeros > 0
    const count = Math.round(isSmall ? registerCount * Math.log(registerCount / zeros) : raw)
    return { count, error: errorOfEstimate }
  }

  #register(text: string): void {
    const bytes = hash('sha1', text, 'buffer')
    const index = bytes.readUInt32BE(0) >>> (32 - registerBits)
    const rank = Math.clz32(bytes.readUInt32BE(4)) + 1
    if (rank > this.#registers[index]!) this.#registers[index] = rank
  }
}

/**
 * Finds texts that make up a large share of a stream (Misra–Gries algorithm). Every text with a share above 1 / size is
 * found.
 */
export class FrequentTexts {
  readonly #size: number
  readonly #counts = new Map<string, number>()
  #total = 0
  /** By how much the count of each text may be too low. */
  #lost = 0

  constructor(size: number) {
    this.#size = size
  }

  add(text: string): void {
    this.#total++
    const count = this.#counts.get(text)
    if (count !== undefined) this.#counts.set(text, count + 1)
    else if (this.#counts.size < this.#size) this.#counts.set(text, 1)
    else this.#decrement()
  }

  /** @returns the texts whose share may exceed `share`, each with the lower bound of its share. */
  above(share: number): { readonly text: string; readonly share: number }[] {
    return [...this.#counts]
      .filter(([, count]) => count + this.#lost > share * this.#total)
      .map(([text, count]) => ({ text, share: count / this.#total }))
      .toSorted((a, b) => b.share - a.share)
  }

  #decrement(): void {
    this.#lost++
    for (const [text, count] of this.#counts) {
      if (count === 1) this.#counts.delete(text)
      else this.#counts.set(text, count - 1)
    }
  }
}

const fileCount = 64
const heldMax = 8_192

/**
 * Counts reused uuids: different events with the same id in the source. Uuids are distributed over files by some of their
 * bits, and counted one file at a time. Source: docs/wire/import.md §2.3 (`source_id_reused`).
 */
export class ReusedIds {
  readonly #folder: JobFolder
  readonly #held: Buffer[] = Array.from({ length: fileCount }, () => Buffer.alloc(heldMax * 8))
  readonly #lengths = new Array<number>(fileCount).fill(0)

  constructor(folder: JobFolder) {
    this.#folder = folder
    folder.remove('rehearsal/ids')
    mkdirSync(folder.file('rehearsal', 'ids'), { recursive: true })
  }

  /** @param uuid compared only by its last eight bytes, which contain no time in any version. */
  add(uuid: string): void {
    const first = Number.parseInt(uuid.slice(-2), 16) % fileCount
    const at = this.#lengths[first]!
    this.#held[first]!.write(uuid.slice(19, 23) + uuid.slice(24), at, 'hex')
    this.#lengths[first] = at + 8
    if (at + 8 === heldMax * 8) this.#flush(first)
  }

  /** Returns the count and removes the files. @throws JobPaused */
  async count(signal: AbortSignal): Promise<number> {
    let reused = 0
    for (let index = 0; index < fileCount; index++) {
      if (isYieldDue()) await yieldToEventLoop()
      throwIfPaused(signal)
      this.#flush(index)
      const path = this.#pathOf(index)
      if (!existsSync(path)) continue
      const bytes = readFileSync(path)
      const ids = new BigUint64Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length)).sort()
      for (let at = 1; at < ids.length; at++) if (ids[at] === ids[at - 1]) reused++
    }
    this.#folder.remove('rehearsal/ids')
    return reused
  }

  #flush(index: number): void {
    const length = this.#lengths[index]!
    if (length === 0) return
    appendToFile(this.#pathOf(index), this.#held[index]!.subarray(0, length))
    this.#lengths[index] = 0
  }

  #pathOf(index: number): string {
    return this.#folder.file('rehearsal', 'ids', String(index))
  }
}
