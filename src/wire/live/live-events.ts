// The live view as text: server-sent events, whose names separate accepted events, rejects and what could not be shown.
// Properties are spliced in as the client wrote them. Source: ours, docs/operating/live-view.md.

import type { CapturedEvent, CapturedReject } from '#core/events/captured-event.ts'
import type { LogStream } from '#core/events/log-stream.ts'
import { truncateToFirstMembers } from '#core/json-text.ts'
import { formatInstant } from '../management/shapes.ts'

/** How long a client waits before it reconnects, ms. */
const retryMs = 3_000
/** The most characters shown of each of properties, `$set` and `$set_once`, and of a reject's body. */
export const liveTextMax = { properties: 64 * 1024, body: 4 * 1024 } as const

export interface LiveReady {
  readonly project: { readonly id: number; readonly name: string }
  /** By log stream, the offset from which on records are shown. */
  readonly offsets: object
  readonly eventsPerSecondMax: number
}

/** The first message. */
export function encodeLiveReady({ project, offsets, eventsPerSecondMax }: LiveReady): Uint8Array {
  const data = { project: { id: project.id, name: project.name }, offsets, events_per_second_max: eventsPerSecondMax }
  return encodeMessage('ready', JSON.stringify(data), `retry: ${retryMs}\n`)
}

/** Fields have the names that they have in `/events/`; those that processing adds are not known yet. */
function encodeLiveEvent(event: CapturedEvent, stream: LogStream, offset: number): Uint8Array {
  const head = {
    uuid: event.uuid,
    event: event.name,
    distinct_id: event.distinctId,
    timestamp: formatInstant(event.timestampMs),
    captured_at: formatInstant(event.capturedAtMs),
    lane: event.lane,
    historical_migration: event.historicalMigration,
    import_job_id: event.importJobId,
  }
  const parts = { properties: event.propertiesJson, $set: event.setJson, $set_once: event.setOnceJson }
  let data = JSON.stringify(head).slice(0, -1)
  let isTruncated = false
  for (const [name, json] of Object.entries(parts)) {
    if (json === null) continue
    const kept = truncateToFirstMembers(json, liveTextMax.properties)
    isTruncated ||= kept.length < json.length
    data += `,"${name}":${kept}`
  }
  return encodeMessage('event', `${data}${isTruncated ? ',"cut":true' : ''}}`, encodeId(stream, offset))
}

function encodeLiveReject(reject: CapturedReject, stream: LogStream, offset: number): Uint8Array {
  const { body } = reject
  const data = {
    reason: reject.reason,
    field: reject.field,
    uuid: reject.uuid,
    event: reject.name,
    distinct_id: reject.distinctId,
    received_at: formatInstant(reject.receivedAtMs),
    lane: reject.lane,
    historical_migration: reject.historicalMigration,
    body: body.slice(0, liveTextMax.body),
    ...(body.length > liveTextMax.body ? { cut: true } : {}),
  }
  return encodeMessage('rejected', JSON.stringify(data), encodeId(stream, offset))
}

/** How many matching events were not shown since the last such message, in total and by reason. */
function encodeLiveSkipped(counts: Readonly<Record<string, number>>): Uint8Array {
  const reasons = Object.fromEntries(Object.entries(counts).filter(([, count]) => count > 0))
  const count = Object.values(reasons).reduce((sum, each) => sum + each, 0)
  return encodeMessage('skipped', JSON.stringify({ count, reasons }))
}

/** Says that a part of the log was skipped unread; `count` is null because the number of its events is unknown. */
function encodeLiveLost(stream: LogStream, reason: string): Uint8Array {
  return encodeMessage('skipped', JSON.stringify({ count: null, reason, lane: stream }))
}

/** The last message. */
function encodeLiveEnd(reason: string): Uint8Array {
  return encodeMessage('end', JSON.stringify({ reason }))
}

/** All messages after the first. */
export const liveMessages = {
  event: encodeLiveEvent,
  reject: encodeLiveReject,
  skipped: encodeLiveSkipped,
  lost: encodeLiveLost,
  end: encodeLiveEnd,
  /** A comment, which keeps proxies from closing a connection that looks idle. */
  heartbeat: Buffer.from(':\n\n') as Uint8Array,
}

function encodeId(stream: LogStream, offset: number): string {
  return `id: ${stream}:${offset}\n`
}

/** JSON has raw line ends only between tokens, never in strings, so a blank can replace them. */
function encodeMessage(name: string, data: string, before = ''): Uint8Array {
  return Buffer.from(`${before}event: ${name}\ndata: ${data.replaceAll(/[\r\n]/g, ' ')}\n\n`)
}
