// `pennon version`: prints the versions that a bug report should name.

import { dirname } from 'node:path'
import { findEngineLibraryPath, readSqliteVersion } from '#compose/stores/check-stores.ts'
import { packageVersion } from '#distribution.ts'
import { version } from '#version.ts'

export function showVersion(): void {
  console.log(
    `pennon ${version}\nnode ${process.versions.node}\nsqlite ${readSqliteVersion()}\nlibchdb ${describeEngineVersion()} (embedded ClickHouse)`,
  )
}

/** The version of the npm package; the ClickHouse that it contains may be one patch release older. */
function describeEngineVersion(): string {
  const path = findEngineLibraryPath()
  return path === null ? 'not installed' : packageVersion(dirname(path))
}
