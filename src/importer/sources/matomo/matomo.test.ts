import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import type { JsonObject } from '#core/json.ts'
import { deriveImportUuid, deriveSessionUuid } from '#importer/records/deterministic-uuid.ts'
import {
  conversionTimeMs,
  convertRecords,
  droppedOf,
  eventsOf,
  renamedFields,
} from '../../../../tests/support/convert-records.ts'
import { matomo } from './matomo.ts'

/** 2024-05-01T10:00:00Z */
const start = 1714557600
const visit = (actionDetails: JsonObject[], value: JsonObject = {}): JsonObject => ({
  idSite: 1,
  idVisit: 900,
  visitorId: 'a1b2c3d4e5f60718',
  firstActionTimestamp: start,
  actionDetails,
  ...value,
})
const action = (value: JsonObject): JsonObject => ({ type: 'action', pageId: 1, timestamp: start, ...value })
const session = deriveSessionUuid(start * 1_000, 'matomo', 'session', '1', '900')
const timesOf = (...args: Parameters<typeof eventsOf>) => eventsOf(...args).map(({ timestamp }) => timestamp)

describe('the times of a Matomo visit', () => {
  it('are those of its actions, without the UTC offset that Matomo added', () => {
    const shift = 2 * 3_600
    const actions = [action({ timestamp: start + shift + 30, pageId: 2 }), action({ timestamp: start + shift })]
    assert.deepEqual(timesOf(matomo, [visit(actions)]), ['2024-05-01T10:00:30.000Z', '2024-05-01T10:00:00.000Z'])
  })

  it('are right in every zone, as texts and as numbers, even if they are a few seconds off', () => {
    const quarters = fc.integer({ min: -48, max: 56 })
    const late = fc.integer({ min: -449, max: 449 })
    const later = fc.array(fc.integer({ min: 0, max: 7_200 }), { maxLength: 4 })
    fc.assert(
      fc.property(quarters, late, later, fc.boolean(), (quarter, lateSeconds, offsets, asText) => {
        const actions = [0, ...offsets].map((offset, index) => {
          const timestamp = start + lateSeconds + offset + quarter * 900
          return action({ pageId: index + 1, timestamp: asText ? String(timestamp) : timestamp })
        })
        const expected = [0, ...offsets].map(offset => new Date((start + lateSeconds + offset) * 1_000).toISOString())
        assert.deepEqual(timesOf(matomo, [visit(actions)]), expected)
      }),
    )
  })

  it('are right on both sides of a clock change, since each visit reveals its own UTC offset', () => {
    const winter = Date.UTC(2024, 0, 10, 9) / 1_000
    const visits = [
      visit([action({ timestamp: winter + 3_600 })], { firstActionTimestamp: winter }),
      visit([action({ timestamp: start + 7_200 })]),
    ]
    assert.deepEqual(timesOf(matomo, visits), ['2024-01-10T09:00:00.000Z', '2024-05-01T10:00:00.000Z'])
  })

  const autumn = Date.UTC(2024, 9, 27, 1) / 1_000
  const spring = Date.UTC(2024, 2, 31, 1) / 1_000
  /** Minutes before and after the clocks of Berlin change. */
  const across = (change: number, minutes: readonly number[], value: JsonObject = {}) => {
    const [winter, summer] = [3_600, 7_200]
    const shiftOf = (minute: number) => (minute < 0 === (change === autumn) ? summer : winter)
    const seconds = minutes.map(minute => change + minute * 60)
    const actions = minutes.map((minute, index) =>
      action({ pageId: index + 1, timestamp: seconds[index]! + shiftOf(minute) }),
    )
    const span = { firstActionTimestamp: Math.min(...seconds), lastActionTimestamp: Math.max(...seconds) }
    return {
      visit: visit(actions, { ...span, ...value }),
      expected: seconds.map(second => new Date(second * 1_000).toISOString()),
    }
  }
  for (const [name, change, minutes] of [
    ['go back', autumn, [-10, -5, 5, 20]],
    ['go back, with pages of both passes that look in order', autumn, [-50, -40, 80]],
    ['go back, at that very instant', autumn, [-1, 0]],
    ['go forward', spring, [-10, -1, 0, 70]],
  ] as const)
    it(`are right in a visit during which clocks ${name}`, () => {
      const { visit: visited, expected } = across(change, minutes)
      assert.deepEqual(timesOf(matomo, [visited]), expected)
      assert.deepEqual(timesOf(matomo, [visited], { source_timezone: 'Europe/Berlin' }), expected)
    })

  it('follow the position numbers of the actions if a visit across a clock change lists them by local time', () => {
    const { visit: visited, expected } = across(autumn, [-10, 5, 10, 15])
    const actions = (visited.actionDetails as JsonObject[]).map((each, interactionPosition) => ({
      ...each,
      interactionPosition,
    }))
    const actionDetails = actions.toSorted(
      (a, b) => Number((a as JsonObject).timestamp) - Number((b as JsonObject).timestamp),
    )
    const found = eventsOf(matomo, [{ ...visited, actionDetails }])
    assert.deepEqual(found.map(({ timestamp }) => timestamp).toSorted(), expected)
    const { lastActionTimestamp, ...untold } = visited
    assert.deepEqual(timesOf(matomo, [{ ...untold, serverTimestamp: lastActionTimestamp! }]), expected)
  })

  it('have one UTC offset if only another zone changes its clocks, or if pings follow the last action', () => {
    const actions = [action({ timestamp: autumn }), action({ timestamp: autumn + 60, pageId: 2 })]
    const inUtc = visit(actions, { firstActionTimestamp: autumn, lastActionTimestamp: autumn + 1_800 })
    assert.deepEqual(timesOf(matomo, [inUtc]), ['2024-10-27T01:00:00.000Z', '2024-10-27T01:01:00.000Z'])
    const early = visit(
      actions.map(each => ({ ...each, timestamp: Number(each.timestamp) - 600 + 7_200 })),
      { firstActionTimestamp: autumn - 600, lastActionTimestamp: autumn + 3_060 },
    )
    assert.deepEqual(timesOf(matomo, [early]), ['2024-10-27T00:50:00.000Z', '2024-10-27T00:51:00.000Z'])
  })

  it('are calculated from the end of the visit if only that is known', () => {
    const actions = [action({ timestamp: start + 7_200 }), action({ timestamp: start + 7_260, pageId: 2 })]
    const ended = visit(actions, { firstActionTimestamp: null, lastActionTimestamp: start + 60 })
    assert.deepEqual(timesOf(matomo, [ended]), ['2024-05-01T10:00:00.000Z', '2024-05-01T10:01:00.000Z'])
  })

  it('need the zone of the site if the visit reveals none', () => {
    const untold = visit([action({ timestamp: start + 7_200 })], { firstActionTimestamp: null })
    assert.deepEqual(convertRecords(matomo, [untold]), [
      { rejected: { reason: 'timestamp_zone_unknown', field: 'firstActionTimestamp' } },
    ])
    assert.deepEqual(timesOf(matomo, [untold], { source_timezone: 'Europe/Berlin' }), ['2024-05-01T10:00:00.000Z'])
  })

  it('are refused when missing, unreadable or in the future, with the name of the action', () => {
    const ahead = conversionTimeMs / 1_000 + 7_200
    const visits = [
      visit([action({}), action({ timestamp: null })]),
      visit([action({ timestamp: 'noon' })]),
      visit([action({ timestamp: ahead })], { firstActionTimestamp: ahead }),
    ]
    assert.deepEqual(convertRecords(matomo, visits), [
      { rejected: { reason: 'timestamp_missing', field: 'actionDetails[1].timestamp' } },
      { rejected: { reason: 'timestamp_invalid', field: 'actionDetails[0].timestamp' } },
      { rejected: { reason: 'timestamp_future', field: 'actionDetails[0].timestamp' } },
    ])
  })

  it('do not depend on the time of a goal, which is not an event', () => {
    const goal = { type: 'goal', goalName: 'Signed up' }
    assert.deepEqual(timesOf(matomo, [visit([action({}), goal])]), ['2024-05-01T10:00:00.000Z'])
  })
})

describe('an action of a Matomo visit', () => {
  const url = 'https://site.example.test/x?a=1'
  const page = { $current_url: url, $host: 'site.example.test', $pathname: '/x' }
  const shown: readonly (readonly [type: string, action: JsonObject, event: string, properties: JsonObject])[] = [
    ['a page', { url, pageTitle: 'X', title: 'X shown' }, '$pageview', { ...page, title: 'X' }],
    [
      'an event',
      { type: 'event', url, eventCategory: 'Video', eventAction: 'play', eventName: 'intro', eventValue: '9.66' },
      'play',
      { ...page, eventCategory: 'Video', eventAction: 'play', eventName: 'intro', eventValue: '9.66' },
    ],
    [
      'a search',
      { type: 'search', siteSearchKeyword: 'lamp', siteSearchCategory: 'home', siteSearchCount: 0 },
      'site_search',
      { search_term: 'lamp', siteSearchCategory: 'home', siteSearchCount: 0 },
    ],
    ['a download', { type: 'download', url }, 'file_download', page],
    ['an outlink', { type: 'outlink', url }, 'outlink', page],
    [
      'an order',
      { type: 'ecommerceOrder', pageId: null, orderId: 'o-1', revenue: 40, itemDetails: [{ itemSKU: 's-1' }] },
      'order_completed',
      { orderId: 'o-1', revenue: 40, itemDetails: [{ itemSKU: 's-1' }] },
    ],
    ['a cart', { type: 'ecommerceAbandonedCart', pageId: null, revenue: 15 }, 'cart_abandoned', { revenue: 15 }],
    [
      'content that was shown',
      { type: '13', contentName: 'Banner', contentPiece: '/b.png', contentTarget: null, contentInteraction: '' },
      'content_impression',
      { content_name: 'Banner', content_piece: '/b.png' },
    ],
    [
      'content that was used, with a number as type',
      { type: 13, contentName: 'Banner', contentTarget: url, contentInteraction: 'click' },
      'content_interaction',
      { content_name: 'Banner', content_target: url, content_interaction: 'click' },
    ],
    ['an unknown type', { type: 'form', formName: 'f' }, 'matomo_form', { formName: 'f' }],
  ]
  for (const [what, value, event, properties] of shown)
    it(`becomes an event: ${what}`, () => {
      const [made] = eventsOf(matomo, [visit([action(value)])])
      assert.deepEqual([made!.event, made!.properties], [event, { ...properties, $session_id: session }])
    })

  it('of an unknown type adds a note with the type', () => {
    const actions = ['form', 'action', 'form', 'media'].map((type, index) => action({ type, pageId: index + 1 }))
    assert.partialDeepStrictEqual(convertRecords(matomo, [visit(actions)]), [
      { notes: ['matomo_type_unknown:form', 'matomo_type_unknown:form', 'matomo_type_unknown:media'] },
    ])
  })

  it('has a uuid derived from its row in Matomo, its order id, or its position among actions of its type', () => {
    const order = { type: 'ecommerceOrder', pageId: null }
    const actions = [
      action({ pageId: '5001' }),
      action({ ...order, orderId: 'o-1' }),
      action({ ...order, orderId: '', timestamp: start + 5 }),
      action({ type: 'ecommerceAbandonedCart', pageId: null }),
      action({ type: 'goal' }),
      action({ type: 13, pageId: 5002 }),
      action({ pageId: null, timestamp: String(start + 9) }),
    ]
    const expected = [
      deriveImportUuid('matomo', '1', '900', '5001', 'action'),
      deriveImportUuid('matomo', '1', '900', 'ecommerceOrder', 'o-1'),
      deriveImportUuid('matomo', '1', '900', 'ecommerceOrder', String(start + 5), '2'),
      deriveImportUuid('matomo', '1', '900', 'ecommerceAbandonedCart', String(start), '1'),
      deriveImportUuid('matomo', '1', '900', '5002', '13'),
      deriveImportUuid('matomo', '1', '900', 'action', String(start + 9), '2'),
    ]
    const uuids = eventsOf(matomo, [visit(actions)]).map(({ uuid }) => uuid)
    assert.deepEqual(uuids, expected)
  })

  it('has a distinct uuid when the visit has no id', () => {
    const anonymous = (visitorId: string) => visit([action({}), action({})], { idVisit: null, visitorId })
    const events = eventsOf(matomo, [anonymous('a'), anonymous('b')])
    assert.equal(new Set(events.map(({ uuid }) => uuid)).size, 4)
  })

  it('causes the visit to be refused when it has no type', () => {
    assert.deepEqual(convertRecords(matomo, [visit([action({ type: null })])]), [
      { rejected: { reason: 'event_missing', field: 'actionDetails[0].type' } },
    ])
  })
})

describe('a Matomo visit', () => {
  it('sets its properties on each of its actions, whose own properties take precedence', () => {
    const { fields, properties } = renamedFields(`
      visitIp=$ip browserName=$browser browserVersion=$browser_version operatingSystemName=$os
      operatingSystemVersion=$os_version deviceType=$device_type languageCode=$browser_language referrerUrl=$referrer
      referrerName=referrerName country=$geoip_country_name region=$geoip_subdivision_1_name city=$geoip_city_name
      continent=$geoip_continent_name visitCount=visitCount`)
    const numbers = { latitude: '45.764', longitude: 4.8357, resolution: '1920x1080', countryCode: 'fr' }
    const dropped = { referrerKeyword: 'Keyword not defined', browserIcon: 'b.png', visitDurationPretty: '5 s' }
    const actions = [action({ icon: 'i.png' }), action({ pageId: 2, referrerName: 'Goal' })]
    const [first, second] = eventsOf(matomo, [visit(actions, { ...fields, ...numbers, ...dropped })])
    const expected = {
      ...properties,
      ...{ $geoip_latitude: 45.764, $geoip_longitude: 4.8357, $screen_width: 1920, $screen_height: 1080 },
      ...{ $geoip_country_code: 'FR', $session_id: session },
    }
    assert.deepEqual(first!.properties, expected)
    assert.deepEqual(second!.properties, { ...expected, referrerName: 'Goal' })
  })

  it('lists the fields that no event carries', () => {
    const value = visit([action({ icon: 'i.png' }), action({ icon: 'i.png', pageId: 2 })], { browserIcon: 'b.png' })
    assert.deepEqual(droppedOf(matomo, value), ['browserIcon', 'actionDetails.icon'])
  })

  it('lists times, titles and fields of goals that no event carries, with a note about goals', () => {
    const goal = {
      type: 'goal',
      timestamp: start + 1,
      url: 'https://a.example.test/',
      goalName: 'Bought',
      goalId: null,
    }
    const times = { lastActionTimestamp: start + 1, serverTimestamp: start + 1, serverDate: '' }
    const actions = [action({ title: 'T', pageTitle: 'Shop' }), action({ pageId: 2, title: 'A', pageTitle: 'A' })]
    const value = visit([...actions, goal, goal], times)
    const notes = ['matomo_goal_left_out', 'matomo_goal_left_out']
    assert.partialDeepStrictEqual(convertRecords(matomo, [value]), [{ notes }])
    assert.deepEqual(droppedOf(matomo, value), [
      ...['lastActionTimestamp', 'serverTimestamp', 'actionDetails.title', 'actionDetails.url'],
      'actionDetails.goalName',
    ])
  })

  it('links the user and the visitor at its first action', () => {
    const actions = [action({ pageId: 2, timestamp: start + 60 }), action({})]
    const [link] = eventsOf(matomo, [visit(actions, { userId: 'ada' })])
    assert.deepEqual([link!.event, link!.timestamp], ['$identify', '2024-05-01T10:00:00.000Z'])
  })

  it('may have its actions as an object, as PHP writes them', () => {
    const list = visit([action({}), action({ pageId: 2 })])
    const object = visit([], { actionDetails: { 0: action({}), 2: action({ pageId: 2 }) } })
    assert.deepEqual(eventsOf(matomo, [object]), eventsOf(matomo, [list]))
  })

  it('is skipped if it has no actions, or only goals', () => {
    const visits = [visit([]), visit([], { actionDetails: null }), visit([{ type: 'goal', timestamp: start }])]
    assert.deepEqual(convertRecords(matomo, visits), [
      { skipped: 'visit_without_actions' },
      { skipped: 'visit_without_actions' },
      { skipped: 'goal_conversion_duplicate' },
    ])
  })
})
