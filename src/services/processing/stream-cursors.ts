// Tracks the worker's place in each stream, and which projects' records it takes there. A live stream has two cursors: the
// first skips deferred projects, the second takes only deferred projects and never passes the first. Each cursor has a
// separate position, so each commits as if it were a separate stream. A project moves to the other cursor only at an offset
// on which both cursors agree.

import { formatDeferredCursorName, type LogStream, type RecordAt, type StreamInfo } from '#core/events/log-stream.ts'
import { RecordCursor } from '#core/log/record-decoder.ts'
import type { EventLogReader, LogChunk, LogReadOptions, LogRun, MissingRecords } from '#ports/log/event-log.ts'
import type { ChunkStore } from '#ports/state/chunk-store.ts'
import type { DeferredProjects } from '#ports/state/worker-state.ts'

export interface StreamCursor extends StreamInfo {
  /** The name under which the cursor's position is stored. */
  readonly name: string
  /** Whether the cursor takes the stream's deferred projects; otherwise it takes all other projects. */
  readonly takesDeferred: boolean
}

export interface StreamCursorsOptions {
  readonly log: Pick<EventLogReader, 'listStreams' | 'read' | 'readRuns' | 'readStreamStatus' | 'listLosses'>
  readonly state: Pick<ChunkStore, 'claimPosition'>
  /** Null if no project is ever deferred; each stream then has one cursor. */
  readonly deferred: DeferredProjects | null
  readonly ownerId: string
}

/** Methods that return a promise throw PortError; it is safe to call them again after that. */
export class StreamCursors {
  readonly #options: StreamCursorsOptions
  readonly #positions = new Map<string, number>()
  /** By stream: the deferred projects, each with the offset from which it is deferred. */
  readonly #deferred = new Map<LogStream, ReadonlyMap<number, number>>()
  #cursors: readonly StreamCursor[] = []

  constructor(options: StreamCursorsOptions) {
    this.#options = options
  }

  /** Cursors of live streams first. Empty before `list`. */
  get all(): readonly StreamCursor[] {
    return this.#cursors
  }

  /** Creates the cursors for the log's streams. */
  async list(): Promise<void> {
    const streams = await this.#options.log.listStreams()
    this.#cursors = streams.flatMap((info): StreamCursor[] => {
      const first = { ...info, name: info.stream, takesDeferred: false }
      if (info.traffic === 'import' || this.#options.deferred === null) return [first]
      return [first, { ...info, name: formatDeferredCursorName(info.stream), takesDeferred: true }]
    })
  }

  /** Takes over a cursor. After claiming both cursors of a stream, the caller must call `loadDeferral`. */
  async claim({ name }: StreamCursor): Promise<void> {
    const { offset } = await this.#options.state.claimPosition(name, this.#options.ownerId)
    this.#positions.set(name, offset)
  }

  async loadDeferral(stream: LogStream): Promise<void> {
    const deferral = (await this.#options.deferred?.findDeferral(stream)) ?? null
    if (deferral === null) this.#deferred.delete(stream)
    else {
      this.#deferred.set(stream, new Map(deferral.projects.map(each => [each.projectId, each.fromOffset])))
      this.#positions.set(formatDeferredCursorName(stream), deferral.offset)
    }
  }

  /** Undefined before the cursor is claimed. */
  positionOf({ name }: StreamCursor): number | undefined {
    return this.#positions.get(name)
  }

  /** Sets the cursor's position in memory. Call it after a commit. */
  move({ name }: StreamCursor, offset: number): void {
    this.#positions.set(name, offset)
  }

  deferredProjects(stream: LogStream): readonly number[] {
    return [...(this.#deferred.get(stream)?.keys() ?? [])]
  }

  /** Every record of the stream before this offset is processed; undefined before the cursors are claimed. */
  doneOffset(stream: LogStream): number | undefined {
    return this.#positions.get(this.#deferred.has(stream) ? formatDeferredCursorName(stream) : stream)
  }

  /**
   * Like `EventLogReader.read`, but only for the cursor's own records. The chunk has the name of the stream, not of the
   * cursor.
   */
  async read(cursor: StreamCursor, options: LogReadOptions): Promise<LogChunk> {
    const { log } = this.#options
    const { stream } = cursor
    const fromOffset = this.#positions.get(cursor.name)!
    const projects = this.#deferred.get(stream)
    if (cursor.takesDeferred) return this.#readDeferred(cursor, fromOffset, options)
    if (projects === undefined) return await log.read(stream, fromOffset, options)
    const takesProject = (projectId: number) => !projects.has(projectId)
    const wanted = { ...options, fromOffset, toOffset: Number.POSITIVE_INFINITY, takes: takesProject }
    const chunk = await readProjectRecords(log, cursor, wanted)
    if (chunk.nextOffset > fromOffset || (options.maxWaitMs ?? 0) <= 0) return chunk
    await log.read(stream, fromOffset, { ...options, recordCountMax: 1, bytesMax: 1 })
    return await readProjectRecords(log, cursor, wanted)
  }

  async #readDeferred(cursor: StreamCursor, fromOffset: number, options: LogReadOptions): Promise<LogChunk> {
    const { log } = this.#options
    const { stream, traffic } = cursor
    const toOffset = this.#positions.get(stream)!
    const projects = this.#deferred.get(stream)
    const nothing = { stream, traffic, records: [], nextOffset: fromOffset, missing: null }
    if (projects === undefined || fromOffset >= toOffset) return nothing
    const takesProject = (projectId: number, offset: number) =>
      offset >= (projects.get(projectId) ?? Number.POSITIVE_INFINITY)
    const chunk = await readProjectRecords(log, cursor, { ...options, fromOffset, toOffset, takes: takesProject })
    if (chunk.nextOffset > fromOffset) return { ...chunk, missing: await this.#unlessKnown(stream, chunk.missing) }
    // An empty log begins at the first cursor's position: the records for this cursor are gone, so it moves there.
    const { appendedAtMs } = await log.readStreamStatus(stream, fromOffset)
    return appendedAtMs === null ? { ...nothing, nextOffset: toOffset } : nothing
  }

  /** @returns `missing`; null if these records were already reported as missing when the first cursor passed them. */
  async #unlessKnown(stream: LogStream, missing: MissingRecords | null): Promise<MissingRecords | null> {
    if (missing === null) return null
    const isKnown = (await this.#options.log.listLosses()).some(
      loss => loss.stream === stream && loss.fromOffset <= missing.fromOffset && missing.toOffset <= loss.toOffset,
    )
    return isKnown ? null : missing
  }

  /**
   * Makes the second cursor take the project, from the first cursor's position on.
   * @returns false if this worker no longer owns the stream.
   */
  async defer(stream: LogStream, projectId: number): Promise<boolean> {
    const { deferred, ownerId } = this.#options
    if (!(await deferred!.deferProject(stream, ownerId, projectId, this.#positions.get(stream)!))) return false
    await this.loadDeferral(stream)
    return true
  }

  /**
   * Once the second cursor has reached the first cursor's position, the first takes all projects again. Both must be past
   * the offset at which the last project was deferred; otherwise that project would never have been processed separately.
   */
  async releaseIfCaughtUp(stream: LogStream): Promise<boolean> {
    const projects = this.#deferred.get(stream)
    const offset = this.#positions.get(stream)!
    if (projects === undefined || this.#positions.get(formatDeferredCursorName(stream)) !== offset) return false
    for (const fromOffset of projects.values()) if (fromOffset >= offset) return false
    if (!(await this.#options.deferred!.releaseProjects(stream, this.#options.ownerId, offset))) return false
    this.#deferred.delete(stream)
    return true
  }
}

interface ProjectRead {
  readonly fromOffset: number
  /** Reading ends before this offset. */
  readonly toOffset: number
  /**
   * Whether to take a record, by the project in its header. In a damaged record the project may be wrong, but it is the
   * same for every reader.
   */
  readonly takes: (projectId: number, offset: number) => boolean
  readonly recordCountMax: number
  /** Limits how many bytes are read, including skipped records. */
  readonly bytesMax: number
}

/**
 * Reads the records of some projects. Other records are skipped by their header, neither decoded nor checked. One call
 * reads a bounded amount, including skipped records.
 * @returns a chunk as from `EventLogReader.read`, but without the skipped records; it may be empty.
 */
async function readProjectRecords(
  log: Pick<EventLogReader, 'readRuns'>,
  { stream, traffic }: StreamInfo,
  wanted: ProjectRead,
): Promise<LogChunk> {
  const { fromOffset, toOffset, bytesMax } = wanted
  const { runs, nextOffset, missing } = await log.readRuns(stream, fromOffset, bytesMax)
  const records: RecordAt[] = []
  let end: number | null = null
  for (const run of runs) {
    end = takeRecords(run, wanted, records)
    if (end !== null) break
  }
  return { stream, traffic, records, nextOffset: Math.min(end ?? nextOffset, toOffset), missing }
}

/** @returns the offset where reading ends within the run; null when it continues after the run. */
function takeRecords(
  { offsets, bytes, appendedAtMs }: LogRun,
  wanted: ProjectRead,
  records: RecordAt[],
): number | null {
  const cursor = new RecordCursor(bytes, offsets.length)
  for (const offset of offsets) {
    if (offset >= wanted.toOffset) return offset
    if (offset < wanted.fromOffset || !wanted.takes(cursor.nextProjectId, offset)) cursor.skip(1)
    else {
      if (records.length === wanted.recordCountMax) return offset
      const record = cursor.next()
      records.push({ offset, record: record.kind === 'damaged' ? { ...record, appendedAtMs } : record })
    }
  }
  return null
}
