// The contract of exports: the same events as the list, in its order, whatever the sizes, and from any cursor on.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { it } from 'node:test'
import type { StoredEvent } from '#core/events/stored-event.ts'
import type { EventExportQuery, EventExports, ExportedEvent } from '#ports/events/event-queries.ts'
import { aStoredEvent, imported } from '../support/values.ts'
import { type EventStoreSubject, novemberMs } from './event-store-subject.ts'

const eventCount = 120
const names = ['$pageview', 'покупка', 'a "quoted", name', 'two\nlines']

/**
 * @param small the same store read in pieces so small that a few hundred events take every turn that there is.
 * @param byKey the same, which takes every day for a busy one.
 */
export function eventExportsContract(
  subject: EventStoreSubject,
  small: () => EventExports,
  byKey: () => EventExports,
): void {
  const { insert, newProject, newJob } = subject

  async function exported(
    store: EventExports,
    projectId: number,
    over: Partial<EventExportQuery> = {},
  ): Promise<readonly ExportedEvent[]> {
    const { batches } = await store.openEventExport(
      { projectId, descending: true, ...over },
      AbortSignal.timeout(60_000),
    )
    const found = await Array.fromAsync(batches, batch => [...batch])
    // A cursor after the last event would suggest more events.
    assert.ok(found.every(batch => batch.length > 0))
    return found.flat()
  }

  async function listed(projectId: number, over: Partial<EventExportQuery> = {}) {
    const all = []
    for (let after = over.after; ; ) {
      const query = { projectId, descending: true, limit: 1_000, ...over, ...(after !== undefined && { after }) }
      const { events, next } = await subject.store.listEvents(query)
      all.push(...events)
      if (next === null) return all
      after = next
    }
  }

  /** Events of some days, many of them in one millisecond, with copies and imports among them. */
  async function seeded(projectId: number): Promise<readonly StoredEvent[]> {
    const events = Array.from({ length: eventCount }, (_, index) =>
      aStoredEvent({
        projectId,
        event: names[index % names.length]!,
        distinctId: index % 5 === 0 ? 'server' : `user ${index % 37}`,
        timestampMs:
          index % 3 === 0 ? novemberMs : novemberMs + (index % 7) * 86_400_000 + ((index * 7_919) % 80_000) * 1_000,
        propertiesJson: `{"n":${index}.0,"id":1234567890123456789${index % 10},"s":"${'x'.repeat((index * 97) % 1_000)}"}`,
      }),
    )
    await insert({ events })
    const job = newJob()
    await insert({
      events: [
        ...events.slice(0, 20).map(event => ({ ...event, propertiesJson: '{"again":true}' })),
        ...events.slice(20, 40).map(event => imported(event, job, { propertiesJson: '{"imported":true}' })),
      ],
    })
    return events
  }

  it('have every event identity once, in the order of the list, in both directions', async () => {
    const projectId = newProject()
    const events = await seeded(projectId)
    for (const descending of [true, false]) {
      const expected = await listed(projectId, { descending })
      assert.equal(expected.length, events.length)
      for (const store of [subject.store, small()]) {
        const found = await exported(store, projectId, { descending })
        assert.deepEqual(
          found.map(({ event }) => event),
          expected,
        )
      }
    }
  })

  it('resume exactly after any of their cursors', async () => {
    const projectId = newProject()
    await seeded(projectId)
    for (const [descending, places] of [
      [true, [0, 57, eventCount - 1]],
      [false, [20, 53, eventCount - 2]],
    ] as const) {
      const whole = await exported(small(), projectId, { descending })
      for (const at of places) {
        const rest = await exported(small(), projectId, { descending, after: whole[at]!.cursor })
        assert.deepEqual(rest, whole.slice(at + 1), `after ${at}`)
      }
    }
  })

  it('have the same events as a list with the same filters', async () => {
    const projectId = newProject()
    const events = await seeded(projectId)
    const [first, second] = [randomUUID(), randomUUID()]
    await insert({
      overrides: [
        { projectId, distinctId: 'user 3', personId: first, version: 1 },
        { projectId, distinctId: 'server', personId: second, version: 2 },
      ],
    })
    const filters: Partial<EventExportQuery>[] = [
      { event: names[2]! },
      { distinctId: 'server' },
      { uuid: events[7]!.uuid },
      { personId: first },
      { personId: second, descending: false },
      { personId: randomUUID() },
      { afterMs: novemberMs, beforeMs: novemberMs + 3 * 86_400_000 },
      { properties: [{ key: 'imported', value: true }] },
      { properties: [{ key: 'again', value: true }], event: names[0]! },
      { event: `' OR 1 = 1 --` },
      { distinctId: '{project:UInt32}' },
      { properties: [{ key: `') OR 1 = 1 --`, value: `\\' UNION SELECT 1` }] },
    ]
    for (const filter of filters) {
      const expected = await listed(projectId, filter)
      const found = await exported(small(), projectId, filter)
      assert.deepEqual(
        found.map(({ event }) => event),
        expected,
        JSON.stringify(filter),
      )
    }
  })

  it('have every event of busy days once, with days in order, and resume exactly after any of their cursors', async () => {
    const projectId = newProject()
    await seeded(projectId)
    for (const descending of [true, false]) {
      const expected = await listed(projectId, { descending })
      const found = await exported(byKey(), projectId, { descending })
      assert.deepEqual(byUuid(found), byUuid(expected.map(event => ({ event }))))
      const days = found.map(({ event }) => Math.floor(event.timestampMs / 86_400_000))
      assert.deepEqual(
        days,
        days.toSorted((a, b) => (descending ? b - a : a - b)),
      )
      for (let at = 0; at < found.length; at += 47) {
        const after = found[at]!.cursor
        assert.deepEqual(await exported(byKey(), projectId, { descending, after }), found.slice(at + 1), `after ${at}`)
      }
    }
  })

  it('resume in a day that has become busy, and in a day that has become quiet', async () => {
    const projectId = newProject()
    await seeded(projectId)
    for (const descending of [true, false]) {
      const byTime = await exported(subject.store, projectId, { descending })
      const at = 61
      const rest = await exported(byKey(), projectId, { descending, after: byTime[at]!.cursor })
      assert.deepEqual(byUuid(rest), byUuid(byTime.slice(at + 1)))
      const [half, other] = [rest.slice(0, 20), rest.slice(20)]
      for (const store of [byKey(), small(), subject.store]) {
        const further = await exported(store, projectId, { descending, after: half.at(-1)!.cursor })
        assert.deepEqual(byUuid(further), byUuid(other))
      }
    }
  })

  it('also apply the filters on busy days', async () => {
    const projectId = newProject()
    await seeded(projectId)
    const first = randomUUID()
    await insert({ overrides: [{ projectId, distinctId: 'user 3', personId: first, version: 1 }] })
    const filters: Partial<EventExportQuery>[] = [
      { event: names[2]! },
      { distinctId: 'server' },
      { personId: first },
      { afterMs: novemberMs, beforeMs: novemberMs + 3 * 86_400_000 },
      { properties: [{ key: 'imported', value: true }] },
      { properties: [{ key: `') OR 1 = 1 --`, value: `\\' UNION SELECT 1` }] },
    ]
    for (const filter of filters) {
      const expected = await listed(projectId, filter)
      const found = await exported(byKey(), projectId, filter)
      assert.deepEqual(byUuid(found), byUuid(expected.map(event => ({ event }))), JSON.stringify(filter))
    }
  })

  it('have an event of a busy day once even if it is resent with another time during the export', async () => {
    for (const descending of [true, false]) {
      const projectId = newProject()
      const events = await seeded(projectId)
      const { batches } = await byKey().openEventExport({ projectId, descending }, AbortSignal.timeout(60_000))
      const found: string[] = []
      for await (const batch of batches) {
        // All of them move, to the other end of their days.
        if (found.length === 0)
          await insert({
            events: events.map(event => ({
              ...event,
              timestampMs: Math.floor(event.timestampMs / 86_400_000) * 86_400_000 + (descending ? 86_399_000 : 1_000),
            })),
          })
        for (const { event } of batch) found.push(event.uuid)
      }
      assert.deepEqual(found.toSorted(), events.map(({ uuid }) => uuid).toSorted())
    }
  })

  it('contain only events of their own project, even if the cursor is forged', async () => {
    const [projectId, otherId] = [newProject(), newProject()]
    await seeded(projectId)
    await seeded(otherId)
    const [theirs] = await exported(byKey(), otherId)
    const cursors = [
      theirs!.cursor,
      { ...theirs!.cursor, key: { event: `' OR 1 = 1 --`, distinctId: '{project:UInt32}', base: null } },
      { ...theirs!.cursor, key: { event: '\\', distinctId: '\0', base: { ...theirs!.cursor, tieBreak: '0' } } },
      {
        timestampMs: -9_999_999_999_999,
        uuid: randomUUID(),
        tieBreak: '0',
        key: { event: '', distinctId: '', base: null },
      },
      {
        timestampMs: 9_999_999_999_999,
        uuid: randomUUID(),
        tieBreak: '0',
        key: { event: '', distinctId: '', base: null },
      },
    ]
    for (const after of cursors)
      for (const store of [byKey(), subject.store])
        for (const { event } of await exported(store, projectId, { after })) assert.equal(event.projectId, projectId)
  })

  it('report in advance an upper bound of their rows: the number of stored rows', async () => {
    const projectId = newProject()
    await seeded(projectId)
    const { eventCountMax } = await small().openEventExport(
      { projectId, descending: true },
      AbortSignal.timeout(60_000),
    )
    assert.ok(eventCountMax >= eventCount && eventCountMax <= eventCount + 40, String(eventCountMax))
    const none = await small().openEventExport(
      { projectId: newProject(), descending: true },
      AbortSignal.timeout(60_000),
    )
    assert.equal(none.eventCountMax, 0)
    assert.deepEqual(await Array.fromAsync(none.batches), [])
  })

  it('neither skip nor repeat events while others arrive, and include those that arrive in the unread part', async () => {
    const projectId = newProject()
    await seeded(projectId)
    const before = await listed(projectId, { descending: false })
    const found: string[] = []
    const { batches } = await small().openEventExport({ projectId, descending: false }, AbortSignal.timeout(60_000))
    let arrived = 0
    const later: string[] = []
    for await (const rows of batches) {
      const batch = [...rows]
      found.push(...batch.map(({ event }) => event.uuid))
      if (arrived >= 5) continue
      const at = batch.at(-1)!.event.timestampMs
      const [behind, ahead] = [
        aStoredEvent({ projectId, event: 'late', timestampMs: at - 1 - arrived }),
        aStoredEvent({ projectId, event: 'late', timestampMs: novemberMs + 5 * 86_400_000 + arrived++ * 1_000 }),
      ]
      await insert({ events: [behind, ahead] })
      if (ahead.timestampMs > at) later.push(ahead.uuid)
    }
    assert.ok(later.length > 0)
    assert.equal(new Set(found).size, found.length)
    const known = new Set(before.map(({ uuid }) => uuid))
    assert.deepEqual(
      found.filter(uuid => known.has(uuid)),
      before.map(({ uuid }) => uuid),
    )
    assert.deepEqual(
      later.filter(uuid => !found.includes(uuid)),
      [],
    )
  })

  it('have everything once, in order, even if far more than a page arrives in the unread part', async () => {
    const projectId = newProject()
    const before = await seeded(projectId)
    const { batches } = await small().openEventExport({ projectId, descending: false }, AbortSignal.timeout(60_000))
    // After the first batch, among slices that were measured with it.
    const soonMs = before.map(({ timestampMs }) => timestampMs).toSorted((a, b) => a - b)[45]!
    const arriving = Array.from({ length: 100 }, (_, index) =>
      aStoredEvent({ projectId, event: 'late', timestampMs: soonMs + (index % 3) * 1_000 }),
    )
    const found: ExportedEvent['event'][] = []
    for await (const batch of batches) {
      if (found.length === 0) await insert({ events: arriving })
      for (const { event } of batch) found.push(event)
    }
    assert.deepEqual(found, await listed(projectId, { descending: false }))
    assert.equal(found.length, before.length + arriving.length)
  })

  it('end with the reason of their abort signal, and read nothing until they are iterated', async () => {
    const projectId = newProject()
    await seeded(projectId)
    const stop = new AbortController()
    const { batches } = await small().openEventExport({ projectId, descending: true }, stop.signal)
    const reader = batches[Symbol.asyncIterator]()
    assert.ok([...(await reader.next()).value!].length > 0)
    const reason = new Error('gone')
    stop.abort(reason)
    await assert.rejects(async () => {
      for (;;) if ((await reader.next()).done === true) return
    }, reason)
  })
}

function byUuid(found: readonly { readonly event: ExportedEvent['event'] }[]) {
  return found.map(({ event }) => event).toSorted((a, b) => (a.uuid < b.uuid ? -1 : 1))
}
