// `rejects/<part>.jsonl`: every record that the rehearsal rejects, with its place in the source, and the remedy.
// Source: docs/wire/import.md §2.6.

import {
  closeSync,
  createReadStream,
  fsyncSync,
  globSync,
  mkdirSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { getOwnValue, type JsonObject, setOwnValue } from '#core/json.ts'
import type { JobFolder } from '../job/job-folder.ts'
import type { StagedOutcome } from '../job/staged-part.ts'
import { createNewFile } from '../read/link-safe-files.ts'
import { splitRecords } from '../read/split-records.ts'
import { allowNull, jsonObject, type Static, Type } from '../records/file-schema.ts'
import { findRejectFix } from './reject-fixes.ts'
import { shownSourceMax } from './staged-line.ts'

export const rejectLineSchema = Type.Object({
  part: Type.String(),
  object: Type.String(),
  line: Type.Number(),
  byte: Type.Number(),
  /** The record's number in its file, if that is not the line. Ids of identical records depend on it. */
  ordinal: Type.Optional(Type.Number()),
  reason: Type.String(),
  field: allowNull(Type.String()),
  detail: allowNull(Type.String()),
  source_sha256: Type.String(),
  /** The record as in its file, at most 64 KiB. */
  source: Type.String(),
  /** The cells of a CSV row by column name, to be repaired here or in `source`. */
  record: Type.Optional(jsonObject),
  /** Column names, for the first row per object and part whose number of cells does not match them. */
  columns: Type.Optional(Type.Unsafe<readonly string[]>(Type.Array(Type.String()))),
  adapter: Type.String(),
  fix: Type.String(),
})
export type RejectLine = Readonly<Static<typeof rejectLineSchema>>

/** The reject files with their parts, sorted by part. @throws JobStopped if one is a folder. */
export function listRejectFiles(folder: JobFolder): readonly { readonly path: string; readonly part: string }[] {
  const names = globSync('**/*.jsonl', { cwd: folder.file('rejects') }).toSorted()
  const other = names.find(name => statSync(folder.file('rejects', name), { throwIfNoEntry: false })?.isDirectory())
  if (other !== undefined) throw folder.damaged(`rejects/${other}`, 'is a folder, which has to be removed')
  return names.map(name => ({ path: folder.file('rejects', name), part: name.slice(0, -'.jsonl'.length) }))
}

/** Reads lines without `readline`, which also splits at U+2028, a character that texts of a source may contain. */
export async function* readRejectTexts(path: string): AsyncGenerator<string> {
  for await (const line of splitRecords(createReadStream(path), 'json', Infinity))
    yield (line.bytes as Buffer).toString().trimEnd()
}

interface Problem {
  readonly reason: Parameters<typeof findRejectFix>[0]
  readonly field: string | null
  readonly detail?: string | null
}

/** The reject line for a problem found in a rehearsal or while sending. */
export function createRejectLine(
  part: string,
  adapter: string,
  outcome: StagedOutcome,
  { reason, field, detail = null }: Problem,
): RejectLine {
  const { raw, ordinal = raw.line } = outcome
  return {
    part,
    ...raw,
    ...(ordinal !== raw.line && { ordinal }),
    ...{ reason, field, detail },
    ...selectShownSource(outcome),
    adapter,
    fix: findRejectFix(reason, adapter, detail),
  }
}

/** The part of a record that its reject shows. */
function selectShownSource({
  source,
}: StagedOutcome): Pick<RejectLine, 'source_sha256' | 'source' | 'record' | 'columns'> {
  const { text, sha256, row } = source()
  const shown = { source_sha256: sha256, source: text.slice(0, shownSourceMax) }
  if (row === undefined || text.length > shownSourceMax) return shown
  const { columns, cells } = row
  if (cells === null) return { ...shown, columns }
  const record: JsonObject = {}
  for (const column of columns) setOwnValue(record, column, getOwnValue(cells, column) ?? '')
  return { ...shown, record }
}

/**
 * Writes the rejects of one part to a file that is renamed into place at the end, so that the file contains each reject
 * once even if the run is repeated.
 */
export class RejectFile {
  readonly #path: string
  #file: number | null = null
  /**
   * Objects whose columns are already in the file: written once, since a header may be far longer than the rejected rows.
   */
  readonly #named = new Set<string>()

  constructor(folder: JobFolder, part: string) {
    this.#path = folder.file('rejects', `${part}.jsonl`)
    rmSync(this.#path, { force: true })
  }

  add(line: RejectLine): void {
    if (this.#file === null) {
      mkdirSync(dirname(this.#path), { recursive: true })
      this.#file = createNewFile(`${this.#path}.next`)
    }
    writeSync(this.#file, `${JSON.stringify(this.#withColumnsOnce(line))}\n`)
  }

  /** The columns are only for the person who repairs the rows; a retry uses the columns in the manifest. */
  #withColumnsOnce(line: RejectLine): RejectLine {
    if (line.columns === undefined) return line
    const { columns, ...others } = line
    if (this.#named.has(line.object)) return others
    this.#named.add(line.object)
    return line
  }

  end(): void {
    if (this.#file === null) return
    fsyncSync(this.#file)
    closeSync(this.#file)
    renameSync(`${this.#path}.next`, this.#path)
  }
}
