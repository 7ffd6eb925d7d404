// The shape that each source gives to the happenings.

import type { JsonObject } from '#core/json.ts'
import type { ExportFile } from './export-files.ts'
import type { Happening } from './happenings.ts'

export interface SyntheticSource {
  /** The value of `--source`. */
  readonly name: string
  readonly config?: JsonObject
  readonly mapping?: JsonObject
  /** One part of the export: a file, or the files of several tables. */
  open(part: PartOptions): ExportFile<Happening>
}

export interface PartOptions {
  /** The folder of the export. */
  readonly folder: string
  /** From 0. Sources with several shapes use them in rotation. */
  readonly part: number
  readonly seed: number
}

/** A part of one file with one row per happening. */
export function rowsOf<Row>(file: ExportFile<Row>, rowOf: (happening: Happening) => Row): ExportFile<Happening> {
  return { add: happening => file.add(rowOf(happening)), end: () => file.end() }
}

/** @returns a line of JSON, truncated if the record is broken. 64-bit integers keep their digits. */
export function jsonLine({ fault }: Happening, record: object): string {
  const text = JSON.stringify(record, (_, value) => (typeof value === 'bigint' ? JSON.rawJSON(String(value)) : value))
  return fault === 'broken' ? text.slice(0, text.length / 2) : text
}
