// Published, unmodified SDKs of servers with their project's secret key, and remote configuration with either kind of
// key.
// Source: docs/wire/evaluation.md 7.1, 7.3; docs/wire/clients.md 2, 7.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { after, before, describe, it } from 'node:test'
import { promisify } from 'node:util'
import { type RunningFront, startFront } from '../support/front.ts'
import { testPersonalKey, testProjectKey } from '../support/pennon.ts'
import { pythonWith } from './python-environment.ts'

let front: RunningFront
let secretKey: string

before(async () => {
  front = await startFront()
  const flags = '/api/projects/@current/feature_flags/'
  const everyone = [{ rollout_percentage: 100 }]
  await front.api('POST', flags, { key: 'on', filters: { groups: everyone, payloads: { true: '{"a":1}' } } })
  const remote = {
    is_remote_configuration: true,
    filters: { groups: everyone, payloads: { true: config } },
  }
  await front.api('POST', flags, { key: 'config', ...remote })
  await front.api('POST', flags, { key: 'sealed', ...remote, has_encrypted_payloads: true })
  const rotated = await front.api<{ secret_api_token: string }>('PATCH', '/api/projects/@current/rotate_secret_token/')
  secretKey = rotated.secret_api_token
})
after(() => front.close())

// biome-ignore lint/suspicious/noExplicitAny: two versions of a library whose types differ
async function withClient<T>(name: string, options: object, use: (client: any) => Promise<T>): Promise<T> {
  const { PostHog } = await import(name)
  const client = new PostHog(testProjectKey, { host: front.url, ...options })
  try {
    return await use(client)
  } finally {
    await client.shutdown()
  }
}

describe('posthog-node 5.70.0', () => {
  it('evaluates locally with a secret key', async () => {
    await withClient('posthog-node', { secretKey }, async client => {
      assert.equal(await client.waitForLocalEvaluationReady(5_000), true)
      assert.equal(await client.getFeatureFlag('on', 'ada', { onlyEvaluateLocally: true }), true)
      assert.deepEqual(await client.getFeatureFlagPayload('on', 'ada', true, { onlyEvaluateLocally: true }), { a: 1 })
      assert.equal(await client.getFeatureFlag('sealed', 'ada', { onlyEvaluateLocally: true }), undefined)
    })
  })

  it('has no local flags with an invalid secret key', async () => {
    await withClient('posthog-node', { secretKey: `phs_${'0'.repeat(43)}` }, async client => {
      assert.equal(await client.waitForLocalEvaluationReady(500), false)
    })
  })
})

const config = '{"limits": [1, 2]}'
const marker = '"********* (encrypted)"'

for (const { name, version, shown } of [
  { name: 'posthog-node', version: '5.70.0', shown: JSON.parse },
  { name: 'posthog-node-4', version: '4.8.1', shown: (text: string) => text },
]) {
  it(`reads encrypted remote configuration with a personal key (posthog-node ${version})`, async () => {
    const read = (key: string, flag: string) =>
      withClient(name, { personalApiKey: key, enableLocalEvaluation: false }, client =>
        client.getRemoteConfigPayload(flag),
      )
    for (const key of [testPersonalKey, secretKey]) assert.deepEqual(await read(key, 'config'), shown(config))
    assert.deepEqual(await read(testPersonalKey, 'sealed'), shown(config))
    assert.equal(await read(secretKey, 'sealed'), shown(marker))
  })
}

it('posthog-python 7.91.1 evaluates locally and reads remote configuration with a secret key', async () => {
  const program = `
import json, sys
from posthog import Posthog
host, project_key, personal_key, secret_key = sys.argv[1:]
seen = {}
for name, key in (("personal", personal_key), ("secret", secret_key)):
    client = Posthog(project_key, host=host, personal_api_key=key)
    client.load_feature_flags()
    seen[name] = [
        client.get_feature_flag("on", "ada", only_evaluate_locally=True, send_feature_flag_events=False),
        client.get_remote_config_payload("config"),
        client.get_remote_config_payload("sealed"),
    ]
    client.shutdown()
print(json.dumps(seen))
`
  const keys = [testProjectKey, testPersonalKey, secretKey]
  const { stdout } = await promisify(execFile)(pythonWith('7.91.1'), ['-c', program, front.url, ...keys], {
    timeout: 240_000,
  })
  assert.deepEqual(JSON.parse(stdout), {
    personal: [true, config, config],
    secret: [true, config, marker],
  })
})
