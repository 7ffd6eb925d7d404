// Copies the state before its schema changes: migrations only go forward, so the copy is the only way back to the former
// version. The last copy stays next to the state.

import { closeSync, existsSync, fsyncSync, openSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { isNewestSchema, migrations } from '#adapters/sql/known-migrations.ts'
import { findSqliteSchemaVersion } from './inspect-state-file.ts'
import { openStateForWriting, writerWaitMs } from './open-sqlite.ts'

const copyName = /^state\.db\.before-(\d{4})(\.upgrading)?$/
const draftName = /^state\.db\.before-\d{4}\.upgrading\.\d+\.draft/
/** Copies in one step: with several steps, a write between two of them would make the copy start again. */
const allPages = 0x7fffffff

/**
 * Copies the state to `state.db.before-NNNN`, NNNN being the first migration that the state lacks. Makes no copy if the
 * state lacks no migration. During the upgrade the name ends in `.upgrading`: an upgrade interrupted between two migrations
 * continues with that copy.
 * @returns the copy's name, and a function to call when the upgrade is complete, which removes older copies; null when no
 * copy is needed.
 * @throws UnfitSchemaError, SqliteError, PortError, system errors: then the state may not be changed.
 */
export async function copyBeforeMigration(
  dataFolder: string,
  known = migrations,
): Promise<{ name: string; complete: () => void } | null> {
  const version = findSqliteSchemaVersion(dataFolder)
  if (version === null) return null
  const begun = listCopies(dataFolder).find(({ isUpgrading, before }) => isUpgrading && before <= version)
  const name = begun?.name.replace('.upgrading', '') ?? `state.db.before-${String(version + 1).padStart(4, '0')}`
  const path = join(dataFolder, name)
  const complete = () => {
    if (existsSync(`${path}.upgrading`)) renameSync(`${path}.upgrading`, path)
    for (const other of listCopies(dataFolder))
      if (other.name !== name) rmSync(join(dataFolder, other.name), { force: true })
    syncPath(dataFolder)
  }
  if (isNewestSchema(version, known)) {
    // A begun upgrade was interrupted after its last migration. Complete it, or the next upgrade would use its copy.
    if (begun !== undefined) complete()
    return null
  }
  if (begun === undefined) await copyState(dataFolder, `${path}.upgrading`)
  return { name, complete }
}

/** Copies durably; the copy gets its name only when it is complete. */
async function copyState(dataFolder: string, path: string): Promise<void> {
  removeDrafts(dataFolder)
  const draft = `${path}.${process.pid}.draft`
  const database = openStateForWriting(dataFolder, writerWaitMs)
  try {
    await database.backup(draft, { progress: () => allPages })
    syncPath(draft)
    renameSync(draft, path)
  } finally {
    database.close()
    removeDrafts(dataFolder)
  }
  syncPath(dataFolder)
}

/** Also removes drafts of killed processes, each of which is as large as the state. */
function removeDrafts(dataFolder: string): void {
  for (const name of readdirSync(dataFolder)) if (draftName.test(name)) rmSync(join(dataFolder, name), { force: true })
}

function listCopies(dataFolder: string): { name: string; before: number; isUpgrading: boolean }[] {
  return readdirSync(dataFolder).flatMap(name => {
    const [, before, upgrading] = copyName.exec(name) ?? []
    return before === undefined ? [] : [{ name, before: Number(before), isUpgrading: upgrading !== undefined }]
  })
}

function syncPath(path: string): void {
  const descriptor = openSync(path, 'r')
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}
