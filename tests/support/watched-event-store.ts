// A memory event store for tests of the worker: it records its calls, and can be made to fail.

import type { EventIdentity, StoredEvent, StoredRecording } from '#core/events/stored-event.ts'
import type { EventRows } from '#ports/events/event-writer.ts'
import { PortError } from '#ports/port-error.ts'
import { MemoryEventStore } from './memory/memory-event-store.ts'

export class WatchedEventStore extends MemoryEventStore {
  /** Every stored row of every call, including repeats. */
  readonly inserted: StoredEvent[] = []
  insertCount = 0
  /** The arguments of `findChargedTimes`, call by call. */
  readonly asked: (readonly EventIdentity[])[] = []
  isDown = false
  refuses: (row: StoredEvent) => boolean = () => false
  refusesRecording: (row: StoredRecording) => boolean = () => false

  override async insert(rows: EventRows) {
    this.insertCount++
    this.#requireUp()
    this.inserted.push(...rows.events.filter(row => this.findRefusal(row) === null))
    return super.insert(rows)
  }

  override async findChargedTimes(identities: readonly EventIdentity[]) {
    this.asked.push(identities)
    this.#requireUp()
    return super.findChargedTimes(identities)
  }

  override async findFlagCalls(calls: readonly EventIdentity[]) {
    this.#requireUp()
    return super.findFlagCalls(calls)
  }

  override async findOverrides(ids: Parameters<MemoryEventStore['findOverrides']>[0]) {
    this.#requireUp()
    return super.findOverrides(ids)
  }

  protected override findRefusal(row: StoredEvent): string | null {
    return this.refuses(row) ? 'refused for its content' : super.findRefusal(row)
  }

  protected override findRecordingRefusal(row: StoredRecording): string | null {
    return this.refusesRecording(row) ? 'refused for its content' : super.findRecordingRefusal(row)
  }

  #requireUp(): void {
    if (this.isDown) throw new PortError('event-store', 'unavailable')
  }
}
