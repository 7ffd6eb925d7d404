// Explanations are worded from the trace of the evaluation itself. Random projects, with everything that a definition
// can contain and much that it should not, are answered and explained: both must agree, and the explained steps must
// lead to the answer.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Cohort } from '#core/flags/definitions/cohort.ts'
import { type CompiledProject, compileProject } from '#core/flags/evaluation/compile-project.ts'
import { FlagEvaluation } from '#core/flags/evaluation/evaluate-flags.ts'
import { type EvaluationSubject, noHashKeyOverrides } from '#core/flags/evaluation/evaluation-subject.ts'
import type { JsonObject, JsonValue } from '#core/json.ts'
import { err, ok } from '#core/result.ts'
import type { DecideService } from '#services/flags/decide.ts'
import { evaluateForExplanation } from '#services/flags/explain-flag.ts'
import type { SubjectRequest } from '#services/flags/load-subject.ts'
import { buildFlagDetail } from '#wire/flags/flag-texts.ts'
import { encodeExplanation } from '#wire/management/flags/explanation.ts'
import type { ExplanationJson } from '#wire/management/flags/explanation-shapes.ts'
import { flagFromJson } from '../support/decide-server.ts'
import { allFlags, aSubjectRequest, evaluateFlags } from '../support/evaluation-subject.ts'
import { seededRandom, testSeed } from '../support/seeded-random.ts'
import { aProject, emptyDefinitions, aCohort as storedCohort } from '../support/values.ts'

const projectCount = 400
const personsPerProject = 3

describe('an explanation', () => {
  const seed = testSeed()

  it(`ends with the value of the evaluation, and its steps lead to that value (SEED=${seed})`, async () => {
    const draw = drawing(seed)
    const seen = new Map<string, number>()
    let count = 0
    for (let project = 0; project < projectCount; project++) {
      const served = aRandomProject(draw)
      for (let person = 0; person < personsPerProject; person++) {
        const { subject, request } = aRandomSubject(draw)
        const answered = evaluateFlags(served, { ...request.selection, flagKeys: null }, subject)
        for (const stored of served.definitions.flags) {
          const explained = await evaluateForExplanation(
            decideFor(subject, draw),
            served,
            stored,
            request,
            subject.nowMs,
          )
          const shown = encodeExplanation(explained, { showsPersons: true, showsGroups: true, showsCohorts: true })
          const position = served.flags.findIndex(flag => flag?.id === stored.id)
          const outcome = answered.outcomes[position]
          const where = `SEED=${seed}, flag ${JSON.stringify(stored)}, ${JSON.stringify(shown)}`
          assert.equal(shown.left_out === null, outcome !== undefined, where)
          if (outcome !== undefined)
            assert.deepEqual(saidBy(shown), saidBy(buildFlagDetail(served.flags[position]!, outcome)), where)
          leadsThere(shown, where)
          assert.ok(JSON.stringify(shown).length < 200_000, where)
          count++
          const kind = shown.left_out ?? shown.reason?.code ?? 'none'
          seen.set(kind, (seen.get(kind) ?? 0) + 1)
        }
      }
    }
    assert.ok(count > 5_000, `${count} explanations`)
    for (const kind of expectedKinds) assert.ok(seen.has(kind), `${kind} never happened: ${JSON.stringify([...seen])}`)
  })
})

const expectedKinds = [
  'condition_match',
  'no_condition_match',
  'out_of_rollout_bound',
  'no_group_type',
  'holdout_condition_value',
  'super_condition_value',
  'missing_dependency',
  'dependency_not_found_cohort',
  'timeout',
  'inactive',
  'unreadable',
  'dependency_cycle',
  'filtered_out',
]

/** What both kinds of answer say about a flag. */
function saidBy(answer: object) {
  const { enabled, variant, value, payload, metadata, failed, reason } = answer as Partial<ExplanationJson> & {
    enabled?: boolean
    variant?: unknown
    metadata?: { payload: string | null }
  }
  const isDetail = metadata !== undefined
  const isFailed = failed === true
  return {
    value: isFailed ? null : isDetail ? (variant ?? enabled) : value,
    payload: isDetail ? metadata.payload : payload,
    failed: isFailed,
    reason,
  }
}

/** Checks that following the steps by hand leads to the value. */
function leadsThere(shown: ExplanationJson, where: string): void {
  const { conditions, reason } = shown
  const matched = conditions.filter(({ result }) => result === 'matched')
  const isMatch = reason?.code === 'condition_match'
  assert.deepEqual(
    matched.map(({ condition_index: index }) => index),
    isMatch ? [reason.condition_index] : [],
    where,
  )
  for (const condition of conditions) {
    const results = condition.filters.map(({ result }) => result)
    if (condition.result === 'matched') {
      assert.ok(
        results.every(result => result === 'passed'),
        where,
      )
      const { hash, percentage } = condition.rollout
      assert.ok(hash === null || hash <= percentage! / 100, where)
    }
    if (condition.result === 'out_of_rollout_bound' && condition.rollout.hash !== null)
      assert.ok(condition.rollout.hash > condition.rollout.percentage! / 100, where)
    if (condition.result.startsWith('no_condition_match')) {
      const first = results.findIndex(result => result !== 'passed')
      assert.ok(first >= 0, where)
      for (const filter of condition.filters.slice(first + 1)) assert.equal(filter.result, 'not_evaluated', where)
    }
    if (condition.result === 'not_reached')
      assert.ok(
        results.every(result => result === 'not_evaluated'),
        where,
      )
  }
  const { hash, variants, chosen } = shown.variant ?? { hash: null, variants: [], chosen: null }
  if (hash !== null && isMatch) {
    assert.equal(variants.find(({ from, to }) => from <= hash && hash < to)?.key ?? null, chosen, where)
    assert.notEqual(matched[0]!.bucketing, null, where)
  }
}

/** The evaluation of the service without its stores; it is interrupted sometimes. */
function decideFor(subject: EvaluationSubject, draw: Draw): Pick<DecideService, 'traceEvaluation'> {
  return {
    traceEvaluation(project, selected, _request, _nowMs, trace) {
      const evaluation = new FlagEvaluation(project, selected, subject, trace)
      while (!evaluation.advance(() => draw.chance(0.3)));
      return { evaluation, subject }
    },
  }
}

type Draw = ReturnType<typeof drawing>

function drawing(seed: number) {
  const random = seededRandom(seed)
  const below = (count: number) => Math.floor(random() * count)
  return {
    below,
    chance: (probability: number) => random() < probability,
    one: <T>(values: readonly T[]): T => values[below(values.length)]!,
    list: <T>(countMax: number, make: (index: number) => T): T[] =>
      Array.from({ length: below(countMax + 1) }, (_, index) => make(index)),
  }
}

const keys = [
  'plan',
  'age',
  'email',
  '$os',
  '$os_name',
  '$initial_os',
  'distinct_id',
  '$geoip_country_code',
  'constructor',
]
const values: readonly JsonValue[] = [
  'pro',
  'free',
  '',
  'a@b.no',
  18,
  40.5,
  true,
  false,
  null,
  ['pro', 'free'],
  [],
  '2026-01-01',
  '-7d',
  '1.2.3',
  'NO',
  '(',
  [1, 9],
]
const operators = [
  'exact',
  'is_not',
  'icontains',
  'not_icontains',
  'regex',
  'not_regex',
  'gt',
  'lte',
  'between',
  'is_set',
  'is_not_set',
  'is_date_before',
  'is_date_after',
  'semver_gte',
  'in',
  'icontains_multi',
]
const flagCount = 6
const cohortCount = 5
const percentages = [0, 20, 50, 99.9, 100, null]

function aFilter(draw: Draw): JsonObject {
  const type = draw.one(['person', 'person', 'person', 'person', 'group', 'flag', 'cohort', 'person_metadata'])
  switch (type) {
    case 'flag': {
      const operator = draw.one(['flag_evaluates_to', 'flag_evaluates_to', 'flag_evaluates_to', 'exact'])
      return {
        type,
        key: draw.one([...Array.from({ length: flagCount }, (_, id) => String(id + 1)), '99', 'x']),
        operator,
        value: draw.one([true, false, 'a', 'b', 7]),
      }
    }
    case 'cohort':
      return {
        type,
        key: 'id',
        value: draw.one([1, 2, '3', 4, 5, 99]),
        operator: draw.one(['in', 'in', 'not_in', 'exact']),
      }
    case 'person_metadata':
      return { type, key: 'created_at', operator: 'is_date_after', value: '2026-01-01' }
    default: {
      const filter: JsonObject = { type, key: draw.one(keys), operator: draw.one(operators), value: draw.one(values) }
      if (type === 'group' && draw.chance(0.7)) filter.group_type_index = draw.below(3)
      if (draw.chance(0.01)) filter.operator = 'no_such_operator'
      return filter
    }
  }
}

function aRandomFlag(draw: Draw, id: number): JsonObject {
  const set = (): JsonObject => ({
    properties: draw.list(3, () => aFilter(draw)),
    rollout_percentage: draw.one(percentages),
    ...(draw.chance(0.2) ? { variant: draw.one(['a', 'b', 'none']) } : {}),
    ...(draw.chance(0.2) ? { aggregation_group_type_index: draw.below(3) } : {}),
  })
  const filters: JsonObject = { groups: draw.list(4, set) }
  if (draw.chance(0.4))
    filters.multivariate = {
      variants: [
        { key: 'a', rollout_percentage: 30 },
        { key: 'b', rollout_percentage: 60 },
      ],
    }
  if (draw.chance(0.4)) filters.payloads = { true: '{"on":1}', a: 'text', 'holdout-7': 'held' }
  if (draw.chance(0.1)) filters.holdout = { id: 7, exclusion_percentage: draw.one([0, 30, 100]) }
  if (draw.chance(0.1)) filters.feature_enrollment = true
  if (draw.chance(0.1)) filters.aggregation_group_type_index = 0
  if (draw.chance(0.2)) filters.early_exit = true
  return {
    id,
    key: `flag-${id}`,
    active: draw.chance(0.9),
    filters,
    ensure_experience_continuity: draw.chance(0.2),
    bucketing_identifier: draw.chance(0.15) ? 'device_id' : null,
    evaluation_runtime: draw.one(['all', 'all', 'all', 'client', 'server']),
  }
}

function aCohort(draw: Draw, id: number): Cohort {
  const entry = (depth: number): JsonObject =>
    depth > 0 && draw.chance(0.3)
      ? { type: draw.one(['AND', 'OR']), values: draw.list(3, () => entry(depth - 1)) }
      : draw.chance(0.05)
        ? { type: 'behavioral', key: 'x', value: 'performed_event' }
        : { ...aFilter(draw), ...(draw.chance(0.3) ? { negation: true } : {}) }
  return storedCohort({
    id,
    name: `cohort ${id}`,
    isStatic: id === cohortCount,
    filters: { properties: { type: draw.one(['AND', 'OR']), values: draw.list(3, () => entry(2)) } },
  })
}

function aRandomProject(draw: Draw): CompiledProject {
  const project = aProject({ propertyMatchingVersion: draw.one([1, 2]) })
  return compileProject({
    ...emptyDefinitions(project, 1),
    flags: Array.from({ length: flagCount }, (_, index) => flagFromJson(aRandomFlag(draw, index + 1))),
    cohorts: Array.from({ length: cohortCount }, (_, index) => aCohort(draw, index + 1)),
    groupTypes: ['company', 'team'].map((name, index) => ({ projectId: 1, index, name })),
  })
}

function bag(draw: Draw): JsonObject {
  const properties: JsonObject = {}
  for (const key of keys) if (draw.chance(0.4)) properties[key] = draw.one(values)
  return properties
}

function aRandomSubject(draw: Draw): { subject: EvaluationSubject; request: SubjectRequest } {
  const distinctId = draw.one(['ada', 'grace', '', 'user-1', 'user-2'])
  const personProperties = bag(draw)
  if (draw.chance(0.3))
    personProperties[`$feature_enrollment/flag-${1 + draw.below(flagCount)}`] = draw.one([true, false])
  const groups: JsonObject = draw.chance(0.5) ? { company: draw.one(['acme', 12, '', true]) } : {}
  const groupProperties: JsonObject = draw.chance(0.3) ? { company: bag(draw) } : {}
  const anonDistinctId = draw.chance(0.3) ? 'anon' : null
  const deviceId = draw.chance(0.5) ? 'device' : null
  const sent = { distinctId, anonDistinctId, deviceId, groups, personProperties, groupProperties }
  const subject: EvaluationSubject = {
    ...sent,
    geoip: draw.chance(0.5) ? { $geoip_country_code: 'NO' } : null,
    person: draw.chance(0.1)
      ? err('timeout')
      : draw.chance(0.3)
        ? ok(null)
        : ok({ properties: bag(draw), createdAtMs: 1_780_000_000_000 }),
    groupRows: new Map([[0, draw.chance(0.1) ? err('timeout') : ok(bag(draw))]]),
    staticCohortIds: draw.chance(0.1) ? err('timeout') : ok(new Set(draw.chance(0.5) ? [cohortCount] : [])),
    hashKeyOverrides: draw.chance(0.7)
      ? noHashKeyOverrides
      : { rows: new Map([['flag-1', 'kept']]), failure: draw.chance(0.5) ? 'hash_key_override_error' : null },
    nowMs: Date.parse('2026-05-01T00:00:00Z'),
  }
  const runtime = { declared: draw.one(['all', 'client', 'server']), userAgent: '', hasBrowserHeader: false }
  const request = aSubjectRequest({ ...sent, selection: { ...allFlags, runtime } })
  return { subject, request }
}
