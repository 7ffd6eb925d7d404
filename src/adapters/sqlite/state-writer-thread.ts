// The body of a state thread: it owns connections to the state and serves calls that arrive as messages. `state-thread.ts`
// starts it; the writing thread brings the schema up to date before anything opens the state.

import assert from 'node:assert/strict'
import { parentPort, workerData } from 'node:worker_threads'
import { PortError } from '#ports/port-error.ts'
import { releaseMemoryWhenIdle } from '#telemetry/release-memory.ts'
import { openHashKeyWriter } from './hash-key-writer.ts'
import { migrateSqlite } from './kysely-on-sqlite.ts'
import { openDefinitionLoader, openSqliteManagementStore } from './sqlite-management-store.ts'
import {
  type StateCalls,
  type StateMethod,
  type StateThreadData,
  type StateThreadStart,
  serveStateCall,
  toStateFailure,
} from './state-writer-protocol.ts'

const port = parentPort
assert(port !== null, 'runs as a worker thread only')
const { dataFolder, access, busyTimeoutMs, isFirst } = workerData as StateThreadData

try {
  const migration = access === 'write' && isFirst ? await migrateSqlite(dataFolder) : null
  const { close: closeStore, ...store } = openSqliteManagementStore({ dataFolder, access, busyTimeoutMs })
  const definitions = openDefinitionLoader({ dataFolder })
  const hashKeys = access === 'write' ? openHashKeyWriter({ dataFolder }) : null
  const calls: StateCalls = {
    ...store,
    listChangedProjects: definitions.listChangedProjects,
    readChanges: definitions.readChanges,
    addMissingHashKeys: hashKeys?.addMissingHashKeys ?? rejectWrite,
  }
  port.on('message', (message: string | null) => {
    if (message !== null) void serveStateCall(calls, message).then(answer => port.postMessage(answer))
    else void Promise.all([closeStore(), definitions.close(), hashKeys?.close()]).then(() => port.close())
  })
  const methods = Object.keys(calls) as StateMethod[]
  port.postMessage({ ready: true, methods, migration } satisfies StateThreadStart)
  releaseMemoryWhenIdle()
} catch (cause) {
  port.postMessage({ ready: false, failure: toStateFailure(cause) } satisfies StateThreadStart)
}

/** Stands in for the write methods in a thread that only reads, to which callers never send writes. */
function rejectWrite(): Promise<never> {
  return Promise.reject(new PortError('state', 'unavailable', new Error('this thread does not write')))
}
