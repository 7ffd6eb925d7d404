// Protects the reserve of the disk during a fetch. A part starts only if it fits besides what the running parts still have
// to write. The disk is also checked while bytes arrive: many sources report no size, and other processes write too.

import type { FindSpaceProblem } from '#importer/read/disk-space.ts'
import { diskFull, FetchWait } from './fetch-faults.ts'

/** At most this many bytes are written, by all parts together, between two checks. */
const lookEveryBytes = 16 * 2 ** 20

export class FetchSpace {
  readonly #findSpaceProblem: FindSpaceProblem
  readonly #report: (problem: string) => void
  /** Bytes that each running part of known size still has to write, by part id. */
  readonly #toCome = new Map<string, number>()
  #unseenBytes = 0
  #isProblemReported = false

  constructor(findSpaceProblem: FindSpaceProblem, report: (problem: string) => void) {
    this.#findSpaceProblem = findSpaceProblem
    this.#report = report
  }

  /** @param bytes that the part still has to write; null when unknown. @throws FetchWait when space is insufficient. */
  begin(id: string, bytes: number | null): void {
    let toCome = bytes ?? 0
    for (const left of this.#toCome.values()) toCome += left
    this.#look(toCome)
    this.#isProblemReported = false
    if (bytes !== null) this.#toCome.set(id, bytes)
  }

  /** Call it before bytes of a running part are written. @throws FetchWait when space is insufficient. */
  willWrite(id: string, bytes: number): void {
    const left = this.#toCome.get(id)
    if (left !== undefined) this.#toCome.set(id, Math.max(0, left - bytes))
    this.#unseenBytes += bytes
    if (this.#unseenBytes >= lookEveryBytes) this.#look(0)
  }

  end(id: string): void {
    this.#toCome.delete(id)
  }

  /** While there is a problem, every write of any part checks again, so that all parts stop soon. */
  #look(bytes: number): void {
    const problem = this.#findSpaceProblem(bytes)
    if (problem === null) {
      this.#unseenBytes = 0
      return
    }
    if (!this.#isProblemReported) this.#report(problem)
    this.#isProblemReported = true
    throw new FetchWait(diskFull)
  }
}
