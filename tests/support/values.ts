// Builders of the values that most tests use, with plain defaults: projects, flags and cohorts, persons and groups, and
// events as they are captured, logged and stored.

import { randomUUID } from 'node:crypto'
import type { Change } from '#core/author.ts'
import { compressItems } from '#core/capture/compressed-items.ts'
import type { CapturedEvent, CapturedRecording, CapturedReject, LogRecord } from '#core/events/captured-event.ts'
import type { RecordAt } from '#core/events/log-stream.ts'
import type { StoredEvent } from '#core/events/stored-event.ts'
import type { Cohort } from '#core/flags/definitions/cohort.ts'
import { flagDefaults } from '#core/flags/definitions/flag.ts'
import type { ProjectDefinitions } from '#core/flags/definitions/project-definitions.ts'
import type { Group } from '#core/groups/group.ts'
import { type JsonObject, parseJson } from '#core/json.ts'
import { type EncodedRecords, RecordEncoder } from '#core/log/record-codec.ts'
import type { DistinctIdMapping, Person } from '#core/persons/person.ts'
import { noChunkChanges } from '#core/processing/chunk.ts'
import { readFlagCall } from '#core/processing/deduplicate-flag-calls.ts'
import { noIngestionSettings, noQuotas, type Project } from '#core/project.ts'
import type { EventView } from '#ports/events/event-queries.ts'
import type { ChunkChanges } from '#ports/state/chunk-store.ts'
import type { NewCohort } from '#ports/state/cohort-store.ts'
import type { NewFlag } from '#ports/state/flag-store.ts'
import type { NewProject } from '#ports/state/project-store.ts'

/** A change by a key with this label. */
export function aChange(label = 'Test', atMs = 1_700_000_000_000): Change {
  return { by: { id: null, label }, atMs }
}

let projectCount = 0

export function aNewProject(over: Partial<NewProject> = {}): NewProject {
  projectCount++
  return {
    uuid: `00000000-0000-4000-8000-${String(projectCount).padStart(12, '0')}`,
    name: `Project ${projectCount}`,
    apiToken: `phc_${projectCount}`,
    timezone: 'UTC',
    anonymizeIps: false,
    geoipEnabled: true,
    propertyMatchingVersion: 2,
    quotas: noQuotas,
    clientSettings: {},
    ingestion: noIngestionSettings,
    ...over,
  }
}

export function aProject(over: Partial<Project> = {}): Project {
  return { ...aNewProject(), id: 1, createdAtMs: 1_700_000_000_000, ...over }
}

/** The definitions of a project without flags, cohorts or other objects. */
export function emptyDefinitions(project: Project, revision: number): ProjectDefinitions {
  return {
    project,
    revision,
    flags: [],
    cohorts: [],
    groupTypes: [],
    earlyAccessFeatures: [],
    surveys: [],
    secretKeyHashes: [],
  }
}

export function aNewFlag(over: Partial<NewFlag> = {}): NewFlag {
  const { deleted: _neverOfANewOne, ...defaults } = flagDefaults
  return {
    ...defaults,
    projectId: 1,
    key: 'beta',
    filters: { groups: [{ properties: [], rollout_percentage: 100 }] },
    ...over,
  }
}

export function aNewCohort(over: Partial<NewCohort> = {}): NewCohort {
  return {
    projectId: 1,
    name: 'Beta',
    description: '',
    isStatic: false,
    filters: { properties: { type: 'OR', values: [] } },
    ...over,
  }
}

export function aCohort(over: Partial<Cohort> = {}): Cohort {
  return {
    id: 1,
    projectId: 1,
    name: 'a cohort',
    description: '',
    isStatic: false,
    filters: {},
    deleted: false,
    version: 1,
    memberCount: null,
    countedAtMs: null,
    createdAtMs: 1_700_000_000_000,
    updatedAtMs: 1_700_000_000_000,
    createdBy: null,
    ...over,
  }
}

export function aPerson(over: Partial<Person> = {}): Person {
  return {
    projectId: 1,
    uuid: '11111111-1111-5111-8111-111111111111',
    properties: {},
    marks: {},
    createdAtMs: 1_700_000_000_000,
    isIdentified: false,
    version: 0,
    lastSeenAtMs: 1_700_000_000_000,
    ...over,
  }
}

export function aMapping(person: Person, distinctId: string, version = 0): DistinctIdMapping {
  return { projectId: person.projectId, distinctId, personUuid: person.uuid, version }
}

/**
 * Rows that create persons with these distinct ids, whose versions count up from 0. The uuid of a person ends with its
 * index.
 */
export function newPersons(persons: readonly (Partial<Person> & { readonly ids?: readonly string[] })[]) {
  const rows = persons.map(({ ids = [], ...over }, index) => {
    return { ids, person: aPerson({ uuid: `11111111-1111-5111-8111-${String(index).padStart(12, '0')}`, ...over }) }
  })
  return {
    persons: rows.map(({ person }) => created(person)),
    mappings: rows.flatMap(({ ids, person }) => ids.map((id, version) => created(aMapping(person, id, version)))),
  }
}

export function aGroup(over: Partial<Group> = {}): Group {
  return {
    projectId: 1,
    typeIndex: 0,
    key: 'acme',
    properties: {},
    marks: {},
    createdAtMs: 1_700_000_000_000,
    version: 1,
    ...over,
  }
}

export function chunkChanges(over: Partial<ChunkChanges> = {}): ChunkChanges {
  return { ...noChunkChanges, ...over }
}

/** A row that must not exist yet. */
export function created<T>(row: T): { row: T; loadedVersion: null } {
  return { row, loadedVersion: null }
}

/**
 * A live event as the edge accepts it. Its uuid and distinct id derive from `n`, so that tests can tell events apart.
 */
export function aCapturedEvent(n: number, over: Partial<CapturedEvent> = {}): CapturedEvent {
  return {
    projectId: 1,
    token: 'phc_test_token',
    lane: 'main',
    historicalMigration: false,
    importJobId: 0,
    protocol: 'v0',
    personProcessingForcedOff: false,
    notes: 0,
    receivedAtMs: 1_790_000_000_000 + n,
    capturedAtMs: 1_790_000_000_001 + n,
    timestampMs: 1_789_999_999_000 + n,
    sentAtMs: null,
    uuid: `0199a000-0000-7000-8000-${n.toString(16).padStart(12, '0')}`,
    name: '$pageview',
    distinctId: `person-${n}`,
    ip: '203.0.113.7',
    visitor: null,
    propertiesJson: '{"$current_url":"https://example.com/","n":1.0}',
    setJson: null,
    setOnceJson: null,
    ...over,
  }
}

export function aCapturedReject(over: Partial<CapturedReject> = {}): CapturedReject {
  return {
    projectId: 1,
    token: 'phc_test_token',
    lane: 'main',
    historicalMigration: false,
    importJobId: 0,
    receivedAtMs: 1_790_000_000_000,
    capturedAtMs: 1_790_000_000_001,
    reason: 'missing_event_name',
    field: 'event',
    uuid: '',
    name: '',
    distinctId: 'ada',
    body: '{"distinct_id":"ada"}',
    ...over,
  }
}

/** A recording as the edge accepts it. Its uuid derives from `n`, so that tests can tell recordings apart. */
export function aCapturedRecording(n: number, over: Partial<CapturedRecording> = {}): CapturedRecording {
  const json = Buffer.from(`[{"type":2,"data":{"n":${n}.0},"timestamp":1}]`)
  return {
    projectId: 1,
    token: 'phc_test_token',
    receivedAtMs: 1_790_000_000_000 + n,
    capturedAtMs: 1_790_000_000_001 + n,
    timestampMs: 1_789_999_999_000 + n,
    uuid: `0199a000-0000-7000-8000-${n.toString(16).padStart(12, '0')}`,
    sessionId: 'session-1',
    windowId: 'window-1',
    distinctId: 'ada',
    snapshotSource: 'web',
    lib: 'web',
    itemCount: 1,
    itemsBytes: json.length,
    items: compressItems(json),
    ...over,
  }
}

let eventCount = 0

/** An event as the edge accepts it, with a unique number and these properties. */
export function anEvent(
  name: string,
  distinctId: string,
  properties: JsonObject | string = {},
  over: Partial<CapturedEvent> = {},
): CapturedEvent {
  eventCount++
  const propertiesJson = typeof properties === 'string' ? properties : JSON.stringify(properties)
  const uuid = `0199a000-0000-4000-8000-${eventCount.toString(16).padStart(12, '0')}` // v4: contains no time
  return aCapturedEvent(eventCount, { uuid, name, distinctId, ip: '', propertiesJson, ...over })
}

/** Like `anEvent`, but sent as an import. */
export function anImportedEvent(
  name: string,
  distinctId: string,
  timestampMs: number,
  properties: JsonObject,
  over: Partial<CapturedEvent> = {},
): CapturedEvent {
  return anEvent(name, distinctId, properties, {
    lane: 'historical',
    historicalMigration: true,
    importJobId: 1,
    timestampMs,
    ...over,
  })
}

/** An event that sets properties of its person. */
export function setEvent(n: number, distinctId: string, set: object, over: Partial<CapturedEvent> = {}): CapturedEvent {
  return aCapturedEvent(n, { distinctId, propertiesJson: JSON.stringify({ n, $set: set }), ...over })
}

/** A stored live event of project 1; fields may be replaced. */
export function aStoredEvent(over: Partial<StoredEvent> = {}): StoredEvent {
  const timestampMs = over.timestampMs ?? Date.parse('2026-11-05T10:00:00.123Z')
  return {
    projectId: 1,
    uuid: randomUUID(),
    event: '$pageview',
    distinctId: 'ada',
    timestampMs,
    capturedAtMs: timestampMs,
    chargedAtMs: over.capturedAtMs ?? timestampMs,
    lane: 'main',
    historicalMigration: false,
    importJobId: 0,
    propertiesJson: '{}',
    elementsChain: '',
    personId: '0192a4b0-0000-7000-8000-000000000001',
    personCreatedAtMs: Date.parse('2026-10-01T00:00:00Z'),
    personPropertiesJson: '{}',
    personMode: 'full',
    groups: ['', '', '', '', ''],
    sessionId: '',
    windowId: '',
    flags: new Map(),
    ...readFlagCall(
      over.event ?? '',
      over.propertiesJson === undefined ? {} : (parseJson(over.propertiesJson) as JsonObject),
    ),
    linkedId: '',
    logStream: 'main',
    logOffset: 0,
    ...over,
  }
}

/** A stored event as the event store returns it. */
export function anEventView(over: Partial<EventView> = {}): EventView {
  return { ...aStoredEvent(), createdAtMs: 0, ...over }
}

/** The same event, as stored for an import job. */
export function imported(event: StoredEvent, importJobId: number, over: Partial<StoredEvent> = {}): StoredEvent {
  const chargedAtMs = over.capturedAtMs ?? event.capturedAtMs
  return { ...event, lane: 'historical', historicalMigration: true, importJobId, chargedAtMs, ...over }
}

export function offsetsOf({ records }: { readonly records: readonly RecordAt[] }): number[] {
  return records.map(({ offset }) => offset)
}

/** The records with their offsets, counted up from `firstOffset`. */
export function recordsAt(records: readonly LogRecord[], firstOffset = 0): RecordAt[] {
  return records.map((record, index) => ({ offset: firstOffset + index, record }))
}

/** The events as one encoded run for the log. */
export function encodedEvents(events: readonly CapturedEvent[]): EncodedRecords {
  const encoder = new RecordEncoder()
  for (const event of events) encoder.addEvent(event)
  return encoder.finish()
}

/** For a worker that never gets an event of a cookieless visitor. */
export function noSalts(): never {
  throw new Error('a salt was asked for')
}
