import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { convertRecords, eventsOf } from '../../../../tests/support/convert-records.ts'
import { pendo, statsig } from './generic.ts'

describe('a Pendo event', () => {
  const row = { eventType: 'load', visitorId: 'v-1', accountId: 'a-1', browserTimestamp: 1714564800250 }

  it('becomes a page view of its visitor and account, exact to the millisecond', () => {
    const record = { ...row, url: 'https://app.example.test/', remoteIp: '192.0.2.1', propertiesJson: '{"plan":"pro"}' }
    const [event] = eventsOf(pendo, [record])
    assert.partialDeepStrictEqual(event, {
      event: '$pageview',
      distinct_id: 'v-1',
      timestamp: '2024-05-01T12:00:00.250Z',
    })
    assert.deepEqual(event!.properties, {
      plan: 'pro',
      $current_url: 'https://app.example.test/',
      $ip: '192.0.2.1',
      $groups: { account: 'a-1' },
    })
  })

  it('becomes an interaction with its type, or a survey response', () => {
    const of = (eventType: string) => eventsOf(pendo, [{ ...row, eventType, pollId: 'p-1', pollResponse: '9' }])[0]!
    for (const kind of ['click', 'change', 'focus']) {
      assert.equal(of(kind).event, '$autocapture')
      assert.equal(of(kind).properties.$event_type, kind)
    }
    const { event, properties } = of('pollResponse')
    assert.deepEqual([event, properties.$survey_id, properties.$survey_response], ['survey sent', 'p-1', '9'])
    assert.equal(of('guideSeen').event, 'guideSeen')
  })
})

describe('a Statsig event', () => {
  const row = { event_name: 'auto_capture::page_view', user_id: 'u-1', timestamp: '1714564800250' }

  it('has Pennon’s name for the event, and its metadata as properties', () => {
    const [event] = eventsOf(statsig, [
      { ...row, value: 'https://a.example.test/', metadata: { browser_name: 'Firefox' } },
    ])
    assert.deepEqual(event!.properties, { $current_url: 'https://a.example.test/', $browser: 'Firefox' })
    const names = ['auto_capture::page_view', 'auto_capture::page_view_end', 'auto_capture::click', 'bought'].map(
      event_name => eventsOf(statsig, [{ ...row, event_name }])[0]!.event,
    )
    assert.deepEqual(names, ['$pageview', '$pageleave', '$autocapture', 'bought'])
  })

  it('is linked to its device, whose id is used when the user is missing', () => {
    const [link, event] = eventsOf(statsig, [{ ...row, device_id: 'd-1' }])
    assert.deepEqual(link!.properties, { $anon_distinct_id: 'd-1' })
    assert.deepEqual(event!.properties, { $device_id: 'd-1' })
    assert.equal(eventsOf(statsig, [{ ...row, user_id: '', device_id: 'd-1' }])[0]!.distinct_id, 'd-1')
  })

  it('is skipped when it marks the start of a session', () => {
    assert.deepEqual(convertRecords(statsig, [{ ...row, event_name: 'auto_capture::session_start' }]), [
      { skipped: 'session_marker' },
    ])
  })
})
