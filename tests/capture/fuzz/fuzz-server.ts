// Everything that decodes what the public sends, behind one real server: v0, v1, replay and flags, over a log that hands
// over what each request brought.

import { randomFillSync, randomUUID } from 'node:crypto'
import type { AddressInfo } from 'node:net'
import { createDecodeThreads, decodeThreadDefaults } from '#adapters/decode-threads/decode-threads.ts'
import { pooledRandomUint32 } from '#core/capture/event-uuid.ts'
import type { DecodedRecord } from '#core/events/captured-event.ts'
import { sealRecords } from '#core/log/record-codec.ts'
import { decodeRecords } from '#core/log/record-decoder.ts'
import { captureRoutes } from '#http/handlers/capture.ts'
import { captureV1Routes } from '#http/handlers/capture-v1.ts'
import { decideRoutes } from '#http/handlers/decide.ts'
import { replayRoutes } from '#http/handlers/replay.ts'
import { createHttpServer } from '#http/server.ts'
import type { EventLogWriter } from '#ports/event-log.ts'
import { createCaptureService } from '#services/capture/capture.ts'
import { createReplayService } from '#services/capture/capture-replay.ts'
import { createDecideService } from '#services/flags/decide.ts'
import { silentLogger } from '#telemetry/log.ts'
import { createMetrics } from '#telemetry/metrics.ts'
import { parseTrustedProxies } from '#wire/address/trusted-proxies.ts'
import {
  type DecodeJob,
  type DecodeOutcome,
  decodePool,
  decodeThreadEntry,
  isUrgentDecodeJob,
} from '#wire/threads/decode-thread.ts'
import { compileTestProject, emptyHashKeys, emptySubjects } from '../../support/decide-server.ts'
import { fixedClock } from '../../support/fixed-clock.ts'

export interface FuzzServer {
  readonly url: string
  /** What was appended since the last call. */
  takeRecords(): DecodedRecord[]
  /** Events and replays acknowledged so far. */
  acceptedCount(): Promise<number>
  close(): Promise<void>
}

/** @param projectKeys all of one project. */
export async function startFuzzServer(projectKeys: ReadonlySet<string>): Promise<FuzzServer> {
  const clock = fixedClock('2025-07-01T11:00:00Z')
  const metrics = createMetrics()
  const logger = silentLogger()
  let appended: DecodedRecord[] = []
  const eventLog: EventLogWriter = {
    append: async (_lane, { bytes, recordCount }) => {
      sealRecords(bytes)
      appended.push(...decodeRecords(bytes, recordCount))
    },
    close: async () => undefined,
  }
  const threads = createDecodeThreads<DecodeJob, DecodeOutcome>({
    ...decodeThreadDefaults,
    entry: decodeThreadEntry,
    isUrgent: isUrgentDecodeJob,
    logger,
    onRestart: () => metrics.childRestarts.inc({ process: 'decode-thread' }),
  })
  const decodeThreads = decodePool(threads)
  const trustedProxies = parseTrustedProxies('loopback,private')
  if (!trustedProxies.ok) throw new Error(trustedProxies.error)
  const compiled = compileTestProject({ flags: [{ key: 'on', filters: { groups: [{ rollout_percentage: 100 }] } }] })
  const find =
    <T>(value: T) =>
    (token: string) =>
      projectKeys.has(token) ? value : null
  const findProject = find(compiled.project)
  const common = {
    findProject,
    unknownKeys: 'reject',
    importOnly: false,
    isOverQuota: () => false,
    refused: { count: () => undefined },
    eventLog,
    clock,
    monotonicNowMs: clock.nowMs,
    metrics,
    logger,
  } as const
  const service = createCaptureService(common)
  const { keepRefused } = service
  const replay = createReplayService({ ...common, keepRefused })
  const decide = createDecideService({
    findProject: find(compiled),
    subjects: emptySubjects,
    hashKeys: emptyHashKeys,
    geoip: null,
    writesAtOnceMax: 64,
    countFlagRequest: () => undefined,
    logger,
    metrics,
  })
  const random = pooledRandomUint32(randomFillSync)
  const parts = {
    service,
    decodeThreads,
    trustedProxies: trustedProxies.value,
    clock,
    random,
    isOverRecordingQuota: () => false,
  }
  const server = createHttpServer({
    routes: [
      ...captureRoutes(parts),
      ...captureV1Routes(parts),
      ...replayRoutes({ ...parts, replay, keepRefused }),
      ...decideRoutes({ ...parts, decide, newUuid: randomUUID }),
    ],
    logger,
    metrics,
    authorize: async () => false,
  })
  await server.listen({ port: 0, host: '127.0.0.1' })
  return {
    url: `http://127.0.0.1:${(server.server.address() as AddressInfo).port}`,
    takeRecords: () => {
      const taken = appended
      appended = []
      // What refused requests leave is limited by the second.
      clock.advance(10)
      return taken
    },
    acceptedCount: async () => (await metrics.eventsAccepted.get()).values.reduce((sum, { value }) => sum + value, 0),
    close: async () => {
      await server.close()
      await threads.close()
    },
  }
}
