// The event store of the worker and the usage schedule, in memory, for tests of its users. It passes the contracts of
// `event-writer` and `charged-usage`. It is not durable, has no limits of time or memory, and no call fails. Tests can
// see its rows, which no port shows.

import assert from 'node:assert/strict'
import { quotaResourceOf } from '#core/capture/quota-resource.ts'
import { groupEventNames } from '#core/events/event-names.ts'
import { readGroupIdentity } from '#core/events/group-identity.ts'
import { isStorableTime } from '#core/events/storable-time.ts'
import {
  type EventIdentity,
  identityKey,
  type PersonIdOverride,
  type RejectedEvent,
  type StoredEvent,
  type StoredRecording,
} from '#core/events/stored-event.ts'
import { isUuid } from '#core/events/uuid.ts'
import type { ImportedGroupKey, ImportedKey, LaterWrite, OtherGroupUse, OtherUse } from '#core/imports/other-use.ts'
import { type JsonObject, parseJson } from '#core/json.ts'
import {
  type DeduplicatedCall,
  flagCallEventName,
  flagCallKindKeys,
  type StoredFlagCall,
} from '#core/processing/deduplicate-flag-calls.ts'
import { readMergeRequest } from '#core/processing/person-merge.ts'
import type { RefusedRow } from '#core/processing/refused-rows.ts'
import { noEventUsage, utcDay } from '#core/usage.ts'
import type { ChargedUsage, UsageDay } from '#ports/events/charged-usage.ts'
import type { EventRows, EventWriter, IdShare, KnownOf } from '#ports/events/event-writer.ts'
import { type LaterImports, otherUseCountMax } from '#ports/events/imported-rows.ts'
import { decisiveOf, writesOf } from './imported-writes.ts'
import { keyOf } from './memory-state.ts'

/** A copy of an event. Of the copies of one identity the highest rank wins, and of equal ranks the last copy. */
interface Copy {
  readonly row: StoredEvent
  readonly rank: number
  readonly place: number
  /** Epoch ms by the store's clock. */
  readonly insertedAtMs: number
}

export class MemoryEventStore implements EventWriter, ChargedUsage {
  /** By `identityKey`: the winning copy of each job. */
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

  /** Each event as queries see it, by `identityKey`. */
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
    return identities.map(identity => this.copies.get(identityKey(identity))?.get(0)?.row.chargedAtMs ?? null)
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

  async addKnownProperties(importJobId: number, { index, count }: IdShare, knownOf: KnownOf): Promise<void> {
    const known = await knownOf(this.#pendingIds(importJobId).filter((_, place) => place % count === index))
    for (const [place, row] of this.pending.entries()) {
      const text = known.get(row.distinctId)
      if (text === undefined || !hasPendingPerson(row, importJobId)) continue
      const own = parseJson(row.personPropertiesJson) as JsonObject
      const missing = Object.entries(parseJson(text) as JsonObject).filter(([key]) => !Object.hasOwn(own, key))
      const personPropertiesJson = JSON.stringify({ ...own, ...Object.fromEntries(missing) })
      this.pending[place] = { ...row, personPropertiesJson }
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

  discardDay(importJobId: number): Promise<void> {
    return this.discardJob(importJobId)
  }

  async countPendingRows(projectId: number, importJobId: number): Promise<number> {
    const ofJob = this.pending.filter(row => row.projectId === projectId && row.importJobId === importJobId)
    return new Set(ofJob.map(row => identityKey(row))).size
  }

  async findUsedIds(projectId: number, importJobId: number, distinctIds: readonly string[]): Promise<string[]> {
    const used = new Set<string>()
    for (const copies of this.copies.values())
      for (const { row } of copies.values())
        if (row.projectId === projectId && row.importJobId !== importJobId && row.personMode !== 'propertyless')
          used.add(row.distinctId)
    return distinctIds.filter(id => used.has(id))
  }

  async findOtherUses(
    projectId: number,
    importJobId: number,
    distinctIds: readonly string[],
    sinceMs: number,
  ): Promise<OtherUse[]> {
    const asked = new Set(distinctIds)
    const uses = new Map<string, OtherUse>()
    for (const copies of this.copies.values())
      for (const { row, insertedAtMs } of copies.values()) {
        const { distinctId, event, propertiesJson, personMode } = row
        if (row.projectId !== projectId || row.importJobId === importJobId) continue
        if (personMode === 'propertyless') continue
        const properties = parseJson(propertiesJson) as JsonObject
        const otherId = readMergeRequest(event, properties)?.otherId ?? null
        const jobId = row.importPartition === 1 ? 0 : row.importJobId
        const key = JSON.stringify([jobId, distinctId, otherId])
        const known = uses.get(key)
        const isLater = insertedAtMs >= sinceMs
        const isAsked = asked.has(distinctId) || (asked.has(otherId ?? '') && (jobId !== 0 || isLater))
        if (!isAsked) continue
        const writes =
          (jobId !== 0 || isLater) &&
          ['$set', '$set_once', '$unset'].some(name => Object.keys(Object(properties[name])).length > 0)
        uses.set(key, {
          importJobId: jobId,
          distinctId,
          otherId,
          isLater: isLater || known?.isLater === true,
          writes: writes || known?.writes === true,
        })
      }
    const isAsked = new Set(distinctIds)
    const linksAsked = ({ distinctId, otherId }: OtherUse) => isAsked.has(distinctId) && isAsked.has(otherId ?? '')
    const counts = new Map<string, number>()
    return [...uses.values()]
      .toSorted((a, b) => Number(linksAsked(b)) - Number(linksAsked(a)))
      .filter(({ distinctId, otherId }) => {
        const id = isAsked.has(distinctId) ? distinctId : (otherId ?? '')
        counts.set(id, (counts.get(id) ?? 0) + 1)
        return counts.get(id)! <= otherUseCountMax
      })
  }

  async findLaterWrites(
    projectId: number,
    distinctIds: readonly string[],
    keys: readonly string[],
    sinceMs: number,
  ): Promise<LaterWrite[]> {
    const asked = new Set(distinctIds)
    const writes = Array.from(this.copies.values(), copies => copies.get(0))
      .filter(copy => copy !== undefined)
      .filter(({ row, insertedAtMs }) => insertedAtMs >= sinceMs && row.projectId === projectId)
      .filter(({ row }) => asked.has(row.distinctId) && row.personMode === 'full' && row.event !== '$exception')
      .toSorted((a, b) => a.place - b.place)
      .flatMap(({ row, insertedAtMs: storedAtMs }) => {
        const { $set: set, $set_once: set_once, $unset: unset } = parseJson(row.propertiesJson) as JsonObject
        return writesOf(row, { set, set_once, unset }, keys).map(({ importJobId: _, ...write }) => {
          return { distinctId: row.distinctId, ...write, storedAtMs } as LaterWrite
        })
      })
    const decisive = new Map<string, LaterWrite>()
    for (const write of writes) {
      const key = JSON.stringify([write.distinctId, write.op, write.key, write.value])
      if (write.op === 'unset') decisive.delete(key)
      if (!decisive.has(key)) decisive.set(key, write)
    }
    return [...decisive.values()]
  }

  async findImportedKeys(
    imports: LaterImports,
    distinctIds: readonly string[],
    keys: readonly string[],
  ): Promise<ImportedKey[]> {
    const asked = new Set(distinctIds)
    const found = this.#importedRows(imports)
      .filter(({ distinctId, personMode }) => asked.has(distinctId) && personMode === 'full')
      .flatMap(row => {
        const { $set, $set_once, $unset } = parseJson(row.propertiesJson) as JsonObject
        const maps = { set: $set, set_once: $set_once, unset: $unset, first: null }
        return writesOf(row, maps, keys).map(write => ({ distinctId: row.distinctId, ...write }))
      })
    return decisiveOf(found, ({ distinctId }) => distinctId)
  }

  async findImportedGroupKeys(
    imports: LaterImports,
    groups: readonly Pick<OtherGroupUse, 'typeName' | 'key'>[],
    keys: readonly string[],
  ): Promise<ImportedGroupKey[]> {
    const asked = new Set(groups.map(({ typeName, key }) => keyOf(typeName, key)))
    const found = this.#importedRows(imports)
      .filter(({ event }) => groupEventNames.has(event))
      .flatMap(row => {
        const properties = parseJson(row.propertiesJson) as JsonObject
        const identity = readGroupIdentity(properties)
        if (identity === null || !asked.has(keyOf(identity.typeName, identity.key))) return []
        const { typeName, key: groupKey } = identity
        const maps = { set: properties.$group_set, unset: properties.$group_unset, first: null }
        return writesOf(row, maps, keys).map(write => ({ typeName, groupKey, ...write }))
      })
    return decisiveOf(found, ({ typeName, groupKey }) => keyOf(typeName, groupKey))
  }

  #importedRows({ projectId, jobIds, sinceMs }: LaterImports): StoredEvent[] {
    return [...this.copies.values()]
      .flatMap(copies => [...copies.values()])
      .filter(
        ({ row, insertedAtMs }) =>
          row.projectId === projectId &&
          (row.importPartition === 1 ? insertedAtMs >= sinceMs : jobIds.includes(row.importJobId)),
      )
      .map(({ row }) => row)
  }

  async findOtherGroupUses(
    projectId: number,
    importJobId: number,
    groups: readonly Pick<OtherGroupUse, 'typeName' | 'key'>[],
  ): Promise<OtherGroupUse[]> {
    const asked = new Set(groups.map(({ typeName, key }) => keyOf(typeName, key)))
    const uses = new Map<string, OtherGroupUse>()
    for (const copies of this.copies.values())
      for (const { row } of copies.values()) {
        if (row.projectId !== projectId || row.importJobId === importJobId || !groupEventNames.has(row.event)) continue
        const identity = readGroupIdentity(parseJson(row.propertiesJson) as JsonObject)
        if (identity === null || !asked.has(keyOf(identity.typeName, identity.key))) continue
        const { typeName, key } = identity
        const use = { importJobId: row.importPartition === 1 ? 0 : row.importJobId, typeName, key }
        uses.set(keyOf(use.importJobId, typeName, key), use)
      }
    return [...uses.values()]
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
    const key = identityKey(row)
    const copies = this.copies.get(key) ?? new Map<number, Copy>()
    this.copies.set(key, copies)
    const rank = (row.importJobId === 0 ? 2 : 0) + (isRestored ? 0 : 1)
    const copy = { row, rank, place: this.insertedCount++, insertedAtMs: this.nowMs() }
    const before = copies.get(row.importJobId)
    if (before === undefined || before.rank <= rank) copies.set(row.importJobId, copy)
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
