import assert from 'node:assert/strict'
import { tmpdir } from 'node:os'
import { describe, it } from 'node:test'
import { readConfig } from '#config.ts'
import { computeFlagHash01, isInRollout } from '#core/flags/rollout/rollout.ts'
import { formatFirstSteps } from './first-steps.ts'

/** @param personalKey the key created or taken over by a first start; null at a later one. */
function banner(
  settings: Record<string, string>,
  personalKey: string | null = 'phx_made',
  people: { hasUsers?: boolean; welcomeToken?: string } = {},
): string {
  const config = readConfig({ PENNON_DATA: tmpdir(), PENNON_MIN_FREE_BYTES: '0', ...settings })
  assert.ok(config.ok)
  const { hasUsers = false, welcomeToken = null } = people
  const bootstrapped = { projectKey: 'key', personalKey, ignoredProjectKey: false, hasUsers, welcomeToken }
  return formatFirstSteps(
    { url: 'http://127.0.0.1:8000', adminUrl: null, bootstrapped, statePlace: null },
    config.value,
  )
}

describe('the text printed at the start of an instance', () => {
  it('does not mention the disk limit while there is enough space, and shows how to send an event', () => {
    const text = banner({})
    assert.ok(!text.includes('503') && !text.includes('Import-only'), text)
    assert.match(text, /\/capture\//)
  })

  it('shows how to evaluate the example flag for a user for whom it is on, and names one for whom it is off', () => {
    const text = banner({})
    const [, flagKey, percentage] = /"key": "([^"]+)".*"rollout_percentage": (\d+)/.exec(text)!
    const [, id] = /flags\?v=2.*"distinct_id": "([^"]+)"/.exec(text)!
    const [, has, hasNot] = /on for (\w+), off for (\w+)/.exec(text)!
    const isOn = (id: string) => isInRollout(computeFlagHash01(flagKey!, id, ''), Number(percentage))
    assert.equal(id, has)
    assert.deepEqual([isOn(has!), isOn(hasNot!)], [true, false])
  })

  it('shows a generated personal key, but never one from the settings', () => {
    const secret = 'phx_0123456789abcdefghij0123456789'
    assert.match(banner({}, secret), new RegExp(`Personal API key +${secret} .*shown only now`))
    assert.match(banner({}, secret), /new-key --label "Ada"\n.*DELETE .*personal_api_keys\/@current\/.*Bearer phx_0123/)
    const given = banner({ PENNON_PERSONAL_KEY: secret }, secret)
    assert.ok(!given.includes(secret) && !given.includes('DELETE'), given)
    assert.match(given, /Personal API key +the one in PENNON_PERSONAL_KEY/)
    assert.match(given, /Bearer <personal API key>/)
  })

  it('shows the link for the first admin once, and afterwards how to get another until someone has signed in', () => {
    const welcomeToken = 'x'.repeat(43)
    const first = banner({}, 'phx_made', { welcomeToken })
    assert.match(
      first,
      /Screens +http:\/\/127\.0\.0\.1:8000\/ui\/\n +Sign in +http:\/\/127\.0\.0\.1:8000\/ui\/welcome#x{43} /,
    )
    assert.match(banner({}, null), /Screens +http:\/\/127\.0\.0\.1:8000\/ui\/ .*sign-in-link\)/)
    assert.match(banner({}, null, { hasUsers: true }), /Screens +http:\/\/127\.0\.0\.1:8000\/ui\/\n/)
    const behind = banner({ PENNON_PUBLIC_URL: 'https://pennon.example' }, 'phx_made', { welcomeToken })
    assert.match(behind, /Sign in +https:\/\/pennon\.example\/ui\/welcome#/)
    assert.ok(!banner({ PENNON_PUBLIC_URL: 'https://shop.example/flags' }).includes('Screens'))
  })

  it('shows the port for dashboards and its user, and warns if the instance listens on all addresses', () => {
    const text = banner({ PENNON_EVENTS_PORT: '8123', PENNON_EVENTS_PASSWORD: 'geheim-geheim-geheim', HOST: '0.0.0.0' })
    assert.match(text, /Events port +http:\/\/127\.0\.0\.1:8123 .*user project_1, password of PENNON_EVENTS_PASSWORD/)
    assert.match(text, /Listening on all addresses of this machine \(HOST=0\.0\.0\.0\)/)
    assert.ok(!text.includes('geheim') && !/Events port|listens on/.test(banner({})), text)
  })

  it('leaves the tour out after the first start', () => {
    const text = banner({}, null)
    assert.match(text, /created on first start/)
    assert.doesNotMatch(text, /created; set PENNON_DATA/)
    assert.match(banner({}), /^ {2}Data .* \(created; set PENNON_DATA to use another folder\)$/m)
    assert.ok(!text.includes('curl'), text)
  })

  it('warns when the disk limit leaves no space for any event', () => {
    assert.match(
      banner({ PENNON_MIN_FREE_BYTES: '99999TiB' }),
      /503: [\d.]+ [KMGT]iB of disk space are free, PENNON_MIN_FREE_BYTES is 99999\.0 TiB\. Free disk space, or lower it/,
    )
  })

  it('says that an import-only instance accepts only imports, and shows an import command', () => {
    const text = banner({ PENNON_IMPORT_ONLY: 'true' })
    assert.match(text, /Import-only: only batches with historical_migration are stored/)
    assert.match(text, /\/batch\/.*"historical_migration": true/)
    assert.ok(!text.includes('/capture/'), text)
  })
})
