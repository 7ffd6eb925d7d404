// What tests of experience continuity under failure ask: people with and without a row, flags that need one and flags
// that need nothing.

import assert from 'node:assert/strict'
import type { JsonObject } from '#core/json.ts'
import type { ChunkStore } from '#ports/chunk-store.ts'
import { testProjectKey } from '../support/pennon.ts'
import { aMapping, aPerson, chunkChanges, created } from '../support/state-builders.ts'

/** `user-1` is in, `user-2` is out, of a rollout of 50 % of `rollout-50`. Source: vectors I02 and I03. */
export const anonymousId = 'user-1'
export const knownId = 'user-2'

export const continuityFlags: readonly JsonObject[] = [
  { key: 'rollout-50', ensure_experience_continuity: true, filters: { groups: [{ rollout_percentage: 50 }] } },
  { key: 'everybody', ensure_experience_continuity: true, filters: { groups: [{ rollout_percentage: 100 }] } },
  { key: 'plain', filters: { groups: [{ rollout_percentage: 100 }] } },
]

/** What stays when neither a row can be read nor one be written. */
export const withoutRows = { everybody: true, plain: true }
export const whole = { ...withoutRows, 'rollout-50': true }

/** Makes `user-2` a person of project 1, and `count` others named `visitor-0` and so on. */
export async function storePersons(chunkStore: ChunkStore, count: number): Promise<void> {
  await chunkStore.claimPosition('main', 'test')
  const ids = [knownId, ...Array.from({ length: count }, (_, index) => `visitor-${index}`)]
  const persons = ids.map((id, index) => {
    const uuid = `${String(index).padStart(8, '0')}-1111-5111-8111-111111111111`
    return { id, person: aPerson({ projectId: 1, uuid }) }
  })
  const changes = chunkChanges({
    persons: persons.map(({ person }) => created(person)),
    mappings: persons.map(({ id, person }) => created(aMapping(person, id))),
  })
  const position = { lane: 'main', ownerId: 'test', offset: 1, committedAtMs: 0 } as const
  assert.equal(await chunkStore.commitChunk(changes, position), 'committed')
}

export interface Decided {
  readonly featureFlags: Record<string, boolean>
  readonly errorsWhileComputingFlags: boolean
  readonly waitMs: number
}

/** One request for flags; 200 whatever has failed. */
export async function ask(url: string, distinctId: string, anonDistinctId: string | null): Promise<Decided> {
  const startedAt = performance.now()
  const response = await fetch(`${url}/flags?v=1`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ token: testProjectKey, distinct_id: distinctId, $anon_distinct_id: anonDistinctId }),
  })
  assert.equal(response.status, 200)
  return { ...((await response.json()) as Decided), waitMs: performance.now() - startedAt }
}

/** Twelve requests one after the other, none of which waits long, and those behind the breaker hardly at all. */
export async function assertBounded(askOnce: () => Promise<Decided>, expected: object): Promise<void> {
  const answers: Decided[] = []
  for (let count = 0; count < 12; count++) answers.push(await askOnce())
  for (const { featureFlags, errorsWhileComputingFlags } of answers) {
    assert.deepEqual(featureFlags, expected)
    assert.equal(errorsWhileComputingFlags, true)
  }
  const waits = answers.map(({ waitMs }) => Math.round(waitMs))
  // 250 ms, and what a busy machine adds.
  assert.ok(Math.max(...waits) < 1_500, `waits: ${waits}`)
  assert.ok(waits.slice(6).toSorted((a, b) => a - b)[3]! < 100, `the breaker is not open: ${waits}`)
}
