// `pennon restore FILE`: restores a backup into an empty data folder.

import { resolve } from 'node:path'
import { restore as restoreBackup } from '#compose/backup/restore.ts'
import { readConfig } from '#config.ts'
import { copyProgress } from './copy-progress.ts'
import { refuse } from './refuse.ts'
import { stopOnSignals } from './stop-on-signals.ts'

export async function restore(file: string): Promise<void> {
  const read = readConfig(process.env)
  if (!read.ok) refuse(read.error)
  process.umask(0o077)
  const progress = copyProgress('restoring')
  const done = await stopOnSignals(
    signal =>
      restoreBackup(read.value, resolve(file), { onProgress: progress.show, checkStop: () => signal.throwIfAborted() }),
    progress.end,
  )
  if (!done.ok) refuse(done.error)
  const { description, fileCount } = done.value
  process.stdout.write(
    `${read.value.dataFolder} restored to ${description.createdAt}: ${fileCount} files from Pennon ${description.pennon}, all checked.\n` +
      '  Start it instead of the original instance, never at the same time.\n',
  )
}
