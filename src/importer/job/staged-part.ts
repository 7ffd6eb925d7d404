// The interface between staging and sending: parts of one event day each, whose bytes never change after staging.
// Source: docs/wire/import.md §2.1, §2.2, §2.4.

import type { JsonObject } from '#core/json.ts'
import type { RawPosition } from '../read/read-record.ts'
import { allowNull, Type } from '../records/file-schema.ts'
import type { ImportedEvent, RecordNote, RejectReason, SkipReason } from '../records/imported-event.ts'

/** A part as recorded in the manifest. */
export interface StagedPart {
  /** `<event day>/<number>`, such as `2024-05-01/0`; records without a valid time are in `unknown-day/<number>`. */
  readonly id: string
  /** Path of its file in the job's folder. */
  readonly object: string
  readonly sha256: string
  readonly bytes: number
  /** Lines of the part, one record each. */
  readonly records: number
  /** Microseconds since 1970; null if no record has a time. */
  readonly firstUs: number | null
  readonly lastUs: number | null
}

export const stagedPartSchema = Type.Object({
  id: Type.String(),
  object: Type.String(),
  sha256: Type.String(),
  bytes: Type.Number(),
  records: Type.Number(),
  firstUs: allowNull(Type.Number()),
  lastUs: allowNull(Type.Number()),
})

/** What one line of a part was converted to. */
export interface StagedOutcome {
  /** Line of the part, from 1. */
  readonly line: number
  /** Offset of the byte after the line, in the decompressed part. */
  readonly byteEnd: number
  readonly raw: RawPosition
  /** The record's number in its file, from 1; absent for a generated event. */
  readonly ordinal?: number
  /** The record's text in the raw file, for rejects; only its beginning if it is very long and not JSON. */
  readonly text: string
  /** SHA-256, in hex, of the record's bytes in the raw file. */
  readonly sourceSha256: () => string
  /** How many bytes of the file were unreadable as a record, if any. */
  readonly unreadableBytes?: number | null
  /** The cells of a CSV row; absent for other formats. */
  readonly row?: {
    readonly columns: readonly string[]
    /** By column name, without empty cells; null if the number of cells does not match the columns. */
    readonly cells: JsonObject | null
  }
  readonly result:
    | {
        readonly kind: 'events'
        readonly events: readonly ImportedEvent[]
        readonly notes: readonly RecordNote[]
        /** Names of fields that did not make it into any event. */
        readonly dropped: readonly string[]
      }
    | {
        readonly kind: 'rejected'
        readonly reason: RejectReason
        readonly field: string | null
        readonly detail?: string
      }
    | { readonly kind: 'skipped'; readonly reason: SkipReason }
    /** A repeat of an identical record that has no id. */
    | { readonly kind: 'collapsed' }
}

/** Reads the parts of a staged and scanned job. Reading a part is deterministic. */
export interface StagedJob {
  /** In sending order: oldest event day first. */
  readonly parts: readonly StagedPart[]
  /** Events made from several records: groups first, then links, each by time and uuid. */
  generatedEvents(from?: {
    readonly afterIndex: number
  }): Iterable<{ readonly index: number; readonly event: ImportedEvent }>
  readonly generatedCount: number
  /** Blank lines of the files: counted as records read, but in no part. */
  readonly blankLines?: number
  /** @param afterLine how many lines to skip when resuming. @throws if the part's bytes changed. */
  readPart(part: StagedPart, afterLine?: number): AsyncIterable<StagedOutcome>
}
