// The contract of every store that the worker writes to: an identity is one event for every reader at once, however
// often and in whatever way it was written.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { it } from 'node:test'
import type { StoredEvent } from '#core/events/stored-event.ts'
import type { EventWriter } from '#ports/events/event-writer.ts'
import { aStoredEvent, imported } from '../support/values.ts'
import { decemberMs, type EventWriterSubject, novemberMs } from './event-store-subject.ts'
import { eventWriterJobsContract } from './event-writer-jobs.contract.ts'

export function eventWriterContract(subject: EventWriterSubject): void {
  const { insert, list, usage, newProject, newJob } = subject

  it('counts a resent event once', async () => {
    const projectId = newProject()
    const event = aStoredEvent({ projectId })
    await insert({ events: [event, event] })
    await insert({ events: [event] })
    assert.equal((await list(projectId)).length, 1)
    assert.deepEqual(await usage(projectId), [{ day: '2026-11-05', eventsCharged: 1, eventsImported: 0 }])
  })

  it('counts an event identity once if it arrived live and in two import jobs', async () => {
    const projectId = newProject()
    const event = aStoredEvent({ projectId })
    await insert({ events: [imported(event, newJob())] })
    await insert({ events: [event] })
    await insert({ events: [imported(event, newJob()), imported(event, 1)] })
    const events = await list(projectId)
    assert.equal(events.length, 1)
    assert.equal(events[0]!.importJobId, 0)
    assert.deepEqual(await usage(projectId), [{ day: '2026-11-05', eventsCharged: 1, eventsImported: 0 }])
  })

  it('counts an event identity once if it arrived in two different months', async () => {
    const projectId = newProject()
    const event = aStoredEvent({ projectId, timestampMs: novemberMs, capturedAtMs: novemberMs })
    await insert({ events: [event] })
    await insert({ events: [{ ...event, capturedAtMs: decemberMs, chargedAtMs: decemberMs }] })
    assert.equal((await list(projectId)).length, 1)
    assert.deepEqual(await usage(projectId), [{ day: '2026-12-02', eventsCharged: 1, eventsImported: 0 }])
    assert.deepEqual(await usage(projectId, '2026-11-01', '2026-11-30'), [])
  })

  it('treats events that differ in name, distinct id, uuid or UTC day as different', async () => {
    const projectId = newProject()
    const event = aStoredEvent({ projectId, timestampMs: Date.parse('2026-11-05T23:59:59.999Z') })
    const differing: Partial<StoredEvent>[] = [
      { event: 'clicked' },
      { distinctId: 'bob' },
      { uuid: randomUUID() },
      { timestampMs: Date.parse('2026-11-06T00:00:00Z') },
    ]
    await insert({ events: [event, ...differing.map(over => ({ ...event, ...over }))] })
    assert.equal((await list(projectId)).length, 5)
  })

  for (const order of ['live first', 'import first'] as const) {
    it(`prefers the live row to an imported one, ${order}`, async () => {
      const projectId = newProject()
      const live = aStoredEvent({ projectId, propertiesJson: '{"from":"live"}' })
      const copy = imported(live, newJob(), { propertiesJson: '{"from":"import"}', capturedAtMs: decemberMs })
      for (const event of order === 'live first' ? [live, copy] : [copy, live]) await insert({ events: [event] })
      assert.deepEqual(
        (await list(projectId)).map(event => event.propertiesJson),
        ['{"from":"live"}'],
      )
    })
  }

  it('prefers the later copy, whatever month it arrived in', async () => {
    const projectId = newProject()
    const event = aStoredEvent({ projectId, capturedAtMs: decemberMs, propertiesJson: '{"n":1}' })
    await insert({ events: [event] })
    await insert({ events: [{ ...event, capturedAtMs: novemberMs, propertiesJson: '{"n":2}' }] })
    assert.deepEqual(
      (await list(projectId)).map(view => view.propertiesJson),
      ['{"n":2}'],
    )
  })

  it('counts a restored row only if the event has no other row of the same kind', async () => {
    const projectId = newProject()
    const job = newJob()
    const from = (text: string) => ({ propertiesJson: JSON.stringify({ from: text }) })
    const live = aStoredEvent({ projectId, ...from('live') })
    const onlyImported = imported(aStoredEvent({ projectId, timestampMs: novemberMs - 1 }), job, from('import'))
    const gone = aStoredEvent({ projectId, timestampMs: novemberMs - 2 })
    await insert({ events: [live, onlyImported] })
    const again = [live, onlyImported, gone].map(event => ({ ...event, ...from('restored') }))
    await insert({ events: again, areRestored: true })
    const seen = async () => (await list(projectId)).map(event => event.propertiesJson)
    assert.deepEqual(await seen(), ['{"from":"live"}', '{"from":"import"}', '{"from":"restored"}'])
    await insert({ events: [{ ...onlyImported, importJobId: 0, ...from('restored') }], areRestored: true })
    await insert({ events: [gone] })
    assert.deepEqual(await seen(), ['{"from":"live"}', '{"from":"restored"}', '{}'])
  })

  it('stores the remaining rows if some cannot be stored, and reports which', async () => {
    const projectId = newProject()
    const good = aStoredEvent({ projectId })
    const { refused } = await insert({
      events: [
        aStoredEvent({ projectId, uuid: 'no uuid' }),
        good,
        aStoredEvent({ projectId, timestampMs: Number.NaN }),
        aStoredEvent({ projectId, timestampMs: Date.parse('2301-01-01T00:00:00Z') }),
      ],
      pendingEvents: [imported(aStoredEvent({ projectId, personId: '' }), newJob())],
    })
    assert.deepEqual(
      refused.map(({ list, index }) => [list, index]),
      [
        ['events', 0],
        ['events', 2],
        ['events', 3],
        ['pendingEvents', 0],
      ],
    )
    assert.match(refused[0]!.message, /uuid/)
    assert.deepEqual(
      (await list(projectId)).map(event => event.uuid),
      [good.uuid],
    )
  })

  it('stores several batches in one call', async () => {
    const projectId = newProject()
    const propertiesJson = JSON.stringify({ text: 'x'.repeat(900_000) })
    const events = Array.from({ length: 30 }, () => aStoredEvent({ projectId, propertiesJson }))
    await insert({ events })
    assert.deepEqual(await usage(projectId), [{ day: '2026-11-05', eventsCharged: 30, eventsImported: 0 }])
  })

  it('finds the persons of thousands of distinct ids, each by the last override of the highest version', async () => {
    const projectId = newProject()
    const override = (distinctId: string, version: number, ownerId = projectId) => ({
      projectId: ownerId,
      distinctId,
      personId: randomUUID(),
      version,
    })
    const many = Array.from({ length: 5_000 }, (_, n) => override(`${'é'.repeat(90)}${n}`, 1))
    const odd = ["'", '\\', '\t', '{x:String}', '漢字', 'NUL \u0000'].map(id => override(id, 1))
    const [first, second, third] = [override('a', 2), override('a', 1), override('a', 2)]
    const elsewhere = override('a', 9, newProject())
    await insert({ overrides: [first, ...many, ...odd, elsewhere] })
    await insert({ overrides: [second] })
    const found = async (ids: Parameters<EventWriter['findOverrides']>[0]) =>
      (await subject.store.findOverrides(ids)).toSorted((a, b) => (a.distinctId < b.distinctId ? -1 : 1))
    assert.deepEqual(await found([second, { projectId, distinctId: 'b' }]), [first])
    await insert({ overrides: [third] })
    assert.deepEqual(await found([first]), [third])
    const asked = [...many, ...odd].toSorted((a, b) => (a.distinctId < b.distinctId ? -1 : 1))
    assert.deepEqual(await found(asked), asked)
    assert.deepEqual(await subject.store.findOverrides([]), [])
  })

  eventWriterJobsContract(subject)
}
