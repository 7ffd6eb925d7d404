// `pennon work`: the worker process. Under `serve` it reports its state and numbers to the parent and is nudged by it.

import { systemClock } from '../adapters/system/clock.ts'
import { openGeoip } from '../compose/geoip.ts'
import { composeWorker } from '../compose/worker.ts'
import { readConfig } from '../config.ts'
import { watchParent } from '../processes/child-channel.ts'
import { shareDataLock } from '../processes/data-lock.ts'
import type { FromWorker, ToWorker } from '../processes/messages.ts'
import { LogLeftError } from '../services/processing/bind-log.ts'
import { giveBackWhenQuiet, growHeapSlowly } from '../telemetry/give-back-memory.ts'
import { createLogger } from '../telemetry/log.ts'
import { createMetrics } from '../telemetry/metrics.ts'
import { refuse } from './refuse.ts'
import { isTestClockAllowed, movableClock } from './test-clock.ts'
import { type GeoipTable, tableGeoip } from './test-geoip.ts'

const reportEveryMs = 5_000

export async function work(options: { testClock?: string; testGeoip?: string } = {}): Promise<void> {
  process.title = 'pennon work'
  growHeapSlowly()
  const read = readConfig(process.env)
  if (!read.ok) refuse(read.error)
  const config = read.value
  for (const [name, value] of [
    ['--test-clock', options.testClock],
    ['--test-geoip', options.testGeoip],
  ]) {
    if (value !== undefined && !isTestClockAllowed(config.host)) refuse(`${name} is for tests on loopback only.`)
  }
  const testClock = options.testClock === undefined ? null : movableClock(Number(options.testClock))

  // One that was started by hand holds up no start: lanes belong to one worker anyway.
  if (process.send !== undefined) shareDataLock(config.dataFolder)
  const logger = createLogger({ level: config.logLevel, process: 'work' })
  const metrics = createMetrics({ process: 'work' })
  const database = openGeoip(config, logger)
  if (!database.ok) refuse(database.error)
  const geoip =
    options.testGeoip === undefined ? database.value : tableGeoip(JSON.parse(options.testGeoip) as GeoipTable)
  const stopping = new AbortController()
  const worker = await composeWorker({
    config,
    clock: testClock ?? systemClock,
    geoip,
    logger,
    metrics,
    onStateChange: state => tell({ type: 'processing', state }),
    onProcessedUntil: (lane, appendedBeforeMs) => tell({ type: 'processed', lane, appendedBeforeMs }),
  })

  watchParent(
    () => stopping.abort(),
    message => {
      const known = message as ToWorker
      if (known.type === 'nudge') worker.nudge(known.lane)
      if (known.type === 'clock') testClock?.set(known.nowMs)
    },
  )
  const report = () => {
    tell({ type: 'processing', state: worker.state() })
    metrics.registry.getMetricsAsJSON().then(snapshot => tell({ type: 'metrics', metrics: snapshot }), reportFailure)
  }
  const reportFailure = (cause: unknown) => logger.warn({ err: cause }, 'metrics could not be collected')
  const timer = setInterval(report, reportEveryMs)
  report()
  // A worked-off backlog would leave 450 MiB behind.
  giveBackWhenQuiet()

  const end = await worker.run(stopping.signal).catch(cause => {
    if (!(cause instanceof LogLeftError)) throw cause
    logger.error(cause.message)
    return 'not_owner' as const
  })
  clearInterval(timer)
  await worker.close()
  if (end === 'not_owner') logger.warn('another worker owns the log now; this one ends')
  process.exit(end === 'not_owner' ? 3 : 0)
}

function tell(message: FromWorker): void {
  if (process.connected) process.send!(message, () => undefined) // a parent that is gone is noticed by its channel
}
