// The body of a state thread: it owns one connection and serves calls that come as messages. Started by
// `state-thread.ts`; the writing one brings the schema up to date first, before anything opens the state.

import assert from 'node:assert/strict'
import { parentPort, workerData } from 'node:worker_threads'
import type { ManagementStore } from '#ports/management-store.ts'
import { migrateSqlite } from './open-sqlite.ts'
import { openSqliteManagementStore } from './sqlite-management-store.ts'
import {
  decodeCall,
  encodeAnswer,
  failureOf,
  type StateThreadData,
  type StateThreadStart,
} from './state-writer-protocol.ts'

const port = parentPort
assert(port !== null, 'runs as a worker thread only')
const { dataFolder, access, busyTimeoutMs } = workerData as StateThreadData

try {
  if (access === 'write') await migrateSqlite(dataFolder)
  const store = openSqliteManagementStore({ dataFolder, access, busyTimeoutMs })
  port.on('message', (message: string | null) => {
    if (message === null) void store.close().then(() => port.close())
    else void serve(store, message)
  })
  port.postMessage({ ready: true } satisfies StateThreadStart)
} catch (cause) {
  port.postMessage({ ready: false, failure: failureOf(cause) } satisfies StateThreadStart)
}

async function serve(store: ManagementStore, message: string): Promise<void> {
  const { id, method, args } = decodeCall(message)
  try {
    const value = await (store[method] as (...args: unknown[]) => Promise<unknown>)(...args)
    port!.postMessage(encodeAnswer({ id, value: value ?? null }))
  } catch (cause) {
    port!.postMessage(encodeAnswer({ id, failure: failureOf(cause) }))
  }
}
