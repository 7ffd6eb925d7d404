// The job's figures that are reported to the service at each step, which shows them in its list of jobs.

import type { JsonObject } from '#core/json.ts'
import { countBlankLines, type Manifest } from '../job/manifest.ts'
import { type Checkpoint, sumProgress } from './checkpoint.ts'
import { countRepairedRejects, type RetryOutcomes, sumOutcomes } from './retry-outcomes.ts'

/** `sent` counts events, groups and links included. A rejected record that was repaired and sent no longer counts as rejected. */
export function computeProgressFigures(
  checkpoint: Checkpoint | null,
  manifest: Manifest,
  retried: RetryOutcomes,
): JsonObject {
  const { records, generated } = sumProgress(checkpoint?.parts ?? [])
  return {
    records: records.read + countBlankLines(manifest),
    sent: records.sent + generated.sent + sumOutcomes(retried).sent,
    rejected: Math.max(0, records.rejected - countRepairedRejects(retried)),
  }
}
