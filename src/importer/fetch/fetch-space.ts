// Protects the reserve of the disk during a fetch. A part starts only if it fits besides what the running parts still have
// to write. The disk is also checked while bytes arrive: many sources report no size, and other processes write too.

import type { FindSpaceProblem } from '#importer/read/disk-space.ts'
import { diskFull, FetchWait } from './fetch-faults.ts'

/** At most this many bytes are written, by all parts together, between two checks. */
const checkEveryBytes = 16 * 2 ** 20

export class FetchSpace {
  readonly #findSpaceProblem: FindSpaceProblem
  readonly #report: (problem: string) => void
  /** Bytes that each running part of known size still has to write, by part id. */
  readonly #remainingBytes = new Map<string, number>()
  #uncheckedBytes = 0
  #isProblemReported = false

  constructor(findSpaceProblem: FindSpaceProblem, report: (problem: string) => void) {
    this.#findSpaceProblem = findSpaceProblem
    this.#report = report
  }

  /** @param bytes that the part still has to write; null when unknown. @throws FetchWait when space is insufficient. */
  begin(id: string, bytes: number | null): void {
    let toCome = bytes ?? 0
    for (const remainingBytes of this.#remainingBytes.values()) toCome += remainingBytes
    this.#checkSpace(toCome)
    this.#isProblemReported = false
    if (bytes !== null) this.#remainingBytes.set(id, bytes)
  }

  /** Call it before bytes of a running part are written. @throws FetchWait when space is insufficient. */
  willWrite(id: string, bytes: number): void {
    const remainingBytes = this.#remainingBytes.get(id)
    if (remainingBytes !== undefined) this.#remainingBytes.set(id, Math.max(0, remainingBytes - bytes))
    this.#uncheckedBytes += bytes
    if (this.#uncheckedBytes >= checkEveryBytes) this.#checkSpace(0)
  }

  end(id: string): void {
    this.#remainingBytes.delete(id)
  }

  /** While there is a problem, every write of any part checks again, so that all parts stop soon. */
  #checkSpace(bytes: number): void {
    const problem = this.#findSpaceProblem(bytes)
    if (problem === null) {
      this.#uncheckedBytes = 0
      return
    }
    if (!this.#isProblemReported) this.#report(problem)
    this.#isProblemReported = true
    throw new FetchWait(diskFull)
  }
}
