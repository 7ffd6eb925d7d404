import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { CapturedEvent } from '#core/events/captured-event.ts'
import type { CookielessMode } from '#core/project.ts'
import { PortError } from '#ports/port-error.ts'
import { type CaptureServerOptions, startCaptureServer, testProject, testToken } from '../support/capture-server.ts'
import { fieldOf } from '../support/fields-of.ts'
import { uuidOf, v1Batch, v1Event, v1Headers, v1Path } from './v1-requests.ts'

const userAgent =
  'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/150.0.0.0 Safari/537.36'
const now = '2026-01-15T12:00:00Z'
const sentinel = '$posthog_cookieless'
/** By an independent script, of 203.0.113.7 on shop.example.com with this salt. */
const salt = Buffer.from('AQIDBAUGBwgJCgsMDQ4PEA==', 'base64')
const hash = 'DhKalSaWowNbjg/pDrlg9A'
const sessionId = '019bbef3-b000-7e12-9a95-2696a3035b8e'
const forwarded = { 'x-forwarded-for': '203.0.113.7' }
const forwardedV1 = { ...v1Headers, ...forwarded, 'posthog-request-timestamp': now }

const page = { $cookieless_mode: true, $raw_user_agent: userAgent, $host: 'shop.example.com', $timezone: 'UTC' }
const visit = { event: '$pageview', distinct_id: sentinel, properties: page }
const visitWith = (properties: object, more: object = {}) => ({
  ...visit,
  properties: { ...page, ...properties },
  ...more,
})

type Options = Omit<CaptureServerOptions, 'project'> & {
  readonly mode?: CookielessMode
  readonly geoipEnabled?: boolean
}

function start(
  t: Parameters<typeof startCaptureServer>[0],
  { mode = 1, geoipEnabled = true, ...options }: Options = {},
) {
  return startCaptureServer(t, {
    now,
    salts: { knownSalt: () => salt, saltOf: () => salt },
    settings: { PENNON_TRUSTED_PROXIES: '127.0.0.1' },
    project: { geoipEnabled, ingestion: { ...testProject.ingestion, cookielessMode: mode } },
    ...options,
  })
}

interface V1Answer {
  readonly results: Readonly<Record<string, { readonly result: string }>>
}

type Server = Awaited<ReturnType<typeof start>>

async function send(server: Server, events: readonly object[], more: object = {}, query = '') {
  const sent = JSON.stringify({ api_key: testToken, batch: events, ...more })
  const answer = await server.post(`/batch/${query}`, sent, forwarded)
  // biome-ignore lint/suspicious/noExplicitAny: answers of many shapes
  const body = (await answer.json()) as any
  return { status: answer.status, body, retryAfter: answer.headers.get('retry-after') }
}

const idsOf = (events: readonly CapturedEvent[]) => fieldOf(events, 'distinctId')
const propertiesOf = (event: CapturedEvent) => JSON.parse(event.propertiesJson)

describe('a cookieless event of a stateless project', () => {
  it('has ids derived from the hash, and none of the hashed values', async t => {
    const server = await start(t)
    const set = { $raw_user_agent: userAgent, plan: 'pro' }
    const setOnce = { $initial_raw_user_agent: userAgent, from: 'ad' }
    const sent = visitWith(
      { $ip: '203.0.113.7', $cookieless_extra: '', $session_id: 's', $window_id: 'w', $device_id: 'd', $set: set },
      { $set: set, $set_once: setOnce },
    )
    assert.deepEqual((await send(server, [sent])).body, { status: 'Ok' })
    const [event] = (await server.records()).events
    assert.deepEqual([event!.distinctId, event!.ip], [`cookieless_${hash}`, ''])
    assert.deepEqual(event!.visitor, { stateful: null, location: null })
    assert.equal(
      event!.propertiesJson,
      JSON.stringify({
        $cookieless_mode: true,
        $host: 'shop.example.com',
        $timezone: 'UTC',
        $window_id: 'w',
        $set: { plan: 'pro' },
        $device_id: `cookielessd_${hash}`,
        $session_id: sessionId,
        $distinct_id: `cookieless_${hash}`,
      }),
    )
    assert.deepEqual([event!.setJson, event!.setOnceJson], ['{"plan":"pro"}', '{"from":"ad"}'])
  })

  it('keeps the number literals of its remaining properties', async t => {
    const server = await start(t)
    const properties = `{"a":1.0,"$raw_user_agent":${JSON.stringify(userAgent)},"$cookieless_mode":true,"$host":"shop.example.com","b":12345678901234567890}`
    const body = `{"api_key":"${testToken}","event":"e","distinct_id":"${sentinel}","properties":${properties}}`
    assert.equal((await server.post('/e/', body, forwarded)).status, 200)
    const [event] = (await server.records()).events
    assert.ok(
      event!.propertiesJson.startsWith(
        '{"a":1.0,"$cookieless_mode":true,"$host":"shop.example.com","b":12345678901234567890,"$device_id":',
      ),
    )
  })

  it('gets the same visitor id on every path, in both protocols, and in a decode thread', async t => {
    const server = await start(t)
    for (const path of ['/e/', '/i/v0/e/', '/capture/', '/i/v0/ai/batch/'])
      assert.equal((await server.post(path, JSON.stringify({ ...visit, api_key: testToken }), forwarded)).status, 200)
    for (const event of ['$exception', '$$heatmap', '$ai_generation']) await send(server, [{ ...visit, event }])
    await send(server, Array(300).fill(visitWith({ filler: 'x'.repeat(1_000) })))
    const { $cookieless_mode: _, ...ofPage } = page
    const v1 = v1Event(1, {
      distinct_id: sentinel,
      timestamp: now,
      options: { cookieless_mode: true },
      properties: ofPage,
    })
    const v1Property = v1Event(2, { distinct_id: 'ada', timestamp: now, properties: page })
    const body = v1Batch([v1, v1Property], { created_at: now })
    const answer = await server.post(v1Path, body, forwardedV1)
    assert.equal(answer.status, 200)
    const { events } = await server.records()
    assert.equal(events.length, 309)
    assert.deepEqual(new Set(idsOf(events)), new Set([`cookieless_${hash}`]))
    for (const event of events) assert.doesNotMatch(JSON.stringify(event), /Mozilla|203\.0/)
  })

  it('can be sent along with ordinary events, which stay unchanged', async t => {
    const server = await start(t)
    const ordinary = { event: 'e', distinct_id: 'ada', properties: { $ip: '203.0.113.9', $raw_user_agent: 'x' } }
    await send(server, [ordinary, visit, ordinary, visitWith({ $host: '' }), { ...visit, properties: {} }])
    const { events } = await server.records()
    assert.deepEqual(idsOf(events), ['ada', `cookieless_${hash}`, 'ada', sentinel])
    assert.deepEqual(propertiesOf(events[2]!), ordinary.properties)
    assert.deepEqual([events[0]!.ip, events[0]!.visitor], ['203.0.113.7', null])
  })

  it('gets the hash of its own visitor, in any order of visitors', async t => {
    const server = await start(t)
    const other = visitWith({ $ip: '203.0.113.8' })
    const mapped = visitWith({ $ip: '::ffff:203.0.113.7' })
    const elsewhere = visitWith({ $host: 'other.example.com:443' })
    await send(server, [visit, other, visit, mapped, elsewhere, visitWith({ $cookieless_extra: 'x' }), visit])
    const ids = idsOf((await server.records()).events)
    assert.deepEqual([ids[2], ids[3], ids[6]], Array(3).fill(ids[0]))
    assert.equal(new Set(ids).size, 4)
  })

  it('gets the same id in a batch as on its own, whatever the events before it contain', async t => {
    const at = (hour: string, $timezone: string) => visitWith({ $timezone }, { timestamp: `2026-10-25T${hour}Z` })
    const requests = [
      [at('12:00:00', 'Europe/Berlin')],
      // Both days begin at the same time, and the first has 25 hours.
      [at('12:00:00', 'Africa/Johannesburg'), at('22:30:00', 'Africa/Johannesburg')],
      [at('22:30:00', 'Europe/Berlin'), at('22:30:00', 'Asia/Tokyo')],
      [visitWith({ $host: 'another.example.org' }), visit, visitWith({ $cookieless_extra: 'x' }), visit],
      [visitWith({ $ip: '203.0.113.9' }), visitWith({ $raw_user_agent: 'y'.repeat(600) })],
    ]
    // More different visitors than the first pass over a request hashes.
    const many = Array.from({ length: 100 }, (_, index) => visitWith({ $ip: `203.0.113.${index}` }))
    const idOf = ({ distinctId, visitor, propertiesJson }: CapturedEvent) => ({ distinctId, visitor, propertiesJson })
    for (const mode of [1, 2] as const) {
      const options = { mode, now: '2026-10-25T23:30:00Z' }
      const together = await start(t, options)
      for (const events of requests) await send(together, events)
      const alone: CapturedEvent[] = []
      for (const event of requests.flat()) {
        const server = await start(t, options)
        await send(server, [event])
        alone.push(...(await server.records()).events)
      }
      assert.deepEqual((await together.records()).events.map(idOf), alone.map(idOf))

      // Each of them occurs once, so that a server remembers nothing of one that another could use.
      const [batched, single] = [await start(t, options), await start(t, options)]
      await send(batched, many)
      for (const event of many) await send(single, [event])
      assert.deepEqual((await batched.records()).events.map(idOf), (await single.records()).events.map(idOf))
    }
  })

  it('gets the session of its own day and time zone', async t => {
    const server = await start(t)
    const zones = ['UTC', 'Pacific/Kiritimati', 'Not/A/Zone']
    await send(
      server,
      zones.map($timezone => visitWith({ $timezone })),
    )
    const sessions = (await server.records()).events.map(event => propertiesOf(event).$session_id)
    assert.equal(sessions[0], sessionId)
    assert.equal(sessions[2], sessionId)
    const startOf = (id: string) => new Date(Number.parseInt(id.replace('-', '').slice(0, 12), 16)).toISOString()
    assert.equal(startOf(sessions[1]), '2026-01-15T10:00:00.000Z')
  })

  it('counts towards hot keys under its hash', async t => {
    const server = await start(t, { hotKeyEventsPerMinute: 2 })
    await send(server, [visit, visit, visitWith({ $ip: '203.0.113.8' }), visit])
    const off = fieldOf((await server.records()).events, 'personProcessingForcedOff')
    assert.deepEqual(off, [false, false, false, true])
  })
})

describe('the GeoIP location of a cookieless event', () => {
  const located = { city_name: 'Here' }
  const place = async (t: Parameters<typeof start>[0], event: object, options: Options = {}, more = {}) => {
    const asked: string[] = []
    const geoip = {
      lookUp(address: string) {
        asked.push(address)
        return located
      },
    }
    const server = await start(t, { geoip, ...options })
    await send(server, [event], more)
    const [stored] = (await server.records()).events
    return { asked, location: stored!.visitor?.location }
  }

  it('is looked up before its address is removed', async t => {
    assert.deepEqual(await place(t, visit), { asked: ['203.0.113.7'], location: located })
    assert.deepEqual((await place(t, visitWith({ $ip: '203.0.113.8' }))).asked, ['203.0.113.8'])
    assert.deepEqual((await place(t, visit, { mode: 2 })).location, located)
  })

  it('is not looked up if the location of an ordinary event would not be looked up', async t => {
    const nothing = { asked: [], location: null }
    assert.deepEqual(await place(t, visitWith({ $geoip_disable: true })), nothing)
    assert.deepEqual(await place(t, visit, { geoipEnabled: false }), nothing)
    const old = { ...visit, timestamp: '2026-01-13T12:00:00Z' }
    assert.deepEqual(await place(t, old, { rerouteOlderThanDays: 1 }), nothing)
  })
})

describe('a cookieless event of a stateful project', () => {
  it('is logged with its base hash and its day, and the worker assigns its ids', async t => {
    const server = await start(t, { mode: 2 })
    const identify = { ...visitWith({ $anon_distinct_id: sentinel }), event: '$identify', distinct_id: 'ada' }
    await send(server, [visitWith({ $session_id: 's' }), identify])
    const [first, second] = (await server.records()).events
    const stateful = { hash, day: '2026-01-15', isSentinel: true }
    assert.deepEqual([first!.distinctId, first!.visitor!.stateful], [`cookieless_${hash}`, stateful])
    assert.deepEqual([second!.distinctId, second!.visitor!.stateful], ['ada', { ...stateful, isSentinel: false }])
    assert.ok(!('$session_id' in propertiesOf(first!)))
    for (const event of [first!, second!]) assert.doesNotMatch(JSON.stringify(event), /Mozilla|203\.0/)
  })
})

describe('a cookieless event that is not stored', () => {
  const { $raw_user_agent: _, ...withoutAgent } = page
  const { $host: __, ...withoutHost } = page
  const dropped: readonly (readonly [reason: string, event: object, mode?: CookielessMode])[] = [
    ['cookieless_team_disabled', visit, 0],
    ['cookieless_team_disabled', { ...visit, event: '$identify' }, 0],
    ['cookieless_unsupported_event', { ...visit, event: '$create_alias' }, 0],
    ['cookieless_unsupported_event', { ...visit, event: '$merge_dangerously' }, 1],
    ['cookieless_unsupported_event', { ...visit, event: '$create_alias' }, 2],
    ['cookieless_stateless_no_identify', { ...visit, event: '$identify', properties: {} }, 1],
    ['cookieless_missing_user_agent', { ...visit, properties: { $cookieless_mode: true } }],
    ['cookieless_missing_user_agent', { ...visit, properties: withoutAgent }],
    ['cookieless_missing_host', { ...visit, properties: withoutHost }],
    ['cookieless_missing_host', visitWith({ $host: 7 })],
    ['cookieless_timestamp_out_of_range', { ...visit, timestamp: '2026-01-11T23:59:59Z' }],
  ]

  it('is reported with its reason in either protocol, even if other events are stored', async t => {
    for (const [reason, event, mode = 1] of dropped) {
      const item = { ...event, properties: { ...(event as typeof visit).properties, $cookieless_mode: true } }
      const server = await start(t, { mode })
      assert.deepEqual((await send(server, [item])).body, { status: 'Ok' })
      const { body } = await send(server, [item, { event: 'e', distinct_id: 'ada' }], {}, '?verbose=1')
      assert.deepEqual([body.events[0].result, body.events[0].reason], ['drop', reason], JSON.stringify(body))
      assert.deepEqual(idsOf((await server.records()).events), ['ada'])
      assert.deepEqual([...server.refused], [[reason, 2]])
      const { timestamp = now } = event as { timestamp?: string }
      const v1 = v1Event(1, { ...item, timestamp })
      const sent = v1Batch([v1], { created_at: now })
      const answer = await server.post(v1Path, sent, forwardedV1)
      assert.deepEqual(((await answer.json()) as V1Answer).results[uuidOf(1)], { result: 'drop', details: reason })
    }
  })

  it('may be an import with the placeholder id; an import with another id is stored as sent, in every mode', async t => {
    for (const mode of [0, 1, 2] as const) {
      const server = await start(t, { mode })
      const exported = {
        ...visitWith({ $ip: '203.0.113.7' }),
        distinct_id: 'cookieless_x',
        timestamp: '2025-06-01T10:00:00Z',
      }
      await send(server, [exported, { ...visit, timestamp: '2025-06-01T10:00:00Z' }], { historical_migration: true })
      const { events } = await server.records()
      assert.deepEqual(idsOf(events), ['cookieless_x'])
      assert.deepEqual([events[0]!.visitor, propertiesOf(events[0]!)], [null, exported.properties])
      assert.deepEqual([...server.refused], [['cookieless_timestamp_out_of_range', 1]])
    }
  })
})

describe('a cookieless event of a day whose salt is not loaded yet', () => {
  it('is stored with the same ids and in the same order as when the salt is loaded', async t => {
    const sent: object[] = [
      visit,
      { event: 'ordinary', distinct_id: 'ada', properties: { $ip: '203.0.113.8' } },
      visitWith({ $ip: '203.0.113.8', $geoip_disable: true }),
      visitWith({ $timezone: 'Asia/Tokyo' }, { timestamp: '2026-01-14T20:00:00Z' }),
      visitWith({ $raw_user_agent: '' }),
      visitWith({ $cookieless_extra: 'é', $set: { $ip: '1.2.3.4', a: 1 } }, { distinct_id: 'ada' }),
      { ...visit, event: '$identify', distinct_id: 'ada' },
      { ...visit, event: '$create_alias' },
      visit,
    ]
    const events = sent.map((event, index) => ({ ...event, uuid: uuidOf(index + 1) }))
    const geoip = { lookUp: (address: string) => (address === '203.0.113.7' ? { city_name: 'Here' } : null) }
    for (const mode of [0, 1, 2] as const) {
      const [known, awaited] = await Promise.all(
        [salt, null].map(async knownSalt => {
          const salts = { knownSalt: () => knownSalt, saltOf: async () => salt }
          const server = await start(t, { mode, geoip, salts })
          const { body } = await send(server, events, {}, '?verbose=1')
          return { body, records: await server.records(), refused: server.refused }
        }),
      )
      assert.deepEqual(known, awaited)
      assert.equal(known!.records.events.length, [1, 6, 7][mode])
    }
  })
})

describe('unavailable salts', () => {
  it('make a request fail as retryable, with nothing stored', async t => {
    let isUnavailable = true
    const saltOf = async () => {
      if (isUnavailable) throw new PortError('cookieless-salts', 'unavailable')
      return salt
    }
    const server = await start(t, { salts: { knownSalt: () => null, saltOf } })
    const events = [{ event: 'e', distinct_id: 'ada' }, visit]
    const { status, body, retryAfter } = await send(server, events)
    assert.deepEqual([status, body.code], [503, 'transient_error'])
    assert.ok(Number(retryAfter) > 0)
    assert.deepEqual(await server.records(), { events: [], rejects: [] })
    assert.equal((await send(server, [events[0]!])).status, 200)
    isUnavailable = false
    assert.equal((await send(server, events)).status, 200)
    assert.deepEqual(idsOf((await server.records()).events), ['ada', 'ada', `cookieless_${hash}`])
  })

  it('make the client retry a v1 batch', async t => {
    const saltOf = () => Promise.reject(new PortError('cookieless-salts', 'unavailable'))
    const server = await start(t, { salts: { knownSalt: () => null, saltOf } })
    const event = v1Event(1, { distinct_id: sentinel, timestamp: now, properties: page })
    const body = v1Batch([event], { created_at: now })
    const answer = await server.post(v1Path, body, forwardedV1)
    assert.equal(((await answer.json()) as V1Answer).results[uuidOf(1)]!.result, 'retry')
    assert.deepEqual((await server.records()).events, [])
  })

  it('are requested only once per day and request', async t => {
    const asked: string[] = []
    const saltOf = async (day: string) => {
      asked.push(day)
      return salt
    }
    const server = await start(t, { salts: { knownSalt: () => null, saltOf } })
    const yesterday = { ...visit, timestamp: '2026-01-14T12:00:00Z' }
    await send(server, [visit, yesterday, visit, yesterday])
    assert.deepEqual(asked, ['2026-01-15', '2026-01-14'])
    assert.equal((await server.records()).events.length, 4)
  })
})

describe('a reject with cookieless events', () => {
  const kept = async (t: Parameters<typeof start>[0], path: string, body: string) => {
    const server = await start(t)
    await server.post(path, body, forwarded)
    const { rejects } = await server.records()
    assert.equal(rejects.length, 1)
    assert.doesNotMatch(JSON.stringify(rejects), /Mozilla|203\.0/)
    return rejects[0]!
  }
  const telling = visitWith(
    { $ip: '203.0.113.7', $set: { $raw_user_agent: userAgent } },
    { $set_once: { $ip: '203.0.113.7' } },
  )

  it('is stored without the values that identify visitors', async t => {
    const bad = { event: 'e' }
    for (const [path, body] of [
      ['/batch/', { api_key: testToken, batch: [telling, bad] }],
      ['/batch/?verbose=1', { api_key: testToken, batch: [{ ...telling, distinct_id: '' }] }],
      ['/batch/', { api_key: testToken, batch: [visitWith({ $cookieless_mode: 'yes' })] }],
      ['/e/', { ...telling, token: testToken, distinct_id: ' ' }],
      [
        '/e/',
        [
          { ...telling, token: testToken },
          { ...bad, token: testToken },
        ],
      ],
    ] as const) {
      const reject = await kept(t, path, JSON.stringify(body))
      assert.match(reject.body, /shop\.example\.com/)
      assert.equal(reject.source!.ip, '')
    }
  })

  it('is stored without the address, even when the bad item itself is not cookieless', async t => {
    const v0 = (batch: readonly unknown[]) => JSON.stringify({ api_key: testToken, batch })
    const v1Visit = v1Event(2, { timestamp: now, options: { cookieless_mode: true } })
    for (const [path, headers, body] of [
      ['/batch/?verbose=1', forwarded, v0([[1], visit])],
      ['/batch/?verbose=1', forwarded, v0([{ event: 'e', distinct_id: '' }, visit])],
      [v1Path, forwardedV1, v1Batch([v1Event(1, { event: '', timestamp: now }), v1Visit], { created_at: now })],
    ] as const) {
      const server = await start(t)
      const answer = await server.post(path, body, headers)
      assert.equal(answer.status, 200, await answer.text())
      const { rejects } = await server.records()
      assert.equal(rejects.map(({ source }) => source!.ip).join(), '', path)
      assert.equal(rejects.length, 1)
    }
  })

  it('is stored without its text if that cannot be parsed', async t => {
    const broken = `{"api_key":"${testToken}","batch":[${JSON.stringify(telling)},]}`
    const reject = await kept(t, `/batch/?token=${testToken}`, broken)
    assert.deepEqual([reject.body, reject.source?.kind ?? null], ['', null])
  })
})
