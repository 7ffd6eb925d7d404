// What a contract suite of the state needs from each adapter: the stores under test, and ways to arrange and read data
// behind them.

import type { TestContext } from 'node:test'
import { memoryChunkStore } from '#adapters/memory/memory-chunk-store.ts'
import { keyOf, memoryState } from '#adapters/memory/memory-state.ts'
import { memorySubjectStore } from '#adapters/memory/memory-subject-store.ts'
import { openHashKeyWriter } from '#adapters/sqlite/hash-key-writer.ts'
import { openStateForWriting } from '#adapters/sqlite/open-sqlite.ts'
import { openSqliteChunkStore } from '#adapters/sqlite/sqlite-chunk-store.ts'
import { openSqliteManagementStore } from '#adapters/sqlite/sqlite-management-store.ts'
import { openSqliteSubjectStore } from '#adapters/sqlite/sqlite-subject-store.ts'
import type { MaybePromise } from '#core/maybe-promise.ts'
import type { ChunkOutcome, ChunkStore } from '#ports/state/chunk-store.ts'
import type { CookielessVisitors } from '#ports/state/cookieless-visitors.ts'
import type { HashKeyOverrideReader, HashKeyOverrideWriter } from '#ports/state/hash-key-overrides.ts'
import type { SubjectStore } from '#ports/state/subject-store.ts'
import { writeNewState } from './new-state.ts'
import { tempDir } from './temp-dir.ts'
import { aNewProject } from './values.ts'

/** A state with projects 1 and 2. */
export interface StateHarness {
  readonly chunkStore: ChunkStore
  readonly subjectStore: SubjectStore & CookielessVisitors
  /** A second store on the same state, as another process would open it. */
  openAnotherChunkStore(): ChunkStore
  revision(): Promise<number>
  /** Does nothing for a person that does not exist. */
  addOverride(projectId: number, personUuid: string, flagKey: string, hashKey: string): MaybePromise<void>
  /** `flagKey=hashKey`, sorted. */
  overridesOf(projectId: number, personUuid: string): MaybePromise<string[]>
  /** Makes an existing person a member of a static cohort of its project; creates the cohort if it does not exist. */
  addMembership(projectId: number, personUuid: string, cohortId: number): MaybePromise<void>
  /** Ids of cohorts, ascending. */
  membershipsOf(projectId: number, personUuid: string): MaybePromise<number[]>
  outcomesOf(projectId: number): Promise<readonly ChunkOutcome[]>
}

export type OpenState = (t: TestContext) => Promise<StateHarness>

/** Adds the stores that the memory state lacks. */
export interface SqlStateHarness extends StateHarness {
  readonly hashKeys: HashKeyOverrideReader & HashKeyOverrideWriter
}

export type OpenSqlState = (t: TestContext) => Promise<SqlStateHarness>

/** Parameters: id, project id. */
export const insertCohortText = `INSERT INTO cohort
  (id, project_id, name, description, is_static, filters, deleted, version, created_at, updated_at)
  VALUES (?, ?, '', '', 1, '{}', 0, 1, 0, 0) ON CONFLICT DO NOTHING`

export const openMemoryState: OpenState = async () => {
  const projects = [1, 2].map(id => ({ ...aNewProject(), id }))
  const state = memoryState(projects)
  return {
    chunkStore: memoryChunkStore(state),
    subjectStore: memorySubjectStore(state),
    openAnotherChunkStore: () => memoryChunkStore(state),
    revision: async () => state.revision,
    addOverride: (projectId, personUuid, flagKey, hashKey) => {
      if (state.persons.has(keyOf(projectId, personUuid)))
        state.overrides.set(keyOf(projectId, personUuid, flagKey), hashKey)
    },
    overridesOf: (projectId, personUuid) =>
      [...state.overrides]
        .map(([key, hashKey]) => ({ key: JSON.parse(key) as [number, string, string], hashKey }))
        .filter(({ key }) => key[0] === projectId && key[1] === personUuid)
        .map(({ key, hashKey }) => `${key[2]}=${hashKey}`)
        .sort(),
    addMembership: (projectId, personUuid, cohortId) => {
      const key = keyOf(projectId, personUuid)
      if (state.persons.has(key)) state.memberships.set(key, new Set(state.memberships.get(key)).add(cohortId))
    },
    membershipsOf: (projectId, personUuid) =>
      [...(state.memberships.get(keyOf(projectId, personUuid)) ?? [])].sort((a, b) => a - b),
    outcomesOf: async projectId => {
      const counts = new Map<string, ChunkOutcome>()
      for (const outcome of state.outcomes.filter(candidate => candidate.projectId === projectId)) {
        const key = keyOf(outcome.lane, outcome.outcome, outcome.reason)
        counts.set(key, { ...outcome, count: outcome.count + (counts.get(key)?.count ?? 0) })
      }
      return [...counts.values()]
    },
  }
}

export const openSqliteState: OpenSqlState = async t => {
  const dataFolder = tempDir(t)
  await writeNewState(dataFolder)
  const management = openSqliteManagementStore({ dataFolder, access: 'write' })
  await management.createProject(aNewProject())
  await management.createProject(aNewProject())
  const database = openStateForWriting(dataFolder, 1_000)
  const stores: ChunkStore[] = []
  const openAnotherChunkStore = () => {
    const store = openSqliteChunkStore({ dataFolder })
    stores.push(store)
    return store
  }
  const subjectStore = openSqliteSubjectStore({ dataFolder })
  const { keepHashKey, close: closeHashKeys } = openHashKeyWriter({ dataFolder })
  t.after(async () => {
    subjectStore.close()
    closeHashKeys()
    database.close()
    for (const store of [...stores, management]) await store.close()
  })
  return {
    chunkStore: openAnotherChunkStore(),
    subjectStore,
    hashKeys: { findHashKeys: subjectStore.findHashKeys, keepHashKey },
    openAnotherChunkStore,
    revision: async () => database.prepare<[], number>('SELECT value FROM revision').pluck().get()!,
    addOverride: (projectId, personUuid, flagKey, hashKey) => {
      database
        .prepare(`INSERT INTO flag_hash_key_override (project_id, person_id, feature_flag_key, hash_key)
          SELECT project_id, id, ?, ? FROM person WHERE project_id = ? AND uuid = ?`)
        .run(flagKey, hashKey, projectId, personUuid)
    },
    overridesOf: (projectId, personUuid) =>
      database
        .prepare<[number, string], string>(`SELECT feature_flag_key || '=' || hash_key
          FROM flag_hash_key_override AS o JOIN person AS p ON p.id = o.person_id
          WHERE p.project_id = ? AND p.uuid = ? ORDER BY 1`)
        .pluck()
        .all(projectId, personUuid),
    addMembership: (projectId, personUuid, cohortId) => {
      database.prepare(insertCohortText).run(cohortId, projectId)
      database
        .prepare(`INSERT INTO cohort_person (person_id, cohort_id)
          SELECT id, ? FROM person WHERE project_id = ? AND uuid = ? ON CONFLICT DO NOTHING`)
        .run(cohortId, projectId, personUuid)
    },
    membershipsOf: (projectId, personUuid) =>
      database
        .prepare<[number, string], number>(`SELECT cohort_id
          FROM cohort_person AS c JOIN person AS p ON p.id = c.person_id
          WHERE p.project_id = ? AND p.uuid = ? ORDER BY 1`)
        .pluck()
        .all(projectId, personUuid),
    outcomesOf: projectId => management.listOutcomes(projectId),
  }
}
