import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { JsonObject } from '#core/json.ts'
import { deriveImportUuid } from '#importer/records/deterministic-uuid.ts'
import { convertRecords, droppedOf, eventsOf, renamedFields } from '../../../../tests/support/convert-records.ts'
import { segment } from './segment.ts'

const message = (fields: JsonObject): JsonObject => ({
  type: 'track',
  event: 'Tap',
  userId: 'ada',
  messageId: 'm',
  timestamp: '2024-05-01T12:00:00Z',
  ...fields,
})
const only = (fields: JsonObject, config?: JsonObject) => eventsOf(segment, [message(fields)], config).at(-1)!
const outcomeOf = (fields: JsonObject, config?: JsonObject) => convertRecords(segment, [message(fields)], config)[0]!
const mark = { $segment_message_id: 'm' }

describe('a Segment message', () => {
  it('keeps the name of a track call, and keeps fields without another meaning as properties', () => {
    const { event, properties } = only({ properties: { total: 5, gone: '' }, channel: 'server', writeKey: 'secret' })
    assert.deepEqual([event, properties], ['Tap', { total: 5, channel: 'server', ...mark }])
  })

  it('lists as dropped the time fields that its own time is not derived from', () => {
    const times = {
      ...{ originalTimestamp: '2024-05-01T12:00:01Z', sentAt: '2024-05-01T12:00:02Z' },
      ...{ receivedAt: '2024-05-01T12:00:03Z' },
    }
    assert.deepEqual(droppedOf(segment, message(times)), ['originalTimestamp', 'receivedAt', 'sentAt'])
    assert.deepEqual(droppedOf(segment, message({ ...times, timestamp: null })), ['receivedAt', 'sentAt'])
    assert.deepEqual(droppedOf(segment, message({ receivedAt: times.receivedAt, timestamp: null })), [])
  })

  it('lists as dropped the parts of its context that become no property', () => {
    const context = {
      network: { wifi: true },
      page: { path: '/', search: '?q' },
      device: { type: 'ios', token: 'x' },
      os: 'iOS',
      campaign: null,
      groupId: true,
    }
    assert.deepEqual(droppedOf(segment, message({ context, writeKey: 'secret' })).toSorted(), [
      'context.device.token',
      'context.groupId',
      'context.network',
      'context.os',
      'context.page.search',
      'writeKey',
    ])
  })

  it('lists as dropped the traits of its context unless an identify call uses them', () => {
    const context = { traits: { plan: 'pro' }, groupId: 'acme' }
    assert.deepEqual(droppedOf(segment, message({ context })), ['context.traits'])
    assert.deepEqual(droppedOf(segment, message({ type: 'identify', event: '', context })), [])
    const own = { type: 'identify', event: '', traits: { plan: 'free' } }
    assert.deepEqual(droppedOf(segment, message({ ...own, context })), ['context.traits'])
  })

  it('keeps fields that only other types use, and lists name fields as dropped', () => {
    const fields = { traits: { plan: 'pro' }, groupId: 'acme', previousId: 'old' }
    assert.deepEqual(only(fields).properties, { ...fields, ...mark })
    assert.deepEqual(only({ traits: {} }).properties, mark)
    assert.deepEqual(droppedOf(segment, message({ ...fields, name: 'Home' })), ['name'])
    assert.deepEqual(droppedOf(segment, message({ type: 'page', name: 'Home' })), ['event'])
  })

  it('becomes a page view with the page in its own properties, or otherwise the page in its context', () => {
    const { fields, properties } = renamedFields('referrer=$referrer title=title')
    const page = { ...fields, url: 'https://a.example.test/x', path: '/x', search: '?' }
    const own = { url: 'https://www.example.test:8443/y?z=1', path: '/y', plan: 'x' }
    const names = { name: 'Home', category: 'Docs' }
    const event = only({ type: 'page', ...names, properties: own, context: { page } })
    assert.equal(event.event, '$pageview')
    assert.deepEqual(event.properties, {
      ...{ $current_url: own.url, $host: 'www.example.test:8443', $pathname: '/y' },
      ...{ ...properties, ...names, plan: 'x', ...mark },
    })
  })

  it('keeps the properties of a track call, even if they have the names of page fields', () => {
    const { properties } = only({
      properties: { url: '/own', title: 'T' },
      context: { page: { url: 'https://a.example.test/' } },
    })
    assert.deepEqual(properties, {
      url: '/own',
      title: 'T',
      $current_url: 'https://a.example.test/',
      $host: 'a.example.test',
      ...mark,
    })
  })

  it('has its context under the names of live properties', () => {
    const { fields, properties } = renamedFields(`
      ip=$ip locale=$locale timezone=$timezone userAgent=$raw_user_agent os.name=$os os.version=$os_version
      device.id=$device_id device.manufacturer=$device_manufacturer device.model=$device_model device.name=$device_name
      app.name=$app_name app.version=$app_version app.build=$app_build app.namespace=$app_namespace
      library.name=$lib library.version=$lib_version screen.width=$screen_width screen.height=$screen_height
      screen.density=$screen_density campaign.name=utm_campaign campaign.source=utm_source campaign.medium=utm_medium
      campaign.term=utm_term campaign.content=utm_content`)
    assert.deepEqual(only({ context: fields }).properties, { ...properties, ...mark })
    const phone = { device: { type: 'android', token: 'secret' }, screen: { width: 400 }, network: { wifi: true } }
    assert.deepEqual(only({ context: phone }).properties, { $device_type: 'Mobile', $screen_width: 400, ...mark })
  })

  it('belongs to the group in its context', () => {
    const { properties } = only({ context: { groupId: 'acme' } }, { segment_group_type: 'team' })
    assert.deepEqual(properties.$groups, { team: 'acme' })
    assert.deepEqual(only({ context: { groupId: 5 } }).properties.$groups, { company: '5' })
    // Placeholders for persons are valid keys of groups.
    for (const groupId of ['0', 'true'])
      assert.deepEqual(only({ context: { groupId } }).properties.$groups, { company: groupId })
    assert.equal(only({ context: { groupId: ' ' } }).properties.$groups, undefined)
  })

  it('has a uuid derived from its own id', () => {
    const uuid = '022BB90C-BBAC-41E4-8DFC-AA07A5B09302'
    assert.equal(only({ messageId: uuid }).uuid, uuid.toLowerCase())
    assert.equal(only({ messageId: 'ajs-1' }).uuid, deriveImportUuid('segment', 'message', 'ajs-1'))
    assert.deepEqual(only({ messageId: null }).properties, {})
  })

  it('is skipped only when its integrations switch off PostHog itself', () => {
    assert.deepEqual(outcomeOf({ integrations: { PostHog: false }, type: 'unheard' }), {
      skipped: 'destination_disabled',
    })
    for (const integrations of [{ All: false }, { PostHog: true }, { PostHog: {} }, null])
      assert.equal(only({ integrations }).event, 'Tap')
  })

  it('is refused with the name of the faulty field', () => {
    const refusals: [JsonObject, string, string][] = [
      [{ type: null }, 'event_missing', 'type'],
      [{ type: 'batch' }, 'unsupported_event', 'type'],
      [{ properties: 'x' }, 'properties_not_object', 'properties'],
      [{ type: 'group' }, 'distinct_id_missing', 'groupId'],
      [{ type: 'group', groupId: '(not set)' }, 'distinct_id_missing', 'groupId'],
      [{ type: 'group', groupId: true }, 'distinct_id_illegal', 'groupId'],
      [{ type: 'alias' }, 'distinct_id_missing', 'previousId'],
      [{ type: 'alias', previousId: 'guest' }, 'distinct_id_illegal', 'previousId'],
    ]
    for (const [fields, reason, field] of refusals)
      assert.deepEqual(outcomeOf(fields), { rejected: { reason, field } }, JSON.stringify(fields).slice(0, 80))
  })
})

describe('a link between Segment ids', () => {
  const ids = { userId: 'ada', anonymousId: 'an-1' }
  const identify = { type: 'identify', ...ids, traits: { email: 'a@example.test', gone: null } }
  const namesOf = (...messages: JsonObject[]) =>
    convertRecords(segment, messages.map(message)).map(outcome =>
      'events' in outcome ? outcome.events.map(({ event }) => event) : [],
    )

  it('is made by an identify call with both ids, without a second event', () => {
    assert.deepEqual(only(identify).properties, {
      $anon_distinct_id: 'an-1',
      $set: { email: 'a@example.test' },
      ...mark,
    })
    assert.deepEqual(namesOf(identify, ids, identify), [['$identify'], ['Tap'], ['$identify']])
  })

  it('is not made by an identify call with one id, two equal ids or a placeholder', () => {
    for (const anonymousId of [null, 'ada', 'undefined']) {
      const event = only({ ...identify, anonymousId })
      assert.deepEqual([event.event, event.properties], ['$set', { $set: { email: 'a@example.test' }, ...mark }])
    }
    assert.equal(only({ ...identify, userId: null }).distinct_id, 'an-1')
  })

  it('is made with the traits in the context if the call has no traits', () => {
    const context = { traits: { plan: 'team' } }
    assert.deepEqual(only({ ...identify, traits: {}, context }).properties.$set, { plan: 'team' })
    assert.deepEqual(only({ ...identify, context }).properties.$set, { email: 'a@example.test' })
    assert.equal('$set' in only({ ...identify, traits: {} }).properties, false)
  })

  it('is made by an alias call, unless both ids are the same', () => {
    const { event, distinct_id, properties } = only({ type: 'alias', previousId: 'old' })
    assert.deepEqual([event, distinct_id, properties], ['$create_alias', 'ada', { alias: 'old', ...mark }])
    assert.deepEqual(outcomeOf({ type: 'alias', previousId: 'ada' }), { skipped: 'filtered' })
  })
})

describe('a Segment group call', () => {
  const groupOf = (fields: JsonObject, config?: JsonObject) =>
    only({ type: 'group', groupId: 'g', ...fields }, config).properties

  it('sets the properties of the group', () => {
    const group = { $group_type: 'company', $group_key: 'g', $group_set: { name: 'Acme' }, ...mark }
    assert.deepEqual(groupOf({ traits: { name: 'Acme', gone: '' } }), group)
    assert.deepEqual(groupOf({}), { ...group, $group_set: {} })
    assert.deepEqual(groupOf({}, { segment_group_type: 'team' }).$group_type, 'team')
    for (const groupId of ['0', 'true']) assert.equal(groupOf({ groupId }).$group_key, groupId)
  })

  it('takes the group type from its traits, which then do not contain it as a property', () => {
    const named = groupOf({ traits: { groupType: 'workspace', name: 'N' } })
    assert.deepEqual([named.$group_type, named.$group_set], ['workspace', { name: 'N' }])
    const other = groupOf({ traits: { groupType: 5, name: 'N' } })
    assert.deepEqual([other.$group_type, other.$group_set], ['company', { groupType: 5, name: 'N' }])
  })
})

describe('the time of a Segment message', () => {
  const times = {
    originalTimestamp: '2024-05-01T13:00:00.000Z',
    sentAt: '2024-05-01T13:00:10.000Z',
    receivedAt: '2024-05-01T12:00:10.000100Z',
  }
  const timeOf = (fields: JsonObject, config?: JsonObject) => only({ timestamp: null, ...fields }, config).timestamp

  it('is the time corrected by Segment, else by the importer, else the device’s time, else the time of receipt', () => {
    assert.equal(timeOf({ ...times, timestamp: '2024-05-01T11:00:00.5Z' }), '2024-05-01T11:00:00.500Z')
    assert.equal(timeOf(times), '2024-05-01T12:00:00.000100Z')
    assert.equal(timeOf({ ...times, sentAt: null }), '2024-05-01T13:00:00.000Z')
    assert.equal(timeOf({ receivedAt: times.receivedAt }), '2024-05-01T12:00:10.000100Z')
    assert.equal(timeOf({ ...times, timestamp: 'yesterday' }), '2024-05-01T12:00:00.000100Z')
    for (const sentAt of ['2024-05-01 13:00:10', 'soon'])
      assert.equal(timeOf({ ...times, sentAt }), '2024-05-01T13:00:00.000Z')
  })

  it('needs a time zone in the text or in the configuration', () => {
    const zoneless = { timestamp: '2024-05-01 12:00:00' }
    const refused = { rejected: { reason: 'timestamp_zone_unknown', field: 'timestamp' } }
    assert.deepEqual(outcomeOf(zoneless), refused)
    assert.equal(timeOf(zoneless, { source_timezone: 'Europe/Berlin' }), '2024-05-01T10:00:00.000Z')
  })

  it('is refused as unreadable with the name of the first field that has a value', () => {
    const refused = { rejected: { reason: 'timestamp_invalid', field: 'receivedAt' } }
    assert.deepEqual(outcomeOf({ timestamp: null, receivedAt: 'x' }), refused)
  })
})
