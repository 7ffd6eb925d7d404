// The parent's side of the embedded engine: prepares a port, passwords and files for one start. The supervisor
// (src/processes) spawns, watches and restarts the child; engine-process.ts is the child's body.

import { randomBytes } from 'node:crypto'
import { chmodSync, mkdirSync } from 'node:fs'
import { createServer } from 'node:net'
import { join, resolve } from 'node:path'
import { defaultEngineLimits, type EngineLimits, formatServerConfig, formatUsersConfig } from './engine-config.ts'
import { type EngineEndpoint, engineFolderOf, replacePrivateFile, writeEngineEndpoint } from './engine-endpoint.ts'

export interface PreparedEngine {
  /** Arguments of the program: `engine --folder F --http-port N`. */
  readonly args: readonly string[]
  readonly endpoint: EngineEndpoint
}

/**
 * Prepares one start of the engine: call it before each start, restarts included, because the old port may be taken and the
 * old passwords are forgotten. Folder 0700, files 0600.
 * @param given.queryTimeoutSeconds must equal the clients' timeout: a read-only user may send a limit with its queries only
 * if it equals the configured limit.
 * @throws the error of the file system when the folder cannot be written.
 */
export async function prepareEngineStart(
  dataFolder: string,
  given: Partial<EngineLimits> = {},
): Promise<PreparedEngine> {
  const limits = { ...defaultEngineLimits, ...given }
  const folder = resolve(engineFolderOf(dataFolder))
  const storeFolder = join(folder, 'store')
  mkdirSync(storeFolder, { recursive: true, mode: 0o700 })
  chmodSync(folder, 0o700)
  const httpPort = await findFreePort()
  const endpoint: EngineEndpoint = {
    url: `http://127.0.0.1:${httpPort}`,
    database: 'pennon',
    secret: createRandomText(),
    writer: { username: 'pennon_writer', password: createRandomText() },
    reader: { username: 'pennon_reader', password: createRandomText() },
    analyst: { username: 'pennon_analyst', password: createRandomText() },
  }
  const usersFile = join(folder, 'users.xml')
  replacePrivateFile(usersFile, formatUsersConfig(endpoint, limits))
  replacePrivateFile(
    join(folder, 'config.xml'),
    formatServerConfig({ storeFolder, usersFile, httpPort, endpoint, limits }),
  )
  writeEngineEndpoint(dataFolder, endpoint)
  return { args: ['engine', '--folder', folder, '--http-port', String(httpPort)], endpoint }
}

/**
 * A free port, picked by the system. If another program takes it before the engine does, the engine fails and is restarted.
 */
function findFreePort(): Promise<number> {
  return new Promise((done, failed) => {
    const server = createServer()
    server.once('error', failed)
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      const port = typeof address === 'object' && address !== null ? address.port : 0
      server.close(() => done(port))
    })
  })
}

function createRandomText(): string {
  return randomBytes(24).toString('base64url')
}
