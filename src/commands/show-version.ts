// `pennon version`: prints the versions that a bug report should name.

import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { sqliteVersion } from '#compose/stores/check-stores.ts'
import { version } from '#version.ts'

export function showVersion(): void {
  console.log(
    `pennon ${version}\nnode ${process.versions.node}\nsqlite ${sqliteVersion()}\nlibchdb ${engineVersion()} (embedded ClickHouse)`,
  )
}

/** The version of the npm package; the ClickHouse in it may be a patch release older. */
function engineVersion(): string {
  try {
    const path = createRequire(import.meta.url).resolve('chdb/package.json')
    const { optionalDependencies = {} } = JSON.parse(readFileSync(path, 'utf8')) as {
      optionalDependencies?: Record<string, string>
    }
    return Object.values(optionalDependencies)[0] ?? 'unknown'
  } catch (cause) {
    return `not installed (${(cause as Error).message.split('\n')[0]})`
  }
}
