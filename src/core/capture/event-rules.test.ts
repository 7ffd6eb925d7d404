// The rules of docs/wire/ingestion.md 2.7, 6 and 7 for a single event, one test per rule.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { anEvent, anImportedEvent } from '../../../tests/support/values.ts'
import { aWorld, type World } from '../../../tests/support/world/world.ts'
import type { CapturedEvent } from '../events/captured-event.ts'
import type { JsonObject } from '../json.ts'
import { personUuid } from '../persons/person-uuid.ts'
import { noIngestionSettings } from '../project.ts'
import { eventBytesMax } from './normalize-event.ts'

const propertiesOf = (world: World, row = 0): JsonObject => JSON.parse(world.rows[row]!.propertiesJson)
const setting = (ingestion: object) => aWorld({ project: { ingestion: { ...noIngestionSettings, ...ingestion } } })

/** Processes one event, the only one of its project. */
async function outcomeOf(world: World, event: CapturedEvent): Promise<string> {
  await world.apply(event)
  const { outcome, reason } = world.processed.at(-1)!.changes.outcomes[0]!
  return reason === '' ? outcome : `${outcome}: ${reason}`
}

describe('6.1: the order of work', () => {
  it('checks properties before the age of the event, and the profile last', async () => {
    const aged = { receivedAtMs: 1_790_000_000_000, timestampMs: 1_789_000_000_000 }
    const merge = { $anon_distinct_id: 'anon', $process_person_profile: false }
    const ordered: [JsonObject, Partial<CapturedEvent>, string][] = [
      [{ ...merge, $anon_distinct_id: 5 }, aged, 'invalid_anon_distinct_id'],
      [merge, aged, 'event_dropped_too_old'],
      [merge, {}, 'invalid_event_when_process_person_profile_is_false'],
    ]
    for (const [properties, over, reason] of ordered) {
      const world = setting({ dropEventsOlderThanSeconds: 86_400 })
      assert.equal(await outcomeOf(world, anEvent('$identify', 'ada', properties, over)), `dropped: ${reason}`)
      assert.deepEqual(world.warningTypes(), [reason])
    }
  })

  it('drops live events that are older on arrival than the project’s limit; 0 and null mean no limit', async () => {
    const receivedAtMs = 1_790_000_000_000
    const ofAge = (ageMs: number) => anEvent('e', 'ada', {}, { receivedAtMs, timestampMs: receivedAtMs - ageMs })
    const limited = setting({ dropEventsOlderThanSeconds: 60 })
    assert.equal(await outcomeOf(limited, ofAge(60_000)), 'stored')
    assert.equal(await outcomeOf(limited, ofAge(60_001)), 'dropped: event_dropped_too_old')
    const { eventUuid, ...details } = limited.state.warnings[0]!.details
    assert.deepEqual(details, {
      event: 'e',
      distinctId: 'ada',
      eventTimestamp: '2026-09-21T14:12:19.999Z',
      ageInSeconds: 60,
      dropThresholdSeconds: 60,
      category: 'event',
      severity: 'info',
    })
    assert.equal(limited.rows.length, 1)
    const imported = anImportedEvent('e', 'ada', receivedAtMs - 10 ** 9, {}, { receivedAtMs })
    assert.equal(await outcomeOf(limited, imported), 'stored', 'imports may be old')
    for (const dropEventsOlderThanSeconds of [0, null])
      assert.equal(await outcomeOf(setting({ dropEventsOlderThanSeconds }), ofAge(10 ** 10)), 'stored')
  })

  it('makes every event of a project that opted out of persons personless, and drops its merges', async () => {
    const world = setting({ personProcessingOptOut: true })
    await world.apply(
      anEvent('e', 'ada', { $set: { a: 1 }, $groups: { company: 'acme' } }),
      anEvent('e', 'ada', { $process_person_profile: true }),
      anEvent('e', 'ada', { $process_person_profile: 'odd' }),
      anEvent('$groupidentify', 'ada', { $group_type: 'company', $group_key: 'acme' }),
      anEvent('$identify', 'ada', { $anon_distinct_id: 'anon' }),
      anEvent('$ai_trace', 'ada', {}, { lane: 'ai' }),
      anImportedEvent('e', 'ada', 1_000, {}),
    )
    assert.deepEqual(
      world.rows.map(row => [row.event, row.personMode, JSON.parse(row.propertiesJson).$process_person_profile]),
      ['e', 'e', 'e', '$groupidentify', '$ai_trace', 'e'].map(event => [event, 'propertyless', false]),
    )
    assert.deepEqual([world.state.persons.size, world.state.groups.size, world.state.groupTypes.length], [0, 0, 0])
    assert.deepEqual(world.warningTypes(), ['invalid_event_when_process_person_profile_is_false'])
  })
})

describe('6.2: the profile flag', () => {
  it('treats everything but a boolean as true, and warns with the value', async () => {
    const world = aWorld()
    for (const value of ['false', 0, 1, null, [], {}, 'x'.repeat(1_000)])
      await world.apply(anEvent('e', 'ada', { $process_person_profile: value as JsonObject[string] }))
    for (const row of world.rows) assert.deepEqual([row.personMode, row.propertiesJson], ['full', '{}'])
    assert.deepEqual(
      world.state.warnings.map(({ details }) => details.$process_person_profile),
      ['false', '0', '1', 'null', '[]', '{}', 'x'.repeat(200)],
    )
  })

  it('keeps merges if the edge switched person processing off, but they link nothing and find no person', async () => {
    const world = aWorld()
    await world.apply(anEvent('e', 'ada', { $set: { a: 1 } }))
    const off = { personProcessingForcedOff: true }
    await world.apply(
      anEvent('$identify', 'ada', { $anon_distinct_id: 'anon', $set: { a: 2 }, $unset: ['a'] }, off),
      anEvent('e', 'anon', { $process_person_profile: 'odd', $group_0: 'x', $groups: { company: 'y' } }, off),
    )
    assert.deepEqual(
      world.rows.slice(1).map(row => [row.personId, row.personMode, row.personCreatedAtMs, row.groups[0]]),
      [
        [personUuid(1, 'ada'), 'propertyless', 5_000, ''],
        [personUuid(1, 'anon'), 'propertyless', 5_000, ''],
      ],
    )
    assert.equal(world.rows[1]?.propertiesJson, '{"$anon_distinct_id":"anon","$process_person_profile":false}')
    assert.deepEqual(propertiesOf(world, 2), { $process_person_profile: false, $groups: { company: 'y' } })
    assert.deepEqual(world.warningTypes(), [])
    assert.deepEqual([world.person('ada')?.version, world.person('ada')?.isIdentified], [0, false])
    assert.equal(world.state.personless.size, 0)
  })

  it('removes all group indexes from a personless event, including those that it was sent with', async () => {
    const world = aWorld()
    await world.apply(
      anEvent('e', 'ada', { $process_person_profile: false, $group_0: 'acme', $group_4: 1, $group_5: 2 }),
    )
    assert.deepEqual(propertiesOf(world), { $process_person_profile: false, $group_5: 2 })
    assert.deepEqual(world.rows[0]?.groups, ['', '', '', '', ''])
    await world.apply(anEvent('e', 'ada', { $group_0: 'acme' }))
    assert.deepEqual([world.rows[1]?.propertiesJson, world.rows[1]?.groups[0]], ['{"$group_0":"acme"}', 'acme'])
  })

  it('gives a personless event its person if that has existed for a minute, unless the project has opted out', async () => {
    for (const [personProcessingOptOut, mode] of [
      [false, 'force_upgrade'],
      [true, 'propertyless'],
    ] as const) {
      const world = aWorld()
      await world.apply(anEvent('e', 'ada', {}, { timestampMs: 1_000_000 }))
      const [project] = world.state.projects.values()
      const ingestion = { ...noIngestionSettings, personProcessingOptOut }
      world.state.projects.set(1, { ...project!, ingestion })
      await world.apply(anEvent('e', 'ada', { $process_person_profile: false }, { timestampMs: 1_060_001 }))
      assert.deepEqual([world.rows[1]?.personMode, world.rows[1]?.personCreatedAtMs], [mode, 1_000_000])
    }
  })
})

describe('6.5: validation before person processing', () => {
  it('drops any merge event if either id has a type that ids cannot have', async () => {
    for (const name of ['$identify', '$create_alias', '$merge_dangerously'])
      for (const [properties, reason] of [
        [{ $anon_distinct_id: 5, alias: 'x' }, 'invalid_anon_distinct_id'],
        [{ $anon_distinct_id: 'x', alias: false }, 'invalid_alias'],
        [{ $anon_distinct_id: ['x'] }, 'invalid_anon_distinct_id'],
        [{ alias: {} }, 'invalid_alias'],
        [{ alias: 1.5, $anon_distinct_id: {} }, 'invalid_anon_distinct_id'],
      ] as const) {
        const world = aWorld()
        assert.equal(await outcomeOf(world, anEvent(name, 'ada', properties as JsonObject)), `dropped: ${reason}`)
        assert.deepEqual(world.warningTypes(), [reason])
      }
    const world = aWorld()
    await world.apply(anEvent('e', 'ada', { $anon_distinct_id: 5, alias: 5 }))
    assert.equal(world.rows.length, 1, 'other events store them as ordinary properties')
  })

  it('drops a group event whose key is too long, whatever its type is', async () => {
    for (const name of ['$groupidentify', '$group_identify'])
      for (const more of [{ $group_type: 'company' }, {}, { $group_type: 7 }] as JsonObject[])
        for (const [key, outcome] of [
          ['k'.repeat(400), 'stored'],
          ['k'.repeat(401), 'dropped: group_key_too_long'],
          [['k'.repeat(401)], 'dropped: group_key_too_long'],
        ] as const)
          assert.equal(await outcomeOf(aWorld(), anEvent(name, 'ada', { ...more, $group_key: key as string })), outcome)
  })
})

describe('6.6: $os_name', () => {
  it('fills the event’s $os even without a person, unless the event has $os or comes from a server', async () => {
    for (const [name, more, over, os] of [
      ['e', { $process_person_profile: false }, {}, 'iOS'],
      ['e', {}, { personProcessingForcedOff: true }, 'iOS'],
      ['$groupidentify', {}, {}, 'iOS'],
      ['$ai_trace', {}, { lane: 'ai' as const }, 'iOS'],
      ['e', { $os: null }, {}, null],
      ['e', { $os: 'Android' }, {}, 'Android'],
      ['e', { $is_server: true }, {}, undefined],
      ['e', { $is_server: 'true' }, {}, 'iOS'],
      ['$snapshot', {}, {}, undefined],
    ] as const) {
      const world = aWorld()
      await world.apply(anEvent(name, 'ada', { $os_name: 'iOS', ...more }, over))
      const { $os, $os_name } = propertiesOf(world)
      assert.deepEqual([$os, $os_name], [os, 'iOS'], `${name} ${JSON.stringify(more)}`)
    }
  })

  it('is copied to $os in $set and $set_once unless the client set $os there, and is itself kept', async () => {
    const world = aWorld()
    await world.apply(
      anEvent('e', 'ada', {
        $os_name: 'iOS',
        $set: { $os_name: 'x', $os: 'mine' },
        $set_once: { $initial_os_name: 'y' },
      }),
      anEvent('e', 'server', { $os_name: 'Linux', $os: 'Linux', $os_version: '6', $is_server: true }),
      anEvent('e', 'null', { $os_name: null }),
    )
    assert.deepEqual(
      [propertiesOf(world, 0).$set, propertiesOf(world, 0).$set_once],
      [{ $os: 'mine' }, { $initial_os: 'iOS' }],
    )
    assert.deepEqual(
      [propertiesOf(world, 1).$set, propertiesOf(world, 1).$set_once],
      [{ $os_name: 'Linux' }, { $initial_os_name: 'Linux' }],
    )
    assert.deepEqual([propertiesOf(world, 2).$set, propertiesOf(world, 2).$os], [{ $os: null }, null])
  })
})

describe('6.8: preparing the stored event', () => {
  it('replaces an empty $ip with the sender’s address, and looks up no location if $ip is not text', async () => {
    const world = aWorld({ geoip: { '203.0.113.7': { country_code: 'DE' } } })
    for (const $ip of [null, '', 0, false]) await world.apply(anEvent('e', 'ada', { $ip }, { ip: '203.0.113.7' }))
    for (const row of [0, 1, 2, 3])
      assert.deepEqual(
        [propertiesOf(world, row).$ip, propertiesOf(world, row).$geoip_country_code],
        ['203.0.113.7', 'DE'],
      )
    await world.apply(anEvent('e', 'ada', { $ip: 5 }, { ip: '203.0.113.7' }))
    assert.deepEqual([propertiesOf(world, 4).$ip, propertiesOf(world, 4).$geoip_country_code], [5, undefined])
  })

  it('adds no sender address to an imported event, whatever its lane', async () => {
    const world = aWorld({ geoip: { '203.0.113.7': { country_code: 'DE' } } })
    const flagged = { historicalMigration: true, importJobId: 1, lane: 'error_tracking' as const, ip: '203.0.113.7' }
    await world.apply(anEvent('$exception', 'ada', { $exception_type: 'E' }, flagged))
    assert.equal(world.rows[0]?.propertiesJson, '{"$exception_type":"E"}')
  })

  it('leaves $unset in place and removes properties that are internal or too large', async () => {
    const world = aWorld()
    const bulk = { ph_product_tours: [1], $product_tours_activated: 1, $override_feature_flag_payloads: {} }
    const heat = { $heatmap_data: { '/': [] }, $elements: [], $elements_chain: '' }
    await world.apply(anEvent('e', 'ada', { a: 1, ...bulk, ...heat, $unset: ['x'], $process_person_profile: true }))
    assert.equal(world.rows[0]?.propertiesJson, '{"a":1,"$unset":["x"]}')
  })

  it('lower-cases a $session_id that is a UUID, and keeps any other with a warning', async () => {
    const world = aWorld()
    for (const $session_id of ['0199A000-0000-7000-8000-00000000ABCD', '', 7, 'Mine', { a: 'x'.repeat(300) }, null])
      await world.apply(anEvent('e', 'ada', { $session_id }))
    assert.deepEqual(
      world.rows.slice(0, 4).map(({ propertiesJson }) => propertiesJson),
      [
        '{"$session_id":"0199a000-0000-7000-8000-00000000abcd"}',
        '{"$session_id":""}',
        '{"$session_id":7}',
        '{"$session_id":"Mine"}',
      ],
    )
    const { warnings } = world.state
    assert.ok(warnings.every(({ type }) => type === 'invalid_event_session_id'))
    assert.deepEqual(
      warnings.map(({ details }) => String(details.sessionId).slice(0, 5)),
      ['', '7', 'Mine', '{"a":'],
    )
    assert.equal(String(warnings[3]?.details.sessionId).length, 200)
  })

  it('stores an event that grew beyond the limit as a reject, but still writes its person', async () => {
    const world = aWorld()
    for (const key of ['one', 'two']) await world.apply(anEvent('e', 'ada', { $set: { [key]: 'b'.repeat(300_000) } }))
    const event = anEvent('e', 'ada', { $set: { n: 1 }, text: 't'.repeat(eventBytesMax - 600_000) })
    assert.equal(await outcomeOf(world, event), 'rejected: message_size_too_large')
    assert.deepEqual(world.warningTypes(), ['message_size_too_large'])
    const { category, severity, ...ids } = world.state.warnings[0]!.details
    assert.deepEqual(ids, { eventUuid: event.uuid, event: 'e', distinctId: 'ada' })
    assert.deepEqual([category, severity], ['size', 'error'])
    const [reject] = world.processed[2]!.rows.rejected
    assert.deepEqual([reject?.reason, reject?.uuid], ['message_size_too_large', event.uuid])
    assert.equal(world.person('ada')?.properties.n, 1)
    const short = anEvent('e', 'ada', { text: 't'.repeat(eventBytesMax - 600_500) })
    assert.equal(await outcomeOf(world, short), 'stored')
    const ai = anEvent('$ai_trace', 'ada', { text: 't'.repeat(eventBytesMax) }, { lane: 'ai' })
    assert.equal(await outcomeOf(world, ai), 'stored', 'an AI event may be larger')
  })
})

describe('2.7: ingestion warnings sent by clients', () => {
  it('carry the message, truncated to the size limit, and its sender', async () => {
    const world = aWorld()
    const name = '$$client_ingestion_warning'
    for (const message of ['hi', 'm'.repeat(5_000), { a: 1 }, undefined])
      await world.apply(
        anEvent(name, 'ada', message === undefined ? {} : { $$client_ingestion_warning_message: message }, {
          lane: 'warnings',
        }),
      )
    assert.deepEqual(
      world.state.warnings.map(({ details }) => details.message),
      ['hi', 'm'.repeat(1_000), '{"a":1}', ''],
    )
    assert.equal(world.rows.length, 0)
    assert.equal(world.state.warnings[0]?.details.distinctId, 'ada')
  })
})
