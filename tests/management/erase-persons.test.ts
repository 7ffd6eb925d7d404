// Erasing persons by the private API: requests, answers, and the data deleted before the answer. What the worker does
// then is in `tests/faults/erased-persons.nightly.ts`.

import assert from 'node:assert/strict'
import { it, type TestContext } from 'node:test'
import { startManagement } from '../support/management-api.ts'
import { newPersons } from '../support/values.ts'

const uuid = (n: number) => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`
const persons = '/api/projects/1/persons'

async function threePersons(t: TestContext) {
  const api = await startManagement(t, {
    log: {
      listStreams: async () => [{ stream: 'main', traffic: 'live' }],
      readStreamStatus: async () => ({ endOffset: 7, appendedAtMs: null }),
    },
  })
  const rows = [1, 2, 3].map(n => ({ ids: [`id-${n}`, `other-${n}`], uuid: uuid(n), properties: { n } }))
  await api.commit(newPersons(rows))
  const left = async () =>
    (await api.get(`${persons}/`)).results.map((person: { uuid: string }) => person.uuid).toSorted()
  return { ...api, left }
}

it('a person is erased before the response is sent, and a record shows who requested the erasure', async t => {
  const { call, left, management } = await threePersons(t)
  const erased = await call('DELETE', `${persons}/${uuid(1).toUpperCase()}/?delete_events=true`)
  assert.deepEqual([erased.status, erased.text], [202, ''])
  assert.equal((await call('GET', `${persons}/${uuid(1)}/`)).status, 404)
  assert.deepEqual(await left(), [uuid(2), uuid(3)])
  assert.equal((await call('DELETE', `${persons}/${uuid(1)}/`)).status, 404)
  assert.equal((await call('DELETE', `${persons}/nobody/`)).status, 404)

  const { body } = await call('GET', `${persons}/deletion_status/?person_uuid=${uuid(1)}`)
  assert.equal(body.count, 1)
  const { created_at, created_by, erasure, ...status } = body.results[0]
  assert.deepEqual(status, { person_uuid: uuid(1), status: 'pending', delete_verified_at: null })
  assert.equal(typeof created_by.first_name, 'string')
  assert.match(created_at, /Z$/)
  const { id, ...terms } = erasure
  assert.deepEqual(terms, {
    ...{ persons: 1, keep_person: false, delete_events: true, delete_recordings: true, removed: null },
  })
  const [open] = await management.readErasures([id])
  assert.deepEqual([open!.id, open!.endOffsets, open!.distinctIds.toSorted()], [id, { main: 7 }, ['id-1', 'other-1']])
  await management.saveRemovedRows(id, { events: 4, pendingEvents: 3, recordings: 2, rejectedEvents: 1 }, [])
  await management.finishErasures([id], 1_790_000_000_000)
  const done = await call('GET', `${persons}/deletion_status/?status=completed`)
  assert.equal(done.body.results[0].delete_verified_at, '2026-09-21T14:13:20.000Z')
  assert.deepEqual(done.body.results[0].erasure.removed, {
    ...{ events: 4, pending_events: 3, recordings: 2, rejected_events: 1 },
  })
  assert.equal((await call('GET', `${persons}/deletion_status/?status=pending`)).body.count, 0)
})

it('several persons are erased by uuid or by distinct id, and the response is in PostHog’s format', async t => {
  const { call, left } = await threePersons(t)
  const answer = { events_queued_for_deletion: false, recordings_queued_for_deletion: false, deletion_errors: [] }
  for (const asked of [{}, { delete_events: true }]) {
    const none = await call('POST', `${persons}/bulk_delete/`, { body: { distinct_ids: ['nobody'], ...asked } })
    assert.deepEqual([none.status, none.body], [202, { persons_found: 0, persons_deleted: 0, ...answer }])
  }
  const byId = await call('POST', `${persons}/bulk_delete/`, {
    body: { distinct_ids: ['id-1', 'other-1', 'id-2'], delete_events: true, delete_recordings: false },
  })
  assert.deepEqual(byId.body, { ...answer, persons_found: 2, persons_deleted: 2, events_queued_for_deletion: true })
  const kept = await call('POST', `${persons}/bulk_delete/`, {
    body: { ids: [uuid(3)], keep_person: true, delete_recordings: true },
  })
  assert.deepEqual(kept.body, { ...answer, persons_found: 1, persons_deleted: 0, recordings_queued_for_deletion: true })
  assert.deepEqual(await left(), [uuid(3)])
})

it('a request that would erase nothing, unintended persons, or too many at once is rejected', async t => {
  const { call, left } = await threePersons(t)
  const refused: [string, string, unknown?][] = [
    ['DELETE', `${persons}/${uuid(1)}/?delete_events=`],
    ['DELETE', `${persons}/${uuid(1)}/?delete_events=perhaps`],
    ['DELETE', `${persons}/${uuid(1)}/?keep_person=true`],
    ['POST', `${persons}/bulk_delete/`, {}],
    ['POST', `${persons}/bulk_delete/`, { ids: [] }],
    ['POST', `${persons}/bulk_delete/`, { ids: ['id-1'] }],
    ['POST', `${persons}/bulk_delete/`, { ids: [uuid(1)], distinct_ids: ['id-1'] }],
    ['POST', `${persons}/bulk_delete/`, { distinct_ids: Array.from({ length: 1_001 }, (_, n) => `${n}`) }],
  ]
  for (const [method, path, body] of refused) {
    const { status } = await call(method, path, body === undefined ? {} : { body })
    assert.equal(status, 400, `${method} ${path} ${JSON.stringify(body)?.slice(0, 60)}`)
  }
  assert.equal((await left()).length, 3)
})
