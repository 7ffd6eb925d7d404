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

/** Lower priority than the instance, which has to answer meanwhile. */
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
  process.stdout.write(whatIsInIt(file, done.value, read.value))
}

function whatIsInIt(
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
    `${file}: ${readableBytes(bytes)}, ${isRunning ? 'beside a running instance' : 'of a stopped instance'}`,
    `  in it: ${inIt.join(', ')}${from.length === 0 ? '' : `; processed up to ${from.join(', ')}`}`,
    ...(schema === null
      ? [
          '  not in it: the state in PostgreSQL. Its dump has to be older than this file, and without the salts of',
          "  cookieless visitors: pg_dump --exclude-table-data='*.cookieless_salt'.",
        ]
      : []),
    ...(events ? [] : ['  not in it: the events in ClickHouse. Their copy has to be newer than this file.']),
    ...(config.encryptionKeys.length === 0
      ? []
      : ['  not in it: PENNON_ENCRYPTION_KEY, without which encrypted payloads are lost.']),
    ...warnings.map(line => `  ${line}`),
    '  It holds secrets and data of people: keep it as you keep the data folder. Back with: pennon restore',
  ]
  return `${lines.join('\n')}\n`
}
