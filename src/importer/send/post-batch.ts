// Sends one request to `POST /batch/` and interprets the answer. When to retry is up to the caller.
// Source: docs/wire/import.md §2.4, §2.5, §3.11.

import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { formatCount } from '#core/format-count.ts'
import { getOwnValue, isJsonObject, type JsonObject, type JsonValue, readJsonNumber } from '#core/json.ts'
import { parseRetryAfter } from '../fetch/waiting.ts'
import { parseObjectOrEmpty } from './service-api.ts'

export interface BatchTarget {
  /** Address of the instance, without a slash at the end. */
  readonly address: string
  readonly projectKey: string
  /** Null if the service has no import jobs: then the events are visible at once. */
  readonly serviceJobId: string | null
}

export interface FailedRecord {
  readonly index: number
  readonly reason: string
  readonly field: string | null
}

export type BatchAnswer =
  | {
      readonly kind: 'accepted'
      readonly duplicates: number
      readonly recent: number
      readonly failed: readonly FailedRecord[]
    }
  /** 413. */
  | { readonly kind: 'too_large'; readonly description: string }
  /** 400 or 422: the service would refuse these events again. */
  | { readonly kind: 'refused'; readonly reason: string; readonly field: string | null; readonly description: string }
  /** 408, 429, 5xx or no answer. The service may have stored the events nevertheless. */
  | {
      readonly kind: 'trouble'
      readonly description: string
      readonly isOverload: boolean
      readonly retryAfterMs: number | null
    }
  /** An error that would persist after waiting, and with other events. */
  | { readonly kind: 'stop'; readonly status: number; readonly description: string }

export interface BatchResponse {
  readonly answer: BatchAnswer
  /** Events per second that the header `X-Import-Rate` allows; null without the header, or if the service is in trouble. */
  readonly rate: number | null
}

const answerMsMax = 120_000
const gzipText = promisify(gzip)
/** The fastest level, so that compression does not limit the rate; events shrink to about a tenth at any level. */
const gzipLevel = 1

/** @param texts JSON of the events. @throws the signal's reason when it is aborted. */
export async function postBatch(
  target: BatchTarget,
  texts: readonly string[],
  signal: AbortSignal,
): Promise<BatchResponse> {
  const body = `{"api_key":${JSON.stringify(target.projectKey)},"historical_migration":true,"batch":[${texts.join(',')}]}`
  const bytes = await gzipText(body, { level: gzipLevel })
  try {
    const response = await fetch(`${target.address}/batch/`, {
      method: 'POST',
      body: bytes,
      redirect: 'manual',
      signal: AbortSignal.any([signal, AbortSignal.timeout(answerMsMax)]),
      headers: {
        'content-type': 'application/json',
        'content-encoding': 'gzip',
        'user-agent': 'pennon-import',
        'x-import-report': '1',
        ...(target.serviceJobId === null ? {} : { 'x-import-job': target.serviceJobId }),
      },
    })
    // If the answer ends early, the service may or may not have stored the events.
    const text = await response.text()
    return {
      answer: interpretAnswer(response, text, target, texts.length),
      // Ignore the rate of a service in trouble: it cannot know how fast it will be.
      rate: response.ok || response.status === 429 ? parseRate(response.headers.get('x-import-rate')) : null,
    }
  } catch (cause) {
    signal.throwIfAborted()
    return { answer: createTrouble(explainNoAnswer(cause)), rate: null }
  }
}

function createTrouble(description: string, retryAfterMs: number | null = null, isOverload = false): BatchAnswer {
  return { kind: 'trouble', description, isOverload, retryAfterMs }
}

function interpretAnswer(
  { status, ok, headers }: Response,
  text: string,
  target: BatchTarget,
  eventCount: number,
): BatchAnswer {
  const body = parseObjectOrEmpty(text)
  if (ok) return interpretAccepted(body, target.serviceJobId === null ? null : eventCount)
  const description = describeRefusal(status, body, text)
  const retryAfterMs = parseRetryAfter(headers.get('retry-after') ?? undefined, Date.now())
  switch (status) {
    case 400:
    case 422:
      return {
        kind: 'refused',
        reason: readText(body, 'code') ?? shortenText(description),
        field: readText(body, 'attr'),
        description,
      }
    case 413:
      return { kind: 'too_large', description }
    case 408:
    case 429:
    case 503:
      return createTrouble(`the service asks to wait (${status})`, retryAfterMs, status !== 408)
    case 401:
    case 403:
      return {
        kind: 'stop',
        status,
        description: `${target.address} does not accept the project's key: ${description}. Check the key, and that the address is the one of the project's region.`,
      }
    default:
      if (status >= 500) return createTrouble(`the service is in trouble (${status})`, retryAfterMs)
      return { kind: 'stop', status, description: `${target.address} answers ${status} to a batch: ${description}` }
  }
}

/**
 * @param eventCount how many events the answer must account for, so that a 200 from elsewhere, such as a captive portal, is
 * not mistaken for the service's answer. Null for a service without import jobs, whose answer contains little more than a
 * status.
 */
function interpretAccepted(body: JsonObject, eventCount: number | null): BatchAnswer {
  const list = getOwnValue(body, 'failed_records')
  const accounted = (readNumber(body, 'accepted') ?? 0) + (Array.isArray(list) ? list.length : 0)
  if (eventCount !== null && accounted !== eventCount)
    return createTrouble(
      `the answer accounts for ${formatCount(accounted, 'event')}, but ${formatCount(eventCount, 'was', 'were')} sent`,
    )
  if (eventCount === null && getOwnValue(body, 'status') === undefined)
    return createTrouble(
      'the answer does not come from a service that accepts events, but perhaps from a network that asks to log in',
    )
  const failed = (Array.isArray(list) ? list : []).filter(isJsonObject).map(record => ({
    index: readNumber(record, 'index') ?? -1,
    reason: readText(record, 'reason') ?? 'unknown',
    field: readText(record, 'field'),
  }))
  return {
    kind: 'accepted',
    duplicates: readNumber(body, 'duplicates') ?? 0,
    recent: readNumber(body, 'recent') ?? 0,
    failed,
  }
}

function parseRate(header: string | null): number | null {
  const rate = Number(header ?? Number.NaN)
  return Number.isFinite(rate) && rate > 0 ? rate : null
}

function describeRefusal(status: number, body: JsonObject, text: string): string {
  return readText(body, 'detail') ?? readText(body, 'error') ?? (shortenText(text.trim()) || `status ${status}`)
}

function readText(body: JsonObject, key: string): string | null {
  const value: JsonValue | undefined = getOwnValue(body, key)
  return typeof value === 'string' && value !== '' ? value : null
}

function readNumber(body: JsonObject, key: string): number | null {
  const value = getOwnValue(body, key)
  return value === undefined ? null : (readJsonNumber(value) ?? null)
}

function shortenText(text: string): string {
  return text.slice(0, 200)
}

function explainNoAnswer(cause: unknown): string {
  if (cause instanceof Error && cause.name === 'TimeoutError') return 'the service does not answer'
  const inner = cause instanceof Error && cause.cause instanceof Error ? cause.cause : cause
  const { code, message } = inner as NodeJS.ErrnoException
  return `no connection (${code ?? message})`
}
