// Finds libchdb, the shared library that contains ClickHouse, in the npm package for this platform. engine-thread.ts
// calls it.

import { type ExecFileException, execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { packageFolder } from '#distribution.ts'

const packages: Readonly<Record<string, string>> = {
  'linux-x64': '@chdb/lib-linux-x64-gnu',
  'linux-arm64': '@chdb/lib-linux-arm64-gnu',
  'darwin-x64': '@chdb/lib-darwin-x64',
  'darwin-arm64': '@chdb/lib-darwin-arm64',
}

/** Absolute path of libchdb; null where its package is not installed or does not exist. */
export function findEngineLibraryPath(): string | null {
  const name = packages[`${process.platform}-${process.arch}`]
  const folder = name === undefined ? null : packageFolder(name)
  // The npm package names the library `libchdb.so` on macOS, too.
  return folder === null ? null : join(folder, 'libchdb.so')
}

/** Whether there is a package of libchdb for this machine. On Linux it needs glibc. */
export function hasEnginePackageForMachine(): boolean {
  if (packages[`${process.platform}-${process.arch}`] === undefined) return false
  const { header } = process.report.getReport() as { header: { glibcVersionRuntime?: string } }
  return process.platform !== 'linux' || header.glibcVersionRuntime !== undefined
}

/**
 * Loads the library in a separate process, since a damaged library may crash the process that loads it.
 * @returns null when it can be loaded.
 */
export async function findLibraryProblem(libraryPath: string): Promise<string | null> {
  const load = "require('node:ffi').dlopen(process.argv[1], {})"
  try {
    await promisify(execFile)(process.execPath, ['--eval', load, libraryPath])
    return null
  } catch (cause) {
    const { signal, stderr } = cause as ExecFileException & { stderr: string }
    return /dlopen failed: (.*)/.exec(stderr)?.[1] ?? (signal ? `loading it ended with ${signal}` : stderr.trim())
  }
}
