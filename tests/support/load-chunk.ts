// Loads everything that a chunk's events may touch, however large, for tests of what is loaded.

import assert from 'node:assert/strict'
import type { ChunkStore, ChunkSubjects, LoadedChunk } from '#ports/state/chunk-store.ts'

export async function loadWhole(store: ChunkStore, subjects: ChunkSubjects): Promise<LoadedChunk> {
  const loaded = await store.loadChunk(subjects, Number.POSITIVE_INFINITY)
  assert.notEqual(loaded, 'too_large')
  return loaded as LoadedChunk
}
