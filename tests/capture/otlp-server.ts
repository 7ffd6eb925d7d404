import type { TestContext } from 'node:test'
import { type CaptureServerOptions, startCaptureServer } from '../support/capture-server.ts'

/** The key of project 7, the only one. */
export const otlpKey = 'phc_test'

/** The endpoints of OpenTelemetry with a real server. */
export async function startOtlpServer(
  t: TestContext,
  options: Pick<CaptureServerOptions, 'unknownKeys' | 'decodeThreads'> = {},
) {
  const server = await startCaptureServer(t, { ...options, project: { id: 7, apiToken: otlpKey } })
  return {
    ...server,
    logged: async () => (await server.log.readStreamStatus('main', 0)).endOffset,
    async call(path: string, body?: string | Uint8Array | object, init: RequestInit = {}) {
      const sent = typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body)
      const response = await fetch(server.url + path, { method: 'POST', body: sent as string, ...init })
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
