// `pennon front`: one of several HTTP processes on one port, started by `serve` through node:cluster.

import type { FrontHost } from '#compose/front/context.ts'
import { composeFront, type Front } from '#compose/front/front.ts'
import { hasEngineAddress } from '#compose/instance/embedded-engine.ts'
import { systemClock } from '#compose/instance/machine.ts'
import { openGeoip } from '#compose/stores/geoip.ts'
import type { Config } from '#config.ts'
import type { Traffic } from '#core/events/log-stream.ts'
import type { ProcessedUntil } from '#core/events/processed-until.ts'
import { sendToParent, watchParent } from '#processes/child-channel.ts'
import type { ProcessingState, ToFront } from '#processes/messages.ts'
import { createLogger, exitAfterLogging } from '#telemetry/log.ts'
import { createMetrics } from '#telemetry/metrics.ts'
import type { MetricsSnapshot } from '#telemetry/process-metrics.ts'
import { releaseHeapMemory } from '#telemetry/release-memory.ts'
import { lockDataFolderAsChild, openOrEndProcess } from './open-as-child.ts'
import { readConfigOrRefuse, refuse } from './refuse.ts'

const reportEveryMs = 5_000
const aliveEveryMs = 2_000
const metricsWaitMs = 1_000

export async function runFrontCommand(): Promise<void> {
  process.title = 'pennon front'
  const config = readConfigOrRefuse()
  const logger = createLogger({ level: config.logLevel, process: 'front' })
  await lockDataFolderAsChild(config, logger)
  const metrics = createMetrics({ process: 'front' })
  const geoip = openGeoip(config, logger)
  if (!geoip.ok) refuse(geoip.error)
  const host = createParentHost(config)
  // Listens for messages from the start: a stop, or the parent's end, may come while the stores are being opened.
  let composed: Front | undefined
  watchParent(async () => {
    await composed?.close()
    await exitAfterLogging(logger, 0)
  }, host.receive)
  composed = await openOrEndProcess(logger, () =>
    composeFront({
      ...{ config, clock: systemClock, geoip: geoip.value, logger, metrics, host },
      beforeListening: releaseHeapMemory,
    }),
  )
  try {
    sendToParent({ type: 'listening', ...(await composed.listen()) })
  } catch (cause) {
    sendToParent({ type: 'listen_failed', message: (cause as Error).message })
  }
  setInterval(() => sendToParent({ type: 'alive' }), aliveEveryMs).unref()
  const report = async () => sendToParent({ type: 'metrics', metrics: await metrics.registry.getMetricsAsJSON() })
  setInterval(report, reportEveryMs).unref()
  await report()
}

/** The host of a front that another process supervises. */
function createParentHost(config: Config): FrontHost & { receive(message: { type: string }): void } {
  let processing: ProcessingState = 'starting'
  let isEventStoreUnavailable = config.clickhouseUrl === null
  const processedUntil = new Map<Traffic, ProcessedUntil>()
  let lastRequestId = 0
  const waiting = new Map<number, (metrics: readonly MetricsSnapshot[]) => void>()
  return {
    wakeUp: stream => sendToParent({ type: 'wake_up', stream }),
    processingState: () => processing,
    isEventStoreUnavailable: () => isEventStoreUnavailable || !hasEngineAddress(config),
    processedUntil: traffic => processedUntil.get(traffic) ?? null,
    otherMetrics: metrics =>
      new Promise(resolve => {
        const requestId = ++lastRequestId
        const resolveWith = (others: readonly MetricsSnapshot[]) => {
          waiting.delete(requestId)
          resolve(others)
        }
        waiting.set(requestId, resolveWith)
        setTimeout(() => resolveWith([]), metricsWaitMs).unref()
        sendToParent({ type: 'metrics_wanted', requestId, metrics })
      }),
    receive: received => {
      const message = received as ToFront
      if (message.type === 'processing') processing = message.state
      if (message.type === 'event_store') isEventStoreUnavailable = message.isUnavailable
      if (message.type === 'processed') processedUntil.set(message.traffic, message.until)
      if (message.type === 'metrics_given') waiting.get(message.requestId)?.(message.metrics)
    },
  }
}
