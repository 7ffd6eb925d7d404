// The folder of a job: where its files are, and how they are written so that a crash leaves the old one or the new one.
//
//   plan.json  manifest.json  stats.json  approval.json  progress.json  ledger.db  lock.db
//   raw/                        what was fetched, a file per part of the source
//   spill/                      while staging: records by event day, in the order of the raw files
//   staged/<event day>/<n>.jsonl.zst
//   scanned/<event day>/<n>.jsonl.zst      what the scan found for each line of the part
//   rehearsal/report.{json,md,html}  rehearsal/samples.jsonl
//   rejects/<event day>/<n>.jsonl

import { closeSync, fsyncSync, mkdirSync, openSync, readFileSync, renameSync, rmSync, writeSync } from 'node:fs'
import { dirname, join } from 'node:path'

export class JobFolder {
  readonly path: string

  constructor(path: string) {
    this.path = path
  }

  file(...names: readonly string[]): string {
    return join(this.path, ...names)
  }

  /** @returns what the file holds; null when there is none. */
  readJson<T>(name: string): T | null {
    try {
      return JSON.parse(readFileSync(this.file(name), 'utf8')) as T
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
      throw error
    }
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
  }

  remove(...names: readonly string[]): void {
    for (const name of names) rmSync(this.file(name), { recursive: true, force: true })
  }
}
