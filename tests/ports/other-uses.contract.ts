// What an event store reports about other uses of the persons, links and groups of an import job.

import assert from 'node:assert/strict'
import { it } from 'node:test'
import type { StoredEvent } from '#core/events/stored-event.ts'
import type { EventWriter } from '#ports/events/event-writer.ts'
import { type ImportedRows, otherUseCountMax } from '#ports/events/imported-rows.ts'
import { aStoredEvent, imported } from '../support/values.ts'

type OtherUses = Pick<
  ImportedRows,
  'findOtherUses' | 'findLaterWrites' | 'findOtherGroupUses' | 'findImportedKeys' | 'findImportedGroupKeys'
>

export function otherUsesContract(subject: {
  store(): Pick<EventWriter, 'insert'> & OtherUses
  newProject(): number
  newJob(): number
  nowMs(): number
}): void {
  const { store, newProject, newJob, nowMs } = subject
  const insert = (...events: StoredEvent[]) =>
    store().insert({ events, pendingEvents: [], overrides: [], recordings: [], rejected: [] })
  const byId = (a: object, b: object) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1)

  it('finds other events that use or link the persons of distinct ids', async () => {
    const [projectId, job, other] = [newProject(), newJob(), newJob()]
    const event = (name: string, distinctId: string, properties: object) =>
      aStoredEvent({
        projectId,
        event: name,
        distinctId,
        propertiesJson: JSON.stringify(properties),
        personMode: 'full',
      })
    const large = '{"n":123456789012345678901234567890,"$anon_distinct_id":"device","$set":{"k":1}}'
    await insert(
      imported(event('e', 'user', {}), job),
      event('e', 'user', { $set: { k: 1 } }),
      { ...event('$identify', 'user', {}), propertiesJson: large },
      imported(event('$create_alias', 'user', { alias: 'other' }), other),
      event('$merge_dangerously', 'stranger', { alias: 'user', $set: {} }),
      event('e', 'nobody', {}),
      { ...event('e', 'device', {}), personMode: 'propertyless' },
      imported({ ...event('e', 'device', {}), importPartition: 1 }, newJob()),
    )
    const uses = await store().findOtherUses(projectId, job, ['user', 'device'], nowMs())
    assert.deepEqual(
      uses.toSorted(byId),
      [
        { importJobId: 0, distinctId: 'user', otherId: null, isLater: true, writes: true },
        { importJobId: 0, distinctId: 'user', otherId: 'device', isLater: true, writes: true },
        { importJobId: other, distinctId: 'user', otherId: 'other', isLater: true, writes: false },
        { importJobId: 0, distinctId: 'stranger', otherId: 'user', isLater: true, writes: false },
        { importJobId: 0, distinctId: 'device', otherId: null, isLater: true, writes: false },
      ].toSorted(byId),
    )
    const before = await store().findOtherUses(projectId, job, ['user'], nowMs() + 1)
    assert.deepEqual(
      before.map(({ importJobId, otherId, isLater, writes }) => [importJobId, otherId, isLater, writes]).toSorted(byId),
      [
        [0, null, false, false],
        [0, 'device', false, false],
        [other, 'other', false, false],
      ].toSorted(byId),
    )
  })

  it('finds property writes of later live events, each kind once', async () => {
    const [projectId, job] = [newProject(), newJob()]
    const event = (properties: object, over: Partial<StoredEvent> = {}) =>
      aStoredEvent({
        projectId,
        distinctId: 'a',
        propertiesJson: JSON.stringify(properties),
        personMode: 'full',
        ...over,
      })
    const first = event({ $set_once: { k: 1.5 } })
    const set = event({ $set: { k: 2 } })
    const lastUnset = event({ $unset: { k: '' } })
    await insert(
      first,
      event({ $unset: ['k', 'other', 7] }, { timestampMs: lastUnset.timestampMs - 1 }),
      event({ $set_once: {} }),
      // Many writes of properties that were not requested displace nothing.
      ...Array.from({ length: 150 }, (_, index) => event({ $set: { other: index }, $set_once: { other: index } })),
      set,
      lastUnset,
      event({ $set_once: { k: 3 } }, { event: '$exception' }),
      imported(event({ $set_once: { k: 4 } }), job),
    )
    const laterWrites = await store().findLaterWrites(projectId, ['a'], ['k'], nowMs())
    const written = (op: string, { distinctId, timestampMs, uuid }: StoredEvent, value: number | null) => {
      return { distinctId, op, key: 'k', value, storedAtMs: nowMs(), timestampMs, uuid }
    }
    assert.deepEqual(
      laterWrites.toSorted(byId),
      [written('set', set, 2), written('set_once', first, 1.5), written('unset', lastUnset, null)].toSorted(byId),
    )
    assert.deepEqual(await store().findLaterWrites(projectId, ['a'], ['k'], nowMs() + 1), [])
    assert.deepEqual(await store().findLaterWrites(projectId, ['a'], [], nowMs()), [])
  })

  it('lists what an event sets before what it unsets', async () => {
    const projectId = newProject()
    const propertiesJson = JSON.stringify({ $unset: ['k'], $set_once: { k: 1 }, $set: { k: 2 } })
    await insert(aStoredEvent({ projectId, distinctId: 'a', propertiesJson, personMode: 'full' }))
    const laterWrites = await store().findLaterWrites(projectId, ['a'], ['k'], nowMs())
    const inOrder = laterWrites.filter(({ op }) => op !== 'set').map(({ op }) => op)
    assert.deepEqual(inOrder, ['set_once', 'unset'])
  })

  it('finds the writes of later imports that decide current property values', async () => {
    const [projectId, job, other, implicitJob] = [newProject(), newJob(), newJob(), newJob()]
    const event = (name: string, at: number, properties: object) =>
      aStoredEvent({
        ...{ projectId, event: name, distinctId: 'a', personMode: 'full', timestampMs: nowMs() + at },
        propertiesJson: JSON.stringify(properties),
      })
    const group = { $group_type: 'org', $group_key: 'x' }
    const [early, middle, late] = [
      event('e', 1, { $set: { k: 1 }, $set_once: { l: 1.5, not_asked: 1 }, $unset: { m: '' } }),
      event('e', 2, { $set: { k: { deep: [2] } } }),
      event('e', 3, { $set_once: { l: 3 }, $unset: ['k', 'not_asked'] }),
    ]
    const again = { ...middle, timestampMs: nowMs() + 4, uuid: late.uuid.replace(/^./, 'f') }
    const day = imported({ ...event('e', 5, { $set: { of_day: 1 } }), importPartition: 1 }, implicitJob)
    const ofGroup = event('$groupidentify', 6, { ...group, $group_set: { k: 'x', not_asked: 1 }, $group_unset: ['l'] })
    await insert(
      ...[early, middle, late].map(each => imported(each, job)),
      imported(again, other),
      event('e', 7, { $set: { k: 'live' } }),
      day,
      imported(ofGroup, job),
    )
    const keys = ['k', 'l', 'm', 'of_day']
    const imports = { projectId, jobIds: [job], sinceMs: nowMs() }
    const written = (
      { timestampMs, uuid }: StoredEvent,
      op: string,
      key: string,
      value: unknown,
      importJobId = job,
    ) => ({
      ...{ importJobId, op, key, value, timestampMs, uuid },
    })
    const ofJob = [
      written(middle, 'set', 'k', { deep: [2] }),
      written(early, 'set_once', 'l', 1.5),
      written(early, 'unset', 'm', null),
      written(late, 'unset', 'k', null),
      written(early, 'first', '', null),
    ].map(write => ({ distinctId: 'a', ...write }))
    const ofImplicitJobs = [
      written(day, 'set', 'of_day', 1, implicitJob),
      written(day, 'first', '', null, implicitJob),
    ].map(write => ({
      distinctId: 'a',
      ...write,
    }))
    const find = async (asked: typeof imports) =>
      (await store().findImportedKeys(asked, ['a', 'b'], keys)).toSorted(byId)
    assert.deepEqual(await find(imports), [...ofJob, ...ofImplicitJobs].toSorted(byId))
    assert.deepEqual(await find({ ...imports, sinceMs: nowMs() + 1 }), ofJob.toSorted(byId))
    const found = await store().findImportedGroupKeys(imports, [{ typeName: 'org', key: 'x' }], keys)
    const ofGroups = [
      written(ofGroup, 'set', 'k', 'x'),
      written(ofGroup, 'unset', 'l', null),
      written(ofGroup, 'first', '', null),
    ]
    assert.deepEqual(
      found.toSorted(byId),
      ofGroups.map(write => ({ typeName: 'org', groupKey: 'x', ...write })).toSorted(byId),
    )
  })

  it('limits the links of an id, but always includes links between requested ids', async () => {
    const [projectId, job] = [newProject(), newJob()]
    const link = (distinctId: string, anonymous: string) =>
      aStoredEvent({
        ...{ projectId, event: '$identify', distinctId, personMode: 'full' },
        propertiesJson: JSON.stringify({ $anon_distinct_id: anonymous }),
      })
    const others = Array.from({ length: otherUseCountMax + 50 }, (_, index) => `x${index}`)
    await insert(...others.flatMap(other => [link('user', other), link(other, 'user')]), link('user', 'device'))
    const uses = await store().findOtherUses(projectId, job, ['user', 'device'], nowMs())
    assert.equal(uses.length, otherUseCountMax)
    assert.ok(uses.some(({ distinctId, otherId }) => distinctId === 'user' && otherId === 'device'))
  })

  it('finds other events that describe groups', async () => {
    const [projectId, job, other] = [newProject(), newJob(), newJob()]
    const event = (name: string, type: string, key: string | number) =>
      aStoredEvent({ projectId, event: name, propertiesJson: JSON.stringify({ $group_type: type, $group_key: key }) })
    await insert(
      imported(event('$groupidentify', 'org', 'only the job'), job),
      event('$groupidentify', 'org', 'x'),
      event('$group_identify', 'team', 7),
      imported(event('$groupidentify', 'org', 'x'), other),
      event('e', 'org', 'y'),
    )
    const asked = ['only the job', 'x', '7', 'y'].flatMap(key => ['org', 'team'].map(typeName => ({ typeName, key })))
    assert.deepEqual(
      (await store().findOtherGroupUses(projectId, job, asked)).toSorted(byId),
      [
        { importJobId: 0, typeName: 'org', key: 'x' },
        { importJobId: 0, typeName: 'team', key: '7' },
        { importJobId: other, typeName: 'org', key: 'x' },
      ].toSorted(byId),
    )
  })
}
