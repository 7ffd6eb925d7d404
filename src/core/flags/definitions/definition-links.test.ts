import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { parseJson } from '../../json.ts'
import { hasGroupTypeReference, listFlagDependencies, listReferencesOfFlag } from './definition-links.ts'

const filtersOf = (text: string) => parseJson(text)

describe('references of a flag', () => {
  it('are the group types of the flag, of its condition sets and of their filters, each with its path', () => {
    const filters = filtersOf(`{
      "aggregation_group_type_index": 1,
      "groups": [
        {"aggregation_group_type_index": null, "properties": [{"key": "a", "type": "group", "group_type_index": 3, "value": 1}]},
        {"aggregation_group_type_index": 0.0, "properties": []}
      ],
      "super_groups": [{"properties": [{"key": "1", "type": "flag", "value": true}]}],
      "payloads": {"aggregation_group_type_index": 4}
    }`)
    assert.deepEqual(
      listReferencesOfFlag(filters).map(({ kind, id, path }) => `${kind} ${id} ${path}`),
      [
        'group_type 1 filters.aggregation_group_type_index',
        'group_type 3 filters.groups.0.properties.0.group_type_index',
        'group_type 0 filters.groups.1.aggregation_group_type_index',
        'flag 1 filters.super_groups.0.properties.0.key',
      ],
    )
    assert.deepEqual(
      [0, 1, 2, 3, 4].filter(index => hasGroupTypeReference(filters, index)),
      [0, 1, 3],
    )
  })

  it('exclude group type indexes outside 0 to 4, and are empty for malformed filters', () => {
    for (const text of ['{"aggregation_group_type_index": 5}', '{"groups": [{"aggregation_group_type_index": -1}, 7]}'])
      assert.deepEqual(listReferencesOfFlag(filtersOf(text)), [], text)
    for (const text of ['{"aggregation_group_type_index": "0"}', '{"groups": [null, {"properties": [null]}]}', '[]'])
      assert.deepEqual(listReferencesOfFlag(filtersOf(text)), [], text)
  })
})

it('rules refer only to their experiments', () => {
  const ids = ['7', '7.0', '1e400', '1.5', '"7"', 'null']
  const rules = ids.map(id => `{"rule_type": "experiment", "experiment_id": ${id}}`).join()
  const filters = parseJson(
    `{"version": 2, "rules": [null, ${rules}], "groups": [], "aggregation_group_type_index": 0}`,
  )
  assert.deepEqual(
    listReferencesOfFlag(filters),
    [1, 2].map(rule => ({ kind: 'experiment', id: 7, path: `filters.rules.${rule}.experiment_id` })),
  )
})

it('a flag depends on the flags that it tests itself or through its cohorts, but never on itself', () => {
  const linked = (id: number, flagIds: number[], cohortIds: number[]) => {
    return { id, name: '', flagIds, cohortIds, experimentIds: [] }
  }
  const dependenciesOf = listFlagDependencies({
    ...{ revision: 1, groupTypes: [], experimentIds: [] },
    flags: [linked(1, [2, 9], [1]), linked(2, [], []), linked(3, [3], [3])],
    cohorts: [linked(1, [], [2]), linked(2, [3], [1, 7]), linked(3, [3, 2], [])],
  })
  assert.deepEqual(
    [1, 2, 3, 4].map(id => dependenciesOf(id)),
    [[2, 9, 3], [], [2], []],
  )
})
