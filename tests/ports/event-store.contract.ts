// What every event store keeps: one identity is one event for every reader at once, however it came.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, describe, it } from 'node:test'
import type { StoredEvent } from '#core/events/stored-event.ts'
import type { ThinnedCall } from '#core/events/thin-flag-calls.ts'
import type { JsonObject, JsonValue } from '#core/json.ts'
import { parseJson } from '#core/json.ts'
import { noEventUsage } from '#core/usage.ts'
import type { EventCursor, EventQuery, EventRows, EventStore, EventView, ReplayQuery } from '#ports/event-store.ts'
import { anEvent, imported } from '../support/an-event.ts'
import { aCapturedReplay } from '../support/captured-replays.ts'
import type { fixedClock } from '../support/fixed-clock.ts'
import { rejectsContract } from './rejects.contract.ts'

type TestClock = ReturnType<typeof fixedClock>

const novemberMs = Date.parse('2026-11-05T10:00:00Z')
const decemberMs = Date.parse('2026-12-02T10:00:00Z')

/** `open` answers a migrated store, shared by the suite; every test takes a project of its own. */
export function eventStoreContract(
  adapter: string,
  open: () => Promise<{ store: EventStore; clock: TestClock; close: () => Promise<void> }>,
): void {
  describe(`EventStore on ${adapter}`, () => {
    let store: EventStore
    let clock: TestClock
    let close: () => Promise<void>
    let projectCount = 0
    let jobCount = 1
    const newProject = () => ++projectCount
    const newJob = () => ++jobCount

    before(async () => {
      const opened = await open()
      store = opened.store
      clock = opened.clock
      close = opened.close
    })
    after(() => close())

    const insert = (rows: Partial<EventRows>) => {
      clock.advance(1)
      return store.insert({ events: [], pendingEvents: [], overrides: [], replays: [], rejected: [], ...rows })
    }
    const list = async (projectId: number, over: Partial<EventQuery> = {}): Promise<readonly EventView[]> =>
      (await store.listEvents({ projectId, descending: true, limit: 1000, ...over })).events
    const usage = async (projectId: number, from = '2026-11-01', to = '2026-12-31') =>
      (await store.countUsage(projectId, from, to)).map(({ day, eventsCharged, eventsImported }) => ({
        day,
        eventsCharged,
        eventsImported,
      }))

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
      assert.deepEqual(view, { ...expected, createdAtMs: clock.nowMs() })
      assert.deepEqual(await store.findEvent(projectId, event.uuid), view)
    })

    it('gives a replay back as it was stored, its items byte for byte', async () => {
      const projectId = newProject()
      const replay = aCapturedReplay(1, { projectId, distinctId: 'åda', items: new Uint8Array([0, 255, 10, 34, 128]) })
      await insert({ replays: [replay] })
      const { token, capturedAtMs, items, ...view } = replay
      assert.deepEqual(await store.listReplays({ projectId, limit: 10 }), { replays: [view], next: null })
      const found = await store.findReplay(projectId, replay.uuid)
      assert.deepEqual(found?.replay, view)
      assert.deepEqual([...found!.items!], [...items])
      assert.equal(await store.findReplay(newProject(), replay.uuid), null)
    })

    it('replaces a replay that comes again, and keeps apart what differs in session or uuid', async () => {
      const projectId = newProject()
      const replay = aCapturedReplay(1, { projectId })
      await insert({ replays: [replay, aCapturedReplay(2, { projectId })] })
      await insert({ replays: [replay] })
      await insert({
        replays: [
          { ...replay, sessionId: 'session-2' },
          { ...replay, itemCount: 9 },
        ],
      })
      const { replays } = await store.listReplays({ projectId, limit: 10 })
      assert.deepEqual(replays.map(one => [one.uuid.slice(-1), one.sessionId, one.itemCount]).sort(), [
        ['1', 'session-1', 9],
        ['1', 'session-2', 1],
        ['2', 'session-1', 1],
      ])
    })

    it('lists replays newest first in pages, by session, distinct id and time', async () => {
      const projectId = newProject()
      const replays = Array.from({ length: 5 }, (_, n) =>
        aCapturedReplay(n, {
          projectId,
          sessionId: `session-${n % 2}`,
          distinctId: n < 3 ? 'ada' : 'bob',
          timestampMs: novemberMs + Math.floor(n / 2),
        }),
      )
      await insert({ replays })
      const numbers = async (over: Partial<ReplayQuery>) =>
        (await store.listReplays({ projectId, limit: 10, ...over })).replays.map(({ uuid }) => Number(uuid.slice(-1)))
      assert.deepEqual(await numbers({}), [4, 3, 2, 1, 0])
      assert.deepEqual(await numbers({ sessionId: 'session-1' }), [3, 1])
      assert.deepEqual(await numbers({ distinctId: 'bob' }), [4, 3])
      assert.deepEqual(await numbers({ afterMs: novemberMs, beforeMs: novemberMs + 2 }), [3, 2])
      const first = await store.listReplays({ projectId, limit: 2 })
      const second = await store.listReplays({ projectId, limit: 3, after: first.next! })
      assert.deepEqual(
        [...first.replays, ...second.replays].map(({ uuid }) => Number(uuid.slice(-1))),
        [4, 3, 2, 1, 0],
      )
      assert.equal(second.next, null)
    })

    it('stores the other replays when one cannot be stored', async () => {
      const projectId = newProject()
      const replays = [0, 1, 2].map(n => aCapturedReplay(n, { projectId, ...(n === 1 ? { uuid: 'none' } : {}) }))
      const { refused } = await insert({ replays })
      assert.deepEqual(refused, [{ list: 'replays', index: 1, message: 'uuid is not a UUID' }])
      assert.equal((await store.listReplays({ projectId, limit: 10 })).replays.length, 2)
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
          const page: { events: readonly EventView[]; next: EventCursor | null } = await store.listEvents({
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
      assert.equal(await store.findEvent(projectId, 'no uuid'), null)
      assert.equal(await store.findEvent(projectId, randomUUID()), null)
      assert.equal(await store.findEvent(newProject(), events[0]!.uuid), null)
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
      await store.publishJob(job)
      await store.publishJob(job)
      assert.equal((await list(projectId)).length, 3)
      assert.equal((await store.findEvent(projectId, live.uuid))!.propertiesJson, '{"from":"live"}')
      assert.deepEqual(await usage(projectId), [
        { day: '2026-11-04', eventsCharged: 0, eventsImported: 1 },
        { day: '2026-11-05', eventsCharged: 1, eventsImported: 0 },
        { day: '2026-12-02', eventsCharged: 0, eventsImported: 1 },
      ])
    })

    it('discards a job’s rows, pending and published, and leaves those of others', async () => {
      const projectId = newProject()
      const job = newJob()
      const longId = job * 10 // its partitions' names begin with the job's digits
      jobCount = longId
      const event = anEvent({ projectId })
      await insert({
        events: [anEvent({ projectId })],
        pendingEvents: [imported(event, job), imported(event, longId), imported(anEvent({ projectId }), job)],
      })
      await store.publishJob(job)
      await store.publishJob(longId)
      await insert({ pendingEvents: [imported(anEvent({ projectId }), job)] })
      await store.discardJob(job)
      await store.discardJob(job)
      await store.publishJob(job)
      const events = await list(projectId)
      assert.deepEqual(new Set(events.map(each => each.importJobId)), new Set([0, longId]))
      assert.equal(events.length, 2)
    })

    it('refuses to publish or discard what has no partition of its own', () => {
      assert.throws(() => store.discardJob(1))
      assert.throws(() => store.publishJob(0))
    })

    it('counts usage by day of acceptance, charged and imported apart', async () => {
      const projectId = newProject()
      const at = (text: string) => Date.parse(text)
      await insert({
        events: [
          anEvent({ projectId, capturedAtMs: at('2026-11-05T00:00:00Z') }),
          anEvent({ projectId, capturedAtMs: at('2026-11-05T23:59:59.999Z') }),
          anEvent({ projectId, capturedAtMs: at('2026-11-06T00:00:00Z'), timestampMs: at('1950-01-01T00:00:00Z') }),
          imported(anEvent({ projectId, capturedAtMs: at('2026-11-06T12:00:00Z') }), 1),
          imported(anEvent({ projectId, capturedAtMs: at('2026-11-07T12:00:00Z') }), newJob()),
          anEvent({ projectId: newProject() }),
        ],
      })
      assert.deepEqual(await usage(projectId, '2026-11-05', '2026-11-06'), [
        { day: '2026-11-05', eventsCharged: 2, eventsImported: 0 },
        { day: '2026-11-06', eventsCharged: 1, eventsImported: 1 },
      ])
    })

    it('counts exceptions, AI events and survey responses beside all live events, each once, and no imported ones', async () => {
      const projectId = newProject()
      const of = (event: string, propertiesJson = '{}') => anEvent({ projectId, event, propertiesJson })
      const events = [
        of('$exception'),
        of('$ai_generation'),
        of('$ai_anything'),
        of('$ai'),
        of('survey sent', '{"$survey_id":"s"}'),
        of('survey shown'),
        of('survey dismissed', '{"a":{"$product_tour_id":1}}'),
        of('survey sent', '{"$product_tour_id":"tour"}'),
        of('survey sent', '{"\\u0024product_tour_id":null}'),
        of('survey abandoned'),
      ]
      await insert({ events: [...events, ...events] })
      await insert({ events: [...events, imported(of('$exception'), 1), imported(of('survey sent'), newJob())] })
      const nextDay = Date.parse('2026-11-06T00:00:00Z')
      await insert({ events: [anEvent({ projectId, capturedAtMs: nextDay })] })
      assert.deepEqual(await store.countUsage(projectId, '2026-11-01', '2026-11-30'), [
        {
          ...noEventUsage,
          day: '2026-11-05',
          eventsCharged: 10,
          exceptions: 1,
          llmEvents: 2,
          surveyResponses: 3,
          eventsImported: 2,
        },
        { ...noEventUsage, day: '2026-11-06', eventsCharged: 1 },
      ])
    })

    it('counts a recorded session on the day on which its first replay arrived, sent again or going on', async () => {
      const projectId = newProject()
      const at = (n: number, sessionId: string, day: string) =>
        aCapturedReplay(n, { projectId, sessionId, receivedAtMs: Date.parse(day) })
      const replays = [
        at(1, 'a', '2026-11-05T23:00:00Z'),
        at(2, 'a', '2026-11-05T23:30:00Z'),
        at(3, 'a', '2026-11-06T00:30:00Z'),
        at(4, 'b', '2026-11-06T00:00:00Z'),
        at(5, 'c', '2026-11-07T23:59:59.999Z'),
      ]
      await insert({ events: [anEvent({ projectId })], replays })
      await insert({ replays: [...replays, aCapturedReplay(6, { projectId: newProject() })] })
      const days = [
        { ...noEventUsage, day: '2026-11-05', eventsCharged: 1, recordings: 1 },
        { ...noEventUsage, day: '2026-11-06', recordings: 1 },
        { ...noEventUsage, day: '2026-11-07', recordings: 1 },
      ]
      assert.deepEqual(await store.countUsage(projectId, '2026-11-01', '2026-11-30'), days)
      assert.deepEqual(await store.countUsage(projectId, '2026-11-06', '2026-11-06'), [days[1]])
    })

    it('counts usage on the day of charge, whatever month the copy that counts arrived in', async () => {
      const projectId = newProject()
      const event = anEvent({ projectId })
      await insert({ events: [event] })
      await insert({ events: [{ ...event, capturedAtMs: decemberMs }] })
      assert.deepEqual(await usage(projectId), [{ day: '2026-11-05', eventsCharged: 1, eventsImported: 0 }])
      assert.deepEqual(await usage(projectId, '2026-11-05', '2026-11-05'), await usage(projectId))
      assert.deepEqual(await usage(projectId, '2026-12-01', '2026-12-31'), [])
      assert.equal((await list(projectId))[0]!.capturedAtMs, decemberMs)
    })

    it('says when the copy that counts was charged, of live events only', async () => {
      const projectId = newProject()
      const chargedAtMs = novemberMs - 86_400_000
      const [twice, live, onlyImported, unknown] = ['twice', 'live', 'imported', 'unknown'].map(name =>
        anEvent({ projectId, event: name }),
      ) as [StoredEvent, StoredEvent, StoredEvent, StoredEvent]
      await insert({ events: [{ ...twice, chargedAtMs }, live] })
      await insert({ events: [{ ...twice, chargedAtMs: chargedAtMs + 5, capturedAtMs: decemberMs }] })
      await insert({ events: [imported(live, newJob(), { capturedAtMs: decemberMs }), imported(onlyImported, 1)] })
      assert.deepEqual(
        await store.findChargedTimes([
          unknown,
          { ...live, timestampMs: live.timestampMs + 1000 },
          twice,
          onlyImported,
          twice,
          { ...live, distinctId: 'bob' },
          { ...live, projectId: newProject() },
          { ...live, timestampMs: live.timestampMs + 86_400_000 },
          { ...live, uuid: 'no uuid' },
        ]),
        [null, live.chargedAtMs, chargedAtMs + 5, null, chargedAtMs + 5, null, null, null, null],
      )
      assert.deepEqual(await store.findChargedTimes([]), [])
    })

    it('says when events of any name and time were charged, thousands at once', async () => {
      const projectId = newProject()
      const texts = [
        `quotes ' " \` \\ \n \t \r`,
        'NUL \u0000',
        '漢字🏴‍☠️',
        '{x:String} \\N NULL',
        '',
        '\\',
        'é'.repeat(400),
      ]
      const times = ['1900-01-01T00:00:00Z', '1969-12-31T23:59:59.999Z', '2026-10-01T12:00:00Z', '2299-12-31T23:59:59Z']
      const events = Array.from({ length: 3_000 }, (_, n) =>
        anEvent({
          projectId,
          event: texts[n % texts.length]!,
          distinctId: `${texts[(n >> 3) % texts.length]}${n % 2 === 0 ? '' : n}`,
          timestampMs: Date.parse(times[n % times.length]!),
          capturedAtMs: novemberMs + n,
        }),
      )
      await insert({ events })
      assert.deepEqual(
        await store.findChargedTimes(events),
        events.map(event => event.chargedAtMs),
      )
    })

    it('knows which kinds of flag calls are stored, and counts those that are not, each once', async () => {
      const projectId = newProject()
      const call = (over: Partial<StoredEvent> = {}) =>
        anEvent({
          projectId,
          event: '$feature_flag_called',
          timestampMs: novemberMs,
          capturedAtMs: novemberMs,
          ...over,
        })
      const variant =
        '{"$feature_flag":"a","$feature_flag_response":"test","$groups":{"b":"x","c":12345678901234567890},"other":1}'
      const [first, copy, off] = [
        call({ propertiesJson: variant }),
        call({ propertiesJson: variant }),
        call({ propertiesJson: '{"$feature_flag":"é\'","$feature_flag_response":false}' }),
      ]
      const elsewhere = [
        call({ distinctId: 'bob' }),
        call({ timestampMs: novemberMs + 86_400_000 }),
        call({ event: 'e' }),
        imported(call(), 1),
      ]
      await insert({ events: [first, copy, off, ...elsewhere] })
      const found = await store.findFlagCalls([first, call(), { ...off, uuid: 'no uuid' }])
      const kind = { projectId, distinctId: first.distinctId, day: '2026-11-05' }
      assert.deepEqual(
        found
          .map(({ timestampMs, ...of }) => ({ ...of, day: new Date(timestampMs).toISOString().slice(0, 10) }))
          .toSorted((a, b) => b.uuids.length - a.uuids.length),
        [
          {
            ...kind,
            properties: parseJson(variant.replace(',"other":1', '')) as JsonObject,
            uuids: [first.uuid],
          },
          { ...kind, properties: { $feature_flag: "é'", $feature_flag_response: false }, uuids: [] },
        ],
      )
      assert.deepEqual(await store.findFlagCalls([]), [])
      const many = Array.from({ length: 3_000 }, (_, n) => call({ distinctId: `${'漢'.repeat(80)}${n}` }))
      assert.deepEqual(await store.findFlagCalls(many), [])

      const thinned = (over: Partial<ThinnedCall> = {}): ThinnedCall => ({
        projectId,
        uuid: randomUUID(),
        distinctId: 'ada',
        timestampMs: novemberMs,
        chargedAtMs: novemberMs,
        flag: 'a',
        response: 'test',
        ...over,
      })
      const twice = thinned()
      const calls = [twice, thinned(), thinned({ chargedAtMs: decemberMs }), thinned({ projectId: newProject() })]
      await insert({ thinned: calls })
      await insert({ thinned: [{ ...twice, chargedAtMs: decemberMs }] })
      assert.deepEqual(await usage(projectId), [
        { day: '2026-11-05', eventsCharged: 8, eventsImported: 1 },
        { day: '2026-12-02', eventsCharged: 1, eventsImported: 0 },
      ])
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
        (await store.findOverrides(ids)).toSorted((a, b) => (a.distinctId < b.distinctId ? -1 : 1))
      assert.deepEqual(await found([second, { projectId, distinctId: 'b' }]), [first])
      await insert({ overrides: [third] })
      assert.deepEqual(await found([first]), [third])
      const asked = [...many, ...odd].toSorted((a, b) => (a.distinctId < b.distinctId ? -1 : 1))
      assert.deepEqual(await found(asked), asked)
      assert.deepEqual(await store.findOverrides([]), [])
    })

    rejectsContract(() => store, newProject)

    it('answers an aborted query with the signal’s reason', async () => {
      const reason = new Error('the client went away')
      await assert.rejects(
        store.listEvents({ projectId: newProject(), descending: true, limit: 1 }, AbortSignal.abort(reason)),
        reason,
      )
    })

    it('can be migrated again while it is used', async () => {
      await Promise.all([store.migrate(), store.migrate(), store.ping()])
    })
  })
}
