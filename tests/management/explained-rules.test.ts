// Flags of version 2 in the answers about flags: explanations, test evaluations, reach. Source: docs/operating/explain.md.

import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import type { JsonObject } from '#core/json.ts'
import type { ExplainedConditionJson, ExplainedFilterJson } from '#wire/management/flags/explanation-shapes.ts'
import { fieldOf } from '../support/fields-of.ts'
import { experiment, personPredicate, release, rollout, rulesDocument } from '../support/flag-documents.ts'
import { startManagement } from '../support/management-api.ts'
import { newPersons } from '../support/values.ts'

const flags = '/api/projects/1/feature_flags/'

async function start(t: TestContext, filters: JsonObject) {
  const api = await startManagement(t)
  const persons = ['pro', 'free', 'free', 'many'].map((plan, index) => ({
    ids: [`person-${index}`],
    properties: plan === 'many' ? { seats: plan } : { plan, seats: index },
  }))
  await api.commit(newPersons(persons))
  const made = await api.post(`${flags}?skip_validation=true`, { key: 'typed', filters, active: true })
  const ask = async (path: string, body: object) => {
    const answer = await api.call('POST', `${flags}${path}`, { body })
    assert.equal(answer.status, 200, answer.text)
    return answer
  }
  return { api, ask, id: made.id as number }
}

const holdout = { id: 9, seed: 'secret', exclusion_percentage: 0 }
const document = rulesDocument('number', 0, [
  release(1, personPredicate('plan', 'exact', 'pro')),
  rollout(2, 0, { targeting: { properties: [personPredicate('plan', 'exact', 'free')] }, seed: 'secret' }),
  experiment([10, 20], {
    experiment_id: 7,
    holdout,
    targeting: { properties: [personPredicate('seats', 'gt', 1, true)] },
  }),
])

describe('an explained version 2 flag', () => {
  it('is explained rule by rule, without its seeds', async t => {
    const { ask } = await start(t, document)
    const { text, body } = await ask('typed/explain/', { distinct_id: 'person-1' })
    assert.ok(!text.includes('secret'), text)
    assert.deepEqual([body.reason.code, body.reason.condition_index, body.failed], ['experiment_split', 2, false])
    assert.ok([10, 20].includes(body.value) && body.payload === `${body.value}`)
    const told = (body.conditions as ExplainedConditionJson[]).map(({ result, rule, filters, rollout }) => {
      const [{ negated, compared }] = filters as [ExplainedFilterJson]
      return [result, rule!.rule_type, rule!.holdout?.held_out, negated, compared!.value, rollout.percentage]
    })
    assert.deepEqual(told, [
      ['no_condition_match', 'targeted_release', undefined, undefined, 'free', null],
      ['rollout_miss', 'percentage_rollout', undefined, undefined, 'free', 0],
      ['matched', 'experiment', false, true, 1, 100],
    ])
    const { chosen, hash, variants } = body.variant
    assert.equal(variants.find(({ from, to }: Record<string, number>) => from! <= hash && hash < to!).key, chosen)
    assert.deepEqual(body.conditions[2].bucketing, { by: 'distinct_id', identifier: 'person-1' })
    assert.equal(body.reason.description, 'Matched rule 3')
    const failed = await ask('typed/explain/', { distinct_id: 'person-3' })
    assert.deepEqual([failed.body.value, failed.body.failed, failed.body.reason.code], [null, true, 'error'])
    assert.equal(failed.body.reason.description, 'Invalid property')
  })

  it('is shown as on in PostHog’s tools, with its value as the payload', async t => {
    const { ask } = await start(t, document)
    const { body } = await ask('typed/test_evaluation/', { distinct_id: 'person-0' })
    const { result, reason, condition_index, payload, conditions } = body
    assert.deepEqual([result, reason, condition_index, payload], [true, 'targeting_match', 0, '1'])
    assert.deepEqual(fieldOf(conditions, 'matched'), [true, false, false])
  })

  it('is counted by its values and its rules', async t => {
    const { api, id } = await start(t, document)
    const response = await fetch(`${api.url}${flags}reach/`, {
      ...{ method: 'POST', body: JSON.stringify({ definition: { id } }) },
      headers: { authorization: 'Bearer phx_all-scopes', 'content-type': 'application/json' },
    })
    const text = await response.text()
    const last = JSON.parse(text.trim().split('\n').at(-1)!)
    assert.equal(last.population, 'persons')
    assert.deepEqual([last.gained, last.lost, last.moved, last.unchanged], [0, 0, 0, 4])
    assert.deepEqual(last.by_condition, [1, 0, 1])
    assert.deepEqual(
      last.by_value.find(({ value }: JsonObject) => value === '1'),
      { value: '1', before: 1, after: 1 },
    )
    assert.deepEqual(
      last.by_value.find(({ value }: JsonObject) => value === null),
      { value: null, before: 1, after: 1 },
    )
  })

  it('is reported with the reason if it cannot be read', async t => {
    const { ask } = await start(t, { ...document, version: 3 })
    const { body } = await ask('typed/explain/', { distinct_id: 'person-0' })
    assert.deepEqual([body.left_out, body.failed, body.reason.description], [null, true, 'Unsupported definition'])
    assert.match(body.problems[0], /cannot be evaluated/)
  })
})
