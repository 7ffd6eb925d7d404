// `manifest.json`: the bytes that a job sends, fixed by their hashes. Source: docs/wire/import.md §2.2.

import type { CsvDelimiter } from '#core/csv.ts'
import type { CsvHeader } from '../read/parse-record.ts'
import { allowNull, Type } from '../records/file-schema.ts'
import { type UnseenName, unseenNameSchema } from '../records/unseen-names.ts'
import type { JobFolder } from './job-folder.ts'
import { type StagedPart, stagedPartSchema } from './staged-part.ts'

export interface RawSource {
  readonly object: string
  readonly path: string
  readonly sha256: string
  readonly bytes: number
  /** When the file was last changed, epoch ms. The file is hashed again only if this or its size differs. */
  readonly changedMs: number
}

/** A file that holds records, possibly inside an archive, and the table that it is an export of. */
export interface RawObject extends Partial<CsvHeader> {
  readonly object: string
  readonly table: string | null
  /** Where the file becomes unreadable: how many records precede that point, and why. */
  readonly damage?: { readonly records: number; readonly line: number; readonly why: string }
  /** Lines without a record: only counted, not staged, since there may be any number of them. */
  readonly blank?: { readonly count: number; readonly firstLine: number }
}

export interface Manifest {
  readonly v: 2
  readonly jobId: string
  readonly source: string
  readonly sourceTimezone: string | null
  readonly createdAt: string
  readonly toolVersion: string
  readonly mappingSha256: string
  readonly raw: readonly RawSource[]
  /** Lines of parts refer to these by index. */
  readonly objects: readonly RawObject[]
  readonly parts: readonly StagedPart[]
  /** Without generated events. */
  readonly totals: { readonly records: number; readonly bytes: number; readonly days: number }
  /** The first and last of the times that could be read. */
  readonly sourceRange: { readonly first: string; readonly last: string } | null
  readonly scan: ScanStats
}

/** What the scan found in all records together. */
export interface ScanStats {
  /** How often a user other than the first was seen on a device. */
  readonly sharedDevices: number
  readonly devices: { readonly all: number; readonly shared: number }
  /** How often records have each note of a zone, for `checkZone`. */
  readonly zoneNotes: readonly (readonly [note: string, count: number])[]
  /** Names of the configuration that no record has. */
  readonly unseenNames: readonly UnseenName[]
}

const scanStatsSchema = Type.Object({
  sharedDevices: Type.Number(),
  devices: Type.Object({ all: Type.Number(), shared: Type.Number() }),
  zoneNotes: Type.Array(Type.Tuple([Type.String(), Type.Number()])),
  unseenNames: Type.Array(unseenNameSchema),
})

export const rawSourceSchema = Type.Object({
  object: Type.String(),
  path: Type.String(),
  sha256: Type.String(),
  bytes: Type.Number(),
  changedMs: Type.Number(),
})

export const rawObjectSchema = Type.Object({
  object: Type.String(),
  table: allowNull(Type.String()),
  columns: Type.Optional(Type.Array(Type.String())),
  delimiter: Type.Optional(Type.Unsafe<CsvDelimiter>(Type.String())),
  hasEscapes: Type.Optional(Type.Boolean()),
  damage: Type.Optional(Type.Object({ records: Type.Number(), line: Type.Number(), why: Type.String() })),
  blank: Type.Optional(Type.Object({ count: Type.Number(), firstLine: Type.Number() })),
})

const manifestSchema = Type.Object({
  v: Type.Literal(2),
  jobId: Type.String(),
  source: Type.String(),
  sourceTimezone: allowNull(Type.String()),
  createdAt: Type.String(),
  toolVersion: Type.String(),
  mappingSha256: Type.String(),
  raw: Type.Array(rawSourceSchema),
  objects: Type.Array(rawObjectSchema),
  parts: Type.Array(stagedPartSchema),
  totals: Type.Object({ records: Type.Number(), bytes: Type.Number(), days: Type.Number() }),
  sourceRange: allowNull(Type.Object({ first: Type.String(), last: Type.String() })),
  scan: scanStatsSchema,
})

export const manifestFile = 'manifest.json'

export function readManifest(folder: JobFolder): Manifest | null {
  return folder.readJson(manifestFile, manifestSchema, stored => renameOwnKeys(stored as StoredObject, toCamelCase))
}

/** How many lines of the raw files are blank. */
export function countBlankLines({ objects }: Pick<Manifest, 'objects'>): number {
  return objects.reduce((sum, { blank }) => sum + (blank?.count ?? 0), 0)
}

/** How many records the raw files hold, blank lines included: all figures of a job count them this way. */
export function countRecordsRead(manifest: Manifest): number {
  return manifest.totals.records + countBlankLines(manifest)
}

/** Keys in the file are spelled as in docs/wire/import.md §2.2. */
export function writeManifest(folder: JobFolder, manifest: Manifest): void {
  folder.writeJson(manifestFile, renameOwnKeys(manifest as unknown as StoredObject, toSnakeCase))
}

type Stored = string | number | boolean | null | readonly Stored[] | StoredObject
type StoredObject = { readonly [key: string]: Stored }

/** Safe to rename all keys: none in a manifest comes from an export. */
function renameOwnKeys(value: StoredObject, rename: (key: string) => string): StoredObject {
  return Object.fromEntries(Object.entries(value).map(([key, entry]) => [rename(key), renameKeys(entry, rename)]))
}

function renameKeys(value: Stored, rename: (key: string) => string): Stored {
  if (typeof value !== 'object' || value === null) return value
  return isList(value) ? value.map(entry => renameKeys(entry, rename)) : renameOwnKeys(value, rename)
}

function isList(value: readonly Stored[] | StoredObject): value is readonly Stored[] {
  return Array.isArray(value)
}

function toSnakeCase(key: string): string {
  return key.replace(/[A-Z]/g, letter => `_${letter.toLowerCase()}`)
}

function toCamelCase(key: string): string {
  // A digit follows no underscore: `mapping_sha256`.
  return key.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
}
