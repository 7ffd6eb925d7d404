import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type Pool, runInTransaction, type Session } from './open-postgres.ts'

/** A pool whose session answers every statement, except those that fail. */
function aPool(failing: readonly string[]) {
  const released: (boolean | undefined)[] = []
  const session = {
    query: async (text: string) => {
      if (failing.includes(text)) throw new Error(`${text} failed`)
      return { rows: [], rowCount: 0 }
    },
    release: (close?: boolean) => released.push(close),
  } as unknown as Session
  return { pool: { connect: async () => session } as unknown as Pool, released }
}

const work = () => Promise.reject(new Error('the work failed'))

describe('a transaction that fails', () => {
  it('returns its session to the pool if it could be rolled back', async () => {
    const { pool, released } = aPool([])
    await assert.rejects(runInTransaction(pool, 'BEGIN', work), /the work failed/)
    assert.deepEqual(released, [false])
  })

  it('closes its session if it could not be rolled back, and throws the original error', async () => {
    const { pool, released } = aPool(['ROLLBACK'])
    await assert.rejects(runInTransaction(pool, 'BEGIN', work), /the work failed/)
    assert.deepEqual(released, [true])
  })
})
