import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { describeConditions, describeRollout, formatConditionLines, formatVariantLines } from './describe-rollout.ts'
import { suggestFlag } from './find-flag.ts'

const plan = { type: 'person', key: 'plan', operator: 'exact', value: 'pro' }

describe('the description of the conditions of a flag', () => {
  it('has a percentage for each condition set if some sets have filters', () => {
    const groups = [
      { properties: [plan], rollout_percentage: 100 },
      { properties: [], rollout_percentage: 10 },
    ]
    assert.equal(describeRollout({ groups }), 'by conditions: 100 % / 10 %')
    assert.equal(
      describeRollout({ groups: [...groups, ...groups, ...groups] }),
      'by conditions: 100 % / 10 % / 100 % / 10 % / …',
    )
    assert.equal(describeRollout({ groups: [{ properties: [], rollout_percentage: 25 }] }), '25 %')
  })

  it('names cohorts and other flags in plain words', () => {
    const properties = [
      { key: 'id', type: 'cohort', value: 8 },
      { key: 'id', type: 'cohort', operator: 'not_in', value: 9 },
      { key: '2', type: 'flag', operator: 'flag_evaluates_to', value: true },
    ]
    assert.deepEqual(formatConditionLines({ groups: [{ properties }] }), [
      '1. in cohort 8 and not in cohort 9 and flag 2 is true',
    ])
  })

  it('lists rules and the default of a version 2 flag', () => {
    const id = '11111111-1111-4111-8111-111111111111'
    const predicate = { ...plan, negation: true }
    const rules = [{ id, rule_type: 'targeted_release', targeting: { properties: [predicate] }, value: 42 }]
    const document = { version: 2, return_type: 'number', default_value: null, rules }
    assert.equal(describeRollout(document), 'by 1 rule')
    assert.deepEqual(formatConditionLines(document), ['1. not (plan exact pro): 42', 'else no value'])
    assert.deepEqual(describeConditions({ ...document, default_value: 5 }), ['not (plan exact pro): 42', 'else 5'])
    assert.deepEqual(formatVariantLines(document), [])
    assert.deepEqual(formatVariantLines({ ...document, version: 3 }), [])
    assert.equal(describeRollout({ ...document, version: 3 }), 'unreadable')
    assert.match(formatConditionLines({ ...document, version: 3 })[0]!, /^unreadable: /)
  })

  it('says for which persons a rule itself returns the default', () => {
    const hashed = {
      assignment_algorithm: 'sha1_60_v1',
      rollout_percentage: 20,
      on_rollout_miss: 'return_default',
      seed: 's',
    }
    const rule = { targeting: { properties: [] }, ...hashed }
    const rules = [
      { ...rule, id: '11111111-1111-4111-8111-111111111111', rule_type: 'percentage_rollout', value: true },
      {
        ...{ ...rule, id: '11111111-1111-4111-8111-111111111112', rule_type: 'experiment', experiment_id: null },
        ...{ paused: true, on_rollout_miss: 'continue', holdout: { id: null, seed: 's', exclusion_percentage: 5 } },
        variants: ['a', 'b'].map(key => ({ key, weight: 50, value: key === 'a' })),
      },
    ]
    assert.deepEqual(formatConditionLines({ version: 2, return_type: 'boolean', default_value: false, rules }), [
      '1. everyone, 20 % of them and the default for the others: true',
      '2. everyone, 5 % held out, 20 % of them: paused, a 50 % true / b 50 % false',
      'else false',
    ])
  })

  it('shows no value for an operator that compares with none', () => {
    const set = (operator: string) => ({ groups: [{ properties: [{ ...plan, operator, value: operator }] }] })
    assert.deepEqual(formatConditionLines(set('is_not_set')), ['1. plan is not set'])
    assert.deepEqual(formatConditionLines(set('icontains')), ['1. plan icontains icontains'])
  })
})

describe('the suggestion for an unknown flag', () => {
  const keys = ['pl', 'new-checkout']
  const cases: [flag: string, says: RegExp][] = [
    ['new-chekout', /^Did you mean new-checkout\? To list all flags: /],
    ['checkout', /^Did you mean new-checkout\? /],
    ['something-else', /^To list all flags: pennon flags list\./],
  ]
  for (const [flag, says] of cases) it(`for ${flag} is ${says}`, () => assert.match(suggestFlag(flag, keys), says))

  it('says that the project has no flags if it has none', () =>
    assert.equal(suggestFlag('x', []), 'The project has no flags.'))
})
