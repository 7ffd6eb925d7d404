// `rehearsal/report.json`: the findings of a rehearsal. Source: docs/wire/import.md §2.7, §2.9.

import type { ImportTarget } from '#importer/job/plan.ts'
import { allowNull, jsonObject, Type } from '../../records/file-schema.ts'
import type { DamagedFile } from './damaged-files.ts'
import type { DistinctEstimate } from './distinct-count.ts'
import { type PlanChoice, planChoicesSchema } from './plan-choices.ts'
import type { TargetAnswer } from './target-facts.ts'

export interface RehearsalReport {
  readonly v: 1
  readonly kind: 'rehearsal'
  readonly jobId: string
  /** Path of the job's folder. The times below are ISO 8601. */
  readonly folder: string
  readonly plannedAt: string
  readonly rehearsedAt?: string
  readonly source: string
  readonly config: object
  readonly sourceTimezone: string | null
  readonly target: Pick<ImportTarget, 'address' | 'projectId' | 'projectName'> | null
  /** Options of the plan that differ from the defaults. */
  readonly choices: readonly PlanChoice[]
  readonly hashes: { readonly manifest: string; readonly mapping: string }
  /** What the target already has for the same days and names. */
  readonly targetAnswer: TargetAnswer
  /** Times of the first and last event; null if there are none. */
  readonly range: { readonly first: string; readonly last: string } | null
  readonly balance: Balance
  /** Events and days are limited by `countedMax`. */
  readonly events: readonly EventCount[]
  /** How many events have names that are not listed; absent for none. */
  readonly eventsOfOtherNames?: number
  readonly days: readonly DayCount[]
  readonly rejects: readonly ReasonCount[]
  readonly skips: readonly ReasonCount[]
  /** Files that could not be read to the end. */
  readonly damagedFiles: readonly DamagedFile[]
  /** The source that the rejected records seem to come from; null if none fits. */
  readonly looksLike: string | null
  /** Estimate of how many records the rejects contain; absent if each contains one. */
  readonly heldByRejects?: number
  /** Share of rejected records among all records, read or contained in rejects, 0 to 1. */
  readonly rejectShare: number
  readonly maxRejectShare: number
  readonly distinctIds: DistinctEstimate
  readonly identity: {
    readonly links: number
    /** How often a user other than the first was seen on a device. */
    readonly sharedDevices: number
    /** How many devices have a user, and how many have more than one. */
    readonly devices: { readonly all: number; readonly shared: number }
  }
  readonly groups: { readonly events: number; readonly types: readonly string[] }
  /** Source fields that are in no event, with the number of records that have them. */
  readonly dropped: readonly { readonly field: string; readonly count: number }[]
  readonly notes: readonly { readonly note: string; readonly count: number }[]
  readonly warnings: readonly Warning[]
  readonly predicted: Prediction
  /** Duration of the rehearsal. */
  readonly seconds: number
  readonly recordsPerSecond: number
}

/**
 * `read = givingEvents + skipped + rejected + collapsed` and `toSend = fromRecords + generated`; otherwise the report cannot
 * be approved.
 */
export interface Balance {
  readonly read: number
  /** How many of `read` are blank lines, which also count in `skipped` and are not staged. */
  readonly blankLines: number
  readonly givingEvents: number
  /** How many of `givingEvents` only give links or groups, whose events are generated; absent for none. */
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
  /** Names in the source, at most twenty; none if the importer generated all of these events. */
  readonly sources?: readonly string[]
  readonly count: number
  readonly first: string
  readonly last: string
}

export interface DayCount {
  /** UTC. */
  readonly day: string
  /** Includes events whose names are not in `events`. */
  readonly count: number
  readonly events: Readonly<Record<string, number>>
}

export interface ReasonCount {
  readonly reason: string
  readonly count: number
  readonly fields: readonly string[]
  readonly files: readonly string[]
  /** The remedy; for skips, an explanation. */
  readonly fix: string
  readonly examples: readonly { readonly object: string; readonly line: number; readonly field: string | null }[]
}

export interface Warning {
  /** Stable, unlike the text. */
  readonly code: string
  readonly text: string
}

export interface Prediction {
  readonly events: number
  readonly persons: number
  readonly groups: number
  readonly merges: number
  /** The total size of request bodies before compression. */
  readonly bytes: number
  readonly seconds: number
  /** How many events would be charged: always none. */
  readonly charged: 0
  /** Events of the 48 hours before the job was planned. */
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
    examples: Type.Array(Type.Object({ object: text, line: count, field: allowNull(text) })),
  }),
)

const targetAnswerSchema = Type.Union([
  Type.Object({ notAsked: text }),
  Type.Object({
    askedAt: text,
    timezone: allowNull(text),
    dropsLiveOlderThanSeconds: allowNull(count),
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
  sourceTimezone: allowNull(text),
  target: allowNull(Type.Object({ address: text, projectId: allowNull(text), projectName: allowNull(text) })),
  choices: planChoicesSchema,
  hashes: Type.Object({ manifest: text, mapping: text }),
  targetAnswer: targetAnswerSchema,
  range: allowNull(Type.Object({ first: text, last: text })),
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
  looksLike: allowNull(text),
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
