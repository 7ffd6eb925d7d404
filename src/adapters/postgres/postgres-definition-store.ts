// Definitions from PostgreSQL. The revision is polled, and the server also announces each new one.

import pg from 'pg'
import { revisionChannel } from '#adapters/sql/migrations/migration.ts'
import { translateErrors } from '#adapters/sql/tables/wrap-methods.ts'
import { computeBackOffMs } from '#core/back-off.ts'
import type { DefinitionStore } from '#ports/state/definition-store.ts'
import type { Logger } from '#telemetry/log.ts'
import { closeClientIgnoringErrors, trackSockets } from './close-connections.ts'
import { buildClientSettings, openPool } from './open-postgres.ts'
import { toPostgresPortError } from './postgres-errors.ts'

/**
 * Reads the revision and an epoch, which identifies the server process and the table. It changes only if the server
 * restarts, or if the database or the table is recreated, as after a restore from a backup or a switch to a standby.
 */
const findRevisionText = `
  SELECT value, concat_ws(' ', extract(epoch FROM pg_postmaster_start_time()), d.oid, pg_relation_filenode('revision'))
  FROM revision, pg_database AS d WHERE id = 1 AND d.datname = current_database()`

export interface PostgresDefinitionStore extends DefinitionStore {
  /**
   * Calls the listener at once with each revision that any process commits; it may miss some while the server is
   * unavailable.
   */
  onChange(listener: (revision: number) => void): void
  /** Resolves when the store listens for changes, or when it could not reach the server. */
  readonly listening: Promise<void>
  close(): Promise<void>
}

/** The state has to be migrated. */
export function openPostgresDefinitionStore(options: {
  url: string
  logger: Logger
  /** The function `loadChanges` of the management store on the same database. */
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
        readRevision: async () => {
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

const connectMsMax = 5_000
const reconnectWaits = { firstMs: 100, longestMs: 10_000 }

interface RevisionListener {
  /** Resolves when the connection listens for the first time, or when the first attempt to connect fails. */
  readonly started: Promise<void>
  close(): Promise<void>
}

/**
 * Listens for new revisions on a separate connection, and reconnects by itself. A new connection queries the current revision
 * at once; callers also poll it while no notifications can arrive.
 */
function listenForRevisions(options: {
  url: string
  logger: Logger
  onRevision: (revision: number) => void
}): RevisionListener {
  const { url, logger, onRevision } = options
  let client: pg.Client | undefined
  let timer: NodeJS.Timeout | undefined
  let failures = 0
  let isClosed = false
  const sockets = trackSockets()
  const started = connect()

  return {
    started,
    close: async () => {
      isClosed = true
      clearTimeout(timer)
      await sockets.endInTime(async () => {
        await started
        await closeClientIgnoringErrors(client)
      })
    },
  }

  async function connect(): Promise<void> {
    const settings = buildClientSettings(url, 'listener', connectMsMax)
    const connecting = new pg.Client({ ...settings, stream: sockets.stream, query_timeout: connectMsMax })
    client = connecting
    connecting.on('notification', ({ payload }) => onRevision(Number(payload)))
    connecting.on('error', cause => reconnect(connecting, cause))
    connecting.on('end', () => reconnect(connecting, new Error('the server ended the connection')))
    try {
      await connecting.connect()
      await connecting.query(`LISTEN ${revisionChannel}`)
      if (failures === 0) return
      const { rows } = await connecting.query<{ value: number }>('SELECT value FROM revision WHERE id = 1')
      logger.info('listening for definition changes again')
      failures = 0
      onRevision(rows[0]!.value)
    } catch (cause) {
      reconnect(connecting, cause)
    }
  }

  /** Reconnects once per lost connection, whichever of several events and errors reports the loss first. */
  function reconnect(lost: pg.Client, cause: unknown): void {
    if (client !== lost || isClosed) return
    client = undefined
    void closeClientIgnoringErrors(lost)
    if (failures === 0)
      logger.warn({ err: toPostgresPortError(cause) }, 'cannot listen for definition changes; polling instead')
    timer = setTimeout(() => void connect(), computeBackOffMs(reconnectWaits, failures++, Math.random()))
    timer.unref()
  }
}
