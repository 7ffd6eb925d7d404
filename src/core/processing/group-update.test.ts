import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { anEvent, anImportedEvent } from '../../../tests/support/values.ts'
import { aWorld } from '../../../tests/support/world/world.ts'
import type { JsonObject, JsonValue } from '../json.ts'
import { noIngestionSettings } from '../project.ts'

const describeGroup = (set: JsonValue | undefined, more: JsonObject = {}, name = '$groupidentify') =>
  anEvent(name, 'ada', {
    $group_type: 'company',
    $group_key: 'acme',
    ...(set === undefined ? {} : { $group_set: set }),
    ...more,
  })

describe('groups', () => {
  it('are created even without properties, and not written by events that change nothing', async () => {
    const world = aWorld()
    await world.apply(describeGroup(undefined))
    await world.apply(describeGroup({ tags: [{ a: 1 }] }), describeGroup({ tags: [{ a: 1 }] }), describeGroup({}))
    await world.apply(describeGroup([]))
    const [group] = [...world.state.groups.values()]
    assert.deepEqual([group?.version, world.warningTypes()], [2, []])
  })

  it('are not changed by a $group_set that is not an object', async () => {
    const world = aWorld()
    await world.apply(describeGroup('text'), describeGroup(['a']))
    const warned = ['invalid_group_set', 'invalid_group_set']
    assert.deepEqual([world.state.groups.size, world.rows.length, world.warningTypes()], [0, 2, warned])
  })

  it('require a type and a key: without them the event is stored as an ordinary one', async () => {
    const world = aWorld()
    const incomplete: JsonObject[] = [
      { $group_key: '' },
      { $group_key: 0 },
      { $group_type: '' },
      { $group_type: 5 },
      { $group_key: null },
    ]
    await world.apply(...incomplete.map(more => describeGroup({ a: 1 }, more)))
    assert.deepEqual([world.state.groups.size, world.rows.length], [0, 5])
  })

  it('are not written by a personless event, but the event is stored', async () => {
    const world = aWorld()
    await world.apply(describeGroup({ a: 1 }, { $process_person_profile: false }))
    assert.deepEqual([world.state.groups.size, world.rows.length, world.rows[0]?.personMode], [0, 1, 'propertyless'])
  })

  it('get the first free type index, up to five types, and fill the group columns of events', async () => {
    const world = aWorld()
    await world.apply(anEvent('e', 'ada', { $groups: { a: 'x', b: 7, c: null } }))
    await world.apply(anEvent('e', 'ada', { $groups: { d: '1', e: '2', f: '3', a: 'y' } }))
    assert.deepEqual(
      world.state.groupTypes.map(({ name, index }) => [name, index]),
      [
        ['a', 0],
        ['b', 1],
        ['c', 2],
        ['d', 3],
        ['e', 4],
      ],
    )
    assert.deepEqual(
      world.rows.map(({ groups }) => groups),
      [
        ['x', '7', '', '', ''],
        ['y', '', '', '1', '2'],
      ],
    )
    const stored = JSON.parse(world.rows[0]!.propertiesJson)
    assert.deepEqual([stored.$group_0, stored.$group_1, stored.$group_2], ['x', 7, null])
  })

  it('cause one warning per event about refused types, and the event is stored', async () => {
    const world = aWorld()
    await world.apply(anEvent('e', 'ada', { $groups: { a: 1, b: 1, c: 1, d: 1, e: 1 } }))
    assert.deepEqual(world.warningTypes(), [])
    const junk = Object.fromEntries(Array.from({ length: 500 }, (_, index) => [`junk ${index}`, index]))
    await world.apply(
      anEvent('e', 'ada', { $groups: { ...junk, a: 'known' } }),
      anEvent('$groupidentify', 'ada', { $group_type: 'x'.repeat(400), $group_key: 'k' }),
      anEvent('e', 'ada', { $groups: { a: 1 } }),
    )
    assert.deepEqual(world.warningTypes(), ['group_type_refused', 'group_type_refused'])
    const [first, second] = world.state.warnings.map(({ details }) => details)
    assert.deepEqual([first?.groupType, first?.why, first?.distinctId], ['junk 0', 'too_many', 'ada'])
    assert.deepEqual([String(second?.groupType).length, second?.eventUuid], [200, world.rows[2]?.uuid])
    assert.equal(world.rows.length, 4)
    assert.deepEqual(world.rows[1]?.groups, ['known', '', '', '', ''])
    assert.equal(world.state.groupTypes.length, 5)
  })

  it('add no types to a project that has frozen its types, and still use the existing types', async () => {
    const world = aWorld({ project: { ingestion: { ...noIngestionSettings, groupTypesFrozen: true } } })
    world.state.groupTypes = [{ projectId: 1, name: 'company', index: 0 }]
    await world.apply(
      describeGroup({ seats: 5 }),
      anEvent('$groupidentify', 'ada', { $group_type: 'junk', $group_key: 'k' }),
      anEvent('e', 'ada', { $groups: { junk: 'k', company: 'acme' } }),
    )
    assert.deepEqual(
      world.state.warnings.map(({ type, details }) => [type, details.groupType, details.why]),
      Array(2).fill(['group_type_refused', 'junk', 'frozen']),
    )
    assert.equal(world.state.groupTypes.length, 1)
    assert.equal(world.state.groups.size, 1)
    assert.deepEqual(world.rows[2]?.groups, ['acme', '', '', '', ''])
  })

  it('do not use a type that is being deleted, and its index goes to no other type', async () => {
    const world = aWorld()
    world.state.groupTypes = [
      { projectId: 1, name: 'company', index: 0, isBeingDeleted: true },
      { projectId: 1, name: 'team', index: 1 },
    ]
    await world.apply(describeGroup({ seats: 5 }), anEvent('e', 'ada', { $groups: { company: 'acme', new: 'x' } }))
    assert.equal(world.state.groups.size, 0)
    assert.deepEqual(
      world.state.warnings.map(({ details }) => [details.groupType, details.why]),
      Array(2).fill(['company', 'being_deleted']),
    )
    assert.deepEqual(world.rows[1]?.groups, ['', '', 'x', '', ''])
  })

  it('treat types and keys such as __proto__ like any other', async () => {
    const world = aWorld()
    await world.apply(anEvent('e', 'ada', '{"$groups":{"__proto__":"x","constructor":"y"}}'))
    await world.apply(
      anEvent(
        '$groupidentify',
        'ada',
        '{"$group_type":"__proto__","$group_key":"__proto__","$group_set":{"__proto__":1}}',
      ),
    )
    assert.deepEqual(
      world.state.groupTypes.map(({ name }) => name),
      ['__proto__', 'constructor'],
    )
    assert.deepEqual(world.rows[0]?.groups, ['x', 'y', '', '', ''])
    const [group] = [...world.state.groups.values()]
    assert.equal(JSON.stringify(group?.properties), '{"__proto__":1}')
  })

  it('keep live values despite an import, and get the earliest creation time', async () => {
    const world = aWorld()
    await world.apply(describeGroup({ plan: 'live' }))
    const properties = { $group_type: 'company', $group_key: 'acme', $group_set: { plan: 'old', seats: 5 } }
    await world.apply(anImportedEvent('$groupidentify', 'ada', 1_000, properties))
    const [group] = [...world.state.groups.values()]
    assert.deepEqual([group?.properties, group?.createdAtMs], [{ plan: 'live', seats: 5 }, 1_000])
  })
})

describe('$group_unset', () => {
  const group = { $group_type: 'company', $group_key: 'acme' }
  const imported = (atMs: number, set: JsonObject, unset: JsonObject[string]) =>
    anImportedEvent('$groupidentify', 'ada', atMs, { ...group, $group_set: set, $group_unset: unset })
  const only = (world: ReturnType<typeof aWorld>) => [...world.state.groups.values()][0]!

  it('in an import removes earlier values of imports, in any order of the events', async () => {
    const events = [
      imported(1_000, { tier: 'gold', seats: 5 }, []),
      imported(2_000, {}, ['tier']),
      imported(3_000, {}, []),
    ]
    for (const order of [events, events.toReversed()]) {
      const world = aWorld()
      for (const event of order) await world.apply(event)
      assert.deepEqual(only(world).properties, { seats: 5 })
    }
  })

  it('in an import keeps live values and later values of imports', async () => {
    const world = aWorld()
    await world.apply(describeGroup({ live: 1 }), imported(3_000, { later: 1 }, []))
    await world.apply(imported(2_000, {}, ['live', 'later']))
    assert.deepEqual(only(world).properties, { live: 1, later: 1 })
  })

  it('in a live event is ignored', async () => {
    const world = aWorld()
    await world.apply(describeGroup({ tier: 'gold' }), describeGroup({}, { $group_unset: ['tier'] }))
    assert.deepEqual(only(world).properties, { tier: 'gold' })
  })

  it('in an import is limited, like $unset for persons', async () => {
    const world = aWorld()
    const keys = Array.from({ length: 10_001 }, (_, index) => `k${index}`)
    await world.apply(imported(1_000, { tier: 'gold' }, keys))
    assert.equal(world.state.groups.size, 0)
    assert.deepEqual(world.warningTypes(), ['historical_migration'])
  })
})
