// Secret keys, quotas and encrypted payloads on fronts with their state in PostgreSQL.

import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { describe, it, type TestContext } from 'node:test'
import { eventually } from '../support/eventually.ts'
import { type RunningFront, startFront } from '../support/front.ts'
import { testPersonalKey, testProjectKey } from '../support/pennon.ts'
import { noPostgres, startPostgres } from '../support/postgres.ts'
import { startedForTests } from '../support/started-for-tests.ts'
import { tempDir } from '../support/temp-dir.ts'

const flagsPath = '/api/projects/@current/feature_flags/'
const sealed = {
  key: 'sealed',
  is_remote_configuration: true,
  has_encrypted_payloads: true,
  filters: { groups: [], payloads: { true: '"correct horse"' } },
}

describe('fronts on one PostgreSQL', { skip: noPostgres() }, () => {
  const postgres = startedForTests(startPostgres)

  async function frontOn(t: TestContext, url: string, settings: Record<string, string> = {}): Promise<RunningFront> {
    const front = await startFront({ DATABASE_URL: url, ...settings })
    t.after(() => front.close())
    return front
  }

  function get(front: RunningFront, path: string, key: string): Promise<Response> {
    return fetch(front.url + path, { headers: { authorization: `Bearer ${key}` } })
  }

  it('a front follows the rotation of a secret key by another front', async t => {
    const url = await postgres.createDatabase()
    const [first, second] = [await frontOn(t, url), await frontOn(t, url)]
    const rotate = async () => {
      const path = '/api/projects/@current/rotate_secret_token/'
      return (await first.api<{ secret_api_token: string }>('PATCH', path)).secret_api_token
    }
    const statusOn = async (front: RunningFront, key: string) =>
      (await get(front, `/flags/definitions?token=${testProjectKey}`, key)).status
    const former = await rotate()
    assert.equal(await statusOn(first, former), 200)
    await eventually(async () => (await statusOn(second, former)) === 200, { what: 'the new key' })
    await rotate()
    await first.api('PATCH', '/api/projects/@current/delete_secret_token_backup/')
    assert.equal(await statusOn(first, former), 401)
    await eventually(async () => (await statusOn(second, former)) === 401, { what: 'its end' })
  })

  it('fronts share a single count of flag requests', async t => {
    const url = await postgres.createDatabase()
    const [first, second] = [await frontOn(t, url), await frontOn(t, url)]
    await first.api('POST', flagsPath, { key: 'on' })
    await first.api('PATCH', '/api/projects/@current/', { quotas: { feature_flag_requests: 5 } })
    const isLimited = async (front: RunningFront) => {
      const body = JSON.stringify({ api_key: testProjectKey, distinct_id: 'ada' })
      const response = await fetch(`${front.url}/flags?v=2`, { method: 'POST', body })
      return ((await response.json()) as { quotaLimited?: unknown }).quotaLimited !== undefined
    }
    for (let request = 0; request < 5; request++) assert.equal(await isLimited(first), false)
    assert.equal(await isLimited(first), true)
    const hasHeard = async () => {
      const answer = await get(second, `/flags/definitions?token=${testProjectKey}`, testPersonalKey)
      return answer.status === 402
    }
    await eventually(hasHeard, { what: 'the other front to learn of the exhausted quota' })
    assert.equal(await isLimited(second), true)
  })

  it('payloads are encrypted with PENNON_ENCRYPTION_KEY, and fronts refuse to generate a key', async t => {
    const url = await postgres.createDatabase()
    const folder = tempDir(t)
    const without = await frontOn(t, url, { PENNON_DATA: folder })
    const refused = await fetch(without.url + flagsPath, {
      method: 'POST',
      headers: { authorization: `Bearer ${testPersonalKey}` },
      body: JSON.stringify(sealed),
    })
    const { attr, detail } = (await refused.json()) as { attr: string; detail: string }
    assert.deepEqual([refused.status, attr], [400, 'has_encrypted_payloads'])
    assert.match(detail, /PENNON_ENCRYPTION_KEY is not set/)
    assert.ok(!readdirSync(folder).includes('encryption.key'))

    const front = await frontOn(t, url, { PENNON_ENCRYPTION_KEY: 'c'.repeat(64) })
    await front.api('POST', flagsPath, sealed)
    const [row] = await postgres.query('SELECT filters FROM feature_flag', [], url)
    assert.match(JSON.stringify(row), /enc:v1:/)
    assert.doesNotMatch(JSON.stringify(row), /correct/)
    const payload = await get(front, `${flagsPath}sealed/remote_config`, testPersonalKey)
    assert.equal(await payload.json(), '"correct horse"')
  })
})
