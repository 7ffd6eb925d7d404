import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { wayOut } from './find-flag.ts'
import { conditionLines, rolloutWords } from './rollout-words.ts'

const plan = { type: 'person', key: 'plan', operator: 'exact', value: 'pro' }

describe('the conditions of a flag in words', () => {
  it('have a percentage for each set where some sets are for some persons alone', () => {
    const groups = [
      { properties: [plan], rollout_percentage: 100 },
      { properties: [], rollout_percentage: 10 },
    ]
    assert.equal(rolloutWords({ groups }), 'by conditions: 100 % / 10 %')
    assert.equal(
      rolloutWords({ groups: [...groups, ...groups, ...groups] }),
      'by conditions: 100 % / 10 % / 100 % / 10 % / …',
    )
    assert.equal(rolloutWords({ groups: [{ properties: [], rollout_percentage: 25 }] }), '25 %')
  })

  it('name cohorts and other flags as people say it', () => {
    const properties = [
      { key: 'id', type: 'cohort', value: 8 },
      { key: 'id', type: 'cohort', operator: 'not_in', value: 9 },
      { key: '2', type: 'flag', operator: 'flag_evaluates_to', value: true },
    ]
    assert.deepEqual(conditionLines({ groups: [{ properties }] }), [
      '1. in cohort 8 and not in cohort 9 and flag 2 is true',
    ])
  })

  it('are rules and a default in a flag of version 2', () => {
    const id = '11111111-1111-4111-8111-111111111111'
    const predicate = { ...plan, negation: true }
    const rules = [{ id, rule_type: 'targeted_release', targeting: { properties: [predicate] }, value: 42 }]
    const document = { version: 2, return_type: 'number', default_value: null, rules }
    assert.equal(rolloutWords(document), 'by 1 rule')
    assert.deepEqual(conditionLines(document), ['1. not (plan exact pro): 42', 'else no value'])
    assert.equal(rolloutWords({ ...document, version: 3 }), 'unreadable')
    assert.match(conditionLines({ ...document, version: 3 })[0]!, /^unreadable: /)
  })

  it('show no value of an operator that compares none', () => {
    const set = (operator: string) => ({ groups: [{ properties: [{ ...plan, operator, value: operator }] }] })
    assert.deepEqual(conditionLines(set('is_not_set')), ['1. plan is not set'])
    assert.deepEqual(conditionLines(set('icontains')), ['1. plan icontains icontains'])
  })
})

describe('the way out for a flag that is not there', () => {
  const keys = ['pl', 'new-checkout']
  const cases: [flag: string, says: RegExp][] = [
    ['new-chekout', /^Did you mean new-checkout\? All of them: /],
    ['checkout', /^Did you mean new-checkout\? /],
    ['something-else', /^All of them: pennon flags list;/],
  ]
  for (const [flag, says] of cases) it(`is ${says} for ${flag}`, () => assert.match(wayOut(flag, keys), says))

  it('is not a list where there are no flags', () => assert.equal(wayOut('x', []), 'The project has no flags.'))
})
