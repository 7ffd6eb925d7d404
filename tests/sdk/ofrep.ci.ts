import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { after, before, describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { OFREPProvider } from '@openfeature/ofrep-provider'
import { OFREPWebProvider } from '@openfeature/ofrep-web-provider'
import { OpenFeature } from '@openfeature/server-sdk'
import { ClientProviderEvents, type Provider, OpenFeature as WebOpenFeature } from '@openfeature/web-sdk'
import { eventually } from '../support/eventually.ts'
import { testPersonalKey, testProjectKey } from '../support/pennon.ts'
import { type Acceptance, startAcceptance } from './acceptance.ts'
import { createTypedFlags } from './typed-flags.ts'

// OpenFeature's own providers, unmodified, over real sockets.
// Source: docs/wire/ofrep.md; docs/wire/clients.md 13 rows 68–70.

const bulkPath = '/ofrep/v1/evaluate/flags'
const flagsApi = '/api/projects/@current/feature_flags/'

let acceptance: Acceptance

before(async () => {
  acceptance = await startAcceptance()
  await createTypedFlags(acceptance.pennon)
  await acceptance.pennon.api('POST', flagsApi, { key: 'edited', filters: { groups: [{ rollout_percentage: 100 }] } })
})
after(() => acceptance.close())

describe('the OFREP provider for servers', () => {
  let providerCount = 0

  async function clientOf(key = testProjectKey) {
    const domain = `server-${providerCount++}`
    const provider = new OFREPProvider({
      baseUrl: acceptance.proxy.url,
      headers: [['Authorization', `Bearer ${key}`]],
    })
    await OpenFeature.setProviderAndWait(domain, provider)
    return OpenFeature.getClient(domain)
  }

  after(() => OpenFeature.close())

  it('reads booleans and variants, with their payloads', async () => {
    const client = await clientOf()
    const ada = { targetingKey: 'ada' }
    const on = await client.getBooleanDetails('bool-on', false, ada)
    assert.deepEqual([on.value, on.variant, on.reason, on.flagMetadata.payload], [true, 'true', 'STATIC', '{"a":1}'])
    assert.equal(await client.getBooleanValue('bool-off', true, ada), false)
    const multi = await client.getStringDetails('multi', 'default', ada)
    assert.deepEqual([multi.value, multi.variant, multi.reason], ['variant-a', 'variant-a', 'SPLIT'])
    assert.equal(JSON.parse(multi.flagMetadata.payload as string), 'hello')
  })

  it('evaluates targeting by the context and the stored person', async () => {
    const client = await clientOf()
    const { pennon } = acceptance
    assert.equal(await client.getBooleanValue('local-prop', false, { targetingKey: 'bob' }), false)
    assert.equal(await client.getBooleanValue('local-prop', false, { targetingKey: 'bob', plan: 'pro' }), true)
    const groups = { groups: { company: 'acme' }, groupProperties: { company: { tier: 'gold' } } }
    assert.equal(await client.getBooleanValue('group-flag', false, { targetingKey: 'bob' }), false)
    assert.equal(await client.getBooleanValue('group-flag', false, { targetingKey: 'bob', ...groups }), true)
    await pennon.post('/capture/', {
      ...{ api_key: testProjectKey, event: '$set', distinct_id: 'carol' },
      properties: { $set: { plan: 'pro' } },
    })
    await pennon.caughtUp()
    assert.equal(await client.getBooleanValue('local-prop', false, { targetingKey: 'carol' }), true)
  })

  it('reads values of every type, with the variant and the rule’s reason', async () => {
    const client = await clientOf()
    const ada = { targetingKey: 'ada' }
    assert.equal(await client.getBooleanValue('typed-boolean', false, ada), true)
    assert.equal(await client.getStringValue('typed-text', 'default', ada), 'green')
    const number = await client.getNumberDetails('typed-number', 0, ada)
    assert.deepEqual([number.value, number.variant, number.reason], [42.5, '42.5', 'TARGETING_MATCH'])
    assert.deepEqual(await client.getObjectValue('typed-object', {}, ada), { theme: { dark: true } })
    // This provider knows no answer without a value, and takes the default, too.
    assert.equal(await client.getStringValue('typed-none', 'mine', ada), 'mine')
    const split = await client.getStringDetails('typed-split', 'default', ada)
    assert.deepEqual([split.variant, split.reason], [split.value === 'blue' ? 'a' : 'b', 'SPLIT'])
    const mismatch = await client.getBooleanDetails('typed-number', false, ada)
    assert.deepEqual([mismatch.value, mismatch.errorCode], [false, 'TYPE_MISMATCH'])
  })

  it('returns the default for an unknown flag, a type mismatch or a missing targeting key', async () => {
    const client = await clientOf()
    const ada = { targetingKey: 'ada' }
    const unknown = await client.getBooleanDetails('nowhere', true, ada)
    assert.deepEqual([unknown.value, unknown.errorCode], [true, 'FLAG_NOT_FOUND'])
    const ofNumber = await client.getNumberDetails('multi', 7, ada)
    assert.deepEqual([ofNumber.value, ofNumber.errorCode], [7, 'TYPE_MISMATCH'])
    const ofObject = await client.getObjectDetails('bool-on', { z: 1 }, ada)
    assert.deepEqual([ofObject.value, ofObject.errorCode], [{ z: 1 }, 'TYPE_MISMATCH'])
    const nobody = await client.getBooleanDetails('bool-on', false, {})
    assert.deepEqual([nobody.value, nobody.errorCode], [false, 'TARGETING_KEY_MISSING'])
    const stranger = await (await clientOf('phc_else')).getBooleanDetails('bool-on', false, ada)
    assert.deepEqual([stranger.value, stranger.errorCode], [false, 'GENERAL'])
  })
})

describe('the OFREP provider for web pages', () => {
  after(() => WebOpenFeature.close())

  it('polls with the entity tag and applies an edit', async () => {
    const { proxy, pennon } = acceptance
    await WebOpenFeature.setContext('polling', { targetingKey: 'ada' })
    const provider = new OFREPWebProvider({
      baseUrl: proxy.url,
      headers: [['X-API-Key', testProjectKey]],
      ...{ pollInterval: 100, changeDetection: 'polling', cacheMode: 'disabled' },
    })
    proxy.take()
    await WebOpenFeature.setProviderAndWait('polling', provider as Provider)
    const client = WebOpenFeature.getClient('polling')
    assert.equal(client.getBooleanValue('edited', false), true)
    assert.equal(client.getStringValue('multi', 'default'), 'variant-a')
    assert.equal(client.getBooleanDetails('nowhere', true).errorCode, 'FLAG_NOT_FOUND')
    assert.deepEqual(client.getObjectValue('typed-object', {}), { theme: { dark: true } })
    const none = client.getStringDetails('typed-none', 'mine')
    assert.deepEqual([none.value, none.reason, none.errorCode], ['mine', 'DEFAULT', undefined])
    const statuses = () => proxy.exchanges.filter(({ path }) => path.startsWith(bulkPath)).map(({ status }) => status)
    await eventually(() => statuses().length >= 3)
    assert.deepEqual(statuses().slice(0, 3), [200, 304, 304])

    const changed: (readonly string[])[] = []
    client.addHandler(ClientProviderEvents.ConfigurationChanged, details => changed.push(details?.flagsChanged ?? []))
    proxy.take()
    await pennon.api('PATCH', `${flagsApi}edited/`, { active: false })
    await eventually(() => changed.length > 0)
    assert.deepEqual(changed[0], ['edited'])
    const { value, reason } = client.getBooleanDetails('edited', true)
    assert.deepEqual([value, reason], [false, 'DISABLED'])
    assert.equal(statuses().filter(status => status === 200).length, 1)
    await pennon.api('PATCH', `${flagsApi}edited/`, { active: true })

    assert.equal(client.getBooleanValue('local-prop', false), false)
    await WebOpenFeature.setContext('polling', { targetingKey: 'ada', plan: 'pro' })
    assert.equal(client.getBooleanValue('local-prop', false), true)
    await WebOpenFeature.clearProviders()
  })

  it('applies edits announced by the change stream, without polling', async () => {
    const { proxy } = acceptance
    proxy.take()
    const { stdout } = await promisify(execFile)(
      process.execPath,
      [
        '--disable-warning=ExperimentalWarning',
        '--experimental-eventsource',
        fileURLToPath(new URL('ofrep-web-scenario.ts', import.meta.url)),
        ...[proxy.url, testProjectKey, testPersonalKey],
      ],
      { timeout: 240_000 },
    )
    assert.deepEqual(JSON.parse(stdout), {
      before: true,
      afterEdit: { value: false, reason: 'DISABLED' },
      afterContextChange: true,
      afterSecondEdit: true,
      keepsContext: true,
    })
    const asked = proxy.exchanges.map(({ path, status }) => `${status} ${path.split('?', 1)[0]}`)
    assert.ok(asked.includes('200 /ofrep/v1/events'), asked.join('\n'))
    const told = proxy.exchanges.filter(({ path }) => path.includes('flagConfigEtag='))
    assert.ok(told.length >= 2, 'the provider hands back what the event said')
  })
})

describe('a project over its quota', () => {
  it('makes the provider pause for the time in Retry-After', async () => {
    const { proxy, pennon } = acceptance
    await pennon.api('PATCH', '/api/projects/@current/', { quotas: { feature_flag_requests: 0 } })
    const provider = new OFREPProvider({
      baseUrl: proxy.url,
      headers: [['Authorization', `Bearer ${testProjectKey}`]],
    })
    await OpenFeature.setProviderAndWait('over-quota', provider)
    const client = OpenFeature.getClient('over-quota')
    proxy.take()
    for (let call = 0; call < 3; call++)
      assert.equal(await client.getBooleanValue('bool-on', false, { targetingKey: 'u' }), false)
    assert.deepEqual(
      proxy.exchanges.map(({ status }) => status),
      [429],
    )
    await pennon.api('PATCH', '/api/projects/@current/', { quotas: { feature_flag_requests: null } })
  })
})
