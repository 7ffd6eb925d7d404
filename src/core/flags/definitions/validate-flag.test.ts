import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type JsonObject, parseJson } from '../../json.ts'
import type { FlagIssue } from './flag-issue.ts'
import { flagEntryCountMax, validateFlag } from './validate-flag.ts'

/** `path code` of every issue of the filters. */
function wrong(filters: string): string[] {
  return validateFlag({ filters: parseJson(filters) }).map(
    ({ path, code }) => `${path.replace(/^filters\./, '')} ${code}`,
  )
}

function wrongFilter(filter: string): string[] {
  return wrong(`{"groups":[{"properties":[${filter}]}]}`).map(text => text.replace('groups.0.properties.0', ''))
}

describe('validateFlag', () => {
  it('refuses more sets, filters and variants than a flag may have, without checking them', () => {
    const many = Array.from({ length: 200_000 }, () => 0)
    const most = Array.from({ length: flagEntryCountMax - 1 }, () => 0)
    const refused: [JsonObject, string][] = [
      [{ groups: many }, 'groups'],
      [{ groups: [{ properties: many }] }, 'groups.0.properties'],
      [{ groups: [{ properties: most }, {}] }, 'groups.0.properties'],
      [{ groups: [], multivariate: { variants: many } }, 'multivariate.variants'],
      [{ groups: [], super_groups: many }, 'super_groups'],
      [{ groups: [], holdout_groups: many }, 'holdout_groups'],
      [{ groups: most, multivariate: { variants: [0, 0] } }, 'multivariate.variants'],
    ]
    for (const [filters, path] of refused)
      assert.deepEqual(
        validateFlag({ filters }).map(issue => [issue.path, issue.code]),
        [[`filters.${path}`, 'invalid_input']],
      )
    assert.equal(validateFlag({ filters: { groups: [{ properties: most }] } }).length, most.length)
    const slips = Object.fromEntries(Array.from({ length: 60 }, (_, index) => [`operato${index}`, 1]))
    const issues = validateFlag({ filters: { groups: [{ properties: Array.from({ length: 4_000 }, () => slips) }] } })
    assert.equal(issues.filter(({ message }) => message.startsWith('Unknown field')).length, 1_000)
  })

  it('refuses misspelt names of known fields, and keeps other unknown fields', () => {
    assert.deepEqual(wrong('{"group":[],"Groups":[],"groups":[{"rollout_percentge":5,"propertes":[]},1]}'), [
      'group invalid_input',
      'Groups invalid_input',
      'groups.0.rollout_percentge invalid_input',
      'groups.0.propertes invalid_input',
      'groups.1 invalid',
    ])
    assert.deepEqual(wrong('{"groups":[],"super_groups":[{"varaint":"a"}]}'), ['super_groups.0.varaint invalid_input'])
    const ofTools = '"users_affected":1,"description":"","sort_key":"a","constructor":1,"__proto__":{}'
    assert.deepEqual(wrong(`{"groups":[{"rollout_percentage":5,${ofTools}}],"properties":[],${ofTools}}`), [])
    const [issue] = validateFlag({ filters: { group: [], groups: [] } })
    assert.equal(issue?.message, 'Unknown field group. Did you mean groups?')
    const [unversioned] = validateFlag({ filters: { rules: [] } })
    assert.match(unversioned!.message, /^Unknown field rules\. .* a document with "version": 2\?$/)
  })

  it('refuses misspelt names at every level, and names that other products use for a field', () => {
    const refused: [string, string[]][] = [
      ['{"groups":[{"rollout":50}]}', ['groups.0.rollout']],
      ['{"groups":[{"percentage":10}]}', ['groups.0.percentage']],
      ['{"groups":[{"conditions":[]},{"filters":[]}]}', ['groups.0.conditions', 'groups.1.filters']],
      ['{"groups":[],"variants":[],"conditions":[]}', ['variants', 'conditions']],
      ['{"groups":[],"rollout_percentage":5}', ['rollout_percentage']],
      ['{"groups":[],"multivariate":{"variant":[]}}', ['multivariate.variant']],
      [
        '{"groups":[],"multivariate":{"variants":[{"key":"a","rollout_percentage":100,"nane":""}]}}',
        ['multivariate.variants.0.nane'],
      ],
      [
        '{"groups":[],"holdout":{"id":1,"exclusion_percentage":1,"exclusion_percentge":2}}',
        ['holdout.exclusion_percentge'],
      ],
      ['{"groups":[],"holdout_groups":[{"percentage":2}]}', ['holdout_groups.0.percentage']],
    ]
    for (const name of ['operatr', 'Operator', 'operator_', 'op', 'values', 'group_type', 'negaton'])
      refused.push([
        `{"groups":[{"properties":[{"key":"a","type":"person","value":1,"${name}":null}]}]}`,
        [`groups.0.properties.0.${name}`],
      ])
    for (const [filters, paths] of refused)
      assert.deepEqual(
        wrong(filters),
        paths.map(path => `${path} invalid_input`),
      )
    const meant = (filters: string) => validateFlag({ filters: parseJson(filters) })[0]?.message
    assert.equal(meant('{"variants":[]}'), 'Unknown field variants. Did you mean multivariate.variants?')
    assert.equal(
      meant('{"groups":[{"properties":[{"key":"a","type":"person","value":1,"Operator":"is_not"}]}]}'),
      'Unknown field Operator. Did you mean operator?',
    )
  })

  it('accepts names that resemble no known field, such as those that PostHog’s own tools send', () => {
    const ofFilter = '"label":"x","cohort_name":"x","group_key_names":{},"uuid":"x","bytecode":[],"description":""'
    const ofVariant = '"id":1,"description":"","sort_key":"x","uuid":"x"'
    const filters = `{"groups":[{"properties":[{"key":"a","type":"person","value":1,${ofFilter}}],"uuid":"x"}],
      "multivariate":{"variants":[{"key":"a","rollout_percentage":100,${ofVariant}}],"description":""},
      "holdout":{"id":1,"exclusion_percentage":1,"name":"x"}}`
    assert.deepEqual(wrong(filters), [])
  })

  it('finds a misspelt name in the last of many filters that all have unknown fields', () => {
    const named = '{"key":"a","type":"person","value":1,"label":"x","cohort_name":"y"}'
    const slip = '{"key":"a","type":"person","value":1,"operatr":"is_not"}'
    const properties = [...Array.from({ length: 500 }, () => named), slip].join()
    assert.deepEqual(wrong(`{"groups":[{"properties":[${properties}]}]}`), [
      'groups.0.properties.500.operatr invalid_input',
    ])
  })

  it('accepts a definition that uses every feature', () => {
    const filters = `{
      "groups": [
        {"properties": [
          {"key":"plan","type":"person","value":["pro",1.50],"operator":"exact"},
          {"key":"email","type":"person","value":"@x\\\\.y$","operator":"regex"},
          {"key":"age","type":"person","value":"18","operator":"gte"},
          {"key":"age","type":"person","value":[1,"9.5"],"operator":"between"},
          {"key":"seen","type":"person","value":"-7d","operator":"is_date_after"},
          {"key":"v","type":"person","value":"1.2.*","operator":"semver_wildcard"},
          {"key":"x","type":"person","operator":"is_not_set"},
          {"key":"created_at","type":"person_metadata","value":"2026-01-01","operator":"is_date_before"},
          {"key":"size","type":"group","group_type_index":0,"value":5,"operator":"gt"},
          {"key":"id","type":"cohort","value":"12"},
          {"key":"id","type":"cohort","value":12,"operator":"not_in","negation":false},
          {"key":"3","type":"flag","value":"blue","operator":"flag_evaluates_to"}
        ], "rollout_percentage": 12.5, "variant": "a", "aggregation_group_type_index": null, "sort_key": "x"},
        {"properties": null, "rollout_percentage": null, "variant": null}
      ],
      "multivariate": {"variants": [
        {"key":"a","rollout_percentage":33.33},{"key":"b","rollout_percentage":33.33},{"key":"c","rollout_percentage":33.34}
      ]},
      "payloads": {"a": "{\\"x\\": 1}"}, "aggregation_group_type_index": 1, "feature_enrollment": true, "early_exit": null,
      "super_groups": null, "holdout": {"id": 1, "exclusion_percentage": 10},
      "holdout_groups": [{"rollout_percentage": 5, "variant": "holdout-1"}]
    }`
    assert.deepEqual(wrong(filters), [])
    assert.deepEqual(wrong('{"groups":[],"multivariate":null,"payloads":null}'), [])
    assert.deepEqual(wrong('{"groups":[],"multivariate":{"variants":[]}}'), [])
  })

  const keys: [string, string[]][] = [
    ['A-b_9', []],
    ['k'.repeat(400), []],
    ['k'.repeat(401), ['key invalid_input']],
    ['with space', ['key invalid_input']],
    ['über', ['key invalid_input']],
    ['a\n', ['key invalid_input']],
  ]
  for (const [key, expected] of keys) {
    it(`${expected.length === 0 ? 'takes' : 'refuses'} the key ${JSON.stringify(key.slice(0, 12))} (${key.length})`, () => {
      assert.deepEqual(
        validateFlag({ key }).map(({ path, code }) => `${path} ${code}`),
        expected,
      )
    })
  }

  const definitions: [string, string[]][] = [
    ['[]', ['filters invalid']],
    ['1.0', ['filters invalid']],
    ['{}', ['groups required']],
    ['{"groups":{}}', ['groups invalid']],
    ['{"groups":null}', ['groups invalid']],
    ['{"groups":[1,[]]}', ['groups.0 invalid', 'groups.1 invalid']],
    ['{"groups":[{"properties":{}}]}', ['groups.0.properties invalid']],
    ['{"groups":[{"rollout_percentage":100.1}]}', ['groups.0.rollout_percentage invalid_input']],
    ['{"groups":[{},{"rollout_percentage":-1}]}', ['groups.1.rollout_percentage invalid_input']],
    ['{"groups":[{"rollout_percentage":1e99}]}', ['groups.0.rollout_percentage invalid_input']],
    ['{"groups":[{"rollout_percentage":"50"}]}', ['groups.0.rollout_percentage invalid']],
    ['{"groups":[{"rollout_percentage":true}]}', ['groups.0.rollout_percentage invalid']],
    ['{"groups":[{"rollout_percentage":100.0}]}', []],
    ['{"groups":[{"variant":1}]}', ['groups.0.variant invalid']],
    ['{"groups":[{"aggregation_group_type_index":5}]}', ['groups.0.aggregation_group_type_index invalid_input']],
    ['{"groups":[],"aggregation_group_type_index":"0"}', ['aggregation_group_type_index invalid']],
    ['{"groups":[],"multivariate":[]}', ['multivariate invalid']],
    ['{"groups":[],"multivariate":{"variants":{}}}', ['multivariate.variants invalid']],
    [
      '{"groups":[],"multivariate":{"variants":[{"key":"a","rollout_percentage":50},{"key":"b","rollout_percentage":49}]}}',
      ['multivariate.variants invalid_input'],
    ],
    [
      '{"groups":[],"multivariate":{"variants":[{"key":"a","rollout_percentage":50},{"key":"a","rollout_percentage":50}]}}',
      ['multivariate.variants.1.key invalid_input'],
    ],
    [
      '{"groups":[],"multivariate":{"variants":[{"rollout_percentage":150},{"key":1},{"key":""}]}}',
      [
        'multivariate.variants.0.key required',
        'multivariate.variants.0.rollout_percentage invalid_input',
        'multivariate.variants.1.key invalid',
        'multivariate.variants.1.rollout_percentage required',
        'multivariate.variants.2.key invalid_input',
        'multivariate.variants.2.rollout_percentage required',
      ],
    ],
    ['{"groups":[],"payloads":"x"}', ['payloads invalid']],
    ['{"groups":[],"feature_enrollment":1}', ['feature_enrollment invalid']],
    ['{"groups":[],"super_groups":[{"rollout_percentage":200}]}', ['super_groups.0.rollout_percentage invalid_input']],
    ['{"groups":[],"holdout":{"id":1}}', ['holdout.exclusion_percentage required']],
    [
      '{"groups":[],"holdout_groups":[{"rollout_percentage":101}]}',
      ['holdout_groups.0.rollout_percentage invalid_input'],
    ],
    ['{"__proto__":{"groups":[]}}', ['groups required']],
    ['{"groups":[{"__proto__":{"rollout_percentage":900},"constructor":1}]}', []],
  ]
  for (const [filters, expected] of definitions) {
    it(`${filters} → ${expected.join(', ') || 'fine'}`, () => assert.deepEqual(wrong(filters), expected))
  }

  const filters: [string, string[]][] = [
    ['1', [' invalid']],
    ['{"key":"a","value":1}', ['.type required']],
    ['{"key":"a","type":null,"value":1}', ['.type required']],
    ['{"key":"a","type":"people","value":1}', ['.type invalid_input']],
    ['{"type":"person","value":1}', ['.key required']],
    ['{"key":1,"type":"person","value":1}', ['.key invalid']],
    ['{"key":"a","type":"person","value":1,"operator":"equals"}', ['.operator invalid_input']],
    ['{"key":"a","type":"person","value":1,"operator":"constructor"}', ['.operator invalid_input']],
    ['{"key":"a","type":"person","value":1,"operator":5}', ['.operator invalid']],
    ['{"key":"a","type":"person","value":1,"operator":"in"}', ['.operator invalid_input']],
    ['{"key":"a","type":"person","value":true,"operator":"flag_evaluates_to"}', ['.operator invalid_input']],
    ['{"key":"a","type":"person"}', ['.value required']],
    ['{"key":"a","type":"person","value":null,"operator":"is_not"}', ['.value required']],
    ['{"key":"a","type":"person","value":[],"operator":"gt"}', ['.value invalid_input']],
    ['{"key":"a","type":"person","value":{},"operator":"icontains"}', ['.value invalid_input']],
    ['{"key":"a","type":"person","value":[5,1],"operator":"between"}', ['.value invalid_input']],
    ['{"key":"a","type":"person","value":[" 1","0x9"],"operator":"not_between"}', ['.value invalid_input']],
    ['{"key":"a","type":"person","value":["nan",1],"operator":"between"}', ['.value invalid_input']],
    ['{"key":"a","type":"person","value":"old","operator":"gt"}', ['.value invalid_input']],
    ['{"key":"a","type":"person","value":"nan","operator":"lte"}', ['.value invalid_input']],
    ['{"key":"a","type":"person","value":"1e3","operator":"gte"}', []],
    ['{"key":"a","type":"person","value":"inf","operator":"lt"}', []],
    ['{"key":"a","type":"person","value":1.50,"operator":"lt"}', []],
    ['{"key":"a","type":"person","value":5,"operator":"is_date_before"}', ['.value invalid_input']],
    ['{"key":"a","type":"person","value":"soon","operator":"is_date_after"}', ['.value invalid_input']],
    ['{"key":"a","type":"person","value":"2026-02-30","operator":"is_date_exact"}', ['.value invalid_input']],
    ['{"key":"a","type":"person","value":"2026-02-28 10:00","operator":"is_date_exact"}', []],
    ['{"key":"a","type":"person","value":"latest","operator":"semver_gt"}', ['.value invalid_input']],
    ['{"key":"a","type":"person","value":"1.2.3.4","operator":"semver_neq"}', ['.value invalid_input']],
    ['{"key":"a","type":"person","value":"1.2.*","operator":"semver_eq"}', ['.value invalid_input']],
    ['{"key":"a","type":"person","value":">=1.2","operator":"semver_wildcard"}', ['.value invalid_input']],
    ['{"key":"a","type":"person","value":1.5,"operator":"semver_gte"}', []],
    ['{"key":"a","type":"person","value":"(","operator":"regex"}', ['.value invalid_input']],
    ['{"key":"a","type":"person","value":"(?=x)","operator":"not_regex"}', ['.value invalid_input']],
    ['{"key":"a","type":"person","value":5,"operator":"regex"}', ['.value invalid_input']],
    ['{"key":"a","type":"group","group_type_index":7,"value":1}', ['.group_type_index invalid_input']],
    ['{"key":"id","type":"cohort"}', ['.value required']],
    ['{"key":"id","type":"cohort","value":"all"}', ['.value invalid_input']],
    ['{"key":"id","type":"cohort","value":1,"operator":"exact"}', ['.operator invalid_input']],
    ['{"key":"beta","type":"flag","value":true,"operator":"flag_evaluates_to"}', ['.key invalid_input']],
    ['{"key":"1","type":"flag","value":true}', ['.operator invalid_input']],
    ['{"key":"1","type":"flag","value":1,"operator":"flag_evaluates_to"}', ['.value invalid_input']],
  ]
  for (const [filter, expected] of filters) {
    it(`${filter} → ${expected.join(', ')}`, () => assert.deepEqual(wrongFilter(filter), expected))
  }

  it('says why a regular expression is refused', () => {
    const [issue] = validateFlag({
      filters: { groups: [{ properties: [{ key: 'a', type: 'person', operator: 'regex', value: '(?=x)' }] }] },
    })
    assert.match(issue!.message, /look-ahead/)
    assert.equal(issue!.path, 'filters.groups.0.properties.0.value')
  })

  function refusedPatterns(patterns: readonly string[]): FlagIssue[] {
    const properties = patterns.map(value => ({ key: 'a', type: 'person', operator: 'regex', value }))
    return validateFlag({ filters: { groups: [{ properties }] } })
  }
  const manyPatterns = (pattern: string, count: number) =>
    Array.from({ length: count }, (_, index) => `${pattern}${index}`)

  it('refuses regular expressions that are too large in total, whatever each of them costs', () => {
    const refused = (patterns: readonly string[]) => refusedPatterns(patterns).length
    assert.equal(refused(manyPatterns('a'.repeat(996), 3_000)), 3_000 - 5)
    assert.equal(refused(manyPatterns('\\w'.repeat(100), 3_000)), 3_000 - 1)
    assert.equal(refused(manyPatterns('a{900}', 3_000)), 3_000 - 16)
    const [issue] = refusedPatterns(manyPatterns('a{900}', 17))
    assert.equal(issue!.path, 'filters.groups.0.properties.16.value')
    assert.match(issue!.message, /too large in total/)
  })

  it('accepts any number of filters with the same regular expression, and a hundred different ordinary expressions', () => {
    const usual = String.raw`^[\w.+-]+@customer\.example$`
    assert.deepEqual(refusedPatterns(Array.from({ length: 1_000 }, () => usual)), [])
    assert.deepEqual(refusedPatterns(manyPatterns(usual, 100)), [])
  })

  it('accepts only known runtimes and bucketing identifiers', () => {
    assert.deepEqual(validateFlag({ evaluationRuntime: 'client', bucketingIdentifier: null }), [])
    assert.deepEqual(
      validateFlag({ evaluationRuntime: 'edge', bucketingIdentifier: 'email' }).map(({ path }) => path),
      ['evaluation_runtime', 'bucketing_identifier'],
    )
  })
})
