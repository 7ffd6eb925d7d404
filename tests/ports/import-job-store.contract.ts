// The contract of what the state keeps of import jobs: how much of it is read at once, and how much of it there can be.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type ImportJobState, usualOptions } from '#core/imports/import-job.ts'
import type { NewImportJob } from '#ports/state/import-job-store.ts'
import type { ManagementStore } from '#ports/state/management-store.ts'
import { aNewProject } from '../support/state-builders.ts'
import { type OpenManagement, written } from './management-harness.ts'

const pageBytesMax = 1024 * 1024
const kib60 = 'x'.repeat(60 * 1024)
let jobCount = 0

function aNewJob(over: Partial<NewImportJob> = {}): NewImportJob {
  return {
    ...{ publicId: 2 ** 40 + ++jobCount, projectId: 1, name: 'test', source: 'test', options: usualOptions },
    ...{ plan: {}, createdBy: null, createdAtMs: 1_000 },
    ...over,
  }
}

export function importJobStoreContract(adapter: string, open: OpenManagement): void {
  describe(`ManagementStore on ${adapter}: import jobs`, () => {
    it('cuts a page of jobs with large plans and progress, and the next one begins where it ends', async t => {
      const { store } = await open(t)
      const numbers: number[] = []
      for (let index = 0; index < 24; index++) {
        const job = await store.createImportJob(aNewJob({ plan: index % 3 === 0 ? {} : { kib60 } }))
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

    it('lists what the worker has to do without what clients say of their jobs', async t => {
      const { store } = await open(t)
      await store.createProject(aNewProject())
      const gone = written(await store.createProject(aNewProject({ apiToken: 'phc_gone' })))
      const job = await store.createImportJob(aNewJob({ plan: { kib60 } }))
      const ofGone = await store.createImportJob(aNewJob({ projectId: gone.id, plan: { kib60 } }))
      const { plan, progress, ...known } = (await move(store, job.id, 'publishing', { kib60 }))!
      assert.deepEqual([plan, progress], [{ kib60 }, { kib60 }])
      written(await store.deleteProject(gone.id))
      assert.deepEqual(await store.listImportWork(), [known])
      const { plan: _, progress: __, ...knownOfGone } = ofGone
      assert.deepEqual(await store.listJobsOfGoneProjects(), [knownOfGone])
    })
  })
}

function move(store: ManagementStore, id: number, state: ImportJobState, progress = {}) {
  return store.updateImportJob(id, { state, progress, updatedAtMs: 2_000 }, { states: ['planned'] })
}
