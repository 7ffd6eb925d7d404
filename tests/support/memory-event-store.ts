import type { PersonIdOverride, RejectedEvent, StoredEvent } from '#core/events/stored-event.ts'
import type { EventRows, EventStore, UsageDay } from '#ports/event-store.ts'
import { PortError } from '#ports/port-error.ts'

/** The part of the event store that processing needs, in memory: a repeated row replaces itself, as in the real one. */
export class MemoryEventStore implements Pick<EventStore, 'insert' | 'countUsage'> {
  readonly rows = new Map<string, StoredEvent>()
  readonly rejected = new Map<string, RejectedEvent>()
  readonly overrides = new Map<string, PersonIdOverride>()
  /** Every row of every call, repeats included. */
  readonly inserted: StoredEvent[] = []
  insertCount = 0
  isDown = false
  refuses: (row: StoredEvent) => boolean = () => false

  async insert(rows: EventRows): ReturnType<EventStore['insert']> {
    this.insertCount++
    if (this.isDown) throw new PortError('event-store', 'unavailable')
    const refused: { list: 'events'; index: number; message: string }[] = []
    rows.events.forEach((row, index) => {
      if (this.refuses(row)) {
        refused.push({ list: 'events', index, message: 'refused for its content' })
        return
      }
      this.inserted.push(row)
      const { projectId, timestampMs, event, distinctId, uuid } = row
      this.rows.set(JSON.stringify([projectId, utcDay(timestampMs), event, distinctId, uuid]), row)
    })
    for (const reject of rows.rejected) this.rejected.set(reject.rejectId, reject)
    for (const override of rows.overrides) {
      const key = JSON.stringify([override.projectId, override.distinctId])
      if ((this.overrides.get(key)?.version ?? -1) <= override.version) this.overrides.set(key, override)
    }
    return { refused }
  }

  async countUsage(projectId: number, fromDay: string, toDay: string): Promise<readonly UsageDay[]> {
    const days = new Map<string, { day: string; eventsCharged: number; eventsImported: number }>()
    for (const row of this.rows.values()) {
      const day = utcDay(row.capturedAtMs)
      if (row.projectId !== projectId || day < fromDay || day > toDay) continue
      const counts = days.get(day) ?? { day, eventsCharged: 0, eventsImported: 0 }
      days.set(day, counts)
      if (row.historicalMigration) counts.eventsImported++
      else counts.eventsCharged++
    }
    return [...days.values()]
  }
}

function utcDay(timeMs: number): string {
  return new Date(timeMs).toISOString().slice(0, 10)
}
