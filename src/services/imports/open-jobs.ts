// Finds the import jobs that requests name, for a front. Answers are at most a second old: publishing waits for longer than
// that before it takes a job's events as complete.

import type { ImportJob } from '#core/imports/import-job.ts'
import type { Clock } from '#ports/clock.ts'
import type { ImportJobStore } from '#ports/state/import-job-store.ts'

/** What a front has to know of a job. Its plan and progress, which may be long, are for those who look at it. */
export type NamedImportJob = Pick<ImportJob, 'id' | 'projectId' | 'state'>

export interface OpenJobs {
  /**
   * @param publicId the id that clients name a job by.
   * @param network the sender's, whose unknown ids are counted.
   * @returns null for a job that does not exist; `too_many` when the network named too many of those, and this one is not
   *   known to exist.
   * @throws PortError
   */
  find(publicId: number, network: string): Promise<NamedImportJob | null | 'too_many'>
}

const keptMs = 1_000
/** Importers run one job or a few at once. */
const keptCountMax = 1_000

export const unknownPerMinuteMax = 30
const networkCountMax = 10_000
const minuteMs = 60_000

export function createOpenJobs(options: {
  readonly jobs: Pick<ImportJobStore, 'findImportJobByPublicId'>
  readonly clock: Clock
}): OpenJobs {
  const { jobs, clock } = options
  /** Only of jobs that exist, once they are found: guesses push nobody's job out. */
  const kept = new Map<number, { readonly askedAtMs: number; readonly found: Promise<NamedImportJob | null> }>()
  const unknown = new Map<string, { readonly minute: number; count: number }>()

  function ask(publicId: number): Promise<NamedImportJob | null> {
    const found = jobs
      .findImportJobByPublicId(publicId)
      .then(job => job && { id: job.id, projectId: job.projectId, state: job.state })
    const entry = { askedAtMs: clock.nowMs(), found }
    if (kept.size >= keptCountMax) kept.clear()
    kept.set(publicId, entry)
    const forget = () => kept.get(publicId) === entry && kept.delete(publicId)
    found.then(job => job === null && forget(), forget)
    return found
  }

  /**
   * Counts an id before it is looked up: many that come side by side would all be looked up before the first is known.
   * @returns what takes it back; null when the network has named too many.
   */
  function countGuess(network: string): (() => void) | null {
    const minute = Math.floor(clock.nowMs() / minuteMs)
    let counted = unknown.get(network)
    if (counted?.minute !== minute) {
      if (unknown.size >= networkCountMax) unknown.clear()
      counted = { minute, count: 0 }
      unknown.set(network, counted)
    }
    if (counted.count >= unknownPerMinuteMax) return null
    counted.count++
    const own = counted
    return () => {
      own.count--
      if (own.count === 0 && unknown.get(network) === own) unknown.delete(network)
    }
  }

  return {
    async find(publicId, network) {
      const known = kept.get(publicId)
      const ageMs = known === undefined ? Number.POSITIVE_INFINITY : clock.nowMs() - known.askedAtMs
      if (known !== undefined && ageMs >= 0 && ageMs < keptMs) return known.found
      // A job that was there a second ago is no guess, whoever else guesses from the same network.
      if (known !== undefined) return ask(publicId)
      const takeBack = countGuess(network)
      if (takeBack === null) return 'too_many'
      try {
        const job = await ask(publicId)
        if (job !== null) takeBack()
        return job
      } catch (error) {
        takeBack()
        throw error
      }
    },
  }
}
