// `rehearsal/report.json`: what a rehearsal found, as its report shows it. Source: docs/wire/import.md §2.7, §2.9.

import type { ImportTarget } from '#importer/job/plan.ts'
import { jsonObject, orNull, Type } from '../../records/file-schema.ts'
import type { DamagedFile } from './damaged-files.ts'
import type { DistinctEstimate } from './distinct-count.ts'
import { type PlanChoice, planChoicesSchema } from './plan-choices.ts'
import type { TargetAnswer } from './target-facts.ts'

export interface RehearsalReport {
  readonly v: 1
  readonly kind: 'rehearsal'
  readonly jobId: string
  /** Path of the job's folder, when it was planned, and when rehearsed if a clock was there. Times are ISO 8601. */
  readonly folder: string
  readonly plannedAt: string
  readonly rehearsedAt?: string
  readonly source: string
  readonly config: object
  readonly sourceTimezone: string | null
  readonly target: Pick<ImportTarget, 'address' | 'projectId' | 'projectName'> | null
  /** Options of the plan that are not as usual. */
  readonly choices: readonly PlanChoice[]
  readonly hashes: { readonly manifest: string; readonly mapping: string }
  /** What the target has of the same days and names. */
  readonly targetAnswer: TargetAnswer
  /** Times of the first and the last event; null when there are none. */
  readonly range: { readonly first: string; readonly last: string } | null
  readonly balance: Balance
  /** At most `countedMax` of names, and of names of days. */
  readonly events: readonly EventCount[]
  /** How many events have other names than these; absent for none. */
  readonly eventsOfOtherNames?: number
  readonly days: readonly DayCount[]
  readonly rejects: readonly ReasonCount[]
  readonly skips: readonly ReasonCount[]
  /** Files that cannot be read to their end. */
  readonly damagedFiles: readonly DamagedFile[]
  /** The source that rejected records look like; null where they do not look like any other. */
  readonly looksLike: string | null
  /** About how many records the rejects hold, where some hold many; absent where each is one. */
  readonly heldByRejects?: number
  /** Rejected records as a share of all that were read or are held by rejects, 0 to 1. */
  readonly rejectShare: number
  readonly maxRejectShare: number
  readonly distinctIds: DistinctEstimate
  readonly identity: {
    readonly links: number
    /** How often another user came to a device than its first. */
    readonly sharedDevices: number
    /** How many devices there are, and how many of them had more than one user. */
    readonly devices: { readonly all: number; readonly shared: number }
  }
  readonly groups: { readonly events: number; readonly types: readonly string[] }
  /** Names of source fields that no event carries, and in how many records. */
  readonly dropped: readonly { readonly field: string; readonly count: number }[]
  readonly notes: readonly { readonly note: string; readonly count: number }[]
  readonly warnings: readonly Warning[]
  readonly predicted: Prediction
  /** How long the rehearsal took. */
  readonly seconds: number
  readonly recordsPerSecond: number
}

/** `read = givingEvents + skipped + rejected + collapsed` and `toSend = fromRecords + generated`, or it is no report. */
export interface Balance {
  readonly read: number
  /** Those of them that hold nothing; they are part of `skipped`, and not staged. */
  readonly blankLines: number
  readonly givingEvents: number
  /** Those of them that tell only of links or groups, whose events are generated ones; absent for none. */
  readonly givingOnlyGenerated?: number
  readonly skipped: number
  readonly rejected: number
  readonly collapsed: number
  readonly fromRecords: number
  readonly generated: number
  readonly toSend: number
  readonly isBalanced: boolean
}

export interface EventCount {
  readonly event: string
  /** What the source calls them, at most twenty; none where the importer made them all. */
  readonly sources?: readonly string[]
  readonly count: number
  readonly first: string
  readonly last: string
}

export interface DayCount {
  /** UTC. */
  readonly day: string
  /** Those of names that are not among `events` as well. */
  readonly count: number
  readonly events: Readonly<Record<string, number>>
}

export interface ReasonCount {
  readonly reason: string
  readonly count: number
  readonly fields: readonly string[]
  readonly files: readonly string[]
  /** What can be done; for skips what they are. */
  readonly fix: string
  readonly examples: readonly { readonly object: string; readonly line: number; readonly field: string | null }[]
}

export interface Warning {
  /** Stays the same when the words change. */
  readonly code: string
  readonly text: string
}

export interface Prediction {
  readonly events: number
  readonly persons: number
  readonly groups: number
  readonly merges: number
  /** The size of all request bodies before they are packed. */
  readonly bytes: number
  readonly seconds: number
  /** Events that would be charged: none, whatever their age. */
  readonly charged: 0
  /** Events of the last 48 hours before the plan was made. */
  readonly recent: { readonly events: number; readonly days: readonly string[] }
}

const count = Type.Number()
const text = Type.String()

export const eventCountsSchema = Type.Array(
  Type.Object({ event: text, sources: Type.Optional(Type.Array(text)), count, first: text, last: text }),
)
export const dayCountsSchema = Type.Array(Type.Object({ day: text, count, events: Type.Record(count) }))

const reasonCountsSchema = Type.Array(
  Type.Object({
    reason: text,
    count,
    fields: Type.Array(text),
    files: Type.Array(text),
    fix: text,
    examples: Type.Array(Type.Object({ object: text, line: count, field: orNull(text) })),
  }),
)

const targetAnswerSchema = Type.Union([
  Type.Object({ notAsked: text }),
  Type.Object({
    askedAt: text,
    timezone: orNull(text),
    dropsLiveOlderThanSeconds: orNull(count),
    hasEvents: Type.Boolean(),
    overlap: Type.Array(Type.Object({ day: text, live: count, imported: count, jobs: Type.Array(text) })),
    pendingJobs: Type.Array(Type.Object({ id: text, name: text, state: text })),
    newNames: Type.Array(text),
  }),
])

export const rehearsalReportSchema = Type.Object({
  v: Type.Literal(1),
  kind: Type.Literal('rehearsal'),
  jobId: text,
  folder: text,
  plannedAt: text,
  rehearsedAt: Type.Optional(text),
  source: text,
  config: jsonObject,
  sourceTimezone: orNull(text),
  target: orNull(Type.Object({ address: text, projectId: orNull(text), projectName: orNull(text) })),
  choices: planChoicesSchema,
  hashes: Type.Object({ manifest: text, mapping: text }),
  targetAnswer: targetAnswerSchema,
  range: orNull(Type.Object({ first: text, last: text })),
  balance: Type.Object({
    read: count,
    blankLines: count,
    givingEvents: count,
    givingOnlyGenerated: Type.Optional(count),
    skipped: count,
    rejected: count,
    collapsed: count,
    fromRecords: count,
    generated: count,
    toSend: count,
    isBalanced: Type.Boolean(),
  }),
  events: eventCountsSchema,
  eventsOfOtherNames: Type.Optional(count),
  days: dayCountsSchema,
  rejects: reasonCountsSchema,
  skips: reasonCountsSchema,
  damagedFiles: Type.Array(Type.Object({ object: text, records: count, line: count, why: text })),
  looksLike: orNull(text),
  heldByRejects: Type.Optional(count),
  rejectShare: count,
  maxRejectShare: count,
  distinctIds: Type.Object({ count, error: count }),
  identity: Type.Object({
    links: count,
    sharedDevices: count,
    devices: Type.Object({ all: count, shared: count }),
  }),
  groups: Type.Object({ events: count, types: Type.Array(text) }),
  dropped: Type.Array(Type.Object({ field: text, count })),
  notes: Type.Array(Type.Object({ note: text, count })),
  warnings: Type.Array(Type.Object({ code: text, text })),
  predicted: Type.Object({
    events: count,
    persons: count,
    groups: count,
    merges: count,
    bytes: count,
    seconds: count,
    charged: Type.Literal(0),
    recent: Type.Object({ events: count, days: Type.Array(text) }),
  }),
  seconds: count,
  recordsPerSecond: count,
})

export function isBalanced(balance: Omit<Balance, 'isBalanced'>): boolean {
  const { read, givingEvents, skipped, rejected, collapsed, fromRecords, generated, toSend } = balance
  return read === givingEvents + skipped + rejected + collapsed && toSend === fromRecords + generated
}
