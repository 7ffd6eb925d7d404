// `pennon backup FILE`: writes everything of an instance into one file, whether it is running or stopped.

import { setPriority } from 'node:os'
import { resolve } from 'node:path'
import { type BackupReport, backUpInstance } from '#compose/backup/backup.ts'
import { systemClock } from '#compose/instance/machine.ts'
import type { Config } from '#config.ts'
import { formatBytes } from './format-bytes.ts'
import { backupNiceness, runInterruptibleCopy } from './interruptible-copy.ts'
import { readConfigOrRefuse } from './refuse.ts'

export async function runBackupCommand(file: string): Promise<void> {
  const config = readConfigOrRefuse()
  setPriority(backupNiceness)
  const { nowMs } = systemClock
  const report = await runInterruptibleCopy('backing up', options =>
    backUpInstance(config, resolve(file), { ...options, nowMs }),
  )
  process.stdout.write(describeBackup(file, report, config))
}

function describeBackup(
  file: string,
  { bytes, isRunning, description, hasEncryptionKey, warnings }: BackupReport,
  config: Config,
) {
  const { schema, events, positions } = description
  const inIt = [
    ...(schema === null ? [] : [`state (schema ${schema})`]),
    ...(events ? ['events'] : []),
    'log',
    ...(hasEncryptionKey ? ['encryption key'] : []),
  ]
  const from = Object.entries(positions).map(([stream, offset]) => `${stream} ${offset}`)
  const lines = [
    `${file}: ${formatBytes(bytes)}, ${isRunning ? 'while the instance was running' : 'from a stopped instance'}`,
    `  includes: ${inIt.join(', ')}${from.length === 0 ? '' : `; processed up to ${from.join(', ')}`}`,
    ...(schema === null
      ? [
          '  not included: the state in PostgreSQL. Restore a dump that is older than this file, without the salts of',
          "  cookieless visitors: pg_dump --exclude-table-data='*.cookieless_salt'.",
        ]
      : []),
    ...(events ? [] : ['  not included: the events in ClickHouse. Restore a copy that is newer than this file.']),
    ...(config.encryptionKeys.length === 0
      ? []
      : ['  not included: PENNON_ENCRYPTION_KEY. Keep it: without it, encrypted payloads are lost.']),
    ...warnings.map(line => `  ${line}`),
    '  It contains secrets and personal data: protect it like the data folder. Restore it with: pennon restore',
  ]
  return `${lines.join('\n')}\n`
}
