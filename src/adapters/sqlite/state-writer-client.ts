// The front's management store, and what its definitions are loaded with: every call goes to a thread, so that neither a
// sync nor a search ever stops the main thread, nor is Kysely loaded in it. Searches have a thread of their own, started by the first of them, so that they never hold up a write.

import { versionsOf, withHeld } from '#adapters/sql/held-definitions.ts'
import type { DefinitionStore } from '#ports/definition-store.ts'
import type { Logger } from '#telemetry/log.ts'
import type { DefinitionReader } from './definition-loader.ts'
import { type PackedChanges, unpackDefinitions } from './definition-texts.ts'
import { writerWaitMs } from './open-sqlite.ts'
import { type StateThread, startStateThread } from './state-thread.ts'
import { type StateCalls, type StateMethod, stateMethods } from './state-writer-protocol.ts'

export type StateWriter = Omit<StateCalls, keyof DefinitionReader> &
  Pick<DefinitionStore, 'loadChanges'> & { close(): Promise<void> }

/**
 * Starts the thread and brings the state up to the newest schema; open everything else that reads it afterwards.
 * Methods fail with PortErrors. A thread that dies is started again; calls under way fail as `unavailable`.
 * @throws SchemaTooNewError (message for people), or PortError when the state cannot be opened.
 */
export async function openStateWriter(options: {
  dataFolder: string
  logger: Logger
  /** How long a write waits for the worker's transaction before it fails as `timeout`. */
  busyTimeoutMs?: number
}): Promise<StateWriter> {
  const { dataFolder, logger, busyTimeoutMs = writerWaitMs } = options
  const state = startStateThread({ dataFolder, access: 'write', busyTimeoutMs, logger })
  await state.started

  let search: StateThread | undefined
  async function callSearch(method: StateMethod, args: readonly unknown[]): Promise<unknown> {
    const thread = search ?? startStateThread({ dataFolder, access: 'read', busyTimeoutMs, logger })
    search = thread
    try {
      await thread.started
    } catch (cause) {
      // It does not start itself again after a failed start; the next search tries.
      if (search === thread) search = undefined
      throw cause
    }
    return thread.call(method, args)
  }

  const methods = Object.entries(stateMethods).map(([name, thread]) => {
    const method = name as StateMethod
    return [method, (...args: unknown[]) => (thread === 'search' ? callSearch(method, args) : state.call(method, args))]
  })
  const { listChangedProjects, readChanges, ...calls } = Object.fromEntries(methods) as StateCalls
  return {
    ...calls,
    async loadChanges(revision, held = () => null) {
      const changed = revision < 0 ? [] : await listChangedProjects(revision)
      // What was held when the thread was asked; a project that changes meanwhile, it reads whole.
      const ofChanged = new Map(changed.map(projectId => [projectId, held(projectId)]))
      const versions = [...ofChanged].flatMap(([id, found]) =>
        found === null ? [] : [[id, versionsOf(found)] as const],
      )
      const packed = (await readChanges(revision, versions)) as unknown as PackedChanges
      return withHeld(await unpackDefinitions(packed), projectId => ofChanged.get(projectId) ?? null)
    },
    async close() {
      await search?.close()
      await state.close()
    },
  }
}
