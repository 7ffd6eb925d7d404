// Turns the bytes of an evaluation request into the decide service's input. Pure, so that it can run on the event loop
// for small bodies, and in a decode thread for bodies that would hold the loop. Also packs and unpacks the thread's
// result.

import type { EvaluationRequest } from '#core/flags/evaluation/evaluation-request.ts'
import { createRawNumber, isRawNumber, type JsonObject, type JsonValue, setOwnValue } from '#core/json.ts'
import { err, ok, type Result } from '#core/result.ts'
import type { WireError } from '../wire-error.ts'
import { decideErrors, decompressedBytesMax } from './decide-errors.ts'
import { type DecideContext, parseDecideRequest } from './decide-request.ts'
import { decodeFlagsBody, type FlagsBody } from './flags-body.ts'

/**
 * How many bytes the event loop decodes itself, as sent and decompressed. Any client can send bodies just below the
 * bounds on many connections, and all that arrive in one turn of the loop are decoded in it, so each may take 2 ms at
 * most: forms encoded twice and tolerant JSON take longest. Source: ours.
 */
export const inlineFlagsBytesMax = 64 * 1024
/**
 * How many values the event loop parses. As properties of different names they take half a millisecond; as number literals
 * that must be kept, up to two. SDKs send fewer. Source: ours.
 */
export const inlineFlagsValuesMax = 2 * 1024

const inlineLimits = { decompressedBytesMax: inlineFlagsBytesMax, valuesMax: inlineFlagsValuesMax }

/** For the event loop: `too_much_work` for a body that a decode thread has to take. */
export function decodeFlagsOnEventLoop(
  body: FlagsBody,
  context: DecideContext,
): Result<EvaluationRequest, WireError | 'too_much_work'> {
  if (body.bytes.length > inlineFlagsBytesMax) return err('too_much_work')
  const decoded = decodeFlagsBody(body, inlineLimits)
  if (decoded.ok) return parseDecideRequest(decoded.value, context)
  return typeof decoded.error === 'string' ? err('too_much_work') : err(decoded.error)
}

/** For a decode thread: reads bodies up to the wire's limits. */
export function decodeFlagsRequest(body: FlagsBody, context: DecideContext): Result<EvaluationRequest, WireError> {
  const decoded = decodeFlagsBody(body, { decompressedBytesMax })
  if (decoded.ok) return parseDecideRequest(decoded.value, context)
  return err(typeof decoded.error === 'string' ? decideErrors.decompressedTooLarge : decoded.error)
}

/** A request on its way between threads. Posting it would lose its kept number literals, so they travel separately. */
export type FlagsDecodeResult =
  | { readonly ok: false; readonly error: WireError }
  | {
      readonly ok: true
      readonly request: EvaluationRequest
      /** For each literal: the very list or object in `request` that holds it, its place there, and its text. */
      readonly holders: readonly (JsonValue[] | JsonObject)[]
      readonly places: readonly (string | number)[]
      readonly literals: readonly string[]
    }

/** Takes the literals out of the request. */
export function extractRequestLiterals(decoded: Result<EvaluationRequest, WireError>): FlagsDecodeResult {
  if (!decoded.ok) return decoded
  const request = decoded.value
  const holders: (JsonValue[] | JsonObject)[] = []
  const places: (string | number)[] = []
  const literals: string[] = []
  for (const bag of [request.groups, request.personProperties, request.groupProperties]) extractRawNumbers(bag)
  return { ok: true, request, holders, places, literals }

  function extractRawNumbers(holder: JsonValue[] | JsonObject): void {
    // The keys of a list are its indexes.
    for (const key of Object.keys(holder)) {
      const value = (holder as JsonObject)[key]!
      if (typeof value !== 'object' || value === null) continue
      if (!isRawNumber(value)) {
        extractRawNumbers(value)
        continue
      }
      holders.push(holder)
      places.push(key)
      literals.push(value.rawJSON)
      setOwnValue(holder as JsonObject, key, null)
    }
  }
}

/** Puts the literals back. */
export function restoreRequestLiterals(posted: FlagsDecodeResult): Result<EvaluationRequest, WireError> {
  if (!posted.ok) return posted
  const { holders, places, literals } = posted
  for (let index = 0; index < holders.length; index++) {
    setOwnValue(holders[index] as JsonObject, places[index] as string, createRawNumber(literals[index]!))
  }
  return ok(posted.request)
}
