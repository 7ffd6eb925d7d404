// Flags of version 2: what their rules decide, and what each kind of answer has of it.
// Source: docs/wire/evaluation.md 2.9, 11.3–11.5.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { EvaluationSubject } from '#core/flags/evaluation/evaluation-subject.ts'
import { type JsonObject, type JsonValue, parseJson } from '#core/json.ts'
import { err } from '#core/result.ts'
import { encodeDefinitions, encodeFlagList } from '#wire/flags/flag-definitions.ts'
import { compileTestProject, startDecideServer } from '../support/decide-server.ts'
import { allFlags, aSubject, evaluateFlags, evaluateInSlices } from '../support/evaluation-subject.ts'
import { experiment, personPredicate, release, rollout, rulesDocument } from '../support/flag-documents.ts'

const ids = Array.from({ length: 200 }, (_, index) => `user-${index}`)

/** Reason and value of the flag 1 for a subject; the failure when it has no value. */
function decide(filters: JsonObject, subject: Partial<EvaluationSubject> = {}): [reason: string, value?: JsonValue] {
  const project = compileTestProject({ flags: [{ id: 1, key: 'typed', filters }] })
  const outcome = evaluateFlags(project, allFlags, aSubject(subject)).outcomes[0]!
  return outcome.kind === 'unknown' ? [outcome.reason] : [outcome.reason, outcome.typed!.value]
}

const allSame = rulesDocument('boolean', null, [release(true)])

describe('the rules of a flag', () => {
  it('ignore device, anonymous and stored ids, continuity, enrolment and device bucketing', () => {
    const filters = rulesDocument('boolean', null, [rollout(true, 50)])
    const settings = { ensure_experience_continuity: true, bucketing_identifier: 'device_id' }
    const plain = compileTestProject({ flags: [{ id: 1, key: 'typed', filters }] })
    const bucketed = compileTestProject({ flags: [{ id: 1, key: 'typed', filters, ...settings }] })
    assert.deepEqual(bucketed.continuityFlagKeys, [])
    assert.equal(bucketed.needs.continuity || bucketed.needs.hashKeyOverrides, false)
    for (const distinctId of ids) {
      const other = {
        ...{ distinctId, anonDistinctId: 'someone', deviceId: 'device' },
        hashKeyOverrides: { rows: new Map([['typed', 'stored']]), failure: null },
        personProperties: { '$feature_enrollment/typed': 'false' },
      }
      const reasons = [plain, bucketed].map(project => {
        const subject = project === plain ? aSubject({ distinctId }) : aSubject(other)
        return evaluateFlags(project, allFlags, subject).outcomes[0]!.reason
      })
      assert.equal(reasons[0], reasons[1])
    }
  })

  it('exclude requests without an id from every rollout and holdout', () => {
    const holdout = { id: null, seed: 'out', exclusion_percentage: 100 }
    const filters = rulesDocument('string', 'default', [experiment(['A', 'B'], { holdout })])
    assert.deepEqual(decide(filters, { distinctId: '' }), ['no_rule_match', 'default'])
    assert.deepEqual(decide(filters, { distinctId: 'ada' }), ['holdout', 'default'])
  })

  it('assign the last variant, even of weight 0, to a point past the last bound', () => {
    const variants = [
      { key: 'a', weight: 100, value: 'A' },
      { key: 'b', weight: 0, value: 'B' },
    ]
    const filters = rulesDocument('string', null, [experiment([], { variants })])
    assert.deepEqual(decide(filters), ['targeting_match', 'A'])
    const project = compileTestProject({ flags: [{ id: 1, key: 'typed', filters }] })
    const [rule] = project.flags[0]!.rules!.rules
    assert.deepEqual(rule!.variantBounds, [1, 1])
    // No id is known whose point is 1, so the bounds are moved instead.
    const bounds = rule!.variantBounds as number[]
    bounds.fill(0)
    const outcome = evaluateFlags(project, allFlags, aSubject()).outcomes[0]!
    assert.deepEqual(outcome.kind !== 'unknown' && outcome.typed, { value: 'B', variantKey: null })
  })

  it('continue after a missed rollout, or stop there, as the rule says', () => {
    const outside = (on_rollout_miss: string) => rollout('new', 0, { on_rollout_miss })
    const document = (miss: string) => rulesDocument('string', 'default', [outside(miss), release('old')])
    assert.deepEqual(decide(document('continue')), ['targeting_match', 'old'])
    assert.deepEqual(decide(document('return_default')), ['rollout_miss', 'default'])
  })

  it('fail the flag when an evaluated comparison is impossible, negated or not', () => {
    const asked = (negation: boolean, ...before: JsonObject[]) =>
      rulesDocument('boolean', null, [release(true, ...before, personPredicate('seats', 'gt', 5, negation))])
    for (const negation of [false, true]) {
      for (const seats of ['many', true, null, [7], ''])
        assert.deepEqual(decide(asked(negation), { personProperties: { seats } }), ['invalid_property'])
      assert.deepEqual(decide(asked(negation)), negation ? ['targeting_match', true] : ['no_rule_match', null])
      assert.deepEqual(
        decide(asked(negation), { personProperties: { seats: '7.5' } })[0] === 'targeting_match',
        !negation,
      )
      const never = asked(negation, personPredicate('plan', 'is_set', 'is_set'))
      assert.deepEqual(decide(never, { personProperties: { seats: 'many' } }), ['no_rule_match', null])
    }
    const noNumber = rulesDocument('boolean', null, [release(true, personPredicate('seats', 'lte', 'x'))])
    assert.deepEqual(decide(noNumber, { personProperties: { seats: 1 } }), ['invalid_property'])
  })

  it('fail the flag for an invalid pattern, and for a property too long to match', () => {
    const document = (pattern: string, operator: string) =>
      rulesDocument('boolean', null, [release(true, personPredicate('plan', operator, pattern))])
    for (const operator of ['regex', 'not_regex']) {
      assert.deepEqual(decide(document('[', operator)), ['invalid_regular_expression'])
      const long = { personProperties: { plan: 'x'.repeat(20_000) } }
      assert.deepEqual(decide(document('^a', operator), long), ['invalid_regular_expression'])
      assert.equal(decide(document('^a', operator))[0], operator === 'regex' ? 'no_rule_match' : 'targeting_match')
    }
  })

  it('treat invalid or absent dates and versions as no match, which negation turns into a match', () => {
    const document = (operator: string, value: string, negation: boolean) =>
      rulesDocument('boolean', null, [release(true, personPredicate('x', operator, value, negation))])
    for (const [operator, value] of [
      ['is_date_before', '2026-01-01'],
      ['semver_gt', '1.2.3'],
    ] as const) {
      for (const personProperties of [{ x: 'no such thing' }, {}]) {
        assert.deepEqual(decide(document(operator, value, false), { personProperties }), ['no_rule_match', null])
        assert.deepEqual(decide(document(operator, value, true), { personProperties }), ['targeting_match', true])
      }
    }
  })

  it('use sent properties while stored persons cannot be read, and fail at the first unknown one', () => {
    const filters = rulesDocument('boolean', false, [
      release(false, personPredicate('plan', 'exact', 'free')),
      release(true, personPredicate('seats', 'gt', 5)),
    ])
    const person = err('database_unavailable' as const)
    assert.deepEqual(decide(filters, { person, personProperties: { plan: 'free' } }), ['targeting_match', false])
    assert.deepEqual(decide(filters, { person, personProperties: { plan: 'pro', seats: 7 } }), [
      'targeting_match',
      true,
    ])
    assert.deepEqual(decide(filters, { person, personProperties: { plan: 'pro' } }), ['missing_properties'])
    assert.deepEqual(decide(allSame, { person }), ['targeting_match', true])
  })

  it('decide the same however often they are interrupted', () => {
    const never = Array.from({ length: 20 }, (_, place) =>
      personPredicate(`p${place}`, 'icontains', 'z', place % 2 === 1),
    )
    const rules = Array.from({ length: 20 }, (_, place) => release(place, ...never.slice(0, place + 1)))
    const filters = rulesDocument('number', -1, [...rules, release(99, personPredicate('p0', 'icontains', 'y'))])
    const project = compileTestProject({ flags: [{ id: 1, key: 'typed', filters }] })
    const large = 'y'.repeat(2_000)
    const personProperties = Object.fromEntries(never.map((_, place) => [`p${place}`, large]))
    const { evaluation, sliceCount } = evaluateInSlices(project, aSubject({ personProperties }))
    assert.ok(sliceCount > 20, `${sliceCount} slices`)
    const outcome = evaluation.outcomes[0]!
    assert.deepEqual(outcome.kind !== 'unknown' && outcome.typed?.value, 99)
  })

  it('cannot be tested by filters of version 1, on or off, active or not', () => {
    const testing = (id: number, tested: number, value: boolean) => ({
      ...{ id, key: `tests-${tested}-${value}` },
      filters: { groups: [{ properties: [{ type: 'flag', key: `${tested}`, operator: 'flag_evaluates_to', value }] }] },
    })
    const flags = [
      { id: 1, key: 'typed', filters: allSame },
      { id: 2, key: 'inactive', filters: allSame, active: false },
      { id: 3, key: 'unknown', filters: { version: 3 } },
      ...[1, 2, 3].flatMap(id => [testing(10 * id, id, true), testing(10 * id + 1, id, false)]),
    ]
    const { project, outcomes } = evaluateFlags(compileTestProject({ flags }), allFlags, aSubject())
    for (const [position, flag] of project.flags.entries())
      if (flag!.rules === null) assert.equal(outcomes[position]!.reason, 'no_condition_match', flag!.key)
  })
})

const kinds: Record<string, JsonObject> = {
  yes: rulesDocument('boolean', false, [release(true)]),
  no: rulesDocument('boolean', true, [release(false)]),
  text: rulesDocument('string', 'plain', []),
  zero: rulesDocument('number', null, [release(0)]),
  precise: parseJson('{"version":2,"return_type":"number","default_value":1.50,"rules":[]}') as JsonObject,
  empty: rulesDocument('object', null, [release({})]),
  none: rulesDocument('number', null, []),
  failed: rulesDocument('number', null, [release(1, personPredicate('plan', 'gt', 1))]),
  unknown: { version: '2' },
}
const flagsOfAllKinds = Object.entries(kinds).map(([key, filters], place) => ({ id: place + 1, key, filters }))

describe('a flag of version 2', () => {
  it('has its value, or the closest representation, in each kind of answer', async t => {
    const server = await startDecideServer(t, { flags: flagsOfAllKinds })
    const ask = async (path: string) => {
      const subject = { token: 'phc_test', distinct_id: 'ada', person_properties: { plan: 'pro' } }
      const body = { ...subject, context: { targetingKey: 'ada', plan: 'pro' } }
      const { status, text } = await server.post(path, body, { authorization: 'Bearer phc_test' })
      assert.equal(status, 200, text)
      return text
    }
    const flagsOf = async (path: string) => JSON.parse(await ask(path)).flags as Record<string, JsonObject>

    const v1 =
      '"featureFlags":{"yes":true,"no":false,"text":"plain","zero":true,"precise":true,"empty":true,"none":false}'
    const payloads = '"featureFlagPayloads":{"zero":"0","precise":"1.50","empty":"{}"}'
    for (const path of ['/flags?v=1', '/decide?v=3&config=false'])
      assert.ok((await ask(path)).startsWith(`{"errorsWhileComputingFlags":true,${v1},${payloads}`), path)
    const d2 = '{"featureFlags":{"yes":true,"text":"plain","zero":true,"precise":true,"empty":true}'
    assert.ok((await ask('/decide?v=2&config=false')).startsWith(d2))
    const d1 = '{"featureFlags":["yes","text","zero","precise","empty"]'
    assert.ok((await ask('/decide?v=1&config=false')).startsWith(d1))

    const v2 = await flagsOf('/flags?v=2')
    const shown = Object.entries(v2).map(([key, { enabled, variant, failed, reason, metadata }]) => {
      const { code } = reason as JsonObject
      return [key, enabled, variant, failed ?? false, code, (metadata as JsonObject).payload]
    })
    assert.deepEqual(shown, [
      ['yes', true, null, false, 'targeting_match', null],
      ['no', false, null, false, 'targeting_match', null],
      ['text', true, 'plain', false, 'no_rule_match', null],
      ['zero', true, null, false, 'targeting_match', '0'],
      ['precise', true, null, false, 'no_rule_match', '1.50'],
      ['empty', true, null, false, 'targeting_match', '{}'],
      ['none', false, null, false, 'no_rule_match', null],
      ['failed', false, null, true, 'error', null],
      ['unknown', false, null, true, 'error', null],
    ])

    const v3 = await flagsOf('/flags?v=3')
    assert.deepEqual(
      Object.entries(v3).map(([key, { value, failed }]) => [key, value, failed ?? false]),
      [
        ['yes', true, false],
        ['no', false, false],
        ['text', 'plain', false],
        ['zero', 0, false],
        ['precise', 1.5, false],
        ['empty', {}, false],
        ['none', null, false],
        ['failed', null, true],
        ['unknown', null, true],
      ],
    )
    assert.match(await ask('/flags?v=4'), /"precise":\{"key":"precise","value":1\.50,/)
    assert.deepEqual(await flagsOf('/flags?v=3&detailed_analysis=true'), v3)

    const ofrep = await ask('/ofrep/v1/evaluate/flags')
    const byKey = Object.fromEntries((JSON.parse(ofrep).flags as JsonObject[]).map(item => [item.key, item]))
    const metadata = { version: 1, config_version: 2 }
    assert.deepEqual(byKey.zero, {
      ...{ key: 'zero', value: 0, reason: 'TARGETING_MATCH', variant: '0' },
      metadata: { id: 4, ...metadata, reason: 'targeting_match' },
    })
    assert.deepEqual(byKey.none, {
      ...{ key: 'none', reason: 'DEFAULT', variant: 'null' },
      metadata: { id: 7, ...metadata, reason: 'no_rule_match' },
    })
    assert.deepEqual(byKey.unknown, { key: 'unknown', errorCode: 'GENERAL', errorDetails: 'Unsupported definition.' })
    assert.match(ofrep, /"key":"precise","value":1\.50,/)
  })

  it('includes rule, experiment and holdout in its metadata, and never a seed', async t => {
    const linked = { experiment_id: 7, seed: 'secret-seed' }
    const holdout = (exclusion_percentage: number) => ({ id: 9, seed: 'secret-holdout', exclusion_percentage })
    const documents: Record<string, JsonObject> = {
      split: experiment(['A', 'B'], { ...linked, holdout: holdout(0) }),
      held: experiment(['A', 'B'], { ...linked, holdout: holdout(100) }),
      paused: experiment(['A', 'B'], { ...linked, paused: true }),
      missed: experiment(['A', 'B'], { ...linked, rollout_percentage: 0, on_rollout_miss: 'return_default' }),
      unlinked: experiment(['A', 'B'], { seed: 'secret-seed', holdout: { ...holdout(100), id: null } }),
    }
    const flags = Object.entries(documents).map(([key, rule], place) => {
      return {
        id: place + 1,
        key,
        filters: rulesDocument('string', 'default', [release('no', personPredicate('x', 'is_set', null)), rule]),
      }
    })
    const server = await startDecideServer(t, { flags })
    const { text } = await server.post('/flags?v=4', { token: 'phc_test', distinct_id: 'ada' })
    assert.ok(!text.includes('secret'), text)
    const records = JSON.parse(text).flags as Record<
      string,
      { value: string; reason: JsonObject; metadata: JsonObject }
    >
    const told = Object.entries(records).map(([key, { value, reason, metadata }]) => {
      const { id, version, description, payload, config_version, rule_type, rule_id, ...rest } = metadata
      assert.deepEqual([version, description, payload, config_version], [1, null, null, 2])
      assert.deepEqual([rule_type, rule_id], ['experiment', '00000001-1111-4111-8111-111111111111'])
      return [key, value, reason.code, reason.condition_index, rest]
    })
    const variant_key = records.split!.value.toLowerCase()
    assert.deepEqual(told, [
      [
        'split',
        variant_key.toUpperCase(),
        'experiment_split',
        1,
        { has_experiment: true, variant_key, experiment_id: 7 },
      ],
      ['held', 'default', 'holdout', 1, { has_experiment: true, experiment_id: 7, holdout_id: 9 }],
      ['paused', 'default', 'experiment_paused', 1, { has_experiment: true, experiment_id: 7 }],
      ['missed', 'default', 'rollout_miss', 1, { has_experiment: true, experiment_id: 7 }],
      ['unlinked', 'default', 'holdout', 1, { has_experiment: false }],
    ])
  })

  it('is excluded from definitions for local evaluation and from the list for old SDKs', () => {
    const fine = { id: 99, key: 'fine', filters: { groups: [{ properties: [] }] } }
    const { definitions } = compileTestProject({ flags: [...flagsOfAllKinds, fine] })
    for (const [encode, name] of [
      [encodeDefinitions, 'flags'],
      [encodeFlagList, 'results'],
    ] as const) {
      const steps = encode(definitions)
      let step = steps.next()
      while (!step.done) step = steps.next()
      const listed = JSON.parse(step.value)[name] as JsonObject[]
      assert.deepEqual(
        listed.map(({ key }) => key),
        ['fine'],
      )
    }
  })

  it('is selected by runtime, contexts and keys like any other', () => {
    const flags = [
      { id: 1, key: 'client', filters: allSame, evaluation_runtime: 'client' },
      { id: 2, key: 'server', filters: { version: 3 }, evaluation_runtime: 'server' },
      { id: 3, key: 'docs', filters: allSame, evaluation_contexts: ['docs'] },
    ]
    const project = compileTestProject({ flags })
    const from = (declared: string) => ({ declared, userAgent: '', hasBrowserHeader: false })
    const answered = (selection: object) =>
      evaluateFlags(project, { ...allFlags, ...selection }, aSubject()).outcomes.map(outcome => outcome !== undefined)
    assert.deepEqual(answered({ runtime: from('client') }), [true, false, true])
    assert.deepEqual(answered({ runtime: from('all'), contexts: ['web'] }), [true, true, false])
    assert.deepEqual(answered({ runtime: from('all'), flagKeys: ['server'] }), [false, true, false])
  })
})
