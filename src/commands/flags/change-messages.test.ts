import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { JsonObject } from '#core/json.ts'
import { plainTerminal } from '../client/terminal.ts'
import { askYesOrNo } from './confirm-change.ts'
import { buildNewFlag } from './create-flag.ts'
import { formatAffectedCounts, formatDiff } from './flag-diff.ts'
import { planRollout } from './roll-out.ts'

const everyone = { properties: [], rollout_percentage: 100 }
const pro = { properties: [{ type: 'person', key: 'plan', operator: 'exact', value: 'pro' }], rollout_percentage: 10 }

describe('the lines that describe a flag change', () => {
  it('list added and removed parts, but nothing that stays the same', () => {
    const before = { active: true, archived: false, filters: { groups: [pro, pro] } }
    const after = { active: true, archived: false, filters: { groups: [everyone, pro, pro] } }
    assert.deepEqual(formatDiff(before, after, plainTerminal), ['+ everyone'])
    assert.deepEqual(formatDiff(after, { ...before, filters: { groups: [pro] } }, plainTerminal), [
      '- everyone',
      '- plan exact pro, 10 % of them',
    ])
    assert.deepEqual(formatDiff(before, { active: false, archived: true, filters: { groups: [] } }, plainTerminal), [
      '- enabled',
      '- plan exact pro, 10 % of them',
      '- plan exact pro, 10 % of them',
      '+ disabled',
      '+ archived',
      '+ no conditions: off for all users',
    ])
  })

  it('list the rules and the default of a flag with rules', () => {
    const filters = { version: 2, return_type: 'number', default_value: 1, rules: [] }
    const after = { active: true, archived: false, filters }
    assert.deepEqual(formatDiff(null, after, plainTerminal), ['+ enabled', '+ else 1'])
  })

  it('give the number of affected persons, or the reason why it is unknown', () => {
    const reach = { evaluated: 1200, population: 'persons', gained: 1100, lost: 0, moved: 3 }
    for (const [line, message] of [
      [reach, 'Of 1,200 stored persons, 1,100 gain the flag, 3 change to another value.'],
      [
        { ...reach, population: 'groups', evaluated: 1, gained: 0, moved: 0, lost: 1 },
        'Of 1 stored group, 1 loses the flag.',
      ],
      [{ ...reach, gained: 0, moved: 0 }, 'Of 1,200 stored persons, none gets another value.'],
      [{ error: { code: 'x', detail: 'The key ended.' } }, 'The affected persons could not be counted: The key ended.'],
    ] as [JsonObject, string][])
      assert.equal(formatAffectedCounts(line), message)
  })
})

describe('a new flag', () => {
  it('with rules gets no conditions', () => {
    const rules = { version: 2, return_type: 'boolean', default_value: false, rules: [] }
    const flag = buildNewFlag('a', { filters: JSON.stringify(rules) })
    assert.deepEqual([flag.active, flag.filters], [false, rules])
  })

  it('is on only if conditions or --active are given', () => {
    const filters = JSON.stringify({ groups: [pro] })
    for (const [options, active, groups] of [
      [{}, false, [everyone]],
      [{ active: true }, true, [everyone]],
      [{ rollout: '10' }, true, [{ ...everyone, rollout_percentage: 10 }]],
      [{ rollout: 'everyone' }, true, [everyone]],
      [{ rollout: '10', inactive: true }, false, [{ ...everyone, rollout_percentage: 10 }]],
      [{ filters }, true, [pro]],
      [{ filters: '{"payloads": {"true": "1"}}' }, false, [everyone]],
    ] as const) {
      const flag = buildNewFlag('a', options)
      assert.deepEqual([flag.active, flag.filters.groups], [active, groups], JSON.stringify(options))
    }
    for (const options of [
      { active: true, inactive: true },
      { rollout: '1', filters },
      { filters: '[]' },
      { filters: 'x' },
    ])
      assert.throws(() => buildNewFlag('a', options), { name: 'ClientError' })
  })
})

describe('a rollout', () => {
  const flag = { key: 'beta', version: 4, filters: { groups: [pro, everyone] } }

  it('numbers conditions from 1, and sends the flag version that was read', () => {
    const { action, body } = planRollout(flag, '2.5 %', { condition: '2' })
    assert.deepEqual(
      [action, body],
      ['set_release_condition_rollout', { condition_index: 1, rollout_percentage: 2.5, version: 4 }],
    )
    assert.deepEqual(planRollout(flag, 'everyone', { variant: 'a' }).body, { version: 4, variant_key: 'a' })
  })

  it('is refused for conflicting options and for anything that is not a number', () => {
    for (const [share, options] of [
      ['everyone', { condition: '1' }],
      ['5', { condition: '1', variant: 'a' }],
      ['5', {}],
      ['5', { condition: '0' }],
      ['5', { condition: '1.5' }],
      ['-5', { condition: '1' }],
      ['all', { condition: '1' }],
    ] as const)
      assert.throws(() => planRollout(flag, share, options), { name: 'ClientError' }, share)
  })

  it('is refused for a flag with rules, with the command that changes it', () => {
    for (const share of ['10', 'everyone'])
      assert.throws(() => planRollout({ key: 'beta', filters: { version: 2, rules: [] }, version: 1 }, share, {}), {
        name: 'ClientError',
        message: /pennon flags export beta > beta.json/,
      })
  })
})

it('only a plain yes confirms a change', async () => {
  const answers = ['y', 'Yes', 'n', 'yess', '1']
  const meant = await Promise.all(answers.map(answer => askYesOrNo({ ask: async () => answer }, 'Change it')))
  assert.deepEqual(meant, [true, true, false, false, false])
})
