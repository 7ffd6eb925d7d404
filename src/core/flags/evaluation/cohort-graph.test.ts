import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { aCohort as storedCohort } from '../../../../tests/support/values.ts'
import type { JsonValue } from '../../json.ts'
import type { Cohort } from '../definitions/cohort.ts'
import { CohortGraph } from './cohort-graph.ts'

function aCohort(id: number, values: readonly JsonValue[], over: Partial<Cohort> = {}): Cohort {
  return storedCohort({ id, filters: { properties: { type: 'AND', values: [...values] } }, ...over })
}
const cohort = (id: number) => ({ type: 'cohort', key: 'id', value: id })
const flag = (id: number) => ({ type: 'flag', key: String(id), value: true, operator: 'flag_evaluates_to' })

describe('the graph of cohorts', () => {
  it('returns each reached cohort once, after those it refers to, and reads no other cohort', () => {
    const graph = new CohortGraph([
      aCohort(1, [cohort(2), cohort(3)]),
      aCohort(2, [cohort(3)]),
      aCohort(3, []),
      aCohort(4, []),
    ])
    assert.deepEqual(
      graph.reach(1).map(node => node.cohort.id),
      [3, 2, 1],
    )
    assert.deepEqual(graph.reach(2), [])
    assert.equal(graph.node(4), undefined)
  })

  it('reports the fault of a cohort for that cohort and all that refer to it, whichever was reached first', () => {
    const cohorts = [
      aCohort(1, [cohort(2)]),
      aCohort(2, [cohort(1)]),
      aCohort(3, [cohort(77)]),
      aCohort(4, [cohort(1), cohort(3)]),
      aCohort(5, ['unreadable']),
      aCohort(6, [cohort(4), cohort(5)]),
      aCohort(7, [cohort(7)]),
      aCohort(8, [cohort(1)]),
      aCohort(9, [cohort(77)], { isStatic: true }),
    ]
    const expected = new Map([
      [1, 'dependency_cycle_cohort'],
      [2, 'dependency_cycle_cohort'],
      [3, 'dependency_not_found_cohort'],
      [4, 'dependency_not_found_cohort'],
      [5, 'cohort_filters_parsing_error'],
      [6, 'cohort_filters_parsing_error'],
      [7, 'dependency_cycle_cohort'],
      [8, 'dependency_cycle_cohort'],
      [9, null],
    ])
    fc.assert(
      fc.property(fc.shuffledSubarray([...expected.keys()], { minLength: 1 }), order => {
        const graph = new CohortGraph(cohorts)
        for (const id of order) graph.reach(id)
        for (const id of order) assert.equal(graph.node(id)!.fault, expected.get(id), `cohort ${id} after ${order}`)
      }),
    )
  })

  it('finds the flags that a cohort tests through other cohorts, even through faulty ones', () => {
    const graph = new CohortGraph([
      aCohort(1, [cohort(2), cohort(77)]),
      aCohort(2, [flag(12), cohort(3)]),
      aCohort(3, [flag(11), flag(12), cohort(2)]),
      aCohort(4, []),
    ])
    graph.reach(1)
    graph.reach(4)
    assert.deepEqual(new Set(graph.flagIdsFrom(1)), new Set([11, 12]))
    assert.deepEqual(graph.flagIdsFrom(4), [])
    assert.deepEqual(graph.flagIdsFrom(77), [])
  })

  it('takes linear time: for 100,000 cohorts in a chain, and for 60 that refer twice to the next one', () => {
    const chain = Array.from({ length: 100_000 }, (_, index) => aCohort(index, [cohort(index + 1)]))
    const long = new CohortGraph([...chain, aCohort(100_000, [])])
    assert.equal(long.reach(0).length, 100_001)
    assert.equal(long.node(0)!.fault, null)
    const doubled = Array.from({ length: 60 }, (_, index) => aCohort(index, [cohort(index + 1), cohort(index + 1)]))
    const dag = new CohortGraph([...doubled, aCohort(60, [flag(1)])])
    assert.equal(dag.reach(0).length, 61)
    assert.deepEqual(dag.flagIdsFrom(0), [1])
  })
})
