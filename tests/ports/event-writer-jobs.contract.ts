// Part of `event-writer.contract.ts`: import jobs.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, it } from 'node:test'
import { aStoredEvent, imported } from '../support/values.ts'
import { decemberMs, type EventWriterSubject, novemberMs } from './event-store-subject.ts'

export function eventWriterJobsContract(subject: EventWriterSubject): void {
  const { insert, list, usage, newProject, newJob } = subject

  it('hides pending rows until their job is published, and publishing can be repeated', async () => {
    const projectId = newProject()
    const [job, otherJob] = [newJob(), newJob()]
    const live = aStoredEvent({ projectId, propertiesJson: '{"from":"live"}' })
    const own = aStoredEvent({ projectId, timestampMs: novemberMs - 86_400_000 })
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

  it('discards a job’s rows, pending and published, and keeps the rows of other jobs', async () => {
    const projectId = newProject()
    const job = newJob()
    const longId = job * 1_000_000 // its partitions' names begin with the job's digits
    const event = aStoredEvent({ projectId })
    await insert({
      events: [aStoredEvent({ projectId })],
      pendingEvents: [imported(event, job), imported(event, longId), imported(aStoredEvent({ projectId }), job)],
    })
    await subject.store.publishJob(job)
    await subject.store.publishJob(longId)
    await insert({ pendingEvents: [imported(aStoredEvent({ projectId }), job)] })
    await subject.store.discardJob(job)
    await subject.store.discardJob(job)
    await subject.store.publishJob(job)
    const events = await list(projectId)
    assert.deepEqual(new Set(events.map(each => each.importJobId)), new Set([0, longId]))
    assert.equal(events.length, 2)
  })

  describe('adds the persons’ known properties to pending rows', () => {
    const cases: readonly (readonly [what: string, row: string, known: string, after: string])[] = [
      ['where the row has nothing', '{}', '{"plan":"pro","n":1}', '{"plan":"pro","n":1}'],
      [
        'beneath what it has',
        '{"a":null,"b":{"x":1}}',
        '{"b":{"y":2},"c":[1,{"a":"]"}],"a":1}',
        '{"a":null,"b":{"x":1},"c":[1,{"a":"]"}]}',
      ],
      ['not where it has all', '{"plan":"free"}', '{"plan":"pro"}', '{"plan":"free"}'],
      [
        'also keys that stand elsewhere in it',
        '{"o":{"plan":1},"t":",\\"n\\":"}',
        '{"plan":2,"n":3}',
        '{"o":{"plan":1},"t":",\\"n\\":","plan":2,"n":3}',
      ],
      [
        'with odd keys',
        '{"q\\"k":1,"line\\nbreak":1,"é":1}',
        '{"q\\"k":2,"q":3,"line\\nbreak":2,"é":2,"\\\\":3,"":4}',
        '{"q\\"k":1,"line\\nbreak":1,"é":1,"q":3,"\\\\":3,"":4}',
      ],
      [
        'with numbers as they are',
        '{"a":1.0}',
        '{"a":2,"b":-0,"c":1e5,"d":123456789012345678901234567890}',
        '{"a":1.0,"b":-0,"c":1e5,"d":123456789012345678901234567890}',
      ],
      [
        'to a text with a number beyond 64 bits',
        '{"a":123456789012345678901234567890}',
        '{"a":1,"b":2}',
        '{"a":123456789012345678901234567890,"b":2}',
      ],
    ]
    const addTo = async (job: number, known: ReadonlyMap<string, string>, count = 1) => {
      const asked: string[] = []
      for (let index = 0; index < count; index++)
        await subject.store.addKnownProperties(
          job,
          { index, count },
          async ids => {
            asked.push(...ids)
            return new Map([...known].filter(([id]) => ids.includes(id)))
          },
          new AbortController().signal,
        )
      return asked
    }
    const shown = async (projectId: number) =>
      new Map((await list(projectId)).map(row => [`${row.distinctId} ${row.event}`, row.personPropertiesJson]))

    it(`${cases.map(([what]) => what).join('; ')}`, async () => {
      const [projectId, job] = [newProject(), newJob()]
      await insert({
        pendingEvents: cases.map(([distinctId, personPropertiesJson]) =>
          imported(aStoredEvent({ projectId, distinctId, personPropertiesJson }), job),
        ),
      })
      const known = new Map(cases.map(([what, , text]) => [what, text]))
      await addTo(job, known)
      await addTo(job, known) // as after a crash
      await subject.store.publishJob(job)
      const after = await shown(projectId)
      for (const [what, , , text] of cases) assert.equal(after.get(`${what} $pageview`), text, what)
    })

    it('in every partition, but only to rows of the job', async () => {
      const [projectId, job, otherJob] = [newProject(), newJob(), newJob()]
      const ofAda = { projectId, distinctId: 'ada' }
      const ids = Array.from({ length: 20 }, (_, index) => `id-${index}`)
      await insert({
        events: [aStoredEvent({ ...ofAda, event: 'live' })],
        pendingEvents: [
          ...ids.map(distinctId => imported(aStoredEvent({ projectId, distinctId }), job)),
          imported(aStoredEvent({ ...ofAda, event: 'november' }), job),
          imported(aStoredEvent({ ...ofAda, event: 'december' }), job, { capturedAtMs: decemberMs }),
          imported(aStoredEvent({ ...ofAda, event: 'personless', personMode: 'propertyless' }), job),
          imported(aStoredEvent({ ...ofAda, event: 'upgraded', personMode: 'force_upgrade' }), job),
          imported(aStoredEvent({ projectId, distinctId: 'personless' }), job, { personMode: 'propertyless' }),
          imported(aStoredEvent({ projectId, distinctId: 'unknown' }), job),
          imported(aStoredEvent({ ...ofAda, event: 'other job' }), otherJob),
        ],
      })
      const asked = await addTo(job, new Map([...ids, 'ada'].map(id => [id, `{"id":"${id}"}`])), 2)
      assert.deepEqual(asked.toSorted(), ['ada', ...ids.toSorted(), 'unknown'])
      const count = await subject.store.countPendingDistinctIds(job)
      assert.ok(Math.abs(count - asked.length) <= 1, String(count))
      await subject.store.publishJob(job)
      await subject.store.publishJob(otherJob)
      const after = await shown(projectId)
      for (const id of ids) assert.equal(after.get(`${id} $pageview`), `{"id":"${id}"}`)
      for (const name of ['november', 'december']) assert.equal(after.get(`ada ${name}`), '{"id":"ada"}')
      for (const name of ['live', 'personless', 'upgraded', 'other job']) assert.equal(after.get(`ada ${name}`), '{}')
      assert.equal(after.get('unknown $pageview'), '{}')
      assert.equal(await subject.store.countPendingDistinctIds(job), 0)
    })
  })

  it('refuses to publish or discard rows without a separate partition', () => {
    assert.throws(() => subject.store.discardJob(1))
    assert.throws(() => subject.store.publishJob(0))
  })
}
