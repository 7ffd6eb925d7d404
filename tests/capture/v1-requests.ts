// Requests of capture protocol v1 as tests send them.

import assert from 'node:assert/strict'
import { exchange } from '../conformance/exchange.ts'
import { type CaptureServer, testToken } from '../support/capture-server.ts'

export const requestId = '6b0f8f0e-6a57-4c3a-9f7c-0a0a0a0a0a0a'

export const v1Headers = {
  authorization: `Bearer ${testToken}`,
  'content-type': 'application/json',
  'user-agent': 'posthog-rs/1.0.0',
  'posthog-sdk-info': 'posthog-rs/1.0.0',
  'posthog-attempt': '1',
  'posthog-request-id': requestId,
  'posthog-request-timestamp': '2025-07-01T11:00:00Z',
}

export function uuidOf(index: number): string {
  return `0197c5a0-0000-7000-8000-${String(index).padStart(12, '0')}`
}

export function v1Event(index: number, over: object = {}): object {
  return {
    event: '$pageview',
    uuid: uuidOf(index),
    distinct_id: 'u1',
    timestamp: '2025-07-01T10:59:58.123Z',
    properties: { index },
    ...over,
  }
}

export function v1Batch(events: readonly unknown[], over: object = {}): string {
  return JSON.stringify({ created_at: '2025-07-01T11:00:00Z', batch: events, ...over })
}

export const v1Path = '/i/v1/analytics/events'

export type V1Headers = Readonly<Record<string, string | undefined>>

export interface V1Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  // biome-ignore lint/suspicious/noExplicitAny: answers of many shapes
  readonly json: any
}

/** Sends exactly these headers, without undefined ones. */
export async function sendV1(
  server: CaptureServer,
  body: string | Uint8Array,
  over: V1Headers = {},
  { to = v1Path, method = 'POST' } = {},
): Promise<V1Answer> {
  const headers = Object.fromEntries(
    Object.entries({ ...v1Headers, ...over }).filter(([, value]) => value !== undefined),
  ) as Record<string, string>
  const { text, ...answer } = await exchange(server.url, { method, path: to, headers, body })
  return { ...answer, json: text === '' ? null : JSON.parse(text) }
}

export async function assertV1Error(
  sent: Promise<V1Answer>,
  status: number,
  tag: string,
  text?: string,
): Promise<void> {
  const { status: answered, headers, json } = await sent
  assert.deepEqual([answered, json.error], [status, tag], JSON.stringify(json).slice(0, 500))
  assert.deepEqual(Object.keys(json), ['error', 'error_description', 'error_uri'])
  assert.equal(json.error_uri, `https://posthog.com/docs/${status === 402 ? 'billing/limits' : 'api'}`)
  if (text !== undefined) assert.equal(json.error_description, text)
  assert.equal(headers['content-type'], 'application/json')
  assert.equal(headers['retry-after'], status >= 500 ? '1' : undefined)
}
