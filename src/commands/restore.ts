// `pennon restore FILE`: restores a backup into an empty data folder.

import { resolve } from 'node:path'
import { restoreFromBackup as restoreBackup } from '#compose/backup/restore.ts'
import { runInterruptibleCopy } from './interruptible-copy.ts'
import { readConfigOrRefuse } from './refuse.ts'

export async function restore(file: string): Promise<void> {
  const config = readConfigOrRefuse()
  const { description, fileCount } = await runInterruptibleCopy('restoring', options =>
    restoreBackup(config, resolve(file), options),
  )
  process.stdout.write(
    `${config.dataFolder} restored to ${description.createdAt}: ${fileCount} files from Pennon ${description.pennon}, all checked.\n` +
      '  Start it instead of the original instance, never at the same time.\n',
  )
}
