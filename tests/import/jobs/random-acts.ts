// Random actions of clients before, during and after an import, and helpers to check the results.

import assert from 'node:assert/strict'
import fc from 'fast-check'
import type { CapturedEvent } from '#core/events/captured-event.ts'
import type { ImportJob } from '#core/imports/import-job.ts'
import type { JsonObject } from '#core/json.ts'
import type { OpenSqlState } from '../../support/state.ts'
import { anEvent, anImportedEvent } from '../../support/values.ts'
import { type ImportWorld, importWorld } from '../../support/world/import-world.ts'

export const day = 86_400_000
/** An event without its time and uuid. */
export interface Act {
  readonly name: string
  readonly id: string
  readonly properties: JsonObject
  readonly over?: Pick<Partial<CapturedEvent>, 'lane' | 'personProcessingForcedOff'>
}

export const ids = ['a', 'b', 'c', 'd', 'e']
const id = fc.constantFrom(...ids)
/** A change of the last key alone is not written. */
const key = fc.constantFrom('k', 'l', 'm', '$os')
const value = fc.integer({ min: 0, max: 9 })
const bag = fc.dictionary(key, value, { maxKeys: 2 })
const act: fc.Arbitrary<Act> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ name: fc.constant('e'), id, properties: fc.record({ $set: bag, $set_once: bag }) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      name: fc.constant('$set'),
      id,
      properties: key.map((unset): JsonObject => ({ $unset: [unset] })),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      name: fc.constant('$identify'),
      id,
      properties: fc.record({ $anon_distinct_id: id, $set: bag }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      name: fc.constant('$groupidentify'),
      id,
      properties: fc.record({
        $group_type: fc.constantFrom('org', 'team'),
        $group_key: fc.constantFrom('x', 'y'),
        $group_set: bag,
        $group_unset: fc.array(key, { maxLength: 1 }),
      }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ name: fc.constant('e'), id, properties: fc.constant({ $process_person_profile: false }) }),
  },
)
export const acts = fc.array(act, { maxLength: 12 })

/** Events that processing treats in a special way. */
const specialAct: fc.Arbitrary<Act> = fc.oneof(
  fc.record({ name: fc.constant('$exception'), id, properties: fc.record({ $set: bag }) }),
  fc.record({
    name: fc.constant('$set'),
    id,
    properties: fc.record({ $set: bag, $set_once: bag, $unset: fc.array(key, { maxLength: 2 }) }),
  }),
  fc.record({
    name: fc.constantFrom('$merge_dangerously', '$create_alias'),
    id,
    properties: fc.record({ alias: fc.oneof({ weight: 5, arbitrary: id }, fc.constant('guest')), $set: bag }),
  }),
  fc.record({
    name: fc.constant('$groupidentify'),
    id,
    properties: fc.record({
      $group_type: fc.constant('org'),
      $group_key: fc.constantFrom('x', 'y'),
      $group_set: bag,
      $set: bag,
      $process_person_profile: fc.constantFrom(true, false),
    }),
  }),
)
/** What no import has. Rows do not show for which events persons were switched off, so these events have a separate id. */
const lane = fc.constantFrom<Pick<Act, 'id' | 'over'>>(...ids.map(id => ({ id, over: { lane: 'ai' } }) as const), {
  id: 'f',
  over: { personProcessingForcedOff: true },
})
const specialLiveAct: fc.Arbitrary<Act> = fc
  .record({
    name: fc.constantFrom('e', '$groupidentify'),
    properties: fc.record({
      $set: bag,
      $group_type: fc.constant('org'),
      $group_key: fc.constant('x'),
      $group_set: bag,
    }),
  })
  .chain(act => lane.map(of => ({ ...act, ...of })))
export const mixedActs = fc.array(fc.oneof({ weight: 5, arbitrary: act }, specialAct), { maxLength: 10 })
export const mixedLiveActs = fc.array(
  fc.oneof({ weight: 10, arbitrary: act }, { weight: 3, arbitrary: specialAct }, specialLiveAct),
  { maxLength: 10 },
)

export function live({ name, id, properties, over }: Act, index: number): CapturedEvent {
  return anEvent(name, id, properties, { timestampMs: 200 * day + index, ...over })
}

export function imported(jobId: number): (act: Act, index: number) => CapturedEvent {
  return ({ name, id, properties }, index) =>
    anImportedEvent(name, id, (1 + ((index * 7) % 13)) * day, properties, { importJobId: jobId })
}

export async function applyAll(world: ImportWorld, events: readonly CapturedEvent[]): Promise<void> {
  for (let from = 0; from < events.length; from += 5) await world.apply(...events.slice(from, from + 5))
}

/** Publishes a job with these acts. */
export async function publishActs(world: ImportWorld, acts: readonly Act[]): Promise<ImportJob> {
  const job = await world.createJob()
  await applyAll(world, acts.map(imported(job.id)))
  await world.publish(job)
  return job
}

export function isKept({ name, properties }: Act): boolean {
  return !(name === '$identify' && properties.$process_person_profile === false)
}

export function isAboutUndoing(reason: string): boolean {
  return reason.startsWith('undo_left:')
}

export async function personWith(world: ImportWorld, distinctId: string) {
  return (await world.stored()).persons.find(({ ids }) => ids.split(' ').includes(distinctId))
}

/** Omits what names the job, and the times that only affect pages. */
export async function withoutMarks(world: ImportWorld) {
  const { persons, groups } = await world.stored()
  return {
    persons: persons.map(({ uuid, properties, created_at, is_identified, ids }) => ({
      ...{ uuid, created_at, is_identified, ids },
      properties: sorted(properties),
    })),
    groups: (groups as { group_properties: string; created_at: number; group_key: string }[]).map(
      ({ group_properties, created_at, group_key }) => ({
        created_at,
        group_key,
        properties: sorted(group_properties),
      }),
    ),
  }
}

function sorted(json: string): [string, unknown][] {
  return Object.entries(JSON.parse(json) as JsonObject).sort(([a], [b]) => (a < b ? -1 : 1))
}

/** Each row of an id with a person belongs to that person, whatever merges and undos came between. */
export async function assertRowsHaveTheirPersons(world: ImportWorld): Promise<void> {
  const persons = world.personOfRows()
  const byId = new Map(
    (await world.stored()).persons.flatMap(({ uuid, ids }) => ids.split(' ').map(each => [each, uuid])),
  )
  for (const row of world.events.rows.values()) {
    const person = byId.get(row.distinctId)
    if (person !== undefined) assert.equal(persons.get(row.uuid), person, `${row.event} of ${row.distinctId}`)
  }
}

/** A property whose worlds close after each run: those of all runs together would be too many for a server. */
export function inWorlds<Values extends unknown[]>(
  open: OpenSqlState,
  run: (newWorld: () => Promise<ImportWorld>, ...values: Values) => Promise<void>,
): (...values: Values) => Promise<void> {
  return async (...values) => {
    await using opened = new AsyncDisposableStack()
    await run(() => importWorld({ after: end => opened.defer(end) }, open), ...values)
  }
}
