// The front's management store: every call goes to one of two threads, so that neither a sync nor a search ever stops
// the main thread, and a search never holds up a write. A read sees every write that was answered before it began.

import type { ManagementStore } from '#ports/management-store.ts'
import type { Logger } from '#telemetry/log.ts'
import { writerWaitMs } from './open-sqlite.ts'
import { type StateThread, startStateThread } from './state-thread.ts'
import { type StateMethod, stateMethods } from './state-writer-protocol.ts'

/**
 * Starts the threads and brings the state up to the newest schema; open everything else that reads it afterwards.
 * Every method throws PortErrors only. A thread that dies is started again; calls under way fail as `unavailable`.
 * @throws SchemaTooNewError (message for people), or PortError when the state cannot be opened.
 */
export async function openStateWriter(options: {
  dataFolder: string
  logger: Logger
  /** How long a write waits for the worker's transaction before it fails as `timeout`. */
  busyTimeoutMs?: number
}): Promise<ManagementStore> {
  const { dataFolder, logger, busyTimeoutMs = writerWaitMs } = options
  const writer = startStateThread({ dataFolder, access: 'write', busyTimeoutMs, logger })
  await writer.started
  const reader = startStateThread({ dataFolder, access: 'read', busyTimeoutMs, logger })
  try {
    await reader.started
  } catch (cause) {
    await writer.close()
    throw cause
  }
  return managementStoreOn({ read: reader, write: writer })
}

function managementStoreOn(threads: { readonly read: StateThread; readonly write: StateThread }): ManagementStore {
  const methods = Object.entries(stateMethods).map(([method, access]) => [
    method,
    (...args: unknown[]) => threads[access].call(method as StateMethod, args),
  ])
  return {
    ...(Object.fromEntries(methods) as Omit<ManagementStore, 'close'>),
    async close() {
      await threads.read.close()
      await threads.write.close()
    },
  }
}
