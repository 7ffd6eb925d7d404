// An open segment of a lane, as the reader asks it: frames, times and its end.

import type Database from 'better-sqlite3'
import { PortError } from '#ports/port-error.ts'
import { type FrameRow, openPackedSegment, unpacked } from './pack-segment.ts'
import { NotASegmentError, openSegment, type SegmentName } from './segment-file.ts'

export type { FrameRow }

export class ReadableSegment {
  readonly #name: SegmentName
  readonly #db: Database.Database
  readonly #frames: Database.Statement<[number]>
  readonly #frameTime: Database.Statement<[number]>
  readonly #end: Database.Statement<[]>
  readonly #newestTime: Database.Statement<[]>

  constructor(name: SegmentName) {
    this.#name = name
    this.#db = name.form === 'packed' ? openPackedSegment(name.path) : openSegment(name.path, 'read')
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
  *framesFrom(offset: number): IterableIterator<FrameRow> {
    const frames = this.#frames.iterate(offset) as IterableIterator<FrameRow>
    if (this.#name.form === 'plain') yield* frames
    else for (const frame of frames) yield unpacked(frame)
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

/** Anything but SQLite's own errors is a mistake of ours and stays what it is. */
export function readError(error: unknown, path: string): unknown {
  const code = (error as { code?: unknown }).code
  const isNoSegment = error instanceof NotASegmentError
  if (!isNoSegment && !(typeof code === 'string' && code.startsWith('SQLITE_'))) return error
  const transient = !isNoSegment && /^SQLITE_(BUSY|LOCKED|CANTOPEN|IOERR|NOMEM|PROTOCOL|INTERRUPT)/.test(String(code))
  const message = `log segment ${path} cannot be read: ${(error as Error).message}`
  return new PortError('event-log', transient ? 'unavailable' : 'corrupt', new Error(message, { cause: error }))
}
