// What surrounds a front: settings, time, randomness, and the process that supervises the worker.

import { randomBytes, randomFillSync, randomUUID } from 'node:crypto'
import { systemTimers } from '#adapters/system/timers.ts'
import type { Config } from '#config.ts'
import { createPooledRandomUint32, type RandomUint32 } from '#core/capture/event-uuid.ts'
import type { LogStream, Traffic } from '#core/events/log-stream.ts'
import type { ProcessedUntil } from '#core/events/processed-until.ts'
import { createBaseUrl, type GetBaseUrl } from '#http/management/kit/base-url.ts'
import { createStateOutageLogger, type LogStateOutage } from '#http/shared/state-outage.ts'
import type { Clock, Timers } from '#ports/clock.ts'
import type { Geoip } from '#ports/geoip.ts'
import type { ProcessingState } from '#processes/messages.ts'
import type { RandomBytes } from '#services/manage/generate-key.ts'
import type { Logger } from '#telemetry/log.ts'
import type { Metrics } from '#telemetry/metrics.ts'
import type { MetricsSnapshot } from '#telemetry/process-metrics.ts'
import { parseTrustedProxies, type TrustedProxies } from '#wire/address/trusted-proxies.ts'

/** The process that supervises a front's worker: the same process, or its parent. */
export interface FrontHost {
  /** Wakes the worker when a log stream has new records. Cheap, and harmless when repeated. */
  wakeUp(stream: LogStream): void
  processingState(): ProcessingState
  /** Whether the embedded event store cannot be reached; false when the event store is elsewhere. */
  isEventStoreUnavailable(): boolean
  /** How far the worker has processed traffic of this kind; null or absent when unknown. */
  processedUntil?(traffic: Traffic): ProcessedUntil | null
  /** The latest metrics of the other processes. @param own the metrics of this front, reported in the same message. */
  otherMetrics(own: MetricsSnapshot): Promise<readonly MetricsSnapshot[]>
}

/** What a front gets from outside. */
export interface FrontSurroundings {
  readonly config: Config
  readonly clock: Clock
  /** Null without a GeoIP database: evaluations then have no location. */
  readonly geoip: Geoip | null
  readonly logger: Logger
  readonly metrics: Metrics
  readonly host: FrontHost
}

/** The parts of the machine that a front uses: time, timers and randomness. */
export interface Machine extends Timers {
  /** Milliseconds since an arbitrary start; the value never decreases. */
  readonly monotonicNowMs: () => number
  /** A version-4 UUID, lower case. */
  readonly newUuid: () => string
  readonly randomBytes: RandomBytes
  readonly random: RandomUint32
}

export interface FrontContext extends FrontSurroundings, Machine {
  readonly trustedProxies: TrustedProxies
  readonly noteStateAway: LogStateOutage
  readonly addressBase: GetBaseUrl
  /** The public URL leads to the port for SDKs; the screens are on the port of the private API, which may be another one. */
  readonly screensBase: GetBaseUrl
}

/** @param over for tests: replaces parts of the machine. */
export function createFrontContext(surroundings: FrontSurroundings, over: Partial<Machine> = {}): FrontContext {
  const { config, logger } = surroundings
  const trustedProxies = parseTrustedProxies(config.trustedProxies.join(','))
  if (!trustedProxies.ok) throw new Error(`PENNON_TRUSTED_PROXIES: ${trustedProxies.error}`)
  const machine: Machine = {
    ...systemTimers,
    monotonicNowMs: () => performance.now(),
    newUuid: randomUUID,
    randomBytes,
    random: createPooledRandomUint32(randomFillSync),
    ...over,
  }
  const noteStateAway = createStateOutageLogger(logger, machine.monotonicNowMs)
  return {
    ...surroundings,
    ...machine,
    trustedProxies: trustedProxies.value,
    noteStateAway,
    addressBase: createBaseUrl(config.publicUrl, trustedProxies.value),
    screensBase: createBaseUrl(config.adminPort === null ? config.publicUrl : null, trustedProxies.value),
  }
}
