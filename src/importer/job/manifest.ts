// `manifest.json`: the bytes that a job sends, fixed by their hashes. Source: docs/wire/import.md §2.2.

import type { JobFolder } from './job-folder.ts'
import type { StagedPart } from './staged-part.ts'

export interface RawSource {
  readonly object: string
  readonly path: string
  readonly sha256: string
  readonly bytes: number
  /** Of the file's last change, ms; the hash is taken again only where this or the size differs. */
  readonly changedMs: number
}

/** Where records stand: a file, or one inside an archive, and the table that it holds. */
export interface RawObject {
  readonly object: string
  readonly table: string | null
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
  /** Distinct ids are counted by the scan, which alone knows facts of other records. */
  readonly totals: { readonly records: number; readonly bytes: number; readonly days: number }
  /** Of the times that could be read; UTC days. */
  readonly sourceRange: { readonly first: string; readonly last: string } | null
}

export const manifestFile = 'manifest.json'

export function readManifest(folder: JobFolder): Manifest | null {
  return folder.readJson<Manifest>(manifestFile)
}
