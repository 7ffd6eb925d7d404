import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type JsonObject, type JsonValue, parseJson } from '../../json.ts'
import { readConfigVersion, readRules } from './read-rules.ts'

const id = '11111111-1111-4111-8111-111111111111'
const otherId = '22222222-2222-4222-8222-222222222222'
const thirdId = '33333333-3333-4333-8333-333333333333'

const release = { id, rule_type: 'targeted_release', targeting: { properties: [] }, value: true }
const rolloutPart = {
  ...{ id, targeting: { properties: [] }, rollout_percentage: 25, on_rollout_miss: 'continue' },
  ...{ assignment_algorithm: 'sha1_60_v1', seed: 'a seed' },
}
const rollout = { ...rolloutPart, rule_type: 'percentage_rollout', value: true }
const variantsOf = (...weights: number[]) => weights.map((weight, place) => ({ key: `v${place}`, weight, value: true }))
const experiment = {
  ...{ ...rolloutPart, rule_type: 'experiment', experiment_id: null, paused: false },
  variants: variantsOf(33.33, 66.67),
}

function documentOf(...rules: JsonValue[]): JsonObject {
  return { version: 2, return_type: 'boolean', default_value: null, rules }
}

function typed(return_type: string, value: JsonValue): JsonObject {
  return { version: 2, return_type, default_value: null, rules: [{ ...release, value }] }
}

function withPredicate(predicate: JsonObject): JsonObject {
  return documentOf({ ...release, targeting: { properties: [{ key: 'a', type: 'person', ...predicate }] } })
}

/** `path code` of the first fault; null for a readable document. */
function faultOf(document: JsonObject): string | null {
  const read = readRules(document)
  return read.ok ? null : `${read.error.path} ${read.error.code}`
}

function nested(levels: number): JsonValue {
  return levels === 0 ? 1 : levels % 2 === 0 ? [nested(levels - 1)] : { a: nested(levels - 1) }
}

describe('readConfigVersion', () => {
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
    it(`is ${expected} for ${version}`, () => {
      assert.equal(readConfigVersion(parseJson(version) as JsonObject), expected)
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
        { ...experiment, id: thirdId, experiment_id: 7, holdout: { id: 3, seed: 'held', exclusion_percentage: 10 } },
      ),
      default_value: false,
    })
    const hashed = { rolloutPercentage: 25, continuesOnMiss: true, seed: 'a seed' }
    const predicates = [{ key: 'plan', operator: 'exact', value: 'pro', negation: true }]
    const holdout = { id: 3, seed: 'held', exclusionPercentage: 10 }
    const { variants } = experiment
    assert.deepEqual(read, {
      ok: true,
      value: {
        returnType: 'boolean',
        defaultValue: false,
        rules: [
          { type: 'targeted_release', id, predicates, value: true },
          { type: 'percentage_rollout', id: otherId, predicates: [], value: true, ...hashed },
          {
            ...{ type: 'experiment', id: thirdId, predicates: [], experimentId: 7, paused: false, variants, holdout },
            ...hashed,
          },
        ],
      },
    })
  })

  it('returns ids in lower case', () => {
    const read = readRules(documentOf({ ...release, id: 'ABCDEF00-1111-4111-8111-111111111111' }))
    assert.equal(read.ok && read.value.rules[0]?.id, 'abcdef00-1111-4111-8111-111111111111')
  })

  const ofRule = (rule: JsonObject, faults: Record<string, [over: JsonObject, fault: string]>) =>
    Object.entries(faults).map(
      ([what, [over, fault]]) => [what, documentOf({ ...rule, ...over }), `filters.rules.0.${fault}`] as const,
    )
  const { seed: _, ...withoutSeed } = rollout
  const faults: readonly (readonly [what: string, document: JsonObject, fault: string])[] = [
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
    ['more than 512 KiB', typed('string', 'x'.repeat(512 * 1024)), 'filters invalid_input'],
    ['no seed', documentOf(withoutSeed), 'filters.rules.0.seed required'],
    ...ofRule(release, {
      'an id without hyphens': [{ id: id.replaceAll('-', '') }, 'id invalid_input'],
      'an unknown rule type': [{ rule_type: 'x' }, 'rule_type invalid_input'],
      'an unknown field': [{ sort_key: 1 }, 'sort_key invalid_input'],
      'a field of another type': [{ seed: 'x' }, 'seed invalid_input'],
      'a null description': [{ description: null }, 'description invalid'],
      'metadata that is a list': [{ metadata: [] }, 'metadata invalid'],
    }),
    ...ofRule(rollout, {
      'an empty seed': [{ seed: '' }, 'seed invalid_input'],
      'a seed of 401 characters': [{ seed: '😀'.repeat(401) }, 'seed invalid_input'],
      'another algorithm': [{ assignment_algorithm: 'md5' }, 'assignment_algorithm invalid_input'],
      'another assignment': [{ assign_by: 'device' }, 'assign_by invalid_input'],
      '101 %': [{ rollout_percentage: 101 }, 'rollout_percentage invalid_input'],
      'a percentage as text': [{ rollout_percentage: '5' }, 'rollout_percentage invalid'],
    }),
    ...ofRule(experiment, {
      'an unpaused experiment': [{ paused: null }, 'paused invalid'],
      'half an experiment': [{ experiment_id: 1.5 }, 'experiment_id invalid'],
      'one variant': [{ variants: variantsOf(100) }, 'variants invalid_input'],
      'weights that sum to 99.99': [{ variants: variantsOf(50, 49.99) }, 'variants invalid_input'],
      'a repeated variant': [
        { variants: variantsOf(50, 50).map(variant => ({ ...variant, key: 'a' })) },
        'variants.1.key invalid_input',
      ],
      'a holdout with an id but no experiment': [
        { holdout: { id: 1, seed: 's', exclusion_percentage: 1 } },
        'holdout.id invalid_input',
      ],
    }),
    ['an empty text', typed('string', ''), 'filters.rules.0.value invalid_input'],
    ['a text for a number', typed('number', '1'), 'filters.rules.0.value invalid'],
    ['2^53', typed('number', 2 ** 53), 'filters.rules.0.value invalid_input'],
    ['2^53 within an object', typed('object', { a: [2 ** 53] }), 'filters.rules.0.value invalid_input'],
    ['21 levels', typed('object', { a: nested(20) }), 'filters.rules.0.value invalid_input'],
    ['a list for an object', typed('object', []), 'filters.rules.0.value invalid'],
    ...(
      [
        ['a cohort', { key: 'id', type: 'cohort', value: 1 }, 'type invalid_input'],
        ['no type', { type: undefined as never, value: 1 }, 'type required'],
        ['an empty key', { key: '', value: 1 }, 'key invalid_input'],
      ] as const
    ).map(
      ([what, over, fault]) => [what, withPredicate(over), `filters.rules.0.targeting.properties.0.${fault}`] as const,
    ),
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
    const of = (value: JsonValue) => faultOf(withPredicate({ operator, value }))
    it(`accepts ${JSON.stringify(good)} for ${operator}, but not ${JSON.stringify(bad)}`, () => {
      assert.equal(of(good as JsonValue), null)
      assert.equal(of(bad as JsonValue), 'filters.rules.0.targeting.properties.0.value invalid_input')
      assert.equal(of(null), 'filters.rules.0.targeting.properties.0.value required')
    })
  }

  for (const operator of ['between', 'in', 'flag_evaluates_to', 'EXACT', 'min']) {
    it(`refuses the operator ${operator}`, () => {
      const fault = faultOf(withPredicate({ operator, value: [1, 2] }))
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

  it('refuses numbers outside the range of doubles, even in fields that are not used', () => {
    for (const literal of ['1e400', '1e-400']) {
      const text = JSON.stringify(documentOf({ ...release, metadata: { a: 0 } })).replace('"a":0', `"a":${literal}`)
      assert.equal(faultOf(parseJson(text) as JsonObject), 'filters invalid_input')
    }
  })

  it('accepts values just within the limits', () => {
    assert.equal(faultOf(documentOf({ ...rollout, seed: '😀'.repeat(400) })), null)
    assert.equal(faultOf(typed('object', { a: nested(19) })), null)
    assert.equal(faultOf(typed('number', -(2 ** 53 - 1))), null)
    assert.equal(faultOf(documentOf({ ...experiment, variants: variantsOf(33.33, 33.33, 33.34) })), null)
    const property = { operator: 'regex', value: '(?=a)' }
    assert.equal(faultOf(withPredicate({ ...property, group_type_index: null, group_key_names: { a: 'b' } })), null)
  })
})
