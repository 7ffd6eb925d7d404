// The contract of event queries: pages, filters, names, and the persons that events have today.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { it } from 'node:test'
import type { JsonValue } from '#core/json.ts'
import { parseJson } from '#core/json.ts'
import type { EventCursor, EventQuery, EventView } from '#ports/events/event-queries.ts'
import { aStoredEvent, imported } from '../support/values.ts'
import { eventNamesContract } from './event-names.contract.ts'
import { decemberMs, type EventStoreSubject, novemberMs } from './event-store-subject.ts'

export function eventQueriesContract(subject: EventStoreSubject): void {
  const { insert, list, newProject, newJob } = subject

  it('returns an event as it was stored', async () => {
    const projectId = newProject()
    const event = aStoredEvent({
      projectId,
      propertiesJson: '{"a":1.0,"b":12345678901234567890}',
      elementsChain: 'a.link:href="/x"',
      personMode: 'force_upgrade',
      personPropertiesJson: '{"plan":"paid"}',
    })
    await insert({ events: [event] })
    const [view] = await list(projectId)
    const { chargedAtMs, groups, flags, sessionId, windowId, flagCalled, flagResponse, ...stored } = event
    const { linkedId, logStream, logOffset, ...expected } = stored
    assert.deepEqual(view, { ...expected, createdAtMs: subject.clock.nowMs() })
    assert.deepEqual(await subject.store.findEvent({ projectId }, event.uuid), view)
  })

  it('filters by the winning copy of an event, not by an older copy', async () => {
    const projectId = newProject()
    const event = aStoredEvent({ projectId, propertiesJson: '{"plan":"free"}' })
    await insert({ events: [event] })
    await insert({
      events: [{ ...event, timestampMs: event.timestampMs + 60_000, propertiesJson: '{"plan":"paid"}' }],
    })
    const filter = (value: string) => list(projectId, { properties: [{ key: 'plan', value }] })
    assert.equal((await filter('free')).length, 0)
    assert.equal((await filter('paid')).length, 1)
    assert.equal((await list(projectId, { beforeMs: event.timestampMs + 1 })).length, 0)
  })

  it('shows events with the current person of their distinct id', async () => {
    const projectId = newProject()
    const [first, second, third] = [randomUUID(), randomUUID(), randomUUID()]
    await insert({
      events: [
        aStoredEvent({ projectId, distinctId: 'anon', personId: first }),
        aStoredEvent({ projectId, distinctId: 'ada', personId: second }),
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

  it('counts merged persons once, in live and imported events, across months of arrival and further merges', async () => {
    const projectId = newProject()
    const persons = { a: randomUUID(), b: randomUUID(), c: randomUUID(), other: randomUUID() }
    const shown = (distinctId: string, personId: string, capturedAtMs = novemberMs) =>
      aStoredEvent({
        ...{ projectId, event: 'survey shown', distinctId, personId, capturedAtMs },
        propertiesJson: '{"$survey_id":"s"}',
      })
    const personsSeen = async () => {
      const { shown } = await subject.store.countSurveyEvents({ projectId, surveyIds: ['s'] })
      const listed = await list(projectId)
      assert.equal(shown.count, listed.length)
      assert.equal(shown.persons, new Set(listed.map(({ personId }) => personId)).size)
      const counts: number[] = []
      for (const personId of Object.values(persons)) counts.push((await list(projectId, { personId })).length)
      assert.equal(
        counts.reduce((sum, count) => sum + count),
        listed.length,
      )
      for (const { uuid, personId } of listed)
        assert.equal((await subject.store.findEvent({ projectId }, uuid))?.personId, personId)
      return { count: shown.persons, a: counts[0], b: counts[1], c: counts[2], other: counts[3] }
    }
    // The empty distinct id is overridden like any other.
    const nameless = shown('', persons.b, decemberMs)
    const repeated = shown('b', persons.b)
    await insert({
      events: [
        shown('a', persons.a),
        repeated,
        { ...repeated, capturedAtMs: decemberMs },
        imported(shown('b', persons.b, decemberMs), newJob()),
        imported(nameless, 1),
        shown('c', persons.c, decemberMs),
        shown('x', persons.other),
      ],
    })
    assert.deepEqual(await personsSeen(), { count: 4, a: 1, b: 3, c: 1, other: 1 })
    const override = (distinctId: string, personId: string, version: number) => ({
      ...{ projectId, distinctId, personId, version },
    })
    await insert({ overrides: [override('b', persons.a, 1), override('', persons.a, 1)] })
    assert.deepEqual(await personsSeen(), { count: 3, a: 4, b: 0, c: 1, other: 1 })
    // The survivor is merged away in turn, and an event in progress still has the first person.
    await insert({
      events: [shown('b', persons.b, decemberMs)],
      overrides: [override('a', persons.c, 1), override('b', persons.c, 2), override('', persons.c, 2)],
    })
    assert.deepEqual(await personsSeen(), { count: 2, a: 0, b: 0, c: 6, other: 1 })
  })

  it('finds the persons for a full page of events with long distinct ids', async () => {
    const projectId = newProject()
    const personId = randomUUID()
    const events = Array.from({ length: 1000 }, (_, n) =>
      aStoredEvent({ projectId, distinctId: `${n}${'é\\n'.repeat(130)}`.slice(0, 400) }),
    )
    await insert({ events })
    await insert({ overrides: events.map(({ distinctId }) => ({ projectId, distinctId, personId, version: 1 })) })
    const listed = await list(projectId)
    assert.equal(listed.length, 1000)
    assert.ok(listed.every(event => event.personId === personId))
  })

  for (const descending of [true, false]) {
    it(`pages ${descending ? 'back' : 'forward'} without skipping or repeating events, even with equal times and uuids`, async () => {
      const projectId = newProject()
      const uuid = randomUUID()
      const events = [
        ...Array.from({ length: 7 }, (_, n) => aStoredEvent({ projectId, uuid, event: `same uuid ${n}` })),
        ...Array.from({ length: 8 }, (_, n) => aStoredEvent({ projectId, timestampMs: novemberMs + (n >> 2) })),
        aStoredEvent({ projectId, timestampMs: Date.parse('1905-03-04T05:06:07.008Z') }),
        aStoredEvent({ projectId, timestampMs: Date.parse('2298-03-04T05:06:07.008Z') }),
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
          await insert({ events: [aStoredEvent({ projectId, timestampMs: page.events[0]!.timestampMs })] })
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
    it(`ends a page of large events early, and the next begins where it ends: ${descending ? 'newest' : 'oldest'} first`, async () => {
      const projectId = newProject()
      const large = JSON.stringify({ text: 'x'.repeat(900_000) })
      // Copies count once, and the one with the highest version is read.
      const sizes = [large, '{}', large, large, '{}', large, '{}', large, large, '{}']
      const events = sizes.map((propertiesJson, n) =>
        aStoredEvent({ projectId, distinctId: `d${n}`, timestampMs: novemberMs + Math.floor(n / 2), propertiesJson }),
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
        await subject.store.findEvent({ projectId }, events[4]!.uuid).then(found => found?.distinctId),
        'd4',
      )
    })

  it('filters by name, distinct id, uuid and time, with exclusive bounds', async () => {
    const projectId = newProject()
    const events = [1, 2, 3].map(n =>
      aStoredEvent({ projectId, event: `e${n}`, distinctId: `d${n}`, timestampMs: novemberMs + n }),
    )
    await insert({ events })
    const names = async (over: Partial<EventQuery>) => (await list(projectId, over)).map(event => event.event)
    assert.deepEqual(await names({ event: 'e2' }), ['e2'])
    assert.deepEqual(await names({ distinctId: 'd3' }), ['e3'])
    assert.deepEqual(await names({ uuid: events[0]!.uuid.toUpperCase() }), ['e1'])
    assert.deepEqual(await names({ uuid: 'no uuid' }), [])
    assert.deepEqual(await names({ personId: "' OR 1 = 1 --" }), [])
    assert.deepEqual(await names({ afterMs: novemberMs + 1, beforeMs: novemberMs + 3 }), ['e2'])
    assert.equal(await subject.store.findEvent({ projectId }, 'no uuid'), null)
    assert.equal(await subject.store.findEvent({ projectId }, randomUUID()), null)
    assert.equal(await subject.store.findEvent({ projectId: newProject() }, events[0]!.uuid), null)
  })

  it('filters by properties as text', async () => {
    const projectId = newProject()
    const propertiesJson =
      '{"s":"it\'s \\"5\\" {x:String}","n":5,"f":1.5,"one":1.0,"hundred":1e2,"tiny":1e-9,"neg":-7,"zero":0,"minus":-0,"minusZero":-0.0,"dig":123456789012345678,"big":12345678901234567890,"t":true,"z":null,"e":"","o":{"a":[1,"b"]},"a.b":"dot","__proto__":"p"}'
    await insert({ events: [aStoredEvent({ projectId, propertiesJson })] })
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

  it('returns any text unchanged', async () => {
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
      aStoredEvent({ projectId, event: text, distinctId: text, elementsChain: text, timestampMs: novemberMs + n }),
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

  it('preserves the client’s JSON text, including escaped lone surrogates and 64-bit literals', async () => {
    const projectId = newProject()
    const propertiesJson = '{"lone":"\\ud800","id":9007199254740993,"one":1.0,"e":1E2,"dup":1,"dup":2,"nul":"\\u0000"}'
    await insert({ events: [aStoredEvent({ projectId, propertiesJson, personPropertiesJson: propertiesJson })] })
    const [view] = await list(projectId)
    assert.equal(view!.propertiesJson, propertiesJson)
    assert.equal(view!.personPropertiesJson, propertiesJson)
  })

  eventNamesContract(subject)

  it('a query fails with the reason of its signal when the signal aborts', async () => {
    const reason = new Error('the client went away')
    await assert.rejects(
      subject.store.listEvents({ projectId: newProject(), descending: true, limit: 1 }, AbortSignal.abort(reason)),
      reason,
    )
  })
}
