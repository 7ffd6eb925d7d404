// `checkpoint.json`: how far sending has progressed. Replaced before each round (`inflight`) and after it
// (`committed`), so that after a
// crash at any point the same lines are sent again and none is skipped. Source: docs/wire/import.md §2.4.

import type { JobFolder } from '../job/job-folder.ts'
import { JobStopped } from '../job/job-paused.ts'
import { isGeneratedPart, type StagedPart } from '../job/staged-part.ts'
import { allowNull, Type } from '../records/file-schema.ts'

export const checkpointFile = 'checkpoint.json'

/** The first five count lines, which are records; the others count events. A record may yield several events. */
export interface SendCounts {
  read: number
  /** Lines with at least one event that the service accepted. */
  records: number
  skipped: number
  rejected: number
  collapsed: number
  /** Events that the service accepted. */
  sent: number
  /** Events refused by the service or too large for it. If all events of a line were refused, the line counts as rejected. */
  refused: number
  /** How many accepted events were duplicates or recent, if the service reports that. */
  duplicates: number
  recent: number
}

export interface PartProgress {
  readonly id: string
  readonly sha256: string
  state: 'sending' | 'sent'
  committed: { line: number; batch: number }
  inflight: {
    readonly batch: number
    readonly from_line: number
    readonly to_line: number
    readonly events: number
    readonly payload_sha256: string
    tries: number
  } | null
  counts: SendCounts
  /** How many bytes of the part's file of rejects are committed. */
  rejects_bytes: number
}

export interface Checkpoint {
  readonly v: 2
  readonly job_id: string
  /** Id of the job at the service; null for a service without import jobs, such as another product. */
  readonly service_job_id: string | null
  readonly target: string
  readonly project: string
  approval_sha256: string
  readonly mapping_sha256: string
  state: 'sending' | 'sent'
  /** The parts begun so far, in the order of the job. */
  parts: PartProgress[]
  /** Time spent sending, over all runs. */
  spent_ms: number
  retries: number
  begun_at: string
  updated_at: string
}

const count = Type.Number()

const partProgressSchema = Type.Object({
  id: Type.String(),
  sha256: Type.String(),
  state: Type.Enum(['sending', 'sent']),
  committed: Type.Object({ line: count, batch: count }),
  inflight: allowNull(
    Type.Object({
      batch: count,
      from_line: count,
      to_line: count,
      events: count,
      payload_sha256: Type.String(),
      tries: count,
    }),
  ),
  counts: Type.Object({
    read: count,
    records: count,
    skipped: count,
    rejected: count,
    collapsed: count,
    sent: count,
    refused: count,
    duplicates: count,
    recent: count,
  }),
  rejects_bytes: count,
})

const checkpointSchema = Type.Object({
  v: Type.Literal(2),
  job_id: Type.String(),
  service_job_id: allowNull(Type.String()),
  target: Type.String(),
  project: Type.String(),
  approval_sha256: Type.String(),
  mapping_sha256: Type.String(),
  state: Type.Enum(['sending', 'sent']),
  parts: Type.Array(partProgressSchema),
  spent_ms: count,
  retries: count,
  begun_at: Type.String(),
  updated_at: Type.String(),
})

/** What a checkpoint belongs to. Sending continues only if all of it is unchanged, except for the approval. */
export interface CheckpointIdentity {
  readonly jobId: string
  readonly serviceJobId: string | null
  readonly target: string
  readonly project: string
  readonly approvalSha256: string
  readonly mappingSha256: string
}

export function createCheckpoint(identity: CheckpointIdentity, at: string): Checkpoint {
  return {
    v: 2,
    job_id: identity.jobId,
    service_job_id: identity.serviceJobId,
    target: identity.target,
    project: identity.project,
    approval_sha256: identity.approvalSha256,
    mapping_sha256: identity.mappingSha256,
    state: 'sending',
    parts: [],
    spent_ms: 0,
    retries: 0,
    begun_at: at,
    updated_at: at,
  }
}

export function createProgress(id: string, sha256: string): PartProgress {
  const counts = {
    read: 0,
    records: 0,
    skipped: 0,
    rejected: 0,
    collapsed: 0,
    sent: 0,
    refused: 0,
    duplicates: 0,
    recent: 0,
  }
  return {
    id,
    sha256,
    state: 'sending',
    committed: { line: 0, batch: 0 },
    inflight: null,
    counts,
    rejects_bytes: 0,
  }
}

export function readCheckpoint(folder: JobFolder): Checkpoint | null {
  return folder.readJson(checkpointFile, checkpointSchema)
}

/**
 * The approval is not compared, because a job may be approved again while it is sent, to allow more rejects. Everything
 * else that an approval covers is compared.
 * @param parts of the current manifest.
 * @throws JobStopped, naming the difference, if the bytes, the mapping or the target changed.
 */
export function checkSameJob(checkpoint: Checkpoint, now: CheckpointIdentity, parts: readonly StagedPart[]): void {
  const differs = (what: string, before: string | null, after: string | null): never => {
    throw new JobStopped(
      `Sending began with ${what} ${before ?? '(none)'}, and now it is ${after ?? '(none)'}. ` +
        'Restore what was approved, or discard the job and start a new one in another folder.',
    )
  }
  const pairs: [what: string, before: string | null, after: string | null][] = [
    ['the target', checkpoint.target, now.target],
    ['the project', checkpoint.project, now.project],
    ['the job', checkpoint.job_id, now.jobId],
    ['the job of the service', checkpoint.service_job_id, now.serviceJobId],
    ['a mapping with the hash', checkpoint.mapping_sha256, now.mappingSha256],
  ]
  for (const [what, before, after] of pairs) if (before !== after) differs(what, before, after)
  const known = new Map(parts.map(part => [part.id, part.sha256]))
  for (const { id, sha256 } of checkpoint.parts)
    if (known.get(id) !== sha256) differs(`part ${id} with the hash`, sha256, known.get(id) ?? null)
}

/** What was sent of the records of the files, and of the groups and links generated from them. */
export function sumProgress(parts: readonly PartProgress[]): {
  readonly records: SendCounts
  readonly generated: SendCounts
} {
  const countsOf = (all: readonly PartProgress[]) => sumCounts(all.map(({ counts }) => counts))
  return {
    records: countsOf(parts.filter(part => !isGeneratedPart(part))),
    generated: countsOf(parts.filter(isGeneratedPart)),
  }
}

export function sumCounts(all: Iterable<SendCounts>): SendCounts {
  const sum = createProgress('', '').counts
  for (const counts of all) for (const key of Object.keys(sum) as (keyof SendCounts)[]) sum[key] += counts[key]
  return sum
}
