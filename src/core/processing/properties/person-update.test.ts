import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { JsonObject } from '#core/json.ts'
import { anEvent } from '../../../../tests/support/values.ts'
import { aWorld } from '../../../../tests/support/world/world.ts'
import { personPropertiesBytesMax } from './person-update.ts'

/** The properties without the creator key, which every person has. */
function own(properties: JsonObject | undefined): JsonObject {
  const { $creator_event_uuid: _creator, ...others } = properties ?? {}
  return others
}

/** Applies events of one person, each in a separate chunk, and returns the person. */
async function after(...events: readonly [name: string, properties: JsonObject | string][]) {
  const world = aWorld()
  for (const [name, properties] of events) await world.apply(anEvent(name, 'ada', properties))
  return { world, person: world.person('ada')!, properties: own(world.person('ada')?.properties) }
}

describe('updating a person', () => {
  it('does not write if only keys that change on every page differ, unless the event is about the person', async () => {
    const page = (url: string): [string, JsonObject] => ['$pageview', { $current_url: url }]
    const { properties, person, world } = await after(page('/1'), page('/2'))
    assert.deepEqual([properties.$current_url, person.version], ['/1', 0])
    assert.equal(JSON.parse(world.rows[1]!.personPropertiesJson).$current_url, '/2')
    const about = await after(page('/1'), ['$set', { $set: { $current_url: '/2' } }])
    assert.equal(about.properties.$current_url, '/2')
    const nothingMore = await after(
      ['e', { $browser: 'Chrome', $set: { gone: null } }],
      ['e', { $browser: 'Firefox', $set: { gone: null }, $set_once: { gone: 1 } }],
    )
    assert.deepEqual([nothingMore.properties.$browser, nothingMore.person.version], ['Chrome', 0])
    const withMore = await after(page('/1'), ['$pageview', { $current_url: '/2', $set: { plan: 'pro' } }])
    assert.deepEqual([withMore.properties.$current_url, withMore.properties.plan], ['/2', 'pro'])
  })

  it('sets $os from $os_name, on the event and on the person', async () => {
    const { properties, world } = await after(['e', { $os_name: 'iOS', $os_version: '18' }])
    assert.deepEqual(properties, { $os: 'iOS', $initial_os: 'iOS', $os_version: '18', $initial_os_version: '18' })
    const stored = JSON.parse(world.rows[0]!.propertiesJson)
    assert.deepEqual([stored.$os, stored.$os_name, stored.$set.$os_name], ['iOS', 'iOS', undefined])
    const server = await after(['e', { $os_name: 'Linux', $is_server: true }])
    assert.deepEqual(server.properties, { $os_name: 'Linux', $initial_os_name: 'Linux' })
  })

  it('replaces a $set that is not an object only if there are other properties to add to it', async () => {
    const { properties, world } = await after(['e', { $set: 'text', $browser: 'Chrome' }], ['e', { $set: [1] }])
    assert.deepEqual(properties, { $browser: 'Chrome', $initial_browser: 'Chrome' })
    assert.deepEqual(JSON.parse(world.rows[0]!.propertiesJson).$set, { $browser: 'Chrome' })
    assert.deepEqual(JSON.parse(world.rows[1]!.propertiesJson).$set, [1])
  })

  it('keeps number literals as the client wrote them', async () => {
    const { world, person } = await after(['e', '{"$set":{"id":12345678901234567890,"price":1.0},"n":1e2}'])
    assert.match(world.rows[0]!.personPropertiesJson, /"id":12345678901234567890,"price":1\.0/)
    assert.match(JSON.stringify(person.properties), /"price":1\.0/)
    const again = await after(
      ['e', '{"$set":{"price":1.0}}'],
      ['e', '{"$set":{"price":1.0}}'],
      ['e', '{"$set":{"price":1}}'],
    )
    assert.deepEqual([again.person.version, JSON.stringify(again.properties)], [1, '{"price":1}'])
  })

  it('refuses a write that would make the person too large, and stores the event', async () => {
    const text = 'x'.repeat(personPropertiesBytesMax / 2)
    const { properties, person, world } = await after(['e', { $set: { a: text } }], ['e', { $set: { b: text } }])
    assert.deepEqual([Object.keys(properties), person.version, world.rows.length], [['a'], 0, 2])
    assert.deepEqual(world.warningTypes(), ['person_properties_size_violation'])
  })

  it('treats keys such as __proto__ and constructor like any other', async () => {
    const hostile = '{"__proto__":{"polluted":1},"constructor":"c","hasOwnProperty":1}'
    const { person, world } = await after(
      ['e', `{"$set":${hostile},"$set_once":{"toString":1},${hostile.slice(1)}`],
      ['e', `{"$set":{"__proto__":2},"$unset":["constructor","valueOf"]}`],
    )
    assert.equal(Object.getPrototypeOf(person.properties), Object.prototype)
    assert.equal(({} as { polluted?: number }).polluted, undefined)
    assert.deepEqual(Object.keys(person.properties).sort(), [
      '$creator_event_uuid',
      '__proto__',
      'hasOwnProperty',
      'toString',
    ])
    assert.match(JSON.stringify(person.properties), /"__proto__":2/)
    assert.match(world.rows[0]!.propertiesJson, /"__proto__":\{"polluted":1\}/)
    assert.match(world.rows[1]!.personPropertiesJson, /"__proto__":2/)
  })
})
