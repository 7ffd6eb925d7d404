import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { keyOf } from '../../../tests/support/memory/memory-state.ts'
import { anEvent } from '../../../tests/support/values.ts'
import { aWorld } from '../../../tests/support/world/world.ts'
import { personUuid } from '../persons/person-uuid.ts'
import { isIllegalDistinctId, personDistinctIdCountMax } from './person-merge.ts'

const identify = (survivor: string, other: string, more = {}) =>
  anEvent('$identify', survivor, { $anon_distinct_id: other, ...more })
const personless = (distinctId: string) => anEvent('$pageview', distinctId, { $process_person_profile: false })

describe('linking distinct ids', () => {
  it('creates one person for two unknown ids, with the uuid derived from the event’s own id', async () => {
    const world = aWorld()
    await world.apply(identify('user', 'anon', { $set: { plan: 'pro' } }))
    assert.equal(world.person('anon')?.uuid, personUuid(1, 'user'))
    assert.equal(world.person('user')?.uuid, personUuid(1, 'user'))
    assert.deepEqual([world.mappingVersion('user'), world.mappingVersion('anon')], [0, 0])
    assert.deepEqual([world.person('user')?.version, world.person('user')?.isIdentified], [0, true])
    assert.deepEqual(world.processed[0]?.rows.overrides, [])
  })

  describe('with a maximum number of ids per person', () => {
    /** `full` belongs to a person with this many ids, including `id-0`; `few` belongs to another person. */
    async function worldWith(idCount: number) {
      const world = aWorld()
      await world.apply(anEvent('$pageview', 'full'), anEvent('$pageview', 'few'))
      const { uuid } = world.person('full')!
      for (let n = 0; n < idCount - 1; n++)
        world.state.mappings.set(keyOf(1, `id-${n}`), {
          ...{ projectId: 1, distinctId: `id-${n}`, personUuid: uuid, version: 0 },
        })
      return { world, uuid }
    }

    it('makes a link or a merge that exactly reaches the maximum', async () => {
      const { world, uuid } = await worldWith(personDistinctIdCountMax - 2)
      await world.apply(anEvent('$merge_dangerously', 'full', { alias: 'few' }), identify('full', 'last'))
      assert.deepEqual(world.warningTypes(), [])
      assert.deepEqual([world.person('few')?.uuid, world.person('last')?.uuid], [uuid, uuid])
      await world.apply(identify('full', 'one more'))
      assert.equal(world.person('one more'), undefined)
      assert.deepEqual(world.warningTypes(), ['cannot_merge_too_many_distinct_ids'])
    })

    it('does not merge a person at the maximum with any other person, in either direction, and warns', async () => {
      const { world, uuid } = await worldWith(personDistinctIdCountMax)
      await world.apply(
        anEvent('$merge_dangerously', 'few', { alias: 'id-7' }),
        anEvent('$merge_dangerously', 'full', { alias: 'few' }),
        anEvent('$pageview', 'full'),
      )
      assert.deepEqual(world.warningTypes(), Array(2).fill('cannot_merge_too_many_distinct_ids'))
      assert.equal(world.rows.length, 5, 'the events themselves are stored')
      assert.equal(world.person('few')?.isIdentified, true)
      assert.equal(world.person('id-7')?.uuid, uuid)
      assert.notEqual(world.person('few')?.uuid, uuid)
      assert.deepEqual(world.processed.at(-1)?.changes.mappings, [])
    })

    it('links no id beyond the maximum: the event keeps its id, and the refused id later gets a person of its own', async () => {
      const { world, uuid } = await worldWith(personDistinctIdCountMax)
      await world.apply(identify('full', 'new', { $set: { plan: 'pro' } }))
      assert.deepEqual([world.person('full')?.properties.plan, world.person('full')?.isIdentified], ['pro', true])
      assert.equal(world.person('new'), undefined)
      await world.apply(identify('other way', 'full'), anEvent('e', 'new'))
      assert.deepEqual(world.warningTypes(), Array(2).fill('cannot_merge_too_many_distinct_ids'))
      assert.equal(world.person('other way')?.uuid, personUuid(1, 'other way'))
      assert.equal(world.person('new')?.uuid, personUuid(1, 'new'))
      assert.equal(world.person('id-3')?.uuid, uuid)
    })
  })

  it('uses the person uuid of the one id that had personless events if the other id had none', async () => {
    const world = aWorld()
    await world.apply(personless('anon'))
    await world.apply(identify('user', 'anon'))
    assert.equal(world.person('user')?.uuid, personUuid(1, 'anon'))
    assert.equal(world.rows[0]?.personId, world.rows[1]?.personId)
    assert.deepEqual([world.mappingVersion('user'), world.mappingVersion('anon')], [0, 0])
  })

  it('adds an override for the events of the linked id if both ids had personless events', async () => {
    const world = aWorld()
    await world.apply(personless('anon'), personless('user'))
    await world.apply(identify('user', 'anon'))
    assert.equal(world.person('anon')?.uuid, personUuid(1, 'user'))
    assert.deepEqual([world.mappingVersion('user'), world.mappingVersion('anon')], [0, 1])
    assert.deepEqual(world.processed[1]?.rows.overrides, [
      { projectId: 1, distinctId: 'anon', personId: personUuid(1, 'user'), version: 1 },
    ])
  })

  for (const [known, attached] of [
    ['user', 'anon'],
    ['anon', 'user'],
  ] as const)
    it(`keeps the person that already exists: ${known} has one, ${attached} has none`, async () => {
      const world = aWorld()
      await world.apply(anEvent('e', known), personless(attached))
      await world.apply(identify('user', 'anon'))
      assert.equal(world.person(attached)?.uuid, personUuid(1, known))
      assert.equal(world.mappingVersion(attached), 1, 'an override, since it was used personless before')
      assert.equal(world.person(known)?.isIdentified, true)
    })

  it('merges an unidentified person into the survivor, whose values take precedence', async () => {
    const world = aWorld()
    await world.apply(
      anEvent('e', 'anon', { $set: { plan: 'anon', only: 1 } }, { timestampMs: 1_000 }),
      anEvent('e', 'user', { $set: { plan: 'user' } }, { timestampMs: 2_000 }),
    )
    await world.apply(identify('user', 'anon', { $set: { added: true } }))
    const { $creator_event_uuid: _creator, ...properties } = world.person('user')!.properties
    assert.deepEqual(properties, { plan: 'user', only: 1, added: true })
    assert.deepEqual([world.person('user')?.version, world.person('user')?.createdAtMs], [1, 1_000])
    assert.equal(world.state.persons.size, 1)
    assert.deepEqual(world.processed[1]?.changes.deletedPersons, [
      { projectId: 1, uuid: personUuid(1, 'anon'), survivorUuid: personUuid(1, 'user'), loadedVersion: 0 },
    ])
    assert.equal(world.mappingVersion('anon'), 1)
  })

  it('moves every id of the merged person, even ids that the chunk does not mention', async () => {
    const world = aWorld()
    await world.apply(anEvent('e', 'a'), anEvent('$create_alias', 'a', { alias: 'b' }))
    await world.apply(anEvent('e', 'user'))
    await world.apply(anEvent('$merge_dangerously', 'user', { alias: 'b' }))
    assert.deepEqual([world.person('a')?.uuid, world.mappingVersion('a')], [personUuid(1, 'user'), 1])
    assert.equal(world.state.persons.size, 1)
  })

  it('follows a chain of merges in one chunk to the last survivor', async () => {
    const world = aWorld()
    await world.apply(anEvent('e', 'a'), anEvent('e', 'b'), anEvent('e', 'c'))
    await world.apply(
      anEvent('$merge_dangerously', 'b', { alias: 'a' }),
      anEvent('$merge_dangerously', 'c', { alias: 'b' }),
      anEvent('e', 'a'),
    )
    for (const id of ['a', 'b', 'c']) assert.equal(world.person(id)?.uuid, personUuid(1, 'c'))
    assert.deepEqual(
      world.processed[1]?.changes.deletedPersons.map(({ survivorUuid }) => survivorUuid),
      [personUuid(1, 'c'), personUuid(1, 'c')],
    )
    assert.equal(world.rows.at(-1)?.personId, personUuid(1, 'c'))
    assert.equal(world.mappingVersion('a'), 2)
  })

  it('orders the persons merged away by a chain so that assignments of the nearest person take precedence', async () => {
    const world = aWorld()
    await world.apply(...['a', 'b', 'c', 'd'].map(id => anEvent('e', id)))
    await world.apply(
      anEvent('$merge_dangerously', 'b', { alias: 'a' }),
      anEvent('$merge_dangerously', 'd', { alias: 'c' }),
      anEvent('$merge_dangerously', 'd', { alias: 'b' }),
    )
    assert.deepEqual(
      world.processed[1]?.changes.deletedPersons.map(({ uuid }) => uuid),
      ['c', 'b', 'a'].map(id => personUuid(1, id)),
    )
  })

  it('creates and merges away a person within one chunk without storing it', async () => {
    const world = aWorld()
    await world.apply(anEvent('e', 'anon'), anEvent('e', 'user'), identify('user', 'anon'))
    assert.deepEqual(world.processed[0]?.changes.deletedPersons, [])
    assert.equal(world.state.persons.size, 1)
    assert.deepEqual(world.processed[0]?.rows.overrides, [
      { projectId: 1, distinctId: 'anon', personId: personUuid(1, 'user'), version: 1 },
    ])
  })

  it('refuses to merge an identified person, except with $merge_dangerously', async () => {
    const world = aWorld()
    await world.apply(identify('other', 'x'), anEvent('e', 'user'))
    await world.apply(identify('user', 'other'))
    assert.equal(world.state.persons.size, 2)
    assert.equal(world.person('user')?.isIdentified, true)
    assert.deepEqual(world.warningTypes(), ['cannot_merge_already_identified'])
    await world.apply(anEvent('$merge_dangerously', 'user', { alias: 'other' }))
    assert.equal(world.state.persons.size, 1)
  })

  it('does not link an illegal id, and processes the event like any other', async () => {
    const world = aWorld()
    await world.apply(identify('user', 'null'), anEvent('$identify', 'user', '{"$anon_distinct_id":null}'))
    assert.deepEqual([world.person('user')?.isIdentified, world.person('null')], [false, undefined])
    assert.deepEqual(world.warningTypes(), Array(2).fill('cannot_merge_with_illegal_distinct_id'))
    assert.equal(world.rows.length, 2)
  })

  it('does nothing for an id that is linked with itself, or linked again', async () => {
    const world = aWorld()
    await world.apply(identify('user', 'user'))
    assert.equal(world.person('user')?.isIdentified, false)
    await world.apply(identify('user', 'anon'), identify('user', 'anon'))
    assert.deepEqual([world.person('user')?.version, world.mappingVersion('anon')], [1, 0])
  })

  it('drops links to values that cannot be ids, and links in personless events', async () => {
    const world = aWorld()
    await world.apply(
      anEvent('$identify', 'user', { $anon_distinct_id: 5 }),
      anEvent('$create_alias', 'user', { alias: ['x'] }),
      identify('user', 'anon', { $process_person_profile: false }),
      anEvent('$identify', 'user', '{"$anon_distinct_id":1.0}'),
      anEvent('$identify', 'user', '{"$anon_distinct_id":{"toString":1}}'),
    )
    assert.deepEqual(world.rows, [])
    assert.deepEqual(
      [...new Set(world.warningTypes())],
      ['invalid_anon_distinct_id', 'invalid_alias', 'invalid_event_when_process_person_profile_is_false'],
    )
  })

  it('recognizes placeholder ids as illegal', () => {
    for (const id of [
      'Anonymous',
      "'guest'",
      '"id"',
      '[object Object]',
      'NaN',
      'None',
      '$posthog_cookieless',
      '0',
      '',
      '  ',
      'a\0b',
      'x'.repeat(401),
    ])
      assert.ok(isIllegalDistinctId(id), id)
    for (const id of ['nan', 'NULL', 'user', ' id ', '00', 'x'.repeat(400), '😀'.repeat(300)])
      assert.ok(!isIllegalDistinctId(id), id)
  })
})
