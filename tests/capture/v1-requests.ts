// Requests of capture protocol v1 as tests send them.

import { testToken } from '../support/capture-server.ts'

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
