// The figures that the service shows of a job, in its list as well: what the folder knows, told at each step.

import type { JsonObject } from '#core/json.ts'
import { blankLinesOf, type Manifest } from '../job/manifest.ts'
import { type Checkpoint, sumCounts } from './checkpoint.ts'
import { type RetryOutcomes, repairedRejects, sumOutcomes } from './retry-outcomes.ts'

/** Groups and links are events too, and no records. A rejected record that was repaired and sent is rejected no more. */
export function progressFigures(checkpoint: Checkpoint | null, manifest: Manifest, retried: RetryOutcomes): JsonObject {
  const parts = (checkpoint?.parts ?? []).map(({ counts }) => counts)
  const all = checkpoint === null ? [] : [checkpoint.identity.progress.counts, ...parts]
  const { read, rejected } = sumCounts(parts)
  return {
    records: read + blankLinesOf(manifest),
    sent: sumCounts(all).sent + sumOutcomes(retried).sent,
    rejected: Math.max(0, rejected - repairedRejects(retried)),
  }
}
