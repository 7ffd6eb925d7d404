// A job that waits for a store says so, and holds up nobody but the later jobs of its project.

import assert from 'node:assert/strict'
import { it } from 'node:test'
import type { ImportJob } from '#core/imports/import-job.ts'
import { PortError } from '#ports/port-error.ts'
import type { ImportWorkDeps } from '#services/imports/job-batch.ts'
import { publishJob } from '#services/imports/manage-jobs.ts'
import { encodeImportJob } from '#wire/management/import-jobs.ts'
import { anImportedEvent } from '../../support/apply-events.ts'
import { importWorld, type OpenImportState } from '../../support/import-world.ts'
import { aNewProject } from '../../support/state-builders.ts'
import { day } from './random-acts.ts'

export function waitingJobsContract(engine: string, open: OpenImportState): void {
  it(`an import job on ${engine} that a store keeps waiting says why and since when, and the jobs of others go on`, async t => {
    const world = await importWorld(t, open)
    const { management, clock, events } = world
    const made = await management.createProject(aNewProject())
    assert.ok(made.ok)
    const waiting = await world.createJob()
    const ofOther = await world.createJob({}, made.value.value.id)
    await world.apply(anImportedEvent('e', 'a', day, { $set: { k: 1 } }, { importJobId: waiting.id }))
    for (const { projectId, id } of [waiting, ofOther])
      assert.ok((await publishJob({ management, clock }, projectId, id)).ok)

    const publishRows = (id: number) =>
      id === waiting.id ? Promise.reject(new PortError('event-store', 'unavailable')) : events.publishJob(id)
    const failing = new Proxy<ImportWorkDeps['events']>(events, {
      get(target, name) {
        if (name === 'publishJob') return publishRows
        const value: unknown = Reflect.get(target, name, target)
        return typeof value === 'function' ? value.bind(target) : value
      },
    })
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
}
