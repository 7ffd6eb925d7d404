// A whole instance on this host: the folder's lock, the first project, the front (or several), and the supervised
// children. `serve` runs it for people, tests run it with a clock and a log of their own.

import cluster from 'node:cluster'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { fileURLToPath } from 'node:url'
import type { LogLane } from '#core/events/captured-event.ts'
import type { GeoipDatabase } from '../adapters/geoip/open-geoip.ts'
import { systemClock } from '../adapters/system/clock.ts'
import { followEmbeddedEngine } from '../compose/embedded-engine.ts'
import { composeFront, type Front, type FrontHost, type FrontOverrides, type FrontStart } from '../compose/front.ts'
import { openGeoip } from '../compose/geoip.ts'
import { startSeriesAtZero } from '../compose/initial-series.ts'
import {
  type Bootstrapped,
  bindOwnLog,
  bootstrap,
  checkBootstrap,
  type InstanceState,
  judgeReturnedState,
  openInstanceState,
  type StateWriter,
} from '../compose/start.ts'
import { findStateFault, stateDamage } from '../compose/store-faults.ts'
import type { Config } from '../config.ts'
import { err, ok, type Result } from '../core/result.ts'
import type { Clock } from '../ports/clock.ts'
import { PortError } from '../ports/port-error.ts'
import { machineEnvironment, workerEnvironment } from '../processes/child-environment.ts'
import { acquireDataLock, type DataLock } from '../processes/data-lock.ts'
import type { FromWorker, ProcessingState } from '../processes/messages.ts'
import { watchSilence } from '../processes/silence.ts'
import { SupervisedChild } from '../processes/supervisor.ts'
import type { Logger } from '../telemetry/log.ts'
import { createMetrics } from '../telemetry/metrics.ts'
import { ProcessNumbers } from '../telemetry/process-numbers.ts'
import { version } from '../version.ts'
import { startFrontCluster } from './front-cluster.ts'
import { type GeoipTable, tableGeoip } from './test-geoip.ts'

const mainPath = fileURLToPath(new URL('../main.ts', import.meta.url))
/**
 * Beside each other: the worker's end, and the fronts', which take up to 6 s when clients and the database are slow
 * (`closeServer`, the last flush, `end-in-time.ts`). Behind both: the engine's. So 8.5 s of the 10 that a stop may take.
 */
const grace = { workerMs: 4_000, eventsMs: 2_000 }
const lockWaitMs = 10_000
/** Processes report every 5 s. */
const silenceMsMax = 12_000
/**
 * Without a word for this long, a child is replaced. The engine says every 2 s that it answers; a worker may be held up by
 * one large chunk, and to replace it loses nothing but time.
 */
const replacedAfterMs = { work: 60_000, events: 12_000 }

export interface Service {
  readonly url: string
  readonly adminUrl: string | null
  readonly bootstrapped: Bootstrapped
  /** The place of the database that has the state; null when the state is in the data folder. */
  readonly statePlace: string | null
  /** Process ids of the children, by name, as of now. */
  childPids(): Record<string, number | undefined>
  processingState(): ProcessingState
  /** Tests only: moves the injected clock of the worker. */
  setWorkerClock(nowMs: number): void
  /** Stops accepting, finishes requests, writes what is queued, ends the children, gives the folder back. */
  stop(): Promise<void>
}

export interface ServiceOptions extends FrontOverrides, FrontStart {
  readonly config: Config
  readonly logger: Logger
  /** What the children read their settings from. */
  readonly environment: NodeJS.ProcessEnv
  /** Replaces the system clock in the front and, by a hidden option, in the worker. */
  readonly clock?: Clock
  /** Replaces the GeoIP database in the front and, by a hidden option, in the worker. */
  readonly geoipTable?: GeoipTable
  /** False: no worker is started, the log is processed elsewhere or not at all. */
  readonly runsWorker?: boolean
  /** Another instance has taken the state or the data folder over; has to stop this one. Gets a line for people. */
  readonly onSuperseded?: (line: string) => void
}

/** With a line for people. */
class StartRefused extends Error {}

/** @returns one line for a person when the start has to be refused: folder or database in use, folder not writable, port in use, a log of another state. */
export async function startService(options: ServiceOptions): Promise<Result<Service, string>> {
  const { config, logger, environment } = options
  const clock = options.clock ?? systemClock
  const metrics = createMetrics({ process: 'serve' })
  metrics.buildInfo.set({ version, node: process.versions.node }, 1)
  startSeriesAtZero(metrics)
  const geoip = openGeoip(config, logger)
  if (!geoip.ok) return geoip
  logGeoip(geoip.value, logger)
  // Files hold people's data, and a folder that was there before may be open to others. Children inherit it.
  process.umask(0o077)
  const locked = await acquireDataLock(config.dataFolder, {
    command: 'serve',
    waitMsMax: lockWaitMs,
    onWaiting: () => logger.warn('the data folder is in use; waiting up to 10 s for its holder to end'),
    onCopying: line => logger.warn(line),
  })
  if (!locked.ok) {
    geoip.value?.close()
    return locked
  }
  const lock = locked.value
  const onSuperseded = options.onSuperseded ?? ((line: string) => logger.error(line))
  lock.watch({ retaken: line => logger.error(line), lost: onSuperseded })

  let processing: ProcessingState = 'starting'
  const processedUntilMs = new Map<LogLane, number>()
  const numbers = new ProcessNumbers({ silentAfterMs: silenceMsMax, monotonicNowMs: () => performance.now() })
  const setProcessing = (state: ProcessingState) => {
    processing = state
    fronts?.tellProcessing(state)
  }
  // When its last word was `ok`, nothing else would take that back; in any other state processing waits for it anyway.
  const silence = watchSilence(silenceMsMax, () => {
    if (processing === 'ok') setProcessing('not_answering')
  })
  const worker = new SupervisedChild({
    ...childOptions('work', lock),
    env: workerEnvironment(environment),
    silentAfterMs: replacedAfterMs.work,
    args: () => [
      'work',
      ...(options.clock === undefined ? [] : ['--test-clock', String(clock.nowMs())]),
      ...(options.geoipTable === undefined ? [] : ['--test-geoip', JSON.stringify(options.geoipTable)]),
    ],
    onMessage: received => {
      const message = received as FromWorker
      silence.heard()
      if (message.type === 'processing') setProcessing(message.state)
      if (message.type === 'processed') {
        processedUntilMs.set(message.lane, message.appendedBeforeMs)
        fronts?.tellProcessed(message.lane, message.appendedBeforeMs)
      }
      if (message.type === 'metrics') numbers.report('work', message.metrics)
    },
    onRestart: () => {
      setProcessing('restarting')
      metrics.childRestarts.inc({ process: 'work' })
    },
  })
  const engine = followEmbeddedEngine(config, logger, isAway => fronts?.tellEventStore(isAway))
  const events =
    config.clickhouseUrl === null
      ? new SupervisedChild({
          ...childOptions('events', lock),
          env: machineEnvironment(environment),
          silentAfterMs: replacedAfterMs.events,
          args: engine.prepare,
          onMessage: engine.answered,
          onExit: () => {
            engine.ended()
            onChildExit('events', lock)
          },
          onRestart: () => metrics.childRestarts.inc({ process: 'events' }),
        })
      : null

  metrics.onCollect(() => {
    const isWorking = worker.pid !== undefined && !numbers.isSilent('work')
    if (options.runsWorker !== false) metrics.processes.set({ process: 'work' }, isWorking ? 1 : 0)
    if (events !== null) metrics.processes.set({ process: 'events' }, events.pid === undefined ? 0 : 1)
  })

  let fronts: Awaited<ReturnType<typeof startFrontCluster>> | undefined
  let front: Front | undefined
  let state: InstanceState | undefined
  let management: StateWriter | undefined
  /** Stops what was started so far. */
  const stopAll = async () => {
    silence.stop()
    // The worker needs nothing of the fronts: what they still accept is in the log, for the next start.
    await Promise.all([worker.stop(grace.workerMs), fronts?.stop(), front?.close(), management?.close()])
    // Behind everybody who uses the state, or writes into the engine.
    await Promise.all([events?.stop(grace.eventsMs), state?.release()])
    geoip.value?.close()
    lock.release()
  }
  try {
    // Before keys are made, which are shown only once.
    await tryPorts(config)
    const fault = findStateFault(config)
    if (fault !== null) throw new StartRefused(`${fault.found}. ${fault.remedy}.`)
    state = granted(
      await openInstanceState(config, logger, {
        waitMsMax: lockWaitMs,
        onWaiting: () => logger.warn('the database is in use; waiting up to 10 s for its holder to end'),
        onSuperseded,
      }),
    )
    management = state.management
    await checkBootstrap(config, management)
    granted(await bindOwnLog(config, logger, management))
    state.judgeReturns(found => judgeReturnedState(config, found))
    const bootstrapped = await bootstrap(config, clock, management)
    const host: FrontHost = {
      nudge: lane => worker.send({ type: 'nudge', lane }),
      processingState: () => processing,
      isEventStoreAway: () => events !== null && engine.isAway(),
      processedUntilMs: lane => processedUntilMs.get(lane) ?? null,
      otherMetrics: async () => numbers.all(),
    }
    let addresses: { url: string; adminUrl: string | null }
    if (config.frontProcesses > 1 && cluster.isPrimary) {
      await management.close() // each front opens its own
      management = undefined
      fronts = await startFrontCluster({ config, environment, logger, metrics, mainPath, host, numbers })
      addresses = fronts.addresses
    } else {
      front = await composeFront({
        config,
        clock,
        geoip: options.geoipTable === undefined ? geoip.value : tableGeoip(options.geoipTable),
        logger,
        metrics,
        host,
        management,
        ...overridesOf(options),
        ...(options.beforeListening && { beforeListening: options.beforeListening }),
      })
      management = undefined // the front closes it
      addresses = await front.listen()
    }
    await events?.start()
    if (options.runsWorker !== false) await worker.start()
    return ok({
      ...addresses,
      bootstrapped,
      statePlace: state.place,
      childPids: () => ({ work: worker.pid, events: events?.pid }),
      processingState: () => processing,
      setWorkerClock: nowMs => worker.send({ type: 'clock', nowMs }),
      stop: stopAll,
    })
  } catch (cause) {
    await stopAll()
    return err(startFailure(cause as Error & { code?: string }, config))
  }

  function childOptions(name: string, dataLock: DataLock) {
    return {
      name,
      mainPath,
      logger,
      random: Math.random,
      onStart: (pid: number) => dataLock.setChild(name, pid),
      onExit: () => onChildExit(name, dataLock),
    }
  }

  function onChildExit(name: string, dataLock: DataLock) {
    dataLock.setChild(name, null)
    numbers.ended(name)
  }
}

/** @throws the error of `listen` when a port is in use or may not be used. */
async function tryPorts({ host, port, adminPort }: Config): Promise<void> {
  for (const tried of [port, adminPort ?? 0]) {
    if (tried === 0) continue
    const server = createServer()
    server.listen(tried, host)
    await once(server, 'listening')
    server.close()
    await once(server, 'close')
  }
}

function logGeoip(geoip: GeoipDatabase | null, logger: Logger): void {
  if (geoip === null) logger.info('no GeoIP database is installed: events and evaluations get no location')
  else logger.info({ origin: geoip.origin, builtAt: new Date(geoip.builtAtMs).toISOString() }, 'GeoIP is on')
}

function overridesOf(options: ServiceOptions): FrontOverrides {
  return { ...(options.eventLog && { eventLog: options.eventLog }) }
}

/** @throws StartRefused */
function granted<T>(result: Result<T, string>): T {
  if (result.ok) return result.value
  throw new StartRefused(result.error)
}

function startFailure(cause: Error & { code?: string; syscall?: string; port?: number }, config: Config): string {
  if (cause instanceof StartRefused) return cause.message
  const { port = config.port } = cause
  const setting = port !== config.port && port === config.adminPort ? 'PENNON_ADMIN_PORT' : 'PORT'
  const place = `${config.host}:${port}`
  if (cause.code === 'EADDRINUSE')
    return `The address ${place} is in use by another program. Stop it, or set ${setting} to a free port.`
  if (cause.code === 'EACCES')
    return `The address ${place} may not be used by this user. Set ${setting} to a port above 1023.`
  if (cause.code === 'EADDRNOTAVAIL')
    return `The address ${config.host} is not one of this machine's. Set HOST to one that is.`
  if (cause.syscall === 'getaddrinfo')
    return `No address is found for HOST ${config.host} (${cause.code}). Set HOST to an address of this machine: 127.0.0.1, or 0.0.0.0 for all of them.`
  if (cause instanceof PortError && cause.port === 'state' && cause.code === 'corrupt' && config.databaseUrl === null) {
    const { found, remedy } = stateDamage(config, cause)
    return `${found}. ${remedy}.`
  }
  return `The start failed: ${cause.message}`
}
