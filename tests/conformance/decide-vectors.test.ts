import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import type { JsonObject, JsonValue } from '#core/json.ts'
import { noQuotas } from '#core/project.ts'
import { type DecideAnswer, startDecideServer } from '../support/decide-server.ts'

interface DecodingVector {
  readonly id: string
  readonly description: string
  readonly method: string
  readonly path: string
  readonly headers: Record<string, string>
  readonly body_base64: string
  readonly expect: {
    readonly status: number
    readonly body?: JsonValue
    readonly decoded?: {
      readonly distinct_id: string | null
      readonly person_properties?: JsonObject
    }
  }
}

interface ResponseVector {
  readonly id: string
  readonly description: string
  readonly path: string
  readonly flags: 'common' | JsonObject[]
  readonly request: JsonObject
  readonly team?: { readonly feature_flags_quota_exceeded?: boolean }
  readonly expect: {
    readonly status: number
    readonly body: JsonObject
    readonly config_keys: 'absent' | 'merged at the top level'
  }
}

const file = new URL('./evaluation-vectors.json', import.meta.url)
const vectors = JSON.parse(readFileSync(file, 'utf8')) as {
  decoding_vectors: DecodingVector[]
  response_vectors: ResponseVector[]
  response_flags: JsonObject[]
}
const uuidForm = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

describe('decoding vectors, over HTTP', () => {
  for (const vector of vectors.decoding_vectors) {
    it(`${vector.id}: ${vector.description}`, async t => {
      const { decoded, status, body } = vector.expect
      const server = await startDecideServer(t, { flags: probes(decoded) })
      const bytes = Buffer.from(vector.body_base64, 'base64')
      const answer = await server.call(vector.path, { method: vector.method, headers: vector.headers, body: bytes })
      assert.equal(answer.status, status, answer.text)
      if (typeof body === 'string') assert.equal(answer.json.detail, body)
      else if (body !== undefined) assert.deepEqual(answer.json, body)
      if (decoded !== undefined && decoded.distinct_id !== null) assertAllOn(answer)
    })
  }

  /** Flags that are on exactly when the request was decoded as expected. */
  function probes(decoded: DecodingVector['expect']['decoded']): JsonObject[] {
    if (decoded === undefined || decoded.distinct_id === null) return []
    // Without an id there is no property distinct_id to probe; but an empty id is inside every rollout.
    if (decoded.distinct_id === '') return [{ key: 'probe', filters: { groups: [{ rollout_percentage: 0 }] } }]
    const filters: JsonObject[] = [
      { key: 'distinct_id', type: 'person', operator: 'exact', value: decoded.distinct_id },
    ]
    for (const [key, value] of Object.entries(decoded.person_properties ?? {})) {
      filters.push({ key, type: 'person', operator: 'exact', value: String(value) })
    }
    return filters.map((filter, index) => {
      return { id: index + 1, key: `probe-${index}`, filters: { groups: [{ properties: [filter] }] } }
    })
  }

  function assertAllOn(answer: DecideAnswer): void {
    const values = Object.values(
      (answer.json.flags ?? answer.json.featureFlags) as Record<string, { enabled: boolean } | boolean>,
    )
    assert.ok(values.length > 0)
    for (const value of values) assert.equal(typeof value === 'object' ? value.enabled : value, true, answer.text)
  }
})

describe('response vectors, over HTTP', () => {
  for (const vector of vectors.response_vectors) {
    it(`${vector.id}: ${vector.description}`, async t => {
      const quota = vector.team?.feature_flags_quota_exceeded ? 0 : null
      const server = await startDecideServer(t, {
        flags: vector.flags === 'common' ? vectors.response_flags : vector.flags,
        project: { quotas: { ...noQuotas, featureFlagRequests: quota } },
      })
      const answer = await server.post(vector.path, vector.request)
      assert.equal(answer.status, vector.expect.status)
      assert.match(answer.headers.get('content-type') ?? '', /^application\/json/)
      const { config, rest } = splitConfig(answer.json)
      assert.equal(Object.keys(config).length > 0, vector.expect.config_keys === 'merged at the top level')
      assert.match(rest.requestId as string, uuidForm)
      assert.ok(Number.isInteger(rest.evaluatedAt))
      assert.deepEqual(rest, {
        ...vector.expect.body,
        requestId: rest.requestId!,
        evaluatedAt: rest.evaluatedAt!,
      })
    })
  }

  const configKeys =
    'supportedCompression config toolbarParams editorParams isAuthenticated hasFeatureFlags sessionRecording surveys heatmaps ' +
    'capturePerformance autocaptureExceptions autocapture_opt_out captureDeadClicks analytics elementsChainAsString ' +
    'errorTracking defaultIdentifiedOnly siteApps'

  function splitConfig(body: JsonObject): { config: JsonObject; rest: JsonObject } {
    const names = configKeys.split(' ')
    const entries = Object.entries(body)
    const rest = Object.fromEntries(entries.filter(([name]) => !names.includes(name)))
    for (const detail of Object.values((rest.flags ?? {}) as Record<string, { metadata: JsonObject }>)) {
      delete detail.metadata.has_experiment
    }
    return { config: Object.fromEntries(entries.filter(([name]) => names.includes(name))), rest }
  }
})
