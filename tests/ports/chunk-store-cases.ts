// What the suites of `chunk-store.contract.ts` share.

import type { TestContext } from 'node:test'
import type { ChunkChanges, ChunkStore, ChunkSubjects } from '#ports/state/chunk-store.ts'
import { loadWhole, type OpenState } from '../support/state.ts'
import { aPerson, chunkChanges } from '../support/values.ts'

export const ada = aPerson({ uuid: 'aaaaaaaa-0000-5000-8000-000000000001', properties: { plan: 'free' } })
export const bob = aPerson({ uuid: 'bbbbbbbb-0000-5000-8000-000000000002' })

export function subjects(distinctIds: readonly string[]): ChunkSubjects {
  return { distinctIds: distinctIds.map(distinctId => ({ projectId: 1, distinctId })), groups: [], projectIds: [1] }
}

export function load(store: ChunkStore, distinctIds: readonly string[]) {
  return loadWhole(store, subjects(distinctIds))
}

export function commit(
  store: ChunkStore,
  changes: Partial<ChunkChanges>,
  position: Partial<Parameters<ChunkStore['commitChunk']>[1]> = {},
) {
  return store.commitChunk(chunkChanges(changes), {
    stream: 'main',
    ownerId: 'w1',
    offset: 1,
    committedAtMs: 1_700_000_000_000,
    ...position,
  })
}

/** A new state whose main stream belongs to worker `w1`. */
export async function openClaimed(open: OpenState, t: TestContext): ReturnType<OpenState> {
  const state = await open(t)
  await state.chunkStore.claimPosition('main', 'w1')
  return state
}
