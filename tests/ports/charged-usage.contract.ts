// The contract for charges and counts, and for what a worker asks about them before it writes.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { it } from 'node:test'
import type { StoredEvent } from '#core/events/stored-event.ts'
import type { JsonObject } from '#core/json.ts'
import { parseJson } from '#core/json.ts'
import type { DeduplicatedCall } from '#core/processing/deduplicate-flag-calls.ts'
import { noEventUsage } from '#core/usage.ts'
import { aCapturedRecording, aStoredEvent, imported } from '../support/values.ts'
import { decemberMs, type EventWriterSubject, novemberMs } from './event-store-subject.ts'

export function chargedUsageContract(subject: EventWriterSubject): void {
  const { insert, list, usage, newProject, newJob } = subject

  it('counts usage by day of acceptance, charged and imported separately', async () => {
    const projectId = newProject()
    const at = (text: string) => Date.parse(text)
    await insert({
      events: [
        aStoredEvent({ projectId, capturedAtMs: at('2026-11-05T00:00:00Z') }),
        aStoredEvent({ projectId, capturedAtMs: at('2026-11-05T23:59:59.999Z') }),
        aStoredEvent({ projectId, capturedAtMs: at('2026-11-06T00:00:00Z'), timestampMs: at('1950-01-01T00:00:00Z') }),
        imported(aStoredEvent({ projectId, capturedAtMs: at('2026-11-06T12:00:00Z') }), 1),
        imported(aStoredEvent({ projectId, capturedAtMs: at('2026-11-07T12:00:00Z') }), newJob()),
        aStoredEvent({ projectId: newProject() }),
      ],
    })
    assert.deepEqual(await usage(projectId, '2026-11-05', '2026-11-06'), [
      { day: '2026-11-05', eventsCharged: 2, eventsImported: 0 },
      { day: '2026-11-06', eventsCharged: 1, eventsImported: 1 },
    ])
  })

  it('counts exceptions, AI events and survey responses separately from other live events, once each, without imports', async () => {
    const projectId = newProject()
    const of = (event: string, propertiesJson = '{}') => aStoredEvent({ projectId, event, propertiesJson })
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
    await insert({ events: [aStoredEvent({ projectId, capturedAtMs: nextDay })] })
    assert.deepEqual(await subject.store.countUsage(projectId, '2026-11-01', '2026-11-30'), [
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

  it('counts a recorded session on the day its first recording arrived, whether it is resent or continued', async () => {
    const projectId = newProject()
    const at = (n: number, sessionId: string, day: string) =>
      aCapturedRecording(n, { projectId, sessionId, receivedAtMs: Date.parse(day) })
    const recordings = [
      at(1, 'a', '2026-11-05T23:00:00Z'),
      at(2, 'a', '2026-11-05T23:30:00Z'),
      at(3, 'a', '2026-11-06T00:30:00Z'),
      at(4, 'b', '2026-11-06T00:00:00Z'),
      at(5, 'c', '2026-11-07T23:59:59.999Z'),
    ]
    await insert({ events: [aStoredEvent({ projectId })], recordings })
    await insert({ recordings: [...recordings, aCapturedRecording(6, { projectId: newProject() })] })
    const days = [
      { ...noEventUsage, day: '2026-11-05', eventsCharged: 1, recordings: 1 },
      { ...noEventUsage, day: '2026-11-06', recordings: 1 },
      { ...noEventUsage, day: '2026-11-07', recordings: 1 },
    ]
    assert.deepEqual(await subject.store.countUsage(projectId, '2026-11-01', '2026-11-30'), days)
    assert.deepEqual(await subject.store.countUsage(projectId, '2026-11-06', '2026-11-06'), [days[1]])
  })

  it('counts an event on the day it was charged, whatever month its winning copy arrived in', async () => {
    const projectId = newProject()
    const event = aStoredEvent({ projectId })
    await insert({ events: [event] })
    await insert({ events: [{ ...event, capturedAtMs: decemberMs }] })
    assert.deepEqual(await usage(projectId), [{ day: '2026-11-05', eventsCharged: 1, eventsImported: 0 }])
    assert.deepEqual(await usage(projectId, '2026-11-05', '2026-11-05'), await usage(projectId))
    assert.deepEqual(await usage(projectId, '2026-12-01', '2026-12-31'), [])
    assert.equal((await list(projectId))[0]!.capturedAtMs, decemberMs)
  })

  it('returns when the winning copy of an event was charged, for live events only', async () => {
    const projectId = newProject()
    const chargedAtMs = novemberMs - 86_400_000
    const [twice, live, onlyImported, unknown] = ['twice', 'live', 'imported', 'unknown'].map(name =>
      aStoredEvent({ projectId, event: name }),
    ) as [StoredEvent, StoredEvent, StoredEvent, StoredEvent]
    await insert({ events: [{ ...twice, chargedAtMs }, live] })
    await insert({ events: [{ ...twice, chargedAtMs: chargedAtMs + 5, capturedAtMs: decemberMs }] })
    await insert({ events: [imported(live, newJob(), { capturedAtMs: decemberMs }), imported(onlyImported, 1)] })
    assert.deepEqual(
      await subject.store.findChargedTimes([
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
    assert.deepEqual(await subject.store.findChargedTimes([]), [])
  })

  it('returns when events of any name and time were charged, for thousands of events per call', async () => {
    const projectId = newProject()
    const texts = [
      `quotes ' " \` \\ \n \t \r`,
      'NUL \u0000',
      '漢字🏴‍☠️',
      '{x:String} \\N NULL',
      '',
      '\\',
      'é'.repeat(400),
      '\u0001'.repeat(400),
    ]
    const times = ['1900-01-01T00:00:00Z', '1969-12-31T23:59:59.999Z', '2026-10-01T12:00:00Z', '2299-12-31T23:59:59Z']
    const events = Array.from({ length: 3_000 }, (_, n) =>
      aStoredEvent({
        projectId,
        event: texts[n % texts.length]!,
        distinctId: `${texts[(n >> 3) % texts.length]}${n % 2 === 0 ? '' : n}`,
        timestampMs: Date.parse(times[n % times.length]!),
        capturedAtMs: novemberMs + n,
      }),
    )
    await insert({ events })
    assert.deepEqual(
      await subject.store.findChargedTimes(events),
      events.map(event => event.chargedAtMs),
    )
  })

  it('finds which kinds of flag calls are stored, and counts each deduplicated call once', async () => {
    const projectId = newProject()
    const call = (over: Partial<StoredEvent> = {}) =>
      aStoredEvent({
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
    const found = await subject.store.findFlagCalls([first, call(), { ...off, uuid: 'no uuid' }])
    const kind = { projectId, distinctId: first.distinctId, day: '2026-11-05' }
    assert.deepEqual(
      found
        .map(({ timestampMs, ...call }) => ({ ...call, day: new Date(timestampMs).toISOString().slice(0, 10) }))
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
    assert.deepEqual(await subject.store.findFlagCalls([]), [])
    const many = Array.from({ length: 3_000 }, (_, n) => call({ distinctId: `${'漢'.repeat(80)}${n}` }))
    assert.deepEqual(await subject.store.findFlagCalls(many), [])

    const deduplicated = (over: Partial<DeduplicatedCall> = {}): DeduplicatedCall => ({
      projectId,
      uuid: randomUUID(),
      distinctId: 'ada',
      timestampMs: novemberMs,
      chargedAtMs: novemberMs,
      flag: 'a',
      response: 'test',
      ...over,
    })
    const twice = deduplicated()
    const calls = [
      twice,
      deduplicated(),
      deduplicated({ chargedAtMs: decemberMs }),
      deduplicated({ projectId: newProject() }),
    ]
    await insert({ deduplicated: calls })
    await insert({ deduplicated: [{ ...twice, chargedAtMs: decemberMs }] })
    assert.deepEqual(await usage(projectId), [
      { day: '2026-11-05', eventsCharged: 8, eventsImported: 1 },
      { day: '2026-12-02', eventsCharged: 1, eventsImported: 0 },
    ])
  })
}
