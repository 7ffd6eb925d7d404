// Flags and events of a cookieless visitor get the same id, although a page describes itself by headers in flag requests
// and by properties in events. Source: docs/wire/ingestion.md 13; docs/wire/evaluation.md 1.7.

import assert from 'node:assert/strict'
import { it, type TestContext } from 'node:test'
import { noIngestionSettings } from '#core/project.ts'
import { startCaptureServer, testToken } from '../support/capture-server.ts'
import { emptySubjects, startDecideServer } from '../support/decide-server.ts'

const firefox = 'Mozilla/5.0 (X11; Linux x86_64; rv:151.0) Gecko/20100101 Firefox/151.0'
const safari = 'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 Version/26.0 Safari/605.1.15'
const saltOf = (day: string) => Buffer.alloc(16, day)

/** What a browser shows of one visitor. */
interface Shown {
  readonly address?: string
  /** The address of the page, without its path. */
  readonly origin?: string
  readonly userAgent?: string
  readonly zone?: string
  readonly extra?: string
}

async function start(t: TestContext, now: string) {
  const project = { ingestion: { ...noIngestionSettings, cookielessMode: 1 as const } }
  const found: string[] = []
  const findPerson = (_projectId: number, distinctId: string) => {
    found.push(distinctId)
    return null
  }
  const readsPerson = { key: 'email', type: 'person', operator: 'is_set', value: 'is_set' }
  const decide = await startDecideServer(t, {
    now,
    salts: { saltOf },
    project,
    trustedProxies: 'loopback',
    flags: [
      { id: 1, key: 'half', filters: { groups: [{ rollout_percentage: 50 }] } },
      { id: 2, key: 'reads-person', filters: { groups: [{ properties: [readsPerson] }] } },
    ],
    subjects: { ...emptySubjects, findPerson },
  })
  const capture = await startCaptureServer(t, {
    now,
    salts: { knownSalt: saltOf, saltOf },
    project,
    settings: { PENNON_TRUSTED_PROXIES: 'loopback' },
  })

  async function flagsOf({ address, origin, userAgent = '', zone, extra }: Shown) {
    const { status, text, json } = await decide.post(
      '/flags?v=2',
      {
        ...{ token: 'phc_test', distinct_id: '$posthog_cookieless' },
        ...(zone !== undefined && { timezone: zone }),
        ...(extra !== undefined && { cookieless_hash_extra: extra }),
      },
      { 'x-forwarded-for': address!, origin: origin!, 'user-agent': userAgent },
    )
    assert.equal(status, 200, text)
    const { half } = json.flags as { half: { enabled: boolean } }
    return { id: found.pop(), isInHalf: half.enabled }
  }

  async function eventIdOf({ address, origin, userAgent = '', zone, extra }: Shown) {
    const properties = {
      $cookieless_mode: true,
      $host: new URL(origin!).host,
      $raw_user_agent: userAgent.length > 1_000 ? `${userAgent.slice(0, 997)}...` : userAgent,
      ...(zone !== undefined && { $timezone: zone }),
      ...(extra !== undefined && { $cookieless_extra: extra }),
    }
    const event = { api_key: testToken, event: '$pageview', distinct_id: '$posthog_cookieless', properties }
    const answer = await capture.post('/i/v0/e/', JSON.stringify(event), { 'x-forwarded-for': address! })
    assert.equal(answer.status, 200)
    return (await capture.records()).events.at(-1)!.distinctId
  }
  return { flagsOf, eventIdOf }
}

const ada = { address: '203.0.113.7', origin: 'https://shop.example.com', userAgent: firefox }

it('flags and events of a cookieless visitor get the same id, in every form of request', async t => {
  const { flagsOf, eventIdOf } = await start(t, '2026-01-15T12:00:00Z')
  const visitors: readonly Shown[] = [
    ada,
    { ...ada, userAgent: safari },
    { ...ada, userAgent: firefox.padEnd(1_200, 'x') },
    { ...ada, address: '203.0.113.8' },
    { ...ada, address: '10.0.0.1' },
    { ...ada, address: '2001:0DB8:0:0::7' },
    { ...ada, origin: 'https://shop.example.co.uk:8443' },
    { ...ada, origin: 'http://localhost:3000' },
    { ...ada, origin: 'http://192.168.1.5:8080' },
    { ...ada, origin: 'http://[2001:db8::1]:8080' },
    { ...ada, origin: 'https://xn--bcher-kva.example' },
    { ...ada, zone: 'Pacific/Auckland' },
    { ...ada, zone: 'Pacific/Auckland', extra: 'x'.repeat(200) },
  ]
  const seen = new Set<string>()
  for (const visitor of visitors) {
    const { id } = await flagsOf(visitor)
    assert.equal(await eventIdOf(visitor), id, JSON.stringify(visitor))
    seen.add(id!)
  }
  assert.equal(seen.size, visitors.length, 'and no other visitor has it')

  const { id } = await flagsOf(ada)
  for (const same of [
    { ...ada, address: '::ffff:203.0.113.7' },
    { ...ada, origin: 'https://www.example.com' },
    { ...ada, zone: 'Europe/Oslo' },
  ]) {
    assert.equal((await flagsOf(same)).id, id, JSON.stringify(same))
    assert.equal(await eventIdOf(same), id, JSON.stringify(same))
  }
})

it('a cookieless visitor stays in the same half of a rollout all day, and has a new id the next day', async t => {
  const visitors = Array.from({ length: 40 }, (_, n) => ({ ...ada, address: `203.0.113.${n}` }))
  const halvesAt = async (now: string) => {
    const { flagsOf } = await start(t, now)
    const answers = []
    for (const visitor of visitors) answers.push(await flagsOf(visitor))
    return answers
  }
  const morning = await halvesAt('2026-01-15T00:00:00Z')
  assert.deepEqual(await halvesAt('2026-01-15T23:59:59Z'), morning)
  const next = await halvesAt('2026-01-16T00:00:00Z')
  assert.equal(new Set([...morning, ...next].map(({ id }) => id)).size, 2 * visitors.length)
  for (const half of [morning, next]) {
    const inside = half.filter(({ isInHalf }) => isInHalf).length
    assert.ok(inside > 5 && inside < 35, `${inside} of ${visitors.length}`)
  }
})
