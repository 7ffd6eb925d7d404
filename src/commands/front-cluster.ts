// Runs several fronts on one port through node:cluster: starts them, restarts them with back-off, replaces silent fronts,
// and passes messages between fronts and worker.

import cluster, { type Worker } from 'node:cluster'
import type { FrontHost } from '#compose/front/context.ts'
import type { Config } from '#config.ts'
import { pickFrontEnvironment } from '#processes/child-environment.ts'
import type { FromFront, ToFront } from '#processes/messages.ts'
import { killSilentChild } from '#processes/silence.ts'
import { createRestartDelay, nodeOptions, pickChildEnvironment } from '#processes/supervisor.ts'
import type { Logger } from '#telemetry/log.ts'
import type { Metrics } from '#telemetry/metrics.ts'
import type { ProcessMetrics } from '#telemetry/process-metrics.ts'

interface FrontClusterOptions {
  readonly config: Config
  readonly environment: NodeJS.ProcessEnv
  readonly logger: Logger
  readonly metrics: Metrics
  readonly mainPath: string
  readonly host: FrontHost
  /** The metrics that all other processes have reported; each front adds its own current metrics. */
  readonly numbers: ProcessMetrics
}

/**
 * A front reports every 2 s that it is alive. A stopped front is killed, since it may hold the log's write lock, and then
 * no other front can accept an event.
 */
const silentAfterMs = 12_000
/** How long fronts may take to stop: less than the 10 s of a whole stop, since the engine is stopped after them. */
const stopGraceMs = 6_500

/** Resolves when every front listens. @throws the first front's failure to listen. */
export async function startFrontCluster(options: FrontClusterOptions) {
  const { config, host, logger, metrics, numbers } = options
  let isStopping = false
  const listening = new Set<Worker>()
  cluster.setupPrimary({ exec: options.mainPath, args: ['front'], execArgv: [...nodeOptions] })

  const start = (restartDelay = createRestartDelay(Math.random)): Promise<{ url: string; adminUrl: string | null }> =>
    new Promise((resolve, reject) => {
      const worker = cluster.fork(pickChildEnvironment(pickFrontEnvironment(options.environment)))
      const startedAtMs = performance.now()
      const kill = () => void worker.process.kill('SIGKILL')
      const silence = killSilentChild({ name: 'front', logger, silentAfterMs, kill })
      worker.on('message', (message: FromFront) => {
        if (worker.isDead()) return // messages still in the channel are no longer true
        silence.heard()
        switch (message.type) {
          case 'listening':
            listening.add(worker)
            sendMessage(worker, { type: 'processing', state: host.processingState() })
            sendMessage(worker, { type: 'event_store', isUnavailable: host.isEventStoreUnavailable() })
            return resolve(message)
          case 'listen_failed':
            kill() // without its port it is useless, and the next one may get it
            return reject(
              Object.assign(new Error(message.message), { code: /EADDRINUSE|EACCES/.exec(message.message)?.[0] }),
            )
          case 'alive':
            return
          case 'wake_up':
            return host.wakeUp(message.stream)
          case 'metrics':
            return numbers.report(formatWorkerName(worker), message.metrics)
          case 'metrics_wanted':
            numbers.report(formatWorkerName(worker), message.metrics)
            return void sendOtherMetrics(worker, message.requestId)
        }
      })
      worker.on('exit', (code, signal) => {
        silence.stop()
        listening.delete(worker)
        numbers.ended(formatWorkerName(worker))
        if (isStopping) return
        reject(new Error(`front process ended with ${signal ?? code}`))
        logger.warn({ child: 'front', code, signal }, 'process ended; restarting it')
        metrics.childRestarts.inc({ process: 'front' })
        setTimeout(
          () => {
            if (!isStopping)
              start(restartDelay).catch(cause => logger.warn({ err: cause }, 'cannot start a front process'))
          },
          restartDelay(performance.now() - startedAtMs),
        )
      })
    })

  /** Sends a front the metrics of all processes except that front, including this process. */
  const sendOtherMetrics = async (worker: Worker, requestId: number) => {
    const own = await metrics.registry.getMetricsAsJSON()
    sendMessage(worker, { type: 'metrics_given', requestId, metrics: [own, ...numbers.all(formatWorkerName(worker))] })
  }
  metrics.onCollect(() => {
    const reporting = [...listening].filter(worker => !numbers.isSilent(formatWorkerName(worker)))
    metrics.processes.set({ process: 'front' }, reporting.length)
  })

  const addresses = await Promise.all(Array.from({ length: config.frontProcesses }, start))
  return {
    addresses: addresses[0]!,
    /** Sends a message to every front. */
    send: (message: ToFront): void => {
      for (const worker of listWorkers()) sendMessage(worker, message)
    },
    stop: async (): Promise<void> => {
      isStopping = true
      await Promise.all(listWorkers().map(endWorker))
    },
  }
}

function formatWorkerName({ id }: Worker): string {
  return `front ${id}`
}

/** Fronts that have not ended, including fronts that are starting. */
function listWorkers(): readonly Worker[] {
  return Object.values(cluster.workers ?? {}).map(worker => worker!)
}

async function endWorker(worker: Worker): Promise<void> {
  await new Promise<void>(resolve => {
    const killer = setTimeout(() => worker.process.kill('SIGKILL'), stopGraceMs)
    worker.once('exit', () => {
      clearTimeout(killer)
      resolve()
    })
    sendMessage(worker, { type: 'shutdown' })
  })
}

function sendMessage(worker: Worker, message: ToFront): void {
  if (worker.isConnected()) worker.send(message, () => undefined) // a front on its way out is restarted anyway
}
