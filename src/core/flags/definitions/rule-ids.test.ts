import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { experiment, release, rollout, rulesDocument } from '../../../../tests/support/flag-documents.ts'
import type { JsonObject, JsonValue } from '../../json.ts'
import { assignRuleIds, copyExperimentsFrom, prepareRulesForCopy } from './rule-ids.ts'

function uuids(): () => string {
  let count = 0
  return () => `uuid-${++count}`
}

function documentOf(...rules: JsonValue[]): JsonObject {
  return { version: 2, return_type: 'boolean', default_value: null, rules }
}

/** Without its seeds. */
function bare({ seed: _, ...rule }: JsonObject): JsonObject {
  return rule
}

const rulesOf = (document: JsonObject) => document.rules as JsonObject[]
const stored = rulesDocument('boolean', null, [
  release(true),
  rollout(true, 25),
  experiment([true, false], { holdout: { id: null, seed: 'held', exclusion_percentage: 5 } }),
])
const [first, second, third] = rulesOf(stored) as [JsonObject, JsonObject, JsonObject]

function identified(document: JsonObject, before: JsonObject | null = stored): JsonObject | string {
  const result = assignRuleIds(document, before, uuids())
  return result.ok ? result.value : `${result.error.path} ${result.error.code}`
}

describe('the ids and seeds of rules', () => {
  it('are generated for a rule without an id, with a seed if rules of its type have one', () => {
    const holdout = { id: null, exclusion_percentage: 5 }
    const sent = documentOf(release(true), bare(rollout(true, 5)), bare(experiment([true, false], { holdout })))
    assert.deepEqual(
      rulesOf(identified(sent, null) as JsonObject).map(({ id, seed, holdout }) => [id, seed, holdout]),
      [
        ['uuid-1', undefined, undefined],
        ['uuid-2', 'uuid-3', undefined],
        ['uuid-4', 'uuid-5', { ...holdout, seed: 'uuid-6' }],
      ],
    )
  })

  it('stay the same for a rule that is sent with its id, wherever it moves and whatever else in it changes', () => {
    const holdout = { id: null, exclusion_percentage: 50 }
    const moved = documentOf({ ...bare(third), holdout }, { ...bare(second), rollout_percentage: 99 }, first)
    assert.deepEqual(rulesOf(identified(moved) as JsonObject), [
      { ...third, holdout: { ...holdout, seed: 'held' } },
      { ...second, rollout_percentage: 99 },
      first,
    ])
  })

  it('do not change when the client sends the stored document back', () => assert.deepEqual(identified(stored), stored))

  it('are kept if a rollout becomes an experiment; the seed is dropped if the rule then matches everyone', () => {
    const split = bare({ ...experiment([true, false]), id: second.id! })
    const [asExperiment] = rulesOf(identified(documentOf(split)) as JsonObject)
    assert.equal(asExperiment!.seed, second.seed)
    const [asRelease] = rulesOf(identified(documentOf({ ...release(true), id: second.id! })) as JsonObject)
    assert.ok(!('seed' in asRelease!))
  })

  for (const [what, document, fault] of [
    ['an unknown id', documentOf({ ...first, id: 'mine' }), 'filters.rules.0.id'],
    ['a null id', documentOf({ ...first, id: null }), 'filters.rules.0.id'],
    ['a repeated id', documentOf(first, second, first), 'filters.rules.2.id'],
    ['a seed of a new rule', documentOf(rollout(true, 5)), 'filters.rules.0.seed'],
    ['a changed seed', documentOf(first, { ...second, seed: 'mine' }), 'filters.rules.1.seed'],
    ['a null seed', documentOf({ ...second, seed: null }), 'filters.rules.0.seed'],
    [
      'a changed seed of a holdout',
      documentOf({ ...third, holdout: { id: null, seed: 'mine', exclusion_percentage: 5 } }),
      'filters.rules.0.holdout.seed',
    ],
  ] as const)
    it(`are refused with ${what}`, () => assert.equal(identified(document), `${fault} invalid_input`))

  it('are not generated if the list of rules is malformed, which the reader then reports', () => {
    for (const rules of [null, 'rules', [1, null]]) {
      const document = { ...stored, rules }
      assert.deepEqual(identified(document), document)
    }
  })
})

describe('rules copied to another flag', () => {
  it('keep their ids and get new seeds if the target flag does not exist', () => {
    const copy = prepareRulesForCopy(stored, null, uuids())
    assert.deepEqual(
      rulesOf(copy).map(({ id, seed }) => [id, seed]),
      [
        [first.id, undefined],
        [second.id, 'uuid-1'],
        [third.id, 'uuid-2'],
      ],
    )
    assert.deepEqual(prepareRulesForCopy(stored, copy, uuids()), copy, 'a second copy changes nothing')
  })

  it('get the seeds of the rules with the same ids in the existing target flag', () => {
    const there = documentOf({ ...second, seed: 'there' })
    const copy = rulesOf(prepareRulesForCopy(stored, there, uuids()))
    assert.deepEqual([copy[1]!.seed, copy[2]!.seed], ['there', third.seed])
  })

  it('belong to the experiments of the target flag, or to none if it has none', () => {
    const holdout = { id: 4, seed: 'held', exclusion_percentage: 5 }
    const linked = documentOf(first, { ...third, experiment_id: 7, holdout })
    const unlinked = documentOf(first, { ...third, experiment_id: null, holdout: { ...holdout, id: null } })
    assert.deepEqual(copyExperimentsFrom(linked, null), unlinked)
    assert.deepEqual(copyExperimentsFrom(linked, documentOf({ ...third, id: 'another' })), unlinked)
    assert.deepEqual(copyExperimentsFrom(unlinked, linked), linked)
  })

  it('stay malformed if they were malformed', () => {
    for (const rule of [
      { ...third, experiment_id: undefined },
      { ...third, experiment_id: '7' },
      { ...third, holdout: { seed: 'held' } },
      'none',
    ]) {
      const malformed = JSON.parse(JSON.stringify(documentOf(first, rule as JsonObject))) as JsonObject
      assert.deepEqual(copyExperimentsFrom(malformed, null), malformed)
    }
  })
})
