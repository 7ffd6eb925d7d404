// Waits for the write lock of the state file without blocking the thread. SQLite's own wait blocks it: when another
// connection of the same thread holds the lock, that connection cannot reach its commit, and both are stuck until the
// wait ends.

import { setTimeout as sleep } from 'node:timers/promises'
import Database from 'better-sqlite3'
import { isBusy } from './open-sqlite.ts'

/** The same pauses as in SQLite: most transactions end within milliseconds. */
const pausesMs = [1, 2, 5, 10, 15, 20, 25] as const

/**
 * Runs `work` repeatedly until no other writer blocks it. Its connection must not wait by itself.
 * @param waitMsMax after this long the refusal is thrown.
 * @throws SqliteError `SQLITE_BUSY…`, and whatever else `work` throws.
 */
export async function retryWhileLocked<T>(work: () => T, waitMsMax: number): Promise<T> {
  const giveUpAtMs = performance.now() + waitMsMax
  for (let tries = 0; ; tries++) {
    try {
      return work()
    } catch (cause) {
      if (!(cause instanceof Database.SqliteError && isBusy(cause.code)) || performance.now() >= giveUpAtMs) throw cause
      await sleep(pausesMs[Math.min(tries, pausesMs.length - 1)])
    }
  }
}
