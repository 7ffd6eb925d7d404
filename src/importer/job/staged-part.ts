// The interface between the scan and sending: parts of one event day each, whose bytes never change after the scan.
// Source: docs/wire/import.md §2.1, §2.2, §2.4.

import type { JsonObject } from '#core/json.ts'
import type { RawPosition } from '../read/read-record.ts'
import { allowNull, type Static, Type } from '../records/file-schema.ts'
import type { ImportedEvent, RecordNote, RecordRejectReason, SkipReason } from '../records/imported-event.ts'

export const stagedPartSchema = Type.Object({
  /**
   * `<event day>/<number>`, such as `2024-05-01/0`; `unknown-day/<number>` for records without a valid time, and
   * `groups/<number>` and `links/<number>` for generated events.
   */
  id: Type.String(),
  /** Hash of the compressed bytes; `bytes` is their number. */
  sha256: Type.String(),
  bytes: Type.Number(),
  /** The number of lines in the part, each with one record or generated event. */
  records: Type.Number(),
  /** Microseconds since 1970; null if no record has a time. */
  firstUs: allowNull(Type.Number()),
  lastUs: allowNull(Type.Number()),
})
/** A part as recorded in the manifest. */
export type StagedPart = Readonly<Static<typeof stagedPartSchema>>

/**
 * Whether the part has generated events, which are made from several records and sent first. Source: docs/wire/import.md
 * §2.5.
 */
export function isGeneratedPart({ id }: { readonly id: string }): boolean {
  return id.startsWith('groups/') || id.startsWith('links/')
}

export function sumStagedParts(parts: readonly StagedPart[]): { readonly records: number; readonly bytes: number } {
  return {
    records: parts.reduce((sum, { records }) => sum + records, 0),
    bytes: parts.reduce((sum, { bytes }) => sum + bytes, 0),
  }
}

/** What a record was converted to. */
export type StagedResult =
  | {
      readonly kind: 'events'
      readonly events: readonly ImportedEvent[]
      readonly notes: readonly RecordNote[]
      /** Names of the record's fields that are in none of its events. */
      readonly dropped: readonly string[]
    }
  | {
      readonly kind: 'rejected'
      readonly reason: RecordRejectReason
      readonly field: string | null
      readonly detail?: string
    }
  | { readonly kind: 'skipped'; readonly reason: SkipReason }
  /** A repetition of an identical record that has no id. */
  | { readonly kind: 'collapsed' }

export interface RecordSource {
  /** The record's text; only its beginning if the record is very long and not JSON. */
  readonly text: string
  /** The hash of the record's bytes in the raw file, in hex. */
  readonly sha256: string
  /** How many bytes of the file were unreadable as a record; null for a readable record. */
  readonly unreadableBytes: number | null
  /** The cells of a CSV row; absent for other formats. */
  readonly row?: {
    readonly columns: readonly string[]
    /** The cells by column name, without empty cells; null if the row has more or fewer cells than there are columns. */
    readonly cells: JsonObject | null
  }
}

/** What one line of a part was converted to. */
export interface StagedOutcome {
  /** Line of the part, from 1. */
  readonly line: number
  readonly raw: RawPosition
  /** The record's number in its file, from 1; absent for a generated event. */
  readonly ordinal?: number
  /** Approximate size of the record in the raw file. */
  readonly textBytes: number
  /** The record in the raw file, for rejects and samples. */
  readonly source: () => RecordSource
  readonly result: StagedResult
}

/** Reads the parts of a staged and scanned job. Reading a part is deterministic. */
export interface StagedJob {
  /** In sending order: groups, links, then records with the oldest event day first. */
  readonly parts: readonly StagedPart[]
  /** Blank lines of the files: counted as records read, but in no part. */
  readonly blankLines?: number
  /** @param afterLine how many lines to skip when resuming. @throws if the part's bytes changed. */
  readPart(part: StagedPart, afterLine?: number): AsyncIterable<StagedOutcome>
}
