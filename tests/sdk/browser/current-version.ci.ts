import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { eventually } from '../../support/eventually.ts'
import { testProjectKey } from '../../support/pennon.ts'
import { startedForTests } from '../../support/started-for-tests.ts'
import { storedPerson } from '../acceptance.ts'
import { noChromium, visit } from './browser.ts'
import { snippet } from './shop.ts'
import { ask, flagOf, only, shows, startSite } from './site.ts'

// The installed posthog-js, loaded from Pennon in the ways that sites use. Source: docs/wire/clients.md 10, 13.

const skip = noChromium()
const site = startedForTests(startSite, skip)

const currentScript = () => `${site.acceptance.proxy.url}/static/array.js`
const configScript = new RegExp(`^/array/${testProjectKey}/config\\.js$`)

const flagsApi = '/api/projects/@current/feature_flags/'

/** Its id. */
async function createFlag(key: string, filters: object, more: object = {}): Promise<number> {
  return (await site.acceptance.pennon.api<{ id: number }>('POST', flagsApi, { key, filters, ...more })).id
}

function edit(flag: string, filters: object): Promise<unknown> {
  return site.acceptance.pennon.api('PATCH', flagsApi + flag, { filters })
}

/** An unused distinct id for which the flag has this variant. */
async function someoneWhoWouldSee(key: string, variant: string): Promise<string> {
  for (let n = 0; ; n++) {
    const body = { token: testProjectKey, distinct_id: `somebody-${n}` }
    const response = await site.acceptance.pennon.post('/flags/?v=2', body)
    const { flags } = (await response.json()) as { flags: Record<string, { variant: string | null }> }
    if (flags[key]?.variant === variant) return body.distinct_id
  }
}

describe('posthog-js from Pennon', { skip }, () => {
  it('starts from the script tags of the README, with the library’s loader', async () => {
    await site.acceptance.pennon.api('POST', '/api/projects/@current/feature_flags/', {
      key: 'new-checkout',
      filters: {
        groups: [
          {
            properties: [{ key: 'country', type: 'person', operator: 'exact', value: ['NO'] }],
            rollout_percentage: 100,
          },
        ],
      },
    })
    const readme = readFileSync(new URL('../../../README.md', import.meta.url), 'utf8')
    const [, tags] = /```html\n(.*?)```/s.exec(readme)!
    const { url } = site.acceptance.proxy
    const visitor = await site.openHead(
      tags!.replaceAll('http://127.0.0.1:8000', url).replaceAll('phc_…', testProjectKey),
    )
    await visitor.page.getByText('new-checkout is true').first().waitFor()
    assert.ok(site.acceptance.proxy.exchanges.some(({ path }) => path === '/static/loader.js'))
    await site.storedWith('ada', '$identify')
    site.assertQuiet(visitor)
    await visitor.close()
  })

  it('makes no request for its configuration if that comes with the library', async () => {
    const src = `${site.acceptance.proxy.url}/array/${testProjectKey}/array.js`
    const visitor = await site.openHead(snippet(src, testProjectKey, `{ api_host: '${site.acceptance.proxy.url}' }`))
    assert.equal(await ask(visitor, flagOf('multi')), 'variant-a')
    await site.storedWith(await ask<string>(visitor, 'posthog.get_distinct_id()'), '$pageview')
    site.assertQuiet(visitor)
    assert.ok(site.acceptance.proxy.exchanges.every(({ path }) => !configScript.test(path)))
    await visitor.close()
  })

  it('loads every extension that a site switches on, and works with the newest defaults', async () => {
    const options = [
      "defaults: '2025-11-30', capture_dead_clicks: true, capture_exceptions: true, enable_heatmaps: true",
      'capture_performance: { web_vitals: true }, tracing_headers: [location.hostname], rageclick: true',
      "cross_subdomain_cookie: false, person_profiles: 'always'",
    ]
    const visitor = await site.open(currentScript(), options.join(', '))
    await visitor.page.click('#buy')
    const id = await ask<string>(visitor, 'posthog.get_distinct_id()')
    await site.storedWith(id, '$pageview', '$autocapture')
    await site.leave(visitor)
    await site.storedWith(id, '$pageleave')
    site.assertQuiet(visitor)
    const scripts = site.acceptance.proxy.exchanges.map(({ path }) => path).filter(path => path.startsWith('/static/'))
    for (const kind of ['dead-clicks-autocapture', 'exception-autocapture', 'web-vitals', 'tracing-headers']) {
      assert.ok(
        scripts.some(path => path.includes(kind)),
        `${kind} is not among ${scripts}`,
      )
    }
    await visitor.close()
  })

  it('keeps the flags of the last visit while flags are unavailable, and events of flag calls contain the error', async () => {
    const visitor = await site.open(currentScript())
    const known = await ask<object>(visitor, 'shown.values()')
    const headers = { 'access-control-allow-origin': site.shop.url, 'access-control-allow-credentials': 'true' }
    await visitor.page.route('**/flags/**', route => route.fulfill({ status: 503, body: '{}', headers }))
    await visitor.page.reload()
    await visitor.page.waitForFunction('window.shown?.flagsLoaded > 0')
    await eventually(() => visitor.asked.some(({ path, status }) => path.startsWith('/flags/') && status === 503))
    assert.deepEqual(await ask(visitor, 'shown.values()'), known)
    await eventually(() => ask(visitor, "posthog.getFeatureFlag('multi') === 'variant-a'"))
    const id = await ask<string>(visitor, 'posthog.get_distinct_id()')
    const called = only(await site.storedWith(id, '$feature_flag_called'), '$feature_flag_called')
    assert.equal(called.properties.$feature_flag_error, 'api_error_503')
    await visitor.close()
  })

  it('keeps the value of a flag that cannot be computed, and updates other flags', async () => {
    const fragile = await createFlag('fragile', { groups: [{ rollout_percentage: 100 }] })
    const other = await createFlag('other', { groups: [{ rollout_percentage: 0 }] })
    const visitor = await site.open(currentScript(), 'request_batching: false')
    assert.deepEqual(await ask(visitor, `[${flagOf('fragile')}, ${flagOf('other')}]`), [true, false])
    const ofNobody = { key: 'id', type: 'cohort', value: 999_999 }
    await edit(`${fragile}/?skip_validation=true`, { groups: [{ properties: [ofNobody], rollout_percentage: 100 }] })
    await edit(`${other}/`, { groups: [{ rollout_percentage: 100 }] })
    const answered = visitor.page.waitForResponse('**/flags/?v=2')
    await ask(visitor, 'posthog.reloadFeatureFlags()')
    const { errorsWhileComputingFlags, flags } = await (await answered).json()
    assert.deepEqual([errorsWhileComputingFlags, flags.fragile.failed, flags.fragile.enabled], [true, true, false])
    await shows(visitor, flagOf('other'), true)
    assert.equal(await ask(visitor, flagOf('fragile')), true)
    await visitor.page.reload()
    await visitor.page.waitForFunction('window.shown?.flagsLoaded > 0')
    assert.equal(await ask(visitor, "posthog.getFeatureFlag('fragile')"), true)
    const id = await ask<string>(visitor, 'posthog.get_distinct_id()')
    const called = only(await site.storedWith(id, '$feature_flag_called'), '$feature_flag_called')
    assert.equal(called.properties.$feature_flag_error, 'errors_while_computing_flags')
    await visitor.close()
    for (const flag of [fragile, other]) await site.acceptance.pennon.api('DELETE', `${flagsApi}${flag}/`)
  })

  it('shows a visitor the same flag values after logging in, in this browser and in another', async () => {
    const variants = ['blue', 'green'].map(key => ({ key, rollout_percentage: 50 }))
    const filters = { groups: [{ rollout_percentage: 100 }], multivariate: { variants } }
    const flag = await createFlag('checkout', filters, { ensure_experience_continuity: true })
    // Else the log-in waits to be sent in a batch.
    const visitor = await site.open(currentScript(), 'request_batching: false')
    const before = await ask<string>(visitor, flagOf('checkout'))
    const anonymous = await ask<string>(visitor, 'posthog.get_distinct_id()')
    const user = await someoneWhoWouldSee('checkout', before === 'blue' ? 'green' : 'blue')

    const asked = visitor.page.waitForRequest('**/flags/?v=2')
    await ask(visitor, `posthog.identify('${user}')`)
    const request = await asked
    const body = JSON.parse(gunzipSync(request.postDataBuffer()!).toString())
    assert.deepEqual([body.distinct_id, body.$anon_distinct_id], [user, anonymous])
    const { flags } = await (await request.response())!.json()
    assert.equal(flags.checkout.variant, before)
    await eventually(async () => (await storedPerson(site.acceptance.pennon, user))?.flag_overrides.length, {
      what: 'the row that keeps the variant',
    })
    await visitor.page.reload()
    await visitor.page.waitForFunction('window.shown?.flagsLoaded > 0')
    assert.equal(await ask(visitor, flagOf('checkout')), before)
    site.assertQuiet(visitor)
    await visitor.close()

    const elsewhere = await site.open(currentScript(), `bootstrap: { distinctID: '${user}', isIdentifiedID: true }`)
    assert.equal(await ask(elsewhere, flagOf('checkout')), before)
    await elsewhere.close()
    await site.acceptance.pennon.api('DELETE', `${flagsApi}${flag}/`)
  })

  it('works behind a path prefix of the site', async () => {
    const visitor = await site.openHead(
      snippet(
        '/ingest/static/array.js',
        testProjectKey,
        `{ api_host: '${site.shop.url}/ingest', ui_host: 'https://ui.example' }`,
      ),
    )
    assert.equal(await ask(visitor, flagOf('multi')), 'variant-a')
    await visitor.page.click('#buy')
    const id = await ask<string>(visitor, 'posthog.get_distinct_id()')
    const stored = await site.storedWith(id, '$pageview', '$autocapture')
    assert.equal(only(stored, '$pageview').properties.$ip, '203.0.113.9')
    visitor.assertQuiet()
    const paths = visitor.asked.map(({ path }) => path).filter(path => !path.startsWith('/page/'))
    assert.ok(paths.length >= 5)
    assert.ok(
      paths.every(path => path.startsWith('/ingest/')),
      paths.join(' '),
    )
    await visitor.close()
  })

  it('gets its preflights answered when it sends plain JSON and custom headers', async () => {
    const visitor = await site.open(currentScript(), "disable_compression: true, request_headers: { 'x-shop': 'yes' }")
    const id = await ask<string>(visitor, 'posthog.get_distinct_id()')
    await visitor.page.click('#buy')
    await site.storedWith(id, '$pageview', '$autocapture')
    site.assertQuiet(visitor)
    const asked = site.acceptance.proxy.take()
    const preflights = asked.filter(({ method }) => method === 'OPTIONS')
    assert.ok(preflights.some(({ path }) => path.startsWith('/flags/')))
    assert.ok(preflights.some(({ path }) => path.includes('/e/')))
    assert.ok(preflights.every(({ headers }) => headers['access-control-request-headers']?.includes('x-shop')))
    const posts = asked.filter(({ method }) => method === 'POST')
    assert.ok(
      posts.every(({ headers }) => headers['content-type'] === 'application/json' && headers['x-shop'] === 'yes'),
    )
    await visitor.close()
  })

  it('loads its configuration as JSON when the script is blocked', async () => {
    site.acceptance.proxy.take()
    const visitor = await visit(site.browser)
    await visitor.page.route(`**${`/array/${testProjectKey}/config.js`}`, route => route.abort())
    await visitor.page.goto(
      site.shop.page(snippet(currentScript(), testProjectKey, `{ api_host: '${site.acceptance.proxy.url}' }`)),
    )
    await visitor.page.waitForFunction('shown.flagsLoaded > 0')
    assert.equal(await ask(visitor, flagOf('multi')), 'variant-a')
    const asked = site.acceptance.proxy.exchanges
    assert.ok(asked.some(({ path }) => new RegExp(`^/array/${testProjectKey}/config(\\?|$)`).test(path)))
    assert.deepEqual(
      asked.filter(({ status }) => status !== 200),
      [],
    )
    assert.ok(
      visitor.complaints.every(complaint => /config\.js|net::ERR_FAILED/.test(complaint)),
      visitor.complaints.join(),
    )
    await visitor.close()
  })

  it('does not request flags for a project without flags, and does so once one exists', async () => {
    const { pennon, proxy } = site.acceptance
    const token = 'phc_testofaprojectwithoutflags'
    const { id } = await pennon.api<{ id: number }>('POST', '/api/projects/', { name: 'No flags', api_token: token })
    const head = snippet(currentScript(), token, `{ api_host: '${proxy.url}' }`)
    const first = await site.openHead(head, { untilFlags: false })
    await eventually(() => proxy.exchanges.some(({ path }) => path.startsWith('/i/v0/e/') || path === '/e/'), {
      what: 'the first event',
    })
    site.assertQuiet(first)
    assert.ok(proxy.exchanges.every(({ path }) => !path.startsWith('/flags')))
    await first.close()
    await pennon.api('POST', `/api/projects/${id}/feature_flags/`, {
      key: 'first',
      filters: { groups: [{ properties: [], rollout_percentage: 100 }] },
    })
    const next = await site.openHead(head)
    assert.equal(await ask(next, flagOf('first')), true)
    site.assertQuiet(next)
    await next.close()
  })

  it('opens no toolbar, and logs nothing about it', async () => {
    const params = { action: 'ph_authorize', token: testProjectKey, temporaryToken: 'x', projectId: 1 }
    const hash = `#__posthog=${encodeURIComponent(JSON.stringify(params))}`
    const head = snippet(currentScript(), testProjectKey, `{ api_host: '${site.acceptance.proxy.url}' }`)
    const visitor = await site.openHead(head, { hash })
    await eventually(() => site.acceptance.proxy.exchanges.some(({ path }) => path.includes('/toolbar.js')), {
      what: 'the toolbar to be asked for',
    })
    await site.storedWith(await ask<string>(visitor, 'posthog.get_distinct_id()'), '$pageview')
    site.assertQuiet(visitor)
    await visitor.close()
  })

  it('records a session if the project enables it, and its snapshots are stored', async () => {
    const { pennon, proxy } = site.acceptance
    const record = (on: boolean) => pennon.api('PATCH', '/api/projects/@current/', { session_recording_opt_in: on })
    await record(true)
    const visitor = await site.open(currentScript())
    const { session, id } = await ask<{ session: string; id: string }>(
      visitor,
      '({ session: posthog.get_session_id(), id: posthog.get_distinct_id() })',
    )
    await visitor.page.click('#buy')
    const path = `/api/projects/@current/replay_messages/?session_id=${session}`
    let results: { id: string; distinct_id: string; snapshot_source: string; lib: string; items: number }[] = []
    await eventually(
      async () => {
        await pennon.caughtUp()
        ;({ results } = await pennon.api<{ results: typeof results }>('GET', path))
        return results.length > 0
      },
      { what: 'a replay' },
    )
    site.assertQuiet(visitor)
    const [first] = results.toReversed()
    assert.deepEqual([first!.distinct_id, first!.snapshot_source, first!.lib], [id, 'web', 'web'])
    const itemPath = `/api/projects/@current/replay_messages/${first!.id}/`
    const { snapshot_items } = await pennon.api<{ snapshot_items: { type: number }[] }>('GET', itemPath)
    assert.equal(snapshot_items.length, first!.items)
    // What a player needs first: the page's address and its whole content.
    assert.ok(snapshot_items.some(({ type }) => type === 4) && snapshot_items.some(({ type }) => type === 2))
    assert.ok(proxy.exchanges.some(({ path: asked, status }) => asked.startsWith('/s/') && status === 200))
    await visitor.close()
    await record(false)
  })

  it('resends requests after a 500 or 503, adding a retry count, and their events are stored once', async () => {
    site.acceptance.proxy.take()
    const refusals = [500, 503].map(status => ({ status, body: '{}', headers: { 'access-control-allow-origin': '*' } }))
    site.acceptance.proxy.answerNext('/e/', refusals)
    const visitor = await visit(site.browser)
    await visitor.page.clock.install()
    await visitor.page.goto(
      site.shop.page(snippet(currentScript(), testProjectKey, `{ api_host: '${site.acceptance.proxy.url}' }`)),
    )
    const id = await eventually(() => ask<string>(visitor, 'window.posthog?.get_distinct_id?.()'))
    const sent = () => site.acceptance.proxy.exchanges.filter(({ path }) => path.startsWith('/e/'))
    // It waits 3 s, then 6 s, each up to half as long again.
    for (const answered of [1, 2, 3]) {
      await eventually(async () => {
        await visitor.page.clock.runFor(1_000)
        return sent().length >= answered
      })
    }
    only(await site.storedWith(id, '$pageview'), '$pageview')
    const counts = sent().map(({ path, status }) => [/retry_count=\d+/.exec(path)?.[0] ?? '', status])
    assert.deepEqual(counts.slice(0, 3), [
      ['', 500],
      ['retry_count=1', 503],
      ['retry_count=2', 200],
    ])
    await visitor.close()
  })
})
