// The ingestion vectors as far as the edge alone decides them: the answer, and the record that the log holds.

import assert from 'node:assert/strict'
import { request as httpRequest } from 'node:http'
import { describe, it } from 'node:test'
import type { QuotaResource } from '#core/capture/quota-resource.ts'
import type { CapturedEvent } from '#core/events/captured-event.ts'
import { PortError } from '#ports/port-error.ts'
import vectorFile from '../conformance/ingestion-vectors.json' with { type: 'json' }
import { startCaptureServer } from '../support/capture-server.ts'

interface Vector {
  readonly id: string
  readonly group: string
  readonly description: string
  readonly now?: string
  readonly method?: string
  readonly path?: string
  readonly headers?: Record<string, string>
  readonly body?: string
  readonly body_base64?: string
  readonly body_generator?: { prefix: string; repeat: string; count: number; suffix: string }
  readonly config?: Record<string, unknown>
  readonly expect?: {
    readonly status: number
    readonly headers?: Record<string, string>
    readonly body?: string
    readonly body_prefix?: string
    readonly body_contains?: string
  }
  readonly stored_events?: readonly Record<string, unknown>[]
  readonly steps?: unknown
}

const groups = new Set(['transport', 'auth', 'shape', 'coerce', 'timestamp', 'historical', 'quota', 'sink'])

const vectors = (vectorFile.vectors as readonly unknown[] as readonly Vector[]).filter(
  vector => groups.has(vector.group) && vector.steps === undefined,
)

describe('capture edge, ingestion vectors', () => {
  for (const vector of vectors) {
    it(`${vector.id}: ${vector.description}`, async t => {
      const { config } = vector
      const rerouting = config?.historical_rerouting as { enabled: boolean; days: number } | undefined
      const server = await startCaptureServer(t, {
        ...(vector.now === undefined ? {} : { now: vector.now }),
        ...(rerouting?.enabled === true ? { rerouteOlderThanDays: rerouting.days } : {}),
        importOnly: config?.mode === 'import',
        usedUp: new Set(config?.quota_limited as QuotaResource[]),
        quotas: { events: 1, exceptions: 1, llmEvents: 1, surveyResponses: 1 },
        unknownKeys: config?.token_validation === 'off' ? 'accept' : 'reject',
        wrapLog: log =>
          config?.sink === 'unavailable'
            ? { ...log, append: () => Promise.reject(new PortError('event-log', 'unavailable')) }
            : log,
      })
      const answer = await send(server.url, vector)
      const expected = vector.expect!
      assert.equal(answer.status, expected.status, answer.body)
      for (const [name, value] of Object.entries(expected.headers ?? {})) {
        assert.equal(answer.headers[name.toLowerCase()], value, name)
      }
      const text = expected.status >= 400 ? (JSON.parse(answer.body) as { detail: string }).detail : answer.body
      if (expected.body !== undefined) assert.equal(text, expected.body)
      if (expected.body_prefix !== undefined) assert.ok(text.startsWith(expected.body_prefix), text)
      if (expected.body_contains !== undefined) assert.ok(text.includes(expected.body_contains), text)
      const { events } = await server.records()
      if (vector.stored_events?.length === 0) assert.deepEqual(events, [])
      for (const stored of vector.stored_events ?? [])
        assert.ok(
          events.some(event => isStored(event, stored)),
          JSON.stringify(events),
        )
    })
  }
})

/** Fields that a record has; properties that processing adds are its business. */
function isStored(event: CapturedEvent, stored: Record<string, unknown>): boolean {
  const properties = JSON.parse(event.propertiesJson) as Record<string, unknown>
  return Object.entries(stored).every(([field, expected]) => {
    switch (field) {
      case 'event':
        return event.name === expected
      case 'uuid':
        return event.uuid === expected
      case 'uuid_version':
        return event.uuid[14] === String(expected)
      case 'uuid_unix_ms':
        return Number.parseInt(event.uuid.replaceAll('-', '').slice(0, 12), 16) === expected
      case 'distinct_id':
        return event.distinctId === expected
      case 'timestamp':
        return event.timestampMs === Date.parse(expected as string)
      case 'lane':
        return event.lane === expected
      case 'historical_migration':
        return event.historicalMigration === expected
      case 'properties':
      case 'properties_exact':
        return Object.entries(expected as Record<string, unknown>).every(([key, value]) =>
          key === '$ip' && properties.$ip === undefined
            ? event.ip === value
            : key === '$sent_at' || JSON.stringify(properties[key]) === JSON.stringify(value),
        )
      default:
        return true
    }
  })
}

async function send(url: string, vector: Vector) {
  const { body_generator: generator } = vector
  const body =
    vector.body_base64 !== undefined
      ? Buffer.from(vector.body_base64, 'base64')
      : generator !== undefined
        ? Buffer.from(generator.prefix + generator.repeat.repeat(generator.count) + generator.suffix)
        : Buffer.from(vector.body ?? '')
  return new Promise<{ status: number; headers: Record<string, unknown>; body: string }>((resolve, reject) => {
    const headers = {
      'X-Forwarded-For': vectorFile.meta.client_ip_default,
      ...vector.headers,
      'Content-Length': body.length,
    }
    const request = httpRequest(new URL(vector.path!, url), { method: vector.method ?? 'POST', headers }, response => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('end', () => {
        resolve({ status: response.statusCode!, headers: response.headers, body: Buffer.concat(chunks).toString() })
      })
    })
    // A refused body may be cut off while it is still being sent; the answer, when there was one, came first.
    request.on('error', reject)
    request.end(body)
  })
}
