// `pennon serve`: runs an instance, prints what to do next, and stops cleanly on a signal.

import { createLogger, exitAfterLogging } from '#telemetry/log.ts'
import { releaseHeapMemory } from '#telemetry/release-memory.ts'
import { formatFirstSteps } from './first-steps.ts'
import { readConfigOrRefuse, refuse } from './refuse.ts'
import { startService } from './start-service.ts'

const stopMsMax = 10_000

export async function serve(options: { frontProcesses?: string }): Promise<void> {
  process.title = 'pennon serve'
  const environment = {
    ...process.env,
    ...(options.frontProcesses && { PENNON_FRONT_PROCESSES: options.frontProcesses }),
  }
  const config = readConfigOrRefuse(environment)
  const logger = createLogger({ level: config.logLevel, process: 'serve' })

  let isStopping = false
  let stop: (() => Promise<void>) | undefined
  /** True once a start may have created keys: such a start is completed before a stop, or the keys would never be shown. */
  let mayHaveMadeKeys = false
  let endCode = 0
  const onSignal = (signal: NodeJS.Signals) => {
    if (isStopping) return
    logger.info({ signal }, 'stopping')
    shutDown(0)
  }
  // Stop at once: from now on, accepted events would go to a log that does not belong to any state, and be lost despite a
  // 200.
  const onSuperseded = (line: string) => {
    if (isStopping) return
    logger.error(line)
    shutDown(2)
  }
  const shutDown = (exitCode: number) => {
    isStopping = true
    endCode = exitCode
    setTimeout(() => {
      logger.error('shutdown took too long; exiting immediately')
      process.exit(1)
    }, stopMsMax).unref()
    if (stop !== undefined || !mayHaveMadeKeys) stopAndExit(exitCode)
  }
  const stopAndExit = (exitCode: number) => {
    const stopped = stop === undefined ? Promise.resolve() : stop()
    stopped.then(
      () => {
        logger.info('stopped')
        void exitAfterLogging(logger, exitCode)
      },
      cause => {
        logger.error({ err: cause }, 'shutdown failed')
        void exitAfterLogging(logger, 1)
      },
    )
  }
  process.on('SIGTERM', onSignal)
  process.on('SIGINT', onSignal)

  const started = await startService({
    ...{ config, logger, environment, onSuperseded },
    beforeListening: releaseHeapMemory,
    beforeKeys: () => {
      mayHaveMadeKeys = true
    },
  })
  if (!started.ok) refuse(started.error)
  const service = started.value
  stop = () => service.stop()
  process.stdout.write(formatFirstSteps(service, config))
  if (isStopping) stopAndExit(endCode)
}
