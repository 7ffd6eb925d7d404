// Checks the running instance or, if none runs, the ports that a start would take.

import { createServer } from 'node:net'
import type { Config } from '#config.ts'
import { formatCount } from '#core/format-count.ts'
import { isPartWorking, type Readiness, readinessParts } from '#http/handlers/health.ts'
import { type LockHolder, readLockHolder } from '#processes/data-lock.ts'
import { createBadFinding, createGoodFinding, type Finding, formatCause } from './finding.ts'

const answerMsMax = 3_000
const importOnlyNote = 'import-only (PENNON_IMPORT_ONLY): live events are answered 200 and discarded'

export async function checkInstance(config: Config): Promise<readonly Finding[]> {
  let holder: LockHolder | null
  try {
    holder = readLockHolder(config.dataFolder)
  } catch (cause) {
    const remedy = 'run doctor as the user that the instance runs as'
    return [createBadFinding('instance', `cannot tell whether an instance is running (${formatCause(cause)})`, remedy)]
  }
  if (holder?.command === 'backup' || holder?.command === 'restore')
    return [
      createGoodFinding(
        'instance',
        `not running; process ${holder.pid} (pennon ${holder.command}) is using the data folder, and a start waits until it ends`,
      ),
    ]
  if (holder !== null) return [await checkRunningInstance(config, holder)]
  const { adminPort, eventsPort, port } = config
  return [
    createGoodFinding(
      'instance',
      config.importOnly ? `not running; a start would be ${importOnlyNote}` : 'not running',
    ),
    await checkPort('PORT', config, port),
    ...(adminPort === null ? [] : [await checkPort('PENNON_ADMIN_PORT', config, adminPort)]),
    ...(eventsPort === null ? [] : [await checkPort('PENNON_EVENTS_PORT', config, eventsPort)]),
  ]
}

async function checkRunningInstance({ host, port }: Config, { pid, url: noted }: LockHolder): Promise<Finding> {
  if (noted === null && port === 0) return createGoodFinding('instance', `running as process ${pid}`)
  const url = `${noted ?? `http://${host.includes(':') ? `[${host}]` : host}:${port}`}/_readiness`
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(answerMsMax) })
    const readiness = (await response.json()) as Readiness
    const troubles = readinessParts
      .map(part => [part, readiness[part]] as const)
      .filter(([, state]) => !isPartWorking(state))
    const running = `running as process ${pid}${readiness.capture === 'import_only' ? `, ${importOnlyNote}` : ''}`
    const {
      capture_reason: captureReason,
      processing_reason: processingReason,
      imports_refused: importsRefused,
      lost_records: lostCount = 0,
    } = readiness
    const reasons = [captureReason, processingReason].filter(reason => reason !== undefined).join('; ')
    if (troubles.length === 0 && lostCount > 0)
      return createBadFinding(
        'instance',
        `${running}; ${formatCount(lostCount, 'accepted record is', 'accepted records are')} missing from its log`,
        lostRemedy,
      )
    const imports = importsRefused === undefined ? '' : `; imports are currently refused: ${importsRefused}`
    if (troubles.length === 0)
      return createGoodFinding('instance', `${running}; flags, capture and processing are ok${imports}`)
    const found = `${running}; ${troubles.map(([part, state]) => `${part}: ${state}`).join(', ')}${reasons === '' ? '' : ` (${reasons})`}`
    return createBadFinding('instance', found, troubles.map(([part, state]) => findRemedy(part, state)).join('; '))
  } catch (cause) {
    return createBadFinding(
      'instance',
      `process ${pid} holds the data folder, but ${url} does not respond (${formatCause(cause)})`,
      noted === null
        ? 'run doctor with the PORT and HOST of the instance; if they are correct, restart it'
        : 'restart it',
    )
  }
}

const lostRemedy =
  'log/lost-records.jsonl in the data folder lists them, and the damaged file that held them if it still exists: send them again if you can, then remove lost-records.jsonl'

/** What to do about a state that `/_readiness` reports for one of its parts. */
function findRemedy(part: string, state: string): string {
  if (state === 'log_or_disk_full')
    return 'free disk space or lower PENNON_MIN_FREE_BYTES; if the log has reached PENNON_LOG_MAX_BYTES, raise that'
  if (state === 'log_files_removed') return 'restart Pennon; it then counts the missing records'
  if (state === 'state_files_removed')
    return 'stop Pennon, put state.db back or restore a backup, and start it again; events accepted since then are in its log'
  if (state === 'event_store_unavailable')
    return "the embedded event store restarts automatically; restart an external one (CLICKHOUSE_URL) yourself. If it does not recover, check the instance's output for the reason, often a full disk. Accepted events wait in the log"
  if (part === 'events') return 'see "stored events" below'
  if (part === 'processing')
    return "processing catches up automatically and nothing is lost; if it does not, check the instance's output"
  return `check the instance's output for why ${part} is ${state}`
}

async function checkPort(name: string, { host, dataFolder }: Config, port: number): Promise<Finding> {
  const failure = await new Promise<string | null>(resolve => {
    const server = createServer()
    server.once('error', (cause: Error & { code?: string }) => resolve(cause.code ?? cause.message))
    server.listen(port, host, () => server.close(() => resolve(null)))
  })
  if (failure === null) return createGoodFinding('port', `${host}:${port} is free`)
  if (failure === 'EADDRINUSE' && (await isPennon(host, port)))
    return createBadFinding(
      'port',
      `another Pennon is serving on ${host}:${port}: its data folder is not ${dataFolder}, or was removed or replaced`,
      `to check that instance, set PENNON_DATA to its folder (printed as Data when it started); to start another, set ${name} to a free port`,
    )
  return createBadFinding(
    'port',
    `${host}:${port} cannot be used (${failure})`,
    portRemedies[failure]?.(name) ?? `set ${name}`,
  )
}

/** Whether the server at this address answers like a Pennon instance. */
async function isPennon(host: string, port: number): Promise<boolean> {
  const reached = host === '0.0.0.0' || host === '::' ? 'localhost' : host.includes(':') ? `[${host}]` : host
  try {
    const response = await fetch(`http://${reached}:${port}/_readiness`, { signal: AbortSignal.timeout(answerMsMax) })
    const parts = (await response.json()) as Record<string, unknown>
    return ['flags', 'capture', 'processing'].every(part => typeof parts[part] === 'string')
  } catch {
    return false
  }
}

const portRemedies: Readonly<Record<string, (name: string) => string>> = {
  EADDRINUSE: name => `stop the program that uses it, or set ${name} to a free port`,
  EACCES: name => `set ${name} to a port above 1023`,
  EADDRNOTAVAIL: () => 'set HOST to an address of this machine: 127.0.0.1, or 0.0.0.0 for all of them',
}
