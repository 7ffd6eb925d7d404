// A job that waits for a store reports it, and delays only later jobs of its own project.

import assert from 'node:assert/strict'
import { it } from 'node:test'
import type { ImportJob } from '#core/imports/import-job.ts'
import { PortError } from '#ports/port-error.ts'
import type { ImportWorkDeps } from '#services/imports/job-batch.ts'
import { publishJob } from '#services/imports/manage-jobs.ts'
import { encodeImportJob } from '#wire/management/import-jobs.ts'
import { eventually } from '../../support/eventually.ts'
import type { OpenSqlState } from '../../support/state.ts'
import { aChange, aNewProject, anImportedEvent } from '../../support/values.ts'
import { withMethods } from '../../support/with-methods.ts'
import { type ImportWorld, importWorld } from '../../support/world/import-world.ts'
import { day } from './random-acts.ts'

export function waitingJobsContract(engine: string, open: OpenSqlState): void {
  it(`an import job on ${engine} that waits for a store shows why and since when, and jobs of other projects continue`, async t => {
    const world = await importWorld(t, open)
    const { management, clock, events } = world
    const made = await management.createProject(aNewProject(), aChange())
    assert.ok(made.ok)
    const waiting = await world.createJob()
    const ofOther = await world.createJob({}, made.value.value.id)
    await world.apply(anImportedEvent('e', 'a', day, { $set: { k: 1 } }, { importJobId: waiting.id }))
    await publishAll(world, waiting, ofOther)

    const publishRows = (id: number) =>
      id === waiting.id ? Promise.reject(new PortError('event-store', 'unavailable')) : events.publishJob(id)
    const failing = withMethods<ImportWorkDeps['events']>(events, { publishJob: publishRows })
    const shown = async ({ id }: ImportJob) => {
      const { state, step, failure } = encodeImportJob((await management.findImportJob(id))!, true)
      return { state, step, failure }
    }
    clock.advance(10_000)
    const since = new Date(clock.nowMs()).toISOString()
    for (let attempt = 0; attempt < 2; attempt++) {
      await assert.rejects(world.work({ events: failing }).workNow(new AbortController().signal), {
        code: 'unavailable',
      })
      clock.advance(60_000)
    }
    const failure = { code: 'event_store_unavailable', message: 'the event store cannot be reached', since }
    assert.deepEqual(await shown(waiting), { state: 'publishing', step: 'rows', failure })
    assert.deepEqual(await shown(ofOther), { state: 'published', step: null, failure: null })

    await world.work().workNow(new AbortController().signal)
    assert.deepEqual(await shown(waiting), { state: 'published', step: null, failure: null })
  })

  it(`a large import job on ${engine} alternates with jobs of other projects`, async t => {
    const world = await importWorld(t, open)
    const { management, clock, events, chunks } = world
    const made = await management.createProject(aNewProject(), aChange())
    assert.ok(made.ok)
    const long = await world.createJob()
    const short = await world.createJob({}, made.value.value.id)
    const importOf = ({ projectId, id: importJobId }: ImportJob, n: number) => ({
      ...anImportedEvent(`e${n}`, `id-${n}`, day, { $set: { k: n } }, { importJobId }),
      projectId,
    })
    await world.apply(...Array.from({ length: 2_000 }, (_, n) => importOf(long, n)))
    await world.apply(importOf(short, 2_000))
    await publishAll(world, long, short)
    clock.advance(10_000)
    const committed: number[] = []
    const state = withMethods(chunks, {
      commitChunk: async (...args) => {
        committed.push(...new Set(args[0].persons.map(({ row }) => row.projectId).filter(id => id > 0)))
        return chunks.commitChunk(...args)
      },
    })
    // After its first batch, the long job waits for the other one: if the other had to wait as well, neither would
    // finish.
    const jobs = withMethods(management, {
      listStagedItems: async (...args) => {
        if (args[0] === long.id && args[1] === 'ids' && committed.includes(long.projectId))
          await eventually(() => committed.includes(short.projectId), { what: 'the commit of the other job' })
        return management.listStagedItems(...args)
      },
    })
    await world.work({ state, events, jobs }).workNow(new AbortController().signal)
    assert.ok(committed.indexOf(short.projectId) < committed.lastIndexOf(long.projectId), committed.join(' '))
    assert.ok(committed.filter(projectId => projectId === long.projectId).length > 5, committed.join(' '))
  })

  it(`an import job on ${engine} is published even though the clock was set back`, async t => {
    const world = await importWorld(t, open)
    const { management, clock } = world
    const job = await world.createJob()
    await world.apply(anImportedEvent('e', 'a', day, { $set: { k: 1 } }, { importJobId: job.id }))
    clock.advance(86_400_000)
    await publishAll(world, job)
    clock.advance(-86_400_000)
    for (let look = 0; look < 2; look++) {
      await world.work().workNow(new AbortController().signal)
      clock.advance(10_000)
    }
    assert.equal((await management.findImportJob(job.id))?.state, 'published')
  })
}

async function publishAll({ management, clock }: ImportWorld, ...jobs: readonly ImportJob[]): Promise<void> {
  for (const { projectId, id } of jobs)
    assert.ok((await publishJob({ management }, projectId, id, aChange('Test', clock.nowMs()))).ok)
}
