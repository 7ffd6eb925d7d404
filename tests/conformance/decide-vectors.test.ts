import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it, type TestContext } from 'node:test'
import type { JsonObject } from '#core/json.ts'
import { noQuotas } from '#core/project.ts'
import { startDecideServer } from '../support/decide-server.ts'
import { isObject } from './compare.ts'
import { type Answer, bodyOf, exchange, jsonOf } from './exchange.ts'
import { type DecodingVector, decodingDifferences, decodingProbes } from './forms/decoding.ts'
import {
  assertKnownResponseVector,
  type ResponseVector,
  responseDifferences,
  responseExchange,
} from './forms/responses.ts'
import { passing, wrongVersions } from './wrong-versions.ts'

interface Described {
  readonly description: string
  readonly flags: 'common' | readonly JsonObject[]
}

const file = new URL('./evaluation-vectors.json', import.meta.url)
const newerFile = new URL('./wire-2026-vectors.json', import.meta.url)
const vectors = JSON.parse(readFileSync(file, 'utf8')) as {
  decoding_vectors: (DecodingVector & Described)[]
  response_vectors: (ResponseVector & Described)[]
  response_flags: JsonObject[]
}
const projectKey = 'phc_test'
const uuidForm = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

describe('test vectors for decoding, over HTTP', () => {
  for (const vector of vectors.decoding_vectors) {
    it(`${vector.id}: ${vector.description}`, async t => assert.deepEqual(await differences(t, vector), []))
  }

  it('fail if any of their expectations is changed', async t => {
    for (const vector of vectors.decoding_vectors) {
      const wrong = wrongVersions(vector.expect).map(expect => ({ ...vector, expect }))
      assert.deepEqual(await passing(wrong, version => differences(t, version)), [], vector.id)
    }
  })

  it('may expect a whole response, with or without the configuration in it', async t => {
    const flags = { errorsWhileComputingFlags: false, featureFlags: {}, featureFlagPayloads: {} }
    const body = { ...flags, requestId: '<uuid>', evaluatedAt: '<integer milliseconds>' }
    const expect = { status: 200, body, config_keys: 'merged at the top level' }
    const vector = { id: 'get', method: 'GET', path: '/flags?v=1', expect }
    assert.deepEqual(await differences(t, vector), [])
    const wrong = [...wrongVersions(expect), { ...expect, config_keys: 'absent' }].map(expect => ({
      ...vector,
      expect,
    }))
    assert.deepEqual(await passing(wrong, version => differences(t, version)), [])
  })

  async function differences(t: TestContext, vector: DecodingVector): Promise<string[]> {
    const probes = decodingProbes(vector, projectKey)
    const { token, flags, groupTypes } = probes
    const server = await startDecideServer(t, {
      project: { apiToken: token },
      flags: flags as readonly JsonObject[],
      groupTypes,
    })
    return decodingDifferences(vector, probes, await exchange(server.base, { ...vector, body: bodyOf(vector) }))
  }
})

describe('response test vectors, over HTTP', () => {
  const { response_vectors: newer } = JSON.parse(readFileSync(newerFile, 'utf8')) as Pick<
    typeof vectors,
    'response_vectors'
  >
  for (const vector of [...vectors.response_vectors, ...newer]) {
    it(`${vector.id}: ${vector.description}`, async t => {
      const quota = vector.team?.feature_flags_quota_exceeded === true ? 0 : null
      const server = await startDecideServer(t, {
        flags: vector.flags === 'common' ? vectors.response_flags : vector.flags,
        project: { apiToken: projectKey, quotas: { ...noQuotas, featureFlagRequests: quota } },
      })
      const answer = await exchange(server.base, responseExchange(vector))
      assert.deepEqual(differences(vector, answer), [])
      assert.match(answer.headers['content-type'] ?? '', /^application\/json/)
      const body = jsonOf(answer.text)
      assert.match(isObject(body) ? String(body.requestId) : '', uuidForm)

      const wrong = wrongVersions(vector.expect).map(expect => ({ ...vector, expect }))
      assert.deepEqual(await passing(wrong, version => differences(version, answer)), [], 'wrong, and passes')
    })
  }

  function differences(vector: ResponseVector, answer: Answer): string[] {
    assertKnownResponseVector(vector)
    return responseDifferences(vector.expect, answer)
  }
})
