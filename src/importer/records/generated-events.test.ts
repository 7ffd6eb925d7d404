import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { JsonObject } from '#core/json.ts'
import { deriveImportUuid, hashCanonicalContent } from './deterministic-uuid.ts'
import { addPersonSetProperties, createRecordEvents, isIdentityLink } from './generated-events.ts'
import { createInMemoryLedger } from './import-ledger.ts'
import type { ConvertedRecord, GroupSnapshot, IdentityLink, ImportedEvent } from './imported-event.ts'

const own: ImportedEvent = { uuid: 'u', event: 'Tap', distinctId: 'ada', timeUs: 7, properties: { n: 1 } }
const link = (over: Partial<IdentityLink> = {}): IdentityLink => ({
  userId: 'ada',
  deviceId: 'd',
  timeUs: 7,
  properties: { $device: 'x' },
  ...over,
})
const group = (properties: JsonObject | null): GroupSnapshot => ({
  type: 'org',
  key: 'acme',
  properties,
  distinctId: 'ada',
  timeUs: 7,
})

/** The events of consecutive records. */
function eventsOf(...records: Partial<ConvertedRecord>[]) {
  const ledger = createInMemoryLedger()
  return records.map(record => createRecordEvents('heap', { events: [own], ...record }, ledger))
}

it('addPersonSetProperties merges into the $set of an event, and replaces a $set that is not an object', () => {
  for (const [$set, all] of [
    [
      { a: 1, b: 1 },
      { a: 1, b: 2 },
    ],
    ['text', { b: 2 }],
  ] as const)
    assert.deepEqual(addPersonSetProperties({ ...own, properties: { $set } }, { b: 2 }).properties, { $set: all })
})

describe('the events of a record', () => {
  it('come in a fixed order: group events, links, the record’s own events', () => {
    const { events } = eventsOf({ links: [link()], groups: [group({})] })[0]!
    assert.deepEqual(
      events.map(({ event }) => event),
      ['$groupidentify', '$identify', 'Tap'],
    )
    assert.deepEqual(events[1], {
      uuid: deriveImportUuid('identify', 'heap', 'ada', 'd'),
      event: '$identify',
      distinctId: 'ada',
      timeUs: 7,
      properties: { $anon_distinct_id: 'd', $device: 'x' },
    })
  })

  it('contain no second link for a record that is a link; a refused link becomes a $set', () => {
    const identify = { ...own, event: '$identify', properties: { $anon_distinct_id: 'd', $set: { plan: 'pro' } } }
    const ofAda = { events: [identify], links: [link({ isOwnEvent: true })] }
    const ofBob = { events: [{ ...identify, distinctId: 'bob' }], links: [link({ userId: 'bob', isOwnEvent: true })] }
    const outcomes = eventsOf(ofAda, { links: [link()] }, ofBob)
    assert.deepEqual(outcomes[0]!.events, [identify])
    assert.deepEqual(outcomes[1]!.events, [own])
    const set = { ...identify, event: '$set', distinctId: 'bob', properties: { $set: { plan: 'pro' } } }
    assert.deepEqual([outcomes[2]!.events, outcomes[2]!.notes], [[set], ['shared_device']])
  })

  it('link no id to itself, to a placeholder or to an id that is too long', () => {
    for (const deviceId of ['d', '😀'.repeat(101)]) assert.equal(isIdentityLink({ userId: 'ada', deviceId }), true)
    for (const deviceId of ['ada', 'null', '', 'x'.repeat(201)])
      assert.equal(isIdentityLink({ userId: 'ada', deviceId }), false)
    assert.deepEqual(eventsOf({ links: [link({ deviceId: 'guest' })] })[0]!.events, [own])
  })

  it('include a $groupidentify only when properties of a group change, with an unset of removed properties', () => {
    const groupEvents = eventsOf(
      { groups: [group({ tier: 'gold' })] },
      { groups: [group({ tier: 'gold' })] },
      { groups: [group(null)] },
      { groups: [group({ seats: 5 })] },
    ).map(({ events }) => events.slice(0, -1).map(({ uuid, properties }) => ({ uuid, ...properties })))
    const expected = (set: JsonObject) => ({
      uuid: deriveImportUuid('groupidentify', 'heap', 'org', 'acme', hashCanonicalContent(set)),
      $group_type: 'org',
      $group_key: 'acme',
      $group_set: set,
    })
    assert.deepEqual(groupEvents, [
      [expected({ tier: 'gold' })],
      [],
      [],
      [{ ...expected({ seats: 5 }), $group_unset: ['tier'] }],
    ])
    assert.deepEqual(eventsOf({ groups: [group(null)] })[0]!.events[0]!.properties.$group_set, {})
  })

  it("set the changed properties of a person, in addition to the event's own $set", () => {
    const person = (properties: JsonObject) => ({ person: { distinctId: 'ada', properties } })
    const sets = { ...own, properties: { $set: { $os: 'Linux' } } }
    const outcomes = eventsOf(
      { events: [sets, own], ...person({ plan: 'pro', tags: ['a'] }) },
      { ...person({ plan: 'team', tags: ['a'] }) },
      { ...person({ plan: 'team', tags: ['a'] }) },
    )
    assert.deepEqual(
      outcomes.map(({ events }) => events.map(({ properties }) => properties.$set)),
      [[{ $os: 'Linux', plan: 'pro', tags: ['a'] }, undefined], [{ plan: 'team' }], [undefined]],
    )
    assert.deepEqual(own.properties, { n: 1 }, 'the record itself is not changed')
  })
})
