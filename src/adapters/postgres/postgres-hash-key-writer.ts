// Writes the rows of experience continuity in PostgreSQL: one statement writes, a second reads the stored rows,
// including those of other processes. Both run on the primary, since a replica may not have the row yet.

import { toStorableText } from '#adapters/sql/tables/wrap-methods.ts'
import { PortError } from '#ports/port-error.ts'
import type { HashKeyOverrideWriter, HashKeyRow } from '#ports/state/subject-store.ts'
import type { Logger } from '#telemetry/log.ts'
import { openPool } from './open-postgres.ts'

/** The most concurrent calls of one writer; further calls wait for a session. */
export const hashKeySessionsMax = 4
/** How long a statement of an evaluation may wait for a lock or the disk. */
const defaultStatementMsMax = 250
const connectMsMax = 1_000

/**
 * Parameters: project id, both ids, flag keys, hash key. Two concurrent calls for the same persons may each find the rows
 * missing: the second leaves what the first has written. Rows are written in the order of the persons, to avoid deadlocks.
 */
const insertText = `
  INSERT INTO flag_hash_key_override (project_id, person_id, feature_flag_key, hash_key)
  SELECT DISTINCT $1::bigint, d.person_id, k.key, $4::text
  FROM person_distinct_id AS d CROSS JOIN unnest($3::text[]) AS k (key)
  WHERE d.project_id = $1::bigint AND d.distinct_id = ANY($2::text[])
    AND NOT EXISTS (
      SELECT 1 FROM person_distinct_id AS e JOIN flag_hash_key_override AS o ON o.person_id = e.person_id
      WHERE e.project_id = $1::bigint AND e.distinct_id = ANY($2::text[]) AND o.feature_flag_key = k.key)
  ORDER BY d.person_id, k.key
  ON CONFLICT (person_id, feature_flag_key) DO NOTHING`

/** Parameters: project id, both ids, the id whose keys take precedence (they come last) */
const findText = `
  SELECT o.feature_flag_key, o.hash_key
  FROM person_distinct_id AS d JOIN flag_hash_key_override AS o ON o.person_id = d.person_id
  WHERE d.project_id = $1::bigint AND d.distinct_id = ANY($2::text[])
  ORDER BY d.distinct_id = $3::text`

/** The state has to be migrated. Opens nothing before the first call. */
export function openPostgresHashKeyWriter(options: {
  url: string
  logger: Logger
  /** How long a statement may take; a user's login waits for it. */
  statementMsMax?: number
}): HashKeyOverrideWriter & { close(): Promise<void> } {
  const { statementMsMax = defaultStatementMsMax } = options
  const pool = openPool({
    ...options,
    name: 'hash keys',
    sizeMax: hashKeySessionsMax,
    statementMsMax,
    lockMsMax: statementMsMax,
    connectMsMax,
    isIndexed: true,
  })
  const run = async (name: string, text: string, values: unknown[]) =>
    (await pool.query<[string, string]>({ name, text, values, rowMode: 'array' })).rows
  return {
    async addMissingHashKeys({ projectId, distinctId, anonDistinctId, flagKeys }) {
      // Leaves out an id that contains NUL: no person can have it, and the statement would fail.
      const ids = [distinctId, anonDistinctId].filter(id => !id.includes('\0'))
      if (ids.length === 0) return []
      const insertHashKey = () =>
        run('keep-hash-key', insertText, [projectId, ids, flagKeys, toStorableText(anonDistinctId)])
      // If the person is merged into another person at the same time, this second attempt finds the survivor, which now has
      // the ids.
      await insertHashKey().catch(cause => {
        if (cause instanceof PortError && cause.code === 'conflict') return insertHashKey()
        throw cause
      })
      const rows = await run('find-hash-keys', findText, [projectId, ids, toStorableText(distinctId)])
      return [...new Map<string, string>(rows)] satisfies HashKeyRow[] // the last row counts, the one of `distinctId`
    },
    close: () => pool.end(),
  }
}
