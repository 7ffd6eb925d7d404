// The contract of import jobs in the state: how much is read at once, and how many jobs there can be.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type NamedGroupType, noImportChanges } from '#core/imports/import-changes.ts'
import { type DescribedImportJob, type ImportJobState, usualOptions } from '#core/imports/import-job.ts'
import type { NewImportJob } from '#ports/state/import-job-store.ts'
import type { ManagementStore } from '#ports/state/management-store.ts'
import { loadWhole } from '../support/state.ts'
import { aChange, aGroup, aNewProject, aPerson } from '../support/values.ts'
import { commit, type OpenManagement, written } from './management-harness.ts'

const pageBytesMax = 1024 * 1024
const kib60 = 'x'.repeat(60 * 1024)
let jobCount = 0

function aNewJob(over: Partial<NewImportJob> = {}): NewImportJob {
  return {
    ...{ publicId: 2 ** 40 + ++jobCount, projectId: 1, name: 'test', source: 'test', options: usualOptions },
    plan: {},
    ...over,
  }
}

async function create(store: ManagementStore, job: NewImportJob): Promise<DescribedImportJob> {
  const made = await store.createImportJob(job, { openMax: 1_000, perDayMax: 1_000, keptMax: 1_000 }, aChange())
  assert.ok(made.ok)
  return made.value
}

export function importJobStoreContract(adapter: string, open: OpenManagement): void {
  describe(`ManagementStore on ${adapter}: import jobs`, () => {
    it('ends a page of jobs with large plans and progress early, and the next page begins where it ended', async t => {
      const { store } = await open(t)
      const numbers: number[] = []
      for (let index = 0; index < 24; index++) {
        const job = await create(store, aNewJob({ plan: index % 3 === 0 ? {} : { kib60 } }))
        numbers.push(job.id)
        if (index % 2 === 0) await move(store, job.id, 'sending', { kib60 })
      }
      const seen: number[] = []
      const lengths: number[] = []
      for (let offset = 0; offset < numbers.length; ) {
        const { count, jobs } = await store.listImportJobs(1, { limit: 1_000, offset })
        assert.equal(count, numbers.length)
        const bytes = jobs.reduce((sum, { plan, progress }) => sum + JSON.stringify([plan, progress]).length, 0)
        assert.ok(jobs.length > 0 && bytes <= pageBytesMax, `${bytes} bytes of ${jobs.length} jobs`)
        seen.push(...jobs.map(({ id }) => id))
        lengths.push(jobs.length)
        offset += jobs.length
      }
      assert.deepEqual(seen, numbers.toReversed())
      assert.ok(lengths.length > 1, `pages of ${lengths}`)
    })

    it('finds jobs by public ids, and returns nothing for unknown ids', async t => {
      const { store } = await open(t)
      const jobs = [await create(store, aNewJob()), await create(store, aNewJob({ projectId: 2 }))]
      await move(store, jobs[0]!.id, 'sending', {})
      const found = await store.findNamedImportJobs([7, jobs[1]!.publicId!, jobs[0]!.publicId!])
      assert.deepEqual(
        found.toSorted((a, b) => a.id - b.id),
        jobs.map(({ id, projectId, publicId }, index) => ({
          ...{ id, projectId, publicId },
          state: index === 0 ? 'sending' : 'planned',
        })),
      )
    })

    it('lists the worker’s tasks without the data that clients stored with their jobs', async t => {
      const { store } = await open(t)
      await store.createProject(aNewProject(), aChange())
      const gone = written(await store.createProject(aNewProject({ apiToken: 'phc_gone' }), aChange()))
      const job = await create(store, aNewJob({ plan: { kib60 } }))
      const ofGone = await create(store, aNewJob({ projectId: gone.id, plan: { kib60 } }))
      const { plan, progress, ...known } = (await move(store, job.id, 'publishing', { kib60 }))!
      assert.deepEqual([plan, progress], [{ kib60 }, { kib60 }])
      written(await store.deleteProject(gone.id, aChange()))
      const { plan: _, progress: __, ...knownOfGone } = ofGone
      assert.deepEqual(await store.listImportWork(), [
        { ...known, isProjectGone: false },
        { ...knownOfGone, isProjectGone: true },
      ])
    })

    it('limits open jobs, however many are created at once', async t => {
      const { store } = await open(t)
      const limits = { openMax: 3, perDayMax: 100, keptMax: 100 }
      const of = (projectId: number) => store.createImportJob(aNewJob({ projectId }), limits, aChange())
      const made = await Promise.all(Array.from({ length: 10 }, () => of(1)))
      const open3 = made.flatMap(job => (job.ok ? job.value : []))
      assert.equal(open3.length, 3)
      assert.deepEqual(new Set(made.map(job => job.ok || job.error)), new Set([true, 'too_many_open']))
      assert.ok((await of(2)).ok, 'of another project')
      await move(store, open3[0]!.id, 'failed')
      await move(store, open3[1]!.id, 'discarding')
      assert.equal((await of(1)).ok, false)
      await move(store, open3[2]!.id, 'discarded')
      assert.ok((await of(1)).ok)
    })

    it('limits the jobs a project creates within 24 hours, closed ones included', async t => {
      const { store } = await open(t)
      const dayMs = 86_400_000
      const limits = { openMax: 100, perDayMax: 3, keptMax: 100 }
      const at = async (createdAtMs: number) => {
        const made = await store.createImportJob(aNewJob({}), limits, aChange('Test', createdAtMs))
        if (made.ok) await move(store, made.value.id, 'published')
        return made.ok || made.error
      }
      const times = [0, 1, 2, 3, dayMs, dayMs, dayMs + 1, dayMs + 2, dayMs + 3]
      const ends = []
      for (const time of times) ends.push(await at(time))
      const no = 'too_many_per_day'
      assert.deepEqual(ends, [true, true, true, no, true, no, true, true, no])
      await store.createImplicitJob(1, '2026-11-01', 2 * dayMs)
      assert.equal(await at(2 * dayMs), true)
    })

    it('limits the open and published jobs of a project, not counting implicit jobs', async t => {
      const { store } = await open(t)
      const limits = { openMax: 100, perDayMax: 100, keptMax: 3 }
      const of = async (projectId: number) => {
        const made = await store.createImportJob(aNewJob({ projectId }), limits, aChange())
        return made.ok ? made.value.id : made.error
      }
      await store.createImplicitJob(1, '2026-11-01', 0)
      const ids = [await of(1), await of(1), await of(1)].map(Number)
      await move(store, ids[0]!, 'published')
      await move(store, ids[1]!, 'publishing')
      assert.equal(await of(1), 'too_many_kept')
      assert.equal(typeof (await of(2)), 'number', 'of another project')
      await move(store, ids[2]!, 'discarded')
      assert.equal(typeof (await of(1)), 'number')
      assert.equal(await of(1), 'too_many_kept')
    })

    it('deletes all data of a job, however much, and nothing that belongs to other jobs', async t => {
      const { store, chunkStore } = await open(t)
      const [job, other] = [await create(store, aNewJob()), await create(store, aNewJob())]
      const many = Array.from({ length: 4_500 }, (_, index) => String(index).padStart(5, '0'))
      const namedGroupTypes = [job, other].map(({ id }) => aNamedType(id))
      const links = [job, other].flatMap(({ id }) =>
        many.map(uuid => ({
          ...{ importJobId: id, distinctId: 'a', otherId: 'b', dangerously: false, timestampMs: 1, uuid },
        })),
      )
      const generated = many.map((uuid, index) => ({
        ...{ projectId: 1, uuid, timestampMs: 1 },
        importJobId: index % 3 === 0 ? other.id : job.id,
      }))
      const ofOtherProject = { projectId: 2, uuid: many[1]!, timestampMs: 1, importJobId: job.id }
      const imports = {
        ...{ ...noImportChanges, namedGroupTypes, links },
        generated: [...generated, ofOtherProject],
      }
      await commit(chunkStore, { imports })
      while (await store.clearImportJob(job.id, 'everything'));
      assert.deepEqual(await store.listNamedGroupTypes(job.id), [])
      assert.deepEqual(await store.listNamedGroupTypes(other.id), [aNamedType(other.id)])
      const linksOf = async ({ id }: DescribedImportJob) => (await store.listStagedItems(id, 'links', 9_000)).length
      assert.deepEqual([await linksOf(job), await linksOf(other)], [0, many.length])
      const subjects = { distinctIds: [], groups: [], projectIds: [] }
      const asked = [...many.map(uuid => ({ projectId: 1, uuid })), { projectId: 2, uuid: many[1]! }]
      const { generated: left = [] } = await loadWhole(chunkStore, { ...subjects, generated: asked })
      assert.deepEqual(left.map(({ projectId, uuid }) => `${projectId} ${uuid}`).toSorted(), [
        ...many.filter((_, index) => index % 3 === 0).map(uuid => `1 ${uuid}`),
        `2 ${many[1]}`,
      ])
    })

    it('preserves the data for undoing a published job when the job’s staging overlay is cleared', async t => {
      const { store, chunkStore } = await open(t)
      const { id } = await create(store, aNewJob())
      await commit(chunkStore, { imports: { ...noImportChanges, namedGroupTypes: [aNamedType(id)] } })
      assert.equal(await store.clearImportJob(id, 'staging'), false)
      assert.deepEqual(await store.listNamedGroupTypes(id), [aNamedType(id)])
    })

    it('keeps the first record of a group type, and passes a type on to the job that was published first', async t => {
      const { store, chunkStore } = await open(t)
      const [added, pending, late, early] = [
        ...[await create(store, aNewJob()), await create(store, aNewJob())],
        ...[await create(store, aNewJob()), await create(store, aNewJob())],
      ].map(({ id }) => id)
      const other = await create(store, aNewJob({ projectId: 2 }))
      await publishAt(store, late!, 20)
      await publishAt(store, early!, 10)
      await publishAt(store, other.id, 1)
      const ids = [pending!, late!, early!, other.id]
      const namedGroupTypes = [aNamedType(added!), ...ids.map(id => aNamedType(id, { isAdded: false }))]
      await commit(chunkStore, { imports: { ...noImportChanges, namedGroupTypes } })
      const again = [aNamedType(pending!), aNamedType(added!, { isAdded: false }), aNamedType(late!, { typeIndex: 1 })]
      await commit(chunkStore, { imports: { ...noImportChanges, namedGroupTypes: again } })
      assert.deepEqual(await store.listNamedGroupTypes(added!), [aNamedType(added!)])
      const leftGroupTypes = [{ importJobId: added!, typeIndex: 0 }]
      await commit(chunkStore, { imports: { ...noImportChanges, leftGroupTypes } })
      assert.deepEqual(await store.listNamedGroupTypes(added!), [])
      const addedBy = await Promise.all(ids.map(async id => (await store.listNamedGroupTypes(id))[0]!.isAdded))
      assert.deepEqual(addedBy, [false, false, true, false])
    })

    it('makes a job final if the job was published long ago or the project is deleted', async t => {
      const { store, chunkStore } = await open(t)
      await store.createProject(aNewProject(), aChange())
      const gone = written(await store.createProject(aNewProject({ apiToken: 'phc_gone' }), aChange()))
      const times = { old: 10, young: 100, ofTheFuture: 9_000, ofGone: 100, discarding: 10 }
      const ids: Record<string, number> = {}
      for (const [name, publishedAtMs] of Object.entries(times)) {
        const { id } = await create(store, aNewJob({ projectId: name === 'ofGone' ? gone.id : 1 }))
        ids[name] = id
        await publishAt(store, id, publishedAtMs)
      }
      const startDiscarding = (id: number) =>
        store.updateImportJob(id, { state: 'discarding', updatedAtMs: 3_000 }, { states: ['published'] }, null)
      await startDiscarding(ids.discarding!)
      const namedGroupTypes = Object.values(ids).map(id => aNamedType(id))
      await commit(chunkStore, { imports: { ...noImportChanges, namedGroupTypes } })
      written(await store.deleteProject(gone.id, aChange()))

      const shown = async () =>
        Promise.all(
          Object.values(ids).map(async id => {
            const { finalAtMs, publishedAtMs } = (await store.findImportJob(id))!
            return [finalAtMs, publishedAtMs, (await store.listNamedGroupTypes(id)).length]
          }),
        )
      await store.finalizeImportJobs(50, { nowMs: 200, isTrusted: false })
      const final = [
        [200, 10, 0],
        [null, 100, 1],
        [null, 9_000, 1],
        [200, 100, 0],
        [null, 10, 1],
      ]
      assert.deepEqual(await shown(), final)
      assert.equal(await startDiscarding(ids.old!), null)
      await store.finalizeImportJobs(50, { nowMs: 300, isTrusted: true })
      assert.deepEqual(await shown(), final.with(2, [null, 300, 1]))
    })

    it('clears the groups of a staging overlay in batches', async t => {
      const { store, chunkStore } = await open(t)
      const job = await create(store, aNewJob())
      const groups = Array.from({ length: 4_100 }, (_, index) => ({
        row: aGroup({ projectId: -job.id, typeIndex: index % 2, key: `group ${index}` }),
        loadedVersion: null,
      }))
      await commit(chunkStore, { groups })
      let pieces = 1
      while (await store.clearImportJob(job.id, 'staging')) pieces++
      assert.equal(pieces, 3)
      assert.deepEqual(await store.listStagedItems(job.id, 'groups', 1), [])
    })

    it('clears the persons of a staging overlay in batches, even those whose ids were merged', async t => {
      const { store, chunkStore } = await open(t)
      const job = await create(store, aNewJob())
      const persons = Array.from({ length: 4_100 }, (_, index) => ({
        row: aPerson({ projectId: -job.id, uuid: `person ${index}` }),
        loadedVersion: null,
      }))
      const row = { projectId: -job.id, distinctId: 'left', personUuid: 'person 0', version: 0 }
      await commit(chunkStore, { persons, mappings: [{ row, loadedVersion: null }] })
      let pieces = 1
      while (await store.clearImportJob(job.id, 'staging')) pieces++
      assert.equal(pieces, 3)
      assert.deepEqual(await store.listStagedItems(job.id, 'ids', 1), [])
      // None of them is there, or it could not be made again.
      await commit(chunkStore, { persons })
    })

    it('deletes discarded jobs with their notes, except the latest discarded jobs and implicit jobs', async t => {
      const { store, chunkStore } = await open(t)
      await store.createImplicitJob(1, '2026-11-01', 0)
      for (let index = 0; index < 7; index++) await create(store, aNewJob())
      const other = await create(store, aNewJob({ projectId: 2 }))
      const [implicitJob, planned, published, ...closed] = (await store.listImportJobs(1, { limit: 9, offset: 0 })).jobs
        .map(({ id }) => id)
        .toReversed()
      await move(store, published!, 'published')
      const notes = [...closed, published!].map(importJobId => ({
        ...{ importJobId, reason: 'any', count: 1 },
        samples: [{ of: importJobId }],
      }))
      await commit(chunkStore, { imports: { ...noImportChanges, notes } })
      for (const [index, id] of [...closed.toReversed(), other.id].entries())
        await store.updateImportJob(
          id,
          { state: 'discarded', updatedAtMs: 3_000, discardedAtMs: 3_000 + index },
          { states: ['planned'] },
          null,
        )
      await store.updateImportJob(
        implicitJob!,
        { state: 'discarded', updatedAtMs: 3_000 },
        { states: ['published'] },
        null,
      )
      await store.deleteDiscardedJobs(1, 2)
      const left = (await store.listImportJobs(1, { limit: 9, offset: 0 })).jobs.map(({ id }) => id)
      const latest = closed.slice(0, 2)
      assert.deepEqual(left.toReversed(), [implicitJob, planned, published, ...latest])
      for (const id of closed)
        assert.deepEqual(
          (await store.listImportNotes(id)).flatMap(({ samples }) => samples),
          latest.includes(id) ? [{ of: id }] : [],
        )
      assert.equal((await store.listImportNotes(published!)).length, 1)
      assert.equal((await store.listImportJobs(2, { limit: 9, offset: 0 })).count, 1)
      await store.deleteDiscardedJobs(1, 2)
      assert.equal((await store.listImportJobs(1, { limit: 9, offset: 0 })).count, left.length)
    })
  })
}

function aNamedType(importJobId: number, over: Partial<NamedGroupType> = {}): NamedGroupType {
  return { importJobId, typeIndex: 0, name: 'org', isAdded: true, ...over }
}

function publishAt(store: ManagementStore, id: number, publishedAtMs: number) {
  const change = { state: 'published', publishedAtMs, updatedAtMs: 2_000 } as const
  return store.updateImportJob(id, change, { states: ['planned'] }, null)
}

function move(store: ManagementStore, id: number, state: ImportJobState, progress = {}) {
  return store.updateImportJob(id, { state, progress, updatedAtMs: 2_000 }, { states: ['planned'] }, null)
}
