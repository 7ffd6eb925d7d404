import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { testProjectKey } from '../../support/pennon.ts'
import { startedForTests } from '../../support/started-for-tests.ts'
import { storedEvents, storedPerson } from '../acceptance.ts'
import { noChromium } from './browser.ts'
import { ask, flagOf, only, shows, startSite } from './site.ts'

// Three versions of posthog-js of different age, unmodified, in a page of another site.
// Source: docs/wire/clients.md 3.3, 10, 13.

interface BrowserSdk {
  readonly version: string
  /** Where the page loads the library from: Pennon, or the site's own server. */
  readonly script: () => string
  /** Every path that the library may request, including its scripts and configuration. */
  readonly paths: readonly RegExp[]
  /** The path to which a page's last event is sent, and the answer's status. */
  readonly leaving: { readonly path: RegExp; readonly status: number }
}

const config = new RegExp(`^/array/${testProjectKey}/config\\.js$`)
const sdks: readonly BrowserSdk[] = [
  {
    version: '1.449.2',
    script: () => `${site.acceptance.proxy.url}/static/array.js`,
    paths: [
      /^\/static\/array\.js$/,
      config,
      /^\/static\/1\.449\.2\/surveys\.js$/,
      /^\/flags\/\?v=2$/,
      /^\/(i\/v0\/)?e\/$/,
    ],
    leaving: { path: /^\/i\/v0\/e\/$/, status: 200 },
  },
  {
    version: '1.116.6',
    script: () => '/own/posthog-js-1-116.js',
    paths: [/^\/decide\/\?v=3&/, /^\/(i\/v0\/)?e\/\?/],
    leaving: { path: /^\/i\/v0\/e\/\?.*beacon=1/, status: 204 },
  },
  {
    version: '1.57.4',
    script: () => '/own/posthog-js-1-57.js',
    paths: [/^\/decide\/\?v=3&/, /^\/e\/\?/],
    leaving: { path: /^\/e\/\?/, status: 200 },
  },
]
const skip = noChromium()
const site = startedForTests(startSite, skip)

for (const sdk of sdks) {
  describe(`posthog-js ${sdk.version} in a page`, { skip }, () => {
    const me = (name: string) => `${name}-js-${sdk.version}`

    it('shows flags and sends events until the page closes, without rejections or console messages', async () => {
      const visitor = await site.open(sdk.script())
      const anonymous = await ask<string>(visitor, 'posthog.get_distinct_id()')
      assert.deepEqual(await ask(visitor, 'shown.values()'), {
        ...{ 'bool-on': true, 'bool-off': false, multi: 'variant-a', plain: true },
        ...{ 'group-flag': false, 'local-prop': false, 'cohort-flag': false },
      })
      assert.deepEqual(await ask(visitor, "posthog.getFeatureFlagPayload('bool-on')"), { a: 1 })
      assert.equal(await ask(visitor, "posthog.getFeatureFlagPayload('multi')"), 'hello')
      assert.equal(await ask(visitor, "posthog.getFeatureFlag('multi')"), 'variant-a')
      await visitor.page.click('#buy')
      await site.storedWith(anonymous, '$pageview', '$feature_flag_called', '$autocapture')
      await ask(visitor, `posthog.identify('${me('ada')}', { plan: 'pro' })`)
      await ask(visitor, `posthog.group('company', '${me('acme')}', { tier: 'gold' })`)
      await site.storedWith(me('ada'), '$identify', '$groupidentify')
      await ask(visitor, 'posthog.reloadFeatureFlags()')
      await shows(visitor, flagOf('local-prop'), true)
      await shows(visitor, flagOf('group-flag'), true)
      site.acceptance.proxy.take()
      await site.leave(visitor)
      const named = await site.storedWith(me('ada'), '$pageleave')
      const { path, status } = sdk.leaving
      assert.ok(site.acceptance.proxy.exchanges.some(beacon => path.test(beacon.path) && beacon.status === status))
      site.assertQuiet(visitor)

      const before = await storedEvents(site.acceptance.pennon, anonymous)
      const pageview = only(before, '$pageview')
      assert.match(pageview.properties.$current_url, /^http:\/\/shop\.localhost:\d+\/page\/\d+$/)
      assert.equal(pageview.properties.$lib_version, sdk.version)
      const click = only(before, '$autocapture')
      assert.match(
        click.elements_chain,
        /^button\.large\.primary:.*attr__data-item="7".*;div:.*attr_id="basket".*;body:/,
      )
      assert.match(click.elements_chain, /text="Buy now"/)
      assert.equal(click.properties['$feature/multi'], 'variant-a')
      const called = only(before, '$feature_flag_called')
      assert.deepEqual(
        [called.properties.$feature_flag, called.properties.$feature_flag_response],
        ['multi', 'variant-a'],
      )
      assert.deepEqual(only(named, '$pageleave').properties.$groups, { company: me('acme') })
      const person = await storedPerson(site.acceptance.pennon, me('ada'))
      assert.deepEqual(person?.distinct_ids.toSorted(), [anonymous, me('ada')].toSorted())
      assert.equal(person?.properties.plan, 'pro')
      const { results } = await site.acceptance.pennon.api<{
        results: { group_key: string; group_properties: object }[]
      }>('GET', `/api/projects/@current/groups/?group_type_index=0&search=${me('acme')}`)
      assert.deepEqual(results.find(({ group_key }) => group_key === me('acme'))?.group_properties, { tier: 'gold' })

      const asked = visitor.asked.filter(({ url }) => url.startsWith(site.acceptance.proxy.url)).map(({ path }) => path)
      assert.deepEqual(
        asked.filter(path => !sdk.paths.some(known => known.test(path))),
        [],
        'the page asked for something else',
      )
      for (const path of sdk.paths)
        assert.ok(
          asked.some(one => path.test(one)),
          `nothing asked ${path}`,
        )
      await visitor.close()
    })

    it('evaluates flags with the stored person after identifying', async () => {
      const id = me('known')
      await site.acceptance.pennon.post('/capture/', {
        api_key: testProjectKey,
        event: '$identify',
        distinct_id: id,
        properties: { $set: { plan: 'pro' } },
      })
      await site.acceptance.pennon.caughtUp()
      const visitor = await site.open(sdk.script())
      assert.equal(await ask(visitor, flagOf('local-prop')), false)
      await ask(visitor, `posthog.identify('${id}')`)
      await ask(visitor, 'posthog.reloadFeatureFlags()')
      await shows(visitor, flagOf('local-prop'), true)
      site.assertQuiet(visitor)
      await visitor.close()
    })

    it('works when the host has a trailing slash', async () => {
      const visitor = await site.open(sdk.script(), `api_host: '${site.acceptance.proxy.url}/'`)
      assert.equal(await ask(visitor, flagOf('multi')), 'variant-a')
      await site.storedWith(await ask<string>(visitor, 'posthog.get_distinct_id()'), '$pageview')
      site.assertQuiet(visitor)
      await visitor.close()
    })

    it('sees a flag that was edited while the page was open', async () => {
      const { pennon } = site.acceptance
      const flags = '/api/projects/@current/feature_flags/'
      const key = me('edited').replaceAll('.', '-')
      const rollout = (rollout_percentage: number) => ({
        filters: { groups: [{ properties: [], rollout_percentage }] },
      })
      const { id } = await pennon.api<{ id: number }>('POST', flags, { key, ...rollout(0) })
      const visitor = await site.open(sdk.script())
      assert.equal(await ask(visitor, flagOf(key)), false)
      await pennon.api('PATCH', `${flags}${id}/`, rollout(100))
      await ask(visitor, 'posthog.reloadFeatureFlags()')
      await shows(visitor, flagOf(key), true)
      await pennon.api('DELETE', `${flags}${id}/`)
      await ask(visitor, 'posthog.reloadFeatureFlags()')
      await shows(visitor, flagOf(key), null)
      site.assertQuiet(visitor)
      await visitor.close()
    })

    it('sends nothing for a visitor who has not opted in, and everything afterwards', async () => {
      const visitor = await site.open(sdk.script(), 'opt_out_capturing_by_default: true')
      const id = await ask<string>(visitor, 'posthog.get_distinct_id()')
      await visitor.page.click('#buy')
      await ask(visitor, "posthog.capture('too early')")
      await ask(visitor, 'posthog.opt_in_capturing()')
      await ask(visitor, "posthog.capture('in time')")
      // Older versions keep events after the choice until the page is left.
      await site.leave(visitor)
      const stored = await site.storedWith(id, 'in time')
      assert.ok(stored.every(({ event }) => event !== 'too early' && event !== '$autocapture'))
      site.assertQuiet(visitor)
      await visitor.close()
    })
  })
}
