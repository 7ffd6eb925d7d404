import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { evaluateFlags } from '#core/flags/evaluation/evaluate-flags.ts'
import type { EvaluationSubject } from '#core/flags/evaluation/evaluation-subject.ts'
import { type JsonObject, parseJson, textOf } from '#core/json.ts'
import { atOnce } from '#core/maybe-steps.ts'
import { ok } from '#core/result.ts'
import { parseDecideQuery } from '#wire/flags/decide-query.ts'
import { parseDecideRequest } from '#wire/flags/decide-request.ts'
import { encodeEvaluation } from '#wire/flags/decide-response.ts'
import { compileTestProject } from '../support/decide-server.ts'

interface FlagVector {
  readonly id: string
  readonly description: string
  readonly flags: readonly JsonObject[]
  readonly request: JsonObject
  readonly query?: Record<string, string>
  readonly headers?: Record<string, string>
  readonly now?: string
  readonly project?: {
    readonly timezone?: string
    readonly property_matching_version?: 1 | 2
    readonly group_type_mapping?: Record<string, string>
    readonly cohorts?: Record<string, JsonObject>
  }
  readonly stored?: {
    readonly person_properties?: JsonObject
    readonly group_properties?: Record<string, Record<string, JsonObject>>
    readonly hash_key_overrides?: Record<string, string>
    readonly static_cohorts?: readonly number[]
  }
  readonly expect: {
    /** A text, in our own: `on 0` for a match of the first set, a reason and its index for no match. */
    readonly flags: Record<string, ExpectedFlag | string>
    readonly absent: readonly string[]
    readonly errorsWhileComputingFlags: boolean
  }
}

interface ExpectedFlag {
  readonly value: boolean | string
  readonly enabled: boolean
  readonly variant: string | null
  readonly payload: string | null
  readonly failed?: true
  readonly reason: { readonly code: string; readonly condition_index: number | null; readonly description: string }
}

describe('flag vectors', () => {
  for (const vector of readVectors('evaluation-vectors.json')) {
    it(`${vector.id}: ${vector.description}`, () => check(vector))
  }
})

/** These cover the corners that the others leave out, with many flags in each. */
describe('our own flag vectors', () => {
  for (const vector of readVectors('own-flag-vectors.json')) {
    it(`${vector.id}: ${vector.description}`, () => check(vector))
  }
})

function readVectors(name: string): FlagVector[] {
  const text = readFileSync(new URL(name, import.meta.url), 'utf8')
  return (parseJson(text) as unknown as { flag_vectors: FlagVector[] }).flag_vectors
}

function check(vector: FlagVector): void {
  const answered = answers(vector)
  const names = Object.keys(vector.expect.flags)
  assert.deepEqual(Object.keys(answered.details.flags).sort(), [...names].sort())
  for (const name of names) {
    const { value, ...expected } = inFull(vector.expect.flags[name]!)
    const { key, metadata, ...detail } = answered.details.flags[name]!
    assert.equal(key, name)
    assert.deepEqual({ ...detail, payload: metadata.payload }, expected, name)
    assert.equal(answered.values.featureFlags[name], expected.failed ? undefined : value, name)
    const { payload } = expected
    assert.equal(answered.values.featureFlagPayloads[name], payload === null ? undefined : payload, name)
  }
  for (const name of vector.expect.absent) assert.ok(!(name in answered.values.featureFlags))
  assert.equal(answered.details.errorsWhileComputingFlags, vector.expect.errorsWhileComputingFlags)
  assert.equal(answered.values.errorsWhileComputingFlags, vector.expect.errorsWhileComputingFlags)
}

const descriptions = new Map([
  ['no_condition_match', 'No matching condition set'],
  ['out_of_rollout_bound', 'Out of rollout bound'],
  ['no_group_type', 'No group type'],
])

function inFull(expected: ExpectedFlag | string): ExpectedFlag {
  if (typeof expected !== 'string') return expected
  const [word = '', place] = expected.split(' ')
  const index = Number(place)
  const isOn = word === 'on'
  const reason = isOn
    ? { code: 'condition_match', condition_index: index, description: `Matched condition set ${index + 1}` }
    : { code: word, condition_index: index, description: descriptions.get(word)! }
  return { value: isOn, enabled: isOn, variant: null, payload: null, reason }
}

interface Detail {
  readonly key: string
  readonly metadata: { readonly payload: string | null }
}

function answers(vector: FlagVector) {
  const project = compileTestProject({
    flags: vector.flags,
    project: {
      timezone: vector.project?.timezone ?? 'UTC',
      propertyMatchingVersion: vector.project?.property_matching_version ?? 1,
    },
    groupTypes: vector.project?.group_type_mapping ?? {},
    cohorts: vector.project?.cohorts ?? {},
  })
  const query = parseDecideQuery(vector.query ?? {}, 'flags')
  assert.ok(query.ok)
  const request = parseDecideRequest(
    { ...vector.request, token: 'phc_test' },
    {
      endpoint: 'flags',
      query: query.value,
      userAgent: vector.headers?.['user-agent'] ?? '',
      hasBrowserHeader: false,
      address: '',
    },
  )
  assert.ok(request.ok)
  const { anonDistinctId, deviceId, groups, personProperties, groupProperties } = request.value
  const subject: EvaluationSubject = {
    distinctId: request.value.distinctId!,
    anonDistinctId,
    deviceId,
    groups,
    personProperties,
    groupProperties,
    geoip: null,
    person: ok(
      vector.stored?.person_properties ? { properties: vector.stored.person_properties, createdAtMs: 0 } : null,
    ),
    groupRows: storedGroupRows(vector, groups),
    hashKeyOverrides: { rows: new Map(Object.entries(vector.stored?.hash_key_overrides ?? {})), failure: null },
    staticCohortIds: ok(new Set(vector.stored?.static_cohorts ?? [])),
    nowMs: Date.parse(vector.now ?? '2026-01-15T12:00:00Z'),
  }
  const evaluation = evaluateFlags(project, request.value.selection, subject)
  const options = { endpoint: 'flags', withConfig: false, requestId: '-', evaluatedAtMs: 0 } as const
  const details = JSON.parse(atOnce(encodeEvaluation(evaluation, { ...options, shape: 'V2' })))
  const values = JSON.parse(atOnce(encodeEvaluation(evaluation, { ...options, shape: 'V1' })))
  for (const detail of Object.values<{ metadata: Record<string, unknown> }>(details.flags)) {
    delete detail.metadata.has_experiment
  }
  return {
    details: details as { flags: Record<string, Detail>; errorsWhileComputingFlags: boolean },
    values: values as {
      featureFlags: Record<string, boolean | string>
      featureFlagPayloads: Record<string, string>
      errorsWhileComputingFlags: boolean
    },
  }
}

function storedGroupRows(vector: FlagVector, groups: JsonObject): EvaluationSubject['groupRows'] {
  const rows = new Map<number, ReturnType<typeof ok<JsonObject | null>>>()
  for (const [index, name] of Object.entries(vector.project?.group_type_mapping ?? {})) {
    rows.set(Number(index), ok(vector.stored?.group_properties?.[name]?.[textOf(groups[name] ?? null)] ?? null))
  }
  return rows
}
