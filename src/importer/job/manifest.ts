// `manifest.json`: the bytes that a job sends, fixed by their hashes. Source: docs/wire/import.md §2.2.

import type { CsvDelimiter } from '#core/csv.ts'
import { allowNull, type DeepReadonly, type Static, Type } from '../records/file-schema.ts'
import { unseenNameSchema } from '../records/unseen-names.ts'
import type { JobFolder } from './job-folder.ts'
import { stagedPartSchema } from './staged-part.ts'

export const rawSourceSchema = Type.Object({
  object: Type.String(),
  path: Type.String(),
  sha256: Type.String(),
  bytes: Type.Number(),
  /** When the file was last changed, epoch ms. The file is hashed again only if this or its size differs. */
  changedMs: Type.Number(),
})
export type RawSource = DeepReadonly<Static<typeof rawSourceSchema>>

export const rawObjectSchema = Type.Object({
  object: Type.String(),
  table: allowNull(Type.String()),
  /** The next three fields are as in `CsvHeader`. */
  columns: Type.Optional(Type.Array(Type.String())),
  delimiter: Type.Optional(Type.Unsafe<CsvDelimiter>(Type.String())),
  hasEscapes: Type.Optional(Type.Boolean()),
  /** Where the file becomes unreadable: how many records precede that point, and why. */
  damage: Type.Optional(Type.Object({ records: Type.Number(), line: Type.Number(), why: Type.String() })),
  /** Lines without a record: only counted, not staged, since there may be any number of them. */
  blank: Type.Optional(Type.Object({ count: Type.Number(), firstLine: Type.Number() })),
})
/** A file that contains records, possibly inside an archive, and the name of the exported table. */
export type RawObject = DeepReadonly<Static<typeof rawObjectSchema>>

const manifestSchema = Type.Object({
  v: Type.Literal(2),
  jobId: Type.String(),
  source: Type.String(),
  sourceTimezone: allowNull(Type.String()),
  createdAt: Type.String(),
  toolVersion: Type.String(),
  mappingSha256: Type.String(),
  raw: Type.Array(rawSourceSchema),
  /** The lines of parts refer to these objects by index. */
  objects: Type.Array(rawObjectSchema),
  parts: Type.Array(stagedPartSchema),
  /** Without generated events. */
  totals: Type.Object({ records: Type.Number(), bytes: Type.Number(), days: Type.Number() }),
  /** The first and the last record time that could be read. */
  sourceRange: allowNull(Type.Object({ first: Type.String(), last: Type.String() })),
  /** What the scan found in all records together. */
  scan: Type.Object({
    /** How often a user other than the first was seen on a device. */
    sharedDevices: Type.Number(),
    devices: Type.Object({ all: Type.Number(), shared: Type.Number() }),
    /** How many records have each note about a time zone, for `checkConfiguredZone`. */
    zoneNotes: Type.Array(Type.Object({ note: Type.String(), count: Type.Number() })),
    /** Names of fields and events in the configuration that occur in no record. */
    unseenNames: Type.Array(unseenNameSchema),
  }),
})
export type Manifest = DeepReadonly<Static<typeof manifestSchema>>

export const manifestFile = 'manifest.json'

export function readManifest(folder: JobFolder): Manifest | null {
  return folder.readJson(manifestFile, manifestSchema, stored => renameKeys(stored, toCamelCase) as object)
}

/** How many lines of the raw files are blank. */
export function countBlankLines({ objects }: Pick<Manifest, 'objects'>): number {
  return objects.reduce((sum, { blank }) => sum + (blank?.count ?? 0), 0)
}

/** How many records the raw files contain, blank lines included: all figures of a job count records this way. */
export function countRecordsRead(manifest: Manifest): number {
  return manifest.totals.records + countBlankLines(manifest)
}

/** Keys in the file are spelled as in docs/wire/import.md §2.2. */
export function writeManifest(folder: JobFolder, manifest: Manifest): void {
  folder.writeJson(manifestFile, renameKeys(manifest, toSnakeCase))
}

/** It is safe to rename all keys, since no key in a manifest comes from an export. */
function renameKeys(value: unknown, rename: (key: string) => string): unknown {
  if (Array.isArray(value)) return value.map(entry => renameKeys(entry, rename))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, entry]) => [rename(key), renameKeys(entry, rename)]))
}

function toSnakeCase(key: string): string {
  return key.replace(/[A-Z]/g, letter => `_${letter.toLowerCase()}`)
}

function toCamelCase(key: string): string {
  // There is no underscore before a digit: `mapping_sha256`.
  return key.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
}
