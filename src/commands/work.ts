// `pennon work`: the worker process. Under `serve` it reports state and metrics to its parent, which sends it wake-ups.

import { systemClock } from '#compose/instance/machine.ts'
import { findPostgresProblem } from '#compose/stores/check-stores.ts'
import { openGeoip } from '#compose/stores/geoip.ts'
import { readStateUrls } from '#compose/stores/state.ts'
import { findStateProblem } from '#compose/stores/store-faults.ts'
import { composeWorker } from '#compose/worker/worker.ts'
import { sendToParent, watchParent } from '#processes/child-channel.ts'
import { type LockHolder, readLockHolder } from '#processes/data-lock.ts'
import type { ToWorker } from '#processes/messages.ts'
import { LogMismatchError } from '#services/progress/bind-log.ts'
import { createLogger, exitAfterLogging } from '#telemetry/log.ts'
import { createMetrics } from '#telemetry/metrics.ts'
import { growHeapSlowly, releaseMemoryWhenIdle } from '#telemetry/release-memory.ts'
import { createGeoipFromTable, type GeoipTable } from './create-table-geoip.ts'
import { areTestHooksAllowed } from './hooks.ts'
import { createMovableClock } from './movable-clock.ts'
import { lockDataFolderAsChild, openOrEndProcess } from './open-as-child.ts'
import { readConfigOrRefuse, refuse } from './refuse.ts'

const reportEveryMs = 5_000

export async function runWorkCommand(options: { testClock?: string; testGeoip?: string } = {}): Promise<void> {
  process.title = 'pennon work'
  const config = readConfigOrRefuse()
  for (const [name, value] of [
    ['--test-clock', options.testClock],
    ['--test-geoip', options.testGeoip],
  ]) {
    if (value !== undefined && !areTestHooksAllowed(config.host)) refuse(`${name} is for tests on loopback only.`)
  }
  const unfit = findStateProblem(config)
  if (unfit !== null) refuse(unfit)
  const testClock = options.testClock === undefined ? null : createMovableClock(Number(options.testClock))

  const logger = createLogger({ level: config.logLevel, process: 'work' })
  // A manually started worker takes no lock, so `serve` can start: each log stream has only one owner even without the
  // lock.
  if (process.send !== undefined) await lockDataFolderAsChild(config, logger)
  else {
    refuseIfLocked(config.dataFolder)
    const url = readStateUrls(config)?.url
    const refusal = url === undefined ? null : await openOrEndProcess(logger, () => findPostgresProblem(url))
    if (refusal !== null) refuse(refusal)
  }
  const metrics = createMetrics({ process: 'work' })
  const database = openGeoip(config, logger)
  if (!database.ok) refuse(database.error)
  const geoip =
    options.testGeoip === undefined ? database.value : createGeoipFromTable(JSON.parse(options.testGeoip) as GeoipTable)
  const stopping = new AbortController()
  const worker = await openOrEndProcess(logger, () =>
    composeWorker({
      config,
      clock: testClock ?? systemClock,
      geoip,
      logger,
      metrics,
      onStateChange: state => sendToParent({ type: 'processing', state }),
      onProcessedUntil: (traffic, until) => sendToParent({ type: 'processed', traffic, until }),
    }),
  )
  // Set this V8 flag only after everything is loaded: with another flag, V8 ignores the code that `serve` cached on disk,
  // compiles each module again and replaces the cached code; then `serve` would have to do the same at its next start.
  growHeapSlowly()

  watchParent(
    () => stopping.abort(),
    message => {
      const known = message as ToWorker
      if (known.type === 'wake_up') worker.wakeUp(known.stream)
      if (known.type === 'test_clock') testClock?.set(known.nowMs)
    },
  )
  const reportToParent = () => {
    sendToParent({ type: 'processing', state: worker.state() })
    metrics.registry
      .getMetricsAsJSON()
      .then(snapshot => sendToParent({ type: 'metrics', metrics: snapshot }), logFailure)
  }
  const logFailure = (cause: unknown) => logger.warn({ err: cause }, 'cannot collect metrics')
  const timer = setInterval(reportToParent, reportEveryMs)
  reportToParent()
  // Gives memory back when idle; otherwise the process would keep 450 MiB after a backlog.
  releaseMemoryWhenIdle()

  const end = await worker.run(stopping.signal).catch(cause => {
    if (!(cause instanceof LogMismatchError)) throw cause
    logger.error(cause.message)
    return 'not_owner' as const
  })
  clearInterval(timer)
  await worker.close()
  if (end === 'not_owner') logger.warn('another worker took over the log; this one exits')
  await exitAfterLogging(logger, end === 'not_owner' ? 3 : 0)
}

/**
 * Refuses to start next to `serve`: this worker would take the log from the worker of `serve`, which would end, restart and
 * take it back.
 */
function refuseIfLocked(dataFolder: string): void {
  let holder: LockHolder | null
  try {
    holder = readLockHolder(dataFolder)
  } catch (cause) {
    refuse(`cannot tell whether an instance is running in ${dataFolder} (${(cause as Error).message})`)
  }
  if (holder === null) return
  const reason =
    holder.command === 'serve'
      ? 'runs its own worker, so no other is needed'
      : 'needs it to stay unchanged: wait until it has ended'
  refuse(`process ${holder.pid} (pennon ${holder.command}) is using the data folder ${dataFolder} and ${reason}.`)
}
