// Requests for testing experience continuity under failures: persons with and without a row, flags that need one and
// flags that need nothing.

import assert from 'node:assert/strict'
import type { JsonObject } from '#core/json.ts'
import type { ChunkStore } from '#ports/state/chunk-store.ts'
import { testProjectKey } from '../support/pennon.ts'
import { aMapping, aPerson, chunkChanges, created } from '../support/values.ts'

/** `user-1` is in the rollout of 50 % of `rollout-50`, and `user-2` is not. Source: vectors I02 and I03. */
export const anonymousId = 'user-1'
export const knownId = 'user-2'

export const continuityFlags: readonly JsonObject[] = [
  { key: 'rollout-50', ensure_experience_continuity: true, filters: { groups: [{ rollout_percentage: 50 }] } },
  { key: 'everybody', ensure_experience_continuity: true, filters: { groups: [{ rollout_percentage: 100 }] } },
  { key: 'plain', filters: { groups: [{ rollout_percentage: 100 }] } },
]

/** The answer when rows can be neither read nor written. */
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
  const position = { stream: 'main', ownerId: 'test', offset: 1, committedAtMs: 0 } as const
  assert.equal(await chunkStore.commitChunk(changes, position), 'committed')
}

export interface Decided {
  readonly featureFlags: Record<string, boolean>
  readonly errorsWhileComputingFlags: boolean
}

/** Requests flags once; the status must be 200 whatever has failed. */
export async function ask(url: string, distinctId: string, anonDistinctId: string | null): Promise<Decided> {
  const response = await fetch(`${url}/flags?v=1`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ token: testProjectKey, distinct_id: distinctId, $anon_distinct_id: anonDistinctId }),
  })
  assert.equal(response.status, 200)
  return (await response.json()) as Decided
}

/**
 * Sends twelve requests one after another, which must be answered while their store hangs (the caller ends the hang),
 * and then many at once, which must not call the store any more.
 * @param url of the instance, for its metrics.
 */
export async function assertBounded(url: string, askOnce: () => Promise<Decided>, expected: object): Promise<void> {
  const assertAnswer = async () => {
    const { featureFlags, errorsWhileComputingFlags } = await askOnce()
    assert.deepEqual(featureFlags, expected)
    assert.equal(errorsWhileComputingFlags, true)
  }
  for (let count = 0; count < 12; count++) await assertAnswer()
  await assertLeftAlone(url, assertAnswer)
}

/** Checks that a store that failed often enough is left alone: of many requests, only one a second tries it again. */
export async function assertLeftAlone(url: string, askOnce: () => Promise<unknown>): Promise<void> {
  const before = await failureCount(url)
  assert.ok(before >= 5, `${before} failures do not leave a store alone`)
  await Promise.all(Array.from({ length: 100 }, askOnce))
  const failed = (await failureCount(url)) - before
  assert.ok(failed < 50, `${failed} of 100 requests asked the store and failed`)
}

/** The instance's count of failed calls of any store. */
async function failureCount(url: string): Promise<number> {
  const metrics = await (await fetch(`${url}/metrics`)).text()
  const counts = metrics.matchAll(/^pennon_dependency_failures_total\{.*\} (\d+)$/gm)
  return [...counts].reduce((sum, [, count]) => sum + Number(count), 0)
}
