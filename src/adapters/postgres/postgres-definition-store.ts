// Definitions from PostgreSQL: the revision is asked for on the management store's behalf, and told by the server.

import { rethrowing } from '#adapters/sql/rethrowing.ts'
import type { DefinitionStore } from '#ports/definition-store.ts'
import type { Logger } from '#telemetry/log.ts'
import { openPool } from './open-postgres.ts'
import { postgresPortError } from './postgres-errors.ts'
import { listenForRevisions } from './revision-listener.ts'

/**
 * What comes back from a backup or a standby is another server process, or another table: neither changes under a session
 * without a restart, a new database, or a table that was written anew.
 */
const findRevisionText = `
  SELECT value, concat_ws(' ', extract(epoch FROM pg_postmaster_start_time()), d.oid, pg_relation_filenode('revision'))
  FROM revision, pg_database AS d WHERE id = 1 AND d.datname = current_database()`

export interface PostgresDefinitionStore extends DefinitionStore {
  /** Called with each revision that any process commits, in no time; some may be missed while the server is away. */
  onChange(listener: (revision: number) => void): void
  /** Resolves when changes are heard, or the server could not be reached. */
  readonly listening: Promise<void>
  close(): Promise<void>
}

/** On a state that has been migrated. */
export function openPostgresDefinitionStore(options: {
  url: string
  logger: Logger
  /** `loadChanges` of the management store on the same database. */
  loadChanges: DefinitionStore['loadChanges']
}): PostgresDefinitionStore {
  const { url, logger, loadChanges } = options
  const pool = openPool({ url, logger, name: 'revision', sizeMax: 1, statementMsMax: 3_000, connectMsMax: 3_000 })
  const listeners: ((revision: number) => void)[] = []
  const notified = listenForRevisions({
    url,
    logger,
    onRevision: revision => {
      for (const listener of listeners) listener(revision)
    },
  })
  return {
    ...rethrowing(
      {
        revision: async () => {
          const { rows } = await pool.query<[number, string]>({
            name: 'revision',
            text: findRevisionText,
            rowMode: 'array',
          })
          const [revision, epoch] = rows[0]!
          return { revision, epoch }
        },
        loadChanges,
        close: async () => {
          await Promise.all([notified.close(), pool.end()])
        },
      },
      postgresPortError,
    ),
    onChange: listener => {
      listeners.push(listener)
    },
    listening: notified.started,
  }
}
