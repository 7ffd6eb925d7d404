// The store under test that the suites of the event store's ports share, and their common steps.

import type { StoredEvent } from '#core/events/stored-event.ts'
import type { EventQuery, EventView } from '#ports/events/event-queries.ts'
import type { EventStore } from '#ports/events/event-store.ts'
import type { ChargedUsage } from '#ports/events/event-store-upkeep.ts'
import type { EventRows, EventWriter } from '#ports/events/event-writer.ts'
import type { fixedClock } from '../support/fixed-clock.ts'

export const novemberMs = Date.parse('2026-11-05T10:00:00Z')
export const decemberMs = Date.parse('2026-12-02T10:00:00Z')

type WrittenStore = EventWriter & ChargedUsage
type SeenEvent = Pick<
  StoredEvent,
  | 'uuid'
  | 'event'
  | 'distinctId'
  | 'timestampMs'
  | 'capturedAtMs'
  | 'importJobId'
  | 'propertiesJson'
  | 'personPropertiesJson'
>

export interface EventWriterSubject {
  /** From `before` on. */
  readonly store: WrittenStore
  readonly clock: ReturnType<typeof fixedClock>
  /** Ids that no other test uses. */
  newProject(): number
  newJob(): number
  /** A time that no other test uses. */
  insert(rows: Partial<EventRows>): ReturnType<EventWriter['insert']>
  /** What a reader sees of a project, newest first. */
  list(projectId: number): Promise<readonly SeenEvent[]>
  /** By day; November and December by default. */
  usage(
    projectId: number,
    from?: string,
    to?: string,
  ): Promise<{ day: string; eventsCharged: number; eventsImported: number }[]>
}

export interface EventStoreSubject extends EventWriterSubject {
  readonly store: EventStore
  list(projectId: number, over?: Partial<EventQuery>): Promise<readonly EventView[]>
}

interface SubjectOptions<Store extends WrittenStore, List extends EventWriterSubject['list']> {
  readonly store: () => Store
  readonly clock: ReturnType<typeof fixedClock>
  readonly list: List
}

export function eventWriterSubject<Store extends WrittenStore, List extends EventWriterSubject['list']>(
  options: SubjectOptions<Store, List>,
): EventWriterSubject & { readonly store: Store; readonly list: List } {
  const { clock, list } = options
  let projectCount = 0
  let jobCount = 1
  return {
    get store() {
      return options.store()
    },
    clock,
    list,
    newProject: () => ++projectCount,
    newJob: () => ++jobCount,
    insert: rows => {
      clock.advance(1)
      const none = { events: [], pendingEvents: [], overrides: [], recordings: [], rejected: [] }
      return options.store().insert({ ...none, ...rows })
    },
    usage: async (projectId, from = '2026-11-01', to = '2026-12-31') =>
      (await options.store().countUsage(projectId, from, to)).map(({ day, eventsCharged, eventsImported }) => ({
        day,
        eventsCharged,
        eventsImported,
      })),
  }
}

export function eventStoreSubject(store: () => EventStore, clock: ReturnType<typeof fixedClock>): EventStoreSubject {
  return eventWriterSubject({
    store,
    clock,
    list: async (projectId: number, over: Partial<EventQuery> = {}) =>
      (await store().listEvents({ projectId, descending: true, limit: 1000, ...over })).events,
  })
}
