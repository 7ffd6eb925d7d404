// An open segment for the reader: its frames, times and end. A damaged segment returns its salvaged frames.

import type Database from 'better-sqlite3'
import { PortError } from '#ports/port-error.ts'
import { type FrameRow, openPackedSegment, type ReadableSegment, unpackFrame } from './compressed-segment.ts'
import { SalvagedSegment } from './salvage-segment.ts'
import { DamageError, frameRecordsMax, NotASegmentError, openSegment, type SegmentName } from './segment-file.ts'

/** @param mode as in `openSegment`. @throws SqliteError, NotASegmentError, system errors. */
export function openReadableSegment(name: SegmentName, mode: 'read' | 'look'): ReadableSegment {
  return name.form === 'damaged' ? new SalvagedSegment(name) : new SoundSegment(name, mode)
}

class SoundSegment implements ReadableSegment {
  readonly #name: SegmentName
  readonly #db: Database.Database
  readonly #frames: Database.Statement<[number]>
  readonly #frameTime: Database.Statement<[number]>
  readonly #end: Database.Statement<[]>
  readonly #newestTime: Database.Statement<[]>

  constructor(name: SegmentName, mode: 'read' | 'look') {
    this.#name = name
    this.#db = name.form === 'packed' ? openPackedSegment(name.path) : openSegment(name.path, mode)
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

  /** @throws DamageError for rows that SQLite returns but that no writer can have written. */
  *framesFrom(offset: number): IterableIterator<FrameRow> {
    let expected: number | null = null
    for (const frame of this.#frames.iterate(offset) as IterableIterator<FrameRow>) {
      expected ??= Math.min(frame.first_offset, Math.max(offset, this.#name.firstOffset))
      const { first_offset: firstOffset, record_count: recordCount, body } = frame
      const isCount = Number.isInteger(recordCount) && recordCount >= 1 && recordCount <= frameRecordsMax
      if (firstOffset !== expected || !isCount || !Buffer.isBuffer(body))
        throw new DamageError(`frame ${firstOffset} is damaged`)
      expected = firstOffset + recordCount
      yield this.#name.form === 'packed' ? unpackFrame(frame) : frame
    }
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

/** Translates only SQLite's own errors: any other error is a bug and stays unchanged. */
export function toSegmentReadError(error: unknown, path: string): unknown {
  const code = (error as { code?: unknown }).code
  const isNoSegment = error instanceof NotASegmentError || error instanceof DamageError
  if (!isNoSegment && !(typeof code === 'string' && code.startsWith('SQLITE_'))) return error
  const transient =
    !isNoSegment && /^SQLITE_(BUSY|LOCKED|CANTOPEN|FULL|IOERR|NOMEM|PROTOCOL|INTERRUPT)/.test(String(code))
  const message = `cannot read log segment ${path}: ${(error as Error).message}`
  return new PortError('event-log', transient ? 'unavailable' : 'corrupt', new Error(message, { cause: error }))
}
