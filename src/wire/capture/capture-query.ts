// The query of a v0 capture request: `compression`, `data`, `beacon`, `verbose`, `token` and the send time. The rest is
// ignored.

import { storableBeforeMs } from '#core/events/storable-time.ts'
import { err, ok, type Result } from '#core/result.ts'
import type { WireError } from '../wire-error.ts'
import { createInvalidQueryError } from './capture-errors.ts'

export interface CaptureQuery {
  readonly compression: string
  readonly data: string
  /** `beacon=1`: the sender is a page that is closing and reads no answer. */
  readonly beacon: boolean
  /** The send time from `_` or `sent_at`, epoch ms; null when absent or implausible. */
  readonly sentAtMs: number | null
  readonly token: string | null
  /** `verbose=1`: the answer reports the result of each item. */
  readonly verbose: boolean
}

/** As Fastify parses it: a repeated parameter is a list. */
export type RawQuery = { readonly [name: string]: string | readonly string[] | undefined }

const noQuery: CaptureQuery = { compression: '', data: '', beacon: false, sentAtMs: null, token: null, verbose: false }

/**
 * @returns err when `_`, `sent_at` or `beacon` is not an integer, or both send times are given. Source:
 * docs/wire/ingestion.md 1.2.
 */
export function parseCaptureQuery(query: RawQuery | undefined): Result<CaptureQuery, WireError> {
  if (query === undefined || Object.keys(query).length === 0) return ok(noQuery)
  const beacon = parseInteger(query.beacon)
  if (Number.isNaN(beacon)) return err(createInvalidQueryError('beacon'))
  const underscore = parseInteger(query._)
  if (Number.isNaN(underscore)) return err(createInvalidQueryError('_'))
  const sentAt = parseInteger(query.sent_at)
  if (Number.isNaN(sentAt) || (sentAt !== null && underscore !== null)) return err(createInvalidQueryError('sent_at'))
  const sentAtMs = underscore ?? sentAt
  return ok({
    ...readTextParameters(query),
    beacon: beacon === 1,
    sentAtMs: sentAtMs !== null && isSendTime(sentAtMs) ? sentAtMs : null,
  })
}

/** Reads the parameters that are valid with any text: all but the numbers. */
export function readTextParameters(query: RawQuery | undefined): CaptureQuery {
  if (query === undefined) return noQuery
  return {
    ...noQuery,
    compression: getFirstValue(query.compression),
    data: getFirstValue(query.data),
    token: getFirstValue(query.token) || null,
    verbose: isYes(getFirstValue(query.verbose)),
  }
}

/** Whether a switch is on: `1` or `true`. Any other text means no, as for other switches that clients send. */
export function isYes(text: string): boolean {
  return text === '1' || text === 'true'
}

const sendTimeFromMs = Date.UTC(2021, 0, 1)

/** Whether a time is later than 2020, so that it cannot be in seconds, and within the range that can be stored. */
function isSendTime(epochMs: number): boolean {
  return epochMs >= sendTimeFromMs && epochMs < storableBeforeMs
}

/** Null when absent, NaN when it is not an integer or is repeated. */
function parseInteger(value: string | readonly string[] | undefined): number | null {
  if (value === undefined) return null
  return typeof value === 'string' && /^[+-]?\d{1,19}$/.test(value) ? Number(value) : Number.NaN
}

function getFirstValue(value: string | readonly string[] | undefined): string {
  return (typeof value === 'string' ? value : value?.[0]) ?? ''
}
