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
import { JobStopped } from './job-paused.ts'

/** With the last file of a rehearsal gone, it is made anew with all of them. */
const rehearseAgain = 'Delete rehearsal/report.json in the same folder and run again: the rehearsal is made anew'

/** What to do about a damaged file that is not simply made anew. */
const waysOut: Readonly<Record<string, string>> = {
  'plan.json':
    'Put back a copy of it. Without one, discard the import at the service if some of it is sent, and plan it in another folder',
  'manifest.json':
    'Delete it and run again: it is made anew from the files of the export, and is the same as long as they are',
  'approval.json': 'Delete it and approve again with pennon import approve: of the same job it is the same',
  'checkpoint.json':
    'Delete it and run again: everything is sent once more, and what the service has already counts once',
  'rehearsal/report.md': rehearseAgain,
  'rehearsal/samples.jsonl': rehearseAgain,
  rejects: rehearseAgain,
  'service-job.json':
    'Put back a copy of it; it holds the id of the import job at the service. Without one, discard that job there, and plan the import in another folder',
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
   * @param keys that an object in the file has when it is whole.
   * @param isWhole whether the values of these keys are of the kinds that are read, where a wrong one would be a fault.
   * @returns what the file holds; null when there is none.
   * @throws JobStopped for a damaged file, with what to do about it.
   */
  readJson<T extends object>(
    name: string,
    keys: readonly (keyof T & string)[] = [],
    isWhole: (value: T) => boolean = () => true,
  ): T | null {
    let text: string
    try {
      text = readFileSync(this.file(name), 'utf8')
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
      throw error
    }
    const value = objectIn(text)
    if (value === null || !keys.every(key => Object.hasOwn(value, key)) || !isWhole(value as T))
      throw this.damaged(name)
    return value as T
  }

  writeJson(name: string, value: unknown): void {
    this.write(name, `${JSON.stringify(value, null, 2)}\n`)
  }

  /** Writes a file whole or not at all, also when the machine goes down. */
  write(name: string, content: string | Uint8Array): void {
    const path = this.file(name)
    mkdirSync(dirname(path), { recursive: true })
    const next = `${path}.next`
    const file = openSync(next, 'w', 0o600)
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
    const wayOut = waysOut[name] ?? waysOut[name.split('/')[0]!] ?? 'Delete it and run again: it is made anew'
    return new JobStopped(`${this.file(name)} is damaged. ${wayOut}`)
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

/** Asked of what a file holds, whatever its type says: a damaged one may hold anything. */
export function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** @returns null for anything but JSON of an object. */
function objectIn(text: string): object | null {
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? value : null
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
