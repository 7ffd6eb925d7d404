// The folder of a job: where its files are, and how they are written so that a crash leaves the old one or the new one.
//
//   plan.json  manifest.json  stats.json  approval.json  progress.json  ledger.db  lock.db
//   raw/                        what was fetched, a file per part of the source
//   spill/                      while staging: records by event day, in the order of the raw files
//   staged/<event day>/<n>.jsonl.zst
//   scanned/<event day>/<n>.jsonl.zst      what the scan found for each line of the part
//   rehearsal/report.{json,md,html}  rehearsal/samples.jsonl
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
import { parsePlainJson } from '#core/json.ts'
import { appendToFile, cutFile, openNewFile } from '../read/own-files.ts'
import { isOf, type Schema } from '../records/file-schema.ts'
import { JobStopped } from './job-paused.ts'

/** With the last file of a rehearsal gone, it is made anew with all of them. */
const rehearseAgain = 'Delete rehearsal/report.json in the same folder and run again: the rehearsal is made anew'

/** What to do about a damaged file that is not simply made anew. */
const remedies: Readonly<Record<string, string>> = {
  'plan.json':
    'Put back a copy of it. Without one, discard the import at the service if some of it is sent, and plan it in another folder',
  'manifest.json':
    'Delete it and run again: it is made anew from the files of the export, and is the same as long as they are',
  'fetch.db':
    'Delete it, and fetch.db-wal where there is one, and fetch again with the same options: files that came whole are not asked for again',
  'approval.json': 'Delete it and approve again with pennon import approve: of the same job it is the same',
  'checkpoint.json':
    'Delete it and run again: everything is sent once more, and what the service has already counts once',
  'rehearsal/report.md': rehearseAgain,
  'rehearsal/samples.jsonl': rehearseAgain,
  rejects: rehearseAgain,
  'service-job.json':
    'Put back a copy of it; it holds the id of the import job at the service. Without one, discard that job there, and plan the import in another folder',
}

const lineFeed = 0x0a

export class JobFolder {
  readonly path: string

  constructor(path: string) {
    this.path = path
  }

  file(...names: readonly string[]): string {
    return join(this.path, ...names)
  }

  /**
   * @param schema of all that is read of the file.
   * @param decode what the file holds, and its text, as the schema has it; as it is unless given.
   * @returns what the file holds; null when there is none.
   * @throws JobStopped for a file of another kind, with what to do about it.
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
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
      throw error
    }
    const stored = objectIn(text)
    const value = stored && decode(stored, text)
    if (!isOf(schema, value)) throw this.damaged(name)
    return value
  }

  /**
   * @param text of a line of the file.
   * @throws JobStopped for a line of another kind, with what to do about the file.
   */
  parseLine<T>(name: string, text: string, schema: Schema<T>): T {
    const value = objectIn(text)
    if (!isOf(schema, value)) throw this.damaged(name)
    return value
  }

  /**
   * The lines of a file that `appendLine` writes; none when there is none. One that a crash cut short counts as not written,
   * and is cut off.
   * @throws JobStopped for a line of another kind, with what to do about the file.
   */
  readLines<T>(name: string, schema: Schema<T>): T[] {
    const path = this.file(name)
    if (!existsSync(path)) return []
    const bytes = readFileSync(path)
    const end = bytes.lastIndexOf(lineFeed) + 1
    if (end < bytes.length) cutFile(path, end)
    const lines: T[] = []
    for (let start = 0; start < end; start = bytes.indexOf(lineFeed, start) + 1)
      lines.push(this.parseLine(name, bytes.toString('utf8', start, bytes.indexOf(lineFeed, start)), schema))
    return lines
  }

  /** It is on the disk when this returns. */
  appendLine(name: string, value: unknown): void {
    const path = this.file(name)
    const isNew = !existsSync(path)
    appendToFile(path, `${JSON.stringify(value)}\n`, true)
    if (isNew) syncFolder(dirname(path))
  }

  writeJson(name: string, value: unknown): void {
    this.write(name, `${JSON.stringify(value, null, 2)}\n`)
  }

  /** Writes a file whole or not at all, also when the machine goes down. */
  write(name: string, content: string | Uint8Array): void {
    const path = this.file(name)
    mkdirSync(dirname(path), { recursive: true })
    const next = `${path}.next`
    const file = openNewFile(next)
    try {
      const bytes = typeof content === 'string' ? Buffer.from(content) : content
      for (let at = 0; at < bytes.length; ) at += writeSync(file, bytes, at)
      fsyncSync(file)
    } finally {
      closeSync(file)
    }
    renameSync(next, path)
    syncFolder(dirname(path))
  }

  damaged(name: string): JobStopped {
    const remedy = remedies[name] ?? remedies[name.split('/')[0]!] ?? 'Delete it and run again: it is made anew'
    return new JobStopped(`${this.file(name)} is damaged. ${remedy}`)
  }

  remove(...names: readonly string[]): void {
    for (const name of names) rmSync(this.file(name), { recursive: true, force: true })
  }
}

/** Whether a job is planned in a folder, or an export was fetched into it: what lies there is no export of its own. */
export function isJobFolder(path: string): boolean {
  const has = (name: string) => existsSync(join(path, name))
  return has('fetch.db') || (has('plan.json') && has('lock.db'))
}

/** @returns null for anything but JSON of an object. */
export function objectIn(text: string): object | null {
  try {
    const value = parsePlainJson(text)
    return typeof value === 'object' && !Array.isArray(value) ? value : null
  } catch {
    // That it is no JSON is all that the caller has to know.
    return null
  }
}

/** A new name is on the disk once its folder is: without that, a power failure may leave the file of before, or none. */
export function syncFolder(path: string): void {
  const folder = openSync(path, 'r')
  try {
    fsyncSync(folder)
  } finally {
    closeSync(folder)
  }
}
