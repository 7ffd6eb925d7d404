// The embedded log's reading end: goes through the segments of a lane by offset, beside writers in other processes, and
// deletes old segments. Opens no transaction longer than one call, so that writers can always tidy up behind it.

import { statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type Database from 'better-sqlite3'
import type { LogLane, LogRecord } from '#core/events/captured-event.ts'
import { RecordCursor } from '#core/log/record-decoder.ts'
import type { EventLogReader, LogChunk, LogRun, LogRuns } from '#ports/event-log.ts'
import { PortError } from '#ports/port-error.ts'
import {
  folderBytes,
  listSegments,
  NotASegmentError,
  openSegment,
  removeSegmentFiles,
  type SegmentName,
} from './segment-file.ts'

interface FrameRow {
  readonly first_offset: number
  readonly record_count: number
  readonly appended_at_ms: number
  readonly body: Buffer
}

type Limits = Parameters<EventLogReader['read']>[2]

/** Where reading began and where it goes on. */
interface Walked {
  readonly firstOffset: number
  readonly nextOffset: number
}

/** The segment being read and the newest one, per lane; a few more for jumps. */
const openSegmentsMax = 6
/** No busy_timeout here, which would block the event loop: ask again a little later instead. */
const busyRetry = { count: 100, delayMs: 20 }

/** @param options.list for tests: what stands in a lane's folder. */
export function openSqliteLogReader(options: { folder: string; list?: typeof listSegments }): EventLogReader {
  const lanes = new Map<LogLane, LaneReader>()
  const laneReader = (lane: LogLane): LaneReader => {
    const known = lanes.get(lane) ?? new LaneReader(lane, join(options.folder, lane), options.list ?? listSegments)
    lanes.set(lane, known)
    return known
  }
  return {
    read: (lane, fromOffset, limits) => patiently(() => laneReader(lane).read(fromOffset, limits)),
    readRuns: (lane, fromOffset, bytesMax) => patiently(() => laneReader(lane).readRuns(fromOffset, bytesMax)),
    status: (lane, offset) => patiently(() => laneReader(lane).status(offset)),
    deleteBehind: (lane, offset, olderThanMs) => patiently(() => laneReader(lane).deleteBehind(offset, olderThanMs)),
    close: async () => {
      for (const lane of lanes.values()) lane.close()
      lanes.clear()
    },
  }
}

class LaneReader {
  readonly #lane: LogLane
  readonly #folder: string
  readonly #list: typeof listSegments
  #segments: SegmentName[] = []
  readonly #open = new Map<string, ReadableSegment>()

  constructor(lane: LogLane, folder: string, list: typeof listSegments) {
    this.#lane = lane
    this.#folder = folder
    this.#list = list
  }

  read(fromOffset: number, limits: Limits): LogChunk {
    return this.#lookAgain(fromOffset, () => this.#readKnown(fromOffset, limits))
  }

  readRuns(fromOffset: number, bytesMax: number): LogRuns {
    return this.#lookAgain(fromOffset, () => this.#readKnownRuns(fromOffset, bytesMax))
  }

  /** @param readKnown reads from the segments of the last listing. */
  #lookAgain<T extends Walked>(fromOffset: number, readKnown: () => T): T {
    try {
      const known = readKnown()
      if (known.nextOffset > known.firstOffset && known.firstOffset === fromOffset) return known
    } catch (error) {
      if (!(error instanceof PortError && error.retryable)) throw error
    }
    // At the end of what was listed last, or one of those was deleted: look again.
    this.#segments = this.#list(this.#folder)
    let found = readKnown()
    if (found.firstOffset > fromOffset) {
      // A listing of a large folder may miss a file that was made meanwhile and yet hold one that was made after it. The
      // next listing has it: a gap that is still there is one.
      this.#segments = this.#list(this.#folder)
      found = readKnown()
    }
    if (found.nextOffset > found.firstOffset) return found
    const endOffset = this.#endOffset(fromOffset)
    if (fromOffset > endOffset) {
      const message = `position ${fromOffset} lies behind the end of the log in ${this.#folder}, which is at ${endOffset}`
      throw new PortError('event-log', 'conflict', new Error(message))
    }
    return found
  }

  status(offset: number): { endOffset: number; appendedAtMs: number | null; bytes: number } {
    this.#segments = this.#list(this.#folder)
    const segment = this.#segments.findLast(({ firstOffset }) => firstOffset <= offset)
    const appendedAtMs = segment === undefined ? null : this.#using(segment, opened => opened.appendedAtMs(offset))
    return { endOffset: this.#endOffset(offset), appendedAtMs, bytes: folderBytes(this.#folder) }
  }

  deleteBehind(offset: number, olderThanMs: number): { deletedSegmentCount: number } {
    this.#segments = this.#list(this.#folder)
    let deletedSegmentCount = 0
    while (this.#segments.length > 1 && this.#segments[1]!.firstOffset <= offset) {
      const oldest = this.#segments[0]!
      if (this.#newestAppendMs(oldest) >= olderThanMs) break
      this.#closeSegment(oldest.path)
      removeSegmentFiles(oldest.path)
      this.#segments.shift()
      deletedSegmentCount++
    }
    return { deletedSegmentCount }
  }

  close(): void {
    for (const path of [...this.#open.keys()]) this.#closeSegment(path)
  }

  #readKnown(fromOffset: number, limits: Limits): LogChunk {
    const records: LogRecord[] = []
    let room = limits.bytesMax
    const walked = this.#walk(fromOffset, (frame, from) => {
      const cursor = new RecordCursor(frame.body, frame.record_count)
      cursor.skip(from - frame.first_offset)
      const countBefore = records.length
      while (!cursor.done && records.length < limits.recordCountMax) {
        const bytes = cursor.nextBytes
        if (bytes > room && records.length > 0) break
        room -= bytes
        records.push(cursor.next())
      }
      return {
        nextOffset: from + records.length - countBefore,
        isEnough: !cursor.done || records.length >= limits.recordCountMax || room <= 0,
      }
    })
    return { lane: this.#lane, records, ...walked }
  }

  #readKnownRuns(fromOffset: number, bytesMax: number): LogRuns {
    const runs: LogRun[] = []
    let room = bytesMax
    const walked = this.#walk(fromOffset, frame => {
      const { first_offset: firstOffset, record_count: recordCount, appended_at_ms: appendedAtMs, body: bytes } = frame
      runs.push({ firstOffset, recordCount, appendedAtMs, bytes })
      room -= bytes.length
      return { nextOffset: firstOffset + recordCount, isEnough: room <= 0 }
    })
    return { runs, ...walked }
  }

  /**
   * Shows the frames from `fromOffset` on to `take`, which says where it goes on and whether it has enough. From the segments
   * of the last listing; the ones before the newest are complete, so their end leads to the next.
   */
  #walk(
    fromOffset: number,
    take: (frame: FrameRow, fromOffset: number) => { nextOffset: number; isEnough: boolean },
  ): Walked {
    let firstOffset = fromOffset
    let nextOffset = fromOffset
    let isEnough = false
    const first = Math.max(
      0,
      this.#segments.findLastIndex(segment => segment.firstOffset <= fromOffset),
    )
    for (const segment of this.#segments.slice(first)) {
      if (segment.firstOffset > nextOffset) {
        if (nextOffset > firstOffset) break
        firstOffset = nextOffset = segment.firstOffset
      }
      try {
        this.#using(segment, opened => {
          for (const frame of opened.framesFrom(nextOffset)) {
            if (frame.first_offset + frame.record_count <= nextOffset) continue
            const taken = take(frame, nextOffset)
            nextOffset = taken.nextOffset
            isEnough = taken.isEnough
            if (isEnough) break
          }
        })
      } catch (error) {
        // What was read before the damage is handed out first; the next call meets the damage again and says so.
        if (nextOffset > firstOffset && error instanceof PortError && error.code === 'corrupt') break
        throw error
      }
      if (isEnough) break
    }
    return { firstOffset, nextOffset }
  }

  /** A lane without segments begins where the state stands in it. */
  #endOffset(position: number): number {
    const newest = this.#segments.at(-1)
    return newest === undefined ? position : this.#using(newest, opened => opened.endOffset())
  }

  /** A segment that cannot be read is as old as its file, so that retention frees it as well. */
  #newestAppendMs(segment: SegmentName): number {
    try {
      const newest = this.#using(segment, opened => opened.newestAppendMs())
      if (newest !== null) return newest
    } catch (error) {
      if (!(error instanceof PortError && error.code === 'corrupt')) throw error
    }
    return statSync(segment.path, { throwIfNoEntry: false })?.mtimeMs ?? 0
  }

  #using<T>(segment: SegmentName, use: (opened: ReadableSegment) => T): T {
    try {
      const known = this.#open.get(segment.path)
      const opened = known ?? new ReadableSegment(segment)
      // Last used, last in line to be closed.
      this.#open.delete(segment.path)
      this.#open.set(segment.path, opened)
      if (known === undefined && this.#open.size > openSegmentsMax) this.#closeSegment(this.#open.keys().next().value!)
      return use(opened)
    } catch (error) {
      this.#closeSegment(segment.path)
      throw readError(error, segment.path)
    }
  }

  #closeSegment(path: string): void {
    this.#open.get(path)?.close()
    this.#open.delete(path)
  }
}

class ReadableSegment {
  readonly #name: SegmentName
  readonly #db: Database.Database
  readonly #frames: Database.Statement<[number]>
  readonly #frameTime: Database.Statement<[number]>
  readonly #end: Database.Statement<[]>
  readonly #newestTime: Database.Statement<[]>

  constructor(name: SegmentName) {
    this.#name = name
    this.#db = openSegment(name.path, 'read')
    this.#frames = this.#db.prepare(
      `SELECT * FROM frames WHERE first_offset >=
         coalesce((SELECT max(first_offset) FROM frames WHERE first_offset <= ?), 0) ORDER BY first_offset`,
    )
    this.#frameTime = this.#db
      .prepare<[number]>(
        `WITH wanted(place) AS (SELECT ?)
         SELECT CASE WHEN place < first_offset + record_count THEN appended_at_ms END FROM wanted, frames
         WHERE first_offset <= place ORDER BY first_offset DESC LIMIT 1`,
      )
      .pluck()
    this.#end = this.#db
      .prepare<[]>('SELECT first_offset + record_count FROM frames ORDER BY first_offset DESC LIMIT 1')
      .pluck()
    this.#newestTime = this.#db
      .prepare<[]>('SELECT appended_at_ms FROM frames ORDER BY first_offset DESC LIMIT 1')
      .pluck()
  }

  /** The frame that holds `offset` and those behind it. */
  framesFrom(offset: number): IterableIterator<FrameRow> {
    return this.#frames.iterate(offset) as IterableIterator<FrameRow>
  }

  appendedAtMs(offset: number): number | null {
    return (this.#frameTime.get(offset) as number | null | undefined) ?? null
  }

  endOffset(): number {
    return (this.#end.get() as number | undefined) ?? this.#name.firstOffset
  }

  newestAppendMs(): number | null {
    return (this.#newestTime.get() as number | undefined) ?? null
  }

  close(): void {
    this.#db.close()
  }
}

/** Tries again while a writer holds the file for recovery or tidying, or a segment went away since it was listed. */
async function patiently<T>(attempt: () => T): Promise<T> {
  for (let attemptCount = 1; ; attemptCount++) {
    try {
      return attempt()
    } catch (error) {
      if (!(error instanceof PortError && error.retryable) || attemptCount >= busyRetry.count) throw error
      await sleep(busyRetry.delayMs)
    }
  }
}

/** Anything but SQLite's own errors is a mistake of ours and stays what it is. */
function readError(error: unknown, path: string): unknown {
  const code = (error as { code?: unknown }).code
  const isNoSegment = error instanceof NotASegmentError
  if (!isNoSegment && !(typeof code === 'string' && code.startsWith('SQLITE_'))) return error
  const transient = !isNoSegment && /^SQLITE_(BUSY|LOCKED|CANTOPEN|IOERR|NOMEM|PROTOCOL|INTERRUPT)/.test(String(code))
  const message = `log segment ${path} cannot be read: ${(error as Error).message}`
  return new PortError('event-log', transient ? 'unavailable' : 'corrupt', new Error(message, { cause: error }))
}
