// The event store of the worker and the usage schedule, in memory, for tests of its users. It passes the contracts of
// `event-writer` and `charged-usage`. It is not durable, has no limits of time or memory, and no call fails. Tests can
// see its rows, which no port shows.

import assert from 'node:assert/strict'
import { quotaResourceOf } from '#core/capture/quota-resource.ts'
import { groupEventNames } from '#core/events/event-names.ts'
import { type GroupIdentity, readGroupIdentity } from '#core/events/group-identity.ts'
import { isStorableTime } from '#core/events/storable-time.ts'
import {
  buildIdentityKey,
  type EventIdentity,
  type PersonIdOverride,
  type RejectedEvent,
  type StoredEvent,
  type StoredRecording,
} from '#core/events/stored-event.ts'
import { isUuid } from '#core/events/uuid.ts'
import { type JsonObject, parseJson } from '#core/json.ts'
import {
  type DeduplicatedCall,
  flagCallEventName,
  flagCallKindKeys,
  type StoredFlagCall,
} from '#core/processing/deduplicate-flag-calls.ts'
import type { HistoricEvent } from '#core/processing/history/historic-event.ts'
import type { RefusedRow } from '#core/processing/refused-rows.ts'
import { noEventUsage, utcDay } from '#core/usage.ts'
import type { EventHistory, HistoricLink, HistorySubjects } from '#ports/events/event-history.ts'
import type { ChargedUsage, UsageDay } from '#ports/events/event-store-upkeep.ts'
import type { EventRows, EventWriter, GetKnownProperties, IdShare } from '#ports/events/event-writer.ts'
import { keyOf } from './memory-state.ts'

/** A copy of an event. Of the copies of one identity the highest rank wins, and of equal ranks the last copy. */
interface Copy {
  readonly row: StoredEvent
  readonly rank: number
  readonly place: number
  /** Epoch ms by the store's clock. */
  readonly insertedAtMs: number
  /** Another copy of the same job, which loses to this one. */
  readonly loser?: Copy | undefined
}

export class MemoryEventStore implements EventWriter, EventHistory, ChargedUsage {
  /** By `buildIdentityKey`: the winning copy of each job. */
  readonly copies = new Map<string, Map<number, Copy>>()
  readonly pending: StoredEvent[] = []
  readonly rejected = new Map<string, RejectedEvent>()
  /** By project, session and uuid. */
  readonly recordings = new Map<string, StoredRecording>()
  /** By project and distinct id. */
  readonly overrides = new Map<string, PersonIdOverride>()
  /** By uuid. */
  readonly deduplicated = new Map<string, DeduplicatedCall>()
  insertedCount = 0
  /** The clock of the store, epoch ms. */
  nowMs: () => number = () => 0
  /** How often persons had been erased when a row was made. */
  readonly #erasures = new WeakMap<StoredEvent, number>()

  /** Each event as queries see it, by `buildIdentityKey`. */
  get rows(): Map<string, StoredEvent> {
    return new Map(Array.from(this.copies.keys(), key => [key, this.#find(key)!]))
  }

  async insert(rows: EventRows): Promise<{ refused: readonly RefusedRow[] }> {
    const refused: RefusedRow[] = []
    const storable = <Row>(list: RefusedRow['list'], given: readonly Row[], findRefusal: (row: Row) => string | null) =>
      given.filter((row, index) => {
        const message = findRefusal(row)
        if (message !== null) refused.push({ list, index, message })
        return message === null
      })
    for (const row of [...rows.events, ...rows.pendingEvents])
      this.#erasures.set(row, rows.erasures?.get(row.projectId) ?? 0)
    for (const row of storable('events', rows.events, each => this.findRefusal(each)))
      this.#put(row, rows.areRestored === true)
    this.pending.push(...storable('pendingEvents', rows.pendingEvents, each => this.findRefusal(each)))
    for (const row of storable('recordings', rows.recordings, each => this.findRecordingRefusal(each)))
      this.recordings.set(keyOf(row.projectId, row.sessionId, row.uuid), row)
    for (const reject of rows.rejected) this.rejected.set(reject.rejectId, reject)
    for (const call of rows.deduplicated ?? [])
      if ((this.deduplicated.get(call.uuid)?.chargedAtMs ?? Number.POSITIVE_INFINITY) > call.chargedAtMs)
        this.deduplicated.set(call.uuid, call)
    for (const override of rows.overrides) {
      const key = keyOf(override.projectId, override.distinctId)
      if ((this.overrides.get(key)?.version ?? -1) <= override.version) this.overrides.set(key, override)
    }
    return { refused }
  }

  async findChargedTimes(identities: readonly EventIdentity[]): Promise<readonly (number | null)[]> {
    return identities.map(identity => this.copies.get(buildIdentityKey(identity))?.get(0)?.row.chargedAtMs ?? null)
  }

  async findFlagCalls(calls: readonly EventIdentity[]): Promise<readonly StoredFlagCall[]> {
    const kinds = new Map<string, StoredFlagCall & { uuids: string[] }>()
    const subjectOf = ({ projectId, distinctId, timestampMs }: EventIdentity) =>
      keyOf(projectId, distinctId, utcDay(timestampMs))
    const asked = new Set(calls.map(subjectOf))
    const askedUuids = new Set(calls.map(({ uuid }) => uuid))
    for (const copies of this.copies.values()) {
      const row = copies.get(0)?.row
      if (row === undefined || row.event !== flagCallEventName || !asked.has(subjectOf(row))) continue
      const properties = kindProperties(row)
      const key = keyOf(subjectOf(row), JSON.stringify(properties))
      const kind = kinds.get(key) ?? { ...row, properties, uuids: [] }
      kinds.set(key, kind)
      if (askedUuids.has(row.uuid)) kind.uuids.push(row.uuid)
    }
    return Array.from(kinds.values(), ({ projectId, timestampMs, distinctId, properties, uuids }) => {
      return { projectId, timestampMs, distinctId, properties, uuids }
    })
  }

  async findOverrides(ids: Parameters<EventWriter['findOverrides']>[0]): Promise<readonly PersonIdOverride[]> {
    return ids.flatMap(({ projectId, distinctId }) => this.overrides.get(keyOf(projectId, distinctId)) ?? [])
  }

  async countPendingDistinctIds(importJobId: number): Promise<number> {
    return this.#pendingIds(importJobId).length
  }

  async addKnownProperties(importJobId: number, { index, count }: IdShare, knownOf: GetKnownProperties): Promise<void> {
    const known = await knownOf(this.#pendingIds(importJobId).filter((_, place) => place % count === index))
    for (const [place, row] of this.pending.entries()) {
      const text = known.get(row.distinctId)
      if (text === undefined || !hasPendingPerson(row, importJobId)) continue
      const own = parseJson(row.personPropertiesJson) as JsonObject
      const missing = Object.entries(parseJson(text) as JsonObject).filter(([key]) => !Object.hasOwn(own, key))
      const personPropertiesJson = JSON.stringify({ ...own, ...Object.fromEntries(missing) })
      this.pending[place] = { ...row, personPropertiesJson }
      this.#erasures.set(this.pending[place], this.#erasures.get(row) ?? 0)
    }
  }

  #pendingIds(importJobId: number): string[] {
    const rows = this.pending.filter(row => hasPendingPerson(row, importJobId))
    return [...new Set(rows.map(({ distinctId }) => distinctId))]
  }

  publishJob(importJobId: number): Promise<void> {
    assertOwnId(importJobId)
    for (const row of this.#takePending(importJobId)) this.#put(row, false)
    return Promise.resolve()
  }

  discardJob(importJobId: number): Promise<void> {
    assertOwnId(importJobId)
    this.#takePending(importJobId)
    for (const [key, copies] of this.copies) {
      copies.delete(importJobId)
      if (copies.size === 0) this.copies.delete(key)
    }
    return Promise.resolve()
  }

  deleteSharedJobRows(importJobId: number): Promise<void> {
    return this.discardJob(importJobId)
  }

  async countPendingRows(projectId: number, importJobId: number): Promise<number> {
    const ofJob = this.pending.filter(row => row.projectId === projectId && row.importJobId === importJobId)
    return new Set(ofJob.map(row => buildIdentityKey(row))).size
  }

  async listJobIds(projectId: number, importJobId: number, after: string | null, limit: number): Promise<string[]> {
    const ids = this.#rowsOf(projectId).flatMap(({ row }) => (row.importJobId === importJobId ? row.distinctId : []))
    return pageOf(ids, after, limit)
  }

  async listJobGroups(projectId: number, importJobId: number, after: GroupIdentity | null, limit: number) {
    const names = this.#rowsOf(projectId).flatMap(({ row }) => {
      const identity = row.importJobId === importJobId ? identityOf(row) : null
      return identity === null ? [] : keyOf(identity.typeName, identity.key)
    })
    return pageOf(names, after && keyOf(after.typeName, after.key), limit).map(name => {
      const [typeName, key] = JSON.parse(name) as [string, string]
      return { typeName, key }
    })
  }

  async findLinks(projectId: number, distinctIds: readonly string[]): Promise<HistoricLink[]> {
    const asked = new Set(distinctIds)
    const links = this.#rowsOf(projectId)
      .filter(({ row }) => row.linkedId !== '' && (asked.has(row.distinctId) || asked.has(row.linkedId)))
      .map(({ row: { distinctId, linkedId } }) => [keyOf(distinctId, linkedId), { distinctId, linkedId }] as const)
    return [...new Map(links).values()]
  }

  async readHistory(projectId: number, { distinctIds, groups }: HistorySubjects): Promise<HistoricEvent[]> {
    const asked = new Set(distinctIds ?? groups.map(({ typeName, key }) => keyOf(typeName, key)))
    const isAsked = (row: StoredEvent) => {
      if (distinctIds !== undefined) return asked.has(row.distinctId)
      const identity = identityOf(row)
      return identity !== null && asked.has(keyOf(identity.typeName, identity.key))
    }
    return this.#rowsOf(projectId)
      .filter(({ row }) => isAsked(row))
      .map(({ row, insertedAtMs: storedAtMs, rank }) => {
        const timestampMs = row.timestampMs + (row.sentLaterMs ?? 0)
        const isOfJob = (row.importPartition ?? row.importJobId) > 1
        const erasuresBefore = this.#erasures.get(row) ?? 0
        const isRestored = rank % 2 === 0
        return { ...row, timestampMs, storedAtMs, isOfJob, isRestored, erasuresBefore, changesJson: row.propertiesJson }
      })
  }

  #rowsOf(projectId: number): Copy[] {
    return [...this.copies.values()]
      .flatMap(copies => [...copies.values()].flatMap(withLosers))
      .filter(({ row }) => row.projectId === projectId)
  }

  async hasRowsOfGroupType(projectId: number, importJobId: number, typeIndex: number): Promise<boolean> {
    const isOfType = (row: StoredEvent) =>
      row.projectId === projectId && row.importJobId !== importJobId && row.groups[typeIndex] !== ''
    return (
      this.pending.some(isOfType) ||
      this.copies.values().some(copies => copies.values().some(({ row }) => isOfType(row)))
    )
  }

  async countUsage(projectId: number, fromDay: string, toDay: string): Promise<readonly UsageDay[]> {
    const days = new Map<string, { -readonly [K in keyof UsageDay]: UsageDay[K] }>()
    const countOf = (timeMs: number) => {
      const day = utcDay(timeMs)
      const counts = days.get(day) ?? { day, ...noEventUsage }
      days.set(day, counts)
      return counts
    }
    for (const row of this.rows.values()) if (row.projectId === projectId) countEvent(countOf(row.chargedAtMs), row)
    for (const call of this.deduplicated.values())
      if (call.projectId === projectId) countOf(call.chargedAtMs).eventsCharged++
    const sessions = new Map<string, number>()
    for (const { projectId: itsProjectId, sessionId, receivedAtMs } of this.recordings.values())
      if (itsProjectId === projectId)
        sessions.set(sessionId, Math.min(sessions.get(sessionId) ?? receivedAtMs, receivedAtMs))
    for (const firstMs of sessions.values()) countOf(firstMs).recordings++
    return [...days.values()]
      .filter(({ day }) => day >= fromDay && day <= toDay)
      .sort((a, b) => (a.day < b.day ? -1 : 1))
  }

  protected findRefusal(row: StoredEvent): string | null {
    if (!isUuid(row.uuid)) return 'uuid is not a UUID'
    if (!isUuid(row.personId)) return 'person_id is not a UUID'
    const times = [row.timestampMs, row.capturedAtMs, row.chargedAtMs, row.personCreatedAtMs]
    return times.every(isStorableTime) ? null : 'a time is outside the years 1900 to 2299'
  }

  protected findRecordingRefusal(row: StoredRecording): string | null {
    return isUuid(row.uuid) ? null : 'uuid is not a UUID'
  }

  #put(row: StoredEvent, isRestored: boolean): void {
    const key = buildIdentityKey(row)
    const copies = this.copies.get(key) ?? new Map<number, Copy>()
    this.copies.set(key, copies)
    const rank = (row.importJobId === 0 ? 2 : 0) + (isRestored ? 0 : 1)
    const copy = { row, rank, place: this.insertedCount++, insertedAtMs: this.nowMs() }
    const before = copies.get(row.importJobId)
    if (before === undefined || before.rank <= rank) copies.set(row.importJobId, { ...copy, loser: before })
    else copies.set(row.importJobId, { ...before, loser: { ...copy, loser: before.loser } })
  }

  #find(key: string): StoredEvent | undefined {
    const copies = [...(this.copies.get(key)?.values() ?? [])]
    return copies.sort((a, b) => b.rank - a.rank || b.place - a.place)[0]?.row
  }

  #takePending(importJobId: number): StoredEvent[] {
    const { taken = [], left = [] } = Object.groupBy(this.pending, row =>
      row.importJobId === importJobId ? 'taken' : 'left',
    )
    this.pending.splice(0, this.pending.length, ...left)
    return taken
  }
}

function identityOf({ event, propertiesJson }: StoredEvent): GroupIdentity | null {
  return groupEventNames.has(event) ? readGroupIdentity(parseJson(propertiesJson) as JsonObject) : null
}

function withLosers(copy: Copy): Copy[] {
  return copy.loser === undefined ? [copy] : [copy, ...withLosers(copy.loser)]
}

function pageOf(names: readonly string[], after: string | null, limit: number): string[] {
  const left = [...new Set(names)].filter(name => after === null || name > after)
  return left.sort().slice(0, limit)
}

function kindProperties({ propertiesJson }: StoredEvent): JsonObject {
  const all = parseJson(propertiesJson) as JsonObject
  const kind: JsonObject = {}
  for (const key of flagCallKindKeys) if (all[key] !== undefined) kind[key] = all[key]
  return kind
}

function countEvent(counts: { -readonly [K in keyof UsageDay]: UsageDay[K] }, row: StoredEvent): void {
  if (row.importJobId > 0) {
    counts.eventsImported++
    return
  }
  counts.eventsCharged++
  const resource = quotaResourceOf(row.event, () => '$product_tour_id' in (parseJson(row.propertiesJson) as JsonObject))
  if (resource === 'exceptions') counts.exceptions++
  if (resource === 'llm_events') counts.llmEvents++
  if (resource === 'survey_responses') counts.surveyResponses++
}

function hasPendingPerson(row: StoredEvent, importJobId: number): boolean {
  return row.importJobId === importJobId && row.personMode === 'full'
}

function assertOwnId(importJobId: number): void {
  assert(Number.isInteger(importJobId) && importJobId >= 2, `import job ${importJobId} has no rows of its own`)
}
