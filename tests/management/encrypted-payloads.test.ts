// Payloads of flags with `has_encrypted_payloads`: where they are visible, where they are not, and which of them a
// write keeps.
// Source: docs/wire/evaluation.md 2.7, 7.3; docs/wire/private-api.md §4.

import assert from 'node:assert/strict'
import { readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it, type TestContext } from 'node:test'
import { type RunningFront, startFront } from '../support/front.ts'
import { startManagement } from '../support/management-api.ts'
import { testPersonalKey, testProjectKey } from '../support/pennon.ts'
import { tempDir } from '../support/temp-dir.ts'

const marker = '"********* (encrypted)"'
const secret = '{"password":"correct horse"}'
const filters = (payloads: object) => ({ groups: [{ rollout_percentage: 100 }], payloads })
const encrypted = { is_remote_configuration: true, has_encrypted_payloads: true }
const flagsPath = '/api/projects/@current/feature_flags/'

// biome-ignore lint/suspicious/noExplicitAny: reads parts of answers
type Json = any

async function remoteConfig(front: { url: string }, key: string, authorization = testPersonalKey) {
  const response = await fetch(`${front.url}${flagsPath}${key}/remote_config`, {
    headers: { authorization: `Bearer ${authorization}` },
  })
  const text = await response.text()
  return { status: response.status, json: text === '' ? '' : JSON.parse(text) }
}

describe('encrypted payloads', () => {
  let front: RunningFront
  let secretKey: string

  before(async () => {
    front = await startFront()
    const rotated = await front.api<Json>('PATCH', '/api/projects/@current/rotate_secret_token/')
    secretKey = rotated.secret_api_token
  })
  after(() => front.close())

  const create = (key: string, body: object) => front.api<Json>('POST', flagsPath, { key, ...body })
  const patch = (id: number, body: object) => front.api<Json>('PATCH', `${flagsPath}${id}/`, body)

  async function refusal(method: string, path: string, body: object): Promise<string> {
    const response = await fetch(`${front.url}${path}`, {
      method,
      headers: { authorization: `Bearer ${testPersonalKey}` },
      body: JSON.stringify(body),
    })
    const { code, attr } = (await response.json()) as { code: string; attr: string }
    return `${response.status} ${code} ${attr}`
  }

  it('are decrypted for a personal key, and replaced by a marker for a secret key of the project', async () => {
    await create('opened', { ...encrypted, filters: filters({ true: secret }) })
    assert.deepEqual(await remoteConfig(front, 'opened'), { status: 200, json: secret })
    assert.deepEqual(await remoteConfig(front, 'opened', secretKey), { status: 200, json: marker })
    await create('empty', { ...encrypted, filters: filters({}) })
    assert.deepEqual(await remoteConfig(front, 'empty', secretKey), { status: 200, json: '' })
  })

  it('appear in no answer of the private API, no evaluation and no definitions', async () => {
    const { id, ...created } = await create('hidden', {
      ...encrypted,
      filters: filters({ true: secret, b: 7, c: null }),
    })
    assert.deepEqual(created.filters.payloads, { true: marker, b: marker, c: null })
    await patch(id, { filters: filters({ true: 'correct horse too' }) })
    await patch(id, { name: 'renamed' })
    await front.api('POST', `${flagsPath}${id}/versions/1/restore/`)
    const reads = ['', `${id}/`, `${id}/versions/`, `${id}/versions/1/`, `${id}/versions/1/diff/2/`, `${id}/activity/`]
    for (const path of reads) {
      const text = JSON.stringify(await front.api('GET', flagsPath + path))
      assert.doesNotMatch(text, /correct|enc:v1|password/, path)
    }
    assert.deepEqual(await remoteConfig(front, 'hidden'), { status: 200, json: secret })
    const body = JSON.stringify({ api_key: testProjectKey, distinct_id: 'ada' })
    for (const path of ['/decide?v=3', '/flags?v=2']) {
      const text = await (await fetch(front.url + path, { method: 'POST', body })).text()
      assert.doesNotMatch(text, /hidden|enc:v1|correct/, path)
    }
    const headers = { authorization: `Bearer ${testPersonalKey}` }
    const definitions = await fetch(`${front.url}/flags/definitions?token=${testProjectKey}`, { headers })
    assert.doesNotMatch(await definitions.text(), /hidden|enc:v1|correct/)
  })

  it('stay unchanged for values whose marker the client sends back', async () => {
    const { id } = await create('kept', { ...encrypted, filters: filters({ true: secret, other: '"x"' }) })
    await patch(id, { filters: filters({ true: marker, other: '"changed"' }) })
    assert.deepEqual(await remoteConfig(front, 'kept'), { status: 200, json: secret })
    await patch(id, { filters: filters({ true: 'new' }) })
    assert.deepEqual(await remoteConfig(front, 'kept'), { status: 200, json: 'new' })
    assert.equal(
      await refusal('PATCH', `${flagsPath}${id}/`, { filters: filters({ other: marker }) }),
      '400 invalid_input filters.payloads.other',
    )
    assert.equal(
      await refusal('POST', flagsPath, { key: 'nothing-to-keep', ...encrypted, filters: filters({ true: marker }) }),
      '400 invalid_input filters.payloads.true',
    )
    assert.equal(
      await refusal('POST', `${flagsPath}?skip_validation=true`, {
        key: 'odd',
        ...encrypted,
        filters: { payloads: 'x' },
      }),
      '400 invalid filters.payloads',
    )
  })

  it('are encrypted when a flag becomes encrypted, and the previous plain text is no longer shown', async () => {
    const { id } = await create('turned-on', { is_remote_configuration: true, filters: filters({ true: secret }) })
    const turned = await patch(id, { has_encrypted_payloads: true })
    assert.deepEqual(turned.filters.payloads, { true: marker })
    assert.deepEqual(await remoteConfig(front, 'turned-on'), { status: 200, json: secret })
    for (const path of ['versions/', 'versions/1/', 'versions/1/diff/2/', 'activity/'])
      assert.doesNotMatch(JSON.stringify(await front.api('GET', `${flagsPath}${id}/${path}`)), /correct/, path)
    const restored = await front.api<Json>('POST', `${flagsPath}${id}/versions/1/restore/`)
    assert.deepEqual([restored.has_encrypted_payloads, restored.filters.payloads], [true, { true: marker }])
    assert.deepEqual(await remoteConfig(front, 'turned-on', secretKey), { status: 200, json: marker })
    assert.deepEqual(await remoteConfig(front, 'turned-on'), { status: 200, json: secret })
  })

  it('do not become plain text when encryption is turned off: new payloads must be sent', async () => {
    const { id } = await create('turned-off', { ...encrypted, filters: filters({ true: secret }) })
    const off = { has_encrypted_payloads: false }
    assert.equal(await refusal('PATCH', `${flagsPath}${id}/`, off), '400 invalid_input has_encrypted_payloads')
    assert.equal(
      await refusal('PATCH', `${flagsPath}${id}/`, { ...off, filters: filters({ true: marker }) }),
      '400 invalid_input filters.payloads.true',
    )
    const turned = await patch(id, { ...off, filters: filters({ true: '"public"' }) })
    assert.deepEqual(turned.filters.payloads, { true: '"public"' })
    assert.deepEqual(await remoteConfig(front, 'turned-off', secretKey), { status: 200, json: '"public"' })
  })
})

describe('encrypted payloads of a flag that an experiment or survey owns', () => {
  const [experiments, surveys] = ['/api/projects/1/experiments/', '/api/projects/1/surveys/']
  const variants = ['control', 'test'].map(key => ({ key, rollout_percentage: 50 }))
  const sealed = { ...encrypted, is_remote_configuration: false }

  async function startExperiment(t: TestContext) {
    const api = await startManagement(t)
    const stored = async (key = 'sealed') => (await api.management.findFlagByKey(1, key))!.filters.payloads as Json
    const body = {
      key: 'sealed',
      ...sealed,
      filters: { ...filters({ control: '1', test: secret }), multivariate: { variants } },
    }
    await api.post('/api/projects/1/feature_flags/', body)
    const made = await api.post(experiments, { name: 'X', feature_flag_key: 'sealed' })
    assert.deepEqual(made.feature_flag.filters.payloads.test, marker)
    const patch = (body: object) => api.call('PATCH', `${experiments}1/`, { body })
    return { api, stored, patch, made: made }
  }

  it('stay unchanged when an experiment is sent back as it was read, even while it runs', async t => {
    const { stored, patch, made } = await startExperiment(t)
    const before = await stored()
    const echoed = await patch({ ...made, name: 'Y' })
    assert.deepEqual([echoed.status, echoed.body.name, echoed.body.feature_flag.version], [200, 'Y', 2], echoed.text)
    const running = await patch({ start_date: '2026-05-01T00:00:00Z' })
    assert.equal(running.body.status, 'running')
    assert.equal((await patch({ ...running.body, name: 'Z' })).status, 200)
    assert.deepEqual(await stored(), before)
  })

  it('are kept or encrypted by every write of an experiment', async t => {
    const { api, stored, patch } = await startExperiment(t)
    const before = await stored()
    const changed = await patch({ feature_flag: { filters: { payloads: { control: marker, test: 'plain' } } } })
    assert.deepEqual(changed.body.feature_flag.filters.payloads, { control: marker, test: marker })
    const after = await stored()
    assert.equal(after.control, before.control)
    assert.match(after.test, /^enc:v1:/)
    await patch({ parameters: { feature_flag_payloads: { control: 'plain', test: marker } } })
    const last = await stored()
    assert.deepEqual([last.test, last.control.startsWith('enc:v1:')], [after.test, true])
    await api.post(`${experiments}1/launch/`)
    await api.post(`${experiments}1/ship_variant/`, { variant_key: 'test' })
    assert.deepEqual(await stored(), last)
    const nothing = { feature_flag: { filters: { payloads: { control: marker, other: marker } } } }
    await api.refuses('PATCH', `${experiments}1/`, [nothing, 'feature_flag.filters.payloads.other'])
    for (const path of [`${experiments}1/`, '/api/projects/1/feature_flags/sealed/'])
      assert.doesNotMatch((await api.call('GET', path)).text, /correct|enc:v1|plain/)
  })

  it('stay unchanged when their flag is linked, while a marker for a new flag is rejected', async t => {
    const { api, stored, made } = await startExperiment(t)
    const before = await stored()
    const { filters } = made.feature_flag
    const body = (feature_flag_key: string) => ({ name: 'Y', feature_flag_key, feature_flag: { filters } })
    await api.post(experiments, body('sealed'))
    assert.deepEqual(await stored(), before)
    await api.refuses('POST', experiments, [body('fresh'), 'feature_flag.filters.payloads.control'])
  })

  it('stay unchanged when the targeting filters of a survey are sent back', async t => {
    const api = await startManagement(t)
    const body = { name: 'S', type: 'popover', targeting_flag_filters: filters({}) }
    const { targeting_flag: flag } = await api.post(surveys, body)
    const [{ id }] = (await api.get(surveys)).results
    const path = `/api/projects/1/feature_flags/${flag.id}/`
    await api.patch(path, { ...sealed, filters: filters({ true: secret }) })
    const stored = async () => (await api.management.findFlag(1, String(flag.id)))!.filters.payloads as Json
    const before = await stored()
    const shown = (await api.get(`${surveys}${id}/`)).targeting_flag.filters
    assert.deepEqual(shown.payloads, { true: marker })
    const patch = (payloads: object) =>
      api.call('PATCH', `${surveys}${id}/`, { body: { targeting_flag_filters: { ...shown, payloads } } })
    assert.equal((await patch(shown.payloads)).status, 200)
    assert.deepEqual(await stored(), before)
    await patch({ true: 'plain' })
    assert.match((await stored()).true, /^enc:v1:/)
  })
})

describe('the encryption key for payloads', () => {
  const hex = (digit: string) => digit.repeat(64)

  async function frontOn(t: TestContext, settings: Record<string, string>): Promise<RunningFront> {
    const front = await startFront(settings)
    t.after(() => front.close())
    return front
  }

  it('is created in the data folder at first use, readable only by its owner, and reused', async t => {
    const folder = tempDir(t)
    const keyFile = join(folder, 'encryption.key')
    const front = await startFront({ PENNON_DATA: folder })
    await front.api('POST', flagsPath, { key: 'plain', filters: filters({ true: '1' }) })
    assert.throws(() => statSync(keyFile), { code: 'ENOENT' })
    await front.api('POST', flagsPath, { key: 'first', ...encrypted, filters: filters({ true: secret }) })
    assert.equal(statSync(keyFile).mode & 0o777, 0o600)
    assert.match(readFileSync(keyFile, 'utf8'), /^[0-9a-f]{64}\n$/)
    await front.close()
    const state = ['state.db', 'state.db-wal'].map(name => {
      try {
        return readFileSync(join(folder, name), 'latin1')
      } catch {
        return '' // merged into the other on closing
      }
    })
    assert.match(state.join(''), /enc:v1:/)
    assert.doesNotMatch(state.join(''), /correct horse/)
    const again = await startFront({ PENNON_DATA: folder })
    assert.deepEqual(await remoteConfig(again, 'first'), { status: 200, json: secret })
    await again.close()
    const without = await frontOn(t, { PENNON_DATA: folder })
    for (const spoil of [() => rmSync(keyFile), () => writeFileSync(keyFile, 'half a k')]) {
      spoil()
      const { status, json } = await remoteConfig(without, 'first')
      assert.deepEqual([status, json.type, json.code], [500, 'server_error', 'remote_config_decrypt_failed'])
    }
  })

  it('can be configured, and rotated by listing the new key before the old one', async t => {
    const folder = tempDir(t)
    const old = await startFront({ PENNON_DATA: folder, PENNON_ENCRYPTION_KEY: hex('a') })
    const created = await old.api<Json>('POST', flagsPath, {
      ...{ key: 'given', ...encrypted, filters: filters({ true: secret }) },
    })
    await old.close()
    assert.throws(() => statSync(join(folder, 'encryption.key')), { code: 'ENOENT' })

    const both = await startFront({ PENNON_DATA: folder, PENNON_ENCRYPTION_KEY: `${hex('b')}, ${hex('A')}` })
    assert.equal((await remoteConfig(both, 'given')).json, secret)
    const newer = filters({ true: '"by the new key"' })
    await both.api('POST', flagsPath, { key: 'newer', ...encrypted, filters: newer })
    await both.close()

    const last = await frontOn(t, { PENNON_DATA: folder, PENNON_ENCRYPTION_KEY: hex('b') })
    assert.equal((await remoteConfig(last, 'newer')).json, '"by the new key"')
    assert.equal((await remoteConfig(last, 'given')).status, 500)
    await last.api('PATCH', `${flagsPath}${created.id}/`, { filters: filters({ true: '"again"' }) })
    assert.equal((await remoteConfig(last, 'given')).json, '"again"')
  })

  it('is requested in the error message if the instance may not create one', async t => {
    const api = await startManagement(t, { missingKeyReason: 'Set PENNON_ENCRYPTION_KEY.' })
    const body = { key: 'k', ...encrypted, filters: filters({ true: secret }) }
    await api.refuses('POST', '/api/projects/1/feature_flags/', [
      body,
      'has_encrypted_payloads',
      'invalid_input',
      'Set PENNON_ENCRYPTION_KEY.',
    ])
    assert.equal((await api.get('/api/projects/1/feature_flags/')).count, 0)
    const without = { ...body, filters: filters({}) }
    await api.post('/api/projects/1/feature_flags/', without)
  })
})
