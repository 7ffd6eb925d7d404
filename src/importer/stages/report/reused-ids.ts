// Counts reused uuids: different events with the same id in the source. To bound memory, uuids are distributed over files by
// some of their bits, and counted one file at a time. Source: docs/wire/import.md §2.3 (`source_id_reused`).

import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import type { JobFolder } from '#importer/job/job-folder.ts'
import { checkPause } from '#importer/job/job-paused.ts'
import { isYieldDue, yieldToEventLoop } from '#importer/read/event-loop.ts'
import { appendToFile } from '#importer/read/own-files.ts'

const fileCount = 64
const heldMax = 8_192

export class ReusedIds {
  readonly #folder: JobFolder
  readonly #held: Buffer[] = Array.from({ length: fileCount }, () => Buffer.alloc(heldMax * 8))
  readonly #lengths = new Array<number>(fileCount).fill(0)

  constructor(folder: JobFolder) {
    this.#folder = folder
    folder.remove('rehearsal/ids')
    mkdirSync(folder.file('rehearsal', 'ids'), { recursive: true })
  }

  /** @param uuid compared by its last eight bytes only, which hold no time in any version. */
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
      checkPause(signal)
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
