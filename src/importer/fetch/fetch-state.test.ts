import assert from 'node:assert/strict'
import { join } from 'node:path'
import { it } from 'node:test'
import Database from 'better-sqlite3'
import { tempDir } from '../../../tests/support/temp-dir.ts'
import { FetchState } from './fetch-state.ts'

it('adding a part does not scan earlier parts, of which a bucket may have a million', t => {
  const folder = tempDir(t)
  const state = new FetchState(folder)
  for (const id of ['a', 'b']) state.addPart({ id, asks: {}, bytes: 1 })
  state.markDone('a', { sha256: '', bytes: 1 })
  state.addPart({ id: 'c', asks: {}, bytes: 1 })
  assert.deepEqual([state.nextWaiting(() => false)!.id, state.nextWaiting(id => id === 'b')!.id], ['b', 'c'])
  state[Symbol.dispose]()
  const database = new Database(join(folder, 'fetch.db'), { readonly: true })
  t.after(() => database.close())
  const plan = (sql: string) =>
    (database.prepare(`EXPLAIN QUERY PLAN ${sql}`).all() as { detail: string }[]).map(({ detail }) => detail)
  // Only an index that starts with `place` has the greatest place at its end.
  assert.match(plan('SELECT coalesce(max(place), 0) + 1 FROM part').join(), /INDEX part_order$/)
})
