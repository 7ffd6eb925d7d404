// Finds libchdb, the shared library that contains ClickHouse, in the npm package for this platform. engine-thread.ts
// calls it.

import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'

const packages: Readonly<Record<string, string>> = {
  'linux-x64': '@chdb/lib-linux-x64-gnu',
  'linux-arm64': '@chdb/lib-linux-arm64-gnu',
  'darwin-x64': '@chdb/lib-darwin-x64',
  'darwin-arm64': '@chdb/lib-darwin-arm64',
}

/**
 * Absolute path of libchdb.
 * @throws Error with a message for the operator when this platform has none or the package is not installed.
 */
export function engineLibraryPath(platform: string = process.platform, arch: string = process.arch): string {
  const name = packages[`${platform}-${arch}`]
  if (name === undefined) {
    throw new Error(`No embedded event store for ${platform}-${arch}: set CLICKHOUSE_URL to a ClickHouse server.`)
  }
  try {
    // The file is called .so on macOS as well.
    return join(dirname(createRequire(import.meta.url).resolve(`${name}/package.json`)), 'libchdb.so')
  } catch (cause) {
    throw new Error(`The package ${name} of the embedded event store is not installed.`, { cause })
  }
}
