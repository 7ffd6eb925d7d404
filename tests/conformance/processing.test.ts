import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { memoryChunkStore } from '#adapters/memory/memory-chunk-store.ts'
import { type MemoryState, memoryState } from '#adapters/memory/memory-state.ts'
import { normalizeEvent } from '#core/capture/normalize-event.ts'
import type { CapturedEvent } from '#core/events/captured-event.ts'
import type { StoredEvent } from '#core/events/stored-event.ts'
import type { GeoipLocation } from '#core/geoip.ts'
import type { JsonObject, JsonValue } from '#core/json.ts'
import { chunkSubjects, parseChunk } from '#core/processing/parse-chunk.ts'
import { processChunk } from '#core/processing/process-chunk.ts'
import { loadWhole } from '../support/load-chunk.ts'
import { aProject } from '../support/state-builders.ts'

// The vectors about persons, groups, imports and GeoIP, from the accepted event on: no HTTP, no log, no event store.

interface Vector {
  readonly id: string
  readonly group: string
  readonly description: string
  readonly config?: {
    geoip?: Record<string, GeoipLocation>
    project?: { anonymize_ips?: boolean }
    [key: string]: unknown
  }
  readonly headers?: Record<string, string>
  readonly body?: string
  readonly steps?: readonly { readonly body: string; readonly headers?: Record<string, string> }[]
  readonly now?: string
  readonly stored_events?: readonly JsonObject[]
  readonly persons?: readonly JsonObject[]
  readonly persons_deleted?: readonly string[]
  readonly person_distinct_ids?: readonly JsonObject[]
  readonly groups?: readonly JsonObject[]
  readonly group_types?: Record<string, number>
  readonly warnings?: readonly string[]
}

const file = JSON.parse(readFileSync(new URL('./ingestion-vectors.json', import.meta.url), 'utf8')) as {
  meta: { now_default: string; client_ip_default: string }
  vectors: Vector[]
}
const groups = new Set(['person', 'geoip', 'dedupe', 'historical'])
/** These are decided before an event is accepted. */
const decidedAtTheEdge = new Set(['import_mode', 'historical_rerouting', 'mode'])

for (const group of groups) {
  describe(`processing: ${group} vectors`, () => {
    for (const vector of file.vectors) {
      if (vector.group !== group) continue
      if (Object.keys(vector.config ?? {}).some(key => decidedAtTheEdge.has(key))) continue
      it(`${vector.id}: ${vector.description}`, () => runVector(vector))
    }
  })
}

async function runVector(vector: Vector): Promise<void> {
  const project = aProject({ anonymizeIps: vector.config?.project?.anonymize_ips ?? false })
  const state = memoryState([project])
  const store = memoryChunkStore(state)
  await store.claimPosition('main', 'w')
  const rows = new Map<string, StoredEvent>()
  const steps = vector.steps ?? [{ body: vector.body ?? '', ...(vector.headers ? { headers: vector.headers } : {}) }]
  let offset = 0
  for (const step of steps) {
    const records = capturedEvents(step.body, step.headers ?? {}, vector).map(event => ({
      kind: 'event' as const,
      event,
    }))
    const chunk = parseChunk({ lane: 'main', firstOffset: offset, records }, new Map())
    const loaded = await loadWhole(store, chunkSubjects(chunk))
    const processed = processChunk(chunk, loaded, { lookUpGeoip: address => vector.config?.geoip?.[address] ?? null })
    for (const row of processed.rows.events) rows.set(row.uuid, row)
    offset += records.length
    const position = { lane: 'main' as const, ownerId: 'w', offset, committedAtMs: 0 }
    assert.equal(await store.commitChunk(processed.changes, position), 'committed')
  }
  compareEvents(vector, [...rows.values()])
  compareState(vector, state)
}

function capturedEvents(body: string, headers: Record<string, string>, vector: Vector): CapturedEvent[] {
  const parsed = JSON.parse(body) as JsonObject
  const items = (Array.isArray(parsed.batch) ? parsed.batch : [parsed]) as JsonObject[]
  return items.map(item => {
    const properties = (item.properties ?? {}) as JsonObject
    const event = normalizeEvent(
      {
        name: String(item.event),
        distinctId: (item.distinct_id ?? properties.distinct_id ?? null) as string | null,
        uuid: (item.uuid as string | undefined) ?? null,
        timestamp: (item.timestamp as string | undefined) ?? null,
        offsetMs: null,
        propertiesJson: JSON.stringify(properties),
        setJson: item.$set === undefined ? null : JSON.stringify(item.$set),
        setOnceJson: item.$set_once === undefined ? null : JSON.stringify(item.$set_once),
        ignoreSentAt: false,
        cookielessModeInvalid: false,
        captureInternal: false,
      },
      {
        projectId: 1,
        token: 'phc_test',
        historicalMigration: parsed.historical_migration === true,
        importJobId: parsed.historical_migration === true ? 1 : 0,
        receivedAtMs: Date.parse(vector.now ?? file.meta.now_default),
        capturedAtMs: Date.parse(vector.now ?? file.meta.now_default),
        rerouteOlderThanMs: null,
        sentAtMs: null,
        ip: headers['X-Forwarded-For'] ?? file.meta.client_ip_default,
        random: () => 7,
      },
    )
    assert.ok(event.ok)
    return event.value
  })
}

function compareEvents(vector: Vector, rows: readonly StoredEvent[]): void {
  if (vector.stored_events === undefined) return
  if (vector.stored_events.length === 0) assert.deepEqual(rows, [])
  for (const expected of vector.stored_events) {
    const row = rows.find(({ uuid }) => expected.uuid === undefined || uuid === expected.uuid)
    assert.ok(row, `there is a row ${String(expected.uuid)}`)
    const properties = JSON.parse(row.propertiesJson) as JsonObject
    const personProperties = JSON.parse(row.personPropertiesJson) as JsonObject
    const seen: Record<string, unknown> = {
      uuid: row.uuid,
      event: row.event,
      distinct_id: row.distinctId,
      elements_chain: row.elementsChain,
      person_id: row.personId,
      person_mode: row.personMode,
      lane: row.lane,
      historical_migration: row.historicalMigration,
    }
    for (const [key, value] of Object.entries(expected)) {
      if (key === 'timestamp') assert.equal(row.timestampMs, Date.parse(String(value)))
      else if (key === 'properties') assertSubset(properties, value as JsonObject)
      else if (key === 'properties_exact') assert.deepEqual(properties, value)
      else if (key === 'properties_absent') assertAbsent(properties, value as string[])
      else if (key === 'person_properties') assertSubset(personProperties, value as JsonObject)
      else assert.deepEqual(seen[key], value, key)
    }
  }
}

function compareState(vector: Vector, state: MemoryState): void {
  const persons = [...state.persons.values()]
  const mappings = [...state.mappings.values()]
  if (vector.persons?.length === 0) assert.deepEqual(persons, [])
  for (const expected of vector.persons ?? []) {
    const person = persons.find(({ uuid }) => uuid === expected.uuid)
    assert.ok(person, `there is a person ${String(expected.uuid)}`)
    const ids = mappings.filter(({ personUuid }) => personUuid === person.uuid).map(({ distinctId }) => distinctId)
    for (const [key, value] of Object.entries(expected)) {
      if (key === 'uuid') continue
      if (key === 'distinct_ids') assert.deepEqual(ids.sort(), (value as string[]).toSorted())
      else if (key === 'is_identified') assert.equal(person.isIdentified, value)
      else if (key === 'created_at') assert.equal(person.createdAtMs, Date.parse(String(value)))
      else if (key === 'version') assert.equal(person.version, value)
      else if (key === 'version_min') assert.ok(person.version >= Number(value))
      else if (key === 'properties') assertSubset(person.properties, value as JsonObject)
      else if (key === 'properties_exact') assert.deepEqual(person.properties, value)
      else if (key === 'properties_absent') assertAbsent(person.properties, value as string[])
      else assert.fail(`unknown expectation of a person: ${key}`)
    }
  }
  for (const uuid of vector.persons_deleted ?? []) assert.ok(!persons.some(person => person.uuid === uuid))
  for (const { distinct_id, person_id, version } of vector.person_distinct_ids ?? []) {
    const mapping = mappings.find(({ distinctId }) => distinctId === distinct_id)
    assert.deepEqual([mapping?.personUuid, mapping?.version], [person_id, version])
  }
  if (vector.group_types !== undefined)
    assert.deepEqual(Object.fromEntries(state.groupTypes.map(({ name, index }) => [name, index])), vector.group_types)
  for (const expected of vector.groups ?? []) {
    const group = [...state.groups.values()].find(
      ({ typeIndex, key }) => typeIndex === expected.group_type_index && key === expected.group_key,
    )
    assert.ok(group)
    assert.deepEqual(group.properties, expected.group_properties)
    if (expected.version !== undefined) assert.equal(group.version, expected.version)
    if (expected.created_at !== undefined) assert.equal(group.createdAtMs, Date.parse(String(expected.created_at)))
  }
  const types = state.warnings.map(({ type }) => type)
  if (vector.warnings?.length === 0) assert.deepEqual(types, [])
  for (const type of vector.warnings ?? []) assert.ok(types.includes(type), `warning ${type}; there are ${types}`)
}

function assertSubset(actual: JsonObject, expected: JsonObject): void {
  for (const [key, value] of Object.entries(expected)) {
    const seen = actual[key]
    if (key.startsWith('$set') && typeof value === 'object')
      assertSubset((seen ?? {}) as JsonObject, value as JsonObject)
    else assert.deepEqual(seen as JsonValue, value, key)
  }
}

function assertAbsent(actual: JsonObject, keys: readonly string[]): void {
  for (const key of keys) assert.ok(!Object.hasOwn(actual, key), `${key} is absent`)
}
