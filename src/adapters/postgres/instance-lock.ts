// Allows only one instance per database, by an advisory lock that a separate session holds for as long as the instance
// runs. Each instance has its log on its own disk, so two instances on one database would move positions that mean nothing
// in the other's log. A lost session is opened again; if another instance has the lock by then, this instance has to end.

import { randomBytes } from 'node:crypto'
import { hostname } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { computeBackOffMs } from '#core/back-off.ts'
import { err, ok, type Result } from '#core/result.ts'
import type { ReturnedState } from '#ports/state/worker-state.ts'
import type { Logger } from '#telemetry/log.ts'
import { describeServer } from './check-postgres.ts'
import { closeClientIgnoringErrors, trackSockets } from './close-connections.ts'
import { definitionsLock } from './kysely-on-postgres.ts'
import { buildClientSettings } from './open-postgres.ts'
import { toPostgresPortError } from './postgres-errors.ts'

const answerMsMax = 5_000
const tryEveryMs = 100
const heartbeatMs = 10_000
const retryWaits = { firstMs: 100, longestMs: 5_000 }
/** The advisory lock's key. Keys of two numbers never collide with keys of one number, which Pennon's other locks use. */
const lockKey = `${definitionsLock}, 1`

/**
 * A host that was switched off does not close its connection: with these settings, the server notices that within 25 s and
 * releases the lock. This session is meant to be idle.
 */
const sessionSettings = `
  SELECT set_config(name, value, false) FROM (VALUES
    ('tcp_keepalives_idle', '10'), ('tcp_keepalives_interval', '5'), ('tcp_keepalives_count', '3'),
    ('tcp_user_timeout', '20000'), ('idle_session_timeout', '0')
  ) AS wanted (name, value) WHERE current_setting(name, true) IS NOT NULL`

const findHolder = `
  SELECT a.pid, a.application_name AS name FROM pg_locks AS l JOIN pg_stat_activity AS a ON a.pid = l.pid
  WHERE l.locktype = 'advisory' AND (l.classid, l.objid, l.objsubid) = (${lockKey}, 2) AND l.granted
    AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())`

/**
 * Reads which log the database follows, and the position in each stream; a stream in which no worker ever committed has no
 * row.
 */
const readReturnedState = `
  SELECT f.log_id, p.stream, p."offset" FROM followed_log AS f LEFT JOIN log_position AS p ON true`

export interface InstanceLock {
  /**
   * Makes `judge` check the database whenever the lock was lost and has been acquired again, since the database may be an
   * older copy or another instance's by then. `judge` returns null, or a reason to end the instance, worded as the rest of
   * a sentence about the database.
   */
  judgeReturns(judge: (found: ReturnedState) => Promise<string | null>): void
  /** Releases the lock. Takes at most a second, even if the server does not answer. */
  release(): Promise<void>
}

export interface InstanceLockOptions {
  readonly url: string
  /** How long to wait for another instance to release the lock. */
  readonly waitMsMax: number
  readonly onWaiting: () => void
  /**
   * Called once, with a line for operators, when another instance has the lock now or the database is no longer the same.
   * After that, nothing is retried.
   */
  readonly onSuperseded: (line: string) => void
  readonly logger: Logger
}

/**
 * @returns err with one line for operators when another instance still holds the lock after the wait.
 * @throws PortError when the server cannot be reached.
 */
export async function acquireInstanceLock(options: InstanceLockOptions): Promise<Result<InstanceLock, string>> {
  const { url, logger } = options
  const token = randomBytes(6).toString('hex')
  const sockets = trackSockets()
  let client: pg.Client | undefined
  let timer: NodeJS.Timeout | undefined
  let failures = 0
  let isHeldFirst = false
  let isReleased = false
  let judge: ((found: ReturnedState) => Promise<string | null>) | undefined

  let holder: string | null
  try {
    holder = await acquire(options.onWaiting)
  } catch (cause) {
    await release()
    throw toPostgresPortError(cause)
  }
  isHeldFirst = holder === null
  if (isHeldFirst)
    return ok({
      judgeReturns: judgeNext => {
        judge = judgeNext
      },
      release,
    })
  await release()
  return err(
    `PostgreSQL at ${describeServer(url)} is in use by another instance${holder}. Stop it, or set DATABASE_URL to another database.`,
  )

  /**
   * @returns null when this instance holds the lock; otherwise a text that names the holder, if the server knows its
   * address. @throws what the driver throws.
   */
  async function acquire(onWaiting: () => void): Promise<string | null> {
    const settings = buildClientSettings(url, `instance ${token} ${hostname()}`.slice(0, 56), answerMsMax)
    const session = new pg.Client({ ...settings, stream: sockets.stream, query_timeout: answerMsMax })
    client = session
    session.on('error', cause => handleLoss(session, cause))
    session.on('end', () => handleLoss(session, new Error('the server ended the connection')))
    try {
      await session.connect()
      await session.query(sessionSettings)
      return await waitForLock(session, onWaiting)
    } catch (cause) {
      handleLoss(session, cause)
      throw cause
    }
  }

  async function waitForLock(session: pg.Client, onWaiting: () => void): Promise<string | null> {
    const deadlineMs = performance.now() + options.waitMsMax
    for (let isWaiting = false; !isReleased; isWaiting = true) {
      const { rows } = await session.query<{ taken: boolean }>(`SELECT pg_try_advisory_lock(${lockKey}) AS taken`)
      if (rows[0]!.taken) {
        scheduleHeartbeat(session)
        return null
      }
      if (!isWaiting) {
        await endFormerSession(session)
        onWaiting()
      }
      if (performance.now() > deadlineMs) return await describeHolderPlace(session)
      await sleep(tryEveryMs)
    }
    return null
  }

  /** Ends this instance's former session if it is still open on the server although the connection was lost. */
  async function endFormerSession(session: pg.Client): Promise<void> {
    for (const { pid, name } of (await session.query<{ pid: number; name: string | null }>(findHolder)).rows)
      if (name?.startsWith(`pennon instance ${token} `)) await session.query('SELECT pg_terminate_backend($1)', [pid])
  }

  async function describeHolderPlace(session: pg.Client): Promise<string> {
    const [holding] = (await session.query<{ name: string | null }>(findHolder)).rows
    const host = /^pennon instance \S+ (.+)$/.exec(holding?.name ?? '')?.[1]
    return host === undefined ? '' : ` on ${host}`
  }

  /** Detects within 15 s, from the client's side, that the server is gone without having closed the connection. */
  function scheduleHeartbeat(session: pg.Client): void {
    timer = setTimeout(async () => {
      try {
        await session.query('SELECT 1')
        if (client === session && !isReleased) scheduleHeartbeat(session)
      } catch (cause) {
        handleLoss(session, cause)
      }
    }, heartbeatMs)
    timer.unref()
  }

  /** Handles the loss of a session once, whichever of several events and errors reports it first. */
  function handleLoss(lost: pg.Client, cause: unknown): void {
    if (client !== lost || isReleased || !isHeldFirst) return
    client = undefined
    clearTimeout(timer)
    void closeClientIgnoringErrors(lost)
    if (failures === 0)
      logger.warn({ err: toPostgresPortError(cause) }, 'lost the lock on the database; acquiring it again')
    timer = setTimeout(() => void retake(), computeBackOffMs(retryWaits, failures++, Math.random()))
    timer.unref()
  }

  async function retake(): Promise<void> {
    try {
      const other = await acquire(() => undefined)
      if (isReleased) return
      const reason =
        other === null
          ? await findObjection(client)
          : `is in use by another instance${other}, which took over while this instance had lost its session`
      if (isReleased) return
      if (reason === null) {
        logger.info('acquired the lock on the database again')
        failures = 0
        return
      }
      // This instance has to end: the other instance has bound its own log to the state and taken the streams from our
      // worker, so no worker would ever read events that this instance accepts from now on.
      await release()
      options.onSuperseded(`PostgreSQL at ${describeServer(url)} ${reason}; this instance stops`)
    } catch {
      // `handleLoss` was called with this error and will try again.
    }
  }

  /** @throws when the database cannot be judged, for example because it is still empty while it is being restored. */
  async function findObjection(session: pg.Client | undefined): Promise<string | null> {
    if (judge === undefined || session === undefined) return null
    try {
      type Row = { log_id: string; stream: string | null; offset: number | null }
      const { rows } = await session.query<Row>(readReturnedState)
      if (rows.length === 0) throw new Error('the database does not follow a log')
      const positions = rows.flatMap(({ stream, offset }) => (stream === null ? [] : [[stream, offset!] as const]))
      return await judge({ followedLogId: rows[0]!.log_id, positions: new Map(positions) })
    } catch (cause) {
      handleLoss(session, cause)
      throw cause
    }
  }

  async function release(): Promise<void> {
    isReleased = true
    clearTimeout(timer)
    await sockets.endInTime(() => closeClientIgnoringErrors(client))
  }
}
