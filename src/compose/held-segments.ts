// The log in a backup: its segments, held open while the state and the event store are copied, and the files about them.

import { existsSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { basename, join } from 'node:path'
import { copyDatabase, type HeldDatabase, holdDatabase } from '#adapters/backup-file/copy-database.ts'
import type { BackupWriter } from '#adapters/backup-file/write-backup.ts'
import { markPath } from '#adapters/sqlite-log/lane-mark.ts'
import { listSegments, type SegmentName } from '#adapters/sqlite-log/segment-file.ts'
import { type LogLane, logLanes } from '#core/events/captured-event.ts'

interface HeldSegment {
  readonly segment: SegmentName
  /** Null for a damaged segment, which is copied as it is. */
  readonly database: HeldDatabase | null
  readonly why: string | null
}

/**
 * Segments of the log, open from before the state is copied: what retention deletes or packs meanwhile is still there.
 */
export class HeldSegments {
  readonly warnings: string[] = []
  readonly #folder: string
  readonly #list: typeof listSegments
  readonly #held = new Map<string, HeldSegment[]>()
  /** The mark of each lane that has one. */
  readonly #marks = new Map<LogLane, Buffer>()

  /** @param list for tests: what stands in a lane's folder. */
  constructor(folder: string, list = listSegments) {
    this.#folder = folder
    this.#list = list
    this.holdNewer()
  }

  holdNewer(): void {
    for (const lane of logLanes) {
      // The mark is read before the segments: what it promises must be in those that are held.
      const mark = markPath(join(this.#folder, lane))
      if (existsSync(mark)) this.#marks.set(lane, readFileSync(mark))
      const known = this.#held.get(lane) ?? []
      this.#held.set(lane, [...known, ...this.#holdBehind(lane, known.at(-1)?.segment.firstOffset ?? -1)])
    }
  }

  #holdBehind(lane: LogLane, offset: number): HeldSegment[] {
    const added: HeldSegment[] = []
    for (const segment of this.#list(join(this.#folder, lane)).filter(({ firstOffset }) => firstOffset > offset)) {
      const held = this.#hold(segment)
      if (held !== null) added.push(held)
      else {
        // Packed, set aside or deleted since it was listed: it may stand in the folder under another name.
        for (const { database } of added) database?.close()
        return this.#holdBehind(lane, offset)
      }
    }
    for (const { segment, why } of added)
      if (why !== null) this.warnings.push(`${segment.path} is damaged (${why}) and was copied as it is.`)
    return added
  }

  /** Keeps the segment that a position is in, and what comes after it. */
  forgetBehind(positions: ReadonlyMap<string, number>): void {
    for (const [lane, held] of this.#held) {
      const position = positions.get(lane) ?? 0
      const first = Math.max(
        held.findLastIndex(({ segment }) => segment.firstOffset <= position),
        0,
      )
      for (const { database } of held.splice(0, first)) database?.close()
    }
  }

  get bytes(): number {
    return this.#sizes().reduce((sum, size) => sum + size, 0)
  }

  get largestBytes(): number {
    return Math.max(0, ...this.#sizes())
  }

  /** Copies the segments as they are by now: the files about them may know of less than they hold, never of more. */
  async addTo(writer: BackupWriter, draft: string): Promise<void> {
    for (const [lane, mark] of this.#marks) await writer.addContent(join('log', basename(markPath(lane))), mark)
    const marks = logLanes.map(markPath)
    for (const place of ['', ...logLanes])
      for (const name of filesIn(join(this.#folder, place)).filter(isBesideSegments))
        if (!marks.includes(join(place, name)))
          await writer.addFile(join('log', place, name), join(this.#folder, place, name))
    for (const [lane, held] of this.#held)
      for (const { segment, database } of held) {
        const name = join('log', lane, basename(segment.path))
        if (database === null) {
          // With its side file, which may hold what it lacks.
          for (const suffix of ['', '-wal'])
            if (existsSync(segment.path + suffix)) await writer.addFile(name + suffix, segment.path + suffix)
          continue
        }
        await copyDatabase(database, draft)
        await writer.addFile(name, draft)
        rmSync(draft)
      }
  }

  close(): void {
    for (const held of this.#held.values()) for (const { database } of held) database?.close()
  }

  /** Opens a segment. @returns null when its file is gone. */
  #hold(segment: SegmentName): HeldSegment | null {
    if (segment.form === 'damaged') return { segment, database: null, why: 'it was set aside' }
    try {
      return { segment, database: holdDatabase(segment.path), why: null }
    } catch (cause) {
      if (!String((cause as { code?: string }).code).startsWith('SQLITE_')) throw cause
      return existsSync(segment.path) ? { segment, database: null, why: (cause as Error).message } : null
    }
  }

  #sizes(): number[] {
    return [...this.#held.values()].flat().map(({ segment, database }) => {
      if (database === null) return statSync(segment.path, { throwIfNoEntry: false })?.size ?? 0
      return (
        Number(database.pragma('page_count', { simple: true })) * Number(database.pragma('page_size', { simple: true }))
      )
    })
  }
}

function filesIn(folder: string): string[] {
  if (!existsSync(folder)) return []
  return readdirSync(folder, { withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => entry.name)
}

function isBesideSegments(name: string): boolean {
  return !/\.db(-wal|-shm|-journal)?$|\.draft/.test(name)
}
