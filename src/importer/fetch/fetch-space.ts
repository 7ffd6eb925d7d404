// Keeps the reserve of the disk while parts come. A part begins only where it fits beside what is still to come of those
// that run, and the disk is looked at while bytes come: many sources say no size, and others write to the disk as well.

import type { FindSpaceProblem } from '#importer/read/disk-space.ts'
import { diskFull, FetchWait } from './fetch-faults.ts'

/** So many bytes at most are written by all parts between two looks. */
const lookEveryBytes = 16 * 2 ** 20

export class FetchSpace {
  readonly #findSpaceProblem: FindSpaceProblem
  readonly #report: (problem: string) => void
  /** What is still to come of the running parts whose size is known, by their ids. */
  readonly #toCome = new Map<string, number>()
  #unseenBytes = 0
  /** Whether people know that the disk has no room. */
  #isProblemReported = false

  constructor(findSpaceProblem: FindSpaceProblem, report: (problem: string) => void) {
    this.#findSpaceProblem = findSpaceProblem
    this.#report = report
  }

  /** @param bytes that the part has still to bring; null when nobody knows. @throws FetchWait when there is no room. */
  begin(id: string, bytes: number | null): void {
    let toCome = bytes ?? 0
    for (const left of this.#toCome.values()) toCome += left
    this.#look(toCome)
    this.#isProblemReported = false
    if (bytes !== null) this.#toCome.set(id, bytes)
  }

  /** To be called before bytes of a running part are written. @throws FetchWait when there is no room. */
  willWrite(id: string, bytes: number): void {
    const left = this.#toCome.get(id)
    if (left !== undefined) this.#toCome.set(id, Math.max(0, left - bytes))
    this.#unseenBytes += bytes
    if (this.#unseenBytes >= lookEveryBytes) this.#look(0)
  }

  end(id: string): void {
    this.#toCome.delete(id)
  }

  /** While something lacks, the next bytes of every other part look again, so that no part writes on for long. */
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
