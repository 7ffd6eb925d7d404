// `pennon backup FILE`: writes everything of an instance into one file, whether it is running or stopped.

import { setPriority } from 'node:os'
import { resolve } from 'node:path'
import { type BackupReport, backUp } from '#compose/backup/backup.ts'
import { systemClock } from '#compose/instance/machine.ts'
import { type Config, readConfig } from '#config.ts'
import { copyProgress } from './copy-progress.ts'
import { readableBytes } from './readable-bytes.ts'
import { refuse } from './refuse.ts'
import { stopOnSignals } from './stop-on-signals.ts'

/** A lower priority than the instance has, which must answer during a backup. */
const niceness = 10

export async function backup(file: string): Promise<void> {
  const read = readConfig(process.env)
  if (!read.ok) refuse(read.error)
  process.umask(0o077)
  setPriority(niceness)
  const progress = copyProgress('backing up')
  const done = await stopOnSignals(
    signal =>
      backUp(read.value, resolve(file), {
        nowMs: systemClock.nowMs,
        checkStop: () => signal.throwIfAborted(),
        onProgress: progress.show,
      }),
    progress.end,
  )
  if (!done.ok) refuse(done.error)
  process.stdout.write(describeBackup(file, done.value, read.value))
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
    `${file}: ${readableBytes(bytes)}, ${isRunning ? 'while the instance was running' : 'from a stopped instance'}`,
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
