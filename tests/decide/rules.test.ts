// Flags of version 2: what their rules decide, and what each kind of answer has of it.
// Source: docs/wire/evaluation.md 2.9, 11.3–11.5.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type JsonObject, parseJson } from '#core/json.ts'
import { encodeDefinitions, encodeFlagList } from '#wire/flags/flag-definitions.ts'
import { compileTestProject, startDecideServer } from '../support/decide-server.ts'
import { allFlags, aSubject, evaluateFlags, evaluateInSlices } from '../support/evaluation-subject.ts'
import { experiment, personPredicate, release, rollout, rulesDocument } from '../support/flag-documents.ts'

const ids = Array.from({ length: 200 }, (_, index) => `user-${index}`)

const allSame = rulesDocument('boolean', null, [release(true)])

describe('the rules of a version 2 flag', () => {
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

  it('assign the last variant, even of weight 0, to a point past the last bound', () => {
    const variants = [
      { key: 'a', weight: 100, value: 'A' },
      { key: 'b', weight: 0, value: 'B' },
    ]
    const filters = rulesDocument('string', null, [experiment([], { variants })])
    const project = compileTestProject({ flags: [{ id: 1, key: 'typed', filters }] })
    const served = () => {
      const outcome = evaluateFlags(project, allFlags, aSubject()).outcomes[0]!
      return outcome.kind !== 'unknown' && outcome.typed
    }
    assert.deepEqual(served(), { value: 'A', variantKey: null })
    const [rule] = project.flags[0]!.rules!.rules
    assert.deepEqual(rule!.variantBounds, [1, 1])
    // No id is known whose point is 1, so the bounds are moved instead.
    const bounds = rule!.variantBounds as number[]
    bounds.fill(0)
    assert.deepEqual(served(), { value: 'B', variantKey: null })
  })

  it('give the same result however often they are interrupted', () => {
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

  it('cannot be tested by version 1 filters, whether on or off, active or not', () => {
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

describe('a version 2 flag in answers', () => {
  it('has its value, or the closest representation of it, in each kind of answer', async t => {
    const server = await startDecideServer(t, { flags: flagsOfAllKinds })
    const ask = async (path: string) => {
      const subject = { token: 'phc_test', distinct_id: 'ada', person_properties: { plan: 'pro' } }
      const body = { ...subject, context: { targetingKey: 'ada', plan: 'pro' } }
      const { status, text } = await server.post(path, body, { authorization: 'Bearer phc_test' })
      assert.equal(status, 200, text)
      return text
    }

    const v1 =
      '"featureFlags":{"yes":true,"no":false,"text":"plain","zero":true,"precise":true,"empty":true,"none":false}'
    const payloads = '"featureFlagPayloads":{"zero":"0","precise":"1.50","empty":"{}"}'
    for (const path of ['/flags?v=1', '/decide?v=3&config=false'])
      assert.ok((await ask(path)).startsWith(`{"errorsWhileComputingFlags":true,${v1},${payloads}`), path)
    const d2 = '{"featureFlags":{"yes":true,"text":"plain","zero":true,"precise":true,"empty":true}'
    assert.ok((await ask('/decide?v=2&config=false')).startsWith(d2))
    const d1 = '{"featureFlags":["yes","text","zero","precise","empty"]'
    assert.ok((await ask('/decide?v=1&config=false')).startsWith(d1))

    assert.match(await ask('/flags?v=4'), /"precise":\{"key":"precise","value":1\.50,/)
    const v3 = await ask('/flags?v=3')
    const flagsIn = (text: string) => JSON.parse(text).flags as JsonObject
    assert.deepEqual(flagsIn(await ask('/flags?v=3&detailed_analysis=true')), flagsIn(v3))
    assert.match(await ask('/ofrep/v1/evaluate/flags'), /"key":"precise","value":1\.50,/)
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

  it('is selected by runtime, contexts and keys like any other flag', () => {
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
