import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type JsonObject, type JsonValue, parseJson } from '../../json.ts'
import { configVersion, readRules } from './read-rules.ts'

const id = '11111111-1111-4111-8111-111111111111'
const otherId = '22222222-2222-4222-8222-222222222222'

const release = { id, rule_type: 'targeted_release', targeting: { properties: [] }, value: true }
const rollout = {
  id,
  rule_type: 'percentage_rollout',
  targeting: { properties: [] },
  value: true,
  rollout_percentage: 25,
  on_rollout_miss: 'continue',
  assignment_algorithm: 'sha1_60_v1',
  seed: 'a seed',
}
const { value: _, ...rolloutPart } = rollout
const experiment = {
  ...rolloutPart,
  rule_type: 'experiment',
  experiment_id: null,
  paused: false,
  variants: [
    { key: 'control', weight: 33.33, value: true },
    { key: 'test', weight: 66.67, value: false },
  ],
}

function documentOf(...rules: JsonValue[]): JsonObject {
  return { version: 2, return_type: 'boolean', default_value: null, rules }
}

function typed(return_type: string, value: JsonValue): JsonObject {
  return { version: 2, return_type, default_value: null, rules: [{ ...release, value }] }
}

function withPredicate(predicate: JsonValue): JsonObject {
  return documentOf({ ...release, targeting: { properties: [predicate] } })
}

/** `path code` of the first fault; null for a readable document. */
function faultOf(document: JsonObject): string | null {
  const read = readRules(document)
  return read.ok ? null : `${read.error.path} ${read.error.code}`
}

function nested(levels: number): JsonValue {
  return levels === 0 ? 1 : levels % 2 === 0 ? [nested(levels - 1)] : { a: nested(levels - 1) }
}

describe('configVersion', () => {
  for (const [version, expected] of [
    ['{}', 1],
    ['{"version":1}', 1],
    ['{"version":1.0}', 1],
    ['{"version":2}', 2],
    ['{"version":2.0}', 2],
    ['{"version":20e-1}', 2],
    ['{"version":3}', 'unsupported'],
    ['{"version":null}', 'unsupported'],
    ['{"version":"2"}', 'unsupported'],
    ['{"version":true}', 'unsupported'],
    ['{"version":[2]}', 'unsupported'],
  ] as const) {
    it(`of ${version} is ${expected}`, () => {
      assert.equal(configVersion(parseJson(version) as JsonObject), expected)
    })
  }
})

describe('readRules', () => {
  it('reads every type of rule', () => {
    const predicate = { key: 'plan', type: 'person', operator: null, value: 'pro', negation: true, label: 'Plan' }
    const read = readRules({
      ...documentOf(
        { ...release, targeting: { properties: [predicate] }, description: 'for the paying', metadata: { a: [1] } },
        { ...rollout, id: otherId, assign_by: 'person' },
        {
          ...experiment,
          id: '33333333-3333-4333-8333-333333333333',
          experiment_id: 7,
          holdout: { id: 3, seed: 'held', exclusion_percentage: 10 },
        },
      ),
      default_value: false,
    })
    assert.deepEqual(read, {
      ok: true,
      value: {
        returnType: 'boolean',
        defaultValue: false,
        rules: [
          {
            type: 'targeted_release',
            id,
            predicates: [{ key: 'plan', operator: 'exact', value: 'pro', negation: true }],
            value: true,
          },
          {
            type: 'percentage_rollout',
            id: otherId,
            predicates: [],
            value: true,
            rolloutPercentage: 25,
            continuesOnMiss: true,
            seed: 'a seed',
          },
          {
            type: 'experiment',
            id: '33333333-3333-4333-8333-333333333333',
            predicates: [],
            experimentId: 7,
            paused: false,
            variants: [
              { key: 'control', weight: 33.33, value: true },
              { key: 'test', weight: 66.67, value: false },
            ],
            holdout: { id: 3, seed: 'held', exclusionPercentage: 10 },
            rolloutPercentage: 25,
            continuesOnMiss: true,
            seed: 'a seed',
          },
        ],
      },
    })
  })

  it('returns ids in lower case', () => {
    const read = readRules(documentOf({ ...release, id: 'ABCDEF00-1111-4111-8111-111111111111' }))
    assert.equal(read.ok && read.value.rules[0]?.id, 'abcdef00-1111-4111-8111-111111111111')
  })

  const { seed: __, ...withoutSeed } = rollout
  const faults: readonly [what: string, document: JsonObject, fault: string][] = [
    ['no return type', { version: 2, rules: [] }, 'filters.return_type required'],
    ['no default', { version: 2, return_type: 'boolean', rules: [] }, 'filters.default_value required'],
    ['no rules', { version: 2, return_type: 'boolean', default_value: null }, 'filters.rules required'],
    ['an unknown type', { ...documentOf(), return_type: 'list' }, 'filters.return_type invalid_input'],
    ['a default of another type', { ...documentOf(), default_value: 'yes' }, 'filters.default_value invalid'],
    ['fields of version 1', { ...documentOf(), payloads: {} }, 'filters.payloads invalid_input'],
    [
      'a group type',
      { ...documentOf(), aggregation_group_type_index: 0 },
      'filters.aggregation_group_type_index invalid_input',
    ],
    ['another version', { ...documentOf(), version: 3 }, 'filters.version unsupported_config_version'],
    ['101 rules', documentOf(...Array<JsonValue>(101).fill(release)), 'filters.rules invalid_input'],
    ['a rule that is not an object', documentOf('rule'), 'filters.rules.0 invalid'],
    ['a repeated id', documentOf(release, { ...rollout, id }), 'filters.rules.1.id invalid_input'],
    [
      'an id without hyphens',
      documentOf({ ...release, id: id.replaceAll('-', '') }),
      'filters.rules.0.id invalid_input',
    ],
    ['an unknown rule type', documentOf({ ...release, rule_type: 'x' }), 'filters.rules.0.rule_type invalid_input'],
    ['an unknown field', documentOf({ ...release, sort_key: 1 }), 'filters.rules.0.sort_key invalid_input'],
    ['a field of another type', documentOf({ ...release, seed: 'x' }), 'filters.rules.0.seed invalid_input'],
    ['a null description', documentOf({ ...release, description: null }), 'filters.rules.0.description invalid'],
    ['metadata that is a list', documentOf({ ...release, metadata: [] }), 'filters.rules.0.metadata invalid'],
    ['no seed', documentOf(withoutSeed), 'filters.rules.0.seed required'],
    ['an empty seed', documentOf({ ...rollout, seed: '' }), 'filters.rules.0.seed invalid_input'],
    [
      'a seed of 401 characters',
      documentOf({ ...rollout, seed: '😀'.repeat(401) }),
      'filters.rules.0.seed invalid_input',
    ],
    [
      'another algorithm',
      documentOf({ ...rollout, assignment_algorithm: 'md5' }),
      'filters.rules.0.assignment_algorithm invalid_input',
    ],
    ['another assignment', documentOf({ ...rollout, assign_by: 'device' }), 'filters.rules.0.assign_by invalid_input'],
    ['101 %', documentOf({ ...rollout, rollout_percentage: 101 }), 'filters.rules.0.rollout_percentage invalid_input'],
    [
      'a percentage as text',
      documentOf({ ...rollout, rollout_percentage: '5' }),
      'filters.rules.0.rollout_percentage invalid',
    ],
    ['an unpaused experiment', documentOf({ ...experiment, paused: null }), 'filters.rules.0.paused invalid'],
    ['half an experiment', documentOf({ ...experiment, experiment_id: 1.5 }), 'filters.rules.0.experiment_id invalid'],
    [
      'one variant',
      documentOf({ ...experiment, variants: [{ key: 'a', weight: 100, value: true }] }),
      'filters.rules.0.variants invalid_input',
    ],
    [
      'weights that sum to 99.99',
      documentOf({
        ...experiment,
        variants: [
          { key: 'a', weight: 50, value: true },
          { key: 'b', weight: 49.99, value: true },
        ],
      }),
      'filters.rules.0.variants invalid_input',
    ],
    [
      'a repeated variant',
      documentOf({
        ...experiment,
        variants: [
          { key: 'a', weight: 50, value: true },
          { key: 'a', weight: 50, value: true },
        ],
      }),
      'filters.rules.0.variants.1.key invalid_input',
    ],
    [
      'a holdout with an id but no experiment',
      documentOf({ ...experiment, holdout: { id: 1, seed: 's', exclusion_percentage: 1 } }),
      'filters.rules.0.holdout.id invalid_input',
    ],
    ['an empty text', typed('string', ''), 'filters.rules.0.value invalid_input'],
    ['a text for a number', typed('number', '1'), 'filters.rules.0.value invalid'],
    ['2^53', typed('number', 2 ** 53), 'filters.rules.0.value invalid_input'],
    ['2^53 within an object', typed('object', { a: [2 ** 53] }), 'filters.rules.0.value invalid_input'],
    ['21 levels', typed('object', { a: nested(20) }), 'filters.rules.0.value invalid_input'],
    ['a list for an object', typed('object', []), 'filters.rules.0.value invalid'],
    [
      'a cohort',
      withPredicate({ key: 'id', type: 'cohort', value: 1 }),
      'filters.rules.0.targeting.properties.0.type invalid_input',
    ],
    ['no type', withPredicate({ key: 'a', value: 1 }), 'filters.rules.0.targeting.properties.0.type required'],
    [
      'an empty key',
      withPredicate({ key: '', type: 'person', value: 1 }),
      'filters.rules.0.targeting.properties.0.key invalid_input',
    ],
    ['more than 512 KiB', typed('string', 'x'.repeat(512 * 1024)), 'filters invalid_input'],
  ]
  for (const [what, document, fault] of faults) {
    it(`refuses ${what}`, () => assert.equal(faultOf(document), fault))
  }

  for (const [operator, good, bad] of [
    ['regex', '^a', 1],
    ['not_ends_with', 'a', ['a']],
    ['icontains_multi', ['a'], 'a'],
    ['gte', '5', true],
    ['lt', 5, [5]],
    ['semver_gt', '1.2.3', 'new'],
    ['semver_wildcard', '1.2.*', 1.2],
    ['is_date_before', '-7d', 'soon'],
    ['is_date_exact', '2026-01-31', 1],
  ] as const) {
    const of = (value: JsonValue) => faultOf(withPredicate({ key: 'a', type: 'person', operator, value }))
    it(`takes ${JSON.stringify(good)} for ${operator}, not ${JSON.stringify(bad)}`, () => {
      assert.equal(of(good as JsonValue), null)
      assert.equal(of(bad as JsonValue), 'filters.rules.0.targeting.properties.0.value invalid_input')
      assert.equal(of(null), 'filters.rules.0.targeting.properties.0.value required')
    })
  }

  for (const operator of ['between', 'in', 'flag_evaluates_to', 'EXACT', 'min']) {
    it(`knows no operator ${operator}`, () => {
      const fault = faultOf(withPredicate({ key: 'a', type: 'person', operator, value: [1, 2] }))
      assert.equal(fault, 'filters.rules.0.targeting.properties.0.operator invalid_input')
    })
  }

  for (const [literal, isFine] of [
    ['0', true],
    ['12.34', true],
    ['12.340', true],
    ['1e1', true],
    ['125e-1', true],
    ['1000e-3', true],
    ['0.000', true],
    ['0e-9', true],
    ['1e-3', false],
    ['12.345', false],
    ['12.340000000000000000001', false],
    ['100.0000000000000000001', false],
    ['1e-400', false],
    ['-1', false],
  ] as const) {
    it(`${isFine ? 'takes' : 'refuses'} the percentage ${literal}, as it is written`, () => {
      const text = JSON.stringify(documentOf(rollout)).replace(
        '"rollout_percentage":25',
        `"rollout_percentage":${literal}`,
      )
      const fault = isFine ? null : 'filters.rules.0.rollout_percentage invalid_input'
      assert.equal(faultOf(parseJson(text) as JsonObject), fault)
    })
  }

  it('refuses numbers outside the range of doubles, even where no code reads them', () => {
    for (const literal of ['1e400', '1e-400']) {
      const text = JSON.stringify(documentOf({ ...release, metadata: { a: 0 } })).replace('"a":0', `"a":${literal}`)
      assert.equal(faultOf(parseJson(text) as JsonObject), 'filters invalid_input')
    }
  })

  it('accepts values just within the limits', () => {
    assert.equal(faultOf(documentOf({ ...rollout, seed: '😀'.repeat(400) })), null)
    assert.equal(faultOf(typed('object', { a: nested(19) })), null)
    assert.equal(faultOf(typed('number', -(2 ** 53 - 1))), null)
    const thirds = [33.33, 33.33, 33.34].map((weight, index) => ({ key: `v${index}`, weight, value: true }))
    assert.equal(faultOf(documentOf({ ...experiment, variants: thirds })), null)
    const property = { key: 'a', type: 'person', operator: 'regex', value: '(?=a)' }
    assert.equal(faultOf(withPredicate({ ...property, group_type_index: null, group_key_names: { a: 'b' } })), null)
  })
})
