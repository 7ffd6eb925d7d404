// Random streams of live events, cut into chunks at random, against the model: the same persons, groups, warnings and
// rows have to come out, and every row, old ones included, has to lead to the person that its distinct id has at the end.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import type { CapturedEvent } from '#core/events/captured-event.ts'
import type { JsonObject } from '#core/json.ts'
import { anEvent, applyingWorld } from '../support/apply-events.ts'
import { PersonModel } from './person-model.ts'

const ids = ['a', 'b', 'c', 'd', 'e']
const oddIds = ['null', '"Guest"', "'NaN'", 'nan', ' ', '__proto__']
const id = fc.oneof(
  { weight: 8, arbitrary: fc.constantFrom(...ids) },
  fc.constantFrom(...oddIds.filter(odd => odd.trim())),
)
const otherId = fc.oneof(
  { weight: 12, arbitrary: fc.constantFrom(...ids) },
  { weight: 2, arbitrary: fc.constantFrom(...oddIds) },
  { weight: 1, arbitrary: fc.constantFrom(null, '', 5, 1.5, true) },
)
const value = fc.constantFrom(1, 1, 'x', null, { x: 1 })
const map = fc.dictionary(fc.constantFrom('p', 'q'), value, { maxKeys: 2 })
const sometimes = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined, freq: 3 })
const typeName = fc.constantFrom('company', 'team', 'site', 'city', 'plan', 'sixth', 'constructor')
const groupKey = fc.constantFrom('k1', 'k2', 7)

const names = {
  ordinary: fc.constantFrom('e', '$set', '$pageview', '$exception'),
  link: fc.constantFrom('$identify', '$identify', '$create_alias', '$merge_dangerously'),
  group: fc.constantFrom('$groupidentify', '$group_identify'),
}

const event = fc
  .record({
    name: fc.oneof(
      { weight: 4, arbitrary: names.ordinary },
      { weight: 4, arbitrary: names.link },
      { weight: 1, arbitrary: names.group },
    ),
    id,
    other: sometimes(otherId),
    set: sometimes(fc.oneof({ weight: 9, arbitrary: map }, fc.constantFrom('text', null))),
    setOnce: sometimes(map),
    topLevelSet: sometimes(map),
    unset: sometimes(fc.constantFrom<JsonObject[string][]>(['p', 'q'], ['absent'], { q: 1 })),
    browser: sometimes(fc.constantFrom('Chrome', 'Firefox')),
    profile: fc.oneof({ weight: 6, arbitrary: fc.constant(undefined) }, fc.constantFrom(false, false, true, 'yes')),
    groups: sometimes(fc.dictionary(typeName, groupKey, { maxKeys: 3 })),
    groupType: sometimes(typeName),
    groupKey: sometimes(fc.oneof({ weight: 9, arbitrary: groupKey }, fc.constantFrom('', 0, 'x'.repeat(401)))),
    groupSet: sometimes(fc.oneof({ weight: 9, arbitrary: map }, fc.constantFrom('text', null))),
    seconds: fc.integer({ min: 0, max: 200 }),
  })
  .map(made => {
    const properties: { [key: string]: JsonObject[string] | undefined } = {
      ...(made.name === '$identify' ? { $anon_distinct_id: made.other } : { alias: made.other }),
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
    return { ...made, propertiesJson: JSON.stringify(properties) }
  })

const stream = fc.array(fc.array(event, { minLength: 1, maxLength: 7 }), { minLength: 1, maxLength: 6 })

type Made = typeof event extends fc.Arbitrary<infer T> ? T : never

function captured({ name, id, propertiesJson, topLevelSet, seconds }: Made): CapturedEvent {
  return anEvent(name, id, propertiesJson, {
    lane: name === '$exception' ? 'error_tracking' : 'main',
    timestampMs: 1_790_000_000_000 + seconds * 1_000,
    setJson: topLevelSet === undefined ? null : JSON.stringify(topLevelSet),
  })
}

async function compare(chunks: readonly (readonly Made[])[]): Promise<void> {
  const world = applyingWorld()
  const model = new PersonModel()
  for (const chunk of chunks) {
    const events = chunk.map(captured)
    await world.apply(...events)
    for (const { name, distinctId, propertiesJson, setJson, timestampMs, uuid } of events) {
      const properties = JSON.parse(propertiesJson) as JsonObject
      const set = setJson === null ? null : (JSON.parse(setJson) as JsonObject)
      model.apply({ name, distinctId, properties, set, timestampMs, uuid })
    }
  }
  const { state, rows } = world

  assert.deepEqual(
    [...state.persons.values()].map(shownPerson).toSorted(byUuid),
    [...model.persons()]
      .map(person => ({ ...shownPerson(person), properties: Object.fromEntries(person.properties) }))
      .toSorted(byUuid),
    'persons',
  )
  assert.deepEqual(
    Object.fromEntries([...state.mappings.values()].map(row => [row.distinctId, [row.personUuid, row.version]])),
    Object.fromEntries([...model.ids].map(([id, { person, version }]) => [id, [person.uuid, version]])),
    'distinct ids',
  )
  assert.deepEqual(world.warningTypes(), model.warnings, 'warnings')
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
    Object.fromEntries(model.groups),
    'groups',
  )
  assert.deepEqual(
    rows.map(row => ({
      uuid: row.uuid,
      distinctId: row.distinctId,
      mode: row.personMode,
      groups: row.groups,
      personCreatedAtMs: row.personCreatedAtMs,
      personProperties: JSON.parse(row.personPropertiesJson),
    })),
    model.rows,
    'rows',
  )
  const overrides = world.chunks.flatMap(({ rows: { overrides } }) => overrides)
  const overriding = new Map(
    overrides.toSorted((a, b) => a.version - b.version).map(row => [row.distinctId, row.personId]),
  )
  for (const { distinctId, personId } of rows)
    assert.equal(overriding.get(distinctId) ?? personId, model.personIdOf(distinctId), `whose ${distinctId} is`)
}

interface Shown {
  readonly uuid: string
  readonly properties: unknown
  readonly createdAtMs: number
  readonly isIdentified: boolean
  readonly version: number
}

function shownPerson({ uuid, properties, createdAtMs, isIdentified, version }: Shown): Shown {
  return { uuid, properties, createdAtMs, isIdentified, version }
}

function byUuid(a: Shown, b: Shown): number {
  return a.uuid < b.uuid ? -1 : 1
}

describe('persons and groups', () => {
  it('come out of any stream, cut into any chunks, as the specification written down plainly has them', async () => {
    await fc.assert(fc.asyncProperty(stream, compare), { numRuns: Number(process.env.RUNS ?? 1_000) })
  })
})
