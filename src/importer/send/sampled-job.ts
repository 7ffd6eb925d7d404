// A share of a staged job: all events of some persons, since single events of many would show no history of anybody.
// Source: docs/wire/import.md §2.7 (scratch run).

import { crc32 } from 'node:zlib'
import type { StagedJob, StagedOutcome } from '../job/staged-part.ts'

/** Behind the id of the job in `$import_job_id`, so that events of rehearsals can be told from others. */
export const rehearsalMark = '-rehearsal'

/** So many parts a share can be chosen by: 0.01 % is the smallest. */
const parts = 10_000

/**
 * @param share 0 to 1.
 * @param personOf the person that an id is linked to, or the id itself.
 */
export function sampledJob(job: StagedJob, share: number, personOf: (distinctId: string) => string): StagedJob {
  // Another hash than that of the lanes, or all of them would be in one lane.
  const isChosen = (distinctId: string) => crc32(`sample ${personOf(distinctId)}`) % parts < share * parts
  return {
    parts: job.parts,
    generatedCount: job.generatedCount,
    *generatedEvents(from) {
      // Groups belong to nobody: without them, the groups of the chosen events would have no properties.
      for (const each of job.generatedEvents(from))
        if (each.event.event === '$groupidentify' || isChosen(each.event.distinctId)) yield each
    },
    async *readPart(part, afterLine) {
      for await (const outcome of job.readPart(part, afterLine)) yield chosenOf(outcome, isChosen)
    },
  }
}

function chosenOf(outcome: StagedOutcome, isChosen: (distinctId: string) => boolean): StagedOutcome {
  const { result } = outcome
  if (result.kind !== 'events') return outcome
  const events = result.events.filter(({ distinctId }) => isChosen(distinctId))
  if (events.length === 0) return { ...outcome, result: { kind: 'skipped', reason: 'filtered' } }
  return { ...outcome, result: { ...result, events } }
}
