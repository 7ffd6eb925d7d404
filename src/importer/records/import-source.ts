// What an adapter of a source gives: a converter of its records. Adding a source is one file with one of these and a row
// in `sources/sources.ts`.

import type { JsonObject } from '#core/json.ts'
import type { Conversion } from './imported-event.ts'
import type { TimeWindow } from './time-window.ts'
import type { UnseenNames } from './unseen-names.ts'

/** One parsed record. */
export interface SourceRecord {
  /** With number literals kept, so that ids of 64 bits keep every digit. */
  readonly value: JsonObject
  /** Name of the table or file that the record comes from, without folder and extension; null when unknown. */
  readonly table: string | null
  /** Its number among those of its part, from 1; tells identical records apart with `keep_identical`. */
  readonly ordinal: number
}

/** A fact that later records need, such as the identity of a Heap user: kept before any record is converted. */
export interface SourceFact {
  readonly kind: string
  readonly key: string
  readonly value: string
}

/** The clock that it has is the only one. */
export interface SourceContext extends TimeWindow {
  /** A fact that `factsOf` gave for any record of the job, or the configuration. */
  readonly findFact: (kind: string, key: string) => string | null
  /** Where somebody wants to know which names of the configuration no record has. */
  readonly unseenNames?: UnseenNames | undefined
}

export interface RecordConverter {
  /** @throws RecordReject */
  convert(record: SourceRecord): Conversion
  /** The facts that this record holds for others. Absent where no record needs another. */
  factsOf?(record: SourceRecord): readonly SourceFact[]
  /**
   * When a record happened that says nothing without the facts of others, which are not known yet when records are sorted
   * into days. Absent where there are no such records.
   * @returns null for all other records.
   * @throws RecordReject
   */
  timeOf?(record: SourceRecord): number | null
}

export interface ImportSource {
  readonly name: string
  /** A line for `--help`. */
  readonly summary: string
  /**
   * @param config keys as in docs/wire/import.md, such as `source_timezone`; unknown keys are an error.
   * @throws ImportConfigError
   */
  prepare(config: JsonObject, context: SourceContext): RecordConverter
}

/** The configuration cannot be used; the message names the key and the remedy. */
export class ImportConfigError extends Error {}
