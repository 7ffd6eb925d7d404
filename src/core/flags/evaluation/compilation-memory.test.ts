import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { flagFromJson } from '../../../../tests/support/decide-server.ts'
import { allFlags, aSubject, evaluateFlags } from '../../../../tests/support/evaluation-subject.ts'
import { cohortFilter, flagFilter, flagOn, pro, treeOf } from '../../../../tests/support/flag-documents.ts'
import { runs } from '../../../../tests/support/nightly.ts'
import { aCohort, aProject, emptyDefinitions } from '../../../../tests/support/values.ts'
import type { JsonObject } from '../../json.ts'
import { ok } from '../../result.ts'
import type { ProjectDefinitions } from '../definitions/project-definitions.ts'
import { type CompiledProject, compileProject } from './compile-project.ts'
import { FlagEvaluation } from './evaluate-flags.ts'

interface World {
  /** Id → definition as the private API would store it. */
  flags: Map<number, JsonObject>
  cohorts: Map<number, JsonObject>
  timezone: string
}

/** The definitions as a store returns them: new objects each time. */
function definitionsOf({ flags, cohorts, timezone }: World): ProjectDefinitions {
  const copy = <T>(value: T): T => structuredClone(value)
  return {
    ...emptyDefinitions(aProject({ timezone }), 1),
    flags: [...flags]
      .sort(([a], [b]) => a - b)
      .map(([id, flag]) => flagFromJson({ ...copy(flag), id, key: `flag-${id}` })),
    cohorts: [...cohorts]
      .sort(([a], [b]) => a - b)
      .map(([id, { is_static, ...filters }]) => aCohort({ id, isStatic: is_static === true, filters: copy(filters) })),
  }
}

const emptyWorld = (): World => ({ flags: new Map(), cohorts: new Map(), timezone: 'UTC' })
const on = (...properties: readonly unknown[]) => ({ filters: flagOn(...properties) }) as unknown as JsonObject
const cohortOf = (...values: readonly unknown[]) => treeOf({ type: 'AND', values }) as unknown as JsonObject

function answersOf(project: CompiledProject) {
  const subjects = ['free', 'pro', 'pro "x"'].flatMap(plan =>
    [new Set<number>(), new Set([1, 2, 3])].map(staticIds =>
      aSubject({ personProperties: { plan, day: '2026-01-01' }, staticCohortIds: ok(staticIds) }),
    ),
  )
  return subjects.map(subject => {
    const { outcomes } = evaluateFlags(project, allFlags, subject)
    return project.flags.map((flag, position) => {
      const { slot: _, ...outcome } = { slot: 0, ...outcomes[position] }
      return [flag?.key, outcome]
    })
  })
}

function assertSame(reused: CompiledProject, fresh: CompiledProject): void {
  assert.deepEqual(answersOf(reused), answersOf(fresh))
  for (const field of [
    'order',
    'dependencies',
    'missingDependency',
    'hasDependencyCycle',
    'continuityFlagKeys',
  ] as const)
    assert.deepEqual(reused[field], fresh[field], field)
  assert.deepEqual(new Map(reused.positionOfKey), new Map(fresh.positionOfKey))
  const problemsOf = ({ problems }: CompiledProject) =>
    problems.map(({ flagKey, message }) => `${flagKey}: ${message}`).sort()
  assert.deepEqual(problemsOf(reused), problemsOf(fresh))
  const namesOf = ({ needs }: CompiledProject) => [...needs.personKeys].map(({ name }) => name).sort()
  assert.deepEqual(namesOf(reused), namesOf(fresh))
}

const ids = fc.integer({ min: 1, max: 6 })
const filters = fc.array(
  fc.oneof(
    fc.constantFrom<unknown>(
      pro,
      { key: 'plan', type: 'person', value: 'free', operator: 'exact' },
      { key: 'plan', type: 'person', value: '(', operator: 'regex' },
      { key: 'day', type: 'person', value: '2026-01-01', operator: 'is_date_exact' },
      { key: 'plan', type: 'person', value: 'x', operator: 'no such operator' },
    ),
    ids.map(id => cohortFilter(id) as unknown),
    ids.map(id => flagFilter(id) as unknown),
  ),
  { maxLength: 3 },
)
const edits = fc.oneof(
  fc.record({ edit: fc.constant('flag' as const), id: ids, filters, active: fc.boolean() }),
  fc.record({ edit: fc.constant('cohort' as const), id: ids, filters }),
  fc.record({ edit: fc.constantFrom('no flag' as const, 'no cohort' as const, 'static cohort' as const), id: ids }),
  fc.record({ edit: fc.constant('timezone' as const), timezone: fc.constantFrom('UTC', 'Asia/Kolkata') }),
)

function apply(world: World, edit: typeof edits extends fc.Arbitrary<infer T> ? T : never): void {
  switch (edit.edit) {
    case 'flag':
      world.flags.set(edit.id, { ...on(...edit.filters), active: edit.active })
      break
    case 'cohort':
      world.cohorts.set(edit.id, cohortOf(...edit.filters))
      break
    case 'static cohort':
      world.cohorts.set(edit.id, { is_static: true })
      break
    case 'no flag':
      world.flags.delete(edit.id)
      break
    case 'no cohort':
      world.cohorts.delete(edit.id)
      break
    case 'timezone':
      world.timezone = edit.timezone
  }
}

describe('recompiling a project', () => {
  it('gives the same result as compiling from scratch, whatever was edited', () => {
    fc.assert(
      fc.property(fc.array(edits, { minLength: 2, maxLength: 25 }), list => {
        const world = emptyWorld()
        let project: CompiledProject | null = null
        for (const edit of list) {
          apply(world, edit)
          project = compileProject(definitionsOf(world), project)
          assertSame(project, compileProject(definitionsOf(world)))
        }
      }),
      { numRuns: runs(60, 200) },
    )
  })

  it('compiles only the new flag when one is added, however many there are', () => {
    const world = emptyWorld()
    for (let id = 1; id <= 1_000; id++) world.flags.set(id, on(pro, cohortFilter(1), flagFilter(Math.max(1, id - 1))))
    world.cohorts.set(1, cohortOf(pro))
    const first = compileProject(definitionsOf(world))
    assert.equal(first.compiledFlagCount, 1_000)
    world.flags.set(1_001, on(pro))
    const second = compileProject(definitionsOf(world), first)
    assert.equal(second.compiledFlagCount, 1)
    world.flags.set(500, on())
    const third = compileProject(definitionsOf(world), second)
    assert.equal(third.compiledFlagCount, 1)
    assert.equal(third.flags[0], first.flags[0])
  })

  it('does not inspect flags or cohorts that are the same objects as before', () => {
    const world = emptyWorld()
    for (let id = 1; id <= 100; id++) world.flags.set(id, on(pro, cohortFilter(1)))
    world.cohorts.set(1, cohortOf(cohortFilter(2))).set(2, cohortOf(pro))
    const read = new Set<object>()
    const noted = <T extends { filters: JsonObject }>(item: T): T => {
      const { filters } = item
      return Object.defineProperty(item, 'filters', {
        enumerable: true,
        get: () => {
          read.add(item)
          return filters
        },
      })
    }
    const definitions = definitionsOf(world)
    const before = { ...definitions, flags: definitions.flags.map(noted), cohorts: definitions.cohorts.map(noted) }
    const first = compileProject(before)
    assert.equal(read.size, 102, 'all at first')

    read.clear()
    world.flags.set(101, on(pro, cohortFilter(1)))
    const added = noted(definitionsOf(world).flags.at(-1)!)
    const second = compileProject({ ...before, flags: [...before.flags, added] }, first)
    assert.equal(second.compiledFlagCount, 1)
    assert.deepEqual([...read], [added])
    assertSame(second, compileProject(definitionsOf(world)))
  })

  it('compiles only the flags that reach a changed cohort, directly or indirectly', () => {
    const world = emptyWorld()
    world.cohorts
      .set(1, cohortOf(pro))
      .set(2, cohortOf(cohortFilter(1)))
      .set(3, cohortOf(pro))
    world.flags
      .set(1, on(cohortFilter(1)))
      .set(2, on(cohortFilter(2)))
      .set(3, on(cohortFilter(3)))
      .set(4, on(pro))
    const first = compileProject(definitionsOf(world))
    world.cohorts.set(1, cohortOf({ ...pro, value: 'free' }))
    const second = compileProject(definitionsOf(world), first)
    assert.equal(second.compiledFlagCount, 2)
    assertSame(second, compileProject(definitionsOf(world)))
    assert.equal(compileProject(definitionsOf(world), second).compiledFlagCount, 0)
  })

  it('compiles the flags that test a flag whose position changed', () => {
    const world = emptyWorld()
    world.flags
      .set(1, on())
      .set(2, on())
      .set(3, on(flagFilter(2)))
      .set(4, on(flagFilter(1)))
      .set(5, on())
    const first = compileProject(definitionsOf(world))
    world.flags.set(2, { ...on(), active: false })
    const second = compileProject(definitionsOf(world), first)
    assert.equal(second.compiledFlagCount, 1)
    assertSame(second, compileProject(definitionsOf(world)))
  })

  it('does not accumulate unused keys and tests', () => {
    const world = emptyWorld()
    let project = compileProject(definitionsOf(world))
    for (let n = 0; n < 1_000; n++) {
      world.flags.set(1, on({ ...pro, key: `key ${n}` }))
      project = compileProject(definitionsOf(world), project)
    }
    assert.ok(project.personKeys.count <= 110, String(project.personKeys.count))
  })

  it('does not change the results of an evaluation in progress', () => {
    const world = emptyWorld()
    world.flags.set(1, on(pro))
    const first = compileProject(definitionsOf(world))
    const evaluation = new FlagEvaluation(first, null, aSubject({ personProperties: { plan: 'pro' } }))
    // The second flag with the same test makes it shared: the first project has no answer for its place.
    world.flags.set(2, on(pro))
    compileProject(definitionsOf(world), first)
    evaluation.advance(() => false)
    assert.equal(evaluation.outcomes[0]?.kind, 'on')
  })

  it('retains only the parts of earlier compilations that it reuses', async () => {
    setFlagsFromString('--expose-gc')
    const collect = runInNewContext('gc') as () => void
    const world = emptyWorld()
    world.cohorts
      .set(1, cohortOf(pro, flagFilter(1)))
      .set(2, cohortOf(cohortFilter(1)))
      .set(3, { is_static: true })
      .set(4, cohortOf())
    const group = { key: 'plan', type: 'group', group_type_index: 0, value: 'pro' }
    const metadata = { key: 'created_at', type: 'person_metadata', value: '2026-01-01', operator: 'is_date_before' }
    const all = [pro, group, metadata, flagFilter(1), ...[1, 2, 3, 4].map(id => cohortFilter(id))]
    const edit = (id: number, value: string) => {
      const filters = {
        groups: [{ properties: [...all, { ...pro, value }] }, { properties: [], rollout_percentage: 50 }],
        multivariate: { variants: [{ key: 'a', rollout_percentage: 100 }] },
        payloads: { a: { value } },
        feature_enrollment: true,
      }
      world.flags.set(id, { filters, ensure_experience_continuity: true } as unknown as JsonObject)
      world.cohorts.set(10 + id, cohortOf({ ...pro, value }))
      world.flags.set(100 + id, on(cohortFilter(10 + id)))
    }
    for (let id = 1; id <= 5; id++) edit(id, 'at first')
    let project = compileProject(definitionsOf(world))
    const earlier: { [part: string]: WeakRef<object> }[] = []
    const editAndCompile = (id: number) => {
      const { definitions, memory, positionOfKey, cohorts } = project
      earlier.push({
        definitions: new WeakRef(definitions),
        entries: new WeakRef(memory.entries),
        positionOfKey: new WeakRef(positionOfKey),
        cohorts: new WeakRef(cohorts),
      })
      edit(id, 'later')
      project = compileProject(definitionsOf(world), project)
      assert.equal(project.compiledFlagCount, 2, 'the others are reused')
      answersOf(project)
    }
    for (let id = 1; id <= 5; id++) editAndCompile(id)
    // A reference keeps its target alive until the turn of the event loop ends.
    await new Promise(setImmediate)
    collect()
    const kept = earlier.flatMap(parts => Object.keys(parts).filter(part => parts[part]!.deref() !== undefined))
    assert.deepEqual(kept, [])
    assert.equal(project.flags.length, 10)
  })
})
