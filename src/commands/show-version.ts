// `pennon version`: what a bug report should name.

import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import Database from 'better-sqlite3'
import { version } from '../version.ts'

export function showVersion(): void {
  const database = new Database(':memory:')
  const sqlite = database.prepare('SELECT sqlite_version()').pluck().get() as string
  database.close()
  console.log(
    `pennon ${version}\nnode ${process.versions.node}\nsqlite ${sqlite}\nlibchdb ${engineVersion()} (embedded ClickHouse)`,
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
