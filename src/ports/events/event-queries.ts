// Queries about single events, their names and surveys. Each identity is returned once (`event-store.ts`). Persons are
// current: if a distinct id has moved to another person since an event was stored, results, filters and counts
// attribute the event to the current person.

import type { EventName, PropertyName, PropertyValues } from '#core/capture/event-and-property-names.ts'
import type { StoredEvent } from '#core/events/stored-event.ts'
import type { JsonValue } from '#core/json.ts'
import type { SurveyCounts } from '#core/surveys/survey-events.ts'

/**
 * The events that a query sees: the visible events of a project and, with `importJobId`, also that job's pending events, as
 * if they were visible. The job must be pending, and belong to the project.
 */
export interface EventScope {
  readonly projectId: number
  readonly importJobId?: number
}

/**
 * Aborting `signal` ends the query in the store and rejects with the signal's reason.
 * @throws PortError from every method: `unavailable` if the store cannot be reached, `timeout` after the query limit, `full`
 *   if too many queries of the project wait or the answer would exceed the limits on memory and size, `corrupt`.
 */
export interface EventQueries {
  /**
   * One page in the order of (time, uuid, `tieBreak`). Pages neither skip nor repeat an event while other events arrive.
   */
  listEvents(
    query: EventQuery,
    signal?: AbortSignal,
  ): Promise<{ events: readonly EventView[]; next: EventCursor | null }>
  /** The event with this uuid; the latest if several differ in day, name or distinct id. */
  findEvent(seen: EventScope, uuid: string, signal?: AbortSignal): Promise<EventView | null>
  /**
   * The names of the project's events, in byte order unless the query has another order. Beyond 100,000 names, some are
   * left out.
   */
  listEventNames(
    query: EventNameQuery,
    signal?: AbortSignal,
  ): Promise<{ readonly count: number; readonly results: readonly EventName[] }>
  /** The names of properties in a sample of about the newest 2,000 events, or of 2,000 groups, in byte order. */
  listPropertyNames(
    query: PropertyNameQuery,
    signal?: AbortSignal,
  ): Promise<{ readonly count: number; readonly results: readonly PropertyName[] }>
  /**
   * The values of one property of about the newest 2,000 events of a name, or of up to 50,000 current persons or groups:
   * the most frequent first, equally frequent values in byte order. Leaves out null and values of more than 1,000
   * characters.
   * @throws MirrorFillingError for persons and groups while they are copied.
   */
  listPropertyValues(query: PropertyValueQuery, signal?: AbortSignal): Promise<PropertyValues>
  /** How often these surveys were shown, dismissed and answered. An answer that arrived in parts counts once. */
  countSurveyEvents(query: SurveyCountQuery, signal?: AbortSignal): Promise<SurveyCounts>
}

/** The place of one event in the order of a list. `listEvents` makes it; callers pass it back unchanged. */
export interface EventCursor {
  readonly timestampMs: number
  readonly uuid: string
  /** Decimal digits that distinguish events with the same time and uuid but another name or distinct id. */
  readonly tieBreak: string
}

/** All given filters must match. */
export interface EventQuery extends EventScope {
  readonly event?: string
  readonly distinctId?: string
  readonly personId?: string
  readonly uuid?: string
  /** Exclusive bounds, epoch ms. */
  readonly afterMs?: number
  readonly beforeMs?: number
  /** Event properties whose text form must equal these values. */
  readonly properties?: readonly { readonly key: string; readonly value: JsonValue }[]
  readonly descending: boolean
  readonly after?: EventCursor
  /** 1–1,000. */
  readonly limit: number
}

export interface EventView
  extends Omit<
    StoredEvent,
    | ('chargedAtMs' | 'groups' | 'flags' | 'sessionId' | 'windowId' | 'flagCalled' | 'flagResponse')
    | ('linkedId' | 'logStream' | 'logOffset' | 'sentLaterMs')
  > {
  readonly createdAtMs: number
}

interface NamesPage {
  readonly projectId: number
  /** Part of a name, ignoring case. */
  readonly search?: string
  readonly limit: number
  readonly offset: number
}

/** What event names are ordered by: `firstCaptured` and `lastSeen` are the times in `EventName`, `count` the stored rows. */
export type EventNameField = 'name' | 'firstCaptured' | 'lastSeen' | 'count'

export interface EventNameQuery extends NamesPage {
  /** Ascending by name unless given; names break ties. */
  readonly order?: { readonly by: EventNameField; readonly isDescending: boolean }
}

/** All given filters must match. */
export interface PropertyNameQuery extends NamesPage {
  /** Properties of events, or of the persons as stored with the events, or of the current groups of a type. */
  readonly kind: 'event' | 'person' | { readonly groupTypeIndex: number }
  readonly names?: readonly string[]
  readonly excludedNames?: readonly string[]
  /** Leaves out properties that SDKs set (`$…`). */
  readonly leavesOutCore?: boolean
  /** True: only properties of flags (`$feature/…`). False: only other properties. */
  readonly ofFlags?: boolean
  /** The names of the events to which `isSeenOnEvents` in an answer refers. */
  readonly events?: readonly string[]
  /** Samples only events named in `events`. */
  readonly onlyOfEvents?: boolean
}

export interface PropertyValueQuery {
  readonly projectId: number
  /** Whose property: of events of this name, of persons, or of the groups of a type. */
  readonly of: { readonly event: string } | 'person' | { readonly groupTypeIndex: number }
  readonly name: string
  /** Part of a value's text, ignoring case. */
  readonly search?: string
  readonly limit: number
}

export interface SurveyCountQuery {
  readonly projectId: number
  readonly surveyIds: readonly string[]
  /** Inclusive bounds, epoch ms. */
  readonly fromMs?: number
  readonly toMs?: number
}

// Exports of events: everything that a list of events would show, day by day in its order, for as long as a client reads
// it. Events of one day are also in the order of the list, unless there are so many that reading them by time would mean
// reading them several times: the events of such a day are in the order of (event, distinct id, uuid).

export interface EventExports {
  /**
   * Looks up which days the export has; the events themselves are read batch by batch. Each identity appears once, with its
   * current person. Events that arrive while the export runs may be included, and do not affect the other events.
   * @param signal ends the running query, here and in `batches`, which then reject with its reason.
   * @throws PortError as in `EventQueries`; so does each step of `batches`, after several attempts.
   */
  openEventExport(query: EventExportQuery, signal: AbortSignal): Promise<EventExport>
}

/** `after` is exclusive: the export continues after that event. */
export type EventExportQuery = Omit<EventQuery, 'limit' | 'after'> & { readonly after?: ExportCursor }

/** A place in an export; every place in a list is also a place in an export. */
export interface ExportCursor extends EventCursor {
  /** The event's key, if its day is read in the order of (event, distinct id, uuid) instead of time. */
  readonly key?: {
    readonly event: string
    readonly distinctId: string
    /** The place in the order of time after which the export began; null if it began at the start. */
    readonly base: EventCursor | null
  }
}

export interface EventExport {
  /** An upper bound for the number of events: it also counts copies, and events that only the finer filters leave out. */
  readonly eventCountMax: number
  /**
   * The batches have about a mebibyte each, unless a single event is larger. Read each batch once, before requesting the
   * next batch. A batch is queried when it is requested, or was already buffered as bytes: between two batches nothing is
   * open in the store.
   */
  readonly batches: AsyncIterable<Iterable<ExportedEvent>>
}

export interface ExportedEvent {
  readonly event: EventView
  /** The place of this event: an export with this `after` begins with the next event. */
  readonly cursor: ExportCursor
}
