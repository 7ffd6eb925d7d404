// Copies the log into a backup: its segments, held open while state and event store are copied, and the files next to them.

import { existsSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { basename, join } from 'node:path'
import { copyDatabase, type OpenDatabase, openDatabaseForCopying } from '#adapters/backup-file/copy-database.ts'
import type { BackupWriter } from '#adapters/backup-file/write-backup.ts'
import { embeddedStreamNames } from '#adapters/sqlite-log/embedded-streams.ts'
import { listSegments, type SegmentName } from '#adapters/sqlite-log/segment-file.ts'
import { buildMarkPath } from '#adapters/sqlite-log/stream-mark.ts'
import type { Config } from '#config.ts'
import type { LogStream } from '#core/events/log-stream.ts'
import { getLogFolder } from './log.ts'

interface HeldSegment {
  readonly segment: SegmentName
  /** Null for a damaged segment, which is copied as it is. */
  readonly database: OpenDatabase | null
  readonly reason: string | null
}

export function holdLogSegments(config: Config): HeldSegments {
  return new HeldSegments(getLogFolder(config))
}

/**
 * Segments of the log, opened before the state is copied, so that retention cannot delete or pack them during the copy.
 */
export class HeldSegments {
  readonly warnings: string[] = []
  readonly #folder: string
  readonly #list: typeof listSegments
  readonly #held = new Map<string, HeldSegment[]>()
  /** The content of the mark file (with the stream's end) of each stream that has one. */
  readonly #marks = new Map<LogStream, Buffer>()

  /** @param list for tests: lists the segments in a stream's folder. */
  constructor(folder: string, list = listSegments) {
    this.#folder = folder
    this.#list = list
    this.holdNewer()
  }

  holdNewer(): void {
    for (const stream of embeddedStreamNames) {
      // The mark of the stream's end is read before the segments are listed, so that the held segments reach that end.
      const mark = buildMarkPath(join(this.#folder, stream))
      if (existsSync(mark)) this.#marks.set(stream, readFileSync(mark))
      const known = this.#held.get(stream) ?? []
      this.#held.set(stream, [...known, ...this.#holdAfter(stream, known.at(-1)?.segment.firstOffset ?? -1)])
    }
  }

  #holdAfter(stream: LogStream, offset: number): HeldSegment[] {
    const added: HeldSegment[] = []
    for (const segment of this.#list(join(this.#folder, stream)).filter(({ firstOffset }) => firstOffset > offset)) {
      const held = this.#hold(segment)
      if (held !== null) added.push(held)
      else {
        // The segment was packed, set aside or deleted since it was listed. It may have a new name, so list again.
        for (const { database } of added) database?.close()
        return this.#holdAfter(stream, offset)
      }
    }
    for (const { segment, reason } of added)
      if (reason !== null) this.warnings.push(`${segment.path} is damaged (${reason}) and was copied unchanged.`)
    return added
  }

  /** Releases each stream's segments before the segment that contains the stream's position. */
  releaseBefore(positions: ReadonlyMap<string, number>): void {
    for (const [stream, held] of this.#held) {
      const position = positions.get(stream) ?? 0
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

  /**
   * Copies the segments in their current state, after the files next to them, since those files must not describe more than
   * the segments contain.
   */
  async addTo(writer: BackupWriter, draft: string): Promise<void> {
    for (const [stream, mark] of this.#marks)
      await writer.addContent(join('log', basename(buildMarkPath(stream))), mark)
    const marks = embeddedStreamNames.map(buildMarkPath)
    for (const place of ['', ...embeddedStreamNames])
      for (const name of listFiles(join(this.#folder, place)).filter(isOtherFile))
        if (!marks.includes(join(place, name)))
          await writer.addFile(join('log', place, name), join(this.#folder, place, name))
    for (const [stream, held] of this.#held)
      for (const { segment, database } of held) {
        const name = join('log', stream, basename(segment.path))
        if (database === null) {
          // A damaged segment's WAL is copied too, since the WAL may hold records that the segment lacks.
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

  /** Opens a segment. @returns null if its file is gone. */
  #hold(segment: SegmentName): HeldSegment | null {
    if (segment.form === 'damaged') return { segment, database: null, reason: 'it was set aside' }
    try {
      return { segment, database: openDatabaseForCopying(segment.path), reason: null }
    } catch (cause) {
      if (!String((cause as { code?: string }).code).startsWith('SQLITE_')) throw cause
      return existsSync(segment.path) ? { segment, database: null, reason: (cause as Error).message } : null
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

function listFiles(folder: string): string[] {
  if (!existsSync(folder)) return []
  return readdirSync(folder, { withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => entry.name)
}

function isOtherFile(name: string): boolean {
  return !/\.db(-wal|-shm|-journal)?$|\.draft/.test(name)
}
