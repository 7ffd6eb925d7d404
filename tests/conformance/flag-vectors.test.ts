import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import type { EvaluationSubject } from '#core/flags/evaluation/evaluation-subject.ts'
import { type JsonObject, parseJson, toComparableText } from '#core/json.ts'
import { runAllSteps } from '#core/maybe-steps.ts'
import { ok } from '#core/result.ts'
import { parseDecideQuery } from '#wire/flags/decide-query.ts'
import { parseDecideRequest } from '#wire/flags/decide-request.ts'
import { encodeEvaluation } from '#wire/flags/decide-response.ts'
import { compileTestProject } from '../support/decide-server.ts'
import { evaluateFlags } from '../support/evaluation-subject.ts'
import { assertKnownFields, type Fields, instantOf } from './compare.ts'
import { assertKnownFlagVector, detailDifferences, type FlagVector, valueDifferences } from './forms/flags.ts'
import type { FlagDefinition } from './state.ts'
import { anyTime } from './vector-case.ts'
import { passing, wrongVersions } from './wrong-versions.ts'

/** A vector as this file evaluates it: without a service, so what it says of one has to be read here. */
interface CoreVector extends FlagVector {
  readonly flags: readonly (FlagDefinition & JsonObject)[]
  readonly request: JsonObject
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
}

/** An expectation of our own vectors: `on 0` for a match of the first set, a reason and its index for no match. */
type ShortExpectation = string

const descriptions = new Map([
  ['no_condition_match', 'No matching condition set'],
  ['out_of_rollout_bound', 'Out of rollout bound'],
  ['no_group_type', 'No group type'],
])

describe('flag test vectors', () => {
  const vectors = ['evaluation-vectors.json', 'wire-2026-vectors.json'].flatMap(readVectors)
  for (const vector of vectors) {
    it(`${vector.id}: ${vector.description}`, () => check(vector))
  }

  it('fail if any of their expectations is changed', async () => {
    for (const vector of vectors) {
      const answered = answers(vector)
      const wrong = wrongVersions(withoutUnshown(vector.expect)).map(expect => ({ ...vector, expect }))
      assert.deepEqual(await passing(wrong, version => differences(version, answered)), [], vector.id)
    }
  })
})

/** These cover the corners that the others leave out, with many flags in each. */
describe('Pennon’s own flag test vectors', () => {
  for (const vector of readVectors('own-flag-vectors.json')) {
    it(`${vector.id}: ${vector.description}`, () => check(vector))
  }
})

function readVectors(name: string): CoreVector[] {
  const text = readFileSync(new URL(name, import.meta.url), 'utf8')
  const { flag_vectors: vectors } = parseJson(text) as unknown as { flag_vectors: CoreVector[] }
  return vectors.map(vector => {
    const flags = Object.entries<Fields | ShortExpectation>(vector.expect.flags)
    const inFull = flags.map(([key, expected]) => [key, typeof expected === 'string' ? expanded(expected) : expected])
    return { ...vector, expect: { ...vector.expect, flags: Object.fromEntries(inFull) } }
  })
}

/** The value of a flag that failed is in no answer. */
function withoutUnshown(expect: FlagVector['expect']): FlagVector['expect'] {
  const flags = Object.entries(expect.flags).map(([key, { value, ...rest }]) => {
    return [key, rest.failed === true ? rest : { value, ...rest }] as const
  })
  return { ...expect, flags: Object.fromEntries(flags) }
}

function check(vector: CoreVector): void {
  assert.deepEqual(differences(vector, answers(vector)), [])
}

function differences(vector: CoreVector, { details, values }: Answers): string[] {
  assertKnownFlagVector(vector)
  return [...detailDifferences(vector, details, 'V2'), ...valueDifferences(vector, values, 'V1')]
}

interface Answers {
  readonly details: Fields
  readonly values: Fields
}

function expanded(expected: ShortExpectation): Fields {
  const [word = '', place] = expected.split(' ')
  const index = Number(place)
  const isOn = word === 'on'
  const reason = isOn
    ? { code: 'condition_match', condition_index: index, description: `Matched condition set ${index + 1}` }
    : { code: word, condition_index: index, description: descriptions.get(word)! }
  return { value: isOn, enabled: isOn, variant: null, payload: null, reason }
}

function answers(vector: CoreVector): Answers {
  const projectFields = ['timezone', 'property_matching_version', 'group_type_mapping', 'cohorts']
  assertKnownFields(vector.project ?? {}, 'project', projectFields)
  assertKnownFields(vector.headers ?? {}, 'headers', ['user-agent'])
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
    nowMs: instantOf(vector.now ?? anyTime),
  }
  const evaluation = evaluateFlags(project, request.value.selection, subject)
  const options = { endpoint: 'flags', withConfig: false, requestId: '-', evaluatedAtMs: 0 } as const
  return {
    details: JSON.parse(runAllSteps(encodeEvaluation(evaluation, { ...options, shape: 'V2' }))),
    values: JSON.parse(runAllSteps(encodeEvaluation(evaluation, { ...options, shape: 'V1' }))),
  }
}

function storedGroupRows(vector: CoreVector, groups: JsonObject): EvaluationSubject['groupRows'] {
  const rows = new Map<number, ReturnType<typeof ok<JsonObject | null>>>()
  for (const [index, name] of Object.entries(vector.project?.group_type_mapping ?? {})) {
    rows.set(
      Number(index),
      ok(vector.stored?.group_properties?.[name]?.[toComparableText(groups[name] ?? null)] ?? null),
    )
  }
  return rows
}
