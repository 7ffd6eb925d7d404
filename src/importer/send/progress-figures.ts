// The job's figures that are reported to the service at each step, which shows them in its list of jobs.

import type { JsonObject } from '#core/json.ts'
import { countBlankLines, type Manifest } from '../job/manifest.ts'
import { type Checkpoint, sumCounts } from './checkpoint.ts'
import { countRepairedRejects, type RetryOutcomes, sumOutcomes } from './retry-outcomes.ts'

/** `sent` counts events, groups and links included. A rejected record that was repaired and sent no longer counts as rejected. */
export function computeProgressFigures(
  checkpoint: Checkpoint | null,
  manifest: Manifest,
  retried: RetryOutcomes,
): JsonObject {
  const parts = (checkpoint?.parts ?? []).map(({ counts }) => counts)
  const all = checkpoint === null ? [] : [checkpoint.identity.progress.counts, ...parts]
  const { read, rejected } = sumCounts(parts)
  return {
    records: read + countBlankLines(manifest),
    sent: sumCounts(all).sent + sumOutcomes(retried).sent,
    rejected: Math.max(0, rejected - countRepairedRejects(retried)),
  }
}
