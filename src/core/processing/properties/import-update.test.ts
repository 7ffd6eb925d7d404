import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import type { JsonObject } from '#core/json.ts'
import { emptyProfile, type Profile, type ProfileUpdate } from '#core/persons/profile.ts'
import { runs } from '../../../../tests/support/nightly.ts'
import { anEvent, anImportedEvent } from '../../../../tests/support/values.ts'
import { aWorld } from '../../../../tests/support/world/world.ts'
import { applyImportUpdate, mergeProfiles } from './import-update.ts'

const key = fc.constantFrom('a', 'b', '__proto__')
const map = fc.option(fc.dictionary(key, fc.constantFrom(1, 2, null, 'x'), { maxKeys: 3, noNullPrototype: true }), {
  nil: null,
})
const update: fc.Arbitrary<ProfileUpdate> = fc.record({
  set: map,
  setOnce: map,
  unset: fc.array(key, { maxLength: 1 }),
  timestampMs: fc.integer({ min: 1, max: 5 }),
  uuid: fc.constantFrom('u1', 'u2', 'u3', 'u4', 'u5'),
  importJobId: fc.constant(1),
})
/** Events of one import with unique pairs of time and uuid. */
const updates = fc.uniqueArray(update, { maxLength: 7, selector: ({ timestampMs, uuid }) => `${timestampMs} ${uuid}` })

function applyAll(before: Profile, all: readonly ProfileUpdate[]): Profile {
  return all.reduce((profile, each) => applyImportUpdate(profile, each) ?? profile, before)
}

const sorted = (object: object) => Object.entries(object).sort(([a], [b]) => (a < b ? -1 : 1))
const textOf = ({ properties, marks }: Profile) => JSON.stringify([sorted(properties), sorted(marks)])

describe('an import’s property updates', () => {
  it('give the same profile in any order, and when some are repeated', () => {
    fc.assert(
      fc.property(
        updates.chain(list =>
          fc.tuple(fc.constant(list), fc.shuffledSubarray(list, { minLength: list.length }), fc.subarray(list)),
        ),
        ([list, shuffled, repeated]) => {
          assert.equal(textOf(applyAll(emptyProfile, [...shuffled, ...repeated])), textOf(applyAll(emptyProfile, list)))
        },
      ),
      { numRuns: runs(500, 2_000) },
    )
  })

  it('give the same profile if two persons that received half of them each are merged', () => {
    fc.assert(
      fc.property(updates, fc.nat(7), (list, split) => {
        const [first, second] = [
          applyAll(emptyProfile, list.slice(0, split)),
          applyAll(emptyProfile, list.slice(split)),
        ]
        assert.equal(textOf(mergeProfiles(first, second)), textOf(applyAll(emptyProfile, list)))
      }),
      { numRuns: runs(250, 1_000) },
    )
  })

  it('never touch a live value', () => {
    fc.assert(
      fc.property(updates, list => {
        const liveOnce = { kind: 'live_once', timestampMs: 3, uuid: 'u', importJobId: 0 } as const
        const before: Profile = { properties: { a: 'live', b: 'once' }, marks: { b: liveOnce } }
        const { properties, marks } = applyAll(before, list)
        assert.deepEqual([properties.a, properties.b, marks.a, marks.b], ['live', 'once', undefined, liveOnce])
      }),
    )
  })

  it('keep the latest $set, or the earliest $set_once if there is no $set', () => {
    const at = (timestampMs: number, maps: Partial<ProfileUpdate>): ProfileUpdate => ({
      ...{ set: null, setOnce: null, unset: [], uuid: 'u', importJobId: 1 },
      ...maps,
      timestampMs,
    })
    const table: [expected: JsonObject, ...ProfileUpdate[]][] = [
      [{ a: 2 }, at(1, { set: { a: 1 } }), at(2, { set: { a: 2 } })],
      [{ a: 1 }, at(1, { setOnce: { a: 1 } }), at(2, { setOnce: { a: 2 } })],
      [{ a: 2 }, at(3, { setOnce: { a: 1 } }), at(1, { set: { a: 2 } })],
      [{}, at(1, { set: { a: 1 } }), at(2, { unset: ['a'] })],
      [{ a: 3 }, at(2, { unset: ['a'] }), at(3, { set: { a: 3 } })],
      [{ a: 3 }, at(2, { unset: ['a'] }), at(3, { setOnce: { a: 3 } })],
      [{}, at(2, { unset: ['a'] }), at(1, { set: { a: 1 } })],
    ]
    for (const [expected, ...list] of table) {
      assert.deepEqual(applyAll(emptyProfile, list).properties, expected)
      assert.deepEqual(applyAll(emptyProfile, list.toReversed()).properties, expected)
    }
  })
})

describe('live and imported events together', () => {
  it('keep live values, whichever comes first', async () => {
    for (const liveFirst of [true, false]) {
      const world = aWorld()
      const live = anEvent('e', 'ada', { $set: { plan: 'live' } }, { timestampMs: 9_000 })
      const imported = anImportedEvent('e', 'ada', 1_000, { $set: { plan: 'old', seats: 3 } })
      await world.apply(...(liveFirst ? [live, imported] : [imported, live]))
      await world.apply(anImportedEvent('e', 'ada', 2_000, { $set: { plan: 'newer', seats: 4 } }))
      const { plan, seats } = world.person('ada')!.properties
      assert.deepEqual([plan, seats], ['live', 4])
      assert.equal(world.person('ada')?.createdAtMs, 1_000)
    }
  })

  it('let a live $set replace an imported value, even with an equal value or a key that changes with every page', async () => {
    const world = aWorld()
    await world.apply(anImportedEvent('$pageview', 'ada', 1_000, { $browser: 'Chrome' }))
    await world.apply(anEvent('$pageview', 'ada', { $browser: 'Chrome' }))
    assert.equal(world.person('ada')?.marks.$browser, undefined)
    await world.apply(anImportedEvent('$pageview', 'ada', 2_000, { $browser: 'Opera' }))
    assert.equal(world.person('ada')?.properties.$browser, 'Chrome')
  })

  it('treat a key that a live $set_once creates as live, so that imports do not change it', async () => {
    const world = aWorld()
    await world.apply(anEvent('e', 'ada', { $set_once: { first: 'live' } }))
    await world.apply(anImportedEvent('e', 'ada', 1, { $set: { first: 'old' }, $set_once: { first: 'older' } }))
    assert.equal(world.person('ada')?.properties.first, 'live')
    assert.equal(world.person('ada')?.marks.first?.kind, 'live_once')
  })

  it('give the same persons and groups for an import in any order and any split into chunks', async () => {
    const events = [
      anImportedEvent('$pageview', 'ada', 3_000, { $browser: 'Chrome', $set: { plan: 'pro' } }),
      anImportedEvent('signup', 'ada', 1_000, { $set_once: { source: 'ad' }, $set: { plan: 'free' } }),
      anImportedEvent('$set', 'ada', 2_000, { $set_once: { source: 'mail' }, $unset: ['trial'] }),
      anImportedEvent('$set', 'ada', 1_500, { $set: { trial: true } }),
      anImportedEvent('$groupidentify', 'ada', 2_500, {
        $group_type: 'company',
        $group_key: 'acme',
        $group_set: { seats: 2 },
      }),
      anImportedEvent('$groupidentify', 'ada', 500, {
        $group_type: 'company',
        $group_key: 'acme',
        $group_set: { seats: 1 },
      }),
    ]
    const seen = new Set<string>()
    await fc.assert(
      fc.asyncProperty(fc.shuffledSubarray(events, { minLength: events.length }), fc.nat(6), async (order, split) => {
        const world = aWorld()
        await world.apply(...order.slice(0, split))
        await world.apply(...order.slice(split))
        const person = world.person('ada')!
        const [group] = [...world.state.groups.values()]
        seen.add(JSON.stringify([sorted(person.properties), sorted(person.marks), person.createdAtMs]))
        seen.add(JSON.stringify([group?.properties, group?.createdAtMs]))
      }),
      { numRuns: 100 },
    )
    assert.equal(seen.size, 2, [...seen].join('\n'))
    assert.match([...seen].join(''), /"plan","pro"\],\["source","ad"/)
  })
})
