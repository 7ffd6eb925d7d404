// The folder of a job: the layout of its files, and writes that leave either the old or the new file after a crash.
//
//   plan.json  manifest.json  progress.json  lock.db
//   raw/                        what was fetched, a file per part of the source
//   staging.db                  until the scan has ended: all records with their times
//   job.db                      all events, in parts of one event day each
//   state.db                    from the plan on: the approval, how far sending is, and what came of it
//   report.json  report.html  rehearsal/samples.jsonl
//   rejects/<event day>/<n>.jsonl

import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { parseJsonWithDoubles } from '#core/json.ts'
import { createNewFile } from '../read/link-safe-files.ts'
import { matchesSchema, type Schema } from '../records/file-schema.ts'
import { JobStopped } from './job-paused.ts'

/** Without report.json, which a rehearsal writes last, the next run repeats the whole rehearsal. */
const rehearseAgain = 'Delete report.json in the folder of the job and run again: the rehearsal is repeated'

/** Remedies by file name, for files whose damage needs more than "delete it and run again". */
const remedies: Readonly<Record<string, string>> = {
  'plan.json':
    'Restore it from a copy. Without one, discard the import at the service if part of it was sent, and plan it in another folder',
  'manifest.json':
    'Delete it and run again: it is rebuilt from the files of the export, and is identical if they are unchanged',
  'fetch.db':
    'Delete it, and fetch.db-wal if it exists, and fetch again with the same options: complete files are not downloaded again',
  'rehearsal/samples.jsonl': rehearseAgain,
  rejects: rehearseAgain,
  'state.db':
    // SQLite would apply a leftover WAL to the restored copy, and damage it.
    'Delete state.db-wal if it exists, and restore state.db from a copy: it holds the id of the import job at the service. Without one, discard that job there if there is one (pennon import list), and plan the import in another folder',
}

export class JobFolder {
  readonly path: string

  constructor(path: string) {
    this.path = path
  }

  file(...names: readonly string[]): string {
    return join(this.path, ...names)
  }

  /**
   * @param schema covers every property that the caller reads.
   * @param decode converts the stored object (and its text) to the form that `schema` describes; none if they are the same.
   * @returns null when there is no such file.
   * @throws JobStopped, with the remedy, for a file that does not match the schema.
   */
  readJson<T>(
    name: string,
    schema: Schema<T>,
    decode: (stored: object, text: string) => object = stored => stored,
  ): T | null {
    let text: string
    try {
      text = readFileSync(this.file(name), 'utf8')
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code === 'ENOENT') return null
      throw code === 'EISDIR' ? this.damaged(name) : error
    }
    const stored = parseObjectOrNull(text)
    const value = stored && decode(stored, text)
    if (!matchesSchema(schema, value)) throw this.damaged(name)
    return value
  }

  /**
   * @param text one line of the file.
   * @throws JobStopped, with the remedy, for a line that does not match the schema.
   */
  parseLine<T>(name: string, text: string, schema: Schema<T>): T {
    const value = parseObjectOrNull(text)
    if (!matchesSchema(schema, value)) throw this.damaged(name)
    return value
  }

  writeJson(name: string, value: unknown): void {
    this.write(name, `${JSON.stringify(value, null, 2)}\n`)
  }

  /** Replaces the file atomically, even if the machine crashes. */
  write(name: string, content: string | Uint8Array): void {
    const path = this.file(name)
    mkdirSync(dirname(path), { recursive: true })
    const next = `${path}.next`
    const file = createNewFile(next)
    try {
      const bytes = typeof content === 'string' ? Buffer.from(content) : content
      for (let at = 0; at < bytes.length; ) at += writeSync(file, bytes, at)
      fsyncSync(file)
    } finally {
      closeSync(file)
    }
    renameSync(next, path)
    syncJobFolder(dirname(path))
  }

  damaged(name: string, how = 'is damaged'): JobStopped {
    const remedy = remedies[name] ?? remedies[name.split('/')[0]!] ?? 'Delete it and run again: it is rebuilt'
    return new JobStopped(`${this.file(name)} ${how}. ${remedy}`)
  }

  remove(...names: readonly string[]): void {
    for (const name of names) rmSync(this.file(name), { recursive: true, force: true })
  }
}

/**
 * Whether a job was planned in a folder, or an export was fetched into it. Its files must then not be imported as an
 * export.
 */
export function isJobFolder(path: string): boolean {
  const hasFile = (name: string) => existsSync(join(path, name))
  return hasFile('fetch.db') || (hasFile('plan.json') && hasFile('lock.db'))
}

/** @returns null unless `text` is a JSON object. */
export function parseObjectOrNull(text: string): object | null {
  try {
    const value = parseJsonWithDoubles(text)
    return typeof value === 'object' && !Array.isArray(value) ? value : null
  } catch {
    return null
  }
}

/** Makes new names durable: without it, a power failure may leave the previous file, or none. */
export function syncJobFolder(path: string): void {
  const folder = openSync(path, 'r')
  try {
    fsyncSync(folder)
  } finally {
    closeSync(folder)
  }
}
