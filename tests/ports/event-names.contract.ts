// The contract of every event store for names and surveys. Call it inside `describe`.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { it } from 'node:test'
import type { PropertyNameQuery, PropertyValueQuery } from '#ports/events/event-queries.ts'
import { MirrorFillingError } from '#ports/port-error.ts'
import { aStoredEvent } from '../support/values.ts'
import { type EventStoreSubject, novemberMs } from './event-store-subject.ts'

export function eventNamesContract(subject: EventStoreSubject): void {
  const { insert, newProject } = subject
  const page = { limit: 100, offset: 0 }

  it('lists the event names of a project, in order and in pages, each once', async () => {
    const projectId = newProject()
    const at = (event: string, timestampMs: number) =>
      aStoredEvent({ projectId, event, timestampMs, uuid: randomUUID() })
    const first = at('signed up', novemberMs)
    const later = at('signed up', novemberMs + 86_400_000)
    const others = [at('Änderung', novemberMs), at("it's {odd:String}", novemberMs)]
    await insert({ events: [first, later, ...others, aStoredEvent({ projectId: newProject(), event: 'elsewhere' })] })
    await insert({ events: [first] })
    const { listEventNames } = subject.store
    const all = await listEventNames({ projectId, ...page })
    assert.deepEqual(
      [all.count, all.results.map(({ name }) => name)],
      [3, ["it's {odd:String}", 'signed up', 'Änderung']],
    )
    const signedUp = all.results[1]!
    assert.deepEqual([signedUp.lastSeenMs, signedUp.firstCapturedAtMs], [later.timestampMs, first.capturedAtMs])
    const second = await listEventNames({ projectId, limit: 1, offset: 1 })
    assert.deepEqual([second.count, second.results], [3, [signedUp]])
    for (const [by, isDescending, last] of [
      ['name', true, "it's {odd:String}"],
      ['lastSeen', false, 'signed up'],
      ['firstCaptured', false, 'Änderung'],
      ['count', false, 'signed up'],
    ] as const) {
      const { results } = await listEventNames({ projectId, ...page, order: { by, isDescending } })
      assert.equal(results.at(-1)?.name, last, by)
    }
    const found = await listEventNames({ projectId, search: 'äNDER', ...page })
    assert.deepEqual([found.count, found.results.map(({ name }) => name)], [1, ['Änderung']])
    assert.equal((await listEventNames({ projectId, search: '%', ...page })).count, 0)
  })

  it('lists properties of events and persons with the type of their values', async () => {
    const projectId = newProject()
    const events = [
      { price: 1.5, at: '2026-11-05T10:00:00Z', ok: true, plan: 'pro', mixed: 1, $lib: 'web', '$feature/beta': 'on' },
      { price: -2, at: '2026-11-05', ok: false, plan: 'free', mixed: 'one', list: [1] },
    ].map((properties, index) =>
      aStoredEvent({
        ...{ projectId, uuid: randomUUID(), event: index === 0 ? 'paid' : 'left' },
        propertiesJson: JSON.stringify(properties),
        personPropertiesJson: '{"email":"a@example.com"}',
      }),
    )
    await insert({ events })
    const list = async (over: Partial<PropertyNameQuery> = {}) => {
      const { count, results } = await subject.store.listPropertyNames({ projectId, kind: 'event', ...page, ...over })
      assert.equal(count, over.limit === undefined ? results.length : count)
      return results.map(({ name, type }) => `${name}: ${type}`)
    }
    const all = ['$feature/beta: String', '$lib: String', 'at: DateTime', 'list: null', 'mixed: null', 'ok: Boolean']
    assert.deepEqual(await list(), [...all, 'plan: String', 'price: Numeric'])
    assert.deepEqual(await list({ kind: 'person' }), ['email: String'])
    assert.deepEqual(await list({ ofFlags: true }), ['$feature/beta: String'])
    assert.deepEqual((await list({ ofFlags: false })).length, 7)
    assert.deepEqual(await list({ leavesOutCore: true, search: 'P' }), ['plan: String', 'price: Numeric'])
    assert.deepEqual(await list({ names: ['ok', 'no'] }), ['ok: Boolean'])
    assert.deepEqual(await list({ names: ['ok', 'plan'], excludedNames: ['plan', 'no'] }), ['ok: Boolean'])
    assert.deepEqual(await list({ events: ['paid'], onlyOfEvents: true, names: ['list', 'mixed'] }), ['mixed: Numeric'])
    assert.deepEqual(await list({ limit: 1, offset: 2 }), ['at: DateTime'])
    const { results } = await subject.store.listPropertyNames({ projectId, kind: 'event', events: ['left'], ...page })
    const unseen = results.filter(({ isSeenOnEvents }) => !isSeenOnEvents).map(({ name }) => name)
    assert.deepEqual(unseen, ['$feature/beta', '$lib'])
    assert.deepEqual(await list({ projectId: newProject() }), [])
  })

  it('lists the values of a property, the most frequent first, of events, persons and groups', async () => {
    const projectId = newProject()
    const paid = (properties: string, event = 'paid') =>
      aStoredEvent({ projectId, event, uuid: randomUUID(), propertiesJson: properties })
    await insert({
      events: [
        ...['{"plan":"pro"}', '{"plan":"Pro \\"x\\""}', '{"plan":"pro"}', '{"plan":null}', '{"other":1}'].map(text =>
          paid(text),
        ),
        ...['{"plan":7}', '{"plan":["a"]}', `{"plan":"${'x'.repeat(1_001)}"}`].map(text => paid(text)),
        paid('{"plan":"elsewhere"}', 'left'),
      ],
    })
    const version = 1_000 + projectId
    const { store } = subject
    await store.beginMirrorFill('names', version)
    const list = async (over: Partial<PropertyValueQuery> = {}) => {
      const asked = { projectId, of: { event: 'paid' }, name: 'plan', limit: 25, ...over }
      const { results, valueCount, isSample } = await store.listPropertyValues(asked)
      return [results.map(({ valueJson, count }) => `${valueJson} ${count}`).join(), valueCount, isSample]
    }
    assert.deepEqual(await list(), ['"pro" 2,"Pro \\"x\\"" 1,7 1,["a"] 1', 4, false])
    assert.deepEqual(await list({ limit: 1 }), ['"pro" 2', 4, false])
    assert.deepEqual(await list({ search: 'O "' }), ['"Pro \\"x\\"" 1', 1, false])
    assert.deepEqual(await list({ name: 'none' }), ['', 0, false])
    await assert.rejects(list({ of: 'person' }), MirrorFillingError)
    const person = (plan: string) => ({
      ...{ projectId, uuid: randomUUID(), createdAtMs: novemberMs, isIdentified: true },
      propertiesJson: JSON.stringify({ plan }),
    })
    const group = (typeIndex: number, seats: number) => ({
      ...{ projectId, typeIndex, key: `g${seats}`, createdAtMs: novemberMs, propertiesJson: JSON.stringify({ seats }) },
    })
    const persons = [person('free'), person('pro'), person('free')]
    await store.writeSubjects({ persons, groups: [group(0, 5), group(0, 6), group(1, 7)] }, version)
    await store.writeSubjects({ deletedPersons: [{ projectId, uuid: persons[1]!.uuid }] }, version + 1)
    await store.completeMirrorFill('names', version + 1)
    assert.deepEqual(await list({ of: 'person' }), ['"free" 2', 1, false])
    assert.deepEqual(await list({ of: { groupTypeIndex: 0 }, name: 'seats' }), ['5 1,6 1', 2, false])
    const names = await store.listPropertyNames({ projectId, kind: { groupTypeIndex: 1 }, ...page })
    assert.deepEqual([names.count, names.results.map(({ name }) => name)], [1, ['seats']])
  })

  it('reports whether values come from a sample', async () => {
    const projectId = newProject()
    const properties = '{"plan":"pro"}'
    const events = Array.from({ length: 2_001 }, () =>
      aStoredEvent({ projectId, event: 'paid', uuid: randomUUID(), propertiesJson: properties }),
    )
    await insert({ events })
    const asked = { projectId, of: { event: 'paid' }, name: 'plan', limit: 25 }
    const { results, isSample } = await subject.store.listPropertyValues(asked)
    assert.deepEqual([results, isSample], [[{ valueJson: '"pro"', count: 2_000 }], true])
  })

  it('counts survey outcomes by current person, and several partial answers of one submission once', async () => {
    const projectId = newProject()
    const person = (last: number) => `00000000-0000-4000-8000-00000000000${last}`
    const survey = (event: string, distinctId: string, personId: string, over: object = {}, timestampMs = novemberMs) =>
      aStoredEvent({
        ...{ projectId, event: `survey ${event}`, distinctId, personId, timestampMs, uuid: randomUUID() },
        propertiesJson: JSON.stringify({ $survey_id: 's1', ...over }),
      })
    const shown = survey('shown', 'ada', person(1))
    const events = [
      shown,
      survey('shown', 'bob', person(2)),
      survey('shown', 'bob-before', person(3)),
      survey('sent', 'ada', person(1), { $survey_submission_id: 'x' }),
      survey('sent', 'ada', person(1), { $survey_submission_id: 'x' }, novemberMs + 1_000),
      survey('sent', 'bob', person(2)),
      survey('dismissed', 'bob', person(2)),
      survey('dismissed', 'ada', person(1), { $survey_partially_completed: true }),
      survey('sent', 'cy', person(4), { $survey_id: 's2' }, novemberMs + 86_400_000),
    ]
    await insert({
      events,
      overrides: [{ projectId, distinctId: 'bob-before', personId: person(2), version: 1 }],
    })
    await insert({ events: [shown] })
    const count = (surveyIds: string[], bounds: object = {}) =>
      subject.store.countSurveyEvents({ projectId, surveyIds, ...bounds })
    const one = await count(['s1'])
    assert.deepEqual([one.shown.count, one.shown.persons], [3, 2])
    assert.deepEqual([one.sent.count, one.sent.persons, one.sent.firstMs], [2, 2, novemberMs])
    assert.deepEqual([one.dismissed.count, one.personsDismissedAndSent], [1, 1])
    assert.equal(one.sent.lastMs, novemberMs + 1_000)
    assert.equal((await count(['s1', 's2'])).sent.count, 3)
    assert.equal((await count(['s1', 's2'], { toMs: novemberMs })).sent.count, 2)
    const none = { count: 0, persons: 0, firstMs: null, lastMs: null }
    const nothing = { shown: none, dismissed: none, sent: none, personsDismissedAndSent: 0 }
    assert.deepEqual(await count(['s1'], { fromMs: novemberMs + 2_000 }), nothing)
    assert.deepEqual(await count([]), nothing)
  })
}
