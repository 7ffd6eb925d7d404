// A state in memory and one in SQLite for tests: their stores, and ways to set up and read data outside of these.
// `postgres-state.ts` opens one in PostgreSQL. The contract suites of the state run on all three.

import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openHashKeyWriter } from '#adapters/sqlite/hash-key-writer.ts'
import { migrateSqlite } from '#adapters/sqlite/kysely-on-sqlite.ts'
import { openStateForWriting, stateFilePath } from '#adapters/sqlite/open-sqlite.ts'
import { openSqliteChunkStore } from '#adapters/sqlite/sqlite-chunk-store.ts'
import { openSqliteManagementStore } from '#adapters/sqlite/sqlite-management-store.ts'
import { openSqliteSubjectStore } from '#adapters/sqlite/sqlite-subject-store.ts'
import type { MaybePromise } from '#core/maybe-promise.ts'
import { deduplicatedReason } from '#core/processing/deduplicate-flag-calls.ts'
import type { ChunkOutcome, ChunkStore, ChunkSubjects, LoadedChunk } from '#ports/state/chunk-store.ts'
import type { CookielessVisitors } from '#ports/state/cookieless-visitors.ts'
import type { ManagementStore } from '#ports/state/management-store.ts'
import type { NewProject } from '#ports/state/project-store.ts'
import type { HashKeyOverrideReader, HashKeyOverrideWriter, SubjectStore } from '#ports/state/subject-store.ts'
import type { LogBindingStore } from '#ports/state/worker-state.ts'
import { memoryChunkStore } from './memory/memory-chunk-store.ts'
import { keyOf, type MemoryState, memoryState } from './memory/memory-state.ts'
import { memorySubjectStore } from './memory/memory-subject-store.ts'
import { type Scope, tempDir } from './temp-dir.ts'
import { aChange, aNewProject, aProject } from './values.ts'

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

export type OpenState = (t: Scope) => Promise<StateHarness>

/** A state with the stores that the memory state lacks. */
export interface SqlState extends StateHarness {
  readonly management: ManagementStore
  readonly hashKeys: HashKeyOverrideReader & HashKeyOverrideWriter
  /** @param text has a `?` for each value. */
  query<Row = Record<string, unknown>>(text: string, ...values: readonly unknown[]): Promise<Row[]>
}

/** @param projects of the state; 1 and 2 by default. */
export type OpenSqlState = (t: Scope, projects?: readonly Partial<NewProject>[]) => Promise<SqlState>

interface Closable {
  close(): unknown
}

/** What an adapter opens on one database. */
export interface SqlAdapter extends Pick<SqlState, 'query'> {
  readonly management: ManagementStore
  openChunkStore(): ChunkStore
  openSubjectStore(): SubjectStore & CookielessVisitors & HashKeyOverrideReader & Closable
  openHashKeyWriter(): HashKeyOverrideWriter & Closable
}

/** Creates the projects, and closes all stores at the end of the test. */
export async function sqlState(
  t: Scope,
  { management, query, ...adapter }: SqlAdapter,
  projects: readonly Partial<NewProject>[] = [{}, {}],
): Promise<SqlState> {
  const opened: Closable[] = []
  const open = <Store extends Closable>(store: Store): Store => {
    opened.push(store)
    return store
  }
  t.after(async () => {
    for (const store of [...opened, management]) await store.close()
  })
  for (const project of projects) await management.createProject(aNewProject(project), aChange())
  let subjectStore: ReturnType<SqlAdapter['openSubjectStore']> | undefined
  let hashKeyWriter: ReturnType<SqlAdapter['openHashKeyWriter']> | undefined
  const subjects = () => {
    subjectStore ??= open(adapter.openSubjectStore())
    return subjectStore
  }
  const openAnotherChunkStore = () => open(adapter.openChunkStore())
  return {
    management,
    query,
    chunkStore: openAnotherChunkStore(),
    get subjectStore() {
      return subjects()
    },
    get hashKeys() {
      hashKeyWriter ??= open(adapter.openHashKeyWriter())
      return { findHashKeys: subjects().findHashKeys, addMissingHashKeys: hashKeyWriter.addMissingHashKeys }
    },
    openAnotherChunkStore,
    revision: async () => Number((await query('SELECT value FROM revision'))[0]!.value),
    addOverride: async (projectId, personUuid, flagKey, hashKey) => {
      await query(
        `INSERT INTO flag_hash_key_override (project_id, person_id, feature_flag_key, hash_key)
          SELECT project_id, id, ?, ? FROM person WHERE project_id = ? AND uuid = ?`,
        ...[flagKey, hashKey, projectId, personUuid],
      )
    },
    overridesOf: async (projectId, personUuid) => {
      const rows = await query<{ text: string }>(
        `SELECT feature_flag_key || '=' || hash_key AS text
          FROM flag_hash_key_override AS o JOIN person AS p ON p.id = o.person_id
          WHERE p.project_id = ? AND p.uuid = ? ORDER BY 1`,
        ...[projectId, personUuid],
      )
      return rows.map(({ text }) => text)
    },
    addMembership: async (projectId, personUuid, cohortId) => {
      await query(
        `INSERT INTO cohort
          (id, project_id, name, description, is_static, filters, deleted, version, created_at, updated_at)
          VALUES (?, ?, '', '', 1, '{}', 0, 1, 0, 0) ON CONFLICT DO NOTHING`,
        ...[cohortId, projectId],
      )
      await query(
        `INSERT INTO cohort_person (person_id, cohort_id)
          SELECT id, ? FROM person WHERE project_id = ? AND uuid = ? ON CONFLICT DO NOTHING`,
        ...[cohortId, projectId, personUuid],
      )
    },
    membershipsOf: async (projectId, personUuid) => {
      const rows = await query<{ cohort_id: number | string }>(
        `SELECT cohort_id FROM cohort_person AS c JOIN person AS p ON p.id = c.person_id
          WHERE p.project_id = ? AND p.uuid = ? ORDER BY 1`,
        ...[projectId, personUuid],
      )
      return rows.map(row => Number(row.cohort_id))
    },
    outcomesOf: projectId => management.listOutcomes(projectId),
  }
}

export const openSqliteState: OpenSqlState = async (t, projects) => {
  const dataFolder = tempDir(t)
  await writeNewState(dataFolder)
  const management = openSqliteManagementStore({ dataFolder, access: 'write' })
  const database = openStateForWriting(dataFolder, 1_000)
  t.after(() => void database.close())
  return sqlState(
    t,
    {
      management,
      openChunkStore: () => openSqliteChunkStore({ dataFolder }),
      openSubjectStore: () => openSqliteSubjectStore({ dataFolder }),
      openHashKeyWriter: () => openHashKeyWriter({ dataFolder }),
      query: async <Row>(text: string, ...values: readonly unknown[]) => {
        const statement = database.prepare<unknown[], Row>(text)
        if (statement.reader) return statement.all(...values)
        statement.run(...values)
        return []
      },
    },
    projects,
  )
}

export const openMemoryState: OpenState = async () => {
  const projects = [1, 2].map(id => aProject({ id }))
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

/** `sumChargedRecords` of the SQL stores, for a state in memory. */
export function sumChargedRecords(state: MemoryState): ReturnType<LogBindingStore['sumChargedRecords']> {
  const counts = new Map<number, number>()
  for (const { projectId, outcome, reason, count } of state.outcomes)
    if (outcome === 'stored' || reason === deduplicatedReason)
      counts.set(projectId, (counts.get(projectId) ?? 0) + count)
  return Promise.resolve(Array.from(counts, ([projectId, recordCount]) => ({ projectId, recordCount })))
}

/** Loads everything that the events of a chunk may touch, however large. */
export async function loadWhole(store: ChunkStore, subjects: ChunkSubjects): Promise<LoadedChunk> {
  const loaded = await store.loadChunk(subjects, Number.POSITIVE_INFINITY)
  assert.notEqual(loaded, 'too_large')
  return loaded as LoadedChunk
}

let migrated: Promise<Buffer> | undefined

/**
 * Writes the state file of a data folder that has none, at the newest schema. It is copied from one that this process
 * migrated once, since migrating takes longer than most tests.
 */
export async function writeNewState(dataFolder: string): Promise<void> {
  migrated ??= migratedFile()
  writeFileSync(stateFilePath(dataFolder), await migrated)
}

async function migratedFile(): Promise<Buffer> {
  const folder = mkdtempSync(join(tmpdir(), 'pennon-new-state-'))
  try {
    await migrateSqlite(folder)
    return readFileSync(stateFilePath(folder))
  } finally {
    rmSync(folder, { recursive: true })
  }
}
