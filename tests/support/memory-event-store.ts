import { quotaResourceOf } from '#core/capture/quota-resource.ts'
import type {
  EventIdentity,
  PersonIdOverride,
  RejectedEvent,
  StoredEvent,
  StoredReplay,
} from '#core/events/stored-event.ts'
import { type JsonObject, parseJson } from '#core/json.ts'
import { identityKey } from '#core/processing/charge-once.ts'
import { flagCallEventName, type StoredFlagCall, type ThinnedCall } from '#core/processing/thin-flag-calls.ts'
import { noEventUsage, utcDay } from '#core/usage.ts'
import type { EventRows, EventStore, RefusedRow, UsageDay } from '#ports/event-store.ts'
import { PortError } from '#ports/port-error.ts'

/** The part of the event store that processing needs, in memory: a repeated row replaces itself, as in the real one. */
export class MemoryEventStore
  implements Pick<EventStore, 'insert' | 'findChargedTimes' | 'findOverrides' | 'findFlagCalls' | 'countUsage'>
{
  readonly rows = new Map<string, StoredEvent>()
  readonly rejected = new Map<string, RejectedEvent>()
  readonly replays = new Map<string, StoredReplay>()
  readonly overrides = new Map<string, PersonIdOverride>()
  /** By uuid. */
  readonly thinned = new Map<string, ThinnedCall>()
  /** Every row of every call, repeats included. */
  readonly inserted: StoredEvent[] = []
  insertCount = 0
  /** What was asked of `findChargedTimes`, call by call. */
  readonly asked: (readonly EventIdentity[])[] = []
  isDown = false
  refuses: (row: StoredEvent) => boolean = () => false
  refusesReplay: (row: StoredReplay) => boolean = () => false

  async insert(rows: EventRows): ReturnType<EventStore['insert']> {
    this.insertCount++
    if (this.isDown) throw new PortError('event-store', 'unavailable')
    const refused: RefusedRow[] = []
    rows.events.forEach((row, index) => {
      if (this.refuses(row)) {
        refused.push({ list: 'events', index, message: 'refused for its content' })
        return
      }
      this.inserted.push(row)
      const key = identityKey(row)
      if (row.importJobId === 0 || this.rows.get(key)?.importJobId !== 0) this.rows.set(key, row)
    })
    rows.replays.forEach((replay, index) => {
      if (this.refusesReplay(replay)) refused.push({ list: 'replays', index, message: 'refused for its content' })
      else this.replays.set(JSON.stringify([replay.projectId, replay.sessionId, replay.uuid]), replay)
    })
    for (const reject of rows.rejected) this.rejected.set(reject.rejectId, reject)
    for (const call of rows.thinned ?? [])
      if ((this.thinned.get(call.uuid)?.chargedAtMs ?? Number.POSITIVE_INFINITY) > call.chargedAtMs)
        this.thinned.set(call.uuid, call)
    for (const override of rows.overrides) {
      const key = JSON.stringify([override.projectId, override.distinctId])
      if ((this.overrides.get(key)?.version ?? -1) <= override.version) this.overrides.set(key, override)
    }
    return { refused }
  }

  async findChargedTimes(identities: readonly EventIdentity[]): Promise<readonly (number | null)[]> {
    this.asked.push(identities)
    if (this.isDown) throw new PortError('event-store', 'unavailable')
    return identities.map(identity => {
      const row = this.rows.get(identityKey(identity))
      return row?.importJobId === 0 ? row.chargedAtMs : null
    })
  }

  async findFlagCalls(calls: readonly EventIdentity[]): Promise<readonly StoredFlagCall[]> {
    if (this.isDown) throw new PortError('event-store', 'unavailable')
    const dayOf = (timeMs: number) => Math.floor(timeMs / 86_400_000)
    const isOf = (row: StoredEvent) => (call: EventIdentity) =>
      call.projectId === row.projectId &&
      call.distinctId === row.distinctId &&
      dayOf(call.timestampMs) === dayOf(row.timestampMs)
    return [...this.rows.values()]
      .filter(row => row.event === flagCallEventName && row.importJobId === 0 && calls.some(isOf(row)))
      .map(({ projectId, timestampMs, distinctId, uuid, propertiesJson }) => ({
        projectId,
        timestampMs,
        distinctId,
        properties: parseJson(propertiesJson) as JsonObject,
        uuids: calls.some(call => call.uuid === uuid) ? [uuid] : [],
      }))
  }

  async findOverrides(ids: Parameters<EventStore['findOverrides']>[0]): Promise<readonly PersonIdOverride[]> {
    if (this.isDown) throw new PortError('event-store', 'unavailable')
    return ids.flatMap(({ projectId, distinctId }) => this.overrides.get(JSON.stringify([projectId, distinctId])) ?? [])
  }

  async countUsage(projectId: number, fromDay: string, toDay: string): Promise<readonly UsageDay[]> {
    const days = new Map<string, { -readonly [K in keyof UsageDay]: UsageDay[K] }>()
    for (const row of this.rows.values()) {
      const day = utcDay(row.chargedAtMs)
      if (row.projectId !== projectId || day < fromDay || day > toDay) continue
      const counts = days.get(day) ?? { day, ...noEventUsage }
      days.set(day, counts)
      if (row.importJobId > 0) {
        counts.eventsImported++
        continue
      }
      counts.eventsCharged++
      const resource = quotaResourceOf(row.event, () => '$product_tour_id' in JSON.parse(row.propertiesJson))
      if (resource === 'exceptions') counts.exceptions++
      if (resource === 'llm_events') counts.llmEvents++
      if (resource === 'survey_responses') counts.surveyResponses++
    }
    return [...days.values()]
  }
}
