// The contract of every definition store: first everything, then each changed project whole, and which projects are
// gone.

import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { noQuotas } from '#core/project.ts'
import type { ChunkStore } from '#ports/state/chunk-store.ts'
import type { DefinitionChanges, DefinitionStore, GetHeldDefinitions } from '#ports/state/definition-store.ts'
import type { ManagementStore } from '#ports/state/management-store.ts'
import { aChange, aNewCohort, aNewFlag, aNewProject, chunkChanges } from '../support/values.ts'

export interface DefinitionHarness {
  readonly definitions: DefinitionStore
  /** Writes as another process would. */
  readonly management: ManagementStore
  readonly chunkStore: ChunkStore
}

export function definitionStoreContract(adapter: string, open: (t: TestContext) => Promise<DefinitionHarness>): void {
  describe(`DefinitionStore on ${adapter}`, () => {
    it('returns nothing at first, and everything after revision -1', async t => {
      const { definitions, management } = await open(t)
      assert.deepEqual(await definitions.loadChanges(-1), { revision: 0, projects: [], deletedProjectIds: [] })
      await management.createProject(aNewProject({ apiToken: 'phc_1' }), aChange())
      await management.createProject(aNewProject({ apiToken: 'phc_2' }), aChange())
      await management.createFlag(aNewFlag({ key: 'b' }), aChange())
      await management.createFlag(aNewFlag({ key: 'a', active: false }), aChange())
      const changes = await definitions.loadChanges(-1)
      assert.equal(changes.revision, 4)
      assert.equal(changes.revision, (await definitions.readRevision()).revision)
      const first = changes.projects.find(({ project }) => project.id === 1)!
      assert.deepEqual(first.project, await management.findProject(1))
      assert.deepEqual(first.flags, [await management.findFlag(1, 'b'), await management.findFlag(1, 'a')])
      assert.equal(first.revision, 4)
      const second = changes.projects.find(({ project }) => project.id === 2)!
      assert.deepEqual([second.flags, second.groupTypes, second.revision], [[], [], 2])
    })

    it('sees a commit of another connection at once', async t => {
      const { definitions, management } = await open(t)
      for (const index of [1, 2, 3]) {
        const { revision: before, epoch } = await definitions.readRevision()
        await management.createProject(aNewProject({ apiToken: `phc_${index}` }), aChange())
        assert.deepEqual(await definitions.readRevision(), { revision: before + 1, epoch })
        assert.deepEqual(await definitions.readRevision(), { revision: before + 1, epoch })
      }
    })

    it('returns changed projects completely, without deleted flags, and leaves out unchanged projects', async t => {
      const { definitions, management } = await open(t)
      await management.createProject(aNewProject({ apiToken: 'phc_1' }), aChange())
      await management.createProject(aNewProject({ apiToken: 'phc_2' }), aChange())
      await management.createFlag(aNewFlag({ key: 'stays', projectId: 2 }), aChange())
      await management.createFlag(aNewFlag({ key: 'goes', projectId: 2 }), aChange())
      const { revision } = await definitions.loadChanges(-1)
      assert.deepEqual(await definitions.loadChanges(revision), { revision, projects: [], deletedProjectIds: [] })
      await management.updateFlag(2, 2, { deleted: true }, aChange('Test', 1))
      const changes = await definitions.loadChanges(revision)
      assert.deepEqual(
        changes.projects.map(({ project, flags }) => [project.id, flags.map(flag => flag.key)]),
        [[2, ['stays']]],
      )
      await management.updateProject(1, { quotas: { ...noQuotas, events: 0 } }, aChange())
      const next = await definitions.loadChanges(changes.revision)
      assert.deepEqual(
        next.projects.map(({ project }) => [project.id, project.quotas.events]),
        [[1, 0]],
      )
    })

    it('reads only the flags and cohorts that changed since the caller’s revision', async t => {
      const { definitions, management } = await open(t)
      await management.createProject(aNewProject({ apiToken: 'phc_1' }), aChange())
      await management.createProject(aNewProject({ apiToken: 'phc_2' }), aChange())
      for (let id = 1; id <= 10; id++) await management.createFlag(aNewFlag({ key: `f${id}` }), aChange())
      for (let id = 1; id <= 3; id++) await management.createCohort(aNewCohort({ name: `c${id}` }), aChange(), {})
      const before = await definitions.loadChanges(-1)
      await management.createFlag(aNewFlag({ key: 'new' }), aChange())
      await management.updateFlag(1, 7, { active: false }, aChange('Test', 1))
      await management.updateFlag(1, 8, { deleted: true }, aChange('Test', 1))
      await management.updateCohort(1, 2, { filters: { properties: {} } }, aChange('Test', 1), {})
      await management.updateCohort(1, 3, { deleted: true }, aChange('Test', 1), {})
      await management.createFlag(aNewFlag({ key: 'of the other', projectId: 2 }), aChange())
      const after = await definitions.loadChanges(before.revision, heldFrom(before))

      // What the objects hold is what a caller that has nothing is given.
      assert.deepEqual(after, await definitions.loadChanges(before.revision))
      assert.deepEqual(readAgain(before, after), {
        1: { flags: ['f7', 'new'], cohorts: ['c2'] },
        2: { flags: ['of the other'], cohorts: [] },
      })
      await management.updateProject(1, { quotas: { ...noQuotas, events: 0 } }, aChange())
      const settings = await definitions.loadChanges(after.revision, heldFrom(after))
      assert.deepEqual(readAgain(after, settings), { 1: { flags: [], cohorts: [] } })
    })

    it('returns a restored flag again, and returns a project completely if the caller does not hold it', async t => {
      const { definitions, management } = await open(t)
      await management.createProject(aNewProject({ apiToken: 'phc_1' }), aChange())
      for (const key of ['a', 'b', 'c']) await management.createFlag(aNewFlag({ key }), aChange())
      await management.updateFlag(1, 2, { deleted: true }, aChange('Test', 1))
      const before = await definitions.loadChanges(-1)
      await management.updateFlag(1, 2, { deleted: false }, aChange('Test', 2))
      await management.createProject(aNewProject({ apiToken: 'phc_2' }), aChange())
      await management.createFlag(aNewFlag({ key: 'd', projectId: 2 }), aChange())
      const after = await definitions.loadChanges(before.revision, heldFrom(before))
      assert.deepEqual(
        after.projects.map(({ flags }) => flags.map(({ key }) => key)),
        [['a', 'b', 'c'], ['d']],
      )
      assert.deepEqual(readAgain(before, after), { 1: { flags: ['b'], cohorts: [] }, 2: { flags: ['d'], cohorts: [] } })
    })

    it('returns group types as soon as the worker has created them', async t => {
      const { definitions, management, chunkStore } = await open(t)
      await management.createProject(aNewProject(), aChange())
      const { revision } = await definitions.readRevision()
      await chunkStore.claimPosition('main', 'w1')
      const groupTypes = [
        { projectId: 1, name: '__proto__', index: 0 },
        { projectId: 1, name: 'company', index: 1 },
      ]
      const position = { stream: 'main', ownerId: 'w1', offset: 1, committedAtMs: 0 } as const
      await chunkStore.commitChunk(chunkChanges({ groupTypes }), position)
      const changes = await definitions.loadChanges(revision)
      assert.deepEqual(changes.projects[0]?.groupTypes, groupTypes)
    })

    it('lists deleted projects', async t => {
      const { definitions, management } = await open(t)
      await management.createProject(aNewProject({ apiToken: 'phc_1' }), aChange())
      await management.createFlag(aNewFlag(), aChange())
      const { revision } = await definitions.loadChanges(-1)
      await management.deleteProject(1, aChange())
      const changes = await definitions.loadChanges(revision)
      assert.deepEqual(changes, { revision: revision + 1, projects: [], deletedProjectIds: [1] })
    })
  })
}

function heldFrom({ projects }: DefinitionChanges): GetHeldDefinitions {
  return projectId => projects.find(({ project }) => project.id === projectId) ?? null
}

/** Per project, the flags and cohorts of `after` that are not the very objects of `before`. */
function readAgain(before: DefinitionChanges, after: DefinitionChanges) {
  const known = new Set<object>(before.projects.flatMap(({ flags, cohorts }) => [...flags, ...cohorts]))
  return Object.fromEntries(
    after.projects.map(({ project, flags, cohorts }) => [
      project.id,
      {
        flags: flags.filter(flag => !known.has(flag)).map(({ key }) => key),
        cohorts: cohorts.filter(cohort => !known.has(cohort)).map(({ name }) => name),
      },
    ]),
  )
}
