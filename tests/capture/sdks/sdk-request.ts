// The type of an SDK's capture request and its stored events, and the parts that most of them share.

import { gzipSync } from 'node:zlib'

export interface SdkRequest {
  /** SDK and versions, as in the table. */
  readonly sdk: string
  readonly method: 'POST' | 'GET'
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | Uint8Array<ArrayBuffer>
  /** The status for pages that are closing; 200 when absent. */
  readonly status?: 204
  readonly stored: readonly StoredBySdk[]
}

export interface StoredBySdk {
  readonly event: string
  /** No two requests share one. */
  readonly distinctId: string
  /** ISO 8601. */
  readonly timestamp: string
  /** Absent when the server makes one. */
  readonly uuid?: string
  /** More may be stored. */
  readonly properties: Readonly<Record<string, unknown>>
  readonly set?: Readonly<Record<string, unknown>>
  readonly historicalMigration?: true
}

/** The time of the server's clock. */
export const receivedAt = '2025-07-01T11:00:00.000Z'
/** The clients' clocks are five seconds slow: an event happened five seconds before it was sent. */
export const sentAt = '2025-07-01T10:59:55.000Z'
export const happenedAt = '2025-07-01T10:59:50.000Z'
export const sentAtMs = Date.parse(sentAt)
/** With a send time, the clock error is corrected; without one, the time stays as written. */
export const corrected = sentAt
export const asWritten = happenedAt

export const form = { 'content-type': 'application/x-www-form-urlencoded' }
export const json = { 'content-type': 'application/json' }
export const gzippedJson = { ...json, 'content-encoding': 'gzip' }
const properties = { plan: 'pro' }

export function post(
  sdk: string,
  path: string,
  headers: Readonly<Record<string, string>>,
  body: object | string | Uint8Array<ArrayBuffer>,
  ...stored: readonly StoredBySdk[]
): SdkRequest {
  const bytes = typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body)
  return { sdk, method: 'POST', path, headers, body: bytes, stored }
}

/** The event that most requests hold, as a client writes it. */
export function signUp(distinctId: string, over: object = {}): object {
  return { event: 'sign up', distinct_id: distinctId, properties, ...over }
}

/** The same event as it has to be stored. */
export function signedUp(distinctId: string, timestamp: string, over: Partial<StoredBySdk> = {}): StoredBySdk {
  return { event: 'sign up', distinctId, timestamp, properties, ...over }
}

export function gzip(value: unknown): Uint8Array<ArrayBuffer> {
  return gzipSync(JSON.stringify(value))
}

export function base64(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64')
}

export function uuidOf(distinctId: string): string {
  return `0197c5a0-0000-7000-9000-${Buffer.from(distinctId).toString('hex').slice(-12).padStart(12, '0')}`
}
