import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { FlagEvaluation } from '#core/flags/evaluation/evaluate-flags.ts'
import type { EvaluationSubject } from '#core/flags/evaluation/evaluation-subject.ts'
import { flagValueOf } from '#core/flags/evaluation/flag-outcome.ts'
import { selectFlags } from '#core/flags/evaluation/select-flags.ts'
import type { JsonObject, JsonValue } from '#core/json.ts'
import { err } from '#core/result.ts'
import { PortError } from '#ports/port-error.ts'
import { compileTestProject, startDecideServer, type TestDefinitions } from '../support/decide-server.ts'
import { allFlags, aSubject, evaluateInSlices } from '../support/evaluation-subject.ts'

// Source: docs/wire/evaluation.md 5.11, 5.12, 5.15.

type Leaf = Record<string, JsonValue>
const person = (key: string, value: JsonValue, over: Leaf = {}): JsonObject => {
  return { key, type: 'person', value, operator: 'exact', ...over }
}
const cohort = (id: JsonValue, over: Leaf = {}): JsonObject => ({ key: 'id', type: 'cohort', value: id, ...over })
const flagLeaf = (id: number | string, value: JsonValue, over: Leaf = {}): JsonObject => {
  return { key: String(id), type: 'flag', value, operator: 'flag_evaluates_to', ...over }
}
const all = (...values: JsonValue[]): JsonObject => ({ type: 'AND', values })
const any = (...values: JsonValue[]): JsonObject => ({ type: 'OR', values })
const described = (properties: JsonObject): JsonObject => ({ properties })

function flag(id: number, key: string, ...properties: JsonValue[]): JsonObject {
  return { id, key, filters: { groups: [{ properties, rollout_percentage: 100 }] } }
}

/** Evaluates at once and in the shortest slices, and requires the same results. */
function evaluate(
  definitions: TestDefinitions,
  subject: Partial<EvaluationSubject> = {},
  flagKeys: readonly string[] | null = null,
) {
  const project = compileTestProject(definitions)
  const selected = selectFlags(project, { ...allFlags, flagKeys })
  const evaluation = new FlagEvaluation(project, selected, aSubject(subject))
  assert.ok(evaluation.advance(() => false))
  const { evaluation: sliced, sliceCount } = evaluateInSlices(project, aSubject(subject), selected)
  assert.deepEqual(sliced.outcomes, evaluation.outcomes)
  assert.equal(evaluation.fault, undefined)
  const values: Record<string, unknown> = {}
  const reasons: Record<string, string> = {}
  for (const [position, outcome] of evaluation.outcomes.entries()) {
    if (outcome === undefined) continue
    const { key } = project.flags[position]!
    values[key] = flagValueOf(outcome)
    reasons[key] = outcome.reason
  }
  return { project, values, reasons, hasErrors: evaluation.hasErrors, sliceCount }
}

/** Whether a flag on cohort 1 is on; the failure's code when it is unknown. */
function membership(
  cohorts: NonNullable<TestDefinitions['cohorts']>,
  subject: Partial<EvaluationSubject> = {},
): unknown {
  const { values, reasons } = evaluate({ flags: [flag(1, 'a', cohort(1))], cohorts }, subject)
  return values.a ?? reasons.a
}

const pro = { personProperties: { plan: 'pro' } }

describe('a dynamic cohort', () => {
  it('combines nested AND and OR as a simple reference implementation does, and treats `property` as AND', () => {
    const leaf = fc.record({ key: fc.constantFrom('a', 'b', 'c'), negation: fc.constantFrom(true, false, null) })
    const tree = fc.letrec<{ entry: JsonObject }>(tie => ({
      entry: fc.oneof(
        { maxDepth: 6 },
        leaf.map(({ key, negation }) => person(key, 'yes', { negation })),
        fc
          .record({
            type: fc.constantFrom('AND', 'OR', 'property'),
            values: fc.array(tie('entry'), { maxLength: 4 }),
          })
          .map(group => group as JsonObject),
      ),
    })).entry
    const holds = (entry: JsonObject, properties: JsonObject): boolean => {
      const values = entry.values as JsonObject[] | undefined
      if (values === undefined) return (properties[entry.key as string] === 'yes') !== (entry.negation === true)
      const answers = values.map(value => holds(value, properties))
      return entry.type === 'OR' ? answers.includes(true) : !answers.includes(false)
    }
    const properties = fc.record(
      { a: fc.constantFrom('yes', 'no'), b: fc.constantFrom('yes', 'no') },
      { requiredKeys: [] },
    )
    fc.assert(
      fc.property(fc.array(tree, { maxLength: 4 }), fc.constantFrom('AND', 'OR'), properties, (values, type, bag) => {
        const top = { type, values }
        assert.equal(membership({ 1: described(top) }, { personProperties: bag }), holds(top, bag))
      }),
      { numRuns: 300 },
    )
  })

  it('that is malformed is listed once among the project’s problems if a flag uses it', () => {
    const cohorts = {
      1: described(all(cohort(2), person('plan', '(', { operator: 'regex' }))),
      2: { properties: 'x' },
      3: described(all(person('plan', '(', { operator: 'regex' }))),
      4: { properties: 'nobody reaches it' },
    }
    const flags = [flag(1, 'a', cohort(1)), flag(2, 'b', cohort(2)), flag(3, 'c', cohort(3)), flag(4, 'd', cohort(3))]
    const { problems } = compileTestProject({ flags, cohorts })
    assert.deepEqual(
      problems.map(({ flagKey }) => flagKey),
      ['a', 'c'],
    )
    assert.match(problems[0]!.message, /^the cohort 2: it is invalid/)
    assert.match(problems[1]!.message, /^the cohort 3: the filter on "plan" never matches/)
  })
})

describe('a reference to another cohort', () => {
  it('is evaluated once: 60 cohorts that each refer twice to the next, and a chain of 30,000', () => {
    const doubled: Record<string, JsonObject> = { 61: described(any(person('plan', 'pro'))) }
    for (let id = 1; id <= 60; id++)
      doubled[id] = described(any(all(cohort(id + 1, { negation: true })), cohort(id + 1, { operator: 'not_in' })))
    assert.equal(membership(doubled, pro), true)
    assert.equal(membership(doubled), false)
    const chain: Record<string, JsonObject> = { 30001: described(any(person('plan', 'pro'))) }
    for (let id = 1; id <= 30_000; id++) chain[id] = described(all(cohort(id + 1)))
    assert.equal(membership(chain, pro), true)
    assert.equal(membership(chain), false)
  })

  it('may form a chain of 100 cohorts with trees of 64 groups', () => {
    const cohorts: Record<string, JsonObject> = { 101: described(any(person('plan', 'pro'))) }
    for (let id = 1; id <= 100; id++) {
      let group: JsonObject = all(cohort(id + 1), all())
      for (let depth = 0; depth < 64; depth++) group = depth % 2 === 0 ? any(any(), group) : all(group, all())
      cohorts[id] = described(group)
    }
    assert.equal(membership(cohorts, pro), true)
    assert.equal(membership(cohorts), false)
  })
})

describe('a filter on a flag inside a cohort', () => {
  const base = flag(20, 'base', person('region', 'north'))
  const north = { personProperties: { region: 'north' } }

  it('adds the tested flag to an answer for flag_keys, even if the cohort is faulty', () => {
    const flags = [flag(1, 'a', cohort(1)), base, flag(21, 'other')]
    const cohorts = { 1: described(all(cohort(2))), 2: described(all(flagLeaf(20, true))) }
    assert.deepEqual(evaluate({ flags, cohorts }, north, ['a']).values, { a: true, base: true })
    const faulty = { 1: described(all(flagLeaf(20, true), cohort(77))) }
    assert.deepEqual(evaluate({ flags, cohorts: faulty }, north, ['a']).values, { a: undefined, base: true })
  })

  it('fails while the tested flag cannot be computed, and is false if that flag’s definition is faulty', () => {
    const flags = [flag(1, 'a', cohort(1)), base]
    const cohorts = { 1: described(any(flagLeaf(20, false))) }
    const down = evaluate({ flags, cohorts }, { person: err('timeout') })
    assert.deepEqual([down.reasons.base, down.reasons.a], ['timeout', 'timeout'])
    const broken = evaluate({ flags: [flag(1, 'a', cohort(1)), flag(20, 'base', cohort(77))], cohorts })
    assert.deepEqual(broken.values, { a: false, base: undefined })
  })
})

describe('stored data that flags need for their cohorts', () => {
  const cohorts = {
    1: described(all(person('plan', 'pro'), cohort(2))),
    2: described(any(person('role', 'dev'))),
    3: described(any(person('plan', 'pro'), cohort(5))),
    4: described(all({ ...person('created_at', '-7d', { operator: 'is_date_after' }), type: 'person_metadata' })),
    5: { is_static: true },
    6: described(any(...Array.from({ length: 100 }, (_, index) => person(`key ${index}`, 'x')))),
  }
  const needsOf = (id: number) => compileTestProject({ flags: [flag(1, 'a', cohort(id))], cohorts }).needs

  it('includes properties tested by any reached cohort, but the stored person or static cohorts only if needed', () => {
    assert.deepEqual([...needsOf(1).personKeys].map(key => key.name).sort(), ['plan', 'role'])
    assert.deepEqual([needsOf(1).person, needsOf(1).staticCohorts], [false, false])
    assert.deepEqual([needsOf(3).person, needsOf(3).staticCohorts], [false, true])
    assert.deepEqual([needsOf(4).person, needsOf(4).staticCohorts], [true, false])
    assert.deepEqual([needsOf(6).person, needsOf(6).personKeys.size], [true, 0])
    assert.equal(needsOf(77).person, false)
  })

  const ofEachKind = [
    flag(1, 'dynamic', cohort(1)),
    flag(2, 'static', cohort(5)),
    flag(3, 'mixed', cohort(3)),
    flag(4, 'none'),
  ]

  it('is looked up once per request, and only when a selected flag may need it', async t => {
    const asked: string[] = []
    const server = await startDecideServer(t, {
      flags: ofEachKind,
      cohorts,
      subjects: {
        findPerson: () => {
          asked.push('person')
          return null
        },
        findStaticCohorts: (_projectId, distinctId) => {
          asked.push(`static cohorts of ${distinctId}`)
          return new Set([5])
        },
        findGroup: () => null,
      },
    })
    const flagsOf = async (body: JsonObject, query = '') => {
      asked.length = 0
      const answer = await server.post(`/decide?v=3&config=false${query}`, {
        api_key: 'phc_test',
        distinct_id: 'u',
        ...body,
      })
      return answer.json.featureFlags
    }
    const values = { dynamic: false, static: true, mixed: true, none: true }
    assert.deepEqual(await flagsOf({}), values)
    assert.deepEqual(asked, ['person', 'static cohorts of u'])
    assert.deepEqual(await flagsOf({ person_properties: { plan: 'pro', role: 'dev' } }), { ...values, dynamic: true })
    assert.deepEqual(asked, ['static cohorts of u'])
    await flagsOf({ flag_keys: ['dynamic', 'none'], person_properties: { plan: 'pro', role: 'dev' } })
    assert.deepEqual(asked, [])
    const overridden = await flagsOf({}, '&only_use_override_person_properties=true')
    assert.deepEqual(overridden, { dynamic: false, static: false, mixed: false, none: true })
    assert.deepEqual(asked, [])
  })

  it('fails only the flags that need it while the state is down', async t => {
    const down = () => {
      throw new PortError('subject-store', 'unavailable')
    }
    const server = await startDecideServer(t, {
      flags: ofEachKind,
      cohorts,
      subjects: { findPerson: down, findStaticCohorts: down, findGroup: down },
    })
    const person_properties = { plan: 'pro', role: 'dev' }
    const body = { api_key: 'phc_test', distinct_id: 'u', person_properties }
    const { json } = await server.post('/decide?v=3', body)
    assert.equal(json.errorsWhileComputingFlags, true)
    assert.deepEqual(json.featureFlags, { dynamic: true, mixed: true, none: true })
    const detailed = await server.post('/flags?v=2', body)
    const failed = (detailed.json.flags as Record<string, JsonObject>).static!
    assert.equal(failed.failed, true)
    assert.equal((failed.reason as JsonObject).code, 'database_unavailable')
  })
})

describe('a cohort that takes long to evaluate', () => {
  it('yields within its tree of 2,000 conditions, of which the last one decides', () => {
    const leaves = Array.from({ length: 2_000 }, (_, index) => person(`key ${index}`, 'x'))
    const cohorts = { 1: described(any(...leaves)) }
    const flags = [flag(1, 'a', cohort(1)), flag(2, 'b', cohort(1, { operator: 'not_in' }))]
    const { values, sliceCount } = evaluate({ flags, cohorts }, { personProperties: { 'key 1999': 'x' } })
    assert.deepEqual(values, { a: true, b: false })
    assert.ok(sliceCount > 100 && sliceCount < 300, `${sliceCount} slices`)
  })

  it('yields after every condition once a large value was read, and within a condition', () => {
    const long = 'ab'.repeat(300_000)
    const needles = Array.from({ length: 20 }, (_, index) =>
      person('text', `${'ab'.repeat(400)}${index}`, { operator: 'icontains' }),
    )
    const cohorts = {
      1: described(any(...needles, cohort(2))),
      2: described(all(person('text', 'ba', { operator: 'icontains' }))),
    }
    const { values, sliceCount } = evaluate(
      { flags: [flag(1, 'a', cohort(1))], cohorts },
      { personProperties: { text: long } },
    )
    assert.deepEqual(values, { a: true })
    assert.ok(sliceCount > 20, `${sliceCount} slices`)
  })

  it('yields between the cohorts in a set', () => {
    const cohorts: Record<string, JsonObject> = {}
    for (let id = 1; id <= 500; id++)
      cohorts[id] = described(any(person(`key ${id}`, null, { operator: 'is_not_set' })))
    const filters = Object.keys(cohorts).map(id => cohort(id))
    const { values, sliceCount } = evaluate({ flags: [flag(1, 'a', ...filters)], cohorts })
    assert.deepEqual(values, { a: true })
    assert.ok(sliceCount > 20 && sliceCount < 600, `${sliceCount} slices`)
  })
})
