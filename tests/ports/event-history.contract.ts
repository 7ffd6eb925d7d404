// What an event store reads of the events that made persons and groups what they are.

import assert from 'node:assert/strict'
import { it } from 'node:test'
import type { StoredEvent } from '#core/events/stored-event.ts'
import { type JsonObject, parseJson } from '#core/json.ts'
import type { HistoricEvent } from '#core/processing/history/historic-event.ts'
import type { EventHistory } from '#ports/events/event-history.ts'
import { aStoredEvent, imported } from '../support/values.ts'
import type { EventWriterSubject } from './event-store-subject.ts'

const personKeys = ['$set', '$set_once', '$unset']
const groupKeys = ['$group_type', '$group_key', '$group_set', '$group_unset']

export function eventHistoryContract(
  subject: Pick<EventWriterSubject, 'newProject' | 'newJob' | 'insert' | 'clock'> & { readonly store: EventHistory },
): void {
  const insert = (...events: StoredEvent[]) => subject.insert({ events })
  const event = (
    projectId: number,
    distinctId: string,
    properties: object | string = {},
    over: Partial<StoredEvent> = {},
  ) => {
    const propertiesJson = typeof properties === 'string' ? properties : JSON.stringify(properties)
    return aStoredEvent({ projectId, event: 'e', distinctId, propertiesJson, ...over })
  }
  const ofGroup = (projectId: number, properties: object | string, over: Partial<StoredEvent> = {}) =>
    event(projectId, 'ada', properties, { event: '$groupidentify', ...over })
  /** The text of each of the properties that count. */
  const changesOf = ({ changesJson }: HistoricEvent, keys: readonly string[]) =>
    Object.entries(parseJson(changesJson) as JsonObject)
      .filter(([key]) => keys.includes(key))
      .map(([key, value]) => [key, JSON.stringify(value)])
      .sort()
  const uuidsOf = (rows: readonly { readonly uuid: string }[]) => rows.map(({ uuid }) => uuid).sort()

  it('lists the distinct ids of a job in byte order, page by page', async () => {
    const { store } = subject
    const [projectId, job, day, other] = [subject.newProject(), subject.newJob(), subject.newJob(), subject.newJob()]
    const ids = ['é', 'a', 'Z', 'a b', "it's"]
    await subject.insert({
      events: [
        ...[...ids, ...ids].map(id => imported(event(projectId, id), job)),
        imported(event(projectId, 'of the day', {}, { importPartition: 1 }), day),
        imported(event(projectId, 'of another job'), other),
        event(projectId, 'live'),
        imported(event(subject.newProject(), 'of another project'), job),
      ],
      pendingEvents: [imported(event(projectId, 'pending'), job)],
    })
    assert.deepEqual(await store.listJobIds(projectId, job, null, 3), ['Z', 'a', 'a b'])
    assert.deepEqual(await store.listJobIds(projectId, job, 'a b', 3), ["it's", 'é'])
    assert.deepEqual(await store.listJobIds(projectId, job, 'é', 3), [])
    assert.deepEqual(await store.listJobIds(projectId, day, null, 3), ['of the day'])
  })

  it('lists the groups that a job describes, page by page', async () => {
    const { store } = subject
    const [projectId, job, other] = [subject.newProject(), subject.newJob(), subject.newJob()]
    const described = [
      { $group_type: 'team', $group_key: 'x' },
      { $group_type: 'org', $group_key: 'y' },
      { $group_type: 'org', $group_key: 'x' },
      { $group_type: 'org', $group_key: 'x', $group_set: { name: 'X' } },
      { $group_type: 'org', $group_key: 7 },
      { $group_type: 'org' },
      { $group_key: 'x' },
    ]
    await insert(
      ...described.map(properties => imported(ofGroup(projectId, properties), job)),
      imported(ofGroup(projectId, { $group_type: 'org', $group_key: 'of another job' }), other),
      ofGroup(projectId, { $group_type: 'org', $group_key: 'live' }),
      imported(event(projectId, 'ada', { $group_type: 'org', $group_key: 'no group event' }), job),
    )
    const first = await store.listJobGroups(projectId, job, null, 2)
    assert.deepEqual(first, [
      { typeName: 'org', key: '7' },
      { typeName: 'org', key: 'x' },
    ])
    assert.deepEqual(await store.listJobGroups(projectId, job, first[1]!, 5), [
      { typeName: 'org', key: 'y' },
      { typeName: 'team', key: 'x' },
    ])
  })

  it('finds every link that has a given id on one of its two sides, each link once', async () => {
    const [projectId, job] = [subject.newProject(), subject.newJob()]
    const link = (distinctId: string, linkedId: string, over: Partial<StoredEvent> = {}) =>
      event(projectId, distinctId, {}, { event: '$identify', linkedId, ...over })
    await subject.insert({
      events: [
        link('ada', 'anon-1'),
        link('ada', 'anon-1'),
        imported(link('ada', 'anon-2', { event: '$create_alias' }), job),
        link('grace', 'ada', { event: '$merge_dangerously' }),
        link('grace', 'anon-3'),
        link('ada', ''),
        { ...link('ada', 'anon-4'), projectId: subject.newProject() },
      ],
      pendingEvents: [imported(link('ada', 'anon-5'), job)],
    })
    const found = async (...ids: string[]) =>
      (await subject.store.findLinks(projectId, ids))
        .map(({ distinctId, linkedId }) => `${distinctId} ${linkedId}`)
        .sort()
    const ofAda = ['ada anon-1', 'ada anon-2', 'grace ada']
    assert.deepEqual(await found('ada'), ofAda)
    assert.deepEqual(await found('anon-1', 'anon-3', 'nobody'), ['ada anon-1', 'grace anon-3'])
    assert.deepEqual(await found('ada', 'anon-1', 'grace'), [...ofAda, 'grace anon-3'])
    assert.deepEqual(await found(), [])
  })

  it('reads for each event what it wrote to the person, and where the event came from', async () => {
    const [projectId, job] = [subject.newProject(), subject.newJob()]
    const live = event(
      projectId,
      'ada',
      { $set: { plan: 'pro' }, $set_once: { first: true }, $unset: ['old'], plan: 'other' },
      { event: '$identify', linkedId: 'anon-1', logStream: 'main/3', logOffset: 2 ** 40 + 1, sentLaterMs: 5_000 },
    )
    const events = [live, imported(live, job, { logStream: 'historical', logOffset: 7 }), event(projectId, 'grace')]
    await subject.insert({ events, erasures: new Map([[projectId, 3]]) })
    const storedAtMs = subject.clock.nowMs()
    const rows = await subject.store.readHistory(projectId, { distinctIds: ['ada', 'nobody'] })
    const changes = [
      ['$set', '{"plan":"pro"}'],
      ['$set_once', '{"first":true}'],
      ['$unset', '["old"]'],
    ]
    const { uuid, personMode } = live
    const common = {
      ...{ uuid, event: '$identify', distinctId: 'ada', linkedId: 'anon-1' },
      ...{ personMode, storedAtMs, erasuresBefore: 3, changes },
    }
    const timestampMs = live.timestampMs + 5_000
    assert.deepEqual(
      rows
        .toSorted((a, b) => a.importJobId - b.importJobId)
        .map(({ uuid, event, distinctId, linkedId, personMode, storedAtMs, ...row }) => {
          const { lane, historicalMigration, importJobId, isOfJob, erasuresBefore, logStream, logOffset, timestampMs } =
            row
          const place = { logStream, logOffset, timestampMs }
          const origin = {
            lane,
            historicalMigration,
            importJobId,
            isOfJob,
            erasuresBefore,
            ...place,
            changes: changesOf(row as HistoricEvent, personKeys),
          }
          return { uuid, event, distinctId, linkedId, personMode, storedAtMs, ...origin }
        }),
      [
        {
          ...{ ...common, lane: 'main', historicalMigration: false, importJobId: 0, isOfJob: false },
          ...{ logStream: 'main/3', logOffset: 2 ** 40 + 1, timestampMs },
        },
        {
          ...{ ...common, lane: 'historical', historicalMigration: true, importJobId: job, isOfJob: true },
          ...{ logStream: 'historical', logOffset: 7, timestampMs },
        },
      ],
    )
  })

  it('says which rows were restored', async () => {
    const [projectId, job] = [subject.newProject(), subject.newJob()]
    const [writes, nothing] = [event(projectId, 'ada', { $set: { plan: 'pro' } }), event(projectId, 'ada')]
    const day = (row: StoredEvent) => imported(row, job, { importPartition: 1 })
    const events = [writes, nothing, day(writes), day(nothing)]
    await subject.insert({ events })
    const read = async () =>
      (await subject.store.readHistory(projectId, { distinctIds: ['ada'] }))
        .map(row => [row.uuid, row.importJobId === job, row.isRestored].join(' '))
        .sort()
    const stored = events.map(row => [row.uuid, row.importJobId === job, false].join(' '))
    assert.deepEqual(await read(), stored.toSorted())
    subject.clock.advance(1_000)
    await subject.insert({ events: events.map(row => ({ ...row, personMode: 'propertyless' })), areRestored: true })
    const restored = events.map(row => [row.uuid, row.importJobId === job, true].join(' '))
    assert.deepEqual(await read(), [...stored, ...restored].sort())
  })

  it('preserves the exact JSON text of every value', async () => {
    const projectId = subject.newProject()
    const texts = [
      '{"$set":{"a":1.0,"b":1e5,"c":-0,"d":0.10}}',
      '{"$set":{"n":123456789012345678901234567890},"$unset":["k"]}',
      '{"n":123456789012345678901234567890,"$set":{"k":12345678901234567890}}',
      '{ "$set" : { "a" : 1 } }',
      '{"$set":{"a":1},"$set":{"a":2}}',
      '{"\\u0024set":{"a":1}}',
      '{"$set":{"a":1},"\\u0024set":{"a":2}}',
      '{"a":{"$set":{"a":1}}}',
      '{"$set":{"$set":{"a":1.0}}}',
      '{"a":"\\"$set\\":{}","$set":{"a":"\\""}}',
      '{"$set":null,"$set_once":7,"$unset":1.50}',
      '{"$set":{"a":"\\ud800","b":"\\u00e9\\u0000\\/","é":"日本"}}',
      '{"$unset":"k","$set":{}}',
    ]
    const events = texts.map((text, index) => event(projectId, `id ${index}`, text))
    await insert(...events)
    const distinctIds = events.map(({ distinctId }) => distinctId)
    const rows = await subject.store.readHistory(projectId, { distinctIds })
    const wholeTexts = events.map(each => changesOf({ changesJson: each.propertiesJson } as HistoricEvent, personKeys))
    const read = new Map(rows.map(row => [row.uuid, changesOf(row, personKeys)]))
    for (const [index, { uuid }] of events.entries()) assert.deepEqual(read.get(uuid), wholeTexts[index], texts[index]!)
  })

  it('skips events that write nothing, unless they may have created the person or set an earlier creation time', async () => {
    const [projectId, job] = [subject.newProject(), subject.newJob()]
    const { timestampMs } = aStoredEvent()
    const at = (ms: number, over: Partial<StoredEvent> = {}) =>
      event(projectId, 'ada', { page: ms }, { timestampMs: timestampMs + ms, logOffset: ms, ...over })
    const first = at(5)
    const earliest = at(1)
    const [writes, links] = [at(6, { propertiesJson: '{"$set":{}}' }), at(7, { event: '$identify', linkedId: 'x' })]
    const [personless, ofAi, ofJob] = [
      at(8, { personMode: 'propertyless' }),
      at(9, { lane: 'ai' }),
      imported(at(9), job),
    ]
    await insert(first)
    await insert(at(3), writes, personless)
    await insert(earliest, links, ofAi, ofJob)
    await insert(at(4))
    const rows = await subject.store.readHistory(projectId, { distinctIds: ['ada'] })
    const needed = uuidsOf([first, earliest, writes, links, personless, ofAi, ofJob])
    assert.deepEqual(
      uuidsOf(rows).filter(uuid => needed.includes(uuid)),
      needed,
    )
  })

  it('reads, of events with the same time, the one with the smallest uuid, which an import makes the creator', async () => {
    const [projectId, job] = [subject.newProject(), subject.newJob()]
    const uuids = [5, 3, 8, 1, 7, 2].map(n => `0000000${n}-0000-4000-8000-00000000000${9 - n}`)
    const events = uuids.map((uuid, logOffset) => imported(event(projectId, 'eva', {}, { uuid, logOffset }), job))
    await insert(...events)
    const rows = await subject.store.readHistory(projectId, { distinctIds: ['eva'] })
    assert.ok(uuidsOf(rows).includes(uuids[3]!), uuidsOf(rows).join())
  })

  it('reads the events that describe groups, with what they write', async () => {
    const [projectId, job] = [subject.newProject(), subject.newJob()]
    const described = [
      ofGroup(projectId, '{"$group_type":"org","$group_key":"x","$group_set":{"size":1.0},"other":1}'),
      imported(ofGroup(projectId, '{"$group_type":"org","$group_key":"x","$group_unset":["size"]}'), job),
      ofGroup(projectId, '{"$group_type":"org","$group_key":7,"n":123456789012345678901234567890}', {
        event: '$group_identify',
      }),
      ofGroup(projectId, '{"$group_type":"org","$group_key":1.50}'),
    ]
    await insert(
      ...described,
      ofGroup(projectId, '{"$group_type":"team","$group_key":"x"}'),
      ofGroup(projectId, '{"$group_type":"org","$group_key":"y"}'),
      event(projectId, 'ada', '{"$group_type":"org","$group_key":"x"}'),
    )
    const groups = ['x', '7', '1.5'].map(key => ({ typeName: 'org', key }))
    const rows = await subject.store.readHistory(projectId, { groups })
    assert.deepEqual(
      new Map(rows.map(row => [row.uuid, changesOf(row, groupKeys)])),
      new Map(
        described.map(each => [each.uuid, changesOf({ changesJson: each.propertiesJson } as HistoricEvent, groupKeys)]),
      ),
    )
    assert.deepEqual(await subject.store.readHistory(projectId, { groups: [] }), [])
  })
}
