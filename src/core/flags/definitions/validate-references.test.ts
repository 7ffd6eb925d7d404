import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { DefinitionLinks, DefinitionReference, LinkedDefinition } from './definition-links.ts'
import { findReferenceIssuesOf, listUsersOfCohort, listUsersOfExperiment } from './validate-references.ts'

const linked = (
  id: number,
  name: string,
  to: { flags?: number[]; cohorts?: number[]; experiments?: number[] } = {},
): LinkedDefinition => ({
  id,
  name,
  flagIds: to.flags ?? [],
  cohortIds: to.cohorts ?? [],
  experimentIds: to.experiments ?? [],
})
const linksOf = (flags: LinkedDefinition[], cohorts: LinkedDefinition[] = []): DefinitionLinks => ({
  revision: 1,
  flags,
  cohorts,
  experimentIds: [5],
  groupTypes: [
    { index: 1, name: 'team' },
    { index: 2, name: 'junk', isBeingDeleted: true },
  ],
})
const to = (kind: DefinitionReference['kind'], id: number): DefinitionReference => ({
  kind,
  id,
  path: `to ${kind} ${id}`,
})
const problems = (issues: ReturnType<typeof findReferenceIssuesOf>) =>
  issues.map(({ path, message }) => `${path}: ${message}`)

describe('references of a definition', () => {
  it('are accepted if everything exists without a cycle, however often a definition is reached', () => {
    const links = linksOf(
      [linked(1, 'a'), linked(2, 'b', { flags: [1], cohorts: [1] }), linked(3, 'c')],
      [linked(1, 'Beta', { flags: [1], cohorts: [2] }), linked(2, 'Wider', { flags: [1] })],
    )
    const written = { kind: 'flag', id: 3, name: 'c' } as const
    assert.deepEqual(findReferenceIssuesOf(written, [to('flag', 2), to('cohort', 1), to('flag', 1)], links), [])
  })

  it('are each reported if their target does not exist; a flag and a cohort with the same id are distinct', () => {
    const links = linksOf([linked(1, 'a')], [linked(2, 'Beta')])
    const written = { kind: 'cohort', id: null, name: 'New' } as const
    assert.deepEqual(problems(findReferenceIssuesOf(written, [to('flag', 2), to('cohort', 1), to('flag', 1)], links)), [
      'to flag 2: The project has no flag with the id 2, or it is deleted: restore it first, or remove this filter.',
      'to cohort 1: The project has no cohort with the id 1, or it is deleted: restore it first, or remove this filter.',
    ])
  })

  it('may name group types that exist or may still be created, but none that is being deleted', () => {
    const written = { kind: 'flag', id: null, name: 'new' } as const
    const types = [to('group_type', 1), to('group_type', 0), to('group_type', 2)]
    assert.deepEqual(problems(findReferenceIssuesOf(written, types, linksOf([linked(1, 'a')]))), [
      'to group_type 2: The group type 2 (junk) is being deleted. Its index can be reused afterwards; groups_types/ lists existing group types.',
    ])
  })

  it('may name only experiments of the same project', () => {
    const written = { kind: 'flag', id: null, name: 'new' } as const
    assert.deepEqual(
      problems(findReferenceIssuesOf(written, [to('experiment', 5), to('experiment', 6)], linksOf([linked(5, 'a')]))),
      [
        'to experiment 6: The project has no experiment with the id 6, or it is deleted. Use null for a split without an experiment.',
      ],
    )
  })

  it('are checked in the version being written, not in the stored one', () => {
    const links = linksOf([linked(1, 'a', { flags: [2] }), linked(2, 'b')])
    assert.deepEqual(findReferenceIssuesOf({ kind: 'flag', id: 2, name: 'b' }, [], links), [])
    const other = findReferenceIssuesOf({ kind: 'flag', id: 1, name: 'new key' }, [to('flag', 1)], links)
    assert.match(other[0]!.message, /flag "new key" → flag "new key"/)
  })

  it('are refused if they lead to a cycle of other definitions that was stored without validation', () => {
    const links = linksOf([
      linked(1, 'a', { flags: [2] }),
      linked(2, 'b', { flags: [1] }),
      linked(3, 'c', { flags: [2] }),
    ])
    const issues = findReferenceIssuesOf({ kind: 'flag', id: null, name: 'd' }, [to('flag', 3)], links)
    assert.deepEqual(problems(issues), [
      'to flag 3: This creates a cycle: flag "b" → flag "a" → flag "b". A value cannot depend on itself.',
    ])
  })

  it('are followed through long chains', () => {
    const flags = Array.from({ length: 20_000 }, (_, index) =>
      linked(index + 1, `f${index + 1}`, index === 0 ? {} : { flags: [index] }),
    )
    const issues = findReferenceIssuesOf({ kind: 'flag', id: 1, name: 'f1' }, [to('flag', 20_000)], linksOf(flags))
    assert.equal(issues.length, 1)
    assert.ok(issues[0]!.message.length < 500)
  })
})

it('listUsersOfExperiment finds the flags whose rules belong to the experiment', () => {
  const links = linksOf([linked(1, 'a', { experiments: [5] }), linked(2, 'b', { experiments: [6], cohorts: [5] })])
  assert.deepEqual(listUsersOfExperiment(5, links), ['flag "a"'])
})

describe('listUsersOfCohort', () => {
  it('finds the flags and the other cohorts that refer to the cohort', () => {
    const links = linksOf(
      [linked(1, 'a', { cohorts: [1, 2] }), linked(2, 'b', { flags: [1] })],
      [linked(1, 'itself', { cohorts: [1] }), linked(2, 'Wider', { cohorts: [1] })],
    )
    assert.deepEqual(listUsersOfCohort(1, links), ['flag "a"', 'cohort "Wider"'])
  })
})
