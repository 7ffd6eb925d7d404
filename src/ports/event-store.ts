// Where processed events live and are counted. One SQL dialect (ClickHouse), embedded or a cluster.
// Identity of an event: (project, UTC day of its time, name, distinct id, uuid). Every read that returns or counts
// events sees each identity once, at once, whichever lane, job or retry it came by; a live row wins over an imported one.

import type { EventName, PropertyName } from '#core/capture/known-names.ts'
import type { Lane } from '#core/events/captured-event.ts'
import type {
  EventIdentity,
  PersonIdOverride,
  RejectedEvent,
  StoredEvent,
  StoredReplay,
} from '#core/events/stored-event.ts'
import type { JsonValue } from '#core/json.ts'
import type { HeldRange } from '#core/processing/held-rows.ts'
import type { StoredFlagCall, ThinnedCall } from '#core/processing/thin-flag-calls.ts'
import type { SurveyCounts } from '#core/surveys/survey-events.ts'
import type { EventUsage } from '#core/usage.ts'

export interface EventRows {
  readonly events: readonly StoredEvent[]
  /** Rows of import jobs that are not published yet; kept apart until then. */
  readonly pendingEvents: readonly StoredEvent[]
  readonly overrides: readonly PersonIdOverride[]
  readonly replays: readonly StoredReplay[]
  readonly rejected: readonly RejectedEvent[]
  /** Flag calls of projects that thin them, which are counted as used and not stored. */
  readonly thinned?: readonly ThinnedCall[]
  /** Whether these were stored before and may be gone, so that they must replace no event that is there. */
  readonly areRestored?: boolean
}

/** What is in the store, by its own lists: no row is read for it. */
export interface HeldRows {
  readonly ranges: readonly HeldRange[]
  /** Whether the mark that was asked for is there, or one that followed it. */
  readonly isMarked: boolean
}

export interface StoreMark {
  /** Id of the log whose events are stored: two instances in one database do not see each other's marks. */
  readonly instance: string
  readonly id: string
  /** The mark before, which the state may still have if it was not told of this one; null or '': there was none. */
  readonly former: string | null
}

export interface EventStore {
  /** Creates or upgrades tables. Safe to run from several processes. */
  migrate(): Promise<void>
  /**
   * Writes rows and waits until they are durable and queryable. Repeating the same rows replaces them.
   * A row refused for its content is found by bisection and returned in `refused` (index into `events`,
   * `pendingEvents` or `replays`); the others are stored.
   * @throws PortError `unavailable` or `timeout`: some, all or none of the rows may be stored; repeat the call.
   */
  insert(rows: EventRows): Promise<{ refused: readonly RefusedRow[] }>
  /**
   * One page in the order of (time, uuid, `tieBreak`), which neither skips nor repeats an event while others arrive.
   * An aborted `signal` ends the query on the server and rejects with its reason.
   * @throws PortError `unavailable` when the store cannot be reached, `timeout` after the query limit, `full` when the
   *   project's queue is or the answer would pass the limits of memory and size.
   */
  listEvents(
    query: EventQuery,
    signal?: AbortSignal,
  ): Promise<{ events: readonly EventView[]; next: EventCursor | null }>
  findEvent(projectId: number, uuid: string, signal?: AbortSignal): Promise<EventView | null>
  /**
   * For each of `identities`, `chargedAtMs` of the live row that reads see now; null when there is none, imported
   * copies left aside. Any number of them, however many queries are waiting.
   * @throws PortError `unavailable` or `timeout`.
   */
  findChargedTimes(identities: readonly EventIdentity[]): Promise<readonly (number | null)[]>
  /**
   * What is stored of the live `$feature_flag_called` events of these distinct ids on the UTC days of these events: each
   * kind (flag, answer, groups, experiment) once, with which of these events are among its copies. Any number of them.
   * @throws PortError `unavailable` or `timeout`.
   */
  findFlagCalls(calls: readonly EventIdentity[]): Promise<readonly StoredFlagCall[]>
  /**
   * The person-id override that reads see now of each of these distinct ids that has one: of those with the highest
   * version the last. Any number of ids, in no order.
   * @throws PortError `unavailable` or `timeout`.
   */
  findOverrides(
    ids: readonly { readonly projectId: number; readonly distinctId: string }[],
  ): Promise<readonly PersonIdOverride[]>
  /** Deduplicated counts per UTC day of `chargedAtMs`, days inclusive, `YYYY-MM-DD`. */
  countUsage(projectId: number, fromDay: string, toDay: string): Promise<readonly UsageDay[]>
  /**
   * One page by the time of receipt, which neither skips nor repeats while others arrive.
   * @throws PortError as `listEvents`.
   */
  listRejected(
    query: RejectedQuery,
    signal?: AbortSignal,
  ): Promise<{ rejected: readonly RejectedView[]; next: RejectedCursor | null }>
  countRejected(filter: RejectedFilter, signal?: AbortSignal): Promise<number>
  /** Notes that rejects were replayed; they stay. @throws PortError `unavailable` or `timeout`. */
  markReplayed(rejects: readonly ReplayedReject[]): Promise<void>
  /**
   * One page of replays by their time, newest first, without their items. Of the same project, session and uuid the one
   * that was stored last.
   * @throws PortError as `listEvents`.
   */
  listReplays(
    query: ReplayQuery,
    signal?: AbortSignal,
  ): Promise<{ replays: readonly ReplayView[]; next: ReplayCursor | null }>
  /** With its packed items; null in their place once they are gone. */
  findReplay(
    projectId: number,
    uuid: string,
    signal?: AbortSignal,
  ): Promise<{ replay: ReplayView; items: Uint8Array | null } | null>
  /**
   * Names of events that the project has, in their order, with how many there are; of more than 100,000 some are left out.
   * @throws PortError as `listEvents`; so do the next two.
   */
  listEventNames(
    query: EventNameQuery,
    signal?: AbortSignal,
  ): Promise<{ readonly count: number; readonly results: readonly EventName[] }>
  /** Names of properties of the newest 2,000 events or so, or of the persons that came with them, in their order. */
  listPropertyNames(
    query: PropertyNameQuery,
    signal?: AbortSignal,
  ): Promise<{ readonly count: number; readonly results: readonly PropertyName[] }>
  /** What became of these surveys: deduplicated events, answers that came in parts once, persons of today. */
  countSurveyEvents(query: SurveyCountQuery, signal?: AbortSignal): Promise<SurveyCounts>
  /** Moves a job's pending rows to the visible table; repeatable after a crash. */
  publishJob(importJobId: number): Promise<void>
  /** Drops a job's rows, pending and published. For jobs with an id of their own, from 2 up; so is `publishJob`. */
  discardJob(importJobId: number): Promise<void>
  /**
   * What is there now. Repeats, merges and replaced rows leave no hole in it; rows that are gone do.
   * @param markId of a mark that `writeMark` wrote for the instance, found for a week at least; null to look for none.
   * @returns null when the store does not let itself be asked.
   * @throws PortError `unavailable` or `timeout`; `unavailable` too while tables are missing: `migrate` first.
   */
  findHeldRows(instance: string, markId: string | null): Promise<HeldRows | null>
  /** Durable when it resolves. @throws PortError `unavailable` or `timeout`. */
  writeMark(mark: StoreMark): Promise<void>
  ping(): Promise<void>
  close(): Promise<void>
}

export interface RefusedRow {
  readonly list: 'events' | 'pendingEvents' | 'replays'
  readonly index: number
  readonly message: string
}

/** The place of one event in the order of a list. Made by `listEvents`, given back unchanged. */
export interface EventCursor {
  readonly timestampMs: number
  readonly uuid: string
  /** Decimal digits that tell apart events of the same time and uuid: name or distinct id differ. */
  readonly tieBreak: string
}

/** Person ids in filters and results are those of today: overrides applied. */
export interface EventQuery {
  readonly projectId: number
  readonly event?: string
  readonly distinctId?: string
  readonly personId?: string
  readonly uuid?: string
  /** Exclusive bounds, epoch ms. */
  readonly afterMs?: number
  readonly beforeMs?: number
  /** Equality on the text form of event properties. */
  readonly properties?: readonly { readonly key: string; readonly value: JsonValue }[]
  readonly descending: boolean
  readonly after?: EventCursor
  /** 1–1,000. */
  readonly limit: number
}

export interface EventView extends Omit<StoredEvent, 'chargedAtMs' | 'groups' | 'flags' | 'sessionId' | 'windowId'> {
  readonly createdAtMs: number
}

export interface UsageDay extends EventUsage {
  /** `YYYY-MM-DD`, UTC. */
  readonly day: string
}

export type ReplayView = Omit<StoredReplay, 'items'>

/** The place of one replay in the order of a list. */
export interface ReplayCursor {
  readonly timestampMs: number
  readonly uuid: string
}

export interface ReplayQuery {
  readonly projectId: number
  readonly sessionId?: string
  readonly distinctId?: string
  /** Exclusive bounds of its time, epoch ms. */
  readonly afterMs?: number
  readonly beforeMs?: number
  readonly after?: ReplayCursor
  /** 1–1,000. */
  readonly limit: number
}

/** How long a replay is kept, from when it was stored: its items, and the row that says that there were some. */
export const replayRetentionDays = { items: 3, row: 90 } as const

export interface RejectedView extends RejectedEvent {
  /** When it was last taken through capture once more and stored, epoch ms; null when it never was. */
  readonly replayedAtMs: number | null
}

/** The place of one reject in the order of a list. */
export interface RejectedCursor {
  readonly receivedAtMs: number
  readonly rejectId: string
}

/** All that is given has to hold. */
export interface RejectedFilter {
  readonly projectId: number
  readonly ids?: readonly string[]
  readonly reason?: string
  /** Name of a field, with or without the place of its item before it (`batch.3.uuid`). */
  readonly field?: string
  readonly event?: string
  readonly distinctId?: string
  readonly uuid?: string
  readonly lane?: Lane
  /** Exclusive bounds of the receipt, epoch ms. */
  readonly afterMs?: number
  readonly beforeMs?: number
  /** Text in the body, in any case. */
  readonly search?: string
  readonly replayed?: boolean
  /** Newest first when absent. */
  readonly oldestFirst?: boolean
  /** Only what lies beyond this place in the list's order. */
  readonly beyond?: RejectedCursor
}

export interface RejectedQuery extends RejectedFilter {
  /** 1–1,000. A page of large bodies is shorter. */
  readonly limit: number
}

export interface ReplayedReject extends RejectedCursor {
  readonly projectId: number
  readonly replayedAtMs: number
}

interface NamesPage {
  readonly projectId: number
  /** Part of a name, in any case. */
  readonly search?: string
  readonly limit: number
  readonly offset: number
}

export type EventNameQuery = NamesPage

/** All that is given has to hold. */
export interface PropertyNameQuery extends NamesPage {
  readonly of: 'event' | 'person'
  readonly names?: readonly string[]
  /** Without those that SDKs set, `$…`. */
  readonly leavesOutCore?: boolean
  /** Only those of flags, `$feature/…`, or all but them. */
  readonly ofFlags?: boolean
  /** `isSeenOnEvents` is about these. */
  readonly events?: readonly string[]
  /** No other events than these are looked at. */
  readonly onlyOfEvents?: boolean
}

export interface SurveyCountQuery {
  readonly projectId: number
  readonly surveyIds: readonly string[]
  /** Inclusive bounds, epoch ms. */
  readonly fromMs?: number
  readonly toMs?: number
}
