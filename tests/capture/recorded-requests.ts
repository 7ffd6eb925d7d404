// Converts the samples in this folder and the SDKs' requests to one form: what to send, at what time of the server's
// clock, and what has to be found afterwards.

import { readFileSync } from 'node:fs'
import { clientSdks } from './sdks/client-sdks.ts'
import { receivedAt } from './sdks/sdk-request.ts'
import { serverSdks } from './sdks/server-sdks.ts'

export interface Recorded {
  readonly name: string
  /** `events_v1`: sent by capture v1, whose answers report on each event. */
  readonly kind: 'events' | 'events_v1' | 'flags'
  readonly projectKey: string
  /** The time that the server's clock must have, epoch ms. */
  readonly nowMs: number
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | Uint8Array
  readonly status?: 204
  readonly expected: readonly Expected[]
}

/** One event as it has to be stored. */
export interface Expected {
  readonly event: string
  readonly distinctId: string
  readonly timestampMs: number
  /** When the client says it sent the request. */
  readonly sentAtMs?: number
  /** Undefined when the server makes one. */
  readonly uuid: string | undefined
  readonly lane?: string
  readonly historicalMigration: boolean
  /** More may be stored. */
  readonly properties: Fields
}

type Fields = Readonly<Record<string, unknown>>

interface Golden {
  readonly id: string
  readonly group: string
  readonly request: {
    readonly method: string
    readonly path: string
    readonly headers: Record<string, string>
    readonly server_clock: string
    readonly body_base64: string
  }
  readonly expected: {
    readonly lane: string
    readonly events: readonly {
      readonly uuid: string
      readonly distinct_id: string
      readonly token: string
      readonly ip: string
      readonly sent_at: string | null
      readonly event: Item
      readonly derived_stored_timestamp: string
    }[]
  }
}

/** An event as in a body. */
interface Item {
  readonly event: string
  readonly distinct_id?: string | null
  readonly uuid?: string
  readonly timestamp?: string
  readonly properties: Fields
  readonly $set?: Fields
  readonly $set_once?: Fields
}

export function goldenRequests(): Recorded[] {
  const { cases } = sample('golden-requests.json') as { cases: Golden[] }
  return cases.map(({ id, group, request, expected: { lane, events } }) => ({
    name: `${id}: ${group}`,
    kind: 'events',
    projectKey: events[0]!.token,
    nowMs: wholeMs(request.server_clock),
    method: request.method,
    path: request.path,
    headers: request.headers,
    body: Buffer.from(request.body_base64, 'base64'),
    expected: events.map(({ uuid, distinct_id: distinctId, ip, event, ...at }) => ({
      event: event.event,
      distinctId,
      timestampMs: wholeMs(at.derived_stored_timestamp),
      ...(at.sent_at !== null && { sentAtMs: wholeMs(at.sent_at) }),
      uuid,
      lane,
      historicalMigration: lane === 'historical',
      // An import never uses the sender's address as the person's.
      properties: storedProperties(lane === 'historical' ? event : withIp(event, ip)),
    })),
  }))
}

/**
 * Bodies of SDKs. If a test of an SDK has only a part, the rest is added as that SDK does: posthog-ruby's single events
 * are put into a batch, and posthog-go's and posthog-ruby's bodies are sent to their paths.
 */
export function snapshotRequests(): Recorded[] {
  const { cases } = sample('sdk-wire-snapshots.json') as { cases: { id: string; from_: string; snapshot: Fields }[] }
  return cases.map(({ id, from_: from, snapshot }) => {
    const name = `${id}: ${from}`
    const whole = isObject(snapshot.body) ? snapshot.body : snapshot
    const filled = JSON.parse(filledIn(JSON.stringify(whole), id)) as Fields
    const body = typeof filled.event === 'string' ? { api_key: 'testsecret', batch: [filled] } : filled
    const common = {
      name,
      projectKey: String(body.api_key ?? body.token ?? 'testsecret'),
      method: 'POST',
      headers: { ...headersOf(snapshot.headers), 'content-type': 'application/json' },
      body: JSON.stringify(body),
    }
    const path = pathOf(snapshot)
    if (!Array.isArray(body.batch)) {
      return { ...common, kind: 'flags', nowMs: Date.parse(receivedAt), path: path ?? '/flags/?v=2', expected: [] }
    }
    const items = body.batch as Item[]
    const nowMs = Math.max(...items.map(({ timestamp }) => wholeMs(timestamp!)))
    if ('created_at' in body) {
      const headers = { ...common.headers, ...headersOfV1(common.projectKey, items, nowMs) }
      const path = '/i/v1/analytics/events'
      return { ...common, kind: 'events_v1', headers, nowMs, path, expected: items.map(storedOf) }
    }
    return { ...common, kind: 'events', nowMs, path: path ?? '/batch/', expected: items.map(storedOf) }
  })
}

/** posthog-go's snapshots have bodies only; the header names the same library as the events. */
function headersOfV1(projectKey: string, items: readonly Item[], nowMs: number): Readonly<Record<string, string>> {
  const { $lib = 'posthog-go', $lib_version: version = '1.23.1' } = Object.assign(
    {},
    ...items.map(item => item.properties),
  )
  return {
    authorization: `Bearer ${projectKey}`,
    'user-agent': 'posthog-go/1.23.1',
    'posthog-sdk-info': `${$lib}/${version}`,
    'posthog-attempt': '1',
    'posthog-request-id': '00000000-0000-4000-8000-000000000001',
    'posthog-request-timestamp': new Date(nowMs).toISOString(),
  }
}

/**
 * One request per SDK and range of versions, as they send it.
 * @param projectKey which each body has where the SDK puts it.
 */
export function requestsOfSdks(projectKey: string): Recorded[] {
  return [...serverSdks(projectKey), ...clientSdks(projectKey)].map(({ sdk, stored, ...request }) => ({
    ...request,
    name: sdk,
    kind: 'events',
    projectKey,
    nowMs: Date.parse(receivedAt),
    expected: stored.map(({ timestamp, properties, set, uuid, historicalMigration = false, ...event }) => ({
      ...event,
      uuid,
      historicalMigration,
      timestampMs: Date.parse(timestamp),
      properties: { ...properties, ...(set && { $set: set }) },
    })),
  }))
}

function sample(name: string): unknown {
  return JSON.parse(readFileSync(new URL(`./samples/${name}`, import.meta.url), 'utf8'))
}

/** Without clock skew: clients and server have the same clock. */
function storedOf(item: Item): Expected {
  return {
    event: item.event,
    distinctId: item.distinct_id ?? String(item.properties.distinct_id),
    timestampMs: wholeMs(item.timestamp!),
    uuid: item.uuid,
    historicalMigration: false,
    properties: storedProperties(item),
  }
}

function withIp(item: Item, ip: string): Item {
  return { ...item, properties: { $ip: ip, ...item.properties } }
}

function storedProperties({ event, properties, $set, $set_once: setOnce }: Item): Fields {
  if (event === '$feature_flag_called' && typeof properties.$feature_flag_response !== 'string')
    return Object.fromEntries(keptOfFlagCalls.map(name => [name, properties[name]]))
  return { ...properties, ...($set && { $set }), ...(setOnce && { $set_once: setOnce }) }
}

/** Some of the properties that are kept of a flag call without a variant. Source: docs/wire/ingestion.md 6.9. */
const keptOfFlagCalls = ['$feature_flag', '$feature_flag_response', '$lib', '$session_id', '$window_id', '$current_url']

/** Replaces placeholders of the SDKs' own tests; a uuid is made for each case. */
function filledIn(text: string, id: string): string {
  return text
    .replaceAll(
      /<uuid-(\d+)>/g,
      (_placeholder, n: string) => `00000000-0000-4000-9000-${id.slice(-2)}${n.padStart(10, '0')}`,
    )
    .replaceAll('<redacted>', 'phc_snapshot_php')
    .replaceAll(/<sdk[_-]version>/gi, '1.2.3')
    .replaceAll('"<LINE_NUMBER>"', '42')
}

function headersOf(headers: unknown): Record<string, string> {
  const entries = Object.entries((headers ?? {}) as Record<string, string | string[]>)
  return Object.fromEntries(entries.map(([name, value]) => [name.toLowerCase(), [value].flat().join(', ')]))
}

function pathOf({ url, path }: Fields): string | null {
  if (typeof path === 'string') return path
  if (typeof url !== 'string') return null
  const { pathname, search } = new URL(url)
  return pathname + search
}

/** Cuts fractions beyond milliseconds, as the server does. */
function wholeMs(timestamp: string): number {
  return Date.parse(timestamp.replace(/(\.\d{3})\d+/, '$1'))
}

function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
