// Definitions from PostgreSQL. The revision is polled, and the server also announces each new one.

import { translateErrors } from '#adapters/sql/tables/wrap-methods.ts'
import type { DefinitionStore } from '#ports/state/definition-store.ts'
import type { Logger } from '#telemetry/log.ts'
import { openPool } from './open-postgres.ts'
import { toPostgresPortError } from './postgres-errors.ts'
import { listenForRevisions } from './revision-listener.ts'

/**
 * The epoch names the server process and the table. Both stay the same unless the server restarts or the database or
 * the table is recreated, as after a restore from a backup or a switch to a standby.
 */
const findRevisionText = `
  SELECT value, concat_ws(' ', extract(epoch FROM pg_postmaster_start_time()), d.oid, pg_relation_filenode('revision'))
  FROM revision, pg_database AS d WHERE id = 1 AND d.datname = current_database()`

export interface PostgresDefinitionStore extends DefinitionStore {
  /** Called at once with each revision that any process commits; some may be missed while the server is away. */
  onChange(listener: (revision: number) => void): void
  /** Resolves when the store listens for changes, or could not reach the server. */
  readonly listening: Promise<void>
  close(): Promise<void>
}

/** The state has to be migrated. */
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
    ...translateErrors(
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
      toPostgresPortError,
    ),
    onChange: listener => {
      listeners.push(listener)
    },
    listening: notified.started,
  }
}
