// What the state remembers about the event store, so that a worker notices when the event store was lost or replaced
// (docs/decisions/0026).

import type { PersonIdOverride } from '#core/events/stored-event.ts'
import type { EventStoreMark } from '#core/processing/held-rows.ts'

export interface EventStoreMarks {
  /** Null until a worker has checked the event store. */
  findEventStoreMark(): Promise<EventStoreMark | null>
  /** Replaces the previous mark. */
  saveEventStoreMark(mark: EventStoreMark): Promise<void>
  /**
   * The person of each distinct id, ordered by project and id, starting after `after`. Only versions above 0 are
   * overrides that the event store has; the page includes mappings at version 0 because leaving them out would require
   * a search. `erasures`: how often persons of the project had been erased when the page was read.
   */
  listOverrides(
    after: { readonly projectId: number; readonly distinctId: string } | null,
    limit: number,
  ): Promise<readonly (PersonIdOverride & { readonly erasures: number })[]>
}
