// What every event store keeps: one identity is one event for every reader at once, however it came.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, describe, it } from 'node:test'
import type { StoredEvent } from '#core/events/stored-event.ts'
import type { JsonValue } from '#core/json.ts'
import { parseJson } from '#core/json.ts'
import type { EventCursor, EventQuery, EventStore, EventView } from '#ports/event-store.ts'
import { anEvent, imported } from '../support/an-event.ts'
import { eventStoreJobContract } from './event-store-jobs.contract.ts'
import { eventStoreNamesContract } from './event-store-names.contract.ts'
import { eventStoreReplayContract } from './event-store-replays.contract.ts'
import { decemberMs, eventStoreSubject, novemberMs, type OpenedEventStore } from './event-store-subject.ts'
import { eventStoreUsageContract } from './event-store-usage.contract.ts'
import { rejectsContract } from './rejects.contract.ts'

/** `open` answers a migrated store, shared by the suite; every test takes a project of its own. */
export function eventStoreContract(adapter: string, open: () => Promise<OpenedEventStore>): void {
  describe(`EventStore on ${adapter}`, () => {
    let opened: OpenedEventStore
    const subject = eventStoreSubject(() => opened)
    const { insert, list, usage, newProject, newJob } = subject

    before(async () => {
      opened = await open()
    })
    after(() => opened.close())

    it('gives an event back as it was stored', async () => {
      const projectId = newProject()
      const event = anEvent({
        projectId,
        propertiesJson: '{"a":1.0,"b":12345678901234567890}',
        elementsChain: 'a.link:href="/x"',
        personMode: 'force_upgrade',
        personPropertiesJson: '{"plan":"paid"}',
      })
      await insert({ events: [event] })
      const [view] = await list(projectId)
      const { chargedAtMs, groups, flags, sessionId, windowId, ...expected } = event
      assert.deepEqual(view, { ...expected, createdAtMs: subject.clock.nowMs() })
      assert.deepEqual(await subject.store.findEvent(projectId, event.uuid), view)
    })

    it('counts a retried event once', async () => {
      const projectId = newProject()
      const event = anEvent({ projectId })
      await insert({ events: [event, event] })
      await insert({ events: [event] })
      assert.equal((await list(projectId)).length, 1)
      assert.deepEqual(await usage(projectId), [{ day: '2026-11-05', eventsCharged: 1, eventsImported: 0 }])
    })

    it('counts one identity once when it came live and in two import jobs', async () => {
      const projectId = newProject()
      const event = anEvent({ projectId })
      await insert({ events: [imported(event, newJob())] })
      await insert({ events: [event] })
      await insert({ events: [imported(event, newJob()), imported(event, 1)] })
      const events = await list(projectId)
      assert.equal(events.length, 1)
      assert.equal(events[0]!.importJobId, 0)
      assert.deepEqual(await usage(projectId), [{ day: '2026-11-05', eventsCharged: 1, eventsImported: 0 }])
    })

    it('counts one identity once over two months of arrival', async () => {
      const projectId = newProject()
      const event = anEvent({ projectId, timestampMs: novemberMs, capturedAtMs: novemberMs })
      await insert({ events: [event] })
      await insert({ events: [{ ...event, capturedAtMs: decemberMs, chargedAtMs: decemberMs }] })
      assert.equal((await list(projectId)).length, 1)
      assert.deepEqual(await usage(projectId), [{ day: '2026-12-02', eventsCharged: 1, eventsImported: 0 }])
      assert.deepEqual(await usage(projectId, '2026-11-01', '2026-11-30'), [])
    })

    it('keeps apart what differs in name, distinct id, uuid or UTC day', async () => {
      const projectId = newProject()
      const event = anEvent({ projectId, timestampMs: Date.parse('2026-11-05T23:59:59.999Z') })
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
      it(`lets the live row win over an imported one, ${order}`, async () => {
        const projectId = newProject()
        const live = anEvent({ projectId, propertiesJson: '{"from":"live"}' })
        const copy = imported(live, newJob(), { propertiesJson: '{"from":"import"}', capturedAtMs: decemberMs })
        for (const event of order === 'live first' ? [live, copy] : [copy, live]) await insert({ events: [event] })
        assert.deepEqual(
          (await list(projectId)).map(event => event.propertiesJson),
          ['{"from":"live"}'],
        )
      })
    }

    it('lets the later copy win, whatever month it arrived in', async () => {
      const projectId = newProject()
      const event = anEvent({ projectId, capturedAtMs: decemberMs, propertiesJson: '{"n":1}' })
      await insert({ events: [event] })
      await insert({ events: [{ ...event, capturedAtMs: novemberMs, propertiesJson: '{"n":2}' }] })
      assert.deepEqual(
        (await list(projectId)).map(view => view.propertiesJson),
        ['{"n":2}'],
      )
    })

    it('filters by what the winning copy says, not by what an older one said', async () => {
      const projectId = newProject()
      const event = anEvent({ projectId, propertiesJson: '{"plan":"free"}' })
      await insert({ events: [event] })
      await insert({
        events: [{ ...event, timestampMs: event.timestampMs + 60_000, propertiesJson: '{"plan":"paid"}' }],
      })
      const filter = (value: string) => list(projectId, { properties: [{ key: 'plan', value }] })
      assert.equal((await filter('free')).length, 0)
      assert.equal((await filter('paid')).length, 1)
      assert.equal((await list(projectId, { beforeMs: event.timestampMs + 1 })).length, 0)
    })

    it('shows events under the person their distinct id belongs to now', async () => {
      const projectId = newProject()
      const [first, second, third] = [randomUUID(), randomUUID(), randomUUID()]
      await insert({
        events: [
          anEvent({ projectId, distinctId: 'anon', personId: first }),
          anEvent({ projectId, distinctId: 'ada', personId: second }),
        ],
      })
      await insert({ overrides: [{ projectId, distinctId: 'anon', personId: second, version: 1 }] })
      await insert({ overrides: [{ projectId: newProject(), distinctId: 'ada', personId: third, version: 9 }] })
      assert.deepEqual(new Set((await list(projectId)).map(event => event.personId)), new Set([second]))
      assert.equal((await list(projectId, { personId: first })).length, 0)
      assert.equal((await list(projectId, { personId: second })).length, 2)
      await insert({ overrides: [{ projectId, distinctId: 'anon', personId: third, version: 3 }] })
      await insert({ overrides: [{ projectId, distinctId: 'anon', personId: first, version: 2 }] })
      assert.deepEqual(
        (await list(projectId, { personId: third })).map(event => event.distinctId),
        ['anon'],
      )
    })

    it('finds the persons of a full page of long distinct ids', async () => {
      const projectId = newProject()
      const personId = randomUUID()
      const events = Array.from({ length: 1000 }, (_, n) =>
        anEvent({ projectId, distinctId: `${n}${'é\\n'.repeat(130)}`.slice(0, 400) }),
      )
      await insert({ events })
      await insert({ overrides: events.map(({ distinctId }) => ({ projectId, distinctId, personId, version: 1 })) })
      const listed = await list(projectId)
      assert.equal(listed.length, 1000)
      assert.ok(listed.every(event => event.personId === personId))
    })

    for (const descending of [true, false]) {
      it(`pages ${descending ? 'back' : 'forward'} without skipping or repeating, equal times and uuids included`, async () => {
        const projectId = newProject()
        const uuid = randomUUID()
        const events = [
          ...Array.from({ length: 7 }, (_, n) => anEvent({ projectId, uuid, event: `same uuid ${n}` })),
          ...Array.from({ length: 8 }, (_, n) => anEvent({ projectId, timestampMs: novemberMs + (n >> 2) })),
          anEvent({ projectId, timestampMs: Date.parse('1905-03-04T05:06:07.008Z') }),
          anEvent({ projectId, timestampMs: Date.parse('2298-03-04T05:06:07.008Z') }),
        ]
        await insert({ events })
        const seen: string[] = []
        let cursor: EventCursor | null = null
        let pageCount = 0
        do {
          const page: { events: readonly EventView[]; next: EventCursor | null } = await subject.store.listEvents({
            projectId,
            descending,
            limit: 3,
            ...(cursor && { after: cursor }),
          })
          seen.push(...page.events.map(event => `${event.timestampMs} ${event.uuid} ${event.event}`))
          cursor = page.next
          // An event that arrives on an earlier page changes nothing on the later ones.
          if (pageCount++ === 0) {
            await insert({ events: [anEvent({ projectId, timestampMs: page.events[0]!.timestampMs })] })
          }
        } while (cursor !== null)
        assert.equal(pageCount, 6)
        assert.equal(seen.length, events.length)
        assert.equal(new Set(seen).size, events.length)
        const times = seen.map(text => Number(text.split(' ', 1)[0]))
        assert.deepEqual(
          times,
          times.toSorted((a, b) => (descending ? b - a : a - b)),
        )
      })
    }

    for (const descending of [true, false])
      it(`cuts a page of large events, and the next one begins where it ends: ${descending ? 'newest' : 'oldest'} first`, async () => {
        const projectId = newProject()
        const large = JSON.stringify({ text: 'x'.repeat(900_000) })
        // Copies count once, and the one with the highest version is the one that is read.
        const sizes = [large, '{}', large, large, '{}', large, '{}', large, large, '{}']
        const events = sizes.map((propertiesJson, n) =>
          anEvent({ projectId, distinctId: `d${n}`, timestampMs: novemberMs + Math.floor(n / 2), propertiesJson }),
        )
        await insert({ events: [...events, { ...events[1]!, propertiesJson: large }] })
        await insert({ events: [events[1]!] })
        const seen: string[] = []
        const pages: number[] = []
        for (let after: EventCursor | undefined; ; ) {
          const query = { projectId, descending, limit: 1_000, ...(after === undefined ? {} : { after }) }
          const page = await subject.store.listEvents(query)
          const bytes = page.events.reduce((sum, event) => sum + event.propertiesJson.length, 0)
          assert.ok(bytes <= 4 * 1024 * 1024, `${bytes} bytes of ${page.events.length} events`)
          seen.push(...page.events.map(({ distinctId }) => distinctId))
          pages.push(page.events.length)
          if (page.next === null) break
          after = page.next
        }
        assert.ok(pages.length > 1 && pages[0]! > 1, `pages of ${pages}`)
        assert.deepEqual(seen.toSorted(), events.map(({ distinctId }) => distinctId).toSorted())
        assert.deepEqual(
          await subject.store.findEvent(projectId, events[4]!.uuid).then(found => found?.distinctId),
          'd4',
        )
      })

    it('filters by name, distinct id, uuid and time, bounds exclusive', async () => {
      const projectId = newProject()
      const events = [1, 2, 3].map(n =>
        anEvent({ projectId, event: `e${n}`, distinctId: `d${n}`, timestampMs: novemberMs + n }),
      )
      await insert({ events })
      const names = async (over: Partial<EventQuery>) => (await list(projectId, over)).map(event => event.event)
      assert.deepEqual(await names({ event: 'e2' }), ['e2'])
      assert.deepEqual(await names({ distinctId: 'd3' }), ['e3'])
      assert.deepEqual(await names({ uuid: events[0]!.uuid.toUpperCase() }), ['e1'])
      assert.deepEqual(await names({ uuid: 'no uuid' }), [])
      assert.deepEqual(await names({ personId: "' OR 1 = 1 --" }), [])
      assert.deepEqual(await names({ afterMs: novemberMs + 1, beforeMs: novemberMs + 3 }), ['e2'])
      assert.equal(await subject.store.findEvent(projectId, 'no uuid'), null)
      assert.equal(await subject.store.findEvent(projectId, randomUUID()), null)
      assert.equal(await subject.store.findEvent(newProject(), events[0]!.uuid), null)
    })

    it('filters by the text form of properties', async () => {
      const projectId = newProject()
      const propertiesJson =
        '{"s":"it\'s \\"5\\" {x:String}","n":5,"f":1.5,"one":1.0,"hundred":1e2,"tiny":1e-9,"neg":-7,"dig":123456789012345678,"big":12345678901234567890,"t":true,"z":null,"e":"","o":{"a":[1,"b"]},"a.b":"dot","__proto__":"p"}'
      await insert({ events: [anEvent({ projectId, propertiesJson })] })
      const matches = async (key: string, value: JsonValue) =>
        (await list(projectId, { properties: [{ key, value }] })).length === 1
      for (const [key, value] of Object.entries(parseJson(propertiesJson) as Record<string, JsonValue>)) {
        assert.equal(await matches(key, value), true, key)
      }
      assert.equal(await matches('__proto__', 'p'), true)
      assert.equal(await matches('n', '5'), true)
      assert.equal(await matches('n', 6), false)
      assert.equal(await matches('e', 'x'), false)
      assert.equal(await matches('absent', ''), false)
      assert.equal(await matches('absent', null), false)
      assert.equal(await matches('o', { a: [1, 'c'] }), false)
    })

    it('gives back any text unchanged', async () => {
      const projectId = newProject()
      const texts = [
        `quotes ' " \` and \\ backslash \\n`,
        'NUL \u0000, tab \t, newline \n, escape \u001b',
        'emoji 🏴‍☠️, Привет, 漢字, ﷽',
        '{x:String} ?? :: -- /* */ ; DROP TABLE events',
        'x'.repeat(200_000),
        'é'.repeat(127),
        'é'.repeat(64),
        '',
      ]
      const events = texts.map((text, n) =>
        anEvent({ projectId, event: text, distinctId: text, elementsChain: text, timestampMs: novemberMs + n }),
      )
      await insert({ events })
      assert.deepEqual(
        (await list(projectId, { descending: false })).map(view => [view.event, view.distinctId, view.elementsChain]),
        texts.map(text => [text, text, text]),
      )
      for (const text of texts.filter(each => each.length < 1000)) {
        assert.equal((await list(projectId, { event: text, distinctId: text })).length, 1, JSON.stringify(text))
      }
    })

    it('keeps the client’s JSON text, escaped lone surrogates and 64-bit literals included', async () => {
      const projectId = newProject()
      const propertiesJson =
        '{"lone":"\\ud800","id":9007199254740993,"one":1.0,"e":1E2,"dup":1,"dup":2,"nul":"\\u0000"}'
      await insert({ events: [anEvent({ projectId, propertiesJson, personPropertiesJson: propertiesJson })] })
      const [view] = await list(projectId)
      assert.equal(view!.propertiesJson, propertiesJson)
      assert.equal(view!.personPropertiesJson, propertiesJson)
    })

    it('stores the others when some rows cannot be stored, and says which', async () => {
      const projectId = newProject()
      const good = anEvent({ projectId })
      const { refused } = await insert({
        events: [
          anEvent({ projectId, uuid: 'no uuid' }),
          good,
          anEvent({ projectId, timestampMs: Number.NaN }),
          anEvent({ projectId, timestampMs: Date.parse('2301-01-01T00:00:00Z') }),
        ],
        pendingEvents: [imported(anEvent({ projectId, personId: '' }), newJob())],
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

    it('stores more than one piece in one call', async () => {
      const projectId = newProject()
      const propertiesJson = JSON.stringify({ text: 'x'.repeat(900_000) })
      const events = Array.from({ length: 30 }, () => anEvent({ projectId, propertiesJson }))
      await insert({ events })
      assert.deepEqual(await usage(projectId), [{ day: '2026-11-05', eventsCharged: 30, eventsImported: 0 }])
    })

    it('says where distinct ids lead, by the last override of the highest version, thousands at once', async () => {
      const projectId = newProject()
      const override = (distinctId: string, version: number, of = projectId) => ({
        projectId: of,
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
      const found = async (ids: Parameters<EventStore['findOverrides']>[0]) =>
        (await subject.store.findOverrides(ids)).toSorted((a, b) => (a.distinctId < b.distinctId ? -1 : 1))
      assert.deepEqual(await found([second, { projectId, distinctId: 'b' }]), [first])
      await insert({ overrides: [third] })
      assert.deepEqual(await found([first]), [third])
      const asked = [...many, ...odd].toSorted((a, b) => (a.distinctId < b.distinctId ? -1 : 1))
      assert.deepEqual(await found(asked), asked)
      assert.deepEqual(await subject.store.findOverrides([]), [])
    })

    eventStoreReplayContract(subject)
    eventStoreNamesContract(subject)
    eventStoreJobContract(subject)
    eventStoreUsageContract(subject)
    rejectsContract(() => subject.store, newProject)

    it('answers an aborted query with the signal’s reason', async () => {
      const reason = new Error('the client went away')
      await assert.rejects(
        subject.store.listEvents({ projectId: newProject(), descending: true, limit: 1 }, AbortSignal.abort(reason)),
        reason,
      )
    })

    it('can be migrated again while it is used', async () => {
      await Promise.all([subject.store.migrate(), subject.store.migrate(), subject.store.ping()])
    })
  })
}
