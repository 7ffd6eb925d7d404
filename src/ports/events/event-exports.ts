// Exports of events: everything that a list of events would show, day by day in its order, for as long as a client
// reads it. Events of one day are in the order of the list too, unless there are so many that reading them by time
// would cost more than reading them once: the events of such a day are in the order of (event, distinct id, uuid).

import type { EventCursor, EventQuery, EventView } from './event-queries.ts'

export interface EventExports {
  /**
   * Looks up which days the export has; the events themselves are read batch by batch. Each identity appears once, with
   * its current person. Events that arrive while the export runs may be included, and do not affect the others.
   * @param signal ends the running query, here and in `batches`, which then reject with its reason.
   * @throws PortError as in `EventQueries`; so does each step of `batches`, after several attempts.
   */
  openEventExport(query: EventExportQuery, signal: AbortSignal): Promise<EventExport>
}

/** `after` is exclusive: the export continues after that event. */
export type EventExportQuery = Omit<EventQuery, 'limit' | 'after'> & { readonly after?: ExportCursor }

/** A place in an export; a place in a list is one as well. */
export interface ExportCursor extends EventCursor {
  /** The event's key, if its day is read in the order of (event, distinct id, uuid) instead of time. */
  readonly key?: {
    readonly event: string
    readonly distinctId: string
    /** The place in time after which the export began, if it did not begin at the start. */
    readonly base: EventCursor | null
  }
}

export interface EventExport {
  /**
   * An upper bound of the export's events: repeats and events that only the finer filters leave out are counted as
   * well.
   */
  readonly eventCountMax: number
  /**
   * About a mebibyte each, unless a single event is larger, to be read once and before the next is requested. A batch
   * is read when it is requested, or buffered as bytes until then: between two batches nothing is open in the store.
   */
  readonly batches: AsyncIterable<Iterable<ExportedEvent>>
}

export interface ExportedEvent {
  readonly event: EventView
  /** The place of this event: an export with this `after` begins with the next one. */
  readonly cursor: ExportCursor
}
