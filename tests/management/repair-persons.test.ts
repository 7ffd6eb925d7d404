// Rebuilding and splitting persons by the private API: requests and answers. What the worker does then is in
// `tests/import/jobs/repaired-persons.contract.ts`.

import assert from 'node:assert/strict'
import { it, type TestContext } from 'node:test'
import { startManagement } from '../support/management-api.ts'
import { newPersons } from '../support/values.ts'

const uuid = (n: number) => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`
const persons = '/api/projects/1/persons'
const rebuild = '/api/projects/1/person_rebuilds/'

async function twoPersons(t: TestContext) {
  const api = await startManagement(t)
  await api.commit(
    newPersons([
      { ids: ['id-1', 'other-1'], uuid: uuid(1), properties: {} },
      { ids: ['id-2'], uuid: uuid(2), properties: {} },
    ]),
  )
  return api
}

it('a split can be requested with or without a main distinct id, and the response equals PostHog’s', async t => {
  const { call, management } = await twoPersons(t)
  for (const body of [undefined, {}, { main_distinct_id: 'other-1' }]) {
    const split = await call('POST', `${persons}/${uuid(1)}/split/`, body === undefined ? {} : { body })
    assert.deepEqual([split.status, split.body], [201, { success: true }])
  }
  const open = await management.listOpenRepairs()
  assert.deepEqual(
    open.map(({ request }) => request),
    ['id-1', 'id-1', 'other-1'].map(mainId => ({ kind: 'split', uuid: uuid(1), mainId })),
  )
  // A person with one distinct id is split already.
  assert.equal((await call('POST', `${persons}/${uuid(2)}/split/`)).status, 201)
  assert.equal((await management.listOpenRepairs()).length, 3)
})

it('a split of an unknown person, or by a distinct id of another person, is refused', async t => {
  const { call, refuses, management } = await twoPersons(t)
  for (const id of [uuid(3), '99', 'id-1']) assert.equal((await call('POST', `${persons}/${id}/split/`)).status, 404)
  await refuses(
    'POST',
    `${persons}/${uuid(1)}/split/`,
    [{ main_distinct_id: 'id-2' }, 'main_distinct_id', 'invalid_input'],
    [{ main_distinct_id: 'nobody' }, 'main_distinct_id', 'invalid_input'],
    [{ main_distinct_id: '' }, 'main_distinct_id'],
    [{ main_distinct_id: 7 }, 'main_distinct_id'],
    [{ main: 'id-1' }, 'main'],
  )
  assert.deepEqual(await management.listOpenRepairs(), [])
})

it('a rebuild reports what it would change, and can be found until it is done', async t => {
  const { call, get, post, management, clock } = await twoPersons(t)
  const asked = await post(rebuild, { uuids: [uuid(1).toUpperCase()], distinct_ids: ['gone'] })
  const { id, created_at, created_by, ...rest } = asked
  assert.deepEqual(rest, { status: 'pending', apply: false, completed_at: null, report: null })
  assert.deepEqual([created_at, created_by.first_name], [new Date(clock.nowMs()).toISOString(), '*'])
  const [open] = await management.listOpenRepairs()
  assert.deepEqual(open!.request, {
    ...{ kind: 'rebuild', applies: false },
    persons: { uuids: [uuid(1)], distinctIds: ['gone'] },
  })
  const part = { idCount: 2, changedCount: 1, createdCount: 1, removedCount: 0, movedIdCount: 1, unreadableIdCount: 3 }
  const sample = { uuid: uuid(1), change: 'changed', keys: ['plan'], distinctIds: ['gone'] } as const
  await management.addRepairReport(id, { ...part, samples: [], erasures: 0 }, true)
  await management.addRepairReport(id, { ...part, samples: [sample], erasures: 0 }, true)
  await management.addRepairReport(id, { ...part, samples: [], erasures: 0 }, false)
  await management.finishRepair(id, clock.nowMs())
  const done = await get(`${rebuild}${id}/`)
  assert.deepEqual(done, {
    ...{ id, created_at, created_by, status: 'completed', apply: false, completed_at: created_at },
    report: {
      ...{ distinct_ids: 4, changed: 2, created: 2, removed: 0, moved_distinct_ids: 2, unreadable_distinct_ids: 6 },
      persons: [{ uuid: uuid(1), change: 'changed', keys: ['plan'], distinct_ids: ['gone'] }],
    },
  })
  assert.equal((await call('GET', `${rebuild}${id + 1}/`)).status, 404)
  assert.equal((await call('GET', `${rebuild}x/`)).status, 404)
})

it('a project can have one rebuild and a hundred splits at a time', async t => {
  const { call, refuses, post, management } = await twoPersons(t)
  const { id } = await post(rebuild, { all: true, apply: true })
  await refuses('POST', rebuild, [{ all: true }, null, 'too_many_person_repairs'])
  assert.equal((await call('POST', rebuild, { body: { all: true } })).headers.get('retry-after'), '5')
  const address = `${persons}/${uuid(1)}/split/`
  const split = () => call('POST', address)
  for (let count = 1; count < 100; count++) assert.equal((await split()).status, 201)
  await refuses('POST', address, [{}, null, 'too_many_person_repairs'])
  await management.finishRepair(id, 0)
  assert.equal((await split()).status, 201)
})

it('a rebuild is refused if requested for no person, for too many, or for both all and certain persons', async t => {
  const { refuses } = await twoPersons(t)
  const ids = Array.from({ length: 501 }, (_, n) => `${n}`)
  await refuses(
    'POST',
    rebuild,
    [{}, 'distinct_ids', 'required'],
    [{ uuids: [], all: false }, 'distinct_ids', 'required'],
    [{ all: true, distinct_ids: ['id-1'] }, 'all', 'invalid_input'],
    [{ uuids: ['id-1'] }, 'uuids.0'],
    [{ distinct_ids: [...ids, ...ids] }, 'distinct_ids'],
    [{ distinct_ids: ids, uuids: ids.map((_, n) => uuid(n)) }, 'distinct_ids', 'invalid_input'],
    [{ all: true, aply: true }, 'aply'],
  )
})

it('an erased person is removed from waiting splits and rebuilds, and from their reports', async t => {
  const { call, get, post, management } = await twoPersons(t)
  const { id } = await post(rebuild, { uuids: [uuid(1), uuid(2)], distinct_ids: ['id-1', 'id-2'] })
  await call('POST', `${persons}/${uuid(1)}/split/`)
  const samples = [1, 2].map(n => ({ uuid: uuid(n), change: 'changed', keys: [], distinctIds: [`id-${n}`] }) as const)
  const part = { idCount: 3, changedCount: 2, createdCount: 0, removedCount: 0, movedIdCount: 0, unreadableIdCount: 0 }
  await management.addRepairReport(id, { ...part, samples, erasures: 0 }, true)
  await call('DELETE', `${persons}/${uuid(1)}/`)
  const open = await management.listOpenRepairs()
  assert.deepEqual(
    open.map(({ request }) => request),
    [{ kind: 'rebuild', applies: false, persons: { uuids: [uuid(2)], distinctIds: ['id-2'] } }],
  )
  const { report } = await get(`${rebuild}${id}/`)
  assert.deepEqual([report.changed, report.persons.map((each: { uuid: string }) => each.uuid)], [2, [uuid(2)]])
  // Samples from before the erasure.
  await management.addRepairReport(id, { ...part, samples, erasures: 0 }, false)
  assert.equal((await get(`${rebuild}${id}/`)).report.persons.length, 1)
})
