// Releases of posthog-node that request flags at different paths: each uses only its own path. Checks what they read
// there, and what their events say about it. Source: docs/wire/clients.md 3.1, 6.1, 7, 13.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { eventually } from '../support/eventually.ts'
import { testPersonalKey, testProjectKey } from '../support/pennon.ts'
import { type Acceptance, type StoredEvent, storedEvents } from './acceptance.ts'

// biome-ignore lint/suspicious/noExplicitAny: four versions of a library whose types differ
type Client = any

/** Registers the suites in a suite of their own; `acceptanceOf` is asked when it runs. */
export function describeAddresses(acceptanceOf: () => Acceptance): void {
  describe('releases of posthog-node that use different paths', () => addressSuites(acceptanceOf))
}

function addressSuites(acceptanceOf: () => Acceptance): void {
  let acceptance: Acceptance
  before(() => {
    acceptance = acceptanceOf()
  })

  /** The requests so far: method, path and status, each once, in order. */
  const passed = () => linesOf(acceptance.proxy.take())
  /**
   * The same, without requests with a personal key: an earlier test's client that is shut down while polling may still
   * send them.
   */
  const passedWithoutPersonalKey = () =>
    linesOf(acceptance.proxy.take().filter(({ headers }) => headers.authorization === undefined))
  const linesOf = (exchanges: ReturnType<Acceptance['proxy']['take']>) => [
    ...new Set(exchanges.map(({ method, path, status }) => `${method} ${path} ${status}`)),
  ]
  const lookUp = (path: string) => `GET ${path}?token=${testProjectKey} 200`
  const options = (more: object = {}) => ({ host: acceptance.proxy.url, flushInterval: 50, ...more })
  const locally = () => options({ personalApiKey: testPersonalKey, featureFlagsPollingInterval: 200 })

  async function calledWith(distinctId: string, flags: readonly string[]): Promise<StoredEvent['properties'][]> {
    return eventually(
      async () => {
        const stored = await storedEvents(acceptance.pennon, distinctId)
        const called = stored
          .filter(({ event }) => event === '$feature_flag_called')
          .map(({ properties }) => properties)
        const wanted = flags.map(flag => called.find(one => one.$feature_flag === flag))
        return wanted.includes(undefined) ? null : wanted
      },
      { what: `calls of ${flags} by ${distinctId}` },
    )
  }

  describe('posthog-node 1.3.0, which reads the list of flags', () => {
    let client: Client
    before(async () => {
      const { default: PostHog } = await import('posthog-node-1' as string)
      acceptance.proxy.take()
      client = new PostHog(testProjectKey, options({ personalApiKey: testPersonalKey }))
    })
    after(() => client.shutdown())

    it('reads a flag from the array that an unversioned /decide/ returns, and gets its flag calls stored', async () => {
      const id = 'node-1.3.0'
      assert.equal(await client.isFeatureEnabled('bool-on', id), true)
      assert.equal(await client.isFeatureEnabled('multi', id), true)
      assert.equal(await client.isFeatureEnabled('bool-off', id, true), false, 'a flag of 0 % that it takes for simple')
      assert.equal(await client.isFeatureEnabled('local-prop', id, true), false)
      assert.equal(await client.isFeatureEnabled('nowhere', id, true), true, 'the default of the call')
      const [on, off] = await calledWith(id, ['bool-on', 'bool-off'])
      assert.deepEqual([on.$feature_flag_response, off.$feature_flag_response], [true, false])
      assert.equal(on.$lib_version, '1.3.0')
      assert.deepEqual(passed().toSorted(), [
        lookUp('/api/feature_flag/'),
        ...['POST /batch/ 200', 'POST /decide/ 200'],
      ])
    })
  })

  describe('posthog-node 2.2.3, which reads version 2 of /decide/', () => {
    let PostHog: new (key: string, options: object) => Client
    before(async () => {
      PostHog = (await import('posthog-node-2-2' as string)).PostHog
      acceptance.proxy.take()
    })

    it('reads a variant, and false for an unknown flag, and gets both calls stored', async () => {
      const client = new PostHog(testProjectKey, options())
      const id = 'node-2.2.3'
      assert.equal(await client.getFeatureFlag('multi', id), 'variant-a')
      assert.equal(await client.getFeatureFlag('nowhere', id), false)
      await client.shutdownAsync()
      const [multi, nowhere] = await calledWith(id, ['multi', 'nowhere'])
      assert.deepEqual([multi.$feature_flag_response, nowhere.$feature_flag_response], ['variant-a', false])
      assert.deepEqual(passed().toSorted(), ['POST /batch/ 200', 'POST /decide/?v=2 200'])
    })

    it('evaluates locally, and asks the server for a flag with a cohort, which it cannot evaluate', async () => {
      const client = new PostHog(testProjectKey, locally())
      const quietly = { sendFeatureFlagEvents: false, personProperties: { plan: 'pro' } }
      assert.equal(await client.getFeatureFlag('local-prop', 'x', quietly), true)
      assert.equal(await client.getFeatureFlag('multi', 'x', quietly), 'variant-a')
      assert.deepEqual(passed(), [lookUp('/api/feature_flag/local_evaluation')])
      assert.equal(await client.getFeatureFlag('cohort-flag', 'x', quietly), true)
      const free = { ...quietly, personProperties: { plan: 'free' } }
      assert.equal(await client.getFeatureFlag('cohort-flag', 'x', free), false)
      assert.ok(passed().includes('POST /decide/?v=2 200'))
      await client.shutdownAsync()
    })
  })

  /** A `fetch` for a client that records the answers to its requests for flags. */
  function answersKept() {
    const answers: { flags: object; [name: string]: unknown }[] = []
    const keeping = async (url: string, init: object) => {
      const response = await fetch(url, init)
      if (/\/(flags|decide)\/\?/.test(url)) answers.push((await response.clone().json()) as (typeof answers)[number])
      return response
    }
    return { answers, fetch: keeping }
  }

  describe('posthog-node 4.11.7, which reads version 4 of /decide/', () => {
    it('gets only the requested flag, and its event has the flag’s version and reason', async () => {
      const { PostHog } = await import('posthog-node-4-11' as string)
      acceptance.proxy.take()
      const { answers, fetch } = answersKept()
      const client = new PostHog(testProjectKey, options({ fetch }))
      const id = 'node-4.11.7'
      assert.equal(await client.getFeatureFlag('multi', id), 'variant-a')
      assert.deepEqual(await client.getFeatureFlagPayload('bool-on', id), { a: 1 })
      await client.shutdown()
      assert.deepEqual(
        answers.map(({ flags }) => Object.keys(flags)),
        [['multi'], ['bool-on']],
      )
      const [called] = await calledWith(id, ['multi'])
      assert.equal(called.$feature_flag_response, 'variant-a')
      assert.ok(Number.isInteger(called.$feature_flag_id) && called.$feature_flag_version === 1)
      assert.equal(called.$feature_flag_reason, 'Matched condition set 1')
      assert.equal(called.$feature_flag_request_id, answers[0]!.requestId)
      assert.deepEqual(passedWithoutPersonalKey().toSorted(), ['POST /batch/ 200', 'POST /decide/?v=4 200'])
    })
  })

  describe('posthog-node 5.17.4, which also asks /flags/ for the configuration', () => {
    let PostHog: new (key: string, options: object) => Client
    before(async () => {
      PostHog = (await import('posthog-node-5-17' as string)).PostHog
      acceptance.proxy.take()
    })

    it('reads the requested flag along with the configuration', async () => {
      const { answers, fetch } = answersKept()
      const client = new PostHog(testProjectKey, options({ fetch }))
      assert.equal(await client.getFeatureFlag('multi', 'x', { sendFeatureFlagEvents: false }), 'variant-a')
      await client.shutdown()
      const [{ flags, ...answer }] = answers as [(typeof answers)[number]]
      assert.deepEqual(Object.keys(flags), ['multi'])
      assert.deepEqual([answer.supportedCompression, answer.hasFeatureFlags], [['gzip', 'gzip-js'], true])
      assert.deepEqual(passed(), ['POST /flags/?v=2&config=true 200'])
    })

    it('evaluates locally, gets 304 from its second poll on, and asks the server only for an unknown flag', async () => {
      const client = new PostHog(testProjectKey, locally())
      assert.equal(await client.waitForLocalEvaluationReady(10_000), true)
      const quietly = { sendFeatureFlagEvents: false, personProperties: { plan: 'pro' } }
      const gold = { groups: { company: 'acme' }, groupProperties: { company: { tier: 'gold' } } }
      assert.equal(await client.getFeatureFlag('multi', 'x', quietly), 'variant-a')
      for (const flag of ['bool-on', 'local-prop', 'cohort-flag', 'group-flag'])
        assert.equal(await client.getFeatureFlag(flag, 'x', { ...quietly, ...gold }), true, flag)
      const polls = () => acceptance.proxy.exchanges.filter(({ method }) => method === 'GET')
      await eventually(() => polls().length >= 3)
      assert.deepEqual(
        polls()
          .slice(0, 3)
          .map(({ status }) => status),
        [200, 304, 304],
      )
      assert.ok(polls()[1]!.headers['if-none-match']?.startsWith('W/"'))
      assert.ok(acceptance.proxy.take().every(({ method }) => method === 'GET'))
      assert.equal(await client.getFeatureFlag('nowhere', 'x', quietly), undefined)
      assert.ok(passed().includes('POST /flags/?v=2&config=true 200'))
      await client.shutdown()
    })
  })
}
