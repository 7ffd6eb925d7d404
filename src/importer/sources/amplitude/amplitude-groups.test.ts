import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { JsonObject } from '#core/json.ts'
import { contentHash, rootUuid } from '#importer/records/deterministic-uuid.ts'
import { convertRecords, eventsOf, type ShownOutcome } from '../../../../tests/support/convert-records.ts'
import { amplitude } from './amplitude.ts'

const line = (fields: JsonObject): JsonObject => ({
  event_type: 'Opened',
  user_id: 'ada',
  event_time: '2024-05-01 12:00:00',
  ...fields,
})
const acme = (properties: JsonObject) =>
  line({ groups: { org: ['acme'] }, group_properties: { org: { acme: properties } } })
const groupEvents = (...records: JsonObject[]) =>
  eventsOf(amplitude, records)
    .filter(({ event }) => event === '$groupidentify')
    .map(({ properties }) => properties)

function withEvents(outcome: ShownOutcome): Extract<ShownOutcome, { events: unknown }> {
  assert.ok('events' in outcome)
  return outcome
}

describe('the groups of an event of Amplitude', () => {
  it('cause a $groupidentify when they are new or their properties change', () => {
    const gold = { $group_type: 'org', $group_key: 'acme', $group_set: { tier: 'gold' } }
    assert.deepEqual(groupEvents(acme({ tier: 'gold' }), acme({ tier: 'gold' }), acme({ seats: 5 })), [
      gold,
      { ...gold, $group_set: { seats: 5 }, $group_unset: ['tier'] },
    ])
    const [event] = eventsOf(amplitude, [acme({ tier: 'gold', gone: 'EMPTY' })])
    assert.equal(event!.uuid, rootUuid('groupidentify', 'amplitude', 'org', 'acme', contentHash({ tier: 'gold' })))
  })

  it('keep their properties when a record only names them', () => {
    const named = line({ groups: { org: ['acme'] } })
    const sets = groupEvents(named, acme({ tier: 'gold' }), named, acme({ tier: 'gold' })).map(each => each.$group_set)
    assert.deepEqual(sets, [{}, { tier: 'gold' }])
  })

  it('are reduced to one per type in the event, with a $groupidentify for each', () => {
    const record = line({
      groups: { org: ['', 'north', 'south', 'EMPTY'], team: 'red' },
      group_properties: { org: { west: { tier: 'new' }, '': { tier: 'none' }, '(not set)': {} } },
    })
    const { events, notes } = withEvents(convertRecords(amplitude, [record])[0]!)
    assert.deepEqual(events.at(-1)!.properties.$groups, { org: 'north', team: 'red' })
    assert.deepEqual(
      events.slice(0, -1).map(({ properties }) => properties.$group_key),
      ['north', 'south', 'west', 'red'],
    )
    assert.deepEqual(notes, ['group_values_dropped'])
  })

  it('may have keys that are illegal as ids of persons', () => {
    const record = line({
      groups: { org: [0, 'guest', 'True'] },
      group_properties: { org: { null: { tier: 'new' } } },
    })
    const { events } = withEvents(convertRecords(amplitude, [record])[0]!)
    assert.deepEqual(events.at(-1)!.properties.$groups, { org: '0' })
    assert.deepEqual(
      events.slice(0, -1).map(({ properties }) => properties.$group_key),
      ['0', 'guest', 'True', 'null'],
    )
  })

  it('may be the only content of a record', () => {
    const call = { ...acme({ tier: 'gold' }), event_type: '$groupidentify' }
    assert.deepEqual(
      eventsOf(amplitude, [call]).map(({ event }) => event),
      ['$groupidentify'],
    )
    const empty = line({ event_type: '$groupidentify', groups: {} })
    assert.deepEqual(convertRecords(amplitude, [empty]), [{ skipped: 'filtered' }])
  })
})

describe('a row of a merge file of Amplitude', () => {
  const merge = { scope: 9001, merge_time: '2024-05-02 08:00:00', amplitude_id: 2, merged_amplitude_id: 1 }
  const seen = (amplitudeId: number, ids: JsonObject) => line({ amplitude_id: amplitudeId, user_id: null, ...ids })
  const outcomeOf = (records: JsonObject[], config?: JsonObject) => convertRecords(amplitude, records, config).at(-1)!

  it('links the user and the device of the events with its ids, in either order', () => {
    for (const [user, device] of [
      [1, 2],
      [2, 1],
    ] as const) {
      const outcome = outcomeOf([seen(user, { user_id: 'ada' }), seen(device, { device_id: 'd' }), merge])
      assert.deepEqual(outcome, {
        events: [
          {
            uuid: rootUuid('identify', 'amplitude', 'ada', 'd'),
            event: '$identify',
            distinct_id: 'ada',
            timestamp: '2024-05-02T08:00:00.000Z',
            properties: { $anon_distinct_id: 'd' },
          },
        ],
        notes: [],
      })
    }
  })

  it('joins two users only with consent', () => {
    const records = [seen(1, { user_id: 'ada' }), seen(2, { user_id: 'bob' }), merge]
    const field = 'merged_amplitude_id'
    assert.deepEqual(outcomeOf(records), { rejected: { reason: 'merge_needs_approval', field } })
    const { events } = withEvents(outcomeOf(records, { allow_dangerous_merge: true }))
    assert.partialDeepStrictEqual(events, [
      {
        uuid: rootUuid('merge', 'amplitude', 'ada', 'bob'),
        event: '$merge_dangerously',
        distinct_id: 'ada',
        properties: { alias: 'bob' },
      },
    ])
  })

  it('is skipped when no event has one of its ids', () => {
    assert.deepEqual(outcomeOf([seen(1, { user_id: 'ada' }), merge]), { skipped: 'filtered' })
  })
})
