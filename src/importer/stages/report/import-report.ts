// `report.json`: what a rehearsal found, and what was sent since. Source: docs/wire/import.md §2.7, §2.9.

import type { JsonObject } from '#core/json.ts'
import type { JobFolder } from '#importer/job/job-folder.ts'
import { allowNull, type DeepReadonly, jsonObject, type Static, Type } from '../../records/file-schema.ts'

export const reportNames = { json: 'report.json', html: 'report.html' } as const

const count = Type.Number()
const text = Type.String()
const texts = Type.Array(text)

const eventCount = Type.Object({
  event: text,
  /** Names in the source, at most twenty; none if the importer generated all of these events. */
  sources: Type.Optional(texts),
  count,
  first: text,
  last: text,
})

const dayCount = Type.Object({
  /** UTC. */
  day: text,
  /** The number of all events of the day, including events whose names are not in `events`. */
  count,
  events: Type.Record(count),
})

const reasonCount = Type.Object({
  reason: text,
  count,
  fields: texts,
  files: texts,
  /** The remedy; for skips, an explanation. */
  fix: text,
  examples: Type.Array(Type.Object({ object: text, line: count, field: allowNull(text) })),
})

/** The code is stable, unlike the text. */
const warning = Type.Object({ code: text, text })

const overlapDay = Type.Object({
  /** UTC. */
  day: text,
  live: count,
  imported: count,
  /** Ids of published import jobs that have events on this day, at most ten. */
  jobs: texts,
})

const targetFacts = Type.Object({
  /** ISO 8601. */
  askedAt: text,
  timezone: allowNull(text),
  /**
   * The target drops live events that are older, and refuses to import such events unless the plan of the import accepts
   * old events. Source: docs/wire/private-api.md (Import jobs).
   */
  dropsLiveOlderThanSeconds: allowNull(count),
  /** Whether the project has any event at all. */
  hasEvents: Type.Boolean(),
  /** Days of the import for which the project already has events. */
  overlap: Type.Array(overlapDay),
  /** Unpublished import jobs that report some of the days of this job. */
  pendingJobs: Type.Array(Type.Object({ id: text, name: text, state: text })),
  /** Event names in the import for which the project has no events. */
  newNames: texts,
})
/** The facts, or a sentence on why the target was not asked and what to do about it. */
const targetAnswer = Type.Union([Type.Object({ notAsked: text }), targetFacts])

/** An option of the plan that differs from the default. */
const planChoice = Type.Object({
  /** The option as passed to `pennon import plan`. */
  option: text,
  /** A sentence about the effect of the option. */
  text,
  /** Whether publishing replaces values that live events wrote. */
  replacesLiveValues: Type.Boolean(),
})

const damagedFile = Type.Object({
  /** As in `RawPosition`. */
  object: text,
  /** How many records were read before the damage, from this file and from other files of the same archive. */
  records: count,
  line: count,
  why: text,
})

/**
 * `read = givingEvents + skipped + rejected + collapsed` and `toSend = fromRecords + generated`; otherwise the report cannot
 * be approved.
 */
const balance = Type.Object({
  read: count,
  /** How many of `read` are blank lines, which also count in `skipped` and are not staged. */
  blankLines: count,
  givingEvents: count,
  /** How many of `givingEvents` yield only links or groups, whose events are generated; absent for none. */
  givingOnlyGenerated: Type.Optional(count),
  skipped: count,
  rejected: count,
  collapsed: count,
  fromRecords: count,
  generated: count,
  toSend: count,
  isBalanced: Type.Boolean(),
})

/** The findings of the rehearsal, without `sent`, which is derived from other files. */
const rehearsalSchema = Type.Object({
  v: Type.Literal(1),
  jobId: text,
  /** Path of the job's folder. The times below are ISO 8601. */
  folder: text,
  plannedAt: text,
  rehearsedAt: Type.Optional(text),
  source: text,
  config: jsonObject,
  sourceTimezone: allowNull(text),
  target: allowNull(Type.Object({ address: text, projectId: allowNull(text), projectName: allowNull(text) })),
  choices: Type.Array(planChoice),
  hashes: Type.Object({ manifest: text, mapping: text }),
  /** What the target already has for the same days and names. */
  targetAnswer,
  /** Times of the first and last event; null if there are none. */
  range: allowNull(Type.Object({ first: text, last: text })),
  balance,
  /** Events and days are limited by `countedMax`. */
  events: Type.Array(eventCount),
  /** How many events have names that are not listed; absent for none. */
  eventsOfOtherNames: Type.Optional(count),
  days: Type.Array(dayCount),
  rejects: Type.Array(reasonCount),
  skips: Type.Array(reasonCount),
  /** Files that could not be read to the end. */
  damagedFiles: Type.Array(damagedFile),
  /** The source that the rejected records seem to come from; null if none fits. */
  looksLike: allowNull(text),
  /** Estimate of how many records the rejects contain; absent if each contains one. */
  heldByRejects: Type.Optional(count),
  /** Share of rejected records among all records, read or contained in rejects, 0 to 1. */
  rejectShare: count,
  maxRejectShare: count,
  /** `error` is the standard error as a share of the count; 0 for an exact count. */
  distinctIds: Type.Object({ count, error: count }),
  identity: Type.Object({
    links: count,
    /** How often a user other than the first was seen on a device. */
    sharedDevices: count,
    /** How many devices have a user, and how many have more than one. */
    devices: Type.Object({ all: count, shared: count }),
  }),
  groups: Type.Object({ events: count, types: texts }),
  /** Source fields that are in no event, with the number of records that have them. */
  dropped: Type.Array(Type.Object({ field: text, count })),
  notes: Type.Array(Type.Object({ note: text, count })),
  warnings: Type.Array(warning),
  predicted: Type.Object({
    events: count,
    persons: count,
    groups: count,
    merges: count,
    /** The total size of request bodies before compression. */
    bytes: count,
    seconds: count,
    /** How many events would be charged for: always 0. */
    charged: Type.Literal(0),
    /** Events of the 48 hours before the job was planned. */
    recent: Type.Object({ events: count, days: texts }),
  }),
  /** Duration of the rehearsal. */
  seconds: count,
  recordsPerSecond: count,
})

/** The last comparison of the stored events with the sent events. Source: docs/wire/import.md §2.10. */
export interface Verification {
  readonly v: 1
  readonly verified_at: string
  readonly ok: boolean
  readonly expected_rows: number
  readonly stored_rows: number
  readonly checks: readonly {
    readonly name: 'day_event_counts' | 'id_buckets' | 'random_events' | 'live_data'
    readonly state: 'equal' | 'differs' | 'not_checked'
    readonly compared: number
    /** Descriptions of the first differences that were found. */
    readonly differences: readonly string[]
  }[]
  /** The service's notes about the job, by reason, and a note about rows missing because persons were erased. */
  readonly notes: readonly {
    readonly reason: string
    readonly count: number
    readonly samples: readonly JsonObject[]
  }[]
}

/** The comparison of random persons after publishing. */
export interface PersonsCheck {
  readonly compared: number
  readonly equal: number
  /** Persons that differ, but were also touched by live events, another import or a merge. */
  readonly newer: number
  readonly differences: readonly string[]
}

export type EventCount = DeepReadonly<Static<typeof eventCount>>
export type DayCount = DeepReadonly<Static<typeof dayCount>>
export type ReasonCount = DeepReadonly<Static<typeof reasonCount>>
export type Warning = DeepReadonly<Static<typeof warning>>
export type OverlapDay = DeepReadonly<Static<typeof overlapDay>>
export type TargetFacts = DeepReadonly<Static<typeof targetFacts>>
export type TargetAnswer = DeepReadonly<Static<typeof targetAnswer>>
export type PlanChoice = DeepReadonly<Static<typeof planChoice>>
export type DamagedFile = DeepReadonly<Static<typeof damagedFile>>
export type Balance = DeepReadonly<Static<typeof balance>>
export type Rehearsal = DeepReadonly<Static<typeof rehearsalSchema>>

/** What has been sent so far. */
export interface SentSummary {
  /** Whether everything is sent. */
  readonly isAll: boolean
  readonly serviceJobId: string | null
  readonly balance: SentBalance
  /** Records that were rejected, then repaired and sent; the balance counts them by their new outcome. Null for none. */
  readonly repaired: { readonly read: number; readonly sent: number; readonly rejected: number } | null
  /** How many events the service already had, or counted as recent. */
  readonly duplicates: number
  readonly recent: number
  readonly seconds: number
  readonly retries: number
  /** Null while the stored events have not been compared with all that was sent. */
  readonly verification: Verification | null
  /** Null before publishing. */
  readonly persons: PersonsCheck | null
  readonly ending: { readonly how: 'publish' | 'discard'; readonly isDone: boolean; readonly at?: string } | null
}

/**
 * Once everything is sent, balanced means: `read = givingEvents + skipped + rejected + collapsed`, `sent = fromRecords +
 * generated`, and, before any repair, `sent + refused` equals the rehearsal's `toSend`.
 */
export interface SentBalance extends Omit<Balance, 'blankLines' | 'givingOnlyGenerated' | 'toSend'> {
  readonly sent: number
  /** Events refused by the service or too large for it. */
  readonly refused: number
}

export interface ImportReport extends Rehearsal {
  readonly sent: SentSummary | null
}

/** @returns null until a rehearsal is complete. */
export function readRehearsal(folder: JobFolder): Rehearsal | null {
  return folder.readJson(reportNames.json, rehearsalSchema)
}

export function isReportBalanced(sums: Omit<Balance, 'isBalanced'>): boolean {
  const { read, givingEvents, skipped, rejected, collapsed, fromRecords, generated, toSend } = sums
  return read === givingEvents + skipped + rejected + collapsed && toSend === fromRecords + generated
}
