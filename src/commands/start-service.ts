// Starts a whole instance on this host: takes the data folder's lock, creates the first project, and starts the front
// (or several) and the supervised children. `serve` runs it for people; tests run it with their own clock and log.

import cluster from 'node:cluster'
import { once } from 'node:events'
import { statfsSync } from 'node:fs'
import { createServer } from 'node:net'
import { fileURLToPath } from 'node:url'
import type { FrontHost } from '#compose/front/context.ts'
import { composeFront, type Front, type FrontStart } from '#compose/front/front.ts'
import { repairCopiedEngineFolder, watchEmbeddedEngine } from '#compose/instance/embedded-engine.ts'
import { initializeMetricSeries } from '#compose/instance/initialize-metric-series.ts'
import { systemClock } from '#compose/instance/machine.ts'
import { bindLogToState, bootstrapInstance, checkBootstrap, checkStateAfterOutage } from '#compose/instance/start.ts'
import { findEventStoreProblem } from '#compose/stores/check-stores.ts'
import { type GeoipDatabase, noGeoip, openGeoip } from '#compose/stores/geoip.ts'
import { type InstanceState, openInstanceState, type StateWriter } from '#compose/stores/state.ts'
import {
  findEngineFault,
  findStateFault,
  findStateProblem,
  type StoreFault,
  toStateFault,
} from '#compose/stores/store-faults.ts'
import type { Config } from '#config.ts'
import type { Traffic } from '#core/events/log-stream.ts'
import type { ProcessedUntil } from '#core/events/processed-until.ts'
import { err, ok, type Result } from '#core/result.ts'
import { PortError, UnfitSchemaError } from '#ports/port-error.ts'
import { pickMachineEnvironment, pickWorkerEnvironment } from '#processes/child-environment.ts'
import { acquireDataLock, type DataLock } from '#processes/data-lock.ts'
import type { FromWorker, ProcessingState } from '#processes/messages.ts'
import { watchForSilence } from '#processes/silence.ts'
import { SupervisedChild } from '#processes/supervisor.ts'
import type { FirstStartResult } from '#services/manage/first-start.ts'
import type { Logger } from '#telemetry/log.ts'
import { createMetrics } from '#telemetry/metrics.ts'
import { ProcessMetrics } from '#telemetry/process-metrics.ts'
import { version } from '#version.ts'
import { createGeoipFromTable } from './create-table-geoip.ts'
import { startFrontCluster } from './front-cluster.ts'
import type { TestHooks } from './hooks.ts'

const mainPath = fileURLToPath(new URL('../main.ts', import.meta.url))
/**
 * The worker and the fronts stop at the same time; fronts take up to 6 s when clients and the database are slow
 * (`closeServer`, the last flush, `close-connections.ts`). The engine stops after both. That makes 8.5 s of the 10 s that a
 * stop may take.
 */
const grace = { workerMs: 4_000, eventsMs: 2_000 }
const lockWaitMs = 10_000
/** How long a process may be silent: processes report every 5 s. */
const silenceMsMax = 12_000
/**
 * A child that sends nothing for this long is replaced. The engine reports every 2 s that it answers. One large chunk may
 * hold up a worker longer, but replacing the worker costs only time.
 */
const replacedAfterMs = { work: 60_000, events: 12_000 }

export interface Service {
  readonly url: string
  readonly adminUrl: string | null
  readonly bootstrapped: FirstStartResult
  /** Where the database with the state is; null when the state is in the data folder. */
  readonly statePlace: string | null
  /** Current process ids of the children, by name. */
  childPids(): Record<string, number | undefined>
  processingState(): ProcessingState
  /** Moves the worker's clock if `hooks` has a clock. */
  setTestClock(nowMs: number): void
  /** Writes the counts of the front at once instead of every few seconds; for tests of an instance with one front. */
  writeCounts(): Promise<void>
  /** Stops accepting requests, finishes open requests, writes what is queued, ends the children and unlocks the folder. */
  stop(): Promise<void>
}

export interface ServiceOptions extends FrontStart {
  readonly config: Config
  readonly logger: Logger
  /** The environment that the children read their settings from. */
  readonly environment: NodeJS.ProcessEnv
  /** Called before a first start creates keys, which are shown once, at the end of this start. */
  readonly beforeKeys?: () => void
  /** For tests. */
  readonly hooks?: TestHooks
  /**
   * Called with a line for people when another instance has taken over the state or the folder; must stop this instance.
   */
  readonly onSuperseded?: (line: string) => void
}

/** The start is refused. The message is a line for people. */
class StartRefused extends Error {}

/**
 * @returns a one-line message for people if the start has to be refused: the folder or the database is in use, the
 *   folder is not writable, a port is in use, or the log belongs to another state.
 */
export async function startService(options: ServiceOptions): Promise<Result<Service, string>> {
  const { config, logger, environment, hooks = {} } = options
  const { clock = systemClock, geoipTable } = hooks
  const metrics = createMetrics({ process: 'serve' })
  metrics.buildInfo.set({ version, node: process.versions.node }, 1)
  initializeMetricSeries(metrics)
  const unfit = findStateProblem(config) ?? (await findEventStoreProblem(config))
  if (unfit !== null) return err(unfit)
  const engineFault = findEngineFault(config)
  if (engineFault !== null) return err(formatFault(engineFault))
  const geoip = openGeoip(config, logger)
  if (!geoip.ok) return geoip
  logGeoip(geoip.value, logger)
  // Only this user may read new files: they hold personal data, and the folder may be open to others. Children inherit the
  // mask.
  process.umask(0o077)
  const locked = await acquireDataLock(config.dataFolder, {
    command: 'serve',
    waitMsMax: lockWaitMs,
    onWaiting: () =>
      logger.warn(
        'the data folder is in use; waiting up to 10 s for its process to end, or 30 s for children of a killed one',
      ),
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
  const processedUntil = new Map<Traffic, ProcessedUntil>()
  const numbers = new ProcessMetrics({ silentAfterMs: silenceMsMax, monotonicNowMs: () => performance.now() })
  const setProcessing = (state: ProcessingState) => {
    processing = state
    fronts?.send({ type: 'processing', state })
  }
  // Replaces the `ok` that a silent worker reported last, which would otherwise stay. Any other state already says that
  // nothing is processed.
  const silence = watchForSilence(silenceMsMax, () => {
    if (processing === 'ok') setProcessing('not_answering')
  })
  const worker = new SupervisedChild({
    ...buildChildOptions('work', lock),
    env: pickWorkerEnvironment(environment),
    silentAfterMs: replacedAfterMs.work,
    args: () => [
      'work',
      ...(hooks.clock === undefined ? [] : ['--test-clock', String(clock.nowMs())]),
      ...(geoipTable === undefined ? [] : ['--test-geoip', JSON.stringify(geoipTable)]),
    ],
    onMessage: received => {
      const message = received as FromWorker
      silence.heard()
      if (message.type === 'processing') setProcessing(message.state)
      if (message.type === 'processed') {
        processedUntil.set(message.traffic, message.until)
        fronts?.send(message)
      }
      if (message.type === 'metrics') numbers.report('work', message.metrics)
    },
    onRestart: () => {
      setProcessing('restarting')
      metrics.childRestarts.inc({ process: 'work' })
    },
  })
  const engine = watchEmbeddedEngine(config, logger, isUnavailable =>
    fronts?.send({ type: 'event_store', isUnavailable }),
  )
  const events =
    config.clickhouseUrl === null
      ? new SupervisedChild({
          ...buildChildOptions('events', lock),
          env: pickMachineEnvironment(environment),
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
    if (hooks.runsWorker !== false) metrics.processes.set({ process: 'work' }, isWorking ? 1 : 0)
    if (events !== null) metrics.processes.set({ process: 'events' }, events.pid === undefined ? 0 : 1)
  })

  let fronts: Awaited<ReturnType<typeof startFrontCluster>> | undefined
  let front: Front | undefined
  let state: InstanceState | undefined
  let management: StateWriter | undefined
  /** Whether clients may have reached the instance; if so, the folder may contain data to keep when the start fails. */
  let wasReachable = false
  /** Stops everything that was started so far. */
  const stopAll = async () => {
    silence.stop()
    events?.expectEnd()
    // The worker stops without waiting for the fronts: events that they still accept stay in the log until the next start.
    await Promise.all([worker.stop(grace.workerMs), fronts?.stop(), front?.close(), management?.close()])
    // Engine and state stop last, after everything that uses the state or writes into the engine.
    await Promise.all([events?.stop(grace.eventsMs), state?.release()])
    geoip.value?.close()
    if (wasReachable) lock.release()
    else lock.abandon()
  }
  try {
    // Try the ports before keys are created, since keys are shown only once.
    await tryPorts(config)
    const fault = findStateFault(config)
    if (fault !== null) throw new StartRefused(formatFault(fault))
    unwrapResult(repairCopiedEngineFolder(config, logger))
    state = unwrapResult(
      await openInstanceState(config, logger, {
        waitMsMax: lockWaitMs,
        onWaiting: () => logger.warn('the database is in use; waiting up to 10 s for its process to end'),
        onSuperseded,
      }),
    )
    management = state.management
    await checkBootstrap(config, management)
    unwrapResult(await bindLogToState(config, logger, management))
    state.judgeReturns(found => checkStateAfterOutage(config, found))
    const bootstrapped = await bootstrapInstance(config, clock, management, options.beforeKeys)
    const host: FrontHost = {
      wakeUp: stream => worker.send({ type: 'wake_up', stream }),
      processingState: () => processing,
      isEventStoreUnavailable: () =>
        events === null ? processing === 'waiting_for_event_store' : engine.isUnavailable(),
      processedUntil: traffic => processedUntil.get(traffic) ?? null,
      otherMetrics: async () => numbers.all(),
    }
    let addresses: { url: string; adminUrl: string | null }
    if (config.frontProcesses > 1 && cluster.isPrimary) {
      await management.close() // each front opens its own
      management = undefined
      fronts = await startFrontCluster({ config, environment, logger, metrics, mainPath, host, numbers })
      addresses = fronts.addresses
    } else {
      const handedOver = management
      management = undefined // the front closes it
      front = await composeFront({
        config,
        clock,
        geoip: geoipTable === undefined ? geoip.value : createGeoipFromTable(geoipTable),
        logger,
        metrics,
        host,
        management: handedOver,
        ...(hooks.eventLog && { eventLog: hooks.eventLog }),
        ...(options.beforeListening && { beforeListening: options.beforeListening }),
      })
      addresses = await front.listen()
    }
    wasReachable = true
    lock.setUrl(addresses.url)
    await events?.start()
    if (hooks.runsWorker !== false) await worker.start()
    return ok({
      ...addresses,
      bootstrapped,
      statePlace: state.place,
      childPids: () => ({ work: worker.pid, events: events?.pid }),
      processingState: () => processing,
      writeCounts: async () => front?.writeCounts(),
      setTestClock: nowMs => worker.send({ type: 'test_clock', nowMs }),
      stop: stopAll,
    })
  } catch (cause) {
    await stopAll()
    return err(describeStartFailure(cause as Error & { code?: string }, config))
  }

  function buildChildOptions(name: string, dataLock: DataLock) {
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

/** @throws the error of `listen` if a port is in use or may not be used. */
async function tryPorts({ host, port, adminPort, eventsPort }: Config): Promise<void> {
  for (const tried of [port, adminPort ?? 0, eventsPort ?? 0]) {
    if (tried === 0) continue
    const server = createServer()
    server.listen(tried, host)
    await once(server, 'listening')
    server.close()
    await once(server, 'close')
  }
}

function logGeoip(geoip: GeoipDatabase | null, logger: Logger): void {
  if (geoip === null) logger.info(formatFault(noGeoip))
  else logger.info({ origin: geoip.origin, builtAt: new Date(geoip.builtAtMs).toISOString() }, 'GeoIP enabled')
}

/** @throws StartRefused */
function unwrapResult<T>(result: Result<T, string>): T {
  if (result.ok) return result.value
  throw new StartRefused(result.error)
}

function findPortSetting(port: number, config: Config): string {
  if (port === config.port) return 'PORT'
  return port === config.adminPort ? 'PENNON_ADMIN_PORT' : port === config.eventsPort ? 'PENNON_EVENTS_PORT' : 'PORT'
}

function describeStartFailure(
  cause: Error & { code?: string; syscall?: string; port?: number },
  config: Config,
): string {
  if (cause instanceof StartRefused || cause instanceof UnfitSchemaError) return cause.message
  const { port = config.port } = cause
  const setting = findPortSetting(port, config)
  const place = `${config.host}:${port}`
  if (cause.code === 'EADDRINUSE')
    return `The address ${place} is in use by another program. Stop it, or set ${setting} to a free port.`
  if (cause.code === 'EACCES')
    return `This user is not allowed to listen on ${place}. Set ${setting} to a port above 1023.`
  if (cause.code === 'EADDRNOTAVAIL') return `${config.host} is not an address of this machine. Set HOST to one.`
  if (cause.syscall === 'getaddrinfo')
    return `HOST ${config.host} cannot be resolved (${cause.code}). Set HOST to an address of this machine: 127.0.0.1, or 0.0.0.0 for all of them.`
  if (cause instanceof PortError && cause.port === 'state' && cause.code === 'corrupt' && config.databaseUrl === null) {
    return formatFault(toStateFault(config, cause))
  }
  if (isDiskFull(cause)) {
    const { bavail, bsize } = statfsSync(config.dataFolder)
    return `The start failed: ${cause.message}. The disk of ${config.dataFolder} has ${bavail * bsize} bytes left. Free disk space, and start again.`
  }
  return `The start failed: ${cause.message}`
}

function formatFault({ found, remedy }: StoreFault): string {
  return `${found}. ${remedy}.`
}

/** Recognizes errors of the system, of SQLite, and of a store whose cause is such an error. */
function isDiskFull(cause: unknown): boolean {
  if (!(cause instanceof Error)) return false
  return (
    /^(ENOSPC|EDQUOT|SQLITE_FULL|full)$/.test(String((cause as { code?: unknown }).code)) || isDiskFull(cause.cause)
  )
}
