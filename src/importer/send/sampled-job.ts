// A sample of a staged job: all events of some persons, since a sample of events would show no person's history.
// Source: docs/wire/import.md §2.7 (scratch run).

import { crc32 } from 'node:zlib'
import type { StagedJob, StagedOutcome } from '../job/staged-part.ts'

/** Suffix of the job id in `$import_job_id`, which distinguishes events of rehearsals. */
export const rehearsalMark = '-rehearsal'

/** Resolution of the sample: its smallest share is 0.01 %. */
const buckets = 10_000

/**
 * @param share 0 to 1.
 * @param personOf the person that an id is linked to, or the id itself.
 */
export function createSampledJob(job: StagedJob, share: number, personOf: (distinctId: string) => string): StagedJob {
  // Salted, to differ from the hash that assigns lanes; otherwise the whole sample could fall into one lane.
  const isChosen = (distinctId: string) => crc32(`sample ${personOf(distinctId)}`) % buckets < share * buckets
  return {
    parts: job.parts,
    generatedCount: job.generatedCount,
    *generatedEvents(from) {
      // Include all groups, so that the groups of the sampled events have their properties.
      for (const each of job.generatedEvents(from))
        if (each.event.event === '$groupidentify' || isChosen(each.event.distinctId)) yield each
    },
    async *readPart(part, afterLine) {
      for await (const outcome of job.readPart(part, afterLine)) yield selectChosenEvents(outcome, isChosen)
    },
  }
}

function selectChosenEvents(outcome: StagedOutcome, isChosen: (distinctId: string) => boolean): StagedOutcome {
  const { result } = outcome
  if (result.kind !== 'events') return outcome
  const events = result.events.filter(({ distinctId }) => isChosen(distinctId))
  if (events.length === 0) return { ...outcome, result: { kind: 'skipped', reason: 'filtered' } }
  return { ...outcome, result: { ...result, events } }
}
