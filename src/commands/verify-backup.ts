// `pennon backup --verify FILE`: checks whether a backup can be restored, and prints its contents.

import { setPriority } from 'node:os'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type VerifyReport, verifyBackupFile as verify } from '#compose/backup/verify.ts'
import { backupNiceness, runInterruptibleCopy } from './interruptible-copy.ts'
import { readConfigOrRefuse, refuse } from './refuse.ts'

const mainPath = fileURLToPath(new URL('../main.ts', import.meta.url))

export async function verifyBackup(file: string): Promise<void> {
  const config = readConfigOrRefuse()
  setPriority(backupNiceness)
  const report = await runInterruptibleCopy('restoring', options =>
    verify(config, resolve(file), { ...options, mainPath, environment: process.env }),
  )
  process.stdout.write(describeVerification(file, report))
  const { differences } = report
  if (differences.length > 0) refuse(`${file} does not match its description: ${differences.join('; ')}.`)
}

function describeVerification(file: string, { description, fileCount, state, events, log }: VerifyReport): string {
  const lines = [
    `${file}: created ${description.createdAt} by Pennon ${description.pennon}; ${fileCount} files, all checked`,
    `  state: ${state === null ? 'not included' : describeCounts(state)}`,
    `  events: ${events === null ? 'not included' : describeCounts(events)}`,
    `  log: ${
      Object.entries(log)
        .map(([stream, end]) => `${stream} up to ${end.toLocaleString('en')}`)
        .join(', ') || 'empty'
    }`,
  ]
  return `${lines.join('\n')}\n`
}

/** `feature_flag 3, person 1,200`: tables without rows are left out. */
function describeCounts(rows: Readonly<Record<string, number>>): string {
  const named = Object.entries(rows)
    .filter(([, count]) => count > 0)
    .sort(([one], [other]) => one.localeCompare(other))
  return named.map(([table, count]) => `${table} ${count.toLocaleString('en')}`).join(', ') || 'no rows'
}
