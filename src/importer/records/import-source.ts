// The interface of an import source, which converts the records of one product to events. To add a source, declare it with
// `defineSource` in a file and add a row to `sources/sources.ts`.

import type { JsonObject } from '#core/json.ts'
import type { Conversion } from './imported-event.ts'
import type { TimeWindow } from './source-time.ts'
import type { UnseenNames } from './unseen-names.ts'

/** One parsed record. */
export interface SourceRecord {
  /** The parsed record; inexact numbers are kept as literals, so that 64-bit ids lose no digit. */
  readonly value: JsonObject
  /** Name of the record's table or file, without folder and extension; null when unknown. */
  readonly table: string | null
  /** The record's number within its part of the job, from 1. Distinguishes identical records if `keep_identical` is set. */
  readonly ordinal: number
}

/**
 * A fact that other records need, such as the identity of a Heap user. All facts are collected before any record is
 * converted.
 */
export interface SourceFact {
  readonly kind: string
  readonly key: string
  readonly value: string
}

/** What a converter knows of its job. A converter reads the current time only from `nowMs`, never from a clock. */
export interface SourceContext extends TimeWindow {
  /** Finds a fact that `factsOf` returned for any record of the job, or that the configuration contains. */
  readonly findFact: (kind: string, key: string) => string | null
  /** Set when the caller wants to know which configured names occur in no record. */
  readonly unseenNames?: UnseenNames | undefined
}

export interface RecordConverter {
  /** @throws RecordReject */
  convert(record: SourceRecord): Conversion
  /** The facts in this record that other records need. Absent if the source has none. */
  factsOf?(record: SourceRecord): readonly SourceFact[]
  /**
   * The time by which records are sorted, in microseconds since 1970. For a record that converts to events, links or
   * groups, it is their earliest time. Depends only on the record and the configuration, and is much cheaper than
   * `convert`. A record that `convert` skips, or rejects for another reason, has a time too.
   * @returns null for a record of a kind that has no time.
   * @throws RecordReject for a time that is missing, unreadable or out of range.
   */
  timeOf(record: SourceRecord): number | null
}

export interface ImportSource {
  readonly name: string
  /** One line about the source, for `--help`. */
  readonly summary: string
  /**
   * @param config keys as in docs/wire/import.md, such as `source_timezone`; unknown keys are an error.
   * @throws ImportConfigError
   */
  prepare(config: JsonObject, context: SourceContext): RecordConverter
}

/** The configuration cannot be used; the message names the key and the remedy. */
export class ImportConfigError extends Error {}
