// The address and passwords of the embedded engine, in a file that only its owner can read, so that the worker and
// commands on the same host find it. Port, passwords and secret change with each start of the engine: read the file
// again after a failure to connect. The file does not exist while no engine is running.

import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

export interface EngineEndpoint {
  /** `http://127.0.0.1:PORT` */
  readonly url: string
  readonly database: string
  /** Proves that the server is the engine of this start: see adapters/clickhouse/connection/proving-agent.ts. */
  readonly secret: string
  readonly writer: EngineUser
  readonly reader: EngineUser
  /** Runs SQL that people write: it sees nothing but the views of one project. */
  readonly analyst: EngineUser
}

export interface EngineUser {
  readonly username: string
  readonly password: string
}

/** The engine's own folder; also its working directory. */
export function engineFolderOf(dataFolder: string): string {
  return join(dataFolder, 'events')
}

/** Replaces the file in one step: a reader sees either the old or the new content. */
export function writeEngineEndpoint(dataFolder: string, endpoint: EngineEndpoint): void {
  replacePrivateFile(endpointPath(dataFolder), JSON.stringify(endpoint))
}

/** Replaces a file in one step; if the path is a link, replaces the link itself, not its target. */
export function replacePrivateFile(path: string, text: string): void {
  const draft = `${path}.new`
  rmSync(draft, { force: true })
  writeFileSync(draft, text, { flag: 'wx', mode: 0o600 })
  renameSync(draft, path)
}

/** Call it when the engine has ended: another program may use the port by now, so no client may connect to it. */
export function removeEngineEndpoint(dataFolder: string): void {
  rmSync(endpointPath(dataFolder), { force: true })
}

/** @returns null while no engine is prepared in this data folder. */
export function readEngineEndpoint(dataFolder: string): EngineEndpoint | null {
  let text: string
  try {
    text = readFileSync(endpointPath(dataFolder), 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
  const endpoint = JSON.parse(text) as EngineEndpoint
  // An older version wrote a file without these fields; its engine could not prove itself or had no user for SQL.
  return typeof endpoint.secret === 'string' && endpoint.analyst !== undefined ? endpoint : null
}

function endpointPath(dataFolder: string): string {
  return join(engineFolderOf(dataFolder), 'endpoint.json')
}
