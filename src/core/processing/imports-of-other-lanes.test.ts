// Exceptions and AI events of an import take the same lanes as live ones, but are treated as imports.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { anEvent, anImportedEvent } from '../../../tests/support/values.ts'
import { aWorld } from '../../../tests/support/world/world.ts'
import type { JsonObject } from '../json.ts'

const day = 86_400_000
const onePerson = (world: ReturnType<typeof aWorld>) => [...world.state.persons.values()][0]!
const exception = (atMs: number, properties: JsonObject, over = {}) =>
  anImportedEvent('$exception', 'ada', atMs, properties, { lane: 'error_tracking', ...over })
const generation = (atMs: number, over = {}) =>
  anImportedEvent('$ai_generation', 'ada', atMs, {}, { lane: 'ai', ...over })

describe('an imported exception', () => {
  it('creates a person whose values are replaced by live values and by later imported values', async () => {
    const world = aWorld()
    await world.apply(exception(2 * day, { $set: { k: 'exception', l: 'exception' } }))
    assert.deepEqual([onePerson(world).marks.k?.kind, onePerson(world).marks.k?.importJobId], ['import_set', 1])
    await world.apply(anImportedEvent('e', 'ada', day, { $set: { k: 'older' } }))
    assert.equal(onePerson(world).properties.k, 'exception')
    await world.apply(anImportedEvent('e', 'ada', 3 * day, { $set: { k: 'newer' } }))
    await world.apply(anEvent('e', 'ada', { $set: { l: 'live' } }))
    const { k, l } = onePerson(world).properties
    assert.deepEqual([k, l], ['newer', 'live'])
  })

  it('changes no live value of a person, but may move the person’s creation to an earlier time', async () => {
    const world = aWorld()
    await world.apply(anEvent('e', 'ada', { $set: { k: 'live' } }))
    await world.apply(exception(2 * day, { $set: { k: 'exception' } }))
    const { properties, createdAtMs } = onePerson(world)
    assert.deepEqual([properties.k, createdAtMs], ['live', 2 * day])
  })

  it('gives the same person in any order of the events', async () => {
    const events = [
      exception(day, { $set: { k: 'first', l: 'first' } }),
      anImportedEvent('e', 'ada', 2 * day, { $set: { k: 'second' } }),
      exception(3 * day, { $set: { k: 'third' } }),
    ]
    const persons = []
    for (const order of [events, events.toReversed()]) {
      const world = aWorld()
      for (const event of order) await world.apply(event)
      const { properties, marks, createdAtMs } = onePerson(world)
      persons.push({ properties, marks, createdAtMs })
    }
    assert.deepEqual(persons[0], persons[1])
    assert.equal(persons[0]!.properties.k, 'third')
  })
})

describe('imported events in the lanes of live events', () => {
  it('do not raise the warning about old events that were sent live', async () => {
    const world = aWorld()
    await world.apply(
      ...Array.from({ length: 120 }, (_, index) => exception(day + index, {})),
      ...Array.from({ length: 120 }, (_, index) => generation(day + index)),
    )
    assert.deepEqual(world.warningTypes(), [])
  })

  it('are counted in the warning about the import, along with its recent events', async () => {
    const world = aWorld()
    const uuid = '0100a000-0000-7000-8000-000000000001'
    await world.apply(
      exception(1_789_999_000_000, { $session_id: 'no uuid' }, { uuid }),
      generation(1_789_999_000_000, { uuid }),
    )
    assert.deepEqual(world.warningTypes(), ['historical_migration'])
    const reasons = world.state.warnings[0]!.details.reasons as Record<string, { count: number }>
    assert.deepEqual(
      Object.entries(reasons).map(([reason, { count }]) => [reason, count]),
      [
        ['recent', 2],
        ['invalid_event_session_id', 1],
      ],
    )
  })
})
