// The query of a v0 capture request: `compression`, `data`, `beacon`, `verbose` and the send time. Everything else is ignored.

import { err, ok, type Result } from '#core/result.ts'
import type { WireError } from '../wire-error.ts'
import { invalidQuery } from './capture-errors.ts'

export interface CaptureQuery {
  readonly compression: string
  readonly data: string
  /** `beacon=1`: the sender is a page that is closing and reads no answer. */
  readonly beacon: boolean
  /** From `_` or `sent_at`, epoch ms. */
  readonly sentAtMs: number | null
  readonly token: string | null
  /** `verbose=1`: the answer tells what became of each item. */
  readonly verbose: boolean
}

/** As Fastify gives it: a repeated parameter is a list. */
export type RawQuery = { readonly [name: string]: string | readonly string[] | undefined }

const noQuery: CaptureQuery = { compression: '', data: '', beacon: false, sentAtMs: null, token: null, verbose: false }

/** @returns err for a `_`, `sent_at` or `beacon` that is no integer, or both send times. Source: docs/wire/ingestion.md 1.2. */
export function parseCaptureQuery(query: RawQuery | undefined): Result<CaptureQuery, WireError> {
  if (query === undefined || Object.keys(query).length === 0) return ok(noQuery)
  const beacon = integerOf(query.beacon)
  if (Number.isNaN(beacon)) return err(invalidQuery('beacon'))
  const underscore = integerOf(query._)
  if (Number.isNaN(underscore)) return err(invalidQuery('_'))
  const sentAt = integerOf(query.sent_at)
  if (Number.isNaN(sentAt) || (sentAt !== null && underscore !== null)) return err(invalidQuery('sent_at'))
  const sentAtMs = underscore ?? sentAt
  return ok({
    ...readableQuery(query),
    beacon: beacon === 1,
    sentAtMs: sentAtMs !== null && isSendTime(sentAtMs) ? sentAtMs : null,
  })
}

/** What the query says besides its numbers. */
export function readableQuery(query: RawQuery | undefined): CaptureQuery {
  if (query === undefined) return noQuery
  return {
    ...noQuery,
    compression: firstOf(query.compression),
    data: firstOf(query.data),
    token: firstOf(query.token) || null,
    verbose: isYes(firstOf(query.verbose)),
  }
}

/** Anything else means no, as with other switches that clients send. */
export function isYes(text: string): boolean {
  return text === '1' || text === 'true'
}

const sendTimeFromMs = Date.UTC(2021, 0, 1)
const sendTimeBeforeMs = Date.UTC(2300, 0, 1)

/** After 2020, which tells milliseconds from seconds, and within what can be stored. */
function isSendTime(epochMs: number): boolean {
  return epochMs >= sendTimeFromMs && epochMs < sendTimeBeforeMs
}

/** Null when absent, NaN when it is no integer or there are several. */
function integerOf(value: string | readonly string[] | undefined): number | null {
  if (value === undefined) return null
  return typeof value === 'string' && /^[+-]?\d{1,19}$/.test(value) ? Number(value) : Number.NaN
}

function firstOf(value: string | readonly string[] | undefined): string {
  return (typeof value === 'string' ? value : value?.[0]) ?? ''
}
