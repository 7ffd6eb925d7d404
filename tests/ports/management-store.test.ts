import type { TestContext } from 'node:test'
import { openSqliteChunkStore } from '#adapters/sqlite/sqlite-chunk-store.ts'
import { openSqliteDefinitionStore } from '#adapters/sqlite/sqlite-definition-store.ts'
import { openDefinitionLoader, openSqliteManagementStore } from '#adapters/sqlite/sqlite-management-store.ts'
import {
  decodeStateAnswer,
  encodeStateCall,
  type StateCalls,
  type StateMethod,
  searchMethods,
  serveStateCall,
  toStateError,
} from '#adapters/sqlite/state-writer-protocol.ts'
import type { ManagementStore } from '#ports/state/management-store.ts'
import { memoryChunkStore } from '../support/memory/memory-chunk-store.ts'
import { memoryDeferredProjects } from '../support/memory/memory-deferred-projects.ts'
import { memoryState } from '../support/memory/memory-state.ts'
import { writeNewState } from '../support/state.ts'
import { tempDir } from '../support/temp-dir.ts'
import type { ManagementHarness, OpenManagement } from './management-harness.ts'
import { managementStoreContract } from './management-store.contract.ts'
import { deferredProjectsContract } from './worker-state.contract.ts'

// As a front has it: every call and its answer is text on the way, and a search has a connection that only reads. The thread
// around that is tested by `state-writer-client.test.ts`; starting one for each test would take longer than all of them.
const byStateCalls: OpenManagement = t =>
  open(t, async dataFolder => {
    await writeNewState(dataFolder)
    const writing = openSqliteManagementStore({ dataFolder, access: 'write' })
    const searching = openSqliteManagementStore({ dataFolder, access: 'read' })
    const callOf =
      (method: StateMethod) =>
      async (...args: unknown[]) => {
        const calls = (searchMethods.has(method) ? searching : writing) as unknown as StateCalls
        const answer = decodeStateAnswer(await serveStateCall(calls, encodeStateCall(1, method, args)))
        if ('failure' in answer) throw toStateError(answer.failure)
        return answer.value
      }
    const { close: _close, ...methods } = writing
    return {
      ...(Object.fromEntries(Object.keys(methods).map(name => [name, callOf(name as StateMethod)])) as typeof methods),
      close: async () => {
        await searching.close()
        await writing.close()
      },
    }
  })

managementStoreContract('sqlite', byStateCalls)

deferredProjectsContract('memory', async () => {
  const state = memoryState()
  return { store: memoryDeferredProjects(state), chunkStore: memoryChunkStore(state) }
})

async function open(
  t: TestContext,
  openStore: (dataFolder: string) => Promise<ManagementStore>,
): Promise<ManagementHarness> {
  const dataFolder = tempDir(t)
  const store = await openStore(dataFolder)
  const chunkStore = openSqliteChunkStore({ dataFolder })
  const loader = openDefinitionLoader({ dataFolder })
  const definitions = openSqliteDefinitionStore({ dataFolder, loadChanges: loader.loadChanges })
  t.after(async () => {
    await store.close()
    await chunkStore.close()
    await definitions.close()
    await loader.close()
  })
  return { store, chunkStore, revision: async () => (await definitions.readRevision()).revision }
}
