// What lies between staging and sending: parts of one event day each, whose bytes never change after staging.
// Source: docs/wire/import.md §2.1, §2.2, §2.4.

import type { JsonObject } from '#core/json.ts'
import type { RawPosition } from '../read/read-record.ts'
import { orNull, Type } from '../records/file-schema.ts'
import type { ImportedEvent, RecordNote, RejectReason, SkipReason } from '../records/imported-event.ts'

/** A part as the manifest names it. */
export interface StagedPart {
  /** `<event day>/<number>`, such as `2024-05-01/0`; records whose time cannot be read are in `unknown-day/<number>`. */
  readonly id: string
  /** Path of its file in the job's folder. */
  readonly object: string
  readonly sha256: string
  readonly bytes: number
  /** Lines of the part, one record each. */
  readonly records: number
  /** Microseconds since 1970; null where no record has a time. */
  readonly firstUs: number | null
  readonly lastUs: number | null
}

export const stagedPartSchema = Type.Object({
  id: Type.String(),
  object: Type.String(),
  sha256: Type.String(),
  bytes: Type.Number(),
  records: Type.Number(),
  firstUs: orNull(Type.Number()),
  lastUs: orNull(Type.Number()),
})

/** What became of one line of a part. */
export interface StagedOutcome {
  /** Line of the part, from 1. */
  readonly line: number
  /** Offset, in the part's unpacked bytes, of the byte after the line. */
  readonly byteEnd: number
  readonly raw: RawPosition
  /** Its number among the records of its file, from 1; absent for an event that no record holds. */
  readonly ordinal?: number
  /** The record's text as it stands in the raw file, for rejects; its beginning where it is no JSON and very long. */
  readonly text: string
  /** SHA-256, in hex, of the record's bytes in the raw file. */
  readonly sourceSha256: () => string
  /** How many bytes of the file cannot be read as a record, if they cannot. */
  readonly unreadableBytes?: number | null
  /** What a row of CSV holds; absent for records of other formats. */
  readonly row?: {
    readonly columns: readonly string[]
    /** By the names of columns, without the empty ones; null where the cells do not fit to the columns. */
    readonly cells: JsonObject | null
  }
  readonly result:
    | {
        readonly kind: 'events'
        readonly events: readonly ImportedEvent[]
        readonly notes: readonly RecordNote[]
        /** Names of fields that no event carries. */
        readonly dropped: readonly string[]
      }
    | {
        readonly kind: 'rejected'
        readonly reason: RejectReason
        readonly field: string | null
        readonly detail?: string
      }
    | { readonly kind: 'skipped'; readonly reason: SkipReason }
    /** An identical record without an id was read before. */
    | { readonly kind: 'collapsed' }
}

/** Reads the parts of a staged and scanned job. The same part gives the same outcomes, however often it is read. */
export interface StagedJob {
  /** In the order in which they are sent: oldest event day first. */
  readonly parts: readonly StagedPart[]
  /** Events that no record holds as such: groups first, then links, each by time and uuid. */
  generatedEvents(from?: {
    readonly afterIndex: number
  }): Iterable<{ readonly index: number; readonly event: ImportedEvent }>
  readonly generatedCount: number
  /** Lines of the files that hold nothing: records that were read, and are in no part. */
  readonly blankLines?: number
  /** @param afterLine lines of the part that are left out, as after a resume. @throws for a part whose bytes changed. */
  readPart(part: StagedPart, afterLine?: number): AsyncIterable<StagedOutcome>
}
