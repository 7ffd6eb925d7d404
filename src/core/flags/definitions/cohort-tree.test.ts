import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type JsonObject, type JsonValue, parseJson } from '../../json.ts'
import { readCohortTree } from './cohort-tree.ts'
import { UnreadableFilters } from './flag-filters.ts'

const plan = { key: 'plan', type: 'person', value: 'pro', operator: 'exact' }

function tree(...values: JsonValue[]): JsonObject {
  return { properties: { type: 'OR', values } }
}

/** A leaf with `groupCount` groups between it and the top group. */
function nested(groupCount: number, innermost: JsonValue[] = [plan]): JsonObject {
  let values: JsonValue[] = innermost
  for (let count = 0; count < groupCount; count++) values = [{ type: count % 2 === 0 ? 'AND' : 'OR', values }]
  return tree(...values)
}

describe('the tree of a cohort', () => {
  it('may mix groups and conditions at any depth, and lists each of its references once', () => {
    const read = readCohortTree(
      tree(
        { type: 'cohort', key: 'id', value: '7', operator: 'not_in' },
        {
          type: 'property',
          values: [plan, { type: 'flag', key: '12', value: true, operator: 'flag_evaluates_to', negation: true }],
        },
        {
          type: 'AND',
          values: [
            { type: 'cohort', key: 'id', value: 7 },
            { type: 'flag', key: 'x', value: true },
          ],
        },
      ),
    )!
    assert.deepEqual(read.cohortIds, [7])
    assert.deepEqual(read.flagIds, [12])
    assert.equal(read.hasBehavior, false)
    assert.ok(read.top.kind === 'group' && read.top.isAny)
    const [reference, group] = read.top.entries
    assert.ok(reference?.kind === 'cohort')
    assert.deepEqual([reference.id, reference.wanted, reference.isNegated], [7, false, false])
    assert.ok(group?.kind === 'group' && !group.isAny && group.entries.length === 2)
    assert.ok(group.entries[1]?.kind === 'test' && group.entries[1].isNegated)
  })

  it('is null if the filters contain nothing', () => {
    assert.equal(readCohortTree({}), null)
    assert.equal(readCohortTree({ properties: null }), null)
  })

  it('has at most 64 groups between the root and a condition', () => {
    assert.ok(readCohortTree(nested(64)))
    assert.throws(() => readCohortTree(nested(65)), UnreadableFilters)
    assert.ok(readCohortTree(nested(65, [])), 'the innermost group is an entry with 64 groups above it')
    assert.throws(() => readCohortTree(nested(100_000)), UnreadableFilters)
  })

  it('is not read from filters of any other shape', () => {
    const shapes: JsonValue[] = [
      'text',
      [],
      7,
      {},
      { type: 'XOR', values: [] },
      { type: 'and', values: [] },
      { type: 'person', values: [] },
      { type: 'OR' },
      { type: 'OR', values: {} },
      { type: 'OR', values: [null] },
      { type: 'OR', values: ['plan'] },
      { type: 'OR', values: [[plan]] },
      { type: 'OR', values: [{ key: 'plan', value: 'pro' }] },
      { type: 'OR', values: [{ ...plan, type: 'hogql' }] },
      { type: 'OR', values: [{ ...plan, operator: 'like' }] },
      { type: 'OR', values: [{ ...plan, operator: 3 }] },
      { type: 'OR', values: [{ ...plan, negation: 'yes' }] },
      { type: 'OR', values: [{ ...plan, values: [] }] },
      { type: 'OR', values: [{ type: 'person', value: 'pro' }] },
      { type: 'OR', values: [{ type: 'NOT', values: [plan] }] },
      { type: 'OR', values: [{ type: 'cohort', key: 'id', value: 'pro-users' }] },
      { type: 'OR', values: [{ type: 'cohort', key: 'id', value: 1.5 }] },
      { type: 'OR', values: [{ type: 'cohort', key: 'id', value: null }] },
      { type: 'OR', values: [{ type: 'cohort', key: 'id', value: [1] }] },
    ]
    for (const properties of shapes)
      assert.throws(() => readCohortTree({ properties }), UnreadableFilters, JSON.stringify(properties))
  })

  it('is read only from own keys of the objects', () => {
    for (const text of [
      '{"properties": {"__proto__": {"type": "OR", "values": []}}}',
      '{"properties": {"type": "OR", "values": [{"__proto__": {"type": "person", "key": "a"}}]}}',
    ])
      assert.throws(() => readCohortTree(parseJson(text) as JsonObject), UnreadableFilters, text)
    assert.equal(
      readCohortTree(parseJson('{"__proto__": {"properties": {"type": "OR", "values": []}}}') as JsonObject),
      null,
    )
  })
})
