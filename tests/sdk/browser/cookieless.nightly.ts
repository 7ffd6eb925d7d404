import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, readdirSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import type { Browser, Page } from 'playwright-core'
import { dayMs } from '#core/time.ts'
import { createLogger } from '#telemetry/log.ts'
import { type Service, startService } from '../../../src/commands/start-service.ts'
import { readConfig } from '../../../src/config.ts'
import { eventually } from '../../support/eventually.ts'
import { fixedClock } from '../../support/fixed-clock.ts'
import { testPersonalKey, testProjectKey } from '../../support/pennon.ts'
import { searchFiles } from '../../support/search-files.ts'
import { removeFolder } from '../../support/temp-dir.ts'
import { launchChromium, noChromium } from './browser.ts'
import { type Shop, snippet, startShop } from './shop.ts'

// The installed posthog-js without cookies, in both of its modes and in both of the project's. Source:
// docs/wire/ingestion.md 13.

const skip = noChromium()
/** As unlike anything else as can be, so that any trace of them is found. */
const ada = { address: '203.0.113.77', userAgent: 'Mozilla/5.0 (Fridge; Smart) AppleWebKit/537.36 Adas-Browser/8.8' }
const bob = { address: '198.51.100.23', userAgent: 'Mozilla/5.0 (Kettle; Smart) AppleWebKit/537.36 Bobs-Browser/9.9' }
/** Accepts cookies in the end, so that it is stored who she is. */
const carol = { address: '192.0.2.99', userAgent: 'Mozilla/5.0 (Lamp; Smart) AppleWebKit/537.36 Carols-Browser/7.7' }
const noon = Date.parse('2026-11-20T12:00:00Z')
const cookielessId = /^cookieless_[A-Za-z0-9+/]{22}$/

interface StoredEvent {
  readonly event: string
  readonly distinct_id: string
  // biome-ignore lint/suspicious/noExplicitAny: properties of many shapes
  readonly properties: any
}

const clock = fixedClock(noon)
const logLines: string[] = []
let folder: string
let service: Service
let stopped: Promise<void> | undefined
let shop: Shop
let browser: Browser

before(async () => {
  if (skip !== false) return
  folder = mkdtempSync(join(tmpdir(), 'pennon-cookieless-'))
  const environment = {
    ...process.env,
    ...{ NODE_ENV: 'test', NODE_TEST_CONTEXT: undefined, PORT: '0', PENNON_DATA: folder, PENNON_LOG_LEVEL: 'debug' },
    ...{ PENNON_PROJECT_KEY: testProjectKey, PENNON_PERSONAL_KEY: testPersonalKey },
  }
  const config = readConfig(environment)
  assert.ok(config.ok)
  const logger = createLogger({ level: 'debug', process: 'test' }, { write: line => void logLines.push(line) })
  const started = await startService({ config: config.value, environment, logger, hooks: { clock } })
  assert.ok(started.ok, started.ok ? '' : started.error)
  service = started.value
  shop = await startShop(service.url)
  browser = await launchChromium()
})
after(async () => {
  await browser?.close()
  await shop?.close()
  await stop()
  if (folder !== undefined) await removeFolder(folder)
})

/** Stops the instance, after which its files no longer change. */
function stop(): Promise<void> | undefined {
  stopped ??= service?.stop()
  return stopped
}

async function api<T>(method: string, path: string, body?: unknown): Promise<T> {
  const response = await fetch(service.url + path, {
    method,
    headers: { authorization: `Bearer ${testPersonalKey}`, 'content-type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  assert.ok(response.ok, `${method} ${path}: ${response.status} ${await response.clone().text()}`)
  return (await response.json()) as T
}

function setTime(nowMs: number): void {
  clock.set(nowMs)
  service.setTestClock(nowMs)
}

async function setMode(cookieless_server_hash_mode: number): Promise<void> {
  await api('PATCH', '/api/projects/@current/', { cookieless_server_hash_mode })
}

interface Seen {
  readonly flags: Record<string, boolean | string>
  readonly complaints: readonly string[]
  readonly cookies: readonly unknown[]
}

/** Opens the page as this visitor, lets `use` act in it, and waits until the events are taken. */
async function visitAs(
  { address, userAgent }: typeof ada,
  options: string,
  use: (page: Page) => Promise<void>,
): Promise<Seen> {
  const context = await browser.newContext({ userAgent, extraHTTPHeaders: { 'x-forwarded-for': address } })
  const complaints: string[] = []
  const page = await context.newPage()
  page.on('response', response => {
    if (response.status() >= 400) complaints.push(`${response.status()} ${response.url()}`)
  })
  const head = snippet(
    `${service.url}/static/array.js`,
    testProjectKey,
    `{ api_host: '${service.url}', request_batching: false, ${options} }`,
  )
  await page.goto(shop.page(head))
  await page.waitForFunction('shown.flagsLoaded > 0')
  await use(page)
  const flags = await shownFlags(page)
  await page.waitForLoadState('networkidle')
  const cookies = await context.cookies()
  await context.close()
  return { flags, complaints, cookies }
}

/** Waits until the page has reloaded its flags because of an action. */
async function flagsLoadedBy(page: Page, script: string): Promise<void> {
  const loaded = await page.evaluate('shown.flagsLoaded')
  await page.evaluate(script)
  await page.waitForFunction(`shown.flagsLoaded > ${loaded}`)
}

function shownFlags(page: Page): Promise<Seen['flags']> {
  return page.evaluate('shown.values()')
}

/** The events with this name, oldest first, once there are this many. */
async function storedOf(name: string, count: number): Promise<StoredEvent[]> {
  let found: StoredEvent[] = []
  await eventually(
    async () => {
      await service.writeCounts()
      const { results } = await api<{ results: StoredEvent[] }>(
        'GET',
        `/api/projects/@current/events/?event=${encodeURIComponent(name)}&limit=100&after=2020-01-01`,
      )
      found = results.toReversed()
      return found.length >= count
    },
    { what: `${count} events ${name}` },
  )
  return found
}

/** What `/flags` answers for the visitor of an id, taken from an event. */
async function flagFor(distinctId: string): Promise<unknown> {
  const response = await fetch(`${service.url}/flags/?v=2`, {
    method: 'POST',
    body: JSON.stringify({ token: testProjectKey, distinct_id: distinctId }),
  })
  const { flags } = (await response.json()) as { flags: Record<string, { variant: string }> }
  return flags.halves!.variant
}

const always = "cookieless_mode: 'always'"
const onReject = "cookieless_mode: 'on_reject'"
const capture = (name: string) => (page: Page) =>
  page.evaluate(`posthog.capture(${JSON.stringify(name)})`) as Promise<void>
const refuseAnd = (name: string) => async (page: Page) => {
  await flagsLoadedBy(page, 'posthog.opt_out_capturing()')
  await capture(name)(page)
}

describe('posthog-js without cookies', { skip }, () => {
  before(async () => {
    const variants = Array.from({ length: 20 }, (_, n) => ({ key: `v${n}`, rollout_percentage: 5 }))
    await api('POST', '/api/projects/@current/feature_flags/', {
      key: 'halves',
      filters: { groups: [{ rollout_percentage: 100 }], multivariate: { variants } },
    })
  })

  for (const mode of [1, 2]) {
    it(`distinguishes visitors, and recognizes a visitor all day but not the next day (mode ${mode})`, async () => {
      await setMode(mode)
      const start = noon + mode * 10 * dayMs
      setTime(start)
      const name = `seen-${mode}`
      const seen = [await visitAs(ada, always, capture(name))]
      setTime(start + 60_000)
      seen.push(await visitAs(bob, always, capture(name)))
      setTime(start + 6 * 3_600_000)
      seen.push(await visitAs(ada, always, capture(name)))
      setTime(start + dayMs)
      seen.push(await visitAs(ada, always, capture(name)))
      const stored = await storedOf(name, 4)
      const [first, other, later, nextDay] = stored.map(event => event.distinct_id)
      for (const id of [first, other, later, nextDay]) assert.match(id!, cookielessId)
      assert.equal(later, first)
      assert.equal(new Set([first, other, nextDay]).size, 3)
      for (const [index, { flags, complaints, cookies }] of seen.entries()) {
        assert.deepEqual([complaints, cookies], [[], []])
        assert.equal(flags.halves, await flagFor(stored[index]!.distinct_id), 'flags and events know the same visitor')
      }
      const [, , laterEvent] = stored
      assert.equal(laterEvent!.properties.$session_id === stored[0]!.properties.$session_id, mode === 1)
      assert.match(laterEvent!.properties.$device_id, /^cookielessd_/)
    })
  }

  it('continues without cookies when the visitor refuses consent (mode 1)', async () => {
    await setMode(1)
    setTime(noon + 30 * dayMs)
    const { flags, cookies } = await visitAs(ada, onReject, refuseAnd('refused-1'))
    const [event] = await storedOf('refused-1', 1)
    assert.match(event!.distinct_id, cookielessId)
    assert.equal(event!.properties.$cookieless_mode, true)
    assert.equal(flags.halves, await flagFor(event!.distinct_id))
    assert.deepEqual(cookies, [])
  })

  it('continues without cookies and cannot identify the visitor when the visitor refuses consent (mode 2)', async () => {
    await setMode(2)
    setTime(noon + 32 * dayMs)
    let identified: unknown
    const { flags, complaints } = await visitAs(ada, onReject, async page => {
      await refuseAnd('refused-2')(page)
      const [event] = await storedOf('refused-2', 1)
      assert.match(event!.distinct_id, cookielessId)
      assert.equal((await shownFlags(page)).halves, await flagFor(event!.distinct_id))

      // posthog-js asks for no person to be made, and forgets the id at once. The event is dropped, yet it has been counted.
      await page.evaluate(`posthog.identify('ada@example.org')`)
      identified = await page.evaluate('posthog.get_distinct_id()')
      await capture('refused-2-later')(page)
      const [later] = await storedOf('refused-2-later', 1)
      assert.match(later!.distinct_id, cookielessId)
      assert.notEqual(later!.distinct_id, event!.distinct_id)
      await flagsLoadedBy(page, 'posthog.reloadFeatureFlags()')
    })
    assert.equal(identified, '$posthog_cookieless')
    const [later] = await storedOf('refused-2-later', 1)
    assert.equal(flags.halves, await flagFor(later!.distinct_id))
    assert.deepEqual(complaints, [])
  })

  it('works as usual once the visitor consents, even after a refusal', async () => {
    const { flags, cookies } = await visitAs(carol, onReject, async page => {
      await refuseAnd('consent-refused')(page)
      const [refused] = await storedOf('consent-refused', 1)
      assert.match(refused!.distinct_id, cookielessId)
      assert.equal((await shownFlags(page)).halves, await flagFor(refused!.distinct_id))
      await flagsLoadedBy(page, 'posthog.opt_in_capturing()')
      await capture('consent-given')(page)
    })
    const [given] = await storedOf('consent-given', 1)
    assert.match(given!.distinct_id, /^[0-9a-f-]{36}$/)
    assert.deepEqual(
      ['$cookieless_mode', '$device_id', '$ip'].map(key => given!.properties[key]),
      [undefined, given!.distinct_id, carol.address],
    )
    assert.equal(flags.halves, await flagFor(given!.distinct_id))
    assert.equal(cookies.length, 1)
  })

  it('identifies its visitor in stateful mode, and keeps the hashed id in stateless mode', async () => {
    setTime(noon + 40 * dayMs)
    const identify = (name: string) => async (page: Page) => {
      await capture(`${name}-before`)(page)
      await flagsLoadedBy(page, `posthog.identify('ada@example.org')`)
      await capture(`${name}-after`)(page)
    }
    await setMode(2)
    const { flags } = await visitAs(ada, always, identify('stateful'))
    const [before] = await storedOf('stateful-before', 1)
    const [after] = await storedOf('stateful-after', 1)
    assert.match(before!.distinct_id, cookielessId)
    assert.equal(after!.distinct_id, 'ada@example.org')
    assert.equal(flags.halves, await flagFor('ada@example.org'))
    const { results } = await api<{ results: { distinct_ids: string[] }[] }>(
      'GET',
      '/api/projects/@current/persons/?distinct_id=ada%40example.org',
    )
    assert.deepEqual(results[0]!.distinct_ids.toSorted(), ['ada@example.org', before!.distinct_id])
    await setMode(1)
    await visitAs(ada, always, identify('stateless'))
    const [hashed] = await storedOf('stateless-after', 1)
    assert.match(hashed!.distinct_id, cookielessId)
  })

  it('depends on daily salts, and the instance deletes the salts of ended days', async () => {
    const salts = join(folder, 'salts')
    writeFileSync(join(salts, '2026-12-26'), randomBytes(16))
    // A worker deletes them when it starts, and each minute from then on.
    process.kill(service.childPids().work!, 'SIGKILL')
    await eventually(() => readdirSync(salts).join() === '2026-12-30', { what: 'salts to go' })
  })

  it('leaves neither the visitor’s address nor the user agent in any file or log line of the instance', async () => {
    const properties = { $cookieless_mode: true, $raw_user_agent: ada.userAgent, $ip: ada.address, $host: 'shop.test' }
    const page = { event: 'beside a bad one', distinct_id: '$posthog_cookieless', properties }
    for (const body of [
      JSON.stringify({ api_key: testProjectKey, batch: [page, { event: 'without an id' }] }),
      `{"api_key":"${testProjectKey}","batch":[${JSON.stringify(page)},]}`,
    ]) {
      const headers = { 'x-forwarded-for': bob.address, 'user-agent': bob.userAgent }
      assert.equal(
        (await fetch(`${service.url}/batch/?token=${testProjectKey}`, { method: 'POST', headers, body })).status,
        400,
      )
    }
    const rejectsPath = '/api/projects/@current/rejected_events/'
    await eventually(async () => (await api<{ results: unknown[] }>('GET', rejectsPath)).results.length === 2, {
      what: 'the rejects',
    })
    await service.writeCounts()
    await stop()

    const traces = [ada.address, bob.address, 'Adas-Browser', 'Bobs-Browser']
    const ofCarol = [carol.address, 'Carols-Browser']
    const names = ['stateless-after', 'beside a bad one']
    const found = searchFiles(folder, [...traces, ...ofCarol, ...names])
    for (const trace of traces) assert.deepEqual(found.get(trace), [], trace)
    const assertFound = (text: string, store: string) =>
      assert.ok(
        found.get(text)!.some(file => file.startsWith(store)),
        `${text} in ${store}`,
      )
    for (const text of [...ofCarol, ...names]) assertFound(text, 'events/')
    for (const text of names) assertFound(text, 'log/')
    assert.ok(logLines.length > 0)
    for (const trace of [...traces, ...ofCarol]) assert.ok(!logLines.some(line => line.includes(trace)), trace)
  })
})
