// Rejects in memory, for tests of replays. Passes the contract of `reject-store`; nothing is durable, expires or fails.

import type { RejectedEvent } from '#core/events/stored-event.ts'
import type { EventRows, EventWriter } from '#ports/events/event-writer.ts'
import type { RejectedFilter, RejectedQuery, RejectStore, ReplayedReject } from '#ports/events/reject-store.ts'

const pageBytesMax = 8 * 1024 * 1024

export class MemoryRejectStore implements Pick<EventWriter, 'insert'>, RejectStore {
  readonly #rejects = new Map<string, RejectedEvent>()
  readonly #replayedTimes = new Map<string, number>()

  async insert({ rejected }: EventRows): Promise<{ refused: [] }> {
    for (const reject of rejected) this.#rejects.set(reject.rejectId, reject)
    return { refused: [] }
  }

  async listRejected(query: RejectedQuery): ReturnType<RejectStore['listRejected']> {
    const found = this.#find(query)
    let bytes = 0
    const rejected = found.slice(0, query.limit).filter(({ body }) => {
      const fits = bytes < pageBytesMax
      bytes += Buffer.byteLength(body)
      return fits
    })
    const last = rejected.at(-1)
    const hasMore = rejected.length < found.length && last !== undefined
    return {
      rejected: rejected.map(reject => ({ ...reject, replayedAtMs: this.#replayedTimes.get(reject.rejectId) ?? null })),
      next: hasMore ? { receivedAtMs: last.receivedAtMs, rejectId: last.rejectId } : null,
    }
  }

  async countRejected(filter: RejectedFilter): Promise<number> {
    return this.#find(filter).length
  }

  async markReplayed(rejects: readonly ReplayedReject[]): Promise<void> {
    for (const { rejectId, replayedAtMs } of rejects) this.#replayedTimes.set(rejectId, replayedAtMs)
  }

  #find(filter: RejectedFilter): RejectedEvent[] {
    const sign = filter.oldestFirst === true ? 1 : -1
    const { beyond } = filter
    return [...this.#rejects.values()]
      .filter(reject => this.#matches(reject, filter))
      .filter(reject => beyond === undefined || sign * compare(reject, beyond) > 0)
      .sort((a, b) => sign * compare(a, b))
  }

  #matches(reject: RejectedEvent, filter: RejectedFilter): boolean {
    const isOrAny = <T>(wanted: T | undefined, value: T) => wanted === undefined || wanted === value
    const { field, search, replayed, ids, afterMs, beforeMs } = filter
    return (
      reject.projectId === filter.projectId &&
      (ids === undefined || ids.includes(reject.rejectId)) &&
      isOrAny(filter.reason, reject.reason) &&
      (field === undefined || reject.field === field || reject.field.endsWith(`.${field}`)) &&
      isOrAny(filter.event, reject.event) &&
      isOrAny(filter.distinctId, reject.distinctId) &&
      isOrAny(filter.uuid, reject.uuid) &&
      isOrAny(filter.lane, reject.lane) &&
      (afterMs === undefined || reject.receivedAtMs > afterMs) &&
      (beforeMs === undefined || reject.receivedAtMs < beforeMs) &&
      (search === undefined || reject.body.toLowerCase().includes(search.toLowerCase())) &&
      isOrAny(replayed, this.#replayedTimes.has(reject.rejectId))
    )
  }
}

type Place = { readonly receivedAtMs: number; readonly rejectId: string }

function compare(a: Place, b: Place): number {
  return a.receivedAtMs - b.receivedAtMs || (a.rejectId < b.rejectId ? -1 : a.rejectId > b.rejectId ? 1 : 0)
}
