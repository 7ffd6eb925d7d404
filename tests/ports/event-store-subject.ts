// The store that the suites of `event-store.contract.ts` share, and what their tests do with it.

import type { EventQuery, EventRows, EventStore, EventView } from '#ports/event-store.ts'
import type { fixedClock } from '../support/fixed-clock.ts'

export const novemberMs = Date.parse('2026-11-05T10:00:00Z')
export const decemberMs = Date.parse('2026-12-02T10:00:00Z')

export interface OpenedEventStore {
  readonly store: EventStore
  readonly clock: ReturnType<typeof fixedClock>
  close(): Promise<void>
}

export interface EventStoreSubject {
  /** From `before` on. */
  readonly store: EventStore
  readonly clock: ReturnType<typeof fixedClock>
  /** Ids that no other test has. */
  newProject(): number
  newJob(): number
  /** At a moment of its own. */
  insert(rows: Partial<EventRows>): ReturnType<EventStore['insert']>
  list(projectId: number, over?: Partial<EventQuery>): Promise<readonly EventView[]>
  /** By days, of November and December where no others are named. */
  usage(
    projectId: number,
    from?: string,
    to?: string,
  ): Promise<{ day: string; eventsCharged: number; eventsImported: number }[]>
}

export function eventStoreSubject(opened: () => OpenedEventStore): EventStoreSubject {
  let projectCount = 0
  let jobCount = 1
  return {
    get store() {
      return opened().store
    },
    get clock() {
      return opened().clock
    },
    newProject: () => ++projectCount,
    newJob: () => ++jobCount,
    insert: rows => {
      const { store, clock } = opened()
      clock.advance(1)
      return store.insert({ events: [], pendingEvents: [], overrides: [], replays: [], rejected: [], ...rows })
    },
    list: async (projectId, over = {}) =>
      (await opened().store.listEvents({ projectId, descending: true, limit: 1000, ...over })).events,
    usage: async (projectId, from = '2026-11-01', to = '2026-12-31') =>
      (await opened().store.countUsage(projectId, from, to)).map(({ day, eventsCharged, eventsImported }) => ({
        day,
        eventsCharged,
        eventsImported,
      })),
  }
}
