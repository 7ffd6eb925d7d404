import type { TestContext } from 'node:test'
import { createMemoryEventLog } from '#adapters/memory/memory-event-log.ts'
import { composeCapture } from '#compose/front/capture.ts'
import type { FrontParts } from '#compose/front/parts.ts'
import { compileProject } from '#core/flags/evaluation/compile-project.ts'
import { fixedClock } from '../support/fixed-clock.ts'
import { serveParts, testContext, testParts } from '../support/front-parts.ts'
import { aProject, emptyDefinitions } from '../support/values.ts'

/** The key of project 7, the only one. */
export const otlpKey = 'phc_test'

interface Options {
  readonly unknownKeys?: 'accept'
  readonly decodeThreads?: FrontParts['decodeThreads']
}

/** The endpoints of OpenTelemetry with a real server; `warnings` has those of the project. */
export async function startOtlpServer(t: TestContext, { unknownKeys, decodeThreads }: Options = {}) {
  const clock = fixedClock('2026-07-01T11:00:00Z')
  const log = createMemoryEventLog({ nowMs: clock.nowMs })
  const context = testContext({
    ...{ clock, monotonicNowMs: clock.nowMs },
    settings: { PENNON_TRUSTED_PROXIES: 'none', ...(unknownKeys && { PENNON_UNKNOWN_KEYS: unknownKeys }) },
  })
  const compiled = compileProject(emptyDefinitions(aProject({ id: 7, apiToken: otlpKey }), 1))
  const warnings: Record<string, unknown>[] = []
  const opened = new AsyncDisposableStack()
  const parts = testParts(context, opened, {
    definitions: { findProject: token => (token === otlpKey ? compiled : null) },
    counters: {
      refused: {
        count: (...[projectId, type, count, details]) => void warnings.push({ projectId, type, count, ...details?.() }),
      },
    },
    eventLog: log,
    ...(decodeThreads && { decodeThreads }),
  })
  const { url } = await serveParts(t, parts, composeCapture(parts).routes, opened)
  return {
    url,
    warnings,
    metrics: context.metrics,
    logged: async () => (await log.read('main', 0, { recordCountMax: 1e9, bytesMax: 1e9 })).records.length,
    async call(path: string, body?: string | Uint8Array | object, init: RequestInit = {}) {
      const sent = typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body)
      const response = await fetch(url + path, { method: 'POST', body: sent as string, ...init })
      const bytes = Buffer.from(await response.arrayBuffer())
      return {
        status: response.status,
        headers: response.headers,
        type: response.headers.get('content-type'),
        bytes,
        json: () => JSON.parse(bytes.toString()),
      }
    },
  }
}
