import assert from 'node:assert/strict'
import { it } from 'node:test'
import type { JsonObject } from '#core/json.ts'
import { type ServiceApi, ServiceRefusal } from '../send/service-api.ts'
import { findErasureNotes } from './verify-stage.ts'

const createdAtMs = Date.parse('2026-11-28T01:00:00Z')

/**
 * @param pages of erased persons, newest first: the erasure's id, its time in hours after the job was created, its rows;
 *   null if the key may not see them.
 */
function service(pages: readonly (readonly [id: number, hours: number, rows: number | null])[][] | null) {
  const asked: string[] = []
  const api: Pick<ServiceApi, 'call'> = {
    async call(_method, _path, { query = {} } = {}): Promise<JsonObject> {
      asked.push(query.offset!)
      if (pages === null) throw new ServiceRefusal('no access', 403, null, null)
      const persons = pages[asked.length - 1]!.map(([id, hours, rows]) => ({
        created_at: new Date(createdAtMs + hours * 3_600_000).toISOString(),
        erasure: { id, removed: rows === null ? null : { events: 99, pending_events: rows } },
      }))
      return { results: persons }
    },
  }
  return { api, asked }
}

it('erased rows are counted once for each erasure since the job began, but at most as many as are missing', async () => {
  const { api, asked } = service([
    Array.from({ length: 1_000 }, () => [3, 2, 5]),
    [
      [3, 2, 5],
      [2, 1, 7],
      [4, 1, null],
      [1, -1, 100],
    ],
  ])
  assert.deepEqual(await findErasureNotes(50, { createdAtMs }, api), [
    { reason: 'rows_erased', count: 12, samples: [] },
  ])
  assert.deepEqual(asked, ['0', '1000'])
  const [note] = await findErasureNotes(4, { createdAtMs }, service([[[2, 1, 7]]]).api)
  assert.equal(note!.count, 4)
})

it('erased rows are not mentioned if no row is missing, no person was erased, or the key may not list erasures', async () => {
  const nothingMissing = service([])
  assert.deepEqual(await findErasureNotes(0, { createdAtMs }, nothingMissing.api), [])
  assert.deepEqual(nothingMissing.asked, [])
  for (const pages of [[[]], null]) assert.deepEqual(await findErasureNotes(3, { createdAtMs }, service(pages).api), [])
})
