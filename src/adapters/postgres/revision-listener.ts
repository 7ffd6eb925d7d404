// Listens for new revisions on its own connection, and reconnects by itself. A new connection queries the current
// revision at once; callers also poll it while no notifications can arrive.

import pg from 'pg'
import { revisionChannel } from '#adapters/sql/migrations/migration.ts'
import { backOffMs } from '#core/back-off.ts'
import type { Logger } from '#telemetry/log.ts'
import { endIgnoringErrors, trackSockets } from './end-in-time.ts'
import { buildClientSettings } from './open-postgres.ts'
import { toPostgresPortError } from './postgres-errors.ts'

const connectMsMax = 5_000
const reconnectWaits = { firstMs: 100, longestMs: 10_000 }

export interface RevisionListener {
  /** Resolves when it listens for the first time, or when the first attempt fails. */
  readonly started: Promise<void>
  close(): Promise<void>
}

export function listenForRevisions(options: {
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
        await endIgnoringErrors(client)
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

  /** Acts once per connection, whichever event or error reports its end. */
  function reconnect(lost: pg.Client, cause: unknown): void {
    if (client !== lost || isClosed) return
    client = undefined
    void endIgnoringErrors(lost)
    if (failures === 0)
      logger.warn({ err: toPostgresPortError(cause) }, 'cannot listen for definition changes; polling instead')
    timer = setTimeout(() => void connect(), backOffMs(reconnectWaits, failures++, Math.random()))
    timer.unref()
  }
}
