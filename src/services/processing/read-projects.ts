// Reads the records of some projects from a stream. Other records are skipped by their header, neither decoded nor checked. One
// call reads a bounded amount, including skipped records.

import type { RecordAt, StreamInfo } from '#core/events/log-stream.ts'
import { RecordCursor } from '#core/log/record-decoder.ts'
import type { EventLogReader, LogChunk, LogRun } from '#ports/log/event-log.ts'

export interface ProjectRead {
  readonly fromOffset: number
  /** Reading ends before this offset. */
  readonly toOffset: number
  /**
   * Whether to take a record, by the project in its header. In a damaged record that may be any project, but it is the same
   * one for every reader.
   */
  readonly takes: (projectId: number, offset: number) => boolean
  readonly recordCountMax: number
  /** Limits how much is read, whether taken or skipped. */
  readonly bytesMax: number
}

/**
 * @returns a chunk as from `EventLogReader.read`, but without the skipped records; it may be empty.
 * @throws PortError
 */
export async function readProjects(
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
