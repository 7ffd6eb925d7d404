import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { noQuotas } from '#core/project.ts'
import { startDecideServer } from '../support/decide-server.ts'
import { bulkPath, flags, startOfrep } from '../support/ofrep-server.ts'

// Source: docs/wire/ofrep.md 4.

describe('an OFREP request that cannot be served', () => {
  it('is rejected in the protocol’s error format', async t => {
    const { ask } = await startOfrep(t)
    const nested = `${'['.repeat(200)}${']'.repeat(200)}`
    const cases: [body: string | Buffer, status: number, code: string][] = [
      ['', 400, 'PARSE_ERROR'],
      ['{', 400, 'PARSE_ERROR'],
      ['[]', 400, 'PARSE_ERROR'],
      ['{}', 400, 'TARGETING_KEY_MISSING'],
      ['{"context":null}', 400, 'TARGETING_KEY_MISSING'],
      ['{"context":{}}', 400, 'TARGETING_KEY_MISSING'],
      ['{"context":{"targetingKey":""}}', 400, 'TARGETING_KEY_MISSING'],
      ['{"context":{"targetingKey":null}}', 400, 'TARGETING_KEY_MISSING'],
      ['{"context":[]}', 400, 'INVALID_CONTEXT'],
      ['{"context":"u"}', 400, 'INVALID_CONTEXT'],
      ['{"context":{"targetingKey":{}}}', 400, 'INVALID_CONTEXT'],
      ['{"context":{"targetingKey":"u","groupProperties":{"company":1}}}', 400, 'INVALID_CONTEXT'],
      [`{"context":{"targetingKey":"u","a":${nested}}}`, 400, 'INVALID_CONTEXT'],
      [`{"context":{"targetingKey":"u","a":"${'x'.repeat(256 * 1024)}"}}`, 413, 'GENERAL'],
      [gzipSync(`{"context":{"targetingKey":"u","a":"${'x'.repeat(256 * 1024)}"}}`), 413, 'GENERAL'],
      [`{"context":{"targetingKey":"u","a":[${'0,'.repeat(2_048)}0]}}`, 413, 'GENERAL'],
    ]
    for (const [body, status, code] of cases) {
      const all = await ask(bulkPath, body)
      const name = body.toString().slice(0, 60)
      assert.deepEqual([all.status, all.json.errorCode], [status, code], name)
      assert.deepEqual(Object.keys(all.json), ['errorCode', 'errorDetails'], name)
      const one = await ask(`${bulkPath}/on/`, body)
      assert.deepEqual([one.status, one.json.errorCode], [status, code], name)
      // A body that is refused unread is refused before the URL is checked.
      if (all.text !== one.text) assert.equal(one.json.key, 'on', name)
    }
    const small = brotliCompressSync('{"context":{"targetingKey":"u"}}')
    const packed = await ask(bulkPath, small, { 'content-encoding': 'br' })
    assert.deepEqual([packed.status, packed.json.errorCode], [413, 'GENERAL'])
    const missing = await ask(`${bulkPath}/nowhere`, '{"context":{"targetingKey":"u"}}')
    assert.deepEqual([missing.status, missing.json.key, missing.json.errorCode], [404, 'nowhere', 'FLAG_NOT_FOUND'])
    const deleted = await ask(`${bulkPath}/deleted`, '{"context":{"targetingKey":"u"}}')
    assert.deepEqual([deleted.status, deleted.json.errorCode], [404, 'FLAG_NOT_FOUND'])
  })

  it('is answered with 401 without a key or with an unknown one, in either header', async t => {
    const { ask } = await startOfrep(t)
    const body = '{"context":{"targetingKey":"u"}}'
    const statusWith = async (headers: Record<string, string>) => (await ask(bulkPath, body, headers)).status
    assert.equal(await statusWith({ authorization: '' }), 401)
    assert.equal(await statusWith({ authorization: 'Bearer phc_else' }), 401)
    assert.equal(await statusWith({ authorization: 'Basic phc_test' }), 401)
    assert.equal(await statusWith({ authorization: '', 'x-api-key': 'phc_else' }), 401)
    assert.equal(await statusWith({ authorization: '', 'x-api-key': 'phc_test' }), 200)
    assert.equal(await statusWith({ authorization: 'bearer phc_test' }), 200)
    assert.equal((await ask(`${bulkPath}?token=phc_test`, body, { authorization: '' })).status, 401)
  })

  it('is answered with 500 in the protocol’s error format after an internal error', async t => {
    const findProject = () => assert.fail('broken')
    const { call } = await startDecideServer(t, { flags, findProject })
    const answer = await call(bulkPath, {
      method: 'POST',
      headers: { 'x-api-key': 'phc_test', 'content-type': 'application/json' },
      body: '{"context":{"targetingKey":"u"}}',
    })
    assert.equal(answer.status, 500)
    assert.equal(answer.json.errorCode, 'GENERAL')
    assert.ok(!answer.text.includes('broken'))
  })

  it('is answered with 429 when over quota, with a wait of five minutes, or less if the month ends sooner', async t => {
    const project = { quotas: { ...noQuotas, featureFlagRequests: 0 } }
    for (const [now, seconds] of [
      ['2026-01-15T12:00:00Z', '300'],
      ['2026-01-31T23:59:00Z', '60'],
    ] as const) {
      const { askWith, counted } = await startOfrep(t, { project, now })
      const answer = await askWith(bulkPath, { targetingKey: 'u' })
      assert.deepEqual([answer.status, answer.headers.get('retry-after')], [429, seconds])
      assert.equal(answer.json.errorCode, 'GENERAL')
      assert.deepEqual(counted, [])
    }
  })
})
