// `manifest.json`: the bytes that a job sends, fixed by their hashes. Source: docs/wire/import.md §2.2.

import type { CsvDelimiter } from '../read/csv-cells.ts'
import { isObject, type JobFolder } from './job-folder.ts'
import type { StagedPart } from './staged-part.ts'

export interface RawSource {
  readonly object: string
  readonly path: string
  readonly sha256: string
  readonly bytes: number
  /** When the file was last changed, epoch ms; the hash is taken again only where this or the size differs. */
  readonly changedMs: number
}

/** Where records stand: a file, or one inside an archive, and the table that it holds. */
export interface RawObject {
  readonly object: string
  readonly table: string | null
  /** The names in the header of CSV. */
  readonly columns?: readonly string[]
  /** What is between the cells of CSV, where that is no comma. */
  readonly delimiter?: CsvDelimiter
  /** Where it cannot be read any further: how many records came before, and why. */
  readonly damage?: { readonly records: number; readonly line: number; readonly why: string }
  /** Lines without a record: counted, since there may be any number of them, and not staged. */
  readonly blank?: { readonly count: number; readonly firstLine: number }
}

export interface Manifest {
  readonly v: 1
  readonly jobId: string
  readonly source: string
  readonly sourceTimezone: string | null
  readonly createdAt: string
  readonly toolVersion: string
  readonly mappingSha256: string
  readonly raw: readonly RawSource[]
  /** Lines of parts name them by their index. */
  readonly objects: readonly RawObject[]
  readonly parts: readonly StagedPart[]
  /** `records` are those staged. Distinct ids are counted by the scan, which alone knows facts of other records. */
  readonly totals: { readonly records: number; readonly bytes: number; readonly days: number }
  /** First and last UTC day of the times that could be read. */
  readonly sourceRange: { readonly first: string; readonly last: string } | null
}

export const manifestFile = 'manifest.json'

export function readManifest(folder: JobFolder): Manifest | null {
  const stored = folder.readJson<StoredObject>(manifestFile, ['raw', 'objects', 'parts', 'totals'], isWhole)
  return stored && (withKeys(stored, camelCase) as unknown as Manifest)
}

/** Parts and files are gone through by everything that reads a manifest. */
function isWhole({ raw, objects, parts, totals }: StoredObject): boolean {
  return [raw, objects, parts].every(list => Array.isArray(list) && list.every(isObject)) && isObject(totals)
}

/** Lines of the raw files that hold nothing. */
export function blankLinesOf({ objects }: Manifest): number {
  return objects.reduce((sum, { blank }) => sum + (blank?.count ?? 0), 0)
}

/** All that the raw files hold, as every figure of a job counts them. */
export function recordsRead(manifest: Manifest): number {
  return manifest.totals.records + blankLinesOf(manifest)
}

/** Keys in the file are written as in docs/wire/import.md §2.2. */
export function writeManifest(folder: JobFolder, manifest: Manifest): void {
  folder.writeJson(manifestFile, withKeys(manifest as unknown as StoredObject, snakeCase))
}

type Stored = string | number | null | readonly Stored[] | StoredObject
type StoredObject = { readonly [key: string]: Stored }

/** No key of a manifest is a text of somebody else. */
function withKeys(value: StoredObject, rename: (key: string) => string): StoredObject {
  return Object.fromEntries(Object.entries(value).map(([key, entry]) => [rename(key), within(entry, rename)]))
}

function within(value: Stored, rename: (key: string) => string): Stored {
  if (typeof value !== 'object' || value === null) return value
  return isList(value) ? value.map(entry => within(entry, rename)) : withKeys(value, rename)
}

function isList(value: readonly Stored[] | StoredObject): value is readonly Stored[] {
  return Array.isArray(value)
}

function snakeCase(key: string): string {
  return key.replace(/[A-Z]/g, letter => `_${letter.toLowerCase()}`)
}

function camelCase(key: string): string {
  // A digit follows no underscore: `mapping_sha256`.
  return key.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
}
