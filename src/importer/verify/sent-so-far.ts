import type { JobFolder } from '../job/job-folder.ts'
import { readCheckpoint, sumCounts } from '../send/checkpoint.ts'
import { type RetrySums, readRetryOutcomes, sumOutcomes } from '../send/retry-outcomes.ts'
import { readServiceJob } from '../send/service-job.ts'
import { readVerification } from './verification-file.ts'

export interface SentSoFar {
  readonly events: number
  readonly refused: number
  readonly isAll: boolean
  /** Null before verification. */
  readonly isVerified: boolean | null
  readonly serviceJobId: string | null
  /** Rejected records that were retried, each counted once; null if there are none. */
  readonly repaired: RetrySums | null
}

/** Reads from the job's files how far sending is. Safe while another process sends. @returns null before sending starts. */
export function readSentSoFar(folder: JobFolder): SentSoFar | null {
  const checkpoint = readCheckpoint(folder)
  if (checkpoint === null) return null
  const { sent, refused } = sumCounts([checkpoint.identity.progress, ...checkpoint.parts].map(each => each.counts))
  const retried = readRetryOutcomes(folder)
  return {
    events: sent,
    refused,
    isAll: checkpoint.phase === 'sent',
    isVerified: readVerification(folder)?.ok ?? null,
    serviceJobId: readServiceJob(folder)?.id ?? null,
    repaired: retried.size === 0 ? null : sumOutcomes(retried),
  }
}
