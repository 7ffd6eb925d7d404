import assert from 'node:assert/strict'
import { after, afterEach, before, describe, it } from 'node:test'
import { eventually } from '../support/eventually.ts'
import { testPersonalKey, testProjectKey } from '../support/pennon.ts'
import { startedForTests } from '../support/started-for-tests.ts'
import { distinctIdsOf, startAcceptance, storedEvents, storedPerson, usageOf } from './acceptance.ts'
import { describeAddresses } from './posthog-node-addresses.ts'
import { describeRefused } from './posthog-node-refused.ts'
import { createTypedFlags } from './typed-flags.ts'

// Published versions of posthog-node, unmodified, over real sockets. Source: docs/wire/clients.md 3.1, 13 rows 1–13.

// biome-ignore lint/suspicious/noExplicitAny: four versions of a library whose types differ
type Client = any

interface NodeSdk {
  readonly version: string
  readonly load: () => Promise<{ PostHog: new (key: string, options: object) => Client }>
  /** Path of a call for flags. */
  readonly flagsPath: string
  readonly definitionsPath: string
  /** Sends definitions back by their entity tag. */
  readonly revalidates: boolean
  readonly gzips: boolean
  /** `getAllFlagsAndPayloads` gives values; older ones the text of each. */
  readonly readsPayloads: boolean
  /** Whether the client marks its batches itself; older ones have no such option. */
  readonly marksImports: boolean
}

const sdks: readonly NodeSdk[] = [
  {
    version: '2.6.0',
    load: () => import('posthog-node-2' as string),
    flagsPath: '/decide/?v=3',
    definitionsPath: '/api/feature_flag/local_evaluation',
    revalidates: false,
    gzips: false,
    readsPayloads: false,
    marksImports: false,
  },
  {
    version: '3.6.3',
    load: () => import('posthog-node-3' as string),
    flagsPath: '/decide/?v=3',
    definitionsPath: '/api/feature_flag/local_evaluation',
    revalidates: false,
    gzips: false,
    readsPayloads: false,
    marksImports: false,
  },
  {
    version: '4.8.1',
    load: () => import('posthog-node-4' as string),
    flagsPath: '/decide/?v=3',
    definitionsPath: '/api/feature_flag/local_evaluation',
    revalidates: false,
    gzips: false,
    readsPayloads: true,
    marksImports: true,
  },
  {
    version: '5.70.0',
    load: () => import('posthog-node' as string),
    flagsPath: '/flags/?v=2',
    definitionsPath: '/flags/definitions',
    revalidates: true,
    gzips: true,
    readsPayloads: true,
    marksImports: true,
  },
]

const gold = { groups: { company: 'acme' }, groupProperties: { company: { tier: 'gold' } } }

const acceptance = startedForTests(startAcceptance)

for (const sdk of sdks) {
  describe(`posthog-node ${sdk.version}`, () => {
    const me = (name: string) => `${name}-node-${sdk.version}`
    const complaints: string[] = []
    const restore: (() => void)[] = []

    before(() => {
      acceptance.proxy.take()
      for (const level of ['warn', 'error'] as const) {
        const original = console[level]
        console[level] = (...args: unknown[]) => {
          const line = args.map(String).join(' ')
          // The newest version calls the methods that all versions share deprecated.
          if (!line.includes('is deprecated and will be removed')) complaints.push(line)
        }
        restore.push(() => {
          console[level] = original
        })
      }
    })
    after(() => {
      for (const undo of restore) undo()
    })
    // Whichever tests are run: what one of them is meant to provoke, it takes away itself.
    afterEach(() => assert.deepEqual(complaints.splice(0), []))

    async function withClient<T>(options: object, use: (client: Client) => Promise<T>): Promise<T> {
      const { PostHog } = await sdk.load()
      const client = new PostHog(testProjectKey, { host: acceptance.proxy.url, ...options })
      client.on?.('error', (error: unknown) => complaints.push(`error event: ${error}`))
      try {
        return await use(client)
      } finally {
        await shutdown(client)
      }
    }

    it('reads all flags, single flags and payloads', async () => {
      await withClient({}, async client => {
        const id = me('reader')
        assert.deepEqual(await client.getAllFlags(id), {
          ...{ 'bool-on': true, 'bool-off': false, multi: 'variant-a', plain: true },
          ...{ 'group-flag': false, 'local-prop': false, 'cohort-flag': false },
        })
        const all = await client.getAllFlagsAndPayloads(id)
        // Versions before 4 hand on the text of a payload here.
        const payloads = all.featureFlagPayloads
        assert.deepEqual(sdk.readsPayloads ? payloads['bool-on'] : JSON.parse(payloads['bool-on']), { a: 1 })
        assert.equal(sdk.readsPayloads ? payloads.multi : JSON.parse(payloads.multi), 'hello')
        assert.equal(await client.getFeatureFlag('multi', id), 'variant-a')
        assert.equal(await client.isFeatureEnabled('bool-on', id), true)
        assert.equal(await client.isFeatureEnabled('bool-off', id), false)
        assert.deepEqual(await client.getFeatureFlagPayload('bool-on', id), { a: 1 })
        assert.equal(await client.getFeatureFlagPayload('multi', id, 'variant-a'), 'hello')
      })
      const asked = acceptance.proxy.take()
      assert.ok(
        asked.some(({ path }) => path === sdk.flagsPath),
        JSON.stringify(asked.map(({ path }) => path)),
      )
      assert.deepEqual(
        asked.filter(({ status }) => status !== 200),
        [],
      )
    })

    it('evaluates flags by the properties and groups of the call', async () => {
      await withClient({}, async client => {
        const id = me('override')
        assert.equal(await client.getFeatureFlag('local-prop', id, { personProperties: { plan: 'pro' } }), true)
        assert.equal(await client.getFeatureFlag('local-prop', id, { personProperties: { plan: 'free' } }), false)
        assert.equal(await client.getFeatureFlag('cohort-flag', id, { personProperties: { plan: 'pro' } }), true)
        assert.equal(await client.getFeatureFlag('cohort-flag', id, { personProperties: { plan: 'free' } }), false)
        assert.equal(await client.getFeatureFlag('group-flag', id, gold), true)
        const silver = { ...gold, groupProperties: { company: { tier: 'silver' } } }
        assert.equal(await client.getFeatureFlag('group-flag', id, silver), false)
        assert.equal(await client.getFeatureFlag('group-flag', id), false)
      })
    })

    it('gets events with flag values, flag calls, persons, aliases and groups stored as they were sent', async () => {
      const [id, alias] = [me('sender'), me('alias')]
      const timestamp = new Date('2026-01-02T03:04:05.678Z')
      await withClient({}, async client => {
        client.capture({
          distinctId: id,
          event: 'bought',
          properties: { price: 9.5, ok: true, name: 'tea' },
          timestamp,
          sendFeatureFlags: true,
        })
        await client.getFeatureFlag('multi', id)
        client.identify({ distinctId: id, properties: { email: 'a@example.org', $set_once: { first: 'yes' } } })
        client.alias({ distinctId: id, alias })
        client.groupIdentify({ groupType: 'company', groupKey: me('acme'), properties: { tier: 'gold' } })
        client.capture({ distinctId: id, event: 'grouped', groups: { company: me('acme') } })
      })
      const { pennon } = acceptance
      const stored = await storedEvents(pennon, id)
      assert.deepEqual(stored.map(({ event }) => event).toSorted(), [
        ...['$create_alias', '$feature_flag_called', '$identify', 'bought', 'grouped'],
      ])
      const bought = stored.find(({ event }) => event === 'bought')!
      // Corrected by the clocks' difference, which contains the way from there to here: minutes on no machine.
      assert.ok(Math.abs(Date.parse(bought.timestamp) - timestamp.getTime()) < 60_000, bought.timestamp)
      assert.equal(bought.properties.price, 9.5)
      assert.equal(bought.properties.ok, true)
      assert.equal(bought.properties.name, 'tea')
      assert.equal(bought.properties['$feature/multi'], 'variant-a')
      // Versions before 3 name the enabled ones alone.
      assert.ok(!bought.properties['$feature/bool-off'])
      assert.deepEqual(bought.properties.$active_feature_flags.toSorted(), ['bool-on', 'multi', 'plain'])
      assert.equal(bought.properties.$lib, 'posthog-node')
      assert.equal(bought.properties.$lib_version, sdk.version)
      const called = stored.find(({ event }) => event === '$feature_flag_called')!
      assert.equal(called.properties.$feature_flag, 'multi')
      assert.equal(called.properties.$feature_flag_response, 'variant-a')
      const grouped = stored.find(({ event }) => event === 'grouped')!
      assert.deepEqual(grouped.properties.$groups, { company: me('acme') })

      const person = await storedPerson(pennon, alias)
      assert.deepEqual(person?.distinct_ids.toSorted(), [alias, id].toSorted())
      assert.equal(person.properties.email, 'a@example.org')
      assert.equal(person.is_identified, true)
      const group = await pennon.api<{ group_properties: object }>(
        'GET',
        `/api/projects/@current/groups/find/?group_type_index=0&group_key=${me('acme')}`,
      )
      assert.deepEqual(group.group_properties, { tier: 'gold' })
      const posts = acceptance.proxy.take().filter(({ path }) => path.startsWith('/batch'))
      assert.ok(posts.length > 0)
      for (const { status, headers } of posts) {
        assert.equal(status, 200)
        assert.equal(headers['content-encoding'] === 'gzip', sdk.gzips)
      }
    })

    it('evaluates the next call by the stored person and group', async () => {
      const id = me('stored')
      await withClient({}, async client => {
        client.identify({ distinctId: id, properties: { plan: 'pro' } })
        client.groupIdentify({ groupType: 'company', groupKey: me('rich'), properties: { tier: 'gold' } })
      })
      await acceptance.pennon.caughtUp()
      await withClient({}, async client => {
        assert.equal(await client.getFeatureFlag('local-prop', id), true)
        assert.equal(await client.getFeatureFlag('group-flag', id, { groups: { company: me('rich') } }), true)
      })
    })

    it('evaluates locally with a personal key, and asks the server for flags that it cannot evaluate', async () => {
      acceptance.proxy.take()
      const options = { personalApiKey: testPersonalKey, featureFlagsPollingInterval: 1_000 }
      await withClient(options, async client => {
        const id = me('local')
        const locally = { onlyEvaluateLocally: true, sendFeatureFlagEvents: false }
        await eventually(async () => (await client.getFeatureFlag('bool-on', id, locally)) === true, {
          what: 'the definitions',
        })
        assert.equal(await client.getFeatureFlag('multi', id, locally), 'variant-a')
        assert.equal(await client.getFeatureFlag('bool-off', id, locally), false)
        const pro = { ...locally, personProperties: { plan: 'pro' } }
        assert.equal(await client.getFeatureFlag('local-prop', id, pro), true)
        assert.equal(await client.getFeatureFlag('local-prop', id, locally), undefined)
        assert.equal(await client.getFeatureFlag('cohort-flag', id, pro), true)
        assert.equal(await client.getFeatureFlag('group-flag', id, { ...locally, ...gold }), true)
        assert.deepEqual(await client.getFeatureFlagPayload('bool-on', id, true, locally), { a: 1 })
        assert.ok(
          acceptance.proxy.exchanges.every(({ path }) => !path.startsWith('/decide') && !path.startsWith('/flags/?')),
        )
        // The stored person is not known here: the server answers.
        assert.equal(await client.getFeatureFlag('local-prop', id), false)
        assert.ok(acceptance.proxy.exchanges.some(({ path }) => path === sdk.flagsPath))
        if (sdk.revalidates) {
          await eventually(() => acceptance.proxy.exchanges.some(({ status }) => status === 304), {
            what: 'a 304',
          })
        }
      })
      const asked = acceptance.proxy.take()
      assert.ok(asked.some(({ path }) => path.startsWith(sdk.definitionsPath)))
      assert.deepEqual(
        asked.filter(({ status }) => status !== 200 && status !== 304),
        [],
      )
    })

    it('sees an edited flag by the next poll', async () => {
      const { pennon } = acceptance
      const key = me('edited').replaceAll('.', '-')
      const rollout = (rollout_percentage: number) => ({
        filters: { groups: [{ properties: [], rollout_percentage }] },
      })
      const { id } = await pennon.api<{ id: number }>('POST', '/api/projects/@current/feature_flags/', {
        key,
        ...rollout(0),
      })
      const options = { personalApiKey: testPersonalKey, featureFlagsPollingInterval: 200 }
      await withClient(options, async client => {
        const value = () =>
          client.getFeatureFlag(key, 'someone', { onlyEvaluateLocally: true, sendFeatureFlagEvents: false })
        await eventually(async () => (await value()) === false, { what: 'the first definitions' })
        await pennon.api('PATCH', `/api/projects/@current/feature_flags/${id}/`, rollout(100))
        await eventually(async () => (await value()) === true, { what: 'the edited definitions' })
      })
      await pennon.api('PATCH', `/api/projects/@current/feature_flags/${id}/`, { deleted: true })
    })

    it('gets a thousand events stored once each before shutdown completes', async () => {
      const event = me('thousand')
      await withClient({ flushAt: 100, flushInterval: 50 }, async client => {
        for (let n = 0; n < 1_000; n++) client.capture({ distinctId: `d${n}`, event, properties: { n } })
      })
      // The shutdown of posthog-node 3 resolves while its batches are still on their way.
      const isStored = async () => (await distinctIdsOf(acceptance.pennon, event)).length >= 1_000
      await eventually(isStored, { what: 'the last batch' })
      const ids = await distinctIdsOf(acceptance.pennon, event)
      assert.equal(ids.length, 1_000)
      assert.equal(new Set(ids).size, 1_000)
    })

    it('resends a batch after a 503, and the batch is stored once', async () => {
      acceptance.proxy.take()
      acceptance.proxy.answerNext('/batch', [
        { status: 503, headers: { 'retry-after': '1' }, body: '{"type":"server_error","code":"transient_error"}' },
      ])
      const id = me('retried')
      await withClient({ fetchRetryDelay: 100 }, async client => {
        client.capture({ distinctId: id, event: 'retried' })
      })
      assert.deepEqual(
        acceptance.proxy.take().map(({ status }) => status),
        [503, 200],
      )
      assert.equal((await storedEvents(acceptance.pennon, id)).length, 1)
    })

    if (sdk.marksImports) {
      it('gets a historical migration stored as an import, without charge', async () => {
        const { pennon } = acceptance
        await pennon.caughtUp()
        const id = me('imported')
        await withClient({ historicalMigration: true }, async client => {
          client.capture({ distinctId: id, event: 'old', timestamp: new Date('2021-05-06T07:08:09.123Z') })
        })
        const [old, ...rest] = await storedEvents(pennon, id)
        assert.deepEqual(rest, [])
        assert.equal(old?.historical_migration, true)
        assert.equal(old.lane, 'historical')
        assert.equal(new Date(old.timestamp).toISOString(), '2021-05-06T07:08:09.123Z')
      })
    }

    it('gets 401 in JSON for a wrong key, and nothing is stored', async () => {
      acceptance.proxy.take()
      const { PostHog } = await sdk.load()
      const client = new PostHog('phc_of_nobody', {
        host: acceptance.proxy.url,
        fetchRetryCount: 0,
        fetchRetryDelay: 10,
      })
      client.on?.('error', () => undefined)
      const id = me('stranger')
      let value: unknown
      try {
        value = await client.getFeatureFlag('bool-on', id)
      } catch {
        value = 'thrown' // as posthog-node 2 does for every answer that is not 200
      }
      client.capture({ distinctId: id, event: 'lost' })
      // posthog-node 2 rejects with what became of the last batch.
      await shutdown(client).catch((error: Error) => assert.equal(error.message, 'Unauthorized'))
      assert.notEqual(value, true)
      const asked = acceptance.proxy.take()
      assert.ok(asked.length >= 2)
      assert.deepEqual([...new Set(asked.map(({ status }) => status))], [401])
      complaints.length = 0
      assert.deepEqual(await storedEvents(acceptance.pennon, id), [])
    })
  })
}

describe('posthog-node 5.70.0 evaluating once per request', () => {
  it('answers every flag of a snapshot from one call', async () => {
    const { PostHog } = await sdks.at(-1)!.load()
    const client = new PostHog(testProjectKey, { host: acceptance.proxy.url })
    acceptance.proxy.take()
    const id = 'snapshot-node'
    const snapshot = await client.evaluateFlags(id, { flagKeys: ['multi', 'bool-on'] })
    assert.equal(snapshot.getFlag('multi'), 'variant-a')
    assert.equal(snapshot.isEnabled('bool-on'), true)
    assert.deepEqual(snapshot.getFlagPayload('bool-on'), { a: 1 })
    assert.equal(snapshot.getFlag('plain'), undefined, 'an unrequested flag was returned')
    assert.deepEqual(
      acceptance.proxy.take().map(({ path }) => path),
      ['/flags/?v=2'],
    )
    await shutdown(client)
    const called = await storedEvents(acceptance.pennon, id)
    assert.ok(called.some(({ properties }) => properties.$feature_flag === 'multi' && properties.$feature_flag_id > 0))
  })
})

describeAddresses(() => acceptance)
describeRefused(() => acceptance)

describe('events sent by all versions', () => {
  it('are counted as charged or imported, each event once', async () => {
    const { pennon } = acceptance
    await pennon.caughtUp()
    const importCount = sdks.filter(sdk => sdk.marksImports).length
    await eventually(async () => (await usageOf(pennon)).imported === importCount, { what: 'usage' })
    const status = await pennon.api<{ lanes: Record<string, { appended: number }> }>(
      'GET',
      '/api/projects/@current/ingestion_status/',
    )
    const live = status.lanes.main!.appended
    await eventually(async () => (await usageOf(pennon)).charged === live, { what: 'usage' })
  })
})

async function shutdown(client: Client): Promise<void> {
  await (client.shutdownAsync ?? client.shutdown).call(client)
}

describe('version 2 flags', () => {
  before(() => createTypedFlags(acceptance.pennon))

  for (const { version, load, readsPayloads } of sdks) {
    it(`have their values in posthog-node ${version}, and numbers and objects as payloads`, async () => {
      const { PostHog } = await load()
      const client = new PostHog(testProjectKey, { host: acceptance.proxy.url })
      const { featureFlags, featureFlagPayloads } = await client.getAllFlagsAndPayloads(`typed-${version}`)
      await shutdown(client)
      assert.deepEqual(
        ['boolean', 'text', 'number', 'object', 'none'].map(type => featureFlags[`typed-${type}`]),
        [true, 'green', true, true, false],
      )
      assert.ok(['blue', 'pink'].includes(featureFlags['typed-split']))
      const payloadOf = (key: string) =>
        readsPayloads ? featureFlagPayloads[key] : JSON.parse(featureFlagPayloads[key])
      assert.equal(payloadOf('typed-number'), 42.5)
      assert.deepEqual(payloadOf('typed-object'), { theme: { dark: true } })
    })
  }
})
