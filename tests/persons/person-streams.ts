// Random streams of live and imported events, cut into random chunks. A worker, which may be killed between any two
// steps, processes them with stores that survive it. At the end, persons, groups, warnings, rows, and the person of
// every row, including old ones, must match the model.

import assert from 'node:assert/strict'
import fc from 'fast-check'
import type { CapturedEvent } from '#core/events/captured-event.ts'
import type { JsonObject } from '#core/json.ts'
import type { Person } from '#core/persons/person.ts'
import { noIngestionSettings } from '#core/project.ts'
import { PortError } from '#ports/port-error.ts'
import type { ChunkStore } from '#ports/state/chunk-store.ts'
import type { ProcessingEventStore } from '#services/processing/chunk-deps.ts'
import { processOneChunk } from '#services/processing/process-one-chunk.ts'
import { createSilentLogger } from '#telemetry/log.ts'
import { createMetrics } from '#telemetry/metrics.ts'
import { fixedClock } from '../support/fixed-clock.ts'
import { memoryChunkStore } from '../support/memory/memory-chunk-store.ts'
import { MemoryEventStore } from '../support/memory/memory-event-store.ts'
import { type MemoryState, memoryState } from '../support/memory/memory-state.ts'
import { anEvent, aProject, noSalts, recordsAt } from '../support/values.ts'
import { PersonModel } from './person-model.ts'

const ids = ['a', 'b', 'c', 'd']
const oddIds = ['null', '"Guest"', "'NaN'", 'nan', ' ', '__proto__']
const id = fc.oneof(
  { weight: 8, arbitrary: fc.constantFrom(...ids) },
  fc.constantFrom(...oddIds.filter(odd => odd.trim())),
)
const otherId = fc.oneof(
  { weight: 12, arbitrary: fc.constantFrom(...ids) },
  { weight: 2, arbitrary: fc.constantFrom(...oddIds) },
  { weight: 1, arbitrary: fc.constantFrom(null, '', 5, 1.5, true, 'a\0', 'x'.repeat(401)) },
)
const value = fc.constantFrom(1, 1, 'x', null, { x: 1 })
const map = fc.dictionary(fc.constantFrom('p', 'q'), value, { maxKeys: 2 })
const sometimes = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined, freq: 3 })
const seldom = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined, freq: 1 })
const typeName = fc.oneof(
  { weight: 3, arbitrary: fc.constant('company') },
  fc.constantFrom('team', 'site', 'city', 'plan', 'sixth', 'constructor'),
)
const groupKey = fc.constantFrom('k1', 'k1', 7)

const event = fc.record({
  isImported: fc.oneof({ weight: 2, arbitrary: fc.constant(false) }, fc.constant(true)),
  name: fc.oneof(
    { weight: 4, arbitrary: fc.constantFrom('e', '$set', '$pageview', '$exception', '$ai_trace') },
    { weight: 4, arbitrary: fc.constantFrom('$identify', '$identify', '$create_alias', '$merge_dangerously') },
    { weight: 2, arbitrary: fc.constantFrom('$groupidentify', '$group_identify') },
  ),
  id,
  other: sometimes(otherId),
  otherKind: fc.oneof({ weight: 9, arbitrary: fc.constant(false) }, fc.constant(true)),
  set: sometimes(fc.oneof({ weight: 9, arbitrary: map }, fc.constantFrom('text', null))),
  setOnce: sometimes(map),
  topLevelSet: sometimes(map),
  unset: sometimes(fc.constantFrom<JsonObject[string][]>(['p', 'q'], ['absent'], { q: 1 })),
  browser: sometimes(fc.constantFrom('Chrome', 'Firefox')),
  profile: fc.oneof(
    { weight: 3, arbitrary: fc.constant(undefined) },
    fc.constantFrom(false, false, false, true, 'yes'),
  ),
  forcedOff: fc.oneof({ weight: 15, arbitrary: fc.constant(false) }, fc.constant(true)),
  groups: sometimes(fc.dictionary(typeName, groupKey, { maxKeys: 3 })),
  groupType: sometimes(typeName),
  groupKey: sometimes(fc.oneof({ weight: 9, arbitrary: groupKey }, fc.constantFrom('', 0, 'x'.repeat(401)))),
  groupSet: sometimes(fc.oneof({ weight: 9, arbitrary: map }, fc.constantFrom('text', null))),
  seconds: fc.integer({ min: 0, max: 200 }),
  /** Repeats the event that was sent this many events earlier. */
  repeats: seldom(fc.integer({ min: 1, max: 12 })),
})

/** Where a worker is killed, and a store's fault just before it. */
const faults = [
  'load',
  'apply',
  'insert',
  'commit',
  'rows_without_overrides',
  'overrides_without_rows',
  'commit_unseen',
  'commit_unanswered',
] as const
type Fault = (typeof faults)[number]

const chunkSizeMax = 9

const streamNames = ['main', 'historical'] as const
type StreamName = (typeof streamNames)[number]

const step = fc.record({
  stream: fc.constantFrom(...streamNames),
  size: fc.integer({ min: 1, max: chunkSizeMax }),
  fault: fc.option(fc.constantFrom(...faults), { nil: null, freq: 1 }),
  /** Small, so that the worker has to halve its chunk. */
  rowCountMax: fc.constantFrom(2_000, 2_000, 3),
})

export const stream = fc.record({
  isOptedOut: fc.oneof({ weight: 12, arbitrary: fc.constant(false) }, fc.constant(true)),
  events: fc.array(event, { minLength: 1, maxLength: 40, size: 'max' }),
  steps: fc.array(step, { maxLength: 14, size: 'max' }),
})
export type Stream = typeof stream extends fc.Arbitrary<infer T> ? T : never
type Made = typeof event extends fc.Arbitrary<infer T> ? T : never
type Step = Stream['steps'][number]

function capturedOf(made: Made): CapturedEvent {
  const { name, id, isImported, topLevelSet, seconds } = made
  const isIdentify = name === '$identify'
  const properties: { [key: string]: JsonObject[string] | undefined } = {
    ...(isIdentify !== made.otherKind ? { $anon_distinct_id: made.other } : { alias: made.other }),
    $set: made.set,
    $set_once: made.setOnce,
    $unset: made.unset,
    $browser: made.browser,
    $process_person_profile: made.profile,
    $groups: made.groups,
    $group_type: made.groupType,
    $group_key: made.groupKey,
    $group_set: made.groupSet,
  }
  const lanes = { $exception: 'error_tracking', $ai_trace: 'ai' } as const
  return anEvent(name, id, JSON.stringify(properties), {
    timestampMs: 1_790_000_000_000 + seconds * 1_000,
    receivedAtMs: 1_790_000_300_000 + 10 * 86_400_000,
    setJson: topLevelSet === undefined ? null : JSON.stringify(topLevelSet),
    personProcessingForcedOff: made.forcedOff,
    ...(name === '$exception' || name === '$ai_trace'
      ? { lane: lanes[name] }
      : isImported && { lane: 'historical', historicalMigration: true, importJobId: 1 }),
  })
}

/** Accepted records per log stream; a repeated event is another record. */
function logsOf(events: readonly Made[]): Record<StreamName, readonly CapturedEvent[]> {
  const logs: Record<StreamName, CapturedEvent[]> = { main: [], historical: [] }
  for (const made of events) {
    const captured = capturedOf(made)
    const log = logs[captured.lane === 'historical' ? 'historical' : 'main']
    log.push((made.repeats === undefined ? undefined : log.at(-made.repeats)) ?? captured)
  }
  return logs
}

interface World {
  readonly state: MemoryState
  readonly events: MemoryEventStore
  readonly logs: Record<StreamName, readonly CapturedEvent[]>
  readonly model: PersonModel
  /** The model's position in each log stream. */
  readonly applied: Record<StreamName, number>
}

/** Runs the stream and compares the result with the model. @throws AssertionError */
export async function runStream({ isOptedOut, events, steps }: Stream): Promise<void> {
  const ingestion = { ...noIngestionSettings, personProcessingOptOut: isOptedOut }
  const world: World = {
    state: memoryState([aProject({ geoipEnabled: false, ingestion })]),
    events: new MemoryEventStore(),
    logs: logsOf(events),
    model: new PersonModel({ isOptedOut }),
    applied: { main: 0, historical: 0 },
  }
  const worker = new Worker(world)
  for (const step of steps) await worker.take(step)
  for (const stream of streamNames)
    while (world.applied[stream] < world.logs[stream].length)
      await worker.take({ stream, size: 5, fault: null, rowCountMax: 2_000 })
  compare(world, worker.mayHavePublished)
}

let workerCount = 0

/** Runs workers in succession: after a kill, a new one claims the streams. */
class Worker {
  readonly #world: World
  readonly #store: ChunkStore
  readonly #triedUntil: Record<StreamName, number> = { main: 0, historical: 0 }
  #ownerId: string | null = null
  /** A killed worker may have written overrides to the event store, which raises versions. */
  mayHavePublished = false

  constructor(world: World) {
    this.#world = world
    this.#store = memoryChunkStore(world.state)
  }

  async take({ stream, size, fault, rowCountMax }: Step): Promise<void> {
    await this.#claim()
    const firstOffset = this.#world.applied[stream]
    const records = this.#world.logs[stream].slice(firstOffset, firstOffset + size)
    if (records.length === 0) return
    const killed = Promise.withResolvers<'killed'>()
    const kill = () => {
      killed.resolve('killed')
      return new Promise<never>(() => {})
    }
    let position = firstOffset
    const end = await Promise.race([
      killed.promise,
      processOneChunk(
        {
          stream,
          traffic: stream === 'historical' ? 'import' : 'live',
          nextOffset: firstOffset + records.length,
          records: recordsAt(
            records.map(event => ({ kind: 'event', event })),
            firstOffset,
          ),
          missing: null,
        },
        {
          state: faultyState(this.#store, fault, kill),
          events: faultyEvents(this.#world.events, fault, kill),
          ...{
            geoip: null,
            saltOf: noSalts,
            clock: fixedClock(0),
            metrics: createMetrics(),
            logger: createSilentLogger(),
          },
          ...{ cursor: stream, ownerId: this.#ownerId!, logId: 'log', random: () => 0 },
          ...{ rowCountMax, textBytesMax: 2 ** 26, slowStoreMs: 60_000, conflictTryCount: 10 },
          signal: new AbortController().signal,
          enterState: () => {},
          mayHaveBeenTried: () => position < this.#triedUntil[stream],
          position: () => position,
          onCommitted: (_outcomes, { nextOffset }) => {
            position = nextOffset
          },
          faultPoint: name => (name === fault ? kill() : undefined),
        },
      ),
    ])
    assert.ok(end === 'killed' || end === 'committed', end)
    if (end === 'killed') this.#ownerId = null
    this.mayHavePublished ||= end === 'killed'
    await this.#claim()
  }

  /** Claims the streams if no worker owns them, and advances the model to their positions. */
  async #claim(): Promise<void> {
    const isNew = this.#ownerId === null
    this.#ownerId ??= `worker-${++workerCount}`
    for (const stream of streamNames) {
      const { offset } = await this.#store.claimPosition(stream, this.#ownerId)
      if (isNew) this.#triedUntil[stream] = offset + chunkSizeMax
      for (const event of this.#world.logs[stream].slice(this.#world.applied[stream], offset))
        this.#world.model.apply(modelEvent(event))
      this.#world.applied[stream] = offset
    }
  }
}

export function modelEvent(event: CapturedEvent): Parameters<PersonModel['apply']>[0] {
  const { name, distinctId, propertiesJson, setJson, timestampMs, uuid, lane, personProcessingForcedOff } = event
  return {
    name,
    distinctId,
    properties: JSON.parse(propertiesJson) as JsonObject,
    set: setJson === null ? null : (JSON.parse(setJson) as JsonObject),
    timestampMs,
    uuid,
    lane,
    forcedOff: personProcessingForcedOff,
  }
}

type Kill = () => Promise<never>

function faultyState(store: ChunkStore, fault: Fault | null, kill: Kill): ChunkStore {
  let isAnswered = false
  return {
    ...store,
    commitChunk: async (changes, position) => {
      const result = await store.commitChunk(changes, position)
      if (fault === 'commit_unseen') return kill()
      if (fault !== 'commit_unanswered' || isAnswered) return result
      isAnswered = true
      throw new PortError('chunk-store', 'unavailable')
    },
  }
}

function faultyEvents(events: MemoryEventStore, fault: Fault | null, kill: Kill): ProcessingEventStore {
  return {
    findChargedTimes: identities => events.findChargedTimes(identities),
    findFlagCalls: calls => events.findFlagCalls(calls),
    findOverrides: ids => events.findOverrides(ids),
    async insert(rows) {
      if (fault === 'rows_without_overrides') {
        const half = rows.events.slice(0, Math.ceil(rows.events.length / 2))
        await events.insert({ ...rows, events: half, overrides: [] })
        return kill()
      }
      if (fault === 'overrides_without_rows') {
        await events.insert({ ...rows, events: [] })
        return kill()
      }
      return events.insert(rows)
    },
  }
}

function compare({ state, events, logs, model }: World, mayHavePublished: boolean): void {
  assert.deepEqual(
    [...state.persons.values()].map(person => shownPerson(person, person.properties)).toSorted(byUuid),
    [...model.persons()].map(person => shownPerson(person, person.properties.shown())).toSorted(byUuid),
    'persons',
  )
  const mappings = [...state.mappings.values()]
  assert.deepEqual(
    Object.fromEntries(mappings.map(row => [row.distinctId, row.personUuid])),
    Object.fromEntries([...model.ids].map(([id, { person }]) => [id, person.uuid])),
    'distinct ids',
  )
  for (const { distinctId, version } of mappings) {
    const expected = model.ids.get(distinctId)!.version
    assert.ok(mayHavePublished ? version >= expected : version === expected, `version of ${distinctId}`)
  }
  const live = state.warnings.filter(({ type }) => type !== 'historical_migration')
  assert.deepEqual(
    live.map(({ type }) => type),
    model.warnings,
    'warnings',
  )
  assert.deepEqual(importWarningsOf(state), model.importWarnings.toSorted(), 'warnings of imports')
  assert.deepEqual(
    state.groupTypes.map(({ name, index }) => [name, index]),
    model.groupTypes.map((name, index) => [name, index]),
    'group types',
  )
  assert.deepEqual(
    Object.fromEntries(
      Array.from(state.groups.values(), ({ typeIndex, key, properties, version, createdAtMs }) => [
        `${typeIndex} ${key}`,
        { properties, version, createdAtMs },
      ]),
    ),
    Object.fromEntries(
      Array.from(model.groups, ([key, { properties, version, createdAtMs }]) => [
        key,
        { properties: properties.shown(), version, createdAtMs },
      ]),
    ),
    'groups',
  )
  const overriding = new Map([...events.overrides.values()].map(row => [row.distinctId, row.personId]))
  assert.deepEqual(
    [...events.rows.values()]
      .map(row => ({
        uuid: row.uuid,
        distinctId: row.distinctId,
        mode: row.personMode,
        whose: overriding.get(row.distinctId) ?? row.personId,
        groups: row.groups,
        personCreatedAtMs: row.personCreatedAtMs,
        personProperties: JSON.parse(row.personPropertiesJson) as unknown,
      }))
      .toSorted(byUuid),
    [...model.rows.values()]
      .map(({ uuid, distinctId, mode, personId, groups, personCreatedAtMs, personProperties }) => ({
        uuid,
        distinctId,
        mode,
        whose: personId === null ? model.personIdOf(distinctId) : (overriding.get(distinctId) ?? personId),
        groups,
        personCreatedAtMs,
        personProperties,
      }))
      .toSorted(byUuid),
    'rows',
  )
  const accepted = logs.main.length + logs.historical.length
  assert.equal(
    state.outcomes.reduce((sum, { count }) => sum + count, 0),
    accepted,
    'accepted = stored + dropped + rejected',
  )
}

function importWarningsOf({ warnings }: MemoryState): string[] {
  return warnings
    .filter(({ type }) => type === 'historical_migration')
    .flatMap(({ details }) => Object.entries(details.reasons as Record<string, { count: number }>))
    .flatMap(([reason, { count }]) => Array.from({ length: count }, () => reason))
    .toSorted()
}

function shownPerson(
  { uuid, createdAtMs, isIdentified, version }: Pick<Person, 'uuid' | 'createdAtMs' | 'isIdentified' | 'version'>,
  properties: unknown,
) {
  return { uuid, properties, createdAtMs, isIdentified, version }
}

function byUuid(a: { uuid: string }, b: { uuid: string }): number {
  return a.uuid < b.uuid ? -1 : Number(a.uuid > b.uuid)
}
