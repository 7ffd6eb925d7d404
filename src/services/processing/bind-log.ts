// Holds the embedded log against the state before anything is appended: positions are offsets in one certain log, so a
// state that went on with another one would skip what was acknowledged there, or process it again. The folder says which
// log it holds, the state which one it follows.

import { type LogLane, logLanes } from '#core/events/captured-event.ts'
import { err, ok, type Result } from '#core/result.ts'
import type { ChunkStore } from '#ports/chunk-store.ts'
import type { FollowedLog, ManagementStore, ReturnedState } from '#ports/management-store.ts'

/** What a folder says of its log. A log without segments holds nothing, so nothing of it was ever processed. */
export interface FoundLog {
  /** Null when the log was not begun yet, or was begun by a version that gave no ids. */
  readonly id: string | null
  /** False when nothing was ever appended, nor could have been. */
  readonly hasSegments: boolean
}

export type LogBinding =
  | { readonly kind: 'go_on' }
  /** The state begins to follow the log; with null, by a new id. */
  | { readonly kind: 'follow'; readonly id: string | null }
  | { readonly kind: 'refuse' }

/**
 * What to do with a log and a state that were found together.
 * @param hasOwnState the state lies in the data folder beside the log.
 * @param begunAt the state's positions now, as `FollowedLog.begunAt` has them.
 * Source: ours.
 */
export function decideLogBinding(
  found: FoundLog,
  followed: FollowedLog | null,
  hasOwnState: boolean,
  begunAt: string,
): LogBinding {
  if (found.id !== null && found.id === followed?.id) return { kind: 'go_on' }
  // An id that is not the followed one was left by a start that was cut short, perhaps with another state. If two states
  // followed it, each would process what the other one accepted.
  if (!found.hasSegments) return { kind: 'follow', id: null }
  if (found.id === null) {
    // The log is older than ids, so only the state beside it can have followed it. A start that was cut short here had
    // given the id to the state already, and not yet to the folder.
    return hasOwnState ? { kind: 'follow', id: followed?.id ?? null } : { kind: 'refuse' }
  }
  // After one start with the wrong folder, of which nothing was processed, the way back is open.
  if (followed?.formerId === found.id && followed.begunAt === begunAt) return { kind: 'follow', id: found.id }
  return { kind: 'refuse' }
}

export interface BindLogDeps {
  readonly management: Pick<ManagementStore, 'findFollowedLog' | 'followLog' | 'findLogPosition'>
  /** `writeId` durably; `replaceId` only for a log without segments, over whatever id it has. */
  readonly log: FoundLog & { writeId(id: string): void; replaceId(id: string): void }
  /** Folder of the log. */
  readonly folder: string
  readonly host: string
  /** Where the state is, for people; null when it is in the data folder, beside the log. */
  readonly statePlace: string | null
  readonly newUuid: () => string
  /** Told when the state leaves a log behind. */
  readonly warn: (line: string) => void
}

/**
 * Ties log and state together, or says why they do not belong together. Only one process may do so at a time.
 * @returns one line for a person when the start has to be refused; then nothing was changed.
 * @throws PortError when the state cannot be read or written, system errors of the folder.
 */
export async function bindLog(deps: BindLogDeps): Promise<Result<null, string>> {
  const { management, log, folder, host, statePlace } = deps
  const [followed, offsets] = await Promise.all([management.findFollowedLog(), readFirstOffsets(management)])
  const begunAt = JSON.stringify(offsets)
  const binding = decideLogBinding(log, followed, statePlace === null, begunAt)
  if (binding.kind === 'go_on') return ok(null)
  if (binding.kind === 'refuse') return err(refusal(folder, statePlace, followed))
  const id = binding.id ?? deps.newUuid()
  // An empty log gets its id first, since without one it belongs to no state. A filled one gets it last: from then on it
  // belongs to the state with that id, which has to follow it already.
  if (!log.hasSegments) log.replaceId(id)
  const formerId = (followed?.id === id ? followed.formerId : followed?.id) ?? null
  await management.followLog({ id, place: `${host}:${folder}`, formerId, begunAt })
  if (log.id === null && log.hasSegments) log.writeId(id)
  if (followed !== null && followed.id !== id)
    deps.warn(
      `The state goes on with the log in ${folder} and leaves the one it followed before, in ${followed.place}: events in there that were not processed yet stay there.`,
    )
  return ok(null)
}

/**
 * Whether a running instance may go on with a state that came back. An older copy is no hindrance: the worker reads on from
 * where that stands.
 * @param log `endOffset` as the log's reader has it.
 * @returns what stands against it, as the rest of a sentence about the state; null when nothing does.
 */
export async function whyNotOurs(
  found: ReturnedState,
  log: { readonly id: string | null; endOffset(lane: LogLane, position: number): Promise<number> },
): Promise<string | null> {
  if (found.followedLogId !== log.id) return 'came back as a copy that follows another log'
  for (const lane of logLanes) {
    const position = found.positions.get(lane) ?? 0
    // The host was set back to a snapshot: what it appended from here on would never be read. A start mends that.
    if ((await log.endOffset(lane, position)) < position) return `is ahead of the log of this instance (lane ${lane})`
  }
  return null
}

/** Where a lane of an empty log begins. @throws PortError */
export async function readFirstOffsets(
  positions: Pick<ManagementStore, 'findLogPosition'>,
): Promise<Record<LogLane, number>> {
  const entries = logLanes.map(async lane => [lane, (await positions.findLogPosition(lane)).offset] as const)
  return Object.fromEntries(await Promise.all(entries)) as Record<LogLane, number>
}

/** The state follows another log: what this worker would commit are positions that mean nothing there. */
export class LogLeftError extends Error {
  constructor() {
    super('the state follows another log than the one in this data folder')
    this.name = 'LogLeftError'
  }
}

/**
 * A chunk store that gives lanes only to a worker that reads the log that the state follows. It asks before the claim, so
 * that a worker on another log takes the lane from no other, and once more after it. Binding another log after that takes
 * the lane away (`followLog`), so nothing can come in between.
 */
export function claimingOnlyFor(
  logId: string | null,
  chunks: ChunkStore,
  management: Pick<ManagementStore, 'findFollowedLog'>,
): ChunkStore {
  const requireFollowed = async () => {
    if (((await management.findFollowedLog())?.id ?? null) !== logId) throw new LogLeftError()
  }
  return {
    ...chunks,
    claimPosition: async (lane, ownerId) => {
      await requireFollowed()
      const position = await chunks.claimPosition(lane, ownerId)
      await requireFollowed()
      return position
    },
  }
}

function refusal(folder: string, statePlace: string | null, followed: FollowedLog | null): string {
  const state = statePlace === null ? 'the state in this data folder' : `the state in ${statePlace}`
  const follows = followed === null ? 'follows none yet' : `follows the one in ${followed.place}`
  const wayOut =
    statePlace === null
      ? 'Set DATABASE_URL to the database that it belongs to, or PENNON_DATA to another folder.'
      : 'Set DATABASE_URL and PENNON_DATA to the ones that belong together (no DATABASE_URL for a log beside its state.db), or PENNON_DATA to a new folder.'
  return `The log in ${folder} belongs to another state: ${state} ${follows}. ${wayOut}`
}
