// What each source adds to the happenings: its shape.

import type { JsonObject } from '#core/json.ts'
import type { ExportFile } from './export-files.ts'
import type { Happening } from './happenings.ts'

export interface SyntheticSource {
  /** As `--source` takes it. */
  readonly name: string
  readonly config?: JsonObject
  readonly mapping?: JsonObject
  /** One part of the export: a file, or the files of several tables. */
  open(part: PartOptions): ExportFile<Happening>
}

export interface PartOptions {
  /** The folder that the export is written to. */
  readonly folder: string
  /** From 0. Where a source has several shapes, its parts have them in turn. */
  readonly part: number
  readonly seed: number
}

/** A part of one file with one row for each happening. */
export function rowsOf<Row>(file: ExportFile<Row>, rowOf: (happening: Happening) => Row): ExportFile<Happening> {
  return { add: happening => file.add(rowOf(happening)), end: () => file.end() }
}

/** @returns a line of JSON, cut off where the record is broken. Whole numbers of 64 bits keep their digits. */
export function jsonLine({ fault }: Happening, record: object): string {
  const text = JSON.stringify(record, (_, value) => (typeof value === 'bigint' ? JSON.rawJSON(String(value)) : value))
  return fault === 'broken' ? text.slice(0, text.length / 2) : text
}
