// `rejects/<part>.jsonl`: every refused record with the place where its user finds it, and what to do about it.
// Source: docs/wire/import.md §2.6.

import { closeSync, fsyncSync, mkdirSync, openSync, renameSync, rmSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import { type JsonObject, ownValue, setOwn } from '#core/json.ts'
import type { JobFolder } from '../job/job-folder.ts'
import type { StagedOutcome } from '../job/staged-part.ts'
import { fixOf } from './reject-fixes.ts'
import { shownSourceMax } from './staged-line.ts'

export interface RejectLine {
  readonly part: string
  readonly object: string
  readonly line: number
  readonly byte: number
  readonly reason: string
  readonly field: string | null
  readonly detail: string | null
  readonly source_sha256: string
  /** At most 64 KiB. */
  readonly source: string
  /** A row of CSV by the names of its columns, to be repaired here or in `source`. */
  readonly record?: JsonObject
  /** The names of its columns, for a row whose cells do not fit to them. */
  readonly columns?: readonly string[]
  readonly adapter: string
  readonly fix: string
}

export type RejectedOutcome = StagedOutcome & { readonly result: { readonly kind: 'rejected' } }

export function rejectLine(part: string, adapter: string, outcome: RejectedOutcome): RejectLine {
  const { reason, field, detail = null } = outcome.result
  return { part, ...outcome.raw, reason, field, detail, ...rejectedSource(outcome), adapter, fix: fixOf(reason) }
}

/** What a reject shows of its record. */
export function rejectedSource({
  text,
  sourceSha256,
  row,
}: StagedOutcome): Pick<RejectLine, 'source_sha256' | 'source' | 'record' | 'columns'> {
  const shown = { source_sha256: sourceSha256(), source: text.slice(0, shownSourceMax) }
  if (row === undefined || text.length > shownSourceMax) return shown
  const { columns, cells } = row
  if (cells === null) return { ...shown, columns }
  const record: JsonObject = {}
  for (const column of columns) setOwn(record, column, ownValue(cells, column) ?? '')
  return { ...shown, record }
}

/** The rejects of one part, put in place when it ends, so that a part read again has them once. */
export class RejectFile {
  readonly #path: string
  #file: number | null = null

  constructor(folder: JobFolder, part: string) {
    this.#path = folder.file('rejects', `${part}.jsonl`)
    rmSync(this.#path, { force: true })
  }

  add(line: RejectLine): void {
    if (this.#file === null) {
      mkdirSync(dirname(this.#path), { recursive: true })
      this.#file = openSync(`${this.#path}.next`, 'w', 0o600)
    }
    writeSync(this.#file, `${JSON.stringify(line)}\n`)
  }

  end(): void {
    if (this.#file === null) return
    fsyncSync(this.#file)
    closeSync(this.#file)
    renameSync(`${this.#path}.next`, this.#path)
  }
}
