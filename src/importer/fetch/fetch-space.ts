// Protects the reserve of the disk during a fetch. A part starts only if there is space for it in addition to what the
// running parts still have to write. The disk is also checked while bytes arrive: many sources report no size, and other
// processes write too.

import type { FindSpaceProblem } from '#importer/read/disk-space.ts'
import { diskFull, FetchWait } from './fetch-faults.ts'

/** At most this many bytes are written, by all parts together, between two checks. */
const checkEveryBytes = 16 * 2 ** 20

export function createFetchSpaceGuard(findSpaceProblem: FindSpaceProblem, report: (problem: string) => void) {
  /** Bytes that each running part of known size still has to write, by part id. */
  const remainingBytes = new Map<string, number>()
  let uncheckedBytes = 0
  let isProblemReported = false
  /**
   * Checks the disk space. While space is insufficient, every write of any part checks again, so that all parts stop soon.
   */
  const checkSpace = (bytes: number) => {
    const problem = findSpaceProblem(bytes)
    if (problem !== null) {
      if (!isProblemReported) report(problem)
      isProblemReported = true
      throw new FetchWait(diskFull)
    }
    uncheckedBytes = 0
  }
  return {
    /**
     * @param bytes how many bytes the part still has to write; null when unknown. @throws FetchWait when space is
     * insufficient.
     */
    begin(id: string, bytes: number | null): void {
      checkSpace(remainingBytes.values().reduce((sum, more) => sum + more, bytes ?? 0))
      isProblemReported = false
      if (bytes !== null) remainingBytes.set(id, bytes)
    },
    /** Call it before bytes of a running part are written. @throws FetchWait when space is insufficient. */
    willWrite(id: string, bytes: number): void {
      const left = remainingBytes.get(id)
      if (left !== undefined) remainingBytes.set(id, Math.max(0, left - bytes))
      uncheckedBytes += bytes
      if (uncheckedBytes >= checkEveryBytes) checkSpace(0)
    },
    end(id: string): void {
      remainingBytes.delete(id)
    },
  }
}
