// The front's management store and definition loader: every call runs in a thread, so that neither a sync nor a search
// blocks the main thread, and Kysely is not loaded there. The thread reports which methods exist. The first search starts a
// second thread for searches, so that they never hold up a write.

import { addUnchangedDefinitions, listDefinitionVersions } from '#adapters/sql/definitions/unchanged-definitions.ts'
import type { DefinitionStore } from '#ports/state/definition-store.ts'
import type { ManagementStore } from '#ports/state/management-store.ts'
import type { HashKeyOverrideWriter } from '#ports/state/subject-store.ts'
import type { Logger } from '#telemetry/log.ts'
import { type EncodedDelta, unpackDefinitions } from './definition-texts.ts'
import { writerWaitMs } from './open-sqlite.ts'
import { type StateThread, startStateThread } from './state-thread.ts'
import { type StateCalls, type StateMethod, searchMethods } from './state-writer-protocol.ts'

/**
 * Starts the thread and brings the state up to the newest schema. Open other readers of the state only afterwards.
 * Methods fail with PortErrors. A thread that dies is started again; calls under way fail as `unavailable`.
 * @throws UnfitSchemaError (message for operators), or PortError when the state cannot be opened.
 */
export async function openStateWriter(options: {
  dataFolder: string
  logger: Logger
  /** How long a write waits for the worker's transaction before it fails as `timeout`. */
  busyTimeoutMs?: number
}): Promise<ManagementStore & Pick<DefinitionStore, 'loadChanges'> & HashKeyOverrideWriter> {
  const { dataFolder, logger, busyTimeoutMs = writerWaitMs } = options
  const state = startStateThread({ dataFolder, access: 'write', busyTimeoutMs, logger })
  const methods = await state.started

  let search: StateThread | undefined
  async function callSearch(method: StateMethod, args: readonly unknown[]): Promise<unknown> {
    const thread = search ?? startStateThread({ dataFolder, access: 'read', busyTimeoutMs, logger })
    search = thread
    try {
      await thread.started
    } catch (cause) {
      // The thread does not restart itself after a failed start; the next search starts a new thread.
      if (search === thread) search = undefined
      throw cause
    }
    return thread.call(method, args)
  }

  const createCall = (method: StateMethod) => {
    const isSearch = searchMethods.has(method)
    return (...args: unknown[]) => (isSearch ? callSearch(method, args) : state.call(method, args))
  }
  const { listChangedProjects, readChanges, ...calls } = Object.fromEntries(
    methods.map(method => [method, createCall(method)]),
  ) as unknown as StateCalls
  return {
    ...calls,
    async loadChanges(revision, held = () => null) {
      const changed = revision < 0 ? [] : await listChangedProjects(revision)
      // The versions held at the time of this call; if a project changes meanwhile, the thread reads it completely.
      const ofChanged = new Map(changed.map(projectId => [projectId, held(projectId)]))
      const versions = [...ofChanged].flatMap(([id, found]) =>
        found === null ? [] : [[id, listDefinitionVersions(found)] as const],
      )
      const packed = (await readChanges(revision, versions)) as unknown as EncodedDelta
      return addUnchangedDefinitions(await unpackDefinitions(packed), projectId => ofChanged.get(projectId) ?? null)
    },
    async close() {
      await search?.close()
      await state.close()
    },
  }
}
