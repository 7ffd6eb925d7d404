// Checks, before anything is appended, that the embedded log and the state belong together. Positions are offsets in one
// particular log, so a state that continued with another log would skip events acknowledged there, or process them again.
// The folder contains the id of its log, and the state the id of the log that it follows.

import type { LogStream } from '#core/events/log-stream.ts'
import { err, ok, type Result } from '#core/result.ts'
import type { ChunkStore } from '#ports/state/chunk-store.ts'
import type { FollowedLog, LogBindingStore, ReturnedState } from '#ports/state/worker-state.ts'
import { type ProgressStore, readAllPositions } from './find-progress.ts'

/** The log found in a folder. A log without segments is empty, so none of its records was ever processed. */
export interface FoundLog {
  /** Null if the log does not exist yet. */
  readonly id: string | null
  /** False only if nothing can ever have been appended. */
  readonly hasSegments: boolean
}

export type LogBinding =
  | { readonly kind: 'go_on' }
  /** The state begins to follow the log; if `id` is null, the log is empty and gets a new id. */
  | { readonly kind: 'follow'; readonly id: string | null }
  | { readonly kind: 'refuse' }

/**
 * Decides what to do with a log and a state that were found together.
 * @param begunAt the state's positions now, in the form of `FollowedLog.begunAt`.
 * Source: ours.
 */
export function decideWhichLogToFollow(found: FoundLog, followed: FollowedLog | null, begunAt: string): LogBinding {
  if (found.id !== null && found.id === followed?.id) return { kind: 'go_on' }
  // If an empty log has another id, that id is left over from an interrupted start, perhaps with another state. Replace it:
  // if two states followed the same id, each would process events that the other accepted.
  if (!found.hasSegments) return { kind: 'follow', id: null }
  // After a start with the wrong folder, the state may return to its former log if nothing was processed since.
  if (found.id !== null && found.id === followed?.formerId && followed.begunAt === begunAt)
    return { kind: 'follow', id: found.id }
  return { kind: 'refuse' }
}

export interface FindBindingDeps {
  readonly management: ProgressStore & Pick<LogBindingStore, 'findFollowedLog'>
  readonly log: FoundLog & { readonly streams: readonly LogStream[] }
  /** Folder of the log. */
  readonly folder: string
  /** Where the state is, for messages; null when it is in the data folder, next to the log. */
  readonly statePlace: string | null
}

export interface BindLogDeps extends FindBindingDeps {
  readonly management: FindBindingDeps['management'] & Pick<LogBindingStore, 'followLog'>
  /** `writeId` overwrites any id, durably, and is only for a log without segments. */
  readonly log: FindBindingDeps['log'] & { writeId(id: string): void }
  readonly host: string
  readonly newUuid: () => string
  /** Called when the state leaves a log behind. */
  readonly warn: (line: string) => void
}

/**
 * Binds log and state to each other, or explains why they do not belong together. Only one process may call it at a time.
 * @returns one line for the operator if the start must be refused; in that case nothing was changed. @throws PortError if
 * the state cannot be read or written, and system errors about the folder.
 */
export async function bindLog(deps: BindLogDeps): Promise<Result<null, string>> {
  const { management, log, folder, host, statePlace } = deps
  const { binding, followed, begunAt } = await readBinding(deps)
  if (binding.kind === 'go_on') return ok(null)
  if (binding.kind === 'refuse') return err(formatRefusal(folder, statePlace, followed))
  const id = binding.id ?? deps.newUuid()
  // The log gets its id before the state follows it, because a log without an id cannot be matched to a state.
  if (!log.hasSegments) log.writeId(id)
  await management.followLog({ id, place: `${host}:${folder}`, formerId: followed?.id ?? null, begunAt })
  if (followed !== null)
    deps.warn(
      `The state now follows the log in ${folder} instead of the one in ${followed.place}. Unprocessed events in the old log remain there.`,
    )
  return ok(null)
}

/** The line with which `bindLog` would refuse the log; null if it would not. Changes nothing. @throws PortError */
export async function findBindingRefusal(deps: FindBindingDeps): Promise<string | null> {
  const { binding, followed } = await readBinding(deps)
  return binding.kind === 'refuse' ? formatRefusal(deps.folder, deps.statePlace, followed) : null
}

async function readBinding({ management, log }: FindBindingDeps) {
  const [followed, offsets] = await Promise.all([
    management.findFollowedLog(),
    readAllPositions(management, log.streams),
  ])
  const begunAt = JSON.stringify(offsets)
  return { binding: decideWhichLogToFollow(log, followed, begunAt), followed, begunAt }
}

/**
 * Decides whether a running instance may continue with a state that is available again after an outage. The instance may
 * continue with an older copy of the state, from that copy's positions.
 * @param log its `endOffset` is the end that the log's reader reports.
 * @returns the reason against it, a clause whose subject is the state; null if it may continue.
 */
export async function findLogMismatch(
  found: ReturnedState,
  log: {
    readonly id: string | null
    readonly streams: readonly LogStream[]
    endOffset(stream: LogStream, position: number): Promise<number>
  },
): Promise<string | null> {
  if (found.followedLogId !== log.id) return 'was replaced by a copy that follows another log'
  for (const stream of log.streams) {
    const position = found.positions.get(stream) ?? 0
    // The log is too short: the host was reset to a snapshot, and new records would never be read. A restart repairs that.
    if ((await log.endOffset(stream, position)) < position)
      return `is ahead of the log of this instance (stream ${stream})`
  }
  return null
}

/**
 * The state's position in each stream, in the given order; in an empty log, the stream begins at that position. @throws
 * PortError
 */
export async function readPositions(
  positions: Pick<LogBindingStore, 'findLogPosition'>,
  streams: readonly LogStream[],
): Promise<Record<LogStream, number>> {
  const entries = streams.map(async stream => [stream, (await positions.findLogPosition(stream)).offset] as const)
  return Object.fromEntries(await Promise.all(entries))
}

/** Thrown when the state follows another log, in which this worker's positions are meaningless. */
export class LogMismatchError extends Error {
  constructor() {
    super('the state follows a different log than the one in this data folder')
    this.name = 'LogMismatchError'
  }
}

/**
 * A chunk store whose streams can be claimed only by a worker on the log that the state follows. It checks this before the
 * claim, so that a worker on another log takes no stream from the current worker, and again after the claim. Binding
 * another log later revokes the claim (`followLog`), so no other log can slip in between.
 */
export function restrictClaimsToLog(
  logId: string | null,
  chunks: ChunkStore,
  management: Pick<LogBindingStore, 'findFollowedLog'>,
): ChunkStore {
  const requireFollowedLog = async () => {
    if (((await management.findFollowedLog())?.id ?? null) !== logId) throw new LogMismatchError()
  }
  return {
    ...chunks,
    claimPosition: async (stream, ownerId) => {
      await requireFollowedLog()
      const position = await chunks.claimPosition(stream, ownerId)
      await requireFollowedLog()
      return position
    },
  }
}

function formatRefusal(folder: string, statePlace: string | null, followed: FollowedLog | null): string {
  const state = statePlace === null ? 'the state in this data folder' : `the state in ${statePlace}`
  const follows = followed === null ? 'follows no log yet' : `follows the log in ${followed.place}`
  const remedy =
    statePlace === null
      ? 'Restore the whole data folder from a backup, or set PENNON_DATA to another folder. If the state of this log is in PostgreSQL, set DATABASE_URL to it.'
      : 'Set DATABASE_URL and PENNON_DATA to a matching state and log (no DATABASE_URL if the log has a state.db beside it), or set PENNON_DATA to a new folder.'
  return `The log in ${folder} belongs to another state: ${state} ${follows}. ${remedy}`
}
