// Finds, for a front, the import jobs that requests name. Answers are at most a second old: publishing waits longer than
// that before it treats a job's events as complete.

import type { Clock } from '#ports/clock.ts'
import type { ImportJobStore, NamedImportJob } from '#ports/state/import-job-store.ts'

export type OpenJobs = ReturnType<typeof createOpenJobCache>

const cachedMs = 1_000
/** Importers run only a few jobs at once. */
const cacheCountMax = 1_000
const askedAtOnceMax = 1_000

export const unknownPerMinuteMax = 30
const networkCountMax = 10_000
const minuteMs = 60_000

export function createOpenJobCache(options: {
  readonly jobs: Pick<ImportJobStore, 'findNamedImportJobs'>
  readonly clock: Clock
}) {
  const { jobs, clock } = options
  const ask = batchQueries(publicIds => jobs.findNamedImportJobs(publicIds))
  const cache = new Map<number, { readonly askedAtMs: number; readonly job: NamedImportJob }>()
  const unknown = new Map<string, { readonly minute: number; count: number }>()

  /** @returns whether the network is still within its limit of guesses. */
  function allowGuess(network: string): boolean {
    const minute = Math.floor(clock.nowMs() / minuteMs)
    let counted = unknown.get(network)
    if (counted?.minute !== minute) {
      if (unknown.size >= networkCountMax) unknown.clear()
      counted = { minute, count: 0 }
      unknown.set(network, counted)
    }
    counted.count++
    return counted.count <= unknownPerMinuteMax
  }

  return {
    /**
     * @param publicId the id that clients use for a job.
     * @param network the sender's network; unknown ids are counted per network.
     * @returns null for a job that does not exist; `too_many` instead after too many unknown ids from the network.
     * @throws PortError
     */
    async find(publicId: number, network: string): Promise<NamedImportJob | null | 'too_many'> {
      const known = cache.get(publicId)
      const askedAtMs = clock.nowMs()
      const ageMs = known === undefined ? Number.POSITIVE_INFINITY : askedAtMs - known.askedAtMs
      if (known !== undefined && ageMs >= 0 && ageMs < cachedMs) return known.job
      const job = await ask(publicId)
      // Only an unknown id counts as a guess: honest importers may share the network of a guesser.
      if (job === null) return allowGuess(network) ? null : 'too_many'
      if (cache.size >= cacheCountMax) cache.clear()
      cache.set(publicId, { askedAtMs, job })
      return job
    },
  }
}

type Answer = PromiseWithResolvers<NamedImportJob | null>

/** Ids that arrive during a query are batched into the next one, so that guesses cost next to nothing. */
function batchQueries(find: (publicIds: readonly number[]) => Promise<readonly NamedImportJob[]>) {
  const waiting = new Map<number, Answer>()
  let isAsking = false

  async function askAll(): Promise<void> {
    isAsking = true
    while (waiting.size > 0) {
      const asked = new Map(waiting.entries().take(askedAtOnceMax))
      for (const publicId of asked.keys()) waiting.delete(publicId)
      await answerAll(asked)
    }
    isAsking = false
  }

  async function answerAll(asked: ReadonlyMap<number, Answer>): Promise<void> {
    try {
      const found = new Map((await find([...asked.keys()])).map(job => [job.publicId, job]))
      for (const [publicId, answer] of asked) answer.resolve(found.get(publicId) ?? null)
    } catch (error) {
      for (const answer of asked.values()) answer.reject(error)
    }
  }

  return (publicId: number): Promise<NamedImportJob | null> => {
    const answer = waiting.get(publicId) ?? Promise.withResolvers<NamedImportJob | null>()
    waiting.set(publicId, answer)
    if (!isAsking) void askAll()
    return answer.promise
  }
}
