// An empty state at the newest schema, copied from one that this process migrated once: migrating takes longer than most tests.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { migrateSqlite } from '#adapters/sqlite/kysely-on-sqlite.ts'
import { stateFileOf } from '#adapters/sqlite/open-sqlite.ts'

let migrated: Promise<Buffer> | undefined

/** Writes the state file of a data folder that has none. */
export async function writeNewState(dataFolder: string): Promise<void> {
  migrated ??= migratedFile()
  writeFileSync(stateFileOf(dataFolder), await migrated)
}

async function migratedFile(): Promise<Buffer> {
  const folder = mkdtempSync(join(tmpdir(), 'pennon-new-state-'))
  try {
    await migrateSqlite(folder)
    return readFileSync(stateFileOf(folder))
  } finally {
    rmSync(folder, { recursive: true })
  }
}
