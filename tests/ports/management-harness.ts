// What the suites of the management store share: the stores under test, and short ways to write.

import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import type { ChunkStore } from '#ports/state/chunk-store.ts'
import type { ManagementStore } from '#ports/state/management-store.ts'
import type { Written } from '#ports/state/written.ts'
import { aChange, chunkChanges } from '../support/values.ts'

export interface ManagementHarness {
  readonly store: ManagementStore
  readonly chunkStore: ChunkStore
  revision(): Promise<number>
}

export type OpenManagement = (t: TestContext) => Promise<ManagementHarness>

/** The result of a write; fails the test when it was refused. */
export function written<T>(result: { ok: true; value: Written<T> } | { ok: false; error: unknown }): T {
  assert.ok(result.ok, `refused: ${JSON.stringify(result)}`)
  return result.value.value
}

/** Changes a flag at time 9. */
export function change(
  store: ManagementStore,
  projectId: number,
  flagId: number,
  patch: Parameters<ManagementStore['updateFlag']>[2],
  { changedBy, ...options }: { expectedVersion?: number; changedBy?: string } = {},
) {
  return store.updateFlag(projectId, flagId, patch, aChange(changedBy, 9), options)
}

/** Commits a chunk of the main stream: offset 77 at the time 12. */
export async function commit(store: ChunkStore, changes: Parameters<typeof chunkChanges>[0]): Promise<void> {
  await store.claimPosition('main', 'w1')
  const position = { stream: 'main', ownerId: 'w1', offset: 77, committedAtMs: 12 } as const
  assert.equal(await store.commitChunk(chunkChanges(changes), position), 'committed')
}
