// Part of `event-writer.contract.ts`: import jobs.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { it } from 'node:test'
import { anEvent, imported } from '../support/an-event.ts'
import { decemberMs, type EventWriterSubject, novemberMs } from './event-store-subject.ts'

export function eventWriterJobsContract(subject: EventWriterSubject): void {
  const { insert, list, usage, newProject, newJob } = subject

  it('hides pending rows until their job is published, and publishing can be repeated', async () => {
    const projectId = newProject()
    const [job, otherJob] = [newJob(), newJob()]
    const live = anEvent({ projectId, propertiesJson: '{"from":"live"}' })
    const own = anEvent({ projectId, timestampMs: novemberMs - 86_400_000 })
    await insert({ events: [live] })
    await insert({
      pendingEvents: [
        imported(live, job, { propertiesJson: '{"from":"import"}' }),
        imported(own, job),
        imported(own, job, { uuid: randomUUID(), capturedAtMs: decemberMs }),
        imported(own, otherJob),
      ],
    })
    assert.deepEqual(
      (await list(projectId)).map(event => event.propertiesJson),
      ['{"from":"live"}'],
    )
    await subject.store.publishJob(job)
    await subject.store.publishJob(job)
    const listed = await list(projectId)
    assert.equal(listed.length, 3)
    assert.equal(
      listed.find(({ uuid, timestampMs }) => uuid === live.uuid && timestampMs === live.timestampMs)!.propertiesJson,
      '{"from":"live"}',
    )
    assert.deepEqual(await usage(projectId), [
      { day: '2026-11-04', eventsCharged: 0, eventsImported: 1 },
      { day: '2026-11-05', eventsCharged: 1, eventsImported: 0 },
      { day: '2026-12-02', eventsCharged: 0, eventsImported: 1 },
    ])
  })

  it('discards a job’s rows, pending and published, and leaves those of others', async () => {
    const projectId = newProject()
    const job = newJob()
    const longId = job * 1_000_000 // its partitions' names begin with the job's digits
    const event = anEvent({ projectId })
    await insert({
      events: [anEvent({ projectId })],
      pendingEvents: [imported(event, job), imported(event, longId), imported(anEvent({ projectId }), job)],
    })
    await subject.store.publishJob(job)
    await subject.store.publishJob(longId)
    await insert({ pendingEvents: [imported(anEvent({ projectId }), job)] })
    await subject.store.discardJob(job)
    await subject.store.discardJob(job)
    await subject.store.publishJob(job)
    const events = await list(projectId)
    assert.deepEqual(new Set(events.map(each => each.importJobId)), new Set([0, longId]))
    assert.equal(events.length, 2)
  })

  it('refuses to publish or discard what has no partition of its own', () => {
    assert.throws(() => subject.store.discardJob(1))
    assert.throws(() => subject.store.publishJob(0))
  })
}
