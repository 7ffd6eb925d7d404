// Writes the rows of experience continuity to the state file, in a state thread. All waiting calls share a transaction
// and its sync: when a campaign starts, many visitors log in at once, and with a sync for each, most calls would time
// out.

import { toStorableText } from '#adapters/sql/tables/wrap-methods.ts'
import type { HashKeyAssignment, HashKeyOverrideWriter, HashKeyRow } from '#ports/state/subject-store.ts'
import { openStateForWriting, type SqliteDatabase, toStatePortError } from './open-sqlite.ts'

/**
 * An evaluation waits no longer than this for the lock. This also limits how long a write delays other calls of the thread.
 */
const lockMsMax = 250

// SQLite completes the SELECT before it writes the first row, since the SELECT reads the table that is written.
const insertText = `
  INSERT INTO flag_hash_key_override (project_id, person_id, feature_flag_key, hash_key)
  SELECT DISTINCT d.project_id, d.person_id, k.value, @hashKey
  FROM json_each(@flagKeys) AS k, person_distinct_id AS d
  WHERE d.project_id = @projectId AND d.distinct_id IN (@distinctId, @anonDistinctId)
    AND NOT EXISTS (
      SELECT 1 FROM person_distinct_id AS e JOIN flag_hash_key_override AS o ON o.person_id = e.person_id
      WHERE e.project_id = @projectId AND e.distinct_id IN (@distinctId, @anonDistinctId)
        AND o.feature_flag_key = k.value)
  ON CONFLICT (person_id, feature_flag_key) DO NOTHING`

const findText = `
  SELECT o.feature_flag_key, o.hash_key
  FROM person_distinct_id AS d JOIN flag_hash_key_override AS o ON o.person_id = d.person_id
  WHERE d.project_id = @projectId AND d.distinct_id IN (@distinctId, @anonDistinctId)
  ORDER BY d.distinct_id = @distinctId`

interface Waiting {
  readonly assignment: HashKeyAssignment
  readonly resolve: (rows: readonly HashKeyRow[]) => void
  readonly reject: (cause: unknown) => void
}

/** The state has to be migrated. @throws PortError when it cannot be opened. */
export function openHashKeyWriter(options: { dataFolder: string }): HashKeyOverrideWriter & { close(): void } {
  const database = openStateForWriting(options.dataFolder, lockMsMax, { mayCreate: false })
  const keep = prepareAssignmentWrite(database)
  const keepAll = database.transaction((assignments: readonly HashKeyAssignment[]) => assignments.map(keep))
  let waiting: Waiting[] = []

  return {
    addMissingHashKeys(assignment) {
      const { promise, resolve, reject } = Promise.withResolvers<readonly HashKeyRow[]>()
      waiting.push({ assignment, resolve, reject })
      // Runs when all calls from one batch of messages are in the list.
      if (waiting.length === 1) setImmediate(writeWaiting)
      return promise
    },
    close: () => {
      writeWaiting()
      database.close()
    },
  }

  function writeWaiting(): void {
    if (waiting.length === 0) return // written before the close
    const writing = waiting
    waiting = []
    try {
      const rows = keepAll.immediate(writing.map(({ assignment }) => assignment))
      for (const [index, { resolve }] of writing.entries()) resolve(rows[index]!)
    } catch (cause) {
      const error = toStatePortError(cause)
      for (const { reject } of writing) reject(error)
    }
  }
}

function prepareAssignmentWrite(database: SqliteDatabase): (assignment: HashKeyAssignment) => readonly HashKeyRow[] {
  const insert = database.prepare(insertText)
  const find = database.prepare<unknown[], [string, string]>(findText).raw()
  return ({ projectId, distinctId, anonDistinctId, flagKeys }) => {
    const ids = { projectId, distinctId, anonDistinctId }
    insert.run({ ...ids, flagKeys: JSON.stringify(flagKeys), hashKey: toStorableText(anonDistinctId) })
    return [...new Map(find.all(ids))] // the last row counts, the one of `distinctId`
  }
}
